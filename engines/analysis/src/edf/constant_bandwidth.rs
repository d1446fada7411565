//! Constant and total bandwidth servers beside a set of tasks: the demand criterion on what they leave of the processor.
//!
//! A constant bandwidth server of capacity Q and period T demands at most `w·Q/T` in any window of length w, and no less
//! will do: a server that has c left with its deadline d ahead keeps both at the next arrival r as long as
//! `c < (d − r)·Q/T`, so a window of any length may hold its share. The step ⌊w/T⌋·Q of a periodic task is *not* a bound
//! of it. The jobs of a total bandwidth server that are released and due in a window ask for no more either: their
//! deadlines are `C·T/Q` apart. All deadlines hold if, for every window length t,
//!
//! `h(t) + B(t) + K + (Σ Q/T + U_I)·t ≤ t`
//!
//! with h and B as in [`super::EdfSolver`], and `K + U_I·t` a line above all that interrupts and measured loads take. Where switching costs,
//! it is in Q, and what one period of each server has of it is in K once more: what is left of a budget may be a stretch of its own. With
//! 1 − Σ Q/T − U_I = a/b that is `b·(h(t) + B(t) + K) ≤ a·t`: the criterion of a set with every execution time
//! multiplied by b and every other time by a. So the same solver decides it.
//!
//! Sufficient; exact in the sense that no larger share passes this criterion. Sources: `abeni98`, `spuri96b`, `baruah90`.

use super::{Arrivals, Budget, EdfSet, EdfSolver, EdfTask, EdfVerdict, NpTime};
use crate::answer::{Capacity, NoAnswer};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuServer, CpuTask};
use crate::options::Options;
use crate::result::{TaskVerdict, TestResult, Verdict};
use horolog_time::Span;
use num_bigint::BigInt;
use num_rational::{BigRational, Ratio};
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Scaled times stay below this.
const LONGEST: u64 = 1 << 60;
/// The processor's rest is rounded down to parts of this where its fraction is too fine.
const COARSE: u64 = 1 << 20;

/// Whether any server has a deadline.
pub(crate) fn applies(cpu: &CpuModel) -> bool {
    cpu.servers.iter().any(|server| server.kind.has_deadlines())
}

/// What tasks and servers leave to the deadlines: a line above all loads, and the longest blocking.
struct Rest {
    /// 1 − Σ Q/T − U_I; below zero where more is asked for.
    share: BigRational,
    /// U_I.
    loads: BigRational,
    /// K, ns, with the switching of servers that is in no share.
    burst: u64,
}

impl Rest {
    fn of<'a>(cpu: &CpuModel, servers: impl Iterator<Item = &'a CpuServer>) -> Result<Rest, NoAnswer> {
        let ratio = |a: u64, b: u64| BigRational::new(BigInt::from(a), BigInt::from(b));
        let (mut loads, mut burst) = (BigRational::zero(), BigRational::zero());
        for load in &cpu.interrupts {
            // ⌈(x + J)/T⌉·c ≤ c·x/T + c·(1 + J/T)
            let cost = BigRational::from_integer(load.wcet.into());
            match &load.arrival {
                ArrivalCurve::Periodic { separation, jitter } => {
                    loads += ratio(load.wcet, *separation);
                    burst += &cost * (BigRational::one() + ratio(*jitter, *separation));
                }
                ArrivalCurve::Listed { arrivals, .. } => {
                    burst += &cost * BigRational::from_integer(arrivals.len().into());
                }
            }
        }
        for load in &cpu.interferences {
            let u = ratio(load.utilisation_ppb, 1_000_000_000);
            burst += &u * (BigRational::one() - &u) * BigRational::from_integer(load.period.into());
            loads += u;
        }
        let mut share = BigRational::one() - &loads;
        for (server, load) in servers.filter_map(|server| Some((server, server.load.as_ref()?))) {
            if let ArrivalCurve::Periodic { separation, .. } = load.arrival {
                share -= ratio(load.wcet, separation);
            }
            // What is left of a capacity may be a whole stretch, in a window however short.
            if server.overhead > 0 {
                let once = u128::from(server.overhead) + 2 * u128::from(cpu.context_switch);
                burst += BigRational::from_integer(once.into());
            }
        }
        let burst =
            burst.ceil().to_integer().to_u64().filter(|&ns| ns < LONGEST).ok_or(NoAnswer::TooLarge)?;
        Ok(Rest { share, loads, burst })
    }
}

