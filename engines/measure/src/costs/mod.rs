//! What this machine's kernel costs: context switch, timer interrupt, release latency, clock, system call, and the
//! interrupts of devices.
//!
//! [`measure`] gives `[platform]` of a system file its numbers. Each cost is measured as a distribution; the number
//! that goes into the file is a stated percentile of it (see [`PlatformCosts`]), never a single maximum: on a virtual
//! machine the maximum is the hypervisor's, not the kernel's, and it does not repeat.

mod interrupts;
mod probes;
mod source;

pub use interrupts::{InterruptCost, InterruptSource, Recorded, Unprovoked, Witness};
pub use source::MachineSource;

use crate::Percentiles;
use crate::interference::{HeldBackCounter, held_back_note};
use horolog_sys::Error;
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock::monotonic_ns;
use horolog_sys::fixed_priority::{Class, may_use_fifo, set_class};
use horolog_sys::kernel_trace::{Overflow, Recorder, RecorderOptions};
use horolog_sys::steal::stolen_ns;
use horolog_time::Span;
use horolog_trace::ResponseStatistics;
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What to measure and for how long.
#[derive(Clone, Debug)]
pub struct CostOptions {
    /// On which CPU; the one that the system's tasks will use.
    pub cpu: u32,
    /// SCHED_FIFO priority of the measuring threads; the tasks' highest gives the most faithful numbers.
    pub priority: u8,
    /// How long all of it takes; more only where a probe finds nothing in its part.
    pub budget: Span,
    /// Record the kernel meanwhile, as a run with a trace does, so that the record's own cost is inside.
    pub recorded: bool,
    /// Which interrupts are provoked and measured as well; each takes 0.4 of the budget beside the others.
    pub interrupts: Vec<InterruptSource>,
    /// Once it is set, the measurement ends with an error within a second or so, and everything is put back.
    pub stop: Arc<AtomicBool>,
}

impl CostOptions {
    /// Measures `cpu` at priority 90 within 2.5 seconds, while the kernel is recorded, and provokes no interrupts.
    #[must_use]
    pub fn new(cpu: u32) -> CostOptions {
        let budget = Span::from_ns(2_500_000_000);
        CostOptions {
            cpu,
            priority: 90,
            budget,
            recorded: true,
            interrupts: Vec::new(),
            stop: Arc::default(),
        }
    }
}

/// How often a probe that found nothing is run again, and how much longer each time: beyond what the kernel holds real-time
/// threads back for in a second.
const LONGER_TRIES: u32 = 4;
const AT_LEAST: Span = Span::from_ns(200_000_000);
/// A probe runs no longer than this at a time.
const PIECE: Span = Span::from_ns(1_000_000_000);

/// What an interrupt's share of the time is, where those of the other costs are 1 to 7 and 25 in all.
const INTERRUPT_WEIGHT: u64 = 10;

/// How far the measurement is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// What is measured now.
    pub stage: &'static str,
    /// Share of the whole that is done, 0 to 1.
    pub done: f64,
}

/// The measured costs: the JSON result `horolog.costs/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Always `horolog.costs/1`.
    pub schema: &'static str,
    /// On which CPU.
    pub cpu: u32,
    /// `SCHED_FIFO 90`.
    pub class: String,
    /// How long it took.
    pub elapsed_ns: Span,
    /// What the hypervisor took from the CPU meanwhile (in ticks of 10 ms or so); null where the kernel does not say.
    pub stolen_ns: Option<Span>,
    /// How often RT throttling or the fair server took the CPU from a runnable real-time thread; null where that could not
    /// be watched.
    pub held_back: Option<u64>,
    /// The distributions.
    pub costs: Vec<Cost>,
    /// What goes into a system file.
    pub platform: PlatformCosts,
    /// The interrupts that were provoked.
    pub interrupts: Vec<InterruptCost>,
    /// Those that could not be.
    pub unprovoked: Vec<Unprovoked>,
    /// What the reader must know to read the numbers right.
    pub notes: Vec<String>,
}

