//! What this machine allows: each facility tried, what it is needed for, and what to do where it is missing.
//!
//! Pure data; the command prints it. A facility that could not be examined is `unknown` with the reason, never a guess.

mod isolation;
mod purpose;
mod resources;
mod scheduling;
mod timing;
mod tracing;

pub use purpose::{Purpose, Remedy, Suitability};

use crate::machine::MachineKey;
use horolog_sys::Error;
use horolog_sys::machine::{architecture, kernel_release, kernel_version, read, tick_hz};
use horolog_time::Span;
use serde::Serialize;
use std::collections::BTreeMap;

/// Whether a facility is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there.
    Yes,
    /// It is not.
    No,
    /// It is there with a limit that the detail names.
    Limited,
    /// It could not be examined; the detail says why.
    Unknown,
}

/// One fact about the machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// The facility, as scripts look it up: lower case with hyphens.
    pub name: &'static str,
    /// Whether it is there.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What horolog needs it for.
    pub needed_for: &'static str,
    /// What to do where it is missing; null where nothing is missing.
    pub remedy: Option<String>,
}

/// A time that the kernel gives as a number of units, as `950 ms`; a text that is none stays as it is.
fn in_words(number: &str, unit_ns: u64, unit: &str) -> String {
    let number = number.trim();
    let span = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ns)).map(Span::from_ns);
    span.map_or_else(|| format!("{number} {unit}"), |span| span.to_string())
}

impl Fact {
    fn new(name: &'static str, needed_for: &'static str, state: State, detail: impl Into<String>) -> Fact {
        Fact { name, state, detail: detail.into(), needed_for, remedy: None }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Fact {
        if self.state != State::Yes {
            self.remedy = Some(remedy.into());
        }
        self
    }

    /// The outcome of a try: an error that is no refusal makes it unknown.
    fn tried(name: &'static str, needed_for: &'static str, outcome: Result<String, Error>) -> Fact {
        match outcome {
            Ok(detail) => Fact::new(name, needed_for, State::Yes, detail),
            Err(error) => {
                let state = if error.is_not_permitted() { State::No } else { State::Unknown };
                let remedy = error.remedy().to_owned();
                let fact = Fact::new(name, needed_for, state, error.what());
                if remedy.is_empty() { fact } else { fact.remedy(remedy) }
            }
        }
    }
}

/// All facts: the JSON result `horolog.doctor/1`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Doctor {
    /// Always `horolog.doctor/1`.
    pub schema: &'static str,
    /// The facts, by subject.
    pub facts: Vec<Fact>,
}

impl Doctor {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.doctor/1";

    /// The fact of this name.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.name == name)
    }

    /// Whether `horolog run` can run real-time threads here; without, only `--best-effort`.
    #[must_use]
    pub fn allows_run(&self) -> bool {
        self.suits(Purpose::Run).possible
    }
}

/// Examines the machine. Takes some 10 ms; changes nothing.
///
/// ```
/// let doctor = horolog_measure::doctor::examine();
/// assert!(doctor.fact("kernel").unwrap().detail.contains("Linux"));
/// ```
#[must_use]
pub fn examine() -> Doctor {
    let mut facts = vec![kernel()];
    facts.extend(scheduling::facts());
    facts.extend(timing::facts());
    facts.extend(isolation::facts());
    facts.extend(tracing::facts());
    facts.extend(resources::facts());
    Doctor { schema: Doctor::SCHEMA, facts }
}

/// The machine in a few words a line, for the header of a trace and the foot of a report.
#[must_use]
pub fn identity() -> BTreeMap<String, String> {
    let mut identity = BTreeMap::new();
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            identity.insert(key.to_owned(), value);
        }
    };
    put("kernel", Some(format!("{} {}", kernel_release(), kernel_version())));
    put("architecture", Some(architecture()));
    put("processor", cpuinfo("model name"));
    put("preemption", Some(scheduling::preemption_model()));
    put("tick_hz", tick_hz().map(|hz| hz.to_string()));
    put("clocksource", read(timing::CLOCKSOURCE).ok());
    put("cpus", read("/sys/devices/system/cpu/online").ok());
    put("isolated", read("/sys/devices/system/cpu/isolated").ok());
    put("virtual", Some(if timing::is_virtual() { "yes" } else { "no sign of it" }.to_owned()));
    put("governor", timing::governors().ok().map(|governors| governors.join(", ")));
    put("rt_runtime_us", read("/proc/sys/kernel/sched_rt_runtime_us").ok());
    identity
}

