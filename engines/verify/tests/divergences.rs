//! The scheduling machine beside a processor: which stretches are divergences, and that the check of the order says the same.

use horolog_model::{Cpus, Draft, Policy, Preemption, Priority, System, Task, TaskId};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::random::Random;
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Thread};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::{
    Check, Class, Finding, Options, ProcessorVerification, Verification, Verifier, verify_records,
};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// What the time stamps of a measured trace leave open.
const STAMPS: u64 = 20 * US;

fn task(name: &str, period: u64, wcet: u64, priority: Option<i64>) -> Task {
    let arrival = horolog_model::Arrival::Periodic { period: Span::from_ns(period) };
    Task {
        bcet: Span::from_ns(1),
        priority: priority.map(Priority::new),
        ..Task::new(name, arrival, Span::from_ns(wcet))
    }
}

fn system(policy: Policy, tasks: Vec<Task>, latency: u64) -> System {
    let mut draft = Draft { name: "diverging".to_owned(), policy, tasks, ..Draft::default() };
    draft.platform.cpus = Cpus::Count(1);
    draft.platform.release_latency = (latency > 0).then(|| Span::from_ns(latency));
    System::new(draft).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// "high": 2 ms of every 10; "low": 5 ms of every 20.
fn two(policy: Policy, latency: u64) -> System {
    let number = |number| (policy == Policy::FixedPriority).then_some(number);
    let tasks = vec![task("high", 10 * MS, 2 * MS, number(2)), task("low", 20 * MS, 5 * MS, number(1))];
    system(policy, tasks, latency)
}

fn at(time: u64, kind: Kind, task: u32, job: u64, value: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task, job, value, extra: 0 }
}

fn kernel(time: u64, kind: Kind, value: u64, extra: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task: NO_TASK, job: NO_JOB, value, extra }
}

/// Threads: 0 idle, 1 and 2 the tasks', 3 a foreign one, 4 horolog's agent.
fn switch(time: u64, from: u64, to: u64) -> Record {
    kernel(time, Kind::KernelSwitch, from, to)
}

fn wakeup(time: u64, thread: u64) -> Record {
    kernel(time, Kind::KernelWakeup, thread, 0)
}

fn header(system: &System, backend: &str) -> Header {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    header
}

fn measured(system: &System, records: &[Record]) -> Verification {
    measured_on(system, &header(system, "linux"), records)
}

fn measured_on(system: &System, header: &Header, records: &[Record]) -> Verification {
    let mut verifier = Verifier::new(system, &[], header, &Options::default()).expect("it can be verified");
    let thread = |id: u32, comm: &str, task| Thread {
        id: id.into(),
        tid: id,
        comm: comm.to_owned(),
        task,
        process: None,
    };
    verifier.set_threads(&[
        thread(0, "swapper/0", None),
        thread(1, "high", Some(0)),
        thread(2, "low", Some(1)),
        thread(3, "burst", None),
        thread(4, "horolog/0", None),
    ]);
    records.iter().for_each(|record| verifier.take(record));
    verifier.finish(0, None, Vec::new())
}

fn one(result: &Verification) -> &ProcessorVerification {
    &result.processors[0]
}

fn divergences(result: &Verification) -> Vec<&Finding> {
    result.findings.iter().filter(|one| one.check == Check::Divergence).collect()
}

/// What the check of the order found.
fn of_order(result: &Verification) -> usize {
    let is_order = |one: &&Finding| {
        matches!(
            one.check,
            Check::PriorityInversion
                | Check::EarliestDeadlineFirst
                | Check::FirstInFirstOut
                | Check::WorkConservation
        )
    };
    result.findings.iter().filter(is_order).count()
}

/// (divergences, disturbed, short)
fn counts(result: &Verification) -> (u64, u64, u64) {
    (one(result).divergences, one(result).disturbed, one(result).short)
}

