//! Tasks that stay behind: a job that does not come back leaves no record that says so, and one whose thread gets no processor none at all.

use horolog_model::{System, TaskId};

/// How much longer than its deadline a task may show nothing new. A job that is merely late says so itself when it ends.
const PATIENCE_NS: u64 = 1_000_000_000;

/// What a task shows: the job that its thread executes, and the time before which it records nothing any more (`u64::MAX`: it waits to be
/// told).
pub(crate) type Shown = (Option<u64>, u64);

/// Looks at what tasks show. Times are ns since the start.
pub(crate) struct Overdue(Vec<Watched>);

/// A task with a deadline.
struct Watched {
    place: usize,
    /// The longest deadline that a job of it can have.
    deadline: u64,
    shown: Shown,
    /// Since when it shows that.
    since: u64,
    is_told: bool,
}

impl Overdue {
    /// Looks at the tasks of `system` that have a deadline in some mode.
    pub(crate) fn new(system: &System) -> Overdue {
        let watched = |place: usize| {
            let in_mode = |mode| system.task_in(mode, TaskId(place as u32)).deadline;
            let deadline = (0..system.mode_count()).filter_map(in_mode).max()?;
            let (shown, since, is_told) = ((None, u64::MAX), 0, false);
            Some(Watched { place, deadline: deadline.as_ns(), shown, since, is_told })
        };
        Overdue((0..system.tasks().len()).filter_map(watched).collect())
    }

    /// Whether a further task has a job by now whose deadline passed long ago; each job counts once.
    pub(crate) fn look(&mut self, now: u64, shown: impl Fn(usize) -> Shown) -> bool {
        let mut found = false;
        for one in &mut self.0 {
            let shown = shown(one.place);
            if shown != one.shown {
                (one.shown, one.since, one.is_told) = (shown, now, false);
                continue;
            }
            let since = match shown {
                (None, u64::MAX) => continue,
                (Some(_), u64::MAX) => one.since,
                // Until its release it sleeps.
                (_, released) => one.since.max(released),
            };
            let patience = one.deadline.saturating_add(PATIENCE_NS);
            let is_overdue = now.saturating_sub(since) > patience && !one.is_told;
            one.is_told |= is_overdue;
            found |= is_overdue;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = u64::MAX;
    const S: u64 = 1_000_000_000;

    /// A task with a deadline of 10 ms, and one without.
    fn overdue() -> Overdue {
        let text = "[system]\nname = \"s\"\n[platform]\ncpus = [0]\n[[task]]\nname = \"a\"\nperiod = \"20 ms\"\n\
                    deadline = \"10 ms\"\nwcet = \"1 ms\"\npriority = 2\n[[task]]\nname = \"b\"\narrivals = [\"0 ms\"]\nwcet = \"1 ms\"\n\
                    priority = 1\n";
        Overdue::new(
            &horolog_model::file::read(text, "s.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0,
        )
    }

    #[test]
    fn a_job_counts_once_and_from_a_second_beyond_its_deadline_on() {
        let limit = S + 10_000_000;
        for (shown, from) in
            [((Some(3), 500), 700), ((Some(3), NEVER), 700), ((None, 500), 700), ((None, 900), 900)]
        {
            let mut overdue = overdue();
            let mut at = |now| overdue.look(now, |_| shown);
            // What it shows is seen at 700 for the first time; what it releases later it is not late with.
            assert!(!at(700) && !at(from + limit), "{shown:?}");
            assert!(at(from + limit + 1), "{shown:?}");
            assert!(!at(from + limit + 2) && !at(from + 9 * limit), "{shown:?}");
        }
    }

    #[test]
    fn who_goes_on_or_waits_is_not_overdue() {
        let mut overdue = overdue();
        for second in 0..9 {
            assert!(!overdue.look(2 * second * S, |_| (Some(second), 2 * second * S)));
        }
        for second in 10..19 {
            assert!(!overdue.look(2 * second * S, |_| (None, NEVER)));
            assert!(!overdue.look(2 * second * S, |place| if place == 0 {
                (None, 100 * S)
            } else {
                (Some(1), NEVER)
            }));
        }
        // The next job is another one.
        let mut at = |now, job| overdue.look(now, |_| (Some(job), NEVER));
        assert!(!at(40 * S, 1) && at(42 * S, 1) && !at(44 * S, 2) && at(46 * S, 2));
    }
}
