//! A copy of the checkout with all chosen faults built in, and the test programs made from it.

use super::find::{self, Candidate};
use super::schema::{Chosen, SWITCH, numbers_in, render};
use super::table::Subject;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A fault and the file that it lies in.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) file: String,
    pub(super) candidate: Candidate,
    /// The line's text, which finds the fault again when lines have moved.
    pub(super) text: String,
    /// Which one of those with the same words in lines with the same text of the same function, from 1.
    pub(super) place: usize,
}

/// A test program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// Where its package lies: tests read files relative to it.
    pub(super) folder: PathBuf,
}

/// Every fault of the subject, in the order of its files.
pub(super) fn all_faults(root: &Path, subject: &Subject) -> Result<Vec<Placed>, String> {
    let listed = output(Command::new("git").args(["ls-files", subject.sources]).current_dir(root))?;
    let mut faults = Vec::new();
    for file in listed.lines().filter(|file| file.ends_with(".rs") && !file.ends_with("/tests.rs")) {
        let source = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        faults.extend(faults_of(file, &source).map_err(|error| format!("{file}: {error}"))?);
    }
    Ok(faults)
}

/// Every fault of one file.
pub(super) fn faults_of(file: &str, source: &str) -> Result<Vec<Placed>, String> {
    let mut faults: Vec<Placed> = Vec::new();
    for candidate in find::candidates(source)? {
        let text = source.lines().nth(candidate.line - 1).unwrap_or_default().trim().to_owned();
        let alike = |one: &&Placed| {
            (&one.candidate.function, &one.candidate.what, &one.text)
                == (&candidate.function, &candidate.what, &text)
        };
        let place = faults.iter().filter(alike).count() + 1;
        faults.push(Placed { file: file.to_owned(), candidate, text, place });
    }
    Ok(faults)
}

