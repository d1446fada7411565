//! A sum of many fractions.

use num_rational::{BigRational, Ratio};

/// A sum of fractions that stays exact without a common 128-bit denominator.
#[derive(Clone, Debug, Default)]
pub(crate) struct FractionSum {
    whole: u128,
    rest: BigRational,
}

impl FractionSum {
    /// Adds a fraction; `None` on overflow.
    pub(crate) fn add(&mut self, value: Ratio<u128>) -> Option<()> {
        self.whole = self.whole.checked_add(value.to_integer())?;
        let fraction = value.fract();
        if *fraction.numer() > 0 {
            self.rest += BigRational::new((*fraction.numer()).into(), (*fraction.denom()).into());
        }
        Some(())
    }

    /// Whether the sum is at most `limit`.
    pub(crate) fn at_most(&self, limit: u128) -> bool {
        limit.checked_sub(self.whole).is_some_and(|room| self.rest <= BigRational::from_integer(room.into()))
    }
}
