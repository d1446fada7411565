//! From events to stretches: what each thread does between two sleeps.

use super::event::{Event, EventKind, Left, LockKind, WaitKind};
use std::collections::{BTreeMap, BTreeSet};

/// What a thread did between two sleeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// When the sleep before it began; `None` where that was not seen.
    pub slept_from_ns: Option<u64>,
    /// For what it slept; `None` where the beginning of the sleep was not seen.
    pub waited: Option<WaitKind>,
    /// When it became ready; where no wake-up was seen, when it got a processor.
    pub ready_ns: u64,
    /// Whether `ready_ns` is a wake-up.
    pub woken: bool,
    /// The expiry of the timer that ended the sleep.
    pub expiry_ns: Option<u64>,
    /// When it slept again.
    pub ended_ns: u64,
    /// How long it had a processor.
    pub executed_ns: u64,
    /// How often it lost the processor while it could have run on.
    pub preemptions: u32,
    /// The processor that it had last.
    pub cpu: u32,
    /// Calls that might have slept and did not.
    pub marks: Vec<Mark>,
    /// Why its execution is in doubt.
    pub doubt: Option<Doubt>,
}

/// A call that might have slept and returned at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// When it was entered.
    pub at_ns: u64,
    /// What the stretch had executed until then.
    pub executed_ns: u64,
    /// For what it would have waited.
    pub wait: WaitKind,
    /// The timer that had expired already.
    pub expiry_ns: Option<u64>,
}

/// Why the execution of a stretch, or job, is not used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Doubt {
    /// Switches are missing from the record.
    Chain,
    /// The host stopped the processor meanwhile.
    Pause,
    /// It is much longer than nearly all others.
    Outlier,
    /// It is the first of a thread that started while it was watched: start-up.
    Start,
}

/// A section between taking and releasing a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// The lock.
    pub lock: u64,
    /// How long it was held, ns of time.
    pub held_ns: u64,
    /// How much the thread executed meanwhile.
    pub executed_ns: u64,
    /// How long it slept meanwhile.
    pub slept_ns: u64,
    /// Whether both are known: no switch is missing.
    pub is_whole: bool,
    /// What it needs at most: both, or for how long it was held where switches are missing.
    pub length_ns: u64,
    /// What the lock does about priorities.
    pub kind: LockKind,
    /// How many locks the thread held already.
    pub depth: u32,
}

/// Stolen time that may have hit a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stolen {
    /// The processor.
    pub cpu: u32,
    /// No earlier than this.
    pub since_ns: u64,
    /// No later than this.
    pub until_ns: u64,
    /// How long in all.
    pub stolen_ns: u64,
}

/// A call counts as the place of a sleep only if the thread executed at most this long inside it before.
const CALL_LASTS_NS: u64 = 200_000;
/// More marks a stretch are not kept: a thread that polls without ever sleeping.
const MOST_MARKS: usize = 64;
/// Timers of a thread that may still expire.
const MOST_TIMERS: usize = 16;

/// Where a thread stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unknown,
    Asleep,
    Ready,
    Running {
        cpu: u32,
        since_ns: u64,
    },
    /// It lost its processor. Where the record does not tell how (`told` false), a wake-up shows that it slept.
    Off {
        since_ns: u64,
        told: bool,
    },
}

/// The call that a thread is in, as far as is known.
#[derive(Clone, Copy, Debug)]
struct InCall {
    wait: WaitKind,
    at_ns: u64,
    executed_ns: u64,
}

/// A lock that it holds, and what it had executed and slept when it got it.
#[derive(Clone, Copy, Debug)]
struct Held {
    lock: u64,
    since_ns: u64,
    executed_ns: u64,
    slept_ns: u64,
    kind: LockKind,
    /// How often it was taken again by its holder.
    again: u32,
    /// The place of the stretch that it was taken in.
    stretch: usize,
    /// Whether the thread had a processor by the record.
    is_known: bool,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    timer: u64,
    expires_ns: u64,
    /// Ends with the call that it was started in.
    of_call: bool,
}

