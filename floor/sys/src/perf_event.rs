//! `perf_event_open` on tracepoints: counting and recording, each with the clock that horolog uses.

use crate::Error;
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as raw;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

/// What an event watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything on one CPU.
    Cpu(u32),
    /// One thread, on whichever CPU.
    Thread(i32),
}

/// One open tracepoint event; stopped until [`PerfEvent::enable`].
#[derive(Debug)]
pub struct PerfEvent {
    fd: OwnedFd,
    name: String,
    counts_losses: bool,
}

/// What an event has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// How often the tracepoint passed the filter.
    pub count: u64,
    /// How many records did not fit into the ring; `None` where the kernel (before 6.0) does not say.
    pub lost: Option<u64>,
}

const REMEDY: &str = concat!(
    "run as root, or with CAP_PERFMON: `",
    crate::setcap_command!(),
    "`; or have root set kernel.perf_event_paranoid to -1"
);

impl PerfEvent {
    /// Opens tracepoint `id` for counting only.
    ///
    /// # Errors
    /// Where the kernel refuses; the text names the remedy.
    pub fn count(name: &str, id: u32, scope: Scope) -> Result<PerfEvent, Error> {
        let mut attributes = tracepoint(id);
        PerfEvent::open(name, &mut attributes, scope)
    }

    /// Opens tracepoint `id` for recording with `CLOCK_MONOTONIC` times into a ring; the reader is woken when
    /// `watermark` bytes lie unread.
    ///
    /// # Errors
    /// Where the kernel refuses; the text names the remedy.
    pub fn record(name: &str, id: u32, scope: Scope, watermark: u32) -> Result<PerfEvent, Error> {
        let mut attributes = tracepoint(id);
        attributes.sample_period = 1;
        attributes.sample_type = u64::from(raw::PERF_SAMPLE_TIME)
            | u64::from(raw::PERF_SAMPLE_CPU)
            | u64::from(raw::PERF_SAMPLE_RAW);
        attributes.set_sample_id_all(1);
        attributes.set_watermark(1);
        attributes.wakeup_watermark = watermark;
        attributes.set_use_clockid(1);
        attributes.clockid = libc::CLOCK_MONOTONIC;
        PerfEvent::open(name, &mut attributes, scope)
    }

    /// Opens the kernel's software clock of one thread: it counts the thread's processor time in ns. Its ring gets a record
    /// with a `CLOCK_MONOTONIC` time of every switch to and from the thread, and readers are woken after each `period` ns of
    /// execution (at least 10,000).
    ///
    /// # Errors
    /// Where the kernel refuses; the text names the remedy.
    pub fn task_clock(tid: u32, period: u64) -> Result<PerfEvent, Error> {
        let mut attributes = raw::perf_event_attr {
            type_: raw::PERF_TYPE_SOFTWARE,
            size: size_of::<raw::perf_event_attr>() as u32,
            config: u64::from(raw::PERF_COUNT_SW_TASK_CLOCK),
            sample_type: u64::from(raw::PERF_SAMPLE_TIME),
            ..Default::default()
        };
        attributes.sample_period = period;
        attributes.wakeup_events = 1;
        attributes.clockid = libc::CLOCK_MONOTONIC;
        attributes.set_disabled(1);
        attributes.set_sample_id_all(1);
        attributes.set_context_switch(1);
        attributes.set_use_clockid(1);
        PerfEvent::open("task-clock", &mut attributes, Scope::Thread(tid as i32))
    }

