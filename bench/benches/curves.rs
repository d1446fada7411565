//! How the cost of a simulated job grows: with processors, with those of one cluster, with the depth of a tree, with the tasks.
//!
//! Every system has a utilisation of 0.7 a processor and runs 200,000 jobs, at least 200 a task, without a trace. Time counts, and beside it the
//! ratio to the first point of its curve.

use horolog_model::{System, file};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_trace::NullSink;
use std::fmt::Write;
use std::time::Instant;

/// Jobs of one measurement.
const JOBS: u64 = 200_000;

fn main() {
    let curves: [(&str, &[usize], fn(usize) -> String); 6] = [
        ("processors, each alone, EDF, 4 tasks each", &[1, 2, 4, 8, 16, 32, 64], partitioned),
        ("processors of a cluster, EDF, 4 tasks each", &[2, 4, 8, 16, 32, 64], |n| clustered(n, "edf")),
        ("the same, fixed priorities", &[2, 4, 8, 16, 32, 64], |n| clustered(n, "fixed-priority")),
        ("depth of a tree of budgets, 8 tasks", &[1, 2, 3, 4, 5, 6], deep),
        ("tasks, one processor, fixed priorities", &[10, 100, 1_000, 10_000], |n| flat(n, "fixed-priority")),
        ("tasks, one processor, EDF", &[10, 100, 1_000, 10_000], |n| flat(n, "edf")),
    ];
    for (name, points, text) in curves {
        let mut first = 0.0;
        println!("{name}");
        for &point in points {
            let cost = cost(&text(point));
            first = if first == 0.0 { cost } else { first };
            println!("  {point:>6}  {cost:>9.0} ns a job  {:>6.2}", cost / first);
        }
    }
}

/// The least time a job of three runs.
fn cost(text: &str) -> f64 {
    let (system, _): (System, _) =
        file::read(text, "curve.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let jobs = JOBS.max(200 * system.tasks().len() as u64);
    let options = SimOptions { horizon: Horizon::Jobs(jobs), seed: 1, ..SimOptions::default() };
    let run = || {
        let start = Instant::now();
        let outcome = simulate(&system, &options, &mut NullSink).expect("it simulates");
        let jobs: u64 = outcome.tasks.iter().map(|task| task.completed).sum();
        start.elapsed().as_nanos() as f64 / jobs as f64
    };
    (0..3).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// Tasks with periods from 1 to 10 ms; their utilisation is 0.7 on so many processors.
fn tasks(text: &mut String, count: usize, processors: usize, has_priority: bool, homes: usize) {
    let mut state = count as u64;
    for task in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let period = 1_000_000 + (state >> 40) % 9_000_000;
        let wcet = (period as f64 * 0.7 * processors as f64 / count as f64) as u64;
        writeln!(text, "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"")
            .expect("a string");
        if homes > 1 {
            writeln!(text, "cpu = {}", task % homes).expect("a string");
        }
        if has_priority {
            writeln!(text, "priority = {}", 20_000_000 - period).expect("a string");
        }
    }
}

fn names(tasks: std::ops::Range<usize>) -> String {
    let names: Vec<String> = tasks.map(|task| format!("\"t{task}\"")).collect();
    format!("[{}]", names.join(", "))
}

fn partitioned(processors: usize) -> String {
    let mut text = format!("[system]\nname = \"many\"\npolicy = \"edf\"\n[platform]\ncpus = {processors}\n");
    tasks(&mut text, 4 * processors, processors, false, processors);
    text
}

fn clustered(processors: usize, order: &str) -> String {
    let count = 4 * processors;
    let mut text = format!("[system]\nname = \"cluster\"\n[platform]\ncpus = {processors}\n");
    let cpus: Vec<usize> = (0..processors).collect();
    let tasks_below = names(0..count);
    writeln!(
        text,
        "[[scheduler]]\nname = \"all\"\ncpus = {cpus:?}\norder = \"{order}\"\ntasks = {tasks_below}"
    )
    .expect("a string");
    tasks(&mut text, count, processors, order == "fixed-priority", 1);
    text
}

/// Reserves in each other, each with a budget of nine tenths; the tasks below the last.
fn deep(depth: usize) -> String {
    let mut text = "[system]\nname = \"deep\"\n[platform]\ncpus = 1\n".to_owned();
    for level in 1..=depth {
        writeln!(text, "[[scheduler]]\nname = \"s{level}\"\norder = \"fixed-priority\"\nkind = \"deferrable\"\npriority = 1").expect("a string");
        writeln!(text, "budget = \"{} us\"\nperiod = \"1 ms\"", 1_000 - 10 * level).expect("a string");
        if level > 1 {
            writeln!(text, "parent = \"s{}\"", level - 1).expect("a string");
        }
        if level == depth {
            writeln!(text, "tasks = {}", names(0..8)).expect("a string");
        }
    }
    tasks(&mut text, 8, 1, true, 1);
    text
}

fn flat(count: usize, policy: &str) -> String {
    let mut text = format!("[system]\nname = \"flat\"\npolicy = \"{policy}\"\n[platform]\ncpus = 1\n");
    tasks(&mut text, count, 1, policy == "fixed-priority", 1);
    text
}
