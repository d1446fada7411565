//! EDF tests of one processor of a system.

use super::sections::sections;
use super::view::{bare_overload, set_of};
use super::{
    Budget, EdfSet, EdfSolver, EdfVerdict, NpTime, ResponseAnalysis, Unresolved, constant_bandwidth,
};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask};
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{TaskVerdict, TestResult, Verdict};
use horolog_model::System;
use horolog_time::Span;

/// Which test a result comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Flavour {
    time: NpTime,
    /// Whether any task is non-preemptive.
    blocks: bool,
    held: Holding,
}

/// What jobs of the processor hold; beside sections no task is non-preemptive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holding {
    Nothing,
    Resources,
    SpinLocks,
}

impl Holding {
    fn on(cpu: &CpuModel) -> Holding {
        match (cpu.has_spin_locks(), cpu.has_sections()) {
            (true, _) => Holding::SpinLocks,
            (false, true) => Holding::Resources,
            (false, false) => Holding::Nothing,
        }
    }
}

impl Flavour {
    const fn set_test(self) -> (&'static str, &'static str) {
        match self.held {
            Holding::Nothing => {}
            Holding::Resources => return ("edf-qpa-ceiling", "baker91"),
            Holding::SpinLocks => return ("edf-qpa-spin-locks", "gai01"),
        }
        match (self.blocks, self.time) {
            (false, _) => ("edf-qpa", "zhangburns09"),
            (true, NpTime::Continuous) => ("edf-qpa-non-preemptive", "george96"),
            (true, NpTime::Units(_)) => ("edf-qpa-non-preemptive-integer", "jeffay91"),
        }
    }

    const fn response_test(self, preemptive: bool) -> (&'static str, &'static str) {
        match self.held {
            Holding::Nothing => {}
            Holding::Resources => return ("edf-ceiling", "baker91"),
            Holding::SpinLocks => return ("edf-spin-locks", "gai01"),
        }
        match (preemptive, self.blocks, self.time) {
            (true, true, NpTime::Units(_)) => ("edf-response-integer", "george96"),
            (true, _, _) => ("edf-response", "spuri96"),
            (false, _, NpTime::Continuous) => ("edf-response-non-preemptive", "george96"),
            (false, _, NpTime::Units(_)) => ("edf-response-non-preemptive-integer", "george96"),
        }
    }
}

/// What the response times of all tasks are judged with.
#[derive(Clone, Copy)]
struct Given {
    flavour: Flavour,
    /// What the test of the whole set says.
    whole: Verdict,
    /// Whether the bounds are the least ones.
    least: bool,
}

/// Evaluations of one task's term that the response times may take for each unit of the effort: they cost about a
/// nanosecond each.
const TERMS: u64 = 3;

/// Tasks that the release patterns of one processor may name in all: each pattern names up to every task.
const MOST_IN_PATTERNS: usize = 1_000_000;

/// The name of the test that gives a task its bound.
pub(super) fn continuous_test(cpu: &CpuModel, index: usize) -> &'static str {
    let blocks = cpu.tasks.iter().any(|task| !task.shape.preemptive);
    Flavour { time: NpTime::Continuous, blocks, held: Holding::on(cpu) }
        .response_test(cpu.tasks[index].shape.preemptive)
        .0
}

