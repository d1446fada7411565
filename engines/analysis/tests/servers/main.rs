//! Systems with servers: verdicts, exactness, soft deadlines, sizes, explanations.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

mod edges;
mod short_jobs;
mod sizes;
mod trees;

use horolog_analysis::arrival_curve::ArrivalCurve;
use horolog_analysis::cpu_model::InterruptLoad;
use horolog_analysis::server::{Above, NoAnswer, Retention, Serve as _, Service, Supply};
use horolog_analysis::{
    Analysis, Options, Schedulable, TermKind, Verdict, analyze, certify, explain, size_server,
};
use horolog_model::{Draft, ServerKind, System};
use horolog_testkit::{Ingredients, Random, Serving, Shape, draw_system, served_system};
use horolog_time::Span;
use toml::Table;

const SET_B: &str = r#"
[system]
name = "set B"
[[task]]
name = "one"
separation = "10 ms"
wcet = "2 ms"
priority = 30
[[task]]
name = "two"
separation = "20 ms"
wcet = "4 ms"
priority = 20
[[task]]
name = "three"
separation = "40 ms"
wcet = "8 ms"
priority = 10
"#;

fn read(text: &str) -> System {
    horolog_model::file::read(text, "test", &[]).unwrap().0
}

fn with(rest: &str) -> Analysis {
    analyze(&read(&format!("{SET_B}{rest}")), &Options::default()).unwrap()
}

fn ms(ms: u64) -> Option<Span> {
    Span::from_ms(ms)
}

fn server(kind: &str, budget: &str, soft: &str) -> String {
    format!(
        "[[task]]\nname = \"soft\"\n{soft}\n[[server]]\nname = \"s\"\nkind = \"{kind}\"\ntasks = [\"soft\"]\n\
         budget = \"{budget}\"\nperiod = \"10 ms\"\npriority = 40\n"
    )
}

const BUSY: &str = "separation = \"100 ms\"\nwcet = \"50 ms\"";

/// Whether the bound of the task `three` below this server is called exact, beside more sections.
fn three_is_exact(server: &str, more: &str) -> bool {
    let found = with(&format!("{server}{more}"));
    let three = found.tasks.iter().find(|task| task.name == "three").unwrap();
    assert_eq!(three.verdict, Verdict::Meets, "{server}{more}");
    three.exact
}

/// A deferrable or sporadic server takes its whole term only where nothing delays it; a polling one also where something does.
#[test]
fn a_bound_below_a_delayed_server_is_exact_only_where_the_server_tolerates_that() {
    let above = "[[task]]\nname = \"top\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\npriority = 50\n";
    let server_above = server("polling", "1 ms", BUSY).replace("soft", "soft-too").replace("\"s\"", "\"t\"");
    let server_above = server_above.replace("priority = 40", "priority = 45");
    let blocking = "[[task]]\nname = \"low\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\npriority = 5\n\
                    preemption = \"non-preemptive\"\n";
    for kind in ["polling", "deferrable", "sporadic"] {
        let server = server(kind, "1 ms", BUSY);
        assert!(three_is_exact(&server, ""), "{kind}");
        for more in [above, server_above.as_str()] {
            assert_eq!(three_is_exact(&server, more), kind == "polling", "{kind}{more}");
        }
        assert!(kind == "polling" || !three_is_exact(&server, blocking), "{kind}");
        // Nothing blocks `three`, which cannot be preempted itself.
        let whole = SET_B.replace("wcet = \"8 ms\"", "wcet = \"8 ms\"\npreemption = \"non-preemptive\"");
        let found = analyze(&read(&format!("{whole}{server}")), &Options::default()).unwrap();
        assert!(kind == "polling" || !found.tasks[2].exact, "{kind}");
    }
}

#[test]
fn a_bound_is_exact_only_where_the_queue_fills_every_capacity_in_time() {
    let exact = |budget: &str, soft: &str| three_is_exact(&server("polling", budget, soft), "");
    // 1 ms is there at the first poll, of 2 ms that it could serve; later there is more than enough.
    assert!(!exact("2 ms", "separation = \"1 ms\"\nwcet = \"1 ms\""));
    assert!(exact("1 ms", "separation = \"1 ms\"\nwcet = \"1 ms\""));
    assert!(exact("1 ms", "separation = \"10 ms\"\nwcet = \"1 ms\""));
    assert!(!exact("1 ms", "separation = \"10001 us\"\nwcet = \"1 ms\""));
    assert!(!exact("1 ms", &format!("{BUSY}\njitter = \"1 ms\"")), "jitter leaves the arrivals no phase");
}

