//! The readings so far, in memory and, where asked, in a file that a later run goes on with.
//!
//! The file is a line of JSON for the configuration and one for each stretch. A last line that a kill cut off is dropped.

use super::configuration::{Configuration, Phase, SAMPLES};
use super::gaps::Stretch;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// What remains of one stretch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reading {
    /// Under what.
    pub phase: Phase,
    /// How many gaps it had.
    pub gaps: u64,
    /// The longest, ns.
    pub longest_gap_ns: u64,
    /// The largest share of any window, parts per billion, one a length.
    pub largest_ppb: Vec<u64>,
    /// Shares of windows that begin at random, parts per billion, some a length.
    pub sampled_ppb: Vec<Vec<u64>>,
    /// What disturbed it.
    #[serde(flatten)]
    pub disturbance: Disturbance,
}

/// What took the processor during a stretch and is no load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Disturbance {
    /// How often the kernel held a real-time thread back on the CPU; null where that could not be counted.
    pub held_back: Option<u64>,
    /// What the hypervisor took, ns, in ticks of 10 ms or so; null where the kernel does not say.
    pub stolen_ns: Option<u64>,
}

impl Reading {
    /// What a stretch says of the lengths; `None` where it is too short for the longest.
    #[must_use]
    pub fn of(
        stretch: &Stretch,
        phase: Phase,
        lengths_ns: &[u64],
        disturbance: Disturbance,
        mut random: impl FnMut(u64) -> u64,
    ) -> Option<Reading> {
        let windows = stretch.index();
        let mut largest_ppb = Vec::with_capacity(lengths_ns.len());
        let mut sampled_ppb = Vec::with_capacity(lengths_ns.len());
        for &length in lengths_ns {
            largest_ppb.push(windows.largest_ppb(length)?);
            let room = stretch.length_ns - length;
            let samples = (0..SAMPLES).map(|_| windows.share_ppb(random(room), length));
            sampled_ppb.push(samples.collect::<Option<Vec<u64>>>()?);
        }
        let (gaps, longest_gap_ns) = (stretch.gaps.len() as u64, stretch.longest_ns());
        Some(Reading { phase, gaps, longest_gap_ns, largest_ppb, sampled_ppb, disturbance })
    }
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    schema: String,
    #[serde(flatten)]
    configuration: Configuration,
}

const SCHEMA: &str = "horolog.interference-trials/1";

/// Readings of one configuration.
#[derive(Debug)]
pub struct Store {
    configuration: Configuration,
    readings: Vec<Reading>,
    file: Option<(File, PathBuf)>,
}

/// Why a file of trials cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is something else.
    #[error("{}: line {line} is not a line of a file of trials ({SCHEMA}): give another file", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
    },
    /// It was measured otherwise.
    #[error("{}: measured with another {what} ({theirs}, asked {ours}): repeat that, or give another file", path.display())]
    Different {
        /// Which.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// As in the file.
        theirs: String,
        /// As asked.
        ours: String,
    },
}

impl Store {
    /// Keeps readings in memory alone.
    #[must_use]
    pub fn in_memory(configuration: Configuration) -> Store {
        Store { configuration, readings: Vec::new(), file: None }
    }

    /// Goes on with the file at `path`, or begins it.
    ///
    /// # Errors
    /// [`StoreError`]; a file of another configuration is never touched.
    pub fn open(path: &Path, configuration: Configuration) -> Result<Store, StoreError> {
        let failed = |error| StoreError::File { path: path.to_owned(), error };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(StoreError::Foreign { path: path.to_owned(), line: 1 });
            }
            Err(error) => return Err(failed(error)),
        };
        // Only whole lines count; what follows the last newline was cut off.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        if whole == 0 && !text.is_empty() && !text.starts_with("{\"schema\":\"horolog.interference") {
            return Err(StoreError::Foreign { path: path.to_owned(), line: 1 });
        }
        let readings = read(path, &text[..whole], &configuration)?;
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(failed)?;
        file.set_len(whole as u64).and_then(|()| file.seek(io::SeekFrom::End(0))).map_err(failed)?;
        let mut store = Store { configuration, readings, file: Some((file, path.to_owned())) };
        if whole == 0 {
            let head = Head { schema: SCHEMA.to_owned(), configuration: store.configuration.clone() };
            store.append(&head)?;
        }
        Ok(store)
    }

    /// What is measured.
    #[must_use]
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// The readings of a phase.
    pub fn readings(&self, phase: Phase) -> impl Iterator<Item = &Reading> {
        self.readings.iter().filter(move |reading| reading.phase == phase)
    }

    /// Adds a reading; it is in the file when this returns.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn add(&mut self, reading: Reading) -> Result<(), StoreError> {
        self.append(&reading)?;
        self.readings.push(reading);
        Ok(())
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), StoreError> {
        let Some((file, path)) = &mut self.file else { return Ok(()) };
        let written = serde_json::to_string(line)
            .map_err(io::Error::from)
            .and_then(|line| file.write_all(format!("{line}\n").as_bytes()));
        written.map_err(|error| StoreError::File { path: path.clone(), error })
    }
}

