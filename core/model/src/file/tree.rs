//! The file's values as a tree in which every key and value knows its place, whichever text it came from.

use super::syntax;
use crate::diagnostic::Diagnostic;
use crate::source::Place;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A value as TOML has it; numbers keep their digits, so that decimals stay exact.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    /// `None` beyond 128 bits.
    Integer(Option<i128>),
    Decimal(String),
    Boolean,
    Datetime,
    List(Vec<Node>),
    Table(Table),
}

impl Value {
    /// What a message calls it.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "an integer",
            Self::Decimal(_) => "a decimal number",
            Self::Boolean => "true or false",
            Self::Datetime => "a date or time",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// The keys of a table in the order of the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// One key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }
}

/// The root table of the text with index `text`, and what is wrong with its syntax.
pub(crate) fn parse(content: &str, text: usize) -> (Table, Vec<Diagnostic>) {
    let (root, errors) = DeTable::parse_recoverable(content);
    let table = convert_table(root.get_ref(), text);
    let found = syntax::diagnostics(content, text, &table, &errors);
    (table, found)
}

/// A single value, whose bytes stand from `base` on in the text with index `text`.
pub(crate) fn parse_value(content: &str, text: usize, base: usize) -> Result<Node, toml::de::Error> {
    let value = DeValue::parse(content)?;
    let mut node = convert(&value, text);
    shift(&mut node, base);
    Ok(node)
}

fn shift(node: &mut Node, base: usize) {
    node.place.range = node.place.range.start + base..node.place.range.end + base;
    match &mut node.value {
        Value::List(list) => list.iter_mut().for_each(|node| shift(node, base)),
        Value::Table(table) => {
            for entry in &mut table.entries {
                let range = &mut entry.key_place.range;
                *range = range.start + base..range.end + base;
                shift(&mut entry.node, base);
            }
        }
        _ => {}
    }
}

fn convert(value: &Spanned<DeValue<'_>>, text: usize) -> Node {
    let place = Place { text, range: value.span() };
    let value = match value.get_ref() {
        DeValue::String(content) => Value::Text(content.clone().into_owned()),
        DeValue::Integer(digits) => {
            Value::Integer(i128::from_str_radix(digits.as_str(), digits.radix()).ok())
        }
        DeValue::Float(digits) => Value::Decimal(digits.as_str().to_owned()),
        DeValue::Boolean(_) => Value::Boolean,
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Array(list) => Value::List(list.iter().map(|value| convert(value, text)).collect()),
        DeValue::Table(table) => Value::Table(convert_table(table, text)),
    };
    Node { place, value }
}

fn convert_table(table: &DeTable<'_>, text: usize) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().clone().into_owned(),
            key_place: Place { text, range: key.span() },
            node: convert(value, text),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_place.range.start);
    Table { entries }
}
