//! Facts 9 to 14: how many task sets are lost where a low task's section has to be proved as a high one's, and how the load grows.

use super::same;
use super::sets::{BILLION, Drawn, OURS, RATIOS, Ratio, Reading, Recipe, draw, in_high_mode, load, tasks};
use super::{synchronisation, uniprocessor};
use crate::fact::Series;
use crate::{ExperimentError, Fact};
use horolog_analysis::edf::EdfSolver;

const LOADS: [u64; 3] = [BILLION / 2, 3 * BILLION / 4, BILLION];
/// Published: sets that cannot be scheduled without transactions, per cent, by load and ratio.
const PUBLISHED: [[u64; 3]; 3] = [[1, 6, 21], [4, 14, 54], [45, 100, 100]];
/// Published: the same on several processors.
const PUBLISHED_SEVERAL: [u64; 3] = [5, 26, 50];
/// Per cent of a job inside the section, on one processor and on several.
const INSIDE: [u64; 2] = [50, 20];
const SEVERAL: u64 = 3 * BILLION / 2;
/// Of so many draws for several processors the first that have no miss in either mode are taken.
const MOST_DRAWS: u64 = 200_000;

/// One load and ratio in one reading, in sets.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Point {
    sets: u64,
    /// With a late job although transactions are there.
    missed_with: u64,
    /// With a late job without.
    missed_without: u64,
    /// With one without alone.
    lost: u64,
    /// That the criterion accepts with transactions and without.
    proved: [u64; 2],
    /// Of the lost ones, by the criterion alone.
    lost_by_proof: u64,
    /// That the criterion accepts although a hyperperiod has a late job.
    refuted: u64,
    /// With transactions the load is not that which was drawn.
    off_load: u64,
    /// With a low task and without a load above 1, or with one and without a late job.
    not_overloaded: u64,
    /// Mean of the load without.
    load: f64,
}

fn fraction(parts: u128) -> f64 {
    parts as f64 / super::sets::FULL as f64
}

fn percent(count: u64, of: u64) -> f64 {
    100.0 * count as f64 / of.max(1) as f64
}

impl Point {
    fn lost_percent(&self) -> f64 {
        percent(self.lost, self.sets)
    }
}

/// A drawn set with what is known of it with transactions, which no ratio changes.
struct Base {
    drawn: Vec<Drawn>,
    verdict: uniprocessor::Verdict,
}

fn bases(of: u64, recipe: Recipe, seed: u64, count: u64) -> Result<Vec<Base>, ExperimentError> {
    let mut solver = EdfSolver::new();
    let one = |index| {
        let drawn = draw(of, recipe, seed, index);
        let with = tasks(&drawn, RATIOS[0], recipe, Reading::Transactions, INSIDE[0]);
        Ok(Base { verdict: uniprocessor::judge(&with, &mut solver)?, drawn })
    };
    (0..count).map(one).collect()
}

fn point(
    bases: &[Base],
    of: u64,
    ratio: Ratio,
    recipe: Recipe,
    reading: Reading,
) -> Result<Point, ExperimentError> {
    let mut point = Point { sets: bases.len() as u64, ..Point::default() };
    let mut solver = EdfSolver::new();
    for base in bases {
        let all = |reading| tasks(&base.drawn, ratio, recipe, reading, INSIDE[0]);
        let (with, without) = (all(Reading::Transactions), all(reading));
        let (first, second) = (base.verdict, uniprocessor::judge(&without, &mut solver)?);
        let loads = [load(&with), load(&without)];
        let is_over = loads[1] > super::sets::FULL;
        let has_low = without.iter().any(|task| !task.is_high);
        point.missed_with += u64::from(!first.is_met);
        point.missed_without += u64::from(!second.is_met);
        point.lost += u64::from(first.is_met && !second.is_met);
        point.proved[0] += u64::from(first.is_proved);
        point.proved[1] += u64::from(second.is_proved);
        point.lost_by_proof += u64::from(first.is_proved && !second.is_proved);
        point.refuted +=
            u64::from(first.is_proved && !first.is_met) + u64::from(second.is_proved && !second.is_met);
        point.off_load += u64::from(loads[0] * u128::from(BILLION) != u128::from(of) * super::sets::FULL);
        point.not_overloaded += u64::from(has_low && (!is_over || second.is_met));
        point.load += fraction(loads[1]) / bases.len() as f64;
    }
    Ok(point)
}

