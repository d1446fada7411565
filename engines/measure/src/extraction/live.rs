//! Recording a running program.

use super::event::{Event, EventKind};
use super::from_kernel::{FromKernel, Seen};
use super::proposal::{Observation, Options, Proposal, propose};
use super::stretch::Observer;
use super::task::{Class, Description};
use crate::preload::{find_program, no_such_program};
use horolog_sys::Error;
use horolog_sys::clock::{monotonic_ns, realtime_ns};
use horolog_sys::cpu_list::{online_cpus, parse_cpu_list};
use horolog_sys::guardian::spawn;
use horolog_sys::kernel_trace::{self, KernelEvent, KernelEventKind, Recorder, RecorderOptions};
use horolog_sys::machine::{read, tick_hz};
use horolog_sys::thread_facts::{self, Scheduling, ThreadFacts};
use horolog_time::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// What to observe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A process, its threads, and what it has started and starts.
    Process(u32),
    /// A process group, and what it starts.
    Group(u32),
    /// A command that is started for it.
    Command(Vec<String>),
}

/// How to observe.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// What.
    pub target: Target,
    /// For how long; `None`: until the target ends.
    pub duration: Option<Span>,
    /// How the user asked for it.
    pub command: String,
    /// Bytes of the kernel's ring on each processor; `None`: 8 MiB.
    pub buffer: Option<u64>,
    /// How values are made of observations.
    pub values: Options,
}

/// How often the record is taken in and the threads are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// Observes, and proposes a system. `progress` hears the time that has passed.
///
/// # Errors
/// Where there is no such process, the kernel may not be recorded (with the remedy), or the command does not start.
pub fn extract(
    options: &LiveOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Span),
) -> Result<Proposal, Error> {
    let mut watch = Watch::new();
    // A wrong number is told before a second is spent on the record.
    let starter = watch.begin(&options.target)?;
    let mut recording = RecorderOptions::new(online_cpus()?);
    recording.activity = true;
    recording.give(options.buffer);
    recording.follow = match &starter {
        Some(starter) => vec![starter.tid],
        None => watch.observer.threads().map(|thread| thread.tid).collect(),
    };
    let recorder = Recorder::start(&recording)?;
    if recorder.choice().unseen.iter().any(|unseen| unseen.contains("local timer")) {
        watch.conversion.ignore_ticks();
    }
    let began = monotonic_ns();
    let mut child = starter.map(|starter| starter.start(&mut watch)).transpose()?;
    let limit = options.duration.map_or(u64::MAX, |span| began.saturating_add(span.as_ns()));
    let mut gone = false;
    while monotonic_ns() < limit && !stop.load(Ordering::Relaxed) && !gone {
        std::thread::sleep(LOOK_EVERY);
        watch.take(&recorder.drain());
        watch.look();
        gone = match &mut child {
            Some(child) => !matches!(child.0.try_wait(), Ok(None)),
            None => watch.all_gone(),
        };
        progress(Span::from_ns(monotonic_ns().saturating_sub(began)));
    }
    let duration_ns = monotonic_ns().saturating_sub(began);
    watch.look();
    let recording = recorder.stop()?;
    drop(child);
    watch.take(&recording.events);
    let losses = recording.losses;
    let mut notes = Vec::new();
    if losses.kernel.saturating_add(losses.memory) > 0 {
        notes.push("Records were lost: give the kernel more memory (`--buffer 64M`).".to_owned());
    }
    notes.extend(watch.notes(&recording.choice));
    if gone && options.duration.is_some() {
        notes.push("The target ended before the time was over.".to_owned());
    }
    let observation = Observation {
        command: options.command.clone(),
        what: watch.what.clone(),
        duration_ns,
        events: watch.events,
        lost: losses.kernel.saturating_add(losses.memory),
        broken: losses.missed_switches.saturating_add(watch.observer.broken),
        stolen_ns: watch.observer.stolen.iter().map(|stolen| stolen.stolen_ns).sum(),
        notes,
    };
    let lock_name = |lock: u64| format!("lock {lock:#x}");
    let name = watch.name.clone();
    Ok(propose(&name, &watch.observer, &|tid| watch.describe(tid), &lock_name, observation, &options.values))
}

/// A thread that starts a command when it is told to. The record follows it, and so all that the command does.
#[derive(Debug)]
struct Starter {
    tid: u32,
    go: mpsc::Sender<()>,
    thread: JoinHandle<Result<Child, Error>>,
}

