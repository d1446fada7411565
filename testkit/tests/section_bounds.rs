//! Blocking by sections under the immediate ceiling: bounds against every phase of tiny systems in the simulator, and against the
//! equation written out plainly.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{MissWitness, Options, Verdict, analyze};
use horolog_model::{Arrival, CpuId, Draft, Preemption, Priority, Resource, Section, System, Task};
use horolog_sim::{Horizon, ReplayOptions, SimOptions, replay, simulate};
use horolog_testkit::Random;
use horolog_time::Span;
use horolog_trace::NullSink;

const PERIODS: [u64; 4] = [4, 6, 8, 12];
/// A multiple of all periods.
const HYPERPERIOD: u64 = 24;

fn ns(time: u64) -> Span {
    Span::from_ns(time)
}

/// Two or three preemptive tasks with one to three sections each on two resources; `None` where they ask for the whole processor.
fn drawn(random: &mut Random, are_equal: bool) -> Option<System> {
    let resource = |name: &str| Resource { name: name.to_owned(), ..Resource::default() };
    let mut draft =
        Draft { name: "tiny".to_owned(), resources: vec![resource("a"), resource("b")], ..Draft::default() };
    let count = random.between(2, 3);
    let mut share = 0;
    for number in 0..count {
        let period = PERIODS[random.below(4) as usize];
        let wcet = random.between(1, (period / 2).min(4));
        share += wcet * HYPERPERIOD / period;
        let mut task = Task {
            name: format!("t{number}"),
            arrival: Arrival::Periodic { period: ns(period) },
            deadline: Some(ns(random.between(wcet, 2 * period))),
            wcet: ns(wcet),
            bcet: ns(wcet),
            priority: Some(Priority::new(if are_equal { random.between(1, 2) as i64 } else { number as i64 })),
            cpu: CpuId(0),
            preemption: Preemption::Preemptive,
            ..horolog_model::file::read(
                "[system]\nname = \"x\"\n[[task]]\nname = \"x\"\nperiod = \"1 ns\"\nwcet = \"1 ns\"\npriority = 1\n",
                "x",
                &[],
            )
            .unwrap()
            .0
            .tasks()[0]
                .clone()
        };
        for _ in 0..random.below(4) {
            let from = random.below(wcet);
            let name = if random.below(2) == 0 { "a" } else { "b" };
            let section = Section {
                resource: name.to_owned(),
                from: ns(from),
                length: ns(random.between(1, wcet - from)),
                access: horolog_model::Access::Write,
            };
            let is_apart = |one: &Section| section.end() <= Some(one.from) || one.end() <= Some(section.from);
            let fits = |one: &Section| section.nests_with(one) && (one.resource != name || is_apart(one));
            if task.sections.iter().all(fits) {
                task.sections.push(section);
            }
        }
        draft.tasks.push(task);
    }
    (share < HYPERPERIOD).then(|| System::new(draft).unwrap())
}

fn number(task: &Task) -> i64 {
    task.priority.unwrap().number()
}

/// The longest section of a less important task on a resource that the task at `index` or a more important one uses.
fn blocking(system: &System, index: usize) -> u64 {
    let own = number(&system.tasks()[index]);
    let reaches = |name: &str| {
        let users = system.tasks().iter().filter(|task| number(task) >= own);
        users.flat_map(|task| &task.sections).any(|section| section.resource == name)
    };
    let below = system.tasks().iter().filter(|task| number(task) < own).flat_map(|task| &task.sections);
    below
        .filter(|section| reaches(&section.resource))
        .map(|section| section.length.as_ns())
        .max()
        .unwrap_or(0)
}

/// The longest response of all jobs of the busy period, with this blocking; for tasks of different priorities.
fn by_equation(system: &System, index: usize, blocking: u64) -> u64 {
    let task = &system.tasks()[index];
    let (wcet, period) = (task.wcet.as_ns(), task.separation().unwrap().as_ns());
    let above: Vec<(u64, u64)> = system
        .tasks()
        .iter()
        .filter(|other| number(other) > number(task))
        .map(|other| (other.wcet.as_ns(), other.separation().unwrap().as_ns()))
        .collect();
    let mut worst = 0;
    for job in 0.. {
        let base = blocking + (job + 1) * wcet;
        let mut end = base;
        loop {
            let next = base + above.iter().map(|(c, t)| end.div_ceil(*t) * c).sum::<u64>();
            if next == end {
                break;
            }
            end = next;
        }
        worst = worst.max(end - job * period);
        if end <= (job + 1) * period {
            break;
        }
    }
    worst
}

