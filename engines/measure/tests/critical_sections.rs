//! Critical sections against published facts and against a naive analysis that looks at every pair of events.

use horolog_measure::critical_sections::{
    CriticalSections, LockAction, LockClass, LockEvent, LockKey, Nesting, SectionOptions, Statistics, Study,
    ThreadKey, cycles_to_span,
};
use horolog_time::Instant;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn event(ns: u64, thread: u32, action: LockAction, lock: u64) -> LockEvent {
    LockEvent {
        time: Instant::from_ns(ns),
        cpu: 0,
        process: 1,
        thread,
        action,
        lock,
        class: LockClass::Mutex,
        recursive: false,
        site: lock * 16,
    }
}

fn study(events: &[LockEvent], options: SectionOptions) -> Study {
    let mut sections = CriticalSections::new(options);
    for event in events {
        sections.event(event);
    }
    sections.finish()
}

fn lock(study: &Study, lock: u64) -> Option<&Statistics> {
    study.locks.entries.iter().find(|(key, _)| key.lock == lock).map(|(_, statistics)| statistics)
}

/// "100 enter B": cycles, what, which lock.
fn golden_event(text: &str, frequency: u64) -> LockEvent {
    let words: Vec<&str> = text.split(' ').collect();
    let time = cycles_to_span(words[0].parse().expect("cycles"), frequency).expect("a time");
    let action = if words[1] == "enter" { LockAction::Acquired } else { LockAction::Release };
    event(time.as_ns(), 1, action, u64::from(words[2].as_bytes()[0]))
}

