//! Jobs drawn from the model: arrivals, jitter, latency, execution times and paths.

use crate::error::Reason;
use crate::options::{DelayChoice, ExecutionChoice, PathChoice, SimOptions};
use crate::path::{check_path, longest_path};
use crate::random::Stream;
use crate::source::{NextJob, Source};
use horolog_model::{Arrival, ExecutionTimes, SegmentGraph, System, Task, TaskId};

/// How arrivals follow each other.
#[derive(Clone, Debug)]
enum Rhythm {
    Every { separation: u64, extra: u64 },
    Listed { arrivals: Vec<u64>, next: usize },
}

/// How long a job or segment executes.
#[derive(Clone, Debug)]
enum Execution {
    Wcet,
    Bcet,
    Uniform,
    Samples(Vec<u64>),
    /// The times, and whose turn it is.
    Jobs(Vec<u64>, usize),
    /// The times of each segment, and how many jobs have begun.
    Segments(Vec<Vec<u64>>, usize),
}

/// Which way jobs take.
#[derive(Clone, Debug)]
enum Path {
    Fixed(Vec<u32>),
    Random,
}

/// How late a job may be noticed.
#[derive(Clone, Copy, Debug)]
struct Delay {
    choice: DelayChoice,
    most: u64,
}

impl Delay {
    #[inline(always)]
    fn draw(self, stream: &mut Stream) -> u64 {
        match self.choice {
            _ if self.most == 0 => 0,
            DelayChoice::Uniform => stream.up_to(self.most),
            DelayChoice::None => 0,
            DelayChoice::Max => self.most,
        }
    }
}

/// One task's jobs.
#[derive(Clone, Debug)]
struct TaskDraw {
    /// Nominal arrival of the next job; `None`: there are no more.
    next: Option<u64>,
    rhythm: Rhythm,
    jitter: Delay,
    latency: Delay,
    tick: u64,
    last_notice: u64,
    arrivals: Stream,
    executions: Stream,
    execution: Execution,
    wcet: u64,
    bcet: u64,
    graph: Option<Graph>,
}

/// The segments of a deferred task, and where its job in execution stands.
#[derive(Clone, Debug)]
struct Graph {
    segments: SegmentGraph,
    path: Path,
    /// Which of the path's segments executes.
    place: usize,
    segment: u32,
    /// What the wcets of the segments executed exceed their bcets by: where samples are cut.
    passed: u64,
    sample: u64,
}

/// Jobs drawn from the model.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    tasks: Vec<TaskDraw>,
}

impl Drawn {
    pub(crate) fn new(system: &System, options: &SimOptions) -> Result<Drawn, Reason> {
        let tasks = system.tasks().iter().enumerate();
        let tasks = tasks.map(|(index, task)| TaskDraw::new(system, TaskId(index as u32), task, options));
        Ok(Drawn { tasks: tasks.collect::<Result<_, _>>()? })
    }
}

