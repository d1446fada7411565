//! Checks a response time under fixed priorities.

use crate::load::View;
use crate::{FixedPriorityProof, Flaw, Horizon, JobProof, Proven};
use horolog_model::{Arrival, System, Task};

/// Instants that one proof may have to list.
const MOST_JOBS: u128 = 4_000_000;

/// Arrivals that a list may hold: all widths of windows over it are tried.
const MOST_LISTED: usize = 4_096;

/// Checks that `proof` bounds the response time of `task` and that the verdict follows.
///
/// Every job that could be the worst must be there, and no other; every iterate must be the demand at the one
/// before it, the first the work that is there anyway, the last its own demand. The chain makes the last iterate
/// the least fixed point: the first lies below every fixed point, and the demand never falls.
pub(crate) fn check(
    system: &System,
    task: &Task,
    verdict: Proven,
    proof: &FixedPriorityProof,
) -> Result<(), Flaw> {
    let view = View::new(system, task)?;
    let flaw = |reason: String| Flaw::new(&task.name, reason);
    let horizon = horizon(&view, &proof.horizon).map_err(flaw)?;
    let mut expected = expected_jobs(&view, horizon).map_err(flaw)?.into_iter();
    let mut largest: Option<u128> = None;
    for job in &proof.jobs {
        let place = (u128::from(job.ready_ns), u128::from(job.before_ns), u128::from(job.last_ns));
        if expected.next() != Some(place) {
            return Err(flaw(format!("the job ready at {} is not the next to look at", job.ready_ns)));
        }
        let response = response(&view, job).map_err(flaw)?;
        largest = largest.max(Some(response));
    }
    if let Some((ready, _, _)) = expected.next() {
        return Err(flaw(format!("the job ready at {ready} is left out")));
    }
    if largest != Some(u128::from(proof.bound_ns)) {
        return Err(flaw(format!("the bound {} is not the largest response, {largest:?}", proof.bound_ns)));
    }
    if proof.least != view.can_be_least {
        return Err(flaw(format!("this system's bound is the least one: {}", view.can_be_least)));
    }
    let deadline = task.deadline.map(|d| d.as_ns());
    let meets = deadline.is_none_or(|d| proof.bound_ns <= d);
    match verdict {
        Proven::Meets if meets => Ok(()),
        Proven::Misses if !meets && proof.least => Ok(()),
        _ => Err(flaw(format!("the verdict does not follow from the bound {}", proof.bound_ns))),
    }
}

/// The length of time whose jobs must be looked at.
fn horizon(view: &View<'_>, horizon: &Horizon) -> Result<u128, String> {
    match horizon {
        Horizon::BusyPeriod { iterates } => {
            let demand = |x: u128| {
                let own = view.own.before(x).checked_mul(view.own.wcet)?;
                let mut equal = 0_u128;
                for load in &view.equal {
                    equal = equal.checked_add(load.before(x).checked_mul(load.wcet)?)?;
                }
                let others = view.higher_demand(x, false)?.checked_add(view.outside.demand(x, false)?)?;
                view.blocking.checked_add(own)?.checked_add(equal)?.checked_add(others)
            };
            chain("busy period", iterates, 1, demand)
        }
        Horizon::Repeats { hyperperiod_ns } => {
            let window = u128::from(*hyperperiod_ns);
            if !view.outside.interferences.is_empty() || window == 0 {
                return Err("responses repeat only without interference".into());
            }
            repeats(view, window)?;
            Ok(window)
        }
    }
}

/// Whether the level asks for exactly the processor in every `window`, which all its separations divide.
fn repeats(view: &View<'_>, window: u128) -> Result<(), String> {
    let mut demand = 0_u128;
    let mut add = |separation: Option<u128>, wcet: u128| {
        let separation = separation.ok_or("listed arrivals do not repeat")?;
        if !window.is_multiple_of(separation) {
            return Err(format!("{window} is not a multiple of the separation {separation}"));
        }
        let work = (window / separation).checked_mul(wcet).and_then(|w| demand.checked_add(w));
        demand = work.ok_or("beyond 2^128 ns")?;
        Ok(())
    };
    for load in view.higher.iter().chain(&view.equal).chain([&view.own]) {
        add(load.separation(), load.wcet)?;
    }
    for load in &view.outside.release_interrupts.0 {
        add(load.separation(), view.outside.release_interrupts.1)?;
    }
    if let Some((tick, length)) = view.outside.tick_interrupt {
        add(Some(tick), length)?;
    }
    if demand == window {
        Ok(())
    } else {
        Err(format!("the level asks for {demand} of every {window}, not for all of it"))
    }
}

