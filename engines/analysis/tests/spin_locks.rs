//! Spin locks across processors: by hand who waits for how long, and what stays unknown with which reason.

use horolog_analysis::{Analysis, Options, TermKind, Verdict, analyze, cpu_model, explain};
use horolog_model::{CpuId, System, file};
use horolog_time::Span;

fn read(text: &str) -> System {
    file::read(text, "s.toml", &[]).map(|(system, _)| system).unwrap_or_else(|errors| panic!("{errors}"))
}

/// One task: name, CPU, priority, period, wcet in ms, and its sections: resource, from, length.
fn task(name: &str, cpu: u32, priority: i64, times: (u64, u64), sections: &[(&str, u64, u64)]) -> String {
    let (period, wcet) = times;
    let mut text = format!(
        "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"{period} ms\"\nwcet = \"{wcet} ms\"\n"
    );
    for (resource, from, length) in sections {
        text += &format!(
            "[[task.section]]\nresource = \"{resource}\"\nfrom = \"{from} ms\"\nlength = \"{length} ms\"\n"
        );
    }
    text
}

/// Three processors share `map`; on CPU 0 `bus` is local.
fn three(protocol: &str, spin: &str, platform: &str) -> System {
    let mut text = format!(
        "[system]\nname = \"s\"\n[platform]\ncpus = 3\n{platform}[[resource]]\nname = \"map\"\nprotocol = \"{protocol}\"\n\
         [[resource]]\nname = \"bus\"\n"
    );
    if protocol == "fslm" {
        text += &format!("[[spin_priority]]\ncpu = 0\npriority = {spin}\n");
    }
    text += &task("fast", 0, 9, (50, 2), &[("bus", 0, 1)]);
    text += &task("middle", 0, 7, (100, 5), &[("bus", 1, 3)]);
    text += &task("user", 0, 5, (200, 8), &[("map", 1, 2), ("map", 4, 1)]);
    text += &task("slow", 0, 3, (400, 10), &[("map", 2, 4)]);
    text += &task("b", 1, 5, (200, 20), &[("map", 0, 6), ("map", 8, 3)]);
    text += &task("c", 2, 5, (200, 20), &[("map", 0, 5)]);
    read(&text)
}

fn found(analysis: &Analysis) -> Vec<(u64, u64)> {
    let ns = |span: Option<Span>| span.expect("a bound").as_ns();
    analysis.tasks.iter().map(|task| (ns(task.blocking), ns(task.response))).collect()
}

const MS: u64 = 1_000_000;

fn ms(all: &[(u64, u64)]) -> Vec<(u64, u64)> {
    all.iter().map(|(blocking, response)| (blocking * MS, response * MS)).collect()
}

#[test]
fn a_request_waits_for_one_section_of_each_other_processor() {
    let analysis = analyze(&three("msrp", "", ""), &Options::default()).unwrap();
    // CPU 0 waits 6 + 5 ms a request; CPU 1 5 + 4, CPU 2 6 + 4.
    // fast: blocked by slow, 11 + 4; user: 8 + 2 * 11 of its own, and two jobs of fast.
    let cpu_0 = [(15, 17), (15, 22), (15, 2 * 2 + 5 + 15 + 30), (0, 2 + 5 + 30 + 21 + 2)];
    let others = [(0, 20 + 9 + 9), (0, 20 + 10)];
    assert_eq!(found(&analysis), ms(&[&cpu_0[..], &others[..]].concat()));
    assert!(analysis.tasks.iter().all(|task| (task.test, task.exact) == ("fp-spin-locks", false)));
    assert!(analysis.tasks.iter().all(|task| task.verdict == Verdict::Meets));
}

#[test]
fn above_the_spin_priority_the_section_alone_blocks_with_a_local_one_beside_it() {
    for spin in ["\"ceiling\"", "5"] {
        let analysis = analyze(&three("fslm", spin, ""), &Options::default()).unwrap();
        // fast: the local section of middle (3) and the lock that slow comes to hold meanwhile (4).
        let above = [(7, 9), (4, 11)];
        assert_eq!(found(&analysis)[..2], ms(&above));
        assert_eq!(found(&analysis)[2], (15 * MS, 54 * MS));
    }
    // At 7 middle waits for the job that spins, and cannot lock while one does.
    let analysis = analyze(&three("fslm", "7", ""), &Options::default()).unwrap();
    assert_eq!(found(&analysis)[..2], ms(&[(4, 6), (15, 22)]));
    let highest = analyze(&three("fslm", "\"highest\"", ""), &Options::default()).unwrap();
    assert_eq!(found(&highest), found(&analyze(&three("msrp", "", ""), &Options::default()).unwrap()));
}

