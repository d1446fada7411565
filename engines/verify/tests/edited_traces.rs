//! Traces that were edited, or made from another file: what they leave out or say wrongly is found, and what is honest is not.

use horolog_model::{System, TaskId};
use horolog_sim::{DelayChoice, Horizon, SimOptions, simulate};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::{Bound, Check, Class, Options, Verdict, Verification, Verifier};

const MS: u64 = 1_000_000;

fn read(text: &str) -> System {
    let text = format!("[system]\nname = \"s\"\n{text}");
    horolog_model::file::read(&text, "s.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

/// So many milliseconds of a system.
fn simulated(system: &System, until: u64) -> Vec<Record> {
    let options = SimOptions {
        horizon: Horizon::Time(Span::from_ns(until * MS)),
        latency: DelayChoice::Max,
        ..SimOptions::default()
    };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).expect("it can be simulated");
    records
}

fn header(system: &System, backend: &str, until: u64) -> Header {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::from_ns(until * MS));
    header.backend = backend.to_owned();
    header
}

fn verified(system: &System, header: &Header, records: &[Record], end: u64) -> Verification {
    let mut verifier = Verifier::new(system, &[], header, &Options::default()).expect("it can be verified");
    records.iter().for_each(|record| verifier.take(record));
    verifier.finish(end * MS, None, Vec::new())
}

/// A whole simulated trace.
fn whole(system: &System, records: &[Record], until: u64) -> Verification {
    verified(system, &header(system, "sim", until), records, until)
}

#[track_caller]
fn holds(result: &Verification) {
    assert_eq!(result.findings, [], "{:?}", result.notes);
    assert_eq!(result.verdict, Verdict::Holds, "{:?}", result.notes);
}

#[track_caller]
fn finds(result: &Verification, check: Check, said: &str) {
    let is_it = |one: &horolog_verify::Finding| {
        one.check == check && one.class == Class::ModelViolated && one.message.contains(said)
    };
    assert!(result.findings.iter().any(is_it), "{said}: {:#?} {:?}", result.findings, result.notes);
    assert_eq!(result.exit_code(false), 1);
}

#[track_caller]
fn is_unknown(result: &Verification, said: &str) {
    assert_eq!((result.findings.as_slice(), result.verdict), (&[][..], Verdict::Unknown));
    assert_eq!(result.exit_code(false), 1);
    assert!(result.notes.iter().any(|note| note.contains(said)), "{:?}", result.notes);
}

fn without(records: &[Record], is_gone: impl Fn(&Record) -> bool) -> Vec<Record> {
    records.iter().filter(|record| !is_gone(record)).copied().collect()
}

const TWO: &str = "[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 2\n\
    [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"3 ms\"\npriority = 1\n";

#[test]
fn a_task_that_never_arrives_or_stops_arriving_is_found() {
    let system = read(TWO);
    let honest = simulated(&system, 100);
    holds(&whole(&system, &honest, 100));
    let never = whole(&system, &without(&honest, |record| record.task == 1), 100);
    finds(
        &never,
        Check::MissingJob,
        "no record shows job 0 of b, which arrived at the latest at 20 ms nor the 3 after it",
    );
    let stops = without(&honest, |record| record.task == 1 && record.job >= 3);
    finds(
        &whole(&system, &stops, 100),
        Check::MissingJob,
        "job 3 of b, which arrived at 60 ms nor the next one: the trace ends at 100 ms",
    );
    // The last one alone.
    let last = without(&honest, |record| record.task == 0 && record.job == 9);
    finds(
        &whole(&system, &last, 100),
        Check::MissingJob,
        "job 9 of a, which arrived at 90 ms: the trace ends",
    );
    assert_eq!(whole(&system, &last, 100).model_violated, 1);
    // What arrives at the very end is in no trace.
    let half = without(&honest, |record| record.time.as_ns() >= 60 * MS);
    is_unknown(
        &verified(&system, &header(&system, "sim", 100), &half, 60),
        "the trace ends at 60 ms, and its head says",
    );
    // A simulation that counts jobs has no horizon in its head.
    holds(&verified(&system, &header(&system, "sim", 0), &half, 60));
    let cut = without(&half, |record| record.task == 1 && record.job >= 2);
    finds(
        &verified(&system, &header(&system, "sim", 0), &cut, 60),
        Check::MissingJob,
        "job 2 of b, which arrived at 40 ms",
    );
}

