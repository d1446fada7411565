//! A bound is said to be violated only beside a pattern: the simulator takes it, so the file allows it, and both the simulator and
//! the reference simulator, which shares no code with it, give the same response beyond the bound.

use horolog_closed_loop::{CostSource, Proof, counterexample_beside, prove, simulated_run, verify_trace};
use horolog_model::pattern::{PatternArrivals, PatternExecution, ReleasePattern};
use horolog_model::{System, TaskId};
use horolog_sim::{DelayChoice, Horizon, ReplayOptions, SimOptions, replay};
use horolog_testkit::reference::draw::{Kind, short_system};
use horolog_testkit::reference::{Job, What, simulate};
use horolog_time::Span;
use horolog_trace::{Kind as RecordKind, NullSink, Record};
use horolog_verify::{Check, Class, Options, Verdict, Verification};
use std::path::Path;

const END: u64 = 60;

fn proof_of(system: &System) -> Option<Proof> {
    let costs = CostSource::of_file(system, "none is given");
    prove(system, costs).ok()
}

/// The response of the pattern's witness by the reference simulator.
fn by_the_reference(system: &System, pattern: &ReleasePattern) -> Option<u64> {
    let end = pattern.until_ns.as_ns();
    let mut all = vec![Vec::new(); system.tasks().len()];
    for one in &pattern.tasks {
        let place = system.tasks().iter().position(|task| task.name == one.task).expect("a task");
        let task = &system.tasks()[place];
        let PatternArrivals::Explicit { jobs } = &one.arrivals else { panic!("a list") };
        assert_eq!(one.execution, PatternExecution::Wcet);
        let mut last = 0;
        for job in jobs {
            let arrival = job.arrival_ns.as_ns();
            let tick = system.platform().tick.map_or(1, Span::as_ns);
            last = (arrival + job.delay_ns.as_ns()).next_multiple_of(tick).max(last);
            let whole = || match task.segment_graph() {
                Some(graph) => graph.segments.iter().map(|segment| segment.wcet).collect(),
                None => vec![task.wcet],
            };
            let segments = job.execution_ns.clone().unwrap_or_else(whole);
            all[place].push(Job {
                arrival,
                ready: last,
                segments: segments.into_iter().map(Span::as_ns).collect(),
                path: job.path.clone().unwrap_or_default(),
            });
        }
    }
    let witness = pattern.witness.as_ref().expect("a witness");
    let place = system.tasks().iter().position(|task| task.name == witness.task)?;
    let number = usize::try_from(witness.job).ok()?;
    let schedule = simulate(system, &all, end);
    let ended = schedule
        .events
        .iter()
        .find(|event| event.task == place && event.job == number && event.what == What::Completion);
    Some(ended?.at - all[place][number].arrival)
}

/// The trace of a simulation, verified with these bounds.
fn verified(proof: &Proof, trace: &Path, bounds: Vec<(TaskId, Span)>) -> Verification {
    verify_trace(proof, trace, &Options::with_bounds(bounds), &counterexample_beside(trace))
        .expect("it can be read")
}

fn bound_violations(found: &Verification) -> u64 {
    let is_it = |group: &&horolog_verify::FindingGroup| {
        group.class == Class::BoundViolated && group.check == Check::Response
    };
    found.groups.iter().filter(is_it).map(|group| group.count).sum()
}

/// Each system is simulated, and each task's bound is set to the longest response in its trace, which holds, and to one unit
/// less, which does not: then a pattern says so.
fn each_bound_one_unit_too_small(kind: Kind, systems: u64) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("simulated.trace");
    let (mut shown, mut doubted) = (0_u64, 0_u64);
    for index in 0..systems {
        let system = horolog_testkit::resolved(&short_system(11, index, kind, END));
        let Some(proof) = proof_of(&system) else { continue };
        let options = SimOptions {
            horizon: Horizon::Time(Span::from_ns(END)),
            seed: index,
            jitter: DelayChoice::Uniform,
            ..SimOptions::default()
        };
        if simulated_run(&proof.system, &options, Some(&trace)).is_err() {
            continue;
        }
        let plain = verified(&proof, &trace, Vec::new());
        if plain.model_violated + plain.bound_violated > 0 {
            continue;
        }
        for (place, task) in plain.tasks.iter().enumerate() {
            let Some(longest) = task.response_ns_max.map(Span::as_ns).filter(|&ns| ns > 1) else { continue };
            let of = |bound: u64| vec![(TaskId(place as u32), Span::from_ns(bound))];
            // A job that has not ended may have answered later already.
            if task.completed == task.jobs {
                let holds = verified(&proof, &trace, of(longest));
                assert_eq!((bound_violations(&holds), holds.counterexample), (0, None), "{}", task.name);
            }
            let found = verified(&proof, &trace, of(longest - 1));
            let Some(file) = &found.counterexample else {
                assert_eq!(bound_violations(&found), 0, "{}: without a pattern", system.name());
                // A pattern has its delays before the tick, and the release latency comes behind it.
                let platform = system.platform();
                let is_behind = platform.tick.is_some() && !platform.release_latency_bound().is_zero();
                doubted += u64::from(!is_behind);
                continue;
            };
            assert!(bound_violations(&found) > 0 && found.verdict == Verdict::BoundViolated);
            let text = std::fs::read_to_string(file).expect("it was written");
            let pattern: ReleasePattern = serde_json::from_str(&text).expect("a pattern");
            let promised = pattern.witness.as_ref().and_then(|witness| witness.response_ns);
            let promised = promised.expect("it promises a response").as_ns();
            assert!(promised > longest - 1, "{}: {promised} of {}", system.name(), longest - 1);
            let run = replay(&proof.system, &pattern, &ReplayOptions::default(), &mut NullSink);
            let run = run.expect("the file allows it");
            assert_eq!(run.witness.and_then(|witness| witness.as_promised), Some(true));
            assert_eq!(
                by_the_reference(&proof.system, &pattern),
                Some(promised),
                "{}\n{text}",
                system.name()
            );
            std::fs::remove_file(file).expect("it is there");
            shown += 1;
        }
    }
    println!("{kind:?}: {shown} patterns, {doubted} without one");
    assert!(shown > 20 * doubted, "{kind:?}: {shown} patterns, {doubted} without one");
    shown
}

