//! What a sweep consists of: cells, blocks, and the seed of each.

use crate::more::More;
use crate::test::Test;
use horolog_draw::{Batch, BatchRecipe, Method};
use sha2::{Digest, Sha256};

/// The most cells of a sweep.
pub const MOST_CELLS: usize = 100_000;
/// The most blocks: each is a file.
pub const MOST_BLOCKS: u64 = 1_000_000;

/// A recipe of the grid with a seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The recipe; its utilisation and shares are decimals of at most nine places.
    pub recipe: BatchRecipe,
    /// What the file gives beside: keys that have no default.
    pub more: More,
    /// One of the file's seeds.
    pub seed: u64,
}

impl Cell {
    /// Everything in it as one line: what its identity is a hash of.
    ///
    /// ```
    /// let cell = horolog_sweep::Cell { recipe: horolog_draw::BatchRecipe::default(), more: Default::default(), seed: 3 };
    /// assert!(cell.text().starts_with("tasks=10 utilisation=0.8 method=uunifast-discard "));
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let one = &self.recipe;
        let more = self
            .more
            .each()
            .fold(String::new(), |text, (key, value)| format!("{text}{}={value} ", key.column));
        format!(
            "tasks={} utilisation={} method={} periods={} shortest_period_ns={} longest_period_ns={} granularity_ns={} deadlines={} least={} factor={} {more}seed={}",
            one.tasks,
            one.utilisation,
            one.method,
            one.periods,
            one.shortest_period_ns,
            one.longest_period_ns,
            one.granularity_ns,
            one.deadlines,
            one.least,
            one.factor,
            self.seed
        )
    }

    /// Its identity: 16 hexadecimal digits of the SHA-256 of its text.
    #[must_use]
    pub fn id(&self) -> String {
        hex(&digest(&[&self.text()]))
    }
}

/// A block of a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockId {
    /// Which cell of the plan, from 0.
    pub cell: usize,
    /// Which block of it, from 0.
    pub block: u64,
}

/// What a row is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RowsOf {
    /// All sets of a block.
    #[default]
    Blocks,
    /// One set.
    Sets,
}

impl RowsOf {
    /// The words of the file.
    pub const WORDS: [&'static str; 2] = ["blocks", "sets"];
}

/// A checked sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Its name, which is part of every seed.
    pub name: String,
    /// Sets of each cell.
    pub sets: u64,
    /// Sets of a block.
    pub block: u64,
    /// The tests.
    pub tests: Vec<Test>,
    /// What a row is about.
    pub rows: RowsOf,
    /// The grid, in the order of the file: the last key changes fastest.
    pub cells: Vec<Cell>,
}

impl Plan {
    /// Blocks of each cell.
    #[must_use]
    pub fn blocks_of_a_cell(&self) -> u64 {
        self.sets.div_ceil(self.block)
    }

