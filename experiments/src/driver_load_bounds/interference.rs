//! How much of the hard tasks' CPU the network takes: figures 4 to 6 of the paper.

use super::RATE;
use super::points::Load;
use super::scene::{Scene, failed};
use crate::ExperimentError;
use horolog_measure::interference::{
    Configuration as Probe, InterferenceError, Measured, Phase, Statistic, Store, collect, summarise,
};
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::fixed_priority::Class;
use horolog_sys::network::{FloodOptions, LONGEST, Reception};
use horolog_time::Span;
use serde::{Deserialize, Serialize};

/// Who receives, seen from the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Receiver {
    /// Nobody sends.
    Idle,
    /// Softirqs, above all priorities.
    Softirq,
    /// The NAPI thread above the probe.
    Above,
    /// The NAPI thread below the probe.
    Below,
}

/// One measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Configuration {
    pub(super) receiver: Receiver,
    pub(super) replies: bool,
}

/// The probe's priority, and those of the NAPI thread above and below it.
const PROBE: u8 = 50;
const ABOVE: u8 = 60;
const BELOW: u8 = 40;

/// All of them; the idle machine first.
pub(super) fn configurations() -> Vec<Configuration> {
    let mut all = vec![Configuration { receiver: Receiver::Idle, replies: false }];
    for replies in [false, true] {
        for receiver in [Receiver::Softirq, Receiver::Above, Receiver::Below] {
            all.push(Configuration { receiver, replies });
        }
    }
    all
}

impl Configuration {
    pub(super) fn name(&self) -> String {
        let who = match self.receiver {
            Receiver::Idle => return "idle".to_owned(),
            Receiver::Softirq => "softirqs",
            Receiver::Above => "NAPI thread above the probe",
            Receiver::Below => "NAPI thread below the probe",
        };
        format!("{who}, replies {}", if self.replies { "on" } else { "off" })
    }

    fn reception(&self) -> Reception {
        match self.receiver {
            Receiver::Idle | Receiver::Softirq => Reception::Softirq,
            Receiver::Above => Reception::Thread(Class::Fifo(ABOVE)),
            Receiver::Below => Reception::Thread(Class::Fifo(BELOW)),
        }
    }
}

/// Measures one configuration.
pub(super) fn measure(
    scene: &mut Scene,
    configuration: Configuration,
    stretches: u32,
) -> Result<Load, ExperimentError> {
    scene.receive_by(configuration.reception(), configuration.replies)?;
    let probe = Probe { priority: PROBE, ..Probe::new(scene.cpus().receive_cpu) };
    let mut store = Store::in_memory(probe);
    let idle = configuration.receiver == Receiver::Idle;
    let phase = if idle { Phase::Idle } else { Phase::Load };
    let before = scene.lab().counters().map_err(|error| failed(&error))?;
    let flood = if idle {
        None
    } else {
        let options = FloodOptions { rate: RATE, duration: LONGEST };
        Some(scene.lab().flood(options).map_err(|error| failed(&error))?)
    };
    let begun = monotonic_ns();
    // The first packets find cold caches and a sleeping thread.
    let _ = sleep_until(begun + 200_000_000);
    collect(&mut store, phase, stretches, &mut |_| Ok(())).map_err(|error| match error {
        InterferenceError::System(error) => failed(&error),
        other => ExperimentError::failed(other.to_string()),
    })?;
    let elapsed_ns = monotonic_ns() - begun;
    let sent = flood.map_or(0, horolog_sys::network::Flood::end);
    // What still waits in the ring is received in no time.
    let _ = sleep_until(monotonic_ns() + 20_000_000);
    let after = scene.lab().counters().map_err(|error| failed(&error))?;
    let measured = summarise(&store);
    let row = |measured: &Measured| {
        let rows = &measured.phase(phase)?.lengths;
        let wanted = Span::from_ns(10_000_000);
        rows.iter().min_by_key(|row| row.length_ns.as_ns().abs_diff(wanted.as_ns())).copied()
    };
    let Some(near) = row(&measured) else {
        return Err(ExperimentError::failed(format!(
            "{}: the kernel held real-time threads back in every stretch: {}",
            configuration.name(),
            measured.notes.join("; ")
        )));
    };
    let samples = |statistic| {
        let baseline = if idle {
            horolog_measure::interference::Baseline::Idle
        } else {
            horolog_measure::interference::Baseline::Included
        };
        let samples = measured.samples(statistic, baseline).unwrap_or_default();
        samples.iter().map(|sample| (sample.window.as_ns(), sample.load_ppb)).collect()
    };
    Ok(Load {
        configuration,
        sent,
        dropped: after.dropped - before.dropped,
        elapsed_ns,
        held_back: measured.phases.iter().map(|phase| phase.held_back).sum(),
        stolen_ns: measured.phases.iter().filter_map(|phase| phase.stolen_ns).map(Span::as_ns).sum(),
        near_ns: near.length_ns.as_ns(),
        mean_ppb: near.mean_ppb,
        median_ppb: near.median_ppb,
        max: samples(Statistic::Max),
        p95: samples(Statistic::P95),
        median: samples(Statistic::Median),
    })
}
