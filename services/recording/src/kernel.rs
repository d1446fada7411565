//! The kernel's scheduling of the traced processes, merged in.

use crate::output::Output;
use horolog_measure::kernel_records::KernelRecords;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::kernel_trace::{KernelEvent, KernelEventKind, Recorder, RecorderOptions};
use horolog_trace::{LossCause, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Records the kernel and keeps what concerns threads of traced processes.
pub(crate) struct Kernel {
    recorder: Option<Recorder>,
    records: KernelRecords,
    tracked: Tracked,
    what: String,
}

/// Which threads belong to traced processes.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    processes: BTreeSet<u32>,
    /// The process of a thread; none where it is not traced.
    threads: BTreeMap<u32, Option<u32>>,
    /// Traced threads that have ended: their numbers may come again.
    ended: BTreeSet<u32>,
}

impl Tracked {
    /// The process of thread `tid`, where it is traced.
    fn process(&mut self, tid: u32) -> Option<u32> {
        if tid == 0 {
            return None;
        }
        let processes = &self.processes;
        *self.threads.entry(tid).or_insert_with(|| belongs(tid, processes))
    }

    /// Process `pid` is traced from now on.
    fn add(&mut self, pid: u32) {
        if self.processes.insert(pid) {
            // Whoever was met before may belong to it.
            self.threads.retain(|_, process| process.is_some());
        }
    }

    /// A thread has made another one, or a process, which may be gone before anybody can ask for it.
    fn forked(&mut self, parent: u32, child: u32, is_thread: bool) {
        if self.ended.remove(&child) {
            self.threads.remove(&child);
        }
        let process = if self.processes.contains(&child) {
            Some(child)
        } else {
            self.process(parent).map(|own| if is_thread { own } else { child })
        };
        // A session may have told it, too.
        if process.is_some() {
            self.threads.insert(child, process);
        }
    }

    /// A thread has ended; what the kernel tells of it still is its own.
    fn has_ended(&mut self, tid: u32) {
        if self.threads.get(&tid).is_some_and(Option::is_some) {
            self.ended.insert(tid);
        }
    }

    /// Forgets who is not traced: a number may come again.
    fn forget_strangers(&mut self) {
        self.threads.retain(|_, process| process.is_some());
    }
}

/// The traced process that a thread belongs to: its own, or an ancestor's child.
fn belongs(tid: u32, processes: &BTreeSet<u32>) -> Option<u32> {
    let (own, mut parent) = process_and_parent(tid)?;
    if processes.contains(&own) {
        return Some(own);
    }
    // A child that has no session (a static program): one of its ancestors has. Bounded, since parents may change.
    for _ in 0..32 {
        if processes.contains(&parent) {
            return Some(own);
        }
        parent = process_and_parent(parent)?.1;
    }
    None
}

fn process_and_parent(tid: u32) -> Option<(u32, u32)> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().parse::<u32>().ok()
    };
    Some((field("Tgid")?, field("PPid")?))
}

impl Kernel {
    /// Starts recording the kernel, where the machine allows it; else says why not.
    pub(crate) fn start(origin_ns: u64, ring_bytes: Option<u64>) -> Result<Kernel, horolog_sys::Error> {
        let mut options =
            RecorderOptions { interrupts: false, threads: true, ..RecorderOptions::new(online_cpus()?) };
        options.give(ring_bytes);
        let recorder = Recorder::start(&options)?;
        let what = format!("kernel scheduling ({:?})", recorder.choice().backend).to_lowercase();
        Ok(Kernel {
            recorder: Some(recorder),
            records: KernelRecords::new(origin_ns, []).with_all_sleeps(),
            tracked: Tracked::default(),
            what,
        })
    }

    /// Who records it, for the head.
    pub(crate) fn source(&self) -> &str {
        &self.what
    }

    /// Process `pid` is traced from now on.
    pub(crate) fn track(&mut self, pid: u32) {
        self.tracked.add(pid);
    }

    /// Thread `tid` belongs to process `pid`: known from its session, also where it has ended by now.
    pub(crate) fn track_thread(&mut self, pid: u32, tid: u32) {
        self.tracked.threads.insert(tid, Some(pid));
    }

