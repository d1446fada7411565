//! What a job did, step by step, and what it would have done by the model or without what disturbed it.

use crate::state::job::Job;
use crate::state::marks::{Limit, Mark, What};
use crate::state::model::{Model, TaskModel};
use crate::verifier::again::world::{Planned, Step};
use horolog_sched::ANY_SEGMENT;

/// A job that has ended, or what it had executed when the trace ended, or an arrival that was skipped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ran {
    pub(crate) task: u32,
    pub(crate) number: u64,
    pub(crate) arrival: u64,
    pub(crate) legal_arrival: u64,
    pub(crate) ready: u64,
    /// When it started; `u64::MAX`: it did not.
    pub(crate) started: u64,
    /// When it ended; `u64::MAX`: it had not.
    pub(crate) end: u64,
    /// By its thread's clock, and by who had the processor, without interrupts.
    pub(crate) executed: u64,
    pub(crate) had: u64,
    /// What it would have executed after that at most: nothing where it has ended.
    pub(crate) rest: u64,
    /// Whether another one kept the processor from it: the machine did not serve it late.
    pub(crate) is_kept_waiting: bool,
    /// When it last got the processor by its own records, and what it had executed then.
    pub(crate) runs_from: (u64, u64),
    pub(crate) marks: Vec<Mark>,
    /// Of the stretch behind the last mark.
    pub(crate) last: Limit,
    pub(crate) is_skipped: bool,
}

/// Whether a job is planned as it was or as the model has it, and what it executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conditions {
    pub(crate) is_cut: bool,
    pub(crate) amount: Amount,
}

impl Conditions {
    /// Whether what disturbs is taken out.
    pub(crate) fn is_out(self) -> bool {
        self.amount != Amount::Had
    }
}

/// What a job executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Amount {
    /// What it had the processor for, whatever took that: disturbances are told beside.
    Had,
    /// By its thread's clock, without interrupts.
    Most,
    /// The same without the stolen time that may be in it.
    Least,
}

