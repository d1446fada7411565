//! One processor: who has it, and what the kernel and foreign threads take from it.

use super::lane::{LaneBuilder, LaneKind, Taken};
use horolog_trace::Kind;

/// The code of a foreign thread in a processor's lane; tasks are 1 + index.
pub(super) const FOREIGN: u64 = 0;

/// The lanes of one processor, with the handlers that are open on it.
#[derive(Clone, Debug)]
pub(super) struct Processor {
    pub(super) number: u16,
    /// Whether the kernel's own switches are in the records: then they alone decide who runs.
    pub(super) sees_switches: bool,
    /// The task that has the processor, as far as the records say.
    pub(super) running: Option<u32>,
    /// Tasks that lost the processor without a record of it, the last one last.
    pub(super) displaced: Vec<u32>,
    pub(super) who: LaneBuilder,
    pub(super) taken: LaneBuilder,
    foreign: Option<u64>,
    /// Whether a job is pending here: then a foreign thread stands in its way.
    wanted: bool,
    /// Open handlers, the innermost last: class, number and label.
    handlers: Vec<(Taken, u64, u64)>,
}

/// Nested handlers that are kept: real nesting is at most three deep, lost exits must not grow the list.
const NESTING: usize = 8;

impl Processor {
    pub(super) fn new(number: u16) -> Processor {
        Processor {
            number,
            sees_switches: false,
            running: None,
            displaced: Vec::new(),
            who: LaneBuilder::new(LaneKind::Cpu, u32::from(number), format!("CPU {number}")),
            taken: LaneBuilder::new(LaneKind::Kernel, u32::from(number), format!("Kernel · CPU {number}")),
            foreign: None,
            wanted: false,
            handlers: Vec::new(),
        }
    }

    /// The kernel gave the processor to a foreign thread (its label), or to none.
    pub(super) fn foreign(&mut self, time: i64, label: Option<u64>) {
        self.foreign = label;
        self.show(time);
    }

    /// Whether a job is pending on this processor from now on.
    pub(super) fn want(&mut self, time: i64, wanted: bool) {
        if self.wanted != wanted {
            self.wanted = wanted;
            self.show(time);
        }
    }

    /// A handler begins or ends.
    pub(super) fn handler(&mut self, time: i64, kind: Kind, number: u64, label: u64) {
        let class = match kind {
            Kind::InterruptEntry | Kind::InterruptExit => Taken::Interrupt,
            _ => Taken::Softirq,
        };
        if matches!(kind, Kind::InterruptEntry | Kind::SoftirqEntry) {
            if self.handlers.len() == NESTING {
                self.handlers.remove(0);
            }
            self.handlers.push((class, number, label));
        } else if let Some(at) = self.handlers.iter().rposition(|h| h.0 == class && h.1 == number) {
            // What was opened inside and never closed lost its exit record.
            self.handlers.truncate(at);
        }
        self.show(time);
    }

    /// The hypervisor took the processor from `from` to `to`.
    pub(super) fn steal(&mut self, from: i64, to: i64, label: u64) {
        self.taken.overwrite(from, to, Taken::Steal as u64, label);
        self.show(to);
    }

    /// Shows the innermost handler, else the foreign thread, else nothing.
    fn show(&mut self, time: i64) {
        match (self.handlers.last(), self.foreign) {
            (Some(&(class, _, label)), _) => self.taken.enter(time, class as u64, label),
            (None, Some(label)) if self.wanted => self.taken.enter(time, Taken::Thread as u64, label),
            (None, Some(label)) => self.taken.enter(time, Taken::Background as u64, label),
            (None, None) => self.taken.leave(time),
        }
    }
}

/// The name of a softirq, as in /proc/softirqs.
pub(super) fn softirq_name(number: u64) -> String {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    match usize::try_from(number).ok().and_then(|n| NAMES.get(n)) {
        Some(name) => format!("softirq {name}"),
        None => format!("softirq {number}"),
    }
}

/// The name of an interrupt: a device's by its number, the processor's own by what they are for.
pub(super) fn interrupt_name(number: u64, own: u64) -> String {
    match own {
        0 => format!("interrupt {number}"),
        1 => "local timer interrupt".to_owned(),
        2 => "reschedule interrupt".to_owned(),
        3 | 4 => "call-function interrupt".to_owned(),
        5 => "irq-work interrupt".to_owned(),
        _ => format!("interrupt vector {number}"),
    }
}
