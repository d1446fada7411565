//! The processor demand criterion by quick convergence (QPA), for preemptive, non-preemptive and mixed sets.
//!
//! All deadlines hold exactly if, for every window length t from the shortest D − J on, `f(t) ≤ t` with f(t) the
//! least x that satisfies `x = h(t) + B(t) + I(x)`, where
//! - `h(t) = Σ max(0, ⌊(t + T + J − D)/T⌋) · C`, the work with release and deadline inside the window,
//! - `B(t) = max { C : non-preemptive, D − J > t }`, the one job with a later deadline that may have started just
//!   before the window. In continuous time C is a supremum (any C − ε is reached); where releases come at whole
//!   units only it is C less one unit. A non-preemptive job with D − J ≤ t needs no B: it is in h(t) already;
//! - `I(x)`, the share of a window of x that the loads above all tasks take. Without them f(t) = h(t) + B(t).
//!
//! QPA walks t downwards from the horizon: as f never falls while B stays, `f(t) ≤ t` proves every window in
//! \[f(t), t\], so the next window to look at is f(t) itself, or the last step of h below t where f(t) = t. B falls
//! with t, so the walk is done piece by piece, between the lengths at which B changes. Sections that hold resources (`sections`)
//! are terms of B as well; one on a local resource blocks from some length on, so that B may also rise.
//!
//! Exact for periodic and sporadic tasks with arbitrary phases, deadlines and jitter; sufficient with linear loads.
//!
//! Sources: `baruah90` (criterion), `zhangburns09` (QPA), `jeffay91` and `george96` (non-preemptive), with release
//! jitter as in `spuri96`.

use super::demand::WINDOW_LIMIT;
use super::horizon::{self, Reach};
use super::{Budget, DemandFunction, EdfSet, Horizon, NpTime, Unresolved};

/// What the demand criterion says of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum EdfVerdict {
    /// Every deadline holds.
    Schedulable,
    /// A window asks for more than its length.
    Fails(Failure),
    /// Utilisation above 1: the backlog grows without bound.
    Overload,
    /// No answer, and why.
    Unknown(Unresolved),
}

impl EdfVerdict {
    /// Whether every deadline was proven to hold.
    #[must_use]
    pub fn is_schedulable(&self) -> bool {
        matches!(self, Self::Schedulable)
    }
}

/// A window that asks for more than its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The window's length t.
    pub window: u64,
    /// f(t), or what it was known to exceed when it passed t; above t.
    pub demand: u64,
    /// B(t), the part that a non-preemptive job with a later deadline takes.
    pub blocking: u64,
    /// The task that blocks, an index into the set.
    pub blocker: Option<usize>,
}

/// One piece of the walk: windows from `from` on have this blocking.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: u64,
    blocking: u64,
    blocker: Option<usize>,
}

/// The test with its scratch memory: nothing is allocated once it has seen a set as large.
///
/// ```
/// use horolog_analysis::edf::{EdfSet, EdfSolver, EdfTask};
/// let set = EdfSet::new(vec![EdfTask::new(2, 5, 4), EdfTask::new(3, 7, 7)], vec![]).unwrap();
/// assert!(EdfSolver::new().check(&set).is_schedulable());
/// ```
#[derive(Clone, Debug, Default)]
pub struct EdfSolver {
    demand: DemandFunction,
    pieces: Vec<Piece>,
    chain: Vec<(u64, u64)>,
    horizon: Option<Horizon>,
}

impl EdfSolver {
    /// An empty solver.
    #[must_use]
    pub fn new() -> EdfSolver {
        EdfSolver::default()
    }

    /// The demand criterion in continuous time, within the default budget.
    pub fn check(&mut self, set: &EdfSet) -> EdfVerdict {
        self.check_within(set, NpTime::Continuous, &mut Budget::default())
    }

    /// The demand criterion.
    #[inline]
    pub fn check_within(&mut self, set: &EdfSet, time: NpTime, budget: &mut Budget) -> EdfVerdict {
        self.run::<false>(set, time, budget)
    }

    /// The demand criterion, keeping the windows that it looked at in [`EdfSolver::chain`].
    pub fn check_with_evidence(&mut self, set: &EdfSet, time: NpTime, budget: &mut Budget) -> EdfVerdict {
        self.run::<true>(set, time, budget)
    }

    /// The windows that the last check with evidence looked at, longest first, each with what it needs, f(t).
    #[must_use]
    pub fn chain(&self) -> &[(u64, u64)] {
        &self.chain
    }

    /// The horizon of the last check that had one.
    #[must_use]
    pub fn horizon(&self) -> Option<Horizon> {
        self.horizon
    }

