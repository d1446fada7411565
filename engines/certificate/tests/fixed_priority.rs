//! Certificates of response times under fixed priorities: the only right one is made by the plainest means and
//! accepted, and every other is refused.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

mod common;

use common::draw::{Kind, drawn};
use common::{Cpu, Dense, LIMIT, find, judge, lcm};
use horolog_certificate::{FixedPriorityProof, Horizon, JobProof, Proof, Proven};
use horolog_model::{Policy, Preemption, Priority, SegmentGraph, System, Task};
use horolog_testkit::exhaustive::{TinyTask, worst_responses};
use horolog_time::Span;
use serde_json::Value;
use std::collections::BTreeSet;

/// A task and what can delay it.
struct Level<'a> {
    cpu: Cpu<'a>,
    own: usize,
    higher: Vec<usize>,
    equal: Vec<usize>,
    blocking: u64,
}

fn importance(task: &Task) -> i64 {
    task.priority.map(Priority::number).unwrap()
}

/// The longest that a job holds the processor once it has it.
fn longest_hold(task: &Task) -> u64 {
    match &task.preemption {
        Preemption::Preemptive => 0,
        Preemption::Deferred(graph) => graph.segments.iter().map(|s| s.wcet.as_ns()).max().unwrap(),
        _ => task.wcet.as_ns(),
    }
}

/// The lengths of the segments along each path.
fn paths(graph: &SegmentGraph, from: usize) -> Vec<Vec<u64>> {
    let own = graph.segments[from].wcet.as_ns();
    let next = &graph.segments[from].next;
    if next.is_empty() {
        return vec![vec![own]];
    }
    let tails = next.iter().flat_map(|&to| paths(graph, to));
    tails.map(|tail| [vec![own], tail].concat()).collect()
}

impl<'a> Level<'a> {
    fn new(system: &'a System, name: &str) -> Level<'a> {
        let cpu = Cpu::new(system, find(system, name).cpu);
        let own = cpu.tasks.iter().position(|t| t.task.name == name).unwrap();
        let mine = importance(cpu.tasks[own].task);
        let place = |keep: &dyn Fn(i64) -> bool| -> Vec<usize> {
            (0..cpu.tasks.len()).filter(|&i| i != own && keep(importance(cpu.tasks[i].task))).collect()
        };
        let (higher, equal) = (place(&|theirs| theirs > mine), place(&|theirs| theirs == mine));
        let below = place(&|theirs| theirs < mine);
        let blocking = below.iter().map(|&i| longest_hold(cpu.tasks[i].task)).max().unwrap_or(0) + cpu.switch;
        Level { cpu, own, higher, equal, blocking }
    }

    fn own(&self) -> &Dense<'a> {
        &self.cpu.tasks[self.own]
    }

    fn work(&self, places: &[usize], x: u64, closed: bool) -> u64 {
        places.iter().map(|&i| self.cpu.tasks[i].ready(x, closed) * self.cpu.tasks[i].wcet).sum()
    }

    /// Work before the last segment and the last segment, of every path that no other is worse than, the longest first.
    fn endings(&self) -> Vec<(u64, u64)> {
        let (own, switch) = (self.own(), self.cpu.switch);
        let all: Vec<(u64, u64)> = match &own.task.preemption {
            Preemption::Preemptive => vec![(own.wcet, 0)],
            Preemption::Deferred(graph) => paths(graph, 0)
                .into_iter()
                .map(|path| match path.split_last().unwrap() {
                    (last, []) => (0, last + 2 * switch),
                    (last, before) => (before.iter().sum::<u64>() + switch, last + switch),
                })
                .collect(),
            _ => vec![(0, own.wcet)],
        };
        let worse = |a: &(u64, u64), b: &(u64, u64)| a != b && a.0 >= b.0 && a.1 >= b.1;
        let kept: BTreeSet<(u64, u64)> =
            all.iter().filter(|one| !all.iter().any(|other| worse(other, one))).copied().collect();
        kept.into_iter().rev().collect()
    }

