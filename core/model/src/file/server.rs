//! Reads one `[[server]]`.

use super::keys::SERVER;
use super::reader::Reader;
use super::tree::{Node, Table, Value};
use crate::path;
use crate::server::DEFAULT_REPLENISHMENTS;
use crate::{
    Capacity, Enforcement, Gain, LowPriority, Platform, Priority, Server, ServerKind, SporadicRules,
};

/// What keys beyond `name`, `kind`, `tasks` and `cpu` a kind has.
pub(super) fn keys_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "polling" | "deferrable" => &["budget", "period", "priority", "low_priority"],
        "sporadic" => &["budget", "period", "priority", "low_priority", "max_replenishments", "rules"],
        "priority-exchange" => &["budget", "period", "priority"],
        "constant-bandwidth" => &["budget", "period", "enforcement", "enforcement_latency"],
        "total-bandwidth" => &["budget", "period"],
        "dual-priority" | "slack-stealing" => &["gain"],
        _ => &[],
    }
}

/// The keys of which some kind has each.
pub(super) const KEYS_OF_KINDS: [&str; 7] =
    ["budget", "period", "priority", "max_replenishments", "rules", "enforcement_latency", "gain"];

/// The names in the `tasks` of a server or scheduler, as far as they can be read.
pub(super) fn names_of_tasks(table: &Table) -> impl Iterator<Item = &str> {
    let list = match table.get("tasks") {
        Some(Node { value: Value::List(list), .. }) => list.as_slice(),
        _ => &[],
    };
    list.iter().filter_map(|node| match &node.value {
        Value::Text(name) => Some(name.as_str()),
        _ => None,
    })
}

/// Whether some of these names cannot be read.
pub(super) fn has_unread_tasks(table: &Table) -> bool {
    match table.get("tasks").map(|node| &node.value) {
        Some(Value::List(list)) => list.iter().any(|node| !matches!(node.value, Value::Text(_))),
        given => given.is_some(),
    }
}

impl Reader {
    /// The server at `path`; `None` where something in it cannot be read (the messages say what).
    pub(super) fn server(&mut self, node: &Node, path: &str, platform: Option<&Platform>) -> Option<Server> {
        let before = self.unread;
        let table = self.table(node, path, &SERVER)?;
        if let Some(name) = table.get("name") {
            // Messages about a whole server point at its name.
            self.places.insert(path.to_owned(), name.place.clone());
        }
        let name = self.required(table, path, "name", &SERVER);
        let name = name.and_then(|node| self.text(node, &path::join(path, "name")));
        let tasks = self.required(table, path, "tasks", &SERVER);
        let tasks = tasks.and_then(|node| self.texts(node, &path::join(path, "tasks")));
        let cpu = self.cpu(table, path, "server", platform);
        let word = self.required(table, path, "kind", &SERVER).and_then(|node| {
            self.word(node, &path::join(path, "kind"), &ServerKind::WORDS, |word| {
                ServerKind::WORDS.iter().copied().find(|&known| known == word)
            })
        });
        match word {
            Some(word) => self.foreign_keys(table, path, word),
            None => self.look_at(table, path, &SERVER, &KEYS_OF_KINDS),
        }
        let kind = word.and_then(|word| self.server_kind(table, path, word, false));
        if self.unread > before {
            return None;
        }
        Some(Server::new(name?, tasks?, cpu?, kind?))
    }

    /// The rules of a server or scheduler of this kind. Below a time table no kind and no priority belong: what is refused there is the
    /// kind, so a priority is not asked for.
    pub(super) fn server_kind(
        &mut self,
        table: &Table,
        path: &str,
        word: &str,
        has_windows: bool,
    ) -> Option<ServerKind> {
        let needs = |key: &str| keys_of(word).contains(&key);
        let capacity = if needs("budget") { self.capacity(table, path, word) } else { None };
        let priority = if has_windows && table.get("priority").is_none() {
            Some(Priority::new(0))
        } else if needs("priority") {
            self.needed(table, path, word, "priority").and_then(|node| {
                self.integer(node, &path::join(path, "priority"), "an integer of 64 bits").map(Priority::new)
            })
        } else {
            None
        };
        let low_priority = self.optional(table, path, "low_priority", Reader::low_priority);
        let low_priority = low_priority.unwrap_or_default();
        let gain = self.optional(table, path, "gain", |reader, node, path| {
            reader.word(node, path, &Gain::WORDS, Gain::from_word)
        });
        let gain = gain.unwrap_or_default();
        Some(match word {
            "background" => ServerKind::Background,
            "polling" => ServerKind::Polling { capacity: capacity?, priority: priority?, low_priority },
            "deferrable" => ServerKind::Deferrable { capacity: capacity?, priority: priority?, low_priority },
            "sporadic" => {
                let max_replenishments =
                    self.optional(table, path, "max_replenishments", |reader, node, path| {
                        reader.integer(node, path, "a number from 1 to 1024")
                    });
                let rules = self.optional(table, path, "rules", |reader, node, path| {
                    reader.word(node, path, &SporadicRules::WORDS, SporadicRules::from_word)
                });
                ServerKind::Sporadic {
                    capacity: capacity?,
                    priority: priority?,
                    low_priority,
                    max_replenishments: max_replenishments.unwrap_or(DEFAULT_REPLENISHMENTS),
                    rules: rules.unwrap_or_default(),
                }
            }
            "priority-exchange" => ServerKind::PriorityExchange { capacity: capacity?, priority: priority? },
            "constant-bandwidth" => {
                let enforcement = self.enforcement(table, path)?;
                ServerKind::ConstantBandwidth { capacity: capacity?, enforcement }
            }
            "total-bandwidth" => ServerKind::TotalBandwidth { capacity: capacity? },
            "dual-priority" => ServerKind::DualPriority { gain },
            _ => ServerKind::SlackStealing { gain },
        })
    }

