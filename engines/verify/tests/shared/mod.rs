//! What the tests share that draw systems, put something wrong into their schedules, and ask whose fault a late job is.
#![allow(dead_code)] // Each of them uses a part.

pub(crate) mod as_run;

use horolog_model::{System, TaskId};
use horolog_time::Span;
use horolog_trace::Record;
use horolog_trace::file::{Header, Thread};
use horolog_verify::{Bound, Check, Class, Options, Tolerance, Verification, Verifier};
use std::collections::BTreeMap;
use std::ops::Range;

/// Which draws are made: so many, or with `HOROLOG_DRAW=N` this one alone, of which what happens is printed.
pub(crate) fn draws(otherwise: u64) -> Range<u64> {
    let number = |name: &str| {
        let asked = std::env::var(name).ok();
        asked.map(|text| text.parse::<u64>().unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    number("HOROLOG_DRAW").map_or(0..number("HOROLOG_CAUSES").unwrap_or(otherwise), |one| one..one + 1)
}

/// Whether one draw alone is made.
pub(crate) fn is_one() -> bool {
    std::env::var_os("HOROLOG_DRAW").is_some()
}

pub(crate) fn ns(value: u64) -> Span {
    Span::from_ns(value)
}

pub(crate) fn bound(task: usize, response: u64) -> Bound {
    Bound { task: TaskId(task as u32), response: ns(response), test: "drawn".to_owned(), exact: true }
}

/// Verified to the nanosecond; thread 0 is idle, thread t + 1 is task t, and behind them comes a thread outside the model.
pub(crate) fn verified(
    system: &System,
    bound: &Bound,
    records: &[Record],
    backend: &str,
    end: u64,
) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    let mut options = Options::default();
    options.listed_per_group = 1_000;
    if backend != "sim" {
        let zero = Span::ZERO;
        options.tolerance = Tolerance {
            stamping: zero,
            execution: zero,
            dispatch: zero,
            interrupt: zero,
            budget: zero,
            evidence_delay: ns(3),
        };
    }
    let thread =
        |id: u64, comm: &str, task| Thread { id, tid: id as u32, comm: comm.to_owned(), task, process: None };
    let tasks = system.tasks().iter().enumerate();
    let mut threads = vec![thread(0, "swapper/0", None)];
    threads.extend(tasks.map(|(place, task)| thread(place as u64 + 1, &task.name, Some(place as u32))));
    threads.push(thread(threads.len() as u64, "burst", None));
    let mut verifier =
        Verifier::new(system, std::slice::from_ref(bound), &header, &options).expect("it can be verified");
    verifier.set_threads(&threads);
    records.iter().for_each(|record| verifier.take(record));
    if is_one() {
        records.iter().for_each(|record| println!("{record:?}"));
    }
    verifier.finish(end, None, Vec::new())
}

/// What a scheduler that shares no code with the machines says of a job that is late: whether it is with the lie cut, with the disturbance
/// taken out, and with both.
pub(crate) fn expected([cut, out, both]: [bool; 3], lies: bool, is_disturbed: bool) -> Class {
    match () {
        () if both => Class::BoundViolated,
        () if !cut && lies => Class::ModelViolated,
        () if !out && is_disturbed => Class::MachineDisturbed,
        () => Class::ModelViolated,
    }
}

/// How often each class was given and right, or not given where that is open, by what was put in; and what was wrong.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) right: BTreeMap<(&'static str, Class), u64>,
    pub(crate) untold: BTreeMap<(&'static str, Class), u64>,
    pub(crate) wrong: Vec<String>,
}

impl Tally {
    /// A late job of the one task with a bound; where the model was violated `name` has to be named.
    pub(crate) fn take(
        &mut self,
        (what, wanted, name): (&'static str, Class, &str),
        job: usize,
        result: &Verification,
        draw: impl Fn() -> String,
    ) {
        let is_it = |job: usize| {
            move |one: &&horolog_verify::Finding| one.check == Check::Response && one.job == Some(job as u64)
        };
        let Some(found) = result.findings.iter().find(is_it(job)) else {
            panic!("{}: job {job} is late and not found", draw())
        };
        let is_named = wanted != Class::ModelViolated || found.message.contains(name);
        // Some of a run is not followed to the nanosecond.
        let has_diverged = result.findings.iter().any(|one| one.check == Check::Divergence);
        if found.class == wanted && is_named {
            *self.right.entry((what, wanted)).or_default() += 1;
        } else if found.class == Class::CannotTell || has_diverged && found.class == Class::ScheduleDiffers {
            *self.untold.entry((what, wanted)).or_default() += 1;
        } else {
            self.wrong.push(format!(
                "{}: job {job}, wanted {wanted:?}: {}\n{:#?}",
                draw(),
                found.message,
                result.findings.iter().map(|one| &one.message).collect::<Vec<_>>()
            ));
        }
    }

    /// How many were right, and how many open; none was wrong.
    #[track_caller]
    pub(crate) fn none_is_wrong(&self, what: &str) -> (u64, u64) {
        println!("{what}: {:?}, untold {:?}, wrong {}", self.right, self.untold, self.wrong.len());
        assert!(self.wrong.is_empty(), "{} of {:?}\n{}", self.wrong.len(), self.right, self.wrong[0]);
        (self.right.values().sum(), self.untold.values().sum())
    }
}
