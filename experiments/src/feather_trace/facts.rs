//! Facts 9 to 13 of the paper beside what we found.

use super::Results;
use super::conditions::Condition;
use super::programs::Program;
use crate::Fact;
use horolog_measure::critical_sections::{
    CriticalSections, Histogram, LockAction, LockClass, LockEvent, SectionOptions, Study, cycles_to_span,
};
use horolog_time::Instant;

pub(super) fn all(results: &Results) -> Vec<Fact> {
    let mut facts = exact();
    facts.extend(hold_times(results));
    facts.extend(nesting(results));
    facts.extend(short_sections(results));
    facts.push(sample(results));
    facts
}

/// Fact 9: the analysis on the paper's own example.
fn exact() -> Vec<Fact> {
    let study =
        example(&[(0, 'A', true), (100, 'B', true), (200, 'B', false), (300, 'A', false), (400, 'C', true)]);
    let depth = |lock: char| {
        let entry = study.locks.entries.iter().find(|(key, _)| key.lock == u64::from(u32::from(lock)));
        entry.and_then(|(_, statistics)| statistics.deepest()).map_or(u64::MAX, |depth| depth as u64)
    };
    let length = cycles_to_span(2_700, 2_700_000_000).map_or(0, |span| span.as_ns());
    vec![
        Fact::exact(9, "[enter A, enter B, exit B, exit A]: nesting depth of A", 0, depth('A')),
        Fact::exact(9, "the same: nesting depth of B", 1, depth('B')),
        Fact::exact(
            9,
            "an unmatched enter is dropped: sections kept of A, B and half a C",
            2,
            study.counts.sections,
        ),
        Fact::exact(9, "2700 cycles at 2.70 GHz, in ns", 1_000, length),
        Fact::exact(9, "the bin of 0.1 us of that length", 10, u64::from(Histogram::new(10_000).bin(length))),
    ]
}

fn example(events: &[(u64, char, bool)]) -> Study {
    let mut sections = CriticalSections::new(SectionOptions::default());
    for (time, lock, enter) in events {
        sections.event(&LockEvent {
            time: Instant::from_ns(*time),
            cpu: 0,
            process: 1,
            thread: 1,
            action: if *enter { LockAction::Acquired } else { LockAction::Release },
            lock: u64::from(u32::from(*lock)),
            class: LockClass::Mutex,
            recursive: false,
            site: 0,
        });
    }
    sections.finish()
}

const NO_HOLD_TIMES: &str = "a stock kernel shows waits for contended locks only, neither uncontended acquisitions nor \
                             releases (see the notes for what was looked for); a kernel of one's own is needed";

fn mean_us(results: &Results, program: Program, condition: Condition) -> Option<f64> {
    let run = results.runs.iter().find(|run| run.program == program && run.condition == condition)?;
    run.mutexes()?.lengths.mean_ns().map(|mean| mean / 1e3)
}

/// Fact 10: hold times grow with the load; semaphores are held longer than spinlocks.
fn hold_times(results: &Results) -> Vec<Fact> {
    let means: Vec<(Program, Vec<f64>)> = Program::ALL
        .into_iter()
        .map(|program| {
            let of = Condition::ALL.into_iter().filter_map(|condition| mean_us(results, program, condition));
            (program, of.collect())
        })
        .filter(|(_, means): &(Program, Vec<f64>)| means.len() == Condition::ALL.len())
        .collect();
    let grows = means.iter().filter(|(_, means)| means[1].max(means[2]) > means[0]).count();
    let listed: Vec<String> = means
        .iter()
        .map(|(program, means)| {
            let us: Vec<String> = means.iter().map(|mean| format!("{mean:.2}")).collect();
            format!("{} {}", program.name(), us.join("/"))
        })
        .collect();
    let user = if means.is_empty() {
        Fact::not_measurable(
            10,
            "user mutexes: the mean section is longer under load than idle",
            "not in the paper (kernel spinlocks: 0.67/0.81/1.24 us)",
            "no program ran under all three conditions".to_owned(),
        )
    } else {
        Fact::trend(
            10,
            "user mutexes: the mean section is longer under load than idle, for most programs",
            "not in the paper (kernel spinlocks: 0.67/0.81/1.24 us idle/compiling/under stress)",
            format!("mean us idle/compiling/under stress: {}", listed.join(", ")),
            grows * 2 > means.len(),
            "where programs compete for processors a holder is preempted; a program that computes less under load may \
             show the opposite",
        )
    };
    vec![
        Fact::not_measurable(
            10,
            "kernel: the mean spinlock section grows from idle over compiling to stress",
            "0.67, 0.81, 1.24 us",
            NO_HOLD_TIMES.to_owned(),
        ),
        Fact::not_measurable(
            10,
            "kernel: semaphore sections are at least 5 times as long as spinlock sections under the same load",
            "14.9/0.67 = 22, 6.4/0.81 = 7.9, 6.3/1.24 = 5.1",
            NO_HOLD_TIMES.to_owned(),
        ),
        waits(results),
        user,
    ]
}