#[test]
fn listed_arrivals_and_arrivals_by_mode_are_missed_and_sporadic_ones_are_not() {
    let listed = read(
        "[[task]]\nname = \"a\"\narrivals = [\"1 ms\", \"5 ms\"]\nwcet = \"1 ms\"\npriority = 2\n\
        [[task]]\nname = \"b\"\nseparation = \"4 ms\"\nwcet = \"1 ms\"\npriority = 1\n",
    );
    let honest = simulated(&listed, 20);
    holds(&whole(&listed, &honest, 20));
    let second = without(&honest, |record| record.task == 0 && record.job == 1);
    finds(
        &whole(&listed, &second, 20),
        Check::MissingJob,
        "job 1 of a, which arrived at 5 ms: the trace ends",
    );
    holds(&whole(&listed, &without(&honest, |record| record.task == 1), 20));
    let modes = read(&format!(
        "{TWO}[[mode]]\nname = \"alone\"\nat = [\"50 ms\"]\nactive = [\"a\"]\n[[mode.task]]\nname = \"a\"\nperiod = \"5 ms\"\n"
    ));
    let honest = simulated(&modes, 100);
    holds(&whole(&modes, &honest, 100));
    let before = without(&honest, |record| record.task == 1);
    finds(&whole(&modes, &before, 100), Check::MissingJob, "nor the next one: the mode changed at 50 ms");
    let after = without(&honest, |record| record.task == 0 && record.time.as_ns() >= 50 * MS);
    finds(
        &whole(&modes, &after, 100),
        Check::MissingJob,
        "which arrived at 50 ms nor the 9 after it: the trace ends",
    );
}

#[test]
fn a_measured_task_that_stops_is_found_and_a_run_that_was_stopped_is_not() {
    let system = read(TWO);
    let honest = simulated(&system, 100);
    let linux = |until| header(&system, "linux", until);
    holds(&verified(&system, &linux(100), &honest, 100));
    let stops = without(&honest, |record| record.task == 1 && record.job >= 3);
    finds(
        &verified(&system, &linux(100), &stops, 100),
        Check::MissingJob,
        "job 3 of b, which arrived at 60 ms",
    );
    let early = without(&honest, |record| record.time.as_ns() >= 70 * MS);
    let stopped = verified(&system, &linux(100), &early, 70);
    // Nobody is accused, and what came after is not decided.
    assert_eq!((stopped.verdict, stopped.findings.len()), (Verdict::Unknown, 0), "{:?}", stopped.findings);
    assert!(
        stopped.notes.iter().any(|note| note.contains("stopped at 70 ms of 100 ms")),
        "{:?}",
        stopped.notes
    );
    let also = without(&early, |record| record.task == 1);
    finds(&verified(&system, &linux(100), &also, 70), Check::MissingJob, "job 0 of b");
    // With a loss the missing jobs may be among what was lost.
    let loss = |extra| Record {
        time: Instant::from_ns(65 * MS),
        kind: Kind::Lost,
        cpu: 0,
        task: NO_TASK,
        job: NO_JOB,
        value: 1,
        extra,
    };
    let mut lossy = stops.clone();
    let place = lossy.partition_point(|record| record.time.as_ns() < 65 * MS);
    lossy.insert(place, loss(0));
    is_unknown(&verified(&system, &linux(100), &lossy, 100), "records of jobs were lost");
    // What the kernel lost is no job.
    lossy[place] = loss(1);
    finds(&verified(&system, &linux(100), &lossy, 100), Check::MissingJob, "job 3 of b");
}

