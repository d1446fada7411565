//! What runs beside the machine: from when on a job is wanted, whose fault a stretch is, which budgets come back when.

use crate::traces::*;
use horolog_model::{Preemption, System};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, NO_JOB, Record};
use horolog_verify::Class::{CannotTell, MachineDisturbed, ModelViolated, ScheduleDiffers};
use horolog_verify::{Bound, Check, Verification};

fn read(text: &str) -> System {
    let text = format!("[system]\nname = \"beside\"\n[platform]\ncpus = 1\n{text}");
    horolog_model::file::read(&text, "beside.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

/// "hard" of 20 ms and "soft" of 20 ms behind a server of these keys.
fn served(server: &str) -> System {
    read(&format!(
        "[[task]]\nname = \"hard\"\nperiod = \"100 ms\"\nwcet = \"20 ms\"\npriority = 1\n[[task]]\nname = \"soft\"\nseparation = \
         \"50 ms\"\nwcet = \"20 ms\"\n[[server]]\nname = \"server\"\ntasks = [\"soft\"]\n{server}"
    ))
}

const DEFERRABLE: &str = "kind = \"deferrable\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 2\n";
/// What a stretch beside a server may last: the time stamps' tolerance and that of a budget.
const ALLOWED: u64 = 120 * US;

fn stretches(result: &Verification) -> (u64, u64, u64) {
    let one = &result.processors[0];
    (one.divergences, one.disturbed, one.short)
}

fn differs(result: &Verification, task: usize) -> u64 {
    let unjudged = result.tasks[task].unjudged.iter();
    unjudged.filter(|one| one.reason == "the schedule differs").map(|one| one.jobs).sum()
}

/// "hard" is released at 1 ms on an idle processor, and its thread wakes so much later.
fn noticed(later: u64) -> Verification {
    noticed_with(later, &[])
}

fn noticed_with(later: u64, bounds: &[Bound]) -> Verification {
    let mut records = vec![switch(0, 0, 0), at(MS, Kind::Release, 0, 0, MS), wakeup(MS + later, 1)];
    records.push(switch(MS + later, 0, 1));
    records.extend(&run(MS + later, 0, 0, MS)[1..]);
    records.push(switch(2 * MS + later, 1, 0));
    measured(&served(DEFERRABLE), bounds, &records)
}

/// Where the agent decides a job is wanted from its release on, whenever its thread wakes.
#[test]
fn beside_a_server_a_job_is_wanted_from_its_release_on() {
    assert_eq!(stretches(&noticed(ALLOWED)), (0, 0, 1));
    assert_eq!(stretches(&noticed(ALLOWED + 1)), (1, 0, 0));
}

/// Up to 100 us beyond what is allowed are the machine's, and the job keeps its schedule.
#[test]
fn a_divergence_by_a_little_is_the_machines() {
    let inside = noticed(ALLOWED + 100 * US);
    assert_eq!((classes(&inside, Check::Divergence), differs(&inside, 0)), (vec![MachineDisturbed], 0));
    let outside = noticed(ALLOWED + 100 * US + 1);
    assert_eq!((classes(&outside, Check::Divergence), differs(&outside, 0)), (vec![ScheduleDiffers], 1));
    // So it is with a job that is late through it: a disturbance like another, or a schedule of which no replay says anything.
    let late = |later: u64| {
        let result = noticed_with(later, &[bound(0, MS)]);
        classes(&result, Check::Response)
    };
    assert!(!late(ALLOWED + 100 * US).contains(&ScheduleDiffers));
    assert_eq!(late(ALLOWED + 100 * US + 1), [ScheduleDiffers]);
}

/// The budget of a deferrable server comes back with its period, whether or not a record says so: from then on its job is wanted.
#[test]
fn a_budget_that_comes_back_between_records_begins_a_stretch() {
    let make = |late: u64| {
        let back = 10 * MS + late;
        let records = [
            at(5 * MS, Kind::Release, 1, 0, 5 * MS),
            at(5 * MS, Kind::Start, 1, 0, 0),
            at(5 * MS, Kind::Release, 0, 0, 5 * MS),
            at(6 * MS, Kind::Preempt, 1, 0, 0),
            Record { extra: MS, job: NO_JOB, ..at(6 * MS, Kind::BudgetExhausted, 1, 0, 0) },
            at(6 * MS, Kind::Start, 0, 0, 0),
            at(back, Kind::Preempt, 0, 0, 0),
            at(back, Kind::Resume, 1, 0, 0),
            at(back + 500 * US, Kind::Completion, 1, 0, 1_500 * US),
            at(back + 500 * US, Kind::Resume, 0, 0, 0),
            at(back + MS, Kind::Completion, 0, 0, 4_500 * US + late),
        ];
        stretches(&measured(&served(DEFERRABLE), &[], &records))
    };
    assert_eq!(make(0), (0, 0, 0));
    assert_eq!(make(ALLOWED), (0, 0, 1));
    assert_eq!(make(ALLOWED + 1), (1, 0, 0));
}

/// A budget may come back at the start and at each multiple of its period, as far as the time stamps tell.
#[test]
fn a_budget_comes_back_once_a_period_and_once_at_the_start() {
    let make = |third: u64| {
        let back = |time| Record { extra: MS, job: NO_JOB, ..at(time, Kind::BudgetReplenished, 1, 0, 0) };
        let mut records = vec![back(0), back(10 * MS), back(third)];
        records.extend(run(30 * MS, 0, 0, MS));
        classes(&measured(&served(DEFERRABLE), &[], &records), Check::Budget)
    };
    assert_eq!(make(20 * MS - 20 * US), []);
    assert_eq!(make(20 * MS - 20 * US - 1), [ModelViolated]);
}

/// Soft jobs that take more than their budget explain an answer of a hard job that is too late by no more than that.
#[test]
fn a_server_beyond_its_budget_explains_a_late_answer() {
    let polling = "kind = \"polling\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 2\n";
    // In a window: a budget, overdrawn twice by 0.1 ms, and the time stamps' tolerance for two releases.
    let allowed = MS + 240 * US;
    let over = 50 * US;
    let length = allowed + over;
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(length, Kind::Completion, 1, 0, length),
        at(length, Kind::Start, 0, 0, 0),
        at(length + MS, Kind::Completion, 0, 0, MS),
    ];
    for (bound_of, is_model) in [(length + MS - over, true), (length + MS - over - 1, false)] {
        let result = measured(&served(polling), &[bound(0, bound_of)], &records);
        let late = result.findings.iter().find(|one| one.check == Check::Response).expect("it is late");
        let evidence = late.evidence.iter().find(|one| one.what == "a server beyond its budget");
        assert_eq!(evidence.map(|one| one.amount_ns), Some(Span::from_ns(over)), "{:#?}", late.evidence);
        if is_model {
            assert_eq!(late.class, ModelViolated);
        }
    }
}

/// Where less than what is on record is known of a window no disturbance is accused, whatever the processor looks like made again.
#[test]
fn beside_a_server_a_late_job_with_a_hidden_switch_tells_nothing() {
    let system = read(
        "[[task]]\nname = \"high\"\nperiod = \"100 ms\"\nwcet = \"1.5 ms\"\npriority = 1\n[[task]]\nname = \"soft\"\nseparation = \"50 \
         ms\"\nwcet = \"20 ms\"\n[[server]]\nname = \"server\"\ntasks = [\"soft\"]\nkind = \"deferrable\"\nbudget = \"1 ms\"\nperiod = \
         \"10 ms\"\npriority = 2\n",
    );
    // "burst" takes 10 us, so that "soft" comes before the end of "high"; before that 5 us more are another thread's by the last switch alone.
    let late = |from: u64| {
        let (begin, soft) = (8_500 * US, 10 * MS);
        let end = soft + MS + 15 * US;
        let records = [
            switch(0, 0, 0),
            wakeup(begin, 1),
            at(begin, Kind::Release, 0, 0, begin),
            switch(begin, 0, 1),
            at(begin, Kind::Start, 0, 0, 0),
            switch(8_600 * US, 1, 3),
            switch(8_605 * US, from, 1),
            switch(9 * MS, 1, 3),
            switch(9 * MS + 10 * US, 3, 1),
            wakeup(soft, 2),
            at(soft, Kind::Release, 1, 0, soft),
            switch(soft, 1, 2),
            at(soft, Kind::Start, 1, 0, 0),
            at(soft + MS, Kind::Completion, 1, 0, MS),
            switch(soft + MS, 2, 1),
            at(end, Kind::Completion, 0, 0, 1_500 * US),
            switch(end, 1, 0),
        ];
        classes(&measured(&system, &[bound(0, 1_600 * US)], &records), Check::Response)
    };
    assert_eq!((late(3), late(4)), (vec![MachineDisturbed], vec![CannotTell]));
}

/// A release that the overrun policy skips does not take place: the machine wants no job for it.
#[test]
fn a_skipped_release_beside_a_server_is_no_job() {
    let system = read(
        "[[task]]\nname = \"hard\"\nperiod = \"50 ns\"\noffset = \"0 ns\"\nwcet = \"10 ns\"\npriority = 1\noverrun = \"skip\"\nexecution = \
         { jobs = [\"15 ns\", \"5 ns\"] }\n[[task]]\nname = \"soft\"\nseparation = \"100 ns\"\nwcet = \"10 ns\"\n[[server]]\nname = \
         \"server\"\ntasks = [\"soft\"]\nkind = \"deferrable\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 2\n",
    );
    let mut records = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(400)), ..SimOptions::default() };
    simulate(&system, &options, &mut records).expect("it can be simulated");
    assert!(records.iter().any(|record| record.kind == Kind::Skip));
    let result = simulated(&system, &[], &records);
    assert_eq!(classes(&result, Check::ServerDecision), [], "{:#?}", result.findings);
    assert_eq!(stretches(&result), (0, 0, 0));
}

