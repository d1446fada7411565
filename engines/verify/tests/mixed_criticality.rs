//! Mixed criticality, from a file to a verified trace: low tasks that go on with less, and virtual deadlines. No simulated response lies above
//! a bound, no finding is about a simulated trace, and a trace that another machine could have written is told.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Options as AnalysisOptions, Schedulable, analyze, resolve};
use horolog_model::{ExecutionTimes, System};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::Random;
use horolog_time::Span;
use horolog_trace::Outcome;
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Options, Verification, verify_records};

const END: u64 = 600;

fn read(text: &str) -> System {
    horolog_model::file::read(text, "s", &[]).unwrap_or_else(|error| panic!("{error}\n{text}")).0
}

fn verified(system: &System, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
}

fn simulated(system: &System) -> Option<(Outcome, Vec<Record>)> {
    let options = SimOptions {
        horizon: Horizon::Time(Span::from_ns(END)),
        max_backlog: 1_000,
        ..SimOptions::default()
    };
    let mut records = Vec::new();
    let outcome = simulate(system, &options, &mut records).ok()?;
    Some((outcome, records))
}

/// Short times; with fixed priorities low tasks go on with less, and an order is looked for; phases and lengths of jobs are drawn.
fn drawn(index: u64, is_edf: bool) -> System {
    let mut random = Random::of_item(51, index);
    let count = 2 + random.below(4);
    let how = if is_edf { "policy = \"edf\"" } else { "priorities = \"audsley\"" };
    let mut text = format!("[system]\nname = \"s\"\n{how}\n[criticality]\nscope = \"processor\"\n");
    let mut lengths = Vec::new();
    for task in 0..count {
        let period = 4 + random.below(30);
        let low = 1 + random.below((3 * period / 2 / count).max(2));
        let is_high = task == 0 || random.below(2) == 0;
        let high = (low + random.below(period.div_ceil(3))).min(period);
        let low = low.min(period);
        let deadline = if is_edf { period } else { period - random.below((period - low.max(high)) / 2 + 1) };
        let jitter = if is_edf || random.below(4) > 0 { 0 } else { random.below(3) };
        text += &format!(
            "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\ndeadline = \"{deadline} ns\"\nwcet = \"{low} ns\"\nbcet = \"1 ns\"\n\
             offset = \"{} ns\"\njitter = \"{jitter} ns\"\n",
            random.below(period)
        );
        if is_high {
            text += &format!("criticality = \"high\"\nwcet_high = \"{high} ns\"\n");
        } else {
            text += "criticality = \"low\"\n";
            if !is_edf && low > 1 && random.below(3) > 0 {
                text += &format!("wcet_high = \"{} ns\"\n", 1 + random.below(low - 1));
            }
        }
        let most = if is_high { high } else { low };
        let each = |random: &mut Random| if random.below(2) == 0 { most } else { 1 + random.below(most) };
        lengths.push((0..1 + random.below(6)).map(|_| Span::from_ns(each(&mut random))).collect());
    }
    let mut draft = read(&text).to_draft();
    for (task, lengths) in draft.tasks.iter_mut().zip(lengths) {
        task.execution = ExecutionTimes::Jobs(lengths);
    }
    resolve(&System::new(draft).unwrap()).unwrap()
}

#[test]
fn no_simulated_response_is_above_a_bound_and_no_trace_has_findings() {
    let (mut proved, mut changed, mut cut, mut attained, mut late) = (0, 0, 0, 0, 0);
    for index in 0..2_500 {
        let system = drawn(index, false);
        let analysis = analyze(&system, &AnalysisOptions::default()).unwrap();
        let Some((outcome, records)) = simulated(&system) else { continue };
        let text = || horolog_model::file::print(&system);
        let result = verified(&system, &records);
        let is_proved = analysis.schedulable == Schedulable::Yes;
        for (task, run) in analysis.tasks.iter().zip(&outcome.tasks).filter(|_| is_proved) {
            let (bound, largest) = (task.response.unwrap(), run.response_ns_max.unwrap_or(Span::ZERO));
            assert!(largest <= bound, "{index}: {} takes {largest}, bound {bound}\n{}", task.name, text());
            assert_eq!(run.missed, 0, "{index}\n{}", text());
            proved += 1;
            attained += u32::from(largest == bound);
        }
        assert_eq!(result.findings, [], "{index}\n{}", text());
        assert!(
            index % 5 > 0 || read(&text()) == system,
            "{index}: the printed file is another system\n{}",
            text()
        );
        changed += u32::from(records.iter().any(|record| record.kind == Kind::ModeChange));
        late += u32::from(outcome.tasks.iter().any(|task| task.missed > 0));
        cut += u32::from(records.iter().any(|it| {
            it.kind == Kind::Enforcement && it.extra == 4 && {
                let limited = system.task_in(1, horolog_model::TaskId(it.task)).limit;
                limited.is_some()
            }
        }));
    }
    assert!(
        proved > 1_500 && changed > 600 && cut > 150 && attained > 150 && late > 50,
        "{proved} {changed} {cut} {attained} {late}"
    );
}

