//! The closing line, and what to do.

use super::answers::{Answers, beyond, hard_verdicts};
use super::{Answer, Asked, Cause, Ended, Evidence, Question, Word, advice, cause};
use horolog_analysis::{Analysis, TaskVerdict, Verdict as TaskWord};
use horolog_model::{Body, System, TaskId};
use horolog_report::grouped;
use horolog_time::Span;
use horolog_verify::{Check, Class, Finding, FindingGroup, Verdict, Verification};

/// The reason, and what to do.
pub(super) struct Said {
    pub(super) text: String,
    pub(super) help: Option<String>,
}

impl Said {
    fn new(text: impl Into<String>, help: impl Into<Option<String>>) -> Said {
        Said { text: text.into(), help: help.into() }
    }
}

/// How many names a line lists.
const NAMED: usize = 3;

pub(super) fn say(evidence: &Evidence<'_>, asked: &Asked, answers: &Answers, word: Word) -> Said {
    let mut said = match word {
        Word::Holds => Said::new(holds(evidence, asked, answers), None),
        Word::No => no(evidence, asked, answers),
        Word::Undecided => undecided(evidence, asked, answers),
        Word::NotAllowed => return not_allowed(evidence, answers),
    };
    if matches!(word, Word::Holds | Word::No) {
        said.text.push_str(&soft(evidence));
    }
    if backend(evidence).is_some_and(|backend| backend == "linux-best-effort") {
        said.text.push_str("; best effort: nothing was asked of the scheduling class");
    }
    if let Some(failed) = failed(evidence).filter(|failed| !said.text.contains(failed)) {
        said.text.push_str(&format!("; {failed}"));
    }
    if let Ended::Stopped { after, of } = &evidence.ended
        && !said.text.contains("stopped")
    {
        said.text.push_str(&format!("; the run was stopped after {} of {of}", after.rounded()));
    }
    if let Ended::NotPermitted(reason) = &evidence.ended {
        // The notes and the JSON have all of a long one.
        const MOST: usize = 80;
        let reason = first_line(reason);
        let short = if reason.len() > MOST { "this machine does not allow it" } else { reason };
        said.text.push_str(&format!("; not run: {short}"));
    }
    said
}

/// The first line of an error's words.
pub(crate) fn first_line(words: &str) -> &str {
    words.lines().next().unwrap_or_default().trim_start_matches("error: ")
}

/// Which hard task's code said that its jobs failed; of several the first, and how many more.
fn failed(evidence: &Evidence<'_>) -> Option<String> {
    let failed: Vec<_> = super::answers::hard_outcomes(evidence).filter(|task| task.failed > 0).collect();
    let first = failed.first()?;
    let more = match failed.len() {
        1 => String::new(),
        all => format!(", and jobs of {}", tasks(all as u64 - 1)),
    };
    let (count, jobs) = (grouped(first.failed), grouped(first.jobs));
    Some(format!("{}: {count} of {jobs} jobs returned an error{more}", first.name))
}

/// Which hard task's code named what the file does not have.
fn unknown_names(evidence: &Evidence<'_>) -> Option<String> {
    let task = super::answers::hard_outcomes(evidence).find(|task| task.unknown_names > 0)?;
    let (name, calls) = (&task.name, grouped(task.unknown_names));
    Some(format!(
        "model violated by {name}: {calls} calls did nothing: the file gives it nothing of that name, or the lock does not nest with one that it held"
    ))
}

/// What was found, the gravest class first.
pub(super) fn causes(evidence: &Evidence<'_>) -> Vec<Cause> {
    let found = [evidence.verified, evidence.simulated];
    let mut groups: Vec<&FindingGroup> =
        found.into_iter().flatten().flat_map(|found| &found.groups).collect();
    groups.sort_by_key(|group| (gravity(group.class), std::cmp::Reverse(group.count)));
    let cause = |group: &FindingGroup| Cause {
        class: group.class.to_string(),
        check: group.check.name(),
        subject: group.subject.clone(),
        count: group.count,
        worst_excess_ns: group.worst_excess_ns,
    };
    groups.into_iter().map(cause).collect()
}

