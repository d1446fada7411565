//! The sessions of all traced processes: received, drained, and given up once their process has gone.

use crate::RecordingError;
use crate::clock::Clock;
use horolog_measure::losses::{by_cause, memory_note};
use horolog_probe::clock::ClockKind;
use horolog_probe::ring::record::TEXTS;
use horolog_probe::session::budget::{Reason, cut};
use horolog_probe::session::liveness::{State, children, sent_to};
use horolog_probe::session::reader::EventInfo;
use horolog_probe::session::{Connection, Listener, Losses, RawRecord};
use horolog_sys::clock::{monotonic_ns, process_cpu_ns};
use horolog_sys::guardian::Folder;
use horolog_trace::{LossCause, escape};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

/// A session whose process has gone and left a record unfinished is read this much longer, so that a thread that died inside an emission is proven dead.
const LINGER_NS: u64 = 100_000_000;

/// How often it is looked whether a process has ended.
const LOOK_EVERY_NS: u64 = 16_000_000;

/// How often it is looked whether a process has children that have no session.
const CHILDREN_EVERY_NS: u64 = 100_000_000;

/// New sessions of one pass.
const MOST_ACCEPTED: usize = 256;

/// Twice the 32 bytes of an event of two arguments.
const RING_BYTES_PER_EVENT: u64 = 64;

/// Where the runtime is not loaded into a program that was seen.
const UNREACHED: &str = "that the runtime did not reach (static, for another C library, with privileges of its own, without \
                         its environment, or in a sandbox)";

/// What the records of sessions go to.
pub(crate) trait Tap {
    /// Process `pid` has handed a session over.
    fn joined(&mut self, pid: u32);
    /// An event.
    fn event(&mut self, event: &Emitted<'_>);
    /// `count` more events of a process were lost.
    fn lost(&mut self, pid: u32, cause: LossCause, count: u64);
}

/// One event of a traced process.
#[derive(Debug)]
pub(crate) struct Emitted<'a> {
    /// Which session, counted from 1.
    pub(crate) session: u64,
    /// Its process.
    pub(crate) pid: u32,
    /// When, on `CLOCK_MONOTONIC`.
    pub(crate) ns: u64,
    /// The thread, as it calls itself.
    pub(crate) tid: u32,
    /// The processor.
    pub(crate) cpu: u16,
    /// What it is called in its session.
    pub(crate) event: &'a EventInfo,
    /// The words of the arguments, as they are in the buffers.
    pub(crate) words: &'a [u64],
    /// Whether there are texts among them.
    pub(crate) has_texts: bool,
}

/// One record as it was read, before its event and its time are looked up.
#[derive(Clone, Copy, Debug)]
struct Raw {
    ticks: u64,
    event: u32,
    tid: u32,
    cpu: u16,
    passes: u16,
    has_texts: bool,
    /// The place of its words among those of the session.
    words_at: usize,
    words: usize,
}

/// A record whose event is not in the session's directory waits for so many passes: its number is given a moment before.
const PATIENCE: u16 = 50;

/// One session.
struct Traced {
    number: u64,
    pid: u32,
    connection: Connection,
    losses: Losses,
    /// What it may claim to have lost.
    claims: Claims,
    /// Since when its process has ended, or runs another program.
    closed_at: Option<u64>,
    /// Whether its process was seen running another program, which had not handed a session over.
    runs_another: bool,
    snapshots: u64,
    /// What the numbers of events mean; the session's directory is asked once an event.
    events: BTreeMap<u32, EventInfo>,
    /// Records that were read and not yet handed on, and the words of their arguments.
    batch: Vec<Raw>,
    words: Vec<u64>,
}

/// Receives and drains sessions. Dropping it closes the socket and its folder.
pub(crate) struct Sessions {
    /// The process that ran already; 0: none did.
    attached: u32,
    // Field order: the socket goes before its folder.
    listener: Listener,
    folder: Folder,
    live: Vec<Traced>,
    clock: Clock,
    joined: u64,
    refused: Vec<String>,
    /// How many were refused for each reason.
    refusals: BTreeMap<String, u64>,
    /// When the processes were looked at last.
    looked: u64,
    /// When the last pass was.
    passed: u64,
    /// How much later than the one before, and its records.
    pause_ns: u64,
    came: u64,
    /// Names of events that programs which have gone could have emitted.
    names: BTreeSet<String>,
    /// Programs that were seen running in a process that had a session, and had none themselves.
    unreached: u64,
    /// When the children of processes were looked at last.
    looked_at_children: u64,
    /// Children that had no session then.
    strangers: BTreeSet<u32>,
    /// Those that had none twice.
    never_came: BTreeSet<u32>,
    /// Whether every process that had connected was taken in the last pass.
    has_taken_all: bool,
}

