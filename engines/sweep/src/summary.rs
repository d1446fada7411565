//! What a sweep came to: shares of accepted sets, weighted schedulability, and their drawings.

use crate::block::{Counts, Row};
use crate::more::More;
use crate::plan::{BlockId, Cell, Plan};
use crate::test::Test;
use crate::{GENERATOR, VERSION};
use horolog_draw::BatchRecipe;
use horolog_report::line_chart::{Line, LineChart};
use serde::Serialize;
use std::collections::HashMap;

/// The result of a sweep, `horolog.sweep-result/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// `horolog.sweep-result/1`.
    pub schema: &'static str,
    /// The sweep's name.
    pub name: String,
    /// The version of horolog.
    pub version: &'static str,
    /// What drew the sets.
    pub generator: &'static str,
    /// Sets of each cell.
    pub sets: u64,
    /// Sets of a block.
    pub block: u64,
    /// Whether every block is there.
    pub is_complete: bool,
    /// Every cell of the grid, in the order of the file.
    pub cells: Vec<CellSummary>,
    /// For each test and all cells that differ in utilisation and seed alone.
    pub weighted: Vec<Weighted>,
}

/// A cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CellSummary {
    /// Its identity, which names its folder.
    pub cell: String,
    /// What its sets are drawn by.
    #[serde(flatten)]
    pub recipe: BatchRecipe,
    /// What the file gives beside.
    #[serde(flatten)]
    pub more: More,
    /// The file's seed.
    pub seed: u64,
    /// What each test said of the blocks that are there.
    pub tests: Vec<TestSummary>,
}

/// What a test said of a cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TestSummary {
    /// The test.
    pub test: &'static str,
    /// Sets that were tested.
    pub sets: u64,
    /// Proved to meet every deadline.
    pub meets: u64,
    /// Proved to miss one.
    pub misses: u64,
    /// Neither.
    pub unknown: u64,
    /// `meets` by `sets`; null before the first block.
    pub ratio: Option<f64>,
    /// Σ C/T of these sets.
    pub utilisation_sum: f64,
    /// The same of those that meet.
    pub utilisation_met: f64,
}

/// Weighted schedulability Σ U·S / Σ U over all sets of a group (`bastoni10`).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Weighted {
    /// The values in which the group differs from others, as `tasks=10`; empty where there is one group.
    pub group: String,
    /// The test.
    pub test: &'static str,
    /// From 0 to 1; null before the first block.
    pub value: Option<f64>,
}

/// Cells that differ in utilisation and seed alone.
struct Group {
    label: String,
    cells: Vec<usize>,
}

impl Summary {
    /// Of the blocks that are there.
    #[must_use]
    pub fn of(plan: &Plan, rows: &HashMap<BlockId, Vec<Row>>) -> Summary {
        let counts = counts(plan, rows);
        let weighted = groups(plan).into_iter().flat_map(|group| {
            let counts = &counts;
            let each = plan.tests.iter().enumerate().map(move |(place, test)| {
                let all = group.cells.iter().map(|&cell| counts[cell][place]);
                let all = all.fold(Counts::default(), Counts::with);
                let value = Some(all.weighted()).filter(|value| value.is_finite());
                Weighted { group: group.label.clone(), test: test.word(), value }
            });
            each.collect::<Vec<_>>()
        });
        Summary {
            schema: "horolog.sweep-result/1",
            name: plan.name.clone(),
            version: VERSION,
            generator: GENERATOR,
            sets: plan.sets,
            block: plan.block,
            is_complete: plan.blocks().all(|id| rows.contains_key(&id)),
            weighted: weighted.collect(),
            cells: plan.cells.iter().zip(&counts).map(|(cell, counts)| summary(plan, cell, counts)).collect(),
        }
    }

