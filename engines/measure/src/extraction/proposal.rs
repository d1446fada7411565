//! A proposed system: the tasks of all threads, and what of each stands in the file.

use super::arrivals;
use super::event::{LockKind, WaitKind};
use super::jobs::Job;
use super::load;
use super::pattern::{Pattern, Reading, arrivals_of};
use super::resources::{self, Locks, Other};
use super::stretch::{Observer, Thread};
use super::task::{self, Class, Description, LockUse, TaskProposal};
use horolog_probe::matches;
use horolog_time::Span;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How values are made of observations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Added to the greatest execution seen, in thousandths of it.
    pub margin_permille: u64,
    /// Threads of ordinary classes become tasks too.
    pub all: bool,
    /// Only these threads, of whatever class; empty: all.
    pub threads: Vec<Chosen>,
    /// Whether sleeps within a job count as execution in the wcet (suspension-oblivious, safe for every test here).
    pub count_suspensions: bool,
    /// The few longest jobs are counted as the machine's: at most 1 % of a hundred or more, longer than twice the 99th
    /// percentile and 100 us.
    pub drop_outliers: bool,
    /// Times are widened to multiples of this, ns: what is measured is not good to a nanosecond.
    pub resolution_ns: u64,
}

/// Which threads are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// The thread of this number.
    Thread(u32),
    /// Threads whose name fits this pattern (`*`, `?`).
    Named(String),
    /// The threads of this process.
    Process(u32),
    /// The threads of processes whose name, that of the first thread, fits this pattern.
    ProcessNamed(String),
}

impl Options {
    /// Whether a thread is asked for by number, name or process.
    #[must_use]
    pub fn chooses(&self, thread: &Description) -> bool {
        let process = thread.process.as_ref();
        self.threads.iter().any(|chosen| match chosen {
            Chosen::Thread(tid) => *tid == thread.tid,
            Chosen::Named(pattern) => matches(pattern, &thread.comm),
            Chosen::Process(wanted) => process.map_or(thread.tid, |(process, _)| *process) == *wanted,
            Chosen::ProcessNamed(pattern) => process.is_some_and(|(_, name)| matches(pattern, name)),
        })
    }

    /// An execution with the margin, rounded up.
    pub(super) fn with_margin(&self, ns: u64) -> u64 {
        let extra = (u128::from(ns) * u128::from(self.margin_permille)).div_ceil(1_000);
        let with = ns.saturating_add(u64::try_from(extra).unwrap_or(u64::MAX));
        let unit = self.resolution_ns.max(1);
        with.div_ceil(unit).saturating_mul(unit).max(1)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            margin_permille: 0,
            all: false,
            threads: Vec::new(),
            count_suspensions: true,
            drop_outliers: false,
            resolution_ns: 1_000,
        }
    }
}

/// What was observed, in words.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Observation {
    /// The command that observed.
    pub command: String,
    /// What was observed: a process, a file.
    pub what: String,
    /// For how long, ns.
    pub duration_ns: u64,
    /// Events of the record.
    pub events: u64,
    /// Records lost in buffers.
    pub lost: u64,
    /// Breaks of the chain of switches: who leaves a processor is not who came.
    pub broken: u64,
    /// Time that the host took from the processors, ns.
    pub stolen_ns: u64,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// A thread that did not become a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Background {
    /// Its id.
    pub tid: u32,
    /// Its short name.
    pub comm: String,
    /// Its class, in words.
    pub class: String,
    /// Why it is no task.
    pub why: String,
    /// Its sleeps that ended.
    pub activations: u64,
    /// What it executed, ns.
    pub executed_ns: u64,
    /// The processor that it had longest.
    pub cpu: Option<u32>,
    /// Its priority among those of the tasks, where it is a real-time thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
}

/// When jobs arrive, as a system file says it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// `period`.
    Period(u64),
    /// `separation`.
    Separation(u64),
    /// `separation` with a `jitter` that contains bursts.
    Envelope {
        /// The mean distance.
        separation: u64,
        /// The greatest lead over it.
        jitter: u64,
    },
    /// `separation` and `jitter` of portions of execution, each as long as the wcet, in place of jobs.
    Portions {
        /// The mean distance.
        separation: u64,
        /// The greatest lead over it.
        jitter: u64,
    },
    /// `arrivals`, since the record's beginning.
    Instants(Vec<u64>),
}

