//! SimSo's simulations: XML, times in milliseconds.
//!
//! Execution times are read where `etm` is `wcet`: then SimSo uses the caches, instructions and average times for nothing, and they are
//! noted. Overheads that are above zero are refused.

use crate::Written;
use crate::known::{Known, at, error};
use crate::number::milliseconds;
use crate::reading::{Bytes, Reading};
use horolog_model::{
    Arrival, Cluster, CpuId, Cpus, ModelError, Order, Policy, Priority, PriorityAssignment, System, Task,
};
use roxmltree::{Attribute, Document, Node};
use std::fmt::Write as _;

/// Attributes of a task that SimSo uses for other models of execution times alone.
const UNUSED: [&str; 6] = ["instructions", "mix", "base_cpi", "stack", "ACET", "et_stddev"];

/// How jobs are chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Edf,
    RateMonotonic,
    FixedPriority,
}

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let at = crate::mast::byte_of(text, error.pos());
            reading.refuse(at..at + 1, format!("it is not XML: {error}"), "mend the XML");
            return;
        }
    };
    let root = document.root_element();
    if root.tag_name().name() != "simulation" {
        reading.refuse(head(&root), "it is no simulation of SimSo", "its outermost element is `simulation`");
        return;
    }
    simulation(reading, &root);
    let class = child(reading, &root, "sched").and_then(|sched| scheduler(reading, &sched));
    let cpus =
        child(reading, &root, "processors").map_or(0, |processors| processors_of(reading, &processors));
    for element in elements(&root) {
        match element.tag_name().name() {
            "sched" | "processors" | "tasks" => {}
            // Used by other models of execution times alone.
            "caches" if elements(&element).next().is_none() => {}
            "caches" => reading.note("the caches are left out: with `etm=\"wcet\"` SimSo uses none"),
            name => reading.beyond(head(&element), format_args!("the element `{name}`")),
        }
    }
    let (Some(class), Some(tasks)) = (class, child(reading, &root, "tasks")) else { return };
    let has_priority = fields(&tasks).any(|name| name == "priority");
    if class == Class::FixedPriority && !has_priority {
        reading.refuse(
            head(&tasks),
            "the tasks have no field `priority`",
            "declare it: <field name=\"priority\" type=\"int\"/>",
        );
        return;
    }
    for element in elements(&tasks) {
        match element.tag_name().name() {
            "task" => task(reading, &element, class),
            "field" => {}
            name => reading.beyond(head(&element), format_args!("the element `{name}`")),
        }
    }
    place_on(reading, class, cpus);
}

/// The processors and the order, once the tasks are known.
fn place_on(reading: &mut Reading<'_>, class: Class, cpus: u32) {
    reading.draft.platform.cpus = Cpus::Count(cpus.max(1));
    reading.draft.policy = if class == Class::Edf { Policy::Edf } else { Policy::FixedPriority };
    let is_global = cpus > 1;
    if class == Class::RateMonotonic {
        if is_global {
            rate_monotonic(&mut reading.draft.tasks);
        } else {
            reading.draft.priorities = PriorityAssignment::RateMonotonic;
        }
    }
    if is_global {
        let order = if class == Class::Edf { Order::Edf } else { Order::FixedPriority };
        let names = reading.draft.tasks.iter().map(|task| task.name.clone()).collect();
        let cpus = (0..cpus).map(CpuId).collect();
        reading.draft.clusters.push(Cluster { name: "all".to_owned(), cpus, order, tasks: names });
    }
}

/// What `priorities = "rate-monotonic"` says, for tasks of a cluster: equal periods in the order of the file.
fn rate_monotonic(tasks: &mut [Task]) {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&index| (tasks[index].separation(), index));
    let all = order.len() as i64;
    for (place, index) in order.into_iter().enumerate() {
        tasks[index].priority = Some(Priority::new(all - place as i64));
    }
}

fn simulation(reading: &mut Reading<'_>, root: &Node<'_, '_>) {
    for attribute in root.attributes() {
        let at = attribute.range_value();
        match attribute.name() {
            "duration" => reading.note("the duration is left out: `simulate --for` says it"),
            "cycles_per_ms" => {}
            "etm" if attribute.value() == "wcet" => {}
            "use_wcet" if matches!(attribute.value(), "true" | "yes") => {}
            "etm" | "use_wcet" => {
                reading.beyond(at, format_args!("execution times by `{}`", attribute.value()))
            }
            "penalty_preemption" | "penalty_migration" => {
                reading.note("penalties of preemptions and migrations are left out: with `etm=\"wcet\"` SimSo uses none");
            }
            name => reading.beyond(at, format_args!("`{name}`")),
        }
    }
}

