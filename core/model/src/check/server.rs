//! The rules of servers and of the tasks that they serve.

use super::forest::{Above, Forest};
use super::{At, Checker, Paths};
use crate::server::MAX_REPLENISHMENTS;
use crate::{
    Arrival, CpuId, Draft, Gain, LowPriority, Order, Preemption, PriorityAssignment, Server, ServerKind, Task,
};
use horolog_time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The priorities that the assignment would give, with room between for servers.
fn by_assignment(draft: &Draft) -> String {
    let served: BTreeSet<&String> = draft.servers.iter().flat_map(|server| &server.tasks).collect();
    let key = |task: &Task| match draft.priorities {
        PriorityAssignment::RateMonotonic => task.separation(),
        PriorityAssignment::DeadlineMonotonic => task.deadline,
        _ => None,
    };
    let hard = draft.tasks.iter().filter(|task| !served.contains(&task.name));
    let mut keyed: Vec<(Span, &str)> =
        hard.clone().filter_map(|task| Some((key(task)?, task.name.as_str()))).collect();
    let head = "remove `priorities` from [system] and give every hard task its priority";
    if keyed.is_empty() || keyed.len() < hard.count() || keyed.len() > 20 {
        return head.to_owned();
    }
    keyed.sort_by_key(|(key, _)| *key);
    let count = keyed.len();
    let each = keyed.iter().enumerate().map(|(place, (_, name))| format!("{name} {}", 10 * (count - place)));
    format!(
        "{head}: by the assignment {}, with room between for servers",
        each.collect::<Vec<_>>().join(", ")
    )
}

/// The names of all tasks that some server names.
pub(super) fn served_names(draft: &Draft) -> BTreeSet<&str> {
    let soft = draft.servers.iter().filter(|server| server.order == Order::Fifo);
    soft.flat_map(|server| &server.tasks).map(String::as_str).collect()
}

/// How the error of a server ends whose kind is for fixed priorities alone.
pub(crate) const NEEDS_FIXED_PRIORITIES: &str = "needs fixed priorities";

impl Checker {
    pub(super) fn servers(&mut self, forest: &Forest<'_>, is_complete: bool) {
        let (draft, paths) = (forest.draft, forest.paths);
        if draft.servers.is_empty() {
            return;
        }
        let tasks = &forest.task_places;
        let served = served_names(draft);
        let mut assigned = None;
        let mut server_of: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (index, server) in draft.servers.iter().enumerate() {
            let path = &paths.servers[index];
            self.name(&server.name, At::new(path, "name"));
            self.cpu(server.cpu, path, &draft.platform);
            self.server_policy(index, forest, &mut assigned);
            self.server_capacity(server, path);
            self.server_places(server, path);
            self.server_details(server, path);
            let serves_device = forest.serving_devices.contains(server.name.as_str());
            if server.tasks.is_empty() && !serves_device && !server.is_scheduler() {
                let remedy = "name the tasks that it serves, as in `tasks = [\"logger\"]`";
                self.fail(At::new(path, "tasks"), "the server serves nobody", remedy);
            }
            for (place, name) in server.tasks.iter().enumerate() {
                let at = At::new(path, "tasks").item(place);
                match (tasks.get(name.as_str()), server_of.get(name.as_str())) {
                    (_, Some(&(other, other_place))) => self.fail_beside(
                        at,
                        format!("the task `{name}` is served twice"),
                        "name it once, below one server",
                        vec![(
                            At::new(&paths.servers[other], "tasks").item(other_place),
                            "already here".to_owned(),
                        )],
                    ),
                    (Some(&task), None) => {
                        server_of.insert(name, (index, place));
                        self.below(&draft.tasks[task], &paths.tasks[task], server, &at);
                    }
                    // It may be one of those that could not be read.
                    (None, None) if is_complete => {
                        let remedy = self.suggestions.did_you_mean(name, tasks.keys().copied());
                        self.fail(at, format!("there is no task `{name}` to serve"), remedy);
                    }
                    (None, None) => {}
                }
            }
            // A second one is told beside the first.
            if forest.watching.get(&server.cpu) == Some(&index) {
                self.stands_alone(draft, paths, index);
                if server.kind.is_slack_policy() {
                    self.slack_policy(draft, paths, index, &served);
                }
            }
            if let Some(first) = forest.first_of_kernel.filter(|_| server.kind.is_kernels()) {
                self.kernels(draft, paths, index, first, serves_device);
            }
        }
        if is_complete {
            self.promotions(draft, paths, &served);
        }
    }

