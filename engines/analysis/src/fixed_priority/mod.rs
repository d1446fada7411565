//! Fixed priorities: response times of preemptive, non-preemptive and deferred tasks, mixed as one likes.
//!
//! For a task i, in the worst case, the longest non-preemptive segment of a less important task has just begun when
//! all others become ready together, later jobs as early as they may, so that the processor is busy with work of
//! i's importance or above for the length of the *busy period*. Every job of i that becomes ready within it is
//! examined. With B the blocking, N_h(x) the most jobs of a more important task h that become ready in a window of
//! length x, and W the work of i's earlier jobs and of jobs of equal priority that are ahead of it:
//!
//! - a preemptive job ends at the least x with `x = B + W + C_i + sum N_h(x) C_h`;
//! - any other job starts its last segment F at the least s with `s = B + W + (C_i - F) + sum N_h(s) C_h` and ends
//!   at s + F, for every way that it can end.
//!
//! N counts a half-open window, `ceil((x + J) / T)`, except for starts where B = 0: a job that becomes ready at the
//! very instant of a start then comes first, `floor((x + J) / T) + 1`. Where B > 0 the blocking segment must begin
//! before that instant, so the bound is a supremum that no run attains. See `docs/concepts/fixed-priority.md` and
//! `docs/concepts/deferred-preemption.md`. Sources: `joseph86`, `lehoczky90`, `tindell94`, `george96`, `bril09`;
//! sections that hold resources: [`sections`].

mod attained;
pub(crate) mod level;
mod levels;
mod offsets;
mod plain;
mod release_queue;
pub(crate) mod sections;
mod slack_policy;
mod solver;
pub(crate) mod sweep;
mod witness;

pub use solver::{LANES, LARGEST_NS, PlainTask, Solver};

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask, Ending, InterruptLoad, Poller, Seen};
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{MissWitness, TaskVerdict, TestResult, Verdict};
use crate::utilisation;
use attained::{attained, source_of_terms};
use horolog_model::{Priority, System};
use horolog_time::Span;
use level::{Known, Level, Row, Stop};
use levels::Levels;
use sections::Sections;
use std::borrow::Cow;
use std::cmp::Reverse;
use sweep::Rules;

/// The variants of the response-time test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    /// Continuous time: the least upper bound.
    Exact,
    /// Starts always count releases at the same instant.
    Uniform,
    /// Integer time of the options' resolution.
    Integer,
}

/// What is found out once for a whole processor.
struct Shared<'a> {
    /// Bounds by the fast engines, of each variant, where they cover the processor.
    exact: Option<Vec<Option<u64>>>,
    uniform: Option<Vec<Option<u64>>>,
    integer: Option<Vec<Option<u64>>>,
    /// Whether the variant in integer time is asked for.
    has_integer: bool,
    /// The one schedule of a processor with offsets.
    followed: Option<offsets::Followed>,
    /// Of each task the longest segment of less important ones or section that blocks it, and of those that are not more important, itself among
    /// them, where some task is more important.
    longest_below: Vec<u64>,
    allowed: Vec<Option<u64>>,
    /// The levels, where no task waits within its jobs.
    levels: Option<Levels<'a>>,
    /// Whether an exact test of the tasks is one of the processor.
    keeps_exactness: bool,
    /// Of each task, whether nothing but other periodic tasks and blocking delays it.
    plain: Vec<bool>,
    sections: Sections<'a>,
    /// The name and source of the exact test where some task has sections.
    of_sections: Option<(&'static str, &'static str)>,
    /// Whether a job may wait for a lock within its execution: then no bound is known to be the least.
    has_waits: bool,
}

