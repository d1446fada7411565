//! What drivers take of a processor on the machines that schedule its jobs again.
//!
//! Interrupts come from outside, so they are kept as they were; in a simulated trace the cut machines shorten each to its cost. Of a measured trace the file's
//! own interrupts are in the bound, and which of those on record they are is not known: the machines without disturbances run with none, and
//! with as much as the file declares, the first that come. Where these two give different answers there is none.
//!
//! Systems in which jobs wait for devices are left to the amounts: what a device answers, and when, hangs on what it is asked. So are threads of drivers
//! that are lent a priority, polled interrupts, which come as what they tell of is worked off, and stretches in which the softirqs' background thread had
//! something to do: how much it takes from the next interrupt hangs on when it runs.

use super::Kept;
use super::plan::{Amount, Conditions};
use crate::verifier::Verifier;
use horolog_model::{Device, DeviceService, PriorityRule, System, Throttling};
use std::borrow::Cow;

/// Whether what the drivers of a system do hangs on nothing but what is on record.
pub(super) fn can_be_told(system: &System) -> bool {
    let is_polled = |name: &Option<String>| {
        let mut lines = system.interrupts().iter().filter(|line| Some(&line.name) == name.as_ref());
        lines.any(|line| matches!(line.throttling, Throttling::Napi | Throttling::Threshold { .. }))
    };
    let hangs = |device: &Device| {
        let is_lent = matches!(device.service, DeviceService::Thread { rule: PriorityRule::Waiting, .. });
        is_lent || is_polled(&device.interrupt)
    };
    system.requests().is_empty() && !system.devices().iter().any(hangs)
}

impl Verifier {
    /// An interrupt of a simulated trace took more than its cost in this stretch.
    pub(crate) fn note_beyond_cost(&mut self, cpu: usize, from: u64, to: u64) {
        if let Some(again) = &mut self.again[cpu] {
            again.kept.beyond.push((from.max(again.answered), to));
        }
    }

    /// What takes the processor from all jobs under these conditions.
    pub(super) fn withdrawn_under<'a>(
        &self,
        cpu: usize,
        kept: &'a Kept,
        conditions: Conditions,
    ) -> Cow<'a, [(u64, u64)]> {
        let all = kept.withdrawn.as_slice();
        if !self.drivers.has_any() {
            return if conditions.is_out() { Cow::Borrowed(&[]) } else { Cow::Borrowed(all) };
        }
        match conditions.amount {
            _ if self.model.simulated && conditions.is_cut => Cow::Owned(without(all, &kept.beyond)),
            _ if self.model.simulated => Cow::Borrowed(all),
            Amount::Had => Cow::Borrowed(all),
            Amount::Least => Cow::Borrowed(&[]),
            Amount::Most => {
                let begin = kept.jobs.iter().map(|ran| ran.arrival).min().unwrap_or(0);
                let declared = |window: u64| self.drivers.declared(cpu, window, i64::MIN);
                Cow::Owned(at_most(all, begin, declared))
            }
        }
    }
}

/// The first parts of these stretches that are no more in all, from `begin` on, than `declared` of the time until then.
fn at_most(all: &[(u64, u64)], begin: u64, declared: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
    let mut taken = 0_u64;
    let part = |&(from, to): &(u64, u64)| {
        let most = declared(to.saturating_sub(begin)).saturating_sub(taken);
        let length = most.min(to - from);
        taken += length;
        (length > 0).then(|| (from, from + length))
    };
    all.iter().filter_map(part).collect()
}

/// These stretches without others; both in the order of time, and none overlaps another one of its own.
fn without(all: &[(u64, u64)], others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut left = Vec::with_capacity(all.len());
    let mut next = 0;
    for &(mut from, to) in all {
        while let Some(&(begin, end)) = others.get(next).filter(|(begin, _)| *begin < to) {
            if from < begin {
                left.push((from, begin));
            }
            from = from.max(end.min(to));
            if end > to {
                break;
            }
            next += 1;
        }
        if from < to {
            left.push((from, to));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_a_cost_is_taken_out() {
        let all = [(0, 5), (10, 20), (30, 31)];
        assert_eq!(without(&all, &[]), all);
        assert_eq!(without(&all, &[(3, 5), (12, 14), (15, 20)]), [(0, 3), (10, 12), (14, 15), (30, 31)]);
        assert_eq!(without(&all, &[(4, 12), (19, 31)]), [(0, 4), (12, 19)]);
    }

    #[test]
    fn no_more_is_kept_than_is_declared_until_then() {
        let all = [(12, 15), (20, 26), (28, 29)];
        // One more with every 10.
        let declared = |window: u64| window.div_ceil(10) * 3;
        assert_eq!(at_most(&all, 10, declared), [(12, 15), (20, 23)]);
        assert_eq!(at_most(&all, 0, declared), all[..2]);
        assert_eq!(at_most(&all, 0, |_| u64::MAX), all);
        assert_eq!(at_most(&all, 0, |_| 0), []);
        assert_eq!(at_most(&all, 0, |window| window / 15), [(12, 13)]);
    }
}
