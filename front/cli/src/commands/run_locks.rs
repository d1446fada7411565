//! `horolog run --locks FILE -- COMMAND`.

use crate::arguments::RunArguments;
use crate::failure::{Done, Failure, Verdict};
use crate::results::VerdictFormat;
use crate::{output, progress};
use horolog_measure::lock_protocol::{self, ProtocolReport};
use horolog_measure::preload::{find_program, no_such_program, visibility};
use horolog_sys::Error;
use horolog_trace::escaped;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn run(file: &Path, words: &RunArguments) -> Done {
    let bytes = horolog_model::file::read_bytes(file).map_err(|error| Failure::file("read", file, &error))?;
    let rules =
        lock_protocol::read_bytes(&bytes, &file.display().to_string()).map_err(Failure::diagnostics)?;
    let others = words.format.all.iter().find(|one| !TOLD.contains(&one.format));
    if others.is_some() {
        return Err(Failure::usage(
            "`run --locks` tells a table or JSON: it gives no verdict\n  = help: `--format json`, or `--format json=FILE`",
        ));
    }
    let signals = horolog_sys::signal::sent_by_processes().map_err(Failure::not_permitted)?;
    let finished = lock_protocol::run(command(words)?, &rules, &signals).map_err(|error| failed(&error))?;
    let status = finished.status;
    let report = ProtocolReport::of(&rules, &finished.counts, status.code(), status.signal());
    for one in &words.format.all {
        match (one.format, &one.file) {
            (VerdictFormat::Json, Some(path)) => {
                let text = serde_json::to_string_pretty(&report).map_err(Failure::bad_input)?;
                std::fs::write(path, text + "\n").map_err(|error| Failure::file("write", path, &error))?;
            }
            (VerdictFormat::Json, None) => output::json(&report)?,
            _ => {}
        }
    }
    if !words.format.is_for_programs() {
        print(&report);
    }
    // As a shell tells it.
    let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(Verdict::Refused(u8::try_from(status).unwrap_or(1)))
}

const TOLD: [VerdictFormat; 2] = [VerdictFormat::Table, VerdictFormat::Json];

fn failed(error: &Error) -> Failure {
    let message = format!("error: {error}");
    if error.is_bad_input() { Failure::bad_input(message) } else { Failure::not_permitted(message) }
}

/// The command to start, where its locks can be reached.
fn command(words: &RunArguments) -> Result<Command, Failure> {
    let Some((program, rest)) = words.command.split_first() else {
        return Err(Failure::bad_input("error: no command; say it behind `--`"));
    };
    let Some(file) = find_program(program) else {
        return Err(Failure::bad_input(no_such_program(program)));
    };
    if let Some(found) = visibility(program)
        && let Some(obstacle) = found.blind()
    {
        let file = escaped(&found.file.display().to_string()).to_string();
        return Err(Failure::bad_input(format_args!(
            "error: its locks cannot be reached: {file}: {}",
            obstacle.reason()
        )));
    }
    let mut command = Command::new(file);
    command.arg0(program).args(rest);
    if words.format.is_for_programs() {
        // The result alone goes to the standard output.
        command.stdout(Stdio::from(std::io::stderr()));
    }
    Ok(command)
}

/// On standard error: the standard output is the program's.
fn print(report: &ProtocolReport) {
    let ceiling = |priority: Option<u8>| priority.map_or_else(String::new, |priority| format!(" {priority}"));
    progress::say(format_args!(
        "{} under a protocol, in {}",
        output::count(report.locks, "lock"),
        output::count(report.processes, "process")
    ));
    let mut table = output::table(&["rule", "protocol", "locks"], 2);
    for rule in &report.rules {
        let site = rule.site.clone().unwrap_or_else(|| "default".to_owned());
        table.add_row([site, format!("{}{}", rule.protocol, ceiling(rule.priority)), rule.locks.to_string()]);
    }
    say(&table);
    if !report.calls.is_empty() {
        let mut table = output::table(&["first used at", "protocol", "locks"], 2);
        for call in &report.calls {
            let protocol = format!("{}{}", call.protocol, ceiling(call.priority));
            table.add_row([call.site.clone(), protocol, call.locks.to_string()]);
        }
        say(&table);
    }
    for unmet in &report.unmet {
        progress::say(format_args!(
            "{}: at {}, {}, first lock {} by thread {}",
            unmet.reason,
            unmet.site,
            output::count(unmet.times, "time"),
            unmet.lock,
            unmet.thread
        ));
    }
    for note in &report.notes {
        progress::say(format_args!("note: {note}"));
    }
}

fn say(table: &comfy_table::Table) {
    progress::say("");
    table.to_string().lines().for_each(|line| progress::say(line.trim_end()));
}
