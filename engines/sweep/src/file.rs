//! The file of a sweep, `horolog.sweep/1`; `docs/concepts/sweeps.md` describes every key.

mod values;

use crate::plan::{Cell, MOST_BLOCKS, MOST_CELLS, Plan};
use horolog_analysis::batch::BatchTest;
use horolog_draw::BatchRecipe;
use horolog_model::Diagnostics;
use horolog_model::file::did_you_mean;
use horolog_model::file::table::{Document, Finding, Table};
use std::ops::Range;
use toml::de::DeTable;
use values::{Words, count, decimals, durations, numbers, words};

/// What the file's `schema` says.
pub const SCHEMA: &str = "horolog.sweep/1";

const DOCUMENT: Document = Document {
    what: "a file of a sweep",
    schema: Some(SCHEMA),
    header: "[sweep]",
    sections: &["schema", "sweep", "generator"],
};

/// Reads a sweep from its text; `name` is what messages call it.
///
/// # Errors
/// Everything that is wrong with it, each at its place and with a remedy.
///
/// ```
/// let text = r#"
/// schema = "horolog.sweep/1"
/// [sweep]
/// name = "two tests"
/// sets = 100
/// tests = ["edf-qpa", "fp-preemptive"]
/// [generator]
/// tasks = [5, 10]
/// utilisation = { from = 0.5, to = 0.9, steps = 5 }
/// "#;
/// let plan = horolog_sweep::file::read(text, "sweep.toml").unwrap();
/// assert_eq!((plan.cells.len(), plan.cells[1].recipe.utilisation), (10, 0.6));
/// let errors = horolog_sweep::file::read(&text.replace("edf-qpa", "edf"), "sweep.toml").unwrap_err();
/// assert!(errors.to_string().contains("no test is called `edf`"));
/// ```
pub fn read(text: &str, name: &str) -> Result<Plan, Diagnostics> {
    DOCUMENT.read(name, text, plan)
}

fn plan(root: &DeTable<'_>, found: &mut Vec<Finding>) -> Option<Plan> {
    let mut head = Table::named(root, "sweep", found);
    let name = head.text("name", "\"ten tasks\"");
    let sets = count(&mut head, "sets", None);
    let block = count(&mut head, "block", Some(1_000));
    let tests = tests(&mut head);
    let seeds = numbers(&mut head, "seeds", 0..=i64::MAX as u64, 1);
    let place = head.place("sets");
    head.close();
    let (cells, places) = cells(root, &seeds?, found)?;
    let (sets, block) = (sets?, block?);
    let plan = Plan { name: name?, sets, block, tests: tests?, cells };
    let blocks = plan.blocks_of_a_cell().saturating_mul(plan.cells.len() as u64);
    if blocks > MOST_BLOCKS {
        let reason = format!("this makes {blocks} blocks, and each is a file");
        let remedy = format!("at most {MOST_BLOCKS}: larger blocks, `block = {}`", block.saturating_mul(10));
        found.push((place.unwrap_or(0..0), reason, remedy));
    }
    flaws(&plan, &places, found);
    Some(plan)
}

fn tests(head: &mut Table<'_, '_>) -> Option<Vec<BatchTest>> {
    let known = BatchTest::ALL.map(BatchTest::word);
    let Some(listed) = words(head, "tests", None)? else {
        head.missing("tests", "[\"edf-qpa\", \"fp-preemptive\"]");
        return None;
    };
    let mut tests: Vec<BatchTest> = Vec::new();
    let all = listed.len();
    for (place, word) in listed {
        match BatchTest::of_word(&word) {
            Some(test) if tests.contains(&test) => {
                head.fail(Some(place), format!("`{word}` is listed twice"), "name each test once");
            }
            Some(test) => tests.push(test),
            None => {
                let reason = format!("no test is called `{word}`");
                head.fail(Some(place), reason, did_you_mean(&word, &known));
            }
        }
    }
    (tests.len() == all).then_some(tests)
}

