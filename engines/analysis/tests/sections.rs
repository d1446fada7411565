//! Sections that hold resources: by hand what blocks whom, and what stays unknown with which reason.

use horolog_analysis::{
    Analysis, Options, Schedulable, TermKind, Verdict, analyze, certify, explain, resolve,
};
use horolog_model::{System, file};
use horolog_time::Span;

/// `planner` holds `map` for 6 ms and within it `bus` for 2 ms; `control` uses the bus, `arm` the map.
const NESTED: &str = "[[task]]\nname = \"control\"\nperiod = \"20 ms\"\nwcet = \"3 ms\"\npriority = 9\n\
    [[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n\
    [[task]]\nname = \"arm\"\nperiod = \"40 ms\"\nwcet = \"4 ms\"\npriority = 7\n\
    [[task.section]]\nresource = \"map\"\nfrom = \"1 ms\"\nlength = \"1 ms\"\n\
    [[task]]\nname = \"planner\"\nperiod = \"80 ms\"\nwcet = \"10 ms\"\npriority = 5\n\
    [[task.section]]\nresource = \"map\"\nfrom = \"1 ms\"\nlength = \"6 ms\"\n\
    [[task.section]]\nresource = \"bus\"\nfrom = \"2 ms\"\nlength = \"2 ms\"\n\
    [[task]]\nname = \"log\"\nperiod = \"100 ms\"\nwcet = \"10 ms\"\npriority = 1\n\
    [[task.section]]\nresource = \"own\"\nfrom = \"1 ms\"\nlength = \"9 ms\"\n";
const RESOURCES: &str =
    "[[resource]]\nname = \"bus\"\n[[resource]]\nname = \"map\"\n[[resource]]\nname = \"own\"\n";

fn read(head: &str, parts: &str) -> System {
    let text = format!("[system]\nname = \"r\"\n{head}{parts}");
    file::read(&text, "r.toml", &[]).map(|(system, _)| system).unwrap_or_else(|errors| panic!("{errors}"))
}

fn of(system: &System) -> Analysis {
    let mut options = Options::default();
    options.sensitivity = true;
    analyze(system, &options).expect("an answer")
}

#[test]
fn each_task_is_blocked_by_one_section_whose_ceiling_reaches_it() {
    let system = read("", &format!("{NESTED}{RESOURCES}"));
    let analysis = of(&system);
    let found: Vec<_> =
        analysis.tasks.iter().map(|task| (task.blocking.unwrap(), task.response.unwrap())).collect();
    let ms = |blocking: u64, response: u64| {
        (Span::from_ns(blocking * 1_000_000), Span::from_ns(response * 1_000_000))
    };
    // The inner section reaches control, the outer one arm; what log holds alone reaches no other task.
    assert_eq!(found, [ms(2, 5), ms(6, 13), ms(0, 17), ms(0, 30)]);
    assert_eq!(analysis.schedulable, Schedulable::Yes);
    assert!(analysis.tasks.iter().all(|task| (task.test, task.source) == ("fp-ceiling", "sha90")));
    assert!(analysis.tasks.iter().all(|task| task.exact));
    assert!(analysis.notes.iter().any(|note| note.contains("continuous time")), "{:?}", analysis.notes);
    assert!(analysis.tasks.iter().all(|task| task.tests[0].note.as_deref() == Some("in continuous time")));
    let control = system.find_task("control").unwrap();
    let explained = explain(&system, control, &Options::default()).unwrap();
    let term = explained.terms.iter().find(|term| term.kind == TermKind::BlockingSection).unwrap();
    assert_eq!((term.who.as_deref(), term.time), (Some("planner"), Span::from_ns(2_000_000)));
    assert!(
        term.resource.is_some()
            && term.to_string().contains(&format!("locked `{}`", term.resource.as_deref().unwrap()))
    );
    let sum: u64 = explained.terms.iter().map(|term| term.time.as_ns()).sum();
    assert_eq!(Some(Span::from_ns(sum)), explained.response);
    let resolved = resolve(&system).unwrap();
    let refused = certify(&resolved, &analysis, &Options::default()).unwrap_err();
    assert!(refused.to_string().contains("does not cover sections"), "{refused}");
}

