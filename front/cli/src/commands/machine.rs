//! `horolog measure machine`.

use crate::arguments::Format;
use crate::commands::run::stop_on_interrupt;
use crate::failure::{Done, Failure, Verdict};
use crate::measure_arguments::ProfileArguments;
use crate::output::outln;
use crate::{output, progress};
use horolog_closed_loop::{MachineMeasured, ProfilePlaces, measure_machine};
use horolog_measure::machine::{MachineProfile, RoundOptions};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(words: &ProfileArguments) -> Done {
    let path = match &words.out {
        Some(path) => path.clone(),
        None => ProfilePlaces::of_this_user().user.ok_or_else(|| {
            Failure::bad_input("error: there is no folder for state: neither XDG_STATE_HOME nor HOME is an absolute path\n  help: --out FILE")
        })?,
    };
    let options = options(words)?;
    let stop = stop_on_interrupt()?;
    let what =
        format!("measuring {}, some {}", output::count(options.cpus.len() as u64, "CPU"), options.length());
    let activity = progress::Activity::start(&what);
    let measured = measure_machine(&options, &stop, &mut |done| {
        activity.now(&format!("{what}: {} % done", done / 10));
    });
    drop(activity);
    let (profile, notes) = match measured.map_err(Failure::from)? {
        MachineMeasured::Profile(profile, notes) => (profile, notes),
        MachineMeasured::Disturbed(reason) => {
            return Err(Failure::undecided(format_args!(
                "undecided: no profile was written: {reason} (exit 4)\n  help: measure when the host is quieter, or other CPUs (`--cpu`)"
            )));
        }
    };
    write(&profile, &path)?;
    match words.format {
        Format::Json => output::json(&Written { profile: &profile, path: &path, notes: &notes })?,
        Format::Table => print(&profile, &path, &notes),
    }
    Ok(Verdict::Holds)
}

/// The result in JSON.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    profile: &'a MachineProfile,
    path: &'a PathBuf,
    notes: &'a [String],
}

fn options(words: &ProfileArguments) -> Result<RoundOptions, Failure> {
    let mut cpus = words.cpu.clone();
    if cpus.is_empty() {
        cpus = horolog_sys::affinity::allowed_cpus().map_err(Failure::not_permitted)?.as_slice().to_vec();
    }
    cpus.sort_unstable();
    cpus.dedup();
    let mut options = RoundOptions::careful(cpus);
    options.rounds = words.rounds;
    options.least = words.rounds.div_ceil(2);
    Ok(options)
}

/// Writes the profile beside its place first: a reader meanwhile finds the old one or the new one.
fn write(profile: &MachineProfile, path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file("write", path, &error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        // A device or a pipe is no file to be replaced.
        return std::fs::write(path, profile.to_toml()).map_err(failed);
    }
    let beside = folder.join(format!(".horolog-machine-{}", std::process::id()));
    let written = std::fs::File::create(&beside)
        .and_then(|mut file| file.write_all(profile.to_toml().as_bytes()))
        .and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written.map_err(failed)
}

fn print(profile: &MachineProfile, path: &Path, notes: &[String]) {
    let head =
        ["cost", "cpu", "value", "quantile", "samples", "longer", "longest", "rounds", "stolen", "held back"];
    let mut rows = output::table(&head, 1);
    for cost in &profile.costs {
        rows.add_row([
            cost.name.to_string(),
            cost.cpu.to_string(),
            output::span(cost.value),
            cost.quantile.to_string(),
            cost.samples.to_string(),
            cost.exceedances.to_string(),
            output::span(cost.longest),
            cost.rounds.to_string(),
            cost.stolen_rounds.to_string(),
            cost.held_back_rounds.to_string(),
        ]);
    }
    output::print(&rows);
    output::notes(notes);
    outln!("profile: {}", path.display());
}
