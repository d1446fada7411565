//! Partitioning against all placements of tiny systems, and against a second writing of each heuristic that asks `analyze` about everything placed so
//! far; C=D splits against a simulation in whole nanoseconds that shares nothing with the analysis.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::partition::{Acceptance, Heuristic, Request, TaskOrder, partition};
use horolog_analysis::{Options, Schedulable, analyze};
use horolog_model::{CpuId, Draft, System, file};
use horolog_testkit::Random;
use std::collections::BTreeSet;

const PERIODS: [u64; 5] = [4, 6, 8, 12, 24];

/// What a drawn system has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Plain,
    /// Some tasks are not preempted, release jitter, costs of the machine, a measured load.
    Costly,
    /// Local resources, which keep tasks together.
    Local,
    /// Spin locks, so that each placement changes the blocking of all.
    Spinning,
}

fn draw(random: &mut Random, kind: Kind) -> (System, u32) {
    let cpus = random.between(2, 3) as u32;
    let count = random.between(2, if cpus == 2 { 5 } else { 4 });
    let is_edf = random.below(2) == 0;
    let policy = match (is_edf, random.below(3)) {
        (true, _) => "policy = \"edf\"".to_owned(),
        (false, 0) => "priorities = \"rate-monotonic\"".to_owned(),
        (false, 1) => "priorities = \"deadline-monotonic\"".to_owned(),
        (false, _) => String::new(),
    };
    let mut text = format!("[system]\nname = \"s\"\n{policy}\n[platform]\ncpus = {cpus}\n");
    if kind == Kind::Costly {
        for key in ["context_switch", "timer_interrupt", "release_latency"] {
            text += &format!("{key} = \"{} ns\"\n", random.below(3) / 2);
        }
        if random.below(2) == 0 {
            let cpu = random.below(cpus.into());
            text += &format!(
                "[[interference]]\nname = \"net\"\ncpu = {cpu}\nutilisation = 0.1\nperiod = \"3 ns\"\n"
            );
        }
    }
    match kind {
        Kind::Local => text += "[[resource]]\nname = \"r0\"\n[[resource]]\nname = \"r1\"\n",
        Kind::Spinning => {
            text += "[[resource]]\nname = \"r0\"\nprotocol = \"msrp\"\n[[resource]]\nname = \"r1\"\nprotocol = \"msrp\"\n"
        }
        _ => {}
    }
    for task in 0..count {
        let period = PERIODS[random.below(5) as usize];
        // Between half a processor for each and a little for each: some fit, some do not.
        let most = (period * 6 * u64::from(cpus) / (5 * count)).clamp(1, period);
        let wcet = random.between(1, most);
        let deadline = if random.below(2) == 0 { period } else { random.between(wcet, period + 2) };
        text += &format!(
            "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\ndeadline = \"{deadline} ns\"\n"
        );
        if policy.is_empty() {
            text += &format!("priority = {}\n", random.between(1, 4));
        }
        if kind == Kind::Costly && random.below(4) == 0 {
            text += "preemption = \"non-preemptive\"\n";
        }
        if kind == Kind::Costly && random.below(3) == 0 {
            text += &format!("jitter = \"{} ns\"\n", random.below(3));
        }
        if matches!(kind, Kind::Local | Kind::Spinning) && random.below(2) == 0 {
            let (resource, length) = (random.below(2), random.between(1, wcet.min(2)));
            text += &format!(
                "[[task.section]]\nresource = \"r{resource}\"\nfrom = \"0 ns\"\nlength = \"{length} ns\"\n"
            );
        }
    }
    (file::read_unplaced(&text, "s", &[]).unwrap_or_else(|found| panic!("{found}\n{text}")).0, cpus)
}

fn holds(draft: Draft) -> bool {
    let found = System::new(draft).ok().map(|system| analyze(&system, &Options::default()));
    matches!(found, Some(Ok(analysis)) if analysis.schedulable == Schedulable::Yes)
}

