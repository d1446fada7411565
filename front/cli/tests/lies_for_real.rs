//! Bodies and programs that deceive, on real threads: none is believed. The catalogue is `tests/lies/catalogue.toml`.

mod common;

use common::lies::{By, Judged, Lie, all, build};
use common::{Done, HOROLOG, real_time};
use std::path::Path;
use std::process::{Command, Stdio};

/// A loaded machine may hide what a body did, or do more than it.
const TRIES: usize = 3;

/// Closes the loop over the lie's system for a second.
fn close(lie: &Lie, folder: &Path) -> Done {
    std::fs::copy(lie.file(), folder.join("system.toml")).expect("writable");
    let mut command = Command::new(HOROLOG);
    command.args(["loop", "system.toml", "--for", "1 s", "--out", "out", "--seed", "1", "--format", "json"]);
    for set in &lie.set {
        command.args(["--set", set]);
    }
    Done::of(command.args(&lie.words).current_dir(folder).stdin(Stdio::null()))
}

fn kernel_is_recorded(done: &Done) -> bool {
    !done.out.contains("the trace holds no records of the kernel")
}

#[test]
fn no_body_and_no_program_is_believed() {
    let Some(_alone) = real_time() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    if build(folder.path()).is_none() {
        return;
    }
    let lies: Vec<Lie> = all().into_iter().filter(|lie| matches!(lie.by, By::Body | By::Command)).collect();
    let (mut failures, mut untold) = (Vec::new(), 0);
    for lie in &lies {
        let mut last = (Judged { wrong: Vec::new(), cannot_tell: false }, String::new());
        for _ in 0..TRIES {
            let done = close(lie, folder.path());
            if !kernel_is_recorded(&done) {
                println!("SKIPPED: this machine does not let the kernel be recorded");
                return;
            }
            let said = done.err.lines().rev().find(|line| !line.starts_with("  help: ")).unwrap_or_default();
            last = (lie.wrong(&done), said.to_owned());
            if last.0.wrong.is_empty() || lie.open.is_some() {
                break;
            }
        }
        let (Judged { wrong, cannot_tell }, said) = last;
        println!("{}: {said}", lie.name);
        untold += usize::from(cannot_tell);
        match &lie.open {
            Some(why) if !wrong.is_empty() => println!("SKIPPED: the lie {}: {why}", lie.name),
            _ if wrong.is_empty() => {}
            _ => failures.push(format!("{} ({}): {}\n    it said: {said}", lie.name, lie.what, wrong.join("; "))),
        }
    }
    println!("{} lies for real, {untold} of them cannot be told", lies.len());
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), lies.len(), failures.join("\n"));
    assert!(untold * 10 <= lies.len(), "{untold} of {} cannot be told", lies.len());
}
