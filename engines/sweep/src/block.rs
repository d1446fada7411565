//! One block: draw its sets, test them, count.

use crate::chunk::{Fold, Hand};
use crate::plan::{BlockId, Plan, RowsOf};
use crate::rows;
use crate::test::Test;
use crate::{GENERATOR, SweepError, VERSION};
use horolog_analysis::Verdict;
use serde::{Deserialize, Serialize};

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

    /// One set more.
    pub(crate) fn add(&mut self, verdict: Verdict, utilisation: f64) {
        self.sets += 1;
        self.utilisation += utilisation;
        match verdict {
            Verdict::Meets => {
                self.meets += 1;
                self.utilisation_met += utilisation;
            }
            Verdict::Misses => self.misses += 1,
            Verdict::Unknown => self.unknown += 1,
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

/// What is known of a block.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Found {
    /// One a test.
    pub(crate) rows: Vec<Row>,
    /// Where the file asks for rows of sets: the utilisation of each set, and for each its verdicts in the order of the tests.
    pub(crate) shares: Vec<f64>,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Found {
    /// Of tests that have counted so.
    pub(crate) fn of(tests: &[Test], counts: Vec<Counts>) -> Found {
        let row = |(test, counts): (&Test, Counts)| Row { test: test.word().to_owned(), counts };
        Found { rows: tests.iter().zip(counts).map(row).collect(), ..Found::default() }
    }
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
/// Where the plan has a flaw, which one that was read from a file has not; where a system lies outside the assumptions of its test.
pub fn compute(plan: &Plan, id: BlockId) -> Result<Vec<Row>, SweepError> {
    Ok(first_sets(plan, id, plan.sets_of(id))?.rows)
}

/// The same of the block's first sets alone.
pub(crate) fn first_sets(plan: &Plan, id: BlockId, sets: u64) -> Result<Found, SweepError> {
    const TOGETHER: u64 = 256;
    let (mut hand, mut fold) = (Hand::new(plan, id)?, Fold::new(plan));
    for first in (0..sets).step_by(TOGETHER as usize) {
        let chunk = hand.chunk(plan, first, TOGETHER.min(sets - first))?;
        fold.take(&chunk);
    }
    Ok(fold.found(plan))
}

/// The Parquet file of a block: the same bytes on every machine.
///
/// # Errors
/// As [`compute`].
pub fn block_file(plan: &Plan, id: BlockId) -> Result<Vec<u8>, SweepError> {
    rows::encode(plan, id, &first_sets(plan, id, plan.sets_of(id))?)
}

/// The rows of a block's file, one a test.
///
/// # Errors
/// In words, where the file is not that of this block of this plan.
pub fn file_rows(plan: &Plan, id: BlockId, file: &[u8]) -> Result<Vec<Row>, String> {
    let (head, rows) = match plan.rows {
        RowsOf::Blocks => rows::decode(file)?,
        RowsOf::Sets => rows::decode_sets(file, &plan.tests)?,
    };
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
