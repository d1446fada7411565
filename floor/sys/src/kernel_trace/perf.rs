//! Recording through perf rings: one ring a CPU, one event a tracepoint and CPU.

use super::RecorderOptions;
use super::decode::Decoder;
use super::event::{KernelEvent, KernelEventKind};
use super::source::Source;
use crate::Error;
use crate::kernel_fs::KernelFs;
use crate::perf_event::{PerfEvent, Scope};
use crate::perf_ring::PerfRing;
use perf_event_open_sys::bindings as raw;

/// All rings of a recording.
#[derive(Debug)]
pub(super) struct PerfSource {
    decoder: Decoder,
    cpus: Vec<CpuRing>,
    scratch: Vec<u8>,
    lost_reported: u64,
}

/// The ring of one CPU and the events that write into it; the first one owns the ring.
#[derive(Debug)]
struct CpuRing {
    cpu: u32,
    ring: PerfRing,
    events: Vec<PerfEvent>,
}

/// Bytes of the ring of a CPU that is not recorded itself: it holds only wake-ups of threads for recorded CPUs.
const WAKER_RING: usize = 256 * 1024;

impl PerfSource {
    /// Opens everything, stopped.
    ///
    /// `recorded` are the CPUs to record; `online` all CPUs that may carry out a wake-up for them.
    pub(super) fn open(
        tracefs: &KernelFs,
        recorded: &[u32],
        online: &[u32],
        ring_bytes: usize,
        options: &RecorderOptions,
    ) -> Result<PerfSource, Error> {
        let mut decoder = Decoder::read(tracefs, options)?;
        let targets: Vec<String> = recorded.iter().map(|cpu| format!("target_cpu == {cpu}")).collect();
        let filter = targets.join(" || ");
        let mut cpus = Vec::new();
        for cpu in recorded {
            // The kernel does not let perf record what perf itself causes (irq_work_exit); the first CPU shows it.
            let (ring, refused) = open_cpu(&decoder, *cpu, ring_bytes, &filter, true)?;
            decoder.leave_out(&refused);
            cpus.push(ring);
        }
        for cpu in online.iter().filter(|cpu| !recorded.contains(cpu)) {
            cpus.push(open_cpu(&decoder, *cpu, WAKER_RING, &filter, false)?.0);
        }
        Ok(PerfSource { decoder, cpus, scratch: Vec::with_capacity(1 << 16), lost_reported: 0 })
    }
}

/// Refused optional tracepoints: what the pair has in common, and why.
type Refused = Vec<(&'static str, String)>;

/// Opens the events of one CPU; of a CPU that is not `recorded` only those that concern other CPUs.
fn open_cpu(
    decoder: &Decoder,
    cpu: u32,
    bytes: usize,
    filter: &str,
    recorded: bool,
) -> Result<(CpuRing, Refused), Error> {
    // Never woken in the normal case, since waking costs the recorded CPU an interrupt: the reader looks by itself.
    let watermark = u32::try_from(bytes / 4 * 3).unwrap_or(u32::MAX);
    let mut refused = Refused::new();
    let mut opened = Vec::new();
    for tracepoint in decoder.tracepoints.iter().filter(|tracepoint| recorded || tracepoint.has_target_cpu())
    {
        let name = format!("{}:{}", tracepoint.system, tracepoint.name);
        match PerfEvent::record(&name, tracepoint.id, Scope::Cpu(cpu), watermark) {
            Ok(event) => opened.push((tracepoint, event)),
            Err(error) if tracepoint.is_optional() => refused.push((tracepoint.pair(), error.what())),
            Err(error) => return Err(error),
        }
    }
    let mut ring = None;
    let mut events: Vec<PerfEvent> = Vec::new();
    for (tracepoint, event) in opened {
        if tracepoint.is_left_out(&refused) {
            continue;
        }
        if tracepoint.has_target_cpu() {
            event.filter(filter)?;
        } else if let Some(filter) = &tracepoint.filter {
            event.filter(filter)?;
        }
        match events.first() {
            None => ring = Some(PerfRing::map(&event, bytes)?),
            Some(first) => event.output_to(first)?,
        }
        events.push(event);
    }
    match ring {
        Some(ring) => Ok((CpuRing { cpu, ring, events }, refused)),
        None => Err(Error::unsupported("sched:sched_wakeup tracepoint", "this kernel is too old")),
    }
}

impl Source for PerfSource {
    fn start(&mut self) -> Result<(), Error> {
        self.cpus.iter().flat_map(|cpu| &cpu.events).try_for_each(PerfEvent::enable)
    }

    fn stop(&mut self) -> Result<(), Error> {
        self.cpus.iter().flat_map(|cpu| &cpu.events).try_for_each(PerfEvent::disable)
    }

    fn drain(&mut self, each: &mut dyn FnMut(KernelEvent)) -> Result<(), Error> {
        let PerfSource { decoder, cpus, scratch, lost_reported } = self;
        for CpuRing { cpu, ring, .. } in cpus {
            ring.drain(scratch, |kind, body| {
                if let Some(event) = decode(decoder, *cpu, kind, body) {
                    if let KernelEventKind::Lost(count) = event.kind {
                        *lost_reported += count;
                    }
                    each(event);
                }
            });
        }
        Ok(())
    }

    fn lost_unreported(&mut self) -> Result<u64, Error> {
        // The ring reports a loss only when a later record fits; the events' own counts are complete.
        let mut lost = 0;
        for event in self.cpus.iter().flat_map(|cpu| &cpu.events) {
            lost += event.read()?.lost.unwrap_or(0);
        }
        let unreported = lost.saturating_sub(self.lost_reported);
        self.lost_reported += unreported;
        Ok(unreported)
    }

    fn poll_descriptors(&self) -> Vec<i32> {
        self.cpus.iter().filter_map(|cpu| cpu.events.first()).map(PerfEvent::as_raw_fd).collect()
    }

    fn close(self: Box<Self>) {
        // Closing waits some 10 ms an event for all CPUs to leave the tracepoint; they are stopped, and nobody needs to
        // wait. A process that ends meanwhile closes them all the same.
        let _ = std::thread::Builder::new().name("horolog-close".to_owned()).spawn(move || drop(self));
    }

    fn unseen(&self) -> &[String] {
        &self.decoder.unseen
    }
}

/// Decodes one perf record of the ring of `cpu`.
fn decode(decoder: &Decoder, cpu: u32, kind: u32, body: &[u8]) -> Option<KernelEvent> {
    let u64_at = |offset: usize| Some(u64::from_ne_bytes(body.get(offset..offset + 8)?.try_into().ok()?));
    match kind {
        raw::PERF_RECORD_SAMPLE => {
            // Time (8), CPU (4) and reserved (4), length of the raw part (4), the raw part.
            let time_ns = u64_at(0)?;
            let from = u32::from_ne_bytes(body.get(8..12)?.try_into().ok()?);
            let length = u32::from_ne_bytes(body.get(16..20)?.try_into().ok()?) as usize;
            decoder.decode(time_ns, from, body.get(20..20_usize.checked_add(length)?)?)
        }
        raw::PERF_RECORD_LOST => {
            // Event (8), how many (8), then time (8) and CPU (8).
            Some(KernelEvent { time_ns: u64_at(16)?, cpu, kind: KernelEventKind::Lost(u64_at(8)?) })
        }
        _ => None,
    }
}
