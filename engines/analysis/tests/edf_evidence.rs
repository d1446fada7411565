//! Evidence for EDF verdicts: certificates are accepted, false ones refused, and witnesses run into their miss.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{MissWitness, Options, Schedulable, Verdict, analyze, certify};
use horolog_certificate::{Certificate, Proof, check};
use horolog_model::pattern::{PatternArrivals, ReleasePattern};
use horolog_model::{
    Arrival, CpuId, Draft, ExecutionTimes, Interference, OverrunPolicy, Platform, Policy, Preemption, System,
    Task,
};
use horolog_testkit::Random;
use horolog_testkit::naive_simulator::{NaiveCosts, NaiveJob, NaivePolicy, NaiveTask, simulate_naively};
use horolog_time::Span;

fn ns(n: u64) -> Span {
    Span::from_ns(n)
}

fn task(random: &mut Random, index: usize, count: u64) -> Task {
    let period = random.between(3, 30);
    let wcet = random.between(1, (2 * period / (count + 1)).max(1));
    let arrival = match random.below(2) {
        0 => Arrival::Periodic { period: ns(period) },
        _ => Arrival::Sporadic { separation: ns(period) },
    };
    Task {
        name: format!("t{index}"),
        arrival,
        deadline: Some(ns(random.between(wcet, (2 * period).max(wcet)))),
        wcet: ns(wcet),
        bcet: ns(1),
        offset: None,
        jitter: ns(if random.below(2) == 0 { 0 } else { random.below(8) }),
        priority: None,
        cpu: CpuId(0),
        preemption: if random.below(3) == 0 { Preemption::NonPreemptive } else { Preemption::Preemptive },
        overrun: OverrunPolicy::default(),
        execution: ExecutionTimes::default(),
        promotion: None,
        sections: Vec::new(),
        criticality: None,
        is_soft: false,
        body: None,
    }
}

/// Two to four tasks; with `costs` everything that the platform can add.
fn system(seed: u64, index: u64, costs: bool) -> System {
    let mut random = Random::of_item(seed, index);
    let count = random.between(2, 4);
    let tasks = (0..count as usize).map(|index| task(&mut random, index, count)).collect();
    let mut draft = Draft { name: "drawn".into(), policy: Policy::Edf, tasks, ..Draft::default() };
    if costs {
        let mut some = |most| if random.below(2) == 0 { None } else { Some(ns(random.between(1, most))) };
        draft.platform = Platform {
            tick: some(3),
            context_switch: some(1),
            timer_interrupt: some(1),
            release_latency: some(2),
            ..Platform::default()
        };
        if random.below(2) == 0 {
            let utilisation_ppb = random.between(1, 200_000_000);
            let period = ns(random.between(1, 9));
            draft.interferences.push(Interference {
                name: "card".into(),
                cpu: CpuId(0),
                utilisation_ppb,
                period,
            });
        }
        if random.below(4) == 0 {
            let arrivals = (0..5).map(|k| ns(k * 7 + random.below(7))).collect();
            draft.tasks[0].arrival = Arrival::Aperiodic { arrivals };
            draft.tasks[0].jitter = Span::ZERO;
            if random.below(2) == 0 {
                draft.tasks[0].deadline = None;
            }
        }
    }
    System::new(draft).unwrap()
}

fn certificate_of(system: &System) -> (Certificate, horolog_analysis::Analysis) {
    let options = Options::default();
    let analysis = analyze(system, &options).unwrap();
    (certify(system, &analysis, &options).unwrap(), analysis)
}

#[test]
fn proven_verdicts_have_accepted_certificates() {
    let mut kinds = [0; 3];
    for index in 0..3_000 {
        let system = system(31, index, index % 2 == 0);
        let (certificate, analysis) = certificate_of(&system);
        let said = check(&system, &certificate);
        let said = said.unwrap_or_else(|flaw| panic!("system {index}: {flaw}\n{system:#?}"));
        assert_eq!(said.meet.len() + said.miss.len(), certificate.claims.len(), "system {index}");
        for claim in &certificate.claims {
            kinds[match claim.proof {
                Proof::EdfWindows(_) => 0,
                Proof::EdfMiss(_) => 1,
                _ => 2,
            }] += 1;
        }
        let claimed = |name: &str| certificate.claims.iter().any(|c| c.task == name);
        for task in &analysis.tasks {
            let expected = match task.verdict {
                Verdict::Unknown => false,
                Verdict::Misses => true,
                Verdict::Meets => analysis.schedulable == Schedulable::Yes,
            };
            assert!(claimed(&task.name) || !expected, "system {index}: {} {system:#?}", task.name);
        }
    }
    assert!(kinds.iter().all(|&kind| kind > 300), "windows, misses, overloads: {kinds:?}");
}

