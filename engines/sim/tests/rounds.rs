//! Several processors at one instant: each phase comes on all of them before the next, and without effects from one to another
//! each has the records that it has alone.

use horolog_model::{CpuId, System};
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind as Drawn, short_system};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

fn read(text: &str) -> System {
    horolog_model::file::read(text, "rounds.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

#[test]
fn what_ends_on_any_processor_comes_before_what_arrives_on_any() {
    let task = |name: &str, cpu: u32, wcet: u64| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"5 ns\"\nwcet = \"{wcet} ns\"\npriority = 1\n"
        )
    };
    let system = read(&format!(
        "[system]\nname = \"two\"\n[platform]\ncpus = 2\n{}{}",
        task("left", 0, 5),
        task("right", 1, 5)
    ));
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(6)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate(&system, &options, &mut records).expect("it simulates");
    let at_five = records.iter().filter(|record| record.time.as_ns() == 5);
    let told: Vec<(Kind, u16)> = at_five.map(|record| (record.kind, record.cpu)).collect();
    let phases = [
        (Kind::Completion, 0),
        (Kind::Completion, 1),
        (Kind::Release, 0),
        (Kind::Release, 1),
        (Kind::Start, 0),
    ];
    assert_eq!(told[..5], phases);
    assert_eq!(told[5..], [(Kind::Start, 1)]);
}

/// The records of a processor, with names instead of ids.
fn of_processor(system: &System, options: &SimOptions, cpu: CpuId) -> Option<Vec<String>> {
    let mut records: Vec<Record> = Vec::new();
    simulate(system, options, &mut records).ok()?;
    let named = |record: &Record| {
        let of_server =
            matches!(record.kind, Kind::BudgetExhausted | Kind::BudgetReplenished | Kind::SlackChange);
        let task = system.tasks().get(record.task as usize).map_or("", |task| task.name.as_str());
        let value = match system.servers().get(record.value as usize) {
            Some(server) if of_server => server.name.clone(),
            _ => record.value.to_string(),
        };
        let Record { time, kind, job, extra, .. } = record;
        format!("{time:?} {kind:?} {task} {job} {value} {extra}")
    };
    let here = records.iter().filter(|record| u32::from(record.cpu) == cpu.0);
    Some(here.map(named).collect())
}

/// What is on one processor.
fn alone(system: &System, cpu: CpuId) -> System {
    let mut draft = system.to_draft();
    draft.tasks.retain(|task| task.cpu == cpu);
    let names: Vec<&str> = draft.tasks.iter().map(|task| task.name.as_str()).collect();
    draft.servers.retain(|server| server.tasks.iter().all(|task| names.contains(&task.as_str())));
    System::new(draft).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[test]
fn a_processor_has_the_records_that_it_has_alone() {
    let kinds = [
        Drawn::FixedPriority,
        Drawn::Edf,
        Drawn::Polling,
        Drawn::Deferrable,
        Drawn::Sporadic,
        Drawn::ConstantBandwidth,
        Drawn::PriorityExchange,
        Drawn::SlackStealing,
    ];
    let mut compared = 0;
    for kind in kinds {
        for index in 0..120 {
            let system = short_system(77, index, kind, 96);
            if system.tasks().iter().all(|task| task.cpu == CpuId(0)) {
                continue;
            }
            let options = SimOptions {
                horizon: Horizon::Time(Span::from_ns(96)),
                seed: index,
                execution: ExecutionChoice::Uniform,
                jitter: DelayChoice::Uniform,
                latency: DelayChoice::Uniform,
                ..SimOptions::default()
            };
            for cpu in [CpuId(0), CpuId(1)] {
                let by_itself = alone(&system, cpu);
                if by_itself.tasks().is_empty() {
                    continue;
                }
                let (together, apart) =
                    (of_processor(&system, &options, cpu), of_processor(&by_itself, &options, cpu));
                assert_eq!(together, apart, "{}", horolog_model::file::print(&system));
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
}
