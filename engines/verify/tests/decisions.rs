//! The decisions of servers, made again: when they are, up to where, and what is said of a wrong one.

use horolog_model::{System, TaskId};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Bound, Check, Class, Finding, Options, Verification, verify_records};

fn read(text: &str) -> System {
    let text = format!("[system]\nname = \"decided\"\n{text}");
    horolog_model::file::read(&text, "decided.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

/// Two hard tasks (0 and 1) and a soft one (2) behind a server of these keys.
fn system(server: &str) -> System {
    read(&format!(
        "[[task]]\nname = \"urgent\"\nperiod = \"50 ns\"\nwcet = \"10 ns\"\npriority = 9\n[[task]]\nname = \"hard\"\nperiod = \"200 \
         ns\"\nwcet = \"60 ns\"\npriority = 1\n[[task]]\nname = \"soft\"\nseparation = \"170 ns\"\nwcet = \"70 \
         ns\"\n[[server]]\nname = \"server\"\ntasks = [\"soft\"]\n{server}"
    ))
}

fn deferrable(budget: u64) -> System {
    system(&format!(
        "kind = \"deferrable\"\nbudget = \"{budget} ns\"\nperiod = \"100 ns\"\npriority = 10\nlow_priority = \"none\"\n"
    ))
}

fn records(system: &System, until: u64) -> Vec<Record> {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(until)), ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).expect("it can be simulated");
    records
}

fn verified(system: &System, backend: &str, records: &[Record]) -> Verification {
    verified_with(system, backend, records, &[])
}

fn verified_with(system: &System, backend: &str, records: &[Record], bounds: &[Bound]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    verify_records(system, bounds, &header, records, &Options::default()).expect("it can be verified")
}

fn wrong(result: &Verification) -> Vec<&Finding> {
    result.findings.iter().filter(|one| one.check == Check::ServerDecision).collect()
}

/// How many decisions were compared.
fn compared(result: &Verification) -> u64 {
    let count = result.checks.iter().find(|one| one.check == Check::ServerDecision);
    count.map_or(0, |count| count.applied)
}

/// How often it was asked who should have the processor, where what counts is for how long it is another.
fn asked(result: &Verification) -> u64 {
    let count = result.checks.iter().find(|one| one.check == Check::Divergence);
    count.map_or(0, |count| count.applied)
}

fn at(time: u64, kind: Kind, task: u32, value: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu: 0, task, job: 0, value, extra: 0 }
}

#[test]
fn a_budget_that_goes_on_is_found_at_the_instant_of_its_end() {
    let clean = records(&deferrable(20), 1_000);
    let result = verified(&deferrable(20), "sim", &clean);
    assert!(wrong(&result).is_empty() && compared(&result) > 10, "{:#?}", result.findings);
    // By a file that gives 15 the soft job, which runs from 0 to 20, has to stop then.
    let result = verified(&deferrable(15), "sim", &clean);
    let found = wrong(&result);
    assert_eq!(
        (found.len(), found[0].time_ns, found[0].class),
        (1, Instant::from_ns(15), Class::ModelViolated)
    );
    assert_eq!(
        found[0].message,
        "soft has the processor and urgent should: its server has no budget for that place"
    );
    let stopped = "cpu 0: the servers' decisions were made again up to where a wrong decision was found";
    assert!(result.notes.iter().any(|note| note == stopped), "{:?}", result.notes);
}

