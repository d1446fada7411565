//! Which machine profile counts, and where it lies.

use crate::LoopError;
#[cfg(feature = "run")]
use horolog_measure::costs::MachineSource;
use horolog_measure::machine::{MachineKey, MachineProfile, read};
#[cfg(feature = "run")]
use horolog_measure::machine::{Measured, RoundOptions, measure};
use std::path::{Path, PathBuf};
#[cfg(feature = "run")]
use std::sync::atomic::AtomicBool;

/// The profile of all users of a machine, below that of the user.
pub const SYSTEM_PROFILE: &str = "/var/lib/horolog/machine.toml";

/// Where the costs come from that the system file leaves out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum MachineChoice {
    /// The user's profile of this machine, else the system's; what there is without one is the caller's.
    #[default]
    Default,
    /// This profile, of whatever machine.
    File(PathBuf),
    /// They are measured now.
    Measure,
    /// Nowhere: they count as zero.
    None,
}

impl MachineChoice {
    /// `measure`, `none`, or a file's path (a file that is called `none` is `./none`).
    #[must_use]
    pub fn of_text(text: &str) -> MachineChoice {
        match text {
            "measure" => MachineChoice::Measure,
            "none" => MachineChoice::None,
            path => MachineChoice::File(PathBuf::from(path)),
        }
    }
}

/// The places of the default profiles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProfilePlaces {
    /// The user's.
    pub user: Option<PathBuf>,
    /// The system's.
    pub system: Option<PathBuf>,
}

impl ProfilePlaces {
    /// `horolog/machine.toml` below `$XDG_STATE_HOME`, or below `.local/state` of the home folder; then [`SYSTEM_PROFILE`].
    #[must_use]
    pub fn of_this_user() -> ProfilePlaces {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
        let user = state.map(|state| state.join("horolog/machine.toml"));
        ProfilePlaces { user, system: Some(PathBuf::from(SYSTEM_PROFILE)) }
    }
}

/// A profile that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProfileInUse {
    /// Its file.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) profile: MachineProfile,
    /// Whether the caller named it.
    pub(crate) is_explicit: bool,
}

/// The result of measuring a machine.
#[cfg(feature = "run")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MachineMeasured {
    /// Its profile, and what could not be watched meanwhile.
    Profile(Box<MachineProfile>, Vec<String>),
    /// Too few rounds were undisturbed; why.
    Disturbed(String),
}

/// Measures this machine; `progress` hears of the thousandths that are done.
///
/// # Errors
/// Where SCHED_FIFO is not allowed, a CPU is not there, or the flag was set ([`LoopError::is_stopped`]).
#[cfg(feature = "run")]
pub fn measure_machine(
    options: &RoundOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64),
) -> Result<MachineMeasured, LoopError> {
    let mut source = MachineSource::start(&options.cpus)?;
    match measure(options, &mut source, stop, progress)? {
        Measured::Costs(costs) => {
            let profile = MachineProfile {
                schema: MachineProfile::SCHEMA,
                measured: crate::date::now(),
                horolog: env!("CARGO_PKG_VERSION").to_owned(),
                machine: MachineKey::of_this_machine(),
                costs,
            };
            Ok(MachineMeasured::Profile(Box::new(profile), source.notes()))
        }
        Measured::Disturbed(reason) => Ok(MachineMeasured::Disturbed(reason)),
        Measured::Stopped => Err(LoopError::stopped("stopped while measuring: no profile was written")),
    }
}

/// Reads one profile.
///
/// # Errors
/// Where it cannot be read or is none; with place and remedy.
pub fn read_profile(path: &Path) -> Result<MachineProfile, LoopError> {
    let text = horolog_model::file::read_text(path).map_err(|error| {
        let remedy = "`horolog measure machine --out FILE` writes a profile";
        LoopError::bad_input(format_args!(
            "cannot read the machine profile {}: {error}\n  help: {remedy}",
            path.display()
        ))
    })?;
    read(&text, &path.display().to_string()).map_err(LoopError::bad_input)
}

