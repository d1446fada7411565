//! How long a simulation runs where nobody says.

use horolog_model::{Arrival, System, Task};
use horolog_time::Span;

const LIMIT: u64 = 60_000_000_000;
const FALLBACK: u64 = 10_000_000_000;

/// The hyperperiod of the periodic and sporadic tasks plus the largest offset where that is below 60 s, else 10 s;
/// also 10 s where no task has a period or the hyperperiod is beyond u64.
///
/// Listed arrivals below 60 s are covered: as many hyperperiods as it takes until the last of them and its deadline
/// (its wcet, where it has none) have passed; where the horizon would be 10 s, at least until then.
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

/// When the last listed job of a task is over; `None` where it has none, or beyond u64.
fn last_listed(task: &Task) -> Option<u64> {
    let Arrival::Aperiodic { arrivals } = &task.arrival else { return None };
    let over = task.deadline.unwrap_or(task.wcet).max(Span::from_ns(1));
    arrivals.last()?.as_ns().checked_add(over.as_ns())
}
