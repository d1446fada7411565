//! Starts and ends the threads of a run.

use crate::agent::{self, CpuAgent, Devices, Driver, InModes, Seat, Served};
use crate::arrivals::Arrivals;
use crate::boards::{Boards, LOADS, MAKES_READY};
use crate::body::{Bodies, TaskBody, place};
use crate::direct::{self, Direct, Exclusion};
use crate::drivers::request_points;
use crate::early::{Early, What};
use crate::links;
use crate::options::NonPreemptiveVariant;
use crate::plan::{CpuPlan, Mode, Plan};
use crate::processes::Processes;
use crate::shared::RunShared;
use crate::task_shared::TaskShared;
use crate::{ExecError, RunOptions, bands};
use horolog_model::{
    Arrival, Body, Companion, LeftOver, LowPriority, Order, Preemption, Role, System, TaskId,
};
use horolog_sched::{Machine, ProcessorIndex};
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock::{self, ThreadClock};
use horolog_sys::deadline::set_deadline;
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::hold::Held;
use horolog_sys::process::Attached;
use horolog_sys::stack_thread::{self, Stack, StackThread};
use horolog_sys::usage::Usage;
use horolog_sys::{crash, futex, hold, thread, usage};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Everything that runs.
pub(crate) struct Threads {
    pub(crate) tasks: Vec<Arc<TaskShared>>,
    pub(crate) agents: Vec<Arc<CpuAgent>>,
    handles: Vec<Handle>,
    /// Programs of tasks, started before the common start.
    pub(crate) processes: Processes,
}

/// A thread to be joined.
struct Handle {
    name: String,
    /// The task whose code it runs; `None`: an agent.
    task: Option<TaskId>,
    thread: StackThread,
}

/// A thread that did not end.
pub(crate) struct LeftBehind {
    pub(crate) name: String,
}

/// What starting needs.
pub(crate) struct Setup<'a> {
    /// The tasks, and the threads of the devices that are emulated.
    pub(crate) system: &'a System,
    /// As the file has it.
    pub(crate) file: &'a System,
    pub(crate) companion: &'a Companion,
    pub(crate) options: &'a RunOptions,
    pub(crate) plan: &'a Plan,
    pub(crate) run: &'a Arc<RunShared>,
    pub(crate) boards: &'a Boards,
}

