//! The nominal arrivals of one task's jobs that wait, oldest first.

/// A ring of arrivals. It grows only when a backlog sets a new record.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    /// A power of two long.
    ring: Box<[u64]>,
    head: u32,
    len: u32,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog { ring: vec![0; 4].into_boxed_slice(), head: 0, len: 0 }
    }
}

impl Backlog {
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, arrival: u64) {
        if self.len as usize == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len() - 1;
        self.ring[(self.head + self.len) as usize & mask] = arrival;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut longer = Vec::with_capacity(self.ring.len() * 2);
        longer.extend(self.iter());
        longer.resize(self.ring.len() * 2, 0);
        self.ring = longer.into_boxed_slice();
        self.head = 0;
    }

    /// The oldest; only when there is one.
    #[inline(always)]
    pub(crate) fn oldest(&self) -> u64 {
        self.ring[self.head as usize & (self.ring.len() - 1)]
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) {
        self.head = (self.head + 1) & (self.ring.len() as u32 - 1);
        self.len -= 1;
    }

    /// The one that is `place` after the oldest; only when there is one.
    pub(crate) fn get(&self, place: u32) -> u64 {
        self.ring[(self.head + place) as usize & (self.ring.len() - 1)]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len).map(|place| self.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_across_growth() {
        let mut backlog = Backlog::default();
        let (mut pushed, mut popped) = (0_u64, 0_u64);
        for round in 0..200_u64 {
            for _ in 0..(round % 7) {
                backlog.push(pushed);
                pushed += 1;
            }
            for _ in 0..(round % 5).min(u64::from(backlog.len())) {
                assert_eq!(backlog.oldest(), popped);
                backlog.pop();
                popped += 1;
            }
            assert!(backlog.iter().eq(popped..pushed));
        }
        assert!(pushed - popped > 64);
    }
}
