//! Job sets of np-schedulability-analysis: non-preemptive jobs with their own arrival, cost, absolute deadline and priority, of which a smaller
//! number is more important. Jobs of the same priority go by the number of their task and then by their own.
//!
//! A job is a task here that arrives once. Its priority is its place in the order of all jobs, which is the same order.

use crate::known::{Known, SMALLER_UNIT, at, error, whole};
use crate::reading::{Bytes, Reading};
use horolog_model::{Arrival, ModelError, Policy, Preemption, Priority, System, Task};
use horolog_time::Span;
use std::collections::BTreeSet;

/// The columns of a job, in their order.
pub(crate) const COLUMNS: [&str; 8] =
    ["Task ID", "Job ID", "Arrival min", "Arrival max", "Cost min", "Cost max", "Deadline", "Priority"];

/// At most so many jobs are written.
const MOST: u64 = 1_000_000;

/// One value as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: Bytes,
}

struct Row {
    task: u64,
    job: u64,
    priority: i64,
    line: Bytes,
    keys: [(&'static str, Bytes); 5],
    arrival: Span,
    bcet: Span,
    wcet: Span,
    deadline: Span,
}

/// The rows of a job set on the way to a system.
#[derive(Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    seen: BTreeSet<(u64, u64)>,
}

impl Rows {
    /// One job; `line` is all of it.
    pub(crate) fn push(&mut self, reading: &mut Reading<'_>, fields: &[Field<'_>; 8], line: Bytes) {
        let [task, job, first, last, least, most, by, rank] = fields;
        let task_number = reading.integer(task.text, &task.at, "the task's number");
        let job_number = reading.integer(job.text, &job.at, "the job's number");
        let mut time = |field: &Field<'_>, what| reading.time(field.text, &field.at, what);
        let arrival = time(first, "the earliest arrival");
        let latest = time(last, "the latest arrival");
        let bcet = time(least, "the least cost");
        let wcet = time(most, "the most cost");
        let absolute = time(by, "the deadline");
        let priority = reading.integer(rank.text, &rank.at, "the priority");
        let (
            Some(task),
            Some(job),
            Some(arrival),
            Some(latest),
            Some(bcet),
            Some(wcet),
            Some(absolute),
            Some(priority),
        ) = (task_number, job_number, arrival, latest, bcet, wcet, absolute, priority)
        else {
            return;
        };
        if !self.seen.insert((task, job)) {
            reading.refuse(
                line,
                format!("job {job} of task {task} is given twice"),
                "give each job of a task its own number",
            );
            return;
        }
        if latest != arrival {
            reading.beyond(last.at.clone(), "an arrival that is known only within an interval");
            return;
        }
        let Some(deadline) = absolute.checked_sub(arrival).filter(|deadline| !deadline.is_zero()) else {
            reading.refuse(
                by.at.clone(),
                "the absolute deadline is not after the arrival",
                "give a later deadline",
            );
            return;
        };
        let keys = [
            ("arrivals", first.at.clone()),
            ("bcet", least.at.clone()),
            ("wcet", most.at.clone()),
            ("deadline", by.at.clone()),
            ("priority", rank.at.clone()),
        ];
        self.rows.push(Row { task, job, priority, line, keys, arrival, bcet, wcet, deadline });
    }

    /// All jobs are known.
    pub(crate) fn finish(mut self, reading: &mut Reading<'_>) {
        if self.rows.is_empty() && !reading.is_wrong() {
            reading.refuse(0..0, "there is no job in it", "give at least one job");
            return;
        }
        reading.draft.policy = Policy::FixedPriority;
        self.rows.sort_by_key(|row| (row.priority, row.task, row.job));
        let jobs = self.rows.len() as i64;
        let rank_of = |place: usize| Priority::new(jobs - place as i64);
        let mut tasks: Vec<(Row, Priority)> =
            self.rows.into_iter().enumerate().map(|(place, row)| (row, rank_of(place))).collect();
        tasks.sort_by_key(|(row, _)| row.line.start);
        for (row, priority) in tasks {
            let arrival = Arrival::Aperiodic { arrivals: vec![row.arrival] };
            let mut task = Task::new(&format!("T{}J{}", row.task, row.job), arrival, row.wcet);
            task.bcet = row.bcet;
            task.deadline = Some(row.deadline);
            task.preemption = Preemption::NonPreemptive;
            task.priority = Some(priority);
            let own = row.keys[0].1.start..row.line.end.max(row.keys[0].1.end);
            reading.task(task, row.keys.into_iter().chain([("", own)]));
        }
    }
}

/// A job as it is written: its values in the order of [`COLUMNS`].
pub(crate) type Written = [u64; 8];

/// The jobs of a system in the order of their tasks; those of tasks with a period within one hyperperiod.
pub(crate) fn written(
    system: &System,
    unit: Span,
    word: &'static str,
) -> Result<Vec<Written>, Vec<ModelError>> {
    let known = Known {
        word,
        preemption: "non-preemptive",
        offset: true,
        jitter: true,
        aperiodic: true,
        bcet: true,
        other_deadlines: true,
        edf: true,
        ..Known::default()
    };
    let mut found = known.beyond(system);
    let end = end(system, &mut found);
    for task in system.tasks() {
        check_units(task, unit, &mut found);
    }
    if !found.is_empty() {
        return Err(found);
    }
    let mut jobs = Vec::new();
    for (place, task) in system.tasks().iter().enumerate() {
        let (task_number, job_number) = numbers(system, place);
        for (index, arrival) in arrivals(task, end).enumerate() {
            jobs.push(Release { task: task_number, job: job_number + index as u64, place, arrival });
        }
    }
    if jobs.is_empty() {
        return Err(vec![error("task", "no job arrives within a hyperperiod", "give smaller offsets")]);
    }
    let rows: Vec<Written> = ranked(system, &jobs)
        .into_iter()
        .zip(&jobs)
        .map(|(rank, job)| row(&system.tasks()[job.place], job, rank, unit, &mut found))
        .collect();
    found.dedup();
    if found.is_empty() { Ok(rows) } else { Err(found) }
}

