//! Budgets as a driver sees them: which timer is armed, who is charged, what an overdraw costs, and what servers do at
//! instants at which several things happen. Only events go in, only answers are looked at.

mod support;

use horolog_model::{Priority, ServerId, System, TaskId};
use horolog_sched::{EventKind, Machine, MachineBuilder, NodePolicy, NodeSpec, Place, Rejected, Supply};
use horolog_time::{Instant, Span};
use support::{CPU, Driver};

/// A budget in each period from 0 on; what was overdrawn is owed.
#[derive(Clone, Debug)]
struct Budget {
    full: i64,
    left: i64,
    period: u64,
    next: u64,
}

impl Budget {
    fn node(full: i64, period: u64) -> NodeSpec {
        NodeSpec {
            policy: NodePolicy::Fifo,
            priority: Some(Priority::new(9)),
            supply: Some(Box::new(Budget { full, left: full, period, next: period })),
            ..NodeSpec::default()
        }
    }
}

impl Supply for Budget {
    fn place(&self) -> Place {
        if self.left > 0 { Place::High } else { Place::Out }
    }

    fn budget(&self) -> Option<Span> {
        Some(Span::from_ns(self.left.max(0).unsigned_abs()))
    }

    fn timer(&self) -> Option<Instant> {
        Some(Instant::from_ns(self.next))
    }

    fn executed(&mut self, _: Instant, amount: Span) -> bool {
        self.left -= amount.as_ns() as i64;
        true
    }

    fn timer_fired(&mut self, _: Instant) {
        self.left = self.left.min(0) + self.full;
        self.next += self.period;
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}

const TASK: &str = "period = \"100 ms\"; wcet = \"2 ms\"";

/// Task 0 below an inner budget below an outer one; task 1 below the outer one alone; task 2 below the root.
fn nested(inner: i64, outer: i64) -> Driver {
    let lines =
        ["a", "b", "back"].map(|name| format!("name = \"{name}\"; priority = {}; {TASK}", name.len().min(2)));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let system = support::system("", &lines);
    let mut builder = MachineBuilder::new(&system);
    let outer = builder.node(builder.root_of(CPU), Budget::node(outer, 20));
    let inner = builder.node(outer, Budget::node(inner, 10));
    builder.place(TaskId(0), inner);
    builder.place(TaskId(1), outer);
    Driver::new(builder.build().expect("a valid tree"))
}

#[test]
fn the_tightest_budget_above_the_running_task_limits_it() {
    for (inner, outer, expected) in [(3, 5, 3), (5, 3, 3), (4, 4, 4)] {
        let mut driver = nested(inner, outer);
        driver.release(0);
        assert_eq!(driver.allowance(), Some(expected), "{inner}, {outer}");
    }
    // Below the outer one alone nothing else counts.
    let mut driver = nested(3, 5);
    driver.release(1);
    assert_eq!(driver.allowance(), Some(5));
}

#[test]
fn every_budget_above_the_running_task_is_charged() {
    let mut driver = nested(4, 6);
    driver.release(0).release(1).release(2);
    assert_eq!(driver.running(), Some(0));
    driver.executed(3);
    driver.complete(0);
    assert_eq!(driver.running(), Some(1));
    assert_eq!(driver.allowance(), Some(3), "the outer budget has paid 3");
    driver.release(0);
    assert_eq!(driver.running(), Some(1), "first in, first out");
    driver.complete(1);
    assert_eq!(driver.allowance(), Some(1), "and the inner one as well");
    driver.executed(1);
    assert_eq!(driver.running(), Some(2), "without the inner budget its task waits");
    driver.release(1);
    assert_eq!(driver.running(), Some(1));
    assert_eq!(driver.allowance(), Some(2));
}

fn served(text: &str) -> System {
    let text = format!("[system]\nname = \"served\"\n{text}");
    match horolog_model::file::read(&text, "served.toml", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}"),
    }
}

/// A soft task (0) and, below it, a hard one (1); the server's own keys.
fn server(keys: &str) -> Driver {
    let text = format!(
        "[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[task]]\nname = \"hard\"\nperiod = \"100 \
         ns\"\nwcet = \"2 ns\"\npriority = 1\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\n{keys}\nbudget = \"4 ns\"\nperiod = \
         \"10 ns\"\n"
    );
    Driver::new(Machine::new(&served(&text)).expect("a right system"))
}

fn budget(driver: &Driver) -> Option<u64> {
    driver.machine.budget(ServerId(0)).map(Span::as_ns)
}

