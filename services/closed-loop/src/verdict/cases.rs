//! What each question is answered with of each task, for reports that list cases.

use super::answers::{Answers, beyond, hard_verdicts};
use super::{Answer, Asked, Case, Evidence, Question};
use horolog_analysis::{Analysis, Verdict as TaskWord};
use horolog_verify::Class;

/// The cases of every question that is answered: each hard task's, and what else has a hard deadline.
pub(super) fn cases(evidence: &Evidence<'_>, asked: &Asked, answers: &Answers) -> Vec<Case> {
    let mut cases = Vec::new();
    if let Some(analysis) = evidence.proof {
        proofs(evidence, analysis, &mut cases);
    }
    let hard = evidence.system.task_ids().filter(|id| !evidence.system.is_soft(*id));
    let names: Vec<&str> = hard.map(|id| evidence.system.task(id).name.as_str()).collect();
    if answers.model.is_some() {
        cases.extend(names.iter().map(|name| model(evidence, asked, answers, name)));
    }
    if answers.deadlines.is_some() {
        cases.extend(names.iter().map(|name| deadline(answers, "task", name)));
        let others = answers.missed.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        cases.extend(others.map(|(name, _)| {
            let is_device = evidence.system.devices().iter().any(|device| device.name == *name);
            deadline(answers, if is_device { "device" } else { "request" }, name)
        }));
    }
    for case in &mut cases {
        // What is asked of the whole is answered by the whole: no part says worse than it.
        if let Some(whole) = answers.of_question(case.question)
            && case.answer.and(whole) != whole
        {
            case.answer = whole;
        }
    }
    cases
}

fn proofs(evidence: &Evidence<'_>, analysis: &Analysis, cases: &mut Vec<Case>) {
    let beyond: Vec<&str> = beyond(evidence, analysis).map(|task| task.name.as_str()).collect();
    for task in hard_verdicts(evidence, analysis) {
        let answer = match task.verdict {
            TaskWord::Misses => Answer::No,
            _ if beyond.contains(&task.name.as_str()) => Answer::No,
            TaskWord::Meets => Answer::Yes,
            TaskWord::Unknown => Answer::Undecided,
        };
        let text = match (task.response, task.deadline) {
            (Some(bound), Some(deadline)) => {
                format!("bound {} of {}", bound.rounded(), deadline.rounded())
            }
            (Some(bound), None) => format!("bound {}, no deadline", bound.rounded()),
            (None, _) => match analysis.notes.iter().find(|note| note.starts_with("no test")) {
                Some(why) if task.tests.is_empty() => format!("no bound: {why}"),
                _ => "no bound".to_owned(),
            },
        };
        let text = if task.tests.is_empty() { text } else { format!("{text}, by {}", task.test) };
        cases.push(Case::new("task", &task.name, Question::Proof, answer, text));
    }
    for device in analysis.devices.iter().filter(|device| !device.soft && device.deadline.is_some()) {
        let answer = if device.verdict == TaskWord::Meets { Answer::Yes } else { Answer::Undecided };
        let bound = device
            .response
            .map_or_else(|| "no bound".to_owned(), |bound| format!("bound {}", bound.rounded()));
        cases.push(Case::new("device", &device.name, Question::Proof, answer, bound));
    }
}

fn model(evidence: &Evidence<'_>, asked: &Asked, answers: &Answers, name: &str) -> Case {
    let traces = || [evidence.verified, evidence.simulated].into_iter().flatten();
    let groups = || traces().flat_map(|found| &found.groups).filter(|group| group.subject == name);
    let broken = groups().find(|group| {
        let is_broken =
            [Class::BoundViolated, Class::ModelViolated, Class::ScheduleDiffers].contains(&group.class);
        is_broken || (asked.strict && group.class == Class::MachineDisturbed)
    });
    let open = groups().find(|group| group.class == Class::CannotTell);
    let message = |class: Class| {
        let findings = traces().flat_map(|found| &found.findings);
        let mut of_task = findings.filter(|one| one.class == class && one.task.as_deref() == Some(name));
        of_task.next().map_or_else(|| class.to_string(), |finding| finding.message.clone())
    };
    let (answer, text) = match (broken, open, uncovered(answers, name)) {
        (Some(group), ..) => (Answer::No, message(group.class)),
        (None, Some(group), _) => (Answer::Undecided, message(group.class)),
        (None, None, Some(short)) => (Answer::Undecided, short),
        (None, None, None) => (Answer::Yes, "assumptions and bounds were kept".to_owned()),
    };
    Case::new("task", name, Question::Model, answer, text)
}

fn deadline(answers: &Answers, section: &'static str, name: &str) -> Case {
    let missed = answers.missed.iter().find(|(missed, _)| missed == name).map(|(_, count)| *count);
    let (answer, text) = match (missed, uncovered(answers, name)) {
        (Some(1), _) => (Answer::No, "1 deadline missed".to_owned()),
        (Some(count), _) => (Answer::No, format!("{count} deadlines missed")),
        (None, Some(short)) => (Answer::Undecided, short),
        (None, None) => (Answer::Yes, "no deadline missed".to_owned()),
    };
    Case::new(section, name, Question::Deadlines, answer, text)
}

fn uncovered(answers: &Answers, name: &str) -> Option<String> {
    let short = answers.uncovered.iter().find(|short| short.task == name)?;
    Some(format!("{} of {} jobs judged", short.judged, short.released))
}