#[test]
fn facts_of_the_driver_framework() {
    let path = format!("{}/../../golden/driver-terms.toml", env!("CARGO_MANIFEST_DIR"));
    let facts: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let window = &facts["window"];
    let number = |key: &str| u64::try_from(window[key].as_integer().unwrap()).unwrap();
    let load = |retention: Retention| retention.load(number("execution"), number("period"));
    let taken = |retention| {
        let load = load(retention);
        load.arrival.half_open(number("length").into()) * u128::from(load.wcet)
    };
    assert_eq!(taken(Retention::AsPeriodic), number("periodic").into());
    assert_eq!(taken(Retention::Deferrable), number("deferrable").into());
    for case in facts["below"].as_array().unwrap() {
        let task = "[system]\nname = \"x\"\n[[task]]\nname = \"t\"\nseparation = \"100 ms\"\nwcet = \"10 ms\"\npriority = 1\n";
        let text = format!("{task}{}", server(case["kind"].as_str().unwrap(), "1 ms", BUSY));
        let found = analyze(&read(&text), &Options::default()).unwrap();
        let response: Span = case["response"].as_str().unwrap().parse().unwrap();
        assert_eq!(found.tasks[0].response, Some(response), "{case}");
        assert!(found.tasks[0].exact, "the queue can keep the server busy");
    }
}

#[test]
fn a_bound_is_exact_where_soft_work_can_use_up_the_server() {
    let busy = with(&server("deferrable", "3 ms", BUSY));
    assert_eq!(busy.tasks[2].response, ms(39));
    assert!(
        busy.tasks.iter().take(3).all(|t| t.exact && t.verdict == Verdict::Meets && t.test == "fp-servers")
    );
    let seldom = with(&server("deferrable", "3 ms", "separation = \"100 ms\"\nwcet = \"1 ms\""));
    assert!(seldom.tasks.iter().take(3).all(|t| !t.exact && t.verdict == Verdict::Meets));
    // Back to back two capacities are 6 ms, of which 3 have come by the end of the first.
    let late = with(&server("deferrable", "3 ms", "separation = \"10 ms\"\nwcet = \"3 ms\""));
    assert!(late.tasks.iter().take(3).all(|t| !t.exact && t.verdict == Verdict::Meets));
    // 3.2 ms is the edge; beyond it the third task misses, if soft work can use it.
    let beyond = with(&server("deferrable", "3300 us", BUSY));
    assert_eq!((beyond.tasks[2].verdict, beyond.schedulable), (Verdict::Misses, Schedulable::No));
    let unclear = with(&server("deferrable", "3300 us", "separation = \"100 ms\"\nwcet = \"1 ms\""));
    assert_eq!((unclear.tasks[2].verdict, unclear.schedulable), (Verdict::Unknown, Schedulable::Unknown));
    let largest = beyond.servers[0].largest_budget.as_ref().unwrap();
    assert_eq!((largest.budget, largest.headroom), (Span::from_us(3_200).unwrap(), -100_000));
    assert_eq!(largest.binding.as_deref(), Some("three"));
    assert_eq!(largest.exact_ns.as_deref(), Some("3200000"));
}

#[test]
fn a_soft_deadline_never_makes_a_system_unschedulable() {
    let late =
        with(&server("polling", "1 ms", "separation = \"100 ms\"\nwcet = \"5 ms\"\ndeadline = \"6 ms\""));
    let soft = &late.tasks[3];
    assert_eq!((soft.verdict, late.schedulable), (Verdict::Unknown, Schedulable::Yes));
    // Served in the background too: 5 + 2·2 + 4 + 8 + 2·2 + 4 + … is the lower bound here.
    assert_eq!((soft.test, soft.served_by.as_deref()), ("background", Some("s")));
    let overloaded = with(&server("polling", "1 ms", "separation = \"10 ms\"\nwcet = \"5 ms\""));
    assert_eq!((overloaded.tasks[3].response, overloaded.schedulable), (None, Schedulable::Yes));
}

#[test]
fn below_its_low_priority_all_soft_work_counts() {
    let text = server("sporadic", "1 ms", "separation = \"40 ms\"\nwcet = \"2 ms\"");
    let high = with(&text);
    let low = with(&format!("{text}low_priority = 15\n"));
    // Between the places the capacity counts, below them the job as a whole.
    assert_eq!(high.tasks[1].response, low.tasks[1].response);
    assert_eq!(low.tasks[2].response, ms(18), "8 + 2·2 + 4 + 2 of soft work");
    assert_eq!(high.tasks[2].response, ms(18), "8 + 2·2 + 4 + 2 executions of the server");
    assert!(low.tasks[2].exact && high.tasks[2].exact);
}

#[test]
fn posix_rules_have_no_bound() {
    let found = with(&format!("{}rules = \"posix\"\n", server("sporadic", "1 ms", BUSY)));
    assert!(found.tasks.iter().take(3).all(|t| t.verdict == Verdict::Unknown && t.response.is_none()));
    assert!(found.servers[0].largest_budget.is_none() && found.servers[0].note.is_some());
}

