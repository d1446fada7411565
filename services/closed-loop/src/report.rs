//! The report page's data, out of what every step found.

use crate::date::now;
use crate::verdict::{Answer, Closing};
use crate::{CostOrigin, LoopError, MeasuredRun, Proof, misfit};
use horolog_analysis::{Options, Schedulable, TaskVerdict, Verdict as TaskWord, explain};
use horolog_model::{Policy, Preemption, Task};
use horolog_report as page;
use horolog_trace::file::{Header, Reader};
use horolog_trace::{ModeOutcome, Outcome, ServerOutcome};
use horolog_verify::{Class, Verification};
use std::path::Path;

/// What the page is made of.
pub(crate) struct Parts<'a> {
    pub(crate) proof: &'a Proof,
    pub(crate) simulated: (&'a Outcome, &'a Path),
    pub(crate) measured: Option<(&'a MeasuredRun, &'a Path)>,
    pub(crate) verified: Option<&'a Verification>,
    pub(crate) closing: &'a Closing,
    pub(crate) command: &'a str,
    pub(crate) notes: Vec<String>,
}

/// Everything that the page shows.
pub(crate) fn report_data(parts: &Parts<'_>) -> Result<page::ReportData, LoopError> {
    let system = &parts.proof.system;
    let mut runs = vec![run(page::RunKind::Simulated, parts.simulated.0, parts.simulated.1)?];
    let mut machine = Vec::new();
    if let Some((measured, path)) = parts.measured {
        runs.push(run(page::RunKind::Measured, &measured.outcome, path)?);
        machine.extend(Reader::open(path)?.header().machine.clone());
        machine.push(("kernel record".to_owned(), measured.kernel_record.clone()));
    }
    let (findings, omitted) = parts.verified.map(|found| findings(parts.proof, found)).unwrap_or_default();
    Ok(page::ReportData {
        system: system.name().to_owned(),
        policy: policy(system.policy()).to_owned(),
        verdict: verdict(parts),
        tasks: tasks(parts.proof),
        runs,
        findings,
        findings_omitted: omitted,
        facts: facts(parts.proof).into_iter().chain(server_facts(parts)).chain(mode_facts(parts)).collect(),
        provenance: page::Provenance {
            command: parts.command.to_owned(),
            created: now(),
            versions: vec![("horolog".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
            machine,
        },
        system_file: horolog_model::file::print(system),
        notes: parts.notes.clone(),
    })
}

fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::FixedPriority => "fixed priority",
        Policy::Edf => "earliest deadline first",
        _ => "another policy",
    }
}

fn verdict(parts: &Parts<'_>) -> page::Verdict {
    let proof = match parts.closing.proof {
        Some(Answer::Yes) => page::Proof::Proved,
        Some(Answer::No) => page::Proof::NotProved,
        Some(Answer::Undecided) | None => page::Proof::Unknown,
    };
    let run = parts.verified.map(|found| match (parts.closing.model, parts.closing.deadlines) {
        (Some(Answer::No), _) if found.bound_violated > 0 => page::RunVerdict::BoundViolated,
        (Some(Answer::No), _) => page::RunVerdict::ModelViolated,
        (_, Some(Answer::No)) => page::RunVerdict::Missed,
        (Some(Answer::Yes), Some(Answer::Yes)) if found.machine_disturbed > 0 => page::RunVerdict::Disturbed,
        (Some(Answer::Yes), Some(Answer::Yes)) => page::RunVerdict::Held,
        _ => page::RunVerdict::Undecided,
    });
    let mut said = parts.closing.to_string();
    let mut qualifiers = Vec::new();
    if let Some(help) = &parts.closing.help {
        said.truncate(said.find('\n').unwrap_or(said.len()));
        qualifiers.push(format!("Help: {help}"));
    }
    let costs = &parts.proof.costs;
    if let Some(reason) = &costs.not_counted {
        qualifiers.push(format!("The machine's costs count as zero: {reason}."));
    }
    if costs.has(CostOrigin::Profile)
        && let Some(path) = &costs.profile
    {
        qualifiers.push(format!("The machine's costs are those of the profile {}.", path.display()));
    }
    if costs.has(CostOrigin::ThisMinute) {
        qualifiers
            .push("The machine's costs are those of this minute, measured just before the proof.".to_owned());
    }
    if let Some(without) = &parts.proof.without_costs
        && without.schedulable != parts.proof.analysis.schedulable
    {
        let word = match without.schedulable {
            Schedulable::Yes => "every deadline is proved to hold",
            Schedulable::No => "not every deadline can hold",
            Schedulable::Unknown => "no test decides",
        };
        qualifiers.push(format!("Without the machine's costs {word}."));
    }
    qualifiers.extend(parts.verified.iter().flat_map(|found| misfit(costs, found)));
    let best_effort = parts.measured.is_some_and(|(run, _)| run.outcome.backend == "linux-best-effort");
    page::Verdict { proof, run, best_effort, sentence: said, qualifiers }
}

