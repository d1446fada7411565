//! A root over several processors: its first jobs run, as many as it has processors.
//!
//! What is decided: which of the ready jobs run, and where. The first in the order of the root run, where a running job goes
//! before those that are no more important. A job that is not preemptible, or whose processor the kernel has, keeps it and
//! counts. Who runs and stays keeps its processor; of the newcomers each gets the processor that its task had last, where
//! that is free, and then the others, in the order of importance, the lowest free one.

use crate::Machine;
use crate::desired::ProcessorIndex;
use crate::machine::dispatcher::NONE;
use horolog_model::TaskId;

/// A root over several processors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    /// Its dispatcher.
    pub(crate) root: u32,
    /// Its processors, ascending.
    pub(crate) processors: Box<[u16]>,
    /// Room for a decision: the first jobs in their order, which processors are free, who runs (the least important first).
    first: Vec<Candidate>,
    free: Free,
    kept: Vec<Candidate>,
    /// Whether a mode has taken a processor from a job since the last choice.
    is_any_taken_out: bool,
}

/// Processors that are free, a bit each.
#[derive(Clone, Debug, Default)]
struct Free {
    words: Vec<u64>,
    count: usize,
}

impl Free {
    fn clear(&mut self) {
        self.words.fill(0);
        self.count = 0;
    }

    fn add(&mut self, index: u16) {
        self.words[usize::from(index / 64)] |= 1 << (index % 64);
        self.count += 1;
    }

    fn has(&self, index: u16) -> bool {
        self.words.get(usize::from(index / 64)).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    fn take(&mut self, index: u16) {
        self.words[usize::from(index / 64)] &= !(1 << (index % 64));
        self.count -= 1;
    }

    fn take_lowest(&mut self) -> Option<u16> {
        let place = self.words.iter().position(|&word| word != 0)?;
        let index = (64 * place) as u16 + self.words[place].trailing_zeros() as u16;
        self.take(index);
        Some(index)
    }
}

/// No processor.
pub(crate) const NO_PROCESSOR: u16 = u16::MAX;

/// A ready job in the order of its root; less goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Candidate {
    /// One past the last position of its level: greater ones are less important.
    level: u32,
    urgency: u64,
    /// Of equals the running one goes first.
    waits: bool,
    tie: u64,
    position: u32,
    task: u32,
}

impl Candidate {
    /// Whether it displaces `other` from a processor, or makes it give way.
    fn is_above(&self, other: &Candidate) -> bool {
        (self.level, self.urgency) < (other.level, other.urgency)
    }
}

impl Cluster {
    pub(crate) fn new(root: u32, processors: Box<[u16]>) -> Cluster {
        let size = processors.len();
        let room = || Vec::with_capacity(size + 1);
        let words = vec![0; processors.last().map_or(0, |&last| usize::from(last) / 64 + 1)];
        Cluster {
            root,
            processors,
            first: room(),
            free: Free { words, count: 0 },
            kept: room(),
            is_any_taken_out: false,
        }
    }
}

impl Machine {
    /// The cluster that a processor belongs to.
    #[must_use]
    pub(crate) fn cluster_of(&self, processor: ProcessorIndex) -> Option<usize> {
        let cluster = self.processors[usize::from(processor.0)].cluster;
        (cluster != NONE).then_some(cluster as usize)
    }

    /// The processors of a cluster, ascending.
    pub(crate) fn processors_of(&self, cluster: usize) -> &[u16] {
        &self.clusters[cluster].processors
    }

    /// How many clusters there are.
    pub(crate) fn clusters(&self) -> usize {
        self.clusters.len()
    }

    /// Whose job was chosen last for a processor and has neither completed nor suspended itself.
    pub(crate) fn running(&self, processor: ProcessorIndex) -> Option<TaskId> {
        let running = self.processors[usize::from(processor.0)].running;
        (running != NONE).then_some(TaskId(running))
    }

    /// Decides who runs on the processors of a cluster; `is_ready` is asked by their place among them. One that is not ready keeps the job that it has, and gets none if it
    /// has none. Asking again without an event between gives the same answer.
    pub(crate) fn choose_in_cluster(&mut self, cluster: usize, mut is_ready: impl FnMut(usize) -> bool) {
        // Its room is put back below; an empty one allocates nothing.
        let mut state = std::mem::take(&mut self.clusters[cluster]);
        let Cluster { root, processors, first, free, .. } = &mut state;
        free.clear();
        let mut is_anybody_asked = false;
        for (place, &index) in processors.iter().enumerate() {
            let processor = &self.processors[usize::from(index)];
            let is_kept = processor.running != NONE && processor.committed;
            is_anybody_asked |= processor.should_yield;
            if !is_kept && is_ready(place) {
                free.add(index);
            }
        }
        self.find_first(*root, first, free.count, |on| on == NO_PROCESSOR || free.has(on));
        self.place(first, free);
        let is_committed = |&index: &u16| self.processors[usize::from(index)].committed;
        if is_anybody_asked || processors.iter().any(is_committed) {
            self.ask_to_yield(&mut state);
        }
        if std::mem::take(&mut state.is_any_taken_out) {
            for &task in &self.nodes[state.root as usize].layout.children {
                self.leaves[task as usize].is_taken_out = false;
            }
        }
        self.clusters[cluster] = state;
    }

