//! Makes a sample report for the viewer's tests: `cargo run -p horolog-report --example sample-report -- OUT EVENTS`.
//!
//! The data are synthetic (a toy machine, not the simulator or the executive), and the page says so.

mod machine;

use horolog_report::{
    Cause, Closing, Fact, Finding, FindingClass, FindingGroup, FreeProof, Missed, Packed, Proof, Provenance,
    ReportData, Run, RunKind, RunTask, RunVerdict, TaskRow, TaskVerdict, TimelineBuilder, TimelineOptions,
    TimelineThread, Verdict,
};
use horolog_time::{Instant, Span};
use horolog_trace::TaskOutcome;
use machine::{FOREIGN_THREAD, Machine, Noise, SampleTask};
use std::error::Error;
use std::path::Path;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// The sample: two control loops, a camera with preemption points, a logger.
const TASKS: [SampleTask; 4] = [
    SampleTask { name: "attitude control", period: 5 * MS, deadline: 4 * MS, segments: &[700 * US] },
    SampleTask { name: "motor loop", period: 10 * MS, deadline: 8 * MS, segments: &[1800 * US] },
    SampleTask {
        name: "camera",
        period: 40 * MS,
        deadline: 40 * MS,
        segments: &[2_000 * US, 2_500 * US, 1_900 * US, 1_400 * US],
    },
    SampleTask { name: "logger", period: 100 * MS, deadline: 80 * MS, segments: &[9 * MS] },
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(out), Some(events)) = (arguments.next(), arguments.next()) else {
        return Err("usage: sample-report OUT EVENTS".into());
    };
    let events: u64 = events.parse()?;
    let data = sample(events);
    horolog_report::write(&data, Path::new(&out))?;
    println!("{out}: {events} events");
    Ok(())
}

fn sample(events: u64) -> ReportData {
    let mut simulated = Machine::new(&TASKS, None);
    let (simulation, until) = run(&mut simulated, events / 3, u64::MAX, RunKind::Simulated);
    let noise = Noise { burst: 2_600 * US, every: (until / 7).max(20 * MS) };
    let mut measured = Machine::new(&TASKS, Some(noise));
    let (measurement, _) = run(&mut measured, events - events / 3, u64::MAX, RunKind::Measured);
    let findings = findings(&measured);
    let closing = closing(&measured);
    let groups = groups(&measured);
    let json = serde_json::json!({ "schema": "horolog.loop/1", "closing": closing }).to_string();
    let listed = findings.len() as u64;
    let all: u64 = groups.iter().map(|group| group.count).sum();
    let tasks = TASKS.iter().enumerate().map(|(index, task)| row(index, task)).collect();
    ReportData {
        system: "quadcopter with a camera".into(),
        policy: "fixed priority".into(),
        verdict: Verdict {
            proof: Proof::Proved,
            run: Some(RunVerdict::Missed),
            qualifiers: vec!["These data are synthetic: they show the page, not a machine.".into()],
            ..Verdict::default()
        },
        tasks,
        closing: Some(closing),
        runs: vec![simulation, measurement],
        findings,
        groups,
        findings_omitted: all - listed,
        json: Some(Packed::text(&json)),
        facts: facts(),
        provenance: provenance(events),
        system_file: system_file(),
        notes: vec![
            "No task gives an offset: the analysis assumes any phase, the simulation and the run start all tasks at once."
                .into(),
        ],
        ..ReportData::default()
    }
}