/// Every test of every task of one processor, and the tests of the whole set.
pub(crate) fn analyze_cpu(
    system: &System,
    cpu: &CpuModel,
    options: &Options,
) -> Result<(Vec<TaskVerdict>, Vec<TestResult>), AnalysisError> {
    refuse_deferred(cpu)?;
    if constant_bandwidth::applies(cpu) {
        return Ok(constant_bandwidth::verdicts(cpu, options));
    }
    let set = set_of(cpu)?;
    let blocks = cpu.tasks.iter().any(|t| !t.shape.preemptive);
    let held = Holding::on(cpu);
    let mut flavours = vec![Flavour { time: NpTime::Continuous, blocks, held }];
    let unit = options.resolution.as_ns();
    if blocks && cpu.is_in_units_of(unit) {
        flavours.push(Flavour { time: NpTime::Units(unit), blocks, held });
    }
    let each = options.for_each_of(cpu.tasks.len());
    let [shared, own] =
        [options.effort_of_all(cpu.tasks.len()), each.effort].map(|effort| effort.saturating_mul(TERMS));
    let least = cpu.keeps_exactness() && held == Holding::Nothing;
    let mut set_tests = Vec::new();
    let mut tests: Vec<Vec<TestResult>> = vec![Vec::new(); cpu.tasks.len()];
    for flavour in flavours {
        let (whole, failing) = set_test(cpu, &set, flavour, least, options);
        let given = Given { flavour, whole: whole.verdict, least };
        let found = ResponseAnalysis::new(&set, flavour.time, &mut Budget::terms(options.effort))
            .map(|analysis| analysis.responses(&mut Budget::terms(shared), own));
        for (index, tests) in tests.iter_mut().enumerate() {
            let found = found.as_ref().map_err(|reason| *reason).and_then(|found| found[index]);
            tests.push(response_test(cpu, index, given, found));
            if whole.verdict == Verdict::Meets {
                tests.push(whole.clone());
            }
        }
        if let Some(window) = failing {
            let mut budget = Budget::terms(options.effort_of_all(cpu.tasks.len()));
            name_late_tasks(&set, flavour.time, window, each.effort, &mut budget, &mut tests);
        }
        set_tests.push(whole);
    }
    let mut verdicts = Vec::with_capacity(tests.len());
    let blocking = longest_blocking(cpu);
    let is_bare = cpu.servers.is_empty() && held == Holding::Nothing;
    let mut late = None;
    let mut patterns = MOST_IN_PATTERNS / cpu.tasks.len().max(1);
    for (index, (tests, blocking)) in tests.into_iter().zip(blocking).enumerate() {
        let mut verdict = verdict_of(cpu, index, blocking, tests)?;
        if verdict.verdict == Verdict::Misses && is_bare && patterns > 0 {
            patterns -= 1;
            let late = late.get_or_insert_with(|| ResponseAnalysis::for_late_jobs(&set, NpTime::Units(1)));
            verdict.witness = super::evidence::witness(system, cpu, late, index, &each);
        }
        verdicts.push(verdict);
    }
    Ok((verdicts, set_tests))
}

/// Says which tasks miss where a window asks for too much and a task has no response time that would say so; the last of
/// each task's tests is that of its response time.
fn name_late_tasks(
    set: &EdfSet,
    time: NpTime,
    window: u64,
    each: u64,
    budget: &mut Budget,
    tests: &mut [Vec<TestResult>],
) {
    let is_open = |tests: &[TestResult]| tests.last().is_some_and(|test| test.verdict == Verdict::Unknown);
    if !tests.iter().any(|tests| is_open(tests)) {
        return;
    }
    let analysis = ResponseAnalysis::for_late_jobs_within(set, time);
    let mut work = analysis.work.clone();
    for (index, tests) in tests.iter_mut().enumerate().filter(|(_, tests)| is_open(tests)) {
        let given = budget.left().min(each);
        let mut own = Budget::terms(given);
        let late = analysis.late_within(index, window, &mut work, &mut own);
        let _ = budget.spend(given - own.left());
        if let (Ok(Some(late)), Some(test)) = (late, tests.last_mut()) {
            (test.verdict, test.exact) = (Verdict::Misses, true);
            test.note = Some(format!(
                "a job that is due {} after the start of a busy period is finished {} after its arrival at the worst",
                Span::from_ns(late.deadline_at),
                Span::from_ns(late.response)
            ));
        }
    }
}

/// The continuous-time tests decide; those of integer time answer another question and stand behind.
fn verdict_of(
    cpu: &CpuModel,
    index: usize,
    blocking: u64,
    tests: Vec<TestResult>,
) -> Result<TaskVerdict, AnalysisError> {
    let task = &cpu.tasks[index];
    let (integer, decisive): (Vec<_>, Vec<_>) = tests.into_iter().partition(|t| t.test.ends_with("-integer"));
    let (name, deadline) = (task.name.clone(), task.deadline.map(Span::from_ns));
    let mut verdict = TaskVerdict::best_of(name, cpu.cpu, deadline, Span::from_ns(blocking), decisive)
        .ok_or_else(|| AnalysisError::overflow(format!("task.{}", task.name), "response time"))?;
    verdict.tests.extend(integer);
    Ok(verdict)
}

/// The longest time that a job with a later deadline may hold the processor against each task: only tasks with a
/// longer D − J can, and sections that block windows beyond it.
fn longest_blocking(cpu: &CpuModel) -> Vec<u64> {
    let window = |task: &CpuTask| {
        task.deadline.map_or(i128::MAX, |d| i128::from(d) - i128::from(task.arrival.jitter()))
    };
    let mut order: Vec<(i128, usize)> = cpu.tasks.iter().map(window).zip(0..).collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let whole = order.iter().map(|&(until, index)| (until, cpu.tasks[index].shape.longest_segment));
    let held = sections(cpu)
        .into_iter()
        .map(|section| (section.blocking.until.map_or(i128::MAX, i128::from), section.blocking.time));
    let mut blockers: Vec<(i128, u64)> = whole.chain(held).collect();
    blockers.sort_unstable_by(|a, b| b.cmp(a));
    let mut blocking = vec![cpu.context_switch; cpu.tasks.len()];
    let (mut above, mut longest) = (0, 0);
    for &(own, index) in &order {
        while blockers.get(above).is_some_and(|blocker| blocker.0 > own) {
            longest = longest.max(blockers[above].1);
            above += 1;
        }
        blocking[index] += longest;
    }
    blocking
}

