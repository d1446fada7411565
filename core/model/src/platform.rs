//! The machine that a system runs on: processors and costs.

use horolog_time::Span;

/// One more than the largest CPU number: what the largest Linux configurations have.
pub const MAX_CPUS: u32 = 8192;

/// The number of a processor as Linux counts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CpuId(pub u32);

/// Which processors there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cpus {
    /// These CPUs of a real machine, as `cpus = [1, 3]`: ascending, without repeats, at least one.
    Listed(Vec<CpuId>),
    /// CPUs 0 to n - 1, as `cpus = n`: for analysis and simulation alone; n is at least 1.
    Count(u32),
}

impl Cpus {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Listed(list) => list.len(),
            Self::Count(n) => *n as usize,
        }
    }

    /// Whether there is none (never, in a checked system).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The processors in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0..self.len()).map(|index| match self {
            Self::Listed(list) => list[index],
            Self::Count(_) => CpuId(index as u32),
        })
    }

    /// The place of `cpu` in [`Cpus::iter`].
    #[must_use]
    pub fn index_of(&self, cpu: CpuId) -> Option<usize> {
        match self {
            Self::Listed(list) => list.binary_search(&cpu).ok(),
            Self::Count(n) => (cpu.0 < *n).then_some(cpu.0 as usize),
        }
    }
}

/// Processors and the costs that the machine adds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Platform {
    /// Which processors there are.
    pub cpus: Cpus,
    /// Where given, releases are noticed only at multiples of this; else one-shot timers notice them.
    pub tick: Option<Span>,
    /// Cost of one context switch; `None` where the file gives none (counts as zero; `loop` measures it).
    pub context_switch: Option<Span>,
    /// Cost of one timer interrupt; `None` where the file gives none.
    pub timer_interrupt: Option<Span>,
    /// How late the machine may notice a release; `None` where the file gives none.
    pub release_latency: Option<Span>,
    /// What a section on a lock across processors costs beside what it executes.
    pub locking: LockCosts,
}

/// What the operations of a lock across processors take; `None` where the file gives none (counts as zero).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockCosts {
    /// To ask for it: until the job has it, or waits in the queue.
    pub request: Option<Span>,
    /// From when it comes to a job that waits until that job goes on.
    pub grant: Option<Span>,
    /// To let go of it.
    pub release: Option<Span>,
}

/// Costs to set on a platform; `None` leaves one as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlatformCosts {
    /// Cost of one context switch.
    pub context_switch: Option<Span>,
    /// Cost of one timer interrupt.
    pub timer_interrupt: Option<Span>,
    /// How late the machine may notice a release.
    pub release_latency: Option<Span>,
}

impl Default for Platform {
    fn default() -> Platform {
        Platform {
            cpus: Cpus::Count(1),
            tick: None,
            context_switch: None,
            timer_interrupt: None,
            release_latency: None,
            locking: LockCosts::default(),
        }
    }
}

impl LockCosts {
    /// Of one section: asking, getting it after a wait and letting go; `None` above 2^64 - 1 ns.
    #[must_use]
    pub fn of_section(&self) -> Option<Span> {
        let costs = [self.request, self.grant, self.release];
        let mut given = costs.into_iter().flatten().map(Span::as_ns);
        given.try_fold(0_u64, u64::checked_add).map(Span::from_ns)
    }
}

impl Platform {
    /// Cost of one context switch, zero where not given.
    pub fn context_switch_cost(&self) -> Span {
        self.context_switch.unwrap_or(Span::ZERO)
    }

    /// Cost of one timer interrupt, zero where not given.
    pub fn timer_interrupt_cost(&self) -> Span {
        self.timer_interrupt.unwrap_or(Span::ZERO)
    }

    /// Release latency, zero where not given.
    pub fn release_latency_bound(&self) -> Span {
        self.release_latency.unwrap_or(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_locking_costs_is_the_sum_of_what_is_given() {
        let of = |ns: [Option<u64>; 3]| {
            let [request, grant, release] = ns.map(|ns| ns.map(Span::from_ns));
            LockCosts { request, grant, release }.of_section()
        };
        assert_eq!(of([None; 3]), Some(Span::ZERO));
        assert_eq!(of([Some(1), None, Some(4)]), Some(Span::from_ns(5)));
        assert_eq!(of([Some(u64::MAX - 3), Some(1), Some(2)]), Some(Span::MAX));
        assert_eq!(of([Some(u64::MAX - 3), Some(2), Some(2)]), None);
    }

    #[test]
    fn a_file_with_costs_of_locking_is_printed_as_it_was_read() {
        let text = "[system]\nname = \"s\"\n[platform]\nlock_request = \"1 us\"\nlock_grant = \"2 us\"\nlock_release = \"3 ns\"\n\
                    [[task]]\nname = \"a\"\nperiod = \"1 ms\"\nwcet = \"1 us\"\npriority = 1\n";
        let read = |text: &str| crate::file::read(text, "s.toml", &[]).expect("a good file").0;
        let system = read(text);
        let [request, grant, release] = [1_000, 2_000, 3].map(|ns| Some(Span::from_ns(ns)));
        assert_eq!(system.platform().locking, LockCosts { request, grant, release });
        assert_eq!(read(&crate::file::print(&system)).platform(), system.platform());
    }
}
