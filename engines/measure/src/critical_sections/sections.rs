//! From lock events to critical sections, event by event.

use super::event::{LockAction, LockClass, LockEvent};
use super::hash::Table;
use super::statistics::{FINEST, Groups, Holder, Statistics, WorstSection, WorstWait};
use super::study::{Group, LockKey, SectionCounts, SiteKey, StillHeld, Study, ThreadKey};
use horolog_time::Instant;
use std::collections::BTreeMap;

/// Whose locks count for the nesting depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Nesting {
    /// Those of the requesting thread.
    #[default]
    Thread,
    /// Those acquired on the requesting processor and not yet released there, whoever holds them: the paper's
    /// definition. A section that ends on another processor than it began on is dropped.
    Processor,
}

/// How the analysis is done, and how much memory it may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SectionOptions {
    /// Whose locks count for the nesting depth.
    pub nesting: Nesting,
    /// Locks with statistics of their own.
    pub max_locks: usize,
    /// Threads with statistics of their own.
    pub max_threads: usize,
    /// Call sites with statistics of their own.
    pub max_sites: usize,
    /// Locks that one thread may hold at once.
    pub max_held: usize,
    /// Locks that all threads together may hold at once; 16 times as many threads may live.
    pub max_open: usize,
}

impl Default for SectionOptions {
    fn default() -> SectionOptions {
        SectionOptions {
            nesting: Nesting::Thread,
            max_locks: 4_096,
            max_threads: 1_024,
            max_sites: 4_096,
            max_held: 1_024,
            max_open: 65_536,
        }
    }
}

/// Who holds locks: a thread, or with [`Nesting::Processor`] a processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Actor {
    process: u32,
    number: u32,
}

/// Numbers of the groups that a section counts for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Places {
    class: LockClass,
    lock: u32,
    thread: u32,
    site: u32,
}

/// A section that has begun.
#[derive(Clone, Debug)]
struct Open {
    lock: u64,
    class: LockClass,
    thread: u32,
    cpu: u16,
    since: Instant,
    site: u64,
    /// How many times it was acquired (recursive mutexes, read locks).
    times: u32,
    /// Complete sections, ended since, that enclosed its acquisition.
    enclosed: u32,
    /// Ended sections that this one and all open ones before it enclosed, by their depth within ended ones: their whole
    /// depth is known when these have ended or been dropped.
    undecided: BTreeMap<(Places, u32), u64>,
}

/// A request without outcome yet.
#[derive(Clone, Copy, Debug)]
struct Request {
    lock: u64,
    class: LockClass,
    time: Instant,
    holder: Option<Holder>,
}

/// What is known of a thread besides what it holds.
#[derive(Clone, Copy, Debug)]
struct Thread {
    last: Instant,
    request: Option<Request>,
    /// Condition variable and since when.
    waiting: Option<(u64, Instant)>,
}

/// The analysis: give it the events in time order, then [`CriticalSections::finish`].
///
/// Memory: what is held, one entry a thread that lives, and the statistics up to the limits of [`SectionOptions`]; it does
/// not grow with the length of the trace.
///
/// ```
/// use horolog_measure::critical_sections::{CriticalSections, LockAction, LockClass, LockEvent, SectionOptions};
/// use horolog_time::Instant;
/// let mut sections = CriticalSections::new(SectionOptions::default());
/// for (ns, action) in [(0, LockAction::Acquired), (1_000, LockAction::Release)] {
///     let time = Instant::from_ns(ns);
///     let class = LockClass::Mutex;
///     sections.event(&LockEvent {
///         time, cpu: 0, process: 1, thread: 1, action, lock: 0xa, class, recursive: false, site: 0,
///     });
/// }
/// let study = sections.finish();
/// assert_eq!(study.class(LockClass::Mutex).unwrap().lengths.mean_ns(), Some(1_000.0));
/// ```
#[derive(Debug)]
pub struct CriticalSections {
    options: SectionOptions,
    held: Table<Actor, Vec<Open>>,
    threads: Table<ThreadKey, Thread>,
    /// Who holds each lock that is held.
    holders: Table<(u32, u64), Vec<Actor>>,
    classes: BTreeMap<LockClass, Statistics>,
    by_lock: Groups<LockKey>,
    by_thread: Groups<ThreadKey>,
    by_site: Groups<SiteKey>,
    counts: SectionCounts,
    open: usize,
    span: Option<(Instant, Instant)>,
}

