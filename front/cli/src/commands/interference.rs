//! `horolog measure interference`.

use super::measure::{last_cpu, stopped};
use crate::arguments::Format;
use crate::commands::run::stop_on_interrupt;
use crate::failure::{Done, Failure, Verdict};
use crate::measure_arguments::{self as words, InterferenceArguments};
use crate::output::outln;
use crate::{output, progress};
use horolog_measure::interference::{
    Baseline, Configuration, InterferenceError, LoadCommand, Measured, Phase, PhaseSummary, Statistic, Store,
    StoreError, collect, summarise,
};
use horolog_sys::Error;
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::guardian::GuardianOptions;
use std::sync::atomic::{AtomicBool, Ordering};

/// How soon a signal is noticed while a load settles.
const LOOK_NS: u64 = 50_000_000;

pub(crate) fn run(words: &InterferenceArguments) -> Done {
    let mut configuration = Configuration::new(words.cpu.unwrap_or_else(last_cpu));
    configuration.priority = words.priority;
    configuration.threshold_ns = words.threshold.as_ns();
    configuration.command.clone_from(&words.command);
    let (least, most) = words.lengths;
    configuration.set_lengths(least, most, words.points).map_err(Failure::bad_input)?;
    configuration.check().map_err(Failure::bad_input)?;
    if words.stretches == 0 {
        return Err(Failure::bad_input("error: --stretches 0: measure one at least"));
    }
    let mut store = match &words.trials {
        Some(path) => Store::open(path, configuration).map_err(|error| failure(error.into()))?,
        None => Store::in_memory(configuration),
    };
    let stop = stop_on_interrupt()?;
    measure(words, &mut store, &stop).map_err(|error| stopped(&stop).unwrap_or_else(|| failure(error)))?;
    let measured = summarise(&store);
    let (statistic, baseline) = chosen(words, &measured);
    let entry = measured.entry(&words.name, statistic, baseline);
    match words.format {
        Format::Json => output::json(&measured)?,
        Format::Table => {
            print(&measured);
            others(&measured, statistic, baseline);
            if let Ok(entry) = &entry {
                outln!("\n{}", entry.trim_end());
            }
        }
    }
    let entry = entry.map_err(|reason| Failure::says_no(format_args!("no [[interference]] entry: {reason}")));
    if let Some(path) = &words.out {
        std::fs::write(path, entry?).map_err(|error| Failure::file("write", path, &error))?;
    } else {
        entry?;
    }
    Ok(Verdict::Holds)
}

/// Measures the phases that were asked for.
fn measure(
    words: &InterferenceArguments,
    store: &mut Store,
    stop: &AtomicBool,
) -> Result<(), InterferenceError> {
    let go_on = || match stop.load(Ordering::Acquire) {
        true => Err(Error::unexpected("measuring", "stopped before it was done", "measure again")),
        false => Ok(()),
    };
    let wants = |phase| match words.only {
        None => phase == words::Phase::Idle || !words.command.is_empty(),
        Some(only) => only == phase,
    };
    let activity = progress::Activity::start("measuring interference");
    if wants(words::Phase::Idle) {
        collect(store, Phase::Idle, words.stretches, &mut |now| {
            activity.now(&format!("the idle machine: stretch {} of {}", now.done, now.of));
            go_on()
        })?;
    }
    let is_done = store.readings(Phase::Load).count() >= words.stretches as usize;
    if wants(words::Phase::Load) && !is_done {
        let cpu = store.configuration().cpu;
        let mut load = match &words.command[..] {
            [] => None,
            command => Some(LoadCommand::start(command, cpu, &GuardianOptions::default())?),
        };
        if load.is_some() {
            activity.now("the load settles");
            let end = monotonic_ns().saturating_add(words.settle.as_ns());
            while monotonic_ns() < end && go_on().is_ok() {
                let _ = sleep_until(end.min(monotonic_ns().saturating_add(LOOK_NS)));
            }
        }
        collect(store, Phase::Load, words.stretches, &mut |now| {
            activity.now(&format!("under load: stretch {} of {}", now.done, now.of));
            go_on().and_then(|()| load.as_mut().map_or(Ok(()), LoadCommand::check))
        })?;
    }
    Ok(())
}

fn failure(error: InterferenceError) -> Failure {
    match error {
        InterferenceError::Store(error @ StoreError::File { .. }) => Failure::bad_input(error),
        error if error.is_not_permitted() => Failure::not_permitted(format_args!("error: {error}")),
        error => Failure::bad_input(error),
    }
}

/// What the entry is of: without a measured load, of the idle machine.
fn chosen(words: &InterferenceArguments, measured: &Measured) -> (Statistic, Baseline) {
    let statistic = match words.statistic {
        words::Statistic::Max => Statistic::Max,
        words::Statistic::P95 => Statistic::P95,
        words::Statistic::Median => Statistic::Median,
    };
    let baseline = match words.baseline {
        _ if measured.phase(Phase::Load).is_none() => Baseline::Idle,
        words::Baseline::Included => Baseline::Included,
        words::Baseline::Subtracted => Baseline::Subtracted,
    };
    (statistic, baseline)
}

/// Everything but the entry as comments, so that the whole output may be appended to a system file.
fn print(measured: &Measured) {
    outln!(
        "# interference on cpu {} above SCHED_FIFO {}, measured by `horolog measure interference`",
        measured.cpu,
        measured.priority
    );
    let mut rows = output::table(&["phase", "window", "max", "p95", "median", "mean"], 1);
    let percent = |ppb: u64| format!("{:.2} %", ppb as f64 / 1e7);
    for PhaseSummary { phase, lengths, .. } in &measured.phases {
        for row in lengths {
            rows.add_row([
                phase.name().to_owned(),
                output::span(row.length_ns),
                percent(row.max_ppb),
                percent(row.p95_ppb),
                percent(row.median_ppb),
                percent(row.mean_ppb),
            ]);
        }
    }
    for line in rows.to_string().lines() {
        outln!("# {}", line.trim_end());
    }
    for note in &measured.notes {
        outln!("# note: {note}");
    }
}

/// The bounds that are not the entry.
fn others(measured: &Measured, statistic: Statistic, baseline: Baseline) {
    let mut rows = output::table(&["bound of", "baseline", "utilisation", "period", "e = u p"], 2);
    for fit in measured.fits.iter().filter(|fit| (fit.statistic, fit.baseline) != (statistic, baseline)) {
        rows.add_row([
            fit.statistic.name().to_owned(),
            fit.baseline.name().to_owned(),
            format!("{:.6}", fit.utilisation_ppb as f64 / 1e9),
            output::span(fit.period_ns),
            output::span(fit.execution_ns),
        ]);
    }
    outln!("# other bounds of the same measurement:");
    for line in rows.to_string().lines() {
        outln!("# {}", line.trim_end());
    }
    for one in &measured.unfitted {
        outln!("# no bound of {}, baseline {}: {}", one.statistic.name(), one.baseline.name(), one.reason);
    }
}