/// One thread's history.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its id.
    pub tid: u32,
    /// What it did between sleeps, complete ones only.
    pub stretches: Vec<Stretch>,
    /// Sections under locks.
    pub sections: Vec<Section>,
    /// Locks that it waited for and did not get in time.
    pub timed_out: BTreeSet<u64>,
    /// Time on each processor, ns.
    pub on_cpu_ns: BTreeMap<u32, u64>,
    /// Whether the record has seen it end.
    pub ended: bool,
    /// Whether it was started while the record ran, so that its first job is start-up.
    pub born: bool,
    state: State,
    current: Option<Stretch>,
    call: Option<InCall>,
    timers: Vec<Timer>,
    slept_from_ns: Option<u64>,
    waited: Option<WaitKind>,
    held: Vec<Held>,
    /// In all.
    executed_ns: u64,
    slept_ns: u64,
}

/// Follows the watched threads through a record.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    threads: BTreeMap<u32, Thread>,
    /// Who has each processor, as far as is known.
    running: BTreeMap<u32, u32>,
    /// Stolen time.
    pub stolen: Vec<Stolen>,
    /// The first and the last time on record.
    pub seen_ns: Option<(u64, u64)>,
    /// How often switches were missing.
    pub broken: u64,
}

impl Observer {
    /// Follows this thread from now on.
    pub fn watch(&mut self, tid: u32) {
        if tid != 0 {
            self.threads.entry(tid).or_insert_with(|| Thread::new(tid));
        }
    }

    /// Follows this thread, which starts now.
    pub fn watch_born(&mut self, tid: u32) {
        self.watch(tid);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.born = true;
        }
    }

    /// Whether this thread is followed.
    #[must_use]
    pub fn watches(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Forgets the threads that are not wanted.
    pub fn retain(&mut self, wanted: impl Fn(u32) -> bool) {
        self.threads.retain(|tid, _| wanted(*tid));
    }

    /// All followed threads may have started while the record ran.
    pub fn all_born(&mut self) {
        self.threads.values_mut().for_each(|thread| thread.born = true);
    }

    /// The followed threads, by id.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values()
    }

    /// Takes the next event; times must not decrease, save by what clocks of processors differ.
    pub fn take(&mut self, event: Event) {
        let now = event.time_ns;
        let first = self.seen_ns.map_or(now, |(first, _)| first);
        self.seen_ns = Some((first, self.seen_ns.map_or(now, |(_, last)| last.max(now))));
        match event.kind {
            EventKind::Switch { cpu, prev, left, next, prev_is_deadline } => {
                self.switch(now, cpu, (prev, left, prev_is_deadline), next);
            }
            EventKind::Wakeup { tid } => self.with(tid, |thread| thread.wake(now)),
            EventKind::Call { tid, wait } => self.with(tid, |thread| thread.enter_call(now, wait)),
            EventKind::Timer { tid, timer, expires_ns, absolute } => {
                self.with(tid, |thread| thread.start_timer(timer, expires_ns, absolute));
            }
            EventKind::Exit { tid } => self.with(tid, |thread| thread.ended = true),
            EventKind::Lost { cpu } => self.lose(cpu),
            EventKind::Paused { cpu } => self.pause(cpu),
            EventKind::Stolen { cpu, since_ns, stolen_ns } => {
                self.stolen.push(Stolen { cpu, since_ns, until_ns: now, stolen_ns });
            }
            EventKind::Lock { tid, lock, kind, held } => {
                self.with(tid, |thread| thread.lock(now, (lock, kind), held));
            }
            EventKind::LockAsked { tid } => self.with(tid, |thread| thread.enter_call(now, WaitKind::Futex)),
            EventKind::LockRefused { tid, timed_out } => self.with(tid, |thread| {
                thread.leave_lock_call();
                thread.timed_out.extend(timed_out);
            }),
        }
    }

    fn with(&mut self, tid: u32, act: impl FnOnce(&mut Thread)) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            act(thread);
        }
    }

    fn switch(&mut self, now: u64, cpu: u32, (prev, left, deadline): (u32, Left, bool), next: u32) {
        // Whoever should have the processor and is not the one who leaves it lost it in a hidden switch.
        // Switches between threads that nobody follows may be missing on purpose.
        if let Some(before) = self.running.insert(cpu, next)
            && before != prev
            && self.watches(before)
        {
            self.broken += 1;
            self.with(before, Thread::lose);
        }
        let on_time = match self.threads.get_mut(&prev) {
            Some(thread) => thread.leave(now, cpu, left, deadline),
            None => true,
        };
        if !on_time {
            self.broken += 1;
        }
        self.with(next, |thread| thread.enter(now, cpu));
    }

    fn lose(&mut self, cpu: Option<u32>) {
        match cpu {
            Some(cpu) => {
                if let Some(tid) = self.running.remove(&cpu) {
                    self.with(tid, Thread::lose);
                }
            }
            None => {
                self.running.clear();
                self.threads.values_mut().for_each(Thread::lose);
            }
        }
    }

    fn pause(&mut self, cpu: u32) {
        if let Some(tid) = self.running.get(&cpu).copied() {
            self.with(tid, |thread| {
                if let (State::Running { .. }, Some(current)) = (thread.state, &mut thread.current) {
                    current.doubt = current.doubt.or(Some(Doubt::Pause));
                }
            });
        }
    }
}