/// So many reasons for which sessions were refused are told.
const MOST_REASONS: usize = 16;

fn refusal(count: u64, why: &str) -> String {
    match count {
        1 => format!("a session was refused: {why}"),
        _ => format!("{count} sessions were refused: {why}"),
    }
}

impl Sessions {
    /// `memory` is the limit of all rings in bytes; 0: the default.
    pub(crate) fn new(memory: u64) -> Result<Sessions, RecordingError> {
        let mut clock = Clock::new(ClockKind::of_this_machine());
        let folder = Folder::for_socket()?;
        let listener = Listener::bind_within(&folder.path().join("socket"), memory)?;
        clock.make_line();
        Ok(Sessions {
            listener,
            folder,
            attached: 0,
            live: Vec::new(),
            clock,
            joined: 0,
            refused: Vec::new(),
            refusals: BTreeMap::new(),
            looked: 0,
            passed: 0,
            pause_ns: 0,
            came: 0,
            names: BTreeSet::new(),
            unreached: 0,
            looked_at_children: 0,
            strangers: BTreeSet::new(),
            never_came: BTreeSet::new(),
            has_taken_all: false,
        })
    }

    /// A process that runs already is recorded: what it has emitted without a session before is no loss of this recording.
    pub(crate) fn attach(&mut self, pid: u32) {
        self.attached = pid;
    }

    /// Where processes hand their sessions over.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// How far converted times may be from the kernel's clock, so far.
    pub(crate) fn clock_error_ns(&self) -> u64 {
        self.clock.error_ns()
    }

    /// How many sessions were handed over.
    pub(crate) fn joined(&self) -> u64 {
        self.joined
    }

    /// How many are being read.
    pub(crate) fn live(&self) -> usize {
        self.live.len()
    }

    /// Notes why sessions were refused: a note for each reason, with their number.
    pub(crate) fn note_refused(&mut self, notes: &mut Vec<String>) {
        for why in std::mem::take(&mut self.refused) {
            // Whoever connects says what he likes.
            let is_told = self.refusals.contains_key(&why) || self.refusals.len() < MOST_REASONS;
            let why = if is_told { why } else { "other reasons".to_owned() };
            let count = self.refusals.entry(why.clone()).or_insert(0_u64);
            let before = refusal(*count, &why);
            *count += 1;
            match notes.iter_mut().find(|note| **note == before) {
                Some(note) => *note = refusal(*count, &why),
                None => notes.push(refusal(*count, &why)),
            }
        }
    }

    /// What is to be said about the memory of the rings: that its limit was reached.
    pub(crate) fn memory_note(&self) -> Option<String> {
        memory_note(&self.listener)
    }

    /// What is to be said about processes that are not recorded, or not to their end; `stays`: those that still run were
    /// started by this recorder.
    pub(crate) fn unrecorded_notes(&self, stays: bool) -> Vec<String> {
        let mut notes = self.listener.budget().unrecorded_notes();
        let left =
            self.live.iter().filter(|traced| stays && traced.closed_at.is_none()).map(|traced| traced.pid);
        notes.extend(cut(left.collect()));
        // Some of them have said themselves why they are not recorded.
        let budget = self.listener.budget();
        let known = budget.unrecorded(Reason::Filter) + budget.unrecorded(Reason::NotHandedOver);
        let now = self.live.iter().filter(|traced| traced.runs_another).count() as u64;
        let all = self.unreached + now + self.never_came.len() as u64;
        match all.saturating_sub(known.into()) {
            0 => {}
            1 => notes.push(format!("not recorded: 1 program {UNREACHED}")),
            count => notes.push(format!("not recorded: {count} programs {UNREACHED}")),
        }
        notes
    }

    /// Waits for new sessions: a few milliseconds, and less where so much came in the last pass that one thread could fill half a
    /// ring until then, or until `command` has ended.
    pub(crate) fn wait(&self, milliseconds: i32, command: Option<BorrowedFd<'_>>) {
        let rings = self.live.iter().map(|traced| traced.connection.reader.sizes().ring_bytes);
        let half_a_ring = u64::from(rings.min().unwrap_or(u32::MAX)) / RING_BYTES_PER_EVENT;
        let for_half_a_ring = half_a_ring.saturating_mul(self.pause_ns) / self.came.max(1) / 1_000_000;
        let milliseconds = milliseconds.min(i32::try_from(for_half_a_ring).unwrap_or(i32::MAX));
        self.listener.wait(command, milliseconds);
    }

