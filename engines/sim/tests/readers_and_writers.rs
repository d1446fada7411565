//! Locks for readers and writers across processors in the simulation (decision 0023), against a loop over units of time that shares no
//! code with the simulator: it knows phases and a queue, and no line in which readers are put before writers.

mod lock_systems;

use horolog_trace::Kind;
use lock_systems::{Event, Random, Task, draw_tasks, in_order, text};
use std::collections::VecDeque;

const PHASE_FAIR: &str = "phase-fair";
const TASK_FAIR: &str = "task-fair";

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

    fn reads(&self, task: usize, resource: usize) -> bool {
        self.tasks[task].reads.contains(&resource)
    }
}

/// One lock, by the words of its definition.
#[derive(Clone, Debug, Default)]
struct Lock {
    readers: Vec<usize>,
    writer: Option<usize>,
    /// Phase-fair: who reads, and who writes. Task-fair: all in one queue, the second one.
    waiting_readers: Vec<usize>,
    queue: VecDeque<(usize, bool)>,
}

impl Lock {
    fn is_free(&self) -> bool {
        self.readers.is_empty() && self.writer.is_none()
    }

    /// Whether the request is satisfied at once.
    fn request(&mut self, protocol: &str, task: usize, reads: bool) -> bool {
        if protocol == PHASE_FAIR && reads {
            if self.writer.is_some() || !self.queue.is_empty() {
                self.waiting_readers.push(task);
                return false;
            }
            self.readers.push(task);
            return true;
        }
        self.queue.push_back((task, reads));
        self.go_on(protocol).contains(&task)
    }

    /// Who has it since the job of a task let go.
    fn release(&mut self, protocol: &str, task: usize) -> Vec<usize> {
        if self.writer.take_if(|it| *it == task).is_none() {
            self.readers.retain(|it| *it != task);
        } else if protocol == PHASE_FAIR {
            // The phase of a writer is over: all readers that wait have theirs.
            self.readers = std::mem::take(&mut self.waiting_readers);
            if !self.readers.is_empty() {
                return self.readers.clone();
            }
        }
        self.go_on(protocol)
    }

    /// The queue moves on as far as it can.
    fn go_on(&mut self, protocol: &str) -> Vec<usize> {
        let mut got = Vec::new();
        while let Some(&(task, reads)) = self.queue.front() {
            if reads && protocol == TASK_FAIR && self.writer.is_none() {
                self.readers.push(task);
            } else if !reads && self.is_free() {
                self.writer = Some(task);
            } else {
                break;
            }
            self.queue.pop_front();
            got.push(task);
        }
        got
    }
}

#[derive(Clone, Default)]
struct State {
    waiting: VecDeque<u64>,
    executed: u64,
    next: usize,
    holds: Option<usize>,
    spins: Option<usize>,
}

