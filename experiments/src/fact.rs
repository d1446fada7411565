//! What an experiment finds.

use crate::WhenExhausted;
use serde::Serialize;
use std::path::PathBuf;

/// Whether our figure agrees with the published one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "word", content = "reason")]
#[non_exhaustive]
pub enum Agreement {
    /// It does.
    Agrees,
    /// It does not; the note says why.
    Disagrees,
    /// This machine cannot show it, for this reason.
    NotMeasurable(String),
    /// It needs a privilege that is not there, for this reason and with this remedy.
    NotPermitted(String),
}

/// One published statement beside what we found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// Its number in the published order.
    pub number: u32,
    /// The statement.
    pub statement: String,
    /// Whether it must hold to the digit.
    pub exact: bool,
    /// The published figure.
    pub published: String,
    /// Ours.
    pub ours: String,
    /// Whether they agree.
    pub agreement: Agreement,
    /// What explains a difference, or how it was measured.
    pub note: String,
}

impl Fact {
    /// An exact fact: agreement is equality of the two texts.
    #[must_use]
    pub fn exact(number: u32, statement: &str, published: u64, ours: u64) -> Fact {
        let (published, ours) = (published.to_string(), ours.to_string());
        let agreement = if published == ours { Agreement::Agrees } else { Agreement::Disagrees };
        Fact {
            number,
            statement: statement.to_owned(),
            exact: true,
            published,
            ours,
            agreement,
            note: String::new(),
        }
    }

    /// A trend: agreement is what the experiment's own criterion says.
    #[must_use]
    pub fn trend(
        number: u32,
        statement: &str,
        published: &str,
        ours: String,
        agrees: bool,
        note: &str,
    ) -> Fact {
        Fact {
            number,
            statement: statement.to_owned(),
            exact: false,
            published: published.to_owned(),
            ours,
            agreement: if agrees { Agreement::Agrees } else { Agreement::Disagrees },
            note: note.to_owned(),
        }
    }

    /// A fact that this machine cannot show.
    #[must_use]
    pub fn not_measurable(number: u32, statement: &str, published: &str, reason: String) -> Fact {
        Fact {
            number,
            statement: statement.to_owned(),
            exact: false,
            published: published.to_owned(),
            ours: "-".to_owned(),
            agreement: Agreement::NotMeasurable(reason),
            note: String::new(),
        }
    }
}

/// What an experiment came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentReport {
    /// Always `horolog.experiment/1`.
    pub schema: &'static str,
    /// The experiment's name.
    pub id: String,
    /// The facts in the published order.
    pub facts: Vec<Fact>,
    /// Measured series, for plots: a name, the column names, the rows.
    pub series: Vec<Series>,
    /// What the reader must know.
    pub notes: Vec<String>,
    /// Why this machine did not allow a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl ExperimentReport {
    /// The report of experiment `id`, still empty.
    #[must_use]
    pub fn new(id: impl Into<String>) -> ExperimentReport {
        ExperimentReport {
            schema: "horolog.experiment/1",
            id: id.into(),
            facts: Vec::new(),
            series: Vec::new(),
            notes: Vec::new(),
            refused: None,
        }
    }

    /// Why this machine did not allow a part, whether it was told of the whole report or of a fact.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refused.as_deref().or_else(|| {
            self.facts.iter().find_map(|fact| match &fact.agreement {
                Agreement::NotPermitted(reason) => Some(reason.as_str()),
                _ => None,
            })
        })
    }

    /// Whether no fact disagrees.
    #[must_use]
    pub fn agrees(&self) -> bool {
        !self.facts.iter().any(|fact| fact.agreement == Agreement::Disagrees)
    }
}

/// A measured table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// The columns, units in their names.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<f64>>,
}

/// How an experiment is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Everything, however long.
    pub full: bool,
    /// Where result files go; none are written without it.
    pub out: Option<PathBuf>,
    /// Of an experiment that is simulated: the part of it that its page states for real, too. `full`: all for real.
    pub real: bool,
    /// The seed of everything drawn by chance; `None`: the experiment's own.
    pub seed: Option<u64>,
    /// Of the test bench of aperiodic service: what an exhausted server does; `None`: as the experiment's file says.
    pub when_exhausted: Option<WhenExhausted>,
}

/// Why an experiment could not be run at all.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExperimentError {
    message: String,
    not_permitted: bool,
}

impl ExperimentError {
    /// Something failed.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> ExperimentError {
        ExperimentError { message: message.into(), not_permitted: false }
    }

    /// The input is at fault.
    #[must_use]
    pub fn bad_input(message: impl Into<String>) -> ExperimentError {
        ExperimentError { message: message.into(), not_permitted: false }
    }

    /// This machine does not allow it.
    #[must_use]
    pub fn not_permitted(message: impl Into<String>) -> ExperimentError {
        ExperimentError { message: message.into(), not_permitted: true }
    }

    /// Whether this machine does not allow it.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        self.not_permitted
    }
}
