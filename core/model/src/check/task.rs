//! The rules of one task.

use super::forest::{Above, Forest};
use super::{At, Checker};
use crate::{
    Arrival, Criticality, ExecutionTimes, GraphError, Order, OverrunPolicy, Preemption, PriorityAssignment,
    Segment, SegmentGraph, Task, path,
};
use horolog_time::Span;

impl Checker {
    pub(super) fn task(&mut self, task: &Task, path: &str, above: Above, forest: &Forest<'_>) {
        let order = forest.order(above);
        let is_soft = matches!(order, None | Some(Order::Fifo));
        self.name(&task.name, At::new(path, "name"));
        self.arrival(task, path);
        self.execution_bounds(task, path);
        self.criticality(task, path);
        self.deadline(task, path, is_soft);
        self.samples(task, path);
        self.listed_times(task, path);
        // The processors of a cluster are told with it.
        if !matches!(above, Above::Cluster(_)) {
            self.cpu(task.cpu, path, &forest.draft.platform);
        }
        self.priority(task, path, above, forest);
        if let Preemption::Deferred(graph) = &task.preemption {
            self.graph(task, graph, path);
            // Below one that serves first in, first out, that is told with the server.
            if order == Some(Order::Edf) {
                let otherwise = forest.to_order(above, Order::FixedPriority);
                self.fail_beside(
                    At::new(path, "preemption"),
                    "no test for deferred preemption under EDF exists yet",
                    format!("use `preemption = \"non-preemptive\"`, or {otherwise}"),
                    forest.what_orders(above),
                );
            }
        }
        self.body(task, path);
    }

    fn arrival(&mut self, task: &Task, path: &str) {
        match &task.arrival {
            Arrival::Periodic { period } if period.is_zero() => {
                self.fail(At::new(path, "period"), "the period is zero", "give the time between arrivals");
            }
            Arrival::Sporadic { separation } if separation.is_zero() => self.fail(
                At::new(path, "separation"),
                "the separation is zero",
                "give the least time between arrivals",
            ),
            Arrival::Aperiodic { arrivals } => self.arrivals(task, arrivals, path),
            _ => {}
        }
    }

    fn arrivals(&mut self, task: &Task, arrivals: &[Span], path: &str) {
        let at = At::new(path, "arrivals");
        if arrivals.is_empty() {
            self.fail(at, "there is no arrival", "give at least one, as in `[\"3 ms\"]`");
        }
        if let Some((index, pair)) = arrivals.windows(2).enumerate().find(|(_, pair)| pair[0] > pair[1]) {
            let reason = format!("the arrivals are not ascending: {} comes after {}", pair[1], pair[0]);
            self.fail(at.item(index + 1), reason, "write them in the order of time");
        }
        if task.offset.is_some() {
            self.fail(
                At::new(path, "offset"),
                "arrivals are instants after the start and take no offset",
                "add it to the arrivals",
            );
        }
        if !task.jitter.is_zero() {
            self.fail(
                At::new(path, "jitter"),
                "arrivals are given one by one and take no jitter",
                "write the arrivals as they happen",
            );
        }
    }

    fn execution_bounds(&mut self, task: &Task, path: &str) {
        let at = At::new(path, "wcet");
        if task.wcet.is_zero() {
            self.fail(at, "the wcet is zero", "give the longest that a job executes");
        }
        // Without a bcet the least sample is it, and that it is above the wcet is told there.
        let is_of_samples = matches!(&task.execution, ExecutionTimes::Samples(samples)
            if samples.iter().min() == Some(&task.bcet) && task.bcet > task.wcet);
        if task.bcet > task.wcet && !is_of_samples {
            self.fail_beside(
                At::new(path, "bcet"),
                format!("the bcet {} is above the wcet {}", task.bcet, task.wcet),
                "lower the bcet, or raise the wcet",
                vec![(at.to_string(), "the wcet".to_owned())],
            );
        }
    }

