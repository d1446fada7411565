//! Reads one `[[reserve]]`, the short form of a scheduler with a budget.

use super::keys::{REPLENISHMENTS, RESERVE, RESERVE_ORDERS, RESERVE_TYPES};
use super::reader::Reader;
use super::scheduler::Named;
use super::tree::{Node, Table};
use crate::server::DEFAULT_REPLENISHMENTS;
use crate::{
    Capacity, CpuId, LowPriority, Order, Platform, Priority, Server, ServerKind, SporadicRules, Task, path,
};
use horolog_time::Span;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

impl Reader {
    /// The reserve at `path`, and whether the file gives its priority; `None` where something in it cannot be read (the messages say
    /// what).
    pub(super) fn reserve(
        &mut self,
        node: &Node,
        path: &str,
        platform: Option<&Platform>,
        named: &Named<'_>,
    ) -> Option<(Server, bool)> {
        let before = self.unread;
        let table = self.table(node, path, &RESERVE)?;
        if let Some(name) = table.get("name") {
            // Messages about a whole reserve point at its name.
            self.places.insert(path.to_owned(), name.place.clone());
        }
        let name = self.required(table, path, "name", &RESERVE);
        let name = name.and_then(|node| self.text(node, &path::join(path, "name")));
        let mut span = |key: &str| {
            let node = self.required(table, path, key, &RESERVE)?;
            self.span(node, &path::join(path, key))
        };
        let (budget, period) = (span("budget"), span("period"));
        let deadline = self.optional(table, path, "deadline", Reader::span);
        let low_priority = self.when_used_up(table, path);
        let word = self.one_of(table, path, "replenishment", &REPLENISHMENTS);
        let priority = self.optional(table, path, "priority", |reader, node, path| {
            reader.integer(node, path, "an integer of 64 bits").map(Priority::new)
        });
        let order = self.one_of(table, path, "order", &RESERVE_ORDERS).and_then(Order::from_word);
        let tasks = self.optional(table, path, "tasks", Reader::texts).unwrap_or_default();
        let parent = self.optional(table, path, "parent", Reader::text);
        let inherited = named.cpus.get(super::name_of(node)).filter(|_| table.get("cpu").is_none());
        let cpu = match inherited {
            Some(&cpu) => Some(cpu),
            None => self.cpu(table, path, "reserve", platform),
        };
        if self.unread > before {
            return None;
        }
        let capacity = Capacity { budget: budget?, period: period? };
        let kind = kind_of(
            word.unwrap_or("deferrable"),
            capacity,
            priority.unwrap_or(Priority::new(0)),
            low_priority?,
        );
        let server = Server::new(name?, tasks, cpu?, kind);
        let deadline = Some(deadline.unwrap_or(capacity.period));
        let order = order.unwrap_or_default();
        Some((Server { parent, order, deadline, ..server }, priority.is_some()))
    }

    /// A word of a reserve, where it is given.
    fn one_of(
        &mut self,
        table: &Table,
        path: &str,
        key: &str,
        words: &'static [&'static str],
    ) -> Option<&'static str> {
        self.optional(table, path, key, |reader, node, path| {
            reader.word(node, path, words, |word| words.iter().copied().find(|&known| known == word))
        })
    }

    /// Where it goes on when its amount is used up.
    fn when_used_up(&mut self, table: &Table, path: &str) -> Option<LowPriority> {
        let word = self.one_of(table, path, "type", &RESERVE_TYPES);
        let band = self.optional(table, path, "band", |reader, node, path| {
            reader.integer(node, path, "an integer of 64 bits").map(Priority::new)
        });
        let at = path::join(path, "band");
        match (word, table.get("band")) {
            // What cannot be read may be soft.
            (None, _) if table.get("type").is_some() => None,
            (Some("soft"), None) => {
                self.fail_at(
                    &at,
                    "a soft reserve needs a `band`: the priority at which it goes on when its amount is used up",
                    "add `band = 1`, the priority of what has no reserve (equals go first in, first out); or use `type = \"firm\"`, \
                     which goes on below everything",
                );
                None
            }
            (Some("soft"), Some(_)) => band.map(LowPriority::At),
            (_, Some(node)) => {
                let reason = "only a soft reserve goes on in a band";
                self.fail(node, &at, reason, "remove it, or use `type = \"soft\"`");
                None
            }
            (Some("firm"), None) => Some(LowPriority::Background),
            _ => Some(LowPriority::None),
        }
    }
}

