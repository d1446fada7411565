//! A server for a thread that exists already: of any process, or of the kernel (such as a network device's NAPI thread).
//!
//! An agent above the thread keeps its budget by the same state machines that `run` and the simulator use, and moves it
//! between its high and its low place. How the thread was scheduled before is given back when the server is stopped or
//! dropped; where the agent's process is killed, a guardian does that (`horolog serve` has one; a caller of this module asks
//! its own [`Guardian::remember_thread`](horolog_sys::guardian::Guardian::remember_thread) before it starts a server).
//!
//! ```no_run
//! use horolog_exec::thread_server::{ThreadServer, ThreadServerOptions};
//! use horolog_time::Span;
//! let (budget, period) = (Span::from_ns(1_000_000), Span::from_ns(10_000_000));
//! let server = ThreadServer::start(&ThreadServerOptions::sporadic(4711, budget, period, 60))?;
//! std::thread::sleep(std::time::Duration::from_secs(5));
//! let report = server.stop()?;
//! println!("{:?} of {}", report.server.consumed_ns, report.executed_ns);
//! # Ok::<(), horolog_exec::ExecError>(())
//! ```

mod account;
mod options;
mod report;
mod watched;

pub use options::{Accounting, Low, Notice, Rules, ThreadServerOptions};
pub use report::ThreadServerReport;

use crate::ExecError;
use account::Account;
use horolog_sys::affinity::{CpuSet, allowed_cpus_of, set_affinity};
use horolog_sys::fixed_priority::{Class, Former, set_class};
use horolog_sys::{clock, thread};
use horolog_time::Instant;
use report::Counts;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use watched::Watched;

/// The agent looks at least this often: switches must not overflow their ring, and a stopped server ends soon.
const LONGEST_SLEEP: u64 = 10_000_000;

/// A shorter sleep costs more than it tells.
const LEAST_SLEEP: u64 = 5_000;

/// How late a polling server may notice that the thread sleeps.
const POLLING_LOOK: u64 = 250_000;

/// How often the report is renewed while the server runs.
const REPORT_EVERY: u64 = 100_000_000;

/// A thread under a server; dropping it ends the server.
#[derive(Debug)]
pub struct ThreadServer {
    shared: Arc<Shared>,
    agent: Option<JoinHandle<()>>,
    accounting: Accounting,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// The agent's thread.
    tid: AtomicU32,
    report: Mutex<Option<ThreadServerReport>>,
    failure: Mutex<Option<ExecError>>,
}

impl ThreadServer {
    /// Puts a thread under a server, from now on.
    ///
    /// # Errors
    /// [`ExecError::is_bad_input`] where the options contradict each other or the thread has ended,
    /// [`ExecError::is_not_permitted`] without the right to change its class or to use the accounting that was asked for.
    pub fn start(options: &ThreadServerOptions) -> Result<ThreadServer, ExecError> {
        if let Some(flaw) = options.flaw() {
            return Err(ExecError::bad_input(flaw));
        }
        let former = Former::of(options.tid)?;
        let supply = horolog_sched::supply_of(&options.server(), Instant::from_ns(clock::monotonic_ns()))?
            .ok_or_else(|| ExecError::bad_input("a thread cannot be served by this kind of server"))?;
        let (watched, accounting) = Watched::open(options.tid, options.accounting)?;
        let cpus = match &options.agent_cpus {
            Some(cpus) => cpus.clone(),
            None => CpuSet::new(allowed_cpus_of(options.tid)?.as_slice().first().copied()),
        };
        thread::prepare_interrupt()?;
        let shared = Arc::new(Shared::default());
        let polls = options.rules == Rules::Polling;
        let now = clock::monotonic_ns();
        let mut agent = Agent {
            account: Account::new(supply, polls, options.wake_cost.as_ns(), now),
            shared: shared.clone(),
            options: options.clone(),
            thread: name_of(options.tid),
            watched,
            accounting,
            counts: Counts::default(),
            begun: now,
            reported: now,
            patience: LEAST_SLEEP,
            is_raised: None,
        };
        let (says, hears) = std::sync::mpsc::channel();
        let spawned = std::thread::Builder::new().name(format!("serve/{}", options.tid)).spawn(move || {
            agent.shared.tid.store(thread::id(), Ordering::Release);
            // The class first: on its processor a real-time thread may leave nothing to an ordinary one.
            let ready = set_class(0, Class::Fifo(agent.options.agent_priority))
                .and_then(|()| set_affinity(0, &cpus))
                .and_then(|()| agent.place_first());
            let is_ready = ready.is_ok();
            let _ = says.send(ready);
            if is_ready {
                agent.run();
            }
            if let Err(error) = former.give_back()
                && agent.watched.is_awake().is_some()
            {
                *agent.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.into());
            }
            agent.renew_report(clock::monotonic_ns());
        });
        let handle =
            spawned.map_err(|error| ExecError::machine(format!("starting a server's agent: {error}")))?;
        let server = ThreadServer { shared, agent: Some(handle), accounting };
        match hears.recv() {
            Ok(Ok(())) => Ok(server),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(ExecError::machine("a server's agent ended before it began")),
        }
    }

    /// What tells how much the thread has executed.
    #[must_use]
    pub fn accounting(&self) -> Accounting {
        self.accounting
    }

    /// What the thread has come to so far, at most 0.1 s old; `None` in the first 0.1 s.
    #[must_use]
    pub fn report(&self) -> Option<ThreadServerReport> {
        self.shared.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the thread has ended, and the server with it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.agent.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the server: the thread is scheduled as before.
    ///
    /// # Errors
    /// Where the kernel refuses to give the thread its former class back.
    pub fn stop(mut self) -> Result<ThreadServerReport, ExecError> {
        self.end();
        if let Some(failure) = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(failure);
        }
        self.report().ok_or_else(|| ExecError::machine("a server's agent ended without a report"))
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let Some(agent) = self.agent.take() else { return };
        // It may have ended by itself, with the thread; else it looks within 10 ms at the latest.
        let _ = thread::interrupt(self.shared.tid.load(Ordering::Acquire));
        let _ = agent.join();
    }
}

