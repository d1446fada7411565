//! The releases that come next, of many loads, so that the time moves forwards at the price of a few instructions a release.
//!
//! A timing wheel (`varghese87`): time is cut into slots of 2^k ns, about as long as the mean distance of two releases, and a
//! ring of four slots a load holds what comes within its length. What comes later waits in a list of its own, which is
//! looked through once in a turn of the ring. The order of releases within a step does not matter: they are only summed up.

/// No load.
const NONE: u32 = u32::MAX;

/// At most so many slots: 4 MiB.
const MOST_SLOTS: usize = 1 << 20;

/// For each load an instant; those before a given instant are taken out together.
pub(super) struct ReleaseQueue {
    /// A slot lasts 2^shift ns.
    shift: u32,
    /// The first load of each slot of the ring; a slot's number modulo their number is its place.
    heads: Vec<u32>,
    /// The next load of the same list, and the load's instant.
    loads: Vec<(u32, u64)>,
    /// Every load lies in this slot or later.
    slot: u64,
    /// Loads that lay beyond the ring, and the least slot of one.
    far: u32,
    far_slot: u64,
}

impl ReleaseQueue {
    /// For so many loads, with so many releases in 2^64 ns in all.
    pub(super) fn new(loads: usize, rate: u128) -> ReleaseQueue {
        let slots = loads.saturating_mul(4).clamp(64, MOST_SLOTS).next_power_of_two();
        let distance = u64::try_from((1_u128 << 64) / rate.max(1)).unwrap_or(u64::MAX);
        ReleaseQueue {
            shift: distance.max(1).ilog2(),
            heads: vec![NONE; slots],
            loads: Vec::with_capacity(loads),
            slot: 0,
            far: NONE,
            far_slot: u64::MAX,
        }
    }

    /// Takes every load out; the next ones lie at `x` or later.
    pub(super) fn clear(&mut self, x: u64) {
        self.heads.fill(NONE);
        self.loads.clear();
        self.slot = x >> self.shift;
        (self.far, self.far_slot) = (NONE, u64::MAX);
    }

    /// Adds the next load, at this instant, which does not lie before what was taken out last.
    pub(super) fn push(&mut self, at: u64) {
        let load = self.loads.len() as u32;
        self.loads.push((NONE, at));
        self.link(load, at);
    }

    /// Puts a load that was taken out in again, at an instant that does not lie before those that were taken out.
    pub(super) fn put(&mut self, load: usize, at: u64) {
        self.loads[load].1 = at;
        self.link(load as u32, at);
    }

    fn link(&mut self, load: u32, at: u64) {
        let slot = at >> self.shift;
        let list = if slot - self.slot < self.heads.len() as u64 {
            let place = slot as usize & (self.heads.len() - 1);
            &mut self.heads[place]
        } else {
            self.far_slot = self.far_slot.min(slot);
            &mut self.far
        };
        self.loads[load as usize].0 = std::mem::replace(list, load);
    }

    /// Whether no load lies before `x`, as far as one look tells.
    pub(super) fn is_quiet(&self, x: u64) -> bool {
        let slot = x >> self.shift;
        slot == self.slot && self.heads[slot as usize & (self.heads.len() - 1)] == NONE
    }

    /// Takes out the loads that lie before `x`: the first of a list, to be walked with [`ReleaseQueue::taken`] and [`ReleaseQueue::after`].
    pub(super) fn take_before(&mut self, x: u64) -> u32 {
        let slots = self.heads.len() as u64;
        let last = x >> self.shift;
        let mut taken = NONE;
        // Whole slots of the ring; beyond one turn there is nothing in it.
        for slot in self.slot..last.min(self.slot.saturating_add(slots)) {
            let head = std::mem::replace(&mut self.heads[slot as usize & (slots as usize - 1)], NONE);
            self.take(head, u64::MAX, &mut taken);
        }
        self.slot = self.slot.max(last);
        if self.far_slot <= last {
            let head = std::mem::replace(&mut self.far, NONE);
            self.far_slot = u64::MAX;
            self.take(head, x, &mut taken);
        }
        let place = self.slot as usize & (slots as usize - 1);
        if self.heads[place] != NONE {
            let head = std::mem::replace(&mut self.heads[place], NONE);
            self.take(head, x, &mut taken);
        }
        taken
    }

    /// Moves the loads of a list that lie before `x` to `taken`, and puts the others in again.
    fn take(&mut self, mut load: u32, x: u64, taken: &mut u32) {
        while load != NONE {
            let (next, at) = self.loads[load as usize];
            if at < x {
                self.loads[load as usize].0 = std::mem::replace(taken, load);
            } else {
                self.link(load, at);
            }
            load = next;
        }
    }

    /// The load at the head of a list that was taken out, and its instant; `None` at the list's end.
    pub(super) fn taken(&self, load: u32) -> Option<(usize, u64)> {
        self.loads.get(load as usize).map(|&(_, at)| (load as usize, at))
    }

    /// What is behind a load in a list that was taken out.
    pub(super) fn after(&self, load: u32) -> u32 {
        self.loads[load as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list: the same loads are taken out at every step, whatever the widths, far loads and jumps.
        #[test]
        fn what_lies_before_an_instant_is_taken_out_and_nothing_else(
            periods in prop::collection::vec(1_u64..5_000, 1..40),
            rate_shift in 40_u32..64,
            steps in prop::collection::vec(prop_oneof![0_u64..4, 0_u64..100, 0_u64..100_000], 1..60),
        ) {
            let mut queue = ReleaseQueue::new(1, 1 << rate_shift);
            let mut plain: Vec<u64> = periods.clone();
            plain.iter().for_each(|&at| queue.push(at));
            let mut x = 0;
            for step in steps {
                x += step;
                let due: Vec<usize> = (0..plain.len()).filter(|&load| plain[load] < x).collect();
                let is_quiet = queue.is_quiet(x);
                let mut taken = Vec::new();
                let mut list = queue.take_before(x);
                while let Some((load, at)) = queue.taken(list) {
                    prop_assert_eq!(at, plain[load]);
                    taken.push(load);
                    list = queue.after(list);
                }
                taken.sort_unstable();
                prop_assert_eq!(&taken, &due);
                prop_assert!(!is_quiet || due.is_empty());
                for load in taken {
                    // The next instant at x or later, often x itself.
                    plain[load] += (x - plain[load]).div_ceil(periods[load]) * periods[load];
                    queue.put(load, plain[load]);
                }
            }
        }
    }
}