/// A job that was under way when the run was stopped at 62 ms completes at 70 ms, and `a` would have arrived at 64 ms.
#[test]
fn jobs_that_complete_behind_the_end_of_the_releases_make_none_missing() {
    let system = read(
        "[[task]]\nname = \"a\"\nperiod = \"4 ms\"\nwcet = \"1 ms\"\npriority = 2\n\
         [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"9 ms\"\npriority = 1\n",
    );
    let mut records = without(&simulated(&system, 100), |record| record.time.as_ns() >= 62 * MS);
    let last = records[records.len() - 1];
    assert_eq!((last.kind, last.task, last.job, last.time.as_ns()), (Kind::Start, 1, 3, 61 * MS));
    records.push(Record { time: Instant::from_ns(70 * MS), kind: Kind::Completion, value: 9 * MS, ..last });
    // The horizon in the head may lie behind the end of the recording, before it, or be unknown.
    let stopped = |horizon, releases_end: Option<u64>| {
        let head = header(&system, "linux", horizon);
        let mut verifier =
            Verifier::new(&system, &[], &head, &Options::default()).expect("it can be verified");
        records.iter().for_each(|record| verifier.take(record));
        if let Some(at) = releases_end {
            verifier.set_releases_end(Instant::from_ns(at));
        }
        verifier.finish(70 * MS, None, Vec::new())
    };
    let early = |at| stopped(100, at);
    let result = early(Some(62 * MS));
    assert_eq!((result.verdict, result.findings.len()), (Verdict::Unknown, 0), "{:?}", result.findings);
    assert!(
        result.notes.iter().any(|note| note.contains("stopped at 62 ms of 100 ms")),
        "{:?}",
        result.notes
    );
    // What had to be on record by the end of the releases is missing, to the nanosecond.
    let allowed = 64 * MS + 1_020_000;
    assert_eq!(early(Some(allowed)).findings, []);
    let said = "no record shows job 16 of a, which arrived at 64 ms: the trace ends at 65.020001 ms";
    finds(&early(Some(allowed + 1)), Check::MissingJob, said);
    let near = stopped(66, Some(62 * MS));
    assert_eq!((near.verdict, near.findings.len()), (Verdict::Unknown, 0), "{:?}", near.findings);
    finds(&stopped(66, Some(66 * MS)), Check::MissingJob, "job 16 of a, which arrived at 64 ms");
    assert_eq!(stopped(0, Some(62 * MS)).findings, []);
    finds(&stopped(0, Some(66 * MS)), Check::MissingJob, "job 16 of a, which arrived at 64 ms");
    // What a foot says is held to what is on record, and to the end of the recording.
    assert_eq!(stopped(0, Some(1)).findings, []);
    let forged = stopped(0, Some(u64::MAX));
    finds(&forged, Check::MissingJob, "job 16 of a, which arrived at 64 ms");
    assert!(
        forged.findings.iter().all(|one| one.message.contains("nor the next one: the trace ends at 70 ms")),
        "{:?}",
        forged.findings
    );
    // A trace of an older version: the last record is all that tells.
    finds(&early(None), Check::MissingJob, "job 16 of a, which arrived at 64 ms");
}

#[test]
fn a_trace_without_a_job_shows_nothing() {
    let system = read(TWO);
    let kernel = |time| Record {
        time: Instant::from_ns(time),
        kind: Kind::InterruptEntry,
        cpu: 0,
        task: NO_TASK,
        job: NO_JOB,
        value: 0,
        extra: 0,
    };
    is_unknown(
        &verified(&system, &header(&system, "linux", 3_000), &[kernel(5), kernel(7)], 1),
        "the trace shows no job",
    );
    let sporadic = read("[[task]]\nname = \"a\"\nseparation = \"1 ms\"\nwcet = \"1 ms\"\npriority = 2\n");
    is_unknown(&verified(&sporadic, &header(&sporadic, "sim", 20), &[], 20), "the trace shows no job");
}

