//! When an answer may be called exact: phases that the file fixes, and levels that never come to rest.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Analysis, MissWitness, Options, Verdict, analyze};
use horolog_model::pattern::PatternArrivals;
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

/// A path that ends with 3 ns is none in units of 2 ns, though all before it is.
#[test]
fn integer_time_of_a_resolution_is_for_systems_in_units_of_it() {
    let has_integer_tests = |last: u64| {
        let text = format!(
            "[system]\nname = \"x\"\n[[task]]\nname = \"t\"\nseparation = \"40 ns\"\npriority = 1\npreemption = \"deferred\"\n\
             segments = [{{ name = \"a\", wcet = \"2 ns\", next = [\"b\", \"c\"] }}, {{ name = \"b\", wcet = \"8 ns\" }}, \
             {{ name = \"c\", wcet = \"2 ns\", next = [\"d\"] }}, {{ name = \"d\", wcet = \"{last} ns\" }}]\n\
             [[task]]\nname = \"u\"\nseparation = \"40 ns\"\nwcet = \"2 ns\"\npriority = 2\n"
        );
        let (system, _) = horolog_model::file::read(&text, "x", &[]).unwrap_or_else(|e| panic!("{e}"));
        let mut options = Options::default();
        options.resolution = Span::from_ns(2);
        let found = analyze(&system, &options).unwrap();
        found.tasks.iter().flat_map(|task| &task.tests).any(|test| test.test.ends_with("-integer"))
    };
    assert!(has_integer_tests(2) && !has_integer_tests(3));
}

/// The ways that the witness gives to jobs of `t`, which has these segments, a deadline of 9 ms, and is held up by 2.
fn ways_of_the_witness(segments: &str) -> Vec<Vec<usize>> {
    let text = format!(
        "[system]\nname = \"x\"\n[[task]]\nname = \"t\"\nseparation = \"40 ms\"\ndeadline = \"9 ms\"\npriority = 1\n\
         preemption = \"deferred\"\nsegments = [{segments}]\n\
         [[task]]\nname = \"u\"\nseparation = \"40 ms\"\nwcet = \"2 ms\"\npriority = 2\n"
    );
    let (system, _) = horolog_model::file::read(&text, "x", &[]).unwrap_or_else(|e| panic!("{e}"));
    let found = analyze(&system, &Options::default()).unwrap();
    let Some(MissWitness::Pattern { pattern }) = &found.tasks[0].witness else {
        panic!("{:#?}", found.tasks[0])
    };
    let of_t = pattern.tasks.iter().filter(|task| task.task == "t");
    let ways = of_t.flat_map(|task| match &task.arrivals {
        PatternArrivals::Explicit { jobs } => jobs.iter().filter_map(|job| job.path.clone()).collect(),
        PatternArrivals::Periodic { .. } => Vec::new(),
    });
    ways.collect()
}

/// The late job takes the longest way to its last segment, 1 + 5 + 2, also where two ways end with a segment of that length.
#[test]
fn the_witness_of_a_branching_job_takes_the_longest_way() {
    let one_end = "{ name = \"entry\", wcet = \"1 ms\", next = [\"long\", \"short\", \"other\"] }, \
                   { name = \"long\", wcet = \"5 ms\", next = [\"end\"] }, { name = \"short\", wcet = \"1 ms\", next = [\"end\"] }, \
                   { name = \"other\", wcet = \"3 ms\" }, { name = \"end\", wcet = \"2 ms\" }";
    assert_eq!(ways_of_the_witness(one_end), [vec![0, 1, 4]]);
    let two_ends = "{ name = \"entry\", wcet = \"1 ms\", next = [\"long\", \"soon\", \"other\"] }, \
                    { name = \"long\", wcet = \"5 ms\", next = [\"late\"] }, { name = \"late\", wcet = \"2 ms\" }, \
                    { name = \"soon\", wcet = \"2 ms\" }, { name = \"other\", wcet = \"3 ms\" }";
    assert_eq!(ways_of_the_witness(two_ends), [vec![0, 1, 2]]);
}

/// Under EDF `b` ends at 6 of 5 ns. No other deadline falls on its own, so it need not lose a tie to be late.
#[test]
fn a_miss_by_one_nanosecond_without_a_tie_has_a_witness() {
    let found = read(
        "edf",
        &[
            "name = \"a\"; separation = \"10 ns\"; deadline = \"4 ns\"; wcet = \"3 ns\"",
            "name = \"b\"; separation = \"10 ns\"; deadline = \"5 ns\"; wcet = \"3 ns\"",
        ],
    );
    assert!(matches!(found.tasks[1].witness, Some(MissWitness::Pattern { .. })), "{:#?}", found.tasks[1]);
}
