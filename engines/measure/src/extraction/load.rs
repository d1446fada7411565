//! What the proposed tasks ask of the processors: never more than these give.
//!
//! The greatest execution at the least distance, taken for each thread by itself, can add up to more than there is. All
//! threads together cannot have executed more. So, in this order, until a processor is not overloaded: a thread that may
//! run elsewhere goes where there is room; jobs become portions of the cumulative execution ([`super::cumulative`]), where
//! that saves most first; sleeps within jobs no longer count as execution, and portions spread over the whole record.

use super::cumulative::portions;
use super::proposal::{Arrival, Options, Values};
use super::task::{Confidence, TaskProposal};
use std::collections::{BTreeMap, BTreeSet};

/// A whole processor, in the unit of [`share`].
const WHOLE: u128 = 1_000_000_000_000;

/// Which share of a processor a task asks for, rounded up.
fn share(values: &Values) -> u128 {
    let separation = match values.arrival {
        Arrival::Period(separation)
        | Arrival::Separation(separation)
        | Arrival::Envelope { separation, .. }
        | Arrival::Portions { separation, .. } => separation,
        Arrival::Instants(_) => return 0,
    };
    (u128::from(values.wcet) * WHOLE).div_ceil(separation.max(1).into())
}

/// Makes all tasks fit their processors; `duration_ns` is the length of the record.
pub(super) fn fit(tasks: &mut [(TaskProposal, Values)], options: &Options, duration_ns: u64) {
    for (task, values) in tasks.iter_mut() {
        if share(values) > WHOLE {
            let counted = values.suspensions_counted;
            cut(task, values, options, counted, 0);
        }
    }
    let cpus: BTreeSet<u32> = tasks.iter().map(|(_, values)| values.cpu).collect();
    for cpu in cpus {
        move_away(tasks, cpu);
        cut_most_first(tasks, cpu, options);
        if loads(tasks).get(&cpu).is_some_and(|load| *load > WHOLE) {
            for (task, values) in tasks.iter_mut().filter(|(_, values)| values.cpu == cpu) {
                cut(task, values, options, false, duration_ns);
            }
        }
    }
}

/// The processors that the tasks need: their own, and where one of these is overloaded all that its tasks had.
pub(super) fn cpus(tasks: &[(TaskProposal, Values)]) -> BTreeSet<u32> {
    let loads = loads(tasks);
    let of = |(task, values): &(TaskProposal, Values)| {
        let overloaded = loads.get(&values.cpu).is_some_and(|load| *load > WHOLE);
        let had = task.cpus.iter().map(|(cpu, _)| *cpu).filter(move |_| overloaded);
        had.chain([values.cpu]).collect::<Vec<_>>()
    };
    tasks.iter().flat_map(of).collect()
}

fn loads(tasks: &[(TaskProposal, Values)]) -> BTreeMap<u32, u128> {
    let mut loads: BTreeMap<u32, u128> = BTreeMap::new();
    for (_, values) in tasks {
        *loads.entry(values.cpu).or_default() += share(values);
    }
    loads
}

/// Moves threads that may run elsewhere, the greatest first, to the emptiest processor that has room for them.
fn move_away(tasks: &mut [(TaskProposal, Values)], cpu: u32) {
    let mut places: Vec<usize> = (0..tasks.len()).filter(|place| tasks[*place].1.cpu == cpu).collect();
    places.sort_by_key(|place| std::cmp::Reverse(share(&tasks[*place].1)));
    for place in places {
        let loads = loads(tasks);
        let load = |cpu: u32| loads.get(&cpu).copied().unwrap_or(0);
        if load(cpu) <= WHOLE {
            return;
        }
        let (task, values) = &tasks[place];
        let target =
            task.possible_cpus().into_iter().filter(|other| *other != cpu).min_by_key(|cpu| load(*cpu));
        if let Some(target) = target.filter(|target| load(*target) + share(values) <= WHOLE) {
            tasks[place].1.cpu = target;
        }
    }
}

/// Cuts the jobs of a processor's tasks into portions, where it saves most first, until they fit.
fn cut_most_first(tasks: &mut [(TaskProposal, Values)], cpu: u32, options: &Options) {
    loop {
        let load = loads(tasks).get(&cpu).copied().unwrap_or(0);
        let saving = |(task, values): &(TaskProposal, Values)| {
            let (mut task, mut cut_values) = (task.clone(), values.clone());
            cut(&mut task, &mut cut_values, options, values.suspensions_counted, 0);
            share(values).saturating_sub(share(&cut_values))
        };
        let whole = (0..tasks.len()).filter(|place| {
            let values = &tasks[*place].1;
            values.cpu == cpu && !matches!(values.arrival, Arrival::Portions { .. } | Arrival::Instants(_))
        });
        let best = whole.map(|place| (saving(&tasks[place]), place)).max();
        match best {
            Some((saved, place)) if load > WHOLE && saved > 0 => {
                let (task, values) = &mut tasks[place];
                let counted = values.suspensions_counted;
                cut(task, values, options, counted, 0);
            }
            _ => return,
        }
    }
}

/// Replaces a task's jobs by portions of what it executed, over `least_span_ns` or the time that it was seen, whichever is
/// longer. A task whose arrivals are listed stays as it is.
fn cut(task: &mut TaskProposal, values: &mut Values, options: &Options, counted: bool, least_span_ns: u64) {
    if matches!(values.arrival, Arrival::Instants(_)) {
        return;
    }
    let jobs = &task.reading.jobs;
    let begin = jobs.iter().map(|job| job.arrival_ns()).min().unwrap_or(0);
    let end = jobs.iter().map(|job| job.ended_ns).max().unwrap_or(0);
    let span = end.saturating_sub(begin).max(least_span_ns);
    let Some(found) = portions(&task.work(counted), span, options.resolution_ns) else { return };
    let wcet = options.with_margin(found.portion_ns);
    let reserved = values.deadline.filter(|_| task.thread.class.has_deadline());
    *values = Values {
        arrival: Arrival::Portions { separation: found.separation_ns, jitter: found.jitter_ns },
        deadline: Some(
            found.separation_ns.saturating_add(found.jitter_ns).max(wcet).max(reserved.unwrap_or(0)),
        ),
        wcet,
        bcet: values.bcet.min(wcet),
        jitter: found.jitter_ns,
        spin: found.portion_ns,
        suspensions_counted: counted,
        ..*values
    };
    let reason = "its greatest execution at the distance of its arrivals is more than the processor gives";
    if !task.reasons.iter().any(|known| known == reason) {
        task.reasons.push(reason.to_owned());
    }
    task.confidence = task.confidence.min(Confidence::Medium);
}
