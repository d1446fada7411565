//! What an experiment finds.

use crate::WhenExhausted;
use horolog_model::Diagnostics;
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
    /// The seeds do not tell, for this reason.
    Undecided(String),
    /// This machine cannot show it, for this reason.
    NotMeasurable(String),
    /// It needs a privilege that is not there, for this reason and with this remedy.
    NotPermitted(String),
}

/// The answers to a statement over several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverSeeds {
    /// How many.
    pub seeds: u64,
    /// With how many of them alone it agrees.
    pub agree: u64,
    /// The values that all have to be above zero for the statement to be right.
    pub values: usize,
    /// Of the one that decides the interval of 95 % confidence of its mean over the seeds.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// One published statement beside what we found; or a check of an experiment of one's own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// Its number in the experiment's list of facts; none where nothing was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Where the source has it; empty where nothing was published.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub place: &'static str,
    /// The statement.
    pub statement: String,
    /// Whether it must hold to the digit.
    pub exact: bool,
    /// The published figure; none where nothing was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Ours.
    pub ours: String,
    /// Whether they agree.
    pub agreement: Agreement,
    /// What explains a difference, or how it was measured.
    pub note: String,
    /// How it comes out over several seeds, where it was judged by several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<OverSeeds>,
}

impl Fact {
    /// An exact fact: agreement is equality of the two texts.
    #[must_use]
    pub fn exact(number: u32, statement: &str, published: u64, ours: u64) -> Fact {
        let (published, ours) = (published.to_string(), ours.to_string());
        let agreement = if published == ours { Agreement::Agrees } else { Agreement::Disagrees };
        Fact { exact: true, ..Fact::new(number, statement, &published, ours, agreement) }
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
        let agreement = if agrees { Agreement::Agrees } else { Agreement::Disagrees };
        Fact { note: note.to_owned(), ..Fact::new(number, statement, published, ours, agreement) }
    }

    /// A fact that this machine cannot show.
    #[must_use]
    pub fn not_measurable(number: u32, statement: &str, published: &str, reason: String) -> Fact {
        Fact::new(number, statement, published, "-".to_owned(), Agreement::NotMeasurable(reason))
    }

    /// A fact with nothing to add.
    pub(crate) fn new(
        number: u32,
        statement: &str,
        published: &str,
        ours: String,
        agreement: Agreement,
    ) -> Fact {
        Fact {
            number: Some(number),
            place: "",
            statement: statement.to_owned(),
            exact: false,
            published: Some(published.to_owned()),
            ours,
            agreement,
            note: String::new(),
            seeds: None,
        }
    }

    /// The same check of an experiment of one's own.
    #[must_use]
    pub fn unpublished(self) -> Fact {
        Fact { number: None, published: None, ..self }
    }
}

/// What an experiment came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentReport {
    /// Always `horolog.experiment/1`.
    pub schema: &'static str,
    /// The experiment's name.
    pub id: String,
    /// The version of horolog.
    pub version: &'static str,
    /// Where it was published: a key of docs/references.bib; none for one of a user's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'static str>,
    /// The seed of what was drawn by chance; none where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many facts agree and how many do not.
    pub counts: Counts,
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
            version: env!("CARGO_PKG_VERSION"),
            source: None,
            seed: None,
            counts: Counts::default(),
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

    /// The same with its source, and where it has each fact.
    pub(crate) fn of(mut self, source: &'static str, facts: &[Listed]) -> ExperimentReport {
        self.source = Some(source);
        for fact in &mut self.facts {
            let listed = facts.iter().find(|listed| Some(listed.number) == fact.number);
            fact.place = listed.map_or("", |listed| listed.place);
        }
        self.counted()
    }

    /// The same with the facts counted.
    pub(crate) fn counted(mut self) -> ExperimentReport {
        self.counts = Counts::of(&self.facts);
        self
    }

    /// Whether no fact disagrees.
    #[must_use]
    pub fn agrees(&self) -> bool {
        !self.facts.iter().any(|fact| fact.agreement == Agreement::Disagrees)
    }

    /// The closing line and the exit status.
    #[must_use]
    pub fn closing(&self) -> (String, u8) {
        let Counts { agree, disagree, undecided, not_measured } = self.counts;
        let all = self.facts.len();
        let (noun, verb) = match (self.source, disagree) {
            (None, 1) => ("checks", "fails"),
            (None, _) => ("checks", "fail"),
            (Some(_), 1) => ("facts", "disagrees"),
            (Some(_), _) => ("facts", "disagree"),
        };
        let mut rest = String::new();
        for (count, word) in [(undecided, "undecided"), (not_measured, "not measured here")] {
            if count > 0 {
                rest += &format!(", {count} {word}");
            }
        }
        if disagree > 0 {
            return (format!("no: {disagree} of {all} {noun} {verb}{rest} (exit 1)"), 1);
        }
        let holds = if self.source.is_some() { "agree" } else { "hold" };
        (format!("holds: {agree} of {all} {noun} {holds}{rest} (exit 0)"), 0)
    }
}

/// How many facts of each sort there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Facts that agree.
    pub agree: usize,
    /// Facts that do not.
    pub disagree: usize,
    /// Facts that the seeds do not decide.
    pub undecided: usize,
    /// Facts that this machine, or this run, does not show.
    pub not_measured: usize,
}

impl Counts {
    /// Of these facts.
    #[must_use]
    pub fn of(facts: &[Fact]) -> Counts {
        let mut counts = Counts::default();
        for fact in facts {
            *match fact.agreement {
                Agreement::Agrees => &mut counts.agree,
                Agreement::Disagrees => &mut counts.disagree,
                Agreement::Undecided(_) => &mut counts.undecided,
                Agreement::NotMeasurable(_) | Agreement::NotPermitted(_) => &mut counts.not_measured,
            } += 1;
        }
        counts
    }
}

/// A fact of a source: its number, what it says in our words, and where.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    /// What output and pages call it.
    pub number: u32,
    /// What it says.
    pub what: &'static str,
    /// The section or figure, or how it follows from one.
    pub place: &'static str,
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
    /// By how many seeds the statements of a simulated experiment are judged; `None`: 8.
    pub seeds: Option<u64>,
    /// Of the test bench of aperiodic service: what an exhausted server does; `None`: as the experiment's file says.
    pub when_exhausted: Option<WhenExhausted>,
}

/// Why an experiment could not be run at all.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExperimentError {
    message: String,
    not_permitted: bool,
    /// What is wrong with a file, each at its place.
    found: Option<Box<Diagnostics>>,
}

impl ExperimentError {
    /// Something failed.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> ExperimentError {
        ExperimentError { message: message.into(), not_permitted: false, found: None }
    }

    /// The input is at fault.
    #[must_use]
    pub fn bad_input(message: impl Into<String>) -> ExperimentError {
        ExperimentError { message: message.into(), not_permitted: false, found: None }
    }

    /// A file is at fault.
    pub(crate) fn in_file(found: Diagnostics) -> ExperimentError {
        let message = found.to_string();
        ExperimentError { message, not_permitted: false, found: Some(Box::new(found)) }
    }

    /// What is wrong with the file, each at its place, where a file is at fault.
    #[must_use]
    pub fn diagnostics(&self) -> Option<&Diagnostics> {
        self.found.as_deref()
    }

    /// This machine does not allow it.
    #[must_use]
    pub fn not_permitted(message: impl Into<String>) -> ExperimentError {
        ExperimentError { message: message.into(), not_permitted: true, found: None }
    }

    /// Whether this machine does not allow it.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        self.not_permitted
    }
}