/// The rules of a replenishment. With a fixed period what is not used while the threads sleep is gone: else it would be deferrable.
fn kind_of(word: &str, capacity: Capacity, priority: Priority, low_priority: LowPriority) -> ServerKind {
    match word {
        "fixed-period" | "polling" => ServerKind::Polling { capacity, priority, low_priority },
        "sporadic" => ServerKind::Sporadic {
            capacity,
            priority,
            low_priority,
            max_replenishments: DEFAULT_REPLENISHMENTS,
            rules: SporadicRules::Corrected,
        },
        _ => ServerKind::Deferrable { capacity, priority, low_priority },
    }
}

/// Gives the named reserves their priorities: above everything below the same parent that gives one, the shorter the deadline the more
/// important, of equal deadlines the first in the file. Returns those for which no number is left.
pub(super) fn rank(servers: &mut [Server], unranked: &[String], tasks: &[&Task]) -> Vec<String> {
    let unranked: BTreeSet<&str> = unranked.iter().map(String::as_str).collect();
    let mut open: BTreeMap<(Option<String>, CpuId), Vec<usize>> = BTreeMap::new();
    for (place, server) in servers.iter().enumerate().filter(|(_, one)| unranked.contains(&*one.name)) {
        open.entry((server.parent.clone(), server.cpu)).or_default().push(place);
    }
    let mut unplaced = Vec::new();
    if open.is_empty() {
        return unplaced;
    }
    let given = highest_given(servers, &unranked, tasks);
    for (below, mut places) in open {
        let highest = given.get(&below).copied().unwrap_or(0);
        places.sort_by_key(|&place| Reverse((servers[place].deadline.unwrap_or(Span::MAX), place)));
        for (place, number) in places.into_iter().zip(1..) {
            if let ServerKind::Polling { priority, .. }
            | ServerKind::Deferrable { priority, .. }
            | ServerKind::Sporadic { priority, .. } = &mut servers[place].kind
            {
                match highest.checked_add(number) {
                    Some(number) => *priority = Priority::new(number),
                    None => unplaced.push(servers[place].name.clone()),
                }
            }
        }
    }
    unplaced
}

/// The highest priority that something directly below each scheduler, or below the root of a processor, gives itself.
fn highest_given(
    servers: &[Server],
    unranked: &BTreeSet<&str>,
    tasks: &[&Task],
) -> BTreeMap<(Option<String>, CpuId), i64> {
    let mut above: BTreeMap<&str, &str> = BTreeMap::new();
    let mut highest: BTreeMap<(Option<String>, CpuId), i64> = BTreeMap::new();
    let mut take = |parent: Option<String>, cpu: CpuId, priority: Priority| {
        let known = highest.entry((parent, cpu)).or_insert(priority.number());
        *known = priority.number().max(*known);
    };
    for server in servers {
        above.extend(server.tasks.iter().map(|task| (task.as_str(), server.name.as_str())));
        let own = server.kind.priority().filter(|_| !unranked.contains(&*server.name));
        let low = match server.kind.low_priority() {
            Some(LowPriority::At(low)) => Some(low),
            _ => None,
        };
        own.into_iter().chain(low).for_each(|given| take(server.parent.clone(), server.cpu, given));
    }
    for task in tasks {
        let parent = above.get(task.name.as_str()).map(|name| (*name).to_owned());
        task.priority.into_iter().for_each(|given| take(parent.clone(), task.cpu, given));
    }
    highest
}
