//! Who stands where: equals that wake, servers that change their place, hard tasks that are promoted, soft ones that steal.

mod support;

use horolog_model::{Priority, ServerId, TaskId};
use horolog_sched::{
    EventKind, LentPriority, Level, Machine, MachineBuilder, NodePolicy, NodeSpec, Place, Rejected,
};
use horolog_time::{Instant, Span};
use support::{CPU, Driver, system};

fn machine(text: &str) -> Driver {
    let text = format!("[system]\nname = \"places\"\n{text}");
    let (system, _) = horolog_model::file::read(&text, "places.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let system = horolog_testkit::resolved(&system);
    Driver::new(Machine::new(&system).unwrap_or_else(|e| panic!("{e:?}")))
}

fn wall(driver: &mut Driver) -> Option<u64> {
    driver.decide().wall_timer.map(|timer| timer.at.as_ns())
}

fn fire(driver: &mut Driver, at: u64) {
    let timer = driver.decide().wall_timer.expect("a timer is wanted");
    assert_eq!(timer.at.as_ns(), at);
    driver.at(at);
    let kind = EventKind::Timer { entity: timer.entity, generation: timer.generation };
    driver.on(kind).expect("it is armed");
    assert_eq!(driver.on(kind), Err(Rejected::Stale), "and goes off once");
}

const TASK: &str = "period = \"100 ms\"; wcet = \"2 ms\"";

#[test]
fn a_job_that_wakes_goes_behind_equals_that_were_ready() {
    let lines = ["a", "b", "c"].map(|name| format!("name = \"{name}\"; priority = 5; {TASK}"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut driver = Driver::new(Machine::new(&system("", &lines)).expect("priorities are given"));
    driver.release(0);
    assert_eq!(driver.running(), Some(0));
    driver.at(1).release(1).release(2);
    let block = |task| EventKind::Block { task: TaskId(task) };
    let wake = |task| EventKind::Wake { task: TaskId(task) };
    driver.at(2).on(block(0)).expect("it runs");
    assert_eq!(driver.running(), Some(1));
    driver.at(3).on(wake(0)).expect("it is suspended");
    assert_eq!(driver.on(wake(0)), Err(Rejected::NotBlocked));
    assert_eq!(driver.at(4).complete(1).running(), Some(2));
    // A further wake-up goes behind the one before.
    driver.at(5).release(1);
    driver.on(block(2)).expect("it runs");
    assert_eq!(driver.running(), Some(0));
    driver.at(6).on(wake(2)).expect("it is suspended");
    assert_eq!(driver.at(7).complete(0).running(), Some(1));
    assert_eq!(driver.at(8).complete(1).running(), Some(2));
}

#[test]
fn under_edf_a_job_that_wakes_keeps_its_deadline_and_its_release() {
    let lines = ["a", "b"].map(|name| format!("name = \"{name}\"; {TASK}"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut driver = Driver::new(Machine::new(&system("policy = \"edf\"", &lines)).expect("it is EDF"));
    driver.release_until(1, 50);
    assert_eq!(driver.running(), Some(1));
    driver.at(1).on(EventKind::Block { task: TaskId(1) }).expect("it runs");
    driver.at(2).release_until(0, 50);
    driver.at(3).on(EventKind::Wake { task: TaskId(1) }).expect("it is suspended");
    // Equal deadlines: released earlier, whatever the ids.
    assert_eq!(driver.running(), Some(1));
}

/// In a flat system, and below a root that could refuse.
#[test]
fn under_edf_the_running_job_wins_a_tie_against_one_released_earlier() {
    let lines = ["a", "b"].map(|name| format!("name = \"{name}\"; {TASK}"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let system = system("policy = \"edf\"", &lines);
    let mut builder = MachineBuilder::new(&system);
    let spec = NodeSpec { policy: NodePolicy::Edf, ..NodeSpec::default() };
    let node = builder.node(builder.root_of(CPU), spec);
    builder.place(TaskId(0), node);
    builder.place(TaskId(1), node);
    for machine in [Machine::new(&system), builder.build()] {
        let mut driver = Driver::new(machine.expect("it is EDF"));
        driver.release_until(1, 50);
        assert_eq!(driver.running(), Some(1));
        driver.at(1).on(EventKind::Block { task: TaskId(1) }).expect("it runs");
        driver.at(2).release_until(0, 50);
        assert_eq!(driver.running(), Some(0));
        driver.at(3).on(EventKind::Wake { task: TaskId(1) }).expect("it is suspended");
        assert_eq!(driver.running(), Some(0));
    }
}

#[test]
fn a_job_begins_with_its_first_segment() {
    let line = "name = \"a\"; priority = 5; period = \"100 ms\"; preemption = \"deferred\"; segments = [\"1 ms\", \"1 ms\"]";
    let mut driver = Driver::new(Machine::new(&system("", &[line])).expect("priorities are given"));
    driver.release(0).release(0);
    assert_eq!(driver.running(), Some(0));
    driver.point(0, 1);
    assert_eq!(driver.machine.segment(TaskId(0)), 1);
    driver.complete(0);
    assert_eq!((driver.machine.segment(TaskId(0)), driver.running()), (0, Some(0)));
    driver.point(0, 1);
}

/// Hard (2, 10), (4, 20), (8, 40) by priority, then a soft task.
fn set_b(server: &str) -> Driver {
    let mut text = String::new();
    for (name, wcet, period, priority) in [("a", 2, 10, 3), ("b", 4, 20, 2), ("c", 8, 40, 1)] {
        text += &format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\npriority = {priority}\n"
        );
    }
    text += "[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\n";
    machine(&(text + server))
}

const DUAL: &str = "kind = \"dual-priority\"\n";
const STEALING: &str = "kind = \"slack-stealing\"\n";

fn release_all(driver: &mut Driver) {
    driver.release_until(0, 10).release_until(1, 20).release_until(2, 40);
}

#[test]
fn hard_jobs_are_promoted_at_their_deadlines_less_their_response_times() {
    let mut driver = set_b(DUAL);
    release_all(&mut driver);
    driver.release(3);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(3), Some(8)));
    assert!(driver.machine.stands_low(TaskId(0)));
    fire(&mut driver, 8);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(0), Some(14)));
    assert!(!driver.machine.stands_low(TaskId(0)) && driver.machine.stands_low(TaskId(1)));
    driver.at(10).complete(0).release_until(0, 20);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(3), Some(14)));
    fire(&mut driver, 14);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(1), Some(18)));
    driver.at(18).complete(1);
    fire(&mut driver, 18);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(0), Some(24)));
}

