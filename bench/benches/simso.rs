//! The same task sets by horolog's simulator and by SimSo (PyPI, 0.8.5), in the same session: the response time of
//! every job compared, then the jobs a second of each.
//!
//! Sets of ten periodic tasks of the bench recipe of `horolog-testkit` (utilisation 0.80), all released at 0, always
//! their wcet, rate-monotonic priorities or EDF, 60 simulated seconds. Semantics agree there: no two periods or
//! deadlines are equal to the nanosecond, so that no tie is left to either. SimSo keeps each job's events in lists;
//! horolog keeps full histograms of the response times. The figure for horolog is its slowest set, the one for SimSo
//! its fastest.
//!
//! `bench/run.sh` makes the virtual environment; without it: `SIMSO_PYTHON=… cargo bench --bench simso`.

use horolog_bench::repeat;
use horolog_model::{Policy, Priority, System};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::{DrawnTask, PreemptionRecipe, Random, TaskSetRecipe, system_of};
use horolog_time::Span;
use horolog_trace::{Kind, NullSink, Record};
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::process::{Command, Stdio};

const HORIZON_NS: u64 = 60_000_000_000;
const SETS: u64 = 4;

struct Case {
    policy: &'static str,
    set: Vec<DrawnTask>,
    system: System,
}

fn main() {
    let python = std::env::var("SIMSO_PYTHON")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/.venv/bin/python").to_owned());
    let cases: Vec<Case> = (0..SETS)
        .flat_map(|index| [Policy::FixedPriority, Policy::Edf].map(|policy| case(policy, index)))
        .collect();
    let Some(output) = simso(&python, &cases) else { return };
    let mut lines = output.lines();
    let (mut ours_least, mut theirs_most): (f64, f64) = (f64::INFINITY, 0.0);
    let mut compared = 0;
    for case in &cases {
        let seconds: f64 = lines
            .next()
            .and_then(|line| line.strip_prefix("seconds "))
            .and_then(|word| word.parse().ok())
            .expect("SimSo's time");
        let theirs: Vec<Vec<u64>> = case
            .set
            .iter()
            .map(|_| {
                let line = lines.next().expect("a line a task");
                line.split_whitespace().map(|word| word.parse().expect("a response time")).collect()
            })
            .collect();
        let ours = responses(&case.system, case.set.len());
        assert_eq!(ours, theirs, "{}: every job of every task responds alike", case.policy);
        let jobs: usize = ours.iter().map(Vec::len).sum();
        compared += jobs;
        let options = options();
        let (least, _) = repeat(20, || {
            black_box(simulate(black_box(&case.system), &options, &mut NullSink).expect("it simulates"));
        });
        let (our_rate, their_rate) = (jobs as f64 / least.as_secs_f64(), jobs as f64 / seconds);
        println!(
            "{:<16} {jobs:>6} jobs  horolog {our_rate:>12.0} /s  SimSo {their_rate:>8.0} /s  ratio {:>6.0}",
            case.policy,
            our_rate / their_rate
        );
        (ours_least, theirs_most) = (ours_least.min(our_rate), theirs_most.max(their_rate));
    }
    println!(
        "{compared} response times are equal; our slowest set to SimSo's fastest: ratio {:.0}",
        ours_least / theirs_most
    );
}

fn options() -> SimOptions {
    SimOptions { horizon: Horizon::Time(Span::from_ns(HORIZON_NS)), ..SimOptions::default() }
}

fn case(policy: Policy, index: u64) -> Case {
    let set = TaskSetRecipe::bench(800_000_000).draw_item(7, index);
    let mut draft = system_of(&set, policy, PreemptionRecipe::Preemptive, &mut Random::new(1)).to_draft();
    for (task, drawn) in draft.tasks.iter_mut().zip(&set) {
        task.offset = Some(Span::ZERO);
        if policy == Policy::FixedPriority {
            // The rate-monotonic rank.
            let longer = set.iter().filter(|other| other.period > drawn.period).count();
            task.priority = Some(Priority::new(1 + longer as i64));
        }
    }
    let policy = if policy == Policy::FixedPriority { "fixed-priority" } else { "edf" };
    Case { policy, set, system: System::new(draft).expect("the set is valid") }
}

/// The response times of each task's finished jobs, in the order of their releases.
fn responses(system: &System, tasks: usize) -> Vec<Vec<u64>> {
    let mut records: Vec<Record> = Vec::new();
    simulate(system, &options(), &mut records).expect("it simulates");
    let mut arrivals: Vec<Vec<u64>> = vec![Vec::new(); tasks];
    let mut found: Vec<Vec<u64>> = vec![Vec::new(); tasks];
    for record in records {
        match record.kind {
            Kind::Release => arrivals[record.task as usize].push(record.value),
            Kind::Completion => {
                let arrival = arrivals[record.task as usize][record.job as usize];
                found[record.task as usize].push(record.time.as_ns() - arrival);
            }
            _ => {}
        }
    }
    found
}

/// SimSo's answers, or `None` where it cannot run.
fn simso(python: &str, cases: &[Case]) -> Option<String> {
    let mut input = String::new();
    for case in cases {
        let _ = writeln!(input, "set {} {HORIZON_NS}", case.policy);
        for task in &case.set {
            let _ = writeln!(input, "task {} {} {}", task.period, task.wcet, task.deadline);
        }
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/simso_run.py");
    let child = Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            println!("SKIPPED: SimSo: {python}: {error}");
            return None;
        }
    };
    // It reads everything before it answers.
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    if !output.status.success() {
        println!("SKIPPED: SimSo does not run with {python} ({})", output.status);
        return None;
    }
    Some(String::from_utf8(output.stdout).expect("numbers"))
}
