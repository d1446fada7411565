//! Whose fault a late job is, against the naive reference: into a schedule that keeps the model one lie is put (a job executes longer,
//! arrives early, holds a section longer), one disturbance (a thread outside the model has the processor), or both. The reference, which
//! shares no code with the scheduling machine, says which jobs would have been in time without each and without both.
//!
//! `HOROLOG_CAUSES=20000 cargo test -p horolog-verify --test causes` draws so many of each kind.
#![allow(clippy::panic, clippy::expect_used)] // Helpers of an integration test are tests too.

use horolog_model::{
    Arrival, Draft, ExecutionTimes, OverrunPolicy, Platform, Policy, Preemption, Priority, ServerKind,
    System, Task, TaskId,
};
use horolog_sim::{DelayChoice, Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind as Drawn, short_system};
use horolog_testkit::reference::{self, Job, What};
use horolog_testkit::{Random, resolved};
use horolog_time::Span;
use horolog_trace::file::{Header, Thread};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::{Bound, Check, Class, Options, Tolerance, Verification, Verifier};
use std::collections::BTreeMap;

/// Jobs arrive before the first one, and all have ended by the second.
const ARRIVE: u64 = 70;
const END: u64 = 260;

/// Of each kind of system, how many are drawn.
fn draws() -> u64 {
    let asked = std::env::var("HOROLOG_CAUSES").ok();
    asked.map_or(400, |text| text.parse().unwrap_or_else(|error| panic!("HOROLOG_CAUSES: {error}")))
}

fn ns(value: u64) -> Span {
    Span::from_ns(value)
}

