//! What the machines' ends say of a late job.

use crate::result::{Check, Class};
use crate::verifier::Verifier;
use crate::verifier::again::plan::Ran;
use crate::verifier::again::{Helps, Late};

/// When the jobs ended on each machine; `None` where it refused what they do. What is known as an interval stands as the least and the most.
pub(crate) struct Ends {
    pub(crate) as_it_was: Option<Vec<u64>>,
    pub(crate) cut: Option<Vec<u64>>,
    pub(crate) out: [Option<Vec<u64>>; 2],
    pub(crate) both: [Option<Vec<u64>>; 2],
}

/// When one job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Times {
    as_it_was: u64,
    cut: u64,
    out: [u64; 2],
    both: [u64; 2],
}

impl Ends {
    /// Of the job at this place.
    pub(crate) fn of(&self, place: usize) -> Option<Times> {
        let at =
            |ends: &Option<Vec<u64>>| ends.as_ref().map(|ends| ends.get(place).copied().unwrap_or(u64::MAX));
        let [out_least, out] = &self.out;
        let [both_least, both] = &self.both;
        Some(Times {
            as_it_was: at(&self.as_it_was)?,
            cut: at(&self.cut)?,
            out: [at(out_least)?, at(out)?],
            both: [at(both_least)?, at(both)?],
        })
    }
}

/// What of a job is late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Helped {
    /// Whether each helps, by the least and by the most that the jobs may have executed.
    cut: bool,
    out: [bool; 2],
    both: [bool; 2],
    is_broken: bool,
    is_disturbed: bool,
}

impl Helped {
    fn class(self) -> Class {
        match (self.both, self.out) {
            ([false, false], _) => Class::BoundViolated,
            ([true, true], _) if self.cut && self.is_broken => Class::ModelViolated,
            ([true, true], [true, true]) if self.is_disturbed => Class::MachineDisturbed,
            ([true, true], [false, false]) if self.is_broken => Class::ModelViolated,
            _ => Class::CannotTell,
        }
    }

    /// Without what the job would have been in time, where the model was broken.
    fn without(self) -> Helps {
        match (self.cut, self.out == [true, true] && self.is_disturbed) {
            (false, _) => Helps::Together,
            (true, true) => Helps::Either,
            (true, false) => Helps::Cut,
        }
    }
}

impl Verifier {
    /// What is said of a late job that the machines have scheduled.
    pub(crate) fn class_by_machines(
        &self,
        late: &Late,
        ran: &Ran,
        times: Option<Times>,
        (is_broken, is_known): (bool, bool),
    ) -> (Class, Helps) {
        let Some(times) = times else { return (Class::CannotTell, late.helps) };
        let in_time = |end: u64, begin: u64| end.saturating_sub(begin) <= late.bound;
        let helped = Helped {
            cut: in_time(times.cut, ran.legal_arrival),
            out: times.out.map(|end| in_time(end, ran.arrival)),
            both: times.both.map(|end| in_time(end, ran.legal_arrival)),
            is_broken,
            is_disturbed: late.is_disturbed,
        };
        let class = self.class_of(late, ran, (times, helped), is_known);
        (class, helped.without())
    }

    fn class_of(&self, late: &Late, ran: &Ran, (times, helped): (Times, Helped), is_known: bool) -> Class {
        let is_broken = helped.is_broken;
        if late.is_hidden {
            // Demands are those of the threads' own clocks, and tell what they alone do.
            let by_demands = helped.out == [false, false] && helped.both == [true, true] && is_broken;
            return if by_demands { Class::ModelViolated } else { Class::CannotTell };
        }
        if ran.has_ended() && times.as_it_was.abs_diff(ran.end) > self.control_slack(late) {
            // Beside a disturbance the record may not say for how long a job could not go on (a stop, for one).
            let is_ruled = is_known
                && self.cpus[late.candidate.cpu].kernel
                && !self.model.is_best_effort
                && !late.is_disturbed;
            // Of simulated drivers not every choice above the threads is on record.
            let is_exact = self.model.simulated && !self.drivers.has_any();
            let is_seen = is_exact || is_ruled && !self.drivers.has_any();
            return if is_seen { Class::ScheduleDiffers } else { Class::CannotTell };
        }
        let class = if self.model.simulated && !is_broken { Class::BoundViolated } else { helped.class() };
        // An interrupt within a softirq is not held against its cost, so it is not shortened either.
        let is_open = self.drivers.has_any() && self.report.has(Class::ModelViolated, Check::Interrupt);
        if class == Class::BoundViolated && is_open { Class::CannotTell } else { class }
    }

    /// By how much the end of a job may differ from the recorded one where everything is scheduled as it was.
    fn control_slack(&self, late: &Late) -> u64 {
        let candidate = late.candidate;
        let slack = self.slack(candidate.cpu, candidate.from, candidate.to);
        if self.model.simulated { slack } else { slack.saturating_add(self.model.late_service()) }
    }
}
