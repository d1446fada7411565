//! Servers at the edges: alone on a processor, beside equals, and at limits of times and shares.

use super::*;

/// Alone on its processor a server may have all of it.
#[test]
fn a_server_alone_may_have_the_whole_processor() {
    let text = format!("[system]\nname = \"x\"\n{}", server("polling", "1 ms", BUSY));
    let system = read(&text);
    let size = size_server(&system, system.server_ids().next().unwrap(), None, &Options::default()).unwrap();
    assert_eq!(size.best_share.unwrap().share_ppb, 1_000_000_000);
    // Beside tasks no period is tried that is shorter than an eighth of the shortest of theirs, 10 ms.
    let system = read(&format!("{SET_B}{}", server("polling", "1 ms", BUSY)));
    let size = size_server(&system, system.server_ids().next().unwrap(), None, &Options::default()).unwrap();
    assert_eq!(size.least_period.as_ns(), 1_250_000);
    let asked =
        size_server(&system, system.server_ids().next().unwrap(), ms(2), &Options::default()).unwrap();
    assert_eq!(asked.least_period, ms(2).unwrap());
}

/// Two tasks with 50 % of the processor are below both bounds for rate-monotonic priorities, 82.8 % and 2 ≥ (1 + 1/4)². Beside a
/// server that takes part these say nothing; one in the background takes nothing.
#[test]
fn utilisation_bounds_are_applied_where_no_server_takes_part() {
    let tasks = "[system]\nname = \"x\"\n[[task]]\nname = \"a\"\nseparation = \"4 ms\"\nwcet = \"1 ms\"\npriority = 30\n\
                 [[task]]\nname = \"b\"\nseparation = \"8 ms\"\nwcet = \"2 ms\"\npriority = 20\n";
    let background = "[[task]]\nname = \"late\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\n\
                      [[server]]\nname = \"b\"\nkind = \"background\"\ntasks = [\"late\"]\n";
    let polling = server("polling", "1 ms", BUSY);
    let verdicts = |rest: &str| -> Vec<Verdict> {
        let found = analyze(&read(&format!("{tasks}{rest}")), &Options::default()).unwrap();
        found.processors[0].tests.iter().filter(|t| t.test.starts_with("rm-")).map(|t| t.verdict).collect()
    };
    let share = analyze(&read(tasks), &Options::default()).unwrap().utilisation.unwrap();
    assert!((share - 0.5).abs() < 1e-9, "{share}");
    assert_eq!(verdicts(""), [Verdict::Meets; 2]);
    assert_eq!(verdicts(background), [Verdict::Meets; 2]);
    assert_eq!(verdicts(&polling), [Verdict::Unknown; 2]);
    assert_eq!(verdicts(&format!("{background}{polling}")), [Verdict::Unknown; 2]);
}

/// The best response is that of the longest job that the server serves, wherever it stands in the file, behind the others.
#[test]
fn the_best_response_counts_the_longest_job_of_a_queue() {
    for tasks in [["long", "short"], ["short", "long"]] {
        let mut text =
            "[system]\nname = \"x\"\n[[task]]\nname = \"t\"\nseparation = \"10 ms\"\nwcet = \"5 ms\"\npriority = 1\n".to_owned();
        for name in tasks {
            let wcet = if name == "long" { 5 } else { 1 };
            text += &format!("[[task]]\nname = \"{name}\"\nseparation = \"100 ms\"\nwcet = \"{wcet} ms\"\n");
        }
        text += "[[server]]\nname = \"s\"\nkind = \"polling\"\ntasks = [\"long\", \"short\"]\nbudget = \"1 ms\"\n\
                 period = \"10 ms\"\npriority = 40\n";
        let system = read(&text);
        let id = system.server_ids().next().unwrap();
        let best = size_server(&system, id, ms(10), &Options::default()).unwrap().best_response.unwrap();
        // Both may come at once: 6 ms of work below two jobs of 5 ms, whichever is last.
        assert_eq!((best.work, best.response), (ms(5), ms(16)), "{tasks:?}");
        assert_eq!(best.task.as_deref(), Some("long"), "{tasks:?}");
    }
}

