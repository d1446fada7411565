//! The activation pattern of a thread: which sleeps separate its jobs, and how these arrive.

use super::arrivals::{self, LEAST_ACTIVATIONS, PeriodFit};
use super::event::WaitKind;
use super::jobs::{Job, Separator, SleepKind, jobs, sleeps};
use super::stretch::Stretch;
use std::collections::BTreeMap;

/// How jobs arrive.
#[derive(Clone, PartialEq, Debug)]
pub enum Pattern {
    /// On a grid.
    Periodic(PeriodFit),
    /// At least so far apart.
    Sporadic {
        /// The least distance seen, ns.
        separation_ns: u64,
        /// Why no period was proposed, where the arrivals almost had one.
        almost: Option<String>,
    },
    /// Too few to tell.
    Aperiodic,
}

/// A way to cut a thread's execution into jobs, and what it comes to.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What separates jobs.
    pub separator: Separator,
    /// The rule that chose it.
    pub rule: &'static str,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// How they arrive.
    pub pattern: Pattern,
    /// Other ways to cut that gave a period as well: separator and period.
    pub others: Vec<(Separator, u64)>,
}

/// Chooses what separates the jobs of a thread, and fits their arrivals.
///
/// Candidates are each sort of sleep that occurs at least five times and in a fifth as many cases as the most frequent
/// one, all sleeps that a timer ended, and all sleeps. Of those that give a period, sleeps for time come before others
/// (a periodic program waits for its next period; what it waits for in between is a self-suspension), then the one that
/// leaves the least spread. Where none does, every second to fourth of the timed sleeps is tried (20 jobs or more, a
/// spread of at most 2 % of the period). Else jobs begin with
/// what comes from outside: files, sockets, devices, signals; else with sleeps for a time; else with every sleep but those
/// that the kernel imposes.
#[must_use]
pub fn read(stretches: &[Stretch], last: Option<WaitKind>) -> Reading {
    let counts = sleeps(stretches);
    let mut periodic: Vec<(u8, f64, Separator, Vec<Job>, PeriodFit)> = Vec::new();
    for separator in candidates(&counts) {
        let jobs = jobs(stretches, last, &separator);
        let Some(fit) = fit_of(&jobs).filter(PeriodFit::is_periodic) else { continue };
        // Sums of several distances vary less than these: only a sharp period of several sleeps is believed.
        if separator.every > 1 && (jobs.len() < 20 || fit.spread() > 0.02) {
            continue;
        }
        periodic.push((rank(&separator), fit.spread(), separator, jobs, fit));
    }
    periodic.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    if !periodic.is_empty() {
        let (_, _, separator, jobs, fit) = periodic.remove(0);
        // Every second sleep of a period is a period too, and no news.
        let others = periodic.into_iter().filter(|(_, _, other, ..)| other.every == 1);
        let others = others.map(|(_, _, other, _, fit)| (other, fit.period_ns)).collect();
        let rule = "the sort of sleep whose ends are periodic; sleeps for time before others";
        return Reading { separator, rule, jobs, pattern: Pattern::Periodic(fit), others };
    }
    let (separator, rule) = fallback(&counts);
    let jobs = jobs(stretches, last, &separator);
    let pattern = irregular(&jobs);
    Reading { separator, rule, jobs, pattern, others: Vec::new() }
}

/// The pattern of jobs that are known already.
#[must_use]
pub fn of_jobs(jobs: Vec<Job>) -> Reading {
    let pattern = match fit_of(&jobs).filter(PeriodFit::is_periodic) {
        Some(fit) => Pattern::Periodic(fit),
        None => irregular(&jobs),
    };
    let separator = Separator::new(Vec::new());
    Reading { separator, rule: "the trace tells jobs", jobs, pattern, others: Vec::new() }
}

/// Arrivals, each job's by its timer where it had one.
#[must_use]
pub fn arrivals_of(jobs: &[Job]) -> Vec<u64> {
    let mut arrivals: Vec<u64> = jobs.iter().map(Job::arrival_ns).collect();
    arrivals.sort_unstable();
    arrivals
}

/// The fit of the timers' expiries where nearly all jobs have one, else of what was observed.
fn fit_of(jobs: &[Job]) -> Option<PeriodFit> {
    let timed: Vec<u64> = jobs.iter().filter_map(|job| job.nominal_ns).collect();
    if timed.len() * 10 >= jobs.len() * 9 {
        return arrivals::fit(&sorted(timed));
    }
    arrivals::fit(&sorted(jobs.iter().map(|job| job.ready_ns).collect()))
}