/// What remains of fact 10 on a stock kernel: waits.
fn waits(results: &Results) -> Fact {
    let statement = "kernel: waits for sleeping locks are longer than waits for spinlocks";
    let published = "not in the paper, which has hold times; the same order is expected";
    let mut pairs = Vec::new();
    let mut refusal = None;
    for (condition, waits) in &results.kernel {
        match waits {
            Ok(waits) => pairs.extend(
                waits.mean_us(true).zip(waits.mean_us(false)).map(|(spin, sleep)| (*condition, spin, sleep)),
            ),
            Err(why) => refusal = Some(why.clone()),
        }
    }
    if pairs.is_empty() {
        let why = refusal.unwrap_or_else(|| "no contention of both kinds was seen".to_owned());
        return Fact::not_measurable(10, statement, published, why);
    }
    let listed: Vec<String> = pairs
        .iter()
        .map(|(condition, spin, sleep)| format!("{}: {sleep:.1} against {spin:.2} us", condition.name()))
        .collect();
    let longer = pairs.iter().filter(|(_, spin, sleep)| sleep > spin).count();
    let note = "means of contended waits (lock:contention_begin to contention_end), whole machine";
    Fact::trend(10, statement, published, listed.join(", "), longer * 2 > pairs.len(), note)
}

/// Fact 11: most sections are outermost.
fn nesting(results: &Results) -> Vec<Fact> {
    let mut shares = Vec::new();
    let (mut least, mut deep, mut all, mut falls) = (1.0_f64, 0, 0, true);
    for run in &results.runs {
        let Some(statistics) = run.mutexes() else { continue };
        let Some(share) = statistics.share_at_depth(0) else { continue };
        shares.push(format!("{} {} {:.1} %", run.program.name(), run.condition.name(), share * 100.0));
        least = least.min(share);
        all += statistics.depths.iter().sum::<u64>();
        deep += statistics.depths[5..].iter().sum::<u64>();
        falls &= statistics.depths[0] >= statistics.depths[1];
    }
    if shares.is_empty() {
        let reason = "no program could be run".to_owned();
        return vec![Fact::not_measurable(11, "depth 0 is the majority everywhere", ">70 % (VLC)", reason)];
    }
    vec![
        Fact::trend(
            11,
            "depth 0 is the majority everywhere",
            ">85 % of kernel spinlock requests under load, >70 % of VLC's mutexes",
            shares.join(", "),
            least > 0.5,
            "user mutexes, by thread. Where it disagrees, locks held while working are the cause: each frame thread of ffmpeg \
             and mpv decodes under a mutex of its own, memcached's maintenance works under one; redis takes most of its \
             few locks at the start, inside libcrypto and jemalloc",
        ),
        Fact::trend(
            11,
            "counts fall with depth; a depth above 4 is almost absent",
            "kernel spinlocks: deepest shown 3 to 4; multimedia: never above 3",
            format!("depth 0 before depth 1 in every run: {falls}; {deep} of {all} sections deeper than 4"),
            falls && deep * 1_000 <= all,
            "almost absent: at most one in a thousand",
        ),
    ]
}

/// Fact 12: sections are short.
fn short_sections(results: &Results) -> Vec<Fact> {
    let kernel = Fact::not_measurable(
        12,
        "kernel: spinlock sections below 5 us",
        ">96 %, with a long tail",
        NO_HOLD_TIMES.to_owned(),
    );
    let statement = "media players: mutex sections below 5 and below 10 us";
    let published = ">95 % and >99 % in VLC, Xine and Tux Racer";
    let media: Vec<(String, f64, f64)> = results
        .runs
        .iter()
        .filter(|run| run.program.is_media() && run.condition == Condition::Idle)
        .filter_map(|run| {
            let lengths = &run.mutexes()?.lengths;
            Some((run.program.name().to_owned(), lengths.share_below(5_000)?, lengths.share_below(10_000)?))
        })
        .collect();
    if media.is_empty() {
        let reason = "neither ffmpeg nor mpv could be run".to_owned();
        return vec![kernel, Fact::not_measurable(12, statement, published, reason)];
    }
    let listed: Vec<String> = media
        .iter()
        .map(|(name, five, ten)| format!("{name} {:.2} % and {:.2} %", five * 100.0, ten * 100.0))
        .collect();
    let agrees = media.iter().all(|(_, five, ten)| *five > 0.95 && *ten > 0.99);
    let note = "idle machine, as the paper's; preemption of a holder, and frame threading that works under a lock, \
                lengthen sections";
    vec![kernel, Fact::trend(12, statement, published, listed.join(", "), agrees, note)]
}

/// Fact 13: the whole path of a sample.
fn sample(results: &Results) -> Fact {
    let statement = "a sample (trigger, time stamp, store) takes some tens of instructions";
    match &results.sample {
        Ok(path) => Fact::trend(
            13,
            statement,
            "61 instructions on ia32",
            format!("{} instructions enabled, {} disabled", path.enabled, path.disabled),
            (61 / 4..=61 * 4).contains(&path.enabled),
            "instructions of user space, counted by single-stepping; agreement: within a factor of 4 of 61. Ours also \
             finds its thread's ring and stores the processor's number",
        ),
        Err(reason) => Fact::not_measurable(13, statement, "61 instructions on ia32", reason.clone()),
    }
}
