//! Turns nodes into values of the model; every failure becomes a message and reading goes on.

use super::decimal::{self, DecimalError};
use super::foreign;
use super::keys::{Kind, Section};
use super::repair::{self, KnownTable, Refused, Repair};
use super::suggest::{did_you_mean, guess, meant, nearest};
use super::tree::{Entry, Node, Table, Value};
use crate::diagnostic::Diagnostic;
use crate::path;
use crate::source::{self, Place};
use horolog_time::{ParseSpanError, Span};
use std::collections::{BTreeMap, BTreeSet};

/// What reading has found so far.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) found: Vec<Diagnostic>,
    /// How many values could not be read: what has one is not there for the checks. A key that nobody knows keeps nothing from being
    /// read.
    pub(super) unread: usize,
    /// How many of the findings are about single values; the others are about what the values mean together.
    pub(super) of_values: usize,
    /// What could not be read, for finding what is wrong beside it.
    pub(super) refused: Vec<Refused>,
    /// The tables that were read, by their paths.
    pub(super) tables: BTreeMap<String, KnownTable>,
    /// Keys that are given under a wrong name: their absence is told by that name.
    pub(super) misnamed: BTreeSet<String>,
    pub(super) places: BTreeMap<String, Place>,
    /// What tasks of low criticality may execute in the high mode, by their paths.
    pub(super) degraded: BTreeMap<String, horolog_time::Span>,
}

impl Reader {
    pub(super) fn fail(
        &mut self,
        node: &Node,
        path: &str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.refuse(Diagnostic::new(reason, remedy).at(path).place(&node.place));
    }

    /// A value that cannot be read.
    pub(super) fn refuse(&mut self, diagnostic: Diagnostic) {
        self.unread += 1;
        let refused = self.refused_value(&diagnostic);
        self.refused.push(refused);
        self.found.push(diagnostic);
    }

    /// What a user may do about it: of two values that contradict each other either one may go.
    fn refused_value(&self, diagnostic: &Diagnostic) -> Refused {
        let path = diagnostic.path().unwrap_or_default().to_owned();
        let repairs = match (diagnostic.its_place().cloned(), diagnostic.first_other().cloned()) {
            (Some(place), Some(other)) => vec![Repair::Remove(place), Repair::Remove(other)],
            (Some(place), None) => {
                let is_item = self.places.get(&path).is_some_and(|whole| *whole != place);
                let kind = repair::kind_at(&path, &self.tables);
                match if is_item { kind.and_then(repair::kind_of_items) } else { kind } {
                    Some(kind) => vec![Repair::Set(place, kind)],
                    None => vec![Repair::Remove(place)],
                }
            }
            (None, _) => Vec::new(),
        };
        Refused { path, is_missing: false, repairs }
    }

    /// A key that is not there, and of which it is told elsewhere why.
    pub(super) fn may_be_missing(&mut self, path: &str) {
        self.unread += 1;
        self.refused.push(self.missing(path));
    }

    fn missing(&self, path: &str) -> Refused {
        let repairs = self.missing_key(path).into_iter().collect();
        Refused { path: path.to_owned(), is_missing: true, repairs }
    }

    /// A key that its table lacks; `None` where there is no such table or key.
    fn missing_key(&self, path: &str) -> Option<Repair> {
        let above = path::parent(path)?;
        let table = self.tables.get(above)?;
        let key = table.key(&path[above.len() + 1..])?;
        Some(Repair::Add(table.first.clone(), key.name, key.kind))
    }

    /// Says what a user may do about the value that was refused last, where it is not the value alone that is wrong.
    pub(super) fn repaired_by(&mut self, repairs: Vec<Repair>) {
        if let Some(refused) = self.refused.last_mut() {
            refused.repairs = repairs;
        }
    }

