//! A bound that a trace says is violated, shown by a pattern that the file allows.
//!
//! `verify` finds that a job answered after its bound although nothing that is on record explains it. That accuses horolog's own
//! proof, so it is said only with evidence that needs no trust in the verifier: the jobs of the trace up to that one, with their delays and
//! executions cut to what the file allows, as a release pattern. The simulator takes it only where it is legal, and the job must
//! exceed its bound there, too. Where that fails, the finding becomes *cannot tell*.

use crate::{LoopError, Proof};
use horolog_model::pattern::{PatternJob, ReleasePattern, TaskPattern, Witness};
use horolog_model::{Arrival, System, Task};
use horolog_sim::{ReplayOptions, replay};
use horolog_time::Span;
use horolog_trace::file::Reader;
use horolog_trace::{Kind, NO_JOB, NullSink, Record, TraceError};
use horolog_verify::{Class, Finding, Verification};
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Jobs of one pattern: more are not kept, and the finding is then one that cannot be told.
const MOST_JOBS: usize = 1 << 20;

/// Where the pattern of a trace is written where nothing else is said.
#[must_use]
pub fn counterexample_beside(trace: &Path) -> PathBuf {
    let mut name = trace.as_os_str().to_owned();
    name.push(".counterexample.json");
    PathBuf::from(name)
}

/// Looks for a pattern beside each task's first violated bound, and writes the first one to `file`. Tasks without one lose the
/// finding: then nothing can be told. `open` reads the trace from its beginning.
///
/// # Errors
/// Where the trace cannot be read.
pub(crate) fn look_for_counterexamples<R: Read>(
    proof: &Proof,
    open: impl Fn() -> Result<Reader<R>, TraceError>,
    found: &mut Verification,
    file: &Path,
) -> Result<(), LoopError> {
    let is_late = |finding: &&Finding| finding.class == Class::BoundViolated;
    let mut late: BTreeMap<String, u64> = BTreeMap::new();
    for finding in found.findings.iter().filter(is_late) {
        if let Some((task, job)) = finding.task.clone().zip(finding.job) {
            late.entry(task).or_insert(job);
        }
    }
    for (task, job) in late {
        let place = proof.system.tasks().iter().position(|known| known.name == task);
        let bound = found.tasks.iter().find(|one| one.name == task).and_then(|one| one.bound_ns);
        let shown = match (place, bound) {
            (Some(place), Some(bound)) => {
                let pattern = pattern_of(&proof.system, open()?, place as u32, job);
                pattern.and_then(|pattern| exceeding(&proof.system, pattern, bound))
            }
            _ => None,
        };
        match shown {
            Some(pattern) if found.counterexample.is_none() => {
                let path = file.display().to_string();
                found.notes.push(match write(&pattern, file) {
                    Ok(()) => format!(
                        "{task} job {job}: the file allows what is in {path}, and there {task} exceeds its bound, too; run it with \
                         `horolog simulate FILE --replay {path}`"
                    ),
                    Err(error) => format!(
                        "{task} job {job}: what the file allows exceeds its bound, too, but the pattern could not be written: {error}"
                    ),
                });
                found.counterexample = Some(path);
            }
            Some(_) => {}
            None if found.doubt_bound(&task) => found.notes.push(format!(
                "{task} answered after its bound and nothing on record explains it, but no pattern that the file allows shows \
                 it: whether the bound is wrong cannot be told"
            )),
            None => {}
        }
    }
    Ok(())
}

fn write(pattern: &ReleasePattern, file: &Path) -> Result<(), LoopError> {
    let mut text = serde_json::to_string_pretty(pattern).map_err(|error| LoopError::writing(file, error))?;
    text.push('\n');
    std::fs::write(file, text).map_err(|error| LoopError::writing(file, error))
}

/// The pattern with the response time that the simulator gives, where that is legal and beyond the bound.
fn exceeding(system: &System, mut pattern: ReleasePattern, bound: Span) -> Option<ReleasePattern> {
    let run = replay(system, &pattern, &ReplayOptions::default(), &mut NullSink).ok()?;
    let response = run.witness?.response?;
    pattern.witness.as_mut()?.response_ns = Some(response);
    pattern.system_digest = Some(system.digest());
    (response > bound).then_some(pattern)
}

