//! Computing what is missing on the cores of this machine.
//!
//! A worker that finds no further block to begin helps with those that others have begun: every block is taken in parts ([`Work`]). So
//! one long block keeps all cores busy to its end, wherever it is in the list.

use crate::SweepError;
use crate::block::Row;
use crate::plan::{BlockId, Plan};
use crate::rows;
use crate::store::Store;
use crate::work::{Work, lock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a worker without work looks for a block that another one is about to begin.
const PAUSE: Duration = Duration::from_micros(200);

/// What was computed.
#[derive(Debug, Default)]
pub struct Ran {
    /// The rows of each block.
    pub rows: HashMap<BlockId, Vec<Row>>,
    /// Why it ended before the last block; the blocks above are committed nevertheless.
    pub error: Option<SweepError>,
}

/// What the workers share.
struct Shop<'a> {
    plan: &'a Plan,
    store: &'a Store,
    missing: &'a [BlockId],
    stop: &'a AtomicBool,
    done: &'a (dyn Fn(usize) + Sync),
    next: AtomicUsize,
    /// Workers that may be about to begin a block.
    beginning: AtomicUsize,
    broken: AtomicBool,
    ran: Mutex<Ran>,
    /// Blocks that were begun and are not done.
    begun: Mutex<Vec<Arc<Work>>>,
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
    let workers = if workers == 0 { cores } else { workers };
    let shop = Shop {
        plan,
        store,
        missing,
        stop,
        done,
        next: AtomicUsize::new(0),
        beginning: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
        ran: Mutex::new(Ran::default()),
        begun: Mutex::new(Vec::new()),
    };
    if workers <= 1 || missing.is_empty() {
        shop.work();
    } else {
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(|| shop.work()))));
    }
    shop.ran.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Shop<'_> {
    fn work(&self) {
        while !self.stop.load(Ordering::Relaxed) && !self.broken.load(Ordering::Relaxed) {
            self.beginning.fetch_add(1, Ordering::SeqCst);
            let id = self.missing.get(self.next.fetch_add(1, Ordering::SeqCst));
            let work = id.map(|&id| (id, self.begin(id)));
            self.beginning.fetch_sub(1, Ordering::SeqCst);
            let Some((id, work)) = work else { break };
            self.end(id, work);
        }
        self.help();
    }

    /// Prepares a block, and shows it to the others.
    fn begin(&self, id: BlockId) -> Result<Arc<Work>, SweepError> {
        let work = Arc::new(Work::new(self.plan, id)?);
        lock(&self.begun).push(Arc::clone(&work));
        Ok(work)
    }

    /// A block from its first part to its file.
    fn end(&self, id: BlockId, work: Result<Arc<Work>, SweepError>) {
        let found = work.and_then(|work| {
            let found = work.finish(self.plan);
            lock(&self.begun).retain(|one| !Arc::ptr_eq(one, &work));
            let file = rows::encode(self.plan, id, &found?)?;
            self.store.commit(self.plan, id, &file)
        });
        let mut ran = lock(&self.ran);
        match found {
            Ok(rows) => {
                ran.rows.insert(id, rows);
                (self.done)(ran.rows.len());
            }
            Err(error) => {
                self.broken.store(true, Ordering::Relaxed);
                ran.error.get_or_insert(error);
            }
        }
    }

    /// Parts of blocks that others have begun or are about to begin, until none of them has one left to take.
    fn help(&self) {
        loop {
            let is_last = self.beginning.load(Ordering::SeqCst) == 0;
            let begun = lock(&self.begun).clone();
            match begun.iter().find(|work| work.has_parts()) {
                Some(work) => work.help(self.plan),
                None if is_last => return,
                None => std::thread::sleep(PAUSE),
            }
        }
    }
}
