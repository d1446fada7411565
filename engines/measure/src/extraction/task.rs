//! One thread as a proposed task, each value with what it rests on.

use super::arrivals::{self, CurvePoint};
use super::event::{LockKind, WaitKind};
use super::jobs::{Job, SleepKind, outliers, set_stolen_aside, sleeps};
use super::pattern::{self, Pattern, Reading};
use super::proposal::text as span;
use super::statistics::Distribution;
use super::stretch::{Doubt, Observer, Section, Stolen, Thread};
use serde::Serialize;
use std::collections::BTreeMap;

/// How a thread is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "class")]
pub enum Class {
    /// SCHED_FIFO.
    Fifo {
        /// 1 to 99.
        priority: u8,
    },
    /// SCHED_RR.
    RoundRobin {
        /// 1 to 99.
        priority: u8,
    },
    /// SCHED_FIFO or SCHED_RR: the record of switches does not tell them apart.
    RealTime {
        /// 1 to 99.
        priority: u8,
    },
    /// SCHED_DEADLINE; zeros where the reservation was not seen.
    Deadline {
        /// Budget a period.
        runtime_ns: u64,
        /// Relative deadline.
        deadline_ns: u64,
        /// Period.
        period_ns: u64,
    },
    /// Earliest deadline first, as the trace's own system file says.
    Edf {
        /// Relative deadline.
        deadline_ns: u64,
    },
    /// A priority, as the trace's own system file says.
    Modelled {
        /// Larger is more important.
        priority: i64,
        /// Relative deadline; 0: none.
        deadline_ns: u64,
    },
    /// An ordinary class.
    Normal {
        /// The nice value.
        nice: i32,
    },
    /// The record does not say.
    Unknown,
}

impl Class {
    /// Whether it is a class for real-time work; threads of unknown class may be.
    #[must_use]
    pub fn is_real_time(self) -> bool {
        !matches!(self, Class::Normal { .. })
    }

    /// Whether it tells a deadline.
    #[must_use]
    pub fn has_deadline(self) -> bool {
        matches!(self, Class::Deadline { .. } | Class::Edf { .. } | Class::Modelled { .. })
    }

    /// As comments name it.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Class::Fifo { priority } => format!("SCHED_FIFO {priority}"),
            Class::RoundRobin { priority } => format!("SCHED_RR {priority}"),
            Class::RealTime { priority } => format!("SCHED_FIFO or SCHED_RR {priority}"),
            Class::Deadline { period_ns: 0, .. } => "SCHED_DEADLINE".to_owned(),
            Class::Deadline { runtime_ns, deadline_ns, period_ns } => {
                format!("SCHED_DEADLINE {} in {} by {}", span(runtime_ns), span(period_ns), span(deadline_ns))
            }
            Class::Edf { .. } => "EDF by the trace's system file".to_owned(),
            Class::Modelled { priority, .. } => format!("priority {priority} by the trace's system file"),
            Class::Normal { nice } => format!("an ordinary class, nice {nice}"),
            Class::Unknown => "a class that the record does not tell".to_owned(),
        }
    }
}

/// What is known of a thread besides its record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// Its id.
    pub tid: u32,
    /// Its short name.
    pub comm: String,
    /// Its process: the number, and the name of its first thread. `None` where that is not known.
    pub process: Option<(u32, String)>,
    /// How it is scheduled.
    pub class: Class,
    /// Whether its class or priority changed while it was watched.
    pub class_changed: bool,
    /// Whether it was an ordinary thread after it had been a real-time one.
    pub is_also_ordinary: bool,
    /// The processors that it may run on; `None` where that is not known.
    pub allowed: Option<Vec<u32>>,
    /// What its `epoll` waits for: sorts of files, and the most that there were of each at one time.
    pub files: BTreeMap<&'static str, usize>,
}

/// How far a proposal can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Fewer than 20 activations, or a residual p99 of 10 % of the period or more, or an arrival pattern without a rule.
    Low,
    /// In between.
    Medium,
    /// A period with 100 activations or more, a residual p99 below 1 % of it, at most 5 % of the jobs set aside, at most
    /// 1 % of the activations missing.
    High,
}