impl Ran {
    /// A job that has ended at `end` and executed so much, or one that has not.
    pub(crate) fn of(task: usize, job: &mut Job, executed: u64, end: u64, last: Limit) -> Ran {
        let had = job.executed.saturating_sub(job.interrupted);
        Ran {
            task: task as u32,
            number: job.number,
            arrival: job.arrival,
            legal_arrival: job.legal_arrival,
            ready: job.first_ready,
            started: job.started.unwrap_or(u64::MAX),
            end,
            executed,
            had,
            rest: 0,
            is_kept_waiting: job.is_kept_waiting,
            runs_from: (job.runs_from, job.executed_from),
            marks: std::mem::take(&mut job.marks),
            last,
            is_skipped: false,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end < u64::MAX
    }

    /// It would have gone on, `executed` being what it has executed of this segment. Where it `has_more` to do it executes at least one unit more. How
    /// much, and the way that it takes through its segments, are the model's longest.
    pub(crate) fn goes_on(
        mut self,
        task: &TaskModel,
        (segment, executed): (usize, u64),
        has_more: bool,
    ) -> Ran {
        let least = u64::from(has_more);
        let way = if self.last.has_points { Vec::new() } else { task.longest_way(segment) };
        let Some((&first, others)) = way.split_first() else {
            self.rest = task.wcet.saturating_sub(self.executed).max(least);
            return self;
        };
        let wcet = |segment: usize| task.wcet_of(segment).unwrap_or(0);
        self.rest = wcet(first).saturating_sub(executed).max(least);
        self.last = Limit { most: wcet(first), has_points: false };
        for &next in others {
            let segment = if task.acts { u32::try_from(next).unwrap_or(ANY_SEGMENT) } else { ANY_SEGMENT };
            let what = What::Point { limit: self.last, next: segment };
            self.marks.push(Mark { at: self.had.saturating_add(self.rest), what });
            self.rest = self.rest.saturating_add(wcet(next));
            self.last.most = wcet(next);
        }
        self
    }

    /// Whether it has executed more than this, or would have.
    pub(crate) fn is_beyond(&self, most: u64) -> bool {
        self.executed.saturating_add(self.rest) > most
    }

    /// What it executes, `stolen` being what of its time may have been stolen.
    fn amount(&self, conditions: Conditions, model: &Model, stolen: u64) -> u64 {
        let wcet = model.tasks[self.task as usize].wcet;
        if self.is_skipped {
            return if conditions.amount == Amount::Least { 0 } else { self.rest };
        }
        // The thread's clock may hold interrupts, and who had the processor does not.
        let executed = if model.simulated { self.executed } else { self.executed.min(self.had) };
        let whole = executed.saturating_add(self.rest);
        let is_longer = whole > wcet.saturating_add(model.execution);
        let excess = if is_longer { whole - wcet } else { 0 };
        let had = self.had.saturating_add(self.rest);
        let amount = match conditions.amount {
            Amount::Had => return if conditions.is_cut { had.saturating_sub(excess) } else { had },
            Amount::Most if is_longer => whole,
            Amount::Most => whole.min(wcet),
            Amount::Least => whole.saturating_sub(stolen),
        };
        if conditions.is_cut { amount.min(wcet) } else { amount }
    }

    /// What it does, step by step.
    pub(crate) fn plan(&self, place: usize, conditions: Conditions, model: &Model, stolen: u64) -> Planned {
        let task = &model.tasks[self.task as usize];
        let is_cut = conditions.is_cut;
        let is_out = conditions.is_out();
        let arrival = if is_cut { self.legal_arrival } else { self.arrival };
        // Who notices a release late is the model's fault in a simulation and the machine's else.
        // When the thread of a driver is told of an event is its interrupt's doing.
        let is_capped = !task.thread.is_driver && if model.simulated { is_cut } else { is_out };
        let latest = arrival.saturating_add(model.allowed_lateness(self.task as usize, arrival));
        // Who was served a little later than he was ready could not be served before.
        let is_served_late = !is_out
            && !model.simulated
            && !self.is_kept_waiting
            && self.started.saturating_sub(self.ready) <= model.late_service();
        let ready = if is_served_late { self.started.max(self.ready) } else { self.ready };
        let ready = if is_capped { ready.min(latest).max(arrival) } else { ready };
        let amount = self.amount(conditions, model, stolen);
        let (first, then) = self.steps(amount, conditions);
        Planned {
            place,
            task: self.task,
            number: self.number,
            ready: if is_cut { ready.max(arrival) } else { ready },
            deadline: task.deadline.map_or(u64::MAX, |one| arrival.saturating_add(one)),
            first,
            then,
            is_skipped: self.is_skipped && conditions.amount == Amount::Had && !is_cut,
        }
    }

    /// It kept the processor against the policy after it had executed `known`, until it had executed `end`; it may have begun when it
    /// got it.
    pub(crate) fn keep_processor(&mut self, known: u64, end: u64) {
        hold(&mut self.marks, self.runs_from.1, known, end);
    }

    /// Whether it passed a preemption point that is not on record: how it went through its segments is not known then.
    pub(crate) fn has_hidden_points(&self) -> bool {
        let is_hidden = |mark: &Mark| matches!(mark.what, What::Point { limit, .. } if limit.has_points);
        self.last.has_points || self.marks.iter().any(is_hidden)
    }

    /// Whether it is not known where it began to keep the processor.
    pub(crate) fn holds(&self) -> bool {
        self.marks.iter().any(|mark| matches!(mark.what, What::Hold(_)))
    }

    /// What it executes first, and then after each step.
    fn steps(&self, amount: u64, conditions: Conditions) -> (u64, Vec<(Step, u64)>) {
        let is_cut = conditions.is_cut;
        if self.marks.is_empty() && (!is_cut || amount <= self.last.most) {
            return (amount, Vec::new());
        }
        let mut steps =
            Steps { conditions, all: Vec::new(), removed: 0, kept: 0, since: 0, held: Vec::new() };
        let mut rest = self.marks.as_slice();
        loop {
            let is_point = |mark: &Mark| matches!(mark.what, What::Point { .. });
            let here = rest.iter().position(is_point);
            let (within, point) = rest.split_at(here.unwrap_or(rest.len()));
            let (end, limit, next) = match point.first() {
                Some(&Mark { at, what: What::Point { limit, next } }) => (at, limit, next),
                _ => (self.had.saturating_add(self.rest).max(amount), self.last, ANY_SEGMENT),
            };
            within.iter().for_each(|&mark| steps.take(mark, limit));
            steps.close(end, limit);
            let Some((_, behind)) = point.split_first() else { break };
            steps.all.push((steps.since, Step::Point(next)));
            rest = behind;
        }
        let whole = self.had.saturating_add(self.rest).max(amount).saturating_sub(steps.removed);
        let amount = if steps.removed > 0 { amount.min(whole) } else { amount };
        let amount = amount.saturating_add(steps.kept);
        steps.in_order(amount)
    }
}

/// Puts the stretch between the other marks. Where the job got the processor it may have lost it before, so it keeps it from behind that place on.
pub(crate) fn hold(marks: &mut Vec<Mark>, from: u64, known: u64, end: u64) {
    let mut add = |at: u64, what: What| {
        let place = marks.partition_point(|mark| mark.at <= at);
        marks.insert(place, Mark { at, what });
    };
    add(from.saturating_add(1).min(known), What::Hold(known));
    add(end.max(known), What::Free);
}

/// The steps of a job, as they are gathered.
struct Steps {
    conditions: Conditions,
    /// After how much.
    all: Vec<(u64, Step)>,
    /// What was cut out before, and where the present stretch began, without that.
    removed: u64,
    since: u64,
    /// For how long it kept the processor without executing.
    kept: u64,
    /// What it holds, and since when.
    held: Vec<(u32, u64)>,
}

impl Steps {
    /// How far it is at a place of its execution, in a stretch of this limit.
    fn place(&self, at: u64, limit: Limit) -> u64 {
        let place = at.saturating_sub(self.removed).saturating_add(self.kept);
        let is_cut_off = self.conditions.is_cut && !limit.has_points;
        if is_cut_off { place.min(self.since.saturating_add(limit.most)) } else { place }
    }

