//! `[[application]]`: dimensions, values and their utilities, set-points.

use super::items;
use crate::problem::{Application, Resource, SetPoint};
use horolog_model::file::did_you_mean;
use horolog_model::file::table::{Finding, Table, amount, decimal};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Weights and utilities of values have this many decimals each: a utility is a weight times the sum of weights times utilities, which has 9.
const PLACES: u32 = 3;
/// A bare utility has so many, beside the weight's.
const BARE_PLACES: u32 = 6;
const ONE: u64 = 1_000;

/// Where an application stands.
pub(super) struct ApplicationPlaces {
    pub(super) name: Range<usize>,
    pub(super) set_points: Vec<Range<usize>>,
}

/// A quality dimension, its values from the least to the best.
struct Dimension {
    name: String,
    weight: u64,
    values: Vec<String>,
    utilities: Vec<u64>,
    /// The least and the most value that the application may get.
    range: std::ops::RangeInclusive<usize>,
}

/// All applications; `None` where one cannot be read, and that is told.
pub(super) fn applications(
    root: &DeTable<'_>,
    resources: &[Resource],
    found: &mut Vec<Finding>,
) -> Option<(Vec<Application>, Vec<ApplicationPlaces>)> {
    let example = "`[[application]]` with a `name` and `[[application.set_point]]` below";
    let tables = items(root, "application", example, found)?;
    let all = tables.len();
    let read = tables.into_iter().filter_map(|(place, table)| application(place, table, resources, found));
    let (applications, places): (Vec<_>, Vec<_>) = read.unzip();
    (applications.len() == all).then_some((applications, places))
}

fn application(
    place: Range<usize>,
    table: &DeTable<'_>,
    resources: &[Resource],
    found: &mut Vec<Finding>,
) -> Option<(Application, ApplicationPlaces)> {
    let mut head = Table::of("[[application]]", place.clone(), table, found);
    let name = head.text("name", "\"camera\"");
    let weight = head.decimal("weight", PLACES, ONE);
    let name_place = head.place("name").unwrap_or(place);
    let has_dimensions = head.get("dimension").is_some();
    head.get("set_point");
    head.close();
    let dimensions = match has_dimensions {
        true => dimensions(table, found)?,
        false => Vec::new(),
    };
    let points = items(
        table,
        "set_point",
        "`set_point = [{ name = \"low\", utility = 1, uses = { cpu = 10 } }]`",
        found,
    )?;
    let all = points.len();
    let mut set_points = Vec::new();
    let mut places = Vec::new();
    let mut read = 0;
    let weight = weight?;
    for (place, table) in points {
        let mut point = Table::of("[[application.set_point]]", place.clone(), table, found);
        let Some((set_point, is_wanted)) = set_point(&mut point, weight, &dimensions, resources) else {
            point.close();
            continue;
        };
        point.close();
        read += 1;
        if is_wanted {
            set_points.push(set_point);
            places.push(place);
        }
    }
    if read < all {
        return None;
    }
    if set_points.is_empty() && all > 0 {
        let reason = "no set-point lies between `least` and `most` of every dimension";
        found.push((name_place, reason.to_owned(), "widen them, or add a set-point there".to_owned()));
        return None;
    }
    let application = Application { name: name?, dimensions: dimensions.len(), set_points };
    Some((application, ApplicationPlaces { name: name_place, set_points: places }))
}

fn dimensions(table: &DeTable<'_>, found: &mut Vec<Finding>) -> Option<Vec<Dimension>> {
    let tables = items(table, "dimension", "", found)?;
    let all = tables.len();
    let mut dimensions: Vec<Dimension> = Vec::new();
    for (place, table) in tables {
        let mut table = Table::of("[[application.dimension]]", place, table, found);
        let read = dimension(&mut table);
        if let Some(one) = &read
            && dimensions.iter().any(|other| other.name == one.name)
        {
            let at = table.place("name");
            table.fail(at, format!("two dimensions are called `{}`", one.name), "rename one of them");
            table.close();
            continue;
        }
        table.close();
        dimensions.extend(read);
    }
    (dimensions.len() == all).then_some(dimensions)
}