/// After a loss jobs are known where each task has started one that was seen, and budgets at the first instant without jobs after
/// the multiple of the period with which they come back: all before is not judged, and nothing else.
#[test]
fn a_server_is_judged_from_the_instant_on_at_which_its_budget_is_known() {
    let system = read(
        "[[task]]\nname = \"hard\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"5 ns\"\npriority = 1\n[[task]]\nname = \
         \"soft\"\narrivals = [\"30 ns\", \"625 ns\"]\nwcet = \"10 ns\"\n[[server]]\nname = \"server\"\ntasks = [\"soft\"]\nkind = \
         \"deferrable\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 2\n",
    );
    let mut records = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(1_000)), ..SimOptions::default() };
    simulate(&system, &options, &mut records).expect("it can be simulated");
    let place = records.partition_point(|record| record.time.as_ns() < 252);
    records.insert(place, kernel(252, Kind::Lost, 1, 0));
    let result = simulated(&system, &[], &records);
    assert_eq!(result.findings, []);
    assert_eq!(result.processors[0].not_judged_ns, Span::from_ns(705 - 252));
}

/// What a job lost where it may not be preempted is one instant: what is found of the next one is found by itself.
#[test]
fn a_lost_processor_names_no_divergence_that_begins_later() {
    let system = long(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive);
    let make = |again: u64| {
        let (low, high) = (MS, MS + 10 * US);
        let records = [
            switch(0, 0, 0),
            wakeup(low, 2),
            at(low, Kind::Release, 1, 0, low),
            switch(low, 0, 2),
            at(low, Kind::Start, 1, 0, 0),
            wakeup(high, 1),
            at(high, Kind::Release, 0, 0, high),
            // Within the time stamps' tolerance of each other, so that "high" may have been the choice.
            switch(2 * MS, 2, 1),
            at(2 * MS, Kind::Start, 0, 0, 0),
            switch(again, 1, 2),
            at(3 * MS, Kind::Completion, 1, 0, 2 * MS),
            switch(3 * MS, 2, 1),
            at(4 * MS, Kind::Completion, 0, 0, MS),
            switch(4 * MS, 1, 0),
        ];
        let result = measured(&system, &[], &records);
        (classes(&result, Check::NonPreemption).len(), classes(&result, Check::Divergence).len())
    };
    assert_eq!(make(2 * MS + 1), (1, 1));
}

