//! The automatic test bench: expands an experiment file into synthetic applications, runs each under every policy, and
//! divides every metric by what the same application has with its soft tasks in the background.
//!
//! Source: `burdalo07`. See `docs/concepts/test-bench.md`.

mod application;
mod figures;
mod file;
mod journal;
mod metrics;
mod output;
mod policy;
mod real;
mod run;
mod simulate;
mod spec;
mod system;
#[cfg(test)]
mod tests;

pub(crate) use figures::{Axis, Figures, Metric, Row};
pub(crate) use policy::Policy;
pub use policy::WhenExhausted;
pub(crate) use run::Backend;
pub(crate) use spec::Spec;

use crate::{Agreement, ExperimentError, ExperimentReport, Fact, Options};
use application::Point;
use horolog_time::Span;
use journal::Journal;
use run::{Key, Run};
use std::collections::BTreeMap;
use std::time::Instant;

/// Seeds that a published statement is judged by, unless the user asks for another number.
const SEEDS: u64 = 8;

/// Progress: done, of, what.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64, u64, &str);

/// Reads an experiment file; see `docs/concepts/test-bench.md`.
///
/// # Errors
/// Everything that is wrong with it, with carets.
pub(crate) fn read(name: &str, content: &str, options: &Options) -> Result<Spec, ExperimentError> {
    let mut spec = file::read(name, content)?;
    spec.seed = options.seed.unwrap_or(spec.seed);
    spec.when_exhausted = options.when_exhausted.unwrap_or(spec.when_exhausted);
    match file::cannot_wait(spec.when_exhausted, &spec.policies) {
        Some(reason) => {
            Err(ExperimentError::bad_input(format!("{name}: {reason}; use --when-exhausted background")))
        }
        None => Ok(spec),
    }
}

/// What an experiment came to.
pub(crate) struct Results {
    pub(crate) spec: Spec,
    pub(crate) points: Vec<Point>,
    pub(crate) figures: Figures,
    /// Sums over all runs of a back end and policy.
    pub(crate) sums: BTreeMap<(Backend, Policy), Sums>,
    notes: Vec<String>,
    /// Sums over the real runs that leave the processor idle for a fifth of the time: the kernel stops real-time threads where
    /// they leave it nothing.
    unsaturated: Sums,
    /// Why nothing ran for real though it was asked for.
    refused: Option<String>,
}

/// Sums over runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) runs: u64,
    pub(crate) hard_jobs: u64,
    pub(crate) missed: u64,
    pub(crate) soft_jobs: u64,
    pub(crate) unfinished: u64,
    pub(crate) without_budget: u64,
}

impl Results {
    pub(crate) fn applications(&self) -> u64 {
        self.points.len() as u64 * self.spec.sets
    }

    /// The sums of a back end over all policies.
    pub(crate) fn sum(&self, backend: Backend) -> Sums {
        let of = self.sums.iter().filter(|((of, _), _)| *of == backend);
        of.fold(Sums::default(), |mut all, (_, one)| {
            all.add(one);
            all
        })
    }
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.runs += other.runs;
        self.hard_jobs += other.hard_jobs;
        self.missed += other.missed;
        self.soft_jobs += other.soft_jobs;
        self.unfinished += other.unfinished;
        self.without_budget += other.without_budget;
    }

    fn of(run: &Run) -> Sums {
        Sums {
            runs: 1,
            hard_jobs: run.metrics.hard_jobs,
            missed: run.metrics.missed,
            soft_jobs: run.metrics.soft_jobs,
            unfinished: run.metrics.unfinished,
            without_budget: run.metrics.no_budget.into(),
        }
    }
}

