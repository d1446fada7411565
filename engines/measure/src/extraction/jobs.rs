//! From stretches to jobs: which sleeps end one, which only interrupt it.

use super::arrivals::percentile;
use super::event::WaitKind;
use super::stretch::{Doubt, Stolen, Stretch};
use std::collections::BTreeMap;

/// A sort of sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SleepKind {
    /// For what.
    pub wait: WaitKind,
    /// Whether a timer of its own ended it.
    pub timed: bool,
}

/// A job: from an activation to the next one's sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// When it became ready.
    pub ready_ns: u64,
    /// Whether that was seen (a wake-up) and not concluded.
    pub seen: bool,
    /// The expiry of the timer that released it.
    pub nominal_ns: Option<u64>,
    /// When it ended.
    pub ended_ns: u64,
    /// How long it executed.
    pub executed_ns: u64,
    /// How often it slept before its end.
    pub suspensions: u32,
    /// Its longest sleep before its end.
    pub suspended_max_ns: u64,
    /// All its sleeps before its end.
    pub suspended_ns: u64,
    /// Of these sleeps, how many have an unknown reason.
    pub unclassified: u32,
    /// How long those took in all.
    pub unclassified_ns: u64,
    /// How often it was preempted.
    pub preemptions: u32,
    /// Its processor at its end.
    pub cpu: u32,
    /// Why its execution is not used.
    pub doubt: Option<Doubt>,
}

impl Job {
    /// When it arrived: at the expiry of its timer where there was one.
    #[must_use]
    pub fn arrival_ns(&self) -> u64 {
        self.nominal_ns.unwrap_or(self.ready_ns)
    }
}

impl Stretch {
    /// The sort of sleep before it.
    #[must_use]
    pub fn slept(&self) -> Option<SleepKind> {
        Some(SleepKind { wait: self.waited?, timed: self.expiry_ns.is_some() })
    }
}

