//! Extreme systems have an answer, or `unknown` with the reason, within seconds.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Analysis, MissWitness, Options, Schedulable, Verdict, analyze};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// A period, wcet, deadline and jitter, in ns.
type Times = [u64; 4];

const fn task(period: u64, wcet: u64) -> Times {
    [period, wcet, period, 0]
}

fn answer(policy: &str, platform: &str, more: &str, tasks: &[Times]) -> Analysis {
    let mut text = format!("[system]\nname = \"extreme\"\npolicy = \"{policy}\"\n");
    if policy == "fixed-priority" {
        text += "priorities = \"deadline-monotonic\"\n";
    }
    if !platform.is_empty() {
        write!(text, "[platform]\n{platform}\n").unwrap();
    }
    for (index, [period, wcet, deadline, jitter]) in tasks.iter().enumerate() {
        write!(
            text,
            "[[task]]\nname = \"t{index}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\n\
             deadline = \"{deadline} ns\"\njitter = \"{jitter} ns\"\n{more}\n"
        )
        .unwrap();
    }
    let (system, _) = horolog_model::file::read(&text, "extreme.toml", &[]).unwrap();
    let mut options = Options::default();
    options.sensitivity = true;
    let begin = Instant::now();
    let found = analyze(&system, &options).unwrap();
    // Ten seconds are allowed; this build is slower than that of a release, and the machine may be busy.
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}: {text}", begin.elapsed());
    for task in found.tasks.iter().filter(|task| task.verdict == Verdict::Unknown) {
        assert!(task.tests.iter().any(|test| test.note.is_some()), "no reason: {task:#?}\n{text}");
    }
    found
}

const POLICIES: [&str; 2] = ["fixed-priority", "edf"];
const S: u64 = 1_000_000_000;

#[test]
fn a_tick_of_100_s_over_periods_of_36_ns() {
    for policy in POLICIES {
        for platform in ["tick = \"100 s\"", "tick = \"100 s\"\ntimer_interrupt = \"2 ns\""] {
            for more in ["", "preemption = \"non-preemptive\""] {
                let found = answer(policy, platform, more, &[task(36, 30)]);
                assert_eq!(found.schedulable, Schedulable::Unknown, "{policy} {platform}");
                answer(policy, platform, more, &[task(36, 3), task(50 * S, S)]);
            }
        }
    }
}

#[test]
fn a_jitter_of_100_s_over_periods_of_36_ns() {
    for policy in POLICIES {
        let late = [[36, 3, 200 * S, 100 * S], [100, 10, 300 * S, 100 * S]];
        answer(policy, "", "", &late);
        answer(policy, "", "preemption = \"non-preemptive\"", &late);
        answer(policy, "", "", &[[36, 33, 3_000 * S, 100 * S], [1_000, 80, 3_000 * S, 100 * S]]);
    }
}

#[test]
fn periods_from_1_ns_to_18_years() {
    let long = 1 << 59;
    for policy in POLICIES {
        assert_eq!(answer(policy, "", "", &[task(1, 1)]).schedulable, Schedulable::Yes, "{policy}");
        let full = answer(policy, "", "", &[task(2, 1), task(long, long / 2)]);
        assert_eq!(full.schedulable, Schedulable::Yes, "{policy}");
        assert_eq!(full.tasks[1].response.map(|ns| ns.as_ns()), Some(long), "{policy}");
        let short = answer(policy, "", "", &[task(2, 1), [long + 1, long / 2 - 1, long / 2, 0]]);
        assert_eq!(short.schedulable, Schedulable::No, "{policy}");
        answer(policy, "", "", &[task(3, 1), task(7, 2), task(1_000_003, 300_000), task(1 << 50, 1 << 46)]);
        // Hyperperiods beyond 2^63 at a utilisation near 1 and of exactly 1.
        let near = [task(long, long / 4), task(long - 55, long / 4), [long - 1, long / 2, long - 100, 0]];
        answer(policy, "", "", &near);
        let full: Vec<Times> = (3..19).map(|k| task(16 * k * 1_000_003, k * 1_000_003)).collect();
        answer(policy, "", "", &full);
        answer(policy, "", "preemption = \"non-preemptive\"", &full);
    }
}

#[test]
fn thousands_of_late_tasks_do_not_each_have_a_pattern_of_thousands() {
    let mut tasks: Vec<Times> = (0..2_000).map(|k| [2_000_000 + k, 600, 1_000_000 + k, 0]).collect();
    tasks[0][2] = 600;
    let found = answer("edf", "", "", &tasks);
    assert_eq!(found.schedulable, Schedulable::No);
    let missing: Vec<_> = found.tasks.iter().filter(|task| task.verdict == Verdict::Misses).collect();
    let shown = missing.iter().filter(|task| task.witness.is_some()).count();
    assert!(missing.len() > 500 && shown == 500, "{} {shown}", missing.len());
}

