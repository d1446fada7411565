//! The report page's data, out of what every step found.

mod parts;
mod timeline;

use crate::date::now;
use crate::verdict::{Answer, Closing};
use crate::{CostOrigin, LoopDocument, LoopError, LoopResult, Proof, misfit};
use horolog_analysis::{Options, Schedulable, TaskVerdict, Verdict as TaskWord, explain, sensitivity};
use horolog_model::{Policy, Preemption, Task};
use horolog_report as page;
use horolog_trace::file::Reader;
use horolog_trace::{ModeOutcome, Outcome};
use horolog_verify::{Class, Finding, FindingGroup, Verification};
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
    let mut runs = vec![timeline::run(system, page::RunKind::Simulated, &result.simulated, parts.traces.0)?];
    note_judged(&mut runs[0], &result.simulated_verified);
    let mut machine = Vec::new();
    if let Some(measured) = &result.measured {
        let path = parts.traces.1;
        let mut run = timeline::run(system, page::RunKind::Measured, &measured.outcome, path)?;
        if let Some(verified) = &result.verified {
            note_judged(&mut run, verified);
        }
        runs.push(run);
        machine.extend(Reader::open(path)?.header().machine.clone());
        machine.push(("kernel record".to_owned(), measured.kernel_record.clone()));
    }
    let found = Found::of(result);
    let newest = result.measured.as_ref().map_or(&result.simulated, |measured| &measured.outcome);
    let json = serde_json::to_string(&Saved { result: result.document(), closing: &result.closing });
    let json = json.map_err(|error| LoopError::writing(&result.report, error))?;
    Ok(page::ReportData {
        system: system.name().to_owned(),
        policy: policy(system.policy()).to_owned(),
        verdict: verdict(result),
        closing: Some(closing(&result.closing)),
        tasks: tasks(&result.proof),
        servers: parts::servers(&result.proof),
        devices: parts::devices(&result.proof),
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

/// How many jobs of each task were judged.
fn note_judged(run: &mut page::Run, verified: &Verification) {
    for (task, seen) in run.tasks.iter_mut().zip(&verified.tasks) {
        task.judged = Some(page::Judged { released: seen.released, judged: seen.judged });
    }
}

/// What the page saves as JSON: the document of `loop --format json`.
#[derive(Serialize)]
struct Saved<'a> {
    #[serde(flatten)]
    result: LoopDocument<'a>,
    closing: &'a Closing,
}

/// The closing line, word for word.
fn closing(closing: &Closing) -> page::Closing {
    page::Closing {
        word: closing.word.to_string(),
        exit: closing.exit,
        text: closing.text.clone(),
        help: closing.help.clone(),
        missed: closing
            .missed
            .iter()
            .map(|one| page::Missed { name: one.name.clone(), count: one.count })
            .collect(),
        causes: closing
            .causes
            .iter()
            .map(|cause| page::Cause {
                class: cause.class.clone(),
                check: cause.check.to_owned(),
                subject: cause.subject.clone(),
                count: cause.count,
                worst_excess_ns: cause.worst_excess_ns,
            })
            .collect(),
    }
}

fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::FixedPriority => "fixed priority",
        Policy::Edf => "earliest deadline first",
        _ => "another policy",
    }
}

