//! Small systems under EDF, compared with simulations of their own, unit by unit, which share no code with the analysis or the
//! scheduling machine: late releases over every phase, and the set's verdict over every job that may block.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::edf::{Arrivals, Budget, EdfSet, EdfSolver, EdfTask, EdfVerdict, Unresolved};
use horolog_analysis::{Analysis, Options, Schedulable, TestResult, Verdict, analyze, certify};
use horolog_certificate::check;
use horolog_model::System;
use horolog_testkit::Random;
use std::fmt::Write;

/// One periodic task, in units.
#[derive(Clone, Copy, Debug)]
struct Job {
    period: i64,
    deadline: i64,
    wcet: i64,
    jitter: i64,
    preemptive: bool,
}

const fn job(period: i64, deadline: i64, wcet: i64, jitter: i64) -> Job {
    Job { period, deadline, wcet, jitter, preemptive: true }
}

/// The system with `unit` ns a unit.
fn system(jobs: &[Job], unit: i64) -> System {
    let mut text = String::from("[system]\nname = \"small\"\npolicy = \"edf\"\n");
    for (index, job) in jobs.iter().enumerate() {
        let Job { period, deadline, wcet, jitter, preemptive } = *job;
        let [period, deadline, wcet, jitter] = [period, deadline, wcet, jitter].map(|time| time * unit);
        writeln!(
            text,
            "[[task]]\nname = \"t{index}\"\nseparation = \"{period} ns\"\ndeadline = \"{deadline} ns\"\n\
             wcet = \"{wcet} ns\"\njitter = \"{jitter} ns\"\npreemption = \"{}\"",
            if preemptive { "preemptive" } else { "non-preemptive" }
        )
        .unwrap();
    }
    horolog_model::file::read(&text, "small.toml", &[]).unwrap_or_else(|e| panic!("{e}\n{text}")).0
}

fn analysis(system: &System) -> Analysis {
    analyze(system, &Options::default()).unwrap()
}

/// The longest response of a job of `studied` in a run whose tasks first arrive at `phases`, with every release that its
/// jitter allows held back to `critical`. Ties go against the task.
fn response(jobs: &[Job], studied: usize, phases: &[i64], critical: i64, until: i64) -> i64 {
    // (ready, arrival, deadline, left, task)
    let mut pending: Vec<(i64, i64, i64, i64, usize)> = Vec::new();
    for (task, (job, phase)) in jobs.iter().zip(phases).enumerate() {
        for arrival in (0..).map(|n| phase + n * job.period).take_while(|a| *a < until) {
            let held = arrival <= critical && critical <= arrival + job.jitter;
            let ready = if held { critical } else { arrival };
            pending.push((ready, arrival, arrival + job.deadline, job.wcet, task));
        }
    }
    pending.sort_by_key(|p| (p.2, p.4 == studied, p.1, p.4));
    let (mut longest, mut running) = (0, None);
    for now in 0..until {
        let kept = running.filter(|&at: &usize| !jobs[pending[at].4].preemptive && pending[at].3 > 0);
        running = kept.or_else(|| pending.iter().position(|p| p.0 <= now && p.3 > 0));
        let Some(at) = running else { continue };
        pending[at].3 -= 1;
        if pending[at].3 == 0 && pending[at].4 == studied {
            longest = longest.max(now + 1 - pending[at].1);
        }
    }
    longest
}

/// The longest response of a task over every phase.
fn worst(jobs: &[Job], studied: usize, until: i64) -> i64 {
    let critical = jobs.iter().map(|job| job.jitter).max().unwrap_or(0) + 1;
    let mut phases = vec![0; jobs.len()];
    let mut longest = 0;
    loop {
        longest = longest.max(response(jobs, studied, &phases, critical, critical + until));
        let Some(place) = (0..jobs.len()).find(|&at| phases[at] + 1 < jobs[at].period) else {
            return longest;
        };
        phases[..place].fill(0);
        phases[place] += 1;
    }
}

