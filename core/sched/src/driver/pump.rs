//! One processor between two events: what its job may still execute, what the machine has not been told, and which timer is
//! next.

use crate::driver::withdrawn::Withdrawal;
use crate::machine::dispatcher::NONE;
use crate::note::Noted;
use crate::{EntityId, Event, EventKind, Machine, ProcessorIndex, WallTimer};
use horolog_model::{System, TaskId};
use horolog_time::{Instant, Span};

/// Never.
pub(crate) const NEVER: u64 = u64::MAX;

/// What is kept of one processor between two events.
#[derive(Clone, Debug)]
pub(crate) struct Pump {
    pub(crate) processor: ProcessorIndex,
    /// Whose job has the processor; [`NONE`]: nobody's.
    pub(crate) running: u32,
    /// Whether what it executes is told to the machine.
    pub(crate) is_counted: bool,
    /// What was executed and has not been told.
    pub(crate) untold: u64,
    /// What may be executed until the machine must be told; [`NEVER`]: no limit. Zero until the next choice.
    pub(crate) allowance: u64,
    pub(crate) wall: Option<WallTimer>,
    /// A timer that asked for the instant at which it was called already, and that instant.
    pub(crate) refused: Option<(EntityId, u64)>,
    /// When a budget is used up or a timer is due.
    pub(crate) look_at: u64,
    /// Whether a choice is due.
    pub(crate) is_due: bool,
    /// Whether the machine may want timers or count execution here.
    pub(crate) has_timers: bool,
    /// Whether jobs have budgets here.
    pub(crate) has_budgets: bool,
    /// Whether execution is told at every instant, or only where the machine must know.
    pub(crate) tells_always: bool,
    pub(crate) last: u64,
    /// When something happens next here, while several processors run.
    pub(crate) next_at: u64,
    /// Whether something is due here in the present round.
    pub(crate) is_in_round: bool,
    /// Which of the driver's groups it belongs to; [`NONE`]: it is decided alone.
    pub(crate) group: u32,
    /// Whether something outside the order has the processor.
    pub(crate) withdrawal: Withdrawal,
    pub(crate) noted: Noted,
    /// The mode that a job's budget has asked for at its end in the present round; [`NONE`]: no one.
    pub(crate) asks_for: u32,
}

/// The processors of a cluster: decided together.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) cluster: usize,
    /// Their places in the driver, in the order of the cluster's processors.
    pub(crate) places: Box<[usize]>,
}

impl Group {
    /// Something is due on each of the processors when it is due on one.
    pub(crate) fn share_next(&self, pumps: &mut [Pump]) {
        let next = self.places.iter().fold(NEVER, |next, &place| next.min(pumps[place].next_at));
        self.places.iter().for_each(|&place| pumps[place].next_at = next);
    }
}

impl Pump {
    pub(crate) fn new(machine: &Machine, system: &System, processor: ProcessorIndex) -> Pump {
        let has_timers = machine.may_want_timers(processor);
        Pump {
            processor,
            running: NONE,
            is_counted: false,
            untold: 0,
            allowance: NEVER,
            wall: None,
            refused: None,
            look_at: NEVER,
            // The first answer tells which timers are wanted before anything is released.
            is_due: has_timers,
            has_timers,
            has_budgets: has_timers && machine.has_job_budgets(processor),
            tells_always: machine.wants_every_report(processor),
            last: 0,
            next_at: NEVER,
            is_in_round: false,
            group: NONE,
            withdrawal: Withdrawal::default(),
            noted: Noted::new(system, processor),
            asks_for: NONE,
        }
    }

    /// A job may have lost its processor, and any budget may be another.
    pub(crate) fn follow_machine(&mut self, machine: &Machine) {
        self.is_due = true;
        if self.running != NONE && machine.running(self.processor) != Some(TaskId(self.running)) {
            self.running = NONE;
            self.is_counted = false;
            self.allowance = NEVER;
        }
        self.wall = None;
    }

    #[inline(always)]
    pub(crate) fn take_amount(&mut self, amount: u64) {
        self.untold += amount;
        if self.allowance != NEVER {
            self.allowance = self.allowance.saturating_sub(amount);
        }
    }

    #[inline(never)]
    pub(crate) fn tell_amount(&mut self, machine: &mut Machine, amount: u64, now: u64) {
        self.take_amount(amount);
        self.tell_untold(machine, now);
    }

    #[inline]
    pub(crate) fn tell_untold(&mut self, machine: &mut Machine, now: u64) {
        let amount = std::mem::take(&mut self.untold);
        if amount > 0 {
            let kind = EventKind::Ran { task: TaskId(self.running), amount: Span::from_ns(amount) };
            let told = machine.on(Event::at(Instant::from_ns(now), kind));
            debug_assert_eq!(told, Ok(()));
            self.is_due |= self.allowance == 0;
        }
    }

    /// From now on another job has the processor, or none.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, machine: &Machine, next: u32) {
        self.running = next;
        self.untold = 0;
        self.is_counted = next != NONE && self.withdrawal.now.is_none() && machine.is_counted(TaskId(next));
        self.allowance = NEVER;
        if self.is_counted
            && machine.is_limited(TaskId(next))
            && let Some(budget) = machine.allowance(TaskId(next))
        {
            self.allowance = budget.as_ns();
        }
    }
}
