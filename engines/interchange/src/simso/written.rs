//! A system as a file of SimSo.

use super::{Class, equal_groups, level};
use crate::Written;
use crate::known::{Known, at, error};
use crate::number::milliseconds;
use horolog_model::{Arrival, ModelError, Order, Policy, System, Task};
use horolog_time::Span;
use std::fmt::Write as _;

/// Sporadic tasks are written with at most so many activations each.
const MOST_DATES: u64 = 1_000;

pub(crate) fn write(system: &System) -> Result<Written, Vec<ModelError>> {
    let known = Known {
        word: "SimSo",
        preemption: "preemptive",
        clusters: true,
        many_cpus: true,
        offset: true,
        sporadic: true,
        aperiodic: true,
        other_deadlines: true,
        edf: true,
        ..Known::default()
    };
    let mut found = known.beyond(system);
    let cpus = system.platform().cpus.len();
    let order = match system.clusters() {
        [] if cpus == 1 => None,
        [cluster] if cluster.cpus.len() == cpus && cluster.tasks.len() == system.tasks().len() => {
            Some(cluster.order)
        }
        _ => {
            let reason = "SimSo has one scheduler over all processors, and these tasks have their own";
            found.push(error(
                "platform.cpus",
                reason,
                "write one file a processor, or put all tasks into one cluster",
            ));
            None
        }
    };
    for task in system.tasks() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-');
        if !task.name.starts_with(|c: char| c.is_ascii_alphabetic()) || !task.name.chars().all(is_plain) {
            let reason = "SimSo's names begin with a letter and have letters, digits, spaces, `-` and `_`";
            found.push(error(at(task, "name"), reason, "give the task another name"));
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    let is_edf = order.map_or(system.policy() == Policy::Edf, |order| order == Order::Edf);
    let mut notes = Vec::new();
    if system
        .tasks()
        .iter()
        .any(|task| matches!(task.arrival, Arrival::Periodic { .. }) && task.offset.is_none())
    {
        notes.push("the phase of a periodic task without an offset is open; SimSo begins at 0".to_owned());
    }
    if !is_edf {
        for names in equal_groups(system.tasks(), |task| level(task, Class::FixedPriority)) {
            notes.push(format!(
                "{names} have the same priority: SimSo puts a preempted job behind the equals that wait"
            ));
        }
    }
    let until = dates_until(system);
    if system.tasks().iter().any(is_sporadic) {
        notes.push(format!(
            "SimSo releases sporadic tasks at the dates that the file says: as densely as they may come, from 0 to {until}"
        ));
    }
    Ok(Written { text: document(system, cpus, is_edf, until), notes })
}

fn is_sporadic(task: &Task) -> bool {
    matches!(task.arrival, Arrival::Sporadic { .. })
}

/// Until when sporadic tasks have dates: one hyperperiod after the largest offset, or where the fastest of them has the most dates.
fn dates_until(system: &System) -> Span {
    let latest = system.tasks().iter().filter_map(|task| task.offset).max().unwrap_or(Span::ZERO);
    let whole = system.hyperperiod().and_then(|hyperperiod| hyperperiod.checked_add(latest));
    let fastest = system.tasks().iter().filter(|task| is_sporadic(task)).filter_map(Task::separation).min();
    let most = fastest.and_then(|separation| separation.checked_mul(MOST_DATES)).unwrap_or(Span::MAX);
    whole.unwrap_or(Span::MAX).min(most)
}

fn document(system: &System, cpus: usize, is_edf: bool, until: Span) -> String {
    let mut text = String::new();
    let class = if is_edf { "EDF" } else { "FP" };
    text.push_str("<?xml version=\"1.0\" ?>\n<simulation cycles_per_ms=\"1000000\" etm=\"wcet\">\n");
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "  <sched class=\"simso.schedulers.{class}\" overhead=\"0\" overhead_activate=\"0\" overhead_terminate=\"0\"/>"
    );
    text.push_str("  <caches memory_access_time=\"100\"/>\n  <processors>\n");
    for cpu in 1..=cpus {
        let _ = writeln!(
            text,
            "    <processor name=\"CPU {cpu}\" id=\"{cpu}\" cl_overhead=\"0\" cs_overhead=\"0\" speed=\"1.0\"/>"
        );
    }
    text.push_str("  </processors>\n  <tasks>\n");
    if !is_edf {
        text.push_str("    <field name=\"priority\" type=\"int\"/>\n");
    }
    for (place, task) in system.tasks().iter().enumerate() {
        task_element(&mut text, place + 1, task, until);
    }
    text.push_str("  </tasks>\n</simulation>\n");
    text
}

fn task_element(text: &mut String, id: usize, task: &Task, until: Span) {
    // SimSo's aperiodic tasks have no jobs of their own; its sporadic ones have those of the list.
    let (kind, list) = match &task.arrival {
        Arrival::Aperiodic { arrivals } => ("Sporadic", arrivals.clone()),
        Arrival::Sporadic { separation } => {
            let next = |at: &Span| at.checked_add(*separation);
            ("Sporadic", std::iter::successors(Some(Span::ZERO), next).take_while(|at| *at < until).collect())
        }
        _ => ("Periodic", Vec::new()),
    };
    let list: Vec<String> = list.iter().map(|at| milliseconds(*at)).collect();
    let priority =
        task.priority.map_or_else(String::new, |priority| format!(" priority=\"{}\"", priority.number()));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "    <task name=\"{}\" id=\"{id}\" task_type=\"{kind}\" abort_on_miss=\"no\" period=\"{}\" activationDate=\"{}\" list_activation_dates=\"{}\" deadline=\"{}\" WCET=\"{}\" ACET=\"0\" et_stddev=\"0\" instructions=\"0\" mix=\"0.0\" base_cpi=\"1.0\" preemption_cost=\"0\"{priority}/>",
        task.name,
        milliseconds(task.separation().unwrap_or_default()),
        milliseconds(task.offset.unwrap_or_default()),
        list.join(","),
        milliseconds(task.deadline.unwrap_or_default()),
        milliseconds(task.wcet),
    );
}