/// The profile that counts. One that the caller names counts whatever machine it is of, with a note; a default one only where it
/// is of `here`, else the next one is looked at. `notes` hear of what differs.
///
/// # Errors
/// Where a named profile cannot be read, or any is no profile.
pub(crate) fn find_profile(
    choice: &MachineChoice,
    places: &ProfilePlaces,
    here: &MachineKey,
    notes: &mut Vec<String>,
) -> Result<Option<ProfileInUse>, LoopError> {
    let named = match choice {
        MachineChoice::File(path) => path,
        MachineChoice::Default => return default_profile(places, here, notes),
        MachineChoice::Measure | MachineChoice::None => return Ok(None),
    };
    let profile = read_profile(named)?;
    let differs = profile.machine.differences(here);
    if !differs.is_empty() {
        notes.push(format!(
            "{} is the profile of another machine, used because `--machine` names it: {}",
            named.display(),
            differs.join("; ")
        ));
    }
    Ok(Some(ProfileInUse { path: named.clone(), profile, is_explicit: true }))
}

fn default_profile(
    places: &ProfilePlaces,
    here: &MachineKey,
    notes: &mut Vec<String>,
) -> Result<Option<ProfileInUse>, LoopError> {
    for path in [&places.user, &places.system].into_iter().flatten() {
        match std::fs::metadata(path) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                notes.push(format!("the machine profile {} is not used: {error}", path.display()));
                continue;
            }
        }
        let profile = read_profile(path)?;
        let differs = profile.machine.differences(here);
        if differs.is_empty() {
            return Ok(Some(ProfileInUse { path: path.clone(), profile, is_explicit: false }));
        }
        notes.push(format!(
            "the machine profile {} is of another machine and not used: {}; `horolog measure machine` makes one of this",
            path.display(),
            differs.join("; ")
        ));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::tests::profile;

    fn here(kernel: &str) -> MachineKey {
        MachineKey { kernel: kernel.to_owned(), ..profile().machine }
    }

    fn places(folder: &Path) -> ProfilePlaces {
        ProfilePlaces { user: Some(folder.join("user.toml")), system: Some(folder.join("system.toml")) }
    }

    #[test]
    fn the_users_profile_goes_before_the_systems_and_the_named_one_before_both() {
        let folder = tempfile::tempdir().expect("a folder");
        let places = places(folder.path());
        let found = |choice: &MachineChoice| {
            let mut notes = Vec::new();
            let profile = find_profile(choice, &places, &profile().machine, &mut notes).expect("readable");
            (profile.map(|profile| profile.path), notes)
        };
        assert_eq!(found(&MachineChoice::Default), (None, Vec::new()));
        let write = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, profile().to_toml()).expect("written");
            path
        };
        let system = write("system.toml");
        assert_eq!(found(&MachineChoice::Default).0, Some(system));
        let user = write("user.toml");
        assert_eq!(found(&MachineChoice::Default), (Some(user), Vec::new()));
        let own = write("own.toml");
        assert_eq!(found(&MachineChoice::File(own.clone())), (Some(own), Vec::new()));
        assert_eq!(found(&MachineChoice::None).0, None);
        assert_eq!(found(&MachineChoice::Measure).0, None);
    }

    #[test]
    fn another_machines_profile_is_used_only_where_it_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let places = places(folder.path());
        let path = folder.path().join("user.toml");
        std::fs::write(&path, profile().to_toml()).expect("written");
        let mut notes = Vec::new();
        let found =
            find_profile(&MachineChoice::Default, &places, &here("9.9"), &mut notes).expect("readable");
        assert_eq!(found, None);
        assert!(
            notes[0].contains("is of another machine and not used: kernel `6.18` there, `9.9` here"),
            "{notes:?}"
        );
        let named = MachineChoice::File(path);
        let found =
            find_profile(&named, &places, &here("9.9"), &mut notes).expect("readable").expect("it is used");
        assert!(found.is_explicit);
        assert!(
            notes[1].contains("used because `--machine` names it: kernel `6.18` there, `9.9` here"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_broken_profile_is_an_error_and_a_missing_named_one_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let places = places(folder.path());
        std::fs::write(folder.path().join("system.toml"), "schema = 1\n").expect("written");
        let said = |choice: &MachineChoice| {
            let error = find_profile(choice, &places, &here("6.18"), &mut Vec::new()).expect_err("refused");
            assert!(error.is_bad_input());
            error.to_string()
        };
        assert!(said(&MachineChoice::Default).contains("system.toml:1:10"));
        let missing = MachineChoice::File(folder.path().join("none.toml"));
        assert!(said(&missing).contains("horolog measure machine --out FILE"));
    }

    #[test]
    fn words_choose() {
        assert_eq!(MachineChoice::of_text("none"), MachineChoice::None);
        assert_eq!(MachineChoice::of_text("measure"), MachineChoice::Measure);
        assert_eq!(MachineChoice::of_text("./none"), MachineChoice::File("./none".into()));
    }
}
