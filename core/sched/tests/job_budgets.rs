//! Budgets of jobs on threads (decision 0010): the machine is told how far a job is, and says when its budget is used up. To the
//! nanosecond, in a world that tells exactly that.

mod support;

use horolog_model::{System, TaskId};
use horolog_sched::{Choice, Driver, MachineBuilder, Note, OverrunAction, Progress, Tell, World};
use horolog_time::{Instant, Span};
use std::convert::Infallible;
use support::CPU;

/// A thread that is as far as the test says.
#[derive(Default)]
struct Thread {
    progress: Option<Progress>,
    completes: bool,
    releases: u32,
    /// Who was chosen last, what the policies did, and how many releases were refused.
    chosen: Option<TaskId>,
    acted: Vec<(TaskId, OverrunAction)>,
    refused: u32,
}

impl World for Thread {
    type Error = Infallible;

    fn next(&self) -> u64 {
        u64::MAX
    }

    fn ready_at(&self) -> u64 {
        0
    }

    fn ends(&self, _: u64) -> bool {
        true
    }

    fn executed(&mut self, _: u64, _: u64) -> u64 {
        0
    }

    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        if let Some(progress) = self.progress.take() {
            tell.progress(TaskId(0), progress);
        }
        if std::mem::take(&mut self.completes) {
            tell.completion(TaskId(0)).expect("it has begun");
        }
        Ok(())
    }

    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        for _ in 0..std::mem::take(&mut self.releases) {
            let told = tell.release(TaskId(0), Instant::NEVER, |_| 0);
            self.refused += u32::from(told.is_err());
        }
        Ok(())
    }

    fn overran(&mut self, _: u64, task: TaskId, action: OverrunAction) {
        self.acted.push((task, action));
    }

    fn carry_out(&mut self, _: u64, choice: Choice<'_>) {
        self.chosen = choice.task;
    }

    fn note(&mut self, _: u64, _: Note) {}

    fn goes_on(&mut self, _: u64) -> bool {
        true
    }
}

/// Segments of 30 and 40, at the least 10 and 20.
fn system(overrun: &str) -> System {
    let text = format!(
        "[system]\nname = \"test\"\n[[task]]\nname = \"a\"\nperiod = \"1 us\"\npriority = 2\npreemption = \"deferred\"\n\
         segments = [{{ wcet = \"30 ns\", bcet = \"10 ns\" }}, {{ wcet = \"40 ns\", bcet = \"20 ns\" }}]\noverrun = \"{overrun}\"\n"
    );
    horolog_model::file::read(&text, "test.toml", &[]).expect("a valid file").0
}

struct Run {
    driver: Driver,
    thread: Thread,
    now: u64,
}

impl Run {
    /// A job of "a" has the processor.
    fn begun(overrun: &str) -> Run {
        let system = system(overrun);
        let machine = MachineBuilder::new(&system).on_threads(overrun == "count").build().expect("a system");
        let mut run = Run {
            driver: Driver::new(machine, &system, std::iter::once(CPU)),
            thread: Thread::default(),
            now: 0,
        };
        run.thread.releases = 1;
        run.step();
        run
    }

    fn step(&mut self) {
        self.now += 1;
        let Ok(()) = self.driver.instant(&mut self.thread, 0, self.now);
        self.driver.machine().check().expect("what is kept is true");
    }

    fn tell(&mut self, segment: usize, executed: u64, before: u64) {
        let ns = Span::from_ns;
        let progress =
            Progress { segment, executed: ns(executed), before_segment: ns(before), tighter_wcet: None };
        self.thread.progress = Some(progress);
        self.step();
    }

    fn allowance(&self) -> u64 {
        self.driver.allowance(0)
    }
}