#[test]
fn what_edf_with_virtual_deadlines_accepts_misses_nothing() {
    let (mut proved, mut changed, mut shortened) = (0, 0, 0);
    for index in 0..2_500 {
        let system = drawn(index, true);
        let analysis = analyze(&system, &AnalysisOptions::default()).unwrap();
        let Some((outcome, records)) = simulated(&system) else { continue };
        let text = || horolog_model::file::print(&system);
        assert_eq!(verified(&system, &records).findings, [], "{index}\n{}", text());
        let is_shortened = system.tasks().iter().any(|task| task.virtual_deadline().is_some());
        if analysis.schedulable == Schedulable::Yes {
            assert!(outcome.tasks.iter().all(|task| task.missed == 0), "{index}\n{}", text());
            assert!(analysis.tasks.iter().all(|task| task.test == "edf-vd"), "{index}");
            proved += 1;
            shortened += u32::from(is_shortened);
            let is_change = |record: &Record| record.kind == Kind::ModeChange;
            changed += u32::from(is_shortened && records.iter().any(is_change));
        }
        // The resolved file reads back to itself.
        assert_eq!(read(&text()), system, "{}", text());
    }
    assert!(proved > 500 && shortened > 100 && changed > 60, "{proved} {shortened} {changed}");
}

const DEGRADED: &str = "[system]\nname = \"s\"\n[criticality]\nscope = \"processor\"\n\
    [[task]]\nname = \"control\"\ncriticality = \"high\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"2 ns\"\nwcet_high = \"6 ns\"\nbcet = \"1 ns\"\n\
    priority = 9\nexecution = { jobs = [\"6 ns\"] }\n\
    [[task]]\nname = \"camera\"\ncriticality = \"low\"\nperiod = \"10 ns\"\noffset = \"0 ns\"\nwcet = \"4 ns\"\nwcet_high = \"2 ns\"\nbcet = \"1 ns\"\npriority = 5\n\
    [[task]]\nname = \"logger\"\ncriticality = \"low\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"1 ns\"\npriority = 1\n";

/// By hand: the change is at 2, `control` ends at 6, and the first job of `camera` ends after 2 of its 4. `logger` is dropped at the change.
#[test]
fn a_low_task_goes_on_with_less() {
    let system = read(DEGRADED);
    let (outcome, records) = simulated(&system).unwrap();
    let ends: Vec<(u32, u64, u64)> = records
        .iter()
        .filter(|it| it.kind == Kind::Completion || it.kind == Kind::Enforcement && it.extra == 4)
        .map(|it| (it.task, it.time.as_ns(), it.extra))
        .take(4)
        .collect();
    // With that no job is left: the low mode is back, and `logger` arrives anew.
    assert_eq!(ends, [(2, 2, 4), (0, 6, 0), (1, 8, 4), (2, 9, 0)]);
    assert_eq!(outcome.tasks[1].response_ns_max, Some(Span::from_ns(8)));
    let analysis = analyze(&system, &AnalysisOptions::default()).unwrap();
    let found: Vec<_> =
        analysis.tasks.iter().map(|task| (task.test, task.response.map(Span::as_ns))).collect();
    // camera: in the low mode 2 + 4 = 6, over the change 2 + 6 = 8; logger in the low mode 1 + 2 + 4 = 7.
    assert_eq!(found, [("amc-max-degraded", Some(6)), ("amc-max-degraded", Some(8)), ("amc-low", Some(7))]);
}

/// Traces in which the smaller budget is not kept, or a job ends before it.
#[test]
fn another_end_than_that_of_the_mode_is_told() {
    let system = read(DEGRADED);
    let (_, records) = simulated(&system).unwrap();
    assert_eq!(verified(&system, &records).findings, []);
    let cut =
        records.iter().position(|it| it.kind == Kind::Enforcement && it.extra == 4 && it.task == 1).unwrap();
    for shift in [-1_i64, 1] {
        let mut other = records.clone();
        let at = other[cut].time.as_ns().wrapping_add_signed(shift);
        other[cut].time = horolog_time::Instant::from_ns(at);
        // The job before has the processor until then at the earliest.
        assert_ne!(verified(&system, &other).findings, [], "{shift}");
    }
    let mut other = records;
    other[cut] = Record { kind: Kind::Completion, value: 3, extra: 0, ..other[cut] };
    assert_ne!(verified(&system, &other).findings, []);
}