fn gravity(class: Class) -> u8 {
    match class {
        Class::BoundViolated => 0,
        Class::ModelViolated => 1,
        Class::ScheduleDiffers => 2,
        Class::CannotTell => 3,
        Class::MachineDisturbed => 4,
    }
}

fn holds(evidence: &Evidence<'_>, asked: &Asked, answers: &Answers) -> String {
    let mut parts = Vec::new();
    if asked.gate.has(Question::Proof)
        && let Some(analysis) = evidence.proof
    {
        let hard = hard_verdicts(evidence, analysis).count();
        let word = if has_soft(evidence.system) { "hard " } else { "" };
        parts.push(format!("{} proved{}", counted(hard as u64, word, "task"), with(evidence.costs)));
    }
    if asked.gate.has(Question::Model) || asked.gate.has(Question::Deadlines) {
        let simulated = if is_simulation(evidence) { "simulated " } else { "" };
        let (judged, released) = (answers.judged, answers.released);
        let of = if has_soft(evidence.system) { " of hard tasks" } else { "" };
        parts.push(match (evidence.verified, evidence.simulated) {
            (None, None) => format!("{} {simulated}{}{of} done", grouped(judged), jobs(judged)),
            _ => {
                format!(
                    "{} of {} {simulated}{}{of} judged",
                    grouped(judged),
                    grouped(released),
                    jobs(released)
                )
            }
        });
    }
    if asked.gate.has(Question::Deadlines) {
        parts.push("no deadline missed".to_owned());
        let left_out = skipped(evidence);
        if left_out > 0 {
            parts.push(format!("{} {} left out by the file's policy", grouped(left_out), jobs(left_out)));
        }
    }
    parts.join(", ")
}

/// Jobs of hard tasks that an overrun policy or a mode skipped or dropped: they have met no deadline and missed none.
fn skipped(evidence: &Evidence<'_>) -> u64 {
    let outcomes = evidence.outcome.map(|outcome| outcome.tasks.as_slice()).unwrap_or_default();
    let hard = evidence.system.task_ids().zip(outcomes).filter(|(id, _)| !evidence.system.is_soft(*id));
    hard.map(|(_, task)| task.skipped).sum()
}

/// Where jobs were seen.
fn backend<'a>(evidence: &Evidence<'a>) -> Option<&'a str> {
    let verified = evidence.verified.map(|found| found.backend.as_str());
    verified.or(evidence.outcome.map(|outcome| outcome.backend.as_str()))
}

/// Whether all that is known of jobs comes from a simulation.
fn is_simulation(evidence: &Evidence<'_>) -> bool {
    backend(evidence).is_none_or(|backend| backend == "sim")
}

fn no(evidence: &Evidence<'_>, asked: &Asked, answers: &Answers) -> Said {
    let is_no = |question| asked.gate.has(question) && answers.of_question(question) == Some(Answer::No);
    if let Ended::Crashed(what) = &evidence.ended
        && (is_no(Question::Model) || is_no(Question::Deadlines))
    {
        let what = what.lines().next().unwrap_or_default().trim_start_matches("error: ");
        return Said::new(format!("the run ended before its time: {what}"), look(evidence));
    }
    if is_no(Question::Model) {
        return model_broken(evidence, answers);
    }
    if is_no(Question::Deadlines) {
        return missed(evidence, answers);
    }
    proof_fails(evidence, answers)
}

