//! A seeded search for systems that `analyze` takes long over: every policy, assignment, preemption mode, equal priorities, jitter,
//! long deadlines, lists of arrivals, segments, servers, costs and ticks, from 1 to 10,000 tasks with periods from 1 ns to 1 h.
//!
//! `cargo bench --bench slow_inputs -- SYSTEMS FIRST_SEED LIMIT_SECONDS`: prints the slowest systems and writes those above the
//! limit to `slow-SEED.toml` in the working directory. The default searches 300 systems for 10 s.

use horolog_analysis::{Options, analyze, resolve};
use std::fmt::Write;
use std::time::{Duration, Instant};

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |place: usize, default: u64| numbers.get(place).copied().unwrap_or(default);
    let (systems, first, limit) = (number(0, 300), number(1, 1), Duration::from_secs(number(2, 10)));
    let mut times: Vec<(Duration, u64, String)> = Vec::new();
    let (mut refused, mut above) = (0_u64, 0_u64);
    for seed in first..first + systems {
        let (text, words) = drawn(seed);
        if systems == 1 {
            eprintln!("{words}");
        }
        let begun = Instant::now();
        let answer = answer_of(&text);
        let took = begun.elapsed();
        refused += u64::from(answer.is_none());
        if took > limit {
            above += 1;
            eprintln!("{:>8.3} s  seed {seed:<6} {words}", took.as_secs_f64());
            std::fs::write(format!("slow-{seed}.toml"), &text).expect("a writable folder");
        }
        times.push((took, seed, format!("{words}: {}", answer.unwrap_or_else(|| "refused".to_owned()))));
    }
    times.sort_unstable_by_key(|(took, ..)| std::cmp::Reverse(*took));
    for (took, seed, words) in times.iter().take(20) {
        println!("{:>8.3} s  seed {seed:<6} {words}", took.as_secs_f64());
    }
    println!("{systems} systems from seed {first}: {above} above {limit:?}, {refused} refused");
}

/// What `horolog analyze` does before it prints; `None` where the file is refused.
fn answer_of(text: &str) -> Option<String> {
    let (system, _) = horolog_model::file::read(text, "drawn.toml", &[]).ok()?;
    let system = resolve(&system).ok()?;
    let mut options = Options::default();
    options.sensitivity = true;
    let found = analyze(&system, &options).ok()?;
    Some(format!("{:?}", found.schedulable))
}

