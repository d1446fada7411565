//! How improbable a count of rare events is.

/// A count of exceedances is improbable from below this probability on: one in a million.
const IMPROBABLE: (u64, u64) = (1, 1_000_000);

/// A positive number `mantissa · 2^exponent` whose mantissa has its top bit set; zero has the mantissa 0. Every operation
/// rounds up by less than one part in 2^63.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Upward {
    mantissa: u64,
    exponent: i64,
}

impl Upward {
    const ZERO: Upward = Upward { mantissa: 0, exponent: 0 };

    /// The number `mantissa · 2^exponent`, rounded up.
    fn of(mantissa: u128, exponent: i64) -> Upward {
        if mantissa == 0 {
            return Upward::ZERO;
        }
        let above = 64 - i64::from(mantissa.leading_zeros());
        if above <= 0 {
            // Below 2^64: shifted up, exactly.
            return Upward {
                mantissa: (mantissa << -above) as u64,
                exponent: exponent.saturating_add(above),
            };
        }
        let kept = mantissa >> above;
        let cut = u128::from(kept << above != mantissa);
        match u64::try_from(kept + cut) {
            Ok(mantissa) => Upward { mantissa, exponent: exponent.saturating_add(above) },
            // Rounding up carried into a 65th bit: the number is a power of two.
            Err(_) => Upward { mantissa: 1 << 63, exponent: exponent.saturating_add(above + 1) },
        }
    }

    fn times(self, other: Upward) -> Upward {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        Upward::of(product, self.exponent.saturating_add(other.exponent))
    }

    /// The quotient; the divisor is above zero.
    fn over(self, divisor: u64) -> Upward {
        let (divisor, scaled) = (u128::from(divisor.max(1)), u128::from(self.mantissa) << 64);
        Upward::of(scaled.div_ceil(divisor), self.exponent.saturating_sub(64))
    }

    fn plus(self, other: Upward) -> Upward {
        let (low, high) = if self.is_below(other) { (self, other) } else { (other, self) };
        if low.mantissa == 0 {
            return high;
        }
        let apart = high.exponent.saturating_sub(low.exponent);
        // 63 bits of room for the higher one; what the lower one loses is rounded up.
        let room = apart.clamp(0, 63);
        let shift = (apart - room).min(127) as u32;
        let low = u128::from(low.mantissa);
        let lost = u128::from(low >> shift << shift != low);
        let sum = (u128::from(high.mantissa) << room) + (low >> shift) + lost;
        Upward::of(sum, high.exponent.saturating_sub(room))
    }

    fn is_below(self, other: Upward) -> bool {
        match (self.mantissa, other.mantissa) {
            (_, 0) => false,
            (0, _) => true,
            _ => (self.exponent, self.mantissa) < (other.exponent, other.mantissa),
        }
    }

    fn power(self, mut exponent: u64) -> Upward {
        let (mut result, mut base) = (Upward::of(1, 0), self);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(base);
            }
            base = base.times(base);
            exponent >>= 1;
        }
        result
    }
}

