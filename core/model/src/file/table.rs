//! One table of a file that is not a system file: typed values, and a finding with its place for whatever is wrong.

use super::did_you_mean;
use crate::Diagnostics;
use horolog_time::Span;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong: the bytes, the reason, the remedy.
pub type Finding = (Range<usize>, String, String);

/// What kind of file it is.
#[derive(Clone, Copy, Debug)]
pub struct Document {
    /// What messages call it, as "an experiment".
    pub what: &'static str,
    /// What its `schema` says; `None`: it says none.
    pub schema: Option<&'static str>,
    /// One of its headers, as an example.
    pub header: &'static str,
    /// Its keys outside of tables, and its tables.
    pub sections: &'static [&'static str],
}

impl Document {
    /// Reads a text; `name` is what messages call it, `read` makes the value and adds what it finds wrong.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the text.
    pub fn read<T>(
        &self,
        name: &str,
        text: &str,
        read: impl FnOnce(&DeTable<'_>, &mut Vec<Finding>) -> Option<T>,
    ) -> Result<T, Diagnostics> {
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut found: Vec<Finding> = Vec::new();
        if let Some(error) = errors.first() {
            let place = error.span().unwrap_or(text.len()..text.len());
            let remedy =
                format!("write `key = value` lines below headers such as `{}`; text in quotes", self.header);
            found.push((place, format!("this is not valid TOML: {}", error.message()), remedy));
            return Err(Diagnostics::in_text(name, text, found));
        }
        self.check_sections(root.get_ref(), &mut found);
        match read(root.get_ref(), &mut found) {
            Some(value) if found.is_empty() => Ok(value),
            _ => {
                found.sort_by_key(|(place, ..)| place.start);
                Err(Diagnostics::in_text(name, text, found))
            }
        }
    }

    fn check_sections(&self, root: &DeTable<'_>, found: &mut Vec<Finding>) {
        for key in root.keys() {
            if !self.sections.contains(&key.get_ref().as_ref()) {
                let reason = format!("{} has no `{}`", self.what, key.get_ref());
                found.push((key.span(), reason, did_you_mean(key.get_ref(), self.sections)));
            }
        }
        let Some(schema) = self.schema else { return };
        let remedy = format!("begin the file with `schema = \"{schema}\"`");
        match root.get("schema") {
            None => found.push((0..0, "the file does not say what it is".to_owned(), remedy)),
            Some(value) => match value.get_ref() {
                DeValue::String(text) if text == schema => {}
                _ => found.push((value.span(), "this is another kind of file".to_owned(), remedy)),
            },
        }
    }
}

/// A table that is being read.
#[derive(Debug)]
pub struct Table<'t, 'f> {
    /// What messages call it: `[name]` or `[[name]]`.
    label: String,
    place: Range<usize>,
    table: Option<&'t DeTable<'t>>,
    known: BTreeSet<&'static str>,
    /// What was found wrong so far.
    pub found: &'f mut Vec<Finding>,
}

impl<'t, 'f> Table<'t, 'f> {
    /// The table `[name]`; one that is absent is read as empty.
    pub fn named(root: &'t DeTable<'t>, name: &'static str, found: &'f mut Vec<Finding>) -> Table<'t, 'f> {
        let (place, table) = match root.get(name) {
            None => (0..0, None),
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => (value.span(), Some(table)),
                _ => {
                    let remedy = format!("write `[{name}]` and its keys on the lines below");
                    found.push((value.span(), format!("`{name}` is a table"), remedy));
                    (value.span(), None)
                }
            },
        };
        Table { label: format!("[{name}]"), place, table, known: BTreeSet::new(), found }
    }

    /// A table that is there; `label` is what messages call it.
    pub fn of(
        label: &str,
        place: Range<usize>,
        table: &'t DeTable<'t>,
        found: &'f mut Vec<Finding>,
    ) -> Table<'t, 'f> {
        Table { label: label.to_owned(), place, table: Some(table), known: BTreeSet::new(), found }
    }

    /// Adds a finding; without a place it is that of the table.
    pub fn fail(&mut self, at: Option<Range<usize>>, reason: impl Into<String>, remedy: impl Into<String>) {
        self.found.push((at.unwrap_or(self.place.clone()), reason.into(), remedy.into()));
    }