/// All points of one reading, by load and ratio.
type Table = [[Point; 3]; 3];

fn table(recipe: Recipe, reading: Reading, seed: u64, count: u64) -> Result<Table, ExperimentError> {
    let mut table = Table::default();
    for (row, of) in table.iter_mut().zip(LOADS) {
        let bases = bases(of, recipe, seed, count)?;
        for (place, ratio) in row.iter_mut().zip(RATIOS) {
            *place = point(&bases, of, ratio, recipe, reading)?;
        }
    }
    Ok(table)
}

fn series(name: &str, table: &Table) -> Series {
    let columns = [
        "load",
        "ratio",
        "published, %",
        "missed with, %",
        "missed without, %",
        "lost, %",
        "proved with, %",
        "proved without, %",
        "lost by proof, %",
        "mean load without",
    ];
    let mut rows = Vec::new();
    for ((of, row), published) in LOADS.iter().zip(table).zip(PUBLISHED) {
        for ((ratio, point), published) in RATIOS.iter().zip(row).zip(published) {
            let of_sets = |count| percent(count, point.sets);
            rows.push(vec![
                *of as f64 / BILLION as f64,
                ratio.value(),
                published as f64,
                of_sets(point.missed_with),
                of_sets(point.missed_without),
                of_sets(point.lost),
                of_sets(point.proved[0]),
                of_sets(point.proved[1]),
                of_sets(point.lost_by_proof),
                point.load,
            ]);
        }
    }
    Series { name: name.to_owned(), columns: columns.map(str::to_owned).to_vec(), rows }
}

/// One ratio on several processors.
#[derive(Clone, Copy, Debug, Default)]
struct Several {
    drawn: u64,
    kept: u64,
    lost: u64,
    load: f64,
}

fn several(ratio: Ratio, processors: usize, reading: Reading, seed: u64, count: u64) -> Several {
    let mut found = Several::default();
    while found.kept < count && found.drawn < MOST_DRAWS {
        let drawn = draw(SEVERAL, OURS, seed, found.drawn);
        found.drawn += 1;
        let all = |reading| tasks(&drawn, ratio, OURS, reading, INSIDE[1]);
        let (with, without) = (all(Reading::Transactions), all(reading));
        // The places are chosen once, by the low times: both modes and both readings have the same ones.
        let places = synchronisation::partition(&with, processors);
        let high_places: Vec<usize> =
            with.iter().zip(&places).filter(|(task, _)| task.is_high).map(|(_, place)| *place).collect();
        let high = in_high_mode(&with, ratio);
        if !synchronisation::meets(&with, &places, processors)
            || !synchronisation::meets(&high, &high_places, processors)
        {
            continue;
        }
        found.kept += 1;
        found.lost += u64::from(!synchronisation::meets(&without, &places, processors));
        found.load += fraction(load(&without));
    }
    found.load /= found.kept.max(1) as f64;
    found
}

/// What is found: the facts, and the tables.
pub(super) fn run(seed: u64, count: u64, is_full: bool) -> Result<(Vec<Fact>, Vec<Series>), ExperimentError> {
    let job = table(OURS, Reading::Job, seed, count)?;
    let section = table(OURS, Reading::Section, seed, count)?;
    let mut facts = vec![same(
        9,
        "The load of high mode as a multiple of the low load: ratio times share",
        "0.996, 1.005 and 1.000",
        factors(),
    )];
    facts.extend(lost(&job));
    facts.extend(refuted(&[&job, &section]));
    facts.extend(loads(&job));
    let mut all = vec![
        series("one processor, the whole job inflated", &job),
        series("one processor, its section alone inflated", &section),
    ];
    let (fact, mut tables) = on_several(seed, count);
    facts.push(fact);
    all.append(&mut tables);
    if is_full {
        all.extend(open_choices(seed, count)?);
    }
    Ok((facts, all))
}

