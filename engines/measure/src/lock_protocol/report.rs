//! What came of the rules, as people and scripts read it.

use super::LockRules;
use crate::critical_sections::{Module, Modules, Naming};
use horolog_probe::lock_protocol::{Counts, Protocol, Row, What};
use horolog_trace::escape;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The JSON result `horolog.lock-protocols/1`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProtocolReport {
    /// Always `horolog.lock-protocols/1`.
    pub schema: &'static str,
    /// The program's exit status; null where a signal ended it.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes whose locks got protocols.
    pub processes: u64,
    /// Locks that got the protocol of their rule.
    pub locks: u64,
    /// The rules in the order of the file, with what each did.
    pub rules: Vec<RuleRow>,
    /// The calls at which locks got their protocol, by name.
    pub calls: Vec<CallRow>,
    /// Locks without the protocol of their rule, and what went otherwise than the rule says.
    pub unmet: Vec<UnmetRow>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// A rule, and how many locks it was for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RuleRow {
    /// Its calls; null: the default.
    pub site: Option<String>,
    /// `inheritance`, `ceiling` or `none`.
    pub protocol: &'static str,
    /// The ceiling.
    pub priority: Option<u8>,
    /// Locks that were first used at its calls.
    pub locks: u64,
}

/// A call that used locks first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct CallRow {
    /// Its name, as `trace locks` gives it.
    pub site: String,
    /// What its locks have.
    pub protocol: &'static str,
    /// The ceiling.
    pub priority: Option<u8>,
    /// How many.
    pub locks: u64,
}

/// What could not be as the rules say.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct UnmetRow {
    /// Why, in a word: `has-protocol`, `process-shared`, `in-use`, `unknown-kind`, `not-real-time`, `above-ceiling`, `not-allowed`,
    /// `too-many`, `not-held`.
    pub why: &'static str,
    /// Why, in a sentence.
    pub reason: &'static str,
    /// The call.
    pub site: String,
    /// How often; of locks that were left as they are: how many.
    pub times: u64,
    /// The address of the first such lock.
    pub lock: String,
    /// The first such thread's number and name.
    pub thread: String,
}

/// The word and the sentence of what was not as a rule says; `None` where it was.
fn unmet(what: What) -> Option<(&'static str, &'static str)> {
    Some(match what {
        What::Set | What::Left | What::Static | What::Privileged | What::Environment => return None,
        What::HasProtocol => ("has-protocol", "the program gave it a protocol itself, which it keeps"),
        What::Shared => (
            "process-shared",
            "processes may share it, or it is robust, which looks the same: it stays as it is",
        ),
        What::InUse => ("in-use", "it was held, or waited for, before the library was ready"),
        What::UnknownKind => ("unknown-kind", "its kind is none that is known of this C library"),
        What::NotRealTime => {
            ("not-real-time", "taken under inheritance: a thread without a real-time priority has no ceiling")
        }
        What::AboveCeiling => {
            ("above-ceiling", "taken under inheritance: the thread is more important than the ceiling")
        }
        What::NotAllowed => {
            ("not-allowed", "taken under inheritance: the thread may not raise its priority so far")
        }
        What::TooMany => {
            ("too-many", "taken under inheritance: the thread holds 32 locks with ceilings already")
        }
        What::NotHeld => (
            "not-held",
            "the unlock was refused: under a protocol only the thread that locked may unlock; give this lock `none`",
        ),
    })
}

/// Why the library does not reach a program that was started.
fn unreached(what: What) -> Option<&'static str> {
    match what {
        What::Static => Some("it is statically linked, or for another machine"),
        What::Privileged => Some("it changes its privileges when it starts"),
        What::Environment => Some("it was started without the environment of `run --locks`"),
        _ => None,
    }
}

