//! Figures 8 and 9: completion times of real-time requests, and blocks read in each period, with and without reserves.

use super::workload::{BLOCK, READERS, Setup, run};
use crate::{ExperimentError, ExperimentReport, Fact, Series};
use horolog_disk::Policy;
use horolog_disk::simulate::History;
use std::collections::BTreeMap;

const SETUPS: [Setup; 3] = [Setup::Without, Setup::With(Policy::Edf), Setup::With(Policy::JustInTime)];

/// Completion times of the periodic readers, ascending, ns; and how many are beyond the reader's deadline.
fn completions(history: &History) -> (Vec<u64>, usize) {
    let periodic = 1..READERS.len() as u64;
    let requests = history.finished.iter().filter(|one| periodic.contains(&one.tag));
    let times: Vec<(u64, u64)> =
        requests.map(|one| (one.done_ns - one.asked_ns, READERS[one.tag as usize].2 * 1_000_000)).collect();
    let late = times.iter().filter(|(time, deadline)| time > deadline).count();
    let mut times: Vec<u64> = times.into_iter().map(|(time, _)| time).collect();
    times.sort_unstable();
    (times, late)
}

/// How many blocks the greedy reader got in each whole period.
fn blocks(history: &History, seconds: u64) -> Vec<u64> {
    let period = READERS[0].1 * 1_000_000;
    let mut blocks = vec![0; (seconds * 1_000_000_000 / period) as usize];
    for one in history.served.iter().filter(|one| one.operation.tag == 0) {
        if let Some(count) = blocks.get_mut((one.end_ns / period) as usize) {
            *count += 1;
        }
    }
    blocks
}

/// MiB in a second.
fn throughput(history: &History, seconds: u64) -> f64 {
    history.served.len() as f64 * BLOCK as f64 / f64::from(1 << 20) / seconds as f64
}

pub(super) fn percentile(sorted: &[u64], percent: f64) -> f64 {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).map_or(f64::NAN, |&ns| ns as f64 / 1e6)
}

pub(super) fn columns(first: &str, unit: &str) -> Vec<String> {
    let names = ["without reserves", "EDF", "just in time"];
    std::iter::once(first.to_owned()).chain(names.iter().map(|name| format!("{name}{unit}"))).collect()
}

/// Facts 19 to 21 and their tables.
pub(super) fn measure(report: &mut ExperimentReport, seed: u64, seconds: u64) -> Result<(), ExperimentError> {
    let histories =
        SETUPS.into_iter().map(|setup| run(setup, seed, seconds)).collect::<Result<Vec<_>, _>>()?;
    completion_times(report, &histories);
    blocks_a_period(report, &histories, seconds);
    let all: Vec<f64> = histories.iter().map(|history| throughput(history, seconds)).collect();
    report.series.push(Series {
        name: "throughput of all clients together".to_owned(),
        columns: columns("seconds", ", MiB/s"),
        rows: vec![vec![seconds as f64, all[0], all[1], all[2]]],
    });
    let loss = |with: f64| 100.0 * (all[0] - with) / all[0];
    report.facts.push(Fact::trend(
        21,
        "loss of throughput with reserves",
        "small (no figure)",
        format!("{:.1} % by EDF, {:.1} % just in time", loss(all[1]), loss(all[2])),
        loss(all[2]) < 10.0 && loss(all[2]) < loss(all[1]),
        "agrees where just in time loses less than 10 %, and less than EDF; without reserves all is in SCAN order",
    ));
    Ok(())
}

/// Figure 8.
fn completion_times(report: &mut ExperimentReport, histories: &[History]) {
    let all: Vec<(Vec<u64>, usize)> = histories.iter().map(completions).collect();
    let percents = [10.0, 50.0, 90.0, 99.0, 100.0];
    let row = |percent: f64| {
        std::iter::once(percent).chain(all.iter().map(|(times, _)| percentile(times, percent))).collect()
    };
    report.series.push(Series {
        name: format!(
            "completion times of {} real-time requests: so many per cent are done within",
            all[1].0.len()
        ),
        columns: columns("per cent", ", ms"),
        rows: percents.into_iter().map(row).collect(),
    });
    let longest = |index: usize| percentile(&all[index].0, 100.0);
    let most = [0, 1, 2].map(longest);
    for (setup, name) in [(1, "EDF"), (2, "just in time")] {
        report.facts.push(Fact::trend(
            19,
            &format!("longest completion time of a real-time request, {name}"),
            "very small with reserves (no figure)",
            format!("{:.0} ms without, {:.0} ms with", most[0], most[setup]),
            2.0 * most[setup] < most[0],
            "agrees where it is less than half of that without; just in time uses what there is until the deadline, here up to 500 ms",
        ));
    }
    report.facts.push(Fact::exact(19, "real-time requests beyond their deadline, EDF", 0, all[1].1 as u64));
    report.facts.push(Fact::exact(
        19,
        "real-time requests beyond their deadline, just in time",
        0,
        all[2].1 as u64,
    ));
}

/// Figure 9.
fn blocks_a_period(report: &mut ExperimentReport, histories: &[History], seconds: u64) {
    let mut counts: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for (setup, history) in histories.iter().enumerate() {
        for blocks in blocks(history, seconds) {
            counts.entry(blocks).or_default()[setup] += 1;
        }
    }
    let rows = counts.iter().map(|(&blocks, periods)| {
        std::iter::once(blocks as f64).chain(periods.iter().map(|&periods| periods as f64)).collect()
    });
    report.series.push(Series {
        name: format!("periods in which a reader that never waits gets so many blocks of {}", READERS[0].0),
        columns: columns("blocks", ", periods"),
        rows: rows.collect(),
    });
    let kinds = [0, 1, 2].map(|setup| counts.values().filter(|periods| periods[setup] > 0).count());
    report.facts.push(Fact::trend(
        20,
        "how many different numbers of blocks are read in a period",
        "constant with, unpredictable without",
        format!("{} without, {} by EDF, {} just in time", kinds[0], kinds[1], kinds[2]),
        kinds[0] > 2 && kinds[1..] == [1, 1],
        "agrees where it is one with reserves, and more than two without",
    ));
}