/// An assumption or a bound was broken, or the code ended the run.
fn model_broken(evidence: &Evidence<'_>, answers: &Answers) -> Said {
    let broken = |found: &&Verification| found.groups.iter().any(|group| gravity(group.class) < 3);
    let found = [evidence.verified, evidence.simulated].into_iter().flatten().find(broken);
    if found.is_none()
        && let Some(text) = unknown_names(evidence)
    {
        let help =
            "correct the call, which the notes name, or give the task a `[[task.section]]` of that resource";
        return Said::new(text, help.to_owned());
    }
    let Some(found) = found else {
        return Said::new(disturbed_strictly(evidence), look(evidence));
    };
    let mut groups: Vec<&FindingGroup> =
        found.groups.iter().filter(|group| gravity(group.class) < 3).collect();
    // What follows from something else comes after it.
    let follows = |check: Check| matches!(check, Check::Response | Check::Deadline | Check::Link);
    groups.sort_by_key(|group| (gravity(group.class), follows(group.check), std::cmp::Reverse(group.count)));
    let group = groups[0];
    let of = if found.backend == "sim" && evidence.verified.is_some_and(|run| run.backend != "sim") {
        " in the simulation"
    } else {
        ""
    };
    let (what, help) = broken_group(evidence, found, group);
    // Where one task runs on while a more important one waits, the message names both.
    let by = match group.check {
        Check::PriorityInversion
        | Check::EarliestDeadlineFirst
        | Check::FirstInFirstOut
        | Check::Divergence
        | Check::Blocking => String::new(),
        _ => format!(" by {}", group.subject),
    };
    let mut text = format!("{}{by}{of}: {what}", group.class);
    let others: Vec<(String, u64)> =
        answers.missed.iter().filter(|(name, _)| *name != group.subject).cloned().collect();
    let own = answers.missed.iter().find(|(name, _)| *name == group.subject);
    if let Some((_, count)) = own {
        text.push_str(&format!("; it missed {}", deadlines(*count)));
    }
    if !others.is_empty() {
        text.push_str(&format!("; missed: {}", list(&others)));
    }
    let more = groups.iter().filter(|other| other.subject != group.subject).count();
    if more > 0 && others.is_empty() {
        let noun = if more == 1 { "finding" } else { "findings" };
        text.push_str(&format!("; {more} more {noun} of others"));
    }
    Said::new(text, help)
}

/// What is wrong with a task, and what to do.
fn broken_group(
    evidence: &Evidence<'_>,
    found: &Verification,
    group: &FindingGroup,
) -> (String, Option<String>) {
    let finding = found.findings.iter().find(|one| is_of(one, group));
    let task = evidence.system.tasks().iter().position(|task| task.name == group.subject);
    let jobs = task.and_then(|task| found.tasks.get(task)).map_or(0, |task| task.jobs);
    if group.class == Class::BoundViolated {
        let message = finding.map_or_else(String::new, |finding| finding.message.clone());
        let file = found.counterexample.as_deref().unwrap_or("the trace");
        let help = format!("this is a defect of horolog: please send the system file and {file}");
        return (message, Some(help));
    }
    if let (Check::Execution, Some(index)) = (group.check, task) {
        let wcet = evidence.system.tasks()[index].wcet;
        let worst = wcet.checked_add(group.worst_excess_ns).unwrap_or(wcet);
        if let Some(unended) = found.tasks.get(index).and_then(|task| task.unended_beyond_wcet) {
            // How long it would have gone on is not known: no wcet is advised.
            let more = match group.count.saturating_sub(1) {
                0 => String::new(),
                more => format!("; {} more executed above it", grouped(more)),
            };
            let executed = beside(unended.executed_ns, wcet);
            let what = format!(
                "job {} did not end: it had executed for {executed}, its wcet is {wcet}{more}",
                unended.job
            );
            return (what, look(evidence));
        }
        // A job that has not ended has executed an unknown time.
        let done = found.tasks.get(index).map_or(jobs, |task| task.completed.max(group.count));
        let done = if done < jobs { format!("{} completed", grouped(done)) } else { grouped(jobs) };
        let what = format!(
            "{} of {done} jobs executed above wcet {wcet} (worst {})",
            grouped(group.count),
            beside(worst, wcet)
        );
        return (what, advice::on_execution(evidence, index, worst));
    }
    let message = finding.map_or_else(|| group.check.name().to_owned(), |finding| finding.message.clone());
    let ended = message.strip_prefix(&format!("the program of {} ", group.subject));
    if let Some((how, _)) =
        ended.and_then(|rest| rest.split_once(" by ").filter(|_| group.check == Check::MissingJob))
    {
        let help = see_output(evidence, &group.subject, how).or_else(|| look(evidence));
        return (message, help);
    }
    let what = if group.count > 1 { format!("{message} ({} times)", grouped(group.count)) } else { message };
    (what, look(evidence))
}