#[test]
fn a_promotion_time_that_is_not_safe_leaves_the_whole_processor_unknown() {
    let soft = format!("[[task]]\nname = \"soft\"\n{BUSY}\n");
    let found = |given: &str| {
        let set = SET_B.replace("priority = 10\n", &format!("priority = 10\npromotion = \"{given}\"\n"));
        let text =
            format!("{set}{soft}[[server]]\nname = \"s\"\nkind = \"dual-priority\"\ntasks = [\"soft\"]\n");
        analyze(&read(&text), &Options::default()).unwrap()
    };
    for safe in ["0 ms", "24 ms"] {
        assert!(found(safe).tasks.iter().take(3).all(|task| task.verdict == Verdict::Meets), "{safe}");
    }
    let late = found("24.000001 ms");
    for task in late.tasks.iter().take(3) {
        assert_eq!((task.verdict, task.response), (Verdict::Unknown, None));
        let note = task.tests[0].note.as_ref().unwrap();
        assert!(note.contains("task.three.promotion is later than its latest safe time"), "{note}");
    }
}

#[test]
fn slack_policies_promise_the_deadline() {
    for (kind, test) in [("dual-priority", "fp-dual-priority"), ("slack-stealing", "fp-slack-stealing")] {
        let soft = format!("[[task]]\nname = \"soft\"\n{BUSY}\n");
        let rest = format!("{soft}[[server]]\nname = \"s\"\nkind = \"{kind}\"\ntasks = [\"soft\"]\n");
        let found = with(&rest);
        let system = read(&format!("{SET_B}{rest}"));
        for id in system.task_ids().take(3) {
            assert_eq!(explain(&system, id, &Options::default()).unwrap().test, test);
        }
        for task in found.tasks.iter().take(3) {
            assert_eq!((task.verdict, task.test, task.response), (Verdict::Meets, test, task.deadline));
        }
        let promotions = &found.servers[0].promotions;
        let times: Vec<Option<Span>> = promotions.iter().map(|p| p.promotion).collect();
        assert_eq!(times, [ms(8), ms(14), ms(24)]);
        let slacks: Vec<Option<Span>> = promotions.iter().map(|p| p.slack).collect();
        assert_eq!(slacks, [ms(8), ms(12), ms(16)]);
    }
}

#[test]
fn jobs_of_a_total_bandwidth_server_are_done_by_their_deadlines() {
    let text = |budget: &str, more: &str| {
        format!(
            "[system]\nname = \"edf\"\npolicy = \"edf\"\n[[task]]\nname = \"hard\"\nseparation = \"10 ms\"\ndeadline = \"5 ms\"\n\
             wcet = \"2 ms\"\n{more}[[task]]\nname = \"soft\"\nseparation = \"100 ms\"\nwcet = \"5 ms\"\n[[task]]\nname = \
             \"other\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\n[[server]]\nname = \"s\"\nkind = \"total-bandwidth\"\ntasks = \
             [\"soft\", \"other\"]\nbudget = \"{budget}\"\nperiod = \"10 ms\"\n"
        )
    };
    let of = |text: &str| analyze(&read(text), &Options::default()).unwrap();
    let found = of(&text("3 ms", ""));
    assert_eq!((found.tasks[0].verdict, found.tasks[0].test), (Verdict::Meets, "edf-servers"));
    assert_eq!(found.tasks[1].test, "server-total-bandwidth");
    // 5·10/3 and 1·10/3 ms, each rounded up to whole ns; either may find the other ahead.
    let response = Some(Span::from_ns(16_666_667 + 3_333_334));
    assert_eq!([found.tasks[1].response, found.tasks[2].response], [response; 2]);
    // 2 + 5·Q/10 ≤ 5 binds before 0.2 + Q/10 ≤ 1.
    assert_eq!(found.servers[0].largest_budget.as_ref().unwrap().budget, ms(6).unwrap());
    assert_eq!(of(&text("6 ms", "")).tasks[1].verdict, Verdict::Meets);
    let beyond = of(&text("6000001 ns", ""));
    assert!(beyond.tasks.iter().all(|task| task.verdict == Verdict::Unknown), "{:?}", beyond.tasks);
    // Two ms that cannot be preempted hold the last of them up.
    let held_up = of(&text("3 ms", "preemption = \"non-preemptive\"\n"));
    assert_eq!(held_up.tasks[1].response, Some(Span::from_ns(22_000_001)));
}

