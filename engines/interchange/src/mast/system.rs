//! From the items of a model to the parts of a system.
//!
//! | MAST | here |
//! |---|---|
//! | processor | CPU, in the order of the file |
//! | primary scheduler, scheduling server | policy, the task's priority and whether it may be preempted |
//! | transaction of one activity | task |
//! | operation, composite operation | wcet, bcet, sections |
//! | shared resource | resource |

use super::form;
use super::operations::{Path, execute};
use super::tree::{Item, Word};
use crate::reading::{Bytes, Reading};
use horolog_model::{Arrival, CpuId, Cpus, Policy, Preemption, Priority, Protocol, Resource, Task};
use horolog_time::Span;
use std::collections::BTreeMap;

/// The elements of a model by their names, in small letters.
#[derive(Default)]
pub(super) struct Model<'a> {
    cpus: BTreeMap<String, CpuId>,
    /// The processor and the policy of a scheduler.
    schedulers: BTreeMap<String, (CpuId, Policy)>,
    servers: BTreeMap<String, &'a Item>,
    pub(super) operations: BTreeMap<String, &'a Item>,
    policies: Vec<Policy>,
    /// The ceilings that the file gives, with the names of their resources.
    ceilings: Vec<(String, Word)>,
}

pub(super) fn read(reading: &mut Reading<'_>, items: &[Item]) {
    let mut model = Model::default();
    let of = |keyword: &'static str| items.iter().filter(move |item| item.is(keyword));
    for item in items {
        let known = [
            "Model",
            "Processing_Resource",
            "Scheduler",
            "Scheduling_Server",
            "Shared_Resource",
            "Operation",
            "Transaction",
        ];
        if !known.iter().any(|keyword| item.is(keyword)) {
            reading.beyond(item.key.at.clone(), format_args!("`{}`", item.key.text));
        }
    }
    for item in of("Model") {
        only(reading, item, &["Model_Name", "Model_Date", "System_Pip_Behaviour"]);
        if let Some(kind) =
            item.word("System_Pip_Behaviour").filter(|kind| !kind.text.eq_ignore_ascii_case("strict"))
        {
            reading.beyond(kind.at.clone(), format_args!("priority inheritance as `{}`", kind.text));
        }
        if let Some(name) = item.word("Model_Name") {
            reading.draft.name.clone_from(&name.text);
        }
    }
    for item in of("Processing_Resource") {
        processor(reading, item, &mut model);
    }
    for item in of("Scheduler") {
        scheduler(reading, item, &mut model);
    }
    for item in of("Shared_Resource") {
        resource(reading, item, &mut model);
    }
    for (keyword, elements) in
        [("Scheduling_Server", &mut model.servers), ("Operation", &mut model.operations)]
    {
        for item in of(keyword) {
            if let Some(name) = name(reading, item)
                && elements.insert(name.text.to_ascii_lowercase(), item).is_some()
            {
                named_twice(reading, name);
            }
        }
    }
    for item in of("Transaction") {
        transaction(reading, item, &mut model);
    }
    ceilings(reading, &model);
    form::check(reading, items);
    reading.draft.platform.cpus = Cpus::Count(model.cpus.len().max(1) as u32);
    if model.policies.contains(&Policy::Edf) {
        reading.draft.policy = Policy::Edf;
    }
    if reading.draft.policy == Policy::Edf && model.policies.contains(&Policy::FixedPriority) {
        reading.beyond(0..0, "fixed priorities on one processor and EDF on another");
    }
    if reading.draft.tasks.is_empty() && !reading.is_wrong() {
        reading.refuse(0..0, "there is no transaction in it", "give at least one");
    }
}

fn name<'i>(reading: &mut Reading<'_>, item: &'i Item) -> Option<&'i Word> {
    let name = item.word("Name");
    if name.is_none() {
        reading.refuse(item.key.at.clone(), format!("the {} has no name", item.key.text), "give it one");
    }
    name
}

fn named_twice(reading: &mut Reading<'_>, name: &Word) {
    reading.refuse(name.at.clone(), format!("the name `{}` is given twice", name.text), "rename one of them");
}

