//! Dynamic approximate slack stealing: soft jobs run above the hard tasks while every one of these has slack.
//!
//! The slack of hard task i at t is what can be taken from the processor without making its pending job, or else its next
//! one, late. With d the time to that job's deadline, x_j the time to the next release of j, c_j what its pending job may
//! still execute:
//!
//! ```text
//! S_i = max(0, d − Σ_{j ≤ i} [c_j + f_j·C_j + min(C_j, max(0, d − x_j − f_j·T_j))]),   f_j = max(0, ⌊(d − x_j)/T_j⌋)
//! ```
//!
//! Soft jobs run at the top while `min S_i > 0`, else below the hard tasks. While soft jobs run, or nobody, every S_i
//! falls; while hard task k runs, the S_j of more important tasks do. At each completion of a hard job all are computed
//! anew. A slack is kept as the instant at which it would be gone if only soft jobs ran, so that time passing costs
//! nothing and one wall timer ends the soft jobs' turn.
//!
//! *Gain*: what a job leaves of its wcet is slack at once (`propagated`). Without, it stays charged until its time has
//! passed: until somebody less important, or nobody, has run for so long. Computing anew with c_j = 0 alone would hand it
//! out silently.
//!
//! Source: `davis93`, in the form of `burdalo07`. # Differences: with switches that cost something, soft jobs start only
//! if there is slack for one to them and one back, and leave early by one. Where timers may be late, they leave earlier by
//! that, and a job that is still to come keeps as much, since its own release may be noticed late.

use crate::servers::overheads::Overheads;
use crate::{HardTask, Place, Service, Tally};
use horolog_model::Gain;
use horolog_time::{Instant, Span};

/// What does not change.
#[derive(Clone, Copy, Debug)]
struct Task {
    execution: u64,
    separation: u64,
    deadline: u64,
    jitter: u64,
    is_periodic: bool,
    /// The rank of the first task of its priority, and one past that of the last.
    first_equal: usize,
    end_equal: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Jobs released and not done.
    pending: u32,
    /// What the oldest may still execute.
    remaining: u64,
    /// Left over by the last job and not given away yet.
    charged: u64,
    /// Of the oldest job.
    deadline: u64,
    /// Earliest arrival of the next job; `None` before the first.
    next: Option<u64>,
    /// When its slack would be gone if only soft jobs ran.
    slack_ends: u64,
}

/// The slack stealer of one processor; see the module.
#[derive(Clone, Debug)]
pub(crate) struct SlackStealing {
    gain: Gain,
    overheads: Overheads,
    tasks: Box<[Task]>,
    states: Box<[State]>,
    /// The least of all `slack_ends`.
    ends: u64,
    backlogged: bool,
    is_high: bool,
    /// Up to when time has been accounted for; `None` before the first event.
    last: Option<u64>,
    /// What was executed since.
    accounted: u64,
    tally: Tally,
}

impl SlackStealing {
    pub(crate) fn new(hard: &[HardTask], overheads: Overheads, gain: Gain) -> SlackStealing {
        let equal = |a: &HardTask, b: &HardTask| a.priority == b.priority;
        let task = |task: &HardTask| Task {
            execution: task.execution.as_ns(),
            separation: task.separation.as_ns(),
            deadline: task.deadline.as_ns(),
            jitter: task.jitter.as_ns(),
            is_periodic: task.is_periodic,
            first_equal: hard.iter().position(|other| equal(other, task)).unwrap_or(0),
            end_equal: hard.iter().rposition(|other| equal(other, task)).map_or(0, |last| last + 1),
        };
        SlackStealing {
            gain,
            overheads,
            tasks: hard.iter().map(task).collect(),
            states: vec![State::default(); hard.len()].into(),
            ends: u64::MAX,
            backlogged: false,
            is_high: false,
            last: None,
            accounted: 0,
            tally: Tally::default(),
        }
    }

    /// Time to the next arrival of a task, negative where it has passed and no release was seen. Of a periodic task the time
    /// is known after its first job; before, and of a sporadic one that may come, it is as long ago as a job may stay unseen:
    /// the jitter, and how `late` the release is noticed.
    fn until_next(&self, rank: usize, now: u64, late: u64) -> i128 {
        let (task, next) = (&self.tasks[rank], self.states[rank].next);
        let next = next.map(|next| i128::from(next) - i128::from(now));
        let earliest = -i128::from(task.jitter) - i128::from(late);
        match next {
            Some(next) if task.is_periodic => next,
            Some(next) => next.max(earliest),
            None => earliest,
        }
    }