    /// The value that was refused last does not belong there, or the key at `path` has to have one of these words.
    pub(super) fn or_with(&mut self, path: &str, words: &'static [&'static str]) {
        let word = self.give(path, Kind::Word(words));
        let Some(refused) = self.refused.last_mut() else { return };
        for repair in &mut refused.repairs {
            if let Repair::Set(place, _) = repair
                && self.places.get(&refused.path) == Some(place)
            {
                *repair = Repair::Remove(place.clone());
            }
        }
        refused.repairs.extend(word);
    }

    /// How a key gets a value, whether the file gives it or not.
    pub(super) fn give(&self, path: &str, kind: Kind) -> Option<Repair> {
        let missing = self.missing_key(path)?;
        match (self.places.get(path), missing) {
            (Some(place), _) => Some(Repair::Set(place.clone(), kind)),
            (None, Repair::Add(first, key, _)) => Some(Repair::Add(first, key, kind)),
            (None, other) => Some(other),
        }
    }

    /// A failure at `path`, wherever that stands by now.
    pub(super) fn fail_at(&mut self, path: &str, reason: impl Into<String>, remedy: impl Into<String>) {
        if self.misnamed.contains(path) {
            // Told already, by the name that it has.
            self.may_be_missing(path);
            return;
        }
        let place = source::find(&self.places, path);
        self.refuse(Diagnostic::new(reason, remedy).at(path).maybe_place(place));
        if !self.places.contains_key(path) {
            let missing = self.missing(path);
            self.refused.pop();
            self.refused.push(missing);
        }
    }

    pub(super) fn wrong_type(&mut self, node: &Node, path: &str, wanted: &str, remedy: &str) {
        self.fail(node, path, format!("this is {} where {wanted} belongs", node.value.noun()), remedy);
    }

    /// A table whose keys are all known; registers the place of each value.
    pub(super) fn table<'t>(&mut self, node: &'t Node, path: &str, section: &Section) -> Option<&'t Table> {
        let Value::Table(table) = &node.value else {
            let remedy = foreign::table_of(&node.value, section)
                .unwrap_or_else(|| format!("write a table: {}", example_of(section)));
            self.wrong_type(node, path, "a table", &remedy);
            return None;
        };
        self.places.entry(path.to_owned()).or_insert_with(|| node.place.clone());
        if let Some(first) = table.entries.first() {
            let first = first.key_place.clone();
            self.tables.insert(path.to_owned(), KnownTable { first, keys: section.keys });
        }
        let known: Vec<&str> = section.keys.iter().map(|key| key.name).collect();
        for entry in &table.entries {
            let at = path::join(path, &entry.key);
            if !known.contains(&entry.key.as_str()) {
                let reason = format!("{} has no key `{}`", section.noun, entry.key);
                let remedy = unknown_key(entry, &known, section);
                let near = || nearest(&entry.key, &known).map(|(_, known)| known);
                let meant = match foreign::instead(&entry.key, section, &entry.node.value) {
                    Some(_) => foreign::stands_for(&entry.key, section),
                    None => meant(&entry.key, &known).or_else(near),
                };
                if let Some(meant) = meant {
                    self.misnamed.insert(path::join(path, meant));
                }
                self.found.push(Diagnostic::new(reason, remedy).at(&at).place(&entry.key_place));
            }
            self.places.insert(at, entry.node.place.clone());
        }
        Some(table)
    }

    /// The value of a key that must be there.
    pub(super) fn required<'t>(
        &mut self,
        table: &'t Table,
        path: &str,
        key: &str,
        section: &Section,
    ) -> Option<&'t Node> {
        let node = table.get(key);
        if node.is_none() {
            let remedy = format!("add `{}`", super::example::line(section, key));
            self.fail_at(&path::join(path, key), format!("{} needs a `{key}`", section.noun), remedy);
        }
        node
    }

    pub(super) fn text(&mut self, node: &Node, path: &str) -> Option<String> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => {
                self.wrong_type(node, path, "text", "put it into quotes");
                None
            }
        }
    }

    pub(super) fn texts(&mut self, node: &Node, path: &str) -> Option<Vec<String>> {
        let Value::List(list) = &node.value else {
            self.wrong_type(node, path, "a list of texts", "write a list, as in `[\"one\", \"two\"]`");
            return None;
        };
        let texts: Vec<Option<String>> =
            list.iter().enumerate().map(|(index, node)| self.item(node, path, index, Reader::text)).collect();
        texts.into_iter().collect()
    }

    pub(super) fn span(&mut self, node: &Node, path: &str) -> Option<Span> {
        let Value::Text(text) = &node.value else {
            let remedy = match &node.value {
                Value::Integer(Some(n)) if *n >= 0 => {
                    format!("write the unit: `\"{n} ms\"`, if milliseconds are meant")
                }
                _ => "write text with a number and a unit, as in `\"1.5 ms\"`".to_owned(),
            };
            self.wrong_type(node, path, "a duration", &remedy);
            return None;
        };
        match text.parse() {
            Ok(span) => Some(span),
            Err(error) => {
                let (reason, remedy) = bad_span(text, &error);
                let remedy = foreign::implicit(text, path).unwrap_or(remedy);
                self.fail(node, path, reason, remedy);
                None
            }
        }
    }

    pub(super) fn spans(&mut self, node: &Node, path: &str) -> Option<Vec<Span>> {
        let Value::List(list) = &node.value else {
            self.wrong_type(node, path, "a list of durations", "write a list, as in `[\"3 ms\", \"8 ms\"]`");
            return None;
        };
        let spans: Vec<Option<Span>> =
            list.iter().enumerate().map(|(index, node)| self.item(node, path, index, Reader::span)).collect();
        spans.into_iter().collect()
    }

    /// One item of a list, which has a place of its own.
    pub(super) fn item<T>(
        &mut self,
        node: &Node,
        path: &str,
        index: usize,
        read: impl Fn(&mut Reader, &Node, &str) -> Option<T>,
    ) -> Option<T> {
        let path = path::by_place(path, index);
        self.places.insert(path.clone(), node.place.clone());
        read(self, node, &path)
    }

    /// An integer of the type that the caller wants.
    pub(super) fn integer<T: TryFrom<i128>>(&mut self, node: &Node, path: &str, range: &str) -> Option<T> {
        match &node.value {
            Value::Integer(number) => {
                let number = number.and_then(|n| T::try_from(n).ok());
                if number.is_none() {
                    self.fail(node, path, "this number is out of range", format!("use {range}"));
                }
                number
            }
            _ => {
                let remedy = foreign::instead_of_value(node, path)
                    .unwrap_or_else(|| format!("use {range}, without quotes and decimals"));
                self.wrong_type(node, path, "an integer", &remedy);
                None
            }
        }
    }

    pub(super) fn word<T>(
        &mut self,
        node: &Node,
        path: &str,
        words: &[&str],
        from_word: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let Value::Text(text) = &node.value else {
            let remedy = format!("use {}", list_of(words));
            self.wrong_type(node, path, "a word", &remedy);
            return None;
        };
        let value = from_word(text);
        if value.is_none() {
            self.fail(
                node,
                path,
                format!("`{text}` is not a word that is known here"),
                did_you_mean(text, words),
            );
        }
        value
    }

    /// Looks at the values of these keys, of which it is not known whether they belong here.
    pub(super) fn look_at(&mut self, table: &Table, path: &str, section: &Section, keys: &[&str]) {
        for key in section.keys.iter().filter(|key| keys.contains(&key.name)) {
            if let Some(node) = table.get(key.name) {
                self.look_at_value(node, &path::join(path, key.name), key.kind);
            }
        }
    }

    fn look_at_value(&mut self, node: &Node, path: &str, kind: Kind) {
        match kind {
            Kind::Duration => {
                self.span(node, path);
            }
            Kind::Durations => drop(self.spans(node, path)),
            Kind::Integer => {
                self.integer::<i64>(node, path, "an integer of 64 bits");
            }
            Kind::Word(words) => {
                self.word(node, path, words, |word| words.contains(&word).then_some(()));
            }
            Kind::Text => drop(self.text(node, path)),
            Kind::Texts => drop(self.texts(node, path)),
            _ => {}
        }
    }

    /// A decimal number in units of 10^-`places`, exactly.
    pub(super) fn decimal(&mut self, node: &Node, path: &str, places: u32, example: &str) -> Option<u64> {
        let result = match &node.value {
            Value::Integer(Some(n)) => decimal::scaled(&n.to_string(), places),
            Value::Integer(None) => Err(DecimalError::TooLarge),
            Value::Decimal(digits) => decimal::scaled(digits, places),
            _ => {
                let remedy = format!("write a number without quotes, as in `{example}`");
                self.wrong_type(node, path, "a decimal number", &remedy);
                return None;
            }
        };
        let (reason, remedy) = match result {
            Ok(number) => return Some(number),
            Err(DecimalError::NotFinite) => {
                ("this is not a finite number".to_owned(), format!("write one, as in `{example}`"))
            }
            Err(DecimalError::Negative) => {
                ("this number is below 0".to_owned(), "use a number above 0".to_owned())
            }
            Err(DecimalError::TooFine) => (
                format!("this number has more than {places} decimals and would not stay exact"),
                format!("round it to at most {places} decimals"),
            ),
            Err(DecimalError::TooLarge) => {
                ("this number is too large".to_owned(), "use a smaller one".to_owned())
            }
        };
        self.fail(node, path, reason, remedy);
        None
    }
}

