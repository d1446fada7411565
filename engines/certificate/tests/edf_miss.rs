//! Certificates of misses under EDF: accepted exactly where every iterate lies below what the late job has to wait for,
//! and then the miss happens.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

mod common;

use common::draw::{Kind, drawn};
use common::{Cpu, Dense, due, edf, find, judge, late, listed, ns, task, whole};
use horolog_certificate::{EdfMissProof, Proof, Proven};
use horolog_model::{Arrival, CpuId, Interference, Policy, Preemption, System, Task};
use horolog_testkit::naive_simulator::{NaiveCosts, NaiveJob, NaivePolicy, NaiveTask, simulate_naively};

/// One task's miss, read job by job.
struct Miss<'a> {
    cpu: Cpu<'a>,
    own: usize,
    deadline_at: u64,
    blocker: Option<usize>,
}

fn hold(task: &Task) -> u64 {
    if matches!(task.preemption, Preemption::Preemptive) { 0 } else { task.wcet.as_ns() }
}

impl<'a> Miss<'a> {
    /// `None` where this blocker cannot block there, or no job is due.
    fn new(system: &'a System, name: &str, deadline_at: u64, blocker: Option<&str>) -> Option<Miss<'a>> {
        let cpu = Cpu::new(system, find(system, name).cpu);
        let place = |name: &str| cpu.tasks.iter().position(|task| task.task.name == name);
        let (own, blocker) = (place(name)?, blocker.map(place));
        if matches!(blocker, Some(None)) {
            return None;
        }
        let blocker = blocker.flatten();
        let can_block = |at: usize| at != own && cpu.tasks[at].deadlines[0] > deadline_at as i64;
        let is_due = cpu.tasks[own].due(deadline_at) > 0;
        (is_due && blocker.is_none_or(can_block)).then_some(Miss { cpu, own, deadline_at, blocker })
    }

    fn own(&self) -> &Dense<'a> {
        &self.cpu.tasks[self.own]
    }

    fn blocking(&self) -> u64 {
        self.blocker.map_or(0, |at| hold(self.cpu.tasks[at].task))
    }

    fn is_preemptive(&self) -> bool {
        hold(self.own().task) == 0
    }

    /// What is there at once: the blocking, and own jobs up to the late one (a non-preemptive one's start).
    fn base(&self) -> u64 {
        let jobs = self.own().due(self.deadline_at);
        self.blocking() + self.own().wcet * if self.is_preemptive() { jobs } else { jobs - 1 }
    }

    /// Whether a job of another task comes before the late one, if that has not begun before `x`.
    fn comes_first(&self, task: &Dense<'_>, job: usize, x: u64) -> bool {
        let at_start_too = !self.is_preemptive() && self.blocking() == 0;
        let ready = task.early[job];
        task.deadlines[job] <= self.deadline_at as i64 && (ready < x || at_start_too && ready == x)
    }

    fn demand(&self, x: u64) -> u64 {
        let others = self.cpu.tasks.iter().enumerate().filter(|(at, _)| *at != self.own);
        let count = |task: &Dense<'_>| {
            (0..task.early.len()).take_while(|&job| self.comes_first(task, job, x)).count() as u64
        };
        self.base() + others.map(|(_, task)| count(task) * task.wcet).sum::<u64>()
    }

    /// Iterates to the end, or to one that is late.
    fn iterates(&self) -> Vec<u64> {
        let mut iterates = vec![self.base()];
        while let Some(next) = iterates.last().map(|&last| self.demand(last)) {
            if iterates.last() == Some(&next) || next > self.deadline_at + 40 {
                break;
            }
            iterates.push(next);
        }
        iterates
    }

    /// Whether these iterates prove the miss.
    fn is_proved(&self, iterates: &[u64]) -> bool {
        let Some(&last) = iterates.last() else { return false };
        let below = iterates.windows(2).all(|pair| pair[1] <= self.demand(pair[0]));
        let end = last + if self.is_preemptive() { 0 } else { self.own().wcet };
        iterates[0] <= self.base() && below && end > self.deadline_at
    }

    /// Runs the jobs that come first, in eighths of a unit: the blocking job begins an eighth before the others, and the
    /// late one arrives an eighth after them, to lose every tie. Whether it is late.
    fn happens(&self) -> bool {
        const FINE: u64 = 8;
        let latest = self.cpu.tasks.iter().map(|task| task.jitter).max().unwrap();
        let origin = FINE * latest + 1;
        let tasks: Vec<NaiveTask> = self
            .cpu
            .tasks
            .iter()
            .enumerate()
            .map(|(at, task)| {
                let separation = FINE * task.separation().unwrap();
                let deadline = FINE * task.task.deadline.unwrap().as_ns();
                let (count, first) = if at == self.own {
                    let count = task.due(self.deadline_at);
                    let last = origin + FINE * self.deadline_at + 1 - deadline;
                    (count, last - (count - 1) * separation)
                } else if Some(at) == self.blocker {
                    (1, origin - 1)
                } else {
                    (task.due(self.deadline_at), origin - FINE * task.jitter)
                };
                let jobs = (0..count).map(|k| first + k * separation).map(|arrival| {
                    let ready = if Some(at) == self.blocker { arrival } else { arrival.max(origin) };
                    assert!(ready - arrival <= FINE * task.jitter, "{:?}", task.task);
                    NaiveJob { arrival, ready, segments: vec![FINE * task.task.wcet.as_ns()] }
                });
                let preemptible = hold(task.task) == 0;
                NaiveTask { priority: 0, deadline, preemptible, jobs: jobs.collect() }
            })
            .collect();
        let until = origin + FINE * (self.deadline_at + 400);
        let found = simulate_naively(NaivePolicy::Edf, &tasks, NaiveCosts::default(), until);
        let job = tasks[self.own].jobs.len() - 1;
        let due = tasks[self.own].jobs[job].arrival + tasks[self.own].deadline;
        found[self.own].completions[job].is_none_or(|end| end > due)
    }
}