fn scheduler(reading: &mut Reading<'_>, sched: &Node<'_, '_>) -> Option<Class> {
    let mut class = None;
    for attribute in sched.attributes() {
        let at = attribute.range_value();
        match attribute.name() {
            "class" => class = class_of(reading, attribute),
            "className" if attribute.value().is_empty() => {}
            "className" => reading.beyond(at, "a scheduler in Python"),
            "overhead" | "overhead_activate" | "overhead_terminate" => {
                reading.zero(attribute.value(), &at, &format!("the scheduler's {}", attribute.name()));
            }
            name => reading.beyond(at, format_args!("`{name}`")),
        }
    }
    if class.is_none() && !reading.is_wrong() {
        reading.refuse(
            head(sched),
            "it says no scheduler",
            "give its class, as in class=\"simso.schedulers.EDF\"",
        );
    }
    for element in elements(sched) {
        reading.beyond(head(&element), "a field of the scheduler");
    }
    class
}

fn class_of(reading: &mut Reading<'_>, attribute: Attribute<'_, '_>) -> Option<Class> {
    let name = attribute.value();
    match name.strip_prefix("simso.schedulers.").unwrap_or(name) {
        "EDF" | "EDF_mono" => Some(Class::Edf),
        "RM" | "RM_mono" => Some(Class::RateMonotonic),
        "FP" => Some(Class::FixedPriority),
        other => {
            reading.refuse(
                attribute.range_value(),
                format!("the scheduler `{other}` is beyond the model"),
                "EDF, EDF_mono, RM, RM_mono and FP are known",
            );
            None
        }
    }
}

/// How many there are.
fn processors_of(reading: &mut Reading<'_>, processors: &Node<'_, '_>) -> u32 {
    for attribute in processors.attributes() {
        match attribute.name() {
            "migration_overhead" => {
                reading.zero(attribute.value(), &attribute.range_value(), "the migration overhead")
            }
            name => reading.beyond(attribute.range_value(), format_args!("`{name}`")),
        }
    }
    let mut count = 0;
    for element in elements(processors) {
        match element.tag_name().name() {
            "processor" => count += 1,
            "field" => continue,
            name => reading.beyond(head(&element), format_args!("the element `{name}`")),
        }
        for attribute in element.attributes() {
            let (at, value) = (attribute.range_value(), attribute.value());
            match attribute.name() {
                "name" | "id" => {}
                "cl_overhead" | "cs_overhead" => reading.zero(value, &at, "the overhead of context switches"),
                "speed" if value.trim().parse() == Ok(1.0_f64) => {}
                "speed" => reading.beyond(at, format_args!("the speed {value}")),
                name => reading.beyond(at, format_args!("`{name}` of a processor")),
            }
        }
    }
    if count == 0 {
        reading.refuse(head(processors), "there is no processor", "give at least one");
    }
    count
}

fn task(reading: &mut Reading<'_>, element: &Node<'_, '_>, class: Class) {
    let name = element.attribute("name").unwrap_or_default();
    let mut task = Task::new(name, Arrival::Aperiodic { arrivals: Vec::new() }, horolog_time::Span::ZERO);
    let mut keys = vec![("", head(element))];
    let kind = element.attribute("task_type").unwrap_or("Periodic");
    let period = time(reading, element, "period");
    let first = time(reading, element, "activationDate");
    if let Some(wcet) = required(reading, element, "WCET") {
        (task.wcet, task.bcet) = (wcet, wcet);
    }
    task.deadline = required(reading, element, "deadline");
    let list = dates(reading, element);
    match kind {
        "Periodic" => {
            if let Some(period) = required(reading, element, "period") {
                task.arrival = Arrival::Periodic { period };
            }
            task.offset = Some(first.unwrap_or_default());
        }
        // SimSo releases such a task at its dates, whatever its period: without one the dates are all there is.
        "Sporadic" => match period.filter(|period| *period > horolog_time::Span::ZERO) {
            Some(separation) => {
                task.arrival = Arrival::Sporadic { separation };
                if !list.is_empty() {
                    reading.note(
                        "the activations of sporadic tasks are left out: `simulate --replay` says them",
                    );
                }
            }
            None => task.arrival = Arrival::Aperiodic { arrivals: list },
        },
        "APeriodic" => {
            reading.beyond(attribute_at(element, "task_type"), "a task that is released by another one");
        }
        other => {
            reading.beyond(attribute_at(element, "task_type"), format_args!("the kind of task `{other}`"))
        }
    }
    for attribute in element.attributes() {
        let at = attribute.range_value();
        match attribute.name() {
            "name" => keys.push(("name", at)),
            "WCET" => keys.push(("wcet", at)),
            "deadline" => keys.push(("deadline", at)),
            "period" => keys.push((if kind == "Sporadic" { "separation" } else { "period" }, at)),
            "activationDate" => keys.push(("offset", at)),
            "list_activation_dates" => keys.push(("arrivals", at)),
            "id" | "task_type" => {}
            "priority" => {
                if class == Class::FixedPriority {
                    task.priority = reading.integer(attribute.value(), &at, "the priority").map(Priority::new);
                }
                keys.push(("priority", at));
            }
            "abort_on_miss" if attribute.value() == "no" => {}
            "abort_on_miss" => reading.note(
                "`abort_on_miss` is left out: a job that misses its deadline goes on here (until the first miss both are the same)",
            ),
            "preemption_cost" => reading.zero(attribute.value(), &at, "the cost of a preemption"),
            "followed_by" if attribute.value().is_empty() => {}
            "followed_by" => reading.beyond(at, "a task that is released by another one"),
            name if UNUSED.contains(&name) => {}
            name => reading.beyond(at, format_args!("`{name}` of a task")),
        }
    }
    let counts = ["instructions", "stack", "ACET", "et_stddev"];
    if counts
        .iter()
        .any(|name| element.attribute(*name).is_some_and(|value| !matches!(value, "0" | "0.0" | "")))
    {
        reading
            .note("instructions, stacks and average times are left out: with `etm=\"wcet\"` SimSo uses none");
    }
    if class == Class::FixedPriority && element.attribute("priority").is_none() {
        reading.refuse(head(element), "the task has no `priority`", "give one");
    }
    if element.attribute("name").is_none() {
        reading.refuse(head(element), "the task has no `name`", "give one");
    }
    reading.task(task, keys);
}