/// The values of one task in the system file, ns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Values {
    /// When jobs arrive.
    pub arrival: Arrival,
    /// Relative deadline, where it differs from the default.
    pub deadline: Option<u64>,
    /// Greatest demand seen, with the margin.
    pub wcet: u64,
    /// Least execution seen.
    pub bcet: u64,
    /// Release jitter.
    pub jitter: u64,
    /// `None` under EDF, or where the record tells no priorities.
    pub priority: Option<i64>,
    /// The processor.
    pub cpu: u32,
    /// What a run spins.
    pub spin: u64,
    /// Whether sleeps within jobs count as execution in the wcet.
    pub suspensions_counted: bool,
}

/// A proposed system.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Its name.
    pub name: String,
    /// What was observed.
    pub observation: Observation,
    /// How values were made.
    pub options: Options,
    /// `fixed-priority` or `edf`.
    pub policy: &'static str,
    /// Whether the record told priorities; else deadline-monotonic ones are proposed.
    pub priorities_known: bool,
    /// The tasks, the most important first, each with its values.
    pub tasks: Vec<(TaskProposal, Values)>,
    /// Threads that are no tasks.
    pub background: Vec<Background>,
    /// Locks that several threads share.
    pub locks: Locks,
}

impl Proposal {
    /// What the system does, or may do, and the proposed file does not say, a sentence each.
    #[must_use]
    pub fn unmodelled(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.policy == "fixed-priority" && !self.priorities_known {
            found.push(
                "the record tells no priorities, so that `deadline-monotonic` is a guess: give each task its `priority`, or take this line out \
                 where the guess is right"
                    .to_owned(),
            );
        }
        found.extend(self.unlike_fixed_priorities());
        let has_locks = self.tasks.iter().any(|(task, _)| !task.locks.is_empty());
        for (task, _) in self.tasks.iter().filter(|_| !has_locks) {
            let sleeps = task.other_sleeps.iter().filter(|(kind, _)| kind.wait == WaitKind::Futex);
            let count: u64 = sleeps.map(|(_, count)| count).sum();
            if count == 0 {
                continue;
            }
            found.push(format!(
                "`{}` slept on futexes within its jobs ({count} times), as for a mutex, and the record has no locks: \
                 `horolog trace record --locks --kernel`, then `horolog measure extract --from`",
                task.name
            ));
        }
        for left_out in &self.locks.left_out {
            let users = left_out.tasks.iter().chain(&left_out.others);
            let users: Vec<&str> = users.map(|user| &**user).collect();
            found.push(format!("{} is shared by {}: {}", left_out.lock, users.join(", "), left_out.why));
        }
        found
    }

