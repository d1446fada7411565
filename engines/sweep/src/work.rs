//! A block under way, in parts that several workers take.

use crate::SweepError;
use crate::block::Found;
use crate::chunk::{Chunk, Fold, Hand};
use crate::plan::{BlockId, Plan};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Sets of the first part, and of the largest one.
const FIRST: u64 = 8;
const MOST: u64 = 256;
/// A part that took less makes the next ones larger, one that took more makes them smaller: long enough that taking it costs nothing, and
/// short enough that no worker waits long for the last one.
const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_millis(10);
/// Parts that wait for one before them: what is kept in memory.
const MOST_WAITING: usize = 64;

/// A block that was begun.
pub(crate) struct Work {
    sets: u64,
    hand: Hand,
    state: Mutex<State>,
    /// A part was taken together, so that there may be more to take, or nothing left to wait for.
    moved: Condvar,
}

struct State {
    /// The first set that no worker has taken.
    next: u64,
    /// The first set that is not taken together yet.
    folded: u64,
    /// How many sets the next part has.
    size: u64,
    waiting: BTreeMap<u64, (u64, Chunk)>,
    fold: Option<Fold>,
    error: Option<SweepError>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Work {
    pub(crate) fn new(plan: &Plan, id: BlockId) -> Result<Work, SweepError> {
        let state = State {
            next: 0,
            folded: 0,
            size: FIRST,
            waiting: BTreeMap::new(),
            fold: Some(Fold::new(plan)),
            error: None,
        };
        let (hand, state) = (Hand::new(plan, id)?, Mutex::new(state));
        Ok(Work { sets: plan.sets_of(id), hand, state, moved: Condvar::new() })
    }

    /// Whether a part may be left to take, now or once another one is done.
    pub(crate) fn has_parts(&self) -> bool {
        let state = lock(&self.state);
        state.next < self.sets && state.error.is_none()
    }

    /// Takes parts as long as there are some.
    pub(crate) fn help(&self, plan: &Plan) {
        let mut hand = self.hand.clone();
        while let Some((first, count)) = self.take() {
            let begun = Instant::now();
            let chunk = hand.chunk(plan, first, count);
            self.put(first, count, chunk, begun.elapsed());
        }
    }

    /// Takes parts, waits for those of others, and takes all together.
    pub(crate) fn finish(&self, plan: &Plan) -> Result<Found, SweepError> {
        self.help(plan);
        let mut state = lock(&self.state);
        while state.folded < self.sets && state.error.is_none() {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match (state.error.take(), state.fold.take()) {
            (Some(error), _) => {
                // No worker takes more of it, or waits for what is missing.
                state.next = self.sets;
                self.moved.notify_all();
                Err(error)
            }
            (None, Some(fold)) => Ok(fold.found(plan)),
            (None, None) => Err(SweepError::Internal("a block was taken together twice".to_owned())),
        }
    }

    /// The first set and the number of sets of a part; waits while too many parts wait. `None`: all are taken.
    fn take(&self) -> Option<(u64, u64)> {
        let mut state = lock(&self.state);
        while state.next < self.sets && state.waiting.len() >= MOST_WAITING && state.error.is_none() {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.error.is_some() || state.next >= self.sets {
            return None;
        }
        let (first, count) = (state.next, state.size.min(self.sets - state.next));
        state.next += count;
        Some((first, count))
    }

    fn put(&self, first: u64, count: u64, chunk: Result<Chunk, SweepError>, taken: Duration) {
        let mut state = lock(&self.state);
        if taken < SHORT {
            state.size = (state.size * 2).min(MOST);
        } else if taken > LONG {
            state.size = (state.size / 2).max(1);
        }
        match chunk {
            Ok(chunk) => {
                state.waiting.insert(first, (count, chunk));
                let State { folded, waiting, fold, .. } = &mut *state;
                while let Some((count, chunk)) = waiting.remove(folded) {
                    *folded += count;
                    if let Some(fold) = fold {
                        fold.take(&chunk);
                    }
                }
            }
            Err(error) => state.error = Some(state.error.take().unwrap_or(error)),
        }
        self.moved.notify_all();
    }
}
