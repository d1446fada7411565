//! How much by when.

use horolog_time::{ParseSpanError, Span};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// C in every T, before the deadline D of each period: C ≤ D ≤ T.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// C, ns in JSON.
    #[serde(rename = "budget_ns")]
    pub budget: Span,
    /// T.
    #[serde(rename = "period_ns")]
    pub period: Span,
    /// D, after the start of the period.
    #[serde(rename = "deadline_ns")]
    pub deadline: Span,
}

impl Amount {
    /// C in every T, by its end.
    #[must_use]
    pub const fn implicit(budget: Span, period: Span) -> Amount {
        Amount { budget, period, deadline: period }
    }

    /// What is wrong with it, and the remedy: `None` where 0 < C ≤ D ≤ T.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        let Amount { budget, period, deadline } = *self;
        if budget.is_zero() {
            return Some("the budget is zero: ask for more".to_owned());
        }
        (budget > deadline || deadline > period).then(|| {
            format!(
                "budget {budget}, deadline {deadline} and period {period} are not in ascending order: use budget <= \
                 deadline <= period"
            )
        })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", self.budget, self.period)?;
        if self.deadline == self.period { Ok(()) } else { write!(f, " by {}", self.deadline) }
    }
}

/// Why a text is no amount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParseAmountError {
    /// There is no `/` between a budget and a period.
    Form(String),
    /// A duration in it is none.
    Duration(String, ParseSpanError),
    /// The three values do not fit together.
    Order(String),
}

impl fmt::Display for ParseAmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseAmountError::Form(text) => {
                write!(
                    f,
                    "`{text}` is not an amount: write \"2 ms / 10 ms\", or \"2 ms / 10 ms by 5 ms\" with a deadline"
                )
            }
            ParseAmountError::Duration(text, error) => write!(f, "`{text}`: {error}"),
            ParseAmountError::Order(flaw) => f.write_str(flaw),
        }
    }
}

impl std::error::Error for ParseAmountError {}

impl FromStr for Amount {
    type Err = ParseAmountError;

    /// `"2 ms / 10 ms"`, or `"2 ms / 10 ms by 5 ms"`.
    fn from_str(text: &str) -> Result<Amount, ParseAmountError> {
        let span = |part: &str| {
            let part = part.trim();
            part.parse::<Span>().map_err(|error| ParseAmountError::Duration(part.to_owned(), error))
        };
        let (budget, rest) =
            text.split_once('/').ok_or_else(|| ParseAmountError::Form(text.trim().to_owned()))?;
        let (period, deadline) = match rest.split_once("by") {
            Some((period, deadline)) => (span(period)?, span(deadline)?),
            None => {
                let period = span(rest)?;
                (period, period)
            }
        };
        let amount = Amount { budget: span(budget)?, period, deadline };
        match amount.flaw() {
            Some(flaw) => Err(ParseAmountError::Order(flaw)),
            None => Ok(amount),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_reads_as_it_is_printed() {
        for text in ["2 ms / 10 ms", "2 ms / 10 ms by 5 ms", "1.5 us / 1 s"] {
            assert_eq!(text.parse::<Amount>().expect("an amount").to_string(), text);
        }
        assert_eq!("2ms/10ms".parse::<Amount>().expect("dense").to_string(), "2 ms / 10 ms");
    }

    #[test]
    fn what_is_no_amount_is_told_with_its_form() {
        let text = |text: &str| text.parse::<Amount>().expect_err("none").to_string();
        assert!(text("2 ms").contains("\"2 ms / 10 ms\""));
        assert!(text("2 / 10 ms").starts_with("`2`: "));
        assert!(text("0 ms / 10 ms").contains("zero"));
        assert!(text("6 ms / 10 ms by 5 ms").contains("ascending"));
        assert!(text("2 ms / 10 ms by 11 ms").contains("ascending"));
    }
}