    /// The drawings, each with its file's name: the acceptance ratio over the utilisation, one drawing a group, and the weighted
    /// schedulability over the groups where a single number tells them apart.
    #[must_use]
    pub fn drawings(&self, plan: &Plan, rows: &HashMap<BlockId, Vec<Row>>) -> Vec<(String, String)> {
        let counts = counts(plan, rows);
        let groups = groups(plan);
        let mut drawings = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let line = |(place, test): (usize, &Test)| Line {
                label: test.word().to_owned(),
                points: points(plan, group, &counts, place),
            };
            let title = if group.label.is_empty() {
                plan.name.clone()
            } else {
                format!("{}: {}", plan.name, group.label)
            };
            let chart = LineChart {
                title,
                x_label: "utilisation".to_owned(),
                y_label: "share of accepted sets".to_owned(),
                reference: Some(1.0),
                lines: plan.tests.iter().enumerate().map(line).collect(),
            };
            let name = match groups.len() {
                1 => "acceptance.svg".to_owned(),
                _ => format!("acceptance-{}.svg", number + 1),
            };
            drawings.push((name, chart.svg()));
        }
        drawings.extend(self.weighted_drawing(&groups).map(|svg| ("weighted.svg".to_owned(), svg)));
        drawings
    }

    fn weighted_drawing(&self, groups: &[Group]) -> Option<String> {
        let labels: Vec<(&str, f64)> = groups
            .iter()
            .map(|group| {
                let (key, value) = group.label.split_once('=')?;
                Some((key, value.parse().ok()?))
            })
            .collect::<Option<_>>()?;
        let (key, _) = *labels.first().filter(|_| labels.len() > 1)?;
        let mut lines: Vec<Line> = Vec::new();
        for (at, one) in self.weighted.iter().enumerate() {
            let of_group = self.weighted.len() / groups.len();
            let point = (labels[at / of_group].1, one.value.unwrap_or(f64::NAN));
            match lines.iter_mut().find(|line| line.label == one.test) {
                Some(line) => line.points.push(point),
                None => lines.push(Line { label: one.test.to_owned(), points: vec![point] }),
            }
        }
        lines.iter_mut().for_each(|line| line.points.sort_by(|left, right| left.0.total_cmp(&right.0)));
        let chart = LineChart {
            title: self.name.clone(),
            x_label: key.to_owned(),
            y_label: "weighted schedulability".to_owned(),
            reference: Some(1.0),
            lines,
        };
        Some(chart.svg())
    }
}

/// Of each cell and test. Blocks are added in their order, so that sums of floating-point numbers are the same for ever.
fn counts(plan: &Plan, rows: &HashMap<BlockId, Vec<Row>>) -> Vec<Vec<Counts>> {
    let mut counts = vec![vec![Counts::default(); plan.tests.len()]; plan.cells.len()];
    for id in plan.blocks() {
        for (counts, row) in counts[id.cell].iter_mut().zip(rows.get(&id).into_iter().flatten()) {
            *counts = counts.with(row.counts);
        }
    }
    counts
}

fn summary(plan: &Plan, cell: &Cell, counts: &[Counts]) -> CellSummary {
    let test = |(test, counts): (&Test, &Counts)| TestSummary {
        test: test.word(),
        sets: counts.sets,
        meets: counts.meets,
        misses: counts.misses,
        unknown: counts.unknown,
        ratio: Some(counts.ratio()).filter(|ratio| ratio.is_finite()),
        utilisation_sum: counts.utilisation,
        utilisation_met: counts.utilisation_met,
    };
    CellSummary {
        cell: cell.id(),
        recipe: cell.recipe.clone(),
        more: cell.more.clone(),
        seed: cell.seed,
        tests: plan.tests.iter().zip(counts).map(test).collect(),
    }
}

/// The words of a cell but its utilisation and seed.
fn words(cell: &Cell) -> Vec<String> {
    let text = cell.text();
    let is_kept = |word: &&str| !word.starts_with("utilisation=") && !word.starts_with("seed=");
    text.split(' ').filter(is_kept).map(str::to_owned).collect()
}

fn groups(plan: &Plan) -> Vec<Group> {
    let mut places: HashMap<Vec<String>, usize> = HashMap::new();
    let mut groups: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    for (number, cell) in plan.cells.iter().enumerate() {
        let words = words(cell);
        let place = *places.entry(words.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((words, Vec::new()));
        }
        groups[place].1.push(number);
    }
    let first = groups.first().map(|(words, _)| words.clone()).unwrap_or_default();
    let differs: Vec<bool> =
        (0..first.len()).map(|at| groups.iter().any(|(words, _)| words[at] != first[at])).collect();
    let label = |words: &[String]| {
        let of_group = words.iter().zip(&differs).filter(|(_, differs)| **differs);
        of_group.map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
    };
    groups.iter().map(|(words, cells)| Group { label: label(words), cells: cells.clone() }).collect()
}

/// The ratio at each utilisation, seeds together.
fn points(plan: &Plan, group: &Group, counts: &[Vec<Counts>], test: usize) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, Counts)> = Vec::new();
    for &cell in &group.cells {
        let utilisation = plan.cells[cell].recipe.utilisation;
        let counts = counts[cell][test];
        match points.iter_mut().find(|(at, _)| *at == utilisation) {
            Some((_, all)) => *all = all.with(counts),
            None => points.push((utilisation, counts)),
        }
    }
    points.sort_by(|left, right| left.0.total_cmp(&right.0));
    points.into_iter().map(|(at, counts)| (at, counts.ratio())).collect()
}
