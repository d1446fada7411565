//! Reads one `[[link]]`.

use super::keys::LINK;
use super::reader::Reader;
use super::tree::Node;
use crate::{Link, LinkKind, MAX_LINK_SIZE, path};

impl Reader {
    /// The link at `path`; `None` where something in it cannot be read (the messages say what).
    pub(super) fn link_section(&mut self, node: &Node, path: &str) -> Option<Link> {
        let before = self.unread;
        let table = self.table(node, path, &LINK)?;
        let name = self.name_of_item(table, path, &LINK);
        let kind = self.optional(table, path, "kind", |reader, node, path| {
            reader.word(node, path, &LinkKind::WORDS, LinkKind::from_word)
        });
        let from = self.required(table, path, "from", &LINK);
        let from = from.and_then(|node| self.text(node, &path::join(path, "from")));
        let to = self.required(table, path, "to", &LINK);
        let to = to.and_then(|node| self.texts(node, &path::join(path, "to")));
        let size = self.optional(table, path, "size", |reader, node, path| {
            reader.integer(node, path, &format!("an integer from 1 to {MAX_LINK_SIZE}"))
        });
        if self.unread > before {
            return None;
        }
        Some(Link { name: name?, kind: kind.unwrap_or_default(), from: from?, to: to?, size })
    }
}
