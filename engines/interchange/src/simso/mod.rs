//! SimSo's simulations: XML, times in milliseconds.
//!
//! Execution times are read where `etm` is `wcet`: then SimSo uses the caches, instructions and average times for nothing, and they are
//! noted. Overheads that are above zero are refused.
//!
//! A periodic task is one here. A sporadic one of SimSo has jobs at its dates alone: with a period that they keep it is one here, too, without
//! a period it is a list of arrivals. An aperiodic one has no job of its own there.

mod shape;
mod written;

use crate::reading::{Bytes, Reading};
use crate::xml::{self, elements, head};
use horolog_model::{Arrival, Cluster, CpuId, Cpus, Order, Policy, Priority, PriorityAssignment, Task};
use horolog_time::Span;
use roxmltree::{Attribute, Node};
use shape::SIMULATION;
use std::collections::BTreeMap;
pub(crate) use written::write;

/// SimSo's own cycles per millisecond where the file says none.
const NS_IN_MS: u64 = 1_000_000;

/// How jobs are chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Edf,
    RateMonotonic,
    FixedPriority,
}

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    let Some(document) = xml::parse(reading, text) else { return };
    let root = document.root_element();
    if root.tag_name().name() != SIMULATION.name {
        reading.refuse(
            head(&root),
            "it is not a simulation of SimSo",
            "its outermost element is `simulation`",
        );
        return;
    }
    xml::only(reading, &root, &SIMULATION);
    simulation(reading, &root);
    let sched = child(reading, &root, "sched");
    let class = sched.and_then(|sched| scheduler(reading, &sched));
    let cpus =
        child(reading, &root, "processors").map_or(0, |processors| processors_of(reading, &processors));
    if let Some(name) = sched.and_then(|sched| sched.attribute_node("class"))
        && cpus > 1
        && name.value().ends_with("_mono")
    {
        let reason = format!("`{}` uses one processor, and there are {cpus}", name.value());
        let remedy = "take the others out, or give the scheduler without `_mono`, which uses all of them";
        reading.refuse(name.range_value(), reason, remedy);
    }
    if elements(&root).any(|element| element.tag_name().name() == "caches" && elements(&element).count() > 0)
    {
        reading.note("the caches are left out: with `etm=\"wcet\"` SimSo uses none");
    }
    let (Some(class), Some(tasks)) = (class, child(reading, &root, "tasks")) else { return };
    if class == Class::FixedPriority && !has_priorities(reading, &tasks) {
        return;
    }
    for element in named(&tasks, "task") {
        task(reading, &element, class);
    }
    equals(reading, class);
    place_on(reading, class, cpus);
}

/// Whether the tasks have priorities that SimSo takes for numbers.
fn has_priorities(reading: &mut Reading<'_>, tasks: &Node<'_, '_>) -> bool {
    let remedy = "declare it once: <field name=\"priority\" type=\"int\"/>";
    let mut fields = named(tasks, "field").filter(|field| field.attribute("name") == Some("priority"));
    let (Some(field), another) = (fields.next(), fields.next()) else {
        reading.refuse(head(tasks), "the tasks have no field `priority`", remedy);
        return false;
    };
    if let Some(another) = another {
        reading.refuse(head(&another), "the field `priority` is there twice", remedy);
    }
    let kind = field.attribute("type").unwrap_or_default();
    if kind != "int" {
        let reason = format!("SimSo orders these priorities as `{kind}`, not as integers");
        reading.refuse(attribute_at(&field, "type"), reason, remedy);
    }
    true
}

/// SimSo's rule for equals is its own, and a system with some may miss there and not here.
fn equals(reading: &mut Reading<'_>, class: Class) {
    let what = if class == Class::RateMonotonic { "period" } else { "priority" };
    let found: Vec<String> = equal_groups(&reading.draft.tasks, |task| level(task, class));
    for names in found {
        reading.note(format!(
            "{names} have the same {what}: they run first in, first out here, while SimSo puts a preempted job behind the equals that wait"
        ));
    }
}

/// What orders the tasks; nothing under EDF, where on one processor no rule for equals makes a difference to who is in time.
fn level(task: &Task, class: Class) -> Option<i128> {
    match class {
        Class::Edf => None,
        Class::RateMonotonic => task.separation().map(|period| i128::from(period.as_ns())),
        Class::FixedPriority => task.priority.map(|priority| i128::from(priority.number())),
    }
}

/// The names of those tasks that are on one level with others, a text a level.
fn equal_groups(tasks: &[Task], level: impl Fn(&Task) -> Option<i128>) -> Vec<String> {
    let mut levels: BTreeMap<i128, Vec<&str>> = BTreeMap::new();
    for task in tasks {
        if let Some(level) = level(task) {
            levels.entry(level).or_default().push(&task.name);
        }
    }
    let quoted = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    levels.values().filter(|names| names.len() > 1).map(|names| quoted(names)).collect()
}