impl<'a> Shared<'a> {
    fn new(cpu: &'a CpuModel, options: &Options) -> Result<Shared<'a>, AnalysisError> {
        let has_segments = has_segments(cpu);
        let has_integer = has_segments && cpu.is_in_units_of(options.resolution.as_ns());
        let variant =
            |is_asked: bool, less_blocking: u64| -> Result<Option<Vec<Option<u64>>>, AnalysisError> {
                if !is_asked {
                    return Ok(None);
                }
                let mut found = Vec::new();
                let rules = Rules { closed_starts: true, less_blocking, to_first_miss: false };
                let answer = sweep::sweep(cpu, rules, &mut found, &mut { options.effort })?;
                Ok(answer.map(|_| found))
            };
        let sections = Sections::of(cpu)?;
        let (longest_below, allowed) = longest_segments(cpu, &sections)?;
        Ok(Shared {
            exact: plain::responses(cpu, options.effort)?,
            uniform: variant(has_segments, 0)?,
            integer: variant(has_integer, options.resolution.as_ns())?,
            has_integer,
            followed: if offsets::applies(cpu) { offsets::follow(cpu, options.effort)? } else { None },
            longest_below,
            allowed,
            levels: Levels::new(cpu)?,
            keeps_exactness: cpu.keeps_exactness(),
            plain: plain_levels(cpu)?,
            sections,
            of_sections: name_of_sections(cpu),
            has_waits: cpu.has_spin_locks() || cpu.has_lock_waits(),
        })
    }

    fn fast(&self, variant: Variant, index: usize) -> Option<u64> {
        let found = match variant {
            Variant::Exact => &self.exact,
            Variant::Uniform => &self.uniform,
            Variant::Integer => &self.integer,
        };
        found.as_ref().and_then(|found| found[index])
    }
}

/// The rows of all witnesses together, one a task in each: of so many tasks that they would fill the memory only the first ones that
/// miss have a witness.
const MOST_ROWS: usize = 1_000_000;

/// Every test of every task of one processor.
pub(crate) fn analyze_cpu(
    system: &System,
    cpu: &CpuModel,
    options: &Options,
) -> Result<Vec<TaskVerdict>, AnalysisError> {
    let shared = Shared::new(cpu, options)?;
    let variants = 1 + usize::from(has_segments(cpu)) + usize::from(shared.has_integer);
    let options = &options.for_each_of(variants.saturating_mul(cpu.tasks.len()));
    let mut verdicts = Vec::with_capacity(cpu.tasks.len());
    let mut witnesses = MOST_ROWS / cpu.tasks.len().max(1);
    for index in 0..cpu.tasks.len() {
        let mut verdict = analyze_task(cpu, index, &shared, options)?;
        if verdict.verdict == Verdict::Misses && cpu.servers.is_empty() && witnesses > 0 {
            witnesses -= 1;
            verdict.witness = match &shared.followed {
                Some(followed) => match followed.first_late[index] {
                    Some(late) => offsets::pattern(system.name(), cpu, index, late)
                        .map(|pattern| MissWitness::Pattern { pattern }),
                    None => Some(MissWitness::SupremumOnly),
                },
                None => witness::witness(system, cpu, index, options)?,
            };
        }
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

fn analyze_task(
    cpu: &CpuModel,
    index: usize,
    shared: &Shared<'_>,
    options: &Options,
) -> Result<TaskVerdict, AnalysisError> {
    let task = &cpu.tasks[index];
    let blocking = blocking_by(cpu, index, shared.longest_below[index])?;
    let variants = [Variant::Exact, Variant::Uniform, Variant::Integer];
    let is_asked = |variant: &Variant| match variant {
        Variant::Exact => true,
        Variant::Uniform => !task.shape.preemptive,
        Variant::Integer => shared.has_integer,
    };
    // The fast engines have answered for the whole level, and know no equal priorities.
    let is_fast = variants.iter().filter(|one| is_asked(one)).all(|&one| shared.fast(one, index).is_some());
    let level = match &shared.levels {
        _ if is_fast => level_alone(cpu, index),
        Some(levels) => {
            let (higher, equal, known) = levels.around(index);
            level_above(cpu, index, higher, equal, Some(known))?
        }
        None => level_of(cpu, index)?,
    };
    let mut level = Level { blocking, ..level };
    // These decide; the other variants answer another question, or are no tighter.
    let plain = response_test(cpu, index, Variant::Exact, &mut level, shared, options)?;
    let mut decisive = vec![slack_policy::test(cpu, index, &plain).unwrap_or(plain)];
    decisive.extend(shared.followed.as_ref().map(|followed| offset_test(task, followed, index)));
    let mut others = Vec::new();
    for variant in variants.into_iter().skip(1).filter(is_asked) {
        others.push(response_test(cpu, index, variant, &mut level, shared, options)?);
    }
    let name = task.name.clone();
    let deadline = task.deadline.map(Span::from_ns);
    let mut verdict = TaskVerdict::best_of(name, cpu.cpu, deadline, Span::from_ns(blocking), decisive)
        .ok_or_else(|| AnalysisError::overflow(format!("task.{}", task.name), "response time"))?;
    verdict.tests.extend(others);
    verdict.allowed_segment = shared.allowed[index].map(Span::from_ns);
    Ok(verdict)
}

/// The test of the one schedule that a processor with offsets has.
fn offset_test(task: &CpuTask, followed: &offsets::Followed, index: usize) -> TestResult {
    let response = followed.responses[index];
    let meets = task.deadline.is_none_or(|d| response <= d);
    let note = if meets || followed.first_late[index].is_some() {
        "with the offsets of the file"
    } else {
        "with the offsets of the file; it misses only where its equals of one instant come before it"
    };
    TestResult {
        test: "fp-offsets",
        verdict: if meets { Verdict::Meets } else { Verdict::Misses },
        response: Some(Span::from_ns(response)),
        exact: true,
        source: "leung80",
        note: Some(note.into()),
    }
}

/// Of each task: the longest segment of less important ones, or section that blocks it, and the longest non-preemptive segment that it may have without more
/// blocking to anybody than there is already: the longest among its own and those of tasks that are not more important
/// (`bergsma09`, equation 8.7), `None` where no task is more important: then nothing bounds it.
fn longest_segments(
    cpu: &CpuModel,
    sections: &Sections<'_>,
) -> Result<(Vec<u64>, Vec<Option<u64>>), AnalysisError> {
    let mut order = Vec::with_capacity(cpu.tasks.len());
    for (index, task) in cpu.tasks.iter().enumerate() {
        order.push((priority_of(task)?.number(), index));
    }
    order.sort_unstable();
    let (mut below, mut allowed) = (vec![0; order.len()], vec![None; order.len()]);
    let (most, mut longest) = (order.last().map(|last| last.0), 0);
    for equals in order.chunk_by(|a, b| a.0 == b.0) {
        let own = equals.iter().map(|&(_, index)| cpu.tasks[index].shape.longest_segment).max().unwrap_or(0);
        for &(number, index) in equals {
            below[index] = longest;
            allowed[index] = (Some(number) != most).then_some(longest.max(own));
        }
        longest = longest.max(own);
    }
    for (index, below) in below.iter_mut().enumerate() {
        *below = (*below).max(sections.blocked(index)?.time());
    }
    Ok((below, allowed))
}

fn has_segments(cpu: &CpuModel) -> bool {
    cpu.tasks.iter().any(|t| !t.shape.preemptive)
}

/// The priority of a task under fixed priorities.
pub(crate) fn priority_of(task: &CpuTask) -> Result<Priority, AnalysisError> {
    task.priority.ok_or_else(|| {
        AnalysisError::outside(
            format!("task.{}.priority", task.name),
            "a fixed-priority test needs a priority for every task",
            "give `priority`, or set [system] priorities = \"deadline-monotonic\", \"rate-monotonic\" or \"audsley\"",
        )
    })
}

/// Longest time that a less important task may hold the processor against a task: the longest segment of a less
/// important task that is not preemptive (equals are no blocking: those that are ahead count as interference), and
/// a context switch that has begun.
pub(crate) fn blocking(cpu: &CpuModel, index: usize) -> Result<u64, AnalysisError> {
    let own = priority_of(&cpu.tasks[index])?;
    let mut longest = 0;
    for task in &cpu.tasks {
        if own.is_more_important_than(priority_of(task)?) {
            longest = longest.max(task.shape.longest_segment);
        }
    }
    longest = longest.max(Sections::of(cpu)?.blocked(index)?.time());
    blocking_by(cpu, index, longest)
}

/// [`blocking`] by the longest segment of less important tasks.
fn blocking_by(cpu: &CpuModel, index: usize, longest: u64) -> Result<u64, AnalysisError> {
    // Once when it arrives, and again whenever it goes on after a wait.
    let times = cpu.tasks[index].suspensions() + 1;
    let blocking = (longest + cpu.context_switch).checked_mul(times);
    blocking.ok_or_else(|| AnalysisError::overflow(format!("task.{}", cpu.tasks[index].name), "blocking"))
}

/// The level of the task at `index`.
pub(crate) fn level_of(cpu: &CpuModel, index: usize) -> Result<Level<'_>, AnalysisError> {
    let task = &cpu.tasks[index];
    let own = priority_of(task)?;
    let (mut higher, mut equal) = (Vec::new(), Vec::new());
    // Looks at every task, so it is asked only where some task does.
    let asks_anew = cpu.asks_anew();
    for (other_index, other) in cpu.tasks.iter().enumerate() {
        let priority = priority_of(other)?;
        if other_index == index {
            continue;
        }
        let (arrival, wcet) = other.seen();
        let anew = if asks_anew { cpu.asked_anew(own, priority) } else { 0 };
        let whole = wcet.checked_add(anew);
        let wcet = whole.ok_or_else(|| AnalysisError::overflow(format!("task.{}", other.name), "wcet"))?;
        let row = Row { arrival, wcet };
        // Whoever waits comes back behind its equals.
        let waits = task.may_wait() || other.may_wait();
        if priority.is_more_important_than(own) || waits && !own.is_more_important_than(priority) {
            higher.push(row);
        } else if !own.is_more_important_than(priority) {
            equal.push(row);
        }
    }
    let level = level_above(cpu, index, higher, equal, None)?;
    Ok(Level { blocking: blocking(cpu, index)?, ..level })
}

/// The level of the task at `index` below these tasks and whatever else is above it, without blocking.
fn level_above<'a>(
    cpu: &'a CpuModel,
    index: usize,
    mut higher: Vec<Row<'a>>,
    equal: Vec<Row<'a>>,
    known: Option<Known>,
) -> Result<Level<'a>, AnalysisError> {
    let task = &cpu.tasks[index];
    let own = priority_of(task)?;
    for thread in &cpu.drivers.threads {
        if let Some(load) = thread.seen_from(Some(own)) {
            higher.push(Row { arrival: &load.arrival, wcet: load.wcet });
        }
    }
    let mut unbounded = task.waits_unbounded().then_some(Stop::NoAnswer);
    for server in &cpu.servers {
        match server.seen_from(Some(own)) {
            Seen::Nothing => {}
            Seen::Load(load) => higher.push(Row { arrival: &load.arrival, wcet: load.wcet }),
            Seen::Tasks(tasks, moves) => {
                higher.extend(tasks.iter().map(|task| Row { arrival: &task.arrival, wcet: task.wcet }));
                higher.extend(moves.iter().map(|load| Row { arrival: &load.arrival, wcet: load.wcet }));
            }
            Seen::Unbounded => unbounded = Some(Stop::PosixServer),
        }
    }
    Ok(Level {
        higher,
        equal,
        own: Row { arrival: &task.arrival, wcet: task.wcet },
        preemptive: task.shape.preemptive,
        endings: &task.shape.endings,
        blocking: 0,
        closed_starts: false,
        interrupts: interrupts_above(cpu, own),
        interferences: &cpu.interferences,
        known,
        unbounded,
        limit: level::HORIZON,
    })
}

