//! Rajkumar 2002, section 4: processor reserves. Figure 1's table: three reserves, three threads that never sleep, upgraded and downgraded.
//!
//! See docs/experiments/rk-cpu.md.

use crate::rk_reserves::{Executed, analysed, completion, endless, simulated, system};
use crate::{ExperimentError, ExperimentReport, Fact, Options, Series};

/// Periods of all three reserves that are simulated.
const PERIODS: u64 = 100;
/// The period of each of them, ms.
const PERIOD: u64 = 80;
/// "Many" competing threads; the source gives no number.
const HOGS: u64 = 5;

/// A column of the table.
struct Column {
    name: &'static str,
    /// Of hard, firm and soft, ms.
    budgets: [u64; 3],
    /// When each has its amount at the latest, ms, as it follows from the admission test.
    admitted: [u64; 3],
    /// Shares of firm and soft beside the hogs, in hundredths of a percent.
    beside: [u64; 2],
}

const COLUMNS: [Column; 3] = [
    Column { name: "initial", budgets: [8, 15, 20], admitted: [8, 23, 43], beside: [1875, 3271] },
    Column { name: "upgraded", budgets: [12, 19, 24], admitted: [12, 31, 55], beside: [2375, 3521] },
    Column { name: "downgraded", budgets: [4, 11, 20], admitted: [4, 15, 35], beside: [1375, 3438] },
];
const NAMES: [&str; 3] = ["hard", "firm", "soft"];
const DEADLINES: [u64; 3] = [60, 70, 80];

/// The reserves of a column beside so many threads without one.
///
/// Below all reserves a band gives equal shares to the threads without a reserve and to the soft one once its amount is used up: there it is a
/// second task, which makes no difference as it never sleeps and the band has the processor only while no reserve has an amount left.
fn text(column: &Column, hogs: u64) -> String {
    let mut text = format!("[system]\nname = \"figure 1, {}\"\n[platform]\ncpus = 1\n", column.name);
    let mut band = vec!["soft without its amount".to_owned()];
    band.extend((0..hogs).map(|number| format!("hog {number}")));
    for name in NAMES.iter().map(|name| (*name).to_owned()).chain(band.iter().cloned()) {
        text += &endless(&name, "");
    }
    for (place, name) in NAMES.iter().enumerate() {
        let (budget, priority) = (column.budgets[place], 90 - place);
        let low = if *name == "firm" { "background" } else { "none" };
        text += &format!(
            "[[scheduler]]\nname = \"{name}\"\nkind = \"polling\"\nbudget = \"{budget} ms\"\nperiod = \"{PERIOD} ms\"\n\
             priority = {priority}\nlow_priority = \"{low}\"\ntasks = [\"{name}\"]\n"
        );
    }
    text += "[[scheduler]]\nname = \"band\"\norder = \"edf\"\npriority = 1\n";
    for name in &band {
        let period = hogs + 1;
        text += &format!(
            "[[scheduler]]\nname = \"share of {name}\"\nparent = \"band\"\nkind = \"constant-bandwidth\"\nbudget = \"1 ms\"\n\
             period = \"{period} ms\"\ntasks = [\"{name}\"]\n"
        );
    }
    text
}

/// Shares of hard, firm and soft, in hundredths of a percent, rounded.
fn shares(column: &Column, hogs: u64) -> Result<[u64; 3], ExperimentError> {
    let system = system(&text(column, hogs))?;
    let ms = PERIODS * PERIOD;
    let Executed { mut total, .. } = simulated(&system, ms)?;
    total.resize(system.tasks().len(), 0);
    // 10,000 hundredths of a percent of `ms` are 100 ns each.
    let share = |ns: u64| (ns + ms * 50) / (ms * 100);
    Ok([share(total[0]), share(total[1]), share(total[2] + total[3])])
}

fn percent(share: u64) -> String {
    format!("{}.{:02}", share / 100, share % 100)
}

fn list(shares: impl IntoIterator<Item = u64>) -> String {
    shares.into_iter().map(percent).collect::<Vec<_>>().join(" / ")
}

