//! A part of a block: some of its sets, drawn and tested by whoever is free, and taken together in the order of the sets.
//!
//! A verdict depends on its set alone, so how a block is cut into parts changes nothing; sums of floating-point numbers depend on
//! their order, so they are made where the parts are taken together.

use crate::SweepError;
use crate::block::{Counts, Found};
use crate::plan::{BlockId, Plan, RowsOf};
use crate::systems::{self, Set};
use crate::test::Test;
use horolog_analysis::Verdict;
use horolog_analysis::batch::{BatchTest, Sets, decide};
use horolog_analysis::fixed_priority::LANES;
use horolog_draw::Prepared;

/// What the sets of a part came to, set by set.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    shares: Vec<f64>,
    /// One a test for each set.
    verdicts: Vec<Verdict>,
}

/// What one thread draws and tests the sets of a block with.
#[derive(Clone)]
pub(crate) struct Hand {
    id: BlockId,
    seed: u64,
    prepared: Prepared,
    arrays: [Vec<u64>; 3],
    /// The tests of plain sets, and the place of each among all.
    plain: Vec<BatchTest>,
    places: Vec<usize>,
    of_plain: Vec<Verdict>,
}

impl Hand {
    pub(crate) fn new(plan: &Plan, id: BlockId) -> Result<Hand, SweepError> {
        let prepared = plan.batch(id).and_then(|batch| batch.prepare()).map_err(SweepError::Internal)?;
        let plain = |(place, test): (usize, &Test)| match test {
            Test::Plain(test) => Some((*test, place)),
            Test::System(_) => None,
        };
        let (plain, places) = plan.tests.iter().enumerate().filter_map(plain).unzip();
        let arrays = [const { Vec::new() }; 3];
        Ok(Hand { id, seed: plan.seed(id), prepared, arrays, plain, places, of_plain: Vec::new() })
    }

    /// So many sets take hardly longer than one.
    pub(crate) fn at_once(&self) -> u64 {
        if self.plain.is_empty() { 1 } else { LANES as u64 }
    }

    /// Draws and tests `count` sets from number `first` on.
    pub(crate) fn chunk(&mut self, plan: &Plan, first: u64, count: u64) -> Result<Chunk, SweepError> {
        let (count, tests) = (count as usize, plan.tests.len());
        let cell = &plan.cells[self.id.cell];
        let tasks = cell.recipe.tasks;
        self.arrays.iter_mut().for_each(|array| array.resize(count * tasks, 0_u64));
        let [wcet, deadline, period] = &mut self.arrays;
        self.prepared.draw(first, [wcet, deadline, period]).map_err(SweepError::Internal)?;
        let [wcet, deadline, period] = &self.arrays;
        let mut chunk = Chunk {
            shares: wcet.chunks(tasks).zip(period.chunks(tasks)).map(utilisation).collect(),
            verdicts: vec![Verdict::Unknown; count * tests],
        };
        if !self.plain.is_empty() {
            let drawn = Sets::new(tasks, wcet, deadline, period)
                .map_err(|error| SweepError::Internal(error.to_string()))?;
            self.of_plain.clear();
            self.of_plain.resize(count * self.plain.len(), Verdict::Unknown);
            decide(drawn, &self.plain, &mut self.of_plain, 1);
            let rows = chunk.verdicts.chunks_mut(tests).zip(self.of_plain.chunks(self.plain.len()));
            for (row, of_plain) in rows {
                self.places.iter().zip(of_plain).for_each(|(&place, &verdict)| row[place] = verdict);
            }
        }
        for (place, test) in plan.tests.iter().enumerate() {
            let Some(how) = test.how() else { continue };
            for number in 0..count {
                let range = number * tasks..(number + 1) * tasks;
                let set = Set {
                    wcet: &wcet[range.clone()],
                    deadline: &deadline[range.clone()],
                    period: &period[range],
                    seed: self.seed,
                    number: first + number as u64,
                };
                let verdict = systems::decide(how, &cell.more, set);
                chunk.verdicts[number * tests + place] = verdict.map_err(|reason| SweepError::Outside {
                    cell: cell.text(),
                    block: self.id.block,
                    set: set.number,
                    test: test.word(),
                    reason,
                })?;
            }
        }
        Ok(chunk)
    }
}

fn utilisation((wcet, period): (&[u64], &[u64])) -> f64 {
    wcet.iter().zip(period).map(|(&wcet, &period)| wcet as f64 / period as f64).sum()
}

/// The parts of a block taken together.
#[derive(Debug)]
pub(crate) struct Fold {
    counts: Vec<Counts>,
    keeps_sets: bool,
    shares: Vec<f64>,
    verdicts: Vec<Verdict>,
}

impl Fold {
    pub(crate) fn new(plan: &Plan) -> Fold {
        let counts = vec![Counts::default(); plan.tests.len()];
        let keeps_sets = plan.rows == RowsOf::Sets;
        Fold { counts, keeps_sets, shares: Vec::new(), verdicts: Vec::new() }
    }

    /// Adds the part that comes next.
    pub(crate) fn take(&mut self, chunk: &Chunk) {
        for (&share, verdicts) in chunk.shares.iter().zip(chunk.verdicts.chunks(self.counts.len())) {
            for (counts, &verdict) in self.counts.iter_mut().zip(verdicts) {
                counts.add(verdict, share);
            }
        }
        if self.keeps_sets {
            self.shares.extend_from_slice(&chunk.shares);
            self.verdicts.extend_from_slice(&chunk.verdicts);
        }
    }

    pub(crate) fn found(self, plan: &Plan) -> Found {
        Found { shares: self.shares, verdicts: self.verdicts, ..Found::of(&plan.tests, self.counts) }
    }
}
