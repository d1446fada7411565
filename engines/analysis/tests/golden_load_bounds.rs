//! The published and recomputed facts of demand and load bounds.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::demand_bound::{DemandBound, PeriodicDemand, demand_test};
use horolog_analysis::hyperbolic_load::HyperbolicLoad;
use horolog_analysis::load_bound::{Load, LoadSample, fit, load_test};
use horolog_time::Span;
use num_rational::Ratio;
use toml::{Table, Value};

fn golden(name: &str) -> Table {
    let path = format!("{}/../../golden/load-bounds-{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn integer(value: &Value) -> u64 {
    u64::try_from(value.as_integer().unwrap()).unwrap()
}

fn fraction(value: &Value) -> Ratio<u128> {
    let parts = value.as_array().unwrap();
    Ratio::new(u128::from(integer(&parts[0])), u128::from(integer(&parts[1])))
}

fn span(value: &Value) -> Span {
    value.as_str().unwrap().parse().unwrap()
}

fn task(table: &Value) -> PeriodicDemand {
    PeriodicDemand::new(span(&table["period"]), span(&table["execution"])).unwrap()
}

/// The most that {[7k, 7k + 2)} executes in any window of this length, unit by unit.
fn brute_force(period: u64, execution: u64, window: u64) -> u64 {
    let busy = |t: u64| u64::from(t % period < execution);
    (0..period).map(|start| (start..start + window).map(busy).sum()).max().unwrap()
}

#[test]
fn demand_table() {
    let facts = golden("demand");
    let (period, execution) = (integer(&facts["period"]), integer(&facts["execution"]));
    let task = PeriodicDemand::new(Span::from_ns(period), Span::from_ns(execution)).unwrap();
    for row in facts["window"].as_array().unwrap() {
        let window = Span::from_ns(integer(&row["length"]));
        let found = (task.traditional(window).unwrap().as_ns(), task.refined(window).unwrap().as_ns());
        assert_eq!(found, (integer(&row["traditional"]), integer(&row["refined"])), "{window}");
        assert_eq!(task.linear(window), fraction(&row["linear"]), "{window}");
    }
    // The printed formula, j = ⌈Δ/p⌉, at Δ = 8: the value is negative, and no bound.
    let (p, e, window) = (period as i64, execution as i64, 8_i64);
    let j = window.div_euclid(p) + i64::from(window % p != 0);
    let printed = j * e + e.min(window - j * p);
    assert_eq!(printed, facts["printed-ceiling-at-8"].as_integer().unwrap());
    assert!(printed < brute_force(period, execution, 8) as i64);
}

#[test]
fn refined_equals_brute_force() {
    let facts = golden("demand");
    let (p, e) = (integer(&facts["period"]), integer(&facts["execution"]));
    let task = PeriodicDemand::new(Span::from_ns(p), Span::from_ns(e)).unwrap();
    for window in 1..60 {
        let refined = task.refined(Span::from_ns(window)).unwrap().as_ns();
        assert_eq!(refined, brute_force(p, e, window), "{window}");
        let traditional = task.traditional(Span::from_ns(window)).unwrap().as_ns();
        assert_eq!(refined == traditional, window % p == 0 || window % p >= e, "{window}");
    }
}

#[test]
fn hyperbola_and_shares() {
    let facts = golden("test");
    let (p, e) = (integer(&facts["hyperbola"]["period"]), integer(&facts["hyperbola"]["execution"]));
    let load = Load::Hyperbolic(PeriodicDemand::new(Span::from_ns(p), Span::from_ns(e)).unwrap());
    let limit = fraction(&facts["hyperbola"]["limit"]);
    let mut last = Ratio::from_integer(1);
    for window in 1..10_000 {
        let share = load.share(Span::from_ns(window)).unwrap();
        if window <= e {
            assert_eq!(share, Ratio::from_integer(1));
        } else {
            assert!(limit < share && share < last, "{window}");
        }
        last = share;
    }
    assert!(last - limit < Ratio::new(1, 1_000));

    let share = &facts["share"];
    assert_eq!(
        Load::Hyperbolic(task(share)).share(span(&share["window"])).unwrap(),
        fraction(&share["load"])
    );
}

#[test]
fn largest_execution_times_of_the_experiment() {
    for case in golden("test")["largest"].as_array().unwrap() {
        let above: Vec<PeriodicDemand> = case["above"].as_array().unwrap().iter().map(task).collect();
        let (deadline, largest) = (span(&case["deadline"]), span(&case["execution"]));
        let name = &case["name"];
        let passes = |execution| demand_test(execution, deadline, &above, DemandBound::Traditional).unwrap();
        assert!(passes(largest), "{name}");
        assert!(!passes(largest.checked_add(Span::from_ns(1)).unwrap()), "{name}");
        let loads: Vec<Load> = above.iter().map(|&t| Load::Refined(t)).collect();
        assert_eq!(load_test(largest, deadline, &loads), Some(true), "{name}");
    }
}

#[test]
fn fit_of_the_example() {
    let facts = golden("fit");
    let samples: Vec<LoadSample> = facts["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| LoadSample {
            window: span(&s["window"]),
            load_ppb: integer(&s["load-percent"]) * 10_000_000,
        })
        .collect();
    let fit = fit(&samples).unwrap();
    let u = Ratio::new(u128::from(integer(&facts["utilisation-percent"])), 100);
    assert_eq!(u128::from(fit.load.utilisation_ppb), (u * 1_000_000_000).to_integer());
    assert_eq!(fit.exact_period, fraction(&facts["period-ns"]));
    assert_eq!(u * fit.exact_period, fraction(&facts["execution-ns"]));
    let touched: Vec<Span> = fit.touches.iter().map(|&i| samples[i].window).collect();
    assert_eq!(touched, [span(&facts["touches"])]);
    let tolerance = facts["fitted-tolerance"].as_float().unwrap();
    for (sample, printed) in samples.iter().zip(facts["fitted"].as_array().unwrap()) {
        let share = fit.load.load(sample.window).unwrap();
        let share_f = *share.numer() as f64 / *share.denom() as f64;
        assert!((share_f - printed.as_float().unwrap()).abs() <= tolerance, "{}", sample.window);
        // Fact 6: on or above every sample; 1 % less is below one.
        assert!(share >= Ratio::new(u128::from(sample.load_ppb), 1_000_000_000), "{}", sample.window);
    }
    let period = Span::from_ns(fit.load.period - fit.load.period / 100);
    let shorter = HyperbolicLoad::new(fit.load.utilisation_ppb, period).unwrap();
    let below =
        |s: &LoadSample| shorter.load(s.window).unwrap() < Ratio::new(u128::from(s.load_ppb), 1_000_000_000);
    assert!(samples.iter().any(below));
}

#[test]
fn the_straight_line_is_rounded_up_to_a_nanosecond() {
    let task = PeriodicDemand::new(Span::from_ns(5), Span::from_ns(2)).unwrap();
    // 2/5 · (4 + 5 - 2) = 2.8, and 2/5 · (7 + 5 - 2) = 4.
    assert_eq!(task.linear_up(Span::from_ns(4)), Some(Span::from_ns(3)));
    assert_eq!(task.linear_up(Span::from_ns(7)), Some(Span::from_ns(4)));
}
