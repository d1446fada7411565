//! Whose fault a late job is, against the naive reference: into a schedule that keeps the model one lie is put (a job executes longer,
//! arrives early, holds a section longer), one disturbance (a thread outside the model has the processor), or both. The reference, which
//! shares no code with the scheduling machine, says which jobs would have been in time without each and without both.
//!
//! `HOROLOG_CAUSES=20000 cargo test -p horolog-verify --test causes` draws so many of each kind.
#![allow(clippy::panic, clippy::expect_used)] // Helpers of an integration test are tests too.

mod shared;

use horolog_model::{
    Arrival, CpuId, Draft, ExecutionTimes, Interrupt, OverrunPolicy, Platform, Policy, Preemption, Priority,
    ServerKind, System, Task, Throttling,
};
use horolog_sim::{DelayChoice, Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind as Drawn, short_system};
use horolog_testkit::reference::{self, Job, What};
use horolog_testkit::{Random, resolved};
use horolog_time::Span;
use horolog_trace::Record;
use horolog_verify::Class;
use shared::as_run::as_run;
use shared::{Tally, bound, draws, expected, ns, verified};
use std::collections::BTreeMap;

/// Jobs arrive before the first one, and all have ended by the second.
const ARRIVE: u64 = 70;
const END: u64 = 260;

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

/// What else a system has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beside {
    Nothing,
    /// Something is done about segmented jobs that take too long.
    Policies,
    /// The next job of a segmented task is left out then, as in a run, where no job ends by another hand.
    Skips,
    /// An interrupt that takes so much every ten.
    Interrupt(u64),
}