#[test]
fn each_processor_has_its_own_decisions() {
    let half = |cpu: u32, phase: u64| {
        format!(
            "[[task]]\nname = \"hard {cpu}\"\nperiod = \"200 ns\"\noffset = \"{phase} ns\"\nwcet = \"60 ns\"\npriority = 1\ncpu = {cpu}\n\
             [[task]]\nname = \"soft {cpu}\"\nseparation = \"170 ns\"\nwcet = \"70 ns\"\ncpu = {cpu}\n[[server]]\nname = \
             \"server {cpu}\"\ntasks = [\"soft {cpu}\"]\nkind = \"deferrable\"\nbudget = \"20 ns\"\nperiod = \"100 \
             ns\"\npriority = 5\ncpu = {cpu}\n"
        )
    };
    let system = read(&format!("[platform]\ncpus = 2\n{}{}", half(0, 0), half(1, 33)));
    let clean = records(&system, 2_000);
    let result = verified(&system, "sim", &clean);
    assert_eq!(result.findings, []);
    // Both processors have some forty instants each, and each is compared on its own processor alone.
    let instants = |cpu: u16| {
        let mut times: Vec<u64> =
            clean.iter().filter(|one| one.cpu == cpu).map(|one| one.time.as_ns()).collect();
        times.dedup();
        times.len() as u64
    };
    assert!(instants(0) > 40 && instants(1) > 40, "{} {}", instants(0), instants(1));
    assert!(compared(&result) <= instants(0) + instants(1), "{}", compared(&result));
}

#[test]
fn an_overrun_policy_that_acts_upon_whoever_has_not_overrun_is_found() {
    let clean = records(&deferrable(20), 1_000);
    let found = |extra: u64| {
        let mut records = clean.clone();
        let place = records.iter().position(|one| one.kind == Kind::Start).expect("jobs start");
        records.insert(place + 1, Record { extra, kind: Kind::Enforcement, ..records[place] });
        let result = verified(&deferrable(20), "sim", &records);
        wrong(&result).iter().map(|one| one.message.clone()).collect::<Vec<_>>()
    };
    let said = vec!["the overrun policy acted upon soft, which has not executed its wcet".to_owned()];
    assert_eq!([0, 1, 2].map(found), [vec![], said.clone(), said]);
    // Whom it ends does not run on.
    assert_eq!([3, 4].map(|extra| found(extra).len()), [1, 1]);
}

#[test]
fn where_not_all_is_on_record_nothing_is_compared() {
    let clean = records(&deferrable(20), 1_000);
    let both = |result: &Verification| (compared(result) > 0, asked(result) > 0);
    assert_eq!(both(&verified(&deferrable(20), "sim", &clean)), (true, false));
    assert_eq!(both(&verified(&deferrable(20), "linux", &clean)), (false, true));
    let silent = |result: &Verification, reason: &str| {
        assert_eq!(both(result), (false, false));
        let said: Vec<Option<&str>> = result.processors.iter().map(|one| one.reason.as_deref()).collect();
        assert_eq!(said, [Some(reason)]);
    };
    // A foreign application's jobs are guessed from its wake-ups.
    let foreign = verified(&deferrable(20), "foreign", &clean);
    silent(&foreign, "horolog did not run it, so the ends of budgets are not on record");
    let best_effort = verified(&deferrable(20), "linux-best-effort", &clean);
    silent(&best_effort, "its threads had no real-time class");
    let by_amounts = verified(&system("kind = \"slack-stealing\"\n"), "linux", &clean);
    silent(&by_amounts, "server server depends on every microsecond executed, which is an estimate");
    // Of a simulated device it is not on record when its thread is told.
    let mut draft = deferrable(20).to_draft();
    let driven = read(
        "[[task]]\nname = \"a\"\nperiod = \"1 ms\"\nwcet = \"1 ns\"\npriority = 1\n[[interrupt]]\nname = \"nic\"\nseparation = \"1 ms\"\ncost = \"1 ns\"\n",
    );
    draft.interrupts = driven.to_draft().interrupts;
    let driven = System::new(draft).expect("a right system");
    let unknown = verified(&driven, "sim", &clean);
    silent(&unknown, "when a simulated device's thread was told of an event is not on record");
}

