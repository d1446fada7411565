//! The machine's costs of a system, as the words of a verb choose them.

use crate::arguments::MachineArguments;
use crate::failure::Failure;
use crate::output::outln;
use crate::{output, progress};
use horolog_analysis::{Analysis, Schedulable};
use horolog_closed_loop::{CostOrigin, CostRequest, CostSource, MachineChoice, with_costs};
use horolog_model::System;

/// The system with the costs that it leaves out from the profile that counts, or measured where the words ask for it.
pub(crate) fn filled(system: &System, words: &MachineArguments) -> Result<(System, CostSource), Failure> {
    let choice = words.machine.clone().unwrap_or_default();
    chosen(system, &choice)
}

/// The same for a verb that takes no profile by itself.
pub(crate) fn filled_on_request(
    system: &System,
    words: &MachineArguments,
    why: &str,
) -> Result<(System, CostSource), Failure> {
    match &words.machine {
        Some(choice) => chosen(system, choice),
        None => Ok((system.clone(), CostSource::of_file(system, why))),
    }
}

fn chosen(system: &System, choice: &MachineChoice) -> Result<(System, CostSource), Failure> {
    let activity =
        progress::Activity::start_where(*choice == MachineChoice::Measure, "measuring this machine's costs");
    let request = CostRequest { choice, measures: false, stop: None };
    let found = with_costs(system, &request, &mut |done| {
        if let Some(activity) = &activity {
            activity.now(&format!("measuring this machine's costs: {done}"));
        }
    });
    found.map_err(Failure::from)
}

/// The costs and their origin, for people; nothing where the file gives all of them.
pub(crate) fn print(costs: &CostSource) {
    if costs.has(CostOrigin::Profile) || costs.has(CostOrigin::ThisMinute) {
        let each = costs.costs.iter().map(|cost| {
            let name = cost.name.name().replace('_', " ");
            let from = match cost.origin {
                CostOrigin::File => " (file)",
                CostOrigin::NotCounted => " (not known)",
                CostOrigin::Profile | CostOrigin::ThisMinute => "",
            };
            format!("{name} {}{from}", output::span(cost.value_ns))
        });
        let each = each.collect::<Vec<_>>().join(", ");
        match &costs.profile {
            Some(path) => outln!("costs of {}: {each}", path.display()),
            None => outln!("costs of this minute: {each}"),
        }
    }
    if let Some(reason) = &costs.not_counted {
        let of_file = if costs.has(CostOrigin::File) { " where the file gives none" } else { "" };
        outln!("the machine's costs count as zero{of_file}: {reason}");
    }
}

/// What the proof would be on a machine that costs nothing: the verdict, and the utilisations that differ.
pub(crate) fn print_without(with: &Analysis, without: &Analysis) {
    let word = match without.schedulable {
        Schedulable::Yes => "every deadline is proved to hold",
        Schedulable::No => "not every deadline can hold",
        Schedulable::Unknown => "no test decides whether every deadline holds",
    };
    outln!("without the machine's costs: {word}");
    for (with, without) in with.processors.iter().zip(&without.processors) {
        if with.utilisation > without.utilisation {
            let (cpu, least, most) = (with.cpu.0, without.utilisation, with.utilisation);
            outln!("cpu {cpu}: utilisation {least:.3} without costs, {most:.3} with them");
        }
    }
}

/// The same to the standard error, for verbs whose result says nothing of costs.
pub(crate) fn say(costs: &CostSource) {
    if let Some(path) = &costs.profile {
        progress::say(format_args!("costs of {}", path.display()));
    }
    if costs.has(CostOrigin::ThisMinute) {
        progress::say("costs of this minute");
    }
    costs.notes.iter().for_each(|note| progress::say(format_args!("note: {note}")));
}
