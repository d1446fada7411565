//! Brandenburg and Anderson 2007, "Feather-Trace: A Light-Weight Event Tracing Toolkit": the lock study, live.
//!
//! The paper traced the locks of a Linux kernel of its own (idle, compiling, under `stress`) and the mutexes of three
//! multimedia programs. Here the mutexes, read-write locks and condition variables of unmodified Debian programs are
//! traced by preloading, under the same three conditions; of the kernel's locks a stock kernel shows the waits alone.

pub(crate) mod conditions;
mod facts;
mod kernel;
mod memcached;
mod programs;
mod sample;

use crate::{ExperimentError, ExperimentReport, Options, Series};
use conditions::{Condition, Load};
use horolog_measure::critical_sections::{LockClass, Statistics};
use horolog_measure::lock_study::{LiveOptions, LiveStudy};
use horolog_measure::preload::{LOCKS_LIBRARY, find_library};
use horolog_sys::guardian::Folder;
use programs::Program;

/// How much is run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// How long each program is watched under each condition, ns.
    watch_ns: u64,
    /// How long the kernel is watched under each condition, ns.
    kernel_ns: u64,
    programs: &'static [Program],
    conditions: &'static [Condition],
}

/// One program under one condition.
struct Run {
    program: Program,
    condition: Condition,
    study: LiveStudy,
}

impl Run {
    /// Its mutexes; none where it took none.
    fn mutexes(&self) -> Option<&Statistics> {
        self.study.named.study.class(LockClass::Mutex)
    }
}

/// Everything that was measured.
struct Results {
    runs: Vec<Run>,
    /// (program, why it could not be run).
    skipped: Vec<(&'static str, String)>,
    kernel: Vec<(Condition, Result<kernel::Waits, String>)>,
    sample: Result<sample::Path, String>,
}

/// Runs the study: facts 9 to 13 of the paper.
///
/// # Errors
/// Where the lock library is missing.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let seconds = if options.full { 60 } else { 6 };
    let plan = Plan {
        watch_ns: seconds * 1_000_000_000,
        kernel_ns: if options.full { 20_000_000_000 } else { 3_000_000_000 },
        programs: &Program::ALL,
        conditions: &Condition::ALL,
    };
    let results = measure(&plan, progress)?;
    Ok(report(&results))
}

fn measure(plan: &Plan, progress: &mut dyn FnMut(u64, u64, &str)) -> Result<Results, ExperimentError> {
    find_library(LOCKS_LIBRARY, None).map_err(|error| ExperimentError::failed(error.to_string()))?;
    let folder = Folder::create()?;
    let mut results =
        Results { runs: Vec::new(), skipped: Vec::new(), kernel: Vec::new(), sample: sample::measure() };
    let steps = (plan.conditions.len() * (plan.programs.len() + 1)) as u64;
    let mut step = 0;
    for condition in plan.conditions {
        let load = Load::start(*condition, folder.path());
        let load = match load {
            Ok(load) => load,
            Err(why) => {
                results.skipped.push((condition.name(), why));
                continue;
            }
        };
        progress(step, steps, &format!("kernel locks, {}", condition.name()));
        results.kernel.push((*condition, kernel::waits(folder.path(), plan.kernel_ns)));
        step += 1;
        for program in plan.programs {
            progress(step, steps, &format!("{}, {}", program.name(), condition.name()));
            step += 1;
            if !program.is_installed() {
                if *condition == plan.conditions[0] {
                    results
                        .skipped
                        .push((program.name(), "install the Debian package of that name".to_owned()));
                }
                continue;
            }
            match program.watch(folder.path(), plan.watch_ns, &live_options()) {
                Ok(study) => results.runs.push(Run { program: *program, condition: *condition, study }),
                Err(why) => {
                    results.skipped.push((program.name(), format!("{}: {why}", condition.name())));
                }
            }
        }
        drop(load);
    }
    Ok(results)
}

fn live_options() -> LiveOptions {
    // Like the paper's, after each acquisition and before each release. Requests as well give who waited for whom.
    LiveOptions { ring_bytes: 8 << 20, ..LiveOptions::default() }
}

fn report(results: &Results) -> ExperimentReport {
    let mut report = ExperimentReport {
        facts: facts::all(results),
        series: vec![published()],
        ..ExperimentReport::new("feather-trace")
    };
    for program in Program::ALL {
        report.series.extend(sections(results, program));
    }
    report.series.extend(distribution(results));
    report.series.extend(kernel::series(&results.kernel));
    report.notes.extend(results.skipped.iter().map(|(what, why)| format!("SKIPPED: {what}: {why}")));
    report.notes.push(
        "conditions are numbered 0 idle, 1 compiling, 2 under stress; mutexes only, other classes with `horolog trace \
         locks`"
            .to_owned(),
    );
    report.notes.push(
        "locks inside the C library (stdio, malloc), bare futexes, Go's and Rust's own locks are not seen"
            .to_owned(),
    );
    report.notes.extend(kernel::not_measurable());
    report
}

