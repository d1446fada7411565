//! The rules of trees of schedulers, and of roots over several processors.

use super::forest::{Above, Forest};
use super::{At, Checker};
use crate::{CpuId, Order, PriorityAssignment, Server, TimeTable};
use std::collections::{BTreeMap, BTreeSet};

impl Checker {
    pub(super) fn schedulers(&mut self, forest: &Forest<'_>, is_complete: bool) {
        let draft = forest.draft;
        self.distinct_schedulers(forest);
        if !forest.has_trees() {
            return;
        }
        let children = forest.children();
        for (index, server) in draft.servers.iter().enumerate() {
            if server.is_scheduler() {
                self.scheduler(server, index, &children[index], forest);
            }
        }
        self.circles(forest);
        self.clusters(forest, is_complete);
        self.beside_trees(forest);
        if draft.priorities != PriorityAssignment::Explicit {
            let word = draft.priorities.word().unwrap_or_default();
            self.fail(
                "system.priorities",
                format!("the assignment `{word}` knows nothing of trees of schedulers and of clusters"),
                "remove `priorities`, and give every task its `priority`",
            );
        }
    }

    /// Windows within the cycle, one after the other, each of a child.
    fn time_table(&mut self, table: &TimeTable, index: usize, children: &[&str], forest: &Forest<'_>) {
        let path = &forest.paths.servers[index];
        let at = At::new(path, "windows");
        if table.cycle.is_zero() {
            let remedy = "give the time after which the windows begin again";
            self.fail(At::new(path, "cycle"), "the cycle is zero", remedy);
            return;
        }
        if table.windows.is_empty() {
            self.fail(at, "there is no window, so nothing below it ever runs", "give at least one");
        }
        let known: BTreeSet<&str> = children.iter().copied().collect();
        for (place, window) in table.windows.iter().enumerate() {
            let here = at.item(place);
            if !known.contains(window.child.as_str()) && forest.paths.all_schedulers {
                let reason = format!("`{}` does not stand directly below this scheduler", window.child);
                let remedy = self.suggestions.did_you_mean(&window.child, children.iter().copied());
                self.fail(here.clone(), reason, remedy);
            }
            let end = window.from.checked_add(window.length);
            if window.length.is_zero() {
                self.fail(here, "the window has no length", "give it one, or remove it");
            } else if end.is_none_or(|end| end > table.cycle) {
                self.fail_beside(
                    here,
                    format!("the window ends after the cycle of {}", table.cycle),
                    "let it end by the end of the cycle, and begin another one at its start for the rest",
                    vec![(At::new(path, "cycle").to_string(), "the cycle".to_owned())],
                );
            }
        }
        let mut order: Vec<usize> = (0..table.windows.len()).collect();
        order.sort_by_key(|&place| (table.windows[place].from, place));
        for pair in order.windows(2) {
            let (first, second) = (&table.windows[pair[0]], &table.windows[pair[1]]);
            if first.from.checked_add(first.length).is_none_or(|end| end > second.from) {
                self.fail_beside(
                    at.item(pair[1]),
                    "the window begins before another one has ended",
                    "let it begin later, or end the other earlier",
                    vec![(at.item(pair[0]), "the other".to_owned())],
                );
            }
        }
    }

    /// Names are unique over servers, schedulers and clusters.
    fn distinct_schedulers(&mut self, forest: &Forest<'_>) {
        let (draft, paths) = (forest.draft, forest.paths);
        let servers = draft.servers.iter().map(|server| server.name.as_str());
        if !forest.has_trees() {
            self.unique(servers, &paths.servers, "server");
            return;
        }
        let names = servers.chain(draft.clusters.iter().map(|cluster| cluster.name.as_str()));
        let all: Vec<String> = paths.servers.iter().chain(&paths.clusters).cloned().collect();
        self.unique(names, &all, "scheduler");
    }