const RESERVE: &str = "[[task]]\nname = \"hard\"\nperiod = \"20 ms\"\nwcet = \"4 ms\"\npriority = 9\n\
    [[task]]\nname = \"hi\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 2\n\
    [[task]]\nname = \"lo\"\nperiod = \"20 ms\"\nwcet = \"3 ms\"\npriority = 1\n\
    [[scheduler]]\nname = \"v\"\norder = \"fixed-priority\"\nkind = \"deferrable\"\nbudget = \"3 ms\"\nperiod = \"10 ms\"\n\
    priority = 5\nlow_priority = \"none\"\ntasks = [\"hi\", \"lo\"]\n";

#[test]
fn every_record_of_a_simulated_budget_is_held_against_its_rules() {
    let system = read(RESERVE);
    let honest = simulated(&system, 100);
    holds(&whole(&system, &honest, 100));
    let of = |kind: Kind| move |record: &Record| record.kind == kind;
    for kind in [Kind::BudgetExhausted, Kind::BudgetReplenished] {
        assert!(honest.iter().filter(|&record| of(kind)(record)).count() > 2);
        finds(
            &whole(&system, &without(&honest, of(kind)), 100),
            Check::ServerDecision,
            "and no record says so",
        );
        for more in [1, 1 << 40] {
            let mut edited = honest.clone();
            edited.iter_mut().rfind(|record| record.kind == kind).expect("there is one").extra += more;
            finds(&whole(&system, &edited, 100), Check::ServerDecision, "by its rules that is");
        }
        let mut late = honest.clone();
        let place = late.iter().position(of(kind)).expect("there is one");
        late[place].time = Instant::from_ns(late[place].time.as_ns() + 1);
        late.sort_by_key(|record| record.time);
        finds(&whole(&system, &late, 100), Check::ServerDecision, "and no record says so");
        let mut twice = honest.clone();
        twice.insert(place, honest[place]);
        finds(&whole(&system, &twice, 100), Check::ServerDecision, "too early: by its rules not yet");
    }
    // The last one of all, behind every job.
    let last = honest.iter().rposition(of(Kind::BudgetReplenished)).expect("there is one");
    let mut cut = honest.clone();
    cut.remove(last);
    finds(&whole(&system, &cut, 100), Check::ServerDecision, "its budget came back by its rules");
}

#[test]
fn a_measured_budget_comes_back_to_no_more_than_it_is_and_no_more_often() {
    let system = read(RESERVE);
    let honest = simulated(&system, 100);
    let linux = header(&system, "linux", 100);
    holds(&verified(&system, &linux, &honest, 100));
    let back = |record: &Record| record.kind == Kind::BudgetReplenished;
    let mut more = honest.clone();
    more.iter_mut().find(|record| back(record)).expect("there is one").extra = 3 * MS + 1;
    finds(
        &verified(&system, &linux, &more, 100),
        Check::Budget,
        "its budget came back to 3.000001 ms, it is 3 ms",
    );
    let place = honest.iter().rposition(back).expect("there is one");
    let mut often = honest.clone();
    for _ in 0..8 {
        often.insert(place, honest[place]);
    }
    finds(&verified(&system, &linux, &often, 100), Check::Budget, "before the next multiple of its period");
}

/// The same system with the places of its two lowest tasks changed.
fn swapped(text: &str) -> System {
    read(&text.replace("priority = 2\n", "priority = 3\n").replace("priority = 1\n", "priority = 4\n"))
}