    /// The processes that process `first` has started, or those have, which have neither ended nor handed a session over.
    pub(crate) fn on_their_way(&self, first: u32) -> BTreeSet<u32> {
        let mut found: BTreeSet<u32> = sent_to(&self.socket(), first).into_iter().collect();
        self.live.iter().filter(|traced| traced.closed_at.is_none()).for_each(|traced| {
            found.remove(&traced.pid);
        });
        found
    }

    /// These have had their time and handed nothing over.
    pub(crate) fn never_came(&mut self, processes: BTreeSet<u32>) {
        self.never_came.extend(processes);
    }

    /// Whether every process that had connected before the last pass was taken.
    pub(crate) fn has_taken_all(&self) -> bool {
        self.has_taken_all
    }

    /// The next pass looks whether processes have ended.
    pub(crate) fn look_again(&mut self) {
        self.looked = 0;
    }

    /// Takes new sessions and drains all.
    pub(crate) fn pass(&mut self, tap: &mut impl Tap) {
        self.came = 0;
        self.accept(tap);
        self.clock.anchor();
        let now = monotonic_ns();
        let look = now.saturating_sub(self.looked) >= LOOK_EVERY_NS;
        if look {
            self.looked = now;
        }
        (self.pause_ns, self.passed) = (now.saturating_sub(self.passed).min(1_000_000_000), now);
        for traced in &mut self.live {
            // Before its buffers are read: what it has published then is read all the same.
            let state =
                (look && traced.closed_at.is_none()).then(|| traced.connection.reader.process().state());
            traced.runs_another |= state == Some(State::RunsAnother);
            let Traced { number, pid, connection, events, batch, words, .. } = traced;
            self.came +=
                connection.reader.drain(|raw| match (events.get(&raw.event), self.clock.to_ns(raw.ticks)) {
                    (Some(event), Some(ns)) => tap.event(&Emitted {
                        session: *number,
                        pid: *pid,
                        ns,
                        tid: raw.tid,
                        cpu: raw.cpu,
                        event,
                        words: raw.args,
                        has_texts: raw.flags & TEXTS != 0,
                    }),
                    _ => batch.push(Raw::of(&raw, words)),
                });
            traced.hand_on(&self.clock, tap);
            traced.tell_losses(tap);
            if state == Some(State::Ended) {
                traced.closed_at = Some(now);
            }
        }
        if now.saturating_sub(self.looked_at_children) >= CHILDREN_EVERY_NS {
            self.looked_at_children = now;
            self.look_at_children();
        }
        let (names, unreached) = (&mut self.names, &mut self.unreached);
        self.live.retain(|traced| {
            let stays = traced.connection.reader.overwrites()
                || traced
                    .closed_at
                    .is_none_or(|closed| !traced.is_read() && now.saturating_sub(closed) < LINGER_NS);
            if !stays {
                traced.give_up(tap);
                names.extend(traced.names());
                *unreached += u64::from(traced.runs_another);
            }
            stays
        });
    }

    /// Looks for children of traced processes that have no session, twice: a child's session comes a moment after it.
    fn look_at_children(&mut self) {
        let known: BTreeSet<u32> = self.live.iter().map(|traced| traced.pid).collect();
        let children = self
            .live
            .iter()
            .filter(|traced| traced.closed_at.is_none())
            .flat_map(|traced| children(traced.pid));
        let strangers: BTreeSet<u32> = children.filter(|pid| !known.contains(pid)).collect();
        self.never_came.extend(strangers.intersection(&self.strangers));
        self.strangers = strangers;
    }

    /// The last word of those that are still read.
    pub(crate) fn give_up(&self, tap: &mut impl Tap) {
        self.live.iter().for_each(|traced| traced.give_up(tap));
    }

    /// Hands on what the overwriting rings of all sessions hold.
    pub(crate) fn snapshot(&mut self, tap: &mut impl Tap) {
        self.clock.anchor();
        for traced in &mut self.live {
            let Traced { connection, batch, words, .. } = traced;
            connection.reader.snapshot(|raw| batch.push(Raw::of(&raw, words)));
            traced.hand_on(&self.clock, tap);
            traced.tell_losses(tap);
        }
        // Whoever has gone was told now for the last time.
        let names = &mut self.names;
        self.live.retain(|traced| {
            if traced.closed_at.is_some() {
                traced.give_up(tap);
                names.extend(traced.names());
            }
            traced.closed_at.is_none()
        });
    }

