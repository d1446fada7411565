//! What is asked about late jobs, answered by the machines that schedule their stretches again.

use super::losses::Whole;
use super::plan::{Amount, Conditions, Ran};
use super::table::Ends;
use super::{Again, Broken, Kept};
use crate::result::Class;
use crate::state::job::State;
use crate::verifier::Verifier;
use horolog_sched::Driver;
use std::collections::HashMap;

impl Verifier {
    /// Answers what is asked about jobs that ended before `needed`, where the processor has had no job since.
    pub(crate) fn answer_before(&mut self, cpu: usize, needed: u64) {
        let Some(mut again) = self.again[cpu].take() else { return };
        while again.begins_anew {
            // As much at once as was whole.
            let behind = again.idle.partition_point(|(at, _)| *at < needed);
            let lost = again.lost.first().copied().unwrap_or(u64::MAX);
            let whole = again.idle.partition_point(|(at, _)| *at < lost).min(behind);
            let (place, is_whole) = match (whole, behind) {
                (0, 0) => break,
                (0, _) => (0, false),
                (whole, _) => (whole - 1, true),
            };
            let (at, jobs) = again.idle[place];
            again.idle.drain(..=place);
            again.idle.iter_mut().for_each(|(_, kept)| *kept = kept.saturating_sub(jobs));
            let kept = again.kept.split(at, jobs.min(again.kept.jobs.len()));
            again.answered = at;
            if is_whole {
                self.answer(&again, (&again.fresh, again.answered), kept);
            } else {
                again.lost.retain(|lost| *lost > at);
                self.answer_by_amounts(kept.late);
            }
        }
        self.again[cpu] = Some(again);
    }

    /// Answers what is left, after the last record.
    pub(crate) fn answer_again(&mut self) {
        for cpu in 0..self.again.len() {
            self.answer_before(cpu, u64::MAX);
            for place in 0..self.cpus[cpu].tasks.len() {
                let task = self.cpus[cpu].tasks[place];
                let mut pending = std::mem::take(&mut self.tasks[task].pending);
                for job in &mut pending {
                    let last = self.limit_of(task, job.segment, job.points_missing);
                    // Had it been done, its end would be on record, unless it is done at the very end; then its policy has not acted.
                    let has_more = job.state != State::Running || job.demoted || job.cut_short;
                    let (segment, executed, before) = (job.segment, job.executed, job.executed_before);
                    let ran = Ran::of(task, job, executed, u64::MAX, last);
                    let ran = ran.goes_on(&self.model.tasks[task], (segment, executed - before), has_more);
                    // Under normal scheduling others run within it, and without the kernel's record that is not seen.
                    let is_known = !self.model.is_best_effort || self.cpus[cpu].kernel;
                    if is_known
                        && ran.is_beyond(self.model.tasks[task].wcet.saturating_add(self.model.execution))
                        && let Some(again) = &mut self.again[cpu]
                    {
                        again.note_broken(Broken { since: ran.started.min(self.now), task });
                    }
                    self.keep_ran(cpu, ran);
                }
                self.tasks[task].pending = pending;
            }
            let Some(mut again) = self.again[cpu].take() else { continue };
            if !again.begins_anew && !again.lost.is_empty() {
                let fresh = again.fresh.clone();
                let behind = again.go_on_from(fresh, u64::MAX);
                self.leave_open(behind);
            }
            for Whole { fresh, kept, from, .. } in std::mem::take(&mut again.before) {
                self.answer(&again, (&fresh, from), kept);
            }
            let jobs = again.kept.jobs.len();
            let kept = again.kept.split(u64::MAX, jobs);
            if kept.late.is_empty() {
                continue;
            }
            if again.lost.is_empty() {
                self.answer(&again, (&again.fresh, again.answered), kept);
            } else {
                self.answer_by_amounts(kept.late);
            }
        }
    }

