//! One processor of a simulation: what runs, what the kernel owes, what happens next.

use crate::servers::Watched;
use crate::timers::Timers;
use horolog_model::{CpuId, System, TaskId};
use horolog_sched::ProcessorIndex;

pub(crate) const NEVER: u64 = u64::MAX;
/// No task.
pub(crate) const NONE: u32 = u32::MAX;

/// What of execution is counted on a processor, for code that is made apart for each: nothing,
pub(crate) const NOTHING: u8 = 0;
/// what budgets limit,
pub(crate) const BUDGETS: u8 = 1;
/// or everything, where [`Lane::is_watched`].
pub(crate) const WATCHED: u8 = 2;

/// A recurring load above all tasks: the tick's interrupt, or one `[[interference]]`.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    pub(crate) next: u64,
    pub(crate) period: u64,
    pub(crate) cost: u64,
}

/// One processor.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) processor: ProcessorIndex,
    pub(crate) cpu: u16,
    /// Its tasks in the order of their ids.
    pub(crate) tasks: Vec<u32>,
    /// When the next job of each of `tasks` is noticed.
    pub(crate) notices: Vec<u64>,
    /// The least of `notices`.
    pub(crate) next_notice: u64,
    /// Where it stands; the first of several.
    pub(crate) next_local: u32,
    /// The task whose job has the processor, or [`NONE`] when idle or between jobs.
    pub(crate) running: u32,
    /// The task that had the processor after the last choice, or [`NONE`] for idle.
    pub(crate) on_cpu: u32,
    /// Until when the kernel itself has the processor.
    pub(crate) kernel_until: u64,
    /// When the running segment ends if nothing intervenes.
    pub(crate) finish: u64,
    /// Whether a choice is due once the kernel is through.
    pub(crate) choice_due: bool,
    /// Whether the running job stands at a preemption point until the next choice, and the segment it announced.
    pub(crate) at_point: Option<u32>,
    pub(crate) interrupts: Vec<Interrupt>,
    /// The next interrupt, or the next of the machine's timers.
    pub(crate) next_interrupt: u64,
    /// Whether the machine may want timers here.
    pub(crate) has_timers: bool,
    /// Whether every execution is reported.
    pub(crate) is_watched: bool,
    /// Whether execution is reported at every instant, or only where the machine must know.
    pub(crate) reports_always: bool,
    pub(crate) timers: Timers,
    /// Whether the next look at the timers may be due at another time than `next_interrupt` says.
    pub(crate) is_moved: bool,
    /// Its servers, and its hard tasks with two places.
    pub(crate) watched: Watched,
}

impl Lane {
    /// The processors of a system, with the interrupts that its platform and its interferences ask for.
    pub(crate) fn all(system: &System) -> Vec<Lane> {
        let platform = system.platform();
        let tick = platform.tick.map_or(0, |tick| tick.as_ns());
        let cost = platform.timer_interrupt_cost().as_ns();
        let lane = |(index, cpu): (usize, CpuId)| {
            let tasks: Vec<u32> = system.tasks_on(cpu).map(|(TaskId(id), _)| id).collect();
            let mut interrupts = Vec::new();
            if tick > 0 && cost > 0 {
                interrupts.push(Interrupt { next: 0, period: tick, cost });
            }
            for load in system.interferences().iter().filter(|load| load.cpu == cpu) {
                let period = load.period.as_ns();
                let busy = u128::from(period) * u128::from(load.utilisation_ppb) / 1_000_000_000;
                if busy > 0 {
                    // At most the period, since a utilisation is at most 1.
                    interrupts.push(Interrupt { next: 0, period, cost: busy as u64 });
                }
            }
            Lane {
                processor: ProcessorIndex(index as u16),
                cpu: cpu.0 as u16,
                notices: vec![NEVER; tasks.len()],
                tasks,
                next_notice: NEVER,
                next_local: 0,
                running: NONE,
                on_cpu: NONE,
                kernel_until: 0,
                finish: NEVER,
                choice_due: false,
                at_point: None,
                next_interrupt: if interrupts.is_empty() { NEVER } else { 0 },
                interrupts,
                has_timers: false,
                is_watched: false,
                reports_always: false,
                timers: Timers::default(),
                is_moved: false,
                watched: Watched::new(system, cpu),
            }
        };
        // Only processors that have tasks: there may be billions of others.
        let mut used: Vec<CpuId> = system.tasks().iter().map(|task| task.cpu).collect();
        used.sort_unstable();
        used.dedup();
        used.into_iter().filter_map(|cpu| Some((platform.cpus.index_of(cpu)?, cpu))).map(lane).collect()
    }

    /// When something happens next.
    #[inline(always)]
    pub(crate) fn next_time(&self) -> u64 {
        let next = self.next_notice.min(self.finish).min(self.next_interrupt);
        if self.choice_due { next.min(self.kernel_until) } else { next }
    }

    #[inline(always)]
    pub(crate) fn refresh_next_notice(&mut self) {
        let (mut least, mut place) = (NEVER, 0);
        for (local, &notice) in self.notices.iter().enumerate() {
            place = if notice < least { local as u32 } else { place };
            least = least.min(notice);
        }
        (self.next_notice, self.next_local) = (least, place);
    }

    /// The kernel takes the processor for `cost` from `now`, or after what it does already. What runs is
    /// delayed. A sum beyond u64 lies after every horizon.
    #[inline(always)]
    pub(crate) fn charge(&mut self, now: u64, cost: u64) {
        self.kernel_until = self.kernel_until.max(now).saturating_add(cost);
        if self.finish != NEVER {
            self.finish = self.finish.saturating_add(cost);
        }
        self.is_moved = true;
    }

    /// Serves the interrupts that are due.
    pub(crate) fn serve_interrupts(&mut self, now: u64) {
        for index in 0..self.interrupts.len() {
            while self.interrupts[index].next <= now {
                let Interrupt { next, period, cost } = self.interrupts[index];
                self.charge(now, cost);
                self.interrupts[index].next = next.saturating_add(period);
                if self.interrupts[index].next == NEVER {
                    break;
                }
            }
        }
        self.next_interrupt = self.interrupts.iter().map(|i| i.next).min().unwrap_or(NEVER);
        self.is_moved = true;
    }
}