impl Starter {
    fn prepare(words: &[String]) -> Result<Starter, Error> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(Error::bad_input("command", "it is empty", "give a program and its arguments"));
        };
        if find_program(program).is_none() {
            return Err(no_such_program(program));
        }
        let mut command = Command::new(program);
        // Its output does not mix with the result.
        command.args(arguments).stdout(Stdio::from(std::io::stderr()));
        let program = program.clone();
        let (go, wait) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("horolog-start".to_owned())
            .spawn(move || {
                // Nobody listens only where nobody will say go.
                let _ = tell.send(horolog_sys::thread::id());
                let refuse =
                    |why: String| Error::bad_input(format!("starting `{program}`"), why, "check the path");
                wait.recv().map_err(|_| refuse("the record did not start".to_owned()))?;
                // What it starts ends with it: the file speaks of a program that has ended.
                spawn(&mut command).map(|(child, _)| child).map_err(|error| refuse(error.to_string()))
            })
            .map_err(|error| Error::io("clone(starter of the command)", &error, "raise `ulimit -u`"))?;
        let tid = told.recv().map_err(|_| Error::unexpected("starter of the command", "it ended", ""))?;
        Ok(Starter { tid, go, thread })
    }

    fn start(self, watch: &mut Watch) -> Result<Started, Error> {
        // A thread that is gone gives its reason below.
        let _ = self.go.send(());
        let child = self
            .thread
            .join()
            .map_err(|_| Error::unexpected("starter of the command", "it panicked", ""))??;
        watch.observer.watch_born(child.id());
        Ok(Started(child))
    }
}

