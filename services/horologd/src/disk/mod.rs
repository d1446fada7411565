//! A file or a disk whose operations are reserved: [`DiskService`] carries out what [`horolog_disk::Broker`] decides, one operation at a
//! time, past the kernel's cache. Programs use it in their own process by a [`Handle`], others by [`client::DiskClient`].

pub mod client;
pub mod server;
#[cfg(test)]
mod tests;
mod wire;

use horolog_disk::{
    Broker, Finished, Next, NoRoom, Operation, Request, Reserve, ReserveId, Settings, Tally, largest,
};
use horolog_sys::clock::monotonic_ns;
use horolog_sys::direct_file::{DIRECT_BLOCK, DirectFile};
use horolog_sys::fixed_priority::{Class, set_class};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest request, bytes.
pub const LONGEST_REQUEST: u64 = 4 << 20;

/// So often is looked whether who asked is still there.
const LOOK: Duration = Duration::from_millis(50);

/// A reserve by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// What clients call it.
    pub name: String,
    /// How much of the disk it is.
    pub reserve: Reserve,
}

/// What does the operations: a [`DirectFile`], or something else that answers whole blocks.
pub trait Device: Send {
    /// Whole blocks, bytes.
    fn length(&self) -> u64;

    /// Whether it takes writes.
    fn is_writable(&self) -> bool;

    /// Reads, and waits for it.
    ///
    /// # Errors
    /// Where the disk does not answer.
    fn read(&mut self, offset: u64, bytes: u64) -> Result<&[u8], horolog_sys::Error>;

    /// Writes, and waits for it.
    ///
    /// # Errors
    /// Where the disk does not answer.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), horolog_sys::Error>;
}

impl Device for DirectFile {
    fn length(&self) -> u64 {
        DirectFile::length(self)
    }

    fn is_writable(&self) -> bool {
        DirectFile::is_writable(self)
    }

    fn read(&mut self, offset: u64, bytes: u64) -> Result<&[u8], horolog_sys::Error> {
        DirectFile::read(self, offset, bytes)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), horolog_sys::Error> {
        DirectFile::write(self, offset, data)
    }
}

/// What a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// Bytes from an offset on.
    Read {
        /// The first byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// These bytes to an offset.
    Write {
        /// The first byte.
        offset: u64,
        /// What goes there.
        data: Vec<u8>,
    },
}

/// What became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// What was read; empty of a write.
    pub data: Vec<u8>,
    /// When it came, when it was to be done (on a reserve), and when it was, ns of the monotonic clock.
    pub finished: Finished,
}

/// Why it was not done, or a service not begun.
#[derive(Debug)]
pub enum DiskError {
    /// What was asked for makes no sense, with the remedy.
    BadInput(String),
    /// A reserve is not admitted.
    NotAdmitted {
        /// Its name.
        name: String,
        /// Why.
        why: NoRoom,
        /// The most operations that would be, with its period and deadline.
        largest: Option<u64>,
    },
    /// The machine does not allow it, or the disk failed.
    System(horolog_sys::Error),
    /// The disk failed at one of its operations.
    Failed(String),
    /// No disk is served there.
    NoService(String),
    /// The service has ended.
    Ended,
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::BadInput(why) | DiskError::Failed(why) | DiskError::NoService(why) => f.write_str(why),
            DiskError::NotAdmitted { name, why, largest } => {
                write!(f, "reserve `{name}` is not admitted: {why}")?;
                match largest {
                    Some(1) => f.write_str("; with its period and deadline 1 operation would be"),
                    Some(most) => write!(f, "; with its period and deadline {most} operations would be"),
                    None => f.write_str("; with its period and deadline no operation would be"),
                }
            }
            DiskError::System(error) => write!(f, "{error}"),
            DiskError::Ended => f.write_str("the service of this disk has ended"),
        }
    }
}

impl std::error::Error for DiskError {}

impl From<horolog_sys::Error> for DiskError {
    fn from(error: horolog_sys::Error) -> DiskError {
        DiskError::System(error)
    }
}

