//! Where suspended waits across processors have a bound, and what is said where they have none.

use horolog_analysis::{Options, Schedulable, Verdict, analyze, certify, cpu_model, explain};
use horolog_model::{CpuId, System, file};

const SHARED: &str = "[system]\nname = \"shared\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"map\"\nprotocol = \"mpcp\"\n\
    [[resource]]\nname = \"own\"\n\
    [[task]]\nname = \"control\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n\
    [[task.section]]\nresource = \"map\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n\
    [[task]]\nname = \"planner\"\ncpu = 1\nperiod = \"20 ms\"\nwcet = \"2 ms\"\npriority = 5\n\
    [[task.section]]\nresource = \"map\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n\
    [[task.section]]\nresource = \"own\"\nfrom = \"1 ms\"\nlength = \"1 ms\"\n\
    [[task]]\nname = \"apart\"\ncpu = 2\nperiod = \"20 ms\"\nwcet = \"2 ms\"\npriority = 5\n";

fn read(text: &str) -> System {
    file::read(text, "shared.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}")).0
}

#[test]
fn processors_without_users_have_their_own_test() {
    let analysis = analyze(&read(SHARED), &Options::default()).expect("it is known");
    let tests: Vec<&str> = analysis.tasks.iter().map(|task| task.test).collect();
    assert_eq!(tests, ["fp-mpcp", "fp-mpcp", "fp-preemptive"]);
    assert_eq!(analysis.schedulable, Schedulable::Yes);
    let notes = &analysis.notes;
    assert!(notes.iter().any(|note| note.contains("cpu 0, 1: suspended waits")), "{notes:?}");
}

#[test]
fn what_stands_beside_them_is_named() {
    let server = "[[task]]\nname = \"soft\"\ncpu = 1\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n\
        [[server]]\nname = \"events\"\nkind = \"deferrable\"\ncpu = 1\ntasks = [\"soft\"]\nbudget = \"1 ms\"\nperiod = \"5 ms\"\npriority = 3\n";
    let rigid = "[[task]]\nname = \"rigid\"\ncpu = 1\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 1\npreemption = \"non-preemptive\"\n";
    let listed =
        "[[task]]\nname = \"listed\"\ncpu = 1\narrivals = [\"1 ms\"]\nwcet = \"1 ms\"\npriority = 1\n";
    let cases = [
        (format!("{SHARED}{server}"), "not beside the server `events` on CPU 1"),
        (format!("{SHARED}{rigid}"), "not beside `rigid` on CPU 1, which cannot be preempted anywhere"),
        (format!("{SHARED}{listed}"), "not beside `listed` on CPU 1, whose arrivals are listed"),
        (
            SHARED.replace("name = \"own\"\n", "name = \"own\"\nprotocol = \"inheritance\"\n"),
            "not beside `resource.own` (`inheritance`) on CPU 1",
        ),
    ];
    for (text, reason) in cases {
        let system = read(&text);
        let analysis = analyze(&system, &Options::default()).expect("an answer, not an error");
        // Also of the processor that has nothing of the kind, and waits for it.
        let verdicts: Vec<Verdict> = analysis.tasks[..3].iter().map(|task| task.verdict).collect();
        assert_eq!(verdicts, [Verdict::Unknown, Verdict::Unknown, Verdict::Meets], "{reason}");
        assert!(analysis.notes.iter().any(|note| note.contains(reason)), "{reason}: {:?}", analysis.notes);
        let control = system.find_task("control").expect("it is there");
        let explained = explain(&system, control, &Options::default()).expect("an answer");
        assert!(explained.to_string().contains(reason), "{explained}");
    }
}

#[test]
fn nothing_that_knows_one_processor_alone_answers() {
    let system = read(SHARED);
    for cpu in [0, 1] {
        let error = cpu_model::CpuModel::new(&system, CpuId(cpu)).expect_err("no test begins");
        assert!(error.to_string().contains("wait, suspended, for other processors"), "{error}");
    }
    cpu_model::CpuModel::new(&system, CpuId(2)).expect("it shares nothing");
    let analysis = analyze(&system, &Options::default()).expect("it is known");
    certify(&system, &analysis, &Options::default()).expect_err("the checker does not know sections");
}

/// A bound may be as long as the period, and no longer.
#[test]
fn a_bound_is_within_the_period() {
    let response = |period: u64| {
        let text = SHARED.replacen("period = \"10 ms\"", &format!("period = \"{period} ns\""), 1);
        analyze(&read(&text), &Options::default()).expect("it is known").tasks[0].response
    };
    // Its own work, and one section of the planner's that has begun.
    assert_eq!(response(2_000_000).map(horolog_time::Span::as_ns), Some(2_000_000));
    assert_eq!(response(1_999_999), None);
}

#[test]
fn what_rests_on_a_task_without_a_bound_says_so() {
    let text = SHARED.replacen("period = \"10 ms\"", "period = \"1999999 ns\"", 1);
    let analysis = analyze(&read(&text), &Options::default()).expect("it is known");
    let note = |task: usize| analysis.tasks[task].tests[0].note.clone().unwrap_or_default();
    assert!(note(0).contains("no bound within its period"), "{}", note(0));
    // The map goes to the most important job first, however often it comes.
    assert!(note(1).contains("rests on the response time of `control`"), "{}", note(1));
}

/// Nobody is said to have an exact response time on a processor with users of a lock of several processors.
#[test]
fn beside_suspended_waits_there_are_bounds_alone() {
    let below = "[[task]]\nname = \"below\"\ncpu = 0\nperiod = \"50 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
    let analysis = analyze(&read(&format!("{SHARED}{below}")), &Options::default()).expect("it is known");
    let exact: Vec<bool> = analysis.tasks.iter().map(|task| task.exact).collect();
    assert_eq!(exact, [false, false, true, false]);
}
