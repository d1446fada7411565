//! The result: shares by length, fitted bounds, and the entry of a system file.

use super::configuration::Phase;
use super::statistics::{Row, Statistic, rows};
use super::store::{Reading, Store};
use horolog_analysis::load_bound::{FitError, LoadSample, fit};
use horolog_sys::rights::RECORDING;
use horolog_time::Span;
use serde::Serialize;
use std::fmt::Write as _;

/// Which share a bound is fitted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Baseline {
    /// Everything seen under the load: the load and what the idle machine takes anyway.
    Included,
    /// The load less the idle machine, length by length: the load alone.
    Subtracted,
    /// The idle machine alone.
    Idle,
}

impl Baseline {
    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Included => "included",
            Baseline::Subtracted => "subtracted",
            Baseline::Idle => "idle",
        }
    }
}

/// A hyperbolic load bound fitted to a statistic.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FittedBound {
    /// To which number of each length.
    pub statistic: Statistic,
    /// To which share.
    pub baseline: Baseline,
    /// u, parts per billion.
    pub utilisation_ppb: u64,
    /// p.
    pub period_ns: Span,
    /// e = u·p, rounded up: the longest window that is filled.
    pub execution_ns: Span,
    /// The window lengths at which the bound touches the data.
    pub touches_ns: Vec<Span>,
}

/// A statistic that has no bound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unfitted {
    /// Which number.
    pub statistic: Statistic,
    /// Which share.
    pub baseline: Baseline,
    /// Why.
    pub reason: String,
}

/// What was seen in one phase.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PhaseSummary {
    /// Under what.
    pub phase: Phase,
    /// Stretches that count.
    pub stretches: u64,
    /// Stretches left out because the kernel held a real-time thread back (RT throttling, the fair server).
    pub held_back: u64,
    /// The longest gap in those.
    pub held_back_longest_ns: Span,
    /// Stretches of which that could not be counted; they count.
    pub unwatched: u64,
    /// What the hypervisor took during the stretches that count; null where the kernel does not say.
    pub stolen_ns: Option<Span>,
    /// The longest gap in the stretches that count.
    pub longest_gap_ns: Span,
    /// One a length.
    pub lengths: Vec<Row>,
}

/// The JSON result `horolog.interference/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// Always `horolog.interference/1`.
    pub schema: &'static str,
    /// On which CPU.
    pub cpu: u32,
    /// The probe's SCHED_FIFO priority.
    pub priority: u8,
    /// The probe's θ.
    pub threshold_ns: Span,
    /// How long it looked at a time.
    pub stretch_ns: Span,
    /// The phases measured so far.
    pub phases: Vec<PhaseSummary>,
    /// The bounds.
    pub fits: Vec<FittedBound>,
    /// What could not be fitted, and why.
    pub unfitted: Vec<Unfitted>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// Sums a store up and fits all bounds.
#[must_use]
pub fn summarise(store: &Store) -> Measured {
    let configuration = store.configuration();
    let mut measured = Measured {
        schema: Measured::SCHEMA,
        cpu: configuration.cpu,
        priority: configuration.priority,
        threshold_ns: Span::from_ns(configuration.threshold_ns),
        stretch_ns: Span::from_ns(configuration.stretch_ns),
        phases: [Phase::Idle, Phase::Load].into_iter().filter_map(|phase| of_phase(store, phase)).collect(),
        fits: Vec::new(),
        unfitted: Vec::new(),
        notes: Vec::new(),
    };
    for baseline in [Baseline::Included, Baseline::Subtracted, Baseline::Idle] {
        for statistic in Statistic::ALL {
            match measured.samples(statistic, baseline).map(|samples| fitted(&samples, statistic, baseline)) {
                Some(Ok(bound)) => measured.fits.push(bound),
                Some(Err(reason)) => {
                    measured.unfitted.push(Unfitted { statistic, baseline, reason: reason.to_string() })
                }
                None => {}
            }
        }
    }
    measured.notes = notes(&measured);
    measured
}

fn of_phase(store: &Store, phase: Phase) -> Option<PhaseSummary> {
    let is_held_back = |reading: &&Reading| reading.disturbance.held_back.is_some_and(|count| count > 0);
    let (left_out, counted): (Vec<&Reading>, Vec<&Reading>) = store.readings(phase).partition(is_held_back);
    if left_out.is_empty() && counted.is_empty() {
        return None;
    }
    let longest = |readings: &[&Reading]| {
        Span::from_ns(readings.iter().map(|reading| reading.longest_gap_ns).max().unwrap_or(0))
    };
    let stolen: Vec<u64> = counted.iter().filter_map(|reading| reading.disturbance.stolen_ns).collect();
    Some(PhaseSummary {
        phase,
        stretches: counted.len() as u64,
        held_back: left_out.len() as u64,
        held_back_longest_ns: longest(&left_out),
        unwatched: counted.iter().filter(|reading| reading.disturbance.held_back.is_none()).count() as u64,
        stolen_ns: (!stolen.is_empty())
            .then(|| Span::from_ns(stolen.iter().fold(0, |sum, ns| sum.saturating_add(*ns)))),
        longest_gap_ns: longest(&counted),
        lengths: rows(&store.configuration().lengths_ns, &counted),
    })
}

