//! The file of a sweep, `horolog.sweep/1`; `docs/concepts/sweeps.md` describes every key.

mod grid;
mod values;

use crate::plan::{MOST_BLOCKS, Plan, RowsOf};
use crate::test::Test;
use grid::Grid;
use horolog_model::Diagnostics;
use horolog_model::file::did_you_mean;
use horolog_model::file::table::{Document, Finding, Table};
use toml::de::DeTable;
use values::{count, numbers, words};

/// The most rows of a file.
const MOST_ROWS: u64 = 1_000_000;

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
    let rows = rows(&mut head);
    let seeds = numbers(&mut head, "seeds", 0..=i64::MAX as u64, 1);
    let (place, of_block, of_tests) = (head.place("sets"), head.place("block"), head.place("tests"));
    head.close();
    // What `[sweep]` lacks is no reason to keep silent about `[generator]`.
    let is_seeded = seeds.is_some();
    let grid = Grid::read(root, &seeds.unwrap_or_else(|| vec![1]), found);
    if let Some(tests) = &tests {
        grid.judge_keys(tests, of_tests.as_ref(), found);
    }
    let cells = grid.cells(found)?;
    grid.flaws(&cells, tests.as_deref().unwrap_or(&[]), found);
    let (sets, block, rows) = (sets?, block?, rows?);
    if !is_seeded {
        return None;
    }
    let plan = Plan { name: name?, sets, block, tests: tests?, rows, cells };
    let of_file = block.min(sets).saturating_mul(plan.tests.len() as u64);
    if rows == RowsOf::Sets && of_file > MOST_ROWS {
        let reason = format!("with `rows = \"sets\"` the file of a block has {of_file} rows");
        let most = MOST_ROWS / plan.tests.len() as u64;
        let remedy = format!("at most {MOST_ROWS}: smaller blocks, `block = {most}`");
        found.push((of_block.or(place.clone()).unwrap_or(0..0), reason, remedy));
    }
    let blocks = plan.blocks_of_a_cell().saturating_mul(plan.cells.len() as u64);
    if blocks > MOST_BLOCKS {
        let reason = format!("this makes {blocks} blocks, and each is a file");
        let remedy = format!("at most {MOST_BLOCKS}: larger blocks, `block = {}`", block.saturating_mul(10));
        found.push((place.unwrap_or(0..0), reason, remedy));
    }
    Some(plan)
}

/// What a row is about.
fn rows(head: &mut Table<'_, '_>) -> Option<RowsOf> {
    match head.optional_text("rows", "\"sets\"")?.as_deref() {
        None | Some("blocks") => Some(RowsOf::Blocks),
        Some("sets") => Some(RowsOf::Sets),
        Some(word) => {
            let place = head.place("rows");
            head.fail(place, format!("no rows are of `{word}`"), did_you_mean(word, &RowsOf::WORDS));
            None
        }
    }
}

fn tests(head: &mut Table<'_, '_>) -> Option<Vec<Test>> {
    let known: Vec<&str> = Test::all().map(Test::word).collect();
    let wrong = |word: &str| {
        let is_known = Test::of_word(word).is_some();
        (!is_known).then(|| (format!("no test is called `{word}`"), did_you_mean(word, &known)))
    };
    let listed = words(head, "tests", None, wrong)?;
    if listed.is_none() {
        head.missing("tests", "[\"edf-qpa\", \"fp-preemptive\"]");
    }
    listed?.iter().map(|word| Test::of_word(word)).collect()
}
