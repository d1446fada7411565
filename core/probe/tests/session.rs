//! Events on their way from a thread to the reader of its session.
#![allow(unsafe_code)]

use horolog_probe::ring::record::{CUT, NESTED, SHARED, TEXTS};
use horolog_probe::session::{Mode, Options, Reader, Session};
use horolog_probe::{DynamicEvent, Event, Type, Value, emit, emit_dynamic, switching, trigger};
use std::sync::{Mutex, MutexGuard, PoisonError};

static NONE: Event = Event::new(c"session/none", c"");
static PAIR: Event = Event::new(c"session/pair", c"uu");
static TEN: Event = Event::new(c"session/ten", c"uuuuuuuuuu");

/// Emits numbers.
#[inline(always)]
fn emit_words<const COUNT: usize>(event: &Event, words: [u64; COUNT]) {
    // SAFETY: no event that comes here has an argument that is a text.
    unsafe { horolog_probe::emit_words(event, words) }
}

/// A process has one session at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn small() -> Options {
    Options {
        rings: 4,
        ring_bytes: 4096,
        small_slots: 8,
        large_slots: 4,
        writers: 8,
        events: 256,
        mode: Mode::Refuse,
        sparse: false,
    }
}

/// What a reader found: event, first argument (or 0), flags.
fn drain(reader: &mut Reader) -> Vec<(u32, u64, u8)> {
    let mut seen = Vec::new();
    reader.drain(|record| seen.push((record.event, record.args.first().copied().unwrap_or(0), record.flags)));
    seen
}