    fn run<const KEEP: bool>(&mut self, set: &EdfSet, time: NpTime, budget: &mut Budget) -> EdfVerdict {
        self.demand.load(set);
        self.chain.clear();
        self.horizon = None;
        if self.demand.terms.is_empty() && self.demand.listed.is_empty() {
            return EdfVerdict::Schedulable;
        }
        if self.demand.late_release {
            // Some D < J: that job alone misses in a window of no length.
            let demand = self.demand.work_at(0);
            return EdfVerdict::Fails(Failure { window: 0, demand, blocking: 0, blocker: None });
        }
        let reach = match horizon::horizon(&self.demand, budget) {
            Ok(Reach::Finite(reach)) => reach,
            Ok(Reach::Overload) => return EdfVerdict::Overload,
            Err(reason) => return EdfVerdict::Unknown(reason),
        };
        self.horizon = Some(reach);
        let outcome = if set.is_plain() {
            let blocking = self.demand.eternal_blocking;
            let piece = Piece { from: self.demand.shortest, blocking, blocker: None };
            walk::<KEEP>(&self.demand, piece, reach.last, &mut self.chain, budget)
        } else {
            self.walk_pieces::<KEEP>(set, time, reach.last, budget)
        };
        match outcome {
            Ok(None) => EdfVerdict::Schedulable,
            Ok(Some(failure)) => EdfVerdict::Fails(failure),
            Err(reason) => EdfVerdict::Unknown(reason),
        }
    }

    fn walk_pieces<const KEEP: bool>(
        &mut self,
        set: &EdfSet,
        time: NpTime,
        horizon: u64,
        budget: &mut Budget,
    ) -> Result<Option<Failure>, Unresolved> {
        if set.sections().is_empty() {
            fill_pieces(&mut self.pieces, set, time, self.demand.shortest);
        } else {
            fill_with_sections(&mut self.pieces, set, time, self.demand.shortest);
        }
        let mut last = horizon;
        for (index, &piece) in self.pieces.iter().enumerate() {
            // A piece with blocking ends where the one above begins, even beyond the horizon: that covers only
            // the windows of the piece without.
            if index > 0 {
                last = self.pieces[index - 1].from.wrapping_sub(1);
            }
            if last == u64::MAX || last < piece.from {
                continue;
            }
            if last >= WINDOW_LIMIT || self.demand.bound_at(last) >= 1 << 62 {
                return Err(Unresolved::TooLarge);
            }
            if let Some(failure) = walk::<KEEP>(&self.demand, piece, last, &mut self.chain, budget)? {
                return Ok(Some(failure));
            }
        }
        Ok(None)
    }
}

/// The pieces of a set with sections, longest windows first.
fn fill_with_sections(pieces: &mut Vec<Piece>, set: &EdfSet, time: NpTime, shortest: u64) {
    pieces.clear();
    for piece in super::pieces::of(set, time) {
        if piece.from <= shortest {
            pieces.clear();
        }
        let super::pieces::Piece { from, time, by } = piece;
        pieces.push(Piece { from: from.max(shortest), blocking: time, blocker: by });
    }
    pieces.reverse();
}

/// The pieces of the walk, longest windows first.
fn fill_pieces(pieces: &mut Vec<Piece>, set: &EdfSet, time: NpTime, shortest: u64) {
    pieces.clear();
    let mut always = Piece { from: 0, blocking: 0, blocker: None };
    for (index, task) in set.tasks().iter().enumerate().filter(|(_, task)| task.non_preemptive > 0) {
        let (blocking, blocker) = (time.blocking_of(task.non_preemptive), Some(index));
        match task.shortest_window() {
            Some(window) => pieces.push(Piece { from: window.max(0) as u64, blocking, blocker }),
            None if blocking > always.blocking => always = Piece { from: 0, blocking, blocker },
            None => {}
        }
    }
    pieces.sort_unstable_by_key(|piece| std::cmp::Reverse(piece.from));
    // So far `from` is where a task's blocking ends. Shift by one: each length opens the piece above it.
    let mut current = always;
    for piece in pieces.iter_mut() {
        let own = *piece;
        *piece = Piece { from: own.from.max(shortest), ..current };
        if own.blocking > current.blocking {
            current = own;
        }
    }
    pieces.push(Piece { from: shortest, ..current });
    for piece in pieces.iter_mut() {
        piece.blocking += set.extra_blocking();
    }
    // Neighbours with the same blocking are one piece.
    pieces.dedup_by(|lower, upper| {
        let same = lower.blocking == upper.blocking;
        if same {
            upper.from = lower.from;
        }
        same
    });
}

