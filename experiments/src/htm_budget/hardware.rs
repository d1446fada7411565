//! Facts 1 to 6: the periods, and the hardware on single cases.

use super::cache::{LINE, SETS, WAYS};
use super::line::State;
use super::machine::{Cause, Machine};
use super::same;
use super::sets::{FACTORS, HYPERPERIOD, gcd};
use super::transaction::{Instruction, Mode, Outcome, Reporting};
use crate::Fact;
use std::collections::BTreeSet;

/// Two processors and 64 KB.
const MEMORY: usize = 1 << 16;
/// So far apart lie lines of one set.
const STRIDE: u64 = (SETS * LINE) as u64;
/// The address of the cases.
const HERE: u64 = 3 * LINE as u64 + 5;
/// What memory holds there, and what is written before and by the transaction.
const OLD: u8 = 7;
const BEFORE: u8 = 8;
const WITHIN: u8 = 9;

fn machine(reporting: Reporting) -> Machine {
    Machine::new(2, vec![OLD; MEMORY], reporting)
}
/// The line table: a state, and what becomes of it by each of [`COLUMNS`].
const TABLE: [(&str, [&str; 6]); 9] = [
    ("I", ["TE", "TM", "I", "I", "E", "M"]),
    ("E", ["TE", "TM", "I", "S", "E", "M"]),
    ("S", ["TS", "TM", "I", "S", "S", "M"]),
    ("O", ["TO", "TM, written back", "I", "O", "O", "M"]),
    ("M", ["TE, written back", "TM, written back", "I", "O", "M", "M"]),
    ("TE", ["TE", "TM", "I, aborted", "TS", "TE", "M, aborted"]),
    ("TS", ["TS", "TM", "I, aborted", "TS", "TS", "M, aborted"]),
    ("TO", ["TO", "TM, written back", "I, aborted", "TO", "TO", "M, aborted"]),
    ("TM", ["TM", "TM", "I, aborted", "I, aborted", "E, aborted", "M, aborted"]),
];

/// What is done to a line, in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Read,
    Write,
    ExternalWrite,
    ExternalRead,
    PreemptedRead,
    PreemptedWrite,
}

const COLUMNS: [Column; 6] = [
    Column::Read,
    Column::Write,
    Column::ExternalWrite,
    Column::ExternalRead,
    Column::PreemptedRead,
    Column::PreemptedWrite,
];

/// Brings the line of processor 0 into a state, by accesses alone.
fn prepared(state: &str) -> Machine {
    let mut machine = machine(Reporting::Eager);
    match state.trim_start_matches('T') {
        "E" => drop(machine.read(0, HERE)),
        "S" => {
            machine.read(1, HERE);
            machine.read(0, HERE);
        }
        "O" => {
            machine.write(0, HERE, BEFORE);
            machine.read(1, HERE);
        }
        "M" if state == "M" => drop(machine.write(0, HERE, BEFORE)),
        _ => {}
    }
    if let Some(of_transaction) = state.strip_prefix('T') {
        machine.instruct(0, Instruction::Begin, 0);
        if of_transaction == "M" {
            machine.write(0, HERE, WITHIN);
        } else {
            machine.read(0, HERE);
        }
    }
    machine
}

fn word(machine: &Machine) -> String {
    let (state, in_set) = machine.state(0, HERE);
    let name = match state {
        State::Invalid => "I",
        State::Exclusive => "E",
        State::Shared => "S",
        State::Owned => "O",
        State::Modified => "M",
    };
    format!("{}{name}", if in_set { "T" } else { "" })
}

/// One cell: the state after it, whether the line was written back, and whether a transaction was given up.
fn cell(state: &str, column: Column) -> String {
    let mut machine = prepared(state);
    if word(&machine) != state {
        return format!("{} instead of {state}", word(&machine));
    }
    if !matches!(column, Column::ExternalRead | Column::ExternalWrite) && !state.starts_with('T') {
        machine.instruct(0, Instruction::Begin, 0);
    }
    if matches!(column, Column::PreemptedRead | Column::PreemptedWrite) {
        machine.instruct(0, Instruction::Preempt, 1);
    }
    let before = machine.write_backs;
    match column {
        Column::Read | Column::PreemptedRead => machine.read(0, HERE),
        Column::Write | Column::PreemptedWrite => machine.write(0, HERE, WITHIN),
        Column::ExternalRead => machine.read(1, HERE),
        Column::ExternalWrite => machine.write(1, HERE, WITHIN),
    };
    let mut text = word(&machine);
    if machine.write_backs > before {
        text += ", written back";
    }
    if !machine.aborts(0).is_empty() {
        text += ", aborted";
    }
    text
}

fn wrong_cells() -> Vec<String> {
    let mut wrong = Vec::new();
    for (state, row) in TABLE {
        for (column, expected) in COLUMNS.into_iter().zip(row) {
            let found = cell(state, column);
            if found != expected {
                wrong.push(format!("{state}, {column:?}: {found}, expected {expected}"));
            }
        }
    }
    wrong
}

/// A transaction that uses so many lines of one set; whether it commits.
fn commits(lines: u64) -> bool {
    let mut machine = machine(Reporting::Eager);
    machine.instruct(0, Instruction::Begin, 0);
    for line in 0..lines {
        machine.write(0, line * STRIDE, WITHIN);
    }
    machine.instruct(0, Instruction::End, 1) == Outcome::Done && machine.aborts(0).is_empty()
}

