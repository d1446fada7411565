//! Facts 10 to 13: what requests, grants and releases cost on two real processors, beside the published cycles; and how long a task above the spin
//! priority is blocked, by the length of the remote section.

use super::read;
use crate::fact::Series;
use crate::{Agreement, ExperimentError, ExperimentReport, Fact};
use horolog_exec::{Executive, RunOptions, RunResult};
use horolog_model::System;
use horolog_sys::{affinity, clock};
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::sync::mpsc;

const ALL: [(u32, &str, &str); 4] = [
    (
        10,
        "Requests cost alike; grants and releases cost more where the job that spins is preempted",
        "335 and 239 cycles; 1378 and 18; 1049 and 255",
    ),
    (
        11,
        "How long a task above the ceiling is blocked, as the remote section grows",
        "linear at the highest priority, flat at the ceiling",
    ),
    (12, "Who is notified by a release", "nobody without a waiter, one with"),
    (13, "What preemption adds to a grant and to a release", "713 and 700 cycles"),
];

/// The lengths of the remote section, us. It begins at 0; the job that spins asks a millisecond later, and the urgent one comes half a
/// millisecond behind that, far enough apart that no wake-up is late by as much.
const LENGTHS: [u32; 5] = [2_000, 3_000, 4_000, 6_000, 8_000];

/// One task of the bench: name, processor, priority, offset and wcet in us, and its section.
fn task(name: &str, cpu: u32, priority: u32, [offset, wcet]: [u32; 2], section: Option<[u32; 2]>) -> String {
    let mut text = format!(
        "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"20 ms\"\noffset = \"{offset} us\"\nwcet = \"{wcet} us\"\n"
    );
    if let Some([from, length]) = section {
        text += &format!(
            "[[task.section]]\nresource = \"map\"\nfrom = \"{from} us\"\nlength = \"{length} us\"\n"
        );
    }
    text
}

fn head((first, last): (u32, u32), spin: &str) -> String {
    format!(
        "[system]\nname = \"costs\"\n[platform]\ncpus = [{first}, {last}]\n[[resource]]\nname = \"map\"\nprotocol = \"fslm\"\n\
         [[spin_priority]]\ncpu = {last}\npriority = \"{spin}\"\n"
    )
}

/// The holder keeps the lock for so long, the waiter asks meanwhile, and the urgent task comes while it waits.
fn bench(cpus: (u32, u32), spin: &str, length: u32, has_urgent: bool) -> Result<System, ExperimentError> {
    // It executes all of its wcet, so that the section is as long as it says.
    let holder = task("holder", cpus.0, 5, [0, length + 200], Some([0, length]));
    let mut text = head(cpus, spin)
        + &holder.replacen("[[task.section]]", "body = { spin = 1.0 }\n[[task.section]]", 1)
        + &task("waiter", cpus.1, 3, [1_000, 400], Some([0, 100]));
    if has_urgent {
        text += &task("urgent", cpus.1, 9, [1_500, 3_000], None);
    }
    read(&text)
}

fn ran(system: &System, ms: u64) -> Result<RunResult, ExperimentError> {
    let executive =
        Executive::new(system.clone()).options(RunOptions::for_span(Span::from_ns(ms * 1_000_000)));
    let mut result = executive.run()?;
    result.records.sort_by_key(|record| record.time);
    Ok(result)
}

fn median(mut values: Vec<u64>) -> Option<f64> {
    values.sort_unstable();
    values.get(values.len() / 2).map(|&ns| ns as f64 / 1e3)
}

fn in_us(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |us| format!("{us:.1} us"))
}

/// From an unlock to the lock of the job that waited, and from that one's unlock until another task goes on.
#[derive(Default)]
struct Handed {
    grants: Vec<u64>,
    resumes: Vec<u64>,
}

fn handed(system: &System, records: &[Record]) -> Handed {
    let of = |name: &str| system.find_task(name).map_or(u32::MAX, |task| task.0);
    let (holder, waiter, urgent) = (of("holder"), of("waiter"), of("urgent"));
    let (mut found, mut waits) = (Handed::default(), false);
    let (mut unlocked, mut left): (Option<u64>, Option<u64>) = (None, None);
    for record in records {
        let at = record.time.as_ns();
        match record.kind {
            Kind::Spin => waits = true,
            Kind::Unlock if record.task == holder && waits => unlocked = Some(at),
            Kind::Lock if record.task == waiter => {
                found.grants.extend(unlocked.take().map(|from| at - from));
                waits = false;
            }
            Kind::Unlock if record.task == waiter => left = Some(at),
            Kind::Resume if record.task == urgent => found.resumes.extend(left.take().map(|from| at - from)),
            _ => {}
        }
    }
    found
}

