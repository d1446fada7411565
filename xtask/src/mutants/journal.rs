//! What was judged already: `target/mutants/NAME/judged`, one line a fault, so that a run that was ended can go on.

use super::build::Placed;
use super::judge::Verdict;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What became of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// The compiler refused it.
    Refused,
    Judged(Verdict),
}

const WORDS: [(&str, Outcome); 4] = [
    ("refused", Outcome::Refused),
    ("noticed", Outcome::Judged(Verdict::Noticed)),
    ("too long", Outcome::Judged(Verdict::TooLong)),
    ("survived", Outcome::Judged(Verdict::Survived)),
];

/// The file and what it holds.
#[derive(Debug)]
pub(super) struct Journal {
    known: BTreeMap<String, Outcome>,
    file: Mutex<File>,
}

/// A fault's name: its words and where it is.
fn name(fault: &Placed) -> Value {
    json!([fault.file, fault.candidate.function, fault.candidate.what, fault.text, fault.place])
}

impl Journal {
    /// Opens it. Without `resume`, or where `sources` have changed since, it begins anew.
    pub(super) fn open(path: &Path, sources: u64, resume: bool) -> Result<Journal, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let head = json!({ "sources": sources.to_string() }).to_string();
        let old = fs::read_to_string(path).unwrap_or_default();
        let mut lines = old.lines();
        let mut known = BTreeMap::new();
        if resume && lines.next() == Some(head.as_str()) {
            for line in lines {
                // The last line may be cut short.
                let Ok(Value::Array(parts)) = serde_json::from_str(line) else { continue };
                let [word, fault] = parts.as_slice() else { continue };
                if let Some((_, outcome)) = WORDS.iter().find(|(known, _)| word == known) {
                    known.insert(fault.to_string(), *outcome);
                }
            }
        }
        let mut text = head + "\n";
        for (fault, outcome) in &known {
            text.push_str(&format!("[\"{}\",{fault}]\n", word(*outcome)));
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(path, text).map_err(failed)?;
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        Ok(Journal { known, file: Mutex::new(file) })
    }

    /// What became of the fault in an earlier run.
    pub(super) fn outcome(&self, fault: &Placed) -> Option<Outcome> {
        self.known.get(&name(fault).to_string()).copied()
    }

    /// Notes it at once: the run may be ended at any time.
    pub(super) fn note(&self, fault: &Placed, outcome: Outcome) {
        let line = format!("{}\n", json!([word(outcome), name(fault)]));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(line.as_bytes()) {
            eprintln!("the journal: {error}");
        }
    }
}

fn word(outcome: Outcome) -> &'static str {
    WORDS.iter().find(|(_, known)| *known == outcome).map_or("", |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::super::build::faults_of;
    use super::*;

    #[test]
    fn a_run_goes_on_where_the_last_one_ended_unless_the_sources_changed() {
        let folder = std::env::temp_dir().join(format!("horolog-journal-{}", std::process::id()));
        let path = folder.join("judged");
        let faults = faults_of("f.rs", "fn f(a: u32) -> u32 { a + 1 }").expect("it parses");
        assert_eq!(faults.len(), 3);
        let outcomes = |journal: &Journal| faults.iter().map(|one| journal.outcome(one)).collect::<Vec<_>>();
        let journal = Journal::open(&path, 7, true).expect("written");
        journal.note(&faults[0], Outcome::Judged(Verdict::Survived));
        journal.note(&faults[1], Outcome::Refused);
        let mut text = fs::read_to_string(&path).expect("it is there");
        text.push_str("[\"notic");
        fs::write(&path, text).expect("written");
        let expected = [Some(Outcome::Judged(Verdict::Survived)), Some(Outcome::Refused), None];
        for _ in 0..2 {
            assert_eq!(outcomes(&Journal::open(&path, 7, true).expect("written")), expected);
        }
        assert_eq!(outcomes(&Journal::open(&path, 8, true).expect("written")), [None; 3]);
        assert_eq!(outcomes(&Journal::open(&path, 7, true).expect("written")), [None; 3]);
        let journal = Journal::open(&path, 7, false).expect("written");
        journal.note(&faults[2], Outcome::Judged(Verdict::Noticed));
        // A later verdict stands in the place of an earlier one.
        journal.note(&faults[2], Outcome::Judged(Verdict::TooLong));
        let journal = Journal::open(&path, 7, true).expect("written");
        assert_eq!(outcomes(&journal)[2], Some(Outcome::Judged(Verdict::TooLong)));
        assert_eq!(outcomes(&Journal::open(&path, 7, false).expect("written")), [None; 3]);
        fs::remove_dir_all(folder).expect("it is there");
    }
}