fn fitted(samples: &[LoadSample], statistic: Statistic, baseline: Baseline) -> Result<FittedBound, FitError> {
    let fit = fit(samples)?;
    let execution = fit.load.execution().ceil().to_integer();
    Ok(FittedBound {
        statistic,
        baseline,
        utilisation_ppb: fit.load.utilisation_ppb,
        period_ns: Span::from_ns(fit.load.period),
        // e is at most the period, which has 64 bits.
        execution_ns: Span::from_ns(u64::try_from(execution).unwrap_or(u64::MAX)),
        touches_ns: fit.touches.iter().map(|&at| samples[at].window).collect(),
    })
}

impl Measured {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.interference/1";

    /// What was seen in a phase.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Option<&PhaseSummary> {
        self.phases.iter().find(|summary| summary.phase == phase && !summary.lengths.is_empty())
    }

    /// The bound of a statistic.
    #[must_use]
    pub fn bound(&self, statistic: Statistic, baseline: Baseline) -> Option<&FittedBound> {
        self.fits.iter().find(|fit| fit.statistic == statistic && fit.baseline == baseline)
    }

    /// The share of each length that a bound is fitted to; `None` where a phase is missing.
    #[must_use]
    pub fn samples(&self, statistic: Statistic, baseline: Baseline) -> Option<Vec<LoadSample>> {
        let phase = if baseline == Baseline::Idle { Phase::Idle } else { Phase::Load };
        let rows = &self.phase(phase)?.lengths;
        let less = (baseline == Baseline::Subtracted).then(|| self.phase(Phase::Idle));
        let idle = match less {
            None => None,
            Some(idle) => Some(&idle?.lengths),
        };
        let sample = |(at, row): (usize, &Row)| LoadSample {
            window: row.length_ns,
            load_ppb: row.get(statistic).saturating_sub(idle.map_or(0, |idle| idle[at].get(statistic))),
        };
        Some(rows.iter().enumerate().map(sample).collect())
    }

    /// An `[[interference]]` entry of a system file, with where it is from as comments.
    ///
    /// # Errors
    /// Says why there is no such bound.
    pub fn entry(&self, name: &str, statistic: Statistic, baseline: Baseline) -> Result<String, String> {
        let Some(bound) = self.bound(statistic, baseline) else {
            let reason = self
                .unfitted
                .iter()
                .find(|one| one.statistic == statistic && one.baseline == baseline)
                .map_or_else(|| "it was not measured".to_owned(), |one| one.reason.clone());
            return Err(format!(
                "no bound of the {} (baseline {}): {reason}",
                statistic.name(),
                baseline.name()
            ));
        };
        let phase = if baseline == Baseline::Idle { Phase::Idle } else { Phase::Load };
        let stretches = self.phase(phase).map_or(0, |summary| summary.stretches);
        let mut text = format!(
            "# {} over {stretches} stretches of {}, baseline {}, seen by SCHED_FIFO {} on cpu {}\n",
            statistic.name(),
            self.stretch_ns,
            baseline.name(),
            self.priority,
            self.cpu
        );
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "[[interference]]\nname = \"{name}\"\ncpu = {}", self.cpu);
        let _ = writeln!(text, "utilisation = {}", decimal(bound.utilisation_ppb));
        let _ = writeln!(text, "period = \"{}\"", bound.period_ns);
        Ok(text)
    }
}