#[test]
fn the_allowance_ends_at_the_segment_s_wcet_and_then_where_the_policy_acts() {
    let mut run = Run::begun("skip");
    assert_eq!(run.allowance(), 30);
    run.tell(0, 29, 0);
    assert_eq!(run.allowance(), 1);
    // The job can end in time: 70 less 20.
    run.tell(0, 30, 0);
    assert_eq!((run.allowance(), run.thread.acted.len()), (20, 0));
    run.tell(0, 49, 0);
    assert_eq!((run.allowance(), run.thread.acted.len()), (1, 0));
    run.tell(1, 49, 49);
    assert_eq!((run.allowance(), run.thread.acted.len()), (21, 0));
    run.tell(1, 69, 49);
    assert_eq!((run.allowance(), run.thread.acted.len()), (1, 0));
    run.tell(1, 70, 49);
    assert_eq!((run.allowance(), &run.thread.acted[..]), (u64::MAX, &[(TaskId(0), OverrunAction::Skip)][..]));
    // Once a job.
    run.tell(1, 99, 49);
    assert_eq!((run.allowance(), run.thread.acted.len()), (u64::MAX, 1));
}

#[test]
fn the_policy_acts_where_the_job_cannot_end_in_time() {
    let mut run = Run::begun("count");
    run.tell(0, 50, 0);
    assert_eq!(run.thread.acted, [(TaskId(0), OverrunAction::Count)]);
    assert_eq!(run.thread.chosen, Some(TaskId(0)));
}

#[test]
fn a_policy_that_only_counts_has_no_budget_unless_all_are_watched() {
    let system = system("count");
    let machine = MachineBuilder::new(&system).on_threads(false).build().expect("a system");
    let mut run = Run {
        driver: Driver::new(machine, &system, std::iter::once(CPU)),
        thread: Thread::default(),
        now: 0,
    };
    run.thread.releases = 1;
    run.step();
    run.tell(0, 500, 0);
    assert_eq!((run.allowance(), run.thread.acted.len()), (u64::MAX, 0));
}

#[test]
fn one_release_is_refused_after_a_skip_and_the_next_job_has_the_whole_budget() {
    let mut run = Run::begun("skip");
    run.tell(1, 70, 30);
    run.thread.releases = 1;
    run.step();
    assert_eq!(run.thread.refused, 1);
    (run.thread.completes, run.thread.releases) = (true, 1);
    run.step();
    assert_eq!((run.thread.refused, run.thread.chosen, run.allowance()), (1, Some(TaskId(0)), 30));
    run.tell(1, 69, 30);
    assert_eq!(run.thread.acted.len(), 1);
    run.tell(1, 70, 30);
    assert_eq!(run.thread.acted.len(), 2);
}

#[test]
fn a_demoted_job_leaves_the_order_until_it_completes() {
    let mut run = Run::begun("demote");
    run.tell(0, 50, 0);
    assert_eq!((run.thread.chosen, run.thread.acted.len()), (None, 1));
    assert!(run.driver.machine().is_blocked(TaskId(0)));
    // Later jobs wait for it.
    run.thread.releases = 1;
    run.step();
    assert_eq!((run.thread.chosen, run.driver.machine().jobs(TaskId(0))), (None, 2));
    run.thread.completes = true;
    run.step();
    assert_eq!((run.thread.chosen, run.allowance()), (Some(TaskId(0)), 30));
    assert!(!run.driver.machine().is_blocked(TaskId(0)));
}

#[test]
fn a_stopped_task_keeps_the_job_that_has_begun_and_no_other() {
    let mut run = Run::begun("stop");
    run.thread.releases = 2;
    run.step();
    assert_eq!(run.driver.machine().jobs(TaskId(0)), 3);
    run.tell(0, 50, 0);
    assert_eq!((run.thread.chosen, run.driver.machine().jobs(TaskId(0))), (None, 1));
    (run.thread.completes, run.thread.releases) = (true, 2);
    run.step();
    assert_eq!((run.thread.refused, run.thread.chosen, run.driver.machine().jobs(TaskId(0))), (2, None, 0));
}

