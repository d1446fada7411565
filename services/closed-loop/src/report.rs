//! The report page's data, out of what every step found.

use crate::date::now;
use crate::pages::{
    Found, closing, devices, facts, mode_facts, note_judged, policy, proof_verdict, qualifiers, run_of,
    run_verdict, sentence, servers, tasks,
};
use crate::verdict::Closing;
use crate::{LoopDocument, LoopError, LoopResult, misfit};
use horolog_report as page;
use horolog_trace::file::Reader;
use serde::Serialize;
use std::path::Path;

/// What the page is made of.
pub(crate) struct Parts<'a> {
    pub(crate) result: &'a LoopResult,
    pub(crate) traces: (&'a Path, &'a Path),
    pub(crate) command: &'a str,
}

/// Everything that the page shows.
pub(crate) fn report_data(parts: &Parts<'_>) -> Result<page::ReportData, LoopError> {
    let result = parts.result;
    let system = &result.proof.system;
    let mut runs = vec![run_of(system, &result.simulated, parts.traces.0)?];
    note_judged(&mut runs[0], &result.simulated_verified);
    let mut machine = Vec::new();
    if let Some(measured) = &result.measured {
        let path = parts.traces.1;
        let mut run = run_of(system, &measured.outcome, path)?;
        if let Some(verified) = &result.verified {
            note_judged(&mut run, verified);
        }
        runs.push(run);
        machine.extend(Reader::open(path)?.header().machine.clone());
        machine.push(("kernel record".to_owned(), measured.kernel_record.clone()));
    }
    // The run's findings, and behind them the simulation's.
    let mut found = Found::default();
    if let Some(verified) = &result.verified {
        found.add(&result.proof, verified, 1);
    }
    found.add(&result.proof, &result.simulated_verified, 0);
    let newest = result.measured.as_ref().map_or(&result.simulated, |measured| &measured.outcome);
    let json = serde_json::to_string(&Saved { result: result.document(), closing: &result.closing });
    let json = json.map_err(|error| LoopError::writing(&result.report, error))?;
    Ok(page::ReportData {
        system: system.name().to_owned(),
        policy: policy(system.policy()).to_owned(),
        verdict: verdict(result),
        closing: Some(closing(&result.closing)),
        tasks: tasks(&result.proof),
        servers: servers(&result.proof),
        devices: devices(&result.proof),
        runs,
        findings: found.findings,
        groups: found.groups,
        findings_omitted: found.omitted,
        facts: facts(&result.proof).into_iter().chain(mode_facts(newest)).collect(),
        provenance: page::Provenance {
            command: parts.command.to_owned(),
            created: now(),
            versions: vec![("horolog".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
            machine,
        },
        system_file: horolog_model::file::print(system),
        notes: result.notes.clone(),
        json: Some(page::Packed::text(&json)),
    })
}

/// What the page saves as JSON: the document of `loop --format json`.
#[derive(Serialize)]
struct Saved<'a> {
    #[serde(flatten)]
    result: LoopDocument<'a>,
    closing: &'a Closing,
}

fn verdict(result: &LoopResult) -> page::Verdict {
    let run = result.verified.as_ref().map(|found| run_verdict(&result.closing, found));
    let mut qualifiers = qualifiers(&result.proof);
    let costs = &result.proof.costs;
    qualifiers.extend(result.verified.iter().flat_map(|found| misfit(costs, found)));
    let best_effort = result.measured.as_ref().is_some_and(|run| run.outcome.backend == "linux-best-effort");
    page::Verdict {
        proof: proof_verdict(result.closing.proof),
        run,
        best_effort,
        sentence: sentence(&result.closing),
        qualifiers,
    }
}

/// Writes the page.
pub(crate) fn write_report(parts: &Parts<'_>) -> Result<(), LoopError> {
    Ok(page::write(&report_data(parts)?, &parts.result.report)?)
}