fn says(system: &System, name: &str, deadline_at_ns: u64, blocker: Option<&str>, iterates: &[u64]) -> bool {
    let blocker = blocker.map(str::to_owned);
    let proof = EdfMissProof { deadline_at_ns, blocker, iterates: iterates.to_vec() };
    judge(system, name, Proven::Misses, Proof::EdfMiss(proof)).is_ok()
}

/// Lists of iterates that differ in one place from the right ones.
fn variants(right: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![right.to_vec()];
    for at in 0..right.len() {
        let mut put = |change: &dyn Fn(&mut Vec<u64>)| {
            let mut list = right.to_vec();
            change(&mut list);
            all.push(list);
        };
        put(&|list| list[at] += 1);
        put(&|list| list[at] = list[at].saturating_sub(1));
        put(&|list| list.truncate(at + 1));
        put(&|list| _ = list.remove(at));
        put(&|list| list.swap(at, 0));
    }
    all
}

#[test]
fn iterates_are_accepted_exactly_where_they_prove_the_miss_and_then_it_happens() {
    let mut counts = [0; 3];
    for index in 0..120 {
        let system = drawn(11, index, Kind { policy: Policy::Edf, costs: false, harmonic: index % 2 == 0 });
        if !Cpu::new(&system, CpuId(0)).worst_case_happens()
            || !Cpu::new(&system, CpuId(1)).worst_case_happens()
        {
            continue;
        }
        let names = || system.tasks().iter().map(|task| task.name.as_str());
        for own in names() {
            for (deadline_at, blocker) in (0..30).flat_map(|d| {
                [None, Some("nobody")].into_iter().chain(names().map(Some)).map(move |b| (d, b))
            }) {
                let Some(miss) = Miss::new(&system, own, deadline_at, blocker) else {
                    let said = says(&system, own, deadline_at, blocker, &[deadline_at + 1]);
                    assert!(!said, "{own} {deadline_at} {blocker:?} {system:#?}");
                    continue;
                };
                for iterates in variants(&miss.iterates()).into_iter().filter(|list| !list.is_empty()) {
                    let right = miss.is_proved(&iterates);
                    let said = says(&system, own, deadline_at, blocker, &iterates);
                    assert_eq!(said, right, "{own} {deadline_at} {blocker:?} {iterates:?} {system:#?}");
                    counts[usize::from(right)] += 1;
                }
                if miss.is_proved(&miss.iterates()) {
                    assert!(miss.happens(), "{own} {deadline_at} {blocker:?} {system:#?}");
                    counts[2] += 1;
                }
            }
        }
    }
    assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
}

#[test]
fn a_job_that_is_late_all_by_itself_needs_no_iterate() {
    let says = |jitter| says(&edf(vec![late(due(task("t", 9, 3), 5), jitter)]), "t", 0, None, &[]);
    assert!(!says(0) && !says(2), "D − J is 3 and holds C");
    assert!(says(3) && says(5) && says(9));
}

