//! The `horolog` command: parses words, calls an engine, prints. No logic lives here.

// `println!` and `eprintln!` panic where nobody reads; see `output` and `progress`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod commands;
mod failure;
mod input;
mod measure_arguments;
mod output;
mod progress;
mod serve_arguments;
mod trace_arguments;

use arguments::{Arguments, Verb};
use clap::Parser;
use failure::Done;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    progress::set_quiet(arguments.quiet);
    let done = run(&arguments.verb);
    // Also where the verb failed half-way: what it has printed belongs to its user.
    let printed = output::finish();
    match done.and_then(|verdict| printed.map(|()| verdict)) {
        Ok(verdict) => verdict.exit_code(),
        Err(failure) => failure.report(),
    }
}

fn run(verb: &Verb) -> Done {
    match verb {
        Verb::Check(words) => commands::check::run(words),
        Verb::Analyze(words) => commands::analyze::run(words),
        Verb::Simulate(words) => commands::simulate::run(words),
        Verb::Run(words) => commands::run::run(words),
        Verb::Serve(words) => commands::serve::run(words),
        Verb::Verify(words) => commands::verify::run(words),
        Verb::Loop(words) => commands::close::run(words),
        Verb::Trace(verb) => commands::trace::run(verb),
        Verb::Measure(verb) => commands::measure::run(verb),
        Verb::CheckCertificate(words) => commands::certificate::run(words),
        Verb::Guardian => std::process::exit(horolog_sys::guardian::serve()),
        Verb::Doctor(words) => commands::doctor::run(words),
        Verb::Experiment(verb) => commands::experiment::run(verb),
        Verb::Completions { shell } => commands::generate::completions(*shell),
        Verb::Man => commands::generate::man(),
    }
}
