//! Small systems with locks across processors: drawn, written as a file, and simulated.
#![allow(unreachable_pub)] // each test file is a crate of its own

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

pub fn read(text: &str) -> System {
    horolog_model::file::read(text, "locks.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}")).0
}

pub fn records(system: &System, end: u64) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(end)), ..SimOptions::default() };
    simulate(system, &options, &mut records).expect("it runs");
    records
}

#[derive(Clone, Debug)]
pub struct Task {
    pub cpu: usize,
    pub priority: i64,
    pub arrivals: Vec<u64>,
    pub wcet: u64,
    /// Resource, from, end.
    pub sections: Vec<(usize, u64, u64)>,
    /// The resources that it only reads.
    pub reads: Vec<usize>,
}

/// A file with so many processors and resources, each with this protocol; `more` comes before the tasks.
pub fn text(cpus: usize, resources: usize, protocol: &str, more: &str, tasks: &[Task]) -> String {
    let mut text = format!("[system]\nname = \"locks\"\n[platform]\ncpus = {cpus}\n");
    for resource in 0..resources {
        text += &format!("[[resource]]\nname = \"r{resource}\"\nprotocol = \"{protocol}\"\n");
    }
    text += more;
    for (number, task) in tasks.iter().enumerate() {
        let arrivals: Vec<String> = task.arrivals.iter().map(|at| format!("\"{at} ns\"")).collect();
        text += &format!(
            "[[task]]\nname = \"t{number}\"\ncpu = {}\npriority = {}\nwcet = \"{} ns\"\narrivals = [{}]\n",
            task.cpu,
            task.priority,
            task.wcet,
            arrivals.join(", ")
        );
        for (resource, from, end) in &task.sections {
            text += &format!(
                "[[task.section]]\nresource = \"r{resource}\"\nfrom = \"{from} ns\"\nlength = \"{} ns\"\n",
                end - from
            );
            if task.reads.contains(resource) {
                text += "access = \"read\"\n";
            }
        }
    }
    text
}

/// What happened: when, to which task, and what.
pub type Event = (u64, usize, Kind);

pub fn in_order(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by_key(|&(at, task, kind)| (at, task, kind as u8));
    events
}

/// The events of these kinds in a simulation.
pub fn simulated(text: &str, wanted: &[Kind], end: u64) -> Vec<Event> {
    let all = records(&read(text), end);
    let wanted = all.iter().filter(|record| wanted.contains(&record.kind));
    in_order(wanted.map(|record| (record.time.as_ns(), record.task as usize, record.kind)).collect())
}

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// One to some tasks a processor, all of different priorities.
pub fn draw_tasks(random: &mut Random, cpus: usize, resources: usize) -> Vec<Task> {
    let count = cpus as u64 * (1 + random.below(3)) + random.below(3);
    let mut tasks = Vec::new();
    for number in 0..count {
        let wcet = 1 + random.below(9);
        let mut sections = Vec::new();
        let mut at = 0;
        for _ in 0..random.below(4) {
            let from = at + random.below(3);
            let end = from + 1 + random.below(4);
            if end <= wcet {
                sections.push((random.below(resources as u64) as usize, from, end));
                at = end;
            }
        }
        let mut arrivals: Vec<u64> = Vec::new();
        let mut time = random.below(6);
        for _ in 0..=random.below(3) {
            arrivals.push(time);
            time += 1 + random.below(20);
        }
        let priority = 3 * random.below(20) as i64 * count as i64 + number as i64;
        tasks.push(Task {
            cpu: (number as usize) % cpus,
            priority,
            arrivals,
            wcet,
            sections,
            reads: Vec::new(),
        });
    }
    tasks
}