fn became(is_committed: bool) -> &'static str {
    if is_committed { "commits" } else { "aborts" }
}

/// What is read after a transaction that has written over each state was aborted.
fn restored() -> String {
    let of = |state: &str| {
        let mut machine = prepared(state);
        let before = machine.image();
        machine.instruct(0, Instruction::Begin, 0);
        machine.write(0, HERE, WITHIN);
        machine.instruct(0, Instruction::Abort, 1);
        u64::from(machine.image() == before)
    };
    let all: u64 = ["I", "E", "S", "O", "M"].into_iter().map(of).sum();
    format!("{all} of 5")
}

/// Fact 4: accesses while a transaction is preempted that has read or written the line.
fn preempted() -> String {
    let of = |state: &str, column: Column| {
        if cell(state, column).ends_with("aborted") { "aborts" } else { "goes on" }
    };
    format!(
        "{}, {}, {} and {}",
        of("TM", Column::PreemptedRead),
        of("TE", Column::PreemptedRead),
        of("TE", Column::PreemptedWrite),
        of("TM", Column::PreemptedWrite)
    )
}

/// Fact 5: where the processor goes on, and how deeply it is nested then.
fn nested() -> String {
    let mut machine = machine(Reporting::Eager);
    for place in [10, 20, 30] {
        machine.instruct(0, Instruction::Begin, place);
    }
    let outcome = machine.instruct(0, Instruction::Abort, 40);
    let after = machine.transaction(0);
    match outcome {
        Outcome::Aborted { place } if after.mode == Mode::Normal => format!("{place}, depth {}", after.depth),
        other => format!("{other:?}"),
    }
}

/// Fact 6: what TBEGIN does while one is preempted, and what TRESUME and TEND say after it.
fn resumed(reporting: Reporting) -> String {
    let mut machine = machine(reporting);
    machine.instruct(0, Instruction::Begin, 0);
    machine.write(0, HERE, WITHIN);
    machine.instruct(0, Instruction::Preempt, 1);
    let said = |outcome: Outcome| if outcome == Outcome::Done { "succeeds" } else { "fails" };
    let begun = machine.instruct(0, Instruction::Begin, 2);
    let is_undone = machine.read(0, HERE) == Some(OLD) && machine.aborts(0) == [Cause::Asked];
    let resumed = machine.instruct(0, Instruction::Resume, 3);
    let ended = machine.instruct(0, Instruction::End, 4);
    let undone = if is_undone { "undone" } else { "kept" };
    let end = if ended == Outcome::NoTransaction { "has nothing to end" } else { said(ended) };
    format!("TBEGIN {}, {undone}; TRESUME {}; TEND {end}", said(begun), said(resumed))
}

pub(super) fn facts() -> Vec<Fact> {
    let periods: BTreeSet<u64> = FACTORS.iter().flat_map(|a| FACTORS.map(|b| a * b)).collect();
    let common = periods.iter().fold(1, |all, &period| all / gcd(all, period) * period);
    let divide = periods.iter().filter(|&&period| HYPERPERIOD.is_multiple_of(period)).count();
    let wrong = wrong_cells();
    let cells =
        Fact::exact(3, "Cells of the line table that come out otherwise, of 54", 0, wrong.len() as u64);
    vec![
        same(
            1,
            "Periods, those of them that divide 5184, and their least common multiple",
            "19, 19 and 5184",
            format!("{}, {divide} and {common}", periods.len()),
        ),
        same(2, "Sets, and lines, of the data cache", "128 and 512", format!("{SETS} and {}", SETS * WAYS)),
        same(
            2,
            "Transactions with four and with five lines 8192 bytes apart",
            "commits and aborts",
            format!("{} and {}", became(commits(4)), became(commits(5))),
        ),
        Fact { note: wrong.join("; "), ..cells },
        same(3, "States of a line whose bytes an abort gives back, memory whole", "5 of 5", restored()),
        same(
            4,
            "A preempted transaction: a read of its write set, of its read set; a write to either",
            "aborts, goes on, aborts and aborts",
            preempted(),
        ),
        same(5, "Where an abort at depth 3 leads, its TBEGINs at 10, 20 and 30", "10, depth 0", nested()),
        same(
            6,
            "Reporting lazily",
            "TBEGIN fails, undone; TRESUME succeeds; TEND fails",
            resumed(Reporting::Lazy),
        ),
        same(
            6,
            "Reporting eagerly",
            "TBEGIN fails, undone; TRESUME fails; TEND has nothing to end",
            resumed(Reporting::Eager),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_the_line_table() {
        assert_eq!(wrong_cells(), Vec::<String>::new());
    }

    #[test]
    fn all_facts_of_the_hardware_hold() {
        for fact in facts() {
            assert_eq!(fact.agreement, crate::Agreement::Agrees, "{fact:?}");
        }
    }

    /// Another processor has the only copy of a value, dirty; a transaction writes over it and is aborted.
    #[test]
    fn what_another_cache_alone_has_survives_an_abort() {
        for reads_first in [false, true] {
            let mut machine = machine(Reporting::Eager);
            machine.write(1, HERE, BEFORE);
            machine.instruct(0, Instruction::Begin, 0);
            if reads_first {
                machine.read(0, HERE);
            }
            machine.write(0, HERE, WITHIN);
            machine.instruct(0, Instruction::Abort, 1);
            assert_eq!((machine.read(0, HERE), machine.read(1, HERE)), (Some(BEFORE), Some(BEFORE)));
        }
    }
}