    /// The demand of everything at this level in a window of `x`, half-open.
    fn demand(&self, x: u64) -> u64 {
        let tasks = [&self.higher[..], &self.equal, &[self.own]].concat();
        self.blocking + self.work(&tasks, x, false) + self.cpu.outside(x, false)
    }

    fn horizon(&self) -> Option<(Horizon, u64)> {
        if let Some(iterates) = chain(1, |x| self.demand(x)) {
            let end = *iterates.last().unwrap();
            return Some((Horizon::BusyPeriod { iterates }, end));
        }
        let tasks = [&self.higher[..], &self.equal, &[self.own]].concat();
        let mut cycle = self.cpu.tick().filter(|_| self.cpu.interrupt() > 0).unwrap_or(1);
        let with_interrupts = 0..if self.cpu.interrupt() > 0 { self.cpu.tasks.len() } else { 0 };
        for place in tasks.iter().copied().chain(with_interrupts) {
            cycle = lcm(cycle, self.cpu.tasks[place].separation()?);
        }
        let fresh = |i: usize| cycle / self.cpu.tasks[i].separation().unwrap();
        let interrupts: u64 = match (self.cpu.interrupt(), self.cpu.tick()) {
            (0, _) => 0,
            (cost, Some(tick)) => cycle / tick * cost,
            (cost, None) => (0..self.cpu.tasks.len()).map(|i| fresh(i) * cost).sum(),
        };
        let work: u64 = tasks.iter().map(|&i| fresh(i) * self.cpu.tasks[i].wcet).sum();
        let fills = work + interrupts == cycle && self.cpu.interferences().is_empty() && cycle < 200;
        fills.then_some((Horizon::Repeats { hyperperiod_ns: cycle }, cycle))
    }

    fn job(&self, ready: u64, (before, last): (u64, u64)) -> Option<(JobProof, u64)> {
        let own = self.own();
        let earlier = own.steady.iter().filter(|&&at| at <= ready).count() as u64 - 1;
        let base = self.blocking + earlier * own.wcet + self.work(&self.equal, ready, true) + before;
        let closed = last > 0 && self.blocking == 0;
        let first = if base == 0 && !self.cpu.interferences().is_empty() { 1 } else { base };
        let start_iterates =
            chain(first, |x| first + self.work(&self.higher, x, closed) + self.cpu.outside(x, closed))?;
        let start = *start_iterates.last().unwrap();
        let finish_iterates = match last {
            0 => Vec::new(),
            last => {
                let work = base + self.work(&self.higher, start, closed) + last;
                chain(work, |x| work + self.cpu.outside(x, false))?
            }
        };
        let finish = *finish_iterates.last().unwrap_or(&start);
        let job =
            JobProof { ready_ns: ready, before_ns: before, last_ns: last, start_iterates, finish_iterates };
        // Where it ends before it is ready, the level idled in between: another busy period holds its worst case.
        Some((job, (finish + own.jitter).saturating_sub(ready)))
    }

    /// The one proof of the level's bound, where it is short.
    fn proof(&self) -> Option<FixedPriorityProof> {
        let (horizon, end) = self.horizon()?;
        let equal = self.equal.iter().flat_map(|&i| {
            let task = &self.cpu.tasks[i];
            // An arrival within the jitter before the busy period is ready at its start.
            task.steady.iter().filter_map(|at| at.checked_sub(task.jitter))
        });
        let ready: BTreeSet<u64> =
            self.own().steady.iter().copied().chain(equal).chain([0]).filter(|&at| at < end).collect();
        let endings = self.endings();
        let pairs = ready.into_iter().flat_map(|ready| endings.iter().map(move |&ending| (ready, ending)));
        let found: Vec<(JobProof, u64)> =
            pairs.map(|(ready, ending)| self.job(ready, ending)).collect::<Option<_>>()?;
        let bound_ns = found.iter().map(|(_, response)| *response).max()?;
        let jobs = found.into_iter().map(|(job, _)| job).collect();
        Some(FixedPriorityProof { bound_ns, least: self.cpu.worst_case_happens(), horizon, jobs })
    }
}

