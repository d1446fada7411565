//! Sections under EDF: local resources and spin locks on one to three processors. No simulated response is above its bound, no job is late
//! where the test says that none is, and the terms of an explanation make up the bound.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Options, TermKind, Verdict, analyze};
use horolog_model::{System, file};
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_testkit::{Random, explanations};
use horolog_time::Span;
use horolog_trace::NullSink;

const PERIODS: [u64; 5] = [8, 12, 16, 24, 48];

/// The file of a system, a `@` where the offset of a task belongs.
fn draw(random: &mut Random, has_delays: bool) -> String {
    let cpus = random.between(1, 3);
    let globals = if cpus > 1 { random.between(0, 2) } else { 0 };
    let mut text = format!("[system]\nname = \"edf\"\npolicy = \"edf\"\n[platform]\ncpus = {cpus}\n");
    if has_delays {
        let keys =
            [("context_switch", 2), ("timer_interrupt", 2), ("release_latency", 3), ("lock_release", 2)];
        for (key, most) in keys {
            text += &format!("{key} = \"{} ns\"\n", random.below(most));
        }
    }
    for resource in 0..globals {
        text += &format!("[[resource]]\nname = \"g{resource}\"\nprotocol = \"msrp\"\n");
    }
    for cpu in 0..cpus {
        let protocol = if random.below(3) == 0 { "non-preemptive" } else { "ceiling" };
        text += &format!(
            "[[resource]]\nname = \"l{cpu}\"\n[[resource]]\nname = \"m{cpu}\"\nprotocol = \"{protocol}\"\n"
        );
        let count = random.between(1, 4);
        for number in 0..count {
            let period = PERIODS[random.below(5) as usize];
            let wcet = random.between(1, (3 * period / (4 * count)).max(2));
            let deadline = random.between(wcet, period + 8);
            let jitter = if has_delays && random.below(2) == 0 { random.below(7) } else { 0 };
            text += &format!(
                "[[task]]\nname = \"c{cpu}t{number}\"\ncpu = {cpu}\nperiod = \"{period} ns\"\njitter = \"{jitter} ns\"\n\
                 deadline = \"{deadline} ns\"\nwcet = \"{wcet} ns\"\nbcet = \"1 ns\"\n@\n"
            );
            let mut at = 0;
            while at < wcet && random.below(3) > 0 {
                let from = random.between(at, wcet - 1);
                let length = random.between(1, wcet - from);
                let name = match random.below(4) {
                    0 | 1 if globals > 0 => format!("g{}", random.below(globals)),
                    0 | 2 => format!("l{cpu}"),
                    _ => format!("m{cpu}"),
                };
                text += &format!(
                    "[[task.section]]\nresource = \"{name}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
                );
                at = from + length;
            }
        }
    }
    text
}

fn with_offsets(text: &str, random: &mut Random) -> System {
    let mut parts = text.split('@');
    let mut found = parts.next().unwrap().to_owned();
    for part in parts {
        found += &format!("offset = \"{} ns\"{part}", random.below(48));
    }
    read(&found)
}

