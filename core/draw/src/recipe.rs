//! A batch in words, as files and Python name it.

use crate::{Batch, BatchDeadlines, Bounds, Deadlines, Method, Periods};
use serde::Serialize;

/// Words of [`BatchRecipe::periods`].
pub const PERIODS: [&str; 3] = ["log-uniform", "harmonic", "automotive"];
/// Words of [`BatchRecipe::deadlines`].
pub const DEADLINES: [&str; 3] = ["implicit", "constrained", "arbitrary"];

/// What sets to draw, in words and numbers that are not checked yet.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BatchRecipe {
    /// Tasks of each set.
    pub tasks: usize,
    /// Their total utilisation.
    pub utilisation: f64,
    /// [`Method::word`].
    pub method: String,
    /// One of [`PERIODS`].
    pub periods: String,
    /// The shortest period, ns.
    pub shortest_period_ns: u64,
    /// The longest, ns.
    pub longest_period_ns: u64,
    /// Log-uniform periods are multiples of this, ns.
    pub granularity_ns: u64,
    /// One of [`DEADLINES`].
    pub deadlines: String,
    /// Constrained: the share of T - C that a deadline has at least.
    pub least: f64,
    /// Arbitrary: the multiple of the period up to which deadlines lie.
    pub factor: f64,
}

impl Default for BatchRecipe {
    fn default() -> BatchRecipe {
        BatchRecipe {
            tasks: 10,
            utilisation: 0.8,
            method: Method::UuniFastDiscard.word().to_owned(),
            periods: PERIODS[0].to_owned(),
            shortest_period_ns: 10_000_000,
            longest_period_ns: 1_000_000_000,
            granularity_ns: 1,
            deadlines: DEADLINES[0].to_owned(),
            least: 0.0,
            factor: 2.0,
        }
    }
}

impl BatchRecipe {
    /// The batch of this seed.
    ///
    /// # Errors
    /// What is wrong, the argument first.
    ///
    /// ```
    /// use horolog_draw::BatchRecipe;
    /// assert_eq!(BatchRecipe::default().batch(7).map(|batch| batch.seed), Ok(7));
    /// let wrong = BatchRecipe { periods: "weekly".to_owned(), ..BatchRecipe::default() };
    /// assert!(wrong.batch(7).is_err_and(|flaw| flaw.starts_with("periods: ")));
    /// ```
    pub fn batch(&self, seed: u64) -> Result<Batch, String> {
        self.within(seed, None)
    }

    /// The same with bounds of the utilisations.
    ///
    /// # Errors
    /// As [`BatchRecipe::batch`], and where the method takes no bounds.
    pub fn within(&self, seed: u64, bounds: Option<Bounds>) -> Result<Batch, String> {
        let (shortest, longest) = (self.shortest_period_ns, self.longest_period_ns);
        let periods = match self.periods.as_str() {
            "log-uniform" => Periods::LogUniform { shortest, longest, granularity: self.granularity_ns },
            "harmonic" => Periods::Harmonic { shortest, longest },
            "automotive" => Periods::Automotive,
            word => return Err(unknown("periods", word, &PERIODS)),
        };
        let deadlines = match self.deadlines.as_str() {
            "implicit" => BatchDeadlines::UpToPeriod(Deadlines::Implicit),
            "constrained" => {
                let least_ppm = ppm("least", self.least, 1.0)? as u32;
                BatchDeadlines::UpToPeriod(Deadlines::Constrained { least_ppm })
            }
            "arbitrary" => BatchDeadlines::Arbitrary { factor_ppm: ppm("factor", self.factor, 100.0)? },
            word => return Err(unknown("deadlines", word, &DEADLINES)),
        };
        let method = method_of(&self.method)?;
        let (tasks, utilisation) = (self.tasks, self.utilisation);
        let batch = Batch { tasks, utilisation, method, bounds, periods, deadlines, seed };
        batch.flaw().map_or(Ok(batch), Err)
    }
}

/// The method of this name.
///
/// # Errors
/// In words, the argument first.
pub fn method_of(word: &str) -> Result<Method, String> {
    Method::of_word(word).ok_or_else(|| unknown("method", word, &Method::ALL.map(Method::word)))
}

fn unknown(argument: &str, word: &str, known: &[&str]) -> String {
    format!("{argument}: `{word}` is not one of {}", known.join(", "))
}

fn ppm(argument: &str, value: f64, most: f64) -> Result<u64, String> {
    if value.is_finite() && (0.0..=most).contains(&value) {
        Ok((value * 1e6).round() as u64)
    } else {
        Err(format!("{argument}: {value} is not from 0 to {most}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_its_batch_and_what_is_wrong_is_named() {
        let recipe = BatchRecipe::default;
        for periods in PERIODS {
            for deadlines in DEADLINES {
                let words =
                    BatchRecipe { periods: periods.to_owned(), deadlines: deadlines.to_owned(), ..recipe() };
                assert!(words.batch(1).is_ok(), "{periods} {deadlines}");
            }
        }
        let (arbitrary, constrained) = ("arbitrary".to_owned(), "constrained".to_owned());
        for (wrong, argument) in [
            (BatchRecipe { tasks: 0, ..recipe() }, "tasks: "),
            (BatchRecipe { utilisation: 10.5, ..recipe() }, "utilisation: "),
            (BatchRecipe { method: "uniform".to_owned(), ..recipe() }, "method: "),
            (BatchRecipe { deadlines: "soft".to_owned(), ..recipe() }, "deadlines: "),
            (BatchRecipe { longest_period_ns: 1, ..recipe() }, "longest_period: "),
            (BatchRecipe { deadlines: constrained.clone(), least: 1.000_001, ..recipe() }, "least: "),
            (BatchRecipe { deadlines: constrained, least: f64::NAN, ..recipe() }, "least: "),
            (BatchRecipe { deadlines: arbitrary.clone(), factor: 100.000_001, ..recipe() }, "factor: "),
            (BatchRecipe { deadlines: arbitrary, factor: 0.0, ..recipe() }, "factor: "),
        ] {
            let flaw = wrong.batch(1).expect_err("wrong");
            assert!(flaw.starts_with(argument), "{flaw}");
        }
    }
}
