//! Every run of a tiny system in integer time: the oracle of exact response times.
//!
//! All states that any sequence of legal arrivals, release delays, path choices and tie orders can reach are
//! visited, so the longest response that is found is the worst case itself. Written for plainness; it shares no
//! code with any analysis or simulator.

use std::collections::{HashSet, VecDeque};

/// A tiny sporadic task. Times are in units.
#[derive(Clone, Debug)]
pub struct TinyTask {
    /// Least separation of arrivals.
    pub separation: u32,
    /// Largest delay from arrival to readiness.
    pub jitter: u32,
    /// Larger is more important; equals run first in, first out.
    pub priority: u32,
    /// Whether a job can be preempted at every unit; else only between segments.
    pub preemptive: bool,
    /// The paths that a job may take, each a list of segments of at least one unit.
    pub paths: Vec<Vec<u32>>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct TaskState {
    /// Units since the last arrival, never above the separation.
    since: u32,
    /// Ages of jobs that have arrived and are not ready, oldest first.
    delayed: Vec<u32>,
    /// Ages of ready jobs, oldest first.
    ready: Vec<u32>,
    /// Path, segment and units left in it of the oldest ready job, once started.
    started: Option<(usize, usize, u32)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    tasks: Vec<TaskState>,
    /// Ready jobs as indices of tasks, in the order in which they became ready.
    queue: Vec<usize>,
    /// The task that is inside a non-preemptive segment.
    holder: Option<usize>,
}

/// The worst response time of every task from arrival to completion over all runs, or `None` where more than
/// `limit` states can be reached.
#[must_use]
pub fn worst_responses(tasks: &[TinyTask], limit: usize) -> Option<Vec<u32>> {
    let initial = State {
        tasks: tasks.iter().map(|t| TaskState { since: t.separation, ..TaskState::default() }).collect(),
        queue: Vec::new(),
        holder: None,
    };
    let mut worst = vec![0; tasks.len()];
    let mut seen = HashSet::from([initial.clone()]);
    let mut frontier = VecDeque::from([initial]);
    while let Some(state) = frontier.pop_front() {
        for released in releases(tasks, &state) {
            for next in execute_unit(tasks, released, &mut worst) {
                if seen.len() > limit {
                    return None;
                }
                if seen.insert(next.clone()) {
                    frontier.push_back(next);
                }
            }
        }
    }
    Some(worst)
}

/// All states after the arrivals and releases of one instant.
fn releases(tasks: &[TinyTask], state: &State) -> Vec<State> {
    // Each entry: the state so far, and the tasks whose jobs became ready at this instant.
    let mut partial = vec![(state.clone(), Vec::new())];
    for (index, task) in tasks.iter().enumerate() {
        let mut grown = Vec::new();
        for (state, newly) in partial {
            let mut arrivals = vec![state.clone()];
            if state.tasks[index].since >= task.separation {
                let mut arrived = state;
                arrived.tasks[index].since = 0;
                arrived.tasks[index].delayed.push(0);
                arrivals.push(arrived);
            }
            for arrived in arrivals {
                let waiting = arrived.tasks[index].delayed.len();
                let due = arrived.tasks[index].delayed.iter().filter(|&&age| age >= task.jitter).count();
                for count in due..=waiting {
                    let mut ready = arrived.clone();
                    let mut newly = newly.clone();
                    for _ in 0..count {
                        let age = ready.tasks[index].delayed.remove(0);
                        ready.tasks[index].ready.push(age);
                        newly.push(index);
                    }
                    grown.push((ready, newly));
                }
            }
        }
        partial = grown;
    }
    partial
        .into_iter()
        .flat_map(|(state, newly)| orders(&newly).into_iter().map(move |o| queued(&state, &o)))
        .collect()
}

fn queued(state: &State, order: &[usize]) -> State {
    let mut state = state.clone();
    state.queue.extend_from_slice(order);
    state
}

/// All orders of the tasks that became ready at one instant.
fn orders(newly: &[usize]) -> HashSet<Vec<usize>> {
    if newly.is_empty() {
        return HashSet::from([Vec::new()]);
    }
    let mut all = HashSet::new();
    for index in 0..newly.len() {
        let mut rest = newly.to_vec();
        let first = rest.remove(index);
        for mut order in orders(&rest) {
            order.insert(0, first);
            all.insert(order);
        }
    }
    all
}

/// All states after one unit of time, one for each path that a starting job may take.
fn execute_unit(tasks: &[TinyTask], state: State, worst: &mut [u32]) -> Vec<State> {
    let chosen = state.holder.or_else(|| most_important(tasks, &state.queue));
    let Some(index) = chosen else { return vec![aged(tasks, state)] };
    let starts: Vec<(usize, usize, u32)> = match state.tasks[index].started {
        Some(progress) => vec![progress],
        None => tasks[index].paths.iter().enumerate().map(|(path, p)| (path, 0, p[0])).collect(),
    };
    starts
        .into_iter()
        .map(|(path, segment, left)| {
            let mut next = aged(tasks, state.clone());
            let segments = &tasks[index].paths[path];
            let (segment, left) = if left > 1 {
                (segment, left - 1)
            } else {
                (segment + 1, segments.get(segment + 1).copied().unwrap_or(0))
            };
            let inside = left > 0 && left < segments[segment.min(segments.len() - 1)];
            next.holder = (inside && !tasks[index].preemptive).then_some(index);
            if left == 0 {
                let response = next.tasks[index].ready.remove(0);
                worst[index] = worst[index].max(response);
                next.tasks[index].started = None;
                let place = next.queue.iter().position(|&t| t == index).expect("a running job is queued");
                next.queue.remove(place);
            } else {
                next.tasks[index].started = Some((path, segment, left));
            }
            next
        })
        .collect()
}

/// The task whose job runs: of the most important, the one that has been ready for longest.
fn most_important(tasks: &[TinyTask], queue: &[usize]) -> Option<usize> {
    let top = queue.iter().map(|&t| tasks[t].priority).max()?;
    queue.iter().copied().find(|&t| tasks[t].priority == top)
}

fn aged(tasks: &[TinyTask], mut state: State) -> State {
    for (task, tiny) in state.tasks.iter_mut().zip(tasks) {
        task.since = (task.since + 1).min(tiny.separation);
        for age in task.delayed.iter_mut().chain(&mut task.ready) {
            *age += 1;
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(separation: u32, priority: u32, preemptive: bool, paths: &[&[u32]]) -> TinyTask {
        let paths = paths.iter().map(|p| p.to_vec()).collect();
        TinyTask { separation, jitter: 0, priority, preemptive, paths }
    }

    #[test]
    fn deferred_example_in_integer_time() {
        let tasks =
            [task(10, 3, false, &[&[2]]), task(15, 2, false, &[&[2, 2]]), task(40, 1, false, &[&[3, 4, 2]])];
        assert_eq!(worst_responses(&tasks, 2_000_000), Some(vec![5, 9, 21]));
    }

    #[test]
    fn preemptive_pair() {
        let tasks = [task(4, 2, true, &[&[1]]), task(6, 1, true, &[&[3]])];
        assert_eq!(worst_responses(&tasks, 1_000_000), Some(vec![1, 4]));
    }

    #[test]
    fn equals_wait_for_whoever_came_first() {
        let tasks = [task(5, 1, true, &[&[2]]), task(5, 1, true, &[&[1]])];
        assert_eq!(worst_responses(&tasks, 1_000_000), Some(vec![3, 3]));
    }

    #[test]
    fn gives_up_beyond_the_limit() {
        assert_eq!(worst_responses(&[task(4, 2, true, &[&[1]]), task(6, 1, true, &[&[3]])], 5), None);
    }
}
