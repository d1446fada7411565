//! The `horolog` command: parses words, calls an engine, prints. No logic lives here.

// `println!` and `eprintln!` panic where nobody reads; see `output` and `progress`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod colour;
mod commands;
mod costs;
mod csv;
mod disk_arguments;
mod early;
mod failure;
mod formats;
mod headers;
mod init_arguments;
mod input;
mod manual;
mod measure_arguments;
mod network_arguments;
mod output;
mod outputs;
mod partition_arguments;
mod progress;
mod qos_arguments;
mod reserve_arguments;
mod results;
mod serve_arguments;
mod sweep_arguments;
mod trace_arguments;

use arguments::{Arguments, Verb};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use early::Early;
use failure::{Done, ErrorForm, Failure};
use horolog_sys::guardian::{GuardianOptions, finish_program, guard_program};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything is opened for the user.
    horolog_sys::rights::put_file_rights_away();
    // A sandbox that forbids it leaves the signal what it is.
    let _ = horolog_sys::signal::survive_file_size_limit();
    let words: Vec<OsString> = std::env::args_os().collect();
    let early = Early::of(&words);
    colour::choose(early.colour);
    failure::choose_form(early.errors);
    let arguments = match parse(&words, &early) {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    progress::set_quiet(arguments.quiet);
    if early.errors == ErrorForm::Json {
        progress::hide_activities();
    }
    if let Err(failure) = outputs::keep_inputs(&words).and_then(|()| early.formats.begin()) {
        // Programs get it in their form, too, but not in a file that is read.
        let formats = early.formats.that_lose_nothing(&words);
        let _ = results::tell_failure(&formats, &failure).and_then(|()| output::finish());
        return failure.report();
    }
    guard_program(GuardianOptions::default());
    let done = match (&arguments.verb, arguments.include_dir) {
        (Some(verb), false) => run(verb),
        (None, true) => commands::generate::include_dir(),
        (Some(_), true) => Err(Failure::bad_input("error: --include-dir is given alone, without a verb")),
        (None, false) => {
            Err(Failure::usage("error: say a verb, as `horolog loop FILE`; `horolog help` lists them"))
        }
    };
    put_back();
    if let (Err(failure), true) = (&done, early.formats.has_programs()) {
        // What cannot be told is the failure of the verb itself, which stands on standard error.
        let _ = results::tell_failure(&early.formats, failure);
    }
    // Also where the verb failed half-way: what it has printed belongs to its user.
    let printed = output::finish();
    match done.and_then(|verdict| printed.map(|()| verdict)) {
        Ok(verdict) => verdict.exit_code(),
        Err(failure) => failure.report(),
    }
}

/// The words of the command line, or the exit status where they are wrong or ask for help.
fn parse(words: &[OsString], early: &Early) -> Result<Arguments, ExitCode> {
    let command = Arguments::command().color(colour::of_clap(early.colour));
    let parsed = command.try_get_matches_from(words);
    let parsed = parsed.and_then(|matches| Arguments::from_arg_matches(&matches));
    parsed.map_err(|error| {
        let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if !is_help {
            let failure = Failure::usage(error.render());
            let formats = early.formats.that_lose_nothing(words);
            if formats.has_programs() {
                let _ = results::tell_failure(&formats, &failure).and_then(|()| output::finish());
            }
            if early.errors == ErrorForm::Json {
                return failure.report();
            }
        }
        // Nobody may read it any more; that is no reason to end otherwise.
        let _ = error.print();
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

/// Ends the guardian, where the verb needed one.
fn put_back() {
    match finish_program() {
        None => {}
        Some(Ok(restored)) => {
            restored
                .failures
                .iter()
                .for_each(|failure| progress::say(format_args!("not put back: {failure}")));
        }
        Some(Err(error)) => progress::say(format_args!("not put back: {error}")),
    }
}

/// A verb that only computes: Ctrl-C and `kill` end it at once, and the closing line says so.
fn stoppable(verb: impl FnOnce() -> Done) -> Done {
    end_at_signals();
    verb()
}

/// From now on a signal ends this program at once, with a closing line.
fn end_at_signals() {
    // A sandbox that forbids it leaves the signals what they are.
    let _ = horolog_sys::signal::end_with("undecided: stopped by a signal before it was done (exit 4)\n", 4);
}

fn run(verb: &Verb) -> Done {
    match verb {
        Verb::Init(words) => commands::init::run(words),
        Verb::Check(words) => commands::check::run(words),
        Verb::Analyze(words) => stoppable(|| commands::analyze::run(words)),
        Verb::Simulate(words) => stoppable(|| commands::simulate::run(words)),
        Verb::Run(words) => commands::run::run(words),
        Verb::Serve(words) => commands::serve::run(words),
        Verb::Reserve(verb) => commands::reserve::run(verb),
        Verb::Verify(words) => stoppable(|| commands::verify::run(words)),
        Verb::Loop(words) => commands::close::run(words),
        Verb::Trace(verb) => commands::trace::run(verb),
        Verb::Measure(verb) => commands::measure::run(verb),
        Verb::CheckCertificate(words) => commands::certificate::run(words),
        Verb::Guardian => std::process::exit(horolog_sys::guardian::serve()),
        Verb::Doctor(words) => commands::doctor::run(words),
        Verb::Sweep(words) => stoppable(|| commands::sweep::run_file(words)),
        Verb::Experiment(verb) => commands::experiment::run(verb),
        Verb::Qos(verb) => stoppable(|| commands::qos::run(verb)),
        Verb::Completions { shell } => commands::generate::completions(*shell),
        Verb::Man { verb, out } => commands::generate::man(verb, out.as_deref()),
    }
}