    fn scheduler(&mut self, server: &Server, index: usize, children: &[&str], forest: &Forest<'_>) {
        let path = &forest.paths.servers[index];
        if !server.kind.is_for_schedulers() {
            self.fail(
                At::new(path, "kind"),
                format!(
                    "a {} server stands below the root of its CPU, and serves first in, first out",
                    server.kind.word()
                ),
                "use a sporadic one, or make it a `[[server]]`",
            );
        }
        // Some of what is below it may not have been read.
        if children.is_empty() && forest.paths.all_schedulers {
            self.fail(
                At::new(path, "tasks"),
                "there is nothing below this scheduler",
                "name its tasks, as in `tasks = [\"control\"]`, or name it as the `parent` of another scheduler",
            );
        }
        if let Some(table) = &server.table {
            self.time_table(table, index, children, forest);
        } else if server.order == Order::Table {
            self.fail(At::new(path, "order"), "there is no time table", "give `cycle` and `windows`");
        }
        let Some(name) = &server.parent else { return };
        let at = At::new(path, "parent");
        match forest.above_server(index) {
            Above::Server(parent) => {
                let above = &forest.draft.servers[parent];
                let above_path = &forest.paths.servers[parent];
                if above.order == Order::Fifo {
                    self.fail_beside(
                        at,
                        format!("`{name}` serves tasks alone, first in, first out"),
                        format!("use `order = \"fixed-priority\"` or `order = \"edf\"` for `{name}`, in a `[[scheduler]]`"),
                        vec![(At::new(above_path, "order").to_string(), "first in, first out here".to_owned())],
                    );
                }
                if above.cpu != server.cpu {
                    self.fail_beside(
                        At::new(path, "cpu"),
                        format!("the scheduler is on CPU {} and its parent on CPU {}", server.cpu.0, above.cpu.0),
                        "remove `cpu`: a scheduler is on the CPU of its parent",
                        vec![(At::new(above_path, "cpu").to_string(), "the parent's CPU".to_owned())],
                    );
                }
            }
            Above::Cluster(parent) => self.fail_beside(
                at,
                format!("`{name}` is over several processors: a cluster's children are tasks"),
                "put the scheduler on one `cpu` outside the cluster; budgets on several processors are not there yet",
                vec![(At::new(&forest.paths.clusters[parent], "cpus").to_string(), "several here".to_owned())],
            ),
            Above::Unread if forest.paths.all_schedulers => {
                let remedy = self.suggestions.did_you_mean(name, forest.scheduler_names());
                self.fail(at, format!("there is no scheduler `{name}`"), remedy);
            }
            Above::Unread | Above::Root => {}
        }
    }

    /// Schedulers that stand below themselves, each circle once.
    fn circles(&mut self, forest: &Forest<'_>) {
        let servers = &forest.draft.servers;
        // Where the walk upwards that came by first started.
        let mut walked_from: Vec<Option<usize>> = vec![None; servers.len()];
        for start in 0..servers.len() {
            let mut at = start;
            while walked_from[at].is_none() {
                walked_from[at] = Some(start);
                let Above::Server(parent) = forest.above_server(at) else { break };
                if walked_from[parent] == Some(start) {
                    self.circle(parent, forest);
                    break;
                }
                at = parent;
            }
        }
    }

    fn circle(&mut self, first: usize, forest: &Forest<'_>) {
        const SHOWN: usize = 8;
        let name = |index: usize| format!("`{}`", forest.draft.servers[index].name);
        let (mut at, mut names) = (first, vec![name(first)]);
        while let Above::Server(parent) = forest.above_server(at) {
            names.push(if names.len() < SHOWN { name(parent) } else { "…".to_owned() });
            if parent == first || names.len() > SHOWN {
                break;
            }
            at = parent;
        }
        self.fail(
            At::new(&forest.paths.servers[first], "parent"),
            format!("{} stands below itself: {}", name(first), names.join(", ")),
            "remove one `parent`, so that one of them stands below the root",
        );
    }

