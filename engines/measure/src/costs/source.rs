//! This machine as the source of a profile's samples.

use super::{Setting, probes, record};
use crate::interference::HeldBackCounter;
use crate::machine::{Probe, Source, Stretch};
use horolog_sys::Error;
use horolog_sys::kernel_trace::Recorder;
use horolog_sys::rights::RECORDING;
use horolog_sys::steal::stolen_ns;
use horolog_time::Span;
use std::collections::BTreeMap;

/// Measures on this machine's CPUs with threads at a SCHED_FIFO priority, while the kernel is recorded as in a run with a trace,
/// so that the record's own cost is inside.
#[derive(Debug)]
pub struct MachineSource {
    priority: u8,
    recorder: Result<Recorder, Error>,
    counters: BTreeMap<u32, Option<HeldBackCounter>>,
}

impl MachineSource {
    /// At the priority at which costs are measured by default.
    ///
    /// # Errors
    /// Where SCHED_FIFO is not allowed.
    pub fn start(cpus: &[u32]) -> Result<MachineSource, Error> {
        const PRIORITY: u8 = 90;
        for cpu in cpus {
            Setting::real_time(*cpu, PRIORITY)?;
        }
        Ok(MachineSource {
            priority: PRIORITY,
            recorder: record(cpus.to_vec()),
            counters: cpus.iter().map(|cpu| (*cpu, HeldBackCounter::start(*cpu).ok())).collect(),
        })
    }

    /// What could not be watched meanwhile.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Err(error) = &self.recorder {
            notes.push(format!(
                "the kernel could not be recorded meanwhile ({}): a run with a trace costs a little more",
                error.what()
            ));
        }
        if self.counters.values().any(Option::is_none) {
            notes.push(format!(
                "whether the kernel held a measuring thread back could not be watched: {RECORDING}"
            ));
        }
        if let Some(cpu) = self.counters.keys().find(|cpu| stolen_ns(**cpu).is_err()) {
            notes.push(format!("the kernel does not say what the hypervisor takes from cpu {cpu}"));
        }
        notes
    }

    fn held_back(&self, cpu: u32) -> Option<u64> {
        self.counters.get(&cpu)?.as_ref()?.read().ok()
    }
}

impl Source for MachineSource {
    fn stretch(&mut self, probe: Probe, cpu: u32, length: Span) -> Result<Stretch, Error> {
        let setting = Setting::real_time(cpu, self.priority)?;
        let run = match probe {
            Probe::ContextSwitch => probes::futex_switch,
            Probe::TimerInterrupt => probes::timer_interrupt,
            Probe::LatencyIdle => probes::latency_idle,
            Probe::LatencyLoaded => probes::latency_loaded,
        };
        let (stolen, held_back) = (stolen_ns(cpu).ok(), self.held_back(cpu));
        let samples = run(setting, length)?.0;
        // What goes backwards is no difference.
        let since = |before: Option<u64>, now: Option<u64>| now?.checked_sub(before?);
        Ok(Stretch {
            samples,
            stolen: since(stolen, stolen_ns(cpu).ok()).map(Span::from_ns),
            held_back: since(held_back, self.held_back(cpu)),
        })
    }
}
