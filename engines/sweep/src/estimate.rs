//! What a sweep will take, from some sets of its cells.

mod sampled;
mod stopwatch;

use crate::SweepError;
use crate::block::file_rows;
use crate::chunk::{Fold, Hand};
use crate::plan::{BlockId, Plan};
use crate::rows;
use sampled::{Sampled, Spread};
use serde::Serialize;
use std::time::{Duration, Instant};
use stopwatch::Stopwatch;

/// Cells that are tried, evenly over the grid.
const TRIED_CELLS: usize = 400;
/// Files that are made, for what a file takes.
const TRIED_FILES: usize = 40;
/// As many sets are tried at a time as take this long, s: the clock would disturb shorter times.
const LONG_ENOUGH: f64 = 200e-6;
/// How many more are tried where they take less.
const GROWTH: u64 = 4;
/// No more sets are tried once the error is this part of the sum.
const ENOUGH: f64 = 0.02;
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
    /// Sets that were tried for this.
    pub tried_sets: u64,
    /// Processor time of the blocks that are missing, s: from sets that were tried.
    pub processor_s: f64,
    /// The least that it is likely to be, s.
    pub processor_s_low: f64,
    /// The most that it is likely to be, s, unless there are sets that take longer than any that was tried.
    pub processor_s_high: f64,
    /// The three by the number of workers.
    pub wall_s: f64,
    /// See `wall_s`.
    pub wall_s_low: f64,
    /// See `wall_s`.
    pub wall_s_high: f64,
    /// Workers.
    pub workers: usize,
    /// What the files of the missing blocks take, in whole blocks of 4 KiB.
    pub disk_bytes: u64,
}

/// Draws and tests sets of up to 400 cells on one core, makes some files in memory, and scales that up; writes nothing. First each cell has
/// its turn; then those whose sets differ most, by what that means for the sum, until its error is 2 % or two seconds are over. It takes
/// longer only where the very first set does.
///
/// # Errors
/// As [`compute`](crate::compute).
pub fn estimate(plan: &Plan, missing: &[BlockId], workers: usize) -> Result<Estimate, SweepError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = if workers == 0 { cores } else { workers };
    let end = Instant::now() + MOST_TIME;
    let (Spread { tried, expected, low, high, .. }, files) = tried(plan, missing, end)?;
    let blocks = missing.len() as f64;
    let of_files =
        if files.made == 0 { 0.0 } else { files.seconds / files.made as f64 + FILE_SYSTEM_S } * blocks;
    let [processor_s, processor_s_low, processor_s_high] = [expected, low, high].map(|sets| sets + of_files);
    let at_once = workers.min(missing.len().max(1)) as f64;
    let bytes = (files.bytes * missing.len() as u64).checked_div(files.made).unwrap_or(0);
    let folders = if missing.is_empty() { 0 } else { plan.cells.len() as u64 };
    Ok(Estimate {
        cells: plan.cells.len(),
        sets: plan.sets.saturating_mul(plan.cells.len() as u64),
        blocks: plan.blocks_of_a_cell() * plan.cells.len() as u64,
        missing_blocks: missing.len() as u64,
        tried_sets: tried,
        processor_s,
        processor_s_low,
        processor_s_high,
        wall_s: processor_s / at_once,
        wall_s_low: processor_s_low / at_once,
        wall_s_high: processor_s_high / at_once,
        workers,
        disk_bytes: bytes + folders * FILE_SYSTEM_BLOCK,
    })
}

/// What some files took.
#[derive(Default)]
struct Files {
    made: u64,
    seconds: f64,
    bytes: u64,
}

/// A cell that is tried: sets of its first missing block.
struct TriedCell {
    id: BlockId,
    hand: Hand,
    /// The set that comes next, and how many at a time.
    next: u64,
    lump: u64,
    sampled: Sampled,
}

