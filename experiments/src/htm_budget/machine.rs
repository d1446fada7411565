//! Processors with a cache each, a bus that shows every request to all others, and memory, all of it byte for byte.
//!
//! A request goes to all other caches before the own one changes, and one operation ends before the next one begins.
//!
//! Where a transaction asks for the only copy of a line that another cache has dirty, that cache writes it back: the transaction's own copy is
//! discarded by an abort, and would be the last one. The source writes back the own cache's dirty lines alone.

use super::cache::{Cache, LINE, LineAddress, line_of};
use super::line::{self, Access, Snoop, State};
use super::transaction::{Instruction, Mode, Outcome, Reporting, Signal, Transaction};

/// Why a transaction was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// By an instruction.
    Asked,
    /// Another processor's access, or a local one while it was preempted.
    Conflict,
    /// A line of it had to leave the cache.
    Eviction,
}

#[derive(Clone, Debug)]
struct Cpu {
    cache: Cache,
    transaction: Transaction,
    aborts: Vec<Cause>,
}

/// The machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    cpus: Vec<Cpu>,
    memory: Vec<u8>,
    /// Lines that were written back.
    pub(super) write_backs: u64,
}

impl Machine {
    /// So many processors, and memory with these bytes: whole lines.
    pub(super) fn new(cpus: usize, memory: Vec<u8>, reporting: Reporting) -> Machine {
        assert!(memory.len().is_multiple_of(LINE), "memory has whole lines");
        let cpu = Cpu { cache: Cache::new(), transaction: Transaction::new(reporting), aborts: Vec::new() };
        Machine { cpus: vec![cpu; cpus], memory, write_backs: 0 }
    }

    pub(super) fn transaction(&self, cpu: usize) -> Transaction {
        self.cpus[cpu].transaction
    }

    pub(super) fn state(&self, cpu: usize, address: u64) -> (State, bool) {
        self.cpus[cpu].cache.state(line_of(address))
    }

    /// What was given up so far, and why.
    pub(super) fn aborts(&self, cpu: usize) -> &[Cause] {
        &self.cpus[cpu].aborts
    }

    /// A transaction instruction at a place of the program.
    pub(super) fn instruct(&mut self, cpu: usize, instruction: Instruction, place: u64) -> Outcome {
        let it = &mut self.cpus[cpu];
        let was_doomed = it.transaction.is_doomed;
        let (outcome, signal) = it.transaction.step(instruction, place);
        match signal {
            Signal::None => {}
            Signal::Commit => it.cache.commit(),
            Signal::Abort => {
                it.cache.abort();
                if !was_doomed {
                    it.aborts.push(Cause::Asked);
                }
            }
        }
        outcome
    }

    /// Reads a byte; `None`: the transaction was given up instead.
    pub(super) fn read(&mut self, cpu: usize, address: u64) -> Option<u8> {
        self.access(cpu, address, None)
    }

    /// Writes a byte; `None`: the transaction was given up instead.
    pub(super) fn write(&mut self, cpu: usize, address: u64, value: u8) -> Option<u8> {
        self.access(cpu, address, Some(value))
    }

    fn access(&mut self, cpu: usize, address: u64, value: Option<u8>) -> Option<u8> {
        let (wanted, is_write) = (line_of(address), value.is_some());
        let (state, in_set) = self.cpus[cpu].cache.state(wanted);
        if self.cpus[cpu].transaction.mode == Mode::Preempted
            && line::conflicts_locally(state, in_set, is_write)
        {
            self.give_up(cpu, Cause::Conflict);
        }
        let is_transactional = self.cpus[cpu].transaction.mode == Mode::Transaction;
        let access = Access { is_write, is_transactional };
        if self.cpus[cpu].cache.state(wanted).0 == State::Invalid {
            self.make_room(cpu, wanted)?;
            self.fill(cpu, wanted, access);
        }
        let (state, in_set) = self.cpus[cpu].cache.state(wanted);
        let step = line::hit(state, in_set, access);
        if step.writes_back {
            self.write_back(cpu, wanted);
        }
        if step.upgrades {
            self.ask_others(cpu, wanted, Snoop::Own, is_transactional);
        }
        let cache = &mut self.cpus[cpu].cache;
        cache.touch(wanted);
        let slot = cache.find(wanted)?;
        slot.state = step.next;
        slot.in_set |= is_transactional;
        let byte = &mut slot.data[address as usize % LINE];
        *byte = value.unwrap_or(*byte);
        Some(*byte)
    }