#[test]
fn events_of_every_length_arrive_in_order_with_thread_and_time() {
    let _alone = alone();
    let session = Session::create(&small()).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let before = session.clock().ticks();
    for turn in 0..3_u64 {
        emit_words(&NONE, []);
        emit_words(&PAIR, [turn, 7]);
        let words = [turn, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        // SAFETY: ten words for an event of ten arguments.
        unsafe { emit(&TEN, words.as_ptr()) };
    }
    let after = session.clock().ticks();
    let mut seen = Vec::new();
    let (mut last, me) = (before, horolog_sys::thread::id());
    reader.drain(|record| {
        assert!(record.ticks >= last && record.ticks <= after);
        assert_eq!(record.tid, me);
        last = record.ticks;
        seen.push((record.event, record.args.to_vec()));
    });
    let expected: Vec<(u32, Vec<u64>)> = (0..3)
        .flat_map(|turn| {
            let ten = vec![turn, 1, 2, 3, 4, 5, 6, 7, 8, 9];
            [(NONE.id(), vec![]), (PAIR.id(), vec![turn, 7]), (TEN.id(), ten)]
        })
        .collect();
    assert_eq!(seen, expected);
    let names: Vec<String> = [&NONE, &PAIR, &TEN]
        .map(|event| reader.event(event.id()).map(|info| format!("{} {}", info.name, info.types)))
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(names, ["session/none ", "session/pair uu", "session/ten uuuuuuuuuu"]);
    assert_eq!(reader.losses().total(), 0);
}

#[test]
fn a_full_ring_refuses_and_counts_and_records_run_over_its_end_unbroken() {
    let _alone = alone();
    let session = Session::create(&small()).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let mut lost = 0;
    for turn in 0..60 {
        let count = turn * 3; // 128 records of 32 bytes fit into 4,096
        (0..count).for_each(|value| emit_words(&PAIR, [value, 0]));
        let expected: Vec<_> = (0..count.min(128)).map(|value| (PAIR.id(), value, 0)).collect();
        assert_eq!(drain(&mut reader), expected);
        lost += count.saturating_sub(128);
        assert_eq!((reader.losses().ring_full, reader.losses().total()), (lost, lost));
    }
    assert!(lost > 0);
}

#[test]
fn a_sparse_session_grows_and_uses_its_rings_again() {
    let _alone = alone();
    let session = Session::create(&Options { sparse: true, ..small() }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    assert_eq!(reader.claimed(), 0, "no ring before the first event");
    for turn in 0..50_u64 {
        let count = 300 + turn; // three of the four rings of 128 records
        (0..count).for_each(|value| emit_words(&PAIR, [value, 0]));
        let seen = drain(&mut reader);
        let expected: Vec<_> = (0..count).map(|value| (PAIR.id(), value, 0)).collect();
        assert_eq!(seen, expected);
        assert_eq!(reader.losses().total(), 0);
    }
    assert!(reader.claimed() <= 3 * 4096, "{}", reader.claimed());
    (0..600).for_each(|value| emit_words(&PAIR, [value, 0]));
    let kept = drain(&mut reader).len() as u64;
    // The thread may stand anywhere in its first ring, and leaves one to others.
    assert!((2 * 128..=3 * 128).contains(&kept), "{kept} records");
    assert_eq!(reader.losses().ring_full, 600 - kept);
}

#[test]
fn threads_beyond_the_rings_use_the_shared_buffers() {
    let _alone = alone();
    let session = Session::create(&Options { rings: 0, ..small() }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    for value in 0..10 {
        emit_words(&PAIR, [value, 0]);
    }
    for value in 0..5 {
        emit_words(&TEN, [value; 10]);
    }
    let seen = drain(&mut reader);
    let expected: Vec<_> = (0..8)
        .map(|value| (PAIR.id(), value, SHARED))
        .chain((0..4).map(|value| (TEN.id(), value, SHARED)))
        .collect();
    assert_eq!(seen, expected);
    assert_eq!((reader.losses().shared_full, reader.losses().total()), (3, 3));
    assert_eq!(reader.threads_without_ring(), 1);
    emit_words(&PAIR, [77, 0]);
    assert_eq!(drain(&mut reader), [(PAIR.id(), 77, SHARED)]);
    assert_eq!(SHARED & NESTED, 0);
}

#[test]
fn rings_and_entries_of_ended_threads_come_back() {
    let _alone = alone();
    let session = Session::create(&small()).expect("a session");
    let mut reader = session.reader().expect("a reader");
    for turn in 0..100_u64 {
        std::thread::spawn(move || emit_words(&PAIR, [turn, 0])).join().expect("ends");
        assert_eq!(drain(&mut reader), [(PAIR.id(), turn, 0)]);
    }
    assert_eq!(reader.losses().total(), 0);
    assert_eq!(reader.threads_without_ring(), 0);
}

#[test]
fn without_an_entry_events_are_counted() {
    let _alone = alone();
    let session = Session::create(&Options { writers: 1, ..small() }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    emit_words(&PAIR, [1, 0]);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..3).for_each(|value| emit_words(&PAIR, [value, 0])));
    });
    assert_eq!(drain(&mut reader), [(PAIR.id(), 1, 0)]);
    assert_eq!((reader.losses().no_writer, reader.losses().total()), (3, 3));
}

#[test]
fn a_second_session_is_refused_and_a_later_one_takes_over() {
    let _alone = alone();
    let first = Session::create(&small()).expect("a session");
    assert!(Session::create(&small()).expect_err("one at a time").is_bad_input());
    let mut reader = first.reader().expect("a reader");
    emit_words(&PAIR, [1, 0]);
    drop(first);
    let unheard = PAIR.unheard();
    emit_words(&PAIR, [2, 0]);
    assert_eq!(PAIR.unheard(), unheard + 1);
    let second = Session::create(&small()).expect("a session");
    let mut later = second.reader().expect("a reader");
    assert!(later.losses().no_session >= 1 && later.losses().total() == 0);
    emit_words(&PAIR, [3, 0]);
    assert_eq!(drain(&mut reader), [(PAIR.id(), 1, 0)], "the memory outlives the session");
    assert_eq!(drain(&mut later), [(PAIR.id(), 3, 0)]);
}

