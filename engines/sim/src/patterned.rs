//! Jobs given by a release pattern, checked against the model before the first one is released.

use crate::error::Reason;
use crate::path::{check_path, longest_path};
use crate::source::{NextJob, Source};
use horolog_model::pattern::{PatternArrivals, PatternExecution, PatternJob, ReleasePattern, TaskPattern};
use horolog_model::{Arrival, SegmentId, System, Task};
use horolog_time::Span;

/// What one job executes: segment and length, in order.
type Plan = Vec<(u32, u64)>;

#[derive(Clone, Debug)]
enum Arrivals {
    Rule { next: Option<u64>, separation: u64, ready_from: u64, left: u64 },
    List { jobs: Vec<(NextJob, Option<Plan>)>, next: usize, begun: usize },
}

#[derive(Clone, Debug)]
struct TaskJobs {
    arrivals: Arrivals,
    tick: u64,
    last_notice: u64,
    /// What jobs execute that say nothing themselves.
    plan: Plan,
    /// What the oldest job executes where it says so itself.
    own_plan: Option<Plan>,
    place: usize,
}

/// The jobs of a pattern; `None` for tasks that release none.
#[derive(Clone, Debug)]
pub(crate) struct Patterned {
    tasks: Vec<Option<TaskJobs>>,
}

fn refuse<T>(at: &str, reason: impl Into<String>) -> Result<T, Reason> {
    Err(Reason::Pattern { at: at.to_owned(), reason: reason.into() })
}

impl Patterned {
    pub(crate) fn new(system: &System, pattern: &ReleasePattern) -> Result<Patterned, Reason> {
        if pattern.schema != ReleasePattern::SCHEMA {
            let reason = format!("`{}` is not `{}`", pattern.schema, ReleasePattern::SCHEMA);
            return refuse("schema", reason);
        }
        let mut tasks = vec![None; system.tasks().len()];
        for jobs in &pattern.tasks {
            let Some(index) = system.tasks().iter().position(|task| task.name == jobs.task) else {
                return refuse(&jobs.task, "the system has no such task");
            };
            if tasks[index].is_some() {
                return refuse(&jobs.task, "the task stands twice in the pattern");
            }
            tasks[index] = Some(TaskJobs::new(system, &system.tasks()[index], jobs, pattern)?);
        }
        for (task, jobs) in system.tasks().iter().zip(&tasks) {
            let first = first_arrival(task, pattern);
            if jobs.is_none() && first.is_some_and(|first| first < pattern.until_ns) {
                return refuse(&task.name, "the system's offset releases it, and the pattern does not");
            }
        }
        Ok(Patterned { tasks })
    }
}

/// Where the model says it: the first arrival of a task with an offset or of an aperiodic one.
fn first_arrival(task: &Task, pattern: &ReleasePattern) -> Option<Span> {
    let after_start = match &task.arrival {
        Arrival::Aperiodic { arrivals } => *arrivals.first()?,
        _ => task.offset?,
    };
    pattern.start_ns.checked_add(after_start)
}