/// What is put into a schedule.
#[derive(Clone, Copy, Debug, Default)]
struct Injected {
    lie: Option<Lie>,
    /// When a thread outside the model asks for the processor, and for how long.
    foreign: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
enum Lie {
    /// This job of this task executes so much longer.
    Longer(usize, usize, u64),
    /// It arrives so much earlier.
    Earlier(usize, usize, u64),
    /// All sections of this task that hold its first resource are so much longer.
    Section(usize, u64),
}

impl Lie {
    fn task(self) -> usize {
        match self {
            Lie::Longer(task, ..) | Lie::Earlier(task, ..) | Lie::Section(task, _) => task,
        }
    }
}

/// A system whose jobs all arrive before [`ARRIVE`]: nothing costs anything.
fn drawn(kind: Drawn, index: u64) -> Draft {
    let mut draft = short_system(77, index, kind, ARRIVE).to_draft();
    let cpus = draft.platform.cpus.clone();
    draft.platform = Platform { cpus, ..Platform::default() };
    for task in &mut draft.tasks {
        (task.jitter, task.overrun) = (ns(0), OverrunPolicy::Count);
        // Each job is to have a time of its own.
        if let Preemption::Deferred(_) = task.preemption {
            (task.bcet, task.execution) = (task.wcet, ExecutionTimes::Wcet);
        }
    }
    draft
}

/// The jobs of each task, as the model allows them.
fn jobs_of(draft: &Draft, random: &mut Random) -> Vec<Vec<Job>> {
    let arrivals = |task: &Task| -> Vec<u64> {
        let offset = task.offset.map_or(0, Span::as_ns);
        match &task.arrival {
            Arrival::Periodic { period } | Arrival::Sporadic { separation: period } => {
                (0..).map(|place| offset + place * period.as_ns()).take_while(|at| *at < ARRIVE).collect()
            }
            Arrival::Aperiodic { arrivals } => arrivals.iter().map(|at| at.as_ns()).collect(),
            other => panic!("{other:?}"),
        }
    };
    let mut job = |task: &Task, arrival: u64| {
        let segments = match &task.preemption {
            Preemption::Deferred(graph) => graph.segments.iter().map(|one| one.wcet.as_ns()).collect(),
            _ => vec![random.between(task.bcet.as_ns(), task.wcet.as_ns())],
        };
        Job { arrival, ready: arrival, segments, path: Vec::new() }
    };
    draft.tasks.iter().map(|task| arrivals(task).into_iter().map(|at| job(task, at)).collect()).collect()
}

/// A lie that the drawn jobs can tell.
fn draw_lie(draft: &Draft, jobs: &[Vec<Job>], random: &mut Random) -> Option<Lie> {
    let task = random.below(draft.tasks.len() as u64) as usize;
    let count = jobs[task].len() as u64;
    match random.below(3) {
        0 if count > 0 => {
            let place = random.below(count) as usize;
            let short = draft.tasks[task].wcet.as_ns() - jobs[task][place].segments.iter().sum::<u64>();
            Some(Lie::Longer(task, place, short + random.between(1, 5)))
        }
        1 if count > 1
            && matches!(draft.tasks[task].arrival, Arrival::Sporadic { .. } | Arrival::Periodic { .. }) =>
        {
            let place = 1 + random.below(count - 1) as usize;
            let room = jobs[task][place].arrival - jobs[task][place - 1].arrival - 1;
            (room > 0).then(|| Lie::Earlier(task, place, random.between(1, room)))
        }
        2 => (!draft.tasks[task].sections.is_empty()).then(|| Lie::Section(task, random.between(1, 4))),
        _ => None,
    }
}

/// The system and the jobs with what is put in; `is_cut`: with lies as the model allows at most. `None`: no system has that.
fn with(
    draft: &Draft,
    jobs: &[Vec<Job>],
    injected: Injected,
    is_cut: bool,
) -> Option<(System, Vec<Vec<Job>>)> {
    let (mut draft, mut jobs) = (draft.clone(), jobs.to_vec());
    match injected.lie {
        Some(Lie::Longer(task, place, more)) => {
            let most = draft.tasks[task].wcet.as_ns() - jobs[task][place].segments.iter().sum::<u64>();
            if let Some(last) = jobs[task][place].segments.last_mut() {
                *last += if is_cut { more.min(most) } else { more };
            }
        }
        Some(Lie::Earlier(task, place, by)) if !is_cut => {
            let job = &mut jobs[task][place];
            (job.arrival, job.ready) = (job.arrival - by, job.ready - by);
        }
        Some(Lie::Section(task, more)) if !is_cut => {
            let resource = draft.tasks[task].sections[0].resource.clone();
            for section in draft.tasks[task].sections.iter_mut().filter(|one| one.resource == resource) {
                section.length = ns(section.length.as_ns() + more);
            }
        }
        _ => {}
    }
    if let Some((from, length)) = injected.foreign {
        let mut foreign = Task::new("foreign", Arrival::Aperiodic { arrivals: vec![ns(from)] }, ns(length));
        (foreign.priority, foreign.deadline) = (Some(Priority::new(1_000)), Some(ns(10_000)));
        draft.tasks.push(foreign);
        jobs.push(vec![Job { arrival: from, ready: from, segments: vec![length], path: Vec::new() }]);
    }
    System::new(draft).ok().map(|system| (system, jobs))
}

/// When each job ends by the reference; `None` where one does not.
fn ends(system: &System, jobs: &[Vec<Job>]) -> Option<BTreeMap<(usize, usize), u64>> {
    let schedule = reference::simulate(system, jobs, END);
    let ended = schedule.events.iter().filter(|event| event.what == What::Completion);
    let ends: BTreeMap<_, _> = ended.map(|event| ((event.task, event.job), event.at)).collect();
    (ends.len() == jobs.iter().map(Vec::len).sum::<usize>()).then_some(ends)
}

/// The simulator's records of these very jobs.
fn records(system: &System, jobs: &[Vec<Job>]) -> Option<Vec<Record>> {
    let mut draft = system.to_draft();
    for (task, jobs) in draft.tasks.iter_mut().zip(jobs) {
        task.arrival = Arrival::Aperiodic { arrivals: jobs.iter().map(|job| ns(job.arrival)).collect() };
        task.offset = None;
        let times: Vec<Span> = jobs.iter().map(|job| ns(job.segments.iter().sum())).collect();
        match &task.preemption {
            _ if times.is_empty() => {}
            Preemption::Deferred(graph) => {
                let of = |place: usize| jobs.iter().map(|job| ns(job.segments[place])).collect();
                task.execution = ExecutionTimes::Segments((0..graph.segments.len()).map(of).collect());
            }
            _ => {
                task.bcet = times.iter().copied().min().unwrap_or(task.bcet).min(task.wcet);
                task.execution = ExecutionTimes::Jobs(times);
            }
        }
    }
    let options = SimOptions {
        horizon: Horizon::Time(ns(END)),
        jitter: DelayChoice::None,
        latency: DelayChoice::None,
        ..SimOptions::default()
    };
    let mut records = Vec::new();
    simulate(&System::new(draft).ok()?, &options, &mut records).ok()?;
    Some(records)
}

/// The same as a run's: who has the processor is told by switches, `foreign` is no task.
fn measured(records: &[Record], foreign: Option<u32>) -> Vec<Record> {
    let kernel = |of: &Record, kind: Kind, value: u64, extra: u64| Record {
        kind,
        task: NO_TASK,
        job: NO_JOB,
        value,
        extra,
        ..*of
    };
    let mut all: Vec<Record> = Vec::new();
    // Who has each processor, and whether he has given it up.
    let mut had: BTreeMap<u16, (u64, bool)> = BTreeMap::new();
    let mut pending: BTreeMap<u32, u64> = BTreeMap::new();
    let switch = |of: &Record, before: u64, thread: u64| {
        let mut switch = kernel(of, Kind::KernelSwitch, before, thread);
        let task = u32::try_from(thread).ok().and_then(|thread| thread.checked_sub(1));
        switch.task = task.filter(|task| foreign != Some(*task)).unwrap_or(NO_TASK);
        switch
    };
    for group in records.chunk_by(|a, b| a.time == b.time) {
        for record in group {
            let thread = u64::from(record.task).saturating_add(1);
            let is_foreign = record.task != NO_TASK && foreign == Some(record.task);
            let has = had.entry(record.cpu).or_default();
            match record.kind {
                Kind::Release if !is_foreign => {
                    // A thread that has a job is awake.
                    let jobs = pending.entry(record.task).or_default();
                    *jobs += 1;
                    if *jobs == 1 {
                        all.push(kernel(record, Kind::KernelWakeup, thread, 0));
                    }
                }
                Kind::Start | Kind::Resume => {
                    if has.0 != thread {
                        all.push(switch(record, has.0, thread));
                    }
                    *has = (thread, false);
                }
                Kind::Preempt | Kind::Yield | Kind::Completion | Kind::Suspend if has.0 == thread => {
                    has.1 = true
                }
                _ => {}
            }
            if record.kind == Kind::Completion && !is_foreign {
                *pending.entry(record.task).or_default() -= 1;
            }
            if !is_foreign {
                all.push(*record);
            }
        }
        for (&cpu, has) in had.iter_mut().filter(|(_, (thread, is_gone))| *is_gone && *thread != 0) {
            all.push(switch(&Record { cpu, ..group[0] }, has.0, 0));
            *has = (0, false);
        }
    }
    all
}

fn verified(system: &System, bound: &Bound, records: &[Record], backend: &str) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    let mut options = Options::default();
    options.listed_per_group = 1_000;
    if backend != "sim" {
        let zero = Span::ZERO;
        options.tolerance = Tolerance {
            stamping: zero,
            execution: zero,
            dispatch: zero,
            interrupt: zero,
            budget: zero,
            evidence_delay: ns(3),
        };
    }
    let thread = |id: u64, comm: String, task| Thread { id, tid: id as u32, comm, task, process: None };
    let tasks = system.tasks().iter().enumerate();
    let mut threads = vec![thread(0, "swapper/0".to_owned(), None)];
    threads
        .extend(tasks.map(|(place, task)| thread(place as u64 + 1, task.name.clone(), Some(place as u32))));
    threads.push(thread(threads.len() as u64, "burst".to_owned(), None));
    let mut verifier =
        Verifier::new(system, std::slice::from_ref(bound), &header, &options).expect("it can be verified");
    verifier.set_threads(&threads);
    records.iter().for_each(|record| verifier.take(record));
    verifier.finish(END, None, Vec::new())
}