/// How long the urgent task's jobs take beyond what they execute.
fn blocked(system: &System, records: &[Record]) -> Option<f64> {
    let urgent = system.find_task("urgent")?.0;
    let mut arrival = None;
    let mut all = Vec::new();
    for record in records.iter().filter(|record| record.task == urgent) {
        match record.kind {
            Kind::Release => arrival = Some(record.value),
            Kind::Completion => {
                let response = arrival.take().map(|arrival: u64| record.time.as_ns().saturating_sub(arrival));
                all.extend(response.map(|response| response.saturating_sub(record.value)));
            }
            _ => {}
        }
    }
    median(all)
}

/// Thread time of an uncontended request, and of a release, us, spinning at the highest priority and at the ceiling.
fn uncontended(cpus: (u32, u32), spin: &str) -> Result<[f64; 2], ExperimentError> {
    const ROUNDS: u64 = 2_000;
    let text = head(cpus, spin)
        + &task("holder", cpus.0, 5, [11_000, 10], Some([0, 1]))
        + &task("waiter", cpus.1, 3, [0, 5_000], Some([0, 1]));
    let (send, receive) = mpsc::channel();
    Executive::new(read(&text)?)
        .options(RunOptions::for_span(Span::from_ns(300_000_000)))
        .body("holder", |_| ())
        .body("waiter", move |job| {
            let (mut locks, mut unlocks) = (0, 0);
            for _ in 0..ROUNDS {
                let before = clock::monotonic_ns();
                let _ = job.lock("map");
                let between = clock::monotonic_ns();
                let _ = job.unlock("map");
                locks += between - before;
                unlocks += clock::monotonic_ns() - between;
            }
            let _ = send.send([locks, unlocks]);
        })
        .run()?;
    let all: Vec<[u64; 2]> = receive.iter().collect();
    let least = |of: usize| all.iter().map(|pair| pair[of]).min().unwrap_or(0) as f64 / ROUNDS as f64 / 1e3;
    Ok([least(0), least(1)])
}

pub(super) fn measure(report: &mut ExperimentReport, is_full: bool) -> Result<(), ExperimentError> {
    let allowed = affinity::allowed_cpus().map_err(|error| ExperimentError::failed(error.to_string()))?;
    let (first, last) = (allowed.as_slice().first().copied(), allowed.as_slice().last().copied());
    let Some(cpus) = first.zip(last).filter(|(first, last)| first != last) else {
        let reason = "a spin lock needs two processors, and this process has one".to_owned();
        report.facts.extend(
            ALL.map(|(number, what, published)| {
                Fact::not_measurable(number, what, published, reason.clone())
            }),
        );
        return Ok(());
    };
    match costs(report, cpus, if is_full { 8_000 } else { 2_000 }) {
        Err(error) if error.is_not_permitted() => {
            let reason = error.to_string();
            report.facts.retain(|fact| fact.number.is_none_or(|number| number < 10));
            report.facts.extend(ALL.map(|(number, what, published)| {
                Fact::new(number, what, published, "-".to_owned(), Agreement::NotPermitted(reason.clone()))
            }));
            Ok(())
        }
        other => other,
    }
}

