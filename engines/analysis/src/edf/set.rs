//! What the EDF tests need to know of the tasks and loads of one processor.

use crate::hyperbolic_load::HyperbolicLoad;

/// When jobs arrive, as far as the tests need it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Arrivals {
    /// At least this many nanoseconds apart, above zero; periodic tasks too.
    Separated(u64),
    /// At these instants, ascending, at least one.
    Listed(Vec<u64>),
}

/// One task, all times in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdfTask {
    /// Worst-case execution time C, above zero.
    pub wcet: u64,
    /// When jobs arrive: the separation T, or a list.
    pub arrivals: Arrivals,
    /// Relative deadline D from the arrival; `None`: served after every job that has one.
    pub deadline: Option<u64>,
    /// Release jitter J: how long after its arrival a job may become ready.
    pub jitter: u64,
    /// How long a started job keeps the processor at the most: 0 for a preemptive task, else its wcet (without
    /// the costs of switching to it and away).
    pub non_preemptive: u64,
}

impl EdfTask {
    /// A preemptive task without jitter.
    #[must_use]
    pub fn new(wcet: u64, separation: u64, deadline: u64) -> EdfTask {
        EdfTask {
            wcet,
            arrivals: Arrivals::Separated(separation),
            deadline: Some(deadline),
            jitter: 0,
            non_preemptive: 0,
        }
    }

    /// The same task with release jitter.
    #[must_use]
    pub fn with_jitter(mut self, jitter: u64) -> EdfTask {
        self.jitter = jitter;
        self
    }

    /// The same task, non-preemptive.
    #[must_use]
    pub fn non_preemptive(mut self) -> EdfTask {
        self.non_preemptive = self.wcet;
        self
    }

    /// The length of the shortest window that can hold a job of this task and its deadline: D − J, negative
    /// where a job may be released after its own deadline.
    #[must_use]
    pub fn shortest_window(&self) -> Option<i64> {
        self.deadline.map(|d| d as i64 - self.jitter as i64)
    }
}

/// A load above all tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TopLoad {
    /// A measured load, as its linear demand bound.
    Linear(HyperbolicLoad),
    /// Interrupts: `cost` nanoseconds each.
    Interrupts {
        /// Execution time of each.
        cost: u64,
        /// When they arrive.
        arrivals: Arrivals,
        /// How late one may come.
        jitter: u64,
    },
}

/// A stretch for which a job that is due later may keep jobs waiting: a section that holds a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SectionBlocking {
    /// Whose section it is, an index into the set.
    pub task: usize,
    /// The shortest window that it blocks; 0, or the D − J of some task.
    pub from: u64,
    /// The shortest window that it blocks no more; `None`: it blocks every longer one.
    pub until: Option<u64>,
    /// For how long, ns.
    pub time: u64,
}

/// How non-preemptive blocking counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum NpTime {
    /// Releases at any instant: blocking of C − ε for every ε, so the bound is a supremum.
    #[default]
    Continuous,
    /// Releases at multiples of a unit only, in nanoseconds, of which every time is a multiple: blocking of C less
    /// one unit.
    Units(u64),
}

impl NpTime {
    /// The longest time that a non-preemptive job just started still takes.
    #[inline]
    #[must_use]
    pub const fn blocking_of(self, wcet: u64) -> u64 {
        match self {
            Self::Continuous => wcet,
            Self::Units(unit) => wcet.saturating_sub(unit),
        }
    }
}

/// Why a set is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct InvalidSet {
    what: &'static str,
}

/// The tasks and loads of one processor, checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EdfSet {
    tasks: Vec<EdfTask>,
    loads: Vec<TopLoad>,
    extra_blocking: u64,
    sections: Vec<SectionBlocking>,
    /// No missing deadlines, no non-preemptive tasks and no sections.
    plain: bool,
}

/// No single time parameter may reach this (36 years): sums of a few then fit into 64 bits.
const LIMIT: u64 = 1 << 60;