    /// Frees a slot for a line; `None`: a transaction under way was given up instead, and its access with it.
    fn make_room(&mut self, cpu: usize, wanted: LineAddress) -> Option<()> {
        let victim = *self.cpus[cpu].cache.victim(wanted);
        if victim.state != State::Invalid && victim.in_set {
            let is_under_way = self.cpus[cpu].transaction.mode == Mode::Transaction;
            self.give_up(cpu, Cause::Eviction);
            if is_under_way {
                return None;
            }
        }
        let victim = *self.cpus[cpu].cache.victim(wanted);
        if victim.state.is_dirty() {
            self.write_back(cpu, victim.line);
        }
        self.cpus[cpu].cache.victim(wanted).state = State::Invalid;
        Some(())
    }

    /// Gets a line from another cache that has it dirty, else from memory.
    fn fill(&mut self, cpu: usize, wanted: LineAddress, access: Access) {
        let snoop = if access.is_write { Snoop::Own } else { Snoop::Read };
        let (supplied, is_shared) = self.ask_others(cpu, wanted, snoop, access.is_transactional);
        let data = supplied.unwrap_or_else(|| self.in_memory(wanted));
        let state = match (access.is_write, is_shared) {
            (true, _) | (false, false) => State::Exclusive,
            (false, true) => State::Shared,
        };
        let slot = self.cpus[cpu].cache.victim(wanted);
        (slot.line, slot.state, slot.in_set, slot.data) = (wanted, state, false, data);
    }

    /// All other caches see a request. What one that has the line dirty answers, and whether one keeps it.
    fn ask_others(
        &mut self,
        cpu: usize,
        wanted: LineAddress,
        snoop: Snoop,
        is_transactional: bool,
    ) -> (Option<[u8; LINE]>, bool) {
        let (mut supplied, mut is_shared) = (None, false);
        for other in (0..self.cpus.len()).filter(|&other| other != cpu) {
            let (state, in_set) = self.cpus[other].cache.state(wanted);
            if line::conflicts(state, in_set, snoop) {
                self.give_up(other, Cause::Conflict);
            }
            let (state, _) = self.cpus[other].cache.state(wanted);
            if state.is_dirty() && snoop == Snoop::Own && is_transactional {
                self.write_back(other, wanted);
            }
            if let Some(slot) = self.cpus[other].cache.find(wanted) {
                if state.is_dirty() {
                    supplied = Some(slot.data);
                }
                slot.state = line::snooped(state, snoop);
                is_shared |= slot.state != State::Invalid;
            }
        }
        (supplied, is_shared)
    }

    fn give_up(&mut self, cpu: usize, cause: Cause) {
        let it = &mut self.cpus[cpu];
        it.cache.abort();
        it.transaction.given_up();
        it.aborts.push(cause);
    }

    fn bytes(line: LineAddress) -> std::ops::Range<usize> {
        line as usize * LINE..(line as usize + 1) * LINE
    }

    fn in_memory(&self, line: LineAddress) -> [u8; LINE] {
        let mut data = [0; LINE];
        data.copy_from_slice(&self.memory[Self::bytes(line)]);
        data
    }

    fn write_back(&mut self, cpu: usize, line: LineAddress) {
        if let Some(slot) = self.cpus[cpu].cache.find(line) {
            self.memory[Self::bytes(line)].copy_from_slice(&slot.data);
            self.write_backs += 1;
        }
    }

    /// All bytes as a processor without transaction would read them, without changing anything.
    pub(super) fn image(&self) -> Vec<u8> {
        let mut image = self.memory.clone();
        for line in 0..(image.len() / LINE) as u64 {
            for cpu in &self.cpus {
                if let Some(data) = cpu.cache.dirty(line) {
                    image[Self::bytes(line)].copy_from_slice(data);
                }
            }
        }
        image
    }
}
