//! Counting live.

use crate::RecordingError;
use crate::output::name_of;
use crate::recorder::{CommandEnd, buffers, command_end};
use crate::sessions::{Emitted, Sessions, Tap};
use crate::target::{self, Target, Tracing};
use horolog_sys::clock::monotonic_ns;
use horolog_time::Span;
use horolog_trace::{LossCause, escape};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PASS_MS: i32 = 4;

/// What to watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// What is traced.
    pub target: Target,
    /// How its processes are traced.
    pub tracing: Tracing,
    /// How often the counts are handed on.
    pub interval: Span,
    /// How long; `None`: until the command ends.
    pub duration: Option<Span>,
    /// Ends it when set.
    pub stop: Arc<AtomicBool>,
}

/// The counts of one interval: the JSON result `horolog.top/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Top {
    /// Always [`Top::SCHEMA`].
    pub schema: &'static str,
    /// Since the beginning.
    pub elapsed_ns: Span,
    /// Since the last counts.
    pub interval_ns: Span,
    /// Events in this interval.
    pub events: u64,
    /// Of these a second.
    pub rate_hz: f64,
    /// Events lost in this interval.
    pub events_lost: u64,
    /// Events lost since the beginning.
    pub events_lost_total: u64,
    /// Events since the beginning.
    pub events_total: u64,
    /// Losses since the beginning, by cause ([`LossCause::name`]).
    pub losses: BTreeMap<&'static str, u64>,
    /// What to do against the losses; null where nothing was lost, or nothing helps.
    pub remedy: Option<String>,
    /// Sessions of processes that are read.
    pub sessions: usize,
    /// Per event, the most frequent first.
    pub by_event: Vec<EventRate>,
    /// Per thread, the busiest first.
    pub by_thread: Vec<ThreadRate>,
}

impl Top {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.top/1";
}

/// How often an event was met.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EventRate {
    /// Its name.
    pub name: String,
    /// In this interval.
    pub events: u64,
    /// In this interval, a second.
    pub rate_hz: f64,
    /// Since the beginning.
    pub total: u64,
}

/// How many events a thread met.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ThreadRate {
    /// Its process.
    pub process: u32,
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// In this interval.
    pub events: u64,
    /// In this interval, a second.
    pub rate_hz: f64,
    /// Since the beginning.
    pub total: u64,
}

/// How the watching ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Watched {
    /// How the command ended; `None` where it had not, or none was started.
    pub command: Option<CommandEnd>,
    /// Whether the time or `stop` ended it, and not the command's end.
    pub stopped: bool,
    /// What the user must know.
    pub notes: Vec<String>,
}

/// In this interval, and in all.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    now: u64,
    total: u64,
}

impl Count {
    fn add(&mut self, count: u64) {
        self.now = self.now.saturating_add(count);
        self.total = self.total.saturating_add(count);
    }
}

#[derive(Default)]
struct Counts {
    /// By session and number; names are looked up when they are shown.
    events: BTreeMap<(u64, u32), (String, Count)>,
    threads: BTreeMap<(u32, u32), (String, Count)>,
    all: Count,
    lost: Count,
    losses: BTreeMap<&'static str, u64>,
}

impl Tap for Counts {
    fn joined(&mut self, pid: u32) {
        // A program that was replaced by `exec` has new names for the same threads.
        for ((process, tid), (comm, _)) in &mut self.threads {
            if *process == pid {
                *comm = escape(name_of(pid, *tid));
            }
        }
    }

    fn event(&mut self, event: &Emitted<'_>) {
        self.all.add(1);
        let place = (event.session, event.event.id);
        self.events
            .entry(place)
            .or_insert_with(|| (escape(event.event.name.clone()), Count::default()))
            .1
            .add(1);
        let thread = (event.pid, event.tid);
        self.threads
            .entry(thread)
            .or_insert_with(|| (escape(name_of(thread.0, thread.1)), Count::default()))
            .1
            .add(1);
    }