    fn clusters(&mut self, forest: &Forest<'_>, is_complete: bool) {
        let (draft, paths) = (forest.draft, forest.paths);
        let mut cluster_of: BTreeMap<CpuId, usize> = BTreeMap::new();
        let tasks = &forest.task_places;
        let mut named: BTreeMap<&str, String> = BTreeMap::new();
        for (server, path) in draft.servers.iter().zip(&paths.servers) {
            for (place, name) in server.tasks.iter().enumerate() {
                named.entry(name).or_insert_with(|| At::new(path, "tasks").item(place));
            }
        }
        for (index, (cluster, path)) in draft.clusters.iter().zip(&paths.clusters).enumerate() {
            self.name(&cluster.name, At::new(path, "name"));
            self.cluster_cpus(index, &mut cluster_of, forest);
            if matches!(cluster.order, Order::Fifo | Order::Table) {
                self.fail(
                    At::new(path, "order"),
                    "a scheduler over several processors orders by fixed priority or by deadline",
                    "add `order = \"fixed-priority\"` or `order = \"edf\"`",
                );
            }
            if cluster.tasks.is_empty() {
                let remedy = "name its tasks, as in `tasks = [\"control\"]`";
                self.fail(At::new(path, "tasks"), "there is nothing below this scheduler", remedy);
            }
            for (place, name) in cluster.tasks.iter().enumerate() {
                let at = At::new(path, "tasks").item(place);
                if let Some(other) = named.get(name.as_str()) {
                    self.fail_beside(
                        at,
                        format!("the task `{name}` is below two schedulers"),
                        "name it once, below one of them",
                        vec![(other.clone(), "already here".to_owned())],
                    );
                    continue;
                }
                match tasks.get(name.as_str()) {
                    Some(&task) => {
                        let (cpu, first) = (draft.tasks[task].cpu, cluster.cpus.first());
                        if first.is_some_and(|&first| first != cpu) {
                            self.fail(
                                At::new(&paths.tasks[task], "cpu"),
                                format!(
                                    "a task of the cluster `{}` is on CPU {} in the model",
                                    cluster.name, cpu.0
                                ),
                                "use the first CPU of the cluster",
                            );
                        }
                    }
                    // It may be one of those that could not be read.
                    None if is_complete => {
                        let remedy = self.suggestions.did_you_mean(name, tasks.keys().copied());
                        self.fail(at.clone(), format!("there is no task `{name}`"), remedy);
                    }
                    None => {}
                }
                named.insert(name, at);
            }
        }
        self.outside_clusters(&cluster_of, forest);
    }

    /// At least two processors of the platform, each in one cluster.
    fn cluster_cpus(&mut self, index: usize, cluster_of: &mut BTreeMap<CpuId, usize>, forest: &Forest<'_>) {
        let (cluster, path) = (&forest.draft.clusters[index], &forest.paths.clusters[index]);
        let at = At::new(path, "cpus");
        if cluster.cpus.len() < 2 {
            self.fail(
                at,
                "a cluster has at least two processors",
                "name them, as in `cpus = [0, 1]`, or use `cpu`",
            );
            return;
        }
        let findings = self.findings.len();
        self.cpu_list(&cluster.cpus, &at.to_string());
        if self.findings.len() > findings {
            return;
        }
        let platform = &forest.draft.platform.cpus;
        if let Some(place) = cluster.cpus.iter().position(|&cpu| platform.index_of(cpu).is_none()) {
            self.fail_beside(
                at.item(place),
                format!("CPU {} is not among the platform's CPUs", cluster.cpus[place].0),
                "add it to `cpus` of [platform], or remove it",
                vec![("platform.cpus".to_owned(), "the platform's CPUs".to_owned())],
            );
        }
        for (place, &cpu) in cluster.cpus.iter().enumerate() {
            match cluster_of.get(&cpu) {
                Some(&other) => self.fail_beside(
                    at.item(place),
                    format!("CPU {} is in two clusters", cpu.0),
                    "leave it in one of them",
                    vec![(
                        At::new(&forest.paths.clusters[other], "cpus").to_string(),
                        "the other".to_owned(),
                    )],
                ),
                None => {
                    cluster_of.insert(cpu, index);
                }
            }
        }
    }

