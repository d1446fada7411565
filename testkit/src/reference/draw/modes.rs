//! Systems with one to three modes beside the base mode.

use super::trees::Tables;
use super::{Kind, any_arrivals, ns};
use crate::Random;
use horolog_model::{
    Arrival, Capacity, Draft, ExecutionTimes, LeftOver, Mode, Order, OverrunPolicy, Priority, SecondRequest,
    Server, ServerChange, ServerKind, TakesEffect, TaskChange,
};

/// A system without modes of some kind, and modes for it.
pub(super) fn draft(random: &mut Random, end: u64) -> Draft {
    let mut draft = match random.below(8) {
        0 => super::clusters::draft(random),
        1 => super::beside_servers(random, Kind::Edf, end),
        2 => super::beside_servers(random, Kind::FixedPriority, end),
        3 => super::beside_servers(random, Kind::Polling, end),
        4 => super::beside_servers(random, Kind::Sporadic, end),
        5 => {
            let kind = [Kind::ConstantBandwidth, Kind::TotalBandwidth][random.below(2) as usize];
            super::beside_servers(random, kind, end)
        }
        _ => super::beside_servers(random, Kind::Deferrable, end),
    };
    add_modes(random, &mut draft, end);
    draft
}

/// A tree of schedulers with modes; half of them with time tables.
pub(super) fn beside_trees(random: &mut Random, end: u64) -> Draft {
    let tables = [Tables::No, Tables::Anywhere][random.below(2) as usize];
    let mut draft = super::trees::draft(random, end, tables);
    add_modes(random, &mut draft, end);
    draft
}

/// Modes, and jobs that execute longer than their wcet, by up to four units; most of these ask for one of the modes then.
pub(super) fn with_overruns(random: &mut Random, end: u64) -> Draft {
    let mut draft = loop {
        let draft = if random.below(3) == 0 { beside_trees(random, end) } else { draft(random, end) };
        if draft.clusters.is_empty() {
            break draft;
        }
    };
    let modes: Vec<String> = draft.modes.iter().map(|mode| mode.name.clone()).collect();
    for task in draft.tasks.iter_mut().filter(|task| task.segment_graph().is_none()) {
        if random.below(3) == 0 {
            continue;
        }
        let (bcet, wcet) = (task.bcet.as_ns(), task.wcet.as_ns());
        let count = random.between(1, 4);
        let times = (0..count).map(|_| match random.below(3) {
            0 => ns(random.between(bcet, wcet)),
            1 => ns(wcet + 1),
            _ => ns(random.between(wcet, wcet + 4)),
        });
        task.execution = ExecutionTimes::Jobs(times.collect());
        if random.below(4) > 0 {
            let mode = &modes[random.below(modes.len() as u64) as usize];
            task.overrun = OverrunPolicy::Mode(mode.clone());
        }
    }
    draft
}

/// One to three modes, and nothing that is drawn during a run.
fn add_modes(random: &mut Random, draft: &mut Draft, end: u64) {
    draft.platform.tick = None;
    draft.platform.release_latency = None;
    draft.platform.timer_interrupt = None;
    for task in &mut draft.tasks {
        // What is drawn during a run depends on who is released.
        task.jitter = ns(0);
        if task.execution == ExecutionTimes::Uniform {
            task.execution = ExecutionTimes::Wcet;
        }
    }
    let count = random.between(1, 3);
    for place in 0..count {
        let mode = mode(random, draft, place, end);
        draft.modes.push(mode);
    }
}

fn left_over(random: &mut Random) -> LeftOver {
    [LeftOver::Finish, LeftOver::Drop, LeftOver::Suspend][random.below(3) as usize]
}

fn mode(random: &mut Random, draft: &Draft, place: u64, end: u64) -> Mode {
    let mut mode = Mode { name: format!("mode-{place}"), ..Mode::default() };
    let some = random.below(4);
    mode.at = any_arrivals(random, some, end);
    mode.at.dedup();
    if random.below(4) > 0 {
        let names = draft.tasks.iter().map(|task| task.name.clone());
        mode.active = Some(names.filter(|_| random.below(3) > 0).collect());
    }
    // The others have no periods.
    let has_periods =
        |kind: &ServerKind| matches!(kind, ServerKind::Polling { .. } | ServerKind::Deferrable { .. });
    let is_framed = |server: &&Server| has_periods(&server.kind) || server.order == Order::Table;
    let framed = draft.servers.iter().filter(is_framed);
    let framed: Vec<&String> = framed.map(|server| &server.name).collect();
    mode.takes_effect = match random.below(4) {
        0 | 1 if !framed.is_empty() => {
            TakesEffect::Frame(framed[random.below(framed.len() as u64) as usize].clone())
        }
        2 => {
            let named = draft.tasks.iter().filter(|_| random.below(3) == 0);
            let mut named: Vec<String> = named.map(|task| task.name.clone()).collect();
            if named.is_empty() {
                named.push(draft.tasks[0].name.clone());
            }
            TakesEffect::WhenDone(named)
        }
        _ => TakesEffect::AtOnce,
    };
    mode.second_request = [SecondRequest::Queue, SecondRequest::Refuse][random.below(2) as usize];
    mode.left_over = left_over(random);
    for task in &draft.tasks {
        if random.below(3) > 0 {
            continue;
        }
        let above = draft.servers.iter().find(|server| server.tasks.contains(&task.name));
        let is_hard = above.is_none_or(|above| above.order != Order::Fifo);
        let order = above.map_or(Order::of_policy(draft.policy), |above| above.order);
        let mut change = TaskChange { task: task.name.clone(), ..TaskChange::default() };
        let wcet = task.wcet.as_ns();
        if order == Order::FixedPriority && random.below(2) == 0 {
            change.priority = Some(Priority::new(random.between(1, 5) as i64));
        }
        let is_active = mode.active.as_ref().is_none_or(|active| active.contains(&task.name));
        let has_period = is_active && !matches!(task.arrival, Arrival::Aperiodic { .. });
        if has_period && random.below(2) == 0 {
            change.period = Some(ns(random.between(3, 16)));
        }
        if is_hard && random.below(2) == 0 {
            change.deadline = Some(ns(random.between(wcet.max(2), 24)));
        }
        if random.below(3) == 0 {
            change.left_over = Some(left_over(random));
        }
        let is_empty = TaskChange { task: task.name.clone(), ..TaskChange::default() };
        if change != is_empty {
            mode.tasks.push(change);
        }
    }
    for server in &draft.servers {
        let mut change = ServerChange { server: server.name.clone(), capacity: None, table: None };
        if server.kind.capacity().is_some() && random.below(2) == 0 {
            let period = random.between(2, 12);
            let budget = ns(random.between(1, period.div_ceil(2)));
            change.capacity = Some(Capacity { budget, period: ns(period) });
        }
        if server.order == Order::Table && random.below(2) == 0 {
            change.table = Some(super::trees::time_table(random, draft, server));
        }
        if change.capacity.is_some() || change.table.is_some() {
            mode.servers.push(change);
        }
    }
    mode
}