fn fire(driver: &mut Driver, at: u64) {
    let timer = driver.decide().wall_timer.expect("a timer is wanted");
    assert_eq!(timer.at, Instant::from_ns(at));
    driver.at(at);
    driver.on(EventKind::Timer { entity: timer.entity, generation: timer.generation }).expect("it is armed");
}

const BUDGETED: [&str; 3] = [
    "kind = \"polling\"\npriority = 9\nlow_priority = \"none\"",
    "kind = \"deferrable\"\npriority = 9\nlow_priority = \"none\"",
    "kind = \"sporadic\"\npriority = 9\nlow_priority = \"none\"",
];

#[test]
fn an_overdraw_is_owed_to_the_next_budget() {
    for keys in BUDGETED {
        let mut driver = server(keys);
        driver.release(0).release(0).release(0);
        assert_eq!(driver.allowance(), Some(4), "{keys}");
        // The end of the budget is noticed 3 too late, when the job has ended.
        driver.executed(7);
        driver.complete(0);
        assert_eq!(driver.running(), None, "{keys}");
        fire(&mut driver, 10);
        assert_eq!(driver.running(), Some(0), "{keys}");
        assert_eq!(driver.allowance(), Some(1), "{keys}: 3 of 4 were used before");
        assert_eq!(driver.machine.tally(ServerId(0)).consumed, Span::from_ns(7), "{keys}");
    }
}

#[test]
fn a_budget_that_is_overdrawn_by_more_than_the_next_one_waits_for_a_further_one() {
    for keys in &BUDGETED[..2] {
        let mut driver = server(keys);
        driver.release(0).release(0);
        driver.executed(9);
        driver.complete(0);
        fire(&mut driver, 10);
        assert_eq!((driver.running(), driver.allowance()), (None, None), "{keys}: 1 is still owed");
        fire(&mut driver, 20);
        assert_eq!(driver.allowance(), Some(3), "{keys}");
    }
}

#[test]
fn an_overdraw_of_a_constant_bandwidth_server_puts_its_deadline_off_by_whole_periods() {
    let text = "policy = \"edf\"\n[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[task]]\nname = \"hard\"\nperiod = \
                \"100 ns\"\nwcet = \"2 ns\"\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\nkind = \"constant-bandwidth\"\nbudget = \"4 \
                ns\"\nperiod = \"10 ns\"\n";
    for (used, deadline, left) in [(3, 10, 1), (4, 20, 4), (7, 20, 1), (8, 30, 4), (9, 30, 3)] {
        for (hard, runs) in [(deadline - 1, 1), (deadline, 0), (deadline + 1, 0)] {
            let mut driver = Driver::new(Machine::new(&served(text)).expect("a right system"));
            driver.release(0);
            driver.executed(used);
            assert_eq!(budget(&driver), Some(left), "{used}");
            driver.release_until(1, hard);
            assert_eq!(driver.running(), Some(runs), "{used}, {hard}");
        }
    }
}

#[test]
fn a_job_that_follows_one_of_its_task_at_the_instant_of_a_poll_is_counted() {
    let mut driver = server("kind = \"polling\"\npriority = 9\nlow_priority = \"background\"");
    driver.at(2).release(0);
    assert_eq!((driver.running(), driver.allowance()), (Some(0), None), "in the background");
    driver.at(10).complete(0).release(0).release(1);
    assert_eq!(driver.running(), Some(0));
    assert_eq!(driver.allowance(), Some(4));
    driver.executed(4);
    assert_eq!(driver.running(), Some(1), "without budget it stands below every task again");
}

#[test]
fn polling_has_no_budget_after_a_poll_without_work() {
    let mut driver = server(BUDGETED[0]);
    driver.release(0);
    assert_eq!(driver.allowance(), Some(4), "an arrival at a poll is seen");
    driver.executed(1);
    driver.complete(0).release(0);
    assert_eq!(driver.running(), None, "what it did not use at once is gone");
    // A second job ends exactly at a poll.
    fire(&mut driver, 10);
    driver.executed(4);
    let wall = driver.decide().wall_timer.expect("work waits");
    let mut ended = Driver::new(driver.machine.clone());
    ended.now = 20;
    assert_eq!(wall.at, Instant::from_ns(20));
    fire(&mut driver, 20);
    assert_eq!(driver.running(), Some(0));
    driver.executed(2);
    driver.complete(0);
    driver.at(23).release(0);
    assert_eq!(driver.running(), None);
}

