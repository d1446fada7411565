//! Figures 8 and 9 on this machine's disk: a file read past the cache by one service, with and without reserves.

use super::failed;
use super::figures::{columns, percentile};
use crate::{Agreement, ExperimentError, ExperimentReport, Fact, Series};
use horolog_daemon::disk::{DiskError, DiskService, Handle, Named, Work, measure};
use horolog_disk::{Policy, Reserve, Settings};
use horolog_draw::Random;
use horolog_sys::direct_file::DirectFile;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BLOCK: u64 = 64 << 10;
const BLOCKS: u64 = 4_096;

/// Best-effort clients, each of which reads as fast as it may.
const OTHERS: u64 = 32;

/// Blocks that the greedy reader gets in a period.
const GREEDY: u64 = 2;

/// What was found in one setup.
#[derive(Default)]
struct Found {
    /// Completion times of the periodic reader, ascending, ns.
    times: Vec<u64>,
    /// Blocks that the greedy reader got in each whole period.
    blocks: Vec<u64>,
    /// Blocks of all clients a second.
    throughput: f64,
    /// Operations that took longer than the admission counts.
    overran: u64,
}

/// Adds the tables and facts of the real disk, or why there are none.
pub(super) fn measured(
    report: &mut ExperimentReport,
    seed: u64,
    seconds: u64,
) -> Result<(), ExperimentError> {
    let not_measurable = |report: &mut ExperimentReport, why| {
        let (statement, published) =
            ("the same on this machine's disk", "very small with reserves (no figure)");
        report.facts.push(Fact::not_measurable(19, statement, published, why));
        Ok(())
    };
    let file = match file_of_blocks() {
        Ok(file) => file,
        Err(error) => {
            let folder = std::env::temp_dir();
            let why = format!(
                "a file of {} MiB in {}: {error}; set TMPDIR to a folder with room on a disk",
                (BLOCKS * BLOCK) >> 20,
                folder.display()
            );
            return not_measurable(report, why);
        }
    };
    // It has no name.
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let open = || DirectFile::open(&path, BLOCK, false).map_err(DiskError::from);
    let longest = open().and_then(|mut device| measure(&mut device, BLOCK));
    let longest_ns = match longest {
        Ok(found) => found.counted_ns.max(1),
        Err(error) => return not_measurable(report, error.to_string()),
    };
    let mut all = Vec::new();
    for policy in [None, Some(Policy::Edf), Some(Policy::JustInTime)] {
        let settings = Settings { policy: policy.unwrap_or(Policy::Edf), chunk: BLOCK, longest_ns };
        let reserve = |operations| {
            let period_ns = 8 * longest_ns;
            Reserve { operations, longest_ns, period_ns, deadline_ns: period_ns, start_ns: 0 }
        };
        let named = |name: &str, operations| Named { name: name.to_owned(), reserve: reserve(operations) };
        let reserves = vec![named("periodic", 1), named("greedy", GREEDY)];
        let service =
            open().and_then(|device| DiskService::start(device, settings, reserves, None)).map_err(failed)?;
        all.push(run(&service, policy.is_some(), 8 * longest_ns, seed, seconds).map_err(failed)?);
    }
    tell(report, &all, longest_ns, seconds);
    Ok(())
}

/// A file of 256 MiB in the folder of temporary files. It has no name, so it ends with this process however that ends.
fn file_of_blocks() -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    for number in 0..BLOCKS {
        file.write_all(&vec![number as u8; BLOCK as usize])?;
    }
    file.sync_all()?;
    Ok(file)
}

fn read(handle: &Handle, random: &mut Random) -> Result<horolog_disk::Finished, DiskError> {
    let offset = random.below(BLOCKS) * BLOCK;
    Ok(handle.ask(Work::Read { offset, bytes: BLOCK })?.finished)
}

