//! Spans, fields and events of `tracing` as a reader of the session sees them.

use horolog_probe::session::{Options, Session};
use horolog_probe::switching;
use tracing_subscriber::prelude::*;

/// Name, types, names of the arguments, and the words.
type Seen = (String, String, Vec<String>, Vec<u64>);

#[test]
fn spans_fields_and_events_arrive_while_the_trigger_is_enabled() {
    let session = Session::create(&Options { rings: 4, ..Options::default() }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let _guard = tracing_subscriber::registry().with(horolog_tracing::layer()).set_default();
    let work = |request: u64| {
        let span = tracing::info_span!("answer", request, user = "me", late = tracing::field::Empty);
        span.record("late", true);
        span.in_scope(|| tracing::warn!(target: "server", left = -3, load = 0.5, "slow: {:?}", [1, 2]));
    };
    work(1);
    switching::apply("tracing", true).expect("switchable");
    work(2);
    work(3);
    switching::apply("tracing", false).expect("switchable");
    work(4);
    let mut records = Vec::new();
    reader.drain(|record| records.push((record.event, record.args.to_vec())));
    let seen: Vec<Seen> = records
        .into_iter()
        .map(|(id, words)| {
            let info = reader.event(id).expect("declared");
            let names = info.fields.into_iter().map(|(name, _)| name).collect();
            (info.name, info.types, names, words)
        })
        .collect();
    let named: Vec<(&str, &str)> =
        seen.iter().map(|(name, types, ..)| (name.as_str(), types.as_str())).collect();
    let one = [("answer/begin", "usb"), ("server/warn", "sif"), ("answer/end", "")];
    assert_eq!(named, [one, one].concat());
    let (_, _, names, words) = &seen[3];
    assert_eq!(names, &["request", "user", "late"]);
    assert_eq!(words[..4], [3, 2, u64::from_ne_bytes(*b"me\0\0\0\0\0\0"), 1]);
    let (_, _, names, words) = &seen[4];
    assert_eq!(names, &["message", "left", "load"]);
    let text: Vec<u8> =
        words[1..3].iter().flat_map(|word| word.to_ne_bytes()).take(words[0] as usize).collect();
    assert_eq!(text, b"slow: [1, 2]");
    assert_eq!((words[3].cast_signed(), f64::from_bits(words[4])), (-3, 0.5));
    // Each place in the program is one event, however often it is met.
    let made = reader.events().into_iter().filter(|event| event.name != "tracing");
    assert_eq!(made.count(), 3, "{:?}", reader.events());
}