/// The longest response of every task over all phases.
fn over_all_phases(system: &System) -> Vec<u64> {
    let periods: Vec<u64> = system.tasks().iter().map(|task| task.separation().unwrap().as_ns()).collect();
    let mut worst = vec![0; periods.len()];
    let all: u64 = periods[1..].iter().product();
    for mut phase in 0..all {
        let mut draft = system.to_draft();
        for (task, period) in draft.tasks.iter_mut().zip(&periods).skip(1) {
            task.offset = Some(ns(phase % period));
            phase /= period;
        }
        draft.tasks[0].offset = Some(Span::ZERO);
        let options = SimOptions { horizon: Horizon::Time(ns(4 * HYPERPERIOD)), ..SimOptions::default() };
        let outcome = simulate(&System::new(draft).unwrap(), &options, &mut NullSink).unwrap();
        for (worst, task) in worst.iter_mut().zip(&outcome.tasks) {
            *worst = (*worst).max(task.response_ns_max.map_or(0, Span::as_ns));
        }
    }
    worst
}

#[test]
fn the_bound_is_that_of_the_equation_and_the_worst_phase_reaches_it() {
    let (mut blocked, mut careful, mut misses) = (0, 0, 0);
    for seed in 0..800 {
        let Some(system) = drawn(&mut Random::of_item(61, seed), false) else { continue };
        let analysis = analyze(&system, &Options::default()).unwrap();
        let worst = over_all_phases(&system);
        let text = || horolog_model::file::print(&system);
        for (index, verdict) in analysis.tasks.iter().enumerate() {
            let by_section = blocking(&system, index);
            let bound = verdict.response.unwrap().as_ns();
            assert_eq!(bound, by_equation(&system, index, by_section), "{}\n{}", verdict.name, text());
            assert_eq!(verdict.blocking, Some(ns(by_section)));
            // In whole nanoseconds the section begins one before the others come.
            let reachable = by_equation(&system, index, by_section.saturating_sub(1));
            if verdict.exact {
                assert_eq!(worst[index], reachable, "{}\n{}", verdict.name, text());
            } else {
                assert!(worst[index] <= reachable, "{}: {}\n{}", verdict.name, worst[index], text());
                careful += u32::from(worst[index] < reachable);
            }
            blocked += u32::from(by_section > 0);
            let deadline = verdict.deadline.unwrap().as_ns();
            match verdict.verdict {
                Verdict::Meets => assert!(worst[index] <= deadline),
                Verdict::Misses => misses += u32::from(bound > deadline && verdict.exact),
                Verdict::Unknown => assert!(!verdict.exact),
            }
        }
    }
    assert!(
        blocked > 60 && careful > 3 && misses > 30,
        "{blocked} blocked, {careful} careful, {misses} misses"
    );
}

#[test]
fn among_equals_no_phase_exceeds_the_bound() {
    let mut compared = 0;
    for seed in 0..150 {
        let Some(system) = drawn(&mut Random::of_item(62, seed), true) else { continue };
        let analysis = analyze(&system, &Options::default()).unwrap();
        for (worst, verdict) in over_all_phases(&system).iter().zip(&analysis.tasks) {
            let bound = verdict.response.unwrap().as_ns();
            assert!(
                *worst <= bound,
                "{}: {worst} of {bound}\n{}",
                verdict.name,
                horolog_model::file::print(&system)
            );
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn a_pattern_with_a_section_that_blocks_runs_into_the_miss() {
    let (mut patterns, mut blocked) = (0, 0);
    for seed in 0..2_500 {
        let Some(system) = drawn(&mut Random::of_item(63, seed), seed % 3 == 0) else { continue };
        let analysis = analyze(&system, &Options::default()).unwrap();
        for task in analysis.tasks.iter().filter(|task| task.verdict == Verdict::Misses) {
            let Some(MissWitness::Pattern { pattern }) = &task.witness else { continue };
            let run = replay(&system, pattern, &ReplayOptions::default(), &mut NullSink).unwrap();
            let witness = run.witness.unwrap();
            let text = horolog_model::file::print(&system);
            assert!(
                witness.missed && witness.as_promised != Some(false),
                "{}: {witness:?}\n{text}",
                task.name
            );
            patterns += 1;
            blocked += u32::from(task.blocking != Some(Span::ZERO));
        }
    }
    assert!(patterns > 100 && blocked > 20, "{patterns} patterns, {blocked} blocked");
}
