//! What made deadlines be missed, in words: what was found in the busy window of a job that missed, the most important task first.

use super::Evidence;
use horolog_model::Priority;
use horolog_verify::{Check, Class, Evidence as Found, Finding, MissedJob, Verification};
use std::cmp::Reverse;

/// What is named for a missed deadline.
pub(super) struct Named {
    /// Behind "8 deadlines missed (motor 8)".
    pub(super) text: String,
    /// Without the machine's disturbances the bound would have held.
    pub(super) is_machines: bool,
}

/// What was found for one of these tasks' missed jobs; where nothing was, that is said.
pub(super) fn of_missed(evidence: &Evidence<'_>, found: &Verification, missed: &[(String, u64)]) -> Named {
    let mut names: Vec<&str> = missed.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_by_key(|name| importance(evidence, name));
    let named = names.into_iter().find_map(|name| {
        let jobs = found.missed_jobs.iter().filter(|job| job.task == name);
        let jobs: Vec<&MissedJob> = jobs.collect();
        of_task(found, &jobs)
    });
    named.unwrap_or_else(|| Named { text: "; cause not known".to_owned(), is_machines: false })
}

/// The greatest priority first, then the shortest deadline.
fn importance(evidence: &Evidence<'_>, name: &str) -> (Reverse<Option<i64>>, Option<u64>) {
    let task = evidence.system.tasks().iter().find(|task| task.name == name);
    let priority = task.and_then(|task| task.priority).map(Priority::number);
    (Reverse(priority), task.and_then(|task| task.deadline).map(|deadline| deadline.as_ns()))
}

fn of_task(found: &Verification, jobs: &[&MissedJob]) -> Option<Named> {
    let late = |class: Class| {
        jobs.iter()
            .find_map(|job| Some((*job, late_response(found, job).filter(|late| late.class == class)?)))
    };
    if let Some((_, late)) = late(Class::ModelViolated) {
        return Some(Named { text: format!("; model violated: {}", late.message), is_machines: false });
    }
    let blamed = late(Class::MachineDisturbed);
    let is_machines = blamed.is_some();
    let most = blamed.and_then(|(_, late)| late.evidence.iter().max_by_key(|one| one.amount_ns));
    let worst = |checks: &[Check]| {
        let seen = jobs.iter().filter_map(|job| Some((*job, worst_disturbance(found, job, checks)?)));
        seen.max_by_key(|(_, finding)| excess(finding))
    };
    // What took most in all is named, by its longest case where one was found; else what was longest. A late release says less than what made
    // it late.
    let of_most = most.and_then(|most| worst(checks_of(&most.what)));
    let longest = || worst(&OF_MACHINE).or_else(|| worst(&[Check::Release]));
    let is_most = |finding: &Finding| most.is_none_or(|most| excess(finding) >= most.amount_ns.as_ns());
    let named = of_most.or_else(|| longest().filter(|(_, finding)| is_most(finding)));
    let text = match (named, blamed.zip(most)) {
        (Some((job, finding)), _) => {
            let own = format!("{} job {}", job.task, job.job);
            let place = match finding.message.contains(&own) {
                true => String::new(),
                false => format!(" (in the busy window of {own})"),
            };
            let by = if is_machines { ", by the machine: " } else { "; found beside it: " };
            format!("{by}{}{place}", finding.message)
        }
        (None, Some(((job, _), most))) => {
            let (what, amount) = (&most.what, most.amount_ns.rounded());
            format!(
                ", by the machine: {what} took {amount} in the busy window of {} job {}",
                job.task, job.job
            )
        }
        (None, None) => return None,
    };
    Some(Named { text, is_machines })
}

/// The finding on this job's response.
fn late_response<'a>(found: &'a Verification, job: &MissedJob) -> Option<&'a Finding> {
    found.findings.iter().find(|finding| finding.check == Check::Response && is_about(finding, job))
}

fn is_about(finding: &Finding, job: &MissedJob) -> bool {
    finding.task.as_ref() == Some(&job.task) && finding.job == Some(job.job)
}

/// What the machine does. A gap between two jobs of a thread, in which another one should have run, is a divergence.
const OF_MACHINE: [Check; 6] =
    [Check::ForeignThread, Check::Interrupt, Check::Steal, Check::Gap, Check::Starvation, Check::Divergence];

/// The checks whose findings are single cases of what a line of evidence sums up.
fn checks_of(evidence: &str) -> &'static [Check] {
    match evidence {
        Found::FOREIGN_THREADS => &[Check::ForeignThread, Check::Starvation],
        Found::INTERRUPTS => &[Check::Interrupt],
        Found::STEAL => &[Check::Steal],
        Found::GAPS => &[Check::Gap],
        Found::DIVERGENCE => &[Check::Divergence],
        Found::LATE_RELEASES => &[Check::Release],
        _ => &[],
    }
}

/// The longest of these disturbances in a job's busy window.
fn worst_disturbance<'a>(found: &'a Verification, job: &MissedJob, checks: &[Check]) -> Option<&'a Finding> {
    // What was found of the job itself is told at its end.
    let meets = |finding: &&Finding| {
        is_about(finding, job) || (finding.from_ns < job.to_ns && finding.to_ns > job.from_ns)
    };
    let here = found.findings.iter().filter(|finding| finding.class == Class::MachineDisturbed);
    let here = here.filter(|finding| finding.cpu == job.cpu && checks.contains(&finding.check));
    here.filter(meets).max_by_key(|finding| excess(finding))
}

fn excess(finding: &Finding) -> u64 {
    let of = |span: Option<horolog_time::Span>| span.map_or(0, |span| span.as_ns());
    of(finding.observed_ns).saturating_sub(of(finding.allowed_ns))
}
