//! The rules of modes.

use super::forest::Forest;
use super::{At, Checker, Finding, Paths, check, item_paths};
use crate::{
    Arrival, Draft, Mode, Order, OverrunPolicy, Policy, Preemption, Server, ServerChange, ServerKind,
    TakesEffect, Task, TaskChange, path,
};
use std::collections::{BTreeMap, BTreeSet};

impl Checker {
    pub(super) fn modes(&mut self, forest: &Forest<'_>, is_complete: bool) {
        let (draft, paths) = (forest.draft, forest.paths);
        self.asked_modes(draft, paths);
        self.virtual_deadlines(draft, paths);
        if draft.modes.is_empty() {
            return;
        }
        self.unique(draft.modes.iter().map(|mode| mode.name.as_str()), &paths.modes, "mode");
        // What is wrong without any mode is told once, not again for each of them.
        let is_clean = self.findings.is_empty();
        let (mut bare, mut bare_paths) = (draft.clone(), paths.clone());
        bare.modes.clear();
        bare_paths.modes.clear();
        for (mode, path) in draft.modes.iter().zip(&paths.modes) {
            let before = self.findings.len();
            self.mode(mode, path, forest, is_complete);
            if is_clean && self.findings.len() == before {
                self.mode_as_a_whole(mode, path, (&bare, &bare_paths), forest, is_complete);
            }
        }
        for (server, path) in draft.servers.iter().zip(&paths.servers) {
            if server.kind.is_slack_policy() || server.kind.is_kernels() {
                self.fail_beside(
                    At::new(path, "kind"),
                    "modes beside slack policies, and beside servers that the kernel serves, are not there yet",
                    "use a sporadic server, or a constant-bandwidth one with `enforcement = \"own\"`",
                    vec![(paths.modes[0].clone(), "a mode".to_owned())],
                );
            }
        }
    }

    /// The modes that overruns ask for.
    fn asked_modes(&mut self, draft: &Draft, paths: &Paths) {
        let known: BTreeSet<&str> = draft.modes.iter().map(|mode| mode.name.as_str()).collect();
        for (task, path) in draft.tasks.iter().zip(&paths.tasks) {
            let OverrunPolicy::Mode(name) = &task.overrun else { continue };
            if paths.all_modes && !known.contains(name.as_str()) {
                let at = At::new(path, "overrun.mode");
                if known.is_empty() {
                    let remedy = format!("add a `[[mode]]` with `name = \"{name}\"`, or use a word");
                    self.fail(at, "there is no `[[mode]]` that an overrun could ask for", remedy);
                } else {
                    let names = draft.modes.iter().map(|mode| mode.name.as_str());
                    let remedy = self.suggestions.did_you_mean(name, names);
                    self.fail(at, format!("there is no mode `{name}`"), remedy);
                }
            }
        }
    }

    /// Deadlines that order alone are for earliest deadline first on single processors.
    fn virtual_deadlines(&mut self, draft: &Draft, paths: &Paths) {
        let is_plain = draft.policy == Policy::Edf && draft.servers.is_empty() && draft.clusters.is_empty();
        for (task, path) in draft.tasks.iter().zip(&paths.tasks) {
            if task.virtual_deadline().is_some() && !is_plain {
                self.fail(
                    At::new(path, "virtual_deadline"),
                    "a virtual deadline orders jobs under EDF alone, without servers, schedulers and clusters",
                    "remove it, or write `policy = \"edf\"`",
                );
            }
        }
    }

