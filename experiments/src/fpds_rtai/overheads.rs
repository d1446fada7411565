//! Facts 13 to 15: the thesis's measurement benches.

use super::systems::{Mode, executive, last_cpu, system, task};
use super::work::{Work, iterate, median};
use crate::fact::Series;
use crate::{ExperimentError, ExperimentReport, Fact};
use horolog_exec::{Executive, Job, PointVariant};
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock;
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::status::Status;
use horolog_trace::{Kind, Record};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

/// What the less important task does every n iterations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Point {
    /// Increments a counter: the control.
    Count,
    /// Asks by a system call (v1).
    Status,
    /// Loads a flag (v2).
    Flag,
}

/// A job of `iterations`, with a point every `every`.
fn low_job(job: &mut Job<'_>, iterations: u64, every: u64, point: Point) {
    let mut count = 0_u64;
    let (mut left, step) = (iterations, every.max(1));
    while left > 0 {
        match point {
            Point::Count => count = black_box(count + 1),
            Point::Status | Point::Flag => {
                black_box(job.preemption_point(true));
            }
        }
        let now = left.min(step);
        iterate(now);
        left -= now;
    }
    black_box(count);
}

/// Response times of a task's finished jobs, ns.
fn responses(records: &[Record], task: u32) -> Vec<f64> {
    let mut arrivals: BTreeMap<u64, u64> = BTreeMap::new();
    let mut found = Vec::new();
    for record in records.iter().filter(|record| record.task == task) {
        match record.kind {
            Kind::Release => {
                arrivals.insert(record.job, record.value);
            }
            Kind::Completion => {
                if let Some(arrival) = arrivals.remove(&record.job) {
                    found.push(record.time.as_ns().saturating_sub(arrival) as f64);
                }
            }
            _ => {}
        }
    }
    found
}

/// The median response time of task `task`, ns, and the misses of the first task.
fn median_response(executive: Executive, task: u32) -> Result<(f64, u64), ExperimentError> {
    let result = executive.run()?;
    let missed = result.outcome.tasks[0].missed;
    Ok((median(responses(&result.records, task)), missed))
}

/// Bench 6.6.2 and its repetition in 7.3: the cost of a preemption point.
pub(super) fn point_cost(
    work: &Work,
    full: bool,
    report: &mut ExperimentReport,
) -> Result<(), ExperimentError> {
    // Short enough that no job outlasts its period at the smallest n: a backlog would count as cost.
    let iterations = work.iterations(4_000_000);
    let jobs = if full { 60 } else { 20 };
    let everies: [u64; 6] = [300, 600, 1_000, 3_000, 10_000, 30_000];
    let mut rows = Vec::new();
    for every in everies {
        let mut row = vec![every as f64, iterations.div_ceil(every) as f64];
        for point in [Point::Count, Point::Status, Point::Flag] {
            row.push(alone(iterations, every, point, jobs)?);
        }
        rows.push(row);
    }
    let status = Status::new()?;
    let bare = call_ns(|| {
        black_box(status.ask());
    });
    let trivial = call_ns(|| {
        black_box(std::os::unix::process::parent_id());
    });
    let excess: Vec<f64> = rows.iter().map(|row| row[3] - row[2]).collect();
    let costs: Vec<f64> = rows.iter().zip(&excess).take(4).map(|(row, excess)| excess / row[1]).collect();
    let cost = median(costs);
    report.facts.push(Fact::trend(
        13,
        "a v1 preemption point costs about one system call",
        "440 ns against 434 ns: 1.014",
        format!("{cost:.0} ns against {bare:.0} ns: {:.2}", cost / bare),
        (0.67..=1.5).contains(&(cost / bare)),
        &format!(
            "our status call is poll(2) on an eventfd, here called bare; getppid(2) takes {trivial:.0} ns"
        ),
    ));
    let flag: Vec<f64> = rows.iter().map(|row| row[4] / row[2]).collect();
    report.facts.push(Fact::trend(
        13,
        "v2's run time is close to the control that increments a counter",
        "close to FPPS",
        format!("ratios {}", flag.iter().map(|r| format!("{r:.3}")).collect::<Vec<_>>().join(", ")),
        median(flag) < 1.05,
        "median over n of the medians of response times",
    ));
    let slope = slope(&rows.iter().map(|row| row[0].ln()).collect::<Vec<_>>()[..4], &excess[..4]);
    report.facts.push(Fact::trend(
        13,
        "v1's excess over the control scales with 1/n",
        "1/n",
        format!("n to the power {slope:.2}"),
        (-1.2..=-0.8).contains(&slope),
        "least squares over the four smallest n, where the excess stands above the noise",
    ));
    report.series.push(Series {
        name: "figures 6.6 and 7.1: response time of the lone task".to_owned(),
        columns: ["n", "points", "counter_ns", "v1_ns", "v2_ns"].map(str::to_owned).to_vec(),
        rows,
    });
    Ok(())
}

