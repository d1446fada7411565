//! What a sweep will take, from a few sets of some of its cells.

mod stopwatch;

use crate::SweepError;
use crate::block::{file_rows, first_sets};
use crate::plan::{BlockId, Plan};
use crate::rows;
use serde::Serialize;
use std::time::{Duration, Instant};
use stopwatch::Stopwatch;

/// Blocks that are tried, evenly over the grid.
const TRIED_BLOCKS: usize = 40;
/// Sets of each that are tried at the most.
const TRIED_SETS: u64 = 200;
/// How many more are tried where there is time left.
const GROWTH: u64 = 4;
/// No set is begun after this time, but for the first.
const MOST_TIME: Duration = Duration::from_secs(2);
/// A folder of a cell, and the rest of a block that a file does not fill.
const FILE_SYSTEM_BLOCK: u64 = 4_096;
/// Processor time that the kernel takes to make, write and rename a small file, s: 18 µs were measured on tmpfs, 31 to 82 µs
/// on ext4 (Linux 6.18, a virtual machine).
const FILE_SYSTEM_S: f64 = 40e-6;

/// What is left to do, and what it will take.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// Cells of the grid.
    pub cells: usize,
    /// Sets of all cells.
    pub sets: u64,
    /// Blocks of all cells.
    pub blocks: u64,
    /// Blocks that are still to be computed.
    pub missing_blocks: u64,
    /// Processor time of the blocks that are missing, s: from sets that were tried.
    pub processor_s: f64,
    /// The same by the number of workers.
    pub wall_s: f64,
    /// Workers.
    pub workers: usize,
    /// What the files of the missing blocks take, in whole blocks of 4 KiB.
    pub disk_bytes: u64,
}

/// Draws and tests the first sets of some blocks on one core, makes their files in memory, and scales that up; writes nothing. It takes
/// about two seconds at the most, and longer only where the very first set does.
///
/// # Errors
/// As [`compute`](crate::compute).
pub fn estimate(plan: &Plan, missing: &[BlockId], workers: usize) -> Result<Estimate, SweepError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = if workers == 0 { cores } else { workers };
    let step = missing.len().div_ceil(TRIED_BLOCKS).max(1);
    let tried: Vec<BlockId> = missing.iter().step_by(step).copied().collect();
    let end = Instant::now() + MOST_TIME;
    let (mut of_sets, mut of_files, mut bytes) = (0.0, 0.0, 0_u64);
    let (mut sets, mut files) = (0_u64, 0_u64);
    for (place, &id) in tried.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        if place > 0 && left.is_zero() {
            break;
        }
        let one = tried_block(plan, id, left / (tried.len() - place) as u32)?;
        of_sets += one.sets_s;
        of_files += one.file_s;
        bytes += one.bytes.next_multiple_of(FILE_SYSTEM_BLOCK);
        sets += plan.sets_of(id);
        files += 1;
    }
    let left: u64 = missing.iter().map(|&id| plan.sets_of(id)).sum();
    let each_set = if sets == 0 { 0.0 } else { of_sets / sets as f64 };
    let each_file = if files == 0 { 0.0 } else { of_files / files as f64 + FILE_SYSTEM_S };
    let processor_s = each_set * left as f64 + each_file * missing.len() as f64;
    let of_files = (bytes * missing.len() as u64).checked_div(files).unwrap_or(0);
    let cells = if missing.is_empty() { 0 } else { plan.cells.len() as u64 };
    Ok(Estimate {
        cells: plan.cells.len(),
        sets: plan.sets.saturating_mul(plan.cells.len() as u64),
        blocks: plan.blocks_of_a_cell() * plan.cells.len() as u64,
        missing_blocks: missing.len() as u64,
        processor_s,
        wall_s: processor_s / workers.min(missing.len().max(1)) as f64,
        workers,
        disk_bytes: of_files + cells * FILE_SYSTEM_BLOCK,
    })
}

/// What a block takes.
struct Tried {
    /// All its sets, s.
    sets_s: f64,
    /// To make its file and to check it, s.
    file_s: f64,
    /// The file.
    bytes: u64,
}

/// Tries one set, then more as long as these are likely to end in time.
fn tried_block(plan: &Plan, id: BlockId, time: Duration) -> Result<Tried, SweepError> {
    let (begun, all) = (Instant::now(), plan.sets_of(id));
    let mut sets = 1;
    loop {
        let watch = Stopwatch::start();
        let rows = first_sets(plan, id, sets)?;
        let of_sets = watch.seconds();
        let next = (sets * GROWTH).min(TRIED_SETS).min(all);
        let is_in_time = begun.elapsed().as_secs_f64() + of_sets * next as f64 / sets as f64;
        if next > sets && is_in_time < time.as_secs_f64() {
            sets = next;
            continue;
        }
        let watch = Stopwatch::start();
        let file = rows::encode(plan, id, &rows)?;
        // The rows of fewer sets are no rows of this block; that they are read is all that is asked here.
        let _ = file_rows(plan, id, &file);
        let file_s = watch.seconds();
        return Ok(Tried { sets_s: of_sets * all as f64 / sets as f64, file_s, bytes: file.len() as u64 });
    }
}
