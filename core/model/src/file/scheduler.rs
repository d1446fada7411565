//! Reads one `[[scheduler]]`, and who names which task.

use super::keys::{CLUSTER, SCHEDULER, WINDOW};
use super::reader::Reader;
use super::server::{KEYS_OF_KINDS, has_unread_tasks, keys_of, names_of_tasks};
use super::suggest::is_slip_of;
use super::tree::{Node, Table, Value};
use crate::{Cluster, CpuId, Order, Platform, Priority, Server, ServerKind, TimeTable, Window, path};
use std::collections::{BTreeMap, BTreeSet};

/// Of names that no task has, so many are held against the tasks.
const MOST_STRANGERS: usize = 64;

/// What a `[[scheduler]]` is.
pub(super) enum Scheduler {
    /// One below the root of a processor, or below another one.
    Server(Server),
    /// A root over several processors.
    Cluster(Cluster),
}

/// What servers and schedulers say about names, looked at before any of them is read: tasks are read first, and a scheduler
/// is on the processor of its parent.
#[derive(Default)]
pub(super) struct Named<'t> {
    /// Tasks of servers and of schedulers that serve first in, first out.
    soft: BTreeSet<&'t str>,
    /// Every task that a server or scheduler names.
    tasks: BTreeSet<&'t str>,
    /// The first processor of the cluster of a task.
    clusters: BTreeMap<&'t str, CpuId>,
    /// The processor of a scheduler, its own or that of the nearest above it that gives one.
    pub(super) cpus: BTreeMap<&'t str, CpuId>,
    /// Whether the tasks of some cluster cannot be read.
    has_open_cluster: bool,
    /// What clusters call tasks that are not there: one of those that are may be meant.
    strangers: BTreeSet<&'t str>,
    /// Schedulers that order by a time table.
    tables: BTreeSet<&'t str>,
}

impl<'t> Named<'t> {
    pub(super) fn of(
        tasks: &'t [Node],
        servers: &'t [Node],
        schedulers: &[&'t Node],
        clusters: &'t [Node],
    ) -> Named<'t> {
        let mut named = Named::default();
        for table in servers.iter().filter_map(as_table) {
            named.soft.extend(names_of_tasks(table));
            named.tasks.extend(names_of_tasks(table));
        }
        for table in schedulers.iter().filter_map(|node| as_table(node)) {
            named.tasks.extend(names_of_tasks(table));
            if table.get("order").and_then(text_of) == Some(Order::Table.word()) {
                named.tables.extend(table.get("name").and_then(text_of));
            }
            let is_fifo = table.get("order").is_none_or(|node| text_of(node) == Some(Order::Fifo.word()));
            if table.get("cpus").is_some() {
                named.cluster(table);
            } else if is_fifo {
                named.soft.extend(names_of_tasks(table));
            }
        }
        for table in clusters.iter().filter_map(as_table) {
            named.tasks.extend(names_of_tasks(table));
            named.cluster(table);
        }
        let there: BTreeSet<&str> = tasks.iter().map(super::name_of).collect();
        named.strangers = named
            .clusters
            .keys()
            .copied()
            .filter(|name| !there.contains(name))
            .take(MOST_STRANGERS)
            .collect();
        named.cpus = inherited_cpus(schedulers);
        named
    }

    fn cluster(&mut self, table: &'t Table) {
        let first = match table.get("cpus").map(|node| &node.value) {
            Some(Value::List(list)) => list.first().and_then(cpu_of),
            _ => None,
        };
        // What is wrong with the list is told with the scheduler.
        let first = first.unwrap_or(CpuId(0));
        self.has_open_cluster |= has_unread_tasks(table);
        for name in names_of_tasks(table) {
            // That a name is given twice is told with the second one.
            self.clusters.entry(name).or_insert(first);
        }
    }

    /// Whether the task with this name has no deadline but the one that it gives.
    pub(super) fn is_soft(&self, task: &str) -> bool {
        self.soft.contains(task)
    }

