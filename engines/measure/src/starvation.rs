//! When the kernel held a real-time thread back for less important ones: RT throttling and the fair server.

use horolog_sys::kernel_trace::{Class, KernelEvent, KernelEventKind, Thread};
use horolog_time::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One time during which ordinary threads, or nobody, had a CPU though a real-time thread wanted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Starvation {
    /// On which CPU.
    pub cpu: u32,
    /// From when, on `CLOCK_MONOTONIC` (ns).
    pub from_ns: u64,
    /// Until when (ns).
    pub until_ns: u64,
    /// The most important real-time thread that waited when it began.
    pub tid: u32,
}

impl Starvation {
    /// How long.
    pub fn length(&self) -> Span {
        Span::from_ns(self.until_ns.saturating_sub(self.from_ns))
    }
}

/// Follows the kernel's record and finds starvation.
///
/// A time of starvation begins at a switch *to* an ordinary thread (or to idle) while a real-time thread of that CPU
/// is runnable: the scheduler itself chose so, which it does only while the real-time class is throttled or the fair
/// server runs. A wake-up that waits for the switch that follows it is ordinary latency and does not count. It ends at
/// the next switch to a real-time thread.
///
/// # Assumptions
/// The watched threads are pinned (one that may migrate can run where nobody looks), and keep a real-time class while
/// they wait. Without a list every SCHED_FIFO or SCHED_RR thread is watched, pinned or not. SCHED_DEADLINE threads are
/// never watched: their own server holds them back by design. A thread first seen waiting is known only from its
/// first record on.
///
/// ```
/// use horolog_measure::starvation::StarvationWatch;
/// let mut watch = StarvationWatch::new([]);
/// let found: Vec<_> = [].iter().filter_map(|event| watch.event(event)).collect();
/// assert!(found.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct StarvationWatch {
    watched: BTreeSet<u32>,
    cpus: BTreeMap<u32, CpuState>,
}

#[derive(Clone, Debug, Default)]
struct CpuState {
    /// Runnable real-time threads that do not have the CPU, by priority and id.
    waiting: BTreeSet<(u8, u32)>,
    began: Option<(u64, u32)>,
}

impl StarvationWatch {
    /// Watches these threads; none: every real-time thread.
    #[must_use]
    pub fn new(threads: impl IntoIterator<Item = u32>) -> StarvationWatch {
        StarvationWatch { watched: threads.into_iter().collect(), cpus: BTreeMap::new() }
    }

    /// Takes the next event in time order; a time of starvation that ends with it is handed out.
    pub fn event(&mut self, event: &KernelEvent) -> Option<Starvation> {
        match event.kind {
            KernelEventKind::Switch { prev, prev_state, next } => {
                let wants_on = prev_state.is_runnable().then(|| self.watched_priority(&prev)).flatten();
                self.forget(next.tid);
                let cpu = self.cpus.entry(event.cpu).or_default();
                cpu.waiting.retain(|(_, tid)| *tid != prev.tid);
                if let Some(priority) = wants_on {
                    cpu.waiting.insert((priority, prev.tid));
                }
                cpu.switched_to(event, &next)
            }
            KernelEventKind::Wakeup { thread, .. } => {
                if let Some(priority) = self.watched_priority(&thread) {
                    self.forget(thread.tid);
                    self.cpus.entry(event.cpu).or_default().waiting.insert((priority, thread.tid));
                }
                None
            }
            KernelEventKind::Lost(_) | KernelEventKind::MissedSwitch => {
                // What happened in the gap is unknown: start afresh rather than guess.
                self.cpus.remove(&event.cpu);
                None
            }
            _ => None,
        }
    }

    /// All of a finished recording.
    #[must_use]
    pub fn find(threads: impl IntoIterator<Item = u32>, events: &[KernelEvent]) -> Vec<Starvation> {
        let mut watch = StarvationWatch::new(threads);
        events.iter().filter_map(|event| watch.event(event)).collect()
    }

    fn watched_priority(&self, thread: &Thread) -> Option<u8> {
        match thread.class() {
            Class::RealTime(priority) if self.watched.is_empty() || self.watched.contains(&thread.tid) => {
                Some(priority)
            }
            _ => None,
        }
    }

    /// A thread waits on one CPU at most.
    fn forget(&mut self, tid: u32) {
        for cpu in self.cpus.values_mut() {
            cpu.waiting.retain(|(_, waiting)| *waiting != tid);
        }
    }
}