/// One measured cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Its name.
    pub name: &'static str,
    /// What exactly one sample is.
    pub sample: &'static str,
    /// What the samples were.
    #[serde(flatten)]
    pub time: Percentiles,
}

/// The costs of `[platform]`, each a percentile of its distribution, rounded up to two significant digits.
///
/// - `context_switch`: the 99th percentile of half a round trip between two threads of equal priority on this CPU that
///   wake each other by futex. One way is a wake-up, a sleep and the switch between them, which is what a release or
///   the end of a job costs; the bare switch by `sched_yield` stands beside it in the distributions.
/// - `timer_interrupt`: the 99th percentile of the time that a one-shot timer interrupt takes from a thread that spins.
/// - `release_latency`: the 99.9th percentile of how late a thread wakes from an absolute sleep, the greater of the
///   idle and the loaded CPU. A release is judged alone, while switches and interrupts add up over a window, where
///   their tails average out; so latency takes the higher percentile.
///
/// These are statistics, no proven bounds: `verify` compares every single release of a run with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PlatformCosts {
    /// Cost of one context switch.
    pub context_switch_ns: Span,
    /// Cost of one timer interrupt.
    pub timer_interrupt_ns: Span,
    /// How late a release may be noticed.
    pub release_latency_ns: Span,
}

impl Costs {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.costs/1";

    /// The measured cost of this name.
    #[must_use]
    pub fn cost(&self, name: &str) -> Option<&Cost> {
        self.costs.iter().find(|cost| cost.name == name)
    }

    /// The lines for `[platform]` of a system file, each with the statistic that it stands for.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let PlatformCosts { context_switch_ns, timer_interrupt_ns, release_latency_ns } = self.platform;
        let mut text = format!(
            "# measured on cpu {} under {} by `horolog measure costs`\n[platform]\n",
            self.cpu, self.class
        );
        let count = |name| self.cost(name).map_or(0, |cost| cost.time.count);
        let mut line = |key: &str, value: Span, statistic: &str, samples: u64| {
            let value = format!("\"{value}\"");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key:<15} = {value:<10} # {statistic} of {samples} samples");
        };
        line("context_switch", context_switch_ns, "p99", count("context switch, futex"));
        line("timer_interrupt", timer_interrupt_ns, "p99", count("timer interrupt"));
        let loaded = self.platform_source();
        line("release_latency", release_latency_ns, "p99.9", count(loaded));
        // No key of the platform: an interrupt has a rate of its own, which no measurement of its cost can tell.
        self.interrupts.iter().for_each(|interrupt| text.push_str(&interrupt.to_toml()));
        text
    }

    /// Which of the two latencies gave the platform its number.
    fn platform_source(&self) -> &'static str {
        let p99_9 = |name| self.cost(name).map_or(Span::ZERO, |cost| cost.time.ns_p99_9);
        let (idle, loaded) = ("release latency, idle", "release latency, loaded");
        if p99_9(idle) > p99_9(loaded) { idle } else { loaded }
    }
}

