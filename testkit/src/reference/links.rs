//! What links hand over: every latch looks at every job of the writer anew. From decision 0009 alone.

use super::{Event, Job, Schedule, What};
use horolog_model::System;

/// What a reader's job takes from a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Latch {
    /// When the job is noticed.
    pub at: u64,
    /// The reader, by its place in the system.
    pub task: usize,
    /// Its job, from 0.
    pub job: usize,
    /// The link, by its place in the system.
    pub link: usize,
    /// Whose value it is: a job of the writer.
    pub instance: Option<usize>,
}

/// A value that is there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Publication {
    /// When the job ended.
    pub at: u64,
    /// The writer's job, from 0.
    pub job: usize,
    /// The link, by its place in the system.
    pub link: usize,
    /// From when on readers get it.
    pub nominal: u64,
}

/// When a job has ended.
fn end_of(schedule: &Schedule, task: usize, job: usize) -> Option<u64> {
    let is_it =
        |event: &&Event| event.task == task && event.job == job && matches!(event.what, What::Completion);
    schedule.events.iter().find(is_it).map(|event| event.at)
}

/// The publications of a schedule, in order of time.
///
/// # Panics
/// Where a link names no task of the system.
#[must_use]
pub fn published(system: &System, jobs: &[Vec<Job>], schedule: &Schedule) -> Vec<Publication> {
    let mut all = Vec::new();
    for (link, of) in system.links().iter().enumerate() {
        let writer = place_of(system, &of.from);
        let relative = system.tasks()[writer].deadline.map_or(0, |deadline| deadline.as_ns());
        for (job, spec) in jobs[writer].iter().enumerate() {
            if let Some(at) = end_of(schedule, writer, job) {
                all.push(Publication { at, job, link, nominal: spec.arrival + relative });
            }
        }
    }
    all.sort_unstable();
    all
}

/// What the jobs that are noticed before `end` take, in order of time.
///
/// # Panics
/// Where a link names no task of the system.
#[must_use]
pub fn latches(system: &System, jobs: &[Vec<Job>], schedule: &Schedule, end: u64) -> Vec<Latch> {
    let publications = published(system, jobs, schedule);
    let mut all = Vec::new();
    for (link, of) in system.links().iter().enumerate() {
        for reader in of.to.iter().map(|name| place_of(system, name)) {
            for (job, spec) in jobs[reader].iter().enumerate().filter(|(_, spec)| spec.ready < end) {
                let mut best: Option<Publication> = None;
                for other in publications.iter().filter(|other| other.link == link) {
                    let is_there = other.at <= spec.arrival && other.nominal <= spec.arrival;
                    let is_later = best.is_none_or(|best| {
                        other.nominal > best.nominal || other.nominal == best.nominal && other.job > best.job
                    });
                    if is_there && is_later {
                        best = Some(*other);
                    }
                }
                all.push(Latch {
                    at: spec.ready,
                    task: reader,
                    job,
                    link,
                    instance: best.map(|best| best.job),
                });
            }
        }
    }
    all.sort_unstable();
    all
}

fn place_of(system: &System, name: &str) -> usize {
    let place = system.tasks().iter().position(|task| task.name == name);
    place.unwrap_or_else(|| panic!("a link names a task of the system, not {name}"))
}