    /// Whether a task may belong to several processors, since not all that do can be read, or one is called nearly the same.
    pub(super) fn may_be_of_a_cluster(&self, task: &str) -> bool {
        self.has_open_cluster || self.strangers.iter().any(|name| is_slip_of(name, task))
    }

    /// The processor that the model gives a task of a cluster.
    pub(super) fn cluster_cpu(&self, task: &str) -> Option<CpuId> {
        self.clusters.get(task).copied()
    }

    /// Every task that is named.
    pub(super) fn into_tasks(self) -> BTreeSet<String> {
        self.tasks.into_iter().map(str::to_owned).collect()
    }
}

/// The processor of each scheduler by its name: of the nearest one upwards that gives one. Every scheduler is passed once.
fn inherited_cpus<'t>(schedulers: &[&'t Node]) -> BTreeMap<&'t str, CpuId> {
    let mut parents: BTreeMap<&str, &str> = BTreeMap::new();
    let mut cpus: BTreeMap<&str, Option<CpuId>> = BTreeMap::new();
    for (name, table) in schedulers.iter().filter_map(|&node| Some((super::name_of(node), as_table(node)?))) {
        let given = table.get("cpu").and_then(cpu_of);
        let first = || match table.get("cpus").map(|node| &node.value) {
            Some(Value::List(list)) => list.first().and_then(cpu_of),
            _ => None,
        };
        match (given.or_else(first), table.get("parent").and_then(text_of)) {
            (Some(cpu), _) => {
                cpus.insert(name, Some(cpu));
            }
            (None, Some(parent)) => {
                parents.insert(name, parent);
            }
            (None, None) => {}
        }
    }
    for &start in parents.keys() {
        let (mut at, mut walk) = (start, Vec::new());
        // A name that is being walked has an entry without a processor: a circle ends there.
        while !cpus.contains_key(at) {
            cpus.insert(at, None);
            walk.push(at);
            let Some(&parent) = parents.get(at) else { break };
            at = parent;
        }
        let found = cpus.get(at).copied().flatten();
        cpus.extend(walk.into_iter().map(|name| (name, found)));
    }
    cpus.into_iter().filter_map(|(name, cpu)| Some((name, cpu?))).collect()
}

/// Whether a scheduler of this kind has a key.
fn has_key(kind: &str, key: &str) -> bool {
    let keys = keys_of(kind);
    keys.contains(&key) || (key == "deadline" && keys.contains(&"low_priority"))
}