impl Setup<'_> {
    /// Starts a thread for each task that has one and for each agent; they wait at the start barrier.
    pub(crate) fn start(&self, bodies: &mut Bodies) -> Result<Threads, ExecError> {
        let ids = (0..self.system.tasks().len()).map(|index| TaskId(index as u32));
        let links = links::all(self.system);
        let tasks = ids
            .map(|id| {
                let mut shared = TaskShared::new(self.system, self.options, id, &links, self.boards)?;
                shared.requests = request_points(self.file, id);
                Ok(Arc::new(shared))
            })
            .collect::<Result<Vec<_>, ExecError>>()?;
        let mut threads =
            Threads { tasks, agents: Vec::new(), handles: Vec::new(), processes: Processes::default() };
        for cpu in &self.plan.cpus {
            // Bodies first: a bad library must stop the run before anything else is started.
            let mut own = Vec::new();
            for &id in &cpu.tasks {
                let load = || bodies.of(self.system, id, self.options);
                own.push((id, Boards::at_stage(&self.boards.stages, id, LOADS, load)?));
            }
            let started = match cpu.mode {
                Mode::Shadow => self.start_shadow(&mut threads, own),
                Mode::Authoritative => self.start_authoritative(&mut threads, cpu, own),
            };
            if let Err(error) = started {
                self.run.stop(0);
                threads.join(self.run, self.options);
                return Err(error);
            }
        }
        Ok(threads)
    }

    /// Starts the attached processes, once every thread is ready.
    pub(crate) fn attach(&self, threads: &mut Threads) -> Result<(), ExecError> {
        for task in &threads.tasks {
            let Some(Body::Command(command)) = &self.system.task(task.id).body else { continue };
            let mut command = command.clone();
            if let Some(program) = command.first_mut() {
                let placed = place(program, self.options.folder.as_deref());
                // The program starts in that folder, from where a relative path would lead elsewhere.
                let is_path = placed.components().count() > 1;
                let placed = if is_path { std::path::absolute(&placed).unwrap_or(placed) } else { placed };
                *program = placed.display().to_string();
            }
            let class = self.plan.classes[task.id.index()];
            let folder = self.options.folder.as_deref();
            let attached = Attached::start(&command, folder, &CpuSet::new([task.cpu]), class)
                .map_err(|error| not_started(&task.name, error))?;
            task.tid.store(attached.id(), Ordering::Release);
            let note = "an attached process: its waits end its jobs, which only the kernel's record shows";
            task.tally().note = Some(note);
            let period = match self.system.task(task.id).arrival {
                Arrival::Periodic { period } => Some(period.as_ns()),
                _ => None,
            };
            threads.processes.add(task.clone(), attached, period);
        }
        let stop = self.options.stop.as_ref();
        threads.processes.wait_until_started(|| !stop.is_some_and(|stop| stop.load(Ordering::Acquire)));
        Ok(())
    }

    fn arrivals(&self, id: TaskId) -> Arrivals {
        Arrivals::of(self.system, id, self.options)
    }

    fn start_shadow(
        &self,
        threads: &mut Threads,
        bodies: Vec<(TaskId, Box<dyn TaskBody>)>,
    ) -> Result<(), ExecError> {
        for (id, body) in bodies {
            let class = self.plan.classes[id.index()];
            let direct = Direct { class, exclusion: self.exclusion(threads, id) };
            let mut arrivals = self.arrivals(id);
            let (run, task) = (self.run.clone(), threads.tasks[id.index()].clone());
            self.start_task(threads, id, body, move |start, body| {
                direct::run_jobs(&direct, &task, &run, start, &mut arrivals, body);
                let usage = usage::of_this_thread();
                let mut tally = task.tally();
                tally.counts.preemptions = usage.involuntary_switches;
                tally.counts.switch_ins = usage.involuntary_switches + usage.voluntary_switches;
            })?;
        }
        Ok(())
    }

    fn exclusion(&self, threads: &Threads, id: TaskId) -> Exclusion {
        let task = self.system.task(id);
        if task.preemption != Preemption::NonPreemptive {
            return Exclusion::None;
        }
        if self.options.non_preemptive == NonPreemptiveVariant::RaisePriority {
            return Exclusion::Raise;
        }
        let more_important =
            self.system.tasks_on(task.cpu).filter(|(_, other)| match (other.priority, task.priority) {
                (Some(other), Some(own)) => other.is_more_important_than(own),
                _ => false,
            });
        let each =
            more_important.map(|(id, _)| (threads.tasks[id.index()].clone(), self.plan.classes[id.index()]));
        Exclusion::Suspend(each.collect())
    }

    fn start_authoritative(
        &self,
        threads: &mut Threads,
        cpu: &CpuPlan,
        bodies: Vec<(TaskId, Box<dyn TaskBody>)>,
    ) -> Result<(), ExecError> {
        let agent = Arc::new(self.make_agent(threads, cpu)?);
        for (seat, (id, body)) in bodies.into_iter().enumerate() {
            let (agent, task) = (agent.clone(), threads.tasks[id.index()].clone());
            // Nothing comes from this task's own thread before it is granted a job.
            task.ring.promise(u64::MAX);
            self.start_task(threads, id, body, move |_, body| agent::run_jobs(&agent, &task, seat, body))?;
        }
        threads.agents.push(agent.clone());
        let (run, options) = (self.run.clone(), self.options);
        let class = if options.best_effort { Class::Normal } else { Class::Fifo(bands::AGENT) };
        let name = format!("horolog/{}", cpu.cpu);
        run.alive.fetch_add(1, Ordering::AcqRel);
        threads.spawn((name.clone(), None), options, move || {
            agent.tid.store(thread::id(), Ordering::Release);
            match prepare_thread(&name, agent.cpu, class) {
                Ok(()) => {
                    if let Some(start) = run.wait_for_start() {
                        let before = usage::of_this_thread();
                        agent.run_agent(start);
                        agent.switches.store(switches_since(before), Ordering::Release);
                    }
                }
                Err(error) => run.fail(error.in_task(&name)),
            }
            run.alive.fetch_sub(1, Ordering::AcqRel);
        })
    }

    fn make_agent(&self, threads: &mut Threads, cpu: &CpuPlan) -> Result<CpuAgent, ExecError> {
        let place = self.system.platform().cpus.index_of(horolog_model::CpuId(cpu.cpu)).unwrap_or(0);
        let seats = cpu.tasks.iter().map(|&id| {
            let shared = threads.tasks[id.index()].clone();
            let mut seat = Seat::new(shared, self.arrivals(id), self.run.horizon());
            seat.may_be_held = self.may_be_held(id);
            if self.companion.roles[id.index()] != Role::Task {
                // Its device wakes it, and goes on as long as others wait for that.
                seat.next = None;
                seat.goes_on = true;
            }
            seat
        });
        let lacks = || ExecError::machine(format!("cpu {}: it has no ring of records", cpu.cpu));
        let ring = self.boards.of_cpu(cpu.cpu).ok_or_else(lacks)?;
        let (machine, lent) = Machine::of_threads(self.file, self.companion, self.options.watch_all)?;
        let number = horolog_model::CpuId(cpu.cpu);
        let served = Served::new(self.system, number);
        let devices = Devices::new(self.file, self.companion, lent, number, &cpu.tasks, self.options.seed);
        let driver = Driver::new(
            machine,
            self.system,
            ProcessorIndex(place as u16),
            seats.collect(),
            ring,
            self.run.clone(),
            !self.options.best_effort,
        )
        .on(cpu.cpu)
        .with_servers(served)
        .with_devices(devices)
        .with_modes(InModes::new(self.system, &cpu.tasks, cpu.cpu));
        Ok(CpuAgent::new(cpu.cpu, driver, self.run.clone()))
    }

    /// Whether a server or scheduler above the task leaves the order where it has no budget, or gives its children windows, or a mode
    /// suspends its jobs.
    fn may_be_held(&self, id: TaskId) -> bool {
        let waits = |server| {
            let server = self.system.server(server);
            let has_windows = match server.order {
                Order::Table => true,
                Order::Fifo | Order::FixedPriority | Order::Edf => false,
            };
            server.kind.low_priority() == Some(LowPriority::None) || has_windows
        };
        let suspends = |mode| {
            let task = self.system.task_in(mode, id);
            !task.is_active && task.left_over == LeftOver::Suspend
        };
        self.system.schedulers_above(id).any(waits) || (0..self.system.mode_count()).any(suspends)
    }

    /// A task's thread: prepared, then waiting for the common start, then `jobs`, then the body's end.
    fn start_task(
        &self,
        threads: &mut Threads,
        id: TaskId,
        mut body: Box<dyn TaskBody>,
        mut jobs: impl FnMut(u64, &mut dyn TaskBody) + Send + 'static,
    ) -> Result<(), ExecError> {
        let task = threads.tasks[id.index()].clone();
        let (run, class) = (self.run.clone(), self.plan.classes[id.index()]);
        let (may_be_held, stages) = (self.may_be_held(id), self.boards.stages.clone());
        let (reservation, all) = (self.plan.reservations[id.index()], self.plan.all.clone());
        let init = match &self.system.task(id).body {
            Some(Body::Library { init, .. }) => init.clone(),
            _ => None,
        };
        run.alive.fetch_add(1, Ordering::AcqRel);
        threads.spawn((task.name.clone(), Some(id)), self.options, move || {
            let watch = crash::watch(task.crash.clone());
            task.tid.store(thread::id(), Ordering::Release);
            let _ = task.clock.set(ThreadClock::of_this_thread());
            let held = if may_be_held { Held::here(task.hold.clone()).map(Some) } else { Ok(None) };
            let whole = catch_unwind(AssertUnwindSafe(|| {
                let _held = held?;
                let made_ready = Boards::at_stage(&stages, task.id, MAKES_READY, || body.start());
                made_ready.map_err(|why| start_failed(&task.name, init.as_deref(), why))?;
                prepare_thread(&task.name, task.cpu, class)?;
                if let Some(reservation) = &reservation {
                    task.floats.store(true, Ordering::Relaxed);
                    set_affinity(0, &all)?;
                    set_deadline(0, reservation)?;
                }
                if let Some(start) = run.wait_for_start() {
                    let before = usage::of_this_thread();
                    let begun = clock::thread_cpu_ns();
                    jobs(start, body.as_mut());
                    task.is_idle.store(true, Ordering::Release);
                    let executed = clock::thread_cpu_ns().saturating_sub(begun);
                    task.executed.store(executed, Ordering::Release);
                    task.switches.store(switches_since(before), Ordering::Release);
                    let now = usage::of_this_thread();
                    let faults = |usage: Usage| usage.minor_faults + usage.major_faults;
                    task.tally().page_faults = faults(now) - faults(before);
                }
                // The end of the user's code is none of the schedule's business.
                let _ = set_class(0, Class::Normal);
                task.crash.enter_code();
                body.finish();
                task.crash.leave_code();
                task.tally().remarks = body.remarks();
                Ok(())
            }));
            task.has_ended.store(true, Ordering::Release);
            drop(watch);
            match whole {
                Ok(Ok(())) => {}
                Ok(Err(error)) => run.fail(ExecError::in_task(error, &task.name)),
                Err(panic) => run.end_early(panicked(&task, &run, panic.as_ref())),
            }
            task.ring.promise(u64::MAX);
            run.alive.fetch_sub(1, Ordering::AcqRel);
        })
    }
}

