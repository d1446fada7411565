//! A trace says the same as the run that wrote it: the outcome recomputed from the file equals the simulator's.

use horolog_model::{Policy, System};
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_testkit::random::Random;
use horolog_testkit::task_set::{Deadlines, PreemptionRecipe, TaskSetRecipe, system_of};
use horolog_time::Span;
use horolog_trace::file::{Header, Reader, Writer};
use horolog_trace::statistics::{Intervals, Statistics};
use horolog_trace::{Kind, Outcome, diff};

fn system(index: u64, policy: Policy, preemption: PreemptionRecipe, costs: bool) -> System {
    let mut random = Random::of_item(7, index);
    let recipe = TaskSetRecipe {
        tasks: 4,
        // Overloaded ones too: misses, backlogs, unfinished jobs.
        utilisation_ppb: random.between(400_000_000, 990_000_000),
        shortest_period: Span::from_ns(1_000),
        longest_period: Span::from_ns(50_000),
        granularity: Span::from_ns(1),
        deadlines: Deadlines::Constrained { least_ppm: 0 },
    };
    let set = recipe.draw(&mut random);
    let mut draft = system_of(&set, policy, preemption, &mut random).to_draft();
    draft.name = format!("drawn {index}");
    // The segments of the others fix their bcet.
    if preemption == PreemptionRecipe::Preemptive {
        draft.tasks.iter_mut().for_each(|task| task.bcet = Span::from_ns(task.wcet.as_ns().div_ceil(2)));
    }
    if costs {
        draft.platform.context_switch = Some(Span::from_ns(7));
        draft.platform.timer_interrupt = Some(Span::from_ns(11));
    }
    System::new(draft).expect("a right system")
}

/// Simulates into a file, reads it back; the simulator's outcome and the file's statistics.
fn recorded(system: &System, seed: u64) -> (Outcome, Statistics, Vec<u8>) {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let horizon = Span::from_ns(300_000);
    let text = format!("[system]\nname = \"{}\"\n", system.name());
    let header = Header::simulated(text, names, seed, horizon);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header).expect("memory");
    let options = SimOptions {
        horizon: Horizon::Time(horizon),
        seed,
        execution: ExecutionChoice::Uniform,
        jitter: DelayChoice::None,
        latency: DelayChoice::None,
        ..SimOptions::default()
    };
    let outcome = simulate(system, &options, &mut writer).expect("it can be simulated");
    writer.finish(horolog_time::Instant::from_ns(horizon.as_ns())).expect("memory");
    let mut reader = Reader::new(bytes.as_slice()).expect("a trace");
    let mut statistics = Statistics::new(reader.header());
    reader.by_ref().for_each(|record| statistics.take(&record));
    assert!(reader.damage().is_none());
    (outcome, statistics, bytes)
}

#[test]
fn the_outcome_recomputed_from_a_trace_is_the_simulators() {
    let kinds = [
        PreemptionRecipe::Preemptive,
        PreemptionRecipe::NonPreemptive,
        PreemptionRecipe::Deferred { max_segments: 3 },
    ];
    let mut missed = 0;
    for index in 0..45 {
        let kind = kinds[index as usize % 3];
        let deferred = matches!(kind, PreemptionRecipe::Deferred { .. });
        let policy = if index % 2 == 1 && !deferred { Policy::Edf } else { Policy::FixedPriority };
        let system = system(index, policy, kind, index % 5 == 0);
        let (mut outcome, statistics, _) = recorded(&system, index);
        outcome.notes.clear();
        missed += outcome.tasks.iter().map(|task| task.missed).sum::<u64>();
        assert_eq!(statistics.outcome(), outcome, "item {index}");
    }
    assert!(missed > 0);
}

/// Sections that execute on another processor than their job's: leaving it at their end is no preemption, and each that begins there after
/// idle time is a switch.
#[test]
fn sections_on_other_processors_are_counted_as_the_simulator_counts_them() {
    let task = |name: &str, cpu: u32, priority: u32, period: u32, sections: &[(&str, u32, u32)]| {
        let section = |(resource, from, length): &(&str, u32, u32)| {
            format!(
                "[[task.section]]\nresource = \"{resource}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
            )
        };
        let sections: String = sections.iter().map(section).collect();
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"{period} ns\"\nwcet = \"600 ns\"\n{sections}"
        )
    };
    let resource = |name: &str, rest: &str| format!("[[resource]]\nname = \"{name}\"\nprotocol = {rest}\n");
    for (index, (near, far)) in
        [("\"dpcp\"\ncpu = 2", "\"dpcp\"\ncpu = 2"), ("\"mrsp\"", "\"mrsp\"")].iter().enumerate()
    {
        let tasks = [
            // Two sections one behind the other: the second is asked for in the instant in which the first ends.
            task("a", 0, 9, 2_000, &[("map", 100, 200), ("log", 300, 100)]),
            task("b", 0, 7, 3_000, &[("log", 0, 300)]),
            task("c", 1, 8, 2_500, &[("map", 50, 400)]),
            task("d", 1, 5, 5_000, &[("map", 0, 100), ("log", 500, 100)]),
        ];
        let text = "[system]\nname = \"elsewhere\"\n[platform]\ncpus = 3\n".to_owned()
            + &resource("map", near)
            + &resource("log", far)
            + &tasks.concat();
        let (system, _) = horolog_model::file::read(&text, "elsewhere.toml", &[]).expect("a right file");
        let (mut outcome, statistics, _) = recorded(&system, index as u64);
        outcome.notes.clear();
        assert_eq!(statistics.outcome(), outcome, "{near}");
        // `a` is the most important on its processor and in every section: nothing preempts it but under mrsp, where its place is lent.
        if near.contains("dpcp") {
            let a = &outcome.tasks[0];
            assert_eq!(a.preemptions, 0);
        }
    }
}

