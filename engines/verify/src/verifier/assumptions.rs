//! Checks of the model's assumptions: arrivals, readiness, execution.

use crate::result::{Check, Class, Evidence};
use crate::state::candidate::{Candidate, Question};
use crate::state::job::{Busy, Excess, Job, Part, job_window};
use crate::verifier::Verifier;
use horolog_model::Arrival;
use horolog_time::Span;
use horolog_trace::{Kind, NO_JOB};

/// Where the file declares no release latency, an observed arrival that is off by no more than a tenth of what lies between two, and by no
/// more than a millisecond, may be the kernel's wake-up.
const UNDECLARED_SHARE: u64 = 10;
const UNDECLARED_MOST: u64 = 1_000_000;

/// On a virtual machine the thread's clock may count 1 in so many of the pauses that the host makes within a job: a pause of 3.3 ms was off by 33 us.
const GAP_PRECISION: u64 = 32;

/// A program's clock, as that of a sound card, may run faster than the kernel's by this part.
const CLOCKS_DIFFER: u64 = 1_000;

impl Verifier {
    /// Checks that an arrival keeps the task's pattern; returns the earliest arrival that does.
    pub(crate) fn check_arrival(&mut self, task: usize, number: u64, arrival: u64) -> u64 {
        if self.model.tasks[task].thread.is_driver {
            return arrival;
        }
        let restart = self.tasks[task].restarts_at;
        let is_listed = matches!(self.model.tasks[task].arrival, Arrival::Aperiodic { .. });
        if number == NO_JOB
            && !is_listed
            && (self.tasks[task].is_inactive || restart.is_some_and(|at| arrival < at))
        {
            // It had arrived, and was not noticed before the mode changed.
            return arrival;
        }
        self.report.apply(Check::Arrival);
        let place = self.place_in_list(task, number);
        self.tasks[task].restarts_at = None;
        let last = self.tasks[task].last_arrival.replace(arrival);
        let late_before = self.tasks[task].late_arrival.take();
        let model = &self.model.tasks[task];
        let start = self.model.start;
        // An observed arrival, unlike a planned one, carries the machine's delays.
        let slack = if model.is_observed {
            self.model.allowed_lateness(task, arrival).saturating_add(self.model.stamping)
        } else {
            0
        };
        let after = |span: Span| last.map(|last| last.saturating_add(span.as_ns()));
        let (expected, exactly) = match &model.arrival {
            Arrival::Periodic { .. } | Arrival::Sporadic { .. } if restart.is_some() => (restart, true),
            Arrival::Periodic { period } => {
                // A program that begins by itself knows no offset.
                // After a loss of jobs the first one that is seen is not the first one.
                let is_first = !model.is_observed && !self.completeness.has_lost_jobs();
                let offset = model.offset.filter(|_| is_first);
                (after(*period).or(offset.map(|offset| start.saturating_add(offset))), true)
            }
            Arrival::Sporadic { separation } => (after(*separation), false),
            Arrival::Aperiodic { arrivals } => {
                let at = place.and_then(|place| arrivals.get(place));
                (at.map(|at| start.saturating_add(at.as_ns())), true)
            }
            _ => (None, false),
        };
        let Some(expected) = expected else { return arrival };
        let early = expected.saturating_sub(arrival);
        let late = if exactly { arrival.saturating_sub(expected) } else { 0 };
        if early <= slack && late <= slack {
            if model.is_observed && early > 0 {
                // The slack is one for all arrivals: whoever always comes early comes too often, but for what clocks differ.
                let differs = last.map_or(0, |last| expected.saturating_sub(last)) / CLOCKS_DIFFER;
                self.tasks[task].last_arrival = Some(expected.saturating_sub(differs).max(arrival));
            } else if model.is_observed && late > 0 {
                // The rhythm may go on from there, or as if it had been in time.
                (self.tasks[task].last_arrival, self.tasks[task].late_arrival) =
                    (Some(expected), Some(arrival));
            }
            return arrival;
        }
        if let (Arrival::Periodic { period }, true) = (&model.arrival, model.is_observed) {
            let goes_on = late_before.map(|late| late.saturating_add(period.as_ns()));
            if goes_on.is_some_and(|expected| expected.abs_diff(arrival) <= slack) {
                return arrival;
            }
        }
        if early > slack && self.has_no_timers() && self.tasks[task].tally.jobs <= 1 {
            let message = format!(
                "{} job {number} arrived at {}, {} too early behind one arrival alone; the trace has no interrupts, so that the timer of that \
                 one may have come late",
                model.name,
                Span::from_ns(arrival),
                Span::from_ns(early)
            );
            self.job_finding(
                Class::CannotTell,
                Check::Arrival,
                task,
                number,
                message,
                Some((arrival, expected)),
            );
            return arrival;
        }
        let between = last.map_or(0, |last| expected.saturating_sub(last));
        let undeclared = (between / UNDECLARED_SHARE).min(UNDECLARED_MOST);
        if model.is_observed
            && !self.model.declares_latency
            && early.max(late) <= slack.saturating_add(undeclared)
        {
            let message = format!(
                "{} job {number} arrived at {}, {} off; the file declares no release_latency, so that this may be the kernel's wake-up",
                model.name,
                Span::from_ns(arrival),
                Span::from_ns(early.max(late))
            );
            let numbers = Some((arrival, expected));
            if late > slack && matches!(model.arrival, Arrival::Periodic { .. }) {
                // The next one may keep the old rhythm or the new one.
                (self.tasks[task].last_arrival, self.tasks[task].late_arrival) =
                    (Some(expected), Some(arrival));
            }
            self.job_finding(Class::CannotTell, Check::Arrival, task, number, message, numbers);
            return arrival;
        }
        if let (Arrival::Periodic { period }, true) = (&model.arrival, model.is_observed) {
            let period = period.as_ns();
            if late > slack {
                // What else happened meanwhile tells whose fault that is; the rhythm goes on as if it had not happened.
                let kept = expected.saturating_add(late / period.max(1) * period);
                (self.tasks[task].last_arrival, self.tasks[task].late_arrival) = (Some(kept), Some(arrival));
                let since = last.unwrap_or(expected).min(expected);
                let window = Some(Busy { since, blocker: None });
                let question = Question::Arrival { late, expected, done_at: self.tasks[task].done_at };
                self.ask(task, model.cpu, number, arrival, window, question);
                return arrival;
            }
        }
        let name = model.name.clone();
        let wcet = model.wcet;
        let (by, how) = if early > slack { (early, "early") } else { (late, "late") };
        let message = format!(
            "{name} job {number} arrived at {}, {} too {how}",
            Span::from_ns(arrival),
            Span::from_ns(by)
        );
        self.job_finding(
            Class::ModelViolated,
            Check::Arrival,
            task,
            number,
            message,
            Some((arrival, expected)),
        );
        if early > slack {
            self.breach_of(task, (arrival, self.now), wcet, "arrivals too early");
            return expected;
        }
        arrival
    }

