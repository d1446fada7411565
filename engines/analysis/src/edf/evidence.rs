//! Evidence for EDF verdicts: proofs for the independent checker, and release patterns that run into a miss.
//!
//! A pattern has whole nanoseconds: a blocking job begins 1 ns before the critical instant. A tie that the written
//! order (earlier release, then lower task number) would decide for the job under study is avoided by letting it
//! arrive 1 ns later. A least upper bound above the deadline need not be reached that way; then there is no pattern.

use super::view::{bare_overload, set_of};
use super::{Budget, EdfResponse, EdfSet, EdfSolver, HorizonProof, NpTime, ResponseAnalysis, Unresolved};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::MissWitness;
use horolog_certificate::{EdfHorizonRule, EdfMissProof, EdfWindow, EdfWindowsProof, Proof, Proven};
use horolog_model::System;
use horolog_model::pattern::{ReleasePattern, TaskPattern, Witness};
use horolog_time::Span;

/// Events that a replay may take.
const MOST_EVENTS: u128 = 100_000_000;
/// Windows or iterates that a proof may list.
const MOST_LISTED: usize = 20_000;

/// Proofs about one processor, found once for all its tasks.
pub(crate) struct Prover<'a> {
    cpu: &'a CpuModel,
    set: EdfSet,
    windows: Option<EdfWindowsProof>,
    effort: u64,
}

