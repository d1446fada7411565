//! Interrupts and devices in the analysis: the published facts, and what each kind of service costs whom.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::frame_grabber::{Transfer, task};
use horolog_analysis::{Analysis, Options, Schedulable, TermKind, Verdict, analyze, certify, explain};
use horolog_model::System;
use horolog_time::Span;
use toml::{Table, Value};

fn golden(name: &str) -> Table {
    let path = format!("{}/../../golden/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn read(text: &str) -> System {
    horolog_model::file::read(text, "test", &[]).unwrap().0
}

fn span(value: &Value) -> Span {
    value.as_str().unwrap().parse().unwrap()
}

fn us(us: u64) -> Option<Span> {
    Span::from_us(us)
}

const TASK: &str = "[system]\nname = \"x\"\n[[task]]\nname = \"t\"\nseparation = \"100 ms\"\nwcet = \"10 ms\"\npriority = 50\n";

/// The task of 10 ms with this beside it.
fn beside(rest: &str) -> Analysis {
    let system = read(&format!("{TASK}{rest}"));
    for id in system.task_ids() {
        let explanation = explain(&system, id, &Options::default()).unwrap();
        let sum = |adds: bool| -> u64 {
            explanation.terms.iter().filter(|t| t.adds() == adds).map(|t| t.time.as_ns()).sum()
        };
        if let Some(response) = explanation.response {
            assert_eq!(sum(true) - sum(false), response.as_ns(), "{explanation}");
        }
    }
    analyze(&system, &Options::default()).unwrap()
}

fn interrupt(throttling: &str) -> String {
    format!(
        "[[interrupt]]\nname = \"eth0\"\nseparation = \"10 us\"\ncost = \"4 us\"\nthrottling = \"{throttling}\"\n"
    )
}

fn poller(service: &str) -> String {
    format!("[[device]]\nname = \"net\"\ninterrupt = \"eth0\"\nrate = 1000\ncost = \"20 us\"\n{service}\n")
}

#[test]
fn a_network_card_s_interrupts() {
    let facts = &golden("driver-terms")["interrupts"];
    assert_eq!(beside(&interrupt("none")).tasks[0].response, Some(span(&facts["unthrottled"])));
    let below = format!("{}{}", interrupt("napi"), poller("service = \"thread\"\npriority = 10"));
    let found = beside(&below);
    assert_eq!(found.tasks[0].response, Some(span(&facts["napi"])));
    assert!(!found.tasks[0].exact);
    // A poller above the task turns the interrupt on again and again.
    let above = format!("{}{}", interrupt("napi"), poller("service = \"thread\"\npriority = 90"));
    assert!(beside(&above).tasks[0].response > Some(span(&facts["unthrottled"])));
    let moderated = format!("{}interval = \"100 us\"\n", interrupt("moderated"));
    // R = 10 000 + ⌈R/100⌉·4: 105 interrupts.
    assert_eq!(beside(&moderated).tasks[0].response, us(10_420));
}

/// The interrupt stays off until the server that polls has executed, which is below the task: it comes once. The server above, of
/// 1 ms in 10, polls for nobody: R = 10 + 0.004 + ⌈R/10⌉·1.
#[test]
fn an_interrupt_waits_for_the_server_that_polls() {
    let server = |name: &str, tasks: &str, priority: u32| {
        format!(
            "[[server]]\nname = \"{name}\"\nkind = \"polling\"\ntasks = [{tasks}]\nbudget = \"1 ms\"\nperiod = \"10 ms\"\n\
             priority = {priority}\n"
        )
    };
    let soft = "[[task]]\nname = \"soft\"\nseparation = \"100 ms\"\nwcet = \"50 ms\"\n";
    let polled = format!("{}{}", interrupt("napi"), poller("service = \"server\"\nserver = \"low\""));
    let (high, low) = (server("high", "\"soft\"", 90), server("low", "", 10));
    assert_eq!(beside(&format!("{soft}{polled}{high}{low}")).tasks[0].response, us(12_004));
}

#[test]
fn each_service_has_its_place() {
    let device = |service: &str| {
        format!("[[device]]\nname = \"d\"\nseparation = \"1 ms\"\ncost = \"100 us\"\n{service}\n")
    };
    let response = |service: &str| beside(&device(service)).tasks[0].response;
    // R = 10 + ⌈R/1⌉·0.1: 12 events.
    assert_eq!(response("service = \"interrupt\""), us(11_200));
    assert_eq!(response("service = \"thread\"\npriority = 51"), us(11_200));
    assert_eq!(response("service = \"thread\"\npriority = 50"), us(11_200), "equals count");
    assert_eq!(response("service = \"thread\"\npriority = 49"), us(10_000));
    // A full ring may come back from the background thread: R = 10 + (⌈R/1⌉ + 8)·0.1.
    assert_eq!(response("service = \"softirq\"\nring = 8"), us(12_000));
    assert_eq!(response("service = \"thread\"\nrule = \"open\"\nusers = [\"t\"]\nring = 8"), us(11_200));
    assert_eq!(response("service = \"thread\"\nrule = \"waiting\"\nusers = [\"t\"]\nring = 8"), us(12_000));
    let server = "service = \"server\"\nserver = \"s\"\n[[server]]\nname = \"s\"\nkind = \"deferrable\"\ntasks = []\n\
                  budget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 60";
    assert_eq!(response(server), us(13_000));
}

/// An event that a server handles in the background: its cost, a switch to it and one away from it, behind 1 ms and its two, and a
/// switch that has begun as the event comes.
#[test]
fn an_event_in_a_server_s_queue_is_switched_to_and_away_from() {
    let text = "[system]\nname = \"x\"\n[platform]\ncontext_switch = \"10 us\"\n[[task]]\nname = \"t\"\n\
                separation = \"100 ms\"\nwcet = \"1 ms\"\npriority = 5\n[[device]]\nname = \"d\"\nservice = \"server\"\nserver = \"s\"\nseparation = \"10 ms\"\ncost = \"100 us\"\n\
                [[server]]\nname = \"s\"\nkind = \"background\"\ntasks = []\n";
    let found = analyze(&read(text), &Options::default()).unwrap();
    assert_eq!(found.devices[0].response, us(1_150));
}

/// The switches to a driver's thread and away from it are listed with the others, beside its work.
#[test]
fn the_switches_of_a_driver_are_explained() {
    let device = |service: &str| {
        let platform = "[platform]\ncontext_switch = \"10 us\"\n";
        format!("{platform}[[device]]\nname = \"d\"\nseparation = \"1 ms\"\ncost = \"100 us\"\n{service}\n")
    };
    let switches = |service: &str| {
        let system = read(&format!("{TASK}{}", device(service)));
        let terms = explain(&system, system.task_ids().next().unwrap(), &Options::default()).unwrap().terms;
        terms.iter().find(|t| t.kind == TermKind::ContextSwitches).unwrap().count.unwrap()
    };
    let thread = "service = \"thread\"\npriority = 60";
    // R = 10 ms with switches + ⌈R/1 ms⌉·(100 us + 2·10 us): 12 events, two switches each.
    assert_eq!(switches(thread) - switches("service = \"interrupt\""), 24);
    assert!(beside(&device(thread)).tasks[0].response >= us(11_460));
}

#[test]
fn a_device_has_a_bound_and_a_ring_that_holds() {
    let text = "[[device]]\nname = \"d\"\nservice = \"thread\"\npriority = 10\nseparation = \"2 ms\"\ncost = \"1 ms\"\n\
                ring = 4\ndeadline = \"10 ms\"\n";
    let found = beside(text);
    // Behind 10 ms of the task: 10 + 1, while up to six events wait.
    assert_eq!(found.devices[0].response, us(11_000));
    assert_eq!((found.devices[0].verdict, found.devices[0].keeps_all), (Verdict::Unknown, false));
    assert_eq!(found.schedulable, Schedulable::Unknown);
    let soft = beside(&format!("{text}constraint = \"soft\"\n").replace("ring = 4", "ring = 6"));
    assert_eq!((soft.schedulable, soft.devices[0].keeps_all), (Schedulable::Yes, true));
    let above = beside(&text.replace("priority = 10", "priority = 60"));
    assert_eq!((above.devices[0].response, above.schedulable), (us(1_000), Schedulable::Yes));
    let softirq =
        beside("[[device]]\nname = \"d\"\nservice = \"softirq\"\nseparation = \"20 ms\"\ncost = \"1 ms\"\n");
    assert_eq!(softirq.devices[0].response, us(11_000), "what is left over is done in the background");
}

#[test]
fn devices_share_a_server_or_have_their_own() {
    let device = |name: &str, server: &str| {
        format!(
            "[[device]]\nname = \"{name}\"\nservice = \"server\"\nserver = \"{server}\"\nseparation = \"40 ms\"\n\
             cost = \"2 ms\"\n"
        )
    };
    let server = |name: &str, priority: u32| {
        format!(
            "[[server]]\nname = \"{name}\"\nkind = \"sporadic\"\ntasks = []\nbudget = \"2 ms\"\nperiod = \"10 ms\"\n\
             priority = {priority}\nlow_priority = \"none\"\n"
        )
    };
    let shared = beside(&format!("{}{}{}", device("net", "s"), device("disk", "s"), server("s", 60)));
    let own = beside(&format!(
        "{}{}{}{}",
        device("net", "s"),
        device("disk", "r"),
        server("s", 60),
        server("r", 70)
    ));
    let disk = |found: &Analysis| found.devices[1].response.unwrap();
    // One waits for the other's capacity, and for its own.
    assert_eq!((Some(disk(&shared)), Some(disk(&own))), (us(20_000), us(10_000)));
    assert_eq!(shared.devices[0].test, "server-sporadic");
}

#[test]
fn certificates_refuse_drivers() {
    let system = read(&format!("{TASK}{}", interrupt("none")));
    let analysis = analyze(&system, &Options::default()).unwrap();
    assert!(certify(&system, &analysis, &Options::default()).unwrap_err().is_outside_assumptions());
}

#[test]
fn frame_grabber() {
    let facts = golden("driver-grabber");
    let period = span(&facts["period"]);
    assert_eq!(task(Transfer::Programmed, period).unwrap().deadline, span(&facts["programmed-deadline"]));
    let free = facts["threshold"].as_array().unwrap().iter();
    for (free, deadline) in free.zip(facts["threshold-deadline"].as_array().unwrap()) {
        let free = u64::try_from(free.as_integer().unwrap()).unwrap();
        let found = task(Transfer::FreeBufferThreshold { free }, period).unwrap();
        assert_eq!((found.deadline, found.is_periodic), (span(deadline), false));
    }
    // A frame's buffer is written again when all others are full: a simulation loses frames from then on.
    let three = task(Transfer::Buffers { buffers: 3 }, period).unwrap();
    assert_eq!(three.deadline, period.checked_mul(2).unwrap());
    assert_eq!(task(Transfer::Buffers { buffers: 1 }, period), None);
}

/// A player that waits for a disk, and what is asked of it changed by `edits`.
fn player(edits: &[(&str, &str)]) -> System {
    let mut text = "[system]\nname = \"a player\"\n[[task]]\nname = \"player\"\nperiod = \"100 ms\"\nwcet = \"20 ms\"\npriority = 5\n\
        [[task]]\nname = \"control\"\nperiod = \"20 ms\"\nwcet = \"4 ms\"\npriority = 9\n\
        [[task]]\nname = \"log\"\nperiod = \"200 ms\"\nwcet = \"10 ms\"\npriority = 1\n\
        [[device]]\nname = \"disk\"\nclass = \"closed\"\nservice = \"thread\"\npriority = 7\nseparation = \"5 ms\"\n\
        latency = \"12 ms\"\ncost = \"200 us\"\n\
        [[request]]\nname = \"input\"\ntask = \"player\"\ndevice = \"disk\"\n"
        .to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let (system, _) = horolog_model::file::read(&text, "player.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    system
}

#[test]
fn what_rests_on_a_deadline_that_is_not_proven_is_taken_back() {
    let good = analyze(&player(&[]), &Options::default()).unwrap();
    assert!(good.tasks.iter().all(|task| task.verdict == Verdict::Meets), "{:?}", good.tasks);
    // An answer takes 12 ms of the disk and 4.2 ms until its event is worked off below `control`.
    assert_eq!(good.tasks[0].test, "fp-suspending");
    let late =
        analyze(&player(&[("latency = \"12 ms\"", "latency = \"80 ms\"")]), &Options::default()).unwrap();
    let verdicts: Vec<Verdict> = late.tasks.iter().map(|task| task.verdict).collect();
    assert_eq!(verdicts, [Verdict::Unknown, Verdict::Meets, Verdict::Unknown]);
    let note = late.tasks[2].tests[0].note.as_deref().unwrap();
    assert!(note.contains("`player`"), "{note}");
    assert_eq!(late.devices[0].verdict, Verdict::Unknown);
}

/// A more important task that waits for too long comes to few of its jobs, and the one below it to all of its own.
#[test]
fn a_task_that_waits_for_a_device_overloads_nothing() {
    let verdict = |wait: &str| {
        let text = format!(
            "[system]\nname = \"s\"\n[[task]]\nname = \"h\"\nperiod = \"10 ms\"\nwcet = \"6 ms\"\npriority = 9\n\
             [[task]]\nname = \"i\"\nperiod = \"40 ms\"\nwcet = \"17 ms\"\npriority = 3\n\
             [[device]]\nname = \"disk\"\nclass = \"closed\"\nservice = \"interrupt\"\nseparation = \"1 ms\"\ncost = \"1 us\"\n\
             latency = \"40 ms\"\n{wait}"
        );
        let (system, _) = horolog_model::file::read(&text, "s.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
        analyze(&system, &Options::default()).unwrap().tasks[1].verdict
    };
    let request = "[[request]]\nname = \"read\"\ntask = \"h\"\ndevice = \"disk\"\nafter = \"3 ms\"\nmode = \"synchronous\"\n";
    // Simulated for 4 s: 100 jobs of `i`, at most 23 ms.
    assert_eq!(verdict(request), Verdict::Unknown);
    assert_eq!(verdict(&request.replace("synchronous", "asynchronous")), Verdict::Misses);
}

#[test]
fn waits_without_a_bound_are_refused_with_the_remedy() {
    for edit in [
        ("period = \"100 ms\"", "period = \"100 ms\"\ndeadline = \"120 ms\""),
        ("wcet = \"20 ms\"", "wcet = \"20 ms\"\npreemption = \"non-preemptive\""),
        ("latency = \"12 ms\"", "admission_cost = \"1 us\"\nadmission_separation = \"5 ms\""),
    ] {
        let error = analyze(&player(&[edit]), &Options::default()).unwrap_err().to_string();
        assert!(error.contains("`player` waits for `disk`") && error.contains("--split-io"), "{error}");
    }
    let rival = "[[request]]\nname = \"input\"\ntask = \"player\"";
    let both = "[[request]]\nname = \"other\"\ntask = \"log\"\ndevice = \"disk\"\n[[request]]\nname = \"input\"\ntask = \"player\"";
    let alone = analyze(&player(&[]), &Options::default()).unwrap().tasks[0].response.unwrap().as_ns();
    let shared = analyze(&player(&[(rival, both)]), &Options::default()).unwrap();
    // The other's request may be ahead: 12 ms more, and one more job of `control` in the longer window.
    assert_eq!(shared.tasks[0].response.unwrap().as_ns() - alone, 12_000_000 + 4_000_000 + 600_000);
}

/// A job with its waits may be as long as any job, 2^62 ns, and no longer.
#[test]
fn a_job_and_its_waits_have_the_limit_of_a_job() {
    let response = |wcet: u64| {
        let text = format!(
            "[system]\nname = \"x\"\n[[task]]\nname = \"t\"\nseparation = \"9000000000000000000 ns\"\nwcet = \"{wcet} ns\"\n\
             priority = 5\n[[device]]\nname = \"disk\"\nclass = \"closed\"\nservice = \"thread\"\npriority = 7\n\
             separation = \"1 s\"\nlatency = \"2 s\"\ncost = \"100 us\"\n\
             [[request]]\nname = \"read\"\ntask = \"t\"\ndevice = \"disk\"\n"
        );
        analyze(&read(&text), &Options::default()).unwrap().tasks[0].response.map(Span::as_ns)
    };
    // The answer comes after 2 s and costs 100 us.
    let longest = (1 << 62) - 2_000_100_000;
    assert!(response(longest).is_some_and(|response| response >= 1 << 62));
    assert_eq!(response(longest + 1), None);
}

#[test]
fn an_analysis_of_jobs_that_wait_says_what_it_rests_on() {
    let request = "[[device]]\nname = \"disk\"\nclass = \"closed\"\nservice = \"interrupt\"\nseparation = \"5 ms\"\n\
                   latency = \"5 ms\"\ncost = \"100 us\"\n[[request]]\nname = \"read\"\ntask = \"t\"\ndevice = \"disk\"\n";
    let says = |rest: &str| beside(rest).notes.iter().any(|note| note.contains("waits for a device"));
    assert!(says(request) && !says(""));
}

/// The event that ends a wait may be a server's work. The disk takes 5 ms; its event waits up to 9 ms for a deferrable server of 1 ms
/// in 10, and takes 0.1 ms there. To the job the server is three capacities in its whole response: 2 + 14.1 + 3.
#[test]
fn an_answer_may_come_through_the_first_server() {
    let text = "[system]\nname = \"x\"\n[[task]]\nname = \"reader\"\nperiod = \"20 ms\"\nwcet = \"2 ms\"\npriority = 5\n\
                [[device]]\nname = \"disk\"\nclass = \"closed\"\nservice = \"server\"\nserver = \"s\"\nseparation = \"5 ms\"\n\
                latency = \"5 ms\"\ncost = \"100 us\"\n\
                [[request]]\nname = \"read\"\ntask = \"reader\"\ndevice = \"disk\"\nafter = \"1 ms\"\n\
                [[server]]\nname = \"s\"\nkind = \"deferrable\"\ntasks = []\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 9\n\
                low_priority = \"none\"\n";
    let found = analyze(&read(text), &Options::default()).unwrap();
    assert_eq!(found.devices[0].response, us(9_100), "{:#?}", found.devices);
    assert_eq!(found.tasks[0].response, us(2_000 + 5_000 + 9_100 + 3_000), "{:#?}", found.tasks);
}
