//! How a machine's costs are found: in rounds, of which the disturbed ones are dropped.
//!
//! A round measures every cost on every CPU once, each for a short stretch, in an order that moves on by one from round to round.
//! Whatever comes and goes on the machine meets every cost alike. A stretch in which the hypervisor took time from the CPU, or the
//! kernel held the measuring thread back, is dropped and counted, and rounds go on until enough are left.

use super::{CostName, ProfileCost, Quantile};
use horolog_sys::Error;
use horolog_time::Span;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What one stretch measures. A release latency is the greater of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Probe {
    /// Two threads that wake each other by futex.
    ContextSwitch,
    /// One expiry after another beside a spinning thread.
    TimerInterrupt,
    /// Sleeps to an instant, the CPU idle before.
    LatencyIdle,
    /// The same with an ordinary thread on the CPU.
    LatencyLoaded,
}

impl Probe {
    /// All.
    pub const ALL: [Probe; 4] =
        [Probe::ContextSwitch, Probe::TimerInterrupt, Probe::LatencyIdle, Probe::LatencyLoaded];

    /// Its share of a round, in sixteenths.
    fn weight(self) -> u64 {
        match self {
            Probe::ContextSwitch => 1,
            Probe::TimerInterrupt => 3,
            Probe::LatencyIdle | Probe::LatencyLoaded => 6,
        }
    }

    /// The cost that it is for.
    fn cost(self) -> CostName {
        match self {
            Probe::ContextSwitch => CostName::ContextSwitch,
            Probe::TimerInterrupt => CostName::TimerInterrupt,
            Probe::LatencyIdle | Probe::LatencyLoaded => CostName::ReleaseLatency,
        }
    }
}

/// The samples of one stretch, and what disturbed it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stretch {
    /// The samples, in nanoseconds.
    pub samples: Vec<u64>,
    /// What the hypervisor took from the CPU meanwhile, as far as the kernel has accounted it; `None` where it does not say.
    pub stolen: Option<Span>,
    /// How often a less important thread got the CPU from a real-time one; `None` where it could not be counted.
    pub held_back: Option<u64>,
}

/// Who measures: the machine, or a test.
pub trait Source {
    /// Measures one thing on one CPU for about `length`.
    ///
    /// # Errors
    /// Where it cannot.
    fn stretch(&mut self, probe: Probe, cpu: u32, length: Span) -> Result<Stretch, Error>;
}

/// How carefully.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoundOptions {
    /// On which CPUs.
    pub cpus: Vec<u32>,
    /// How many undisturbed stretches each probe is to have.
    pub rounds: u64,
    /// With how few it may do after twice as many rounds.
    pub least: u64,
    /// How long one round takes on one CPU.
    pub round: Span,
}

impl RoundOptions {
    /// For a profile that is kept: 30 rounds of 0.6 s on each CPU; half of the stretches undisturbed at least.
    #[must_use]
    pub fn careful(cpus: Vec<u32>) -> RoundOptions {
        RoundOptions { cpus, rounds: 30, least: 15, round: Span::from_ns(600_000_000) }
    }

    /// For the costs of this minute: 5 rounds of 0.5 s on each CPU; one undisturbed stretch at least.
    #[must_use]
    pub fn quick(cpus: Vec<u32>) -> RoundOptions {
        RoundOptions { cpus, rounds: 5, least: 1, round: Span::from_ns(500_000_000) }
    }

    /// How long it takes without disturbance.
    pub fn length(&self) -> Span {
        let rounds = self.rounds.saturating_mul(self.cpus.len() as u64);
        self.round.checked_mul(rounds).unwrap_or(Span::MAX)
    }
}

/// The result of measuring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Measured {
    /// The costs of every CPU.
    Costs(Vec<ProfileCost>),
    /// Too few stretches were undisturbed; why, in words.
    Disturbed(String),
    /// The flag was set before it was done.
    Stopped,
}

