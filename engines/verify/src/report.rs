//! Collects findings: all are counted, the first ones of each group are listed.

use crate::result::{Check, CheckCount, Class, Evidence, Finding, FindingGroup};
use horolog_time::{Instant, Span};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A finding before it is put into words for the result.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) class: Class,
    pub(crate) check: Check,
    pub(crate) time: u64,
    /// From when until when it lasted; `None`: only `time` is known.
    pub(crate) during: Option<(u64, u64)>,
    pub(crate) cpu: u32,
    pub(crate) task: Option<String>,
    pub(crate) job: Option<u64>,
    pub(crate) observed: Option<u64>,
    pub(crate) allowed: Option<u64>,
    pub(crate) evidence: Vec<Evidence>,
    /// Which task, thread or interrupt the group is about.
    pub(crate) subject: String,
    pub(crate) message: String,
}

/// What pauses of the host may have added to the executions of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pauses {
    /// To one job, at most.
    pub(crate) worst: u64,
    /// To so many jobs.
    pub(crate) often: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Report {
    listed_per_group: usize,
    groups: BTreeMap<(Class, Check, String), FindingGroup>,
    findings: Vec<Finding>,
    applied: [u64; Check::ALL.len()],
    /// For each writer of a link, how many late publications a broken assumption explains.
    late_by_model: BTreeMap<String, u64>,
    /// Whether every finding is in doubt for a reason outside the trace.
    all_in_doubt: bool,
}

impl Report {
    pub(crate) fn new(listed_per_group: usize, all_in_doubt: bool) -> Report {
        Report {
            all_in_doubt,
            listed_per_group,
            groups: BTreeMap::new(),
            findings: Vec::new(),
            applied: [0; Check::ALL.len()],
            late_by_model: BTreeMap::new(),
        }
    }

    /// Notes that the next finding about a link of `subject` only follows from a broken assumption.
    pub(crate) fn follows_from_the_model(&mut self, subject: &str) {
        *self.late_by_model.entry(subject.to_owned()).or_default() += 1;
    }

    /// Counts one application of a check.
    #[inline]
    pub(crate) fn apply(&mut self, check: Check) {
        self.applied[check as usize] += 1;
    }

    pub(crate) fn add(&mut self, found: Found) {
        let excess = match (found.observed, found.allowed) {
            (Some(observed), Some(allowed)) => observed.abs_diff(allowed),
            (Some(observed), None) => observed,
            _ => 0,
        };
        let key = (found.class, found.check, found.subject.clone());
        let group = self.groups.entry(key).or_insert_with(|| FindingGroup {
            class: found.class,
            check: found.check,
            subject: found.subject,
            count: 0,
            worst_excess_ns: Span::ZERO,
            total_excess_ns: Span::ZERO,
        });
        group.count += 1;
        group.worst_excess_ns = group.worst_excess_ns.max(Span::from_ns(excess));
        // A total beyond 584 years stays there: it is only shown.
        group.total_excess_ns = Span::from_ns(group.total_excess_ns.as_ns().saturating_add(excess));
        if group.count > self.listed_per_group as u64 {
            return;
        }
        let (from, to) = found.during.unwrap_or((found.time, found.time));
        self.findings.push(Finding {
            class: found.class,
            check: found.check,
            time_ns: Instant::from_ns(found.time),
            from_ns: Instant::from_ns(from),
            to_ns: Instant::from_ns(to),
            cpu: found.cpu,
            task: found.task,
            job: found.job,
            observed_ns: found.observed.map(Span::from_ns),
            allowed_ns: found.allowed.map(Span::from_ns),
            evidence: found.evidence,
            message: found.message,
        });
    }

    /// By how much executions of `subject` are too long in all, of which nothing else is to blame. A job's sections and segments are parts of
    /// it.
    pub(crate) fn too_long_in_all(&self, subject: &str) -> u64 {
        let of = |check| {
            let key = (Class::ModelViolated, check, subject.to_owned());
            self.groups.get(&key).map_or(0, |group| group.total_excess_ns.as_ns())
        };
        of(Check::Execution).max(of(Check::SegmentExecution))
    }

    /// Execution beyond the wcet of `subject` becomes of class `to`, where it is as small and as rare as said. Whether any was.
    pub(crate) fn excuse_execution(
        &mut self,
        subject: &str,
        Pauses { worst, often }: Pauses,
        to: Class,
    ) -> bool {
        let mut excused = false;
        for check in [Check::Execution, Check::SegmentExecution] {
            let key = (Class::ModelViolated, check, subject.to_owned());
            let small = |group: &FindingGroup| group.worst_excess_ns.as_ns() <= worst && group.count <= often;
            if self.groups.get(&key).is_some_and(small) {
                self.excuse(&key, to);
                excused = true;
            }
        }
        excused
    }

    /// Late responses and publications that were blamed on broken wcets follow them where none is left.
    pub(crate) fn excuse_responses(&mut self, to: Class) {
        let late_by_model = &self.late_by_model;
        let broken = |group: &FindingGroup| {
            let follows = match group.check {
                Check::Response => true,
                Check::Link => late_by_model.get(&group.subject) == Some(&group.count),
                _ => false,
            };
            group.class == Class::ModelViolated && !follows
        };
        if self.groups.values().any(broken) {
            return;
        }
        let late: Vec<_> =
            self.groups.keys().filter(|(class, ..)| *class == Class::ModelViolated).cloned().collect();
        late.iter().for_each(|key| self.excuse(key, to));
    }

