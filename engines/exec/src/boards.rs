//! What the threads of a run write and whoever forked the run reads: rings of records, and cells that say what became of each task.

use crate::RunOptions;
use crate::plan::{Mode, Plan};
use crate::ring::Ring;
use horolog_model::{System, Task, TaskId};
use horolog_sys::crash;
use horolog_sys::shared_words::SharedWords;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The library of the task's body is loaded: its constructors run.
pub(crate) const LOADS: u64 = 1;
/// The `init` of the task's body runs.
pub(crate) const MAKES_READY: u64 = 2;

/// Made before the run's threads, and before its process where it has one of its own.
pub(crate) struct Boards {
    /// One a task.
    pub(crate) rings: Vec<Arc<Ring>>,
    /// One a task.
    pub(crate) cells: Vec<Arc<crash::Cell>>,
    /// What each task's code does before the start: [`LOADS`], [`MAKES_READY`], else nothing.
    pub(crate) stages: Arc<SharedWords>,
    /// One a processor that an agent schedules.
    cpu_rings: Vec<(u32, Arc<Ring>)>,
}

/// A collector that is kept waiting for a second loses nothing.
const WAITING_NS: u64 = 1_000_000_000;
/// A job's release, start, end and miss.
const OF_A_JOB: u64 = 4;
/// At least so many: servers, modes, devices and overruns write records, too.
const LEAST: u64 = 512;
/// At least so many where user code passes preemption points, whose number it alone knows.
const LEAST_WITH_POINTS: u64 = 2048;

/// How many records a task can write in the longest time between two looks of the collector.
fn needed(task: &Task) -> usize {
    let points = task.segment_graph().map_or(0, |graph| graph.segments.len() as u64);
    let separation = task.separation().map_or(WAITING_NS, |span| span.as_ns().max(1));
    let jobs = WAITING_NS / separation + 1;
    let least = if points > 0 { LEAST_WITH_POINTS } else { LEAST };
    usize::try_from(jobs.saturating_mul(OF_A_JOB + points).max(least)).unwrap_or(usize::MAX)
}

impl Boards {
    /// For the tasks of `system`, the threads of emulated devices among them.
    pub(crate) fn new(
        system: &System,
        plan: &Plan,
        options: &RunOptions,
    ) -> Result<Boards, horolog_sys::Error> {
        let agents = plan.cpus.iter().filter(|cpu| cpu.mode == Mode::Authoritative);
        let capacity = options.ring_capacity;
        Ok(Boards {
            rings: system
                .tasks()
                .iter()
                .map(|task| Ok(Arc::new(Ring::new(needed(task).min(capacity))?)))
                .collect::<Result<_, _>>()?,
            cells: system
                .tasks()
                .iter()
                .map(|_| Ok(Arc::new(crash::Cell::new()?)))
                .collect::<Result<_, _>>()?,
            stages: Arc::new(SharedWords::new(system.tasks().len())?),
            cpu_rings: agents
                .map(|cpu| Ok((cpu.cpu, Arc::new(Ring::new(capacity.saturating_mul(4))?))))
                .collect::<Result<_, horolog_sys::Error>>()?,
        })
    }

    /// Does what belongs to this stage of a task.
    pub(crate) fn at_stage<R>(stages: &SharedWords, task: TaskId, stage: u64, act: impl FnOnce() -> R) -> R {
        stages[task.index()].store(stage, Ordering::Release);
        let result = act();
        stages[task.index()].store(0, Ordering::Release);
        result
    }

    /// The ring of a processor that an agent schedules.
    pub(crate) fn of_cpu(&self, cpu: u32) -> Option<Arc<Ring>> {
        self.cpu_rings.iter().find(|(number, _)| *number == cpu).map(|(_, ring)| ring.clone())
    }

    /// A processor's ring before those of its tasks: see [`crate::collect::Collector::turn`].
    pub(crate) fn in_order(&self) -> Vec<Arc<Ring>> {
        self.cpu_rings.iter().map(|(_, ring)| ring.clone()).chain(self.rings.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed_of(words: &str) -> usize {
        let text = format!(
            "[system]\nname = \"t\"\n[platform]\ncpus = [1]\n[[task]]\nname = \"t\"\npriority = 5\n{words}\n"
        );
        let (system, _) =
            horolog_model::file::read(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        needed(&system.tasks()[0])
    }

    #[test]
    fn a_ring_holds_a_second_of_its_task() {
        assert_eq!(needed_of("period = \"10 ms\"\nwcet = \"1 ms\""), 512);
        // 1,001 jobs of four records, and of seven with three segments.
        assert_eq!(needed_of("period = \"1 ms\"\nwcet = \"0.1 ms\""), 4004);
        let segments = "preemption = \"deferred\"\nsegments = [\"10 us\", \"10 us\", \"10 us\"]";
        assert_eq!(needed_of(&format!("period = \"1 ms\"\n{segments}")), 7007);
        assert_eq!(needed_of(&format!("period = \"1 s\"\n{segments}")), 2048);
        assert_eq!(needed_of("separation = \"100 us\"\nwcet = \"1 us\""), 40_004);
    }
}