fn words(protocol: Protocol) -> (&'static str, Option<u8>) {
    match protocol {
        Protocol::None => ("none", None),
        Protocol::Inheritance => ("inheritance", None),
        Protocol::Ceiling(priority) => ("ceiling", Some(priority)),
    }
}

/// Where the modules of a report are put: each for a process of its own.
const BIAS: u64 = 1 << 40;

impl ProtocolReport {
    /// The report on what was counted under these rules, of a program that ended so.
    #[must_use]
    pub fn of(
        rules: &LockRules,
        counts: &Counts,
        exit_status: Option<i32>,
        signal: Option<i32>,
    ) -> ProtocolReport {
        let mut paths: BTreeMap<&[u8], u32> = BTreeMap::new();
        let mut modules = Modules::default();
        let of_calls = |row: &&Row| !row.module.is_empty() && unreached(row.what).is_none();
        for row in counts.rows.iter().filter(of_calls) {
            let next = u32::try_from(paths.len()).unwrap_or(u32::MAX);
            paths.entry(&row.module).or_insert_with(|| {
                let path = PathBuf::from(OsStr::from_bytes(&row.module));
                modules.add(next, Module { bias: BIAS, start: BIAS, end: u64::MAX, path });
                next
            });
        }
        let mut naming = Naming::new(&modules);
        let mut name = |row: &Row| match paths.get(row.module.as_slice()) {
            Some(process) => escape(naming.site(*process, BIAS.wrapping_add(row.offset))),
            None => format!("{:#x}", row.offset),
        };
        let protocol_of = |rule: Option<u32>| {
            let rule = rule.and_then(|rule| rules.rules.get(usize::try_from(rule).ok()?));
            rule.map_or(Protocol::None, |rule| rule.protocol)
        };
        let mut of_rules = vec![0_u64; rules.rules.len()];
        let mut calls: BTreeMap<(String, &'static str, Option<u8>), u64> = BTreeMap::new();
        let mut others: BTreeMap<(&'static str, String), UnmetRow> = BTreeMap::new();
        for row in counts.rows.iter().filter(|row| unreached(row.what).is_none()) {
            let site = name(row);
            match unmet(row.what) {
                None => {
                    if let Some(count) =
                        row.rule.and_then(|rule| of_rules.get_mut(usize::try_from(rule).ok()?))
                    {
                        *count = count.saturating_add(row.count);
                    }
                    let (protocol, priority) = words(protocol_of(row.rule));
                    let count = calls.entry((site, protocol, priority)).or_default();
                    *count = count.saturating_add(row.count);
                }
                Some((why, reason)) => {
                    let fresh = || UnmetRow {
                        why,
                        reason,
                        site: site.clone(),
                        times: 0,
                        lock: format!("{:#x}", row.first.lock),
                        thread: thread(row),
                    };
                    let found = others.entry((why, site.clone())).or_insert_with(fresh);
                    found.times = found.times.saturating_add(row.count);
                }
            }
        }
        let of_rule = |(rule, locks): (&super::LockRule, u64)| {
            let (protocol, priority) = words(rule.protocol);
            RuleRow { site: rule.site.clone(), protocol, priority, locks }
        };
        let calls: Vec<CallRow> = calls
            .into_iter()
            .map(|((site, protocol, priority), locks)| CallRow { site, protocol, priority, locks })
            .collect();
        ProtocolReport {
            schema: "horolog.lock-protocols/1",
            exit_status,
            signal,
            processes: counts.processes,
            locks: calls.iter().filter(|call| call.protocol != "none").map(|call| call.locks).sum(),
            rules: rules.rules.iter().zip(of_rules).map(of_rule).collect(),
            calls,
            unmet: others.into_values().collect(),
            notes: notes(counts),
        }
    }
}

fn thread(row: &Row) -> String {
    let name = row.first.name;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    format!("{} {}", row.first.thread, escape(String::from_utf8_lossy(&name[..end]).into_owned()))
}

fn notes(counts: &Counts) -> Vec<String> {
    let mut notes = Vec::new();
    if counts.processes == 0 && counts.unable == 0 {
        notes.push(
            "no process told what came of the rules: the library did not reach the program, or the program could not \
             open the table of counts"
                .to_owned(),
        );
    }
    if counts.unable > 0 {
        notes.push(format!(
            "in {} no lock got a protocol: threads ran before the library, or the C library's mutexes or the kernel are none that it knows",
            match counts.unable {
                1 => "1 process".to_owned(),
                all => format!("{all} processes"),
            }
        ));
    }
    let mut others: BTreeMap<(&[u8], &str), u64> = BTreeMap::new();
    for row in &counts.rows {
        if let Some(reason) = unreached(row.what) {
            let times = others.entry((&row.module, reason)).or_default();
            *times = times.saturating_add(row.count);
        }
    }
    notes.extend(others.into_iter().map(|((program, reason), times)| {
        let program = escape(String::from_utf8_lossy(program).into_owned());
        let often = if times == 1 { String::new() } else { format!(", {times} times") };
        format!("no protocols in {program}{often}: {reason}")
    }));
    if counts.uncounted > 0 {
        notes.push(format!(
            "{} first uses and refusals are not in the tables: there were more call sites than 4,096",
            counts.uncounted
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock_protocol::LockRule;
    use horolog_probe::lock_protocol::First;

    #[test]
    fn counts_become_rows_and_rows_of_one_call_are_added() {
        let rule = |site: Option<&str>, protocol| LockRule { site: site.map(str::to_owned), protocol };
        let rules =
            LockRules { rules: vec![rule(Some("a"), Protocol::Ceiling(7)), rule(None, Protocol::None)] };
        let row = |what, rule, count, offset| Row {
            what,
            rule,
            count,
            module: b"/nowhere/legacy".to_vec(),
            offset,
            first: First { lock: 0x10, thread: 5, name: *b"high\0\0\0\0\0\0\0\0\0\0\0\0" },
        };
        let rows = vec![
            row(What::Set, Some(0), 2, 0x20),
            row(What::Set, Some(0), 3, 0x20),
            row(What::Left, Some(1), 4, 0x30),
            row(What::Left, None, 1, 0x40),
            row(What::NotRealTime, None, 9, 0x20),
            row(What::Static, None, 2, 0),
            row(What::Environment, None, 1, 0),
        ];
        let counts = Counts { processes: 1, unable: 2, uncounted: 3, rows };
        let report = ProtocolReport::of(&rules, &counts, Some(0), None);
        let call = |site: &str, protocol, priority, locks| CallRow {
            site: site.to_owned(),
            protocol,
            priority,
            locks,
        };
        assert_eq!(
            report.calls,
            [
                call("legacy+0x20", "ceiling", Some(7), 5),
                call("legacy+0x30", "none", None, 4),
                call("legacy+0x40", "none", None, 1)
            ]
        );
        assert_eq!(report.rules.iter().map(|rule| rule.locks).collect::<Vec<_>>(), [5, 4]);
        assert_eq!(report.locks, 5);
        let unmet = &report.unmet[0];
        let found = (unmet.why, unmet.times, unmet.lock.as_str(), unmet.thread.as_str());
        assert_eq!(found, ("not-real-time", 9, "0x10", "5 high"));
        assert_eq!((report.notes.len(), report.unmet.len()), (4, 1));
        let has = |text: &str| report.notes.iter().any(|note| note == text);
        assert!(
            has("no protocols in /nowhere/legacy, 2 times: it is statically linked, or for another machine"),
            "{:?}",
            report.notes
        );
        assert!(
            has("no protocols in /nowhere/legacy: it was started without the environment of `run --locks`"),
            "{:?}",
            report.notes
        );
        assert!(
            ProtocolReport::of(&rules, &Counts::default(), None, Some(9)).notes[0]
                .contains("no process told")
        );
    }
}
