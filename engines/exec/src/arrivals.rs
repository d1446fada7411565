//! When one task's jobs arrive and become ready in a run.

use crate::options::{ArrivalPattern, RunOptions};
use crate::random::SplitMix;
use horolog_model::{Arrival, System, Task, TaskId};
use horolog_time::Span;

/// One job's arrival, in nanoseconds since the common start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    /// Counted from 0.
    pub(crate) number: u64,
    /// The nominal arrival, from which response time and deadline count.
    pub(crate) arrival: u64,
    /// When the job becomes ready: later by jitter and by the wait for the tick.
    pub(crate) ready: u64,
    /// The absolute deadline; `u64::MAX` where the task has none.
    pub(crate) deadline: u64,
}

/// The jobs of one task, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    arrival: Arrival,
    offset: u64,
    deadline: Option<u64>,
    jitter: u64,
    tick: Option<u64>,
    pattern: ArrivalPattern,
    /// How much longer than its separation a sporadic job may take to come.
    extra: u64,
    chance: SplitMix,
    next: u64,
    /// The job that arrives at the offset.
    first: u64,
    last_arrival: Option<u64>,
    last_ready: u64,
}

impl Arrivals {
    pub(crate) fn new(task: &Task, tick: Option<u64>, pattern: ArrivalPattern, seed: u64) -> Arrivals {
        Arrivals {
            arrival: task.arrival.clone(),
            offset: task.offset.map_or(0, |span| span.as_ns()),
            deadline: task.deadline.map(|span| span.as_ns()),
            jitter: task.jitter.as_ns(),
            tick: tick.filter(|&ns| ns > 0),
            pattern,
            extra: 0,
            chance: SplitMix::new(seed, &task.name, "arrivals"),
            next: 0,
            first: 0,
            last_arrival: None,
            last_ready: 0,
        }
    }

    /// Of a task of the system.
    pub(crate) fn of(system: &System, id: TaskId, options: &RunOptions) -> Arrivals {
        let tick = system.platform().tick.map(Span::as_ns);
        let mut arrivals = Arrivals::new(system.task(id), tick, options.arrivals, options.seed);
        arrivals.extra = options.sporadic_extra.as_ns();
        arrivals
    }

    /// The next job; `None` after the last one of an aperiodic task, or beyond what 64 bits of ns can count.
    pub(crate) fn next_job(&mut self) -> Option<Job> {
        let arrival = self.next_arrival()?;
        let drawn = if self.pattern == ArrivalPattern::Random { self.chance.up_to(self.jitter) } else { 0 };
        let mut ready = arrival.checked_add(drawn)?;
        if let Some(tick) = self.tick {
            ready = ready.checked_next_multiple_of(tick)?;
        }
        // Jobs of one task become ready in their order, even where the jitter exceeds the period.
        ready = ready.max(self.last_ready);
        let deadline = match self.deadline {
            Some(relative) => arrival.checked_add(relative)?,
            None => u64::MAX,
        };
        let job = Job { number: self.next, arrival, ready, deadline };
        self.next += 1;
        self.last_arrival = Some(arrival);
        self.last_ready = ready;
        Some(job)
    }

    /// From now on jobs have this relative deadline.
    pub(crate) fn change_deadline(&mut self, deadline: Option<u64>) {
        self.deadline = deadline;
    }

    /// The absolute deadline of a job that arrives at `arrival`.
    pub(crate) fn deadline_of(&self, arrival: u64) -> u64 {
        self.deadline.map_or(u64::MAX, |relative| arrival.saturating_add(relative))
    }

    /// Job `number` arrives at `at`, and those after it at this distance. Listed arrivals stay where they are.
    pub(crate) fn restart(&mut self, number: u64, at: u64, separation: u64) {
        let separation = Span::from_ns(separation);
        match &mut self.arrival {
            Arrival::Periodic { period } => *period = separation,
            Arrival::Sporadic { separation: old } => *old = separation,
            _ => return,
        }
        (self.offset, self.next, self.first, self.last_arrival, self.last_ready) =
            (at, number, number, None, at);
    }

    fn next_arrival(&mut self) -> Option<u64> {
        match &self.arrival {
            Arrival::Periodic { period } => {
                self.offset.checked_add(period.as_ns().checked_mul(self.next - self.first)?)
            }
            Arrival::Sporadic { separation } => {
                let separation = separation.as_ns();
                let drawn = match self.pattern {
                    ArrivalPattern::Random => separation.max(self.extra),
                    ArrivalPattern::Dense => self.extra,
                };
                let extra = if drawn == 0 { 0 } else { self.chance.up_to(drawn) };
                match self.last_arrival {
                    // At a mode change the first one comes at once.
                    None => self.offset.checked_add(if self.first == 0 { extra } else { 0 }),
                    Some(last) => last.checked_add(separation)?.checked_add(extra),
                }
            }
            Arrival::Aperiodic { arrivals } => {
                self.offset.checked_add(arrivals.get(usize::try_from(self.next).ok()?)?.as_ns())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sporadic_jobs_come_a_separation_and_up_to_the_extra_apart() {
        let text = "[system]\nname = \"s\"\n[platform]\ncpus = [0]\n[[task]]\nname = \"stop\"\nseparation = \"10 ms\"\n\
                    offset = \"0 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
        let (system, _) = horolog_model::file::read(text, "s.toml", &[]).expect("a valid file");
        let gaps = |extra: u64| {
            let options = RunOptions { sporadic_extra: Span::from_ns(extra), ..RunOptions::default() };
            let mut arrivals = Arrivals::of(&system, TaskId(0), &options);
            let jobs: Vec<Job> = (0..200).filter_map(|_| arrivals.next_job()).collect();
            jobs.windows(2).map(|pair| pair[1].arrival - pair[0].arrival).collect::<Vec<u64>>()
        };
        assert!(gaps(0).iter().all(|gap| *gap == 10_000_000));
        let drawn = gaps(5_000_000);
        assert!(drawn.iter().all(|gap| (10_000_000..=15_000_000).contains(gap)), "{drawn:?}");
        assert!(drawn.iter().any(|gap| *gap < 11_000_000) && drawn.iter().any(|gap| *gap > 14_000_000));
    }
}
