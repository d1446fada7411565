//! The rules of resources and of the sections that hold them (decision 0009).

use super::forest::{Above, Forest};
use super::{At, Checker};
use crate::file::did_you_mean;
use crate::{Draft, LeftOver, Section, Server, ServerKind, Task, path};
use std::collections::BTreeMap;

/// What to write instead of an interrupt beside resources: its load.
fn way_out(draft: &Draft) -> String {
    let example = draft.interrupts.first().filter(|one| !one.separation.is_zero()).map(|one| {
        // Rounded up: never less than it takes.
        let ppb = (u128::from(one.cost.as_ns()) * 1_000_000_000).div_ceil(u128::from(one.separation.as_ns()));
        let share = format!("{}.{:09}", ppb / 1_000_000_000, ppb % 1_000_000_000);
        let share = share.trim_end_matches('0').trim_end_matches('.');
        format!(" (`{}`: `utilisation = {share}`, `period = \"{}\"`)", one.name, one.separation)
    });
    let example = example.unwrap_or_default();
    format!(
        "describe what comes from outside as `[[interference]]`, with cost / separation as its utilisation and the separation as its \
         period{example}; or remove the sections"
    )
}

impl Checker {
    pub(super) fn resources(&mut self, forest: &Forest<'_>, is_complete: bool) {
        let (draft, paths) = (forest.draft, forest.paths);
        self.unique(draft.resources.iter().map(|it| it.name.as_str()), &paths.resources, "resource");
        for (resource, path) in draft.resources.iter().zip(&paths.resources) {
            self.name(&resource.name, At::new(path, "name"));
        }
        let known: Vec<&str> = draft.resources.iter().map(|it| it.name.as_str()).collect();
        // The first user of each resource.
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, (task, path)) in draft.tasks.iter().zip(&paths.tasks).enumerate() {
            if task.sections.is_empty() {
                continue;
            }
            let base = At::new(path, "section");
            for (place, section) in task.sections.iter().enumerate() {
                let at = base.item(place);
                let name = section.resource.as_str();
                if is_complete && !known.contains(&name) {
                    let remedy = did_you_mean(name, &known);
                    self.fail(path::join(&at, "resource"), format!("there is no resource `{name}`"), remedy);
                }
                self.section(task, place, &at, path);
                let other = *first.entry(name).or_insert(index);
                if draft.tasks[other].cpu != task.cpu {
                    self.fail_beside(
                        path::join(&at, "resource"),
                        format!("`{name}` is held on another CPU, too"),
                        "let the tasks that share a resource run on one CPU",
                        vec![(At::new(&paths.tasks[other], "cpu").to_string(), "the other CPU".to_owned())],
                    );
                }
            }
            self.place_of_sections(task, path, forest);
        }
    }

    /// One section, beside those that stand before it.
    fn section(&mut self, task: &Task, place: usize, at: &str, path: &str) {
        let section = &task.sections[place];
        if section.length.is_zero() {
            let remedy = "give it a length above zero, or remove the section";
            self.fail(path::join(at, "length"), "the section has no length", remedy);
            return;
        }
        if section.end().is_none_or(|end| end > task.wcet) {
            self.fail_beside(
                path::join(at, "length"),
                format!("the section goes on beyond the wcet {}", task.wcet),
                "let it begin earlier, make it shorter, or raise the wcet",
                vec![(At::new(path, "wcet").to_string(), "the wcet".to_owned())],
            );
            return;
        }
        let before = task.sections[..place].iter().filter(|other| !other.length.is_zero());
        let is_apart = |other: &&Section| {
            section.end().is_some_and(|end| end <= other.from)
                || other.end().is_some_and(|end| end <= section.from)
        };
        if let Some(other) = before.clone().find(|other| !section.nests_with(other)) {
            let reason = format!("the sections of `{}` and `{}` overlap", other.resource, section.resource);
            self.fail(at, reason, "let one end before the other begins, or lie within it");
        } else if before.filter(|other| other.resource == section.resource).any(|other| !is_apart(&other)) {
            let reason = format!("`{}` is locked while the job holds it", section.resource);
            self.fail(path::join(at, "resource"), reason, "keep the outer section alone");
        }
    }

    /// What stands above and beside a task with sections has to know of them.
    fn place_of_sections(&mut self, task: &Task, path: &str, forest: &Forest<'_>) {
        let (draft, at) = (forest.draft, At::new(path, "section"));
        let mut above = forest.above_task(&task.name);
        if matches!(above, Above::Cluster(_)) {
            self.fail(at, "resources in clusters are not there yet", "give the task a CPU of its own");
        }
        if !draft.interrupts.is_empty() || !draft.devices.is_empty() || !draft.requests.is_empty() {
            self.fail(
                at,
                "resources beside interrupts, devices and requests are not there yet",
                way_out(draft),
            );
        }
        let watches = |server: &&Server| server.cpu == task.cpu && server.kind.watches_processor();
        if let Some(server) = draft.servers.iter().find(watches) {
            let remedy = "use a polling, deferrable, sporadic or constant-bandwidth server";
            let reason = format!(
                "resources beside `{}`, which looks at every task of the CPU, are not there yet",
                server.name
            );
            self.fail(at, reason, remedy);
        }
        // A circle of parents is told elsewhere.
        for _ in 0..draft.servers.len() {
            let Above::Server(index) = above else { break };
            let server = &draft.servers[index];
            if server.kind.is_kernels() || matches!(server.kind, ServerKind::TotalBandwidth { .. }) {
                let word = if server.kind.is_kernels() { "kernel-served" } else { server.kind.word() };
                let reason = format!("resources below the {word} server `{}` are not there yet", server.name);
                self.fail(at, reason, "use another kind of server");
            }
            above = forest.above_server(index);
        }
        for (mode, path) in draft.modes.iter().zip(&forest.paths.modes) {
            let own = mode.tasks.iter().find(|change| change.task == task.name).and_then(|it| it.left_over);
            let left_over = own.unwrap_or(mode.left_over);
            if left_over != LeftOver::Finish {
                let word = left_over.word();
                let reason =
                    format!("`{}` has sections, and a job in one cannot be left with `{word}`", task.name);
                let remedy = "write `left_over = \"finish\"` for it in a `[[mode.task]]`";
                self.fail(At::new(path, "left_over"), reason, remedy);
            }
        }
    }
}
