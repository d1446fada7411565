//! One processor of a simulation: what runs, what the kernel owes, what happens next.

use crate::earliest::Earliest;
use horolog_model::{CpuId, System, Task, TaskId};
use horolog_sched::ProcessorIndex;

pub(crate) const NEVER: u64 = u64::MAX;
/// No task.
pub(crate) const NONE: u32 = u32::MAX;

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
    /// Its place among the processors of the simulation.
    pub(crate) place: usize,
    pub(crate) cpu: u16,
    /// Its tasks in the order of their ids.
    pub(crate) tasks: Vec<u32>,
    /// When the next job of each of `tasks` is noticed.
    pub(crate) notices: Earliest,
    /// The task whose job has the processor, or [`NONE`] when idle or between jobs.
    pub(crate) running: u32,
    /// Whether sections leave the processor, or come to it. Any other one carries its choices out at once.
    pub(crate) lends: bool,
    /// Where sections may go on elsewhere: the task that was chosen last and is not done, which `running` is not while it spins and a section
    /// goes on in its place. Whether that choice was made in this round, and who gets the processor.
    pub(crate) chosen: u32,
    pub(crate) is_chosen_anew: bool,
    pub(crate) placed: u32,
    /// The task that had the processor after the last choice, or [`NONE`] for idle.
    pub(crate) on_cpu: u32,
    /// Until when the kernel itself has the processor.
    pub(crate) kernel_until: u64,
    /// When the running segment ends if nothing intervenes.
    pub(crate) finish: u64,
    /// What was left of the running segment when its execution was looked at last.
    left: u64,
    /// Whether the running job stands at a preemption point until the next choice, and the segment it announced.
    pub(crate) at_point: Option<u32>,
    pub(crate) interrupts: Vec<Interrupt>,
    /// When the next of them comes.
    pub(crate) next_interrupt: u64,
}

impl Lane {
    /// The processors of a system, with the interrupts that its platform and its interferences ask for.
    pub(crate) fn all(system: &System) -> Vec<Lane> {
        let platform = system.platform();
        let tick = platform.tick.map_or(0, |tick| tick.as_ns());
        let cost = platform.timer_interrupt_cost().as_ns();
        let moves = |name: &str| {
            let named = system.resources().iter().find(|resource| resource.name == name);
            named.is_some_and(|resource| resource.protocol.helps() || resource.protocol.is_remote())
        };
        let lends = |cpu: CpuId| {
            let uses = |task: &Task| task.sections.iter().any(|section| moves(&section.resource));
            system.tasks().iter().any(|task| task.cpu == cpu && uses(task))
                || system.resources().iter().any(|resource| resource.cpu == Some(cpu))
        };
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
                notices: Earliest::new(tasks.len()),
                tasks,
                place: 0,
                running: NONE,
                lends: lends(cpu),
                chosen: NONE,
                is_chosen_anew: false,
                placed: NONE,
                on_cpu: NONE,
                kernel_until: 0,
                finish: NEVER,
                left: 0,
                at_point: None,
                next_interrupt: if interrupts.is_empty() { NEVER } else { 0 },
                interrupts,
            }
        };
        // Only processors that have tasks, run those of a cluster, or execute sections: there may be billions of others.
        let mut used: Vec<CpuId> = system.tasks().iter().map(|task| task.cpu).collect();
        used.extend(system.resources().iter().filter_map(|resource| resource.cpu));
        used.extend(system.clusters().iter().flat_map(|cluster| &cluster.cpus));
        used.sort_unstable();
        used.dedup();
        let lanes = used.into_iter().filter_map(|cpu| Some((platform.cpus.index_of(cpu)?, cpu))).map(lane);
        lanes.enumerate().map(|(place, lane)| Lane { place, ..lane }).collect()
    }

    /// When something happens next.
    #[inline(always)]
    pub(crate) fn next_time(&self) -> u64 {
        self.notices.time.min(self.finish).min(self.next_interrupt)
    }

    /// A segment of this length is executed from `at` on.
    #[inline(always)]
    pub(crate) fn begin(&mut self, at: u64, length: u64) {
        self.finish = at.saturating_add(length);
        self.left = length;
    }

    /// The running job spins for a lock: it executes nothing until it holds it.
    pub(crate) fn spin(&mut self) {
        (self.finish, self.left) = (NEVER, 0);
    }

    /// What the running segment has executed since this was asked last, read off its end: what is left of it at `now` is
    /// `finish - max(now, kernel_until)`, since the kernel's own time delays `finish` by as much.
    #[inline(always)]
    pub(crate) fn executed(&mut self, now: u64) -> u64 {
        let at = now.max(self.kernel_until);
        let left =
            if self.running == NONE || self.finish == NEVER { 0 } else { self.finish.saturating_sub(at) };
        let amount = self.left.saturating_sub(left);
        self.left = left;
        amount
    }

    /// The kernel takes the processor for `cost` from `now`, or after what it does already. What runs is
    /// delayed. A sum beyond u64 lies after every horizon.
    #[inline(always)]
    pub(crate) fn charge(&mut self, now: u64, cost: u64) {
        self.kernel_until = self.kernel_until.max(now).saturating_add(cost);
        if self.finish != NEVER {
            self.finish = self.finish.saturating_add(cost);
        }
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
    }
}
