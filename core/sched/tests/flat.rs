//! The flat machine: who runs, who waits, who is told to yield.

mod support;

use horolog_model::TaskId;
use horolog_sched::{Event, EventKind, Machine, ProcessorIndex, Rejected};
use horolog_time::Instant;
use support::{Driver, system};

const PREEMPTIVE: &str = "period = \"100 ms\"; wcet = \"2 ms\"";

fn fixed_priority(tasks: &[(&str, i64, &str)]) -> Driver {
    let lines: Vec<String> = tasks
        .iter()
        .map(|(name, priority, rest)| format!("name = \"{name}\"; priority = {priority}; {rest}"))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    Driver::new(Machine::new(&system("", &lines)).expect("priorities are given"))
}

fn edf(tasks: &[(&str, &str)]) -> Driver {
    let lines: Vec<String> = tasks.iter().map(|(name, rest)| format!("name = \"{name}\"; {rest}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    Driver::new(Machine::new(&system("policy = \"edf\"", &lines)).expect("a valid system"))
}

const DEFERRED: &str =
    "period = \"100 ms\"; preemption = \"deferred\"; segments = [\"3 ms\", \"4 ms\", \"2 ms\"]";
const BRANCHING: &str = "period = \"100 ms\"; preemption = \"deferred\"; segments = [{ name = \"scan\", wcet = \"3 ms\", \
    next = [\"full\", \"crop\"] }, { name = \"full\", wcet = \"6 ms\", next = [\"merge\"] }, { name = \"crop\", wcet = \
    \"2 ms\", next = [\"merge\"] }, { name = \"merge\", wcet = \"4 ms\" }]";
const NON_PREEMPTIVE: &str = "period = \"100 ms\"; wcet = \"2 ms\"; preemption = \"non-preemptive\"";

#[test]
fn equals_are_first_in_first_out_and_never_preempt() {
    let mut m = fixed_priority(&[("a", 5, PREEMPTIVE), ("b", 5, PREEMPTIVE), ("high", 9, PREEMPTIVE)]);
    assert_eq!(m.release(1).running(), Some(1));
    assert_eq!(m.at(1).release(0).running(), Some(1), "an equal does not preempt");
    assert!(!m.decide().should_yield);
    assert_eq!(m.at(2).release(2).running(), Some(2));
    assert_eq!(m.at(3).release(1).running(), Some(2), "b's second job goes behind a's first");
    assert_eq!(m.at(4).complete(2).running(), Some(1), "the preempted job kept its place at the head");
    assert_eq!(m.at(5).complete(1).running(), Some(0), "then a, which was released before b's second job");
    assert_eq!(m.at(6).complete(0).running(), Some(1));
    assert_eq!(m.at(7).complete(1).running(), None);
}

#[test]
fn a_sleeper_wakes_at_the_end_of_its_level() {
    let mut m = fixed_priority(&[("a", 5, PREEMPTIVE), ("b", 5, PREEMPTIVE)]);
    assert_eq!(m.release(0).release(1).running(), Some(0));
    m.at(1).on(EventKind::Block { task: TaskId(0) }).expect("a runs");
    assert_eq!(m.running(), Some(1));
    assert_eq!(m.on(EventKind::Wake { task: TaskId(1) }), Err(Rejected::NotBlocked));
    m.at(2).on(EventKind::Wake { task: TaskId(0) }).expect("a sleeps");
    assert_eq!(m.running(), Some(1));
    // Releases of a sleeping task pile up without making it ready.
    m.at(3).on(EventKind::Block { task: TaskId(1) }).expect("b runs");
    assert_eq!(m.running(), Some(0));
    assert_eq!(m.at(4).release(1).running(), Some(0));
    assert_eq!(m.at(5).complete(0).running(), None);
    assert_eq!(m.machine.jobs(TaskId(1)), 2);
}

#[test]
fn the_flag_is_set_by_strictly_more_important_waiters_only() {
    let mut m = fixed_priority(&[("high", 9, PREEMPTIVE), ("cam", 5, DEFERRED), ("equal", 5, PREEMPTIVE)]);
    let start = m.release(1).decide();
    assert_eq!((start.running, start.should_yield), (Some(TaskId(1)), false));
    let with_equal = m.at(1).release(2).decide();
    assert_eq!(with_equal, start, "an equal neither preempts nor makes it yield");
    let flagged = m.at(2).release(0).decide();
    assert_eq!((flagged.running, flagged.should_yield), (Some(TaskId(1)), true));
    assert_eq!(flagged.generation, start.generation + 1);
    let after = m.at(3).point(1, 1).decide();
    assert_eq!((after.running, after.should_yield), (Some(TaskId(0)), false));
    assert_eq!(after.generation, flagged.generation + 1);
    assert_eq!(m.at(4).complete(0).running(), Some(1), "back before its equal");
    assert_eq!(m.machine.segment(TaskId(1)), 1);
    assert_eq!(m.at(8).point(1, 2).running(), Some(1), "nobody more important: on with the next segment");
    assert_eq!(m.at(9).complete(1).running(), Some(2));
}