#[test]
fn constant_bandwidth_servers_take_their_share_of_every_window() {
    let text = r#"
[system]
name = "edf"
policy = "edf"
[[task]]
name = "hard"
separation = "10 ms"
deadline = "5 ms"
wcet = "2 ms"
[[task]]
name = "soft"
separation = "100 ms"
wcet = "5 ms"
[[server]]
name = "s"
kind = "constant-bandwidth"
tasks = ["soft"]
budget = "3 ms"
period = "10 ms"
"#;
    let found = analyze(&read(text), &Options::default()).unwrap();
    assert_eq!((found.tasks[0].verdict, found.tasks[0].test), (Verdict::Meets, "edf-servers"));
    // 2 + 5·Q/10 ≤ 5 binds before 0.2 + Q/10 ≤ 1.
    let largest = found.servers[0].largest_budget.as_ref().unwrap();
    assert_eq!((largest.budget, largest.exact_ns.as_deref()), (ms(6).unwrap(), Some("6000000")));
    assert_eq!(found.tasks[1].response, ms(20), "two pieces, a period each");
    // An interrupt of 20 us every 1 ms leaves 98 % and may come at once, behind a job of 2 ms that cannot be preempted: a piece
    // can be (2 + 0.02) / 0.98 ms late. What it leaves to the server is no closed form any more.
    let held_up = text.replace("wcet = \"2 ms\"", "wcet = \"2 ms\"\npreemption = \"non-preemptive\"")
        + "[[interrupt]]\nname = \"card\"\nseparation = \"1 ms\"\ncost = \"20 us\"\n";
    let found = analyze(&read(&held_up), &Options::default()).unwrap();
    assert_eq!(found.tasks[1].response, Some(Span::from_ns(22_061_225)));
    assert_eq!(found.servers[0].largest_budget.as_ref().unwrap().exact_ns, None);
}

#[test]
fn the_largest_budget_spares_the_tasks_above_a_server_with_timers() {
    // Each job of v may end a stretch of the server, and each stretch a timer that interrupts control.
    let text = r#"
[system]
name = "timers"
[platform]
timer_interrupt = "20 us"
[[task]]
name = "control"
separation = "5 ms"
wcet = "2 ms"
deadline = "3 ms"
priority = 7
[[task]]
name = "v"
separation = "1 ms"
wcet = "0.2 ms"
[[server]]
name = "s"
kind = "sporadic"
tasks = ["v"]
budget = "1 ms"
period = "10 ms"
priority = 2
"#;
    let system = read(text);
    let found = analyze(&system, &Options::default()).unwrap();
    let largest = found.servers[0].largest_budget.as_ref().unwrap().budget;
    let with = |budget| {
        analyze(&resized(&system, 0, budget).unwrap(), &Options::default()).unwrap().tasks[0].verdict
    };
    assert_eq!(with(largest), Verdict::Meets, "{largest}");
    assert!(largest < ms(10).unwrap(), "{largest}");
    // Without room for a single timer above control no capacity is safe, however low the server stands.
    let full =
        analyze(&read(&text.replace("deadline = \"3 ms\"", "deadline = \"2 ms\"")), &Options::default())
            .unwrap();
    assert_eq!(full.servers[0].largest_budget, None);
    assert!(full.servers[0].note.as_ref().is_some_and(|note| note.starts_with("no capacity is safe")));
    assert_ne!(with(Span::from_ns(largest.as_ns() + 1)), Verdict::Meets, "{largest}");
}

#[test]
fn no_share_is_safe_beside_a_task_that_may_be_released_at_its_deadline() {
    // D − J is 1 ns, 0 and −1 ns. Only the first window can hold anything, and not C.
    for jitter in ["3999999 ns", "4 ms", "4000001 ns"] {
        let text = format!(
            "[system]\nname = \"late\"\npolicy = \"edf\"\n\
             [[task]]\nname = \"hard\"\nperiod = \"10 ms\"\ndeadline = \"4 ms\"\njitter = \"{jitter}\"\nwcet = \"1 ms\"\n\
             [[task]]\nname = \"soft\"\narrivals = [\"2 ms\"]\nwcet = \"1 ms\"\n\
             [[server]]\nname = \"s\"\nkind = \"constant-bandwidth\"\ntasks = [\"soft\"]\nbudget = \"1 ms\"\n\
             period = \"5 ms\"\n"
        );
        let found = analyze(&read(&text), &Options::default()).unwrap();
        assert_ne!(found.schedulable, Schedulable::Yes, "jitter {jitter}");
        assert_eq!(found.servers[0].largest_budget, None, "jitter {jitter}");
    }
}

