//! Collects findings: all are counted, the first ones of each group are listed.

use crate::result::{Check, CheckCount, Class, Evidence, Finding, FindingGroup};
use horolog_time::{Instant, Span};
use std::collections::BTreeMap;

/// A finding before it is put into words for the result.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) class: Class,
    pub(crate) check: Check,
    pub(crate) time: u64,
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

#[derive(Clone, Debug)]
pub(crate) struct Report {
    listed_per_group: usize,
    groups: BTreeMap<(Class, Check, String), FindingGroup>,
    findings: Vec<Finding>,
    applied: [u64; Check::ALL.len()],
}

impl Report {
    pub(crate) fn new(listed_per_group: usize) -> Report {
        Report {
            listed_per_group,
            groups: BTreeMap::new(),
            findings: Vec::new(),
            applied: [0; Check::ALL.len()],
        }
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
        self.findings.push(Finding {
            class: found.class,
            check: found.check,
            time_ns: Instant::from_ns(found.time),
            cpu: found.cpu,
            task: found.task,
            job: found.job,
            observed_ns: found.observed.map(Span::from_ns),
            allowed_ns: found.allowed.map(Span::from_ns),
            evidence: found.evidence,
            message: found.message,
        });
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
