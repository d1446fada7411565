//! Job sets of np-schedulability-analysis as YAML: `jobset`, a list of mappings with the names of the CSV's columns as keys.

use crate::Written;
use crate::jobs::{self, COLUMNS, Field, Rows};
use crate::reading::{Bytes, Reading};
use horolog_model::{ModelError, System};
use horolog_time::Span;
use saphyr::{LoadableYamlNode, MarkedYaml, Marker, YamlData};
use std::fmt::Write as _;

/// How deep a text may nest, so that none exhausts the stack.
const DEEPEST: usize = 64;

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    // The parser recurses with what is nested.
    if text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() > DEEPEST && is_deep(text) {
        reading.refuse(0..0, format!("it nests deeper than {DEEPEST}"), "a job set nests two deep");
        return;
    }
    let documents = match MarkedYaml::load_from_str(text) {
        Ok(documents) => documents,
        Err(error) => {
            let at = byte(text, error.marker());
            reading.refuse(at..at + 1, format!("it is not YAML: {}", error.info()), "mend the YAML");
            return;
        }
    };
    let mut rows = Rows::default();
    let jobs = match documents.as_slice() {
        [document] => jobset(reading, text, document),
        _ => None,
    };
    let Some(jobs) = jobs else {
        if !reading.is_wrong() {
            reading.refuse(
                0..0,
                "there is no list `jobset` in it",
                "write `jobset:` and below it a list of jobs",
            );
        }
        return;
    };
    for job in jobs {
        one(reading, text, job, &mut rows);
    }
    rows.finish(reading);
}

/// Whether brackets nest too deep, whatever they mean.
fn is_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    text.bytes().any(|byte| {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEEPEST
    })
}

fn jobset<'d, 'a>(
    reading: &mut Reading<'_>,
    text: &str,
    document: &'d MarkedYaml<'a>,
) -> Option<&'d [MarkedYaml<'a>]> {
    let YamlData::Mapping(entries) = &document.data else { return None };
    let mut jobs = None;
    for (key, value) in entries {
        match (key.data.as_str(), &value.data) {
            (Some("jobset"), YamlData::Sequence(list)) => jobs = Some(list.as_slice()),
            (name, _) => {
                let name = name.unwrap_or("a key that is no text");
                reading.beyond(bytes(text, key), format_args!("`{name}`"));
            }
        }
    }
    jobs
}

fn one(reading: &mut Reading<'_>, text: &str, job: &MarkedYaml<'_>, rows: &mut Rows) {
    let at = bytes(text, job);
    let YamlData::Mapping(entries) = &job.data else {
        reading.refuse(at, "a job is a mapping", format!("give these: {}", COLUMNS.join(", ")));
        return;
    };
    let mut fields: [Option<Field<'_>>; 8] = [const { None }; 8];
    for (key, value) in entries {
        let name = key.data.as_str().unwrap_or("a key that is no text");
        let Some(place) = COLUMNS.iter().position(|column| *column == name) else {
            reading.beyond(bytes(text, key), format_args!("`{name}`"));
            continue;
        };
        let at = bytes(text, value);
        fields[place] = Some(Field { text: text.get(at.clone()).unwrap_or_default().trim(), at });
    }
    for (column, field) in COLUMNS.iter().zip(&fields) {
        if field.is_none() {
            reading.refuse(at.clone(), format!("`{column}` is missing"), format!("give {column}"));
        }
    }
    if let [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f), Some(g), Some(h)] = fields {
        rows.push(reading, &[a, b, c, d, e, f, g, h], at);
    }
}

/// The bytes of a node.
fn bytes(text: &str, node: &MarkedYaml<'_>) -> Bytes {
    let start = byte(text, &node.span.start);
    start..byte(text, &node.span.end).max(start)
}

/// The byte of a marker, which counts characters.
fn byte(text: &str, marker: &Marker) -> usize {
    if text.is_ascii() {
        return marker.index().min(text.len());
    }
    text.char_indices().nth(marker.index()).map_or(text.len(), |(at, _)| at)
}

pub(crate) fn write(system: &System, unit: Span) -> Result<Written, Vec<ModelError>> {
    let mut text = "jobset:\n".to_owned();
    for job in jobs::written(system, unit, "a job set")? {
        for (place, (column, value)) in COLUMNS.iter().zip(job).enumerate() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {} {column}: {value}", if place == 0 { "-" } else { " " });
        }
    }
    Ok(Written { text, notes: Vec::new() })
}
