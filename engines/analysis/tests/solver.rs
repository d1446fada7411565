//! The fast engine against the general one, and against division.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::fixed_priority::{PlainTask, Solver};
use horolog_analysis::{Options, analyze};
use horolog_model::Policy;
use horolog_testkit::{PreemptionRecipe, Random, TaskSetRecipe, system_of};
use horolog_time::Span;

/// The plain tasks of a system, most important first, and the places of its tasks in that order.
fn plain(system: &horolog_model::System) -> (Vec<PlainTask>, Vec<usize>) {
    let mut order: Vec<usize> = (0..system.tasks().len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(system.tasks()[i].priority.unwrap().number()));
    let tasks = order
        .iter()
        .map(|&i| {
            let task = &system.tasks()[i];
            let (separation, jitter) = (task.separation().unwrap().as_ns(), task.jitter.as_ns());
            match task.segment_graph() {
                Some(graph) => {
                    let segments: Vec<u64> = graph.segments.iter().map(|s| s.wcet.as_ns()).collect();
                    PlainTask::deferred(separation, jitter, &segments).unwrap()
                }
                None if task.is_non_preemptive_between_points() => {
                    PlainTask::non_preemptive(separation, jitter, task.wcet.as_ns())
                }
                None => PlainTask::preemptive(separation, jitter, task.wcet.as_ns()),
            }
        })
        .collect();
    (tasks, order)
}

#[test]
fn both_engines_agree() {
    let mut solver = Solver::default();
    let (mut compared, mut with_many_jobs) = (0, 0);
    let recipes = [
        PreemptionRecipe::Preemptive,
        PreemptionRecipe::NonPreemptive,
        PreemptionRecipe::Deferred { max_segments: 5 },
    ];
    for (round, recipe) in recipes.iter().cycle().take(240).enumerate() {
        let mut random = Random::of_item(11, round as u64);
        // Several sets side by side, one of them with another mode, to exercise lanes that differ.
        let (mut sets, mut expected) = (Vec::new(), Vec::new());
        for lane in 0..5 {
            let tasks = TaskSetRecipe {
                tasks: 6,
                granularity: Span::from_ns(if round % 2 == 0 { 1 } else { 1_000_000 }),
                ..TaskSetRecipe::bench(random.between(600_000_000, 990_000_000))
            };
            let recipe = if lane == 3 { recipes[(round + 1) % 3] } else { *recipe };
            let drawn = tasks.draw(&mut random);
            let mut draft = system_of(&drawn, Policy::FixedPriority, recipe, &mut random).to_draft();
            for task in &mut draft.tasks {
                if random.between(0, 2) == 0 {
                    task.jitter = Span::from_ns(random.between(0, 30_000_000));
                }
            }
            let system = horolog_model::System::new(draft).unwrap();
            let (rows, order) = plain(&system);
            let analysis = analyze(&system, &Options::default()).unwrap();
            for (row, &index) in rows.iter().zip(&order) {
                let response = analysis.tasks[index].response.unwrap().as_ns();
                with_many_jobs += u32::from(response > row.separation);
                expected.push(Some(response));
            }
            sets.extend(rows);
        }
        let mut responses = vec![None; sets.len()];
        solver.solve(&sets, 6, &mut responses);
        assert_eq!(responses, expected, "round {round}: {sets:#?}");
        compared += responses.len();
    }
    assert!(compared > 7_000 && with_many_jobs > 100, "{compared} {with_many_jobs}");
}

#[test]
fn extreme_sets_go_to_the_general_engine() {
    let mut solver = Solver::default();
    let huge = 1 << 60;
    let sets = [
        // Utilisation exactly 1; above 1; times far beyond the fast range; a plain set beside them.
        [PlainTask::preemptive(4, 0, 2), PlainTask::preemptive(8, 0, 4)],
        [PlainTask::preemptive(4, 0, 3), PlainTask::preemptive(8, 0, 4)],
        [PlainTask::preemptive(huge, 0, huge / 4), PlainTask::preemptive(2 * huge, 0, huge)],
        [PlainTask::preemptive(10, 0, 2), PlainTask::preemptive(15, 0, 4)],
        [PlainTask::preemptive(3, 0, 1), PlainTask::preemptive(0, 0, 4)],
    ]
    .concat();
    let mut responses = [None; 10];
    solver.solve(&sets, 2, &mut responses);
    let expected = [
        [Some(2), Some(8)],
        [Some(3), None],
        [Some(huge / 4), Some(huge / 4 * 6)],
        [Some(2), Some(6)],
        [Some(1), None],
    ];
    assert_eq!(responses.as_slice(), expected.concat());
}

#[test]
fn endless_looking_busy_periods_go_to_the_general_engine_too() {
    // Releases of 100 s at once: some 10^10 jobs before the processor is idle, preemptive or not.
    let late = 100_000_000_000;
    let sets = [
        PlainTask::preemptive(36, late, 30),
        PlainTask::non_preemptive(36, late, 30),
        PlainTask::preemptive(36, 0, 30),
        // Some 2^22 jobs at once, which the general engine has not the effort for either.
        PlainTask::preemptive(36, 36 << 22, 6),
    ];
    let mut responses = [None; 4];
    Solver::with_effort(100_000).solve(&sets, 1, &mut responses);
    assert_eq!(responses, [None, None, Some(30), None]);
}

/// A preemptive job behind a blocking one of 2: `x = 2 + 2 + ⌈x/4⌉` is 6, since the job that comes at 4 goes before what is left of it
/// then. Below both, a job that cannot be preempted starts at 3.
#[test]
fn a_preemptive_job_is_preempted_up_to_its_end() {
    let set = [
        PlainTask::preemptive(4, 0, 1),
        PlainTask::preemptive(100, 0, 2),
        PlainTask::non_preemptive(100, 0, 2),
    ];
    let mut responses = [None; 3];
    Solver::default().solve(&set, 3, &mut responses);
    assert_eq!(responses, [Some(3), Some(6), Some(5)]);
}
