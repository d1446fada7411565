//! Spin locks across processors in the simulation (decision 0018): the published example, and random systems against a loop over units
//! of time that shares no code with the simulator.

mod lock_systems;
#[path = "lock_systems/preemptable.rs"]
mod preemptable;

use horolog_trace::Kind;
use lock_systems::{Event, Random, Task, draw_tasks, in_order, read, records, text};
use std::collections::VecDeque;

/// Two processors and more, resources of one protocol, a spin priority for each processor.
#[derive(Clone, Debug)]
struct Case {
    protocol: &'static str,
    resources: usize,
    spin: Vec<String>,
    tasks: Vec<Task>,
}

impl Case {
    fn text(&self) -> String {
        let spins = self.spin.iter().enumerate().filter(|_| self.protocol == "fslm");
        let spins: String =
            spins.map(|(cpu, spin)| format!("[[spin_priority]]\ncpu = {cpu}\npriority = {spin}\n")).collect();
        text(self.spin.len(), self.resources, self.protocol, &spins, &self.tasks)
    }

    fn ceiling(&self, cpu: usize) -> i64 {
        let users = self.tasks.iter().filter(|task| task.cpu == cpu && !task.sections.is_empty());
        users.map(|task| task.priority).max().unwrap_or(i64::MAX)
    }

    /// The priority at which jobs of a processor spin.
    fn spin_priority(&self, cpu: usize) -> i64 {
        match (self.protocol, self.spin[cpu].as_str()) {
            ("msrp", _) | (_, "\"highest\"") => i64::MAX,
            (_, "\"ceiling\"") => self.ceiling(cpu),
            (_, number) => number.parse().expect("a number"),
        }
    }
}

#[derive(Clone, Default)]
struct State {
    waiting: VecDeque<u64>,
    executed: u64,
    /// The next section that it has not asked for.
    next: usize,
    holds: Option<usize>,
    spins: Option<usize>,
}

/// Unit by unit.
fn by_units(case: &Case, end: u64) -> Vec<Event> {
    let mut tasks = vec![State::default(); case.tasks.len()];
    let mut queues: Vec<VecDeque<usize>> = vec![VecDeque::new(); case.resources];
    let mut events = Vec::new();
    let mut running: Vec<Option<usize>> = vec![None; case.spin.len()];
    for now in 0..=end {
        for running in &mut running {
            let Some(task) = *running else { continue };
            let (state, of) = (&mut tasks[task], &case.tasks[task]);
            if let Some(resource) = state.holds.filter(|_| of.sections[state.next - 1].2 == state.executed) {
                state.holds = None;
                events.push((now, task, Kind::Unlock));
                queues[resource].pop_front();
                if let Some(&next) = queues[resource].front() {
                    tasks[next].spins = None;
                    tasks[next].holds = Some(resource);
                    events.push((now, next, Kind::Lock));
                }
            }
            let (state, of) = (&mut tasks[task], &case.tasks[task]);
            if state.executed == of.wcet {
                state.waiting.pop_front();
                (state.executed, state.next) = (0, 0);
                *running = None;
                events.push((now, task, Kind::Completion));
            }
        }
        if now == end {
            break;
        }
        for (task, of) in case.tasks.iter().enumerate() {
            if of.arrivals.contains(&now) {
                tasks[task].waiting.push_back(now);
            }
        }
        loop {
            // Who gets the processor only now asks after those who had it.
            let before = running.clone();
            for (cpu, running) in running.iter_mut().enumerate() {
                let here = (0..tasks.len()).filter(|&task| case.tasks[task].cpu == cpu);
                let ready = here.filter(|&task| !tasks[task].waiting.is_empty());
                // Who holds, then who spins before those of the spin priority, then by priority.
                let standing = |task: usize| {
                    let (state, own) = (&tasks[task], (case.tasks[task].priority, 0));
                    match (state.holds, state.spins) {
                        (Some(_), _) => (i64::MAX, 2),
                        (_, Some(_)) => own.max((case.spin_priority(cpu), 1)),
                        _ => own,
                    }
                };
                *running = ready.max_by_key(|&task| standing(task));
            }
            let mut is_done = true;
            for (task, had) in running.iter().zip(&before).filter_map(|(task, had)| Some(((*task)?, *had))) {
                let (state, of) = (&mut tasks[task], &case.tasks[task]);
                let begins = of.sections.get(state.next).filter(|section| section.1 == state.executed);
                let Some(&(resource, ..)) = begins.filter(|_| state.holds.is_none() && state.spins.is_none())
                else {
                    continue;
                };
                is_done = false;
                if had != Some(task) {
                    continue;
                }
                state.next += 1;
                queues[resource].push_back(task);
                if queues[resource].len() == 1 {
                    state.holds = Some(resource);
                    events.push((now, task, Kind::Lock));
                } else {
                    state.spins = Some(resource);
                    events.push((now, task, Kind::Spin));
                }
            }
            if is_done {
                break;
            }
        }
        for task in running.iter().flatten().copied() {
            tasks[task].executed += u64::from(tasks[task].spins.is_none());
        }
    }
    in_order(events)
}

fn simulated(case: &Case, end: u64) -> Vec<Event> {
    let wanted = [Kind::Lock, Kind::Unlock, Kind::Spin, Kind::Completion];
    lock_systems::simulated(&case.text(), &wanted, end)
}

