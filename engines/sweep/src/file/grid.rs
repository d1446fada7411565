//! `[generator]`: lists of values, their grid, and what is wrong with its cells.

use super::values::{decimals, durations, numbers, words};
use crate::more::{KEYS, Key, Kind, More, Value};
use crate::plan::{Cell, MOST_CELLS};
use crate::test::Test;
use horolog_draw::recipe::{DEADLINES, PERIODS};
use horolog_draw::{BatchRecipe, Method};
use horolog_model::file::did_you_mean;
use horolog_model::file::table::{Finding, Table};
use std::collections::BTreeSet;
use std::ops::Range;
use toml::de::DeTable;

/// Keys that are judged together: where one of them cannot be read, nothing is said of the others' combination.
const GROUPS: [&[&str]; 3] = [
    &["tasks", "utilisation", "method", "lower", "upper"],
    &["periods", "shortest_period", "longest_period", "granularity"],
    &["deadlines", "least", "factor"],
];

/// The values of each key.
pub(super) struct Grid {
    tasks: Vec<u64>,
    utilisation: Vec<f64>,
    method: Vec<String>,
    periods: Vec<String>,
    shortest: Vec<u64>,
    longest: Vec<u64>,
    granularity: Vec<u64>,
    deadlines: Vec<String>,
    least: Vec<f64>,
    factor: Vec<f64>,
    /// Keys without a default that the file gives.
    more: Vec<(&'static Key, Vec<Value>)>,
    seeds: Vec<u64>,
    /// Keys whose values cannot be read; they have their defaults here.
    unread: Vec<&'static str>,
    /// Where the value of each key is in the file.
    places: Vec<(&'static str, Range<usize>)>,
    whole: Range<usize>,
}

impl Grid {
    /// Reads the table; what cannot be read is among the findings.
    pub(super) fn read(root: &DeTable<'_>, seeds: &[u64], found: &mut Vec<Finding>) -> Grid {
        let default = BatchRecipe::default();
        let methods = Method::ALL.map(Method::word);
        let mut table = Table::named(root, "generator", found);
        let tasks = numbers(&mut table, "tasks", 1..=1_000, default.tasks as u64);
        let utilisation = decimals(&mut table, "utilisation", 9, None);
        let method = known(&mut table, "method", &default.method, &methods);
        let periods = known(&mut table, "periods", &default.periods, &PERIODS);
        let shortest = durations(&mut table, "shortest_period", default.shortest_period_ns);
        let longest = durations(&mut table, "longest_period", default.longest_period_ns);
        let granularity = durations(&mut table, "granularity", default.granularity_ns);
        let deadlines = known(&mut table, "deadlines", &default.deadlines, &DEADLINES);
        let least = decimals(&mut table, "least", 6, Some(0.0));
        let factor = decimals(&mut table, "factor", 6, Some(2.0));
        let mut unread = Vec::new();
        let more = more(&mut table, &mut unread);
        let whole = table.whole();
        let keys = GROUPS.concat().into_iter().chain(KEYS.iter().map(|key| key.name));
        let places = keys.map(|key| (key, table.place(key).unwrap_or(whole.clone()))).collect();
        table.close();
        // No method takes more of a total than this one, so what it refuses all do.
        let method = method.unwrap_or_else(|| vec![Method::UuniFast.word().to_owned()]);
        Grid {
            tasks: or_default("tasks", tasks, default.tasks as u64, &mut unread),
            utilisation: or_default("utilisation", utilisation, default.utilisation, &mut unread),
            method,
            periods: or_default("periods", periods, default.periods, &mut unread),
            shortest: or_default("shortest_period", shortest, default.shortest_period_ns, &mut unread),
            longest: or_default("longest_period", longest, default.longest_period_ns, &mut unread),
            granularity: or_default("granularity", granularity, default.granularity_ns, &mut unread),
            deadlines: or_default("deadlines", deadlines, default.deadlines, &mut unread),
            least: or_default("least", least, default.least, &mut unread),
            factor: or_default("factor", factor, default.factor, &mut unread),
            more,
            seeds: seeds.to_vec(),
            unread,
            places,
            whole,
        }
    }

    /// Every combination of the values; the last key changes fastest. None where there are too many.
    pub(super) fn cells(&self, found: &mut Vec<Finding>) -> Option<Vec<Cell>> {
        let fixed = [
            self.tasks.len(),
            self.utilisation.len(),
            self.method.len(),
            self.periods.len(),
            self.shortest.len(),
            self.longest.len(),
            self.granularity.len(),
            self.deadlines.len(),
            self.least.len(),
            self.factor.len(),
            self.seeds.len(),
        ];
        let lengths = fixed.into_iter().chain(self.more.iter().map(|(_, values)| values.len()));
        let count = { lengths }.try_fold(1_usize, usize::checked_mul);
        if count.is_none_or(|count| count > MOST_CELLS) {
            let reason = format!("the grid has more than {MOST_CELLS} cells");
            found.push((self.whole.clone(), reason, "give shorter lists, or several sweeps".to_owned()));
            return None;
        }
        let mut cells = vec![Cell { recipe: BatchRecipe::default(), more: More::default(), seed: 0 }];
        spread(&mut cells, &self.tasks, |cell, &value| cell.recipe.tasks = value as usize);
        spread(&mut cells, &self.utilisation, |cell, &value| cell.recipe.utilisation = value);
        spread(&mut cells, &self.method, |cell, value| cell.recipe.method.clone_from(value));
        spread(&mut cells, &self.periods, |cell, value| cell.recipe.periods.clone_from(value));
        spread(&mut cells, &self.shortest, |cell, &value| cell.recipe.shortest_period_ns = value);
        spread(&mut cells, &self.longest, |cell, &value| cell.recipe.longest_period_ns = value);
        spread(&mut cells, &self.granularity, |cell, &value| cell.recipe.granularity_ns = value);
        spread(&mut cells, &self.deadlines, |cell, value| cell.recipe.deadlines.clone_from(value));
        spread(&mut cells, &self.least, |cell, &value| cell.recipe.least = value);
        spread(&mut cells, &self.factor, |cell, &value| cell.recipe.factor = value);
        for (key, values) in &self.more {
            spread(&mut cells, values, |cell, &value| cell.more.push(key, value));
        }
        spread(&mut cells, &self.seeds, |cell, &seed| cell.seed = seed);
        Some(cells)
    }

    /// What tests need and the file does not give, and what it gives and no test reads.
    pub(super) fn judge_keys(&self, tests: &[Test], place: Option<&Range<usize>>, found: &mut Vec<Finding>) {
        let is_given =
            |name: &str| self.unread.contains(&name) || self.more.iter().any(|(key, _)| key.name == name);
        for key in &KEYS {
            let mut readers = tests.iter().filter(|test| test.reads(key.name));
            match readers.next() {
                Some(test) if !is_given(key.name) && test.needs().contains(&key.name) => {
                    let reason =
                        format!("`{}` needs `{}`, which [generator] does not give", test.word(), key.name);
                    let remedy = format!("add `{} = {}` to `[generator]`", key.name, key.example);
                    found.push((place.unwrap_or(&self.whole).clone(), reason, remedy));
                }
                None if is_given(key.name) && !["lower", "upper"].contains(&key.name) => {
                    let readers: Vec<&str> =
                        Test::all().filter(|test| test.reads(key.name)).map(Test::word).collect();
                    let reason = format!("no test of the file reads `{}`", key.name);
                    let remedy = format!("remove it; who reads it: {}", readers.join(", "));
                    found.push((self.place(key.name), reason, remedy));
                }
                _ => {}
            }
        }
    }

    fn place(&self, key: &str) -> Range<usize> {
        let place = self.places.iter().find(|(one, _)| *one == key);
        place.map_or(0..0, |(_, place)| place.clone())
    }

    /// Each key that is at fault for a cell of which no sets can be drawn, with the first such cell.
    pub(super) fn flaws(&self, cells: &[Cell], tests: &[Test], found: &mut Vec<Finding>) {
        let group = |key: &str| GROUPS.iter().find(|group| group.contains(&key));
        let mut told = BTreeSet::new();
        let mut tell = |key: &str, reason: &str, cell: &Cell| {
            let is_judged =
                !group(key).is_some_and(|group| self.unread.iter().any(|key| group.contains(key)));
            if is_judged && told.insert(key.to_owned()) {
                let remedy = format!("change it, or split the grid; the first such cell: {}", cell.text());
                found.push((self.place(key), format!("`{key}`: {reason}"), remedy));
            }
        };
        for cell in cells {
            if let Some((key, reason)) = cell.more.flaw(tests) {
                tell(key, &reason, cell);
            }
            let mut recipe = cell.recipe.clone();
            let mut bounds = cell.more.bounds(recipe.tasks);
            let mut mended = BTreeSet::new();
            while let Err(flaw) = recipe.within(0, bounds.clone()) {
                let (key, reason) = flaw.split_once(": ").unwrap_or(("utilisation", flaw.as_str()));
                tell(key, reason, cell);
                // With this value good, is there another fault? One at a time, so each is told at once.
                if !mended.insert(key.to_owned()) {
                    break;
                }
                match key {
                    "lower" | "upper" => bounds = None,
                    "method" => Method::ConvolutionalFixedSum.word().clone_into(&mut recipe.method),
                    key => mend(&mut recipe, key),
                }
                bounds = bounds.filter(|_| key != "tasks");
            }
        }
    }
}

/// The values of the keys that have no default, as far as the file gives them.
fn more(table: &mut Table<'_, '_>, unread: &mut Vec<&'static str>) -> Vec<(&'static Key, Vec<Value>)> {
    let mut given = Vec::new();
    for key in &KEYS {
        if table.get(key.name).is_none() {
            continue;
        }
        let values = match &key.kind {
            Kind::Number(range) => numbers(table, key.name, range.clone(), 1).map(whole),
            Kind::Time => durations(table, key.name, 1).and_then(|times| {
                let is_zero = times.contains(&0);
                if is_zero {
                    let (place, remedy) =
                        (table.place(key.name), format!("`{} = {}`", key.name, key.example));
                    table.fail(place, format!("`{}` is zero", key.name), remedy);
                }
                (!is_zero).then(|| whole(times))
            }),
            Kind::Share(least, most) => decimals(table, key.name, 9, None).and_then(|shares| {
                let bad = shares.iter().find(|share| !(*least..=*most).contains(*share));
                if let Some(bad) = bad {
                    let reason = format!("`{}`: {bad} is not from {least} to {most}", key.name);
                    let place = table.place(key.name);
                    table.fail(place, reason, format!("`{} = {}`", key.name, key.example));
                }
                bad.is_none().then(|| shares.into_iter().map(Value::Share).collect())
            }),
        };
        match values {
            Some(values) => given.push((key, values)),
            None => unread.push(key.name),
        }
    }
    given
}

fn whole(values: Vec<u64>) -> Vec<Value> {
    values.into_iter().map(Value::Number).collect()
}

/// Gives the recipe a value of this key that nothing is wrong with.
fn mend(recipe: &mut BatchRecipe, key: &str) {
    let default = BatchRecipe::default();
    match key {
        // The file's numbers are within bounds, so it is the method that draws no so many.
        "tasks" => Method::UuniFast.word().clone_into(&mut recipe.method),
        "utilisation" => recipe.utilisation = 0.1,
        "granularity" => {
            recipe.granularity_ns = 1;
            recipe.shortest_period_ns = recipe.shortest_period_ns.max(1);
        }
        "longest_period" => {
            recipe.shortest_period_ns = default.shortest_period_ns;
            recipe.longest_period_ns = default.longest_period_ns;
            recipe.granularity_ns = default.granularity_ns;
        }
        "least" => recipe.least = default.least,
        _ => recipe.factor = default.factor,
    }
}

/// Words of a list.
fn known(table: &mut Table<'_, '_>, key: &'static str, default: &str, known: &[&str]) -> Option<Vec<String>> {
    let wrong = |word: &str| {
        let reason = || format!("`{word}` is not one of {}", known.join(", "));
        (!known.contains(&word)).then(|| (reason(), did_you_mean(word, known)))
    };
    words(table, key, Some(default), wrong).flatten()
}

fn or_default<T>(
    key: &'static str,
    values: Option<Vec<T>>,
    default: T,
    unread: &mut Vec<&'static str>,
) -> Vec<T> {
    values.unwrap_or_else(|| {
        unread.push(key);
        vec![default]
    })
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