fn dimension(table: &mut Table<'_, '_>) -> Option<Dimension> {
    let name = table.text("name", "\"frame rate\"");
    let weight = table.decimal("weight", PLACES, ONE);
    let example = "[\"10 fps\", \"30 fps\"]";
    let values = list(table, "values", example, |value, _| match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
    });
    let utilities =
        list(table, "utilities", "[0.4, 1]", |value, found| decimal("utilities", value, PLACES, found));
    let (values, utilities) = (values?, utilities?);
    if values.len() != utilities.len() {
        let reason = format!("there are {} values and {} utilities", values.len(), utilities.len());
        let at = table.place("utilities");
        table.fail(at, reason, "give one utility for each value, in the same order");
        return None;
    }
    if let Some(at) = (1..values.len()).find(|&at| values[..at].contains(&values[at])) {
        let place = table.place("values");
        table.fail(place, format!("`{}` is here twice", values[at]), "name each value once");
        return None;
    }
    if utilities.windows(2).any(|pair| pair[1] < pair[0]) {
        let at = table.place("utilities");
        table.fail(
            at,
            "the utility falls from one value to the next",
            "order the values from the least to the best",
        );
        return None;
    }
    let mut bound = |key: &'static str, default: usize| -> Option<usize> {
        let text = table.optional_text(key, "\"10 fps\"")?;
        let Some(text) = text else { return Some(default) };
        let at = values.iter().position(|value| *value == text);
        if at.is_none() {
            let known: Vec<&str> = values.iter().map(String::as_str).collect();
            let place = table.place(key);
            table.fail(place, format!("there is no value `{text}`"), did_you_mean(&text, &known));
        }
        at
    };
    let (least, most) = (bound("least", 0), bound("most", values.len() - 1));
    let (least, most) = (least?, most?);
    if least > most {
        let at = table.place("least");
        table.fail(at, "`least` lies above `most`", "exchange the two");
        return None;
    }
    Some(Dimension { name: name?, weight: weight?, values, utilities, range: least..=most })
}

/// A list that is not empty.
fn list<T>(
    table: &mut Table<'_, '_>,
    key: &'static str,
    example: &str,
    read: impl Fn(&Spanned<DeValue<'_>>, &mut Vec<Finding>) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(value) = table.get(key) else {
        table.missing(key, example);
        return None;
    };
    let remedy = format!("`{key} = {example}`");
    match value.get_ref() {
        DeValue::Array(list) if !list.is_empty() => {
            let mut all = Vec::with_capacity(list.len());
            for item in list {
                let before = table.found.len();
                match read(item, table.found) {
                    Some(value) => all.push(value),
                    None if table.found.len() == before => {
                        table.fail(Some(item.span()), format!("`{key}` takes texts"), remedy.clone());
                    }
                    None => {}
                }
            }
            (all.len() == list.len()).then_some(all)
        }
        _ => {
            table.fail(Some(value.span()), "here belongs a list that is not empty", remedy);
            None
        }
    }
}

/// A set-point, and whether it lies within the bounds of every dimension.
fn set_point(
    table: &mut Table<'_, '_>,
    weight: u64,
    dimensions: &[Dimension],
    resources: &[Resource],
) -> Option<(SetPoint, bool)> {
    let name = table.optional_text("name", "\"low\"");
    let uses = uses(table, resources);
    let bare = table.get("utility");
    let quality = table.get("quality");
    let (name, uses) = (name?, uses?);
    if dimensions.is_empty() {
        if let Some(quality) = quality {
            table.fail(
                Some(quality.span()),
                "the application has no dimensions",
                "add `[[application.dimension]]`, or give a `utility` instead",
            );
            return None;
        }
        let Some(bare) = bare else {
            table.missing("utility", "1");
            return None;
        };
        let utility = decimal("utility", bare, BARE_PLACES, table.found)?;
        let Some(name) = name else {
            table.missing("name", "\"low\"");
            return None;
        };
        let utility = product(table, bare.span(), u128::from(weight) * u128::from(utility))?;
        return Some((SetPoint { name, utility, uses }, true));
    }
    if let Some(bare) = bare {
        let remedy = "give the utilities of values in [[application.dimension]], and `quality` here";
        table.fail(Some(bare.span()), "the utility follows from the dimensions", remedy);
        return None;
    }
    let Some(quality) = quality else {
        let dimension = &dimensions[0];
        table.missing("quality", &format!("{{ \"{}\" = \"{}\" }}", dimension.name, dimension.values[0]));
        return None;
    };
    let chosen = values_of(table, quality, dimensions)?;
    let sum = dimensions
        .iter()
        .zip(&chosen)
        .map(|(dimension, &at)| u128::from(dimension.weight) * u128::from(dimension.utilities[at]));
    let sum = sum.fold(0_u128, u128::saturating_add);
    let utility = product(table, quality.span(), sum.saturating_mul(u128::from(weight)))?;
    let values: Vec<&str> =
        dimensions.iter().zip(&chosen).map(|(dimension, &at)| dimension.values[at].as_str()).collect();
    let is_wanted = dimensions.iter().zip(&chosen).all(|(dimension, at)| dimension.range.contains(at));
    Some((SetPoint { name: name.unwrap_or_else(|| values.join(", ")), utility, uses }, is_wanted))
}

