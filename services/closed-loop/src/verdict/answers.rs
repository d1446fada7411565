//! The three answers.

use super::{Answer, Asked, Ended, Evidence, Question};
use horolog_analysis::{Analysis, Schedulable, TaskVerdict, Verdict as TaskWord};
use horolog_model::{Arrival, System, Task, TaskId};
use horolog_trace::TaskOutcome;
use horolog_verify::{TaskVerification, Verdict, Verification};

/// The least number of judged jobs that decides about a task that has as many.
const LEAST_JOBS: u64 = 10;

/// A task of which too few jobs were judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Uncovered {
    pub(super) task: String,
    pub(super) judged: u64,
    pub(super) released: u64,
    /// The most frequent reason, and how many jobs it concerns.
    pub(super) reason: Option<(String, u64)>,
}

/// What the questions are answered with, and what is missing.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    pub(super) proof: Option<Answer>,
    pub(super) model: Option<Answer>,
    pub(super) deadlines: Option<Answer>,
    /// Hard tasks, devices and requests that missed, and how often.
    pub(super) missed: Vec<(String, u64)>,
    pub(super) uncovered: Vec<Uncovered>,
    /// Jobs of hard tasks.
    pub(super) judged: u64,
    pub(super) released: u64,
}

impl Answers {
    pub(super) fn of(evidence: &Evidence<'_>, asked: &Asked) -> Answers {
        let missed = missed(evidence);
        let uncovered = uncovered(evidence, asked);
        let (judged, released) = counts(evidence);
        let proof = evidence.proof.map(|analysis| match analysis.schedulable {
            Schedulable::Yes => Answer::Yes,
            Schedulable::No => Answer::No,
            Schedulable::Unknown if beyond(evidence, analysis).next().is_some() => Answer::No,
            Schedulable::Unknown => Answer::Undecided,
        });
        // Without a single job nothing was seen of any deadline.
        let is_silent = judged == 0 && hard(evidence.system).next().is_some();
        let is_covered = if uncovered.is_empty() && !is_silent { Answer::Yes } else { Answer::Undecided };
        Answers {
            proof,
            model: model(evidence, asked, is_covered),
            deadlines: deadlines(evidence, !missed.is_empty() || has_failed(evidence), is_covered),
            missed,
            uncovered,
            judged,
            released,
        }
    }

    pub(super) fn of_question(&self, question: Question) -> Option<Answer> {
        match question {
            Question::Proof => self.proof,
            Question::Model => self.model,
            Question::Deadlines => self.deadlines,
        }
    }
}

/// Hard tasks whose proof fails by the machine's costs: with them the bound lies beyond the deadline, or the task misses without
/// any. Tests with costs are sufficient, so the analysis itself leaves them undecided; a proof that gives a bound beyond the
/// deadline has failed all the same.
pub(super) fn beyond<'a>(
    evidence: &'a Evidence<'_>,
    analysis: &'a Analysis,
) -> impl Iterator<Item = &'a TaskVerdict> {
    let free = evidence.without_costs.map(|without| without.tasks.as_slice()).unwrap_or_default();
    hard_verdicts(evidence, analysis).filter(move |task| {
        let Some(without) = free.iter().find(|one| one.name == task.name) else { return false };
        let is_beyond = task.response.zip(task.deadline).is_some_and(|(bound, deadline)| bound > deadline);
        task.verdict != TaskWord::Meets && (is_beyond || without.verdict == TaskWord::Misses)
    })
}

/// What was proved of the hard tasks.
pub(super) fn hard_verdicts<'a>(
    evidence: &'a Evidence<'_>,
    analysis: &'a Analysis,
) -> impl Iterator<Item = &'a TaskVerdict> {
    let is_hard = |task: &&TaskVerdict| {
        let id = evidence.system.find_task(&task.name);
        id.is_none_or(|id| !evidence.system.is_soft(id))
    };
    analysis.tasks.iter().filter(is_hard)
}

