//! Reads `[system]`, `[platform]` and `[[interference]]`.

use super::keys::{INTERFERENCE, PLATFORM, SYSTEM};
use super::reader::Reader;
use super::tree::{Node, Value};
use crate::path;
use crate::platform::MAX_CPUS;
use crate::{CpuId, Cpus, Interference, LockCosts, Platform, Policy, PriorityAssignment};
use horolog_time::Span;

/// Decimals of a utilisation: parts per billion.
pub(super) const UTILISATION_PLACES: u32 = 9;

/// What `[system]` says.
pub(super) struct SystemSection {
    pub(super) name: String,
    /// What the file leaves out.
    pub(super) unmodelled: Vec<String>,
    /// Policy and priorities; where one of them cannot be read, each that may be meant.
    pub(super) candidates: Vec<(Policy, PriorityAssignment)>,
    /// Whether all of it could be read.
    pub(super) is_complete: bool,
}

/// What any file may say.
const CANDIDATES: [(Policy, PriorityAssignment); 3] = [
    (Policy::FixedPriority, PriorityAssignment::Explicit),
    (Policy::FixedPriority, PriorityAssignment::DeadlineMonotonic),
    (Policy::Edf, PriorityAssignment::Explicit),
];

impl SystemSection {
    /// Of a file without one that can be read.
    pub(super) fn unknown() -> SystemSection {
        SystemSection {
            name: "?".to_owned(),
            unmodelled: Vec::new(),
            candidates: CANDIDATES.to_vec(),
            is_complete: false,
        }
    }
}

impl Reader {
    pub(super) fn system(&mut self, node: &Node) -> SystemSection {
        let before = self.unread;
        let Some(table) = self.table(node, "system", &SYSTEM) else { return SystemSection::unknown() };
        let name = self.required(table, "system", "name", &SYSTEM);
        let name = name.and_then(|node| self.text(node, "system.name"));
        let policy = table
            .get("policy")
            .and_then(|node| self.word(node, "system.policy", &Policy::WORDS, Policy::from_word));
        let priorities = table.get("priorities").and_then(|node| {
            self.word(node, "system.priorities", &PriorityAssignment::WORDS, PriorityAssignment::from_word)
        });
        let unmodelled = table.get("unmodelled").and_then(|node| self.texts(node, "system.unmodelled"));
        let is_misnamed = |key: &str| self.misnamed.contains(&path::join("system", key));
        let is_open = |key: &str, is_read: bool| !is_read && (table.get(key).is_some() || is_misnamed(key));
        let policy_is_open = is_open("policy", policy.is_some());
        let priorities_are_open = is_open("priorities", priorities.is_some());
        let given = (policy.unwrap_or_default(), priorities.unwrap_or_default());
        let fits = |candidate: &(Policy, PriorityAssignment)| {
            (policy_is_open || candidate.0 == given.0) && (priorities_are_open || candidate.1 == given.1)
        };
        let is_complete = self.unread == before && !policy_is_open && !priorities_are_open;
        let candidates = if policy_is_open || priorities_are_open {
            CANDIDATES.into_iter().filter(fits).collect()
        } else {
            vec![given]
        };
        let name = name.unwrap_or_else(|| "?".to_owned());
        SystemSection { name, unmodelled: unmodelled.unwrap_or_default(), candidates, is_complete }
    }

    pub(super) fn platform(&mut self, node: &Node) -> Option<Platform> {
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
        let (request, grant, release) = (cost("lock_request"), cost("lock_grant"), cost("lock_release"));
        let locking = LockCosts { request, grant, release };
        // What could not be read is told; the checks go on without it.
        Some(Platform { cpus: cpus?, tick, context_switch, timer_interrupt, release_latency, locking })
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
        let before = self.unread;
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
        if self.unread > before {
            return None;
        }
        Some(Interference { name: name?, cpu: cpu?, utilisation_ppb: utilisation?, period: period? })
    }
}
