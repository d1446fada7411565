//! The order of sections in a file changes nothing: permuting `[[server]]` changes ids alone; permuting `[[task]]` only ties that
//! the documents give to the lower id, so nothing where priorities are distinct. Draws go by names.

use horolog_model::{Draft, LowPriority, Priority, ServerKind, System};
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_testkit::{Ingredients, Random, Serving, served_system};
use horolog_time::Span;
use horolog_trace::{Kind, Outcome, Record};

/// A record with names instead of ids.
type Named = (u64, String, u16, String, u64, String, u64);

fn run(system: &System, seed: u64) -> Option<(Vec<Named>, Outcome)> {
    let options = SimOptions {
        horizon: Horizon::Time(Span::from_ns(100_000)),
        seed,
        jitter: DelayChoice::Uniform,
        latency: DelayChoice::Uniform,
        execution: ExecutionChoice::Uniform,
        sporadic_extra: Span::from_ns(seed % 3 * 997),
        ..SimOptions::default()
    };
    let mut records: Vec<Record> = Vec::new();
    // Overload outgrows the backlog, and dual priority refuses hard tasks that miss even alone: in every order.
    let mut outcome = simulate(&horolog_testkit::resolved(system), &options, &mut records).ok()?;
    outcome.tasks.sort_by(|a, b| a.name.cmp(&b.name));
    outcome.servers.sort_by(|a, b| a.name.cmp(&b.name));
    outcome.notes.clear();
    Some((named(system, &records), outcome))
}

/// With names, and in an order of their own at each instant.
fn named(system: &System, records: &[Record]) -> Vec<Named> {
    let name = |record: &Record| {
        let of_server =
            matches!(record.kind, Kind::BudgetExhausted | Kind::BudgetReplenished | Kind::SlackChange);
        let task = system.tasks().get(record.task as usize).map_or("", |task| task.name.as_str());
        let value = match system.servers().get(record.value as usize) {
            Some(server) if of_server => server.name.clone(),
            _ => record.value.to_string(),
        };
        let kind = format!("{:?}", record.kind);
        (record.time.as_ns(), kind, record.cpu, task.to_owned(), record.job, value, record.extra)
    };
    let mut all: Vec<Named> = records.iter().map(name).collect();
    all.sort();
    all
}

fn shuffle<T>(random: &mut Random, list: &mut [T]) {
    for last in (1..list.len()).rev() {
        list.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// Servers with the same budgets, periods and, mostly, priorities, so that their timers coincide.
fn make_equal(draft: &mut Draft) {
    let Some(first) = draft.servers.first().map(|server| server.kind) else { return };
    for server in draft.servers.iter_mut().skip(1) {
        server.kind = first;
    }
}

fn watches(draft: &Draft) -> bool {
    let watches = |kind: &ServerKind| {
        matches!(
            kind,
            ServerKind::PriorityExchange { .. }
                | ServerKind::DualPriority { .. }
                | ServerKind::SlackStealing { .. }
        )
    };
    draft.servers.iter().any(|server| watches(&server.kind))
}

#[test]
fn the_order_of_servers_changes_ids_alone() {
    let mut compared = 0;
    for serving in [Serving::Placed, Serving::Edf, Serving::TotalBandwidth, Serving::Kernel] {
        for index in 0..150 {
            let ingredients = if index % 2 == 0 { Ingredients::NONE } else { Ingredients::ALL };
            let mut draft = served_system(31, index, serving, ingredients).to_draft();
            if index % 3 > 0 && !watches(&draft) && serving != Serving::Kernel {
                make_equal(&mut draft);
            }
            if draft.servers.len() < 2 {
                continue;
            }
            let system = System::new(draft.clone()).expect("equal servers break no rule");
            draft.servers.reverse();
            let reversed = System::new(draft).expect("an order breaks no rule");
            assert_eq!(run(&system, index), run(&reversed, index), "{serving:?} {index}: {system:#?}");
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared}");
}

/// Distinct priorities everywhere, one soft task a server.
fn make_distinct(draft: &mut Draft) {
    let alone: Vec<String> = draft.servers.iter().map(|server| server.tasks[0].clone()).collect();
    let all: Vec<String> = draft.servers.iter().flat_map(|server| server.tasks.clone()).collect();
    draft.tasks.retain(|task| !all.contains(&task.name) || alone.contains(&task.name));
    for (place, task) in draft.tasks.iter_mut().enumerate() {
        task.priority = task.priority.map(|priority| Priority::new(64 * priority.number() + place as i64));
    }
    for (place, server) in draft.servers.iter_mut().enumerate() {
        server.tasks.truncate(1);
        let place = 40 + place as i64;
        let apart = |priority: &mut Priority| *priority = Priority::new(64 * priority.number() + place);
        match &mut server.kind {
            ServerKind::Polling { priority, low_priority, .. }
            | ServerKind::Deferrable { priority, low_priority, .. }
            | ServerKind::Sporadic { priority, low_priority, .. } => {
                apart(priority);
                match low_priority {
                    LowPriority::At(low) => *low = Priority::new(64 * low.number() - place),
                    LowPriority::Background => *low_priority = LowPriority::At(Priority::new(-9_000 - place)),
                    _ => {}
                }
            }
            ServerKind::PriorityExchange { priority, .. } => apart(priority),
            _ => {}
        }
    }
}

#[test]
fn the_order_of_tasks_changes_nothing_where_priorities_are_distinct() {
    let mut compared = 0;
    for serving in [Serving::Placed, Serving::SlackPolicy] {
        for index in 0..200 {
            let ingredients = if index % 2 == 0 { Ingredients::NONE } else { Ingredients::ALL };
            let mut draft = served_system(37, index, serving, ingredients).to_draft();
            make_distinct(&mut draft);
            // Two servers in the background would be equals there.
            let is_background = |kind: &ServerKind| matches!(kind, ServerKind::Background);
            if draft.servers.iter().filter(|server| is_background(&server.kind)).count() > 1 {
                continue;
            }
            let Ok(system) = System::new(draft.clone()) else { panic!("{draft:#?}") };
            let mut random = Random::of_item(3, index);
            shuffle(&mut random, &mut draft.tasks);
            shuffle(&mut random, &mut draft.servers);
            let shuffled = System::new(draft).expect("an order breaks no rule");
            assert_eq!(run(&system, index), run(&shuffled, index), "{serving:?} {index}: {system:#?}");
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}