    fn take(&mut self, Mark { at, what }: Mark, limit: Limit) {
        let Conditions { is_cut, amount } = self.conditions;
        let at = match what {
            What::Hold(known) if amount == Amount::Least => known,
            _ => at,
        };
        let at = self.place(at, limit);
        match what {
            What::Lock(resource) => {
                self.held.push((resource, at));
                self.all.push((at, Step::Lock(resource)));
            }
            What::Unlock { resource, most } => {
                let held = self.held.iter().rposition(|(other, _)| *other == resource);
                let Some((_, since)) = held.map(|place| self.held.remove(place)) else { return };
                let until = since.saturating_add(most);
                if is_cut && until < at {
                    // What ends at a place ends before anything begins there.
                    let place = self.all.iter().position(|(other, _)| *other >= until);
                    let place = place.unwrap_or(self.all.len());
                    self.all.insert(place, (until, Step::Unlock(resource)));
                } else {
                    self.all.push((at, Step::Unlock(resource)));
                }
            }
            What::Sleep(length) if !is_cut => self.all.push((at, Step::Sleep(length))),
            What::Stop(length) if !self.conditions.is_out() => self.all.push((at, Step::Sleep(length))),
            What::Keep(length) if !is_cut => self.kept = self.kept.saturating_add(length),
            What::Hold(_) if !is_cut => self.all.push((at, Step::Hold)),
            What::Free if !is_cut => self.all.push((at, Step::Free)),
            What::Point { .. }
            | What::Sleep(_)
            | What::Keep(_)
            | What::Stop(_)
            | What::Hold(_)
            | What::Free => {}
        }
    }

    /// The present stretch ends: what of it is too long is cut off, or divided by the points that were passed.
    fn close(&mut self, end: u64, limit: Limit) {
        let place = end.saturating_sub(self.removed).saturating_add(self.kept);
        if !self.conditions.is_cut || place <= self.since.saturating_add(limit.most) {
            self.since = place;
        } else if limit.has_points {
            while limit.most > 0 && self.since.saturating_add(limit.most) < place {
                self.since += limit.most;
                self.all.push((self.since, Step::Point(ANY_SEGMENT)));
            }
            self.since = place;
        } else {
            self.since = self.since.saturating_add(limit.most);
            self.removed += place - self.since;
        }
    }

