//! The driver against small worlds: what is told when, and what makes no difference.

mod support;

use horolog_model::{Priority, ServerId, System, TaskId};
use horolog_sched::{
    Cause, Choice, Doubt, Driver, Machine, MachineBuilder, NodePolicy, NodeSpec, Note, Place, ProcessorIndex,
    Supply, Tell, World, Worlds,
};
use horolog_time::{Instant, Span};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::convert::Infallible;
use support::served::{SERVERS, served};
use support::{CPU, system};

/// A job to come: when, of which task, for how long.
type Job = (u64, u32, u64);

/// One processor in virtual time, a nanosecond a unit.
struct Virtual {
    /// In the order of their arrivals.
    jobs: VecDeque<Job>,
    /// What is left of the jobs of each task, the oldest first.
    left: Vec<VecDeque<u64>>,
    deadline: u64,
    running: Option<TaskId>,
    /// Up to when the running job's execution was asked for.
    asked: u64,
    /// Up to when it was taken off `left`.
    done: u64,
    /// At these instants it is looked at without a reason.
    looks: VecDeque<u64>,
    /// The processor is somebody else's until then.
    ready_at: u64,
    /// Choices are made at its multiples alone; 0: at any time.
    grid: u64,
    /// At this instant it says once that the run ends.
    ends_at: u64,
    /// How many notes were only counted.
    counted: u64,
    log: Vec<String>,
}

impl Virtual {
    fn new(tasks: usize, jobs: &[Job], looks: &[u64]) -> Virtual {
        Virtual {
            jobs: jobs.iter().copied().collect(),
            left: vec![VecDeque::new(); tasks],
            deadline: 40,
            running: None,
            asked: 0,
            done: 0,
            looks: looks.iter().copied().collect(),
            ready_at: 0,
            grid: 0,
            ends_at: u64::MAX,
            counted: 0,
            log: Vec::new(),
        }
    }

    fn left(&mut self) -> Option<&mut u64> {
        self.left[self.running?.index()].front_mut()
    }

    /// The running job executes until `now`.
    fn pass(&mut self, now: u64) {
        let passed = now - self.done;
        self.done = now;
        if let Some(left) = self.left() {
            *left -= passed;
        }
    }

    fn finish(&self) -> u64 {
        let left = self.running.and_then(|task| self.left[task.index()].front());
        left.map_or(u64::MAX, |left| self.done + left)
    }
}

impl World for Virtual {
    type Error = Infallible;

    fn next(&self) -> u64 {
        let arrival = self.jobs.front().map_or(u64::MAX, |job| job.0);
        arrival.min(self.finish()).min(self.looks.front().copied().unwrap_or(u64::MAX))
    }

    fn ready_at(&self) -> u64 {
        self.ready_at
    }

    fn ends(&self, now: u64) -> bool {
        self.finish() == now || self.looks.front() == Some(&now)
    }

    fn executed(&mut self, now: u64, _: u64) -> u64 {
        now - std::mem::replace(&mut self.asked, now)
    }

    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        let now = tell.now();
        self.pass(now);
        if self.grid > 0 {
            self.ready_at = now.next_multiple_of(self.grid);
        }
        while self.looks.front().is_some_and(|&look| look <= now) {
            self.looks.pop_front();
        }
        if self.left().is_some_and(|left| *left == 0)
            && let Some(task) = self.running.take()
        {
            self.left[task.index()].pop_front();
            tell.completion(task).expect("it has begun");
            self.log.push(format!("{now} {task:?} ends"));
        }
        Ok(())
    }

    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        let now = tell.now();
        while let Some((_, task, length)) = self.jobs.front().copied().filter(|job| job.0 <= now) {
            self.jobs.pop_front();
            let asked = &mut self.asked;
            let executed = |_| now - std::mem::replace(asked, now);
            let deadline = Instant::from_ns(now + self.deadline);
            tell.release(TaskId(task), deadline, executed).expect("it is active");
            self.left[task as usize].push_back(length);
        }
        Ok(())
    }

    fn carry_out(&mut self, now: u64, choice: Choice<'_>) {
        if choice.task != self.running {
            self.log.push(format!("{now} {:?}", choice.task));
            (self.running, self.asked) = (choice.task, now);
        }
    }

    fn note(&mut self, now: u64, note: Note) {
        self.log.push(format!("{now} {note:?}"));
    }

    fn noted(&mut self, count: u64) {
        self.counted += count;
    }

    fn goes_on(&mut self, now: u64) -> bool {
        let goes_on = now < self.ends_at;
        self.ends_at = if goes_on { self.ends_at } else { u64::MAX };
        goes_on
    }
}