    /// Promotion times are for hard tasks beside dual priority.
    fn promotions(&mut self, draft: &Draft, paths: &Paths, served: &BTreeSet<&str>) {
        let is_dual = |server: &&Server| matches!(server.kind, ServerKind::DualPriority { .. });
        let dual: BTreeSet<CpuId> = draft.servers.iter().filter(is_dual).map(|server| server.cpu).collect();
        for (task, path) in draft.tasks.iter().zip(&paths.tasks) {
            let Some(promotion) = task.promotion else { continue };
            let at = At::new(path, "promotion");
            if !dual.contains(&task.cpu) {
                let remedy = "remove it, or add a `[[server]]` with `kind = \"dual-priority\"`";
                self.fail(at, "only beside dual priority jobs are promoted", remedy);
            } else if served.contains(task.name.as_str()) {
                self.fail(at, "a served task is never promoted", "remove it");
            } else if task.deadline.is_some_and(|deadline| promotion > deadline) {
                self.fail(
                    at,
                    "the jobs would be promoted after their deadline",
                    "leave it out, or give less",
                );
            }
        }
    }

    /// Its kind and priority, by what orders it.
    fn server_policy(&mut self, index: usize, forest: &Forest<'_>, assigned: &mut Option<String>) {
        let (draft, server, path) =
            (forest.draft, &forest.draft.servers[index], &forest.paths.servers[index]);
        let above = forest.above_server(index);
        let is_root = above == Above::Root;
        let word = server.kind.word();
        match (&server.kind, forest.order(above)) {
            (ServerKind::Background, _) => {}
            (kind, _) if kind.is_kernels() => {}
            (kind, Some(Order::FixedPriority)) if kind.has_deadlines() => self.fail_beside(
                At::new(path, "kind"),
                format!("a {word} server has a deadline, which fixed priorities do not look at"),
                if is_root && !kind.is_budgeted() {
                    "use `policy = \"edf\"` in [system], or a sporadic server".to_owned()
                } else if is_root {
                    "use `policy = \"edf\"` in [system], a sporadic server, or `enforcement = \"kernel\"` where it may stand \
                     above every task"
                        .to_owned()
                } else {
                    format!("use a sporadic one, or {}", forest.to_order(above, Order::Edf))
                },
                forest.what_orders(above),
            ),
            (ServerKind::Plain { priority: None }, Some(Order::FixedPriority)) => self.fail_beside(
                At::new(path, "priority"),
                "under fixed priorities a scheduler needs a `priority`",
                "add `priority = 90` (larger is more important)",
                forest.what_orders(above),
            ),
            (ServerKind::Plain { priority: Some(_) }, Some(Order::Edf)) => self.fail_beside(
                At::new(path, "priority"),
                "under EDF a scheduler has no priority",
                format!("remove `priority`, or use {}", forest.to_order(above, Order::FixedPriority)),
                forest.what_orders(above),
            ),
            (kind, Some(Order::Table)) if kind.priority().is_some() || kind.capacity().is_some() => {
                self.fail_beside(
                    At::new(path, if kind.capacity().is_some() { "kind" } else { "priority" }),
                    "what stands below a time table has its windows, and no budget or priority",
                    "remove it, or put another scheduler between",
                    forest.what_orders(above),
                );
            }
            (ServerKind::Plain { .. }, _) => {}
            (kind, _) if kind.has_deadlines() => {}
            (_, Some(Order::Edf)) => self.fail_beside(
                At::new(path, "kind"),
                format!("a {word} server {NEEDS_FIXED_PRIORITIES}"),
                if is_root {
                    "use a constant-bandwidth server, or `policy = \"fixed-priority\"` in [system]".to_owned()
                } else {
                    format!("use a constant-bandwidth one, or {}", forest.to_order(above, Order::FixedPriority))
                },
                forest.what_orders(above),
            ),
            // A parent that serves first in, first out, or is not there, is told as such.
            (_, Some(Order::FixedPriority | Order::Fifo | Order::Table) | None) => {}
        }
        // Beside trees no assignment is allowed at all.
        if server.kind.priority().is_some()
            && draft.priorities != PriorityAssignment::Explicit
            && !forest.has_trees()
        {
            self.fail_beside(
                At::new(path, "priority"),
                format!("the assignment `{}` places no servers", draft.priorities.word().unwrap_or_default()),
                assigned.get_or_insert_with(|| by_assignment(draft)).clone(),
                vec![("system.priorities".to_owned(), "the assignment".to_owned())],
            );
        }
    }

