//! `horolog measure extract`.

use crate::arguments::{ExtractArguments, ExtractFormat, Outliers, Suspension};
use crate::failure::{Done, Failure, Verdict};
use crate::{output, progress};
use horolog_measure::extraction::from_trace::from_trace;
use horolog_measure::extraction::live::{LiveOptions, Target, extract};
use horolog_measure::extraction::{Chosen, Options, Proposal};
use horolog_time::Span;
use std::path::Path;
use std::sync::atomic::Ordering;

const DEFAULT_DURATION: Span = Span::from_ns(10_000_000_000);

pub(crate) fn run(words: &ExtractArguments) -> Done {
    let values = Options {
        margin_permille: words.margin,
        all: words.all,
        threads: words
            .threads
            .iter()
            .map(|word| thread(word))
            .chain(words.processes.iter().map(|word| process(word)))
            .collect(),
        count_suspensions: words.suspension == Suspension::Oblivious,
        drop_outliers: words.outliers == Outliers::Drop,
        ..Options::default()
    };
    let proposal = match &words.target.from {
        Some(trace) => {
            // Nothing is changed by reading.
            crate::end_at_signals();
            recorded(trace, &values)?
        }
        None => observed(words, values)?,
    };
    write(words, &proposal)
}

fn recorded(trace: &Path, values: &Options) -> Result<Proposal, Failure> {
    let activity = progress::Activity::start("reading");
    let mut progress = |records: u64| activity.now(&format!("reading, {records} records"));
    from_trace(trace, &as_typed(), values, &mut progress).map_err(|error| {
        if error.is_not_permitted() { Failure::not_permitted(error) } else { Failure::bad_input(error) }
    })
}

fn observed(words: &ExtractArguments, values: Options) -> Result<Proposal, Failure> {
    let target = match (words.target.pid, words.target.group) {
        (Some(process), _) => Target::Process(process),
        (None, Some(group)) => Target::Group(group),
        (None, None) => Target::Command(words.target.command.clone()),
    };
    let until_end = matches!(target, Target::Command(_)) && words.duration.is_none();
    let options = LiveOptions {
        target,
        duration: (!until_end).then(|| words.duration.unwrap_or(DEFAULT_DURATION)),
        command: as_typed(),
        buffer: words.buffer,
        values,
    };
    let stop = super::run::stop_on_interrupt()?;
    let activity = progress::Activity::start("observing");
    let mut seen = Span::ZERO;
    let proposal = extract(&options, &stop, &mut |passed| {
        seen = passed;
        activity.now(&match options.duration {
            Some(all) => format!("observing, {} of {}", seconds(passed), seconds(all)),
            None => format!("observing, {}", seconds(passed)),
        });
    })
    .map_err(|error| {
        // A process or a program that is not there is the user's mistake, not the machine's refusal.
        let missing = error.call().starts_with("read(/proc/");
        if error.is_bad_input() || missing {
            Failure::bad_input(error)
        } else {
            Failure::not_permitted(error)
        }
    });
    drop(activity);
    if stop.load(Ordering::Relaxed) && proposal.is_ok() {
        progress::say(format_args!(
            "stopped by a signal after {}: what was seen until then is proposed",
            seconds(seen)
        ));
    }
    proposal
}

/// A thread by its number or its name.
fn thread(word: &str) -> Chosen {
    word.parse().map_or_else(|_| Chosen::Named(word.to_owned()), Chosen::Thread)
}

/// A process by its number or its name.
fn process(word: &str) -> Chosen {
    word.parse().map_or_else(|_| Chosen::ProcessNamed(word.to_owned()), Chosen::Process)
}

fn seconds(span: Span) -> String {
    format!("{:.0} s", span.as_secs_f64())
}

fn as_typed() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!("horolog {}", words.join(" "))
}

fn write(words: &ExtractArguments, proposal: &Proposal) -> Done {
    if words.format == ExtractFormat::Json {
        output::json(&proposal.to_json())?;
    }
    if proposal.tasks.is_empty() {
        progress::say("no thread became a task:");
        for thread in &proposal.background {
            progress::say(format_args!(
                "  {} `{}`, {}: {}",
                thread.tid, thread.comm, thread.class, thread.why
            ));
        }
        if !words.target.command.is_empty() && horolog_sys::rights::are_not_inherited() {
            progress::say(
                "note: a command inherits no capability of horolog's program file, so `chrt -f` in it is refused\n  help: give your user a \
                 limit on real-time priorities (`rtprio`), or observe every thread with `--all`",
            );
        }
        return Ok(Verdict::SaysNo);
    }
    for resource in proposal.locks.resources.iter().filter(|resource| resource.protocol == "none") {
        let users: Vec<&str> = resource.sections.iter().map(|section| &*section.task).collect();
        progress::say(format_args!(
            "{} is a mutex without priority inheritance, and {} share it: how long they wait for it has no bound",
            resource.name,
            users.join(", ")
        ));
    }
    let unmodelled = proposal.unmodelled();
    for words in &unmodelled {
        progress::say(format_args!("not in the file: {words}"));
    }
    let text = proposal.to_toml().map_err(Failure::bad_input)?;
    match &words.out {
        Some(path) => {
            std::fs::write(path, &text).map_err(|error| Failure::file("write", path, &error))?;
            for (task, _) in &proposal.tasks {
                progress::say(format_args!("{}: confidence {}", task.name, task.confidence.word()));
            }
            let what = if unmodelled.is_empty() {
                "proves it"
            } else {
                "proves nothing of it while `unmodelled` has a line"
            };
            progress::say(format_args!("written: {}; `horolog analyze` {what}", path.display()));
        }
        None if words.format == ExtractFormat::Toml => output::write(format_args!("{text}")),
        None => {}
    }
    Ok(Verdict::Holds)
}