#[test]
fn a_flight_recorder_holds_the_newest() {
    let _alone = alone();
    let session = Session::create(&Options { mode: Mode::Overwrite, ..small() }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    for value in 0..1000 {
        if value % 3 == 0 {
            emit_words(&NONE, []);
        }
        emit_words(&PAIR, [value, 0]);
    }
    assert_eq!(drain(&mut reader), []);
    for _ in 0..2 {
        let mut seen = Vec::new();
        reader.snapshot(|record| seen.extend(record.args.first().copied()));
        let first = *seen.first().expect("records");
        assert_eq!(seen, (first..1000).collect::<Vec<u64>>());
        assert!(seen.len() >= 100, "{} of at least 4096 / (32 + 16/3) records", seen.len());
    }
    assert_eq!(reader.losses().total(), 0);
}

#[test]
fn a_signal_asks_for_a_snapshot() {
    use horolog_probe::session::snapshot;
    let _alone = alone();
    assert!(!snapshot::request(), "no session");
    let session = Session::create(&Options { mode: Mode::Overwrite, ..small() }).expect("a session");
    let reader = session.reader().expect("a reader");
    snapshot::on_signal(libc::SIGURG).expect("nobody has it");
    assert!(snapshot::on_signal(libc::SIGURG).expect_err("we have it").is_bad_input());
    assert!(snapshot::on_signal(libc::SIGKILL).is_err());
    // SAFETY: raise takes an integer; the handler is installed.
    unsafe { libc::raise(libc::SIGURG) };
    assert_eq!(reader.snapshots_requested(), 1);
    session.request_snapshot();
    assert_eq!(reader.snapshots_requested(), 2);
}

#[test]
fn an_event_without_a_place_in_the_directory_is_counted() {
    static LATE: Event = Event::new(c"session/late", c"");
    let _alone = alone();
    let session = Session::create(&Options { events: 1, ..small() }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    // The other events of this file may have the only number already; of two new ones at least one has none.
    static LATER: Event = Event::new(c"session/later", c"");
    (0..3).for_each(|_| emit_words(&LATE, []));
    (0..3).for_each(|_| emit_words(&LATER, []));
    let read = drain(&mut reader).len() as u64;
    assert_eq!(read + reader.losses().no_event, 6);
    assert!(reader.losses().no_event >= 3);
}

#[test]
fn a_flight_recorder_names_the_threads_of_its_records() {
    let _alone = alone();
    let session =
        Session::create(&Options { mode: Mode::Overwrite, rings: 2, ..small() }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let mut tids = Vec::new();
    for turn in 0..5_u64 {
        let thread = std::thread::spawn(move || {
            emit_words(&PAIR, [turn, 0]);
            horolog_sys::thread::id()
        });
        tids.push((turn, thread.join().expect("ends")));
        let mut seen = Vec::new();
        reader.snapshot(|record| seen.push((record.args[0], record.tid)));
        seen.sort_unstable();
        // Two rings, taken in turn: the last two threads are still there.
        let turn = turn as usize;
        assert_eq!(seen, tids[turn.saturating_sub(1)..=turn]);
    }
    assert_eq!(reader.losses().total(), 0);
}

#[inline(never)]
fn open(path: &str, size: u32, by: &str) {
    trigger!("session/open", path, size["B"] = size, by);
}

/// The texts and numbers of one record of `session/open`, and whether each text was cut.
fn opened(words: &[u64]) -> (Vec<u8>, bool, u64, Vec<u8>, bool) {
    let mut rest = words;
    let mut word = || {
        let (first, behind) = rest.split_first().expect("a word");
        rest = behind;
        *first
    };
    let text = |head: u64, word: &mut dyn FnMut() -> u64| {
        let length = (head & !CUT) as usize;
        let bytes: Vec<u8> =
            (0..length.div_ceil(8)).flat_map(|_| word().to_ne_bytes()).take(length).collect();
        (bytes, head & CUT != 0)
    };
    let head = word();
    let (path, path_cut) = text(head, &mut word);
    let size = word();
    let head = word();
    let (by, by_cut) = text(head, &mut word);
    assert!(rest.iter().all(|word| *word == 0) && rest.len() < 2, "at most one word to make them even");
    (path, path_cut, size, by, by_cut)
}

#[test]
fn texts_arrive_whole_and_are_cut_at_256_bytes() {
    let _alone = alone();
    let session = Session::create(&small()).expect("a session");
    let mut reader = session.reader().expect("a reader");
    switching::apply("session/open", true).expect("switchable");
    // Rounds enough that records run over the ring's end at every word.
    for round in 0..400_usize {
        let (path, by) = ("p".repeat(round % 300), "é".repeat(round % 7));
        open(&path, round as u32, &by);
        let mut seen = Vec::new();
        reader.drain(|record| {
            assert_eq!(record.flags, TEXTS);
            seen.push(opened(record.args));
        });
        let kept = "p".repeat((round % 300).min(256)).into_bytes();
        assert_eq!(seen, [(kept, round % 300 > 256, round as u64, by.into_bytes(), false)]);
    }
    let info = reader.events().into_iter().find(|event| event.name == "session/open").expect("declared");
    assert_eq!(info.types, "sus");
    let fields =
        [("path", ""), ("size", "B"), ("by", "")].map(|(name, unit)| (name.to_owned(), unit.to_owned()));
    assert_eq!(info.fields, fields);
    assert_eq!(reader.losses().total(), 0);
    switching::apply("session/open", false).expect("switchable");
}

#[test]
fn texts_in_a_shared_buffer_are_cut_to_what_a_slot_holds() {
    let _alone = alone();
    let session = Session::create(&Options { rings: 0, ..small() }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    switching::apply("session/open", true).expect("switchable");
    open("short", 1, "also");
    open(&"x".repeat(50), 2, "twelve bytes");
    switching::apply("session/open", false).expect("switchable");
    let mut seen = Vec::new();
    reader.drain(|record| {
        assert_eq!(record.flags, TEXTS | SHARED);
        seen.push(opened(record.args));
    });
    // Ten words: three for the arguments themselves, seven for texts, of which the first takes as many as it needs.
    let first = (b"short".to_vec(), false, 1, b"also".to_vec(), false);
    assert_eq!(seen, [first, (vec![b'x'; 50], false, 2, Vec::new(), true)]);
    assert_eq!(reader.losses().total(), 0);
}

#[test]
fn a_flight_recorder_keeps_whole_texts() {
    let _alone = alone();
    let session = Session::create(&Options { mode: Mode::Overwrite, ..small() }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    switching::apply("session/open", true).expect("switchable");
    for round in 0..1000_u32 {
        open(&"y".repeat(round as usize % 260), round, "me");
        emit_words(&PAIR, [u64::from(round), 0]);
    }
    switching::apply("session/open", false).expect("switchable");
    let mut last = 0;
    reader.snapshot(|record| {
        if record.flags & TEXTS != 0 {
            let (path, is_cut, round, by, _) = opened(record.args);
            assert_eq!((path.len(), is_cut), ((round as usize % 260).min(256), round % 260 > 256));
            assert_eq!(by, b"me");
            last = round;
        }
    });
    assert_eq!((last, reader.losses().total()), (999, 0));
}

#[test]
fn a_dynamic_event_is_recorded_while_its_site_is_enabled() {
    let _alone = alone();
    let session = Session::create(&small()).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let open = DynamicEvent::new("file/open", &[("path", "", Type::Text), ("size\x1e", "B", Type::Signed)]);
    let emit = |values: &[Value<'_>]| emit_dynamic!("tracing", open, values);
    let is_wanted = || emit_dynamic!("tracing");
    emit(&[Value::Text("off"), Value::Signed(0)]);
    assert!(!is_wanted());
    switching::apply("tracing", true).expect("switchable");
    assert!(is_wanted());
    emit(&[Value::Text("/etc/hosts"), Value::Signed(-7)]);
    emit(&[Value::Signed(-7)]);
    emit(&[Value::Text("x"), Value::Unsigned(7)]);
    switching::apply("tracing", false).expect("switchable");
    let mut seen = Vec::new();
    reader.drain(|record| seen.push((record.event, record.args.to_vec())));
    assert_eq!(seen.len(), 1);
    let (id, words) = &seen[0];
    let info = reader.event(*id).expect("declared");
    assert_eq!((info.name.as_str(), info.types.as_str()), ("file/open", "si"));
    let fields: Vec<(&str, &str)> =
        info.fields.iter().map(|(name, unit)| (name.as_str(), unit.as_str())).collect();
    assert_eq!(fields, [("path", ""), ("size?", "B")]);
    assert_eq!((words[0], words[3].cast_signed()), (10, -7));
}