/// Refuses the items of a list that are not among the known ones.
pub(super) fn only(reading: &mut Reading<'_>, item: &Item, known: &[&str]) {
    for part in item.items() {
        if !known.iter().any(|key| part.is(key)) {
            let whose =
                if item.key.text.is_empty() { String::new() } else { format!(" of `{}`", item.key.text) };
            reading.beyond(part.key.at.clone(), format_args!("`{}`{whose}", part.key.text));
        }
    }
}

/// Refuses those of these words of a list that are not zero.
fn zeros(reading: &mut Reading<'_>, item: &Item, keys: &[&str]) {
    for key in keys {
        if let Some(word) = item.word(key) {
            reading.zero(&word.text, &word.at, &format!("`{key}`"));
        }
    }
}

fn processor(reading: &mut Reading<'_>, item: &Item, model: &mut Model<'_>) {
    let costs = [
        "Worst_ISR_Switch",
        "Avg_ISR_Switch",
        "Best_ISR_Switch",
        "Worst_Context_Switch",
        "Avg_Context_Switch",
        "Best_Context_Switch",
    ];
    if !matches!(item.kind().as_str(), "regular_processor" | "fixed_priority_processor") {
        reading.beyond(item.key.at.clone(), format_args!("the processing resource `{}`", item.kind()));
        return;
    }
    let mut known = vec![
        "Type",
        "Name",
        "Speed_Factor",
        "System_Timer",
        "Max_Priority",
        "Min_Priority",
        "Max_Interrupt_Priority",
        "Min_Interrupt_Priority",
    ];
    known.extend(costs);
    only(reading, item, &known);
    zeros(reading, item, &costs);
    if let Some(speed) = item.word("Speed_Factor")
        && speed.text.parse() != Ok(1.0_f64)
    {
        reading.beyond(speed.at.clone(), format_args!("the speed {}", speed.text));
    }
    if let Some(timer) = item.item("System_Timer") {
        only(reading, timer, &["Type", "Worst_Overhead", "Avg_Overhead", "Best_Overhead"]);
        zeros(reading, timer, &["Worst_Overhead", "Avg_Overhead", "Best_Overhead"]);
    }
    let Some(name) = name(reading, item) else { return };
    let cpu = CpuId(model.cpus.len() as u32);
    let key = name.text.to_ascii_lowercase();
    if model.cpus.insert(key.clone(), cpu).is_some() {
        named_twice(reading, name);
    }
    if item.kind() == "fixed_priority_processor" {
        // The older form has no schedulers: servers name their processor.
        model.schedulers.insert(key, (cpu, Policy::FixedPriority));
    }
}

fn scheduler(reading: &mut Reading<'_>, item: &Item, model: &mut Model<'_>) {
    if item.kind() != "primary_scheduler" {
        reading.beyond(item.key.at.clone(), format_args!("the scheduler `{}`", item.kind()));
        return;
    }
    only(reading, item, &["Type", "Name", "Host", "Policy"]);
    let Some(policy) = item.item("Policy") else {
        reading.refuse(item.key.at.clone(), "the scheduler has no policy", "give it one");
        return;
    };
    let costs = ["Worst_Context_Switch", "Avg_Context_Switch", "Best_Context_Switch"];
    only(reading, policy, &["Type", "Max_Priority", "Min_Priority", costs[0], costs[1], costs[2]]);
    zeros(reading, policy, &costs);
    let which = match policy.kind().as_str() {
        "fixed_priority" => Policy::FixedPriority,
        "edf" => Policy::Edf,
        other => {
            reading.beyond(policy.key.at.clone(), format_args!("the policy `{other}`"));
            return;
        }
    };
    let (Some(name), Some(host)) = (name(reading, item), item.word("Host")) else {
        reading.refuse(item.key.at.clone(), "the scheduler has no `Host`", "name its processor");
        return;
    };
    match model.cpus.get(&host.text.to_ascii_lowercase()) {
        Some(&cpu) => {
            if model.schedulers.insert(name.text.to_ascii_lowercase(), (cpu, which)).is_some() {
                named_twice(reading, name);
            }
        }
        None => unknown(reading, host, "processor"),
    }
}

