//! A simulator that is plainly right: it looks at every single unit of time. The oracle of the real one, with which
//! it shares no code.
//!
//! One processor, jobs given one by one. At each unit: the running job ends or reaches a preemption point;
//! interrupts and releases happen; the kernel works off what it owes; when it owes nothing, somebody is chosen and
//! executes for one unit.

/// Who goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NaivePolicy {
    /// Larger priority numbers first; equals first in, first out.
    FixedPriority,
    /// Earlier deadlines first; then the running job, then earlier releases, then lower task numbers.
    Edf,
}

/// One job. Times are in units.
#[derive(Clone, Debug)]
pub struct NaiveJob {
    /// Nominal arrival.
    pub arrival: u64,
    /// When it is noticed; jobs of a task are noticed in order.
    pub ready: u64,
    /// How long each of its segments executes, each at least one unit.
    pub segments: Vec<u64>,
}

/// One task.
#[derive(Clone, Debug)]
pub struct NaiveTask {
    /// Larger is more important.
    pub priority: i64,
    /// Relative deadline, from the arrival.
    pub deadline: u64,
    /// Whether a job can be displaced anywhere; else only between its segments.
    pub preemptible: bool,
    /// Its jobs in order.
    pub jobs: Vec<NaiveJob>,
}

/// What the kernel takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NaiveCosts {
    /// Each time a task gets the processor after another or idle.
    pub switch: u64,
    /// Each release.
    pub release: u64,
    /// A recurring interrupt, as (period, length), from instant 0; no interrupt where the period is 0.
    pub interrupt: (u64, u64),
}

/// What became of one task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NaiveResult {
    /// When each job ended, `None` where it did not before or at the end.
    pub completions: Vec<Option<u64>>,
    /// Times it got the processor after another task or idle.
    pub switch_ins: u64,
    /// Times it lost the processor elsewhere than at a preemption point.
    pub preemptions: u64,
    /// Times it gave way at a preemption point.
    pub yields: u64,
    /// Completions that found the next job waiting.
    pub vain_waits: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiting {
    task: usize,
    job: usize,
    /// Position in the order of all releases.
    order: usize,
    released: u64,
}

struct State<'a> {
    policy: NaivePolicy,
    tasks: &'a [NaiveTask],
    /// Every job that was released and has not ended.
    waiting: Vec<Waiting>,
    /// (segment, units executed in it) of each task's oldest job.
    progress: Vec<(usize, u64)>,
    running: Option<usize>,
    at_point: bool,
    results: Vec<NaiveResult>,
}

/// Runs the jobs up to `end`; jobs that end exactly then have ended.
#[must_use]
pub fn simulate_naively(
    policy: NaivePolicy,
    tasks: &[NaiveTask],
    costs: NaiveCosts,
    end: u64,
) -> Vec<NaiveResult> {
    let result =
        |task: &NaiveTask| NaiveResult { completions: vec![None; task.jobs.len()], ..Default::default() };
    let mut state = State {
        policy,
        tasks,
        waiting: Vec::new(),
        progress: vec![(0, 0); tasks.len()],
        running: None,
        at_point: false,
        results: tasks.iter().map(result).collect(),
    };
    let (mut owed, mut released, mut last_on_cpu) = (0_u64, 0, None);
    for now in 0..=end {
        state.end_segment(now);
        if now == end {
            break;
        }
        if costs.interrupt.0 > 0 && now % costs.interrupt.0 == 0 {
            owed += costs.interrupt.1;
        }
        for (task, spec) in tasks.iter().enumerate() {
            for (job, _) in spec.jobs.iter().enumerate().filter(|(_, job)| job.ready == now) {
                state.waiting.push(Waiting { task, job, order: released, released: now });
                released += 1;
                owed += costs.release;
            }
        }
        if owed == 0 {
            state.choose();
            if state.running != last_on_cpu {
                if let Some(task) = state.running {
                    state.results[task].switch_ins += 1;
                    owed += costs.switch;
                }
                last_on_cpu = state.running;
            }
        }
        if owed > 0 {
            owed -= 1;
        } else if let Some(task) = state.running {
            state.progress[task].1 += 1;
        }
    }
    state.results
}

