//! The multiprocessor resource sharing protocol in the simulation (decision 0024), against a loop over units of time that shares no code with the simulator:
//! it knows who is chosen on each processor, a queue, and where that lets a section execute.

mod lock_systems;

use horolog_trace::{Kind, Record};
use lock_systems::{Event, Random, Task, draw_tasks, in_order, read, records, simulated, text};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
struct Case {
    cpus: usize,
    resources: usize,
    tasks: Vec<Task>,
}

impl Case {
    fn text(&self) -> String {
        text(self.cpus, self.resources, "mrsp", "", &self.tasks)
    }

    /// The most important user of a resource on a processor.
    fn ceiling(&self, resource: usize, cpu: usize) -> i64 {
        let here = self.tasks.iter().filter(|task| task.cpu == cpu);
        let users = here.filter(|task| task.sections.iter().any(|section| section.0 == resource));
        users.map(|task| task.priority).max().expect("it is used")
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
}

/// Which task executes on each processor: the chosen one, or a holder in the place of one that waits.
fn places(
    case: &Case,
    tasks: &[State],
    queues: &[VecDeque<usize>],
    chosen: &[Option<usize>],
) -> Vec<Option<usize>> {
    let mut executes = chosen.to_vec();
    for queue in queues {
        let is_chosen = |task: usize| chosen[case.tasks[task].cpu] == Some(task);
        let Some(&holder) = queue.front().filter(|&&holder| !is_chosen(holder)) else { continue };
        assert!(tasks[holder].holds.is_some());
        if let Some(&helper) = queue.iter().skip(1).find(|&&task| is_chosen(task)) {
            executes[case.tasks[helper].cpu] = Some(holder);
        }
    }
    executes
}

/// Unit by unit: what happens, and who executes in each unit on each processor.
fn by_units(case: &Case, end: u64) -> (Vec<Event>, Vec<Vec<Option<usize>>>) {
    let mut tasks = vec![State::default(); case.tasks.len()];
    // The holder, and behind it who waits.
    let mut queues: Vec<VecDeque<usize>> = vec![VecDeque::new(); case.resources];
    let (mut events, mut units) = (Vec::new(), Vec::new());
    let mut chosen: Vec<Option<usize>> = vec![None; case.cpus];
    for now in 0..=end {
        for task in 0..tasks.len() {
            let (state, of) = (&mut tasks[task], &case.tasks[task]);
            let Some(resource) = state.holds.filter(|_| of.sections[state.next - 1].2 == state.executed)
            else {
                continue;
            };
            state.holds = None;
            events.push((now, task, Kind::Unlock));
            queues[resource].pop_front();
            if let Some(&next) = queues[resource].front() {
                (tasks[next].waits, tasks[next].holds) = (None, Some(resource));
                events.push((now, next, Kind::Lock));
            }
        }
        // A job is done where its own processor has chosen it.
        let finish = |tasks: &mut Vec<State>, chosen: &mut Vec<Option<usize>>, events: &mut Vec<Event>| {
            let mut is_any = false;
            for chosen in chosen.iter_mut() {
                let Some(task) = *chosen else { continue };
                if tasks[task].executed == case.tasks[task].wcet {
                    tasks[task].jobs -= 1;
                    (tasks[task].executed, tasks[task].next) = (0, 0);
                    *chosen = None;
                    is_any = true;
                    events.push((now, task, Kind::Completion));
                }
            }
            is_any
        };
        finish(&mut tasks, &mut chosen, &mut events);
        if now == end {
            break;
        }
        for (task, of) in case.tasks.iter().enumerate() {
            tasks[task].jobs += of.arrivals.iter().filter(|&&at| at == now).count() as u64;
        }
        loop {
            let before = chosen.clone();
            for (cpu, chosen) in chosen.iter_mut().enumerate() {
                let here = (0..tasks.len()).filter(|&task| case.tasks[task].cpu == cpu);
                let ready = here.filter(|&task| tasks[task].jobs > 0);
                let standing = |task: usize| match tasks[task].holds.or(tasks[task].waits) {
                    Some(resource) => (case.ceiling(resource, cpu), true),
                    None => (case.tasks[task].priority, false),
                };
                *chosen = ready.max_by_key(|&task| standing(task));
            }
            let mut is_done = !finish(&mut tasks, &mut chosen, &mut events);
            for (task, had) in chosen.iter().zip(&before).filter_map(|(task, had)| Some(((*task)?, *had))) {
                let (state, of) = (&mut tasks[task], &case.tasks[task]);
                let begins = of.sections.get(state.next).filter(|section| section.1 == state.executed);
                let is_idle = state.holds.is_none() && state.waits.is_none();
                let Some(&(resource, ..)) = begins.filter(|_| is_idle) else { continue };
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
                    state.waits = Some(resource);
                    events.push((now, task, Kind::Spin));
                }
            }
            if is_done {
                break;
            }
        }
        let executes = places(case, &tasks, &queues, &chosen);
        for task in executes.iter().flatten().copied() {
            tasks[task].executed += u64::from(tasks[task].waits.is_none());
        }
        units.push(executes);
    }
    (in_order(events), units)
}