fn read(path: &Path, text: &str, ours: &Configuration) -> Result<Vec<Reading>, StoreError> {
    let foreign = |line| StoreError::Foreign { path: path.to_owned(), line };
    let mut lines = text.lines().zip(1..);
    let Some((first, _)) = lines.next() else { return Ok(Vec::new()) };
    let head: Head = serde_json::from_str(first).map_err(|_| foreign(1))?;
    if head.schema != SCHEMA {
        return Err(foreign(1));
    }
    if let Some((what, theirs, ours)) = difference(&head.configuration, ours) {
        return Err(StoreError::Different { path: path.to_owned(), what, theirs, ours });
    }
    lines
        .map(|(line, number)| {
            let reading: Reading = serde_json::from_str(line).map_err(|_| foreign(number))?;
            let lengths = ours.lengths_ns.len();
            let fits = reading.largest_ppb.len() == lengths
                && reading.sampled_ppb.len() == lengths
                && reading.largest_ppb.iter().chain(reading.sampled_ppb.iter().flatten()).all(is_share);
            if fits { Ok(reading) } else { Err(foreign(number)) }
        })
        .collect()
}

fn is_share(ppb: &u64) -> bool {
    *ppb <= 1_000_000_000
}

/// The first thing in which two configurations differ.
fn difference(theirs: &Configuration, ours: &Configuration) -> Option<(&'static str, String, String)> {
    let pair = |what, theirs: &dyn std::fmt::Debug, ours: &dyn std::fmt::Debug| {
        let (theirs, ours) = (format!("{theirs:?}"), format!("{ours:?}"));
        (theirs != ours).then_some((what, theirs, ours))
    };
    pair("cpu", &theirs.cpu, &ours.cpu)
        .or_else(|| pair("priority", &theirs.priority, &ours.priority))
        .or_else(|| pair("list of window lengths", &theirs.lengths_ns, &ours.lengths_ns))
        .or_else(|| pair("stretch", &theirs.stretch_ns, &ours.stretch_ns))
        .or_else(|| pair("threshold", &theirs.threshold_ns, &ours.threshold_ns))
        .or_else(|| pair("load", &theirs.command, &ours.command))
        .or_else(|| pair("kernel", &theirs.kernel, &ours.kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(share: u64) -> Reading {
        let lengths = Configuration::new(1).lengths_ns.len();
        Reading {
            phase: Phase::Idle,
            gaps: 3,
            longest_gap_ns: 9,
            largest_ppb: vec![share; lengths],
            sampled_ppb: vec![vec![share / 2]; lengths],
            disturbance: Disturbance::default(),
        }
    }

    #[test]
    fn a_file_goes_on_where_it_was_cut_off_at_any_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trials.jsonl");
        let mut store = Store::open(&path, Configuration::new(1)).unwrap();
        (1..4).for_each(|share| store.add(reading(share)).unwrap());
        drop(store);
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..length]).unwrap();
            let lines = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
            let store = match Store::open(&path, Configuration::new(1)) {
                Ok(store) => store,
                // A few bytes are no sign that the file is ours.
                Err(StoreError::Foreign { line: 1, .. }) if (1..40).contains(&length) => continue,
                Err(error) => panic!("{length}: {error}"),
            };
            assert_eq!(store.readings(Phase::Idle).count(), lines.saturating_sub(1), "{length}");
            assert_eq!(store.readings(Phase::Load).count(), 0);
        }
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let mut store = Store::open(&path, Configuration::new(1)).unwrap();
        store.add(reading(3)).unwrap();
        drop(store);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn another_configuration_and_another_file_are_refused_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trials.jsonl");
        Store::open(&path, Configuration::new(1)).unwrap().add(reading(5)).unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = Store::open(&path, Configuration::new(0)).unwrap_err().to_string();
        assert!(error.contains("another cpu (1, asked 0)"), "{error}");
        let mut other = Configuration::new(1);
        other.command = vec!["ping".to_owned()];
        assert!(matches!(Store::open(&path, other), Err(StoreError::Different { what: "load", .. })));
        assert_eq!(std::fs::read(&path).unwrap(), before);
        for foreign in ["[system]\nname = \"x\"\n", "{}\n", "no newline", "\u{0}\n"] {
            std::fs::write(&path, foreign).unwrap();
            let refused = Store::open(&path, Configuration::new(1));
            assert!(matches!(refused, Err(StoreError::Foreign { line: 1, .. })), "{foreign}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
        }
        let mut text = String::from_utf8(before).unwrap();
        text.push_str("{\"phase\":\"idle\"}\n");
        std::fs::write(&path, text).unwrap();
        let refused = Store::open(&path, Configuration::new(1));
        assert!(matches!(refused, Err(StoreError::Foreign { line: 3, .. })));
    }
}
