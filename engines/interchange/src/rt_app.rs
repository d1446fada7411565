//! rt-app's workloads: JSON with comments, times in microseconds.
//!
//! Read are threads under SCHED_FIFO on one CPU each whose loop is execution, with mutexes around parts of it, and one timer. Everything that makes
//! a thread wait for another one, and what has no period, is refused.

use crate::Written;
use crate::known::{Known, at, error, whole};
use crate::reading::{Bytes, Reading};
use horolog_model::{
    Access, Arrival, CpuId, Cpus, ModelError, Policy, Priority, Protocol, Resource, Section, System, Task,
};
use horolog_time::Span;
use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The priority of a thread under SCHED_FIFO that gives none.
const DEFAULT_PRIORITY: i64 = 10;

/// Those that SCHED_FIFO has.
const PRIORITIES: std::ops::RangeInclusive<i64> = 1..=99;

/// What rt-app writes and how it measures, which is not the workload.
const NOT_WORKLOAD: [&str; 11] = [
    "duration",
    "calibration",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
];

/// What holds for all threads.
struct Global {
    policy: String,
    protocol: Protocol,
}

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    let options = jsonc_parser::CollectOptions::default();
    let parsed = match jsonc_parser::parse_to_ast(text, &options, &jsonc_parser::ParseOptions::default()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let range = error.range();
            reading.refuse(
                range.start..range.end,
                format!("it is not JSON: {}", error.kind()),
                "mend the JSON",
            );
            return;
        }
    };
    let Some(Value::Object(root)) = parsed.value else {
        reading.refuse(0..0, "it is not a workload of rt-app", "it is an object with `tasks`");
        return;
    };
    no_key_twice(reading, &root);
    let mut global = Global { policy: "SCHED_OTHER".to_owned(), protocol: Protocol::None };
    let mut tasks = None;
    for property in &root.properties {
        match (property.name.as_str(), &property.value) {
            ("global", Value::Object(object)) => read_global(reading, object, &mut global),
            ("tasks", Value::Object(object)) if tasks.is_none() => tasks = Some(object),
            ("resources", Value::Object(object)) => read_resources(reading, object),
            (name, _) => reading.beyond(key(property), format_args!("`{name}`")),
        }
    }
    let Some(tasks) = tasks else {
        reading.refuse(0..0, "there is no object `tasks` in it", "give the threads");
        return;
    };
    reading.draft.policy = Policy::FixedPriority;
    let mut timers = BTreeSet::new();
    for property in &tasks.properties {
        match &property.value {
            Value::Object(thread) => read_thread(reading, property, thread, &global, &mut timers),
            _ => reading.refuse(key(property), "a thread is an object", "give its events"),
        }
    }
    let cpus: BTreeSet<u32> = reading.draft.tasks.iter().map(|task| task.cpu.0).collect();
    if !cpus.is_empty() {
        reading.draft.platform.cpus = Cpus::Listed(cpus.into_iter().map(CpuId).collect());
    }
    if tasks.properties.is_empty() {
        reading.refuse(0..0, "there is no thread in it", "give at least one");
    }
}

/// rt-app takes the last value of a key that is there twice, whatever else was meant.
fn no_key_twice(reading: &mut Reading<'_>, root: &Object<'_>) {
    let mut objects = vec![root];
    while let Some(object) = objects.pop() {
        let mut seen = BTreeSet::new();
        for property in &object.properties {
            let name = property.name.as_str();
            if !seen.insert(name) {
                let reason = format!("the key `{name}` is there twice");
                reading.refuse(key(property), reason, "number the keys, as in `run0` and `run1`");
            }
            if let Value::Object(inner) = &property.value {
                objects.push(inner);
            }
        }
    }
}

fn read_global(reading: &mut Reading<'_>, object: &Object<'_>, global: &mut Global) {
    for property in &object.properties {
        let name = property.name.as_str();
        match (name, &property.value) {
            ("default_policy", Value::StringLit(policy)) => global.policy = policy.value.to_string(),
            ("pi_enabled", Value::BooleanLit(is_on)) => {
                global.protocol = if is_on.value { Protocol::Inheritance } else { Protocol::None };
            }
            _ if NOT_WORKLOAD.contains(&name) => {
                reading.note("how long rt-app runs, what it calibrates and what it writes is left out");
            }
            _ => reading.beyond(key(property), format_args!("`{name}` of `global`")),
        }
    }
}

