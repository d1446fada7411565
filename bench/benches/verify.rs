//! What it costs to verify a trace with late jobs, by its length and by how the jobs became late: seconds of CPU time a million records.
//!
//! | case | |
//! |---|---|
//! | few | one job of a thousand executes too long |
//! | many | a quarter of the jobs are late, in short busy stretches |
//! | one backlog | more work than time: the processor is never without a job |
//!
//! Each as a simulation and as a run: with the kernel's switches, timer interrupts, stolen time, and a thread outside the model.
//! `cargo bench --bench verify -- NAME` runs some of them alone.

#[path = "../../engines/verify/tests/shared/as_run.rs"]
mod as_run;

use as_run::as_run;
use horolog_model::{Arrival, Draft, ExecutionTimes, Policy, Preemption, Priority, System, Task, TaskId};
use horolog_sim::{DelayChoice, Horizon, SimOptions, simulate};
use horolog_sys::clock::thread_cpu_ns;
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Thread};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::{Bound, Options, Verification, Verifier};
use std::collections::{HashMap, VecDeque};
use std::hint::black_box;

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;

/// How jobs come to be late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Late {
    Few,
    Many,
    Backlog,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    late: Late,
    policy: Policy,
    is_run: bool,
    /// The period of the most important task.
    period: u64,
    is_preemptive: bool,
    has_server: bool,
}

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|one| !one.starts_with("--")).collect();
    let plain = Case {
        name: "",
        late: Late::Few,
        policy: Policy::FixedPriority,
        is_run: false,
        period: MS,
        is_preemptive: true,
        has_server: false,
    };
    let run = Case { is_run: true, ..plain };
    let (many, backlog) = (Late::Many, Late::Backlog);
    let cases = [
        Case { name: "sim-few", ..plain },
        Case { name: "sim-many", late: many, ..plain },
        Case { name: "sim-backlog", late: backlog, ..plain },
        Case { name: "sim-backlog-edf", late: backlog, policy: Policy::Edf, ..plain },
        Case { name: "sim-backlog-server", late: backlog, has_server: true, ..plain },
        Case { name: "run-few", ..run },
        Case { name: "run-many", late: many, ..run },
        Case { name: "run-many-fast", late: many, period: 200 * US, ..run },
        Case { name: "run-backlog", late: backlog, ..run },
        Case { name: "run-backlog-fast", late: backlog, period: 200 * US, ..run },
        Case { name: "run-backlog-edf", late: backlog, policy: Policy::Edf, ..run },
        Case { name: "run-backlog-non-preemptive", late: backlog, is_preemptive: false, ..run },
        Case { name: "run-backlog-server", late: backlog, has_server: true, ..run },
    ];
    for case in cases {
        if !only.is_empty() && !only.iter().any(|name| name == case.name) {
            continue;
        }
        for records in [265_000, 1_000_000] {
            measure(case, records);
        }
    }
}

fn measure(case: Case, wanted: usize) {
    let records = records_of(case, wanted);
    let mut rounds: Vec<(u64, Verification)> = (0..3)
        .map(|_| {
            // Of this thread's own time, so that other load counts for nothing.
            let begin = thread_cpu_ns();
            let result = verified(case, black_box(&records));
            (thread_cpu_ns() - begin, result)
        })
        .collect();
    rounds.sort_unstable_by_key(|round| round.0);
    let (least, median, result) = (rounds[0].0, rounds[1].0, &rounds[0].1);
    let late: u64 = result.tasks.iter().map(|task| task.exceeded).sum();
    let a_million = |ns: u64| ns as f64 / 1e3 / records.len() as f64;
    println!(
        "verify {:<27} {:>8} records, {late:>7} late {:>7.3} s a million by the minimum {:>7.3} s by the median; \
         model {}, machine {}, bound {}, differs {}, cannot tell {}",
        case.name,
        records.len(),
        a_million(least),
        a_million(median),
        result.model_violated,
        result.machine_disturbed,
        result.bound_violated,
        result.schedule_differs,
        result.cannot_tell,
    );
    let least_late = match case.late {
        Late::Few => 20,
        Late::Many => wanted as u64 / 30,
        Late::Backlog => wanted as u64 / 300,
    };
    assert!(late >= least_late, "{late}");
}

/// The system as its file has it: it says less than its jobs execute.
fn system(case: Case) -> System {
    let mut draft = Draft { name: "late".to_owned(), policy: case.policy, ..Draft::default() };
    for (place, times) in [1, 2, 5].into_iter().enumerate() {
        let period = Span::from_ns(case.period * times);
        let wcet = Span::from_ns(case.period * times / 5);
        let mut task = Task::new(&format!("t{place}"), Arrival::Periodic { period }, wcet);
        (task.bcet, task.deadline) = (Span::from_ns(1), Some(Span::from_ns(1_000_000 * MS)));
        if case.policy == Policy::FixedPriority {
            task.priority = Some(Priority::new(9 - place as i64));
        } else {
            task.deadline = Some(period);
        }
        if !case.is_preemptive {
            task.preemption = Preemption::NonPreemptive;
        }
        draft.tasks.push(task);
    }
    if case.has_server {
        let text = "[system]\nname = \"s\"\n[platform]\ncpus = 1\n[[task]]\nname = \"hard\"\nperiod = \"1 s\"\nwcet = \"1 ms\"\npriority = \
                    1\n[[task]]\nname = \"soft\"\nseparation = \"10 ms\"\nwcet = \"100 us\"\n[[server]]\nname = \"server\"\ntasks = \
                    [\"soft\"]\nkind = \"deferrable\"\nbudget = \"200 us\"\nperiod = \"10 ms\"\npriority = 20\n";
        let (served, _) = horolog_model::file::read(text, "server.toml", &[]).expect("a valid file");
        let served = served.to_draft();
        draft.tasks.push(served.tasks[1].clone());
        draft.servers = served.servers;
    }
    System::new(draft).expect("it is valid")
}