impl TaskDraw {
    fn new(system: &System, id: TaskId, task: &Task, options: &SimOptions) -> Result<TaskDraw, Reason> {
        let offset = task.offset.map_or(0, |offset| offset.as_ns());
        let rhythm = match &task.arrival {
            Arrival::Periodic { period } => Rhythm::Every { separation: period.as_ns(), extra: 0 },
            Arrival::Sporadic { separation } => {
                Rhythm::Every { separation: separation.as_ns(), extra: options.sporadic_extra.as_ns() }
            }
            Arrival::Aperiodic { arrivals } => {
                Rhythm::Listed { arrivals: arrivals.iter().map(|a| a.as_ns()).collect(), next: 1 }
            }
            _ => {
                let reason = format!("task {} arrives in a way that is not simulated", task.name);
                return Err(Reason::Option { option: "arrival", reason });
            }
        };
        let next = match &rhythm {
            Rhythm::Every { .. } => Some(offset),
            Rhythm::Listed { arrivals, .. } => arrivals.first().copied(),
        };
        let execution = match (options.execution, &task.execution) {
            (ExecutionChoice::Bcet, _) => Execution::Bcet,
            (ExecutionChoice::Wcet, _) => Execution::Wcet,
            (ExecutionChoice::Uniform, _) | (_, ExecutionTimes::Uniform) => Execution::Uniform,
            (_, ExecutionTimes::Samples(samples)) if !samples.is_empty() => {
                Execution::Samples(samples.iter().map(|s| s.as_ns()).collect())
            }
            (_, ExecutionTimes::Jobs(times)) if !times.is_empty() => {
                Execution::Jobs(times.iter().map(|time| time.as_ns()).collect(), 0)
            }
            (_, ExecutionTimes::Segments(lists)) if lists.iter().all(|times| !times.is_empty()) => {
                let lists = lists.iter().map(|times| times.iter().map(|time| time.as_ns()).collect());
                Execution::Segments(lists.collect(), 0)
            }
            _ => Execution::Wcet,
        };
        let platform = system.platform();
        Ok(TaskDraw {
            next,
            rhythm,
            jitter: Delay { choice: options.jitter, most: task.jitter.as_ns() },
            latency: Delay { choice: options.latency, most: platform.release_latency_bound().as_ns() },
            tick: platform.tick.map_or(0, |tick| tick.as_ns()),
            last_notice: 0,
            arrivals: Stream::new(options.seed, &task.name, "arrivals"),
            executions: Stream::new(options.seed, &task.name, "executions"),
            execution,
            wcet: task.wcet.as_ns(),
            bcet: task.bcet.as_ns(),
            graph: task
                .segment_graph()
                .map(|graph| Graph::new(id, task, graph, &options.path))
                .transpose()?,
        })
    }

    /// The nominal arrival after `arrival`. One that no u64 holds lies after every horizon.
    #[inline(always)]
    fn after(&mut self, arrival: u64) -> Option<u64> {
        match &mut self.rhythm {
            Rhythm::Every { separation, extra: 0 } => arrival.checked_add(*separation),
            Rhythm::Every { separation, extra } => {
                arrival.checked_add(*separation)?.checked_add(self.arrivals.up_to(*extra))
            }
            Rhythm::Listed { arrivals, next } => {
                *next += 1;
                arrivals.get(*next - 1).copied()
            }
        }
    }

    /// How long one whole job of a task without segments executes.
    #[inline(always)]
    fn draw_execution(&mut self) -> u64 {
        match &mut self.execution {
            Execution::Jobs(times, next) => {
                let time = times[*next];
                *next = (*next + 1) % times.len();
                time
            }
            // Lists a segment are for tasks with segments.
            Execution::Wcet | Execution::Segments(..) => self.wcet,
            Execution::Bcet => self.bcet,
            Execution::Uniform => self.bcet + self.executions.up_to(self.wcet - self.bcet),
            Execution::Samples(samples) => samples[self.executions.up_to(samples.len() as u64 - 1) as usize],
        }
    }

    /// How long the present segment executes.
    fn draw_segment(&mut self) -> u64 {
        let Some(graph) = &mut self.graph else { return 0 };
        let segment = &graph.segments.segments[graph.segment as usize];
        let (bcet, wcet) = (segment.bcet.as_ns(), segment.wcet.as_ns());
        match &self.execution {
            // Only for tasks without segments.
            Execution::Wcet | Execution::Jobs(..) => wcet,
            Execution::Segments(lists, begun) => {
                let times = lists.get(graph.segment as usize).map_or(&[][..], Vec::as_slice);
                let turn = begun.saturating_sub(1) % times.len().max(1);
                times.get(turn).copied().unwrap_or(wcet)
            }
            Execution::Bcet => bcet,
            Execution::Uniform => bcet + self.executions.up_to(wcet - bcet),
            Execution::Samples(_) => {
                // Every segment stands where the sample stands between the task's bcet and wcet, so that none
                // leaves its bounds; cuts of the running sum add up to the sample exactly in a sequence.
                let (part, whole) = (graph.sample - self.bcet, (self.wcet - self.bcet).max(1));
                let cut = |passed: u64| (u128::from(part) * u128::from(passed) / u128::from(whole)) as u64;
                let before = cut(graph.passed);
                graph.passed += wcet - bcet;
                bcet + cut(graph.passed) - before
            }
        }
    }
}

