//! Sections that execute on the processor of their resource (decision 0026), against a loop over units of time that shares no code with the simulator.

use super::lock_systems::{Event, Random, Task, draw_tasks, in_order, read, records, text};
use horolog_trace::{Kind, Record};

#[derive(Clone, Debug)]
struct Case {
    /// So many processors have tasks; those behind them execute sections alone.
    cpus: usize,
    /// The processor of each resource.
    places: Vec<usize>,
    tasks: Vec<Task>,
}

impl Case {
    fn text(&self) -> String {
        let most = self.places.iter().max().map_or(self.cpus, |last| last + 1);
        let mut file = text(most, self.places.len(), "dpcp", "", &self.tasks);
        for (resource, cpu) in self.places.iter().enumerate() {
            let name = format!("[[resource]]\nname = \"r{resource}\"\n");
            file = file.replace(&name, &format!("{name}cpu = {cpu}\n"));
        }
        file
    }

    fn ceiling(&self, resource: usize) -> i64 {
        let uses = |task: &&Task| task.sections.iter().any(|section| section.0 == resource);
        self.tasks.iter().filter(uses).map(|task| task.priority).max().expect("it is used")
    }
}

#[derive(Clone, Default)]
struct State {
    jobs: u64,
    executed: u64,
    /// The next section that it has not asked for.
    next: usize,
    /// What it has asked for and not let go of, when in the order of all requests, and whether that section has begun.
    asked: Option<(usize, u64, bool)>,
}

/// Lets begin on a processor whatever may: the most important request that is above every ceiling of what has begun there.
fn begin(case: &Case, tasks: &mut [State], cpu: usize, now: u64, events: &mut Vec<Event>) {
    let is_here = |state: &State| state.asked.is_some_and(|(resource, ..)| case.places[resource] == cpu);
    let held = tasks.iter().filter(|state| is_here(state)).filter_map(|state| state.asked).filter(|it| it.2);
    let highest = held.map(|(resource, ..)| case.ceiling(resource)).max().unwrap_or(i64::MIN);
    let waiting =
        (0..tasks.len()).filter(|&task| is_here(&tasks[task]) && !tasks[task].asked.is_some_and(|it| it.2));
    let first = waiting
        .max_by_key(|&task| (case.tasks[task].priority, std::cmp::Reverse(tasks[task].asked.map(|it| it.1))));
    if let Some(first) = first.filter(|&first| case.tasks[first].priority > highest) {
        tasks[first].asked.as_mut().expect("it asked").2 = true;
        events.push((now, first, Kind::Lock));
    }
}