/// The closed form of a share knows tasks alone: 1/3001 of the processor is left beside a job of 3 ms in 3.001 ms. An interrupt of
/// 10 us, however rare, or a measured load with as much at once leaves nothing for even the least budget; so do costs.
#[test]
fn no_share_is_safe_where_something_else_takes_the_rest() {
    let largest = |platform: &str, rest: &str| {
        let text = format!(
            "[system]\nname = \"x\"\npolicy = \"edf\"\n[platform]\n{platform}\n\
             [[task]]\nname = \"hard\"\nperiod = \"3001 us\"\nwcet = \"3 ms\"\n\
             [[task]]\nname = \"soft\"\narrivals = [\"2 ms\"]\nwcet = \"1 ms\"\n\
             [[server]]\nname = \"s\"\nkind = \"constant-bandwidth\"\ntasks = [\"soft\"]\nbudget = \"1 us\"\n\
             period = \"3001 us\"\n{rest}"
        );
        let found = analyze(&read(&text), &Options::default()).unwrap();
        found.servers[0].largest_budget.as_ref().map(|largest| largest.exact_ns.clone())
    };
    assert_eq!(largest("", ""), Some(Some("1000".to_owned())));
    assert_eq!(largest("context_switch = \"5 us\"", ""), None);
    let interrupt = "[[interrupt]]\nname = \"eth0\"\nseparation = \"1 s\"\ncost = \"10 us\"\n";
    assert_eq!(largest("", interrupt), None);
    let load = "[[interference]]\nname = \"n\"\nutilisation = 0.00001\nperiod = \"1 s\"\ncpu = 0\n";
    assert_eq!(largest("", load), None);
}

#[test]
fn certificates_refuse_servers() {
    let text = format!("{SET_B}{}", server("polling", "1 ms", BUSY));
    let system = read(&text);
    let analysis = analyze(&system, &Options::default()).unwrap();
    assert!(certify(&system, &analysis, &Options::default()).unwrap_err().is_outside_assumptions());
}

/// The system with another budget of its server number `index`.
fn resized(system: &System, index: usize, budget: Span) -> Option<System> {
    let mut draft: Draft = system.to_draft();
    let mut capacity = draft.servers[index].kind.capacity()?;
    capacity.budget = budget;
    draft.servers[index].kind = draft.servers[index].kind.with_capacity(capacity);
    System::new(draft).ok()
}

#[test]
fn the_largest_budget_passes_and_a_nanosecond_more_does_not() {
    let (mut checked, mut closed) = (0, 0);
    for index in 0..400 {
        let serving = match index % 4 {
            0 if index % 8 == 0 => Serving::TotalBandwidth,
            0 => Serving::Edf,
            _ => Serving::Placed,
        };
        let ingredients = if index % 3 == 0 { Ingredients::ALL } else { Ingredients::NONE };
        let system = served_system(43, index, serving, ingredients);
        let analysis = analyze(&system, &Options::default()).unwrap();
        for (place, server) in analysis.servers.iter().enumerate() {
            let Some(largest) = &server.largest_budget else { continue };
            closed += u32::from(largest.exact_ns.is_some());
            // What is proven with the least budget is proven with the largest, and not with more. The server's own tasks do not
            // count.
            let proven = |budget: Span| -> Option<Vec<String>> {
                let system = resized(&system, place, budget)?;
                let analysis = analyze(&system, &Options::default()).unwrap();
                let tasks = system.tasks().iter().zip(&analysis.tasks).filter(|(task, verdict)| {
                    verdict.served_by.as_ref() != Some(&server.name) && task.deadline.is_some()
                });
                let tasks = tasks.filter(|(_, verdict)| verdict.verdict == Verdict::Meets);
                let devices = analysis.devices.iter().filter(|d| !d.soft && d.verdict == Verdict::Meets);
                Some(
                    tasks.map(|(task, _)| task.name.clone()).chain(devices.map(|d| d.name.clone())).collect(),
                )
            };
            let least = proven(Span::from_ns(1)).unwrap();
            let all_meet =
                |budget: Span| proven(budget).map(|now| least.iter().all(|name| now.contains(name)));
            let context =
                || format!("{index}, {}: {largest:?}\n{}", server.name, horolog_model::file::print(&system));
            if !largest.budget.is_zero() {
                assert_eq!(all_meet(largest.budget), Some(true), "{}", context());
            }
            let more = largest.budget.checked_add(Span::from_ns(1)).unwrap();
            assert_ne!(all_meet(more), Some(true), "{}", context());
            checked += 1;
        }
    }
    assert!(checked > 120 && closed > 40, "{checked} {closed}");
}

