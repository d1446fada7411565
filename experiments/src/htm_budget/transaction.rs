//! The mode machine of one processor: TBEGIN, TEND, TABORT, and the two instructions that preempt and resume a transaction.
//!
//! ```text
//! TBEGIN    normal: depth 1, transactional     transactional: depth + 1
//! TEND      depth > 1: depth - 1               depth 1: commits, normal
//! TABORT    transactional: aborts the whole nest, normal
//! TPREEMPT  transactional: preempted           TRESUME  preempted: transactional
//! ```
//!
//! Every other transaction instruction while one is preempted aborts it, and so does TRESUME while one is under way. A preempted
//! transaction that was aborted is found by TRESUME: an *eager* one fails, and a *lazy* one succeeds, whereupon the outermost TEND fails. Outside
//! of a transaction TEND, TABORT, TPREEMPT and TRESUME do nothing and say so. Each instruction is a full barrier: here every access is over
//! before the next instruction.

/// When a processor is told that its preempted transaction was aborted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reporting {
    /// By TRESUME.
    Eager,
    /// By the outermost TEND.
    Lazy,
}

/// What a processor is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Normal,
    Transaction,
    Preempted,
}

/// A transaction instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Instruction {
    Begin,
    End,
    Abort,
    Preempt,
    Resume,
}

/// What the cache has to do for an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Signal {
    None,
    Commit,
    Abort,
}

/// What an instruction came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Done,
    /// The processor goes on at this place, that of the outermost TBEGIN.
    Aborted {
        place: u64,
    },
    /// There is nothing that it could act on.
    NoTransaction,
}

/// The modes of one processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Transaction {
    pub(super) mode: Mode,
    /// How deeply TBEGINs nest.
    pub(super) depth: u32,
    /// It was aborted and has not been told yet.
    pub(super) is_doomed: bool,
    /// The place of the outermost TBEGIN.
    begun_at: u64,
    reporting: Reporting,
}

impl Transaction {
    pub(super) fn new(reporting: Reporting) -> Transaction {
        Transaction { mode: Mode::Normal, depth: 0, is_doomed: false, begun_at: 0, reporting }
    }

    /// One instruction at a place of the program.
    pub(super) fn step(&mut self, instruction: Instruction, place: u64) -> (Outcome, Signal) {
        match (self.mode, instruction) {
            (Mode::Normal, Instruction::Begin) => {
                *self = Transaction {
                    mode: Mode::Transaction,
                    depth: 1,
                    is_doomed: false,
                    begun_at: place,
                    ..*self
                };
                (Outcome::Done, Signal::None)
            }
            (Mode::Normal, _) => (Outcome::NoTransaction, Signal::None),
            (Mode::Transaction, Instruction::Begin) => {
                self.depth += 1;
                (Outcome::Done, Signal::None)
            }
            (Mode::Transaction, Instruction::End) if self.depth > 1 => {
                self.depth -= 1;
                (Outcome::Done, Signal::None)
            }
            (Mode::Transaction, Instruction::End) if !self.is_doomed => {
                self.leave();
                (Outcome::Done, Signal::Commit)
            }
            (Mode::Transaction, Instruction::End | Instruction::Abort | Instruction::Resume) => {
                (self.leave(), Signal::Abort)
            }
            (Mode::Transaction, Instruction::Preempt) => {
                self.mode = Mode::Preempted;
                (Outcome::Done, Signal::None)
            }
            (Mode::Preempted, Instruction::Resume) => match self.reporting {
                Reporting::Eager if self.is_doomed => (self.leave(), Signal::None),
                _ => {
                    self.mode = Mode::Transaction;
                    (Outcome::Done, Signal::None)
                }
            },
            (Mode::Preempted, _) => {
                self.is_doomed = true;
                (Outcome::Aborted { place: self.begun_at }, Signal::Abort)
            }
        }
    }

    /// The cache has given the transaction up. Where it is under way the processor goes on at the outermost TBEGIN.
    pub(super) fn given_up(&mut self) {
        match self.mode {
            Mode::Normal => {}
            Mode::Transaction => {
                self.leave();
            }
            Mode::Preempted => self.is_doomed = true,
        }
    }

    fn leave(&mut self) -> Outcome {
        (self.mode, self.depth, self.is_doomed) = (Mode::Normal, 0, false);
        Outcome::Aborted { place: self.begun_at }
    }
}
