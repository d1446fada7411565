//! First, best, worst and next fit.

use super::Heuristic;
use crate::error::AnalysisError;

/// Who says whether a processor takes something beside what it has; a yes places it there.
pub(super) trait Judge {
    fn accepts(&mut self, unit: usize, processor: usize) -> Result<bool, AnalysisError>;
}

/// The processor of each unit, in the order in which they are given; `None`: it fits nowhere, and those behind it go on without it.
///
/// - first fit: the first processor that takes it;
/// - best fit: of those that take it the one with the largest load, among equals the first;
/// - worst fit: the one with the least load, among equals the first;
/// - next fit: the one that took the last unit, or the first behind it; none before it is tried again.
///
/// `loads` are those of the processors, in units of 2^-64, and are raised by what is placed.
pub(super) fn place(
    heuristic: Heuristic,
    units: &[(usize, u128)],
    loads: &mut [u128],
    judge: &mut dyn Judge,
) -> Result<Vec<Option<usize>>, AnalysisError> {
    let mut placed = Vec::with_capacity(units.len());
    let mut order: Vec<usize> = (0..loads.len()).collect();
    let mut current = 0;
    for &(unit, load) in units {
        match heuristic {
            Heuristic::FirstFit | Heuristic::NextFit => {}
            // Stable, so that equals stay in the order of the processors.
            Heuristic::BestFit => {
                order.sort_unstable();
                order.sort_by_key(|&processor| std::cmp::Reverse(loads[processor]));
            }
            Heuristic::WorstFit => {
                order.sort_unstable();
                order.sort_by_key(|&processor| loads[processor]);
            }
        }
        let from = if heuristic == Heuristic::NextFit { current } else { 0 };
        let mut found = None;
        for &processor in &order[from..] {
            if judge.accepts(unit, processor)? {
                found = Some(processor);
                loads[processor] = loads[processor].saturating_add(load);
                current = processor;
                break;
            }
        }
        placed.push(found);
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes what fits into the capacity.
    struct Bins {
        left: Vec<u128>,
        sizes: Vec<u128>,
        asked: usize,
    }

    impl Judge for Bins {
        fn accepts(&mut self, unit: usize, processor: usize) -> Result<bool, AnalysisError> {
            self.asked += 1;
            let fits = self.left[processor] >= self.sizes[unit];
            if fits {
                self.left[processor] -= self.sizes[unit];
            }
            Ok(fits)
        }
    }

    fn fit(heuristic: Heuristic, sizes: &[u128], bins: usize) -> (Vec<Option<usize>>, usize) {
        let mut judge = Bins { left: vec![10; bins], sizes: sizes.to_vec(), asked: 0 };
        let units: Vec<(usize, u128)> = sizes.iter().copied().enumerate().collect();
        let placed = place(heuristic, &units, &mut vec![0; bins], &mut judge).expect("bins do not fail");
        (placed, judge.asked)
    }

    /// By hand, bins of ten: 6, 5, 4, 3, 7, 1.
    #[test]
    fn each_goes_where_its_rule_says() {
        let sizes = [6, 5, 4, 3, 7, 1];
        let of = |heuristic| fit(heuristic, &sizes, 3).0;
        assert_eq!(of(Heuristic::FirstFit), [0, 1, 0, 1, 2, 1].map(Some));
        assert_eq!(of(Heuristic::BestFit), [0, 1, 0, 1, 2, 1].map(Some));
        assert_eq!(of(Heuristic::WorstFit), [Some(0), Some(1), Some(2), Some(2), None, Some(1)]);
        assert_eq!(of(Heuristic::NextFit), [Some(0), Some(1), Some(1), Some(2), Some(2), None]);
        // Best fit prefers the fuller one, first fit the first.
        assert_eq!(fit(Heuristic::BestFit, &[5, 6, 4], 2).0, [0, 1, 1].map(Some));
        assert_eq!(fit(Heuristic::FirstFit, &[5, 6, 4], 2).0, [0, 1, 0].map(Some));
        // What fits nowhere does not stop the rest, nor moves next fit on.
        assert_eq!(fit(Heuristic::NextFit, &[4, 11, 6], 2).0, [Some(0), None, Some(0)]);
        assert_eq!(fit(Heuristic::FirstFit, &[], 2), (Vec::new(), 0));
        assert_eq!(fit(Heuristic::FirstFit, &[1], 0).0, [None]);
    }

    /// Next fit asks each processor about a unit once, and goes over the processors once.
    #[test]
    fn next_fit_never_goes_back() {
        let (_, asked) = fit(Heuristic::NextFit, &[6; 50], 50);
        assert_eq!(asked, 50 + 49);
        let (_, asked) = fit(Heuristic::FirstFit, &[6; 50], 50);
        assert_eq!(asked, 50 * 51 / 2);
    }
}
