//! Preemptable FIFO spin locks (decision 0027), against a loop over units of time that shares no code with the simulator.

use super::lock_systems::{Event, Random, Task, draw_tasks, in_order, read, records, simulated, text};
use horolog_trace::Kind;

#[derive(Clone, Debug)]
struct Case {
    cpus: usize,
    resources: usize,
    tasks: Vec<Task>,
}

/// A task with one job.
pub(super) fn once(
    cpu: usize,
    priority: i64,
    arrival: u64,
    wcet: u64,
    sections: &[(usize, u64, u64)],
) -> Task {
    let (arrivals, sections) = (vec![arrival], sections.to_vec());
    Task { cpu, priority, arrivals, wcet, sections, reads: Vec::new() }
}

impl Case {
    fn text(&self) -> String {
        text(self.cpus, self.resources, "preemptable-fifo", "", &self.tasks)
    }
}

#[derive(Clone, Default)]
struct State {
    jobs: u64,
    executed: u64,
    /// The section that it is in, waits for, or comes to next.
    section: usize,
    holds: bool,
    /// When it has asked for that section, in the order of all requests.
    asked: Option<u64>,
}

/// Unit by unit.
fn by_units(case: &Case, end: u64) -> Vec<Event> {
    let mut tasks = vec![State::default(); case.tasks.len()];
    let mut events = Vec::new();
    let mut running: Vec<Option<usize>> = vec![None; case.cpus];
    let mut requests = 0;
    let resource = |tasks: &[State], task: usize| case.tasks[task].sections[tasks[task].section].0;
    for now in 0..=end {
        // A holder has its processor; of those that wait the one that asked first is the next.
        for task in running.iter().flatten().copied() {
            if !tasks[task].holds || case.tasks[task].sections[tasks[task].section].2 != tasks[task].executed
            {
                continue;
            }
            let free = resource(&tasks, task);
            tasks[task].holds = false;
            tasks[task].section += 1;
            events.push((now, task, Kind::Unlock));
            let waiting =
                (0..tasks.len()).filter(|&it| tasks[it].asked.is_some() && resource(&tasks, it) == free);
            if let Some(next) = waiting.min_by_key(|&it| tasks[it].asked) {
                (tasks[next].asked, tasks[next].holds) = (None, true);
                events.push((now, next, Kind::Lock));
            }
        }
        for running in &mut running {
            let Some(task) = running.filter(|&it| tasks[it].executed == case.tasks[it].wcet) else {
                continue;
            };
            tasks[task] = State { jobs: tasks[task].jobs - 1, ..State::default() };
            *running = None;
            events.push((now, task, Kind::Completion));
        }
        if now == end {
            break;
        }
        for (task, of) in case.tasks.iter().enumerate() {
            tasks[task].jobs += of.arrivals.iter().filter(|&&at| at == now).count() as u64;
        }
        let mut had = running.clone();
        loop {
            for (cpu, running) in running.iter_mut().enumerate() {
                let here = (0..tasks.len()).filter(|&it| case.tasks[it].cpu == cpu && tasks[it].jobs > 0);
                *running = here.max_by_key(|&it| (tasks[it].holds, case.tasks[it].priority));
            }
            // Who waits and has lost the processor has asked in vain.
            for task in (0..tasks.len()).filter(|task| !running.contains(&Some(*task))) {
                tasks[task].asked = None;
            }
            let mut is_done = true;
            for cpu in 0..case.cpus {
                let Some(task) = running[cpu] else { continue };
                let begins = case.tasks[task].sections.get(tasks[task].section);
                let begins = begins.is_some_and(|section| section.1 == tasks[task].executed);
                if !begins || tasks[task].holds || tasks[task].asked.is_some() {
                    continue;
                }
                is_done = false;
                // Who gets the processor only now asks after those who had it.
                if had[cpu] != Some(task) {
                    continue;
                }
                let wanted = resource(&tasks, task);
                let is_taken = |it: usize| tasks[it].holds && resource(&tasks, it) == wanted;
                if (0..tasks.len()).any(is_taken) {
                    tasks[task].asked = Some(requests);
                    requests += 1;
                    events.push((now, task, Kind::Spin));
                } else {
                    tasks[task].holds = true;
                    events.push((now, task, Kind::Lock));
                }
            }
            had.clone_from(&running);
            if is_done {
                break;
            }
        }
        for task in running.iter().flatten().copied() {
            tasks[task].executed += u64::from(tasks[task].asked.is_none());
        }
    }
    in_order(events)
}

const WANTED: [Kind; 4] = [Kind::Lock, Kind::Unlock, Kind::Spin, Kind::Completion];

#[test]
fn who_is_preempted_while_it_spins_loses_its_place_as_a_loop_over_units_says() {
    let mut random = Random(27);
    let (mut spins, mut anew) = (0, 0);
    for round in 0..6_000 {
        let cpus = 2 + random.below(3) as usize;
        let resources = 1 + random.below(3) as usize;
        let tasks = draw_tasks(&mut random, cpus, resources);
        let case = Case { cpus, resources, tasks };
        let (own, by_units) = (simulated(&case.text(), &WANTED, 150), by_units(&case, 150));
        assert_eq!(own, by_units, "round {round}: {}", case.text());
        let count = |kind: Kind| by_units.iter().filter(|event| event.2 == kind).count();
        spins += count(Kind::Spin);
        for task in 0..case.tasks.len() {
            let its = by_units.iter().filter(|event| event.1 == task && event.2 != Kind::Completion);
            let its: Vec<Kind> = its.map(|event| event.2).collect();
            anew += its.windows(2).filter(|two| two[0] == Kind::Spin && two[1] != Kind::Unlock).count();
            anew -= its.windows(2).filter(|two| two[0] == Kind::Spin && two[1] == Kind::Lock).count();
        }
    }
    assert!(spins > 3_000 && anew > 200, "{spins} spins, {anew} anew");
}

/// Processor 0 holds in [0, 10). t1 asks at 2 and t3 of a third processor at 4. t2 has t1's processor in [5, 7), so t1 asks anew behind t3.
#[test]
fn who_asks_anew_comes_behind_those_that_have_come_meanwhile() {
    let task = once;
    let tasks = vec![
        task(0, 1, 0, 10, &[(0, 0, 10)]),
        task(1, 2, 2, 4, &[(0, 0, 3)]),
        task(1, 9, 5, 2, &[]),
        task(2, 5, 4, 5, &[(0, 0, 5)]),
        // It comes while t1 holds: nothing preempts that.
        task(1, 8, 16, 1, &[]),
    ];
    let case = Case { cpus: 3, resources: 1, tasks };
    let at = |task: usize| {
        let all = records(&read(&case.text()), 40);
        let its = all.iter().filter(move |it| it.task as usize == task && !matches!(it.kind, Kind::Release));
        its.map(|it| (it.time.as_ns(), it.kind)).collect::<Vec<_>>()
    };
    let of_the_first = [
        (2, Kind::Start),
        (2, Kind::Spin),
        (5, Kind::Preempt),
        (7, Kind::Resume),
        (7, Kind::Spin),
        (15, Kind::Lock),
        (18, Kind::Unlock),
        (18, Kind::Preempt),
        (19, Kind::Resume),
        (20, Kind::Completion),
    ];
    assert_eq!(at(1), of_the_first, "{}", case.text());
    assert!(at(3).contains(&(10, Kind::Lock)) && at(4).contains(&(19, Kind::Completion)));
}
