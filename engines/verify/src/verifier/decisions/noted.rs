//! What the machine notes beside what the records say, where every nanosecond is known: ends and returns of budgets with their
//! amounts, promotions, and what became of jobs beyond their wcet. Each note has its record at its very instant, and no record is
//! without a note.

use super::{Counted, Decisions, Wrong};
use horolog_model::{System, TaskId};
use horolog_sched::{Note, OverrunAction};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Record};

impl Decisions {
    /// Compares the notes of an instant with its records.
    pub(super) fn compare_notes(&mut self, group: &[Record], now: u64, system: &System) -> Option<Wrong> {
        self.note_charged(group);
        let notes = std::mem::take(&mut self.recorded.noted);
        let overran = std::mem::take(&mut self.recorded.overran);
        let told = |record: &&Record| is_note(record.kind);
        if notes.is_empty()
            && overran.is_empty()
            && !group.iter().any(|record| told(&record) || record.kind == Kind::Enforcement)
        {
            return None;
        }
        let as_record = |note: &Note| Record::of_note(*note, Instant::from_ns(now), 0, 0);
        let due: Vec<Record> = notes.iter().map(as_record).collect();
        for place in 0..self.servers.len() {
            let counted = &self.servers[place];
            if counted.may_lag {
                continue;
            }
            let is_of = |record: &&Record| {
                record.kind != Kind::Promotion
                    && told(record)
                    && record.value == u64::from(counted.id.0)
                    && !counted.was_anew[usize::from(is_return(record))]
            };
            // What was charged before a loss is counted from the first record behind it on.
            let with_before = |due: &Record| match due.kind {
                Kind::BudgetExhausted => {
                    Record { extra: due.extra.saturating_add(counted.charged_before.unwrap_or(0)), ..*due }
                }
                _ => *due,
            };
            let due: Vec<Record> = due.iter().filter(is_of).map(with_before).collect();
            let (mut seen, mut due) = (group.iter().filter(is_of), due.iter());
            loop {
                let (seen, due) = (seen.next(), due.next());
                let what = match (seen, due) {
                    (None, None) => break,
                    (Some(seen), Some(due)) if (seen.kind, seen.extra) == (due.kind, due.extra) => continue,
                    (seen, due) => difference(counted, seen, due),
                };
                let server = system.server(counted.id).name.clone();
                let what = format!("server {server}: {what}");
                return Some(Wrong { time: now, task: None, job: None, server, what });
            }
        }
        self.servers.iter_mut().for_each(|counted| counted.was_anew = counted.is_anew);
        let unknown = group.iter().find(|record| {
            let has = |counted: &Counted| u64::from(counted.id.0) == record.value;
            told(record) && record.kind != Kind::Promotion && !self.servers.iter().any(has)
        });
        if let Some(record) = unknown {
            let what = format!(
                "a record of a budget names server {}, which this processor does not have",
                record.value
            );
            return self.found(now, None, None, system, what);
        }
        self.compare_promotions(group, &due, now, system)
            .or_else(|| self.compare_overruns(group, &overran, now, system))
    }

    fn compare_promotions(
        &self,
        group: &[Record],
        due: &[Record],
        now: u64,
        system: &System,
    ) -> Option<Wrong> {
        let of = |records: &[Record], task: u32| {
            records.iter().filter(|record| record.kind == Kind::Promotion && record.task == task).count()
        };
        let mut all = group.iter().chain(due).filter(|record| record.kind == Kind::Promotion);
        let wrong = all.find(|record| of(group, record.task) != of(due, record.task))?;
        let task = TaskId(wrong.task);
        let name = self.names(Some(task), system);
        let what = if of(group, wrong.task) > of(due, wrong.task) {
            format!("{name} was promoted too early")
        } else {
            format!("{name} is promoted by now, and no record says so")
        };
        self.found(now, Some(task), None, system, what)
    }

    /// A job beyond its wcet is acted upon as its policy says, and nobody else is.
    fn compare_overruns(
        &self,
        group: &[Record],
        overran: &[(TaskId, OverrunAction)],
        now: u64,
        system: &System,
    ) -> Option<Wrong> {
        let is_told = |record: &&Record| record.kind == Kind::Enforcement && record.extra != 0;
        // At the instant of a change a record may be of the mode or of the policy: it answers for the one that has acted.
        let acts = |record: &&Record| is_told(record) && !self.is_by_mode(record, now);
        let fits = |record: &Record, (task, action): (TaskId, OverrunAction)| {
            record.task == task.0 && number_of(action) == Some(record.extra)
        };
        for &(task, action) in overran.iter().filter(|(_, action)| number_of(*action).is_some()) {
            if !group.iter().filter(is_told).any(|record| fits(record, (task, action))) {
                let what = format!(
                    "{} has executed its wcet and is not done, and no record says that its overrun policy acted",
                    self.names(Some(task), system)
                );
                return self.found(now, Some(task), None, system, what);
            }
        }
        let wrong = group.iter().filter(acts).find(|record| !overran.iter().any(|&one| fits(record, one)))?;
        let task = TaskId(wrong.task);
        let what = format!(
            "the overrun policy acted upon {}, which has not executed its wcet",
            self.names(Some(task), system)
        );
        self.found(now, Some(task), None, system, what)
    }
}

/// Whether a record tells that a budget, or slack, came back, and not that it ended.
fn is_return(record: &Record) -> bool {
    match record.kind {
        Kind::SlackChange => record.extra != 0,
        kind => kind == Kind::BudgetReplenished,
    }
}

/// Whether a record tells what the machine notes.
fn is_note(kind: Kind) -> bool {
    matches!(kind, Kind::BudgetExhausted | Kind::BudgetReplenished | Kind::SlackChange | Kind::Promotion)
}

/// What an enforcement's record calls a policy.
fn number_of(action: OverrunAction) -> Option<u64> {
    Some(action.number()).filter(|&number| number != 0)
}

/// How a record differs from what the machine notes.
fn difference(counted: &Counted, seen: Option<&Record>, due: Option<&Record>) -> String {
    let what = |record: &Record| match (record.kind, record.extra) {
        _ if counted.is_slack && record.extra == 0 => "its soft tasks lost their slack",
        _ if counted.is_slack => "its soft tasks got slack",
        (Kind::BudgetExhausted, _) => "its budget ended",
        _ => "its budget came back",
    };
    match (seen, due) {
        (Some(seen), Some(due)) if seen.kind == due.kind && !counted.is_slack => {
            let of = if seen.kind == Kind::BudgetExhausted { "with so much charged" } else { "to" };
            let (is, should) = (Span::from_ns(seen.extra), Span::from_ns(due.extra));
            format!("{} {of} {is}, by its rules that is {should}", what(seen))
        }
        (Some(seen), _) => format!("{} too early: by its rules not yet", what(seen)),
        (None, Some(due)) => format!("{} by its rules, and no record says so", what(due)),
        (None, None) => String::new(),
    }
}