impl CpuState {
    fn switched_to(&mut self, event: &KernelEvent, next: &Thread) -> Option<Starvation> {
        match next.class() {
            Class::Ordinary | Class::Idle => {
                if self.began.is_none() {
                    self.began = self.waiting.last().map(|(_, tid)| (event.time_ns, *tid));
                }
                None
            }
            Class::RealTime(_) | Class::Deadline => self.began.take().map(|(from_ns, tid)| Starvation {
                cpu: event.cpu,
                from_ns,
                until_ns: event.time_ns,
                tid,
            }),
        }
    }
}

/// What the times of starvation of one CPU have in common: the fair server's budget and period where they repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldBack {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub total: Span,
    /// Median length: the server's budget.
    pub length: Span,
    /// Longest.
    pub longest: Span,
    /// Median time from the beginning of one to that of the next: the server's period. `None` for fewer than two.
    pub interval: Option<Span>,
    /// Whether it repeats like a server: three times at least, and most lengths and most intervals within a fifth of
    /// their medians.
    pub is_regular: bool,
}

impl HeldBack {
    /// Sums up the times of starvation of `cpu`, which must be in time order; `None` where there is none.
    #[must_use]
    pub fn infer(cpu: u32, found: &[Starvation]) -> Option<HeldBack> {
        let of_cpu: Vec<&Starvation> = found.iter().filter(|one| one.cpu == cpu).collect();
        let lengths: Vec<u64> = of_cpu.iter().map(|one| one.length().as_ns()).collect();
        let intervals: Vec<u64> =
            of_cpu.windows(2).map(|pair| pair[1].from_ns.saturating_sub(pair[0].from_ns)).collect();
        let is_regular = lengths.len() > 2 && cluster(&lengths) && cluster(&intervals);
        Some(HeldBack {
            is_regular,
            count: lengths.len() as u64,
            total: Span::from_ns(lengths.iter().fold(0, |sum, length| sum.saturating_add(*length))),
            length: median(&lengths)?,
            longest: Span::from_ns(*lengths.iter().max()?),
            interval: median(&intervals),
        })
    }
}

impl fmt::Display for HeldBack {
    /// What it looks like: a budget in every period where it repeats.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldBack { count, length, longest, interval, .. } = *self;
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let total = rounded(self.total);
        write!(f, "real-time threads were held back for less important ones {times}, {total} in all, ")?;
        let (length, longest) = (rounded(length), rounded(longest));
        match interval.filter(|_| self.is_regular).map(rounded) {
            Some(interval) => write!(
                f,
                "by {length} every {interval} in the median (longest {longest}): the budget and the period of the \
                 kernel's fair server or of RT throttling"
            ),
            None => write!(f, "{longest} at the longest, by the kernel's fair server or RT throttling"),
        }
    }
}

/// Four digits, which is more than such a measurement has.
fn rounded(span: Span) -> Span {
    let ns = span.as_ns();
    let unit = 10_u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(3));
    Span::from_ns(ns.saturating_add(unit / 2) / unit * unit)
}

/// Whether more than half of the values lie within a fifth of their median.
fn cluster(values: &[u64]) -> bool {
    let Some(middle) = median(values).map(Span::as_ns) else { return false };
    let near = values.iter().filter(|value| value.abs_diff(middle) <= middle / 5).count();
    2 * near > values.len()
}