/// Tries sets until they say enough or the time is over.
fn tried(plan: &Plan, missing: &[BlockId], end: Instant) -> Result<(Spread, Files), SweepError> {
    let left: u64 = missing.iter().map(|&id| plan.sets_of(id)).sum();
    let of_cells: Vec<&[BlockId]> = missing.chunk_by(|one, next| one.cell == next.cell).collect();
    let overhead = Stopwatch::overhead();
    let (mut cells, mut files) = (Vec::<TriedCell>::new(), Files::default());
    for place in order(of_cells.len()).take(TRIED_CELLS) {
        if !cells.is_empty() && Instant::now() >= end {
            break;
        }
        let blocks = of_cells[place];
        let sets: u64 = blocks.iter().map(|&id| plan.sets_of(id)).sum();
        let hand = Hand::new(plan, blocks[0])?;
        let lump = hand.at_once();
        let mut cell = TriedCell { id: blocks[0], hand, next: 0, lump, sampled: Sampled::of(sets) };
        let fold = cell.lump(plan, overhead, end)?;
        if files.made < TRIED_FILES as u64 {
            files.make(plan, cell.id, fold)?;
        }
        cells.push(cell);
    }
    loop {
        let spread = sampled::spread(cells.iter().map(|cell| &cell.sampled), left as f64, of_cells.len());
        let is_left = |cell: &&mut TriedCell| cell.next < plan.sets_of(cell.id);
        let gain = |cell: &TriedCell| cell.sampled.gain(cell.lump);
        let next = cells.iter_mut().filter(is_left).max_by(|one, other| gain(one).total_cmp(&gain(other)));
        match next {
            Some(cell) if spread.error > ENOUGH * spread.expected && Instant::now() < end => {
                cell.lump(plan, overhead, end)?;
            }
            _ => return Ok((spread, files)),
        }
    }
}

/// Every place once, such that those before any break lie evenly: steps of the golden section, made coprime with the count.
fn order(count: usize) -> impl Iterator<Item = usize> {
    let is_coprime = |&step: &usize| {
        let (mut one, mut other) = (count, step);
        while other > 0 {
            (one, other) = (other, one % other);
        }
        one == 1
    };
    let golden = (count as f64 * 0.618) as usize;
    let step = (golden.max(1)..=count).find(is_coprime).unwrap_or(1);
    (0..count).map(move |turn| (turn as u128 * step as u128 % count.max(1) as u128) as usize)
}

impl TriedCell {
    /// Tries the sets that come next, more of them at a time until they take long enough.
    fn lump(&mut self, plan: &Plan, overhead: f64, end: Instant) -> Result<Fold, SweepError> {
        let all = plan.sets_of(self.id);
        loop {
            let sets = self.lump.min(all - self.next);
            let mut fold = Fold::new(plan);
            let watch = Stopwatch::start();
            fold.take(&self.hand.chunk(plan, self.next, sets)?);
            let seconds = (watch.seconds() - overhead).max(0.0);
            self.next += sets;
            let is_whole = seconds >= LONG_ENOUGH || self.next == all || Instant::now() >= end;
            if is_whole {
                self.sampled.add(sets, seconds);
                return Ok(fold);
            }
            self.sampled.pass(sets);
            self.lump *= GROWTH;
        }
    }
}

impl Files {
    fn make(&mut self, plan: &Plan, id: BlockId, fold: Fold) -> Result<(), SweepError> {
        let watch = Stopwatch::start();
        let file = rows::encode(plan, id, &fold.found(plan))?;
        // The rows of fewer sets are no rows of this block; that they are read is all that is asked here.
        let _ = file_rows(plan, id, &file);
        self.seconds += watch.seconds();
        self.bytes += (file.len() as u64).next_multiple_of(FILE_SYSTEM_BLOCK);
        self.made += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_one_turn_and_the_first_turns_lie_evenly() {
        for count in [0, 1, 2, 3, 7, 24, 100, 99_991] {
            let places: Vec<usize> = order(count).collect();
            let mut sorted = places.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..count), "{count}");
            if count >= 24 {
                // Of the first eighth each quarter has some.
                let quarter = |place: &usize| place * 4 / count;
                let first: Vec<usize> = places[..count / 8 + 5].iter().map(quarter).collect();
                assert!((0..4).all(|one| first.contains(&one)), "{count}: {first:?}");
            }
        }
    }
}
