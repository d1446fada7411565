//! From which e2 on τ2 must be expected to miss, by the analysis of the system with the measured bound.

use super::interference::{Configuration, Receiver};
use super::points::{Load, Points};
use super::table::Server;
use super::{BUDGET, E1, PERIOD};
use horolog_analysis::load_bound::{LoadSample, fit};
use horolog_analysis::{Options, analyze};
use horolog_measure::interference::Statistic;
use horolog_time::Span;

/// The resolution of a prediction.
const STEP_NS: u64 = 10_000;

/// The longest e2 that `analyze` proves, or why there is no bound to prove it with.
pub(super) fn longest_e2(points: &Points, server: Server, statistic: Statistic) -> Result<Span, String> {
    let receiver = match server {
        Server::Traditional => Receiver::Softirq,
        Server::Foreground => Receiver::Above,
        // What disturbs those above the thread: interrupts that wake it, and what the idle machine takes anyway.
        Server::Background | Server::Sporadic | Server::Charged | Server::Deadline => Receiver::Below,
    };
    let load = points
        .load(&Configuration { receiver, replies: false })
        .ok_or_else(|| "its interference was not measured".to_owned())?;
    longest(Some(&entry(load, statistic)?), server)
}

/// The same for a machine on which nothing else interferes.
pub(super) fn longest_undisturbed(server: Server) -> Result<Span, String> {
    longest(None, server)
}

fn longest(entry: Option<&str>, server: Server) -> Result<Span, String> {
    let passes = |e2: u64| passes(entry, server, Span::from_ns(e2 * STEP_NS));
    let (mut good, mut bad) = (0, PERIOD.as_ns() / STEP_NS + 1);
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if passes(middle)? { good = middle } else { bad = middle }
    }
    Ok(Span::from_ns(good * STEP_NS))
}

/// The bound of a measurement as an entry of a system file.
pub(super) fn entry(load: &Load, statistic: Statistic) -> Result<String, String> {
    let (utilisation_ppb, period) = bound(load, statistic)?;
    Ok(format!(
        "[[interference]]\nname = \"network\"\nutilisation = {}.{:09}\nperiod = \"{period}\"\n",
        utilisation_ppb / 1_000_000_000,
        utilisation_ppb % 1_000_000_000
    ))
}

/// The fitted (utilisation in parts per billion, period).
pub(super) fn bound(load: &Load, statistic: Statistic) -> Result<(u64, Span), String> {
    let samples = match statistic {
        Statistic::Max => &load.max,
        Statistic::P95 => &load.p95,
        Statistic::Median => &load.median,
    };
    let samples: Vec<LoadSample> = samples
        .iter()
        .map(|&(window, load_ppb)| LoadSample { window: Span::from_ns(window), load_ppb })
        .collect();
    let fit = fit(&samples).map_err(|error| error.to_string())?;
    Ok((fit.load.utilisation_ppb, Span::from_ns(fit.load.period)))
}

/// Whether the analysis proves both tasks with this e2.
fn passes(entry: Option<&str>, server: Server, e2: Span) -> Result<bool, String> {
    if e2.is_zero() {
        return Ok(true);
    }
    let task = |name: &str, execution: Span, priority: u8| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{PERIOD}\"\nwcet = \"{execution}\"\npriority = {priority}\n"
        )
    };
    let mut text = "[system]\nname = \"driver load bounds\"\n".to_owned();
    text.push_str(&task("tau1", E1, 3));
    text.push_str(&task("tau2", e2.min(PERIOD), 1));
    match server {
        Server::Sporadic | Server::Charged => text.push_str(&format!(
            "[[task]]\nname = \"driver\"\narrivals = [\"0 ms\"]\nwcet = \"{BUDGET}\"\n[[server]]\nname = \"server\"\nkind = \
             \"sporadic\"\ntasks = [\"driver\"]\nbudget = \"{BUDGET}\"\nperiod = \"{PERIOD}\"\npriority = 2\n"
        )),
        // A budget is noticed to be used up at a tick.
        Server::Deadline => text.push_str(&task("driver", BUDGET.checked_add(tick()).unwrap_or(PERIOD), 4)),
        Server::Traditional | Server::Background | Server::Foreground => {}
    }
    text.push_str(entry.unwrap_or_default());
    let (system, _) = horolog_model::file::read(&text, "driver load bounds", &[])
        .map_err(|error| format!("{error}: {text}"))?;
    let analysis = analyze(&system, &Options::default()).map_err(|error| error.to_string())?;
    let hard = analysis.tasks.iter().filter(|task| task.name != "driver" || server == Server::Deadline);
    Ok(hard.into_iter().all(|task| task.verdict == horolog_analysis::Verdict::Meets))
}

/// The kernel's tick.
pub(super) fn tick() -> Span {
    Span::from_ns(1_000_000_000 / horolog_sys::machine::tick_hz().unwrap_or(250).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_undisturbed_systems_have_the_published_limits() {
        let ms = |ms| Span::from_ms(ms).unwrap();
        assert_eq!(longest_undisturbed(Server::Sporadic), Ok(ms(7)));
        assert_eq!(longest_undisturbed(Server::Background), Ok(ms(8)));
        // A fifth of the processor with p = 10 ms above both: 0.2 (10 + 10 - 2) = 3.6 of 10.
        let entry = "[[interference]]\nname = \"n\"\nutilisation = 0.2\nperiod = \"10 ms\"\n";
        assert_eq!(longest(Some(entry), Server::Foreground), Ok(Span::from_ns(4_400_000)));
    }
}