#[test]
fn a_swapped_priority_in_a_tree_is_found_after_overruns_and_with_costs() {
    let overrun = |policy: &str| {
        let text = RESERVE.replace("wcet = \"4 ms\"", "wcet = \"1 ms\"");
        let end = format!("priority = 9\noverrun = \"{policy}\"\nexecution = {{ jobs = [\"2 ms\"] }}\n");
        text.replace("priority = 9\n", &end)
    };
    let platform = |costs: &str| format!("[platform]\n{costs}{RESERVE}");
    for text in [
        RESERVE.to_owned(),
        overrun("drop"),
        overrun("stop"),
        overrun("skip"),
        overrun("demote"),
        platform("context_switch = \"1 us\"\n"),
        platform("timer_interrupt = \"3 us\"\n"),
        platform("context_switch = \"1 us\"\ntimer_interrupt = \"2 us\"\ntick = \"1 ms\"\n"),
    ] {
        let system = read(&text);
        let honest = whole(&system, &simulated(&system, 100), 100);
        // With some policies a job goes on beyond its wcet.
        let is_wrong = |one: &&horolog_verify::Finding| one.check != Check::Execution;
        assert_eq!(honest.findings.iter().find(is_wrong), None, "{text}");
        assert!(!honest.notes.iter().any(|note| note.contains("up to where")), "{:?}", honest.notes);
        let lie = whole(&system, &simulated(&swapped(&text), 100), 100);
        finds(&lie, Check::ServerDecision, "has the processor and");
    }
}

#[test]
fn an_overrun_without_a_record_is_found() {
    let end = "priority = 9\noverrun = \"drop\"\nexecution = { jobs = [\"5 ms\"] }\n";
    let system = read(&RESERVE.replace("priority = 9\n", end));
    let honest = simulated(&system, 100);
    holds(&whole(&system, &honest, 100));
    let mut edited = honest.clone();
    let dropped = edited.iter_mut().find(|record| record.kind == Kind::Enforcement).expect("it overruns");
    dropped.extra = 2;
    finds(&whole(&system, &edited, 100), Check::ServerDecision, "");
    let silent = without(&honest, |record| record.kind == Kind::Enforcement);
    finds(&whole(&system, &silent, 100), Check::ServerDecision, "");
}

#[test]
fn a_measured_tree_that_was_not_decided_is_unknown() {
    let text = RESERVE.replace("kind = \"deferrable\"", "kind = \"sporadic\"\nrules = \"posix\"");
    let system = read(&text);
    let honest = simulated(&system, 100);
    holds(&whole(&system, &honest, 100));
    let measured = verified(&system, &header(&system, "linux", 100), &honest, 100);
    is_unknown(&measured, "who should run in its tree of schedulers was not decided");
}

const LOCKS: &str = "[[resource]]\nname = \"r\"\n\
    [[task]]\nname = \"a\"\nperiod = \"10 ms\"\noffset = \"1 ms\"\nwcet = \"2 ms\"\npriority = 2\nbody = { spin = \"2 ms\" }\n\
    [[task.section]]\nresource = \"r\"\nfrom = \"0.5 ms\"\nlength = \"1 ms\"\n\
    [[task]]\nname = \"b\"\nperiod = \"20 ms\"\noffset = \"0 ms\"\nwcet = \"5 ms\"\npriority = 1\nbody = { spin = \"5 ms\" }\n\
    [[task.section]]\nresource = \"r\"\nfrom = \"2 ms\"\nlength = \"2 ms\"\n";

#[test]
fn a_job_that_does_not_lock_or_locks_elsewhere_is_found() {
    let is_lock = |record: &Record| matches!(record.kind, Kind::Lock | Kind::Unlock);
    for policy in ["fixed-priority", "edf"] {
        let file = |locks: String| {
            let locks = if policy == "edf" { locks.replace("priority = ", "# ") } else { locks };
            read(&format!("policy = \"{policy}\"\n{locks}"))
        };
        let system = file(LOCKS.to_owned());
        let honest = simulated(&system, 100);
        holds(&whole(&system, &honest, 100));
        let none = without(&honest, |record| is_lock(record) && record.task == 0);
        let said =
            "resource r: a job 0 executed 2 ms and did not lock it, which it does after 500 us by the file";
        finds(&whole(&system, &none, 100), Check::Resource, said);
        // In a run, too, where its body spins.
        finds(&verified(&system, &header(&system, "linux", 100), &none, 100), Check::Resource, said);
        // Where a switch is hidden it is not known after how much it locks, and still that it does.
        let mut hidden = honest.clone();
        let lost = Record { kind: Kind::Lost, task: NO_TASK, job: NO_JOB, value: 1, extra: 2, ..honest[0] };
        hidden.insert(0, lost);
        assert_eq!(verified(&system, &header(&system, "linux", 100), &hidden, 100).model_violated, 0);
        let one = without(&honest, |record| is_lock(record) && record.task == 1 && record.job == 2);
        finds(&whole(&system, &one, 100), Check::Resource, "b job 2 executed 5 ms and did not lock it");
        // A nanosecond later, or earlier.
        for (from, said) in [
            ("from = \"0.499999 ms\"", "after it has executed 500 us"),
            ("from = \"0.500001 ms\"", "after 500.001 us"),
        ] {
            let other = file(LOCKS.replace("from = \"0.5 ms\"", from));
            finds(&whole(&other, &honest, 100), Check::Resource, said);
        }
        let longer = file(LOCKS.replace("length = \"1 ms\"", "length = \"1.000001 ms\""));
        finds(
            &whole(&longer, &honest, 100),
            Check::Resource,
            "a job 0 unlocks it before the end of its section",
        );
    }
}