/// The outcomes of the hard tasks.
pub(super) fn hard_outcomes<'a>(evidence: &'a Evidence<'_>) -> impl Iterator<Item = &'a TaskOutcome> {
    let outcomes = evidence.outcome.map(|outcome| outcome.tasks.as_slice()).unwrap_or_default();
    let tasks = evidence.system.task_ids().zip(outcomes);
    tasks.filter(|(id, _)| !evidence.system.is_soft(*id)).map(|(_, task)| task)
}

/// Whether a hard task's code said that a job failed: what was to be there by its deadline is not.
fn has_failed(evidence: &Evidence<'_>) -> bool {
    hard_outcomes(evidence).any(|task| task.failed > 0)
}

/// Whether assumptions and bounds were kept.
fn model(evidence: &Evidence<'_>, asked: &Asked, is_covered: Answer) -> Option<Answer> {
    let simulated = evidence.simulated.map(|found| findings(found, true));
    let ended = match evidence.ended {
        Ended::NotPermitted(_) => return simulated.filter(|answer| *answer == Answer::No),
        // Whose code ends the run has broken the model.
        Ended::Crashed(_) => return Some(Answer::No),
        Ended::Stopped { .. } | Ended::StoppedBefore(_) | Ended::Killed(_) => Answer::Undecided,
        Ended::Whole | Ended::NotRun => Answer::Yes,
    };
    // The code locks or hands over what the file does not have, so it is not the file's system that ran.
    let names = match hard_outcomes(evidence).any(|task| task.unknown_names > 0) {
        true => Answer::No,
        false => Answer::Yes,
    };
    let found =
        evidence.verified.map(|found| findings(found, asked.strict).and(is_covered).and(ended).and(names));
    match (simulated, found) {
        (Some(simulated), Some(found)) => Some(simulated.and(found)),
        (Some(simulated), None) => Some(simulated.and(is_covered).and(ended)),
        (None, found) => found,
    }
}

/// What the findings of one trace say.
fn findings(found: &Verification, strict: bool) -> Answer {
    let broken = found.model_violated + found.bound_violated + found.schedule_differs;
    let doubtful = found.machine_disturbed > 0 || !found.complete;
    // What is seen behind a hole may be the hole's.
    let has_hole = found.damage.as_ref().is_some_and(|damage| damage.is_hole);
    match () {
        () if has_hole => Answer::Undecided,
        () if broken > 0 => Answer::No,
        () if found.verdict == Verdict::Unknown => Answer::Undecided,
        () if found.cannot_tell > 0 => Answer::Undecided,
        () if strict && doubtful => Answer::No,
        () => Answer::Yes,
    }
}

/// Whether every hard deadline was met.
fn deadlines(evidence: &Evidence<'_>, has_missed: bool, is_covered: Answer) -> Option<Answer> {
    if matches!(evidence.ended, Ended::NotPermitted(_)) {
        return None;
    }
    if has_missed || matches!(evidence.ended, Ended::Crashed(_)) {
        return Some(Answer::No);
    }
    if evidence.verified.is_none() && evidence.outcome.is_none() && evidence.simulated.is_none() {
        return (!matches!(evidence.ended, Ended::Whole | Ended::NotRun)).then_some(Answer::Undecided);
    }
    let is_readable = evidence.verified.is_none_or(|found| {
        // What does not show the jobs shows no deadline that was met, and neither does a run that was ended.
        found.damage.is_none() && found.records > 0 && found.ended_by.is_none()
    });
    let is_whole = matches!(evidence.ended, Ended::Whole | Ended::NotRun);
    Some(if is_whole && is_readable { is_covered } else { Answer::Undecided })
}

/// The hard tasks of the file, by their ids.
fn hard(system: &System) -> impl Iterator<Item = (usize, &Task)> {
    let tasks = system.tasks().iter().enumerate();
    tasks.filter(|(index, _)| !system.is_soft(TaskId(*index as u32)))
}

