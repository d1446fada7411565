//! Computing what is missing on the cores of this machine.

use crate::SweepError;
use crate::block::{Row, block_file};
use crate::plan::{BlockId, Plan};
use crate::store::Store;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What was computed.
#[derive(Debug, Default)]
pub struct Ran {
    /// The rows of each block.
    pub rows: HashMap<BlockId, Vec<Row>>,
    /// Why it ended before the last block; the blocks above are committed nevertheless.
    pub error: Option<SweepError>,
}

/// Computes these blocks on so many workers (0: one a core) and commits each as it is done, until `stop` is set or a file cannot be
/// written. `done` hears how many are done.
pub fn run(
    plan: &Plan,
    store: &Store,
    missing: &[BlockId],
    workers: usize,
    stop: &AtomicBool,
    done: &(dyn Fn(usize) + Sync),
) -> Ran {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = if workers == 0 { cores } else { workers }.min(missing.len());
    let (next, ran, broken) = (AtomicUsize::new(0), Mutex::new(Ran::default()), AtomicBool::new(false));
    let work = || {
        while !stop.load(Ordering::Relaxed) && !broken.load(Ordering::Relaxed) {
            let Some(&id) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let found = block_file(plan, id).and_then(|file| store.commit(plan, id, &file));
            let mut ran = ran.lock().unwrap_or_else(PoisonError::into_inner);
            match found {
                Ok(rows) => {
                    ran.rows.insert(id, rows);
                    done(ran.rows.len());
                }
                Err(error) => {
                    broken.store(true, Ordering::Relaxed);
                    ran.error.get_or_insert(error);
                }
            }
        }
    };
    if workers <= 1 {
        work();
    } else {
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    }
    ran.into_inner().unwrap_or_else(PoisonError::into_inner)
}