pub(super) fn unknown(reading: &mut Reading<'_>, word: &Word, what: &str) {
    reading.refuse(
        word.at.clone(),
        format!("there is no {what} `{}`", word.text),
        format!("give the name of a {what}"),
    );
}

fn resource(reading: &mut Reading<'_>, item: &Item, model: &mut Model<'_>) {
    let Some(name) = name(reading, item) else { return };
    only(reading, item, &["Type", "Name", "Ceiling", "Preassigned", "Preemption_Level"]);
    let protocol = match item.kind().as_str() {
        "immediate_ceiling_resource" | "srp_resource" => Protocol::Ceiling,
        "priority_inheritance_resource" => Protocol::Inheritance,
        other => {
            reading.beyond(item.key.at.clone(), format_args!("the shared resource `{other}`"));
            return;
        }
    };
    if !is_computed(item) {
        level(reading, item);
        if let Some(ceiling) = item.word("Ceiling") {
            model.ceilings.push((name.text.clone(), ceiling.clone()));
        }
    }
    reading.place("resource", &name.text, "", name.at.clone());
    reading.draft.resources.push(Resource { name: name.text.clone(), protocol, ..Resource::default() });
}

/// Whether a ceiling or a level that is given is not the one that counts.
fn is_computed(item: &Item) -> bool {
    item.word("Preassigned").is_some_and(|word| word.text.eq_ignore_ascii_case("no"))
}

/// Levels follow from the tasks here; where the file gives its own they may be others.
fn level(reading: &mut Reading<'_>, item: &Item) {
    if let Some(level) = item.word("Preemption_Level") {
        let reason = "a given preemption level is beyond the model, which computes it from the tasks";
        reading.refuse(
            level.at.clone(),
            reason,
            "write `Preassigned => NO`, where the computed one is right, too",
        );
    }
}

/// A given ceiling has to be the one that the model computes: the most important priority of the users.
fn ceilings(reading: &mut Reading<'_>, model: &Model<'_>) {
    for (resource, given) in &model.ceilings {
        let users = reading.draft.tasks.iter().filter(|task| {
            task.sections.iter().any(|section| section.resource.eq_ignore_ascii_case(resource))
        });
        let Some(highest) = users.map(|task| task.priority.map(Priority::number)).max() else { continue };
        if given.text.parse().ok() == highest && highest.is_some() {
            continue;
        }
        let remedy = highest.map_or_else(
            || "write `Preassigned => NO`".to_owned(),
            |highest| format!("write {highest}, or `Preassigned => NO`"),
        );
        let reason =
            format!("the ceiling {} is not the highest priority of those that use `{resource}`", given.text);
        reading.refuse(given.at.clone(), reason, remedy);
    }
}

