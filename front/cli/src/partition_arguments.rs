//! The words of `horolog analyze --partition`.

use clap::{Args, ValueEnum};
use horolog_analysis::partition::{Acceptance, Heuristic, TaskOrder};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct PartitionArguments {
    /// Propose a CPU for each task whose `cpu` the file leaves out, by this heuristic or by all four.
    #[arg(long, value_enum, value_name = "HEURISTIC", conflicts_with_all = ["explain", "size_server", "certificate", "counterexample", "choose_spin_priority"])]
    pub(crate) partition: Option<Fit>,
    /// Propose a CPU for tasks with a `cpu`, too.
    #[arg(long, requires = "partition")]
    pub(crate) move_all: bool,
    /// On so many CPUs, the first of the platform's; default: all of them.
    #[arg(long, value_name = "N", requires = "partition", value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(crate) processors: Option<u32>,
    /// In which order tasks are placed: by falling wcet/period, by falling wcet/deadline, by rising deadline, or as in the file.
    #[arg(long, value_enum, default_value_t, requires = "partition")]
    pub(crate) order: Order,
    /// What a CPU takes a task by: the test of its policy, or a bound of the utilisation.
    #[arg(long, value_enum, default_value_t, requires = "partition")]
    pub(crate) accept: Accept,
    /// Split tasks that fit nowhere over several CPUs (C=D, under EDF).
    #[arg(long, requires = "partition")]
    pub(crate) split: bool,
    /// Write the proposed system file here.
    #[arg(long, value_name = "OUT", requires = "partition")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
#[allow(clippy::enum_variant_names)] // The field's names, and the words of the option.
pub(crate) enum Fit {
    /// The first CPU that takes the task.
    FirstFit,
    /// The CPU with the largest load that takes it.
    BestFit,
    /// The CPU with the least load that takes it.
    WorstFit,
    /// The CPU that took the last task, or one behind it.
    NextFit,
    /// All four; the best is proposed.
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Order {
    /// By falling wcet/period.
    #[default]
    Utilisation,
    /// By falling wcet/deadline, or wcet/period where that is more.
    Density,
    /// By rising deadline.
    Deadline,
    /// As the file has them.
    File,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Accept {
    /// The test of the CPU's policy.
    #[default]
    Exact,
    /// A bound of the utilisation.
    Utilisation,
}

impl Fit {
    pub(crate) fn heuristics(self) -> Vec<Heuristic> {
        match self {
            Self::FirstFit => vec![Heuristic::FirstFit],
            Self::BestFit => vec![Heuristic::BestFit],
            Self::WorstFit => vec![Heuristic::WorstFit],
            Self::NextFit => vec![Heuristic::NextFit],
            Self::All => Heuristic::ALL.to_vec(),
        }
    }
}

impl From<Order> for TaskOrder {
    fn from(order: Order) -> TaskOrder {
        match order {
            Order::Utilisation => TaskOrder::Utilisation,
            Order::Density => TaskOrder::Density,
            Order::Deadline => TaskOrder::Deadline,
            Order::File => TaskOrder::File,
        }
    }
}

impl From<Accept> for Acceptance {
    fn from(accept: Accept) -> Acceptance {
        match accept {
            Accept::Exact => Acceptance::Exact,
            Accept::Utilisation => Acceptance::Utilisation,
        }
    }
}
