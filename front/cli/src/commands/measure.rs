//! `horolog measure`.

use crate::arguments::{Format, MeasureVerb};
use crate::commands::run::stop_on_interrupt;
use crate::failure::{Done, Failure, Verdict};
use crate::measure_arguments::{CostArguments, CostInterrupt};
use crate::output::outln;
use crate::{output, progress};
use horolog_measure::Percentiles;
use horolog_measure::costs::{CostOptions, Costs, InterruptSource, Witness, measure};
use horolog_sys::Error;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) fn run(verb: &MeasureVerb) -> Done {
    match verb {
        MeasureVerb::Costs(words) => costs(words),
        MeasureVerb::Machine(words) => super::machine::run(words),
        MeasureVerb::Blocking(words) => super::blocking::run(words),
        MeasureVerb::Interference(words) => super::interference::run(words),
        MeasureVerb::Extract(words) => super::extract::run(words),
    }
}

fn costs(words: &CostArguments) -> Done {
    let mut options = CostOptions::new(words.cpu.unwrap_or_else(last_cpu));
    if let Some(duration) = words.duration {
        options.budget = duration;
    }
    options.interrupts = words.interrupt.iter().copied().filter_map(source).collect();
    options.interrupts.dedup();
    options.stop = stop_on_interrupt()?;
    let activity = progress::Activity::start("measuring costs");
    let costs = measure(&options, &mut |progress| activity.now(progress.stage));
    drop(activity);
    let costs = costs.map_err(|error| {
        // A processor that is not there is the user's mistake, not the machine's refusal.
        let failed = |error: Error| {
            if error.is_bad_input() { Failure::bad_input(error) } else { Failure::not_permitted(error) }
        };
        stopped(&options.stop).unwrap_or_else(|| failed(error))
    })?;
    match words.format {
        Format::Json => output::json(&costs)?,
        Format::Table => {
            print(&costs);
            output::write(format_args!("{}", costs.to_toml()));
        }
    }
    Ok(Verdict::Holds)
}

/// What is said of a measurement that a signal has stopped.
pub(super) fn stopped(stop: &AtomicBool) -> Option<Failure> {
    let is_set = stop.load(Ordering::Acquire);
    is_set.then(|| Failure::undecided("undecided: stopped by a signal before it was done (exit 4)"))
}

fn source(word: CostInterrupt) -> Option<InterruptSource> {
    match word {
        CostInterrupt::Disk => Some(InterruptSource::Disk),
        CostInterrupt::Call => Some(InterruptSource::Call),
        CostInterrupt::Network => Some(InterruptSource::Network),
        CostInterrupt::None => None,
    }
}

/// Everything but the values as comments, so that the whole output may stand in a system file.
fn print(costs: &Costs) {
    let mut rows = output::table(&["cost", "samples", "min", "p50", "p95", "p99", "p99.9", "max"], 1);
    let mut add = |name: String, time: &Percentiles| {
        let spans = [time.ns_min, time.ns_p50, time.ns_p95, time.ns_p99, time.ns_p99_9, time.ns_max];
        let mut row = vec![name, time.count.to_string()];
        row.extend(spans.map(output::span));
        rows.add_row(row);
    };
    for cost in &costs.costs {
        add(cost.name.to_owned(), &cost.time);
    }
    for one in &costs.interrupts {
        let by = match one.witness {
            Witness::SpinningThread => "",
            Witness::KernelRecord => ", kernel's record",
        };
        add(format!("interrupt of {} on cpu {}{by}", one.name, one.cpu), &one.time);
        if let Some(recorded) = one.recorded.as_ref().filter(|_| one.witness == Witness::SpinningThread) {
            add("  its handler, kernel's record".to_owned(), &recorded.handler);
            if let Some(softirqs) = &recorded.softirqs {
                add("  softirqs behind it, kernel's record".to_owned(), softirqs);
            }
        }
    }
    for line in rows.to_string().lines() {
        outln!("# {}", line.trim_end());
    }
    for one in &costs.interrupts {
        let disturbed = one
            .disturbed_share
            .map_or(String::new(), |share| format!("; {:.1} % of windows disturbed without", 1e2 * share));
        outln!(
            "# {}: {} requests, {} interrupts of line {} on cpu {}, {} unseen{disturbed}",
            one.name,
            one.provoked,
            one.interrupts,
            one.interrupt,
            one.cpu,
            one.unseen
        );
        one.notes.iter().for_each(|note| outln!("# note: {}: {note}", one.name));
    }
    for one in &costs.unprovoked {
        outln!("# not measured: interrupt of {}: {}", one.source, one.reason);
    }
    for note in &costs.notes {
        outln!("# note: {note}");
    }
}

/// The CPU that is measured by default: interrupts and housekeeping prefer the first.
pub(super) fn last_cpu() -> u32 {
    std::thread::available_parallelism().map_or(0, |n| n.get() as u32 - 1)
}