/// A remedy for a key that its section does not know: another section that does, or a near name.
fn unknown_key(entry: &Entry, known: &[&str], section: &Section) -> String {
    let key = entry.key.as_str();
    if let Some(instead) = foreign::instead(key, section, &entry.node.value) {
        return instead;
    }
    let homes = super::keys::homes_of(key);
    // A slip of one letter is nearer than another section.
    let is_slip = nearest(key, known).is_some_and(|(distance, _)| distance <= 1);
    if is_slip || meant(key, known).is_some() {
        did_you_mean(key, known)
    } else if homes.is_empty() {
        guess(key, known).or_else(|| foreign::elsewhere(key)).unwrap_or_else(|| did_you_mean(key, known))
    } else {
        format!("it belongs below {}", homes.join(" or "))
    }
}

/// What a text that is not a duration may mean, as the file says it.
fn meant_span(text: &str) -> Option<String> {
    let text = text.trim();
    let start = text.find(|c: char| !(c.is_ascii_digit() || ".,/".contains(c))).unwrap_or(text.len());
    let (number, unit) = (&text[..start], text[start..].trim());
    if number.contains(',') || number.matches('.').count() > 1 {
        return Some(meant_separators(number, unit));
    }
    let whole = |text: &str| text.parse::<u128>().ok().filter(|&number| number > 0 && number < 1 << 64);
    if let Some((above, below)) = number.split_once('/') {
        let (above, below) = (whole(above)?, whole(below)?);
        let scale = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => return None,
        };
        return whole_remedy(above * scale / below, (above * scale).is_multiple_of(below));
    }
    let seconds = |scale: u128| whole(number).map(|number| format!("write `\"{} s\"`", number * scale));
    let hertz = |scale: u128| {
        let rate = whole(number)? * scale;
        let (period, is_whole) = (1_000_000_000 / rate, 1_000_000_000_u128.is_multiple_of(rate));
        let remedy = whole_remedy(period, is_whole)?;
        let remedy = remedy.strip_prefix("write ").map_or_else(|| format!("and {remedy}"), str::to_owned);
        Some(format!("that is a rate: write the time between two, {remedy}"))
    };
    let same = |unit: &str| {
        let text = format!("{number} {unit}");
        text.parse::<Span>().ok().map(|_| format!("write `\"{text}\"`"))
    };
    match unit.to_lowercase().as_str() {
        "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => same("ns"),
        "usec" | "usecs" | "microsecond" | "microseconds" | "mus" => same("us"),
        "msec" | "msecs" | "millisecond" | "milliseconds" | "millis" => same("ms"),
        "sec" | "secs" | "second" | "seconds" => same("s"),
        "sample" | "samples" | "frame" | "frames" => {
            Some("divide by their rate: 64 samples at 48 kHz are `\"1.333333 ms\"`".to_owned())
        }
        "min" | "minute" | "minutes" => seconds(60),
        "h" | "hour" | "hours" => seconds(3_600),
        "hz" | "fps" => hertz(1),
        "khz" => hertz(1_000),
        "mhz" => hertz(1_000_000),
        _ => None,
    }
}