/// "a" as above, and less important ones of 50; a mode drops what "a" has.
fn two(overrun: &str) -> Run {
    let text = horolog_model::file::print(&system(overrun))
        + "\n[[task]]\nname = \"b\"\nperiod = \"1 us\"\nwcet = \"50 ns\"\npriority = 1\n\
           [[mode]]\nname = \"without\"\nactive = [\"b\"]\nleft_over = \"drop\"\n";
    let (system, _) = horolog_model::file::read(&text, "test.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let machine = MachineBuilder::new(&system).on_threads(true).build().expect("a system");
    let driver = Driver::new(machine, &system, std::iter::once(CPU));
    let mut run = Run { driver, thread: Thread::default(), now: 0 };
    run.thread.releases = 1;
    run.step();
    run
}

#[test]
fn how_far_a_job_is_that_does_not_run_changes_nothing_for_the_running_one() {
    let mut run = two("count");
    run.driver.tell(0, 1).release(TaskId(1), Instant::NEVER, |_| 0).expect("it is active");
    run.step();
    assert_eq!((run.thread.chosen, run.allowance()), (Some(TaskId(0)), 30));
    let progress = Progress { executed: Span::from_ns(45), ..Progress::default() };
    run.driver.tell(0, 2).progress(TaskId(1), progress);
    assert_eq!(run.allowance(), 30);
    // It counts as soon as it runs.
    run.thread.completes = true;
    run.step();
    assert_eq!((run.thread.chosen, run.allowance()), (Some(TaskId(1)), 5));
}

#[test]
fn a_job_that_has_begun_outlives_a_mode_that_drops_it_and_no_other_of_its_task_does() {
    let mut run = two("skip");
    run.thread.releases = 2;
    run.step();
    run.tell(0, 20, 0);
    let machine = |run: &Run| {
        let machine = run.driver.machine();
        let a = TaskId(0);
        (machine.jobs(a), machine.left_over(a), machine.is_blocked(a), machine.allowance(a).map(Span::as_ns))
    };
    assert_eq!(machine(&run), (3, 0, false, Some(10)));
    run.now += 1;
    let Ok(()) = run.driver.change_mode(&mut run.thread, 0, run.now, 1);
    // Those that wait are gone. What it may execute is what it was: nobody has ended it.
    assert_eq!(machine(&run), (1, 1, true, Some(10)));
    run.step();
    assert_eq!(run.thread.chosen, None);
    // Back in the first mode a later job waits for it, and has all of its budget.
    run.now += 1;
    let Ok(()) = run.driver.change_mode(&mut run.thread, 0, run.now, 0);
    run.thread.releases = 1;
    run.step();
    assert_eq!((machine(&run), run.thread.chosen), ((2, 1, true, Some(10)), None));
    run.thread.completes = true;
    run.step();
    assert_eq!((machine(&run), run.thread.chosen), ((1, 0, false, Some(30)), Some(TaskId(0))));
}

/// Whoever waits for what it holds would wait for a job below every task.
#[test]
fn a_job_that_holds_something_is_put_below_or_stopped_once_it_has_unlocked_all() {
    for (overrun, action) in [("demote", OverrunAction::Demote), ("stop", OverrunAction::Stop)] {
        let resources = ["bus", "disk"].map(|name| format!("[[resource]]\nname = \"{name}\"\n"));
        let section =
            |name| format!("[[task.section]]\nresource = \"{name}\"\nfrom = \"1 ns\"\nlength = \"20 ns\"\n");
        let text = horolog_model::file::print(&system(overrun))
            + &section("bus")
            + &section("disk")
            + &resources.concat();
        let (system, _) =
            horolog_model::file::read(&text, "test.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
        let machine = MachineBuilder::new(&system).on_threads(false).build().expect("a system");
        let driver = Driver::new(machine, &system, std::iter::once(CPU));
        let mut run = Run { driver, thread: Thread::default(), now: 0 };
        run.thread.releases = 1;
        run.step();
        let a = TaskId(0);
        for resource in [0, 1] {
            assert_eq!(run.driver.tell(0, run.now).lock(a, resource), Ok(true));
        }
        run.tell(0, 50, 0);
        assert_eq!((run.thread.chosen, run.thread.acted.len(), run.allowance()), (Some(a), 0, u64::MAX));
        run.driver.tell(0, run.now).unlock(a, 1).expect("it holds it");
        run.tell(0, 55, 0);
        assert_eq!((run.thread.chosen, run.thread.acted.len()), (Some(a), 0));
        run.driver.tell(0, run.now).unlock(a, 0).expect("it holds it");
        run.tell(0, 60, 0);
        assert_eq!((run.thread.chosen, &run.thread.acted[..]), (None, &[(a, action)][..]));
    }
}