fn sorted(mut times: Vec<u64>) -> Vec<u64> {
    times.sort_unstable();
    times
}

fn candidates(counts: &BTreeMap<SleepKind, u64>) -> Vec<Separator> {
    let usable: Vec<(SleepKind, u64)> = counts
        .iter()
        .filter(|(kind, _)| kind.wait != WaitKind::Uninterruptible)
        .map(|(kind, count)| (*kind, *count))
        .collect();
    let most = usable.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let mut lists: Vec<Vec<SleepKind>> = Vec::new();
    for (kind, count) in &usable {
        if *count >= LEAST_ACTIVATIONS as u64 && count * 5 >= most {
            lists.push(vec![*kind]);
        }
    }
    // A wait for the same thing ends now by its timer, now without: one sort as well.
    for (kind, _) in &usable {
        lists.push(usable.iter().map(|(other, _)| *other).filter(|other| other.wait == kind.wait).collect());
    }
    let timed: Vec<SleepKind> =
        usable.iter().map(|(kind, _)| *kind).filter(|kind| kind.timed || kind.wait.is_time()).collect();
    let all: Vec<SleepKind> = usable.iter().map(|(kind, _)| *kind).collect();
    lists.push(timed.clone());
    lists.push(all);
    lists.retain(|list| !list.is_empty());
    let mut unique: Vec<Separator> = Vec::new();
    for list in lists {
        let separator = Separator::new(list);
        if !unique.contains(&separator) {
            unique.push(separator);
        }
    }
    if !timed.is_empty() {
        unique.extend((2..=4).map(|every| Separator { kinds: timed.clone(), every }));
    }
    unique
}

/// Which of two periodic readings is believed: 0 first.
fn rank(separator: &Separator) -> u8 {
    if separator.every > 1 {
        return 4;
    }
    let kinds = &separator.kinds;
    if kinds.iter().all(|kind| kind.wait == WaitKind::SleepUntil || kind.wait == WaitKind::Yield) {
        0
    } else if kinds.iter().all(|kind| kind.wait.is_time() || kind.timed) {
        1
    } else if kinds.iter().all(|kind| kind.wait.is_external()) {
        2
    } else {
        3
    }
}

/// What separates jobs that have no period.
fn fallback(counts: &BTreeMap<SleepKind, u64>) -> (Separator, &'static str) {
    let of = |wanted: &dyn Fn(&SleepKind) -> bool| -> Vec<SleepKind> {
        counts.keys().copied().filter(|kind| wanted(kind)).collect()
    };
    let external = of(&|kind| kind.wait.is_external());
    if !external.is_empty() {
        return (Separator::new(external), "jobs begin with what comes from outside the program");
    }
    let timed = of(&|kind| kind.wait.is_time() || kind.timed);
    if !timed.is_empty() {
        return (Separator::new(timed), "jobs begin when a sleep for time ends");
    }
    let own = of(&|kind| kind.wait != WaitKind::Uninterruptible);
    if !own.is_empty() {
        return (Separator::new(own), "jobs begin whenever a sleep ends");
    }
    (Separator::new(counts.keys().copied().collect()), "jobs begin whenever a sleep ends")
}

fn irregular(jobs: &[Job]) -> Pattern {
    if jobs.len() < LEAST_ACTIVATIONS {
        return Pattern::Aperiodic;
    }
    let arrivals = arrivals_of(jobs);
    let separation_ns = arrivals.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(0).max(1);
    let almost = fit_of(jobs).and_then(|fit| why_not(&fit));
    Pattern::Sporadic { separation_ns, almost }
}

/// Why arrivals near a grid are not called periodic.
fn why_not(fit: &PeriodFit) -> Option<String> {
    let count = fit.residuals_ns.len() as u64;
    let spread = fit.spread();
    if fit.drifts && spread < 4.0 {
        let mean = fit.fitted_ns / 1e6;
        return Some(format!(
            "each activation counts from the one before (mean distance {mean:.3} ms), so the pattern drifts"
        ));
    }
    (spread <= 0.6 && fit.missing <= count).then(|| {
        format!("a period of {:.3} ms leaves a spread of {:.0} % of it", fit.fitted_ns / 1e6, spread * 100.0)
    })
}