    /// Whether nothing on record would show a timer that comes late.
    fn has_no_timers(&self) -> bool {
        self.model.foreign && self.counts[Kind::InterruptEntry as usize] == 0
    }

    /// An observed arrival came too late: the machine's doing where the processor was stopped for as much of that time as is too
    /// long. A program that was still at its job before, which ended at `done_at`, did not wait for its time: without what kept it from the
    /// processor it would have, or nobody can tell. Else it is the program's doing.
    pub(crate) fn judge_late_arrival(
        &mut self,
        candidate: Candidate,
        late: u64,
        (expected, done_at): (u64, u64),
    ) {
        let Candidate { task, cpu, job, arrival, .. } = candidate;
        let slack = self.model.allowed_lateness(task, arrival).saturating_add(self.model.stamping);
        let stolen = self.cpus[cpu].stolen(expected, arrival);
        let mut message = format!(
            "{} job {job} arrived at {}, {} too late; the processor stood still for {} of it",
            self.model.tasks[task].name,
            Span::from_ns(arrival),
            Span::from_ns(late),
            Span::from_ns(stolen)
        );
        let (mut class, mut evidence) = (Class::ModelViolated, Vec::new());
        let is_busy = done_at >= expected;
        if late <= slack.saturating_add(stolen) {
            class = Class::MachineDisturbed;
        } else if is_busy {
            let account =
                self.account(Candidate { to: done_at.max(candidate.from), ..candidate }, candidate.from);
            let taken = account.by_machine;
            if taken > slack {
                let would_wait = done_at.saturating_sub(taken) <= expected;
                class = if would_wait { Class::MachineDisturbed } else { Class::CannotTell };
                message = format!(
                    "{message}; its job before ended at {} and was kept from the processor for {}",
                    Span::from_ns(done_at),
                    Span::from_ns(taken)
                );
                evidence = account.evidence;
            }
        } else if self.has_no_timers() {
            class = Class::CannotTell;
            message.push_str("; the trace has no interrupts, so that this may be a timer that came late");
        }
        let hidden = self.cpus[cpu].hidden.within(candidate.from, arrival);
        if class == Class::ModelViolated && hidden > 0 {
            class = Class::CannotTell;
            message.push_str("; the kernel's record hides a switch meanwhile");
        }
        self.found(candidate, class, Check::Arrival, (arrival, expected), evidence, message);
    }