/// The exponent of a power law through the points, by least squares on logarithms.
fn slope(ln_x: &[f64], y: &[f64]) -> f64 {
    let points: Vec<(f64, f64)> =
        ln_x.iter().zip(y).filter(|(_, y)| **y > 0.0).map(|(x, y)| (*x, y.ln())).collect();
    let n = points.len() as f64;
    let (mean_x, mean_y) =
        (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let over: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let under: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    over / under
}

/// The least time of a call over several tries.
fn call_ns(mut call: impl FnMut()) -> f64 {
    let count = 20_000;
    (0..9)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..count {
                call();
            }
            begin.elapsed().as_nanos() as f64 / f64::from(count)
        })
        .fold(f64::INFINITY, f64::min)
}

fn alone(iterations: u64, every: u64, point: Point, jobs: u64) -> Result<f64, ExperimentError> {
    let period = 30_000_000;
    let mode = if point == Point::Count { Mode::Preemptive } else { Mode::Deferred(2) };
    let tasks = vec![task("low", period, 28_000_000, 1, mode)];
    let variant = if point == Point::Status { PointVariant::StatusCall } else { PointVariant::Flag };
    let executive = executive(system(tasks, None)?, jobs * period, |options| options.points = variant)
        .body("low", move |job: &mut Job<'_>| low_job(job, iterations, every, point));
    Ok(median_response(executive, 0)?.0)
}

/// Bench 6.6.1: what the feature costs a system in which nobody is non-preemptive.
pub(super) fn scheduler_overhead(
    work: &Work,
    full: bool,
    report: &mut ExperimentReport,
) -> Result<(), ExperimentError> {
    let iterations = work.iterations(8_000_000);
    let rounds = if full { 15 } else { 5 };
    let mut rows = Vec::new();
    for period in [500_000_u64, 1_000_000, 2_000_000, 5_000_000] {
        let mut ratios = [Vec::new(), Vec::new(), Vec::new()];
        let mut off = Vec::new();
        // Interleaved, so that what the machine does meanwhile meets all of them.
        for _ in 0..rounds {
            let first = beside_empty(iterations, period, Feature::Off)?;
            let compared = [Feature::Off, Feature::On, Feature::Used];
            for (ratios, feature) in ratios.iter_mut().zip(compared) {
                ratios.push(beside_empty(iterations, period, feature)? / first);
            }
            off.push(first);
        }
        let [again, on, used] = ratios.map(median);
        rows.push(vec![period as f64 / 1e6, median(off), again, on, used]);
    }
    let column = |index: usize| rows.iter().map(|row| row[index]).collect::<Vec<f64>>();
    let text = |ratios: Vec<f64>| ratios.iter().map(|r| format!("{r:.3}")).collect::<Vec<_>>().join(", ");
    let noise = column(2).into_iter().map(|ratio| (ratio - 1.0).abs()).fold(0.02, f64::max);
    report.facts.push(Fact::trend(
        14,
        "without non-preemptive tasks the extended scheduler shows no slowdown at any timer period",
        "no visible difference",
        format!("on/off {}; off/off (the noise) {}", text(column(3)), text(column(2))),
        column(3).into_iter().all(|ratio| ratio <= 1.0 + 2.0 * noise),
        "off: a bare program of two SCHED_FIFO threads; on: the same set under the executive, which lets the kernel \
         decide; the last column has a third, deferred task on the same processor, so that the agent drives all three",
    ));
    report.series.push(Series {
        name: "figure 6.5: response time of the low task beside an empty high task".to_owned(),
        columns: ["timer_period_ms", "off_ns", "off_again", "on", "agent_drives"].map(str::to_owned).to_vec(),
        rows,
    });
    Ok(())
}

/// How much of the mechanism is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Feature {
    /// None: a bare program with two threads and no executive.
    Off,
    /// The executive, and no task that is non-preemptive.
    On,
    /// A third task is deferred, so that the agent drives the processor.
    Used,
}

const LOW_PERIOD: u64 = 40_000_000;
const LOW_JOBS: u64 = 4;

