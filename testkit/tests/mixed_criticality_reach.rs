//! Mixed criticality on tiny systems, in every behaviour: all sporadic arrivals, all lengths of jobs, all instants of a change, all ties, by a
//! search through states that is written from decision 0021 alone. No response lies beyond a bound, and what EDF-VD accepts misses nothing.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::mixed_criticality::bounds::{LevelTask, amc_max, amc_rtb, finishes, low_mode, smc};
use horolog_analysis::mixed_criticality::edf_vd::{EdfLevel, shorten};
use horolog_analysis::mixed_criticality::order::audsley;
use horolog_testkit::Random;
use std::collections::HashSet;

/// A task of the search.
#[derive(Clone, Copy, Debug)]
struct Tiny {
    period: u8,
    deadline: u8,
    low: u8,
    high: Option<u8>,
    degraded: Option<u8>,
    /// Under EDF, what orders its jobs in the low mode.
    ordering: u8,
}

/// So many units since the last release (the period: it may release), and its job: what it has executed, and its age.
type One = (u8, Option<(u8, u8)>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    is_high: bool,
    tasks: Vec<One>,
    /// Who has executed the last unit.
    ran: Option<usize>,
}

/// What is seen in all behaviours.
struct Seen {
    worst: Vec<u8>,
    changes: bool,
}

struct Search<'a> {
    tasks: &'a [Tiny],
    is_edf: bool,
    worst: Vec<u8>,
    changes: bool,
}

impl Search<'_> {
    fn most(&self, task: usize) -> u8 {
        self.tasks[task].high.unwrap_or(self.tasks[task].low)
    }

    fn ends(&mut self, state: &mut State, task: usize) {
        let (_, age) = state.tasks[task].1.take().unwrap();
        self.worst[task] = self.worst[task].max(age);
    }

    /// The mode, once it is known whether the job that ran is done; `None` where a deadline is missed.
    fn change(&mut self, mut state: State) -> Option<State> {
        let limit = |task: &Tiny, executed: u8| task.degraded.is_some_and(|most| executed >= most);
        let overruns = |(task, (_, job)): (&Tiny, &One)| {
            task.high.is_some() && job.is_some_and(|(executed, _)| executed >= task.low)
        };
        if !state.is_high && self.tasks.iter().zip(&state.tasks).any(overruns) {
            (state.is_high, self.changes) = (true, true);
        }
        if state.is_high {
            for (index, task) in self.tasks.iter().enumerate() {
                if task.high.is_some() {
                    continue;
                }
                match state.tasks[index].1 {
                    Some((executed, _)) if limit(task, executed) => self.ends(&mut state, index),
                    Some(_) if task.degraded.is_none() => state.tasks[index].1 = None,
                    _ => {}
                }
                if task.degraded.is_none() {
                    state.tasks[index].0 = task.period;
                }
            }
            if state.tasks.iter().all(|(_, job)| job.is_none()) {
                state.is_high = false;
            }
        }
        let is_late = |(task, (_, job)): (&Tiny, &One)| job.is_some_and(|(_, age)| age >= task.deadline);
        if self.tasks.iter().zip(&state.tasks).any(is_late) { None } else { Some(state) }
    }

    /// Every way on from an instant; `None` where one misses a deadline.
    fn next(&mut self, state: &State) -> Option<Vec<State>> {
        let mut ended = Vec::new();
        match state.ran {
            None => ended.push(state.clone()),
            Some(task) => {
                if state.tasks[task].1.unwrap().0 < self.most(task) {
                    ended.push(state.clone());
                }
                let mut done = state.clone();
                self.ends(&mut done, task);
                ended.push(done);
            }
        }
        let mut after = Vec::new();
        for state in ended {
            let state = self.change(state)?;
            for choice in 0_u32..1 << self.tasks.len() {
                self.released(&state, choice, &mut after);
            }
        }
        Some(after)
    }

    /// The tasks of `choice` release a job, and one unit passes.
    fn released(&self, state: &State, choice: u32, after: &mut Vec<State>) {
        let mut state = state.clone();
        for (index, task) in self.tasks.iter().enumerate() {
            if choice >> index & 1 == 0 {
                continue;
            }
            let may = task.high.is_some() || task.degraded.is_some() || !state.is_high;
            if !may || state.tasks[index].0 < task.period {
                return;
            }
            assert_eq!(state.tasks[index].1, None, "deadlines are up to periods");
            state.tasks[index] = (0, Some((0, 0)));
        }
        for ran in self.firsts(&state) {
            let mut next = State { ran, ..state.clone() };
            for (index, (since, job)) in next.tasks.iter_mut().enumerate() {
                *since = (*since + 1).min(self.tasks[index].period);
                if let Some((executed, age)) = job {
                    (*executed, *age) = (*executed + u8::from(ran == Some(index)), *age + 1);
                }
            }
            after.push(next);
        }
    }

    /// Who may have the processor.
    fn firsts(&self, state: &State) -> Vec<Option<usize>> {
        let waits: Vec<usize> = (0..self.tasks.len()).filter(|&task| state.tasks[task].1.is_some()).collect();
        if !self.is_edf {
            return vec![waits.first().copied()];
        }
        let due = |task: usize| {
            let of = &self.tasks[task];
            let relative = if state.is_high { of.deadline } else { of.ordering };
            i16::from(relative) - i16::from(state.tasks[task].1.unwrap().1)
        };
        let Some(first) = waits.iter().map(|&task| due(task)).min() else { return vec![None] };
        waits.into_iter().filter(|&task| due(task) == first).map(Some).collect()
    }
}

