//! Jobs beyond their wcet, simulated with every policy: what verification says of them is that, and nothing else.

use horolog_analysis::{TaskVerdict, analyze};
use horolog_model::{System, TaskId};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::Random;
use horolog_time::Span;
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Bound, Check, Class, Options, Verification, verify_records};
use std::fmt::Write;

fn system(policy: &str, overrun: &str, jobs: &str) -> System {
    let (head, high, low) = match policy {
        "edf" => ("policy = \"edf\"\n", "", ""),
        _ => ("", "priority = 2\n", "priority = 1\n"),
    };
    let text = format!(
        "[system]\nname = \"overruns\"\n{head}[[task]]\nname = \"a\"\nperiod = \"10 ns\"\noffset = \"0 ns\"\nwcet = \"3 ns\"\n{high}\
         overrun = \"{overrun}\"\nexecution = {{ jobs = [{jobs}] }}\n\
         [[task]]\nname = \"b\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"6 ns\"\n{low}"
    );
    horolog_model::file::read(&text, "overruns.toml", &[]).expect("it can be read").0
}

fn verified(system: &System) -> (Verification, Vec<Record>) {
    let records = simulated_for(system, 60);
    (verified_as(system, "sim", &records), records)
}

fn simulated_for(system: &System, horizon: u64) -> Vec<Record> {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(horizon)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate(system, &options, &mut records).expect("it can be simulated");
    records
}

fn verified_as(system: &System, backend: &str, records: &[Record]) -> Verification {
    verified_by(system, &[], backend, records)
}

fn verified_by(system: &System, bounds: &[Bound], backend: &str, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    verify_records(system, bounds, &header, records, &Options::default()).expect("it can be verified")
}

#[test]
fn an_overrun_is_found_and_its_policy_is_none() {
    for policy in ["fixed-priority", "edf"] {
        for overrun in ["count", "skip", "demote", "stop", "drop"] {
            let within = verified(&system(policy, overrun, "\"3 ns\", \"2 ns\"")).0;
            assert_eq!(within.findings, [], "{policy} {overrun}");
            let (beyond, records) = verified(&system(policy, overrun, "\"4 ns\", \"2 ns\""));
            // A job that ends at its wcet, by whatever hand, has not executed longer.
            let ends = matches!(overrun, "stop" | "drop");
            let said: Vec<_> = beyond.findings.iter().map(|one| one.message.clone()).collect();
            assert_eq!(beyond.findings.is_empty(), ends, "{policy} {overrun}: {said:?}\n{records:?}");
            assert!(
                said.iter().all(|said| said.contains("wcet")),
                "{policy} {overrun}: {said:?}\n{records:?}"
            );
        }
    }
}

/// In a run the body of a stopped job ends when it likes: its completion is on record once, perhaps with a miss behind it. No other
/// job completes, and in a simulation none does.
#[test]
fn the_body_of_a_stopped_job_may_end_later() {
    let system = system("fixed-priority", "stop", "\"4 ns\", \"2 ns\"");
    let (found, records) = verified(&system);
    assert_eq!(found.findings, []);
    let place = records.iter().position(|record| record.kind == Kind::Enforcement).expect("it stops");
    let stopped = records[place];
    let behind = records.iter().rposition(|record| record.time <= stopped.time).expect("itself") + 1;
    let of = |kind, job| Record { kind, job, value: 4, extra: 0, ..stopped };
    let end = of(Kind::Completion, stopped.job);
    let accused = |backend: &str, more: &[Record]| {
        let mut later = records.clone();
        later.splice(behind..behind, more.iter().copied());
        verified_as(&system, backend, &later).findings.iter().any(|one| one.check == Check::EventOrder)
    };
    assert!(!accused("linux", &[]) && !accused("linux", &[end]));
    assert!(accused("sim", &[end]), "no code goes on there");
    assert!(accused("linux", &[of(Kind::Completion, stopped.job + 1)]));
    assert!(accused("linux", &[end, end]), "it ends once");
    assert!(accused("linux", &[of(Kind::Resume, stopped.job)]), "it gets no processor by its records");
}

