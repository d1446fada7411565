//! Waits where of each processor one job at a time has a place in the queues, first in, first out (decision 0029).

use super::{Add, Gap, Waits};
use crate::cpu_model::LONGEST_NS;
use crate::explanation::TermKind;
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl Waits<'_> {
    /// How long each request keeps the others of its processor from asking: its wait in the queue, and its section.
    pub(super) fn find_turns(&mut self) {
        let mut ahead: BTreeMap<(usize, usize), Option<u64>> = BTreeMap::new();
        for number in 0..self.members.len() {
            let cpu = self.members[number].cpu;
            for place in 0..self.members[number].requests.len() {
                let resource = self.members[number].requests[place].resource;
                let ahead =
                    *ahead.entry((cpu, resource)).or_insert_with(|| self.ahead_in_queue(cpu, resource));
                let request = &mut self.members[number].requests[place];
                let turn = ahead.zip(request.held).and_then(|(ahead, held)| ahead.checked_add(held));
                request.turn = turn.filter(|&ns| ns <= LONGEST_NS);
            }
        }
    }

    /// F: how long a request of a processor waits in a queue at most.
    fn ahead_in_queue(&self, cpu: usize, resource: usize) -> Option<u64> {
        let of_each = self.longest_elsewhere(cpu, resource)?;
        of_each.values().try_fold(0_u64, |sum, &(longest, ..)| sum.checked_add(longest))
    }

    /// Of each other processor with users of a resource: its longest section there, and whose; `None`: one has no bound.
    fn longest_elsewhere(
        &self,
        cpu: usize,
        resource: usize,
    ) -> Option<BTreeMap<usize, (u64, Reverse<usize>)>> {
        let mut found: BTreeMap<usize, (u64, Reverse<usize>)> = BTreeMap::new();
        for &user in self.users.get(&resource).into_iter().flatten() {
            if self.members[user].cpu == cpu {
                continue;
            }
            let (.., longest) = self.held(user, resource)?;
            let known = found.entry(self.members[user].cpu).or_insert((longest, Reverse(user)));
            *known = (*known).max((longest, Reverse(user)));
        }
        Some(found)
    }

    /// The waits of one job of a task: for the other jobs of its processor that ask, and in the queues for other processors.
    pub(super) fn waits_in_turn(
        &self,
        number: usize,
        x: u64,
        effort: &mut u64,
        add: Add<'_>,
    ) -> Result<(), Gap> {
        let member = &self.members[number];
        if member.requests.is_empty() {
            return Ok(());
        }
        let all = member.requests.len() as u64;
        let asking = |&other: &usize| !self.members[other].requests.is_empty();
        let here: Vec<usize> = self.local[member.cpu].iter().copied().filter(asking).collect();
        let turns = |other: usize| self.turns(other);
        let mut turn = |who, count, one| add(TermKind::TurnWait, Some(who), None, count, one);
        self.waits_by_importance(number, all, &here, &turns, x, effort, &mut turn)?;
        for (&resource, users) in &self.users {
            let asked = member.requests.iter().filter(|request| request.resource == resource).count() as u64;
            if asked == 0 {
                continue;
            }
            let longest = self.longest_elsewhere(member.cpu, resource).ok_or(Gap::Section)?;
            for (&cpu, &(longest, Reverse(who))) in &longest {
                let mut within = 0_u64;
                for &user in users.iter().filter(|&&user| self.members[user].cpu == cpu) {
                    *effort = effort.checked_sub(1).ok_or(Gap::Effort)?;
                    let (count, ..) = self.held(user, resource).ok_or(Gap::Section)?;
                    within = within.saturating_add(self.sections_within(user, x, count));
                }
                add(TermKind::LockWait, Some(who), Some(resource), asked.min(within), longest);
            }
        }
        Ok(())
    }

    /// How many requests a job of a task has, how long all together keep others of its processor from asking at most, and the longest; `None` without a bound.
    fn turns(&self, number: usize) -> Option<(u64, u64, u64)> {
        let mut found = (0_u64, 0_u64, 0_u64);
        for request in &self.members[number].requests {
            let turn = request.turn?;
            found = (found.0 + 1, found.1.checked_add(turn)?, found.2.max(turn));
        }
        Some(found)
    }
}