impl Drop for ThreadServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the agent's thread holds.
struct Agent {
    account: Account,
    shared: Arc<Shared>,
    options: ThreadServerOptions,
    thread: String,
    watched: Watched,
    accounting: Accounting,
    counts: Counts,
    begun: u64,
    reported: u64,
    /// The shortest sleep until the next look at the budget; it doubles while the thread does not move.
    patience: u64,
    /// The class that was set; `None`: none yet.
    is_raised: Option<bool>,
}

impl Agent {
    /// The first look and the first class, whose refusal the caller hears of.
    fn place_first(&mut self) -> Result<(), horolog_sys::Error> {
        // What the thread has executed since its clock was opened is none of the server's.
        let now = clock::monotonic_ns();
        let _ = self.look(now);
        let awake = self.watched.is_awake();
        self.account.look(now, self.counts.executed, awake);
        self.carry_out()
    }

    fn run(&mut self) {
        while !self.shared.stop.load(Ordering::Acquire) {
            let now = clock::monotonic_ns();
            let Some(moved) = self.look(now) else { return };
            if self.carry_out().is_err() {
                self.counts.refused += 1;
            }
            if now.saturating_sub(self.reported) >= REPORT_EVERY {
                self.renew_report(now);
            }
            self.patience = if moved { LEAST_SLEEP } else { (self.patience * 2).min(100_000) };
            let budget = self.account.budget();
            let until = self.next_look(now, budget);
            self.counts.agent_ns += clock::monotonic_ns().saturating_sub(now);
            self.watched.wait(self.options.notice, budget, until);
        }
        let _ = self.look(clock::monotonic_ns());
    }

    /// Brings the account up to `now`; whether the thread has executed since. `None` once it has ended.
    fn look(&mut self, now: u64) -> Option<bool> {
        self.counts.looks += 1;
        self.watched.replay(&mut self.account);
        let executed = self.watched.executed_ns()?;
        let moved = executed != self.counts.executed;
        self.counts.executed = executed;
        let asks = !self.watched.has_switches() || !self.account.is_high() || self.account.is_unsure;
        let awake = if asks { Some(self.watched.is_awake()?) } else { None };
        self.account.look(now, executed, awake);
        Some(moved)
    }

    fn carry_out(&mut self) -> Result<(), horolog_sys::Error> {
        let raised = self.account.is_high();
        if self.is_raised == Some(raised) {
            return Ok(());
        }
        let class = match (raised, self.options.low) {
            (true, _) => Class::Fifo(self.options.high),
            (false, Low::Fifo(low)) => Class::Fifo(low),
            (false, Low::Background) => Class::Normal,
        };
        set_class(self.options.tid, class)?;
        self.counts.class_changes += 1;
        self.is_raised = Some(raised);
        self.account.set_raised(raised);
        Ok(())
    }

    fn next_look(&self, now: u64, budget: Option<u64>) -> u64 {
        let mut until = now + LONGEST_SLEEP.min(self.options.period.as_ns());
        if let Some(timer) = self.account.timer() {
            until = until.min(timer);
        }
        if self.options.rules == Rules::Polling {
            // Whether work waits is asked at every multiple of the period.
            let period = self.options.period.as_ns();
            let since = now.saturating_sub(self.begun);
            until = until.min(self.begun + (since / period + 1) * period);
            if budget.is_some() {
                until = until.min(now + POLLING_LOOK);
            }
        }
        match budget {
            Some(budget) if self.options.notice == Notice::OneShot || !self.watched.has_switches() => {
                until.min(now + budget.max(self.patience))
            }
            _ => until,
        }
    }

    fn renew_report(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.begun);
        let report = report::report(
            &self.options,
            &self.thread,
            self.accounting,
            &self.account,
            &self.counts,
            elapsed,
        );
        *self.shared.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        self.reported = now;
    }
}

fn name_of(tid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default().trim_end().to_owned()
}