/// The low task beside an empty high one: the median of its response times.
fn beside_empty(iterations: u64, period: u64, feature: Feature) -> Result<f64, ExperimentError> {
    if feature == Feature::Off {
        return bare(iterations, period);
    }
    let mut tasks = vec![
        task("high", period, period / 10, 3, Mode::Preemptive),
        task("low", LOW_PERIOD, 30_000_000, 2, Mode::Preemptive),
    ];
    if feature == Feature::Used {
        tasks.push(task("third", LOW_PERIOD, 200_000, 1, Mode::Deferred(2)));
    }
    let mut executive = executive(system(tasks, None)?, LOW_JOBS * LOW_PERIOD, |_| {})
        .body("high", |_: &mut Job<'_>| {})
        .body("low", move |_: &mut Job<'_>| iterate(iterations));
    if feature == Feature::Used {
        executive = executive.body("third", |_: &mut Job<'_>| {});
    }
    Ok(median_response(executive, 1)?.0)
}

/// The same two tasks as a bare program: two pinned `SCHED_FIFO` threads that sleep to their releases.
fn bare(iterations: u64, period: u64) -> Result<f64, ExperimentError> {
    let start = clock::monotonic_ns() + 20_000_000;
    let end = start + LOW_JOBS * LOW_PERIOD;
    let high = std::thread::spawn(move || {
        become_real_time(81)?;
        let mut at = start;
        while at < end {
            let _ = clock::sleep_until(at);
            at += period;
        }
        Ok::<(), horolog_sys::Error>(())
    });
    let low = std::thread::spawn(move || {
        become_real_time(80)?;
        let mut responses = Vec::new();
        for job in 0..LOW_JOBS {
            let arrival = start + job * LOW_PERIOD;
            let _ = clock::sleep_until(arrival);
            iterate(iterations);
            responses.push((clock::monotonic_ns() - arrival) as f64);
        }
        Ok::<Vec<f64>, horolog_sys::Error>(responses)
    });
    let ended = |_| ExperimentError::failed("a thread of the bare program panicked");
    high.join().map_err(ended)??;
    Ok(median(low.join().map_err(ended)??))
}

/// Pins the calling thread to the experiment's CPU and puts it under `SCHED_FIFO`.
fn become_real_time(priority: u8) -> Result<(), horolog_sys::Error> {
    set_affinity(0, &CpuSet::new([last_cpu().0]))?;
    set_class(0, Class::Fifo(priority))
}

/// Bench 6.6.3: the example task set under FPPS and FPDS.
pub(super) fn example_set(
    work: &Work,
    full: bool,
    report: &mut ExperimentReport,
) -> Result<(), ExperimentError> {
    // The thesis's proportions, a hundredth of its length: segments of 60 us, a high job of 20 of them.
    let high = work.iterations(1_200_000);
    let low = work.iterations(60_000_000);
    let segment = work.iterations(60_000);
    let rounds = if full { 15 } else { 4 };
    let mut rows = Vec::new();
    let mut missed_high = [0, 0];
    for period in [3_000_000_u64, 4_000_000, 6_000_000, 10_000_000, 20_000_000] {
        let (mut preemptive, mut deferred, mut excess) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (first, missed_first) = pair(period, high, low, segment, false)?;
            let (second, missed_second) = pair(period, high, low, segment, true)?;
            missed_high[0] += missed_first;
            missed_high[1] += missed_second;
            preemptive.push(first / 1e6);
            deferred.push(second / 1e6);
            excess.push(100.0 * (second / first - 1.0));
        }
        rows.push(vec![period as f64 / 1e6, median(preemptive), median(deferred), median(excess)]);
    }
    let excess: Vec<f64> = rows.iter().map(|row| row[3]).collect();
    let mean = excess.iter().sum::<f64>() / excess.len() as f64;
    let worst = excess.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let [missed_fpps, missed_fpds] = missed_high;
    // The host takes the processor away for milliseconds at a time, which no policy survives: what FPPS misses too is
    // not the deferral's.
    let no_more_missed = missed_fpds <= missed_fpps + missed_fpps / 2 + 3;
    report.facts.push(Fact::trend(
        15,
        "the low task's response time under FPDS lies above FPPS by a few percent; no high deadline is missed",
        "mean about 3 %, at most 17 %; none missed",
        format!("mean {mean:.1} %, at most {worst:.1} %; missed under FPDS {missed_fpds}, under FPPS {missed_fpps}"),
        (-2.0..=17.0).contains(&mean) && worst <= 17.0 && no_more_missed,
        "ours takes a fast flag (v2) where the thesis's bench took v1, so less is expected; deadlines that FPPS misses \
         as well are the host's, which takes the processor away",
    ));
    report.series.push(Series {
        name: "figure 6.7: response time of the low task, FPPS and FPDS".to_owned(),
        columns: ["high_period_ms", "fpps_ms", "fpds_ms", "excess_percent"].map(str::to_owned).to_vec(),
        rows,
    });
    Ok(())
}

fn pair(
    high_period: u64,
    high: u64,
    low: u64,
    segment: u64,
    deferred: bool,
) -> Result<(f64, u64), ExperimentError> {
    let low_period = 300_000_000;
    let mode = if deferred { Mode::Deferred(1_000) } else { Mode::Preemptive };
    let tasks = vec![
        task("high", high_period, 2_000_000, 2, Mode::Preemptive),
        task("low", low_period, 250_000_000, 1, mode),
    ];
    let point = if deferred { Point::Flag } else { Point::Count };
    let executive = executive(system(tasks, None)?, 2 * low_period, |_| {})
        .body("high", move |_: &mut Job<'_>| iterate(high))
        .body("low", move |job: &mut Job<'_>| low_job(job, low, segment, point));
    median_response(executive, 1)
}
