//! Compares two runs of the same tasks: simulated against measured, or two versions.

use crate::file::Header;
use crate::statistics::{Statistics, signed_difference};
use crate::{Kind, Outcome, Record, ResponseStatistics, TraceError};
use horolog_time::Instant;
use serde::Serialize;

/// What one run did, in the form that two are compared in.
#[derive(Clone, Debug)]
pub struct Run {
    statistics: Statistics,
    start: Instant,
    /// Starts and completions in the order of time.
    order: Vec<Step>,
    limit: usize,
}

/// A start or a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Step {
    /// Since the run's start.
    #[serde(rename = "time_ns")]
    pub time: Instant,
    /// Whether it is a completion; else a start.
    pub completion: bool,
    /// Whose.
    pub task: u32,
    /// Which of its jobs.
    pub job: u64,
    /// Where.
    pub cpu: u16,
}

impl Step {
    fn same(&self, other: &Step) -> bool {
        (self.completion, self.task, self.job) == (other.completion, other.task, other.job)
    }
}

/// How many starts and completions are kept for the comparison of their order.
pub const ORDER_LIMIT: usize = 10_000_000;

impl Run {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(header: &Header) -> Run {
        Run {
            statistics: Statistics::new(header),
            start: header.start,
            order: Vec::new(),
            limit: ORDER_LIMIT,
        }
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        self.statistics.take(record);
        let completion = record.kind == Kind::Completion;
        if (completion || record.kind == Kind::Start) && self.order.len() < self.limit {
            self.order.push(Step {
                time: Instant::from_ns(record.time.saturating_since(self.start).as_ns()),
                completion,
                task: record.task,
                job: record.job,
                cpu: record.cpu,
            });
        }
    }
}

/// The difference of two runs: the JSON result `horolog.diff/1`. Where a number is called a difference, it is the
/// second run's less the first one's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Diff {
    /// Always [`Diff::SCHEMA`].
    pub schema: &'static str,
    /// The first run's outcome.
    pub first: Outcome,
    /// The second run's outcome.
    pub second: Outcome,
    /// Per task, in the order of the file.
    pub tasks: Vec<TaskDiff>,
    /// Per processor, where the order of starts and completions first differs; empty where it never does.
    pub divergences: Vec<Divergence>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

impl Diff {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.diff/1";
}

/// The differences of one task.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskDiff {
    /// The task's name.
    pub name: String,
    /// Of jobs released.
    pub jobs: i128,
    /// Of jobs finished.
    pub completed: i128,
    /// Of misses.
    pub missed: i128,
    /// Of preemptions.
    pub preemptions: i128,
    /// Of yields.
    pub yields: i128,
    /// Of switch-ins.
    pub switch_ins: i128,
    /// Of the least response time; null where one run has none.
    pub response_ns_min: Option<i128>,
    /// Of the mean.
    pub response_ns_mean: Option<f64>,
    /// Of the median.
    pub response_ns_p50: Option<i128>,
    /// Of the 99.9th percentile.
    pub response_ns_p99_9: Option<i128>,
    /// Of the greatest.
    pub response_ns_max: Option<i128>,
    /// The Kolmogorov-Smirnov distance of the response times: the greatest difference of the two distribution
    /// functions, from 0 (alike) to 1 (apart).
    pub distance: Option<f64>,
}

/// Where two runs part on one processor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Divergence {
    /// The processor.
    pub cpu: u16,
    /// How many starts and completions were the same before.
    pub after: u64,
    /// What the first run did then; null at its end.
    pub first: Option<Step>,
    /// What the second run did then; null at its end.
    pub second: Option<Step>,
}

/// Compares two runs.
///
/// # Errors
/// Where they are of different tasks.
pub fn diff(first: &Run, second: &Run) -> Result<Diff, TraceError> {
    let (a, b) = (first.statistics.outcome(), second.statistics.outcome());
    let names = |outcome: &Outcome| outcome.tasks.iter().map(|task| task.name.clone()).collect::<Vec<_>>();
    if names(&a) != names(&b) {
        return Err(TraceError::unsupported(
            format!(
                "the traces are of different tasks: {} and {}",
                names(&a).join(", "),
                names(&b).join(", ")
            ),
            "compare traces of the same system file",
        ));
    }
    let tasks = (0..a.tasks.len()).map(|task| task_diff(first, second, &a, &b, task)).collect();
    let mut notes = Vec::new();
    for (name, run, outcome) in [("first", first, &a), ("second", second, &b)] {
        if outcome.events_lost > 0 {
            notes.push(format!("the {name} run lost {} records", outcome.events_lost));
        }
        if run.order.len() == run.limit {
            notes.push(format!(
                "of the {name} run only the first {} starts and completions were compared",
                run.limit
            ));
        }
    }
    Ok(Diff {
        schema: Diff::SCHEMA,
        tasks,
        divergences: divergences(&first.order, &second.order),
        first: a,
        second: b,
        notes,
    })
}