    /// A job that has not ended may have executed longer than its wcet already.
    pub(crate) fn ask_execution_so_far(&mut self, task: usize, cpu: usize, place: usize) {
        if self.model.simulated || !self.cpus[cpu].kernel {
            return;
        }
        let (wcet, job) = (self.model.tasks[task].wcet, &self.tasks[task].pending[place]);
        let (executed, interrupted, number, arrival) =
            (job.executed, job.interrupted, job.number, job.arrival);
        self.report.apply(Check::Execution);
        if executed > wcet.saturating_add(self.model.execution) {
            let window = job_window(job);
            let (arrived, finished) = (arrival, false);
            let question = Question::Execution { executed, wcet, interrupted, arrived, finished };
            self.ask(task, cpu, number, arrival, window, question);
        }
    }

    /// The place of an arrival among those that are listed. One that is skipped without a number takes its place, too.
    fn place_in_list(&mut self, task: usize, number: u64) -> Option<usize> {
        let is_lossy = self.lossy();
        let state = &mut self.tasks[task];
        if number != NO_JOB {
            return usize::try_from(number.checked_add(state.unnumbered)?).ok();
        }
        let next = if is_lossy { state.next_number? } else { state.next_number.unwrap_or(0) };
        let place = next.checked_add(state.unnumbered)?;
        state.unnumbered += 1;
        usize::try_from(place).ok()
    }

    /// Checks that a job was ready soon enough after its arrival; returns how late it was.
    pub(crate) fn check_release(
        &mut self,
        task: usize,
        cpu: usize,
        number: u64,
        arrival: u64,
        ready: u64,
    ) -> u64 {
        if self.model.tasks[task].thread.is_driver {
            return 0;
        }
        self.report.apply(Check::Release);
        let name = self.model.tasks[task].name.clone();
        let lateness = ready.saturating_sub(arrival);
        if ready.saturating_add(self.model.stamping) < arrival {
            let message = format!(
                "{name} job {number} was ready at {}, before its arrival at {}",
                Span::from_ns(ready),
                Span::from_ns(arrival)
            );
            self.job_finding(
                Class::ModelViolated,
                Check::Release,
                task,
                number,
                message,
                Some((ready, arrival)),
            );
            return 0;
        }
        let allowed = self.model.allowed_lateness(task, arrival);
        if lateness <= allowed {
            return lateness;
        }
        let limit = allowed.saturating_add(self.model.stamping);
        // A thread that notes its own release does so only once it has the processor, and is done with the job before: what more important
        // jobs took in between is no lateness.
        let own = if self.model.simulated {
            lateness
        } else {
            let since = arrival.max(self.tasks[task].done_at).min(ready);
            ready - since - self.served_before(task, cpu, since, ready)
        };
        if own <= limit {
            return own;
        }
        let class = if self.model.simulated { Class::ModelViolated } else { Class::MachineDisturbed };
        let message = format!(
            "{name} job {number} was ready {} after its arrival, {} are allowed",
            Span::from_ns(own),
            Span::from_ns(allowed)
        );
        self.job_finding(class, Check::Release, task, number, message, Some((own, allowed)));
        let what = Evidence::LATE_RELEASES;
        if self.model.simulated {
            self.breach_of(task, (arrival, self.now), own - allowed, what);
        } else {
            self.breach(cpu, self.now, own - allowed, false, what);
        }
        own
    }

