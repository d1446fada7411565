//! The machine's costs: what the file says, then what a profile says, then what is measured now, cost by cost.

use crate::LoopError;
use crate::machine::{MachineChoice, ProfileInUse, ProfilePlaces, find_profile};
#[cfg(feature = "run")]
use crate::machine::{MachineMeasured, measure_machine};
#[cfg(feature = "run")]
use horolog_measure::machine::RoundOptions;
use horolog_measure::machine::{CostName, MachineKey, MachineProfile, ProfileCost};
use horolog_model::{Cpus, PlatformCosts, System};
use horolog_time::Span;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Where a cost comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostOrigin {
    /// `[platform]` of the system file.
    File,
    /// A machine profile.
    Profile,
    /// Measured just before the proof.
    ThisMinute,
    /// Nowhere: it counts as zero.
    NotCounted,
}

/// One cost of the platform.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CostInUse {
    /// Which.
    pub name: CostName,
    /// What it counts as.
    pub value_ns: Span,
    /// Where it comes from.
    pub origin: CostOrigin,
    /// The samples that it is a quantile of; null where the file gives it or nothing does.
    pub measured: Option<ProfileCost>,
}

/// The costs with which a system is proved, and where each comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CostSource {
    /// In the order of [`CostName::ALL`].
    pub costs: Vec<CostInUse>,
    /// The profile's file; null where none is used.
    pub profile: Option<PathBuf>,
    /// Why costs count as zero; null where each is known.
    pub not_counted: Option<String>,
    /// What the reader must know: another machine's profile, the outliers of what was measured.
    pub notes: Vec<String>,
}

/// How costs are found.
#[derive(Clone, Debug)]
pub struct CostRequest<'a> {
    /// What the caller chose.
    pub choice: &'a MachineChoice,
    /// Whether they are measured where nothing was chosen and there is no profile.
    pub measures: bool,
    /// Ends the measuring early once it is set.
    pub stop: Option<&'a AtomicBool>,
}

impl CostSource {
    /// Those of the system file, what it leaves out counting as zero.
    #[must_use]
    pub fn of_file(system: &System, why: &str) -> CostSource {
        let of = |name| CostInUse {
            name,
            value_ns: given(system, name).unwrap_or(Span::ZERO),
            origin: if given(system, name).is_some() { CostOrigin::File } else { CostOrigin::NotCounted },
            measured: None,
        };
        let costs: Vec<CostInUse> = CostName::ALL.into_iter().map(of).collect();
        let is_any_missing = costs.iter().any(|cost| cost.origin == CostOrigin::NotCounted);
        CostSource {
            costs,
            profile: None,
            not_counted: is_any_missing.then(|| why.to_owned()),
            notes: Vec::new(),
        }
    }

    /// The cost of this name.
    #[must_use]
    pub fn cost(&self, name: CostName) -> &CostInUse {
        // One entry for each, in their order, by construction.
        &self.costs[name as usize]
    }

    /// Whether any comes from here.
    #[must_use]
    pub fn has(&self, origin: CostOrigin) -> bool {
        self.costs.iter().any(|cost| cost.origin == origin)
    }

    /// Where they come from, in words after "proved": `with machine.toml`, `with costs of this minute`, `with the
    /// costs of the file alone`, `without the machine's costs`;
    /// nothing where they are the file's own.
    #[must_use]
    pub fn in_words(&self) -> String {
        if self.has(CostOrigin::ThisMinute) {
            return "with costs of this minute".to_owned();
        }
        let file = self.profile.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
        match file {
            Some(file) if self.has(CostOrigin::Profile) => format!("with {file}"),
            _ if self.has(CostOrigin::NotCounted) && self.has(CostOrigin::File) => {
                "with the costs of the file alone".to_owned()
            }
            _ if self.has(CostOrigin::NotCounted) => "without the machine's costs".to_owned(),
            _ => String::new(),
        }
    }

