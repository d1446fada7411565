//! The table of experiments: adding one is a module and a line here.

use crate::{ExperimentError, ExperimentReport, Listed, Options, lists};
use std::path::Path;

/// Runs an experiment; the callback gets its progress as (done, of, what).
pub type Run = fn(&Options, &mut dyn FnMut(u64, u64, &str)) -> Result<ExperimentReport, ExperimentError>;

/// A published experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// The name on the command line.
    pub id: &'static str,
    /// What it is.
    pub title: &'static str,
    /// A key of docs/references.bib.
    pub source: &'static str,
    /// Whether the test bench of aperiodic service runs it, over seeds and with servers.
    pub is_test_bench: bool,
    /// Runs it.
    run: Run,
    /// What the source says, by the numbers of the facts.
    pub facts: &'static [Listed],
}

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    /// Where it cannot be run at all.
    pub fn run(
        &self,
        options: &Options,
        progress: &mut dyn FnMut(u64, u64, &str),
    ) -> Result<ExperimentReport, ExperimentError> {
        let report = (self.run)(options, progress)?;
        Ok(report.of(self.source, self.facts))
    }
}

const ALL: [Experiment; 13] = [
    Experiment {
        id: "fpds-rtai",
        title: "Fixed-priority scheduling with deferred preemption: logs, overheads, optional preemption points",
        source: "bergsma09",
        is_test_bench: false,
        run: crate::fpds_rtai::run,
        facts: lists::FPDS_RTAI,
    },
    Experiment {
        id: "fslm-erika",
        title: "The flexible spin-lock model: worked examples, its promises on four processors, its costs on two",
        source: "afshar16",
        is_test_bench: false,
        run: crate::fslm_erika::run,
        facts: lists::FSLM_ERIKA,
    },
    Experiment {
        id: "htm-budget",
        title: "Sections that roll back: transactions that can be preempted, real threads, and what the proof gains",
        source: "engel16",
        is_test_bench: false,
        run: crate::htm_budget::run,
        facts: lists::HTM_BUDGET,
    },
    Experiment {
        id: "feather-trace",
        title: "Critical sections of real programs, idle, compiling and under stress; kernel lock waits; cost of a sample",
        source: "brandenburg07",
        is_test_bench: false,
        run: crate::feather_trace::run,
        facts: lists::FEATHER_TRACE,
    },
    Experiment {
        id: "driver-framework",
        title: "Drivers in an analysable framework: server threads below and above a task, backlogs, budgets, packet rates",
        source: "baker07",
        is_test_bench: false,
        run: crate::driver_framework::run,
        facts: lists::DRIVER_FRAMEWORK,
    },
    Experiment {
        id: "driver-load-bounds",
        title: "A network driver's interference, measured and bounded; deadlines and heartbeats under four servers",
        source: "lewandowski07",
        is_test_bench: false,
        run: crate::driver_load_bounds::run,
        facts: lists::DRIVER_LOAD_BOUNDS,
    },
    Experiment {
        id: "rk-netr",
        title: "Network receive reserves: protocol processing by softirq, below and above the receiver; a flow beside a flood",
        source: "rajkumar02",
        is_test_bench: false,
        run: crate::rk_netr::run,
        facts: lists::RK_NETR,
    },
    Experiment {
        id: "rk-cpu",
        title: "Processor reserves: admission, the shares of hard, firm and soft beside endless loops, replenishment",
        source: "rajkumar02",
        is_test_bench: false,
        run: crate::rk_cpu::run,
        facts: lists::RK_CPU,
    },
    Experiment {
        id: "rk-hierarchy",
        title: "Reserves below reserves: completion times, the least upper bound, refusal by the parent, unused amounts",
        source: "rajkumar02",
        is_test_bench: false,
        run: crate::rk_hierarchy::run,
        facts: lists::RK_HIERARCHY,
    },
    Experiment {
        id: "rk-qram",
        title: "Q-RAM: the loss of its heuristics against the optimum, and how much faster they are",
        source: "rajkumar02",
        is_test_bench: false,
        run: crate::rk_qram::run,
        facts: lists::RK_QRAM,
    },
    Experiment {
        id: "rk-disk",
        title: "Disk reserves: EDF and just in time, completion times and blocks in a period, with and without",
        source: "rajkumar02",
        is_test_bench: false,
        run: crate::rk_disk::run,
        facts: lists::RK_DISK,
    },
    Experiment {
        id: "aperiodic-1",
        title: "Aperiodic service: servers, slack stealing and dual priority beside the background, 360 applications",
        source: "burdalo07",
        is_test_bench: true,
        run: crate::aperiodic::first,
        facts: lists::APERIODIC_1,
    },
    Experiment {
        id: "aperiodic-2",
        title: "Aperiodic service: what gain time brings slack stealing and dual priority, 180 applications",
        source: "burdalo07",
        is_test_bench: true,
        run: crate::aperiodic::second,
        facts: lists::APERIODIC_2,
    },
];

/// Every experiment.
#[must_use]
pub fn all() -> &'static [Experiment] {
    &ALL
}

/// The experiment of this name.
#[must_use]
pub fn find(id: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.id == id)
}

/// Runs a user's own experiment on the test bench of aperiodic service: `docs/concepts/test-bench.md` describes the file.
///
/// # Errors
/// Where the file is at fault (with carets), and as any experiment.
pub fn run_file(
    path: &Path,
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    crate::aperiodic::of_file(path, options, progress)
}
