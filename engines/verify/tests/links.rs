//! Links in verification: every latch is computed again, and one wrong word of a trace is found (decision 0009).

use horolog_model::{ExecutionTimes, System, TaskId, file};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind as Drawn, short_system};
use horolog_time::Span;
use horolog_trace::file::Header;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::{Bound, Check, Class, Options, Verdict, Verification, verify_records};

/// A writer, with something above it that can make it late, and readers on both CPUs.
fn system(above: &str) -> System {
    let text = format!(
        r#"
        [system]
        name = "links"
        [platform]
        cpus = 2
        [[task]]
        name = "writer"
        cpu = 1
        period = "10 ns"
        offset = "0 ns"
        deadline = "4 ns"
        wcet = "2 ns"
        priority = 1
        [[task]]
        name = "above"
        cpu = 1
        arrivals = ["50 ns"]
        deadline = "9 ns"
        wcet = "{above}"
        priority = 5
        [[task]]
        name = "reader"
        cpu = 0
        period = "10 ns"
        offset = "4 ns"
        wcet = "1 ns"
        priority = 9
        [[link]]
        name = "x"
        from = "writer"
        to = ["reader", "writer"]
        "#
    );
    file::read(&text, "links.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

fn records(system: &System, until: u64) -> Vec<Record> {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(until)), ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).expect("it simulates");
    records
}

fn verified(system: &System, bounds: &[Bound], records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    verify_records(system, bounds, &header, records, &Options::default()).expect("it can be verified")
}

/// Class and text of what is found about links.
fn found(result: &Verification) -> Vec<(Class, String)> {
    let mine = result.findings.iter().filter(|it| it.check == Check::Link);
    mine.map(|it| (it.class, it.message.clone())).collect()
}

fn applied(result: &Verification) -> u64 {
    result.checks.iter().find(|one| one.check == Check::Link).map_or(0, |count| count.applied)
}

#[test]
fn a_healthy_trace_holds() {
    let system = system("1 ns");
    let result = verified(&system, &[], &records(&system, 100));
    assert_eq!(result.verdict, Verdict::Holds, "{:#?}", result.findings);
    // Ten publications, ten latches of each reader.
    assert_eq!(applied(&result), 30);
}

#[test]
fn drawn_systems_show_nothing_wrong_but_late_publications() {
    let mut latches = 0;
    for index in 0..400 {
        let system = short_system(3, index, Drawn::Links, 96);
        let options =
            SimOptions { horizon: Horizon::Time(Span::from_ns(96)), seed: index, ..SimOptions::default() };
        let mut records = Vec::new();
        let Ok(_) = simulate(&system, &options, &mut records) else { continue };
        if system.clusters().is_empty() {
            let result = verified(&system, &[], &records);
            let of_order = result.findings.iter().filter(|it| it.check == Check::EventOrder);
            assert_eq!(of_order.count(), 0, "{index}: {:#?}", result.findings);
            for (_, message) in found(&result) {
                assert!(message.contains(" late: "), "{index}: {message}");
            }
            let late = records.iter().filter(|r| r.kind == Kind::Publish && r.time.as_ns() > r.extra).count();
            let groups = result.groups.iter().filter(|group| group.check == Check::Link);
            assert_eq!(groups.map(|group| group.count).sum::<u64>(), late as u64, "{index}");
            latches += applied(&result);
        }
    }
    assert!(latches > 10_000, "{latches}");
}

#[test]
fn a_late_publication_is_found() {
    // From 50 to 52 or 53 somebody is above: the writer's job 5 ends at 54, its instant, or one later.
    let in_time = system("2 ns");
    assert_eq!(found(&verified(&in_time, &[], &records(&in_time, 100))), []);
    let late = system("3 ns");
    let trace = records(&late, 100);
    let message = |why: &str| format!("writer job 5 published on link x 1 ns late: {why}");
    let unproved = message("nothing in its busy window explains it, and no bound says that it is in time");
    assert_eq!(found(&verified(&late, &[], &trace)), [(Class::ModelViolated, unproved)]);
    // With a proof of the deadline the analysis is wrong.
    let bound = Bound { task: TaskId(0), response: Span::from_ns(4), test: "t".to_owned(), exact: true };
    let wrong = message("the assumptions held and nothing in its busy window explains it");
    assert_eq!(
        found(&verified(&late, std::slice::from_ref(&bound), &trace)),
        [(Class::BoundViolated, wrong)]
    );
    // Where the one above was to execute 2 ns alone, its excess explains it, proved or not.
    let without = message("a broken assumption in its busy window explains it");
    let proved = message("without the broken assumptions of above the bound would have held");
    for (bounds, why) in [(&[][..], without), (&[bound], proved)] {
        let found = found(&verified(&in_time, bounds, &trace));
        assert_eq!(found, [(Class::ModelViolated, why)], "{}", bounds.len());
    }
}