    fn mode(&mut self, mode: &Mode, path: &str, forest: &Forest<'_>, is_complete: bool) {
        self.name(&mode.name, At::new(path, "name"));
        if mode.name == "base" {
            self.fail(
                At::new(path, "name"),
                "`base` is the mode that the other sections describe",
                "give this one another name",
            );
        }
        if let Some(index) = mode.at.windows(2).position(|pair| pair[0] >= pair[1]) {
            let reason =
                format!("the requests are not ascending: {} after {}", mode.at[index + 1], mode.at[index]);
            self.fail(
                At::new(path, "at").item(index + 1),
                reason,
                "write them in the order of time, each once",
            );
        }
        let tasks = &forest.task_places;
        if let Some(active) = &mode.active {
            self.named_once(active, At::new(path, "active"), "task", tasks, is_complete);
        }
        match &mode.takes_effect {
            TakesEffect::Frame(name) => self.frame(name, path, forest, is_complete),
            TakesEffect::WhenDone(names) => {
                let at = At::new(path, "takes_effect.when_done");
                if names.is_empty() {
                    self.fail(at, "there is no task to wait for", "name at least one, or use `\"at-once\"`");
                }
                self.named_once(names, at, "task", tasks, is_complete);
            }
            TakesEffect::AtOnce => {}
        }
        self.then(mode, path, forest);
        self.task_changes(mode, path, forest, is_complete);
        self.server_changes(mode, path, forest, is_complete);
    }

    /// The mode that follows, and that it does not come at the same instant for ever.
    fn then(&mut self, mode: &Mode, path: &str, forest: &Forest<'_>) {
        let Some(then) = &mode.then else { return };
        let at = At::new(path, "then");
        let modes = &forest.draft.modes;
        match modes.iter().find(|other| other.name == *then) {
            Some(next) if next.then.is_some() => self.fail(
                at,
                format!("`{then}` has a `then` of its own: chains of modes are not there yet"),
                "let it end with a mode that asks for no other",
            ),
            None if forest.paths.all_modes => {
                let names = modes.iter().map(|mode| mode.name.as_str());
                let remedy = self.suggestions.did_you_mean(then, names);
                self.fail(at, format!("there is no mode `{then}`"), remedy);
            }
            _ => {}
        }
    }

    /// Names that exist, each given once.
    fn named_once(
        &mut self,
        names: &[String],
        at: At<'_>,
        noun: &str,
        known: &BTreeMap<&str, usize>,
        is_complete: bool,
    ) {
        let mut seen = BTreeSet::new();
        for (place, name) in names.iter().enumerate() {
            if !seen.insert(name.as_str()) {
                self.fail(at.item(place), format!("`{name}` is named twice"), "name it once");
            } else if is_complete && !known.contains_key(name.as_str()) {
                let remedy = self.suggestions.did_you_mean(name, known.keys().copied());
                self.fail(at.item(place), format!("there is no {noun} `{name}`"), remedy);
            }
        }
    }

    /// A frame is a period of a server.
    fn frame(&mut self, name: &str, path: &str, forest: &Forest<'_>, is_complete: bool) {
        let at = At::new(path, "takes_effect.frame");
        let servers = &forest.draft.servers;
        match forest.server_place(name).map(|place| &servers[place]) {
            Some(server) if !has_frames(server) => self.fail(
                at,
                format!("`{name}` has no periodic frame"),
                "name a polling or deferrable server or scheduler, or one that orders by a time table",
            ),
            None if is_complete => {
                let known = servers.iter().filter(|server| has_frames(server));
                let known = known.map(|server| server.name.as_str());
                let remedy = self.suggestions.did_you_mean(name, known);
                self.fail(at, format!("there is no server or scheduler `{name}`"), remedy);
            }
            _ => {}
        }
    }

