//! Systems whose tasks share resources: sections at the edges of jobs and segments, nested and one behind the other.

use super::{Kind, beside_servers, ns, trees};
use crate::Random;
use horolog_model::{Access, AtExhaustion, CpuId, Draft, Policy, Protocol, Resource, Section, Task};

/// On processors with or without servers.
pub(super) fn draft(random: &mut Random, end: u64) -> Draft {
    let kinds = [
        Kind::FixedPriority,
        Kind::Edf,
        Kind::Background,
        Kind::Polling,
        Kind::Deferrable,
        Kind::Sporadic,
        Kind::PosixSporadic,
        Kind::ConstantBandwidth,
        Kind::Mixed,
    ];
    let kind = kinds[random.below(kinds.len() as u64) as usize];
    let mut draft = beside_servers(random, kind, end);
    add(random, &mut draft);
    draft
}

/// Under the protocols of one processor, beside servers.
pub(super) fn of_one_processor(random: &mut Random, end: u64) -> Draft {
    let kinds = [
        Kind::FixedPriority,
        Kind::FixedPriority,
        Kind::Edf,
        Kind::Polling,
        Kind::Deferrable,
        Kind::Sporadic,
        Kind::ConstantBandwidth,
        Kind::Mixed,
    ];
    let kind = kinds[random.below(kinds.len() as u64) as usize];
    let mut draft = beside_servers(random, kind, end);
    let protocols: &[Protocol] = match draft.policy {
        Policy::FixedPriority => &[
            Protocol::Ceiling,
            Protocol::NonPreemptive,
            Protocol::Inheritance,
            Protocol::OriginalCeiling,
            Protocol::None,
        ],
        _ => &[Protocol::Ceiling, Protocol::NonPreemptive],
    };
    add_under(random, &mut draft, protocols);
    // Other protocols than the ceiling belong below a root, and those that suspend do not nest.
    let protocol_of = |draft: &Draft, name: &str| {
        draft.resources.iter().find(|it| it.name == name).map_or(Protocol::Ceiling, |it| it.protocol)
    };
    for index in 0..draft.tasks.len() {
        let is_served = draft.servers.iter().any(|server| server.tasks.contains(&draft.tasks[index].name));
        let mut kept: Vec<Section> = Vec::new();
        for section in std::mem::take(&mut draft.tasks[index].sections) {
            let own = protocol_of(&draft, &section.resource);
            let overlaps = |other: &&Section| {
                section.from < other.end().unwrap_or(ns(0)) && Some(other.from) < section.end()
            };
            let nests = |other: &Section| own.nests_with(protocol_of(&draft, &other.resource));
            let fits = kept.iter().filter(overlaps).all(nests);
            if fits && (own == Protocol::Ceiling || !is_served) {
                kept.push(section);
            }
        }
        draft.tasks[index].sections = kept;
    }
    draft
}

/// In trees of schedulers.
pub(super) fn in_trees(random: &mut Random, end: u64) -> Draft {
    let tables = [trees::Tables::No, trees::Tables::No, trees::Tables::BelowFixedPriorities];
    let tables = tables[random.below(3) as usize];
    let mut draft = trees::draft(random, end, tables);
    add(random, &mut draft);
    draft
}

fn add(random: &mut Random, draft: &mut Draft) {
    add_under(random, draft, &[Protocol::Ceiling]);
}

/// One to three resources a processor, under one of these protocols each, and sections in most of its tasks.
fn add_under(random: &mut Random, draft: &mut Draft, protocols: &[Protocol]) {
    for cpu in 0..draft.platform.cpus.iter().count() as u32 {
        let count = random.between(1, 3);
        for number in 0..count {
            draft.resources.push(Resource {
                name: format!("resource-{cpu}-{number}"),
                protocol: match protocols {
                    [only] => *only,
                    several => several[random.below(several.len() as u64) as usize],
                },
                at_exhaustion: [AtExhaustion::Finish, AtExhaustion::Wait][random.below(2) as usize],
                cpu: None,
            });
        }
        for task in draft.tasks.iter_mut().filter(|task| task.cpu == CpuId(cpu)) {
            for _ in 0..random.below(4) {
                add_section(random, task, cpu, count);
            }
        }
    }
}

/// A section, if it fits beside those that are there.
fn add_section(random: &mut Random, task: &mut Task, cpu: u32, resources: u64) {
    let wcet = task.wcet.as_ns();
    let from = random.below(wcet);
    let length = random.between(1, wcet - from);
    let resource = format!("resource-{cpu}-{}", random.below(resources));
    let section = Section { resource, from: ns(from), length: ns(length), access: Access::Write };
    let is_apart = |other: &Section| {
        let (end, other_end) = (section.end(), other.end());
        end <= Some(other.from) || other_end <= Some(section.from)
    };
    let fits = |other: &Section| {
        section.nests_with(other) && (section.resource != other.resource || is_apart(other))
    };
    if task.sections.iter().all(fits) {
        task.sections.push(section);
    }
}
