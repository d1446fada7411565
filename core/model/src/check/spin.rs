//! The rules of protocols beside the ceiling: spin locks across processors (decision 0018), and those of one processor (decision 0019).

use super::forest::{Above, Forest};
use super::{At, Checker};
use crate::{
    CpuId, Draft, OverrunPolicy, Policy, Preemption, Priority, PriorityAssignment, Protocol, SpinLevel, Task,
    path, resource,
};
use std::collections::BTreeMap;

impl Checker {
    /// What a task with sections of other protocols than the ceiling may have beside and around them.
    pub(super) fn sections_by_protocol(&mut self, task: &Task, path: &str, forest: &Forest<'_>) {
        let draft = forest.draft;
        let at = At::new(path, "section");
        let protocol = |name: &str| draft.resources.iter().find(|it| it.name == name).map(|it| it.protocol);
        for (place, section) in task.sections.iter().enumerate() {
            let Some(own) = protocol(&section.resource) else { continue };
            if section.access.is_read() && !own.tells_readers() {
                let reason = format!(
                    "`{}` has the protocol `{}`, which knows no readers",
                    section.resource,
                    own.word()
                );
                let remedy =
                    "give the resource `protocol = \"phase-fair\"` or `\"task-fair\"`, or remove `access`";
                self.fail(path::join(&at.item(place), "access"), reason, remedy);
            }
            let is_other = |it: &&crate::Section| {
                it.resource == section.resource && it.access != section.access && own.tells_readers()
            };
            if task.sections[..place].iter().any(|it| is_other(&it)) {
                let reason = format!(
                    "`{}` reads `{}` in one section and writes it in another",
                    task.name, section.resource
                );
                let remedy = "use `access = \"write\"` for both, or give each to a task of its own";
                self.fail(at.item(place), reason, remedy);
            }
            let overlaps = |other: &crate::Section| {
                let (Some(end), Some(other_end)) = (section.end(), other.end()) else { return false };
                section.from < other_end && other.from < end
            };
            let others = task
                .sections
                .iter()
                .enumerate()
                .filter(|&(other, it)| other != place && it.resource != section.resource);
            // Of two sections that both may not, or both may with others, the later one is told.
            let is_told = |other: usize, name: &str| {
                let theirs = protocol(name).unwrap_or_default();
                let is_later = other < place;
                let is_alone = if own.may_nest() {
                    theirs.may_nest() && is_later
                } else {
                    is_later || theirs.may_nest()
                };
                is_alone && !own.nests_with(theirs)
            };
            let nested = others.filter(|(_, other)| overlaps(other)).map(|(other, it)| (other, &it.resource));
            if let Some((_, other)) = nested.clone().find(|(other, name)| is_told(*other, name)) {
                let knows = match own.may_nest() {
                    true => "this protocol knows no nesting with that one",
                    false => "this protocol knows no nesting",
                };
                let (name, word) = (&section.resource, own.word());
                let reason = format!("a section of `{name}` ({word}) overlaps one of `{other}`, and {knows}");
                let remedy = "let one end before the other begins, or give both data one resource";
                self.fail(at.item(place), reason, remedy);
            }
        }
        let mut global =
            task.sections.iter().filter_map(|it| protocol(&it.resource)).filter(|it| it.is_global());
        if let Some(global) = global.next()
            && task.overrun != OverrunPolicy::Count
        {
            let why = "an overrun policy beside a spin lock is not there yet: the clock of a job's thread counts what it spins";
            let other = format!("an overrun policy beside `{}` is not there yet", global.word());
            self.fail_beside(
                At::new(path, "overrun"),
                if global.spins() { why.to_owned() } else { other },
                "remove `overrun`, or the sections",
                vec![(at.to_string(), "the sections".to_owned())],
            );
        }
        let mut all = task.sections.iter().filter_map(|it| protocol(&it.resource));
        if let Some(own) = all.find(|own| own.helps() || own.is_remote())
            && task.preemption != Preemption::Preemptive
        {
            let reason = match own.helps() {
                true => {
                    "a section of `mrsp` goes on on another processor where its job is preempted, and this job cannot be preempted anywhere"
                }
                false => {
                    "a section of `dpcp` executes on another processor, and this job cannot be preempted anywhere"
                }
            };
            let other = if own.helps() { "msrp" } else { "mpcp" };
            self.fail(at, reason, format!("let the task be preemptive, or use `protocol = \"{other}\"`"));
        }
        let mut own = task.sections.iter().filter_map(|it| protocol(&it.resource));
        let other = own.find(|&own| own != Protocol::Ceiling);
        if let Some(other) = other
            && !matches!(forest.above_task(&task.name), Above::Root | Above::Cluster(_))
        {
            let reason = match other.spins() {
                true => "spin locks below servers and schedulers are not there yet".to_owned(),
                false => format!(
                    "resources with `protocol = \"{}\"` below servers and schedulers are not there yet",
                    other.word()
                ),
            };
            let remedy = match other.is_global() {
                true => "let the task stand below the root of its CPU",
                false => "let the task stand below the root of its CPU, or use the protocol `ceiling`",
            };
            self.fail(at, reason, remedy);
        }
    }

