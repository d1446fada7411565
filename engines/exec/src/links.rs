//! What the threads of a run hand over (decision 0009).
//!
//! A link is a ring of what its writer has published. The writer's thread alone writes it, and readers on any processor
//! take from it without waiting: they look afterwards whether the writer has begun to use the place again. Which publication a job takes
//! follows from its nominal arrival ([`horolog_sched::latched`]), so it makes no difference when its thread comes.
//!
//! A value is put there *before* its job's completion is taken from the clock. So whoever latches at an instant after the
//! completion finds it. Until the completion is known the value counts as there: it can be wrong only about a late publication.

use crate::arrivals::Job;
use crate::ring::Ring;
use crate::task_shared::TaskShared;
use horolog_model::{Arrival, System, Task, TaskId};
use horolog_sched::{Publication, latched};
use horolog_trace::{Kind, NO_JOB};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many publications a link remembers: a job that starts later than so many writer's jobs after its arrival latches nothing.
const REMEMBERED: u64 = 1024;
/// The fewest values that a link holds; the most are [`REMEMBERED`].
const FEWEST_VALUES: u64 = 16;
/// The completion of a job whose value is there and that has not been told.
const UNTOLD: u64 = 0;

/// One publication.
#[derive(Default)]
struct Entry {
    job: AtomicU64,
    nominal: AtomicU64,
    completed: AtomicU64,
    /// Bytes that were published.
    length: AtomicU64,
}

/// A link, shared by its tasks.
pub(crate) struct Link {
    /// Its place in the file.
    place: u64,
    name: String,
    /// The most bytes of a value.
    size: usize,
    /// How far a later publication may have an earlier instant: modes may change the deadline.
    spread: u64,
    /// Publications that were begun, and that are whole.
    begun: AtomicU64,
    whole: AtomicU64,
    entries: Box<[Entry]>,
    /// How many values are held, each as words.
    values: u64,
    words: Box<[AtomicU64]>,
}

/// What a latch took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Taken {
    /// The writer's job.
    job: u64,
    /// The bytes that were copied; `None`: they were overwritten meanwhile.
    length: Option<usize>,
}