impl Confidence {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

/// Jobs that were not used for execution times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SetAside {
    /// Switches are missing from the record.
    pub chain: u64,
    /// The host stopped the processor meanwhile, or took time from it.
    pub pause: u64,
    /// Much longer than nearly all others, and left out as asked.
    pub outlier: u64,
    /// The first of a thread that started meanwhile.
    pub start: u64,
    /// The longest apparent execution among those.
    pub longest_ns: u64,
}

impl SetAside {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.chain + self.pause + self.outlier + self.start
    }
}

/// Sleeps within jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Suspensions {
    /// All of them.
    pub count: u64,
    /// Jobs with at least one.
    pub jobs: u64,
    /// The most of one job.
    pub most_a_job: u32,
    /// The longest.
    pub longest_ns: u64,
    /// The longest in all of one job.
    pub longest_a_job_ns: u64,
}

/// Sleeps within jobs for an unknown reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Unclassified {
    /// All of them.
    pub count: u64,
    /// Jobs with at least one.
    pub jobs: u64,
    /// The longest in all of one job.
    pub longest_a_job_ns: u64,
    /// Whether they count as execution: where more than one job in twenty has one, they belong to the program.
    pub counted: bool,
}

impl Unclassified {
    fn of(used: &[&Job]) -> Unclassified {
        let mut found = Unclassified::default();
        for job in used.iter().filter(|job| job.unclassified > 0) {
            found.jobs += 1;
            found.count += u64::from(job.unclassified);
            found.longest_a_job_ns = found.longest_a_job_ns.max(job.unclassified_ns);
        }
        found.counted = found.jobs * 20 > used.len() as u64;
        found
    }

    /// What a job executes, its sleeps included.
    fn demand(self, job: &Job) -> u64 {
        let left_out = if self.counted { 0 } else { job.unclassified_ns };
        job.executed_ns.saturating_add(job.suspended_ns.saturating_sub(left_out))
    }
}

/// Critical sections under one lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LockUse {
    /// The lock.
    pub lock: String,
    /// How long it was held.
    pub held: Distribution,
    /// What it does about priorities.
    pub kind: LockKind,
    /// The most that the thread executed under it; `None` where switches are missing from every section.
    pub executed_max_ns: Option<u64>,
    /// The most that it slept under it.
    pub slept_max_ns: u64,
    /// The most that it executed and slept under it; for how long it was held where switches are missing.
    pub length_max_ns: u64,
    /// The greatest number of locks that it held already.
    pub depth_max: u32,
}

/// A point of the observed curves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CurveEntry {
    /// So many consecutive jobs.
    pub jobs: u64,
    /// The shortest time from the first to the last of their arrivals.
    pub least_ns: u64,
    /// The longest.
    pub most_ns: u64,
    /// The most that they executed together; `None` where no such run of jobs is whole.
    pub executed_max_ns: Option<u64>,
}

/// A thread as a task.
#[derive(Clone, Debug)]
pub struct TaskProposal {
    /// The task's name, unique.
    pub name: String,
    /// What is known of the thread.
    pub thread: Description,
    /// Its processors, each with the share of the thread's execution there, in thousandths.
    pub cpus: Vec<(u32, u64)>,
    /// Its jobs and how they arrive.
    pub reading: Reading,
    /// Execution of the jobs that were used.
    pub execution: Distribution,
    /// Execution and self-suspension together.
    pub demand: Distribution,
    /// From arrival to end.
    pub response: Distribution,
    /// From the expiry of a job's timer to its wake-up.
    pub lateness: Option<Distribution>,
    /// How late after their grid points jobs became ready.
    pub jitter: Jitter,
    /// Jobs not used.
    pub set_aside: SetAside,
    /// Sleeps within jobs.
    pub suspensions: Suspensions,
    /// Those of them for an unknown reason.
    pub unclassified: Unclassified,
    /// Sorts of sleep that do not separate jobs, and how often they occurred.
    pub other_sleeps: Vec<(SleepKind, u64)>,
    /// Jobs much longer than nearly all others.
    pub outliers: u64,
    /// How often jobs were preempted.
    pub preemptions: u64,
    /// Sections under locks.
    pub locks: Vec<LockUse>,
    /// Locks that it waited for and did not get in time.
    pub timed_out: Vec<String>,
    /// Observed curves.
    pub curve: Vec<CurveEntry>,
    /// How far it can be trusted.
    pub confidence: Confidence,
    /// What the confidence rests on.
    pub reasons: Vec<String>,
}

