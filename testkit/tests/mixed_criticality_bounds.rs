//! Mixed criticality: every phase and every execution of small systems, by a simulator written from the rules of adaptive mixed
//! criticality alone, against the bounds; the bounds against a second writing of each formula; and the real simulator against both.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::mixed_criticality::bounds::{LevelTask, amc_max, amc_rtb, low_mode, smc};
use horolog_analysis::{Options, analyze};
use horolog_model::ExecutionTimes;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::Random;
use horolog_time::Span;
use horolog_trace::NullSink;

const HORIZON: u64 = 40;
/// So many jobs of high criticality, in the order of their releases, may execute long; later ones do not.
const CHOICES: u32 = 5;

/// The most important first.
fn drawn(index: u64) -> Vec<LevelTask> {
    let mut random = Random::of_item(31, index);
    let count = 2 + random.below(2);
    let mut tasks: Vec<LevelTask> = (0..count)
        .map(|_| {
            let period = 3 + random.below(6);
            let low = 1 + random.below(2);
            let high = (random.below(3) > 0).then(|| low + random.below(3));
            let deadline = (period - random.below(2)).max(high.unwrap_or(low));
            LevelTask { period, deadline, jitter: 0, low, high, degraded: None }
        })
        .collect();
    let last = tasks.last_mut().unwrap();
    (last.period, last.deadline) = (last.period + 9, last.deadline + 9);
    last.high = Some(last.low + random.below(4));
    tasks.retain(|task| task.deadline <= task.period);
    tasks
}

/// Longer ones, in which what comes after the change is more than one job of each task above.
fn drawn_long(index: u64) -> Vec<LevelTask> {
    let mut random = Random::of_item(34, index);
    let mut tasks = Vec::new();
    for place in 0..4 {
        let period = if place == 3 { 150 } else { 8 + random.below(20) };
        let low = 1 + random.below(period / 6);
        let high = (place == 3 || random.below(2) == 0).then(|| low + random.below(period / 5));
        let deadline = high.unwrap_or(low).max(period - random.below(period / 2));
        tasks.push(LevelTask {
            period,
            deadline,
            jitter: random.below(3) * random.below(2),
            low,
            high,
            degraded: None,
        });
    }
    tasks
}

/// A file with these tasks, the first the most important.
fn text_of(tasks: &[LevelTask], low_jobs: &str, costs: &str) -> String {
    let mut text = format!("[system]\nname = \"s\"\n{costs}[criticality]\nscope = \"processor\"\n{low_jobs}");
    for (place, task) in tasks.iter().enumerate() {
        let LevelTask { period, deadline, jitter, low, .. } = task;
        text += &format!(
            "[[task]]\nname = \"t{place}\"\nperiod = \"{period} ns\"\ndeadline = \"{deadline} ns\"\nwcet = \"{low} ns\"\n\
             bcet = \"1 ns\"\njitter = \"{jitter} ns\"\npriority = {}\n",
            9 - place
        );
        text += &task.high.map_or_else(
            || "criticality = \"low\"\n".to_owned(),
            |high| format!("criticality = \"high\"\nwcet_high = \"{high} ns\"\n"),
        );
    }
    text
}

/// The longest response of each task: in unit steps, from the rules. At an instant what ends ends, then the mode changes, then jobs
/// are released, then the most important one runs.
fn naive_run(tasks: &[LevelTask], offsets: &[u64], is_long: impl Fn(u32) -> bool) -> Vec<u64> {
    let mut next = offsets.to_vec();
    // Of each task, its jobs: release, executed, length.
    let mut jobs: Vec<Vec<(u64, u64, u64)>> = vec![Vec::new(); tasks.len()];
    let (mut is_high, mut seen, mut worst) = (false, 0, vec![0; tasks.len()]);
    for now in 0..HORIZON {
        for (task, queue) in jobs.iter_mut().enumerate() {
            if let Some(&(release, executed, length)) = queue.first()
                && executed == length
            {
                worst[task] = worst[task].max(now - release);
                queue.remove(0);
            }
        }
        let overran = |(task, queue): (&LevelTask, &Vec<(u64, u64, u64)>)| {
            queue.first().is_some_and(|job| task.high.is_some() && job.1 >= task.low)
        };
        if !is_high && tasks.iter().zip(&jobs).any(overran) {
            is_high = true;
            let low = tasks.iter().zip(&mut jobs).filter(|(task, _)| task.high.is_none());
            low.for_each(|(_, queue)| queue.clear());
        }
        if is_high && jobs.iter().all(Vec::is_empty) {
            is_high = false;
            let low = tasks.iter().zip(&mut next).filter(|(task, _)| task.high.is_none());
            low.for_each(|(_, next)| *next = now);
        }
        for (place, task) in tasks.iter().enumerate() {
            if next[place] != now {
                continue;
            }
            next[place] = now + task.period;
            match task.high {
                None if is_high => {}
                None => jobs[place].push((now, 0, task.low)),
                Some(high) => {
                    jobs[place].push((now, 0, if is_long(seen) { high } else { task.low }));
                    seen += 1;
                }
            }
        }
        if let Some(queue) = jobs.iter_mut().find(|queue| !queue.is_empty()) {
            queue[0].1 += 1;
        }
    }
    worst
}

