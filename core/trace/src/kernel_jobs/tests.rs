//! What switches and wake-ups come to.

use super::*;

/// Who was told what: wake-ups of thread 7, and its switches to and from the processor.
#[derive(Clone, Copy)]
enum Told {
    Wake(u64),
    Enter(u64),
    Leave(u64, u8),
    Lose,
    Adopt(u64),
}
use Told::{Adopt, Enter, Leave, Lose, Wake};

fn at(time: u64) -> At {
    At { time, cpu: 1 }
}

/// Time, kind, job and value of what is recorded of thread 7, task 3.
fn made(mut jobs: KernelJobs, told: &[Told]) -> Vec<(u64, Kind, u64, u64)> {
    let mut records = Vec::new();
    let mut out = |record: Record| {
        let job = if record.kind == Kind::Lost { record.extra } else { record.job };
        records.push((record.time.as_ns(), record.kind, job, record.value));
    };
    for one in told {
        match *one {
            Wake(time) => jobs.wake(at(time), 7, &mut out),
            Enter(time) => jobs.enter(at(time), 7, &mut out),
            Leave(time, letter) => jobs.leave(at(time), 7, letter, false, &mut out),
            Lose => jobs.lose(None),
            Adopt(time) => jobs.adopt(at(time), 7, &mut out),
        }
    }
    records
}

fn following() -> KernelJobs {
    let mut jobs = KernelJobs::new(0, true);
    jobs.follow(7, 3);
    jobs
}

fn born() -> KernelJobs {
    let mut jobs = following();
    jobs.born(7);
    jobs
}

#[test]
fn only_waiting_ends_a_job() {
    for (letter, expected) in [(b'S', true), (b'I', true), (b'D', false), (b'T', false), (b't', false)] {
        let told = [Wake(10), Enter(12), Leave(20, letter), Wake(50), Enter(51), Leave(60, b'S')];
        let records = made(following(), &told);
        let ends: Vec<_> = records.iter().filter(|(_, kind, ..)| *kind == Kind::Completion).collect();
        if expected {
            assert_eq!(ends, [&(20, Kind::Completion, 0, 8), &(60, Kind::Completion, 1, 9)], "{letter}");
        } else {
            // Nothing but its own execution counts, and it was not preempted.
            assert_eq!(ends, [&(60, Kind::Completion, 0, 17)], "{letter}");
            assert_eq!(records.len(), 3, "{records:?}");
        }
    }
}

#[test]
fn a_job_that_ends_with_its_thread_is_neither_done_nor_preempted() {
    for letter in [b'X', b'Z'] {
        let mut jobs = following();
        let mut records = Vec::new();
        let mut out = |record: Record| records.push(record.kind);
        jobs.wake(at(10), 7, &mut out);
        jobs.enter(at(12), 7, &mut out);
        jobs.leave(at(20), 7, letter, false, &mut out);
        assert_eq!(records, [Kind::Release, Kind::Start]);
        assert_eq!(jobs.died(), [(3, 0)]);
        assert_eq!(jobs.job_of(7), None);
    }
}

#[test]
fn start_up_is_no_job_until_the_first_wait() {
    let told = [
        Wake(10),
        Enter(11),
        Leave(20, b'D'),
        Wake(30),
        Enter(31),
        Leave(40, b'R'),
        Enter(41),
        Leave(300, b'S'),
        Wake(400),
        Enter(401),
        Leave(410, b'S'),
    ];
    let expected = [(400, Kind::Release, 0, 400), (401, Kind::Start, 0, 0), (410, Kind::Completion, 0, 9)];
    assert_eq!(made(born(), &told), expected);
}

#[test]
fn who_never_waits_has_one_job_that_never_ends() {
    let told = [Enter(5), Leave(20, b'R'), Enter(30), Adopt(100), Leave(150, b'R'), Enter(160)];
    let expected = [
        (100, Kind::Release, 0, 100),
        (100, Kind::Start, 0, 0),
        (150, Kind::Preempt, 0, 0),
        (160, Kind::Resume, 0, 0),
    ];
    assert_eq!(made(born(), &told), expected);
    // Who is off the processor starts when it comes.
    let expected = [(100, Kind::Release, 0, 100), (160, Kind::Start, 0, 0)];
    assert_eq!(made(born(), &[Enter(5), Leave(20, b'R'), Adopt(100), Enter(160)]), expected);
    // Who waits, or has a job, is left alone.
    assert_eq!(made(born(), &[Enter(5), Leave(20, b'S'), Adopt(100)]), []);
    let at_work = [Enter(5), Leave(20, b'S'), Wake(90), Adopt(100)];
    assert_eq!(made(born(), &at_work), [(90, Kind::Release, 0, 90)]);
    // What a thread did before its record began is unknown.
    assert_eq!(made(following(), &[Leave(20, b'R'), Adopt(100)]), []);
}

#[test]
fn jobs_count_that_are_released_within_the_window() {
    let job = |from: u64| [Wake(from), Enter(from + 1), Leave(from + 4, b'S')];
    let all: Vec<Told> = [99, 109, 100, 200].map(job).concat();
    let mut jobs = KernelJobs::new(100, true).within(100, 200);
    jobs.follow(7, 3);
    let released = |records: Vec<(u64, Kind, u64, u64)>| -> Vec<(u64, u64)> {
        let is_release = |(_, kind, ..): &&(u64, Kind, u64, u64)| *kind == Kind::Release;
        records.iter().filter(is_release).map(|(time, _, job, _)| (*time, *job)).collect()
    };
    // The one at 99 is too early, the one at 200 too late; 100 is the first instant.
    assert_eq!(released(made(jobs.clone(), &all)), [(9, 0), (0, 1)]);
    jobs.end_at(109);
    assert_eq!(released(made(jobs, &all)), [(0, 0)]);
}

#[test]
fn after_a_loss_nothing_is_known_until_the_next_wake_up() {
    let told = [
        Wake(10),
        Enter(11),
        Lose,
        // It may have waited and been woken in between: this is the end of no known job.
        Leave(266, b'S'),
        Wake(300),
        Enter(301),
        Leave(305, b'S'),
    ];
    let expected = [
        (10, Kind::Release, 0, 10),
        (11, Kind::Start, 0, 0),
        (300, Kind::Release, 1, 300),
        (301, Kind::Start, 1, 0),
        (305, Kind::Completion, 1, 4),
    ];
    assert_eq!(made(following(), &told), expected);
}

#[test]
fn a_processor_that_nothing_gave_shows_a_hidden_switch() {
    let hidden = LossCause::HiddenSwitch as u64;
    let told = [Wake(10), Leave(20, b'S')];
    let expected = [
        (10, Kind::Release, 0, 10),
        (20, Kind::Lost, hidden, 1),
        (20, Kind::Start, 0, 0),
        (20, Kind::Completion, 0, 0),
    ];
    assert_eq!(made(following(), &told), expected);
}