    /// The value of a key, which from now on is a known one.
    pub fn get(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.known.insert(key);
        self.table?.get(key)
    }

    /// Where the table is in the file.
    #[must_use]
    pub fn whole(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Where the value of a key is in the file.
    pub fn place(&self, key: &str) -> Option<Range<usize>> {
        self.table.and_then(|table| table.get(key)).map(Spanned::span)
    }

    /// Adds the finding that a key is missing.
    pub fn missing(&mut self, key: &str, example: &str) {
        let reason = format!("{} has no `{key}`", self.label);
        self.fail(None, reason, format!("add `{key} = {example}` to `{}`", self.label));
    }

    /// A text that must be there.
    pub fn text(&mut self, key: &'static str, example: &str) -> Option<String> {
        let text = self.optional_text(key, example)?;
        if text.is_none() {
            self.missing(key, example);
        }
        text
    }

    /// A text; the outer `None`: it cannot be read, and that is among the findings.
    pub fn optional_text(&mut self, key: &'static str, example: &str) -> Option<Option<String>> {
        let Some(value) = self.get(key) else { return Some(None) };
        match value.get_ref() {
            DeValue::String(text) if text.chars().any(char::is_control) => {
                let remedy = "leave out line feeds, tabs and the like";
                self.fail(Some(value.span()), "this text has a control character", remedy);
                None
            }
            DeValue::String(text) if !text.trim().is_empty() => Some(Some(text.to_string())),
            _ => {
                let remedy = format!("`{key} = {example}`");
                self.fail(Some(value.span()), "here belongs text that is not empty", remedy);
                None
            }
        }
    }

    /// `true` or `false`; false where it is absent.
    pub fn truth(&mut self, key: &'static str) -> Option<bool> {
        let Some(value) = self.get(key) else { return Some(false) };
        match value.get_ref() {
            DeValue::Boolean(truth) => Some(*truth),
            _ => {
                self.fail(Some(value.span()), "here belongs `true` or `false`", format!("`{key} = true`"));
                None
            }
        }
    }

    /// A whole amount that must be there.
    pub fn amount(&mut self, key: &'static str, example: &str) -> Option<u64> {
        match self.get(key) {
            Some(value) => amount(key, value, self.found),
            None => {
                self.missing(key, example);
                None
            }
        }
    }

    /// A decimal number in units of 10^-`places`, or the default where the key is absent.
    pub fn decimal(&mut self, key: &'static str, places: u32, default: u64) -> Option<u64> {
        match self.get(key) {
            Some(value) => decimal(key, value, places, self.found),
            None => Some(default),
        }
    }

    /// A duration, or the default where the key is absent.
    pub fn span(&mut self, key: &'static str, default: Option<Span>, example: &str) -> Option<Span> {
        let Some(value) = self.get(key) else {
            if default.is_none() {
                self.missing(key, &format!("\"{example}\""));
            }
            return default;
        };
        let remedy = format!("a number and a unit in quotes: `{key} = \"{example}\"`");
        match value.get_ref() {
            DeValue::String(text) => match text.parse() {
                Ok(span) => Some(span),
                Err(error) => {
                    self.fail(Some(value.span()), format!("`{text}` is not a duration: {error}"), remedy);
                    None
                }
            },
            _ => {
                self.fail(Some(value.span()), "here belongs a duration", remedy);
                None
            }
        }
    }

    /// An integer within bounds, or the default where the key is absent.
    pub fn integer(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
        default: Option<u64>,
    ) -> Option<u64> {
        let Some(value) = self.get(key) else {
            if default.is_none() {
                self.missing(key, &bounds.start().to_string());
            }
            return default;
        };
        self.integer_of(key, value, &bounds)
    }

    /// The integer that a value is.
    pub fn integer_of(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        bounds: &RangeInclusive<u64>,
    ) -> Option<u64> {
        let remedy = format!("an integer from {} to {}", bounds.start(), bounds.end());
        let number = match value.get_ref() {
            DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => {
                self.fail(Some(value.span()), format!("`{key}` takes an integer here"), remedy);
                return None;
            }
        };
        let fits = number.and_then(|number| u64::try_from(number).ok()).filter(|n| bounds.contains(n));
        if fits.is_none() {
            self.fail(Some(value.span()), format!("this number is out of bounds for `{key}`"), remedy);
        }
        fits
    }

    /// A list of integers; a single one is a list of one.
    pub fn integers(
        &mut self,
        key: &'static str,
        value: &'t Spanned<DeValue<'t>>,
        bounds: &RangeInclusive<u64>,
    ) -> Option<Vec<u64>> {
        let DeValue::Array(list) = value.get_ref() else {
            return self.integer_of(key, value, bounds).map(|number| vec![number]);
        };
        if list.is_empty() {
            self.fail(Some(value.span()), "this list is empty", "give at least one value, or remove the key");
            return None;
        }
        let numbers: Vec<Option<u64>> =
            list.iter().map(|value| self.integer_of(key, value, bounds)).collect();
        let numbers: Vec<u64> = numbers.into_iter().collect::<Option<_>>()?;
        for (place, number) in numbers.iter().enumerate() {
            if numbers[..place].contains(number) {
                self.fail(Some(list[place].span()), format!("{number} is here twice"), "each value once");
                return None;
            }
        }
        Some(numbers)
    }

    /// Adds a finding for each key that was not read.
    pub fn close(self) {
        let Some(table) = self.table else { return };
        let known: Vec<&str> = self.known.into_iter().collect();
        for key in table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                let reason = format!("{} has no key `{}`", self.label, key.get_ref());
                self.found.push((key.span(), reason, did_you_mean(key.get_ref(), &known)));
            }
        }
    }
}

