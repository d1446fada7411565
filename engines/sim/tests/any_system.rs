//! Any valid system: a result or an error, never a panic; the same seed gives the same records; records make sense.

use horolog_model::{Policy, System};
use horolog_sim::{Horizon, PathChoice, SimOptions, simulate};
use horolog_testkit::{Shape, systems};
use horolog_time::Span;
use horolog_trace::{Kind, NullSink, Record};
use proptest::prelude::*;

/// The system with a priority for every task: what an assignment would give, in the order of the file.
fn resolved(system: &System) -> Option<System> {
    let mut draft = system.to_draft();
    if draft.policy == Policy::FixedPriority {
        draft.priorities = horolog_model::PriorityAssignment::Explicit;
        for (index, task) in draft.tasks.iter_mut().enumerate() {
            task.priority.get_or_insert(horolog_model::Priority::new(index as i64));
        }
    }
    System::new(draft).ok()
}

/// At each processor at most one job runs, and a job runs only between its release and its completion.
fn check(system: &System, records: &[Record]) -> Result<(), TestCaseError> {
    let mut running = vec![None; system.tasks().len()];
    let mut on_cpu = std::collections::HashMap::new();
    let mut released = vec![0; system.tasks().len()];
    let mut completed = vec![0; system.tasks().len()];
    for record in records {
        let task = record.task as usize;
        match record.kind {
            Kind::Release => {
                prop_assert_eq!(record.job, released[task]);
                prop_assert!(record.value <= record.time.as_ns());
                released[task] += 1;
            }
            Kind::Start | Kind::Resume => {
                prop_assert!(record.job < released[task] && record.job == completed[task]);
                prop_assert_eq!(on_cpu.insert(record.cpu, task), None);
                running[task] = Some(record.job);
            }
            Kind::Preempt | Kind::Yield | Kind::Completion => {
                prop_assert_eq!(on_cpu.remove(&record.cpu), Some(task));
                prop_assert_eq!(running[task].take(), Some(record.job));
                completed[task] += u64::from(record.kind == Kind::Completion);
                if record.kind == Kind::Completion {
                    let bounds = system.tasks()[task].bcet.as_ns()..=system.tasks()[task].wcet.as_ns();
                    prop_assert!(bounds.contains(&record.value), "{} executed {}", task, record.value);
                }
            }
            _ => {}
        }
    }
    prop_assert!(records.windows(2).all(|pair| pair[0].time <= pair[1].time));
    Ok(())
}

fn simulated(system: &System, path: &PathChoice) -> Result<(), TestCaseError> {
    for horizon in [Horizon::Default, Horizon::Time(Span::from_ns(1 << 50)), Horizon::Jobs(300)] {
        let path = path.clone();
        let options =
            SimOptions { horizon, path, max_events: 4_000, max_backlog: 1_000, ..SimOptions::default() };
        let mut records = Vec::new();
        let first = simulate(system, &options, &mut records);
        prop_assert_eq!(&first, &simulate(system, &options, &mut NullSink));
        match first {
            Ok(outcome) => {
                for task in &outcome.tasks {
                    prop_assert_eq!(task.jobs, task.completed + task.unfinished);
                    prop_assert!(task.missed <= task.jobs);
                }
                check(system, &records)?;
            }
            Err(error) => {
                prop_assert!(error.is_overload() || error.to_string().contains("584 years"), "{}", error)
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn everything_that_a_file_may_say(system in systems(Shape::everything())) {
        if let Some(system) = resolved(&system) {
            simulated(&system, &PathChoice::Random)?;
        }
    }

    #[test]
    fn small_systems(system in systems(Shape::small())) {
        if let Some(system) = resolved(&system) {
            simulated(&system, &PathChoice::Longest)?;
        }
    }
}