    /// Takes these costs for what the system file leaves out.
    fn fill(&mut self, system: &System, costs: &[&ProfileCost], origin: CostOrigin) -> System {
        for cost in &mut self.costs {
            let found = costs.iter().find(|found| found.name == cost.name);
            if let (CostOrigin::NotCounted, Some(found)) = (cost.origin, found) {
                cost.value_ns = found.value;
                cost.origin = origin;
                cost.measured = Some((*found).clone());
            }
        }
        if !self.has(CostOrigin::NotCounted) {
            self.not_counted = None;
        }
        let counted = |name| {
            let cost = self.cost(name);
            (cost.origin != CostOrigin::NotCounted).then_some(cost.value_ns)
        };
        system.with_platform_costs(PlatformCosts {
            context_switch: counted(CostName::ContextSwitch),
            timer_interrupt: counted(CostName::TimerInterrupt),
            release_latency: counted(CostName::ReleaseLatency),
        })
    }
}

/// What the file says.
fn given(system: &System, name: CostName) -> Option<Span> {
    let platform = system.platform();
    match name {
        CostName::ContextSwitch => platform.context_switch,
        CostName::TimerInterrupt => platform.timer_interrupt,
        CostName::ReleaseLatency => platform.release_latency,
    }
}

/// The system with every cost that is known, and where each comes from. A cost that the file gives stays; one that a profile gives
/// goes before one that is measured.
///
/// # Errors
/// Where a profile cannot be read, a named one lacks a CPU of the system, the costs are to be measured of a file that names no
/// processor of this machine or without the right for SCHED_FIFO, or the measuring was stopped ([`LoopError::is_stopped`]).
#[cfg(feature = "run")]
pub fn with_costs(
    system: &System,
    request: &CostRequest<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<(System, CostSource), LoopError> {
    let places = ProfilePlaces::of_this_user();
    let here = MachineKey::of_this_machine();
    let measure_now = &mut |cpus: &[u32]| measure_now(cpus, request.stop, progress);
    resolve_costs(system, request, &places, &here, measure_now)
}

/// The same where nothing knows this machine: a profile counts where the caller names it.
///
/// # Errors
/// Where the profile cannot be read or lacks a CPU of the system, or the costs are to be measured of a file that names no processor.
#[cfg(not(feature = "run"))]
pub fn with_costs(
    system: &System,
    request: &CostRequest<'_>,
    _progress: &mut dyn FnMut(&str),
) -> Result<(System, CostSource), LoopError> {
    let here = MachineKey::of_values(["unknown"; 5].map(str::to_owned));
    let measure_now = &mut |_: &[u32]| Ok(Now::Unknown("this build has no run-time code".to_owned()));
    resolve_costs(system, request, &ProfilePlaces::default(), &here, measure_now)
}

/// The costs of this minute.
enum Now {
    #[cfg_attr(not(feature = "run"), expect(dead_code, reason = "nothing is measured without it"))]
    Costs(Box<MachineProfile>, Vec<String>),
    Unknown(String),
}

fn resolve_costs(
    system: &System,
    request: &CostRequest<'_>,
    places: &ProfilePlaces,
    here: &MachineKey,
    measure_now: &mut dyn FnMut(&[u32]) -> Result<Now, LoopError>,
) -> Result<(System, CostSource), LoopError> {
    let mut notes = Vec::new();
    let is_real = matches!(system.platform().cpus, Cpus::Listed(_));
    let cpus: Vec<u32> =
        if is_real { system.platform().cpus.iter().map(|cpu| cpu.0).collect() } else { Vec::new() };
    let mut source = CostSource::of_file(system, "");
    // A named profile is read in any case: a broken one must not pass.
    let is_asked = is_real && source.has(CostOrigin::NotCounted);
    let profile = match request.choice {
        MachineChoice::Default if !is_asked => None,
        choice => find_profile(choice, places, here, &mut notes)?,
    };
    if !source.has(CostOrigin::NotCounted) {
        source.notes = notes;
        return Ok((system.clone(), source));
    }
    if let Some(found) = profile
        && let Some(costs) = costs_of(&found, &source, &cpus, &mut notes)?
    {
        let filled = source.fill(system, &costs, CostOrigin::Profile);
        source.profile = Some(found.path.clone());
        source.notes = notes;
        return Ok((filled, source));
    }
    let reason = match (request.choice, is_real) {
        (MachineChoice::None, _) => "`--machine none` asks for that".to_owned(),
        (MachineChoice::Measure, false) => {
            let remedy = "write `cpus = [1]` into [platform], or name a profile";
            return Err(LoopError::bad_input(format_args!(
                "`--machine measure`: the file names no processor of this machine\n  help: {remedy}"
            )));
        }
        (_, false) => "the file names no processor of this machine".to_owned(),
        (MachineChoice::Default, true) if !request.measures => {
            "neither the file nor a profile of this machine gives them (`horolog measure machine` makes one)"
                .to_owned()
        }
        (_, true) => match measure_now(&cpus)? {
            Now::Costs(profile, more) => {
                notes.extend(more);
                let asked: Vec<CostName> = not_counted(&source);
                let costs: Vec<&ProfileCost> =
                    asked.into_iter().filter_map(|name| profile.greatest(name, &cpus).ok()).collect();
                notes.extend(costs.iter().map(|cost| format!("this minute {}", cost.outliers())));
                let filled = source.fill(system, &costs, CostOrigin::ThisMinute);
                source.notes = notes;
                return Ok((filled, source));
            }
            Now::Unknown(reason) => reason,
        },
    };
    source.not_counted = Some(reason);
    source.notes = notes;
    Ok((system.clone(), source))
}

fn not_counted(source: &CostSource) -> Vec<CostName> {
    let missing = source.costs.iter().filter(|cost| cost.origin == CostOrigin::NotCounted);
    missing.map(|cost| cost.name).collect()
}

/// What a profile says of what is missing. `None`: it is a default one and lacks a CPU.
fn costs_of<'a>(
    found: &'a ProfileInUse,
    source: &CostSource,
    cpus: &[u32],
    notes: &mut Vec<String>,
) -> Result<Option<Vec<&'a ProfileCost>>, LoopError> {
    let mut costs = Vec::new();
    for name in not_counted(source) {
        let missing = match found.profile.greatest(name, cpus) {
            Ok(cost) => {
                costs.push(cost);
                continue;
            }
            Err(missing) => missing,
        };
        let list: Vec<String> = missing.iter().map(u32::to_string).collect();
        let (path, list) = (found.path.display(), list.join(","));
        let of = if list.is_empty() { String::new() } else { format!(" of cpu {list}") };
        let lack = format!("the machine profile {path} has no {name}{of}");
        if found.is_explicit {
            let remedy = "`horolog measure machine` finds the costs of every CPU";
            return Err(LoopError::bad_input(format_args!("{lack}\n  help: {remedy}")));
        }
        notes.push(format!("{lack}: it is not used"));
        return Ok(None);
    }
    Ok(Some(costs))
}

