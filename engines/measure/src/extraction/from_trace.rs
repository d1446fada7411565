//! Extraction from recorded files: traces of horolog, perf.data, trace.dat.

use super::event::{Event, EventKind, Left, LockKind};
use super::from_kernel::waits_for;
use super::jobs::Job;
use super::proposal::{Observation, Options, Proposal, propose, propose_jobs};
use super::stretch::Observer;
use super::task::{Class, Description};
use crate::critical_sections::LockClass;
use horolog_model::{Policy, System};
use horolog_sys::waiting_call::WaitingCall;
use horolog_trace::file::Reader;
use horolog_trace::foreign::{self, Activity};
use horolog_trace::kernel_priority::Noted;
use horolog_trace::{Kind, LossCause, NO_TASK, Record, TraceError, kernel_priority};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};
use std::path::Path;

/// Reads a recorded file and proposes a system. `command` is how the user asked for it; `progress` hears of every so
/// many records.
///
/// In a trace of horolog that holds jobs, these are taken as they are; else jobs are made of the kernel's switches and
/// wake-ups. A foreign file should hold `sched:sched_switch`, `sched:sched_wakeup` and, for the sorts of sleep and
/// the exact arrivals, `raw_syscalls:sys_enter` and `timer:hrtimer_start`.
///
/// # Errors
/// Where the file cannot be read, is no trace, or holds neither jobs nor switches.
pub fn from_trace(
    path: &Path,
    command: &str,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<Proposal, TraceError> {
    let name =
        path.file_stem().map_or_else(|| "trace".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let observation = Observation {
        command: command.to_owned(),
        what: format!("the file {}", path.display()),
        ..Observation::default()
    };
    let mut head = [0; 8];
    let is_foreign = std::fs::File::open(path)
        .and_then(|mut file| file.read(&mut head))
        .is_ok_and(|count| foreign::is_foreign(&head[..count]));
    if is_foreign {
        return Ok(from_activity(&foreign::activity(path)?, &name, observation, options));
    }
    let mut reader = Reader::open(path)?;
    Ok(from_reader(&mut reader, &name, observation, options, progress))
}

/// Proposes a system from what a foreign file tells.
#[must_use]
pub fn from_activity(
    activity: &Activity,
    name: &str,
    mut observation: Observation,
    options: &Options,
) -> Proposal {
    let mut observer = Observer::default();
    let mut threads = Names::default();
    if activity.lost > 0 {
        observation
            .notes
            .push("The recorder does not say when it lost records; breaks show some.".to_owned());
    }
    for event in &activity.events {
        if let Some(kind) = of_foreign(event, &mut threads) {
            if let EventKind::Switch { prev, next, .. } = kind {
                observer.watch(prev);
                observer.watch(next);
            }
            observer.take(Event { time_ns: event.time, kind });
        }
    }
    observation.events = activity.events.len() as u64;
    let told = activity.events.iter().map(|event| match event.kind {
        foreign::EventKind::Lost { count } => count,
        _ => 0,
    });
    observation.lost = told.fold(activity.lost, u64::saturating_add);
    observation.notes.extend(activity.notes.iter().cloned());
    finish(name, &observer, (&threads.described(), &[]), observation, options)
}

fn finish(
    name: &str,
    observer: &Observer,
    (threads, locks): (&BTreeMap<u32, Description>, &[String]),
    mut observation: Observation,
    options: &Options,
) -> Proposal {
    observation.duration_ns = observer.seen_ns.map_or(0, |(first, last)| last - first);
    observation.broken = observation.broken.saturating_add(observer.broken);
    let describe = |tid: u32| threads.get(&tid).cloned().unwrap_or_else(|| unknown(tid, ""));
    let named = |lock: u64| usize::try_from(lock).ok().and_then(|lock| locks.get(lock)).cloned();
    let lock_name = |lock: u64| named(lock).unwrap_or_default();
    propose(name, observer, &describe, &lock_name, observation, options)
}

fn unknown(tid: u32, comm: &str) -> Description {
    Description {
        tid,
        comm: comm.to_owned(),
        process: None,
        class: Class::Unknown,
        class_changed: false,
        is_also_ordinary: false,
        allowed: None,
        files: BTreeMap::new(),
    }
}

fn of_foreign(event: &foreign::Event, threads: &mut Names) -> Option<EventKind> {
    Some(match &event.kind {
        foreign::EventKind::Switch { prev, prev_comm, prev_prio, prev_state, next, next_comm, next_prio } => {
            threads.note(*prev, prev_comm, *prev_prio);
            threads.note(*next, next_comm, *next_prio);
            let left = match prev_state {
                b'R' => Left::Runnable,
                b'X' | b'Z' => Left::Dead,
                letter => Left::Asleep(*letter),
            };
            let prev_is_deadline = prev_prio.is_some_and(|prio| prio < 0);
            EventKind::Switch { cpu: event.cpu, prev: *prev, left, next: *next, prev_is_deadline }
        }
        foreign::EventKind::Wakeup { thread, .. } => EventKind::Wakeup { tid: *thread },
        foreign::EventKind::Call { thread, number, .. } => {
            let call = WaitingCall::from_number(*number)?;
            EventKind::Call { tid: *thread, wait: waits_for(call, None) }
        }
        foreign::EventKind::Lost { .. } => EventKind::Lost { cpu: Some(event.cpu) },
        // Expiries on CLOCK_REALTIME cannot be placed in a file, and never match a wake-up.
        foreign::EventKind::Timer { thread, timer, expires, absolute } => {
            EventKind::Timer { tid: *thread, timer: *timer, expires_ns: *expires, absolute: *absolute }
        }
    })
}

/// What a foreign file tells of threads: their last names, and how often they had which kernel priority.
#[derive(Clone, Debug, Default)]
struct Names {
    threads: BTreeMap<u32, (String, Noted)>,
}

impl Names {
    fn note(&mut self, tid: u32, comm: &str, prio: Option<i32>) {
        let (name, priorities) = self.threads.entry(tid).or_default();
        if name != comm {
            comm.clone_into(name);
        }
        if let Some(prio) = prio {
            priorities.note(prio, usize::MAX);
        }
    }

    /// Each thread with its own priority.
    fn described(&self) -> BTreeMap<u32, Description> {
        let describe = |(tid, (comm, priorities)): (&u32, &(String, Noted))| {
            (*tid, with_priorities(unknown(*tid, comm), &priorities.seen()))
        };
        self.threads.iter().map(describe).collect()
    }
}

/// A thread with the class of its own priority.
fn with_priorities(thread: Description, priorities: &kernel_priority::Seen) -> Description {
    let class = match kernel_priority::own(priorities) {
        None => Class::Unknown,
        Some(..0) => Class::Deadline { runtime_ns: 0, deadline_ns: 0, period_ns: 0 },
        Some(prio @ 0..=98) => Class::RealTime { priority: (99 - prio) as u8 },
        Some(prio) => Class::Normal { nice: prio.saturating_sub(120) },
    };
    let (class_changed, is_also_ordinary) =
        (kernel_priority::is_changing(priorities), kernel_priority::is_also_ordinary(priorities));
    Description { class, class_changed, is_also_ordinary, ..thread }
}

/// Proposes a system from a trace of horolog.
pub fn from_reader<R: Read + Seek>(
    reader: &mut Reader<R>,
    name: &str,
    mut observation: Observation,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Proposal {
    let mut walk = Walk::default();
    while let Some(record) = reader.next_record() {
        observation.events += 1;
        if observation.events.is_multiple_of(65_536) {
            progress(observation.events);
        }
        if let Some(user) = reader.user_event(&record) {
            let tid = user.thread.map_or(0, |thread| thread.tid);
            if let Some((address, kind, held)) = lock_of(user.name(), user.words) {
                let lock = walk.lock(user.thread.and_then(|thread| thread.process), address);
                walk.event(record.time.as_ns(), EventKind::Lock { tid, lock, kind, held });
            } else if user.name() == "lock/acquire" {
                walk.event(record.time.as_ns(), EventKind::LockAsked { tid });
            } else if user.name() == "lock/refused" {
                let process = user.thread.and_then(|thread| thread.process);
                let was_late = user.words.get(3) == Some(&TIMED_OUT);
                let timed_out = user.words.first().filter(|_| was_late).map(|&lock| walk.lock(process, lock));
                walk.event(record.time.as_ns(), EventKind::LockRefused { tid, timed_out });
            }
            continue;
        }
        let tid_of = |id: u64| {
            let thread = usize::try_from(id).ok().and_then(|id| reader.threads().get(id));
            thread.map_or((0, false), |thread| (thread.tid, thread.task.is_some()))
        };
        walk.record(&record, &tid_of);
    }
    walk.flush();
    observation.lost = reader.lost();
    if let Some(damage) = reader.damage() {
        observation.notes.push(format!("The trace is damaged, and read up to there: {damage}."));
    }
    let header = reader.header();
    if header.tasks.is_empty() || walk.jobs.is_empty() {
        let threads = reader.threads();
        let traced = threads.iter().any(|thread| thread.process.is_some());
        let mut known: BTreeMap<u32, Description> = BTreeMap::new();
        for thread in threads.iter().filter(|thread| !traced || thread.process.is_some()) {
            let name_of = |process: u32| threads.iter().find(|other| other.tid == process);
            let process = thread.process.map(|process| {
                (process, name_of(process).map_or_else(String::new, |main| main.comm.clone()))
            });
            let description = Description { process, ..unknown(thread.tid, &thread.comm) };
            let priorities = reader.footer().and_then(|foot| foot.priorities.get(&thread.tid));
            let description = match priorities {
                Some(priorities) => with_priorities(description, priorities),
                None => description,
            };
            known.insert(thread.tid, description);
        }
        walk.observer.retain(|tid| known.contains_key(&tid));
        if traced {
            // The recorder started the program, or reached it while it ran: then one activation fewer counts.
            walk.observer.all_born();
        }
        return finish(name, &walk.observer, (&known, &walk.lock_names()), observation, options);
    }
    let system =
        horolog_model::file::read(&header.system, "the trace's head", &[]).ok().map(|(system, _)| system);
    let mut options = options.clone();
    if header.is_simulated() {
        // Virtual time is exact.
        options.resolution_ns = 1;
    }
    observation.duration_ns = header.horizon.as_ns().max(walk.last_ns);
    observation
        .notes
        .push(format!("Jobs, priorities and processors are those of the trace ({}).", header.backend));
    let threads = header
        .tasks
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let task = index as u32;
            let description = described(system.as_ref(), index, name, walk.tid_of_task.get(&task).copied());
            let jobs = walk.jobs.get(&task).map(|jobs| jobs.done.clone()).unwrap_or_default();
            (description, jobs, walk.on_cpu_ns.get(&task).cloned().unwrap_or_default())
        })
        .filter(|(description, ..)| options.threads.is_empty() || options.chooses(description))
        .collect();
    let system_name = system.as_ref().map_or(name, System::name).to_owned();
    propose_jobs(&system_name, threads, observation, &options)
}

fn described(system: Option<&System>, index: usize, name: &str, tid: Option<u32>) -> Description {
    let task = system.and_then(|system| system.tasks().get(index));
    let edf = system.is_some_and(|system| system.policy() == Policy::Edf);
    let deadline_ns = task.and_then(|task| task.deadline).map_or(0, |deadline| deadline.as_ns());
    let class = match (edf, task.and_then(|task| task.priority)) {
        (true, _) => Class::Edf { deadline_ns },
        (false, Some(priority)) => Class::Modelled { priority: priority.number(), deadline_ns },
        (false, None) => Class::Unknown,
    };
    let allowed = task.map(|task| vec![task.cpu.0]);
    Description { class, allowed, ..unknown(tid.unwrap_or(0), name) }
}

/// Taking or giving back a lock, from a user event.
fn lock_of(name: &str, words: &[u64]) -> Option<(u64, LockKind, bool)> {
    let held = match name {
        "lock/acquired" | "lock/woken" => true,
        "lock/release" | "lock/wait" => false,
        _ => return None,
    };
    let kind = match words.get(1).copied().unwrap_or(0) {
        class if class & 0xff != LockClass::Mutex as u64 => LockKind::Other,
        class if class & INHERITS != 0 => LockKind::Inheritance,
        class if class & HAS_CEILING != 0 => LockKind::Ceiling,
        _ => LockKind::Plain,
    };
    Some((*words.first()?, kind, held))
}

/// The error of a lock that was not to be had in time: `ETIMEDOUT`.
const TIMED_OUT: u64 = 110;

/// Flags of the class of a lock (`docs/concepts/critical-sections.md`).
const INHERITS: u64 = 0x400;
const HAS_CEILING: u64 = 0x800;

/// Jobs of one task.
#[derive(Clone, Debug, Default)]
struct Jobs {
    done: Vec<Job>,
    /// Released and not completed, by number.
    open: BTreeMap<u64, Job>,
}

/// What a walk through a trace of horolog gathers.
#[derive(Debug, Default)]
struct Walk {
    observer: Observer,
    jobs: BTreeMap<u32, Jobs>,
    tid_of_task: BTreeMap<u32, u32>,
    on_cpu_ns: BTreeMap<u32, BTreeMap<u32, u64>>,
    /// A switch whose next record may tell that the thread sleeps: time, processor, from, to, whether that is told.
    switch: Option<(u64, u32, u32, u32, bool)>,
    watched: BTreeSet<u32>,
    last_ns: u64,
    /// The number of each lock: an address of another process is another lock.
    locks: BTreeMap<(Option<u32>, u64), u64>,
}

impl Walk {
    fn event(&mut self, time_ns: u64, kind: EventKind) {
        self.observer.take(Event { time_ns, kind });
    }

    fn lock(&mut self, process: Option<u32>, address: u64) -> u64 {
        let next = self.locks.len() as u64;
        *self.locks.entry((process, address)).or_insert(next)
    }

    /// By the address, and the process where there are several.
    fn lock_names(&self) -> Vec<String> {
        let processes: BTreeSet<Option<u32>> = self.locks.keys().map(|(process, _)| *process).collect();
        let mut names = vec![String::new(); self.locks.len()];
        for ((process, address), number) in &self.locks {
            let Some(name) = usize::try_from(*number).ok().and_then(|number| names.get_mut(number)) else {
                continue;
            };
            *name = match process {
                Some(process) if processes.len() > 1 => format!("lock {address:#x} of process {process}"),
                _ => format!("lock {address:#x}"),
            };
        }
        names
    }

    fn watch(&mut self, tid: u32) {
        if self.watched.insert(tid) {
            self.observer.watch(tid);
        }
    }

    /// Hands a switch on that no record of sleep follows.
    fn flush(&mut self) {
        if let Some((time, cpu, prev, next, told)) = self.switch.take() {
            let left = if told { Left::Runnable } else { Left::Untold };
            self.event(time, EventKind::Switch { cpu, prev, left, next, prev_is_deadline: false });
        }
    }

    fn record(&mut self, record: &Record, tid_of: &dyn Fn(u64) -> (u32, bool)) {
        let (time, cpu) = (record.time.as_ns(), u32::from(record.cpu));
        self.last_ns = self.last_ns.max(time);
        if record.kind == Kind::KernelBlock {
            let of_it =
                self.switch.take_if(|(_, on, prev, _, _)| (*on, *prev) == (cpu, tid_of(record.value).0));
            if let Some((time, cpu, prev, next, _)) = of_it {
                let left = Left::Asleep(record.extra as u8);
                self.event(time, EventKind::Switch { cpu, prev, left, next, prev_is_deadline: false });
            }
            return;
        }
        self.flush();
        match record.kind {
            Kind::KernelSwitch => {
                let ((prev, told), (next, _)) = (tid_of(record.value), tid_of(record.extra));
                self.watch(prev);
                self.watch(next);
                if record.task != NO_TASK {
                    self.tid_of_task.insert(record.task, next);
                }
                self.switch = Some((time, cpu, prev, next, told));
            }
            Kind::KernelWakeup => {
                let (tid, _) = tid_of(record.value);
                self.event(time, EventKind::Wakeup { tid });
            }
            Kind::Lost if record.extra == LossCause::HiddenSwitch as u64 => {
                self.event(time, EventKind::Lost { cpu: Some(cpu) });
            }
            Kind::Lost if record.extra == LossCause::Kernel as u64 => {
                self.event(time, EventKind::Lost { cpu: None })
            }
            _ if record.task != NO_TASK => self.job(record),
            _ => {}
        }
    }

    /// A record of a task's job.
    fn job(&mut self, record: &Record) {
        let (time, cpu) = (record.time.as_ns(), u32::from(record.cpu));
        let jobs = self.jobs.entry(record.task).or_default();
        match record.kind {
            Kind::Release => {
                let job = Job {
                    ready_ns: time,
                    seen: true,
                    nominal_ns: Some(record.value),
                    ended_ns: time,
                    executed_ns: 0,
                    suspensions: 0,
                    suspended_max_ns: 0,
                    suspended_ns: 0,
                    unclassified: 0,
                    unclassified_ns: 0,
                    preemptions: 0,
                    cpu,
                    doubt: None,
                };
                jobs.open.insert(record.job, job);
            }
            Kind::Preempt => {
                if let Some(job) = jobs.open.get_mut(&record.job) {
                    job.preemptions += 1;
                }
            }
            Kind::Completion => {
                if let Some(mut job) = jobs.open.remove(&record.job) {
                    job.ended_ns = time;
                    job.executed_ns = record.value;
                    job.cpu = cpu;
                    let on_cpu = self.on_cpu_ns.entry(record.task).or_default().entry(cpu).or_default();
                    *on_cpu = on_cpu.saturating_add(record.value);
                    jobs.done.push(job);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_held_between_their_events() {
        assert_eq!(lock_of("lock/acquired", &[7, 1]), Some((7, LockKind::Other, true)));
        assert_eq!(lock_of("lock/acquired", &[7, 0x300]), Some((7, LockKind::Plain, true)));
        assert_eq!(lock_of("lock/acquired", &[7, 0x500]), Some((7, LockKind::Inheritance, true)));
        assert_eq!(lock_of("lock/acquired", &[7, 0x800]), Some((7, LockKind::Ceiling, true)));
        assert_eq!(lock_of("lock/wait", &[7]), Some((7, LockKind::Plain, false)));
        assert_eq!(lock_of("lock/acquire", &[7]), None);
        assert_eq!(lock_of("lock/release", &[]), None);
    }

    #[test]
    fn calls_and_priorities_of_a_foreign_file_are_understood() {
        let mut threads = Names::default();
        let call = |number| foreign::Event {
            time: 5,
            cpu: 0,
            kind: foreign::EventKind::Call { thread: 7, number, argument: 3 },
        };
        let sleeps = WaitingCall::ClockNanosleep;
        let number = (0..1_000).find(|number| WaitingCall::from_number(*number) == Some(sleeps));
        let kind = of_foreign(&call(number.expect("every architecture sleeps")), &mut threads);
        assert_eq!(kind, Some(EventKind::Call { tid: 7, wait: super::super::WaitKind::SleepUntil }));
        assert_eq!(of_foreign(&call(-1), &mut threads), None);
        for prio in [120, 9, 9, 9, 120] {
            threads.note(9, "worm", Some(prio));
        }
        threads.note(8, "one", Some(-1));
        threads.note(7, "none", None);
        let described = threads.described();
        assert_eq!(described[&9].class, Class::RealTime { priority: 90 });
        assert!(matches!(described[&8].class, Class::Deadline { .. }));
        assert_eq!((described[&7].class, described[&7].class_changed), (Class::Unknown, false));
    }
}
