//! How much of a disk by when, as people write it.

use crate::admission::Reserve;
use horolog_time::{ParseSpanError, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// C.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Bytes, in operations of at most a chunk.
    Bytes(u64),
    /// Operations of at most a chunk each.
    Blocks(u64),
    /// Time of the disk: as many operations as go in when each takes its longest.
    #[serde(rename = "time_ns")]
    Time(Span),
}

/// C in every T, before the deadline D ≤ T of its release.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Amount {
    /// C.
    pub quantity: Quantity,
    /// T.
    #[serde(rename = "period_ns")]
    pub period: Span,
    /// D.
    #[serde(rename = "deadline_ns")]
    pub deadline: Span,
}

impl Amount {
    /// The reserve where operations have at most `chunk` bytes and take at most `longest_ns`. It starts at 0.
    ///
    /// # Errors
    /// Where no operation goes in, or the three values do not fit together.
    pub fn reserve(&self, chunk: u64, longest_ns: u64) -> Result<Reserve, AmountError> {
        let operations = match self.quantity {
            Quantity::Bytes(bytes) => bytes.div_ceil(chunk.max(1)),
            Quantity::Blocks(blocks) => blocks,
            Quantity::Time(time) => time.as_ns() / longest_ns.max(1),
        };
        let (period_ns, deadline_ns) = (self.period.as_ns(), self.deadline.as_ns());
        let reserve = Reserve { operations, longest_ns, period_ns, deadline_ns, start_ns: 0 };
        match (self.quantity, operations) {
            (Quantity::Time(time), 0) => Err(AmountError::Order(format!(
                "{time} of the disk is shorter than one operation, which takes up to {}: ask for so much at least",
                Span::from_ns(longest_ns)
            ))),
            _ => reserve.flaw().map_or(Ok(reserve), |flaw| Err(AmountError::Order(flaw))),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Bytes(bytes) => {
                let (factor, unit) = UNITS
                    .into_iter()
                    .rev()
                    .find(|(factor, _)| bytes % factor == 0 && *bytes > 0)
                    .unwrap_or(UNITS[0]);
                write!(f, "{} {unit}", bytes / factor)
            }
            Quantity::Blocks(1) => f.write_str("1 block"),
            Quantity::Blocks(blocks) => write!(f, "{blocks} blocks"),
            Quantity::Time(time) => write!(f, "{time}"),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.quantity, self.period)?;
        if self.deadline == self.period { Ok(()) } else { write!(f, " by {}", self.deadline) }
    }
}

/// Why a text is no amount, or an amount no reserve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AmountError {
    /// There is no `/` between a quantity and a period.
    Form(String),
    /// The quantity is none.
    Quantity(String),
    /// A duration in it is none.
    Duration(String, ParseSpanError),
    /// The values do not fit together.
    Order(String),
}

impl fmt::Display for AmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AmountError::Form(text) => write!(
                f,
                "`{text}` is not an amount: write \"64 KiB / 40 ms\", or \"64 KiB / 40 ms by 20 ms\" with a deadline"
            ),
            AmountError::Quantity(text) => write!(
                f,
                "`{text}` is not an amount of a disk: write bytes (\"64 KiB\", \"1 MiB\", \"512 B\"), \"4 blocks\", or time of the disk (\"5 ms\")"
            ),
            AmountError::Duration(text, error) => write!(f, "`{text}`: {error}"),
            AmountError::Order(flaw) => f.write_str(flaw),
        }
    }
}

impl std::error::Error for AmountError {}

const UNITS: [(u64, &str); 4] = [(1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB")];

impl FromStr for Quantity {
    type Err = AmountError;

    /// `"64 KiB"`, `"4 blocks"` or `"5 ms"`.
    fn from_str(text: &str) -> Result<Quantity, AmountError> {
        let text = text.trim();
        let wrong = || AmountError::Quantity(text.to_owned());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = (&text[..digits], text[digits..].trim());
        if let Some((factor, _)) = UNITS.iter().find(|(_, name)| *name == unit) {
            let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor));
            return bytes.filter(|&bytes| bytes > 0).map(Quantity::Bytes).ok_or_else(wrong);
        }
        if matches!(unit, "block" | "blocks") {
            return number.parse().ok().filter(|&blocks| blocks > 0).map(Quantity::Blocks).ok_or_else(wrong);
        }
        text.parse::<Span>().ok().filter(|time| !time.is_zero()).map(Quantity::Time).ok_or_else(wrong)
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    /// `"64 KiB / 40 ms"`, or `"64 KiB / 40 ms by 20 ms"`.
    fn from_str(text: &str) -> Result<Amount, AmountError> {
        let span = |part: &str| {
            let part = part.trim();
            part.parse::<Span>().map_err(|error| AmountError::Duration(part.to_owned(), error))
        };
        let (quantity, rest) =
            text.split_once('/').ok_or_else(|| AmountError::Form(text.trim().to_owned()))?;
        let (period, deadline) = match rest.split_once("by") {
            Some((period, deadline)) => (span(period)?, span(deadline)?),
            None => {
                let period = span(rest)?;
                (period, period)
            }
        };
        if deadline.is_zero() || deadline > period {
            return Err(AmountError::Order(format!(
                "deadline {deadline} and period {period}: use 0 < deadline <= period"
            )));
        }
        Ok(Amount { quantity: quantity.parse()?, period, deadline })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_reads_as_it_is_printed() {
        for text in
            ["64 KiB / 40 ms", "64 KiB / 40 ms by 20 ms", "1 block / 1 s", "5 ms / 40 ms", "513 B / 1 us"]
        {
            assert_eq!(text.parse::<Amount>().expect("an amount").to_string(), text);
        }
        assert_eq!("2048B/40ms".parse::<Amount>().expect("dense").to_string(), "2 KiB / 40 ms");
    }

    #[test]
    fn what_is_no_amount_is_told_with_its_form() {
        let text = |text: &str| text.parse::<Amount>().expect_err("none").to_string();
        assert!(text("64 KiB").contains("\"64 KiB / 40 ms\""));
        for wrong in [
            "64 kb / 1 s",
            "0 B / 1 s",
            "-1 B / 1 s",
            "99999999999999999999 B / 1 s",
            "20000000000 GiB / 1 s",
            "/ 1 s",
            "é / 1 s",
        ] {
            assert!(text(wrong).contains("is not an amount of a disk"), "{wrong}: {}", text(wrong));
        }
        assert!(text("1 B / 40").starts_with("`40`: "));
        assert!(text("1 B / 10 ms by 11 ms").contains("deadline <= period"));
        assert!(text("1 B / 10 ms by 0 ms").contains("0 < deadline"));
    }

    #[test]
    fn operations_are_whole() {
        let operations = |text: &str| {
            text.parse::<Amount>().expect("an amount").reserve(16_384, 2_000_000).map(|one| one.operations)
        };
        assert_eq!(operations("64 KiB / 40 ms"), Ok(4));
        assert_eq!(operations("65537 B / 40 ms"), Ok(5));
        assert_eq!(operations("3 blocks / 40 ms"), Ok(3));
        assert_eq!(operations("3999999 ns / 40 ms"), Ok(1));
        assert!(operations("1999999 ns / 40 ms").expect_err("none").to_string().contains("2 ms"));
        assert_eq!(operations("20 blocks / 40 ms"), Ok(20));
        assert!(
            operations("21 blocks / 40 ms").expect_err("too many").to_string().contains("do not go into")
        );
    }
}