    fn criticality(&mut self, task: &Task, path: &str) {
        let Some(Criticality::High { wcet, virtual_deadline }) = task.criticality else { return };
        let at = At::new(path, "wcet_high");
        if let (Some(ordering), Some(deadline)) = (virtual_deadline, task.deadline)
            && (ordering > deadline || ordering < task.wcet)
        {
            self.fail_beside(
                At::new(path, "virtual_deadline"),
                format!(
                    "the virtual deadline {ordering} is not between the wcet {} and the deadline {deadline}",
                    task.wcet
                ),
                "choose it between them, or leave it out: `analyze` finds one",
                vec![(At::new(path, "wcet").to_string(), "the wcet".to_owned())],
            );
        }
        if wcet < task.wcet {
            self.fail_beside(
                at,
                format!("the high wcet {wcet} is below the wcet {}", task.wcet),
                "raise it: whoever asks for more certainty gets the longer time",
                vec![(At::new(path, "wcet").to_string(), "the wcet".to_owned())],
            );
        } else if let Some(deadline) =
            task.deadline.filter(|&deadline| deadline < wcet && deadline >= task.wcet)
        {
            self.fail_beside(
                At::new(path, "deadline"),
                format!("the deadline {deadline} is below the high wcet {wcet}: a job that executes so long misses it"),
                "raise the deadline, or lower the high wcet",
                vec![(at.to_string(), "the high wcet".to_owned())],
            );
        }
        if task.preemption != Preemption::Preemptive {
            self.fail(
                At::new(path, "criticality"),
                "high criticality of tasks that are not preemptible everywhere is not there yet",
                "remove `preemption`, or `criticality`",
            );
        }
        if !matches!(task.overrun, OverrunPolicy::Mode(_)) {
            self.fail(
                At::new(path, "criticality"),
                "nothing happens where a job of this task executes beyond its wcet",
                "add `[criticality]` with `scope = \"system\"`, or `overrun = { mode = \"…\" }`",
            );
        }
    }

    fn deadline(&mut self, task: &Task, path: &str, is_soft: bool) {
        if task.is_soft && task.deadline.is_none() {
            let remedy = "add a `deadline`, or remove `constraint`";
            self.fail(At::new(path, "constraint"), "there is no deadline that could be soft", remedy);
        }
        match task.deadline {
            Some(deadline) if deadline < task.wcet && task.separation() == Some(deadline) => self.fail_beside(
                At::new(path, "deadline"),
                format!(
                    "the wcet {} is above the deadline {deadline}, which is the {}: every job would miss it",
                    task.wcet,
                    match task.arrival {
                        Arrival::Sporadic { .. } => "separation",
                        _ => "period",
                    }
                ),
                "lower the wcet, or raise both",
                vec![(At::new(path, "wcet").to_string(), "the wcet".to_owned())],
            ),
            Some(deadline) if deadline < task.wcet => self.fail_beside(
                At::new(path, "deadline"),
                format!("the deadline {deadline} is below the wcet {}: every job would miss it", task.wcet),
                "raise the deadline, or lower the wcet",
                vec![(At::new(path, "wcet").to_string(), "the wcet".to_owned())],
            ),
            None if task.separation().is_some() && !is_soft => self.fail(
                At::new(path, "deadline"),
                "a periodic or sporadic task has a deadline",
                "give one; the usual choice is the period",
            ),
            _ => {}
        }
    }

    fn listed_times(&mut self, task: &Task, path: &str) {
        match &task.execution {
            ExecutionTimes::Jobs(times) => {
                let at = At::new(path, "execution.jobs");
                if task.segment_graph().is_some() {
                    let remedy =
                        "list a time a segment: `execution = { segments = [[\"3 ms\", \"5 ms\"], …] }`";
                    self.fail(at, "a job with segments has no time of its own to list", remedy);
                }
                self.listed(times, &at.to_string(), task.bcet, (path, "bcet", "the bcet"));
            }
            ExecutionTimes::Segments(lists) => self.listed_by_segments(task, lists, path),
            _ => {}
        }
    }

    fn listed_by_segments(&mut self, task: &Task, lists: &[Vec<Span>], path: &str) {
        let at = At::new(path, "execution.segments");
        let Some(graph) = task.segment_graph() else {
            let remedy = "list the times of whole jobs: `execution = { jobs = [\"2 ms\", \"5 ms\"] }`";
            self.fail(at, "this task has no segments to list times for", remedy);
            return;
        };
        if lists.len() != graph.segments.len() {
            let reason =
                format!("there are {} lists of times and {} segments", lists.len(), graph.segments.len());
            self.fail(at, reason, "give each segment a list, in the order of `segments`");
            return;
        }
        for (index, (times, segment)) in lists.iter().zip(&graph.segments).enumerate() {
            self.listed(times, &at.item(index), segment.bcet, (path, "segments", "its bcet"));
        }
    }

