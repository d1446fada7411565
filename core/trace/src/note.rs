//! What servers, slack policies and modes did becomes records: the one place where the machine's notes meet the file format.

use crate::{Kind, NO_JOB, NO_TASK, Record};
use horolog_sched::Note;
use horolog_time::{Instant, Span};

impl Record {
    /// The record of a note; `job` is the oldest job of a promoted or dispatched task, and not looked at for other notes.
    #[must_use]
    pub fn of_note(note: Note, time: Instant, cpu: u16, job: u64) -> Record {
        let of_server = |kind, server: horolog_model::ServerId, extra| Record {
            time,
            kind,
            cpu,
            task: NO_TASK,
            job: NO_JOB,
            value: server.0.into(),
            extra,
        };
        match note {
            Note::Exhausted { server, consumed } => {
                of_server(Kind::BudgetExhausted, server, Span::as_ns(consumed))
            }
            Note::Replenished { server, budget } => {
                of_server(Kind::BudgetReplenished, server, Span::as_ns(budget))
            }
            Note::SlackLost { server } => of_server(Kind::SlackChange, server, 0),
            Note::SlackBack { server } => of_server(Kind::SlackChange, server, 1),
            Note::Promoted { task } => {
                Record { time, kind: Kind::Promotion, cpu, task: task.0, job, value: 0, extra: 0 }
            }
            Note::TaskDispatched { task, mode } => {
                let (kind, value) = (Kind::FirstDispatch, mode.into());
                Record { time, kind, cpu, task: task.0, job, value, extra: 0 }
            }
            Note::ServerDispatched { server, mode } => {
                let (kind, value, extra) = (Kind::FirstDispatch, mode.into(), 1 + u64::from(server.0));
                Record { time, kind, cpu, task: NO_TASK, job: NO_JOB, value, extra }
            }
            Note::ModeEnded { mode, next } => {
                let (kind, value, extra) = (Kind::ModeEnd, mode.into(), next.into());
                Record { time, kind, cpu, task: NO_TASK, job: NO_JOB, value, extra }
            }
        }
    }
}
