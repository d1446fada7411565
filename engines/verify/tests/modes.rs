//! Modes: what the simulator does is what verification expects, whatever changes; what a mode does not allow is found.

use horolog_model::{ExecutionTimes, OverrunPolicy, System};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind as Drawn, short_system};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, NO_TASK, Record};
use horolog_verify::{Check, Class, Options, Verdict, Verification, verify_records};

const END: u64 = 400;

fn simulated(system: &System, end: u64) -> Option<Vec<Record>> {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(end)), ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).ok()?;
    Some(records)
}

fn verified(system: &System, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
}

/// So many drawn systems with modes, beside servers and below trees, each with its simulated trace.
fn drawn(kind: Drawn, count: u64) -> impl Iterator<Item = (System, Vec<Record>)> {
    (0..count).filter_map(move |index| {
        let system = short_system(17, index, kind, END);
        let records = simulated(&system, END)?;
        let changes = records.iter().any(|record| record.kind == Kind::ModeChange);
        changes.then_some((system, records))
    })
}

#[test]
fn simulated_modes_have_no_findings() {
    for kind in [Drawn::Modes, Drawn::TreeModes] {
        let mut count = 0;
        for (system, records) in drawn(kind, 4_000) {
            let result = verified(&system, &records);
            let text = || horolog_model::file::print(&system);
            assert_eq!(result.findings, [], "{:#?}\n{}", result.notes, text());
            assert!(matches!(result.verdict, Verdict::Holds | Verdict::Unknown), "{:?}", result.notes);
            assert!(!result.notes.iter().any(|note| note.contains("up to where")), "{:?}", result.notes);
            count += 1;
        }
        println!("{count} systems");
        assert!(count > 500, "{count}");
    }
}

/// Whether a finding follows from a job that executed longer than its wcet: what it took of a budget that it must not lose, too.
fn is_of_wcet(finding: &horolog_verify::Finding) -> bool {
    matches!(finding.check, Check::Execution | Check::Budget)
}

/// A change that an overrun asks for is computed from when the job used up its budget.
#[test]
fn simulated_overruns_ask_for_their_modes() {
    let (mut count, mut asked) = (0, 0);
    for (system, records) in drawn(Drawn::ModeOverruns, 2_000) {
        let result = verified(&system, &records);
        let text = || horolog_model::file::print(&system);
        let others: Vec<_> = result.findings.iter().filter(|finding| !is_of_wcet(finding)).collect();
        assert!(others.is_empty(), "{others:#?}\n{}", text());
        let is_request = |record: &&Record| record.kind == Kind::Enforcement && record.extra == 5;
        assert!(!result.notes.iter().any(|note| note.contains("up to where")), "{:?}", result.notes);
        count += 1;
        asked += u64::from(records.iter().any(|record| is_request(&record)));
    }
    assert!(count > 500 && asked * 2 > count, "{asked} of {count}");
}

/// A control task whose period a mode shortens, a camera that it drops, and a server whose budget it halves.
const MOVING: &str = r#"
[system]
name = "moving"
policy = "fixed-priority"
[[task]]
name = "control"
period = "100 ns"
wcet = "10 ns"
priority = 90
[[task]]
name = "camera"
period = "300 ns"
wcet = "80 ns"
priority = 20
[[task]]
name = "commands"
arrivals = ["150 ns", "550 ns", "950 ns", "1350 ns"]
wcet = "30 ns"
[[task]]
name = "log"
period = "400 ns"
wcet = "20 ns"
priority = 10
[[server]]
name = "radio"
kind = "deferrable"
tasks = ["commands"]
budget = "20 ns"
period = "100 ns"
priority = 50
low_priority = "none"
[[mode]]
name = "moving"
at = ["410 ns"]
active = ["control", "commands", "log"]
takes_effect = { frame = "radio" }
left_over = "suspend"
[[mode.task]]
name = "control"
period = "50 ns"
deadline = "40 ns"
[[mode.task]]
name = "log"
priority = 95
[[mode.server]]
name = "radio"
budget = "10 ns"
period = "100 ns"
[[mode]]
name = "standing"
at = ["1200 ns"]
"#;

fn moving(overrides: &[&str]) -> System {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let read = horolog_model::file::read(MOVING, "moving.toml", &overrides);
    read.unwrap_or_else(|errors| panic!("{errors}")).0
}

