//! What a node of a tree gives to what is below it: the latest time by which an amount of work is served.
//!
//! [`TreeSupply::finish`] counts from any instant from which on the node always has something to run that may run: whatever
//! happened before, `work` ns are served by then. It is the inverse of a supply bound function. From the root down:
//!
//! - the processor gives all of its time: `finish(w) = w`;
//! - loads above work in the same order delay it: `finish'(w)` is the least x with `finish(w + Σ loads(x)) <= x`;
//! - a budget of C every T gives w in `n = ⌈w/C⌉` pieces: `finish'(w) = wait + (n - 1) T + finish(w - (n - 1) C)`, which needs
//!   `finish(C) <= T`; with `wait = T - C` and a whole number of pieces that is `w + R - C + n (T - C)`, R being `finish(C)`.
//!
//! See `docs/concepts/tree-analysis.md`.

use super::windows::WindowSet;
use crate::cpu_model::InterruptLoad;
use crate::fixed_priority::level::HORIZON;
use crate::server::above::share;
use crate::server::{NoAnswer, Serve, Service, spend};
use crate::utilisation;
use std::rc::Rc;

/// What the whole tree, or a part of it, gets its time from.
#[derive(Clone, Debug)]
enum Base {
    /// The processor.
    Whole,
    /// The windows of one child of a time table.
    Windows(Rc<WindowSet>),
    /// A node that never has something to run for longer than this, ns.
    Backlog(u128),
}

/// Work that comes before other work below the same node.
#[derive(Clone, Debug)]
pub(super) enum Load {
    /// Jobs, or budgets, that come again and again.
    Jobs(InterruptLoad),
    /// All windows of a time table.
    Windows(Rc<WindowSet>),
    /// Nothing bounds it: a sporadic server by POSIX's letter.
    Unbounded,
}

impl Load {
    /// The most that it takes of a window of `x` ns at whose start it has nothing to run.
    fn demand(&self, x: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        match self {
            Self::Jobs(load) => {
                spend(effort, load.arrival.effort())?;
                let jobs = load.arrival.half_open(x);
                jobs.checked_mul(u128::from(load.wcet)).ok_or(NoAnswer::TooLarge)
            }
            Self::Windows(windows) => {
                spend(effort, windows.effort())?;
                Ok(windows.most_within(x))
            }
            Self::Unbounded => Err(NoAnswer::PosixServer),
        }
    }

    /// The share c/t of the processor that it asks for in the long run.
    pub(super) fn share(&self) -> Option<(u64, u64)> {
        match self {
            Self::Jobs(load) => share(&load.arrival, load.wcet),
            Self::Windows(windows) => Some(windows.share()),
            Self::Unbounded => None,
        }
    }
}

/// The most that `loads` take of a window of `x` ns at whose start none of them has anything to run.
pub(super) fn demand(loads: &[Load], x: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
    loads
        .iter()
        .try_fold(0_u128, |sum, load| sum.checked_add(load.demand(x, effort)?).ok_or(NoAnswer::TooLarge))
}

/// What a node serves in every period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    pub(super) service: Service,
    pub(super) budget: u64,
    pub(super) period: u64,
    /// Switching in each period, beyond the budget, ns.
    pub(super) overhead: u64,
    /// How late the machine may notice that it comes back, ns.
    pub(super) late: u64,
}

/// A budget on the way down, and the loads above it.
#[derive(Clone, Debug)]
struct Budget {
    above: Vec<Load>,
    amount: Amount,
}

/// What is given to work below a node; see the module.
#[derive(Clone, Debug)]
pub(super) struct TreeSupply {
    base: Base,
    /// From the root down.
    budgets: Vec<Budget>,
    /// Loads below the last of them.
    loads: Vec<Load>,
    /// A switch that has begun when a window begins is finished first, ns.
    switch: u64,
}

impl TreeSupply {
    /// The whole processor below interrupts.
    pub(super) fn whole(interrupts: Vec<Load>, switch: u64) -> TreeSupply {
        TreeSupply { base: Base::Whole, budgets: Vec::new(), loads: interrupts, switch }
    }

    /// Below a node that never has something to run for longer than `longest` ns.
    pub(super) fn within_backlog(longest: u128) -> TreeSupply {
        TreeSupply { base: Base::Backlog(longest), budgets: Vec::new(), loads: Vec::new(), switch: 0 }
    }

    /// The same with `loads` above what is served.
    pub(super) fn below(&self, loads: Vec<Load>) -> TreeSupply {
        let mut supply = self.clone();
        supply.loads.extend(loads);
        supply
    }

