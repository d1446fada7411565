//! Writes the certificate of an analysis, for the independent checker.

use crate::cpu_model::{CpuModel, CpuTask};
use crate::edf;
use crate::error::AnalysisError;
use crate::fixed_priority::{self, level_of};
use crate::options::Options;
use crate::result::{Analysis, Verdict};
use horolog_certificate::{Certificate, Claim, FixedPriorityProof, Proof, Proven};
use horolog_model::{Policy, System};

/// The proofs of all proven verdicts of `analysis`, which must be that of `system` with its priorities resolved.
///
/// Verdicts that are unknown have no claim, nor has a verdict whose proof would be longer than the effort of
/// `options` allows.
///
/// # Errors
/// Where the system cannot be analysed, and where it has servers or sections: the checker does not know their terms.
pub fn certify(
    system: &System,
    analysis: &Analysis,
    options: &Options,
) -> Result<Certificate, AnalysisError> {
    crate::beyond::refuse(system)?;
    if let Some(at) = system.first_driver() {
        return Err(AnalysisError::outside(
            at,
            "a certificate does not cover interrupts and devices",
            "leave the certificate out; the analysis itself covers them",
        ));
    }
    if let Some(at) = system.first_held() {
        return Err(AnalysisError::outside(
            at,
            "a certificate does not cover sections that hold resources",
            "leave the certificate out; the analysis itself says what it knows of them",
        ));
    }
    if let Some(server) = system.servers().first() {
        return Err(AnalysisError::outside(
            format!("server.{}", server.name),
            "a certificate does not cover servers",
            "leave the certificate out; the analysis itself covers them",
        ));
    }
    let mut claims = Vec::new();
    for cpu in system.platform().cpus.iter() {
        let model = CpuModel::new(system, cpu)?;
        let edf = match system.policy() {
            Policy::Edf => Some(edf::Prover::new(&model, options)?),
            _ => None,
        };
        for (index, task) in model.tasks.iter().enumerate() {
            let verdict = match analysis.tasks.get(task.id.index()).map(|t| t.verdict) {
                Some(Verdict::Meets) => Proven::Meets,
                Some(Verdict::Misses) => Proven::Misses,
                _ => continue,
            };
            let proof = match system.policy() {
                Policy::FixedPriority => fixed_priority_proof(&model, index, verdict, options)?,
                _ => edf.as_ref().and_then(|prover| prover.proof(index, verdict)),
            };
            claims.extend(proof.map(|proof| Claim { task: task.name.clone(), verdict, proof }));
        }
    }
    let schema = Certificate::SCHEMA.to_owned();
    Ok(Certificate { schema, system: system.name().to_owned(), claims })
}

fn fixed_priority_proof(
    model: &CpuModel,
    index: usize,
    verdict: Proven,
    options: &Options,
) -> Result<Option<Proof>, AnalysisError> {
    let level = level_of(model, index)?;
    if verdict == Proven::Misses && fixed_priority::bare_overload(model, &level, index) {
        return Ok(Some(Proof::Overload { tasks: at_least_as_important(model, &model.tasks[index]) }));
    }
    let mut effort = options.effort;
    let Ok((horizon, jobs)) = level.prove(&mut effort) else { return Ok(None) };
    let jitter = model.tasks[index].arrival.jitter();
    let response = |job: &horolog_certificate::JobProof| {
        let end = job.finish_iterates.last().or(job.start_iterates.last()).copied().unwrap_or(0);
        (end + jitter).saturating_sub(job.ready_ns)
    };
    let bound_ns = jobs.iter().map(response).max().unwrap_or(0);
    let least = model.keeps_exactness();
    // A verdict that another test gave (by offsets) may not follow from this bound.
    let meets = model.tasks[index].deadline.is_none_or(|d| bound_ns <= d);
    if meets != (verdict == Proven::Meets) || (!meets && !least) {
        return Ok(None);
    }
    Ok(Some(Proof::FixedPriority(FixedPriorityProof { bound_ns, least, horizon, jobs })))
}

/// The names of the tasks that share the processor's long run with `task`.
fn at_least_as_important(model: &CpuModel, task: &CpuTask) -> Vec<String> {
    let counts = |other: &&CpuTask| match (task.priority, other.priority) {
        (Some(own), Some(theirs)) => {
            !own.is_more_important_than(theirs)
                && matches!(other.arrival, crate::arrival_curve::ArrivalCurve::Periodic { .. })
        }
        _ => false,
    };
    model.tasks.iter().filter(counts).map(|t| t.name.clone()).collect()
}