#[test]
fn with_costs_sections_are_where_they_are_within_these() {
    let system =
        read(&format!("[platform]\ncontext_switch = \"10 us\"\ntimer_interrupt = \"5 us\"\n{LOCKS}"));
    let honest = simulated(&system, 100);
    holds(&whole(&system, &honest, 100));
    let other = read(&format!(
        "[platform]\ncontext_switch = \"10 us\"\ntimer_interrupt = \"5 us\"\n{}",
        LOCKS.replace("from = \"0.5 ms\"", "from = \"0.9 ms\"")
    ));
    finds(&whole(&other, &honest, 100), Check::Resource, "by the file that is after 900 us");
}

const LINK: &str = "[[task]]\nname = \"a\"\nperiod = \"5 ms\"\nwcet = \"1 ms\"\npriority = 9\n\
    [[task]]\nname = \"d\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 5\n\
    [[link]]\nname = \"l\"\nfrom = \"a\"\nto = [\"d\"]\n";

#[test]
fn a_writer_without_publications_is_found() {
    let system = read(LINK);
    let honest = simulated(&system, 60);
    holds(&whole(&system, &honest, 60));
    let none = without(&honest, |record| record.kind == Kind::Publish);
    finds(
        &whole(&system, &none, 60),
        Check::Link,
        "a job 0 completed without a publication on link l on record",
    );
    let last = honest.iter().rposition(|record| record.kind == Kind::Publish).expect("it publishes");
    let mut cut = honest;
    cut.remove(last);
    finds(&whole(&system, &cut, 60), Check::Link, "a job 11 completed without a publication");
}

#[test]
fn a_link_whose_writer_a_mode_changes_is_judged_by_the_deadline_of_the_release() {
    for change in ["period = \"10 ms\"", "deadline = \"3 ms\""] {
        let system = read(&format!(
            "{LINK}[[mode]]\nname = \"m\"\nat = [\"13 ms\"]\n[[mode.task]]\nname = \"a\"\n{change}\n[[mode]]\nname = \"n\"\nat = [\"30 ms\"]\n"
        ));
        let honest = simulated(&system, 60);
        holds(&whole(&system, &honest, 60));
        let mut lie = honest.clone();
        for record in
            lie.iter_mut().filter(|record| record.kind == Kind::Latch && record.time.as_ns() == 20 * MS)
        {
            record.extra = if record.extra == 2 { 3 } else { 2 };
        }
        finds(&whole(&system, &lie, 60), Check::Link, "d job 2 latched job");
    }
}

