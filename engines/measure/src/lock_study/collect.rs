//! From the sessions of running programs to the analysis, in the order of time.

use crate::critical_sections::{CriticalSections, Modules, NamedStudy, SectionOptions, ThreadKey, of_words};
use crate::losses::{by_cause, memory_note, remedy_for_locks, room_for_buffers};
use horolog_probe::clock::{Anchor, Timeline};
use horolog_probe::session::budget::cut;
use horolog_probe::session::{Connection, Listener, Losses};
use horolog_sys::Error;
use horolog_time::Instant;
use horolog_trace::LossCause;
use std::collections::{BTreeMap, HashMap};

/// How far apart the two clocks are read, ns. What is younger than the last reading waits for the next one: a record that
/// another ring gives later may be older.
const ANCHOR_EVERY_NS: u64 = 20_000_000;
/// Words of a lock event that the analysis reads; a module's event has ten.
const WORDS: usize = 10;
/// So many records of all processes together wait for their place in time, 14 MiB of them; the others stay in the rings, whose
/// memory has its own limit.
const MOST_WAITING: usize = 1 << 18;
/// New sessions of one round.
const MOST_ACCEPTED: usize = 256;
/// So many records are taken at once of a process that has ended, also where there is no room.
const LEAST_ROOM: usize = 1 << 14;
/// The fewest bytes that a record has in a ring.
const LEAST_RECORD: usize = 16;
/// So many threads are named.
const MOST_NAMES: usize = 1 << 14;
/// So many anchors are kept, one every 20 ms: the last 80 s at least. What is older has been handed on, unless a program was faster than
/// its reader for so long.
const MOST_ANCHORS: usize = 8192;

/// What an event's number stands for in its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    /// One of [`LOCK_EVENTS`].
    Lock(u8),
    Module,
    Other,
}

const LOCK_EVENTS: [&str; 6] =
    ["lock/acquire", "lock/acquired", "lock/refused", "lock/release", "lock/wait", "lock/woken"];

fn meaning(name: &str) -> Meaning {
    match LOCK_EVENTS.into_iter().position(|known| known == name) {
        Some(known) => Meaning::Lock(known as u8),
        None if name == "lock/module" => Meaning::Module,
        None => Meaning::Other,
    }
}

/// An event that waits for its place in time.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    ticks: u64,
    words: [u64; 5],
    thread: u32,
    cpu: u16,
    /// One of [`LOCK_EVENTS`].
    name: u8,
    count: u8,
}

/// One traced process.
#[derive(Debug)]
struct Traced {
    connection: Connection,
    process: u32,
    meanings: HashMap<u32, Meaning>,
    waiting: Vec<Waiting>,
    /// Up to these ticks everything has been taken out of its rings.
    taken_to: u64,
    timeline: Timeline,
    lost: Losses,
    /// How often in a row the process was found ended.
    found_ended: u32,
}

impl Traced {
    /// Reads both clocks.
    fn anchor(&mut self, tries: u32) {
        let taken = Anchor::take(self.timeline.clock(), tries);
        self.timeline.add(taken);
        self.timeline.keep_last(MOST_ANCHORS);
    }
}

/// After so many looks, 20 ms apart, the memory of a process that has ended is given up.
const LOOKS_AT_ENDED: u32 = 5;

/// Takes the sessions of programs and studies their lock events.
#[derive(Debug)]
pub(super) struct Collector {
    listener: Listener,
    /// Bytes of a ring.
    ring_bytes: u64,
    traced: Vec<Traced>,
    sections: CriticalSections,
    modules: Modules,
    /// How many records wait.
    waiting: usize,
    threads: BTreeMap<ThreadKey, String>,
    /// Threads beyond [`MOST_NAMES`] were seen.
    unnamed: bool,
    events: u64,
    other: u64,
    losses: BTreeMap<&'static str, u64>,
    /// Why the first refused session was refused.
    refused: Option<String>,
    /// Processes whose memory was given up.
    gone: usize,
    last_anchor_ns: u64,
    /// Whether every process that had connected was taken in the last round.
    has_taken_all: bool,
}

impl Collector {
    pub(super) fn new(listener: Listener, options: SectionOptions, ring_bytes: u64) -> Collector {
        Collector {
            listener,
            ring_bytes,
            traced: Vec::new(),
            sections: CriticalSections::new(options),
            modules: Modules::default(),
            waiting: 0,
            threads: BTreeMap::new(),
            unnamed: false,
            events: 0,
            other: 0,
            losses: BTreeMap::new(),
            refused: None,
            gone: 0,
            last_anchor_ns: 0,
            has_taken_all: false,
        }
    }

    /// Names what lies in a process that ran before, whose files no event tells.
    pub(super) fn name_process(&mut self, process: u32) {
        self.modules.add_process(process);
    }

    /// Events taken so far.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Processes that handed a session over.
    pub(super) fn processes(&self) -> usize {
        self.gone + self.traced.len()
    }

    /// The processes that have not ended.
    pub(super) fn running(&self) -> Vec<u32> {
        let runs = |traced: &&Traced| !traced.connection.reader.process().is_dead();
        self.traced.iter().filter(runs).map(|traced| traced.process).collect()
    }

