//! The analysis of what is placed so far, for systems in which a placement changes more than one processor, or a processor has more than tasks.

use super::fit::Judge;
use super::units::{Unit, density_or_none};
use super::{Acceptance, Work};
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::Schedulable;
use horolog_model::{CpuId, DeviceService, Draft, Policy, System};
use std::collections::BTreeSet;

/// Every placement is analysed as `analyze` would a file that has only what is placed.
pub(super) struct Whole<'a> {
    draft: Draft,
    units: &'a [Unit],
    cpus: Vec<CpuId>,
    /// The processor of each task that is placed.
    placed: Vec<Option<usize>>,
    /// Whether tasks of several processors share resources.
    is_coupled: bool,
    system: &'a System,
    acceptance: Acceptance,
    options: Options,
    work: &'a mut Work,
}

impl<'a> Whole<'a> {
    pub(super) fn new(
        (system, cpus): (&'a System, &[CpuId]),
        units: &'a [Unit],
        acceptance: Acceptance,
        options: &Options,
        work: &'a mut Work,
    ) -> Whole<'a> {
        let is_global = |name: &str| {
            system.find_resource(name).is_some_and(|it| system.resources()[it].protocol.is_global())
        };
        let mut sections = system.tasks().iter().flat_map(|task| &task.sections);
        Whole {
            draft: system.to_draft(),
            units,
            cpus: cpus.to_vec(),
            placed: vec![None; system.tasks().len()],
            is_coupled: sections.any(|section| is_global(&section.resource)),
            system,
            acceptance,
            options: Options { sensitivity: false, ..options.clone() },
            work,
        }
    }

    pub(super) fn keep(&mut self, unit: usize, processor: usize) {
        for id in &self.units[unit].tasks {
            self.placed[id.index()] = Some(processor);
        }
    }

    /// The system of what is placed: on all processors where they are coupled, else on one alone.
    fn part(&self, processor: usize) -> Option<System> {
        let is_in = |index: usize| match self.placed[index] {
            Some(own) => self.is_coupled || own == processor,
            None => false,
        };
        let here = |cpu: CpuId| self.is_coupled || cpu == self.cpus[processor];
        let mut draft = Draft { tasks: Vec::new(), links: Vec::new(), ..self.draft.clone() };
        for (index, task) in self.draft.tasks.iter().enumerate().filter(|(index, _)| is_in(*index)) {
            let mut task = task.clone();
            task.cpu = self.cpus[self.placed[index]?];
            draft.tasks.push(task);
        }
        let names: BTreeSet<String> = draft.tasks.iter().map(|task| task.name.clone()).collect();
        draft.servers.retain(|server| here(server.cpu));
        draft.interrupts.retain(|it| here(it.cpu));
        draft.interferences.retain(|it| here(it.cpu));
        draft.devices.retain(|it| here(it.cpu));
        draft.requests.retain(|it| names.contains(&it.task));
        // A closed device whose askers are elsewhere is not there: it stays with the tasks that ask it.
        let asked: BTreeSet<String> = draft.requests.iter().map(|it| it.device.clone()).collect();
        let was_asked = |name: &str| self.draft.requests.iter().any(|it| it.device == name);
        draft.devices.retain(|it| !was_asked(&it.name) || asked.contains(&it.name));
        let servers: BTreeSet<&str> = draft.servers.iter().map(|server| server.name.as_str()).collect();
        draft.devices.retain(|it| match &it.service {
            DeviceService::Server { server } => servers.contains(server.as_str()),
            _ => true,
        });
        System::new(draft).ok()
    }

    fn is_within_bound(&self, processor: usize) -> bool {
        let here = (0..self.placed.len()).filter(|&index| self.placed[index] == Some(processor));
        let densities: Option<Vec<(u64, u64)>> =
            here.map(|index| density_or_none(self.system, &self.draft.tasks[index])).collect();
        let Some(densities) = densities else { return false };
        match self.system.policy() {
            Policy::Edf => crate::utilisation::compare_with_one(densities.into_iter()).is_le(),
            _ => {
                let one = 1_u128 << 60;
                let step = |all: u128, (c, t): (u64, u64)| {
                    let factor = one + (u128::from(c) * one).div_ceil(u128::from(t));
                    all.checked_mul(factor).map_or(2 * one + 1, |all| all.div_ceil(one).min(2 * one + 1))
                };
                densities.into_iter().fold(one, step) <= 2 * one
            }
        }
    }
}

impl Judge for Whole<'_> {
    fn accepts(&mut self, unit: usize, processor: usize) -> Result<bool, AnalysisError> {
        self.keep(unit, processor);
        let accepted = match self.acceptance {
            Acceptance::Utilisation => self.is_within_bound(processor),
            Acceptance::Exact => {
                let part = self.part(processor);
                let options = &self.options;
                self.work.test(|_| {
                    // What a placement leads out of the assumptions of every test is no placement.
                    let found = part.map(|part| crate::analyze(&part, options));
                    Ok(matches!(found, Some(Ok(analysis)) if analysis.schedulable == Schedulable::Yes))
                })?
            }
        };
        if !accepted {
            for id in &self.units[unit].tasks {
                self.placed[id.index()] = None;
            }
        }
        Ok(accepted)
    }
}