/// The same once more every 20 ms.
fn late_switch(number: u64, late: u64) -> [Record; 12] {
    let from = number * 20 * MS;
    let (begun, released, given) = (from + 5 * MS, from + 8 * MS, from + 8 * MS + late);
    [
        at(begun, Kind::Release, 1, number, begun),
        wakeup(begun, 2),
        switch(begun, 0, 2),
        at(begun, Kind::Start, 1, number, 0),
        at(released, Kind::Release, 0, number, released),
        wakeup(released, 1),
        at(given, Kind::Start, 0, number, 0),
        switch(given, 2, 1),
        at(given + MS, Kind::Completion, 0, number, MS),
        switch(given + MS, 1, 2),
        at(given + 2 * MS, Kind::Completion, 1, number, 3 * MS + late),
        switch(given + 2 * MS, 2, 0),
    ]
}

/// "low" runs from 5 ms; "high" is released at 8 ms, and gets the processor `late` after that. The kernel's record shows the switch,
/// and whatever else `during` has.
fn served_late(system: &System, late: u64, during: &[Record]) -> Verification {
    let mut records = late_switch(0, late).to_vec();
    records.extend(during);
    records.sort_by_key(|record| record.time);
    measured(system, &records)
}

#[test]
fn a_switch_may_take_the_latency_and_the_time_stamps_tolerance_and_no_more() {
    for policy in [Policy::FixedPriority, Policy::Edf] {
        for latency in [0, 30 * US] {
            let system = two(policy, latency);
            let allowed = latency + STAMPS;
            let inside = served_late(&system, allowed, &[]);
            assert_eq!(counts(&inside), (0, 0, 1), "{policy:?}");
            assert_eq!(one(&inside).short_ns_max, Some(Span::from_ns(allowed)));
            assert_eq!(one(&inside).longest_ns, Some(Span::from_ns(allowed)));
            let outside = served_late(&system, allowed + 1, &[]);
            assert_eq!(counts(&outside), (1, 0, 0), "{policy:?}");
            assert_eq!(one(&outside).longest_ns, Some(Span::from_ns(allowed + 1)));
            // What the check of the order has found is one finding.
            assert_eq!((of_order(&outside), divergences(&outside).len()), (1, 0), "{:#?}", outside.findings);
        }
    }
}

/// So many switches, the first of them later than allowed by as much as said.
fn on_a_virtual_machine(lates: &[u64], switches: u64) -> Verification {
    let mut system = two(Policy::Edf, 0).to_draft();
    system.tasks[0].arrival = horolog_model::Arrival::Periodic { period: Span::from_ns(20 * MS) };
    let system = System::new(system).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut head = header(&system, "linux");
    head.machine.insert("tick_hz".to_owned(), "250".to_owned());
    head.machine.insert("virtual".to_owned(), "yes".to_owned());
    let late = |number: u64| lates.get(number as usize).map_or(1, |late| STAMPS + late);
    let records: Vec<Record> = (0..switches).flat_map(|number| late_switch(number, late(number))).collect();
    measured_on(&system, &head, &records)
}

#[test]
fn a_rare_pause_of_a_virtual_machine_that_leaves_no_trace_is_no_divergence() {
    // A quarter of a tick, in one of a hundred stretches, one at least.
    assert_eq!(counts(&on_a_virtual_machine(&[MS], 1)), (0, 1, 0));
    assert_eq!(counts(&on_a_virtual_machine(&[MS + 1], 1)), (1, 0, 0));
    assert_eq!(counts(&on_a_virtual_machine(&[MS, MS], 200)), (2, 0, 198));
    assert_eq!(counts(&on_a_virtual_machine(&[MS, MS], 202)), (0, 2, 200));
    assert_eq!(counts(&on_a_virtual_machine(&[MS; 100], 4_000)), (100, 0, 3_900));
    let said = on_a_virtual_machine(&[MS], 1).notes;
    assert!(
        said.iter().any(|note| note.starts_with("cpu 0: 1 stretches beside the scheduling machine")),
        "{said:?}"
    );
}