#[test]
fn what_the_kernel_takes_lengthens_the_sections_of_others() {
    let costs = "context_switch = \"10 us\"\ntimer_interrupt = \"5 us\"\n";
    let system = three("msrp", "", costs);
    let analysis = analyze(&system, &Options::default()).unwrap();
    let c = system.find_task("c").unwrap();
    let explained = explain(&system, c, &Options::default()).unwrap();
    let spinning = explained.terms.iter().find(|term| term.kind == TermKind::Spinning).unwrap();
    // Two switches and one interrupt of b's own release for its section, four of CPU 0's tasks for theirs.
    assert_eq!(spinning.time, Span::from_ns(10 * MS + 4 * 10_000 + 5_000 + 4 * 5_000));
    let sum: u64 = explained.terms.iter().map(|term| term.time.as_ns()).sum();
    assert_eq!(analysis.tasks[5].response, Some(Span::from_ns(sum)));
}

#[test]
fn a_term_for_each_block() {
    let system = three("fslm", "\"ceiling\"", "");
    let fast = system.find_task("fast").unwrap();
    let explained = explain(&system, fast, &Options::default()).unwrap();
    let terms: Vec<_> = explained.terms.iter().map(|term| (term.kind, term.who.as_deref())).collect();
    assert_eq!(
        terms,
        [
            (TermKind::OwnWork, None),
            (TermKind::BlockingSection, Some("middle")),
            (TermKind::BlockingSpinLock, Some("slow"))
        ]
    );
}

#[test]
fn beside_what_may_keep_a_holder_waiting_nothing_is_known() {
    let rigid = "[[task]]\nname = \"rigid\"\ncpu = 1\npriority = 9\nperiod = \"100 ms\"\nwcet = \"1 ms\"\npreemption = \"non-preemptive\"\n";
    let text = format!("{}{rigid}", horolog_model::file::print(&three("msrp", "", "")));
    let analysis = analyze(&read(&text), &Options::default()).unwrap();
    assert!(analysis.tasks.iter().all(|task| task.verdict == Verdict::Unknown), "{analysis:?}");
    assert!(analysis.notes.iter().any(|note| note.contains("`rigid` on CPU 1")), "{:?}", analysis.notes);
}

/// Of each kind of cost: 1 ns in each of the two sections that a request of CPU 0 waits for, in that of slow and in its own.
#[test]
fn each_cost_of_locking_makes_each_section_longer() {
    for (protocol, spin, ends) in [("msrp", "", 3), ("fslm", "\"ceiling\"", 1)] {
        for keys in
            [&["lock_request"][..], &["lock_grant"], &["lock_release"], &["lock_request", "lock_grant"]]
        {
            let costs: String = keys.iter().map(|key| format!("{key} = \"1 ns\"\n")).collect();
            let system = three(protocol, spin, &costs);
            let analysis = analyze(&system, &Options::default()).unwrap();
            let plain = found(&analyze(&three(protocol, spin, ""), &Options::default()).unwrap());
            let longer = |task: usize| {
                let now = found(&analysis)[task];
                (now.0 - plain[task].0, now.1 - plain[task].1)
            };
            let each = keys.len() as u64;
            // fast and user are blocked by slow; user and slow have two sections and one of their own, each with two waits.
            assert_eq!(longer(0), (ends * each, ends * each), "{protocol} {keys:?}");
            assert_eq!(longer(2), (3 * each, (3 + 2 * 3) * each), "{protocol} {keys:?}");
            assert_eq!(longer(3), (0, 3 * 3 * each), "{protocol} {keys:?}");
            // b asks twice, each time behind two others.
            assert_eq!(longer(4), (0, 2 * 3 * each), "{protocol} {keys:?}");
            let explained = explain(&system, system.find_task("b").unwrap(), &Options::default()).unwrap();
            let locking = explained.terms.iter().find(|term| term.kind == TermKind::Locking).unwrap();
            assert_eq!(locking.time, Span::from_ns(2 * each));
            assert!(analysis.notes[0].contains(&format!("longer by {each} ns")), "{:?}", analysis.notes);
        }
    }
}

/// Under local ceilings nothing on the map blocks who is above all of its users.
#[test]
fn a_helped_section_blocks_up_to_its_local_ceiling() {
    let analysis = analyze(&three("mrsp", "", ""), &Options::default()).unwrap();
    // fast: the local section of middle; middle: nothing. user and slow as under msrp.
    let cpu_0 = [(3, 5), (0, 7), (15, 2 * 2 + 5 + 15 + 30), (0, 2 + 5 + 30 + 21 + 2)];
    let others = [(0, 20 + 9 + 9), (0, 20 + 10)];
    assert_eq!(found(&analysis), ms(&[&cpu_0[..], &others[..]].concat()));
    let tests: Vec<_> = analysis.tasks.iter().map(|task| (task.test, task.source, task.exact)).collect();
    assert!(tests.iter().all(|test| *test == ("fp-mrsp", "burns13", false)), "{tests:?}");
    assert!(analysis.tasks.iter().all(|task| task.verdict == Verdict::Meets));
}

