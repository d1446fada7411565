//! The response times of all preemptive tasks at once.
//!
//! Let L(d) be the least L > 0 with `L = B(d) + Σ min(⌈(L + J_j)/T_j⌉, n_j(d)) C_j + I(L)` over all tasks j: the deadline
//! busy period of d in which every task, the one under study too, releases at once. Then
//!
//! ```text
//! R_i = max(C_i, D_i + max over d ≥ D_i − J_i of (L(d) − d))
//! ```
//!
//! for every preemptive task i. For where `L(d) > d − D_i`, all jobs of i that are due by d are released before L(d), so
//! that L(d) is the end that task i's own search finds. And where `L(d) ≤ d − D_i` the processor is idle at x = L(d), before
//! the job arrives; with `d' = d − x` no task has fewer jobs left, so that its own search finds for d' a response at least
//! as long: d does not matter. That argument takes the loads and counts of jobs as subadditive, which lists extended beyond
//! what is counted are not; sets with lists go task by task.
//!
//! So one function of d serves all tasks. L is found for each D − J first, upwards, where each search begins at the end of the
//! last. Between two of them L does not fall, so that L(d) − d exceeds the largest found so far, M, only where
//! `d < L(upper end) − M`: mostly nowhere. Where the right side at `d + M` is some e ≤ d + M, so is L(d), and the next d to
//! look at lies below e − M, as in QPA. Source: `spuri96`; the common function is horolog's own.

use super::due_work::DueWork;
use super::response::{EdfResponse, ResponseAnalysis};
use super::{Budget, Unresolved};

/// An instant from which on the search goes on in one direction: the D − J of a task, or a change of the blocking.
struct Point {
    d: u64,
    blocking: u64,
    /// L(d).
    end: u64,
}

impl ResponseAnalysis {
    /// The worst-case response times of all tasks, in their order; `None` for a task without deadline. All of them together
    /// stay within `shared`; those that need a search of their own within `each` too.
    pub(crate) fn responses(&self, shared: &mut Budget, each: u64) -> Vec<Result<Option<u64>, Unresolved>> {
        let mut work = self.work.clone();
        let mut found: Vec<Result<Option<u64>, Unresolved>> = vec![Ok(None); self.rows.len()];
        let common = work.is_periodic() && self.demand.has_plain_loads();
        if common {
            self.common(&mut work, shared, &mut found);
        }
        for (row, found) in self.rows.iter().zip(&mut found) {
            let Some(own) = row.as_ref().filter(|own| !(common && own.preemptive)) else { continue };
            let mut budget = Budget::terms(each.min(shared.left()));
            let given = budget.left();
            let worst = self.worst(own, self.last_deadline(own), &mut work, &mut budget);
            *found = worst.map(|EdfResponse { response, .. }| Some(response));
            let _ = shared.spend(given - budget.left());
        }
        found
    }

    /// The preemptive tasks of a set without lists.
    fn common(&self, work: &mut DueWork, budget: &mut Budget, found: &mut [Result<Option<u64>, Unresolved>]) {
        let mut tasks: Vec<(u64, usize)> = Vec::new();
        for (index, own) in self.rows.iter().enumerate() {
            let Some(own) = own.as_ref().filter(|own| own.preemptive) else { continue };
            match u64::try_from(own.window) {
                Ok(window) => tasks.push((window, index)),
                Err(_) => found[index] = Err(Unresolved::LateRelease),
            }
        }
        tasks.sort_unstable();
        let mut answered = tasks.len();
        let outcome = self.points(&tasks, work, budget).and_then(|points| {
            let mut most = i64::MIN;
            for (index, point) in points.iter().enumerate().rev() {
                most = self.most_from(point, points.get(index + 1), most, work, budget)?;
                while answered > 0 && tasks[answered - 1].0 >= point.d {
                    answered -= 1;
                    let index = tasks[answered].1;
                    found[index] = Ok(self.rows[index].as_ref().map(|own| {
                        let response = i128::from(own.deadline) + i128::from(most);
                        u64::try_from(response).unwrap_or(0).max(own.cost)
                    }));
                }
            }
            Ok(())
        });
        if let Err(reason) = outcome {
            for (_, index) in &tasks[..answered] {
                found[*index] = Err(reason);
            }
        }
    }

