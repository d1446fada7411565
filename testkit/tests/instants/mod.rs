//! What happens at one instant of a mode change, a window or a replenishment: schedules computed by hand from
//! `docs/decisions/0008-trees-clusters-modes.md`, which the simulator and the reference must both give.

use crate::comparison::{END, compare, line, text};
use horolog_model::System;
use horolog_testkit::reference::{What, simulate_modes};

/// Sections of a system file, in lines; `;` stands for a new line.
fn system(policy: &str, sections: &[&str]) -> System {
    let mut file = format!("[system]\nname = \"by hand\"\npolicy = \"{policy}\"\n");
    for section in sections {
        let (head, body) = section.split_once(": ").unwrap_or_else(|| panic!("{section}"));
        let head = if head == "platform" { "[platform]".to_owned() } else { format!("[[{head}]]") };
        file += &format!("{head}\n{}\n", body.replace("; ", "\n").replace('\'', "\""));
    }
    let read = horolog_model::file::read(&file, "by-hand.toml", &[]);
    read.unwrap_or_else(|errors| panic!("{errors}")).0
}

/// Who runs from when to when, with the job's number, for those that start before `end`.
fn expect(system: &System, end: u64, expected: &[(&str, usize, u64, u64)]) {
    let mut runs = Vec::new();
    let mut since = vec![0; system.tasks().len()];
    for event in simulate_modes(system, END).0.events {
        match event.what {
            What::Start | What::Resume => since[event.task] = event.at,
            What::Lock(_) | What::Unlock(_) | What::Wait(_) => {}
            _ => {
                runs.push((system.tasks()[event.task].name.as_str(), event.job, since[event.task], event.at))
            }
        }
    }
    runs.retain(|run| run.2 < end);
    runs.sort_by_key(|run| run.2);
    assert_eq!(runs, expected);
    if let Err(difference) = compare(system, 0, false) {
        let simulated: Vec<String> = difference.simulated.iter().map(|event| line(system, event)).collect();
        panic!("{}\n{}\nsimulated:\n{}", difference.what, text(system), simulated.join("\n"));
    }
}

#[test]
fn a_job_that_a_mode_suspends_stops_also_where_its_queue_goes_on() {
    let system = system(
        "fixed-priority",
        &[
            "task: name = 'long'; arrivals = ['0 ns']; wcet = '5 ns'",
            "task: name = 'short'; arrivals = ['3 ns']; wcet = '1 ns'",
            "scheduler: name = 'queue'; priority = 6; tasks = ['long', 'short']",
            "mode: name = 'less'; at = ['3 ns']; active = ['short']; left_over = 'suspend'",
        ],
    );
    expect(&system, 20, &[("long", 0, 0, 3), ("short", 0, 3, 4)]);
}

#[test]
fn of_two_changes_at_one_instant_the_second_leaves_suspended_who_is() {
    let system = system(
        "fixed-priority",
        &[
            "task: name = 'a'; arrivals = ['0 ns']; wcet = '4 ns'; priority = 5",
            "task: name = 'b'; arrivals = ['0 ns']; wcet = '1 ns'; priority = 3",
            "mode: name = 'one'; at = ['2 ns']; active = ['b']; left_over = 'suspend'",
            "mode: name = 'two'; at = ['2 ns']; active = ['b']; left_over = 'suspend'",
        ],
    );
    expect(&system, 20, &[("a", 0, 0, 2), ("b", 0, 2, 3)]);
}

#[test]
fn the_place_of_a_suspended_job_wins_no_tie() {
    let system = system(
        "fixed-priority",
        &[
            "task: name = 'b'; arrivals = ['2 ns']; wcet = '1 ns'; priority = 3",
            "task: name = 'a1'; arrivals = ['0 ns']; wcet = '4 ns'; priority = 1",
            "task: name = 'a2'; arrivals = ['2 ns']; wcet = '1 ns'; priority = 2",
            "scheduler: name = 'A'; order = 'fixed-priority'; priority = 3; tasks = ['a1', 'a2']",
            "mode: name = 'less'; at = ['2 ns']; active = ['b', 'a2']; left_over = 'suspend'",
        ],
    );
    expect(&system, 20, &[("a1", 0, 0, 2), ("b", 0, 2, 3), ("a2", 0, 3, 4)]);
}

