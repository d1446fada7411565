//! Modes: what a system does differently from some instant on.

use crate::{Capacity, Priority};
use horolog_time::Span;

/// When a requested mode change takes effect.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TakesEffect {
    /// At the instant of the request.
    #[default]
    AtOnce,
    /// At the next start of a period of this server or scheduler, the instant of the request included.
    Frame(String),
    /// As soon as no job of these tasks is left, the instant of the request included.
    WhenDone(Vec<String>),
}

/// What becomes of the jobs of a task that were released before a mode change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum LeftOver {
    /// They finish, at the priorities and deadlines of the new mode (a deadline that was given stays).
    #[default]
    Finish,
    /// They end at the change without completing.
    Drop,
    /// They wait until a mode comes in which the task is active.
    Suspend,
}

/// What becomes of a request while another one has not taken effect yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum SecondRequest {
    /// It waits until the change before has taken effect.
    #[default]
    Queue,
    /// It is refused.
    Refuse,
}

/// What a mode changes of a task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskChange {
    /// The task's name.
    pub task: String,
    /// Its priority in this mode.
    pub priority: Option<Priority>,
    /// Its period or least separation in this mode; the first job of it arrives at the change.
    pub period: Option<Span>,
    /// Its relative deadline in this mode.
    pub deadline: Option<Span>,
    /// What becomes of its jobs at a change to this mode.
    pub left_over: Option<LeftOver>,
}

/// What a mode changes of a server or scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerChange {
    /// Its name.
    pub server: String,
    /// Budget and period in this mode. Within the period of the change it keeps min(new budget, new budget − used).
    pub capacity: Capacity,
}

/// A mode of the system. A run starts in the base mode, which is what the other sections say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mode {
    /// Its name, unique among modes.
    pub name: String,
    /// When it is requested, ascending instants after the start.
    pub at: Vec<Span>,
    /// The names of the tasks that release jobs in it; `None`: all.
    pub active: Option<Vec<String>>,
    /// When a request for it takes effect.
    pub takes_effect: TakesEffect,
    /// What becomes of a request for it during a change.
    pub second_request: SecondRequest,
    /// What becomes of the jobs left over, of tasks that say nothing themselves.
    pub left_over: LeftOver,
    /// What is different for tasks.
    pub tasks: Vec<TaskChange>,
    /// What is different for servers and schedulers.
    pub servers: Vec<ServerChange>,
}

impl TakesEffect {
    /// The words of the system file.
    pub const WORDS: [&'static str; 3] = ["at-once", "frame", "when-done"];
}

impl LeftOver {
    /// The words of the system file.
    pub const WORDS: [&'static str; 3] = ["finish", "drop", "suspend"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Finish => "finish",
            Self::Drop => "drop",
            Self::Suspend => "suspend",
        }
    }

    /// What a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<LeftOver> {
        [Self::Finish, Self::Drop, Self::Suspend].into_iter().find(|it| it.word() == word)
    }
}

impl SecondRequest {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["queue", "refuse"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Refuse => "refuse",
        }
    }
}
