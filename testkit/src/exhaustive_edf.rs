//! Every run of a tiny EDF system in integer time: the oracle of exact EDF response times and of demand tests.
//!
//! All states that any sequence of legal arrivals, release delays and tie orders can reach are visited. A task's
//! jobs become ready in the order of their arrivals. Written for plainness; it shares no code with any analysis
//! or simulator.

use std::collections::HashSet;

/// A tiny sporadic task. Times are in units.
#[derive(Clone, Debug)]
pub struct TinyEdfTask {
    /// Execution time of every job.
    pub wcet: u32,
    /// Least separation of arrivals.
    pub separation: u32,
    /// Relative deadline.
    pub deadline: u32,
    /// Largest delay from arrival to readiness.
    pub jitter: u32,
    /// Whether a started job can be preempted at every unit.
    pub preemptive: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct TaskState {
    /// Units since the last arrival, never above the separation.
    since: u32,
    /// Ages of unfinished jobs, oldest first; the first `ready` of them are ready.
    ages: Vec<u32>,
    ready: usize,
    /// Units that the oldest job has executed.
    done: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    tasks: Vec<TaskState>,
    /// The task whose non-preemptive job has started.
    holder: Option<usize>,
}

/// The worst response time of every task from arrival to completion over all runs, or `None` where more than
/// `limit` states can be reached.
#[must_use]
pub fn worst_edf_responses(tasks: &[TinyEdfTask], limit: usize) -> Option<Vec<u32>> {
    let start = TaskState { since: u32::MAX, ..TaskState::default() };
    let mut tasks_state = vec![start; tasks.len()];
    for (state, task) in tasks_state.iter_mut().zip(tasks) {
        state.since = task.separation;
    }
    let initial = State { tasks: tasks_state, holder: None };
    let mut worst = vec![0; tasks.len()];
    let mut seen = HashSet::from([initial.clone()]);
    let mut frontier = vec![initial];
    while let Some(state) = frontier.pop() {
        for released in arrivals_and_releases(tasks, state) {
            for chosen in choices(tasks, &released) {
                let next = execute(tasks, &released, chosen, &mut worst);
                if seen.len() > limit {
                    return None;
                }
                if seen.insert(next.clone()) {
                    frontier.push(next);
                }
            }
        }
    }
    Some(worst)
}

/// All states after the arrivals and releases of one instant.
fn arrivals_and_releases(tasks: &[TinyEdfTask], state: State) -> Vec<State> {
    let mut states = vec![state];
    for (index, task) in tasks.iter().enumerate() {
        let mut arrived = Vec::new();
        for state in states {
            if state.tasks[index].since >= task.separation {
                let mut with = state.clone();
                with.tasks[index].since = 0;
                with.tasks[index].ages.push(0);
                arrived.push(with);
            }
            arrived.push(state);
        }
        states = Vec::new();
        for state in arrived {
            let own = &state.tasks[index];
            let due = own.ages.iter().filter(|&&age| age >= task.jitter).count().max(own.ready);
            for ready in due..=own.ages.len() {
                let mut released = state.clone();
                released.tasks[index].ready = ready;
                states.push(released);
            }
        }
    }
    states
}

/// Every task that EDF may run now, whatever the order of ties.
fn choices(tasks: &[TinyEdfTask], state: &State) -> Vec<Option<usize>> {
    if state.holder.is_some() {
        return vec![state.holder];
    }
    let left = |index: usize| {
        let own = &state.tasks[index];
        (own.ready > 0).then(|| i64::from(tasks[index].deadline) - i64::from(own.ages[0]))
    };
    let Some(earliest) = (0..tasks.len()).filter_map(left).min() else { return vec![None] };
    (0..tasks.len()).filter(|&index| left(index) == Some(earliest)).map(Some).collect()
}

/// One unit of time with this task running.
fn execute(tasks: &[TinyEdfTask], state: &State, chosen: Option<usize>, worst: &mut [u32]) -> State {
    let mut next = state.clone();
    for (own, task) in next.tasks.iter_mut().zip(tasks) {
        own.since = (own.since + 1).min(task.separation);
        own.ages.iter_mut().for_each(|age| *age += 1);
    }
    next.holder = None;
    let Some(index) = chosen else { return next };
    let own = &mut next.tasks[index];
    own.done += 1;
    if own.done == tasks[index].wcet {
        own.done = 0;
        own.ready -= 1;
        worst[index] = worst[index].max(own.ages.remove(0));
    } else if !tasks[index].preemptive {
        next.holder = Some(index);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(wcet: u32, separation: u32, deadline: u32) -> TinyEdfTask {
        TinyEdfTask { wcet, separation, deadline, jitter: 0, preemptive: true }
    }

    #[test]
    fn by_hand() {
        assert_eq!(worst_edf_responses(&[task(2, 5, 5)], 1_000), Some(vec![2]));
        // Either may come second in a tie.
        assert_eq!(worst_edf_responses(&[task(1, 4, 4), task(2, 4, 4)], 10_000), Some(vec![3, 3]));
        let mut long = task(3, 9, 9);
        long.preemptive = false;
        assert_eq!(worst_edf_responses(&[task(1, 5, 3), long], 100_000), Some(vec![3, 4]));
        assert_eq!(worst_edf_responses(&[task(3, 4, 4), task(3, 4, 4)], 1_000), None);
    }
}
