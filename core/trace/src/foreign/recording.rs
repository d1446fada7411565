//! Recordings of programs in horolog's own format (`trace record --kernel`): switches and wake-ups of their threads. Those of older versions
//! lack the state in which a thread left its processor.

use super::{Event, EventKind, Source};
use crate::file::{Reader, Thread};
use crate::{Kind, LossCause, Record, TraceError};
use std::collections::{HashMap, HashSet};
use std::io::Read;

/// The backend of a recording's head.
const SESSION: &str = "session";

/// The kernel's number of every idle thread.
const IDLE: u32 = 0;

/// Whether a trace is a recording of programs, and not of a run or a simulation.
#[must_use]
pub fn is_recording<R: Read>(reader: &Reader<R>) -> bool {
    reader.header().backend == SESSION
}

/// A switch or a wake-up whose thread is known by its number in the file.
enum Raw {
    /// Whether a switch of this processor before it is missing.
    Switch {
        prev: u64,
        next: u64,
        is_behind_hidden: bool,
        /// The letter of the state in which the thread left, where that is on record.
        state: Option<u8>,
    },
    Wakeup(u64),
    /// The thread asks for a lock, and has it or gives it up.
    Asks(u64),
    Answered(u64),
    Lost(u64),
}

/// What the recording's kernel records tell.
pub(super) fn read<R: Read>(reader: &mut Reader<R>) -> Result<Source, TraceError> {
    let (clock, machine) = (reader.header().clock.clone(), reader.header().machine.clone());
    let mut source = Source { clock, machine, ..Source::default() };
    let origin = reader.header().origin_ns;
    let mut raw: Vec<(u64, u32, Raw)> = Vec::new();
    let mut hidden: HashSet<u16> = HashSet::new();
    // The place of each processor's last switch.
    let mut last: HashMap<u16, usize> = HashMap::new();
    while let Some(record) = reader.next_record() {
        let Record { time, kind, cpu, value, extra, .. } = record;
        let what = match kind {
            Kind::KernelSwitch => {
                last.insert(cpu, raw.len());
                Raw::Switch { prev: value, next: extra, is_behind_hidden: hidden.remove(&cpu), state: None }
            }
            Kind::KernelBlock => {
                let switch = last.get(&cpu).and_then(|&place| raw.get_mut(place));
                if let Some((_, _, Raw::Switch { prev, state, .. })) = switch
                    && *prev == value
                {
                    *state = u8::try_from(extra).ok();
                }
                continue;
            }
            Kind::KernelWakeup => Raw::Wakeup(value),
            Kind::User => match reader.user_event(&record).map(|event| event.name()) {
                Some("lock/acquire") => Raw::Asks(extra),
                Some("lock/acquired" | "lock/refused") => Raw::Answered(extra),
                _ => continue,
            },
            Kind::Lost => match LossCause::from_number(extra) {
                Some(LossCause::HiddenSwitch) => {
                    hidden.insert(cpu);
                    continue;
                }
                Some(LossCause::Kernel) => Raw::Lost(value),
                // Which records these were is not known.
                Some(LossCause::Recorder) | None => {
                    source.lost = source.lost.saturating_add(value);
                    continue;
                }
                // Events of programs.
                Some(_) => continue,
            },
            _ => continue,
        };
        raw.push((origin.saturating_add(time.as_ns()), u32::from(cpu), what));
    }
    source.damage = reader.damage().cloned();
    if !raw.iter().any(|(_, _, what)| matches!(what, Raw::Switch { .. })) {
        if let Some(damage) = &source.damage {
            return Err(TraceError::not_a_trace(format!("the recording is damaged: {damage}")));
        }
        return Err(TraceError::unsupported(
            "the recording has no switches of the kernel",
            "record with `horolog trace record --kernel`, as root or with the rights of `horolog doctor --for record`",
        ));
    }
    raw.sort_by_key(|(time, _, _)| *time);
    // The foot has the last names.
    source.events = events(&raw, reader.threads());
    if let Some(foot) = reader.footer() {
        source.priorities.clone_from(&foot.priorities);
    }
    Ok(source)
}