/// How to write a time of `least` ns, or of a part of a nanosecond more. `None` where no duration lies there. Who rounds has to know
/// in which direction: a period that is shorter asks for more, and so does an execution that is longer.
fn whole_remedy(least: u128, is_whole: bool) -> Option<String> {
    let span = |ns: u128| u64::try_from(ns).ok().map(Span::from_ns);
    let below = span(least).filter(|span| !span.is_zero())?;
    if is_whole {
        return Some(format!("write `\"{below}\"`"));
    }
    let above = span(least + 1)?;
    Some(format!(
        "round it: `\"{below}\"` is safe for a period or a deadline, `\"{above}\"` for an execution time"
    ))
}

/// The whole nanoseconds of a text that is a duration but for a part of a nanosecond.
fn whole_part(text: &str) -> Option<u128> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))?;
    let (number, unit) = (text[..end].replace('_', ""), text[end..].trim());
    let (whole, decimals) = number.split_once('.')?;
    let places = match unit {
        "ns" => 0,
        "ms" => 6,
        "s" => 9,
        _ => 3,
    };
    let kept = &decimals[..places.min(decimals.len())];
    let text = if kept.is_empty() { format!("{whole} {unit}") } else { format!("{whole}.{kept} {unit}") };
    text.parse::<Span>().ok().map(|span| u128::from(span.as_ns()))
}

