//! Systems whose tasks hand values over.

use super::{Kind, beside_servers, clusters, trees};
use crate::Random;
use horolog_model::{Draft, Link};

/// A system of another kind, with links from tasks with deadlines to any.
pub(super) fn draft(random: &mut Random, end: u64) -> Draft {
    let mut draft = match random.below(8) {
        0 => trees::draft(random, end, trees::Tables::No),
        1 => clusters::draft(random),
        2 => beside_servers(random, Kind::Mixed, end),
        3 => beside_servers(random, Kind::ConstantBandwidth, end),
        4 | 5 => beside_servers(random, Kind::Edf, end),
        _ => beside_servers(random, Kind::FixedPriority, end),
    };
    let names: Vec<String> = draft.tasks.iter().map(|task| task.name.clone()).collect();
    let writers: Vec<String> =
        draft.tasks.iter().filter(|task| task.deadline.is_some()).map(|task| task.name.clone()).collect();
    for number in 0..random.between(1, 3) {
        if writers.is_empty() {
            break;
        }
        let from = writers[random.below(writers.len() as u64) as usize].clone();
        let mut to: Vec<String> = names.iter().filter(|_| random.below(2) == 0).cloned().collect();
        if to.is_empty() {
            to.push(names[random.below(names.len() as u64) as usize].clone());
        }
        draft.links.push(Link { name: format!("link-{number}"), from, to, ..Link::default() });
    }
    draft
}