    /// Counts a release that the machine noticed, and whether that was later than the platform's latency allows. One that arrives
    /// while another late one has not been noticed yet is late by the same stall and is not counted as late again.
    pub(crate) fn count_release(&mut self, task: usize, arrival: u64, lateness: u64) {
        let is_late = lateness > self.model.allowed_lateness(task, arrival);
        let tally = &mut self.tasks[task].tally;
        tally.releases_noticed += 1;
        if is_late {
            tally.releases_late += u64::from(arrival >= self.stalled_until);
            self.stalled_until = self.stalled_until.max(arrival.saturating_add(lateness));
        }
    }

    /// Time in `from..to` in which the processor served jobs that `task` has to wait for.
    fn served_before(&self, task: usize, cpu: usize, from: u64, to: u64) -> u64 {
        let served = self.cpus[cpu].occupied(from, to, |who| match who {
            crate::state::history::Occupant::Task(other) => self.model.in_level(other, task),
            _ => false,
        });
        served.min(to.saturating_sub(from))
    }

    /// Checks a finished job's execution time against wcet and bcet, and against the time for which it had the
    /// processor by the kernel's account.
    pub(crate) fn check_execution(&mut self, task: usize, cpu: usize, job: &Job, executed: u64) {
        self.report.apply(Check::Execution);
        let (wcet, bcet) = (self.model.tasks[task].wcet, self.model.tasks[task].bcet);
        if executed < bcet && !job.cut_short {
            self.tasks[task].tally.below_bcet += 1;
        }
        self.check_told(task, cpu, job, executed);
        let interrupted = job.interrupted;
        if executed > wcet.saturating_add(self.model.execution) {
            let (arrived, finished) = (job.arrival, true);
            let question = Question::Execution { executed, wcet, interrupted, arrived, finished };
            let window = job_window(job);
            self.ask(task, cpu, job.number, self.now, window, question);
        }
        if !self.cpus[cpu].kernel {
            return;
        }
        self.compare_clocks(task, cpu, job, executed);
        self.report.apply(Check::Gap);
        let had = job.executed.saturating_sub(interrupted);
        let gap = had.saturating_sub(executed);
        if gap > self.model.stamping.saturating_add(self.model.context_switch) {
            let name = self.model.tasks[task].name.clone();
            let message = format!(
                "{name} job {} had CPU {} for {} by the kernel's account and executed for {}",
                job.number,
                self.model.cpus[cpu],
                Span::from_ns(had),
                Span::from_ns(executed)
            );
            let numbers = Some((had, executed));
            self.job_finding(Class::MachineDisturbed, Check::Gap, task, job.number, message, numbers);
            self.breach(cpu, self.now, gap, false, Evidence::GAPS);
        }
    }

    /// In a simulated trace a job has executed for as long as it had the processor, less interrupts and costs: it may not say otherwise.
    fn check_told(&mut self, task: usize, cpu: usize, job: &Job, told: u64) {
        // What interrupts of drivers took within a job is not known to the nanosecond.
        if !self.model.simulated || self.lossy() || job.demoted || self.drivers.has_any() {
            return;
        }
        let had = job.executed.saturating_sub(job.interrupted);
        if told > had || had - told > self.slack_of(task, cpu, job) {
            let message = format!(
                "{} job {} says that it executed {}, and had the processor for {}",
                self.model.tasks[task].name,
                job.number,
                Span::from_ns(told),
                Span::from_ns(had)
            );
            self.job_finding(
                Class::ModelViolated,
                Check::Execution,
                task,
                job.number,
                message,
                Some((told, had)),
            );
        }
    }

