//! The checker's own reading of a processor: who can delay a task, and by how much, costs included.

use crate::Flaw;
use horolog_model::{Arrival, Interference, Preemption, SegmentGraph, System, Task};

const PPB: u128 = 1_000_000_000;

/// Work that comes in jobs.
pub(crate) struct Load<'a> {
    pub(crate) task: &'a Task,
    /// Release jitter, with release latency and tick.
    pub(crate) jitter: u128,
    /// Execution time of a job, with two context switches.
    pub(crate) wcet: u128,
}

/// What is above all tasks of a processor.
pub(crate) struct Outside<'a> {
    /// All tasks of the processor whose releases cause an interrupt, with the interrupt's length.
    pub(crate) release_interrupts: (Vec<Load<'a>>, u128),
    /// Period and length of the tick's interrupt.
    pub(crate) tick_interrupt: Option<(u128, u128)>,
    pub(crate) interferences: Vec<&'a Interference>,
}

/// Everything that matters to one task.
pub(crate) struct View<'a> {
    pub(crate) higher: Vec<Load<'a>>,
    pub(crate) equal: Vec<Load<'a>>,
    pub(crate) own: Load<'a>,
    /// Work before the last segment and the last segment, one pair a last segment; a preemptive task has one.
    pub(crate) endings: Vec<(u128, u128)>,
    pub(crate) blocking: u128,
    pub(crate) outside: Outside<'a>,
    /// Whether the bound is the least one when all equations are solved: no costs, nothing from outside, nothing
    /// tied to the system's start.
    pub(crate) can_be_least: bool,
}

impl<'a> Load<'a> {
    /// The task with the platform's costs.
    pub(crate) fn of(system: &System, task: &'a Task) -> Load<'a> {
        let platform = system.platform();
        let late = u128::from(platform.release_latency_bound().as_ns())
            + platform.tick.map_or(0, |t| u128::from(t.as_ns()));
        let switch = u128::from(platform.context_switch_cost().as_ns());
        Load {
            task,
            jitter: u128::from(task.jitter.as_ns()) + late,
            wcet: u128::from(task.wcet.as_ns()) + 2 * switch,
        }
    }

    /// Most jobs ready in `[0, x)`.
    pub(crate) fn before(&self, x: u128) -> u128 {
        if x == 0 { 0 } else { self.up_to(x - 1) }
    }

    /// Most jobs ready in `[0, x]`.
    pub(crate) fn up_to(&self, x: u128) -> u128 {
        let reach = x + self.jitter;
        match &self.task.arrival {
            Arrival::Aperiodic { .. } => self.listed_within(reach),
            _ => 1 + reach / self.separation().unwrap_or(1),
        }
    }

    /// Most own jobs up to one that becomes ready at x with its full jitter.
    pub(crate) fn own_up_to(&self, x: u128) -> u128 {
        match &self.task.arrival {
            Arrival::Aperiodic { .. } => self.listed_within(x),
            _ => 1 + x / self.separation().unwrap_or(1),
        }
    }

    pub(crate) fn separation(&self) -> Option<u128> {
        self.task.separation().map(|s| u128::from(s.as_ns()))
    }

    /// The instants in `[0, end)` at which [`Load::own_up_to`] or, with `late`, [`Load::up_to`] grows, and 0.
    pub(crate) fn steps(&self, end: u128, late: bool) -> Vec<u128> {
        let earlier = if late { self.jitter } else { 0 };
        let mut steps = vec![0];
        match &self.task.arrival {
            Arrival::Aperiodic { arrivals } => {
                let arrivals: Vec<u128> = arrivals.iter().map(|a| u128::from(a.as_ns())).collect();
                for width in 1..arrivals.len() {
                    let least = arrivals.windows(width + 1).map(|w| w[width] - w[0]).min();
                    steps.extend(least.and_then(|l| l.checked_sub(earlier)));
                }
            }
            _ => {
                let separation = self.separation().unwrap_or(1);
                let mut multiple = earlier / separation * separation;
                while multiple < end + earlier {
                    steps.extend(multiple.checked_sub(earlier));
                    multiple += separation;
                }
            }
        }
        steps.retain(|&s| s < end);
        steps
    }

    fn listed_within(&self, width: u128) -> u128 {
        let Arrival::Aperiodic { arrivals } = &self.task.arrival else { return 0 };
        let count = |from: usize| {
            let last = u128::from(arrivals[from].as_ns()) + width;
            arrivals[from..].iter().take_while(|a| u128::from(a.as_ns()) <= last).count()
        };
        (0..arrivals.len()).map(count).max().unwrap_or(0) as u128
    }
}

/// Whether a bound is the least one when all equations are solved: no costs, nothing from outside, nothing tied to the
/// system's start.
pub(crate) fn can_be_least(system: &System, own: &Task) -> bool {
    let platform = system.platform();
    let neighbours = || system.tasks().iter().filter(|t| t.cpu == own.cpu);
    let tied = |t: &&Task| matches!(t.arrival, Arrival::Periodic { .. }) && t.offset.is_some();
    platform.context_switch_cost().is_zero()
        && platform.timer_interrupt_cost().is_zero()
        && platform.release_latency_bound().is_zero()
        && platform.tick.is_none()
        && !system.interferences().iter().any(|i| i.cpu == own.cpu)
        && !neighbours().any(|t| matches!(t.arrival, Arrival::Aperiodic { .. }))
        && neighbours().filter(tied).count() <= 1
}

impl<'a> Outside<'a> {
    pub(crate) fn new(system: &'a System, own: &'a Task) -> Outside<'a> {
        let platform = system.platform();
        let interrupt = u128::from(platform.timer_interrupt_cost().as_ns());
        let tick = platform.tick.map(|t| u128::from(t.as_ns()));
        let neighbours = system.tasks().iter().filter(|t| t.cpu == own.cpu);
        Outside {
            release_interrupts: if tick.is_none() && interrupt > 0 {
                (neighbours.map(|t| Load::of(system, t)).collect(), interrupt)
            } else {
                (Vec::new(), 0)
            },
            tick_interrupt: tick.filter(|_| interrupt > 0).map(|t| (t, interrupt)),
            interferences: system.interferences().iter().filter(|i| i.cpu == own.cpu).collect(),
        }
    }

