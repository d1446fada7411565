//! Programs that horolog did not run: their arrivals are their wake-ups, and of their locks nothing is known.

use crate::traces::*;
use horolog_model::{Arrival, Draft};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Reader, Writer};
use horolog_trace::{Kind, Record, Sink};
use horolog_verify::Class::{self, CannotTell, MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Options, Verdict, Verification, verify, verify_records};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Two jobs of a foreign application, whose arrivals are its wake-ups, in a trace that has interrupts, too.
fn foreign(change: impl Fn(&mut Draft), second: u64) -> Verification {
    let system = long(change);
    let tick = [(0, Kind::InterruptEntry), (US, Kind::InterruptExit)];
    let mut records = tick.map(|(time, kind)| kernel(time, kind, 236, 1)).to_vec();
    records.extend(run(10 * MS, 0, 0, MS));
    records.extend(run(second, 0, 1, MS));
    recorded(&system, &[], &records, &header(&system, "foreign"))
}

#[test]
fn arrivals_of_a_foreign_application() {
    let expected = of_job(ModelViolated, Check::Arrival, "high", 1);
    let delayed = |draft: &mut Draft| {
        draft.tasks[0].jitter = Span::from_ns(7 * US);
        draft.platform.release_latency = Some(Span::from_ns(30 * US));
    };
    edge(|second| foreign(delayed, second), 20 * MS + 57 * US, expected);
    edge_below(|second| foreign(delayed, second), 20 * MS - 57 * US, expected);
    let sporadic = |draft: &mut Draft| {
        draft.tasks[0].arrival = Arrival::Sporadic { separation: Span::from_ns(10 * MS) };
        draft.platform.release_latency = Some(Span::ZERO);
    };
    edge_below(|second| foreign(sporadic, second), 20 * MS - 20 * US, expected);
    // A measured trace of planned arrivals is exact.
    let planned = |second| {
        let mut records = run(10 * MS, 0, 0, MS).to_vec();
        records.extend(run(second, 0, 1, MS));
        measured(&long(nothing), &[], &records)
    };
    edge(planned, 20 * MS, expected);
    edge_below(planned, 20 * MS, expected);
}

/// A wake-up that came late is no new rhythm, unless the next one keeps it.
#[test]
fn a_late_arrival_that_cannot_be_told_moves_no_later_one() {
    let system = long(nothing);
    let classes_of = |third: u64| {
        let records =
            [run(10 * MS, 0, 0, MS), run(20 * MS + 900 * US, 0, 1, MS), run(third, 0, 2, MS)].concat();
        classes(&recorded(&system, &[], &records, &header(&system, "foreign")), Check::Arrival)
    };
    assert_eq!(classes_of(30 * MS), [CannotTell]);
    assert_eq!(classes_of(30 * MS + 900 * US), [CannotTell]);
    assert_eq!(classes_of(30 * MS + 450 * US), [CannotTell, CannotTell]);
    assert_eq!(classes_of(28 * MS), [CannotTell, ModelViolated]);
}

/// A jitter above half the period lets any two arrivals come at twice the rate, and not all of them.
#[test]
fn arrivals_at_twice_the_rate_are_found_whatever_the_jitter() {
    let first = |arrival: Arrival, every: u64, jitter: u64| {
        let system = long(|draft| {
            draft.tasks[0].arrival = arrival.clone();
            draft.tasks[0].jitter = Span::from_ns(jitter);
            draft.tasks[0].wcet = Span::from_ns(US);
            draft.platform.release_latency = Some(Span::ZERO);
        });
        let tick = [(0, Kind::InterruptEntry), (US, Kind::InterruptExit)];
        let mut records = tick.map(|(time, kind)| kernel(time, kind, 236, 1)).to_vec();
        records.extend((0..2_000).flat_map(|job| run(10 * MS + job * every, 0, job, US)));
        let found = recorded(&system, &[], &records, &header(&system, "foreign"));
        let of_arrivals = found.findings.iter().filter(|one| one.check == Check::Arrival);
        let violated = of_arrivals.clone().find(|one| one.class == ModelViolated).and_then(|one| one.job);
        (violated, of_arrivals.count() > 0)
    };
    let periodic = Arrival::Periodic { period: Span::from_ns(10 * MS) };
    let sporadic = Arrival::Sporadic { separation: Span::from_ns(10 * MS) };
    for arrival in [periodic, sporadic] {
        // The first comes 5 ms early, the second 10, of which 6 are allowed.
        assert_eq!(first(arrival.clone(), 5 * MS, 6 * MS).0, Some(2));
        assert!(first(arrival.clone(), 9_900 * US, 2 * MS).0.is_some());
        // A clock that is a thousandth faster, and one that is twice as much faster.
        assert_eq!(first(arrival.clone(), 9_990 * US, 50 * US), (None, false));
        assert!(first(arrival.clone(), 9_980 * US, 50 * US).1);
    }
}