#[test]
fn a_jitter_of_2_to_the_62_ns_is_taken_and_of_a_longer_one_nothing_is_known() {
    let found = |jitter: u64| {
        let text = format!(
            "[system]\nname = \"late\"\n[[task]]\nname = \"t\"\npriority = 1\nseparation = \"{0} ns\"\nwcet = \"1 ns\"\n\
             deadline = \"{0} ns\"\njitter = \"{jitter} ns\"\n",
            1_u64 << 62
        );
        let (system, _) = horolog_model::file::read(&text, "late.toml", &[]).unwrap();
        analyze(&system, &Options::default()).unwrap()
    };
    let (taken, longer) = (found(1 << 62), found((1 << 62) + 1));
    assert_eq!((taken.schedulable, taken.notes.len()), (Schedulable::No, 0), "{taken:?}");
    assert_eq!(longer.schedulable, Schedulable::Unknown);
    assert!(longer.notes[0].starts_with("task.t: ") && longer.notes[0].contains("2^63 ns"), "{longer:?}");
}

#[test]
fn a_time_of_2_to_the_60_ns_is_beyond_the_tests_under_edf() {
    let found = |period: u64| {
        let text = format!(
            "[system]\nname = \"long\"\npolicy = \"edf\"\n[[task]]\nname = \"t\"\nperiod = \"{period} ns\"\nwcet = \"1 ns\"\n"
        );
        let (system, _) = horolog_model::file::read(&text, "long.toml", &[]).unwrap();
        analyze(&system, &Options::default()).unwrap()
    };
    let (shorter, long) = (found((1 << 60) - 1), found(1 << 60));
    assert_eq!(shorter.schedulable, Schedulable::Yes, "{shorter:?}");
    assert_eq!(long.schedulable, Schedulable::Unknown);
    assert!(long.notes[0].contains("2^60 ns"), "{long:?}");
}

#[test]
fn long_lists_of_arrivals_are_looked_at_once_and_not_for_each_changed_set() {
    let list = |step: u64| {
        let arrivals: Vec<String> = (0..20_000).map(|job| format!("\"{} ns\"", job * step)).collect();
        format!(
            "[[task]]\nname = \"t{step}\"\nwcet = \"1 ns\"\ndeadline = \"1 ms\"\narrivals = [{}]\n",
            arrivals.join(", ")
        )
    };
    let text = format!("[system]\nname = \"lists\"\npolicy = \"edf\"\n{}{}", list(2), list(3));
    let (system, _) = horolog_model::file::read(&text, "lists.toml", &[]).unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(analyze(&system, &Options::default()).unwrap().schedulable, Schedulable::Yes);
    // It took 10 s where each of some hundred sets counted the windows anew; now 0.15 s.
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}

/// Half of the processor for an interrupt and half for a job of 2^62 ns in 2^63: it ends at 2^63 ns sharp. Behind a nanosecond of
/// blocking, which stays for ever then, it ends later than anything that is searched.
#[test]
fn no_job_that_ends_after_2_to_the_63_ns_has_a_bound() {
    let response = |blocker: &str| {
        let text = format!(
            "[system]\nname = \"long\"\n[[interrupt]]\nname = \"i\"\nseparation = \"2 ns\"\ncost = \"1 ns\"\n\
             [[task]]\nname = \"t\"\nseparation = \"{} ns\"\nwcet = \"{} ns\"\npriority = 2\npreemption = \"non-preemptive\"\n{blocker}",
            1_u64 << 63,
            1_u64 << 62
        );
        let (system, _) = horolog_model::file::read(&text, "long.toml", &[]).unwrap();
        analyze(&system, &Options::default()).unwrap().tasks[0].response.map(|response| response.as_ns())
    };
    assert_eq!(response(""), Some(1 << 63));
    let low = "[[task]]\nname = \"low\"\nseparation = \"1 s\"\nwcet = \"1 ns\"\npriority = 1\npreemption = \"non-preemptive\"\n";
    assert_eq!(response(low), None);
}

/// Two tasks that together ask for a little more than the processor, at periods of about 2^62 ns. The first job of the second ends at
/// 2^62 + 1 ns, in time; the next one is late. Where it is due before 2^63 ns there is a run into that, and from then on none is looked
/// for.
#[test]
fn a_late_job_is_looked_for_up_to_2_to_the_63_ns() {
    let half = 1_u64 << 61;
    let witness = |deadline: u64| {
        let text = format!(
            "[system]\nname = \"long\"\n[[task]]\nname = \"h\"\nseparation = \"{} ns\"\nwcet = \"{half} ns\"\npriority = 2\n\
             [[task]]\nname = \"t\"\nseparation = \"{} ns\"\nwcet = \"{} ns\"\ndeadline = \"{deadline} ns\"\npriority = 1\n",
            2 * half + 1,
            2 * half - 2,
            half + 1
        );
        let (system, _) = horolog_model::file::read(&text, "long.toml", &[]).unwrap();
        let task = analyze(&system, &Options::default()).unwrap().tasks.remove(1);
        assert_eq!(task.verdict, Verdict::Misses, "{task:#?}");
        task.witness
    };
    assert!(matches!(witness(2 * half + 1), Some(MissWitness::Pattern { .. })));
    assert_eq!(witness(2 * half + 2), Some(MissWitness::TooFarToReplay));
}