pub(super) fn as_table(node: &Node) -> Option<&Table> {
    match &node.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

pub(super) fn text_of(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn cpu_of(node: &Node) -> Option<CpuId> {
    match node.value {
        Value::Integer(Some(number)) => u32::try_from(number).ok().map(CpuId),
        _ => None,
    }
}

impl Reader {
    /// The scheduler at `path`; `None` where something in it cannot be read (the messages say what).
    pub(super) fn scheduler(
        &mut self,
        node: &Node,
        path: &str,
        platform: Option<&Platform>,
        named: &Named<'_>,
    ) -> Option<Scheduler> {
        let before = self.unread;
        let table = self.table(node, path, &SCHEDULER)?;
        if let Some(name) = table.get("name") {
            // Messages about a whole scheduler point at its name.
            self.places.insert(path.to_owned(), name.place.clone());
        }
        let name = self.required(table, path, "name", &SCHEDULER);
        let name = name.and_then(|node| self.text(node, &path::join(path, "name")));
        let order = self.optional(table, path, "order", |reader, node, path| {
            reader.word(node, path, &Order::WORDS, Order::from_word)
        });
        let has_open_order = order.is_none() && table.get("order").is_some();
        let order = order.unwrap_or_default();
        let tasks = self.optional(table, path, "tasks", Reader::texts).unwrap_or_default();
        if let Some(node) = table.get("cpus") {
            self.only_of_clusters(table, path);
            let cpus = self.cpu_list(node, &path::join(path, "cpus"));
            if self.unread > before {
                return None;
            }
            return Some(Scheduler::Cluster(Cluster { name: name?, cpus: cpus?, order, tasks }));
        }
        let parent = self.optional(table, path, "parent", Reader::text);
        let inherited = named.cpus.get(super::name_of(node)).filter(|_| table.get("cpu").is_none());
        let cpu = match inherited {
            Some(&cpu) => Some(cpu),
            None => self.cpu(table, path, "scheduler", platform),
        };
        let above = table.get("parent").and_then(text_of);
        let has_windows = above.is_some_and(|above| named.tables.contains(above));
        let kind = self.scheduler_kind(table, path, has_windows);
        let deadline = self.optional(table, path, "deadline", Reader::span);
        let time_table = if has_open_order { None } else { self.time_table(table, path, order) };
        if self.unread > before {
            return None;
        }
        let server = Server::new(name?, tasks, cpu?, kind?);
        Some(Scheduler::Server(Server { parent, order, table: time_table, deadline, ..server }))
    }

    /// The `[[cluster]]` at `path`.
    pub(super) fn cluster(&mut self, node: &Node, path: &str) -> Option<Scheduler> {
        let before = self.unread;
        let table = self.table(node, path, &CLUSTER)?;
        if let Some(name) = table.get("name") {
            self.places.insert(path.to_owned(), name.place.clone());
        }
        let name = self.required(table, path, "name", &CLUSTER);
        let name = name.and_then(|node| self.text(node, &path::join(path, "name")));
        let cpus = self.required(table, path, "cpus", &CLUSTER);
        let cpus = cpus.and_then(|node| self.cpu_list(node, &path::join(path, "cpus")));
        let order = self.required(table, path, "order", &CLUSTER);
        let order = order.and_then(|node| {
            self.word(node, &path::join(path, "order"), &Order::CLUSTER_WORDS, Order::from_word)
        });
        let tasks = self.required(table, path, "tasks", &CLUSTER);
        let tasks = tasks.and_then(|node| self.texts(node, &path::join(path, "tasks")));
        if self.unread > before {
            return None;
        }
        Some(Scheduler::Cluster(Cluster { name: name?, cpus: cpus?, order: order?, tasks: tasks? }))
    }

    fn scheduler_kind(&mut self, table: &Table, path: &str, has_windows: bool) -> Option<ServerKind> {
        let Some(node) = table.get("kind") else {
            self.foreign_to(table, path, None);
            let priority = self.optional(table, path, "priority", |reader, node, path| {
                reader.integer(node, path, "an integer of 64 bits").map(Priority::new)
            });
            return Some(ServerKind::Plain { priority });
        };
        let at = path::join(path, "kind");
        let word = self.word(node, &at, &ServerKind::SCHEDULER_WORDS, |word| {
            ServerKind::SCHEDULER_WORDS.iter().copied().find(|&known| known == word)
        });
        let Some(word) = word else {
            self.look_at(table, path, &SCHEDULER, &KEYS_OF_KINDS);
            return None;
        };
        self.foreign_to(table, path, Some(word));
        self.server_kind(table, path, word, has_windows)
    }

    /// The time table of a scheduler that orders by one.
    fn time_table(&mut self, table: &Table, path: &str, order: Order) -> Option<TimeTable> {
        if order != Order::Table {
            for key in ["cycle", "windows"] {
                if let Some(node) = table.get(key) {
                    let reason = format!("only a scheduler that orders by a time table has `{key}`");
                    self.fail(node, &path::join(path, key), reason, "remove it, or use `order = \"table\"`");
                }
            }
            return None;
        }
        self.cycle_and_windows(table, path)
    }

    /// What `cycle` and `windows` say.
    pub(super) fn cycle_and_windows(&mut self, table: &Table, path: &str) -> Option<TimeTable> {
        let cycle = self.table_key(table, path, "cycle");
        let cycle = cycle.and_then(|node| self.span(node, &path::join(path, "cycle")));
        let at = path::join(path, "windows");
        let node = self.table_key(table, path, "windows")?;
        let Value::List(list) = &node.value else {
            let reason = format!("this is {} where a list of windows belongs", node.value.noun());
            let remedy = "write a list, as in `[{ child = \"A\", from = \"0 ms\", length = \"4 ms\" }]`";
            self.fail(node, &at, reason, remedy);
            return None;
        };
        let windows: Vec<Option<Window>> = list
            .iter()
            .enumerate()
            .map(|(index, node)| self.item(node, &at, index, Reader::window))
            .collect();
        Some(TimeTable { cycle: cycle?, windows: windows.into_iter().collect::<Option<_>>()? })
    }

    /// The value of a key that a scheduler with a time table must have.
    fn table_key<'t>(&mut self, table: &'t Table, path: &str, key: &str) -> Option<&'t Node> {
        let node = table.get(key);
        if node.is_none() {
            let remedy = format!("add `{}`", super::example::line(&SCHEDULER, key));
            let reason = format!("a scheduler that orders by a time table needs `{key}`");
            self.fail_at(&path::join(path, key), reason, remedy);
        }
        node
    }

    fn window(&mut self, node: &Node, path: &str) -> Option<Window> {
        let table = self.table(node, path, &WINDOW)?;
        let child = self.required(table, path, "child", &WINDOW);
        let child = child.and_then(|node| self.text(node, &path::join(path, "child")));
        let mut span = |key: &str| {
            let node = self.required(table, path, key, &WINDOW)?;
            self.span(node, &path::join(path, key))
        };
        let (from, length) = (span("from"), span("length"));
        Some(Window { child: child?, from: from?, length: length? })
    }

    /// Keys that a scheduler may have, but not one of this kind.
    fn foreign_to(&mut self, table: &Table, path: &str, word: Option<&str>) {
        const COMMON: [&str; 8] = ["name", "parent", "cpu", "order", "cycle", "windows", "kind", "tasks"];
        let own = |key: &str| match word {
            Some(word) => has_key(word, key),
            None => key == "priority",
        };
        for entry in &table.entries {
            let key = entry.key.as_str();
            let is_key = SCHEDULER.keys.iter().any(|known| known.name == key);
            if !is_key || COMMON.contains(&key) || own(key) {
                continue;
            }
            let kinds = ServerKind::SCHEDULER_WORDS.into_iter().filter(|kind| has_key(kind, key));
            let kinds: Vec<&str> = kinds.collect();
            let (reason, remedy) = match word {
                Some(word) => (
                    format!("a {word} scheduler has no `{key}`"),
                    format!("remove it; `{key}` is for {}", kinds.join(", ")),
                ),
                None => (
                    format!("a scheduler without a `kind` has no `{key}`"),
                    format!("add `kind = \"{}\"`, or remove it", kinds.first().unwrap_or(&"deferrable")),
                ),
            };
            self.fail(&entry.node, &path::join(path, key), reason, remedy);
        }
    }

    /// Keys that a root over several processors does not have.
    fn only_of_clusters(&mut self, table: &Table, path: &str) {
        for entry in &table.entries {
            let key = entry.key.as_str();
            let is_key = SCHEDULER.keys.iter().any(|known| known.name == key);
            if !is_key || ["name", "cpus", "order", "tasks"].contains(&key) {
                continue;
            }
            let remedy = match key {
                "cpu" => "remove `cpu`, or remove `cpus`",
                "parent" => "remove `parent`, or put it on one `cpu`: it is a root of its own",
                "cycle" | "windows" => "remove it: a time table is on one CPU",
                _ => "remove it: budgets over several processors are not there yet",
            };
            let reason = format!("a scheduler over several processors has no `{key}`");
            self.fail(&entry.node, &path::join(path, key), reason, remedy);
        }
    }

    fn cpu_list(&mut self, node: &Node, path: &str) -> Option<Vec<CpuId>> {
        let Value::List(list) = &node.value else {
            let reason = format!("this is {} where a list of CPUs belongs", node.value.noun());
            self.fail(node, path, reason, "write a list, as in `[0, 1]`");
            return None;
        };
        let cpus: Vec<Option<CpuId>> = list
            .iter()
            .enumerate()
            .map(|(index, node)| {
                self.item(node, path, index, |reader, node, path| {
                    reader.integer(node, path, "the number of a CPU, from 0").map(CpuId)
                })
            })
            .collect();
        cpus.into_iter().collect()
    }
}