/// One of several, or one that takes notes or has them counted.
struct One<'a, const NOTES: bool>(&'a mut Virtual);

impl<const NOTES: bool> World for One<'_, NOTES> {
    type Error = Infallible;
    const NOTES: bool = NOTES;

    fn next(&self) -> u64 {
        self.0.next()
    }

    fn ready_at(&self) -> u64 {
        self.0.ready_at()
    }

    fn ends(&self, now: u64) -> bool {
        self.0.ends(now)
    }

    fn executed(&mut self, now: u64, allowance: u64) -> u64 {
        self.0.executed(now, allowance)
    }

    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        self.0.complete(tell)
    }

    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        self.0.arrive(tell)
    }

    fn carry_out(&mut self, now: u64, choice: Choice<'_>) {
        self.0.carry_out(now, choice);
    }

    fn note(&mut self, now: u64, note: Note) {
        self.0.note(now, note);
    }

    fn noted(&mut self, count: u64) {
        self.0.noted(count);
    }

    fn goes_on(&mut self, now: u64) -> bool {
        self.0.goes_on(now)
    }
}

/// The processors of a driver that has several.
struct Several(Vec<Virtual>);

impl Worlds for Several {
    type Error = Infallible;
    type One<'a> = One<'a, true>;

    fn one(&mut self, place: usize) -> One<'_, true> {
        One(&mut self.0[place])
    }
}

fn driver(machine: Machine, system: &System) -> Driver {
    Driver::new(machine, system, std::iter::once(CPU))
}