/// What its jobs do.
fn records_of(case: Case, wanted: usize) -> Vec<Record> {
    let mut draft = system(case).to_draft();
    for (place, task) in draft.tasks.iter_mut().take(3).enumerate() {
        let wcet = task.wcet.as_ns();
        let times = match case.late {
            Late::Few if place == 0 => vec![wcet - 10; 999].into_iter().chain([wcet * 2]).collect(),
            Late::Few => vec![wcet - 10],
            Late::Many if place == 0 => vec![wcet - 10, wcet + wcet / 2],
            Late::Many => vec![wcet - 10],
            // 1.1 of the processor.
            Late::Backlog if place == 0 => vec![wcet * 2, wcet * 3],
            Late::Backlog => vec![wcet, wcet * 2],
        };
        task.execution = ExecutionTimes::Jobs(times.into_iter().map(Span::from_ns).collect());
    }
    let foreign = case.is_run.then_some(draft.tasks.len() as u32);
    if case.is_run && case.is_preemptive && case.policy == Policy::FixedPriority {
        let period = Span::from_ns(case.period * 7 + 3 * US);
        let mut foreign = Task::new("burst", Arrival::Periodic { period }, Span::from_ns(case.period / 50));
        (foreign.priority, foreign.deadline) = (Some(Priority::new(99)), Some(period));
        draft.tasks.push(foreign);
    }
    let system = System::new(draft).expect("it is valid");
    // Some three records of a simulation make five of a run.
    let mut horizon = case.period * wanted as u64 / 5;
    loop {
        let options = SimOptions {
            horizon: Horizon::Time(Span::from_ns(horizon)),
            jitter: DelayChoice::None,
            latency: DelayChoice::None,
            max_backlog: u32::MAX,
            max_events: u64::MAX,
            ..SimOptions::default()
        };
        let mut records = Vec::new();
        simulate(&system, &options, &mut records).expect("it simulates");
        if case.is_run {
            records = disturbed(&noted_by_threads(&as_run(&records, foreign)));
        }
        if records.len() >= wanted {
            records.truncate(wanted);
            return records;
        }
        horizon = horizon * (wanted as u64 * 21 / 20) / records.len().max(1) as u64;
    }
}

/// A thread notes the release of a job once it is done with the one before.
fn noted_by_threads(records: &[Record]) -> Vec<Record> {
    let mut waiting: HashMap<u32, VecDeque<Record>> = HashMap::new();
    let mut all = Vec::with_capacity(records.len());
    for record in records {
        let releases = waiting.entry(record.task).or_default();
        match record.kind {
            Kind::Release => {
                releases.push_back(*record);
                if releases.len() == 1 {
                    all.push(*record);
                }
            }
            Kind::Completion => {
                all.push(*record);
                releases.pop_front();
                all.extend(releases.front().map(|next| Record { time: record.time, ..*next }));
            }
            _ => all.push(*record),
        }
    }
    all
}

/// With a timer interrupt of 1 us each 4 ms, and 20 us of stolen time each 100 ms.
fn disturbed(records: &[Record]) -> Vec<Record> {
    let kernel = |time: u64, kind: Kind, value: u64, extra: u64| Record {
        time: Instant::from_ns(time),
        kind,
        cpu: 0,
        task: NO_TASK,
        job: NO_JOB,
        value,
        extra,
    };
    let end = records.last().map_or(0, |record| record.time.as_ns());
    let ticks = (1..end / (4 * MS)).flat_map(|tick| {
        let at = tick * 4 * MS + 777;
        let steal = (tick % 25 == 0).then(|| kernel(at + 100, Kind::Steal, 20 * US, MS));
        let interrupt =
            [kernel(at, Kind::InterruptEntry, 236, 1), kernel(at + US, Kind::InterruptExit, 236, 1)];
        [interrupt[0]].into_iter().chain(steal).chain([interrupt[1]])
    });
    let mut all: Vec<Record> = records.iter().copied().chain(ticks).collect();
    all.sort_by_key(|record| record.time);
    all
}

fn verified(case: Case, records: &[Record]) -> Verification {
    let system = system(case);
    let names: Vec<String> = system.tasks().iter().map(|task| task.name.clone()).collect();
    let thread =
        |id: u64, comm: &str, task| Thread { id, tid: id as u32, comm: comm.to_owned(), task, process: None };
    let mut threads = vec![thread(0, "swapper/0", None)];
    threads.extend(
        names.iter().enumerate().map(|(place, name)| thread(place as u64 + 1, name, Some(place as u32))),
    );
    threads.push(thread(threads.len() as u64, "burst", None));
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    if case.is_run {
        header.backend = "linux".to_owned();
        header.machine.insert("tick_hz".to_owned(), "250".to_owned());
    }
    // Of a task that is in time by its file, a little more than its wcet.
    let bounds: Vec<Bound> = (0..3)
        .map(|place| Bound {
            task: TaskId(place),
            response: Span::from_ns(case.period * [22, 85, 300][place as usize] / 100),
            test: "given".to_owned(),
            exact: true,
        })
        .collect();
    let mut verifier =
        Verifier::new(&system, &bounds, &header, &Options::default()).expect("it can be verified");
    verifier.set_threads(&threads);
    records.iter().for_each(|record| verifier.take(record));
    let end = records.last().map_or(0, |record| record.time.as_ns());
    verifier.finish(end, None, Vec::new())
}