fn run(
    service: &DiskService,
    is_reserved: bool,
    period_ns: u64,
    seed: u64,
    seconds: u64,
) -> Result<Found, DiskError> {
    let named = |name| service.handle(is_reserved.then_some(name));
    let (periodic, greedy, other) = (named("periodic")?, named("greedy")?, service.handle(None)?);
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    let mut found = Found::default();
    std::thread::scope(|scope| {
        for number in 0..OTHERS {
            let (other, is_over) = (other.clone(), &is_over);
            scope.spawn(move || {
                let mut random = Random::of_item(seed, number);
                while !is_over.load(Ordering::Relaxed) && read(&other, &mut random).is_ok() {}
            });
        }
        let got = scope.spawn(|| {
            let mut random = Random::of_item(seed, OTHERS);
            let mut done = Vec::new();
            // A whole amount at once, so that the next one is always there in time.
            while !is_over.load(Ordering::Relaxed) {
                let offset = random.below(BLOCKS - GREEDY) * BLOCK;
                done.push(greedy.ask(Work::Read { offset, bytes: GREEDY * BLOCK })?.finished.done_ns);
            }
            Ok::<_, DiskError>(done)
        });
        let mut random = Random::of_item(seed, OTHERS + 1);
        let mut number = 0_u64;
        let result = loop {
            if begun.elapsed() >= Duration::from_secs(seconds) {
                break Ok(());
            }
            // Somewhat less often than it may: who wakes up late once is not behind for ever.
            let at = Duration::from_nanos(period_ns / 10 * 11 * number);
            std::thread::sleep(at.saturating_sub(begun.elapsed()));
            number += 1;
            match read(&periodic, &mut random) {
                Ok(one) => found.times.push(one.done_ns - one.asked_ns),
                Err(error) => break Err(error),
            }
        };
        is_over.store(true, Ordering::Relaxed);
        let done = got.join().unwrap_or(Err(DiskError::Ended))?;
        found.blocks = a_period(&done, period_ns);
        result
    })?;
    let uses = service.uses();
    found.throughput =
        uses.iter().map(|one| one.tally.operations).sum::<u64>() as f64 / begun.elapsed().as_secs_f64();
    found.overran = uses.iter().map(|one| one.tally.overran).sum();
    found.times.sort_unstable();
    Ok(found)
}

/// How many blocks were done in each whole period since the first were.
fn a_period(done: &[u64], period_ns: u64) -> Vec<u64> {
    let (Some(first), Some(last)) = (done.first(), done.last()) else { return Vec::new() };
    // Half a period before, since answers come somewhat later in one period than in the other.
    let begin = first.saturating_sub(period_ns / 2);
    let mut blocks = vec![0; ((last - begin) / period_ns) as usize];
    for one in done {
        if let Some(count) = blocks.get_mut(((one - begin) / period_ns) as usize) {
            *count += GREEDY;
        }
    }
    blocks
}

fn tell(report: &mut ExperimentReport, all: &[Found], longest_ns: u64, seconds: u64) {
    let percents = [10.0, 50.0, 90.0, 99.0, 100.0];
    let row = |percent: f64| {
        std::iter::once(percent).chain(all.iter().map(|found| percentile(&found.times, percent))).collect()
    };
    report.series.push(Series {
        name: format!(
            "this machine's disk, {} requests: so many per cent are done within",
            all.iter().map(|found| found.times.len().to_string()).collect::<Vec<_>>().join(", ")
        ),
        columns: columns("per cent", ", ms"),
        rows: percents.into_iter().map(row).collect(),
    });
    let mut counts: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for (setup, found) in all.iter().enumerate() {
        found.blocks.iter().for_each(|&blocks| counts.entry(blocks).or_default()[setup] += 1);
    }
    let rows = counts.iter().map(|(&blocks, periods)| {
        std::iter::once(blocks as f64).chain(periods.iter().map(|&periods| periods as f64)).collect()
    });
    report.series.push(Series {
        name: format!(
            "this machine's disk: periods in which a reader that never waits gets so many blocks of {GREEDY}"
        ),
        columns: columns("blocks", ", periods"),
        rows: rows.collect(),
    });
    let rates: Vec<f64> =
        all.iter().map(|found| found.throughput * BLOCK as f64 / f64::from(1 << 20)).collect();
    report.series.push(Series {
        name: "this machine's disk: throughput of all clients together".to_owned(),
        columns: columns("seconds", ", MiB/s"),
        rows: vec![std::iter::once(seconds as f64).chain(rates).collect()],
    });
    let overran: u64 = all.iter().map(|found| found.overran).sum();
    let median = |setup: usize| percentile(&all[setup].times, 50.0);
    let statement = "median completion time of a real-time request on this machine's disk, EDF";
    let ours = format!("{:.2} ms without, {:.2} ms with", median(0), median(1));
    let agrees = if 2.0 * median(1) < median(0) { Agreement::Agrees } else { Agreement::Disagrees };
    let note = format!(
        "agrees where it is less than half of that without; {OTHERS} other readers, an operation is counted as {:.2} ms, \
         and {overran} took longer",
        longest_ns as f64 / 1e6
    );
    report.facts.push(Fact {
        note,
        ..Fact::new(19, statement, "very small with reserves (no figure)", ours, agrees)
    });
}