#[test]
fn what_the_trace_shows_to_have_taken_the_processor_is_no_divergence() {
    let system = two(Policy::FixedPriority, 30 * US);
    let allowed = 50 * US;
    // An interrupt of 40 us while "high" waits explains as much and no more.
    let interrupt = [
        kernel(8 * MS + 5 * US, Kind::InterruptEntry, 36, 0),
        kernel(8 * MS + 45 * US, Kind::InterruptExit, 36, 0),
    ];
    let with = |late, during: &[Record]| counts(&served_late(&system, late, during));
    assert_eq!(with(allowed + 40 * US, &interrupt), (0, 1, 0));
    assert_eq!(with(allowed + 40 * US + 1, &interrupt), (1, 0, 0));
    // So do stolen time, whose account may come 250 ms later, and a thread outside the model.
    let steal = |after: u64| [kernel(8 * MS + allowed + 40 * US + after, Kind::Steal, 40 * US, 260 * MS)];
    let last = 250 * MS;
    assert_eq!(with(allowed + 40 * US, &steal(last)), (0, 1, 0));
    assert_eq!(with(allowed + 40 * US, &steal(last + 1)), (1, 0, 0));
    let foreign = [switch(8 * MS + 5 * US, 2, 3), switch(8 * MS + 45 * US, 3, 2)];
    assert_eq!(with(allowed + 40 * US, &foreign), (0, 1, 0));
    assert_eq!(with(allowed + 40 * US + 1, &foreign), (1, 0, 0));
    // A simulation is disturbed by nothing.
    let sim = verify_records(
        &two(Policy::FixedPriority, 0),
        &[],
        &header(&system, "sim"),
        &[
            at(0, Kind::Release, 0, 0, 0),
            kernel(0, Kind::InterruptEntry, 0, 0),
            kernel(10, Kind::InterruptExit, 0, 0),
            at(10, Kind::Start, 0, 0, 0),
            at(20, Kind::Completion, 0, 0, 10),
        ],
        &Options::default(),
    );
    assert_eq!(counts(&sim.expect("it can be verified")), (1, 0, 0));
}

#[test]
fn a_timer_that_goes_off_late_is_the_machines_where_the_agent_waits_for_it() {
    // Under EDF the agent notices a release. Its timer interrupt comes 200 us late.
    let system = two(Policy::Edf, 30 * US);
    let timer = |at: u64| [kernel(at, Kind::InterruptEntry, 236, 1), kernel(at, Kind::InterruptExit, 236, 1)];
    let with = |late: u64, timer_at: u64| counts(&served_late(&system, late, &timer(8 * MS + timer_at)));
    assert_eq!(with(250 * US, 200 * US), (0, 1, 0));
    assert_eq!(with(250 * US + 1, 200 * US), (1, 0, 0));
    // One that came in between has shown that timers went off.
    assert_eq!(with(250 * US, 1), (1, 0, 0));
    // Where the kernel schedules, the release counts from the thread's wake-up.
    let system = two(Policy::FixedPriority, 30 * US);
    let by_kernel = served_late(&system, 250 * US, &timer(8 * MS + 200 * US));
    assert_eq!(counts(&by_kernel), (1, 0, 0));
}

/// A soft job that a server lets run has the processor; "high" should have had it `length` before its end.
fn served(length: u64) -> Verification {
    let text = "[system]\nname = \"served\"\n[[task]]\nname = \"high\"\nperiod = \"50 ms\"\nwcet = \"5 ms\"\npriority = 9\n\
                [[task]]\nname = \"low\"\nseparation = \"20 ms\"\nwcet = \"9 ms\"\n[[server]]\nname = \"s\"\nkind = \
                \"deferrable\"\nbudget = \"9 ms\"\nperiod = \"50 ms\"\npriority = 5\ntasks = [\"low\"]\n";
    let (system, _) = horolog_model::file::read(text, "served.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let records = [
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(MS, Kind::Release, 0, 0, MS),
        at(MS + length, Kind::Preempt, 1, 0, 0),
        at(MS + length, Kind::Start, 0, 0, 0),
        at(3 * MS + length, Kind::Completion, 0, 0, 2 * MS),
        at(3 * MS + length, Kind::Resume, 1, 0, 0),
        at(4 * MS + length, Kind::Completion, 1, 0, 2 * MS + length),
    ];
    measured(&system, &records)
}