/// The same as events; the state in which a thread left is told by what comes of it next.
fn events(raw: &[(u64, u32, Raw)], threads: &[Thread]) -> Vec<Event> {
    let named = |id: u64| usize::try_from(id).ok().and_then(|id| threads.get(id));
    let tid = |id: u64| named(id).map_or(IDLE, |thread| thread.tid);
    let comm = |id: u64| named(id).map_or_else(String::new, |thread| thread.comm.clone());
    let is_recorded = |id: u64| named(id).is_some_and(|thread| thread.process.is_some());
    let states = states(raw, &tid);
    let mut events = Vec::with_capacity(raw.len());
    let mut known: HashSet<u32> = HashSet::new();
    let mut has: HashMap<u32, u64> = HashMap::new();
    let mut asking: HashSet<u32> = HashSet::new();
    for (place, (time, cpu, what)) in raw.iter().enumerate() {
        let mut push = |kind: EventKind| events.push(Event { time: *time, cpu: *cpu, kind });
        let switch = |prev: u64, prev_state: u8, next: u64| EventKind::Switch {
            prev: tid(prev),
            prev_comm: comm(prev),
            prev_prio: None,
            prev_state,
            next: tid(next),
            next_comm: comm(next),
            next_prio: None,
        };
        match *what {
            Raw::Switch { prev, next, is_behind_hidden, .. } => {
                let before = has.insert(*cpu, next);
                // Switches between threads of other programs are not in the recording.
                if let Some(before) = before.filter(|&before| tid(before) != tid(prev))
                    && !(is_behind_hidden || is_recorded(before) || is_recorded(prev))
                {
                    push(switch(before, b'R', prev));
                }
                // A wait for a lock lies within the job, as an uninterruptible sleep does.
                let waits = states[place] == b'S' && asking.contains(&tid(prev));
                push(switch(prev, if waits { b'D' } else { states[place] }, next));
                known.extend([tid(prev), tid(next)]);
            }
            Raw::Wakeup(id) => {
                // Whether the thread has just been made is not on record: what a thread does first is no job.
                let is_new = known.insert(tid(id));
                push(EventKind::Wakeup { thread: tid(id), comm: comm(id), is_new });
            }
            Raw::Asks(id) => {
                asking.insert(tid(id));
            }
            Raw::Answered(id) => {
                asking.remove(&tid(id));
            }
            Raw::Lost(count) => {
                has.remove(cpu);
                push(EventKind::Lost { count });
            }
        }
    }
    events
}