/// What a number with commas, or with several points, may mean: a comma before three digits may group thousands and may mark decimals.
fn meant_separators(number: &str, unit: &str) -> String {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let grouped = |text: &str, separator: char| {
        let (first, rest) = text.split_once(separator)?;
        let is_first = is_digits(first) && first.len() <= 3 && !first.starts_with('0');
        let are_threes = rest.split(separator).all(|group| is_digits(group) && group.len() == 3);
        (is_first && are_threes).then(|| text.replace(separator, ""))
    };
    let decimal = |whole: String, decimals: &str| {
        let decimals = decimals.trim_end_matches('0');
        if decimals.is_empty() { whole } else { format!("{whole}.{decimals}") }
    };
    let thousands = match number.split_once('.') {
        Some((whole, decimals)) if is_digits(decimals) => {
            grouped(whole, ',').map(|whole| decimal(whole, decimals))
        }
        Some(_) => grouped(number, '.'),
        None => grouped(number, ','),
    };
    let decimals = number.split_once(',').filter(|(_, decimals)| is_digits(decimals));
    let decimals = decimals.and_then(|(whole, decimals)| {
        let whole = if is_digits(whole) { Some(whole.to_owned()) } else { grouped(whole, '.') };
        Some(decimal(whole?, decimals))
    });
    let written = |number: Option<String>| {
        number.map(|number| format!("{number} {unit}")).filter(|text| text.parse::<Span>().is_ok())
    };
    match (written(thousands), written(decimals)) {
        (Some(thousands), Some(decimals)) => format!(
            "write `\"{thousands}\"` if the comma groups thousands, `\"{decimals}\"` if it marks decimals"
        ),
        (Some(thousands), None) => format!("write it without separators: `\"{thousands}\"`"),
        (None, Some(decimals)) => format!("use a point: `\"{decimals}\"`"),
        (None, None) => "write a decimal number and a unit, as in `\"1.5 ms\"`".to_owned(),
    }
}

/// Reason and remedy for a text that is not a duration.
fn bad_span(text: &str, error: &ParseSpanError) -> (String, String) {
    if let Some(remedy) = meant_span(text) {
        return (format!("`{text}` is not a duration"), remedy);
    }
    match error {
        ParseSpanError::MissingUnit => {
            (format!("`{text}` has no unit"), format!("add ns, us, ms or s, as in `\"{} ms\"`", text.trim()))
        }
        ParseSpanError::UnknownUnit(unit) => {
            (format!("`{unit}` is not a unit of time"), "use ns, us (or µs), ms or s".to_owned())
        }
        ParseSpanError::NotWhole => (
            format!("`{text}` is not a whole number of nanoseconds"),
            whole_part(text.trim())
                .and_then(|least| whole_remedy(least, false))
                .unwrap_or_else(|| "round it: one nanosecond is the finest step".to_owned()),
        ),
        ParseSpanError::TooLong => {
            (format!("`{text}` is longer than 2^64 - 1 ns (584 years)"), "use a smaller value".to_owned())
        }
        _ if text.trim_start().starts_with('-') => {
            (format!("`{text}` is below zero"), "durations are never negative".to_owned())
        }
        _ => (
            format!("`{text}` is not a duration"),
            "write a decimal number and a unit, as in `\"1.5 ms\"`".to_owned(),
        ),
    }
}