#[test]
fn a_writer_that_overruns_its_wcet_breaks_the_model_and_no_bound() {
    // Its jobs execute 2, 4 and 5 ns: job 1 ends at its instant, job 2 one nanosecond later.
    let mut draft = system("1 ns").to_draft();
    draft.tasks[0].execution = ExecutionTimes::Jobs([2, 4, 5].map(Span::from_ns).to_vec());
    let overrunning = System::new(draft).expect("a valid system");
    let bound = Bound { task: TaskId(0), response: Span::from_ns(4), test: "t".to_owned(), exact: true };
    let result = verified(&overrunning, &[bound], &records(&overrunning, 30));
    let late = "writer job 2 published on link x 1 ns late: without the broken assumptions of writer the bound would have held";
    assert_eq!(found(&result), [(Class::ModelViolated, late.to_owned())]);
    // The response of the same job has the same class.
    let response = result.findings.iter().find(|it| it.check == Check::Response).expect("it is late");
    assert_eq!((response.class, response.job), (Class::ModelViolated, Some(2)));
    assert_eq!((result.verdict, result.bound_violated), (Verdict::ModelViolated, 0));
}

#[test]
fn every_wrong_instance_is_found() {
    let system = system("1 ns");
    let trace = records(&system, 100);
    let places: Vec<usize> = (0..trace.len()).filter(|&at| trace[at].kind == Kind::Latch).collect();
    assert_eq!(places.len(), 20);
    for at in places {
        for wrong in [trace[at].extra.wrapping_sub(1), trace[at].extra.wrapping_add(1), NO_JOB] {
            if wrong == trace[at].extra {
                continue;
            }
            let mut lie = trace.clone();
            lie[at].extra = wrong;
            let result = verified(&system, &[], &lie);
            assert_eq!(found(&result).len(), 1, "{:?}", lie[at]);
            assert_eq!(result.verdict, Verdict::ModelViolated);
        }
    }
}

#[test]
fn a_missing_or_misplaced_record_is_found() {
    let system = system("1 ns");
    let trace = records(&system, 100);
    for at in (0..trace.len()).filter(|&at| matches!(trace[at].kind, Kind::Latch | Kind::Publish)) {
        let is_last = trace[at].time.as_ns() > 90;
        let mut without = trace.clone();
        let removed = without.remove(at);
        if removed.kind == Kind::Latch && !is_last {
            let message = found(&verified(&system, &[], &without));
            assert!(message.len() == 1 && message[0].1.contains("without a latch"), "{message:?}");
        }
        let mut twice = trace.clone();
        twice.insert(at, trace[at]);
        assert_eq!(verified(&system, &[], &twice).verdict, Verdict::ModelViolated, "{removed:?}");
        let mut elsewhere = trace.clone();
        elsewhere[at].value = 1;
        assert_eq!(verified(&system, &[], &elsewhere).verdict, Verdict::ModelViolated, "{removed:?}");
        if removed.kind == Kind::Publish {
            let mut other = trace.clone();
            other[at].extra += 1;
            assert_eq!(verified(&system, &[], &other).verdict, Verdict::ModelViolated, "{removed:?}");
        }
    }
}

#[test]
fn a_hole_is_not_judged() {
    let system = system("1 ns");
    let mut trace = records(&system, 100);
    // The completions of the writer's jobs 3 and 4 are lost, and then a latch is wrong, and one long after.
    let lost = |r: &Record| (30..45).contains(&r.time.as_ns());
    let at = trace.iter().position(lost).expect("a record");
    let count = trace.iter().filter(|r| lost(r)).count() as u64;
    trace.retain(|r| !lost(r));
    let time = trace[at - 1].time;
    let hole = Record { time, kind: Kind::Lost, cpu: 0, task: NO_TASK, job: NO_JOB, value: count, extra: 0 };
    trace.insert(at, hole);
    let result = verified(&system, &[], &trace);
    assert_eq!(found(&result), []);
    let latch_after = |trace: &[Record], from: u64| {
        trace.iter().position(|r| r.kind == Kind::Latch && r.time.as_ns() >= from).expect("a latch")
    };
    let mut lie = trace.clone();
    let late = latch_after(&trace, 80);
    lie[late].extra -= 1;
    assert_eq!(found(&verified(&system, &[], &lie)).len(), 1, "{:?}", lie[late]);
}
