//! What a proof says about links (decision 0009).
//!
//! A link changes nothing about who runs when. A value that its job finishes by its deadline is the right one for every latch, whatever
//! runs when; so a proof of the writer's deadline is a proof that no value comes late.

use crate::result::{TaskVerdict, Verdict};
use horolog_model::System;

/// A note for each link.
pub(crate) fn notes(system: &System, tasks: &[TaskVerdict]) -> Vec<String> {
    let note = |link: &horolog_model::Link| {
        let (name, from) = (&link.name, &link.from);
        let verdict = tasks.iter().find(|task| task.name == *from).map_or(Verdict::Unknown, |it| it.verdict);
        match verdict {
            Verdict::Meets => format!("link {name}: {from} meets its deadline, so no value comes late"),
            Verdict::Misses => format!("link {name}: {from} may miss its deadline, so values may come late"),
            Verdict::Unknown => {
                format!(
                    "link {name}: the deadline of {from} is not proved, so whether values come late is unknown"
                )
            }
        }
    };
    system.links().iter().map(note).collect()
}