    /// Whether a process has asked for a snapshot since the last call.
    pub(crate) fn snapshot_asked(&mut self) -> bool {
        let mut asked = false;
        for traced in &mut self.live {
            let count = traced.connection.reader.snapshots_requested();
            asked |= count != traced.snapshots;
            traced.snapshots = count;
        }
        asked
    }

    /// The names of all events that were enabled in any program; where one of the wanted names was unknown to a program,
    /// all that it has.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let mut names = self.names.clone();
        names.extend(self.live.iter().flat_map(Traced::names));
        names
    }

    /// Whether every session's process has gone.
    pub(crate) fn all_closed(&self) -> bool {
        self.live.iter().all(|traced| traced.closed_at.is_some())
    }

    fn accept(&mut self, tap: &mut impl Tap) {
        self.has_taken_all = false;
        // The others come in the next pass.
        for _ in 0..MOST_ACCEPTED {
            match self.listener.accept() {
                Ok(Some(connection)) => {
                    let pid = connection.reader.process().pid();
                    self.joined += 1;
                    // A process has one session: whatever it ran before was replaced by `exec`.
                    let now = monotonic_ns();
                    self.never_came.remove(&pid);
                    let is_of_it = |traced: &&mut Traced| traced.pid == pid && traced.closed_at.is_none();
                    for before in self.live.iter_mut().filter(is_of_it) {
                        self.clock.anchor();
                        before.closed_at = Some(now);
                        before.runs_another = false;
                        // Its last events belong to the program that emitted them.
                        let Traced { connection, batch, words, .. } = &mut *before;
                        self.came += connection.reader.drain(|raw| batch.push(Raw::of(&raw, words)));
                        before.hand_on(&self.clock, tap);
                    }
                    tap.joined(pid);
                    self.live.push(Traced {
                        number: self.joined,
                        pid,
                        losses: before_this(pid == self.attached, &connection.reader.losses()),
                        connection,
                        claims: Claims { asked_at: now, used_ns: 0, told: 0 },
                        closed_at: None,
                        runs_another: false,
                        snapshots: 0,
                        events: BTreeMap::new(),
                        batch: Vec::new(),
                        words: Vec::new(),
                    });
                }
                Ok(None) => {
                    self.has_taken_all = true;
                    return;
                }
                Err(error) => {
                    // A process that sent nonsense, or nothing, does not hold up the next ones. Another error would come again at once.
                    let is_of_sender = error.is_bad_input();
                    self.refused.push(error.to_string());
                    if !is_of_sender {
                        return;
                    }
                }
            }
        }
    }
}

impl Traced {
    fn names(&self) -> impl Iterator<Item = String> {
        self.connection.reader.events().into_iter().map(|event| escape(event.name))
    }

    /// Whether all was read and handed on that a process which has gone has left behind.
    fn is_read(&self) -> bool {
        self.batch.is_empty() && self.connection.reader.is_drained()
    }

    /// Records whose event has never become known are lost.
    fn give_up(&self, tap: &mut impl Tap) {
        if !self.batch.is_empty() {
            tap.lost(self.pid, LossCause::Damaged, self.batch.len() as u64);
        }
    }

    fn tell_losses(&mut self, tap: &mut impl Tap) {
        let (now, before) = (self.connection.reader.losses(), self.losses);
        let causes = by_cause(&now).into_iter().zip(by_cause(&before));
        self.claims.renew(process_cpu_ns(self.pid), monotonic_ns());
        for ((cause, now), (_, before)) in causes {
            // A counter that went backwards, or faster than any program can, is a hostile or damaged one: what it says is
            // not added.
            match now.checked_sub(before) {
                Some(0) => {}
                Some(count) if self.claims.takes(count) => tap.lost(self.pid, cause, count),
                _ => tap.lost(self.pid, LossCause::Damaged, 1),
            }
        }
        self.losses = now;
    }
}

/// What a session has lost that is no loss of this recording.
fn before_this(is_attached: bool, now: &Losses) -> Losses {
    let no_session = if is_attached { now.no_session } else { 0 };
    Losses { no_session, ..Losses::default() }
}

fn processors() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

/// The losses that a process counts itself, in memory that it may write: no more in all than it can have had in the processor
/// time that it has used.
struct Claims {
    /// When it was looked last how much that is.
    asked_at: u64,
    used_ns: u64,
    /// What was believed.
    told: u64,
}