    /// Tasks whose threads the kernel does not serve as the file's fixed priorities say.
    fn unlike_fixed_priorities(&self) -> Vec<String> {
        if self.policy != "fixed-priority" || !self.priorities_known {
            return Vec::new();
        }
        let names = |is_it: &dyn Fn(usize, Class) -> bool| {
            let tasks = self.tasks.iter().enumerate();
            let found = tasks.filter(|(place, (task, _))| is_it(*place, task.thread.class));
            found.map(|(_, (task, _))| format!("`{}`", task.name)).collect::<Vec<_>>().join(", ")
        };
        let has_equal = |place: usize| {
            let values = &self.tasks[place].1;
            let mut others = self.tasks.iter().enumerate().filter(|(other, _)| *other != place);
            others.any(|(_, (_, other))| (other.cpu, other.priority) == (values.cpu, values.priority))
        };
        let ordinary = names(&|_, class| matches!(class, Class::Normal { .. }));
        let in_slices = names(&|place, class| matches!(class, Class::RoundRobin { .. }) && has_equal(place));
        let may_be_slices =
            names(&|place, class| matches!(class, Class::RealTime { .. }) && has_equal(place));
        let changing = names(&|place, _| {
            let task = &self.tasks[place].0;
            let lends = |lock: &LockUse| matches!(lock.kind, LockKind::Inheritance | LockKind::Ceiling);
            // Inheritance lends real-time priorities, and takes none away.
            task.thread.is_also_ordinary || task.thread.class_changed && !task.locks.iter().any(lends)
        });
        let least = self.tasks.iter().filter_map(|(_, values)| values.priority).min();
        let others = self.background.iter().filter(|one| one.executed_ns > 0 && one.priority >= least);
        let others: Vec<String> = others
            .filter(|one| one.priority.is_some())
            .map(|one| format!("thread {} `{}` ({})", one.tid, one.comm, one.class))
            .collect();
        let unknown = names(&|_, class| class == Class::Unknown);
        [
            (ordinary, "ordinary threads, among which and beside all others of the machine the kernel shares time: give them real-time priorities, here and in the program"),
            (in_slices, "SCHED_RR with equals, which take turns by time slices: use SCHED_FIFO in the program, or another priority for each"),
            (may_be_slices, "the record does not tell SCHED_FIFO from SCHED_RR, under which equals take turns by time slices: have SCHED_FIFO, or another priority for each"),
            (changing, "priority or class changed meanwhile, and the lowest real-time one stands here: look at what the program does"),
            (others.join(", "), "real-time, executed beside the tasks, and is none of them: model it, or have it below them"),
            (unknown, "the record does not tell the priority: give it here"),
        ]
        .into_iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, why)| format!("{names}: {why}, and take this line out"))
        .collect()
    }
}

/// Proposes a system for the threads that an observer followed.
#[must_use]
pub fn propose(
    name: &str,
    observer: &Observer,
    describe: &dyn Fn(u32) -> Description,
    lock_name: &dyn Fn(u64) -> String,
    observation: Observation,
    options: &Options,
) -> Proposal {
    let mut tasks = Vec::new();
    let mut background = Vec::new();
    let mut others = Vec::new();
    for thread in observer.threads() {
        let description = describe(thread.tid);
        let chosen = options.chooses(&description);
        let wanted = options.threads.is_empty() || chosen;
        let modelled = description.class.is_real_time() || options.all || chosen;
        let kept = description.clone();
        let refused = match (wanted, modelled) {
            (false, _) => Err("not asked for".to_owned()),
            (_, false) => Err("an ordinary class has no place in a priority or deadline order; `--all` or \
                               `--thread` models it all the same"
                .to_owned()),
            _ => task::propose(description, thread, observer, lock_name, options.drop_outliers),
        };
        match refused {
            Ok(task) => tasks.push(task),
            Err(why) => {
                let name = format!("{} ({})", kept.comm, kept.tid);
                others.push(Other { name, locks: task::locks(&thread.sections, lock_name) });
                background.push(background_of(&kept, thread, why));
            }
        }
    }
    assemble(name, tasks, (background, &others), observation, options)
}

/// Proposes a system for tasks whose jobs a trace tells: description, jobs, time on each processor.
#[must_use]
pub fn propose_jobs(
    name: &str,
    threads: Vec<(Description, Vec<Job>, BTreeMap<u32, u64>)>,
    observation: Observation,
    options: &Options,
) -> Proposal {
    let mut tasks = Vec::new();
    let mut background = Vec::new();
    for (description, jobs, on_cpu_ns) in threads {
        let kept = description.clone();
        let activations = jobs.len() as u64;
        let executed_ns = jobs.iter().map(|job| job.executed_ns).sum();
        let cpus = task::shares(&on_cpu_ns);
        let reading: Reading = super::pattern::of_jobs(jobs);
        match task::of_reading(description, reading, cpus, Vec::new(), &[], false) {
            Ok(task) => tasks.push(task),
            Err(why) => background.push(Background {
                tid: kept.tid,
                comm: kept.comm,
                class: kept.class.describe(),
                why,
                activations,
                executed_ns,
                cpu: on_cpu_ns.keys().next().copied(),
                priority: real_time_priority(kept.class),
            }),
        }
    }
    assemble(name, tasks, (background, &[]), observation, options)
}