/// Why the program of a task did not start: what is wrong with the program itself at its place in the file.
fn not_started(task: &str, error: horolog_sys::Error) -> ExecError {
    if !error.is_bad_input() {
        return ExecError::from(error).in_task(task);
    }
    ExecError::at(
        format!("task.{task}.body.command"),
        format!("task {task}: {}", error.what()),
        error.remedy(),
    )
}

/// Why the code of a task did not make ready: where the file names a function for that, at its place.
fn start_failed(task: &str, init: Option<&str>, why: String) -> ExecError {
    let Some(init) = init else { return ExecError::bad_input(why) };
    let remedy =
        format!("let `{init}` return 0 where the task can start; what else it returned, its code explains");
    ExecError::at(format!("task.{task}.body.init"), format!("task {task}: {why}"), remedy)
}

/// The kernel's switches out of the calling thread since `before`.
fn switches_since(before: Usage) -> u64 {
    let now = usage::of_this_thread();
    now.voluntary_switches + now.involuntary_switches
        - before.voluntary_switches
        - before.involuntary_switches
}

fn panicked(task: &TaskShared, run: &RunShared, panic: &(dyn std::any::Any + Send)) -> Early {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    let what = What::Panicked { job: task.crash.piece(), text };
    Early { task: task.id.index(), at_ns: run.now().unwrap_or(0), what }
}

