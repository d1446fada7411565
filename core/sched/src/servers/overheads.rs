//! What the machine adds to hard tasks, for services that compute with slack: the bounds of
//! `docs/concepts/costs.md`.

use crate::HardTask;
use horolog_model::{Arrival, CpuId, Priority, System};
use horolog_time::Span;

/// An interrupt above all tasks: at most `⌈(w + jitter)/separation⌉` of them in a window w.
#[derive(Clone, Copy, Debug)]
struct Interrupt {
    separation: u64,
    jitter: u64,
}

/// The costs of one processor.
#[derive(Clone, Debug)]
pub(crate) struct Overheads {
    /// One context switch.
    pub(crate) switch: u64,
    /// One timer interrupt.
    cost: u64,
    interrupts: Vec<Interrupt>,
    /// Interrupts that come once at most, whatever the window: listed arrivals.
    listed: u64,
    /// How late a release may be noticed.
    pub(crate) late: u64,
}

impl Overheads {
    pub(crate) fn new(system: &System, cpu: CpuId) -> Overheads {
        let platform = system.platform();
        let tick = platform.tick.map(Span::as_ns);
        let late = platform.release_latency_bound().as_ns().saturating_add(tick.unwrap_or(0));
        let cost = platform.timer_interrupt_cost().as_ns();
        let mut interrupts = Vec::new();
        let mut listed = 0_u64;
        match tick {
            _ if cost == 0 => {}
            Some(separation) => interrupts.push(Interrupt { separation, jitter: 0 }),
            None => {
                for (_, task) in system.tasks_on(cpu) {
                    let jitter = task.jitter.as_ns().saturating_add(late);
                    match (&task.arrival, task.separation()) {
                        (_, Some(separation)) => {
                            interrupts.push(Interrupt { separation: separation.as_ns(), jitter });
                        }
                        (Arrival::Aperiodic { arrivals }, _) => listed += arrivals.len() as u64,
                        _ => {}
                    }
                }
            }
        }
        Overheads { switch: platform.context_switch_cost().as_ns(), cost, interrupts, listed, late }
    }

    /// What interrupts take at most in a window, and a switch that had begun before it.
    pub(crate) fn in_window(&self, window: u64) -> u64 {
        let interrupts = self.interrupts.iter().map(|interrupt| {
            window.saturating_add(interrupt.jitter).div_ceil(interrupt.separation).saturating_mul(self.cost)
        });
        let listed = self.listed.saturating_mul(self.cost);
        interrupts.fold(self.switch.saturating_add(listed), u64::saturating_add)
    }

    /// The hard tasks of a processor, most important first, each with two context switches a job.
    pub(crate) fn hard_tasks(system: &System, cpu: CpuId) -> Vec<HardTask> {
        let switches = system.platform().context_switch_cost().as_ns().saturating_mul(2);
        let mut hard: Vec<HardTask> = system
            .hard_tasks_on(cpu)
            .map(|(id, task)| HardTask {
                task: id,
                priority: task.priority.unwrap_or(Priority::new(0)),
                execution: Span::from_ns(task.wcet.as_ns().saturating_add(switches)),
                separation: task.separation().unwrap_or(Span::MAX),
                deadline: task.deadline.unwrap_or(Span::MAX),
                jitter: task.jitter,
                is_periodic: matches!(task.arrival, Arrival::Periodic { .. }),
            })
            .collect();
        hard.sort_by_key(|hard| (std::cmp::Reverse(hard.priority.number()), hard.task));
        hard
    }
}