/// The task's level without anything that delays it.
fn level_alone(cpu: &CpuModel, index: usize) -> Level<'_> {
    let task = &cpu.tasks[index];
    Level {
        higher: Vec::new(),
        equal: Vec::new(),
        own: Row { arrival: &task.arrival, wcet: task.wcet },
        preemptive: task.shape.preemptive,
        endings: &task.shape.endings,
        blocking: 0,
        closed_starts: false,
        interrupts: (&[]).into(),
        interferences: &[],
        known: None,
        unbounded: None,
        limit: level::HORIZON,
    }
}

/// The loads above all tasks, as work of this priority sees them: an interrupt that stays off until its poller has
/// executed comes once where the poller is below.
pub(crate) fn interrupts_above(cpu: &CpuModel, own: Priority) -> Cow<'_, [InterruptLoad]> {
    let mut loads = Cow::Borrowed(cpu.interrupts.as_slice());
    for napi in &cpu.drivers.napi {
        let is_below = match &napi.poller {
            Poller::Thread(high) => high.is_none_or(|high| own.is_more_important_than(high)),
            Poller::Server(name) => {
                let server = cpu.servers.iter().find(|server| server.name == *name);
                server.is_some_and(|server| matches!(server.seen_from(Some(own)), Seen::Nothing))
            }
        };
        if is_below && let Some(load) = loads.to_mut().get_mut(cpu.first_driver + napi.index) {
            load.arrival = ArrivalCurve::Listed { arrivals: vec![0], jitter: 0 };
        }
    }
    loads
}