fn on(system: &System, cpus: &[u32]) -> Draft {
    let mut draft = system.to_draft();
    for (task, &cpu) in draft.tasks.iter_mut().zip(cpus) {
        task.cpu = CpuId(cpu);
    }
    draft
}

/// Every placement with which all hard deadlines hold.
fn feasible(system: &System, cpus: u32) -> BTreeSet<Vec<u32>> {
    let count = system.tasks().len() as u32;
    let all =
        (0..cpus.pow(count)).map(|number| (0..count).map(|place| number / cpus.pow(place) % cpus).collect());
    all.filter(|placement: &Vec<u32>| holds(on(system, placement))).collect()
}

/// Each heuristic once more, from its words: sorted by exact fractions, and all that is placed is analysed again for every try.
fn second_writing(system: &System, cpus: u32, heuristic: Heuristic, order: TaskOrder) -> Option<Vec<u32>> {
    let tasks = system.tasks();
    let cost = 2 * system.platform().context_switch_cost().as_ns();
    let wcet = |task: usize| tasks[task].wcet.as_ns() + cost;
    let period = |task: usize| tasks[task].separation().unwrap().as_ns();
    let deadline = |task: usize| tasks[task].deadline.unwrap().as_ns();
    let time = |task: usize| match order {
        TaskOrder::Density => period(task).min(deadline(task)),
        _ => period(task),
    };
    let mut sorted: Vec<usize> = (0..tasks.len()).collect();
    sorted.sort_by(|&a, &b| match order {
        TaskOrder::File => std::cmp::Ordering::Equal,
        TaskOrder::Deadline => deadline(a).cmp(&deadline(b)),
        _ => (wcet(b) * time(a)).cmp(&(wcet(a) * time(b))),
    });
    let mut placed: Vec<Option<u32>> = vec![None; tasks.len()];
    let mut current = 0;
    for &task in &sorted {
        // Over 24 every share is a whole number; the measured load is a tenth.
        let load = |cpu: u32, placed: &[Option<u32>]| -> u64 {
            let own = (0..tasks.len()).filter(|&other| placed[other] == Some(cpu));
            let given = system.interferences().iter().filter(|it| it.cpu.0 == cpu).count() as u64;
            own.map(|other| wcet(other) * 240 / period(other)).sum::<u64>() + given * 24
        };
        let mut candidates: Vec<u32> = (0..cpus).collect();
        match heuristic {
            Heuristic::FirstFit => {}
            Heuristic::NextFit => candidates.retain(|&cpu| cpu >= current),
            Heuristic::BestFit => candidates.sort_by_key(|&it| std::cmp::Reverse(load(it, &placed))),
            Heuristic::WorstFit => candidates.sort_by_key(|&it| load(it, &placed)),
        }
        for cpu in candidates {
            placed[task] = Some(cpu);
            let mut draft = system.to_draft();
            draft.tasks = (0..tasks.len())
                .filter_map(|other| {
                    let mut own = tasks[other].clone();
                    own.cpu = CpuId(placed[other]?);
                    Some(own)
                })
                .collect();
            if holds(draft) {
                current = cpu;
                break;
            }
            placed[task] = None;
        }
    }
    placed.into_iter().collect()
}

const ORDERS: [TaskOrder; 4] =
    [TaskOrder::Utilisation, TaskOrder::Density, TaskOrder::Deadline, TaskOrder::File];

