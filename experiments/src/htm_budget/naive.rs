//! The oracle: memory without caches, written in place, with an undo log a processor, and sets of lines that it has read and written. Which
//! lines a cache would have is counted apart: a list of lines a set, the last used one first, never longer than there are ways.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Begin,
    End,
    Abort,
    Preempt,
    Resume,
    Read(u64),
    Write(u64, u8),
}

#[derive(Clone, Default)]
struct Core {
    /// 0: none, 1: under way, 2: preempted.
    phase: u8,
    depth: u32,
    dead: bool,
    undo: Vec<(u64, u8)>,
    reads: BTreeSet<u64>,
    writes: BTreeSet<u64>,
    recent: BTreeMap<u64, Vec<u64>>,
}

impl Core {
    fn has(&self, line: u64) -> bool {
        self.recent.get(&(line % 128)).is_some_and(|list| list.contains(&line))
    }

    fn drop_line(&mut self, line: u64) {
        if let Some(list) = self.recent.get_mut(&(line % 128)) {
            list.retain(|&other| other != line);
        }
    }

    /// The line that has to go for another one.
    fn goes(&self, line: u64) -> Option<u64> {
        let list = self.recent.get(&(line % 128))?;
        (!list.contains(&line) && list.len() == 4).then(|| list[3])
    }
}

pub(super) struct Naive {
    pub(super) memory: Vec<u8>,
    cores: Vec<Core>,
    eager: bool,
    /// Of each core: aborts that were asked for, by conflict, by eviction.
    pub(super) aborts: Vec<[u64; 3]>,
}

impl Naive {
    pub(super) fn new(cores: usize, memory: Vec<u8>, eager: bool) -> Naive {
        Naive { memory, cores: vec![Core::default(); cores], eager, aborts: vec![[0; 3]; cores] }
    }

    fn roll_back(&mut self, core: usize, why: usize) {
        let it = &mut self.cores[core];
        for (address, value) in it.undo.drain(..).rev() {
            self.memory[address as usize] = value;
        }
        it.reads.clear();
        for line in std::mem::take(&mut it.writes) {
            it.drop_line(line);
        }
        if it.phase == 1 {
            (it.phase, it.depth, it.dead) = (0, 0, false);
        } else {
            it.dead = true;
        }
        self.aborts[core][why] += 1;
    }

    /// What an operation says: the byte of an access, 1 of an instruction that succeeds; `None` where it fails.
    pub(super) fn run(&mut self, core: usize, op: Op) -> Option<u8> {
        match op {
            Op::Read(address) => return self.touch(core, address, None),
            Op::Write(address, value) => return self.touch(core, address, Some(value)),
            _ => {}
        }
        let it = &mut self.cores[core];
        let done = match (it.phase, op) {
            (0, Op::Begin) => {
                (it.phase, it.depth, it.dead) = (1, 1, false);
                true
            }
            (0, _) => false,
            (1, Op::Begin) => {
                it.depth += 1;
                true
            }
            (1, Op::Preempt) => {
                it.phase = 2;
                true
            }
            (1, Op::End) if it.depth > 1 => {
                it.depth -= 1;
                true
            }
            (1, Op::End) if !it.dead => {
                it.undo.clear();
                it.reads.clear();
                it.writes.clear();
                (it.phase, it.depth) = (0, 0);
                true
            }
            (1, _) => {
                let told = u64::from(it.dead);
                self.roll_back(core, 0);
                self.aborts[core][0] -= told;
                false
            }
            (_, Op::Resume) if it.dead && self.eager => {
                (it.phase, it.depth, it.dead) = (0, 0, false);
                false
            }
            (_, Op::Resume) => {
                it.phase = 1;
                true
            }
            _ => {
                let told = u64::from(it.dead);
                self.roll_back(core, 0);
                self.aborts[core][0] -= told;
                false
            }
        };
        done.then_some(1)
    }

    fn touch(&mut self, core: usize, address: u64, value: Option<u8>) -> Option<u8> {
        let line = address / 64;
        let hits = |it: &Core| it.writes.contains(&line) || value.is_some() && it.reads.contains(&line);
        if self.cores[core].phase == 2 && hits(&self.cores[core]) {
            self.roll_back(core, 1);
        }
        if let Some(gone) = self.cores[core].goes(line) {
            let it = &self.cores[core];
            if it.reads.contains(&gone) || it.writes.contains(&gone) {
                let stops = it.phase == 1;
                self.roll_back(core, 2);
                if stops {
                    return None;
                }
            }
            if let Some(gone) = self.cores[core].goes(line) {
                self.cores[core].drop_line(gone);
            }
        }
        for other in (0..self.cores.len()).filter(|&other| other != core) {
            if hits(&self.cores[other]) {
                self.roll_back(other, 1);
            }
            if value.is_some() {
                self.cores[other].drop_line(line);
            }
        }
        let it = &mut self.cores[core];
        it.drop_line(line);
        it.recent.entry(line % 128).or_default().insert(0, line);
        let place = address as usize;
        if it.phase == 1 {
            if value.is_some() {
                it.undo.push((address, self.memory[place]));
                it.writes.insert(line);
            } else {
                it.reads.insert(line);
            }
        }
        self.memory[place] = value.unwrap_or(self.memory[place]);
        Some(self.memory[place])
    }

