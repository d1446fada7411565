//! exp and ln from operations that IEEE 754 rounds correctly, so that what is drawn is the same on every machine.
//!
//! Both are right to a few units of the last digit.

use std::f64::consts::{LN_2, LOG2_E};

/// The upper digits of ln 2, whose product with a small whole number is exact, and the rest.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Added and taken away again it leaves the nearest whole number.
const ROUNDING: f64 = (3_u64 << 51) as f64;
/// The digits of the square root of 1/2.
const HALF_ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
/// Binary digits of a number behind the first one.
const DIGITS: u32 = 52;

/// The nearest whole number, of a number between -2^51 and 2^51.
pub(crate) fn nearest(number: f64) -> f64 {
    (number + ROUNDING) - ROUNDING
}

/// e^x - 1 for x up to 700: 2^k (e^r - 1) + (2^k - 1), where k is the whole number next to x / ln 2 and r = x - k ln 2. With |r| ≤ 0.35 the
/// series of e^r - 1 up to r^14 / 14! leaves out less than the last digit.
pub(crate) fn exp_minus_one(x: f64) -> f64 {
    // e^-60 is far below the last digit of 1.
    if x < -60.0 {
        return -1.0;
    }
    let k = nearest(x * LOG2_E);
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    // 1 + r/2 (1 + r/3 (1 + …))
    let series = (2..=14_u32).rev().fold(1.0, |series, term| 1.0 + series * r / f64::from(term));
    let power = f64::from_bits(((k as i64 + 1_023) as u64) << DIGITS);
    power * (r * series) + (power - 1.0)
}

/// -ln(1 - y) for y from 0 to 1 - 2^-53: with 1 - y = 2^k m and √½ ≤ m < √2 it is 2 atanh((1 - m) / (1 + m)) - k ln 2. The argument is at most
/// 0.172, so that the series of atanh up to its 21st power leaves out less than the last digit. Without branches, so that several are computed at a time.
#[inline]
pub(crate) fn minus_ln_one_minus(y: f64) -> f64 {
    let whole = 1.0 - y;
    let above = whole.to_bits().wrapping_sub(HALF_ROOT);
    let k = ((above as i64) >> DIGITS) as f64;
    let m = f64::from_bits((above & ((1 << DIGITS) - 1)) + HALF_ROOT);
    // Where k is 0, y has the digits that 1 - y has lost.
    let less = if k == 0.0 { y } else { 1.0 - m };
    let s = less / (1.0 + m);
    let z = s * s;
    let mut series = 1.0 / 21.0;
    series = series * z + 1.0 / 19.0;
    series = series * z + 1.0 / 17.0;
    series = series * z + 1.0 / 15.0;
    series = series * z + 1.0 / 13.0;
    series = series * z + 1.0 / 11.0;
    series = series * z + 1.0 / 9.0;
    series = series * z + 1.0 / 7.0;
    series = series * z + 1.0 / 5.0;
    series = series * z + 1.0 / 3.0;
    2.0 * (s + s * z * series) - k * LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use crate::bounded::STEPS;

    fn is_near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() <= 6.0 * f64::EPSILON * wanted.abs()
    }

    #[test]
    fn they_are_right_to_a_few_units_of_the_last_digit() {
        let mut random = Random::new(5);
        for _ in 0..100_000 {
            let u = (random.next_u64() >> 11) as f64 / STEPS;
            for y in [u, u * 1e-6, u * 1e-200, (1.0 - u * 1e-9).min(1.0 - 1.0 / STEPS)] {
                let (found, wanted) = (minus_ln_one_minus(y), -(-y).ln_1p());
                assert!(is_near(found, wanted), "-ln(1 - {y}): {found}, not {wanted}");
            }
            for x in [-60.0 * u, -u, u, -u * 1e-7, 50.0 * u] {
                let (found, wanted) = (exp_minus_one(x), x.exp_m1());
                assert!(is_near(found, wanted), "exp({x}) - 1: {found}, not {wanted}");
            }
        }
        // Where the exponent of 1 - y changes, and at the ends.
        for step in -40..=40_i64 {
            let m = f64::from_bits(HALF_ROOT.wrapping_add_signed(step));
            assert!(is_near(minus_ln_one_minus(1.0 - m), -(m - 1.0).ln_1p()), "{m}");
        }
        assert_eq!([minus_ln_one_minus(0.0), exp_minus_one(0.0), exp_minus_one(-1e300)], [0.0, 0.0, -1.0]);
        let last = 1.0 - 1.0 / STEPS;
        assert!(is_near(minus_ln_one_minus(last), 53.0 * LN_2));
    }

    #[test]
    fn whole_numbers_are_the_nearest_ones() {
        for (number, wanted) in
            [(0.0, 0.0), (0.49, 0.0), (0.51, 1.0), (-2.6, -3.0), (1e13 + 0.75, 1e13 + 1.0)]
        {
            assert_eq!(nearest(number), wanted);
        }
    }
}