/// What is proposed is among the feasible placements of all; where there is none, nothing is proposed as proved. How often each heuristic finds one.
fn against_all_placements(kind: Kind, systems: u64, seed: u64) {
    let mut random = Random::new(seed);
    let (mut possible, mut impossible, mut found) = (0, 0, [0_u64; 4]);
    let mut bound = 0;
    for _ in 0..systems {
        let (system, cpus) = draw(&mut random, kind);
        let good = feasible(&system, cpus);
        *(if good.is_empty() { &mut impossible } else { &mut possible }) += 1;
        let order = ORDERS[random.below(4) as usize];
        for acceptance in [Acceptance::Exact, Acceptance::Utilisation] {
            let request = Request { order, acceptance, ..Request::all(&system) };
            let answer = partition(&system, &request, &Options::default()).unwrap();
            for (place, attempt) in answer.report.attempts.iter().enumerate() {
                let placement: Vec<u32> = attempt.tasks.iter().map(|task| task.cpu).collect();
                let is_proved = attempt.schedulable == Some(Schedulable::Yes);
                assert_eq!(is_proved, attempt.placed && good.contains(&placement), "{attempt:?} {system:?}");
                match acceptance {
                    Acceptance::Exact => {
                        // What the exact test has placed is proved as a whole.
                        assert_eq!(attempt.placed, is_proved, "{attempt:?} {system:?}");
                        found[place] += u64::from(is_proved);
                    }
                    Acceptance::Utilisation => bound += u64::from(is_proved),
                }
            }
            assert!(!answer.report.overloaded || good.is_empty());
            if let Some(placed) = answer.system {
                let placement: Vec<u32> = placed.tasks().iter().map(|task| task.cpu.0).collect();
                let chosen =
                    answer.report.attempts.iter().find(|it| Some(it.heuristic) == answer.report.chosen);
                assert_eq!(chosen.unwrap().schedulable == Some(Schedulable::Yes), good.contains(&placement));
            }
        }
    }
    println!(
        "{kind:?}: of {systems} systems {possible} have a placement; found {found:?}, by a bound {bound} of 4"
    );
    assert!(possible > systems / 4 && impossible > 0, "{possible} {impossible}");
    assert!(found.iter().all(|&found| found > possible / 2 && found <= possible), "{found:?} of {possible}");
    assert!(bound > 0 && bound < found.iter().sum());
}

#[test]
fn plain_systems_against_all_placements() {
    against_all_placements(Kind::Plain, 150, 1);
}

#[test]
fn systems_with_costs_against_all_placements() {
    against_all_placements(Kind::Costly, 150, 2);
}

#[test]
fn local_resources_against_all_placements() {
    against_all_placements(Kind::Local, 100, 3);
}

#[test]
fn spin_locks_against_all_placements() {
    against_all_placements(Kind::Spinning, 100, 4);
}

/// The same task on the same processor, or nothing placed by either.
#[test]
fn each_heuristic_is_what_its_words_say() {
    let mut random = Random::new(5);
    let (mut same, mut none) = (0, 0);
    for number in 0..160 {
        // Tasks that stay together are no part of the second writing.
        let kind = [Kind::Plain, Kind::Costly, Kind::Spinning][number % 3];
        let (system, cpus) = draw(&mut random, kind);
        let order = ORDERS[random.below(4) as usize];
        let request = Request { order, ..Request::all(&system) };
        let answer = partition(&system, &request, &Options::default()).unwrap();
        for attempt in &answer.report.attempts {
            let expected = second_writing(&system, cpus, attempt.heuristic, order);
            let placement =
                attempt.placed.then(|| attempt.tasks.iter().map(|task| task.cpu).collect::<Vec<u32>>());
            assert_eq!(placement, expected, "{:?} {order:?} {system:?}", attempt.heuristic);
            *(if expected.is_some() { &mut same } else { &mut none }) += 1;
        }
    }
    assert!(same > 100 && none > 50, "{same} {none}");
}

/// A job of a part, in whole nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Job {
    cpu: u32,
    release: u64,
    due: u64,
    left: u64,
}

/// By earliest deadline, ties against any order: the first instant at which a job is late, and when each ended.
fn run(mut jobs: Vec<Job>, until: u64) -> Result<Vec<u64>, u64> {
    let mut ends = vec![0; jobs.len()];
    let cpus: BTreeSet<u32> = jobs.iter().map(|job| job.cpu).collect();
    for now in 0..until {
        if jobs.iter().any(|job| job.left > 0 && job.due <= now) {
            return Err(now);
        }
        for &cpu in &cpus {
            let ready = jobs.iter_mut().enumerate();
            let ready = ready.filter(|(_, job)| job.cpu == cpu && job.release <= now && job.left > 0);
            if let Some((index, job)) = ready.min_by_key(|(_, job)| job.due) {
                job.left -= 1;
                ends[index] = now + 1;
            }
        }
    }
    Ok(ends)
}