/// The instants of `list_activation_dates`, ascending as SimSo takes them.
fn dates(reading: &mut Reading<'_>, element: &Node<'_, '_>) -> Vec<horolog_time::Span> {
    let list = element.attribute("list_activation_dates").unwrap_or_default();
    let at = attribute_at(element, "list_activation_dates");
    let mut dates: Vec<horolog_time::Span> = list
        .split(',')
        .filter(|date| !list.trim().is_empty() || !date.trim().is_empty())
        .filter_map(|date| reading.time(date, &at, "the activation"))
        .collect();
    dates.sort();
    dates
}

fn time(reading: &mut Reading<'_>, element: &Node<'_, '_>, key: &str) -> Option<horolog_time::Span> {
    let value = element.attribute(key)?;
    reading.time(value, &attribute_at(element, key), &format!("`{key}`"))
}

fn required(reading: &mut Reading<'_>, element: &Node<'_, '_>, key: &str) -> Option<horolog_time::Span> {
    if element.attribute(key).is_none() {
        reading.refuse(head(element), format!("the task has no `{key}`"), "give one, in milliseconds");
    }
    time(reading, element, key)
}

fn attribute_at(element: &Node<'_, '_>, key: &str) -> Bytes {
    element.attribute_node(key).map_or_else(|| head(element), |attribute| attribute.range_value())
}

fn elements<'a, 'b>(of: &Node<'a, 'b>) -> impl Iterator<Item = Node<'a, 'b>> {
    of.children().filter(Node::is_element)
}

fn fields<'a>(of: &Node<'a, '_>) -> impl Iterator<Item = &'a str> {
    elements(of)
        .filter(|element| element.tag_name().name() == "field")
        .filter_map(|field| field.attribute("name"))
}

/// The only child with this name.
fn child<'a, 'b>(reading: &mut Reading<'_>, of: &Node<'a, 'b>, name: &str) -> Option<Node<'a, 'b>> {
    let mut found = elements(of).filter(|element| element.tag_name().name() == name);
    let first = found.next();
    if let Some(second) = found.next() {
        reading.refuse(head(&second), format!("`{name}` is there twice"), "take one of them out");
    }
    if first.is_none() {
        reading.refuse(head(of), format!("there is no element `{name}`"), "give one");
    }
    first
}

/// The beginning of an element: `<` and its name.
fn head(element: &Node<'_, '_>) -> Bytes {
    let start = element.range().start;
    start..start + 1 + element.tag_name().name().len()
}

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
    if system.tasks().iter().any(|task| matches!(task.arrival, Arrival::Sporadic { .. })) {
        notes.push(
            "SimSo releases a sporadic task at its `list_activation_dates` alone: give some".to_owned(),
        );
    }
    Ok(Written { text: document(system, cpus, is_edf), notes })
}

fn document(system: &System, cpus: usize, is_edf: bool) -> String {
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
        task_element(&mut text, place + 1, task);
    }
    text.push_str("  </tasks>\n</simulation>\n");
    text
}

fn task_element(text: &mut String, id: usize, task: &Task) {
    let (kind, list) = match &task.arrival {
        Arrival::Aperiodic { arrivals } => ("Sporadic", arrivals.as_slice()),
        Arrival::Sporadic { .. } => ("Sporadic", &[][..]),
        _ => ("Periodic", &[][..]),
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
