//! The rules of links (decision 0009).

use super::forest::Forest;
use super::{At, Checker};
use crate::{Link, MAX_LINK_SIZE};
use std::collections::BTreeSet;

impl Checker {
    pub(super) fn links(&mut self, forest: &Forest<'_>, is_complete: bool) {
        let (draft, paths) = (forest.draft, forest.paths);
        self.unique(draft.links.iter().map(|link| link.name.as_str()), &paths.links, "link");
        for (link, path) in draft.links.iter().zip(&paths.links) {
            self.link(link, path, forest, is_complete);
        }
    }

    fn link(&mut self, link: &Link, path: &str, forest: &Forest<'_>, is_complete: bool) {
        self.name(&link.name, At::new(path, "name"));
        let tasks = &forest.task_places;
        let known = || forest.draft.tasks.iter().map(|task| task.name.as_str());
        match tasks.get(link.from.as_str()).map(|&place| &forest.draft.tasks[place]) {
            Some(task) if task.deadline.is_none() => self.fail(
                At::new(path, "from"),
                format!("`{}` has no deadline, so nothing says when its values are published", link.from),
                "give the task a `deadline`",
            ),
            None if is_complete => {
                let reason = format!("there is no task `{}`", link.from);
                let remedy = self.suggestions.did_you_mean(&link.from, known());
                self.fail(At::new(path, "from"), reason, remedy);
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
            } else if is_complete && !tasks.contains_key(name.as_str()) {
                let remedy = self.suggestions.did_you_mean(name, known());
                self.fail(at(), format!("there is no task `{name}`"), remedy);
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