#[test]
fn what_moves_of_helped_sections_cost_is_not_known() {
    let unknown = |platform: &str, words: &str| {
        let analysis = analyze(&three("mrsp", "", platform), &Options::default()).unwrap();
        assert!(
            analysis.tasks.iter().all(|task| task.verdict == Verdict::Unknown && task.response.is_none())
        );
        let said = format!("{:?} {:?}", analysis.notes, analysis.reasons);
        assert!(said.contains(words), "{said}");
    };
    unknown(
        "context_switch = \"1 ns\"\n",
        "not with `protocol = \\\"mrsp\\\"` beside the cost of context switches",
    );
    unknown("timer_interrupt = \"1 ns\"\n", "beside the cost of timer interrupts");
    let system = three("mrsp", "", "context_switch = \"1 ns\"\n");
    let refused = cpu_model::CpuModel::new(&system, CpuId(0)).expect_err("no test").to_string();
    assert!(refused.contains("simulate the file and verify the trace"), "{refused}");
    // Of one processor alone nothing moves.
    let mut text = "[system]\nname = \"s\"\n[platform]\ncpus = 1\ncontext_switch = \"1 ns\"\n[[resource]]\nname = \"map\"\nprotocol = \"mrsp\"\n".to_owned();
    text += &task("a", 0, 5, (50, 2), &[("map", 0, 1)]);
    text += &task("b", 0, 3, (50, 4), &[("map", 0, 3)]);
    let analysis = analyze(&read(&text), &Options::default()).unwrap();
    // A switch that is under way counts with what blocks.
    assert_eq!(found(&analysis)[0], (3 * MS + 1, 5 * MS + 3));
}

/// More work than the processor has time for is no miss where sections may go on on another one.
#[test]
fn what_may_go_away_is_no_overload() {
    let text = |length: u64| {
        "[system]\nname = \"s\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"mrsp\"\n"
            .to_owned()
            + &task("above", 0, 9, (10, 6), &[])
            + &task("holder", 0, 5, (10, 5), &[("map", 0, length)])
            + &task("waits", 1, 5, (10, 1), &[("map", 0, 1)])
    };
    for (length, verdict) in [(1, Verdict::Unknown), (2, Verdict::Unknown)] {
        let analysis = analyze(&read(&text(length)), &Options::default()).unwrap();
        assert_eq!(analysis.tasks[1].verdict, verdict, "{length}");
    }
    // What stays at home is too much.
    let more = text(1).replacen("wcet = \"6 ms\"", "wcet = \"7 ms\"", 1);
    assert_eq!(analyze(&read(&more), &Options::default()).unwrap().tasks[1].verdict, Verdict::Misses);
}

/// Whoever is preempted while it waits asks anew, once for each job above it, and each time waits as for its first request.
#[test]
fn each_job_above_one_that_waits_makes_it_ask_anew() {
    let mut text =
        "[system]\nname = \"s\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"preemptable-fifo\"\n"
            .to_owned();
    text += &task("current", 0, 9, (50, 6), &[]);
    text += &task("path", 0, 5, (200, 30), &[("map", 8, 4)]);
    text += &task("last", 0, 3, (400, 1), &[]);
    text += &task("planner", 1, 5, (200, 60), &[("map", 10, 15)]);
    let system = read(&text);
    let analysis = analyze(&system, &Options::default()).unwrap();
    // current: a section of path, 4. path: 30 of its own, 15 of waiting, and two jobs of current, each with 6 and 15 more; of last two in 88: 6 + 15 each, and 45 of path.
    let responses: Vec<u64> = found(&analysis).iter().map(|(_, response)| response / MS).collect();
    assert_eq!(responses[..2], [6 + 4, 87]);
    assert_eq!(responses[2], 1 + (30 + 15) + 2 * (6 + 15));
    assert!(analysis.tasks.iter().all(|task| !task.exact), "a bound beside spin locks is no response time");
    for (id, task) in analysis.tasks.iter().enumerate() {
        let id = system.find_task(["current", "path", "last", "planner"][id]).expect("it is there");
        let explained = explain(&system, id, &Options::default()).unwrap();
        let sum: u64 = explained.terms.iter().map(|term| term.time.as_ns()).sum();
        assert_eq!(Some(sum), task.response.map(Span::as_ns), "{explained}");
    }
}