/// The paper's table.
fn published() -> Series {
    Series {
        name:
            "published: kernel 2.6.20 on two 2.70 GHz Xeons (conditions 0 idle, 1 compiling, 2 under stress)"
                .to_owned(),
        columns: [
            "condition",
            "spinlock acquisitions",
            "semaphore acquisitions",
            "mean spinlock section us",
            "mean semaphore section us",
            "deepest spinlock nesting shown",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: vec![
            vec![0.0, 2_366_122.0, 51_360.0, 0.67, 14.9, 3.0],
            vec![1.0, 25_002_249.0, 4_880_570.0, 0.81, 6.4, 4.0],
            vec![2.0, 70_807_495.0, 18_998_386.0, 1.24, 6.3, 4.0],
        ],
    }
}

/// A program's mutex sections by condition.
fn sections(results: &Results, program: Program) -> Option<Series> {
    let rows: Vec<Vec<f64>> = results
        .runs
        .iter()
        .filter(|run| run.program == program)
        .filter_map(|run| {
            let statistics = run.mutexes()?;
            let us = |ns: u64| ns as f64 / 1e3;
            let percent = |share: Option<f64>| share.unwrap_or(0.0) * 100.0;
            Some(vec![
                f64::from(run.condition.number()),
                statistics.lengths.count() as f64,
                statistics.lengths.mean_ns().unwrap_or(0.0) / 1e3,
                us(statistics.lengths.quantile_ns(0.99).unwrap_or(0)),
                us(statistics.lengths.max_ns()),
                percent(statistics.lengths.share_below(5_000)),
                percent(statistics.lengths.share_below(10_000)),
                percent(statistics.lengths.share_below(13_000)),
                percent(statistics.share_at_depth(0)),
                statistics.deepest().unwrap_or(0) as f64,
                statistics.contended as f64,
                us(statistics.waits.max_ns()),
                run.study.named.study.counts.lost as f64,
            ])
        })
        .collect();
    let columns = [
        "condition",
        "sections",
        "mean us",
        "p99 us",
        "max us",
        "<5us %",
        "<10us %",
        "<13us %",
        "depth 0 %",
        "deepest",
        "contended",
        "longest wait us",
        "events lost",
    ];
    (!rows.is_empty()).then(|| Series {
        name: format!("{}: mutexes", program.describe()),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    })
}

/// Limits of the cumulative distribution, ns.
const LIMITS: [u64; 12] =
    [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 13_000, 20_000, 50_000, 100_000, 1_000_000];

/// The share of sections below each limit: one column a program, under the last condition that was run.
fn distribution(results: &Results) -> Vec<Series> {
    let conditions = Condition::ALL.into_iter();
    conditions
        .filter_map(|condition| {
            let of: Vec<(&str, &Statistics)> = results
                .runs
                .iter()
                .filter(|run| run.condition == condition)
                .filter_map(|run| Some((run.program.name(), run.mutexes()?)))
                .collect();
            let rows = LIMITS.iter().map(|limit| {
                let shares = of.iter().map(|(_, s)| s.lengths.share_below(*limit).unwrap_or(0.0) * 100.0);
                std::iter::once(*limit as f64 / 1e3).chain(shares).collect()
            });
            let columns = std::iter::once("below us").chain(of.iter().map(|(name, _)| *name));
            (!of.is_empty()).then(|| Series {
                name: format!("cumulative distribution of mutex sections, {}, percent", condition.name()),
                columns: columns.map(str::to_owned).collect(),
                rows: rows.collect(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole way, short: one program under one condition.
    #[test]
    fn a_short_study_measures_a_real_program() {
        if let Err(error) = find_library(LOCKS_LIBRARY, None) {
            println!("SKIPPED: {error}");
            return;
        }
        let plan = Plan {
            watch_ns: 300_000_000,
            kernel_ns: 200_000_000,
            programs: &[Program::Memcached, Program::Sqlite],
            conditions: &[Condition::Idle],
        };
        let mut steps = Vec::new();
        let results =
            measure(&plan, &mut |done, of, what| steps.push((done, of, what.to_owned()))).expect("a study");
        assert_eq!(steps.len(), 3);
        let report = report(&results);
        for (what, why) in &results.skipped {
            println!("SKIPPED: {what}: {why}");
        }
        assert_eq!(results.runs.len() + results.skipped.len(), 2);
        for run in &results.runs {
            assert!(
                run.mutexes().is_some_and(|s| s.lengths.count() > 0),
                "{} locks nothing",
                run.program.name()
            );
        }
        let numbers: Vec<u32> = report.facts.iter().filter_map(|fact| fact.number).collect();
        assert!([9, 10, 11, 12, 13].iter().all(|number| numbers.contains(number)), "{numbers:?}");
        assert!(
            report
                .facts
                .iter()
                .filter(|fact| fact.exact)
                .all(|fact| fact.published.as_ref() == Some(&fact.ours))
        );
        for series in &report.series {
            assert!(series.rows.iter().all(|row| row.len() == series.columns.len()), "{}", series.name);
        }
    }
}