#[test]
fn a_poll_that_comes_after_the_end_of_the_last_job_gives_nothing() {
    let mut driver = server("kind = \"polling\"\npriority = 9\nlow_priority = \"background\"");
    driver.at(2).release(0);
    let wall = driver.decide().wall_timer.expect("work waits");
    driver.at(10).complete(0);
    // A driver that does not look again lets the timer go off that it knew.
    let _ = driver.on(EventKind::Timer { entity: wall.entity, generation: wall.generation });
    driver.at(11).release(1).release(0);
    assert_eq!(driver.running(), Some(1));
    assert_eq!(driver.machine.tally(ServerId(0)).replenishments, 0);
}

#[test]
fn a_poll_gives_its_budget_once() {
    let mut driver = server("kind = \"polling\"\npriority = 9\nlow_priority = \"background\"");
    driver.at(2).release(0);
    let wall = driver.decide().wall_timer.expect("work waits");
    // The next job finds the poll of its instant, and then the timer goes off that was armed for it.
    driver.at(10).complete(0).release(0);
    assert_eq!((budget(&driver), driver.machine.tally(ServerId(0)).replenishments), (Some(4), 1));
    let _ = driver.on(EventKind::Timer { entity: wall.entity, generation: wall.generation });
    assert_eq!((budget(&driver), driver.machine.tally(ServerId(0)).replenishments), (Some(4), 1));
    assert_eq!((driver.running(), driver.allowance()), (Some(0), Some(4)));
}

#[test]
fn the_budget_of_a_poll_at_which_the_last_job_ends_is_lost() {
    let mut driver = server(BUDGETED[0]);
    driver.release(0);
    driver.executed(3);
    fire(&mut driver, 10);
    driver.complete(0);
    // Whoever comes at the poll itself still finds its budget, and nobody later does.
    let mut at_once = Driver::new(driver.machine.clone());
    at_once.at(10).release(0);
    assert_eq!((at_once.running(), at_once.allowance()), (Some(0), Some(4)));
    driver.at(13).release(0).release(1);
    assert_eq!((driver.running(), budget(&driver)), (Some(1), None));
}

#[test]
fn whoever_comes_at_a_poll_gets_the_whole_budget_whatever_was_left_of_the_one_before() {
    let mut driver = server(BUDGETED[0]);
    driver.release(0);
    assert_eq!((driver.running(), driver.allowance()), (Some(0), Some(4)));
    driver.at(1).executed(1);
    driver.complete(0);
    assert_eq!(driver.running(), None);
    driver.at(10).release(0);
    assert_eq!((driver.running(), driver.allowance()), (Some(0), Some(4)));
}

#[test]
fn a_job_that_goes_on_beyond_its_budget_since_it_is_not_preemptible_goes_on_paying() {
    for keys in &BUDGETED {
        let mut driver = server(keys);
        driver.release(0).release(0).release(1);
        assert_eq!((driver.running(), driver.allowance()), (Some(0), Some(4)), "{keys}");
        driver.on(EventKind::SetPreemptible { task: TaskId(0), preemptible: false }).expect("it runs");
        driver.ran(0, 4);
        let beyond = driver.decide();
        assert_eq!((beyond.running, beyond.should_yield), (Some(TaskId(0)), true), "{keys}");
        driver.ran(0, 3).complete(0);
        assert_eq!(driver.running(), Some(1), "{keys}");
        fire(&mut driver, 10);
        assert_eq!((driver.running(), driver.allowance()), (Some(0), Some(1)), "{keys}: 3 are owed");
        assert_eq!(driver.machine.tally(ServerId(0)).consumed, Span::from_ns(7), "{keys}");
    }
}

#[test]
fn what_is_overdrawn_is_charged_to_a_chunk_that_may_be_used_when_its_time_comes() {
    for (arrival, runs) in [(9, 1), (10, 0), (11, 0)] {
        let mut driver = server(BUDGETED[2]);
        driver.release(0);
        assert_eq!(driver.running(), Some(0));
        // The end of the budget is noticed 2 too late, after the end of the job: the chunk that comes back at 10 pays.
        driver.at(6).complete(0).told(0, 6);
        driver.at(arrival).release(0).release(1);
        assert_eq!(driver.running(), Some(runs), "{arrival}");
        assert_eq!(budget(&driver), (runs == 0).then_some(2), "{arrival}");
    }
}

#[test]
fn a_change_to_the_one_mode_that_there_is_tells_no_budget_anything() {
    let mut driver = server(BUDGETED[1]);
    driver.at(3).release(0);
    driver.executed(3);
    driver.complete(0);
    let facts = |driver: &Driver| (budget(driver), driver.machine.tally(ServerId(0)));
    let before = facts(&driver);
    driver.at(35).on(EventKind::ModeChange { mode: 0 }).expect("it is the system itself");
    assert_eq!(facts(&driver), before);
    // The periods that have passed are found out when work comes.
    driver.at(36).release(0);
    assert_eq!((driver.allowance(), driver.machine.tally(ServerId(0)).replenishments), (Some(4), 1));
}