fn read(text: &str) -> System {
    let text = text.replace('@', "");
    let found = file::read(&text, "s.toml", &[]);
    found.map(|(system, _)| system).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// The longest responses, and how many jobs were late, over `phases` runs.
fn simulated(text: &str, phases: u64, random: &mut Random) -> Vec<(u64, u64)> {
    let mut worst = Vec::new();
    for phase in 0..phases {
        let system = with_offsets(text, random);
        worst.resize(system.tasks().len(), (0, 0));
        let mut options =
            SimOptions { horizon: Horizon::Time(Span::from_ns(960)), seed: phase, ..SimOptions::default() };
        if phase % 2 == 1 {
            options.execution = ExecutionChoice::Uniform;
        }
        if phase % 4 > 1 {
            (options.jitter, options.latency) = (DelayChoice::Max, DelayChoice::Max);
        }
        let Ok(outcome) = simulate(&system, &options, &mut NullSink) else { continue };
        for ((response, late), task) in worst.iter_mut().zip(&outcome.tasks) {
            *response = (*response).max(task.response_ns_max.map_or(0, Span::as_ns));
            *late += task.missed;
        }
    }
    worst
}

fn hold_against_simulation(seed: u64, has_delays: bool) -> (u32, u32, u32, u32) {
    let mut random = Random::new(seed);
    let (mut bounded, mut attained, mut proved, mut open) = (0, 0, 0, 0);
    for round in 0..3_000 {
        let text = draw(&mut random, has_delays);
        let analysis = analyze(&read(&text), &Options::default()).unwrap();
        let found = simulated(&text, 12, &mut random);
        for (task, (worst, late)) in analysis.tasks.iter().zip(&found) {
            let place = format!("round {round}, {}: {worst}\n{task:?}\n{text}", task.name);
            if let Some(bound) = task.response.map(Span::as_ns) {
                assert!(*worst <= bound, "{place}");
                bounded += 1;
                attained += u32::from(*worst == bound);
            }
            match task.verdict {
                Verdict::Meets => {
                    assert_eq!(*late, 0, "{place}");
                    proved += 1;
                }
                Verdict::Unknown => open += 1,
                Verdict::Misses => {}
            }
        }
    }
    (bounded, attained, proved, open)
}

#[test]
fn no_simulated_response_is_above_its_bound() {
    let (bounded, attained, proved, open) = hold_against_simulation(7, false);
    assert!(bounded > 10_000 && attained > 2_000 && proved > 8_000, "{bounded} {attained} {proved} {open}");
}

#[test]
fn nor_is_one_with_jitter_and_what_the_kernel_takes() {
    let (bounded, attained, proved, open) = hold_against_simulation(8, true);
    assert!(bounded > 9_000 && attained > 1_000 && proved > 5_000, "{bounded} {attained} {proved} {open}");
}

/// The stack resource policy: others that are due later than the one that waits do not begin before it.
#[test]
fn no_job_begins_while_a_more_urgent_one_is_kept_waiting() {
    let task = |name: &str, times: [u64; 4], length: u64| {
        let [period, deadline, wcet, offset] = times;
        let text = format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period} ns\"\ndeadline = \"{deadline} ns\"\nwcet = \"{wcet} ns\"\noffset = \"{offset} ns\"\n"
        );
        let section =
            format!("[[task.section]]\nresource = \"bus\"\nfrom = \"0 ns\"\nlength = \"{length} ns\"\n");
        if length > 0 { text + &section } else { text }
    };
    let text = "[system]\nname = \"s\"\npolicy = \"edf\"\n[[resource]]\nname = \"bus\"\n".to_owned()
        + &task("fast", [9, 9, 5, 1], 0)
        + &task("user", [1000, 10, 2, 1], 1)
        + &task("slow", [1000, 100, 6, 0], 6);
    // user is due at 11. The second job of fast comes at 10 and is due at 19: slow goes on until it has left the bus at 11.
    let system = read(&text);
    let outcome = simulate(&system, &SimOptions::default(), &mut NullSink).unwrap();
    assert_eq!(outcome.tasks[1].response_ns_max, Some(Span::from_ns(12)));
    assert_eq!(analyze(&system, &Options::default()).unwrap().tasks[1].response, Some(Span::from_ns(13)));
}

/// The terms of an explanation make up the bound of the analysis.
#[test]
fn what_is_explained_is_what_was_proved() {
    let mut random = Random::new(9);
    let mut kinds = std::collections::BTreeMap::new();
    for round in 0..1_500 {
        let text = draw(&mut random, round % 2 == 0);
        let system = read(&text);
        for explained in explanations(&system) {
            for term in &explained.terms {
                *kinds.entry(format!("{:?}", term.kind)).or_insert(0) += 1;
            }
        }
    }
    for kind in [TermKind::BlockingSectionDueLater, TermKind::BlockingSpinLockDueLater, TermKind::Spinning] {
        assert!(kinds.get(&format!("{kind:?}")).is_some_and(|&count| count > 50), "{kind:?}: {kinds:?}");
    }
}