/// Whether `count` or more of `trials` independent trials, each true with the probability `chance / of`, are improbable:
/// P(X >= count) < 10^-6 for X binomial, P(X = i) = C(n, i) p^i (1 - p)^(n - i).
///
/// The probability is bounded from above in integers, each step rounded up by less than one part in 2^63, so what is called
/// improbable is; in a billion trials the bound is above the exact one by less than one part in 10^8. From 2^32 trials
/// on the answer is `false`.
///
/// ```
/// use horolog_measure::binomial::is_improbable;
/// // Of 1,000 samples one in 1,000 lies above p99.9: nine may happen, ten may not.
/// assert!(!is_improbable(1_000, 9, 1, 1_000));
/// assert!(is_improbable(1_000, 10, 1, 1_000));
/// ```
#[must_use]
pub fn is_improbable(trials: u64, count: u64, chance: u32, of: u32) -> bool {
    if trials >= 1 << 32 || count == 0 || chance >= of {
        return false;
    }
    if count > trials || chance == 0 {
        return true;
    }
    let (hit, miss) = (u64::from(chance), u64::from(of - chance));
    // The term of `count` from that of zero; then the sum of it and what follows.
    let mut term = Upward::of(u128::from(miss), 0).over(u64::from(of)).power(trials);
    let next = |term: Upward, i: u64| {
        let factor = Upward::of(u128::from(trials - i) * u128::from(hit), 0);
        Some(term.times(factor).over(i.checked_add(1)?.checked_mul(miss)?))
    };
    let mut sum = Upward::ZERO;
    let limit = Upward::of(u128::from(IMPROBABLE.0), 0).over(IMPROBABLE.1);
    for i in 0..=trials {
        if i >= count {
            sum = sum.plus(term);
            if !sum.is_below(limit) {
                return false;
            }
            // Beyond the mean terms fall: each that is left is at most this one.
            let is_falling = u128::from(i) * u128::from(of) > u128::from(trials + 1) * u128::from(hit);
            let rest = term.times(Upward::of(u128::from(trials - i) + 1, 0));
            if is_falling && sum.plus(rest).is_below(limit) {
                return true;
            }
        }
        match next(term, i) {
            Some(following) => term = following,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(X >= count) · of^trials, exactly.
    fn tail(trials: u32, count: u32, chance: u128, of: u128) -> (u128, u128) {
        let mut sum = 0;
        let mut binomial: u128 = 1;
        for i in 0..=trials {
            if i >= count {
                sum += binomial * chance.pow(i) * (of - chance).pow(trials - i);
            }
            binomial = binomial * u128::from(trials - i) / u128::from(i + 1);
        }
        (sum, of.pow(trials))
    }

    #[test]
    fn small_cases_are_those_of_exact_arithmetic() {
        let mut improbable = 0;
        for (chance, of, most) in [(1, 1_000, 9), (1, 100, 13), (1, 2, 60), (3, 10, 22), (999, 1_000, 9)] {
            for trials in 1..=most {
                for count in 0..=trials + 1 {
                    let (hits, all) = tail(trials, count, chance, of);
                    let exact = hits * 1_000_000 < all;
                    improbable += u32::from(exact);
                    let found = is_improbable(trials.into(), count.into(), chance as u32, of as u32);
                    assert_eq!(found, exact, "{count} of {trials} with {chance}/{of}");
                }
            }
        }
        assert!(improbable > 100);
    }

    #[test]
    fn a_probability_of_exactly_one_in_a_million_is_not_improbable() {
        // Both of two at 1/1000: 10^-6; three of three at 1/100 likewise.
        assert!(!is_improbable(2, 2, 1, 1_000));
        assert!(!is_improbable(3, 3, 1, 100));
        assert!(is_improbable(3, 3, 1, 1_000));
    }

    #[test]
    fn the_boundary_of_a_thousand_samples() {
        // From tables of the binomial distribution (R: pbinom(k - 1, n, p, lower.tail = FALSE)).
        for (trials, chance, of, least) in
            [(1_000, 1, 1_000, 10), (1_000, 1, 100, 29), (100_000, 1, 1_000, 152)]
        {
            assert!(!is_improbable(trials, least - 1, chance, of), "{least} of {trials}");
            assert!(is_improbable(trials, least, chance, of), "{least} of {trials}");
        }
    }

    #[test]
    fn the_edges_say_what_is_certain() {
        assert!(!is_improbable(0, 0, 1, 2));
        assert!(is_improbable(0, 1, 1, 2), "more than there are");
        assert!(is_improbable(5, 1, 0, 10), "what cannot happen");
        assert!(!is_improbable(5, 5, 10, 10), "what must happen");
        assert!(!is_improbable(1 << 32, 1 << 31, 1, 1_000), "too many to say");
        assert!(is_improbable(1 << 30, 1 << 21, 1, 1_000));
        assert!(!is_improbable(1 << 30, 1 << 20, 1, 1_000));
    }

    #[test]
    fn sums_of_numbers_far_apart_are_rounded_up() {
        let (one, tiny) = (Upward::of(1, 0), Upward::of(1, -200));
        assert!(one.is_below(one.plus(tiny)));
        assert_eq!(one.plus(Upward::ZERO), one);
        assert_eq!(Upward::of(3, 0).plus(Upward::of(5, 0)), Upward::of(8, 0));
        assert_eq!(Upward::of(u128::MAX, 0), Upward::of(1, 128));
        assert_eq!(Upward::of(21, 0).over(7), Upward::of(3, 0));
    }
}