fn verdict(result: &LoopResult) -> page::Verdict {
    let proof = match result.closing.proof {
        Some(Answer::Yes) => page::Proof::Proved,
        Some(Answer::No) => page::Proof::NotProved,
        Some(Answer::Undecided) | None => page::Proof::Unknown,
    };
    let run = result.verified.as_ref().map(|found| match (result.closing.model, result.closing.deadlines) {
        (Some(Answer::No), _) if found.bound_violated > 0 => page::RunVerdict::BoundViolated,
        (Some(Answer::No), _) => page::RunVerdict::ModelViolated,
        (_, Some(Answer::No)) => page::RunVerdict::Missed,
        (Some(Answer::Yes), Some(Answer::Yes)) if found.machine_disturbed > 0 => page::RunVerdict::Disturbed,
        (Some(Answer::Yes), Some(Answer::Yes)) => page::RunVerdict::Held,
        _ => page::RunVerdict::Undecided,
    });
    let mut said = result.closing.to_string();
    // The help stands in a line of its own.
    said.truncate(said.find('\n').unwrap_or(said.len()));
    let mut qualifiers = Vec::new();
    let costs = &result.proof.costs;
    if let Some(reason) = &costs.not_counted {
        let of_file = if costs.has(CostOrigin::File) { " where the file gives none" } else { "" };
        qualifiers.push(format!("The machine's costs count as zero{of_file}: {reason}."));
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
    if let Some(without) = &result.proof.without_costs
        && without.schedulable != result.proof.analysis.schedulable
    {
        let word = match without.schedulable {
            Schedulable::Yes => "every deadline is proved to hold",
            Schedulable::No => "not every deadline can hold",
            Schedulable::Unknown => "no test decides",
        };
        qualifiers.push(format!("Without the machine's costs {word}."));
    }
    qualifiers.extend(result.verified.iter().flat_map(|found| misfit(costs, found)));
    let best_effort = result.measured.as_ref().is_some_and(|run| run.outcome.backend == "linux-best-effort");
    page::Verdict { proof, run, best_effort, sentence: said, qualifiers }
}

fn tasks(proof: &Proof) -> Vec<page::TaskRow> {
    let verdicts = &proof.analysis.tasks;
    let without_costs =
        proof.without_costs.as_ref().map(|analysis| analysis.tasks.as_slice()).unwrap_or_default();
    let rows = proof.system.tasks().iter().zip(verdicts).enumerate();
    rows.map(|(index, (task, verdict))| page::TaskRow {
        name: task.name.clone(),
        cpu: task.cpu.0,
        priority: task.priority.map(horolog_model::Priority::number),
        preemption: preemption(task),
        period_ns: task.separation(),
        wcet_ns: task.wcet,
        deadline_ns: task.deadline,
        verdict: word(verdict.verdict),
        bound_ns: verdict.response,
        without_costs: without_costs
            .get(index)
            .map(|free| page::FreeProof { verdict: word(free.verdict), bound_ns: free.response }),
        exact: verdict.exact,
        test: verdict.test.to_owned(),
        source: verdict.source.to_owned(),
        slack_ns: verdict.slack,
        explain: explain_in_words(proof, task, verdict),
    })
    .collect()
}

fn word(verdict: TaskWord) -> page::TaskVerdict {
    match verdict {
        TaskWord::Meets => page::TaskVerdict::Meets,
        TaskWord::Misses => page::TaskVerdict::Misses,
        TaskWord::Unknown => page::TaskVerdict::Unknown,
    }
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
            let has_soft = proof.system.tasks_on(cpu.cpu).any(|(id, _)| proof.system.is_soft(id));
            facts.push(scaling(number, ppb, has_soft));
        }
    }
    facts.extend(facts_without_costs(proof));
    facts
}

/// How far every wcet of a processor is from the edge of what can be proved, in the words of `analyze`.
fn scaling(cpu: u32, ppb: u64, has_soft: bool) -> page::Fact {
    let (name, note) = match ppb {
        0..1_000_000_000 if has_soft => (
            format!("To keep soft deadlines, too, every wcet of cpu {cpu} must shrink to"),
            "else not every deadline is proved",
        ),
        0..1_000_000_000 => {
            (format!("To pass, every wcet of cpu {cpu} must shrink to"), "else not every deadline is proved")
        }
        1_000_000_000 => (
            format!("No wcet of cpu {cpu} may grow with all others: each stays at"),
            "every deadline is only just kept",
        ),
        _ => (
            format!("Every wcet of cpu {cpu} may grow to"),
            "all of them at once, and every deadline is still kept",
        ),
    };
    page::Fact::new(name, sensitivity::percent(ppb), note)
}

/// Utilisations without the machine's costs, where they differ.
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
    facts
}

