//! A task's use of a device: it asks (a closed device) or reads (an open one), and waits or goes on.

use horolog_time::Span;

/// Which way the data go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RequestKind {
    /// From the device to the task.
    #[default]
    Read,
    /// From the task to the device.
    Write,
}

/// Whether the task waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RequestMode {
    /// It waits for the answer, and goes on with its continuation.
    #[default]
    Synchronous,
    /// It goes on at once; the answer comes by itself.
    Asynchronous,
}

/// What each job of a task asks of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Its name, unique among requests.
    pub name: String,
    /// The name of the task.
    pub task: String,
    /// The name of the device, on the task's processor.
    pub device: String,
    /// Which way the data go.
    pub kind: RequestKind,
    /// What a job has executed when it asks: its start phase. At most its wcet.
    pub after: Span,
    /// Whether it waits.
    pub mode: RequestMode,
    /// By when the answer must be there, from when it was asked for.
    pub deadline: Option<Span>,
    /// Of an open device: when the events for this task come in a simulation. `None`: it takes what is for nobody else.
    pub arrivals: Option<Vec<Span>>,
}

impl RequestKind {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["read", "write"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }

    /// The kind that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<RequestKind> {
        [Self::Read, Self::Write].into_iter().find(|kind| kind.word() == word)
    }
}

impl RequestMode {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["synchronous", "asynchronous"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Synchronous => "synchronous",
            Self::Asynchronous => "asynchronous",
        }
    }

    /// The mode that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<RequestMode> {
        [Self::Synchronous, Self::Asynchronous].into_iter().find(|mode| mode.word() == word)
    }
}