impl State<'_> {
    /// The oldest job of a task that waits or runs.
    fn oldest(&self, task: usize) -> Option<Waiting> {
        self.waiting.iter().filter(|w| w.task == task).min_by_key(|w| w.job).copied()
    }

    fn end_segment(&mut self, now: u64) {
        let Some(task) = self.running else { return };
        let Some(oldest) = self.oldest(task) else { return };
        let segments = &self.tasks[task].jobs[oldest.job].segments;
        let (segment, executed) = self.progress[task];
        if executed < segments[segment] {
            return;
        }
        if segment + 1 < segments.len() {
            self.progress[task] = (segment + 1, 0);
            self.at_point = true;
            return;
        }
        self.results[task].completions[oldest.job] = Some(now);
        self.waiting.retain(|w| *w != oldest);
        self.progress[task] = (0, 0);
        self.running = None;
        self.results[task].vain_waits += u64::from(self.oldest(task).is_some());
    }

    fn choose(&mut self) {
        let candidates: Vec<Waiting> = (0..self.tasks.len()).filter_map(|task| self.oldest(task)).collect();
        let kept = self.running.filter(|&task| !self.tasks[task].preemptible && !self.at_point);
        let chosen = kept.or_else(|| self.most_important(&candidates));
        if let Some(previous) = self.running
            && chosen != Some(previous)
        {
            let result = &mut self.results[previous];
            if self.at_point { result.yields += 1 } else { result.preemptions += 1 }
        }
        self.at_point = false;
        self.running = chosen;
    }

    fn most_important(&self, candidates: &[Waiting]) -> Option<usize> {
        let deadline = |w: &Waiting| self.tasks[w.task].jobs[w.job].arrival + self.tasks[w.task].deadline;
        let first = match self.policy {
            NaivePolicy::FixedPriority => {
                let top = candidates.iter().map(|w| self.tasks[w.task].priority).max()?;
                let mut equals: Vec<&Waiting> =
                    candidates.iter().filter(|w| self.tasks[w.task].priority == top).collect();
                equals.sort_by_key(|w| w.order);
                let running = equals.iter().find(|w| self.running == Some(w.task));
                **running.unwrap_or(&equals[0])
            }
            NaivePolicy::Edf => {
                let earliest = candidates.iter().map(deadline).min()?;
                let mut equals: Vec<&Waiting> =
                    candidates.iter().filter(|w| deadline(w) == earliest).collect();
                equals.sort_by_key(|w| (w.released, w.task));
                let running = equals.iter().find(|w| self.running == Some(w.task));
                **running.unwrap_or(&equals[0])
            }
        };
        Some(first.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_more_important_task_preempts_and_a_non_preemptible_one_waits() {
        let job = |arrival, length| NaiveJob { arrival, ready: arrival, segments: vec![length] };
        let task = |priority, preemptible, jobs| NaiveTask { priority, deadline: 100, preemptible, jobs };
        let run = |preemptible| {
            let tasks = [task(2, true, vec![job(2, 3)]), task(1, preemptible, vec![job(0, 5)])];
            simulate_naively(NaivePolicy::FixedPriority, &tasks, NaiveCosts::default(), 20)
        };
        let preempted = run(true);
        assert_eq!(preempted[0].completions, [Some(5)]);
        assert_eq!(preempted[1].completions, [Some(8)]);
        assert_eq!((preempted[1].preemptions, preempted[1].switch_ins), (1, 2));
        let waited = run(false);
        assert_eq!(waited[0].completions, [Some(8)]);
        assert_eq!(waited[1].completions, [Some(5)]);
    }
}
