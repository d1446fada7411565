//! The Python package `horolog`: conversion and errors. Every result comes from the engine call that the command makes.
//!
//! What users see is `front/python/horolog`, typed and with its own words; this library is its `_engine`. Results cross as the JSON of
//! `docs/contract.md`, arrays as bytes. Long calls run on a thread of their own while the caller's waits without the interpreter's lock,
//! so that other Python threads go on and Ctrl-C is heard.

#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value.
#![allow(unsafe_code)] // What PyO3's macros write for the interpreter's calls; there is none by hand.

mod arrays;
mod checked;
mod columns;
mod events;
mod faults;
mod sweeps;
mod systems;
mod tables;
mod traces;

use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often a waiting call asks whether Ctrl-C was pressed.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long a call waits for work that a signal has stopped.
const SOON: Duration = Duration::from_secs(1);

/// Runs `work` on a thread of its own and waits for it without the interpreter's lock. On a signal whose handler raises, that is
/// raised here, and what the thread still finds is dropped.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    waited(py, Duration::ZERO, |_| work())
}

/// The same of work that ends soon, for the most part, once its flag is set: a signal sets it, and is raised when the work has ended, or a
/// second later.
fn stoppable<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> PyResult<T> {
    waited(py, SOON, work)
}

/// The same of work whose end is waited for: it keeps what it has.
fn stopped_in_order<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> PyResult<T> {
    waited(py, Duration::MAX, work)
}

fn waited<T: Send + 'static>(
    py: Python<'_>,
    patience: Duration,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut raised: Option<(PyErr, Instant)> = None;
    let (sender, receiver) = channel();
    let started = std::thread::Builder::new().name("horolog".to_owned()).spawn({
        let stop = Arc::clone(&stop);
        move || {
            // The caller may have left.
            let _ = sender.send(work(&stop));
        }
    });
    let started =
        started.map_err(|error| faults::internal(py, &format!("cannot start a thread: {error}")))?;
    // A receiver is not shared between threads, so it goes along and comes back.
    let mut receiver = Some(receiver);
    loop {
        let (result, back) = py.detach({
            let receiver = receiver.take();
            move || match receiver {
                Some(receiver) => (receiver.recv_timeout(PATIENCE), Some(receiver)),
                None => (Err(RecvTimeoutError::Disconnected), None),
            }
        });
        receiver = back;
        match result {
            Ok(found) => {
                // It has nothing left to do.
                let _ = py.detach(|| started.join());
                return raised.map_or(Ok(found), |(error, _)| Err(error));
            }
            Err(RecvTimeoutError::Timeout) => {
                if raised.is_none()
                    && let Err(error) = py.check_signals()
                {
                    stop.store(true, Ordering::Relaxed);
                    raised = Some((error, Instant::now()));
                }
                if let Some((error, _)) = raised.take_if(|(_, since)| since.elapsed() >= patience) {
                    return Err(error);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(faults::internal(
                    py,
                    "the engine ended without a result; this is a bug of horolog",
                ));
            }
        }
    }
}

/// The engines below `horolog`.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    systems::add(module)?;
    checked::add(module)?;
    traces::add(module)?;
    events::add(module)?;
    sweeps::add(module)?;
    tables::add(module)?;
    arrays::add(module)
}
