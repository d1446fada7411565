//! Reads one `[[interrupt]]` and one `[[device]]`.

use super::keys::{DEVICE, INTERRUPT, Section};
use super::reader::Reader;
use super::suggest::did_you_mean;
use super::tree::{Node, Table, Value};
use crate::driver::{CONSTRAINTS, DEFAULT_POLL_BUDGET, DEFAULT_RING, DEFAULT_ROUNDS};
use crate::{
    Admission, Device, DeviceClass, DeviceService, Interrupt, Platform, Priority, PriorityRule, RequestOrder,
    Throttling, path,
};
use horolog_time::Span;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// The keys that one service of a device alone has.
fn keys_of(service: &str) -> &'static [&'static str] {
    match service {
        "softirq" => &["rounds", "poll_budget"],
        "thread" => &["priority", "rule", "users"],
        "server" => &["server"],
        _ => &[],
    }
}

impl Reader {
    /// The interrupt at `path`; `None` where something in it cannot be read (the messages say what).
    pub(super) fn interrupt(
        &mut self,
        node: &Node,
        path: &str,
        platform: Option<&Platform>,
    ) -> Option<Interrupt> {
        let before = self.unread;
        let table = self.table(node, path, &INTERRUPT)?;
        let name = self.name_of_item(table, path, &INTERRUPT);
        let cpu = self.cpu(table, path, "interrupt", platform);
        let separation = self.separation(table, path, "an interrupt");
        let cost = self.required(table, path, "cost", &INTERRUPT);
        let cost = cost.and_then(|node| self.span(node, &path::join(path, "cost")));
        let word = self.optional(table, path, "throttling", |reader, node, path| {
            reader.word(node, path, &Throttling::WORDS, |word| {
                Throttling::WORDS.iter().copied().find(|&known| known == word)
            })
        });
        let interval = self.optional(table, path, "interval", Reader::span);
        let free = self.optional(table, path, "free", |reader, node, path| {
            reader.integer(node, path, "a number of free places from 0 on")
        });
        // What cannot be read may be right.
        let is_open = word.is_none() && table.get("throttling").is_some();
        if free.is_some() && word != Some("threshold") && !is_open {
            let remedy = "remove it, or use `throttling = \"threshold\"`";
            self.fail_at(&path::join(path, "free"), "only a threshold interrupt has `free` places", remedy);
            self.or_with(&path::join(path, "throttling"), &["threshold"]);
        }
        let throttling = match (word, interval) {
            (Some("threshold"), None) => match free {
                Some(free) => Throttling::Threshold { free },
                None if table.get("free").is_some() => Throttling::None,
                None => {
                    let reason = "a threshold interrupt needs a number of `free` places";
                    self.fail_at(&path::join(path, "free"), reason, "add `free = 2`");
                    Throttling::None
                }
            },
            (Some("moderated"), Some(interval)) => Throttling::Moderated { interval },
            (Some("moderated"), None) if table.get("interval").is_some() => Throttling::None,
            (Some("moderated"), None) => {
                let reason = "a moderated interrupt needs an `interval`";
                self.fail_at(&path::join(path, "interval"), reason, "add `interval = \"100 us\"`");
                Throttling::None
            }
            (_, Some(_)) if !is_open => {
                let remedy = "remove it, or use `throttling = \"moderated\"`";
                self.fail_at(
                    &path::join(path, "interval"),
                    "only a moderated interrupt has an `interval`",
                    remedy,
                );
                self.or_with(&path::join(path, "throttling"), &["moderated"]);
                Throttling::None
            }
            (Some("napi"), None) => Throttling::Napi,
            _ => Throttling::None,
        };
        if self.unread > before {
            return None;
        }
        Some(Interrupt { name: name?, cpu: cpu?, separation: separation?, cost: cost?, throttling })
    }