    fn task_changes(&mut self, mode: &Mode, path: &str, forest: &Forest<'_>, is_complete: bool) {
        let draft = forest.draft;
        let active: Option<BTreeSet<&str>> =
            mode.active.as_ref().map(|active| active.iter().map(String::as_str).collect());
        let names: Vec<&str> = mode.tasks.iter().map(|change| change.task.as_str()).collect();
        let paths = item_paths(&path::join(path, "task"), &names);
        self.unique_changes(&names, &paths, "task");
        for (change, path) in mode.tasks.iter().zip(&paths) {
            let place = forest.task_places.get(change.task.as_str());
            let Some(task) = place.map(|&place| &draft.tasks[place]) else {
                if is_complete {
                    let known = draft.tasks.iter().map(|task| task.name.as_str());
                    let remedy = self.suggestions.did_you_mean(&change.task, known);
                    let reason = format!("there is no task `{}`", change.task);
                    self.fail(At::new(path, "name"), reason, remedy);
                }
                continue;
            };
            let says_nothing = change.priority.is_none() && change.period.is_none();
            let changes = change.deadline.is_some() || change.wcet.is_some() || change.left_over.is_some();
            if says_nothing && !changes {
                self.fail(
                    At::new(path, "name"),
                    "nothing of this task is different in the mode",
                    "give a `priority`, `period`, `deadline`, `wcet` or `left_over`, or remove the section",
                );
            }
            if change.period.is_some() && matches!(task.arrival, Arrival::Aperiodic { .. }) {
                self.fail(
                    At::new(path, "period"),
                    "the arrivals of this task are listed, so it has no period",
                    "remove `period`, or give the task a `period` or `separation` instead of `arrivals`",
                );
            }
            let is_active = active.as_ref().is_none_or(|active| active.contains(change.task.as_str()));
            self.limit(change, task, draft, path);
            if change.period.is_some() && !is_active {
                self.fail(
                    At::new(path, "period"),
                    "the task releases nothing in this mode",
                    "remove `period`, or name the task in `active`",
                );
            }
        }
    }

    /// What a job may execute in a mode.
    fn limit(&mut self, change: &TaskChange, task: &Task, draft: &Draft, path: &str) {
        let Some(wcet) = change.wcet else { return };
        let at = At::new(path, "wcet");
        if wcet.is_zero() || wcet >= task.wcet {
            let reason =
                format!("in a mode a job may execute less, and {wcet} is not below the wcet {}", task.wcet);
            self.fail(at, reason, "lower it, or remove it");
        } else if task.preemption != Preemption::Preemptive || !task.sections.is_empty() {
            self.fail(
                at,
                "a wcet of a mode ends jobs anywhere, which is for preemptive tasks without sections",
                "remove it, or the task's `preemption` and `sections`",
            );
        } else if task.overrun != OverrunPolicy::Count {
            self.fail(
                at,
                "a wcet of a mode beside `overrun` is not there yet: both say what ends a job",
                "remove one of them",
            );
        } else if !draft.servers.is_empty() || !draft.clusters.is_empty() || !draft.devices.is_empty() {
            self.fail(
                at,
                "a wcet of a mode beside servers, schedulers, clusters or devices is not there yet",
                "remove it, or those",
            );
        }
    }

    fn server_changes(&mut self, mode: &Mode, path: &str, forest: &Forest<'_>, is_complete: bool) {
        let draft = forest.draft;
        let names: Vec<&str> = mode.servers.iter().map(|change| change.server.as_str()).collect();
        let paths = item_paths(&path::join(path, "server"), &names);
        self.unique_changes(&names, &paths, "server");
        for (change, path) in mode.servers.iter().zip(&paths) {
            match forest.server_place(&change.server).map(|place| &draft.servers[place]) {
                None if is_complete => {
                    let known = draft.servers.iter().map(|server| server.name.as_str());
                    let remedy = self.suggestions.did_you_mean(&change.server, known);
                    let reason = format!("there is no server or scheduler `{}`", change.server);
                    self.fail(At::new(path, "name"), reason, remedy);
                }
                Some(server) => self.server_change(change, server, path),
                None => {}
            }
        }
    }

