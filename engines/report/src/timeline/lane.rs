//! One lane of the timeline: intervals, jobs and marks in columns.

use super::columns::{Column, Packed};
use horolog_trace::Kind;
use serde::Serialize;

/// What a lane shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneKind {
    /// One task's jobs.
    Task,
    /// Who has one processor.
    Cpu,
    /// What the kernel and foreign threads take from one processor.
    Kernel,
    /// What one server has left of its budget.
    Server,
    /// One device: who waits for it, and when it is worked for.
    Device,
}

/// The state of a task's oldest unfinished job; the codes of a task lane's intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum State {
    /// It has the processor.
    Executing = 1,
    /// It is ready and has not started.
    Ready = 2,
    /// It lost the processor.
    Preempted = 3,
    /// It gave the processor away at a preemption point.
    Yielded = 4,
    /// It gave the processor away by sleeping in the middle of its work.
    Suspended = 5,
}

/// What a server's budget does; the codes of a server lane's intervals. The argument is what is left at the start (ns).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Budget {
    /// It is used: it falls by a nanosecond each nanosecond.
    Used = 1,
    /// It stays.
    Kept = 2,
    /// Nothing is left.
    Gone = 3,
}

/// The codes of a device lane's intervals. The argument is how many jobs wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Served {
    /// Its handler executes.
    Handled = 1,
    /// A job waits for it.
    Awaited = 2,
}

/// The classes of a kernel lane's intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Taken {
    /// A thread that is no task's.
    Thread = 1,
    /// An interrupt handler.
    Interrupt = 2,
    /// A softirq.
    Softirq = 3,
    /// The hypervisor.
    Steal = 4,
    /// A thread that is no task's, while no job is pending on the processor: it takes nothing from anybody.
    Background = 5,
}

/// A finished lane.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// What it shows.
    pub kind: LaneKind,
    /// Which task, server or device (index), or processor (number).
    pub index: u32,
    /// What the page calls it.
    pub name: String,
    /// Columns: start (difference), length, code, argument (difference).
    pub intervals: Packed,
    /// Columns: job number, arrival (differences), readiness after arrival, response plus 1 or 0 where
    /// unfinished, executed.
    pub jobs: Packed,
    /// Columns: time (difference), kind ([`Kind`]), job (difference), value.
    pub marks: Packed,
}

/// An interval that may still grow.
#[derive(Clone, Copy, Debug)]
struct Open {
    from: i64,
    code: u64,
    argument: u64,
}

/// A lane under construction. Its intervals never overlap and never go back in time.
#[derive(Clone, Debug)]
pub(super) struct LaneBuilder {
    kind: LaneKind,
    index: u32,
    name: String,
    open: Option<Open>,
    /// Kept back, since the next interval may continue it.
    closed: Option<(Open, i64)>,
    /// The end of the last interval stored for good.
    stored: i64,
    end: i64,
    starts: Column,
    lengths: Column,
    codes: Column,
    arguments: Column,
    intervals: u64,
    job_columns: [Column; 5],
    jobs: u64,
    mark_columns: [Column; 4],
    marks: u64,
}

impl LaneBuilder {
    pub(super) fn new(kind: LaneKind, index: u32, name: String) -> LaneBuilder {
        LaneBuilder {
            kind,
            index,
            name,
            open: None,
            closed: None,
            stored: i64::MIN,
            end: i64::MIN,
            starts: Column::default(),
            lengths: Column::default(),
            codes: Column::default(),
            arguments: Column::default(),
            intervals: 0,
            job_columns: Default::default(),
            jobs: 0,
            mark_columns: Default::default(),
            marks: 0,
        }
    }

    /// From `time` on: `code` with `argument`.
    pub(super) fn enter(&mut self, time: i64, code: u64, argument: u64) {
        if let Some(open) = self.open
            && open.code == code
            && open.argument == argument
        {
            return;
        }
        self.leave(time);
        self.open = Some(Open { from: time.max(self.end), code, argument });
    }

    /// From `time` on: `code` with `argument`, an interval of its own even where it says the same as the one before.
    pub(super) fn enter_anew(&mut self, time: i64, code: u64, argument: u64) {
        self.leave(time);
        if let Some((interval, end)) = self.closed.take() {
            self.store(interval, end);
        }
        self.enter(time, code, argument);
    }

    /// The job lost the processor, unless it is known to have given it away.
    pub(super) fn lose(&mut self, time: i64, job: u64) {
        if self.open.is_none_or(|open| open.code != State::Yielded as u64) {
            self.enter(time, State::Preempted as u64, job);
        }
    }

