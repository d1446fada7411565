//! A machine's profile: the costs of a processor, its kernel and its hypervisor, found once and kept.
//!
//! `measure` finds the costs in interleaved rounds, [`MachineProfile::to_toml`] and [`read`] write and read the file, and
//! [`MachineKey`] tells whether a file is of this machine. `docs/concepts/measured-costs.md` has the reasons.

mod file;
mod key;
mod quantile;
#[cfg(feature = "run")]
mod rounds;

pub use file::read;
pub use key::MachineKey;
pub use quantile::Quantile;
#[cfg(feature = "run")]
pub use rounds::{Measured, Probe, RoundOptions, Source, Stretch, measure};

use horolog_time::Span;
use serde::Serialize;
use std::fmt;

/// A cost of `[platform]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostName {
    /// Cost of one context switch.
    ContextSwitch,
    /// Cost of one timer interrupt.
    TimerInterrupt,
    /// How late a release may be noticed.
    ReleaseLatency,
}

impl CostName {
    /// All, in the order of `[platform]`.
    pub const ALL: [CostName; 3] =
        [CostName::ContextSwitch, CostName::TimerInterrupt, CostName::ReleaseLatency];
    /// Their names, in that order.
    pub const NAMES: [&str; 3] = ["context_switch", "timer_interrupt", "release_latency"];

    /// The key of `[platform]`.
    #[must_use]
    pub fn name(self) -> &'static str {
        CostName::NAMES[self as usize]
    }

    /// The cost of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<CostName> {
        CostName::ALL.into_iter().find(|cost| cost.name() == name)
    }

    /// Which quantile of its samples it is. Switches and interrupts add up over a window, where their tails average out; a release
    /// is judged alone and takes the higher one.
    #[must_use]
    pub fn quantile(self) -> Quantile {
        match self {
            CostName::ContextSwitch | CostName::TimerInterrupt => Quantile::P99,
            CostName::ReleaseLatency => Quantile::P99_9,
        }
    }
}

impl fmt::Display for CostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One cost of one CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProfileCost {
    /// Which.
    pub name: CostName,
    /// Of which CPU.
    pub cpu: u32,
    /// The quantile of the samples, rounded up to two significant digits.
    #[serde(rename = "value_ns")]
    pub value: Span,
    /// Which quantile.
    pub quantile: Quantile,
    /// How many samples there are.
    pub samples: u64,
    /// How many of them are above the value.
    pub exceedances: u64,
    /// The longest of them.
    #[serde(rename = "longest_ns")]
    pub longest: Span,
    /// From how many rounds they are.
    pub rounds: u64,
    /// How many rounds more were dropped because the hypervisor took time from the CPU meanwhile.
    pub stolen_rounds: u64,
    /// How many because the kernel held the measuring thread back, or nothing was seen.
    pub held_back_rounds: u64,
}

impl ProfileCost {
    /// What the samples above the value were, in words.
    #[must_use]
    pub fn outliers(&self) -> String {
        let ProfileCost { name, cpu, value, quantile, samples, exceedances, .. } = self;
        let longest = self.longest.rounded();
        let dropped = match (self.stolen_rounds, self.held_back_rounds) {
            (0, 0) => String::new(),
            (stolen, 0) => format!("; {stolen} rounds with stolen time were dropped"),
            (stolen, held) => {
                format!(
                    "; {stolen} rounds with stolen time and {held} in which the kernel held back were dropped"
                )
            }
        };
        format!(
            "{name} of cpu {cpu} is {quantile} = {value} of {samples} samples: {exceedances} were longer, the longest {longest}{dropped}"
        )
    }
}

/// The costs of a machine: the file and the JSON result `horolog.machine/1`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MachineProfile {
    /// Always [`MachineProfile::SCHEMA`].
    pub schema: &'static str,
    /// When they were measured.
    pub measured: String,
    /// By which version.
    pub horolog: String,
    /// Of which machine.
    pub machine: MachineKey,
    /// The costs, by CPU and name.
    pub costs: Vec<ProfileCost>,
}

impl MachineProfile {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.machine/1";

    /// The cost of one CPU.
    #[must_use]
    pub fn cost(&self, name: CostName, cpu: u32) -> Option<&ProfileCost> {
        self.costs.iter().find(|cost| cost.name == name && cost.cpu == cpu)
    }

    /// The greatest cost of these CPUs, since a platform has one number for all. `Err`: the CPUs of which the profile has none.
    /// No CPU at all: the greatest that the profile has.
    ///
    /// # Errors
    /// Where the profile does not have the cost of one of them.
    pub fn greatest(&self, name: CostName, cpus: &[u32]) -> Result<&ProfileCost, Vec<u32>> {
        let missing: Vec<u32> = cpus.iter().copied().filter(|cpu| self.cost(name, *cpu).is_none()).collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        let of_these =
            |cost: &&ProfileCost| cost.name == name && (cpus.is_empty() || cpus.contains(&cost.cpu));
        self.costs.iter().filter(of_these).max_by_key(|cost| cost.value).ok_or_else(Vec::new)
    }

    /// The CPUs that it has costs of, ascending.
    #[must_use]
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.costs.iter().map(|cost| cost.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }
}