fn is_of(finding: &Finding, group: &FindingGroup) -> bool {
    let is_same = finding.class == group.class && finding.check == group.check;
    let is_about = finding.task.as_ref().is_none_or(|task| *task == group.subject);
    // The message begins with the task that keeps a more important one waiting; the finding's task is the one that waits.
    is_same && (is_about || finding.message.starts_with(&group.subject))
}

/// Only disturbances, and the caller wants none.
fn disturbed_strictly(evidence: &Evidence<'_>) -> String {
    let Some(found) = evidence.verified else { return "the model was broken".to_owned() };
    if !found.complete {
        return format!("--strict wants a whole record, and {} records were lost", found.losses.total());
    }
    format!("--strict wants no disturbance, and there were {}: {}", found.machine_disturbed, culprits(found))
}

/// Whom the machine's disturbances are due to, in words.
fn culprits(found: &Verification) -> String {
    let mut groups: Vec<&FindingGroup> =
        found.groups.iter().filter(|group| group.class == Class::MachineDisturbed).collect();
    // Late releases and responses follow from these.
    let is_cause = |group: &FindingGroup| {
        let named = [Check::ForeignThread, Check::Interrupt, Check::Steal, Check::SelfSuspension];
        named.contains(&group.check)
    };
    groups.sort_by_key(|group| (!is_cause(group), std::cmp::Reverse(group.worst_excess_ns)));
    let Some(group) = groups.first() else { return "by what, no record says".to_owned() };
    let finding = found.findings.iter().find(|one| one.class == group.class && one.check == group.check);
    finding.map_or_else(
        || format!("{} ({})", group.subject, group.check.name()),
        |finding| finding.message.clone(),
    )
}

fn missed(evidence: &Evidence<'_>, answers: &Answers) -> Said {
    if answers.missed.is_empty()
        && let Some(failed) = failed(evidence)
    {
        return Said::new(failed, look(evidence));
    }
    let all: u64 = answers.missed.iter().map(|(_, count)| count).sum();
    let mut text = format!("{} missed ({})", deadlines(all), list(&answers.missed));
    if is_simulation(evidence) {
        text.push_str(" in the simulation");
    }
    // A job whose program ended has no end.
    let ended = answers.missed.iter().find_map(|(name, _)| Some((name, program_ended(evidence, name)?)));
    if let Some((name, how)) = ended {
        text.push_str(&format!("; the program of {name} {how} before the run did"));
        return Said::new(text, see_output(evidence, name, how));
    }
    // A job that never ended explains what it and those behind it missed.
    if let Some(stuck) = left_behind(evidence, answers) {
        text.push_str(&format!("; {stuck}"));
        return Said::new(text, look(evidence));
    }
    let Some(found) = evidence.verified.filter(|found| found.backend != "sim") else {
        return Said::new(text, look(evidence));
    };
    let named = cause::of_missed(evidence, found, &answers.missed);
    text.push_str(&named.text);
    if named.is_machines && found.backend == "linux-best-effort" {
        let help = "give this user the right for real-time scheduling (`horolog doctor --for run`); best effort promises nothing";
        return Said::new(text, help.to_owned());
    }
    if named.is_machines {
        let cpus: Vec<String> = evidence.system.platform().cpus.iter().map(|cpu| cpu.0.to_string()).collect();
        let help = format!(
            "isolate CPU {} (`horolog doctor`); on a shared machine gate with `--gate proof,model`",
            cpus.join(",")
        );
        return Said::new(text, help);
    }
    Said::new(text, look(evidence))
}

/// What the run says of the last job of a task that missed, where its code did not come back.
fn left_behind<'a>(evidence: &'a Evidence<'_>, answers: &Answers) -> Option<&'a String> {
    let notes = evidence.outcome.map(|outcome| outcome.notes.as_slice()).unwrap_or_default();
    let is_of = |note: &str, name: &str| {
        note.strip_prefix(name).is_some_and(|rest| rest.starts_with(": its last job did not end"))
    };
    notes.iter().find(|note| answers.missed.iter().any(|(name, _)| is_of(note, name)))
}