/// Release jitter and what was left out of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Jitter {
    /// The proposed bound.
    pub jitter_ns: u64,
    /// Activations left out: later than ten times the 99th percentile, at most 1 % of them.
    pub left_out: u64,
    /// The latest of those.
    pub latest_ns: u64,
}

/// What makes a task of a thread, or why it is none.
pub(super) fn propose(
    description: Description,
    thread: &Thread,
    observer: &Observer,
    lock_name: &dyn Fn(u64) -> String,
    drop_outliers: bool,
) -> Result<TaskProposal, String> {
    let mut reading = pattern::read(&thread.stretches, thread.last_wait());
    if thread.born
        && reading.jobs.len() > 1
        && let Some(first) = reading.jobs.first_mut()
    {
        first.doubt = Some(Doubt::Start);
    }
    if reading.jobs.is_empty() {
        return Err(no_activation(thread.executed_ns()));
    }
    let cpus = shares(&thread.on_cpu_ns);
    let locks = locks(&thread.sections, lock_name);
    let counts = sleeps(&thread.stretches);
    let mut task = of_reading(description, reading, cpus, locks, &observer.stolen, drop_outliers)?;
    task.timed_out = thread.timed_out.iter().map(|&lock| lock_name(lock)).collect();
    let kinds = &task.reading.separator.kinds;
    task.other_sleeps = counts.into_iter().filter(|(kind, _)| !kinds.contains(kind)).collect();
    Ok(task)
}

/// Why a thread that has executed so much is no task: a job begins where it has slept for its time, and one that is always late does not.
fn no_activation(executed_ns: u64) -> String {
    let seen = "no activation was seen";
    if executed_ns == 0 {
        return seen.to_owned();
    }
    format!(
        "{seen} though it executed {}: it never waited for its next time, as a thread does that is always late; give it more of a processor, or a \
         slower rate, and record it again",
        span(executed_ns)
    )
}

/// The same where the jobs are known.
pub(super) fn of_reading(
    thread: Description,
    mut reading: Reading,
    cpus: Vec<(u32, u64)>,
    locks: Vec<LockUse>,
    stolen: &[Stolen],
    drop_outliers: bool,
) -> Result<TaskProposal, String> {
    if reading.jobs.is_empty() {
        return Err(no_activation(0));
    }
    set_stolen_aside(&mut reading.jobs, stolen);
    let outlying = outliers(&reading.jobs);
    if drop_outliers {
        outlying.iter().for_each(|index| reading.jobs[*index].doubt = Some(Doubt::Outlier));
    }
    let used: Vec<&Job> = reading.jobs.iter().filter(|job| job.doubt.is_none()).collect();
    let of = |value: &dyn Fn(&Job) -> u64| Distribution::of(used.iter().map(|job| value(job)).collect());
    let unclassified = Unclassified::of(&used);
    let demand = of(&|job| unclassified.demand(job));
    let response = of(&|job| job.ended_ns.saturating_sub(job.arrival_ns()));
    let (Some(execution), Some(demand), Some(response)) = (of(&|job| job.executed_ns), demand, response)
    else {
        return Err(format!(
            "of its {} jobs none is whole on record: switches are missing from each",
            reading.jobs.len()
        ));
    };
    if execution.max_ns == 0 {
        return Err("it executed nothing".to_owned());
    }
    let seen = reading.jobs.iter().filter(|job| job.seen);
    let lateness =
        Distribution::of(seen.filter_map(|job| job.ready_ns.checked_sub(job.nominal_ns?)).collect());
    let set_aside = set_aside(&reading.jobs);
    let (confidence, reasons) = judge(&reading, set_aside, unclassified);
    Ok(TaskProposal {
        name: String::new(),
        cpus,
        execution,
        demand,
        response,
        lateness,
        jitter: jitter(&reading, drop_outliers),
        set_aside,
        suspensions: suspensions(&used),
        unclassified,
        other_sleeps: Vec::new(),
        outliers: outlying.len() as u64,
        preemptions: used.iter().map(|job| u64::from(job.preemptions)).sum(),
        locks,
        timed_out: Vec::new(),
        curve: curve(&reading.jobs),
        confidence,
        reasons,
        thread,
        reading,
    })
}

