//! MAST's XML, put into the shape of its text: an element's name becomes the keyword and the `Type`, its attributes become words.

use super::system;
use super::tree::{Item, Value, Word};
use crate::reading::{Bytes, Reading};
use roxmltree::{Document, Node, TextPos};

/// Elements by the end of their name, and the keyword of the text.
const KEYWORDS: [(&str, &str); 14] = [
    ("Regular_Processor", "Processing_Resource"),
    ("Packet_Based_Network", "Processing_Resource"),
    ("RTEP_Network", "Processing_Resource"),
    ("Primary_Scheduler", "Scheduler"),
    ("Secondary_Scheduler", "Scheduler"),
    ("Regular_Scheduling_Server", "Scheduling_Server"),
    ("Immediate_Ceiling_Resource", "Shared_Resource"),
    ("Priority_Inheritance_Resource", "Shared_Resource"),
    ("SRP_Resource", "Shared_Resource"),
    ("Simple_Operation", "Operation"),
    ("Composite_Operation", "Operation"),
    ("Enclosing_Operation", "Operation"),
    ("Message_Transmission", "Operation"),
    ("Regular_Transaction", "Transaction"),
];

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let at = byte_of(text, error.pos());
            reading.refuse(at..at + 1, format!("it is not XML: {error}"), "mend the XML");
            return;
        }
    };
    let root = document.root_element();
    if root.tag_name().name() != "MAST_MODEL" {
        reading.refuse(head(&root), "it is no model of MAST", "its outermost element is `MAST_MODEL`");
        return;
    }
    let mut items = Vec::new();
    if let Some(name) = root.attribute_node("Model_Name") {
        let word = Word { text: name.value().to_owned(), at: name.range_value() };
        let model = Item { key: plain("Model_Name", name.range_value()), value: Value::Word(word) };
        items.push(Item { key: plain("Model", head(&root)), value: Value::List(vec![model]) });
    }
    for element in elements(&root) {
        let name = element.tag_name().name();
        match KEYWORDS.iter().find(|(word, _)| *word == name) {
            Some((_, keyword)) => items.push(top(&element, keyword)),
            None => reading.beyond(head(&element), format_args!("the element `{name}`")),
        }
    }
    system::read(reading, &items);
}

/// An element of the model.
fn top(element: &Node<'_, '_>, keyword: &str) -> Item {
    let name = element.tag_name().name();
    let kind = match name {
        "Regular_Scheduling_Server" | "Regular_Transaction" => "Regular",
        _ => name.strip_suffix("_Operation").unwrap_or(name),
    };
    let mut items = with_type(element, kind);
    let (mut external, mut internal, mut handlers) = (Vec::new(), Vec::new(), Vec::new());
    for child in elements(element) {
        let name = child.tag_name().name();
        let at = head(&child);
        let list =
            |key: &str, items: Vec<Item>| Item { key: plain(key, at.clone()), value: Value::List(items) };
        if let Some(kind) = name.strip_suffix("_External_Event") {
            external.push(list("", with_type(&child, kind)));
        } else if name == "Regular_Event" {
            internal.push(list("", internal_event(&child)));
        } else if keyword == "Transaction" {
            handlers.push(list("", with_type(&child, name)));
        } else if name.ends_with("_Policy") {
            items.push(list("Server_Sched_Parameters", with_type(&child, name)));
        } else if let Some(kind) = name.strip_suffix("_Scheduler") {
            items.push(list("Policy", with_type(&child, kind)));
        } else if name.ends_with("_Timer") {
            items.push(list("System_Timer", with_type(&child, name)));
        } else if elements(&child).next().is_none() && child.attributes().len() == 0 {
            items.push(list(
                if name == "Operation_List" { "Composite_Operation_List" } else { name },
                words(&child),
            ));
        } else {
            items.push(list(name, with_type(&child, name)));
        }
    }
    if keyword == "Transaction" {
        for (key, list) in
            [("External_Events", external), ("Internal_Events", internal), ("Event_Handlers", handlers)]
        {
            items.push(Item { key: plain(key, head(element)), value: Value::List(list) });
        }
    }
    Item { key: plain(keyword, head(element)), value: Value::List(items) }
}

/// An event inside a transaction, with its requirement in the place that the text gives it.
fn internal_event(element: &Node<'_, '_>) -> Vec<Item> {
    let mut items = with_type(element, "Regular");
    for item in &mut items {
        if item.is("Event") {
            item.key.text = "Name".to_owned();
        }
    }
    for child in elements(element) {
        let requirement = Value::List(with_type(&child, child.tag_name().name()));
        items.push(Item { key: plain("Timing_Requirements", head(&child)), value: requirement });
    }
    items
}

/// `Type` and the attributes.
fn with_type(element: &Node<'_, '_>, kind: &str) -> Vec<Item> {
    let word = |text: &str, at: Bytes| Value::Word(Word { text: text.to_owned(), at });
    let at = head(element);
    let mut items = vec![Item { key: plain("Type", at.clone()), value: word(kind, at) }];
    items.extend(element.attributes().map(|attribute| Item {
        key: plain(attribute.name(), attribute.range_qname()),
        value: word(attribute.value(), attribute.range_value()),
    }));
    items
}

/// The words between an element's tags.
fn words(element: &Node<'_, '_>) -> Vec<Item> {
    let at = head(element);
    let text = element.text().unwrap_or_default();
    let item = |text: &str| Item {
        key: plain("", at.clone()),
        value: Value::Word(Word { text: text.to_owned(), at: at.clone() }),
    };
    text.split_whitespace().map(item).collect()
}

fn plain(text: &str, at: Bytes) -> Word {
    Word { text: text.to_owned(), at }
}

fn elements<'a, 'b>(of: &Node<'a, 'b>) -> impl Iterator<Item = Node<'a, 'b>> {
    of.children().filter(Node::is_element)
}

/// The beginning of an element: `<` and its name.
fn head(element: &Node<'_, '_>) -> Bytes {
    let start = element.range().start;
    start..start + 1 + element.tag_name().name().len()
}

/// The byte of a line and a column, both from 1.
pub(crate) fn byte_of(text: &str, position: TextPos) -> usize {
    let before: usize =
        text.split_inclusive('\n').take(position.row.saturating_sub(1) as usize).map(str::len).sum();
    let line = text.get(before..).unwrap_or_default();
    let column = position.col.saturating_sub(1) as usize;
    let within = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    (before + within).min(text.len().saturating_sub(1))
}