fn proof_fails(evidence: &Evidence<'_>, answers: &Answers) -> Said {
    let Some(analysis) = evidence.proof else { return Said::new("not proved", None) };
    let missing: Vec<_> =
        hard_verdicts(evidence, analysis).filter(|task| task.verdict == TaskWord::Misses).collect();
    let missing = if missing.is_empty() { beyond(evidence, analysis).collect() } else { missing };
    let mut text = match missing.as_slice() {
        [] => format!("the proof fails{}", with(evidence.costs)),
        [first, others @ ..] => {
            let bound = match (first.response, first.deadline) {
                (Some(bound), Some(deadline)) => format!(": {} of {deadline}", beside(bound, deadline)),
                _ => String::new(),
            };
            let more = if others.is_empty() {
                String::new()
            } else {
                format!("; {} more", tasks(others.len() as u64))
            };
            let free = without_costs(evidence, &first.name);
            format!("{} misses in the proof{}{bound}{free}{more}", first.name, with(evidence.costs))
        }
    };
    if answers.deadlines == Some(Answer::Yes) && evidence.verified.is_some() && !is_simulation(evidence) {
        text.push_str(&format!("; all {} measured jobs in time", grouped(answers.judged)));
    }
    Said::new(text, missing.first().and_then(|task| helps(analysis, task)))
}

/// What makes every hard deadline of the processor of `late` hold: a change of that task, or of one that delays it.
fn helps(analysis: &Analysis, late: &TaskVerdict) -> Option<String> {
    let processor = analysis.processors.iter().find(|processor| processor.cpu == late.cpu)?;
    let helps = &processor.sensitivity.as_ref()?.helps;
    let words: Vec<String> = helps.iter().take(NAMED).map(ToString::to_string).collect();
    let goal = match analysis.processors.len() {
        1 => "every hard deadline holds".to_owned(),
        _ => format!("every hard deadline of CPU {} holds", late.cpu.0),
    };
    (!words.is_empty()).then(|| format!("{goal} with {}", words.join(", or ")))
}

/// A task that has a bound without the machine's costs and none with them.
fn undecided_by_costs(evidence: &Evidence<'_>) -> Option<String> {
    let is_open = |task: &&TaskVerdict| task.verdict == TaskWord::Unknown && task.response.is_none();
    let open = hard_verdicts(evidence, evidence.proof?).find(is_open)?;
    let free = without_costs(evidence, &open.name);
    let text = format!("{} has no bound in the proof{}{free}", open.name, with(evidence.costs));
    (!free.is_empty()).then_some(text)
}

/// Tasks whose bound is above the deadline, where the test does not know the least bound: nothing is decided of them.
fn undecided_by_bound(evidence: &Evidence<'_>) -> Option<Said> {
    let beyond = |task: &&TaskVerdict| {
        let is_above = task.response.zip(task.deadline).is_some_and(|(bound, deadline)| bound > deadline);
        task.verdict == TaskWord::Unknown && is_above
    };
    let mut open = hard_verdicts(evidence, evidence.proof?).filter(beyond);
    let first = open.next()?;
    let (bound, deadline) = first.response.zip(first.deadline)?;
    let excess = Span::from_ns(bound.as_ns() - deadline.as_ns()).rounded();
    let more = match open.count() {
        0 => String::new(),
        many => format!("; {} more", tasks(many as u64)),
    };
    let text = format!(
        "{}: its bound {} is {excess} above its deadline {}, and the test ({}) does not say that it is reached{more}",
        first.name,
        beside(bound, deadline),
        deadline.rounded(),
        first.test
    );
    let parts = format!("`horolog analyze --explain {}` names what the bound is made of", first.name);
    let help = helps(evidence.proof?, first).unwrap_or(parts);
    Some(Said::new(text, help))
}

/// The bound of a task on a machine that costs nothing, where that is known.
fn without_costs(evidence: &Evidence<'_>, task: &str) -> String {
    let tasks = evidence.without_costs.map(|analysis| analysis.tasks.as_slice()).unwrap_or_default();
    let bound = tasks.iter().find(|one| one.name == task).and_then(|one| one.response);
    bound.map_or_else(String::new, |bound| format!("; without costs {}", bound.rounded()))
}