    /// Hands on what the kernel has recorded since.
    pub(crate) fn pass<W: Write>(&mut self, output: &mut Output<W>) {
        let Some(recorder) = &self.recorder else { return };
        let events = recorder.drain();
        self.convert(&events, output);
        self.tracked.forget_strangers();
    }

    /// Counts what the kernel has recorded since, where no file takes any more.
    pub(crate) fn give_up<W: Write>(&mut self, output: &mut Output<W>) {
        if let Some(recorder) = &self.recorder {
            let events = recorder.drain();
            self.count(&events, output);
        }
    }

    fn count<W: Write>(&mut self, events: &[KernelEvent], output: &mut Output<W>) {
        for event in events {
            match event.kind {
                KernelEventKind::Lost(count) => output.count_lost(Some(LossCause::Kernel), count),
                _ if concerns(event, &mut self.tracked) => output.count_lost(Some(LossCause::Recorder), 1),
                _ => {}
            }
        }
        self.tracked.forget_strangers();
    }

    /// Stops, and hands on the rest, or only counts it; an error in words.
    pub(crate) fn stop<W: Write>(&mut self, output: &mut Output<W>, is_kept: bool) -> Option<String> {
        match self.recorder.take()?.stop() {
            Ok(recording) => {
                if is_kept {
                    self.convert(&recording.events, output);
                } else {
                    self.count(&recording.events, output);
                }
                None
            }
            Err(error) => Some(format!("the kernel's record ended early: {error}")),
        }
    }

    fn convert<W: Write>(&mut self, events: &[KernelEvent], output: &mut Output<W>) {
        let Kernel { records, tracked, .. } = self;
        let wanted: Vec<KernelEvent> =
            events.iter().filter(|event| concerns(event, tracked)).copied().collect();
        let mut converted: Vec<Record> = Vec::new();
        let mut name =
            |tid: u32, comm: &str, _: Option<u32>| output.kernel_thread(tracked.process(tid), tid, comm);
        records.convert(&wanted, &mut name, &mut converted);
        converted.into_iter().for_each(|record| output.kernel(record));
        for event in &wanted {
            let KernelEventKind::Switch { prev, next, .. } = event.kind else { continue };
            for thread in [prev, next].into_iter().filter(|thread| tracked.process(thread.tid).is_some()) {
                output.kernel_priority(thread.tid, thread.prio);
            }
        }
    }
}

/// Whether an event concerns a traced thread; losses always do. Events come in the order of time: who is made is known before it runs.
fn concerns(event: &KernelEvent, tracked: &mut Tracked) -> bool {
    match &event.kind {
        KernelEventKind::Switch { prev, next, .. } => {
            // Both are asked, so that both are known.
            let (prev, next) = (tracked.process(prev.tid), tracked.process(next.tid));
            prev.is_some() || next.is_some()
        }
        KernelEventKind::Wakeup { thread, .. } => tracked.process(thread.tid).is_some(),
        KernelEventKind::Fork { parent, child, is_thread } => {
            tracked.forked(*parent, *child, *is_thread);
            false
        }
        KernelEventKind::Exit { tid } => {
            tracked.has_ended(*tid);
            false
        }
        KernelEventKind::Lost(_) | KernelEventKind::MissedSwitch => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_belong_to_traced_processes_and_their_children() {
        let own = std::process::id();
        let mut tracked = Tracked::default();
        let tid = std::thread::spawn(horolog_sys::thread::id);
        let tid = tid.join().expect("ends");
        assert_eq!(tracked.process(own), None);
        tracked.add(own);
        assert_eq!((tracked.process(own), tracked.process(0)), (Some(own), None));
        assert_eq!(tracked.process(tid), None, "it has ended");
        tracked.forked(own, tid, false);
        assert_eq!(tracked.process(tid), Some(tid), "a process of its own");
        tracked.forked(own, tid, true);
        assert_eq!(tracked.process(tid), Some(own), "it was made by a traced one");
        tracked.forget_strangers();
        tracked.has_ended(tid);
        assert_eq!(tracked.process(tid), Some(own), "it leaves its processor after its end");
        tracked.forked(1, tid, true);
        assert_eq!(tracked.process(tid), None, "another one has its number");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("starts");
        assert_eq!(tracked.process(child.id()), Some(child.id()), "a child without a session");
        child.kill().expect("ends");
        child.wait().expect("ended");
    }
}