/// Arrivals `k T` with `k T - J` before `end`, counted one by one.
fn before(task: &LevelTask, end: u64) -> u64 {
    (0..).take_while(|k| k * task.period < end + task.jitter).count() as u64
}

fn naive_window(limit: u64, demand: impl Fn(u64) -> u64) -> Option<u64> {
    (1..=limit).find(|&window| demand(window) <= window)
}

fn naive_low(task: &LevelTask, above: &[LevelTask]) -> Option<u64> {
    let limit = task.deadline.checked_sub(task.jitter)?;
    naive_window(limit, |w| task.low + above.iter().map(|it| before(it, w) * it.low).sum::<u64>())
}

fn naive_smc(task: &LevelTask, above: &[LevelTask]) -> Option<u64> {
    let own = task.high.unwrap_or(task.low);
    let length = |it: &LevelTask| if task.high.is_some() { it.high.unwrap_or(it.low) } else { it.low };
    let demand = |w| own + above.iter().map(|it| before(it, w) * length(it)).sum::<u64>();
    Some(naive_window(task.deadline.checked_sub(task.jitter)?, demand)? + task.jitter)
}

fn naive_rtb(task: &LevelTask, above: &[LevelTask]) -> Option<u64> {
    let low = naive_low(task, above)?;
    let Some(own) = task.high else { return Some(low + task.jitter) };
    let part =
        |it: &LevelTask, w| it.high.map_or_else(|| before(it, low) * it.low, |high| before(it, w) * high);
    let demand = |w| own + above.iter().map(|it| part(it, w)).sum::<u64>();
    Some(naive_window(task.deadline.checked_sub(task.jitter)?, demand)? + task.jitter)
}

/// With every instant of the change.
fn naive_max(task: &LevelTask, above: &[LevelTask]) -> Option<u64> {
    let low = naive_low(task, above)?;
    let Some(own) = task.high else { return Some(low + task.jitter) };
    let limit = task.deadline.checked_sub(task.jitter)?;
    let mut worst = low;
    for change in 0..low {
        let part = |it: &LevelTask, w: u64| {
            let Some(high) = it.high else { return before(it, change + 1) * it.low };
            // Jobs with arrivals a period apart in the open window from `change - D` to `w`.
            let open = (w + it.deadline).saturating_sub(change);
            let beyond = (0..).take_while(|k| k * it.period < open).count() as u64;
            let (all, beyond) = (before(it, w), beyond.min(before(it, w)));
            beyond * high + (all - beyond) * it.low
        };
        worst = worst.max(naive_window(limit, |w| own + above.iter().map(|it| part(it, w)).sum::<u64>())?);
    }
    Some(worst + task.jitter)
}

#[test]
fn bounds_are_those_of_a_second_writing_and_in_their_order() {
    let (mut seen, mut tighter) = (0, [0; 2]);
    for index in 0..4_000 {
        let tasks = if index % 4 == 0 { drawn(index) } else { drawn_long(index) };
        for (place, task) in tasks.iter().enumerate() {
            let above = &tasks[..place];
            assert_eq!(low_mode(task, above), naive_low(task, above).map(|w| w + task.jitter), "{index}");
            let (rtb, max) = (amc_rtb(task, above), amc_max(task, above, 1_000));
            assert_eq!(smc(task, above), naive_smc(task, above), "{index}: {tasks:?}");
            assert_eq!(rtb, naive_rtb(task, above), "{index}: {tasks:?}");
            assert_eq!(max, naive_max(task, above), "{index}: {tasks:?}");
            if let (Some(static_bound), Some(rtb)) = (smc(task, above), rtb) {
                let max = max.unwrap();
                assert!(max <= rtb && rtb <= static_bound, "{index}: {max} {rtb} {static_bound}");
                seen += 1;
                tighter[0] += u32::from(max < rtb);
                tighter[1] += u32::from(rtb < static_bound);
            }
        }
    }
    assert!(seen > 5_000 && tighter[0] > 50 && tighter[1] > 500, "{seen} {tighter:?}");
}