fn found(result: &Verification) -> Vec<(Class, Check, String)> {
    result.findings.iter().map(|it| (it.class, it.check, it.message.clone())).collect()
}

#[test]
fn a_trace_is_judged_by_the_modes_of_its_file() {
    let system = moving(&[]);
    let records = simulated(&system, 1_600).expect("it is simulated");
    let right = verified(&system, &records);
    assert_eq!((right.verdict, found(&right)), (Verdict::Holds, Vec::new()), "{:?}", right.notes);
    // The same trace against a file that differs in one thing of the mode.
    for (change, check, said) in [
        (
            "mode.moving.task.control.period=\"51 ns\"",
            Check::Arrival,
            "control job 6 arrived at 550 ns, 1 ns too early",
        ),
        (
            "mode.moving.task.control.period=\"49 ns\"",
            Check::Arrival,
            "control job 6 arrived at 550 ns, 1 ns too late",
        ),
        ("mode.moving.active=[\"control\", \"commands\"]", Check::Arrival, "which does not activate it"),
        ("mode.moving.task.log.priority=15", Check::PriorityInversion, "control job"),
        ("mode.moving.server.radio.budget=\"9 ns\"", Check::ServerDecision, "by its rules that is 9 ns"),
        ("mode.moving.server.radio.budget=\"11 ns\"", Check::ServerDecision, "by its rules that is 11 ns"),
        ("mode.moving.at=[\"501 ns\"]", Check::EventOrder, "moving"),
        ("mode.moving.takes_effect=\"at-once\"", Check::EventOrder, "takes effect at 410 ns"),
        ("mode.standing.at=[\"1201 ns\"]", Check::EventOrder, "no request takes effect here"),
        ("mode.standing.at=[\"1199 ns\"]", Check::EventOrder, "takes effect at 1.199 us"),
    ] {
        let result = verified(&moving(&[change]), &records);
        let found = found(&result);
        let is_it = |(class, of, text): &(Class, Check, String)| {
            *class == Class::ModelViolated && *of == check && text.contains(said)
        };
        assert!(found.iter().any(is_it), "{change}: {found:#?}");
        assert_eq!(result.verdict, Verdict::ModelViolated, "{change}");
    }
}

#[test]
fn jobs_keep_the_deadline_of_their_release() {
    let system = moving(&["task.camera.deadline=\"290 ns\"", "task.camera.wcet=\"230 ns\""]);
    let records = simulated(&system, 1_600).expect("it is simulated");
    assert_eq!(found(&verified(&system, &records)), []);
    // One unit beyond each deadline is a miss that has to be on record, also of the job that a mode has suspended.
    let mut misses = 0;
    for (place, miss) in records.iter().enumerate().filter(|(_, record)| record.kind == Kind::Miss) {
        let ends_later = |record: &Record| {
            record.kind == Kind::Completion && record.task == miss.task && record.job > miss.job
        };
        if !records[place..].iter().any(ends_later) {
            // Its record could still come.
            continue;
        }
        let without: Vec<Record> = records.iter().filter(|&other| other != miss).copied().collect();
        let result = verified(&system, &without);
        let is_it = |(_, check, text): &(Class, Check, String)| {
            *check == Check::Deadline && text.contains("no miss is on record")
        };
        assert!(found(&result).iter().any(is_it), "{miss:?}");
        misses += 1;
    }
    assert!(misses > 0);
}