#[test]
fn a_served_job_that_runs_on_while_a_more_important_one_waits_is_found() {
    // The end of a budget is noticed within 100 us.
    let allowed = STAMPS + 100 * US;
    assert_eq!(counts(&served(allowed)), (0, 0, 1));
    let found = served(allowed + 1);
    assert_eq!(counts(&found), (1, 0, 0));
    // The check of the order has found it, too.
    assert_eq!((of_order(&found), divergences(&found).len()), (1, 0), "{:#?}", found.findings);
}

/// What a served job executes while another one should run is charged to its budget all the same.
#[test]
fn after_a_difference_the_machine_goes_on_from_what_is() {
    let text = "[system]\nname = \"served\"\n[[task]]\nname = \"high\"\nperiod = \"50 ms\"\nwcet = \"5 ms\"\npriority = 1\n\
                [[task]]\nname = \"low\"\nseparation = \"20 ms\"\nwcet = \"9 ms\"\n[[server]]\nname = \"s\"\nkind = \
                \"deferrable\"\nbudget = \"4 ms\"\nperiod = \"50 ms\"\npriority = 5\ntasks = [\"low\"]\nlow_priority = \"none\"\n";
    let (system, _) = horolog_model::file::read(text, "served.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    // "high" starts first although the server has budget, and ends though nobody wanted it; its second job comes when the soft
    // one has used its budget up, by the record of that.
    let mut exhausted = kernel(6 * MS, Kind::BudgetExhausted, 0, 4 * MS);
    exhausted.task = NO_TASK;
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        at(2 * MS, Kind::Completion, 0, 0, 2 * MS),
        at(2 * MS, Kind::Start, 1, 0, 0),
        exhausted,
        at(6 * MS, Kind::Preempt, 1, 0, 0),
        at(50 * MS, Kind::BudgetReplenished, 0, NO_JOB, 0),
        at(50 * MS, Kind::Release, 0, 1, 50 * MS),
        at(50 * MS, Kind::Resume, 1, 0, 0),
        at(53 * MS, Kind::Completion, 1, 0, 7 * MS),
        at(53 * MS, Kind::Start, 0, 1, 0),
        at(55 * MS, Kind::Completion, 0, 1, 2 * MS),
    ];
    let result = measured(&system, &records);
    assert_eq!(counts(&result), (1, 0, 0), "{:#?}", result.findings);
    assert_eq!(one(&result).longest_ns, Some(Span::from_ns(2 * MS)));
}

#[test]
fn a_job_that_cannot_be_preempted_and_began_wrongly_is_found_and_the_next_choice_is_free() {
    // "low" starts 1 ms after "high" was released, and cannot be preempted.
    let mut draft = two(Policy::FixedPriority, 0).to_draft();
    draft.tasks.iter_mut().for_each(|task| task.preemption = Preemption::NonPreemptive);
    let system = System::new(draft).expect("a right system");
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        at(5 * MS, Kind::Completion, 1, 0, 5 * MS),
        at(5 * MS, Kind::Start, 0, 0, 0),
        at(7 * MS, Kind::Completion, 0, 0, 2 * MS),
        at(10 * MS, Kind::Release, 0, 1, 10 * MS),
        at(10 * MS, Kind::Start, 0, 1, 0),
        at(12 * MS, Kind::Completion, 0, 1, 2 * MS),
    ];
    let sim = verify_records(&system, &[], &header(&system, "sim"), &records, &Options::default());
    let sim = sim.expect("it can be verified");
    assert_eq!(counts(&sim), (1, 0, 0), "{:#?}", sim.findings);
    assert_eq!(one(&sim).longest_ns, Some(Span::from_ns(5 * MS)));
}