/// Unit by unit.
fn by_units(case: &Case, end: u64) -> Vec<Event> {
    let mut tasks = vec![State::default(); case.tasks.len()];
    let mut locks = vec![Lock::default(); case.resources];
    let mut events = Vec::new();
    let mut running: Vec<Option<usize>> = vec![None; case.cpus];
    for now in 0..=end {
        for running in &mut running {
            let Some(task) = *running else { continue };
            let (state, of) = (&mut tasks[task], &case.tasks[task]);
            if let Some(resource) = state.holds.filter(|_| of.sections[state.next - 1].2 == state.executed) {
                state.holds = None;
                events.push((now, task, Kind::Unlock));
                for next in locks[resource].release(case.protocol, task) {
                    (tasks[next].spins, tasks[next].holds) = (None, Some(resource));
                    events.push((now, next, Kind::Lock));
                }
            }
            if tasks[task].executed == of.wcet {
                tasks[task].waiting.pop_front();
                (tasks[task].executed, tasks[task].next) = (0, 0);
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
            let before = running.clone();
            for (cpu, running) in running.iter_mut().enumerate() {
                let here = (0..tasks.len()).filter(|&task| case.tasks[task].cpu == cpu);
                let ready = here.filter(|&task| !tasks[task].waiting.is_empty());
                let keeps = |task: usize| tasks[task].holds.is_some() || tasks[task].spins.is_some();
                *running = ready.max_by_key(|&task| (keeps(task), case.tasks[task].priority));
            }
            let mut is_done = true;
            for (task, had) in running.iter().zip(&before).filter_map(|(task, had)| Some(((*task)?, *had))) {
                let (state, of) = (&mut tasks[task], &case.tasks[task]);
                let begins = of.sections.get(state.next).filter(|section| section.1 == state.executed);
                let is_idle = state.holds.is_none() && state.spins.is_none();
                let Some(&(resource, ..)) = begins.filter(|_| is_idle) else { continue };
                is_done = false;
                if had != Some(task) {
                    continue;
                }
                state.next += 1;
                if locks[resource].request(case.protocol, task, case.reads(task, resource)) {
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

fn draw(random: &mut Random, protocol: &'static str) -> Case {
    let cpus = 2 + random.below(4) as usize;
    let resources = 1 + random.below(2) as usize;
    let mut tasks = draw_tasks(random, cpus, resources);
    for task in &mut tasks {
        task.reads = (0..resources).filter(|_| random.below(3) > 0).collect();
    }
    Case { protocol, cpus, resources, tasks }
}

#[test]
fn random_systems_run_as_a_loop_over_units_of_time_says() {
    let mut random = Random(29);
    let (mut spins, mut together, mut differ) = (0, 0, 0);
    for round in 0..6_000 {
        let mut case = draw(&mut random, PHASE_FAIR);
        let phases = simulated(&case, 120);
        assert_eq!(phases, by_units(&case, 120), "round {round}: {}", case.text());
        case.protocol = TASK_FAIR;
        let queue = simulated(&case, 120);
        assert_eq!(queue, by_units(&case, 120), "round {round}: {}", case.text());
        spins += queue.iter().filter(|(.., kind)| *kind == Kind::Spin).count();
        differ += usize::from(phases != queue);
        let mut held = 0;
        for (.., kind) in &queue {
            held += i32::from(*kind == Kind::Lock) - i32::from(*kind == Kind::Unlock);
            together += usize::from(*kind == Kind::Lock && held > 1 && case.resources == 1);
        }
    }
    assert!(
        spins > 3_000 && together > 1_000 && differ > 300,
        "{spins} waits, {together} together, {differ} differ"
    );
}

/// Where all tasks write, both are the multiprocessor stack resource policy.
#[test]
fn writers_alone_have_the_schedule_of_msrp() {
    let mut random = Random(31);
    for _ in 0..500 {
        let mut case = draw(&mut random, TASK_FAIR);
        case.tasks.iter_mut().for_each(|task| task.reads.clear());
        let own = simulated(&case, 120);
        case.protocol = PHASE_FAIR;
        assert_eq!(own, simulated(&case, 120), "{}", case.text());
        case.protocol = "msrp";
        assert_eq!(own, simulated(&case, 120), "{}", case.text());
    }
}

/// A writer holds; a reader, a writer, and another reader wait. The second reader comes before the second writer where phases alternate, and
/// after it where all are in one queue.
#[test]
fn a_reader_waits_for_one_writer_alone_where_phases_alternate() {
    let task = |cpu, arrival, reads: &[usize]| Task {
        cpu,
        priority: 5,
        arrivals: vec![arrival],
        wcet: 10,
        sections: vec![(0, 0, 10)],
        reads: reads.to_vec(),
    };
    let tasks = vec![task(0, 0, &[]), task(1, 2, &[0]), task(2, 4, &[]), task(3, 6, &[0])];
    for (protocol, locks) in [(PHASE_FAIR, [0, 10, 20, 10]), (TASK_FAIR, [0, 10, 20, 30])] {
        let case = Case { protocol, cpus: 4, resources: 1, tasks: tasks.clone() };
        let events = simulated(&case, 100);
        for (task, at) in locks.into_iter().enumerate() {
            assert!(events.contains(&(at, task, Kind::Lock)), "{protocol}: t{task} at {at}: {events:?}");
        }
    }
}
