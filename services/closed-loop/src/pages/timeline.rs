//! The timeline of a trace, with the names of what its records number.

use crate::LoopError;
use horolog_model::{Companion, Role, ServerId, ServerKind, SporadicRules, System};
use horolog_report as page;
use horolog_time::Span;
use horolog_trace::Outcome;
use horolog_trace::file::Reader;
use std::path::Path;

/// One run: its outcome, the distributions and the timeline of its trace.
pub(super) fn run(
    system: &System,
    kind: page::RunKind,
    outcome: &Outcome,
    path: &Path,
) -> Result<page::Run, LoopError> {
    let mut reader = Reader::open(path)?;
    let header = reader.header().clone();
    let threads = reader.load_footer()?.map(|footer| footer.threads.clone()).unwrap_or_default();
    let numbers = header.numbers.clone().unwrap_or_default();
    let mut options = page::TimelineOptions {
        start: header.start,
        tasks: header.tasks.clone(),
        devices: system.devices().iter().map(|device| device.name.clone()).collect(),
        requests: requests(system),
        interrupts: numbers.interrupts,
        softirqs_are_devices: !numbers.devices.is_empty(),
        threads: threads
            .into_iter()
            .map(|thread| page::TimelineThread { id: thread.id, idle: thread.tid == 0, name: thread.comm })
            .collect(),
        ..page::TimelineOptions::default()
    };
    if let Ok(companion) = header.companion(system) {
        options.tasks = task_names(&companion);
        options.servers = servers(&companion.system);
    }
    let mut builder = page::TimelineBuilder::new(options);
    while let Some(record) = reader.next_record() {
        builder.push(&record);
    }
    let statistics = builder.statistics();
    Ok(page::Run::new(kind, header.start, outcome, &statistics, Some(builder.finish())))
}

/// What the lanes of tasks and of drivers' threads are called.
fn task_names(companion: &Companion) -> Vec<String> {
    let named = companion.system.tasks().iter().zip(&companion.roles);
    let name = |(task, role): (&horolog_model::Task, &Role)| match role {
        Role::Task | Role::Background => task.name.clone(),
        Role::Handler(_) => format!("{} (driver)", task.name),
    };
    named.map(name).collect()
}

/// The device of each request.
fn requests(system: &System) -> Vec<usize> {
    let device = |name: &String| system.devices().iter().position(|device| device.name == *name);
    // A request's device is checked to be there.
    system.requests().iter().map(|request| device(&request.device).unwrap_or(usize::MAX)).collect()
}

/// The servers whose budget can be followed, in the order of the records' numbers: not one that others may use (priority exchange).
fn servers(system: &System) -> Vec<Option<page::TimelineServer>> {
    let server = |id: ServerId| {
        let server = system.server(id);
        let is_exchanged = matches!(server.kind, ServerKind::PriorityExchange { .. });
        let capacity = server.kind.capacity().filter(|_| server.kind.is_budgeted() && !is_exchanged)?;
        let tasks = system.task_ids().filter(|task| system.schedulers_above(*task).any(|above| above == id));
        let refill = match server.kind {
            ServerKind::Polling { .. } => page::Refill::LostWithoutWork,
            ServerKind::Deferrable { .. } => page::Refill::EachPeriod(capacity.period),
            ServerKind::Sporadic { rules: SporadicRules::Corrected, .. } => {
                page::Refill::AfterUse(capacity.period)
            }
            _ => page::Refill::Recorded,
        };
        let starts_empty = matches!(server.kind, ServerKind::Polling { .. });
        Some(page::TimelineServer {
            name: server.name.clone(),
            cpu: u16::try_from(server.cpu.0).ok()?,
            budget: capacity.budget,
            initial: if starts_empty { Span::ZERO } else { capacity.budget },
            refill,
            tasks: tasks.map(|task| task.0).collect(),
        })
    };
    system.server_ids().map(server).collect()
}