/// Whether operations may have so many bytes.
///
/// # Errors
/// Where it is not a multiple of a block, or longer than a request.
pub fn check_chunk(chunk: u64) -> Result<(), DiskError> {
    if chunk > 0 && chunk.is_multiple_of(DIRECT_BLOCK) && chunk <= LONGEST_REQUEST {
        return Ok(());
    }
    Err(DiskError::BadInput(format!(
        "a chunk of {chunk} bytes: use a multiple of {DIRECT_BLOCK} up to {LONGEST_REQUEST}"
    )))
}

/// A request whose operations are under way.
struct Job {
    /// Where its data begin.
    offset: u64,
    is_write: bool,
    data: Vec<u8>,
    error: Option<String>,
    answer: SyncSender<Result<Answer, DiskError>>,
}

struct State {
    broker: Broker,
    jobs: BTreeMap<u64, Job>,
    tags: u64,
    /// Requests that the disk failed at.
    failed: u64,
    is_ending: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    length: u64,
    is_writable: bool,
    chunk: u64,
    reserves: Vec<(Named, ReserveId)>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that does the operations of a disk in the order of its reserves. It ends when this is dropped.
pub struct DiskService {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for DiskService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskService").field("reserves", &self.shared.reserves).finish_non_exhaustive()
    }
}

/// What became of the requests of a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Use {
    /// The reserve; none of best effort.
    pub reserve: Option<String>,
    /// Counts.
    #[serde(flatten)]
    pub tally: Tally,
}

impl DiskService {
    /// Admits the reserves and begins. With a `priority` the thread runs under SCHED_FIFO.
    ///
    /// # Errors
    /// Where a reserve is not admitted, the chunk is not a multiple of 4,096 bytes, or the priority is not allowed.
    pub fn start(
        device: impl Device + 'static,
        settings: Settings,
        reserves: Vec<Named>,
        priority: Option<u8>,
    ) -> Result<DiskService, DiskError> {
        check_chunk(settings.chunk)?;
        let mut broker = Broker::new(settings).map_err(|error| DiskError::BadInput(error.to_string()))?;
        let mut admitted: Vec<(Named, ReserveId)> = Vec::new();
        for named in reserves {
            if admitted.iter().any(|(other, _)| other.name == named.name) {
                return Err(DiskError::BadInput(format!(
                    "two reserves `{}`: give each a name of its own",
                    named.name
                )));
            }
            let id = broker.create(named.reserve, monotonic_ns()).map_err(|why| {
                let others = broker.counted();
                let most = largest(&others, named.reserve, settings.longest_ns).map(|one| one.operations);
                DiskError::NotAdmitted { name: named.name.clone(), why, largest: most }
            })?;
            admitted.push((named, id));
        }
        let state = State { broker, jobs: BTreeMap::new(), tags: 0, failed: 0, is_ending: false };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            length: device.length(),
            is_writable: device.is_writable(),
            chunk: settings.chunk,
            reserves: admitted,
        });
        let (told, begun) = sync_channel(1);
        let its = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("disk".to_owned())
            .spawn(move || {
                let class = priority.map_or(Ok(()), |priority| set_class(0, Class::Fifo(priority)));
                let may_run = class.is_ok();
                let _ = told.send(class);
                if may_run {
                    serve(&its, device);
                }
            })
            .map_err(|error| horolog_sys::Error::io("spawn(disk)", &error, "end other programs"))?;
        let mut service = DiskService { shared, thread: Some(thread) };
        match begun.recv() {
            Ok(Ok(())) => Ok(service),
            Ok(Err(error)) => {
                service.end();
                Err(error.into())
            }
            Err(_) => Err(DiskError::Ended),
        }
    }

    /// For requests on a reserve, or best effort.
    ///
    /// # Errors
    /// Where no reserve has this name.
    pub fn handle(&self, reserve: Option<&str>) -> Result<Handle, DiskError> {
        Handle::of(&self.shared, reserve)
    }

    /// What became of the requests on each reserve so far, and last of best effort.
    #[must_use]
    pub fn uses(&self) -> Vec<Use> {
        let state = self.shared.lock();
        let named = self.shared.reserves.iter().map(|(named, id)| (Some(named.name.clone()), Some(*id)));
        named
            .chain([(None, None)])
            .map(|(reserve, id)| Use { reserve, tally: state.broker.tally(id).unwrap_or_default() })
            .collect()
    }

    /// Requests that the disk failed at.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.shared.lock().failed
    }

    /// Ends: the operation that the disk does is waited for, and requests that are not done then count as unanswered, and as late where
    /// their promise is past.
    pub fn end(&mut self) {
        self.shared.lock().is_ending = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for DiskService {
    fn drop(&mut self) {
        self.end();
    }
}

/// Requests of one client.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    reserve: Option<ReserveId>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("reserve", &self.reserve).finish_non_exhaustive()
    }
}