/// Walks one piece from `last` down; `None` where every window of it holds.
#[inline]
fn walk<const KEEP: bool>(
    demand: &DemandFunction,
    piece: Piece,
    last: u64,
    chain: &mut Vec<(u64, u64)>,
    budget: &mut Budget,
) -> Result<Option<Failure>, Unresolved> {
    let weight = demand.weight();
    let mut window = last.max(piece.from);
    loop {
        budget.spend(weight)?;
        let needed = demand.needed(window, piece.blocking, budget)?;
        if KEEP {
            chain.push((window, needed));
        }
        if needed > window {
            let Piece { blocking, blocker, .. } = piece;
            let blocker = blocker.filter(|_| blocking > 0);
            return Ok(Some(Failure { window, demand: needed, blocking, blocker }));
        }
        if needed <= piece.from || window == piece.from {
            return Ok(None);
        }
        window = if needed < window {
            needed
        } else {
            // Nothing steps between the last step and here, so that step is the next place that can fail.
            demand.step_before(window).map_or(piece.from, |step| step.max(piece.from))
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edf::EdfTask;

    fn check(tasks: Vec<EdfTask>) -> EdfVerdict {
        EdfSolver::new().check(&EdfSet::new(tasks, vec![]).unwrap())
    }

    #[test]
    fn full_utilisation_is_decided() {
        assert!(check(vec![EdfTask::new(1, 2, 2), EdfTask::new(1, 2, 2)]).is_schedulable());
        assert!(
            check(vec![EdfTask::new(1, 3, 3), EdfTask::new(1, 3, 3), EdfTask::new(1, 3, 3)]).is_schedulable()
        );
        let tight = check(vec![EdfTask::new(1, 2, 1), EdfTask::new(1, 2, 2)]);
        assert!(tight.is_schedulable(), "{tight:?}");
        let late = check(vec![EdfTask::new(1, 2, 1), EdfTask::new(1, 2, 1)]);
        assert_eq!(late, EdfVerdict::Fails(Failure { window: 1, demand: 2, blocking: 0, blocker: None }));
        // With jitter the busy period never ends; the hyperperiod decides.
        let jittery = vec![EdfTask::new(1, 2, 3).with_jitter(1), EdfTask::new(1, 2, 3).with_jitter(1)];
        assert!(check(jittery).is_schedulable());
        let jittery = vec![EdfTask::new(1, 2, 2).with_jitter(1), EdfTask::new(1, 2, 3)];
        assert!(check(jittery).is_schedulable());
        let jittery = vec![EdfTask::new(1, 2, 2).with_jitter(1), EdfTask::new(1, 2, 2).with_jitter(1)];
        assert!(!check(jittery).is_schedulable());
    }

    #[test]
    fn overload_and_late_release_are_told_apart() {
        assert_eq!(check(vec![EdfTask::new(2, 3, 300), EdfTask::new(2, 5, 500)]), EdfVerdict::Overload);
        let late = check(vec![EdfTask::new(1, 10, 3).with_jitter(4)]);
        assert!(matches!(late, EdfVerdict::Fails(Failure { window: 0, .. })), "{late:?}");
    }

    #[test]
    fn hostile_numbers_end() {
        // Coprime periods near 2^59 at utilisation 1: no horizon in 64 bits.
        let (a, b) = ((1_u64 << 59) - 55, (1_u64 << 59) - 1);
        let verdict =
            check(vec![EdfTask::new(a - 1, a, a), EdfTask::new(1, b, b), EdfTask::new(1, 3 * (a / 3), 9)]);
        assert!(!matches!(verdict, EdfVerdict::Schedulable), "{verdict:?}");
        let nearly =
            check(vec![EdfTask::new(b - 2, b, b - 1), EdfTask::new(1, b - 1, b - 2).with_jitter(b - 9)]);
        // Both jobs fit into the window of b − 1, and whatever follows has more room.
        assert!(nearly.is_schedulable(), "{nearly:?}");
    }

    #[test]
    fn non_preemptive_blocking_counts_by_the_tick() {
        // The long job blocks the short one for 3 in continuous time, 2 in whole units.
        let set = vec![EdfTask::new(1, 10, 3), EdfTask::new(3, 10, 10).non_preemptive()];
        let set = EdfSet::new(set, vec![]).unwrap();
        let mut solver = EdfSolver::new();
        let mut by = |time| solver.check_within(&set, time, &mut Budget::default());
        let failure = Failure { window: 3, demand: 4, blocking: 3, blocker: Some(1) };
        assert_eq!(by(NpTime::Continuous), EdfVerdict::Fails(failure));
        assert!(by(NpTime::Units(1)).is_schedulable());
    }
}