/// What this machine's costs depend on.
pub(crate) fn machine_key() -> MachineKey {
    let known = |value: Option<String>| {
        let value = value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
        value.filter(|value| !value.is_empty()).unwrap_or_else(|| "unknown".to_owned())
    };
    let governor = match timing::governors() {
        Ok(governors) if governors.is_empty() => Some("none".to_owned()),
        governors => governors.ok().map(|governors| governors.join(", ")),
    };
    // Some architectures give no model name.
    let processor = cpuinfo("model name").or_else(|| cpuinfo("CPU part")).or_else(|| Some(architecture()));
    MachineKey {
        processor: known(processor),
        kernel: known(Some(kernel_release())),
        command_line: known(read("/proc/cmdline").ok()),
        hypervisor: timing::hypervisor().unwrap_or_else(|| "none".to_owned()),
        governor: known(governor),
    }
}

fn kernel() -> Fact {
    let detail = format!("Linux {} {} {}", kernel_release(), kernel_version(), architecture());
    Fact::new("kernel", "everything below depends on it", State::Yes, detail)
}

/// The first value of a key in `/proc/cpuinfo`.
fn cpuinfo(key: &str) -> Option<String> {
    let text = read("/proc/cpuinfo").ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

/// The value of a word `key=value` on the kernel's command line.
fn command_line(key: &str) -> Option<String> {
    let text = read("/proc/cmdline").ok()?;
    text.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_the_kernel_has_the_unit_that_fits() {
        assert_eq!(in_words("950000\n", 1_000, "us"), "950 ms");
        assert_eq!(in_words("1500", 1, "ns"), "1.5 us");
        assert_eq!(in_words("18446744073709552", 1_000, "us"), "18446744073709552 us", "beyond 64 bits");
        assert_eq!(in_words("max", 1_000, "us"), "max us");
    }

    #[test]
    fn every_fact_has_a_name_of_its_own_and_a_reason() {
        let doctor = examine();
        let mut names: Vec<&str> = doctor.facts.iter().map(|fact| fact.name).collect();
        assert!(names.len() >= 20, "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), doctor.facts.len(), "names repeat");
        for fact in &doctor.facts {
            assert!(!fact.detail.is_empty() && !fact.needed_for.is_empty(), "{fact:?}");
            let named_well =
                fact.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            assert!(named_well, "{}", fact.name);
            assert!(fact.state != State::No || fact.remedy.is_some(), "no remedy: {fact:?}");
            assert!(fact.state != State::Yes || fact.remedy.is_none(), "{fact:?}");
        }
        let json = serde_json::to_value(&doctor).unwrap();
        assert_eq!(json["schema"], "horolog.doctor/1");
        assert_eq!(json["facts"][0]["state"], "yes");
    }

    #[test]
    fn the_state_of_a_try_follows_its_error() {
        let tried = |outcome| Fact::tried("x", "y", outcome);
        assert_eq!(tried(Ok("fine".to_owned())).state, State::Yes);
        let refused = tried(Err(Error::os("call", 1, "be root")));
        assert_eq!((refused.state, refused.remedy.as_deref()), (State::No, Some("be root")));
        assert_eq!(tried(Err(Error::unexpected("call", "nonsense", ""))).state, State::Unknown);
    }

    #[test]
    fn the_identity_names_kernel_and_clock() {
        let identity = identity();
        assert!(identity["kernel"].contains(&kernel_release()));
        assert!(identity.contains_key("preemption"));
    }
}