/// A started command; it is ended with the observation.
#[derive(Debug)]
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            horolog_sys::process::terminate(self.0.id());
            for _ in 0..100 {
                if !matches!(self.0.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// The observation under way.
struct Watch {
    observer: Observer,
    conversion: FromKernel,
    /// The facts of each thread, one a scheduling that it had.
    facts: BTreeMap<u32, Vec<ThreadFacts>>,
    /// What each thread's `epoll` files wait for: the most of each sort that was seen at one time.
    files: BTreeMap<u32, BTreeMap<&'static str, usize>>,
    what: String,
    name: String,
    events: u64,
}

impl Watch {
    fn new() -> Watch {
        // Read between two readings of the other clock, so that the offset is good to a microsecond.
        let before = monotonic_ns();
        let real = realtime_ns();
        let middle = before + (monotonic_ns() - before) / 2;
        Watch {
            observer: Observer::default(),
            conversion: FromKernel::new(real.saturating_sub(middle), tick_ns()),
            facts: BTreeMap::new(),
            files: BTreeMap::new(),
            what: String::new(),
            name: String::new(),
            events: 0,
        }
    }

    /// Finds the first threads, or prepares to start the command.
    fn begin(&mut self, target: &Target) -> Result<Option<Starter>, Error> {
        match target {
            Target::Process(process) => {
                // Asked first, since its refusal says that there is no such process.
                thread_facts::of_process(*process)?;
                let comm = thread_facts::of_thread(*process)?.comm;
                self.what = format!("process {process} `{}` and what it starts", comm.escape_debug());
                self.name = comm;
                for process in thread_facts::descendants(*process) {
                    self.watch_process(process);
                }
            }
            Target::Group(group) => {
                let members: Vec<u32> = thread_facts::all_processes()
                    .into_iter()
                    .filter(|entry| entry.group == *group)
                    .map(|entry| entry.process)
                    .collect();
                if members.is_empty() {
                    return Err(Error::bad_input(
                        format!("process group {group}"),
                        "no process is in it",
                        "`ps -o pgid,pid,comm` lists groups",
                    ));
                }
                self.what = format!("process group {group} and what it starts");
                self.name = format!("process group {group}");
                members.into_iter().for_each(|process| self.watch_process(process));
            }
            Target::Command(words) => {
                self.what = format!("`{}` and what it starts", words.join(" "));
                let program = words.first().map_or("", String::as_str);
                program.rsplit('/').next().unwrap_or(program).clone_into(&mut self.name);
                return Starter::prepare(words).map(Some);
            }
        }
        Ok(None)
    }

    fn watch_process(&mut self, process: u32) {
        for tid in thread_facts::of_process(process).unwrap_or_default() {
            self.observer.watch(tid);
        }
    }

    fn take(&mut self, events: &[KernelEvent]) {
        for event in events {
            self.events += 1;
            if let KernelEventKind::Fork { parent, child, .. } = event.kind
                && self.observer.watches(parent)
            {
                self.observer.watch_born(child);
            }
            let observer = &mut self.observer;
            let watched =
                matches!(event.kind, KernelEventKind::Switch { next, .. } if observer.watches(next.tid));
            self.conversion.convert(event, watched, &thread_facts::file_kind, &mut |event: Event| {
                if !matches!(event.kind, EventKind::Call { tid, .. } if !observer.watches(tid)) {
                    observer.take(event);
                }
            });
        }
    }

    /// Asks the kernel for each thread's class and processors; those that have ended keep what was known.
    fn look(&mut self) {
        let processes: BTreeSet<u32> = self.facts.values().flatten().map(|facts| facts.process).collect();
        processes.into_iter().for_each(|process| self.watch_process(process));
        let tids: Vec<u32> =
            self.observer.threads().filter(|thread| !thread.ended).map(|thread| thread.tid).collect();
        for tid in tids {
            let Ok(facts) = thread_facts::of_thread(tid) else { continue };
            let known = self.facts.entry(tid).or_default();
            match known.iter_mut().find(|known| known.scheduling == facts.scheduling) {
                Some(known) => *known = facts,
                None => known.push(facts),
            }
        }
        for (tid, file) in self.conversion.epoll_files() {
            let seen = self.files.entry(tid).or_default();
            for (kind, count) in thread_facts::watched_files(tid, file) {
                let most = seen.entry(kind.name()).or_default();
                *most = count.max(*most);
            }
        }
    }

    /// The name of a process: that of its first thread.
    fn name_of(&self, process: u32) -> String {
        let known = self.facts.get(&process).and_then(|facts| facts.last());
        known.map_or_else(String::new, |facts| facts.comm.clone())
    }

    fn all_gone(&self) -> bool {
        self.observer.threads().all(|thread| thread.ended || thread_facts::of_thread(thread.tid).is_err())
    }

    fn describe(&self, tid: u32) -> Description {
        let seen = self.conversion.seen(tid);
        let known = self.facts.get(&tid).map_or(&[][..], Vec::as_slice);
        let own = seen.map(Seen::own);
        // The scheduling with the priority that the switches show; where none was asked for in time, what they tell alone.
        let facts = known
            .iter()
            .find(|facts| own.is_some_and(|own| kernel_priority(facts.scheduling) == Some(own.prio)))
            .or(if own.is_none() { known.last() } else { None });
        let class = match (facts, own.map(|own| (own.class(), own.prio))) {
            (Some(facts), _) => class_of(facts.scheduling),
            (None, None) => Class::Unknown,
            (None, Some((kernel_trace::Class::Deadline, _))) => {
                Class::Deadline { runtime_ns: 0, deadline_ns: 0, period_ns: 0 }
            }
            (None, Some((kernel_trace::Class::RealTime(priority), _))) => Class::RealTime { priority },
            (None, Some((_, prio))) => Class::Normal { nice: prio - 120 },
        };
        let comm = seen.map(|seen| seen.thread.comm.to_text());
        Description {
            tid,
            comm: comm.or_else(|| known.last().map(|facts| facts.comm.clone())).unwrap_or_default(),
            class,
            class_changed: seen.is_some_and(Seen::is_changing),
            is_also_ordinary: seen.is_some_and(Seen::is_also_ordinary),
            allowed: facts.or(known.last()).map(|facts| facts.allowed.clone()),
            process: known.last().map(|facts| (facts.process, self.name_of(facts.process))),
            files: self.files.get(&tid).cloned().unwrap_or_default(),
        }
    }

    fn notes(&self, choice: &kernel_trace::Choice) -> Vec<String> {
        let mut notes = vec![format!("Recorded: {}.", choice.reason)];
        for name in ["sys_enter", "hrtimer_start"] {
            if let Some(why) = choice.unseen.iter().find(|unseen| unseen.contains(name)) {
                notes.push(format!("Not seen: {why}; which sleeps end jobs is less certain."));
            }
        }
        notes
    }
}

/// The kernel's number for the priority of a scheduling, where it has one.
fn kernel_priority(scheduling: Scheduling) -> Option<i32> {
    match scheduling {
        Scheduling::Fifo(priority) | Scheduling::RoundRobin(priority) => Some(99 - i32::from(priority)),
        Scheduling::Deadline(_) => Some(-1),
        Scheduling::Normal(nice) => Some(120 + nice),
        Scheduling::Idle => Some(120),
        Scheduling::Other(_) => None,
    }
}

fn class_of(scheduling: Scheduling) -> Class {
    match scheduling {
        Scheduling::Fifo(priority) => Class::Fifo { priority },
        Scheduling::RoundRobin(priority) => Class::RoundRobin { priority },
        Scheduling::Deadline(reservation) => Class::Deadline {
            runtime_ns: reservation.runtime.as_ns(),
            deadline_ns: reservation.deadline.as_ns(),
            period_ns: reservation.period.as_ns(),
        },
        Scheduling::Normal(nice) => Class::Normal { nice },
        Scheduling::Idle => Class::Normal { nice: 20 },
        Scheduling::Other(_) => Class::Unknown,
    }
}

/// The tick's period where every busy processor ticks.
fn tick_ns() -> Option<u64> {
    let tickless = read("/sys/devices/system/cpu/nohz_full").ok().and_then(|text| parse_cpu_list(&text));
    let all_tick = tickless.is_none_or(|cpus| cpus.is_empty());
    let hz = tick_hz().filter(|hz| *hz > 0)?;
    all_tick.then(|| 1_000_000_000 / hz)
}