    fn slack(&self, rank: usize, now: u64) -> u64 {
        let (task, state) = (&self.tasks[rank], &self.states[rank]);
        if state.pending > 1 {
            return 0;
        }
        let until = if state.pending == 1 {
            i128::from(state.deadline) - i128::from(now)
        } else {
            self.until_next(rank, now, 0) + i128::from(task.deadline)
        };
        let window = u64::try_from(until.max(0)).unwrap_or(u64::MAX);
        let late = if state.pending == 0 { self.overheads.late } else { 0 };
        let mut demand = i128::from(self.overheads.in_window(window)) + i128::from(late);
        for other in 0..task.end_equal {
            let (other_task, other_state) = (&self.tasks[other], &self.states[other]);
            let (execution, separation) =
                (i128::from(other_task.execution), i128::from(other_task.separation));
            // Of the task itself the lateness is in the demand already.
            let unseen = if other == rank { 0 } else { self.overheads.late };
            let behind = until - self.until_next(other, now, unseen);
            let whole = if behind > 0 { behind / separation } else { 0 };
            let part = (behind - whole * separation).clamp(0, execution);
            demand += i128::from(other_state.remaining)
                + i128::from(other_state.charged)
                + whole * execution
                + part;
        }
        u64::try_from((until - demand).max(0)).unwrap_or(u64::MAX)
    }

    /// Computes every slack anew.
    fn recompute(&mut self, now: u64) {
        for rank in 0..self.tasks.len() {
            self.states[rank].slack_ends = now.saturating_add(self.slack(rank, now));
        }
        self.find_least();
    }

    fn find_least(&mut self) {
        self.ends = self.states.iter().map(|state| state.slack_ends).min().unwrap_or(u64::MAX);
    }

    /// Time has passed up to `now`: what was not executed was idle.
    fn pass(&mut self, now: u64) {
        match self.last {
            None => self.recompute(now),
            Some(last) => {
                let idle = (now - last.min(now)).saturating_sub(self.accounted);
                self.give_away(self.tasks.len(), idle);
            }
        }
        self.last = Some(now);
        self.accounted = 0;
    }

    /// What less important tasks, soft ones in the background or nobody ran is taken from what was left over.
    fn give_away(&mut self, ranks: usize, mut amount: u64) {
        if self.gain.is_propagated() {
            return;
        }
        for state in &mut self.states[..ranks] {
            let taken = state.charged.min(amount);
            state.charged -= taken;
            amount -= taken;
            if amount == 0 {
                return;
            }
        }
    }

    /// How long before its end the slack must be given back: a late timer and the switch.
    fn leaving(&self) -> u64 {
        self.overheads.switch.saturating_add(self.overheads.late)
    }

    /// Puts soft jobs where the slack has them from now on. Who starts above needs `switch` more than who is there: the way
    /// to the soft job.
    fn place(&mut self, now: u64, switch: u64) {
        let was_high = self.is_high;
        self.is_high = self.ends > now.saturating_add(switch).saturating_add(self.leaving());
        self.tally.replenishments += u64::from(self.is_high && !was_high && self.backlogged);
    }
}

impl Service for SlackStealing {
    fn released(&mut self, now: Instant, rank: usize, arrival: Instant) {
        self.pass(now.as_ns());
        let (state, task) = (&mut self.states[rank], &self.tasks[rank]);
        let arrival = arrival.as_ns();
        state.pending += 1;
        state.next = Some(arrival.saturating_add(task.separation));
        state.charged = 0;
        if state.pending == 1 {
            state.remaining = task.execution;
            state.deadline = arrival.saturating_add(task.deadline);
        }
        // What was assumed of this job's arrival is known now; of other tasks nothing is new.
        self.states[rank].slack_ends = now.as_ns().saturating_add(self.slack(rank, now.as_ns()));
        self.find_least();
        if self.backlogged {
            let was_high = self.is_high;
            self.place(now.as_ns(), if was_high { 0 } else { self.overheads.switch });
            self.tally.exhaustions += u64::from(was_high && !self.is_high);
        }
    }

    fn completed(&mut self, now: Instant, rank: usize) {
        self.pass(now.as_ns());
        let (state, task) = (&mut self.states[rank], &self.tasks[rank]);
        let unused = std::mem::take(&mut state.remaining);
        state.pending = state.pending.saturating_sub(1);
        if state.pending > 0 {
            state.remaining = task.execution;
            // Where one waits, it is the one that arrived last; with more of them the task has no slack.
            let last = state.next.unwrap_or_default().saturating_sub(task.separation);
            state.deadline = last.saturating_add(task.deadline);
        } else if !self.gain.is_propagated() {
            state.charged = unused.saturating_sub(self.overheads.switch.saturating_mul(2));
        }
        self.recompute(now.as_ns());
        self.place(now.as_ns(), self.overheads.switch);
    }

    fn executed(&mut self, _: Instant, rank: Option<usize>, amount: Span) {
        let amount = amount.as_ns();
        self.accounted = self.accounted.saturating_add(amount);
        let Some(rank) = rank else {
            if self.is_high {
                self.tally.consume(Span::from_ns(amount));
            } else {
                self.give_away(self.tasks.len(), amount);
            }
            return;
        };
        let first = self.tasks[rank].first_equal;
        self.give_away(first, amount);
        let state = &mut self.states[rank];
        state.remaining = state.remaining.saturating_sub(amount);
        for state in &mut self.states[first..] {
            state.slack_ends = state.slack_ends.saturating_add(amount);
        }
        self.find_least();
    }