/// The iterates from `first` to a value that is its own demand; `None` where there is none soon.
fn chain(first: u64, demand: impl Fn(u64) -> u64) -> Option<Vec<u64>> {
    let mut iterates = vec![first];
    loop {
        let last = *iterates.last()?;
        let next = demand(last);
        if next == last {
            return Some(iterates);
        }
        if next > LIMIT / 2 {
            return None;
        }
        iterates.push(next);
    }
}

fn kinds() -> [Kind; 4] {
    let kind = |costs, harmonic| Kind { policy: Policy::FixedPriority, costs, harmonic };
    [kind(false, false), kind(true, false), kind(false, true), kind(true, true)]
}

/// The verdict that the bound gives.
fn verdict(system: &System, name: &str, proof: &FixedPriorityProof) -> Option<Proven> {
    match find(system, name).deadline {
        Some(deadline) if proof.bound_ns > deadline.as_ns() => proof.least.then_some(Proven::Misses),
        _ => Some(Proven::Meets),
    }
}

/// Every proof that short means find in the systems of a series.
fn each(seed: u64, count: u64, mut what: impl FnMut(&System, &str, FixedPriorityProof)) {
    for index in 0..count {
        let system = drawn(seed, index, kinds()[index as usize % 4]);
        for task in system.tasks() {
            if let Some(proof) = Level::new(&system, &task.name).proof() {
                what(&system, &task.name, proof);
            }
        }
    }
}

#[test]
fn the_right_certificate_is_accepted() {
    let mut counts = [0; 4];
    each(1, 1_200, |system, name, proof| {
        let Some(verdict) = verdict(system, name, &proof) else { return };
        counts[usize::from(verdict == Proven::Misses)] += 1;
        counts[2] += usize::from(matches!(proof.horizon, Horizon::Repeats { .. }));
        counts[3] += usize::from(proof.jobs.len() > 3);
        let said = judge(system, name, verdict, Proof::FixedPriority(proof.clone()));
        said.unwrap_or_else(|flaw| panic!("{flaw}\n{name}: {proof:?}\n{system:#?}"));
    });
    assert!(counts.iter().all(|&count| count > 50), "meets, misses, repeats, many jobs: {counts:?}");
}

#[test]
fn the_verdict_follows_from_the_bound_and_the_deadline() {
    let mut counts = [0; 3];
    each(2, 300, |system, name, proof| {
        let place = system.find_task(name).unwrap().index();
        let with_deadline = |deadline: Option<u64>| {
            let mut draft = system.to_draft();
            draft.tasks[place].deadline = deadline.map(Span::from_ns);
            System::new(draft).ok()
        };
        let says = |system: &System, verdict| {
            judge(system, name, verdict, Proof::FixedPriority(proof.clone())).is_ok()
        };
        let at = with_deadline(Some(proof.bound_ns)).unwrap();
        assert!(says(&at, Proven::Meets) && !says(&at, Proven::Misses), "{name} {at:#?}");
        counts[0] += 1;
        if let Some(below) = with_deadline(Some(proof.bound_ns - 1)) {
            assert!(!says(&below, Proven::Meets), "{name} {below:#?}");
            assert_eq!(says(&below, Proven::Misses), proof.least, "{name} {below:#?}");
            counts[1] += 1;
        }
        if let Some(without) = with_deadline(None) {
            assert!(says(&without, Proven::Meets) && !says(&without, Proven::Misses));
            counts[2] += 1;
        }
    });
    assert!(counts.iter().all(|&count| count > 30), "{counts:?}");
}