#[test]
fn an_arrival_in_the_future_is_one_now() {
    // A driver that gives a deadline too late would put the promotion off.
    let mut driver = set_b(DUAL);
    driver.at(1).release_until(0, 500);
    assert_eq!(wall(&mut driver), Some(1 + 8));
    // One that was late is promoted that much sooner after its release.
    let mut driver = set_b(DUAL);
    driver.at(3).release_until(0, 10);
    assert_eq!(wall(&mut driver), Some(8));
    let mut driver = set_b(DUAL);
    driver.at(8).release_until(0, 10);
    assert!(!driver.machine.stands_low(TaskId(0)), "its time has come");
    // And the slack of a job is not above that of one that arrives now.
    let mut driver = set_b(STEALING);
    driver.at(1).release_until(0, 500).release_until(1, 500).release_until(2, 500);
    driver.release(3);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(3), Some(1 + 8)));
}

#[test]
fn self_gain_moves_a_promotion_by_what_was_executed_below() {
    for (gain, expected) in [("none", 8), ("self", 9), ("propagated", 8)] {
        let mut driver = set_b(&format!("{DUAL}gain = \"{gain}\"\n"));
        release_all(&mut driver);
        assert_eq!(driver.running(), Some(0));
        driver.ran(0, 1);
        driver.release(3);
        assert_eq!((driver.running(), wall(&mut driver)), (Some(3), Some(expected)), "{gain}");
    }
}