    fn server_capacity(&mut self, server: &Server, path: &str) {
        let Some(capacity) = server.kind.capacity() else { return };
        if capacity.budget.is_zero() {
            let remedy = "give the execution time that it may take in every period";
            self.fail(At::new(path, "budget"), "the budget is zero", remedy);
        }
        if capacity.period.is_zero() {
            let remedy = "give the time after which the budget comes back";
            self.fail(At::new(path, "period"), "the period is zero", remedy);
        } else if capacity.budget > capacity.period {
            self.fail_beside(
                At::new(path, "budget"),
                format!("the budget {} is above the period {}", capacity.budget, capacity.period),
                "lower the budget, or raise the period: nothing takes more than all of a CPU",
                vec![(At::new(path, "period").to_string(), "the period".to_owned())],
            );
        }
        // A budget above the period is said above, also where the deadline is the period because none is given.
        let is_too_large = capacity.budget > capacity.period && server.deadline == Some(capacity.period);
        let Some(deadline) = server.deadline.filter(|_| !is_too_large) else { return };
        for (key, limit, wrong) in [
            ("period", capacity.period, deadline > capacity.period),
            ("budget", capacity.budget, deadline < capacity.budget),
        ] {
            if wrong {
                let side = if key == "period" { "above" } else { "below" };
                self.fail_beside(
                    At::new(path, "deadline"),
                    format!("the deadline {deadline} is {side} the {key} {limit}"),
                    "give a time from the budget to the period",
                    vec![(At::new(path, key).to_string(), format!("the {key}"))],
                );
            }
        }
    }

    fn server_places(&mut self, server: &Server, path: &str) {
        if let (Some(priority), Some(LowPriority::At(low))) =
            (server.kind.priority(), server.kind.low_priority())
            && !priority.is_more_important_than(low)
        {
            self.fail_beside(
                At::new(path, "low_priority"),
                format!("the low priority {} is not below the priority {}", low.number(), priority.number()),
                "lower it, or use `\"background\"` or `\"none\"`",
                vec![(At::new(path, "priority").to_string(), "the priority".to_owned())],
            );
        }
    }

    fn server_details(&mut self, server: &Server, path: &str) {
        match server.kind {
            ServerKind::Sporadic { max_replenishments: 0, .. } => self.fail(
                At::new(path, "max_replenishments"),
                "without a replenishment the budget never comes back",
                "give at least 1; 32 is the default",
            ),
            ServerKind::Sporadic { max_replenishments, .. } if max_replenishments > MAX_REPLENISHMENTS => {
                self.fail(
                    At::new(path, "max_replenishments"),
                    format!("{max_replenishments} replenishments are more than a server can keep"),
                    format!("give at most {MAX_REPLENISHMENTS}"),
                );
            }
            ServerKind::SlackStealing { gain: Gain::SelfGain | Gain::Both } => self.fail(
                At::new(path, "gain"),
                "slack stealing has no self gain: hard jobs have one place only while there is no slack",
                "use `\"none\"` or `\"propagated\"`",
            ),
            _ => {}
        }
    }