    /// The signal that stops a program wakes its threads, and the one that lets it go on, too: whether what woke one early or late was its own
    /// is not on record.
    pub(crate) fn excuse_arrivals_of_stopped(&mut self, is_foreign: bool) {
        if !is_foreign {
            return;
        }
        let is_stop = |&&(class, check, _): &&(Class, Check, String)| {
            class == Class::MachineDisturbed && check == Check::SelfSuspension
        };
        let stopped: Vec<String> =
            self.groups.keys().filter(is_stop).map(|(.., task)| task.clone()).collect();
        let mut is_any = false;
        for task in stopped {
            let key = (Class::ModelViolated, Check::Arrival, task);
            is_any |= self.groups.contains_key(&key);
            self.excuse(&key, Class::CannotTell);
        }
        if is_any {
            self.excuse_responses(Class::CannotTell);
        }
    }

    /// Where there is a hole, or all is in doubt: of every finding the cause cannot be told.
    pub(crate) fn doubt_all_where(&mut self, has_hole: bool) {
        if has_hole || self.all_in_doubt {
            self.doubt_all();
        }
    }

    fn doubt_all(&mut self) {
        for finding in &mut self.findings {
            finding.class = Class::CannotTell;
        }
        for group in std::mem::take(&mut self.groups).into_values() {
            self.put(Class::CannotTell, group);
        }
    }

    /// Moves a group, with its findings, to another class.
    fn excuse(&mut self, key: &(Class, Check, String), to: Class) {
        let Some(group) = self.groups.remove(key) else { return };
        let (class, check, subject) = key;
        for finding in &mut self.findings {
            let same = finding.class == *class && finding.check == *check;
            if same && finding.task.as_deref() == Some(subject.as_str()) {
                finding.class = to;
            }
        }
        self.put(to, group);
    }

    /// Puts a group into a class, beside what is there of its check and subject.
    fn put(&mut self, class: Class, group: FindingGroup) {
        match self.groups.entry((class, group.check, group.subject.clone())) {
            Entry::Occupied(mut there) => {
                let there = there.get_mut();
                there.count += group.count;
                there.worst_excess_ns = there.worst_excess_ns.max(group.worst_excess_ns);
                let total = there.total_excess_ns.as_ns().saturating_add(group.total_excess_ns.as_ns());
                there.total_excess_ns = Span::from_ns(total);
            }
            Entry::Vacant(free) => {
                free.insert(FindingGroup { class, ..group });
            }
        }
    }

    pub(crate) fn has(&self, class: Class, check: Check) -> bool {
        self.groups.keys().any(|(of, by, _)| (*of, *by) == (class, check))
    }

    pub(crate) fn count(&self, class: Class) -> u64 {
        self.groups.values().filter(|group| group.class == class).map(|group| group.count).sum()
    }

    /// Groups, findings in the order of time, and how often each check was applied.
    pub(crate) fn finish(mut self) -> (Vec<FindingGroup>, Vec<Finding>, Vec<CheckCount>) {
        self.findings.sort_by_key(|finding| (finding.time_ns, finding.class));
        let groups: Vec<FindingGroup> = self.groups.into_values().collect();
        let checks = Check::ALL
            .into_iter()
            .map(|check| CheckCount {
                check,
                applied: self.applied[check as usize],
                findings: groups.iter().filter(|group| group.check == check).map(|group| group.count).sum(),
            })
            .collect();
        (groups, self.findings, checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(check: Check, subject: &str) -> Found {
        Found {
            class: Class::ModelViolated,
            check,
            time: 0,
            during: None,
            cpu: 0,
            task: Some(subject.to_owned()),
            job: Some(0),
            observed: Some(11),
            allowed: Some(10),
            evidence: Vec::new(),
            subject: subject.to_owned(),
            message: String::new(),
        }
    }

    /// What is left as a violated model once the executions of a task are of another class.
    fn left(others: &[(Check, &str, bool)]) -> u64 {
        let mut report = Report::new(10, false);
        report.add(found(Check::Execution, "imu"));
        for &(check, subject, follows) in others {
            if follows {
                report.follows_from_the_model(subject);
            }
            report.add(found(check, subject));
        }
        assert!(report.excuse_execution("imu", Pauses { worst: 1, often: 1 }, Class::CannotTell));
        report.excuse_responses(Class::CannotTell);
        report.count(Class::ModelViolated)
    }

    #[test]
    fn where_all_is_in_doubt_no_group_and_no_finding_accuses() {
        let mut report = Report::new(10, false);
        report.add(found(Check::Execution, "imu"));
        report.add(Found {
            class: Class::BoundViolated,
            observed: Some(15),
            ..found(Check::Execution, "imu")
        });
        report.add(Found { class: Class::MachineDisturbed, task: None, ..found(Check::Response, "trace") });
        report.doubt_all();
        let (groups, findings, _) = report.finish();
        let counts: Vec<_> =
            groups.iter().map(|it| (it.check, it.count, it.worst_excess_ns.as_ns())).collect();
        assert_eq!(counts, [(Check::Execution, 2, 5), (Check::Response, 1, 1)]);
        assert_eq!(groups[0].total_excess_ns.as_ns(), 6);
        assert!(groups.iter().all(|group| group.class == Class::CannotTell));
        assert!(findings.len() == 3 && findings.iter().all(|finding| finding.class == Class::CannotTell));
    }

    #[test]
    fn what_follows_from_an_excused_execution_is_excused_with_it() {
        assert_eq!(left(&[(Check::Response, "imu", false), (Check::Link, "imu", true)]), 0);
        // A latch that got the wrong value follows from nothing, and keeps the rest.
        assert_eq!(left(&[(Check::Response, "imu", false), (Check::Link, "imu", false)]), 2);
        assert_eq!(left(&[(Check::Link, "imu", true), (Check::Link, "imu", false)]), 2);
        assert_eq!(left(&[(Check::Link, "imu", true), (Check::Link, "control", false)]), 2);
    }
}
