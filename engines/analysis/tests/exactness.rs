//! When an answer may be called exact: phases that the file fixes, and levels that never come to rest.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Analysis, Options, Verdict, analyze};
use horolog_time::Span;

fn read(policy: &str, tasks: &[&str]) -> Analysis {
    let mut text = format!("[system]\nname = \"x\"\npolicy = \"{policy}\"\n");
    for task in tasks {
        text += &format!("[[task]]\n{}\n", task.replace("; ", "\n"));
    }
    analyze(&horolog_model::file::read(&text, "x", &[]).unwrap().0, &Options::default()).unwrap()
}

/// Three tasks, the first two with offsets where `offsets` has them; the last one has the worst response.
fn three(policy: &str, arrival: &str, offsets: [&str; 2]) -> Analysis {
    let lines = [("a", 3, offsets[0]), ("b", 2, offsets[1]), ("c", 1, "")].map(|(name, priority, offset)| {
        let offset = if offset.is_empty() { String::new() } else { format!("; offset = \"{offset}\"") };
        let arrival = if name == "c" { "separation" } else { arrival };
        let priority = if policy == "edf" { String::new() } else { format!("; priority = {priority}") };
        format!("name = \"{name}\"; {arrival} = \"10 ms\"; wcet = \"2 ms\"{priority}{offset}")
    });
    read(policy, &lines.each_ref().map(String::as_str))
}

#[test]
fn two_fixed_phases_are_not_exact_and_one_is() {
    for policy in ["fixed-priority", "edf"] {
        let exact = |arrival, offsets| {
            let found = three(policy, arrival, offsets);
            assert!(found.tasks.iter().all(|task| task.verdict == Verdict::Meets), "{policy}");
            let last = &found.tasks[2];
            assert_eq!(last.response, Span::from_ms(6), "{policy}");
            last.exact
        };
        assert!(exact("period", ["", ""]), "{policy}");
        assert!(exact("period", ["1 ms", ""]), "{policy}: any phase of the others meets it");
        assert!(!exact("period", ["1 ms", "5 ms"]), "{policy}: the two never arrive together");
        // A sporadic task may be released at any time after its offset.
        assert!(exact("separation", ["1 ms", "5 ms"]), "{policy}");
    }
}

/// At a utilisation of exactly 1 a level that was blocked once never comes to rest again: each of its jobs is that much later.
#[test]
fn blocking_stays_where_a_level_uses_the_whole_processor() {
    let tasks = |blocker: &str, second: &str| {
        let low = format!(
            "name = \"low\"; arrivals = [\"0 ms\"]; deadline = \"1 s\"; wcet = \"{blocker}\"; priority = 1; preemption = \
             \"non-preemptive\""
        );
        let lines = [
            "name = \"a\"; separation = \"2 ms\"; wcet = \"1 ms\"; priority = 3; deadline = \"8 ms\""
                .to_owned(),
            format!(
                "name = \"b\"; separation = \"4 ms\"; wcet = \"{second}\"; priority = 2; deadline = \"8 ms\""
            ),
            low,
        ];
        read("fixed-priority", &lines.each_ref().map(String::as_str))
    };
    // By hand: b needs 2, a 1 in each 2, and the blocker comes first: w = 1 + 2 + ⌈w/2⌉ = 6, in every busy window.
    let full = tasks("1 ms", "2 ms");
    let b = &full.tasks[1];
    assert_eq!((b.verdict, b.response), (Verdict::Meets, Span::from_ms(6)), "{b:?}");
    // Below 1 the level comes to rest, and the first job is the latest: 1 + 1.9 + 3.
    let below = tasks("1 ms", "1900 us");
    assert_eq!(below.tasks[1].response, Span::from_us(5_900), "{:?}", below.tasks[1]);
    // Without blocking the level rests at every 4 ms.
    let free = read(
        "fixed-priority",
        &[
            "name = \"a\"; separation = \"2 ms\"; wcet = \"1 ms\"; priority = 3; deadline = \"8 ms\"",
            "name = \"b\"; separation = \"4 ms\"; wcet = \"2 ms\"; priority = 2; deadline = \"8 ms\"",
        ],
    );
    assert_eq!(free.tasks[1].response, Span::from_ms(4));
}
