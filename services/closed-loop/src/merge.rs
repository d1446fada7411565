//! The executive's records and the kernel's, merged by time while the run goes on.

use crate::LoopError;
use crate::commands::Commands;
use horolog_exec::{Backend, Heard, Limit, RunOptions, Started, ThreadInfo};
use horolog_measure::doctor::identity;
use horolog_measure::kernel_records::Given;
use horolog_model::{Body, System};
use horolog_sys::kernel_trace::{Choice, KernelEvent, Recorder, RecorderOptions};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Outcome, Record};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// The threads of tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskThreads {
    /// Which thread serves which task.
    pub(crate) tasks: Vec<(u32, u32)>,
    /// The priorities that the run gives each, where it is a real-time thread.
    pub(crate) given: Vec<(u32, Given)>,
}

impl TaskThreads {
    fn of(started: &Started) -> TaskThreads {
        let of_tasks = || started.threads.iter().filter_map(|thread| Some((thread, thread.task?.0)));
        let is_real_time = |thread: &ThreadInfo| thread.fifo_priority > 0;
        let given = |thread: &ThreadInfo| Given {
            first: thread.fifo_priority,
            lower: thread.lower_priorities().collect(),
        };
        TaskThreads {
            tasks: of_tasks().map(|(thread, task)| (thread.tid, task)).collect(),
            given: of_tasks()
                .filter(|(thread, _)| is_real_time(thread))
                .map(|(thread, _)| (thread.tid, given(thread)))
                .collect(),
        }
    }
}

/// One of both streams.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// The executive's record.
    Own(Record),
    /// The kernel's event.
    Kernel(KernelEvent),
}

/// Where the merged records go.
pub(crate) trait Target {
    /// The run has started: the head of its trace, and which thread serves which task.
    fn begin(&mut self, header: Header, threads: TaskThreads);
    /// The executive's next record.
    fn own(&mut self, record: Record);
    /// The kernel's next event.
    fn kernel(&mut self, event: KernelEvent);
    /// A deadline passed long ago, and no record tells of it; with what comes later, as far as it is there already.
    fn overdue(&mut self, _later: Vec<Entry>) {}
    /// Asked from time to time, also where no record comes.
    fn look(&mut self) {}
    /// The kernel's buffers lost `count` events in the end.
    fn lost(&mut self, time: Instant, count: u64);
    /// Nothing follows; the counts of what was kept go into the outcome.
    ///
    /// # Errors
    /// Where something could not be written.
    fn finish(self, end: Instant, outcome: &mut Outcome) -> Result<(), LoopError>;
}

/// Merges both streams, each in time order, into a target.
pub(crate) struct Merge<'a, T> {
    system: &'a System,
    options: RunOptions,
    target: T,
    started: Arc<OnceLock<Started>>,
    recorder: Option<Recorder>,
    unrecorded: Option<String>,
    begun: bool,
    /// Where the system has commands and the kernel is recorded.
    commands: Option<Commands>,
    origin_ns: u64,
    /// The executive's records that may still have kernel records before them.
    waiting: VecDeque<Record>,
    events: VecDeque<KernelEvent>,
    last_drain: Instant,
    latest: Instant,
    /// Nothing of the executive comes before this any more.
    reached: Instant,
}

/// How often the kernel's record is asked for.
const DRAIN_EVERY: Span = Span::from_ns(20_000_000);