/// An interrupt explains as much of a stretch as it took, whatever else is on record within it.
#[test]
fn a_record_within_an_interrupt_does_not_end_it() {
    let length = 40 * US;
    let make = |late: u64| {
        let (low, high) = (5 * MS, 8 * MS);
        let given = high + late;
        let records = [
            at(low, Kind::Release, 1, 0, low),
            wakeup(low, 2),
            switch(low, 0, 2),
            at(low, Kind::Start, 1, 0, 0),
            at(high, Kind::Release, 0, 0, high),
            wakeup(high, 1),
            kernel(high + US, Kind::InterruptEntry, 36, 0),
            kernel(high + 2 * US, Kind::KernelBlock, 3, u64::from(b'S')),
            kernel(high + US + length, Kind::InterruptExit, 36, 0),
            at(given, Kind::Start, 0, 0, 0),
            switch(given, 2, 1),
            at(given + MS, Kind::Completion, 0, 0, MS),
            switch(given + MS, 1, 2),
            at(given + 2 * MS, Kind::Completion, 1, 0, 4 * MS + late),
            switch(given + 2 * MS, 2, 0),
        ];
        stretches(&measured(&long(nothing), &[], &records))
    };
    assert_eq!(make(20 * US + length), (0, 1, 0));
    assert_eq!(make(20 * US + length + 1), (1, 0, 0));
}