#[test]
fn late_jobs_prove_misses_of_tasks_with_deadlines_alone() {
    let system = edf(vec![task("t", 4, 3), due(task("u", 4, 2), 4)]);
    let proof = || Proof::EdfMiss(EdfMissProof { deadline_at_ns: 4, blocker: None, iterates: vec![3, 5] });
    judge(&system, "t", Proven::Misses, proof()).unwrap();
    assert!(judge(&system, "t", Proven::Meets, proof()).is_err());
    let without = edf(vec![listed(task("l", 4, 3), &[0]), task("t", 4, 3), task("u", 4, 2)]);
    let flaw = judge(&without, "l", Proven::Misses, proof()).unwrap_err();
    assert_eq!(flaw.reason(), "a late job proves a miss, nothing else");
    let fixed = common::fixed(vec![common::prio(task("t", 4, 3), 1), common::prio(task("u", 4, 2), 2)]);
    assert_eq!(
        judge(&fixed, "t", Proven::Misses, proof()).unwrap_err().reason(),
        "the system's policy is not EDF"
    );
}

/// Each thing that makes a bound an upper bound alone, by itself.
#[test]
fn a_miss_is_proved_only_where_the_worst_case_happens() {
    let plain = edf(vec![task("t", 4, 3), task("u", 4, 2)]);
    let proof = || Proof::EdfMiss(EdfMissProof { deadline_at_ns: 4, blocker: None, iterates: vec![3, 5] });
    let with = |change: &dyn Fn(&mut horolog_model::Draft)| {
        let mut draft = plain.to_draft();
        change(&mut draft);
        judge(&common::system(draft), "t", Proven::Misses, proof()).is_ok()
    };
    let offset = |task: &mut Task, periodic: bool| {
        task.offset = Some(ns(0));
        if periodic {
            task.arrival = Arrival::Periodic { period: ns(4) };
        }
    };
    let interference =
        |cpu| Interference { name: "i".into(), cpu: CpuId(cpu), utilisation_ppb: 1, period: ns(1) };
    let list = |cpu| Task { cpu: CpuId(cpu), ..listed(task("l", 1, 1), &[50]) };
    assert!(with(&|_| {}));
    assert!(with(&|draft| draft.platform.context_switch = Some(ns(0))));
    assert!(!with(&|draft| draft.platform.context_switch = Some(ns(1))));
    assert!(!with(&|draft| draft.platform.timer_interrupt = Some(ns(1))));
    assert!(!with(&|draft| draft.platform.release_latency = Some(ns(1))));
    assert!(!with(&|draft| draft.platform.tick = Some(ns(1))));
    assert!(!with(&|draft| draft.interferences.push(interference(0))));
    assert!(with(&|draft| draft.interferences.push(interference(1))));
    assert!(!with(&|draft| draft.tasks.push(list(0))));
    assert!(with(&|draft| draft.tasks.push(list(1))));
    assert!(with(&|draft| offset(&mut draft.tasks[0], true)));
    assert!(with(&|draft| draft.tasks.iter_mut().for_each(|task| offset(task, false))));
    assert!(!with(&|draft| draft.tasks.iter_mut().for_each(|task| offset(task, true))));
    assert!(with(&|draft| {
        offset(&mut draft.tasks[0], true);
        draft.tasks[1].arrival = Arrival::Periodic { period: ns(4) };
    }));
    assert!(with(&|draft| {
        offset(&mut draft.tasks[0], true);
        draft.tasks.push(Task { cpu: CpuId(1), ..task("far", 4, 1) });
        offset(&mut draft.tasks[2], true);
    }));
}

#[test]
fn who_may_be_released_after_its_deadline_blocks_nobody() {
    // D − J of `b` is −6: its jobs are due before the window begins.
    let b = late(due(whole(task("b", 20, 2)), 2), 8);
    let system = edf(vec![due(task("t", 9, 3), 4), b]);
    assert!(Miss::new(&system, "t", 4, Some("b")).is_none());
    assert!(!says(&system, "t", 4, Some("b"), &[5]) && !says(&system, "t", 5, Some("b"), &[5, 9]));
    // It comes first as any job that is due.
    assert!(says(&system, "t", 4, None, &[3, 5]));
}

#[test]
fn numbers_beyond_64_bits_are_judged_without_a_panic() {
    let most = u64::MAX;
    let huge = |name: &str, jitter| late(due(task(name, 1, most), most), jitter);
    for own in [huge("t", 0), huge("t", most), whole(huge("t", most))] {
        let system = edf(vec![own, huge("u", most), whole(huge("v", 0))]);
        for blocker in [None, Some("u"), Some("v")] {
            for deadline_at in [0, 1, most - 1, most] {
                for iterates in [&[][..], &[0], &[most], &[most, most]] {
                    says(&system, "t", deadline_at, blocker, iterates);
                }
            }
        }
    }
}
