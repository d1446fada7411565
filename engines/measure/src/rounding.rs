//! Values that people read.

use horolog_time::Span;

/// The least number of two significant digits that is not below `span` (whole nanoseconds below 100 ns).
pub(crate) fn round_up(span: Span) -> Span {
    let mut step = 1_u64;
    while span.as_ns() / step >= 100 {
        step *= 10;
    }
    let rounded = span.as_ns().div_ceil(step).checked_mul(step);
    // Above 1.8e19 ns there is no rounder number; the span itself is right as well.
    rounded.map_or(span, Span::from_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_up_to_two_digits() {
        for (ns, rounded) in
            [(0, 0), (1, 1), (99, 99), (100, 100), (101, 110), (2_347, 2_400), (99_001, 100_000)]
        {
            assert_eq!(round_up(Span::from_ns(ns)).as_ns(), rounded, "{ns}");
        }
        assert!(round_up(Span::MAX) >= Span::from_ns(u64::MAX / 100 * 99));
    }
}