#[test]
fn deferrable_keeps_its_budget_and_finds_out_about_missed_periods() {
    let mut driver = server(BUDGETED[1]);
    driver.at(3).release(0);
    driver.executed(3);
    driver.complete(0);
    driver.at(9).release(0);
    assert_eq!(budget(&driver), Some(1));
    assert_eq!(driver.running(), Some(0));
    driver.at(10).complete(0);
    driver.at(35).release(0);
    assert_eq!(driver.allowance(), Some(4));
    assert_eq!(driver.decide().wall_timer.map(|timer| timer.at), Some(Instant::from_ns(40)));
    assert_eq!(driver.machine.tally(ServerId(0)).replenishments, 1);
    fire(&mut driver, 40);
    assert_eq!(driver.machine.tally(ServerId(0)).replenishments, 1, "a full budget does not come back");
}

#[test]
fn timers_of_two_servers_go_off_before_one_choice() {
    let server = |name: &str, priority: u32| {
        format!(
            "[[server]]\nname = \"{name}\"\ntasks = [\"{name}'s\"]\nkind = \"deferrable\"\nlow_priority = \"none\"\npriority = \
             {priority}\nbudget = \"2 ns\"\nperiod = \"10 ns\"\n"
        )
    };
    let task =
        |name: &str| format!("[[task]]\nname = \"{name}'s\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n");
    for is_first in [true, false] {
        let servers =
            if is_first { server("x", 5) + &server("y", 6) } else { server("y", 6) + &server("x", 5) };
        let text = task("x") + &task("y") + &servers;
        let (x, y) = if is_first { (ServerId(0), ServerId(1)) } else { (ServerId(1), ServerId(0)) };
        let mut driver = Driver::new(Machine::new(&served(&text)).expect("a right system"));
        driver.release(0).release(1);
        driver.executed(2);
        assert_eq!(driver.running(), Some(0));
        driver.executed(2);
        assert_eq!(driver.running(), None);
        driver.at(10);
        // x serves the lower task id: its timer comes first, and then the machine tells the other one without a choice.
        for server in [x, y] {
            let timer = driver.machine.wall_timer(CPU).expect("another one is due");
            assert_eq!((timer.entity, timer.at.as_ns()), (driver.machine.server(server), 10));
            driver
                .on(EventKind::Timer { entity: timer.entity, generation: timer.generation })
                .expect("it is armed");
        }
        let later = driver.machine.wall_timer(CPU).map(|timer| timer.at.as_ns());
        assert_eq!((later, driver.running()), (Some(20), Some(1)));
    }
}

#[test]
fn reports_add_up_however_they_are_split() {
    for parts in [&[3][..], &[1, 2], &[1, 1, 1], &[0, 3, 0]] {
        let mut driver = server(BUDGETED[1]);
        driver.release(0);
        assert_eq!(driver.running(), Some(0));
        for &part in parts {
            driver.ran(0, part);
        }
        assert_eq!(driver.machine.tally(ServerId(0)).consumed, Span::from_ns(3), "{parts:?}");
        assert_eq!(budget(&driver), Some(1), "{parts:?}");
        assert_eq!(driver.allowance(), Some(1), "{parts:?}");
    }
}

#[test]
fn a_timer_that_was_replaced_is_stale() {
    let mut driver = server("kind = \"polling\"\npriority = 9\nlow_priority = \"background\"");
    driver.release(0);
    let old = driver.decide().wall_timer.expect("work waits");
    driver.at(1).complete(0);
    assert_eq!(driver.decide().wall_timer, None);
    driver.at(12).release(0);
    let new = driver.decide().wall_timer.expect("work waits");
    assert_eq!((new.at, new.entity), (Instant::from_ns(20), old.entity));
    let kind = |generation| EventKind::Timer { entity: old.entity, generation };
    assert_eq!(driver.on(kind(old.generation)), Err(Rejected::Stale));
    assert_eq!(driver.at(20).on(kind(new.generation)), Ok(()));
}

#[test]
fn what_a_displaced_or_finished_job_has_executed_may_be_told_after_the_next_choice() {
    let mut driver = nested(4, 6);
    driver.release(0).release(1).release(2);
    assert_eq!(driver.running(), Some(0));
    driver.at(2).complete(0);
    assert_eq!(driver.running(), Some(1));
    driver.told(0, 2);
    driver.at(3).complete(1);
    assert_eq!((driver.running(), driver.allowance()), (Some(2), None));
    driver.told(1, 1).release(0);
    assert_eq!((driver.running(), driver.allowance()), (Some(0), Some(2)), "2 of 4 inside, 3 of 6 outside");
    driver.complete(0).release(1);
    assert_eq!(driver.allowance(), Some(3));
}