/// Ready instant and ending of every job that could be the worst, in the order that a certificate lists them.
fn expected_jobs(view: &View<'_>, horizon: u128) -> Result<Vec<(u128, u128, u128)>, String> {
    let all = view.equal.iter().map(|load| (load, true)).chain([(&view.own, false)]);
    let mut ready = Vec::new();
    for (load, late) in all {
        let many = match &load.task.arrival {
            Arrival::Aperiodic { arrivals } => arrivals.len() > MOST_LISTED,
            _ => load.separation().is_some_and(|s| horizon / s > MOST_JOBS),
        };
        if many {
            return Err("more jobs than this checker looks at".into());
        }
        ready.extend(load.steps(horizon, late));
    }
    ready.sort_unstable();
    ready.dedup();
    let mut endings: Vec<(u128, u128)> = view
        .endings
        .iter()
        .copied()
        .filter(|&(before, last)| {
            // An ending that another dominates is never the worst.
            !view.endings.iter().any(|&(b, l)| (b, l) != (before, last) && b >= before && l >= last)
        })
        .collect();
    endings.sort_unstable_by(|a, b| b.cmp(a));
    endings.dedup();
    Ok(ready.into_iter().flat_map(|r| endings.iter().map(move |&(b, l)| (r, b, l))).collect())
}

/// The response of one job, all its iterates checked.
fn response(view: &View<'_>, job: &JobProof) -> Result<u128, String> {
    const TOO_LARGE: &str = "beyond 2^128 ns";
    let ready = u128::from(job.ready_ns);
    let earlier = (view.own.own_up_to(ready) - 1).checked_mul(view.own.wcet).ok_or(TOO_LARGE)?;
    let mut base = (view.blocking + u128::from(job.before_ns)).checked_add(earlier).ok_or(TOO_LARGE)?;
    for load in &view.equal {
        let ahead = load.up_to(ready).checked_mul(load.wcet).ok_or(TOO_LARGE)?;
        base = base.checked_add(ahead).ok_or(TOO_LARGE)?;
    }
    // A start waits for whatever is ready at that very instant, unless blocking had to begin before all others.
    let closed = !view.is_preemptive() && view.blocking == 0;
    // Interference may hold the processor from the very start of an otherwise empty busy period.
    let first = if base == 0 && !view.outside.interferences.is_empty() { 1 } else { base };
    let start = chain("start", &job.start_iterates, first, |x| {
        first.checked_add(view.higher_demand(x, closed)?)?.checked_add(view.outside.demand(x, closed)?)
    })?;
    let finish = if view.is_preemptive() {
        if !job.finish_iterates.is_empty() {
            return Err("a preemptive job ends where its chain ends".into());
        }
        start
    } else {
        let higher = view.higher_demand(start, closed).ok_or(TOO_LARGE)?;
        let work = base.checked_add(higher).and_then(|w| w.checked_add(u128::from(job.last_ns)));
        let work = work.ok_or(TOO_LARGE)?;
        chain("finish", &job.finish_iterates, work, |x| work.checked_add(view.outside.demand(x, false)?))?
    };
    // Where it ends before it is ready, the level idled in between: another busy period holds its worst case.
    Ok((finish + view.own.jitter).saturating_sub(ready))
}

/// The last of `iterates`, of which the first must be `first` and each the demand at the one before, until one is its
/// own demand.
fn chain(
    what: &str,
    iterates: &[u64],
    first: u128,
    demand: impl Fn(u128) -> Option<u128>,
) -> Result<u128, String> {
    let mut expected = first;
    let mut last = None;
    for &iterate in iterates {
        let iterate = u128::from(iterate);
        if iterate != expected || last == Some(iterate) {
            return Err(format!("{what}: {iterate} stands where {expected} belongs"));
        }
        expected = demand(iterate).ok_or_else(|| format!("{what}: beyond 2^128 ns"))?;
        last = Some(iterate);
    }
    match last {
        Some(last) if expected == last => Ok(last),
        Some(last) => Err(format!("{what}: the demand at {last} is {expected}: the chain stops short")),
        None => Err(format!("{what}: no iterates")),
    }
}