fn run(machine: &mut Machine<'_>, events: u64, until: u64, kind: RunKind) -> (Run, u64) {
    let thread = |id, name: &str, idle| TimelineThread { id, name: name.into(), idle };
    let options = TimelineOptions {
        start: Instant::ZERO,
        tasks: TASKS.iter().map(|task| task.name.to_owned()).collect(),
        threads: vec![thread(0, "swapper/1", true), thread(FOREIGN_THREAD, "kworker/1:2", false)],
        ..TimelineOptions::default()
    };
    let mut builder = TimelineBuilder::new(options);
    let mut count = 0_u64;
    let reached = machine.run(events, until, &mut |record| {
        count += 1;
        builder.push(&record);
    });
    let statistics = builder.statistics();
    let tasks = TASKS.iter().enumerate().map(|(index, task)| {
        let of = &statistics[index];
        let mut outcome = TaskOutcome { name: task.name.into(), jobs: of.count(), ..TaskOutcome::default() };
        outcome.completed = of.count();
        outcome.missed = machine.misses.iter().filter(|m| m.0 == index).count() as u64;
        of.fill(&mut outcome);
        RunTask::new(&outcome, Some(of))
    });
    let run = Run {
        kind,
        backend: if kind == RunKind::Simulated { "sim".into() } else { "linux".into() },
        seed: 1,
        horizon_ns: Span::from_ns(reached),
        start_ns: Instant::ZERO,
        events: count,
        events_lost: 0,
        tasks: tasks.collect(),
        servers: Vec::new(),
        devices: Vec::new(),
        requests: Vec::new(),
        timeline: Some(builder.finish()),
        notes: Vec::new(),
    };
    (run, reached)
}

/// The closing line of a run that the machine disturbed.
fn closing(machine: &Machine<'_>) -> Closing {
    let of = |index: usize| machine.misses.iter().filter(|miss| miss.0 == index).count() as u64;
    let missed: Vec<Missed> = TASKS
        .iter()
        .enumerate()
        .map(|(index, task)| Missed { name: task.name.into(), count: of(index) })
        .filter(|one| one.count > 0)
        .collect();
    let words: Vec<String> = missed.iter().map(|one| format!("{} {}", one.name, one.count)).collect();
    let longest = machine.bursts.iter().map(|burst| burst.1).max().unwrap_or(0);
    let causes = groups(machine).into_iter().map(|group| Cause {
        class: "machine disturbed".into(),
        check: group.kind,
        subject: group.subject,
        count: group.count,
        worst_excess_ns: group.worst_excess_ns,
    });
    Closing {
        word: "no".into(),
        exit: 1,
        text: format!(
            "{} deadlines missed ({}), by the machine: kworker/1:2 took CPU 1 for {}",
            machine.misses.len(),
            words.join(", "),
            Span::from_ns(longest)
        ),
        help: Some(
            "isolate CPU 1 (`horolog doctor`); on a shared machine gate with `--gate proof,model`".into(),
        ),
        missed,
        causes: causes.collect(),
    }
}

/// The findings by what they are due to: first the thread, then who missed.
fn groups(machine: &Machine<'_>) -> Vec<FindingGroup> {
    let group = |kind: &str, subject: &str, count: u64, worst: u64| FindingGroup {
        class: FindingClass::MachineDisturbed,
        kind: kind.into(),
        subject: subject.into(),
        run: 1,
        count,
        worst_excess_ns: Span::from_ns(worst),
    };
    let longest = machine.bursts.iter().map(|burst| burst.1).max().unwrap_or(0);
    let mut groups = vec![group("foreign thread", "kworker/1:2", machine.bursts.len() as u64, longest)];
    groups.extend(TASKS.iter().enumerate().map(|(index, task)| {
        let count = machine.misses.iter().filter(|miss| miss.0 == index).count() as u64;
        group("deadline missed", task.name, count, longest)
    }));
    groups
}

fn findings(machine: &Machine<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = machine
        .misses
        .iter()
        .take(20)
        .map(|&(task, job, time)| Finding {
            run: Some(1),
            task: Some(task as u32),
            job: Some(job),
            cpu: Some(1),
            time_ns: Some(Instant::from_ns(time)),
            group: Some(1 + task),
            ..Finding::new(
                FindingClass::MachineDisturbed,
                "deadline missed",
                format!(
                    "job {job} of `{}` missed its deadline while a foreign thread had the processor",
                    TASKS[task].name
                ),
            )
        })
        .collect();
    findings.extend(machine.bursts.iter().map(|&(time, length)| Finding {
        run: Some(1),
        cpu: Some(1),
        time_ns: Some(Instant::from_ns(time)),
        length_ns: Some(Span::from_ns(length)),
        group: Some(0),
        ..Finding::new(
            FindingClass::MachineDisturbed,
            "foreign thread",
            format!("kworker/1:2 took CPU 1 for {} us", length / US),
        )
    }));
    findings
}

