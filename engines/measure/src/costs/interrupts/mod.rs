//! What the interrupt of a device takes from a most important thread.
//!
//! Each source is provoked in a bounded way, one request after the other, from another CPU than the one that its interrupt
//! comes to. Two witnesses that know nothing of each other: the gap that a spinning thread sees on that CPU just before the
//! request is answered, and the kernel's own record of its handlers. The same thread looks without requests, too: how often
//! a window as long holds a gap anyway says how far the percentiles can be trusted.

mod landing;
mod provoke;
mod watch;
mod witness;

pub use provoke::InterruptSource;

use super::{Setting, go_on};
use crate::Percentiles;
use horolog_sys::Error;
use horolog_time::Span;
use horolog_trace::ResponseStatistics;
use landing::{Landing, find};
use provoke::Provoker;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use watch::{Seen, watch};

/// What one kind of interrupt costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterruptCost {
    /// What was provoked: `disk`, `call` or `network`.
    pub source: &'static str,
    /// The device's or the kernel's name for it.
    pub name: String,
    /// Its line in `/proc/interrupts`: `36`, or `CAL`.
    pub interrupt: String,
    /// To which CPU it comes.
    pub cpu: u32,
    /// What exactly one sample is.
    pub sample: &'static str,
    /// Who saw the samples.
    pub witness: Witness,
    /// Requests while that witness looked.
    pub provoked: u64,
    /// Interrupts of this line on that CPU meanwhile, as the kernel counts them (others' among them).
    pub interrupts: u64,
    /// Requests of which no interrupt was seen: several were answered by one, or it came elsewhere.
    pub unseen: u64,
    /// The samples.
    #[serde(flatten)]
    pub time: Percentiles,
    /// The share of windows without a request that hold a gap anyway, as the timer's; null where nobody spun.
    pub disturbed_share: Option<f64>,
    /// Shortest time from a request to its answer: with one request at a time its interrupts are no closer.
    pub round_trip_ns_min: Span,
    /// The second witness: what the kernel records of its handlers meanwhile.
    pub recorded: Option<Recorded>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// Who saw a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// A thread that reads the clock as often as it can, and misses the time of the interrupt whole.
    SpinningThread,
    /// The kernel's record of its handlers' entries and exits, without the way into the kernel and back.
    KernelRecord,
}

/// Handlers as the kernel's record has them. Recording costs something, which is inside.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    /// From the entry of the interrupt's handler to its exit.
    pub handler: Percentiles,
    /// Softirqs behind it in the same gap, where there were any.
    pub softirqs: Option<Percentiles>,
}

/// A source that could not be provoked here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unprovoked {
    /// `disk`, `call` or `network`.
    pub source: &'static str,
    /// Why, with the remedy.
    pub reason: String,
}

impl InterruptCost {
    /// The 99th percentile, rounded up as those of `[platform]`.
    pub fn cost(&self) -> Span {
        self.time.ns_p99.rounded_up()
    }

    /// An `[[interrupt]]` of a system file as comments, for a user to take: how often it may come is the device's.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let InterruptCost { name, cpu, time, round_trip_ns_min, .. } = self;
        format!(
            "\n# [[interrupt]]\n# name       = \"{name}\"\n# cpu        = {cpu}\n# separation = \"{round_trip_ns_min}\" # \
             the shortest request here, one at a time; more at once come closer\n# cost       = \"{}\" # p99 of {} \
             samples\n",
            self.cost(),
            time.count
        )
    }
}

/// Provokes one source for about `budget`.
pub(super) fn measure(
    source: InterruptSource,
    setting: Setting,
    budget: Span,
    stop: &Arc<AtomicBool>,
) -> Result<InterruptCost, Error> {
    go_on(stop)?;
    let mut provoker = Provoker::prepare(source, setting.cpu)?;
    let result = observe(&mut provoker, source, setting, budget, stop);
    // What was set up is put back before anything is said.
    let finished = provoker.finish();
    let cost = result?;
    finished?;
    Ok(cost)
}

fn observe(
    provoker: &mut Provoker,
    source: InterruptSource,
    setting: Setting,
    budget: Span,
    stop: &Arc<AtomicBool>,
) -> Result<InterruptCost, Error> {
    let landing = find(provoker, source, setting)?;
    let share = |percent: u64| Span::from_ns(budget.as_ns() / 100 * percent);
    let spun =
        if landing.follows { None } else { Some(watch(provoker, &landing, setting, share(65), stop)?) };
    let recorded = witness::record(provoker, &landing, setting, share(35), stop);
    let mut notes = Vec::new();
    let (seen, handlers) = match (spun, recorded) {
        (Some(seen), Ok((_, recorded))) => (seen, recorded),
        (Some(seen), Err(error)) => {
            notes.push(format!("no second witness: {error}"));
            (seen, None)
        }
        // The interrupt comes to the CPU that asks, where nobody can spin beside the asker.
        (None, Ok((seen, recorded))) => {
            notes.push(
                "it comes to the CPU that asks, so that no thread can spin there: the kernel's record alone"
                    .to_owned(),
            );
            (seen, recorded)
        }
        (None, Err(error)) => return Err(error),
    };
    if landing.cpu != setting.cpu {
        notes.push(format!("it comes to cpu {}: tasks on cpu {} never see it", landing.cpu, setting.cpu));
    }
    if seen.disturbed_share.is_some_and(|share| share > 0.05) {
        notes.push(
            "more than one window in twenty is disturbed without it: trust the median alone".to_owned(),
        );
    }
    summarise(source, &landing, &seen, handlers, notes)
}

fn summarise(
    source: InterruptSource,
    landing: &Landing,
    seen: &Seen,
    recorded: Option<Recorded>,
    notes: Vec<String>,
) -> Result<InterruptCost, Error> {
    let time = percentiles(&seen.samples).ok_or_else(|| {
        Error::unexpected(
            format!("the interrupt of {}", landing.name),
            format!("none was seen after {} requests", seen.provoked),
            "allow more time, or measure on a quieter machine",
        )
    })?;
    Ok(InterruptCost {
        source: source.name(),
        name: landing.name.clone(),
        interrupt: landing.label.clone(),
        cpu: landing.cpu,
        sample: if landing.follows { "from the entry of its handler to its exit" } else { source.sample() },
        witness: if landing.follows { Witness::KernelRecord } else { Witness::SpinningThread },
        provoked: seen.provoked,
        interrupts: seen.interrupts,
        unseen: seen.provoked.saturating_sub(seen.samples.len() as u64),
        time,
        disturbed_share: seen.disturbed_share,
        round_trip_ns_min: Span::from_ns(seen.round_trip_ns_min),
        recorded,
        notes,
    })
}

/// Percentiles of these nanoseconds.
fn percentiles(samples: &[u64]) -> Option<Percentiles> {
    let mut statistics = ResponseStatistics::default();
    samples.iter().for_each(|&ns| statistics.record(Span::from_ns(ns)));
    Percentiles::of(&statistics)
}