#[test]
fn a_resource_that_no_task_locks_changes_nothing() {
    let tasks = "[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"3 ms\"\npriority = 9\n\
                 [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"4 ms\"\npriority = 1\n";
    let with = of(&read("", &format!("{tasks}{RESOURCES}")));
    assert_eq!(with, of(&read("", tasks)));
    assert_eq!(with.tasks[1].source, "joseph86");
}

#[test]
fn who_holds_to_its_end_above_its_priority_has_a_bound_that_is_not_called_the_least() {
    let task = |name: &str, priority: u32, from: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"20 ms\"\nwcet = \"4 ms\"\npriority = {priority}\n\
             [[task.section]]\nresource = \"bus\"\nfrom = \"{from} ms\"\nlength = \"2 ms\"\n"
        )
    };
    let exact = |from| {
        let system =
            read("", &format!("{}{}[[resource]]\nname = \"bus\"\n", task("h", 2, 2), task("l", 1, from)));
        of(&system).tasks.iter().map(|task| task.exact).collect::<Vec<bool>>()
    };
    assert_eq!(exact(2), [true, false]);
    assert_eq!(exact(1), [true, true]);
}

#[test]
fn what_the_bound_does_not_know_is_unknown_on_its_processor_alone() {
    let task = |name: &str, cpu: u32, rest: &str| {
        format!("[[task]]\nname = \"{name}\"\nperiod = \"20 ms\"\nwcet = \"4 ms\"\ncpu = {cpu}\n{rest}\n")
    };
    let held = "[[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n";
    let bus = "[[resource]]\nname = \"bus\"\n";
    let cpus = "[platform]\ncpus = 2\n";
    let beside = |extra: &str, own: &str| {
        let parts = task("a", 0, &format!("{own}\n{held}")) + &task("far", 1, own) + extra + bus;
        let analysis = of(&read(cpus, &parts));
        assert_eq!(analysis.tasks[0].verdict, Verdict::Unknown);
        assert_eq!(analysis.tasks[1].verdict, Verdict::Meets, "{:?}", analysis.notes);
        analysis
            .notes
            .iter()
            .find(|note| note.starts_with("no test knows of `resource.bus`"))
            .cloned()
            .unwrap()
    };
    let rigid = task("rigid", 0, "priority = 3\npreemption = \"non-preemptive\"");
    assert!(beside(&rigid, "priority = 5").contains("not beside `rigid`"));
    let server = |rest: &str| {
        task("soft", 0, rest)
            + "[[server]]\nname = \"events\"\nkind = \"polling\"\ncpu = 0\ntasks = [\"soft\"]\nbudget = \"1 ms\"\nperiod = \"5 ms\"\npriority = 9\n"
    };
    assert!(beside(&server(held), "priority = 5").contains("a task of a server, as `soft`, has some"));
}