/// A system whose jobs all arrive before [`ARRIVE`]: nothing costs anything.
fn drawn(kind: Drawn, index: u64, beside: Beside) -> Draft {
    let mut draft = short_system(77, index, kind, ARRIVE).to_draft();
    let cpus = draft.platform.cpus.clone();
    draft.platform = Platform { cpus, ..Platform::default() };
    for task in &mut draft.tasks {
        (task.jitter, task.overrun) = (ns(0), OverrunPolicy::Count);
        // Each job is to have a time of its own.
        if let Preemption::Deferred(_) = task.preemption {
            (task.bcet, task.execution) = (task.wcet, ExecutionTimes::Wcet);
            let policies =
                [OverrunPolicy::Skip, OverrunPolicy::Demote, OverrunPolicy::Stop, OverrunPolicy::Drop];
            match beside {
                Beside::Policies => task.overrun = policies[(index % 4) as usize].clone(),
                Beside::Skips => task.overrun = OverrunPolicy::Skip,
                Beside::Nothing | Beside::Interrupt(_) => {}
            }
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

/// When each job ends by the reference, `u64::MAX` of those that a policy leaves out; `None` where another one does not.
fn ends(system: &System, jobs: &[Vec<Job>]) -> Option<BTreeMap<(usize, usize), u64>> {
    if system.tasks().iter().any(|task| task.overrun != OverrunPolicy::Count) {
        return ends_by_policies(&of_jobs(system, jobs)?, jobs);
    }
    let schedule = reference::simulate(system, jobs, END);
    let ended = schedule.events.iter().filter(|event| event.what == What::Completion);
    let ends: BTreeMap<_, _> = ended.map(|event| ((event.task, event.job), event.at)).collect();
    (ends.len() == jobs.iter().map(Vec::len).sum::<usize>()).then_some(ends)
}

/// The same where a policy may leave jobs out, which have no number then.
fn ends_by_policies(system: &System, jobs: &[Vec<Job>]) -> Option<BTreeMap<(usize, usize), u64>> {
    let (schedule, taken) = reference::simulate_modes(system, END);
    let ended = schedule.events.iter().filter(|event| event.what == What::Completion);
    let at: BTreeMap<_, _> =
        ended.map(|event| ((event.task, taken[event.task][event.job].arrival), event.at)).collect();
    let mut ends = BTreeMap::new();
    for (task, of_task) in jobs.iter().enumerate() {
        for (place, job) in of_task.iter().enumerate() {
            let end = at.get(&(task, job.arrival)).copied();
            let acts = system.tasks()[task].overrun != OverrunPolicy::Count;
            ends.insert((task, place), end.or(acts.then_some(u64::MAX))?);
        }
    }
    Some(ends)
}

/// A system that has these very jobs.
fn of_jobs(system: &System, jobs: &[Vec<Job>]) -> Option<System> {
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
    System::new(draft).ok()
}

/// The simulator's records of these very jobs.
fn records(system: &System, jobs: &[Vec<Job>]) -> Option<Vec<Record>> {
    let options = SimOptions {
        horizon: Horizon::Time(ns(END)),
        jitter: DelayChoice::None,
        latency: DelayChoice::None,
        ..SimOptions::default()
    };
    let mut records = Vec::new();
    simulate(&of_jobs(system, jobs)?, &options, &mut records).ok()?;
    Some(records)
}

/// One draw; whether a job was late.
fn draw(kind: Drawn, index: u64, (backend, beside): (&str, Beside), tally: &mut Tally) -> Option<()> {
    let draft = drawn(kind, index, beside);
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
    // A job that is left out has no number.
    let has_numbers = |task: usize| draft.tasks[task].overrun != OverrunPolicy::Skip;
    let is_own = |&&(task, _): &&(usize, usize)| task < draft.tasks.len() && has_numbers(task);
    let has_ended = |key: &&(usize, usize)| as_it_was[key] < u64::MAX;
    let ended = as_it_was.keys().filter(is_own).filter(has_ended);
    let later: Vec<_> = ended.filter(|key| as_it_was[key] > both[key]).collect();
    let &&(task, victim) = later.get(random.below(later.len().max(1) as u64) as usize)?;
    let begin = |place: usize| (told[task][place].arrival, jobs[task][place].arrival);
    let (response, least) =
        (as_it_was[&(task, victim)] - begin(victim).0, both[&(task, victim)] - begin(victim).1);
    if response == 0 {
        return None;
    }
    let most = random.between(least.saturating_sub(1).min(response - 1), response - 1);
    let trace = records(&system, &told)?;
    let trace =
        if backend == "sim" { trace } else { as_run(&trace, foreign.map(|_| draft.tasks.len() as u32)) };
    if shared::is_one() {
        println!(
            "{draft:#?}\n{told:?}\n{all:?}\nbound {most} of {task}: {as_it_was:?} {cut:?} {out:?} {both:?}"
        );
    }
    let judged = resolved(&own);
    let judged = match beside {
        Beside::Interrupt(cost) => {
            let mut draft = judged.to_draft();
            let (name, cpu, throttling) = ("eth0".to_owned(), CpuId(0), Throttling::None);
            draft.interrupts.push(Interrupt { name, cpu, separation: ns(10), cost: ns(cost), throttling });
            System::new(draft).ok()?
        }
        _ => judged,
    };
    let result = verified(&judged, &bound(task, most), &trace, backend, END);
    for (place, job) in told[task].iter().enumerate() {
        let key = (task, place);
        if as_it_was[&key] == u64::MAX || as_it_was[&key] - job.arrival <= most {
            continue;
        }
        // Nothing is promised of a job that was put below others.
        let is_put_below = draft.tasks[task].overrun == OverrunPolicy::Demote
            && matches!(lie, Some(Lie::Longer(liar, job, _)) if (liar, job) == key);
        if is_put_below {
            continue;
        }
        let is_late = [
            cut[&key] - begin(place).1 > most,
            out[&key] - begin(place).0 > most,
            both[&key] - begin(place).1 > most,
        ];
        let wanted = expected(is_late, lie.is_some(), foreign.is_some());
        let name = &draft.tasks[lie.map_or(0, Lie::task)].name;
        let what = match lie {
            Some(Lie::Longer(..)) => "longer",
            Some(Lie::Earlier(..)) => "earlier",
            Some(Lie::Section(..)) => "section",
            None => "none",
        };
        let draw = || format!("{} {index} {all:?}: {}", kind.word(), draft.tasks[task].name);
        tally.take((what, wanted, name), place, &result, draw);
    }
    Some(())
}

#[track_caller]
fn agree(kinds: &[Drawn], backend: &str) {
    for &kind in kinds {
        let (mut tally, all) = (Tally::default(), draws(400));
        all.clone().for_each(|index| _ = draw(kind, index, (backend, Beside::Nothing), &mut tally));
        let (right, _) = tally.none_is_wrong(&format!("{} {backend}", kind.word()));
        assert!(right > all.end / 10 || shared::is_one(), "{}: {right}", kind.word());
    }
}

#[test]
fn on_flat_processors_of_a_simulation() {
    agree(&[Drawn::FixedPriority, Drawn::Edf], "sim");
}

/// What takes the processor may be the file's own interrupt, which is in the bound: then no machine is blamed for it, and the bound neither.
#[test]
fn what_the_file_declares_of_interrupts_is_no_disturbance() {
    let classes = |cost: u64| {
        let (mut tally, all) = (Tally::default(), draws(400));
        all.for_each(|index| {
            _ = draw(Drawn::FixedPriority, index, ("linux", Beside::Interrupt(cost)), &mut tally)
        });
        tally.none_is_wrong(&format!("interrupts of {cost}"));
        let blamed = |((_, class), count): (&(&str, Class), &u64)| {
            (*class == Class::MachineDisturbed).then_some(*count)
        };
        (tally.right.values().sum::<u64>(), tally.right.iter().filter_map(blamed).sum::<u64>())
    };
    let ((right, by_machine), (_, none)) = (classes(1), classes(8));
    assert!(shared::is_one() || right > 40 && by_machine > 5 && none == 0, "{right} {by_machine} {none}");
}

/// Segmented jobs with budgets, upon which something is done.
#[test]
fn where_policies_act_upon_segments() {
    for (backend, beside) in [("sim", Beside::Policies), ("linux", Beside::Skips)] {
        let (mut tally, all) = (Tally::default(), draws(800));
        all.clone().for_each(|index| _ = draw(Drawn::FixedPriority, index, (backend, beside), &mut tally));
        let (right, _) = tally.none_is_wrong(&format!("policies {backend}"));
        assert!(right > all.end / 20 || shared::is_one(), "{backend}: {right}");
    }
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
    agree(&[Drawn::Locks, Drawn::TreeLocks, Drawn::LocalLocks], "sim");
    agree(&[Drawn::Locks, Drawn::LocalLocks], "linux");
}

/// What a job executed until it was stopped or dropped kept others waiting, and no broken assumption did more.
#[test]
fn a_job_that_a_policy_ends_is_part_of_the_schedule() {
    for policy in ["stop", "drop"] {
        let text = format!(
            "[system]\nname = \"stopped\"\n\
        [[task]]\nname = \"greedy\"\narrivals = [\"2 ns\"]\nwcet = \"4 ns\"\npriority = 9\noverrun = \"{policy}\"\nexecution = {{ jobs = [\"6 ns\"] }}\n\
        [[task]]\nname = \"victim\"\narrivals = [\"0 ns\"]\nwcet = \"5 ns\"\npriority = 1\ndeadline = \"90 ns\"\n"
        );
        let (system, _) =
            horolog_model::file::read(&text, "stopped.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
        let options = SimOptions { horizon: Horizon::Time(Span::from_ns(50)), ..SimOptions::default() };
        let mut records = Vec::new();
        simulate(&system, &options, &mut records).expect("it is simulated");
        let classes = |most: u64| {
            let result = verified(&system, &bound(1, most), &records, "sim", 50);
            let late = result.findings.iter().filter(|one| one.check == horolog_verify::Check::Response);
            late.map(|one| one.class).collect::<Vec<_>>()
        };
        assert_eq!(classes(9), [], "{policy}");
        assert_eq!(classes(8), [horolog_verify::Class::BoundViolated], "{policy}");
    }
}