/// How often each answer was given where the reference gives another one, and how often the same.
#[derive(Debug, Default)]
struct Tally {
    right: BTreeMap<Class, u64>,
    untold: BTreeMap<Class, u64>,
    wrong: Vec<String>,
}

/// What the reference says of a late job, by its ends without the lie, without the disturbance, and without both.
fn expected(is_late: [bool; 3], injected: Injected) -> Class {
    let [cut, out, both] = is_late;
    match () {
        () if both => Class::BoundViolated,
        () if !cut && injected.lie.is_some() => Class::ModelViolated,
        () if !out && injected.foreign.is_some() => Class::MachineDisturbed,
        () => Class::ModelViolated,
    }
}

/// One draw; whether a job was late.
fn draw(kind: Drawn, index: u64, backend: &str, tally: &mut Tally) -> Option<()> {
    let draft = drawn(kind, index);
    let mut random = Random::of_item(3, index);
    let jobs = jobs_of(&draft, &mut random);
    let own = System::new(draft.clone()).ok()?;
    // The system's priorities, where it has them.
    let draft = resolved(&own).to_draft();
    // To the reference the thread outside the model is a task above all others: it takes the processor from those that can lose it, and
    // makes the levels of sporadic servers active.
    let is_preemptive = draft.tasks.iter().all(|task| task.preemption == Preemption::Preemptive);
    let has_levels = draft.servers.iter().any(|server| matches!(server.kind, ServerKind::Sporadic { .. }));
    let can_disturb =
        is_preemptive && !has_levels && draft.policy == Policy::FixedPriority && backend != "sim";
    let is_disturbed = can_disturb && random.below(3) > 0;
    let foreign = is_disturbed.then(|| (random.below(ARRIVE), random.between(1, 6)));
    let lie = draw_lie(&draft, &jobs, &mut random).filter(|_| foreign.is_none() || random.below(2) == 0);
    let all = Injected { lie, foreign };
    let none = Injected::default();
    let make = |injected, is_cut| with(&draft, &jobs, injected, is_cut);
    let (system, told) = make(all, false)?;
    let as_it_was = ends(&system, &told)?;
    let of =
        |injected: Injected, is_cut| make(injected, is_cut).and_then(|(system, jobs)| ends(&system, &jobs));
    let cut = of(all, true)?;
    let out = of(Injected { lie, ..none }, false)?;
    let both = of(Injected { lie, ..none }, true)?;
    // A job that one of them makes later, and a bound between.
    let is_own = |&&(task, _): &&(usize, usize)| task < draft.tasks.len();
    let later: Vec<_> = as_it_was.keys().filter(is_own).filter(|key| as_it_was[key] > both[key]).collect();
    let &&(task, victim) = later.get(random.below(later.len().max(1) as u64) as usize)?;
    let begin = |place: usize| (told[task][place].arrival, jobs[task][place].arrival);
    let (response, least) =
        (as_it_was[&(task, victim)] - begin(victim).0, both[&(task, victim)] - begin(victim).1);
    if response == 0 {
        return None;
    }
    let bound = random.between(least.saturating_sub(1).min(response - 1), response - 1);
    let proof =
        Bound { task: TaskId(task as u32), response: ns(bound), test: "drawn".to_owned(), exact: true };
    let trace = records(&system, &told)?;
    let trace =
        if backend == "sim" { trace } else { measured(&trace, foreign.map(|_| draft.tasks.len() as u32)) };
    let result = verified(&resolved(&own), &proof, &trace, backend);
    // Some servers of a run are not followed to the nanosecond.
    let has_diverged = result.findings.iter().any(|one| one.check == Check::Divergence);
    for (place, job) in told[task].iter().enumerate() {
        let key = (task, place);
        if as_it_was[&key] - job.arrival <= bound {
            continue;
        }
        let is_late = [
            cut[&key] - begin(place).1 > bound,
            out[&key] - begin(place).0 > bound,
            both[&key] - begin(place).1 > bound,
        ];
        let wanted = expected(is_late, all);
        let found =
            result.findings.iter().find(|one| one.check == Check::Response && one.job == Some(place as u64));
        let Some(found) = found else { panic!("{kind:?} {index}: job {place} is late and not found") };
        let name = &draft.tasks[all.lie.map_or(0, Lie::task)].name;
        let is_named = wanted != Class::ModelViolated || found.message.contains(name.as_str());
        if found.class == wanted && is_named {
            *tally.right.entry(wanted).or_default() += 1;
        } else if found.class == Class::CannotTell || (found.class == Class::ScheduleDiffers && has_diverged)
        {
            *tally.untold.entry(wanted).or_default() += 1;
        } else {
            tally.wrong.push(format!(
                "{} {index} {all:?}: {} job {place}, wanted {wanted:?}: {}\n{:#?}",
                kind.word(),
                draft.tasks[task].name,
                found.message,
                result.findings.iter().map(|one| &one.message).collect::<Vec<_>>()
            ));
        }
    }
    Some(())
}