/// Unit by unit: what happens, and who executes in each unit on each processor.
fn by_units(case: &Case, end: u64) -> (Vec<Event>, Vec<Vec<Option<usize>>>) {
    let all = case.places.iter().max().map_or(case.cpus, |last| last + 1);
    let mut tasks = vec![State::default(); case.tasks.len()];
    let (mut events, mut units) = (Vec::new(), Vec::new());
    let mut chosen: Vec<Option<usize>> = vec![None; case.cpus];
    let mut requests = 0;
    for now in 0..=end {
        for task in 0..tasks.len() {
            let (state, of) = (&mut tasks[task], &case.tasks[task]);
            let has_ended = |&(_, _, has_begun): &(usize, u64, bool)| {
                has_begun && of.sections[state.next - 1].2 == state.executed
            };
            let Some((resource, ..)) = state.asked.filter(has_ended) else { continue };
            state.asked = None;
            events.extend([(now, task, Kind::Unlock), (now, task, Kind::Wake)]);
            begin(case, &mut tasks, case.places[resource], now, &mut events);
        }
        let finish = |tasks: &mut Vec<State>, chosen: &mut Vec<Option<usize>>, events: &mut Vec<Event>| {
            let mut is_any = false;
            for chosen in chosen.iter_mut() {
                let Some(task) = chosen.filter(|&task| tasks[task].executed == case.tasks[task].wcet) else {
                    continue;
                };
                tasks[task].jobs -= 1;
                (tasks[task].executed, tasks[task].next) = (0, 0);
                (*chosen, is_any) = (None, true);
                events.push((now, task, Kind::Completion));
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
        // Who has executed up to here asks once it is chosen; who gets the processor only now asks after those who had it.
        let mut may_ask: Vec<bool> = (0..tasks.len()).map(|task| chosen.contains(&Some(task))).collect();
        loop {
            for (cpu, chosen) in chosen.iter_mut().enumerate() {
                let here = (0..tasks.len()).filter(|&task| case.tasks[task].cpu == cpu);
                let ready = here.filter(|&task| tasks[task].jobs > 0 && tasks[task].asked.is_none());
                *chosen = ready.max_by_key(|&task| case.tasks[task].priority);
            }
            let mut is_done = !finish(&mut tasks, &mut chosen, &mut events);
            for task in chosen.iter().flatten().copied() {
                let (state, of) = (&mut tasks[task], &case.tasks[task]);
                let begins = of.sections.get(state.next).filter(|section| section.1 == state.executed);
                let Some(&(resource, ..)) = begins.filter(|_| state.asked.is_none()) else { continue };
                is_done = false;
                if !std::mem::replace(&mut may_ask[task], true) {
                    continue;
                }
                state.next += 1;
                state.asked = Some((resource, requests, false));
                requests += 1;
                events.push((now, task, Kind::Suspend));
                begin(case, &mut tasks, case.places[resource], now, &mut events);
            }
            if is_done {
                break;
            }
        }
        let executes = |cpu: usize| {
            if cpu < case.cpus {
                return chosen[cpu];
            }
            let begun = (0..tasks.len()).filter_map(|task| {
                let (resource, _, has_begun) = tasks[task].asked?;
                (has_begun && case.places[resource] == cpu).then_some((case.ceiling(resource), task))
            });
            begun.max().map(|(_, task)| task)
        };
        let unit: Vec<Option<usize>> = (0..all).map(executes).collect();
        unit.iter().flatten().for_each(|&task| tasks[task].executed += 1);
        units.push(unit);
    }
    (in_order(events), units)
}

/// Who has each processor in each unit, by the records.
fn by_records(all: usize, records: &[Record], end: u64) -> Vec<Vec<Option<usize>>> {
    let mut has: Vec<Option<usize>> = vec![None; all];
    let (mut units, mut records) = (Vec::new(), records.iter().peekable());
    for now in 0..end {
        while let Some(record) = records.next_if(|record| record.time.as_ns() <= now) {
            let (cpu, task) = (record.cpu as usize, record.task as usize);
            match record.kind {
                Kind::Start | Kind::Resume => {
                    assert!(has[cpu].is_none() && !has.contains(&Some(task)), "{record:?}");
                    has[cpu] = Some(task);
                }
                Kind::Preempt | Kind::Completion | Kind::Suspend => {
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

const WANTED: [Kind; 5] = [Kind::Lock, Kind::Unlock, Kind::Suspend, Kind::Wake, Kind::Completion];

fn draw(random: &mut Random) -> Case {
    let cpus = 1 + random.below(3) as usize;
    let resources = 1 + random.below(3) as usize;
    let tasks = draw_tasks(random, cpus, resources);
    let places = (0..resources).map(|_| cpus + random.below(2) as usize).collect();
    Case { cpus, places, tasks }
}

#[test]
fn sections_execute_on_the_processor_of_their_resource_as_a_loop_over_units_says() {
    let mut random = Random(26);
    let (mut waits, mut preempted) = (0, 0);
    for round in 0..3_000 {
        let case = draw(&mut random);
        let all = records(&read(&case.text()), 150);
        let wanted = all.iter().filter(|record| WANTED.contains(&record.kind));
        let own = in_order(wanted.map(|it| (it.time.as_ns(), it.task as usize, it.kind)).collect());
        let (events, units) = by_units(&case, 150);
        assert_eq!(own, events, "round {round}: {}", case.text());
        assert_eq!(by_records(units[0].len(), &all, 150), units, "round {round}: {}", case.text());
        let at = |kind: Kind| events.iter().filter(move |event| event.2 == kind);
        waits +=
            at(Kind::Suspend).filter(|&&(time, task, _)| !events.contains(&(time, task, Kind::Lock))).count();
        let is_agent = |it: &&Record| it.kind == Kind::Preempt && it.cpu as usize >= case.cpus;
        preempted += all.iter().filter(is_agent).count() - at(Kind::Unlock).count();
    }
    assert!(waits > 1_000 && preempted > 150, "{waits} waits, {preempted} preempted");
}