/// One task of a placed system: (cpu, wcet, deadline, after) of each part, the period.
type Parts = (Vec<(u32, u64, u64, u64)>, u64);

/// The jobs of arrivals a period apart, or up to `extra` more.
fn jobs_of(tasks: &[Parts], extra: u64, until: u64, random: &mut Random) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (parts, period) in tasks {
        let mut arrival = if extra == 0 { 0 } else { random.below(extra + 1) };
        while arrival + period <= until {
            jobs.extend(parts.iter().map(|&(cpu, wcet, deadline, after)| Job {
                cpu,
                release: arrival + after,
                due: arrival + after + deadline,
                left: wcet,
            }));
            arrival += period + if extra == 0 { 0 } else { random.below(extra + 1) };
        }
    }
    jobs
}

/// Accepted splits never miss, first parts end on the dot, and a nanosecond more in the first part makes its processor miss.
#[test]
fn accepted_splits_never_miss_and_are_the_longest() {
    let mut random = Random::new(6);
    let (mut splits, mut tight, mut threes, mut helped) = (0, 0, 0, 0);
    for _ in 0..600 {
        let cpus = random.between(2, 3);
        let mut text = format!("[system]\nname = \"s\"\npolicy = \"edf\"\n[platform]\ncpus = {cpus}\n");
        for task in 0..=cpus + random.below(2) {
            let period = PERIODS[random.below(5) as usize];
            let wcet = random.between(period / 3 + 1, (3 * period / 4).max(period / 3 + 1));
            let deadline = random.between(wcet.max(period - 1), period);
            text += &format!(
                "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\ndeadline = \"{deadline} ns\"\n"
            );
        }
        let (system, ..) = file::read_unplaced(&text, "s", &[]).unwrap();
        let request =
            Request { splits: true, heuristics: vec![Heuristic::FirstFit], ..Request::all(&system) };
        let answer = partition(&system, &request, &Options::default()).unwrap();
        let attempt = &answer.report.attempts[0];
        if !attempt.placed || attempt.tasks.iter().all(|task| task.part_of.is_none()) {
            continue;
        }
        helped += 1;
        assert_eq!(attempt.schedulable, Some(Schedulable::Yes), "{text}");
        let mut tasks: Vec<Parts> = Vec::new();
        for whole in system.tasks() {
            let own =
                attempt.tasks.iter().filter(|it| it.part_of.as_ref().unwrap_or(&it.task) == &whole.name);
            let mut after = 0;
            let parts: Vec<(u32, u64, u64, u64)> = own
                .map(|part| {
                    let (wcet, deadline) = (part.wcet.as_ns(), part.deadline.unwrap().as_ns());
                    let given = (part.cpu, wcet, deadline, after);
                    after += wcet;
                    given
                })
                .collect();
            // The parts are the task: its whole work, done within its deadline, one part a processor.
            assert_eq!(after, whole.wcet.as_ns());
            let (_, _, deadline, from) = parts[parts.len() - 1];
            assert_eq!(from + deadline, whole.deadline.unwrap().as_ns());
            assert!(parts[..parts.len() - 1].iter().all(|&(_, wcet, deadline, _)| wcet == deadline));
            let on: BTreeSet<u32> = parts.iter().map(|part| part.0).collect();
            assert_eq!(on.len(), parts.len());
            splits += usize::from(parts.len() > 1);
            threes += usize::from(parts.len() > 2);
            tasks.push((parts, whole.separation().unwrap().as_ns()));
        }
        for extra in [0, 0, 1, 3, 5] {
            let jobs = jobs_of(&tasks, extra, 60, &mut random);
            let ends = run(jobs.clone(), 60)
                .unwrap_or_else(|at| panic!("late at {at} with {extra}: {tasks:?}\n{text}"));
            for (job, end) in jobs.iter().zip(ends) {
                assert!(end <= job.due && (job.due - job.release > job.left || end == job.due));
            }
        }
        tight += one_more_misses(&tasks, &mut random);
    }
    println!(
        "{helped} systems were placed by {splits} splits, {threes} in three parts; {tight} first parts were at the edge"
    );
    assert!(splits > 40 && tight > 40 && threes > 0, "{splits} {tight} {threes}");
}

