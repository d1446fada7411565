//! A length of time in whole nanoseconds, and its text form with a unit.

use std::fmt;
use std::str::FromStr;

/// A length of time in whole nanoseconds.
///
/// ```
/// use horolog_time::Span;
/// let wcet: Span = "1.5 ms".parse().unwrap();
/// assert_eq!(wcet, Span::from_ns(1_500_000));
/// assert_eq!(wcet.to_string(), "1.5 ms");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[must_use]
pub struct Span(u64);

/// The units that a duration may carry, largest first, with their length in nanoseconds.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest representable span, about 584 years.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns)
    }

    /// The least span of two significant digits that is not below this one, for people to read; whole nanoseconds below 100 ns, and itself
    /// where there is no such span.
    pub fn rounded_up(self) -> Span {
        let mut step = 1_u64;
        while self.0 / step >= 100 {
            step *= 10;
        }
        self.0.div_ceil(step).checked_mul(step).map_or(self, Span)
    }

    /// A span of `us` microseconds; `None` on overflow.
    #[must_use]
    pub const fn from_us(us: u64) -> Option<Span> {
        match us.checked_mul(1_000) {
            Some(ns) => Some(Span(ns)),
            None => None,
        }
    }

    /// A span of `ms` milliseconds; `None` on overflow.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Option<Span> {
        match ms.checked_mul(1_000_000) {
            Some(ns) => Some(Span(ns)),
            None => None,
        }
    }

    /// The length in nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The length in seconds, for statistics and display only.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether this is no time at all.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum; `None` on overflow.
    #[must_use]
    pub const fn checked_add(self, other: Span) -> Option<Span> {
        match self.0.checked_add(other.0) {
            Some(ns) => Some(Span(ns)),
            None => None,
        }
    }

    /// The difference; `None` where `other` is longer.
    #[must_use]
    pub const fn checked_sub(self, other: Span) -> Option<Span> {
        match self.0.checked_sub(other.0) {
            Some(ns) => Some(Span(ns)),
            None => None,
        }
    }

    /// The difference, or zero where `other` is longer: for "time left" readings, never for checks.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// `self` times `factor`; `None` on overflow.
    #[must_use]
    pub const fn checked_mul(self, factor: u64) -> Option<Span> {
        match self.0.checked_mul(factor) {
            Some(ns) => Some(Span(ns)),
            None => None,
        }
    }

    /// How many whole `unit`s fit; `None` where `unit` is zero.
    #[must_use]
    pub const fn div_floor(self, unit: Span) -> Option<u64> {
        self.0.checked_div(unit.0)
    }

    /// How many `unit`s cover the span; `None` where `unit` is zero.
    #[must_use]
    pub const fn div_ceil(self, unit: Span) -> Option<u64> {
        if unit.0 == 0 { None } else { Some(self.0.div_ceil(unit.0)) }
    }

    /// The span for people: four significant digits in the largest unit that it reaches. [`Display`](fmt::Display) is exact.
    ///
    /// ```
    /// use horolog_time::Span;
    /// let text = |ns| Span::from_ns(ns).rounded();
    /// assert_eq!([text(7), text(1_500_000), text(2_000_000)], ["7 ns", "1.5 ms", "2 ms"]);
    /// assert_eq!([text(12_345_678), text(100_000_000)], ["12.35 ms", "100 ms"]);
    /// ```
    #[must_use]
    pub fn rounded(self) -> String {
        let (value, unit) = match self.0 {
            ns @ 0..1_000 => return format!("{ns} ns"),
            ns @ 1_000..1_000_000 => (ns as f64 / 1e3, "us"),
            ns @ 1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
            ns => (ns as f64 / 1e9, "s"),
        };
        let decimals = if value < 10.0 {
            3
        } else if value < 100.0 {
            2
        } else {
            1
        };
        let text = format!("{value:.decimals$}");
        format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Display for Span {
    /// Prints the exact decimal in the largest unit that the span reaches, as [`Span::rounded`] does with four digits. The text parses
    /// back to the same span.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0 ns");
        }
        for (name, length) in UNITS {
            let whole = self.0 / length;
            let rest = self.0 % length;
            if whole > 0 && rest == 0 {
                return f.pad(&format!("{whole} {name}"));
            }
            if whole > 0 {
                let places = length.ilog10() as usize;
                let decimals = format!("{rest:0places$}");
                return f.pad(&format!("{whole}.{} {name}", decimals.trim_end_matches('0')));
            }
        }
        f.pad(&format!("{} ns", self.0))
    }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseSpanError {
    /// No number at the start, as in `"ms"` or `"-3 ms"`.
    NotANumber,
    /// A number without a unit, as in `"15"`.
    MissingUnit,
    /// An unknown unit, as in `"15 min"`.
    UnknownUnit(String),
    /// A value that is not a whole number of nanoseconds, as in `"0.5 ns"`.
    NotWhole,
    /// More than 2^64 - 1 ns.
    TooLong,
}

