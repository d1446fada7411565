//! What a certificate as a whole must be, whatever its proofs.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

mod common;

use common::{certificate, fixed, listed, prio, task};
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
    assert!(check(&system, &right(&system)).unwrap().proves_all_deadlines());
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
    assert!(check(&system, &both).unwrap().proves_all_deadlines());
    // A claim twice is refused, also where both hold.
    let mut twice = both.clone();
    twice.claims.push(both.claims[0].clone());
    let flaw = check(&system, &twice).unwrap_err();
    assert_eq!(flaw.task(), "t");
    assert_eq!(flaw.reason(), "it has two claims about this task, and one proof is enough");
    for (at, wrong) in [(0, 3), (1, 2)] {
        let mut other = both.clone();
        other.claims[at].proof = proof(wrong);
        assert_eq!(check(&system, &other).unwrap_err().task(), ["t", "u"][at]);
    }
}

#[test]
fn a_conclusion_says_who_meets_who_misses_and_who_has_no_claim() {
    let far =
        |task: horolog_model::Task| prio(horolog_model::Task { cpu: horolog_model::CpuId(1), ..task }, 1);
    let (heavy, list) = (|name: &str| prio(task(name, 4, 3), 1), |name: &str| listed(task(name, 1, 1), &[0]));
    let system = fixed(vec![heavy("a"), heavy("b"), far(task("t", 5, 2)), prio(list("quiet"), 9)]);
    let overload = || Proof::Overload { tasks: vec!["a".into(), "b".into()] };
    let claims = |names: &[&str]| {
        let mut all = right(&system);
        all.claims.clear();
        for &name in names {
            let (verdict, proof) =
                if name == "t" { (Proven::Meets, proof(2)) } else { (Proven::Misses, overload()) };
            all.claims.extend(certificate(&system, name, verdict, proof).claims);
        }
        let said = check(&system, &all).unwrap();
        assert!(!said.proves_all_deadlines());
        (said.meet.join(" "), said.miss.join(" "), said.undecided.join(" "))
    };
    let words = |meet: &str, miss: &str, undecided: &str| (meet.into(), miss.into(), undecided.into());
    assert_eq!(claims(&["b", "t", "a"]), words("t", "a b", ""));
    assert_eq!(claims(&["t"]), words("t", "", "a b"));
    assert_eq!(claims(&["a"]), words("", "a", "b t"));
    assert_eq!(claims(&[]), words("", "", "a b t"));
    // Who has no deadline may still have a bound.
    let alone = fixed(vec![prio(listed(task("t", 1, 2), &[0]), 1)]);
    let mut bound = right(&alone);
    let Proof::FixedPriority(proof) = &mut bound.claims[0].proof else { unreachable!() };
    proof.least = false;
    let said = check(&alone, &bound).unwrap();
    assert_eq!((said.meet.as_slice(), said.proves_all_deadlines()), (&["t".to_owned()][..], true));
    bound.claims.clear();
    let said = check(&alone, &bound).unwrap();
    assert!(said.proves_all_deadlines() && said.meet.is_empty() && said.undecided.is_empty());
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
    assert!(check(&plain, &right(&plain)).unwrap().proves_all_deadlines());
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
    assert!(said.is_ok(), "a server on another processor is no matter of this claim");
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