/// The tasks with a deadline, and what may block any window: the longest job without one that is not preemptive.
fn tasks_of(cpu: &CpuModel) -> (Vec<EdfTask>, u64) {
    let of = |task: &CpuTask| EdfTask {
        wcet: task.wcet,
        arrivals: match &task.arrival {
            ArrivalCurve::Periodic { separation, .. } => Arrivals::Separated(*separation),
            ArrivalCurve::Listed { arrivals, .. } => Arrivals::Listed(arrivals.clone()),
        },
        deadline: task.deadline,
        jitter: task.arrival.jitter(),
        non_preemptive: task.shape.longest_segment,
    };
    (cpu.tasks.iter().map(of).collect(), cpu.context_switch)
}

/// The set on a processor of which only `share` is there: executions multiplied by its denominator, other times by its
/// numerator.
fn slowed(cpu: &CpuModel, share: &BigRational, burst: u64) -> Result<EdfSet, NoAnswer> {
    let (a, b) = match (share.numer().to_u64(), share.denom().to_u64()) {
        (Some(a), Some(b)) if scales(cpu, a, b) => (a, b),
        // Rounded down, which is on the safe side.
        _ => {
            let coarse = (share * BigRational::from_integer(COARSE.into())).floor().to_integer();
            (coarse.to_u64().filter(|&a| a > 0).ok_or(NoAnswer::TooLarge)?, COARSE)
        }
    };
    let times =
        |ns: u64, factor: u64| ns.checked_mul(factor).filter(|&ns| ns < LONGEST).ok_or(NoAnswer::TooLarge);
    let (tasks, blocking) = tasks_of(cpu);
    let mut scaled = Vec::with_capacity(tasks.len());
    for task in tasks {
        scaled.push(EdfTask {
            wcet: times(task.wcet, b)?,
            arrivals: match task.arrivals {
                Arrivals::Separated(separation) => Arrivals::Separated(times(separation, a)?),
                Arrivals::Listed(list) => {
                    Arrivals::Listed(list.iter().map(|&ns| times(ns, a)).collect::<Result<_, _>>()?)
                }
            },
            deadline: task.deadline.map(|d| times(d, a)).transpose()?,
            jitter: times(task.jitter, a)?,
            non_preemptive: times(task.non_preemptive, b)?,
        });
    }
    let blocking = times(blocking.checked_add(burst).ok_or(NoAnswer::TooLarge)?, b)?;
    EdfSet::new(scaled, Vec::new())
        .and_then(|set| set.with_extra_blocking(blocking))
        .map_err(|_| NoAnswer::TooLarge)
}

/// Whether the processor's times bear these factors with room for windows of many periods.
fn scales(cpu: &CpuModel, a: u64, b: u64) -> bool {
    let longest = cpu.tasks.iter().map(|task| {
        let arrival = match &task.arrival {
            ArrivalCurve::Periodic { separation, .. } => *separation,
            ArrivalCurve::Listed { arrivals, .. } => arrivals.last().copied().unwrap_or(0),
        };
        arrival.max(task.deadline.unwrap_or(0)).max(task.wcet)
    });
    let longest = u128::from(longest.max().unwrap_or(0)) * u128::from(a.max(b));
    longest < u128::from(LONGEST >> 16)
}

/// What the criterion says of the tasks and servers of a processor.
pub(super) fn check(cpu: &CpuModel, budget: &mut Budget) -> Result<EdfVerdict, NoAnswer> {
    let rest = Rest::of(cpu, cpu.servers.iter())?;
    if rest.share.is_negative() {
        return Ok(EdfVerdict::Overload);
    }
    if rest.share.is_zero() {
        let nothing = cpu.tasks.iter().all(|task| task.deadline.is_none()) && rest.burst == 0;
        return Ok(if nothing { EdfVerdict::Schedulable } else { EdfVerdict::Overload });
    }
    let set = slowed(cpu, &rest.share, rest.burst)?;
    Ok(EdfSolver::new().check_within(&set, NpTime::Continuous, budget))
}

/// The verdicts of the tasks beside constant bandwidth servers, and the test of the whole set: where it passes, every
/// response time is at most the deadline.
pub(super) fn verdicts(cpu: &CpuModel, options: &Options) -> (Vec<TaskVerdict>, Vec<TestResult>) {
    let found = check(cpu, &mut Budget::terms(options.effort));
    let (verdict, note) = match found {
        Ok(EdfVerdict::Schedulable) => (Verdict::Meets, None),
        Ok(EdfVerdict::Fails(_)) => {
            (Verdict::Unknown, Some("a window asks for more than the servers leave of it".to_owned()))
        }
        Ok(EdfVerdict::Overload) => (
            Verdict::Unknown,
            Some("the tasks and the servers' shares ask for more than the whole processor".to_owned()),
        ),
        Ok(EdfVerdict::Unknown(reason)) => (Verdict::Unknown, Some(reason.to_string())),
        Err(reason) => (Verdict::Unknown, Some(reason.to_string())),
    };
    let whole =
        TestResult { test: "edf-servers", verdict, response: None, exact: false, source: "abeni98", note };
    let of = |task: &CpuTask| {
        let deadline = task.deadline.map(Span::from_ns);
        let mut test = whole.clone();
        match deadline {
            Some(deadline) if verdict == Verdict::Meets => test.response = Some(deadline),
            Some(_) => {}
            None => {
                test.verdict = Verdict::Meets;
                test.note = Some("no deadline: served after every job that has one".to_owned());
            }
        }
        TaskVerdict::best_of(task.name.clone(), cpu.cpu, deadline, Span::ZERO, vec![test])
    };
    (cpu.tasks.iter().filter_map(of).collect(), vec![whole])
}