#[test]
fn a_late_release_is_the_late_task_s_own_affair() {
    let mut decided = 0;
    for index in 0..120 {
        let mut random = Random::new(0x1a7e + index);
        let mut below =
            |least: i64, most: i64| least + (random.next_u64() % (most - least + 1) as u64) as i64;
        let mut jobs = vec![job(below(4, 7), below(1, 3), 1, below(4, 7))];
        for _ in 0..below(1, 2) {
            let period = below(4, 8);
            jobs.push(job(period, below(2, 12), below(1, 2), below(0, 2)));
        }
        // Under a utilisation of 1 busy periods end within this.
        if jobs.iter().map(|job| job.wcet * 840 / job.period).sum::<i64>() >= 800 {
            continue;
        }
        let system = system(&jobs, 1);
        let analysis = analysis(&system);
        for (task, verdict) in analysis.tasks.iter().enumerate() {
            let longest = worst(&jobs, task, 80);
            let bad = format!("{jobs:?}, task {task}: simulated {longest}\n{verdict:#?}");
            let misses = longest > jobs[task].deadline;
            assert_eq!(verdict.verdict, if misses { Verdict::Misses } else { Verdict::Meets }, "{bad}");
            if let Some(bound) = verdict.response {
                assert_eq!(i64::try_from(bound.as_ns()).unwrap(), longest, "{bad}");
                decided += 1;
            }
        }
        let certificate = certify(&system, &analysis, &Options::default()).unwrap();
        let _ = check(&system, &certificate).unwrap_or_else(|flaw| panic!("{flaw}\n{jobs:?}"));
    }
    assert!(decided > 40, "{decided}");
}

/// A unit of [`late`] is so many of its steps: a job that blocks starts a step before the others arrive.
const STEPS: i64 = 10;

/// Whether some job is late by then: `first` is released alone, the others a step later with all the jitter that they have, and
/// each as soon as it may from then on; without `first` all at once. No other releases ask for more before any deadline.
fn late(jobs: &[Job], first: Option<usize>, until: i64) -> bool {
    let begin = i64::from(first.is_some());
    // (ready, deadline, left, preemptive)
    let mut pending: Vec<(i64, i64, i64, bool)> = Vec::new();
    for (task, job) in jobs.iter().enumerate() {
        let Job { period, deadline, wcet, jitter, preemptive } = *job;
        let (start, jitter) = if first == Some(task) { (0, 0) } else { (begin, jitter * STEPS) };
        for n in 0.. {
            let arrival = start - jitter + n * period * STEPS;
            if arrival >= until {
                break;
            }
            pending.push((arrival.max(start), arrival + deadline * STEPS, wcet * STEPS, preemptive));
        }
    }
    pending.sort_by_key(|p| (p.1, p.0));
    let (mut running, mut oldest) = (None, 0);
    for now in 0..until {
        let kept = running.filter(|&at: &usize| !pending[at].3 && pending[at].2 > 0);
        running =
            kept.or_else(|| (oldest..pending.len()).find(|&at| pending[at].0 <= now && pending[at].2 > 0));
        if let Some(at) = running {
            pending[at].2 -= 1;
        }
        while oldest < pending.len() && pending[oldest].2 == 0 {
            oldest += 1;
        }
        if pending[oldest..].iter().take_while(|p| p.1 <= now + 1).any(|p| p.2 > 0) {
            return true;
        }
    }
    false
}

/// Deadlines before periods end (jobs of a task that overtake each other would need an order), every kind of blocking, and a
/// utilisation of exactly 1 drawn often.
#[test]
fn jobs_that_block_and_full_processors_are_judged_as_every_pattern_says() {
    let (mut missed, mut met, mut full, mut blocked) = (0, 0, 0, 0);
    for index in 0..4_000 {
        let mut random = Random::new(0xb10c + index);
        let mut below =
            |least: i64, most: i64| least + (random.next_u64() % (most - least + 1) as u64) as i64;
        let mut jobs = Vec::new();
        for _ in 0..below(2, 3) {
            let period = [2, 3, 4, 6, 12][below(0, 4) as usize];
            let wcet = below(1, period.min(4));
            let jitter = [0, 0, 0, 1][below(0, 3) as usize];
            let mut made = job(period, below(wcet, period), wcet, jitter);
            made.preemptive = below(0, 2) == 0;
            jobs.push(made);
        }
        let demand = jobs.iter().map(|job| job.wcet * 12 / job.period).sum::<i64>();
        if demand > 12 {
            continue;
        }
        let blockers = (0..jobs.len()).filter(|&task| !jobs[task].preemptive).map(Some);
        let until = 60 * STEPS;
        let alone = late(&jobs, None, until);
        let misses = alone || blockers.into_iter().any(|first| late(&jobs, first, until));
        let analysis = analysis(&system(&jobs, STEPS));
        let expected = if misses { Schedulable::No } else { Schedulable::Yes };
        let tests = &analysis.processors[0].tests;
        assert_eq!(analysis.schedulable, expected, "{jobs:?}\n{tests:#?}\n{:#?}", analysis.tasks);
        // What every pattern says is said to be so.
        let verdict = if misses { Verdict::Misses } else { Verdict::Meets };
        assert!(tests.iter().any(|test| test.verdict == verdict && test.exact), "{jobs:?}\n{tests:#?}");
        missed += u32::from(misses);
        met += u32::from(!misses);
        full += u32::from(demand == 12);
        blocked += u32::from(misses && !alone);
    }
    assert!(missed > 700 && met > 300 && full > 250 && blocked > 250, "{missed} {met} {full} {blocked}");
}

