//! How long a simulation runs where nobody says.

use horolog_model::{Arrival, ExecutionTimes, System, Task};
use horolog_time::Span;

const LIMIT: u64 = 60_000_000_000;
const FALLBACK: u64 = 10_000_000_000;

/// The hyperperiod of the periodic and sporadic tasks plus the largest offset where that is below 60 s, else 10 s;
/// also 10 s where no task has a period or the hyperperiod is beyond u64.
///
/// Listed arrivals below 60 s are covered: as many hyperperiods as it takes until the last of them and its deadline
/// (its wcet, where it has none) have passed; where the horizon would be 10 s, at least until then. So are listed
/// executions (`execution = { jobs = … }`, `{ segments = … }`): until
/// each of them has had its job.
///
/// ```
/// let file = |arrival: &str| format!(
///     "[system]\nname = \"s\"\n[[task]]\nname = \"a\"\nperiod = \"4 ms\"\nwcet = \"1 ms\"\npriority = 2\n\
///      [[task]]\nname = \"b\"\narrivals = [\"1 ms\", \"{arrival}\"]\nwcet = \"1 ms\"\npriority = 1\n"
/// );
/// for (arrival, horizon) in [("2 ms", "4 ms"), ("9 ms", "12 ms"), ("61 s", "4 ms")] {
///     let (system, _) = horolog_model::file::read(&file(arrival), "a.toml", &[]).expect("a valid file");
///     assert_eq!(horolog_sim::default_horizon(&system).to_string(), horizon);
/// }
/// let (system, _) = horolog_model::file::read(&file("2 ms"), "a.toml", &[
///     "task.a.execution={ jobs = [\"1 ms\", \"2 ms\", \"1 ms\"] }".to_owned(),
/// ]).expect("a valid file");
/// assert_eq!(horolog_sim::default_horizon(&system).to_string(), "12 ms");
/// ```
pub fn default_horizon(system: &System) -> Span {
    let offset = system.tasks().iter().filter_map(|task| task.offset).max().map_or(0, Span::as_ns);
    let listed = system.tasks().iter().filter_map(last_listed).filter(|&end| end < LIMIT).max().unwrap_or(0);
    let whole = system.hyperperiod().map(Span::as_ns).and_then(|hyperperiod| {
        let times = listed.saturating_sub(offset).div_ceil(hyperperiod).max(1);
        hyperperiod.checked_mul(times)?.checked_add(offset)
    });
    Span::from_ns(match whole {
        Some(horizon) if horizon < LIMIT => horizon,
        _ => FALLBACK.max(listed),
    })
}

/// Listed jobs that arrive at `horizon` or later: a simulation up to it leaves them out.
pub(crate) fn listed_after(system: &System, horizon: Span) -> usize {
    let after = |task: &Task| match &task.arrival {
        Arrival::Aperiodic { arrivals } => arrivals.iter().filter(|&&arrival| arrival >= horizon).count(),
        _ => 0,
    };
    system.tasks().iter().map(after).sum()
}

/// When the last job of a task whose arrival or execution is listed is over; `None` where none is, or beyond u64.
fn last_listed(task: &Task) -> Option<u64> {
    let over = task.deadline.unwrap_or(task.wcet).max(Span::from_ns(1)).as_ns();
    let last = match (&task.arrival, &task.execution, task.separation()) {
        (Arrival::Aperiodic { arrivals }, ..) => arrivals.last()?.as_ns(),
        (_, execution, Some(separation)) => {
            let before = (listed_jobs(execution)? as u64).checked_sub(1)?.checked_mul(separation.as_ns())?;
            task.offset.map_or(0, Span::as_ns).checked_add(before)?
        }
        _ => return None,
    };
    last.checked_add(over)
}

/// How many jobs it takes until each listed execution has been used; `None` where none is listed.
fn listed_jobs(execution: &ExecutionTimes) -> Option<usize> {
    match execution {
        ExecutionTimes::Jobs(times) => Some(times.len()),
        ExecutionTimes::Segments(lists) => lists.iter().map(Vec::len).max(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_list_says_how_many_jobs_it_takes() {
        let times = |count: usize| vec![Span::from_ns(1); count];
        assert_eq!(listed_jobs(&ExecutionTimes::Jobs(times(3))), Some(3));
        assert_eq!(listed_jobs(&ExecutionTimes::Segments(vec![times(1), times(4), times(2)])), Some(4));
        assert_eq!(listed_jobs(&ExecutionTimes::Samples(times(3))), None);
    }
}