    /// What is not below a cluster is not on its processors.
    fn outside_clusters(&mut self, cluster_of: &BTreeMap<CpuId, usize>, forest: &Forest<'_>) {
        let (draft, paths) = (forest.draft, forest.paths);
        let inside: BTreeSet<&str> =
            draft.clusters.iter().flat_map(|cluster| &cluster.tasks).map(String::as_str).collect();
        let cluster_on = |cpu: &CpuId| cluster_of.get(cpu).copied();
        for (task, path) in draft.tasks.iter().zip(&paths.tasks) {
            let is_inside = inside.contains(task.name.as_str());
            // One that a server or a broken scheduler names is told there.
            if let (false, Above::Root, Some(cluster)) =
                (is_inside, forest.above_task(&task.name), cluster_on(&task.cpu))
            {
                let name = &draft.clusters[cluster].name;
                self.fail_beside(
                    At::new(path, "cpu"),
                    format!("CPU {} belongs to `{name}`, and this task is not below it", task.cpu.0),
                    format!("name the task in the `tasks` of `{name}`, or use another CPU"),
                    vec![(At::new(&paths.clusters[cluster], "cpus").to_string(), "its CPUs".to_owned())],
                );
            }
        }
        for (index, (server, path)) in draft.servers.iter().zip(&paths.servers).enumerate() {
            // One below a cluster is told as such.
            if let (Some(cluster), false) =
                (cluster_on(&server.cpu), matches!(forest.above_server(index), Above::Cluster(_)))
            {
                let name = &draft.clusters[cluster].name;
                self.fail_beside(
                    At::new(path, "cpu"),
                    format!("CPU {} belongs to `{name}`, whose children are tasks", server.cpu.0),
                    "use another CPU; budgets on several processors are not there yet",
                    vec![(At::new(&paths.clusters[cluster], "cpus").to_string(), "its CPUs".to_owned())],
                );
            }
        }
    }

    /// What nobody knows how to order beside a tree or below a cluster.
    fn beside_trees(&mut self, forest: &Forest<'_>) {
        let (draft, paths) = (forest.draft, forest.paths);
        let mut refuse = |at: At<'_>, what: &str, cpu: CpuId| {
            if let Some(tree) = forest.tree_on(cpu) {
                let scheduler = match tree {
                    Above::Server(index) => Some(paths.servers[index].clone()),
                    Above::Cluster(index) => Some(paths.clusters[index].clone()),
                    Above::Root | Above::Unread => None,
                };
                self.fail_beside(
                    at,
                    format!("{what} beside schedulers in a tree or over several processors is not there yet"),
                    "put it on another CPU, or write the scheduler as a `[[server]]`",
                    scheduler.into_iter().map(|path| (path, "a scheduler of that CPU".to_owned())).collect(),
                );
            }
        };
        for (server, path) in draft.servers.iter().zip(&paths.servers).filter(|(it, _)| !it.is_scheduler()) {
            if server.kind.watches_processor() {
                let what = format!("a {} server", server.kind.word());
                refuse(At::new(path, "kind"), &what, server.cpu);
            } else if server.kind.is_kernels() {
                refuse(At::new(path, "enforcement"), "a server that the kernel serves", server.cpu);
            }
        }
        for (interrupt, path) in draft.interrupts.iter().zip(&paths.interrupts) {
            refuse(At::new(path, "cpu"), "an interrupt", interrupt.cpu);
        }
        for (device, path) in draft.devices.iter().zip(&paths.devices) {
            refuse(At::new(path, "cpu"), "a device", device.cpu);
        }
        for (load, path) in draft.interferences.iter().zip(&paths.interferences) {
            refuse(At::new(path, "cpu"), "an interference", load.cpu);
        }
    }
}
