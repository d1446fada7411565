//! After a loss: jobs are unknown until the processor is idle, budgets until each server says by its rule what it has. Then the
//! machine is believed again (decision 0007).
//!
//! 1. *Jobs are unknown*, and nothing is told.
//! 2. The processor has no job. Where priorities or deadlines alone decide, the machine begins anew and is believed. Else it *follows*:
//!    what happens is told, nothing is compared, and every budget is in doubt until its rule or a record says what is left.
//! 3. The processor has no job once more (or still), and every budget is known.

use super::{Counted, Decisions, HERE};
use crate::verifier::Verifier;
use horolog_model::{CpuId, Preemption, SegmentGraph, System, Task};
use horolog_sched::{Doubt, Driver};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

/// What is not known of a processor, and since when.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    /// Since when nothing is judged.
    pub(super) since: Option<u64>,
    /// Whether jobs are known and the machine is told what happens.
    pub(super) follows: bool,
    /// Up to when the machine was told what was executed.
    told_until: u64,
    /// By how much a budget may be overdrawn at the most.
    pub(super) overdraw: u64,
    /// A driver to which nothing was told; `None`: what is lost is not taken up again.
    fresh: Option<Box<Driver>>,
}

impl Lost {
    pub(super) fn new(fresh: Option<&Driver>, since: Option<u64>, (system, cpu): (&System, CpuId)) -> Lost {
        Lost {
            since,
            follows: false,
            told_until: 0,
            overdraw: system.tasks_on(cpu).map(|(_, task)| longest_in_debt(task)).max().unwrap_or(0),
            fresh: fresh.map(|fresh| Box::new(fresh.clone())),
        }
    }

    /// Whether jobs are unknown.
    pub(super) fn is_blind(&self) -> bool {
        self.since.is_some() && !self.follows
    }
}

/// How long a job may go on without budget.
fn longest_in_debt(task: &Task) -> u64 {
    let stretch = match &task.preemption {
        Preemption::Preemptive if task.sections.is_empty() => Span::ZERO,
        Preemption::Deferred(segments) if task.sections.is_empty() => longest(segments),
        _ => task.wcet,
    };
    stretch.as_ns()
}

fn longest(segments: &SegmentGraph) -> Span {
    segments.segments.iter().map(|segment| segment.wcet).max().unwrap_or(Span::ZERO)
}

impl Decisions {
    /// Nothing is known from `now` on, and of the instant that was collected some records may be missing.
    pub(crate) fn lose(&mut self, now: u64) {
        self.group.clear();
        let last = if self.is_open { self.group_at } else { self.recorded.last };
        self.is_open = false;
        if self.lost.fresh.is_none() {
            self.ended = Some("a loss or an overrun policy made what followed unknown");
        } else if !self.is_flat() && !self.lost.is_blind() {
            let Self { driver, recorded, .. } = self;
            driver.report(&mut super::Told::between(recorded, driver.running(HERE)), HERE, last);
            self.lost.told_until = last;
        }
        let since = self.stretches.since().unwrap_or(now).min(self.lost.since.unwrap_or(now));
        self.lost.since = Some(since);
        self.lost.follows = false;
        self.stretches.forget(now);
    }

    /// What interrupts and other threads took since the last record is lost: the job that had the processor by its own records
    /// executed at most that long. Where a budget is in doubt by that, the machine follows until it is known.
    pub(super) fn doubt_amounts(&mut self, now: u64) {
        let from = self.recorded.last;
        if self.is_flat() || self.puts.is_some() || self.is_exact() || self.lost.is_blind() {
            return;
        }
        self.recorded.last = now;
        let more = Span::from_ns(now.saturating_sub(from));
        let doubt = Doubt { more, overdraw: Span::from_ns(self.lost.overdraw) };
        if self.driver.doubt(HERE, now, doubt) && !self.lost.follows {
            self.lost.since = Some(from);
            self.stretches.forget(now);
            self.lost.follows = self.lost.fresh.is_some();
            self.servers.iter_mut().for_each(Counted::begin_anew);
            self.ended = (!self.lost.follows).then_some("a loss made its budgets unknown");
        }
    }