#[test]
fn soft_jobs_steal_until_the_least_slack_is_gone() {
    let mut driver = set_b(STEALING);
    release_all(&mut driver);
    driver.release(3);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(3), Some(8)));
    driver.ran(3, 8);
    fire(&mut driver, 8);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(0), None));
    driver.ran(0, 2);
    driver.complete(0);
    // Slack of b and c: 12 - 8 and 16 - 8 at 10, with a released again.
    driver.release_until(0, 20);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(3), Some(14)));
    assert_eq!(driver.machine.tally(ServerId(0)).exhaustions, 1);
}

#[test]
fn a_server_that_gets_its_budget_back_goes_behind_its_equals() {
    let text = "[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[task]]\nname = \"hard\"\nperiod = \"100 \
                ns\"\nwcet = \"2 ns\"\npriority = 5\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\nkind = \"deferrable\"\nbudget = \"4 \
                ns\"\nperiod = \"10 ns\"\npriority = 5\n";
    let mut driver = machine(text);
    driver.release(0);
    driver.executed(4);
    assert_eq!(driver.running(), Some(0), "in the background");
    driver.at(6).release(1);
    assert_eq!(driver.running(), Some(1));
    driver.at(7).release(1);
    fire(&mut driver, 10);
    assert_eq!(driver.running(), Some(1), "it runs on");
    // Its next job was released at 7, before the server came back at 10.
    assert_eq!(driver.at(12).complete(1).running(), Some(1));
    assert_eq!(driver.at(13).complete(1).running(), Some(0));
    assert_eq!(driver.allowance(), Some(4));
}

#[test]
fn exchanged_budget_is_used_before_the_hard_tasks_of_its_level() {
    let task = |name: &str, priority: u32| {
        format!("[[task]]\nname = \"{name}\"\nperiod = \"100 ns\"\nwcet = \"9 ns\"\npriority = {priority}\n")
    };
    let text = task("high", 9)
        + &task("low", 5)
        + &task("lowest", 3)
        + "[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[server]]\nname = \"s\"\ntasks = \
           [\"soft\"]\nkind = \"priority-exchange\"\nbudget = \"4 ns\"\nperiod = \"20 ns\"\npriority = 7\n";
    let mut driver = machine(&text);
    let (high, low, lowest, soft) = (0, 1, 2, 3);
    driver.release(low);
    assert_eq!(driver.running(), Some(low));
    // Three of four move to the level of low; then high runs and moves nothing.
    driver.ran(low, 3);
    driver.release(high);
    assert_eq!(driver.running(), Some(high));
    driver.ran(high, 2);
    driver.release(soft).release(lowest);
    assert_eq!((driver.running(), driver.machine.budget(ServerId(0))), (Some(high), Some(Span::from_ns(1))));
    driver.complete(high);
    assert_eq!(driver.running(), Some(soft), "its own budget is above low");
    driver.executed(1);
    assert_eq!(driver.running(), Some(soft), "three more stand just above low");
    assert_eq!(driver.allowance(), Some(3));
    driver.executed(3);
    assert_eq!(driver.running(), Some(low), "without budget it stands below all");
    assert_eq!(driver.machine.tally(ServerId(0)).exhaustions, 1);
    driver.ran(low, 6);
    driver.complete(low);
    assert_eq!(driver.running(), Some(lowest));
    fire(&mut driver, 20);
    assert_eq!(driver.running(), Some(soft));
    assert_eq!(driver.allowance(), Some(4));
}