/// Measures the costs of one CPU. Real-time threads run on that CPU alone, below the limit of RT throttling.
///
/// # Errors
/// Where the CPU cannot be used, SCHED_FIFO is not allowed, a probe yields nothing, or `stop` was set.
pub fn measure(options: &CostOptions, progress: &mut dyn FnMut(Progress)) -> Result<Costs, Error> {
    let setting = Setting::real_time(options.cpu, options.priority)?;
    let recorder = options.recorded.then(|| record(vec![options.cpu]));
    let started = monotonic_ns();
    let stolen_before = stolen_ns(options.cpu).ok();
    let counter = HeldBackCounter::start(options.cpu).ok();
    let stages = probes::STAGES;
    let whole: u64 = stages.iter().map(|stage| u64::from(stage.weight)).sum();
    let all = whole + INTERRUPT_WEIGHT * options.interrupts.len() as u64;
    let mut costs = Vec::new();
    let mut before: u64 = 0;
    for stage in stages {
        progress(Progress { stage: stage.name, done: before as f64 / all as f64 });
        let share = share_of(options.budget, u64::from(stage.weight), whole);
        costs.push(run(stage, setting, share, &options.stop)?);
        before += u64::from(stage.weight);
    }
    let is_recorded = recorder.as_ref().map(|recorder| recorder.as_ref().map(|_| ()).map_err(Clone::clone));
    let stolen =
        stolen_before.and_then(|before| stolen_ns(options.cpu).ok()?.checked_sub(before)).map(Span::from_ns);
    drop(recorder);
    let held_back = counter.and_then(|counter| counter.read().ok());
    let (interrupts, unprovoked) = provoke(options, setting, whole, progress);
    go_on(&options.stop)?;
    progress(Progress { stage: "done", done: 1.0 });
    let mut result = Costs {
        schema: Costs::SCHEMA,
        cpu: options.cpu,
        class: format!("SCHED_FIFO {}", options.priority),
        elapsed_ns: Span::from_ns(monotonic_ns().saturating_sub(started)),
        stolen_ns: stolen,
        held_back,
        platform: platform(&costs)?,
        costs,
        interrupts,
        unprovoked,
        notes: Vec::new(),
    };
    result.notes = notes(&result);
    result.notes.push(held_back_note(held_back));
    result.notes.push(match is_recorded {
        None => "the kernel was not recorded meanwhile: a run with a trace costs a little more".to_owned(),
        Some(Ok(())) => "the kernel was recorded meanwhile, as in a run with a trace".to_owned(),
        Some(Err(error)) => format!("the kernel could not be recorded meanwhile ({})", error.what()),
    });
    Ok(result)
}

/// An error once the measurement is to stop.
pub(crate) fn go_on(stop: &AtomicBool) -> Result<(), Error> {
    match stop.load(Ordering::Acquire) {
        true => Err(Error::unexpected("measuring", "stopped before it was done", "measure again")),
        false => Ok(()),
    }
}

/// Provokes the interrupts that were asked for, each by itself: one that is not to be had here leaves the others.
fn provoke(
    options: &CostOptions,
    setting: Setting,
    whole: u64,
    progress: &mut dyn FnMut(Progress),
) -> (Vec<InterruptCost>, Vec<Unprovoked>) {
    let (mut found, mut unprovoked) = (Vec::new(), Vec::new());
    let share = share_of(options.budget, INTERRUPT_WEIGHT, whole);
    let all = whole + INTERRUPT_WEIGHT * options.interrupts.len() as u64;
    let mut before = whole;
    for &source in &options.interrupts {
        progress(Progress { stage: source.stage(), done: before as f64 / all as f64 });
        before += INTERRUPT_WEIGHT;
        match interrupts::measure(source, setting, share, &options.stop) {
            Ok(cost) => found.push(cost),
            Err(error) => {
                unprovoked.push(Unprovoked { source: source.name(), reason: error.to_string() });
            }
        }
    }
    (found, unprovoked)
}

/// A record that nobody reads: its newest 1 MiB is kept and thrown away.
fn record(cpus: Vec<u32>) -> Result<Recorder, Error> {
    Recorder::start(&RecorderOptions {
        memory_mib: 1,
        overflow: Overflow::DropOldest,
        ..RecorderOptions::new(cpus)
    })
}

/// On which CPU and in which class the probes run.
#[derive(Clone, Copy, Debug)]
struct Setting {
    cpu: u32,
    class: Class,
}

impl Setting {
    /// SCHED_FIFO at this priority.
    ///
    /// # Errors
    /// Where it is not allowed: what is measured under normal scheduling holds other threads' time.
    fn real_time(cpu: u32, priority: u8) -> Result<Setting, Error> {
        may_use_fifo(priority)?;
        Ok(Setting { cpu, class: Class::Fifo(priority) })
    }

