//! `horolog trace locks`.

use super::show::losses;
use crate::arguments::Format;
use crate::commands::run::stop_on_interrupt;
use crate::failure::{Done, Failure, Verdict};
use crate::input::{self, TraceFile};
use crate::output::outln;
use crate::trace_arguments::{LocksArguments, NestingChoice};
use crate::{output, progress};
use horolog_measure::critical_sections::{NamedStudy, Nesting, SectionOptions, from_trace};
use horolog_measure::lock_study::{self, FutexReport, LiveOptions, LiveStudy, LockReport, LockRow};
use horolog_measure::preload::{find_program, no_such_program, visibility};
use horolog_time::Span;
use horolog_trace::escaped;
use horolog_trace::file::Reader;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

pub(crate) fn run(arguments: &LocksArguments) -> Done {
    let nesting = match arguments.nesting {
        NestingChoice::Thread => Nesting::Thread,
        NestingChoice::Processor => Nesting::Processor,
    };
    let options = SectionOptions { nesting, ..SectionOptions::default() };
    let (named, futexes) = match &arguments.trace {
        Some(trace) => (recorded(trace, options)?, None),
        None => {
            let study = live(arguments, options)?;
            (study.named, study.futexes)
        }
    };
    let mut report = LockReport::of(&named, arguments.top);
    report.futexes = futexes;
    if let Some(futexes) = &mut report.futexes {
        report.notes.append(&mut futexes.notes);
        futexes.futexes.truncate(arguments.top);
    }
    match arguments.format {
        Format::Json => output::json(&report)?,
        Format::Table => print(&report),
    }
    Ok(Verdict::of(named.damage.is_none()))
}

fn recorded(trace: &Path, options: SectionOptions) -> Result<NamedStudy, Failure> {
    let file = TraceFile::of(trace)?;
    let mut reader = Reader::open(file.path()).map_err(Failure::bad_input)?;
    let activity = progress::Activity::start("reading");
    let named = from_trace(&mut reader, options, |records| activity.now(&format!("{records} records")));
    drop(activity);
    if named.study.counts.events == 0 && named.damage.is_none() {
        return Err(Failure::bad_input(format_args!(
            "error: {}: no lock events among {} records; record them with `horolog trace record --locks -- COMMAND`",
            input::name(trace),
            named.other_records
        )));
    }
    Ok(named)
}

/// The size of a ring as the runtime takes it; 0: its default.
fn ring_bytes(buffer: Option<u64>) -> Result<u32, Failure> {
    let Some(bytes) = buffer else { return Ok(0) };
    let fits = bytes.is_power_of_two() && (4 << 10..=1 << 30).contains(&bytes);
    u32::try_from(bytes).ok().filter(|_| fits).ok_or_else(|| {
        let what = "it must be a power of two from 4 KiB to 1 GiB";
        Failure::bad_input(format_args!("error: a buffer of {bytes} bytes: {what}"))
    })
}

fn live(arguments: &LocksArguments, sections: SectionOptions) -> Result<LiveStudy, Failure> {
    let stop = stop_on_interrupt()?;
    let options = LiveOptions {
        sections,
        duration: arguments.duration,
        stop: Some(stop.clone()),
        ring_bytes: ring_bytes(arguments.buffer)?,
        memory: arguments.memory.unwrap_or(0),
        futexes: arguments.kernel,
    };
    let watched = match arguments.pid {
        Some(process) => lock_study::attach(process, &options),
        None => lock_study::start(command(arguments)?, &options),
    };
    // No spinner: the terminal is the program's.
    let study =
        watched.and_then(|watched| lock_study::watch(watched, &options, |_| {})).map_err(|error| {
            let message = format!("error: {error}");
            if error.is_bad_input() { Failure::bad_input(message) } else { Failure::not_permitted(message) }
        })?;
    if stop.load(Ordering::Relaxed) {
        progress::say("stopped by a signal: the result is that of the time until then");
    }
    // What a file or a thread is called may hold anything.
    let program = match (arguments.pid, arguments.command.first()) {
        (None, Some(program)) => program.clone(),
        (process, _) => format!("process {}", process.unwrap_or(0)),
    };
    let end = study.status.map_or_else(|| "goes on".to_owned(), |status| status.to_string());
    progress::say(format_args!(
        "{}: {end} after {}, {}",
        escaped(&program),
        output::span(Span::from_ns(study.watched_ns)),
        output::count(study.processes as u64, "process")
    ));
    Ok(study)
}

/// The command to start, where its locks can be seen.
fn command(arguments: &LocksArguments) -> Result<Command, Failure> {
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Failure::bad_input("error: no command; say it behind `--`"));
    };
    if find_program(program).is_none() {
        return Err(Failure::bad_input(no_such_program(program)));
    }
    if let Some(found) = visibility(program) {
        for obstacle in &found.obstacles {
            let words = format!("{}: {}", escaped(&found.file.display().to_string()), obstacle.reason());
            if arguments.kernel {
                progress::say(format_args!("warning: {words}; of those the waits alone are seen"));
            } else if obstacle.is_total() {
                return Err(Failure::bad_input(format_args!(
                    "error: its locks cannot be seen: {words}; `--kernel` shows the waits for them"
                )));
            } else {
                progress::say(format_args!(
                    "warning: {words}; those are not seen, `--kernel` shows the waits for them"
                ));
            }
        }
    }
    let mut command = Command::new(program);
    command.args(rest);
    if arguments.format == Format::Json {
        // The result alone stands on the standard output.
        command.stdout(Stdio::from(std::io::stderr()));
    }
    Ok(command)
}