impl CriticalSections {
    /// An analysis that has seen nothing.
    #[must_use]
    pub fn new(options: SectionOptions) -> CriticalSections {
        CriticalSections {
            options,
            held: Table::default(),
            threads: Table::default(),
            holders: Table::default(),
            classes: BTreeMap::new(),
            by_lock: Groups::new(options.max_locks),
            by_thread: Groups::new(options.max_threads),
            by_site: Groups::new(options.max_sites),
            counts: SectionCounts::default(),
            open: 0,
            span: None,
        }
    }

    /// The next event in time order; events of different threads may stand in any order that keeps each thread's own.
    pub fn event(&mut self, event: &LockEvent) {
        self.counts.events += 1;
        let key = ThreadKey { process: event.process, thread: event.thread };
        let blank = Thread { last: event.time, request: None, waiting: None };
        self.forget_idle_threads();
        let thread = self.threads.entry(key).or_insert(blank);
        if event.time < thread.last {
            self.counts.out_of_order += 1;
            return;
        }
        thread.last = event.time;
        let (first, last) = self.span.unwrap_or((event.time, event.time));
        self.span = Some((first.min(event.time), last.max(event.time)));
        match event.action {
            LockAction::Request => self.request(key, event),
            LockAction::Acquired => self.acquired(key, event),
            LockAction::Refused => self.refused(key, event),
            LockAction::Release => self.release(event),
            LockAction::Wait { condition } => {
                self.release(event);
                if let Some(thread) = self.threads.get_mut(&key) {
                    thread.waiting = Some((condition, event.time));
                }
            }
            LockAction::Woken { condition, holds } => {
                self.woken(key, condition, event);
                if holds {
                    self.enter(event);
                }
            }
        }
    }

    /// Events were lost: of this thread, or of nobody knows whom. What they held is unknown from here on.
    pub fn lost(&mut self, thread: Option<ThreadKey>, count: u64) {
        self.counts.lost = self.counts.lost.saturating_add(count);
        let concerned = |process: u32, number: u32| {
            thread.is_none_or(|key| key.process == process && key.thread == number)
        };
        let actors: Vec<Actor> = self.held.keys().copied().collect();
        for actor in actors {
            let mut index = self.held.get(&actor).map_or(0, Vec::len);
            while index > 0 {
                index -= 1;
                let owner = self.held.get(&actor).and_then(|held| held.get(index)).map(|open| open.thread);
                if owner.is_some_and(|owner| concerned(actor.process, owner)) {
                    self.counts.unmatched_acquisitions += 1;
                    self.end(actor, index, None);
                }
            }
        }
        for (key, state) in &mut self.threads {
            if concerned(key.process, key.thread) {
                state.request = None;
                state.waiting = None;
            }
        }
    }

    /// A thread has ended: what it still holds is never released by it, and its number may come back as another's.
    pub fn thread_ended(&mut self, key: ThreadKey) {
        self.lost(Some(key), 0);
        self.threads.remove(&key);
    }

    /// Keeps the table of threads within its limit: most of so many have ended long ago.
    fn forget_idle_threads(&mut self) {
        if self.threads.len() > self.options.max_open.saturating_mul(16) {
            self.threads.retain(|_, thread| thread.request.is_some() || thread.waiting.is_some());
            if self.threads.len() > self.options.max_open.saturating_mul(8) {
                self.threads.clear();
            }
        }
    }

