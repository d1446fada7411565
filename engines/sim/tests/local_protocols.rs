//! The protocols of one processor (`docs/decisions/0019-local-protocols.md`): schedules computed by hand, the same system under each.

use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

struct Task(&'static str, u64, u64, u32, Option<(u64, u64)>);

/// Who has the processor, from when to when, until all is done.
fn runs(protocol: &str, tasks: &[Task]) -> Vec<(String, u64, u64)> {
    let mut text =
        format!("[system]\nname = \"local\"\n[[resource]]\nname = \"bus\"\nprotocol = \"{protocol}\"\n");
    for Task(name, arrival, wcet, priority, section) in tasks {
        text += &format!(
            "[[task]]\nname = \"{name}\"\narrivals = [\"{arrival} ns\"]\nwcet = \"{wcet} ns\"\npriority = {priority}\n"
        );
        if let Some((from, length)) = section {
            text += &format!(
                "[[task.section]]\nresource = \"bus\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
            );
        }
    }
    let (system, _) = horolog_model::file::read(&text, "local.toml", &[]).expect("a valid file");
    let mut records: Vec<Record> = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(100)), ..SimOptions::default() };
    simulate(&system, &options, &mut records).expect("it runs");
    let (mut runs, mut since) = (Vec::new(), 0);
    for record in &records {
        let at = record.time.as_ns();
        match record.kind {
            Kind::Start | Kind::Resume => since = at,
            Kind::Preempt | Kind::Suspend | Kind::Completion if at > since => {
                runs.push((system.tasks()[record.task as usize].name.clone(), since, at));
            }
            _ => {}
        }
    }
    runs
}

fn expect(protocol: &str, tasks: &[Task], wanted: &[(&str, u64, u64)]) {
    let wanted: Vec<_> = wanted.iter().map(|&(name, from, to)| (name.to_owned(), from, to)).collect();
    assert_eq!(runs(protocol, tasks), wanted, "{protocol}");
}

/// `high` and `low` share the bus; `middle` is what an inversion lets through; `urgent` uses nothing.
const FOUR: [Task; 4] = [
    Task("low", 0, 10, 1, Some((2, 6))),
    Task("high", 4, 5, 3, Some((1, 2))),
    Task("middle", 5, 20, 2, None),
    Task("urgent", 6, 1, 9, None),
];

#[test]
fn without_a_protocol_the_middle_task_keeps_the_high_one_waiting() {
    expect(
        "none",
        &FOUR,
        &[
            ("low", 0, 4),
            ("high", 4, 5),
            ("middle", 5, 6),
            ("urgent", 6, 7),
            ("middle", 7, 26),
            ("low", 26, 30),
            ("high", 30, 34),
            ("low", 34, 36),
        ],
    );
}

#[test]
fn who_inherits_goes_on_before_the_middle_task_and_behind_the_urgent_one() {
    expect(
        "inheritance",
        &FOUR,
        &[
            ("low", 0, 4),
            ("high", 4, 5),
            ("low", 5, 6),
            ("urgent", 6, 7),
            ("low", 7, 10),
            ("high", 10, 14),
            ("middle", 14, 34),
            ("low", 34, 36),
        ],
    );
}

#[test]
fn the_urgent_task_preempts_below_a_ceiling_and_waits_for_who_is_not_preempted() {
    let rest = [("high", 9, 14), ("middle", 14, 34), ("low", 34, 36)];
    let ceiling = [("low", 0, 6), ("urgent", 6, 7), ("low", 7, 9)];
    expect("ceiling", &FOUR, &[&ceiling[..], &rest].concat());
    expect("non-preemptive", &FOUR, &[&[("low", 0, 8), ("urgent", 8, 9)][..], &rest].concat());
}

#[test]
fn the_most_important_one_that_waits_goes_first_and_of_equals_the_first() {
    let low = || Task("low", 0, 10, 1, Some((0, 10)));
    let three = [low(), Task("m", 1, 3, 2, Some((0, 3))), Task("h", 2, 2, 3, Some((0, 2)))];
    let wanted = [("low", 0, 1), ("low", 1, 2), ("low", 2, 10), ("h", 10, 12), ("m", 12, 15)];
    expect("inheritance", &three, &wanted);
    expect("none", &three, &wanted);
    let equals = [low(), Task("first", 1, 3, 2, Some((0, 3))), Task("second", 2, 2, 2, Some((0, 2)))];
    // The second one of the same priority is kept back: who inherits stands before its equals.
    let wanted = [("low", 0, 1), ("low", 1, 10), ("first", 10, 13), ("second", 13, 15)];
    expect("inheritance", &equals, &wanted);
    // Without, it comes as far as the lock.
    let wanted = [("low", 0, 1), ("low", 1, 2), ("low", 2, 10), ("first", 10, 13), ("second", 13, 15)];
    expect("none", &equals, &wanted);
}