fn background_of(description: &Description, thread: &Thread, why: String) -> Background {
    Background {
        tid: thread.tid,
        comm: description.comm.clone(),
        class: description.class.describe(),
        why,
        activations: thread.stretches.len() as u64,
        executed_ns: thread.executed_ns(),
        cpu: thread.main_cpu(),
        priority: real_time_priority(description.class),
    }
}

fn assemble(
    name: &str,
    tasks: Vec<TaskProposal>,
    (background, others): (Vec<Background>, &[Other]),
    observation: Observation,
    options: &Options,
) -> Proposal {
    let edf = !tasks.is_empty()
        && tasks.iter().all(|task| matches!(task.thread.class, Class::Deadline { .. } | Class::Edf { .. }));
    let priorities_known = tasks.iter().any(|task| task.thread.class != Class::Unknown);
    let mut ordered: Vec<TaskProposal> = tasks;
    // The most important first; among equals by id, so that numbered names follow the threads' order.
    ordered.sort_by_key(|task| (std::cmp::Reverse(importance(task)), task.thread.tid));
    name_uniquely(&mut ordered);
    let mut deadlines: Vec<u64> =
        ordered.iter().filter_map(|task| reserved_deadline(task.thread.class)).collect();
    deadlines.sort_unstable();
    deadlines.dedup();
    let tasks = ordered
        .into_iter()
        .map(|task| {
            let priority = (!edf && priorities_known).then(|| priority(&task, &deadlines));
            let values = values(&task, priority, edf || !priorities_known, options);
            (task, values)
        })
        .collect::<Vec<_>>();
    let mut tasks = tasks;
    load::fit(&mut tasks, options, observation.duration_ns);
    let locks = resources::shared(&tasks, others, edf, options);
    Proposal {
        name: sanitized(name),
        observation,
        options: options.clone(),
        policy: if edf { "edf" } else { "fixed-priority" },
        priorities_known,
        tasks,
        background,
        locks,
    }
}

fn reserved_deadline(class: Class) -> Option<u64> {
    match class {
        Class::Deadline { deadline_ns, .. } => Some(deadline_ns),
        _ => None,
    }
}

/// Beside fixed priorities the kernel serves SCHED_DEADLINE first, the shorter deadline as a rule earlier.
fn priority(task: &TaskProposal, deadlines: &[u64]) -> i64 {
    match reserved_deadline(task.thread.class) {
        Some(deadline) => {
            let later = deadlines.iter().filter(|other| **other > deadline).count();
            100 + later as i64
        }
        None => importance(task),
    }
}

fn importance(task: &TaskProposal) -> i64 {
    importance_of(task.thread.class)
}

/// That of a thread which the kernel serves before all ordinary ones.
fn real_time_priority(class: Class) -> Option<i64> {
    let is_real_time = !matches!(class, Class::Normal { .. } | Class::Unknown | Class::Modelled { .. });
    is_real_time.then(|| importance_of(class))
}

fn importance_of(class: Class) -> i64 {
    match class {
        Class::Fifo { priority } | Class::RoundRobin { priority } | Class::RealTime { priority } => {
            i64::from(priority)
        }
        Class::Deadline { .. } | Class::Edf { .. } => 100,
        Class::Modelled { priority, .. } => priority,
        Class::Normal { .. } | Class::Unknown => 0,
    }
}

/// Names from the threads' own, numbered where several are alike.
fn name_uniquely(tasks: &mut [TaskProposal]) {
    let bases: Vec<String> = tasks.iter().map(|task| sanitized(&task.thread.comm)).collect();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (index, task) in tasks.iter_mut().enumerate() {
        let base = &bases[index];
        let alone = bases.iter().filter(|other| *other == base).count() == 1;
        let numbered = (1_u64..).map(|number| format!("{base}-{number}"));
        let first = alone.then(|| base.clone());
        let name = first.into_iter().chain(numbered).find(|name| !taken.contains(name));
        task.name = name.unwrap_or_else(|| format!("thread {}", task.thread.tid));
        taken.insert(task.name.clone());
    }
}