    fn lost(&mut self, _: u32, cause: LossCause, count: u64) {
        self.lost.add(count);
        let place = self.losses.entry(cause.name()).or_default();
        *place = place.saturating_add(count);
    }
}

impl Counts {
    /// The counts of the interval that ends now; the next one begins at 0.
    fn take(&mut self, elapsed: Span, interval: Span, sessions: &Sessions, tracing: &Tracing) -> Top {
        let seconds = (interval.as_ns() as f64 / 1e9).max(1e-9);
        let rate = |count: u64| count as f64 / seconds;
        let mut by_name: BTreeMap<&str, Count> = BTreeMap::new();
        for (name, count) in self.events.values() {
            let sum = by_name.entry(name).or_default();
            sum.now += count.now;
            sum.total += count.total;
        }
        let mut by_event: Vec<EventRate> = by_name
            .into_iter()
            .map(|(name, count)| EventRate {
                name: name.to_owned(),
                events: count.now,
                rate_hz: rate(count.now),
                total: count.total,
            })
            .collect();
        by_event.sort_by_key(|row| std::cmp::Reverse((row.events, row.total)));
        let threads = self.threads.iter().map(|(&(process, tid), (comm, count))| ThreadRate {
            process,
            tid,
            comm: comm.clone(),
            events: count.now,
            rate_hz: rate(count.now),
            total: count.total,
        });
        let mut by_thread: Vec<ThreadRate> = threads.collect();
        by_thread.sort_by_key(|row| std::cmp::Reverse((row.events, row.total)));
        let top = Top {
            schema: Top::SCHEMA,
            elapsed_ns: elapsed,
            interval_ns: interval,
            events: self.all.now,
            rate_hz: rate(self.all.now),
            events_lost: self.lost.now,
            events_lost_total: self.lost.total,
            events_total: self.all.total,
            losses: self.losses.clone(),
            remedy: buffers(tracing, None, sessions.memory_note().is_some()).remedy(&self.losses),
            sessions: sessions.live(),
            by_event,
            by_thread,
        };
        let counts = self.events.values_mut().chain(self.threads.values_mut()).map(|(_, count)| count);
        counts.chain([&mut self.all, &mut self.lost]).for_each(|count| count.now = 0);
        top
    }
}

/// Counts until the command ends, the time is over, or `stop` is set; `show` gets the counts of every interval, and those of
/// the rest at the end.
///
/// # Errors
/// As [`crate::record`].
pub fn watch(options: &WatchOptions, show: &mut dyn FnMut(&Top)) -> Result<Watched, RecordingError> {
    let mut sessions = Sessions::new(options.tracing.memory.unwrap_or(0))?;
    let mut started = target::start(&options.target, &options.tracing, &mut sessions)?;
    let mut notes = std::mem::take(&mut started.notes);
    let begun = monotonic_ns();
    let deadline = options.duration.map(|span| begun.saturating_add(span.as_ns()));
    let mut counts = Counts::default();
    let mut shown = begun;
    loop {
        let over = started.has_ended()
            || options.stop.load(Ordering::Relaxed)
            || deadline.is_some_and(|deadline| monotonic_ns() >= deadline);
        sessions.pass(&mut counts);
        sessions.note_refused(&mut notes);
        let now = monotonic_ns();
        if over || now.saturating_sub(shown) >= options.interval.as_ns() {
            let (elapsed, interval) = (now.saturating_sub(begun), now.saturating_sub(shown));
            let (elapsed, interval) = (Span::from_ns(elapsed), Span::from_ns(interval));
            show(&counts.take(elapsed, interval, &sessions, &options.tracing));
            shown = now;
        }
        if over {
            break;
        }
        sessions.wait(PASS_MS, started.life());
    }
    notes.extend(sessions.memory_note());
    let stopped = options.stop.load(Ordering::Relaxed) || !started.has_ended();
    started.ask_to_end();
    Ok(Watched { command: command_end(&started), stopped, notes })
}
