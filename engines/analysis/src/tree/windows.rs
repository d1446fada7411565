//! Windows of a time table: how late they give an amount of time, and how much they hold at most.

use crate::server::NoAnswer;
use horolog_model::TimeTable;

/// Windows within a cycle that begins again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct WindowSet {
    cycle: u64,
    /// When each begins and how long it is, ascending, without overlap.
    windows: Vec<(u64, u64)>,
}

impl WindowSet {
    /// The windows of `child`, or all of them; `None` where there is none.
    pub(super) fn of(table: &TimeTable, child: Option<&str>) -> Option<WindowSet> {
        let is_meant = |window: &&horolog_model::Window| child.is_none_or(|child| window.child == child);
        let windows = table.windows.iter().filter(is_meant);
        let mut windows: Vec<(u64, u64)> =
            windows.map(|window| (window.from.as_ns(), window.length.as_ns())).collect();
        windows.sort_unstable();
        (!windows.is_empty()).then(|| WindowSet { cycle: table.cycle.as_ns(), windows })
    }

    /// Their share of the time.
    pub(super) fn share(&self) -> (u64, u64) {
        (self.windows.iter().map(|(_, length)| length).sum(), self.cycle)
    }

    /// What one look costs, in units of the effort budget.
    pub(super) fn effort(&self) -> u64 {
        let count = self.windows.len() as u64;
        count.saturating_mul(count)
    }

    /// The windows from the one at `first` on, one cycle of them: how long after the start of the first, and how long.
    fn from(&self, first: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let start = self.windows[first].0;
        let rest = self.windows[first..].iter().map(move |&(from, length)| (from - start, length));
        rest.chain(
            self.windows[..first].iter().map(move |&(from, length)| (from + self.cycle - start, length)),
        )
    }

    /// The longest time, over all instants to count from, until `work` ns of windows have passed: from the end of a window on, the whole
    /// cycles that it fills, and then up to where the rest is full. Exact.
    pub(super) fn finish(&self, work: u128) -> Result<u128, NoAnswer> {
        let (sum, cycle) = (u128::from(self.share().0), u128::from(self.cycle));
        if work == 0 {
            return Ok(0);
        }
        let whole = (work - 1) / sum;
        let rest = work - whole * sum;
        let longest = (0..self.windows.len()).map(|last| self.rest_from_end_of(last, rest)).max();
        let longest = longest.unwrap_or(0);
        whole.checked_mul(cycle).and_then(|whole| whole.checked_add(longest)).ok_or(NoAnswer::TooLarge)
    }

    /// The time from the end of the window at `last` until `rest` ns, at most those of a cycle, of the following ones have passed.
    fn rest_from_end_of(&self, last: usize, rest: u128) -> u128 {
        let next = (last + 1) % self.windows.len();
        let (from, length) = self.windows[last];
        let end = from + length;
        let start = if next > last { self.windows[next].0 } else { self.windows[next].0 + self.cycle };
        let mut left = rest;
        for (after, length) in self.from(next) {
            let length = u128::from(length);
            if left <= length {
                return u128::from(start - end) + u128::from(after) + left;
            }
            left -= length;
        }
        u128::from(self.cycle)
    }

    /// The most of the windows that lies within any `x` ns: from the start of a window on. Exact.
    pub(super) fn most_within(&self, x: u128) -> u128 {
        let (sum, cycle) = (u128::from(self.share().0), u128::from(self.cycle));
        let rest = x % cycle;
        let within = |first: usize| -> u128 {
            self.from(first)
                .map(|(after, length)| rest.saturating_sub(u128::from(after)).min(u128::from(length)))
                .sum()
        };
        (x / cycle) * sum + (0..self.windows.len()).map(within).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_model::Window;
    use horolog_time::Span;

    fn set(cycle: u64, windows: &[(u64, u64)]) -> WindowSet {
        let window = |&(from, length): &(u64, u64)| Window {
            child: "a".to_owned(),
            from: Span::from_ns(from),
            length: Span::from_ns(length),
        };
        let table = TimeTable { cycle: Span::from_ns(cycle), windows: windows.iter().map(window).collect() };
        WindowSet::of(&table, Some("a")).unwrap()
    }

    /// Every start and every length, unit by unit.
    #[test]
    fn both_forms_are_exact() {
        for windows in [&[(0, 4), (8, 2)][..], &[(2, 3)], &[(0, 1), (3, 2), (5, 1), (9, 1)], &[(0, 10)]] {
            let (set, cycle) = (set(10, windows), 10_usize);
            let is_open = |at: usize| {
                windows.iter().any(|&(from, length)| (from..from + length).contains(&((at % cycle) as u64)))
            };
            for x in 1..35 {
                let most = (0..cycle).map(|a| (a..a + x).filter(|&at| is_open(at)).count()).max();
                assert_eq!(set.most_within(x as u128), most.unwrap_or(0) as u128, "{windows:?} {x}");
            }
            for work in 1..30 {
                let until = |a: usize| {
                    let mut at = a;
                    let mut got = 0;
                    while got < work {
                        got += usize::from(is_open(at));
                        at += 1;
                    }
                    at - a
                };
                let longest = (0..cycle).map(until).max().unwrap_or(0);
                assert_eq!(set.finish(work as u128).unwrap(), longest as u128, "{windows:?} {work}");
            }
        }
    }
}
