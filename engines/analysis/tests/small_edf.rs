//! Small systems under EDF: the test of the whole set and the verdict of the system say the same, also where one job alone
//! proves the miss and no task's own search finds it.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Analysis, Options, Schedulable, Verdict, analyze};
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