impl EdfSet {
    /// Checks tasks and loads.
    ///
    /// # Errors
    /// A zero wcet, separation, deadline or period, an empty or unordered list of arrivals, a utilisation outside
    /// (0, 1], or a time of 2^60 ns or more.
    pub fn new(tasks: Vec<EdfTask>, loads: Vec<TopLoad>) -> Result<EdfSet, InvalidSet> {
        for task in &tasks {
            check_task(task).map_err(|what| InvalidSet { what })?;
        }
        for load in &loads {
            check_load(load).map_err(|what| InvalidSet { what })?;
        }
        let plain = tasks.iter().all(|t| t.non_preemptive == 0 && t.deadline.is_some());
        Ok(EdfSet { tasks, loads, extra_blocking: 0, sections: Vec::new(), plain })
    }

    /// The same set with so much more blocking of every window (a context switch that has begun).
    ///
    /// # Errors
    /// Blocking of 2^60 ns or more.
    pub fn with_extra_blocking(mut self, blocking: u64) -> Result<EdfSet, InvalidSet> {
        if blocking >= LIMIT {
            return Err(InvalidSet { what: "a time of 2^60 ns or more" });
        }
        self.extra_blocking = blocking;
        Ok(self)
    }

    /// The same set with sections that block; of all that block a window the longest one counts.
    ///
    /// # Errors
    /// A section of an unknown task, or a time of 2^60 ns or more.
    pub fn with_sections(mut self, sections: Vec<SectionBlocking>) -> Result<EdfSet, InvalidSet> {
        for section in &sections {
            if section.task >= self.tasks.len() {
                return Err(InvalidSet { what: "a section of an unknown task" });
            }
            if [section.from, section.until.unwrap_or(0), section.time].into_iter().any(|time| time >= LIMIT)
            {
                return Err(InvalidSet { what: "a time of 2^60 ns or more" });
            }
        }
        self.plain &= sections.is_empty();
        self.sections = sections;
        Ok(self)
    }

    /// The sections that block.
    #[must_use]
    pub fn sections(&self) -> &[SectionBlocking] {
        &self.sections
    }

    /// Blocking of every window beside that by tasks.
    #[must_use]
    pub fn extra_blocking(&self) -> u64 {
        self.extra_blocking
    }

    /// The tasks.
    #[must_use]
    pub fn tasks(&self) -> &[EdfTask] {
        &self.tasks
    }

    /// The loads above them.
    #[must_use]
    pub fn loads(&self) -> &[TopLoad] {
        &self.loads
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }
}

fn check_task(task: &EdfTask) -> Result<(), &'static str> {
    if task.wcet == 0 || task.deadline == Some(0) {
        return Err("a wcet or deadline of zero");
    }
    if task.wcet >= LIMIT || task.deadline.is_some_and(|d| d >= LIMIT) || task.jitter >= LIMIT {
        return Err("a time of 2^60 ns or more");
    }
    if task.non_preemptive > task.wcet {
        return Err("a non-preemptive stretch longer than the wcet");
    }
    check_arrivals(&task.arrivals)
}

fn check_arrivals(arrivals: &Arrivals) -> Result<(), &'static str> {
    match arrivals {
        Arrivals::Separated(0) => Err("a separation of zero"),
        Arrivals::Separated(t) if *t >= LIMIT => Err("a time of 2^60 ns or more"),
        Arrivals::Separated(_) => Ok(()),
        Arrivals::Listed(list) if list.is_empty() => Err("an empty list of arrivals"),
        Arrivals::Listed(list) if !list.is_sorted() => Err("arrivals out of order"),
        Arrivals::Listed(list) if list.last().is_some_and(|&a| a >= LIMIT) => {
            Err("a time of 2^60 ns or more")
        }
        Arrivals::Listed(_) => Ok(()),
    }
}

fn check_load(load: &TopLoad) -> Result<(), &'static str> {
    match load {
        TopLoad::Linear(load) if load.period == 0 || load.period >= LIMIT => {
            Err("a load with a period of zero, or of 2^60 ns or more")
        }
        TopLoad::Linear(load) if load.utilisation_ppb == 0 || load.utilisation_ppb > 1_000_000_000 => {
            Err("a utilisation outside (0, 1]")
        }
        TopLoad::Linear(_) => Ok(()),
        TopLoad::Interrupts { cost, .. } if *cost == 0 || *cost >= LIMIT => {
            Err("an interrupt with a cost of zero, or of 2^60 ns or more")
        }
        TopLoad::Interrupts { jitter, .. } if *jitter >= LIMIT => Err("a time of 2^60 ns or more"),
        TopLoad::Interrupts { arrivals, .. } => check_arrivals(arrivals),
    }
}