pub(super) fn refuse_deferred(cpu: &CpuModel) -> Result<(), AnalysisError> {
    match cpu.tasks.iter().find(|t| !t.shape.preemptive && t.shape.longest_segment != t.bare_wcet) {
        None => Ok(()),
        Some(task) => Err(AnalysisError::outside(
            format!("task.{}.preemption", task.name),
            "no test is known for deferred preemption under EDF",
            "use preemption = \"preemptive\" or \"non-preemptive\", or policy = \"fixed-priority\"",
        )),
    }
}

fn set_test(
    cpu: &CpuModel,
    set: &EdfSet,
    flavour: Flavour,
    least: bool,
    options: &Options,
) -> (TestResult, Option<u64>) {
    let mut solver = EdfSolver::new();
    let found = solver.check_within(set, flavour.time, &mut Budget::terms(options.effort));
    let (test, source) = flavour.set_test();
    let (verdict, note) = match found {
        EdfVerdict::Schedulable => (Verdict::Meets, None),
        EdfVerdict::Fails(failure) => {
            let blocking = match failure.blocker {
                Some(index) => format!(", blocking by `{}` included", cpu.tasks[index].name),
                None => String::new(),
            };
            let note = format!(
                "a window of {} asks for {}{blocking}",
                Span::from_ns(failure.window),
                Span::from_ns(failure.demand)
            );
            (if least { Verdict::Misses } else { Verdict::Unknown }, Some(note))
        }
        EdfVerdict::Overload if bare_overload(cpu) => (Verdict::Misses, Some(OVERLOAD.to_owned())),
        EdfVerdict::Overload => (Verdict::Unknown, Some(OVERLOAD_WITH_LOADS.to_owned())),
        EdfVerdict::Unknown(reason) => (Verdict::Unknown, Some(reason.to_string())),
    };
    let note = match flavour.time {
        NpTime::Continuous => note,
        NpTime::Units(_) => Some(format!("in integer time of resolution {}", options.resolution)),
    };
    // A miss is proved, by a window that asks for too much or by overload, whatever the costs.
    let exact = verdict == Verdict::Misses || least && verdict != Verdict::Unknown;
    let failing = match found {
        EdfVerdict::Fails(failure) if verdict == Verdict::Misses => Some(failure.window),
        _ => None,
    };
    (TestResult { test, verdict, response: None, exact, source, note }, failing)
}

const OVERLOAD: &str =
    "utilisation is above 1: the backlog grows without bound, and under EDF every task misses in the end";
const OVERLOAD_WITH_LOADS: &str =
    "utilisation with costs and measured loads is above 1; the tasks alone ask for no more than 1";

fn response_test(
    cpu: &CpuModel,
    index: usize,
    given: Given,
    found: Result<Option<u64>, Unresolved>,
) -> TestResult {
    let Given { flavour, whole, least } = given;
    let task = &cpu.tasks[index];
    let (test, source) = flavour.response_test(task.shape.preemptive);
    let response = found.ok().flatten();
    let (verdict, note) = match (found, task.deadline) {
        (_, None) => (Verdict::Meets, Some("no deadline: served after every job that has one".to_owned())),
        (Ok(Some(response)), Some(deadline)) if response <= deadline => (Verdict::Meets, None),
        (Ok(Some(_)), _) if least => (Verdict::Misses, None),
        (Ok(Some(_)), _) => (
            Verdict::Unknown,
            Some("the bound is above the deadline and not known to be the least".to_owned()),
        ),
        (Err(Unresolved::Overload), _) if whole == Verdict::Misses && !is_listed(task) => {
            (Verdict::Misses, Some(OVERLOAD.to_owned()))
        }
        (Err(Unresolved::Overload), _) if !bare_overload(cpu) => {
            (Verdict::Unknown, Some(OVERLOAD_WITH_LOADS.to_owned()))
        }
        (Err(Unresolved::LateRelease), Some(deadline)) if least && alone(task) > u128::from(deadline) => {
            (Verdict::Misses, Some("release jitter and wcet alone exceed the deadline".to_owned()))
        }
        (Err(reason), _) => (Verdict::Unknown, Some(reason.to_string())),
        (Ok(None), _) => (Verdict::Unknown, None),
    };
    // In integer time a tie goes by the written order, so that counting it against the task may be one too many.
    let exact = match response {
        Some(_) => least && flavour.time == NpTime::Continuous,
        None => verdict == Verdict::Misses,
    };
    TestResult { test, verdict, response: response.map(Span::from_ns), exact, source, note }
}

