//! Whether output is coloured, and in which tones.

use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU8, Ordering};

/// When output is coloured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum When {
    // Documented values would make every verb's help twice as long.
    #[default]
    Auto,
    Always,
    Never,
}

/// What a word says, as its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    /// It holds.
    Good,
    /// It does not.
    Bad,
    /// It is not decided, or not allowed.
    Open,
}

impl Tone {
    /// The tone of a verdict word; `None` for all other words.
    pub(crate) fn of(word: &str) -> Option<Tone> {
        match word {
            "yes" | "meets" | "holds" => Some(Tone::Good),
            "no" | "NO" | "misses" | "missed" | "error" => Some(Tone::Bad),
            "undecided" | "unknown" | "limited" | "not allowed" | "warning" => Some(Tone::Open),
            _ => None,
        }
    }

    pub(crate) fn colour(self) -> AnsiColor {
        match self {
            Tone::Good => AnsiColor::Green,
            Tone::Bad => AnsiColor::BrightRed,
            Tone::Open => AnsiColor::Yellow,
        }
    }
}

static CHOICE: AtomicU8 = AtomicU8::new(0);

/// Takes the choice of the command line.
pub(crate) fn choose(when: When) {
    CHOICE.store(when as u8, Ordering::Relaxed);
}

/// The choice as clap understands it, for its own messages and the help.
pub(crate) fn of_clap(when: When) -> clap::ColorChoice {
    match when {
        When::Auto => clap::ColorChoice::Auto,
        When::Always => clap::ColorChoice::Always,
        When::Never => clap::ColorChoice::Never,
    }
}

/// Whether standard output is coloured.
pub(crate) fn on_stdout() -> bool {
    is_wanted(&std::io::stdout())
}

/// Whether standard error is coloured.
pub(crate) fn on_stderr() -> bool {
    is_wanted(&std::io::stderr())
}

fn is_wanted(stream: &impl IsTerminal) -> bool {
    match CHOICE.load(Ordering::Relaxed) {
        1 => true,
        2 => false,
        _ => {
            let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb
        }
    }
}

/// The text in this tone, bold; as it is where the stream takes no colour.
pub(crate) fn paint(text: &str, tone: Tone, is_coloured: bool) -> String {
    if !is_coloured {
        return text.to_owned();
    }
    let style = Style::new().bold().fg_color(Some(tone.colour().into()));
    format!("{style}{text}{style:#}")
}

/// The first word of a line, up to `: `, in the tone that it has.
pub(crate) fn paint_first(line: &str, is_coloured: bool) -> String {
    match line.split_once(": ").and_then(|(word, rest)| Some((word, rest, Tone::of(word)?))) {
        Some((word, rest, tone)) => format!("{}: {rest}", paint(word, tone, is_coloured)),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_verdict_words_are_painted_and_nothing_where_no_colour_is_wanted() {
        assert_eq!(paint_first("no: b misses", true), "\u{1b}[1m\u{1b}[91mno\u{1b}[0m: b misses");
        assert_eq!(paint_first("no: b misses", false), "no: b misses");
        assert_eq!(paint_first("note: b misses", true), "note: b misses");
    }
}
