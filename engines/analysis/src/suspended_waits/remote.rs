//! Sections that execute on the processor of their resource (decision 0026): what a job waits for there under the distributed priority ceiling protocol.
//!
//! On such a processor m sections are preempted by those whose requests are above the ceiling of what they hold. With c' the length of a section and two
//! switches, S_km what all sections of a job of k take on m, n_im how many i has there. `x` is the next integer where i ends with such a section: it is done once its own
//! processor has chosen it again, and what is released there in that instant goes first.
//!
//! ```text
//! below    = max c' of less important tasks on m, of resources with a ceiling at or above i
//! w        = least w with  w = L_m( max c of i on m + below + sum over other tasks k at or above i of N_k(w) S_km )
//! W_im     = min { n_im, sum over less important k of N_k(x) n_k } below
//!          + sum over other tasks k at or above i of  min { n_im N_k(w), N_k(x) } S_km
//!          + n_im (w - what of w is in the parentheses)
//! ```

use super::{Add, Gap, Waits, boosts};
use crate::cpu_model::{CpuTask, Held};
use crate::error::AnalysisError;
use crate::explanation::TermKind;
use crate::spin_locks::Delays;
use horolog_model::{CpuId, System};
use std::collections::BTreeSet;

/// The processors that execute sections alone.
pub(super) fn agents(system: &System) -> Result<Vec<(CpuId, Delays)>, AnalysisError> {
    let cpus: BTreeSet<CpuId> = system.resources().iter().filter_map(|resource| resource.cpu).collect();
    cpus.into_iter().map(|cpu| Ok((cpu, Delays::of(system, cpu)?))).collect()
}

/// The sections of a job that execute on the processors of their resources.
fn sections_of<'t>(system: &'t System, task: &'t CpuTask) -> impl Iterator<Item = &'t Held> {
    task.sections.iter().filter(|held| {
        let resource = &system.resources()[held.resource];
        resource.cpu.is_some() && boosts(system, &resource.name)
    })
}

/// How much a job executes there, ns.
pub(super) fn executed_elsewhere(system: &System, task: &CpuTask) -> u64 {
    // They lie within the job, one behind the other.
    let sum = sections_of(system, task).fold(0_u64, |sum, held| sum.saturating_add(held.length));
    sum.min(task.bare_wcet)
}

/// Whether nothing of a job is left behind its last such section, so that it only has to be chosen once more.
pub(super) fn ends_elsewhere(system: &System, task: &CpuTask) -> bool {
    sections_of(system, task).any(|held| held.from.saturating_add(held.length) >= task.bare_wcet)
}

/// The sections of a job on one processor.
#[derive(Clone, Copy, Default)]
struct Sections {
    count: u64,
    /// All together, and the longest, each with the switches to it and away, ns.
    sum: u64,
    longest: u64,
    /// The resource of the first one.
    resource: Option<usize>,
}

impl Waits<'_> {
    /// What a job of a task waits for and executes on the processors of its resources within `x`, beside its own sections.
    pub(super) fn sections_elsewhere(
        &self,
        number: usize,
        x: u64,
        effort: &mut u64,
        add: Add<'_>,
    ) -> Result<(), Gap> {
        let own = self.members[number].priority.number();
        for place in 0..self.agents.len() {
            let mine = self.sections_on(place, number, i64::MIN);
            if mine.count == 0 {
                continue;
            }
            // Of less important tasks one section has begun that this job's cannot preempt.
            let (mut below, mut of_below) = ((0_u64, None), 0_u64);
            for other in (0..self.members.len()).filter(|&it| self.members[it].priority.number() < own) {
                *effort = effort.checked_sub(1).ok_or(Gap::Effort)?;
                let theirs = self.sections_on(place, other, own);
                of_below = of_below.saturating_add(self.sections_within(other, x, theirs.count));
                if theirs.longest > below.0 {
                    below = (theirs.longest, Some(other));
                }
            }
            let (window, costs) = self.one_request(place, number, below.0, effort)?;
            add(TermKind::BlockingElsewhere, below.1, mine.resource, mine.count.min(of_below), below.0);
            for other in self.others_above(number) {
                *effort = effort.checked_sub(1).ok_or(Gap::Effort)?;
                let theirs = self.sections_on(place, other, i64::MIN);
                if theirs.count == 0 {
                    continue;
                }
                let response = self.members[other].bound.map_err(|_| Gap::RestsOn(other))?;
                let in_windows = self.jobs_within(other, window, response).saturating_mul(mine.count);
                let jobs = in_windows.min(self.jobs_within(other, x, response));
                add(TermKind::SectionsElsewhere, Some(other), mine.resource, jobs, theirs.sum);
            }
            add(TermKind::CostsElsewhere, None, mine.resource, mine.count, costs);
        }
        Ok(())
    }

    /// How long one request of a task takes on a processor at most, and how much of that are switches, interrupts and loads there.
    fn one_request(
        &self,
        place: usize,
        number: usize,
        below: u64,
        effort: &mut u64,
    ) -> Result<(u64, u64), Gap> {
        let member = &self.members[number];
        let here = member.requests.iter().filter(|request| request.agent == Some(place));
        let longest = here.map(|request| request.length).max().unwrap_or(0);
        let mut window = longest.saturating_add(below);
        loop {
            let mut work = longest.saturating_add(below);
            for other in self.others_above(number) {
                *effort = effort.checked_sub(1).ok_or(Gap::Effort)?;
                let theirs = self.sections_on(place, other, i64::MIN);
                if theirs.count > 0 {
                    let response = self.members[other].bound.map_err(|_| Gap::RestsOn(other))?;
                    let jobs = self.jobs_within(other, window, response);
                    work = work.saturating_add(jobs.saturating_mul(theirs.sum));
                }
            }
            let next = self.agents[place].1.longest(work).ok_or(Gap::Section)?;
            if next <= window {
                // What the file says of a section is its job's own work; the rest is what it costs.
                return Ok((window, next - work));
            }
            window = next;
            if window > member.separation {
                return Err(Gap::BeyondPeriod);
            }
        }
    }

    /// The other tasks that are as important as one, or more.
    fn others_above(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        let own = self.members[number].priority.number();
        let is_above = move |&other: &usize| other != number && self.members[other].priority.number() >= own;
        (0..self.members.len()).filter(is_above)
    }

    /// A task's sections on a processor whose resources have a ceiling at or above this priority.
    fn sections_on(&self, place: usize, number: usize, least: i64) -> Sections {
        let member = &self.members[number];
        let both = self.cpus[member.cpu].context_switch.saturating_mul(2);
        let reaches = |resource: usize| {
            // The most important user comes first.
            let first = self.users.get(&resource).and_then(|users| users.first());
            first.is_some_and(|&user| self.members[user].priority.number() >= least)
        };
        let here = member.requests.iter().filter(|it| it.agent == Some(place) && reaches(it.resource));
        here.fold(Sections::default(), |all, request| {
            let length = request.length.saturating_add(both);
            Sections {
                count: all.count + 1,
                sum: all.sum.saturating_add(length),
                longest: all.longest.max(length),
                resource: all.resource.or(Some(request.resource)),
            }
        })
    }
}
