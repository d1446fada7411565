//! The protocol of a section that rolls back: one word that says who has the resource, in which generation, and which copy is the published
//! one; and the copies.
//!
//! ```text
//! bits 0-5 the published copy | 6-13 high users that wait | 14-15 free, low, high | 16-63 the generation
//! ```
//!
//! A generation begins with each taking. A low section that was abandoned has an old one, and nothing that it does changes the word: its last
//! exchange fails. It may still write its own copy, which no other user has, and read the copy that was published when it began, which another user may
//! have got meanwhile and write: whoever reads looks at the generation afterwards, and whoever writes has changed it before (a sequence
//! lock). The generation comes back after 2^48 takings, 300 days of one every 100 ns without pause: a section that long is not told apart.

use crate::spin_queue::Word;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The operations beside those of a [`Word`] that the copies need; loom's words have the same.
pub(super) trait Cell: Word {
    /// Reads without order.
    fn get(&self) -> u64;
    /// Writes without order.
    fn put(&self, value: u64);
    /// A fence of this order.
    fn fence(order: Ordering);
}

impl Cell for AtomicU64 {
    #[inline]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn put(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }

    #[inline]
    fn fence(order: Ordering) {
        fence(order);
    }
}

const SLOT_BITS: u32 = 6;
const WAITER: u64 = 1 << SLOT_BITS;
const WAITERS: u64 = 0xff << SLOT_BITS;
const STATE: u32 = SLOT_BITS + 8;
const GENERATION: u32 = 16;

/// So many users may share a resource: a copy each beside the published one.
pub(super) const MOST_USERS: usize = (1 << SLOT_BITS) - 1;

/// Who has the resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Free,
    Low,
    High,
}

/// What the word says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) state: State,
    pub(super) generation: u64,
}

/// A section that has the resource, or had it until it was abandoned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Claim {
    generation: u64,
    /// The published copy.
    slot: usize,
}

fn seen(word: u64) -> Seen {
    let state = match word >> STATE & 3 {
        0 => State::Free,
        1 => State::Low,
        _ => State::High,
    };
    Seen { state, generation: word >> GENERATION }
}

fn slot(word: u64) -> usize {
    (word & (WAITER - 1)) as usize
}

/// The same word with a new generation and holder.
fn taken(word: u64, state: State) -> u64 {
    let generation = (word >> GENERATION).wrapping_add(1) << GENERATION;
    generation | (state as u64) << STATE | word & (WAITERS | (WAITER - 1))
}

fn claim(word: u64) -> Claim {
    Claim { generation: word >> GENERATION, slot: slot(word) }
}

/// The word and the copies.
#[derive(Debug)]
pub(super) struct Core<A> {
    word: A,
    copies: Vec<Vec<A>>,
}