#[test]
fn a_point_that_only_asks_changes_nothing() {
    let mut m = fixed_priority(&[("high", 9, PREEMPTIVE), ("cam", 5, DEFERRED)]);
    m.release(1);
    assert_eq!(m.running(), Some(1));
    m.at(1).release(0);
    m.on(EventKind::PreemptionPoint { task: TaskId(1), willing: false, next: 77 }).expect("it only asks");
    let asked = m.decide();
    assert!(asked.should_yield);
    assert_eq!((asked.running, m.machine.segment(TaskId(1))), (Some(TaskId(1)), 0));
}

#[test]
fn branches_are_announced_and_checked() {
    let mut m = fixed_priority(&[("tracker", 5, BRANCHING), ("np", 4, NON_PREEMPTIVE), ("p", 3, PREEMPTIVE)]);
    let point = |m: &mut Driver, task, next| {
        m.on(EventKind::PreemptionPoint { task: TaskId(task), willing: true, next })
    };
    assert_eq!(m.release(0).running(), Some(0));
    for illegal in [0, 3, 4, 99] {
        assert_eq!(point(&mut m, 0, illegal), Err(Rejected::IllegalSegment), "{illegal}");
    }
    assert_eq!(m.machine.segment(TaskId(0)), 0, "a rejected event changes nothing");
    assert_eq!(point(&mut m, 0, 2), Ok(()));
    assert_eq!(m.running(), Some(0));
    assert_eq!(point(&mut m, 0, 1), Err(Rejected::IllegalSegment));
    assert_eq!(point(&mut m, 0, 3), Ok(()));
    assert_eq!(point(&mut m, 0, 4), Err(Rejected::IllegalSegment), "nothing follows the last segment");
    assert_eq!(m.at(1).complete(0).release(1).running(), Some(1));
    assert_eq!(point(&mut m, 1, 0), Err(Rejected::IllegalSegment), "a task without segments has no points");
    assert_eq!(point(&mut m, 0, 1), Err(Rejected::NotRunning));
    assert_eq!(point(&mut m, 9, 1), Err(Rejected::Unknown));
}

#[test]
fn preemption_modes_mix() {
    let tasks =
        [("high", 9, PREEMPTIVE), ("np", 6, NON_PREEMPTIVE), ("cam", 5, DEFERRED), ("low", 1, PREEMPTIVE)];
    let mut m = fixed_priority(&tasks);
    assert_eq!(m.release(3).running(), Some(3));
    assert_eq!(m.at(1).release(2).running(), Some(2), "the preemptive one is displaced at once");
    assert_eq!(m.at(2).release(1).running(), Some(2));
    assert_eq!(m.at(3).point(2, 1).running(), Some(1));
    assert_eq!(m.at(4).release(0).running(), Some(1));
    assert!(m.decide().should_yield);
    assert_eq!(m.at(6).complete(1).running(), Some(0));
    assert_eq!(m.at(7).complete(0).running(), Some(2));
}

#[test]
fn a_release_at_the_instant_of_a_point_is_served_there() {
    let mut m = fixed_priority(&[("high", 9, PREEMPTIVE), ("cam", 5, DEFERRED)]);
    assert_eq!(m.release(1).running(), Some(1));
    // Complete comes before release, choose after both.
    m.at(3).point(1, 1).release(0);
    assert_eq!(m.running(), Some(0));
}

#[test]
fn a_job_changes_its_own_preemptibility() {
    let mut m = fixed_priority(&[("high", 9, PREEMPTIVE), ("low", 1, PREEMPTIVE)]);
    let set = |m: &mut Driver, task, preemptible| {
        m.on(EventKind::SetPreemptible { task: TaskId(task), preemptible })
    };
    assert_eq!(m.release(1).running(), Some(1));
    assert_eq!(set(&mut m, 1, false), Ok(()));
    assert_eq!(set(&mut m, 0, false), Err(Rejected::NotRunning));
    assert_eq!(m.at(1).release(0).running(), Some(1));
    assert!(m.decide().should_yield);
    assert_eq!(set(&mut m, 1, true), Ok(()));
    assert_eq!(m.running(), Some(0));
    assert!(!m.decide().should_yield);
    // The setting stays with the task.
    assert_eq!(m.at(2).complete(0).running(), Some(1));
    set(&mut m, 1, false).expect("it runs");
    assert_eq!(m.at(3).complete(1).release(1).running(), Some(1));
    assert_eq!(m.at(4).release(0).running(), Some(1));
    assert!(!m.machine.is_preemptible(TaskId(1)));
}

