//! What less important tasks of the same processor take by their requests: a section at boosted priority while a job wants the processor, or its wait for a
//! request that is ahead of its own. Of one request only one of both.

use super::{Add, Gap, Waits};
use crate::explanation::TermKind;
use horolog_model::Protocol;

/// So many requests of one kind that take so long each, ns.
#[derive(Clone, Copy, Debug)]
struct Requests {
    kind: TermKind,
    who: usize,
    resource: Option<usize>,
    count: u64,
    each: u64,
    /// With two switches of context, ns.
    whole: u64,
}

/// Takes so many away, the shortest ones first.
fn take_shortest(all: &mut [Requests], mut many: u64) {
    while many > 0 {
        let left = all.iter_mut().filter(|it| it.count > 0);
        let Some(shortest) = left.min_by_key(|it| it.whole) else { return };
        let taken = shortest.count.min(many);
        shortest.count -= taken;
        many -= taken;
    }
}

impl Waits<'_> {
    /// Whether the second task is a less important one of the first one's processor.
    pub(super) fn is_below(&self, number: usize, other: usize) -> bool {
        let (own, other) = (&self.members[number], &self.members[other]);
        own.cpu == other.cpu && other.priority.number() < own.priority.number()
    }

    /// What less important tasks of the same processor take: at boosted priority, and first in, first out, what the job waits for theirs.
    pub(super) fn boosted_below(
        &self,
        number: usize,
        x: u64,
        effort: &mut u64,
        add: Add<'_>,
    ) -> Result<(), Gap> {
        let member = &self.members[number];
        let below = self.local[member.cpu].iter().copied();
        let below = below.filter(|&other| self.is_below(number, other));
        let below = below.filter(|&other| !self.members[other].requests.is_empty());
        let asked = member.requests.len() as u64;
        // Of those that may have their turn before a request of the job, how many are surely none of the boosted ones.
        let (mut all, mut beside) = (0_u64, 0_u64);
        let mut found: Vec<Requests> = Vec::new();
        for other in below {
            *effort = effort.checked_sub(1).ok_or(Gap::Effort)?;
            let within = self.sections_within(other, x, self.members[other].requests.len() as u64);
            let boosted = self.boosted(number, other, within);
            (all, beside) = (all.saturating_add(within), beside.saturating_add(within - boosted.count));
            let first = found.len();
            found.push(boosted);
            if self.rule == Protocol::FmlpPlus && asked > 0 {
                self.ahead_below(number, other, x, &mut found)?;
                let counted = found[first..].iter().fold(0_u64, |sum, it| sum.saturating_add(it.count));
                take_shortest(&mut found[first..], counted.saturating_sub(within));
            }
        }
        if self.rule == Protocol::Omlp {
            take_shortest(&mut found, asked.min(all).saturating_sub(beside));
        }
        let switch = self.cpus[member.cpu].context_switch;
        for Requests { kind, who, resource, count, each, .. } in found {
            add(kind, Some(who), resource, count, each);
            let switches = if kind == TermKind::BlockingBoosted { 2 * count } else { 0 };
            add(TermKind::ContextSwitches, None, None, switches, switch);
        }
        Ok(())
    }

    /// The sections of a less important task that a job may find whenever it wants the processor.
    fn boosted(&self, number: usize, other: usize, within: u64) -> Requests {
        let (member, one) = (&self.members[number], &self.members[other]);
        let switch = self.cpus[member.cpu].context_switch;
        Requests {
            kind: TermKind::BlockingBoosted,
            who: other,
            resource: None,
            count: within.min(member.requests.len() as u64 + 1),
            each: one.longest,
            whole: one.longest.saturating_add(switch.saturating_mul(2)),
        }
    }

    /// Those of a less important task that may be ahead of the requests of a job, first in, first out.
    fn ahead_below(&self, number: usize, other: usize, x: u64, found: &mut Vec<Requests>) -> Result<(), Gap> {
        for (&resource, users) in &self.users {
            let requests = self.members[number].requests.iter();
            let asked = requests.filter(|request| request.resource == resource).count() as u64;
            if asked == 0 || !users.contains(&other) {
                continue;
            }
            let (count, _, longest) = self.held(other, resource).ok_or(Gap::Section)?;
            let count = asked.min(self.sections_within(other, x, count));
            let resource = Some(resource);
            found.push(Requests {
                kind: TermKind::LockWait,
                who: other,
                resource,
                count,
                each: longest,
                whole: longest,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_ones_are_taken_first_and_no_more_than_are_there() {
        let of = |count, whole| Requests {
            kind: TermKind::LockWait,
            who: 0,
            resource: None,
            count,
            each: whole,
            whole,
        };
        let counts = |many| {
            let mut all = [of(2, 5), of(3, 1), of(1, 4)];
            take_shortest(&mut all, many);
            all.map(|it| it.count)
        };
        assert_eq!(
            [0, 1, 3, 4, 5, 6, 7].map(counts),
            [[2, 3, 1], [2, 2, 1], [2, 0, 1], [2, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
        );
    }
}
