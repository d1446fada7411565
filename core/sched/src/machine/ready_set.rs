//! Which children of a dispatcher are ready: one bit a child, the most important child first.

/// A fixed number of bits, found from the lowest up. Sixty-four or fewer live in one word.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadySet {
    first: u64,
    rest: Box<[u64]>,
}

impl ReadySet {
    /// An empty set over `size` positions.
    pub(crate) fn new(size: usize) -> ReadySet {
        ReadySet { first: 0, rest: vec![0; size.saturating_sub(1) / 64].into_boxed_slice() }
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, position: u32) {
        *self.word(position) |= 1 << (position % 64);
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, position: u32) {
        *self.word(position) &= !(1 << (position % 64));
    }

    #[inline(always)]
    fn word(&mut self, position: u32) -> &mut u64 {
        if position < 64 { &mut self.first } else { &mut self.rest[position as usize / 64 - 1] }
    }

    #[inline]
    pub(crate) fn contains(&self, position: u32) -> bool {
        let word = if position < 64 { self.first } else { self.rest[position as usize / 64 - 1] };
        word >> (position % 64) & 1 == 1
    }

    pub(crate) fn clear(&mut self) {
        self.first = 0;
        self.rest.fill(0);
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0 && self.rest.iter().all(|&word| word == 0)
    }

    /// The lowest position in the set.
    #[inline(always)]
    pub(crate) fn lowest(&self) -> Option<u32> {
        if self.first != 0 {
            return Some(self.first.trailing_zeros());
        }
        self.lowest_in_rest()
    }

    fn lowest_in_rest(&self) -> Option<u32> {
        let index = self.rest.iter().position(|&word| word != 0)?;
        Some((index as u32 + 1) * 64 + self.rest[index].trailing_zeros())
    }

    /// The lowest position in the set from `from` on, below `size`.
    pub(crate) fn lowest_from(&self, from: u32, size: u32) -> Option<u32> {
        let mut start = from;
        while start < size {
            let base = start & !63;
            let word = if base == 0 { self.first } else { self.rest[base as usize / 64 - 1] };
            let bits = word & (u64::MAX << (start - base));
            if bits != 0 {
                return Some(base + bits.trailing_zeros());
            }
            start = base + 64;
        }
        None
    }

    /// Calls `visit` with every position of the set in `from..to`, ascending.
    #[inline]
    pub(crate) fn for_each_in(&self, from: u32, to: u32, mut visit: impl FnMut(u32)) {
        let mut start = from;
        while start < to {
            let base = start & !63;
            let word = if base == 0 { self.first } else { self.rest[base as usize / 64 - 1] };
            let mut bits = word & (u64::MAX << (start - base));
            if to - base < 64 {
                bits &= (1 << (to - base)) - 1;
            }
            while bits != 0 {
                visit(base + bits.trailing_zeros());
                bits &= bits - 1;
            }
            start = base + 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_list_of_booleans() {
        for size in [1_usize, 10, 64, 65, 130, 200] {
            let mut set = ReadySet::new(size);
            let mut list = vec![false; size];
            let mut x = 1_u64;
            for _ in 0..2_000 {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let position = (x >> 33) as usize % size;
                list[position] = x & (1 << 20) != 0;
                if list[position] {
                    set.insert(position as u32)
                } else {
                    set.remove(position as u32)
                }
                assert_eq!(set.lowest(), list.iter().position(|&b| b).map(|p| p as u32));
                assert_eq!(set.is_empty(), set.lowest().is_none());
                assert_eq!(set.contains(position as u32), list[position]);
                let (from, to) = ((x >> 40) as usize % size, size - (x >> 50) as usize % size);
                let mut seen = Vec::new();
                set.for_each_in(from as u32, to as u32, |p| seen.push(p as usize));
                assert_eq!(
                    set.lowest_from(from as u32, size as u32),
                    (from..size).find(|&p| list[p]).map(|p| p as u32)
                );
                let expected: Vec<usize> = (from..to.max(from)).filter(|&p| list[p]).collect();
                assert_eq!(seen, expected, "size {size}, {from}..{to}");
            }
        }
    }
}