fn undecided(evidence: &Evidence<'_>, asked: &Asked, answers: &Answers) -> Said {
    let is_open = |question| {
        asked.gate.has(question) && answers.of_question(question).is_none_or(|one| one == Answer::Undecided)
    };
    let of_run = is_open(Question::Model) || is_open(Question::Deadlines);
    if let (true, Ended::Stopped { after, of }) = (of_run, &evidence.ended) {
        let text = if after.is_zero() {
            "stopped before a job was released".to_owned()
        } else {
            format!("the run was stopped: jobs were released for {} of {of}", after.rounded())
        };
        return Said::new(text, "run it to its end".to_owned());
    }
    if let (true, Ended::StoppedBefore(what)) = (of_run, &evidence.ended) {
        return Said::new(what.trim_start_matches("error: "), None);
    }
    if let (true, Ended::Killed(what)) = (of_run, &evidence.ended) {
        return Said::new(format!("the run ended before its time: {what}"), "run it again".to_owned());
    }
    if of_run && let Some(what) = evidence.verified.and_then(|found| found.ended_by.as_ref()) {
        return Said::new(format!("the run ended before its time: {what}"), "run it again".to_owned());
    }
    if of_run && let Some(said) = trace_decides_nothing(evidence) {
        return said;
    }
    if of_run && let Some(said) = answers.uncovered.iter().find_map(|short| without_program(evidence, short))
    {
        return said;
    }
    if of_run && let Some(short) = answers.uncovered.first() {
        return too_few(evidence, asked, short, answers.uncovered.len());
    }
    if of_run && answers.judged == 0 {
        return Said::new("no job was seen", "run it for longer".to_owned());
    }
    if of_run {
        let found = [evidence.verified, evidence.simulated].into_iter().flatten();
        let told = found.flat_map(|found| found.findings.iter()).find(|one| one.class == Class::CannotTell);
        if let Some(finding) = told {
            return Said::new(finding.message.clone(), look(evidence));
        }
        let open = [evidence.verified, evidence.simulated].into_iter().flatten();
        let note =
            open.filter(|found| found.verdict == Verdict::Unknown).flat_map(|found| &found.notes).next();
        if let Some(note) = note {
            return Said::new(note.clone(), look(evidence));
        }
    }
    if is_open(Question::Proof)
        && let Some(text) = undecided_by_costs(evidence)
    {
        return Said::new(text, None);
    }
    let notes = evidence.proof.map(|analysis| analysis.notes.as_slice()).unwrap_or_default();
    let reason = evidence.proof.and_then(|analysis| analysis.reasons.first());
    if let (true, None) = (is_open(Question::Proof), reason)
        && let Some(said) = undecided_by_bound(evidence)
    {
        return said;
    }
    let why = reason.or_else(|| notes.iter().find(|note| note.starts_with("no test"))).cloned();
    let why = why.or_else(|| of_first_task_without_bound(evidence)).or_else(|| notes.first().cloned());
    let text = why.unwrap_or_else(|| "no test decides whether every deadline holds".to_owned());
    Said::new(text, if is_open(Question::Proof) { advice::on_resources(evidence) } else { None })
}

/// Why the first task that is not proved has no bound, by the test that knows most.
fn of_first_task_without_bound(evidence: &Evidence<'_>) -> Option<String> {
    let is_open = |task: &&TaskVerdict| task.verdict == TaskWord::Unknown && task.response.is_none();
    hard_verdicts(evidence, evidence.proof?)
        .filter(is_open)
        .find_map(|task| Some(format!("{}: {}", task.name, task.tests.first()?.note.as_ref()?)))
}

/// A trace that cannot be read to its end, or holds nothing.
fn trace_decides_nothing(evidence: &Evidence<'_>) -> Option<Said> {
    let found = evidence.verified?;
    if let Some(damage) = &found.damage {
        return Some(Said::new(format!("the trace is damaged: {damage}"), "record it again".to_owned()));
    }
    if found.records == 0 {
        return Some(Said::new("the trace holds no record", "record it again".to_owned()));
    }
    None
}

/// Of a task without a job: its program has ended.
fn without_program(evidence: &Evidence<'_>, short: &super::answers::Uncovered) -> Option<Said> {
    let how = program_ended(evidence, &short.task).filter(|_| short.released == 0)?;
    let text = format!("no job of {} is on record: its program {how} before the run did", short.task);
    Some(Said::new(text, see_output(evidence, &short.task, how)))
}