#[test]
fn budget_is_lost_while_nobody_runs_and_kept_while_soft_work_waits() {
    let text = "[[task]]\nname = \"hard\"\nperiod = \"100 ns\"\nwcet = \"9 ns\"\npriority = 5\npreemption = \"non-preemptive\"\n\
                [[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\nkind = \
                \"priority-exchange\"\nbudget = \"4 ns\"\nperiod = \"20 ns\"\npriority = 7\n";
    let mut driver = machine(text);
    assert_eq!(driver.running(), None);
    driver.at(1).release(0);
    assert_eq!(driver.running(), Some(0));
    driver.ran(0, 1);
    driver.release(1);
    let budget = |driver: &Driver| driver.machine.budget(ServerId(0)).map(Span::as_ns);
    // One was lost, one lent, two are its own; nothing changes while the hard job keeps the processor.
    assert_eq!((driver.running(), budget(&driver)), (Some(0), Some(2)));
    driver.ran(0, 5);
    driver.complete(0);
    assert_eq!((driver.running(), budget(&driver)), (Some(1), Some(2)));
    driver.executed(2);
    assert_eq!((driver.running(), budget(&driver)), (Some(1), Some(1)));
    assert_eq!(driver.machine.decide(CPU).wall_timer.map(|timer| timer.at), Some(Instant::from_ns(20)));
}

/// Two hard tasks of one priority, the first with (2, 10), and a soft one (2).
fn equals(second: &str, server: &str) -> Driver {
    machine(&format!(
        "[[task]]\nname = \"x\"\nperiod = \"10 ns\"\nwcet = \"2 ns\"\npriority = 5\n[[task]]\nname = \"y\"\n{second}\npriority \
         = 5\n[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[server]]\nname = \"s\"\ntasks = \
         [\"soft\"]\n{server}"
    ))
}

#[test]
fn promoted_equals_keep_the_order_of_their_releases() {
    let mut driver = equals("period = \"10 ns\"\nwcet = \"3 ns\"", DUAL);
    driver.release_until(1, 10).release_until(0, 10).release(2);
    fire(&mut driver, 5);
    assert_eq!(driver.running(), Some(1), "released first");
    assert_eq!(driver.at(8).complete(1).running(), Some(0));
}

#[test]
fn a_task_whose_response_is_its_deadline_is_promoted_at_its_release() {
    let mut driver = equals("period = \"10 ns\"\nwcet = \"8 ns\"", DUAL);
    driver.release(2).release_until(1, 10);
    assert!(!driver.machine.stands_low(TaskId(1)));
    assert_eq!(driver.running(), Some(1));
}

#[test]
fn a_job_behind_a_late_one_of_its_task_is_promoted_at_once_and_leaves_no_slack() {
    let mut driver = set_b(DUAL);
    driver.release_until(0, 10).release_until(0, 20);
    assert_eq!(driver.running(), Some(0));
    driver.ran(0, 2);
    driver.complete(0).release(3);
    assert!(!driver.machine.stands_low(TaskId(0)));
    assert_eq!(driver.running(), Some(0));
    let mut driver = set_b(STEALING);
    driver.release_until(0, 10).release_until(0, 20).release(3);
    assert_eq!(driver.running(), Some(0));
}

#[test]
fn the_slack_of_a_task_counts_its_equals_on_both_sides() {
    let mut driver = equals("period = \"40 ns\"\nwcet = \"3 ns\"", STEALING);
    driver.release_until(1, 40).release_until(0, 10);
    let mut soft_first = Driver::new(driver.machine.clone());
    soft_first.release(2);
    assert_eq!((soft_first.running(), wall(&mut soft_first)), (Some(2), Some(5)));
    // What the equal one executes of its own part takes nothing.
    assert_eq!(driver.running(), Some(1));
    driver.ran(1, 2);
    driver.release(2);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(2), Some(7)));
}

/// A hard task of these keys alone, and a soft one (1) that steals.
fn alone(keys: &str) -> Driver {
    machine(&format!(
        "[[task]]\nname = \"hard\"\nperiod = \"20 ns\"\ndeadline = \"10 ns\"\npriority = 1\n{keys}\n[[task]]\nname = \
         \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\n{STEALING}"
    ))
}

#[test]
fn before_its_first_release_a_task_may_have_arrived_as_long_ago_as_its_jitter() {
    for jitter in [0, 1, 4] {
        let mut driver = alone(&format!("wcet = \"2 ns\"\njitter = \"{jitter} ns\""));
        driver.release(1);
        assert_eq!((driver.running(), wall(&mut driver)), (Some(1), Some(10 - jitter - 2)));
        // Its release at 1 tells when it arrived: at 0, or at 1.
        let arrival = 1 - jitter.min(1);
        driver.at(1).release_until(0, arrival + 10);
        assert_eq!((driver.running(), wall(&mut driver)), (Some(1), Some(arrival + 10 - 2)));
    }
    let mut driver = alone("wcet = \"2 ns\"\njitter = \"8 ns\"");
    driver.release(1);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(1), None), "nothing is left: in the background");
}