#[track_caller]
fn agree(kinds: &[Drawn], backend: &str) {
    for &kind in kinds {
        let mut tally = Tally::default();
        (0..draws()).for_each(|index| _ = draw(kind, index, backend, &mut tally));
        println!(
            "{} {backend}: {:?}, untold {:?}, wrong {}",
            kind.word(),
            tally.right,
            tally.untold,
            tally.wrong.len()
        );
        assert!(tally.wrong.is_empty(), "{} of {:?}\n{}", tally.wrong.len(), tally.right, tally.wrong[0]);
        let right: u64 = tally.right.values().sum();
        assert!(right > draws() / 10, "{}: {right}", kind.word());
    }
}

#[test]
fn on_flat_processors_of_a_simulation() {
    agree(&[Drawn::FixedPriority, Drawn::Edf], "sim");
}

#[test]
fn on_flat_processors_of_a_run() {
    agree(&[Drawn::FixedPriority, Drawn::Edf], "linux");
}

#[test]
fn beside_servers_of_a_simulation() {
    agree(
        &[Drawn::Polling, Drawn::Deferrable, Drawn::Sporadic, Drawn::Mixed, Drawn::ConstantBandwidth],
        "sim",
    );
}

#[test]
fn beside_servers_of_a_run() {
    agree(&[Drawn::Polling, Drawn::Deferrable, Drawn::Sporadic, Drawn::Mixed], "linux");
}

#[test]
fn in_trees() {
    agree(&[Drawn::Tree, Drawn::Table], "sim");
}

#[test]
fn with_resources() {
    agree(&[Drawn::Locks, Drawn::TreeLocks], "sim");
    agree(&[Drawn::Locks], "linux");
}