fn ns(value: u64) -> String {
    output::span(Span::from_ns(value))
}

fn optional(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), ns)
}

fn mean(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| ns(value.round() as u64))
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.2} %", value * 100.0))
}

fn print(report: &LockReport) {
    if let Some(remedy) = &report.remedy {
        outln!("events were lost: {remedy}");
    }
    outln!(
        "{} critical sections in {}; {} lock events, {} lost",
        report.counts.sections,
        ns(report.span_ns),
        report.counts.events,
        losses(report.counts.lost, &report.losses)
    );
    outln!("\nlengths, from acquisition to just before release; quantiles are upper edges of bins of 0.1 us");
    lengths(&report.classes, "class");
    outln!("\nnesting: locks held at the request");
    depths(&report.classes);
    outln!("\nwaits, from request to acquisition");
    waits(&report.classes, "class");
    for (title, rows, head) in [
        ("locks, those held longest in all first", &report.locks, "lock"),
        ("threads", &report.threads, "thread"),
        ("call sites that acquire", &report.sites, "call site"),
    ] {
        if !rows.is_empty() {
            outln!("\n{title}");
            lengths(rows, head);
        }
    }
    longest(report);
    if let Some(found) = &report.futexes {
        futexes(found);
    }
    output::notes(&report.notes);
}

/// Waits by the kernel's record.
fn futexes(found: &FutexReport) {
    outln!("\n{} waits on futexes by the kernel's record ({})", found.waits, found.source);
    if found.lost > 0 {
        outln!("{} records of the kernel were lost; the waits that they touch are not counted", found.lost);
    }
    if found.futexes.is_empty() {
        return;
    }
    let mut table =
        output::table(&["futex", "process", "threads", "waits", "p50", "p99", "max", "in all"], 1);
    for row in &found.futexes {
        table.add_row([
            row.name.clone(),
            row.process.to_string(),
            row.threads.to_string(),
            row.waits.to_string(),
            ns(row.wait.p50_ns),
            ns(row.wait.p99_ns),
            ns(row.wait.max_ns),
            ns(row.waited_ns),
        ]);
    }
    output::print(&table);
}

fn lengths(rows: &[LockRow], head: &str) {
    let head = [head, "sections", "mean", "p50", "p90", "p99", "p99.9", "max", "<5us", "in all"];
    let mut table = output::table(&head, 1);
    for row in rows.iter().filter(|row| row.sections > 0) {
        let class = row.class.filter(|class| *class != row.name).map(|class| format!(" ({class})"));
        table.add_row([
            format!("{}{}", row.name, class.unwrap_or_default()),
            row.sections.to_string(),
            mean(row.mean_ns),
            optional(row.p50_ns),
            optional(row.p90_ns),
            optional(row.p99_ns),
            optional(row.p99_9_ns),
            ns(row.max_ns),
            share(row.below_5us),
            ns(row.held_ns),
        ]);
    }
    output::print(&table);
}

fn depths(rows: &[LockRow]) {
    let mut table = output::table(&["class", "depth", "sections", "share"], 1);
    for row in rows.iter().filter(|row| row.sections > 0) {
        for (depth, count) in row.depths.0.iter().enumerate() {
            let shown = share(row.depths.share(depth));
            table.add_row([row.name.clone(), depth.to_string(), count.to_string(), shown]);
        }
    }
    output::print(&table);
}

fn waits(rows: &[LockRow], head: &str) {
    let head = [head, "acquired", "contended", "their mean", "p99", "max", "refused", "condition waits"];
    let mut table = output::table(&head, 1);
    for row in rows {
        table.add_row([
            row.name.clone(),
            row.acquisitions.to_string(),
            row.contended.to_string(),
            mean(row.contended_mean_ns),
            optional(row.wait_p99_ns),
            ns(row.wait_max_ns),
            row.refused.to_string(),
            row.condition_waits.to_string(),
        ]);
    }
    output::print(&table);
}

fn longest(report: &LockReport) {
    if !report.longest_sections.is_empty() {
        outln!("\nlongest section of each lock: who held it, since which call");
        let mut table = output::table(&["length", "lock", "class", "thread", "call site"], 5);
        for worst in &report.longest_sections {
            table.add_row([
                ns(worst.length_ns),
                worst.lock.clone(),
                worst.class.to_owned(),
                worst.thread.clone(),
                worst.site.clone(),
            ]);
        }
        output::print(&table);
    }
    let held: Vec<_> = report.longest_waits.iter().filter(|wait| wait.held_by.is_some()).collect();
    if !held.is_empty() {
        outln!("\nlongest wait for each lock that another thread held");
        let head = ["wait", "lock", "thread", "call site", "held by", "since the call"];
        let mut table = output::table(&head, 6);
        for wait in held {
            let text = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
            table.add_row([
                ns(wait.wait_ns),
                wait.lock.clone(),
                wait.thread.clone(),
                wait.site.clone(),
                text(&wait.held_by),
                text(&wait.held_since),
            ]);
        }
        output::print(&table);
    }
    for held in &report.still_held {
        outln!("still held at the end: {} by {} since {}", held.lock, held.thread, held.site);
    }
}