    /// Keys that a server may have, but not one of this kind.
    fn foreign_keys(&mut self, table: &Table, path: &str, word: &str) {
        const COMMON: [&str; 4] = ["name", "kind", "tasks", "cpu"];
        for entry in &table.entries {
            let key = entry.key.as_str();
            let is_key = SERVER.keys.iter().any(|known| known.name == key);
            if !is_key || COMMON.contains(&key) || keys_of(word).contains(&key) {
                continue;
            }
            let homes: Vec<&str> =
                ServerKind::WORDS.into_iter().filter(|kind| keys_of(kind).contains(&key)).collect();
            let reason = format!("a {word} server has no `{key}`");
            let remedy = format!("remove it; `{key}` is for {}", homes.join(", "));
            self.fail(&entry.node, &path::join(path, key), reason, remedy);
        }
    }

    fn capacity(&mut self, table: &Table, path: &str, word: &str) -> Option<Capacity> {
        let budget = self.needed(table, path, word, "budget");
        let budget = budget.and_then(|node| self.span(node, &path::join(path, "budget")));
        let period = self.needed(table, path, word, "period");
        let period = period.and_then(|node| self.span(node, &path::join(path, "period")));
        Some(Capacity { budget: budget?, period: period? })
    }

    /// The value of a key that a server of this kind must have.
    fn needed<'t>(&mut self, table: &'t Table, path: &str, word: &str, key: &str) -> Option<&'t Node> {
        let node = table.get(key);
        if node.is_none() {
            let remedy = match key {
                "budget" => "add `budget = \"2 ms\"`, the execution time that it may take in every period",
                "period" => "add `period = \"10 ms\"`, after which the budget comes back",
                _ => "add `priority = 90` (larger is more important)",
            };
            self.fail_at(&path::join(path, key), format!("a {word} server needs a `{key}`"), remedy);
        }
        node
    }

    /// Who keeps a constant bandwidth server to its budget. What the kernel's lateness is nobody else knows, so the file
    /// has to say it.
    fn enforcement(&mut self, table: &Table, path: &str) -> Option<Enforcement> {
        let word = self.optional(table, path, "enforcement", |reader, node, path| {
            reader.word(node, path, &Enforcement::WORDS, |word| {
                Enforcement::WORDS.iter().copied().find(|&known| known == word)
            })
        });
        let key = "enforcement_latency";
        let latency = table.get(key).map(|node| self.span(node, &path::join(path, key)));
        match (word, latency) {
            (Some("kernel"), Some(latency)) => Some(Enforcement::Kernel { latency: latency? }),
            (Some("kernel"), None) => {
                self.fail_at(
                    &path::join(path, key),
                    format!("a server that the kernel serves needs an `{key}`"),
                    "add `enforcement_latency = \"4 ms\"`: one tick of the kernel (4 ms where it is built with HZ=250, 1 ms with \
                     HZ=1000), since it looks at budgets no sooner; less where its own timer ends budgets (HRTICK_DL), or \
                     where the body reads its thread's CPU clock all the time",
                );
                None
            }
            // What cannot be read may be right.
            (None, Some(_)) if table.get("enforcement").is_some() => None,
            (_, Some(_)) => {
                let node = table.get(key)?;
                self.fail(
                    node,
                    &path::join(path, key),
                    "only the kernel has an enforcement latency here",
                    "remove it, or add `enforcement = \"kernel\"`",
                );
                self.or_with(&path::join(path, "enforcement"), &["kernel"]);
                None
            }
            _ => Some(Enforcement::Own),
        }
    }

    fn low_priority(&mut self, node: &Node, path: &str) -> Option<LowPriority> {
        match &node.value {
            Value::Integer(_) => self
                .integer(node, path, "an integer of 64 bits")
                .map(|number| LowPriority::At(Priority::new(number))),
            Value::Text(_) => self.word(node, path, &LowPriority::WORDS, |word| match word {
                "background" => Some(LowPriority::Background),
                "none" => Some(LowPriority::None),
                _ => None,
            }),
            other => {
                let reason = format!("this is {} where a low priority belongs", other.noun());
                self.fail(node, path, reason, "use an integer, `\"background\"` or `\"none\"`");
                None
            }
        }
    }
}