impl Thread {
    fn new(tid: u32) -> Thread {
        Thread {
            tid,
            stretches: Vec::new(),
            sections: Vec::new(),
            timed_out: BTreeSet::new(),
            on_cpu_ns: BTreeMap::new(),
            ended: false,
            born: false,
            state: State::Unknown,
            current: None,
            call: None,
            timers: Vec::new(),
            slept_from_ns: None,
            waited: None,
            held: Vec::new(),
            executed_ns: 0,
            slept_ns: 0,
        }
    }

    /// All the time that it had a processor.
    #[must_use]
    pub fn executed_ns(&self) -> u64 {
        self.executed_ns
    }

    /// For what it slept last, as far as is known.
    #[must_use]
    pub fn last_wait(&self) -> Option<WaitKind> {
        match &self.current {
            Some(current) => current.waited,
            None => self.waited,
        }
    }

    /// The processor that it had longest.
    #[must_use]
    pub fn main_cpu(&self) -> Option<u32> {
        self.on_cpu_ns.iter().max_by_key(|(cpu, ns)| (**ns, std::cmp::Reverse(**cpu))).map(|(cpu, _)| *cpu)
    }

    /// The current stretch; one that begins now where there is none.
    fn current(&mut self, now: u64, woken: bool) -> &mut Stretch {
        let (slept_from_ns, waited) = (self.slept_from_ns.take(), self.waited.take());
        if let Some(from) = slept_from_ns {
            self.slept_ns = self.slept_ns.saturating_add(now.saturating_sub(from));
        }
        self.current.get_or_insert_with(|| Stretch {
            slept_from_ns,
            waited,
            ready_ns: now,
            woken,
            expiry_ns: None,
            ended_ns: now,
            executed_ns: 0,
            preemptions: 0,
            cpu: 0,
            marks: Vec::new(),
            doubt: None,
        })
    }

    /// Nothing is known of it until it wakes up or runs again.
    fn lose(&mut self) {
        // What it executes and how it sleeps while it holds them is not known.
        self.held.clear();
        if let Some(current) = &mut self.current {
            current.doubt = Some(Doubt::Chain);
        }
        self.state = State::Unknown;
    }

    fn wake(&mut self, now: u64) {
        match self.state {
            // It tried to sleep, and what it waited for came first.
            State::Ready => return,
            State::Running { .. } if self.call.is_none() => return,
            State::Running { .. } => {
                // Either the same, which the call's own timer shows, or its sleep was hidden. A thread that never left
                // its processor goes on; the chain of switches will tell.
                if let Some(expiry_ns) = self.expired(now) {
                    self.mark_call(Some(expiry_ns));
                }
                return;
            }
            State::Off { told: true, .. } => {
                // Preempted on its way into a sleep that then did not come.
                if self.call.is_some()
                    && let Some(expiry_ns) = self.expired(now)
                {
                    self.mark_call(Some(expiry_ns));
                }
                return;
            }
            State::Off { since_ns, told: false } => self.end(since_ns, None),
            State::Unknown => {
                // Its sleep was hidden; the call that it had entered tells for what it slept.
                if self.current.is_some() {
                    let at = self.call.map_or(now, |call| call.at_ns);
                    self.end(at, None);
                    self.slept_from_ns = None;
                }
            }
            State::Asleep => {}
        }
        self.state = State::Ready;
        let expiry_ns = self.expired(now);
        let current = self.current(now, true);
        current.expiry_ns = expiry_ns;
    }