/// A whole number of jobs, a hole of lost records, and what follows. In the hole "low" may have been released.
fn with_a_hole(idle_after: bool) -> Verification {
    let system = two(Policy::FixedPriority, 0);
    let mut lost = at(12 * MS, Kind::Lost, NO_TASK, NO_JOB, 3);
    lost.extra = 0;
    let mut records = vec![
        at(0, Kind::Release, 0, 0, 0),
        at(0, Kind::Start, 0, 0, 0),
        at(2 * MS, Kind::Completion, 0, 0, 2 * MS),
        lost,
        // A job whose release is not on record ends.
        at(15 * MS, Kind::Completion, 1, 0, 5 * MS),
    ];
    if idle_after {
        for (task, time) in [(0, 20), (1, 22)] {
            records.push(at(time * MS, Kind::Release, task, 2 - u64::from(task), time * MS));
            records.push(at(time * MS, Kind::Start, task, 2 - u64::from(task), 0));
            records.push(at((time + 1) * MS, Kind::Completion, task, 2 - u64::from(task), MS));
        }
    }
    // "low" runs although "high" is ready: 1 us, no tolerance in a simulation.
    records.extend([
        at(40 * MS, Kind::Release, 0, 4, 40 * MS),
        at(40 * MS, Kind::Release, 1, 2, 40 * MS),
        at(40 * MS, Kind::Start, 1, 2, 0),
        at(40 * MS + US, Kind::Preempt, 1, 2, 0),
        at(40 * MS + US, Kind::Start, 0, 4, 0),
        at(42 * MS, Kind::Completion, 0, 4, 2 * MS - US),
        at(42 * MS, Kind::Resume, 1, 2, 0),
        at(43 * MS, Kind::Completion, 1, 2, MS + US),
    ]);
    let found = verify_records(&system, &[], &header(&system, "sim"), &records, &Options::default());
    found.expect("it can be verified")
}

#[test]
fn after_a_loss_nothing_is_judged_until_the_processor_is_idle() {
    let judged = with_a_hole(true);
    // Both tasks have started a job whose release was seen, and none is left, at 23 ms.
    assert_eq!(one(&judged).not_judged_ns, Span::from_ns(11 * MS));
    assert_eq!(counts(&judged), (1, 0, 0));
    let unknown = with_a_hole(false);
    assert_eq!(counts(&unknown), (0, 0, 0));
    assert_eq!(one(&unknown).not_judged_ns, Span::from_ns(31 * MS));
}

#[test]
fn where_it_is_not_known_who_has_the_processor_nobody_is_blamed() {
    // A switch that the kernel made is not on record; "high" is released at 10 ms and says at 11 ms that it starts.
    let system = two(Policy::FixedPriority, 0);
    let mut hidden = kernel(7 * MS, Kind::Lost, 1, 0);
    hidden.extra = 2;
    let records = [
        at(5 * MS, Kind::Release, 1, 0, 5 * MS),
        wakeup(5 * MS, 2),
        switch(5 * MS, 0, 2),
        at(5 * MS, Kind::Start, 1, 0, 0),
        at(7 * MS, Kind::Completion, 1, 0, 2 * MS),
        switch(7 * MS, 2, 0),
        hidden,
        at(10 * MS, Kind::Release, 0, 1, 10 * MS),
        wakeup(10 * MS, 1),
        at(11 * MS, Kind::Start, 0, 1, 0),
        at(12 * MS, Kind::Completion, 0, 1, MS),
        switch(12 * MS, 1, 0),
    ];
    let result = measured(&system, &records);
    assert_eq!(counts(&result), (0, 0, 0), "{:#?}", result.findings);
    assert_eq!(one(&result).not_judged_ns, Span::from_ns(MS));
}