    /// The processor is idle at `now` and has no job: jobs are known from now on. Where nothing else has to be known, returns for how
    /// long nothing was decided.
    fn begin_anew(&mut self, now: u64, system: &System) -> Option<u64> {
        let fresh = self.lost.fresh.as_ref()?;
        self.recorded.actual = None;
        (self.recorded.depth, self.recorded.last) = (0, now);
        if self.is_flat() {
            self.driver = (**fresh).clone();
            if self.mode > 0 {
                self.change_mode(&[], self.mode, now, system);
            }
            return Some(self.believe(now));
        }
        let more = Span::from_ns(now.saturating_sub(self.lost.told_until));
        let doubt = Doubt { more, overdraw: Span::from_ns(self.lost.overdraw) };
        if !self.driver.begin_anew(fresh, now, doubt) {
            self.ended = Some("a loss made unknown what its servers know of the past");
            return None;
        }
        (self.lost.follows, self.lost.told_until) = (true, now);
        self.servers.iter_mut().for_each(Counted::begin_anew);
        let Self { driver, recorded, .. } = self;
        driver.settle(&mut super::Told::between(recorded, None), HERE, now);
        self.believe_if_known(now, system)
    }

    /// The processor has no job at `now`: whether all is known; if so, for how long it was not.
    fn believe_if_known(&mut self, now: u64, system: &System) -> Option<u64> {
        let left = system.tasks_on(CpuId(self.cpu)).any(|(id, _)| self.driver.machine().jobs(id) > 0);
        if left {
            // The machine was told of another job than the trace: what it knows is of no use.
            self.lose(now);
            return self.begin_anew(now, system);
        }
        self.driver.is_known(HERE, now).then(|| self.believe(now))
    }

    fn believe(&mut self, now: u64) -> u64 {
        self.lost.follows = false;
        self.servers.iter_mut().for_each(Counted::begin_anew);
        now.saturating_sub(self.lost.since.take().unwrap_or(now))
    }

    /// The machine as it is at `now`, with its processor.
    fn believed(&self, now: u64) -> Driver {
        let (mut driver, mut recorded) = (self.driver.clone(), self.recorded.clone());
        driver.give_back(&mut super::Told::between(&mut recorded, None), HERE, now);
        driver
    }

    /// What the records of an instant say of budgets in doubt, after everything else of the instant.
    pub(super) fn learn(&mut self, group: &[Record], now: u64) {
        for counted in &self.servers {
            let server = u64::from(counted.id.0);
            let of = |kind| group.iter().rev().find(move |one| one.kind == kind && one.value == server);
            let left = match (of(Kind::BudgetReplenished), of(Kind::BudgetExhausted)) {
                (_, Some(_)) if counted.puts_off => continue,
                (Some(back), _) => back.extra,
                (None, Some(_)) => 0,
                (None, None) => continue,
            };
            self.driver.learn(counted.id, left, now);
        }
        if self.driver.is_due(HERE) {
            // For how long whoever runs may run is another question now.
            let Self { driver, recorded, .. } = &mut *self;
            driver.settle(&mut super::Told::between(recorded, None), HERE, now);
            self.say_who_took_it(now);
        }
        self.driver.spread_doubt(HERE, now, self.lost.overdraw);
    }
}

impl Counted {
    /// Its records before are lost, or not compared.
    fn begin_anew(&mut self) {
        (self.is_anew, self.was_anew) = ([true; 2], [true; 2]);
        self.charged_before = None;
    }
}

impl Verifier {
    fn has_no_job(&self, place: usize) -> bool {
        self.cpus[place].tasks.iter().all(|&task| self.tasks[task].pending.is_empty())
    }

    /// Where the machine of a processor with budgets is believed again, jobs can be scheduled again from here on.
    fn go_on(&mut self, decisions: &Decisions, not_judged: Option<u64>, now: u64) {
        let is_tree_of_a_run = decisions.puts.is_some();
        if not_judged.is_some() && !decisions.is_flat() && !is_tree_of_a_run {
            self.go_on_behind_a_loss(decisions.place, || decisions.believed(now), now);
        }
    }

    /// The last instant is over, and jobs were unknown at it.
    pub(super) fn look_for_idling(&mut self, decisions: &mut Decisions, now: u64) {
        decisions.is_open = false;
        if !self.may_have_unknown_jobs(decisions.place) && self.has_no_job(decisions.place) {
            let span = decisions.begin_anew(now, &self.companion);
            self.go_on(decisions, span, now);
            self.compared[decisions.place].count_not_judged(span.unwrap_or(0));
        }
    }

    /// The last instant was told, and budgets were in doubt.
    pub(super) fn look_at_budgets(&mut self, decisions: &mut Decisions, now: u64) {
        if self.has_no_job(decisions.place) {
            let span = decisions.believe_if_known(now, &self.companion);
            self.go_on(decisions, span, now);
            self.compared[decisions.place].count_not_judged(span.unwrap_or(0));
        }
    }
}
