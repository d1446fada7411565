//! The nominal arrivals of one task's jobs that wait, oldest first.

/// The oldest by itself, since most tasks have one job at a time, and a ring of those behind it. It grows only when a backlog
/// sets a new record.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    oldest: u64,
    len: u32,
    head: u32,
    /// A power of two long.
    ring: Box<[u64]>,
}

impl Default for Backlog {
    fn default() -> Backlog {
        Backlog { oldest: 0, len: 0, head: 0, ring: vec![0; 4].into_boxed_slice() }
    }
}

impl Backlog {
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, arrival: u64) {
        if self.len == 0 {
            self.oldest = arrival;
        } else {
            self.push_behind(arrival);
        }
        self.len += 1;
    }

    #[inline(always)]
    fn push_behind(&mut self, arrival: u64) {
        if self.len as usize > self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len() - 1;
        self.ring[(self.head + self.len - 1) as usize & mask] = arrival;
    }

    #[cold]
    fn grow(&mut self) {
        let mut longer = Vec::with_capacity(self.ring.len() * 2);
        longer.extend(self.iter().skip(1));
        longer.resize(self.ring.len() * 2, 0);
        self.ring = longer.into_boxed_slice();
        self.head = 0;
    }

    /// The oldest; only when there is one.
    #[inline(always)]
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Takes the oldest away; only when there is one.
    #[inline(always)]
    pub(crate) fn pop(&mut self) {
        self.len -= 1;
        if self.len > 0 {
            self.oldest = self.ring[self.head as usize & (self.ring.len() - 1)];
            self.head = (self.head + 1) & (self.ring.len() as u32 - 1);
        }
    }

    /// The one that is `place` after the oldest; only when there is one.
    pub(crate) fn get(&self, place: u32) -> u64 {
        match place.checked_sub(1) {
            None => self.oldest,
            Some(behind) => self.ring[(self.head + behind) as usize & (self.ring.len() - 1)],
        }
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
