//! What servers, slack policies and modes did, as typed notes.

use crate::{Machine, ProcessorIndex};
use horolog_model::{ServerId, ServerKind, System, TaskId};
use horolog_time::Span;

/// Something that is not to be seen in who runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// A server's budget has run out while work waited.
    Exhausted {
        /// Which server.
        server: ServerId,
        /// What was charged to its budget so far.
        consumed: Span,
    },
    /// A server's budget has come back.
    Replenished {
        /// Which server.
        server: ServerId,
        /// What it may execute from now on.
        budget: Span,
    },
    /// The hard tasks leave a slack stealing server no more slack.
    SlackLost {
        /// Which server.
        server: ServerId,
    },
    /// The hard tasks leave a slack stealing server slack again.
    SlackBack {
        /// Which server.
        server: ServerId,
    },
    /// A hard task has got its high priority.
    Promoted {
        /// Which task.
        task: TaskId,
    },
    /// A job of a task has the processor for the first time in a mode that a change has brought; left-over jobs do not count.
    TaskDispatched {
        /// Which task.
        task: TaskId,
        /// The mode.
        mode: u32,
    },
    /// The same of a job below a server or scheduler.
    ServerDispatched {
        /// Which server.
        server: ServerId,
        /// The mode.
        mode: u32,
    },
    /// No job is left over any more from the mode before the last change.
    ModeEnded {
        /// The mode before.
        mode: u32,
        /// The mode that the change has brought.
        next: u32,
    },
}

/// The servers of one processor as they were noted last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    servers: Vec<Seen>,
    /// How often budgets had run out or come back.
    changes: u64,
    /// The hard tasks that are promoted, and whether each stood low.
    promoted: Vec<(TaskId, bool)>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    id: ServerId,
    steals_slack: bool,
    exhaustions: u64,
    replenishments: u64,
}

impl Noted {
    pub(crate) fn new(system: &System, processor: ProcessorIndex) -> Noted {
        let Some(cpu) = system.platform().cpus.iter().nth(usize::from(processor.0)) else {
            return Noted::default();
        };
        let seen = |(id, server): (ServerId, &horolog_model::Server)| {
            let steals_slack = matches!(server.kind, ServerKind::SlackStealing { .. });
            Seen { id, steals_slack, exhaustions: 0, replenishments: 0 }
        };
        let promotes =
            system.servers_on(cpu).any(|(_, server)| matches!(server.kind, ServerKind::DualPriority { .. }));
        let hard = system.hard_tasks_on(cpu).filter(|_| promotes).map(|(id, _)| (id, false));
        Noted { servers: system.servers_on(cpu).map(seen).collect(), changes: 0, promoted: hard.collect() }
    }

    pub(crate) fn has_promotions(&self) -> bool {
        !self.promoted.is_empty()
    }

    /// How often budgets have run out or come back since this was asked last; `changes` is how often in all.
    #[inline]
    pub(crate) fn count(&mut self, changes: u64) -> u64 {
        changes.wrapping_sub(std::mem::replace(&mut self.changes, changes))
    }

    /// What has changed since the last look; `changes` is how often budgets have run out or come back in all.
    #[inline]
    pub(crate) fn tell(&mut self, machine: &Machine, changes: u64, mut take: impl FnMut(Note)) {
        // A task that moves changes no budget.
        if self.count(changes) > 0 {
            self.tell_of_budgets(machine, &mut take);
        }
        debug_assert!(self.servers.iter().all(|seen| {
            let tally = machine.tally(seen.id);
            (tally.exhaustions, tally.replenishments) == (seen.exhaustions, seen.replenishments)
        }));
        for (task, was_low) in &mut self.promoted {
            let is_low = machine.stands_low(*task);
            if *was_low && !is_low {
                take(Note::Promoted { task: *task });
            }
            *was_low = is_low;
        }
    }

    fn tell_of_budgets(&mut self, machine: &Machine, mut take: impl FnMut(Note)) {
        for seen in &mut self.servers {
            let (server, tally) = (seen.id, machine.tally(seen.id));
            for _ in seen.exhaustions..tally.exhaustions {
                take(if seen.steals_slack {
                    Note::SlackLost { server }
                } else {
                    Note::Exhausted { server, consumed: tally.consumed }
                });
            }
            for _ in seen.replenishments..tally.replenishments {
                take(if seen.steals_slack {
                    Note::SlackBack { server }
                } else {
                    Note::Replenished { server, budget: machine.budget(server).unwrap_or(Span::ZERO) }
                });
            }
            (seen.exhaustions, seen.replenishments) = (tally.exhaustions, tally.replenishments);
        }
    }
}