/// Copies the checkout's tracked files to `copy`, but for those that [`build`] writes with their faults: those, too, keep
/// their times where they are as before.
pub(super) fn copy_tree(
    root: &Path,
    copy: &Path,
    subject: &Subject,
    faults: &BTreeMap<u32, Placed>,
) -> Result<(), String> {
    let written: BTreeSet<&str> =
        faults.values().map(|fault| fault.file.as_str()).chain([subject.root]).collect();
    let listed =
        output(Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).current_dir(root))?;
    for file in listed.lines() {
        let (from, to) = (root.join(file), copy.join(file));
        if !from.is_file() || written.contains(file) && to.is_file() {
            continue;
        }
        let new = fs::read(&from).map_err(|error| format!("{file}: {error}"))?;
        // Files that are as before keep their times, so that nothing is built anew for them.
        if fs::read(&to).is_ok_and(|old| old == new) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        fs::write(&to, new).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

/// Builds the copy with these faults; those that do not compile are left out and added to `refused`.
pub(super) fn build(
    root: &Path,
    copy: &Path,
    subject: &Subject,
    faults: &BTreeMap<u32, Placed>,
    refused: &mut BTreeSet<u32>,
) -> Result<Vec<Program>, String> {
    for round in 0..40 {
        let written = write(root, copy, subject, faults, refused)?;
        match compile(copy, subject)? {
            Compiled::Programs(programs) => return Ok(programs),
            Compiled::Errors(errors) => {
                let before = refused.len();
                for (file, place) in &errors {
                    if let Some(text) = written.get(file) {
                        refused.extend(blamed(text, *place, round >= 15));
                    }
                }
                if refused.len() == before {
                    // A statement that is left out may make an error elsewhere, as where a value is moved in a loop.
                    for (file, place) in &errors {
                        let below = written.get(file).and_then(|text| text.get(*place..)).unwrap_or_default();
                        refused.extend(numbers_in(below).first());
                    }
                }
                println!("  round {}: {} faults do not compile", round + 1, refused.len());
                if refused.len() == before {
                    return Err(format!("the copy does not compile, and no fault is to blame: {errors:?}"));
                }
            }
        }
    }
    Err("some faults do not compile, and which ones was not found in 25 rounds".to_owned())
}

/// Writes the subject's files with the faults; the texts by name.
fn write(
    root: &Path,
    copy: &Path,
    subject: &Subject,
    faults: &BTreeMap<u32, Placed>,
    refused: &BTreeSet<u32>,
) -> Result<BTreeMap<String, String>, String> {
    let mut files: BTreeMap<String, Vec<Chosen>> = BTreeMap::new();
    files.entry(subject.root.to_owned()).or_default();
    for (&number, fault) in faults {
        let chosen = files.entry(fault.file.clone()).or_default();
        if !refused.contains(&number) {
            chosen.push(Chosen { number, candidate: fault.candidate.clone() });
        }
    }
    let mut written = BTreeMap::new();
    for (file, chosen) in files {
        let source = fs::read_to_string(root.join(&file)).map_err(|error| format!("{file}: {error}"))?;
        let mut text = render(&source, &chosen);
        if file == subject.root {
            text.push_str(SWITCH);
        }
        if fs::read_to_string(copy.join(&file)).ok().as_deref() != Some(&text) {
            fs::write(copy.join(&file), &text).map_err(|error| format!("{file}: {error}"))?;
        }
        written.insert(file, text);
    }
    Ok(written)
}

enum Compiled {
    Programs(Vec<Program>),
    /// Files and the bytes that the compiler points at.
    Errors(Vec<(String, usize)>),
}

fn compile(copy: &Path, subject: &Subject) -> Result<Compiled, String> {
    let mut programs: Vec<Program> = Vec::new();
    for stage in subject.stages {
        let mut command = Command::new("cargo");
        command.arg("test").args(*stage).args(["--no-run", "--message-format=json"]);
        command.current_dir(copy).env("CARGO_TARGET_DIR", copy.join("../build"));
        // The faults make unused and unreachable code.
        command.env("RUSTFLAGS", "--cap-lints allow");
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if !output.status.success() {
            let errors: Vec<(String, usize)> = messages.iter().filter_map(place_of_error).collect();
            if errors.is_empty() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned());
            }
            return Ok(Compiled::Errors(errors));
        }
        let mut stage: Vec<Program> = messages.iter().filter_map(program).collect();
        stage.retain(|new| programs.iter().all(|old| old.path != new.path));
        programs.extend(stage);
    }
    Ok(Compiled::Programs(programs))
}

fn place_of_error(message: &Value) -> Option<(String, usize)> {
    let message = message.get("message")?;
    if message.get("level")?.as_str()? != "error" {
        return None;
    }
    let spans = message.get("spans")?.as_array()?;
    let span = spans.iter().find(|span| span.get("is_primary").and_then(Value::as_bool) == Some(true))?;
    let place = span.get("byte_start")?.as_u64()?;
    Some((span.get("file_name")?.as_str()?.to_owned(), usize::try_from(place).ok()?))
}

fn program(message: &Value) -> Option<Program> {
    let path = PathBuf::from(message.get("executable")?.as_str()?);
    let is_test = message.get("profile")?.get("test")?.as_bool()?;
    let folder = Path::new(message.get("manifest_path")?.as_str()?).parent()?.to_path_buf();
    is_test.then_some(Program { path, folder })
}

/// The faults that an error at this byte may come from: the one begun last before it on its line, else the first after
/// it; all of the line where that has not helped.
fn blamed(text: &str, place: usize, all: bool) -> Vec<u32> {
    let place = place.min(text.len());
    let start = text[..place].rfind('\n').map_or(0, |at| at + 1);
    let end = text[place..].find('\n').map_or(text.len(), |at| place + at);
    if all {
        return numbers_in(&text[start..end]);
    }
    let before = numbers_in(&text[start..place]).last().copied();
    let after = || numbers_in(&text[place..end]).first().copied();
    // A switch that is named further up: its alternatives may take several lines.
    let above = || numbers_in(&text[..place]).last().copied();
    before.or_else(after).or_else(above).into_iter().collect()
}

/// What a command prints.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}