impl<A: Cell> Core<A> {
    /// A resource with these words, for so many users: copy 0 is published, copy 1 + i belongs to user i.
    pub(super) fn new(words: &[u64], users: usize) -> Core<A> {
        let copy = |of: &dyn Fn(u64) -> u64| words.iter().map(|&word| A::new(of(word))).collect();
        let own = (0..users).map(|_| copy(&|_| 0));
        Core { word: A::new(0), copies: std::iter::once(copy(&|word| word)).chain(own).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.copies[0].len()
    }

    pub(super) fn seen(&self) -> Seen {
        seen(self.word.load())
    }

    /// A low section begins, where the resource is free and no high user waits.
    pub(super) fn take_low(&self) -> Option<Claim> {
        loop {
            let word = self.word.load();
            if seen(word).state != State::Free || word & WAITERS != 0 {
                return None;
            }
            let next = taken(word, State::Low);
            if self.word.replace(word, next) {
                return Some(claim(next));
            }
        }
    }

    /// A high section begins where the resource is free, or where a low one of this generation has. `waits`: it was announced.
    pub(super) fn take_high(&self, abandons: Option<u64>, waits: bool) -> Result<Claim, Seen> {
        loop {
            let word = self.word.load();
            let now = seen(word);
            let is_overrun = now.state == State::Low && abandons == Some(now.generation);
            if now.state != State::Free && !is_overrun {
                return Err(now);
            }
            let next = taken(word, State::High) - if waits { WAITER } else { 0 };
            if self.word.replace(word, next) {
                return Ok(claim(next));
            }
        }
    }

    /// A high user waits from now on: no low section begins before it has had the resource.
    pub(super) fn announce(&self) {
        loop {
            let word = self.word.load();
            if self.word.replace(word, word + WAITER) {
                return;
            }
        }
    }

    /// Whether the claim has the resource still.
    pub(super) fn holds(&self, claim: Claim) -> bool {
        self.word.load() >> GENERATION == claim.generation
    }

    /// Copies what is published; `false`: the section was abandoned meanwhile, and the copy is worth nothing.
    pub(super) fn copy_in(&self, claim: Claim, into: &mut [u64]) -> bool {
        for (to, from) in into.iter_mut().zip(&self.copies[claim.slot]) {
            *to = from.get();
        }
        A::fence(Ordering::Acquire);
        self.word.get() >> GENERATION == claim.generation
    }

    /// Fills the section's own copy, which is not published yet.
    pub(super) fn copy_out(&self, own: usize, from: &[u64]) {
        // Who reads one of these words and belongs to an older generation sees a newer one afterwards.
        A::fence(Ordering::Release);
        for (to, &word) in self.copies[own].iter().zip(from) {
            to.put(word);
        }
    }

    /// Publishes a copy, or what was published before, and frees the resource: one store. `false`: the section was
    /// abandoned, or has left already.
    pub(super) fn leave(&self, claim: Claim, publishes: Option<usize>) -> bool {
        loop {
            let word = self.word.load();
            if word >> GENERATION != claim.generation || seen(word).state == State::Free {
                return false;
            }
            let next = word & !(3 << STATE | (WAITER - 1)) | publishes.unwrap_or(claim.slot) as u64;
            if self.word.replace(word, next) {
                return true;
            }
        }
    }

    /// The copy that a claim found published: after [`Core::leave`] with a new one it belongs to the user.
    pub(super) fn former(claim: Claim) -> usize {
        claim.slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic as la;
    use loom::thread;

    impl Cell for la::AtomicU64 {
        fn get(&self) -> u64 {
            la::AtomicU64::load(self, Ordering::Relaxed)
        }

        fn put(&self, value: u64) {
            self.store(value, Ordering::Relaxed);
        }

        fn fence(order: Ordering) {
            la::fence(order);
        }
    }

    type Model = Core<la::AtomicU64>;

    /// One low section that adds 1 to both words; whether it was published.
    fn low(core: &Model, own: &mut usize) -> bool {
        let Some(claim) = core.take_low() else { return false };
        let mut copy = [0; 2];
        if !core.copy_in(claim, &mut copy) {
            return false;
        }
        assert_eq!(copy[0], copy[1], "a body never sees half of a state");
        core.copy_out(*own, &copy.map(|word| word + 1));
        let is_published = core.leave(claim, Some(*own));
        if is_published {
            *own = Model::former(claim);
        }
        is_published
    }

    /// One high section that adds 10 to both words, and abandons whom it finds.
    fn high(core: &Model, own: &mut usize) {
        let mut abandons = None;
        let claim = loop {
            match core.take_high(abandons, false) {
                Ok(claim) => break claim,
                Err(seen) => abandons = Some(seen.generation),
            }
        };
        let mut copy = [0; 2];
        assert!(core.copy_in(claim, &mut copy), "a high section is never abandoned");
        assert_eq!(copy[0], copy[1], "what is published is whole");
        core.copy_out(*own, &copy.map(|word| word + 10));
        assert!(core.leave(claim, Some(*own)));
        *own = Model::former(claim);
    }

    fn model(rounds: u64) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let core = Arc::new(Model::new(&[0, 0], 2));
            let other = {
                let core = core.clone();
                thread::spawn(move || u64::from(low(&core, &mut 1)))
            };
            let mut own = 2;
            for _ in 0..rounds {
                high(&core, &mut own);
            }
            let published = other.join().expect("it ends");
            let claim = core.take_low().expect("the lock is free");
            let mut copy = [0; 2];
            assert!(core.copy_in(claim, &mut copy));
            assert_eq!(copy, [10 * rounds + published; 2]);
        });
    }

    #[test]
    fn a_low_section_is_published_whole_or_not_at_all() {
        model(1);
    }

    /// The second high section writes the copy that the low one may still read.
    #[test]
    fn an_abandoned_section_that_still_reads_is_told() {
        model(2);
    }

    #[test]
    fn no_low_section_begins_before_a_high_user_that_waits() {
        let core: Core<AtomicU64> = Core::new(&[5], 2);
        let claim = core.take_low().expect("free");
        assert_eq!(core.take_high(None, false), Err(core.seen()));
        core.announce();
        assert!(core.leave(claim, None) && core.take_low().is_none());
        let high = core.take_high(None, true).expect("free");
        assert_eq!((core.seen().state, core.holds(high), core.holds(claim)), (State::High, true, false));
        assert!(core.take_low().is_none() && core.leave(high, None));
        assert!(core.take_low().is_some());
    }

    #[test]
    fn only_the_generation_that_was_seen_is_abandoned() {
        let core: Core<AtomicU64> = Core::new(&[5], 2);
        let first = core.take_low().expect("free");
        let generation = core.seen().generation;
        assert!(core.leave(first, Some(1)));
        let second = core.take_low().expect("free");
        assert!(core.take_high(Some(generation), false).is_err());
        assert!(core.take_high(Some(generation + 1), false).is_ok());
        assert!(!core.leave(second, Some(2)) && !core.copy_in(second, &mut [0]));
        // The generation wraps, and nothing else of the word changes.
        let last = u64::MAX << GENERATION | 7;
        assert_eq!(taken(last, State::Low), 1 << STATE | 7);
    }
}
