//! The exact facts, which need no machine: analysis and simulation.

use super::predict::longest_undisturbed;
use super::table::Server;
use crate::{ExperimentError, Fact};
use horolog_analysis::demand_bound::PeriodicDemand;
use horolog_analysis::load_bound::{Load, LoadSample, fit};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

/// Facts 1 to 9.
pub(super) fn facts() -> Result<Vec<Fact>, ExperimentError> {
    let failed = |what: &str| ExperimentError::failed(format!("{what} cannot be computed"));
    let task = PeriodicDemand::new(Span::from_ns(7), Span::from_ns(2)).ok_or_else(|| failed("a demand"))?;
    let refined = |window| task.refined(Span::from_ns(window)).map_or(0, Span::as_ns);
    let traditional = |window| task.traditional(Span::from_ns(window)).map_or(0, Span::as_ns);
    let mut facts = vec![
        Fact::exact(1, "refined demand of p = 7, e = 2 in a window of 8", 3, refined(8)),
        Fact::exact(1, "traditional demand of p = 7, e = 2 in a window of 8", 4, traditional(8)),
        demand_table(&refined, &traditional),
        brute_force(&refined, &traditional),
        hyperbola(&task),
    ];
    facts.extend(example_fit()?);
    let limit = |server| longest_undisturbed(server).map_or(0, Span::as_ns) / 1_000_000;
    facts.push(Fact::exact(
        7,
        "longest e2 below tau1 (2, 10) and a sporadic server (1, 10), ms",
        7,
        limit(Server::Sporadic),
    ));
    facts.push(Fact::exact(7, "longest e2 below tau1 (2, 10) alone, ms", 8, limit(Server::Background)));
    let tau1 = PeriodicDemand::new(Span::from_ns(10), Span::from_ns(2)).ok_or_else(|| failed("a demand"))?;
    let share = Load::Hyperbolic(tau1).share(Span::from_ns(10)).ok_or_else(|| failed("a share"))?;
    let percent = u64::try_from((share * 100).to_integer()).unwrap_or(0);
    facts.push(Fact::exact(8, "hyperbolic load of tau1 (2, 10) in a window of 10, percent", 36, percent));
    facts.push(simulated_server()?);
    Ok(facts)
}

type Demand<'a> = &'a dyn Fn(u64) -> u64;

fn demand_table(refined: Demand<'_>, traditional: Demand<'_>) -> Fact {
    let windows = [2, 4, 7, 8, 9, 15, 16];
    let row = |demand: Demand<'_>| windows.map(|window| demand(window).to_string()).join(" ");
    let published = "traditional 2 2 2 4 4 6 6; refined 2 2 2 3 4 5 6";
    let ours = format!("traditional {}; refined {}", row(traditional), row(refined));
    let agrees = ours == published;
    exact(2, "demand of p = 7, e = 2 in windows of 2, 4, 7, 8, 9, 15, 16", published, ours, agrees)
}

fn brute_force(refined: Demand<'_>, traditional: Demand<'_>) -> Fact {
    let busy = |t: u64| u64::from(t % 7 < 2);
    let most = |window: u64| (0..7).map(|from| (from..from + window).map(busy).sum::<u64>()).max();
    let equal = (1..60).filter(|&window| most(window) == Some(refined(window))).count();
    let meets = (1..60)
        .all(|window| (refined(window) == traditional(window)) == (window % 7 == 0 || window % 7 >= 2));
    let ours = format!(
        "{equal} of 59 windows; meets the traditional bound {}",
        if meets { "there alone" } else { "elsewhere" }
    );
    exact(
        3,
        "the refined bound is brute force's for every window, and the traditional one from jp + e to (j + 1)p",
        "59 of 59 windows; meets the traditional bound there alone",
        ours,
        equal == 59 && meets,
    )
}

fn hyperbola(task: &PeriodicDemand) -> Fact {
    let load = Load::Hyperbolic(*task);
    let share = |window: u64| load.share(Span::from_ns(window));
    let falls = (3..1_000).all(|window| share(window) < share(window - 1));
    let full = (1..=2).all(|window| share(window).is_some_and(|share| share == 1.into()));
    let far = share(1_000_000).map_or(0.0, |share| *share.numer() as f64 / *share.denom() as f64);
    let ours = format!("full up to e: {full}; falls: {falls}; {far:.4} in a window of 1000000");
    let agrees = full && falls && (far - 2.0 / 7.0).abs() < 1e-4;
    exact(4, "the hyperbola is 1 up to e, then falls strictly towards u", "full, falls, 0.2857", ours, agrees)
}