impl Link {
    fn new(system: &System, place: usize) -> Link {
        let link = &system.links()[place];
        let size = link.size.unwrap_or(0) as usize;
        let values = values(system, place);
        let words = size.div_ceil(8) * values as usize;
        Link {
            place: place as u64,
            name: link.name.clone(),
            size,
            spread: spread(system, system.writer_of(place)),
            begun: AtomicU64::new(0),
            whole: AtomicU64::new(0),
            entries: (0..REMEMBERED).map(|_| Entry::default()).collect(),
            values,
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn entry(&self, number: u64) -> &Entry {
        &self.entries[(number % REMEMBERED) as usize]
    }

    fn value(&self, number: u64) -> &[AtomicU64] {
        let words = self.size.div_ceil(8);
        &self.words[(number % self.values) as usize * words..][..words]
    }

    /// Puts a value there. Only on the writer's thread.
    fn put(&self, job: u64, nominal: u64, value: &[u8]) {
        let number = self.begun.load(Ordering::Relaxed);
        self.begun.store(number + 1, Ordering::Relaxed);
        // Whoever sees a word of what follows sees that it was begun.
        fence(Ordering::Release);
        let entry = self.entry(number);
        entry.job.store(job, Ordering::Relaxed);
        entry.nominal.store(nominal, Ordering::Relaxed);
        entry.completed.store(UNTOLD, Ordering::Relaxed);
        entry.length.store(value.len() as u64, Ordering::Relaxed);
        for (word, bytes) in self.value(number).iter().zip(value.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
        self.whole.store(number + 1, Ordering::Release);
        // Everybody sees it before the clock is read for the completion.
        fence(Ordering::SeqCst);
    }

    /// The job of the last value has completed.
    fn complete(&self, at: u64) {
        let last = self.whole.load(Ordering::Relaxed).wrapping_sub(1);
        self.entry(last).completed.store(at, Ordering::Release);
    }

    /// Whether what was read of this publication, one of the last so many, was not overwritten meanwhile.
    fn was_whole(&self, number: u64, of: u64) -> bool {
        fence(Ordering::Acquire);
        self.begun.load(Ordering::Relaxed) <= number + of
    }

    /// The publication of this number, where it is remembered.
    fn publication(&self, number: u64) -> Option<Publication> {
        let entry = self.entry(number);
        let publication = Publication {
            job: entry.job.load(Ordering::Relaxed),
            nominal: entry.nominal.load(Ordering::Relaxed),
            completed: entry.completed.load(Ordering::Relaxed),
        };
        self.was_whole(number, REMEMBERED).then_some(publication)
    }

    /// Takes what a job that arrived at `at` gets. An error where that is not remembered any more.
    fn take(&self, at: u64, into: &mut [u8]) -> Result<Option<Taken>, Forgotten> {
        fence(Ordering::SeqCst);
        let whole = self.whole.load(Ordering::Acquire);
        let mut best: Option<(u64, Publication)> = None;
        for number in (0..whole).rev() {
            let Some(publication) = self.publication(number) else {
                if best.is_none() {
                    return Err(Forgotten);
                }
                break;
            };
            let before = best.map(|(_, before)| before);
            if before.is_some_and(|best| publication.nominal.saturating_add(self.spread) < best.nominal) {
                break;
            }
            let chosen = latched(before.into_iter().chain([publication]), at);
            if chosen.is_some() && chosen != before {
                best = Some((number, publication));
            }
        }
        let Some((number, Publication { job, .. })) = best else { return Ok(None) };
        let length = (self.entry(number).length.load(Ordering::Relaxed) as usize).min(into.len());
        for (bytes, word) in into[..length].chunks_mut(8).zip(self.value(number)) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes()[..bytes.len()]);
        }
        let is_whole = self.was_whole(number, self.values);
        Ok(Some(Taken { job, length: is_whole.then_some(length) }))
    }
}

/// So much was published since the job arrived that what it has to take is not known any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Forgotten;

/// How much the relative deadline of a task differs between modes.
fn spread(system: &System, id: TaskId) -> u64 {
    let of_modes = system.modes().iter().flat_map(|mode| &mode.tasks);
    let changed = of_modes.filter(|change| change.task == system.task(id).name).filter_map(|it| it.deadline);
    let all = || system.task(id).deadline.into_iter().chain(changed.clone());
    all().max().unwrap_or_default().saturating_sub(all().min().unwrap_or_default()).as_ns()
}

/// How many values a link holds: twice what a reader in time can need.
fn values(system: &System, place: usize) -> u64 {
    let writer = system.task(system.writer_of(place));
    let span = |task: &Task| {
        let deadline = task.deadline.or(task.separation()).map_or(0, |span| span.as_ns());
        deadline.saturating_add(task.jitter.as_ns())
    };
    let reach = system.readers_of(place).map(|id| span(system.task(id))).max().unwrap_or(0);
    let needed = match (&writer.arrival, writer.separation()) {
        (Arrival::Aperiodic { arrivals }, _) => arrivals.len() as u64,
        (_, Some(separation)) => span(writer).saturating_add(reach).div_ceil(separation.as_ns().max(1)) + 2,
        _ => 0,
    };
    needed.saturating_mul(2).clamp(FEWEST_VALUES, REMEMBERED)
}

/// The links of a run, by their place in the file.
pub(crate) fn all(system: &System) -> Vec<Arc<Link>> {
    (0..system.links().len()).map(|place| Arc::new(Link::new(system, place))).collect()
}

/// What a task publishes: the value that its job has given so far.
struct Written {
    link: Arc<Link>,
    value: Vec<u8>,
}

/// What a task's job has latched.
struct Read {
    link: Arc<Link>,
    taken: Option<Taken>,
    value: Box<[u8]>,
}

/// The links of one task, on its own thread.
struct Ends {
    written: Vec<Written>,
    read: Vec<Read>,
}

/// The links of a task; nothing for one without.
#[derive(Default)]
pub(crate) struct TaskLinks {
    ends: Option<Box<Mutex<Ends>>>,
}

impl TaskLinks {
    /// Of the task `id`, among those of the run.
    pub(crate) fn new(system: &System, id: TaskId, all: &[Arc<Link>]) -> TaskLinks {
        let written = all.iter().filter(|link| system.writer_of(link.place as usize) == id);
        let read = all.iter().filter(|link| system.readers_of(link.place as usize).any(|it| it == id));
        let written =
            written.map(|link| Written { link: link.clone(), value: Vec::with_capacity(link.size) });
        let read = read.map(|link| Read {
            link: link.clone(),
            taken: None,
            value: vec![0; link.size].into_boxed_slice(),
        });
        let ends = Ends { written: written.collect(), read: read.collect() };
        let has_any = !ends.written.is_empty() || !ends.read.is_empty();
        TaskLinks { ends: has_any.then(|| Box::new(Mutex::new(ends))) }
    }

