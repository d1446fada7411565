//! Job sets of np-schedulability-analysis as CSV: the first line names the columns, each other one is a job.

use crate::Written;
use crate::jobs::{self, COLUMNS, Field, Rows};
use crate::reading::Reading;
use horolog_model::{ModelError, System};
use horolog_time::Span;
use std::fmt::Write as _;

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    let mut rows = Rows::default();
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let at = start..start + line.trim_end().len();
        start += line.len();
        // As the tool does: whatever the first line says, it is the header.
        if number == 0 && !line.trim_start().starts_with(|c: char| c.is_ascii_digit())
            || line.trim().is_empty()
        {
            continue;
        }
        if number == 0 {
            reading.refuse(
                at,
                "the first line is a job, and the format keeps it for the names of the columns",
                format!("put this line before it: {}", COLUMNS.join(", ")),
            );
            continue;
        }
        let fields = fields(text, at.clone());
        match <[Field<'_>; 8]>::try_from(fields) {
            Ok(fields) => rows.push(reading, &fields, at),
            Err(fields) => reading.refuse(
                at,
                format!("a job has 8 values, and there are {}", fields.len()),
                format!("give these: {}", COLUMNS.join(", ")),
            ),
        }
    }
    rows.finish(reading);
}

/// The values of a line, between commas.
fn fields(text: &str, line: std::ops::Range<usize>) -> Vec<Field<'_>> {
    let mut start = line.start;
    text[line]
        .split(',')
        .map(|field| {
            let from = start + (field.len() - field.trim_start().len());
            start += field.len() + 1;
            let field = field.trim();
            Field { text: field, at: from..from + field.len() }
        })
        .collect()
}

pub(crate) fn write(system: &System, unit: Span) -> Result<Written, Vec<ModelError>> {
    let mut text = COLUMNS.join(", ");
    text.push('\n');
    for job in jobs::written(system, unit, "a job set")? {
        let values: Vec<String> = job.iter().map(u64::to_string).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", values.join(", "));
    }
    Ok(Written { text, notes: Vec::new() })
}