/// The longest responses in all behaviours; `None` where a deadline can be missed. Under fixed priorities the first task is the most important.
fn explore(tasks: &[Tiny], is_edf: bool) -> Option<Seen> {
    let start =
        State { is_high: false, tasks: tasks.iter().map(|task| (task.period, None)).collect(), ran: None };
    let mut search = Search { tasks, is_edf, worst: vec![0; tasks.len()], changes: false };
    let (mut known, mut open) = (HashSet::from([start.clone()]), vec![start]);
    while let Some(state) = open.pop() {
        for next in search.next(&state)? {
            if known.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    Some(Seen { worst: search.worst, changes: search.changes })
}

fn level(task: &Tiny) -> LevelTask {
    LevelTask {
        period: task.period.into(),
        deadline: task.deadline.into(),
        jitter: 0,
        low: task.low.into(),
        high: task.high.map(u64::from),
        degraded: task.degraded.map(u64::from),
    }
}

fn drawn(index: u64, seed: u64, longest: u64) -> Vec<Tiny> {
    let mut random = Random::of_item(seed, index);
    let count = 2 + random.below(2) as usize;
    let mut tasks = Vec::new();
    while tasks.len() < count {
        let period = 3 + random.below(longest) as u8;
        let low = 1 + random.below(3) as u8;
        let high = (random.below(2) == 0).then(|| low + random.below(4) as u8);
        let degraded = (high.is_none() && low > 1 && random.below(3) > 0)
            .then(|| 1 + random.below(u64::from(low) - 1) as u8);
        let deadline = period - random.below(3).min(u64::from(period) - 1) as u8;
        if high.unwrap_or(low) <= deadline {
            tasks.push(Tiny { period, deadline, low, high, degraded, ordering: deadline });
        }
    }
    tasks
}

#[test]
fn no_behaviour_exceeds_a_bound() {
    let (mut compared, mut attained, mut degraded, mut tight) = (0, 0, 0, 0);
    for index in 0..1_500 {
        let tasks = drawn(index, 41, 7);
        let levels: Vec<LevelTask> = tasks.iter().map(level).collect();
        let bound = |place: usize| amc_max(&levels[place], &levels[..place], 1_000);
        let bounds: Option<Vec<u64>> = (0..tasks.len()).map(bound).collect();
        let Some(bounds) = bounds else { continue };
        let seen =
            explore(&tasks, false).unwrap_or_else(|| panic!("{index}: a miss behind {bounds:?}: {tasks:?}"));
        for (place, &bound) in bounds.iter().enumerate() {
            let worst = u64::from(seen.worst[place]);
            let rtb = amc_rtb(&levels[place], &levels[..place]);
            assert!(worst <= bound, "{index}: task {place} takes {worst}, bound {bound}: {tasks:?}");
            assert!(rtb.is_none_or(|rtb| bound <= rtb), "{index}: {bound} {rtb:?}: {tasks:?}");
            compared += 1;
            attained += u32::from(worst == bound);
            let is_above = tasks[..place].iter().any(|task| task.degraded.is_some()) && seen.changes;
            degraded += u32::from(is_above || tasks[place].degraded.is_some());
            tight += u32::from(worst == bound && is_above && tasks[place].high.is_some());
        }
    }
    assert!(
        compared > 800 && attained > 600 && degraded > 200 && tight > 10,
        "{compared} {attained} {degraded} {tight}"
    );
}

type Holds = fn(&LevelTask, &[LevelTask]) -> bool;

/// Audsley's search finds an order where one of all orders passes a test, and what it finds passes.
#[test]
fn an_order_is_found_where_there_is_one() {
    let tests: [(&str, Holds); 4] = [
        ("smc", |task, above| smc(task, above).is_some() && low_mode(task, above).is_some()),
        ("finishes", |task, above| finishes(task, above).is_some()),
        ("amc-rtb", |task, above| amc_rtb(task, above).is_some()),
        ("amc-max", |task, above| amc_max(task, above, 1_000).is_some()),
    ];
    let mut found = [[0; 2]; 4];
    for index in 0..4_000 {
        let mut tasks = drawn(index, 42, 20);
        tasks.extend(drawn(index, 43, 30));
        let levels: Vec<LevelTask> = tasks.iter().map(level).collect();
        for (number, (name, holds)) in tests.iter().enumerate() {
            let passes = |order: &[usize]| {
                let set: Vec<LevelTask> = order.iter().map(|&task| levels[task]).collect();
                (0..set.len()).all(|place| holds(&set[place], &set[..place]))
            };
            let by_search = audsley(&levels, &[], holds);
            let by_all = any_order(levels.len(), &mut Vec::new(), &passes);
            assert_eq!(by_search.is_some(), by_all, "{index}: {name}: {tasks:?}");
            if let Some(order) = &by_search {
                assert!(passes(order), "{index}: {name}: {order:?}: {tasks:?}");
            }
            found[number][usize::from(by_all)] += 1;
        }
    }
    assert!(found.iter().all(|[no, yes]| *no > 300 && *yes > 300), "{found:?}");
}

fn any_order(count: usize, order: &mut Vec<usize>, passes: &impl Fn(&[usize]) -> bool) -> bool {
    if order.len() == count {
        return passes(order);
    }
    (0..count).any(|task| {
        if order.contains(&task) {
            return false;
        }
        order.push(task);
        // What fails at the top fails below.
        let is_found = any_order(count, order, passes);
        order.pop();
        is_found
    })
}

/// All pairs of tasks with periods up to 6, and threes that are drawn.
#[test]
fn what_edf_with_virtual_deadlines_accepts_misses_nothing() {
    let mut sets = Vec::new();
    for (first, second) in (1..=6).flat_map(|a| (1..=6).map(move |b| (a, b))) {
        for low in 1..=first {
            for wcet in 1..=second {
                sets.extend((wcet..=second).map(|high| vec![(first, low, None), (second, wcet, Some(high))]));
                for high in wcet..=second {
                    sets.extend(
                        (low..=first)
                            .map(|other| vec![(first, low, Some(other)), (second, wcet, Some(high))]),
                    );
                }
            }
        }
    }
    let mut random = Random::of_item(44, 0);
    sets.extend((0..1_500).map(|_| {
        (0..3)
            .map(|_| {
                let period = 2 + random.below(6);
                let low = 1 + random.below(period.div_ceil(3));
                (period, low, (random.below(2) == 0).then(|| (low + random.below(4)).min(period)))
            })
            .collect()
    }));
    let (mut accepted, mut shortened, mut safe) = (0, 0, 0);
    for (index, set) in sets.iter().enumerate() {
        let levels: Vec<EdfLevel> =
            set.iter().map(|&(period, low, high)| EdfLevel { period, low, high }).collect();
        let found = shorten(&levels, 100_000);
        let orderings = found
            .as_ref()
            .map_or_else(|| set.iter().map(|task| task.0).collect(), |found| found.deadlines.clone());
        let tiny = |(&(period, low, high), ordering): (&(u64, u64, Option<u64>), u64)| Tiny {
            period: period as u8,
            deadline: period as u8,
            low: low as u8,
            high: high.map(|high| high as u8),
            degraded: None,
            ordering: ordering as u8,
        };
        if found.is_none() && index % 7 > 0 {
            continue;
        }
        let tasks: Vec<Tiny> = set.iter().zip(orderings.iter().copied()).map(tiny).collect();
        let seen = explore(&tasks, true);
        let Some(found) = found else {
            safe += u32::from(seen.is_some());
            continue;
        };
        assert!(seen.is_some(), "{index}: {tasks:?} misses with x = {}", found.factor);
        accepted += 1;
        shortened += u32::from(orderings.iter().zip(set).any(|(ordering, task)| *ordering < task.0));
    }
    assert!(
        accepted > 1_000 && shortened > 50 && safe < accepted,
        "{accepted} accepted, {shortened} shortened, {safe} refused and safe"
    );
}