/// The processors and the order, once the tasks are known.
fn place_on(reading: &mut Reading<'_>, class: Class, cpus: usize) {
    reading.draft.platform.cpus = Cpus::Count(u32::try_from(cpus.max(1)).unwrap_or(u32::MAX));
    reading.draft.policy = if class == Class::Edf { Policy::Edf } else { Policy::FixedPriority };
    let is_global = cpus > 1;
    let has_equals = !equal_groups(&reading.draft.tasks, |task| level(task, Class::RateMonotonic)).is_empty();
    if class == Class::RateMonotonic {
        if is_global || has_equals {
            rate_monotonic(&mut reading.draft.tasks);
        } else {
            reading.draft.priorities = PriorityAssignment::RateMonotonic;
        }
    }
    if is_global {
        let order = if class == Class::Edf { Order::Edf } else { Order::FixedPriority };
        let names = reading.draft.tasks.iter().map(|task| task.name.clone()).collect();
        let cpus = (0..cpus as u32).map(CpuId).collect();
        reading.draft.clusters.push(Cluster { name: "all".to_owned(), cpus, order, tasks: names });
    }
}

/// The shorter the period, the more important; equal periods have equal priorities, since SimSo lets none preempt the other.
fn rate_monotonic(tasks: &mut [Task]) {
    let mut periods: Vec<Span> = tasks.iter().filter_map(Task::separation).collect();
    periods.sort_unstable();
    periods.dedup();
    for task in tasks {
        let place = task.separation().and_then(|period| periods.binary_search(&period).ok());
        task.priority = place.map(|place| Priority::new((periods.len() - place) as i64));
    }
}

