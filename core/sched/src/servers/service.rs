//! A policy that watches all tasks of one processor: where a supply looks at its own budget alone, a service is told
//! of every release, completion and execution there, and says where each task and the soft node stand.

use crate::{Place, Tally};
use horolog_model::{Priority, TaskId};
use horolog_time::{Instant, Span};
use std::fmt;

/// What a service knows of one hard task. Its place in the list, most important first, is its rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HardTask {
    /// Which task.
    pub task: TaskId,
    /// Its priority.
    pub priority: Priority,
    /// Its wcet, and what the machine adds to each job.
    pub execution: Span,
    /// Its period or least separation.
    pub separation: Span,
    /// Its relative deadline.
    pub deadline: Span,
    /// Its release jitter.
    pub jitter: Span,
    /// Whether its jobs arrive exactly a separation apart.
    pub is_periodic: bool,
}

/// The service of one processor. Methods run inside an event and must not allocate.
///
/// At one instant what was executed comes first, then completions, then the timer, then releases. Before the end of a
/// job, a change of the soft demand and the timer everything that was executed until then has been reported; the rest of
/// the time was idle or the kernel's own. Where [`Service::wants_every_report`], that holds for releases, too.
pub trait Service: fmt::Debug + Send + Sync {
    /// A job of the hard task of this rank is ready; `arrival` is its nominal one, which lies before `now` where the
    /// machine was late.
    fn released(&mut self, now: Instant, rank: usize, arrival: Instant);

    /// The oldest job of the hard task of this rank is done.
    fn completed(&mut self, now: Instant, rank: usize);

    /// The hard task of this rank, or a soft one (`None`), executed for `amount` until `now`.
    fn executed(&mut self, now: Instant, rank: Option<usize>, amount: Span);

    /// The soft node got its first ready job (`true`) or lost its last (`false`).
    fn soft_demand(&mut self, now: Instant, backlogged: bool);

    /// The next instant at which [`Service::timer_fired`] wants to be called.
    fn timer(&self) -> Option<Instant>;

    /// The wall timer went off.
    fn timer_fired(&mut self, now: Instant);

    /// Where the soft node stands.
    fn soft_place(&self) -> Place;

    /// How much soft jobs may execute before somebody must be told; `None`: no limit.
    fn soft_budget(&self) -> Option<Span> {
        None
    }

    /// Whether the hard task of this rank stands at its low place; asked after its releases and completions.
    fn is_low(&self, rank: usize) -> bool {
        let _ = rank;
        false
    }

    /// After the timer: the next hard task whose place has changed and has not been told; `None`: there is none.
    fn moved(&mut self) -> Option<usize> {
        None
    }

    /// Whether it wants to be told what is executed; where not, that changes only with its timer.
    fn counts(&self) -> bool {
        true
    }

    /// Whether it wants to be told of releases and completions.
    fn wants_jobs(&self) -> bool {
        true
    }

    /// Whether what was executed must be told before every event.
    fn wants_every_report(&self) -> bool {
        false
    }

    /// What it has done so far.
    fn tally(&self) -> Tally {
        Tally::default()
    }
}