    /// The timer whose expiry woke it, if one did.
    fn expired(&mut self, now: u64) -> Option<u64> {
        let slept_from = self.slept_from_ns.unwrap_or(0);
        let due = self.timers.iter().filter(|timer| timer.expires_ns <= now);
        let expiry = due
            .filter(|timer| timer.of_call || timer.expires_ns >= slept_from)
            .map(|timer| timer.expires_ns)
            .max();
        self.timers.retain(|timer| timer.expires_ns > now);
        expiry
    }

    fn enter(&mut self, now: u64, cpu: u32) {
        match self.state {
            State::Running { .. } => {
                // It came twice without leaving.
                self.current(now, false).doubt = Some(Doubt::Chain);
            }
            State::Off { .. } | State::Ready => {}
            State::Asleep => {
                let expiry_ns = self.expired(now);
                self.current(now, false).expiry_ns = expiry_ns;
            }
            State::Unknown => {
                let seen = self.current.is_some();
                let current = self.current(now, false);
                if seen {
                    current.doubt = Some(Doubt::Chain);
                }
            }
        }
        if let State::Off { .. } = self.state {
            self.current(now, false).preemptions += 1;
        }
        self.state = State::Running { cpu, since_ns: now };
        self.current(now, false).cpu = cpu;
    }

    /// Adds up what it executed until now; `false` where it did not have this processor as far as is known.
    fn account(&mut self, now: u64, cpu: u32) -> bool {
        let State::Running { cpu: at, since_ns } = self.state else {
            self.current(now, false).doubt = Some(Doubt::Chain);
            return self.stretches.is_empty() && self.state == State::Unknown;
        };
        let ran = now.saturating_sub(since_ns);
        self.executed_ns = self.executed_ns.saturating_add(ran);
        let on_cpu = self.on_cpu_ns.entry(cpu).or_default();
        *on_cpu = on_cpu.saturating_add(ran);
        let current = self.current(now, false);
        current.executed_ns = current.executed_ns.saturating_add(ran);
        current.cpu = cpu;
        if at != cpu {
            current.doubt = Some(Doubt::Chain);
        }
        self.state = State::Running { cpu, since_ns: now };
        at == cpu
    }

    fn leave(&mut self, now: u64, cpu: u32, left: Left, deadline: bool) -> bool {
        let on_time = self.account(now, cpu);
        let yields = deadline && self.call.is_some_and(|call| call.wait == WaitKind::Yield);
        match left {
            Left::Asleep(letter) => self.end(now, Some(letter)),
            Left::Runnable if yields => self.end(now, None),
            Left::Runnable => self.state = State::Off { since_ns: now, told: true },
            Left::Untold => self.state = State::Off { since_ns: now, told: false },
            Left::Dead => {
                self.ended = true;
                self.end(now, None);
            }
        }
        on_time
    }

    /// It slept at `now`, or has ended: then its last job was cut off, and nothing follows that would complete it.
    fn end(&mut self, now: u64, letter: Option<u8>) {
        let executed = self.current.as_ref().map_or(0, |current| current.executed_ns);
        let call = self.call.filter(|call| executed.saturating_sub(call.executed_ns) <= CALL_LASTS_NS);
        let wait = match (letter, call) {
            (Some(b'D'), _) => WaitKind::Uninterruptible,
            (_, Some(call)) => call.wait,
            (_, None) => WaitKind::Unknown,
        };
        if let Some(mut stretch) = self.current.take() {
            stretch.ended_ns = now;
            self.stretches.push(stretch);
        }
        // A call that sleeps again goes on from there.
        if let Some(call) = &mut self.call {
            call.executed_ns = 0;
        }
        self.slept_from_ns = Some(now);
        self.waited = (!self.ended).then_some(wait);
        self.state = State::Asleep;
    }