/// Two servers and a device below the first one: its advice leaves them what they have promised.
#[test]
fn the_largest_budget_leaves_other_servers_and_devices_their_deadlines() {
    let text = |budget: &str| {
        format!(
            "[system]\nname = \"two\"\n[[task]]\nname = \"hard\"\nperiod = \"100 ms\"\nwcet = \"1 ms\"\npriority = 1\n\
             [[task]]\nname = \"a\"\nseparation = \"1 ms\"\nwcet = \"1 ms\"\n[[task]]\nname = \"b\"\nseparation = \"50 ms\"\nwcet = \
             \"1 ms\"\ndeadline = \"15 ms\"\n[[server]]\nname = \"x\"\ntasks = [\"a\"]\nkind = \"polling\"\npriority = 9\nperiod = \"10 \
             ms\"\nbudget = \"{budget}\"\n[[server]]\nname = \"y\"\ntasks = [\"b\"]\nkind = \"polling\"\npriority = 5\nperiod = \"10 \
             ms\"\nbudget = \"2 ms\"\n"
        )
    };
    let device = |deadline: u64| {
        format!(
            "[[device]]\nname = \"d\"\nservice = \"thread\"\npriority = 7\nseparation = \"20 ms\"\ncost = \"1 ms\"\ndeadline = \
             \"{deadline} ns\"\n"
        )
    };
    // A nanosecond less for the device is a nanosecond less for the server.
    let devices = (0..4).map(|less| (device(3_000_000 - less), 1_000, 2_000));
    for (devices, least, most) in devices.chain([(String::new(), 3_000, 7_000)]) {
        let devices = devices.as_str();
        let advised = |budget: &str| {
            let analysis = analyze(&read(&(text(budget) + devices)), &Options::default()).unwrap();
            analysis.servers[0].largest_budget.clone().unwrap()
        };
        let found = advised("1 ms");
        assert!((least..=most).contains(&(found.budget.as_ns() / 1_000)), "{found:?}");
        assert_eq!(found.binding.as_deref(), Some(if devices.is_empty() { "b" } else { "d" }));
        // Applied, everything is proven, and nothing more is advised.
        let applied =
            analyze(&read(&(text(&format!("{} ns", found.budget.as_ns())) + devices)), &Options::default())
                .unwrap();
        assert_eq!(applied.schedulable, Schedulable::Yes);
        assert!(applied.tasks.iter().all(|task| task.name != "b" || task.verdict == Verdict::Meets));
        assert_eq!(applied.servers[0].largest_budget.as_ref().map(|l| l.headroom), Some(0));
    }
}

#[test]
fn terms_add_up_and_belong_to_the_bound() {
    let (mut hard, mut soft) = (0, 0);
    for index in 0..300 {
        let serving = [Serving::Placed, Serving::SlackPolicy, Serving::Edf, Serving::TotalBandwidth]
            [index as usize % 4];
        let ingredients = if index % 2 == 0 { Ingredients::ALL } else { Ingredients::NONE };
        let system = served_system(44, index, serving, ingredients);
        let analysis = analyze(&system, &Options::default()).unwrap();
        for (id, verdict) in system.task_ids().zip(&analysis.tasks) {
            let explanation = explain(&system, id, &Options::default()).unwrap();
            let Some(response) = explanation.response else { continue };
            let sum = |adds: bool| -> u64 {
                explanation.terms.iter().filter(|t| t.adds() == adds).map(|t| t.time.as_ns()).sum()
            };
            assert_eq!(sum(true) - sum(false), response.as_ns(), "{index}: {explanation}");
            // By offsets, or by the deadline of another test, a verdict can be tighter.
            if verdict.served_by.is_some() {
                assert_eq!(Some(response), verdict.response, "{index}: {explanation}");
                soft += 1;
            } else if verdict.test == explanation.test {
                assert_eq!(Some(response), verdict.response, "{index}: {explanation}");
                hard += 1;
            }
        }
    }
    assert!(hard > 300 && soft > 150, "{hard} {soft}");
}

/// A job of 5 ms in a polling server of 5 ms every 10 ms that nothing is above: it just misses a poll, and is served at the next one,
/// 15 ms after it came. Below the task it is done 5 ms earlier.
#[test]
fn the_best_response_is_the_lesser_bound_in_the_largest_budget() {
    let soft = server("polling", "1 ms", "separation = \"100 ms\"\nwcet = \"5 ms\"");
    let task = "[system]\nname = \"x\"\n[[task]]\nname = \"t\"\nseparation = \"10 ms\"\nwcet = \"5 ms\"\npriority = 1\n";
    let system = read(&format!("{task}{soft}"));
    let id = system.server_ids().next().unwrap();
    let size = size_server(&system, id, ms(10), &Options::default()).unwrap();
    assert_eq!(size.largest_budget.as_ref().unwrap().budget, ms(5).unwrap());
    let best = size.best_response.unwrap();
    assert_eq!((best.period, best.budget, best.work), (ms(10).unwrap(), ms(5).unwrap(), ms(5)));
    assert_eq!((best.response, best.test), (ms(10), Some("background")));
}

