//! Sections that execute on the processor of their resource (decision 0026): where each goes, at which priority, and the word that says that it may begin.
//!
//! A thread goes there when its job asks, and sleeps there until its section may begin. The kernel's priorities there are the ceilings, so the kernel
//! preempts a section by the one that begins after it. The thread is brought home by the agent of its own processor, once that chooses its job.

use crate::bands;
use horolog_model::{Priority, System, Task, TaskId};
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::{clock, futex};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often a thread that waits looks whether the run is over.
const LOOKS_EVERY: u64 = 5_000_000;

/// Where sections of a resource execute.
#[derive(Clone, Debug)]
struct Place {
    cpus: CpuSet,
    band: u8,
}

#[derive(Debug, Default)]
pub(crate) struct RemoteSections {
    /// By resource.
    places: Vec<Option<Place>>,
    /// By task, whether its section may begin: 1.
    turns: Vec<AtomicU32>,
}

/// The ceilings of a processor's resources do not fit into the priorities that are left for them.
#[derive(Debug)]
pub(crate) struct TooMany {
    pub(crate) cpu: u32,
    pub(crate) out: bands::OutOfBands,
}

impl RemoteSections {
    /// Those of a system.
    pub(crate) fn of(system: &System) -> RemoteSections {
        // Whether they fit was checked before the run.
        let places = places(system).unwrap_or_else(|_| vec![None; system.resources().len()]);
        RemoteSections { places, turns: system.tasks().iter().map(|_| AtomicU32::new(0)).collect() }
    }

    /// Whether they fit.
    pub(crate) fn check(system: &System) -> Result<(), TooMany> {
        places(system).map(|_| ())
    }

    #[inline]
    pub(crate) fn is_one(&self, resource: usize) -> bool {
        self.places.get(resource).is_some_and(Option::is_some)
    }

    /// The section of a task may begin; its thread is woken.
    pub(crate) fn begins(&self, task: TaskId) {
        let turn = &self.turns[task.index()];
        turn.store(1, Ordering::Release);
        let _ = futex::wake(turn, 1);
    }

    /// The calling thread goes to the processor of a resource; whether the kernel let it.
    pub(crate) fn go(&self, resource: usize, has_bands: bool) -> bool {
        let Some(Some(place)) = self.places.get(resource) else { return false };
        let went = set_affinity(0, &place.cpus).is_ok();
        went && (!has_bands || set_class(0, Class::Fifo(place.band)).is_ok())
    }

    /// Sleeps until the section of a task may begin; `false` where the run is over.
    pub(crate) fn wait(&self, task: TaskId, is_over: impl Fn() -> bool) -> bool {
        let turn = &self.turns[task.index()];
        while turn.swap(0, Ordering::AcqRel) == 0 {
            if is_over() {
                return false;
            }
            let _ = futex::wait(turn, 0, clock::monotonic_ns().saturating_add(LOOKS_EVERY));
        }
        true
    }
}

/// Where the sections of each resource execute.
fn places(system: &System) -> Result<Vec<Option<Place>>, TooMany> {
    let mut places = vec![None; system.resources().len()];
    let mut cpus: Vec<u32> = system.resources().iter().filter_map(|it| it.cpu.map(|cpu| cpu.0)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    for cpu in cpus {
        let all = system.resources().iter().enumerate();
        let here: Vec<usize> =
            all.filter(|(_, it)| it.cpu.is_some_and(|it| it.0 == cpu)).map(|(place, _)| place).collect();
        let ceilings: Vec<Priority> = here.iter().map(|&place| ceiling(system, place)).collect();
        // Below the band in which a thread comes: it goes to sleep, or to its own band, at once.
        let assigned = bands::assign(&ceilings, bands::TASKS_LEAST, bands::RUN - 1);
        let assigned = assigned.map_err(|out| TooMany { cpu, out })?;
        for (place, band) in here.into_iter().zip(assigned) {
            places[place] = Some(Place { cpus: CpuSet::new([cpu]), band });
        }
    }
    Ok(places)
}

/// The most important user of a resource.
fn ceiling(system: &System, place: usize) -> Priority {
    let name = &system.resources()[place].name;
    let uses = |task: &&Task| task.sections.iter().any(|section| section.resource == *name);
    let users = system.tasks().iter().filter(uses).filter_map(|task| task.priority);
    users.max_by_key(|priority| priority.number()).unwrap_or(Priority::new(i64::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_there_are_the_ceilings() {
        let task = |name: &str, priority: i64, resource: &str| {
            format!(
                "[[task]]\nname = \"{name}\"\ncpu = 0\npriority = {priority}\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n\
                 [[task.section]]\nresource = \"{resource}\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n"
            )
        };
        let resource = |name: &str, cpu: u32| {
            format!("[[resource]]\nname = \"{name}\"\nprotocol = \"dpcp\"\ncpu = {cpu}\n")
        };
        let text = [
            "[system]\nname = \"s\"\n[platform]\ncpus = 3\n".to_owned(),
            resource("map", 1) + &resource("log", 1) + &resource("far", 2),
            task("a", 1_000, "map") + &task("b", 5, "map") + &task("c", 700, "log") + &task("d", 6, "far"),
        ];
        let (system, _) = horolog_model::file::read(&text.concat(), "s.toml", &[]).expect("a valid file");
        let places = places(&system).expect("they fit");
        let bands: Vec<Option<u8>> = places.iter().map(|place| place.as_ref().map(|it| it.band)).collect();
        assert_eq!(bands, [Some(3), Some(2), Some(6)]);
        let sections = RemoteSections::of(&system);
        assert!(sections.is_one(0) && !sections.is_one(3));
    }

    #[test]
    fn a_turn_is_taken_once() {
        let sections = RemoteSections { places: vec![], turns: vec![AtomicU32::new(0), AtomicU32::new(0)] };
        sections.begins(TaskId(1));
        assert!(sections.wait(TaskId(1), || false));
        assert!(!sections.wait(TaskId(1), || true) && !sections.wait(TaskId(0), || true));
    }
}