/// How often a thread slept in which way; calls that returned at once count under their own expiry.
#[must_use]
pub fn sleeps(stretches: &[Stretch]) -> BTreeMap<SleepKind, u64> {
    let mut counts = BTreeMap::new();
    for kind in stretches.iter().filter_map(Stretch::slept) {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

/// Which sleeps separate jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Separator {
    /// These sorts of sleep.
    pub kinds: Vec<SleepKind>,
    /// Of those sleeps only every so-many-th, which is the longest of its round.
    pub every: u32,
}

impl Separator {
    /// These sorts of sleep, each time.
    #[must_use]
    pub fn new(kinds: Vec<SleepKind>) -> Separator {
        Separator { kinds, every: 1 }
    }

    fn separates(&self, kind: Option<SleepKind>) -> bool {
        kind.is_some_and(|kind| self.kinds.contains(&kind))
    }

    /// Whether a call that returned at once would have ended a job.
    fn separates_call(&self, wait: WaitKind, timed: bool) -> bool {
        self.kinds.iter().any(|kind| kind.wait == wait && (kind.timed == timed || kind.wait.is_time()))
    }
}

/// The jobs of a thread under a separator; `last` is for what it slept in the end. What precedes the first sleep that
/// separates is left out, and so is a job that was not over.
#[must_use]
pub fn jobs(stretches: &[Stretch], last: Option<WaitKind>, separator: &Separator) -> Vec<Job> {
    let starts = starts(stretches, separator);
    let mut jobs: Vec<Job> = Vec::new();
    let mut open = false;
    for (index, stretch) in stretches.iter().enumerate() {
        if starts[index] {
            jobs.push(begin(stretch));
            open = true;
        } else if open && let Some(job) = jobs.last_mut() {
            suspend(job, stretch);
        }
        if open {
            execute(&mut jobs, stretch, separator);
        }
    }
    let over =
        separator.every == 1 && last.is_some_and(|last| separator.kinds.iter().any(|kind| kind.wait == last));
    if open && !over {
        // The record ends within the last job, as far as it tells.
        jobs.pop();
    }
    jobs
}

/// Which stretches begin a job.
fn starts(stretches: &[Stretch], separator: &Separator) -> Vec<bool> {
    let mut starts: Vec<bool> =
        stretches.iter().map(|stretch| separator.separates(stretch.slept())).collect();
    if separator.every > 1 {
        let places: Vec<usize> = (0..starts.len()).filter(|index| starts[*index]).collect();
        let every = separator.every as usize;
        let length = |place: usize| {
            let stretch = &stretches[place];
            stretch.slept_from_ns.map_or(0, |from| stretch.ready_ns.saturating_sub(from))
        };
        // The round begins behind the longest sleep.
        let of_phase = |phase: usize| {
            let mut lengths: Vec<u64> =
                places.iter().skip(phase).step_by(every).map(|place| length(*place)).collect();
            lengths.sort_unstable();
            lengths.get(lengths.len() / 2).copied().unwrap_or(0)
        };
        let phase = (0..every).max_by_key(|phase| of_phase(*phase)).unwrap_or(0);
        for (count, place) in places.into_iter().enumerate() {
            starts[place] = count % every == phase;
        }
    }
    starts
}

fn begin(stretch: &Stretch) -> Job {
    Job {
        ready_ns: stretch.ready_ns,
        seen: stretch.woken,
        nominal_ns: stretch.expiry_ns,
        ended_ns: stretch.ended_ns,
        executed_ns: 0,
        suspensions: 0,
        suspended_max_ns: 0,
        suspended_ns: 0,
        unclassified: 0,
        unclassified_ns: 0,
        preemptions: 0,
        cpu: stretch.cpu,
        doubt: None,
    }
}

fn suspend(job: &mut Job, stretch: &Stretch) {
    let from = stretch.slept_from_ns.unwrap_or(job.ended_ns);
    let slept = stretch.ready_ns.saturating_sub(from);
    job.suspensions += 1;
    job.suspended_ns = job.suspended_ns.saturating_add(slept);
    job.suspended_max_ns = job.suspended_max_ns.max(slept);
    if matches!(stretch.waited, None | Some(WaitKind::Unknown)) {
        job.unclassified += 1;
        job.unclassified_ns = job.unclassified_ns.saturating_add(slept);
    }
}

/// Adds a stretch to the last job, which ends within it where a call that separates returned at once.
fn execute(jobs: &mut Vec<Job>, stretch: &Stretch, separator: &Separator) {
    let mut before = 0;
    if separator.every == 1 {
        for mark in &stretch.marks {
            if !separator.separates_call(mark.wait, mark.expiry_ns.is_some()) {
                continue;
            }
            if let Some(job) = jobs.last_mut() {
                job.executed_ns = job.executed_ns.saturating_add(mark.executed_ns.saturating_sub(before));
                job.ended_ns = mark.at_ns;
                job.doubt = job.doubt.or(stretch.doubt);
            }
            before = mark.executed_ns;
            jobs.push(Job {
                ready_ns: mark.at_ns,
                seen: mark.expiry_ns.is_some(),
                nominal_ns: mark.expiry_ns,
                ..begin(stretch)
            });
        }
    }
    if let Some(job) = jobs.last_mut() {
        job.executed_ns = job.executed_ns.saturating_add(stretch.executed_ns.saturating_sub(before));
        job.ended_ns = stretch.ended_ns;
        job.preemptions = job.preemptions.saturating_add(stretch.preemptions);
        job.cpu = stretch.cpu;
        job.doubt = job.doubt.or(stretch.doubt);
    }
}

/// Sets jobs aside that stolen time has probably lengthened: those that overlap it and executed longer than the median
/// by at least half of what was stolen.
pub fn set_stolen_aside(jobs: &mut [Job], stolen: &[Stolen]) {
    if stolen.is_empty() {
        return;
    }
    let mut executed: Vec<u64> =
        jobs.iter().filter(|job| job.doubt.is_none()).map(|job| job.executed_ns).collect();
    executed.sort_unstable();
    let Some(median) = executed.get(executed.len() / 2).copied() else { return };
    for job in jobs.iter_mut().filter(|job| job.doubt.is_none()) {
        let excess = job.executed_ns.saturating_sub(median);
        let from = job.ready_ns;
        let hit = stolen.iter().any(|stolen| {
            stolen.cpu == job.cpu
                && stolen.since_ns < job.ended_ns
                && from < stolen.until_ns
                && excess > 0
                && excess >= stolen.stolen_ns / 2
        });
        if hit {
            job.doubt = Some(Doubt::Pause);
        }
    }
}

/// Jobs (by place) much longer than nearly all others: at most 1 % of a hundred or more, longer than twice the 99th
/// percentile and 100 us. None where more are so long: then that is how the program is.
#[must_use]
pub fn outliers(jobs: &[Job]) -> Vec<usize> {
    let mut executed: Vec<u64> =
        jobs.iter().filter(|job| job.doubt.is_none()).map(|job| job.executed_ns).collect();
    if executed.len() < 100 {
        return Vec::new();
    }
    executed.sort_unstable();
    let limit = percentile(&executed, 99.0).saturating_mul(2).max(100_000);
    jobs.iter()
        .enumerate()
        .filter(|(_, job)| job.doubt.is_none() && job.executed_ns > limit)
        .map(|(index, _)| index)
        .collect()
}