/// The same certificate with one number changed.
fn mutant(certificate: &Certificate, random: &mut Random) -> Certificate {
    let mut mutant = certificate.clone();
    let claim = random.below(mutant.claims.len() as u64) as usize;
    let step = random.between(1, 5);
    match &mut mutant.claims[claim].proof {
        Proof::EdfWindows(proof) if proof.windows.is_empty() || random.below(4) == 0 => {
            proof.horizon_ns = proof.horizon_ns.saturating_sub(step * step);
        }
        Proof::EdfWindows(proof) => {
            let at = random.below(proof.windows.len() as u64) as usize;
            match random.below(4) {
                0 => proof.windows[at].needed_ns = proof.windows[at].needed_ns.saturating_sub(step),
                1 => proof.windows[at].window_ns += step,
                2 => proof.windows[at].window_ns = proof.windows[at].window_ns.saturating_sub(step),
                _ => _ = proof.windows.remove(at),
            }
        }
        Proof::EdfMiss(proof) if !proof.iterates.is_empty() => {
            let at = random.below(proof.iterates.len() as u64) as usize;
            match random.below(3) {
                0 => proof.iterates[at] += step,
                1 => proof.deadline_at_ns += step,
                _ => proof.iterates.truncate(at),
            }
        }
        Proof::Overload { tasks } => _ = tasks.pop(),
        _ => {}
    }
    mutant
}

#[test]
fn a_certificate_of_another_system_or_with_a_changed_number_never_proves_a_falsehood() {
    let mut random = Random::new(32);
    let (mut refused, mut accepted) = (0, 0);
    for index in 0..1_500 {
        let truth = system(33, index, index % 4 == 0);
        let mut draft = truth.to_draft();
        for task in &mut draft.tasks {
            if random.below(2) == 0 && task.wcet.as_ns() > 1 {
                task.wcet = ns(task.wcet.as_ns() - 1);
            }
        }
        let lighter = System::new(draft).unwrap();
        let (real, analysis) = certificate_of(&truth);
        let (other, _) = certificate_of(&lighter);
        let mut tried = vec![other];
        for _ in 0..6 {
            tried.extend((!real.claims.is_empty()).then(|| mutant(&real, &mut random)));
        }
        for certificate in tried {
            if check(&truth, &certificate).is_err() {
                refused += 1;
                continue;
            }
            accepted += 1;
            // What is accepted must be true, whoever wrote it.
            for claim in &certificate.claims {
                let known = analysis.tasks.iter().find(|t| t.name == claim.task).unwrap().verdict;
                let said = match claim.verdict {
                    horolog_certificate::Proven::Meets => Verdict::Meets,
                    _ => Verdict::Misses,
                };
                let agrees = said == known || (known == Verdict::Unknown && said == Verdict::Misses);
                assert!(agrees, "system {index}: {claim:?} {truth:#?}");
            }
        }
    }
    assert!(refused > 2_000 && refused > accepted, "{refused} refused, {accepted} accepted");
}