/// How late a server's piece of work can be after its deadline, where the criterion passes: only blocking and loads
/// shorter than the shortest window of the tasks can make it so. ns.
pub(crate) fn lateness(cpu: &CpuModel) -> Result<u64, NoAnswer> {
    let rest = Rest::of(cpu, cpu.servers.iter())?;
    let longest = cpu.tasks.iter().map(|task| task.shape.longest_segment).max().unwrap_or(0);
    let delay = longest.checked_add(cpu.context_switch).and_then(|ns| ns.checked_add(rest.burst));
    let delay = BigRational::from_integer(delay.ok_or(NoAnswer::TooLarge)?.into());
    let alone = BigRational::one() - rest.loads;
    if !alone.is_positive() {
        return Err(NoAnswer::Overload);
    }
    (delay / alone).ceil().to_integer().to_u64().filter(|&ns| ns < LONGEST).ok_or(NoAnswer::TooLarge)
}

/// The largest capacity of the server at `index` for a period that passes the criterion, as an exact ratio.
///
/// Each window is a linear condition on Q, so the search cuts: it starts with Q = T times what the long run leaves, and
/// while the solver finds a window that asks for too much, Q becomes the largest that this window allows. Each window
/// that is found binds more than all before, and they are finitely many: no bisection, the result is exact.
///
/// `None` where costs or loads above all tasks make the condition more than linear.
pub(crate) fn largest(
    cpu: &CpuModel,
    index: usize,
    period: u64,
    options: &Options,
) -> Option<Result<Option<Capacity>, NoAnswer>> {
    if cpu.has_costs || !cpu.interrupts.is_empty() || !cpu.interferences.is_empty() {
        return None;
    }
    Some(cut(cpu, index, period, &mut Budget::terms(options.effort)))
}

fn cut(cpu: &CpuModel, index: usize, period: u64, budget: &mut Budget) -> Result<Option<Capacity>, NoAnswer> {
    let others =
        cpu.servers.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, server)| server);
    let others = Rest::of(cpu, others)?.share;
    let mut used = BigRational::zero();
    for task in cpu.tasks.iter().filter(|task| task.deadline.is_some()) {
        if let ArrivalCurve::Periodic { separation, .. } = task.arrival {
            used += BigRational::new(BigInt::from(task.wcet), BigInt::from(separation));
        }
    }
    // The share of the processor that the tasks need at least.
    let mut needed = used;
    loop {
        let left = &others - &needed;
        if left.is_negative() {
            return Ok(None);
        }
        let verdict = if needed.is_zero() {
            EdfVerdict::Schedulable
        } else {
            let set = slowed(cpu, &needed, 0)?;
            if set_is_coarse(cpu, &needed) {
                return Err(NoAnswer::TooLarge);
            }
            EdfSolver::new().check_within(&set, NpTime::Continuous, budget)
        };
        match verdict {
            EdfVerdict::Schedulable => {
                let exact = left * BigRational::from_integer(period.into());
                let (Some(numer), Some(denom)) = (exact.numer().to_u128(), exact.denom().to_u128()) else {
                    return Err(NoAnswer::TooLarge);
                };
                return Ok(Some(Capacity { exact: Ratio::new(numer, denom), binding: None }));
            }
            // A job may be released at its own deadline or after it: no share is enough, and the quotient is none.
            EdfVerdict::Fails(failure) if failure.window == 0 => return Ok(None),
            EdfVerdict::Fails(failure) => {
                // b·demand > a·t; the share that this window needs is demand/t.
                let scaled = BigRational::new(BigInt::from(failure.demand), BigInt::from(failure.window));
                let more = scaled * &needed;
                if more <= needed {
                    return Err(NoAnswer::TooLarge);
                }
                needed = more;
            }
            EdfVerdict::Overload => return Err(NoAnswer::Overload),
            EdfVerdict::Unknown(_) => return Err(NoAnswer::Effort),
        }
    }
}

/// Whether the share's fraction is too fine to be used as it is.
fn set_is_coarse(cpu: &CpuModel, share: &BigRational) -> bool {
    let parts = (share.numer().to_u64(), share.denom().to_u64());
    !matches!(parts, (Some(a), Some(b)) if scales(cpu, a, b))
}