    fn actor(&self, event: &LockEvent) -> Actor {
        let number = match self.options.nesting {
            Nesting::Thread => event.thread,
            Nesting::Processor => u32::from(event.cpu),
        };
        Actor { process: event.process, number }
    }

    fn request(&mut self, key: ThreadKey, event: &LockEvent) {
        let holder = self.holder_other_than(event);
        let Some(thread) = self.threads.get_mut(&key) else { return };
        let request = Request { lock: event.lock, class: event.class, time: event.time, holder };
        if thread.request.replace(request).is_some() {
            self.counts.abandoned_requests += 1;
        }
    }

    /// The other thread that keeps the requester waiting.
    fn holder_other_than(&self, event: &LockEvent) -> Option<Holder> {
        let holders = self.holders.get(&(event.process, event.lock))?;
        let opens = holders.iter().filter_map(|actor| self.held.get(actor)).flatten();
        let conflicting = |open: &&Open| {
            open.lock == event.lock
                && open.thread != event.thread
                && (event.class.is_exclusive() || open.class.is_exclusive())
        };
        let open = opens.filter(conflicting).min_by_key(|open| open.since)?;
        Some(Holder { thread: open.thread, site: open.site, since: open.since })
    }

    /// The thread's request, where it is one for this lock.
    fn answered(&mut self, key: ThreadKey, event: &LockEvent) -> Option<Request> {
        let request = self.threads.get_mut(&key)?.request.take()?;
        if request.lock == event.lock && request.class == event.class {
            return Some(request);
        }
        self.counts.abandoned_requests += 1;
        None
    }

    fn acquired(&mut self, key: ThreadKey, event: &LockEvent) {
        if let Some(request) = self.answered(key, event) {
            let wait = WorstWait {
                wait_ns: event.time.as_ns().saturating_sub(request.time.as_ns()),
                process: event.process,
                thread: event.thread,
                lock: event.lock,
                site: event.site,
                requested: request.time,
                holder: request.holder,
            };
            let places = self.places(event.process, event.thread, event.lock, event.class, event.site);
            self.for_each(places, |statistics| statistics.add_wait(&wait));
        }
        self.enter(event);
    }

    fn refused(&mut self, key: ThreadKey, event: &LockEvent) {
        let _ = self.answered(key, event);
        let places = self.places(event.process, event.thread, event.lock, event.class, event.site);
        self.for_each(places, |statistics| statistics.refused += 1);
    }

    fn woken(&mut self, key: ThreadKey, condition: u64, event: &LockEvent) {
        let waiting = self.threads.get_mut(&key).and_then(|thread| thread.waiting.take());
        let Some((_, since)) = waiting.filter(|(waited, _)| *waited == condition) else { return };
        let wait = WorstWait {
            wait_ns: event.time.as_ns().saturating_sub(since.as_ns()),
            process: event.process,
            thread: event.thread,
            lock: condition,
            site: event.site,
            requested: since,
            holder: None,
        };
        let places = self.places(event.process, event.thread, condition, LockClass::Condition, event.site);
        // A wait for a condition says nothing about the thread's waits for locks.
        for statistics in [
            self.classes.entry(LockClass::Condition).or_insert_with(|| Statistics::new(FINEST)),
            self.by_lock.at(places.lock),
            self.by_site.at(places.site),
        ] {
            statistics.condition_waits += 1;
            statistics.add_wait(&wait);
        }
        self.by_thread.at(places.thread).condition_waits += 1;
    }

