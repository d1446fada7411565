//! `horolog sweep`.

use crate::failure::{Done, Failure, Verdict};
use crate::output::{self, outln};
use crate::results::{Point, Points, Standing, tell_points};
use crate::sweep_arguments::SweepArguments;
use crate::{input, progress};
use horolog_model::file::read_text;
use horolog_sweep::{
    Blocks, CellSummary, Estimate, Found, Plan, Store, SweepError, SweepResult, estimate, file, finish, run,
    store,
};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Cells of the table on standard output.
const SHOWN: usize = 200;

/// The estimate in JSON.
#[derive(Serialize)]
struct ToldEstimate<'a> {
    schema: &'static str,
    name: &'a str,
    folder: String,
    #[serde(flatten)]
    estimate: &'a Estimate,
}

pub(crate) fn run_file(words: &SweepArguments) -> Done {
    let name = input::name(&words.file);
    let text = if input::is_standard(&words.file) {
        std::io::read_to_string(std::io::stdin().lock())
    } else {
        read_text(&words.file)
    };
    let text = text.map_err(|error| Failure::file("read", &words.file, &error))?;
    let plan = file::read(&text, &name).map_err(|found| Failure::diagnostics(found).in_file(&name))?;
    let folder = folder(words)?;
    if words.dry_run { dry(words, &plan, &folder) } else { sweep(words, &plan, &text, &folder) }
}

fn folder(words: &SweepArguments) -> Result<PathBuf, Failure> {
    match &words.out {
        Some(folder) => Ok(folder.clone()),
        None if input::is_standard(&words.file) => {
            Err(Failure::usage("a file from the standard input has no name: say the folder with `--out`"))
        }
        None => {
            let mut name = words.file.file_stem().unwrap_or_default().to_owned();
            name.push("-sweep");
            Ok(words.file.with_file_name(name))
        }
    }
}

fn dry(words: &SweepArguments, plan: &Plan, folder: &Path) -> Done {
    let found = store::look(folder, plan).map_err(Failure::bad_input)?;
    let estimate = estimate(plan, &found.missing, usize::from(words.workers)).map_err(Failure::bad_input)?;
    let (time, disk) = (seconds(estimate.wall_s), bytes(estimate.disk_bytes));
    let range = format!("{} to {}", seconds(estimate.wall_s_low), seconds(estimate.wall_s_high));
    let left = output::count(estimate.missing_blocks, "block");
    let line = format!("holds: {left} to compute, about {time} ({range}) and {disk} (exit 0)");
    let told = ToldEstimate {
        schema: "horolog.sweep-estimate/1",
        name: &plan.name,
        folder: folder.display().to_string(),
        estimate: &estimate,
    };
    let all = Points {
        about: "sweep",
        result: &told,
        standing: Standing::Holds,
        closing: &line,
        points: Vec::new(),
    };
    tell_points(&words.format, &all, || {
        outln!("{}: {} sets in {}", plan.name, estimate.sets, output::count(estimate.blocks, "block"));
        let workers = output::count(estimate.workers as u64, "worker");
        let tried = output::count(estimate.tried_sets, "set");
        let processor = seconds(estimate.processor_s);
        outln!(
            "time  {time} on {workers}, {range} likely; {processor} of processor time, by {tried} that were tried"
        );
        outln!("disk  {disk} in {}", folder.display());
        Ok(())
    })?;
    Ok(Verdict::Line(line, 0))
}

fn sweep(words: &SweepArguments, plan: &Plan, text: &str, folder: &Path) -> Done {
    // Blocks that the cluster computes are there when the folder is opened.
    let from_cluster = match &words.cluster {
        Some(address) => on_cluster(words, plan, text, folder, address)?,
        None => 0,
    };
    let (store, found) = Store::open(folder, plan, text, words.drop_others).map_err(Failure::bad_input)?;
    for path in &found.damaged {
        progress::say(format_args!("{} was damaged, and is computed again", path.display()));
    }
    let Found { mut rows, damaged, missing, foreign, .. } = found;
    if let Some(first) = foreign.first() {
        let count = output::count(foreign.len() as u64, "other file");
        progress::say(format_args!("{count} below rows left alone, as {}", first.display()));
    }
    let activity = Mutex::new(progress::Activity::start("sweeping"));
    let (begun, all) = (Instant::now(), missing.len());
    let done = |count: usize| {
        let left = begun.elapsed().as_secs_f64() / count as f64 * (all - count) as f64;
        let activity = activity.lock().unwrap_or_else(PoisonError::into_inner);
        activity.now(&format!("{count} of {all} blocks, about {} left", seconds(left)));
    };
    let stop = AtomicBool::new(false);
    let ran = run(plan, &store, &missing, usize::from(words.workers), &stop, &done);
    drop(activity);
    let computed = ran.rows.len() + from_cluster;
    if let Some(error) = ran.error {
        return Err(broken_off(&error, plan, folder));
    }
    rows.extend(ran.rows);
    let result = finish(plan, &store, &rows, computed, damaged.len());
    tell(words, plan, &result.map_err(|error| broken_off(&error, plan, folder))?)
}

