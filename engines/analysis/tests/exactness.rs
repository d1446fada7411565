//! When an answer may be called exact: phases that the file fixes, and levels that never come to rest.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Analysis, MissWitness, Options, Verdict, analyze, explain};
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

fn analyzed(text: &str, options: &Options) -> Analysis {
    let (system, _) = horolog_model::file::read(text, "x", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    analyze(&system, options).unwrap()
}

/// A branching job of 2 + 9 or 2 + 1 + 7 ns, below one of 10 ns in 20 that comes as often as a branch of its own lets it, beside a
/// timer interrupt of 1 ns a release. By hand: the long last segment starts at 2 + 10 + 2 and ends at 2 + 10 + 9 + 3 (the second
/// release of the other interrupts it); the short one ends at 3 + 10 + 7 + 3. Each way is looked at by itself, so that the release
/// at 20 delays neither.
#[test]
fn each_way_to_end_is_looked_at_by_itself_beside_interrupts() {
    let text = "[system]\nname = \"x\"\n[platform]\ntimer_interrupt = \"1 ns\"\n\
                [[task]]\nname = \"t\"\nseparation = \"1000 ns\"\npriority = 1\npreemption = \"deferred\"\n\
                segments = [{ name = \"entry\", wcet = \"2 ns\", next = [\"long\", \"mid\"] }, { name = \"long\", wcet = \"9 ns\" }, \
                { name = \"mid\", wcet = \"1 ns\", next = [\"end\"] }, { name = \"end\", wcet = \"7 ns\" }]\n\
                [[task]]\nname = \"h\"\nseparation = \"20 ns\"\ndeadline = \"100 ns\"\npriority = 2\npreemption = \"deferred\"\n\
                segments = [{ name = \"entry\", wcet = \"3 ns\", next = [\"one\", \"two\"] }, { name = \"one\", wcet = \"7 ns\" }, \
                { name = \"two\", wcet = \"1 ns\", next = [\"last\"] }, { name = \"last\", wcet = \"6 ns\" }]\n";
    let found = analyzed(text, &Options::default());
    assert_eq!(found.tasks[0].response, Some(Span::from_ns(24)), "{:#?}", found.tasks[0]);
}

/// Three events a job: some 3·10^7 jobs of `h` are within the 10^8 that a replay may take.
#[test]
fn a_miss_within_the_events_of_a_replay_has_a_pattern() {
    let has_pattern = |wcet: u64| {
        let text = format!(
            "[system]\nname = \"x\"\n[[task]]\nname = \"h\"\nseparation = \"10 ns\"\nwcet = \"5 ns\"\npriority = 2\n\
             [[task]]\nname = \"t\"\nseparation = \"1 s\"\nwcet = \"{wcet} ns\"\ndeadline = \"{wcet} ns\"\npriority = 1\n"
        );
        let found = analyzed(&text, &Options::default());
        assert_eq!(found.tasks[1].response.map(Span::as_ns), Some(2 * wcet));
        matches!(found.tasks[1].witness, Some(MissWitness::Pattern { .. }))
    };
    // 3·(2·wcet/10 + 1) for `h`, and 3 for the job.
    assert!(has_pattern(166_000_000) && !has_pattern(167_000_000));
}

/// Released up to 10 ms late, with a deadline of 8 ms, below a task that leaves it nothing: late from the first job on.
#[test]
fn a_job_released_after_its_deadline_in_an_overloaded_level_has_a_witness() {
    let found = read(
        "fixed-priority",
        &[
            "name = \"h\"; separation = \"10 ms\"; wcet = \"9 ms\"; priority = 2",
            "name = \"t\"; separation = \"20 ms\"; wcet = \"4 ms\"; deadline = \"8 ms\"; jitter = \"10 ms\"; priority = 1",
        ],
    );
    assert_eq!(found.tasks[1].verdict, Verdict::Misses);
    assert!(matches!(found.tasks[1].witness, Some(MissWitness::Pattern { .. })), "{:#?}", found.tasks[1]);
}

/// Up to a hundred tasks each may cost the whole effort, so that an effort with which the explanation of a task has a bound
/// suffices for its verdict too.
#[test]
fn each_of_a_hundred_tasks_may_cost_the_whole_effort() {
    let mut text = "[system]\nname = \"x\"\n".to_owned();
    for task in 0..100 {
        text += &format!(
            "[[task]]\nname = \"t{task}\"\nseparation = \"10 ms\"\nwcet = \"50 us\"\npriority = {}\n",
            1 + task / 50
        );
    }
    let (system, _) = horolog_model::file::read(&text, "x", &[]).unwrap();
    let ids: Vec<_> = system.task_ids().collect();
    let mut seen = [false; 2];
    for effort in 1..40 {
        let mut options = Options::default();
        options.effort = effort * 25;
        let found = analyze(&system, &options).unwrap();
        for place in [0, 99] {
            let explained = explain(&system, ids[place], &options).unwrap().response;
            assert_eq!(found.tasks[place].response, explained, "{effort}, task {place}");
            seen[usize::from(explained.is_some())] = true;
        }
    }
    assert_eq!(seen, [true; 2]);
}

/// Ahead of a list of jobs, which may be through before any backlog has grown, overload proves nothing; of a task that comes again
/// and again it does.
#[test]
fn overload_proves_no_miss_of_a_finite_list_of_jobs() {
    let verdict = |arrival: &str| {
        let last = format!("name = \"last\"; {arrival}; wcet = \"1 ms\"; deadline = \"1 s\"; priority = 1");
        let found = read(
            "fixed-priority",
            &[
                "name = \"a\"; separation = \"10 ms\"; wcet = \"6 ms\"; priority = 3",
                "name = \"b\"; separation = \"10 ms\"; wcet = \"5 ms\"; priority = 2",
                &last,
            ],
        );
        found.tasks[2].verdict
    };
    assert_eq!(verdict("separation = \"1 s\""), Verdict::Misses);
    assert_eq!(verdict("arrivals = [\"0 ms\"]"), Verdict::Unknown);
}

/// The run that would show a miss begins at phases of its own choosing, which even one fixed offset does not leave open.
#[test]
fn a_run_that_one_offset_rules_out_is_no_witness() {
    let witness = |offset: &str| {
        let high = format!("name = \"a\"; period = \"10 ms\"; wcet = \"4 ms\"; priority = 2{offset}");
        let low = "name = \"b\"; separation = \"10 ms\"; wcet = \"4 ms\"; deadline = \"7 ms\"; priority = 1";
        let found = read("fixed-priority", &[&high, low]);
        assert_eq!(found.tasks[1].verdict, Verdict::Misses);
        found.tasks[1].witness.is_some()
    };
    assert!(witness("") && !witness("; offset = \"3 ms\""));
}