/// Segments of 3 and 4, or what they leave; two jobs in 60.
fn segments(overrun: &str, times: &str) -> System {
    let text = format!(
        "[system]\nname = \"segments\"\n[[task]]\nname = \"a\"\nperiod = \"30 ns\"\noffset = \"0 ns\"\npriority = 2\n\
         preemption = \"deferred\"\nsegments = [{{ wcet = \"3 ns\", bcet = \"1 ns\" }}, {{ wcet = \"4 ns\", bcet = \"1 ns\" }}]\n\
         overrun = \"{overrun}\"\nexecution = {{ segments = [{times}] }}\n\
         [[task]]\nname = \"b\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"6 ns\"\npriority = 1\n"
    );
    horolog_model::file::read(&text, "overruns.toml", &[]).expect("it can be read").0
}

#[test]
fn an_overrun_of_a_segment_is_found_and_its_policy_is_none() {
    for overrun in ["count", "skip", "demote", "stop", "drop"] {
        let within = verified(&segments(overrun, "[\"3 ns\", \"1 ns\"], [\"4 ns\"]")).0;
        assert_eq!(within.findings, [], "{overrun}");
        // The segment takes one more and the job does not: the policy has nothing to do.
        let (beyond, records) = verified(&segments(overrun, "[\"4 ns\"], [\"3 ns\"]"));
        let said: Vec<_> = beyond.findings.iter().map(|one| one.message.clone()).collect();
        assert!(!said.is_empty() && said.iter().all(|said| said.contains("segment")), "{overrun}: {said:?}");
        assert!(records.iter().all(|one| one.kind != Kind::Enforcement), "{overrun}");
        // The policy acts at 7, or where the job takes 9.
        let (acted, records) = verified(&segments(overrun, "[\"3 ns\"], [\"6 ns\"]"));
        let said: Vec<_> = acted.findings.iter().map(|one| one.message.clone()).collect();
        let ends = matches!(overrun, "stop" | "drop");
        assert_eq!(said.is_empty(), ends, "{overrun}: {said:?}\n{records:?}");
        assert!(said.iter().all(|said| said.contains("wcet")), "{overrun}: {said:?}\n{records:?}");
    }
}

/// It has executed its worst case and is not done: it takes longer, though no record says so yet.
#[test]
fn a_job_that_is_not_done_after_its_wcet_is_beyond_it() {
    for overrun in ["count", "skip", "demote"] {
        for (executed, class) in [("2 ns", None), ("3 ns", Some(Class::ModelViolated))] {
            let text = format!(
                "[system]\nname = \"end\"\n[[task]]\nname = \"high\"\nperiod = \"5 ns\"\nwcet = \"3 ns\"\npriority = 2\n\
                 [[task]]\nname = \"low\"\nperiod = \"60 ns\"\nwcet = \"2 ns\"\npriority = 1\noverrun = \"{overrun}\"\n\
                 execution = {{ jobs = [\"{executed}\"] }}\n"
            );
            let (system, _) = horolog_model::file::read(&text, "end.toml", &[]).expect("it can be read");
            // It has the processor from 3 to 5, and again from 8 on.
            let found = verified_by(&system, &bounds_of(&system), "sim", &simulated_for(&system, 8));
            let classes: Vec<Class> = found.findings.iter().map(|one| one.class).collect();
            assert_eq!(classes.first().copied(), class, "{overrun} {executed}: {:?}", found.findings);
        }
    }
}

/// Executions of one task, each around its worst case.
fn executions(random: &mut Random, wcet: u64) -> String {
    let one = |random: &mut Random| format!("\"{} ns\"", (wcet + random.below(5)).saturating_sub(1).max(1));
    let all: Vec<String> = (0..random.between(1, 3)).map(|_| one(random)).collect();
    format!("[{}]", all.join(", "))
}