#[test]
fn a_sporadic_chunk_whose_time_comes_at_this_very_instant_is_there() {
    let keys = BUDGETED[2];
    let mut driver = server(keys);
    driver.release(0);
    driver.executed(2);
    driver.complete(0);
    let before = driver.machine.clone();
    // Used from 8 to 10, when the first 2 come back.
    driver.at(8).release(0);
    driver.executed(2);
    assert_eq!(driver.running(), Some(0));
    assert_eq!(driver.machine.tally(ServerId(0)).consumed, Span::from_ns(4));
    let tally = driver.machine.tally(ServerId(0));
    assert_eq!((tally.exhaustions, budget(&driver)), (0, Some(2)));
    // Work that arrives at 10 takes up both.
    let mut driver = Driver::new(before);
    driver.at(10).release(0);
    assert_eq!(budget(&driver), Some(4));
}

#[test]
fn posix_gives_back_by_the_timer_what_is_due_now_and_at_once_what_was_due() {
    let posix = "kind = \"sporadic\"\nrules = \"posix\"\npriority = 9\nlow_priority = \"none\"";
    for (end, expected) in [(9, None), (10, None), (11, Some(4))] {
        let mut driver = server(posix);
        driver.release(0);
        let _ = driver.decide();
        driver.at(end - 4);
        driver.executed(4);
        assert_eq!(budget(&driver), expected, "{end}");
    }
}

#[test]
fn constant_bandwidth_renews_where_what_is_left_is_just_the_share() {
    let text = "policy = \"edf\"\n[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[server]]\nname = \
                \"s\"\ntasks = [\"soft\"]\nkind = \"constant-bandwidth\"\nbudget = \"4 ns\"\nperiod = \"10 ns\"\n";
    // 2 are left until 10: the share of 5.
    for (arrival, left) in [(4, 2), (5, 4), (6, 4)] {
        let mut driver = Driver::new(Machine::new(&served(text)).expect("a right system"));
        driver.release(0);
        driver.executed(2);
        driver.complete(0);
        driver.at(arrival).release(0);
        assert_eq!(budget(&driver), Some(left), "{arrival}");
    }
}

#[test]
fn posix_never_has_more_than_its_budget() {
    let mut driver = server("kind = \"sporadic\"\nrules = \"posix\"\npriority = 9\nlow_priority = \"none\"");
    driver.release(0);
    // Seven of four: the capacity is set to zero, and seven come back at 10.
    driver.executed(7);
    fire(&mut driver, 10);
    assert_eq!((driver.running(), budget(&driver)), (Some(0), Some(4)));
}

/// Four of four, and four come back at 10: one end and one return, whichever rules.
#[test]
fn ends_and_returns_are_counted_once() {
    for rules in ["corrected", "posix"] {
        let keys = format!("kind = \"sporadic\"\nrules = \"{rules}\"\npriority = 9\nlow_priority = \"none\"");
        let mut driver = server(&keys);
        driver.release(0);
        let count = |driver: &Driver| {
            let tally = driver.machine.tally(ServerId(0));
            (tally.exhaustions, tally.replenishments)
        };
        let before = count(&driver);
        driver.executed(4);
        assert_eq!(count(&driver), (before.0 + 1, before.1), "{rules}");
        fire(&mut driver, 10);
        assert_eq!(count(&driver), (before.0 + 1, before.1 + 1), "{rules}");
    }
}

#[test]
fn a_period_of_centuries_is_refused() {
    let text = |period: &str| {
        served(&format!(
            "[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[server]]\nname = \"s\"\ntasks = \
             [\"soft\"]\nkind = \"polling\"\nbudget = \"4 ns\"\nperiod = \"{period}\"\npriority = 9\n"
        ))
    };
    let error = Machine::new(&text("4611686018427387905 ns")).expect_err("2^62 + 1 ns");
    assert_eq!(error.at, "server.s.period");
    assert!(Machine::new(&text("4611686018427387904 ns")).is_ok(), "2^62 ns");
}

#[test]
fn who_has_no_budget_says_so() {
    // Without work no poll gives any; the others begin with a whole one.
    for (keys, expected) in BUDGETED.into_iter().zip([None, Some(4), Some(4)]) {
        assert_eq!(budget(&server(keys)), expected, "{keys}");
    }
}