#[test]
fn the_next_release_ends_what_was_left_over() {
    let mut driver = alone("wcet = \"5 ns\"\nbcet = \"1 ns\"");
    driver.release_until(0, 10);
    assert_eq!(driver.running(), Some(0));
    driver.ran(0, 1);
    driver.complete(0).release(1);
    // 4 of the first job stay charged: 30 - 4 - 5 of the next one, and no time passes without the soft job.
    assert_eq!((driver.running(), wall(&mut driver)), (Some(1), Some(21)));
    driver.ran(1, 19);
    driver.release_until(0, 30);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(1), Some(25)));
}

#[test]
fn hard_tasks_of_one_priority_share_a_level_of_exchanged_budget() {
    let keys = "kind = \"priority-exchange\"\nbudget = \"4 ns\"\nperiod = \"20 ns\"\npriority = 7\n";
    let mut driver = equals("period = \"100 ns\"\nwcet = \"9 ns\"", keys);
    driver.release(0).release(1);
    assert_eq!(driver.running(), Some(0));
    driver.ran(0, 2);
    driver.complete(0);
    assert_eq!(driver.running(), Some(1));
    driver.ran(1, 2);
    driver.release(2);
    assert_eq!((driver.running(), driver.machine.budget(ServerId(0))), (Some(2), Some(Span::from_ns(4))));
}

#[test]
fn propagated_gain_moves_a_promotion_to_the_deadline_less_the_remaining_work_and_no_further() {
    let mut driver = machine(&format!(
        "[[task]]\nname = \"a\"\nperiod = \"6 ns\"\nwcet = \"3 ns\"\nbcet = \"1 ns\"\npriority = 2\n[[task]]\nname = \"b\"\nperiod = \
         \"20 ns\"\nwcet = \"2 ns\"\npriority = 1\n[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[server]]\nname = \
         \"s\"\ntasks = [\"soft\"]\n{DUAL}gain = \"propagated\"\n"
    ));
    driver.release_until(0, 6).release_until(1, 20);
    assert_eq!(driver.running(), Some(0));
    driver.ran(0, 1);
    driver.complete(0).release(2);
    // R = 5, so 15 without gain; two were left over.
    assert_eq!((driver.running(), wall(&mut driver)), (Some(2), Some(17)));
    driver.at(6).release_until(0, 12);
    fire(&mut driver, 9);
    assert_eq!(driver.running(), Some(0));
    driver.ran(0, 1);
    driver.complete(0);
    // Two more would be 19, beyond 20 - 2.
    assert_eq!((driver.running(), wall(&mut driver)), (Some(2), Some(18)));
}