    pub(super) fn has(&self, core: usize, line: u64) -> bool {
        self.cores[core].has(line)
    }
}

mod tests {
    use super::super::line::State;
    use super::super::machine::{Cause, Machine};
    use super::super::transaction::{Instruction, Outcome, Reporting};
    use super::{Naive, Op};
    use horolog_draw::Random;

    const MEMORY: usize = 1 << 16;

    fn draw(random: &mut Random, own: Option<u64>) -> Op {
        // Few sets and more lines of each than there are ways, so that lines meet and have to go.
        let set = own.unwrap_or_else(|| random.below(2));
        let address = (set + 128 * random.below(7)) * 64 + random.below(3);
        match random.below(100) {
            0..=8 => Op::Begin,
            9..=15 => Op::End,
            16..=17 => Op::Abort,
            18..=22 => Op::Preempt,
            23..=28 => Op::Resume,
            29..=65 => Op::Read(address),
            _ => Op::Write(address, random.below(256) as u8),
        }
    }

    fn carry_out(machine: &mut Machine, cpu: usize, op: Op) -> Option<u8> {
        let instruction = match op {
            Op::Read(address) => return machine.read(cpu, address),
            Op::Write(address, value) => return machine.write(cpu, address, value),
            Op::Begin => Instruction::Begin,
            Op::End => Instruction::End,
            Op::Abort => Instruction::Abort,
            Op::Preempt => Instruction::Preempt,
            Op::Resume => Instruction::Resume,
        };
        (machine.instruct(cpu, instruction, 0) == Outcome::Done).then_some(1)
    }

    /// At most one owner of a dirty line, and no copy beside an exclusive or modified one.
    fn check_states(machine: &Machine, naive: &Naive, cpus: usize) {
        for line in (0..3).flat_map(|set| (0..7).map(move |tag| set + 128 * tag)) {
            let states: Vec<State> = (0..cpus).map(|cpu| machine.state(cpu, line * 64).0).collect();
            for (cpu, state) in states.iter().enumerate() {
                assert_eq!(
                    *state != State::Invalid,
                    naive.has(cpu, line),
                    "line {line} of {cpu}: {states:?}"
                );
            }
            let count =
                |is_one: &dyn Fn(State) -> bool| states.iter().filter(|state| is_one(**state)).count();
            let present = count(&|state| state != State::Invalid);
            let only = count(&|state| matches!(state, State::Exclusive | State::Modified));
            assert!(only == 0 || only == 1 && present == 1, "{states:?}");
            assert!(count(&State::is_dirty) <= 1, "{states:?}");
        }
    }

    #[test]
    fn random_traces_of_several_processors_are_those_without_caches() {
        let mut causes = [0_u64; 3];
        let mut commits = 0_u64;
        for seed in 0..400 {
            let mut random = Random::new(seed);
            let cpus = 2 + (seed % 2) as usize;
            let is_eager = seed % 4 < 2;
            let reporting = if is_eager { Reporting::Eager } else { Reporting::Lazy };
            let memory: Vec<u8> = (0..MEMORY).map(|_| random.below(256) as u8).collect();
            let mut machine = Machine::new(cpus, memory.clone(), reporting);
            let mut naive = Naive::new(cpus, memory, is_eager);
            for step in 0..400 {
                let cpu = random.below(cpus as u64) as usize;
                // In every third trace each processor has a set of its own: then nothing but evictions and instructions abort.
                let op = draw(&mut random, seed.is_multiple_of(3).then_some(cpu as u64));
                let (ours, expected) = (carry_out(&mut machine, cpu, op), naive.run(cpu, op));
                assert_eq!(ours, expected, "seed {seed}, step {step}: {op:?} of processor {cpu}");
                commits += u64::from(op == Op::End && expected.is_some());
                for cpu in 0..cpus {
                    let count = |cause| machine.aborts(cpu).iter().filter(|&&it| it == cause).count() as u64;
                    let ours = [Cause::Asked, Cause::Conflict, Cause::Eviction].map(count);
                    assert_eq!(ours, naive.aborts[cpu], "seed {seed}, step {step}: {op:?}");
                }
                check_states(&machine, &naive, cpus);
            }
            for cpu in 0..cpus {
                // What is under way is undone, so that both have what was committed.
                carry_out(&mut machine, cpu, Op::Abort);
                naive.run(cpu, Op::Abort);
                naive.aborts[cpu].iter().zip(&mut causes).for_each(|(count, all)| *all += count);
            }
            assert!(machine.image() == naive.memory, "seed {seed}");
        }
        assert!(causes.iter().all(|&count| count > 500) && commits > 1_000, "{causes:?}, {commits}");
    }
}