    /// What protocols need of the whole system.
    pub(super) fn protocols(&mut self, forest: &Forest<'_>) {
        let draft = forest.draft;
        self.one_kind_across_processors(forest);
        for (resource, path) in draft.resources.iter().zip(&forest.paths.resources) {
            if resource.protocol == Protocol::Fslm && draft.policy == Policy::Edf {
                let reason = "`fslm` spins at a priority, and under EDF nothing has one";
                self.fail(At::new(path, "protocol"), reason, "use `protocol = \"msrp\"`");
            }
            let word = resource.protocol.word();
            let depends_on_order = resource.protocol.helps() || resource.protocol.asks_anew();
            if depends_on_order && draft.policy != Policy::FixedPriority {
                let remedy = "use `protocol = \"msrp\"`, or `policy = \"fixed-priority\"`";
                let reason = format!("`{word}` needs fixed priorities");
                self.fail(At::new(path, "protocol"), reason, remedy);
            }
            if (resource.protocol.boosts() || depends_on_order)
                && draft.priorities == PriorityAssignment::Audsley
            {
                self.fail_beside(
                    At::new(path, "protocol"),
                    format!("Audsley's search asks a test for each priority, and none knows of `{word}` yet"),
                    "use `priorities = \"deadline-monotonic\"`, or `protocol = \"msrp\"`",
                    vec![("system.priorities".to_owned(), "Audsley's search".to_owned())],
                );
            }
            if resource.protocol.suspends() && draft.policy != Policy::FixedPriority {
                let reason = format!("`{word}` needs fixed priorities");
                let remedy = match resource.protocol.is_global() {
                    true => "use `protocol = \"msrp\"`, or `policy = \"fixed-priority\"`",
                    false => "use the protocol `ceiling`, or `policy = \"fixed-priority\"`",
                };
                self.fail(At::new(path, "protocol"), reason, remedy);
            }
            if resource.protocol != Protocol::Ceiling && !draft.modes.is_empty() {
                let reason = match resource.protocol.spins() {
                    true => "spin locks beside modes are not there yet".to_owned(),
                    false => format!("`{word}` beside modes is not there yet"),
                };
                let remedy = match resource.protocol.is_global() {
                    true => "remove the modes",
                    false => "use the protocol `ceiling`, or remove the modes",
                };
                self.fail(At::new(path, "protocol"), reason, remedy);
            }
        }
    }

    /// No rule says who comes first of two that hold resources of `mpcp`, `fmlp-plus`, `mrsp` or `dpcp` and of another protocol across processors.
    fn one_kind_across_processors(&mut self, forest: &Forest<'_>) {
        let (resources, paths) = (&forest.draft.resources, &forest.paths.resources);
        let mut global = resources.iter().zip(paths).filter(|(it, _)| it.protocol.is_global());
        let Some((first, place)) = global.next() else { return };
        let is_other = |it: &&crate::Resource| {
            let is_alone = |protocol: Protocol| protocol.boosts() || protocol.helps();
            it.protocol != first.protocol && (is_alone(it.protocol) || is_alone(first.protocol))
        };
        for (resource, path) in global.filter(|(it, _)| is_other(it)) {
            let (word, first) = (resource.protocol.word(), first.protocol.word());
            self.fail_beside(
                At::new(path, "protocol"),
                format!("`{word}` and `{first}` are not there in one system yet"),
                format!("use `protocol = \"{first}\"` for both"),
                vec![(path::join(place, "protocol"), "the other protocol".to_owned())],
            );
        }
    }