    /// Checks one segment's execution, `executed` with the interrupts in it; what is too long is judged when the job
    /// is done.
    pub(crate) fn check_part(
        &mut self,
        task: usize,
        part: Part,
        (begin, switches): (Option<u64>, u64),
        (executed, interrupted): (u64, u64),
        wcet: Option<u64>,
    ) -> Option<Excess> {
        let wcet = wcet?;
        // Without the kernel's switches a measured segment's time is not known, only its ends are.
        let cpu = self.model.tasks[task].cpu;
        if !self.model.simulated && !self.cpus[cpu].kernel {
            return None;
        }
        self.report.apply(Check::SegmentExecution);
        // A simulated interrupt takes what its records say.
        let taken = if self.model.simulated { interrupted } else { 0 };
        let excess = executed.saturating_sub(taken).saturating_sub(wcet);
        if excess == 0 {
            return None;
        }
        // The time for which the job had the processor holds switches and interrupts, too.
        let begin = begin.unwrap_or(self.now.saturating_sub(executed));
        let slack = self.part_slack(cpu, (begin, self.now), switches);
        if excess <= slack {
            return None;
        }
        let excess = Excess { part, executed, interrupted, wcet, switches, begin, time: self.now };
        // Nothing but the model explains it in a simulation, so whoever waits need not wait for the job's end.
        if self.model.simulated {
            self.breach_segment(task, &excess);
        }
        Some(excess)
    }

    /// What the time for which a job had the processor may hold beside its execution.
    pub(crate) fn part_slack(&self, cpu: usize, (begin, end): (u64, u64), switches: u64) -> u64 {
        let switches = switches.saturating_mul(self.model.context_switch.saturating_add(self.model.stamping));
        self.slack(cpu, begin, end).saturating_add(self.model.execution).saturating_add(switches)
    }

    /// Judges the segments that took longer than their wcet, once their job is done: the time for which it had the
    /// processor without executing, by its thread's own clock, may lie in any of them.
    pub(crate) fn judge_segments(&mut self, task: usize, cpu: usize, job: &Job, executed: u64) {
        let gap = job.executed.saturating_sub(job.interrupted).saturating_sub(executed);
        for excess in &job.excesses {
            let over = excess.executed - excess.wcet;
            let begin = excess.begin;
            let stolen = self.cpus[cpu].stolen(begin, excess.time);
            let slack = self.part_slack(cpu, (begin, excess.time), excess.switches);
            let explained =
                excess.interrupted.saturating_add(stolen).saturating_add(gap).saturating_add(slack);
            let disturbed = !self.model.simulated && over <= explained;
            let counted = if self.model.is_virtual { gap / GAP_PRECISION } else { 0 };
            let is_in_doubt = !self.model.simulated && over <= explained.saturating_add(counted);
            let class = match (disturbed, is_in_doubt) {
                (true, _) => Class::MachineDisturbed,
                (false, true) => Class::CannotTell,
                (false, false) => Class::ModelViolated,
            };
            let message = format!(
                "{} job {} had the processor for {} {}",
                self.model.tasks[task].name,
                job.number,
                Span::from_ns(excess.executed),
                self.part_of(excess)
            );
            let numbers = Some((excess.executed, excess.wcet));
            self.job_finding(class, Check::SegmentExecution, task, job.number, message, numbers);
            if class == Class::ModelViolated && !self.model.simulated {
                self.breach_segment(task, excess);
            }
        }
    }

    /// Remembers a segment's excess at the segment's end: it explains what waited for that, not only for the job.
    fn breach_segment(&mut self, task: usize, excess: &Excess) {
        let over = excess.executed - excess.wcet;
        let what = match excess.part {
            Part::Segment(_) => "segments beyond their wcet",
            Part::Section(_) => "sections beyond their length",
        };
        self.breach_of(task, (excess.begin, excess.time), over, what);
    }
}
