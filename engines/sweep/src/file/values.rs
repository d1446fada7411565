//! Values of the grid: each key takes one value or a list of them.

use horolog_model::file::table::{self, Table};
use horolog_time::Span;
use std::collections::HashSet;
use std::hash::Hash;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::DeValue;

/// The most values of one key.
const MOST_VALUES: usize = 10_000;
/// The most sets of a cell, and of a block.
const MOST_SETS: u64 = 1 << 40;

/// A whole number from 1; without a default it must be there.
pub(super) fn count(table: &mut Table<'_, '_>, key: &'static str, default: Option<u64>) -> Option<u64> {
    let Some(value) = table.get(key) else {
        if default.is_none() {
            table.missing(key, "1000");
        }
        return default;
    };
    table.integer_of(key, value, &(1..=MOST_SETS))
}

/// Whole numbers within bounds.
pub(super) fn numbers(
    table: &mut Table<'_, '_>,
    key: &'static str,
    bounds: RangeInclusive<u64>,
    default: u64,
) -> Option<Vec<u64>> {
    let Some(value) = table.get(key) else { return Some(vec![default]) };
    each(table, key, value, |table, value| table.integer_of(key, value, &bounds))
}

/// Decimals from 0 on with at most so many places; a list, or `{ from, to, steps }`. Without a default they must be there.
pub(super) fn decimals(
    table: &mut Table<'_, '_>,
    key: &'static str,
    places: u32,
    default: Option<f64>,
) -> Option<Vec<f64>> {
    let Some(value) = table.get(key) else {
        if default.is_none() {
            table.missing(key, "[0.5, 0.6, 0.7]");
        }
        return default.map(|value| vec![value]);
    };
    let unit = 10_u64.pow(places) as f64;
    let scaled = match value.get_ref() {
        DeValue::Table(_) => range(table, key, value, places)?,
        _ => each(table, key, value, |table, value| decimal(table, key, value, places))?,
    };
    // Both are whole numbers that a double holds, so the quotient is the double nearest to the decimal.
    Some(scaled.into_iter().map(|value| value as f64 / unit).collect())
}

/// Durations in nanoseconds.
pub(super) fn durations(table: &mut Table<'_, '_>, key: &'static str, default: u64) -> Option<Vec<u64>> {
    let Some(value) = table.get(key) else { return Some(vec![default]) };
    each(table, key, value, |table, value| {
        let found = match value.get_ref() {
            DeValue::String(text) => text.parse::<Span>().map(Span::as_ns).map_err(|error| error.to_string()),
            _ => Err(format!("`{key}` takes a duration here")),
        };
        match found {
            Ok(ns) => Some(ns),
            Err(reason) => {
                table.fail(Some(value.span()), reason, format!("`{key} = \"10 ms\"`, or a list of such"));
                None
            }
        }
    })
}

/// Words, each of which `wrong` finds nothing wrong with: a reason and a remedy. The inner `None`: there are none, and no default.
pub(super) fn words(
    table: &mut Table<'_, '_>,
    key: &'static str,
    default: Option<&str>,
    wrong: impl Fn(&str) -> Option<(String, String)>,
) -> Option<Option<Vec<String>>> {
    let Some(value) = table.get(key) else {
        return Some(default.map(|word| vec![word.to_owned()]));
    };
    let found = each(table, key, value, |table, value| {
        let DeValue::String(text) = value.get_ref() else {
            table.fail(Some(value.span()), format!("`{key}` takes text here"), "write the word in quotes");
            return None;
        };
        match wrong(text) {
            Some((reason, remedy)) => {
                table.fail(Some(value.span()), reason, remedy);
                None
            }
            None => Some(text.to_string()),
        }
    });
    found.map(Some)
}

/// One value, or each of a list. A value that is there twice, however it is written, would make two cells of one.
fn each<'t, T: Eq + Hash>(
    table: &mut Table<'t, '_>,
    key: &'static str,
    value: &'t Spanned<DeValue<'t>>,
    mut read: impl FnMut(&mut Table<'t, '_>, &'t Spanned<DeValue<'t>>) -> Option<T>,
) -> Option<Vec<T>> {
    let DeValue::Array(list) = value.get_ref() else { return read(table, value).map(|one| vec![one]) };
    if list.is_empty() || list.len() > MOST_VALUES {
        let reason = format!("the list of `{key}` has {} values", list.len());
        table.fail(Some(value.span()), reason, format!("give from 1 to {MOST_VALUES}"));
        return None;
    }
    let all: Vec<Option<T>> = list.iter().map(|one| read(table, one)).collect();
    let mut seen = HashSet::new();
    let mut is_once = true;
    for (place, one) in list.iter().zip(&all) {
        if one.as_ref().is_some_and(|one| !seen.insert(one)) {
            is_once = false;
            table.fail(Some(place.span()), format!("`{key}` has this value twice"), "give each value once");
        }
    }
    all.into_iter().collect::<Option<Vec<T>>>().filter(|_| is_once)
}

/// A decimal that a double holds exactly in units of its last place.
fn decimal(table: &mut Table<'_, '_>, key: &str, value: &Spanned<DeValue<'_>>, places: u32) -> Option<u64> {
    let number = table::decimal(key, value, places, table.found)?;
    if number >= 1 << 53 {
        table.fail(Some(value.span()), format!("this number is too large for `{key}`"), "give a smaller one");
        return None;
    }
    Some(number)
}

/// `{ from = 0.5, to = 1.0, steps = 11 }`: so many values in equal steps, both ends among them.
fn range(
    table: &mut Table<'_, '_>,
    key: &'static str,
    value: &Spanned<DeValue<'_>>,
    places: u32,
) -> Option<Vec<u64>> {
    let DeValue::Table(keys) = value.get_ref() else { return None };
    let wrong = |table: &mut Table<'_, '_>, at, reason: String| {
        let remedy = format!("`{key} = {{ from = 0.5, to = 1.0, steps = 11 }}`");
        table.fail(Some(at), reason, remedy);
        None
    };
    if let Some(other) = keys.keys().find(|one| !["from", "to", "steps"].contains(&one.get_ref().as_ref())) {
        return wrong(table, other.span(), format!("a range of `{key}` has no `{}`", other.get_ref()));
    }
    let (Some(from), Some(to), Some(steps)) = (keys.get("from"), keys.get("to"), keys.get("steps")) else {
        return wrong(table, value.span(), format!("a range of `{key}` has `from`, `to` and `steps`"));
    };
    let (first, last) = (decimal(table, key, from, places), decimal(table, key, to, places));
    let steps = table.integer_of("steps", steps, &(2..=MOST_VALUES as u64))?;
    let (first, last) = (first?, last?);
    // Nearer together than one step of the last place, two values would be one.
    if last < first || last - first < steps - 1 {
        return wrong(table, value.span(), format!("the range of `{key}` has no {steps} values"));
    }
    let (width, gaps) = (u128::from(last - first), u128::from(steps - 1));
    Some((0..gaps + 1).map(|step| first + ((width * step * 2 + gaps) / (gaps * 2)) as u64).collect())
}