fn effort(effort: u64) -> Options {
    let mut options = Options::default();
    options.effort = effort;
    options
}

#[test]
fn hostile_numbers_give_a_result_or_an_error() {
    for index in 0..120 {
        let system = draw_system(&Shape::with_servers(), &mut Random::new(index));
        let options = effort(20_000);
        let Ok(analysis) = analyze(&system, &options) else { continue };
        assert_eq!(analysis.tasks.len(), system.tasks().len());
        for id in system.task_ids() {
            let _ = explain(&system, id, &options);
        }
        for id in system.server_ids() {
            let _ = size_server(&system, id, None, &effort(2_000));
        }
    }
}

#[test]
fn a_size_is_no_worse_than_the_file() {
    let mut random = Random::of_item(45, 0);
    let mut sized = 0;
    for index in 0..60 {
        let system = served_system(46, random.next_u64() % 1_000 + index, Serving::Placed, Ingredients::NONE);
        for id in system.server_ids() {
            let kind = system.server(id).kind;
            let Ok(size) = size_server(&system, id, None, &Options::default()) else {
                assert!(kind.capacity().is_none() || matches!(kind, ServerKind::Sporadic { .. }));
                continue;
            };
            let (Some(largest), Some(best)) = (&size.largest_budget, &size.best_share) else { continue };
            let own = u128::from(largest.budget.as_ns()) * 1_000_000_000 / u128::from(size.period.as_ns());
            // The best is compared exactly, shares are shown rounded down from whole nanoseconds.
            assert!(u128::from(best.share_ppb) + 1_000_000 >= own, "{index}: {size:?}");
            sized += 1;
        }
    }
    assert!(sized > 20, "{sized}");
}

/// A job of 7 ms needs three periods of a server of 3 ms, so the processor is switched to the server three times and away from it
/// three times before the job ends.
#[test]
fn the_switches_of_a_server_delay_what_it_serves() {
    let response = |platform: &str| {
        let soft = server("polling", "3 ms", "separation = \"100 ms\"\nwcet = \"7 ms\"");
        let text = format!("[system]\nname = \"x\"\n{platform}{soft}");
        analyze(&read(&text), &Options::default()).unwrap().tasks[0].response.unwrap()
    };
    let (without, with) = (response(""), response("[platform]\ncontext_switch = \"10 us\"\n"));
    assert!(with.as_ns() >= without.as_ns() + 60_000, "{without:?} {with:?}");
}

/// One piece of 1 ns above, and work that is done at 2^63 ns sharp, the last instant that counts, or a nanosecond later.
#[test]
fn times_up_to_the_last_instant_have_an_answer() {
    let arrival = ArrivalCurve::Periodic { separation: 1 << 63, jitter: 0 };
    let above = Above { loads: vec![InterruptLoad { arrival, wcet: 1 }], ..Above::default() };
    assert_eq!(above.finish((1 << 63) - 1, &mut 1_000), Ok(1 << 63));
    assert_eq!(above.finish(1 << 63, &mut 1_000), Err(NoAnswer::TooLarge));
}

/// Below all tasks a job of 5 ms ends at 5 + 8 + 2·⌈27/10⌉ + 4·⌈27/20⌉ = 27 ms, and does so where all are released at once.
#[test]
fn a_bound_in_the_background_is_exact_where_there_is_one() {
    let background = |arrivals: &str, wcet: u64| {
        let text = format!(
            "[[task]]\nname = \"soft\"\n{arrivals}\nwcet = \"{wcet} ms\"\n\
             [[server]]\nname = \"s\"\nkind = \"background\"\ntasks = [\"soft\"]\n"
        );
        let soft = with(&text).tasks.remove(3);
        (soft.response, soft.exact)
    };
    assert_eq!(background("separation = \"100 ms\"", 5), (ms(27), true));
    // 60 of 100 ms are taken by the others.
    assert_eq!(background("separation = \"100 ms\"", 41), (None, false));
    // Where the file says when it comes, it need not come with the others.
    assert_eq!(background("period = \"100 ms\"\noffset = \"5 ms\"", 5), (ms(27), false));
    assert_eq!(background("arrivals = [\"5 ms\"]", 5), (ms(27), false));
}

/// Two queues below all tasks, or one below deadlines: the bound counts all that may come first, but not in which order.
#[test]
fn a_bound_in_the_background_is_not_exact_beside_another_queue_or_under_edf() {
    let queue = |name: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nseparation = \"100 ms\"\nwcet = \"5 ms\"\n\
             [[server]]\nname = \"of {name}\"\nkind = \"background\"\ntasks = [\"{name}\"]\n"
        )
    };
    let exact =
        |found: &Analysis, name: &str| found.tasks.iter().find(|task| task.name == name).unwrap().exact;
    let two = with(&format!("{}{}", queue("soft"), queue("other")));
    assert!(!exact(&two, "soft") && !exact(&two, "other"));
    let hard = "[[task]]\nname = \"hard\"\nseparation = \"10 ms\"\nwcet = \"2 ms\"\n";
    let text = format!("[system]\nname = \"x\"\npolicy = \"edf\"\n{hard}{}", queue("soft"));
    assert!(!exact(&analyze(&read(&text), &Options::default()).unwrap(), "soft"));
}

