//! The end of a sweep: the result and the drawings are written beside the rows.

use crate::block::Row;
use crate::plan::{BlockId, Plan};
use crate::store::Store;
use crate::summary::Summary;
use crate::{SweepError, page};
use serde::Serialize;
use std::collections::HashMap;

/// The object `horolog.sweep-result/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SweepResult {
    /// What the rows come to.
    #[serde(flatten)]
    pub summary: Summary,
    /// The folder.
    pub folder: String,
    /// Where the blocks come from.
    pub blocks: Blocks,
    /// The drawings' files in the folder.
    pub drawings: Vec<String>,
    /// The page's file in the folder.
    pub page: &'static str,
}

/// Where blocks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Blocks {
    /// All that are there.
    pub all: u64,
    /// Computed now.
    pub computed: u64,
    /// There before.
    pub kept: u64,
    /// There before, and damaged.
    pub damaged: u64,
}

/// The page's file.
pub(crate) const PAGE: &str = "sweep.html";

/// Writes `sweep.json`, `sweep.html` and the drawings of the blocks that are there, of which `computed` are new; drawings of before are removed.
///
/// # Errors
/// Where they cannot be written.
pub fn finish(
    plan: &Plan,
    store: &Store,
    rows: &HashMap<BlockId, Vec<Row>>,
    computed: usize,
    damaged: usize,
) -> Result<SweepResult, SweepError> {
    let summary = Summary::of(plan, rows);
    let failed = |error| SweepError::Internal(format!("no JSON for the result: {error}"));
    let json = serde_json::to_string_pretty(&summary).map_err(failed)?;
    store.write("sweep.json", format!("{json}\n").as_bytes())?;
    store.write(PAGE, page::of(&summary).map_err(failed)?.as_bytes())?;
    let drawings = summary.drawings(plan, rows);
    drawings.iter().try_for_each(|(name, svg)| store.write(name, svg.as_bytes()))?;
    store.forget_results(&drawings.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>())?;
    let (all, computed) = (rows.len() as u64, computed as u64);
    Ok(SweepResult {
        summary,
        folder: store.folder().display().to_string(),
        blocks: Blocks { all, computed, kept: all.saturating_sub(computed), damaged: damaged as u64 },
        drawings: drawings.into_iter().map(|(name, _)| name).collect(),
        page: PAGE,
    })
}
