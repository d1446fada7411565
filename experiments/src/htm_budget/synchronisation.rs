//! Several processors under partitioned EDF and one more that executes all sections of the shared resource (key raj88): a job's first part
//! executes on its own processor, preemptively, then its section on the synchronisation processor, without preemption, the earliest
//! deadline first, and the job is done.
//!
//! Exact in whole nanoseconds. Ties go to the task with the lower number, on both kinds of processors. One hyperperiod from a synchronous
//! release is looked at: without a miss nothing is left at its end.

use super::sets::{FULL, Task, hyperperiod, load};

/// On which processor each task's first part is: the largest utilisations first, each on the least loaded processor (worst fit decreasing).
pub(super) fn partition(tasks: &[Task], processors: usize) -> Vec<usize> {
    let utilisation = |task: &Task| load(&[Task { inside: 0, ..*task }]);
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(utilisation(&tasks[index])), index));
    let mut loads = vec![0_u128; processors];
    let mut places = vec![0; tasks.len()];
    for index in order {
        let place = (0..processors).min_by_key(|&place| (loads[place], place)).unwrap_or(0);
        loads[place] += utilisation(&tasks[index]);
        places[index] = place;
    }
    places
}

/// A job of a task that is under way.
#[derive(Clone, Copy, Debug)]
struct Job {
    deadline: u64,
    /// What is left of the part that it is in.
    left: u64,
    is_inside: bool,
}

/// Whether no job of a hyperperiod is late.
pub(super) fn meets(tasks: &[Task], places: &[usize], processors: usize) -> bool {
    let (is_fitting, end) = (fits(tasks, places, processors), hyperperiod(tasks));
    if !is_fitting {
        return false;
    }
    let mut jobs: Vec<Option<Job>> = vec![None; tasks.len()];
    let mut next: Vec<u64> = vec![0; tasks.len()];
    let (mut now, mut holder) = (0_u64, None);
    loop {
        for (index, task) in tasks.iter().enumerate() {
            if next[index] != now {
                continue;
            }
            // The deadline is the next release: what is left of a job then is late.
            if jobs[index].is_some() {
                return false;
            }
            if now < end {
                let is_inside = task.outside == 0;
                let left = if is_inside { task.inside } else { task.outside };
                jobs[index] = Some(Job { deadline: now + task.period, left, is_inside });
                next[index] = now + task.period;
            }
        }
        if now >= end {
            return true;
        }
        let earliest = |is_one: &dyn Fn(usize, &Job) -> bool| {
            let all = jobs.iter().enumerate().filter_map(|(index, job)| job.map(|job| (index, job)));
            all.filter(|(index, job)| is_one(*index, job)).min_by_key(|(index, job)| (job.deadline, *index))
        };
        holder = holder.or_else(|| earliest(&|_, job| job.is_inside).map(|(index, _)| index));
        let mut running: Vec<usize> = (0..processors)
            .filter_map(|cpu| earliest(&|index, job| !job.is_inside && places[index] == cpu))
            .map(|(index, _)| index)
            .collect();
        running.extend(holder);
        let ends = running.iter().filter_map(|&index| jobs[index].map(|job| now + job.left)).min();
        let until = next.iter().copied().chain(ends).min().unwrap_or(end);
        for index in running {
            let Some(job) = &mut jobs[index] else { continue };
            job.left -= until - now;
            if job.left > 0 {
                continue;
            }
            if job.is_inside {
                jobs[index] = None;
                holder = None;
            } else {
                *job = Job { left: tasks[index].inside, is_inside: true, ..*job };
            }
        }
        now = until;
    }
}

/// Whether no processor has more than it can execute in the long run.
fn fits(tasks: &[Task], places: &[usize], processors: usize) -> bool {
    let outside = |cpu: usize| {
        let own = tasks.iter().zip(places).filter(|(_, place)| **place == cpu);
        let own: Vec<Task> = own.map(|(task, _)| Task { inside: 0, ..*task }).collect();
        load(&own)
    };
    let inside: Vec<Task> = tasks.iter().map(|task| Task { outside: 0, ..*task }).collect();
    (0..processors).all(|cpu| outside(cpu) <= FULL) && load(&inside) <= FULL
}

#[cfg(test)]
mod tests {
    use super::super::sets::UNIT;
    use super::*;
    use horolog_draw::Random;

    /// Unit by unit from the rules alone: every processor executes one unit of the job it should, then time goes on by one.
    fn naive(tasks: &[(u64, u64, u64)], places: &[usize], processors: usize, until: u64) -> bool {
        let mut left: Vec<(u64, u64)> = vec![(0, 0); tasks.len()];
        let mut due = vec![0; tasks.len()];
        let mut inside: Option<usize> = None;
        for now in 0..=until {
            for index in 0..tasks.len() {
                if now % tasks[index].0 == 0 {
                    if left[index] != (0, 0) {
                        return false;
                    }
                    left[index] = (tasks[index].1, tasks[index].2);
                    due[index] = now + tasks[index].0;
                }
            }
            let first =
                |candidates: Vec<usize>| candidates.into_iter().min_by_key(|&index| (due[index], index));
            if inside.is_none() {
                inside = first((0..tasks.len()).filter(|&i| left[i].0 == 0 && left[i].1 > 0).collect());
            }
            let outside: Vec<Option<usize>> = (0..processors)
                .map(|cpu| first((0..tasks.len()).filter(|&i| places[i] == cpu && left[i].0 > 0).collect()))
                .collect();
            for index in outside.into_iter().flatten() {
                left[index].0 -= 1;
            }
            if let Some(index) = inside {
                left[index].1 -= 1;
                inside = inside.filter(|_| left[index].1 > 0);
            }
        }
        true
    }

    #[test]
    fn event_by_event_is_unit_by_unit() {
        let mut random = Random::new(5);
        let (mut met, mut missed) = (0, 0);
        for _ in 0..3_000 {
            let processors = random.between(1, 3) as usize;
            let count = random.between(1, 5) as usize;
            let units: Vec<(u64, u64, u64)> = (0..count)
                .map(|_| ([4, 6, 8, 12][random.below(4) as usize], random.below(4), random.between(1, 2)))
                .collect();
            let of = |&(period, outside, inside): &(u64, u64, u64)| Task {
                period: period * UNIT,
                outside: outside * UNIT,
                inside: inside * UNIT,
                is_high: false,
            };
            let tasks: Vec<Task> = units.iter().map(of).collect();
            let places = partition(&tasks, processors);
            // An overload misses within a few hyperperiods of 24: a backlog grows by one unit at least in each.
            let expected = naive(&units, &places, processors, 24 * 40);
            assert_eq!(meets(&tasks, &places, processors), expected, "{units:?} on {places:?}");
            *(if expected { &mut met } else { &mut missed }) += 1;
        }
        assert!(met > 500 && missed > 500, "{met} met, {missed} missed");
    }

    #[test]
    fn one_nanosecond_more_is_late() {
        let task = |period, outside, inside| Task { period: period * UNIT, outside, inside, is_high: false };
        // Both ask at 1: the first has the section until 3, the second one from 3 to 4.
        let tasks = |more| [task(4, UNIT, 2 * UNIT), task(4, UNIT, UNIT + more)];
        assert!(meets(&tasks(0), &[0, 1], 2));
        assert!(!meets(&tasks(1), &[0, 1], 2));
    }
}
