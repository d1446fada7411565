//! What this host allows, and putting threads under SCHED_DEADLINE and back.

use horolog_reserve::{Amount, Domain, Process};
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::deadline::{LEAST_RUNTIME, Reservation, deadline_of, period_limits, set_deadline};
use horolog_sys::fixed_priority::Former;
use horolog_sys::guardian::Life;
use horolog_sys::machine::{kernel_release, may_use_deadline, read, tick_hz};
use horolog_sys::thread_facts::{all_processes, of_process};
use horolog_sys::{Error, clock};
use horolog_time::Span;
use serde::Serialize;

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// Whether it is as the daemon needs it; null: it is only told.
    pub is_good: Option<bool>,
    /// What was found, and what it means.
    pub found: String,
}

/// What this host allows: JSON `horolog.reserve-host/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// Always `horolog.reserve-host/1`.
    pub schema: &'static str,
    /// Whether reserves can be enforced here.
    pub can_enforce: bool,
    /// The processors, as the admission test counts them.
    pub domain: Domain,
    /// Everything that was looked at.
    pub findings: Vec<Finding>,
}

/// A kernel whose tick cannot be told is taken for the slowest one that is built.
const SLOWEST_TICK_NS: u64 = 10_000_000;

impl Host {
    /// Looks at this host. Nothing is changed; a thread that ends at once tries SCHED_DEADLINE.
    #[must_use]
    pub fn probe() -> Host {
        let mut findings = Vec::new();
        let mut tell = |what, is_good, found| findings.push(Finding { what, is_good, found });
        let tried = may_use_deadline();
        // Busy is an answer of the mechanism: others have all of it now.
        let is_there = tried.as_ref().map_or_else(Error::is_busy, |()| true);
        tell(
            "SCHED_DEADLINE",
            Some(is_there),
            match &tried {
                Ok(()) => "a thread with 1 ms / 100 ms was admitted".to_owned(),
                Err(error) if error.is_busy() => {
                    format!("there, but others have all of its bandwidth now: {error}")
                }
                Err(error) => error.to_string(),
            },
        );
        let cpus = online_cpus().unwrap_or_default();
        let mut domain = Domain::new(cpus.clone());
        let balances = read("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance").map(|text| text.trim() != "0");
        let is_one = balances != Ok(false);
        tell(
            "CPUs",
            Some(is_one && !cpus.is_empty()),
            if is_one {
                format!(
                    "{} CPUs below one root: the kernel moves reserved threads among them by global EDF",
                    cpus.len()
                )
            } else {
                "the root cpuset does not balance its load: the kernel has several root domains, which this daemon does not \
             know; set sched_load_balance of the root cpuset to 1"
                .to_owned()
            },
        );
        let tick = tick_hz().and_then(|hz| 1_000_000_000_u64.checked_div(hz));
        domain.tick = Span::from_ns(tick.unwrap_or(SLOWEST_TICK_NS));
        tell(
            "tick",
            None,
            format!(
                "{}{}: a budget may be overdrawn by so much, and the next one pays; each is admitted with so much more",
                domain.tick,
                if tick.is_none() { " (not told by the kernel: the slowest is taken)" } else { "" }
            ),
        );
        let (share, text) = share_ppm(cpus.len());
        domain.share_ppm = share;
        tell("bandwidth", Some(share > 0), text);
        domain.least_budget = LEAST_RUNTIME;
        let (least, longest) = period_limits();
        domain.least_period = least.unwrap_or(LEAST_RUNTIME).max(LEAST_RUNTIME);
        domain.longest_period = longest.unwrap_or(domain.longest_period).min(domain.longest_period);
        tell("periods", None, format!("{} to {}", domain.least_period, domain.longest_period));
        tell("cgroups", None, cgroups());
        tell("kernel", None, kernel_release());
        Host {
            schema: "horolog.reserve-host/1",
            can_enforce: is_there && is_one && share > 0,
            domain,
            findings,
        }
    }
}

