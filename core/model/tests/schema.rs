//! `docs/schema/horolog-system.schema.json`, the schema for editors, is generated from the reader's own table of
//! keys. `HOROLOG_BLESS=1` writes it anew. `tests/python/test_system_schema.py` validates every example against it.

use horolog_model::file::keys::{self, Key, Kind, Section};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Where the schema lives, from this crate.
const SCHEMA: &str = "../../docs/schema/horolog-system.schema.json";

fn duration() -> Value {
    json!({ "$ref": "#/definitions/duration" })
}

fn durations() -> Value {
    json!({ "type": "array", "items": duration() })
}

/// The schema of one value.
fn value(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Duration => duration(),
        Kind::Durations => json!({ "type": "array", "items": duration(), "minItems": 1 }),
        Kind::DurationLists => {
            let list = json!({ "type": "array", "items": duration(), "minItems": 1 });
            json!({ "type": "array", "items": list, "minItems": 1 })
        }
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Integer => json!({ "type": "integer" }),
        Kind::Decimal => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Cpus => json!({ "oneOf": [
            { "type": "integer", "minimum": 1, "maximum": horolog_model::platform::MAX_CPUS },
            { "type": "array", "minItems": 1, "uniqueItems": true, "items": { "type": "integer", "minimum": 0 } },
        ]}),
        Kind::CpuList => json!({
            "type": "array", "minItems": 2, "uniqueItems": true, "items": { "type": "integer", "minimum": 0 },
        }),
        Kind::Segments => json!({
            "type": "array", "minItems": 1, "items": { "oneOf": [duration(), { "$ref": "#/definitions/segment" }] },
        }),
        Kind::Windows => json!({
            "type": "array", "minItems": 1, "items": { "$ref": "#/definitions/window" },
        }),
        Kind::Body => json!({ "$ref": "#/definitions/body" }),
        Kind::TakesEffect => json!({
            "oneOf": [{ "enum": ["at-once"] }, { "$ref": "#/definitions/takes_effect" }],
        }),
        Kind::Overrun(words) => json!({
            "oneOf": [{ "enum": words }, { "$ref": "#/definitions/overrun" }],
        }),
        Kind::TaskSections => json!({ "type": "array", "items": section(&keys::TASK_SECTION) }),
        Kind::TaskChanges => json!({ "type": "array", "items": section(&keys::MODE_TASK) }),
        Kind::ServerChanges => json!({ "type": "array", "items": section(&keys::MODE_SERVER) }),
        Kind::Spin => {
            json!({ "oneOf": [duration(), durations(), { "type": "number", "exclusiveMinimum": 0 }] })
        }
        Kind::Execution => json!({
            "oneOf": [{ "enum": keys::EXECUTION_WORDS }, { "$ref": "#/definitions/execution" }],
        }),
        Kind::IntegerOrWord(words) => json!({ "oneOf": [{ "type": "integer" }, { "enum": words }] }),
        other => panic!("a kind without a schema: {other:?}"),
    }
}

fn property(key: &Key) -> Value {
    let mut schema = value(key.kind);
    let mut text = key.meaning.to_owned();
    if !key.default.is_empty() {
        text.push_str(&format!(" Default: {}.", key.default));
    }
    // Beside a reference older drafts ignore everything, so the reference goes one level down.
    if let Some(reference) = schema.get("$ref").cloned() {
        schema = json!({ "allOf": [{ "$ref": reference }] });
    }
    schema["description"] = Value::String(text);
    schema
}

fn section(section: &Section) -> Value {
    let properties: Map<String, Value> =
        section.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> = section.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": section.meaning,
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn one_of(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({ "required": [key] })).collect()
}