/// Measures in rounds until each probe has enough undisturbed stretches on each CPU, at most twice as many rounds as asked for.
/// `progress` hears of the share that is done, in thousandths.
///
/// # Errors
/// Where a stretch cannot be measured at all.
pub fn measure(
    options: &RoundOptions,
    source: &mut dyn Source,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64),
) -> Result<Measured, Error> {
    let mut cells: BTreeMap<(u32, Probe), Cell> = BTreeMap::new();
    let places: Vec<(u32, Probe)> =
        Probe::ALL.into_iter().flat_map(|probe| options.cpus.iter().map(move |cpu| (*cpu, probe))).collect();
    for round in 0..options.rounds.saturating_mul(2) {
        let wanted = |cells: &BTreeMap<(u32, Probe), Cell>, place: &(u32, Probe)| {
            cells.get(place).is_none_or(|cell| cell.kept < options.rounds)
        };
        if round >= options.rounds && !places.iter().any(|place| wanted(&cells, place)) {
            break;
        }
        for step in 0..places.len() {
            let turn = usize::try_from(round % places.len() as u64).unwrap_or(0);
            let place = places[(step + turn) % places.len()];
            if !wanted(&cells, &place) {
                continue;
            }
            if stop.load(Ordering::Acquire) {
                return Ok(Measured::Stopped);
            }
            let (cpu, probe) = place;
            let length = Span::from_ns(options.round.as_ns() / 16 * probe.weight());
            let stretch = source.stretch(probe, cpu, length)?;
            cells.entry(place).or_default().take(stretch);
        }
        progress((1_000 * (round + 1) / options.rounds.max(1)).min(1_000));
    }
    // A flag that was set within the last stretch stops, too.
    if stop.load(Ordering::Acquire) {
        return Ok(Measured::Stopped);
    }
    if let Some(reason) = too_few(&cells, &places, options.least) {
        return Ok(Measured::Disturbed(reason));
    }
    let costs = options.cpus.iter().flat_map(|cpu| CostName::ALL.map(|name| (*cpu, name)));
    Ok(Measured::Costs(costs.filter_map(|(cpu, name)| greatest(&cells, cpu, name)).collect()))
}

/// Why a probe has too few stretches.
fn too_few(cells: &BTreeMap<(u32, Probe), Cell>, places: &[(u32, Probe)], least: u64) -> Option<String> {
    places.iter().find_map(|(cpu, probe)| {
        let none = Cell::default();
        let cell = cells.get(&(*cpu, *probe)).unwrap_or(&none);
        (cell.kept < least.max(1)).then(|| {
            format!(
                "{} of cpu {cpu}: of {} rounds the hypervisor took time in {}, and in {} the kernel held the measuring thread \
                 back or nothing was seen",
                probe.cost(),
                cell.kept + cell.stolen + cell.held_back,
                cell.stolen,
                cell.held_back
            )
        })
    })
}

/// The cost of a CPU: of several probes the one with the greatest quantile.
fn greatest(cells: &BTreeMap<(u32, Probe), Cell>, cpu: u32, name: CostName) -> Option<ProfileCost> {
    let probes = Probe::ALL.into_iter().filter(|probe| probe.cost() == name);
    let costs = probes.filter_map(|probe| cells.get(&(cpu, probe))?.cost(name, cpu, name.quantile()));
    costs.max_by_key(|cost| cost.value)
}

/// The stretches of one probe on one CPU.
#[derive(Default)]
struct Cell {
    samples: Vec<u64>,
    kept: u64,
    stolen: u64,
    held_back: u64,
}

impl Cell {
    fn take(&mut self, stretch: Stretch) {
        if stretch.stolen.is_some_and(|stolen| !stolen.is_zero()) {
            self.stolen += 1;
        } else if stretch.held_back.is_some_and(|count| count > 0) || stretch.samples.is_empty() {
            self.held_back += 1;
        } else {
            self.kept += 1;
            self.samples.extend(stretch.samples);
        }
    }

