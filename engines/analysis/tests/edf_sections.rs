//! Sections under EDF: by hand what blocks whom, one unit inside and outside of the bound.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Analysis, Options, Schedulable, TermKind, Verdict, analyze, explain};
use horolog_model::{System, file};
use horolog_time::Span;

fn read(text: &str) -> System {
    file::read(text, "s.toml", &[])
        .map(|(system, _)| system)
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// One task: name, CPU, deadline, wcet, and its sections: resource, from, length; all in ns, every 1000 ns.
fn task(name: &str, cpu: u32, deadline: u64, wcet: u64, rest: &str, sections: &[(&str, u64, u64)]) -> String {
    let mut text = format!(
        "[[task]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"1000 ns\"\ndeadline = \"{deadline} ns\"\nwcet = \"{wcet} ns\"\n{rest}\n"
    );
    for (resource, from, length) in sections {
        text += &format!(
            "[[task.section]]\nresource = \"{resource}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
        );
    }
    text
}

fn head(platform: &str) -> String {
    format!(
        "[system]\nname = \"s\"\npolicy = \"edf\"\n[platform]\ncpus = 3\n{platform}[[resource]]\nname = \"map\"\nprotocol = \"msrp\"\n\
         [[resource]]\nname = \"bus\"\n"
    )
}

fn of(text: &str) -> Analysis {
    analyze(&read(text), &Options::default()).unwrap()
}

fn ns(span: Option<Span>) -> u64 {
    span.expect("a bound").as_ns()
}

/// Three processors share `map`; the first task of CPU 0 is due after `deadline`.
fn three(deadline: u64, platform: &str) -> String {
    head(platform)
        + &task("fast", 0, deadline, 3, "", &[])
        + &task("user", 0, 400, 20, "", &[("map", 2, 4), ("map", 10, 1)])
        + &task("b", 1, 500, 30, "", &[("map", 0, 6), ("map", 8, 3)])
        + &task("c", 2, 600, 40, "", &[("map", 0, 5)])
}

#[test]
fn a_section_on_a_spin_lock_blocks_with_the_wait_for_it() {
    // A request of CPU 0 waits for 6 + 5, and the longer section of user lasts 4 more.
    let analysis = of(&three(3 + 15, ""));
    let found: Vec<_> = analysis.tasks.iter().map(|task| (ns(task.blocking), ns(task.response))).collect();
    assert_eq!(found, [(15, 18), (0, 20 + 2 * 11 + 3), (0, 30 + 2 * (4 + 5)), (0, 40 + 4 + 6)]);
    assert!(analysis.tasks.iter().all(|task| (task.test, task.exact) == ("edf-spin-locks", false)));
    assert!(analysis.tasks.iter().all(|task| task.source == "gai01" && task.verdict == Verdict::Meets));
    assert_eq!(analysis.schedulable, Schedulable::Yes);
    assert_eq!(analysis.processors[0].tests[0].test, "edf-qpa-spin-locks");
    let shorter = of(&three(3 + 14, ""));
    assert_eq!((shorter.tasks[0].verdict, ns(shorter.tasks[0].response)), (Verdict::Unknown, 18));
    let note = shorter.processors[0].tests[0].note.clone().unwrap();
    assert!(note.contains("blocking by `user` included"), "{note}");
}

#[test]
fn what_the_kernel_takes_lengthens_waits_and_sections() {
    // Two switches and one interrupt in each remote section, and what CPU 0 itself is charged: a switch under way, two of the job, two
    // interrupts.
    let platform = "context_switch = \"1 ns\"\ntimer_interrupt = \"2 ns\"\n";
    let bound = 3 + (15 + 2 * (2 + 2)) + 1 + 2 + 2 * 2;
    assert_eq!(of(&three(bound, platform)).tasks[0].verdict, Verdict::Meets);
    assert_eq!(of(&three(bound - 1, platform)).tasks[0].verdict, Verdict::Unknown);
}

#[test]
fn who_blocks_is_told() {
    let system = read(&three(18, ""));
    let explained = explain(&system, system.find_task("fast").unwrap(), &Options::default()).unwrap();
    assert_eq!(explained.test, "edf-spin-locks");
    let terms: Vec<_> =
        explained.terms.iter().map(|term| (term.kind, term.who.as_deref(), term.time.as_ns())).collect();
    assert_eq!(terms, [(TermKind::OwnWork, None, 3), (TermKind::BlockingSpinLockDueLater, Some("user"), 15)]);
    assert!(explained.to_string().contains("blocked by `user`, due later, that waits for the spin lock `"));
}

/// On one processor: `user` and `slow` share `bus`, `fast` does not use it.
fn one(deadline: u64, fast: u64) -> String {
    head("")
        + &task("fast", 0, fast, 5, "", &[])
        + &task("user", 0, deadline, 2, "", &[("bus", 0, 1)])
        + &task("slow", 0, 100, 6, "", &[("bus", 0, 5)])
}

#[test]
fn a_local_section_blocks_who_uses_it_alone() {
    // fast is due after user: 5 + 2 for user; fast waits for user too.
    let analysis = of(&one(7, 20));
    let found: Vec<_> = analysis.tasks.iter().map(|task| (task.verdict, ns(task.response))).collect();
    assert_eq!(found, [(Verdict::Meets, 12), (Verdict::Meets, 7), (Verdict::Meets, 13)]);
    assert!(analysis.tasks.iter().all(|task| (task.test, task.source) == ("edf-ceiling", "baker91")));
    assert_eq!(of(&one(6, 20)).tasks[1].verdict, Verdict::Unknown);
    // A task that is due before every user is not blocked.
    assert_eq!(ns(of(&one(40, 5)).tasks[0].response), 5);
}

/// While one job is kept waiting no other one begins: the second job of fast, due after user, adds nothing, however long the section is.
#[test]
fn one_section_blocks_and_nothing_goes_ahead_of_it() {
    let at = |length: u64| {
        let text = one(10, 9).replacen("1000 ns", "9 ns", 1);
        text.replace("length = \"5 ns\"", &format!("length = \"{length} ns\""))
    };
    for length in [4, 5, 6] {
        assert_eq!(ns(of(&at(length)).tasks[1].response), length + 5 + 2, "{length}");
    }
}

/// Nothing preempts a section on such a resource, so it blocks who does not use it, too: any task that is due before its own, and to the unit.
#[test]
fn a_section_that_nothing_preempts_blocks_every_task_that_is_due_earlier() {
    let with = |deadline: u64| {
        one(20, deadline).replacen("name = \"bus\"", "name = \"bus\"\nprotocol = \"non-preemptive\"", 1)
    };
    let fast = |deadline: u64| of(&with(deadline)).tasks.remove(0);
    // 5 of slow's section and its own 5; user holds it for 1 alone.
    assert_eq!((fast(10).verdict, ns(fast(10).response)), (Verdict::Meets, 10));
    assert_eq!(fast(9).verdict, Verdict::Unknown);
}

/// With jitter a job may begin while the bus is held and be due after one that is released later.
#[test]
fn with_jitter_a_job_that_is_due_later_may_have_begun() {
    let with = |jitter: u64| {
        let text = one(12, 9);
        let user = text
            .replace("deadline = \"12 ns\"\n", &format!("deadline = \"12 ns\"\njitter = \"{jitter} ns\"\n"));
        assert_ne!(user, text);
        user
    };
    // Released 3 ns late, user is due 9 ns after: so is fast at the latest. 1 ns more, and fast may be due later and have begun.
    let begun = |jitter: u64| {
        let system = read(&with(jitter));
        let explained = explain(&system, system.find_task("user").unwrap(), &Options::default()).unwrap();
        let found = explained.terms.iter().find(|term| term.kind == TermKind::BegunAboveSection);
        found.map(|term| (term.who.clone(), term.count, term.time.as_ns()))
    };
    assert_eq!(begun(3), None);
    assert_eq!(begun(4), Some((Some("fast".to_owned()), Some(1), 5)));
}

#[test]
fn an_overload_and_a_section_without_end_are_answers() {
    let text = head("")
        + &task("fast", 0, 9, 5, "", &[]).replace("1000 ns", "5 ns")
        + &task("user", 0, 20, 2, "", &[("bus", 0, 1)])
        + &task("slow", 0, 100, 6, "", &[("bus", 0, 5)]);
    let analysis = of(&text);
    assert!(analysis.tasks.iter().all(|task| task.verdict == Verdict::Misses), "{analysis:?}");
    // The tick takes the whole processor: no section of CPU 1 ever ends.
    let tick = "tick = \"1 us\"\ntimer_interrupt = \"1 us\"\n";
    let analysis = of(&three(18, tick));
    assert!(analysis.tasks.iter().all(|task| task.verdict == Verdict::Unknown), "{analysis:?}");
}
