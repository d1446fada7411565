//! Modes: what a system does differently from some instant on.

use crate::{Capacity, OverrunPolicy, Priority, ServerId, System, Task, TaskId, TimeTable};
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
    /// Its period or least separation in this mode. Where that is another than before, the first job arrives at the change.
    pub period: Option<Span>,
    /// Its relative deadline in this mode.
    pub deadline: Option<Span>,
    /// What its jobs may execute in this mode, below its wcet: one that has executed so long ends without completing.
    pub wcet: Option<Span>,
    /// What becomes of its jobs at a change to this mode.
    pub left_over: Option<LeftOver>,
}

/// What a mode changes of a server or scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerChange {
    /// Its name.
    pub server: String,
    /// Budget and period in this mode. Within the period of the change it keeps min(new budget, new budget − used).
    pub capacity: Option<Capacity>,
    /// Its time table in this mode. Where that is another than before, its first cycle begins at the change.
    pub table: Option<TimeTable>,
}

/// A mode of the system. A run starts in the base mode, which is what the other sections describe.
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
    /// The mode that is asked for at the instant at which this one takes effect.
    pub then: Option<String>,
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

    /// What a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<SecondRequest> {
        [Self::Queue, Self::Refuse].into_iter().find(|it| it.word() == word)
    }
}

/// A task as a mode has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskInMode {
    /// Whether it releases jobs.
    pub is_active: bool,
    /// Its priority.
    pub priority: Option<Priority>,
    /// Its period or least separation; `None` where its arrivals are listed.
    pub separation: Option<Span>,
    /// Its relative deadline.
    pub deadline: Option<Span>,
    /// By how much the deadline that orders its jobs under EDF comes before that one.
    pub shortened: Span,
    /// What its jobs may execute in this mode, where that is less than its wcet.
    pub limit: Option<Span>,
    /// What becomes of its jobs at a change to this mode, where the mode does not activate it or gives it another period.
    pub left_over: LeftOver,
}

/// By how much the virtual deadline of a task comes before its deadline.
fn shortened(task: &Task) -> Span {
    let both = task.deadline.zip(task.virtual_deadline());
    both.map_or(Span::ZERO, |(deadline, ordering)| deadline.saturating_sub(ordering))
}

fn is_asked_for(task: &Task, mode: &str) -> bool {
    matches!(&task.overrun, OverrunPolicy::Mode(name) if name == mode)
}

impl System {
    /// How many modes there are, the base mode included.
    #[must_use]
    pub fn mode_count(&self) -> u32 {
        self.modes().len() as u32 + 1
    }

    /// The name of a mode; 0 is the base mode.
    #[must_use]
    pub fn mode_name(&self, mode: u32) -> &str {
        let named = (mode as usize).checked_sub(1).and_then(|index| self.modes().get(index));
        named.map_or("base", |mode| mode.name.as_str())
    }

    /// The number of the mode of a name that a `[[mode]]` has.
    #[must_use]
    pub fn find_mode(&self, name: &str) -> Option<u32> {
        let place = self.modes().iter().position(|mode| mode.name == name)?;
        Some(place as u32 + 1)
    }

    /// A task as a mode has it; 0 is the base mode.
    #[must_use]
    pub fn task_in(&self, mode: u32, task: TaskId) -> TaskInMode {
        let task = self.task(task);
        let base = TaskInMode {
            is_active: true,
            priority: task.priority,
            separation: task.separation(),
            deadline: task.deadline,
            shortened: shortened(task),
            limit: None,
            left_over: LeftOver::Finish,
        };
        let Some(mode) = (mode as usize).checked_sub(1).and_then(|index| self.modes().get(index)) else {
            return base;
        };
        let change = mode.tasks.iter().find(|change| change.task == task.name);
        let is_active = mode.active.as_ref().is_none_or(|active| active.contains(&task.name));
        TaskInMode {
            is_active,
            priority: change.and_then(|change| change.priority).or(base.priority),
            separation: change.and_then(|change| change.period).or(base.separation),
            deadline: change.and_then(|change| change.deadline).or(base.deadline),
            shortened: if is_asked_for(task, &mode.name) { Span::ZERO } else { base.shortened },
            limit: change.and_then(|change| change.wcet),
            left_over: change.and_then(|change| change.left_over).unwrap_or(mode.left_over),
        }
    }