    /// Changes after how much more counting the next record is written and readers are woken.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn set_period(&self, period: u64) -> Result<(), Error> {
        // SAFETY: the descriptor is an open perf event; PERIOD reads one u64 through the pointer, which outlives the call.
        let rc = unsafe { perf::ioctls::PERIOD(self.fd.as_raw_fd(), (&raw const period) as u64) };
        self.check(rc, "PERF_EVENT_IOC_PERIOD")
    }

    /// Tries the processor's own cycle counter on the calling thread.
    ///
    /// # Errors
    /// Where the processor, the hypervisor or the kernel does not allow it.
    pub fn try_hardware_cycles() -> Result<(), Error> {
        let mut attributes = raw::perf_event_attr {
            type_: raw::PERF_TYPE_HARDWARE,
            size: size_of::<raw::perf_event_attr>() as u32,
            config: u64::from(raw::PERF_COUNT_HW_CPU_CYCLES),
            ..Default::default()
        };
        attributes.set_disabled(1);
        PerfEvent::open("cycles", &mut attributes, Scope::Thread(0)).map(drop)
    }

    fn open(name: &str, attributes: &mut raw::perf_event_attr, scope: Scope) -> Result<PerfEvent, Error> {
        let (pid, cpu, place) = match scope {
            Scope::Cpu(cpu) => (-1, cpu as i32, format!("on cpu {cpu}")),
            Scope::Thread(tid) => (tid, -1, format!("on thread {tid}")),
        };
        // Kernels before 6.0 know no PERF_FORMAT_LOST; there the losses come from the ring alone.
        for counts_losses in [true, false] {
            attributes.read_format = if counts_losses { u64::from(raw::PERF_FORMAT_LOST) } else { 0 };
            // SAFETY: `attributes` is a fully initialised perf_event_attr of the stated size.
            let fd = unsafe {
                perf::perf_event_open(attributes, pid, cpu, -1, u64::from(raw::PERF_FLAG_FD_CLOEXEC))
            };
            if fd >= 0 {
                // SAFETY: the kernel just gave this descriptor to us, and nobody else owns it.
                let fd = unsafe { OwnedFd::from_raw_fd(fd) };
                return Ok(PerfEvent { fd, name: name.to_owned(), counts_losses });
            }
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            if errno != libc::EINVAL || !counts_losses {
                return Err(Error::os(format!("perf_event_open({name}) {place}"), errno, remedy_for(errno)));
            }
        }
        unreachable!("the second round returns")
    }

    /// The descriptor, for polling.
    #[must_use]
    pub fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Starts it.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn enable(&self) -> Result<(), Error> {
        // SAFETY: the descriptor is an open perf event; ENABLE takes no pointer.
        let rc = unsafe { perf::ioctls::ENABLE(self.fd.as_raw_fd(), 0) };
        self.check(rc, "PERF_EVENT_IOC_ENABLE")
    }

    /// Stops it.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn disable(&self) -> Result<(), Error> {
        // SAFETY: the descriptor is an open perf event; DISABLE takes no pointer.
        let rc = unsafe { perf::ioctls::DISABLE(self.fd.as_raw_fd(), 0) };
        self.check(rc, "PERF_EVENT_IOC_DISABLE")
    }

    /// Sends its records into the ring of `other`, which must be on the same CPU.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn output_to(&self, other: &PerfEvent) -> Result<(), Error> {
        // SAFETY: both descriptors are open perf events; SET_OUTPUT takes no pointer.
        let rc = unsafe { perf::ioctls::SET_OUTPUT(self.fd.as_raw_fd(), other.fd.as_raw_fd()) };
        self.check(rc, "PERF_EVENT_IOC_SET_OUTPUT")
    }

    /// Lets only records through that match the kernel's filter expression, as in `target_cpu == 1`.
    ///
    /// # Errors
    /// Where the expression is not understood.
    pub fn filter(&self, expression: &str) -> Result<(), Error> {
        let text = CString::new(expression)
            .map_err(|_| Error::bad_input(format!("filter {expression:?}"), "it holds a zero byte", ""))?;
        // SAFETY: the string is zero-terminated and outlives the call; the kernel only reads it.
        let rc = unsafe { perf::ioctls::SET_FILTER(self.fd.as_raw_fd(), text.as_ptr().cast_mut()) };
        self.check(rc, &format!("PERF_EVENT_IOC_SET_FILTER({expression})"))
    }

    /// What it has counted so far.
    ///
    /// # Errors
    /// Where the descriptor cannot be read.
    pub fn read(&self) -> Result<Reading, Error> {
        let mut values = [0_u64; 2];
        let bytes = if self.counts_losses { 16 } else { 8 };
        // SAFETY: `values` has room for the 8 or 16 bytes that this read format yields.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), values.as_mut_ptr().cast(), bytes) };
        if got == bytes as isize {
            Ok(Reading { count: values[0], lost: self.counts_losses.then_some(values[1]) })
        } else {
            Err(Error::last_os(format!("read(perf event {})", self.name), ""))
        }
    }

    fn check(&self, rc: i32, call: &str) -> Result<(), Error> {
        if rc >= 0 { Ok(()) } else { Err(Error::last_os(format!("{call} on {}", self.name), "")) }
    }
}

/// Attributes of tracepoint `id`, stopped.
fn tracepoint(id: u32) -> raw::perf_event_attr {
    let mut attributes = raw::perf_event_attr {
        type_: raw::PERF_TYPE_TRACEPOINT,
        size: size_of::<raw::perf_event_attr>() as u32,
        config: u64::from(id),
        ..Default::default()
    };
    attributes.set_disabled(1);
    attributes
}

/// What helps against this refusal of `perf_event_open`.
fn remedy_for(errno: i32) -> &'static str {
    match errno {
        libc::EMFILE => "raise the limit on open files (`ulimit -n`)",
        libc::ESRCH => "the thread has ended",
        libc::ENODEV | libc::EINVAL => "this kernel cannot record there; is the CPU online?",
        _ => REMEDY,
    }
}