#[test]
fn where_the_set_misses_the_system_does() {
    let (mut missed, mut full) = (0, 0);
    for index in 0..1_500 {
        let mut random = Random::new(0xe0f + index);
        let mut below =
            |least: i64, most: i64| least + (random.next_u64() % (most - least + 1) as u64) as i64;
        let mut jobs = Vec::new();
        for _ in 0..below(2, 3) {
            let period = [2, 3, 4, 6, 12][below(0, 4) as usize];
            let wcet = below(1, period.min(4));
            let mut made = job(period, below(wcet, 14), wcet, [0, 0, 1, 2][below(0, 3) as usize]);
            made.preemptive = below(0, 2) > 0;
            jobs.push(made);
        }
        let demand = jobs.iter().map(|job| job.wcet * 12 / job.period).sum::<i64>();
        full += u32::from(demand == 12);
        let analysis = analysis(&system(&jobs, 10));
        for processor in &analysis.processors {
            let misses =
                processor.tests.iter().any(|t| t.verdict == Verdict::Misses && !t.test.ends_with("-integer"));
            let meets =
                processor.tests.iter().any(|t| t.verdict == Verdict::Meets && !t.test.ends_with("-integer"));
            let expected = [Schedulable::No, Schedulable::Yes, analysis.schedulable];
            let expected = &expected[if misses {
                0
            } else if meets {
                1
            } else {
                2
            }];
            assert_eq!(
                &analysis.schedulable, expected,
                "{jobs:?}\n{:#?}\n{:#?}",
                processor.tests, analysis.tasks
            );
            missed += u32::from(misses);
        }
    }
    assert!(missed > 300 && full > 60, "{missed} {full}");
}

/// Times of 2^60 ns are refused, and one less is not; so are lists of arrivals that are empty or out of order.
#[test]
fn sets_outside_the_range_of_the_tests_are_refused() {
    const LIMIT: u64 = 1 << 60;
    let listed = |list: &[u64]| {
        let task = EdfTask { arrivals: Arrivals::Listed(list.to_vec()), ..EdfTask::new(1, 1, 1) };
        EdfSet::new(vec![task], Vec::new()).is_ok()
    };
    assert!(listed(&[0, LIMIT - 1]) && !listed(&[0, LIMIT]));
    assert!(listed(&[3, 3]) && !listed(&[3, 2]) && !listed(&[]));
    let separated = |t: u64| EdfSet::new(vec![EdfTask::new(1, t, 1)], Vec::new()).is_ok();
    assert!(separated(LIMIT - 1) && !separated(LIMIT) && !separated(0));
    let wcet = |c: u64| EdfSet::new(vec![EdfTask::new(c, LIMIT - 1, 1)], Vec::new()).is_ok();
    assert!(wcet(1) && wcet(LIMIT - 1) && !wcet(LIMIT) && !wcet(0));
    let deadline = |d: u64| EdfSet::new(vec![EdfTask::new(1, 1, d)], Vec::new()).is_ok();
    assert!(deadline(1) && deadline(LIMIT - 1) && !deadline(LIMIT) && !deadline(0));
    let jitter = |j: u64| EdfSet::new(vec![EdfTask::new(1, 1, 1).with_jitter(j)], Vec::new()).is_ok();
    assert!(jitter(0) && jitter(LIMIT - 1) && !jitter(LIMIT));
}

