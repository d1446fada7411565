//! `horolog measure`.

use crate::arguments::{Format, MeasureVerb};
use crate::failure::{Done, Failure, Verdict};
use crate::{output, progress};
use horolog_measure::costs::{CostOptions, measure};
use horolog_time::Span;

pub(crate) fn run(verb: &MeasureVerb) -> Done {
    match verb {
        MeasureVerb::Costs { cpu, duration, format } => costs(*cpu, *duration, *format),
        MeasureVerb::Blocking(words) => super::blocking::run(words),
        MeasureVerb::Interference(words) => super::interference::run(words),
        MeasureVerb::Extract(words) => super::extract::run(words),
    }
}

fn costs(cpu: Option<u32>, duration: Option<Span>, format: Format) -> Done {
    let cpu = cpu.unwrap_or_else(last_cpu);
    let mut options = CostOptions::new(cpu);
    if let Some(duration) = duration {
        options.budget = duration;
    }
    let activity = progress::Activity::start("measuring costs");
    let costs = measure(&options, &mut |progress| activity.now(progress.stage)).map_err(|error| {
        // A processor that is not there is the user's mistake, not the machine's refusal.
        if error.is_bad_input() { Failure::error(error) } else { Failure::not_permitted(error) }
    })?;
    drop(activity);
    match format {
        Format::Json => output::json(&costs)?,
        Format::Table => {
            output::write(format_args!("{}", costs.to_toml()));
        }
    }
    Ok(Verdict::Holds)
}

/// The CPU that is measured by default: interrupts and housekeeping prefer the first.
pub(super) fn last_cpu() -> u32 {
    std::thread::available_parallelism().map_or(0, |n| n.get() as u32 - 1)
}