impl Handle {
    fn of(shared: &Arc<Shared>, reserve: Option<&str>) -> Result<Handle, DiskError> {
        let found = |name: &str| {
            let its = shared.reserves.iter().find(|(named, _)| named.name == name).map(|(_, id)| *id);
            its.ok_or_else(|| {
                let names: Vec<&str> = shared.reserves.iter().map(|(named, _)| named.name.as_str()).collect();
                DiskError::BadInput(format!("there is no reserve `{name}`: there are {names:?}"))
            })
        };
        Ok(Handle { shared: Arc::clone(shared), reserve: reserve.map(found).transpose()? })
    }

    /// Asks, and waits for the answer. Offset and length are multiples of 4,096 bytes.
    ///
    /// # Errors
    /// Where they are not, or not inside the file, the disk fails, or too much waits.
    pub fn ask(&self, work: Work) -> Result<Answer, DiskError> {
        self.ask_while(work, &|| true)
    }

    /// The same for somebody who may be gone before the answer is there: a read is called off then. A write is carried out, since it
    /// would be left half done.
    fn ask_while(&self, work: Work, is_wanted: &dyn Fn() -> bool) -> Result<Answer, DiskError> {
        let (offset, is_write, data) = match work {
            Work::Read { offset, bytes } => {
                self.check(offset, bytes)?;
                (offset, false, vec![0; bytes as usize])
            }
            Work::Write { offset, data } => {
                self.check(offset, data.len() as u64)?;
                (offset, true, data)
            }
        };
        if is_write && !self.shared.is_writable {
            return Err(DiskError::BadInput(
                "the file is opened for reading: serve it --writable".to_owned(),
            ));
        }
        let (answer, answered) = sync_channel(1);
        let tag = {
            let mut state = self.shared.lock();
            if state.is_ending {
                return Err(DiskError::Ended);
            }
            state.tags += 1;
            let (tag, bytes) = (state.tags, data.len() as u64);
            // The clock is read with the lock, so that the broker knows of all requests before the instant of its choice.
            let request = Request { at_ns: monotonic_ns(), tag, reserve: self.reserve, offset, bytes };
            state.broker.submit(&request).map_err(|error| DiskError::BadInput(error.to_string()))?;
            state.jobs.insert(tag, Job { offset, is_write, data, error: None, answer });
            tag
        };
        self.shared.changed.notify_one();
        loop {
            match answered.recv_timeout(LOOK) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(DiskError::Ended),
                Err(RecvTimeoutError::Timeout) if is_write || is_wanted() => {}
                Err(RecvTimeoutError::Timeout) => {
                    let mut state = self.shared.lock();
                    if state.jobs.remove(&tag).is_some() {
                        state.broker.cancel(tag, monotonic_ns());
                    }
                    return Err(DiskError::Ended);
                }
            }
        }
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<(), DiskError> {
        let is_whole = offset.is_multiple_of(DIRECT_BLOCK) && bytes.is_multiple_of(DIRECT_BLOCK);
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.shared.length);
        if is_whole && is_inside && bytes > 0 && bytes <= LONGEST_REQUEST {
            return Ok(());
        }
        Err(DiskError::BadInput(format!(
            "{bytes} bytes at {offset}: use multiples of {DIRECT_BLOCK} bytes, at most {LONGEST_REQUEST} of them, below {}",
            self.shared.length
        )))
    }
}