/// The paths of all numbers, and those of all lists, in a JSON tree.
fn places(value: &Value, path: &str, numbers: &mut Vec<String>, lists: &mut Vec<String>) {
    match value {
        Value::Number(_) => numbers.push(path.to_owned()),
        Value::Array(items) => {
            lists.push(path.to_owned());
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{path}/{index}"), numbers, lists);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                places(member, &format!("{path}/{key}"), numbers, lists);
            }
        }
        _ => {}
    }
}

/// Every proof that differs in one place: a number one up or down, an item left out, twice or exchanged with the next.
fn forgeries(proof: &Proof) -> Vec<Proof> {
    let tree = serde_json::to_value(proof).unwrap();
    let (mut numbers, mut lists) = (Vec::new(), Vec::new());
    places(&tree, "", &mut numbers, &mut lists);
    let mut forged = Vec::new();
    let mut put = |place: &str, value: Value| {
        let mut other = tree.clone();
        *other.pointer_mut(place).unwrap() = value;
        if other != tree {
            forged.push(serde_json::from_value(other).unwrap());
        }
    };
    for place in &numbers {
        let number = tree.pointer(place).unwrap().as_u64().unwrap();
        put(place, (number + 1).into());
        put(place, number.saturating_sub(1).into());
    }
    for place in &lists {
        let items = tree.pointer(place).unwrap().as_array().unwrap();
        for at in 0..items.len() {
            let (mut less, mut more, mut swapped) = (items.clone(), items.clone(), items.clone());
            less.remove(at);
            more.insert(at, items[at].clone());
            swapped.swap(at, (at + 1) % items.len());
            [less, more, swapped].into_iter().for_each(|list| put(place, list.into()));
        }
        let longer = [&items[..], &[items.last().cloned().unwrap_or_else(|| 1.into())]].concat();
        if place.ends_with("iterates") {
            put(place, longer.into());
        }
    }
    forged
}

#[test]
fn nothing_can_be_changed() {
    let mut tried = 0;
    each(3, 100, |system, name, proof| {
        let Some(verdict) = verdict(system, name, &proof) else { return };
        let proof = Proof::FixedPriority(proof);
        for forged in forgeries(&proof) {
            let said = judge(system, name, verdict, forged.clone());
            assert!(said.is_err(), "{name}: {forged:?} for {proof:?} {system:#?}");
            tried += 1;
        }
        let Proof::FixedPriority(mut other) = proof else { return };
        other.least = !other.least;
        assert!(judge(system, name, verdict, Proof::FixedPriority(other)).is_err());
    });
    assert!(tried > 4_000, "{tried}");
}

#[test]
fn the_proof_of_another_system_is_refused_unless_it_is_the_same() {
    let (mut same, mut other) = (0, 0);
    each(4, 200, |system, name, proof| {
        for place in 0..system.tasks().len() {
            let mut draft = system.to_draft();
            let task = &mut draft.tasks[place];
            task.wcet = Span::from_ns(task.wcet.as_ns() + 1);
            task.bcet = task.wcet;
            let Ok(heavier) = System::new(draft) else { continue };
            let right = Level::new(&heavier, name).proof();
            let Some(verdict) = verdict(&heavier, name, &proof) else { continue };
            let said = judge(&heavier, name, verdict, Proof::FixedPriority(proof.clone()));
            assert_eq!(
                said.is_ok(),
                right.as_ref() == Some(&proof),
                "{name} {proof:?} {right:?} {heavier:#?}"
            );
            *if said.is_ok() { &mut same } else { &mut other } += 1;
        }
    });
    assert!(same > 30 && other > 150, "{same} the same, {other} others");
}