/// One task that cannot be preempted is enough for the agent to decide: then a job is wanted from its release on.
#[test]
fn beside_a_task_without_preemption_a_job_is_wanted_from_its_release_on() {
    let make = |is_kernels: bool, later: u64| {
        let system = long(|draft| {
            if !is_kernels {
                draft.tasks[1].preemption = Preemption::NonPreemptive;
            }
        });
        let mut records = vec![switch(0, 0, 0), at(MS, Kind::Release, 0, 0, MS), wakeup(MS + later, 1)];
        records.push(switch(MS + later, 0, 1));
        records.extend(&run(MS + later, 0, 0, MS)[1..]);
        records.push(switch(2 * MS + later, 1, 0));
        stretches(&measured(&system, &[], &records))
    };
    assert_eq!((make(false, 20 * US), make(false, 20 * US + 1)), ((0, 0, 1), (1, 0, 0)));
    assert_eq!(make(true, 20 * US + 1), (0, 0, 0));
}

/// An overrun policy that acts at an instant of which nothing else is on record is held against its rules, too.
#[test]
fn an_overrun_policy_that_acts_alone_is_found() {
    let system = read(
        "[[task]]\nname = \"hard\"\nperiod = \"50 ns\"\noffset = \"0 ns\"\nwcet = \"10 ns\"\npriority = 1\n[[task]]\nname = \
         \"soft\"\narrivals = [\"20 ns\"]\nwcet = \"10 ns\"\n[[server]]\nname = \"server\"\ntasks = [\"soft\"]\nkind = \
         \"deferrable\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 2\n",
    );
    let mut records = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(200)), ..SimOptions::default() };
    simulate(&system, &options, &mut records).expect("it can be simulated");
    assert_eq!(classes(&simulated(&system, &[], &records), Check::ServerDecision), []);
    let place = records.partition_point(|record| record.time.as_ns() < 5);
    records.insert(place, Record { extra: 1, ..at(5, Kind::Enforcement, 0, 0, 0) });
    let result = simulated(&system, &[], &records);
    let said = result.findings.iter().find(|one| one.check == Check::ServerDecision);
    let message = said.map(|one| one.message.as_str());
    assert_eq!(message, Some("the overrun policy acted upon hard, which has not executed its wcet"));
}

/// A job that ends late leaves the next one of its task, which is wanted at once.
#[test]
fn of_two_jobs_of_a_task_one_ends_at_a_time() {
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(1_000, Kind::Miss, 0, 0, 1_000),
        at(1_000, Kind::Release, 0, 1, 1_000),
        at(1_100, Kind::Completion, 0, 0, 1_100),
        at(1_100, Kind::Start, 0, 1, 0),
        at(1_300, Kind::Completion, 0, 1, 200),
        at(1_300, Kind::Start, 1, 0, 0),
        at(1_800, Kind::Completion, 1, 0, 500),
    ];
    let result = simulated(&short(nothing), &[], &records);
    assert_eq!(stretches(&result), (0, 0, 0), "{:#?}", result.findings);
}

