//! Carrying the measurement out: one probe thread on its CPU, everything else elsewhere.

use super::configuration::{Configuration, Phase};
use super::error::InterferenceError;
use super::gaps::{Gap, Stretch};
use super::held_back::HeldBackCounter;
use super::probe::{Hourglass, clock_cost_ns};
use super::store::{Disturbance, Reading, Store};
use horolog_sys::Error;
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::steal::stolen_ns;
use horolog_time::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// How far a measurement is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Under what.
    pub phase: Phase,
    /// Stretches done, those of earlier runs too.
    pub done: u32,
    /// Stretches in all.
    pub of: u32,
}

/// A stretch and what disturbed it.
type Seen = (Stretch, Disturbance);

/// Gaps that one stretch may have: a packet every 0.4 us.
const ROOM: usize = 1 << 17;
/// Stretches without one that can be used, one after the other, before the measurement gives up.
const PATIENCE: u32 = 50;

/// Measures until the store has `stretches` of the phase. Interrupted, it goes on with the next call.
///
/// `between` is called between two stretches, and ends the measurement where it gives an error.
///
/// # Errors
/// Where SCHED_FIFO is not allowed, the CPU is not there, the store cannot be written, or no stretch can be used.
pub fn collect(
    store: &mut Store,
    phase: Phase,
    stretches: u32,
    between: &mut dyn FnMut(Progress) -> Result<(), Error>,
) -> Result<(), InterferenceError> {
    let configuration = store.configuration().clone();
    configuration.check()?;
    let mut done = u32::try_from(store.readings(phase).count()).unwrap_or(u32::MAX);
    if done >= stretches {
        return Ok(());
    }
    let probe = Probe::start(&configuration)?;
    let mut random = Random::new(monotonic_ns());
    let mut useless = 0;
    while done < stretches {
        between(Progress { phase, done, of: stretches })?;
        let (stretch, disturbance) = probe.next()?;
        let reading =
            Reading::of(&stretch, phase, &configuration.lengths_ns, disturbance, |most| random.up_to(most));
        probe.give_back(stretch.gaps);
        match reading {
            Some(reading) => {
                store.add(reading)?;
                done += 1;
                useless = 0;
            }
            None if useless < PATIENCE => useless += 1,
            None => {
                return Err(Error::unexpected(
                    "the hourglass probe",
                    format!("{PATIENCE} stretches in a row had more than {ROOM} gaps"),
                    "raise the threshold",
                )
                .into());
            }
        }
    }
    between(Progress { phase, done, of: stretches })?;
    Ok(())
}

/// The probe thread. Dropping this ends it.
struct Probe {
    stretches: Option<Receiver<Result<Seen, Error>>>,
    rooms: Option<SyncSender<Vec<Gap>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    fn start(configuration: &Configuration) -> Result<Probe, Error> {
        let (sender, stretches) = sync_channel(2);
        let (rooms, empty) = sync_channel(4);
        for _ in 0..3 {
            let _ = rooms.send(room());
        }
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work {
            configuration: configuration.clone(),
            // Without the right to count nothing can be said about it; the summary says so.
            counter: HeldBackCounter::start(configuration.cpu).ok(),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new()
            .name("hourglass".to_owned())
            .spawn(move || {
                if let Err(error) = work.run(&sender, &empty) {
                    let _ = sender.send(Err(error));
                }
            })
            .map_err(|error| Error::io("clone(probe thread)", &error, "raise `ulimit -u`"))?;
        Ok(Probe { stretches: Some(stretches), rooms: Some(rooms), stop, thread: Some(thread) })
    }

    fn next(&self) -> Result<Seen, Error> {
        let answer = self.stretches.as_ref().and_then(|stretches| stretches.recv().ok());
        answer.unwrap_or_else(|| Err(Error::unexpected("the probe thread", "it has ended", "report this")))
    }

    fn give_back(&self, room: Vec<Gap>) {
        if let Some(rooms) = &self.rooms {
            let _ = rooms.try_send(room);
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Both ends go first: the thread may wait at either.
        self.stretches = None;
        self.rooms = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    configuration: Configuration,
    counter: Option<HeldBackCounter>,
    stop: Arc<AtomicBool>,
}

impl Work {
    fn run(&self, sender: &SyncSender<Result<Seen, Error>>, empty: &Receiver<Vec<Gap>>) -> Result<(), Error> {
        let Configuration { cpu, priority, stretch_ns, threshold_ns, .. } = self.configuration;
        // The class comes first: an ordinary thread that moved to a filled CPU would never get to raise itself.
        set_class(0, Class::Fifo(priority))?;
        set_affinity(0, &CpuSet::new([cpu]))?;
        let probe =
            Hourglass { threshold: Span::from_ns(threshold_ns), clock_cost: Span::from_ns(clock_cost_ns()) };
        let mut random = Random::new(monotonic_ns() ^ 0x5eed);
        let count = || self.counter.as_ref().and_then(|counter| counter.read().ok());
        while !self.stop.load(Ordering::Relaxed) {
            let Ok(room) = empty.recv() else { return Ok(()) };
            let before = (count(), stolen_ns(cpu).ok());
            let stretch = probe.watch(Span::from_ns(stretch_ns), room);
            let after = (count(), stolen_ns(cpu).ok());
            let disturbance =
                Disturbance { held_back: grown(before.0, after.0), stolen_ns: grown(before.1, after.1) };
            if sender.send(Ok((stretch, disturbance))).is_err() {
                return Ok(());
            }
            // The rest keeps the CPU well below the limit of RT throttling and lets what waits there run; its length is
            // random, so that stretches do not lock onto anything periodic.
            let _ = sleep_until(monotonic_ns() + stretch_ns + random.up_to(stretch_ns / 2));
        }
        Ok(())
    }
}

/// A buffer that was written once, so that no page fault of its own looks like a gap.
fn room() -> Vec<Gap> {
    let mut room = Vec::with_capacity(ROOM);
    room.resize(ROOM, Gap { from_ns: 1, until_ns: 2 });
    std::hint::black_box(room)
}

fn grown(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after.zip(before).map(|(after, before)| after.saturating_sub(before))
}

/// SplitMix64: good enough to place windows.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number from 0 to `most`.
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * (u128::from(most) + 1)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_stay_within() {
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..1_000).map(|_| random.up_to(3)).collect();
        assert!((0..=3).all(|value| drawn.contains(&value)));
        assert!(drawn.iter().all(|value| *value <= 3));
        assert_eq!(random.up_to(0), 0);
    }
}
