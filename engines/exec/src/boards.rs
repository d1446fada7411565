//! What the threads of a run write and whoever forked the run reads: rings of records, and cells that say what became of each task.

use crate::RunOptions;
use crate::plan::{Mode, Plan};
use crate::ring::Ring;
use horolog_model::System;
use horolog_sys::crash;
use std::sync::Arc;

/// Made before the run's threads, and before its process where it has one of its own.
pub(crate) struct Boards {
    /// One a task.
    pub(crate) rings: Vec<Arc<Ring>>,
    /// One a task.
    pub(crate) cells: Vec<Arc<crash::Cell>>,
    /// One a processor that an agent schedules.
    cpu_rings: Vec<(u32, Arc<Ring>)>,
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
                .map(|_| Ok(Arc::new(Ring::new(capacity)?)))
                .collect::<Result<_, _>>()?,
            cells: system
                .tasks()
                .iter()
                .map(|_| Ok(Arc::new(crash::Cell::new()?)))
                .collect::<Result<_, _>>()?,
            cpu_rings: agents
                .map(|cpu| Ok((cpu.cpu, Arc::new(Ring::new(capacity.saturating_mul(4))?))))
                .collect::<Result<_, horolog_sys::Error>>()?,
        })
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