#[test]
fn no_phase_and_no_execution_exceeds_a_bound() {
    let (mut compared, mut attained, mut tight) = (0, 0, 0);
    for index in 0..120 {
        let tasks = drawn(index);
        let bound = |place: usize| amc_max(&tasks[place], &tasks[..place], 1_000);
        if !(0..tasks.len()).all(|place| tasks[place].high.is_none() || bound(place).is_some()) {
            continue;
        }
        let mut worst = vec![0; tasks.len()];
        let phases: u64 = tasks.iter().map(|task| task.period.min(9)).product();
        for phase in 0..phases {
            let mut rest = phase;
            let offsets: Vec<u64> = tasks
                .iter()
                .map(|task| {
                    let own = rest % task.period.min(9);
                    rest /= task.period.min(9);
                    own
                })
                .collect();
            for long in 0_u32..1 << CHOICES {
                for (worst, response) in worst
                    .iter_mut()
                    .zip(naive_run(&tasks, &offsets, |job| job < CHOICES && long >> job & 1 == 1))
                {
                    *worst = response.max(*worst);
                }
            }
        }
        for (place, &response) in worst.iter().enumerate() {
            let Some(bound) = bound(place) else { continue };
            assert!(response <= bound, "{index}: task {place} took {response}, bound {bound}: {tasks:?}");
            compared += 1;
            attained += u32::from(response == bound);
            tight += u32::from(response == bound && tasks[place].high.is_some() && place > 0);
        }
    }
    assert!(
        compared > 100 && attained > 60 && tight > 10,
        "{compared} compared, {attained} attained, {tight}"
    );
}

#[test]
fn the_simulator_does_as_the_rules_say_and_the_analysis_bounds_it() {
    let (mut equal, mut long_runs, mut proved, mut finished) = (0, 0, 0, 0);
    for index in 0..600 {
        let (tasks, mut random) = (drawn(index), Random::of_item(33, index));
        if tasks.iter().all(|task| task.high.is_none()) {
            continue;
        }
        // The naive rules drop low jobs.
        let finishes = index % 2 == 0;
        let text = text_of(&tasks, if finishes { "low_jobs = \"finish\"\n" } else { "" }, "");
        let (system, _) = horolog_model::file::read(&text, "s", &[]).unwrap();
        let bounds: Vec<Option<u64>> = analyze(&system, &Options::default())
            .unwrap()
            .tasks
            .iter()
            .map(|task| task.response.map(Span::as_ns))
            .collect();
        let offsets: Vec<u64> = tasks.iter().map(|task| random.below(task.period)).collect();
        let is_long = random.below(2) == 1;
        let mut draft = system.to_draft();
        for (place, task) in draft.tasks.iter_mut().enumerate() {
            task.offset = Some(Span::from_ns(offsets[place]));
            if let (Some(high), true) = (tasks[place].high, is_long) {
                task.execution = ExecutionTimes::Jobs(vec![Span::from_ns(high)]);
            }
        }
        let system = horolog_model::System::new(draft).unwrap();
        let options = SimOptions {
            horizon: Horizon::Time(Span::from_ns(HORIZON)),
            max_backlog: 1_000,
            ..SimOptions::default()
        };
        let Ok(outcome) = simulate(&system, &options, &mut NullSink) else { continue };
        let all_bounded =
            bounds.iter().zip(&tasks).all(|(bound, task)| bound.is_some() || task.high.is_none());
        let naive = naive_run(&tasks, &offsets, |_| is_long);
        for (place, run) in outcome.tasks.iter().enumerate() {
            let largest = run.response_ns_max.map_or(0, Span::as_ns);
            // The naive one stops at the horizon, the other one finishes what was released.
            assert!(
                largest >= naive[place] || finishes,
                "{index}: task {place}: {largest}, naive {}\n{text}",
                naive[place]
            );
            finished += u32::from(finishes && largest > naive[place] && tasks[place].high.is_none());
            equal += u32::from(largest == naive[place]);
            long_runs += u32::from(is_long);
            if let (Some(bound), true) = (bounds[place], all_bounded) {
                assert!(largest <= bound, "{index}: task {place}: {largest} above {bound}\n{text}");
                proved += 1;
            }
        }
    }
    assert!(
        equal > 1_200 && long_runs > 500 && proved > 500 && finished > 5,
        "{equal} {long_runs} {proved} {finished}"
    );
}

/// The terms of each explanation make up the bound of the analysis, whichever test gave it, with costs of the platform and without.
#[test]
fn what_is_explained_is_what_was_proved() {
    let mut tests = std::collections::BTreeMap::new();
    for index in 0..900 {
        let costs =
            ["", "[platform]\ncontext_switch = \"1 ns\"\ntimer_interrupt = \"1 ns\"\n"][(index % 2) as usize];
        let tasks = if index % 3 == 0 { drawn(index) } else { drawn_long(index) };
        let low_jobs = if index % 5 == 0 { "low_jobs = \"finish\"\n" } else { "" };
        if tasks.iter().all(|task| task.high.is_none()) {
            continue;
        }
        let (system, _) = horolog_model::file::read(&text_of(&tasks, low_jobs, costs), "s", &[]).unwrap();
        for explained in horolog_testkit::explanations(&system) {
            *tests.entry(explained.test).or_insert(0) += 1;
        }
    }
    let names: Vec<&str> = tests.keys().copied().collect();
    assert_eq!(names, ["amc-low", "amc-max", "amc-rtb", "smc"], "{tests:?}");
    assert!(tests.values().all(|&count| count > 20), "{tests:?}");
}
