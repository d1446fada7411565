//! The metadata: what the streams hold, in the format's own language (TSDL).

use super::USER_EVENTS;
use super::event::{Fields, fields};
use crate::file::Header;
use crate::{EventDefinition, Kind};
use std::fmt::Write as _;

/// The whole text.
pub(super) fn text(header: &Header, events: &[EventDefinition]) -> String {
    let mut out = String::from("/* CTF 1.8 */\n\n");
    out.push_str(TYPES);
    environment(header, &mut out);
    clock(header, &mut out);
    out.push_str(STREAM);
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::User) {
        let fields = match fields(kind) {
            Fields::Switch => "string _prev_comm; i32 _prev_tid; string _next_comm; i32 _next_tid;",
            Fields::Thread => "string _comm; i32 _tid; u64 _number;",
            Fields::Plain => "string _task; i64 _job; u64 _value; u64 _extra;",
        };
        event(kind as u64, kind.name(), "", fields, &mut out);
    }
    for (number, definition) in events.iter().enumerate() {
        let context = "\tcontext := struct { i32 _vpid; i32 _vtid; string _procname; };\n";
        event(USER_EVENTS + number as u64, &definition.name, context, &arguments(definition), &mut out);
    }
    out
}

const TYPES: &str = "\
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := address;
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := f64;

trace {
\tmajor = 1;
\tminor = 8;
\tbyte_order = le;
\tpacket.header := struct { u32 magic; u32 stream_id; };
};

";

const STREAM: &str = "\
typealias integer { size = 64; align = 8; signed = false; map = clock.trace_clock.value; } := time;

stream {
\tid = 0;
\tevent.header := struct { u32 id; time timestamp; };
\tpacket.context := struct {
\t\ttime timestamp_begin;
\t\ttime timestamp_end;
\t\tu64 content_size;
\t\tu64 packet_size;
\t\tu64 events_discarded;
\t\tu64 packet_seq_num;
\t\tu32 cpu_id;
\t};
};

";

fn environment(header: &Header, out: &mut String) {
    out.push_str("env {\n\ttracer_name = \"horolog\";\n");
    let _ = writeln!(out, "\tbackend = {};", quoted(&header.backend));
    for (key, value) in &header.machine {
        let _ = writeln!(out, "\tmachine_{} = {};", identifier(key), quoted(value));
    }
    out.push_str("};\n\n");
}

fn clock(header: &Header, out: &mut String) {
    out.push_str("clock {\n\tname = trace_clock;\n");
    let _ = writeln!(out, "\tdescription = {};", quoted(&header.clock));
    out.push_str("\tfreq = 1000000000;\n");
    if let Some(error) = header.clock_error_ns {
        let _ = writeln!(out, "\tprecision = {error};");
    }
    // From this clock to the one of calendars.
    if let Some(offset) = header.realtime_ns.and_then(|real| real.checked_sub(header.origin_ns)) {
        let _ =
            writeln!(out, "\toffset_s = {};\n\toffset = {};", offset / 1_000_000_000, offset % 1_000_000_000);
    }
    out.push_str("};\n\n");
}

fn event(class: u64, name: &str, context: &str, fields: &str, out: &mut String) {
    let _ = writeln!(out, "event {{\n\tid = {class};\n\tname = {};\n\tstream_id = 0;", quoted(name));
    let _ = writeln!(out, "{context}\tfields := struct {{ {fields} }};\n}};\n");
}

/// The fields of an event's arguments. Names get an underscore in front, which readers take away again, so that none is a
/// word of the language; one that occurs twice gets its place behind it.
fn arguments(definition: &EventDefinition) -> String {
    let mut out = String::new();
    let mut used: Vec<String> = Vec::new();
    for (place, letter) in definition.types.bytes().enumerate() {
        let r#type = match letter {
            b'b' => "u8",
            b'i' => "i64",
            b'f' => "f64",
            b'p' => "address",
            b's' => "string",
            _ => "u64",
        };
        let given = definition.argument_name(place).map(identifier);
        let mut name = given.unwrap_or_else(|| format!("arg{place}"));
        // The format has no place for a unit but the name.
        if let Some(unit) = definition.unit(place) {
            name = format!("{name}_{}", identifier(unit));
        }
        if used.contains(&name) {
            name = format!("{name}_{place}");
        }
        let _ = write!(out, "{type} _{name}; ");
        used.push(name);
    }
    out
}

/// A text of which only letters, digits and underscores are left.
fn identifier(text: &str) -> String {
    text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            '\n' => out.push_str("\\n"),
            letter if letter.is_control() => {
                let _ = write!(out, "\\{:03o}", letter as u32 & 0xff);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
