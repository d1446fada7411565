//! The timeline of a trace, with the names of what its records number.

use crate::LoopError;
use horolog_model::{Companion, Role, ServerId, ServerKind, SporadicRules, System};
use horolog_report as page;
use horolog_time::Span;
use horolog_trace::Outcome;
use horolog_trace::file::{Header, Reader, Thread};
use horolog_trace::statistics::Statistics;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// One run of the loop: its outcome, the distributions and the timeline of its trace.
#[cfg(feature = "run")]
pub(crate) fn run_of(system: &System, outcome: &Outcome, path: &Path) -> Result<page::Run, LoopError> {
    let mut reader = Reader::open(path)?;
    let (header, options) = of_reader(Some(system), &mut reader)?;
    let mut builder = page::TimelineBuilder::new(options);
    while let Some(record) = reader.next_record() {
        builder.push(&record);
    }
    Ok(run(&header, outcome, builder))
}

/// A trace alone: the outcome recomputed from its records, the distributions, and the timeline of so many records at the most.
pub(crate) fn run_of_trace(
    system: Option<&System>,
    path: &Path,
    limit: u64,
) -> Result<(Outcome, page::Run), LoopError> {
    let mut reader = Reader::open(path)?;
    let (header, options) = of_reader(system, &mut reader)?;
    let mut builder = page::TimelineBuilder::new(page::TimelineOptions { limit, ..options });
    let mut statistics = Statistics::new(&header);
    while let Some(record) = reader.next_record() {
        builder.push(&record);
        statistics.take(&record);
    }
    let mut outcome = statistics.outcome();
    outcome.events_lost = outcome.events_lost.max(reader.lost());
    outcome.notes.extend(reader.damage().map(|damage| format!("The trace is damaged: {damage}.")));
    let run = run(&header, &outcome, builder);
    Ok((outcome, run))
}

/// A run as the page has it.
pub(crate) fn run(header: &Header, outcome: &Outcome, builder: page::TimelineBuilder) -> page::Run {
    let kind = if header.is_simulated() { page::RunKind::Simulated } else { page::RunKind::Measured };
    let statistics = builder.statistics();
    page::Run::new(kind, header.start, outcome, &statistics, Some(builder.finish()))
}

fn of_reader(
    system: Option<&System>,
    reader: &mut Reader<BufReader<File>>,
) -> Result<(Header, page::TimelineOptions), LoopError> {
    let header = reader.header().clone();
    let threads = reader.load_footer()?.map(|footer| footer.threads.clone()).unwrap_or_default();
    let options = options(system, &header, threads);
    Ok((header, options))
}

/// What the timeline of a trace with this head draws.
pub(crate) fn options(
    system: Option<&System>,
    header: &Header,
    threads: Vec<Thread>,
) -> page::TimelineOptions {
    let numbers = header.numbers.clone().unwrap_or_default();
    let mut options = page::TimelineOptions {
        start: header.start,
        tasks: header.tasks.clone(),
        interrupts: numbers.interrupts,
        softirqs_are_devices: !numbers.devices.is_empty(),
        threads: threads
            .into_iter()
            .map(|thread| page::TimelineThread { id: thread.id, idle: thread.tid == 0, name: thread.comm })
            .collect(),
        ..page::TimelineOptions::default()
    };
    let Some(system) = system else { return options };
    options.devices = system.devices().iter().map(|device| device.name.clone()).collect();
    options.requests = requests(system);
    if let Ok(companion) = header.companion(system) {
        options.tasks = task_names(&companion);
        options.servers = servers(&companion.system);
    }
    options
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
