//! What a certificate as a whole must be, whatever its proofs.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

mod common;

use common::{certificate, fixed, prio, task};
use horolog_certificate::{Certificate, FixedPriorityProof, Horizon, JobProof, Proof, Proven, check};
use horolog_model::{System, file};

/// The proof of a preemptive task that is alone.
fn proof(wcet: u64) -> Proof {
    let iterates = if wcet == 1 { vec![1] } else { vec![1, wcet] };
    let job = JobProof {
        ready_ns: 0,
        before_ns: wcet,
        last_ns: 0,
        start_iterates: vec![wcet],
        finish_iterates: Vec::new(),
    };
    Proof::FixedPriority(FixedPriorityProof {
        bound_ns: wcet,
        least: true,
        horizon: Horizon::BusyPeriod { iterates },
        jobs: vec![job],
    })
}

fn right(system: &System) -> Certificate {
    certificate(system, "t", Proven::Meets, proof(2))
}

#[test]
fn schema_system_and_task_are_those_of_the_file() {
    let system = fixed(vec![prio(task("t", 5, 2), 1)]);
    check(&system, &right(&system)).unwrap();
    let said = |change: &dyn Fn(&mut Certificate)| {
        let mut other = right(&system);
        change(&mut other);
        let flaw = check(&system, &other).unwrap_err();
        (flaw.task().to_owned(), flaw.to_string())
    };
    let (task, words) = said(&|other| other.schema = "horolog.certificate/2".into());
    assert_eq!(task, "");
    assert_eq!(words, "certificate refused: schema `horolog.certificate/2` is not horolog.certificate/1");
    let (task, words) = said(&|other| other.system = "another".into());
    assert_eq!(task, "");
    assert_eq!(words, "certificate refused: it is about a system named `another`, not `drawn`");
    let (task, words) = said(&|other| other.claims[0].task = "u".into());
    assert_eq!(
        (task.as_str(), words.as_str()),
        ("u", "certificate refused at task `u`: the system has no such task")
    );
}

#[test]
fn every_claim_is_looked_at() {
    let far = horolog_model::Task { cpu: horolog_model::CpuId(1), ..task("u", 7, 3) };
    let system = fixed(vec![prio(task("t", 5, 2), 1), prio(far, 1)]);
    let mut both = right(&system);
    both.claims.extend(certificate(&system, "u", Proven::Meets, proof(3)).claims);
    check(&system, &both).unwrap();
    for (at, wrong) in [(0, 3), (1, 2)] {
        let mut other = both.clone();
        other.claims[at].proof = proof(wrong);
        assert_eq!(check(&system, &other).unwrap_err().task(), ["t", "u"][at]);
    }
}

const PLAIN: &str = r#"
[system]
name = "drawn"
policy = "fixed-priority"
[platform]
cpus = 2
[[task]]
name = "t"
period = "5 ns"
wcet = "2 ns"
cpu = 0
priority = 1
"#;

fn read(more: &str) -> System {
    let text = format!("{PLAIN}{more}");
    file::read(&text, "system.toml", &[]).unwrap_or_else(|errors| panic!("{errors:?}")).0
}

#[test]
fn servers_on_the_processor_and_drivers_anywhere_are_refused() {
    let plain = read("");
    check(&plain, &right(&plain)).unwrap();
    let server = |cpu| {
        format!(
            r#"
            [[task]]
            name = "soft"
            arrivals = ["1 ns"]
            wcet = "1 ns"
            cpu = {cpu}
            [[server]]
            name = "s"
            kind = "background"
            tasks = ["soft"]
            cpu = {cpu}
            "#
        )
    };
    let beside = read(&server(0));
    let flaw = check(&beside, &right(&beside)).unwrap_err();
    assert_eq!(flaw.task(), "t");
    assert_eq!(flaw.reason(), "the server `s` is on its processor; this checker knows no servers");
    let apart = read(&server(1));
    let said = check(&apart, &right(&apart));
    assert!(said.is_ok_and(|()| true), "a server on another processor is no matter of this claim");
    let driven = read("[[interrupt]]\nname = \"i\"\nseparation = \"100 ns\"\ncost = \"1 ns\"\ncpu = 1\n");
    let flaw = check(&driven, &right(&driven)).unwrap_err();
    assert_eq!((flaw.task(), flaw.reason()), ("t", "interrupt.i: this checker knows no drivers"));
}

#[test]
fn priorities_must_be_resolved() {
    let text = PLAIN
        .replace("policy = ", "priorities = \"rate-monotonic\"\npolicy = ")
        .replace("priority = 1\n", "");
    let unresolved = file::read(&text, "system.toml", &[]).unwrap().0;
    let flaw = check(&unresolved, &right(&unresolved)).unwrap_err();
    assert_eq!(flaw.reason(), "the system's priorities are not resolved");
    let overload = Proof::Overload { tasks: vec!["t".into()] };
    let flaw = check(&unresolved, &certificate(&unresolved, "t", Proven::Misses, overload)).unwrap_err();
    assert_eq!(flaw.reason(), "the system's priorities are not resolved");
}

#[test]
fn a_proof_of_the_other_policy_is_refused() {
    let system = common::edf(vec![task("t", 5, 2)]);
    let flaw = check(&system, &right(&system)).unwrap_err();
    assert_eq!(flaw.reason(), "the system's priorities are not resolved");
}