/// Work at the task's own priority may be ahead of it or not: only where the server goes on above it does each of its jobs come
/// first.
#[test]
fn a_bound_below_a_server_s_low_place_is_exact_only_where_that_is_more_important() {
    let text = server("sporadic", "1 ms", "separation = \"40 ms\"\nwcet = \"2 ms\"");
    for (low, is_exact) in [(10, false), (11, true)] {
        assert_eq!(three_is_exact(&format!("{text}low_priority = {low}\n"), ""), is_exact, "{low}");
    }
}

/// The first of the tests says that a bound exists and is too long, and says nothing where the deadline holds.
#[test]
fn a_soft_deadline_below_the_bound_is_said() {
    // A job of 1 ms just misses a poll of 1 ms in 10 and ends 11 ms after it came.
    for (deadline, said) in
        [("11 ms", None), ("10999999 ns", Some("the bound is above the soft deadline".to_owned()))]
    {
        let soft = format!("separation = \"100 ms\"\nwcet = \"1 ms\"\ndeadline = \"{deadline}\"");
        let found = with(&format!("{}low_priority = \"none\"\n", server("polling", "1 ms", &soft)));
        let task = &found.tasks[3];
        assert_eq!((task.response, &task.tests[0].note), (ms(11), &said), "{deadline}");
    }
}

/// Measured loads may hold the processor from the very start, before any work of others is there.
#[test]
fn a_measured_load_may_come_first_where_there_is_no_work() {
    let load = horolog_analysis::hyperbolic_load::HyperbolicLoad { utilisation_ppb: 500_000_000, period: 10 };
    let above = Above { measured: vec![load], ..Above::default() };
    assert!(above.finish(0, &mut 1_000).unwrap() > 0);
    assert_eq!(Above::default().finish(0, &mut 1_000), Ok(0));
}

/// What the kernel serves stands above all and takes its 4/10 once: beside a share of 4/10 under EDF, 2/10 are left. A job of C in
/// 100 ms meets up to C + 0.4·0.6·10 = 0.2·100 ms.
#[test]
fn the_kernel_s_server_counts_once_beside_one_with_deadlines() {
    let verdict = |wcet: u64| {
        let text = format!(
            "[system]\nname = \"x\"\npolicy = \"edf\"\n[[task]]\nname = \"hard\"\nseparation = \"100 ms\"\nwcet = \"{wcet} ns\"\n\
             [[task]]\nname = \"of kernel\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\n\
             [[task]]\nname = \"soft\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\n\
             [[server]]\nname = \"k\"\nkind = \"constant-bandwidth\"\nenforcement = \"kernel\"\nenforcement_latency = \"0 ns\"\n\
             tasks = [\"of kernel\"]\nbudget = \"4 ms\"\nperiod = \"10 ms\"\n\
             [[server]]\nname = \"s\"\nkind = \"constant-bandwidth\"\ntasks = [\"soft\"]\nbudget = \"4 ms\"\nperiod = \"10 ms\"\n"
        );
        analyze(&read(&text), &Options::default()).unwrap().tasks[0].verdict
    };
    assert_eq!(verdict(17_600_000), Verdict::Meets);
    assert_eq!(verdict(17_600_001), Verdict::Unknown);
}

/// A budget of 2^62 ns is the longest that the kernel's server may have.
#[test]
fn the_kernel_s_server_has_the_limit_of_all_times() {
    let is_known = |budget: u64| {
        let text = format!(
            "[system]\nname = \"x\"\n[[task]]\nname = \"soft\"\nseparation = \"1 s\"\nwcet = \"1 ms\"\n\
             [[server]]\nname = \"k\"\nkind = \"constant-bandwidth\"\nenforcement = \"kernel\"\nenforcement_latency = \"0 ns\"\n\
             tasks = [\"soft\"]\nbudget = \"{budget} ns\"\nperiod = \"{budget} ns\"\n"
        );
        !analyze(&read(&text), &Options::default()).unwrap().processors.is_empty()
    };
    assert!(is_known(1 << 62) && !is_known((1 << 62) + 1));
}

