//! Where work of a server stands: all that can delay it there, by name.

use super::{Above, NoAnswer};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuServer, CpuTask, InterruptLoad, LONGEST_NS, Seen};
use crate::explanation::TermKind;
use crate::fixed_priority::sections::{Blocked, Sections};
use crate::hyperbolic_load::HyperbolicLoad;
use horolog_model::{Enforcement, Priority};

/// A place and who is above it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) above: Above,
    /// Who each of the loads above is, in their order.
    pub(crate) who: Vec<Source>,
    /// Who may block, where that is a task.
    pub(crate) blocker: Option<String>,
}

/// Where a load comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) kind: TermKind,
    pub(crate) name: Option<String>,
    /// The part of each piece that is context switches, ns.
    pub(crate) switching: u64,
}

impl Place {
    fn push(&mut self, kind: TermKind, name: Option<&str>, load: InterruptLoad, switching: u64) {
        self.above.loads.push(load);
        self.who.push(Source { kind, name: name.map(str::to_owned), switching });
    }

    /// The switching of the server itself.
    fn push_switching(&mut self, server: &CpuServer) {
        if let (Some(capacity), 1..) = (server.kind.capacity(), server.overhead) {
            let period = capacity.period.as_ns();
            let arrival = ArrivalCurve::Periodic { separation: period, jitter: period };
            let load = InterruptLoad { arrival, wcet: server.overhead };
            self.push(TermKind::ContextSwitches, None, load, 0);
        }
    }

    fn push_task(&mut self, task: &CpuTask) {
        let (arrival, wcet) = task.seen();
        let load = InterruptLoad { arrival: arrival.clone(), wcet };
        self.push(TermKind::Interference, Some(&task.name), load, wcet - task.bare_wcet);
    }
}

/// All that can delay a server that the kernel serves: interrupts and measured loads.
pub(crate) fn top_place(cpu: &CpuModel, own_index: usize) -> Place {
    let mut place = above_all(cpu);
    place.above.measured = cpu.interferences[..cpu.measured].to_vec();
    place.above.blocking = cpu.context_switch;
    place.push_switching(&cpu.servers[own_index]);
    place
}

impl CpuServer {
    /// Where the kernel serves it: what it takes above all tasks if `above` can hold it up; the whole processor where nothing
    /// bounds that. `None` where it leaves the numbers.
    pub(crate) fn reserve(&mut self, above: &Above) -> Option<()> {
        let (Some(Enforcement::Kernel { latency }), Some(capacity)) =
            (self.kind.enforcement(), self.kind.capacity())
        else {
            return Some(());
        };
        let within = |ns: u64| Some(ns).filter(|&ns| ns <= LONGEST_NS);
        let (budget, period) = (capacity.budget.as_ns(), capacity.period.as_ns());
        let whole = within(budget.checked_add(self.overhead)?)?;
        let done = above.finish(u128::from(whole), &mut 1_000_000);
        let delay = done.ok().filter(|&done| done <= u128::from(period)).map(|done| done as u64 - whole);
        self.reservation = Some(match delay.and_then(|delay| delay.checked_add(self.costs.late)) {
            Some(delay) => HyperbolicLoad::of_reservation(whole, period, delay, within(latency.as_ns())?)?,
            None => HyperbolicLoad { utilisation_ppb: 1_000_000_000, period: 0 },
        });
        Some(())
    }
}

/// The interrupts above all tasks.
fn above_all(cpu: &CpuModel) -> Place {
    let mut place = Place::default();
    let drivers = cpu.first_driver..cpu.first_driver + cpu.drivers.above_all.len();
    for (index, load) in cpu.interrupts.iter().enumerate() {
        if drivers.contains(&index) {
            let name = &cpu.drivers.above_all[index - drivers.start].0;
            place.push(TermKind::Device, Some(name), load.clone(), 0);
        } else {
            place.push(TermKind::TimerInterrupts, None, load.clone(), 0);
        }
    }
    place
}

/// All that can delay work of a server at a place; `None`: below all tasks. Of the server itself, at `own_index`, only
/// the switching counts.
pub(crate) fn place_of(
    cpu: &CpuModel,
    own_index: usize,
    priority: Option<Priority>,
) -> Result<Place, NoAnswer> {
    let mut place = above_all(cpu);
    place.above.measured = cpu.interferences.clone();
    let mut longest = 0;
    for task in &cpu.tasks {
        let is_below = match (priority, task.priority) {
            (Some(place), Some(priority)) => place.is_more_important_than(priority),
            _ => false,
        };
        if !is_below {
            place.push_task(task);
        } else if task.shape.longest_segment > longest {
            longest = task.shape.longest_segment;
            place.blocker = Some(task.name.clone());
        }
    }
    let sections = match priority {
        Some(priority) if cpu.has_sections() => {
            let sections = Sections::of(cpu).map_err(|_| NoAnswer::NotGuaranteed)?;
            sections.blocked_at(priority)
        }
        _ => Blocked::default(),
    };
    // No task has both (`beyond`).
    if sections.time() > longest {
        longest = sections.time();
        place.blocker = match &sections.by[..] {
            [(one, _)] => Some(cpu.tasks[one.task].name.clone()),
            _ => None,
        };
    }
    place.above.blocking = longest + cpu.context_switch;
    for thread in &cpu.drivers.threads {
        if let Some(load) = thread.seen_from(priority) {
            place.push(TermKind::Device, Some(&thread.name), load.clone(), 2 * cpu.context_switch);
        }
    }
    for (index, server) in cpu.servers.iter().enumerate() {
        if index == own_index {
            place.push_switching(server);
            continue;
        }
        match server.seen_from(priority) {
            Seen::Nothing => {}
            Seen::Load(load) => {
                place.push(TermKind::Server, Some(&server.name), load.clone(), server.overhead);
            }
            Seen::Tasks(tasks, moves) => {
                tasks.iter().for_each(|task| place.push_task(task));
                for load in moves {
                    place.push(TermKind::ContextSwitches, None, load.clone(), 0);
                }
            }
            Seen::Unbounded => return Err(NoAnswer::PosixServer),
        }
    }
    Ok(place)
}
