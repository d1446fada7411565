//! Job sets of np-schedulability-analysis as YAML: `jobset`, a list of mappings with the names of the CSV's columns as keys.
//!
//! The events of the text are read one after the other, so that no text, however it nests, takes deep calls.

use crate::Written;
use crate::jobs::{self, COLUMNS, Field, Rows};
use crate::reading::{Bytes, Reading};
use horolog_model::{ModelError, System};
use horolog_time::Span;
use saphyr_parser::{Event, Parser, StrInput};
use std::fmt::Write as _;

/// How deep a text may nest; a job set nests three deep.
const DEEPEST: usize = 64;

/// Where the text is no YAML, and why.
type Wrong = (Bytes, String);

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    let mut rows = Rows::default();
    match document(reading, &mut Events::of(text), &mut rows) {
        Ok(true) => rows.finish(reading),
        Ok(false) if reading.is_wrong() => {}
        Ok(false) => reading.refuse(
            0..0,
            "there is no list `jobset` in it",
            "write `jobset:` and below it a list of jobs",
        ),
        Err((at, reason)) => reading.refuse(at, reason, "mend the YAML"),
    }
}

/// Whether there is a job set in the only document.
fn document(reading: &mut Reading<'_>, events: &mut Events<'_>, rows: &mut Rows) -> Result<bool, Wrong> {
    let mut is_found = false;
    let mut documents = 0;
    loop {
        match events.next()? {
            (Event::StreamEnd, _) => return Ok(is_found),
            (Event::DocumentStart(_), at) => {
                documents += 1;
                if documents > 1 {
                    reading.beyond(at, "a second document");
                }
            }
            (Event::MappingStart(..), _) => root(reading, events, rows, &mut is_found)?,
            (other, _) => events.rest(&other)?,
        }
    }
}

fn root(
    reading: &mut Reading<'_>,
    events: &mut Events<'_>,
    rows: &mut Rows,
    is_found: &mut bool,
) -> Result<(), Wrong> {
    loop {
        let (key, at) = events.next()?;
        if key == Event::MappingEnd {
            return Ok(());
        }
        events.rest(&key)?;
        let (value, _) = events.next()?;
        match (name_of(&key), &value) {
            ("jobset", Event::SequenceStart(..)) if !*is_found => {
                *is_found = true;
                jobs(reading, events, rows)?;
                continue;
            }
            ("jobset", Event::SequenceStart(..)) => {
                reading.refuse(at, "`jobset` is there twice", "put all jobs into one list");
            }
            (name, _) => reading.beyond(at, format_args!("`{name}`")),
        }
        events.rest(&value)?;
    }
}

fn jobs(reading: &mut Reading<'_>, events: &mut Events<'_>, rows: &mut Rows) -> Result<(), Wrong> {
    loop {
        let (job, at) = events.next()?;
        match job {
            Event::SequenceEnd => return Ok(()),
            Event::MappingStart(..) => one(reading, events, at.start, rows)?,
            other => {
                reading.refuse(at, "a job is a mapping", format!("give these: {}", COLUMNS.join(", ")));
                events.rest(&other)?;
            }
        }
    }
}

fn one(
    reading: &mut Reading<'_>,
    events: &mut Events<'_>,
    start: usize,
    rows: &mut Rows,
) -> Result<(), Wrong> {
    let mut fields: [Option<Field<'_>>; 8] = [const { None }; 8];
    let mut all = start..start;
    loop {
        let (key, at) = events.next()?;
        if key == Event::MappingEnd {
            break;
        }
        events.rest(&key)?;
        let (value, place) = events.next()?;
        events.rest(&value)?;
        all.end = place.end;
        let name = name_of(&key);
        let Some(column) = COLUMNS.iter().position(|column| *column == name) else {
            reading.beyond(at, format_args!("`{name}`"));
            continue;
        };
        let text = events.text.get(place.clone()).unwrap_or_default().trim();
        let is_scalar = matches!(value, Event::Scalar(_, _, _, None));
        let is_octal = text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
        if fields[column].is_some() {
            reading.refuse(at, format!("`{name}` is there twice"), "take one of them out");
        } else if !is_scalar {
            reading.refuse(place.clone(), format!("`{name}` is not a plain number"), "write a number");
        } else if is_octal {
            let reason = format!("`{text}` is an octal number in YAML 1.1 and a decimal one in 1.2");
            reading.refuse(place.clone(), reason, "write it without zeros before it");
        }
        fields[column] = Some(Field { text, at: place });
    }
    for (column, field) in COLUMNS.iter().zip(&fields) {
        if field.is_none() {
            reading.refuse(all.clone(), format!("`{column}` is missing"), format!("give {column}"));
        }
    }
    if let [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f), Some(g), Some(h)] = fields {
        rows.push(reading, &[a, b, c, d, e, f, g, h], all);
    }
    Ok(())
}

fn name_of<'e>(key: &'e Event<'_>) -> &'e str {
    match key {
        Event::Scalar(name, ..) => name,
        _ => "a key that is not text",
    }
}

/// What the parser finds, and where.
struct Events<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    /// The byte of each character; empty where a character is a byte.
    bytes: Vec<usize>,
    depth: usize,
}

impl<'t> Events<'t> {
    fn of(text: &'t str) -> Events<'t> {
        let bytes =
            if text.is_ascii() { Vec::new() } else { text.char_indices().map(|(at, _)| at).collect() };
        Events { text, parser: Parser::new_from_str(text), bytes, depth: 0 }
    }

    fn next(&mut self) -> Result<(Event<'t>, Bytes), Wrong> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let start = self.byte(span.start.index());
                let at = start..self.byte(span.end.index()).max(start);
                match event {
                    Event::MappingStart(..) | Event::SequenceStart(..) => self.depth += 1,
                    Event::MappingEnd | Event::SequenceEnd => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                if self.depth > DEEPEST {
                    return Err((at, format!("it nests deeper than {DEEPEST}")));
                }
                Ok((event, at))
            }
            Some(Err(error)) => {
                let at = self.byte(error.marker().index());
                Err((at..at + 1, format!("it is not YAML: {}", error.info())))
            }
            None => Ok((Event::StreamEnd, self.text.len()..self.text.len())),
        }
    }

    /// Goes on behind a node of which `first` is the first event.
    fn rest(&mut self, first: &Event<'_>) -> Result<(), Wrong> {
        if !matches!(first, Event::MappingStart(..) | Event::SequenceStart(..)) {
            return Ok(());
        }
        let outside = self.depth - 1;
        while self.depth > outside {
            self.next()?;
        }
        Ok(())
    }

    fn byte(&self, character: usize) -> usize {
        if self.bytes.is_empty() {
            return character.min(self.text.len());
        }
        self.bytes.get(character).copied().unwrap_or(self.text.len())
    }
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
