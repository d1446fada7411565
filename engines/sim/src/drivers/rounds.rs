//! Softirq rounds after an interrupt: as Linux has had them since 2.6, with a restart limit.
//!
//! One round gives each raised softirq one turn, in the order of the file, of at most its poll budget of events. Rounds
//! repeat while some softirq is raised and has rounds left; what is raised then waits for the background thread or the next
//! interrupt.

use super::device::Where;
use super::processor::Processor;

/// Rounds under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// Which round, from 0.
    round: u32,
    /// The device whose turn it is.
    device: usize,
    /// Events of its turn so far.
    taken: u32,
    /// When the event that is worked on ends; `None`: between events.
    pub(crate) end: Option<u64>,
}

/// What rounds do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// One event of this device; whether its turn begins.
    Event(usize, bool),
    /// The turn of this device is over.
    TurnEnds(usize),
    /// The rounds are over; whether something is left to the background.
    Over(bool),
}

impl Processor {
    /// Begins rounds with a first turn for every raised softirq.
    pub(crate) fn begin_rounds(&mut self) {
        self.rounds = Some(Rounds { round: 0, device: 0, taken: 0, end: None });
        self.give_turns(0);
    }

    /// Every raised softirq that has rounds left gets a turn; whether some did.
    fn give_turns(&mut self, round: u32) -> bool {
        let mut some = false;
        for device in &mut self.devices {
            let Where::Softirq { rounds, .. } = device.service else { continue };
            device.turn = device.pending && round < rounds;
            device.pending &= !device.turn;
            some |= device.turn;
        }
        some
    }

    /// Between events: what comes next. Rounds must be under way.
    pub(crate) fn next_of_rounds(&mut self) -> Next {
        loop {
            let Some(mut rounds) = self.rounds else { return Next::Over(false) };
            let Some(device) = self.devices.get(rounds.device) else {
                rounds = Rounds { round: rounds.round + 1, device: 0, taken: 0, end: None };
                self.rounds = Some(rounds);
                if self.give_turns(rounds.round) {
                    continue;
                }
                self.rounds = None;
                return Next::Over(self.softirq_waits());
            };
            let Where::Softirq { poll_budget, .. } = device.service else {
                self.rounds = Some(Rounds { device: rounds.device + 1, taken: 0, ..rounds });
                continue;
            };
            let (has_turn, is_empty) = (device.turn, device.ring.is_empty());
            if has_turn && !is_empty && rounds.taken < poll_budget {
                return Next::Event(rounds.device, rounds.taken == 0);
            }
            self.rounds = Some(Rounds { device: rounds.device + 1, taken: 0, ..rounds });
            if has_turn {
                let ended = &mut self.devices[rounds.device];
                ended.turn = false;
                ended.pending |= !is_empty;
                if rounds.taken > 0 {
                    self.unmask_if_idle(rounds.device);
                    return Next::TurnEnds(rounds.device);
                }
                self.unmask_if_idle(rounds.device);
            }
        }
    }

    /// The event of the present turn is worked on until `end`.
    pub(crate) fn work_in_rounds(&mut self, end: u64) {
        if let Some(rounds) = &mut self.rounds {
            rounds.taken += 1;
            rounds.end = Some(end);
        }
    }

    /// The event of the present turn is done at `now`: whose it was.
    pub(crate) fn round_event_ends(&mut self, now: u64) -> Option<usize> {
        let rounds = self.rounds.as_mut()?;
        rounds.end.take_if(|end| *end <= now)?;
        Some(rounds.device)
    }
}