/// Of links in a run: a latch that got another value than the newest one that was due is found there, too.
#[test]
fn a_wrong_latch_in_a_run_is_found() {
    let task = |name: &str, priority: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\noffset = \"0 ms\"\nwcet = \"1 ms\"\npriority = {priority}\n"
        )
    };
    let system = read(&format!(
        "{}{}[[link]]\nname = \"x\"\nfrom = \"writer\"\nto = [\"reader\"]\n",
        task("writer", 2),
        task("reader", 1)
    ));
    let make = |latched: u64| {
        let mut records = Vec::new();
        for job in 0..3 {
            let (from, end) = (job * 10 * MS, job * 10 * MS + MS);
            let latch = if job == 2 { latched } else { job.checked_sub(1).unwrap_or(NO_JOB) };
            records.extend([
                at(from, Kind::Release, 0, job, from),
                at(from, Kind::Release, 1, job, from),
                Record { extra: latch, ..at(from, Kind::Latch, 1, job, 0) },
                at(from, Kind::Start, 0, job, 0),
                at(end, Kind::Completion, 0, job, MS),
                Record { extra: from + 10 * MS, ..at(end, Kind::Publish, 0, job, 0) },
                at(end, Kind::Start, 1, job, 0),
                at(end + MS, Kind::Completion, 1, job, MS),
            ]);
        }
        classes(&measured(&system, &[], &records), Check::Link)
    };
    assert_eq!(
        [make(1), make(0), make(2), make(NO_JOB)],
        [vec![], vec![ModelViolated], vec![ModelViolated], vec![ModelViolated]]
    );
}

/// Schedulers of equal priority whose budgets come back at one instant enter the order of their parent by the lowest tasks below them,
/// wherever they stand in the file: a run is decided so, too.
#[test]
fn budgets_that_come_back_at_once_keep_the_order_of_the_tasks() {
    let task = |name: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"100 ms\"\noffset = \"0 ms\"\nwcet = \"6 ms\"\npriority = 1\n"
        )
    };
    let scheduler = |name: &str, task: &str| {
        format!(
            "[[scheduler]]\nname = \"{name}\"\norder = \"fixed-priority\"\nkind = \"deferrable\"\nbudget = \"2 ms\"\nperiod = \"10 \
             ms\"\npriority = 5\nlow_priority = \"none\"\ntasks = [\"{task}\"]\n"
        )
    };
    for order in [["one", "two"], ["two", "one"]] {
        let schedulers = order.map(|name| scheduler(&format!("of {name}"), name)).concat();
        let system = read(&format!("{}{}{schedulers}", task("one"), task("two")));
        let mut records = Vec::new();
        let options = SimOptions { horizon: Horizon::Time(Span::from_ns(100 * MS)), ..SimOptions::default() };
        simulate(&system, &options, &mut records).expect("it can be simulated");
        let result = measured(&system, &[], &records);
        assert_eq!(stretches(&result), (0, 0, 0), "{order:?}: {:#?}", result.findings);
    }
}

/// What takes the processor after a budget has come back between records explains as much of the stretch as it took.
#[test]
fn what_takes_the_processor_explains_a_stretch_that_begins_between_records() {
    let taken = 5 * US;
    let make = |late: u64, is_interrupt: bool| {
        let (back, from) = (10 * MS + late, 10 * MS + 10 * US);
        let between = if is_interrupt {
            [kernel(from, Kind::InterruptEntry, 36, 0), kernel(from + taken, Kind::InterruptExit, 36, 0)]
        } else {
            [switch(from, 1, 3), switch(from + taken, 3, 1)]
        };
        let mut records = vec![
            switch(0, 0, 0),
            wakeup(5 * MS, 2),
            switch(5 * MS, 0, 2),
            at(5 * MS, Kind::Release, 1, 0, 5 * MS),
            at(5 * MS, Kind::Start, 1, 0, 0),
            at(5 * MS, Kind::Release, 0, 0, 5 * MS),
            at(6 * MS, Kind::Preempt, 1, 0, 0),
            Record { extra: MS, job: NO_JOB, ..at(6 * MS, Kind::BudgetExhausted, 1, 0, 0) },
            switch(6 * MS, 2, 1),
            at(6 * MS, Kind::Start, 0, 0, 0),
            between[0],
            between[1],
        ];
        records.extend([
            at(back, Kind::Preempt, 0, 0, 0),
            switch(back, 1, 2),
            at(back, Kind::Resume, 1, 0, 0),
            at(back + 500 * US, Kind::Completion, 1, 0, 1_500 * US),
            switch(back + 500 * US, 2, 1),
            at(back + 500 * US, Kind::Resume, 0, 0, 0),
            at(back + MS, Kind::Completion, 0, 0, 4_500 * US + late),
            switch(back + MS, 1, 0),
        ]);
        stretches(&measured(&served(DEFERRABLE), &[], &records))
    };
    for is_interrupt in [false, true] {
        assert_eq!(make(ALLOWED, is_interrupt), (0, 0, 1));
        assert_eq!(make(ALLOWED + 1, is_interrupt), (0, 1, 0));
        assert_eq!(make(ALLOWED + taken, is_interrupt), (0, 1, 0));
        assert_eq!(make(ALLOWED + taken + 1, is_interrupt), (1, 0, 0));
    }
}

