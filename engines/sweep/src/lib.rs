//! Sweeps: a grid of recipes of random task sets, tested by named tests, block by block.
//!
//! - A *cell* is one recipe of the grid with one seed; its sets are drawn in *blocks* of a size that the file fixes.
//! - The seed of a block is a hash of the sweep's name, the cell and the block's number ([`Plan::seed`]), so the rows are the same
//!   whatever the number of workers, their order, or how often a sweep was broken off.
//! - What a block came to is one Parquet file whose name says what was asked and what is in it ([`store`]). It is written under another
//!   name and renamed: a file that is there is whole, and one that was damaged since is noticed.
//!
//! `docs/concepts/sweeps.md` has the file, the columns and the formulas.

mod block;
mod chunk;
mod error;
mod estimate;
pub mod file;
mod more;
mod page;
mod plan;
mod result;
mod rows;
mod run;
pub mod store;
mod summary;
pub mod systems;
mod test;
mod work;

pub use block::{Counts, Row, block_file, compute, file_rows};
pub use error::SweepError;
pub use estimate::{Estimate, estimate};
pub use more::{KEYS, Key, Kind, More, Value};
pub use plan::{BlockId, Cell, MOST_BLOCKS, MOST_CELLS, Plan, RowsOf};
pub use result::{Blocks, SweepResult, finish};
pub use run::{Ran, run};
pub use store::{Found, Store};
pub use summary::{CellSummary, Summary, TestSummary, Weighted};
pub use test::{How, SYSTEM_TESTS, Serving, Test};

/// What the sets are drawn by; it goes into every file.
pub const GENERATOR: &str =
    concat!("xoshiro256++ seeded by SplitMix64, horolog-draw ", env!("CARGO_PKG_VERSION"));
/// The version of horolog.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
