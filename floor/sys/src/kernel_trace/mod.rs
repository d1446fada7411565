//! The kernel's own record of some CPUs: switches, wake-ups, interrupts, softirqs and stolen time, with
//! `CLOCK_MONOTONIC` times.
//!
//! Two back ends, tried in this order: an instance of its own in tracefs, then perf rings. A record costs the recorded
//! CPU about 0.4 us through tracefs and 0.7 us through perf, and perf takes a second to open and close its events where
//! tracefs takes a tenth; but perf needs fewer privileges. [`Recorder::choice`] says which one and why, and what this
//! kernel does not let us see. A reader on a housekeeping CPU empties the rings by itself (the recorded CPUs are not
//! interrupted for it) into bounded memory.

mod chain;
mod decode;
mod event;
mod instance;
mod perf;
mod reader;
mod ring_page;
mod source;
mod store;
mod tracefs;

pub use event::{
    Class, Comm, Interrupt, KernelEvent, KernelEventKind, State, Thread, VectorKind, softirq_name,
};
pub use instance::{LeftOverInstance, left_over_instances, remove_left_over_instances};
pub(crate) use instance::{remove_instance, remove_instances_of};
pub use store::Overflow;

use crate::Error;
use crate::cpu_list::online_cpus;
use crate::kernel_fs::KernelFs;
use reader::{Reader, Shared};
use source::Source;
use std::sync::Arc;

/// What to record and with how much memory.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// The CPUs to record.
    pub cpus: Vec<u32>,
    /// Memory of the kernel's ring, MiB a recorded CPU.
    pub ring_mib: u32,
    /// Memory of the events read and not yet taken, MiB in all.
    pub memory_mib: u32,
    /// What happens when that memory is full.
    pub overflow: Overflow,
    /// Whether interrupts and softirqs are recorded too.
    pub interrupts: bool,
    /// Whether it is recorded what threads wait for (system calls that may wait, timers that they start) and which
    /// threads come and go.
    pub activity: bool,
    /// Whether it is recorded which threads come and go; [`activity`](Self::activity) has that, too.
    pub threads: bool,
    /// Only these threads and what they start, where the back end can leave the rest out (tracefs); empty: everything.
    /// Switches between other threads are then missing, so that who leaves a processor need not be who came.
    pub follow: Vec<u32>,
    /// Which back end; `None`: the first one that this machine allows.
    pub backend: Option<Backend>,
    /// Whether recordings that killed commands have left stay as they are: who looks at the machine changes nothing of it.
    pub keeps_left_over: bool,
    /// Where the reader runs; empty: all online CPUs that are not recorded, or any where all are.
    pub housekeeping: Vec<u32>,
}

impl RecorderOptions {
    /// Rings of so many bytes, rounded up to whole MiB, and eight times as much for what was read; `None`: as it is.
    pub fn give(&mut self, ring_bytes: Option<u64>) {
        let Some(bytes) = ring_bytes else { return };
        self.ring_mib = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX).clamp(1, 1 << 12);
        self.memory_mib = self.ring_mib * 8;
    }

    /// Records `cpus` with 8 MiB rings and 64 MiB of memory.
    #[must_use]
    pub fn new(cpus: Vec<u32>) -> RecorderOptions {
        RecorderOptions {
            cpus,
            ring_mib: 8,
            memory_mib: 64,
            overflow: Overflow::DropNewest,
            interrupts: true,
            activity: false,
            threads: false,
            keeps_left_over: false,
            follow: Vec::new(),
            backend: None,
            housekeeping: Vec::new(),
        }
    }
}

/// Which back end records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// perf rings.
    Perf,
    /// An instance of its own in tracefs.
    Tracefs,
}

/// The back end, why it was chosen, and what it cannot see.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Which one records.
    pub backend: Backend,
    /// Why.
    pub reason: String,
    /// What this kernel does not let it see.
    pub unseen: Vec<String>,
}

/// What is missing from a recording.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Losses {
    /// Lost in the kernel's rings.
    pub kernel: u64,
    /// Switches that the kernel made without recording them.
    pub missed_switches: u64,
    /// Dropped because the reader's memory was full.
    pub memory: u64,
    /// Overwritten in the reader's memory, as a flight recorder does on purpose.
    pub overwritten: u64,
}

impl Losses {
    /// Records that are missing against the will of the caller.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.kernel.saturating_add(self.missed_switches).saturating_add(self.memory)
    }
}

