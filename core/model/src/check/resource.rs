//! The rules of resources and of the sections that hold them (decision 0009).

use super::forest::{Above, Forest};
use super::{At, Checker};
use crate::{Draft, LeftOver, Policy, Section, Task, path};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

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
        let known: BTreeSet<&str> = draft.resources.iter().map(|it| it.name.as_str()).collect();
        // The first user of each resource.
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, (task, path)) in draft.tasks.iter().zip(&paths.tasks).enumerate() {
            if task.sections.is_empty() {
                continue;
            }
            let base = At::new(path, "section");
            let nests = nests(&task.sections);
            for (place, section) in task.sections.iter().enumerate() {
                let at = base.item(place);
                let name = section.resource.as_str();
                if is_complete && !known.contains(&name) {
                    let names = draft.resources.iter().map(|it| it.name.as_str());
                    let remedy = self.suggestions.did_you_mean(name, names);
                    self.fail(path::join(&at, "resource"), format!("there is no resource `{name}`"), remedy);
                }
                self.section(task, place, &at, (path, nests), forest);
                let other = *first.entry(name).or_insert(index);
                let is_local = draft
                    .resources
                    .iter()
                    .any(|resource| resource.name == name && !resource.protocol.is_global());
                if is_local && draft.tasks[other].cpu != task.cpu {
                    // All resources across processors have one protocol where jobs are suspended.
                    let global = draft.resources.iter().find(|it| it.protocol.is_global());
                    let word = global.map_or("msrp", |global| global.protocol.word());
                    self.fail_beside(
                        path::join(&at, "resource"),
                        format!("`{name}` is held on another CPU, too, and its protocol is local"),
                        format!("give the resource `protocol = \"{word}\"`, or let the tasks that share it run on one CPU"),
                        vec![(At::new(&paths.tasks[other], "cpu").to_string(), "the other CPU".to_owned())],
                    );
                }
            }
            self.place_of_sections(task, path, forest);
            self.sections_by_protocol(task, path, forest);
        }
        self.sections_in_modes(forest);
        self.protocols(forest);
        self.processors_of_sections(forest);
    }

    /// One section, beside those that stand before it.
    fn section(
        &mut self,
        task: &Task,
        place: usize,
        at: &str,
        (path, nests): (&str, bool),
        forest: &Forest<'_>,
    ) {
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
        if nests {
            return;
        }
        let before = task.sections[..place].iter().filter(|other| !other.length.is_zero());
        let is_apart = |other: &&Section| {
            section.end().is_some_and(|end| end <= other.from)
                || other.end().is_some_and(|end| end <= section.from)
        };
        // Where the protocols know no nesting, that is told.
        let protocol = |name: &str| {
            let found = forest.draft.resources.iter().find(|resource| resource.name == name);
            found.map(|resource| resource.protocol).unwrap_or_default()
        };
        let may_nest = |other: &Section| {
            other.resource != section.resource
                && protocol(&section.resource).nests_with(protocol(&other.resource))
        };
        if let Some(other) = before.clone().find(|other| may_nest(other) && !section.nests_with(other)) {
            let reason = format!("the sections of `{}` and `{}` overlap", other.resource, section.resource);
            self.fail(at, reason, "let one end before the other begins, or lie within it");
        } else if let Some(other) =
            before.filter(|other| other.resource == section.resource).find(|other| !is_apart(other))
        {
            let reason = format!("`{}` is locked while the job holds it", section.resource);
            let remedy = if section.nests_with(other) {
                "keep the outer section alone"
            } else {
                "make one section of the two, or let one end before the other begins"
            };
            self.fail(path::join(at, "resource"), reason, remedy);
        }
    }

    /// What stands above and beside a task with sections has to know of them.
    fn place_of_sections(&mut self, task: &Task, path: &str, forest: &Forest<'_>) {
        let (draft, at) = (forest.draft, At::new(path, "section"));
        let above = forest.above_task(&task.name);
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
        if let Some(server) = forest.watching.get(&task.cpu).map(|&index| &draft.servers[index]) {
            let remedy = match draft.policy {
                Policy::FixedPriority => "use a polling, deferrable or sporadic server",
                _ => "use a constant-bandwidth server",
            };
            let reason = format!(
                "resources beside `{}`, which looks at every task of the CPU, are not there yet",
                server.name
            );
            self.fail(at, reason, remedy);
        }
        if let Some(index) = forest.refuses_resources(above) {
            let server = &draft.servers[index];
            let word = if server.kind.is_kernels() { "kernel-served" } else { server.kind.word() };
            let reason = format!("resources below the {word} server `{}` are not there yet", server.name);
            self.fail(at, reason, "use another kind of server");
        }
    }

    /// A mode leaves no job within a section.
    fn sections_in_modes(&mut self, forest: &Forest<'_>) {
        let draft = forest.draft;
        let has_sections = |task: &&Task| !task.sections.is_empty();
        for (mode, path) in draft.modes.iter().zip(&forest.paths.modes) {
            let own: BTreeMap<&str, LeftOver> = mode
                .tasks
                .iter()
                .rev()
                .filter_map(|change| Some((change.task.as_str(), change.left_over?)))
                .collect();
            if mode.left_over == LeftOver::Finish && own.is_empty() {
                continue;
            }
            for task in draft.tasks.iter().filter(has_sections) {
                let left_over = own.get(task.name.as_str()).copied().unwrap_or(mode.left_over);
                if left_over != LeftOver::Finish {
                    let word = left_over.word();
                    let reason = format!(
                        "`{}` has sections, and a job in one cannot be left with `{word}`",
                        task.name
                    );
                    // The short form has the path of its own section.
                    let remedy = match path.as_str() {
                        "criticality" => "write `low_jobs = \"finish\"`",
                        _ => "write `left_over = \"finish\"` for it in a `[[mode.task]]`",
                    };
                    self.fail(At::new(path, "left_over"), reason, remedy);
                }
            }
        }
    }
}