/// Who missed a hard deadline, and how often: by the larger of the two counts.
fn missed(evidence: &Evidence<'_>) -> Vec<(String, u64)> {
    let mut missed = Vec::new();
    // Behind a hole nothing is known of what a trace seems to show.
    let is_whole = |found: &&Verification| !found.damage.as_ref().is_some_and(|damage| damage.is_hole);
    let verified = evidence.verified.filter(is_whole);
    let simulated = evidence.simulated.filter(|_| evidence.ended == Ended::NotRun);
    for (index, task) in hard(evidence.system) {
        let of = |found: Option<&Verification>| found.and_then(|found| Some(found.tasks.get(index)?.missed));
        let told = evidence.outcome.and_then(|outcome| Some(outcome.tasks.get(index)?.missed));
        let most = [of(verified), of(simulated), told].into_iter().flatten().max().unwrap_or(0);
        if most > 0 {
            missed.push((task.name.clone(), most));
        }
    }
    if let Some(outcome) = evidence.outcome {
        let devices = outcome.devices.iter().filter(|device| !device.is_soft && device.missed > 0);
        missed.extend(devices.map(|device| (device.name.clone(), device.missed)));
        let requests = outcome.requests.iter().zip(evidence.system.requests());
        let late = requests.filter(|(found, file)| file.deadline.is_some() && found.missed > 0);
        missed.extend(late.map(|(found, _)| (found.name.clone(), found.missed)));
    }
    missed.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    missed
}

/// Judged and released jobs of all hard tasks.
fn counts(evidence: &Evidence<'_>) -> (u64, u64) {
    let pairs = hard(evidence.system).filter_map(|(index, _)| job_counts(evidence, index));
    pairs.fold((0, 0), |(judged, released), one| (judged + one.0, released + one.1))
}

/// Of one task: jobs judged, and jobs that were to be judged; `None` where nothing tells of it.
fn job_counts(evidence: &Evidence<'_>, task: usize) -> Option<(u64, u64)> {
    let verified = evidence.verified.or(evidence.simulated);
    if let Some(found) = verified {
        return found.tasks.get(task).map(|task: &TaskVerification| (task.judged, task.released));
    }
    let outcome = evidence.outcome?;
    let of_outcome = |task: &TaskOutcome| {
        // A simulation ends at its horizon, whatever is pending; a run waits for its last jobs.
        let is_late = outcome.backend != "sim";
        let unfinished = if is_late { 0 } else { task.unfinished };
        (task.completed, task.jobs.saturating_sub(unfinished).max(task.completed))
    };
    outcome.tasks.get(task).map(of_outcome)
}

/// The hard tasks of which too few jobs were judged.
fn uncovered(evidence: &Evidence<'_>, asked: &Asked) -> Vec<Uncovered> {
    let permille = if asked.strict { 1000 } else { asked.coverage_permille.min(1000) };
    let mut uncovered = Vec::new();
    for (index, task) in hard(evidence.system) {
        let Some((judged, released)) = job_counts(evidence, index) else { continue };
        let must_have_jobs =
            matches!(task.arrival, Arrival::Periodic { .. }) && evidence.system.modes().is_empty();
        let is_silent = released == 0 && must_have_jobs;
        let is_short = u128::from(judged) * 1000 < u128::from(released) * u128::from(permille);
        if is_silent || is_short || judged < released.min(LEAST_JOBS) {
            let found = evidence.verified.or(evidence.simulated).and_then(|found| found.tasks.get(index));
            let reasons = found.into_iter().flat_map(|found| &found.unjudged);
            let reason = reasons.max_by_key(|one| one.jobs).map(|one| (one.reason.clone(), one.jobs));
            uncovered.push(Uncovered { task: task.name.clone(), judged, released, reason });
        }
    }
    uncovered
}