/// Of each CPU, what the kernel's own test leaves for reserves, and why.
fn share_ppm(cpus: usize) -> (u64, String) {
    let figure = |name: &str| {
        let text = read(&format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse::<i64>().ok()
    };
    let (Some(runtime), Some(period)) = (figure("sched_rt_runtime_us"), figure("sched_rt_period_us")) else {
        return (0, "kernel.sched_rt_runtime_us and sched_rt_period_us cannot be read".to_owned());
    };
    let whole = match (u64::try_from(runtime), u64::try_from(period)) {
        (Ok(runtime), Ok(period)) if period > 0 => runtime.saturating_mul(1_000_000) / period,
        // -1: no limit. The kernel then admits anything; we do not.
        _ => 1_000_000,
    };
    // The fair server of Linux 6.12 and newer: 50 ms in 1 s of each CPU, in the same class. Its files are closed to many.
    let fair = if has_fair_server() { 50_000 } else { 0 };
    let share = whole.min(1_000_000).saturating_sub(fair);
    (
        share,
        format!(
            "{}.{:02} % of each of {cpus} CPUs: sched_rt_runtime_us {runtime} of {period}{}",
            share / 10_000,
            share % 10_000 / 100,
            if fair > 0 {
                ", less 5 % for the kernel's fair server, which runs normal threads that have got nothing for a second, at a deadline of \
             its own: SCHED_FIFO threads that never sleep make it delay reserves by up to 50 ms"
            } else {
                ""
            }
        ),
    )
}

fn has_fair_server() -> bool {
    let release = kernel_release();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(u32::MAX), numbers.next().unwrap_or(0));
    version >= (6, 12)
}

fn cgroups() -> String {
    let has = |path: &str| std::path::Path::new(path).exists();
    let version = match (has("/sys/fs/cgroup/cgroup.controllers"), has("/sys/fs/cgroup/cpuset/tasks")) {
        (true, _) => "v2",
        (false, true) => "v1, or hybrid",
        (false, false) => "no cpuset hierarchy found",
    };
    format!("{version}; a thread in a cpuset that is not all of the CPUs is refused by the kernel")
}

/// A thread that the daemon has put under SCHED_DEADLINE, as it is written down before that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, serde::Deserialize)]
pub struct Binding {
    /// The thread.
    pub thread: Process,
    /// Its reserve.
    pub reserve: u64,
    /// How it was scheduled before: policy, priority, nice.
    pub former: (i32, i32, i32),
    /// What it was given.
    pub amount: Amount,
    /// When, `CLOCK_MONOTONIC` ns.
    pub since_ns: u64,
    /// What it had executed then.
    pub executed_ns: u64,
}

/// The thread of this number, now.
#[must_use]
pub fn process(id: u32) -> Option<Process> {
    Life::of(id).map(|life| Process { id: life.id, started: life.started })
}

/// Whether it still lives.
#[must_use]
pub fn lives(thread: Process) -> bool {
    process(thread.id) == Some(thread)
}

