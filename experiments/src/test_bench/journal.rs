//! The journal of an experiment: one line a finished run, so that one that was killed goes on where it was.

use super::run::{Key, Run};
use super::spec::{Spec, WHEN_EXHAUSTED};
use crate::ExperimentError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The first line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    experiment: String,
    seed: u64,
    /// Everything else that changes a result.
    #[serde(default)]
    parts: BTreeMap<String, String>,
}

const SCHEMA: &str = "horolog.test-bench/2";

/// The finished runs, and where further ones are written.
pub(crate) struct Journal {
    file: Option<(File, PathBuf)>,
    runs: BTreeMap<Key, Run>,
}

impl Journal {
    /// A journal that is gone with the process.
    pub(crate) fn in_memory() -> Journal {
        Journal { file: None, runs: BTreeMap::new() }
    }

    /// The journal of this name in a folder; made where it is not there. A last line that was not written to its end is
    /// cut off.
    ///
    /// # Errors
    /// Where it belongs to another experiment or seed, another process is at it, or the disk refuses.
    pub(crate) fn open(folder: &Path, name: &str, spec: &Spec) -> Result<Journal, ExperimentError> {
        let path = folder.join(name);
        let failed = |error: std::io::Error| cannot("open", &path, &error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "{} is being written by another run; wait for it, or choose another --out",
                    path.display()
                );
                return Err(ExperimentError::bad_input(message));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut journal = Journal { file: Some((file, path.clone())), runs: BTreeMap::new() };
        let head = Head {
            schema: SCHEMA.to_owned(),
            experiment: spec.name.clone(),
            seed: spec.seed,
            parts: spec.parts(),
        };
        if whole == 0 {
            journal.write(&head)?;
            return Ok(journal);
        }
        let mut lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let found = lines.next().and_then(|line| serde_json::from_slice::<Head>(line).ok());
        if let Some(difference) = difference(found.as_ref(), &head) {
            return Err(ExperimentError::bad_input(format!(
                "{} {difference}; choose another --out, or remove that file",
                path.display()
            )));
        }
        for (line, number) in lines.zip(2_u64..) {
            let run: Run = serde_json::from_slice(line).map_err(|error| {
                let message = format!("{} line {number}: {error}; remove that line", path.display());
                ExperimentError::bad_input(message)
            })?;
            journal.runs.insert(run.key(), run);
        }
        Ok(journal)
    }

    /// The runs so far, ordered by back end, application, gain and policy.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.runs.contains_key(key)
    }

    /// Keeps finished runs.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub(crate) fn add(&mut self, runs: Vec<Run>) -> Result<(), ExperimentError> {
        for run in runs {
            if self.file.is_some() {
                self.write(&run)?;
            }
            self.runs.insert(run.key(), run);
        }
        Ok(())
    }

    /// A line in one write, so that a killed process leaves at most one piece.
    fn write(&mut self, value: &impl Serialize) -> Result<(), ExperimentError> {
        let Some((file, path)) = &mut self.file else { return Ok(()) };
        let mut line =
            serde_json::to_vec(value).map_err(|error| ExperimentError::failed(error.to_string()))?;
        line.push(b'\n');
        file.write_all(&line).map_err(|error| cannot("write", path, &error))
    }
}

fn difference(found: Option<&Head>, wanted: &Head) -> Option<String> {
    let Some(found) = found.filter(|found| found.schema == SCHEMA) else {
        return Some("is not a journal of this bench".to_owned());
    };
    if found.experiment != wanted.experiment {
        return Some(format!(
            "belongs to the experiment `{}`, not to `{}`",
            found.experiment, wanted.experiment
        ));
    }
    if found.seed != wanted.seed {
        return Some(format!("was made with the seed {}, not {}", found.seed, wanted.seed));
    }
    let (name, value) = wanted.parts.iter().find(|(name, value)| found.parts.get(*name) != Some(*value))?;
    Some(match (name.as_str(), found.parts.get(name)) {
        (WHEN_EXHAUSTED, Some(before)) => {
            format!("was made with {WHEN_EXHAUSTED} {before}, not {value}")
        }
        (name, Some(before)) if before.len() < 20 && value.len() < 20 => {
            format!("was made by another file or version of the experiment: {name} was {before}, now {value}")
        }
        (name, _) => format!("was made by another file or version of the experiment: {name} differs"),
    })
}

pub(crate) fn cannot(doing: &str, path: &Path, error: &std::io::Error) -> ExperimentError {
    ExperimentError::bad_input(format!("cannot {doing} {}: {error}", path.display()))
}