#[test]
fn jobs_that_nobody_has_noticed_may_have_missed_their_deadlines() {
    let system = read(
        "[platform]\nrelease_latency = \"30 ms\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\noffset = \"0 ms\"\nwcet = \"1 ms\"\npriority = 1\n",
    );
    for until in [10, 20, 95, 100] {
        let honest = simulated(&system, until);
        let unnoticed = honest.iter().filter(|record| record.kind == Kind::Miss).count();
        assert!(unnoticed > 0);
        let result = whole(&system, &honest, until);
        assert_eq!(result.findings, [], "{until}");
    }
    // Of a job that has not arrived by then, or with another deadline, it is none.
    let honest = simulated(&system, 95);
    for (job, value) in [(1, 0), (0, 1)] {
        let mut lie = honest.clone();
        let last = lie.iter_mut().rfind(|record| record.kind == Kind::Miss).expect("there is one");
        (last.job, last.value) = (last.job + job, last.value + value);
        finds(&whole(&system, &lie, 95), Check::EventOrder, "no such job is pending or was late");
    }
}

#[test]
fn small_lies_of_a_job_are_found() {
    let system = read(
        "[[task]]\nname = \"a\"\nperiod = \"10 ms\"\ndeadline = \"4 ms\"\nwcet = \"2 ms\"\npriority = 2\n\
        [[task]]\nname = \"b\"\nperiod = \"20 ms\"\ndeadline = \"4 ms\"\nwcet = \"3 ms\"\npriority = 1\n",
    );
    let honest = simulated(&system, 100);
    holds(&whole(&system, &honest, 100));
    let edit = |is_it: &dyn Fn(&Record) -> bool, change: &dyn Fn(&mut Record)| {
        let mut records = honest.clone();
        change(records.iter_mut().find(|record| is_it(record)).expect("there is one"));
        whole(&system, &records, 100)
    };
    let miss = edit(&|record| record.kind == Kind::Miss, &|record| record.value += 1);
    finds(&miss, Check::EventOrder, "which is another");
    for kind in [Kind::Completion, Kind::Release, Kind::Miss] {
        let moved = edit(&|record| record.kind == kind, &|record| record.cpu = 7);
        finds(&moved, Check::Processor, "of CPU 7, its processor is CPU 0");
    }
    for (change, said) in [(1_u64, "2.000001 ms"), (1_u64.wrapping_neg(), "1.999999 ms")] {
        let told = edit(&|record| record.kind == Kind::Completion, &|record| {
            record.value = record.value.wrapping_add(change)
        });
        finds(
            &told,
            Check::Execution,
            &format!("a job 0 says that it executed {said}, and had the processor for 2 ms"),
        );
    }
}

#[test]
fn twice_a_file_is_no_trace() {
    use horolog_trace::Sink;
    use horolog_trace::file::{Reader, Writer};
    let system = read(TWO);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header(&system, "sim", 100)).expect("it can be written");
    simulated(&system, 100).into_iter().for_each(|record| writer.record(record));
    writer.finish(Instant::from_ns(100 * MS)).expect("it can be written");
    let verify = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes).expect("a trace");
        horolog_verify::verify(&system, &[], &mut reader, &Options::default()).expect("it can be verified")
    };
    holds(&verify(&bytes));
    for more in [&[0][..], &bytes.clone()] {
        let longer = [bytes.as_slice(), more].concat();
        is_unknown(&verify(&longer), "bytes follow the trace's end");
    }
}