    /// Times of jobs, or of one of their segments, with the bound that is named at `beside`.
    fn listed(&mut self, times: &[Span], at: &str, bcet: Span, beside: (&str, &'static str, &str)) {
        if times.is_empty() {
            self.fail(at, "there is no time", "give at least one time, or use `execution = \"wcet\"`");
        }
        if let Some((index, time)) = times.iter().enumerate().find(|(_, time)| **time < bcet) {
            let (path, key, what) = beside;
            self.fail_beside(
                path::by_place(at, index),
                format!("the time {time} is below the bcet {bcet}"),
                match key {
                    "segments" => "give the segment its bcet, as in `{ wcet = \"3 ms\", bcet = \"1 ms\" }`, or raise the time",
                    _ => "lower the bcet, or raise the time",
                },
                vec![(At::new(path, key).to_string(), what.to_owned())],
            );
        }
    }

    /// Where a job may execute longer than its wcet, everything beside it has to know what then.
    pub(super) fn overruns(&mut self, forest: &Forest<'_>) {
        let (draft, paths) = (forest.draft, forest.paths);
        for (task, path) in draft.tasks.iter().zip(&paths.tasks) {
            if !task.may_exceed() {
                continue;
            }
            let has_drivers = !draft.interrupts.is_empty() || !draft.devices.is_empty();
            let beside = if has_drivers {
                Some("beside interrupts and devices")
            } else if !draft.clusters.is_empty() {
                Some("beside clusters")
            } else if forest.watching.contains_key(&task.cpu) {
                Some("beside a server that looks at every task of the CPU")
            } else {
                None
            };
            if let Some(beside) = beside {
                let key =
                    if task.segment_graph().is_some() { "execution.segments" } else { "execution.jobs" };
                self.fail(
                    At::new(path, key),
                    format!("times above the wcet {beside} are not there yet"),
                    "list times up to the wcet",
                );
            }
            let is_below = matches!(forest.above_task(&task.name), Above::Server(_));
            if is_below && task.overrun == OverrunPolicy::Demote {
                self.fail(
                    At::new(path, "overrun"),
                    "`demote` below a server is not there yet",
                    "use another word, or list times up to the wcet",
                );
            }
        }
    }

    fn samples(&mut self, task: &Task, path: &str) {
        let ExecutionTimes::Samples(samples) = &task.execution else { return };
        let at = At::new(path, "execution.samples");
        if samples.is_empty() {
            self.fail(at, "there is no sample", "give at least one, or use `execution = \"wcet\"`");
        }
        if let Some((index, sample)) = samples.iter().enumerate().find(|(_, sample)| **sample > task.wcet) {
            self.fail_beside(
                at.item(index),
                format!("the sample {sample} is above the wcet {}", task.wcet),
                "raise the wcet, or remove the sample",
                vec![(At::new(path, "wcet").to_string(), "the wcet".to_owned())],
            );
        }
        if let Some((index, sample)) = samples.iter().enumerate().find(|(_, sample)| **sample < task.bcet) {
            self.fail_beside(
                at.item(index),
                format!("the sample {sample} is below the bcet {}", task.bcet),
                match task.preemption {
                    Preemption::Deferred(_) => {
                        "give the segments their bcets, as in `{ wcet = \"3 ms\", bcet = \"1 ms\" }`, or remove the sample"
                    }
                    _ => "lower the bcet, or remove the sample",
                },
                vec![(At::new(path, "bcet").to_string(), "the bcet".to_owned())],
            );
        }
    }

    fn priority(&mut self, task: &Task, path: &str, above: Above, forest: &Forest<'_>) {
        let at = At::new(path, "priority");
        match (forest.order(above), task.priority) {
            (Some(Order::Edf), Some(_)) => self.fail_beside(
                at,
                "under EDF a task has no priority",
                format!("remove `priority`, or use {}", forest.to_order(above, Order::FixedPriority)),
                forest.what_orders(above),
            ),
            (Some(Order::FixedPriority), None) if above != Above::Root => self.fail_beside(
                at,
                "under fixed priorities a task needs a `priority`",
                format!(
                    "add `priority = 10` (larger is more important), or use {}",
                    forest.to_order(above, Order::Edf)
                ),
                forest.what_orders(above),
            ),
            (Some(Order::FixedPriority), _) if above == Above::Root => self.root_priority(task, path, forest),
            (Some(Order::Table), Some(_)) => self.fail_beside(
                at,
                "below a time table a task has no priority",
                "remove `priority`",
                forest.what_orders(above),
            ),
            // What is served first in, first out gives none: that is told with its server.
            (Some(Order::Fifo) | None, _)
            | (Some(Order::FixedPriority), Some(_))
            | (Some(Order::FixedPriority | Order::Edf | Order::Table), None) => {}
        }
    }

    /// Below the root of a processor, under fixed priorities.
    fn root_priority(&mut self, task: &Task, path: &str, forest: &Forest<'_>) {
        let at = At::new(path, "priority");
        match (forest.draft.priorities, task.priority) {
            // A server that misspells it says so: it needs none then.
            (PriorityAssignment::Explicit, None) if forest.is_misspelt(&task.name) => {}
            (PriorityAssignment::Explicit, None) => self.fail(
                at,
                "under fixed priorities a task needs a `priority`",
                "add `priority = 10` (larger is more important), or `priorities = \"deadline-monotonic\"` in [system]",
            ),
            (PriorityAssignment::Explicit, Some(_)) => {}
            (assignment, Some(_)) => self.fail_beside(
                at,
                format!("priorities come from the assignment `{}`", assignment.word().unwrap_or_default()),
                "remove `priority`, or remove `priorities` from [system]",
                vec![("system.priorities".to_owned(), "the assignment".to_owned())],
            ),
            (assignment, None) => self.assignable(task, path, assignment),
        }
    }

    /// Whether the assignment knows where to put the task.
    fn assignable(&mut self, task: &Task, path: &str, assignment: PriorityAssignment) {
        let (key, lacks) = match assignment {
            PriorityAssignment::RateMonotonic => ("period", task.separation().is_none()),
            _ => ("deadline", task.deadline.is_none()),
        };
        if lacks {
            let word = assignment.word().unwrap_or_default();
            self.fail_beside(
                At::new(path, key),
                format!("the assignment `{word}` needs a {key}, and this task has none"),
                if key == "period" {
                    "use another assignment, or explicit priorities"
                } else {
                    "give it a deadline"
                },
                vec![("system.priorities".to_owned(), "the assignment".to_owned())],
            );
        }
    }

    fn graph(&mut self, task: &Task, graph: &SegmentGraph, path: &str) {
        let at = At::new(path, "segments");
        let errors = graph.errors();
        for error in &errors {
            let remedy = match error {
                GraphError::Empty => "give at least one segment",
                GraphError::DuplicateName { .. } => "give each segment its own name",
                GraphError::Cycle(_) => "a job has to end: remove one `next` of the circle",
                GraphError::SeveralEntries(_) => "let one segment lead to the others",
                GraphError::UnknownNext { .. } | GraphError::RepeatedNext { .. } => {
                    "name each following segment once, and only segments of the task"
                }
            };
            self.fail(at, error.to_string(), remedy);
        }
        if !errors.is_empty() {
            return;
        }
        if !graph.is_in_order() {
            let remedy = "sort them with `SegmentGraph::sorted`";
            self.fail(at, "the segments are not in topological order", remedy);
            return;
        }
        for segment in &graph.segments {
            self.segment(segment, at);
        }
        self.graph_sums(task, graph, path);
    }

    fn segment(&mut self, segment: &Segment, segments: At<'_>) {
        let at = || path::join(&segments.to_string(), &segment.name);
        if segment.name.is_empty() {
            self.fail(at(), "the segment's name is empty", "give it a name");
        }
        if segment.wcet.is_zero() {
            let remedy = "give it a wcet, or remove the segment";
            self.fail(At::new(&at(), "wcet"), "the segment's wcet is zero", remedy);
        }
        if segment.bcet > segment.wcet {
            self.fail_beside(
                At::new(&at(), "bcet"),
                format!("the bcet {} is above the wcet {}", segment.bcet, segment.wcet),
                "lower the bcet, or raise the wcet",
                vec![(At::new(&at(), "wcet").to_string(), "the wcet".to_owned())],
            );
        }
    }

    /// The task's wcet and bcet are those of the longest and the shortest path.
    fn graph_sums(&mut self, task: &Task, graph: &SegmentGraph, path: &str) {
        let segments = At::new(path, "segments");
        let Some((wcet, bcet)) = graph.wcet().zip(graph.bcet()) else {
            self.fail(segments, "the longest path is above 2^64 - 1 ns (584 years)", "use smaller values");
            return;
        };
        if task.wcet != wcet {
            self.fail_beside(
                At::new(path, "wcet"),
                format!("the wcet {} is not that of the longest path, {wcet}", task.wcet),
                "remove `wcet`: the segments give it",
                vec![(segments.to_string(), "the segments".to_owned())],
            );
        }
        if task.bcet != bcet {
            self.fail_beside(
                At::new(path, "bcet"),
                format!("the bcet {} is not that of the shortest path, {bcet}", task.bcet),
                "give each segment its own bcet: `{ wcet = \"3 ms\", bcet = \"2 ms\" }`",
                vec![(segments.to_string(), "the segments".to_owned())],
            );
        }
    }
}
