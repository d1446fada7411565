//! Pages of one simulation or one trace, beside what was proved and found: what notebooks show.

use super::timeline::{options, run, run_of_trace};
use super::{
    Found, closing, devices, facts, mode_facts, note_judged, policy, proof_verdict, qualifiers, run_verdict,
    sentence, servers, tasks, unproved,
};
use crate::date::now;
use crate::simulated::header_of;
use crate::verdict::Closing;
use crate::{LoopError, Proof, misfit};
use horolog_analysis::Schedulable;
use horolog_model::System;
use horolog_report as page;
use horolog_sim::{SimOptions, simulate};
use horolog_trace::Outcome;
use horolog_verify::Verification;
use std::path::Path;

/// Records that the timeline keeps: with more a notebook would take many megabytes a result.
const KEPT: u64 = 200_000;

/// What a page shows beside its run; everything may be missing.
#[derive(Clone, Copy, Default)]
pub struct PageOf<'a> {
    /// The system, with its priorities resolved.
    pub system: Option<&'a System>,
    /// What was proved of it.
    pub proof: Option<&'a Proof>,
    /// What was found in the run.
    pub verified: Option<&'a Verification>,
    /// The verdict.
    pub closing: Option<&'a Closing>,
    /// What the page says first, where there is no verdict.
    pub said: &'a str,
    /// How it was made.
    pub command: &'a str,
    /// The result as JSON.
    pub json: Option<&'a str>,
}

/// Simulates a system whose priorities are resolved, and keeps the timeline of its first records in memory.
///
/// # Errors
/// As [`simulated_run`](crate::simulated_run).
pub fn simulated_with_timeline(system: &System, how: &SimOptions) -> Result<(Outcome, page::Run), LoopError> {
    let header = header_of(system, how)?;
    let options = page::TimelineOptions { limit: KEPT, ..options(Some(system), &header, Vec::new()) };
    let mut builder = page::TimelineBuilder::new(options);
    let outcome = simulate(system, how, &mut builder)?;
    let run = run(&header, &outcome, builder);
    Ok((outcome, run))
}

/// The outcome of a trace, recomputed from its records, and the timeline of its first records.
///
/// # Errors
/// Where the file is no trace.
pub fn timeline_of_trace(system: Option<&System>, path: &Path) -> Result<(Outcome, page::Run), LoopError> {
    run_of_trace(system, path, KEPT)
}

/// The page of one run.
///
/// # Errors
/// Where the data does not serialise.
pub fn page_of(outcome: &Outcome, mut run: page::Run, of: &PageOf<'_>) -> Result<String, LoopError> {
    let is_measured = run.kind == page::RunKind::Measured;
    let (mut found, mut qualified) = (Found::default(), of.proof.map(qualifiers).unwrap_or_default());
    if let (Some(proof), Some(verified)) = (of.proof, of.verified) {
        note_judged(&mut run, verified);
        found.add(proof, verified, 0);
        qualified.extend(misfit(&proof.costs, verified));
    }
    if of.proof.is_none() {
        qualified.push("Nothing was proved for this page: there are no bounds.".to_owned());
    }
    let of_run = match (of.verified, of.closing) {
        (Some(verified), Some(closing)) => run_verdict(closing, verified),
        _ => page::RunVerdict::Undecided,
    };
    let verdict = page::Verdict {
        proof: proved(of),
        run: is_measured.then_some(of_run),
        best_effort: outcome.backend == "linux-best-effort",
        sentence: of.closing.map_or_else(|| of.said.to_owned(), sentence),
        qualifiers: qualified,
    };
    let notes = of.verified.map_or(&outcome.notes, |verified| &verified.notes).clone();
    let of_system = of.system.map(System::tasks).unwrap_or_default();
    let rows = of.proof.map_or_else(|| of_system.iter().map(unproved).collect(), tasks);
    let data = page::ReportData {
        system: outcome.system.clone(),
        policy: of.system.map(|system| policy(system.policy()).to_owned()).unwrap_or_default(),
        verdict,
        closing: of.closing.map(closing),
        tasks: rows,
        servers: of.proof.map(servers).unwrap_or_default(),
        devices: of.proof.map(devices).unwrap_or_default(),
        runs: vec![run],
        findings: found.findings,
        groups: found.groups,
        findings_omitted: found.omitted,
        facts: of.proof.map(facts).into_iter().flatten().chain(mode_facts(outcome)).collect(),
        provenance: page::Provenance {
            command: of.command.to_owned(),
            created: now(),
            versions: vec![("horolog".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
            machine: Vec::new(),
        },
        system_file: of.system.map(horolog_model::file::print).unwrap_or_default(),
        notes,
        json: of.json.map(page::Packed::text),
    };
    Ok(page::render(&data)?)
}

/// What is proved of all deadlines: where the verdict is not about that, the proof says it.
fn proved(of: &PageOf<'_>) -> page::Proof {
    if let Some(answer) = of.closing.and_then(|closing| closing.proof) {
        return proof_verdict(Some(answer));
    }
    of.proof.map_or(page::Proof::Unknown, |proof| match proof.analysis.schedulable {
        Schedulable::Yes => page::Proof::Proved,
        Schedulable::No => page::Proof::NotProved,
        Schedulable::Unknown => page::Proof::Unknown,
    })
}
