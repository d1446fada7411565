//! Requests of tasks: where a job's start phase ends, and what became of what it asked for.

use horolog_model::{DeviceClass, Priority, Request, RequestMode, System, TaskId};
use horolog_time::Span;
use horolog_trace::ResponseRecorder;

/// Where the jobs of one task ask for something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Portions {
    /// What a job has executed when it asks, and for which request, ascending.
    points: Vec<(u64, usize)>,
    /// The first point that the present job has not reached.
    next: usize,
    whole: u64,
    done: u64,
}

impl Portions {
    pub(crate) fn new(system: &System, task: TaskId) -> Portions {
        let name = &system.task(task).name;
        let requests = system.requests().iter().enumerate().filter(|(_, request)| request.task == *name);
        let mut points: Vec<(u64, usize)> =
            requests.map(|(index, request)| (request.after.as_ns(), index)).collect();
        points.sort_by_key(|&(after, _)| after);
        Portions { points, ..Portions::default() }
    }

    /// A job of `whole` execution begins: how long it executes before it asks or ends.
    pub(crate) fn begin(&mut self, whole: u64) -> u64 {
        (self.next, self.whole, self.done) = (0, whole, 0);
        self.stretch()
    }

    /// The present stretch is over: the request that stands at its end, and the stretch behind it; `None`: the job ends.
    pub(crate) fn advance(&mut self) -> Option<(usize, u64)> {
        let (_, request) = *self.points.get(self.next)?;
        self.next += 1;
        Some((request, self.stretch()))
    }

    fn stretch(&mut self) -> u64 {
        let end = self.points.get(self.next).map_or(self.whole, |&(after, _)| after.min(self.whole));
        let stretch = end - self.done;
        self.done = end;
        stretch
    }
}

/// One request and what became of it.
#[derive(Debug)]
pub(crate) struct RequestRun {
    pub(crate) task: u32,
    /// The priority that the task has in the file.
    pub(crate) priority: Option<Priority>,
    /// The device's place in the file.
    pub(crate) device: usize,
    pub(crate) is_closed: bool,
    pub(crate) waits: bool,
    pub(crate) has_stream: bool,
    deadline: u64,
    /// Since when its task waits.
    pub(crate) waiting_since: Option<u64>,
    /// Events of its stream that came before it was asked for.
    pub(crate) unread: u64,
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) missed: u64,
    pub(crate) charged: u64,
    pub(crate) responses: ResponseRecorder,
}

impl RequestRun {
    pub(crate) fn new(system: &System, request: &Request) -> RequestRun {
        let device = system.find_device(&request.device).unwrap_or(0);
        RequestRun {
            task: system.find_task(&request.task).map_or(0, |task| task.0),
            priority: system.find_task(&request.task).and_then(|task| system.task(task).priority),
            device,
            is_closed: system.devices()[device].class == DeviceClass::Closed,
            waits: request.mode == RequestMode::Synchronous,
            has_stream: request.arrivals.is_some(),
            deadline: request.deadline.map_or(u64::MAX, Span::as_ns),
            waiting_since: None,
            unread: 0,
            asked: 0,
            answered: 0,
            missed: 0,
            charged: 0,
            responses: ResponseRecorder::default(),
        }
    }

    /// What was asked for at `asked` is there.
    pub(crate) fn answer(&mut self, asked: u64, now: u64) {
        self.answered += 1;
        self.missed += u64::from(now - asked > self.deadline);
        self.responses.record(Span::from_ns(now - asked));
    }

    /// Whether an answer that is not there at `end` is late.
    pub(crate) fn is_late(&self, asked: u64, end: u64) -> bool {
        asked.saturating_add(self.deadline) <= end
    }
}