/// A job of 1 ns that cannot be preempted is enough: while it executes, capacity is lent to it although work waits.
#[test]
fn priority_exchange_promises_nothing_beside_a_job_that_blocks() {
    let guaranteed = |preemption: &str| {
        let low = format!(
            "[[task]]\nname = \"low\"\nseparation = \"100 ms\"\nwcet = \"1 ns\"\npriority = 1\npreemption = \"{preemption}\"\n"
        );
        with(&format!("{}{low}", server("priority-exchange", "1 ms", BUSY))).servers[0].guaranteed
    };
    assert_eq!(guaranteed("preemptive"), Some(true));
    assert_eq!(guaranteed("non-preemptive"), Some(false));
}

/// A job of 3 ms due within 7.000031 ms asks for 3000000/7000031 of the processor: too fine a fraction to be used as it is, and a
/// period so long that a millionth of it is a microsecond. What is said to be the largest budget passes, and a nanosecond more does
/// not.
#[test]
fn the_largest_share_is_the_edge_where_its_fraction_is_fine() {
    let text = "[system]\nname = \"fine\"\npolicy = \"edf\"\n\
                [[task]]\nname = \"a\"\nseparation = \"12 ms\"\nwcet = \"3 ms\"\ndeadline = \"7000031 ns\"\n\
                [[task]]\nname = \"soft\"\nseparation = \"1 s\"\nwcet = \"1 ms\"\n\
                [[server]]\nname = \"s\"\nkind = \"constant-bandwidth\"\ntasks = [\"soft\"]\nbudget = \"1 ms\"\nperiod = \"1 s\"\n";
    let system = read(text);
    let largest = analyze(&system, &Options::default()).unwrap().servers.remove(0).largest_budget.unwrap();
    let all_meet = |budget: u64| {
        let system = resized(&system, 0, Span::from_ns(budget)).unwrap();
        analyze(&system, &Options::default()).unwrap().schedulable == Schedulable::Yes
    };
    assert!(all_meet(largest.budget.as_ns()) && !all_meet(largest.budget.as_ns() + 1), "{largest:?}");
    assert_eq!(largest.exact_ns, None, "{largest:?}");
    // 1 − 3000000/7000031 of a second, less what a millionth is rounded down by.
    assert!((571_429_000..=571_430_469).contains(&largest.budget.as_ns()), "{largest:?}");
}

/// Priority exchange lends what it does not need, but it never goes on without: five capacities of 1 ms, a period apart, after at most
/// 9 ms without any. In the background the job would be done after 27 ms.
#[test]
fn priority_exchange_serves_by_its_capacity_alone() {
    let found = with(&server("priority-exchange", "1 ms", "separation = \"100 ms\"\nwcet = \"5 ms\""));
    let soft = &found.tasks[3];
    assert_eq!((soft.response, soft.test), (ms(9 + 4 * 10 + 1), "server-priority-exchange"));
    assert_eq!(soft.tests.len(), 1);
}

/// Beside constant bandwidth servers the set is tested as a whole: there are no terms of a single task.
#[test]
fn a_task_beside_a_constant_bandwidth_server_has_no_terms() {
    let text = "[system]\nname = \"x\"\npolicy = \"edf\"\n[[task]]\nname = \"hard\"\nseparation = \"10 ms\"\nwcet = \"2 ms\"\n\
                [[task]]\nname = \"soft\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\n\
                [[server]]\nname = \"s\"\nkind = \"constant-bandwidth\"\ntasks = [\"soft\"]\nbudget = \"3 ms\"\nperiod = \"10 ms\"\n";
    let system = read(text);
    let explained = explain(&system, system.task_ids().next().unwrap(), &Options::default()).unwrap();
    assert_eq!((explained.test, explained.response), ("edf-servers", None));
    assert!(explained.terms.is_empty() && explained.reason.is_some());
}

/// Where nothing can be overdrawn a job waits for what is left of the period behind the capacity, down to a capacity of nothing.
#[test]
fn the_wait_for_a_reservation_is_the_rest_of_its_period() {
    for capacity in 0..=10 {
        assert_eq!(Service::HardReservation { overdrawn: 0 }.longest_wait(capacity, 10), 10 - capacity);
    }
    // Two budgets of 3 make up for 7 overdrawn, and one comes after them.
    assert_eq!(Service::HardReservation { overdrawn: 7 }.longest_wait(3, 10), 3 * 7);
}