fn response_test(
    cpu: &CpuModel,
    index: usize,
    variant: Variant,
    level: &mut Level<'_>,
    shared: &Shared<'_>,
    options: &Options,
) -> Result<TestResult, AnalysisError> {
    let fast = shared.fast(variant, index);
    let blocking = level.blocking;
    match variant {
        Variant::Exact => {}
        Variant::Uniform => level.closed_starts = true,
        Variant::Integer => {
            level.closed_starts = true;
            level.blocking = level.blocking.saturating_sub(options.resolution.as_ns());
        }
    }
    let mut window = None;
    let found = match fast {
        Some(response) => Ok(response),
        None => level.solve(&mut { options.effort }).map(|found| {
            window = Some(found.worst.start);
            found.worst.response
        }),
    };
    // Ties among equals go to whoever is ahead in the order of the file: counting them all against the task is a
    // supremum in continuous time, but one unit too many in integer time.
    let least = (shared.keeps_exactness || window.is_some_and(|window| attained(cpu, index, window)))
        && !shared.sections.ends_above(index)?
        && !shared.has_waits
        && match variant {
            Variant::Exact => true,
            Variant::Uniform => level.blocking == 0,
            Variant::Integer => level.equal.is_empty(),
        };
    let (test, source) = name_of(cpu, index, variant, shared.of_sections);
    let source = match test {
        "fp-preemptive" => {
            source_of(&cpu.tasks[index], shared.plain[index], blocking, found.as_ref().ok().copied())
        }
        _ => source,
    };
    let (verdict, note) = judge(cpu, index, level, &found, least)?;
    (level.closed_starts, level.blocking) = (false, blocking);
    let response = found.ok().map(Span::from_ns);
    let note = match variant {
        Variant::Integer => Some(format!("in integer time of resolution {}", options.resolution)),
        _ if test == "fp-ceiling" => note.or(Some("in continuous time".to_owned())),
        _ => note,
    };
    // Without a bound a miss is proved by overload alone, which no other test can answer otherwise.
    let exact = if response.is_some() { least } else { verdict == Verdict::Misses };
    Ok(TestResult { test, verdict, response, exact, source, note })
}

