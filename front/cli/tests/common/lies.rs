//! The catalogue of lies (`tests/lies/`): what deceives, and which answers are right.

use super::{Done, root};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Who deceives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    Body,
    Command,
    Machine,
    Trace,
    User,
}

/// One entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lie {
    pub name: String,
    pub by: By,
    pub what: String,
    /// Its system file, by its name in `tests/lies/systems`.
    pub system: String,
    /// Values of that file that are replaced.
    #[serde(default)]
    pub set: Vec<String>,
    /// What happens beside the run.
    pub act: Option<String>,
    /// More words for the command.
    #[serde(default)]
    pub words: Vec<String>,
    pub verb: Option<String>,
    /// How a simulated trace, or a certificate, is edited.
    pub edit: Option<String>,
    /// Why horolog does not see through it yet; absent: it does.
    pub open: Option<String>,
    pub expect: Expect,
}

/// What is right.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub exit: Vec<i32>,
    #[serde(default)]
    pub model: Vec<String>,
    #[serde(default)]
    pub deadlines: Vec<String>,
    /// A finding of one of these classes about one of these subjects has to be there.
    #[serde(default)]
    pub class: Vec<String>,
    #[serde(default)]
    pub subject: Vec<String>,
    /// No finding of these classes may be there.
    #[serde(default)]
    pub never: Vec<String>,
    /// Whether the answer may be yes, where enough was judged.
    #[serde(default)]
    pub harmless: bool,
}

#[derive(Deserialize)]
struct Catalogue {
    lie: Vec<Lie>,
}

pub fn folder_of_lies() -> PathBuf {
    root().join("tests/lies")
}

/// Every lie.
pub fn all() -> Vec<Lie> {
    let text = std::fs::read_to_string(folder_of_lies().join("catalogue.toml")).expect("the catalogue");
    let catalogue: Catalogue = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}"));
    catalogue.lie
}

impl Lie {
    /// Its system file.
    pub fn file(&self) -> PathBuf {
        folder_of_lies().join("systems").join(format!("{}.toml", self.system))
    }

    /// What of the result is wrong; empty: nothing. `cannot_tell` says whether the answer was only `cannot-tell`.
    pub fn wrong(&self, done: &Done) -> Judged {
        let mut wrong = Vec::new();
        let expect = &self.expect;
        if done.err.contains("panicked") {
            wrong.push("it panicked".to_owned());
        }
        let status = done.status.unwrap_or(-1);
        if !expect.exit.contains(&status) {
            wrong.push(format!("exit {status}, right are {:?}", expect.exit));
        }
        // Whatever was refused has no result, and the checker of certificates has none as JSON.
        let Ok(json) = serde_json::from_str::<Value>(&done.out) else {
            let is_refused = matches!(status, 2 | 3) || (done.out.is_empty() && done.err.contains("error: "));
            if !is_refused && self.verb.as_deref() != Some("check-certificate") {
                wrong.push("standard output is no JSON".to_owned());
            }
            return Judged { wrong, cannot_tell: false, accuses: false };
        };
        if status == 0 && !expect.harmless {
            wrong.push("it says yes".to_owned());
        }
        self.check_answers(&json, &mut wrong);
        let groups = groups(&json);
        let said = wrong.len();
        for class in &expect.never {
            wrong.extend(groups.iter().filter(|group| group["class"] == **class).map(|group| {
                format!("{class}: {} of {} ({} times)", group["check"], group["subject"], group["count"])
            }));
        }
        let accuses = wrong.len() > said;
        let has = |group: &&Value| {
            expect.class.iter().any(|class| group["class"] == **class)
                && (expect.subject.is_empty() || expect.subject.iter().any(|one| group["subject"] == **one))
        };
        let is_named = expect.class.is_empty() || groups.iter().any(has);
        let cannot_tell = !is_named && groups.iter().any(|group| group["class"] == "cannot-tell");
        if !is_named && !cannot_tell {
            wrong.push(format!("no finding of {:?} about {:?}", expect.class, expect.subject));
        }
        Judged { wrong, cannot_tell, accuses }
    }

    /// The same of a real run: what the machine's record leaves undecided is no wrong answer, but one that cannot be told.
    pub fn wrong_for_real(&self, done: &Done) -> Judged {
        let judged = self.wrong(done);
        let is_undecided = done.status == Some(4) && !self.expect.exit.contains(&4);
        // A deadline may be missed beside that, which is told and no answer about the model.
        let model = serde_json::from_str::<Value>(&done.out).map(|json| json["closing"]["model"].clone());
        let is_open = done.status == Some(1)
            && !self.expect.model.is_empty()
            && model.is_ok_and(|model| model == "undecided");
        if !(is_undecided || is_open) || judged.accuses || done.err.contains("panicked") {
            return judged;
        }
        Judged { wrong: Vec::new(), cannot_tell: true, accuses: false }
    }

    fn check_answers(&self, json: &Value, wrong: &mut Vec<String>) {
        let closing = &json["closing"];
        for (question, right) in [("model", &self.expect.model), ("deadlines", &self.expect.deadlines)] {
            let answer = closing[question].as_str().unwrap_or("nothing");
            if !right.is_empty() && !right.iter().any(|one| one == answer) {
                wrong.push(format!("{question}: {answer}, right are {right:?}"));
            }
        }
    }
}

/// The result of a lie.
#[derive(Clone, Debug)]
pub struct Judged {
    pub wrong: Vec<String>,
    pub cannot_tell: bool,
    /// A finding of a class is there that may not be.
    pub accuses: bool,
}

/// The groups of findings of the run, or of the trace.
fn groups(json: &Value) -> Vec<&Value> {
    let verification = if json["verification"].is_object() { &json["verification"] } else { json };
    verification["groups"].as_array().into_iter().flatten().collect()
}

/// Builds what the real lies run: the library of bodies and the program. `None`, with the reason said: there is no C compiler.
pub fn build(into: &Path) -> Option<()> {
    let lies = folder_of_lies();
    let include = root().join("front/capi/include");
    let cc = |words: &[&str]| {
        std::process::Command::new("cc").args(words).current_dir(&lies).arg("-I").arg(&include).output()
    };
    let library = into.join("libbodies.so");
    let program = into.join("command");
    let built = [
        cc(&["-O2", "-shared", "-fPIC", "-pthread", "bodies.c", "-o", library.to_str()?]),
        cc(&["-O2", "command.c", "-o", program.to_str()?]),
    ];
    for output in built {
        match output {
            Err(error) => {
                println!("SKIPPED: no C compiler: {error}");
                return None;
            }
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        }
    }
    Some(())
}