impl TaskJobs {
    fn new(
        system: &System,
        task: &Task,
        jobs: &TaskPattern,
        pattern: &ReleasePattern,
    ) -> Result<TaskJobs, Reason> {
        let platform = system.platform();
        // With a tick, the latency would come after the tick; the pattern's delay stands before it.
        let latency = if platform.tick.is_some() { Span::ZERO } else { platform.release_latency_bound() };
        let most_delay = task.jitter.checked_add(latency).unwrap_or(Span::MAX);
        let arrivals = match &jobs.arrivals {
            PatternArrivals::Periodic { first_ns, ready_from_ns, jobs: count } => {
                let Some(separation) = task.separation() else {
                    return refuse(&task.name, "an aperiodic task has no separation: list its jobs");
                };
                check_first(task, *first_ns, pattern)?;
                if ready_from_ns.saturating_sub(*first_ns) > most_delay {
                    return refuse(
                        &task.name,
                        format!("job 0 is readier than {most_delay} after its arrival"),
                    );
                }
                let left = count.unwrap_or(u64::MAX);
                let end =
                    left.checked_mul(separation.as_ns()).and_then(|ns| ns.checked_add(first_ns.as_ns()));
                let ends_early = end.is_some_and(|end| end < pattern.until_ns.as_ns());
                if ends_early && matches!(task.arrival, Arrival::Periodic { .. }) {
                    return refuse(&task.name, "a periodic task does not stop before the end");
                }
                Arrivals::Rule {
                    next: Some(first_ns.as_ns()),
                    separation: separation.as_ns(),
                    ready_from: ready_from_ns.as_ns(),
                    left,
                }
            }
            PatternArrivals::Explicit { jobs: list } => {
                check_list(task, list, most_delay, pattern)?;
                let job = |job: &PatternJob| {
                    let arrival = job.arrival_ns.as_ns();
                    let own = job.execution_ns.is_some() || job.path.is_some();
                    let path = job.path.as_deref().or(jobs.path.as_deref());
                    let plan = own.then(|| plan(task, path, job.execution_ns.as_deref(), jobs.execution));
                    let notice = arrival.saturating_add(job.delay_ns.as_ns());
                    Ok::<_, Reason>((NextJob { arrival, notice }, plan.transpose()?))
                };
                Arrivals::List { jobs: list.iter().map(job).collect::<Result<_, _>>()?, next: 0, begun: 0 }
            }
        };
        Ok(TaskJobs {
            arrivals,
            tick: platform.tick.map_or(0, Span::as_ns),
            last_notice: 0,
            plan: plan(task, jobs.path.as_deref(), None, jobs.execution)?,
            own_plan: None,
            place: 0,
        })
    }
}

fn check_first(task: &Task, first: Span, pattern: &ReleasePattern) -> Result<(), Reason> {
    match first_arrival(task, pattern) {
        Some(expected) if expected != first => {
            refuse(&task.name, format!("the first job arrives at {first}, but the model's at {expected}"))
        }
        _ => Ok(()),
    }
}

fn check_list(
    task: &Task,
    jobs: &[PatternJob],
    most_delay: Span,
    pattern: &ReleasePattern,
) -> Result<(), Reason> {
    if let Some(first) = jobs.first() {
        check_first(task, first.arrival_ns, pattern)?;
    }
    if let Some(late) = jobs.iter().find(|job| job.delay_ns > most_delay) {
        let reason = format!("the job at {} is delayed by more than {most_delay}", late.arrival_ns);
        return refuse(&task.name, reason);
    }
    for (index, pair) in jobs.windows(2).enumerate() {
        let apart = pair[1].arrival_ns.checked_sub(pair[0].arrival_ns);
        let allowed = match (&task.arrival, apart) {
            (_, None) => false,
            (Arrival::Periodic { period }, Some(apart)) => apart == *period,
            (Arrival::Sporadic { separation }, Some(apart)) => apart >= *separation,
            (Arrival::Aperiodic { arrivals }, Some(_)) => {
                arrivals.get(index + 1).and_then(|&at| pattern.start_ns.checked_add(at))
                    == Some(pair[1].arrival_ns)
            }
            _ => true,
        };
        if !allowed {
            let reason = format!(
                "the model has no job at {} after that at {}",
                pair[1].arrival_ns, pair[0].arrival_ns
            );
            return refuse(&task.name, reason);
        }
    }
    let next = match (&task.arrival, jobs.last()) {
        (Arrival::Periodic { period }, Some(last)) => last.arrival_ns.checked_add(*period),
        (Arrival::Aperiodic { arrivals }, _) => {
            arrivals.get(jobs.len()).and_then(|&at| pattern.start_ns.checked_add(at))
        }
        _ => None,
    };
    match next {
        Some(next) if next < pattern.until_ns => {
            refuse(&task.name, format!("the model has a job at {next} that the pattern does not list"))
        }
        _ => Ok(()),
    }
}