/// Who has each processor in each unit, by the records.
fn by_records(case: &Case, records: &[Record], end: u64) -> Vec<Vec<Option<usize>>> {
    let mut has: Vec<Option<usize>> = vec![None; case.cpus];
    let (mut units, mut records) = (Vec::new(), records.iter().peekable());
    for now in 0..end {
        while let Some(record) = records.next_if(|record| record.time.as_ns() <= now) {
            let (cpu, task) = (record.cpu as usize, record.task as usize);
            match record.kind {
                Kind::Start | Kind::Resume => {
                    assert_eq!(has[cpu], None, "one job a processor: {record:?}");
                    assert!(!has.contains(&Some(task)), "one processor a job: {record:?}");
                    has[cpu] = Some(task);
                }
                Kind::Preempt | Kind::Completion => {
                    assert_eq!(has[cpu], Some(task), "{record:?}");
                    has[cpu] = None;
                }
                _ => {}
            }
        }
        units.push(has.clone());
    }
    units
}

const WANTED: [Kind; 4] = [Kind::Lock, Kind::Unlock, Kind::Spin, Kind::Completion];

fn draw(random: &mut Random) -> Case {
    let cpus = 1 + random.below(4) as usize;
    let resources = 1 + random.below(3) as usize;
    let tasks = draw_tasks(random, cpus, resources);
    Case { cpus, resources, tasks }
}

#[test]
fn random_systems_run_as_a_loop_over_units_of_time_says() {
    let mut random = Random(37);
    let (mut waits, mut away, mut later) = (0, 0, 0);
    for round in 0..6_000 {
        let case = draw(&mut random);
        let all = records(&read(&case.text()), 150);
        let wanted = all.iter().filter(|record| WANTED.contains(&record.kind));
        let own = in_order(wanted.map(|it| (it.time.as_ns(), it.task as usize, it.kind)).collect());
        let (events, units) = by_units(&case, 150);
        assert_eq!(own, events, "round {round}: {}", case.text());
        assert_eq!(by_records(&case, &all, 150), units, "round {round}: {}", case.text());
        waits += events.iter().filter(|(.., kind)| *kind == Kind::Spin).count();
        let is_away =
            |(cpu, task): (usize, &Option<usize>)| task.is_some_and(|task| case.tasks[task].cpu != cpu);
        away += units.iter().flat_map(|unit| unit.iter().enumerate()).filter(|&it| is_away(it)).count();
        // A job that is not the first one that waits helps.
        later += usize::from(all.iter().any(|it| {
            let line = |from: Kind| all.iter().filter(|o| o.kind == from && o.time <= it.time).count();
            it.kind == Kind::Resume
                && case.tasks[it.task as usize].cpu != it.cpu as usize
                && line(Kind::Spin) > 1
        }));
    }
    assert!(waits > 4_000 && away > 1_000 && later > 100, "{waits} waits, {away} units away, {later} later");
}

