//! The `horolog` command: parses words, calls an engine, prints. No logic lives here.

// `println!` and `eprintln!` panic where nobody reads; see `output` and `progress`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod commands;
mod costs;
mod failure;
mod headers;
mod input;
mod manual;
mod measure_arguments;
mod output;
mod progress;
mod serve_arguments;
mod trace_arguments;

use arguments::{Arguments, Verb};
use clap::Parser;
use failure::{Done, Failure};
use horolog_sys::guardian::{GuardianOptions, finish_program, guard_program};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    progress::set_quiet(arguments.quiet);
    guard_program(GuardianOptions::default());
    let done = match (&arguments.verb, arguments.include_dir) {
        (Some(verb), false) => run(verb),
        (None, true) => commands::generate::include_dir(),
        (Some(_), true) => Err(Failure::bad_input("error: --include-dir stands alone, without a verb")),
        (None, false) => {
            Err(Failure::bad_input("error: say a verb, as `horolog loop FILE`; `horolog help` lists them"))
        }
    };
    put_back();
    // Also where the verb failed half-way: what it has printed belongs to its user.
    let printed = output::finish();
    match done.and_then(|verdict| printed.map(|()| verdict)) {
        Ok(verdict) => verdict.exit_code(),
        Err(failure) => failure.report(),
    }
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
    // A sandbox that forbids it leaves the signals what they are.
    let _ = horolog_sys::signal::end_with("undecided: stopped by a signal before it was done (exit 4)\n", 4);
    verb()
}

fn run(verb: &Verb) -> Done {
    match verb {
        Verb::Check(words) => commands::check::run(words),
        Verb::Analyze(words) => stoppable(|| commands::analyze::run(words)),
        Verb::Simulate(words) => stoppable(|| commands::simulate::run(words)),
        Verb::Run(words) => commands::run::run(words),
        Verb::Serve(words) => commands::serve::run(words),
        Verb::Verify(words) => stoppable(|| commands::verify::run(words)),
        Verb::Loop(words) => commands::close::run(words),
        Verb::Trace(verb) => commands::trace::run(verb),
        Verb::Measure(verb) => commands::measure::run(verb),
        Verb::CheckCertificate(words) => commands::certificate::run(words),
        Verb::Guardian => std::process::exit(horolog_sys::guardian::serve()),
        Verb::Doctor(words) => commands::doctor::run(words),
        Verb::Experiment(verb) => commands::experiment::run(verb),
        Verb::Completions { shell } => commands::generate::completions(*shell),
        Verb::Man { verb, out } => commands::generate::man(verb, out.as_deref()),
    }
}