#[test]
fn a_job_that_sleeps_by_itself_wants_no_processor() {
    let system = two(Policy::FixedPriority, 0);
    let mut sleeps = kernel(9 * MS, Kind::KernelBlock, 1, 0);
    (sleeps.task, sleeps.job) = (0, 0);
    let with = |sleeps: Option<Record>| {
        let mut records = vec![
            at(8 * MS, Kind::Release, 0, 0, 8 * MS),
            at(8 * MS, Kind::Release, 1, 0, 8 * MS),
            wakeup(8 * MS, 1),
            wakeup(8 * MS, 2),
            switch(8 * MS, 0, 1),
            at(8 * MS, Kind::Start, 0, 0, 0),
            switch(9 * MS, 1, 2),
            at(9 * MS, Kind::Start, 1, 0, 0),
            wakeup(10 * MS, 1),
            switch(10 * MS, 2, 1),
            at(11 * MS, Kind::Completion, 0, 0, 2 * MS),
            switch(11 * MS, 1, 2),
            at(12 * MS, Kind::Completion, 1, 0, 2 * MS),
            switch(12 * MS, 2, 0),
        ];
        records.extend(sleeps);
        records.sort_by_key(|record| record.time);
        counts(&measured(&system, &records))
    };
    assert_eq!(with(Some(sleeps)), (0, 0, 0));
    // Without that record nobody knows that it sleeps.
    assert_eq!(with(None).0, 1);
}