/// Numbers by a linear congruence.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    /// From 10^`least` to 10^`most`, evenly by the logarithm.
    fn power(&mut self, least: f64, most: f64) -> u64 {
        let part = self.below(1 << 20) as f64 / f64::from(1 << 20);
        10_f64.powf(least + (most - least) * part) as u64
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// What all tasks of a system share.
struct Shape {
    tasks: u64,
    edf: bool,
    assignment: &'static str,
    levels: u64,
    load: f64,
    periods: (f64, f64),
    kind: u64,
}

fn drawn(seed: u64) -> (String, String) {
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let edf = draw.below(3) == 0;
    let tasks = draw.one_of(&[1, 2, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000]);
    let shape = Shape {
        tasks,
        edf,
        assignment: if edf {
            ""
        } else {
            draw.one_of(&["", "", "deadline-monotonic", "rate-monotonic", "audsley"])
        },
        levels: draw.one_of(&[1, 2, 10, 1_000_000]),
        load: draw.one_of(&[0.3, 0.7, 0.95, 0.99, 0.999, 1.0, 1.001, 1.5]),
        periods: draw.one_of(&[(6.0, 9.0), (6.0, 9.0), (3.0, 12.0), (0.5, 12.5), (5.0, 5.3), (1.0, 2.0)]),
        kind: draw.below(7),
    };
    let mut text =
        format!("[system]\nname = \"drawn\"\npolicy = \"{}\"\n", if edf { "edf" } else { "fixed-priority" });
    if !shape.assignment.is_empty() {
        text += &format!("priorities = \"{}\"\n", shape.assignment);
    }
    text += "[platform]\n";
    let has_costs = draw.below(3) == 0;
    if has_costs {
        let (switch, timer, late) = (draw.power(0.0, 4.0), draw.power(0.0, 4.0), draw.power(0.0, 5.0));
        text += &format!(
            "context_switch = \"{switch} ns\"\ntimer_interrupt = \"{timer} ns\"\nrelease_latency = \"{late} ns\"\n"
        );
    }
    if draw.below(5) == 0 {
        text += &format!("tick = \"{} ns\"\n", draw.power(3.0, 11.0));
    }
    let server = (!edf && shape.assignment.is_empty() && draw.below(4) == 0)
        .then(|| draw.one_of(&["polling", "deferrable", "sporadic"]));
    for task in 0..tasks {
        one_task(&mut text, &mut draw, &shape, task, server.is_some());
    }
    if let Some(kind) = server {
        text += &format!(
            "[[task]]\nname = \"soft\"\narrivals = [\"1 ms\", \"1 ms\", \"5 ms\"]\nwcet = \"1 ms\"\n\
             [[server]]\nname = \"server\"\nkind = \"{kind}\"\nbudget = \"10 us\"\nperiod = \"10 ms\"\npriority = 5\ntasks = [\"soft\"]\n"
        );
    }
    let words = format!(
        "{tasks} tasks {} {} levels {} load {} periods 10^{:?} kind {}{}{}",
        if edf { "EDF" } else { "fixed" },
        shape.assignment,
        shape.levels,
        shape.load,
        shape.periods,
        shape.kind,
        if has_costs { " costs" } else { "" },
        server.unwrap_or_default()
    );
    (text, words)
}

/// One task of its kind: preemptive, non-preemptive, late (jitter, long deadline), a list, deferred (not under EDF), short deadline, mixed.
fn one_task(text: &mut String, draw: &mut Draw, shape: &Shape, task: u64, has_server: bool) {
    let kind = if shape.kind == 6 { draw.below(6) } else { shape.kind };
    let kind = if kind == 4 && shape.edf { 1 } else { kind };
    let period = draw.power(shape.periods.0, shape.periods.1).max(2);
    let wcet = ((period as f64 * shape.load / shape.tasks as f64) as u64).clamp(1, period);
    let mut line = |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").expect("a string");
    line(format_args!("[[task]]\nname = \"t{task}\""));
    if kind == 3 && shape.assignment.is_empty() && !has_server {
        let arrivals: Vec<String> =
            (0..draw.below(50) + 1).map(|n| format!("\"{} ns\"", n * period)).collect();
        line(format_args!("arrivals = [{}]", arrivals.join(", ")));
        line(format_args!("deadline = \"{} ns\"", period.saturating_mul(2)));
    } else {
        line(format_args!("{} = \"{period} ns\"", draw.one_of(&["period", "separation"])));
    }
    if !shape.edf && shape.assignment.is_empty() {
        line(format_args!("priority = {}", draw.below(shape.levels) + 1));
    }
    match kind {
        1 => line(format_args!("preemption = \"non-preemptive\"")),
        2 => {
            let times = draw.one_of(&[1, 3, 30]);
            let (jitter, deadline) = (period.saturating_mul(times), period.saturating_mul(times + 3));
            line(format_args!("jitter = \"{jitter} ns\"\ndeadline = \"{deadline} ns\""));
        }
        4 => {
            let half = wcet.div_ceil(2);
            line(format_args!("preemption = \"deferred\"\nsegments = [\"{half} ns\", \"{half} ns\"]"));
            return;
        }
        5 => line(format_args!("deadline = \"{} ns\"", (wcet + draw.below(period - wcet + 1)).max(1))),
        _ => {}
    }
    line(format_args!("wcet = \"{wcet} ns\""));
}
