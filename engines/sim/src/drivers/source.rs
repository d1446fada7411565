//! Where the jobs of the companion's tasks come from: the file's tasks draw theirs, threads of drivers execute what
//! waits in the rings.

use super::processor::Processor;
use super::requests::{Portions, RequestRun};
use crate::drawn::Drawn;
use crate::error::Reason;
use crate::options::SimOptions;
use crate::source::{NextJob, Source};
use horolog_model::{Companion, Role, System};
use horolog_sched::Lent;

/// All that is not in the scheduling machine.
#[derive(Debug)]
pub(crate) struct Driven {
    drawn: Drawn,
    roles: Vec<Role>,
    /// For each task of the file, where its jobs ask for something.
    pub(crate) portions: Vec<Portions>,
    /// One a lane of the engine, in the order of the lanes.
    pub(crate) processors: Vec<Processor>,
    pub(crate) requests: Vec<RequestRun>,
    /// Which processor and which of its devices each device of the file is.
    pub(crate) places: Vec<(usize, usize)>,
    /// Which processor each task of the companion is on.
    lanes: Vec<usize>,
}

impl Driven {
    pub(crate) fn new(
        system: &System,
        companion: &Companion,
        lent: &[Lent],
        options: &SimOptions,
    ) -> Result<Driven, Reason> {
        let mut cpus: Vec<_> = companion.system.tasks().iter().map(|task| task.cpu).collect();
        let lane_of: Vec<_> = cpus.clone();
        cpus.sort_unstable();
        cpus.dedup();
        let processors: Vec<Processor> = cpus
            .iter()
            .map(|&cpu| Processor::new(system, companion, lent, cpu, options))
            .collect::<Result<_, _>>()?;
        let mut places = vec![(0, 0); system.devices().len()];
        for (lane, processor) in processors.iter().enumerate() {
            for (index, device) in processor.devices.iter().enumerate() {
                places[device.id] = (lane, index);
            }
        }
        Ok(Driven {
            drawn: Drawn::new(&companion.system, options)?,
            roles: companion.roles.clone(),
            portions: system.task_ids().map(|id| Portions::new(system, id)).collect(),
            processors,
            requests: system.requests().iter().map(|request| RequestRun::new(system, request)).collect(),
            places,
            lanes: lane_of.iter().map(|cpu| cpus.binary_search(cpu).unwrap_or(0)).collect(),
        })
    }

    pub(crate) fn role(&self, task: u32) -> Role {
        self.roles[task as usize]
    }
}

impl Source for Driven {
    #[inline]
    fn next_job(&mut self, task: usize) -> Option<NextJob> {
        // Threads of drivers are woken by what happens.
        if self.roles[task] == Role::Task { self.drawn.next_job(task) } else { None }
    }

    fn restart(&mut self, task: usize, at: u64, separation: u64) {
        self.drawn.restart(task, at, separation);
    }

    fn pass_over(&mut self, task: usize) {
        self.drawn.pass_over(task);
    }

    /// What it waited for comes, and no job goes on with it.
    fn abandon(&mut self, task: usize) {
        let own = self.requests.iter_mut().filter(|request| request.task as usize == task);
        own.for_each(|request| request.waiting_since = None);
    }

    fn begin(&mut self, task: usize) -> u64 {
        match self.roles[task] {
            Role::Task => {
                let whole = self.drawn.begin(task);
                self.portions[task].begin(whole)
            }
            Role::Handler(device) => {
                let (lane, index) = self.places[device];
                self.processors[lane].devices[index].front_cost()
            }
            Role::Background => self.processors[self.lanes[task]].begin_in_background(),
        }
    }

    #[inline]
    fn advance(&mut self, task: usize) -> Option<(u32, u64)> {
        if self.roles[task] == Role::Task { self.drawn.advance(task) } else { None }
    }
}
