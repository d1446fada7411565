//! The protocols of one processor (`docs/decisions/0019-local-protocols.md`): schedules computed by hand, the same system under each.

use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

struct Task(&'static str, u64, u64, u32, Option<(u64, u64)>);

/// The schedule of tasks that share a bus.
fn runs(protocol: &str, tasks: &[Task]) -> Vec<(String, u64, u64)> {
    let head =
        format!("[system]\nname = \"local\"\n[[resource]]\nname = \"bus\"\nprotocol = \"{protocol}\"\n");
    let all = tasks.iter().map(|&Task(name, arrival, wcet, priority, section)| {
        let sections: Vec<_> = section.iter().map(|&(from, length)| ("bus", from, length)).collect();
        task(name, arrival, wcet, priority, &sections)
    });
    schedule(&all.fold(head, |text, task| text + &task))
}

/// Who has the processor, from when to when, until all is done.
fn schedule(text: &str) -> Vec<(String, u64, u64)> {
    let (system, _) = horolog_model::file::read(text, "local.toml", &[]).expect("a valid file");
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
fn the_most_important_one_that_waits_goes_first_and_equals_as_they_are_ready() {
    let low = || Task("low", 0, 10, 1, Some((0, 10)));
    let three = [low(), Task("m", 1, 3, 2, Some((0, 3))), Task("h", 2, 2, 3, Some((0, 2)))];
    let wanted = [("low", 0, 1), ("low", 1, 2), ("low", 2, 10), ("h", 10, 12), ("m", 12, 15)];
    expect("inheritance", &three, &wanted);
    expect("none", &three, &wanted);
    let equals = [low(), Task("first", 1, 3, 2, Some((0, 3))), Task("second", 2, 2, 2, Some((0, 2)))];
    // The second one of the same priority is kept back: who inherits stands before its equals. The first one is woken behind it, and asks
    // again only once it is chosen.
    let wanted = [("low", 0, 1), ("low", 1, 10), ("second", 10, 12), ("first", 12, 15)];
    expect("inheritance", &equals, &wanted);
    // Without, it comes as far as the lock. Those that are woken together stand in the order of their waits.
    let wanted = [("low", 0, 1), ("low", 1, 2), ("low", 2, 10), ("first", 10, 13), ("second", 13, 15)];
    expect("none", &equals, &wanted);
}

/// An unlock does not pass the resource on: a job that waited asks again once it is chosen. Else one less important job after the other could get it while
/// a more important one is ready, and each of them would block that one.
#[test]
fn a_woken_job_asks_again_and_finds_taken_what_a_more_important_one_has_locked() {
    let high = ("high", 2, 2, 3, [("bus", 0, 1), ("bus", 1, 1)]);
    for protocol in ["inheritance", "original-ceiling", "none"] {
        let text =
            format!("[system]\nname = \"three\"\n[[resource]]\nname = \"bus\"\nprotocol = \"{protocol}\"\n")
                + &task("low", 0, 4, 1, &[("bus", 0, 4)])
                + &task("middle", 1, 4, 2, &[("bus", 0, 4)])
                + &task(high.0, high.1, high.2, high.3, &high.4);
        let wanted = [("low", 0, 1), ("low", 1, 2), ("low", 2, 4), ("high", 4, 6), ("middle", 6, 10)];
        let wanted: Vec<_> = wanted.iter().map(|&(name, from, to)| (name.to_owned(), from, to)).collect();
        assert_eq!(schedule(&text), wanted, "{protocol}");
    }
}

/// Two resources, locked in opposite orders: with inheritance alone that is a deadlock. The published example has this shape.
#[test]
fn under_the_original_ceiling_a_job_waits_for_what_others_could_need() {
    let text = "[system]\nname = \"original\"\n\
        [[resource]]\nname = \"a\"\nprotocol = \"original-ceiling\"\n\
        [[resource]]\nname = \"b\"\nprotocol = \"original-ceiling\"\n\
        [[resource]]\nname = \"c\"\nprotocol = \"original-ceiling\"\n"
        .to_owned()
        + &task("low", 0, 10, 1, &[("a", 1, 8), ("b", 4, 2)])
        + &task("high", 2, 6, 5, &[("b", 1, 4), ("a", 2, 2)])
        + &task("other", 3, 4, 3, &[("c", 1, 2)])
        + &task("top", 5, 2, 9, &[("c", 0, 1)]);
    // `high` asks for the free `b` at 3 and waits, since it is not above the ceiling of `a`: `low` goes on at its priority. `top` is above it, and
    // gets `c` at once. Nobody else runs before `low` has let go of `a`.
    let wanted = [
        ("low", 0, 2),
        ("high", 2, 3),
        ("low", 3, 5),
        ("top", 5, 7),
        ("low", 7, 12),
        ("high", 12, 17),
        ("other", 17, 21),
        ("low", 21, 22),
    ];
    let wanted: Vec<_> = wanted.iter().map(|&(name, from, to)| (name.to_owned(), from, to)).collect();
    assert_eq!(schedule(&text), wanted);
}

fn task(name: &str, arrival: u64, wcet: u64, priority: u32, sections: &[(&str, u64, u64)]) -> String {
    let head = format!(
        "[[task]]\nname = \"{name}\"\narrivals = [\"{arrival} ns\"]\nwcet = \"{wcet} ns\"\npriority = {priority}\n"
    );
    sections.iter().fold(head, |text, (resource, from, length)| {
        text + &format!(
            "[[task.section]]\nresource = \"{resource}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
        )
    })
}
