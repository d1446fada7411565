//! The measured tables.

use super::accounts::{Account, Who};
use super::facts::onset;
use super::points::Points;
use super::predict::{bound, longest_e2, tick};
use super::table::{Cell, Server};
use super::{BUDGET, E2_US, PERIOD};
use crate::Series;
use horolog_measure::interference::Statistic;
use horolog_time::Span;

/// All tables.
pub(super) fn all(points: &Points) -> Vec<Series> {
    let mut all = vec![interference(points), bounds(points), windows(points)];
    all.push(table(points, "misses of tau2, percent, by e2", |outcome| outcome.misses_percent()));
    all.push(table(points, "heartbeats received, percent, by e2", |outcome| outcome.heartbeats_percent()));
    all.push(table(points, "misses of tau1, percent, by e2", |outcome| {
        100.0 * outcome.misses1 as f64 / outcome.jobs.max(1) as f64
    }));
    all.push(table(points, "packets sent a second, thousands, by e2", |outcome| outcome.rate_hz() / 1e3));
    all.push(table(points, "times that the kernel held a real-time thread back, by e2", |outcome| {
        outcome.held_back.map_or(f64::NAN, |count| count as f64)
    }));
    all.push(predictions(points));
    all.extend(accounts(points));
    all
}

/// Where the periods under the sporadic server went.
fn accounts(points: &Points) -> Option<Series> {
    let accounts = points.accounts()?;
    let row = |number: usize, of: &dyn Fn(&Account) -> f64| {
        vec![number as f64, of(&accounts.met), of(&accounts.missed)]
    };
    let mut rows: Vec<Vec<f64>> = Who::ALL
        .into_iter()
        .map(|who| row(who as usize, &|account| account.ns.get(who as usize).map_or(f64::NAN, |ns| ns / 1e3)))
        .collect();
    let names: Vec<String> = Who::ALL.iter().map(|who| format!("{} {}", *who as usize, who.name())).collect();
    rows.push(row(Who::ALL.len(), &|account| account.dispatches));
    rows.push(row(Who::ALL.len() + 1, &|account| account.interrupts));
    rows.push(row(Who::ALL.len() + 2, &|account| account.periods as f64));
    let next = Who::ALL.len();
    let name = format!(
        "where tau2's periods go under the sporadic server at e2 = {} ms, recorded, mean us ({}; {} times that the driver's \
         thread came in with budget; {} interrupts; {} periods)",
        accounts.e2_us as f64 / 1e3,
        names.join("; "),
        next,
        next + 1,
        next + 2
    );
    Some(named(&name, &["who", "met", "missed"], rows))
}

fn named(name: &str, columns: &[&str], rows: Vec<Vec<f64>>) -> Series {
    let columns = columns.iter().map(|column| (*column).to_owned()).collect();
    Series { name: name.to_owned(), columns, rows }
}

fn interference(points: &Points) -> Series {
    let rows = points
        .loads()
        .iter()
        .zip(0_u32..)
        .map(|(load, number)| {
            vec![
                f64::from(number),
                load.rate_hz() / 1e3,
                100.0 * load.dropped as f64 / load.sent.max(1) as f64,
                load.near_ns as f64 / 1e6,
                load.mean_ppb as f64 / 1e7,
                load.median_ppb as f64 / 1e7,
                load.held_back as f64,
                load.stolen_ns as f64 / 1e6,
            ]
        })
        .collect();
    let names: Vec<String> = points
        .loads()
        .iter()
        .zip(0_u32..)
        .map(|(load, number)| format!("{number} {}", load.configuration.name()))
        .collect();
    named(
        &format!("interference on a FIFO 50 probe ({})", names.join("; ")),
        &[
            "configuration",
            "sent kpps",
            "lost %",
            "window ms",
            "mean %",
            "median %",
            "stretches held back",
            "stolen ms",
        ],
        rows,
    )
}

fn bounds(points: &Points) -> Series {
    let mut rows = Vec::new();
    for (load, number) in points.loads().iter().zip(0_u32..) {
        let mut row = vec![f64::from(number)];
        for statistic in Statistic::ALL {
            let bound = bound(load, statistic);
            let part = |of: &dyn Fn(&(u64, Span)) -> f64| bound.as_ref().map_or(f64::NAN, of);
            row.push(part(&|(utilisation, _)| *utilisation as f64 / 1e9));
            row.push(part(&|(_, period)| period.as_ns() as f64 / 1e3));
        }
        rows.push(row);
    }
    let columns = [
        "configuration",
        "u of max",
        "p of max us",
        "u of p95",
        "p of p95 us",
        "u of median",
        "p of median us",
    ];
    named("fitted hyperbolic bounds; NaN: a window was filled, or the longest one empty", &columns, rows)
}