/// What loses no record of a job excuses none: a hidden switch and the kernel's own losses; a lost record of a job may be the missing one.
#[test]
fn jobs_keep_their_order_beside_losses_that_are_not_theirs() {
    let system = read(TWO);
    let honest = simulated(&system, 100);
    let place = |kind: Kind| {
        let is_it = |record: &Record| record.task == 1 && record.job == 2 && record.kind == kind;
        honest.iter().position(is_it).expect("job 2 of b")
    };
    let lost = |extra| Record {
        time: Instant::from_ns(0),
        kind: Kind::Lost,
        cpu: 0,
        task: NO_TASK,
        job: NO_JOB,
        value: 1,
        extra,
    };
    let linux = header(&system, "linux", 100);
    let mut swapped = honest.clone();
    swapped.swap(place(Kind::Release), place(Kind::Start));
    let mut twice = honest.clone();
    twice.insert(place(Kind::Start), honest[place(Kind::Start)]);
    let mut without_start = honest.clone();
    without_start.remove(place(Kind::Start));
    let mut ends_twice = honest.clone();
    ends_twice.insert(place(Kind::Completion), honest[place(Kind::Completion)]);
    for (edited, said) in [
        (&swapped, "start of b job 2"),
        (&twice, "start of b job 2"),
        (&without_start, "completion of b job 2"),
        (&ends_twice, "completion of b job 2"),
    ] {
        for extra in [1, 2] {
            let mut records = edited.clone();
            records.insert(0, lost(extra));
            finds(&verified(&system, &linux, &records, 100), Check::EventOrder, said);
        }
        let mut records = edited.clone();
        records.insert(0, lost(0));
        let found = verified(&system, &linux, &records, 100);
        assert!(found.findings.iter().all(|one| one.check != Check::EventOrder), "{:#?}", found.findings);
    }
    // A simulation's trace without its beginning.
    let late = without(&honest, |record| record.job < 2);
    finds(&whole(&system, &late, 100), Check::EventOrder, "job 0 comes next");
}

/// A job that was demoted as it had executed its wcet and is not done is late by itself, and so is the one behind it.
#[test]
fn a_demoted_job_that_does_not_end_accuses_no_bound() {
    let system = read(
        "[[task]]\nname = \"a\"\nperiod = \"4 ns\"\noffset = \"0 ns\"\nwcet = \"1 ns\"\n\
         execution = { jobs = [\"2 ns\"] }\npriority = 2\noverrun = \"demote\"\n[[task]]\nname = \"b\"\nperiod = \"4 ns\"\n\
         offset = \"0 ns\"\nwcet = \"3 ns\"\npriority = 1\n",
    );
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(7)), ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(&system, &options, &mut records).expect("it simulates");
    let bound = |task, ns| Bound {
        task: TaskId(task),
        response: Span::from_ns(ns),
        test: "fp".to_owned(),
        exact: true,
    };
    let mut verifier =
        Verifier::new(&system, &[bound(0, 1), bound(1, 4)], &header(&system, "sim", 0), &Options::default())
            .expect("it can be verified");
    records.iter().for_each(|record| verifier.take(record));
    let found = verifier.finish(7, None, Vec::new());
    assert_eq!((found.bound_violated, found.verdict), (0, Verdict::ModelViolated), "{:#?}", found.findings);
}

/// Wherever a simulation ends, also within a handler, a softirq or a tick: nobody is accused.
#[test]
fn kernel_work_at_the_end_and_ticks_in_handlers_are_nobodys_execution() {
    for (platform, service) in [
        ("", "softirq"),
        ("", "interrupt"),
        ("[platform]\ntick = \"4 ns\"\ntimer_interrupt = \"1 ns\"\n", "interrupt"),
    ] {
        let system = read(&format!(
            "{platform}[[task]]\nname = \"t\"\nperiod = \"60 ns\"\noffset = \"1 ns\"\nwcet = \"12 ns\"\npriority = 1\n\
             [[interrupt]]\nname = \"i\"\nseparation = \"23 ns\"\ncost = \"1 ns\"\n\
             [[device]]\nname = \"d\"\nservice = \"{service}\"\ninterrupt = \"i\"\nseparation = \"23 ns\"\ncost = \"5 ns\"\n"
        ));
        for until in 1..150 {
            let options =
                SimOptions { horizon: Horizon::Time(Span::from_ns(until)), ..SimOptions::default() };
            let mut records = Vec::new();
            simulate(&system, &options, &mut records).expect("it simulates");
            let mut header = header(&system, "sim", 0);
            header.horizon = Span::from_ns(until);
            let mut verifier =
                Verifier::new(&system, &[], &header, &Options::default()).expect("it can be verified");
            records.iter().for_each(|record| verifier.take(record));
            let found = verifier.finish(until, None, Vec::new());
            assert_eq!(found.model_violated, 0, "{service} {until}: {:#?}", found.findings);
        }
    }
}