#[test]
fn accepted_bounds_hold_in_every_run() {
    let (mut compared, mut reached) = (0, 0);
    for index in 0..160 {
        let system = drawn(5, index, kinds()[index as usize % 2 * 2]);
        let here = || system.tasks().iter().filter(|task| task.cpu.0 == 0);
        let proofs: Option<Vec<_>> = here().map(|t| Level::new(&system, &t.name).proof()).collect();
        let Some(proofs) = proofs.filter(|proofs| proofs.len() < 4) else { continue };
        let tiny = here().map(|task| TinyTask {
            separation: task.separation().unwrap().as_ns() as u32,
            jitter: task.jitter.as_ns() as u32,
            priority: importance(task) as u32,
            preemptive: matches!(task.preemption, Preemption::Preemptive),
            paths: match &task.preemption {
                Preemption::Deferred(graph) => {
                    let paths = paths(graph, 0).into_iter();
                    paths.map(|path| path.into_iter().map(|length| length as u32).collect()).collect()
                }
                _ => vec![vec![task.wcet.as_ns() as u32]],
            },
        });
        let Some(worst) = worst_responses(&tiny.collect::<Vec<_>>(), 4_000) else { continue };
        for ((task, proof), worst) in here().zip(proofs).zip(worst) {
            assert!(u64::from(worst) <= proof.bound_ns, "{}: {worst} {proof:?} {system:#?}", task.name);
            // A job that blocks begins before the critical instant: in whole units one earlier.
            let blocked = here().any(|t| importance(t) < importance(task) && longest_hold(t) > 0);
            assert!(
                blocked || u64::from(worst) == proof.bound_ns,
                "{}: {worst} {proof:?} {system:#?}",
                task.name
            );
            reached += u64::from(!blocked);
            compared += 1;
        }
    }
    assert!(compared > 50 && reached > 30, "{compared} compared, {reached} reached");
}

#[test]
fn a_job_that_is_ready_only_after_a_pause_of_its_level_is_not_the_worst() {
    // The job that is ready at 20 would end at 16: without it the level pauses at 11.
    let own = common::whole(common::due(common::task("own", 100, 5), 12));
    let equal = common::whole(common::task("equal", 20, 1));
    let higher = common::prio(common::task("higher", 4, 3), 2);
    let system = common::fixed(vec![common::prio(own, 1), common::prio(equal, 1), higher]);
    let proof = Level::new(&system, "own").proof().unwrap();
    assert_eq!((proof.bound_ns, proof.jobs.len()), (12, 2));
    assert_eq!(proof.jobs[1].finish_iterates, [16]);
    judge(&system, "own", Proven::Meets, Proof::FixedPriority(proof)).unwrap();
}

/// One task that fills the processor and is blocked by another: its busy period never ends.
fn full(separation: u64) -> System {
    let own = common::prio(common::due(common::task("own", separation, separation), 9 * separation), 2);
    common::fixed(vec![
        own,
        common::prio(common::whole(common::task("blocks", 9 * separation, separation)), 1),
    ])
}

/// A proof over this time, without any job.
fn empty_proof(hyperperiod_ns: u64) -> Proof {
    let horizon = Horizon::Repeats { hyperperiod_ns };
    Proof::FixedPriority(FixedPriorityProof { bound_ns: 2, least: true, horizon, jobs: Vec::new() })
}

#[test]
fn responses_repeat_only_after_a_multiple_of_all_separations_that_the_level_fills() {
    let reason = |system: &System, horizon| {
        judge(system, "own", Proven::Meets, empty_proof(horizon)).unwrap_err().reason().to_owned()
    };
    assert_eq!(reason(&full(3), 6), "the job ready at 0 is left out");
    assert_eq!(reason(&full(3), 7), "7 is not a multiple of the separation 3");
    assert_eq!(reason(&full(3), 0), "responses repeat only without interference");
    let lighter = common::fixed(vec![common::prio(common::task("own", 3, 2), 2)]);
    assert_eq!(reason(&lighter, 6), "the level asks for 4 of every 6, not for all of it");
    let mut draft = full(3).to_draft();
    draft.interferences.push(horolog_model::Interference {
        name: "i".into(),
        cpu: horolog_model::CpuId(0),
        utilisation_ppb: 1,
        period: Span::from_ns(1),
    });
    assert_eq!(reason(&common::system(draft), 6), "responses repeat only without interference");
    let list = common::prio(common::whole(common::listed(common::task("list", 1, 1), &[0])), 2);
    let listed = common::fixed(vec![common::prio(common::task("own", 3, 3), 2), list]);
    assert_eq!(reason(&listed, 6), "listed arrivals do not repeat");
}