/// rt-app finds resources by their use; what is declared here is held against that.
fn read_resources(reading: &mut Reading<'_>, object: &Object<'_>) {
    for property in &object.properties {
        let is_mutex = match &property.value {
            Value::Object(resource) => matches!(
                resource.properties.as_slice(),
                [ObjectProp { name, value: Value::StringLit(kind), .. }] if name.as_str() == "type" && kind.value == "mutex"
            ),
            _ => false,
        };
        if !is_mutex {
            reading.beyond(
                key(property),
                format_args!("the resource `{}`, which is no mutex,", property.name.as_str()),
            );
        }
    }
}

/// The events of a thread so far.
struct Loop {
    executed: Span,
    held: Vec<(String, Span, Bytes)>,
    sections: Vec<Section>,
    period: Option<(Span, Bytes)>,
    is_after_timer: bool,
}

fn read_thread(
    reading: &mut Reading<'_>,
    property: &ObjectProp<'_>,
    thread: &Object<'_>,
    global: &Global,
    timers: &mut BTreeSet<String>,
) {
    let name = property.name.as_str();
    let mut task = Task::new(name, Arrival::Periodic { period: Span::ZERO }, Span::ZERO);
    let mut keys = vec![("", key(property)), ("name", key(property))];
    let mut events = Loop {
        executed: Span::ZERO,
        held: Vec::new(),
        sections: Vec::new(),
        period: None,
        is_after_timer: false,
    };
    let mut policy = (global.policy.clone(), key(property));
    let mut priority = DEFAULT_PRIORITY;
    let mut cpu = None;
    let objects = phase(reading, thread);
    for property in objects.iter().flat_map(|object| &object.properties) {
        let (word, at) = (property.name.as_str(), property.value.range());
        let at = at.start..at.end;
        match (word, &property.value) {
            ("phases", _) => {}
            ("policy", Value::StringLit(text)) => policy = (text.value.to_string(), at),
            ("priority", Value::NumberLit(number)) => {
                if let Some(given) = reading.integer(number.value, &at, "the priority") {
                    priority = given;
                    if !PRIORITIES.contains(&given) {
                        reading.refuse(
                            at.clone(),
                            format!("{given} is no priority of SCHED_FIFO"),
                            "give 1 to 99",
                        );
                    }
                }
                keys.push(("priority", at));
            }
            ("cpus", Value::Array(list)) => {
                cpu = one_cpu(reading, &list.elements, &at);
                keys.push(("cpu", at));
            }
            ("delay", Value::NumberLit(number)) => {
                task.offset = reading.time(number.value, &at, "the delay");
                keys.push(("offset", at));
            }
            ("loop", Value::NumberLit(number)) if number.value == "-1" || objects.len() == 2 => {}
            ("instance", Value::NumberLit(number)) if number.value == "1" => {}
            _ => event(reading, property, global, &mut events, timers, &mut keys),
        }
    }
    if policy.0 != "SCHED_FIFO" {
        reading.beyond(policy.1, format_args!("a thread under {}", policy.0));
    }
    if cpu.is_none() && !reading.is_wrong() {
        reading.refuse(key(property), "the thread may run on any CPU", "give it one, as in \"cpus\" : [0]");
    }
    for (held, _, at) in events.held {
        reading.refuse(at, format!("`{held}` is locked and never unlocked"), "unlock it before the timer");
    }
    let Some((period, at)) = events.period else {
        reading.refuse(
            key(property),
            "the thread has no timer, so that its jobs have no period",
            "end its loop with a timer",
        );
        return;
    };
    keys.push(("period", at));
    task.arrival = Arrival::Periodic { period };
    task.deadline = Some(period);
    (task.wcet, task.bcet) = (events.executed, events.executed);
    task.sections = events.sections;
    task.priority = Some(Priority::new(priority));
    task.cpu = CpuId(cpu.unwrap_or_default());
    reading.task(task, keys);
}

/// The thread, and its only phase where it has phases.
fn phase<'p, 'a>(reading: &mut Reading<'_>, thread: &'p Object<'a>) -> Vec<&'p Object<'a>> {
    let mut objects = vec![thread];
    for property in thread.properties.iter().filter(|property| property.name.as_str() == "phases") {
        match &property.value {
            Value::Object(phases) => match phases.properties.as_slice() {
                [ObjectProp { value: Value::Object(phase), .. }] if objects.len() == 1 => objects.push(phase),
                _ => reading.beyond(key(property), "a thread that does not have one phase"),
            },
            _ => reading.refuse(key(property), "phases are an object", "give one phase"),
        }
    }
    objects
}