/// The whole schema.
fn schema() -> Value {
    let mut task = section(&keys::TASK);
    task["oneOf"] = one_of(&["period", "separation", "arrivals"]);
    task["if"] =
        json!({ "properties": { "preemption": { "const": "deferred" } }, "required": ["preemption"] });
    task["then"] = json!({ "required": ["segments"] });
    task["else"] = json!({ "required": ["wcet"], "not": { "required": ["segments"] } });
    let mut takes_effect = section(&keys::TAKES_EFFECT);
    takes_effect["oneOf"] = one_of(&["frame", "when_done"]);
    let mut body = section(&keys::BODY);
    body["oneOf"] = json!([
        { "required": ["spin"] },
        { "required": ["library", "symbol"] },
        { "required": ["command"] },
    ]);
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "horolog system file",
        "description": "What must happen and by when. docs/system-file.md describes every key.",
        "type": "object",
        "additionalProperties": false,
        "required": ["system", "task"],
        "properties": {
            "system": section(&keys::SYSTEM),
            "platform": section(&keys::PLATFORM),
            "task": { "type": "array", "minItems": 1, "items": task },
            "server": { "type": "array", "items": section(&keys::SERVER) },
            "scheduler": { "type": "array", "items": section(&keys::SCHEDULER) },
            "reserve": { "type": "array", "items": section(&keys::RESERVE) },
            "cluster": { "type": "array", "items": section(&keys::CLUSTER) },
            "resource": { "type": "array", "items": section(&keys::RESOURCE) },
            "spin_priority": { "type": "array", "items": section(&keys::SPIN_PRIORITY) },
            "link": { "type": "array", "items": section(&keys::LINK) },
            "criticality": section(&keys::CRITICALITY),
            "mode": { "type": "array", "items": section(&keys::MODE) },
            "interrupt": { "type": "array", "items": section(&keys::INTERRUPT) },
            "device": { "type": "array", "items": section(&keys::DEVICE) },
            "request": { "type": "array", "items": section(&keys::REQUEST) },
            "interference": { "type": "array", "items": section(&keys::INTERFERENCE) },
        },
        "definitions": {
            "duration": {
                "type": "string",
                "description": "A decimal number and a unit, a whole number of nanoseconds: \"1.5 ms\".",
                "pattern": "^\\s*[0-9][0-9_]*(\\.[0-9_]+)?\\s*(ns|us|µs|μs|ms|s)\\s*$",
            },
            "segment": section(&keys::SEGMENT),
            "window": section(&keys::WINDOW),
            "body": body,
            "execution": section(&keys::EXECUTION),
            "overrun": section(&keys::OVERRUN),
            "takes_effect": takes_effect,
        },
    })
}

#[test]
fn the_schema_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCHEMA);
    let schema = schema();
    if std::env::var_os("HOROLOG_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        let text = serde_json::to_string_pretty(&schema).expect("plain data");
        std::fs::write(&path, text + "\n").expect("writable");
    }
    let text = std::fs::read_to_string(&path).expect("the schema is checked in");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(found, schema, "the reader's keys have changed: HOROLOG_BLESS=1 writes the schema anew");
}

/// The sections in which a key may stand in the reference.
const SECTIONS: [&Section; 21] = [
    &keys::SYSTEM,
    &keys::PLATFORM,
    &keys::TASK,
    &keys::TASK_SECTION,
    &keys::SEGMENT,
    &keys::BODY,
    &keys::EXECUTION,
    &keys::SERVER,
    &keys::SCHEDULER,
    &keys::RESOURCE,
    &keys::LINK,
    &keys::MODE,
    &keys::MODE_TASK,
    &keys::MODE_SERVER,
    &keys::TAKES_EFFECT,
    &keys::OVERRUN,
    &keys::WINDOW,
    &keys::INTERRUPT,
    &keys::DEVICE,
    &keys::REQUEST,
    &keys::INTERFERENCE,
];

#[test]
fn the_reference_describes_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/system-file.md");
    let text = std::fs::read_to_string(path).expect("docs/system-file.md");
    for section in SECTIONS {
        let heading = format!("\n## `{}`", section.header);
        let start = text.find(&heading).unwrap_or_else(|| panic!("no heading `{}`", heading.trim()));
        let rest = &text[start + 1..];
        let part = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
        for key in section.keys {
            assert!(
                part.contains(&format!("\n| `{}` |", key.name)),
                "{} has no row for `{}`",
                section.header,
                key.name
            );
            if let Kind::Word(words) | Kind::IntegerOrWord(words) = key.kind {
                for word in words {
                    assert!(part.contains(&format!("`\"{word}\"`")), "`{}` may be `\"{word}\"`", key.name);
                }
            }
        }
    }
}