    /// Whether the task has a link.
    pub(crate) fn has_any(&self) -> bool {
        self.ends.is_some()
    }

    /// The lock is only ever asked for by the task's own thread: nobody waits for it.
    fn lock(&self) -> Option<MutexGuard<'_, Ends>> {
        self.ends.as_ref().map(|ends| ends.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The job's code gives a value; whether the task has such a link and the value fits.
    pub(crate) fn publish(&self, link: &str, value: &[u8]) -> bool {
        let Some(mut ends) = self.lock() else { return false };
        let found = ends.written.iter_mut().find(|it| it.link.name == link && value.len() <= it.link.size);
        let Some(written) = found else { return false };
        written.value.clear();
        written.value.extend_from_slice(value);
        true
    }

    /// Whether the task writes a link of this name, and whether it reads it.
    pub(crate) fn ends_of(&self, link: &str) -> (bool, bool) {
        let Some(ends) = self.lock() else { return (false, false) };
        let is_written = ends.written.iter().any(|it| it.link.name == link);
        (is_written, ends.read.iter().any(|it| it.link.name == link))
    }

    /// The writer's job whose value the present job has latched.
    pub(crate) fn latched(&self, link: &str) -> Option<u64> {
        let ends = self.lock()?;
        ends.read.iter().find(|it| it.link.name == link)?.taken.map(|taken| taken.job)
    }

    /// Copies the value that the present job has latched; how many bytes it has.
    pub(crate) fn read(&self, link: &str, into: &mut [u8]) -> Option<usize> {
        let ends = self.lock()?;
        let read = ends.read.iter().find(|it| it.link.name == link)?;
        let length = read.taken?.length?;
        let copied = length.min(into.len());
        into[..copied].copy_from_slice(&read.value[..copied]);
        Some(length)
    }
}

impl TaskShared {
    /// The job starts at `now`: it takes what the links had at its arrival. On the task's own thread.
    pub(crate) fn latch(&self, job: &Job, now: u64) {
        let Some(mut ends) = self.links.lock() else { return };
        let mut overwritten = 0;
        for read in &mut ends.read {
            let taken = read.link.take(job.arrival, &mut read.value);
            read.taken = taken.unwrap_or_default();
            overwritten += u64::from(!matches!(taken, Ok(None | Some(Taken { length: Some(_), .. }))));
            if taken.is_ok() {
                let instance = read.taken.map_or(NO_JOB, |taken| taken.job);
                self.record(Kind::Latch, now, job.number, read.link.place, instance);
            }
        }
        drop(ends);
        if overwritten > 0 {
            self.tally().overwritten += overwritten;
        }
    }

    /// The job's code has ended: its values are there, before its completion is taken from the clock. On the task's own thread.
    pub(crate) fn put_values(&self, job: &Job) {
        let Some(mut ends) = self.links.lock() else { return };
        for Written { link, value } in &mut ends.written {
            link.put(job.number, job.deadline, value);
            value.clear();
        }
    }