impl fmt::Display for ParseSpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber => {
                f.write_str("not a duration: write a decimal number and a unit, as in \"1.5 ms\"")
            }
            Self::MissingUnit => f.write_str("the unit is missing: add ns, us, ms or s"),
            Self::UnknownUnit(unit) => write!(f, "unknown unit `{unit}`: use ns, us, ms or s"),
            Self::NotWhole => f.write_str("not a whole number of nanoseconds: round it"),
            Self::TooLong => f.write_str("longer than 2^64 - 1 ns (584 years): use a smaller value"),
        }
    }
}

impl std::error::Error for ParseSpanError {}

impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Span, ParseSpanError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim());
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
        if whole.is_empty() || whole.starts_with('_') || !all_digits(whole) || !all_digits(decimals) {
            return Err(ParseSpanError::NotANumber);
        }
        if number.ends_with('.') {
            return Err(ParseSpanError::NotANumber);
        }
        let length = match unit {
            "" => return Err(ParseSpanError::MissingUnit),
            "s" => 1_000_000_000_u64,
            "ms" => 1_000_000,
            "us" | "µs" | "μs" => 1_000,
            "ns" => 1,
            other => return Err(ParseSpanError::UnknownUnit(other.to_owned())),
        };
        decimal_ns(whole, decimals, length)
    }
}

/// The exact value of `whole.decimals` units of `length` nanoseconds.
fn decimal_ns(whole: &str, decimals: &str, length: u64) -> Result<Span, ParseSpanError> {
    let mut ns: u64 = 0;
    for digit in whole.bytes().filter(u8::is_ascii_digit) {
        ns = ns
            .checked_mul(10)
            .and_then(|n| n.checked_add(u64::from(digit - b'0')))
            .ok_or(ParseSpanError::TooLong)?;
    }
    ns = ns.checked_mul(length).ok_or(ParseSpanError::TooLong)?;
    let mut place = length;
    for digit in decimals.bytes().filter(u8::is_ascii_digit) {
        let digit = u64::from(digit - b'0');
        if !place.is_multiple_of(10) {
            // Below a nanosecond only zeros are left without a loss.
            if digit != 0 {
                return Err(ParseSpanError::NotWhole);
            }
            continue;
        }
        place /= 10;
        ns = ns.checked_add(digit * place).ok_or(ParseSpanError::TooLong)?;
    }
    Ok(Span(ns))
}

impl serde::Serialize for Span {
    /// Serialises the nanoseconds as an integer: the field's name carries the unit.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        u64::deserialize(deserializer).map(Span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_up_to_two_digits() {
        for (ns, rounded) in
            [(0, 0), (1, 1), (99, 99), (100, 100), (101, 110), (2_347, 2_400), (99_001, 100_000)]
        {
            assert_eq!(Span::from_ns(ns).rounded_up().as_ns(), rounded, "{ns}");
        }
        assert_eq!(Span::MAX.rounded_up(), Span::MAX);
    }

    fn parse(text: &str) -> Result<u64, ParseSpanError> {
        text.parse::<Span>().map(Span::as_ns)
    }

    #[test]
    fn reads_every_unit_exactly() {
        assert_eq!(parse("7 ns"), Ok(7));
        assert_eq!(parse("583.3 us"), Ok(583_300));
        assert_eq!(parse("583.3µs"), Ok(583_300));
        assert_eq!(parse("1.5 ms"), Ok(1_500_000));
        assert_eq!(parse("0.000000001 s"), Ok(1));
        assert_eq!(parse("1.50000000000 ns"), Err(ParseSpanError::NotWhole));
        assert_eq!(parse("1.0 ns"), Ok(1));
        assert_eq!(parse("18446744073709551615 ns"), Ok(u64::MAX));
    }

    #[test]
    fn refuses_what_is_no_duration() {
        assert_eq!(parse("15"), Err(ParseSpanError::MissingUnit));
        assert_eq!(parse("15 min"), Err(ParseSpanError::UnknownUnit("min".into())));
        assert_eq!(parse("-3 ms"), Err(ParseSpanError::NotANumber));
        assert_eq!(parse("1. ms"), Err(ParseSpanError::NotANumber));
        assert_eq!(parse("1.2.3 ms"), Err(ParseSpanError::NotANumber));
        assert_eq!(parse(""), Err(ParseSpanError::NotANumber));
        assert_eq!(parse("18446744073709551616 ns"), Err(ParseSpanError::TooLong));
        assert_eq!(parse("18446744074 s"), Err(ParseSpanError::TooLong));
    }

    #[test]
    fn text_parses_back_to_the_same_span() {
        let mut ns = 1_u64;
        for step in 0..2_000_u64 {
            ns = ns.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step) >> (step % 48);
            let span = Span::from_ns(ns);
            assert_eq!(span.to_string().parse(), Ok(span), "{span}");
        }
        assert_eq!(Span::from_ns(1_500_000).to_string(), "1.5 ms");
        assert_eq!(Span::from_ns(1_000_001).to_string(), "1.000001 ms");
        assert_eq!(Span::from_ns(1_419_873).to_string(), "1.419873 ms");
        assert_eq!(Span::MAX.to_string(), "18446744073.709551615 s");
        assert_eq!(Span::from_ns(2_000_000_010).to_string(), "2.00000001 s");
        assert_eq!(Span::ZERO.to_string(), "0 ns");
    }
}
