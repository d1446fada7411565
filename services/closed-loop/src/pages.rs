//! What the report's page shows of a proof, of a trace and of findings, whoever asks for a page.

mod parts;
mod single;
mod timeline;

use crate::verdict::{Answer, Closing};
use crate::{CostOrigin, Proof};
use horolog_analysis::sensitivity::Scaled;
use horolog_analysis::{Options, Schedulable, TaskVerdict, Verdict as TaskWord, explain, sensitivity};
use horolog_model::{Policy, Preemption, Task};
use horolog_report as page;
use horolog_trace::{ModeOutcome, Outcome};
use horolog_verify::{Class, Finding, FindingGroup, Verification};

pub(crate) use parts::{devices, servers};
pub use single::{PageOf, page_of, simulated_with_timeline, timeline_of_trace};
#[cfg(feature = "run")]
pub(crate) use timeline::run_of;

/// The closing line, word for word.
pub(crate) fn closing(closing: &Closing) -> page::Closing {
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

pub(crate) fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::FixedPriority => "fixed priority",
        Policy::Edf => "earliest deadline first",
        _ => "another policy",
    }
}

/// What the analysis says of all deadlines.
pub(crate) fn proof_verdict(proof: Option<Answer>) -> page::Proof {
    match proof {
        Some(Answer::Yes) => page::Proof::Proved,
        Some(Answer::No) => page::Proof::NotProved,
        Some(Answer::Undecided) | None => page::Proof::Unknown,
    }
}

/// What `verify` says of a run.
pub(crate) fn run_verdict(closing: &Closing, found: &Verification) -> page::RunVerdict {
    match (closing.model, closing.deadlines) {
        (Some(Answer::No), _) if found.bound_violated > 0 => page::RunVerdict::BoundViolated,
        (Some(Answer::No), _) => page::RunVerdict::ModelViolated,
        (_, Some(Answer::No)) => page::RunVerdict::Missed,
        (Some(Answer::Yes), Some(Answer::Yes)) if found.machine_disturbed > 0 => page::RunVerdict::Disturbed,
        (Some(Answer::Yes), Some(Answer::Yes)) => page::RunVerdict::Held,
        _ => page::RunVerdict::Undecided,
    }
}

/// The closing line; the help stands in a line of its own.
pub(crate) fn sentence(closing: &Closing) -> String {
    let mut said = closing.to_string();
    said.truncate(said.find('\n').unwrap_or(said.len()));
    said
}

/// Which costs of the machine the proof counts.
pub(crate) fn qualifiers(proof: &Proof) -> Vec<String> {
    let mut qualifiers = Vec::new();
    let costs = &proof.costs;
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
    if let Some(without) = &proof.without_costs
        && without.schedulable != proof.analysis.schedulable
    {
        let word = match without.schedulable {
            Schedulable::Yes => "every deadline is proved to hold",
            Schedulable::No => "not every deadline can hold",
            Schedulable::Unknown => "no test decides",
        };
        qualifiers.push(format!("Without the machine's costs {word}."));
    }
    qualifiers
}

/// How many jobs of each task were judged.
pub(crate) fn note_judged(run: &mut page::Run, verified: &Verification) {
    for (task, seen) in run.tasks.iter_mut().zip(&verified.tasks) {
        task.judged = Some(page::Judged { released: seen.released, judged: seen.judged });
    }
}

pub(crate) fn tasks(proof: &Proof) -> Vec<page::TaskRow> {
    let verdicts = &proof.analysis.tasks;
    let without_costs =
        proof.without_costs.as_ref().map(|analysis| analysis.tasks.as_slice()).unwrap_or_default();
    let rows = proof.system.tasks().iter().zip(verdicts).enumerate();
    rows.map(|(index, (task, verdict))| page::TaskRow {
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
        ..unproved(task)
    })
    .collect()
}

/// What a task is, without a word of what is proved of it.
pub(crate) fn unproved(task: &Task) -> page::TaskRow {
    page::TaskRow {
        name: task.name.clone(),
        cpu: task.cpu.0,
        priority: task.priority.map(horolog_model::Priority::number),
        preemption: preemption(task),
        period_ns: task.separation(),
        wcet_ns: task.wcet,
        deadline_ns: task.deadline,
        ..page::TaskRow::default()
    }
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

pub(crate) fn facts(proof: &Proof) -> Vec<page::Fact> {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut facts = Vec::new();
    for cpu in &proof.analysis.processors {
        let number = cpu.cpu.0;
        let exact = cpu.utilisation_exact.exact.clone().filter(|text| text.len() <= 24).unwrap_or_default();
        facts.push(page::Fact::new(format!("Utilisation of cpu {number}"), percent(cpu.utilisation), exact));
        if let Some(ppb) = cpu.sensitivity.as_ref().and_then(|sensitivity| sensitivity.scaling_ppb) {
            facts.push(scaling(number, ppb, &Scaled::of(&proof.system, cpu.cpu)));
        }
    }
    facts.extend(facts_without_costs(proof));
    facts
}

/// How far every wcet of a processor is from the edge of what can be proved, in the words of `analyze`.
fn scaling(cpu: u32, ppb: u64, told: &Scaled) -> page::Fact {
    let Scaled { what, whose, has_soft, but } = told;
    let (name, note) = match ppb {
        0..1_000_000_000 => {
            let goal = if *has_soft { "To keep soft deadlines, too" } else { "To pass" };
            let name = format!("{goal}, every {what} of cpu {cpu} must shrink to");
            (name, format!("else not every {whose} is proved"))
        }
        1_000_000_000 => {
            let name = format!("No {what} of cpu {cpu} may grow with all others: each stays at");
            (name, format!("a {whose} is only just kept"))
        }
        _ => {
            let name = format!("Every {what} of cpu {cpu}{but} may grow to");
            (name, format!("all of them at once, and every {whose} is still kept"))
        }
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
pub(crate) fn mode_facts(outcome: &Outcome) -> Vec<page::Fact> {
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

/// What `verify` found in the traces, as the page lists it.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) findings: Vec<page::Finding>,
    pub(crate) groups: Vec<page::FindingGroup>,
    pub(crate) omitted: u64,
}

impl Found {
    /// Adds what was found in this run of the page.
    pub(crate) fn add(&mut self, proof: &Proof, verified: &Verification, run: usize) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_time::{Instant, Span};
    use horolog_verify::Check;

    #[test]
    fn a_factor_below_one_reads_as_bad_news_and_is_rounded_down() {
        let told = |ppb| {
            let page::Fact { name, value, .. } =
                scaling(2, ppb, &Scaled { what: "wcet", whose: "deadline", has_soft: false, but: "" });
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
