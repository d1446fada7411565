//! Clusters: after any events the choice is that of a naive list, and what stays keeps its processor.

mod support;

use horolog_model::{Cluster, CpuId, Cpus, Order, Policy, System, TaskId};
use horolog_sched::{Event, EventKind, Machine, ProcessorIndex};
use horolog_time::Instant;
use proptest::prelude::*;
use support::system;

const TASKS: usize = 6;

/// A job that waits or runs: less goes first.
#[derive(Clone, Copy, Debug)]
struct Job {
    task: u32,
    /// Less is more important.
    rank: u64,
    /// When it entered, for first in, first out among equals.
    entered: u64,
    on: Option<usize>,
}

/// What the rules of decision 0008 say, with lists.
struct Naive {
    jobs: Vec<Job>,
    last: [Option<usize>; TASKS],
    processors: usize,
}

impl Naive {
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by_key(|&i| {
            let job = &self.jobs[i];
            (job.rank, job.on.is_none(), job.entered, job.task)
        });
        order
    }

    /// Who runs from now on; the processors that must be asked to give way.
    fn choose(&mut self, preemptible: impl Fn(u32) -> bool) -> Vec<bool> {
        let kept: Vec<usize> = (0..self.jobs.len())
            .filter(|&i| self.jobs[i].on.is_some() && !preemptible(self.jobs[i].task))
            .collect();
        let room = self.processors - kept.len();
        let chosen: Vec<usize> = self.order().into_iter().filter(|i| !kept.contains(i)).take(room).collect();
        for i in 0..self.jobs.len() {
            if !kept.contains(&i) && !chosen.contains(&i) {
                self.jobs[i].on = None;
            }
        }
        let free = |naive: &Naive| -> Vec<usize> {
            (0..naive.processors).filter(|&p| naive.jobs.iter().all(|job| job.on != Some(p))).collect()
        };
        for &i in chosen.iter().filter(|&&i| self.jobs[i].on.is_none()).collect::<Vec<_>>() {
            let last = self.last[self.jobs[i].task as usize];
            if last.is_some_and(|last| free(self).contains(&last)) {
                self.jobs[i].on = last;
            }
        }
        for &i in &chosen {
            if self.jobs[i].on.is_none() {
                self.jobs[i].on = Some(free(self)[0]);
            }
        }
        for job in &self.jobs {
            if job.on.is_some() {
                self.last[job.task as usize] = job.on;
            }
        }
        // The least important of those that run is asked where the first that waits is strictly more important, and so on.
        let order = self.order();
        let waiting: Vec<usize> = order.iter().copied().filter(|&i| self.jobs[i].on.is_none()).collect();
        let running: Vec<usize> =
            order.iter().rev().copied().filter(|&i| self.jobs[i].on.is_some()).collect();
        let mut flags = vec![false; self.processors];
        for (&kept, &waits) in running.iter().zip(&waiting) {
            if self.jobs[waits].rank >= self.jobs[kept].rank {
                break;
            }
            if let Some(on) = self.jobs[kept].on.filter(|_| !preemptible(self.jobs[kept].task)) {
                flags[on] = true;
            }
        }
        flags
    }
}

/// Six tasks, the even ones not preemptible where asked, below one root over `processors`.
fn clustered(order: Order, processors: usize, priorities: &[i64], mixed: bool) -> System {
    let lines: Vec<String> = (0..TASKS)
        .map(|i| {
            let preemption = if mixed && i % 2 == 0 { "non-preemptive" } else { "preemptive" };
            let priority = priorities[i];
            format!(
                "name = \"t{i}\"; priority = {priority}; period = \"100 ms\"; wcet = \"2 ms\"; preemption = \"{preemption}\""
            )
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut draft = system("", &lines).to_draft();
    draft.platform.cpus = Cpus::Count(processors as u32);
    if order == Order::Edf {
        draft.policy = Policy::Edf;
        draft.tasks.iter_mut().for_each(|task| task.priority = None);
    }
    draft.clusters = vec![Cluster {
        name: "all".to_owned(),
        cpus: (0..processors as u32).map(CpuId).collect(),
        order,
        tasks: draft.tasks.iter().map(|task| task.name.clone()).collect(),
    }];
    System::new(draft).expect("a valid system")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn the_choice_is_that_of_a_list(
        is_edf in any::<bool>(),
        processors in 2_usize..5,
        priorities in prop::collection::vec(1_i64..4, TASKS),
        mixed in any::<bool>(),
        steps in prop::collection::vec((0_u8..4, 0..TASKS as u32, 1_u64..6), 1..80),
    ) {
        let order = if is_edf { Order::Edf } else { Order::FixedPriority };
        let system = clustered(order, processors, &priorities, mixed);
        let mut machine = Machine::new(&system).expect("priorities are given");
        let mut naive = Naive { jobs: Vec::new(), last: [None; TASKS], processors };
        let mut blocked: Vec<Job> = Vec::new();
        for (now, (what, task, deadline)) in steps.into_iter().enumerate() {
            let now = now as u64;
            let at = |kind| Event::at(Instant::from_ns(now), kind);
            let place = naive.jobs.iter().position(|job| job.task == task);
            let running = place.filter(|&place| naive.jobs[place].on.is_some());
            match (what, place, running) {
                (0 | 1, None, _) if blocked.iter().all(|job| job.task != task) => {
                    let deadline = now + deadline;
                    let rank = if is_edf { deadline } else { (10 - priorities[task as usize]) as u64 };
                    naive.jobs.push(Job { task, rank, entered: now, on: None });
                    let deadline = Instant::from_ns(deadline);
                    machine.on(at(EventKind::Release { task: TaskId(task), deadline })).expect("it is active");
                }
                (2, _, Some(place)) => {
                    naive.jobs.remove(place);
                    machine.on(at(EventKind::Completion { task: TaskId(task) })).expect("it runs");
                }
                (3, _, Some(place)) => {
                    blocked.push(naive.jobs.remove(place));
                    machine.on(at(EventKind::Block { task: TaskId(task) })).expect("it runs");
                }
                (_, None, _) => {
                    if let Some(place) = blocked.iter().position(|job| job.task == task) {
                        let mut job = blocked.remove(place);
                        job.on = None;
                        // Under EDF it keeps its release time.
                        job.entered = if is_edf { job.entered } else { now };
                        naive.jobs.push(job);
                        machine.on(at(EventKind::Wake { task: TaskId(task) })).expect("it was suspended");
                    }
                }
                _ => {}
            }
            prop_assert_eq!(machine.check(), Ok(()));
            let flags = naive.choose(|task| !(mixed && task % 2 == 0));
            for round in 0..2 {
                for (index, &flag) in flags.iter().enumerate() {
                    let desired = machine.decide(ProcessorIndex(index as u16));
                    let expected = naive.jobs.iter().find(|job| job.on == Some(index)).map(|job| TaskId(job.task));
                    prop_assert_eq!(desired.running, expected, "processor {} at {}, {}", index, now, round);
                    prop_assert_eq!(desired.should_yield, flag, "the flag of processor {} at {}", index, now);
                }
            }
            prop_assert_eq!(machine.check(), Ok(()));
        }
    }
}
