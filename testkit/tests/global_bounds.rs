//! Clusters: no simulated response is above its bound, and no proved task misses, over random phases, separations and execution times of systems
//! with a cluster of two to four processors, from the file to the run. The simulation drives the machine of `sched`, which the analysis does not know.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Options, Verdict, analyze};
use horolog_sim::{ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_testkit::Random;
use horolog_testkit::drawn_offsets::{read, with_offsets, without_offsets};
use horolog_time::Span;
use horolog_trace::NullSink;

const PERIODS: [u64; 6] = [12, 16, 24, 36, 48, 72];

/// A file whose tasks have `OFFSET` where their offsets belong: a cluster, and a task on a processor of its own.
fn draw(random: &mut Random) -> String {
    let cpus = random.between(2, 4);
    let edf = random.below(2) == 0;
    let keeps = random.below(4) == 0;
    let order = if edf { "edf" } else { "fixed-priority" };
    let policy = if random.below(2) == 0 { "edf" } else { "fixed-priority" };
    let mut text =
        format!("[system]\nname = \"drawn\"\npolicy = \"{policy}\"\n[platform]\ncpus = {}\n", cpus + 1);
    let count = cpus + random.below(4);
    for number in 0..count {
        let period = PERIODS[random.below(6) as usize];
        let wcet = random.between(1, (period * cpus / (count + 1)).clamp(1, period));
        let deadline = if random.below(2) == 0 { period } else { random.between(wcet, period) };
        let kind = if random.below(3) == 0 { "separation" } else { "period" };
        text += &format!(
            "[[task]]\nname = \"t{number}\"\n{kind} = \"{period} ns\"\ndeadline = \"{deadline} ns\"\nwcet = \"{wcet} ns\"\n\
             bcet = \"1 ns\"\noffset = \"OFFSET ns\"\n"
        );
        if !edf {
            // Equal ones among them, and not always by the deadline.
            text += &format!(
                "priority = {}\n",
                if random.below(3) == 0 { random.below(6) } else { 200 - deadline }
            );
        }
        if keeps {
            text += "preemption = \"non-preemptive\"\n";
        }
    }
    let priority = if policy == "edf" { "" } else { "priority = 1\n" };
    text += &format!(
        "[[task]]\nname = \"alone\"\ncpu = {cpus}\nperiod = \"10 ns\"\nwcet = \"4 ns\"\noffset = \"OFFSET ns\"\n{priority}"
    );
    let names = |prefix: &str, quote: &str, upto| {
        (0..upto).map(|it| format!("{quote}{prefix}{it}{quote}")).collect::<Vec<_>>().join(", ")
    };
    text + &format!(
        "[[cluster]]\nname = \"pair\"\ncpus = [{}]\norder = \"{order}\"\ntasks = [{}]\n",
        names("", "", cpus),
        names("t", "\"", count)
    )
}

#[test]
fn no_response_is_above_its_bound() {
    let systems =
        std::env::var("HOROLOG_BOUNDS_SYSTEMS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let mut random = Random::new(77);
    let (mut bounds, mut attained, mut met, mut partly) = (0_u64, 0_u64, 0_u64, 0_u64);
    for _ in 0..systems {
        let text = draw(&mut random);
        let system = read(&without_offsets(&text));
        let analysis = analyze(&system, &Options::default()).expect("an answer");
        assert_eq!(analysis.tasks.last().unwrap().verdict, Verdict::Meets, "the one beside the cluster");
        let mut worst = vec![Span::ZERO; system.tasks().len()];
        let is_open = |verdict: Verdict| verdict != Verdict::Meets;
        for run in 0..8 {
            let phased = with_offsets(&text, [72, 9, 1][run % 3], &mut random);
            let execution = if run % 2 == 1 { ExecutionChoice::Uniform } else { ExecutionChoice::Wcet };
            let horizon = Horizon::Time(Span::from_ns(1_500));
            let options = SimOptions { horizon, seed: run as u64, execution, ..SimOptions::default() };
            let outcome = simulate(&phased, &options, &mut NullSink).unwrap();
            for ((worst, seen), task) in worst.iter_mut().zip(&outcome.tasks).zip(&analysis.tasks) {
                *worst = (*worst).max(seen.response_ns_max.unwrap_or(Span::ZERO));
                assert!(seen.missed == 0 || is_open(task.verdict), "{text}: {} misses", task.name);
            }
        }
        for (task, worst) in analysis.tasks.iter().zip(worst) {
            if let (Verdict::Meets, Some(bound)) = (task.verdict, task.response) {
                assert!(worst <= bound, "{text}: {} takes {worst} of {bound} by {}", task.name, task.test);
                (bounds, attained) = (bounds + 1, attained + u64::from(worst == bound));
            }
        }
        let proved = analysis.tasks.iter().filter(|task| !is_open(task.verdict)).count();
        met += u64::from(proved == analysis.tasks.len());
        partly += u64::from(proved > 1 && proved < analysis.tasks.len());
    }
    println!("{systems} systems, {met} proved whole, {partly} in part; {bounds} bounds, {attained} attained");
    assert!(
        met > systems / 6 && partly > systems / 40 && attained * 8 > bounds,
        "{met} {partly} {attained} of {bounds}"
    );
}
