//! Every run of a tiny sporadic system on several processors below one root, in whole units of time: the oracle of global tests.
//!
//! Each task may release a job at any instant at least its period after the last one, or not. All states that this can reach are visited, so
//! the longest response found is the worst one, and a miss that is not found is in no run. The rules are those of clusters in decision 0008:
//! the m first jobs run; equals go by the time of their release, then by their place in the list. Written for plainness; it shares no code with any
//! analysis or simulator.

use std::collections::{HashSet, VecDeque};

/// A tiny sporadic task, in units. The deadline is at most the period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TinyGlobalTask {
    /// Longest execution.
    pub wcet: u8,
    /// Least time between releases.
    pub period: u8,
    /// After the release.
    pub deadline: u8,
    /// Smaller is more important. EDF does not look at it.
    pub rank: u8,
    /// Whether jobs come exactly a period apart once the first has come.
    pub is_periodic: bool,
}

/// How jobs are ordered and executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TinyRules {
    /// By deadline; else by rank.
    pub edf: bool,
    /// Whether a job that has begun keeps its processor.
    pub keeps: bool,
    /// Whether jobs may also execute for less than their wcet, any whole number of units from 1 on.
    pub shorter: bool,
    /// How many processors.
    pub processors: usize,
}

/// What all runs together show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TinyAnswer {
    /// Tasks with a late job in some run.
    pub late: Vec<usize>,
    /// The worst response of each task; where some task is late, of the runs up to their first miss.
    pub worst: Vec<u8>,
    /// How many states were visited.
    pub states: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Place {
    /// Units since the last release, at most the period where no job is there.
    since: u8,
    left: u8,
    runs: bool,
    /// Whether any job has come.
    begun: bool,
}

/// Visits all states; `None` beyond `limit` of them.
#[must_use]
pub fn every_run(tasks: &[TinyGlobalTask], rules: TinyRules, limit: usize) -> Option<TinyAnswer> {
    let start: Vec<Place> =
        tasks.iter().map(|task| Place { since: task.period, ..Place::default() }).collect();
    let mut answer = TinyAnswer { late: Vec::new(), worst: vec![0; tasks.len()], states: 0 };
    let mut seen = HashSet::from([start.clone()]);
    let mut open = VecDeque::from([start]);
    while let Some(state) = open.pop_front() {
        for released in releases(tasks, rules, &state) {
            let Some(next) = one_unit(tasks, rules, released, &mut answer) else { continue };
            if seen.insert(next.clone()) {
                if seen.len() > limit {
                    return None;
                }
                open.push_back(next);
            }
        }
    }
    answer.states = seen.len();
    answer.late.sort_unstable();
    answer.late.dedup();
    Some(answer)
}

/// The states after the releases of an instant.
fn releases(tasks: &[TinyGlobalTask], rules: TinyRules, state: &[Place]) -> Vec<Vec<Place>> {
    let mut all = vec![state.to_vec()];
    for (index, task) in tasks.iter().enumerate() {
        if state[index].left > 0 || state[index].since < task.period {
            continue;
        }
        let least = if rules.shorter { 1 } else { task.wcet };
        let before = all.clone();
        for left in least..=task.wcet {
            for mut one in before.clone() {
                one[index] = Place { since: 0, left, runs: false, begun: task.is_periodic };
                all.push(one);
            }
        }
        if task.is_periodic && state[index].begun {
            // The next one comes now.
            all.retain(|one| one[index].left > 0);
        }
    }
    all
}

/// The state a unit later; `None` where a job is late then.
fn one_unit(
    tasks: &[TinyGlobalTask],
    rules: TinyRules,
    mut state: Vec<Place>,
    answer: &mut TinyAnswer,
) -> Option<Vec<Place>> {
    let mut waiting: Vec<usize> = (0..tasks.len()).filter(|&task| state[task].left > 0).collect();
    waiting.sort_by_key(|&task| {
        let place = state[task];
        let keeps = rules.keeps && place.runs;
        let order = if rules.edf { tasks[task].deadline - place.since } else { tasks[task].rank };
        (!keeps, order, u8::MAX - place.since, task)
    });
    for place in &mut state {
        place.runs = false;
    }
    for &task in waiting.iter().take(rules.processors) {
        state[task].runs = true;
        state[task].left -= 1;
    }
    let mut is_late = false;
    for (index, task) in tasks.iter().enumerate() {
        let place = &mut state[index];
        place.since = (place.since + 1).min(task.period);
        if place.runs && place.left == 0 {
            answer.worst[index] = answer.worst[index].max(place.since);
            place.runs = false;
        }
        if place.left > 0 && place.since >= task.deadline {
            answer.late.push(index);
            is_late = true;
        }
    }
    (!is_late).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDF: TinyRules = TinyRules { edf: true, keeps: false, shorter: false, processors: 2 };

    fn task(wcet: u8, period: u8, rank: u8) -> TinyGlobalTask {
        TinyGlobalTask { wcet, period, deadline: period, rank, is_periodic: false }
    }

    /// Dhall and Liu: two light tasks and a heavy one.
    #[test]
    fn the_heavy_task_is_late_below_one_root_by_deadlines() {
        let tasks = [task(1, 4, 1), task(1, 4, 2), task(5, 5, 0)];
        let by_deadline = every_run(&tasks, EDF, 100_000).expect("few states");
        assert_eq!(by_deadline.late, [2]);
        let by_rank = every_run(&tasks, TinyRules { edf: false, ..EDF }, 100_000).expect("few states");
        assert_eq!((by_rank.late, by_rank.worst), (vec![], vec![1, 2, 5]));
    }

    /// One processor by fixed priorities: the responses of the textbook.
    #[test]
    fn one_processor_has_the_known_responses() {
        let tasks = [task(1, 4, 0), task(2, 6, 1), task(3, 12, 2)];
        let rules = TinyRules { edf: false, processors: 1, ..EDF };
        assert_eq!(every_run(&tasks, rules, 100_000).expect("few states").worst, [1, 3, 10]);
        // A job that has begun is in the way.
        let keeps = TinyRules { keeps: true, ..rules };
        assert_eq!(every_run(&tasks, keeps, 100_000).expect("few states").worst[0], 3);
    }

    #[test]
    fn gives_up_beyond_the_limit() {
        assert_eq!(every_run(&[task(1, 4, 0), task(2, 6, 1)], EDF, 5), None);
    }
}
