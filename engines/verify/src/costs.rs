//! When the kernel itself has a simulated processor: it takes a context switch from the choice on, an interrupt for each release or
//! tick, and the declared loads. The simulator charges them so, and no record says it.

use horolog_model::{CpuId, System, TaskId};

/// A recurring load above all tasks.
#[derive(Clone, Copy, Debug)]
struct Load {
    next: u64,
    period: u64,
    cost: u64,
}

/// What a platform costs one processor, and until when the kernel has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs {
    switch: u64,
    release: u64,
    loads: Vec<Load>,
    /// Until when the kernel has the processor.
    until: u64,
    /// Whose job has it after the last choice.
    on_cpu: Option<TaskId>,
}

impl Costs {
    pub(crate) fn of(system: &System, cpu: CpuId) -> Costs {
        let platform = system.platform();
        let interrupt = platform.timer_interrupt_cost().as_ns();
        let tick = platform.tick.map(|tick| Load { next: 0, period: tick.as_ns(), cost: interrupt });
        let declared = system.interferences().iter().filter(|load| load.cpu == cpu).map(|load| {
            let busy = u128::from(load.period.as_ns()) * u128::from(load.utilisation_ppb) / 1_000_000_000;
            Load { next: 0, period: load.period.as_ns(), cost: u64::try_from(busy).unwrap_or(u64::MAX) }
        });
        let loads = tick.into_iter().chain(declared);
        Costs {
            switch: platform.context_switch_cost().as_ns(),
            release: if platform.tick.is_some() { 0 } else { interrupt },
            loads: loads.filter(|load| load.cost > 0 && load.period > 0).collect(),
            until: 0,
            on_cpu: None,
        }
    }

    /// When the next interrupt comes that nothing in the trace tells of.
    pub(crate) fn next(&self) -> u64 {
        self.loads.iter().map(|load| load.next).min().unwrap_or(u64::MAX)
    }

    /// From when on the processor can be given to another job.
    pub(crate) fn until(&self) -> u64 {
        self.until
    }

    /// What a job can have executed from `from` to `to`.
    pub(crate) fn executed(&self, from: u64, to: u64) -> u64 {
        to.saturating_sub(from.max(self.until))
    }

    fn charge(&mut self, now: u64, cost: u64) {
        if cost > 0 {
            self.until = self.until.max(now).saturating_add(cost);
        }
    }

    /// The interrupts that are due by `now`. What was executed until then was asked for.
    pub(crate) fn serve(&mut self, now: u64) {
        for place in 0..self.loads.len() {
            while self.loads[place].next <= now && self.loads[place].next != u64::MAX {
                let Load { next, period, cost } = self.loads[place];
                self.charge(now, cost);
                self.loads[place].next = next.saturating_add(period);
            }
        }
    }

    /// A job was released.
    pub(crate) fn release(&mut self, now: u64) {
        self.charge(now, self.release);
    }

    /// The processor is given to this task's job.
    pub(crate) fn give(&mut self, task: Option<TaskId>, now: u64) {
        if task.is_some() && self.on_cpu != task {
            self.charge(now, self.switch);
        }
        self.on_cpu = task;
    }
}