#[test]
fn interrupts_in_interrupts_use_no_budget() {
    // Of 0 to 25 an interrupt takes 5, with a softirq in it; the budget of 20 ends at 25.
    let interrupted = |until: u64| {
        let records = [
            at(0, Kind::Release, 0, 0),
            at(0, Kind::Release, 1, 0),
            at(0, Kind::Release, 2, 0),
            at(0, Kind::Start, 2, 0),
            at(5, Kind::InterruptEntry, 2, 0),
            at(6, Kind::SoftirqEntry, 2, 0),
            at(8, Kind::SoftirqExit, 2, 0),
            at(10, Kind::InterruptExit, 2, 0),
            Record { extra: 20, ..at(until, Kind::BudgetExhausted, 2, 0) },
            at(until, Kind::Preempt, 2, 0),
            at(until, Kind::Start, 0, 0),
            at(until + 10, Kind::Completion, 0, 10),
            at(until + 10, Kind::Start, 1, 0),
        ];
        wrong(&verified(&deferrable(20), "sim", &records)).len()
    };
    assert_eq!([24, 25, 26].map(interrupted), [1, 0, 1]);
}

#[test]
fn a_job_that_ends_without_the_processor_is_found() {
    let records = [
        at(0, Kind::Release, 0, 0),
        at(0, Kind::Release, 2, 0),
        at(0, Kind::Start, 2, 0),
        Record { extra: 20, ..at(20, Kind::BudgetExhausted, 0, 0) },
        at(20, Kind::Preempt, 2, 0),
        at(20, Kind::Start, 0, 0),
        at(25, Kind::Completion, 2, 20),
        at(30, Kind::Completion, 0, 10),
    ];
    let result = verified(&deferrable(20), "sim", &records);
    let found = wrong(&result);
    assert_eq!(found.len(), 1, "{:#?}", result.findings);
    assert_eq!(found[0].message, "soft ended although it does not run");
    assert_eq!((found[0].time_ns, found[0].task.as_deref()), (Instant::from_ns(25), Some("soft")));
}

#[test]
fn in_a_measured_trace_a_wrong_choice_that_lasts_is_found() {
    // Between the end of one job and the start of the next nobody has the processor. 20 us are the time stamps', 100 us the budget's.
    let allowed = 120_000;
    let records = |first: u32, second: u32, length: u64, later: u64| {
        [
            at(0, Kind::Release, 1, 0),
            at(0, Kind::Release, 2, 0),
            at(0, Kind::Start, first, 0),
            at(length, Kind::Completion, first, length),
            at(length + later, Kind::Start, second, 0),
            at(2 * length + later, Kind::Completion, second, length),
        ]
    };
    let found = |first, second, length, later| {
        let result = verified(&deferrable(20), "linux", &records(first, second, length, later));
        let found = result.findings.into_iter().filter(|one| one.check == Check::Divergence);
        (found.collect::<Vec<_>>(), result.processors[0].clone())
    };
    // Up to 100 us more are the machine's: a switch that came late. Beyond that the schedule differs, and with such a stretch in its
    // busy window nothing else is said of why a job is late.
    let class = |length: u64| {
        let bound = Bound { task: TaskId(2), response: Span::from_ns(1), test: String::new(), exact: false };
        let result = verified_with(&deferrable(20), "linux", &records(1, 2, length, 0), &[bound]);
        let of = |check| result.findings.iter().find(|one| one.check == check).map(|one| one.class);
        (of(Check::Divergence), of(Check::Response) == Some(Class::ScheduleDiffers))
    };
    assert_eq!(class(allowed + 100_000), (Some(Class::MachineDisturbed), false));
    assert_eq!(class(allowed + 100_001), (Some(Class::ScheduleDiffers), true));
    for later in [0, 3] {
        let (right, _) = found(2, 1, allowed + 1, later);
        assert_eq!(right, []);
        // With budget the soft job goes first.
        let (inside, one) = found(1, 2, allowed, later);
        assert_eq!((inside.len(), one.divergences, one.short), (0, 0, 1));
        assert_eq!(one.short_ns_max, Some(Span::from_ns(allowed)));
        let (outside, one) = found(1, 2, allowed + 1, later);
        assert_eq!((outside.len(), one.divergences, one.short), (1, 1, 0));
        assert_eq!(
            outside[0].message,
            "hard job 0 had CPU 0 for 120.001 us where soft job 0 should have: its server has budget; unknown cause"
        );
        assert_eq!(outside[0].allowed_ns, Some(Span::from_ns(allowed)));
    }
}

