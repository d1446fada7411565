//! Recording through an instance of its own in tracefs.

use super::RecorderOptions;
use super::decode::Decoder;
use super::event::{KernelEvent, KernelEventKind};
use super::instance::{remove_instance, remove_stale};
use super::ring_page::{Entry, PageLayout};
use super::source::Source;
use crate::Error;
use crate::clock::monotonic_ns;
use crate::guardian::{Mark, note_instance};
use crate::kernel_fs::KernelFs;
use crate::rights::raise_file_rights;
use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// An instance with its own buffers, clock and filters: other users of tracefs notice nothing.
#[derive(Debug)]
pub(super) struct TracefsSource {
    tracefs: KernelFs,
    mark: Mark,
    instance: String,
    decoder: Decoder,
    layout: PageLayout,
    pipes: Vec<(u32, File)>,
    page: Vec<u8>,
    lost_reported: u64,
    is_stopped: bool,
}

/// Bytes of the buffer of a CPU that is not recorded itself.
const WAKER_RING: usize = 256 * 1024;
/// The largest page that a kernel is configured with (`buffer_subbuf_size_kb`), 64 KiB and more to spare.
const LARGEST_PAGE: usize = 128 * 1024;

impl TracefsSource {
    /// Makes the instance, stopped.
    pub(super) fn open(
        tracefs: KernelFs,
        recorded: &[u32],
        online: &[u32],
        ring_bytes: usize,
        options: &RecorderOptions,
    ) -> Result<TracefsSource, Error> {
        if !options.keeps_left_over {
            remove_stale(&tracefs);
        }
        let decoder = Decoder::read(&tracefs, options)?;
        let layout = PageLayout::read(&tracefs)?;
        let mark = Mark::fresh()?;
        let instance = format!("instances/{mark}");
        // First the guardian knows it, then it is made.
        note_instance(mark)?;
        let raised = raise_file_rights();
        fs::create_dir(tracefs.root().join(&instance)).map_err(|error| {
            Error::io(
                format!("mkdir(tracefs/{instance})"),
                &error,
                "run as root; the kernel needs trace instances (3.10)",
            )
        })?;
        drop(raised);
        let page = vec![0; LARGEST_PAGE];
        // From here on dropping the source removes the instance.
        let mut source = TracefsSource {
            tracefs,
            mark,
            instance,
            decoder,
            layout,
            pipes: Vec::new(),
            page,
            lost_reported: 0,
            is_stopped: false,
        };
        source.configure(recorded, online, ring_bytes)?;
        if !options.follow.is_empty() {
            // The kernel adds what they start, before its first instruction.
            source.write("options/event-fork", "1")?;
            let followed: Vec<String> = options.follow.iter().map(u32::to_string).collect();
            source.write("set_event_pid", &followed.join(" "))?;
        }
        for cpu in online {
            source.pipes.push((*cpu, source.pipe(*cpu)?));
        }
        Ok(source)
    }

    fn configure(&self, recorded: &[u32], online: &[u32], ring_bytes: usize) -> Result<(), Error> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono")?;
        for cpu in online {
            // The other CPUs only hold the wake-ups that they carry out for recorded ones.
            let bytes = if recorded.contains(cpu) { ring_bytes } else { ring_bytes.min(WAKER_RING) };
            self.write(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &(bytes / 1024).max(4).to_string())?;
        }
        let one_of = |field: &str| {
            let terms: Vec<String> = recorded.iter().map(|cpu| format!("{field} == {cpu}")).collect();
            terms.join(" || ")
        };
        for tracepoint in &self.decoder.tracepoints {
            let event = format!("events/{}/{}", tracepoint.system, tracepoint.name);
            let cpus = if tracepoint.has_target_cpu() { one_of("target_cpu") } else { one_of("CPU") };
            let filter = match &tracepoint.filter {
                Some(filter) => format!("({cpus}) && ({filter})"),
                None => cpus,
            };
            self.write(&format!("{event}/filter"), &filter)?;
            self.write(&format!("{event}/enable"), "1")?;
        }
        Ok(())
    }

    fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        self.tracefs.write(&format!("{}/{file}", self.instance), value)
    }

    fn pipe(&self, cpu: u32) -> Result<File, Error> {
        let path = format!("{}/per_cpu/cpu{cpu}/trace_pipe_raw", self.instance);
        let _raised = raise_file_rights();
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(self.tracefs.root().join(&path))
            .map_err(|error| Error::io(format!("open(tracefs/{path})"), &error, "run as root"))
    }
}

impl Source for TracefsSource {
    fn start(&mut self) -> Result<(), Error> {
        self.write("tracing_on", "1")
    }

    fn stop(&mut self) -> Result<(), Error> {
        self.write("tracing_on", "0")?;
        self.is_stopped = true;
        Ok(())
    }

    fn drain(&mut self, each: &mut dyn FnMut(KernelEvent)) -> Result<(), Error> {
        // Reading makes system calls, which may be on record themselves: what came after this is left to the next time.
        let until = if self.is_stopped { u64::MAX } else { monotonic_ns() };
        let TracefsSource { decoder, layout, pipes, page, lost_reported, .. } = self;
        for (cpu, pipe) in pipes {
            let mut latest = 0;
            while latest < until {
                let length = match pipe.read(page) {
                    Ok(0) => break,
                    Ok(length) => length,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        return Err(Error::io(format!("read(trace_pipe_raw of cpu {cpu})"), &error, ""));
                    }
                };
                let whole = layout.entries(&page[..length], &mut |entry| match entry {
                    Entry::Lost { time_ns, count } => {
                        *lost_reported += count;
                        each(KernelEvent { time_ns, cpu: *cpu, kind: KernelEventKind::Lost(count) });
                    }
                    Entry::Record { time_ns, data } => {
                        latest = latest.max(time_ns);
                        if let Some(event) = decoder.decode(time_ns, *cpu, data) {
                            each(event);
                        }
                    }
                });
                if whole.is_none() {
                    return Err(Error::unexpected(
                        format!("read(trace_pipe_raw of cpu {cpu})"),
                        "a page that is not understood",
                        "report this with the kernel's version",
                    ));
                }
            }
        }
        Ok(())
    }

    fn lost_unreported(&mut self) -> Result<u64, Error> {
        let mut lost = 0_u64;
        for (cpu, _) in &self.pipes {
            let stats = self.tracefs.read(&format!("{}/per_cpu/cpu{cpu}/stats", self.instance))?;
            for line in stats.lines() {
                if let Some(("overrun" | "dropped events", count)) = line.split_once(": ") {
                    lost = lost.saturating_add(count.trim().parse().unwrap_or(0));
                }
            }
        }
        let unreported = lost.saturating_sub(self.lost_reported);
        self.lost_reported += unreported;
        Ok(unreported)
    }

    fn poll_descriptors(&self) -> Vec<i32> {
        Vec::new()
    }

    fn close(self: Box<Self>) {
        drop(self);
    }

    fn unseen(&self) -> &[String] {
        &self.decoder.unseen
    }
}

impl Drop for TracefsSource {
    fn drop(&mut self) {
        self.pipes.clear();
        // What remains is removed by the guardian, or by the next recording.
        let _ = remove_instance(self.mark);
    }
}