/// A job of the trace.
#[derive(Clone, Debug)]
struct Seen {
    number: u64,
    arrival: u64,
    ready: u64,
    /// Of each segment that it entered: its number, and for how long it had the processor in it.
    segments: Vec<(u64, u64)>,
    runs_from: Option<u64>,
    executed: Option<u64>,
}

impl Seen {
    fn stops(&mut self, now: u64) {
        if let (Some(from), Some((_, had))) = (self.runs_from.take(), self.segments.last_mut()) {
            *had += now.saturating_sub(from);
        }
    }
}

/// The jobs of every task, from the beginning or from the last instant at which nothing was pending.
struct Jobs<'a> {
    system: &'a System,
    tasks: Vec<Vec<Seen>>,
    /// Of each task the places of its pending jobs.
    pending: Vec<HashMap<u64, usize>>,
    count: usize,
    /// How many jobs are pending.
    open: usize,
    /// No task's arrivals hang on the system's start, and no budget on the past: what came before an idle instant is needed no more.
    forgets: bool,
}

impl Jobs<'_> {
    /// A policy has left out the job that arrived at `arrival`. Where no job takes too long none is left out, so the pattern has it, as short as the file allows;
    /// a sporadic one need not come.
    fn leave_out(&mut self, task: usize, arrival: u64) -> Option<()> {
        if !matches!(self.system.tasks()[task].arrival, Arrival::Sporadic { .. }) {
            self.count += 1;
            self.tasks[task].push(Seen {
                number: NO_JOB,
                arrival,
                ready: arrival,
                segments: Vec::new(),
                runs_from: None,
                executed: Some(0),
            });
        }
        (self.count <= MOST_JOBS).then_some(())
    }

    fn take(&mut self, record: &Record) -> Option<()> {
        let task = record.task as usize;
        let now = record.time.as_ns();
        if record.kind == Kind::Skip && self.tasks.get(task).is_some() {
            return self.leave_out(task, record.value);
        }
        if task >= self.tasks.len() || record.job == NO_JOB {
            return Some(());
        }
        if record.kind == Kind::Release {
            if self.forgets && self.open == 0 {
                self.tasks.iter_mut().for_each(Vec::clear);
                self.count = 0;
            }
            self.count += 1;
            self.open += usize::from(self.pending[task].insert(record.job, self.tasks[task].len()).is_none());
            self.tasks[task].push(Seen {
                number: record.job,
                arrival: record.value,
                ready: now,
                segments: vec![(0, 0)],
                runs_from: None,
                executed: None,
            });
            return (self.count <= MOST_JOBS).then_some(());
        }
        let place = self.pending[task].get(&record.job).copied();
        let Some(job) = place.and_then(|place| self.tasks[task].get_mut(place)) else { return Some(()) };
        match record.kind {
            Kind::Start | Kind::Resume => job.runs_from = Some(now),
            Kind::Preempt | Kind::Yield | Kind::Suspend => job.stops(now),
            Kind::PreemptionPoint => {
                let was_running = job.runs_from.is_some();
                job.stops(now);
                job.segments.push((record.value, 0));
                job.runs_from = was_running.then_some(now);
            }
            Kind::Completion => {
                job.stops(now);
                job.executed = Some(record.value);
                self.open -= usize::from(self.pending[task].remove(&record.job).is_some());
            }
            _ => {}
        }
        Some(())
    }
}

/// The trace's jobs up to the end of this one, cut to what the file allows; `None` where they are too many, or it is not there.
fn pattern_of<R: Read>(
    system: &System,
    mut reader: Reader<R>,
    task: u32,
    number: u64,
) -> Option<ReleasePattern> {
    let start = reader.header().start.as_ns();
    let depends_on_start = |one: &Task| one.offset.is_some() || one.separation().is_none();
    let forgets = system.servers().is_empty()
        && !system.tasks().iter().any(depends_on_start)
        && !system.platform().cpus.iter().any(|cpu| system.has_tree(cpu));
    let tasks = system.tasks().len();
    let mut jobs = Jobs {
        system,
        tasks: vec![Vec::new(); tasks],
        pending: vec![HashMap::new(); tasks],
        count: 0,
        open: 0,
        forgets,
    };
    let mut end = 0;
    while let Some(record) = reader.next_record() {
        end = record.time.as_ns();
        jobs.take(&record)?;
        if record.kind == Kind::Completion && (record.task, record.job) == (task, number) {
            break;
        }
    }
    jobs.pattern(task as usize, number, start, end)
}

