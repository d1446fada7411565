//! Reads one `[[request]]`.

use super::keys::REQUEST;
use super::reader::Reader;
use super::tree::{Node, Table};
use crate::{Request, RequestKind, RequestMode, path};
use horolog_time::Span;

impl Reader {
    /// The request at `path`; `None` where something in it cannot be read (the messages say what).
    pub(super) fn request(&mut self, node: &Node, path: &str) -> Option<Request> {
        let before = self.unread;
        let table = self.table(node, path, &REQUEST)?;
        let name = self.name_of_item(table, path, &REQUEST);
        let task = self.text_of(table, path, "task");
        let device = self.text_of(table, path, "device");
        let kind = self.optional(table, path, "kind", |reader, node, path| {
            reader.word(node, path, &RequestKind::WORDS, RequestKind::from_word)
        });
        let after = self.optional(table, path, "after", Reader::span);
        let mode = self.optional(table, path, "mode", |reader, node, path| {
            reader.word(node, path, &RequestMode::WORDS, RequestMode::from_word)
        });
        let deadline = self.optional(table, path, "deadline", Reader::span);
        let arrivals = self.optional(table, path, "arrivals", Reader::spans);
        if self.unread > before {
            return None;
        }
        Some(Request {
            name: name?,
            task: task?,
            device: device?,
            kind: kind.unwrap_or_default(),
            after: after.unwrap_or(Span::ZERO),
            mode: mode.unwrap_or_default(),
            deadline,
            arrivals,
        })
    }

    /// A text that must be there.
    fn text_of(&mut self, table: &Table, path: &str, key: &str) -> Option<String> {
        let node = self.required(table, path, key, &REQUEST)?;
        self.text(node, &path::join(path, key))
    }
}