/// Whether the task has a finite list of jobs: overload need not make any of them late.
fn is_listed(task: &CpuTask) -> bool {
    matches!(task.arrival, ArrivalCurve::Listed { .. })
}

/// The response time of a job that nothing delays but its own release jitter.
fn alone(task: &CpuTask) -> u128 {
    u128::from(task.wcet) + u128::from(task.arrival.jitter())
}

/// Whether every task meets its deadline by the set test; takes what it costs off `effort`.
pub(crate) fn all_meet(cpu: &CpuModel, effort: &mut u64) -> Result<bool, AnalysisError> {
    let mut budget = Budget::terms(*effort);
    let meet = if constant_bandwidth::applies(cpu) {
        constant_bandwidth::check(cpu, &mut budget).is_ok_and(|verdict| verdict.is_schedulable())
    } else {
        let set = set_of(cpu)?;
        EdfSolver::new().check_within(&set, NpTime::Continuous, &mut budget).is_schedulable()
    };
    *effort = budget.left();
    Ok(meet)
}

/// Whether one task meets its deadline, by the set test or its own response time; takes what it costs off `effort`.
pub(crate) fn task_meets(cpu: &CpuModel, index: usize, effort: &mut u64) -> Result<bool, AnalysisError> {
    if all_meet(cpu, effort)? {
        return Ok(true);
    }
    if constant_bandwidth::applies(cpu) {
        return Ok(false);
    }
    let mut budget = Budget::terms(*effort);
    let found = ResponseAnalysis::new(&set_of(cpu)?, NpTime::Continuous, &mut budget)
        .and_then(|analysis| analysis.response(index, &mut budget));
    *effort = budget.left();
    let deadline = cpu.tasks[index].deadline;
    Ok(matches!(found, Ok(Some(worst)) if deadline.is_none_or(|d| worst.response <= d)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_model::file::read;

    /// Under EDF, none of them preemptive: wcet and deadline in ms.
    fn model(tasks: &[(u64, u64)]) -> CpuModel {
        let mut text = "[system]\nname = \"x\"\npolicy = \"edf\"\n".to_owned();
        for (index, (wcet, deadline)) in tasks.iter().enumerate() {
            text += &format!(
                "[[task]]\nname = \"t{index}\"\nperiod = \"100 ms\"\nwcet = \"{wcet} ms\"\n\
                 deadline = \"{deadline} ms\"\npreemption = \"non-preemptive\"\n"
            );
        }
        let (system, _) = read(&text, "x", &[]).expect("a good file");
        CpuModel::new(&system, system.tasks()[0].cpu).expect("a model")
    }

    /// The longest job with a longer deadline, in whatever order the file has them; equals do not block.
    #[test]
    fn what_blocks_does_not_depend_on_the_order_of_the_tasks() {
        let tasks = [(2, 10), (7, 40), (3, 20), (5, 20)];
        for turn in 0..tasks.len() {
            for is_mirrored in [false, true] {
                let mut turned = tasks;
                turned.rotate_left(turn);
                if is_mirrored {
                    turned.reverse();
                }
                let expected = turned.map(|(_, own)| {
                    let behind = tasks.iter().filter(|(_, deadline)| *deadline > own);
                    behind.map(|(wcet, _)| wcet * 1_000_000).max().unwrap_or(0)
                });
                assert_eq!(longest_blocking(&model(&turned)), expected, "{turned:?}");
            }
        }
    }

    #[test]
    fn a_test_of_the_set_takes_what_it_costs() {
        let model = model(&[(2, 10), (7, 40), (3, 20), (5, 20)]);
        let mut effort = 1_000_000;
        assert!(all_meet(&model, &mut effort).expect("a set"));
        assert!((1..1_000_000).contains(&effort), "{effort}");
        let before = effort;
        assert!(task_meets(&model, 0, &mut effort).expect("a set"));
        assert!(effort < before, "{effort}");
        // Nothing is proven with nothing.
        assert!(!all_meet(&model, &mut 0).expect("a set"));
    }
}