/// Each change of the mode in the newest run, the first ten.
fn mode_facts(outcome: &Outcome) -> Vec<page::Fact> {
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

/// What `verify` found in both traces, as the page lists it.
#[derive(Default)]
struct Found {
    findings: Vec<page::Finding>,
    groups: Vec<page::FindingGroup>,
    omitted: u64,
}

impl Found {
    /// The run's findings, and behind them the simulation's.
    fn of(result: &LoopResult) -> Found {
        let mut found = Found::default();
        if let Some(verified) = &result.verified {
            found.add(&result.proof, verified, 1);
        }
        found.add(&result.proof, &result.simulated_verified, 0);
        found
    }

    fn add(&mut self, proof: &Proof, verified: &Verification, run: usize) {
        let first = self.groups.len();
        self.groups.extend(verified.groups.iter().map(|group| page::FindingGroup {
            class: class(group.class),
            kind: group.check.name().to_owned(),
            subject: group.subject.clone(),
            run,
            count: group.count,
            worst_excess_ns: group.worst_excess_ns,
        }));
        self.findings.extend(verified.findings.iter().map(|finding| {
            let task = finding.task.as_ref();
            let task = task.and_then(|name| proof.system.tasks().iter().position(|task| task.name == *name));
            let group = group_of(finding, &verified.groups).map(|group| first + group);
            page::Finding {
                run: Some(run),
                task: task.map(|task| task as u32),
                job: finding.job,
                cpu: Some(finding.cpu),
                time_ns: Some(finding.time_ns),
                group,
                ..page::Finding::new(class(finding.class), finding.check.name(), finding.message.clone())
            }
        }));
        let all: u64 = verified.groups.iter().map(|group| group.count).sum();
        self.omitted += all.saturating_sub(verified.findings.len() as u64);
    }
}

/// The group of a finding: that of its task, else the one whose subject the message names.
fn group_of(finding: &Finding, groups: &[FindingGroup]) -> Option<usize> {
    let alike = |group: &FindingGroup| group.class == finding.class && group.check == finding.check;
    let is_tasks = |group: &FindingGroup| finding.task.as_ref() == Some(&group.subject);
    let named = groups.iter().enumerate().filter(|(_, group)| alike(group));
    let named = named.filter(|(_, group)| finding.message.contains(&group.subject));
    let named = named.max_by_key(|(_, group)| group.subject.len()).map(|(index, _)| index);
    groups.iter().position(|group| alike(group) && is_tasks(group)).or(named)
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
pub(crate) fn write_report(parts: &Parts<'_>) -> Result<(), LoopError> {
    Ok(page::write(&report_data(parts)?, &parts.result.report)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_time::{Instant, Span};
    use horolog_verify::Check;

    #[test]
    fn a_factor_below_one_reads_as_bad_news_and_is_rounded_down() {
        let told = |ppb| {
            let page::Fact { name, value, .. } = scaling(2, ppb, false);
            format!("{name} {value}")
        };
        assert_eq!(told(666_999_999), "To pass, every wcet of cpu 2 must shrink to 66.6 %");
        assert_eq!(told(999_999_999), "To pass, every wcet of cpu 2 must shrink to 99.9 %");
        assert_eq!(told(1_000_000_000), "No wcet of cpu 2 may grow with all others: each stays at 100 %");
        assert_eq!(told(1_203_456_789), "Every wcet of cpu 2 may grow to 120.3 %");
    }

    #[test]
    fn a_finding_belongs_to_the_group_of_its_task_else_to_the_one_that_it_names() {
        let group = |class, check, subject: &str| FindingGroup {
            class,
            check,
            subject: subject.to_owned(),
            count: 1,
            worst_excess_ns: Span::ZERO,
            total_excess_ns: Span::ZERO,
        };
        let finding = |class, check, task: Option<&str>, message: &str| Finding {
            class,
            check,
            time_ns: Instant::ZERO,
            from_ns: Instant::ZERO,
            to_ns: Instant::ZERO,
            cpu: 1,
            task: task.map(str::to_owned),
            job: None,
            observed_ns: None,
            allowed_ns: None,
            evidence: Vec::new(),
            message: message.to_owned(),
        };
        let groups = [
            group(Class::MachineDisturbed, Check::ForeignThread, "kworker/1"),
            group(Class::MachineDisturbed, Check::ForeignThread, "kworker/1:2"),
            group(Class::MachineDisturbed, Check::Response, "imu"),
            group(Class::ModelViolated, Check::Response, "imu"),
        ];
        let of = |class, check, task, message| group_of(&finding(class, check, task, message), &groups);
        let disturbed = Class::MachineDisturbed;
        assert_eq!(of(disturbed, Check::ForeignThread, None, "kworker/1:2 took CPU 1"), Some(1));
        assert_eq!(of(disturbed, Check::ForeignThread, Some("imu"), "kworker/1 took CPU 1"), Some(0));
        assert_eq!(of(disturbed, Check::Response, Some("imu"), "late"), Some(2));
        assert_eq!(of(Class::ModelViolated, Check::Response, Some("imu"), "late"), Some(3));
        assert_eq!(of(Class::BoundViolated, Check::Response, Some("imu"), "late"), None);
    }
}
