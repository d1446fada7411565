//! What an idle preemption point costs: the same loop with and without it, inside a real job.
//!
//! `cargo bench --manifest-path bench/Cargo.toml --bench preemption_point`

use horolog_exec::{Executive, PointVariant, RecordLevel, RunOptions};
use horolog_model::{
    Arrival, CpuId, Cpus, Draft, ExecutionTimes, OverrunPolicy, Platform, Preemption, Priority, SegmentGraph,
    System, Task,
};
use horolog_sys::clock;
use horolog_time::Span;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::mpsc;

const ROUNDS: u64 = 2_000_000;

fn system(cpu: u32) -> System {
    let ms = |ms: u64| Span::from_ns(ms * 1_000_000);
    let graph = SegmentGraph::sequence(&[ms(50), ms(50)]);
    let task = Task {
        name: "loop".into(),
        arrival: Arrival::Periodic { period: ms(150) },
        deadline: Some(ms(150)),
        wcet: ms(100),
        bcet: ms(100),
        offset: Some(Span::ZERO),
        jitter: Span::ZERO,
        priority: Some(Priority::new(1)),
        cpu: CpuId(cpu),
        preemption: Preemption::Deferred(graph),
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        promotion: None,
        sections: Vec::new(),
        criticality: None,
        is_soft: false,
        body: None,
    };
    let platform = Platform { cpus: Cpus::Listed(vec![CpuId(cpu)]), ..Platform::default() };
    System::new(Draft { name: "points".into(), platform, tasks: vec![task], ..Draft::default() })
        .expect("a valid system")
}

/// Thread time of `rounds` rounds, ns.
fn timed(rounds: u64, mut round: impl FnMut(u64)) -> u64 {
    let before = clock::thread_cpu_ns();
    for i in 0..rounds {
        round(black_box(i));
    }
    clock::thread_cpu_ns() - before
}

fn main() -> ExitCode {
    let cpu = horolog_sys::affinity::allowed_cpus()
        .ok()
        .and_then(|cpus| cpus.as_slice().last().copied())
        .unwrap_or(0);
    for (variant, rounds) in [(PointVariant::Flag, ROUNDS), (PointVariant::StatusCall, ROUNDS / 100)] {
        let mut options = RunOptions::for_span(Span::from_ns(3_000_000_000));
        options.record = RecordLevel::NoIdlePoints;
        options.points = variant;
        let (send, receive) = mpsc::channel();
        let run = Executive::new(system(cpu))
            .options(options)
            .body("loop", move |job| {
                let mut counter = 0_u64;
                let without = timed(rounds, |i| counter = black_box(counter.wrapping_add(i)));
                let with = timed(rounds, |i| {
                    counter = black_box(counter.wrapping_add(i));
                    job.preemption_point(true);
                });
                let _ = send.send((without, with));
            })
            .run();
        if let Err(error) = run {
            println!("SKIPPED: {error}");
            return ExitCode::from(3);
        }
        let per_round = |ns: u64| ns as f64 / rounds as f64;
        let all: Vec<(u64, u64)> = receive.iter().collect();
        let without = all.iter().map(|pair| pair.0).min().map_or(f64::NAN, per_round);
        let with = all.iter().map(|pair| pair.1).min().map_or(f64::NAN, per_round);
        println!(
            "{variant:?}: {without:.3} ns a round without, {with:.3} with: {:.3} ns a point (minimum of {} jobs)",
            with - without,
            all.len()
        );
    }
    ExitCode::SUCCESS
}
