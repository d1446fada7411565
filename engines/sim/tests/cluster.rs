//! Clusters in virtual time: schedules computed by hand.

use horolog_model::{Cluster, CpuId, Cpus, LeftOver, Mode, Order, System, TaskChange};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

/// Tasks below one root over two processors.
fn pair(order: Order, platform: &str, tasks: &[&str]) -> System {
    let mut text = format!("[system]\nname = \"pair\"\n[platform]\ncpus = 1\n{platform}\n");
    for task in tasks {
        text += &format!("[[task]]\n{}\n", task.replace("; ", "\n"));
    }
    let (flat, _) =
        horolog_model::file::read(&text, "pair.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut draft = flat.to_draft();
    draft.platform.cpus = Cpus::Count(2);
    if order == Order::Edf {
        // The flat file under fixed priorities needs them.
        draft.tasks.iter_mut().for_each(|task| task.priority = None);
    }
    let tasks = draft.tasks.iter().map(|task| task.name.clone()).collect();
    draft.clusters = vec![Cluster { name: "pair".to_owned(), cpus: vec![CpuId(0), CpuId(1)], order, tasks }];
    System::new(draft).expect("a valid system")
}

/// What happens to jobs: when, what, which task, on which processor.
fn events(system: &System, until: u64) -> Vec<(u64, Kind, u32, u16)> {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(until)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate(system, &options, &mut records).expect("it simulates");
    let kinds = [Kind::Start, Kind::Preempt, Kind::Resume, Kind::Completion, Kind::Yield];
    let of_jobs = records.iter().filter(|record| kinds.contains(&record.kind));
    of_jobs.map(|record| (record.time.as_ns(), record.kind, record.task, record.cpu)).collect()
}

#[test]
fn a_preempted_job_goes_on_where_a_processor_is_free() {
    use Kind::{Completion, Preempt, Resume, Start};
    let system = pair(
        Order::FixedPriority,
        "",
        &[
            "name = \"a\"; arrivals = [\"2 ns\"]; wcet = \"4 ns\"; priority = 3",
            "name = \"b\"; arrivals = [\"0 ns\"]; wcet = \"3 ns\"; priority = 2",
            "name = \"c\"; arrivals = [\"0 ns\"]; wcet = \"5 ns\"; priority = 1",
        ],
    );
    // a displaces c, the least important, on CPU 1; c goes on at 3 on CPU 0, which b has left.
    assert_eq!(
        events(&system, 40),
        [
            (0, Start, 1, 0),
            (0, Start, 2, 1),
            (2, Preempt, 2, 1),
            (2, Start, 0, 1),
            (3, Completion, 1, 0),
            (3, Resume, 2, 0),
            (6, Completion, 2, 0),
            (6, Completion, 0, 1),
        ]
    );
}

#[test]
fn two_light_tasks_make_a_heavy_one_late_under_global_edf() {
    // Dhall's effect: with deadlines 10, 10 and 11 the heavy job starts when the light ones are done.
    let system = pair(
        Order::Edf,
        "",
        &[
            "name = \"a\"; period = \"10 ns\"; wcet = \"2 ns\"; offset = \"0 ns\"; priority = 1",
            "name = \"b\"; period = \"10 ns\"; wcet = \"2 ns\"; offset = \"0 ns\"; priority = 1",
            "name = \"heavy\"; period = \"11 ns\"; wcet = \"10 ns\"; offset = \"0 ns\"; priority = 1",
        ],
    );
    let heavy: Vec<_> = events(&system, 13).into_iter().filter(|event| event.2 == 2).collect();
    assert_eq!(heavy, [(2, Kind::Start, 2, 0), (12, Kind::Completion, 2, 0), (12, Kind::Start, 2, 0)]);
}

#[test]
fn a_processor_that_the_kernel_has_takes_its_job_when_it_is_ready() {
    use Kind::{Completion, Start};
    let system = pair(
        Order::FixedPriority,
        "context_switch = \"2 ns\"",
        &[
            "name = \"a\"; arrivals = [\"1 ns\"]; wcet = \"4 ns\"; priority = 3",
            "name = \"b\"; arrivals = [\"0 ns\"]; wcet = \"3 ns\"; priority = 2",
            "name = \"c\"; arrivals = [\"1 ns\"]; wcet = \"5 ns\"; priority = 1",
        ],
    );
    // At 1 CPU 0 switches to b until 2 and keeps it; a gets CPU 1. c waits for b.
    assert_eq!(
        events(&system, 40),
        [
            (0, Start, 1, 0),
            (1, Start, 0, 1),
            (5, Completion, 1, 0),
            (5, Start, 2, 0),
            (7, Completion, 0, 1),
            (12, Completion, 2, 0),
        ]
    );
}

#[test]
fn a_job_that_one_mode_suspends_and_the_next_drops_leaves_no_place_to_the_job_after_it() {
    use Kind::{Completion, Start};
    let system = pair(
        Order::FixedPriority,
        "",
        &[
            "name = \"a\"; arrivals = [\"0 ns\", \"10 ns\"]; wcet = \"2 ns\"; priority = 2",
            "name = \"b\"; period = \"30 ns\"; offset = \"2 ns\"; wcet = \"15 ns\"; priority = 1",
        ],
    );
    let at = vec![Span::from_ns(10)];
    let suspends = Mode {
        name: "first-suspends".to_owned(),
        at: at.clone(),
        active: Some(vec!["a".to_owned()]),
        left_over: LeftOver::Suspend,
        ..Mode::default()
    };
    let change = TaskChange {
        task: "b".to_owned(),
        priority: None,
        period: Some(Span::from_ns(40)),
        deadline: None,
        wcet: None,
        left_over: None,
    };
    let drops = Mode {
        name: "then-drops".to_owned(),
        at,
        left_over: LeftOver::Drop,
        tasks: vec![change],
        ..Mode::default()
    };
    let mut draft = system.to_draft();
    draft.modes = vec![suspends, drops];
    let system = System::new(draft).expect("a valid system");
    // Both tasks had CPU 0 last. The job of b that had it at 10 is over, so that of a gets it, which is more important.
    assert_eq!(
        events(&system, 26),
        [
            (0, Start, 0, 0),
            (2, Completion, 0, 0),
            (2, Start, 1, 0),
            (10, Start, 0, 0),
            (10, Start, 1, 1),
            (12, Completion, 0, 0),
            (25, Completion, 1, 1),
        ]
    );
}