fn example_fit() -> Result<[Fact; 2], ExperimentError> {
    let samples: Vec<LoadSample> =
        [(100, 95), (200, 62), (500, 66), (1_000, 50), (2_000, 47), (5_000, 41), (10_000, 40)]
            .map(|(us, percent)| LoadSample {
                window: Span::from_ns(us * 1_000),
                load_ppb: percent * 10_000_000,
            })
            .to_vec();
    let fit = fit(&samples).map_err(|error| ExperimentError::failed(error.to_string()))?;
    let touches: Vec<u64> = fit.touches.iter().map(|&at| samples[at].window.as_ns() / 1_000).collect();
    let ours = format!(
        "u = {}, p = {:.1} us, touches at {touches:?} us",
        fit.load.utilisation_ppb as f64 / 1e9,
        fit.load.period as f64 / 1e3
    );
    let published = "u = 0.4, p = 583.3 us, touches at [2000] us";
    let agrees = ours == published;
    let first = exact(5, "the fit of the example", published, ours, agrees);
    let above = |period: u64| {
        let load = horolog_analysis::hyperbolic_load::HyperbolicLoad { period, ..fit.load };
        let covers = |sample: &&LoadSample| {
            load.load(sample.window).is_some_and(|share| {
                share >= num_rational::Ratio::new(u128::from(sample.load_ppb), 1_000_000_000)
            })
        };
        samples.iter().filter(covers).count()
    };
    let (full, less) = (above(fit.load.period), above(fit.load.period - fit.load.period / 100));
    let ours = format!("covers {full} of 7; with p 1 % less {less}");
    let second = exact(
        6,
        "the fitted curve is on or above every datum, and with p 1 % less below one at least",
        "covers 7 of 7; with p 1 % less fewer",
        ours,
        full == 7 && less < 7,
    );
    Ok([first, second])
}

fn exact(number: u32, statement: &str, published: &str, ours: String, agrees: bool) -> Fact {
    Fact { exact: true, ..Fact::trend(number, statement, published, ours, agrees, "") }
}

/// A sporadic server (1 ms, 10 ms) above everything under a flood, simulated: what it takes of each window.
fn simulated_server() -> Result<Fact, ExperimentError> {
    let failed = |error: &dyn std::fmt::Display| ExperimentError::failed(error.to_string());
    let arrivals: Vec<String> = (0..400).map(|packet| format!("\"{} us\"", packet * 170)).collect();
    let text = format!(
        "[system]\nname = \"flood\"\n[[task]]\nname = \"packet\"\narrivals = [{}]\nwcet = \"300 us\"\n[[server]]\nname = \
         \"server\"\nkind = \"sporadic\"\ntasks = [\"packet\"]\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = \
         1\nlow_priority = \"none\"\n",
        arrivals.join(", ")
    );
    let (system, _) = horolog_model::file::read(&text, "flood", &[]).map_err(|error| failed(&error))?;
    let mut records: Vec<Record> = Vec::new();
    let horizon = Span::from_ns(100_000_000);
    let options = SimOptions { horizon: Horizon::Time(horizon), ..SimOptions::default() };
    simulate(&system, &options, &mut records).map_err(|error| failed(&error))?;
    let stretches = executed(&records);
    let bound = PeriodicDemand::new(super::PERIOD, super::BUDGET);
    let mut above = 0_u64;
    let mut windows = 0_u64;
    for &(from, _) in &stretches {
        for window in (0..50_000_000_u64).step_by(330_000) {
            let within = |&(start, end): &(u64, u64)| end.min(from + window).saturating_sub(start.max(from));
            let taken: u64 = stretches.iter().map(within).sum();
            let allowed = bound.and_then(|bound| bound.refined(Span::from_ns(window))).map_or(0, Span::as_ns);
            above += u64::from(taken > allowed);
            windows += 1;
        }
    }
    let statement =
        "windows in which a simulated top-priority sporadic server (1, 10) exceeds its refined bound";
    Ok(Fact { note: format!("{windows} windows under a flood"), ..Fact::exact(9, statement, 0, above) })
}

/// When the only task executed.
fn executed(records: &[Record]) -> Vec<(u64, u64)> {
    let mut since = None;
    let mut stretches = Vec::new();
    for record in records {
        match record.kind {
            Kind::Start | Kind::Resume => since = Some(record.time.as_ns()),
            Kind::Preempt | Kind::Completion => {
                stretches.extend(since.take().map(|since| (since, record.time.as_ns())));
            }
            _ => {}
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use crate::Agreement;

    #[test]
    fn every_exact_fact_agrees() {
        let facts = super::facts().unwrap();
        let numbers: std::collections::BTreeSet<u32> = facts.iter().filter_map(|fact| fact.number).collect();
        assert_eq!(numbers, (1..=9).collect());
        for fact in facts {
            assert!(fact.exact && fact.agreement == Agreement::Agrees, "{fact:?}");
        }
    }
}