    /// In the order of execution, which ends after `amount`.
    fn in_order(mut self, amount: u64) -> (u64, Vec<(Step, u64)>) {
        // Who ends holds nothing any more, the innermost first.
        let open = self.held.into_iter().rev();
        self.all.extend(open.map(|(resource, _)| (u64::MAX, Step::Unlock(resource))));
        self.all.sort_by_key(|(at, _)| *at);
        // Nobody gives way at his end.
        self.all.retain(|(at, step)| *at < amount || !matches!(step, Step::Point(_)));
        let at = |place: usize| self.all.get(place).map_or(amount, |(at, _)| (*at).min(amount));
        let then = self.all.iter().enumerate().map(|(place, (_, step))| (*step, at(place + 1) - at(place)));
        (at(0), then.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::marks::NO_LIMIT;

    fn ran(had: u64, marks: &[(u64, What)], last: Limit) -> Ran {
        let marks = marks.iter().map(|&(at, what)| Mark { at, what }).collect();
        let (executed, end) = (had, 1_000);
        Ran {
            task: 0,
            number: 0,
            arrival: 0,
            legal_arrival: 0,
            ready: 0,
            started: 0,
            end,
            executed,
            had,
            rest: 0,
            is_kept_waiting: false,
            runs_from: (0, 0),
            marks,
            last,
            is_skipped: false,
        }
    }

    fn conditions(is_cut: bool, is_out: bool) -> Conditions {
        Conditions { is_cut, amount: if is_out { Amount::Most } else { Amount::Had } }
    }

    fn cut(is_out: bool) -> Conditions {
        conditions(true, is_out)
    }

    fn whole(is_out: bool) -> Conditions {
        conditions(false, is_out)
    }

    const fn most(most: u64) -> Limit {
        Limit { most, has_points: false }
    }

    #[test]
    fn a_segment_is_cut_and_a_missing_point_is_put_in() {
        let two = ran(500, &[(250, What::Point { limit: most(200), next: ANY_SEGMENT })], most(300));
        assert_eq!(two.steps(500, whole(true)), (250, vec![(Step::Point(ANY_SEGMENT), 250)]));
        assert_eq!(two.steps(500, cut(true)), (200, vec![(Step::Point(ANY_SEGMENT), 250)]));
        assert_eq!(two.steps(400, cut(true)), (200, vec![(Step::Point(ANY_SEGMENT), 200)]));
        let missing = ran(500, &[], Limit { most: 200, has_points: true });
        assert_eq!(missing.steps(500, whole(true)), (500, vec![]));
        assert_eq!(
            missing.steps(500, cut(true)),
            (200, vec![(Step::Point(ANY_SEGMENT), 200), (Step::Point(ANY_SEGMENT), 100)])
        );
        // Nothing is left behind a point.
        assert_eq!(missing.steps(400, cut(true)), (200, vec![(Step::Point(ANY_SEGMENT), 200)]));
        assert_eq!(ran(400, &[], Limit { most: 200, has_points: true }).steps(200, cut(true)), (200, vec![]));
    }

    #[test]
    fn a_section_is_shortened_and_its_execution_stays() {
        let marks = [(10, What::Lock(1)), (20, What::Lock(0)), (80, What::Unlock { resource: 0, most: 5 })];
        let held = ran(100, &marks, NO_LIMIT);
        let (inner, outer) = (Step::Lock(0), Step::Lock(1));
        let end = (Step::Unlock(1), 0);
        let as_it_was = vec![(outer, 10), (inner, 60), (Step::Unlock(0), 20), end];
        assert_eq!(held.steps(100, whole(false)), (10, as_it_was));
        assert_eq!(
            held.steps(100, cut(false)),
            (10, vec![(outer, 10), (inner, 5), (Step::Unlock(0), 75), end])
        );
        // Of a shorter job what lies behind its end stands there.
        assert_eq!(held.steps(15, cut(false)), (10, vec![(outer, 5), (inner, 0), (Step::Unlock(0), 0), end]));
    }

    #[test]
    fn a_sleep_is_the_models_and_a_stop_the_machines() {
        let marks = [(10, What::Sleep(7)), (20, What::Stop(9))];
        let job = ran(30, &marks, NO_LIMIT);
        let steps = |is_cut, is_out| job.steps(30, conditions(is_cut, is_out)).1;
        assert_eq!(steps(false, false), [(Step::Sleep(7), 10), (Step::Sleep(9), 10)]);
        assert_eq!(steps(true, false), [(Step::Sleep(9), 10)]);
        assert_eq!(steps(false, true), [(Step::Sleep(7), 20)]);
        assert_eq!(steps(true, true), []);
    }

    #[test]
    fn a_sleep_that_leaves_the_processor_to_nobody_is_as_long_an_execution() {
        let marks = [(10, What::Keep(7)), (20, What::Lock(0)), (25, What::Unlock { resource: 0, most: 5 })];
        let job = ran(30, &marks, NO_LIMIT);
        let (lock, unlock) = (Step::Lock(0), Step::Unlock(0));
        assert_eq!(job.steps(30, whole(true)), (27, vec![(lock, 5), (unlock, 5)]));
        assert_eq!(job.steps(30, cut(true)), (20, vec![(lock, 5), (unlock, 5)]));
    }

    /// It kept the processor from 20 on, and got it at 5: it may have begun then.
    #[test]
    fn a_stretch_that_it_may_not_keep_the_processor_for_is_as_long_as_it_may_be() {
        let marks = [(10, What::Lock(0)), (25, What::Unlock { resource: 0, most: 50 })];
        let mut job = ran(40, &marks, NO_LIMIT);
        job.runs_from = (0, 5);
        job.keep_processor(20, 30);
        assert!(job.holds());
        let (lock, unlock) = (Step::Lock(0), Step::Unlock(0));
        let longest = vec![(Step::Hold, 4), (lock, 15), (unlock, 5), (Step::Free, 10)];
        assert_eq!(job.steps(40, whole(false)), (6, longest));
        let least = Conditions { is_cut: false, amount: Amount::Least };
        let shortest = vec![(lock, 10), (Step::Hold, 5), (unlock, 5), (Step::Free, 10)];
        assert_eq!(job.steps(40, least), (10, shortest));
        assert_eq!(job.steps(40, cut(false)), (10, vec![(lock, 15), (unlock, 15)]));
    }
}
