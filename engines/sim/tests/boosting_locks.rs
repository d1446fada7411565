//! Locks across processors with suspended waits (decision 0020): random systems against a loop over units of time that shares no code with the
//! simulator.

mod lock_systems;
#[path = "lock_systems/remote.rs"]
mod remote;

use horolog_trace::Kind;
use lock_systems::{Event, Random, Task, draw_tasks, in_order, simulated, text};
use std::cmp::Reverse;

#[derive(Clone, Debug)]
struct Case {
    protocol: &'static str,
    cpus: usize,
    resources: usize,
    tasks: Vec<Task>,
}

impl Case {
    fn text(&self) -> String {
        text(self.cpus, self.resources, self.protocol, "", &self.tasks)
    }

    /// The most important of a resource's users on other processors; where there are none, of all.
    fn ceiling(&self, resource: usize, cpu: usize) -> i64 {
        let uses = |task: &&Task| task.sections.iter().any(|section| section.0 == resource);
        let users = self.tasks.iter().filter(uses);
        let remote = users.clone().filter(|task| task.cpu != cpu).map(|task| task.priority).max();
        remote.or(users.map(|task| task.priority).max()).expect("it is used")
    }
}

#[derive(Clone, Default)]
struct State {
    jobs: u64,
    executed: u64,
    /// The next section that it has not asked for.
    next: usize,
    holds: Option<usize>,
    waits: Option<usize>,
    /// When it asked, when it got what it holds, and when it came into the queue, in the order of all such events.
    asked: u64,
    got: u64,
    queued: Option<u64>,
}

/// A job on `cpu` has let go of a resource: the next one has it, and where one job of each processor asks at a time, the next of that processor asks.
fn pass_on(
    case: &Case,
    tasks: &mut [State],
    (resource, cpu): (usize, usize),
    count: &mut impl FnMut() -> u64,
    mut locks: impl FnMut(usize),
) {
    let (is_mpcp, is_omlp) = (case.protocol == "mpcp", case.protocol == "omlp");
    let waiting = (0..tasks.len()).filter(|&task| tasks[task].waits == Some(resource));
    let waiting = waiting.filter(|&task| !is_omlp || tasks[task].queued.is_some());
    let first = waiting.min_by_key(|&task| {
        let came = tasks[task].queued.unwrap_or(tasks[task].asked);
        (Reverse(if is_mpcp { case.tasks[task].priority } else { 0 }), came)
    });
    if let Some(first) = first {
        (tasks[first].waits, tasks[first].holds, tasks[first].got) = (None, Some(resource), count());
        tasks[first].queued = None;
        locks(first);
    }
    if !is_omlp {
        return;
    }
    let here = (0..tasks.len()).filter(|&task| case.tasks[task].cpu == cpu);
    let asking = here.filter(|&task| tasks[task].waits.is_some() && tasks[task].queued.is_none());
    let next = asking.min_by_key(|&task| (Reverse(case.tasks[task].priority), tasks[task].asked));
    let Some(next) = next else { return };
    let wanted = tasks[next].waits.expect("it waits");
    if tasks.iter().any(|other| other.holds == Some(wanted)) {
        tasks[next].queued = Some(count());
    } else {
        (tasks[next].waits, tasks[next].holds, tasks[next].got) = (None, Some(wanted), count());
        locks(next);
    }
}

