//! Runs random systems in the simulator and in the naive reference.
//!
//! `cargo run --release -p horolog-testkit --example reference -- --systems 1000000 --seed 1 --kind all`
//!
//! Prints a line a kind: systems, jobs, instants at which a job's end coincides with a timer or a release, compared
//! bounds, differences. At a difference it prints the smallest system file it finds and both schedules; exit status 1.

#[path = "../tests/comparison/mod.rs"]
mod comparison;

use comparison::{Agreement, END, compare, line, text};
use horolog_model::System;
use horolog_testkit::reference::Event;
use horolog_testkit::reference::draw::{Kind, short_system};
use horolog_testkit::reference::shrink::shrink;
use std::process::ExitCode;

/// The analysis is asked about every so many systems: it costs more than both simulations.
const BOUNDS_EVERY: u64 = 8;

struct Asked {
    systems: u64,
    seed: u64,
    kinds: Vec<Kind>,
    /// Go on after a difference and count them.
    keep_going: bool,
    /// How many differences are shown, each with its smallest system.
    shown: u64,
}

fn asked() -> Result<Asked, String> {
    let mut asked =
        Asked { systems: 10_000, seed: 1, kinds: Kind::ALL.to_vec(), keep_going: false, shown: 1 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--keep-going" {
            asked.keep_going = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} needs a number, not {value}"));
        match word.as_str() {
            "--systems" => asked.systems = number()?,
            "--seed" => asked.seed = number()?,
            "--show" => asked.shown = number()?,
            "--kind" if value == "all" => asked.kinds = Kind::ALL.to_vec(),
            "--kind" => {
                let kind = Kind::ALL.into_iter().find(|kind| kind.word() == value);
                asked.kinds = vec![kind.ok_or_else(|| format!("no kind {value}"))?];
            }
            _ => {
                return Err(format!(
                    "unknown option {word}; there are --systems, --seed, --kind, --show, --keep-going"
                ));
            }
        }
    }
    Ok(asked)
}

fn main() -> ExitCode {
    let asked = match asked() {
        Ok(asked) => asked,
        Err(reason) => {
            eprintln!("{reason}");
            return ExitCode::from(2);
        }
    };
    println!(
        "{:20} {:>9} {:>7} {:>10} {:>11} {:>12} {:>9} {:>11}",
        "kind", "systems", "refused", "jobs", "coinciding", "coincidences", "bounds", "differences"
    );
    let mut differences = 0;
    let count = asked.kinds.len() as u64;
    for (place, &kind) in asked.kinds.iter().enumerate() {
        let share = asked.systems / count + u64::from((place as u64) < asked.systems % count);
        differences += run(kind, share, &asked);
    }
    ExitCode::from(u8::from(differences > 0))
}

/// Runs so many systems of a kind; how many differ.
fn run(kind: Kind, systems: u64, asked: &Asked) -> u64 {
    let mut sum = Agreement::default();
    let (mut done, mut refused, mut coinciding, mut differences) = (0, 0, 0, 0);
    for index in 0..systems {
        let system = short_system(asked.seed, index, kind, END);
        done += 1;
        match compare(&system, index, index % BOUNDS_EVERY == 0) {
            Ok(agreement) => {
                sum.jobs += agreement.jobs;
                sum.bounds += agreement.bounds;
                sum.coincidences += agreement.coincidences;
                refused += u64::from(agreement.refused);
                coinciding += u64::from(agreement.coincidences > 0);
            }
            Err(_) => {
                differences += 1;
                if differences <= asked.shown {
                    report(&system, index);
                }
                if !asked.keep_going {
                    break;
                }
            }
        }
    }
    println!(
        "{:20} {done:>9} {refused:>7} {:>10} {coinciding:>11} {:>12} {:>9} {differences:>11}",
        kind.word(),
        sum.jobs,
        sum.coincidences,
        sum.bounds
    );
    differences
}

fn report(system: &System, seed: u64) {
    let smallest = shrink(system, |system| compare(system, seed, true).is_err());
    let Err(difference) = compare(&smallest, seed, true) else { return };
    println!("{} (draws with seed {seed}): {}", system.name(), difference.what);
    println!("{}", text(&smallest));
    let show = |title: &str, events: &[Event]| {
        println!("{title}");
        events.iter().for_each(|event| println!("  {}", line(&smallest, event)));
    };
    show("simulated:", &difference.simulated);
    show("reference:", &difference.expected);
}