    fn soft_demand(&mut self, now: Instant, backlogged: bool) {
        self.pass(now.as_ns());
        self.backlogged = backlogged;
        if backlogged {
            self.place(now.as_ns(), self.overheads.switch);
        }
    }

    fn timer(&self) -> Option<Instant> {
        let ends = self.ends.saturating_sub(self.leaving());
        (self.backlogged && self.is_high && ends != u64::MAX).then(|| Instant::from_ns(ends))
    }

    fn timer_fired(&mut self, now: Instant) {
        self.pass(now.as_ns());
        if now.as_ns() >= self.ends.saturating_sub(self.leaving()) {
            self.is_high = false;
            self.tally.exhaustions += 1;
        }
    }

    fn soft_place(&self) -> Place {
        if self.is_high { Place::High } else { Place::Low(0) }
    }

    fn wants_every_report(&self) -> bool {
        true
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set B: (2, 10), (4, 20), (8, 40).
    fn set_b() -> (Vec<HardTask>, Overheads) {
        let mut text = "[system]\nname = \"set B\"\n".to_owned();
        for (name, wcet, period, priority) in [("a", 2, 10, 3), ("b", 4, 20, 2), ("c", 8, 40, 1)] {
            text += &format!(
                "[[task]]\nname = \"{name}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\npriority = {priority}\n"
            );
        }
        let (system, _) =
            horolog_model::file::read(&text, "b.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let cpu = system.tasks()[0].cpu;
        (Overheads::hard_tasks(&system, cpu), Overheads::new(&system, cpu))
    }

    /// Fact 1 of the aperiodic policies.
    #[test]
    fn slack_of_set_b() {
        let (hard, overheads) = set_b();
        let mut stealer = SlackStealing::new(&hard, overheads, Gain::None);
        let zero = Instant::from_ns(0);
        for rank in 0..3 {
            stealer.released(zero, rank, zero);
        }
        assert_eq!((0..3).map(|rank| stealer.slack(rank, 0)).collect::<Vec<_>>(), [8, 12, 16]);
    }

    #[test]
    fn a_job_that_waited_in_an_overload_has_the_deadline_of_its_own_arrival() {
        for is_periodic in [false, true] {
            let (mut hard, overheads) = set_b();
            hard.truncate(1);
            hard[0].is_periodic = is_periodic;
            let mut stealer = SlackStealing::new(&hard, overheads, Gain::None);
            stealer.released(Instant::from_ns(0), 0, Instant::from_ns(0));
            let mut slack_after = |second: u64| {
                stealer.released(Instant::from_ns(second), 0, Instant::from_ns(second));
                assert_eq!(stealer.slack(0, second), 0, "two jobs wait");
                stealer.completed(Instant::from_ns(second + 1), 0);
                stealer.slack(0, second + 1)
            };
            // Its deadline is 10 after its arrival, of which 1 has passed and 2 are its own; one more comes at its deadline.
            assert_eq!((slack_after(15), slack_after(40)), (7, 7), "periodic: {is_periodic}");
        }
    }

    #[test]
    fn soft_jobs_leave_by_the_lateness_of_timers_before_their_slack_ends() {
        let (hard, mut overheads) = set_b();
        overheads.late = 3;
        let mut stealer = SlackStealing::new(&hard, overheads, Gain::None);
        let zero = Instant::from_ns(0);
        for rank in 0..3 {
            stealer.released(zero, rank, zero);
        }
        stealer.soft_demand(zero, true);
        assert!(stealer.is_high);
        // The slack of 8, known since the release was noticed.
        assert_eq!(stealer.timer(), Some(Instant::from_ns(8 - 3)));
        stealer.timer_fired(Instant::from_ns(5));
        assert!(!stealer.is_high);
        stealer.executed(Instant::from_ns(7), Some(0), Span::from_ns(2));
        stealer.completed(Instant::from_ns(7), 0);
        assert_eq!(stealer.slack(0, 7), 13 - 2 - 3);
    }

    #[test]
    fn without_gain_what_is_left_over_stays_charged_until_its_time_has_passed() {
        let (hard, overheads) = set_b();
        let at = Instant::from_ns;
        let slack_after = |gain| {
            let mut stealer = SlackStealing::new(&hard, overheads.clone(), gain);
            for rank in 0..3 {
                stealer.released(at(0), rank, at(0));
            }
            // The first task ends after 1 of 2; then the second runs for 1.
            stealer.executed(at(1), Some(0), Span::from_ns(1));
            stealer.completed(at(1), 0);
            let early = stealer.slack(2, 1);
            stealer.executed(at(2), Some(1), Span::from_ns(1));
            stealer.pass(2);
            (early, stealer.slack(2, 2))
        };
        assert_eq!(slack_after(Gain::Propagated), (17, 17));
        assert_eq!(slack_after(Gain::None), (16, 17));
    }
}
