//! Protocols for the locks of an unmodified program: the file with the rules, the start of the program, and what came of it.

mod file;
mod launch;
mod report;

pub use file::{LockRule, LockRules, read, read_bytes};
pub use launch::{Finished, run};
pub use report::{CallRow, ProtocolReport, RuleRow, UnmetRow};
