//! A lock study as people and scripts read it: names instead of numbers, the greatest first.

use super::futex::FutexReport;
use crate::critical_sections::{
    Histogram, NamedStudy, Naming, SectionCounts, Statistics, ThreadKey, WorstSection, WorstWait,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The JSON result `horolog.locks/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockReport {
    /// Always `horolog.locks/1`.
    pub schema: &'static str,
    /// From the first to the last lock event, ns.
    pub span_ns: u64,
    /// What was kept and dropped.
    pub counts: SectionCounts,
    /// Events lost, by cause.
    pub losses: BTreeMap<&'static str, u64>,
    /// What to do against the losses; null where nothing was lost, or nothing helps.
    pub remedy: Option<String>,
    /// By class.
    pub classes: Vec<LockRow>,
    /// By lock, those held longest in all first.
    pub locks: Vec<LockRow>,
    /// By thread, likewise.
    pub threads: Vec<LockRow>,
    /// By the call that acquired, likewise.
    pub sites: Vec<LockRow>,
    /// The longest sections of different locks.
    pub longest_sections: Vec<LongestSection>,
    /// The longest waits for different locks, with who held them.
    pub longest_waits: Vec<LongestWait>,
    /// Locks that were still held at the end.
    pub still_held: Vec<StillHeldRow>,
    /// Waits on futexes by the kernel's record; null where they were not asked for.
    pub futexes: Option<FutexReport>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// How many sections were requested with 0, 1, 2, … locks held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Depths(pub Vec<u64>);

impl Depths {
    /// The share of sections at a depth.
    #[must_use]
    pub fn share(&self, depth: usize) -> Option<f64> {
        let all: u64 = self.0.iter().sum();
        (all > 0).then(|| self.0.get(depth).copied().unwrap_or(0) as f64 / all as f64)
    }
}

/// The sections of one class, lock, thread or call site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockRow {
    /// Its name.
    pub name: String,
    /// The class of its locks; absent for a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<&'static str>,
    /// For a lock: the call that held it longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Complete sections.
    pub sections: u64,
    /// Their lengths together, ns.
    pub held_ns: u64,
    /// Their mean length, ns.
    pub mean_ns: Option<f64>,
    /// Quantiles of their lengths, ns: upper edges of bins of 0.1 us.
    pub p50_ns: Option<u64>,
    /// As above.
    pub p90_ns: Option<u64>,
    /// As above.
    pub p99_ns: Option<u64>,
    /// As above.
    pub p99_9_ns: Option<u64>,
    /// The longest, ns.
    pub max_ns: u64,
    /// The share below 5 us.
    pub below_5us: Option<f64>,
    /// The share below 10 us.
    pub below_10us: Option<f64>,
    /// By nesting depth.
    pub depths: Depths,
    /// Acquisitions whose request is known.
    pub acquisitions: u64,
    /// Those that found the lock held by another thread.
    pub contended: u64,
    /// Their mean wait, ns.
    pub contended_mean_ns: Option<f64>,
    /// The 99th percentile of all waits, ns.
    pub wait_p99_ns: Option<u64>,
    /// The longest wait, ns.
    pub wait_max_ns: u64,
    /// Requests that came to nothing.
    pub refused: u64,
    /// Acquisitions of what the thread held already.
    pub repeated: u64,
    /// Waits on condition variables.
    pub condition_waits: u64,
    /// For a class: lengths as [lower edge, upper edge, count], ns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u64, u64, u64)>,
    /// For a class: the cumulative distribution as [upper edge ns, share].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cumulative: Vec<(u64, f64)>,
}

/// A longest section with names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LongestSection {
    /// How long, ns.
    pub length_ns: u64,
    /// The lock.
    pub lock: String,
    /// Its class.
    pub class: &'static str,
    /// Who held it.
    pub thread: String,
    /// The call that acquired it.
    pub site: String,
    /// When, ns on the trace's clock.
    pub acquired_ns: u64,
}

/// A longest wait with names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LongestWait {
    /// How long, ns.
    pub wait_ns: u64,
    /// The lock.
    pub lock: String,
    /// Who waited.
    pub thread: String,
    /// The call that asked.
    pub site: String,
    /// Who held it then, where the trace shows it.
    pub held_by: Option<String>,
    /// The call that had acquired it.
    pub held_since: Option<String>,
}

/// A lock still held at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StillHeldRow {
    /// The lock.
    pub lock: String,
    /// Who holds it.
    pub thread: String,
    /// The call that acquired it.
    pub site: String,
}

impl LockReport {
    /// The report of a study: at most `most` locks, threads and call sites.
    #[must_use]
    pub fn of(named: &NamedStudy, most: usize) -> LockReport {
        let mut naming = Naming::new(&named.modules);
        let study = &named.study;
        let classes = study.classes.iter().map(|(class, statistics)| {
            let mut row = row(class.name().to_owned(), statistics);
            row.class = Some(class.name());
            row.histogram = bins(&statistics.lengths);
            row.cumulative = statistics.lengths.cumulative();
            row
        });
        let classes = classes.collect();
        let locks = greatest(&study.locks.entries, most, |key, statistics| {
            let mut row = row(naming.object(key.process, key.lock), statistics);
            row.class = Some(key.class.name());
            let site = statistics.worst.map(|w| w.site).or_else(|| statistics.worst_wait.map(|w| w.site));
            row.site = site.map(|site| naming.site(key.process, site));
            row
        });
        let threads = greatest(&study.threads.entries, most, |key, statistics| {
            row(named.thread_name(*key), statistics)
        });
        let sites = greatest(&study.sites.entries, most, |key, statistics| {
            let mut row = row(naming.site(key.process, key.site), statistics);
            row.class = Some(key.class.name());
            row
        });
        LockReport {
            schema: "horolog.locks/1",
            span_ns: study.span.map_or(0, |(first, last)| last.as_ns().saturating_sub(first.as_ns())),
            counts: study.counts,
            losses: named.losses.clone(),
            remedy: named.remedy.clone(),
            classes,
            locks,
            threads,
            sites,
            longest_sections: longest_sections(named, &mut naming, most),
            longest_waits: longest_waits(named, &mut naming, most),
            still_held: study
                .still_held
                .iter()
                .take(most)
                .map(|held| StillHeldRow {
                    lock: naming.object(held.lock.process, held.lock.lock),
                    thread: named.thread_name(ThreadKey { process: held.lock.process, thread: held.thread }),
                    site: naming.site(held.lock.process, held.site),
                })
                .collect(),
            futexes: None,
            notes: notes(named, most),
        }
    }
}

fn row(name: String, statistics: &Statistics) -> LockRow {
    let (lengths, waits) = (&statistics.lengths, &statistics.waits);
    let quantile = |share| lengths.quantile_ns(share);
    let deepest = statistics.deepest().map_or(0, |depth| depth + 1);
    LockRow {
        name,
        class: None,
        site: None,
        sections: lengths.count(),
        held_ns: u64::try_from(lengths.total_ns()).unwrap_or(u64::MAX),
        mean_ns: lengths.mean_ns(),
        p50_ns: quantile(0.5),
        p90_ns: quantile(0.9),
        p99_ns: quantile(0.99),
        p99_9_ns: quantile(0.999),
        max_ns: lengths.max_ns(),
        below_5us: lengths.share_below(5_000),
        below_10us: lengths.share_below(10_000),
        depths: Depths(statistics.depths[..deepest].to_vec()),
        acquisitions: waits.count(),
        contended: statistics.contended,
        contended_mean_ns: (statistics.contended > 0)
            .then(|| statistics.contended_ns as f64 / statistics.contended as f64),
        wait_p99_ns: waits.quantile_ns(0.99),
        wait_max_ns: waits.max_ns(),
        refused: statistics.refused,
        repeated: statistics.repeated,
        condition_waits: statistics.condition_waits,
        histogram: Vec::new(),
        cumulative: Vec::new(),
    }
}

fn bins(lengths: &Histogram) -> Vec<(u64, u64, u64)> {
    let edges = lengths.bins().map(|(bin, count)| (lengths.edges(bin), count));
    edges.map(|((lower, upper), count)| (lower, upper, count)).collect()
}

/// The entries held longest in all; those never held (condition variables) by their waits.
fn greatest<K>(
    entries: &[(K, Statistics)],
    most: usize,
    mut make: impl FnMut(&K, &Statistics) -> LockRow,
) -> Vec<LockRow> {
    let mut order: Vec<&(K, Statistics)> = entries.iter().collect();
    order.sort_by_key(|(_, s)| std::cmp::Reverse((s.lengths.total_ns(), s.waits.total_ns())));
    order.into_iter().take(most).map(|(key, statistics)| make(key, statistics)).collect()
}

fn longest_sections(named: &NamedStudy, naming: &mut Naming<'_>, most: usize) -> Vec<LongestSection> {
    let mut all: Vec<WorstSection> =
        named.study.locks.entries.iter().filter_map(|(_, statistics)| statistics.worst).collect();
    all.sort_by_key(|worst| std::cmp::Reverse(worst.length_ns));
    all.truncate(most);
    all.iter()
        .map(|worst| LongestSection {
            length_ns: worst.length_ns,
            lock: naming.object(worst.process, worst.lock),
            class: worst.class.name(),
            thread: named.thread_name(ThreadKey { process: worst.process, thread: worst.thread }),
            site: naming.site(worst.process, worst.site),
            acquired_ns: worst.acquired.as_ns(),
        })
        .collect()
}

/// Waits for locks only: how long a condition took to come true is the program's business.
fn longest_waits(named: &NamedStudy, naming: &mut Naming<'_>, most: usize) -> Vec<LongestWait> {
    let locks = named.study.locks.entries.iter();
    let for_locks = locks.filter(|(key, _)| key.class != crate::critical_sections::LockClass::Condition);
    let mut all: Vec<WorstWait> = for_locks.filter_map(|(_, statistics)| statistics.worst_wait).collect();
    all.sort_by_key(|worst| std::cmp::Reverse(worst.wait_ns));
    all.truncate(most);
    all.iter()
        .map(|worst| {
            let thread = |thread| named.thread_name(ThreadKey { process: worst.process, thread });
            LongestWait {
                wait_ns: worst.wait_ns,
                lock: naming.object(worst.process, worst.lock),
                thread: thread(worst.thread),
                site: naming.site(worst.process, worst.site),
                held_by: worst.holder.map(|holder| thread(holder.thread)),
                held_since: worst.holder.map(|holder| naming.site(worst.process, holder.site)),
            }
        })
        .collect()
}

/// Below so many events a study says little, and most often the program's locks are not the C library's.
const FEW: u64 = 100;

fn notes(named: &NamedStudy, most: usize) -> Vec<String> {
    let (study, counts) = (&named.study, named.study.counts);
    let mut notes = Vec::new();
    let mut say = |count: u64, words: &str| {
        if count > 0 {
            notes.push(format!("{count} {words}"));
        }
    };
    say(counts.lost, "events were lost: sections open at those moments are dropped");
    say(counts.unmatched_releases, "releases without an acquisition in the trace were dropped");
    say(counts.unmatched_acquisitions, "acquisitions whose release was not seen were dropped");
    say(counts.still_held, "locks were still held at the end; what they enclose counts one level less");
    say(counts.released_by_another, "sections were ended by another thread than the holder");
    say(counts.abandoned_requests, "requests have no outcome in the trace");
    say(counts.too_deep, "sections were dropped because too many locks were held at once");
    say(counts.out_of_order, "events stood before an earlier one of their thread and were dropped");
    notes.extend(named.memory.clone());
    for (count, what) in [
        (study.locks.entries.len(), "locks"),
        (study.threads.entries.len(), "threads"),
        (study.sites.entries.len(), "call sites"),
    ] {
        if count > most {
            notes.push(format!("{} of {count} {what} are not listed", count - most));
        }
    }
    let beyond = study.locks.others.lengths.count();
    if beyond > 0 {
        notes.push(format!(
            "{beyond} sections belong to locks beyond the first {}",
            study.locks.entries.len()
        ));
    }
    if counts.events < FEW {
        notes.push(format!(
            "only {} lock events: locks of Go, of Rust's std::sync, of the C library itself (stdio, malloc) and bare \
             futexes are not seen; `--kernel` shows the waits for them",
            counts.events
        ));
    }
    notes.extend(named.missing.iter().cloned());
    if let Some(damage) = &named.damage {
        notes.push(format!("the trace is damaged: {damage}"));
    }
    notes
}