    /// `fresh` is the machine as it was at the beginning, at `from`.
    fn answer(&mut self, again: &Again, (fresh, from): (&Driver, u64), mut kept: Kept) {
        if kept.late.is_empty() {
            return;
        }
        // Where a job with a budget goes through its segments in a way that is not on record, what its policy does is not known.
        let is_known = |ran: &Ran| {
            let task = &self.model.tasks[ran.task as usize];
            !(task.thread.is_background || task.acts && ran.has_hidden_points())
        };
        if !kept.jobs.iter().all(is_known) {
            return self.answer_by_amounts(kept.late);
        }
        // Whatever has not ended by then does not end.
        let until = self.now.saturating_mul(2).saturating_add(1_000_000_000);
        let stolen = kept.stolen_of_each();
        let cpu = kept.late[0].candidate.cpu;
        let has_drivers = self.drivers.has_any();
        let is_declared = has_drivers && !self.model.simulated && !kept.withdrawn.is_empty();
        let has_interval =
            !stolen.is_empty() || is_declared || kept.jobs.iter().any(|ran| ran.is_skipped || ran.holds());
        let machine = |is_cut: bool, amount: Amount| {
            let conditions = Conditions { is_cut, amount };
            let withdrawn = self.withdrawn_under(cpu, &kept, conditions);
            again.ends((fresh, &kept), &self.model, (&stolen, &withdrawn), conditions, until)
        };
        let least = |is_cut: bool, most: &Option<Vec<u64>>| {
            if has_interval { machine(is_cut, Amount::Least) } else { most.clone() }
        };
        let is_free = self.model.is_free_of_costs(cpu);
        // What was left out would have been executed without what left it out, and was not.
        let leaves_out = kept.jobs.iter().any(|ran| ran.is_skipped);
        let is_disturbed = !(kept.withdrawn.is_empty() && self.model.simulated && is_free) || leaves_out;
        let both = machine(true, Amount::Most);
        let out = machine(false, Amount::Most);
        let (both_least, out_least) = (least(true, &both), least(false, &out));
        let (cut, as_it_was) = if is_disturbed {
            (machine(true, Amount::Had), machine(false, Amount::Had))
        } else {
            (both.clone(), out.clone())
        };
        let all = Ends { as_it_was, cut, out: [out_least, out], both: [both_least, both] };
        let asked = kept.late.iter().map(|late| (late.candidate.task as u32, late.candidate.job));
        let mut places: HashMap<(u32, u64), Option<usize>> = asked.map(|key| (key, None)).collect();
        for (place, ran) in kept.jobs.iter().enumerate() {
            if let Some(found) = places.get_mut(&(ran.task, ran.number)) {
                *found = Some(place);
            }
        }
        kept.broken.sort_by_key(|broken| broken.since);
        let mut late = std::mem::take(&mut kept.late);
        late.sort_by_key(|late| late.candidate.to);
        let (mut next, mut culprits) = (0, Vec::new());
        for mut late in late {
            while let Some(broken) = kept.broken.get(next).filter(|broken| broken.since < late.candidate.to) {
                next += 1;
                // The last one to break it comes last.
                culprits.retain(|&task| task != broken.task);
                culprits.push(broken.task);
            }
            let key = (late.candidate.task as u32, late.candidate.job);
            let place = places.get(&key).copied().flatten();
            let class = match place {
                Some(place) => {
                    let is_beyond = kept.beyond.first().is_some_and(|(from, _)| *from < late.candidate.to);
                    let is_broken = late.is_broken || is_beyond || !culprits.is_empty();
                    let is_known = kept.knows_all(late.candidate.from, late.candidate.to);
                    let (ran, times) = (&kept.jobs[place], all.of(place));
                    let (class, helps) = self.class_by_machines(&late, ran, times, (is_broken, is_known));
                    late.helps = helps;
                    // What budgets were at the beginning may come from what was broken before that.
                    let remembers =
                        from > 0 && !again.begins_anew && self.report.count(Class::ModelViolated) > 0;
                    if class == Class::BoundViolated && remembers { Class::CannotTell } else { class }
                }
                None => late.by_amounts,
            };
            self.tell_late(late, class, &culprits);
        }
    }
}
