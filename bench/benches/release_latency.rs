//! Release latency against cyclictest at the same priority, in interleaved pairs.
//!
//! `cargo bench --manifest-path bench/Cargo.toml --bench release_latency [-- PAIRS SAMPLES CPU]`
//!
//! Each pair runs horolog and cyclictest one after the other, in alternating order, 1 ms period, FIFO 90. The ratio of
//! their p50 (p90) is taken in each pair; the interval is the bootstrap's 95 percent of the median ratio over pairs.
//! cyclictest against itself, in the same number of pairs, shows how much of it is noise.

use horolog_exec::latency::{Probe, direct, through_agent};
use horolog_time::Span;
use std::process::{Command, ExitCode};

const PRIORITY: u8 = 90;

/// Latencies of cyclictest, ns.
fn cyclictest(probe: Probe) -> Result<Vec<u64>, String> {
    let output = Command::new("cyclictest")
        .args(["-m", "-t", "1", "-v", "-N"])
        .args(["-p", &probe.priority.to_string(), "-a", &probe.cpu.to_string()])
        .args(["-i", &(probe.period.as_ns() / 1_000).to_string(), "-l", &probe.count.to_string()])
        .output()
        .map_err(|error| format!("cyclictest (package rt-tests): {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let latencies: Vec<u64> = text
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(':').map(str::trim).collect();
            if let [thread, _, latency] = fields[..] {
                thread.parse::<u32>().ok().and(latency.parse().ok())
            } else {
                None
            }
        })
        .collect();
    if latencies.is_empty() { Err(format!("cyclictest printed no samples: {text}")) } else { Ok(latencies) }
}

/// The nearest-rank percentile.
fn percentile(latencies: &mut [u64], percent: usize) -> f64 {
    latencies.sort_unstable();
    let rank = (latencies.len() * percent).div_ceil(100).max(1);
    latencies[rank - 1] as f64
}

/// Median and bootstrap interval of the median.
fn interval(ratios: &[f64]) -> (f64, f64, f64) {
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut medians: Vec<f64> = (0..10_000)
        .map(|_| {
            let mut sample: Vec<f64> = (0..ratios.len())
                .map(|_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    ratios[(state >> 33) as usize % ratios.len()]
                })
                .collect();
            median(&mut sample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    (median(&mut ratios.to_vec()), medians[250], medians[9_749])
}

type Measure = fn(Probe) -> Result<Vec<u64>, String>;

/// Runs the pairs of one comparison and prints its ratios.
fn compare(name: &str, pairs: usize, probe: Probe, ours: Measure, theirs: Measure) -> Result<(), String> {
    let (mut ratios, mut sums) = ([Vec::new(), Vec::new()], [0.0; 4]);
    for pair in 0..pairs {
        let (mut a, mut b) = if pair % 2 == 0 {
            let a = ours(probe)?;
            (a, theirs(probe)?)
        } else {
            let b = theirs(probe)?;
            (ours(probe)?, b)
        };
        for (place, percent) in [50, 90].into_iter().enumerate() {
            let (x, y) = (percentile(&mut a, percent), percentile(&mut b, percent));
            ratios[place].push(x / y);
            sums[place * 2] += x / pairs as f64;
            sums[place * 2 + 1] += y / pairs as f64;
        }
    }
    for (place, percent) in [50, 90].into_iter().enumerate() {
        let (median, low, high) = interval(&ratios[place]);
        println!(
            "{name:<28} p{percent}: ratio {median:.3} [{low:.3}, {high:.3}]   mean {:.0} ns against {:.0} ns",
            sums[place * 2],
            sums[place * 2 + 1]
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let pairs = numbers.first().map_or(20, |&pairs| pairs.max(1) as usize);
    let count = numbers.get(1).copied().unwrap_or(1_000);
    let allowed =
        horolog_sys::affinity::allowed_cpus().map(|cpus| cpus.as_slice().last().copied().unwrap_or(0));
    let cpu = numbers.get(2).map_or(allowed.unwrap_or(0), |&cpu| cpu as u32);
    let probe = Probe { cpu, priority: PRIORITY, period: Span::from_ns(1_000_000), count };
    println!("{pairs} pairs of {count} releases, 1 ms, FIFO {PRIORITY}, cpu {cpu}");
    let ours: Measure = |probe| direct(probe).map_err(|error| error.to_string());
    let agent: Measure = |probe| through_agent(probe).map_err(|error| error.to_string());
    let all = compare("direct / cyclictest", pairs, probe, ours, cyclictest)
        .and_then(|()| compare("cyclictest / cyclictest", pairs, probe, cyclictest, cyclictest))
        .and_then(|()| compare("agent's path / cyclictest", pairs, probe, agent, cyclictest));
    match all {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("SKIPPED: {error}");
            ExitCode::from(3)
        }
    }
}