/// Response-time bound of the sample's tasks: fixed point with the longest segment below as blocking.
fn bound(index: usize) -> u64 {
    let below = TASKS[index + 1..].iter().filter(|t| t.deferred());
    let blocking = below.flat_map(|t| t.segments.iter().copied()).max().unwrap_or(0);
    let base = blocking + TASKS[index].wcet() + 60 * US;
    let mut response = base;
    loop {
        let above: u64 = TASKS[..index].iter().map(|t| (response / t.period + 1) * t.wcet()).sum();
        if base + above == response || response > 200 * MS {
            return response;
        }
        response = base + above;
    }
}

fn row(index: usize, task: &SampleTask) -> TaskRow {
    let bound = bound(index);
    let above: Vec<&str> = TASKS[..index].iter().map(|t| t.name).collect();
    TaskRow {
        name: task.name.into(),
        cpu: 1,
        priority: Some(90 - 10 * index as i64),
        preemption: if task.deferred() {
            format!("deferred, {} segments", task.segments.len())
        } else {
            "preemptive".into()
        },
        period_ns: Some(Span::from_ns(task.period)),
        wcet_ns: Span::from_ns(task.wcet()),
        deadline_ns: Some(Span::from_ns(task.deadline)),
        verdict: if bound <= task.deadline { TaskVerdict::Meets } else { TaskVerdict::Misses },
        bound_ns: Some(Span::from_ns(bound)),
        without_costs: Some(FreeProof {
            verdict: TaskVerdict::Meets,
            bound_ns: Some(Span::from_ns(bound - 60 * US)),
        }),
        exact: !task.deferred(),
        test: if task.deferred() { "fp-deferred".into() } else { "fp-preemptive".into() },
        source: if task.deferred() { "bril09".into() } else { "joseph86".into() },
        slack_ns: Some(Span::from_ns(task.deadline.saturating_sub(bound) / 3)),
        explain: format!(
            "own work      {} us\nblocking      longest segment of a less important task\ninterference  {}\nrelease       60 us latency",
            task.wcet() / US,
            if above.is_empty() { "none".to_owned() } else { above.join(", ") },
        ),
    }
}

fn facts() -> Vec<Fact> {
    vec![
        Fact::new("Utilisation", "0.605", "CPU 1, interference not included"),
        Fact::new(
            "Every wcet of cpu 1 may grow to",
            "127 %",
            "all of them at once, and every deadline is still kept",
        ),
        Fact::new("Liu-Layland bound", "0.757", "for 4 tasks"),
        Fact::new("Least slack", "0.9 ms", "attitude control"),
    ]
}

fn provenance(events: u64) -> Provenance {
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    Provenance {
        command: format!("cargo run -p horolog-report --example sample-report -- report.html {events}"),
        created: "2026-01-01 12:00:00 UTC".into(),
        versions: vec![pair("horolog", env!("CARGO_PKG_VERSION"))],
        machine: vec![
            pair("Kernel", "none (synthetic)"),
            pair("Processor", "toy machine, one CPU"),
            pair("Policy", "fixed priority, preemption points"),
        ],
    }
}

fn system_file() -> String {
    let mut text = "[system]\nname   = \"quadcopter with a camera\"\npolicy = \"fixed-priority\"\n\n[platform]\ncpus = [1]\nrelease_latency = \"60 us\"\n".to_owned();
    for (index, task) in TASKS.iter().enumerate() {
        let work = match task.segments {
            [one] => format!("wcet     = \"{} us\"", one / US),
            many => {
                let list: Vec<String> = many.iter().map(|s| format!("\"{} us\"", s / US)).collect();
                format!("preemption = \"deferred\"\nsegments = [{}]", list.join(", "))
            }
        };
        text.push_str(&format!(
            "\n[[task]]\nname     = \"{}\"\nperiod   = \"{} ms\"\ndeadline = \"{} ms\"\npriority = {}\n{work}\n",
            task.name,
            task.period / MS,
            task.deadline / MS,
            90 - 10 * index,
        ));
    }
    text
}
