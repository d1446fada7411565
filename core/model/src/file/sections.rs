//! Reads `[system]`, `[platform]` and `[[interference]]`.

use super::keys::{INTERFERENCE, PLATFORM, SYSTEM};
use super::reader::Reader;
use super::tree::{Node, Value};
use crate::path;
use crate::platform::MAX_CPUS;
use crate::{CpuId, Cpus, Interference, Platform, Policy, PriorityAssignment};
use horolog_time::Span;

/// Decimals of a utilisation: parts per billion.
pub(super) const UTILISATION_PLACES: u32 = 9;

/// What `[system]` says.
pub(super) struct SystemSection {
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) priorities: PriorityAssignment,
}

impl Reader {
    pub(super) fn system(&mut self, node: &Node) -> Option<SystemSection> {
        let before = self.found.len();
        let table = self.table(node, "system", &SYSTEM)?;
        let name = self.required(table, "system", "name", &SYSTEM);
        let name = name.and_then(|node| self.text(node, "system.name"));
        let policy = table
            .get("policy")
            .and_then(|node| self.word(node, "system.policy", &Policy::WORDS, Policy::from_word));
        let priorities = table.get("priorities").and_then(|node| {
            self.word(node, "system.priorities", &PriorityAssignment::WORDS, PriorityAssignment::from_word)
        });
        if self.found.len() > before {
            return None;
        }
        Some(SystemSection {
            name: name?,
            policy: policy.unwrap_or_default(),
            priorities: priorities.unwrap_or_default(),
        })
    }

    pub(super) fn platform(&mut self, node: &Node) -> Option<Platform> {
        let before = self.found.len();
        let table = self.table(node, "platform", &PLATFORM)?;
        let cpus = match table.get("cpus") {
            Some(node) => self.cpus(node),
            None => Some(Platform::default().cpus),
        };
        let mut cost = |key: &str| -> Option<Span> {
            let node = table.get(key)?;
            self.span(node, &path::join("platform", key))
        };
        let tick = cost("tick");
        let context_switch = cost("context_switch");
        let timer_interrupt = cost("timer_interrupt");
        let release_latency = cost("release_latency");
        if self.found.len() > before {
            return None;
        }
        Some(Platform { cpus: cpus?, tick, context_switch, timer_interrupt, release_latency })
    }

    fn cpus(&mut self, node: &Node) -> Option<Cpus> {
        let path = "platform.cpus";
        let range = format!("CPU numbers from 0 to {}", MAX_CPUS - 1);
        match &node.value {
            Value::List(list) => {
                let cpus: Vec<Option<u32>> =
                    list.iter().map(|node| self.integer(node, path, &range)).collect();
                cpus.into_iter().map(|cpu| cpu.map(CpuId)).collect::<Option<_>>().map(Cpus::Listed)
            }
            Value::Integer(_) => {
                self.integer(node, path, &format!("a count from 1 to {MAX_CPUS}")).map(Cpus::Count)
            }
            other => {
                let reason = format!("this is {} where CPUs belong", other.noun());
                let remedy = "write CPU numbers, as in `[1, 3]`, or a count, as in `2`";
                self.fail(node, path, reason, remedy);
                None
            }
        }
    }

    pub(super) fn interference(
        &mut self,
        node: &Node,
        path: &str,
        platform: Option<&Platform>,
    ) -> Option<Interference> {
        let before = self.found.len();
        let table = self.table(node, path, &INTERFERENCE)?;
        if let Some(name) = table.get("name") {
            self.places.insert(path.to_owned(), name.place.clone());
        }
        let name = self.required(table, path, "name", &INTERFERENCE);
        let name = name.and_then(|node| self.text(node, &path::join(path, "name")));
        let cpu = self.cpu(table, path, "interference", platform);
        let utilisation = self.required(table, path, "utilisation", &INTERFERENCE);
        let utilisation = utilisation
            .and_then(|node| self.decimal(node, &path::join(path, "utilisation"), UTILISATION_PLACES, "0.4"));
        let period = self.required(table, path, "period", &INTERFERENCE);
        let period = period.and_then(|node| self.span(node, &path::join(path, "period")));
        if self.found.len() > before {
            return None;
        }
        Some(Interference { name: name?, cpu: cpu?, utilisation_ppb: utilisation?, period: period? })
    }
}
