//! The whole analysis of one processor by the number of its tasks, under both policies: reading the file, every verdict and
//! response time, the scaling factor.
//!
//! Systems: periods from 1 ms to 1 s, evenly by their logarithm, a utilisation of 0.8 in all, seed = number of tasks. Every
//! verdict is `meets` (not of those with much jitter), and every response time must be there and exact: what gives up is not fast.

use horolog_analysis::{Options, Schedulable, analyze};
use horolog_bench::repeat;
use std::fmt::Write;
use std::hint::black_box;

fn main() {
    // `POLICY TASKS REPETITIONS` runs some cases alone, for `perf stat`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let only = arguments.first().map(String::as_str);
    let size = arguments.get(1).and_then(|n| n.parse().ok());
    let repetitions = arguments.get(2).and_then(|n| n.parse().ok()).unwrap_or(3);
    let series = [
        ("fixed-priority", Kind::Preemptive),
        ("fixed-priority", Kind::NonPreemptive),
        ("fixed-priority", Kind::Late),
        ("edf", Kind::Preemptive),
    ];
    for (policy, kind) in series {
        for tasks in [10, 100, 1_000, 10_000] {
            if only.is_some_and(|only| only != policy) || size.is_some_and(|size: u64| size != tasks) {
                continue;
            }
            let text = many(tasks, policy, kind);
            let (least, median) = repeat(repetitions, || analyze_file(black_box(&text), kind));
            println!(
                "analyze {policy:<15} {kind:<15} {tasks:>6} tasks {:>9.4} s by the minimum {:>9.4} s by the median",
                least.as_secs_f64(),
                median.as_secs_f64(),
                kind = kind.words()
            );
        }
    }
}

/// What `horolog analyze FILE` does before it prints.
fn analyze_file(text: &str, kind: Kind) {
    let (system, _) = horolog_model::file::read(text, "many.toml", &[]).expect("a valid file");
    let mut options = Options::default();
    options.sensitivity = true;
    let found = analyze(&system, &options).expect("within the assumptions");
    // With jitter of five periods some deadline of eight is missed, and some of few tasks that are long and not preempted.
    let may_miss =
        matches!(kind, Kind::Late) || matches!(kind, Kind::NonPreemptive) && found.tasks.len() < 1_000;
    assert!(found.schedulable == Schedulable::Yes || may_miss);
    assert!(found.tasks.iter().all(|task| task.exact && task.response.is_some()));
}

/// What kind of tasks.
#[derive(Clone, Copy)]
enum Kind {
    Preemptive,
    NonPreemptive,
    /// Jitter of five periods, deadlines of eight.
    Late,
}

impl Kind {
    const fn words(self) -> &'static str {
        match self {
            Kind::Preemptive => "preemptive",
            Kind::NonPreemptive => "non-preemptive",
            Kind::Late => "jitter",
        }
    }
}

/// A system of many tasks, as in `front/cli/tests/scale.rs`.
fn many(tasks: u64, policy: &str, kind: Kind) -> String {
    let mut text = format!("[system]\nname = \"many\"\npolicy = \"{policy}\"\n");
    if policy == "fixed-priority" {
        text += "priorities = \"deadline-monotonic\"\n";
    }
    let mut state = tasks;
    for task in 0..tasks {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (state >> 40) as f64 / (1_u64 << 24) as f64;
        let period = (1e6 * 1_000_f64.powf(part)) as u64 / 1_000 * 1_000;
        let wcet = ((period as f64 * 0.8 / tasks as f64) as u64).max(1);
        writeln!(text, "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"")
            .expect("a string");
        text += &match kind {
            Kind::Preemptive => String::new(),
            Kind::NonPreemptive => "preemption = \"non-preemptive\"\n".to_owned(),
            Kind::Late => {
                format!("jitter = \"{} ns\"\ndeadline = \"{} ns\"\n", 5 * period, 8 * period)
            }
        };
    }
    text
}