    fn server_change(&mut self, change: &ServerChange, server: &Server, path: &str) {
        let name = &change.server;
        if change.capacity.is_none() && change.table.is_none() {
            self.fail(
                At::new(path, "name"),
                "nothing of this server is different in the mode",
                "give `budget` and `period`, or `cycle` and `windows`, or remove the section",
            );
        }
        if change.capacity.is_some() && server.kind.capacity().is_none() {
            self.fail(
                At::new(path, "budget"),
                format!("`{name}` has no budget that a mode could change"),
                "remove `budget` and `period`, or give the server or scheduler a `kind` with a budget",
            );
        }
        if change.table.is_some() && server.order != Order::Table {
            self.fail(
                At::new(path, "windows"),
                format!("`{name}` has no time table that a mode could change"),
                "remove `cycle` and `windows`, or give the scheduler `order = \"table\"`",
            );
        }
    }

    fn unique_changes(&mut self, names: &[&str], paths: &[String], noun: &str) {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, &name) in names.iter().enumerate() {
            if let Some(&earlier) = first.get(name) {
                self.fail_beside(
                    At::new(&paths[index], "name"),
                    format!("the mode changes the {noun} `{name}` twice"),
                    "write both into one section",
                    vec![(At::new(&paths[earlier], "name").to_string(), "the other".to_owned())],
                );
            } else {
                first.insert(name, index);
            }
        }
    }

    /// The system as the mode has it obeys every rule that the base mode does.
    fn mode_as_a_whole(
        &mut self,
        mode: &Mode,
        path: &str,
        (draft, paths): (&Draft, &Paths),
        forest: &Forest<'_>,
        is_complete: bool,
    ) {
        if mode.tasks.is_empty() && mode.servers.is_empty() {
            // The values are those of the base mode.
            return;
        }
        let (changed, changed_paths) = in_mode(mode, path, (draft, paths), forest);
        let inside = format!("{path}.");
        for Finding { mut error, others } in check(&changed, &changed_paths, is_complete) {
            // What the mode breaks elsewhere is told at the mode.
            if !error.at.starts_with(&inside) {
                error.reason = format!("in this mode, {}: {}", error.at, error.reason);
                error.at = path.to_owned();
            }
            self.findings.push(Finding { error, others });
        }
    }
}

/// Whether it has a periodic frame: the periods of a polling or deferrable one, the cycles of a time table.
fn has_frames(server: &Server) -> bool {
    let is_periodic = matches!(server.kind, ServerKind::Polling { .. } | ServerKind::Deferrable { .. });
    is_periodic || server.order == Order::Table
}

/// The draft, which has no modes, as a mode has it, where its changed values have the paths of the mode.
fn in_mode(mode: &Mode, path: &str, (draft, paths): (&Draft, &Paths), forest: &Forest<'_>) -> (Draft, Paths) {
    let (mut draft, mut paths) = (draft.clone(), paths.clone());
    // Whether the modes exist that overruns ask for is told once.
    paths.all_modes = false;
    let names: Vec<&str> = mode.tasks.iter().map(|change| change.task.as_str()).collect();
    let task_paths = item_paths(&path::join(path, "task"), &names);
    for (change, path) in mode.tasks.iter().zip(task_paths) {
        let Some(&index) = forest.task_places.get(change.task.as_str()) else { continue };
        let task = &mut draft.tasks[index];
        task.priority = change.priority.or(task.priority);
        task.deadline = change.deadline.or(task.deadline);
        match (&mut task.arrival, change.period) {
            (Arrival::Periodic { period }, Some(new)) => *period = new,
            (Arrival::Sporadic { separation }, Some(new)) => *separation = new,
            _ => {}
        }
        paths.tasks[index] = path;
    }
    let names: Vec<&str> = mode.servers.iter().map(|change| change.server.as_str()).collect();
    let server_paths = item_paths(&path::join(path, "server"), &names);
    for (change, path) in mode.servers.iter().zip(server_paths) {
        let Some(index) = forest.server_place(&change.server) else { continue };
        let server = &mut draft.servers[index];
        if let Some(capacity) = change.capacity {
            server.kind = server.kind.with_capacity(capacity);
        }
        if let Some(table) = &change.table {
            server.table = Some(table.clone());
        }
        paths.servers[index] = path;
    }
    (draft, paths)
}