/// Without interrupts on record a late arrival may be that of a timer, and so may be the first before an early one.
#[test]
fn late_arrivals_of_a_trace_without_interrupts_cannot_be_told() {
    let system = long(|draft| draft.platform.release_latency = Some(Span::ZERO));
    let classes_of = |arrivals: &[u64]| {
        let jobs = arrivals.iter().zip(0..).flat_map(|(&arrival, job)| run(arrival, 0, job, MS));
        let records: Vec<Record> = jobs.collect();
        classes(&recorded(&system, &[], &records, &header(&system, "foreign")), Check::Arrival)
    };
    assert_eq!(classes_of(&[10 * MS, 24 * MS]), [CannotTell]);
    // Behind one arrival, which may have been late itself, and behind two.
    assert_eq!(classes_of(&[10 * MS, 16 * MS]), [CannotTell]);
    assert_eq!(classes_of(&[10 * MS, 20 * MS, 26 * MS]), [ModelViolated]);
}

/// It may keep the rhythm from which an arrival within the tolerance was off, or begin a new one there.
#[test]
fn an_arrival_that_is_late_within_the_tolerance_leaves_both_rhythms() {
    let system = long(|draft| draft.platform.release_latency = Some(Span::from_ns(980 * US)));
    let third = |arrival: u64| {
        let tick = [(0, Kind::InterruptEntry), (US, Kind::InterruptExit)];
        let mut records = tick.map(|(time, kind)| kernel(time, kind, 236, 1)).to_vec();
        let arrivals = [10 * MS, 21 * MS, arrival];
        records.extend(arrivals.iter().zip(0..).flat_map(|(&arrival, job)| run(arrival, 0, job, MS)));
        recorded(&system, &[], &records, &header(&system, "foreign"))
    };
    let expected = of_job(ModelViolated, Check::Arrival, "high", 2);
    edge_below(third, 29 * MS, expected);
    edge(third, 32 * MS, expected);
}

/// What three jobs of "high" show, the third of which is late by 3 ms, where `hidden` is so long before its arrival at 33 ms.
fn late_behind_a_hidden_switch(hidden: Option<u64>) -> Vec<Class> {
    let mut records = vec![
        kernel(0, Kind::InterruptEntry, 236, 1),
        kernel(US, Kind::InterruptExit, 236, 1),
        switch(2 * US, 3, 0),
    ];
    for (arrival, job) in [10 * MS, 20 * MS, 33 * MS].into_iter().zip(0..) {
        let [release, start, end] = run(arrival, 0, job, MS);
        records.extend([wakeup(arrival, 1), release, switch(arrival, 0, 1), start, end]);
        records.push(switch(arrival + MS, 1, 0));
    }
    if let Some(before) = hidden {
        // The kernel's record goes on with a thread that had not come.
        records.extend([switch(33 * MS - before - 10, 0, 3), switch(33 * MS - before, 4, 0)]);
        records.sort_by_key(|record| record.time);
    }
    let system = long(|draft| draft.platform.release_latency = Some(Span::ZERO));
    classes(&recorded(&system, &[], &records, &header(&system, "foreign")), Check::Arrival)
}

#[test]
fn a_late_arrival_behind_a_hidden_switch_cannot_be_told() {
    assert_eq!(late_behind_a_hidden_switch(None), [ModelViolated]);
    assert_eq!(late_behind_a_hidden_switch(Some(2 * MS)), [CannotTell]);
    // Before the arrival before.
    assert_eq!(late_behind_a_hidden_switch(Some(14 * MS)), [ModelViolated]);
}

/// Two jobs of "high", the second 3 ms early; within the first its thread leaves the processor in the state `letter`.
fn early_behind(letter: u8, backend: &str) -> Verification {
    let system = long(|draft| draft.platform.release_latency = Some(Span::ZERO));
    let [release, start, end] = run(10 * MS, 0, 0, MS);
    let mut records = vec![
        kernel(0, Kind::InterruptEntry, 236, 1),
        kernel(US, Kind::InterruptExit, 236, 1),
        release,
        switch(10 * MS, 0, 1),
        start,
        Record { task: 0, ..kernel(10_500 * US, Kind::KernelBlock, 1, letter.into()) },
        switch(10_500 * US, 1, 0),
        wakeup(10_600 * US, 1),
        switch(10_600 * US, 0, 1),
        end,
        switch(11 * MS, 1, 0),
        wakeup(17 * MS, 1),
        switch(17 * MS, 0, 1),
    ];
    records.extend(run(17 * MS, 0, 1, MS));
    records.push(switch(18 * MS, 1, 0));
    recorded(&system, &[], &records, &header(&system, backend))
}

/// The signals that stop a program and let it go on wake its threads.
#[test]
fn arrivals_of_a_stopped_program_cannot_be_told() {
    let of = |letter, backend, check| classes(&early_behind(letter, backend), check);
    assert_eq!(of(b'S', "foreign", Check::SelfSuspension), [ModelViolated]);
    assert_eq!(of(b'S', "foreign", Check::Arrival), [ModelViolated]);
    for letter in [b'T', b't'] {
        assert_eq!(of(letter, "foreign", Check::SelfSuspension), [MachineDisturbed]);
        assert_eq!(of(letter, "foreign", Check::Arrival), [CannotTell]);
        assert_eq!(of(letter, "linux", Check::Arrival), [ModelViolated], "its arrivals are planned");
    }
}