    /// A section begins, or goes one deeper into a lock that the thread holds already.
    fn enter(&mut self, event: &LockEvent) {
        let actor = self.actor(event);
        if let Some(index) = self.position(actor, event.lock) {
            let open = self.held.get_mut(&actor).and_then(|held| held.get_mut(index));
            let again = |open: &Open| {
                let shared = (open.class, event.class) == (LockClass::Read, LockClass::Read);
                open.thread == event.thread && (shared || event.recursive)
            };
            if let Some(open) = open.filter(|open| again(open)) {
                open.times += 1;
                let places = self.places(event.process, event.thread, event.lock, event.class, event.site);
                self.for_each(places, |statistics| statistics.repeated += 1);
                return;
            }
        }
        self.drop_stale(event);
        let held = self.held.entry(actor).or_default();
        if held.len() >= self.options.max_held || self.open >= self.options.max_open {
            self.counts.too_deep += 1;
            return;
        }
        self.open += 1;
        held.push(Open {
            lock: event.lock,
            class: event.class,
            thread: event.thread,
            cpu: event.cpu,
            since: event.time,
            site: event.site,
            times: 1,
            enclosed: 0,
            undecided: BTreeMap::new(),
        });
        self.holders.entry((event.process, event.lock)).or_default().push(actor);
    }

    /// Whoever is shown to hold the lock cannot hold it any more, since this thread got it: that release was not seen.
    fn drop_stale(&mut self, event: &LockEvent) {
        let holders = self.holders.get(&(event.process, event.lock)).cloned().unwrap_or_default();
        for actor in holders {
            let Some(index) = self.position(actor, event.lock) else { continue };
            let class = self.held.get(&actor).and_then(|held| held.get(index)).map(|open| open.class);
            let shared = class == Some(LockClass::Read) && event.class == LockClass::Read;
            if !shared || actor == self.actor(event) {
                self.counts.unmatched_acquisitions += 1;
                self.end(actor, index, None);
            }
        }
    }

    fn release(&mut self, event: &LockEvent) {
        let own = self.actor(event);
        let actor = match (self.position(own, event.lock), self.options.nesting) {
            (Some(_), _) => own,
            (None, Nesting::Thread) => match self.exclusive_holder(event) {
                Some(other) => {
                    self.counts.released_by_another += 1;
                    other
                }
                None => return self.counts.unmatched_releases += 1,
            },
            (None, Nesting::Processor) => return self.counts.unmatched_releases += 1,
        };
        let Some(index) = self.position(actor, event.lock) else { return };
        let Some(open) = self.held.get_mut(&actor).and_then(|held| held.get_mut(index)) else { return };
        open.times -= 1;
        let interrupted = matches!(event.action, LockAction::Wait { .. });
        let places = (event.process, open.thread, open.lock, open.class, open.site);
        let ended = open.times == 0;
        if interrupted {
            let places = self.places(places.0, places.1, places.2, places.3, places.4);
            self.classes.entry(places.class).or_insert_with(|| Statistics::new(FINEST)).condition_waits += 1;
            self.by_lock.at(places.lock).condition_waits += 1;
        }
        if ended {
            self.end(actor, index, Some(event.time));
        }
    }

    fn exclusive_holder(&self, event: &LockEvent) -> Option<Actor> {
        let holders = self.holders.get(&(event.process, event.lock))?;
        holders.iter().copied().find(|actor| {
            let held = self.held.get(actor).into_iter().flatten();
            held.into_iter().any(|open| open.lock == event.lock && open.class.is_exclusive())
        })
    }

    /// The most recent section of this actor over this lock.
    fn position(&self, actor: Actor, lock: u64) -> Option<usize> {
        self.held.get(&actor)?.iter().rposition(|open| open.lock == lock)
    }