impl TaskProposal {
    /// Arrival and execution of each job, in the order of arrivals; `counted`: with its sleeps. Of a job that was set aside
    /// no more counts than the longest of the others.
    #[must_use]
    pub fn work(&self, counted: bool) -> Vec<(u64, u64)> {
        let most = if counted { &self.demand } else { &self.execution }.max_ns;
        let of = |job: &Job| {
            let taken = if counted { self.unclassified.demand(job) } else { job.executed_ns };
            (job.arrival_ns(), if job.doubt.is_some() { taken.min(most) } else { taken })
        };
        let mut work: Vec<(u64, u64)> = self.reading.jobs.iter().map(of).collect();
        work.sort_unstable_by_key(|(arrival, _)| *arrival);
        work
    }

    /// The processors that it may run on, else those that it had.
    #[must_use]
    pub fn possible_cpus(&self) -> Vec<u32> {
        match &self.thread.allowed {
            Some(allowed) => allowed.clone(),
            None => self.cpus.iter().map(|(cpu, _)| *cpu).collect(),
        }
    }

    /// Whether it is an event loop: one thread that waits for any of several files and works off what has come.
    #[must_use]
    pub fn is_event_loop(&self) -> bool {
        let kinds = &self.reading.separator.kinds;
        !kinds.is_empty()
            && kinds.iter().all(|kind| kind.wait.is_external())
            && kinds.iter().any(|kind| matches!(kind.wait, WaitKind::Poll | WaitKind::Epoll))
    }
}

/// The share of each processor, the greatest first.
pub(super) fn shares(on_cpu_ns: &BTreeMap<u32, u64>) -> Vec<(u32, u64)> {
    let all: u128 = on_cpu_ns.values().map(|ns| u128::from(*ns)).sum();
    let mut shares: Vec<(u32, u64)> = on_cpu_ns
        .iter()
        .filter(|(_, ns)| **ns > 0)
        .map(|(cpu, ns)| (*cpu, (u128::from(*ns) * 1_000 / all.max(1)) as u64))
        .collect();
    shares.sort_by_key(|(cpu, share)| (std::cmp::Reverse(*share), *cpu));
    shares
}

fn set_aside(jobs: &[Job]) -> SetAside {
    let mut found = SetAside::default();
    for job in jobs {
        match job.doubt {
            None => continue,
            Some(Doubt::Chain) => found.chain += 1,
            Some(Doubt::Pause) => found.pause += 1,
            Some(Doubt::Outlier) => found.outlier += 1,
            Some(Doubt::Start) => found.start += 1,
        }
        found.longest_ns = found.longest_ns.max(job.executed_ns);
    }
    found
}

fn suspensions(used: &[&Job]) -> Suspensions {
    let mut found = Suspensions::default();
    for job in used.iter().filter(|job| job.suspensions > 0) {
        found.jobs += 1;
        found.count += u64::from(job.suspensions);
        found.most_a_job = found.most_a_job.max(job.suspensions);
        found.longest_ns = found.longest_ns.max(job.suspended_max_ns);
        found.longest_a_job_ns = found.longest_a_job_ns.max(job.suspended_ns);
    }
    found
}

pub(super) fn locks(sections: &[Section], lock_name: &dyn Fn(u64) -> String) -> Vec<LockUse> {
    let mut by_lock: BTreeMap<u64, Vec<&Section>> = BTreeMap::new();
    for section in sections {
        by_lock.entry(section.lock).or_default().push(section);
    }
    let of_lock = |(lock, sections): (u64, Vec<&Section>)| {
        Some(LockUse {
            lock: lock_name(lock),
            held: Distribution::of(sections.iter().map(|section| section.held_ns).collect())?,
            kind: sections.iter().map(|section| section.kind).min()?,
            executed_max_ns: sections.iter().filter(|it| it.is_whole).map(|it| it.executed_ns).max(),
            slept_max_ns: sections.iter().map(|section| section.slept_ns).max()?,
            length_max_ns: sections.iter().map(|section| section.length_ns).max()?,
            depth_max: sections.iter().map(|section| section.depth).max()?,
        })
    };
    by_lock.into_iter().filter_map(of_lock).collect()
}