/// The published example: t3 on processor 0, the others on processor 1; t2 uses nothing.
fn example(protocol: &'static str, spin: &str) -> Case {
    let task = preemptable::once;
    let tasks = vec![
        task(1, 1, 3, 6, &[(0, 0, 4)]),
        task(1, 2, 50, 1, &[(0, 0, 1)]),
        task(1, 3, 6, 5, &[]),
        task(0, 4, 0, 9, &[(0, 1, 8)]),
    ];
    Case { protocol, resources: 1, spin: vec!["\"highest\"".to_owned(), spin.to_owned()], tasks }
}

/// Who has the processor of a task, from when to when.
fn stretches(case: &Case, of: usize) -> Vec<(u64, u64)> {
    let (mut all, mut since) = (Vec::new(), None);
    for record in records(&read(&case.text()), 40).iter().filter(|record| record.task as usize == of) {
        match record.kind {
            Kind::Start | Kind::Resume => since = Some(record.time.as_ns()),
            Kind::Preempt | Kind::Completion => {
                all.extend(since.take().map(|since| (since, record.time.as_ns())));
            }
            _ => {}
        }
    }
    all
}

#[test]
fn a_spinner_at_the_highest_priority_keeps_everybody_waiting() {
    for case in [example("fslm", "\"highest\""), example("fslm", "3"), example("msrp", "")] {
        assert_eq!(stretches(&case, 2), [(12, 17)], "t2 gets nothing before 12: {}", case.text());
        let events = simulated(&case, 40);
        for at in [(3, 0, Kind::Spin), (8, 0, Kind::Lock), (12, 0, Kind::Unlock), (8, 3, Kind::Unlock)] {
            assert!(events.contains(&at), "{at:?} in {events:?}");
        }
    }
}

#[test]
fn a_spinner_at_the_ceiling_lets_more_important_tasks_run_until_it_holds_the_lock() {
    for case in [example("fslm", "\"ceiling\""), example("fslm", "2")] {
        assert_eq!(stretches(&case, 2), [(6, 8), (12, 15)], "{}", case.text());
        let events = simulated(&case, 40);
        for at in [(3, 0, Kind::Spin), (8, 0, Kind::Lock), (12, 0, Kind::Unlock)] {
            assert!(events.contains(&at), "{at:?} in {events:?}");
        }
    }
}

fn draw(random: &mut Random, protocol: &'static str) -> Case {
    let cpus = 2 + random.below(3) as usize;
    let resources = 1 + random.below(3) as usize;
    let tasks = draw_tasks(random, cpus, resources);
    let mut case = Case { protocol, resources, spin: vec![String::new(); cpus], tasks };
    for cpu in 0..cpus {
        let here: Vec<i64> = case.tasks.iter().filter(|t| t.cpu == cpu).map(|t| t.priority).collect();
        let highest = here.iter().copied().max().unwrap_or(0);
        let ceiling = case.ceiling(cpu);
        case.spin[cpu] = match random.below(4) {
            0 => "\"highest\"".to_owned(),
            1 => "\"ceiling\"".to_owned(),
            2 if ceiling <= highest => {
                (ceiling + random.below((highest - ceiling + 1) as u64) as i64).to_string()
            }
            _ => highest.to_string(),
        };
    }
    case
}

#[test]
fn random_systems_run_as_a_loop_over_units_of_time_says() {
    let mut random = Random(7);
    let mut spins = 0;
    for round in 0..6_000 {
        let case = draw(&mut random, if round % 3 == 0 { "msrp" } else { "fslm" });
        let (own, by_units) = (simulated(&case, 120), by_units(&case, 120));
        assert_eq!(own, by_units, "round {round}: {}", case.text());
        spins += by_units.iter().filter(|(.., kind)| *kind == Kind::Spin).count();
    }
    assert!(spins > 3_000, "{spins}");
}

#[test]
fn the_highest_spin_priority_gives_the_records_of_msrp() {
    let mut random = Random(11);
    for _ in 0..500 {
        let mut case = draw(&mut random, "fslm");
        case.spin.iter_mut().for_each(|spin| *spin = "\"highest\"".to_owned());
        let flexible = records(&read(&case.text()), 120);
        case.protocol = "msrp";
        assert_eq!(flexible, records(&read(&case.text()), 120), "{}", case.text());
    }
}

#[test]
fn one_job_of_a_processor_waits_or_holds_and_queues_are_first_in_first_out() {
    let mut random = Random(13);
    for _ in 0..1_000 {
        let case = draw(&mut random, "fslm");
        let mut queues: Vec<VecDeque<usize>> = vec![VecDeque::new(); case.resources];
        for record in records(&read(&case.text()), 120) {
            let task = record.task as usize;
            let resource = record.value as usize;
            match record.kind {
                Kind::Spin => queues[resource].push_back(task),
                Kind::Lock if queues[resource].front() == Some(&task) => {}
                Kind::Lock => {
                    assert!(queues[resource].is_empty(), "out of turn: {}", case.text());
                    queues[resource].push_back(task);
                }
                Kind::Unlock => assert_eq!(queues[resource].pop_front(), Some(task)),
                _ => continue,
            }
            for cpu in 0..case.spin.len() {
                let here = queues.iter().flatten().filter(|&&task| case.tasks[task].cpu == cpu);
                assert!(here.count() <= 1, "{}", case.text());
            }
        }
    }
}