/// Of each switch the letter of the state of the thread that left. Where no state is on record it was asleep where it is woken next, and able to
/// run where it gets a processor without. Of its last switch that is not known then, and what it was at is no job, as with the end of a thread.
fn states(raw: &[(u64, u32, Raw)], tid: &impl Fn(u64) -> u32) -> Vec<u8> {
    let state_of = |what: &Raw| match what {
        Raw::Switch { state, .. } => *state,
        _ => None,
    };
    if raw.iter().any(|(_, _, what)| state_of(what).is_some()) {
        return raw.iter().map(|(_, _, what)| state_of(what).unwrap_or(b'R')).collect();
    }
    let mut states = vec![b'R'; raw.len()];
    let mut is_woken_next: HashMap<u32, bool> = HashMap::new();
    for (place, (_, _, what)) in raw.iter().enumerate().rev() {
        match *what {
            Raw::Switch { prev, next, .. } => {
                states[place] = match is_woken_next.get(&tid(prev)) {
                    Some(true) => b'S',
                    Some(false) => b'R',
                    None => b'X',
                };
                is_woken_next.insert(tid(next), false);
                is_woken_next.remove(&tid(prev));
            }
            Raw::Wakeup(id) => {
                is_woken_next.insert(tid(id), true);
            }
            Raw::Asks(_) | Raw::Answered(_) => {}
            // What came of a thread within a loss is not known.
            Raw::Lost(_) => is_woken_next.clear(),
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::super::{Mapping, import_bytes, jobs};
    use super::*;
    use crate::file::{Header, Writer};
    use crate::{EventDefinition, NO_JOB, NO_TASK, Sink};
    use horolog_time::Instant;
    use proptest::prelude::*;

    const TASKS: [&str; 3] = ["a", "b", "c"];
    /// Threads 1 to 3 are the recorded program's, 4 to 6 are others.
    const THREADS: usize = 7;
    const ORIGIN: u64 = 1_000;

    fn comm(tid: usize) -> String {
        ["swapper", "a", "b", "c", "x", "y", "z"][tid].to_owned()
    }

    fn is_recorded(tid: usize) -> bool {
        (1..=3).contains(&tid)
    }

    fn record(time: u64, kind: Kind, value: u64, extra: u64) -> Record {
        Record { time: Instant::from_ns(time), kind, cpu: 0, task: NO_TASK, job: NO_JOB, value, extra }
    }

    /// A schedule of two processors: all that happened, and the recording, which has what concerns the program, without states.
    struct Machine {
        now: u64,
        asleep: [bool; THREADS],
        has: [usize; 2],
        known: [bool; THREADS],
        all: Vec<Event>,
        recording: Vec<Record>,
    }

    impl Machine {
        fn new() -> Machine {
            let mut asleep = [true; THREADS];
            asleep[0] = false;
            let (has, known) = ([0; 2], [false; THREADS]);
            Machine { now: 0, asleep, has, known, all: Vec::new(), recording: Vec::new() }
        }

        /// The recording as a file; a thread's number there is its place.
        fn file(&self) -> Vec<u8> {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes, &Header::session(ORIGIN)).expect("memory");
            for tid in 0..THREADS {
                match is_recorded(tid) {
                    true => writer.define_thread_of(1, tid as u32, &comm(tid), None),
                    false => writer.define_thread(tid as u32, &comm(tid), None),
                };
            }
            self.recording.iter().for_each(|record| writer.record(*record));
            writer.finish(Instant::from_ns(self.now)).expect("memory");
            bytes
        }

        fn record(&mut self, cpu: usize, kind: Kind, value: usize, extra: usize) {
            self.recording
                .push(Record { cpu: cpu as u16, ..record(self.now, kind, value as u64, extra as u64) });
        }

        fn wake(&mut self, tid: usize) {
            if tid == 0 || !self.asleep[tid] || self.has.contains(&tid) {
                return;
            }
            self.now += 1;
            self.asleep[tid] = false;
            let is_new = !std::mem::replace(&mut self.known[tid], true);
            let kind = EventKind::Wakeup { thread: tid as u32, comm: comm(tid), is_new };
            self.all.push(Event { time: ORIGIN + self.now, cpu: 0, kind });
            if is_recorded(tid) {
                self.record(0, Kind::KernelWakeup, tid, 0);
            }
        }

        /// What a thread was at when it left a processor for the last time is no job: nothing tells what came of it.
        fn end(&mut self) {
            let mut is_over = [true; THREADS];
            for event in self.all.iter_mut().rev() {
                match &mut event.kind {
                    EventKind::Switch { prev, prev_state, next, .. } => {
                        if is_over[*prev as usize] {
                            *prev_state = b'X';
                        }
                        (is_over[*prev as usize], is_over[*next as usize]) = (false, false);
                    }
                    EventKind::Wakeup { thread, .. } => is_over[*thread as usize] = false,
                    _ => {}
                }
            }
        }

        /// The thread on this processor leaves it to sleep, or to another one.
        fn switch(&mut self, cpu: usize, sleeps: bool, wish: usize) {
            let prev = self.has[cpu];
            let can_run = |tid: usize| !self.asleep[tid] && !self.has.contains(&tid);
            let next = (0..THREADS).map(|step| (wish + step) % THREADS).find(|&tid| tid != 0 && can_run(tid));
            let sleeps = sleeps && prev != 0;
            // A thread may leave a processor to nobody and go on elsewhere.
            let Some(next) = next.or((prev != 0).then_some(0)) else { return };
            self.now += 3;
            self.asleep[prev] = sleeps;
            self.has[cpu] = next;
            let kind = EventKind::Switch {
                prev: prev as u32,
                prev_comm: comm(prev),
                prev_prio: None,
                prev_state: if sleeps { b'S' } else { b'R' },
                next: next as u32,
                next_comm: comm(next),
                next_prio: None,
            };
            self.all.push(Event { time: ORIGIN + self.now, cpu: cpu as u32, kind });
            if is_recorded(prev) || is_recorded(next) {
                (self.known[prev], self.known[next]) = (true, true);
                self.record(cpu, Kind::KernelSwitch, prev, next);
            }
        }
    }

    fn of_jobs(records: &[Record]) -> Vec<Record> {
        let is_of_jobs = |record: &&Record| (record.kind as u8) < Kind::KernelSwitch as u8;
        records.iter().filter(is_of_jobs).copied().collect()
    }

    /// The ends of jobs of a thread that is woken at 11 and 16, and sleeps at 14 and 19; with its waits for a lock, where it asks for it.
    fn ends(asks: bool, how_it_ends: &str) -> Vec<u64> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &Header::session(ORIGIN)).expect("memory");
        let idle = writer.define_thread(0, "swapper", None);
        let thread = writer.define_thread_of(1, 1, "a", None);
        let event = |name: &str| EventDefinition {
            name: name.to_owned(),
            types: "u".to_owned(),
            names: Vec::new(),
            units: Vec::new(),
        };
        let acquire = writer.define_event(&event("lock/acquire"));
        let answer = writer.define_event(&event(how_it_ends));
        let user = |time: u64, event: u64| record(time, Kind::User, event, thread);
        for at in [1, 11, 16, 31] {
            writer.record(record(at, Kind::KernelWakeup, thread, 0));
            writer.record(record(at + 1, Kind::KernelSwitch, idle, thread));
            if asks && at == 11 {
                writer.user(user(13, acquire), &[7]);
            }
            if asks && at == 16 {
                writer.user(user(18, answer), &[7]);
            }
            writer.record(record(at + 3, Kind::KernelSwitch, thread, idle));
        }
        writer.finish(Instant::from_ns(40)).expect("memory");
        let tasks = ["a".to_owned()];
        let found = import_bytes(&bytes, "", &tasks, &Mapping::by_name(&tasks)).expect("a recording");
        let ends = found.records.iter().filter(|record| record.kind == Kind::Completion);
        ends.map(|record| found.header.origin_ns - ORIGIN + record.time.as_ns()).collect()
    }

    #[test]
    fn a_wait_for_a_lock_is_within_the_job() {
        assert_eq!(ends(false, "lock/acquired"), [14, 19]);
        assert_eq!(ends(true, "lock/acquired"), [19]);
        assert_eq!(ends(true, "lock/refused"), [19]);
    }

    proptest! {
        /// Jobs are those of the whole record, in which the states stand.
        #[test]
        fn jobs_of_a_recording_are_those_of_the_whole_record(
            steps in prop::collection::vec((0..2_usize, any::<bool>(), 0..THREADS, any::<bool>()), 1..200)
        ) {
            let mut machine = Machine::new();
            for (cpu, sleeps, tid, wakes) in steps {
                match wakes {
                    true => machine.wake(tid),
                    false => machine.switch(cpu, sleeps, tid),
                }
            }
            machine.end();
            let tasks = TASKS.map(str::to_owned);
            let mapping = Mapping::by_name(&tasks);
            let Some(origin) = machine.all.first().map(|event| event.time) else { return Ok(()) };
            let whole = jobs::derive(&machine.all, origin, 0, &mapping);
            if let Ok(found) = import_bytes(&machine.file(), "", &tasks, &mapping) {
                // What the recording leaves out is no loss.
                prop_assert!(found.records.iter().all(|record| record.kind != Kind::Lost));
                let shift = found.header.origin_ns - origin;
                let at_origin = |mut record: Record| {
                    record.time = Instant::from_ns(record.time.as_ns() + shift);
                    if record.kind == Kind::Release {
                        record.value += shift;
                    }
                    record
                };
                let found: Vec<Record> = found.records.iter().copied().map(at_origin).collect();
                prop_assert_eq!(of_jobs(&found), of_jobs(&whole.records));
            } else {
                prop_assert!(machine.recording.iter().all(|record| record.kind != Kind::KernelSwitch));
            }
        }
    }
}