    /// A mode takes the processor from the job of `task`. It keeps it where another mode of this instant wakes the job and that is among
    /// the first.
    pub(crate) fn take_out_of_cluster(&mut self, task: TaskId) {
        let on = self.processor_running(task.0);
        if on != NO_PROCESSOR {
            self.leaves[task.index()].is_taken_out = true;
            self.clusters[self.processors[usize::from(on)].cluster as usize].is_any_taken_out = true;
        }
    }

    /// How a ready job stands in the order of a root.
    fn candidate(&self, root: u32, position: u32) -> Candidate {
        let node = &self.nodes[root as usize];
        let task = node.layout.children[position as usize];
        let key = node.keys[position as usize];
        Candidate {
            level: node.layout.level_end[position as usize],
            urgency: key.urgency,
            waits: self.processor_running(task) == NO_PROCESSOR,
            tie: key.tie,
            position,
            task,
        }
    }

    /// The processor on which a task of a cluster runs, or [`NO_PROCESSOR`].
    fn processor_running(&self, task: u32) -> u16 {
        let on = self.leaves[task as usize].on;
        let runs = self.processors.get(usize::from(on)).is_some_and(|processor| processor.running == task);
        if runs { on } else { NO_PROCESSOR }
    }

    /// The job of `task` leaves the processor of its cluster, where it has one.
    pub(crate) fn leave_cluster(&mut self, task: TaskId) {
        let on = self.processor_running(task.0);
        if on != NO_PROCESSOR {
            self.processors[usize::from(on)].leave();
        }
    }

    /// The first ready jobs in the order of the root, of those whose processor `is_wanted`: [`NO_PROCESSOR`] for who waits.
    fn find_first(
        &self,
        root: u32,
        first: &mut Vec<Candidate>,
        wanted: usize,
        is_wanted: impl Fn(u16) -> bool,
    ) {
        let node = &self.nodes[root as usize];
        let size = node.layout.children.len() as u32;
        first.clear();
        let mut from = 0;
        while first.len() < wanted
            && let Some(position) = node.ready.lowest_from(from, size)
        {
            let end = node.layout.level_end[position as usize];
            node.ready.for_each_in(position, end, |position| {
                let candidate = self.candidate(root, position);
                if !is_wanted(self.processor_running(candidate.task)) {
                    return;
                }
                let place = first.partition_point(|other| *other < candidate);
                if place < wanted {
                    first.truncate(wanted - 1);
                    first.insert(place, candidate);
                }
            });
            from = end;
        }
    }

    /// Gives the free processors to the first jobs.
    fn place(&mut self, first: &mut Vec<Candidate>, free: &mut Free) {
        first.retain(|candidate| {
            let on = self.processor_running(candidate.task);
            if on == NO_PROCESSOR {
                let leaf = &self.leaves[candidate.task as usize];
                let (on, goes_on) = (leaf.on, leaf.is_taken_out && free.has(leaf.on));
                if goes_on {
                    free.take(on);
                    self.start(candidate, on);
                }
                return !goes_on;
            }
            // It runs already and stays where it is.
            free.take(on);
            self.processors[usize::from(on)].committed = !self.leaves[candidate.task as usize].preemptible;
            false
        });
        first.retain(|candidate| {
            let last = self.leaves[candidate.task as usize].on;
            let is_free = free.has(last);
            if is_free {
                free.take(last);
                self.start(candidate, last);
            }
            !is_free
        });
        for candidate in first.iter() {
            if let Some(index) = free.take_lowest() {
                self.start(candidate, index);
            }
        }
        while let Some(index) = free.take_lowest() {
            self.processors[usize::from(index)].leave();
        }
    }

    fn start(&mut self, candidate: &Candidate, index: u16) {
        self.leaves[candidate.task as usize].on = index;
        self.processors[usize::from(index)].run(candidate.task, candidate.position, &mut self.leaves);
    }

    /// Jobs that keep their processors until they give them up are asked to where others wait: the least important one where the
    /// first that waits is strictly more important, the next one where the second is, and so on.
    fn ask_to_yield(&mut self, state: &mut Cluster) {
        let Cluster { root, processors, first, kept, .. } = state;
        kept.clear();
        let mut idle = 0;
        for &index in processors.iter() {
            let running = self.processors[usize::from(index)].running;
            if running != NONE {
                let candidate = self.candidate(*root, self.leaves[running as usize].position);
                let place = kept.partition_point(|other: &Candidate| *other > candidate);
                kept.insert(place, candidate);
            } else {
                idle += 1;
            }
        }
        // Those that an idle processor will take as soon as it can need nobody to give way.
        self.find_first(*root, first, processors.len(), |on| on == NO_PROCESSOR);
        let waiting = first.iter().skip(idle);
        let asked = kept.iter().zip(waiting).take_while(|(kept, waiting)| waiting.is_above(kept)).count();
        for (place, candidate) in kept.iter().enumerate() {
            let on = self.leaves[candidate.task as usize].on;
            let processor = &mut self.processors[usize::from(on)];
            processor.flag(processor.committed && place < asked);
        }
    }
}