/// A release that is told as skipped is none: whatever the reason was, the machine wants nobody for it.
#[test]
fn a_release_that_is_told_as_skipped_wants_no_processor() {
    let system = read(
        "[[task]]\nname = \"hard\"\nperiod = \"50 ns\"\noffset = \"0 ns\"\nwcet = \"10 ns\"\npriority = 1\n[[task]]\nname = \
         \"soft\"\narrivals = [\"20 ns\"]\nwcet = \"10 ns\"\n[[server]]\nname = \"server\"\ntasks = [\"soft\"]\nkind = \
         \"deferrable\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 2\n",
    );
    let mut records = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(200)), ..SimOptions::default() };
    simulate(&system, &options, &mut records).expect("it can be simulated");
    let is_it = |record: &Record| record.task == 0 && record.job == 2;
    let place = records.iter().position(is_it).expect("its release");
    let arrival = records[place].value;
    records.retain(|record| !is_it(record));
    records.iter_mut().filter(|record| record.task == 0 && record.job == 3).for_each(|record| record.job = 2);
    assert_eq!(classes(&simulated(&system, &[], &records), Check::ServerDecision), []);
    records.insert(place, Record { kind: Kind::Skip, job: NO_JOB, ..at(arrival, Kind::Skip, 0, 0, arrival) });
    assert_eq!(simulated(&system, &[], &records).findings, []);
}

/// A budget that a mode changes is held to the nanosecond on each processor that is decided again, whatever others there are.
#[test]
fn a_budget_that_a_mode_changes_is_judged_beside_another_processor() {
    for cpus in [1, 2] {
        let other =
            "[[task]]\nname = \"other\"\nperiod = \"50 ns\"\nwcet = \"5 ns\"\npriority = 3\ncpu = 1\n";
        let text = format!(
            "[system]\nname = \"beside\"\n[platform]\ncpus = {cpus}\n[[task]]\nname = \"hard\"\nperiod = \"50 ns\"\noffset = \"0 ns\"\nwcet \
             = \"10 ns\"\npriority = 1\ncpu = 0\n[[task]]\nname = \"soft\"\nseparation = \"100 ns\"\nwcet = \"10 ns\"\ncpu = 0\n{}[[server]]\nname = \
             \"server\"\ntasks = [\"soft\"]\nkind = \"deferrable\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 2\ncpu = 0\n\
             [[mode]]\nname = \"less\"\nat = [\"250 ns\"]\n[[mode.server]]\nname = \"server\"\nbudget = \"15 ns\"\nperiod = \"100 ns\"\n",
            if cpus > 1 { other } else { "" }
        );
        let (system, _) =
            horolog_model::file::read(&text, "modes.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        let mut records = Vec::new();
        let options = SimOptions { horizon: Horizon::Time(Span::from_ns(500)), ..SimOptions::default() };
        simulate(&system, &options, &mut records).expect("it can be simulated");
        let result = simulated(&system, &[], &records);
        assert_eq!(result.findings, []);
        assert!(
            !result.notes.iter().any(|note| note.contains("modes change its budget")),
            "{:?}",
            result.notes
        );
        let run = measured(&system, &[], &records);
        assert!(run.notes.iter().any(|note| note.contains("modes change its budget")), "{:?}", run.notes);
    }
}