#[test]
fn a_node_stands_where_it_was_last_put() {
    // Task 0 below a node that stands at 7 or at 3; task 1 at 5.
    let lines = [("thread", 1), ("other", 5)]
        .map(|(name, priority)| format!("name = \"{name}\"; priority = {priority}; {TASK}"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let system = system("", &lines);
    let mut builder = MachineBuilder::new(&system);
    let spec = NodeSpec {
        policy: NodePolicy::Fifo,
        lower_places: [7, 3].map(|at| Level::at(Priority::new(at))).to_vec(),
        supply: Some(Box::new(LentPriority::new(Place::Low(0)))),
        ..NodeSpec::default()
    };
    let node = builder.node(builder.root_of(CPU), spec);
    builder.place(TaskId(0), node);
    let mut driver = Driver::new(builder.build().expect("a valid tree"));
    let lend = |driver: &mut Driver, place| driver.on(EventKind::Lend { entity: node, place });
    assert_eq!(driver.release(0).release(1).running(), Some(1));
    assert_eq!(lend(&mut driver, Place::High), Ok(()));
    assert_eq!(driver.running(), Some(0));
    assert_eq!(lend(&mut driver, Place::Low(0)), Ok(()));
    assert_eq!(driver.running(), Some(1));
    // Also while it has nothing to run.
    assert_eq!(driver.at(1).complete(1).running(), Some(0));
    assert_eq!(driver.at(2).complete(0).running(), None);
    assert_eq!(lend(&mut driver, Place::High), Ok(()));
    assert_eq!(driver.at(3).release(1).running(), Some(1));
    assert_eq!(driver.at(4).release(0).running(), Some(0));
    assert_eq!(lend(&mut driver, Place::Low(1)), Err(Rejected::Unknown));
}

#[test]
fn a_second_job_behind_a_late_one_leaves_no_slack_until_the_first_ends() {
    let mut driver = machine(
        "[[task]]\nname = \"hard\"\nperiod = \"100 ns\"\nwcet = \"10 ns\"\npriority = 1\n[[task]]\nname = \"soft\"\nseparation = \"1 \
         ns\"\nwcet = \"5 ns\"\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\nkind = \"slack-stealing\"\n",
    );
    driver.release_until(0, 100).release(1);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(1), Some(90)));
    // The timer is late, and the hard task has not run when its next job comes.
    driver.at(100).release_until(0, 200);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(0), None));
    assert_eq!(driver.machine.tally(ServerId(0)).exhaustions, 1);
    driver.at(110);
    driver.ran(0, 10);
    driver.complete(0);
    // The second job has until 200, of which it takes 10.
    assert_eq!((driver.running(), wall(&mut driver)), (Some(1), Some(190)));
    assert_eq!(driver.machine.tally(ServerId(0)).replenishments, 2);
}

/// Hard tasks of these periods and execution times, the first the most important, and a soft one behind them.
fn propagating(tasks: &[(u32, u32)]) -> Driver {
    let mut text = String::new();
    for (index, (period, wcet)) in tasks.iter().enumerate() {
        let priority = 9 - index;
        text += &format!(
            "[[task]]\nname = \"h{index}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\npriority = {priority}\n"
        );
    }
    text += "[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"5 ns\"\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\nkind = \
             \"dual-priority\"\ngain = \"propagated\"\n";
    machine(&text)
}

#[test]
fn a_gain_moves_no_promotion_while_a_job_waits_behind_its_own() {
    // Responses 2 and 6: promotions 18 and 34 after the arrivals. The first task leaves 1 at 24.
    for (jobs, promotion) in [(1, 35), (2, 34)] {
        let mut driver = propagating(&[(20, 2), (40, 4)]);
        (0..jobs).for_each(|_| _ = driver.release_until(1, 40));
        driver.release(2);
        assert_eq!((driver.running(), wall(&mut driver)), (Some(2), Some(34)));
        driver.at(5).release_until(0, 25);
        fire(&mut driver, 23);
        assert_eq!(driver.running(), Some(0));
        driver.ran(0, 1);
        driver.complete(0);
        assert_eq!((driver.running(), wall(&mut driver)), (Some(2), Some(promotion)), "{jobs}");
    }
}

#[test]
fn a_job_that_is_promoted_already_goes_first_in_the_worst_schedule() {
    // Responses 2, 6 and 16: promotions 18, 34 and 84 after the arrivals. The second task's job is promoted at 79 and has 3
    // left when the first task leaves 1 at 81. It is done by 84, before its next one comes at 85.
    let mut driver = propagating(&[(20, 2), (40, 4), (100, 10)]);
    driver.release_until(2, 100).release(3);
    driver.at(45).release_until(1, 85);
    driver.at(62).release_until(0, 82);
    fire(&mut driver, 79);
    assert_eq!(driver.running(), Some(1));
    driver.ran(1, 1);
    fire(&mut driver, 80);
    assert_eq!(driver.running(), Some(0));
    driver.ran(0, 1);
    driver.complete(0);
    assert_eq!((driver.running(), wall(&mut driver)), (Some(1), Some(85)));
}
