//! Which mode the run is in: one sequence of changes for all processors.
//!
//! Whoever passes an instant of a request, or finds that nothing more is left to wait for, writes the changes that come of it; each
//! processor then changes its own machine, where it stands in its own time. An instant that is known before (a request of the file, the
//! start of a period) is found by every processor itself. Of what nobody could know before, as a request by a job, the others are
//! told by a kick, and what that takes stands in their records.

use horolog_model::{ModelError, System, TaskId};
use horolog_sched::{ModeRequest, ModeSequence};
use horolog_sys::futex;
use horolog_time::Span;
use horolog_trace::ModeOutcome;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many changes fit before the list has to grow, at the price of an allocation.
const CHANGES: usize = 1024;

/// The modes of one run.
pub(crate) struct Modes {
    names: Vec<String>,
    state: Mutex<State>,
    /// When something must be done about requests at the latest.
    next_at: AtomicU64,
    /// Whether a request waits until jobs are done.
    waits: AtomicBool,
    /// How many changes there are.
    count: AtomicUsize,
    /// How many jobs each task has that were released and have not completed.
    left: Box<[AtomicU32]>,
    /// The agents, by their processors.
    kicks: OnceLock<Vec<(u32, Arc<AtomicU32>)>>,
}

/// Held for as long as it takes to note a request or a change.
struct State {
    sequence: ModeSequence,
    changes: Vec<Change>,
}

/// A change, and what the processors said of it.
struct Change {
    at: u64,
    request: ModeRequest,
    /// How many processors have made it, and on how many no job of the mode before is left.
    made: u32,
    ended: u32,
    left_over: u64,
    /// When the last of these said so.
    last_end: u64,
}

impl Modes {
    /// Of a system; `None` where it has none.
    pub(crate) fn of(system: &System) -> Result<Option<Modes>, ModelError> {
        if system.modes().is_empty() {
            return Ok(None);
        }
        let sequence = ModeSequence::new(system)?;
        Ok(Some(Modes {
            names: (0..system.mode_count()).map(|mode| system.mode_name(mode).to_owned()).collect(),
            next_at: AtomicU64::new(sequence.next_at()),
            waits: AtomicBool::new(false),
            count: AtomicUsize::new(0),
            left: system.tasks().iter().map(|_| AtomicU32::new(0)).collect(),
            kicks: OnceLock::new(),
            state: Mutex::new(State { sequence, changes: Vec::with_capacity(CHANGES) }),
        }))
    }

    /// The agents that are kicked when the mode changes. Told once.
    pub(crate) fn kick_these(&self, kicks: Vec<(u32, Arc<AtomicU32>)>) {
        let _ = self.kicks.set(kicks);
    }

    /// The number of a mode; 0 is the base mode.
    pub(crate) fn number_of(&self, name: &str) -> Option<u32> {
        self.names.iter().position(|known| known == name).map(|place| place as u32)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When every processor must look again.
    pub(crate) fn next_at(&self) -> u64 {
        self.next_at.load(Ordering::Acquire)
    }

    /// So many jobs of a task are left.
    pub(crate) fn note_left(&self, task: TaskId, jobs: u32) {
        self.left[task.index()].store(jobs, Ordering::Release);
    }

    /// Asks for a mode, `now` ns after the start.
    pub(crate) fn request(&self, now: u64, mode: u32) {
        let mut state = self.state();
        state.sequence.request(now, mode);
        self.next_at.store(state.sequence.next_at(), Ordering::Release);
    }

    /// A job has used up its budget: asks for a mode, as [`ModeSequence::request_by_overrun`] does.
    pub(crate) fn request_by_overrun(&self, now: u64, mode: u32) {
        let mut state = self.state();
        state.sequence.request_by_overrun(now, mode);
        self.next_at.store(state.sequence.next_at(), Ordering::Release);
    }

    /// Writes the changes that come of what was asked for until `now`; the agents of other processors than `cpu` are kicked then.
    pub(crate) fn advance(&self, now: u64, cpu: u32) {
        if self.next_at() > now && !self.waits.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.state();
        let before = state.changes.len();
        let is_done = |task: TaskId| self.left[task.index()].load(Ordering::Acquire) == 0;
        while let Some((at, request)) = state.sequence.take(now, is_done) {
            state.changes.push(Change { at, request, made: 0, ended: 0, left_over: 0, last_end: 0 });
        }
        let count = state.changes.len();
        self.count.store(count, Ordering::Release);
        self.next_at.store(state.sequence.next_at(), Ordering::Release);
        self.waits.store(state.sequence.waits_for_jobs(), Ordering::Release);
        drop(state);
        if count > before {
            let others = self.kicks.get().into_iter().flatten().filter(|(other, _)| *other != cpu);
            others.for_each(|(_, word)| kick(word));
        }
    }

    /// The change behind the first `known`: when, and to which mode.
    pub(crate) fn change(&self, known: usize) -> Option<(u64, u32)> {
        if known >= self.count.load(Ordering::Acquire) {
            return None;
        }
        self.state().changes.get(known).map(|change| (change.at, change.request.mode))
    }

    /// A processor has made its change number `count`, counted from 1, and so many of its jobs are left over.
    pub(crate) fn note_change(&self, count: usize, left_over: u32) {
        let mut state = self.state();
        if let Some(change) = count.checked_sub(1).and_then(|place| state.changes.get_mut(place)) {
            change.made += 1;
            change.left_over += u64::from(left_over);
        }
    }

    /// On a processor no job is left over any more from before its change number `count`.
    pub(crate) fn note_end(&self, count: usize, now: u64) {
        let mut state = self.state();
        if let Some(change) = count.checked_sub(1).and_then(|place| state.changes.get_mut(place)) {
            change.ended += 1;
            change.last_end = change.last_end.max(now);
        }
    }

    /// The first changes.
    pub(crate) fn outcomes(&self) -> Vec<ModeOutcome> {
        let state = self.state();
        let outcome = |change: &Change| ModeOutcome {
            mode: self.names[change.request.mode as usize].clone(),
            requested_ns: Span::from_ns(change.request.at),
            by: ModeOutcome::BY[change.request.by as usize],
            changed_ns: Span::from_ns(change.at),
            left_over: change.left_over,
            ended_ns: (change.ended == change.made).then_some(Span::from_ns(change.last_end)),
        };
        state.changes.iter().filter(|change| change.made > 0).take(ModeOutcome::MOST).map(outcome).collect()
    }

    /// What the reader should know.
    pub(crate) fn notes(&self) -> Vec<String> {
        let refused = self.state().sequence.refused();
        let note = || format!("requests for a mode that were refused since another one waited: {refused}");
        (refused > 0).then(note).into_iter().collect()
    }
}

/// Makes the agent that sleeps on this word look again.
pub(crate) fn kick(word: &AtomicU32) {
    word.fetch_add(1, Ordering::AcqRel);
    let _ = futex::wake(word, 1);
}