/// A finished recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What was not yet taken by [`Recorder::drain`], in time order.
    pub events: Vec<KernelEvent>,
    /// What is missing.
    pub losses: Losses,
    /// Who recorded.
    pub choice: Choice,
}

/// A running recording; dropping it stops it.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    reader: Option<Reader>,
    choice: Choice,
}

impl Recorder {
    /// Starts recording.
    ///
    /// # Errors
    /// Where a CPU is not online, or no back end is allowed; the text names the remedy of each.
    pub fn start(options: &RecorderOptions) -> Result<Recorder, Error> {
        let online = online_cpus()?;
        if options.cpus.is_empty() {
            return Err(Error::bad_input("recording the kernel", "no CPU is named", "name at least one"));
        }
        if let Some(cpu) = options.cpus.iter().chain(&options.housekeeping).find(|cpu| !online.contains(cpu))
        {
            return Err(Error::bad_input(
                format!("cpu {cpu}"),
                "it is not online",
                format!("use one of {online:?}"),
            ));
        }
        let (source, choice) = choose(options, &online)?;
        let shared = Arc::new(Shared::new(options));
        let reader = Reader::start(source, Arc::clone(&shared), options, &online)?;
        Ok(Recorder { shared, reader: Some(reader), choice })
    }

    /// The back end, why, and what it cannot see.
    #[must_use]
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Takes the events that are certainly complete up to now, in time order.
    #[must_use]
    pub fn drain(&self) -> Vec<KernelEvent> {
        self.shared.take_complete()
    }

    /// What is missing so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.shared.losses()
    }

    /// Stops and hands over the rest.
    ///
    /// # Errors
    /// Where the kernel refuses to stop or the reader failed on the way.
    pub fn stop(mut self) -> Result<Recording, Error> {
        if let Some(reader) = self.reader.take() {
            reader.finish()?;
        }
        let events = self.shared.take_all();
        Ok(Recording { events, losses: self.shared.losses(), choice: self.choice.clone() })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            // Nobody is left to hear of an error here; the descriptors close with the reader in any case.
            let _ = reader.finish();
        }
    }
}

/// The back end asked for, or the first one that this machine allows.
fn choose(options: &RecorderOptions, online: &[u32]) -> Result<(Box<dyn Source>, Choice), Error> {
    let tracefs_error = match options.backend {
        Some(Backend::Perf) => None,
        _ => match open_tracefs(options, online) {
            Ok(source) => {
                let reason =
                    "tracefs allows an instance of its own, which costs the recorded CPU least".to_owned();
                return Ok(chosen(Box::new(source), Backend::Tracefs, reason));
            }
            Err(error) if options.backend.is_some() || error.is_bad_input() => return Err(error),
            Err(error) => Some(error),
        },
    };
    match (open_perf(options, online), tracefs_error) {
        (Ok(source), tracefs_error) => {
            let reason = match tracefs_error {
                Some(error) => format!("tracefs is closed here ({}), perf is open", error.what()),
                None => "asked for".to_owned(),
            };
            Ok(chosen(Box::new(source), Backend::Perf, reason))
        }
        // perf needs less, so its remedy is the one to tell.
        (Err(perf_error), Some(tracefs_error)) => Err(Error::unsupported(
            format!("the kernel's record ({})", both(&tracefs_error.what(), &perf_error.what())),
            perf_error.remedy(),
        )),
        (Err(error), None) => Err(error),
    }
}

/// Two reasons, or the one that both have.
fn both(first: &str, second: &str) -> String {
    if first == second { first.to_owned() } else { format!("{first}; {second}") }
}

fn open_tracefs(options: &RecorderOptions, online: &[u32]) -> Result<tracefs::TracefsSource, Error> {
    let tracefs = KernelFs::tracefs()?;
    tracefs::TracefsSource::open(tracefs, &options.cpus, online, ring_bytes(options), options)
}

fn open_perf(options: &RecorderOptions, online: &[u32]) -> Result<perf::PerfSource, Error> {
    let tracefs = KernelFs::tracefs()?;
    perf::PerfSource::open(&tracefs, &options.cpus, online, ring_bytes(options), options)
}

fn ring_bytes(options: &RecorderOptions) -> usize {
    (options.ring_mib.max(1) as usize) << 20
}

fn chosen(source: Box<dyn Source>, backend: Backend, reason: String) -> (Box<dyn Source>, Choice) {
    let unseen = source.unseen().to_vec();
    (source, Choice { backend, reason, unseen })
}