impl<'a, T: Target> Merge<'a, T> {
    /// Starts recording the kernel, where the machine allows it.
    pub(crate) fn new(system: &'a System, options: &RunOptions, target: T) -> Merge<'a, T> {
        let cpus = system.platform().cpus.iter().map(|cpu| cpu.0).collect();
        let (recorder, unrecorded) = match Recorder::start(&RecorderOptions::new(cpus)) {
            Ok(recorder) => (Some(recorder), None),
            Err(error) => (None, Some(format!("the kernel was not recorded: {error}"))),
        };
        let started = Arc::new(OnceLock::new());
        Merge {
            system,
            options: options.clone(),
            target,
            started,
            recorder,
            unrecorded,
            begun: false,
            commands: None,
            origin_ns: 0,
            waiting: VecDeque::new(),
            events: VecDeque::new(),
            last_drain: Instant::ZERO,
            latest: Instant::ZERO,
            reached: Instant::ZERO,
        }
    }

    /// What is filled in when the run has started.
    pub(crate) fn started(&self) -> Arc<OnceLock<Started>> {
        Arc::clone(&self.started)
    }

    /// Takes what is heard of the run.
    pub(crate) fn hear(&mut self, heard: Heard) {
        self.begin();
        if !self.begun {
            return;
        }
        match heard {
            Heard::Record(record) => {
                self.waiting.push_back(record);
                self.latest = record.time;
                self.go_on(record.time);
            }
            // How far a run got that ends before its time only its own records tell. One without an end goes on without any.
            Heard::Until(time) if self.options.limit == Limit::Forever => {
                self.reached = time;
                self.go_on(time);
            }
            Heard::Until(_) => {}
            Heard::Overdue(held) => self.tell_overdue(held),
        }
    }

    /// Hands on what is complete, from time to time.
    fn go_on(&mut self, time: Instant) {
        if time.saturating_since(self.last_drain) >= DRAIN_EVERY {
            self.last_drain = time;
            self.drain();
            self.target.look();
        }
    }

    fn drain(&mut self) {
        if let Some(recorder) = &self.recorder {
            self.events.extend(recorder.drain());
        }
        self.pass_complete();
    }

    fn tell_overdue(&mut self, held: Vec<Record>) {
        self.drain();
        let kernel = self.events.iter().cloned().map(Entry::Kernel);
        let own = self.waiting.iter().copied().chain(held).map(Entry::Own);
        let mut later: Vec<Entry> = kernel.chain(own).collect();
        later.sort_by_key(|entry| match entry {
            Entry::Own(record) => record.time,
            Entry::Kernel(event) => self.time(event),
        });
        self.target.overdue(later);
    }

    /// Hands the head on, once the start is known.
    fn begin(&mut self) {
        if self.begun {
            return;
        }
        let Some(started) = self.started.get() else { return };
        let text = horolog_model::file::print(self.system);
        let mut header = Header::measured(text, Vec::new(), self.options.seed, started.origin_ns);
        // A run that began has a companion.
        if let Ok(companion) = horolog_exec::traced(self.system) {
            header = header.of_companion(self.system, &companion);
        }
        if self.options.best_effort {
            header.backend = "linux-best-effort".to_owned();
        }
        if let Limit::For(span) = self.options.limit {
            header.horizon = span;
        }
        header.machine = identity();
        if self.options.backend == Backend::Deadline {
            // The kernel may move such threads.
            header.machine.insert("scheduling_class".to_owned(), "deadline".to_owned());
        }
        let threads = TaskThreads::of(started);
        if self.recorder.is_some() {
            self.commands = Commands::new(self.system, &header, &threads.tasks);
        }
        self.target.begin(header, threads);
        self.origin_ns = started.origin_ns;
        self.begun = true;
    }

    /// Hands on what is left; who recorded the kernel, and what it cannot see (empty where nothing could).
    ///
    /// `closed` is when the run was over, ns since its start: what the kernel did after that says nothing of its jobs.
    pub(crate) fn finish(mut self, outcome: &mut Outcome, closed: u64) -> Result<String, LoopError> {
        // Not a single record: the trace still gets its head.
        self.begin();
        if !self.begun {
            return Err(LoopError::bad_input("the run ended before it started; no trace was written"));
        }
        let mut kernel_record = String::new();
        if let Some(recorder) = self.recorder.take() {
            let recording = recorder.stop()?;
            kernel_record = describe(&recording.choice);
            self.events.extend(recording.events);
            outcome.events_lost = outcome.events_lost.saturating_add(recording.losses.total());
            if recording.losses.memory > 0 {
                self.target.lost(self.latest, recording.losses.memory);
            }
        }
        if let Some(commands) = &mut self.commands {
            commands.end_at(outcome.horizon_ns.as_ns());
        }
        let end = Instant::from_ns(closed).max(self.latest);
        self.pass_until(end);
        // Deadlines behind the horizon say nothing of a program that was ended there.
        self.pass_due(Instant::from_ns(outcome.horizon_ns.as_ns()));
        self.target.finish(end, outcome)?;
        match &self.commands {
            Some(commands) => commands.fill(outcome),
            None => outcome.notes.extend(unjudged(self.system)),
        }
        outcome.notes.extend(self.unrecorded);
        Ok(kernel_record)
    }

    /// Hands on everything that nothing earlier can precede any more.
    fn pass_complete(&mut self) {
        let until = match (&self.recorder, self.events.back()) {
            (None, _) => Instant::NEVER,
            (Some(_), None) => return,
            (Some(_), Some(event)) => self.time(event),
        };
        self.pass_until(until.min(self.latest.max(self.reached)));
    }

    fn time(&self, event: &KernelEvent) -> Instant {
        Instant::from_ns(event.time_ns.saturating_sub(self.origin_ns))
    }

    /// Hands on what of commands becomes due before this instant.
    fn pass_due(&mut self, before: Instant) {
        let Some(commands) = &mut self.commands else { return };
        while let Some(record) = commands.due_before(before) {
            self.target.own(record);
        }
    }

    /// Hands on an event of the kernel, with the records of commands' jobs that it comes to.
    fn pass_event(&mut self, event: KernelEvent) {
        let (before, behind) =
            self.commands.as_mut().map_or_else(Default::default, |commands| commands.take(&event));
        before.into_iter().for_each(|record| self.target.own(record));
        self.target.kernel(event);
        behind.into_iter().for_each(|record| self.target.own(record));
    }

    fn pass_until(&mut self, until: Instant) {
        loop {
            let own = self.waiting.front().map(|record| record.time);
            let kernel = self.events.front().map(|event| self.time(event));
            match (own, kernel) {
                (Some(own), kernel) if own <= until && kernel.is_none_or(|kernel| own < kernel) => {
                    self.pass_due(own);
                    if let Some(record) = self.waiting.pop_front() {
                        self.target.own(record);
                    }
                }
                (_, Some(kernel)) if kernel <= until => {
                    self.pass_due(kernel);
                    if let Some(event) = self.events.pop_front() {
                        self.pass_event(event);
                    }
                }
                _ => return,
            }
        }
    }
}

/// Which tasks are commands, whose jobs no record shows yet.
fn unjudged(system: &System) -> Option<String> {
    let commands = system.tasks().iter().filter(|task| matches!(task.body, Some(Body::Command(_))));
    let names: Vec<&str> = commands.map(|task| task.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "jobs of commands ({}) are not judged: only the kernel's record shows them (`horolog doctor` says what it needs)",
            names.join(", ")
        )
    })
}

fn describe(choice: &Choice) -> String {
    if choice.unseen.is_empty() {
        return choice.reason.clone();
    }
    format!("{}; not seen: {}", choice.reason, choice.unseen.join(", "))
}