    /// L at every instant from which on some task's jobs are due.
    fn points(
        &self,
        tasks: &[(u64, usize)],
        work: &mut DueWork,
        budget: &mut Budget,
    ) -> Result<Vec<Point>, Unresolved> {
        let Some(&(first, _)) = tasks.first() else { return Ok(Vec::new()) };
        let windows = tasks.iter().map(|(window, _)| *window);
        let changes = self.blocking.iter().map(|piece| piece.from).filter(|&from| from > first);
        let mut instants: Vec<u64> = windows.chain(changes).collect();
        instants.sort_unstable();
        instants.dedup();
        let mut points: Vec<Point> = Vec::with_capacity(instants.len());
        for d in instants {
            let blocking = self.blocking_at(d).time;
            let start = points.last().filter(|last| last.blocking == blocking).map_or(1, |last| last.end);
            let end = self.busy_until(d, blocking, start, work, budget)?;
            points.push(Point { d, blocking, end });
        }
        Ok(points)
    }

    /// The most of L(d) − d from a point on, where `most` is that from the next one on.
    fn most_from(
        &self,
        point: &Point,
        next: Option<&Point>,
        most: i64,
        work: &mut DueWork,
        budget: &mut Budget,
    ) -> Result<i64, Unresolved> {
        let mut most = most.max(point.end as i64 - point.d as i64);
        let (mut until, bound) = match next {
            None => (u64::MAX, self.busy),
            Some(next) if next.blocking == point.blocking => (next.d, next.end),
            Some(next) => (next.d, self.busy_until(next.d - 1, point.blocking, point.end, work, budget)?),
        };
        until = until.min(promising(bound, most));
        while until > point.d + 1 {
            let d = until - 1;
            budget.spend(work.weight_at(d) + self.demand.loads_weight())?;
            // L(d) is at most d + M where no more than that is asked for until then; d > point.d keeps it above zero.
            let reach = (d as i64 + most) as u64;
            let asked =
                work.due_before(d, reach) + u128::from(point.blocking) + self.demand.loads(reach, false);
            let mut bound = u64::try_from(asked).unwrap_or(u64::MAX);
            if bound < reach {
                until = promising(bound, most);
                continue;
            }
            budget.spend(work.weight_at(d))?;
            let Some(step) = work.step_before(until).filter(|&step| step > point.d) else { break };
            if step < d {
                until = step + 1;
                continue;
            }
            if bound > reach {
                bound = self.busy_until(d, point.blocking, point.end, work, budget)?;
                most = most.max(bound as i64 - d as i64);
            }
            until = d.min(promising(bound, most));
        }
        Ok(most)
    }

    /// L(d), which is no less than `start`.
    fn busy_until(
        &self,
        d: u64,
        blocking: u64,
        start: u64,
        work: &mut DueWork,
        budget: &mut Budget,
    ) -> Result<u64, Unresolved> {
        budget.spend(work.weight_at(d))?;
        work.set(d);
        let counted = |x| u128::from(blocking) + work.before(x);
        self.fixed_point(counted, false, start, work, budget).map(|(end, _)| end)
    }
}