/// The thread: one operation after the other.
fn serve(shared: &Shared, mut device: impl Device) {
    let mut state = shared.lock();
    while !state.is_ending {
        let now = monotonic_ns();
        match state.broker.next(now) {
            Next::Issue(operation) => {
                let part = state.jobs.get(&operation.tag).filter(|job| job.is_write).map(|job| {
                    let from = (operation.offset - job.offset) as usize;
                    job.data[from..from + operation.bytes as usize].to_vec()
                });
                drop(state);
                let done = match part {
                    Some(part) => device.write(operation.offset, &part).map(|()| None),
                    None => device.read(operation.offset, operation.bytes).map(Some),
                };
                state = shared.lock();
                keep(&mut state, &operation, done);
            }
            Next::Wait(until) => {
                let left = Duration::from_nanos(until.saturating_sub(monotonic_ns()));
                state = shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            Next::Idle | Next::Busy => {
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
    state.broker.end(monotonic_ns());
    // Who waits learns that the service has ended.
    state.jobs.clear();
}

/// An operation has ended: its data, and the answer where it was the last one.
fn keep(state: &mut State, operation: &Operation, done: Result<Option<&[u8]>, horolog_sys::Error>) {
    let now = monotonic_ns();
    let finished = if done.is_ok() { state.broker.done(now) } else { state.broker.failed(now) };
    if let Some(job) = state.jobs.get_mut(&operation.tag) {
        match done {
            Ok(Some(data)) => {
                let from = (operation.offset - job.offset) as usize;
                job.data[from..from + data.len()].copy_from_slice(data);
            }
            Ok(None) => {}
            Err(error) => job.error = job.error.take().or(Some(error.to_string())),
        }
    }
    let Some(finished) = finished else { return };
    if let Some(job) = state.jobs.remove(&finished.tag) {
        state.failed += u64::from(job.error.is_some());
        let data = if job.is_write { Vec::new() } else { job.data };
        let answer = job.error.map_or(Ok(Answer { data, finished }), |why| Err(DiskError::Failed(why)));
        let _ = job.answer.send(answer);
    }
}

/// So many operations are measured where the longest time of one is not given, and the longest counts so many times.
const MEASURED: u64 = 500;
const MARGIN: u64 = 2;

/// How long operations take, measured: no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// How many there were.
    pub operations: u64,
    /// The median, ns.
    pub median_ns: u64,
    /// The longest, ns.
    pub longest_ns: u64,
    /// What an admission counts for one: twice the longest, ns.
    pub counted_ns: u64,
}

/// Measures operations of so many bytes, for an admission.
///
/// # Errors
/// Where the disk does not answer.
pub fn measure(device: &mut impl Device, bytes: u64) -> Result<Measured, DiskError> {
    let times = times(device, bytes, MEASURED)?;
    let (median_ns, longest_ns) = (times[times.len() / 2], times[times.len() - 1]);
    let counted_ns = longest_ns.saturating_mul(MARGIN);
    Ok(Measured { operations: MEASURED, median_ns, longest_ns, counted_ns })
}

/// How long operations of so many bytes at random places take, ns, ascending.
fn times(device: &mut impl Device, bytes: u64, operations: u64) -> Result<Vec<u64>, DiskError> {
    let places = (device.length().saturating_sub(bytes)) / DIRECT_BLOCK + 1;
    let mut random = horolog_draw::Random::new(operations);
    let mut times = Vec::new();
    for _ in 0..operations {
        let begun = monotonic_ns();
        device.read(random.below(places) * DIRECT_BLOCK, bytes.min(device.length()))?;
        times.push(monotonic_ns() - begun);
    }
    times.sort_unstable();
    Ok(times)
}
