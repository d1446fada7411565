//! Systems whose tasks share resources: sections at the edges of jobs and segments, nested and one behind the other.

use super::{Kind, beside_servers, ns, trees};
use crate::Random;
use horolog_model::{AtExhaustion, CpuId, Draft, Protocol, Resource, Section, Task};

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

/// In trees of schedulers.
pub(super) fn in_trees(random: &mut Random, end: u64) -> Draft {
    let tables = [trees::Tables::No, trees::Tables::No, trees::Tables::BelowFixedPriorities];
    let tables = tables[random.below(3) as usize];
    let mut draft = trees::draft(random, end, tables);
    add(random, &mut draft);
    draft
}

/// One to three resources a processor, and sections in most of its tasks.
fn add(random: &mut Random, draft: &mut Draft) {
    for cpu in 0..draft.platform.cpus.iter().count() as u32 {
        let count = random.between(1, 3);
        for number in 0..count {
            draft.resources.push(Resource {
                name: format!("resource-{cpu}-{number}"),
                protocol: Protocol::Ceiling,
                at_exhaustion: [AtExhaustion::Finish, AtExhaustion::Wait][random.below(2) as usize],
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
    let section = Section { resource, from: ns(from), length: ns(length) };
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
