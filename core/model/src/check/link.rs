//! The rules of links (decision 0009).

use super::{At, Checker, Paths};
use crate::file::did_you_mean;
use crate::{Draft, Link, MAX_LINK_SIZE};
use std::collections::BTreeSet;

impl Checker {
    pub(super) fn links(&mut self, draft: &Draft, paths: &Paths, is_complete: bool) {
        self.unique(draft.links.iter().map(|link| link.name.as_str()), &paths.links, "link");
        for (link, path) in draft.links.iter().zip(&paths.links) {
            self.link(link, path, draft, is_complete);
        }
    }

    fn link(&mut self, link: &Link, path: &str, draft: &Draft, is_complete: bool) {
        self.name(&link.name, At::new(path, "name"));
        let known: Vec<&str> = draft.tasks.iter().map(|task| task.name.as_str()).collect();
        match draft.tasks.iter().find(|task| task.name == link.from) {
            Some(task) if task.deadline.is_none() => self.fail(
                At::new(path, "from"),
                format!("`{}` has no deadline, so nothing says when its values are published", link.from),
                "give the task a `deadline`",
            ),
            None if is_complete => {
                let reason = format!("there is no task `{}`", link.from);
                self.fail(At::new(path, "from"), reason, did_you_mean(&link.from, &known));
            }
            _ => {}
        }
        if link.to.is_empty() {
            self.fail(At::new(path, "to"), "nobody reads this link", "name at least one task");
        }
        let mut seen = BTreeSet::new();
        for (place, name) in link.to.iter().enumerate() {
            let at = || At::new(path, "to").item(place);
            if !seen.insert(name.as_str()) {
                self.fail(at(), format!("`{name}` is named twice"), "name it once");
            } else if is_complete && !known.contains(&name.as_str()) {
                self.fail(at(), format!("there is no task `{name}`"), did_you_mean(name, &known));
            }
        }
        let size = At::new(path, "size");
        match link.size {
            Some(0) => self.fail(size, "a value has no bytes", "give at least 1, or leave `size` out"),
            Some(bytes) if bytes > MAX_LINK_SIZE => self.fail(
                size,
                format!("a value has {bytes} bytes, more than the {MAX_LINK_SIZE} that a link carries"),
                "hand over an index into memory of your own",
            ),
            _ => {}
        }
    }
}