/// Where a job cannot be preempted, work that surely comes may also help: it can hold up the one that would have blocked. So what
/// misses without the servers is only proven to miss with them where their work may stay away.
#[test]
fn what_misses_without_a_server_misses_with_it_unless_its_work_may_help() {
    let urgent = |soft: &str| {
        let text = format!(
            "[system]\nname = \"x\"\n[[task]]\nname = \"urgent\"\nseparation = \"20 ms\"\nwcet = \"4 ms\"\ndeadline = \"5 ms\"\n\
             priority = 30\n[[task]]\nname = \"low\"\nseparation = \"20 ms\"\nwcet = \"4 ms\"\npriority = 5\npreemption = \
             \"non-preemptive\"\n{}",
            // Less than the capacity, so that the bound beside the server is not known to be the least.
            server("polling", "1 ms", &format!("{soft} = \"50 ms\"\nwcet = \"500 us\""))
        );
        let urgent = analyze(&read(&text), &Options::default()).unwrap().tasks.remove(0);
        let says = |note: &String| note.contains("without any server");
        (urgent.verdict, urgent.tests.iter().any(|test| test.note.as_ref().is_some_and(says)))
    };
    assert_eq!(urgent("separation"), (Verdict::Misses, true));
    assert_eq!(urgent("period"), (Verdict::Unknown, false));
}

#[test]
fn the_test_beside_a_server_has_the_name_of_the_task_s_kind() {
    for (preemption, test) in [("preemptive", "fp-servers"), ("non-preemptive", "fp-servers-deferred")] {
        let text = format!(
            "[system]\nname = \"x\"\n[[task]]\nname = \"hard\"\nseparation = \"20 ms\"\nwcet = \"4 ms\"\npriority = 3\n\
             preemption = \"{preemption}\"\n{}",
            server("polling", "1 ms", BUSY)
        );
        let system = read(&text);
        assert_eq!(analyze(&system, &Options::default()).unwrap().tasks[0].test, test);
        let id = system.task_ids().next().unwrap();
        assert_eq!(explain(&system, id, &Options::default()).unwrap().test, test);
    }
}

#[test]
fn no_work_is_done_at_once() {
    let above = Above::default();
    for service in [Service::Polling, Service::Deferrable, Service::HardReservation { overdrawn: 3 }] {
        let supply = Supply::new(service, 2, 10, &above, &mut 1_000).unwrap();
        assert_eq!(supply.finish(0, &mut 1_000), Ok(0), "{service:?}");
    }
}

/// A job of 1 ns ahead in the queue is a term of its own.
#[test]
fn the_shortest_term_of_a_served_job_is_listed() {
    let text = "[system]\nname = \"x\"\n[[task]]\nname = \"tiny\"\nseparation = \"100 ms\"\nwcet = \"1 ns\"\n\
                [[task]]\nname = \"soft\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\n\
                [[server]]\nname = \"s\"\nkind = \"background\"\ntasks = [\"tiny\", \"soft\"]\n";
    let system = read(text);
    let explained = explain(&system, system.task_ids().nth(1).unwrap(), &Options::default()).unwrap();
    assert_eq!(explained.response, Some(Span::from_ns(1_000_001)));
    let sum: u64 = explained.terms.iter().map(|term| term.time.as_ns()).sum();
    assert_eq!(sum, 1_000_001, "{explained}");
}

/// Interrupts of timers are no context switches.
#[test]
fn interrupts_above_a_served_job_are_listed_as_what_they_are() {
    let text = "[system]\nname = \"x\"\n[platform]\ntimer_interrupt = \"10 us\"\n[[task]]\nname = \"hard\"\nseparation = \"10 ms\"\n\
                wcet = \"1 ms\"\npriority = 3\n[[task]]\nname = \"soft\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\n\
                [[server]]\nname = \"s\"\nkind = \"background\"\ntasks = [\"soft\"]\n";
    let system = read(text);
    let explained = explain(&system, system.task_ids().nth(1).unwrap(), &Options::default()).unwrap();
    let kinds: Vec<TermKind> = explained.terms.iter().map(|term| term.kind).collect();
    assert!(
        kinds.contains(&TermKind::TimerInterrupts) && !kinds.contains(&TermKind::ContextSwitches),
        "{explained}"
    );
}