fn list_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn example_of(section: &Section) -> String {
    match section.header.strip_prefix('[') {
        Some(_) => format!("`{}` on a line of its own, its keys below", section.header),
        None => format!("`{} = {{ … }}`", section.header),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reading_of_a_number_with_separators_is_offered() {
        let both = |thousands: &str, decimals: &str| {
            format!(
                "write `\"{thousands}\"` if the comma groups thousands, `\"{decimals}\"` if it marks decimals"
            )
        };
        let (point, plain) = (
            |text: &str| format!("use a point: `\"{text}\"`"),
            |text: &str| format!("write it without separators: `\"{text}\"`"),
        );
        let generic = "write a decimal number and a unit, as in `\"1.5 ms\"`".to_owned();
        for (text, remedy) in [
            ("10,000 us", both("10000 us", "10 us")),
            ("10,000us", both("10000 us", "10 us")),
            ("1,234 ms", both("1234 ms", "1.234 ms")),
            ("999,100 ns", plain("999100 ns")),
            // Not three digits behind it, or a zero before it: decimals alone.
            ("10,00 us", point("10 us")),
            ("10,0000 us", point("10 us")),
            ("1234,567 ms", point("1234.567 ms")),
            ("0,200 ms", point("0.2 ms")),
            ("10,5 ms", point("10.5 ms")),
            ("1,000,000 ns", plain("1000000 ns")),
            ("1,234.5 ms", plain("1234.5 ms")),
            ("1.234,5 ms", point("1234.5 ms")),
            ("1.000.000 ns", plain("1000000 ns")),
            ("1.5,3 ms", generic.clone()),
            ("1,00,000 ms", generic.clone()),
            ("1.2.3 ms", generic.clone()),
            ("1,5,3 ms", generic.clone()),
            (",5 ms", generic.clone()),
            ("5, ms", generic.clone()),
            ("10,000 min", generic.clone()),
            ("10,000", generic.clone()),
        ] {
            let error = text.parse::<Span>().expect_err("no duration");
            assert_eq!(bad_span(text, &error), (format!("`{text}` is not a duration"), remedy));
        }
        assert_eq!("10_000 us".parse::<Span>(), "10000 us".parse());
    }

    /// 128 frames at 48 kHz, as a decimal and as a fraction, and whole values one step beside.
    #[test]
    fn the_whole_values_on_both_sides_are_offered_and_which_is_safe() {
        let both = |below: &str, above: &str| {
            format!(
                "round it: `\"{below}\"` is safe for a period or a deadline, `\"{above}\"` for an execution time"
            )
        };
        let finest = "round it: one nanosecond is the finest step".to_owned();
        for (text, remedy) in [
            ("2.66666666666 ms", both("2.666666 ms", "2.666667 ms")),
            (" 2.666_666_66 ms", both("2.666666 ms", "2.666667 ms")),
            ("2666.66666 us", both("2.666666 ms", "2.666667 ms")),
            ("2666.66666 µs", both("2.666666 ms", "2.666667 ms")),
            ("0.00266666666 s", both("2.666666 ms", "2.666667 ms")),
            ("0.9999999 ms", both("999.999 us", "1 ms")),
            ("1.5 ns", both("1 ns", "2 ns")),
            ("128/48000 s", both("2.666666 ms", "2.666667 ms")),
            (
                "48 kHz",
                format!("that is a rate: write the time between two, and {}", both("20.833 us", "20.834 us")),
            ),
            ("50 kHz", "that is a rate: write the time between two, `\"20 us\"`".to_owned()),
            ("3/2 ms", "write `\"1.5 ms\"`".to_owned()),
            // No time is no period, and the longest time has nothing above.
            ("0.5 ns", finest.clone()),
            ("18446744073709551615.5 ns", finest.clone()),
            ("18446744073709551614.5 ns", both("18446744073.709551614 s", "18446744073.709551615 s")),
        ] {
            let error = text.parse::<Span>().expect_err("no duration");
            assert_eq!(bad_span(text, &error).1, remedy, "{text}");
        }
        assert_eq!("2.666666 ms".parse(), Ok(Span::from_ns(2_666_666)));
    }
}