/// Two to four tasks of which most go beyond what they declare, with every policy and several arrivals in one instant; the last jobs of a
/// short trace are not done.
fn drawn(random: &mut Random) -> String {
    let mut text = "[system]\nname = \"drawn\"\n".to_owned();
    for task in 0..random.between(2, 4) {
        let (period, priority) = (random.between(4, 20), random.between(1, 4));
        let overrun = ["count", "skip", "skip", "demote", "demote", "stop", "drop"][random.below(7) as usize];
        write!(text, "[[task]]\nname = \"t{task}\"\npriority = {priority}\noverrun = \"{overrun}\"\n")
            .expect("a string");
        let arrival = match random.below(4) {
            0 => format!("separation = \"{period} ns\"\njitter = \"{} ns\"", random.below(4)),
            1 => {
                let mut all: Vec<u64> = (0..random.between(2, 5)).map(|_| random.below(30)).collect();
                all.sort_unstable();
                let all: Vec<String> = all.iter().map(|at| format!("\"{at} ns\"")).collect();
                format!("deadline = \"{period} ns\"\narrivals = [{}]", all.join(", "))
            }
            _ => format!("period = \"{period} ns\""),
        };
        text += &arrival;
        // The middle one is left out by some.
        let wcets = [random.between(1, 3), random.between(1, 2), random.between(1, 3)];
        match random.below(3) {
            0 => {
                let next = ["[\"b\", \"c\"]", "[\"c\"]", "[]"];
                let segments = (0..3).map(|place| {
                    let (name, wcet, next) = (["a", "b", "c"][place], wcets[place], next[place]);
                    format!("{{ name = \"{name}\", bcet = \"1 ns\", wcet = \"{wcet} ns\", next = {next} }}")
                });
                let segments: Vec<String> = segments.collect();
                let times: Vec<String> = wcets.iter().map(|&wcet| executions(random, wcet)).collect();
                let (segments, times) = (segments.join(", "), times.join(", "));
                let execution = format!("execution = {{ segments = [{times}] }}");
                write!(text, "\npreemption = \"deferred\"\nsegments = [{segments}]\n{execution}\n")
                    .expect("a string");
            }
            kind => {
                let preemption = if kind == 1 { "preemptive" } else { "non-preemptive" };
                let (wcet, times) = (wcets[0], executions(random, wcets[0]));
                let execution = format!("execution = {{ jobs = {times} }}");
                write!(text, "\npreemption = \"{preemption}\"\nwcet = \"{wcet} ns\"\n{execution}\n")
                    .expect("a string");
            }
        }
    }
    text
}

fn bounds_of(system: &System) -> Vec<Bound> {
    // Where no test exists for a system, its trace is checked without bounds.
    let Ok(analysis) = analyze(system, &horolog_analysis::Options::default()) else { return Vec::new() };
    let tasks = analysis.tasks.iter().enumerate();
    let bound = |(index, task): (usize, &TaskVerdict)| {
        let (task_id, test) = (TaskId(index as u32), task.test.to_string());
        Some(Bound { task: task_id, response: task.response?, test, exact: task.exact })
    };
    tasks.filter_map(bound).collect()
}

/// Nothing is lost and nothing disturbs: a job is late through those that executed for longer, and the schedule is the policy's.
#[test]
fn jobs_that_are_late_beside_overruns_are_late_through_them() {
    let draws = std::env::var("HOROLOG_DRAWS").ok().and_then(|draws| draws.parse().ok()).unwrap_or(1_500);
    let (mut judged, mut late) = (0, 0);
    for index in 0..draws {
        let mut random = Random::of_item(20, index);
        let (text, horizon) = (drawn(&mut random), random.between(20, 80));
        let Ok((system, _)) = horolog_model::file::read(&text, "drawn.toml", &[]) else { continue };
        let found = verified_by(&system, &bounds_of(&system), "sim", &simulated_for(&system, horizon));
        judged += 1;
        late += found.findings.iter().filter(|one| one.check == Check::Response).count();
        let other = found.findings.iter().find(|one| one.class != Class::ModelViolated);
        assert!(other.is_none(), "draw {index}, {horizon} ns: {other:?}\n{text}");
    }
    assert!(judged * 2 > draws && late as u64 > draws / 2, "{judged} systems, {late} late");
}