/// "high" and "low" share the bus, and a server stands at a priority between them, above or below them.
#[test]
fn sections_block_servers_and_tasks_beside_them() {
    let task = |name: &str, priority: u32, wcet: u32, length: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"50 ms\"\nwcet = \"{wcet} ms\"\npriority = {priority}\n\
             [[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"{length} ms\"\n"
        )
    };
    let bounds = |protocol: &str, kind: &str, place: u32, policy: &str| {
        let server = format!(
            "[[task]]\nname = \"soft\"\nseparation = \"40 ms\"\nwcet = \"1 ms\"\n[[server]]\nname = \"events\"\nkind = \"{kind}\"\n\
             tasks = [\"soft\"]\nbudget = \"1 ms\"\nperiod = \"20 ms\"\npriority = {place}\nlow_priority = \"none\"\n\
             [[resource]]\nname = \"bus\"\nprotocol = \"{protocol}\"\n"
        );
        let analysis = of(&read(policy, &(task("high", 9, 2, 1) + &task("low", 3, 5, 4) + &server)));
        let ms = |task: &horolog_analysis::TaskVerdict| task.response.map(|span| span.as_ns() / 1_000_000);
        assert!(analysis.tasks.iter().all(|task| !task.exact), "{analysis:?}");
        (analysis.tasks.iter().map(ms).collect::<Vec<_>>(), analysis.notes)
    };
    for protocol in ["ceiling", "non-preemptive", "inheritance", "original-ceiling"] {
        // "high" is blocked by 4 ms, as is the server, which then waits for "high"; "low" by nothing. A job that comes just behind a poll waits for
        // the next one.
        let (between, _) = bounds(protocol, "polling", 5, "");
        assert_eq!(between, [Some(6), Some(8), Some(20 + 4 + 2 + 1)], "{protocol}");
        let (between, _) = bounds(protocol, "sporadic", 5, "");
        assert_eq!(between[..2], [Some(6), Some(8)], "{protocol}");
        // A deferrable server may execute twice in a row.
        assert_eq!(bounds(protocol, "deferrable", 5, "").0[..2], [Some(6), Some(9)], "{protocol}");
        // Above both it delays "high", too, and only what nothing preempts blocks it.
        let (above, _) = bounds(protocol, "polling", 12, "");
        let blocked = if protocol == "non-preemptive" { 4 } else { 0 };
        assert_eq!(above, [Some(7), Some(8), Some(20 + blocked + 1)], "{protocol}");
        // Below both nothing blocks it.
        let (below, _) = bounds(protocol, "polling", 1, "");
        assert_eq!(below[..2], [Some(6), Some(7)], "{protocol}");
    }
}

#[test]
fn audsleys_search_counts_sections() {
    // With l below h, l's section of 6 ms is too long for h's deadline; the other way round both meet.
    let text = "[[task]]\nname = \"h\"\nperiod = \"20 ms\"\ndeadline = \"9 ms\"\nwcet = \"4 ms\"\n\
        [[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n\
        [[task]]\nname = \"l\"\nperiod = \"20 ms\"\ndeadline = \"11 ms\"\nwcet = \"6 ms\"\n\
        [[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"6 ms\"\n[[resource]]\nname = \"bus\"\n";
    let analysis = of(&read("priorities = \"audsley\"\n", text));
    assert_eq!(analysis.schedulable, Schedulable::No);
    let looser = of(&read("priorities = \"audsley\"\n", &text.replace("\"9 ms\"", "\"10 ms\"")));
    assert_eq!(looser.schedulable, Schedulable::Yes, "{looser:?}");
}

#[test]
fn remedies_and_scaling_keep_sections_within_their_tasks() {
    let text = "[[task]]\nname = \"h\"\nperiod = \"20 ms\"\ndeadline = \"7 ms\"\nwcet = \"4 ms\"\npriority = 2\n\
        [[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"4 ms\"\n\
        [[task]]\nname = \"l\"\nperiod = \"20 ms\"\nwcet = \"6 ms\"\npriority = 1\n\
        [[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"4 ms\"\n[[resource]]\nname = \"bus\"\n";
    let analysis = of(&read("", text));
    assert_eq!(analysis.tasks[0].verdict, Verdict::Misses);
    // A wcet of 3 ms would pass, and no file with that section can say it.
    let said: Vec<String> = analysis.tasks[0].remedies.iter().map(ToString::to_string).collect();
    assert!(said.iter().all(|said| !said.contains("wcet of at most")), "{said:?}");
    // Sections shrink with what executes: (4 + 4) f = 7.
    assert_eq!(analysis.processors[0].sensitivity.as_ref().unwrap().scaling_ppb, Some(875_000_000));
}