/// The name and source of the test that decides about a task.
pub(crate) fn name_of_exact(cpu: &CpuModel, index: usize) -> &'static str {
    name_of(cpu, index, Variant::Exact, name_of_sections(cpu)).0
}

/// Whose rule gave the bound of a preemptive task: `joseph86` for one job that only periodic work of others delays, `lehoczky90` for
/// the longest of several jobs of a busy period, `tindell94` where blocking, jitter, equal priorities or other loads count.
fn source_of(task: &CpuTask, is_plain: bool, blocking: u64, response: Option<u64>) -> &'static str {
    match task.arrival {
        _ if !is_plain || blocking > 0 => "tindell94",
        // Where its response is within its separation, one job is the whole of its busy period.
        ArrivalCurve::Periodic { separation, .. } if response.is_some_and(|ns| ns <= separation) => {
            "joseph86"
        }
        _ => "lehoczky90",
    }
}

/// Of each task, whether it and all that may delay it but for blocking are periodic tasks without jitter, each of another priority.
fn plain_levels(cpu: &CpuModel) -> Result<Vec<bool>, AnalysisError> {
    let is_free = cpu.interrupts.is_empty() && cpu.interferences.is_empty() && cpu.drivers.is_empty();
    let mut order = Vec::with_capacity(cpu.tasks.len());
    for (index, task) in cpu.tasks.iter().enumerate() {
        order.push((Reverse(priority_of(task)?.number()), index));
    }
    order.sort_unstable();
    let (mut above, mut plain) = (is_free, vec![false; order.len()]);
    for equals in order.chunk_by(|a, b| a.0 == b.0) {
        let is_periodic = |&(_, index): &(Reverse<i64>, usize)| {
            matches!(cpu.tasks[index].arrival, ArrivalCurve::Periodic { jitter: 0, .. })
        };
        above &= equals.iter().all(is_periodic);
        for &(_, index) in equals {
            plain[index] = above && equals.len() == 1;
        }
    }
    Ok(plain)
}

/// The name and source of the exact test beside sections. It looks at every task.
fn name_of_sections(cpu: &CpuModel) -> Option<(&'static str, &'static str)> {
    Some(if cpu.helps() {
        ("fp-mrsp", "burns13")
    } else if cpu.asks_anew() {
        ("fp-preemptable-fifo", "wieder13")
    } else if cpu.has_spin_locks() {
        ("fp-spin-locks", "gai01")
    } else if cpu.inherits() {
        ("fp-inheritance", "sha90")
    } else if cpu.has_lock_waits() {
        ("fp-original-ceiling", "sha90")
    } else if cpu.has_sections() {
        ("fp-ceiling", "sha90")
    } else {
        return None;
    })
}