#[test]
fn intervals_add_up_to_what_was_executed() {
    let system = system(3, Policy::FixedPriority, PreemptionRecipe::Preemptive, false);
    let (_, _, bytes) = recorded(&system, 3);
    let mut intervals = Intervals::default();
    let mut had = std::collections::BTreeMap::<(u32, u64), u64>::new();
    let mut finished = 0;
    for record in Reader::new(bytes.as_slice()).expect("a trace") {
        if let Some(interval) = intervals.take(&record) {
            let length = interval.to.saturating_since(interval.from).as_ns();
            *had.entry((interval.task, interval.job)).or_default() += length;
        }
        if record.kind == Kind::Completion {
            assert_eq!(had.get(&(record.task, record.job)), Some(&record.value));
            finished += 1;
        }
    }
    assert!(finished > 50);
}

#[test]
fn two_seeds_differ_and_one_does_not() {
    let system = system(4, Policy::FixedPriority, PreemptionRecipe::Preemptive, false);
    let run = |seed: u64| {
        let (_, _, bytes) = recorded(&system, seed);
        let mut reader = Reader::new(bytes.as_slice()).expect("a trace");
        let mut run = diff::Run::new(reader.header());
        reader.by_ref().for_each(|record| run.take(&record));
        run
    };
    let same = diff::diff(&run(1), &run(1)).expect("the same tasks");
    assert!(same.tasks.iter().all(|task| task.distance == Some(0.0)) && same.divergences.is_empty());
    let other = diff::diff(&run(1), &run(2)).expect("the same tasks");
    assert!(other.tasks.iter().any(|task| task.distance.is_some_and(|distance| distance > 0.0)));
}

/// The trace that the Python tests read is what this version writes (`HOROLOG_BLESS=1` writes it).
#[test]
fn the_user_events_of_the_python_tests_are_those_of_this_version() {
    use horolog_trace::event::{EventDefinition, text_words};
    use horolog_trace::file::{Header, Writer};
    use horolog_trace::{Kind, NO_JOB, NO_TASK, Record, Sink};
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &Header::session(5)).expect("a head");
    writer.define_thread_of(70, 71, "producer", None);
    writer.define_thread_of(70, 72, "consumer", None);
    let all = EventDefinition::new("all/kinds", "buifps", &["on", "count", "delta", "load", "at", "name"]);
    let all = all.and_then(|event| event.with_units(&["", "B", "", "%", "", ""])).expect("an event");
    writer.define_event(&all);
    writer.define_event(&EventDefinition::new("no/arguments", "", &[]).expect("an event"));
    for step in 0..100_u64 {
        let (event, thread) = (step % 2, step / 2 % 2);
        let time = horolog_time::Instant::from_ns(10 * step + 3);
        let record = Record {
            time,
            kind: Kind::User,
            cpu: 1,
            task: NO_TASK,
            job: NO_JOB,
            value: event,
            extra: thread,
        };
        let numbers = [
            step % 4 / 2,
            step << 57,
            (-7_i64).cast_unsigned() - step,
            (step as f64 / 8.0).to_bits(),
            4096 + step,
        ];
        let text = text_words(format!("größe {step}").as_bytes());
        let words = if event == 0 { [&numbers[..], &text].concat() } else { Vec::new() };
        writer.user(record, &words);
        writer.record(Record { kind: Kind::KernelSwitch, value: thread, extra: 1 - thread, ..record });
    }
    writer.finish(horolog_time::Instant::from_ns(2_000)).expect("written");
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../front/python/tests/user-events.trace");
    if std::env::var_os("HOROLOG_BLESS").is_some() {
        std::fs::write(&path, &bytes).expect("written");
    }
    assert!(std::fs::read(&path).expect("it is there") == bytes, "HOROLOG_BLESS=1 writes {}", path.display());
}
