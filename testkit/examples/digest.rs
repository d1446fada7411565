//! A digest of simulated traces, to compare two versions of the simulator record by record.
//!
//! `cargo run --release -p horolog-testkit --example digest -- --systems 10000 --seed 1 --kind all [--each] [--show N]`
//!
//! Simulates random systems of every kind and prints a line a kind: systems, refused ones, records, and a hash of all records
//! of each processor in their order. The same line from two versions means equal traces. `--each` prints a line a system, so that `diff` finds
//! the first that differs; `--show N` prints the records of one. `--cost MS` simulates each system for so long without a trace
//! and prints jobs and time a job; under `valgrind --tool=callgrind` the same command counts instructions.

use horolog_model::System;
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind, short_system};
use horolog_testkit::{Ingredients, Serving, driven_system, mixed_system, resolved, served_system};
use horolog_time::Span;
use horolog_trace::{NullSink, Record, Sink};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

/// A series of systems: its name, and the system of a seed and a number.
type Series = (&'static str, fn(u64, u64) -> System);

/// Where systems come from.
const SERIES: [Series; 21] = [
    ("fixed-priority", |seed, index| short_system(seed, index, Kind::FixedPriority, END)),
    ("edf", |seed, index| short_system(seed, index, Kind::Edf, END)),
    ("background", |seed, index| short_system(seed, index, Kind::Background, END)),
    ("polling", |seed, index| short_system(seed, index, Kind::Polling, END)),
    ("deferrable", |seed, index| short_system(seed, index, Kind::Deferrable, END)),
    ("sporadic", |seed, index| short_system(seed, index, Kind::Sporadic, END)),
    ("posix-sporadic", |seed, index| short_system(seed, index, Kind::PosixSporadic, END)),
    ("priority-exchange", |seed, index| short_system(seed, index, Kind::PriorityExchange, END)),
    ("constant-bandwidth", |seed, index| short_system(seed, index, Kind::ConstantBandwidth, END)),
    ("kernel", |seed, index| short_system(seed, index, Kind::Kernels, END)),
    ("dual-priority", |seed, index| short_system(seed, index, Kind::DualPriority, END)),
    ("slack-stealing", |seed, index| short_system(seed, index, Kind::SlackStealing, END)),
    ("mixed", |seed, index| short_system(seed, index, Kind::Mixed, END)),
    ("larger", |seed, index| mixed_system(seed, index, Ingredients::ALL)),
    ("drivers", driven_system),
    ("served-placed", |seed, index| served_system(seed, index, Serving::Placed, Ingredients::ALL)),
    ("served-edf", |seed, index| served_system(seed, index, Serving::Edf, Ingredients::ALL)),
    ("served-slack", |seed, index| served_system(seed, index, Serving::SlackPolicy, Ingredients::ALL)),
    ("served-kernel", |seed, index| served_system(seed, index, Serving::Kernel, Ingredients::ALL)),
    ("served-plain", |seed, index| served_system(seed, index, Serving::Placed, Ingredients::NONE)),
    ("total-bandwidth", |seed, index| short_system(seed, index, Kind::TotalBandwidth, END)),
];

/// How long short systems are looked at.
const END: u64 = 96;

/// Records, hashed in their order (FNV-1a, 64 bits).
struct Hashed {
    hash: u64,
    /// Of each processor's records: which processor comes first at an instant does not count.
    by_cpu: BTreeMap<u16, u64>,
    records: u64,
    shows: bool,
}

fn add(hash: &mut u64, word: u64) {
    for byte in word.to_le_bytes() {
        *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

impl Hashed {
    fn new(hash: u64, shows: bool) -> Hashed {
        Hashed { hash, by_cpu: BTreeMap::new(), records: 0, shows }
    }

    fn whole(mut self) -> u64 {
        for hash in self.by_cpu.into_values() {
            add(&mut self.hash, hash);
        }
        self.hash
    }
}

impl Sink for Hashed {
    const ACTIVE: bool = true;

    fn record(&mut self, record: Record) {
        self.records += 1;
        let hash = self.by_cpu.entry(record.cpu).or_default();
        for word in [
            record.time.as_ns(),
            record.kind as u64,
            record.cpu.into(),
            record.task.into(),
            record.job,
            record.value,
            record.extra,
        ] {
            add(hash, word);
        }
        if self.shows {
            println!("{record:?}");
        }
    }
}

fn options(name: &str, index: u64) -> SimOptions {
    let short = SERIES[..13].iter().any(|&(other, _)| other == name);
    let horizon = if short { Span::from_ns(END) } else { Span::from_ns(400_000) };
    SimOptions {
        horizon: Horizon::Time(horizon),
        seed: index,
        execution: [ExecutionChoice::Wcet, ExecutionChoice::AsModelled][(index % 2) as usize],
        jitter: [DelayChoice::None, DelayChoice::Uniform, DelayChoice::Max][(index % 3) as usize],
        latency: [DelayChoice::None, DelayChoice::Uniform][(index / 3 % 2) as usize],
        sporadic_extra: Span::from_ns(index % 5),
        max_events: 20_000,
        ..SimOptions::default()
    }
}

/// What a job costs without a trace.
fn print_cost(name: &str, systems: impl Iterator<Item = System>, horizon: Span) {
    let (mut jobs, mut took) = (0_u64, 0_u128);
    for system in systems {
        let system = resolved(&system);
        let options = SimOptions { horizon: Horizon::Time(horizon), ..options(name, 0) };
        let options = SimOptions { max_events: u64::MAX, ..options };
        let begun = Instant::now();
        let Ok(outcome) = simulate(&system, &options, &mut NullSink) else { continue };
        took += begun.elapsed().as_nanos();
        jobs += outcome.tasks.iter().map(|task| task.completed).sum::<u64>();
    }
    println!("{name}: {jobs} jobs, {:.1} ns a job", took as f64 / jobs.max(1) as f64);
}

fn main() -> ExitCode {
    let (mut systems, mut seed, mut kind, mut each, mut show) = (1_000, 1, "all".to_owned(), false, None);
    let mut cost = None;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|value| value.parse::<u64>().ok());
        match word.as_str() {
            "--systems" => systems = number().unwrap_or(systems),
            "--seed" => seed = number().unwrap_or(seed),
            "--show" => show = number(),
            "--cost" => cost = number(),
            "--kind" => kind = words.next().unwrap_or(kind),
            "--each" => each = true,
            _ => {
                eprintln!(
                    "unknown option {word}; there are --systems, --seed, --kind, --each, --show, --cost"
                );
                return ExitCode::from(2);
            }
        }
    }
    for (name, draw) in SERIES.into_iter().filter(|(name, _)| kind == "all" || kind == *name) {
        if let Some(ms) = cost {
            let horizon = Span::from_ns(ms.saturating_mul(1_000_000));
            print_cost(name, (0..systems).map(|index| draw(seed, index)), horizon);
            continue;
        }
        let (mut all, mut refused) = (Hashed::new(0xcbf2_9ce4_8422_2325, false), 0);
        let range = show.map_or(0..systems, |index| index..index + 1);
        for index in range {
            let system = resolved(&draw(seed, index));
            let mut one = Hashed::new(0, show.is_some());
            if show.is_some() {
                println!("{}", horolog_model::file::print(&system));
            }
            match simulate(&system, &options(name, index), &mut one) {
                Ok(outcome) => add(&mut one.hash, outcome.events),
                Err(error) => {
                    refused += 1;
                    add(&mut one.hash, error.to_string().len() as u64);
                }
            }
            let (records, hash) = (one.records, one.whole());
            if each {
                println!("{name} {index} {records} {hash:016x}");
            }
            all.records += records;
            add(&mut all.hash, hash);
        }
        println!("{name}: {systems} systems, {refused} refused, {} records, {:016x}", all.records, all.hash);
    }
    ExitCode::SUCCESS
}