/// Only below this can L(d) − d exceed `most` where L(d) is at most `bound`.
fn promising(bound: u64, most: i64) -> u64 {
    u64::try_from(i128::from(bound) - i128::from(most)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edf::{Arrivals, EdfSet, EdfTask, NpTime, TopLoad};
    use crate::hyperbolic_load::HyperbolicLoad;

    /// A number below `bound`, by a linear congruence.
    fn below(state: &mut u64, bound: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % bound
    }

    /// Short times, so that ends and deadlines often meet: jitter up to beyond the deadline, deadlines on both sides of the
    /// period, non-preemptive jobs with and without deadline, lists, loads of each kind.
    fn drawn(state: &mut u64) -> EdfSet {
        let count = 1 + below(state, 6);
        let mut tasks = Vec::new();
        for _ in 0..count {
            let period = 1 + below(state, 40);
            let wcet = 1 + below(state, (period / count).max(1));
            let mut task = EdfTask::new(wcet, period, 1 + below(state, 2 * period + 3));
            if below(state, 2) == 0 {
                task = task.with_jitter(below(state, period + 2));
            }
            if below(state, 4) == 0 {
                task = task.non_preemptive();
            }
            if below(state, 12) == 0 {
                task.deadline = None;
            }
            if below(state, 12) == 0 {
                task.arrivals = Arrivals::Listed((0..5).map(|k| k * 9 + below(state, 9)).collect());
            }
            tasks.push(task);
        }
        let mut loads = Vec::new();
        if below(state, 4) == 0 {
            let utilisation_ppb = 1 + below(state, 200_000_000);
            loads.push(TopLoad::Linear(HyperbolicLoad { utilisation_ppb, period: 1 + below(state, 20) }));
        }
        if below(state, 4) == 0 {
            let arrivals = match below(state, 3) {
                0 => Arrivals::Listed(vec![0, 3, 3, 20]),
                _ => Arrivals::Separated(5 + below(state, 20)),
            };
            loads.push(TopLoad::Interrupts { cost: 1, arrivals, jitter: below(state, 4) });
        }
        let set = EdfSet::new(tasks, loads).expect("a valid set");
        set.with_extra_blocking(below(state, 2)).expect("a small cost")
    }

    /// The first of the worst responses by looking at every deadline.
    fn by_every_deadline(
        analysis: &ResponseAnalysis,
        task: usize,
    ) -> Result<Option<EdfResponse>, Unresolved> {
        let mut worst: Option<EdfResponse> = None;
        analysis.scan(task, &mut Budget::default(), |found| {
            if worst.is_none_or(|w| found.response > w.response) {
                worst = Some(found);
            }
            false
        })?;
        Ok(worst)
    }

    #[test]
    fn every_answer_is_that_of_the_search_of_every_deadline() {
        let mut state = 5;
        let (mut compared, mut late, mut refused) = (0, 0, 0);
        for round in 0..30_000 {
            let set = drawn(&mut state);
            for time in [NpTime::Continuous, NpTime::Units(1)] {
                let Ok(analysis) = ResponseAnalysis::new(&set, time, &mut Budget::default()) else {
                    refused += 1;
                    continue;
                };
                let together = analysis.responses(&mut Budget::default(), 100_000_000);
                for (task, together) in together.into_iter().enumerate() {
                    let expected = by_every_deadline(&analysis, task);
                    let alone = analysis.response(task, &mut Budget::default());
                    assert_eq!(alone, expected, "round {round}, task {task}, {time:?}: {set:?}");
                    let expected = expected.map(|found| found.map(|found| found.response));
                    assert_eq!(together, expected, "round {round}, task {task}, {time:?}: {set:?}");
                    compared += u32::from(matches!(expected, Ok(Some(_))));
                    late += u32::from(
                        matches!(expected, Ok(Some(response)) if set.tasks()[task].deadline < Some(response)),
                    );
                }
            }
        }
        assert!(compared > 50_000 && late > 5_000 && refused > 1_000, "{compared} {late} {refused}");
    }

    /// Beside a list each task has a search of its own, and nothing else is searched.
    #[test]
    fn the_tasks_of_a_set_with_a_list_cost_what_each_costs_alone() {
        let listed = EdfTask { arrivals: Arrivals::Listed(vec![0, 9, 20]), ..EdfTask::new(1, 1, 30) };
        let tasks = vec![
            EdfTask::new(2, 10, 9),
            EdfTask::new(3, 14, 20).non_preemptive(),
            EdfTask::new(2, 25, 25),
            listed,
        ];
        let set = EdfSet::new(tasks, vec![]).expect("a valid set");
        let analysis =
            ResponseAnalysis::new(&set, NpTime::Continuous, &mut Budget::default()).expect("a busy period");
        let mut together = Budget::terms(1_000_000);
        let found = analysis.responses(&mut together, 1_000_000);
        let mut alone = Budget::terms(1_000_000);
        for (task, found) in found.into_iter().enumerate() {
            let response = analysis.response(task, &mut alone).map(|found| found.map(|found| found.response));
            assert_eq!(found, response, "{task}");
        }
        assert_eq!(together.left(), alone.left());
    }
}