    pub(super) fn spin_priorities(&mut self, forest: &Forest<'_>, is_complete: bool) {
        let (draft, paths) = (forest.draft, forest.paths);
        let mut first: BTreeMap<CpuId, usize> = BTreeMap::new();
        for (index, (spin, path)) in draft.spin_priorities.iter().zip(&paths.spin_priorities).enumerate() {
            self.cpu(spin.cpu, path, &draft.platform);
            if draft.policy == Policy::Edf {
                let remedy = "remove it, or use `policy = \"fixed-priority\"`";
                self.fail(At::new(path, "priority"), "under EDF nothing has a priority", remedy);
            }
            if let Some(&other) = first.get(&spin.cpu) {
                self.fail_beside(
                    At::new(path, "cpu"),
                    format!("CPU {} has two spin priorities", spin.cpu.0),
                    "keep one of them",
                    vec![(path::join(&paths.spin_priorities[other], "cpu"), "the other".to_owned())],
                );
            }
            first.entry(spin.cpu).or_insert(index);
            if is_complete && !draft.resources.iter().any(|it| it.protocol == Protocol::Fslm) {
                let remedy = "give a resource `protocol = \"fslm\"`, or remove the spin priority";
                self.fail(path, "no resource has the protocol `fslm`, so no job spins at it", remedy);
            } else if let SpinLevel::At(priority) = spin.level
                && is_complete
            {
                self.spin_level(draft, spin.cpu, priority, path);
            } else if spin.level == SpinLevel::Ceiling
                && draft.priorities == PriorityAssignment::Audsley
                && resource::uses_spin_locks(&draft.tasks, &draft.resources, spin.cpu)
            {
                self.fail_beside(
                    At::new(path, "priority"),
                    "Audsley's search cannot place tasks whose bounds depend on the order of more important ones, as they do here",
                    "use `\"highest\"`, or `priorities = \"deadline-monotonic\"`",
                    vec![("system.priorities".to_owned(), "Audsley's search".to_owned())],
                );
            }
        }
    }

    /// A spin priority lies between the ceiling of its processor and the highest priority there.
    fn spin_level(&mut self, draft: &Draft, cpu: CpuId, priority: Priority, path: &str) {
        let at = At::new(path, "priority");
        if draft.priorities != PriorityAssignment::Explicit {
            let reason = "the priorities are derived, and this is a number";
            self.fail(at, reason, "use `\"ceiling\"` or `\"highest\"`");
            return;
        }
        let here = draft.tasks.iter().filter(|task| task.cpu == cpu);
        let highest = here.filter_map(|task| task.priority).max_by_key(|priority| priority.number());
        let Some(highest) = highest else { return };
        let ceiling = resource::spin_ceiling(&draft.tasks, &draft.resources, cpu);
        let is_below = ceiling.is_some_and(|ceiling| ceiling.is_more_important_than(priority));
        if is_below || priority.is_more_important_than(highest) {
            let top = format!("{} (the most important task)", highest.number());
            let (range, number) = match ceiling.map(Priority::number) {
                None => (format!("is at most {top}"), format!("a number up to {}", highest.number())),
                Some(ceiling) if ceiling == highest.number() => (
                    format!("is {ceiling} alone: its most important task uses a global resource"),
                    format!("{ceiling}"),
                ),
                Some(ceiling) => (
                    format!("goes from {ceiling} (the most important user of a global resource) to {top}"),
                    format!("a number from {ceiling} to {}", highest.number()),
                ),
            };
            let reason = format!("the spin priority of CPU {} {range}", cpu.0);
            self.fail(at, reason, format!("use `\"ceiling\"`, `\"highest\"` or {number}"));
        }
    }
}