    /// The same cut down to a budget, and the time R within which the whole budget is served.
    ///
    /// # Errors
    /// [`NoAnswer::NotGuaranteed`] where that is longer than the period.
    pub(super) fn with_budget(
        mut self,
        amount: Amount,
        effort: &mut u64,
    ) -> Result<(TreeSupply, u64), NoAnswer> {
        let work = u128::from(amount.budget) + u128::from(amount.overhead);
        let done = match self.finish(work, effort) {
            Err(NoAnswer::TooLarge) => return Err(NoAnswer::NotGuaranteed),
            done => u64::try_from(done?).map_err(|_| NoAnswer::TooLarge)?,
        };
        let done = done.checked_add(amount.late).ok_or(NoAnswer::TooLarge)?;
        if done > amount.period {
            return Err(NoAnswer::NotGuaranteed);
        }
        let above = std::mem::take(&mut self.loads);
        self.budgets.push(Budget { above, amount });
        Ok((self, done))
    }

    /// The same within windows of a time table; `None` where a budget, another time table or EDF is above.
    pub(super) fn within(&self, windows: Rc<WindowSet>) -> Option<TreeSupply> {
        let is_plain = matches!(self.base, Base::Whole) && self.budgets.is_empty();
        is_plain.then(|| TreeSupply { base: Base::Windows(windows), ..self.clone() })
    }

    /// What the first `depth` budgets let through.
    fn through(&self, depth: usize, work: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        spend(effort, 1)?;
        let Some(budget) = depth.checked_sub(1).map(|at| &self.budgets[at]) else {
            return match &self.base {
                Base::Whole => Ok(work),
                Base::Windows(windows) => windows.finish(work),
                Base::Backlog(longest) => Ok(*longest),
            };
        };
        let Amount { service, budget: capacity, period, overhead, late } = budget.amount;
        let wait = u128::from(service.longest_wait(capacity, period)) + u128::from(late);
        let (capacity, period) = (u128::from(capacity), u128::from(period));
        let full = work.div_ceil(capacity).saturating_sub(1);
        let piece = work - full * capacity + u128::from(overhead);
        let rest = self.least(depth - 1, &budget.above, piece, effort)?;
        let before = full.checked_mul(period).and_then(|full| full.checked_add(wait));
        before.and_then(|before| before.checked_add(rest)).ok_or(NoAnswer::TooLarge)
    }

    /// The least x by which `work` and what `loads` bring within x is let through.
    fn least(&self, depth: usize, loads: &[Load], work: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        let work = work.checked_add(u128::from(self.switch)).ok_or(NoAnswer::TooLarge)?;
        let mut x = self.through(depth, work, effort)?;
        if loads.is_empty() {
            return Ok(x);
        }
        loop {
            let all = work.checked_add(demand(loads, x, effort)?).ok_or(NoAnswer::TooLarge)?;
            let next = self.through(depth, all, effort)?;
            if next <= x {
                return Ok(x);
            }
            if next > HORIZON {
                return Err(NoAnswer::TooLarge);
            }
            x = next;
        }
    }

    /// The longest time for which `loads` can keep busy what is served: the least x > 0 by which all that came within it is done.
    pub(super) fn backlog(&self, loads: &[Load], effort: &mut u64) -> Result<u128, NoAnswer> {
        let shares: Vec<(u64, u64)> = loads.iter().filter_map(Load::share).collect();
        if self.is_exceeded_by(&shares) {
            return Err(NoAnswer::Overload);
        }
        let mut x = 1;
        loop {
            let next = self.finish(demand(loads, x, effort)?, effort)?;
            if next <= x {
                return Ok(x);
            }
            if next > HORIZON {
                return Err(NoAnswer::TooLarge);
            }
            x = next;
        }
    }
}

impl Serve for TreeSupply {
    fn finish(&self, work: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        if work == 0 {
            return Ok(0);
        }
        self.least(self.budgets.len(), &self.loads, work, effort)
    }

    fn is_exceeded_by(&self, asked: &[(u64, u64)]) -> bool {
        let all = asked.iter().copied().chain(self.loads.iter().filter_map(Load::share));
        // Behind a wait the last of what is asked for is never done where all that there is is asked for.
        match (self.budgets.last(), &self.base) {
            (Some(last), _) => {
                utilisation::compare_with(all, (last.amount.budget, last.amount.period)).is_ge()
            }
            (None, Base::Whole) => utilisation::compare_with(all, (1, 1)).is_gt(),
            (None, Base::Windows(windows)) => utilisation::compare_with(all, windows.share()).is_ge(),
            (None, Base::Backlog(_)) => false,
        }
    }
}