fn factors() -> String {
    let of = |ratio: Ratio| format!("{:.3}", (ratio.tenths * ratio.high_percent) as f64 / 1e3);
    let [low, middle, high] = RATIOS.map(of);
    format!("{low}, {middle} and {high}")
}

/// Fact 10: beside the published table, and its shape.
fn lost(job: &Table) -> Vec<Fact> {
    let mut facts = Vec::new();
    for ((of, row), published) in LOADS.iter().zip(job).zip(PUBLISHED) {
        for ((ratio, point), published) in RATIOS.iter().zip(row).zip(published) {
            let is_full = *of == BILLION;
            // At a load of 1 the source says how many are not schedulable without, and not how many are lost.
            let ours = if is_full { percent(point.missed_without, point.sets) } else { point.lost_percent() };
            let what =
                if is_full { "not schedulable without transactions" } else { "lost without transactions" };
            let statement = format!(
                "Sets {what} at a load of {} and a ratio of {}",
                *of as f64 / BILLION as f64,
                ratio.value()
            );
            let note = format!(
                "within 5 points; {:.1} % miss with transactions already, {:.1} % without",
                percent(point.missed_with, point.sets),
                percent(point.missed_without, point.sets)
            );
            let agrees = (ours - published as f64).abs() <= 5.0;
            facts.push(Fact::trend(
                10,
                &statement,
                &format!("{published} %"),
                format!("{ours:.1} %"),
                agrees,
                &note,
            ));
        }
    }
    let of = |row: usize, column: usize| job[row][column].lost_percent();
    let in_ratio = (0..2).all(|row| of(row, 0) < of(row, 1) && of(row, 1) < of(row, 2));
    let in_load = (0..3).all(|column| of(0, column) < of(1, column));
    let shape = format!("in the ratio: {}; in the load: {}", yes(in_ratio), yes(in_load));
    facts.push(Fact::trend(
        10,
        "Lost sets grow in the ratio and in the load, below a load of 1",
        "yes",
        shape,
        in_ratio && in_load,
        "at a load of 1 nearly half of the sets miss with transactions already, and no more can be lost than are left",
    ));
    facts
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn refuted(tables: &[&Table]) -> Option<Fact> {
    let all = || tables.iter().flat_map(|table| table.iter().flatten());
    let sets: u64 = all().map(|point| 2 * point.sets).sum();
    let fact = Fact::exact(
        10,
        "Sets that the demand criterion accepts and a simulated hyperperiod refutes",
        0,
        all().map(|point| point.refuted).sum(),
    );
    Some(Fact {
        note: format!("{sets} verdicts; where the load is at most 1, beside a simulated hyperperiod"),
        ..fact
    })
}

/// Facts 11 to 13.
fn loads(job: &Table) -> Vec<Fact> {
    let not_over = job[2][1].not_overloaded + job[2][2].not_overloaded;
    let off: u64 = job.iter().flatten().map(|point| point.off_load).sum();
    let mean = job[0][2].load;
    vec![
        Fact::exact(
            11,
            "Sets with a low task at a load of 1 that are not overloaded without transactions",
            0,
            not_over,
        ),
        Fact::trend(
            12,
            "Mean load without transactions at a load of 0.5 and a ratio of 2",
            "up to 0.72",
            format!("{mean:.3}"),
            (0.70..=0.76).contains(&mean),
            "between 0.70 and 0.76",
        ),
        Fact::exact(13, "Sets whose load with transactions is not the load that was drawn", 0, off),
    ]
}

/// Fact 14, with two and with three processors beside the one for sections, in both readings.
fn on_several(seed: u64, count: u64) -> (Fact, Vec<Series>) {
    let mut rows = Vec::new();
    for processors in [2, 3] {
        for (reading, number) in [(Reading::Job, 0.0), (Reading::Section, 1.0)] {
            for (ratio, published) in RATIOS.iter().zip(PUBLISHED_SEVERAL) {
                let found = several(*ratio, processors, reading, seed, count);
                rows.push(vec![
                    processors as f64,
                    number,
                    ratio.value(),
                    published as f64,
                    percent(found.lost, found.kept),
                    found.kept as f64,
                    found.drawn as f64,
                    found.load,
                ]);
            }
        }
    }
    let ours: Vec<f64> = rows[..3].iter().map(|row| row[4]).collect();
    let agrees = ours[0] < ours[1] && ours[1] < ours[2];
    let fact = Fact::trend(
        14,
        "Sets lost with a synchronisation processor, by ratio",
        "5 %, 26 % and 50 %, growing",
        format!("{:.1} %, {:.1} % and {:.1} %", ours[0], ours[1], ours[2]),
        agrees,
        "the order alone is judged: two processors beside the one for sections, worst-fit decreasing; the source names neither",
    );
    let columns = [
        "processors",
        "section alone",
        "ratio",
        "published, %",
        "lost, %",
        "kept sets",
        "drawn sets",
        "mean load without",
    ];
    let name = "a synchronisation processor".to_owned();
    (fact, vec![Series { name, columns: columns.map(str::to_owned).to_vec(), rows }])
}

/// What the lost sets are by other answers to what the source leaves open; nothing of it decides a fact.
fn open_choices(seed: u64, count: u64) -> Result<Vec<Series>, ExperimentError> {
    let choices = [
        ("2 to 10 tasks, high by chance", Recipe { by_chance: true, ..OURS }),
        ("1 to 10 tasks", Recipe { tasks: (1, 10), ..OURS }),
        ("5 to 10 tasks", Recipe { tasks: (5, 10), ..OURS }),
        ("10 tasks", Recipe { tasks: (10, 10), ..OURS }),
    ];
    let mut all = Vec::new();
    for (name, recipe) in choices {
        all.push(series(
            &format!("the whole job inflated, {name}"),
            &table(recipe, Reading::Job, seed, count)?,
        ));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred sets a point: what must hold of every set does, and what is counted is counted.
    #[test]
    fn what_holds_of_every_set_holds_and_points_count() {
        let (facts, all) = run(1, 100, false).expect("it runs");
        for fact in facts.iter().filter(|fact| fact.exact) {
            assert_eq!(fact.agreement, crate::Agreement::Agrees, "{fact:?}");
        }
        for row in &all[0].rows {
            let [missed_with, missed_without, lost] = [row[3], row[4], row[5]];
            assert!(lost <= 100.0 - missed_with && missed_without >= lost, "{row:?}");
            assert!(row[6] <= 100.0 - missed_with && row[7] <= 100.0 - missed_without, "{row:?}");
        }
        let highest = &all[0].rows[8];
        assert!(highest[4] > 90.0 && highest[9] > 1.0, "{highest:?}");
    }

    /// One low task at a load of 1 is an overload with a ratio above 1, and a set of high ones alone is none.
    #[test]
    fn a_set_at_a_load_of_one_is_overloaded_where_it_has_a_low_task() {
        let mut solver = EdfSolver::new();
        for index in 0..50 {
            let drawn = draw(BILLION, OURS, 3, index);
            let without = tasks(&drawn, RATIOS[1], OURS, Reading::Job, 50);
            let has_low = without.iter().any(|task| !task.is_high);
            assert_eq!(load(&without) > super::super::sets::FULL, has_low);
            assert!(!has_low || !uniprocessor::judge(&without, &mut solver).expect("a set").is_met);
        }
    }
}
