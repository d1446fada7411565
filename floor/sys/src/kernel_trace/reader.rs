//! The thread that empties the rings.

use super::chain::Chain;
use super::event::{KernelEvent, KernelEventKind};
use super::source::Source;
use super::store::Store;
use super::{Losses, RecorderOptions};
use crate::clock::monotonic_ns;
use crate::{Error, steal};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// How often the rings are emptied: 8 MiB hold about 80,000 switches, so 50 ms suffice for 1.6 million a second.
const LOOK_EVERY_MS: i32 = 50;
/// An event can appear in its ring this much later than its time where the hypervisor stops a CPU inside the
/// tracepoint; events younger than this are not handed over yet.
const SETTLE_NS: u64 = 50_000_000;

/// What the reader and the owner of the recording share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    stop: AtomicBool,
}

#[derive(Debug)]
struct State {
    store: Store,
    complete_until_ns: u64,
    lost_in_kernel: u64,
    missed_switches: u64,
}

impl Shared {
    pub(super) fn new(options: &RecorderOptions) -> Shared {
        let store = Store::new((options.memory_mib as usize) << 20, options.overflow);
        let state = State { store, complete_until_ns: 0, lost_in_kernel: 0, missed_switches: 0 };
        Shared { state: Mutex::new(state), stop: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements, so a panicked holder spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_complete(&self) -> Vec<KernelEvent> {
        let mut state = self.lock();
        let horizon = state.complete_until_ns;
        state.store.take_until(horizon)
    }

    pub(super) fn take_all(&self) -> Vec<KernelEvent> {
        self.lock().store.take_until(u64::MAX)
    }

    pub(super) fn losses(&self) -> Losses {
        let state = self.lock();
        Losses {
            kernel: state.lost_in_kernel,
            missed_switches: state.missed_switches,
            memory: state.store.dropped,
            overwritten: state.store.overwritten,
        }
    }
}

/// The running reader.
#[derive(Debug)]
pub(super) struct Reader {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), Error>>,
}

impl Reader {
    /// Starts the source and the thread that reads it.
    pub(super) fn start(
        mut source: Box<dyn Source>,
        shared: Arc<Shared>,
        options: &RecorderOptions,
        online: &[u32],
    ) -> Result<Reader, Error> {
        let places = reader_places(options, online);
        let steal = StealWatch::new(&options.cpus);
        let chained = options.follow.is_empty();
        source.start()?;
        let mine = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("horolog-ktrace".to_owned())
            .spawn(move || {
                pin(&places)?;
                let outcome = read_until_stopped(&mut *source, &mine, steal, chained);
                source.close();
                outcome
            })
            .map_err(|error| Error::io("clone(kernel trace reader)", &error, "raise `ulimit -u`"))?;
        Ok(Reader { shared, thread })
    }

    /// Stops the source, reads the rest and ends the thread.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread
            .join()
            .unwrap_or_else(|_| Err(Error::unexpected("kernel trace reader", "it panicked", "report this")))
    }
}

/// Online CPUs that are not recorded, or all where all are.
fn reader_places(options: &RecorderOptions, online: &[u32]) -> Vec<u32> {
    if !options.housekeeping.is_empty() {
        return options.housekeeping.clone();
    }
    let free: Vec<u32> = online.iter().copied().filter(|cpu| !options.cpus.contains(cpu)).collect();
    if free.is_empty() { online.to_vec() } else { free }
}

fn pin(places: &[u32]) -> Result<(), Error> {
    let mut set = CpuSet::new();
    places.iter().for_each(|cpu| set.set(*cpu as usize));
    sched_setaffinity(None, &set).map_err(|errno| {
        Error::os(
            format!("sched_setaffinity({places:?})"),
            errno.raw_os_error(),
            "allow these CPUs to the process (cpuset, taskset)",
        )
    })
}

/// `chained`: every switch is on record, so that a break of the chain shows a hidden one.
fn read_until_stopped(
    source: &mut dyn Source,
    shared: &Shared,
    mut steal: StealWatch,
    chained: bool,
) -> Result<(), Error> {
    let mut fds: Vec<libc::pollfd> = source
        .poll_descriptors()
        .into_iter()
        .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
        .collect();
    let mut batch = Vec::new();
    let mut chain = Chain::default();
    loop {
        let stopping = shared.stop.load(Ordering::Acquire);
        if stopping {
            source.stop()?;
        }
        let now = monotonic_ns();
        batch.clear();
        source.drain(&mut |event| {
            if chained {
                batch.extend(chain.check(&event));
            }
            batch.push(event);
        })?;
        steal.look(now, &mut batch);
        let lost = if stopping { source.lost_unreported()? } else { 0 };
        publish(shared, &batch, now, lost);
        if stopping {
            return Ok(());
        }
        // SAFETY: `fds` is a valid array of this length for the whole call.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, LOOK_EVERY_MS) };
    }
}

/// Hands a batch over to the owner. `now` was read before the rings were emptied.
fn publish(shared: &Shared, batch: &[KernelEvent], now: u64, lost_at_end: u64) {
    let mut state = shared.lock();
    for event in batch {
        let mut event = *event;
        match event.kind {
            KernelEventKind::Lost(count) => state.lost_in_kernel = state.lost_in_kernel.saturating_add(count),
            KernelEventKind::MissedSwitch => {
                state.missed_switches = state.missed_switches.saturating_add(1);
                // It is known only now; what was handed over already stays in order.
                event.time_ns = event.time_ns.max(state.complete_until_ns.saturating_add(1));
            }
            _ => {}
        }
        state.store.push(event);
    }
    if lost_at_end > 0 {
        state.lost_in_kernel = state.lost_in_kernel.saturating_add(lost_at_end);
        let cpu = batch.last().map_or(0, |event| event.cpu);
        state.store.push(KernelEvent { time_ns: now, cpu, kind: KernelEventKind::Lost(lost_at_end) });
    }
    state.complete_until_ns = now.saturating_sub(SETTLE_NS);
}

/// Follows the stolen time of the recorded CPUs.
#[derive(Debug)]
struct StealWatch {
    cpus: Vec<(u32, u64)>,
    looked_ns: u64,
}

impl StealWatch {
    fn new(cpus: &[u32]) -> StealWatch {
        // A kernel without the column has no stolen time to follow.
        let cpus = cpus.iter().filter_map(|cpu| Some((*cpu, steal::stolen_ns(*cpu).ok()?))).collect();
        StealWatch { cpus, looked_ns: monotonic_ns() }
    }

    fn look(&mut self, now: u64, batch: &mut Vec<KernelEvent>) {
        let window_ns = now.saturating_sub(self.looked_ns);
        self.looked_ns = now;
        for (cpu, before) in &mut self.cpus {
            let Ok(stolen) = steal::stolen_ns(*cpu) else { continue };
            let stolen_ns = stolen.saturating_sub(*before);
            *before = stolen;
            if stolen_ns > 0 {
                let kind = KernelEventKind::Steal { stolen_ns, window_ns };
                batch.push(KernelEvent { time_ns: now, cpu: *cpu, kind });
            }
        }
    }
}