#[test]
fn of_every_kind_of_system_that_patterns_can_say() {
    let kinds = [Kind::FixedPriority, Kind::Edf, Kind::Polling, Kind::Deferrable, Kind::ConstantBandwidth];
    for kind in kinds {
        let shown = each_bound_one_unit_too_small(kind, 60);
        assert!(shown >= 30, "{kind:?}: {shown} patterns");
    }
}

const PAIR: &str = "[system]\nname = \"pair\"\n[[task]]\nname = \"high\"\nperiod = \"10 ns\"\nwcet = \"3 ns\"\npriority = 2\n\
                    [[task]]\nname = \"low\"\nperiod = \"20 ns\"\nwcet = \"5 ns\"\npriority = 1\n";

/// A trace in which a job answers late although each did what the file says: no schedule of the rules gives that.
#[test]
fn a_response_that_no_pattern_gives_is_not_called_a_violated_bound() {
    let system = horolog_model::file::read(PAIR, "pair.toml", &[]).expect("valid").0;
    let proof = proof_of(&system).expect("an answer");
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("edited.trace");
    let mut records: Vec<Record> = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(20)), ..SimOptions::default() };
    horolog_sim::simulate(&proof.system, &options, &mut records).expect("it runs");
    let late = records.iter().position(|one| one.kind == RecordKind::Completion && one.task == 1);
    let late = late.expect("it ends");
    for record in &mut records[late..] {
        record.time = record.time.checked_add(Span::from_ns(1)).expect("short");
    }
    let text = horolog_model::file::print(&proof.system);
    let names = vec!["high".to_owned(), "low".to_owned()];
    let header = horolog_trace::file::Header::simulated(text, names, 0, Span::from_ns(20));
    let file = std::fs::File::create(&trace).expect("a file");
    let mut writer = horolog_trace::file::Writer::new(file, &header).expect("a head");
    for record in records {
        horolog_trace::Sink::record(&mut writer, record);
    }
    writer.finish(horolog_time::Instant::from_ns(21)).expect("a foot");
    let found = verified(&proof, &trace, vec![(TaskId(1), Span::from_ns(8))]);
    assert_eq!(
        (bound_violations(&found), found.counterexample.as_deref()),
        (0, None),
        "{:?}",
        found.findings
    );
    assert_ne!(found.verdict, Verdict::Holds);
}

/// A job takes too long, its policy leaves the next one out, and a later job of another task is beyond its bound in every schedule that the file allows: the
/// pattern has the job that was left out.
#[test]
fn a_pattern_has_what_a_policy_has_left_out() {
    let text = "[system]\nname = \"skips\"\n[[task]]\nname = \"high\"\nperiod = \"10 ns\"\noffset = \"0 ns\"\nwcet = \"3 ns\"\npriority = 2\n\
                overrun = \"skip\"\nexecution = { jobs = [\"3 ns\", \"4 ns\", \"3 ns\", \"3 ns\"] }\n\
                [[task]]\nname = \"low\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nbcet = \"1 ns\"\nwcet = \"5 ns\"\npriority = 1\n\
                execution = { jobs = [\"1 ns\", \"1 ns\", \"5 ns\"] }\n";
    let system = horolog_model::file::read(text, "skips.toml", &[]).expect("valid").0;
    let proof = proof_of(&system).expect("an answer");
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("skips.trace");
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(60)), ..SimOptions::default() };
    simulated_run(&proof.system, &options, Some(&trace)).expect("it runs");
    let mut records: Vec<Record> = Vec::new();
    horolog_sim::simulate(&proof.system, &options, &mut records).expect("it runs");
    assert!(records.iter().any(|one| one.kind == RecordKind::Skip && one.value == 20));
    let of = |bound: u64| verified(&proof, &trace, vec![(TaskId(1), Span::from_ns(bound))]);
    assert_eq!((bound_violations(&of(8)), of(8).counterexample), (0, None));
    let found = of(7);
    assert_eq!(bound_violations(&found), 1, "{:?} {:?}", found.findings, found.notes);
    let text = std::fs::read_to_string(found.counterexample.expect("a pattern")).expect("it was written");
    let pattern: ReleasePattern = serde_json::from_str(&text).expect("a pattern");
    let run = replay(&proof.system, &pattern, &ReplayOptions::default(), &mut NullSink);
    let witness = run.expect("the file allows it").witness.expect("a job");
    assert_eq!((witness.as_promised, witness.response), (Some(true), Some(Span::from_ns(8))));
    assert_eq!(by_the_reference(&proof.system, &pattern), Some(8));
}