/// Where the value of each key of the generator is in the file.
type Places = Vec<(&'static str, Range<usize>)>;

/// Every combination of the values of `[generator]` and the seeds; the last key changes fastest.
fn cells(root: &DeTable<'_>, seeds: &[u64], found: &mut Vec<Finding>) -> Option<(Vec<Cell>, Places)> {
    const KEYS: [&str; 10] = [
        "tasks",
        "utilisation",
        "method",
        "periods",
        "shortest_period",
        "longest_period",
        "granularity",
        "deadlines",
        "least",
        "factor",
    ];
    let default = BatchRecipe::default();
    let mut table = Table::named(root, "generator", found);
    let tasks = numbers(&mut table, "tasks", 1..=1_000, default.tasks as u64);
    let utilisation = decimals(&mut table, "utilisation", 9, None);
    let method = words(&mut table, "method", Some(&default.method));
    let periods = words(&mut table, "periods", Some(&default.periods));
    let shortest = durations(&mut table, "shortest_period", default.shortest_period_ns);
    let longest = durations(&mut table, "longest_period", default.longest_period_ns);
    let granularity = durations(&mut table, "granularity", default.granularity_ns);
    let deadlines = words(&mut table, "deadlines", Some(&default.deadlines));
    let least = decimals(&mut table, "least", 6, Some(0.0));
    let factor = decimals(&mut table, "factor", 6, Some(2.0));
    let whole = table.whole();
    let places = KEYS.map(|key| (key, table.place(key).unwrap_or(whole.clone()))).to_vec();
    table.close();
    let texts = |listed: Option<Option<Words>>| -> Option<Vec<String>> {
        Some(listed??.into_iter().map(|(_, word)| word).collect())
    };
    let (method, periods, deadlines) = (texts(method)?, texts(periods)?, texts(deadlines)?);
    let (tasks, utilisation, shortest, longest) = (tasks?, utilisation?, shortest?, longest?);
    let (granularity, least, factor) = (granularity?, least?, factor?);
    let lengths = [tasks.len(), utilisation.len(), method.len(), periods.len(), shortest.len()];
    let more = [longest.len(), granularity.len(), deadlines.len(), least.len(), factor.len(), seeds.len()];
    let count = lengths.iter().chain(&more).try_fold(1_usize, |all, &one| all.checked_mul(one));
    if count.is_none_or(|count| count > MOST_CELLS) {
        let reason = format!("the grid has more than {MOST_CELLS} cells");
        found.push((whole, reason, "give shorter lists, or several sweeps".to_owned()));
        return None;
    }
    let mut cells = vec![Cell { recipe: default, seed: 0 }];
    spread(&mut cells, &tasks, |cell, &value| cell.recipe.tasks = value as usize);
    spread(&mut cells, &utilisation, |cell, &value| cell.recipe.utilisation = value);
    spread(&mut cells, &method, |cell, value| cell.recipe.method.clone_from(value));
    spread(&mut cells, &periods, |cell, value| cell.recipe.periods.clone_from(value));
    spread(&mut cells, &shortest, |cell, &value| cell.recipe.shortest_period_ns = value);
    spread(&mut cells, &longest, |cell, &value| cell.recipe.longest_period_ns = value);
    spread(&mut cells, &granularity, |cell, &value| cell.recipe.granularity_ns = value);
    spread(&mut cells, &deadlines, |cell, value| cell.recipe.deadlines.clone_from(value));
    spread(&mut cells, &least, |cell, &value| cell.recipe.least = value);
    spread(&mut cells, &factor, |cell, &value| cell.recipe.factor = value);
    spread(&mut cells, seeds, |cell, &seed| cell.seed = seed);
    Some((cells, places))
}

/// Each cell with each value.
fn spread<T>(cells: &mut Vec<Cell>, values: &[T], set: impl Fn(&mut Cell, &T)) {
    let each = |cell: Cell| {
        values.iter().map({
            let set = &set;
            move |value| {
                let mut cell = cell.clone();
                set(&mut cell, value);
                cell
            }
        })
    };
    *cells = std::mem::take(cells).into_iter().flat_map(each).collect();
}

/// The first cell of which no sets can be drawn is reported, at the key that its flaw names.
fn flaws(plan: &Plan, places: &Places, found: &mut Vec<Finding>) {
    for cell in &plan.cells {
        let Err(flaw) = cell.recipe.batch(0) else { continue };
        let (key, reason) = flaw.split_once(": ").unwrap_or(("utilisation", flaw.as_str()));
        let place = places.iter().find(|(one, _)| *one == key).map_or(0..0, |(_, place)| place.clone());
        let remedy = format!("change it, or split the grid; the first such cell: {}", cell.text());
        found.push((place, format!("`{key}`: {reason}"), remedy));
        return;
    }
}