#[test]
fn what_a_mode_does_not_allow_is_found() {
    let system = moving(&[]);
    let records = simulated(&system, 1_600).expect("it is simulated");
    let changed = |change: &dyn Fn(&mut Vec<Record>)| {
        let mut records = records.clone();
        change(&mut records);
        found(&verified(&system, &records))
    };
    let at = |records: &[Record]| {
        records.iter().position(|record| record.kind == Kind::ModeChange).expect("a change")
    };
    // A change that is left out, comes twice, or is to no mode.
    let said = changed(&|records| _ = records.remove(at(records)));
    assert!(
        said.iter().any(|(_, _, text)| text.contains("takes effect at 500 ns, and no record says so")),
        "{said:#?}"
    );
    let said = changed(&|records| records.insert(at(records), records[at(records)]));
    assert!(said.iter().any(|(_, _, text)| text.contains("no request takes effect here")), "{said:#?}");
    let place = at(&records);
    let said = changed(&|records| records[place].value = 3);
    assert!(said.iter().any(|(_, _, text)| text.contains("there is no mode 3")), "{said:#?}");
    // A job of a task that is not active.
    let release = Record {
        kind: Kind::Release,
        task: 1,
        job: 2,
        value: 600,
        time: Instant::from_ns(600),
        cpu: 0,
        extra: 0,
    };
    let said = changed(&|records| {
        let place = records.partition_point(|record| record.time < release.time);
        records.insert(place, release);
    });
    let is_it = |(_, _, text): &(Class, Check, String)| {
        text == "camera job 2 was released in mode moving, which does not activate it"
    };
    assert!(said.iter().any(is_it), "{said:#?}");
    // A file without modes knows no change.
    let flat =
        System::new(horolog_model::Draft { modes: Vec::new(), ..system.to_draft() }).expect("a valid system");
    let records = [Record {
        time: Instant::from_ns(5),
        kind: Kind::ModeChange,
        cpu: 0,
        task: NO_TASK,
        job: 0,
        value: 1,
        extra: 0,
    }];
    let said = found(&verified(&flat, &records));
    assert!(said.iter().any(|(_, _, text)| text.contains("the system has no modes")), "{said:#?}");
}

/// A job of "a" that executes 4 of its 3 asks for a mode that drops "b".
const ASKING: &str = r#"
[system]
name = "asking"
[[task]]
name = "a"
period = "10 ns"
wcet = "3 ns"
bcet = "1 ns"
priority = 2
execution = { jobs = ["3 ns", "2 ns", "4 ns", "3 ns"] }
overrun = { mode = "degraded" }
[[task]]
name = "b"
period = "40 ns"
wcet = "20 ns"
priority = 1
[[mode]]
name = "degraded"
active = ["a"]
takes_effect = { when_done = ["b"] }
"#;

#[test]
fn a_change_that_an_overrun_asks_for_is_computed() {
    let read = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        horolog_model::file::read(ASKING, "asking.toml", &sets).expect("a valid file").0
    };
    let system = read(&[]);
    let records = simulated(&system, 80).expect("it is simulated");
    let said = |system: &System, records: &[Record]| -> Vec<String> {
        let result = verified(system, records);
        let others = result.findings.iter().filter(|finding| !is_of_wcet(finding));
        others.map(|finding| finding.message.clone()).collect()
    };
    assert_eq!(said(&system, &records), Vec::<String>::new());
    let asked = records.iter().position(|record| record.kind == Kind::Enforcement).expect("it asks");
    let change = records.iter().position(|record| record.kind == Kind::ModeChange).expect("a change");
    assert_eq!((records[asked].time.as_ns(), records[change].time.as_ns()), (23, 29));
    let changed = |what: &dyn Fn(&mut Vec<Record>)| {
        let mut records = records.clone();
        what(&mut records);
        said(&system, &records)
    };
    let has =
        |said: &[String], part: &str| assert!(said.iter().any(|it| it.contains(part)), "{part}: {said:#?}");
    let without = changed(&|records| _ = records.remove(asked));
    has(
        &without,
        "it has executed 4 ns, its wcet is 3 ns, and no record says that it asked for mode degraded",
    );
    has(&without, "mode degraded: no request takes effect here");
    has(
        &changed(&|records| _ = records.remove(change)),
        "mode degraded takes effect at 29 ns, and no record says so",
    );
    has(&changed(&|records| records.insert(asked, records[asked])), "this job has asked already");
    let early = changed(&|records| records[asked].time = Instant::from_ns(22));
    has(&early, "it has executed 2 ns by now, and its budget ends after 3 ns");
    has(
        &said(&read(&["task.a.wcet=4ns"]), &records),
        "it has executed 3 ns by now, and its budget ends after 4 ns",
    );
    has(
        &said(&read(&["task.a.wcet=4ns"]), &records),
        "it asked for a mode although it ended within its wcet",
    );
    has(&said(&read(&["task.a.overrun=count"]), &records), "its task's overrun policy asks for no mode");
    let at_once = said(&read(&["mode.degraded.takes_effect=at-once"]), &records);
    has(&at_once, "mode degraded takes effect at 23 ns, and no record says so");
}