    /// The device at `path`; `None` where something in it cannot be read (the messages say what).
    pub(super) fn device(&mut self, node: &Node, path: &str, platform: Option<&Platform>) -> Option<Device> {
        let before = self.unread;
        let table = self.table(node, path, &DEVICE)?;
        let name = self.name_of_item(table, path, &DEVICE);
        let cpu = self.cpu(table, path, "device", platform);
        let interrupt = self.optional(table, path, "interrupt", Reader::text);
        let class = self.optional(table, path, "class", |reader, node, path| {
            reader.word(node, path, &DeviceClass::WORDS, DeviceClass::from_word)
        });
        let separation = self.separation(table, path, "a device");
        let cost = self.required(table, path, "cost", &DEVICE);
        let cost = cost.and_then(|node| self.span(node, &path::join(path, "cost")));
        let ring = self.optional(table, path, "ring", |reader, node, path| {
            reader.integer(node, path, "a number of events from 1 on")
        });
        let least_cost = self.optional(table, path, "least_cost", Reader::span);
        let spread = self.optional(table, path, "spread", Reader::span);
        let arrivals = self.optional(table, path, "arrivals", Reader::spans);
        let latency = self.optional(table, path, "latency", Reader::span);
        let slots = self.optional(table, path, "slots", |reader, node, path| {
            reader.integer(node, path, "a number of requests from 1 on")
        });
        let order = self.optional(table, path, "order", |reader, node, path| {
            reader.word(node, path, &RequestOrder::WORDS, RequestOrder::from_word)
        });
        let admission = self.admission(table, path);
        let deadline = self.optional(table, path, "deadline", Reader::span);
        let constraint =
            self.optional(table, path, "constraint", |reader, node, path| reader.constraint(node, path));
        let word = self.required(table, path, "service", &DEVICE).and_then(|node| {
            self.word(node, &path::join(path, "service"), &DeviceService::WORDS, |word| {
                DeviceService::WORDS.iter().copied().find(|&known| known == word)
            })
        });
        if word.is_none() {
            let keys = ["rounds", "poll_budget", "priority", "rule", "users", "server"];
            self.look_at(table, path, &DEVICE, &keys);
        }
        let service = word.and_then(|word| self.service(table, path, word));
        if self.unread > before {
            return None;
        }
        Some(Device {
            name: name?,
            cpu: cpu?,
            interrupt,
            class: class.unwrap_or_default(),
            service: service?,
            separation: separation?,
            cost: cost?,
            least_cost: least_cost.or(cost)?,
            spread: spread.unwrap_or(Span::ZERO),
            arrivals,
            latency,
            slots: slots.unwrap_or(1),
            order: order.unwrap_or_default(),
            admission,
            ring: ring.unwrap_or(DEFAULT_RING),
            deadline,
            is_soft: constraint.unwrap_or(false),
        })
    }

    /// Both keys of admission control, or none.
    fn admission(&mut self, table: &Table, path: &str) -> Option<Admission> {
        let cost = self.optional(table, path, "admission_cost", Reader::span);
        let separation = self.optional(table, path, "admission_separation", Reader::span);
        match (table.get("admission_cost"), table.get("admission_separation")) {
            (Some(node), None) => {
                let remedy = "add `admission_separation = \"1 ms\"`";
                let path = path::join(path, "admission_cost");
                self.fail(node, &path, "admission control needs to know what to refuse", remedy);
            }
            (None, Some(node)) => {
                let path = path::join(path, "admission_separation");
                self.fail(node, &path, "admission control costs time", "add `admission_cost = \"1 us\"`");
            }
            _ => {}
        }
        Some(Admission { cost: cost?, separation: separation? })
    }