/// Has the Python package compute the missing blocks on a cluster, and says how many these were.
fn on_cluster(
    words: &SweepArguments,
    plan: &Plan,
    text: &str,
    folder: &Path,
    address: &str,
) -> Result<usize, Failure> {
    let before = store::look(folder, plan).map_err(Failure::bad_input)?.rows.len();
    let python = std::env::var_os("HOROLOG_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(&python);
    command.args(["-m", "horolog._cluster", &input::name(&words.file), address]).arg(folder);
    command.args(words.drop_others.then_some("--drop-others")).stdin(Stdio::piped()).stderr(Stdio::piped());
    let shown = Path::new(&python);
    let failed = |error: std::io::Error| Failure::file("start", shown, &error);
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // Where it ends before it has read all, its status says why.
        let _ = stdin.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    let told = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(4) => return Err(Failure::undecided(format_args!("undecided: {} (exit 4)", told.trim_end()))),
        Some(2) => return Err(Failure::bad_input(told.trim_end())),
        _ => {
            return Err(Failure::bad_input(format_args!(
                "{} has no package `horolog`: {}\n  = help: install it (docs/concepts/python.md), or name another interpreter in HOROLOG_PYTHON",
                shown.display(),
                told.trim_end().lines().last().unwrap_or_default()
            )));
        }
    }
    let after = store::look(folder, plan).map_err(Failure::bad_input)?.rows.len();
    Ok(after.saturating_sub(before))
}

/// An error, and how far the sweep has come: what is in the folder now, which may be gone.
fn broken_off(error: &SweepError, plan: &Plan, folder: &Path) -> Failure {
    let all = plan.blocks().count();
    match store::look(folder, plan) {
        Ok(found) => Failure::bad_input(format_args!(
            "{error}\n  = help: {} of {all} blocks are kept; mend that and give the same command again",
            found.rows.len()
        )),
        Err(_) => Failure::bad_input(error),
    }
}

fn tell(words: &SweepArguments, plan: &Plan, told: &SweepResult) -> Done {
    let cells = output::count(plan.cells.len() as u64, "cell");
    let tests = output::count(plan.tests.len() as u64, "test");
    let sets = output::count(plan.sets * plan.cells.len() as u64, "set");
    let Blocks { computed, kept, .. } = told.blocks;
    let line = format!(
        "holds: {cells}, {sets} by {tests}; {} computed, {kept} were there (exit 0)",
        output::count(computed, "block")
    );
    let point = |cell: &CellSummary| Point {
        name: format!("{} {}", cell.cell, cell.recipe.utilisation),
        standing: Standing::Holds,
        text: String::new(),
    };
    let all = Points {
        about: "sweep",
        result: told,
        standing: Standing::Holds,
        closing: &line,
        points: told.summary.cells.iter().map(point).collect(),
    };
    tell_points(&words.format, &all, || {
        print(plan, told);
        Ok(())
    })?;
    Ok(Verdict::Line(line, 0))
}

fn print(plan: &Plan, told: &SweepResult) {
    let text = plan.cells.iter().map(|cell| cell.text()).collect::<Vec<_>>();
    let words: Vec<Vec<&str>> = text.iter().map(|text| text.split(' ').collect()).collect();
    // The values in which cells differ, and the utilisation always.
    let shown: Vec<usize> = (0..words[0].len())
        .filter(|&at| {
            words[0][at].starts_with("utilisation=") || words.iter().any(|one| one[at] != words[0][at])
        })
        .collect();
    let mut head: Vec<&str> =
        shown.iter().map(|&at| words[0][at].split('=').next().unwrap_or_default()).collect();
    head.extend(plan.tests.iter().map(|test| test.word()));
    let mut rows = output::table(&head, shown.len());
    for (cell, words) in told.summary.cells.iter().zip(&words).take(SHOWN) {
        let mut row: Vec<String> = shown
            .iter()
            .map(|&at| words[at].split_once('=').map_or(String::new(), |(_, value)| value.to_owned()))
            .collect();
        row.extend(cell.tests.iter().map(|test| share(test.ratio)));
        rows.add_row(row);
    }
    output::print(&rows);
    if words.len() > SHOWN {
        outln!(
            "… {} more in {}/sweep.json",
            output::count((words.len() - SHOWN) as u64, "cell"),
            told.folder
        );
    }
    for (place, test) in plan.tests.iter().enumerate().filter(|(_, test)| test.is_exact()) {
        let given_up = told.summary.cells.iter().map(|cell| cell.tests[place].unknown);
        let (sets, cells) =
            given_up.filter(|&sets| sets > 0).fold((0, 0), |(all, cells), sets| (all + sets, cells + 1));
        if sets > 0 {
            outln!(
                "{}: {} in {} were given up for their effort, and count as not met (`unknown` of the rows)",
                test.word(),
                output::count(sets, "set"),
                output::count(cells, "cell")
            );
        }
    }
    outln!();
    let mut rows = output::table(&["weighted schedulability", "cells", "value"], 2);
    for one in &told.summary.weighted {
        let group = if one.group.is_empty() { "all" } else { &one.group };
        rows.add_row([one.test, group, &share(one.value)]);
    }
    output::print(&rows);
    let (folder, drawings) = (&told.folder, told.drawings.join(", "));
    outln!("\nrows: {folder}/rows/*/*.parquet; page: {folder}/{}; drawings: {drawings}", told.page);
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}

fn seconds(value: f64) -> String {
    horolog_time::Span::from_ns((value * 1e9) as u64).rounded()
}

fn bytes(value: u64) -> String {
    match value {
        0..=999_999 => format!("{:.1} kB", value as f64 / 1e3),
        1_000_000..=999_999_999 => format!("{:.1} MB", value as f64 / 1e6),
        _ => format!("{:.1} GB", value as f64 / 1e9),
    }
}
