//! SCAN: the head goes one way as long as there is work ahead, then back.

/// Where the head is and which way it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    /// What the last operation is bounded by on the head's way: the byte behind it, or its first one. So the head moves on from a place
    /// where requests are always there.
    at: u64,
    is_rising: bool,
}

impl Head {
    pub(crate) const fn new() -> Head {
        Head { at: 0, is_rising: true }
    }

    /// The place of the next one of some (offset, order, place), and the way to it; of several at one offset the first in their
    /// order. None of none.
    pub(crate) fn next(
        self,
        all: impl Iterator<Item = (u64, (u64, u64), usize)> + Clone,
    ) -> Option<(usize, bool)> {
        let ahead = all.clone().filter(|&(offset, ..)| offset >= self.at).min();
        let behind = all
            .filter(|&(offset, ..)| offset < self.at)
            .max_by_key(|&(offset, order, _)| (offset, std::cmp::Reverse(order)));
        let (first, second) = if self.is_rising { (ahead, behind) } else { (behind, ahead) };
        let found = |next: Option<(u64, (u64, u64), usize)>, way| next.map(|(.., place)| (place, way));
        found(first, self.is_rising).or_else(|| found(second, !self.is_rising))
    }

    /// After an operation from `offset` to `end`; `is_rising` where it was chosen by [`Head::next`].
    pub(crate) fn moved(&mut self, offset: u64, end: u64, is_rising: Option<bool>) {
        self.is_rising = is_rising.unwrap_or(self.is_rising);
        self.at = if self.is_rising { end } else { offset };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_and_then_back() {
        let mut head = Head { at: 50, is_rising: true };
        let mut left = vec![(10, 0), (50, 1), (49, 2), (90, 3), (49, 4), (60, 5)];
        let mut order = Vec::new();
        loop {
            let all = left.iter().enumerate().map(|(place, &(offset, number))| (offset, (0, number), place));
            let Some((place, is_rising)) = head.next(all) else { break };
            let (offset, number) = left.remove(place);
            head.moved(offset, offset + 1, Some(is_rising));
            order.push(number);
        }
        assert_eq!(order, [1, 5, 3, 2, 0, 4]);
    }

    #[test]
    fn requests_that_are_always_at_one_place_do_not_keep_the_head() {
        for (other, is_rising) in [(10, true), (10, false), (90, true), (90, false), (50, true), (50, false)]
        {
            let mut head = Head { at: 50, is_rising };
            let mut left = vec![(50, 0), (50, 1), (other, 2)];
            let mut tries = 0;
            loop {
                tries += 1;
                let all =
                    left.iter().enumerate().map(|(place, &(offset, number))| (offset, (0, number), place));
                let (place, is_rising) = head.next(all).expect("there is work");
                let (offset, number) = left.remove(place);
                head.moved(offset, offset + 1, Some(is_rising));
                if number == 2 {
                    break;
                }
                left.push((offset, 2 + tries));
            }
            assert!(tries <= 3, "{other}, {is_rising}: {tries}");
        }
    }
}
