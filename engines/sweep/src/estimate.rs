//! What a sweep will take, from a few sets of some of its cells.

use crate::SweepError;
use crate::block::first_sets;
use crate::plan::{BlockId, Plan};
use crate::rows;
use serde::Serialize;
use std::time::Instant;

/// Cells that are tried, evenly over the grid.
const TRIED_CELLS: usize = 40;
/// Sets of each that are tried at the most.
const TRIED_SETS: u64 = 200;
/// A folder of a cell, and the rest of a block that a file does not fill.
const FILE_SYSTEM_BLOCK: u64 = 4_096;

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

/// Draws and tests the first sets of some cells on one core, and scales that up; writes nothing.
///
/// # Errors
/// As [`compute`](crate::compute).
pub fn estimate(plan: &Plan, missing: &[BlockId], workers: usize) -> Result<Estimate, SweepError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = if workers == 0 { cores } else { workers };
    let step = missing.len().div_ceil(TRIED_CELLS).max(1);
    let (mut seconds, mut tried, mut bytes, mut files) = (0.0, 0_u64, 0_u64, 0_u64);
    for &id in missing.iter().step_by(step) {
        let sets = plan.sets_of(id).min(TRIED_SETS);
        let begun = Instant::now();
        let rows = first_sets(plan, id, sets)?;
        seconds += begun.elapsed().as_secs_f64();
        tried += sets;
        bytes += (rows::encode(plan, id, &rows)?.len() as u64).next_multiple_of(FILE_SYSTEM_BLOCK);
        files += 1;
    }
    let left: u64 = missing.iter().map(|&id| plan.sets_of(id)).sum();
    let processor_s = if tried == 0 { 0.0 } else { seconds / tried as f64 * left as f64 };
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