    /// The job has completed at `now`: its values are published, on record in `ring`.
    pub(crate) fn publish_values(&self, ring: &Ring, job: &Job, now: u64) {
        let Some(ends) = self.links.lock() else { return };
        for Written { link, .. } in &ends.written {
            link.complete(now);
            self.record_in(ring, Kind::Publish, now, job.number, link.place, job.deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn link(size: u32) -> Arc<Link> {
        let text = format!(
            "[system]\nname = \"l\"\n[[task]]\nname = \"a\"\nperiod = \"10 ns\"\nwcet = \"1 ns\"\npriority = 1\n\
            [[link]]\nname = \"x\"\nfrom = \"a\"\nto = [\"a\"]\nsize = {size}\n"
        );
        all(&horolog_model::file::read(&text, "l.toml", &[]).expect("valid").0).remove(0)
    }

    /// The job whose value is taken at an instant.
    fn job(link: &Link, at: u64) -> Option<u64> {
        link.take(at, &mut [0]).expect("it is remembered").map(|taken| taken.job)
    }

    #[test]
    fn a_latch_takes_by_instant_and_not_by_order() {
        let link = link(9);
        let mut into = [0; 9];
        assert_eq!(link.take(100, &mut into), Ok(None));
        for job in 0..5 {
            link.put(job, 10 * job + 10, &[job as u8; 9]);
            link.complete(10 * job + 1);
        }
        let mut at = |at| {
            let taken = link.take(at, &mut into).expect("it is remembered");
            taken.map(|taken| (taken.job, taken.length, into[8]))
        };
        assert_eq!(at(9), None);
        assert_eq!(at(10), Some((0, Some(9), 0)));
        assert_eq!(at(39), Some((2, Some(9), 2)));
        assert_eq!(at(1_000), Some((4, Some(9), 4)));
    }

    #[test]
    fn a_late_value_is_there_from_its_completion_on() {
        let link = link(1);
        link.put(0, 10, &[7]);
        // Put there and not told: whoever latches now came after the job's code.
        assert_eq!(job(&link, 10), Some(0));
        link.complete(12);
        assert_eq!(job(&link, 11), None);
        assert_eq!(job(&link, 12), Some(0));
    }

    #[test]
    fn instances_are_remembered_for_longer_than_values() {
        let link = link(8);
        let last = 3 * REMEMBERED;
        for job in 0..last {
            link.put(job, job, &job.to_ne_bytes()[..(job % 9) as usize]);
            link.complete(job);
        }
        let (oldest, oldest_value) = (last - REMEMBERED, last - FEWEST_VALUES);
        assert_eq!(link.take(oldest - 1, &mut [0; 8]), Err(Forgotten));
        assert_eq!(link.take(oldest, &mut [0; 8]), Ok(Some(Taken { job: oldest, length: None })));
        let gone = Taken { job: oldest_value - 1, length: None };
        assert_eq!(link.take(oldest_value - 1, &mut [0; 8]), Ok(Some(gone)));
        let length = Some((oldest_value % 9) as usize);
        assert_eq!(link.take(oldest_value, &mut [0; 8]), Ok(Some(Taken { job: oldest_value, length })));
    }

    #[test]
    fn after_a_shorter_deadline_the_instant_decides() {
        let mut link = link(8);
        let spread = Arc::get_mut(&mut link).expect("alone");
        spread.spread = 15;
        for (job, nominal) in [(0, 10), (1, 30), (2, 20), (3, 25)] {
            link.put(job, nominal, &[]);
            link.complete(9);
        }
        assert_eq!([19, 20, 25, 29, 30].map(|at| job(&link, at)), [0, 2, 3, 3, 1].map(Some));
    }

    #[test]
    fn no_reader_sees_a_torn_value() {
        let link = link(4096);
        let ends = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (link, ends) = (link.clone(), ends.clone());
                std::thread::spawn(move || {
                    let (mut into, mut whole) = ([0_u8; 4096], 0_u64);
                    while !ends.load(Ordering::Relaxed) || whole == 0 {
                        let Ok(Some(Taken { job, length: Some(length) })) = link.take(u64::MAX, &mut into)
                        else {
                            continue;
                        };
                        assert_eq!(length, 4096);
                        assert!(into.iter().all(|&byte| byte == job as u8), "job {job} is torn");
                        whole += 1;
                    }
                    whole
                })
            })
            .collect();
        for job in 0..20_000_u64 {
            link.put(job, job, &[job as u8; 4096]);
            link.complete(job);
        }
        ends.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().expect("no value is torn") > 0);
        }
    }
}