/// The segments and lengths of a job, within the model's bounds.
fn plan(
    task: &Task,
    path: Option<&[SegmentId]>,
    lengths: Option<&[Span]>,
    rule: PatternExecution,
) -> Result<Plan, Reason> {
    let pieces: Vec<(u32, Span, Span)> = match (task.segment_graph(), path) {
        (None, None) => vec![(0, task.bcet, task.wcet)],
        (None, Some(_)) => return refuse(&task.name, "a path, but the task has no segments"),
        (Some(graph), path) => {
            let path = match path {
                Some(path) => check_path(graph, path)
                    .map_err(|reason| Reason::Pattern { at: task.name.clone(), reason })?,
                None => longest_path(graph),
            };
            let piece = |index: u32| {
                let segment = &graph.segments[index as usize];
                (index, segment.bcet, segment.wcet)
            };
            path.into_iter().map(piece).collect()
        }
    };
    if let Some(lengths) = lengths {
        let fits = |(&length, &(_, bcet, wcet)): (&Span, &(u32, Span, Span))| (bcet..=wcet).contains(&length);
        if lengths.len() != pieces.len() || !lengths.iter().zip(&pieces).all(fits) {
            return refuse(&task.name, "a job's execution is not one time in [bcet, wcet] for each segment");
        }
        return Ok(pieces
            .iter()
            .zip(lengths)
            .map(|(&(index, ..), length)| (index, length.as_ns()))
            .collect());
    }
    let length = |(index, bcet, wcet): (u32, Span, Span)| match rule {
        PatternExecution::Wcet => (index, wcet.as_ns()),
        PatternExecution::Bcet => (index, bcet.as_ns()),
    };
    Ok(pieces.into_iter().map(length).collect())
}

impl Source for Patterned {
    #[inline(always)]
    fn next_job(&mut self, task: usize) -> Option<NextJob> {
        let jobs = self.tasks[task].as_mut()?;
        let mut job = match &mut jobs.arrivals {
            Arrivals::Rule { next, separation, ready_from, left } => {
                let arrival = (*next).filter(|_| *left > 0)?;
                *left -= 1;
                *next = arrival.checked_add(*separation);
                NextJob { arrival, notice: arrival.max(*ready_from) }
            }
            Arrivals::List { jobs, next, .. } => {
                *next += 1;
                jobs.get(*next - 1)?.0
            }
        };
        if jobs.tick != 0 {
            job.notice = job.notice.checked_next_multiple_of(jobs.tick)?;
        }
        job.notice = job.notice.max(jobs.last_notice);
        jobs.last_notice = job.notice;
        Some(job)
    }

    #[inline(always)]
    fn begin(&mut self, task: usize) -> u64 {
        let Some(jobs) = &mut self.tasks[task] else { return 0 };
        if let Arrivals::List { jobs: list, begun, .. } = &mut jobs.arrivals {
            jobs.own_plan = list.get_mut(*begun).and_then(|(_, plan)| plan.take());
            *begun += 1;
        }
        jobs.place = 0;
        let plan = jobs.own_plan.as_ref().unwrap_or(&jobs.plan);
        plan.first().map_or(0, |&(_, length)| length)
    }

    /// No pattern is taken for a system with modes.
    fn restart(&mut self, _: usize, _: u64, _: u64) {}

    fn pass_over(&mut self, task: usize) {
        if let Some(Arrivals::List { begun, .. }) = self.tasks[task].as_mut().map(|jobs| &mut jobs.arrivals) {
            *begun += 1;
        }
    }

    fn abandon(&mut self, _: usize) {}

    #[inline(always)]
    fn advance(&mut self, task: usize) -> Option<(u32, u64)> {
        let jobs = self.tasks[task].as_mut()?;
        jobs.place += 1;
        jobs.own_plan.as_ref().unwrap_or(&jobs.plan).get(jobs.place).copied()
    }
}