/// By hand: `low` (5 of 10) and `high` (4 or 14 of 20) at 0. By their own deadlines `low` goes first and `high` is at its 4 at 9, too late
/// for 14 until 20: with x = 1/2 both are due at 10.
#[test]
fn virtual_deadlines_order_jobs_until_the_change() {
    let text = "[system]\nname = \"s\"\npolicy = \"edf\"\n[criticality]\nscope = \"processor\"\n\
        [[task]]\nname = \"low\"\ncriticality = \"low\"\nperiod = \"10 ns\"\noffset = \"1 ns\"\nwcet = \"5 ns\"\n\
        [[task]]\nname = \"high\"\ncriticality = \"high\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"4 ns\"\nwcet_high = \"14 ns\"\n\
        bcet = \"1 ns\"\nexecution = { jobs = [\"14 ns\"] }\n";
    let given = read(text);
    let system = resolve(&given).unwrap();
    assert_eq!(system.tasks()[1].virtual_deadline(), Some(Span::from_ns(10)));
    let analysis = analyze(&given, &AnalysisOptions::default()).unwrap();
    assert_eq!(analysis.schedulable, Schedulable::Yes);
    assert!(analysis.notes.iter().any(|note| note.contains("x = 1/2")), "{:?}", analysis.notes);
    let (outcome, records) = simulated(&system).unwrap();
    assert_eq!(outcome.tasks.iter().map(|task| task.missed).sum::<u64>(), 0);
    assert_eq!(verified(&system, &records).findings, []);
    // A virtual deadline one unit beyond what the high mode leaves is refused by the test, and is simulated as given.
    let with = |deadline: u64| {
        text.replace(
            "wcet_high = \"14 ns\"\n",
            &format!("wcet_high = \"14 ns\"\nvirtual_deadline = \"{deadline} ns\"\n"),
        )
    };
    let verdicts: Vec<bool> = (9..=12)
        .map(|deadline| {
            let system = read(&with(deadline));
            analyze(&system, &AnalysisOptions::default()).unwrap().schedulable == Schedulable::Yes
        })
        .collect();
    assert_eq!(verdicts, [true, true, false, false]);
}

/// The records of a simulation, as if they had been measured: nothing is told of them. Without the request, the change or the overrun
/// that belongs to the others, it is.
#[test]
fn in_a_measured_trace_a_switch_and_an_overrun_belong_together() {
    let text = DEGRADED.replace("wcet_high = \"2 ns\"\n", "").replace("wcet_high = \"2 ns\"", "");
    let text = text.replace(
        "execution = { jobs = [\"6 ns\"] }",
        "execution = { jobs = [\"6 ns\", \"2 ns\", \"2 ns\"] }",
    );
    let system = read(&text.replace("\nbcet = \"1 ns\"\npriority = 5", "\npriority = 5"));
    let (_, records) = simulated(&system).unwrap();
    let said = |records: &[Record]| -> Vec<String> {
        let names = system.tasks().iter().map(|task| task.name.clone()).collect();
        let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
        header.backend = "linux".to_owned();
        let mut options = Options::default();
        options.tolerance.execution = Span::ZERO;
        let result = verify_records(&system, &[], &header, records, &options).unwrap();
        let of_switch = |message: &String| message.contains("mode");
        result.findings.into_iter().map(|finding| finding.message).filter(of_switch).collect()
    };
    assert_eq!(said(&records), [""; 0]);
    let without = |is_gone: &dyn Fn(&Record) -> bool| -> Vec<Record> {
        records.iter().filter(|record| !is_gone(record)).copied().collect()
    };
    let asks = |record: &Record| record.kind == Kind::Enforcement && record.extra == 5;
    let changes = |record: &Record| record.kind == Kind::ModeChange && record.value == 1;
    let found = said(&without(&asks));
    assert!(found.iter().any(|it| it.contains("no job has executed beyond its wcet")), "{found:?}");
    let found = said(&without(&changes));
    assert!(found.iter().any(|it| it.contains("the mode did not change")), "{found:?}");
    let found = said(&without(&|record| asks(record) || record.kind == Kind::ModeChange));
    assert!(found.iter().any(|it| it.contains("no change of the mode followed")), "{found:?}");
}