    /// A task and the server or scheduler that names it.
    fn below(&mut self, task: &Task, path: &str, server: &Server, at: &str) {
        let noun = if server.is_scheduler() { "scheduler" } else { "server" };
        if task.cpu != server.cpu {
            self.fail_beside(
                at,
                format!(
                    "the {noun} is on CPU {} and its task `{}` on CPU {}",
                    server.cpu.0, task.name, task.cpu.0
                ),
                "put both on the same CPU",
                vec![(At::new(path, "cpu").to_string(), "the task's CPU".to_owned())],
            );
        }
        if server.order == Order::Fifo {
            self.served(task, path, server, at);
        }
    }

    /// A task that is served first in, first out.
    fn served(&mut self, task: &Task, path: &str, server: &Server, at: &str) {
        let here = || vec![(at.to_owned(), "served here".to_owned())];
        let noun = if server.is_scheduler() { "scheduler" } else { "server" };
        if task.priority.is_some() {
            let has_place = server.kind.priority().is_some();
            let how = if has_place { "at its own priority" } else { "first in, first out" };
            self.fail_beside(
                At::new(path, "priority"),
                format!("the {noun} `{}` serves this task {how}", server.name),
                format!("remove `priority`, or take the task out of the {noun}'s `tasks`"),
                here(),
            );
        }
        if task.preemption != Preemption::Preemptive {
            self.fail_beside(
                At::new(path, "preemption"),
                format!(
                    "the {noun} `{}` serves this task, and takes the processor away when its budget ends",
                    server.name
                ),
                format!("use `preemption = \"preemptive\"`, or take the task out of the {noun}'s `tasks`"),
                here(),
            );
        }
    }

    /// Who looks at every task of a processor stands there alone.
    fn stands_alone(&mut self, draft: &Draft, paths: &Paths, index: usize) {
        let server = &draft.servers[index];
        let word = server.kind.word();
        let kind = (At::new(&paths.servers[index], "kind").to_string(), format!("{word} here"));
        for (other, path) in draft.servers.iter().zip(&paths.servers) {
            if other.cpu == server.cpu && !std::ptr::eq(other, server) {
                self.fail_beside(
                    At::new(path, "kind"),
                    format!("{word} serves all soft tasks of its CPU, beside no other server"),
                    format!("name the tasks below `{}`, or use another CPU", server.name),
                    vec![kind.clone()],
                );
            }
        }
    }

    /// What the kernel serves is one thread, outranks every other one, keeps no promise of non-preemption, and is not
    /// pinned.
    fn kernels(&mut self, draft: &Draft, paths: &Paths, index: usize, first: usize, serves_device: bool) {
        let (server, path) = (&draft.servers[index], &paths.servers[index]);
        let here = || vec![(At::new(path, "enforcement").to_string(), "the kernel serves here".to_owned())];
        if server.tasks.len() > 1 || serves_device {
            self.fail_beside(
                At::new(path, "tasks"),
                "the kernel's reservation is for one thread, so for one task",
                "leave one task, and give the others a server of their own with `enforcement = \"own\"`",
                here(),
            );
        }
        if first < index {
            let (other, other_path) = (&draft.servers[first], &paths.servers[first]);
            self.fail_beside(
                At::new(path, "enforcement"),
                format!(
                    "the kernel orders this server and `{}` by their deadlines, so neither is the topmost",
                    other.name
                ),
                "use `enforcement = \"own\"` for all but one",
                vec![(At::new(other_path, "enforcement").to_string(), "the other one".to_owned())],
            );
            return;
        }
        for (task, path) in draft.tasks.iter().zip(&paths.tasks) {
            if task.cpu != server.cpu {
                self.fail_beside(
                    At::new(path, "cpu"),
                    format!(
                        "the kernel does not pin the thread of server `{}`, so it may preempt this task on CPU {} too",
                        server.name, task.cpu.0
                    ),
                    format!("put all tasks on CPU {}, or use `enforcement = \"own\"`", server.cpu.0),
                    here(),
                );
                break;
            }
        }
        for (task, path) in draft.tasks.iter().zip(&paths.tasks) {
            if task.cpu == server.cpu && task.preemption != Preemption::Preemptive {
                self.fail_beside(
                    At::new(path, "preemption"),
                    format!("the kernel preempts this task for server `{}` wherever it is", server.name),
                    "use `preemption = \"preemptive\"`, or `enforcement = \"own\"`",
                    here(),
                );
            }
        }
    }