/// How the program of a task ended before the run did, in words, where the run says so.
fn program_ended<'a>(evidence: &Evidence<'a>, task: &str) -> Option<&'a str> {
    let notes = evidence.outcome.map(|outcome| outcome.notes.as_slice()).unwrap_or_default();
    let beginning = format!("task {task}: its program ");
    let how =
        notes.iter().find_map(|note| note.strip_prefix(&beginning)?.strip_suffix(" before the run did"));
    // Whoever stops the run from a terminal stops its programs, too.
    const OF_WHO_STOPS: [&str; 4] = ["signal 1", "signal 2", "signal 3", "SIGTERM"];
    how.filter(|how| !OF_WHO_STOPS.iter().any(|signal| how.ends_with(signal)))
}

/// What to do about a program that ended in this way.
fn see_output(evidence: &Evidence<'_>, task: &str, how: &str) -> Option<String> {
    let task = evidence.system.tasks().iter().find(|one| one.name == task)?;
    let Some(Body::Command(words)) = &task.body else { return None };
    Some(format!("the program {how}: look at what it printed, or start it by itself: `{}`", words.join(" ")))
}

/// What helps a program whose periodic work is not in its first thread; no other try does.
const ELSEWHERE: &str = "the waits of a program's first thread alone end jobs, and here another thread waited: let the first thread do the work, give it as a \
     function (`body = { library = …, symbol = … }`), or record the program with perf and `horolog verify --map`";

/// Whether the run has found that of the task's program.
fn is_elsewhere(evidence: &Evidence<'_>, task: &str) -> bool {
    let notes = evidence.outcome.map(|outcome| outcome.notes.as_slice()).unwrap_or_default();
    let beginning = format!("task {task}: the first thread of its program");
    notes.iter().any(|note| {
        note.starts_with(&beginning) && note.contains("likely the periodic work is in that thread")
    })
}

fn too_few(evidence: &Evidence<'_>, asked: &Asked, short: &super::answers::Uncovered, all: usize) -> Said {
    let others = if all > 1 { format!("; {} more", tasks(all as u64 - 1)) } else { String::new() };
    let is_elsewhere = is_elsewhere(evidence, &short.task);
    if short.released == 0 {
        let text = format!("no job of {} is on record{others}", short.task);
        let help =
            if is_elsewhere { ELSEWHERE } else { "run it for longer, or see why the task does not start" };
        return Said::new(text, help.to_owned());
    }
    let wanted = if asked.strict { 1000 } else { asked.coverage_permille.min(1000) };
    let wanted = match wanted % 10 {
        0 => format!("{} %", wanted / 10),
        tenth => format!("{}.{tenth} %", wanted / 10),
    };
    let why = short.reason.as_ref().map_or_else(String::new, |(reason, jobs)| {
        format!(": {reason} ({jobs} job{})", if *jobs == 1 { "" } else { "s" })
    });
    let text = format!(
        "{} judged in {} of {} jobs, {wanted} asked{why}{others}",
        short.task, short.judged, short.released
    );
    let is_hidden = short.reason.as_ref().is_some_and(|(reason, _)| reason == "hidden switch");
    let help = match is_simulation(evidence) {
        true => "simulate it for longer",
        false if is_elsewhere => ELSEWHERE,
        false if is_hidden => {
            "give tasks that are released together different offsets: this kernel hides switches between them at times; or run it again \
             (`horolog loop --retries 3`)"
        }
        false => "run it again (`horolog loop --retries 3`), or for longer",
    };
    Said::new(text, help.to_owned())
}