/// A transaction with its one activity becomes a task.
fn transaction(reading: &mut Reading<'_>, item: &Item, model: &mut Model<'_>) {
    let Some(name) = name(reading, item) else { return };
    only(reading, item, &["Type", "Name", "External_Events", "Internal_Events", "Event_Handlers"]);
    let part = |key: &str| item.item(key).map(Item::items).unwrap_or_default();
    let [event] = part("External_Events") else {
        let count = part("External_Events").len();
        reading.beyond(name.at.clone(), format_args!("a transaction with {count} external events"));
        return;
    };
    let [activity] = part("Event_Handlers") else {
        let count = part("Event_Handlers").len();
        reading.beyond(
            name.at.clone(),
            format_args!("a transaction with {count} event handlers (a chain of activities)"),
        );
        return;
    };
    if activity.kind() != "activity" {
        reading.beyond(activity.key.at.clone(), format_args!("the event handler `{}`", activity.kind()));
        return;
    }
    only(
        reading,
        activity,
        &["Type", "Input_Event", "Output_Event", "Activity_Operation", "Activity_Server"],
    );
    let internal = part("Internal_Events");
    if let [_, second, ..] = internal {
        reading.beyond(second.key.at.clone(), "a second internal event");
    }
    for (word, events, what) in [
        (activity.word("Input_Event"), std::slice::from_ref(event), "external event of this transaction"),
        (activity.word("Output_Event"), internal, "internal event of this transaction"),
    ] {
        let is_it = |event: &Item, word: &Word| {
            event.word("Name").is_none_or(|name| name.text.eq_ignore_ascii_case(&word.text))
        };
        if let Some(word) = word.filter(|word| !events.iter().any(|event| is_it(event, word))) {
            unknown(reading, word, what);
        }
    }
    let mut task = Task::new(&name.text, Arrival::Aperiodic { arrivals: Vec::new() }, Span::ZERO);
    let mut keys: Vec<(&'static str, Bytes)> = vec![("", name.at.clone()), ("name", name.at.clone())];
    arrival(reading, event, &mut task, &mut keys);
    requirement(reading, internal, event, &mut task, &mut keys);
    let Some((operation, server)) = activity.word("Activity_Operation").zip(activity.word("Activity_Server"))
    else {
        reading.refuse(activity.key.at.clone(), "the activity has no operation or no server", "name both");
        return;
    };
    let mut path = Path::default();
    execute(reading, operation, model, &mut task, &mut path, 0);
    for (resource, _, at) in path.open {
        reading.refuse(
            at,
            format!("`{resource}` is locked and never unlocked"),
            "unlock it in a later operation",
        );
    }
    (task.bcet, task.wcet) = path.executed;
    keys.push(("wcet", operation.at.clone()));
    served(reading, server, model, &mut task, &mut keys);
    reading.task(task, keys);
}

fn arrival(reading: &mut Reading<'_>, event: &Item, task: &mut Task, keys: &mut Vec<(&'static str, Bytes)>) {
    let mut time = |key: &str| {
        let word = event.word(key)?;
        Some((reading.time(&word.text, &word.at, &format!("`{key}`"))?, word.at.clone()))
    };
    let at = event.key.at.clone();
    match event.kind().as_str() {
        "periodic" => {
            let (period, jitter, phase) = (time("Period"), time("Max_Jitter"), time("Phase"));
            only(reading, event, &["Type", "Name", "Period", "Max_Jitter", "Phase"]);
            let (period, at) = period.unwrap_or((Span::ZERO, at));
            task.arrival = Arrival::Periodic { period };
            keys.push(("period", at));
            if let Some((jitter, at)) = jitter {
                task.jitter = jitter;
                keys.push(("jitter", at));
            }
            if let Some((phase, at)) = phase.filter(|(phase, _)| !phase.is_zero()) {
                task.offset = Some(phase);
                keys.push(("offset", at));
            }
        }
        "sporadic" => {
            let separation = time("Min_Interarrival");
            only(reading, event, &["Type", "Name", "Min_Interarrival", "Avg_Interarrival", "Distribution"]);
            let (separation, at) = separation.unwrap_or((Span::ZERO, at));
            task.arrival = Arrival::Sporadic { separation };
            keys.push(("separation", at));
        }
        "singular" => {
            let phase = time("Phase");
            only(reading, event, &["Type", "Name", "Phase"]);
            let (phase, at) = phase.unwrap_or((Span::ZERO, at));
            task.arrival = Arrival::Aperiodic { arrivals: vec![phase] };
            keys.push(("arrivals", at));
        }
        other => reading.beyond(at, format_args!("an external event that is `{other}`")),
    }
}