    /// Dual priority and slack stealing have to know all hard tasks of their processor.
    fn slack_policy(&mut self, draft: &Draft, paths: &Paths, index: usize, served: &BTreeSet<&str>) {
        let server = &draft.servers[index];
        let word = server.kind.word();
        let kind = (At::new(&paths.servers[index], "kind").to_string(), format!("{word} here"));
        for (load, path) in draft.interferences.iter().zip(&paths.interferences) {
            if load.cpu == server.cpu {
                self.fail_beside(
                    At::new(path, "cpu"),
                    format!("{word} knows nothing of interferences"),
                    "use another CPU, or a sporadic server",
                    vec![kind.clone()],
                );
            }
        }
        let is_hard = |task: &Task| task.cpu == server.cpu && !served.contains(task.name.as_str());
        let hard: Vec<(&Task, &String)> =
            draft.tasks.iter().zip(&paths.tasks).filter(|(task, _)| is_hard(task)).collect();
        for &(task, path) in &hard {
            self.beside_slack_policy(task, path, server.kind, &kind);
        }
        if let ServerKind::DualPriority { gain } = server.kind
            && gain.is_propagated()
        {
            self.beside_propagated_gain(&hard, &At::new(&paths.servers[index], "gain").to_string());
        }
    }

    /// Hard tasks whose promotions may move by what others leave over: the worst schedule ahead has to be known.
    fn beside_propagated_gain(&mut self, hard: &[(&Task, &String)], gain: &str) {
        let others = || vec![(gain.to_owned(), "the gain".to_owned())];
        let remedy = "use `gain = \"self\"`";
        let mut priorities = BTreeSet::new();
        for &(task, path) in hard {
            let is_taken = task.priority.is_some_and(|priority| !priorities.insert(priority.number()));
            if !matches!(task.arrival, Arrival::Periodic { .. }) {
                let reason = "a gain is propagated among periodic hard tasks alone";
                self.fail_beside(path, reason, remedy, others());
            } else if !task.jitter.is_zero() {
                let reason = "a gain is propagated among hard tasks without jitter alone";
                self.fail_beside(At::new(path, "jitter"), reason, remedy, others());
            } else if is_taken {
                let reason = "a gain is propagated among hard tasks of distinct priorities alone";
                self.fail_beside(At::new(path, "priority"), reason, remedy, others());
            }
        }
    }

    /// A hard task beside a slack policy.
    fn beside_slack_policy(&mut self, task: &Task, path: &str, kind: ServerKind, other: &(String, String)) {
        let word = kind.word();
        let others = || vec![other.clone()];
        let sporadic = "use a sporadic server instead";
        match &task.arrival {
            Arrival::Aperiodic { .. } => self.fail_beside(
                At::new(path, "arrivals"),
                format!("{word} has to know when a hard task arrives next"),
                "give the task a period or separation, or let the server serve it",
                others(),
            ),
            Arrival::Sporadic { .. } if !task.jitter.is_zero() => self.fail_beside(
                At::new(path, "jitter"),
                format!("{word} cannot tell a sporadic job that is late from one that has not arrived"),
                format!("make the task periodic, remove the jitter, or {sporadic}"),
                others(),
            ),
            _ => {}
        }
        if task.deadline > task.separation() && task.separation().is_some() {
            self.fail_beside(
                At::new(path, "deadline"),
                format!("{word} is known for deadlines up to the period alone"),
                format!("shorten the deadline, or {sporadic}"),
                others(),
            );
        }
        if task.preemption != Preemption::Preemptive {
            self.fail_beside(
                At::new(path, "preemption"),
                format!("{word} is known for preemptive tasks alone"),
                format!("use `preemption = \"preemptive\"`, or {sporadic}"),
                others(),
            );
        }
    }
}