fn not_allowed(evidence: &Evidence<'_>, answers: &Answers) -> Said {
    let Ended::NotPermitted(reason) = &evidence.ended else { return Said::new("not allowed", None) };
    let proof = match answers.proof {
        Some(Answer::Yes) => "proved",
        Some(Answer::No) => "not proved",
        Some(Answer::Undecided) | None => "no proof",
    };
    let simulated = if evidence.simulated.is_some() { " and simulated" } else { "" };
    // A verb that proves nothing says nothing of a proof.
    let done = match evidence.proof {
        Some(_) => format!("{proof}{simulated}, not run"),
        None => "not run".to_owned(),
    };
    #[cfg(feature = "run")]
    let reason = &horolog_sys::rights::in_lines(reason);
    let first = first_line(reason);
    let help = reason.lines().nth(1).map(|line| line.trim().trim_start_matches("= help: ").to_owned());
    let help = help.unwrap_or_else(|| {
        let alone = if evidence.proof.is_some() { "; `--gate proof` asks for the proof alone" } else { "" };
        format!("`horolog doctor` says how to allow it{alone}")
    });
    Said::new(format!("{done}: {first}"), help)
}

/// Where to look for what was found.
pub(super) fn look(evidence: &Evidence<'_>) -> Option<String> {
    evidence.report.map(|report| format!("find the cause in {report}"))
}

fn with(costs: &str) -> String {
    if costs.is_empty() { String::new() } else { format!(" {costs}") }
}

fn tasks(count: u64) -> String {
    counted(count, "", "task")
}

/// `3 hard tasks`.
fn counted(count: u64, word: &str, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {word}{noun}{plural}", grouped(count))
}

/// Whether the system has a task whose deadline counts in no verdict.
fn has_soft(system: &System) -> bool {
    system.task_ids().any(|id| system.is_soft(id))
}

/// `; soft: battery misses`: soft tasks that a proof, or where jobs were seen these, says miss.
fn soft(evidence: &Evidence<'_>) -> String {
    let ids = || evidence.system.task_ids().filter(|id| evidence.system.is_soft(*id));
    let name = |id| evidence.system.task(id).name.clone();
    let late: Vec<(String, u64)> = match (evidence.outcome, evidence.proof) {
        (Some(outcome), _) => {
            let missed = |id: TaskId| outcome.tasks.get(id.index()).map_or(0, |task| task.missed);
            ids().map(|id| (name(id), missed(id))).filter(|(_, count)| *count > 0).collect()
        }
        (None, Some(analysis)) => {
            let misses = |task: &&TaskVerdict| task.verdict == TaskWord::Misses;
            let late = ids().filter_map(|id| analysis.tasks.get(id.index()).filter(misses));
            late.map(|task| (task.name.clone(), 0)).collect()
        }
        (None, None) => Vec::new(),
    };
    let names: Vec<&str> = late.iter().take(NAMED).map(|(name, _)| name.as_str()).collect();
    match late.as_slice() {
        [] => String::new(),
        _ if evidence.outcome.is_some() => format!("; soft, missed: {}", list(&late)),
        [_] => format!("; soft: {} misses", names.concat()),
        all if all.len() <= NAMED => format!("; soft: {} miss", names.join(", ")),
        all => format!("; soft: {} and {} miss", names.join(", "), tasks((all.len() - NAMED) as u64)),
    }
}

fn jobs(count: u64) -> &'static str {
    if count == 1 { "job" } else { "jobs" }
}

fn deadlines(count: u64) -> String {
    if count == 1 { "1 deadline".to_owned() } else { format!("{} deadlines", grouped(count)) }
}

/// `motor 7, imu 2`, the first ones.
fn list(counted: &[(String, u64)]) -> String {
    let mut words: Vec<String> =
        counted.iter().take(NAMED).map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    if counted.len() > NAMED {
        words.push(format!("{} more", tasks((counted.len() - NAMED) as u64)));
    }
    words.join(", ")
}

/// A time beside the limit that it is held against, for people: four digits, or exact where these would hide that the two differ.
pub(super) fn beside(time: Span, limit: Span) -> String {
    let text = time.rounded();
    if time != limit && text == limit.rounded() { time.to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_never_hide_that_a_limit_is_exceeded() {
        let ms = |ns| Span::from_ns(ns);
        assert_eq!(beside(ms(1_419_873), ms(1_000_000)), "1.42 ms");
        assert_eq!(beside(ms(8_000_400), ms(8_000_000)), "8.0004 ms");
        assert_eq!(beside(ms(8_000_000), ms(8_000_000)), "8 ms");
    }
}