/// The test's name and source, with those of the exact test beside sections.
fn name_of(
    cpu: &CpuModel,
    index: usize,
    variant: Variant,
    of_sections: Option<(&'static str, &'static str)>,
) -> (&'static str, &'static str) {
    let task = &cpu.tasks[index];
    if let Some(source) = source_of_terms(cpu, index) {
        return match variant {
            Variant::Uniform => ("fp-servers-uniform", source),
            Variant::Integer => ("fp-servers-integer", source),
            Variant::Exact if task.waiting.is_some() => ("fp-suspending", "chen19"),
            Variant::Exact if task.shape.preemptive => ("fp-servers", source),
            Variant::Exact => ("fp-servers-deferred", source),
        };
    }
    let deferred = !matches!(task.shape.endings.as_slice(), [Ending { before: 0, .. }]);
    match (variant, of_sections) {
        (Variant::Uniform, _) => ("fp-deferred-uniform", "burns94"),
        (Variant::Integer, _) => ("fp-deferred-integer", "bril09"),
        (Variant::Exact, _) if task.waiting.is_some() => ("fp-suspending", "chen19"),
        (Variant::Exact, Some(named)) => named,
        (Variant::Exact, None) if task.shape.preemptive => ("fp-preemptive", "tindell94"),
        (Variant::Exact, None) if deferred => ("fp-deferred", "bril09"),
        (Variant::Exact, None) => ("fp-non-preemptive", "george96"),
    }
}

fn judge(
    cpu: &CpuModel,
    index: usize,
    level: &Level<'_>,
    found: &Result<u64, Stop>,
    least: bool,
) -> Result<(Verdict, Option<String>), AnalysisError> {
    let deadline = cpu.tasks[index].deadline;
    Ok(match found {
        Ok(found) if deadline.is_none_or(|d| *found <= d) => (Verdict::Meets, None),
        Ok(_) if least => (Verdict::Misses, None),
        Ok(_) => {
            (Verdict::Unknown, Some("the bound is above the deadline and not known to be the least".into()))
        }
        Err(Stop::Overload) if deadline.is_some() && bare_overload(cpu, level, index) => {
            (Verdict::Misses, Some(Stop::Overload.words().into()))
        }
        Err(stop) => (Verdict::Unknown, Some(stop.words().into())),
    })
}

/// Whether the tasks of the level alone, without costs and interference, ask for more than the processor: then
/// the backlog grows without bound and every deadline is missed in the end. A finite list of jobs may be through
/// before that.
pub(crate) fn bare_overload(cpu: &CpuModel, level: &Level<'_>, index: usize) -> bool {
    if matches!(level.own.arrival, ArrivalCurve::Listed { .. }) {
        return false;
    }
    let goes_away = cpu.helps();
    if !goes_away && let Some(order) = level.known.and_then(|known| known.bare.compare_with_one()) {
        return order.is_gt();
    }
    let own = cpu.tasks[index].priority;
    let counts = |task: &&CpuTask| match (own, task.priority) {
        (Some(own), Some(other)) => !own.is_more_important_than(other),
        _ => false,
    };
    let share = |task: &CpuTask| match task.arrival {
        // What may go on on other processors is none of what this one has to do.
        ArrivalCurve::Periodic { separation, .. } => {
            Some((task.bare_wcet.saturating_sub(task.may_go_away()), separation))
        }
        ArrivalCurve::Listed { .. } => None,
    };
    // Another one that waits for a device may come to so few jobs that it leaves enough.
    let others =
        cpu.tasks.iter().enumerate().filter(|(place, task)| *place == index || task.waiting.is_none());
    let shares = others.map(|(_, task)| task).filter(counts).filter_map(share);
    utilisation::compare_with_one(shares).is_gt()
}

/// How far a task exceeds its deadline by the exact test: 0 where it meets, `u64::MAX` where there is no bound. What it costs
/// is taken off `effort`.
pub(crate) fn excess_within(cpu: &CpuModel, index: usize, effort: &mut u64) -> Result<u64, AnalysisError> {
    let found = level_of(cpu, index)?.solve(effort);
    Ok(match (found, cpu.tasks[index].deadline) {
        (Ok(found), Some(deadline)) => found.worst.response.saturating_sub(deadline),
        (Ok(_), None) => 0,
        (Err(_), _) => u64::MAX,
    })
}