fn product(table: &mut Table<'_, '_>, at: Range<usize>, utility: u128) -> Option<u64> {
    let utility = u64::try_from(utility).ok().filter(|utility| *utility <= i64::MAX as u64);
    if utility.is_none() {
        let remedy = "lower the weights, or utilities: only their ratios matter";
        table.fail(Some(at), "this utility is larger than 63 bits hold", remedy);
    }
    utility
}

/// The value of each dimension.
fn values_of(
    table: &mut Table<'_, '_>,
    quality: &Spanned<DeValue<'_>>,
    dimensions: &[Dimension],
) -> Option<Vec<usize>> {
    let DeValue::Table(given) = quality.get_ref() else {
        table.fail(
            Some(quality.span()),
            "here belongs a table",
            "`quality = { \"frame rate\" = \"10 fps\" }`",
        );
        return None;
    };
    let names: Vec<&str> = dimensions.iter().map(|one| one.name.as_str()).collect();
    let mut is_whole = true;
    for key in given.keys() {
        if !names.contains(&key.get_ref().as_ref()) {
            let reason = format!("there is no dimension `{}`", key.get_ref());
            table.fail(Some(key.span()), reason, did_you_mean(key.get_ref(), &names));
            is_whole = false;
        }
    }
    let mut chosen = Vec::with_capacity(dimensions.len());
    for dimension in dimensions {
        let Some(value) = given.get(dimension.name.as_str()) else {
            let reason = format!("the set-point says nothing of `{}`", dimension.name);
            table.fail(
                Some(quality.span()),
                reason,
                format!("add `\"{}\" = \"{}\"`", dimension.name, dimension.values[0]),
            );
            is_whole = false;
            continue;
        };
        let word = match value.get_ref() {
            DeValue::String(word) => word.as_ref(),
            _ => "",
        };
        match dimension.values.iter().position(|value| value == word) {
            Some(at) => chosen.push(at),
            None => {
                let known: Vec<&str> = dimension.values.iter().map(String::as_str).collect();
                let reason = format!("this is not a value of `{}`", dimension.name);
                table.fail(Some(value.span()), reason, did_you_mean(word, &known));
                is_whole = false;
            }
        }
    }
    is_whole.then_some(chosen)
}

/// What it takes of each resource; nothing of those that it does not name.
fn uses(table: &mut Table<'_, '_>, resources: &[Resource]) -> Option<Vec<u64>> {
    let example = format!("{{ {} = 10 }}", resources[0].name);
    let Some(value) = table.get("uses") else {
        table.missing("uses", &example);
        return None;
    };
    let DeValue::Table(given) = value.get_ref() else {
        table.fail(Some(value.span()), "here belongs a table", format!("`uses = {example}`"));
        return None;
    };
    let names: Vec<&str> = resources.iter().map(|one| one.name.as_str()).collect();
    let mut amounts = vec![0; resources.len()];
    let mut is_whole = true;
    for (key, value) in given.iter() {
        match names.iter().position(|name| *name == key.get_ref().as_ref()) {
            Some(at) => match amount(names[at], value, table.found) {
                Some(amount) => amounts[at] = amount,
                None => is_whole = false,
            },
            None => {
                let reason = format!("there is no resource `{}`", key.get_ref());
                table.fail(Some(key.span()), reason, did_you_mean(key.get_ref(), &names));
                is_whole = false;
            }
        }
    }
    is_whole.then_some(amounts)
}
