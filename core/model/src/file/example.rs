//! Example lines for remedies.

use super::keys::{Kind, Section};

/// A line that gives `key` a plausible value.
pub(super) fn line(section: &Section, key: &str) -> String {
    if matches!(key, "cost" | "least_cost") {
        return format!("{key} = \"5 us\"");
    }
    let kind = section.keys.iter().find(|known| known.name == key).map_or(Kind::Text, |known| known.kind);
    match (key, kind) {
        // Part of a job, so that it fits into most.
        ("from", Kind::Duration) => "from = \"0 ms\"".to_owned(),
        ("length", Kind::Duration) => "length = \"1 ms\"".to_owned(),
        _ => format!("{key} = {}", value(kind)),
    }
}

fn value(kind: Kind) -> String {
    match kind {
        Kind::Text => "\"…\"".to_owned(),
        Kind::Duration => "\"10 ms\"".to_owned(),
        Kind::Durations => "[\"3 ms\", \"8 ms\"]".to_owned(),
        Kind::DurationLists => "[[\"3 ms\"], [\"8 ms\"]]".to_owned(),
        Kind::Texts => "[\"…\"]".to_owned(),
        Kind::Integer => "1".to_owned(),
        Kind::Decimal => "0.4".to_owned(),
        Kind::Word(words) => format!("\"{}\"", words.first().unwrap_or(&"…")),
        Kind::Cpus => "[1]".to_owned(),
        Kind::CpuList => "[0, 1]".to_owned(),
        Kind::Segments => "[\"3 ms\", \"4 ms\"]".to_owned(),
        Kind::Windows => "[{ child = \"…\", from = \"0 ms\", length = \"4 ms\" }]".to_owned(),
        Kind::Body => "{ spin = 0.9 }".to_owned(),
        Kind::Overrun(_) => "\"skip\"".to_owned(),
        Kind::TakesEffect => "\"at-once\"".to_owned(),
        Kind::TaskSections => "[{ resource = \"…\", from = \"0 ms\", length = \"1 ms\" }]".to_owned(),
        Kind::TaskChanges | Kind::ServerChanges => "[{ name = \"…\" }]".to_owned(),
        Kind::Spin => "0.9".to_owned(),
        Kind::Execution => "\"uniform\"".to_owned(),
        Kind::IntegerOrWord(words) => format!("\"{}\"", words.first().unwrap_or(&"…")),
    }
}