/// Runs an experiment, or what is left of it where `options.out` holds its journal.
///
/// # Errors
/// Where an application cannot be drawn, simulated or run, or the folder holds something else.
pub(crate) fn run(spec: Spec, options: &Options, progress: Progress<'_>) -> Result<Results, ExperimentError> {
    let points = application::points(&spec);
    let mut journal = match &options.out {
        Some(folder) => Journal::open(folder, "runs.jsonl", &spec)?,
        None => Journal::in_memory(),
    };
    let mut notes = vec![format!("{} (seed {})", spec.name, spec.seed)];
    if spec.when_exhausted != WhenExhausted::default() {
        notes.push("an exhausted server waits for its replenishment (`when_exhausted`)".to_owned());
    }
    simulate_missing(&spec, &points, &mut journal, progress, &mut notes)?;
    let refused = if options.real || options.full {
        match real::run(&spec, &points, &mut journal, options.full, progress) {
            Ok(()) => None,
            Err(error) if error.is_not_permitted() => Some(error.to_string()),
            Err(error) => return Err(error),
        }
    } else {
        None
    };
    let figures = Figures::of(&spec, &points, journal.runs().collect::<Vec<_>>().into_iter());
    notes.extend(budgets(&spec, &journal));
    let mut sums: BTreeMap<(Backend, Policy), Sums> = BTreeMap::new();
    let mut unsaturated = Sums::default();
    for run in journal.runs() {
        sums.entry((run.backend, run.policy)).or_default().add(&Sums::of(run));
        let parameters = application::parameters_of(&spec, &points, run.application);
        if run.backend == Backend::Real && parameters.hard_load + parameters.soft_load <= 80 {
            unsaturated.add(&Sums::of(run));
        }
    }
    if let Some(folder) = &options.out {
        output::write_files(folder, &spec, &figures)?;
        notes.push(format!("results.parquet, plots/ and runs.jsonl are in {}", folder.display()));
    }
    Ok(Results { spec, points, figures, sums, notes, unsaturated, refused })
}

/// What the servers' budgets are, one note a policy.
fn budgets(spec: &Spec, journal: &Journal) -> Vec<String> {
    let note = |policy: &Policy| {
        let of = |run: &&Run| run.policy == *policy && run.metrics.budget_ns > 0;
        let mut budgets: Vec<u64> = journal.runs().filter(of).map(|run| run.metrics.budget_ns).collect();
        budgets.sort_unstable();
        let (least, most) = (Span::from_ns(*budgets.first()?), Span::from_ns(*budgets.last()?));
        let middle = Span::from_ns(budgets[budgets.len() / 2]);
        let label = policy.label();
        Some(match spec.server {
            Some(fixed) => {
                format!("{label}: every budget is {} in {}, as [server] says", fixed.budget, fixed.period)
            }
            None => format!(
                "{label}: each budget is the largest safe one of its application, from {least} over {middle} (median) to {most}"
            ),
        })
    };
    spec.policies.iter().filter_map(note).collect()
}