/// Each first dispatch and each end of a mode is told once, at its instant: a record that is left out, comes twice or comes later is
/// found, in drawn systems too.
#[test]
fn what_follows_a_change_is_computed() {
    let (mut left_out, mut later) = (0, 0);
    for kind in [Drawn::Modes, Drawn::TreeModes] {
        for (system, records) in drawn(kind, 60) {
            // What is told last may be cut off by the end, and with costs it is not known when a choice was made.
            let is_free = system.clusters().is_empty()
                && system.platform().context_switch_cost() == Span::ZERO
                && system.platform().timer_interrupt_cost() == Span::ZERO
                && system.interferences().is_empty();
            let last = records.last().map_or(0, |record| record.time.as_ns());
            let of_change = |record: &Record| matches!(record.kind, Kind::FirstDispatch | Kind::ModeEnd);
            let places = (0..records.len()).filter(|&place| of_change(&records[place]));
            for place in places.filter(|&place| is_free && records[place].time.as_ns() < last).take(6) {
                let found = |change: &dyn Fn(&mut Vec<Record>)| {
                    let mut records = records.clone();
                    change(&mut records);
                    let result = verified(&system, &records);
                    result.findings.iter().any(|finding| finding.check == Check::EventOrder)
                };
                let what = || format!("{:?}\n{}", records[place], horolog_model::file::print(&system));
                assert!(found(&|records| _ = records.remove(place)), "left out: {}", what());
                assert!(found(&|records| records.insert(place, records[place])), "twice: {}", what());
                assert!(found(&|records| records[place].value += 1), "another mode: {}", what());
                left_out += 1;
                if let Some(next) = records[place..].iter().find(|other| other.time > records[place].time) {
                    let (to, at) = (place_of(&records, next), next.time);
                    let moved = found(&|records| {
                        let record = records.remove(place);
                        records.insert(to, Record { time: at, ..record });
                    });
                    assert!(moved, "later: {}", what());
                    later += 1;
                }
            }
        }
    }
    assert!(left_out > 200 && later > 150, "{left_out} {later}");
}

fn place_of(records: &[Record], record: &Record) -> usize {
    records.iter().position(|other| std::ptr::eq(other, record)).unwrap_or(records.len() - 1)
}

/// A job that its policy drops at the very instant of a change is dropped by both, below schedulers and servers, too.
#[test]
fn simulated_drops_at_the_instant_of_a_change() {
    let (mut count, mut met) = (0, 0);
    for kind in [Drawn::ModeOverruns, Drawn::TreeModes, Drawn::Modes] {
        for index in 0..1_000 {
            let mut draft = short_system(29, index, kind, END).to_draft();
            let mut random = horolog_testkit::Random::new(index);
            for task in draft.tasks.iter_mut().filter(|task| task.segment_graph().is_none()) {
                task.overrun = OverrunPolicy::Drop;
                let wcet = task.wcet.as_ns();
                let times = (0..3).map(|_| Span::from_ns(random.between(1, wcet + 3)));
                task.execution = ExecutionTimes::Jobs(times.collect());
            }
            let Ok(system) = System::new(draft.clone()) else { continue };
            let Some(records) = simulated(&system, END) else { continue };
            // Every second drop is where a mode is asked for.
            let is_drop = |record: &&Record| record.kind == Kind::Enforcement && record.extra == 4;
            let mut drops: Vec<Span> =
                records.iter().filter(is_drop).map(|record| Span::from_ns(record.time.as_ns())).collect();
            drops.dedup();
            for (place, mode) in draft.modes.iter_mut().enumerate() {
                let own = drops.iter().enumerate().filter(|(drop, _)| drop % 3 == place).map(|(_, at)| *at);
                mode.at = own.take(4).collect();
            }
            let Ok(system) = System::new(draft) else { continue };
            let Some(records) = simulated(&system, END) else { continue };
            let changes = records.iter().filter(|record| record.kind == Kind::ModeChange);
            let changes: Vec<Instant> = changes.map(|record| record.time).collect();
            met += u64::from(records.iter().filter(is_drop).any(|record| changes.contains(&record.time)));
            count += 1;
            let result = verified(&system, &records);
            let others: Vec<_> = result.findings.iter().filter(|finding| !is_of_wcet(finding)).collect();
            assert!(
                others.is_empty(),
                "{kind:?} {index} {others:#?}\n{}",
                horolog_model::file::print(&system)
            );
        }
    }
    println!("{count} systems, {met} with a drop at a change");
    assert!(met > 300, "{met} of {count}");
}