    fn enter_call(&mut self, now: u64, wait: WaitKind) {
        self.mark_call(None);
        self.timers.retain(|timer| !timer.of_call);
        let running = match self.state {
            State::Running { since_ns, .. } => now.saturating_sub(since_ns),
            _ => 0,
        };
        let executed = self.current.as_ref().map_or(0, |current| current.executed_ns);
        self.call = Some(InCall { wait, at_ns: now, executed_ns: executed.saturating_add(running) });
    }

    /// Asking for a lock is over. Without a sleep it is no end of a job.
    fn leave_lock_call(&mut self) {
        self.call = self.call.take().filter(|call| call.wait != WaitKind::Futex);
    }

    /// The call before returned without sleeping, if the thread has not slept since.
    fn mark_call(&mut self, expiry_ns: Option<u64>) {
        let Some(call) = self.call.take() else { return };
        let Some(current) = &mut self.current else { return };
        if call.at_ns < current.ready_ns || current.marks.len() >= MOST_MARKS {
            return;
        }
        current.marks.push(Mark {
            at_ns: call.at_ns,
            executed_ns: call.executed_ns,
            wait: call.wait,
            expiry_ns,
        });
    }

    fn start_timer(&mut self, timer: u64, expires_ns: u64, absolute: bool) {
        let of_call = self.call.is_some_and(|call| call.wait.owns_its_timer());
        if let Some(call) = &mut self.call
            && matches!(call.wait, WaitKind::SleepUntil | WaitKind::SleepFor)
        {
            call.wait = if absolute { WaitKind::SleepUntil } else { WaitKind::SleepFor };
        }
        self.timers.retain(|known| known.timer != timer);
        if self.timers.len() >= MOST_TIMERS {
            self.timers.remove(0);
        }
        self.timers.push(Timer { timer, expires_ns, of_call });
    }

    fn lock(&mut self, now: u64, (lock, kind): (u64, LockKind), held: bool) {
        let running = match self.state {
            State::Running { since_ns, .. } => now.saturating_sub(since_ns),
            _ => 0,
        };
        let is_known = matches!(self.state, State::Running { .. });
        let executed = self.executed_ns.saturating_add(running);
        if held {
            self.leave_lock_call();
            // A recursive mutex: the section goes on until it is given back as often.
            if let Some(held) = self.held.iter_mut().find(|held| held.lock == lock) {
                held.again = held.again.saturating_add(1);
                return;
            }
            self.held.push(Held {
                lock,
                again: 0,
                since_ns: now,
                executed_ns: executed,
                slept_ns: self.slept_ns,
                kind,
                stretch: self.stretches.len(),
                is_known,
            });
            return;
        }
        let Some(at) = self.held.iter().rposition(|held| held.lock == lock) else { return };
        if let Some(fewer) = self.held[at].again.checked_sub(1) {
            self.held[at].again = fewer;
            return;
        }
        let before = self.held.remove(at);
        let held_ns = now.saturating_sub(before.since_ns);
        let during = self.stretches.get(before.stretch..).unwrap_or_default();
        let is_whole = during.iter().chain(&self.current).all(|stretch| stretch.doubt.is_none());
        // Where switches are missing the sums may be too large or too small.
        let executed_ns = executed.saturating_sub(before.executed_ns).min(held_ns);
        let slept_ns = self.slept_ns.saturating_sub(before.slept_ns).min(held_ns - executed_ns);
        let is_whole = before.is_known && is_known && is_whole;
        let length_ns = if is_whole { executed_ns + slept_ns } else { held_ns };
        self.sections.push(Section {
            lock,
            held_ns,
            executed_ns,
            slept_ns,
            is_whole,
            length_ns,
            kind: before.kind,
            depth: u32::try_from(at).unwrap_or(u32::MAX),
        });
    }
}
