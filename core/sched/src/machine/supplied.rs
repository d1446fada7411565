//! A node with a supply: what the supply answered last, kept so that it is asked once for each thing that it is told.

use crate::machine::Processor;
use crate::machine::timers::STALE;
use crate::servers::any_supply::{AnySupply, Charged, Standing};
use crate::{Doubt, Place, Tally};
use horolog_model::Capacity;
use horolog_time::{Instant, Span};

/// A node with a supply.
#[derive(Clone, Debug)]
pub(crate) struct SuppliedNode {
    pub(crate) node: u32,
    supply: AnySupply,
    /// What the supply answers now.
    pub(crate) standing: Standing,
    /// Whether the supply was last told that the node has ready children.
    backlogged: bool,
    /// Whether what is executed below it is charged: it stood at its own place when the running job was chosen. A job that keeps
    /// the processor beyond the budget goes on paying until the next choice, or as long as it is committed.
    pub(crate) pays: bool,
    /// The wall timer that is armed.
    pub(crate) timer: Option<Instant>,
    pub(crate) generation: u32,
}

impl SuppliedNode {
    pub(crate) fn new(node: u32, supply: AnySupply) -> SuppliedNode {
        let standing = supply.standing();
        SuppliedNode { node, supply, standing, backlogged: false, pays: false, timer: None, generation: 0 }
    }

    /// Takes over the supply's answer; whether its place or its deadline is another than before.
    #[inline]
    fn take_over(&mut self, standing: Standing, processor: &mut Processor) -> bool {
        let before = std::mem::replace(&mut self.standing, standing);
        let is_elsewhere = standing.place != before.place;
        processor.wall_is_stale |= standing.timer != self.timer;
        processor.count_changes(standing.changes.wrapping_sub(before.changes));
        is_elsewhere || standing.deadline != before.deadline
    }

    /// Whether the node has ready children.
    #[inline]
    pub(crate) fn demand(&mut self, some_ready: bool, now: Instant, processor: &mut Processor) {
        if self.backlogged != some_ready {
            self.backlogged = some_ready;
            let standing = self.supply.demand_changed(now, some_ready);
            if standing.budget != self.standing.budget {
                // The job that left may be followed by one of the same task, which no armed timer counts.
                processor.timed = STALE;
            }
            self.take_over(standing, processor);
        }
    }

    /// The node has executed; whether it may stand elsewhere now.
    #[inline]
    pub(crate) fn executed(&mut self, now: Instant, amount: Span, processor: &mut Processor) -> bool {
        match self.supply.executed(now, amount) {
            Charged::Budget(budget) => {
                self.standing.budget = budget;
                false
            }
            Charged::All(standing) => {
                processor.timed = STALE;
                self.take_over(standing, processor)
            }
        }
    }

    /// Its wall timer went off; whether it may stand elsewhere now.
    #[inline]
    pub(crate) fn fired(&mut self, now: Instant, processor: &mut Processor) -> bool {
        self.timer = None;
        let standing = self.supply.timer_fired(now);
        // The budget of whoever runs may be another one.
        (processor.wall_is_stale, processor.timed) = (true, STALE);
        self.take_over(standing, processor)
    }

    pub(crate) fn lent(&mut self, now: Instant, place: Place, processor: &mut Processor) {
        let standing = self.supply.lent(now, place);
        (processor.wall_is_stale, processor.timed) = (true, STALE);
        self.take_over(standing, processor);
    }

    /// It has another budget and period from now on; whether it may stand elsewhere now.
    pub(crate) fn change_capacity(
        &mut self,
        now: Instant,
        capacity: Capacity,
        processor: &mut Processor,
    ) -> bool {
        let standing = self.supply.change_capacity(now, capacity);
        self.take_over(standing, processor)
    }

    /// What it executed up to now is known within bounds.
    pub(crate) fn doubt(&mut self, now: Instant, doubt: Doubt, processor: &mut Processor) {
        let standing = self.supply.doubt(now, doubt);
        (processor.wall_is_stale, processor.timed) = (true, STALE);
        self.take_over(standing, processor);
    }

    /// A record says what may be executed.
    pub(crate) fn learn(&mut self, now: Instant, budget: Span, processor: &mut Processor) {
        let standing = self.supply.learn(now, budget);
        (processor.wall_is_stale, processor.timed) = (true, STALE);
        self.take_over(standing, processor);
    }

    /// There is no work below it, and what it executed is known within bounds.
    pub(crate) fn begin_anew(&mut self, now: Instant, doubt: Doubt, processor: &mut Processor) {
        self.demand(false, now, processor);
        self.doubt(now, doubt, processor);
        self.pays = false;
    }

    pub(crate) fn is_known(&self, now: Instant) -> bool {
        self.supply.is_known(now)
    }

    /// The start of its period at `now` or next after it.
    pub(crate) fn frame(&self, now: Instant) -> Option<Instant> {
        self.supply.frame(now)
    }

    /// A job below it was chosen, or goes on.
    #[inline(always)]
    pub(crate) fn chosen(&mut self, is_kept: bool) {
        self.pays = if is_kept { self.pays } else { self.standing.place == Place::High };
    }

    pub(crate) fn is_backlogged(&self) -> bool {
        self.backlogged
    }

    /// Whether what is kept is what the supply answers.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (kept, now) = (self.standing, self.supply.standing());
        let is_same = (kept.place, kept.deadline, kept.timer, kept.budget)
            == (now.place, now.deadline, now.timer, now.budget);
        if is_same { Ok(()) } else { Err(format!("{kept:?} is kept and {now:?} is answered")) }
    }

    pub(crate) fn budget(&self) -> Option<Span> {
        self.supply.budget()
    }

    #[inline(always)]
    pub(crate) fn tally(&self) -> Tally {
        self.supply.tally()
    }
}