fn windows(points: &Points) -> Series {
    let lengths: Vec<u64> = points
        .loads()
        .first()
        .map_or_else(Vec::new, |load| load.max.iter().map(|(length, _)| *length).collect());
    let rows = lengths
        .iter()
        .enumerate()
        .map(|(at, length)| {
            let share =
                |samples: &[(u64, u64)]| samples.get(at).map_or(f64::NAN, |(_, ppb)| *ppb as f64 / 1e7);
            let mut row = vec![*length as f64 / 1e3];
            row.extend(points.loads().iter().flat_map(|load| [share(&load.max), share(&load.median)]));
            row
        })
        .collect();
    let mut columns = vec!["window us".to_owned()];
    for number in 0..points.loads().len() {
        columns.extend([format!("max {number}"), format!("median {number}")]);
    }
    Series { name: "share taken by window length, percent, of each configuration".to_owned(), columns, rows }
}

fn table(points: &Points, name: &str, value: impl Fn(&super::points::Outcome) -> f64) -> Series {
    let mut columns = vec!["e2 ms".to_owned()];
    columns.extend(Server::ALL.map(|server| server.name().to_owned()));
    let rows = E2_US
        .into_iter()
        .map(|e2_us| {
            let mut row = vec![e2_us as f64 / 1e3];
            row.extend(
                Server::ALL.map(|server| points.cell(&Cell { server, e2_us }).map_or(f64::NAN, &value)),
            );
            row
        })
        .collect();
    Series { name: name.to_owned(), columns, rows }
}

fn predictions(points: &Points) -> Series {
    let ms = |span: Result<Span, String>| span.map_or(f64::NAN, |span| span.as_ns() as f64 / 1e6);
    let rows = Server::ALL
        .into_iter()
        .zip(0_u32..)
        .map(|(server, number)| {
            let mut row = vec![f64::from(number)];
            row.extend(Statistic::ALL.map(|statistic| ms(longest_e2(points, server, statistic))));
            let onset = onset(points, server).ok().flatten();
            row.push(onset.map_or(f64::NAN, |e2_us| e2_us as f64 / 1e3));
            row
        })
        .collect();
    let names: Vec<String> = Server::ALL
        .iter()
        .zip(0_u32..)
        .map(|(server, number)| format!("{number} {}", server.name()))
        .collect();
    named(
        &format!(
            "longest e2 that the analysis proves, ms, and the first with misses ({}; NaN: none)",
            names.join("; ")
        ),
        &["server", "by max", "by p95", "by median", "first misses"],
        rows,
    )
}

/// What the reader must know.
pub(super) fn notes(points: &Points) -> Vec<String> {
    let mut notes = vec![
        "no curve of the paper is legible; its figures are those that its text names".to_owned(),
        format!(
            "SCHED_DEADLINE serves {BUDGET} every {PERIOD} and is noticed to have used it up at a tick of {}: its bound is \
             {} every {PERIOD}; it cannot be pinned, so the kernel may run it beside the flood",
            tick(),
            BUDGET.checked_add(tick()).unwrap_or(PERIOD)
        ),
    ];
    notes.extend(shortfall(points, Server::Sporadic));
    notes.extend(shortfall(points, Server::Charged));
    notes
}

/// Where a sporadic server's time goes beyond its budget.
fn shortfall(points: &Points, which: Server) -> Option<String> {
    let served: Vec<_> = points
        .cells()
        .iter()
        .filter(|outcome| outcome.cell.server == which)
        .filter_map(|outcome| outcome.server.as_ref().map(|server| (outcome, server)))
        .collect();
    let (_, first) = served.first()?;
    let elapsed: u64 = served.iter().map(|(outcome, _)| outcome.elapsed_ns).sum();
    let periods = (elapsed / PERIOD.as_ns()).max(1) as f64;
    let sum = |of: &dyn Fn(&super::points::ServerAccount) -> u64| -> f64 {
        served.iter().map(|(_, server)| of(server)).sum::<u64>() as f64
    };
    let per_period_us = |total: f64| total / periods / 1e3;
    let worst = served.iter().map(|(_, server)| server.overshoot_max_ns).max().unwrap_or(0);
    let mut medians: Vec<u64> = served.iter().map(|(_, server)| server.overshoot_median_ns).collect();
    medians.sort_unstable();
    let wakes = match first.wake_cost_ns {
        0 => String::new(),
        cost => format!(
            " ({:.0} of it for {:.0} wake-ups, each {:.1} us)",
            per_period_us(sum(&|server| server.wake_cost_ns * server.wakes_charged)),
            sum(&|server| server.wakes_charged) / periods,
            cost as f64 / 1e3
        ),
    };
    Some(format!(
        "{} ({}): {:.0} us a period charged{}, {:.0} us below both tasks; budgets overdrawn by {:.0} us in the \
         median ({:.0} us at most); its agent took {:.0} us a period in {:.0} looks",
        which.name(),
        first.accounting,
        per_period_us(sum(&|server| server.consumed_ns)),
        wakes,
        per_period_us(sum(&|server| server.low_ns)),
        medians[medians.len() / 2] as f64 / 1e3,
        worst as f64 / 1e3,
        per_period_us(sum(&|server| server.agent_ns)),
        sum(&|server| server.looks) / periods
    ))
}
