//! One block: draw its sets, test them, count.

use crate::plan::{BlockId, Plan};
use crate::rows;
use crate::{GENERATOR, SweepError, VERSION};
use horolog_analysis::Verdict;
use horolog_analysis::batch::{BatchTest, Sets, decide};
use serde::{Deserialize, Serialize};

/// Values of one array that are in memory at a time.
const MOST_VALUES: usize = 1 << 16;

/// What one test said of some sets.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// How many sets.
    pub sets: u64,
    /// Proved to meet every deadline.
    pub meets: u64,
    /// Proved to miss one.
    pub misses: u64,
    /// Neither.
    pub unknown: u64,
    /// The sum of their utilisations Σ C/T.
    pub utilisation: f64,
    /// The same of those that meet.
    pub utilisation_met: f64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub fn with(self, other: Counts) -> Counts {
        Counts {
            sets: self.sets + other.sets,
            meets: self.meets + other.meets,
            misses: self.misses + other.misses,
            unknown: self.unknown + other.unknown,
            utilisation: self.utilisation + other.utilisation,
            utilisation_met: self.utilisation_met + other.utilisation_met,
        }
    }

    /// The share of sets that are proved to meet every deadline.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.meets as f64 / self.sets as f64
    }

    /// Σ U·S / Σ U over the sets, S being 1 for one that is proved to meet every deadline and 0 otherwise (Bastoni, Brandenburg and
    /// Anderson 2010; key bastoni10).
    #[must_use]
    pub fn weighted(&self) -> f64 {
        self.utilisation_met / self.utilisation
    }
}

/// What one test said of a block.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its name.
    pub test: String,
    /// What it said.
    pub counts: Counts,
}

/// What a file says of itself.
#[derive(Serialize, Deserialize, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) schema: String,
    pub(crate) version: String,
    pub(crate) generator: String,
    pub(crate) sweep: String,
    pub(crate) cell: String,
    pub(crate) block: u64,
    pub(crate) key: String,
}

impl Head {
    pub(crate) fn of(plan: &Plan, id: BlockId) -> Head {
        Head {
            schema: "horolog.sweep-rows/1".to_owned(),
            version: VERSION.to_owned(),
            generator: GENERATOR.to_owned(),
            sweep: plan.name.clone(),
            cell: plan.cells[id.cell].text(),
            block: id.block,
            key: plan.key(id),
        }
    }
}

/// Draws and tests the sets of a block on this thread: one row a test.
///
/// # Errors
/// Where the plan has a flaw, which one that was read from a file has not.
pub fn compute(plan: &Plan, id: BlockId) -> Result<Vec<Row>, SweepError> {
    first_sets(plan, id, plan.sets_of(id))
}

/// The same of the block's first sets alone.
pub(crate) fn first_sets(plan: &Plan, id: BlockId, sets: u64) -> Result<Vec<Row>, SweepError> {
    let batch = plan.batch(id).map_err(SweepError::Internal)?;
    let tasks = batch.tasks;
    let part = (MOST_VALUES / tasks).max(1) as u64;
    let mut counts = vec![Counts::default(); plan.tests.len()];
    let mut arrays = [const { Vec::new() }; 3];
    let mut verdicts = Vec::new();
    let mut first = 0;
    while first < sets {
        let count = part.min(sets - first) as usize;
        arrays.iter_mut().for_each(|array| array.resize(count * tasks, 0_u64));
        let [wcet, deadline, period] = &mut arrays;
        batch.draw(first, [wcet, deadline, period], 1).map_err(SweepError::Internal)?;
        verdicts.clear();
        verdicts.resize(count * plan.tests.len(), Verdict::Unknown);
        let drawn = Sets::new(tasks, wcet, deadline, period)
            .map_err(|error| SweepError::Internal(error.to_string()))?;
        decide(drawn, &plan.tests, &mut verdicts, 1);
        let shares = wcet.chunks(tasks).zip(period.chunks(tasks)).map(|(wcet, period)| {
            wcet.iter().zip(period).map(|(&wcet, &period)| wcet as f64 / period as f64).sum::<f64>()
        });
        for (utilisation, verdicts) in shares.zip(verdicts.chunks(plan.tests.len())) {
            for (counts, verdict) in counts.iter_mut().zip(verdicts) {
                add(counts, *verdict, utilisation);
            }
        }
        first += count as u64;
    }
    let row = |(test, counts): (&BatchTest, Counts)| Row { test: test.word().to_owned(), counts };
    Ok(plan.tests.iter().zip(counts).map(row).collect())
}

fn add(counts: &mut Counts, verdict: Verdict, utilisation: f64) {
    counts.sets += 1;
    counts.utilisation += utilisation;
    match verdict {
        Verdict::Meets => {
            counts.meets += 1;
            counts.utilisation_met += utilisation;
        }
        Verdict::Misses => counts.misses += 1,
        Verdict::Unknown => counts.unknown += 1,
    }
}

/// The Parquet file of a block: the same bytes on every machine.
///
/// # Errors
/// As [`compute`].
pub fn block_file(plan: &Plan, id: BlockId) -> Result<Vec<u8>, SweepError> {
    rows::encode(plan, id, &compute(plan, id)?)
}

/// The rows of a block's file.
///
/// # Errors
/// In words, where the file is not that of this block of this plan.
pub fn file_rows(plan: &Plan, id: BlockId, file: &[u8]) -> Result<Vec<Row>, String> {
    let (head, rows) = rows::decode(file)?;
    if head != Head::of(plan, id) {
        return Err(format!("it is block {} of `{}` of sweep `{}`", head.block, head.cell, head.sweep));
    }
    let is_asked = rows.len() == plan.tests.len()
        && rows.iter().zip(&plan.tests).all(|(row, test)| row.test == test.word())
        && rows.iter().all(|row| {
            let one = &row.counts;
            let parts = one.meets.checked_add(one.misses).and_then(|sum| sum.checked_add(one.unknown));
            one.sets == plan.sets_of(id) && parts == Some(one.sets)
        });
    if is_asked { Ok(rows) } else { Err("its rows are not one a test over every set".to_owned()) }
}