impl<'a> Prover<'a> {
    /// Runs the set test with evidence.
    ///
    /// # Errors
    /// Where the processor cannot be analysed.
    pub(crate) fn new(cpu: &'a CpuModel, options: &Options) -> Result<Prover<'a>, AnalysisError> {
        let set = set_of(cpu)?;
        let mut solver = EdfSolver::new();
        let mut budget = Budget::terms(options.effort);
        let verdict = solver.check_with_evidence(&set, NpTime::Continuous, &mut budget);
        let windows = match solver.horizon() {
            Some(horizon) if verdict.is_schedulable() && solver.chain().len() <= MOST_LISTED => {
                let window = |&(window_ns, needed_ns): &(u64, u64)| EdfWindow { window_ns, needed_ns };
                let rule = match horizon.proof {
                    HorizonProof::LinearBound => EdfHorizonRule::LinearBound,
                    HorizonProof::BusyPeriod => EdfHorizonRule::BusyPeriod,
                    HorizonProof::Hyperperiod => EdfHorizonRule::Hyperperiod,
                };
                let windows = solver.chain().iter().map(window).collect();
                Some(EdfWindowsProof { horizon_ns: horizon.last, rule, windows })
            }
            _ => None,
        };
        Ok(Prover { cpu, set, windows, effort: options.effort })
    }

    /// The proof of one task's verdict; `None` where it would be too long, or no proof of its kind exists (a task
    /// that meets in a set that does not).
    pub(crate) fn proof(&self, index: usize, verdict: Proven) -> Option<Proof> {
        match verdict {
            Proven::Meets => self.windows.clone().map(Proof::EdfWindows),
            Proven::Misses if bare_overload(self.cpu) => {
                let counts = |t: &&crate::cpu_model::CpuTask| {
                    t.deadline.is_some() && matches!(t.arrival, ArrivalCurve::Periodic { .. })
                };
                let tasks = self.cpu.tasks.iter().filter(counts).map(|t| t.name.clone()).collect();
                Some(Proof::Overload { tasks })
            }
            Proven::Misses => self.miss(index).ok().flatten().map(Proof::EdfMiss),
        }
    }

    fn miss(&self, index: usize) -> Result<Option<EdfMissProof>, Unresolved> {
        let mut budget = Budget::terms(self.effort);
        let analysis = ResponseAnalysis::for_late_jobs(&self.set, NpTime::Continuous);
        let late = match analysis.first_late(index, &mut budget, |_| 0) {
            Err(Unresolved::LateRelease) => {
                let proof = EdfMissProof { deadline_at_ns: 0, blocker: None, iterates: Vec::new() };
                return Ok(alone(self.cpu, index).map(|_| proof));
            }
            late => late?,
        };
        let Some(late) = late else { return Ok(None) };
        let iterates = analysis.late_iterates(index, &late, &mut budget)?;
        let blocker = late.blocker.map(|blocker| self.cpu.tasks[blocker].name.clone());
        let proof = EdfMissProof { deadline_at_ns: late.deadline_at, blocker, iterates };
        Ok((1..=MOST_LISTED).contains(&proof.iterates.len()).then_some(proof))
    }
}

/// A run that makes the task at `index` miss, where one is known; `analysis` looks for late jobs in whole nanoseconds.
pub(crate) fn witness(
    system: &System,
    cpu: &CpuModel,
    analysis: &ResponseAnalysis,
    index: usize,
    options: &Options,
) -> Option<MissWitness> {
    if !cpu.keeps_exactness() || cpu.tasks.iter().any(|t| t.offset.is_some()) {
        return None;
    }
    let found = match late_in_whole_units(analysis, cpu, index, options) {
        Err(Unresolved::LateRelease) => Ok(alone(cpu, index)),
        found => found,
    };
    Some(match found {
        Ok(Some(late)) => pattern(system, cpu, index, &late)
            .map_or(MissWitness::TooFarToReplay, |pattern| MissWitness::Pattern { pattern }),
        Ok(None) => MissWitness::SupremumOnly,
        Err(_) => MissWitness::TooFarToReplay,
    })
}

/// A late job and how to have it.
struct Late {
    found: EdfResponse,
    /// Own jobs up to it.
    jobs: u64,
    /// How much later than in its worst case it arrives, to lose a tie.
    tie: u64,
    /// Whether other tasks take part.
    with_others: bool,
}

fn late_in_whole_units(
    analysis: &ResponseAnalysis,
    cpu: &CpuModel,
    index: usize,
    options: &Options,
) -> Result<Option<Late>, Unresolved> {
    let mut budget = Budget::terms(options.effort);
    let tie = |found: &EdfResponse| u64::from(wins_a_tie(analysis, cpu, index, found.deadline_at));
    let found = analysis.first_late(index, &mut budget, tie)?;
    Ok(found.map(|found| Late {
        jobs: analysis.jobs_due(index, found.deadline_at),
        tie: tie(&found),
        found,
        with_others: true,
    }))
}

/// Whether some other job with the same deadline would go behind the job under study.
fn wins_a_tie(analysis: &ResponseAnalysis, cpu: &CpuModel, index: usize, d: u64) -> bool {
    let released = |task: usize| d.saturating_sub(cpu.tasks[task].deadline.unwrap_or(d));
    (0..cpu.tasks.len()).any(|other| {
        let first = (released(other), other) < (released(index), index);
        other != index && !first && analysis.is_due_at(other, d)
    })
}

/// A job that its own jitter and wcet alone make late.
fn alone(cpu: &CpuModel, index: usize) -> Option<Late> {
    let task = &cpu.tasks[index];
    let response = task.arrival.jitter().checked_add(task.wcet)?;
    let found = EdfResponse { response, deadline_at: 0, blocking: 0, blocker: None };
    (response > task.deadline?).then_some(Late { found, jobs: 1, tie: 0, with_others: false })
}

/// The release pattern of a late job; `None` where the replay would take too many events or leave 64 bits.
fn pattern(system: &System, cpu: &CpuModel, index: usize, late: &Late) -> Option<ReleasePattern> {
    let task = &cpu.tasks[index];
    let ArrivalCurve::Periodic { separation, jitter } = task.arrival else { return None };
    let blocker = late.found.blocker.filter(|_| late.found.blocking > 0);
    let largest_jitter = cpu.tasks.iter().map(|t| t.arrival.jitter()).max().unwrap_or(0);
    // Late enough that nothing arrives before the origin.
    let critical = largest_jitter.checked_add(u64::from(blocker.is_some()))?;
    let arrival = match late.with_others {
        true => (critical + late.found.deadline_at + late.tie).checked_sub(task.deadline?)?,
        false => critical.checked_sub(jitter)?,
    };
    let first = arrival.checked_sub((late.jobs - 1).checked_mul(separation)?)?;
    let until = arrival.checked_add(late.found.response.max(task.deadline?))?.checked_add(2)?;
    let mut pattern = ReleasePattern::new(system.name(), Span::from_ns(until));
    let mut events = 0_u128;
    for (other, member) in cpu.tasks.iter().enumerate() {
        let jobs = match other {
            _ if other == index => {
                TaskPattern::late(&task.name, Span::from_ns(first), Span::from_ns(critical))
            }
            _ if Some(other) == blocker => TaskPattern::periodic(&member.name, Span::from_ns(critical - 1)),
            _ if !late.with_others || member.deadline.is_none() => continue,
            _ => {
                let first = Span::from_ns(critical - member.arrival.jitter());
                TaskPattern::late(&member.name, first, Span::from_ns(critical))
            }
        };
        pattern = pattern.task(jobs);
        events += 3 * member.arrival.half_open(u128::from(until));
    }
    let response_ns = (late.tie == 0).then_some(Span::from_ns(late.found.response));
    let witness = Witness { task: task.name.clone(), job: late.jobs - 1, response_ns };
    (events <= MOST_EVENTS).then(|| pattern.witness(witness))
}