/// Tests in integer time stand beside those in continuous time where a job cannot be preempted, and nowhere else.
#[test]
fn integer_time_is_asked_where_a_job_blocks() {
    let urgent = Job { period: 20, deadline: 5, wcet: 1, jitter: 0, preemptive: true };
    let long = Job { period: 20, deadline: 20, wcet: 3, jitter: 0, preemptive: false };
    let names = |tests: &[TestResult]| tests.iter().map(|test| test.test).collect::<Vec<_>>();
    let found = analysis(&system(&[urgent, long], 10));
    assert_eq!(
        names(&found.processors[0].tests),
        ["edf-qpa-non-preemptive", "edf-qpa-non-preemptive-integer"]
    );
    let response = |task: usize, test: &str| {
        let test = found.tasks[task].tests.iter().find(|one| one.test == test);
        test.and_then(|test| test.response).map(|response| response.as_ns())
    };
    // 3 units of the other and 1 of its own; the other must have begun a nanosecond before.
    assert_eq!(response(0, "edf-response"), Some(40));
    assert_eq!(response(0, "edf-response-integer"), Some(39));
    assert_eq!(response(1, "edf-response-non-preemptive"), Some(40));
    assert_eq!(response(1, "edf-response-non-preemptive-integer"), Some(40));
    let plain = analysis(&system(&[urgent, Job { preemptive: true, ..long }], 10));
    assert_eq!(names(&plain.processors[0].tests), ["edf-qpa"]);
    assert!(plain.tasks.iter().all(|task| names(&task.tests) == ["edf-response", "edf-qpa"]));
}

/// A job a nanosecond fills the processor, so that any other asks for too much.
#[test]
fn a_period_of_one_nanosecond_is_the_whole_processor() {
    let verdict = |tasks: Vec<EdfTask>| EdfSolver::new().check(&EdfSet::new(tasks, Vec::new()).unwrap());
    let full = EdfTask::new(1, 1, 1);
    assert_eq!(verdict(vec![full.clone(), EdfTask::new(1, 1_000, 1_000)]), EdfVerdict::Overload);
    assert_eq!(verdict(vec![EdfTask::new(1, 1_000, 1_000), full]), EdfVerdict::Overload);
}

/// With one-shot timers each of the listed arrivals is an interrupt: 1 ns at 0, 5 and 5, and one of the other task.
#[test]
fn interrupts_of_listed_arrivals_take_time_from_every_task() {
    let text = "[system]\nname = \"x\"\npolicy = \"edf\"\n[platform]\ntimer_interrupt = \"1 ns\"\n\
                [[task]]\nname = \"t\"\nseparation = \"100 ns\"\nwcet = \"10 ns\"\n\
                [[task]]\nname = \"once\"\narrivals = [\"0 ns\", \"5 ns\", \"5 ns\"]\nwcet = \"1 ns\"\n";
    let (system, _) = horolog_model::file::read(text, "x.toml", &[]).unwrap();
    let found = analysis(&system);
    assert_eq!(found.tasks[0].response.map(|response| response.as_ns()), Some(10 + 1 + 3));
}

/// Work spent is spent: what does not suffice is used up.
#[test]
fn a_budget_that_does_not_suffice_is_used_up() {
    let mut budget = Budget::terms(5);
    assert!(budget.spend(3).is_ok() && budget.left() == 2);
    assert_eq!(budget.spend(3), Err(Unresolved::Budget));
    assert_eq!(budget.left(), 0);
}

/// Half of the processor for a task and half for a measured load of up to 50 ns at once: with a deadline of 70 ns there is room for
/// both, as `x = 5 + 0.5·(x + 50)` at 60, and ten more of each from then on. The proof covers a hyperperiod behind the period of the
/// load.
#[test]
fn a_full_processor_with_a_measured_load_has_an_accepted_proof() {
    for (deadline, meets) in [(70, true), (60, true), (59, false)] {
        let text = format!(
            "[system]\nname = \"x\"\npolicy = \"edf\"\n[[task]]\nname = \"t\"\nseparation = \"10 ns\"\nwcet = \"5 ns\"\n\
             deadline = \"{deadline} ns\"\n[[interference]]\nname = \"n\"\nutilisation = 0.5\nperiod = \"100 ns\"\ncpu = 0\n"
        );
        let (system, _) = horolog_model::file::read(&text, "x.toml", &[]).unwrap();
        let found = analysis(&system);
        assert_eq!(found.tasks[0].verdict == Verdict::Meets, meets, "{deadline}: {found:#?}");
        let certificate = certify(&system, &found, &Options::default()).unwrap();
        let said = check(&system, &certificate).unwrap_or_else(|flaw| panic!("{deadline}: {flaw}"));
        assert_eq!(said.meet.len(), usize::from(meets), "{deadline}");
    }
}
