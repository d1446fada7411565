//! Collects the terms of one bound.

use crate::cpu_model::{CpuModel, CpuServer, CpuTask, Held};
use crate::error::AnalysisError;
use crate::explanation::{Term, TermKind};
use horolog_model::System;
use horolog_time::Span;

/// Collects terms; counts are those of the equations that gave the bound.
pub(crate) struct Terms<'a> {
    system: &'a System,
    cpu: &'a CpuModel,
    pub(crate) switches: u128,
    /// Switching of servers, ns.
    pub(crate) server_switching: u128,
    pub(crate) list: Vec<Term>,
}

impl<'a> Terms<'a> {
    /// None yet; the switch that has begun when the window opens counts already.
    pub(crate) fn new(system: &'a System, cpu: &'a CpuModel) -> Terms<'a> {
        Terms { system, cpu, switches: 1, server_switching: 0, list: Vec::new() }
    }

    pub(crate) fn add(&mut self, kind: TermKind, who: Option<&str>, count: Option<u64>, ns: u64) {
        if ns > 0 {
            let (who, time) = (who.map(str::to_owned), Span::from_ns(ns));
            self.list.push(Term { kind, who, resource: None, count, time });
        }
    }

    /// A section of the task at `index` that blocks.
    pub(crate) fn section(&mut self, kind: TermKind, index: usize, held: &Held, ns: u64) {
        if ns > 0 {
            let who = Some(self.cpu.tasks[index].name.clone());
            let resource = self.system.resources().get(held.resource).map(|resource| resource.name.clone());
            self.list.push(Term { kind, who, resource, count: None, time: Span::from_ns(ns) });
        }
    }

    /// Jobs of the task at `index`: their own work, and their switches for later.
    pub(crate) fn jobs(&mut self, kind: TermKind, index: usize, count: u128) -> Result<(), AnalysisError> {
        self.work_of(kind, &self.cpu.tasks[index], count)
    }

    pub(crate) fn work_of(
        &mut self,
        kind: TermKind,
        task: &CpuTask,
        count: u128,
    ) -> Result<(), AnalysisError> {
        let count = narrow(count)?;
        let work = count.checked_mul(task.bare_wcet).ok_or_else(|| too_long("interference"))?;
        self.switches += 2 * u128::from(count) * u128::from(task.turns());
        let who = (kind != TermKind::OwnWork).then_some(task.name.as_str());
        self.add(kind, who, Some(count), work);
        let spin = count.checked_mul(task.spin).ok_or_else(|| too_long("waits for spin locks"))?;
        self.add(TermKind::Spinning, Some(&task.name), Some(count), spin);
        let locking = count.checked_mul(task.locking).ok_or_else(|| too_long("what locking costs"))?;
        self.add(TermKind::Locking, Some(&task.name), Some(count), locking);
        Ok(())
    }

    /// The context switches: two for every job so far, and the one that has begun.
    pub(crate) fn switches(&mut self) -> Result<(), AnalysisError> {
        let switch = u128::from(self.cpu.context_switch);
        let time = narrow(self.switches * switch + self.server_switching)?;
        let switches = self.switches + self.server_switching.checked_div(switch).unwrap_or(0);
        self.add(TermKind::ContextSwitches, None, Some(narrow(switches)?), time);
        Ok(())
    }

    /// Executions of a server, each of its whole capacity: their work, and their switches for later.
    pub(crate) fn server(&mut self, server: &CpuServer, count: u128) -> Result<(), AnalysisError> {
        let Some(load) = &server.load else { return Ok(()) };
        let time = count * u128::from(load.wcet - server.overhead);
        self.server_switching += count * u128::from(server.overhead);
        self.add(TermKind::Server, Some(&server.name), Some(narrow(count)?), narrow(time)?);
        Ok(())
    }

    /// The measured loads of this processor, and what the kernel serves.
    pub(crate) fn outside(&mut self, system: &System, ns: u64) {
        let names = self.cpu.names_of_interferences(system);
        self.add(TermKind::Outside, Some(&names), None, ns);
    }
}

pub(crate) fn too_long(what: &'static str) -> AnalysisError {
    AnalysisError::overflow("task", what)
}

pub(crate) fn narrow(value: u128) -> Result<u64, AnalysisError> {
    u64::try_from(value).map_err(|_| too_long("response time"))
}