impl Jobs<'_> {
    fn pattern(&self, task: usize, number: u64, start: u64, end: u64) -> Option<ReleasePattern> {
        let witness = self.tasks[task].iter().position(|job| job.number == number)?;
        let arrival = self.tasks[task][witness].arrival;
        let first = self.tasks.iter().flatten().map(|job| job.arrival).min()?;
        let origin = if self.forgets { first } else { 0 };
        // The simulator may give it a later end; what arrives up to then belongs to the pattern.
        let until = end.saturating_add(end.saturating_sub(arrival)).saturating_sub(origin).checked_add(1)?;
        let mut pattern = ReleasePattern::new(self.system.name(), Span::from_ns(until));
        if !self.forgets {
            pattern.start_ns = Span::from_ns(start);
        }
        for (known, seen) in self.system.tasks().iter().zip(&self.tasks) {
            let mut list: Vec<PatternJob> = seen.iter().map(|job| self.job(known, job, origin)).collect();
            go_on(known, &mut list, pattern.start_ns, until);
            if !list.is_empty() {
                pattern = pattern.task(TaskPattern::explicit(&known.name, list));
            }
        }
        let name = self.system.tasks()[task].name.clone();
        Some(pattern.witness(Witness { task: name, job: witness as u64, response_ns: None }))
    }

    fn job(&self, task: &Task, seen: &Seen, origin: u64) -> PatternJob {
        let platform = self.system.platform();
        let latency = if platform.tick.is_some() { Span::ZERO } else { platform.release_latency_bound() };
        let most = task.jitter.as_ns().saturating_add(latency.as_ns());
        let delay = seen.ready.saturating_sub(seen.arrival).min(most);
        let cut = |ns: u64, bcet: Span, wcet: Span| Span::from_ns(ns.clamp(bcet.as_ns(), wcet.as_ns()));
        let mut job = PatternJob {
            arrival_ns: Span::from_ns(seen.arrival - origin),
            delay_ns: Span::from_ns(delay),
            ..PatternJob::default()
        };
        // One that had not ended executes for its wcet.
        let Some(executed) = seen.executed else { return job };
        match task.segment_graph() {
            None => job.execution_ns = Some(vec![cut(executed, task.bcet, task.wcet)]),
            Some(graph) => {
                let of_graph = |&(segment, had): &(u64, u64)| {
                    let one = graph.segments.get(usize::try_from(segment).ok()?)?;
                    Some((usize::try_from(segment).ok()?, cut(had, one.bcet, one.wcet)))
                };
                let whole: Option<Vec<_>> = seen.segments.iter().map(of_graph).collect();
                if let Some(whole) = whole.filter(|whole| !whole.is_empty()) {
                    job.path = Some(whole.iter().map(|&(segment, _)| segment).collect());
                    job.execution_ns = Some(whole.into_iter().map(|(_, length)| length).collect());
                }
            }
        }
        job
    }
}

/// Adds the jobs that the file has up to `until` behind those of the trace: a pattern may leave none of them out.
fn go_on(task: &Task, jobs: &mut Vec<PatternJob>, start: Span, until: u64) {
    let at = |arrival: u64| PatternJob { arrival_ns: Span::from_ns(arrival), ..PatternJob::default() };
    let offset = task.offset.and_then(|offset| offset.checked_add(start)).map(Span::as_ns);
    match &task.arrival {
        Arrival::Periodic { period } => {
            let mut next = match jobs.last() {
                Some(last) => last.arrival_ns.as_ns().checked_add(period.as_ns()),
                None => offset,
            };
            while let Some(arrival) = next.filter(|&next| next < until && jobs.len() < MOST_JOBS) {
                jobs.push(at(arrival));
                next = arrival.checked_add(period.as_ns());
            }
        }
        Arrival::Aperiodic { arrivals } => {
            let listed = arrivals.iter().skip(jobs.len()).filter_map(|one| one.checked_add(start));
            let listed: Vec<u64> = listed.map(Span::as_ns).take_while(|&arrival| arrival < until).collect();
            jobs.extend(listed.into_iter().map(at));
        }
        Arrival::Sporadic { .. } if jobs.is_empty() => {
            jobs.extend(offset.filter(|&offset| offset < until).map(at));
        }
        _ => {}
    }
}