/// Pins, names and raises the calling thread.
fn prepare_thread(name: &str, cpu: u32, class: Class) -> Result<(), ExecError> {
    thread::set_name(name);
    set_affinity(0, &CpuSet::new([cpu]))?;
    if class == Class::Normal {
        clock::remove_timer_slack()?;
    }
    set_class(0, class)?;
    Ok(())
}

impl Threads {
    fn spawn(
        &mut self,
        (name, task): (String, Option<TaskId>),
        options: &RunOptions,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), ExecError> {
        let stack = Stack { locked: options.stack, must_lock: !options.best_effort };
        let what = format!("starting the thread of {name}");
        let thread =
            stack_thread::spawn(stack, body).map_err(|error| ExecError::from(error).within(&what))?;
        self.handles.push(Handle { name, task, thread });
        Ok(())
    }

    /// How many threads wait at the start barrier once all are ready.
    pub(crate) fn count(&self) -> u32 {
        self.handles.len() as u32
    }

    /// Waits for the threads to end, waking those that sleep; those that do not end in time are stopped and left behind.
    pub(crate) fn join(&mut self, run: &RunShared, options: &RunOptions) -> Vec<LeftBehind> {
        let limit = clock::monotonic_ns().saturating_add(options.grace.as_ns());
        while self.handles.iter().any(|handle| self.may_end(handle)) && clock::monotonic_ns() < limit {
            self.wake_all();
            let _ = clock::sleep_until(clock::monotonic_ns() + 1_000_000);
        }
        let mut left_behind = Vec::new();
        for Handle { name, task, thread } in self.handles.drain(..) {
            if !thread.is_finished() {
                if let Some(task) = task {
                    self.tasks[task.index()].stop_for_good();
                }
                left_behind.push(LeftBehind { name });
            } else if !thread.join() {
                run.fail(ExecError::crashed(format!("{name}: its thread panicked")));
            }
        }
        left_behind
    }

    /// Whether the thread still runs and has not crashed, after which it sleeps for ever.
    fn may_end(&self, handle: &Handle) -> bool {
        let crashed = handle.task.is_some_and(|task| self.tasks[task.index()].has_crashed());
        !handle.thread.is_finished() && !crashed
    }

    /// The first task whose code has crashed.
    pub(crate) fn crashed(&self) -> Option<usize> {
        self.tasks.iter().position(|task| task.has_crashed())
    }

    /// No job is released any more: agents look again, and so do threads that sleep to a release, where that is earlier than was planned.
    pub(crate) fn wake_for_last_jobs(&self, is_early: bool) {
        self.agents.iter().for_each(|agent| agent.kick());
        if !is_early {
            return;
        }
        for task in self.tasks.iter().filter(|task| task.clock.get().is_some() && !task.is_at_work()) {
            let _ = thread::interrupt(task.tid.load(Ordering::Acquire));
        }
    }

    fn wake_all(&self) {
        for agent in &self.agents {
            agent.kick();
        }
        for task in &self.tasks {
            hold::release(&task.hold);
            task.control.gate.store(1, Ordering::Release);
            let _ = futex::wake(&task.control.gate, 1);
            let tid = task.tid.load(Ordering::Acquire);
            if task.clock.get().is_some() {
                // A thread that has ended meanwhile is what we wait for.
                let _ = thread::interrupt(tid);
            }
        }
    }
}