/// The figures of the same experiment with other seeds, simulated; with `options.out` each has a journal of its own there.
///
/// # Errors
/// As [`run`].
pub(crate) fn with_other_seeds(
    spec: &Spec,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Vec<Figures>, ExperimentError> {
    let count = options.seeds.unwrap_or(SEEDS);
    (1..count)
        .map(|further| {
            let spec = Spec { seed: spec.seed.wrapping_add(further), ..spec.clone() };
            let points = application::points(&spec);
            let mut journal = match &options.out {
                Some(folder) => Journal::open(folder, &format!("seed-{}.jsonl", spec.seed), &spec)?,
                None => Journal::in_memory(),
            };
            let mut tell = |done, of, what: &str| {
                progress(done, of, &format!("seed {} of {count}, {what}", further + 1));
            };
            simulate_missing(&spec, &points, &mut journal, &mut tell, &mut Vec::new())?;
            Ok(Figures::of(&spec, &points, journal.runs().collect::<Vec<_>>().into_iter()))
        })
        .collect()
}

fn simulate_missing(
    spec: &Spec,
    points: &[Point],
    journal: &mut Journal,
    progress: Progress<'_>,
    notes: &mut Vec<String>,
) -> Result<(), ExperimentError> {
    let applications = points.len() * usize::try_from(spec.sets).unwrap_or(usize::MAX);
    let is_done = |index: &usize| keys(spec, Backend::Simulated, *index).iter().all(|key| journal.has(key));
    let missing: Vec<usize> = (0..applications).filter(|index| !is_done(index)).collect();
    let (mut done, of) = ((applications - missing.len()) as u64, applications as u64);
    if done > 0 {
        notes.push(format!("{done} of {of} applications were simulated before"));
    }
    progress(done, of, "applications simulated");
    let (begin, mut runs_here) = (Instant::now(), 0);
    simulate::simulate(spec, points, &missing, &mut |runs| {
        runs_here += runs.len();
        journal.add(runs)?;
        done += 1;
        progress(done, of, "applications simulated");
        Ok(())
    })?;
    if runs_here > 0 {
        notes.push(format!("{runs_here} runs simulated in {:.1} s", begin.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// Every run of one application.
fn keys(spec: &Spec, backend: Backend, application: usize) -> Vec<Key> {
    let gains = spec.hard.execution.gains();
    let of = |gain| spec.policies.iter().map(move |policy| (backend, application, gain, *policy));
    gains.into_iter().flat_map(of).collect()
}

/// The report with these facts: what every experiment of the bench says, and the means of all plots.
pub(crate) fn report(results: &Results, id: &str, facts: Vec<Fact>) -> ExperimentReport {
    let mut notes = results.notes.clone();
    for backend in [Backend::Simulated, Backend::Real] {
        let sum = results.sum(backend);
        if sum.runs == 0 {
            continue;
        }
        notes.push(format!(
            "{}: {} runs, {} hard jobs with {} missed deadlines, {} soft jobs of which {} did not finish; {} runs \
             under a budgeted policy had no budget left",
            backend.word(),
            sum.runs,
            sum.hard_jobs,
            sum.missed,
            sum.soft_jobs,
            sum.unfinished,
            sum.without_budget
        ));
    }
    notes.push(
        "each metric of each application is divided by its own background value; means of these ratios"
            .to_owned(),
    );
    ExperimentReport {
        facts,
        series: output::series(&results.spec, &results.figures),
        seed: Some(results.spec.seed),
        notes,
        refused: results.refused.clone(),
        ..ExperimentReport::new(id)
    }
}

/// What holds of every experiment of the bench: no hard deadline is missed in virtual time.
pub(crate) fn deadlines(results: &Results) -> Fact {
    let sum = results.sum(Backend::Simulated);
    let has_costs = results.spec.simulated != spec::Costs::NONE;
    let mut fact = Fact::exact(
        4,
        "hard deadlines missed under any policy, over all simulated applications",
        0,
        sum.missed,
    );
    fact.note = format!("{} hard jobs in {} runs", sum.hard_jobs, sum.runs);
    if has_costs && fact.agreement == Agreement::Disagrees {
        fact.note += "; with costs in [platform] the budgets are sufficient by a rule of thumb alone";
    }
    fact
}

/// The same of the real runs, where there are any: there it is no exact fact, since a host may take the processor away.
pub(crate) fn real_deadlines(results: &Results) -> Option<Fact> {
    let sum = results.sum(Backend::Real);
    let by_policy: Vec<String> = results
        .spec
        .policies
        .iter()
        .filter_map(|policy| Some((policy, results.sums.get(&(Backend::Real, *policy))?)))
        .map(|(policy, of)| format!("{} {}", policy.label(), of.missed))
        .collect();
    let free = results.unsaturated;
    let note = format!(
        "{} of {} hard jobs where hard and soft load are at most 80 %; beyond, the kernel stops real-time threads that leave \
         other threads nothing (RT throttling, fair server)",
        free.missed, free.hard_jobs
    );
    (sum.runs > 0).then(|| {
        Fact::trend(
            4,
            "hard deadlines missed under any policy (real)",
            "0",
            format!("{} of {} hard jobs: {}", sum.missed, sum.hard_jobs, by_policy.join(", ")),
            sum.missed == 0,
            &note,
        )
    })
}

/// For tests: the numbers of points and applications, and the simulated runs of the first application of every `stride`-th
/// point.
#[cfg(test)]
pub(crate) fn simulated_subset(spec: &Spec, stride: usize) -> (usize, usize, Vec<Run>) {
    let points = application::points(spec);
    let sets = spec.sets as usize;
    let indices: Vec<usize> = (0..points.len()).step_by(stride).map(|point| point * sets).collect();
    let mut runs = Vec::new();
    let taken = simulate::simulate(spec, &points, &indices, &mut |some| {
        runs.extend(some);
        Ok(())
    });
    taken.unwrap_or_else(|error| panic!("{error}"));
    (points.len(), points.len() * sets, runs)
}