    /// Puts the calling thread there. The class comes first: an ordinary thread that moved to a CPU where a real-time
    /// thread spins would never get to raise itself.
    fn enter(self) -> Result<(), Error> {
        set_class(0, self.class)?;
        set_affinity(0, &CpuSet::new([self.cpu]))
    }
}

/// `budget · weight / whole`, without overflow.
fn share_of(budget: Span, weight: u64, whole: u64) -> Span {
    let share = u128::from(budget.as_ns()) * u128::from(weight) / u128::from(whole.max(1));
    Span::from_ns(u64::try_from(share).unwrap_or(u64::MAX))
}

/// Runs a probe; again, and longer, where it found nothing: on a busy machine, RT throttling, the fair server or the host may
/// take all of a short time.
fn run(stage: &probes::Stage, setting: Setting, share: Span, stop: &AtomicBool) -> Result<Cost, Error> {
    let mut share = share;
    for _ in 0..LONGER_TRIES {
        if let Ok(cost) = summarise(stage, &samples(stage, setting, share, stop)?) {
            return Ok(cost);
        }
        share = share.checked_add(AT_LEAST).unwrap_or(share);
    }
    summarise(stage, &samples(stage, setting, share, stop)?)
}

/// A probe's samples, piece by piece, so that a long measurement keeps only their distribution.
fn samples(
    stage: &probes::Stage,
    setting: Setting,
    share: Span,
    stop: &AtomicBool,
) -> Result<ResponseStatistics, Error> {
    let mut statistics = ResponseStatistics::default();
    let mut left = share;
    while !left.is_zero() {
        let piece = left.min(PIECE);
        left = left.saturating_sub(piece);
        go_on(stop)?;
        let samples = (stage.run)(setting, piece)?;
        samples.0.into_iter().for_each(|sample| statistics.record(Span::from_ns(sample)));
    }
    Ok(statistics)
}

fn summarise(stage: &probes::Stage, statistics: &ResponseStatistics) -> Result<Cost, Error> {
    let cost = |time| Cost { name: stage.name, sample: stage.sample, time };
    Percentiles::of(statistics).map(cost).ok_or_else(|| {
        Error::unexpected(
            format!("measuring {}", stage.name),
            "no sample in the time allowed",
            "allow more time",
        )
    })
}

fn platform(costs: &[Cost]) -> Result<PlatformCosts, Error> {
    let find = |name: &str| {
        costs
            .iter()
            .find(|cost| cost.name == name)
            .ok_or_else(|| Error::unexpected("measuring costs", format!("no {name}"), "report this"))
    };
    let idle = find("release latency, idle")?.time.ns_p99_9;
    let loaded = find("release latency, loaded")?.time.ns_p99_9;
    Ok(PlatformCosts {
        context_switch_ns: find("context switch, futex")?.time.ns_p99.rounded_up(),
        timer_interrupt_ns: find("timer interrupt")?.time.ns_p99.rounded_up(),
        release_latency_ns: idle.max(loaded).rounded_up(),
    })
}

fn notes(costs: &Costs) -> Vec<String> {
    let mut notes = vec![
        "context_switch and timer_interrupt are p99, release_latency p99.9 of the samples, rounded up to two \
         significant digits: statistics of this machine now, no proven bounds"
            .to_owned(),
    ];
    for cost in costs.costs.iter().filter(|cost| cost.name.starts_with("release") && cost.time.count < 1_000)
    {
        notes.push(format!(
            "{}: {} samples are too few for a p99.9; it is their maximum",
            cost.name, cost.time.count
        ));
    }
    if let Some(stolen) = costs.stolen_ns.filter(|stolen| !stolen.is_zero()) {
        notes.push(format!(
            "the hypervisor took {stolen} from the CPU meanwhile: the maxima are its, not the kernel's"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_budget_at_most() {
        let budget = Span::MAX;
        let sum: u128 = (1..=4).map(|weight| u128::from(share_of(budget, weight, 10).as_ns())).sum();
        assert!(sum <= u128::from(budget.as_ns()));
        assert_eq!(share_of(Span::from_ns(100), 1, 4), Span::from_ns(25));
    }
}
