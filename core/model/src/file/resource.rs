//! Reads one `[[resource]]`, and the `[[task.section]]` of a task.

use super::keys::{RESOURCE, SPIN_PRIORITY, TASK_SECTION};
use super::reader::Reader;
use super::tree::{Node, Table, Value};
use crate::{
    Access, AtExhaustion, CpuId, Platform, Priority, Protocol, Resource, Section, SpinLevel, SpinPriority,
    path,
};

impl Reader {
    /// The resource at `path`; `None` where something in it cannot be read (the messages say what).
    pub(super) fn resource(&mut self, node: &Node, path: &str) -> Option<Resource> {
        let before = self.unread;
        let table = self.table(node, path, &RESOURCE)?;
        let name = self.name_of_item(table, path, &RESOURCE);
        let protocol = self.optional(table, path, "protocol", |reader, node, path| {
            reader.word(node, path, &Protocol::WORDS, Protocol::from_word)
        });
        let at_exhaustion = self.optional(table, path, "at_exhaustion", |reader, node, path| {
            reader.word(node, path, &AtExhaustion::WORDS, AtExhaustion::from_word)
        });
        let cpu = self.optional(table, path, "cpu", |reader, node, path| {
            reader.integer(node, path, "the number of a CPU, from 0").map(CpuId)
        });
        if self.unread > before {
            return None;
        }
        let (protocol, at_exhaustion) = (protocol.unwrap_or_default(), at_exhaustion.unwrap_or_default());
        Some(Resource { name: name?, protocol, at_exhaustion, cpu })
    }

    /// The spin priority at `path`; `None` where something in it cannot be read.
    pub(super) fn spin_priority(
        &mut self,
        node: &Node,
        path: &str,
        platform: Option<&Platform>,
    ) -> Option<SpinPriority> {
        let before = self.unread;
        let table = self.table(node, path, &SPIN_PRIORITY)?;
        let cpu = self.cpu(table, path, "spin priority", platform);
        let level = self.required(table, path, "priority", &SPIN_PRIORITY);
        let level = level.and_then(|node| self.spin_level(node, &path::join(path, "priority")));
        if self.unread > before {
            return None;
        }
        Some(SpinPriority { cpu: cpu?, level: level? })
    }

    fn spin_level(&mut self, node: &Node, path: &str) -> Option<SpinLevel> {
        match &node.value {
            Value::Integer(_) => self
                .integer(node, path, "an integer of 64 bits")
                .map(|number| SpinLevel::At(Priority::new(number))),
            Value::Text(_) => self.word(node, path, &SpinLevel::WORDS, SpinLevel::from_word),
            other => {
                let reason = format!("this is {} where a spin priority belongs", other.noun());
                self.fail(node, path, reason, "use an integer, `\"ceiling\"` or `\"highest\"`");
                None
            }
        }
    }

    /// The sections of a task, those that can be read.
    pub(super) fn sections(&mut self, table: &Table, path: &str) -> Vec<Section> {
        let nodes = self.tables_below(table, path, "task", "section");
        let at = path::join(path, "section");
        let read = |(index, node)| self.item(node, &at, index, Reader::section);
        nodes.iter().enumerate().filter_map(read).collect()
    }

    fn section(&mut self, node: &Node, path: &str) -> Option<Section> {
        let table = self.table(node, path, &TASK_SECTION)?;
        let resource = self.required(table, path, "resource", &TASK_SECTION);
        let resource = resource.and_then(|node| self.text(node, &path::join(path, "resource")));
        let mut span = |key: &str| {
            let node = self.required(table, path, key, &TASK_SECTION)?;
            self.span(node, &path::join(path, key))
        };
        let (from, length) = (span("from"), span("length"));
        let access = self.optional(table, path, "access", |reader, node, path| {
            reader.word(node, path, &Access::WORDS, Access::from_word)
        });
        let access = access.unwrap_or_default();
        Some(Section { resource: resource?, from: from?, length: length?, access })
    }
}