/// A whole amount of a resource.
pub fn amount(key: &str, value: &Spanned<DeValue<'_>>, found: &mut Vec<Finding>) -> Option<u64> {
    let remedy = "a whole number from 0 on; state amounts in a unit small enough, as bytes or microseconds";
    let number = match value.get_ref() {
        DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix()).ok(),
        _ => {
            found.push((value.span(), format!("`{key}` takes a whole number here"), remedy.to_owned()));
            return None;
        }
    };
    let number = number.and_then(|number| u64::try_from(number).ok()).filter(|n| *n <= i64::MAX as u64);
    if number.is_none() {
        found.push((value.span(), format!("this number is out of bounds for `{key}`"), remedy.to_owned()));
    }
    number
}

/// A decimal number from 0 on, in units of 10^-`places`: exactly.
pub fn decimal(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    places: u32,
    found: &mut Vec<Finding>,
) -> Option<u64> {
    let remedy = format!("a number from 0 on with at most {places} decimals, such as 2.5");
    let number = match value.get_ref() {
        DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix())
            .ok()
            .and_then(|whole| u64::try_from(whole).ok())
            .and_then(|whole| whole.checked_mul(10_u64.pow(places))),
        DeValue::Float(text) => scaled(text.as_str(), places),
        _ => {
            found.push((value.span(), format!("`{key}` takes a number here"), remedy));
            return None;
        }
    };
    if number.is_none() {
        found.push((value.span(), format!("this number cannot be kept exactly as `{key}`"), remedy));
    }
    number
}

/// Digits with a point and an exponent, times 10^`places`; none with a sign or where more decimals are left.
fn scaled(text: &str, places: u32) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text).replace('_', "");
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text.as_str(), 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut number = 0_u64;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    let mut shift = exponent.checked_add(i32::try_from(places).ok()?)?;
    shift = shift.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    while number > 0 && shift < 0 && number.is_multiple_of(10) {
        (number, shift) = (number / 10, shift + 1);
    }
    match u32::try_from(shift) {
        _ if number == 0 => Some(0),
        Ok(shift) => number.checked_mul(10_u64.checked_pow(shift)?),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_kept_exactly_or_not_at_all() {
        for (text, value) in [
            ("2.5", Some(2_500)),
            ("0.001", Some(1)),
            ("0.0010", Some(1)),
            ("0.0001", None),
            ("1e2", Some(100_000)),
            ("12.5e-2", Some(125)),
            ("12.5e-3", None),
            ("0e99", Some(0)),
            ("1e99", None),
            ("-1.0", None),
            ("inf", None),
            ("1_000.0", Some(1_000_000)),
            ("18446744073709551.615", Some(u64::MAX)),
            ("18446744073709551.616", None),
        ] {
            assert_eq!(scaled(text, 3), value, "{text}");
        }
    }
}