/// Runs all of it, in simulation.
///
/// # Errors
/// Never: the systems are given.
pub(crate) fn run(
    _: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let mut report = ExperimentReport::new("rk-cpu");
    progress(0, 3, "admission");
    for column in &COLUMNS {
        let analysis = analysed(&system(&text(column, HOGS))?)?;
        for (place, name) in NAMES.iter().enumerate() {
            let what = format!("{}: {name} has its amount within, ms", column.name);
            let found = completion(&analysis, name);
            let fact = Fact::exact(1, &what, column.admitted[place], found);
            let note = format!("of its deadline {} ms", DEADLINES[place]);
            report.facts.push(Fact { note, ..fact });
        }
    }
    progress(1, 3, "shares in simulation");
    let mut rows = Vec::new();
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for column in &COLUMNS {
        for (hogs, into) in [(0, &mut alone), (HOGS, &mut beside)] {
            let shares = shares(column, hogs)?;
            rows.push(shares.iter().map(|&share| share as f64 / 100.0).collect());
            into.push(shares);
        }
    }
    report.series.push(Series {
        name: "shares in percent: initial, upgraded, downgraded, each alone and beside five loops".to_owned(),
        columns: NAMES.iter().map(|name| (*name).to_owned()).collect(),
        rows,
    });
    report.facts.extend(of_shares(&alone, &beside));
    progress(2, 3, "replenishment");
    report.facts.extend(replenishment()?);
    Ok(report)
}

/// Facts 2 and 3, within 1 and 2 % of the expected shares.
fn of_shares(alone: &[[u64; 3]], beside: &[[u64; 3]]) -> Vec<Fact> {
    let near = |found: u64, wanted: u64, percent: u64| found.abs_diff(wanted) * 100 <= wanted * percent;
    let hard = |shares: &[[u64; 3]]| list(shares.iter().map(|shares| shares[0]));
    let wanted = COLUMNS.each_ref().map(|column| column.budgets[0] * 10_000 / PERIOD);
    let agrees =
        |shares: &[[u64; 3]]| shares.iter().zip(wanted).all(|(found, wanted)| near(found[0], wanted, 1));
    let mut facts = vec![
        Fact::trend(2, "share of hard alone, %", &list(wanted), hard(alone), agrees(alone), ""),
        Fact::trend(2, "share of hard beside five loops, %", &list(wanted), hard(beside), agrees(beside), ""),
    ];
    for (place, name) in [(1, "firm"), (2, "soft")] {
        let wanted = COLUMNS.each_ref().map(|column| column.beside[place - 1]);
        let agrees = beside.iter().zip(wanted).all(|(found, wanted)| near(found[place], wanted, 2));
        let ours = list(beside.iter().map(|shares| shares[place]));
        let what = format!("share of {name} beside five loops, %");
        facts.push(Fact::trend(3, &what, &list(wanted), ours, agrees, ""));
    }
    let rest = alone.iter().map(|shares| shares[1] + shares[2]);
    let wanted = COLUMNS.each_ref().map(|column| 10_000 - column.budgets[0] * 10_000 / PERIOD);
    let agrees = rest.clone().zip(wanted).all(|(found, wanted)| near(found, wanted, 1));
    facts.push(Fact::trend(
        3,
        "share of firm and soft together alone, %",
        &list(wanted),
        list(rest),
        agrees,
        "",
    ));
    facts
}

/// Fact 4: when requests of (arrival, amount) on top end.
fn replenishment() -> Result<Vec<Fact>, ExperimentError> {
    let ends = |kind: &str, (budget, period): (u64, u64), requests: [(u64, u64); 2]| {
        let mut text = format!(
            "[system]\nname = \"{kind}\"\n[[server]]\nname = \"reserve\"\nkind = \"{kind}\"\nbudget = \"{budget} ms\"\n\
             period = \"{period} ms\"\npriority = 9\nlow_priority = \"none\"\ntasks = [\"first\", \"second\"]\n"
        );
        for (name, (at, amount)) in ["first", "second"].into_iter().zip(requests) {
            text +=
                &format!("[[task]]\nname = \"{name}\"\narrivals = [\"{at} ms\"]\nwcet = \"{amount} ms\"\n");
        }
        let executed = simulated(&system(&text)?, 100)?;
        let end = |place: usize| executed.completions.get(place).and_then(|ends| ends.first()).copied();
        Ok::<_, ExperimentError>([0, 1].map(|place| end(place).map_or(0, |ns| ns / 1_000_000)))
    };
    let mut facts = Vec::new();
    let units = ((1, 5), [(4, 1), (5, 1)]);
    let larger = ((2, 6), [(0, 1), (3, 3)]);
    for (kind, amount, requests, wanted) in [
        ("deferrable", units.0, units.1, [5, 6]),
        ("sporadic", units.0, units.1, [5, 10]),
        ("deferrable", larger.0, larger.1, [1, 8]),
        ("sporadic", larger.0, larger.1, [1, 10]),
    ] {
        let found = ends(kind, amount, requests)?;
        for (which, (found, wanted)) in ["first", "second"].iter().zip(found.into_iter().zip(wanted)) {
            let what = format!("{kind} {}/{}: end of the {which} request, ms", amount.0, amount.1);
            facts.push(Fact::exact(4, &what, wanted, found));
        }
    }
    Ok(facts)
}
