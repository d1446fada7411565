//! The choice of a spin priority: by hand, and against the bounds of the system with each.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Options, Schedulable, SpinChoice, SpinProcessor, analyze, choose_spin_priority};
use horolog_model::{CpuId, Priority, SpinLevel, SpinPriority, System, file};

fn read(text: &str) -> System {
    file::read(text, "s.toml", &[])
        .map(|(system, _)| system)
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// One task: name, CPU, priority, deadline and wcet in ns, and its section on `map`: from, length.
fn task(name: &str, cpu: u32, priority: &str, times: (u64, u64), section: Option<(u64, u64)>) -> String {
    let (deadline, wcet) = times;
    let mut text = format!(
        "[[task]]\nname = \"{name}\"\ncpu = {cpu}\n{priority}\nperiod = \"1000 ns\"\ndeadline = \"{deadline} ns\"\nwcet = \"{wcet} ns\"\n"
    );
    if let Some((from, length)) = section {
        text += &format!(
            "[[task.section]]\nresource = \"map\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
        );
    }
    text
}

/// On CPU 0 two tasks above the one that waits for 20 ns and holds for 4; on CPU 1 nobody else.
fn two(fast: u64, middle: u64, head: &str, has_priorities: bool) -> System {
    let given = |number: u32| if has_priorities { format!("priority = {number}") } else { String::new() };
    let text = format!(
        "[system]\nname = \"s\"\n{head}[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"fslm\"\n"
    ) + &task("fast", 0, &given(9), (fast, 3), None)
        + &task("middle", 0, &given(7), (middle, 5), None)
        + &task("user", 0, &given(5), (900, 10), Some((2, 4)))
        + &task("remote", 1, &given(5), (900, 30), Some((0, 20)));
    read(&text)
}

fn choose(system: &System) -> SpinChoice {
    choose_spin_priority(system, &Options::default()).unwrap()
}

/// Spin priority, smallest slack and its task.
fn found(processor: &SpinProcessor) -> Vec<(i64, Option<i64>, &str)> {
    let all = processor.candidates.iter();
    all.map(|it| (it.priority, it.slack, it.task.as_deref().unwrap())).collect()
}

#[test]
fn the_largest_smallest_slack_is_chosen() {
    // fast: 3 + 24 below or at the spin priority, 3 + 4 above; middle: 3 + 5 + 24, or 3 + 5 + 4.
    let choice = choose(&two(100, 200, "", true));
    assert_eq!((choice.schema, choice.schedulable), ("horolog.spin-priority/1", Schedulable::Yes));
    let [first, second] = choice.processors.as_slice() else { panic!("{choice:?}") };
    assert_eq!(found(first), [(9, Some(73), "fast"), (7, Some(93), "fast"), (5, Some(93), "fast")]);
    // Of two that are as good the higher.
    assert_eq!((first.cpu, first.given, first.chosen), (0, 9, Some(7)));
    let words: Vec<_> = first.candidates.iter().map(|it| it.word).collect();
    assert_eq!(words, [Some("highest"), None, Some("ceiling")]);
    assert_eq!((second.cpu, second.chosen, found(second).len()), (1, Some(5), 1));
}

#[test]
fn a_unit_decides_with_which_all_deadlines_hold() {
    // With 7 middle waits for the job that spins, 3 + 5 + 24; with 5 for its section alone.
    for (fast, middle, holds, chosen) in [
        (27, 32, [true, true, true], Some(5)),
        (26, 32, [false, true, true], Some(5)),
        (26, 31, [false, false, true], Some(5)),
        (7, 12, [false, false, true], Some(5)),
        (6, 12, [false, false, false], None),
        (7, 11, [false, false, false], None),
    ] {
        let choice = choose(&two(fast, middle, "", true));
        let processor = &choice.processors[0];
        let all = processor.candidates.iter().map(|it| it.schedulable == Schedulable::Yes);
        assert_eq!(all.collect::<Vec<_>>(), holds, "{fast} {middle}");
        assert_eq!(processor.chosen, chosen, "{fast} {middle}");
        assert_eq!(choice.schedulable == Schedulable::Yes, chosen.is_some());
    }
}

/// Each candidate has the bounds of the system with it.
#[test]
fn the_bounds_are_those_of_the_analysis() {
    let system = two(26, 32, "", true);
    for candidate in &choose(&system).processors[0].candidates {
        let mut draft = system.to_draft();
        let level = SpinLevel::At(Priority::new(candidate.priority));
        draft.spin_priorities = vec![SpinPriority { cpu: CpuId(0), level }];
        let analysis = analyze(&System::new(draft).unwrap(), &Options::default()).unwrap();
        for (bound, task) in candidate.bounds.iter().zip(&analysis.tasks) {
            assert_eq!(
                (&bound.task, bound.response, bound.verdict),
                (&task.name, task.response, task.verdict)
            );
        }
        assert_eq!(candidate.bounds.len(), 3);
    }
}

#[test]
fn of_derived_priorities_the_two_words_are_tried() {
    let system = two(100, 200, "priorities = \"deadline-monotonic\"\n", false);
    let words: Vec<_> = choose(&system).processors[0].candidates.iter().map(|it| it.word).collect();
    assert_eq!(words, [Some("highest"), Some("ceiling")]);
}

#[test]
fn what_is_not_known_is_told() {
    let text = "[system]\nname = \"s\"\n".to_owned() + &task("a", 0, "priority = 1", (9, 1), None);
    let refused = choose_spin_priority(&read(&text), &Options::default()).unwrap_err().to_string();
    assert!(refused.contains("no task uses a resource with the protocol `fslm`"), "{refused}");
    let rigid = task("rigid", 1, "priority = 9", (900, 1), None) + "preemption = \"non-preemptive\"\n";
    let text = horolog_model::file::print(&two(100, 200, "", true)) + &rigid;
    let choice = choose(&read(&text));
    assert_eq!(choice.schedulable, Schedulable::Unknown);
    assert!(choice.processors.iter().all(|it| it.chosen.is_none() && it.candidates.is_empty()), "{choice:?}");
    assert!(choice.notes.iter().any(|note| note.contains("`rigid`")), "{:?}", choice.notes);
}
