//! Looks, from above all bands, for jobs that execute without an end.
//!
//! The watchdog is a thread of its own above the agents, on the processors for housekeeping: where those are the tasks' own (the only
//! processor of the machine), a job that never ends starves everything but it. It ends the run where a job has executed beyond its
//! patience, asks the job's thread for its stack, and stops threads for good that have not ended so long after the run. A thread that
//! has a higher priority than the watchdog lowers itself: `horolog_sys::crash::runaway`.

use crate::bands;
use crate::early::{Early, What};
use crate::shared::RunShared;
use crate::task_shared::TaskShared;
use crate::{ExecError, RunOptions};
use horolog_sys::crash::runaway::{self, Limit};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::{clock, futex, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// How often it looks.
const TURN_NS: u64 = 50_000_000;
/// The kernel tells a real-time thread that has executed so long without sleeping.
const RT_SECONDS: u64 = 1;
/// Little is needed: it reads clocks and sends signals.
const STACK: usize = 64 << 10;

/// The thread that looks. Ends with [`Watchdog::end`].
pub(crate) struct Watchdog {
    thread: JoinHandle<()>,
    over: Arc<AtomicU32>,
}

impl Watchdog {
    /// Starts to look at the tasks of `run`.
    pub(crate) fn start(
        run: &Arc<RunShared>,
        tasks: &[Arc<TaskShared>],
        options: &RunOptions,
    ) -> Result<Watchdog, ExecError> {
        let over = Arc::new(AtomicU32::new(0));
        let class = if options.best_effort { Class::Normal } else { Class::Fifo(bands::WATCHDOG) };
        let limit = Limit::set(RT_SECONDS)?;
        let (run, tasks, grace) = (run.clone(), tasks.to_vec(), options.grace.as_ns());
        let theirs = over.clone();
        let watch = move || {
            thread::set_name("horolog/watch");
            if let Err(error) = set_class(0, class) {
                run.fail(ExecError::from(error).within("watchdog"));
            }
            while theirs.load(Ordering::Acquire) == 0 {
                look(&run, &tasks, grace);
                limit.renew();
                let _ = futex::wait(&theirs, 0, clock::monotonic_ns() + TURN_NS);
            }
        };
        let spawned = std::thread::Builder::new().stack_size(STACK).spawn(watch);
        let thread =
            spawned.map_err(|error| ExecError::machine(format!("starting the watchdog: {error}")))?;
        Ok(Watchdog { thread, over })
    }

    /// Nothing is left to look at.
    pub(crate) fn end(self) {
        self.over.store(1, Ordering::Release);
        let _ = futex::wake(&self.over, 1);
        // It looks at atomics alone; a panic there would be a bug of ours and changes no result.
        let _ = self.thread.join();
    }
}

fn look(run: &RunShared, tasks: &[Arc<TaskShared>], grace: u64) {
    let Some(now) = run.now() else { return };
    // Where nothing says that the run is over, its last jobs starve the thread that should.
    let over = run.closed().min(run.horizon().saturating_add(grace));
    let mut overdue = now > over.saturating_add(grace);
    if let Some((place, task)) = tasks.iter().enumerate().find(|(_, task)| task.is_stuck())
        && !run.has_ended_early()
    {
        let _ = runaway::ask(task.tid.load(Ordering::Acquire));
        run.end_early(Early {
            task: place,
            at_ns: now,
            what: What::Stuck { executed: task.executed_in_job() },
        });
        run.stop(now);
        overdue = false;
    }
    if overdue {
        tasks.iter().for_each(|task| task.stop_for_good());
    }
}