#[test]
fn jobs_that_a_mode_wakes_come_behind_a_scheduler_that_it_gives_budget() {
    let system = system(
        "fixed-priority",
        &[
            "task: name = 'h'; arrivals = ['0 ns']; wcet = '2 ns'; priority = 5",
            "task: name = 'soft'; arrivals = ['1 ns']; wcet = '4 ns'",
            "scheduler: name = 'S'; kind = 'deferrable'; budget = '1 ns'; period = '20 ns'; priority = 5; low_priority = 'none'; tasks = ['soft']",
            "mode: name = 'less'; at = ['1 ns']; active = ['soft']; left_over = 'suspend'",
            "mode: name = 'more'; at = ['3 ns']",
            "mode.server: name = 'S'; budget = '3 ns'; period = '20 ns'",
        ],
    );
    expect(&system, 20, &[("h", 0, 0, 1), ("soft", 0, 1, 2), ("soft", 0, 3, 5), ("h", 0, 5, 6)]);
}

#[test]
fn all_jobs_that_a_mode_wakes_come_behind_their_equals() {
    let system = system(
        "edf",
        &[
            "task: name = 'a'; arrivals = ['0 ns', '2 ns']; deadline = '10 ns'; wcet = '4 ns'",
            "task: name = 'b'; arrivals = ['4 ns']; deadline = '8 ns'; wcet = '2 ns'",
            "mode: name = 'less'; at = ['3 ns']; active = ['b']; left_over = 'suspend'",
            "mode: name = 'again'; at = ['5 ns']",
        ],
    );
    let runs = [("a", 0, 0, 3), ("b", 0, 4, 5), ("a", 0, 5, 6), ("b", 0, 6, 7), ("a", 1, 7, 11)];
    expect(&system, 20, &runs);
}

#[test]
fn a_change_leaves_no_gap_in_demand() {
    let system = system(
        "fixed-priority",
        &[
            "task: name = 'a'; arrivals = ['0 ns']; wcet = '5 ns'",
            "task: name = 'b'; arrivals = ['0 ns']; wcet = '2 ns'",
            "scheduler: name = 'S'; kind = 'polling'; budget = '5 ns'; period = '10 ns'; priority = 5; low_priority = 'none'; tasks = ['a', 'b']",
            "mode: name = 'first'; at = ['1 ns']; active = ['a']; left_over = 'suspend'",
            "mode: name = 'second'; at = ['3 ns']; active = ['b']; left_over = 'suspend'",
        ],
    );
    expect(&system, 10, &[("a", 0, 0, 3), ("b", 0, 3, 5)]);
}

#[test]
fn replenishments_come_in_the_order_of_their_times_where_a_mode_shortens_the_period() {
    let system = system(
        "fixed-priority",
        &[
            "task: name = 'soft'; arrivals = ['0 ns', '3 ns', '7 ns']; wcet = '1 ns'",
            "scheduler: name = 'S'; kind = 'sporadic'; budget = '2 ns'; period = '12 ns'; priority = 5; low_priority = 'none'; tasks = ['soft']",
            "mode: name = 'short'; at = ['2 ns']",
            "mode.server: name = 'S'; budget = '2 ns'; period = '4 ns'",
        ],
    );
    expect(&system, 40, &[("soft", 0, 0, 1), ("soft", 1, 3, 4), ("soft", 2, 7, 8)]);
}

#[test]
fn what_is_overdrawn_of_a_replenishment_to_come_may_use_up_the_new_budget() {
    let system = system(
        "fixed-priority",
        &[
            "task: name = 'a'; arrivals = ['0 ns', '1 ns']; deadline = '90 ns'; wcet = '4 ns'; priority = 1; preemption = 'non-preemptive'",
            "scheduler: name = 'S'; kind = 'sporadic'; order = 'fixed-priority'; budget = '3 ns'; period = '6 ns'; priority = 5; low_priority = 'none'; tasks = ['a']",
            "mode: name = 'less'; at = ['5 ns']",
            "mode.server: name = 'S'; budget = '1 ns'; period = '8 ns'",
        ],
    );
    expect(&system, 40, &[("a", 0, 0, 4), ("a", 1, 14, 18)]);
}