/// What it locks is its own affair, and a sleep may be a wait for a lock.
#[test]
fn of_locks_nothing_is_judged() {
    let found = |change: &dyn Fn(&mut Draft), backend: &str| {
        let system = long(change);
        let mut records = vec![
            at(0, Kind::Release, 1, 0, 0),
            switch(0, 0, 2),
            at(0, Kind::Start, 1, 0, 0),
            Record { task: 1, ..kernel(500 * US, Kind::KernelBlock, 2, u64::from(b'S')) },
            switch(500 * US, 2, 0),
            wakeup(600 * US, 2),
            switch(600 * US, 0, 2),
        ];
        if !system.resources().is_empty() {
            for time in [MS, 2 * MS] {
                records.extend([at(time, Kind::Lock, 1, 0, 0), at(time + 10 * US, Kind::Unlock, 1, 0, 0)]);
            }
        }
        records.extend([at(4 * MS, Kind::Completion, 1, 0, 4 * MS - 100 * US), switch(4 * MS, 2, 0)]);
        recorded(&system, &[], &records, &header(&system, backend))
    };
    let bus = |draft: &mut Draft| section(draft, MS, MS);
    let of =
        |result: &Verification| [Check::SelfSuspension, Check::Resource].map(|check| classes(result, check));
    let own = found(&bus, "linux");
    assert_eq!(of(&own), [vec![ModelViolated], vec![ModelViolated]]);
    let foreign = found(&bus, "foreign");
    assert_eq!(of(&foreign), [vec![CannotTell], vec![]]);
    assert_eq!(of(&found(&nothing, "foreign")), [vec![ModelViolated], vec![]]);
    let why = |result: &Verification| result.notes.iter().any(|note| note.contains("what it locks"));
    assert_eq!([&own, &foreign, &found(&nothing, "foreign")].map(why), [false, true, false]);
    // Without a finding, too.
    let system = long(bus);
    let records = run(0, 1, 0, MS);
    let header = header(&system, "foreign");
    let clean = verify_records(&system, &[], &header, &records, &Options::default()).expect("verified");
    assert_eq!((clean.findings.len(), clean.verdict), (0, Verdict::Unknown));
}

/// A long verification looks now and then whether it shall end.
#[test]
fn another_thread_ends_a_verification() {
    let system = long(nothing);
    let header = header(&system, "foreign");
    let ended = |jobs: u64, is_set: bool| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &header).expect("a trace");
        for job in 0..jobs {
            run(10 * MS * (job + 1), 0, job, MS).iter().for_each(|record| writer.record(*record));
        }
        writer.finish(Instant::from_ns(10 * MS * (jobs + 2))).expect("written");
        let mut options = Options::default();
        options.stop = Some(Arc::new(AtomicBool::new(is_set)));
        let mut reader = Reader::new(bytes.as_slice()).expect("a trace");
        verify(&system, &[], &mut reader, &options)
    };
    // Three records a job: the first look is at the 16,384th.
    assert!(ended(5_461, true).is_ok() && ended(6_000, false).is_ok());
    let error = ended(5_462, true).expect_err("it was stopped");
    assert!(error.is_stop() && !error.is_bad_input() && !error.is_not_permitted());
    assert_eq!(error.to_string(), "the verification was stopped at 54.62 s");
}

/// What the caller knows against a yes is said first; where the kernel served it otherwise, every finding is in doubt, too.
#[test]
fn doubts_are_no_yes() {
    let found = |doubts: &[&str], otherwise: &[&str], executed: u64| {
        let system = long(nothing);
        let words = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        let mut options = Options::default();
        (options.doubts, options.served_otherwise) = (words(doubts), words(otherwise));
        let records = run(0, 0, 0, executed);
        verify_records(&system, &[], &header(&system, "linux"), &records, &options).expect("verified")
    };
    holds(&found(&[], &[], 2 * MS));
    for (doubts, otherwise) in [(&["a"][..], &[][..]), (&[], &["b"]), (&["a"], &["b"])] {
        let result = found(doubts, otherwise, 2 * MS);
        assert_eq!((result.findings.len(), result.verdict), (0, Verdict::Unknown));
        let expected = [otherwise, doubts].concat();
        assert_eq!(result.notes[..expected.len()], expected);
    }
    let overrun = |doubts: &[&str], otherwise: &[&str]| {
        let result = found(doubts, otherwise, 3 * MS);
        (classes(&result, Check::Execution), result.verdict)
    };
    assert_eq!(overrun(&[], &[]), (vec![ModelViolated], Verdict::ModelViolated));
    assert_eq!(overrun(&["a"], &[]), (vec![ModelViolated], Verdict::ModelViolated));
    assert_eq!(overrun(&[], &["b"]), (vec![CannotTell], Verdict::Unknown));
}