/// Parts per billion as an exact decimal.
fn decimal(ppb: u64) -> String {
    let text = format!("{}.{:09}", ppb / 1_000_000_000, ppb % 1_000_000_000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

fn notes(measured: &Measured) -> Vec<String> {
    let mut notes = Vec::new();
    for summary in &measured.phases {
        let PhaseSummary { phase, stretches, held_back, unwatched, .. } = summary;
        let name = phase.name();
        if *held_back > 0 {
            notes.push(format!(
                "{name}: in {held_back} of {} stretches the kernel's fair server or RT throttling held a real-time thread \
                 back, {} at the longest; they are left out",
                held_back + stretches,
                summary.held_back_longest_ns.rounded()
            ));
        } else if *unwatched == 0 {
            notes.push(format!(
                "{name}: neither RT throttling nor the fair server held a real-time thread back"
            ));
        }
        if *unwatched > 0 {
            notes.push(format!(
                "{name}: RT throttling and the fair server could not be watched in {unwatched} stretches ({RECORDING}); longest gap {}",
                summary.longest_gap_ns.rounded()
            ));
        }
        if let Some(stolen) = summary.stolen_ns.filter(|stolen| !stolen.is_zero()) {
            notes.push(format!(
                "{name}: the hypervisor took {stolen} meanwhile; the maxima are its, so look at p95 and median"
            ));
        }
    }
    notes.push(
        "maxima over what was seen are lower bounds on the worst case; of the processor alone, not of caches and the bus"
            .to_owned(),
    );
    notes
}

#[cfg(test)]
mod tests {
    use super::super::configuration::Configuration;
    use super::super::store::Disturbance;
    use super::*;

    /// A store with one reading a phase, whose shares are these percents at 100 us, 1 ms and 10 ms.
    fn store(idle: [u64; 3], load: [u64; 3], held_back: u64) -> Store {
        let lengths_ns = vec![100_000, 1_000_000, 10_000_000];
        let mut store = Store::in_memory(Configuration { lengths_ns, ..Configuration::new(1) });
        for (phase, percents, held_back) in
            [(Phase::Idle, idle, 0), (Phase::Load, load, 0), (Phase::Load, [100; 3], held_back)]
        {
            let ppb: Vec<u64> = percents.iter().map(|percent| percent * 10_000_000).collect();
            let reading = Reading {
                phase,
                gaps: 1,
                longest_gap_ns: 50_000_000,
                sampled_ppb: ppb.iter().map(|share| vec![*share]).collect(),
                largest_ppb: ppb,
                disturbance: Disturbance { held_back: Some(held_back), stolen_ns: Some(0) },
            };
            if percents != [100; 3] || held_back > 0 {
                store.add(reading).unwrap();
            }
        }
        store
    }

    #[test]
    fn bounds_come_with_and_without_the_baseline() {
        let measured = summarise(&store([20, 5, 1], [90, 60, 40], 0));
        let with = measured.bound(Statistic::Max, Baseline::Included).unwrap();
        assert_eq!(with.utilisation_ppb, 400_000_000);
        // 1 ms · (0.6/0.4 − 1)/0.6 = 833.3 us, rounded up.
        assert_eq!((with.period_ns.as_ns(), with.touches_ns[0].as_ns()), (833_334, 1_000_000));
        let without = measured.bound(Statistic::Max, Baseline::Subtracted).unwrap();
        assert_eq!(without.utilisation_ppb, 390_000_000);
        let idle = measured.bound(Statistic::Median, Baseline::Idle).unwrap();
        assert_eq!(idle.utilisation_ppb, 10_000_000);
        let entry = measured.entry("a \"b\"", Statistic::Max, Baseline::Subtracted).unwrap();
        assert!(
            entry.contains("name = \"a \\\"b\\\"\"\ncpu = 1\nutilisation = 0.39\nperiod = \""),
            "{entry}"
        );
        let table: toml::Table = entry.parse().unwrap();
        assert_eq!(table["interference"][0]["name"].as_str(), Some("a \"b\""));
    }

    #[test]
    fn stretches_in_which_the_kernel_held_back_are_told_and_left_out() {
        let measured = summarise(&store([20, 5, 1], [90, 60, 40], 2));
        let load = measured.phase(Phase::Load).unwrap();
        assert_eq!((load.stretches, load.held_back), (1, 1));
        assert_eq!(load.lengths[2].max_ppb, 400_000_000);
        assert!(measured.notes[1].contains("load: in 1 of 2 stretches"), "{:?}", measured.notes);
    }

    #[test]
    fn what_has_no_bound_says_why() {
        let measured = summarise(&store([20, 5, 1], [20, 5, 1], 0));
        let error = measured.entry("x", Statistic::Max, Baseline::Subtracted).unwrap_err();
        assert!(error.contains("shows no load"), "{error}");
        let mut alone = Store::in_memory(Configuration::new(1));
        assert_eq!(summarise(&alone).fits, []);
        let lengths = alone.configuration().lengths_ns.len();
        let idle = Reading {
            phase: Phase::Idle,
            gaps: 0,
            longest_gap_ns: 0,
            largest_ppb: vec![5; lengths],
            sampled_ppb: vec![vec![5]; lengths],
            disturbance: Disturbance::default(),
        };
        alone.add(idle).unwrap();
        let measured = summarise(&alone);
        assert_eq!(measured.samples(Statistic::Max, Baseline::Subtracted), None);
        assert!(measured.bound(Statistic::Max, Baseline::Idle).is_some());
        assert!(measured.notes[0].contains("could not be watched"), "{:?}", measured.notes);
        assert!(
            measured.entry("x", Statistic::P95, Baseline::Included).unwrap_err().contains("not measured")
        );
    }

    #[test]
    fn decimals_are_exact() {
        for (ppb, text) in
            [(1, "0.000000001"), (400_000_000, "0.4"), (1_000_000_000, "1.0"), (583_300_000, "0.5833")]
        {
            assert_eq!(decimal(ppb), text);
        }
    }
}
