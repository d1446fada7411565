//! What `analyze` says of a file with a cluster: which test accepts it, what a miss is, what is in the way.

use horolog_analysis::{Analysis, MissWitness, Options, Schedulable, Verdict, analyze, explain};
use horolog_model::{System, file};

fn read(order: &str, platform: &str, tasks: &[&str]) -> System {
    let mut text = format!("[system]\nname = \"x\"\npolicy = \"edf\"\n[platform]\ncpus = 3\n{platform}");
    for (index, task) in tasks.iter().enumerate() {
        let priority = if order == "edf" { String::new() } else { format!("priority = {}\n", 100 - index) };
        text += &format!("[[task]]\nname = \"t{index}\"\n{priority}{task}\n");
    }
    let names: Vec<String> = (0..tasks.len()).map(|index| format!("\"t{index}\"")).collect();
    text += "[[task]]\nname = \"alone\"\ncpu = 2\nperiod = \"10 ns\"\nwcet = \"5 ns\"\n";
    text += &format!(
        "[[cluster]]\nname = \"pair\"\ncpus = [0, 1]\norder = \"{order}\"\ntasks = [{}]\n",
        names.join(", ")
    );
    match file::read(&text, "x.toml", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}"),
    }
}

fn answer(system: &System) -> Analysis {
    analyze(system, &Options::default()).expect("an answer")
}

const LIGHT: &str = "separation = \"20 ns\"\nwcet = \"5 ns\"";

#[test]
fn a_cluster_is_proved_and_its_neighbour_too() {
    for order in ["edf", "fixed-priority"] {
        let system = read(order, "", &[LIGHT; 4]);
        let analysis = answer(&system);
        assert_eq!(analysis.schedulable, Schedulable::Yes, "{analysis:?}");
        assert_eq!(analysis.tasks.len(), 5);
        assert!(analysis.tasks[..4].iter().all(|task| task.test.starts_with("global-") && !task.exact));
        assert!(
            analysis.notes.iter().any(|note| note.contains("cluster pair (cpu 0, 1): accepted by global-"))
        );
        let clusters: Vec<Option<&str>> =
            analysis.processors.iter().map(|one| one.cluster.as_deref()).collect();
        assert_eq!(clusters, [Some("pair"), None]);
        // 4 · 5/20 over two processors.
        assert_eq!(analysis.processors[0].utilisation_exact.exact.as_deref(), Some("1/2"));
        for (id, task) in system.task_ids().zip(&analysis.tasks) {
            let explained = explain(&system, id, &Options::default()).expect("an answer");
            assert_eq!(explained.response, task.response);
            let sum: u64 = explained.terms.iter().map(|term| term.time.as_ns()).sum();
            assert_eq!(Some(sum), task.response.map(horolog_time::Span::as_ns), "{explained}");
        }
    }
}

/// Below a task without a bound nothing is known; above it everything is.
#[test]
fn fixed_priorities_are_proved_from_the_top() {
    // In units of 1 ns the search decides; with a unit of 20 ns it is not a proof of the others.
    let heavy = "separation = \"400 ns\"\nwcet = \"340 ns\"";
    let analysis = answer(&read("fixed-priority", "", &[heavy, heavy, heavy]));
    let verdicts: Vec<Verdict> = analysis.tasks.iter().map(|task| task.verdict).collect();
    assert_eq!(verdicts, [Verdict::Meets, Verdict::Meets, Verdict::Misses, Verdict::Meets]);
    assert!(matches!(analysis.tasks[2].witness, Some(MissWitness::Pattern { .. })), "{analysis:?}");
}