    /// Takes a section out of what the actor holds: complete at the time `ended`, or dropped.
    fn end(&mut self, actor: Actor, index: usize, ended: Option<Instant>) {
        let Some(held) = self.held.get_mut(&actor) else { return };
        let mut open = held.remove(index);
        self.open -= 1;
        let complete = u32::from(ended.is_some());
        // It enclosed all that follow it, and all that these have enclosed and that has ended.
        if ended.is_some() {
            for inner in held.iter_mut().skip(index) {
                inner.enclosed += 1;
                let undecided = std::mem::take(&mut inner.undecided);
                inner.undecided = undecided
                    .into_iter()
                    .map(|((places, depth), count)| ((places, depth + 1), count))
                    .collect();
            }
        }
        let emptied = held.is_empty();
        let mut decided: Vec<(Places, u32, u64)> = std::mem::take(&mut open.undecided)
            .into_iter()
            .map(|((places, depth), count)| (places, depth + complete, count))
            .collect();
        if let Some(time) = ended {
            let places = self.section(actor.process, &open, time);
            decided.push((places, open.enclosed, 1));
        }
        match index.checked_sub(1).and_then(|outer| self.held.get_mut(&actor)?.get_mut(outer)) {
            Some(outer) => {
                for (places, depth, count) in decided {
                    *outer.undecided.entry((places, depth)).or_insert(0) += count;
                }
            }
            None => {
                for (places, depth, count) in decided {
                    self.for_each(places, |statistics| statistics.add_depth(depth, count));
                }
            }
        }
        if emptied {
            self.held.remove(&actor);
        }
        if let Some(holders) = self.holders.get_mut(&(actor.process, open.lock)) {
            if let Some(place) = holders.iter().position(|holder| *holder == actor) {
                holders.swap_remove(place);
            }
            if holders.is_empty() {
                self.holders.remove(&(actor.process, open.lock));
            }
        }
    }

    fn section(&mut self, process: u32, open: &Open, ended: Instant) -> Places {
        self.counts.sections += 1;
        let section = WorstSection {
            length_ns: ended.as_ns().saturating_sub(open.since.as_ns()),
            process,
            thread: open.thread,
            lock: open.lock,
            class: open.class,
            cpu: open.cpu,
            acquired: open.since,
            site: open.site,
        };
        let places = self.places(process, open.thread, open.lock, open.class, open.site);
        self.for_each(places, |statistics| statistics.add_section(&section));
        places
    }

    fn places(&mut self, process: u32, thread: u32, lock: u64, class: LockClass, site: u64) -> Places {
        Places {
            class,
            lock: self.by_lock.number(LockKey { process, lock, class }),
            thread: self.by_thread.number(ThreadKey { process, thread }),
            site: self.by_site.number(SiteKey { process, site, class }),
        }
    }

    fn for_each(&mut self, places: Places, mut change: impl FnMut(&mut Statistics)) {
        change(self.classes.entry(places.class).or_insert_with(|| Statistics::new(FINEST)));
        change(self.by_lock.at(places.lock));
        change(self.by_thread.at(places.thread));
        change(self.by_site.at(places.site));
    }

    /// Ends the analysis: what is still held is dropped and listed.
    #[must_use]
    pub fn finish(mut self) -> Study {
        let mut still_held = Vec::new();
        for (actor, held) in &self.held {
            self.counts.still_held += held.len() as u64;
            still_held.extend(held.iter().map(|open| StillHeld {
                lock: LockKey { process: actor.process, lock: open.lock, class: open.class },
                thread: open.thread,
                since: open.since,
                site: open.site,
            }));
        }
        still_held.sort_by_key(|held| (held.since, held.lock, held.thread));
        still_held.truncate(64);
        let actors: Vec<(Actor, usize)> =
            self.held.iter().map(|(actor, held)| (*actor, held.len())).collect();
        for (actor, count) in actors {
            for index in (0..count).rev() {
                self.end(actor, index, None);
            }
        }
        let (locks, other_locks) = self.by_lock.take();
        let (threads, other_threads) = self.by_thread.take();
        let (sites, other_sites) = self.by_site.take();
        Study {
            classes: std::mem::take(&mut self.classes).into_iter().collect(),
            locks: Group { entries: locks, others: other_locks },
            threads: Group { entries: threads, others: other_threads },
            sites: Group { entries: sites, others: other_sites },
            counts: self.counts,
            still_held,
            span: self.span,
        }
    }
}
