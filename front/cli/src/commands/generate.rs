//! `horolog completions`, `horolog man` and `horolog --include-dir`.

use crate::arguments::Arguments;
use crate::failure::{Done, Failure, Verdict};
use crate::{headers, manual, output};
use clap::{Arg, Command, CommandFactory};
use std::path::Path;

pub(crate) fn completions(shell: clap_complete::Shell) -> Done {
    let mut text = Vec::new();
    // Names in a command have to live as long as the program, which ends soon.
    let command: &'static Command = Box::leak(Box::new(Arguments::command()));
    clap_complete::generate(shell, &mut shown(command), "horolog", &mut text);
    print(&text);
    Ok(Verdict::Holds)
}

/// What completions need of a command, without what is hidden: they would offer that, too.
fn shown(command: &'static Command) -> Command {
    let mut copy = Command::new(command.get_name());
    if let Some(about) = command.get_about() {
        copy = copy.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        copy = copy.version(version).propagate_version(true);
    }
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    copy.args(arguments.map(shown_argument)).subcommands(verbs.map(shown))
}

fn shown_argument(argument: &'static Arg) -> Arg {
    let mut copy = Arg::new(argument.get_id().clone()).action(argument.get_action().clone());
    if let Some(long) = argument.get_long() {
        copy = copy.long(long);
    }
    if let Some(short) = argument.get_short() {
        copy = copy.short(short);
    }
    if let Some(help) = argument.get_help() {
        copy = copy.help(help.clone());
    }
    if argument.get_action().takes_values() {
        if let Some(names) = argument.get_value_names() {
            copy = copy.value_names(names.iter().cloned());
        }
        copy = copy.value_parser(argument.get_value_parser().clone()).value_hint(argument.get_value_hint());
    }
    if let Some(count) = argument.get_num_args() {
        copy = copy.num_args(count);
    }
    copy = copy.required(argument.is_required_set()).last(argument.is_last_set());
    if argument.is_global_set() {
        copy = copy.global(true);
    }
    copy
}

/// Prints the page of a verb, or writes all into a folder.
pub(crate) fn man(verb: &[String], out: Option<&Path>) -> Done {
    let failed = |error: String| Failure::bad_input(format_args!("error: {error}"));
    let Some(folder) = out else {
        print(manual::page(verb).map_err(failed)?.text.as_bytes());
        return Ok(Verdict::Holds);
    };
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    for page in manual::all().map_err(failed)? {
        let path = folder.join(format!("{}.1", page.name));
        std::fs::write(&path, page.text).map_err(|error| Failure::file("write", &path, &error))?;
    }
    Ok(Verdict::Holds)
}

/// Prints where the C headers are.
pub(crate) fn include_dir() -> Done {
    output::outln!("{}", headers::folder()?.display());
    Ok(Verdict::Holds)
}

fn print(text: &[u8]) {
    output::write(format_args!("{}", String::from_utf8_lossy(text)));
}