impl Claims {
    /// `used_ns`: the processor time of the process so far; `None` once it has gone: it may have used every processor until then.
    fn renew(&mut self, used_ns: Option<u64>, now: u64) {
        let since = now.saturating_sub(self.asked_at);
        let most = || self.used_ns.saturating_add(since.saturating_mul(processors()));
        self.used_ns = used_ns.unwrap_or_else(most).max(self.used_ns);
        self.asked_at = now;
    }

    /// Whether it can have lost `count` more.
    fn takes(&mut self, count: u64) -> bool {
        let told = self.told.saturating_add(count);
        let is_possible = told <= most_lost(self.used_ns);
        if is_possible {
            self.told = told;
        }
        is_possible
    }
}

/// How many events a process can lose with so many nanoseconds of processor time: one in two, which is faster than any
/// processor emits, and those of a millisecond that the kernel has not added up yet.
fn most_lost(cpu_ns: u64) -> u64 {
    cpu_ns.saturating_add(1_000_000) / 2
}

impl Raw {
    /// Keeps a record, and its words behind `words`.
    fn of(raw: &RawRecord<'_>, words: &mut Vec<u64>) -> Raw {
        let words_at = words.len();
        words.extend_from_slice(raw.args);
        Raw {
            ticks: raw.ticks,
            event: raw.event,
            tid: raw.tid,
            cpu: raw.cpu,
            passes: 0,
            has_texts: raw.flags & TEXTS != 0,
            words_at,
            words: raw.args.len(),
        }
    }
}

impl Traced {
    /// Hands on every record whose event is known; the others wait for the next pass.
    fn hand_on(&mut self, clock: &Clock, tap: &mut impl Tap) {
        let (mut batch, words) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.words));
        batch.retain_mut(|raw| {
            let own = &words[raw.words_at..raw.words_at + raw.words];
            if !self.events.contains_key(&raw.event)
                && let Some(event) = self.connection.reader.event(raw.event)
            {
                self.events.insert(raw.event, event);
            }
            match (self.events.get(&raw.event), clock.to_ns(raw.ticks)) {
                (Some(event), Some(ns)) => tap.event(&Emitted {
                    session: self.number,
                    pid: self.pid,
                    ns,
                    tid: raw.tid,
                    cpu: raw.cpu,
                    event,
                    words: own,
                    has_texts: raw.has_texts,
                }),
                _ if raw.passes < PATIENCE => {
                    raw.passes += 1;
                    // It stays, and so do its words.
                    raw.words_at = self.words.len();
                    self.words.extend_from_slice(own);
                    return true;
                }
                _ => tap.lost(self.pid, LossCause::Damaged, 1),
            }
            false
        });
        self.batch = batch;
        if self.words.is_empty() {
            // Its memory serves the next pass.
            self.words = words;
            self.words.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_are_refused_are_counted_by_their_reason() {
        let mut sessions = Sessions::new(0).expect("sessions");
        let mut notes = vec!["before".to_owned()];
        for why in ["a", "b", "a", "a"] {
            sessions.refused.push(why.to_owned());
            sessions.note_refused(&mut notes);
        }
        assert_eq!(notes, ["before", "3 sessions were refused: a", "a session was refused: b"]);
        for number in 0..20 {
            sessions.refused.push(format!("reason {number}"));
        }
        sessions.note_refused(&mut notes);
        assert_eq!(notes.len(), 3 + 14 + 1);
        assert_eq!(notes.last().map(String::as_str), Some("6 sessions were refused: other reasons"));
    }

    #[test]
    fn no_program_loses_more_than_it_can_emit() {
        // The fastest refusal takes some nanoseconds of a processor.
        assert!(most_lost(4_000_000) >= 4_000_000 / 5);
        assert!(most_lost(u64::MAX) < u64::MAX);
        // Whoever does nothing but write over the counters is believed half a million in all, however often they are read.
        let mut claims = Claims { asked_at: 0, used_ns: 0, told: 0 };
        claims.renew(Some(0), 4_000_000);
        assert!(!claims.takes(500_001) && claims.takes(499_999));
        claims.renew(Some(0), 8_000_000);
        assert!(!claims.takes(2) && claims.takes(1) && !claims.takes(1));
        claims.renew(Some(10), 12_000_000);
        assert!(!claims.takes(6) && claims.takes(5));
        // One that has gone had every processor since, and no more than that.
        claims.renew(None, 12_000_100);
        let more = 50 * processors();
        assert!(!claims.takes(more + 1) && claims.takes(more));
        // A time that went backwards takes nothing away.
        claims.renew(Some(0), 12_000_100);
        assert!(claims.takes(0) && !claims.takes(1));
    }
}
