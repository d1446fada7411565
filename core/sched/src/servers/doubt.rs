//! Budgets in doubt (decision 0007): what was executed is known within bounds, or nothing is known of a stretch of time, until each
//! supply says by its own rule that what it has is known again.

use horolog_time::Span;

/// What is not known of the execution up to an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doubt {
    /// At most so much was executed beyond what was told.
    pub more: Span,
    /// At most so much is any budget overdrawn: the longest stretch that no end of a budget interrupts.
    pub overdraw: Span,
}

impl Doubt {
    /// How often a whole budget fits into what may have been executed; rounded up.
    pub(crate) fn budgets(&self, full: i64) -> u64 {
        self.more.as_ns() / full.unsigned_abs().max(1) + 1
    }

    /// For how many periods what was used until now may keep a budget away: one, and those that an overdraw takes.
    #[must_use]
    pub fn periods(&self, budget: Span) -> u64 {
        match self.overdraw.as_ns() {
            0 => 1,
            most => 3 + most / budget.as_ns().max(1),
        }
    }
}

/// How much less may be left of a budget than its supply says, which then says the most that may be left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Missing {
    amount: i64,
    /// No less than this is left.
    deepest: i64,
}

impl Missing {
    #[inline(always)]
    pub(crate) fn is_some(&self) -> bool {
        self.amount != 0
    }

    fn add(&mut self, left: i64, more: u64) {
        let least = left.saturating_sub(self.amount).saturating_sub_unsigned(more);
        self.amount = left - least.max(self.deepest).min(left);
    }

    #[cold]
    pub(crate) fn doubt(&mut self, left: i64, doubt: Doubt) {
        let overdraw = 0_i64.saturating_sub_unsigned(doubt.overdraw.as_ns());
        self.deepest = self.deepest.min(overdraw).min(left);
        self.add(left, doubt.more.as_ns());
    }

    /// The node has executed, perhaps within its budget.
    #[cold]
    pub(crate) fn executed(&mut self, left: i64, amount: Span) {
        self.add(left, amount.as_ns());
    }

    /// What is left becomes what a rule says, which gives no more for less.
    #[inline]
    pub(crate) fn apply(&mut self, left: &mut i64, rule: impl Fn(i64) -> i64) {
        let least = *left - self.amount;
        *left = rule(*left);
        if self.amount != 0 {
            self.amount = *left - rule(least);
            self.forget_if_none();
        }
    }

    fn forget_if_none(&mut self) {
        if self.amount == 0 {
            self.deepest = 0;
        }
    }

    /// A record says what is left; zero: nothing, and perhaps less.
    pub(crate) fn learn(&mut self, left: &mut i64, budget: Span) {
        let budget = budget.as_ns() as i64;
        if budget > 0 {
            *left = budget;
            *self = Missing::default();
        } else {
            self.apply(left, |left| left.min(0));
        }
    }
}
