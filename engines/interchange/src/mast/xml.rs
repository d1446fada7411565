//! MAST's XML, put into the shape of its text: an element's name becomes the keyword and the `Type`, its attributes become words.

use super::system;
use super::tree::{Item, Value, Word};
use crate::reading::{Bytes, Reading};
use crate::xml::{self, elements, head};
use roxmltree::{Attribute, Node};

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

/// Elements whose text is a list of names.
const NAMES: [&str; 4] =
    ["Operation_List", "Shared_Resources_List", "Shared_Resources_To_Lock", "Shared_Resources_To_Unlock"];

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    let Some(document) = xml::parse(reading, text) else { return };
    let root = document.root_element();
    if root.tag_name().name() != "MAST_MODEL" {
        reading.refuse(head(&root), "it is not a model of MAST", "its outermost element is `MAST_MODEL`");
        return;
    }
    let mut items = Vec::new();
    xml::no_text(reading, &root);
    let of_model =
        root.attributes().filter(|attribute| attribute.namespace().is_none()).map(word_of).collect();
    items.push(Item { key: plain("Model", head(&root)), value: Value::List(of_model) });
    for element in elements(&root) {
        let name = element.tag_name().name();
        match KEYWORDS.iter().find(|(word, _)| *word == name) {
            Some((_, keyword)) => items.push(top(reading, &element, keyword)),
            None => reading.beyond(head(&element), format_args!("the element `{name}`")),
        }
    }
    system::read(reading, &items);
}

/// An element of the model.
fn top(reading: &mut Reading<'_>, element: &Node<'_, '_>, keyword: &str) -> Item {
    xml::no_text(reading, element);
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
            external.push(list("", leaf(reading, &child, kind)));
        } else if name == "Regular_Event" {
            internal.push(list("", internal_event(reading, &child)));
        } else if keyword == "Transaction" {
            handlers.push(list("", leaf(reading, &child, name)));
        } else if name.ends_with("_Policy") {
            items.push(list("Server_Sched_Parameters", leaf(reading, &child, name)));
        } else if let Some(kind) = name.strip_suffix("_Scheduler") {
            items.push(list("Policy", leaf(reading, &child, kind)));
        } else if name.ends_with("_Timer") {
            items.push(list("System_Timer", leaf(reading, &child, name)));
        } else if NAMES.contains(&name) {
            let key = if name == "Operation_List" { "Composite_Operation_List" } else { name };
            items.push(list(key, words(reading, &child)));
        } else {
            items.push(list(name, leaf(reading, &child, name)));
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
fn internal_event(reading: &mut Reading<'_>, element: &Node<'_, '_>) -> Vec<Item> {
    xml::no_text(reading, element);
    let mut items = with_type(element, "Regular");
    for item in &mut items {
        if item.is("Event") {
            item.key.text = "Name".to_owned();
        }
    }
    for child in elements(element) {
        let requirement = Value::List(leaf(reading, &child, child.tag_name().name()));
        items.push(Item { key: plain("Timing_Requirements", head(&child)), value: requirement });
    }
    items
}

/// `Type` and the attributes of an element that holds nothing else.
fn leaf(reading: &mut Reading<'_>, element: &Node<'_, '_>, kind: &str) -> Vec<Item> {
    empty(reading, element);
    xml::no_text(reading, element);
    with_type(element, kind)
}

/// Refuses the elements in an element.
fn empty(reading: &mut Reading<'_>, element: &Node<'_, '_>) {
    for child in elements(element) {
        let (name, within) = (child.tag_name().name(), element.tag_name().name());
        reading.beyond(head(&child), format_args!("the element `{name}` in `{within}`"));
    }
}

/// `Type` and the attributes.
fn with_type(element: &Node<'_, '_>, kind: &str) -> Vec<Item> {
    let at = head(element);
    let word = Value::Word(Word { text: kind.to_owned(), at: at.clone() });
    let mut items = vec![Item { key: plain("Type", at), value: word }];
    items.extend(element.attributes().map(word_of));
    items
}

fn word_of(attribute: Attribute<'_, '_>) -> Item {
    let value = Word { text: attribute.value().to_owned(), at: attribute.range_value() };
    Item { key: plain(attribute.name(), attribute.range_qname()), value: Value::Word(value) }
}

/// The words between an element's tags, also beside comments.
fn words(reading: &mut Reading<'_>, element: &Node<'_, '_>) -> Vec<Item> {
    empty(reading, element);
    for attribute in element.attributes() {
        let (name, of) = (attribute.name(), element.tag_name().name());
        reading.beyond(attribute.range_qname(), format_args!("`{name}` of `{of}`"));
    }
    let mut found = Vec::new();
    for part in element.children().filter(Node::is_text) {
        for word in part.text().unwrap_or_default().split_whitespace() {
            let value = Value::Word(Word { text: word.to_owned(), at: part.range() });
            found.push(Item { key: plain("", part.range()), value });
        }
    }
    found
}

fn plain(text: &str, at: Bytes) -> Word {
    Word { text: text.to_owned(), at }
}