#[test]
fn a_multiple_of_the_hyperperiod_is_as_good() {
    let jobs = |count: u64| {
        let job = |ready_ns| JobProof {
            ready_ns,
            before_ns: 3,
            last_ns: 0,
            start_iterates: vec![ready_ns + 6],
            finish_iterates: Vec::new(),
        };
        let jobs = (0..count).map(|k| job(3 * k)).collect();
        let horizon = Horizon::Repeats { hyperperiod_ns: 3 * count };
        Proof::FixedPriority(FixedPriorityProof { bound_ns: 6, least: true, horizon, jobs })
    };
    for count in 1..5 {
        judge(&full(3), "own", Proven::Meets, jobs(count)).unwrap();
    }
}

#[test]
fn more_than_four_million_jobs_are_not_looked_at() {
    let reason = |horizon| {
        judge(&full(2), "own", Proven::Meets, empty_proof(horizon)).unwrap_err().reason().to_owned()
    };
    assert_eq!(reason(8_000_000), "the job ready at 0 is left out");
    assert_eq!(reason(8_000_002), "more jobs than this checker looks at");
    assert_eq!(reason(u64::MAX - 1), "more jobs than this checker looks at");
}

#[test]
fn more_than_4096_listed_arrivals_are_not_looked_at() {
    let says = |count: u64| {
        let arrivals: Vec<u64> = (0..count).map(|k| 10 * k).collect();
        let own = common::due(common::listed(common::task("own", 1, 1), &arrivals), 1);
        let system = common::fixed(vec![common::prio(own, 1)]);
        let job = JobProof {
            ready_ns: 0,
            before_ns: 1,
            last_ns: 0,
            start_iterates: vec![1],
            finish_iterates: Vec::new(),
        };
        let horizon = Horizon::BusyPeriod { iterates: vec![1] };
        let proof = FixedPriorityProof { bound_ns: 1, least: false, horizon, jobs: vec![job] };
        judge(&system, "own", Proven::Meets, Proof::FixedPriority(proof))
    };
    says(4_096).unwrap();
    assert_eq!(says(4_097).unwrap_err().reason(), "more jobs than this checker looks at");
}

#[test]
fn numbers_beyond_64_bits_are_refused_without_a_panic() {
    let most = u64::MAX;
    let huge = |name: &str, priority| {
        let task = common::late(common::due(common::task(name, 1, most), most), most);
        common::prio(task, priority)
    };
    let job = |at: u64| JobProof {
        ready_ns: at,
        before_ns: most,
        last_ns: at,
        start_iterates: vec![at, most],
        finish_iterates: vec![most],
    };
    for own in [huge("own", 2), common::whole(huge("own", 2))] {
        let mut draft = common::draft(Policy::FixedPriority, vec![own]);
        draft.tasks.extend((0..5).map(|k| common::whole(huge(&format!("t{k}"), 1 + k % 3))));
        draft.platform.context_switch = Some(Span::from_ns(most));
        draft.platform.timer_interrupt = Some(Span::from_ns(most));
        draft.platform.release_latency = Some(Span::from_ns(most));
        let system = common::system(draft);
        for at in [0, 1, most] {
            for iterates in [vec![1], vec![1, most], vec![most], Vec::new()] {
                let horizons = [Horizon::BusyPeriod { iterates }, Horizon::Repeats { hyperperiod_ns: at }];
                for horizon in horizons {
                    let jobs = vec![job(at)];
                    let proof = FixedPriorityProof { bound_ns: most, least: false, horizon, jobs };
                    assert!(judge(&system, "own", Proven::Meets, Proof::FixedPriority(proof)).is_err());
                }
            }
        }
    }
}