fn task_diff(first: &Run, second: &Run, a: &Outcome, b: &Outcome, task: usize) -> TaskDiff {
    let (x, y) = (&a.tasks[task], &b.tasks[task]);
    let count = |from: u64, to: u64| i128::from(to) - i128::from(from);
    TaskDiff {
        name: x.name.clone(),
        jobs: count(x.jobs, y.jobs),
        completed: count(x.completed, y.completed),
        missed: count(x.missed, y.missed),
        preemptions: count(x.preemptions, y.preemptions),
        yields: count(x.yields, y.yields),
        switch_ins: count(x.switch_ins, y.switch_ins),
        response_ns_min: signed_difference(x.response_ns_min, y.response_ns_min),
        response_ns_mean: x.response_ns_mean.zip(y.response_ns_mean).map(|(x, y)| y - x),
        response_ns_p50: signed_difference(x.response_ns_p50, y.response_ns_p50),
        response_ns_p99_9: signed_difference(x.response_ns_p99_9, y.response_ns_p99_9),
        response_ns_max: signed_difference(x.response_ns_max, y.response_ns_max),
        distance: match (first.statistics.responses(task), second.statistics.responses(task)) {
            (Some(x), Some(y)) => distance(x, y),
            _ => None,
        },
    }
}

/// The Kolmogorov-Smirnov distance of two histograms: at every recorded value, how far apart the shares of values
/// up to it are. To the histogram's three significant digits.
fn distance(a: &ResponseStatistics, b: &ResponseStatistics) -> Option<f64> {
    if a.count() == 0 || b.count() == 0 {
        return None;
    }
    let points = |statistics: &ResponseStatistics| {
        let mut sum = 0;
        let steps = statistics.histogram().iter_recorded().map(|step| {
            sum += step.count_at_value();
            (step.value_iterated_to(), sum)
        });
        steps.collect::<Vec<_>>()
    };
    let (x, y) = (points(a), points(b));
    let (mut i, mut j, mut greatest) = (0, 0, 0.0_f64);
    while i < x.len() || j < y.len() {
        let value = match (x.get(i), y.get(j)) {
            (Some(&(x, _)), Some(&(y, _))) => x.min(y),
            (Some(&(value, _)), None) | (None, Some(&(value, _))) => value,
            (None, None) => break,
        };
        i += usize::from(x.get(i).is_some_and(|step| step.0 == value));
        j += usize::from(y.get(j).is_some_and(|step| step.0 == value));
        let share = |points: &[(u64, u64)], at: usize, count: u64| {
            at.checked_sub(1).map_or(0.0, |last| points[last].1 as f64 / count as f64)
        };
        greatest = greatest.max((share(&x, i, a.count()) - share(&y, j, b.count())).abs());
    }
    Some(greatest)
}

/// The first difference in the order of starts and completions, processor by processor.
fn divergences(first: &[Step], second: &[Step]) -> Vec<Divergence> {
    let mut cpus: Vec<u16> = first.iter().chain(second).map(|step| step.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let mut found = Vec::new();
    for cpu in cpus {
        let mut a = first.iter().filter(|step| step.cpu == cpu);
        let mut b = second.iter().filter(|step| step.cpu == cpu);
        let mut after = 0;
        loop {
            match (a.next(), b.next()) {
                (None, None) => break,
                (Some(x), Some(y)) if x.same(y) => after += 1,
                (x, y) => {
                    found.push(Divergence { cpu, after, first: x.copied(), second: y.copied() });
                    break;
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_time::Span;

    fn run(jobs: &[(u64, u64)]) -> Run {
        let header = Header::simulated(String::new(), vec!["a".to_owned(), "b".to_owned()], 0, Span::ZERO);
        let mut run = Run::new(&header);
        for (number, &(arrival, response)) in jobs.iter().enumerate() {
            let mut push = |time: u64, kind: Kind, value: u64| {
                let time = Instant::from_ns(time);
                run.take(&Record { time, kind, cpu: 0, task: 0, job: number as u64, value, extra: 0 });
            };
            push(arrival, Kind::Release, arrival);
            push(arrival, Kind::Start, 0);
            push(arrival + response, Kind::Completion, response);
        }
        run
    }

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let one = run(&[(0, 10), (100, 20), (200, 30)]);
        let same = diff(&one, &one).expect("the same tasks");
        assert_eq!(same.tasks[0].distance, Some(0.0));
        assert_eq!(same.tasks[1].distance, None);
        assert_eq!((same.tasks[0].jobs, same.tasks[0].response_ns_max), (0, Some(0)));
        assert!(same.divergences.is_empty());
    }

    #[test]
    fn differences_have_the_sign_of_the_second_run() {
        let (short, long) = (run(&[(0, 10), (100, 10)]), run(&[(0, 10), (100, 30), (200, 30)]));
        let found = diff(&short, &long).expect("the same tasks");
        let task = &found.tasks[0];
        assert_eq!((task.jobs, task.response_ns_max, task.response_ns_min), (1, Some(20), Some(0)));
        assert!((task.distance.expect("both ran") - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(found.divergences.len(), 1);
        let part = &found.divergences[0];
        assert_eq!((part.after, part.first), (4, None));
        assert!(part.second.is_some_and(|step| !step.completion && step.job == 2));
    }

    #[test]
    fn other_tasks_are_refused() {
        let other = Run::new(&Header::simulated(String::new(), vec!["x".to_owned()], 0, Span::ZERO));
        assert!(diff(&run(&[]), &other).expect_err("other tasks").is_bad_input());
    }
}