/// What was logged; the tallies of the servers, and what they have used.
fn run(system: &System, jobs: &[Job], looks: &[u64], grid: u64) -> (Vec<String>, String, Vec<Span>) {
    let mut world = Virtual::new(system.tasks().len(), jobs, looks);
    world.grid = grid;
    let mut driver = driver(Machine::new(system).expect("a valid system"), system);
    while let Ok(Some(_)) = driver.run_once(&mut world, 0, 500) {
        driver.machine().check().unwrap_or_else(|what| panic!("{what}"));
    }
    let tallies: Vec<_> = system.server_ids().map(|id| driver.machine().tally(id)).collect();
    let used = system.server_ids().map(|id| driver.machine().tally(id).consumed);
    (world.log, format!("{tallies:?}"), used.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Further instants at which only execution is told change nothing: no choice, no note, no tally.
    #[test]
    fn how_reports_are_split_makes_no_difference(
        kind in 0..SERVERS.len(),
        jobs in prop::collection::vec((0_u64..120, 0_u32..5, 1_u64..9), 1..20),
        looks in prop::collection::btree_set(0_u64..200, 0..60),
    ) {
        let system = served(SERVERS[kind]);
        let mut jobs = jobs;
        jobs.sort_by_key(|&(at, task, _)| (at, task));
        let looks: Vec<u64> = looks.into_iter().collect();
        prop_assert_eq!(run(&system, &jobs, &looks, 0), run(&system, &jobs, &[], 0));
    }

    /// So where choices are late, and budgets are overdrawn until then; but for the rules of POSIX, which give back at once what
    /// should have come back before the end of the budget was noticed.
    #[test]
    fn how_an_overdraw_is_split_makes_no_difference(
        kind in (0..SERVERS.len()).prop_filter("POSIX", |&kind| !SERVERS[kind].0.contains("posix")),
        jobs in prop::collection::vec((0_u64..120, 0_u32..5, 1_u64..9), 1..20),
        looks in prop::collection::btree_set(0_u64..200, 0..60),
        grid in 2_u64..9,
    ) {
        let system = served(SERVERS[kind]);
        let mut jobs = jobs;
        jobs.sort_by_key(|&(at, task, _)| (at, task));
        let due = || (0..300).map(|n| n * grid);
        let few: Vec<u64> = due().collect();
        let mut many: Vec<u64> = looks.into_iter().chain(due()).collect();
        many.sort_unstable();
        many.dedup();
        // When the end of a budget is noticed before the next choice is the world's affair, and whether it had come back by then.
        let facts = |looks: &[u64]| {
            let (log, _, used) = run(&system, &jobs, looks, grid);
            let log: Vec<String> = log.into_iter().filter(|line| !line.contains("ServerId")).collect();
            (log, used)
        };
        prop_assert_eq!(facts(&many), facts(&few));
    }

    /// A driver and its copy go on alike, each by itself.
    #[test]
    fn a_copy_goes_on_alike(
        kind in 0..SERVERS.len(),
        jobs in prop::collection::vec((0_u64..120, 0_u32..5, 1_u64..9), 1..20),
        cut in 0_u64..120,
    ) {
        let system = served(SERVERS[kind]);
        let mut jobs = jobs;
        jobs.sort_by_key(|&(at, task, _)| (at, task));
        let mut world = Virtual::new(system.tasks().len(), &jobs, &[]);
        let mut first = driver(Machine::new(&system).expect("a valid system"), &system);
        let Ok(_) = first.run(&mut world, 0, cut);
        let mut second = first.clone();
        let mut other = Virtual { jobs: world.jobs.clone(), left: world.left.clone(), looks: VecDeque::new(), log: world.log.clone(), ..world };
        let Ok(_) = first.run(&mut world, 0, 500);
        let Ok(_) = second.run(&mut other, 0, 500);
        prop_assert_eq!(world.log, other.log);
    }
}

/// A soft job of 20 from 0 on, of a deferrable server (3 in 10); when its budget runs out before 9, and what it may execute from what
/// was told last on.
fn withdrawn(stretches: &[(u64, u64)]) -> (Vec<String>, u64) {
    let system = served(SERVERS[2]);
    let mut world = Virtual::new(system.tasks().len(), &[(0, 3, 20)], &[]);
    let mut driver = driver(Machine::new(&system).expect("a valid system"), &system);
    for &(from, to) in stretches {
        let Ok(_) = driver.run(&mut world, 0, from);
        driver.withdraw(&mut world, 0, from, Cause::Interrupt);
        driver.withdraw(&mut world, 0, from, Cause::Foreign);
        assert_eq!(driver.is_withdrawn(0), Some(Cause::Foreign));
        let Ok(_) = driver.run(&mut world, 0, to);
        driver.give_back(&mut world, 0, to);
        assert_eq!((driver.is_withdrawn(0), driver.machine().check()), (None, Ok(())));
    }
    let Ok(_) = driver.run(&mut world, 0, 9);
    let lengths: u64 = stretches.iter().map(|(from, to)| to - from).sum();
    let taken = driver.withdrawn(0, 9);
    assert_eq!(
        (taken.by(Cause::Foreign), taken.by(Cause::Interrupt), taken.by(Cause::Cost)),
        (lengths, 0, 0)
    );
    let is_end = |line: &&String| line.contains("Exhausted");
    (world.log.iter().filter(is_end).cloned().collect(), driver.allowance(0))
}

#[test]
fn while_a_processor_is_withdrawn_nothing_is_charged() {
    let end = |at: u64| vec![format!("{at} Exhausted {{ server: ServerId(0), consumed: Span(3) }}")];
    assert_eq!(withdrawn(&[]).0, end(3));
    assert_eq!(withdrawn(&[(1, 2)]).0, end(4));
    assert_eq!(withdrawn(&[(1, 2), (3, 7)]).0, end(8));
    // Two units are left at 8; given back one unit earlier it has used them up by 9 exactly.
    assert_eq!(withdrawn(&[(1, 8)]), (vec![], 2));
    assert_eq!(withdrawn(&[(1, 7)]), (vec![], 2));
    assert_eq!(withdrawn(&[(1, 6)]).0, end(8));
}

#[test]
fn while_a_processor_is_withdrawn_no_choice_is_expected() {
    let system = two(1, 2);
    let mut world = Virtual::new(2, &[(0, 0, 5), (3, 1, 2)], &[]);
    let mut driver = driver(Machine::new(&system).expect("priorities"), &system);
    let Ok(_) = driver.run(&mut world, 0, 2);
    driver.withdraw(&mut world, 0, 2, Cause::Cost);
    let Ok(reached) = driver.run(&mut world, 0, 4);
    assert_eq!((reached.last, driver.is_due(0), driver.wanted(0)), (3, true, Some(TaskId(0))));
    driver.give_back(&mut world, 0, 4);
    let Ok(()) = driver.instant(&mut world, 0, 4);
    assert_eq!((driver.is_due(0), driver.wanted(0)), (false, Some(TaskId(1))));
}

const TASK: &str = "period = \"100 ms\"; wcet = \"2 ms\"";

fn two(first: u32, second: u32) -> System {
    let lines =
        [first, second].map(|priority| format!("name = \"t{priority}\"; priority = {priority}; {TASK}"));
    system("", &[&lines[0], &lines[1]])
}

#[test]
fn what_is_put_off_is_told_in_order_and_chosen_once() {
    let system = two(1, 2);
    let mut world = Virtual::new(2, &[(0, 0, 5), (3, 1, 2), (4, 1, 2)], &[]);
    let mut driver = driver(Machine::new(&system).expect("priorities"), &system);
    world.ready_at = 6;
    let Ok(reached) = driver.run(&mut world, 0, 6);
    assert_eq!((reached.last, reached.next, world.log.len()), (4, 6, 0), "nobody runs before 6");
    assert_eq!(driver.machine().jobs(TaskId(1)), 2);
    let Ok(_) = driver.run(&mut world, 0, 100);
    assert_eq!(
        world.log,
        [
            "6 Some(TaskId(1))",
            "8 TaskId(1) ends",
            "8 Some(TaskId(1))",
            "10 TaskId(1) ends",
            "10 Some(TaskId(0))",
            "15 TaskId(0) ends"
        ]
    );
}

#[test]
fn a_late_event_is_told_at_the_last_instant_that_was_told() {
    let system = two(1, 2);
    let mut world = Virtual::new(2, &[], &[]);
    let mut driver = driver(Machine::new(&system).expect("priorities"), &system);
    let Ok(()) = driver.instant(&mut world, 0, 8);
    assert_eq!(driver.tell(0, 5).now(), 8);
    assert_eq!(driver.tell(0, 9).now(), 9);
    world.jobs.push_back((3, 0, 4));
    let Ok(()) = driver.instant(&mut world, 0, 3);
    assert_eq!(world.log, ["9 Some(TaskId(0))"]);
    // A choice that is made on demand is an instant that was told, too.
    driver.settle(&mut world, 0, 11);
    assert_eq!(driver.tell(0, 10).now(), 11);
}

/// Wants to be called at every instant again, or a fixed time later.
#[derive(Clone, Debug)]
struct Insistent {
    at: u64,
    step: u64,
    calls: u64,
}

impl Supply for Insistent {
    fn place(&self) -> Place {
        Place::High
    }

    fn budget(&self) -> Option<Span> {
        None
    }

    fn timer(&self) -> Option<Instant> {
        Some(Instant::from_ns(self.at))
    }

    fn executed(&mut self, _: Instant, _: Span) -> bool {
        false
    }

    fn timer_fired(&mut self, _: Instant) {
        self.at += self.step;
        self.calls += 1;
        assert!(self.calls < 100, "called for ever");
    }

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}

fn insistent(step: u64) -> (System, Machine) {
    let system = two(1, 2);
    let mut builder = MachineBuilder::new(&system);
    let spec = NodeSpec {
        policy: NodePolicy::Fifo,
        priority: Some(Priority::new(5)),
        supply: Some(Box::new(Insistent { at: 10, step, calls: 0 })),
        ..NodeSpec::default()
    };
    let node = builder.node(builder.root_of(CPU), spec);
    builder.place(TaskId(0), node);
    let machine = builder.build().expect("a valid tree");
    (system, machine)
}

#[test]
fn a_timer_that_asks_for_the_instant_at_which_it_was_called_is_not_called_there_again() {
    let (system, machine) = insistent(0);
    let mut world = Virtual::new(2, &[(0, 1, 50), (20, 1, 1)], &[]);
    let mut driver = driver(machine, &system);
    let Ok(reached) = driver.run(&mut world, 0, 40);
    assert_eq!(reached.last, 20, "the run goes on");
    // One that asks for a later instant, also one that has passed, is called until it asks for the future.
    let (system, machine) = insistent(3);
    let mut world = Virtual::new(2, &[], &[]);
    let mut driver = self::driver(machine, &system);
    let Ok(()) = driver.instant(&mut world, 0, 0);
    let Ok(()) = driver.instant(&mut world, 0, 18);
    assert_eq!(driver.wall_at(0), 19);
    let Ok(()) = driver.instant(&mut world, 0, 19);
    assert_eq!(driver.wall_at(0), 22);
}

/// A soft task (0) behind a deferrable server of 4 in 10, and a hard one (1) below it.
fn deferrable() -> System {
    let text = "[system]\nname = \"one\"\n[[task]]\nname = \"soft\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\n[[task]]\nname = \
                \"hard\"\nperiod = \"100 ns\"\nwcet = \"2 ns\"\npriority = 1\n[[server]]\nname = \"s\"\ntasks = [\"soft\"]\nkind = \
                \"deferrable\"\nbudget = \"4 ns\"\nperiod = \"10 ns\"\npriority = 9\nlow_priority = \"none\"\n";
    horolog_model::file::read(text, "one.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

#[test]
fn execution_is_charged_to_whoever_really_has_the_processor() {
    let system = deferrable();
    let consumed = |driver: &Driver| driver.machine().tally(ServerId(0)).consumed.as_ns();
    let mut world = Virtual::new(2, &[(0, 0, 9), (0, 1, 9)], &[]);
    let mut driver = driver(Machine::new(&system).expect("a valid system"), &system);
    let Ok(()) = driver.instant(&mut world, 0, 0);
    assert_eq!((driver.running(0), driver.allowance(0)), (Some(TaskId(0)), 4));
    driver.report(&mut world, 0, 1);
    // From 1 to 3 somebody else has the processor.
    driver.tell(0, 1).took(None);
    world.asked = 3;
    driver.report(&mut world, 0, 3);
    assert_eq!((driver.running(0), consumed(&driver)), (None, 1));
    driver.tell(0, 3).took(Some(TaskId(0)));
    assert_eq!(driver.allowance(0), 3);
    driver.report(&mut world, 0, 5);
    assert_eq!(consumed(&driver), 3);
    // The other task has it, although it is not its turn: nobody's budget pays.
    driver.tell(0, 5).took(Some(TaskId(1)));
    driver.report(&mut world, 0, 8);
    assert_eq!(consumed(&driver), 3);
}

#[test]
fn a_job_that_has_begun_may_end_or_suspend_itself_although_another_is_wanted() {
    let system = two(1, 2);
    let mut driver = driver(Machine::new(&system).expect("priorities"), &system);
    let mut world = Virtual::new(2, &[(0, 0, 9)], &[]);
    let Ok(()) = driver.instant(&mut world, 0, 0);
    world.jobs.push_back((2, 1, 9));
    let Ok(()) = driver.instant(&mut world, 0, 2);
    assert_eq!(driver.running(0), Some(TaskId(1)));
    // The displaced job suspends itself, wakes and ends; one that has not begun does neither.
    driver.tell(0, 3).block(TaskId(0)).expect("it has begun");
    assert!(driver.tell(0, 3).block(TaskId(0)).is_err(), "it is suspended");
    driver.tell(0, 4).wake(TaskId(0)).expect("it is suspended");
    driver.tell(0, 5).completion(TaskId(0)).expect("it has begun");
    assert_eq!((driver.machine().jobs(TaskId(0)), driver.running(0)), (0, Some(TaskId(1))));
    world.jobs.push_back((6, 0, 9));
    let Ok(()) = driver.instant(&mut world, 0, 6);
    assert!(driver.tell(0, 6).completion(TaskId(0)).is_err(), "it has not begun");
    assert!(driver.tell(0, 6).block(TaskId(0)).is_err());
    // One that is suspended may end, too.
    driver.tell(0, 7).block(TaskId(1)).expect("it runs");
    driver.tell(0, 8).completion(TaskId(1)).expect("it has begun");
    driver.settle(&mut world, 0, 8);
    assert_eq!(driver.running(0), Some(TaskId(0)));
}

#[test]
fn a_job_that_took_the_processor_unwanted_has_begun() {
    let system = two(1, 2);
    let mut driver = driver(Machine::new(&system).expect("priorities"), &system);
    let mut world = Virtual::new(2, &[(0, 0, 9), (0, 1, 9)], &[]);
    let Ok(()) = driver.instant(&mut world, 0, 0);
    assert_eq!((driver.wanted(0), driver.running(0)), (Some(TaskId(1)), Some(TaskId(1))));
    assert!(driver.tell(0, 1).completion(TaskId(0)).is_err(), "it has not begun");
    driver.tell(0, 1).took(Some(TaskId(0)));
    // Who is wanted stays so.
    assert_eq!((driver.wanted(0), driver.running(0)), (Some(TaskId(1)), Some(TaskId(0))));
    driver.tell(0, 2).completion(TaskId(0)).expect("it had the processor");
    driver.settle(&mut world, 0, 2);
    assert_eq!((driver.wanted(0), driver.running(0)), (Some(TaskId(1)), Some(TaskId(1))));
    assert_eq!(driver.machine().check(), Ok(()));
}

#[test]
fn whoever_never_got_the_processor_does_not_keep_it() {
    let mut draft = two(1, 2).to_draft();
    draft.tasks.iter_mut().for_each(|task| task.preemption = horolog_model::Preemption::NonPreemptive);
    let system = System::new(draft).expect("a right system");
    let wanted = |took: Option<Option<TaskId>>| {
        let mut driver = driver(Machine::new(&system).expect("priorities"), &system);
        let mut world = Virtual::new(2, &[(0, 0, 9)], &[]);
        let Ok(()) = driver.instant(&mut world, 0, 0);
        if let Some(task) = took {
            driver.tell(0, 1).took(task);
        }
        world.jobs.push_back((2, 1, 9));
        let Ok(()) = driver.instant(&mut world, 0, 2);
        assert_eq!(driver.machine().check(), Ok(()));
        driver.wanted(0)
    };
    // Not preemptible, it goes on; where nobody had the processor meanwhile, the choice is free.
    assert_eq!(wanted(None), Some(TaskId(0)));
    assert_eq!(wanted(Some(Some(TaskId(0)))), Some(TaskId(0)));
    assert_eq!(wanted(Some(None)), Some(TaskId(1)));
}

#[test]
fn a_choice_that_is_as_good_is_taken_over() {
    let mut draft = two(1, 2).to_draft();
    draft.tasks.iter_mut().for_each(|task| task.priority = Some(Priority::new(1)));
    let system = System::new(draft).expect("a right system");
    let mut driver = driver(Machine::new(&system).expect("priorities"), &system);
    let mut world = Virtual::new(2, &[(0, 0, 9), (0, 1, 9)], &[]);
    let Ok(()) = driver.instant(&mut world, 0, 0);
    assert_eq!(driver.wanted(0), Some(TaskId(0)));
    driver.tell(0, 1).chose(TaskId(1));
    driver.settle(&mut world, 0, 1);
    assert_eq!((driver.wanted(0), driver.running(0)), (Some(TaskId(1)), Some(TaskId(1))));
    assert_eq!(driver.machine().check(), Ok(()));
    // One that is not ready cannot have been chosen.
    driver.tell(0, 2).completion(TaskId(1)).expect("it runs");
    driver.tell(0, 2).chose(TaskId(1));
    driver.settle(&mut world, 0, 2);
    assert_eq!(driver.wanted(0), Some(TaskId(0)));
}

#[test]
fn a_choice_that_changes_nothing_tells_nothing() {
    let system = deferrable();
    let mut world = Virtual::new(2, &[(0, 0, 9), (2, 1, 2)], &[]);
    let mut driver = driver(Machine::new(&system).expect("a valid system"), &system);
    let Ok(reached) = driver.run(&mut world, 0, 4);
    // At 2 a less important job came, and the same one goes on: two units were asked for, and the end of the budget stays at 4.
    assert_eq!((reached.last, reached.next, driver.is_due(0)), (2, 4, false));
    assert_eq!((driver.untold(0), driver.machine().tally(ServerId(0)).consumed), (2, Span::ZERO));
    assert_eq!((driver.running(0), driver.allowance(0)), (Some(TaskId(0)), 2));
}

#[test]
fn whoever_wants_no_notes_has_them_counted() {
    let system = deferrable();
    let notes = |wants: bool| {
        let mut world = Virtual::new(2, &[(0, 0, 9)], &[]);
        let mut driver = driver(Machine::new(&system).expect("a valid system"), &system);
        let Ok(_) = if wants {
            driver.run(&mut One::<true>(&mut world), 0, 50)
        } else {
            driver.run(&mut One::<false>(&mut world), 0, 50)
        };
        assert_eq!(world.log.last().map(String::as_str), Some("21 TaskId(0) ends"));
        let taken = world.log.iter().filter(|line| line.contains("ServerId")).count();
        (taken, world.counted)
    };
    // The budget of 4 ends at 4 and 14 and comes back at 10 and 20.
    assert_eq!((notes(true), notes(false)), ((4, 0), (0, 4)));
}

/// The soft job begins at 0, and at 1 it is told that up to `more` was executed beyond what was told; what is learnt of its budget then.
fn doubted(more: u64, learnt: Option<u64>) -> (Driver, Virtual) {
    let system = deferrable();
    let mut world = Virtual::new(2, &[(0, 0, 9), (0, 1, 9)], &[]);
    let mut driver = driver(Machine::new(&system).expect("a valid system"), &system);
    let Ok(()) = driver.instant(&mut world, 0, 0);
    driver.report(&mut world, 0, 1);
    assert_eq!((driver.running(0), driver.allowance(0)), (Some(TaskId(0)), 3));
    let doubt = Doubt { more: Span::from_ns(more), overdraw: Span::ZERO };
    assert_eq!(driver.doubt(0, 1, doubt), more > 0);
    assert_eq!((driver.is_due(0), driver.allowance(0)), (true, u64::MAX), "it is not counted down");
    if let Some(budget) = learnt {
        driver.learn(ServerId(0), budget, 1);
    }
    driver.settle(&mut world, 0, 1);
    (driver, world)
}

#[test]
fn a_budget_in_doubt_is_counted_down_again_from_what_a_record_says() {
    let end = |more, learnt| {
        let (mut driver, mut world) = doubted(more, learnt);
        let allowance = driver.allowance(0);
        let Ok(_) = driver.run(&mut world, 0, 9);
        (allowance, driver.machine().check(), world.log.into_iter().find(|line| line.contains("Exhausted")))
    };
    let ends = |allowance: u64| {
        let (at, consumed) = (1 + allowance, 1 + allowance);
        let line = format!("{at} Exhausted {{ server: ServerId(0), consumed: Span({consumed}) }}");
        (allowance, Ok(()), Some(line))
    };
    // Where nothing more can have been executed it goes on as it was.
    assert_eq!(end(0, None), ends(3));
    assert_eq!(end(2, None), (u64::MAX, Ok(()), None));
    assert_eq!(end(2, Some(2)), ends(2));
    assert_eq!(end(2, Some(1)), ends(1));
    // What is known already is not learnt.
    assert_eq!(end(0, Some(1)), ends(3));
    // At the start of a period it is full, whatever was executed.
    let (mut driver, mut world) = doubted(2, None);
    let Ok(_) = driver.run(&mut world, 0, 11);
    assert_eq!((driver.is_known(0, 10), world.log.last()), (true, Some(&"9 Some(TaskId(1))".to_owned())));
}

#[test]
fn what_stands_above_a_budget_in_doubt_is_in_doubt_as_long() {
    let text = "[system]\nname = \"nested\"\n[[task]]\nname = \"a\"\nseparation = \"1 ns\"\nwcet = \"1 ns\"\npriority = 1\n\
                [[scheduler]]\nname = \"outer\"\nkind = \"deferrable\"\nbudget = \"8 ns\"\nperiod = \"30 ns\"\npriority = \
                9\norder = \"fixed-priority\"\nlow_priority = \"none\"\ntasks = []\n[[scheduler]]\nname = \"inner\"\nparent = \
                \"outer\"\nkind = \"deferrable\"\nbudget = \"5 ns\"\nperiod = \"40 ns\"\npriority = 9\norder = \
                \"fixed-priority\"\nlow_priority = \"none\"\ntasks = [\"a\"]\n";
    let (system, _) = horolog_model::file::read(text, "nested.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let fresh = driver(Machine::new(&system).expect("a valid system"), &system);
    // The outer one is known at 30 and the inner one at 40; where the doubt is spread between, the outer one waits for 60.
    for (spread, known) in [(None, 40), (Some(29), 40), (Some(35), 60), (Some(39), 60), (Some(40), 40)] {
        let mut driver = fresh.clone();
        let span = Span::from_ns;
        assert!(driver.begin_anew(&fresh, 7, Doubt { more: span(3), overdraw: span(2) }));
        if let Some(at) = spread {
            driver.spread_doubt(0, at, 2);
        }
        let found = (40..200).find(|&now| driver.is_known(0, now));
        assert_eq!((driver.is_known(0, 39), found), (false, Some(known)), "{spread:?}");
    }
}

#[test]
fn a_run_of_several_processors_ends_where_one_of_them_says_so() {
    let lines = [0, 1].map(|cpu| format!("name = \"t{cpu}\"; cpu = {cpu}; priority = 1; {TASK}"));
    let system = system("[platform]\ncpus = 2", &[&lines[0], &lines[1]]);
    let processors = [0, 1].map(ProcessorIndex);
    let mut driver = Driver::new(Machine::new(&system).expect("priorities"), &system, processors.into_iter());
    let mut worlds =
        Several(vec![Virtual::new(2, &[(0, 0, 2), (4, 0, 3)], &[]), Virtual::new(2, &[(20, 1, 1)], &[])]);
    worlds.0[0].ends_at = 4;
    let Ok(reached) = driver.run_all(&mut worlds, 100);
    assert_eq!((reached.last, reached.is_ended), (4, true));
    assert_eq!(worlds.0[0].log.last().map(String::as_str), Some("4 Some(TaskId(0))"));
    assert!(worlds.0[1].log.is_empty());
    // The next one goes on from there.
    let Ok(reached) = driver.run_all(&mut worlds, 100);
    assert_eq!((reached.last, reached.is_ended), (21, false));
    assert_eq!(worlds.0[0].log.last().map(String::as_str), Some("7 TaskId(0) ends"));
    assert_eq!(worlds.0[1].log, ["20 Some(TaskId(1))", "21 TaskId(1) ends"]);
}

#[test]
fn a_job_of_a_cluster_gets_the_processor_that_is_ready_first() {
    let mut draft = two(1, 2).to_draft();
    draft.platform.cpus = horolog_model::Cpus::Count(2);
    draft.clusters = vec![horolog_model::Cluster {
        name: "both".to_owned(),
        cpus: vec![horolog_model::CpuId(0), horolog_model::CpuId(1)],
        order: horolog_model::Order::FixedPriority,
        tasks: vec!["t1".to_owned(), "t2".to_owned()],
    }];
    let system = System::new(draft).expect("a right system");
    // Whichever it is told on.
    for told_on in [0, 1] {
        for (ready, expected) in [([10, 5], 1), ([5, 10], 0)] {
            let processors = [0, 1].map(ProcessorIndex);
            let mut driver =
                Driver::new(Machine::new(&system).expect("priorities"), &system, processors.into_iter());
            let mut worlds = Several(vec![Virtual::new(2, &[], &[]), Virtual::new(2, &[], &[])]);
            worlds.0[told_on].jobs.push_back((0, 0, 30));
            (worlds.0[0].ready_at, worlds.0[1].ready_at) = (ready[0], ready[1]);
            let Ok(_) = driver.run_all(&mut worlds, 20);
            let log: Vec<&[String]> = worlds.0.iter().map(|world| &world.log[..]).collect();
            assert_eq!(log[expected], ["5 Some(TaskId(0))"], "told on {told_on}, ready at {ready:?}");
            assert!(log[1 - expected].is_empty(), "told on {told_on}, ready at {ready:?}");
        }
    }
}