#[test]
fn a_job_that_a_mode_takes_out_and_another_one_wakes_keeps_its_processor() {
    let task = |name: &str, arrivals: &str, wcet: u64, priority: u64| {
        format!("task: name = '{name}'; arrivals = [{arrivals}]; wcet = '{wcet} ns'; priority = {priority}")
    };
    let system = system(
        "fixed-priority",
        &[
            "platform: cpus = [0, 1]",
            "scheduler: name = 'pair'; cpus = [0, 1]; order = 'fixed-priority'; tasks = ['d', 'c', 'x', 'a']",
            &task("d", "'0 ns'", 1, 5),
            &task("c", "'0 ns', '4 ns'", 1, 3),
            &task("x", "'2 ns'", 2, 5),
            &task("a", "'2 ns'", 6, 1),
            "mode: name = 'one'; at = ['4 ns']; active = ['c']; left_over = 'suspend'",
            "mode: name = 'two'; at = ['4 ns']",
        ],
    );
    // `c` had processor 1 last, where `a` is.
    let runs = [("d", 0, 0, 1), ("c", 0, 0, 1), ("x", 0, 2, 4), ("a", 0, 2, 8), ("c", 1, 4, 5)];
    expect(&system, 20, &runs);
}

/// A scheduler over a time table of one task.
fn table(name: &str, above: &str, cycle: u64, (from, length): (u64, u64), task: &str) -> String {
    format!(
        "scheduler: name = '{name}'; {above}; order = 'table'; cycle = '{cycle} ns'; windows = [{{ child = '{task}', from = '{from} ns', length = '{length} ns' }}]; tasks = ['{task}']"
    )
}

#[test]
fn the_budget_of_a_poll_is_for_whoever_comes_at_its_instant() {
    // The job of `a` that comes back at 4 finds its window, which ends; `b` comes after it. A debt of 1 is paid once.
    let system = system(
        "fixed-priority",
        &[
            "task: name = 'a'; arrivals = ['0 ns', '0 ns']; deadline = '90 ns'; wcet = '3 ns'; preemption = 'non-preemptive'",
            "task: name = 'b'; arrivals = ['4 ns']; deadline = '90 ns'; wcet = '2 ns'",
            "scheduler: name = 'S'; kind = 'polling'; order = 'table'; budget = '2 ns'; period = '4 ns'; priority = 5; low_priority = 'none'; cycle = '8 ns'; windows = [{ child = 'a', from = '0 ns', length = '4 ns' }, { child = 'b', from = '4 ns', length = '4 ns' }]; tasks = ['a', 'b']",
            "mode: name = 'less'; at = ['3 ns']; active = ['b']; left_over = 'suspend'",
            "mode: name = 'again'; at = ['4 ns']",
        ],
    );
    expect(&system, 8, &[("a", 0, 0, 3), ("b", 0, 4, 5)]);
}

#[test]
fn windows_of_two_tables_that_meet_leave_no_gap_in_demand() {
    let (x, y) = (
        table("X", "parent = 'S'; priority = 2", 10, (0, 2), "x"),
        table("Y", "parent = 'S'; priority = 2", 10, (2, 2), "y"),
    );
    for (first, second) in [(&x, &y), (&y, &x)] {
        let system = system(
            "fixed-priority",
            &[
                "task: name = 'x'; arrivals = ['0 ns']; deadline = '90 ns'; wcet = '3 ns'",
                "task: name = 'y'; arrivals = ['0 ns']; deadline = '90 ns'; wcet = '3 ns'",
                "scheduler: name = 'S'; kind = 'polling'; order = 'fixed-priority'; budget = '3 ns'; period = '10 ns'; priority = 5; low_priority = 'none'",
                first,
                second,
            ],
        );
        expect(&system, 10, &[("x", 0, 0, 2), ("y", 0, 2, 3)]);
    }
}

#[test]
fn of_equals_whose_windows_begin_together_the_lower_task_goes_first() {
    let w = table("W", "priority = 3", 12, (4, 4), "w");
    let x = table("X", "priority = 3", 8, (4, 4), "x");
    for (first, second) in [(&w, &x), (&x, &w)] {
        let system = system(
            "fixed-priority",
            &[
                "task: name = 'w'; arrivals = ['1 ns']; deadline = '90 ns'; wcet = '1 ns'",
                "task: name = 'x'; arrivals = ['0 ns']; deadline = '90 ns'; wcet = '1 ns'",
                first,
                second,
            ],
        );
        expect(&system, 20, &[("w", 0, 4, 5), ("x", 0, 5, 6)]);
    }
}