fn tasks(proof: &Proof) -> Vec<page::TaskRow> {
    let verdicts = &proof.analysis.tasks;
    let rows = proof.system.tasks().iter().zip(verdicts);
    rows.map(|(task, verdict)| page::TaskRow {
        name: task.name.clone(),
        cpu: task.cpu.0,
        priority: task.priority.map(horolog_model::Priority::number),
        preemption: preemption(task),
        period_ns: task.separation(),
        wcet_ns: task.wcet,
        deadline_ns: task.deadline,
        verdict: match verdict.verdict {
            TaskWord::Meets => page::TaskVerdict::Meets,
            TaskWord::Misses => page::TaskVerdict::Misses,
            TaskWord::Unknown => page::TaskVerdict::Unknown,
        },
        bound_ns: verdict.response,
        exact: verdict.exact,
        test: verdict.test.to_owned(),
        source: verdict.source.to_owned(),
        slack_ns: verdict.slack,
        explain: explain_in_words(proof, task, verdict),
    })
    .collect()
}

/// Where a task's time goes, and what would help it.
fn explain_in_words(proof: &Proof, task: &Task, verdict: &TaskVerdict) -> String {
    let mut text = proof
        .system
        .find_task(&task.name)
        .and_then(|id| explain(&proof.system, id, &Options::default()).ok())
        .map_or_else(String::new, |explanation| explanation.to_string());
    for remedy in &verdict.remedies {
        text.push_str(&format!("\n{remedy}"));
    }
    text
}

fn preemption(task: &Task) -> String {
    match &task.preemption {
        Preemption::Preemptive => "preemptive".to_owned(),
        Preemption::NonPreemptive => "non-preemptive".to_owned(),
        Preemption::Deferred(graph) => format!("deferred, {} segments", graph.segments.len()),
        _ => "another mode".to_owned(),
    }
}

fn facts(proof: &Proof) -> Vec<page::Fact> {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut facts = Vec::new();
    for cpu in &proof.analysis.processors {
        let number = cpu.cpu.0;
        let exact = cpu.utilisation_exact.exact.clone().filter(|text| text.len() <= 24).unwrap_or_default();
        facts.push(page::Fact::new(format!("Utilisation of cpu {number}"), percent(cpu.utilisation), exact));
        if let Some(ppb) = cpu.sensitivity.as_ref().and_then(|sensitivity| sensitivity.scaling_ppb) {
            facts.push(page::Fact::new(
                format!("Scaling factor of cpu {number}"),
                format!("{:.3}", ppb as f64 / 1e9),
                "every wcet times this is the edge of what can be proved",
            ));
        }
    }
    facts.extend(facts_without_costs(proof));
    facts
}

/// Bounds and utilisations without the machine's costs, where they differ.
fn facts_without_costs(proof: &Proof) -> Vec<page::Fact> {
    let Some(without) = &proof.without_costs else { return Vec::new() };
    let mut facts = Vec::new();
    for (with, without) in proof.analysis.processors.iter().zip(&without.processors) {
        if with.utilisation > without.utilisation {
            facts.push(page::Fact::new(
                format!("Utilisation of cpu {} without costs", with.cpu.0),
                format!("{:.1} %", without.utilisation * 100.0),
                "the machine's context switches and timer interrupts left out",
            ));
        }
    }
    for (with, without) in proof.analysis.tasks.iter().zip(&without.tasks) {
        if let Some(bound) = without.response.filter(|_| with.response != without.response) {
            let costs = with.response.map_or_else(|| "none".to_owned(), |response| response.to_string());
            facts.push(page::Fact::new(
                format!("Bound of {} without costs", with.name),
                bound.to_string(),
                format!("with them {costs}"),
            ));
        }
    }
    facts
}