    /// The job's thread sleeps, unless it gave way at a preemption point.
    pub(super) fn suspend(&mut self, time: i64, job: u64) {
        if self
            .open
            .is_some_and(|open| open.code == State::Preempted as u64 || open.code == State::Executing as u64)
        {
            self.enter(time, State::Suspended as u64, job);
        }
    }

    /// A suspended job waits for the processor again.
    pub(super) fn wake(&mut self, time: i64, job: u64) {
        if self.open.is_some_and(|open| open.code == State::Suspended as u64) {
            self.enter(time, State::Ready as u64, job);
        }
    }

    /// From `time` on: nothing.
    pub(super) fn leave(&mut self, time: i64) {
        let Some(open) = self.open.take() else { return };
        if time <= open.from {
            return;
        }
        self.end = time;
        match self.closed.take() {
            Some((before, end))
                if (before.code, before.argument, end) == (open.code, open.argument, open.from) =>
            {
                self.closed = Some((before, time));
            }
            before => {
                if let Some((interval, end)) = before {
                    self.store(interval, end);
                }
                self.closed = Some((open, time));
            }
        }
    }

    /// From `from` to `to`, over what was there: for what is only known at its end.
    pub(super) fn overwrite(&mut self, from: i64, to: i64, code: u64, argument: u64) {
        match self.open {
            Some(open) if open.from >= from => self.open = None,
            _ => self.leave(from),
        }
        if let Some((interval, end)) = self.closed
            && end > from
        {
            self.closed = (interval.from < from).then_some((interval, from));
        }
        self.end = self.end.min(from).max(self.stored);
        self.enter(from, code, argument);
        self.leave(to);
    }

    fn store(&mut self, interval: Open, end: i64) {
        self.starts.push_difference(interval.from as u64);
        self.lengths.push(interval.from.abs_diff(end));
        self.codes.push(interval.code);
        self.arguments.push_difference(interval.argument);
        self.intervals += 1;
        self.stored = end;
    }

    /// Adds a job: arrival, readiness after it, response (`None`: unfinished) and what it executed.
    pub(super) fn job(&mut self, number: u64, arrival: i64, late: u64, response: Option<u64>, executed: u64) {
        let [numbers, arrivals, lates, responses, executions] = &mut self.job_columns;
        numbers.push_difference(number);
        arrivals.push_difference(arrival as u64);
        lates.push(late);
        responses.push(response.map_or(0, |r| r.saturating_add(1)));
        executions.push(executed);
        self.jobs += 1;
    }

    /// Adds a mark.
    pub(super) fn mark(&mut self, time: i64, kind: Kind, job: u64, value: u64) {
        let [times, kinds, jobs, values] = &mut self.mark_columns;
        times.push_difference(time as u64);
        kinds.push(u64::from(kind as u8));
        jobs.push_difference(job);
        values.push(value);
        self.marks += 1;
    }

    /// Ends what is open at `time`.
    pub(super) fn finish(mut self, time: i64) -> Lane {
        self.leave(time);
        if let Some((interval, end)) = self.closed.take() {
            self.store(interval, end);
        }
        let [a, b, c, d, e] = &self.job_columns;
        let [f, g, h, i] = &self.mark_columns;
        Lane {
            kind: self.kind,
            index: self.index,
            name: self.name,
            intervals: Packed::new(
                self.intervals,
                &[&self.starts, &self.lengths, &self.codes, &self.arguments],
            ),
            jobs: Packed::new(self.jobs, &[a, b, c, d, e]),
            marks: Packed::new(self.marks, &[f, g, h, i]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::{undo_differences, unpack};
    use super::*;

    #[test]
    fn joins_what_continues_and_drops_what_takes_no_time() {
        let mut lane = LaneBuilder::new(LaneKind::Task, 0, "a".to_owned());
        lane.enter(-5, 1, 7);
        lane.enter(10, 2, 7);
        lane.enter(10, 1, 7);
        lane.enter(20, 3, 7);
        lane.leave(25);
        let lane = lane.finish(30);
        let columns = unpack(&lane.intervals);
        assert_eq!(lane.intervals.rows(), 2);
        assert_eq!(undo_differences(&columns[0]), [-5, 20]);
        assert_eq!(columns[1], [25, 5]);
        assert_eq!(columns[2], [1, 3]);
    }
}