#[test]
fn a_window_finds_the_budget_of_its_instant() {
    let polled = table(
        "P",
        "kind = 'polling'; budget = '1 ns'; period = '5 ns'; priority = 3; low_priority = 'background'",
        10,
        (5, 2),
        "p",
    );
    let plain = table("Q", "priority = 3", 10, (5, 2), "q");
    let task =
        |name: &str| format!("task: name = '{name}'; arrivals = ['1 ns']; deadline = '90 ns'; wcet = '1 ns'");
    let (p, q) = (task("p"), task("q"));
    let lower = system("fixed-priority", &[&p, &q, &plain, &polled]);
    expect(&lower, 20, &[("p", 0, 5, 6), ("q", 0, 6, 7)]);
    let higher = system("fixed-priority", &[&q, &p, &plain, &polled]);
    expect(&higher, 20, &[("q", 0, 5, 6), ("p", 0, 6, 7)]);
}

#[test]
fn a_job_behind_another_one_of_its_task_lends_no_deadline() {
    let system = system(
        "edf",
        &[
            "task: name = 'x'; arrivals = ['0 ns', '2 ns']; deadline = '20 ns'; wcet = '3 ns'; priority = 1",
            "task: name = 'y'; arrivals = ['2 ns']; deadline = '8 ns'; wcet = '2 ns'",
            "scheduler: name = 'X'; order = 'fixed-priority'; tasks = ['x']",
            "mode: name = 'sooner'; at = ['2 ns']",
            "mode.task: name = 'x'; deadline = '5 ns'",
        ],
    );
    expect(&system, 20, &[("x", 0, 0, 2), ("y", 0, 2, 4), ("x", 0, 4, 5), ("x", 1, 5, 8)]);
}

#[test]
fn a_section_charges_no_budget_that_came_back_while_the_job_kept_the_processor() {
    for at_exhaustion in ["finish", "wait"] {
        let resource = format!("resource: name = 'Q'; at_exhaustion = '{at_exhaustion}'");
        let system = system(
            "fixed-priority",
            &[
                &resource,
                "task: name = 'x'; arrivals = ['0 ns', '6 ns']; wcet = '2 ns'; priority = 5",
                // It is chosen without budget, which comes back at 4 ns, as it locks.
                "task: name = 'c'; arrivals = ['2 ns']; wcet = '4 ns'; priority = 1; preemption = 'non-preemptive'",
                "task.section: resource = 'Q'; from = '2 ns'; length = '1 ns'",
                "task: name = 'd'; arrivals = ['6 ns']; wcet = '1 ns'; priority = 1",
                "scheduler: name = 'S'; order = 'fixed-priority'; kind = 'deferrable'; budget = '2 ns'; period = '4 ns'; priority = 2; low_priority = 'background'; tasks = ['c', 'x']",
            ],
        );
        expect(&system, 12, &[("x", 0, 0, 2), ("c", 0, 2, 6), ("x", 1, 6, 8), ("d", 0, 8, 9)]);
    }
}

#[test]
fn a_preemption_point_at_which_a_window_ends_within_a_section_is_no_choice() {
    let system = system(
        "fixed-priority",
        &[
            "resource: name = 'Q'; at_exhaustion = 'finish'",
            // It goes on at 3 ns without budget, which comes back at 4 ns; at 5 ns it keeps the processor to the end of its
            // section at 6 ns, and to that of its segment. So nothing is charged: `compare` holds the budgets against each other.
            "task: name = 'c'; arrivals = ['2 ns']; preemption = 'deferred'; segments = ['1 ns', '2 ns', '2 ns']",
            "task.section: resource = 'Q'; from = '2 ns'; length = '2 ns'",
            "scheduler: name = 'S'; order = 'table'; kind = 'polling'; budget = '2 ns'; period = '4 ns'; priority = 2; low_priority = 'background'; cycle = '16 ns'; windows = [{ child = 'c', from = '2 ns', length = '3 ns' }]; tasks = ['c']",
        ],
    );
    expect(&system, 12, &[("c", 0, 2, 7)]);
    let (schedule, _) = simulate_modes(&system, END);
    assert_eq!(schedule.used, [Vec::<u64>::new()]);
}
