//! Rules of servers and slack policies, each by a small system that was once simulated wrongly.

use horolog_model::System;
use horolog_sim::{DelayChoice, Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{NullSink, Outcome};

fn system(text: &str) -> System {
    match horolog_model::file::read(&format!("[system]\nname = \"coinciding\"\n{text}"), "test", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}"),
    }
}

/// Every job as late as its jitter allows.
fn run(text: &str, until: u64) -> Outcome {
    let horizon = Horizon::Time(Span::from_ns(until));
    let options = SimOptions { horizon, jitter: DelayChoice::Max, ..SimOptions::default() };
    match simulate(&system(text), &options, &mut NullSink) {
        Ok(outcome) => outcome,
        Err(error) => panic!("{error}"),
    }
}

fn worst(outcome: &Outcome, task: &str) -> u64 {
    let task = outcome.tasks.iter().find(|other| other.name == task).expect("the task exists");
    task.response_ns_max.expect("it has finished").as_ns()
}

/// A polling server above a hard task, and the soft arrivals that it serves.
fn polling(arrivals: &str) -> String {
    format!(
        "[[task]]\nname = \"hard\"\nperiod = \"20 ns\"\ndeadline = \"3 ns\"\nwcet = \"2 ns\"\npriority = 1\noffset = \
         \"11 ns\"\n[[task]]\nname = \"soft\"\narrivals = [{arrivals}]\nwcet = \"2 ns\"\n[[server]]\nname = \"s\"\nkind = \
         \"polling\"\nbudget = \"1 ns\"\nperiod = \"4 ns\"\npriority = 2\ntasks = [\"soft\"]\n"
    )
}

#[test]
fn a_polling_server_whose_work_ends_at_its_poll_gets_no_budget() {
    // The job of 2 ends in the background at 4, a poll. That of 11 must wait for the poll at 12.
    let outcome = run(&polling("\"2 ns\", \"11 ns\""), 60);
    assert_eq!(worst(&outcome, "hard"), 3);
    assert_eq!(outcome.tasks[0].missed, 0);
    // Polls with work: at 12 only. The job of 11 uses 1 at 12 and ends in the background.
    assert_eq!(
        (outcome.servers[0].consumed_ns.map_or(0, Span::as_ns), outcome.servers[0].replenishments),
        (1, 1)
    );
}

#[test]
fn a_poll_sees_what_arrives_at_its_instant_also_where_a_job_ends_there() {
    // At 4 one job ends and another arrives: the poll comes after the end and sees the arrival, once.
    let outcome = run(&polling("\"2 ns\", \"4 ns\""), 10);
    assert_eq!(
        (outcome.servers[0].consumed_ns.map_or(0, Span::as_ns), outcome.servers[0].replenishments),
        (1, 1)
    );
}

#[test]
fn slack_stealing_knows_that_the_first_job_may_have_arrived_and_not_be_ready_yet() {
    // It arrived at 0 and is ready at 3: nothing may be taken of its 5 - 3 - 2.
    let outcome = run(
        "[[task]]\nname = \"control\"\nperiod = \"10 ns\"\noffset = \"0 ns\"\ndeadline = \"5 ns\"\njitter = \"3 ns\"\nwcet = \"2 \
         ns\"\npriority = 1\n[[task]]\nname = \"soft\"\narrivals = [\"2 ns\"]\nwcet = \"5 ns\"\n[[server]]\nname = \
         \"s\"\nkind = \"slack-stealing\"\ntasks = [\"soft\"]\n",
        40,
    );
    assert_eq!(worst(&outcome, "control"), 5);
    // From 2 to 3 in the background, then behind the control job.
    assert_eq!(worst(&outcome, "soft"), 7);
}

#[test]
fn a_release_tells_the_slack_of_its_own_task_at_once() {
    // Without an offset in the policy's sight the slack of 3 ends at 3. The job comes at 4: until 7 it can wait again.
    let outcome = run(
        "[[task]]\nname = \"control\"\nperiod = \"10 ns\"\noffset = \"4 ns\"\ndeadline = \"5 ns\"\nwcet = \"2 \
         ns\"\npriority = 1\n[[task]]\nname = \"soft\"\narrivals = [\"0 ns\"]\nwcet = \"7 ns\"\n[[server]]\nname = \
         \"s\"\nkind = \"slack-stealing\"\ntasks = [\"soft\"]\n",
        40,
    );
    assert_eq!(worst(&outcome, "soft"), 7);
    assert_eq!(outcome.tasks[1].preemptions, 0);
    assert_eq!(worst(&outcome, "control"), 5);
}

/// Two servers of one period with backlog, the less important one first in the file or last, switches of `switch`.
fn two_servers(kind: &str, switch: u64, is_first: bool) -> String {
    let server = |name, priority| {
        format!(
            "[[server]]\nname = \"{name}\"\nkind = \"{kind}\"\nbudget = \"2 ms\"\nperiod = \"10 ms\"\npriority = \
             {priority}\nlow_priority = \"none\"\ntasks = [\"{name}'s\"]\n"
        )
    };
    let (less, more) = (server("less", 5), server("more", 6));
    let servers = if is_first { less + &more } else { more + &less };
    format!(
        "[platform]\ncontext_switch = \"{switch} us\"\n[[task]]\nname = \"less's\"\narrivals = [\"0 ns\"]\nwcet = \"5 ms\"\n\
         [[task]]\nname = \"more's\"\narrivals = [\"0 ns\"]\nwcet = \"5 ms\"\n{servers}"
    )
}

#[test]
fn the_order_of_servers_in_the_file_changes_nothing() {
    for kind in ["deferrable", "polling", "sporadic"] {
        for switch in [0, 10] {
            for is_first in [true, false] {
                let outcome = run(&two_servers(kind, switch, is_first), 60_000_000);
                let preemptions: Vec<u64> = outcome.tasks.iter().map(|task| task.preemptions).collect();
                assert_eq!(preemptions, [2, 2], "{kind}, {switch}, {is_first}");
                let more = 21_000_000 + switch * 1_000;
                assert_eq!(worst(&outcome, "more's"), more, "{kind}, {switch}, {is_first}");
            }
        }
    }
}

#[test]
fn a_budget_ends_in_time_behind_an_interrupt_between_two_jobs_of_a_task() {
    // The second job is released where the first one ends, and the timer interrupt comes between them.
    let outcome = run(
        "[platform]\ntimer_interrupt = \"1 ns\"\n[[task]]\nname = \"soft\"\narrivals = [\"60 ns\", \"65 ns\"]\nwcet = \"4 \
         ns\"\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\nkind = \"sporadic\"\nbudget = \"2 ns\"\nperiod = \"4 \
         ns\"\npriority = 5\nlow_priority = 1\nmax_replenishments = 3\n",
        200,
    );
    assert_eq!(outcome.servers[0].consumed_ns.map_or(0, Span::as_ns), 6);
}
