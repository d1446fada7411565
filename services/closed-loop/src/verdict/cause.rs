//! What made deadlines be missed, in words: what was found in the busy window of a job that missed, the most important task first.

use super::Evidence;
use horolog_model::Priority;
use horolog_verify::{Check, Class, Finding, MissedJob, Verification};
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
    let seen = jobs.iter().filter_map(|job| Some((*job, worst_disturbance(found, job)?)));
    let seen = seen.max_by_key(|(_, finding)| excess(finding));
    // What took most in all is named, also where it came in parts of which none is the longest.
    let in_all =
        |(_, late): &(&MissedJob, &Finding)| late.evidence.iter().map(|one| one.amount_ns.as_ns()).max();
    let is_greater = blamed.as_ref().and_then(in_all) > seen.map(|(_, finding)| excess(finding));
    let text = match (seen.filter(|_| !is_greater), blamed) {
        (Some((job, finding)), _) => {
            let own = format!("{} job {}", job.task, job.job);
            let place = match finding.message.contains(&own) {
                true => String::new(),
                false => format!(" (in the busy window of {own})"),
            };
            let by = if is_machines { ", by the machine: " } else { "; found beside it: " };
            format!("{by}{}{place}", finding.message)
        }
        (None, Some((job, late))) => {
            let most = late.evidence.iter().max_by_key(|evidence| evidence.amount_ns)?;
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

/// The worst thing that the machine did in a job's busy window.
fn worst_disturbance<'a>(found: &'a Verification, job: &MissedJob) -> Option<&'a Finding> {
    let is_of_machine = |check: Check| {
        // A gap between two jobs of a thread, in which another one should have run, is a divergence.
        let of_machine = [
            Check::ForeignThread,
            Check::Interrupt,
            Check::Steal,
            Check::Gap,
            Check::Starvation,
            Check::Divergence,
        ];
        of_machine.contains(&check)
    };
    // What was found of the job itself is told at its end.
    let meets = |finding: &&Finding| {
        is_about(finding, job) || (finding.from_ns < job.to_ns && finding.to_ns > job.from_ns)
    };
    let here = found.findings.iter().filter(|finding| finding.class == Class::MachineDisturbed);
    let here = here.filter(|finding| finding.cpu == job.cpu).filter(meets);
    let worst = |of_this: &dyn Fn(Check) -> bool| {
        here.clone().filter(|finding| of_this(finding.check)).max_by_key(|finding| excess(finding))
    };
    // A late release says less than what made it late.
    worst(&is_of_machine).or_else(|| worst(&|check| check == Check::Release))
}

fn excess(finding: &Finding) -> u64 {
    let of = |span: Option<horolog_time::Span>| span.map_or(0, |span| span.as_ns());
    of(finding.observed_ns).saturating_sub(of(finding.allowed_ns))
}
