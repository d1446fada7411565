//! Systems with interrupts, devices and requests: what the simulator does is what verification expects, and a trace that
//! deviates is found.

use horolog_analysis::{Options as AnalysisOptions, analyze};
use horolog_model::{Companion, DeviceService, ExecutionTimes, System, TaskId};
use horolog_sim::{Horizon, SimOptions, simulate, traced};
use horolog_testkit::{Random, driven_system};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Bound, Check, Class, Options, Verification, verify_records};
use std::collections::BTreeMap;

fn bounds_of(system: &System) -> Vec<Bound> {
    let Ok(analysis) = analyze(system, &AnalysisOptions::default()) else { return Vec::new() };
    let companion = Companion::new(system).expect("a right system");
    let bound = |task: TaskId, response: Option<Span>, test: &str| {
        Some(Bound { task, response: response?, test: test.to_owned(), exact: false })
    };
    let tasks = analysis.tasks.iter().enumerate();
    let tasks = tasks.filter_map(|(index, task)| bound(TaskId(index as u32), task.response, task.test));
    let devices = analysis.devices.iter().enumerate();
    let devices =
        devices.filter_map(|(index, device)| bound(companion.task_of(index)?, device.response, device.test));
    tasks.chain(devices).collect()
}

fn records(system: &System, seed: u64, until: u64) -> Option<Vec<Record>> {
    let horizon = Horizon::Time(Span::from_ns(until));
    let options = SimOptions { horizon, seed, max_backlog: 10_000, ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).ok()?;
    Some(records)
}

fn verified(system: &System, bounds: &[Bound], records: &[Record]) -> Verification {
    let companion = traced(system).expect("it can be simulated");
    let header = Header::simulated(String::new(), Vec::new(), 0, Span::ZERO).of_companion(system, &companion);
    verify_records(system, bounds, &header, records, &Options::default()).expect("it can be verified")
}

