//! Release patterns that run a fixed-priority system into a miss.
//!
//! All times are whole nanoseconds, so a blocking segment begins 1 ns before the critical instant, not "just before"
//! it. A least upper bound above the deadline need not be reached that way; then there is no pattern.

use super::level::{Level, Worst};
use super::sections::Sections;
use super::{level_of, priority_of};
use crate::cpu_model::{CpuModel, CpuTask, Ending};
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::MissWitness;
use horolog_model::pattern::{PatternJob, ReleasePattern, TaskPattern, Witness};
use horolog_model::{SegmentGraph, SegmentId, System};
use horolog_time::Span;

/// Events that a replay may take.
const MOST_EVENTS: u128 = 100_000_000;

/// Jobs that a pattern lists one by one.
const MOST_LISTED: u64 = 10_000;

/// A run that makes the task at `index` miss, where one is known.
pub(crate) fn witness(
    system: &System,
    cpu: &CpuModel,
    index: usize,
    options: &Options,
) -> Result<Option<MissWitness>, AnalysisError> {
    let (task, mut level) = (&cpu.tasks[index], level_of(cpu, index)?);
    let Some(deadline) = task.deadline.filter(|_| cpu.keeps_exactness() && !has_fixed_offset(cpu)) else {
        return Ok(None);
    };
    if Sections::of(cpu)?.ends_above(index)? {
        // Who is released in its last section comes after it, and the search counts that before.
        return Ok(None);
    }
    let blocked = level.blocking > 0;
    level.closed_starts = true;
    level.blocking = level.blocking.saturating_sub(1);
    let tie = tie_to_lose(cpu, index)?;
    let mut effort = options.effort;
    // A job that must come 1 ns after an equal to be behind it is 1 ns closer to its end.
    let late = match deadline.checked_add(tie).map(|d| level.first_late(d, &mut effort)) {
        Some(Ok(Some(late))) => late,
        Some(Ok(None)) => return Ok(Some(MissWitness::SupremumOnly)),
        _ => return Ok(Some(MissWitness::TooFarToReplay)),
    };
    let plan = Plan { system, cpu, index, level: &level, late, tie, blocked, deadline };
    Ok(Some(plan.pattern()?.map_or(MissWitness::TooFarToReplay, |pattern| MissWitness::Pattern { pattern })))
}

fn has_fixed_offset(cpu: &CpuModel) -> bool {
    cpu.tasks.iter().any(|t| t.offset.is_some())
}

/// 1 where a task of equal priority stands later in the file: at the same instant the earlier one is ahead.
fn tie_to_lose(cpu: &CpuModel, index: usize) -> Result<u64, AnalysisError> {
    let own = priority_of(&cpu.tasks[index])?;
    for other in &cpu.tasks[index + 1..] {
        if priority_of(other)? == own {
            return Ok(1);
        }
    }
    Ok(0)
}

struct Plan<'a> {
    system: &'a System,
    cpu: &'a CpuModel,
    index: usize,
    level: &'a Level<'a>,
    late: Worst,
    tie: u64,
    blocked: bool,
    deadline: u64,
}