impl Graph {
    fn new(id: TaskId, task: &Task, segments: &SegmentGraph, choice: &PathChoice) -> Result<Graph, Reason> {
        let longest = || Path::Fixed(longest_path(segments));
        let path = match choice {
            PathChoice::Longest => longest(),
            PathChoice::Random => Path::Random,
            PathChoice::Given(paths) => match paths.get(&id) {
                Some(path) => Path::Fixed(check_path(segments, path).map_err(|reason| Reason::Option {
                    option: "path",
                    reason: format!("task {}: {reason}", task.name),
                })?),
                None => longest(),
            },
        };
        Ok(Graph { segments: segments.clone(), path, place: 0, segment: 0, passed: 0, sample: 0 })
    }

    /// Steps to the next segment of the path; `false`: there is none.
    fn step(&mut self, stream: &mut Stream) -> bool {
        self.place += 1;
        let next = match &self.path {
            Path::Fixed(path) => path.get(self.place).copied(),
            Path::Random => {
                let next = &self.segments.segments[self.segment as usize].next;
                let branch = if next.len() > 1 { stream.up_to(next.len() as u64 - 1) as usize } else { 0 };
                next.get(branch).map(|&segment| segment as u32)
            }
        };
        self.segment = next.unwrap_or(0);
        next.is_some()
    }
}

impl Source for Drawn {
    #[inline(always)]
    fn next_job(&mut self, task: usize) -> Option<NextJob> {
        let draw = &mut self.tasks[task];
        let arrival = draw.next?;
        draw.next = draw.after(arrival);
        let mut notice = arrival.checked_add(draw.jitter.draw(&mut draw.arrivals))?;
        if draw.tick != 0 {
            notice = notice.checked_next_multiple_of(draw.tick)?;
        }
        notice = notice.checked_add(draw.latency.draw(&mut draw.arrivals))?;
        draw.last_notice = draw.last_notice.max(notice);
        Some(NextJob { arrival, notice: draw.last_notice })
    }

    fn restart(&mut self, task: usize, at: u64, separation: u64) {
        let draw = &mut self.tasks[task];
        if let Rhythm::Every { separation: old, .. } = &mut draw.rhythm {
            *old = separation;
            draw.next = Some(at);
            // What was in sight is gone.
            draw.last_notice = at;
        }
    }

    #[inline(always)]
    fn begin(&mut self, task: usize) -> u64 {
        let draw = &mut self.tasks[task];
        if draw.graph.is_none() {
            return draw.draw_execution();
        }
        let sample = match &mut draw.execution {
            Execution::Samples(_) => draw.draw_execution(),
            Execution::Segments(_, begun) => {
                *begun += 1;
                0
            }
            _ => 0,
        };
        if let Some(graph) = &mut draw.graph {
            (graph.place, graph.segment, graph.passed, graph.sample) = (0, 0, 0, sample);
        }
        draw.draw_segment()
    }

    fn pass_over(&mut self, task: usize) {
        if let Execution::Jobs(times, next) = &mut self.tasks[task].execution {
            *next = (*next + 1) % times.len();
        }
    }

    /// The next job draws all anew.
    fn abandon(&mut self, _: usize) {}

    #[inline(always)]
    fn advance(&mut self, task: usize) -> Option<(u32, u64)> {
        let draw = &mut self.tasks[task];
        let graph = draw.graph.as_mut()?;
        if !graph.step(&mut draw.executions) {
            return None;
        }
        let segment = graph.segment;
        Some((segment, draw.draw_segment()))
    }
}