#[test]
fn edf_ties_run_first_then_earlier_release_then_lower_task() {
    let mut m = edf(&[("a", PREEMPTIVE), ("b", PREEMPTIVE), ("c", PREEMPTIVE), ("np", NON_PREEMPTIVE)]);
    assert_eq!(m.release_until(2, 100).running(), Some(2));
    assert_eq!(m.at(1).release_until(1, 100).running(), Some(2), "an equal deadline does not preempt");
    assert_eq!(m.at(1).release_until(0, 100).running(), Some(2));
    assert_eq!(m.at(2).release_until(3, 99).running(), Some(3), "an earlier one does");
    let flagged = m.at(3).release_until(0, 50).decide();
    assert_eq!(flagged.running, Some(TaskId(3)));
    assert!(
        !flagged.should_yield,
        "a's oldest job, with deadline 100, stands before its job with deadline 50"
    );
    assert_eq!(m.at(4).complete(3).running(), Some(2), "released at 0, before a and b at 1");
    assert_eq!(m.at(5).complete(2).running(), Some(0), "released with b, the lower task id");
    assert_eq!(m.at(6).complete(0).running(), Some(0), "now deadline 50");
    assert_eq!(m.at(7).complete(0).running(), Some(1));
}

#[test]
fn a_non_preemptive_edf_job_is_told_of_earlier_deadlines() {
    let mut m = edf(&[("a", PREEMPTIVE), ("np", NON_PREEMPTIVE)]);
    assert_eq!(m.release_until(1, 100).running(), Some(1));
    assert!(!m.at(1).release_until(0, 100).decide().should_yield);
    assert_eq!(m.at(2).complete(1).running(), Some(0));
    assert_eq!(m.at(3).complete(0).release_until(1, 100).running(), Some(1));
    assert!(m.at(4).release_until(0, 99).decide().should_yield);
}

#[test]
fn impossible_times_are_rejected() {
    let mut m = fixed_priority(&[("a", 5, PREEMPTIVE)]);
    let release = EventKind::Release { task: TaskId(0), deadline: Instant::NEVER };
    let mut event = Event::at(Instant::from_ns(5), release);
    event.observed = Instant::from_ns(4);
    assert_eq!(m.machine.on(event), Err(Rejected::BadTime));
    event.observed = Instant::from_ns(9);
    assert_eq!(m.machine.on(event), Ok(()));
    assert_eq!(m.running(), Some(0));
    assert_eq!(m.on(EventKind::ModeChange { mode: 1 }), Err(Rejected::Unknown));
    assert_eq!(m.on(EventKind::Completion { task: TaskId(7) }), Err(Rejected::Unknown));
}

#[test]
fn more_than_a_word_of_tasks() {
    let tasks: Vec<(String, i64)> = (0..150).map(|i| (format!("t{i}"), (i * 37) % 150)).collect();
    let tasks: Vec<(&str, i64, &str)> = tasks.iter().map(|(n, p)| (n.as_str(), *p, PREEMPTIVE)).collect();
    let lines: Vec<(usize, i64)> = tasks.iter().enumerate().map(|(i, t)| (i, t.1)).collect();
    // Sets of many tasks overload no check: each has its own hundredth of a second.
    let mut m = fixed_priority(&tasks);
    for (task, _) in &lines {
        m.release(*task as u32);
    }
    let mut by_priority = lines.clone();
    by_priority.sort_by_key(|&(_, priority)| std::cmp::Reverse(priority));
    for (task, _) in by_priority {
        assert_eq!(m.running(), Some(task as u32));
        m.complete(task as u32);
    }
    assert_eq!(m.running(), None);
}

#[test]
fn as_many_processors_and_tasks_as_a_file_may_have() {
    let lines: Vec<String> = (0..4_000)
        .map(|i| format!("name = \"t{i}\"; cpu = {}; priority = {}; {PREEMPTIVE}", i * 2, i % 7))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let system = system("[platform]\ncpus = 8192", &lines);
    let mut machine = Machine::new(&system).expect("priorities are given");
    let last = ProcessorIndex(3_999 * 2);
    let release = EventKind::Release { task: TaskId(3_999), deadline: Instant::NEVER };
    machine.on(Event::at(Instant::ZERO, release)).expect("it is active");
    assert_eq!(machine.decide(last).running, Some(TaskId(3_999)));
    assert_eq!(machine.decide(ProcessorIndex(8_191)).running, None);
}