/// What each server of the newest run did: what it used of its budget, how often that ended and came back, and by how much it
/// was overdrawn each time.
fn server_facts(parts: &Parts<'_>) -> Vec<page::Fact> {
    let (outcome, run) = match parts.measured {
        Some((measured, _)) => (&measured.outcome, "measured"),
        None => (parts.simulated.0, "simulated"),
    };
    let fact = |server: &ServerOutcome| {
        let file = parts.proof.system.servers().iter().find(|file| file.name == server.name);
        let capacity = file.and_then(|file| file.kind.capacity());
        let budget = capacity.map_or_else(String::new, |capacity| {
            format!("budget {} every {}; ", capacity.budget, capacity.period)
        });
        let overshoot = server.enforcement.as_ref().and_then(|enforcement| {
            let (median, p99, most) =
                (enforcement.overshoot_ns_p50?, enforcement.overshoot_ns_p99?, enforcement.overshoot_ns_max?);
            Some(format!("; overdrawn by {median} (median), {p99} (p99), {most} at most"))
        });
        page::Fact::new(
            format!("Server {} ({}, {run})", server.name, server.kind),
            server.consumed_ns.map_or_else(|| "not counted".to_owned(), |used| format!("used {used}")),
            format!(
                "{budget}used up {} times, came back {} times{}",
                server.exhaustions,
                server.replenishments,
                overshoot.unwrap_or_default()
            ),
        )
    };
    outcome.servers.iter().map(fact).collect()
}

/// Each change of the mode in the newest run, the first ten.
fn mode_facts(parts: &Parts<'_>) -> Vec<page::Fact> {
    let outcome = parts.measured.map_or(parts.simulated.0, |(measured, _)| &measured.outcome);
    let fact = |change: &ModeOutcome| {
        let end = match change.ended_ns {
            Some(ended) => format!("the mode before ended at {ended}"),
            None => "the mode before did not end before the next change or the end".to_owned(),
        };
        page::Fact::new(
            format!("Mode {}", change.mode),
            format!("at {}", change.changed_ns),
            format!(
                "asked for at {} ({}); {} jobs left over; {end}",
                change.requested_ns, change.by, change.left_over
            ),
        )
    };
    outcome.modes.iter().take(10).map(fact).collect()
}

/// One run: its outcome, the distributions and the timeline of its trace.
fn run(kind: page::RunKind, outcome: &Outcome, path: &Path) -> Result<page::Run, LoopError> {
    let mut reader = Reader::open(path)?;
    let header: Header = reader.header().clone();
    let threads = reader.load_footer()?.map(|footer| footer.threads.clone()).unwrap_or_default();
    let mut builder = page::TimelineBuilder::new(page::TimelineOptions {
        start: header.start,
        tasks: header.tasks.len(),
        threads: threads
            .into_iter()
            .map(|thread| page::TimelineThread { id: thread.id, idle: thread.tid == 0, name: thread.comm })
            .collect(),
        ..page::TimelineOptions::default()
    });
    while let Some(record) = reader.next_record() {
        builder.push(&record);
    }
    let statistics = builder.statistics();
    Ok(page::Run::new(kind, header.start, outcome, &statistics, Some(builder.finish())))
}

fn findings(proof: &Proof, found: &Verification) -> (Vec<page::Finding>, u64) {
    let index = |name: &Option<String>| {
        name.as_ref().and_then(|name| proof.system.tasks().iter().position(|task| task.name == *name))
    };
    let rows: Vec<page::Finding> = found
        .findings
        .iter()
        .map(|finding| page::Finding {
            run: Some(1),
            task: index(&finding.task).map(|task| task as u32),
            job: finding.job,
            cpu: Some(finding.cpu),
            time_ns: Some(finding.time_ns),
            ..page::Finding::new(class(finding.class), finding.check.name(), finding.message.clone())
        })
        .collect();
    let all = found.model_violated + found.bound_violated + found.machine_disturbed;
    let omitted = all.saturating_sub(rows.len() as u64);
    (rows, omitted)
}

fn class(class: Class) -> page::FindingClass {
    match class {
        Class::ModelViolated => page::FindingClass::ModelViolated,
        Class::BoundViolated => page::FindingClass::BoundViolated,
        Class::MachineDisturbed => page::FindingClass::MachineDisturbed,
        Class::ScheduleDiffers => page::FindingClass::ScheduleDiffers,
        Class::CannotTell => page::FindingClass::CannotTell,
    }
}

/// Writes the page.
pub(crate) fn write_report(parts: &Parts<'_>, path: &Path) -> Result<(), LoopError> {
    let data = report_data(parts)?;
    Ok(page::write(&data, path)?)
}