fn jitter(reading: &Reading, drop_outliers: bool) -> Jitter {
    let Pattern::Periodic(fit) = &reading.pattern else { return Jitter::default() };
    let all = &fit.residuals_ns;
    let latest_ns = fit.residual(100.0);
    let limit = fit.residual(99.0).saturating_mul(10);
    let kept = all.partition_point(|residual| *residual <= limit);
    let left_out = all.len() - kept;
    if drop_outliers && all.len() >= 100 && left_out > 0 && left_out * 100 <= all.len() {
        return Jitter { jitter_ns: all[kept - 1], left_out: left_out as u64, latest_ns };
    }
    // Two arrivals that share a grid point, and those of jobs without a timer, may need more.
    let needed = u64::try_from(arrivals::lead(&pattern::arrivals_of(&reading.jobs), fit.period_ns));
    Jitter { jitter_ns: latest_ns.max(needed.unwrap_or(u64::MAX)), left_out: 0, latest_ns }
}

fn curve(jobs: &[Job]) -> Vec<CurveEntry> {
    let points = arrivals::curve(&pattern::arrivals_of(jobs));
    let executed = |n: usize| {
        jobs.windows(n)
            .filter(|window| window.iter().all(|job| job.doubt.is_none()))
            .map(|window| window.iter().map(|job| job.executed_ns).sum::<u64>())
            .max()
    };
    points
        .into_iter()
        .map(|CurvePoint { arrivals, least_ns, most_ns }| CurveEntry {
            jobs: arrivals,
            least_ns,
            most_ns,
            executed_max_ns: executed(arrivals as usize),
        })
        .collect()
}

fn judge(reading: &Reading, set_aside: SetAside, unclassified: Unclassified) -> (Confidence, Vec<String>) {
    let count = reading.jobs.len() as u64;
    let aside = set_aside.total();
    let mut confidence = Confidence::High;
    let mut reasons = Vec::new();
    let mut at_most = |limit: Confidence, reason: String| {
        confidence = confidence.min(limit);
        reasons.push(reason);
    };
    match count {
        100.. => at_most(Confidence::High, format!("{count} activations")),
        20.. => at_most(Confidence::Medium, format!("{count} activations, fewer than 100")),
        _ => at_most(Confidence::Low, format!("{count} activations, fewer than 20")),
    }
    match &reading.pattern {
        Pattern::Periodic(fit) => {
            let share = fit.residual(99.0) as f64 / fit.period_ns as f64 * 100.0;
            let text = format!("residual p99 {} is {share:.2} % of the period", span(fit.residual(99.0)));
            match share {
                _ if share < 1.0 => at_most(Confidence::High, text),
                _ if share < 10.0 => at_most(Confidence::Medium, text),
                _ => at_most(Confidence::Low, text),
            }
            if fit.missing * 100 > count {
                at_most(Confidence::Medium, format!("{} grid points without an activation", fit.missing));
            }
            if fit.doubled > 0 {
                at_most(Confidence::Medium, format!("{} activations share a grid point", fit.doubled));
            }
        }
        Pattern::Sporadic { .. } => {
            at_most(Confidence::Medium, "the least separation seen is not a bound".to_owned());
        }
        Pattern::Aperiodic => at_most(Confidence::Low, "no pattern in so few".to_owned()),
    }
    if aside * 20 > count {
        at_most(Confidence::Medium, format!("{aside} of {count} jobs set aside"));
    }
    if reading.separator.kinds.iter().any(|kind| kind.wait == WaitKind::Unknown) {
        at_most(Confidence::Medium, "the record does not tell for what it slept".to_owned());
    }
    if unclassified.count > 0 {
        let treated = if unclassified.counted { "counted as execution" } else { "not in the wcet" };
        at_most(
            Confidence::Medium,
            format!(
                "{} sleeps within {} jobs, up to {} in one, for an unknown reason: {treated}",
                unclassified.count,
                unclassified.jobs,
                span(unclassified.longest_a_job_ns)
            ),
        );
    }
    if reading.separator.every > 1 {
        at_most(Confidence::Medium, format!("a job is taken to hold {} sleeps", reading.separator.every));
    }
    (confidence, reasons)
}

#[cfg(test)]
mod tests {
    use super::no_activation;

    #[test]
    fn a_thread_that_never_waits_is_told_what_that_means() {
        assert_eq!(no_activation(0), "no activation was seen");
        let why = no_activation(1);
        assert!(why.contains("executed 1 ns") && why.contains("always late"), "{why}");
    }
}
