//! Which segment a job is in, where segments may execute longer than their wcets: so that those that do are recorded.

use horolog_model::{System, Task};

/// The segment that the oldest job of a task is in.
#[derive(Clone, Debug, Default)]
pub(crate) struct InSegment {
    /// The wcets of the task's segments; empty where none may execute longer.
    wcets: Box<[u64]>,
    present: u32,
    /// How long the present one executes.
    length: u64,
}

impl InSegment {
    /// Of each task; nothing at all where no segment of any task may execute longer than its wcet.
    pub(crate) fn of(system: &System) -> Vec<InSegment> {
        let may_exceed = |task: &&Task| task.segment_graph().is_some() && task.may_exceed();
        if !system.tasks().iter().any(|task| may_exceed(&task)) {
            return Vec::new();
        }
        let of_task = |task: &Task| {
            let graph = task.segment_graph().filter(|_| task.may_exceed());
            let segments = graph.map_or(&[][..], |graph| &graph.segments);
            let wcets = segments.iter().map(|segment| segment.wcet.as_ns()).collect();
            InSegment { wcets, ..InSegment::default() }
        };
        system.tasks().iter().map(of_task).collect()
    }

    /// The job begins a segment that executes so long.
    pub(crate) fn enter(&mut self, segment: u32, length: u64) {
        (self.present, self.length) = (segment, length);
    }

    /// The present segment and how long it executes, where that is longer than its wcet.
    pub(crate) fn overrun(&self) -> Option<(u64, u64)> {
        let wcet = *self.wcets.get(self.present as usize)?;
        (self.length > wcet).then_some((self.present.into(), self.length))
    }
}