    /// Whether every process that had connected before the last round was taken.
    pub(super) fn has_taken_all(&self) -> bool {
        self.has_taken_all
    }

    /// One round: new processes, new events; those that are old enough go to the analysis. Returns how many events came.
    pub(super) fn round(&mut self) -> u64 {
        self.accept();
        let now = horolog_sys::clock::monotonic_ns();
        let anchor = now.saturating_sub(self.last_anchor_ns) >= ANCHOR_EVERY_NS;
        if anchor {
            self.last_anchor_ns = now;
        }
        let mut came = 0;
        for index in 0..self.traced.len() {
            let traced = &mut self.traced[index];
            if anchor {
                traced.anchor(4);
            }
            let before_last = traced.timeline.anchors().iter().nth_back(1).map(|anchor| anchor.ticks);
            // No process takes the room of those that follow.
            came += self.take(index, self.room() / (self.traced.len() - index));
            if self.room() == 0 {
                let taken_to = self.traced[index].taken_to;
                self.hand_on(index, before_last.map_or(taken_to, |ticks| ticks.min(taken_to)));
                if self.room() == 0 {
                    // Order is given up before memory is.
                    self.hand_on(index, u64::MAX);
                }
            } else if let Some(until) = before_last.filter(|_| anchor || self.room() < MOST_WAITING / 2) {
                self.hand_on(index, until);
            }
        }
        self.events += came;
        if anchor {
            self.give_up_ended();
        }
        came
    }

    /// How many more records may wait.
    fn room(&self) -> usize {
        MOST_WAITING.saturating_sub(self.waiting)
    }

    /// Takes and hands on whatever there is from a process now.
    fn empty(&mut self, index: usize) {
        let Some(traced) = self.traced.get(index) else { return };
        let begun = traced.timeline.clock().ticks();
        // What rings hold: whoever writes on does not keep the study from its end.
        let sizes = traced.connection.reader.sizes();
        let held = u64::from(sizes.rings) * u64::from(sizes.ring_bytes);
        for _ in 0..held / (LEAST_ROOM * LEAST_RECORD) as u64 + 2 {
            self.events += self.take(index, self.room().max(LEAST_ROOM));
            let Some(traced) = self.traced.get(index) else { return };
            if traced.taken_to >= begun {
                break;
            }
            self.hand_on(index, traced.taken_to);
        }
        self.hand_on(index, u64::MAX);
    }

    /// Hands on what processes left that ended a while ago, and unmaps their memory.
    fn give_up_ended(&mut self) {
        for index in (0..self.traced.len()).rev() {
            let traced = &mut self.traced[index];
            let ended = traced.connection.reader.process().is_dead();
            traced.found_ended = if ended { traced.found_ended + 1 } else { 0 };
            if traced.found_ended >= LOOKS_AT_ENDED {
                self.empty(index);
                self.traced.remove(index);
                self.gone += 1;
            }
        }
    }

    fn accept(&mut self) {
        self.has_taken_all = false;
        // The others come in the next round.
        for _ in 0..MOST_ACCEPTED {
            match self.listener.accept() {
                Ok(Some(connection)) => {
                    let process = connection.reader.process().pid();
                    let mut timeline = Timeline::new(connection.reader.clock());
                    timeline.add(Anchor::take(connection.reader.clock(), 16));
                    self.traced.push(Traced {
                        connection,
                        process,
                        meanings: HashMap::new(),
                        waiting: Vec::new(),
                        taken_to: 0,
                        timeline,
                        lost: Losses::default(),
                        found_ended: 0,
                    });
                }
                Ok(None) => {
                    self.has_taken_all = true;
                    break;
                }
                Err(error) => {
                    self.refused.get_or_insert_with(|| error.to_string());
                    // A process that sent nothing does not hold up the next ones.
                    if !error.is_bad_input() {
                        break;
                    }
                }
            }
        }
    }