/// A name as a system file allows it.
fn sanitized(name: &str) -> String {
    let clean: String = name.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    let clean = clean.trim();
    if clean.is_empty() { "unnamed".to_owned() } else { clean.to_owned() }
}

fn values(task: &TaskProposal, priority: Option<i64>, needs_deadline: bool, options: &Options) -> Values {
    let unit = options.resolution_ns.max(1);
    let up = |ns: u64| ns.div_ceil(unit).saturating_mul(unit);
    let down = |ns: u64| ns / unit * unit;
    let observed = if options.count_suspensions { task.demand.max_ns } else { task.execution.max_ns };
    let wcet = options.with_margin(observed);
    let arrival = arrival(task, wcet);
    let jitter = match (&arrival, &task.reading.pattern) {
        (Arrival::Period(_), Pattern::Periodic(fit)) if !fit.exact => up(task.jitter.jitter_ns),
        (Arrival::Period(_), Pattern::Periodic(_)) => task.jitter.jitter_ns,
        (Arrival::Envelope { jitter, .. }, _) => *jitter,
        _ => 0,
    };
    let implicit = match &arrival {
        Arrival::Period(ns) | Arrival::Separation(ns) => Some(*ns),
        // Counted from the nominal arrival, so the jitter is inside it.
        Arrival::Envelope { separation, jitter } | Arrival::Portions { separation, jitter } => {
            Some(separation.saturating_add(*jitter))
        }
        Arrival::Instants(_) => None,
    };
    let reserved = match task.thread.class {
        Class::Deadline { deadline_ns, period_ns, .. }
            if deadline_ns > 0 && (deadline_ns != period_ns || implicit.is_none()) =>
        {
            Some(deadline_ns)
        }
        Class::Edf { deadline_ns } | Class::Modelled { deadline_ns, .. }
            if deadline_ns > 0 && Some(deadline_ns) != implicit =>
        {
            Some(deadline_ns)
        }
        _ => None,
    };
    let is_envelope = matches!(arrival, Arrival::Envelope { .. });
    let deadline = match (reserved, implicit) {
        (Some(deadline), _) => Some(deadline.max(wcet)),
        // An overload: the file must still be one, and the analysis says no.
        (None, Some(implicit)) if implicit < wcet => Some(wcet),
        // An order by deadlines has no place for a task without one.
        (None, None) if needs_deadline => Some(up(task.response.max_ns).max(wcet)),
        (None, implicit) => implicit.filter(|_| is_envelope),
    };
    Values {
        arrival,
        deadline,
        wcet,
        bcet: down(task.execution.min_ns).min(wcet),
        jitter,
        priority,
        cpu: task.cpu(),
        spin: up(task.execution.max_ns).max(1),
        suspensions_counted: options.count_suspensions,
    }
}

impl TaskProposal {
    /// The processor that it may run on, else the one that it had longest.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        match self.thread.allowed.as_deref() {
            Some([only]) => *only,
            _ => self.cpus.first().map_or(0, |(cpu, _)| *cpu),
        }
    }

    /// Whether it may run on one processor only.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        matches!(self.thread.allowed.as_deref(), Some([_]))
    }
}

fn arrival(task: &TaskProposal, wcet: u64) -> Arrival {
    match &task.reading.pattern {
        Pattern::Periodic(fit) => Arrival::Period(fit.period_ns),
        Pattern::Sporadic { separation_ns, .. } if *separation_ns >= wcet => {
            Arrival::Separation(*separation_ns)
        }
        Pattern::Sporadic { separation_ns, .. } => {
            match arrivals::envelope(&arrivals_of(&task.reading.jobs)) {
                Some((separation, jitter)) => Arrival::Envelope { separation, jitter },
                None => Arrival::Separation(*separation_ns),
            }
        }
        Pattern::Aperiodic => Arrival::Instants(arrivals_of(&task.reading.jobs)),
    }
}

/// A span for comments.
pub(super) fn text(ns: u64) -> String {
    Span::from_ns(ns).rounded()
}