#[test]
fn a_removed_window_or_a_lower_need_is_refused() {
    let mut tried = 0;
    for index in 0..400 {
        let system = system(34, index, false);
        let (certificate, _) = certificate_of(&system);
        let Some(claim) = certificate.claims.iter().position(|c| matches!(c.proof, Proof::EdfWindows(_)))
        else {
            continue;
        };
        let Proof::EdfWindows(proof) = &certificate.claims[claim].proof else { unreachable!() };
        for at in 0..proof.windows.len() {
            for lower in [true, false] {
                let mut mutant = certificate.clone();
                let Proof::EdfWindows(changed) = &mut mutant.claims[claim].proof else { unreachable!() };
                if lower {
                    changed.windows[at].needed_ns -= 1;
                } else {
                    changed.windows.truncate(at);
                }
                if !lower && proof.horizon_ns < proof.windows[at].window_ns {
                    continue; // No window needs to be shown at all.
                }
                assert!(check(&system, &mutant).is_err(), "system {index}, entry {at}, {lower}: {proof:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

/// The jobs of a pattern as the naive simulator wants them.
fn naive_tasks(system: &System, pattern: &ReleasePattern) -> Vec<NaiveTask> {
    let until = pattern.until_ns.as_ns();
    system
        .tasks()
        .iter()
        .map(|task| {
            let found = pattern.tasks.iter().find(|t| t.task == task.name);
            let jobs = found.map_or(Vec::new(), |found| {
                let PatternArrivals::Periodic { first_ns, ready_from_ns, .. } = &found.arrivals else {
                    panic!("EDF witnesses are periodic")
                };
                let separation = task.separation().unwrap().as_ns();
                (0..)
                    .map(|k| first_ns.as_ns() + k * separation)
                    .take_while(|&arrival| arrival < until)
                    .map(|arrival| {
                        let ready = arrival.max(ready_from_ns.as_ns());
                        assert!(ready - arrival <= task.jitter.as_ns(), "{task:?}");
                        NaiveJob { arrival, ready, segments: vec![task.wcet.as_ns()] }
                    })
                    .collect()
            });
            NaiveTask {
                priority: 0,
                deadline: task.deadline.unwrap().as_ns(),
                preemptible: matches!(task.preemption, Preemption::Preemptive),
                jobs,
            }
        })
        .collect()
}

/// Whether the run that a pattern describes, by a simulator of its own, has the late job that its witness names; panics where
/// the response is not the one promised.
fn runs_into_its_miss(system: &System, pattern: &ReleasePattern) -> (bool, bool) {
    let witness = pattern.witness.as_ref().unwrap();
    let place = system.tasks().iter().position(|t| t.name == witness.task).unwrap();
    let tasks = naive_tasks(system, pattern);
    let until = pattern.until_ns.as_ns();
    let found = simulate_naively(NaivePolicy::Edf, &tasks, NaiveCosts::default(), until + 500);
    let arrival = tasks[place].jobs[witness.job as usize].arrival;
    let end = found[place].completions[witness.job as usize];
    let response = end.map(|end| end - arrival);
    let mut is_promised = false;
    if let (Some(said), Some(response)) = (witness.response_ns, response) {
        assert_eq!(said.as_ns(), response, "{pattern:#?} {system:#?}");
        is_promised = true;
    }
    (response.is_none_or(|r| r > tasks[place].deadline), is_promised)
}

#[test]
fn witnesses_run_into_their_miss() {
    let (mut replayed, mut supremum, mut promised) = (0, 0, 0);
    for index in 0..3_000 {
        let system = system(35, index, false);
        let analysis = analyze(&system, &Options::default()).unwrap();
        for task in analysis.tasks.iter().filter(|t| t.verdict == Verdict::Misses) {
            let pattern = match task.witness.as_ref().unwrap() {
                MissWitness::Pattern { pattern } => pattern,
                MissWitness::SupremumOnly => {
                    supremum += 1;
                    continue;
                }
                // In a busy period without end the search for one in whole nanoseconds need not end either.
                MissWitness::TooFarToReplay if task.response.is_none() => continue,
                MissWitness::TooFarToReplay => panic!("system {index}: {system:#?}"),
            };
            let (late, is_promised) = runs_into_its_miss(&system, pattern);
            assert!(late, "system {index}: {pattern:#?} {system:#?}");
            promised += u32::from(is_promised);
            replayed += 1;
        }
    }
    assert!(
        replayed > 1_000 && promised > 300,
        "{replayed} replayed, {promised} promised, {supremum} suprema"
    );
}

/// Two or three tasks, some of them not preemptive, whose utilisation often is exactly 1: then no busy period ends, and no
/// task has a response time.
fn full_system(index: u64) -> System {
    let mut random = Random::of_item(36, index);
    let mut tasks = Vec::new();
    for place in 0..random.between(2, 3) as usize {
        let mut drawn = task(&mut random, place, 3);
        let period = [2_u64, 3, 4, 6, 12][random.below(5) as usize];
        let wcet =
            if random.below(2) == 0 { (period / 2).min(4) } else { random.between(1, period.div_ceil(3)) };
        drawn.arrival = Arrival::Sporadic { separation: ns(10 * period) };
        drawn.wcet = ns(10 * wcet);
        drawn.deadline = Some(ns(10 * random.between(wcet, 14)));
        drawn.jitter = ns(10 * [0, 0, 0, 1][random.below(4) as usize]);
        drawn.preemption =
            if random.below(2) == 0 { Preemption::NonPreemptive } else { Preemption::Preemptive };
        tasks.push(drawn);
    }
    System::new(Draft { name: "full".into(), policy: Policy::Edf, tasks, ..Draft::default() }).unwrap()
}

#[test]
fn where_a_window_asks_for_too_much_a_task_is_named_that_misses() {
    let (mut named, mut without_response, mut replayed) = (0, 0, 0);
    for index in 0..3_000 {
        let system = full_system(index);
        let (certificate, analysis) = certificate_of(&system);
        let said = check(&system, &certificate);
        let said = said.unwrap_or_else(|flaw| panic!("system {index}: {flaw}\n{system:#?}"));
        let late: Vec<_> = analysis.tasks.iter().filter(|task| task.verdict == Verdict::Misses).collect();
        assert_eq!(analysis.schedulable == Schedulable::No, !late.is_empty(), "system {index}: {system:#?}");
        for task in late {
            named += 1;
            assert!(said.miss.contains(&task.name), "system {index}: {} {system:#?}", task.name);
            let overload = task.tests[0].note.as_deref().is_some_and(|note| note.contains("above 1"));
            if task.response.is_none() && !overload {
                // Which job it is, is said.
                let says = |note: &String| note.contains("is finished");
                assert!(
                    task.tests.iter().any(|test| test.note.as_ref().is_some_and(says)),
                    "system {index}: {task:#?}"
                );
                without_response += 1;
            }
            if let Some(MissWitness::Pattern { pattern }) = &task.witness {
                assert!(runs_into_its_miss(&system, pattern).0, "system {index}: {pattern:#?} {system:#?}");
                replayed += 1;
            }
        }
    }
    assert!(
        named > 1_500 && without_response > 100 && replayed > 1_000,
        "{named} {without_response} {replayed}"
    );
}

/// The run that would show the miss begins at phases of its own choosing, which a file with an offset does not leave open.
#[test]
fn a_run_that_an_offset_rules_out_is_no_witness() {
    let witness = |offset: &str| {
        let text = format!(
            "[system]\nname = \"offset\"\npolicy = \"edf\"\n\
             [[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"4 ms\"\ndeadline = \"7 ms\"\n{offset}\n\
             [[task]]\nname = \"b\"\nseparation = \"10 ms\"\nwcet = \"4 ms\"\ndeadline = \"7 ms\"\n"
        );
        let (system, _) =
            horolog_model::file::read(&text, "offset.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
        let analysis = analyze(&system, &Options::default()).unwrap();
        assert_eq!(analysis.schedulable, Schedulable::No, "{analysis:#?}");
        analysis.tasks.iter().any(|task| task.witness.is_some())
    };
    assert!(witness("") && !witness("offset = \"3 ms\""));
}

/// Whichever stands first in the file.
#[test]
fn a_job_that_is_due_later_may_block() {
    let urgent =
        "[[task]]\nname = \"urgent\"\nseparation = \"20 ms\"\nwcet = \"1 ms\"\ndeadline = \"5 ms\"\n";
    let long = "[[task]]\nname = \"long\"\nseparation = \"20 ms\"\nwcet = \"3 ms\"\npreemption = \"non-preemptive\"\n";
    let blocking = |tasks: [&str; 2]| {
        let text = format!("[system]\nname = \"x\"\npolicy = \"edf\"\n{}", tasks.concat());
        let (system, _) = horolog_model::file::read(&text, "x.toml", &[]).unwrap();
        let found = analyze(&system, &Options::default()).unwrap();
        let of =
            |name: &str| found.tasks.iter().find(|task| task.name == name).unwrap().blocking.unwrap().as_ns();
        (of("urgent"), of("long"))
    };
    assert_eq!([blocking([urgent, long]), blocking([long, urgent])], [(3_000_000, 0); 2]);
}