    /// Takes what is oldest in a process's buffers, about `most` records.
    fn take(&mut self, index: usize, most: usize) -> u64 {
        let Some(traced) = self.traced.get_mut(index) else { return 0 };
        let Traced { connection, meanings, waiting, .. } = traced;
        let before = waiting.len();
        let (mut other, mut unknown, mut lost) = (0, Vec::new(), Vec::new());
        let mut modules: Vec<[u64; WORDS]> = Vec::new();
        let mut keep = |meaning: Meaning, ticks, cpu, thread, words: &[u64]| match meaning {
            Meaning::Lock(name) => {
                let count = words.len().min(5);
                let mut kept = [0; 5];
                kept[..count].copy_from_slice(&words[..count]);
                waiting.push(Waiting { ticks, name, cpu, thread, words: kept, count: count as u8 });
            }
            Meaning::Module => modules.extend(<[u64; WORDS]>::try_from(words)),
            Meaning::Other => other += 1,
        };
        let (came, taken_to) = connection.reader.drain_within((most * LEAST_RECORD) as u64, |record| {
            match meanings.get(&record.event) {
                Some(meaning) => keep(*meaning, record.ticks, record.cpu, record.tid, record.args),
                None => {
                    unknown.push((record.event, record.ticks, record.cpu, record.tid, record.args.to_vec()))
                }
            }
        });
        for (event, ticks, cpu, thread, words) in unknown {
            // The directory holds a limited number of events; a record may have any number.
            if !meanings.contains_key(&event)
                && let Some(info) = connection.reader.event(event)
            {
                meanings.insert(event, meaning(&info.name));
            }
            match meanings.get(&event) {
                Some(found) => keep(*found, ticks, cpu, thread, &words),
                None => lost.push(thread),
            }
        }
        // Nothing waits for a time that is still to come, as only a wrong record has it.
        let now = traced.timeline.clock().ticks();
        traced.waiting[before..].iter_mut().for_each(|event| event.ticks = event.ticks.min(now));
        self.waiting += traced.waiting.len() - before;
        traced.taken_to = taken_to;
        let process = traced.process;
        for thread in lost {
            self.sections.lost(Some(ThreadKey { process, thread }), 1);
            *self.losses.entry(LossCause::Damaged.name()).or_default() += 1;
        }
        self.other += other;
        for words in modules {
            self.modules.event(process, &words);
        }
        came
    }

    /// Gives the analysis what happened up to `until` ticks, and of which nothing is left in a ring.
    fn hand_on(&mut self, index: usize, until: u64) {
        let Some(traced) = self.traced.get_mut(index) else { return };
        let process = traced.process;
        let until = if until == u64::MAX { until } else { until.min(traced.taken_to) };
        // Stable: events of one thread at one tick keep their order.
        traced.waiting.sort_by_key(|event| event.ticks);
        let ready = traced.waiting.partition_point(|event| event.ticks <= until);
        for event in traced.waiting.drain(..ready) {
            let key = ThreadKey { process, thread: event.thread };
            if !self.threads.contains_key(&key) {
                if self.threads.len() < MOST_NAMES {
                    self.threads.insert(key, thread_name(key));
                } else {
                    self.unnamed = true;
                }
            }
            let Some(time) = traced.timeline.to_ns(event.ticks).map(Instant::from_ns) else { continue };
            let words = &event.words[..usize::from(event.count)];
            let name = LOCK_EVENTS[usize::from(event.name)];
            if let Some(event) = of_words(name, words, time, event.cpu, key) {
                self.sections.event(&event);
            }
        }
        self.waiting -= ready;
        // What one busy moment took is not kept for good.
        traced.waiting.shrink_to(2 * ready.max(traced.waiting.len()));
        let now = traced.connection.reader.losses();
        let more = now.total().saturating_sub(traced.lost.total());
        if more > 0 {
            self.sections.lost(None, more);
            for ((cause, now), (_, before)) in by_cause(&now).into_iter().zip(by_cause(&traced.lost)) {
                *self.losses.entry(cause.name()).or_default() += now.saturating_sub(before);
            }
            traced.lost = now;
        }
    }

    /// The last round, and the result; `may_be_empty`: where no process handed a session over, there are no sections.
    ///
    /// # Errors
    /// Where no process handed a session over, with what was wrong with those that tried.
    pub(super) fn finish(mut self, may_be_empty: bool) -> Result<NamedStudy, Error> {
        self.last_anchor_ns = 0;
        self.round();
        for index in 0..self.traced.len() {
            self.traced[index].anchor(16);
            self.empty(index);
        }
        let mut missing = self.listener.budget().unrecorded_notes();
        missing.extend(cut(self.running()));
        if self.unnamed {
            missing.push(format!("threads beyond the first {MOST_NAMES} have a number and no name"));
        }
        if self.modules.is_cut() {
            missing.push(
                "program files beyond the limit were left out: call sites in them have no name".to_owned(),
            );
        }
        if self.processes() == 0 && !may_be_empty {
            let why = self
                .refused
                .as_ref()
                .or(missing.first())
                .cloned()
                .unwrap_or_else(|| "it never loaded the lock library".to_owned());
            return Err(Error::bad_input(
                "the program's locks",
                why,
                "see docs/concepts/critical-sections.md for what cannot be seen",
            ));
        }
        Ok(NamedStudy {
            study: self.sections.finish(),
            modules: self.modules,
            threads: self.threads,
            remedy: remedy_for_locks(
                &self.losses,
                self.listener.budget().limit(),
                self.ring_bytes,
                room_for_buffers(),
            ),
            losses: self.losses.into_iter().filter(|(_, count)| *count > 0).collect(),
            memory: memory_note(&self.listener),
            other_records: self.other,
            damage: None,
            missing,
        })
    }
}

/// The name of a thread as the kernel has it now, and its number.
fn thread_name(key: ThreadKey) -> String {
    let path = format!("/proc/{}/task/{}/comm", key.process, key.thread);
    match std::fs::read_to_string(path) {
        Ok(name) => format!("{} ({})", name.trim_end(), key.thread),
        Err(_) => format!("thread {}", key.thread),
    }
}