/// Unit by unit.
fn by_units(case: &Case, end: u64) -> Vec<Event> {
    let is_mpcp = case.protocol == "mpcp";
    let is_omlp = case.protocol == "omlp";
    let mut tasks = vec![State::default(); case.tasks.len()];
    let mut events = Vec::new();
    let mut running: Vec<Option<usize>> = vec![None; case.cpus];
    let mut counter = 0;
    let mut count = || {
        counter += 1;
        counter
    };
    for now in 0..=end {
        for running in &mut running {
            let Some(task) = *running else { continue };
            let of = &case.tasks[task];
            let (next, executed) = (tasks[task].next, tasks[task].executed);
            if let Some(resource) = tasks[task].holds.filter(|_| of.sections[next - 1].2 == executed) {
                tasks[task].holds = None;
                events.push((now, task, Kind::Unlock));
                pass_on(case, &mut tasks, (resource, of.cpu), &mut count, |task| {
                    events.push((now, task, Kind::Lock));
                });
            }
            let state = &mut tasks[task];
            if state.executed == of.wcet {
                state.jobs -= 1;
                (state.executed, state.next) = (0, 0);
                *running = None;
                events.push((now, task, Kind::Completion));
            }
        }
        if now == end {
            break;
        }
        for (task, of) in case.tasks.iter().enumerate() {
            tasks[task].jobs += of.arrivals.iter().filter(|&&at| at == now).count() as u64;
        }
        // Who has executed up to here asks once it is chosen; who gets the processor only now asks after those who had it.
        let mut may_ask: Vec<bool> = (0..tasks.len()).map(|task| running.contains(&Some(task))).collect();
        loop {
            for (cpu, running) in running.iter_mut().enumerate() {
                let here = (0..tasks.len()).filter(|&task| case.tasks[task].cpu == cpu);
                let ready = here.filter(|&task| tasks[task].jobs > 0 && tasks[task].waits.is_none());
                let standing = |task: usize| {
                    let state = &tasks[task];
                    match state.holds {
                        None => (0, case.tasks[task].priority, Reverse(0)),
                        Some(resource) if is_mpcp => (1, case.ceiling(resource, cpu), Reverse(state.got)),
                        Some(_) => (1, 0, Reverse(state.asked)),
                    }
                };
                *running = ready.max_by_key(|&task| standing(task));
            }
            let mut is_done = true;
            for task in running.iter().flatten().copied() {
                let (state, of) = (&tasks[task], &case.tasks[task]);
                let begins = of.sections.get(state.next).filter(|section| section.1 == state.executed);
                let Some(&(resource, ..)) = begins.filter(|_| state.holds.is_none()) else { continue };
                is_done = false;
                if !std::mem::replace(&mut may_ask[task], true) {
                    continue;
                }
                let is_held = tasks.iter().any(|other| other.holds == Some(resource));
                let is_here = |other: &usize| *other != task && case.tasks[*other].cpu == of.cpu;
                let has_turn = |other: usize| tasks[other].holds.is_some() || tasks[other].waits.is_some();
                let comes_later = is_omlp && (0..tasks.len()).filter(is_here).any(has_turn);
                let (state, number) = (&mut tasks[task], count());
                (state.next, state.asked, state.got) = (state.next + 1, number, number);
                if is_held || comes_later {
                    state.waits = Some(resource);
                    state.queued = (is_omlp && !comes_later).then_some(number);
                    events.push((now, task, Kind::Suspend));
                } else {
                    state.holds = Some(resource);
                    events.push((now, task, Kind::Lock));
                }
            }
            if is_done {
                break;
            }
        }
        for task in running.iter().flatten().copied() {
            tasks[task].executed += 1;
        }
    }
    in_order(events)
}

const WANTED: [Kind; 4] = [Kind::Lock, Kind::Unlock, Kind::Suspend, Kind::Completion];

fn draw(random: &mut Random, protocol: &'static str) -> Case {
    let cpus = 1 + random.below(4) as usize;
    let resources = 1 + random.below(3) as usize;
    let tasks = draw_tasks(random, cpus, resources);
    Case { protocol, cpus, resources, tasks }
}

#[test]
fn random_systems_run_as_a_loop_over_units_of_time_says() {
    for protocol in ["mpcp", "fmlp-plus", "omlp"] {
        let (mut random, mut waits) = (Random(7), 0);
        for round in 0..4_000 {
            let case = draw(&mut random, protocol);
            let (own, by_units) = (simulated(&case.text(), &WANTED, 150), by_units(&case, 150));
            assert_eq!(own, by_units, "round {round}: {}", case.text());
            waits += by_units.iter().filter(|(.., kind)| *kind == Kind::Suspend).count();
        }
        assert!(waits > 2_000, "{protocol}: {waits}");
    }
}