/// Measures now. Costs under normal scheduling hold other threads' time, so without SCHED_FIFO they are unknown.
#[cfg(feature = "run")]
fn measure_now(
    cpus: &[u32],
    stop: Option<&AtomicBool>,
    progress: &mut dyn FnMut(&str),
) -> Result<Now, LoopError> {
    let never = AtomicBool::new(false);
    let told = &mut |done: u64| progress(&format!("{} % done", done / 10));
    match measure_machine(&RoundOptions::quick(cpus.to_vec()), stop.unwrap_or(&never), told) {
        Ok(MachineMeasured::Profile(profile, notes)) => Ok(Now::Costs(profile, notes)),
        Ok(MachineMeasured::Disturbed(reason)) => {
            Ok(Now::Unknown(format!("they could not be measured: {reason}")))
        }
        Err(error) if error.is_not_permitted() => Ok(Now::Unknown(format!(
            "they were not measured, since costs under normal scheduling hold other threads' time: {error}"
        ))),
        Err(error) if error.is_stopped() => Err(LoopError::stopped(
            "stopped while the machine's costs were measured: nothing was proved, simulated or run",
        )),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use horolog_measure::machine::Quantile;

    /// A profile of CPUs 1 and 2, the second one dearer.
    pub(crate) fn profile() -> MachineProfile {
        let cost = |name: CostName, cpu: u32| ProfileCost {
            name,
            cpu,
            value: Span::from_ns(1_000 * u64::from(cpu) * (1 + name as u64)),
            quantile: name.quantile(),
            samples: 5_000,
            exceedances: 5,
            longest: Span::from_ns(130_000),
            rounds: 5,
            stolen_rounds: 0,
            held_back_rounds: 0,
        };
        MachineProfile {
            schema: MachineProfile::SCHEMA,
            measured: "2026-11-25 18:00:00 UTC".to_owned(),
            horolog: "0.1.0".to_owned(),
            machine: MachineKey::of_values(["cpu", "6.18", "quiet", "none", "none"].map(str::to_owned)),
            costs: CostName::ALL.into_iter().flat_map(|name| [cost(name, 1), cost(name, 2)]).collect(),
        }
    }

    fn system(platform: &str) -> System {
        let text = format!(
            "[system]\nname = \"one\"\n[platform]\n{platform}\n[[task]]\nname = \"a\"\ncpu = 1\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n"
        );
        horolog_model::file::read(&text, "one.toml", &[]).expect("valid").0
    }

    /// The costs in nanoseconds with their origins, the reason and the notes, where this minute's costs are ten times as high.
    fn resolved(
        system: &System,
        choice: &MachineChoice,
        measures: bool,
        places: &ProfilePlaces,
        here: &MachineKey,
    ) -> Result<CostSource, LoopError> {
        let request = CostRequest { choice, measures, stop: None };
        let measure_now = &mut |_: &[u32]| {
            let mut now = profile();
            now.costs.iter_mut().for_each(|cost| cost.value = Span::from_ns(10 * cost.value.as_ns()));
            Ok(Now::Costs(Box::new(now), Vec::new()))
        };
        let (filled, source) = resolve_costs(system, &request, places, here, measure_now)?;
        // What is said is what the system has.
        for cost in &source.costs {
            let is_counted = cost.origin != CostOrigin::NotCounted;
            assert_eq!(super::given(&filled, cost.name), is_counted.then_some(cost.value_ns));
        }
        Ok(source)
    }

    fn values(source: &CostSource) -> Vec<(u64, CostOrigin)> {
        source.costs.iter().map(|cost| (cost.value_ns.as_ns(), cost.origin)).collect()
    }

    use CostOrigin::{File, NotCounted, Profile, ThisMinute};

    #[test]
    fn the_file_goes_before_the_profile_cost_by_cost() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("machine.toml");
        std::fs::write(&path, profile().to_toml()).expect("written");
        let places = ProfilePlaces { user: Some(path.clone()), system: None };
        let here = profile().machine;
        let of = |platform: &str| {
            resolved(&system(platform), &MachineChoice::Default, true, &places, &here).expect("costs")
        };
        let found = of("cpus = [1]\ntimer_interrupt = \"7 us\"");
        assert_eq!(values(&found), [(1_000, Profile), (7_000, File), (3_000, Profile)]);
        assert_eq!((found.in_words().as_str(), found.not_counted.clone()), ("with machine.toml", None));
        assert_eq!(
            found.cost(CostName::ReleaseLatency).measured.as_ref().map(|cost| cost.quantile),
            Some(Quantile::P99_9)
        );
        // A platform has one number: the greatest of its CPUs.
        assert_eq!(values(&of("cpus = [1, 2]")), [(2_000, Profile), (4_000, Profile), (6_000, Profile)]);
        let all =
            "cpus = [1]\ntimer_interrupt = \"7 us\"\ncontext_switch = \"0 us\"\nrelease_latency = \"9 us\"";
        let found = of(all);
        assert_eq!(values(&found), [(0, File), (7_000, File), (9_000, File)]);
        assert_eq!((found.profile.clone(), found.in_words().as_str()), (None, ""));
        // A CPU that the profile does not have: measured now, and said.
        let found = of("cpus = [1, 3]");
        assert!(found.notes[0].contains("has no context_switch of cpu 3: it is not used"), "{found:?}");
        let named = MachineChoice::File(path);
        let error = resolved(&system("cpus = [1, 3]"), &named, true, &places, &here).expect_err("refused");
        assert!(
            error.is_bad_input() && error.to_string().contains("has no context_switch of cpu 3"),
            "{error}"
        );
        // A file that names no CPU of this machine takes the greatest of all, from a named profile alone.
        let found = resolved(&system("cpus = 2"), &named, true, &places, &here).expect("costs");
        assert_eq!(values(&found), [(2_000, Profile), (4_000, Profile), (6_000, Profile)]);
        assert_eq!(values(&of("cpus = 2")), [(0, NotCounted), (0, NotCounted), (0, NotCounted)]);
    }

    #[test]
    fn without_a_profile_the_loop_measures_and_others_count_nothing() {
        let (places, here) = (ProfilePlaces::default(), profile().machine);
        let of = |choice, measures| {
            resolved(&system("cpus = [1]\nrelease_latency = \"9 us\""), &choice, measures, &places, &here)
                .expect("costs")
        };
        let now = of(MachineChoice::Default, true);
        assert_eq!(values(&now), [(10_000, ThisMinute), (20_000, ThisMinute), (9_000, File)]);
        assert_eq!(now.in_words(), "with costs of this minute");
        assert_eq!(now.notes.len(), 2, "{now:?}");
        assert!(now.notes[1].contains("5 were longer, the longest 130 us"), "{now:?}");
        let none = of(MachineChoice::Default, false);
        assert_eq!(values(&none), [(0, NotCounted), (0, NotCounted), (9_000, File)]);
        assert!(none.not_counted.is_some_and(|why| why.contains("horolog measure machine")));
        assert_eq!(values(&of(MachineChoice::Measure, false)), values(&now));
        let none = of(MachineChoice::None, true);
        assert_eq!(values(&none), [(0, NotCounted), (0, NotCounted), (9_000, File)]);
        assert_eq!(none.not_counted.as_deref(), Some("`--machine none` asks for that"));
        let error = resolved(&system("cpus = 2"), &MachineChoice::Measure, true, &places, &here)
            .expect_err("refused");
        assert!(error.is_bad_input());
    }

    #[test]
    fn what_cannot_be_measured_is_unknown_and_a_stop_ends_it() {
        let request = CostRequest { choice: &MachineChoice::Default, measures: true, stop: None };
        let (places, here) = (ProfilePlaces::default(), profile().machine);
        let unknown = &mut |_: &[u32]| Ok(Now::Unknown("no right".to_owned()));
        let (filled, source) =
            resolve_costs(&system("cpus = [1]"), &request, &places, &here, unknown).expect("an answer");
        assert_eq!(filled, system("cpus = [1]"));
        assert_eq!(
            (source.not_counted.as_deref(), source.in_words().as_str()),
            (Some("no right"), "without the machine's costs")
        );
        let stopped = &mut |_: &[u32]| Err(LoopError::stopped("stopped"));
        let error =
            resolve_costs(&system("cpus = [1]"), &request, &places, &here, stopped).expect_err("stopped");
        assert!(error.is_stopped() && !error.is_bad_input());
    }
}