fn costs(report: &mut ExperimentReport, cpus: (u32, u32), ms: u64) -> Result<(), ExperimentError> {
    let (at_highest, at_ceiling) = (uncontended(cpus, "highest")?, uncontended(cpus, "ceiling")?);
    let spinning = bench(cpus, "ceiling", 3_000, false)?;
    let preempted = bench(cpus, "ceiling", 3_000, true)?;
    let (running, waiting) = (ran(&spinning, ms)?, ran(&preempted, ms)?);
    let (b1, b2) = (handed(&spinning, &running.records), handed(&preempted, &waiting.records));
    let (grant, dear_grant, resume) = (median(b1.grants), median(b2.grants), median(b2.resumes));
    let us = |ours: f64| format!("{ours:.2} us");
    let [request, release] = at_ceiling;
    let is_alike = request < 2.0 * at_highest[0] && at_highest[0] < 2.0 * request;
    let is_dearer = dear_grant > grant && resume > Some(release);
    report.facts.push(Fact::trend(
        10,
        ALL[0].1,
        ALL[0].2,
        format!(
            "{} and {}; {} and {}; {} and {}",
            us(request),
            us(at_highest[0]),
            in_us(dear_grant),
            in_us(grant),
            in_us(resume),
            us(release)
        ),
        is_alike && is_dearer,
        "request, grant and release, first spinning at the ceiling and preempted, then not; medians, records included",
    ));
    let added = |dear: Option<f64>, plain: Option<f64>| dear.zip(plain).map(|(dear, plain)| dear - plain);
    let (more_grant, more_release) = (added(dear_grant, grant), added(resume, Some(release)));
    report.facts.push(Fact::trend(
        13,
        ALL[3].1,
        ALL[3].2,
        format!("{} and {}", in_us(more_grant), in_us(more_release)),
        more_grant > Some(0.0) && more_release > Some(0.0),
        "one wake-up of the other processor's agent and two changes of class in the grant, two of these in the release",
    ));
    notified(report, cpus, (&running, &waiting), ms)?;
    grown(report, cpus, ms)
}

/// Fact 12.
fn notified(
    report: &mut ExperimentReport,
    cpus: (u32, u32),
    (running, waiting): (&RunResult, &RunResult),
    ms: u64,
) -> Result<(), ExperimentError> {
    let text = head(cpus, "ceiling")
        + &task("holder", cpus.0, 5, [0, 300], Some([0, 100]))
        + &task("waiter", cpus.1, 3, [10_000, 300], Some([0, 100]));
    let alone = ran(&read(&text)?, ms)?.spin_locks;
    let (spun, woken) = (running.spin_locks, waiting.spin_locks);
    let is_right = alone.wake_ups == 0
        && alone.waits == 0
        && spun.wake_ups * 10 <= spun.waits
        && woken.wake_ups <= woken.waits
        && woken.wake_ups * 10 >= woken.waits * 8;
    report.facts.push(Fact::trend(
        12,
        ALL[2].1,
        ALL[2].2,
        format!(
            "{} of {} releases without a waiter, {} of {} with one that spins, {} of {} with one that is preempted",
            alone.wake_ups,
            "all",
            spun.wake_ups,
            spun.waits,
            woken.wake_ups,
            woken.waits
        ),
        is_right,
        "ours notifies only where the job that waits is preempted: one that spins sees its turn itself",
    ));
    Ok(())
}

/// Fact 11.
fn grown(report: &mut ExperimentReport, cpus: (u32, u32), ms: u64) -> Result<(), ExperimentError> {
    let mut rows = Vec::new();
    for length in LENGTHS {
        let at = |spin: &str| -> Result<f64, ExperimentError> {
            let system = bench(cpus, spin, length, true)?;
            Ok(blocked(&system, &ran(&system, ms / 2)?.records).unwrap_or(f64::NAN))
        };
        rows.push(vec![f64::from(length), at("highest")?, at("ceiling")?]);
    }
    let slope = |column: usize| {
        let (low, high) = (&rows[0], &rows[LENGTHS.len() - 1]);
        (high[column] - low[column]) / (high[0] - low[0])
    };
    let (highest, ceiling) = (slope(1), slope(2));
    // The shortest length from which on the ceiling is better.
    let crossing = rows.iter().find(|row| row[2] < row[1]).map(|row| row[0]);
    report.facts.push(Fact::trend(
        11,
        ALL[1].1,
        ALL[1].2,
        format!(
            "it grows by {highest:.2} of the length at the highest priority and by {ceiling:.2} at the ceiling; better there {}",
            match crossing {
                None => "for none of these".to_owned(),
                // Where the curves cross is not seen.
                Some(us) if us <= rows[0][0] => format!("already at the shortest, {us} us"),
                Some(us) => format!("from {us} us on"),
            }
        ),
        (0.8..1.2).contains(&highest) && ceiling.abs() < 0.2,
        "medians of a job's response less what it executed, for remote sections of 2 to 8 ms",
    ));
    report.series.push(Series {
        name: "blocking of a task above the ceiling".to_owned(),
        columns: vec!["remote section, us".to_owned(), "highest, us".to_owned(), "ceiling, us".to_owned()],
        rows,
    });
    Ok(())
}