impl Plan<'_> {
    fn task(&self) -> &CpuTask {
        &self.cpu.tasks[self.index]
    }

    /// `None` where the replay would take too many events.
    fn pattern(&self) -> Result<Option<ReleasePattern>, AnalysisError> {
        let blocker = if self.blocked { self.blocker()? } else { None };
        let lead = blocker.as_ref().map_or(0, |b| b.lead + 1);
        let largest_jitter = self.cpu.tasks.iter().map(|t| t.arrival.jitter()).max().unwrap_or(0);
        // The critical instant: late enough that nothing arrives before the origin.
        let Some(critical) = lead.checked_add(largest_jitter) else { return Ok(None) };
        let late_by = u128::from(self.late.response.max(self.deadline));
        let until = u128::from(critical) + u128::from(self.late.ready) + late_by + 2;
        let Ok(until) = u64::try_from(until) else { return Ok(None) };
        let mut events = 0_u128;
        let mut pattern = ReleasePattern::new(self.system.name(), Span::from_ns(until));
        let own = priority_of(self.task())?;
        for (index, other) in self.cpu.tasks.iter().enumerate() {
            if index == self.index || own.is_more_important_than(priority_of(other)?) {
                continue;
            }
            let first = Span::from_ns(critical - other.arrival.jitter());
            pattern = pattern.task(TaskPattern::late(&other.name, first, Span::from_ns(critical)));
            events += self.events(other, until);
        }
        if let Some(blocker) = blocker {
            let first = Span::from_ns(critical - lead);
            let mut jobs = TaskPattern::periodic(&self.cpu.tasks[blocker.index].name, first);
            jobs.path = blocker.path;
            pattern = pattern.task(jobs);
            events += self.events(&self.cpu.tasks[blocker.index], until);
        }
        events += self.events(self.task(), until);
        let Some((own, job)) = self.own_jobs(critical, until) else { return Ok(None) };
        let known = self.tie == 0 && self.level.equal.is_empty() && self.late.finish > self.late.start;
        let known = known || (self.level.preemptive && self.level.equal.is_empty());
        let response = known.then_some(Span::from_ns(self.late.response));
        // Of an overloaded level's job only the lateness is known.
        let response = response.filter(|_| self.level.compare_utilisation().is_le());
        let witness = Witness { task: self.task().name.clone(), job, response_ns: response };
        Ok((events <= MOST_EVENTS).then(|| pattern.task(own).witness(witness)))
    }

    /// Events of a task until the end: arrival, completion and a preemption point a segment.
    fn events(&self, task: &CpuTask, until: u64) -> u128 {
        let segments = self.system.task(task.id).segment_graph().map_or(1, |g| g.segments.len());
        task.arrival.half_open(u128::from(until)) * (segments as u128 + 2)
    }

    /// The task's own jobs, and which of them is the late one.
    fn own_jobs(&self, critical: u64, until: u64) -> Option<(TaskPattern, u64)> {
        let task = self.task();
        let separation = self.system.task(task.id).separation()?.as_ns();
        let (jitter, late) = (task.arrival.jitter(), self.late.own_jobs - 1);
        // Arrival of the late job when it is ready after its full jitter, and of the first one.
        let arrival = critical + self.late.ready + self.tie - jitter;
        let first = arrival - late * separation;
        let path = self.system.task(task.id).segment_graph().map(|g| path_to_ending(g, self.late.ending));
        let on_default_path = task.shape.endings.len() == 1;
        if on_default_path && (self.level.equal.is_empty() || jitter == 0) {
            let first = Span::from_ns(first);
            return Some((TaskPattern::late(&task.name, first, Span::from_ns(critical)), late));
        }
        if late > MOST_LISTED {
            return None;
        }
        let following = until.saturating_sub(arrival) / separation;
        if following > MOST_LISTED {
            return None;
        }
        let jobs = (0..=late + following).map(|job| {
            let at = first + job * separation;
            let delay = if job == late { jitter } else { critical.saturating_sub(at) };
            PatternJob {
                arrival_ns: Span::from_ns(at),
                delay_ns: Span::from_ns(delay),
                path: if job == late { path.clone() } else { None },
                ..PatternJob::default()
            }
        });
        Some((TaskPattern::explicit(&task.name, jobs.collect()), late))
    }

    /// The less important task with the longest segment, or section that blocks, and how to be at the start of it.
    fn blocker(&self) -> Result<Option<Blocker>, AnalysisError> {
        if let Some(blocking) = Sections::of(self.cpu)?.blocking(self.index)? {
            // Its processor has preemptive tasks alone.
            return Ok(Some(Blocker { index: blocking.task, lead: blocking.section.from, path: None }));
        }
        let own = priority_of(self.task())?;
        let mut best: Option<usize> = None;
        for (index, other) in self.cpu.tasks.iter().enumerate() {
            let less = own.is_more_important_than(priority_of(other)?);
            let longest = |i: usize| self.cpu.tasks[i].shape.longest_segment;
            if less && longest(index) > best.map_or(0, longest) {
                best = Some(index);
            }
        }
        let Some(index) = best else { return Ok(None) };
        let graph = self.system.task(self.cpu.tasks[index].id).segment_graph();
        let Some(graph) = graph else { return Ok(Some(Blocker { index, lead: 0, path: None })) };
        let longest = (0..graph.segments.len()).max_by_key(|&s| graph.segments[s].wcet).unwrap_or(0);
        let mut path = path_to(graph, longest);
        let before = path.iter().filter(|&&s| s != longest).map(|&s| graph.segments[s].wcet.as_ns());
        let lead = before.sum();
        while let Some(&next) = path.last().and_then(|&s| graph.segments[s].next.first()) {
            path.push(next);
        }
        Ok(Some(Blocker { index, lead, path: Some(path) }))
    }
}

/// A less important job that has just begun its longest segment, or section that blocks, at the critical instant.
struct Blocker {
    index: usize,
    /// What it executes before that, ns.
    lead: u64,
    path: Option<Vec<SegmentId>>,
}

/// The longest path that ends as `ending` says.
fn path_to_ending(graph: &SegmentGraph, ending: Ending) -> Vec<SegmentId> {
    let ends = |s: &SegmentId| graph.segments[*s].next.is_empty();
    let sinks: Vec<SegmentId> = (0..graph.segments.len()).filter(ends).collect();
    let work = |path: &[SegmentId]| path.iter().map(|&s| graph.segments[s].wcet.as_ns()).sum::<u64>();
    let paths = sinks.into_iter().map(|sink| path_to(graph, sink));
    paths
        .filter(|path| path.last().is_some_and(|&s| graph.segments[s].wcet.as_ns() == ending.last))
        .max_by_key(|path| work(path))
        .unwrap_or_default()
}

/// The longest path from the entry to a segment, that one included.
fn path_to(graph: &SegmentGraph, target: SegmentId) -> Vec<SegmentId> {
    let mut longest = vec![0_u64; target + 1];
    let mut from = vec![None; target + 1];
    for at in 0..target {
        let after = longest[at] + graph.segments[at].wcet.as_ns();
        for &next in graph.segments[at].next.iter().filter(|&&next| next <= target) {
            if after > longest[next] {
                longest[next] = after;
                from[next] = Some(at);
            }
        }
    }
    let mut path = vec![target];
    while let Some(before) = path.last().and_then(|&at| from[at]) {
        path.push(before);
    }
    path.reverse();
    path
}
