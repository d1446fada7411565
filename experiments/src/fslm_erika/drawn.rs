//! Facts 6, 7 and 9: what the protocol promises, on random systems of four processors.

use super::{read, simulated};
use crate::{ExperimentError, Fact};
use horolog_model::{Priority, System};
use horolog_trace::{Kind, Record};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const CPUS: usize = 4;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn draw(random: &mut Random) -> String {
    let mut text = format!("[system]\nname = \"drawn\"\n[platform]\ncpus = {CPUS}\n");
    for resource in 0..2 {
        text += &format!("[[resource]]\nname = \"r{resource}\"\nprotocol = \"fslm\"\n");
    }
    for cpu in 0..CPUS {
        if random.below(3) > 0 {
            text += &format!("[[spin_priority]]\ncpu = {cpu}\npriority = \"ceiling\"\n");
        }
        for number in 0..3 {
            let wcet = 2 + random.below(8);
            text += &format!(
                "[[task]]\nname = \"c{cpu}t{number}\"\ncpu = {cpu}\npriority = {number}\nperiod = \"{} ns\"\noffset = \"{} ns\"\n\
                 deadline = \"1 us\"\nwcet = \"{wcet} ns\"\n",
                30 + random.below(50),
                random.below(20)
            );
            // The most important task of a processor uses nothing at times, and so stands above the ceiling.
            if random.below(3) > u64::from(number == 2) {
                let from = random.below(wcet - 1);
                let length = 1 + random.below(wcet - from);
                text += &format!(
                    "[[task.section]]\nresource = \"r{}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n",
                    random.below(2)
                );
            }
        }
    }
    text
}

/// What was seen against the promises, over all systems.
#[derive(Default)]
struct Seen {
    waits: u64,
    /// More than one request of a processor, more than m - 1 that wait, a lock out of turn, a holder that is preempted.
    broken: [u64; 4],
    /// The most sections that one request waited for.
    most_awaited: u64,
    /// The most sections of less important tasks of the same processor that one job met.
    most_blocking: usize,
}

fn look(system: &System, records: &[Record], seen: &mut Seen) {
    let cpu = |task: u32| system.tasks()[task as usize].cpu;
    let number = |task: u32| system.tasks()[task as usize].priority.map(Priority::number);
    let less = |other: u32, task: u32| cpu(other) == cpu(task) && number(other) < number(task);
    let mut queues: BTreeMap<u64, VecDeque<u32>> = BTreeMap::new();
    let mut awaited: BTreeMap<u32, u64> = BTreeMap::new();
    // Of each task with pending jobs, the sections that blocked its oldest one.
    let mut pending: BTreeMap<u32, u32> = BTreeMap::new();
    let mut blocked: BTreeMap<u32, BTreeSet<(u32, u64)>> = BTreeMap::new();
    for record in records.iter().filter(|record| (record.task as usize) < system.tasks().len()) {
        let task = record.task;
        let holders: Vec<u32> = queues.values().filter_map(|queue| queue.front().copied()).collect();
        match record.kind {
            Kind::Release => {
                let count = pending.entry(task).or_default();
                *count += 1;
                if *count == 1 {
                    let holds = under_way(&holders, |other| less(other, task));
                    blocked.insert(task, holds);
                }
            }
            Kind::Completion => {
                if let Some(count) = pending.get_mut(&task) {
                    *count -= 1;
                }
                let met = blocked.insert(task, BTreeSet::new()).unwrap_or_default();
                seen.most_blocking = seen.most_blocking.max(met.len());
            }
            Kind::Spin => {
                seen.waits += 1;
                queues.entry(record.value).or_default().push_back(task);
                awaited.insert(task, 0);
            }
            Kind::Lock => {
                let queue = queues.entry(record.value).or_default();
                if queue.front() != Some(&task) {
                    seen.broken[2] += u64::from(!queue.is_empty());
                    queue.push_back(task);
                }
                seen.most_awaited = seen.most_awaited.max(awaited.remove(&task).unwrap_or(0));
                for (other, met) in &mut blocked {
                    if pending.get(other).is_some_and(|&count| count > 0) && less(task, *other) {
                        met.insert((task, record.job));
                    }
                }
            }
            Kind::Unlock => {
                let queue = queues.entry(record.value).or_default();
                queue.pop_front();
                for waiting in queue.iter() {
                    *awaited.entry(*waiting).or_default() += 1;
                }
            }
            Kind::Preempt => seen.broken[3] += u64::from(holders.contains(&task)),
            _ => {}
        }
        let all: Vec<u32> = queues.values().flatten().copied().collect();
        let on_one =
            (0..CPUS as u32).any(|number| all.iter().filter(|&&task| cpu(task).0 == number).count() > 1);
        seen.broken[0] += u64::from(on_one);
        let waiting: usize = queues.values().map(|queue| queue.len().saturating_sub(1)).sum();
        seen.broken[1] += u64::from(waiting > CPUS - 1);
    }
}

/// The sections of less important tasks that are under way: theirs who hold.
fn under_way(holders: &[u32], is_less: impl Fn(u32) -> bool) -> BTreeSet<(u32, u64)> {
    holders.iter().filter(|&&holder| is_less(holder)).map(|&holder| (holder, u64::MAX)).collect()
}

pub(super) fn facts(count: u64) -> Result<Vec<Fact>, ExperimentError> {
    let (mut random, mut seen) = (Random(2_016), Seen::default());
    for seed in 0..count {
        let system = read(&draw(&mut random))?;
        look(&system, &simulated(&system, 1_000, seed)?, &mut seen);
    }
    let how = format!("{count} random systems on {CPUS} processors, {} requests that waited", seen.waits);
    let note = |fact: Fact| Fact { note: how.clone(), ..fact };
    let broken = |what: &str, place: usize| note(Fact::exact(6, what, 0, seen.broken[place]));
    let bounded = |number: u32, what: &str, most: u64, ours: u64| {
        let fact =
            Fact::trend(number, what, &format!("at most {most}"), ours.to_string(), ours <= most, &how);
        Fact { exact: true, ..fact }
    };
    Ok(vec![
        broken("Instants with two requests of one processor", 0),
        broken("Instants with more than m - 1 requests that wait", 1),
        broken("Locks out of turn", 2),
        broken("Holders that were preempted", 3),
        bounded(7, "The most sections that a request waited for", CPUS as u64 - 1, seen.most_awaited),
        bounded(
            9,
            "The most sections of less important tasks of its processor that a job met",
            1,
            seen.most_blocking as u64,
        ),
    ])
}