/// What a thread has executed, by the scheduler's statistics; of one that runs on another CPU up to a tick old.
#[must_use]
pub fn executed(tid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{tid}/schedstat")).unwrap_or_default();
    text.split_ascii_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The amount that the kernel gives a thread now.
#[must_use]
pub fn granted(tid: u32) -> Option<Amount> {
    deadline_of(tid).ok().flatten().map(amount_of)
}

fn amount_of(given: Reservation) -> Amount {
    Amount { budget: given.runtime, period: given.period, deadline: given.deadline }
}

/// Why a thread may never be bound, or not by this user.
pub fn objection(tid: u32, uid: u32) -> Option<String> {
    if tid == 1 {
        return Some("process 1 keeps the machine alive: it is never bound".to_owned());
    }
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let field = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let Some(process) = field("Tgid:").and_then(|word| word.parse::<u32>().ok()) else {
        return Some(format!("there is no thread {tid}: `ps -eLo tid,comm` lists them"));
    };
    if process == std::process::id() {
        return Some("the daemon itself is never bound".to_owned());
    }
    // Threads of the kernel have no address space.
    if field("VmSize:").is_none() && field("State:").is_none_or(|state| !state.starts_with('Z')) {
        return Some(format!("thread {tid} belongs to the kernel: it is never bound"));
    }
    let users: Vec<&str> = field("Uid:").unwrap_or_default().split_whitespace().take(3).collect();
    let own = uid.to_string();
    if uid != 0 && (users.len() < 3 || users.iter().any(|user| *user != own)) {
        return Some(format!("thread {tid} belongs to another user, or has changed its user"));
    }
    None
}

/// How a thread is scheduled now, to be written down before it is bound.
///
/// # Errors
/// It has ended, or is under SCHED_DEADLINE already.
pub fn former(tid: u32) -> Result<(i32, i32, i32), Error> {
    Former::of(tid).map(|former| former.parts())
}

/// Puts a thread under an amount and gives what the kernel says that it has. A share that somebody has just given back stays booked for a
/// while, so it is tried for `patience`.
///
/// # Errors
/// What the kernel says.
pub fn bind(tid: u32, amount: &Amount, patience: Span) -> Result<Option<Amount>, Error> {
    let wanted = Reservation {
        runtime: amount.budget,
        deadline: amount.deadline,
        period: amount.period,
        reclaim: false,
        signal_overrun: false,
        // Without it the thread could not fork or start threads (EAGAIN); what it starts is in the normal class.
        reset_on_fork: true,
    };
    let until = clock::monotonic_ns().saturating_add(patience.as_ns().min(LONGEST_PATIENCE_NS));
    loop {
        match set_deadline(tid, &wanted) {
            Err(error) if error.is_busy() && clock::monotonic_ns() < until => {
                let _ = clock::sleep_until(clock::monotonic_ns() + 5_000_000);
            }
            done => return done.map(|()| granted(tid)),
        }
    }
}

/// Nobody waits longer for a booked share.
pub const LONGEST_PATIENCE_NS: u64 = 1_000_000_000;

/// Gives a thread back how it was scheduled, where it still has what it was given. Whether it had.
///
/// # Errors
/// What the kernel says.
pub fn put_back(binding: &Binding) -> Result<bool, Error> {
    let tid = binding.thread.id;
    // Who died while it gave the thread back has left it with next to nothing.
    let ours = [Some(binding.amount), Some(amount_of(horolog_sys::deadline::NEXT_TO_NOTHING))];
    if !lives(binding.thread) || !ours.contains(&granted(tid)) {
        return Ok(false);
    }
    match Former::from_parts(tid, binding.former).give_back() {
        Err(_) if !lives(binding.thread) => Ok(false),
        done => done.map(|()| true),
    }
}

/// The amounts of threads under SCHED_DEADLINE that no reserve has promised: those of other threads, and those of bound ones which
/// somebody has changed. A changed one is counted beside what was promised to it, which is more than it takes.
#[must_use]
pub fn foreign(ours: &[Binding]) -> Vec<(usize, Amount)> {
    let tids = all_processes().into_iter().flat_map(|entry| of_process(entry.process).unwrap_or_default());
    let amounts = tids.filter_map(|tid| granted(tid).map(|amount| (tid, amount)));
    let is_promised =
        |tid: u32, amount: Amount| ours.iter().any(|one| one.thread.id == tid && one.amount == amount);
    amounts.filter(|(tid, amount)| !is_promised(*tid, *amount)).map(|(_, amount)| (0, amount)).collect()
}

/// Why a caller's numbers of threads mean others here: it lives in another PID namespace, or that cannot be read.
#[must_use]
pub fn foreign_numbers(caller: Process) -> Option<String> {
    let namespace = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/pid"));
    let why = match (namespace("self"), namespace(&caller.id.to_string())) {
        _ if !lives(caller) => "the caller has ended".to_owned(),
        (Ok(own), Ok(its)) if own == its => return None,
        (Ok(_), Ok(_)) => "the caller lives in another PID namespace, where numbers of threads mean others: \
                           attach from the daemon's namespace"
            .to_owned(),
        (Err(error), _) | (_, Err(error)) => {
            format!("whether numbers of threads mean the same to the caller cannot be read: {error}")
        }
    };
    Some(why)
}
