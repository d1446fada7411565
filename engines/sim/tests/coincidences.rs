//! What happens at one instant: completions, timers and releases that coincide, each a system that once was answered wrongly.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{NullSink, Outcome};

fn system(text: &str) -> System {
    match horolog_model::file::read(&format!("[system]\nname = \"coinciding\"\n{text}"), "test", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}"),
    }
}

fn run(text: &str, until: u64) -> Outcome {
    let horizon = Horizon::Time(Span::from_ns(until));
    let options = SimOptions { horizon, ..SimOptions::default() };
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
    assert_eq!((outcome.servers[0].consumed_ns.as_ns(), outcome.servers[0].replenishments), (1, 1));
}

#[test]
fn a_poll_sees_what_arrives_at_its_instant_also_where_a_job_ends_there() {
    // At 4 one job ends and another arrives: the poll comes after the end and sees the arrival, once.
    let outcome = run(&polling("\"2 ns\", \"4 ns\""), 10);
    assert_eq!((outcome.servers[0].consumed_ns.as_ns(), outcome.servers[0].replenishments), (1, 1));
}