/// The nearest-rank median.
fn median(values: &[u64]) -> Option<Span> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().checked_sub(1)? / 2).copied().map(Span::from_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_sys::kernel_trace::{Comm, State};

    const FIFO_90: i32 = 9;
    const NICE_0: i32 = 120;

    fn thread(tid: u32, prio: i32) -> Thread {
        Thread { tid, comm: Comm::default(), prio }
    }

    fn switch(time_ns: u64, prev: (u32, i32), letter: u8, next: (u32, i32)) -> KernelEvent {
        let kind = KernelEventKind::Switch {
            prev: thread(prev.0, prev.1),
            prev_state: State { letter, preempted: false },
            next: thread(next.0, next.1),
        };
        KernelEvent { time_ns, cpu: 1, kind }
    }

    fn wakeup(time_ns: u64, tid: u32, prio: i32) -> KernelEvent {
        KernelEvent {
            time_ns,
            cpu: 1,
            kind: KernelEventKind::Wakeup { thread: thread(tid, prio), waker_cpu: 0 },
        }
    }

    #[test]
    fn the_fair_server_shows_as_starvation() {
        let events = [
            switch(10, (7, FIFO_90), b'R', (20, NICE_0)),
            switch(30, (20, NICE_0), b'R', (21, NICE_0)),
            switch(60, (21, NICE_0), b'R', (7, FIFO_90)),
        ];
        let expected = Starvation { cpu: 1, from_ns: 10, until_ns: 60, tid: 7 };
        assert_eq!(StarvationWatch::find([], &events), [expected]);
        assert_eq!(StarvationWatch::find([8], &events), []);
    }

    #[test]
    fn wakeup_latency_and_sleep_are_no_starvation() {
        let events = [
            switch(10, (7, FIFO_90), b'S', (20, NICE_0)),
            wakeup(30, 7, FIFO_90),
            switch(35, (20, NICE_0), b'R', (7, FIFO_90)),
            switch(50, (7, FIFO_90), b'S', (20, NICE_0)),
        ];
        assert_eq!(StarvationWatch::find([], &events), []);
    }

    #[test]
    fn an_idle_cpu_with_a_throttled_thread_is_starvation() {
        let events = [
            switch(10, (20, NICE_0), b'S', (0, NICE_0)),
            wakeup(30, 7, FIFO_90),
            switch(35, (0, NICE_0), b'R', (20, NICE_0)),
            switch(80, (20, NICE_0), b'S', (7, FIFO_90)),
        ];
        let found = StarvationWatch::find([7], &events);
        assert_eq!(found, [Starvation { cpu: 1, from_ns: 35, until_ns: 80, tid: 7 }]);
    }

    #[test]
    fn a_gap_in_the_record_forgets_what_waited() {
        let lost = KernelEvent { time_ns: 20, cpu: 1, kind: KernelEventKind::Lost(3) };
        let events = [
            wakeup(10, 7, FIFO_90),
            lost,
            switch(30, (21, NICE_0), b'R', (20, NICE_0)),
            switch(40, (20, NICE_0), b'R', (7, FIFO_90)),
        ];
        assert_eq!(StarvationWatch::find([], &events), []);
    }

    #[test]
    fn what_repeats_is_the_servers_budget_and_period() {
        let one = |cpu, from_ns, length| Starvation { cpu, from_ns, until_ns: from_ns + length, tid: 7 };
        let found = [one(1, 100, 50), one(0, 300, 9), one(1, 1_100, 54), one(1, 2_102, 51)];
        let held = HeldBack::infer(1, &found).unwrap();
        assert_eq!((held.count, held.total.as_ns(), held.longest.as_ns()), (3, 155, 54));
        assert_eq!((held.length.as_ns(), held.interval.map(Span::as_ns)), (51, Some(1_000)));
        assert_eq!(HeldBack::infer(0, &found).unwrap().interval, None);
        assert_eq!(HeldBack::infer(2, &found), None);
    }

    #[test]
    fn a_server_is_named_only_where_it_repeats() {
        let one = |from_ns, length| Starvation { cpu: 1, from_ns, until_ns: from_ns + length, tid: 7 };
        let ms = 1_000_000;
        let found = [one(0, 51 * ms), one(1_000 * ms, 50 * ms), one(2_000 * ms, 49 * ms)];
        assert_eq!(
            HeldBack::infer(1, &found).unwrap().to_string(),
            "real-time threads were held back for less important ones 3 times, 150 ms in all, by 50 ms every 1 s in \
             the median (longest 51 ms): the budget and the period of the kernel's fair server or of RT throttling"
        );
        // Pieces of all lengths are no server's.
        let pieces: Vec<Starvation> =
            (0..8).map(|n| one((n * n * n + 1) * ms, (n * n + 1) * 10_000)).collect();
        assert!(!HeldBack::infer(1, &pieces).unwrap().is_regular);
        assert_eq!(rounded(Span::from_ns(53_709_146)).as_ns(), 53_710_000);
        assert_eq!(
            HeldBack::infer(1, &found[..1]).unwrap().to_string(),
            "real-time threads were held back for less important ones once, 51 ms in all, 51 ms at the longest, by \
             the kernel's fair server or RT throttling"
        );
    }

    #[test]
    fn a_throttled_deadline_thread_is_not_watched() {
        let events = [switch(10, (7, -1), b'R', (20, NICE_0)), switch(60, (20, NICE_0), b'R', (7, -1))];
        assert_eq!(StarvationWatch::find([], &events), []);
    }
}