    fn cost(&self, name: CostName, cpu: u32, quantile: Quantile) -> Option<ProfileCost> {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        let value = quantile.of_sorted(&sorted)?.rounded_up();
        let above = sorted.partition_point(|sample| *sample <= value.as_ns());
        Some(ProfileCost {
            name,
            cpu,
            value,
            quantile,
            samples: sorted.len() as u64,
            exceedances: (sorted.len() - above) as u64,
            longest: Span::from_ns(*sorted.last()?),
            rounds: self.kept,
            stolen_rounds: self.stolen,
            held_back_rounds: self.held_back,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that follows a script: the stretch of (round, probe, cpu).
    struct Fake<F> {
        script: F,
        asked: Vec<(Probe, u32)>,
        lengths: u64,
    }

    impl<F: FnMut(usize, Probe, u32) -> Stretch> Source for Fake<F> {
        fn stretch(&mut self, probe: Probe, cpu: u32, length: Span) -> Result<Stretch, Error> {
            let before = self.asked.iter().filter(|asked| **asked == (probe, cpu)).count();
            self.asked.push((probe, cpu));
            self.lengths += length.as_ns();
            Ok((self.script)(before, probe, cpu))
        }
    }

    fn fake<F: FnMut(usize, Probe, u32) -> Stretch>(script: F) -> Fake<F> {
        Fake { script, asked: Vec::new(), lengths: 0 }
    }

    fn clean(samples: impl IntoIterator<Item = u64>) -> Stretch {
        Stretch { samples: samples.into_iter().collect(), stolen: Some(Span::ZERO), held_back: Some(0) }
    }

    fn options(cpus: &[u32], rounds: u64, least: u64) -> RoundOptions {
        RoundOptions { cpus: cpus.to_vec(), rounds, least, round: Span::from_ns(1_600) }
    }

    fn run(options: &RoundOptions, source: &mut dyn Source) -> Measured {
        measure(options, source, &AtomicBool::new(false), &mut |_| {}).expect("it measures")
    }

    fn costs(options: &RoundOptions, source: &mut dyn Source) -> Vec<ProfileCost> {
        match run(options, source) {
            Measured::Costs(costs) => costs,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_long_sample_is_an_outlier_and_not_the_cost() {
        // 10 rounds of 100 interrupts of 10 us; one of 130 us.
        let mut source = fake(|round, probe, _| {
            let mut samples = vec![10_000; 100];
            if round == 3 && probe == Probe::TimerInterrupt {
                samples[50] = 130_000;
            }
            clean(samples)
        });
        let found = costs(&options(&[1], 10, 5), &mut source);
        let timer = &found[1];
        assert_eq!((timer.name, timer.value.as_ns()), (CostName::TimerInterrupt, 10_000));
        assert_eq!((timer.samples, timer.exceedances, timer.longest.as_ns()), (1_000, 1, 130_000));
        assert_eq!(
            timer.outliers(),
            "timer_interrupt of cpu 1 is p99 = 10 us of 1000 samples: 1 were longer, the longest 130 us"
        );
    }

    #[test]
    fn the_quantile_counts_the_samples_of_all_rounds() {
        // Of 1,000 samples ten may be above p99; the eleventh is p99.
        for (long, value) in [(10, 1_000), (11, 9_000)] {
            let mut source = fake(|round, _, _| {
                let mut samples = vec![1_000; 100];
                if round < long {
                    samples[0] = 9_000;
                }
                if round == 0 && long > 10 {
                    samples[1] = 9_000;
                }
                clean(samples)
            });
            let found = costs(&options(&[0], 10, 1), &mut source);
            assert_eq!(found[0].value.as_ns(), value, "{long} long ones");
        }
    }

    #[test]
    fn rounds_with_stolen_time_are_dropped_and_made_up_for() {
        let mut source = fake(|round, probe, _| {
            let is_stolen = probe == Probe::ContextSwitch && round % 2 == 1;
            let stolen = Some(Span::from_ns(u64::from(is_stolen)));
            let value = if is_stolen { 5_000_000 } else { 2_000 };
            Stretch { stolen, ..clean(vec![value; 10]) }
        });
        let found = costs(&options(&[0], 4, 4), &mut source);
        assert_eq!((found[0].value.as_ns(), found[0].longest.as_ns()), (2_000, 2_000));
        assert_eq!((found[0].rounds, found[0].stolen_rounds), (4, 3));
        assert!(found[0].outliers().ends_with("; 3 rounds with stolen time were dropped"));
        // Who has enough is not measured again.
        assert_eq!((found[1].rounds, found[1].stolen_rounds), (4, 0));
        assert_eq!(source.asked.iter().filter(|(probe, _)| *probe == Probe::LatencyIdle).count(), 4);
    }

    #[test]
    fn what_the_kernel_held_back_and_what_saw_nothing_is_dropped() {
        let mut source = fake(|round, _, _| match round {
            0 => Stretch { held_back: Some(1), ..clean([9_000_000]) },
            1 => clean([]),
            // What is not known is no disturbance.
            2 => Stretch { stolen: None, held_back: None, ..clean([70]) },
            _ => clean([70]),
        });
        let found = costs(&options(&[0], 2, 2), &mut source);
        assert_eq!((found[2].rounds, found[2].held_back_rounds), (2, 2));
        assert_eq!((found[2].value.as_ns(), found[2].samples), (70, 2));
    }

    #[test]
    fn too_few_undisturbed_rounds_give_no_costs() {
        let stolen = |clean_rounds: usize| {
            fake(move |round, probe, _| {
                let is_stolen = probe == Probe::LatencyLoaded && round >= clean_rounds;
                Stretch { stolen: Some(Span::from_ns(u64::from(is_stolen))), ..clean([70]) }
            })
        };
        assert!(matches!(run(&options(&[3], 4, 2), &mut stolen(2)), Measured::Costs(_)));
        let Measured::Disturbed(reason) = run(&options(&[3], 4, 2), &mut stolen(1)) else { panic!("costs") };
        assert!(
            reason.starts_with("release_latency of cpu 3: of 8 rounds the hypervisor took time in 7"),
            "{reason}"
        );
        // Even where nothing is asked for, nothing is no cost.
        assert!(matches!(run(&options(&[3], 4, 0), &mut stolen(0)), Measured::Disturbed(_)));
    }

    #[test]
    fn everything_takes_turns() {
        let mut source = fake(|_, _, _| clean([70]));
        let progress = &mut Vec::new();
        let wanted = options(&[0, 1], 3, 1);
        let done = measure(&wanted, &mut source, &AtomicBool::new(false), &mut |share| progress.push(share));
        assert!(matches!(done, Ok(Measured::Costs(costs)) if costs.len() == 6));
        assert_eq!(source.asked.len(), 3 * 8);
        // Each round begins with another one, and holds all of them.
        let firsts: Vec<_> = source.asked.iter().step_by(8).collect();
        assert_eq!(
            firsts,
            [&(Probe::ContextSwitch, 0), &(Probe::ContextSwitch, 1), &(Probe::TimerInterrupt, 0)]
        );
        for round in source.asked.chunks(8) {
            let distinct: std::collections::BTreeSet<_> = round.iter().collect();
            assert_eq!(distinct.len(), 8);
        }
        assert_eq!(source.lengths, wanted.length().as_ns());
        assert_eq!(*progress, [333, 666, 1_000]);
    }

    #[test]
    fn the_latency_is_the_greater_of_idle_and_loaded() {
        for (idle, loaded) in [(50, 60), (60, 50)] {
            let mut source =
                fake(|_, probe, _| clean([if probe == Probe::LatencyIdle { idle } else { loaded }]));
            let found = costs(&options(&[0], 1, 1), &mut source);
            assert_eq!((found[2].name, found[2].value.as_ns()), (CostName::ReleaseLatency, 60));
        }
    }

    #[test]
    fn a_flag_stops_it_before_the_next_stretch() {
        let stop = AtomicBool::new(false);
        let mut source = fake(|_, probe, _| {
            stop.store(probe == Probe::TimerInterrupt, Ordering::Release);
            clean([70])
        });
        let done = measure(&options(&[0], 5, 1), &mut source, &stop, &mut |_| {});
        assert_eq!(done.map_err(|error| error.to_string()), Ok(Measured::Stopped));
        assert_eq!(source.asked.len(), 2);
        // In the very last one, too.
        let stop = AtomicBool::new(false);
        let mut source = fake(|_, probe, _| {
            stop.store(probe == Probe::LatencyLoaded, Ordering::Release);
            clean([70])
        });
        let done = measure(&options(&[0], 1, 1), &mut source, &stop, &mut |_| {});
        assert_eq!(done.map_err(|error| error.to_string()), Ok(Measured::Stopped));
    }
}
