//! Jobs beyond their wcet, simulated with every policy: what verification says of them is that, and nothing else.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Options, Verification, verify_records};

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
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(60)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate(system, &options, &mut records).expect("it can be simulated");
    (verified_as(system, "sim", &records), records)
}

fn verified_as(system: &System, backend: &str, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
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