    /// Budget and period of a server or scheduler in a mode; 0 is the base mode. `None` where it has no budget.
    #[must_use]
    pub fn capacity_in(&self, mode: u32, server: ServerId) -> Option<Capacity> {
        let changed = self.change_in(mode, server).and_then(|change| change.capacity);
        self.server(server).kind.capacity().map(|base| changed.unwrap_or(base))
    }

    /// The time table of a scheduler in a mode; 0 is the base mode. `None` where it orders by none.
    #[must_use]
    pub fn table_in(&self, mode: u32, server: ServerId) -> Option<&TimeTable> {
        let changed = self.change_in(mode, server).and_then(|change| change.table.as_ref());
        self.server(server).table.as_ref().map(|base| changed.unwrap_or(base))
    }

    /// What a mode changes of a server or scheduler.
    fn change_in(&self, mode: u32, server: ServerId) -> Option<&ServerChange> {
        let mode = (mode as usize).checked_sub(1).and_then(|index| self.modes().get(index))?;
        mode.servers.iter().find(|change| change.server == self.server(server).name)
    }

    /// Every request for a mode that the file makes: when, and which mode; by time, then by the modes' names, so that the
    /// order of the file's sections says nothing.
    #[must_use]
    pub fn mode_requests(&self) -> Vec<(Span, u32)> {
        let mut numbered: Vec<(&Mode, u32)> = self.modes().iter().zip(1..).collect();
        numbered.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let requests =
            numbered.into_iter().flat_map(|(mode, number)| mode.at.iter().map(move |&at| (at, number)));
        let mut requests: Vec<(Span, u32)> = requests.collect();
        requests.sort_by_key(|&(at, _)| at);
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_says_what_differs_and_the_base_mode_the_rest() {
        let text = "[system]\nname = \"modes\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 2\n\
                    [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
        let (flat, _) = crate::file::read(text, "modes.toml", &[]).expect("a valid file");
        let mut draft = flat.to_draft();
        let change = TaskChange {
            task: "a".to_owned(),
            priority: Some(Priority::new(7)),
            period: Some(Span::from_ns(5)),
            left_over: Some(LeftOver::Suspend),
            ..TaskChange::default()
        };
        let at = |ns: &[u64]| ns.iter().map(|&ns| Span::from_ns(ns)).collect();
        let fast = Mode {
            name: "fast".to_owned(),
            at: at(&[4, 9]),
            active: Some(vec!["a".to_owned()]),
            left_over: LeftOver::Drop,
            tasks: vec![change],
            ..Mode::default()
        };
        let slow = Mode { name: "slow".to_owned(), at: at(&[4]), ..Mode::default() };
        draft.modes = vec![fast, slow];
        let system = System::new(draft.clone()).expect("a valid system");
        let (a, b) = (system.task_in(1, TaskId(0)), system.task_in(1, TaskId(1)));
        assert_eq!((a.is_active, a.priority.map(Priority::number)), (true, Some(7)));
        assert_eq!((a.separation, a.deadline), (Some(Span::from_ns(5)), flat.task(TaskId(0)).deadline));
        assert_eq!((a.left_over, b.left_over, b.is_active), (LeftOver::Suspend, LeftOver::Drop, false));
        let base = system.task_in(0, TaskId(0));
        assert_eq!(base, system.task_in(2, TaskId(0)));
        assert_eq!((base.is_active, base.priority.map(Priority::number)), (true, Some(2)));
        let requests = |system: &System| -> Vec<(u64, String)> {
            let named = |(at, mode): (Span, u32)| (at.as_ns(), system.mode_name(mode).to_owned());
            system.mode_requests().into_iter().map(named).collect()
        };
        let expected = [(4, "fast"), (4, "slow"), (9, "fast")].map(|(at, name)| (at, name.to_owned()));
        assert_eq!(requests(&system), expected);
        draft.modes.reverse();
        assert_eq!(requests(&System::new(draft).expect("a valid system")), expected);
        assert_eq!((system.mode_name(0), system.mode_name(2), system.mode_count()), ("base", "slow", 3));
    }
}
