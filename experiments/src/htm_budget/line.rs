//! The states of a cache line: MOESI, and beside it the bit that says that the line belongs to a transaction.
//!
//! A transaction's own line is discarded by an abort where it is modified, so memory has to hold what was there before: a dirty line is
//! written back before a transaction writes it, and a modified one also before it reads it.

/// A state of MOESI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    #[default]
    Invalid,
    Exclusive,
    Shared,
    Owned,
    Modified,
}

impl State {
    /// Whether memory may have an older value.
    pub(super) fn is_dirty(self) -> bool {
        matches!(self, State::Owned | State::Modified)
    }
}

/// What the own processor does with a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Access {
    pub(super) is_write: bool,
    pub(super) is_transactional: bool,
}

/// What an access to a line that is there asks for before it is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) next: State,
    /// Memory gets the value first.
    pub(super) writes_back: bool,
    /// All others give up their copies first.
    pub(super) upgrades: bool,
}

/// A hit of the own processor. `in_set`: the line has its transaction's bit.
pub(super) fn hit(state: State, in_set: bool, access: Access) -> Step {
    let own = access.is_transactional;
    // A modified line with the bit is what the transaction itself has written.
    let is_old = !(in_set && state == State::Modified);
    let (next, writes_back) = match (access.is_write, state) {
        (false, State::Modified) if own && is_old => (State::Exclusive, true),
        (false, state) => (state, false),
        (true, state) => (State::Modified, own && is_old && state.is_dirty()),
    };
    let upgrades = access.is_write && matches!(state, State::Shared | State::Owned);
    Step { next, writes_back, upgrades }
}

/// What another processor's request asks of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Snoop {
    /// It wants to read.
    Read,
    /// It wants the only copy, in order to write.
    Own,
}

/// Whether such a request is a conflict with the transaction that a line belongs to.
pub(super) fn conflicts(state: State, in_set: bool, snoop: Snoop) -> bool {
    in_set && (snoop == Snoop::Own || state == State::Modified)
}

/// The state after another processor's request, once there is no conflict.
pub(super) fn snooped(state: State, snoop: Snoop) -> State {
    match (snoop, state) {
        (Snoop::Own, _) => State::Invalid,
        (Snoop::Read, State::Exclusive) => State::Shared,
        (Snoop::Read, State::Modified) => State::Owned,
        (Snoop::Read, state) => state,
    }
}

/// Whether a local access is a conflict with the transaction that is preempted.
pub(super) fn conflicts_locally(state: State, in_set: bool, is_write: bool) -> bool {
    conflicts(state, in_set, if is_write { Snoop::Own } else { Snoop::Read })
}