/// A simulated trace of a drawn system, as records.
fn drawn(policy: Policy, random: &mut Random) -> (System, Vec<Record>) {
    let tasks = 2 + (random.next_u64() % 4) as usize;
    let tasks = (0..tasks).map(|index| {
        let period = 1_000 * random.between(1, 20) * MS / 1_000;
        let wcet = (period / (tasks as u64 + 1) / 2).max(1) + random.next_u64() % (period / 8);
        task(&format!("t{index}"), period, wcet, (policy == Policy::FixedPriority).then_some(index as i64))
    });
    let system = system(policy, tasks.collect(), 0);
    let options =
        SimOptions { horizon: Horizon::Time(Span::from_ns(200 * MS)), seed: 1, ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate(&system, &options, &mut records).expect("it can be simulated");
    (system, records)
}

/// Lets the job that was preempted go on for `length` more, and gives the other one that time back at its end. The places of the
/// preemption, the start, the completion and the resumption; nothing else may happen in between.
fn exchanged(records: &[Record], length: u64, random: &mut Random) -> Option<Vec<Record>> {
    let fits = |place: &usize| {
        let [preempt, start, end, resume] = &records[*place..place + 4] else { return false };
        let after = records[place + 4..]
            .iter()
            .map(|record| record.time.as_ns())
            .find(|time| *time > end.time.as_ns());
        preempt.kind == Kind::Preempt
            && start.kind == Kind::Start
            && start.time == preempt.time
            && end.kind == Kind::Completion
            && end.task == start.task
            && resume.kind == Kind::Resume
            && resume.task == preempt.task
            && resume.time == end.time
            && records.get(place + 4).is_some_and(|next| next.time > resume.time)
            && after.is_some_and(|after| after > end.time.as_ns() + length)
            && end.time.as_ns() - start.time.as_ns() > length
    };
    let places: Vec<usize> = (0..records.len().saturating_sub(4)).filter(fits).collect();
    let place = *places.get((random.next_u64() % places.len().max(1) as u64) as usize)?;
    let mut changed = records.to_vec();
    for record in &mut changed[place..place + 4] {
        record.time = Instant::from_ns(record.time.as_ns() + length);
    }
    Some(changed)
}

/// A fault of so many nanoseconds is a divergence if and only if that is more than allowed, and the check of the order says the same.
#[test]
fn both_find_the_same_faults() {
    let mut compared = [0; 2];
    for policy in [Policy::FixedPriority, Policy::Edf] {
        for index in 0..300 {
            let mut random = Random::of_item(77, index);
            let (system, records) = drawn(policy, &mut random);
            for (backend, allowed) in [("sim", 0), ("linux", STAMPS)] {
                let verified = |records: &[Record]| {
                    let header = header(&system, backend);
                    verify_records(&system, &[], &header, records, &Options::default())
                        .expect("it can be verified")
                };
                let clean = verified(&records);
                assert_eq!((counts(&clean), of_order(&clean)), ((0, 0, 0), 0), "{backend} {index}");
                for length in [1, allowed, allowed + 1, allowed + random.between(1, 100 * US)] {
                    let Some(wrong) = exchanged(&records, length, &mut random).filter(|_| length > 0) else {
                        continue;
                    };
                    let result = verified(&wrong);
                    let is_found = length > allowed;
                    let numbers = (one(&result).divergences, one(&result).short, one(&result).longest_ns);
                    let longest = Some(Span::from_ns(length));
                    let expected = (u64::from(is_found), u64::from(!is_found), longest);
                    assert_eq!(
                        numbers, expected,
                        "{policy:?} {backend} {index} {length}: {:#?}",
                        result.findings
                    );
                    assert_eq!(of_order(&result) > 0, is_found, "{policy:?} {backend} {index} {length}");
                    compared[usize::from(is_found)] += 1;
                }
            }
        }
    }
    assert!(compared.iter().all(|count| *count > 300), "{compared:?}");
}

#[test]
fn a_divergence_of_a_simulation_breaks_the_model() {
    let system = two(Policy::FixedPriority, 0);
    let records = [
        at(0, Kind::Release, 0, 0, 0),
        at(1, Kind::Start, 0, 0, 0),
        at(2 * MS, Kind::Completion, 0, 0, 2 * MS - 1),
    ];
    let found = verify_records(&system, &[], &header(&system, "sim"), &records, &Options::default());
    let found = found.expect("it can be verified");
    assert_eq!((counts(&found), found.model_violated), ((1, 0, 0), 1));
    assert_eq!(found.findings[0].class, Class::ModelViolated);
    assert_eq!(found.tasks[TaskId(0).index()].completed, 1);
}

#[test]
fn a_budget_ends_by_its_record_while_the_agent_has_the_processor() {
    let text = "[system]\nname = \"noted\"\n[[task]]\nname = \"high\"\nperiod = \"20 ms\"\nwcet = \"5 ms\"\npriority = 1\n[[task]]\nname \
                = \"low\"\nseparation = \"20 ms\"\nwcet = \"3 ms\"\n[[server]]\nname = \"server\"\ntasks = [\"low\"]\nkind = \
                \"deferrable\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 10\nlow_priority = \"none\"\n";
    let (system, _) = horolog_model::file::read(text, "noted.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let verified = |noted: bool| {
        let mut records = vec![
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Release, 1, 0, 0),
            switch(0, 0, 2),
            at(0, Kind::Start, 1, 0, 0),
            switch(MS - 2 * US, 2, 4),
            Record { extra: MS - 2 * US, ..kernel(MS, Kind::BudgetExhausted, 0, 0) },
            at(MS, Kind::Preempt, 1, 0, 0),
            at(MS, Kind::Start, 0, 0, 0),
            switch(MS + 5 * US, 4, 1),
            at(3 * MS, Kind::Completion, 0, 0, 2 * MS),
            switch(3 * MS, 1, 0),
        ];
        records.retain(|record| noted || record.kind != Kind::BudgetExhausted);
        measured(&system, &records)
    };
    assert_eq!((counts(&verified(true)).0, divergences(&verified(true)).len()), (0, 0));
    assert_eq!(counts(&verified(false)).0, 1, "it has budget by its records");
}