fn read(text: &str) -> System {
    horolog_model::file::read(text, "driven.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

#[test]
fn simulated_drivers_have_no_findings() {
    let (mut interrupts, mut responses) = (0, 0);
    for index in 0..300 {
        let system = driven_system(41, index);
        let Some(records) = records(&system, index, 200_000) else { continue };
        let result = verified(&system, &bounds_of(&system), &records);
        let text = || horolog_model::file::print(&system);
        assert!(result.findings.is_empty(), "{index}: {:#?}\n{}", result.findings, text());
        let applied =
            |check| result.checks.iter().find(|count| count.check == check).map(|count| count.applied);
        interrupts += applied(Check::Interrupt).unwrap_or(0);
        responses += applied(Check::Response).unwrap_or(0);
    }
    assert!(interrupts > 10_000 && responses > 10_000, "{interrupts} {responses}");
}

/// A player that waits for a disk twice a job, above a task that waits for nothing.
const WAITING: &str = r#"
[system]
name = "waiting"
[[task]]
name = "control"
period = "200 ns"
wcet = "40 ns"
priority = 90
[[task]]
name = "player"
period = "1000 ns"
wcet = "200 ns"
priority = 50
[[interrupt]]
name = "sda"
separation = "50 ns"
cost = "3 ns"
[[device]]
name = "disk"
interrupt = "sda"
class = "closed"
service = "thread"
priority = 70
separation = "50 ns"
latency = "120 ns"
cost = "10 ns"
[[request]]
name = "input"
task = "player"
device = "disk"
[[request]]
name = "output"
task = "player"
device = "disk"
kind = "write"
after = "200 ns"
"#;

fn found(result: &Verification, check: Check) -> bool {
    result.findings.iter().any(|finding| finding.check == check)
}

#[test]
fn jobs_that_wait_have_no_findings_and_others_do() {
    let system = read(WAITING);
    let clean = records(&system, 1, 100_000).expect("it can be simulated");
    let result = verified(&system, &bounds_of(&system), &clean);
    assert_eq!(result.findings, []);
    assert!(clean.iter().filter(|record| record.kind == Kind::Suspend).count() > 100);

    // The same records of a file whose player asks nobody.
    let mut draft = system.to_draft();
    for request in &mut draft.requests {
        request.task = "control".to_owned();
        request.after = Span::ZERO;
    }
    let other = System::new(draft).expect("a right system");
    assert!(found(&verified(&other, &[], &clean), Check::SelfSuspension));

    // A job that goes on before its device has answered.
    let mut early = clean.clone();
    let wake = early.iter().position(|record| record.kind == Kind::Wake).expect("jobs wait");
    early.remove(wake);
    assert!(found(&verified(&system, &[], &early), Check::EventOrder));
}

#[test]
fn an_interrupt_beyond_its_cost_and_a_thread_at_another_priority_are_found() {
    let system = read(WAITING);
    let clean = records(&system, 1, 20_000).expect("it can be simulated");
    let mut long = clean.clone();
    let exit =
        long.iter().position(|record| record.kind == Kind::InterruptExit).expect("there are interrupts");
    long[exit].time = Instant::from_ns(long[exit].time.as_ns() + 5);
    let result = verified(&system, &[], &long);
    assert!(found(&result, Check::Interrupt), "{:#?}", result.findings);

    let text = WAITING.replace("priority = 70", "priority = 10");
    let other = read(&text);
    // The disk's thread ran before the player, which is more important in this file.
    let busy = WAITING.replace("after = \"200 ns\"", "after = \"100 ns\"\nmode = \"asynchronous\"");
    let busy_records = records(&read(&busy), 1, 20_000).expect("it can be simulated");
    let other = System::new(other.to_draft()).expect("a right system");
    assert!(found(&verified(&other, &[], &busy_records), Check::PriorityInversion));
}

/// Whoever waited for a device stands behind the equals that came meanwhile; a third one has the processor until both are ready.
#[test]
fn a_job_whose_device_has_answered_stands_behind_its_equals() {
    let equal = "[[task]]\nname = \"equal\"\nperiod = \"1000 ns\"\noffset = \"100 ns\"\nwcet = \"60 ns\"\npriority = 50\n";
    let mut text = WAITING.replace("[[interrupt]]", &format!("{equal}[[interrupt]]"));
    // The control task runs from 60 to 210, while the equal one comes and the disk answers.
    text = text.replace(
        "period = \"200 ns\"\nwcet = \"40 ns\"",
        "period = \"1000 ns\"\noffset = \"60 ns\"\nwcet = \"150 ns\"",
    );
    text = text.replace("priority = 70", "priority = 95");
    let system = read(&text);
    let clean = records(&system, 1, 20_000).expect("it can be simulated");
    let equal = system.find_task("equal").expect("the task");
    // It is there before the player's disk has answered, and has not started.
    let mut behind = 0;
    let (mut released, mut started) = (0, 0);
    for record in &clean {
        match record.kind {
            Kind::Release if record.task == equal.0 => released += 1,
            Kind::Start if record.task == equal.0 => started += 1,
            Kind::Wake if released > started => behind += 1,
            _ => {}
        }
    }
    assert!(behind > 5, "{behind}");
    let result = verified(&system, &[], &clean);
    assert_eq!(result.findings, []);
}

/// The end of each job of a system's tasks, and its arrival.
fn ends(system: &System, records: &[Record]) -> BTreeMap<(u32, u64), (u64, u64)> {
    let of_tasks = || records.iter().filter(|record| (record.task as usize) < system.tasks().len());
    let key = |record: &Record| (record.task, record.job);
    let released = of_tasks().filter(|record| record.kind == Kind::Release);
    let arrivals: BTreeMap<_, _> = released.map(|record| (key(record), record.value)).collect();
    let completed = of_tasks().filter(|record| record.kind == Kind::Completion);
    completed.map(|record| (key(record), (arrivals[&key(record)], record.time.as_ns()))).collect()
}

fn response(ends: &BTreeMap<(u32, u64), (u64, u64)>, key: (u32, u64)) -> Option<u64> {
    ends.get(&key).map(|(begin, end)| end - begin)
}

/// A system without requests whose jobs each take their wcet, and the same with a lie: a task whose jobs take longer, or an interrupt that does.
fn with_a_lie(index: u64) -> Option<(System, System, String)> {
    let mut draft = driven_system(43, index).to_draft();
    draft.requests.clear();
    for task in &mut draft.tasks {
        (task.bcet, task.execution) = (task.wcet, ExecutionTimes::Wcet);
    }
    let told = System::new(draft.clone()).ok()?;
    let mut random = Random::of_item(5, index);
    // What an interrupt works off itself is recorded under its number.
    let works = |name: &String| {
        let mut devices = draft.devices.iter().filter(|device| device.interrupt.as_ref() == Some(name));
        devices.any(|device| device.service == DeviceService::Interrupt)
    };
    let lines = draft.interrupts.iter().enumerate().filter(|(_, line)| !works(&line.name));
    let lines: Vec<usize> = lines.map(|(place, _)| place).collect();
    let name = if random.below(2) == 0 || lines.is_empty() {
        let place = random.below(draft.tasks.len() as u64) as usize;
        let task = &mut draft.tasks[place];
        task.wcet = Span::from_ns(task.wcet.as_ns() + random.between(1, 500));
        task.bcet = task.wcet;
        task.name.clone()
    } else {
        let place = lines[random.below(lines.len() as u64) as usize];
        let interrupt = &mut draft.interrupts[place];
        interrupt.cost = Span::from_ns(interrupt.cost.as_ns() + random.between(1, 9));
        String::new()
    };
    Some((told, System::new(draft).ok()?, name))
}

/// A job that a lie makes later than a bound that it kept without: the model's, by the task that lied. One that is later than its bound all the same:
/// the bound's. The simulator says which, with the file as it is.
#[test]
fn a_lie_beside_drivers_is_the_models_and_nothing_else_is() {
    let (mut models, mut bounds, mut untold, mut wrong) = (0, 0, 0, Vec::new());
    for index in 0..150 {
        let Some((told, lied, liar)) = with_a_lie(index) else { continue };
        let (Some(honest), Some(trace)) = (records(&told, index, 60_000), records(&lied, index, 60_000))
        else {
            continue;
        };
        let (cut, as_it_was) = (ends(&told, &honest), ends(&lied, &trace));
        let mut random = Random::of_item(7, index);
        let later: Vec<_> =
            as_it_was.keys().filter(|key| response(&as_it_was, **key) > response(&cut, **key)).collect();
        let Some(&&(task, job)) = later.get(random.below(later.len().max(1) as u64) as usize) else {
            continue;
        };
        let (Some(with), Some(without)) = (response(&as_it_was, (task, job)), response(&cut, (task, job)))
        else {
            continue;
        };
        let most = random.between(without.saturating_sub(1), with - 1);
        let bound = Bound {
            task: TaskId(task),
            response: Span::from_ns(most),
            test: "drawn".to_owned(),
            exact: true,
        };
        let result = verified(&told, &[bound], &trace);
        for finding in result.findings.iter().filter(|one| one.check == Check::Response) {
            let key = (task, finding.job.expect("of a job"));
            let Some(without) = response(&cut, key) else { continue };
            let wanted = if without > most { Class::BoundViolated } else { Class::ModelViolated };
            let is_named =
                !finding.message.contains("broken assumptions of") || finding.message.contains(&liar);
            match finding.class {
                class if class == wanted && is_named => {
                    *if without > most { &mut bounds } else { &mut models } += 1
                }
                Class::CannotTell => untold += 1,
                class => wrong.push(format!(
                    "{index} {key:?}: wanted {wanted:?}, {class:?}: {}; {liar} lies",
                    finding.message
                )),
            }
        }
    }
    println!("model {models}, bound {bounds}, untold {untold}, wrong {}", wrong.len());
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert!(models > 100 && bounds > 25, "{models} {bounds} {untold}");
}