/// Whether sections nest properly, and none holds what another around it holds: then there is nothing to tell of any two.
fn nests(sections: &[Section]) -> bool {
    let mut order: Vec<&Section> = sections.iter().filter(|section| !section.length.is_zero()).collect();
    order.sort_by_key(|section| (section.from, Reverse(section.length)));
    let mut around: Vec<&Section> = Vec::new();
    let mut held = BTreeSet::new();
    for section in order {
        while let Some(outer) = around.pop_if(|outer| outer.end().is_some_and(|end| end <= section.from)) {
            held.remove(outer.resource.as_str());
        }
        let is_within = around.last().is_none_or(|outer| section.end() <= outer.end());
        if section.end().is_none() || !is_within || !held.insert(section.resource.as_str()) {
            return false;
        }
        around.push(section);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;
    use horolog_time::Span;

    #[test]
    fn what_nests_as_a_whole_is_what_nests_two_by_two() {
        let apart = |a: &Section, b: &Section| a.end() <= Some(b.from) || b.end() <= Some(a.from);
        let fits = |a: &Section, b: &Section| a.nests_with(b) && (a.resource != b.resource || apart(a, b));
        let mut state = 1_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let (mut nested, mut broken) = (0, 0);
        for _ in 0..20_000 {
            let count = 1 + below(4);
            let sections: Vec<Section> = (0..count)
                .map(|_| Section {
                    resource: ["a", "b", "c"][below(3) as usize].to_owned(),
                    from: Span::from_ns(below(6)),
                    length: Span::from_ns(1 + below(6)),
                    access: Access::Write,
                })
                .collect();
            let pairs = sections.iter().enumerate();
            let by_pairs = pairs
                .flat_map(|(place, one)| sections[..place].iter().map(move |other| (one, other)))
                .all(|(one, other)| fits(one, other));
            assert_eq!(nests(&sections), by_pairs, "{sections:?}");
            *(if by_pairs { &mut nested } else { &mut broken }) += 1;
        }
        assert!(nested > 1_000 && broken > 1_000, "{nested}, {broken}");
        let last = |from| {
            let (from, length) = (Span::from_ns(from), Span::from_ns(1));
            Section { resource: "a".to_owned(), from, length, access: Access::Write }
        };
        assert!(nests(&[last(u64::MAX - 1)]) && !nests(&[last(u64::MAX)]));
    }
}
