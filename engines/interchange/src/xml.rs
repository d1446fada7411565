//! XML of other tools: parsed within limits, and everything that a reader does not ask for refused by its name.

use crate::reading::{Bytes, Reading};
use roxmltree::{Document, Node, TextPos};

/// Attributes of one element, and declarations of namespaces in all. More is no file of a tool, and the time of the parser
/// grows with the square of the first and with the second times the elements.
const MOST_ATTRIBUTES: usize = 100;
const MOST_NAMESPACES: usize = 16;

/// An element that a reader knows, with everything that may be in it.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) attributes: &'static [&'static str],
    /// Elements that may come once, and any number of times.
    pub(crate) once: &'static [&'static Shape],
    pub(crate) many: &'static [&'static Shape],
}

/// The document, or what is wrong with it. Other namespaces than that of the root are refused here.
pub(crate) fn parse<'t>(reading: &mut Reading<'_>, text: &'t str) -> Option<Document<'t>> {
    if let Some((at, what)) = beyond_limits(text) {
        reading.refuse(at, format!("there are more than {what}"), "no tool writes that many: mend the XML");
        return None;
    }
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let at = byte_of(text, error.pos());
            reading.refuse(at..at + 1, format!("it is not XML: {error}"), "mend the XML");
            return None;
        }
    };
    let root = document.root_element();
    let own = root.tag_name().namespace();
    for element in document.descendants().filter(Node::is_element) {
        let name = element.tag_name().name();
        if element.tag_name().namespace() != own {
            reading.beyond(head(&element), format_args!("the element `{name}` of another namespace"));
        }
        // The root may say where its schema lies.
        for attribute in element.attributes().filter(|found| element != root && found.namespace().is_some()) {
            reading.beyond(
                attribute.range_qname(),
                format_args!("the attribute `{}` of a namespace", attribute.name()),
            );
        }
    }
    Some(document)
}

/// Where the text goes beyond the limits. Between two `<` there is at most one element, since no value may hold a `<`.
fn beyond_limits(text: &str) -> Option<(Bytes, String)> {
    if let Some((at, word)) = text.match_indices("xmlns").nth(MOST_NAMESPACES) {
        return Some((at..at + word.len(), format!("{MOST_NAMESPACES} declarations of namespaces")));
    }
    let mut start = 0;
    for part in text.split_inclusive('<') {
        let is_value = |at: usize| part[at + 1..].trim_start().starts_with(['"', '\'']);
        if let Some((at, _)) = part.match_indices('=').filter(|&(at, _)| is_value(at)).nth(MOST_ATTRIBUTES) {
            return Some((
                start + at..start + at + 1,
                format!("{MOST_ATTRIBUTES} attributes of one element"),
            ));
        }
        start += part.len();
    }
    None
}

/// Refuses everything in an element that its shape does not have: attributes, elements, text, and what is there twice.
pub(crate) fn only(reading: &mut Reading<'_>, element: &Node<'_, '_>, shape: &Shape) {
    for attribute in element.attributes() {
        if !shape.attributes.contains(&attribute.name()) {
            let what = format!("`{}` of `{}`", attribute.name(), shape.name);
            reading.beyond(attribute.range_qname(), what);
        }
    }
    no_text(reading, element);
    let mut seen = Vec::new();
    for child in elements(element) {
        let name = child.tag_name().name();
        let of = |shapes: &'static [&'static Shape]| shapes.iter().find(|shape| shape.name == name);
        if let Some(known) = of(shape.once) {
            if seen.contains(&name) {
                reading.refuse(head(&child), format!("`{name}` is there twice"), "take one of them out");
            }
            seen.push(name);
            only(reading, &child, known);
        } else if let Some(known) = of(shape.many) {
            only(reading, &child, known);
        } else {
            reading.beyond(head(&child), format_args!("the element `{name}` in `{}`", shape.name));
        }
    }
}

/// Refuses text between an element's tags.
pub(crate) fn no_text(reading: &mut Reading<'_>, element: &Node<'_, '_>) {
    for part in element.children().filter(Node::is_text) {
        if part.text().is_some_and(|text| !text.trim().is_empty()) {
            reading.beyond(part.range(), format_args!("text in `{}`", element.tag_name().name()));
        }
    }
}

pub(crate) fn elements<'a, 'b>(of: &Node<'a, 'b>) -> impl Iterator<Item = Node<'a, 'b>> {
    of.children().filter(Node::is_element)
}

/// The beginning of an element: `<` and its name.
pub(crate) fn head(element: &Node<'_, '_>) -> Bytes {
    let start = element.range().start;
    start..start + 1 + element.tag_name().name().len()
}

/// The byte of a line and a column, both from 1.
fn byte_of(text: &str, position: TextPos) -> usize {
    let before: usize =
        text.split_inclusive('\n').take(position.row.saturating_sub(1) as usize).map(str::len).sum();
    let line = text.get(before..).unwrap_or_default();
    let column = position.col.saturating_sub(1) as usize;
    let within = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    (before + within).min(text.len().saturating_sub(1))
}
