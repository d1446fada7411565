//! `horolog measure blocking`.

use super::measure::{last_cpu, stopped};
use crate::arguments::Format;
use crate::commands::run::stop_on_interrupt;
use crate::failure::{Done, Failure, Verdict};
use crate::measure_arguments::{BlockingArguments, BlockingLoad};
use crate::output::outln;
use crate::{output, progress};
use horolog_measure::blocking::{Blocking, BlockingOptions, Load, measure};
use horolog_sys::Error;

pub(crate) fn run(words: &BlockingArguments) -> Done {
    let mut options = BlockingOptions::new(words.cpu.unwrap_or_else(last_cpu));
    options.priority = words.priority;
    options.period = words.period;
    options.duration = words.duration;
    options.loads = words.load.iter().map(load).collect();
    if !words.command.is_empty() {
        options.loads.push(Load::Command(words.command.clone()));
    }
    options.stop = stop_on_interrupt()?;
    let activity = progress::Activity::start("measuring blocking");
    let of = options.loads.len();
    let mut begun = 0;
    let blocking = measure(&options, &mut |load| {
        begun += 1;
        activity.now(&format!("measuring blocking under the load {load} ({begun} of {of})"));
    });
    drop(activity);
    let blocking = blocking.map_err(|error| {
        // A processor that is not there is the user's mistake, not the machine's refusal.
        let failed = |error: Error| {
            if error.is_not_permitted() { Failure::not_permitted(error) } else { Failure::bad_input(error) }
        };
        stopped(&options.stop).unwrap_or_else(|| failed(error))
    })?;
    match words.format {
        Format::Json => output::json(&blocking)?,
        Format::Table => print(&blocking),
    }
    Ok(Verdict::Holds)
}

fn load(word: &BlockingLoad) -> Load {
    match word {
        BlockingLoad::None => Load::None,
        BlockingLoad::Disk => Load::Disk,
        BlockingLoad::Net => Load::Net,
        BlockingLoad::Fork => Load::Fork,
    }
}

/// Everything but the value as comments, so that the whole output may stand in a system file.
fn print(blocking: &Blocking) {
    let mut rows = output::table(&["load", "releases", "min", "p50", "p99", "p99.9", "max"], 1);
    for load in &blocking.loads {
        rows.add_row([
            load.load.clone(),
            load.delay.count.to_string(),
            output::span(load.delay.ns_min),
            output::span(load.delay.ns_p50),
            output::span(load.delay.ns_p99),
            output::span(load.delay.ns_p99_9),
            output::span(load.delay.ns_max),
        ]);
    }
    for line in rows.to_string().lines() {
        outln!("# {}", line.trim_end());
    }
    for load in &blocking.loads {
        let most = load.histogram.iter().map(|bucket| bucket.count).max().unwrap_or(1);
        outln!("# delays under the load {}:", load.load);
        for bucket in &load.histogram {
            let bar = "#".repeat((bucket.count * 40).div_ceil(most) as usize);
            let below = output::span(bucket.until_ns);
            outln!("#   below {below:>9} {:>9} {bar}", bucket.count);
        }
    }
    for note in &blocking.notes {
        outln!("# note: {note}");
    }
    output::write(format_args!("{}", blocking.to_toml()));
}