/// The deadline that the transaction's end has to keep.
fn requirement(
    reading: &mut Reading<'_>,
    events: &[Item],
    external: &Item,
    task: &mut Task,
    keys: &mut Vec<(&'static str, Bytes)>,
) {
    task.deadline = task.separation();
    let mut is_required = false;
    for event in events {
        only(reading, event, &["Type", "Name", "Timing_Requirements"]);
        let Some(requirement) = event.item("Timing_Requirements") else { continue };
        let kind = requirement.kind();
        let is_soft = kind.starts_with("soft_");
        if !matches!(
            kind.trim_start_matches("hard_").trim_start_matches("soft_"),
            "global_deadline" | "local_deadline"
        ) {
            reading.beyond(requirement.key.at.clone(), format_args!("the requirement `{kind}`"));
            continue;
        }
        only(reading, requirement, &["Type", "Deadline", "Referenced_Event"]);
        if let (Some(referenced), Some(own)) = (requirement.word("Referenced_Event"), external.word("Name"))
            && !referenced.text.eq_ignore_ascii_case(&own.text)
        {
            unknown(reading, referenced, "external event of this transaction");
        }
        let Some(deadline) = requirement.word("Deadline") else {
            reading.refuse(requirement.key.at.clone(), "the requirement has no deadline", "give one");
            continue;
        };
        if is_required {
            reading.beyond(requirement.key.at.clone(), "a second requirement");
        }
        task.deadline = reading.time(&deadline.text, &deadline.at, "the deadline");
        task.is_soft = is_soft;
        keys.push(("deadline", deadline.at.clone()));
        is_required = true;
    }
    if !is_required {
        task.is_soft = true;
        reading.note("a transaction without a requirement has its period for a deadline, a soft one");
    }
}

/// The processor, the priority and the kind of preemption that the task's scheduling server gives.
fn served(
    reading: &mut Reading<'_>,
    server: &Word,
    model: &mut Model<'_>,
    task: &mut Task,
    keys: &mut Vec<(&'static str, Bytes)>,
) {
    let Some(item) = model.servers.get(&server.text.to_ascii_lowercase()).copied() else {
        unknown(reading, server, "scheduling server");
        return;
    };
    let known = [
        "Type",
        "Name",
        "Scheduler",
        "Server_Processing_Resource",
        "Server_Sched_Parameters",
        "Server_Synch_Parameters",
    ];
    only(reading, item, &known);
    let Some(above) = item.word("Scheduler").or_else(|| item.word("Server_Processing_Resource")) else {
        reading.refuse(item.key.at.clone(), "the scheduling server has no scheduler", "name one");
        return;
    };
    let Some(&(cpu, policy)) = model.schedulers.get(&above.text.to_ascii_lowercase()) else {
        unknown(reading, above, "scheduler");
        return;
    };
    task.cpu = cpu;
    model.policies.push(policy);
    let Some(parameters) = item.item("Server_Sched_Parameters") else {
        reading.refuse(
            item.key.at.clone(),
            "the scheduling server has no parameters",
            "give its priority or deadline",
        );
        return;
    };
    only(reading, parameters, &["Type", "The_Priority", "Preassigned", "Deadline"]);
    if let Some(levels) = item.item("Server_Synch_Parameters") {
        only(reading, levels, &["Type", "Preemption_Level", "Preassigned"]);
        if !is_computed(levels) {
            level(reading, levels);
        }
    }
    match (parameters.kind().as_str(), policy) {
        (kind @ ("fixed_priority_policy" | "non_preemptible_fp_policy"), Policy::FixedPriority) => {
            let Some(word) = parameters.word("The_Priority") else {
                reading.refuse(parameters.key.at.clone(), "there is no priority", "give `The_Priority`");
                return;
            };
            task.priority = reading.integer(&word.text, &word.at, "the priority").map(Priority::new);
            keys.push(("priority", word.at.clone()));
            if kind == "non_preemptible_fp_policy" {
                task.preemption = Preemption::NonPreemptive;
            }
        }
        ("edf_policy", Policy::Edf) => {
            if let Some(word) = parameters.word("Deadline")
                && reading.time(&word.text, &word.at, "the deadline") != task.deadline
            {
                reading
                    .beyond(word.at.clone(), "a deadline for scheduling other than the one that is required");
            }
        }
        (kind, _) => reading.beyond(parameters.key.at.clone(), format_args!("the parameters `{kind}` here")),
    }
}