#[test]
fn published_facts() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/feather-trace-sections.toml");
    let golden: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let frequency = golden["frequency-hz"].as_integer().unwrap() as u64;
    let cases = golden["case"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for (case, nesting) in cases.iter().flat_map(|case| [(case, Nesting::Thread), (case, Nesting::Processor)])
    {
        let events: Vec<LockEvent> = case["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| golden_event(text.as_str().unwrap(), frequency))
            .collect();
        let study = study(&events, SectionOptions { nesting, ..SectionOptions::default() });
        let depths = case["depths"].as_table().unwrap();
        for (name, depth) in depths {
            let found = lock(&study, u64::from(name.as_bytes()[0])).unwrap();
            assert_eq!(found.share_at_depth(depth.as_integer().unwrap() as usize), Some(1.0), "{name}");
            assert_eq!(found.lengths.max_ns() as i64, case["lengths-ns"][name].as_integer().unwrap());
            let bins: Vec<(u32, u64)> = found.lengths.bins().collect();
            assert_eq!(bins, [(case["bins"][name].as_integer().unwrap() as u32, 1)]);
        }
        assert_eq!(study.counts.sections, depths.len() as u64);
        let enters = study.counts.still_held + study.counts.unmatched_acquisitions;
        assert_eq!(enters as i64, case["dropped-enters"].as_integer().unwrap());
        assert_eq!(study.counts.unmatched_releases as i64, case["dropped-exits"].as_integer().unwrap());
    }
}

#[test]
fn a_condition_wait_closes_the_section_and_reopens_it() {
    let events = [
        event(0, 1, LockAction::Acquired, 7),
        event(2_000, 1, LockAction::Wait { condition: 9 }, 7),
        event(3_000, 2, LockAction::Acquired, 7),
        event(3_500, 2, LockAction::Release, 7),
        event(10_000, 1, LockAction::Woken { condition: 9, holds: true }, 7),
        event(10_300, 1, LockAction::Release, 7),
    ];
    let study = study(&events, SectionOptions::default());
    let mutex = lock(&study, 7).unwrap();
    assert_eq!(mutex.lengths.bins().collect::<Vec<_>>(), [(3, 1), (5, 1), (20, 1)]);
    assert_eq!((mutex.condition_waits, mutex.waits.count()), (1, 0));
    let condition = study.class(LockClass::Condition).unwrap();
    assert_eq!(
        (condition.condition_waits, condition.waits.max_ns(), condition.lengths.count()),
        (1, 8_000, 0)
    );
}

#[test]
fn a_wait_that_does_not_get_the_mutex_back_leaves_it_released() {
    let events = [
        event(0, 1, LockAction::Acquired, 7),
        event(2_000, 1, LockAction::Wait { condition: 9 }, 7),
        event(3_000, 1, LockAction::Woken { condition: 9, holds: false }, 7),
        event(4_000, 1, LockAction::Acquired, 8),
        event(5_000, 1, LockAction::Release, 8),
    ];
    let study = study(&events, SectionOptions::default());
    assert_eq!(study.counts.still_held, 0);
    assert_eq!(lock(&study, 8).unwrap().depths[0], 1);
}

#[test]
fn the_worst_wait_names_who_held_the_lock_and_since_which_call() {
    let events = [
        event(0, 1, LockAction::Acquired, 7),
        event(100, 2, LockAction::Request, 7),
        event(900, 1, LockAction::Release, 7),
        event(1_000, 2, LockAction::Acquired, 7),
        event(1_200, 2, LockAction::Release, 7),
    ];
    let study = study(&events, SectionOptions::default());
    let found = lock(&study, 7).unwrap();
    let wait = found.worst_wait.unwrap();
    assert_eq!((wait.wait_ns, wait.thread, found.contended), (900, 2, 1));
    let holder = wait.holder.unwrap();
    assert_eq!((holder.thread, holder.site, holder.since.as_ns()), (1, 7 * 16, 0));
    let worst = found.worst.unwrap();
    assert_eq!((worst.length_ns, worst.thread, worst.site), (900, 1, 7 * 16));
}

#[test]
fn depth_by_processor_counts_what_a_preempted_thread_holds() {
    let events = [
        event(0, 1, LockAction::Acquired, 1),
        event(10, 2, LockAction::Acquired, 2),
        event(20, 2, LockAction::Release, 2),
        event(30, 1, LockAction::Release, 1),
    ];
    let by_thread = study(&events, SectionOptions::default());
    assert_eq!(lock(&by_thread, 2).unwrap().depths[..2], [1, 0]);
    let options = SectionOptions { nesting: Nesting::Processor, ..SectionOptions::default() };
    assert_eq!(lock(&study(&events, options), 2).unwrap().depths[..2], [0, 1]);
    // A holder that migrates breaks the paper's pair, and not ours.
    let migrated = [events[0], LockEvent { cpu: 1, ..events[3] }];
    assert_eq!(study(&migrated, options).counts.sections, 0);
    assert_eq!(study(&migrated, SectionOptions::default()).counts.sections, 1);
}

#[test]
fn memory_stays_bounded_and_nothing_vanishes_beyond_the_limits() {
    let options = SectionOptions { max_locks: 10, max_sites: 5, max_held: 3, ..SectionOptions::default() };
    let mut events = Vec::new();
    for number in 0..100 {
        events.push(event(number * 10, 1, LockAction::Acquired, number));
        events.push(event(number * 10 + 5, 1, LockAction::Release, number));
    }
    for number in 0..5 {
        events.push(event(2_000 + number, 1, LockAction::Acquired, 1_000 + number));
    }
    let study = study(&events, options);
    assert_eq!((study.locks.entries.len(), study.sites.entries.len()), (10, 5));
    assert_eq!(study.locks.others.lengths.count(), 90);
    assert_eq!((study.counts.sections, study.counts.still_held, study.counts.too_deep), (100, 3, 2));
    assert_eq!(study.still_held.len(), 3);
}

#[test]
fn lost_events_of_a_thread_end_what_it_held_and_nobody_elses() {
    let mut sections = CriticalSections::new(SectionOptions::default());
    sections.event(&event(0, 1, LockAction::Acquired, 1));
    sections.event(&event(0, 2, LockAction::Acquired, 2));
    sections.lost(Some(ThreadKey { process: 1, thread: 1 }), 5);
    sections.event(&event(10, 1, LockAction::Acquired, 3));
    sections.event(&event(20, 1, LockAction::Release, 3));
    sections.event(&event(30, 2, LockAction::Release, 2));
    let study = sections.finish();
    assert_eq!((study.counts.lost, study.counts.unmatched_acquisitions, study.counts.sections), (5, 1, 2));
    assert_eq!(lock(&study, 3).unwrap().depths[0], 1);
}

/// How an acquisition ended, in the naive analysis.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    /// By the event of this number.
    Complete(usize),
    /// Its release was not seen; shown by the event of this number.
    Broken(usize),
    /// Still held at the end.
    Open,
    /// It repeated an acquisition that the thread held already.
    Repeated,
}

fn takes(event: &LockEvent) -> bool {
    matches!(event.action, LockAction::Acquired | LockAction::Woken { holds: true, .. })
}

fn gives(event: &LockEvent) -> bool {
    matches!(event.action, LockAction::Release | LockAction::Wait { .. })
}

/// Follows every acquisition through all later events.
fn fates(events: &[LockEvent]) -> BTreeMap<usize, Fate> {
    let mut fates = BTreeMap::new();
    for (index, begin) in events.iter().enumerate().filter(|(_, event)| takes(event)) {
        if fates.contains_key(&index) {
            continue;
        }
        let (mut times, mut fate) = (1, Fate::Open);
        for (later, event) in events.iter().enumerate().skip(index + 1) {
            if event.lock != begin.lock {
                continue;
            }
            let (own, both_read) = (
                event.thread == begin.thread,
                (begin.class, event.class) == (LockClass::Read, LockClass::Read),
            );
            if takes(event) && own && (both_read || event.recursive) {
                times += 1;
                fates.insert(later, Fate::Repeated);
            } else if takes(event) && !both_read {
                fate = Fate::Broken(later);
                break;
            } else if gives(event) && (own || begin.class.is_exclusive()) {
                times -= 1;
                if times == 0 {
                    fate = Fate::Complete(later);
                    break;
                }
            }
        }
        fates.insert(index, fate);
    }
    fates
}