    /// What interrupts and interference take of such a window, the latter rounded up to whole ns.
    pub(crate) fn demand(&self, x: u128, closed: bool) -> Option<u128> {
        let (loads, length) = &self.release_interrupts;
        let releases =
            sum(loads.iter().map(|l| length.checked_mul(if closed { l.up_to(x) } else { l.before(x) })))?;
        let ticks = match self.tick_interrupt {
            Some((tick, length)) if closed => length.checked_mul(1 + x / tick)?,
            Some((tick, length)) => length.checked_mul(x.div_ceil(tick))?,
            None => 0,
        };
        let scaled = sum(self.interferences.iter().map(|i| {
            // min(x, u (x + p - u p)) in units of 10^-18 ns.
            let (u, p) = (u128::from(i.utilisation_ppb), u128::from(i.period.as_ns()));
            let whole = x.checked_mul(PPB * PPB)?;
            let linear = (u * PPB).checked_mul(x.checked_add(p)?)?.checked_sub((u * u).checked_mul(p)?)?;
            Some(whole.min(linear))
        }))?;
        releases.checked_add(ticks)?.checked_add(scaled.div_ceil(PPB * PPB))
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(system: &'a System, own: &'a Task) -> Result<View<'a>, Flaw> {
        let switch = u128::from(system.platform().context_switch_cost().as_ns());
        let load = |task: &'a Task| Load::of(system, task);
        let neighbours: Vec<&Task> = system.tasks().iter().filter(|t| t.cpu == own.cpu).collect();
        let (mut higher, mut equal, mut longest_below) = (Vec::new(), Vec::new(), 0);
        let mine = priority(own)?;
        for &task in neighbours.iter().filter(|t| t.name != own.name) {
            let theirs = priority(task)?;
            if theirs > mine {
                higher.push(load(task));
            } else if theirs == mine {
                equal.push(load(task));
            } else {
                longest_below = longest_below.max(longest_segment(task));
            }
        }
        Ok(View {
            can_be_least: can_be_least(system, own),
            higher,
            equal,
            own: load(own),
            endings: endings(own, switch),
            blocking: longest_below + switch,
            outside: Outside::new(system, own),
        })
    }

    /// What more important tasks ask for in a window of length x, closed or half-open.
    pub(crate) fn higher_demand(&self, x: u128, closed: bool) -> Option<u128> {
        sum(self.higher.iter().map(|l| l.wcet.checked_mul(if closed { l.up_to(x) } else { l.before(x) })))
    }

    pub(crate) fn is_preemptive(&self) -> bool {
        matches!(self.own.task.preemption, Preemption::Preemptive)
    }
}

pub(crate) fn priority(task: &Task) -> Result<i64, Flaw> {
    let number = task.priority.map(horolog_model::Priority::number);
    number.ok_or_else(|| Flaw::new(&task.name, "the system's priorities are not resolved"))
}

pub(crate) fn sum(mut terms: impl Iterator<Item = Option<u128>>) -> Option<u128> {
    terms.try_fold(0_u128, |sum, term| sum.checked_add(term?))
}

pub(crate) fn longest_segment(task: &Task) -> u128 {
    match &task.preemption {
        Preemption::Preemptive => 0,
        Preemption::Deferred(graph) => {
            graph.segments.iter().map(|s| u128::from(s.wcet.as_ns())).max().unwrap_or(0)
        }
        _ => u128::from(task.wcet.as_ns()),
    }
}

/// One pair a last segment. The switch to the job stands before its first segment, the other after its last.
fn endings(task: &Task, switch: u128) -> Vec<(u128, u128)> {
    let wcet = u128::from(task.wcet.as_ns());
    match &task.preemption {
        Preemption::Preemptive => vec![(wcet + 2 * switch, 0)],
        Preemption::Deferred(graph) => (0..graph.segments.len())
            .filter(|&s| graph.segments[s].next.is_empty())
            .map(|s| (longest_before(graph, s), u128::from(graph.segments[s].wcet.as_ns())))
            .map(|(before, last)| match before {
                0 => (0, last + 2 * switch),
                _ => (before + switch, last + switch),
            })
            .collect(),
        _ => vec![(0, wcet + 2 * switch)],
    }
}

/// Longest path to a segment, without it: every segment that leads there is asked in turn.
fn longest_before(graph: &SegmentGraph, segment: usize) -> u128 {
    let mut longest = vec![0_u128; segment + 1];
    for at in 1..=segment {
        for from in (0..at).filter(|&from| graph.segments[from].next.contains(&at)) {
            longest[at] = longest[at].max(longest[from] + u128::from(graph.segments[from].wcet.as_ns()));
        }
    }
    longest[segment]
}
