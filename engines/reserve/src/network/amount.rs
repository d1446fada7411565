//! How many bytes by when.

use horolog_time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// C bytes in every T, before the deadline D of each period: D ≤ T.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteAmount {
    /// C.
    pub bytes: u64,
    /// T.
    #[serde(rename = "period_ns")]
    pub period: Span,
    /// D, after the start of the period.
    #[serde(rename = "deadline_ns")]
    pub deadline: Span,
}

/// The largest C: the kernel's program counts a period in 32 bits.
pub const MOST_BYTES: u64 = u32::MAX as u64;
/// The shortest T: packets of 16 periods before are told from those of the present one.
pub const SHORTEST_PERIOD: Span = Span::from_ns(100_000);

impl ByteAmount {
    /// C bytes in every T, by its end.
    #[must_use]
    pub const fn implicit(bytes: u64, period: Span) -> ByteAmount {
        ByteAmount { bytes, period, deadline: period }
    }

    /// What is wrong with it, and the remedy: `None` where 0 < C ≤ [`MOST_BYTES`], [`SHORTEST_PERIOD`] ≤ T and 0 < D ≤ T.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        let ByteAmount { bytes, period, deadline } = *self;
        if bytes == 0 || bytes > MOST_BYTES {
            return Some(format!("{bytes} B are out of bounds: give 1 to {MOST_BYTES} B"));
        }
        if period < SHORTEST_PERIOD {
            return Some(format!("period {period} is too short: give {SHORTEST_PERIOD} at the least"));
        }
        if deadline.is_zero() || deadline > period {
            return Some(format!(
                "deadline {deadline} is not within period {period}: use 0 < deadline <= period"
            ));
        }
        None
    }
}

impl fmt::Display for ByteAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B / {}", self.bytes, self.period)?;
        if self.deadline == self.period { Ok(()) } else { write!(f, " by {}", self.deadline) }
    }
}

/// Why a text is no amount of bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseByteAmountError(String);

impl fmt::Display for ParseByteAmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseByteAmountError {}

impl FromStr for ByteAmount {
    type Err = ParseByteAmountError;

    /// `"4500 B / 4 ms"`, or `"4500 B / 4 ms by 2 ms"`; also `kB` and `MB`, of 1000 and 1000000 bytes.
    fn from_str(text: &str) -> Result<ByteAmount, ParseByteAmountError> {
        let span = |part: &str| {
            let part = part.trim();
            part.parse::<Span>().map_err(|error| ParseByteAmountError(format!("`{part}`: {error}")))
        };
        let (size, rest) = text.split_once('/').ok_or_else(|| {
            ParseByteAmountError(format!(
                "`{}` is not an amount of bytes: write \"4500 B / 4 ms\", or \"4500 B / 4 ms by 2 ms\" with a deadline",
                text.trim()
            ))
        })?;
        let (period, deadline) = match rest.split_once("by") {
            Some((period, deadline)) => (span(period)?, span(deadline)?),
            None => {
                let period = span(rest)?;
                (period, period)
            }
        };
        let amount = ByteAmount { bytes: bytes(size.trim())?, period, deadline };
        match amount.flaw() {
            Some(flaw) => Err(ParseByteAmountError(flaw)),
            None => Ok(amount),
        }
    }
}

/// A whole number and its unit.
fn bytes(text: &str) -> Result<u64, ParseByteAmountError> {
    let wrong = || {
        ParseByteAmountError(format!(
            "`{text}` is not a size: write a whole number and B, kB or MB, as \"4500 B\""
        ))
    };
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let factor = match text[at..].trim_start() {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..at].parse().map_err(|_| wrong())?;
    number.checked_mul(factor).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_reads_as_it_is_printed() {
        for text in ["4500 B / 4 ms", "4500 B / 4 ms by 2 ms", "1 B / 1 s", "4294967295 B / 100 us"] {
            assert_eq!(text.parse::<ByteAmount>().expect("an amount").to_string(), text);
        }
        assert_eq!("3 kB/4ms".parse::<ByteAmount>().expect("dense").to_string(), "3000 B / 4 ms");
        assert_eq!("2MB / 1 s".parse::<ByteAmount>().expect("dense").bytes, 2_000_000);
    }

    #[test]
    fn what_is_no_amount_is_told_with_its_form() {
        let text = |text: &str| text.parse::<ByteAmount>().expect_err("none").to_string();
        assert!(text("4500 B").contains("\"4500 B / 4 ms\""));
        assert!(text("4500 / 4 ms").contains("B, kB or MB"));
        assert!(text("4.5 kB / 4 ms").contains("whole number"));
        assert!(text("B / 4 ms").contains("whole number"));
        assert!(text("99999999999999999999 B / 4 ms").contains("not a size"));
        assert!(text("18446744073709551615 MB / 4 ms").contains("not a size"));
        assert!(text("4294967296 B / 4 ms").contains("out of bounds"));
        assert!(text("0 B / 4 ms").contains("out of bounds"));
        assert!(text("1 B / 99999 ns").contains("too short"));
        assert!(text("1 B / 4 ms by 5 ms").contains("within"));
        assert!(text("1 B / 4 ms by 0 ms").contains("within"));
        assert!(text("1 B / 4").starts_with("`4`"));
    }
}