#[test]
fn misses_are_said_on_proof_alone() {
    // 3 · 7/10 > 2: by the load it is not known which task, and the search finds one.
    let analysis = answer(&read("edf", "", &["separation = \"10 ns\"\nwcet = \"7 ns\""; 3]));
    assert_eq!(analysis.schedulable, Schedulable::No);
    assert_eq!(analysis.processors[0].tests[0].test, "global-utilisation");
    // Exactly 2 is no overload.
    let full = answer(&read("edf", "", &["separation = \"3 ns\"\nwcet = \"2 ns\""; 3]));
    assert!(full.processors[0].tests.iter().all(|test| test.test != "global-utilisation"));
    // A wcet above its deadline, by one unit.
    let late = "separation = \"20 ns\"\ndeadline = \"4 ns\"\nwcet = \"4 ns\"";
    assert_ne!(answer(&read("edf", "", &[late, LIGHT])).tasks[0].verdict, Verdict::Misses);
    // More than its period, with a deadline that would allow it.
    let slow = "separation = \"20 ns\"\ndeadline = \"30 ns\"\nwcet = \"21 ns\"";
    let analysis = answer(&read("fixed-priority", "", &[slow, LIGHT]));
    assert_eq!((analysis.tasks[0].verdict, analysis.tasks[0].test), (Verdict::Misses, "global-wcet"));
    assert_eq!(analysis.tasks[1].verdict, Verdict::Unknown);
}

#[test]
fn what_is_in_the_way_is_named() {
    let cases = [
        ("edf", "separation = \"20 ns\"\nwcet = \"5 ns\"\njitter = \"1 ns\"", "`task.t0.jitter`"),
        ("edf", "separation = \"20 ns\"\ndeadline = \"21 ns\"\nwcet = \"5 ns\"", "`task.t0.deadline`"),
        ("edf", "arrivals = [\"0 ns\"]\ndeadline = \"9 ns\"\nwcet = \"5 ns\"", "`task.t0.arrivals`"),
        (
            "edf",
            "separation = \"20 ns\"\nwcet = \"5 ns\"\npreemption = \"non-preemptive\"",
            "`task.t1.preemption`",
        ),
        (
            "fixed-priority",
            "separation = \"20 ns\"\npreemption = \"deferred\"\nsegments = [\"2 ns\", \"3 ns\"]",
            "`task.t0.segment`",
        ),
        ("edf", "separation = \"700000000 s\"\nwcet = \"5 ns\"", "`task.t0.period`"),
    ];
    for (order, task, what) in cases {
        let analysis = answer(&read(order, "", &[task, LIGHT]));
        assert!(
            analysis.tasks[..2].iter().all(|task| task.verdict == Verdict::Unknown),
            "{task}: {analysis:?}"
        );
        assert!(analysis.notes.iter().any(|note| note.contains(what)), "{task}: {:?}", analysis.notes);
        assert_eq!(analysis.tasks[2].verdict, Verdict::Meets, "the neighbour");
    }
    // One unit inside: under EDF a deadline at the end of the period, under fixed priorities one beyond it.
    for (order, deadline) in [("edf", 20), ("fixed-priority", 21)] {
        let task = format!("separation = \"20 ns\"\ndeadline = \"{deadline} ns\"\nwcet = \"5 ns\"");
        assert_eq!(answer(&read(order, "", &[&task, LIGHT])).schedulable, Schedulable::Yes);
    }
}

/// No test has a term for them.
#[test]
fn with_costs_nothing_is_proved() {
    for cost in ["context_switch", "timer_interrupt", "release_latency", "tick"] {
        let analysis = answer(&read("edf", &format!("{cost} = \"1 ns\"\n"), &[LIGHT; 4]));
        let open = analysis.tasks[..4]
            .iter()
            .all(|task| task.verdict == Verdict::Unknown && task.response.is_none());
        assert!(open, "{cost}: {analysis:?}");
        assert!(analysis.notes.iter().any(|note| note.contains("without costs")), "{:?}", analysis.notes);
    }
}

#[test]
fn tasks_that_cannot_be_preempted_have_a_test_of_their_own() {
    for order in ["edf", "fixed-priority"] {
        let task = format!("{LIGHT}\npreemption = \"non-preemptive\"");
        let analysis = answer(&read(order, "", &[task.as_str(); 4]));
        assert!(analysis.tasks[..4].iter().all(|it| it.verdict == Verdict::Meets), "{analysis:?}");
        assert!(analysis.tasks[0].test.ends_with("-non-preemptive"));
    }
}