fn simulation(reading: &mut Reading<'_>, root: &Node<'_, '_>) {
    for attribute in root.attributes() {
        let at = attribute.range_value();
        match attribute.name() {
            "duration" => reading.note("the duration is left out: `simulate --for` says it"),
            "cycles_per_ms" => {
                if attribute.value().trim().parse::<u64>().is_ok_and(|cycles| cycles > 0) {
                    continue;
                }
                reading.refuse(at, "these are not cycles per millisecond", "write an integer above zero");
            }
            "etm" if attribute.value() == "wcet" => {}
            "use_wcet" if matches!(attribute.value(), "true" | "yes") => {}
            "etm" | "use_wcet" => {
                reading.beyond(at, format_args!("execution times by `{}`", attribute.value()))
            }
            "penalty_preemption" | "penalty_migration" => {
                reading.note("penalties of preemptions and migrations are left out: with `etm=\"wcet\"` SimSo uses none");
            }
            // All others are refused with the shape.
            _ => {}
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
            _ => {}
        }
    }
    if class.is_none() && !reading.is_wrong() {
        reading.refuse(
            head(sched),
            "it says no scheduler",
            "give its class, as in class=\"simso.schedulers.EDF\"",
        );
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
fn processors_of(reading: &mut Reading<'_>, processors: &Node<'_, '_>) -> usize {
    if let Some(cost) = processors.attribute_node("migration_overhead") {
        reading.zero(cost.value(), &cost.range_value(), "the migration overhead");
    }
    for element in named(processors, "processor") {
        for attribute in element.attributes() {
            let (at, value) = (attribute.range_value(), attribute.value());
            match attribute.name() {
                "cl_overhead" | "cs_overhead" => reading.zero(value, &at, "the overhead of context switches"),
                "speed" if value.trim().parse() != Ok(1.0_f64) => {
                    reading.beyond(at, format_args!("the speed {value}"));
                }
                _ => {}
            }
        }
    }
    let count = named(processors, "processor").count();
    if count == 0 {
        reading.refuse(head(processors), "there is no processor", "give at least one");
    }
    count
}

fn task(reading: &mut Reading<'_>, element: &Node<'_, '_>, class: Class) {
    let name = element.attribute("name").unwrap_or_default();
    let mut task = Task::new(name, Arrival::Aperiodic { arrivals: Vec::new() }, Span::ZERO);
    let mut keys = vec![("", head(element))];
    let kind = element.attribute("task_type").unwrap_or("Periodic");
    let period = if kind == "Periodic" { required } else { time }(reading, element, "period");
    let first = time(reading, element, "activationDate");
    if let Some(wcet) = required(reading, element, "WCET") {
        (task.wcet, task.bcet) = (wcet, wcet);
    }
    task.deadline = required(reading, element, "deadline");
    match kind {
        "Periodic" => {
            if let Some(period) = period {
                task.arrival = Arrival::Periodic { period };
            }
            task.offset = Some(first.unwrap_or_default());
        }
        "Sporadic" => task.arrival = sporadic(reading, element, period.unwrap_or_default(), class),
        "APeriodic" => reading.beyond(
            attribute_at(element, "task_type"),
            "a task of the kind `APeriodic`, of which SimSo releases no job by itself,",
        ),
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
            "priority" if class == Class::FixedPriority => {
                task.priority = reading.integer(attribute.value(), &at, "the priority").map(Priority::new);
                keys.push(("priority", at));
            }
            "priority" => reading.note("priorities are left out: this scheduler does not use them"),
            "abort_on_miss" if !matches!(attribute.value(), "yes" | "no") => {
                reading.beyond(at, format_args!("`abort_on_miss` as `{}`", attribute.value()));
            }
            "preemption_cost" => reading.zero(attribute.value(), &at, "the cost of a preemption"),
            "followed_by" if attribute.value().is_empty() => {}
            "followed_by" => reading.beyond(at, "a task that is released by another one"),
            _ => {}
        }
    }
    // SimSo's own choice where the file says nothing.
    if element.attribute("abort_on_miss").is_none_or(|value| value == "yes") {
        reading.note(
            "`abort_on_miss` is left out: a job that misses its deadline goes on here (until the first miss both are the same)",
        );
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

/// When the jobs of a sporadic task arrive: in SimSo at its dates, whatever its period.
fn sporadic(reading: &mut Reading<'_>, element: &Node<'_, '_>, period: Span, class: Class) -> Arrival {
    let list = dates(reading, element);
    let at = attribute_at(element, "list_activation_dates");
    if period.is_zero() && !list.is_empty() {
        if class == Class::RateMonotonic {
            reading.refuse(
                at,
                "a task without a period has no place in a rate-monotonic order",
                "give its period",
            );
        }
        return Arrival::Aperiodic { arrivals: list };
    }
    let closest = list.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min();
    match closest {
        Some(gap) if gap < period => reading.refuse(
            at,
            format!("activations are {gap} apart, and the period is {period}"),
            "give a period that they keep, or period=\"0\" where the dates alone count",
        ),
        Some(_) => reading.note(
            "the activations of sporadic tasks are left out: their jobs may come whenever the period lets them (`simulate --replay` says when)",
        ),
        None if list.is_empty() => reading.note(
            "sporadic tasks without activations have no job in SimSo: here their jobs may come whenever the period lets them",
        ),
        None => {}
    }
    Arrival::Sporadic { separation: period }
}

/// The instants of `list_activation_dates`, ascending as SimSo takes them.
fn dates(reading: &mut Reading<'_>, element: &Node<'_, '_>) -> Vec<Span> {
    let list = element.attribute("list_activation_dates").unwrap_or_default();
    let at = attribute_at(element, "list_activation_dates");
    let mut dates: Vec<Span> = list
        .split(',')
        .filter(|date| !list.trim().is_empty() || !date.trim().is_empty())
        .filter_map(|date| reading.time(date, &at, "the activation"))
        .collect();
    for date in &dates {
        whole_cycles(reading, element, *date, &at);
    }
    dates.sort();
    dates
}

fn time(reading: &mut Reading<'_>, element: &Node<'_, '_>, key: &str) -> Option<Span> {
    let at = attribute_at(element, key);
    let span = reading.time(element.attribute(key)?, &at, &format!("`{key}`"))?;
    whole_cycles(reading, element, span, &at);
    Some(span)
}

/// SimSo cuts a time to whole cycles: a period of 1.5 of them would be one of 1.
fn whole_cycles(reading: &mut Reading<'_>, element: &Node<'_, '_>, span: Span, at: &Bytes) {
    let root = element.document().root_element();
    // What is no number is refused where the root is read.
    let given = root.attribute("cycles_per_ms").and_then(|text| text.trim().parse::<u64>().ok());
    let cycles = u128::from(given.unwrap_or(NS_IN_MS)) * u128::from(span.as_ns());
    if !cycles.is_multiple_of(u128::from(NS_IN_MS)) {
        let reason = format!("{span} is not a whole number of cycles, and SimSo leaves the part out");
        reading.refuse(at.clone(), reason, "give more `cycles_per_ms`, such as 1000000");
    }
}

fn required(reading: &mut Reading<'_>, element: &Node<'_, '_>, key: &str) -> Option<Span> {
    if element.attribute(key).is_none() {
        reading.refuse(head(element), format!("the task has no `{key}`"), "give one, in milliseconds");
    }
    time(reading, element, key)
}

fn attribute_at(element: &Node<'_, '_>, key: &str) -> Bytes {
    element.attribute_node(key).map_or_else(|| head(element), |attribute| attribute.range_value())
}

fn named<'a, 'b>(of: &Node<'a, 'b>, name: &'static str) -> impl Iterator<Item = Node<'a, 'b>> {
    elements(of).filter(move |element| element.tag_name().name() == name)
}

/// The child with this name.
fn child<'a, 'b>(reading: &mut Reading<'_>, of: &Node<'a, 'b>, name: &'static str) -> Option<Node<'a, 'b>> {
    let found = named(of, name).next();
    if found.is_none() {
        reading.refuse(head(of), format!("there is no element `{name}`"), "give one");
    }
    found
}