/// The `nth` record of `kind` stands `by` earlier.
fn early(records: &[Record], kind: Kind, nth: usize, by: u64) -> Vec<Record> {
    let mut moved = records.to_vec();
    let place = records.iter().enumerate().filter(|(_, one)| one.kind == kind).nth(nth);
    let mut record = moved.remove(place.expect("so many").0);
    record.time = Instant::from_ns(record.time.as_ns() - by);
    let at = moved.iter().position(|other| other.time >= record.time).expect("others follow");
    moved.insert(at, record);
    moved
}

#[test]
fn a_record_too_early_is_named_by_what_it_tells() {
    let stealing = system("kind = \"slack-stealing\"\n");
    let clean = records(&stealing, 1_000);
    let change = clean.iter().filter(|one| one.kind == Kind::SlackChange).position(|one| one.extra == 0);
    let result =
        verified(&stealing, "sim", &early(&clean, Kind::SlackChange, change.expect("slack ends"), 3));
    let message = &wrong(&result)[0].message;
    assert_eq!(message, "server server: its soft tasks lost their slack too early: by its rules not yet");
    let clean = records(&deferrable(20), 1_000);
    let result = verified(&deferrable(20), "sim", &early(&clean, Kind::BudgetExhausted, 0, 3));
    assert_eq!(wrong(&result)[0].message, "server server: its budget ended too early: by its rules not yet");
    let result = verified(&deferrable(20), "sim", &early(&clean, Kind::BudgetReplenished, 0, 3));
    assert_eq!(
        wrong(&result)[0].message,
        "server server: its budget came back too early: by its rules not yet"
    );
}

#[test]
fn only_a_job_that_takes_no_time_makes_a_second_choice() {
    let server = |name: &str, priority: u32| {
        format!(
            "[[task]]\nname = \"{name}'s\"\narrivals = [\"0 ns\"]\nwcet = \"5 ns\"\n[[server]]\nname = \"{name}\"\nkind = \
             \"deferrable\"\nbudget = \"2 ns\"\nperiod = \"10 ns\"\npriority = {priority}\nlow_priority = \"none\"\ntasks = \
             [\"{name}'s\"]\n"
        )
    };
    let hard =
        "[[task]]\nname = \"hard\"\nperiod = \"100 ns\"\noffset = \"9 ns\"\nwcet = \"1 ns\"\npriority = 1\n";
    let system = read(&format!("{}{}{hard}", server("less", 5), server("more", 6)));
    let clean = records(&system, 100);
    assert_eq!(wrong(&verified(&system, "sim", &clean)).len(), 0);
    // Both budgets come back at 10, where the hard job ends. The less important server gets the processor between the two.
    let place = clean.iter().position(|one| one.time.as_ns() == 10 && one.kind == Kind::Resume);
    let place = place.expect("the more important server goes on at 10");
    let less = Record { task: 0, ..clean[place] };
    let found = |executed: u64| {
        let mut records = clean.clone();
        records.insert(place, Record { kind: Kind::Preempt, ..less });
        records.insert(place, less);
        let end = records.iter_mut().find(|one| one.kind == Kind::Completion && one.time.as_ns() == 10);
        end.expect("the hard job ends").value = executed;
        let result = verified(&system, "sim", &records);
        wrong(&result).iter().map(|one| one.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(found(1), ["less's got the processor and lost it at once"]);
    assert_eq!(found(0), [""; 0]);
}