    fn service(&mut self, table: &Table, path: &str, word: &str) -> Option<DeviceService> {
        for entry in &table.entries {
            let key = entry.key.as_str();
            let homes: Vec<&str> =
                DeviceService::WORDS.into_iter().filter(|service| keys_of(service).contains(&key)).collect();
            if !homes.is_empty() && !keys_of(word).contains(&key) {
                let reason = format!("a device served by {word} has no `{key}`");
                let remedy = format!("remove it; `{key}` is for {}", homes.join(", "));
                self.fail(&entry.node, &path::join(path, key), reason, remedy);
            }
        }
        Some(match word {
            "interrupt" => DeviceService::Interrupt,
            "softirq" => {
                let rounds = self.optional(table, path, "rounds", |reader, node, path| {
                    reader.integer(node, path, "a number of rounds from 1 on")
                });
                let poll_budget = self.optional(table, path, "poll_budget", |reader, node, path| {
                    reader.integer(node, path, "a number of events from 1 on")
                });
                DeviceService::Softirq {
                    rounds: rounds.unwrap_or(DEFAULT_ROUNDS),
                    poll_budget: poll_budget.unwrap_or(DEFAULT_POLL_BUDGET),
                }
            }
            "thread" => {
                let priority = self.optional(table, path, "priority", |reader, node, path| {
                    reader.integer(node, path, "an integer of 64 bits").map(Priority::new)
                });
                let rule = self.optional(table, path, "rule", |reader, node, path| {
                    reader.word(node, path, &PriorityRule::WORDS, PriorityRule::from_word)
                });
                let users = self.optional(table, path, "users", Reader::texts).unwrap_or_default();
                DeviceService::Thread { priority, rule: rule.unwrap_or_default(), users }
            }
            _ => {
                let server = self.required(table, path, "server", &DEVICE);
                let server = server.and_then(|node| self.text(node, &path::join(path, "server")));
                DeviceService::Server { server: server? }
            }
        })
    }

    /// Whether a deadline is only a wish.
    pub(super) fn constraint(&mut self, node: &Node, path: &str) -> Option<bool> {
        match &node.value {
            Value::Text(text) if !CONSTRAINTS.contains(&text.as_str()) => {
                let known = "known here: `hard`, which is the default, and `soft`";
                let remedy = match did_you_mean(text, &CONSTRAINTS) {
                    near if near.starts_with("known") => known.to_owned(),
                    near => format!("{near} ({known})"),
                };
                self.fail(node, path, format!("`{text}` is not a word that is known here"), remedy);
                None
            }
            _ => self.word(node, path, &CONSTRAINTS, |word| Some(word == "soft")),
        }
    }

    /// The name of an item, which messages about it as a whole point at.
    pub(super) fn name_of_item(&mut self, table: &Table, path: &str, section: &Section) -> Option<String> {
        if let Some(name) = table.get("name") {
            self.places.insert(path.to_owned(), name.place.clone());
        }
        let name = self.required(table, path, "name", section);
        name.and_then(|node| self.text(node, &path::join(path, "name")))
    }

    /// `separation`, or `rate` in events a second: the time between two, rounded down.
    fn separation(&mut self, table: &Table, path: &str, noun: &str) -> Option<Span> {
        match (table.get("separation"), table.get("rate")) {
            (Some(node), None) => self.span(node, &path::join(path, "separation")),
            (None, Some(node)) => {
                let path = path::join(path, "rate");
                if let Value::Text(text) = &node.value
                    && text.parse::<Span>().is_ok()
                {
                    let remedy =
                        format!("write `separation = \"{text}\"`, or the events a second without quotes");
                    self.fail(
                        node,
                        &path,
                        "this is a duration, and `rate` is a number of events a second",
                        remedy,
                    );
                    return None;
                }
                let rate: u64 = self.integer(node, &path, "events a second from 1 to 1000000000")?;
                if !(1..=SECOND).contains(&rate) {
                    let reason = format!("{rate} events a second cannot be");
                    self.fail(node, &path, reason, "give a number from 1 to 1000000000");
                    return None;
                }
                Some(Span::from_ns(SECOND / rate))
            }
            (Some(_), Some(node)) => {
                let reason = format!("{noun} has `separation` or `rate`, not both");
                self.fail(node, &path::join(path, "rate"), reason, "remove one of them");
                None
            }
            (None, None) => {
                let reason = format!("{noun} needs a `separation` or a `rate`");
                let remedy = "add `separation = \"10 us\"`, or `rate = 100000` (events a second)";
                self.fail_at(&path::join(path, "separation"), reason, remedy);
                None
            }
        }
    }
}