/// Of each split task the first part with a nanosecond more, beside what was on its processor when it was found: everything but later parts, which
/// came after it. How many of them miss.
fn one_more_misses(tasks: &[Parts], random: &mut Random) -> usize {
    let mut tight = 0;
    for (index, (parts, period)) in tasks.iter().enumerate().filter(|(_, (parts, _))| parts.len() > 1) {
        let rest: u64 = parts[1..].iter().map(|part| part.1).sum();
        let is_only_split = tasks.iter().filter(|(parts, _)| parts.len() > 1).count() == 1;
        if rest < 2 || !is_only_split {
            continue;
        }
        let (cpu, wcet, ..) = parts[0];
        let mut own: Vec<Parts> = tasks
            .iter()
            .enumerate()
            .filter(|(other, (parts, _))| *other != index && parts[0].0 == cpu)
            .map(|(_, task)| task.clone())
            .collect();
        own.push((vec![(cpu, wcet + 1, wcet + 1, 0)], *period));
        let jobs = jobs_of(&own, 0, 72, random);
        assert!(run(jobs, 72).is_err(), "{own:?}");
        tight += 1;
    }
    tight
}

/// The file of a split of a periodic task: the proof and the simulator agree on it, and the value that the first part publishes is there when the second arrives.
#[test]
fn the_parts_of_a_periodic_task_stand_in_a_file() {
    let text = "[system]\nname = \"s\"\npolicy = \"edf\"\n[platform]\ncpus = 2\n[[link]]\nname = \"out\"\nfrom = \"c\"\nto = [\"a\"]\n\
                [[task]]\nname = \"a\"\nperiod = \"10 us\"\nwcet = \"6 us\"\n[[task]]\nname = \"b\"\nperiod = \"10 us\"\nwcet = \"6 us\"\n\
                [[task]]\nname = \"c\"\nperiod = \"10 us\"\nwcet = \"6 us\"\n";
    let (system, ..) = file::read_unplaced(text, "s", &[]).unwrap();
    let mut request = Request::all(&system);
    assert!(partition(&system, &request, &Options::default()).unwrap().system.is_none());
    request.splits = true;
    let placed = partition(&system, &request, &Options::default()).unwrap().system.unwrap();
    let names: Vec<&str> = placed.tasks().iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c-1", "c-2"]);
    let (first, second) = (&placed.tasks()[2], &placed.tasks()[3]);
    assert_eq!((first.wcet.as_ns(), first.deadline.unwrap().as_ns()), (4_000, 4_000));
    assert_eq!((second.wcet.as_ns(), second.deadline.unwrap().as_ns()), (2_000, 6_000));
    assert_eq!((first.offset.unwrap().as_ns(), second.offset.unwrap().as_ns()), (0, 4_000));
    assert_eq!((placed.links()[0].from.as_str(), placed.links()[1].from.as_str()), ("c-2", "c-1"));
    let again = file::read(&file::print(&placed), "s", &[]).unwrap().0;
    assert_eq!(again, placed);
    let options = horolog_sim::SimOptions::default();
    let outcome = horolog_sim::simulate(&again, &options, &mut horolog_trace::NullSink).unwrap();
    assert!(outcome.tasks.iter().all(|task| task.missed == 0 && task.completed > 0));
    // A sporadic one has no file.
    let sporadic = text.replace("name = \"c\"\nperiod", "name = \"c\"\nseparation");
    let (system, ..) = file::read_unplaced(&sporadic, "s", &[]).unwrap();
    let found =
        partition(&system, &Request { splits: true, ..Request::all(&system) }, &Options::default()).unwrap();
    assert!(found.system.is_none() && found.report.attempts[0].schedulable == Some(Schedulable::Yes));
}