/// By hand: the holder is preempted at home and goes on in the place of the job that waits, until it is chosen at home again.
#[test]
fn a_holder_that_is_preempted_goes_on_in_the_place_of_one_that_waits() {
    let task = |cpu, priority, arrival, wcet, sections: &[(usize, u64, u64)]| Task {
        cpu,
        priority,
        arrivals: vec![arrival],
        wcet,
        sections: sections.to_vec(),
        reads: Vec::new(),
    };
    // On CPU 0 the holder of [0, 8) and one that preempts it in [3, 5); on CPU 1 one that asks at 1.
    let tasks = vec![task(0, 2, 0, 9, &[(0, 0, 8)]), task(0, 7, 3, 2, &[]), task(1, 5, 1, 2, &[(0, 0, 1)])];
    let case = Case { cpus: 2, resources: 1, tasks };
    let all = records(&read(&case.text()), 40);
    let units = by_records(&case, &all, 10);
    let on = |cpu: usize| units.iter().map(|unit| unit[cpu]).collect::<Vec<_>>();
    let home = [0, 0, 0, 1, 1, 0, 0, 0, 0].map(Some);
    assert_eq!(on(0), [&home[..], &[None]].concat());
    assert_eq!(
        on(1),
        [None, Some(2), Some(2), Some(0), Some(0), Some(2), Some(2), Some(2), Some(2), Some(2)]
    );
    let events = simulated(&case.text(), &WANTED, 40);
    let expected = [
        (0, 0, Kind::Lock),
        (1, 2, Kind::Spin),
        (5, 1, Kind::Completion),
        (8, 0, Kind::Unlock),
        (8, 2, Kind::Lock),
        (9, 2, Kind::Unlock),
        (9, 0, Kind::Completion),
        (10, 2, Kind::Completion),
    ];
    assert_eq!(events, in_order(expected.to_vec()));
}

/// Sections that move change nothing on processors that they neither leave nor reach: budgets, overrun policies and clusters there are as without them.
#[test]
fn processors_that_no_section_leaves_or_reaches_are_as_without_them() {
    let task = |name: &str, rest: &str| format!("[[task]]\nname = \"{name}\"\n{rest}\n");
    let hard = task("hard", "cpu = 0\npriority = 10\nperiod = \"20 ns\"\nwcet = \"2 ns\"");
    let served = |kind: &str| {
        task("soft", "cpu = 0\nperiod = \"20 ns\"\nwcet = \"3 ns\"")
            + &format!(
                "[[server]]\nname = \"s\"\nkind = \"{kind}\"\ntasks = [\"soft\"]\ncpu = 0\nbudget = \"3 ns\"\nperiod = \"20 ns\"\npriority = 9\n"
            )
    };
    let overruns = |policy: &str| {
        task(
            "long",
            &format!(
                "cpu = 0\npriority = 3\nperiod = \"20 ns\"\nwcet = \"6 ns\"\noverrun = \"{policy}\"\nexecution = {{ jobs = [\"8 ns\"] }}"
            ),
        )
    };
    let cluster = task("c0", "priority = 1\nperiod = \"20 ns\"\nwcet = \"6 ns\"")
        + &task("c1", "priority = 2\nperiod = \"20 ns\"\nwcet = \"6 ns\"")
        + &task("c2", "priority = 3\nperiod = \"10 ns\"\nwcet = \"5 ns\"")
        + "[[cluster]]\nname = \"cl\"\ncpus = [0, 1]\norder = \"fixed-priority\"\ntasks = [\"c0\", \"c1\", \"c2\"]\n";
    let section = "[[task.section]]\nresource = \"q\"\nfrom = \"1 ns\"\nlength = \"2 ns\"\n";
    let far = |moves: bool, protocol: &str| {
        let section = if moves { section } else { "" };
        let user = |name: &str, cpu: u32, period: u32| {
            let rest = format!("cpu = {cpu}\npriority = {cpu}\nperiod = \"{period} ns\"\nwcet = \"4 ns\"");
            task(name, &rest) + section
        };
        let resource = if moves {
            format!("[[resource]]\nname = \"q\"\nprotocol = {protocol}\n")
        } else {
            String::new()
        };
        resource + &user("far", 2, 10) + &user("further", 3, 15)
    };
    let mut all = Vec::new();
    for kind in ["polling", "deferrable", "sporadic"] {
        all.push((hard.clone() + &served(kind), 2));
    }
    for policy in ["drop", "skip", "demote", "stop"] {
        all.push((hard.clone() + &overruns(policy), 2));
    }
    all.push((cluster, 3));
    for (near, tasks) in &all {
        let seen = |moves: bool, protocol: &str| {
            let head = "[system]\nname = \"s\"\n[platform]\ncpus = 5\n";
            // The tasks that are looked at have the first numbers.
            let text = format!("{head}{near}{}", far(moves, protocol));
            let records = records(&read(&text), 200).into_iter();
            // The number of a resource or server is none of theirs.
            records.filter(|record| record.task < *tasks && record.cpu < 2).collect::<Vec<Record>>()
        };
        let without = seen(false, "");
        assert!(without.len() > 20, "{near}");
        for protocol in ["\"dpcp\"\ncpu = 4", "\"mrsp\""] {
            assert_eq!(seen(true, protocol), without, "{protocol} beside\n{near}");
        }
    }
}
