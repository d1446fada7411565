//! Task sets and job sets in the formats of other tools, read into a [`System`] and written from one.
//!
//! [`read`] gives the system with the places of its values in the foreign text, so that every message has a caret there. [`write`](fn@write)
//! gives the text, or what the format cannot say. Neither leaves anything out in silence: what a file says beyond the model is
//! refused by its name, and what has no meaning for the model is a note. `docs/reference/formats.md` has the table of what each format maps to.
//!
//! | module | what it holds |
//! |---|---|
//! | `jobs`, `np_csv`, `np_yaml` | job sets of np-schedulability-analysis |
//! | `simso` | SimSo's XML |
//! | `rt_app` | rt-app's JSON |
//! | `columns` | execution time, deadline and period in columns |
//! | `mast` | MAST's text and XML, which are read only |
//! | `number` | decimal numbers to and from durations, exactly |
//! | `xml` | XML within limits, and what a reader does not ask for |
//! | `reading`, `known` | what readers, and what writers share |

mod columns;
mod jobs;
mod known;
mod mast;
mod np_csv;
mod np_yaml;
mod number;
mod reading;
mod rt_app;
mod simso;
mod xml;

use horolog_model::{Diagnostics, ModelError, Source, System};
use horolog_time::Span;
use reading::Reading;

/// A format of another tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The job sets of np-schedulability-analysis as CSV: a row a job.
    NpCsv,
    /// The same as YAML.
    NpYaml,
    /// The simulations of SimSo, XML.
    Simso,
    /// The workloads of rt-app, JSON with comments.
    RtApp,
    /// A row a task: execution time, deadline, period.
    Columns,
    /// The text of MAST.
    Mast,
    /// The XML of MAST.
    MastXml,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 7] = [
        Format::NpCsv,
        Format::NpYaml,
        Format::Simso,
        Format::RtApp,
        Format::Columns,
        Format::Mast,
        Format::MastXml,
    ];

    /// What the command calls it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Format::NpCsv => "np-csv",
            Format::NpYaml => "np-yaml",
            Format::Simso => "simso",
            Format::RtApp => "rt-app",
            Format::Columns => "columns",
            Format::Mast => "mast",
            Format::MastXml => "mast-xml",
        }
    }

    /// The unit of its numbers, where the format has one; where it has none, the reader gives it.
    #[must_use]
    pub const fn own_unit(self) -> Option<Span> {
        match self {
            Format::Simso => Some(Span::from_ns(1_000_000)),
            Format::RtApp => Some(Span::from_ns(1_000)),
            Format::NpCsv | Format::NpYaml | Format::Columns | Format::Mast | Format::MastXml => None,
        }
    }

    /// Whether [`write`](fn@write) knows it.
    #[must_use]
    pub const fn is_written(self) -> bool {
        !matches!(self, Format::Mast | Format::MastXml)
    }
}

/// A system that was read from a foreign text.
#[derive(Clone, Debug)]
pub struct Read {
    /// The system.
    pub system: System,
    /// Where its values lie in the text.
    pub source: Source,
    /// What the text says and the model does not need, and what the model needs and the text does not say.
    pub notes: Vec<String>,
}

/// A system in another format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The text.
    pub text: String,
    /// What the format says otherwise than the model.
    pub notes: Vec<String>,
}

/// Reads a text in another format. `unit` is what one of its time units is, unless the format has its own.
///
/// ```
/// use horolog_interchange::{Format, read};
/// use horolog_time::Span;
/// let read = read(Format::Columns, "C D T\n2 8 10\n", "set.txt", Span::from_ns(1_000_000)).unwrap();
/// assert_eq!(read.system.tasks()[0].wcet, Span::from_ns(2_000_000));
/// ```
///
/// # Errors
///
/// All that is wrong with the text or beyond the model, each with its place and a remedy.
pub fn read(format: Format, text: &str, name: &str, unit: Span) -> Result<Read, Diagnostics> {
    let unit = format.own_unit().unwrap_or(unit);
    let mut reading = Reading::new(text, name, unit);
    match format {
        Format::NpCsv => np_csv::read(&mut reading, text),
        Format::NpYaml => np_yaml::read(&mut reading, text),
        Format::Simso => simso::read(&mut reading, text),
        Format::RtApp => rt_app::read(&mut reading, text),
        Format::Columns => columns::read(&mut reading, text),
        Format::Mast => mast::read_text(&mut reading, text),
        Format::MastXml => mast::read_xml(&mut reading, text),
    }
    reading.finish()
}

/// Writes a system in another format. `unit` is what one time unit of the text is, unless the format has its own.
///
/// ```
/// use horolog_interchange::{Format, read, write};
/// use horolog_time::Span;
/// let unit = Span::from_ns(1_000_000);
/// let set = read(Format::Columns, "T C priority name\n10 2 1 motor\n", "set.txt", unit).unwrap();
/// let written = write(Format::Columns, &set.system, unit).unwrap();
/// assert_eq!(written.text, "C D T priority name\n2 10 10 1 motor\n");
/// ```
///
/// # Errors
///
/// What the format cannot say, by the paths of the system file. Priorities that an assignment gives have to be resolved before.
pub fn write(format: Format, system: &System, unit: Span) -> Result<Written, Vec<ModelError>> {
    let unit = format.own_unit().unwrap_or(unit);
    match format {
        Format::NpCsv => np_csv::write(system, unit),
        Format::NpYaml => np_yaml::write(system, unit),
        Format::Simso => simso::write(system),
        Format::RtApp => rt_app::write(system),
        Format::Columns => columns::write(system, unit),
        Format::Mast | Format::MastXml => Err(vec![ModelError {
            at: "system".to_owned(),
            reason: format!("{} is read, not written", format.word()),
            remedy: "give `np-csv`, `np-yaml`, `simso`, `rt-app` or `columns`".to_owned(),
        }]),
    }
}