    /// Every block, cell by cell.
    pub fn blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        let blocks = self.blocks_of_a_cell();
        (0..self.cells.len()).flat_map(move |cell| (0..blocks).map(move |block| BlockId { cell, block }))
    }

    /// Whether there is such a block.
    #[must_use]
    pub fn has(&self, id: BlockId) -> bool {
        id.cell < self.cells.len() && id.block < self.blocks_of_a_cell()
    }

    /// Sets of a block: the last one has what is left.
    #[must_use]
    pub fn sets_of(&self, id: BlockId) -> u64 {
        self.block.min(self.sets - id.block * self.block)
    }

    /// The seed of a block: the first eight bytes (least first) of the SHA-256 of `horolog.sweep/1`, the sweep's name, the cell's text and
    /// the block's number, each behind its length. Neither the tests nor the number of sets change it, so adding some draws no set anew.
    #[must_use]
    pub fn seed(&self, id: BlockId) -> u64 {
        let text = self.cells[id.cell].text();
        let hash = digest(&["horolog.sweep/1", &self.name, &text, &id.block.to_string()]);
        u64::from_le_bytes(std::array::from_fn(|at| hash[at]))
    }

    /// What a block's rows depend on, as 16 hexadecimal digits: its seed, its cell, its sets, the tests, and this version.
    #[must_use]
    pub fn key(&self, id: BlockId) -> String {
        let tests: Vec<&str> = self.tests.iter().map(|test| test.word()).collect();
        let (seed, sets) = (self.seed(id).to_string(), self.sets_of(id).to_string());
        let (text, tests) = (self.cells[id.cell].text(), tests.join(" "));
        let mut asked = vec!["horolog.sweep-rows/1", crate::VERSION, &seed, &text, &sets, &tests];
        if self.rows == RowsOf::Sets {
            asked.push("sets");
        }
        // Rows of vectors that were drawn by tables are others.
        if self.cells[id.cell].recipe.method == Method::ConvolutionalFixedSum.word() {
            asked.push("exact");
        }
        // Jobs under `fp-fslm` spun at the highest priority.
        if self.tests.iter().any(|test| test.word() == "fp-fslm") {
            asked.push("ceiling");
        }
        hex(&digest(&asked))
    }

    /// What draws the sets of a block.
    ///
    /// # Errors
    /// The recipe's flaw; a plan that was read from a file has none.
    pub fn batch(&self, id: BlockId) -> Result<Batch, String> {
        let cell = &self.cells[id.cell];
        cell.recipe.within(self.seed(id), cell.more.bounds(cell.recipe.tasks))
    }
}

/// The SHA-256 of texts, each behind its length.
pub(crate) fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

/// Eight bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let recipe = |tasks| BatchRecipe { tasks, ..BatchRecipe::default() };
        let cell = |tasks, seed| Cell { recipe: recipe(tasks), more: More::default(), seed };
        Plan {
            name: "one".to_owned(),
            sets: 25,
            block: 10,
            tests: vec![Test::of_word("edf-qpa").expect("a test")],
            rows: RowsOf::Blocks,
            cells: vec![cell(3, 1), cell(4, 1)],
        }
    }

    #[test]
    fn blocks_cover_every_set_once() {
        let plan = plan();
        let sizes: Vec<u64> = plan.blocks().map(|id| plan.sets_of(id)).collect();
        assert_eq!(sizes, [10, 10, 5, 10, 10, 5]);
        let exact = Plan { sets: 20, ..plan };
        assert_eq!(exact.blocks().map(|id| exact.sets_of(id)).collect::<Vec<_>>(), [10; 4]);
        assert!(exact.has(BlockId { cell: 1, block: 1 }) && !exact.has(BlockId { cell: 1, block: 2 }));
    }

    #[test]
    fn a_seed_is_that_of_its_name_cell_and_block_and_of_nothing_else() {
        let plan = plan();
        let mut seeds: Vec<u64> = plan.blocks().map(|id| plan.seed(id)).collect();
        let first = BlockId { cell: 0, block: 0 };
        // What a study published with this file was drawn with; computed a second time with Python's hashlib.
        assert_eq!(plan.seed(first), 10_958_170_449_637_943_346);
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 6);
        let tests = vec![Test::of_word("rm-hyperbolic").expect("a test")];
        let more = Plan { sets: 1_000, tests, ..plan.clone() };
        assert_eq!(more.seed(first), plan.seed(first));
        assert_ne!(more.key(first), plan.key(first));
        let last = BlockId { cell: 0, block: 2 };
        assert_ne!(Plan { sets: 26, ..plan.clone() }.key(last), plan.key(last), "one set more");
        let mut moved = plan.clone();
        moved.cells.remove(0);
        assert_eq!(moved.seed(first), plan.seed(BlockId { cell: 1, block: 0 }));
        let mut other = plan.clone();
        other.name.push('x');
        assert_ne!(other.seed(first), plan.seed(first));
        other = plan.clone();
        other.cells[0].seed = 2;
        assert_ne!(other.seed(first), plan.seed(first));
    }
}