fn one_cpu(reading: &mut Reading<'_>, list: &[Value<'_>], at: &Bytes) -> Option<u32> {
    match list {
        [Value::NumberLit(number)] => reading.integer(number.value, at, "the CPU"),
        _ => {
            reading.beyond(at.clone(), "a thread on several CPUs");
            None
        }
    }
}

/// The word of an event without the number that makes it differ from others: `run`, `run2`.
fn kind(word: &str) -> &str {
    word.trim_end_matches(|c: char| c.is_ascii_digit())
}

fn event(
    reading: &mut Reading<'_>,
    property: &ObjectProp<'_>,
    global: &Global,
    events: &mut Loop,
    timers: &mut BTreeSet<String>,
    keys: &mut Vec<(&'static str, Bytes)>,
) {
    let word = property.name.as_str();
    let range = property.value.range();
    let at = range.start..range.end;
    if events.is_after_timer {
        reading.beyond(key(property), format_args!("`{word}` after the timer"));
        return;
    }
    match (kind(word), &property.value) {
        ("run" | "runtime", Value::NumberLit(number)) => {
            let length = reading.time(number.value, &at, "the execution").unwrap_or_default();
            match events.executed.checked_add(length) {
                Some(sum) => events.executed = sum,
                None => reading.refuse(
                    at.clone(),
                    "the thread executes longer than 584 years",
                    "give smaller numbers",
                ),
            }
            keys.push(("wcet", at));
        }
        ("lock", Value::StringLit(mutex)) => {
            events.held.push((mutex.value.to_string(), events.executed, at));
        }
        ("unlock", Value::StringLit(mutex)) => unlock(reading, &mutex.value, at, global, events, keys),
        ("timer", Value::Object(timer)) => {
            events.period = read_timer(reading, property, timer, timers);
            events.is_after_timer = true;
        }
        _ => reading.beyond(key(property), format_args!("`{word}` of a thread")),
    }
}

fn unlock(
    reading: &mut Reading<'_>,
    mutex: &str,
    at: Bytes,
    global: &Global,
    events: &mut Loop,
    keys: &mut Vec<(&'static str, Bytes)>,
) {
    let Some(place) = events.held.iter().rposition(|(held, ..)| held == mutex) else {
        reading.refuse(at, format!("`{mutex}` is not locked here"), "lock it before");
        return;
    };
    let (name, from, _) = events.held.remove(place);
    let length = events.executed.saturating_sub(from);
    if length.is_zero() {
        reading.beyond(at, "a section without execution");
        return;
    }
    if !reading.draft.resources.iter().any(|resource| resource.name == name) {
        reading.place("resource", &name, "", at.clone());
        let resource = Resource { name: name.clone(), protocol: global.protocol, ..Resource::default() };
        reading.draft.resources.push(resource);
    }
    events.sections.push(Section { resource: name, from, length, access: Access::Write });
    keys.push(("section", at));
}

/// The period of a timer that no other thread uses.
fn read_timer(
    reading: &mut Reading<'_>,
    property: &ObjectProp<'_>,
    timer: &Object<'_>,
    timers: &mut BTreeSet<String>,
) -> Option<(Span, Bytes)> {
    let mut period = None;
    let mut is_absolute = false;
    for part in &timer.properties {
        let range = part.value.range();
        let at = range.start..range.end;
        match (part.name.as_str(), &part.value) {
            ("ref", Value::StringLit(name)) => {
                if name.value != "unique" && !timers.insert(name.value.to_string()) {
                    reading.beyond(at, format_args!("the timer `{}` of several threads", name.value));
                }
            }
            ("period", Value::NumberLit(number)) => {
                period = reading.time(number.value, &at, "the period").map(|period| (period, at));
            }
            ("mode", Value::StringLit(mode)) if matches!(&*mode.value, "absolute" | "relative") => {
                is_absolute = mode.value == "absolute";
            }
            (name, _) => reading.beyond(key(part), format_args!("`{name}` of a timer")),
        }
    }
    if !is_absolute {
        // rt-app's own choice where the file says nothing.
        reading.note(
            "a relative timer is read as an absolute one: after a job that is longer than its period rt-app counts from its end, here periods go on (until then both are the same)",
        );
    }
    if period.is_none() && !reading.is_wrong() {
        reading.refuse(key(property), "the timer has no period", "give one, in microseconds");
    }
    period
}

/// The bytes of a property's name.
fn key(property: &ObjectProp<'_>) -> Bytes {
    let range = property.name.range();
    range.start..range.end
}

pub(crate) fn write(system: &System) -> Result<Written, Vec<ModelError>> {
    let known = Known {
        word: "rt-app",
        preemption: "preemptive",
        many_cpus: true,
        sections: true,
        offset: true,
        ..Known::default()
    };
    let mut found = known.beyond(system);
    let us = Span::from_ns(1_000);
    let protocols: BTreeSet<&str> =
        system.resources().iter().map(|resource| resource.protocol.word()).collect();
    let inherits = protocols.contains("inheritance");
    if protocols.iter().any(|word| !matches!(*word, "inheritance" | "none")) || protocols.len() > 1 {
        let reason = "the mutexes of rt-app have priority inheritance, all or none";
        found.push(error("resource", reason, "give all resources `inheritance`, or all `none`"));
    }
    let mut text = format!(
        "{{\n\t\"global\" : {{ \"default_policy\" : \"SCHED_FIFO\", \"pi_enabled\" : {inherits} }},\n\t\"tasks\" : {{\n"
    );
    for (place, task) in system.tasks().iter().enumerate() {
        write_task(&mut text, task, us, &mut found);
        text.push_str(if place + 1 < system.tasks().len() { ",\n" } else { "\n" });
    }
    text.push_str("\t}\n}\n");
    found.dedup();
    if found.is_empty() { Ok(Written { text, notes: Vec::new() }) } else { Err(found) }
}

fn write_task(text: &mut String, task: &Task, us: Span, found: &mut Vec<ModelError>) {
    let priority = task.priority.map_or(DEFAULT_PRIORITY, Priority::number);
    if !PRIORITIES.contains(&priority) {
        found.push(error(
            at(task, "priority"),
            format!("{priority} is no priority of SCHED_FIFO"),
            "give 1 to 99",
        ));
    }
    if task.name.contains(['"', '\\'])
        || task.sections.iter().any(|section| section.resource.contains(['"', '\\']))
    {
        found.push(error(
            at(task, "name"),
            "the name needs escapes, which rt-app does not know",
            "give another name",
        ));
    }
    // Writing to a String cannot fail.
    let _ = write!(text, "\t\t\"{}\" : {{ \"priority\" : {priority}, \"cpus\" : [{}]", task.name, task.cpu.0);
    let mut units = |span, key| {
        whole(span, us, "give a multiple of 1 us: rt-app has no other unit", at(task, key), found)
    };
    if let Some(offset) = task.offset {
        let _ = write!(text, ", \"delay\" : {}", units(offset, "offset"));
    }
    let (mut executed, mut number) = (0, 0);
    for (instant, mutex, is_lock) in borders(task) {
        let until = units(instant, "section");
        if until > executed {
            let _ = write!(text, ", \"run{number}\" : {}", until - executed);
            executed = until;
        }
        let _ = write!(text, ", \"{}{number}\" : \"{mutex}\"", if is_lock { "lock" } else { "unlock" });
        number += 1;
    }
    let wcet = units(task.wcet, "wcet");
    if wcet > executed {
        let _ = write!(text, ", \"run{number}\" : {}", wcet - executed);
    }
    let period = units(task.separation().unwrap_or_default(), "period");
    let _ = write!(
        text,
        ", \"timer\" : {{ \"ref\" : \"unique\", \"period\" : {period}, \"mode\" : \"absolute\" }} }}"
    );
}

/// Where a job locks and unlocks: at one instant unlocks first (the inner one before the outer one), then locks (the outer one first).
fn borders(task: &Task) -> Vec<(Span, &str, bool)> {
    let mut found: Vec<((Span, u8, i128), &str, bool)> = Vec::new();
    for section in &task.sections {
        let end = section.end().unwrap_or(Span::MAX);
        let from = i128::from(section.from.as_ns());
        found.push(((section.from, 1, -i128::from(section.length.as_ns())), &section.resource, true));
        found.push(((end, 0, -from), &section.resource, false));
    }
    found.sort_by_key(|(key, ..)| *key);
    found.into_iter().map(|((instant, ..), mutex, is_lock)| (instant, mutex, is_lock)).collect()
}