struct Release {
    task: u64,
    job: u64,
    place: usize,
    arrival: Span,
}

/// Where the jobs of tasks with a period end.
fn end(system: &System, found: &mut Vec<ModelError>) -> Span {
    let periodic = |task: &&Task| task.separation().is_some();
    for task in system.tasks().iter().filter(periodic) {
        if task.offset.is_none() {
            found.push(error(
                at(task, "offset"),
                "a job set has instants, and the phase of this task is open",
                "give the offset, as in `offset = \"0 ms\"`",
            ));
        }
    }
    if !system.tasks().iter().any(|task| periodic(&task)) {
        return Span::ZERO;
    }
    let latest = system.tasks().iter().filter_map(|task| task.offset).max().unwrap_or(Span::ZERO);
    let whole = system.hyperperiod().and_then(|hyperperiod| hyperperiod.checked_add(latest));
    let jobs = |end: Span| -> u64 {
        system.tasks().iter().filter_map(|task| end.div_ceil(task.separation()?)).fold(0, u64::saturating_add)
    };
    match whole {
        Some(end) if jobs(end) <= MOST => end,
        _ => {
            found.push(error(
                "task",
                format!("the jobs of one hyperperiod are more than {MOST}"),
                "give periods that divide each other",
            ));
            Span::ZERO
        }
    }
}

fn arrivals(task: &Task, end: Span) -> Box<dyn Iterator<Item = Span> + '_> {
    if let Arrival::Aperiodic { arrivals } = &task.arrival {
        return Box::new(arrivals.iter().copied());
    }
    let first = task.offset.unwrap_or(Span::ZERO);
    let next = move |at: &Span| at.checked_add(task.separation()?);
    Box::new(std::iter::successors(Some(first), next).take_while(move |at| *at < end))
}

/// The numbers of a task and of its first job: those of its name, where all names are such as reading gives, else its place.
fn numbers(system: &System, place: usize) -> (u64, u64) {
    let of = |task: &Task| {
        let (task_number, job) = task.name.strip_prefix('T')?.split_once('J')?;
        let parsed = (task_number.parse::<u64>().ok()?, job.parse::<u64>().ok()?);
        let once = matches!(&task.arrival, Arrival::Aperiodic { arrivals } if arrivals.len() == 1);
        (once && format!("T{}J{}", parsed.0, parsed.1) == task.name).then_some(parsed)
    };
    let all: Option<Vec<(u64, u64)>> = system.tasks().iter().map(of).collect();
    all.map_or((place as u64 + 1, 1), |all| all[place])
}

/// The place of each job in the order of all: by priority or absolute deadline, then who arrives first, then the order of the file.
fn ranked(system: &System, jobs: &[Release]) -> Vec<u64> {
    let key = |job: &Release| {
        let task = &system.tasks()[job.place];
        let urgency = match system.policy() {
            Policy::Edf => {
                i128::from(task.deadline.map_or(u64::MAX, Span::as_ns)) + i128::from(job.arrival.as_ns())
            }
            _ => -task.priority.map_or(i128::MIN + 1, |priority| i128::from(priority.number())),
        };
        (urgency, job.arrival, job.place)
    };
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&index| key(&jobs[index]));
    let mut ranks = vec![0; jobs.len()];
    for (rank, index) in order.into_iter().enumerate() {
        ranks[index] = rank as u64 + 1;
    }
    ranks
}

/// The times of a task that its jobs are made of, as whole units.
fn check_units(task: &Task, unit: Span, found: &mut Vec<ModelError>) {
    let mut check = |span: Span, key: &str| {
        whole(span, unit, SMALLER_UNIT, at(task, key), found);
    };
    match &task.arrival {
        Arrival::Aperiodic { arrivals } => arrivals.iter().for_each(|arrival| check(*arrival, "arrivals")),
        _ => {
            check(task.separation().unwrap_or_default(), "period");
            check(task.offset.unwrap_or_default(), "offset");
        }
    }
    check(task.jitter, "jitter");
    check(task.bcet, "bcet");
    check(task.wcet, "wcet");
    check(task.deadline.unwrap_or_default(), "deadline");
}

fn row(task: &Task, job: &Release, rank: u64, unit: Span, found: &mut Vec<ModelError>) -> Written {
    let mut sum = |to: Span, key: &str| {
        job.arrival.checked_add(to).unwrap_or_else(|| {
            found.push(error(at(task, key), "the instant is later than 584 years", "give a shorter time"));
            Span::ZERO
        })
    };
    let latest = sum(task.jitter, "jitter");
    let deadline = sum(task.deadline.unwrap_or(Span::ZERO), "deadline");
    let units = |span: Span| span.as_ns() / unit.as_ns();
    [
        job.task,
        job.job,
        units(job.arrival),
        units(latest),
        units(task.bcet),
        units(task.wcet),
        units(deadline),
        rank,
    ]
}
