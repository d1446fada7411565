//! Decimal numbers of other tools to and from durations, exactly: nothing is rounded.

use horolog_time::Span;

/// Why a number is not a duration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NotATime {
    /// No decimal number.
    NotANumber,
    /// Below zero.
    Negative,
    /// Above 2^64 - 1 ns.
    TooLong,
    /// Not a whole number of nanoseconds; the ones below and above.
    Between(Span, Span),
}

impl NotATime {
    /// What is wrong and what to do, of a value that is called `what`.
    pub(crate) fn words(&self, what: &str, text: &str) -> (String, String) {
        match self {
            NotATime::NotANumber => {
                (format!("{what} `{text}` is not a number"), "write a decimal number".to_owned())
            }
            NotATime::Negative => (format!("{what} {text} is negative"), "write zero or more".to_owned()),
            NotATime::TooLong => (
                format!("{what} {text} is longer than 584 years"),
                "give a smaller number, or a smaller unit".to_owned(),
            ),
            NotATime::Between(below, above) => (
                format!("{what} {text} is not a whole number of nanoseconds"),
                format!(
                    "write {below}, which is safe for a period or a deadline, or {above}, which is safe for an execution time"
                ),
            ),
        }
    }
}

/// `text` times `unit`, where that is a whole number of nanoseconds.
pub(crate) fn time(text: &str, unit: Span) -> Result<Span, NotATime> {
    let text = text.trim();
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, exponent.parse::<i32>().ok().filter(|e| e.abs() < 1_000).ok_or(NotATime::NotANumber)?)
        }
        None => (unsigned, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(part.bytes());
    if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_digit()) {
        return Err(NotATime::NotANumber);
    }
    let part = part.trim_end_matches('0');
    let value: String = whole.chars().chain(part.chars()).collect();
    let value = value.trim_start_matches('0');
    if value.is_empty() {
        return Ok(Span::ZERO);
    }
    if is_negative {
        return Err(NotATime::Negative);
    }
    // value * 10^power units.
    let power = i64::from(exponent) - part.len() as i64;
    scaled(value, power, unit)
}

fn scaled(value: &str, power: i64, unit: Span) -> Result<Span, NotATime> {
    // 2^64 ns has 20 digits, so that more before the point are too long, and what is left behind 25 places is part of a nanosecond.
    if value.len() as i64 + power > 20 {
        return Err(NotATime::TooLong);
    }
    if value.len() > 30 {
        return Err(NotATime::NotANumber);
    }
    let value: u128 = value.parse().map_err(|_| NotATime::NotANumber)?;
    let unit = u128::from(unit.as_ns());
    let fits = |ns: u128| u64::try_from(ns).map(Span::from_ns).map_err(|_| NotATime::TooLong);
    if power >= 0 {
        let ns = 10_u128.checked_pow(power as u32).and_then(|ten| value.checked_mul(ten));
        return fits(ns.and_then(|v| v.checked_mul(unit)).ok_or(NotATime::TooLong)?);
    }
    let Some(divisor) = 10_u128.checked_pow(u32::try_from(-power).unwrap_or(u32::MAX)) else {
        return Err(NotATime::Between(Span::ZERO, Span::from_ns(1)));
    };
    // value = whole * divisor + part, so that value * unit / divisor does not overflow.
    let (whole, part) = (value / divisor, value % divisor);
    let (Some(whole), Some(part)) = (whole.checked_mul(unit), part.checked_mul(unit)) else {
        return Err(NotATime::TooLong);
    };
    let (below, rest) = (whole + part / divisor, part % divisor);
    if rest == 0 {
        return fits(below);
    }
    Err(NotATime::Between(fits(below)?, fits(below + 1)?))
}

/// How many units a duration is; `None` where it is not a whole number of them.
pub(crate) fn units(span: Span, unit: Span) -> Option<u64> {
    (!unit.is_zero() && span.as_ns().is_multiple_of(unit.as_ns())).then(|| span.as_ns() / unit.as_ns())
}

/// A duration as a decimal number of milliseconds.
pub(crate) fn milliseconds(span: Span) -> String {
    let (whole, part) = (span.as_ns() / 1_000_000, span.as_ns() % 1_000_000);
    let part = format!("{part:06}");
    let part = part.trim_end_matches('0');
    format!("{whole}.{}", if part.is_empty() { "0" } else { part })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_ns(1_000_000);

    #[test]
    fn numbers_become_whole_nanoseconds_or_none() {
        let of = |text: &str| time(text, MS).map(Span::as_ns);
        assert_eq!(of("2"), Ok(2_000_000));
        assert_eq!(of(" 1.5 "), Ok(1_500_000));
        assert_eq!(of("0.000001"), Ok(1));
        assert_eq!(of("1.5E-3"), Ok(1_500));
        assert_eq!(of("1.00E+03"), Ok(1_000_000_000));
        assert_eq!(of("+0.0"), Ok(0));
        assert_eq!(of("-0.0"), Ok(0));
        assert_eq!(of("00012.0"), Ok(12_000_000));
        assert_eq!(of("0.0000015"), Err(NotATime::Between(Span::from_ns(1), Span::from_ns(2))));
        assert_eq!(of("1e-30"), Err(NotATime::Between(Span::ZERO, Span::from_ns(1))));
        assert_eq!(of("1e-900"), Err(NotATime::Between(Span::ZERO, Span::from_ns(1))));
        assert_eq!(of("-1"), Err(NotATime::Negative));
        for text in ["", ".", "1,5", "0x1", "1e", "1e1.5", "NaN", "inf", "1e99999", "--1", "1 2"] {
            assert_eq!(of(text), Err(NotATime::NotANumber), "{text}");
        }
    }

    #[test]
    fn the_longest_time_fits_and_one_more_does_not() {
        let of = |text: &str| time(text, Span::from_ns(1)).map(Span::as_ns);
        assert_eq!(of("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(of("18446744073709551616"), Err(NotATime::TooLong));
        assert_eq!(of("1e400"), Err(NotATime::TooLong));
        assert_eq!(time("18446744073709.551615", MS).map(Span::as_ns), Ok(u64::MAX));
        assert_eq!(time("18446744073709.551616", MS), Err(NotATime::TooLong));
    }

    #[test]
    fn what_is_written_reads_back() {
        for ns in [0, 1, 999_999, 1_000_000, 1_500_000, 10_000_000, u64::MAX] {
            let span = Span::from_ns(ns);
            assert_eq!(time(&milliseconds(span), MS), Ok(span));
        }
        assert_eq!(milliseconds(Span::from_ns(1_500_000)), "1.5");
        assert_eq!(milliseconds(Span::from_ns(3_000_000)), "3.0");
        assert_eq!(units(Span::from_ns(3_000), Span::from_ns(1_000)), Some(3));
        assert_eq!(units(Span::from_ns(3_001), Span::from_ns(1_000)), None);
    }
}