/// (lock, class, thread, depth, length) of every complete section.
fn naive(events: &[LockEvent]) -> Vec<(u64, LockClass, u32, usize, u64)> {
    let fates = fates(events);
    let complete: Vec<(usize, usize)> = fates
        .iter()
        .filter_map(|(begin, fate)| if let Fate::Complete(end) = fate { Some((*begin, *end)) } else { None })
        .collect();
    complete
        .iter()
        .map(|(begin, end)| {
            let this = &events[*begin];
            let around =
                |(b, e): &&(usize, usize)| events[*b].thread == this.thread && b < begin && e > begin;
            let length = events[*end].time.as_ns() - this.time.as_ns();
            (this.lock, this.class, this.thread, complete.iter().filter(around).count(), length)
        })
        .collect()
}

fn any_event() -> impl Strategy<Value = (u8, u32, u64, u64)> {
    (0u8..10, 1u32..4, 0u64..5, 0u64..3_000)
}

/// Locks 0 and 1 are mutexes, 2 a recursive one, 3 and 4 are read-write locks.
fn build(choices: &[(u8, u32, u64, u64)]) -> Vec<LockEvent> {
    let mut time = 0;
    choices
        .iter()
        .map(|(what, thread, lock, pause)| {
            time += pause;
            let action = match what {
                0..=4 => LockAction::Acquired,
                5..=7 => LockAction::Release,
                8 => LockAction::Wait { condition: 99 },
                _ => LockAction::Woken { condition: 99, holds: true },
            };
            let class = match (lock, what) {
                (0..=2, _) => LockClass::Mutex,
                (_, 0..=2) => LockClass::Read,
                _ => LockClass::Write,
            };
            LockEvent { class, recursive: *lock == 2, ..event(time, *thread, action, *lock) }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_stream_agrees_with_the_naive_analysis(choices in prop::collection::vec(any_event(), 0..60)) {
        let events = build(&choices);
        let expected = naive(&events);
        let found = study(&events, SectionOptions::default());
        prop_assert_eq!(found.counts.sections as usize, expected.len());
        for (key, statistics) in &found.locks.entries {
            let LockKey { lock, class, .. } = *key;
            let own: Vec<_> = expected.iter().filter(|s| s.0 == lock && s.1 == class).collect();
            prop_assert_eq!(statistics.lengths.count() as usize, own.len());
            let total: u64 = own.iter().map(|s| s.4).sum();
            prop_assert_eq!(statistics.lengths.total_ns(), u128::from(total));
            prop_assert_eq!(statistics.worst.map(|worst| worst.length_ns), own.iter().map(|s| s.4).max());
            for depth in 0..6 {
                let count = own.iter().filter(|s| s.3 == depth).count();
                prop_assert_eq!(statistics.depths[depth] as usize, count, "lock {} depth {}", lock, depth);
            }
        }
        for (key, statistics) in &found.threads.entries {
            let own = expected.iter().filter(|s| s.2 == key.thread).count();
            prop_assert_eq!(statistics.lengths.count() as usize, own);
            prop_assert_eq!(statistics.depths.iter().sum::<u64>() as usize, own);
        }
        let fates = fates(&events);
        let count = |wanted: fn(&Fate) -> bool| fates.values().filter(|fate| wanted(fate)).count() as u64;
        prop_assert_eq!(found.counts.still_held, count(|fate| *fate == Fate::Open));
        prop_assert_eq!(found.counts.unmatched_acquisitions, count(|fate| matches!(fate, Fate::Broken(_))));
    }

    #[test]
    fn each_thread_alone_needs_no_order_among_threads(choices in prop::collection::vec(any_event(), 0..60)) {
        // Where threads share no lock, sorting the events by thread changes nothing.
        let mut events = build(&choices);
        for event in &mut events {
            event.lock += u64::from(event.thread) * 10;
        }
        let merged = study(&events, SectionOptions::default());
        events.sort_by_key(|event| event.thread);
        let sorted = study(&events, SectionOptions::default());
        prop_assert_eq!(merged.classes, sorted.classes);
        prop_assert_eq!(merged.counts, sorted.counts);
    }
}

#[test]
fn of_equal_waits_the_earliest_is_the_worst_in_whatever_order_threads_come() {
    let wait = |thread, at| {
        let begun = event(at, thread, LockAction::Wait { condition: 99 }, 10 * u64::from(thread));
        let ended = event(at + 1_630, thread, LockAction::Woken { condition: 99, holds: true }, begun.lock);
        [begun, ended]
    };
    let (later, earlier) = (wait(1, 1_630), wait(2, 0));
    for order in [[earlier, later], [later, earlier]] {
        let found = study(order.as_flattened(), SectionOptions::default());
        let worst = found.classes.iter().find_map(|(_, statistics)| statistics.worst_wait);
        assert_eq!(worst.map(|worst| (worst.thread, worst.wait_ns)), Some((2, 1_630)));
    }
}
