//! What goes to stderr while work is going on.

use horolog_model::{Body, System};
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static QUIET: AtomicBool = AtomicBool::new(false);
/// Whether what goes on is not told, since programs read standard error.
static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Nothing but results and errors from now on.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// No words for what goes on from now on.
pub(crate) fn hide_activities() {
    HIDDEN.store(true, Ordering::Relaxed);
}

/// A line for the person at the terminal.
pub(crate) fn say(line: impl Display) {
    if !QUIET.load(Ordering::Relaxed) {
        // Nobody may read this any more; that is no reason to end.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Begins a new line where tasks of this system have run code of the user's: what it has printed may lack the end of its line, and nothing
/// tells.
pub(crate) fn begin_a_line(system: &System) {
    if system.tasks().iter().filter_map(|task| task.body.as_ref()).any(Body::is_users_code) {
        crate::output::flush();
        let _ = writeln!(std::io::stderr());
    }
}

/// Something that goes on for a while: a spinner on a terminal, a line elsewhere. It ends when dropped.
pub(crate) struct Activity {
    bar: Option<ProgressBar>,
    /// Without a terminal: when a line was said last.
    said: Cell<Instant>,
}

/// Without a terminal a line is said so often.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

impl Activity {
    /// Starts showing `what`.
    pub(crate) fn start(what: &str) -> Activity {
        if QUIET.load(Ordering::Relaxed) || HIDDEN.load(Ordering::Relaxed) {
            return Activity::without_terminal();
        }
        let bar = ProgressBar::new_spinner();
        if bar.is_hidden() {
            // No terminal: one line says what goes on.
            say(what);
            return Activity::without_terminal();
        }
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {elapsed}")
                .unwrap_or(ProgressStyle::default_spinner()),
        );
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Activity { bar: Some(bar), said: Cell::new(Instant::now()) }
    }

    /// The same where there is something to show.
    pub(crate) fn start_where(goes_on: bool, what: &str) -> Option<Activity> {
        goes_on.then(|| Activity::start(what))
    }

    fn without_terminal() -> Activity {
        Activity { bar: None, said: Cell::new(Instant::now()) }
    }

    /// Says what is going on now.
    pub(crate) fn now(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        } else if self.said.get().elapsed() > BETWEEN_LINES && !HIDDEN.load(Ordering::Relaxed) {
            self.said.set(Instant::now());
            say(what);
        }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
