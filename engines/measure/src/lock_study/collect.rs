//! From the sessions of running programs to the analysis, in the order of time.

use crate::critical_sections::{CriticalSections, Modules, NamedStudy, SectionOptions, ThreadKey, of_words};
use crate::losses::{by_cause, memory_note};
use horolog_probe::clock::{Anchor, Timeline};
use horolog_probe::session::budget::cut;
use horolog_probe::session::{Connection, Listener, Losses};
use horolog_sys::Error;
use horolog_time::Instant;
use std::collections::{BTreeMap, HashMap};

/// How far apart the two clocks are read, ns. What is younger than the last reading waits for the next one: a record that
/// another ring gives later may be older.
const ANCHOR_EVERY_NS: u64 = 20_000_000;
/// Words of a lock event that the analysis reads; a module's event has ten.
const WORDS: usize = 10;

/// What an event's number stands for in its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    Lock(&'static str),
    Module,
    Other,
}

const LOCK_EVENTS: [&str; 6] =
    ["lock/acquire", "lock/acquired", "lock/refused", "lock/release", "lock/wait", "lock/woken"];

fn meaning(name: &str) -> Meaning {
    match LOCK_EVENTS.into_iter().find(|known| *known == name) {
        Some(known) => Meaning::Lock(known),
        None if name == "lock/module" => Meaning::Module,
        None => Meaning::Other,
    }
}

/// An event that waits for its place in time.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    ticks: u64,
    name: &'static str,
    cpu: u16,
    thread: u32,
    words: [u64; 5],
    count: u8,
}

/// One traced process.
#[derive(Debug)]
struct Traced {
    connection: Connection,
    process: u32,
    meanings: HashMap<u32, Meaning>,
    waiting: Vec<Waiting>,
    timeline: Timeline,
    lost: Losses,
    /// How often in a row the process was found ended.
    found_ended: u32,
}

/// After so many looks, 20 ms apart, the memory of a process that has ended is given up.
const LOOKS_AT_ENDED: u32 = 5;

/// Takes the sessions of programs and studies their lock events.
#[derive(Debug)]
pub(super) struct Collector {
    listener: Listener,
    traced: Vec<Traced>,
    sections: CriticalSections,
    modules: Modules,
    threads: BTreeMap<ThreadKey, String>,
    events: u64,
    other: u64,
    losses: BTreeMap<&'static str, u64>,
    refused: Vec<String>,
    /// Processes whose memory was given up.
    gone: usize,
    last_anchor_ns: u64,
}

impl Collector {
    pub(super) fn new(listener: Listener, options: SectionOptions) -> Collector {
        Collector {
            listener,
            traced: Vec::new(),
            sections: CriticalSections::new(options),
            modules: Modules::default(),
            threads: BTreeMap::new(),
            events: 0,
            other: 0,
            losses: BTreeMap::new(),
            refused: Vec::new(),
            gone: 0,
            last_anchor_ns: 0,
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
            let until = self.traced[index].timeline.anchors().last().map(|anchor| anchor.ticks);
            if anchor {
                let traced = &mut self.traced[index];
                let taken = Anchor::take(traced.timeline.clock(), 4);
                traced.timeline.add(taken);
            }
            came += self.take(index);
            if let Some(until) = until.filter(|_| anchor) {
                self.hand_on(index, until);
            }
        }
        self.events += came;
        if anchor {
            self.give_up_ended();
        }
        came
    }

    /// Hands on what processes left that ended a while ago, and unmaps their memory.
    fn give_up_ended(&mut self) {
        for index in (0..self.traced.len()).rev() {
            let traced = &mut self.traced[index];
            let ended = traced.connection.reader.process().is_dead();
            traced.found_ended = if ended { traced.found_ended + 1 } else { 0 };
            if traced.found_ended >= LOOKS_AT_ENDED {
                self.events += self.take(index);
                self.hand_on(index, u64::MAX);
                self.traced.remove(index);
                self.gone += 1;
            }
        }
    }

    fn accept(&mut self) {
        loop {
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
                        timeline,
                        lost: Losses::default(),
                        found_ended: 0,
                    });
                }
                Ok(None) => return,
                Err(error) => return self.refused.push(error.to_string()),
            }
        }
    }

    /// Takes everything out of a process's buffers.
    fn take(&mut self, index: usize) -> u64 {
        let Some(traced) = self.traced.get_mut(index) else { return 0 };
        let Traced { connection, meanings, waiting, .. } = traced;
        let (mut other, mut unknown) = (0, Vec::new());
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
        let came = connection.reader.drain(|record| match meanings.get(&record.event) {
            Some(meaning) => keep(*meaning, record.ticks, record.cpu, record.tid, record.args),
            None => unknown.push((record.event, record.ticks, record.cpu, record.tid, record.args.to_vec())),
        });
        for (event, ticks, cpu, thread, words) in unknown {
            let found = *meanings.entry(event).or_insert_with(|| {
                connection.reader.event(event).map_or(Meaning::Other, |info| meaning(&info.name))
            });
            keep(found, ticks, cpu, thread, &words);
        }
        let process = traced.process;
        self.other += other;
        for words in modules {
            self.modules.event(process, &words);
        }
        came
    }

    /// Gives the analysis what happened up to `until` ticks.
    fn hand_on(&mut self, index: usize, until: u64) {
        let Some(traced) = self.traced.get_mut(index) else { return };
        let process = traced.process;
        // Stable: events of one thread at one tick keep their order.
        traced.waiting.sort_by_key(|event| event.ticks);
        let ready = traced.waiting.partition_point(|event| event.ticks <= until);
        for event in traced.waiting.drain(..ready) {
            let key = ThreadKey { process, thread: event.thread };
            self.threads.entry(key).or_insert_with(|| thread_name(key));
            let Some(time) = traced.timeline.to_ns(event.ticks).map(Instant::from_ns) else { continue };
            let words = &event.words[..usize::from(event.count)];
            if let Some(event) = of_words(event.name, words, time, event.cpu, key) {
                self.sections.event(&event);
            }
        }
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
            let traced = &mut self.traced[index];
            let last = Anchor::take(traced.timeline.clock(), 16);
            traced.timeline.add(last);
            self.events += self.take(index);
            self.hand_on(index, u64::MAX);
        }
        let mut missing = self.listener.budget().unrecorded_notes();
        missing.extend(cut(self.running()));
        if self.processes() == 0 && !may_be_empty {
            let why = self
                .refused
                .first()
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
