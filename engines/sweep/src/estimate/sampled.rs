//! How long all sets take, from the times of some: an expectation, and a range in which it is likely to lie.
//!
//! Sets of a cell are drawn alike, so those that were tried are a sample of it. With N_c sets in cell c, of which n_c were tried in lumps of k
//! sets that took t seconds:
//!
//! ```text
//! m_c = Σ t / Σ k          s_c² = Σ k (t/k - m_c)² / (lumps - 1)          (where there is one lump: s_c = m_c)
//! expected = f Σ N_c m_c,  f = all sets / Σ N_c
//! error²   = f² Σ N_c² s_c²/n_c (1 - n_c/N_c)  +  f² c (1 - c/C) · variance of N_c m_c among the c cells of C that were tried
//! ```
//!
//! The range is the expectation less and plus twice this error. What a share of 3/n of all sets costs is added above, since n tries
//! overlook such a share with a probability of 5 %: at the time of the slowest set that was seen, which is at most the time of its lump
//! less the others at the least time a set has taken on average.

/// How often the error is taken on each side.
const ERRORS: f64 = 2.0;
/// A share of this by the number of tries is overlooked with a probability of exp(-3), 5 %.
const OVERLOOKED: f64 = 3.0;

/// The times of some sets of a cell.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    /// Sets of the cell that are to be computed.
    all: f64,
    /// Sets that were tried, whether their time was taken or not.
    tried: u64,
    /// Sets tried together, and how long they took, s.
    lumps: Vec<(f64, f64)>,
}

/// What all sets will take, s.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Spread {
    /// Sets that were tried.
    pub(super) tried: u64,
    pub(super) expected: f64,
    /// The standard error of `expected`.
    pub(super) error: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Sampled {
    pub(super) fn of(all: u64) -> Sampled {
        Sampled { all: all as f64, tried: 0, lumps: Vec::new() }
    }

    /// Sets that took so long together.
    pub(super) fn add(&mut self, sets: u64, seconds: f64) {
        self.tried += sets;
        self.lumps.push((sets as f64, seconds));
    }

    /// Sets that were too quick to be timed.
    pub(super) fn pass(&mut self, sets: u64) {
        self.tried += sets;
    }

    fn timed(&self) -> f64 {
        self.lumps.iter().map(|lump| lump.0).sum()
    }

    fn mean(&self) -> f64 {
        self.lumps.iter().map(|lump| lump.1).sum::<f64>() / self.timed()
    }

    /// The variance of one set's time.
    fn variance(&self) -> f64 {
        let mean = self.mean();
        if self.lumps.len() < 2 {
            return mean * mean;
        }
        let squares = self.lumps.iter().map(|&(sets, seconds)| sets * (seconds / sets - mean).powi(2));
        squares.sum::<f64>() / (self.lumps.len() - 1) as f64
    }

    /// The square of the error of the cell's sum.
    fn error(&self, timed: f64) -> f64 {
        self.all * self.all * self.variance() / timed * (1.0 - timed / self.all).max(0.0)
    }

    /// By how much the square of the error falls for each second spent on so many sets more.
    pub(super) fn gain(&self, sets: u64) -> f64 {
        let (timed, more) = (self.timed(), sets as f64);
        (self.error(timed) - self.error(timed + more)) / (more * self.mean()).max(f64::MIN_POSITIVE)
    }

    /// How long the slowest set has taken at the most.
    fn slowest(&self) -> f64 {
        let least = self.lumps.iter().map(|&(sets, seconds)| seconds / sets).fold(f64::INFINITY, f64::min);
        let one = |&(sets, seconds): &(f64, f64)| seconds - (sets - 1.0) * least;
        self.lumps.iter().map(one).fold(0.0, f64::max)
    }
}

/// What `all` sets of so many cells take.
pub(super) fn spread<'a>(cells: impl Iterator<Item = &'a Sampled>, all: f64, of_cells: usize) -> Spread {
    let cells: Vec<&Sampled> = cells.collect();
    let known: f64 = cells.iter().map(|cell| cell.all).sum();
    if known <= 0.0 {
        return Spread::default();
    }
    let factor = all / known;
    let sums: Vec<f64> = cells.iter().map(|cell| cell.all * cell.mean()).collect();
    let (count, sum) = (cells.len() as f64, sums.iter().sum::<f64>());
    let expected = factor * sum;
    let within: f64 = cells.iter().map(|cell| cell.error(cell.timed())).sum();
    let untried = 1.0 - count / of_cells as f64;
    let between = match cells.len() {
        _ if untried <= 0.0 => 0.0,
        1 => sum * sum,
        _ => sums.iter().map(|one| (one - sum / count).powi(2)).sum::<f64>() / (count - 1.0),
    };
    let error = factor * (within + count * untried * between).sqrt();
    let tried: u64 = cells.iter().map(|cell| cell.tried).sum();
    let slowest = cells.iter().map(|cell| cell.slowest()).fold(0.0, f64::max);
    let overlooked = (OVERLOOKED / tried as f64).min(1.0) * (all - tried as f64).max(0.0) * slowest;
    let low = (expected - ERRORS * error).max(cells.iter().map(|cell| cell.timed() * cell.mean()).sum());
    Spread { tried, expected, error, low: low.min(expected), high: expected + ERRORS * error + overlooked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_draw::Random;

    /// How often the true sum lies within the range, of a hundred tries of `cells` cells of 10,000 sets, of which one in `rare` takes `times` as
    /// long as the others, `lumps` lumps of `size` sets tried of each of the first `tried` cells.
    fn covered(cells: usize, tried: usize, rare: u64, times: f64, (lumps, size): (usize, u64)) -> [usize; 2] {
        let mut random = Random::new(rare ^ tried as u64);
        let (mut within, mut below) = (0, 0);
        for _ in 0..100 {
            let mut truth = 0.0;
            let mut sampled = Vec::new();
            for place in 0..cells {
                let base = 1.0 + (place * 7 % cells) as f64 / cells as f64;
                let sets: Vec<f64> =
                    (0..10_000).map(|_| if random.below(rare) == 0 { base * times } else { base }).collect();
                truth += sets.iter().sum::<f64>();
                if place < tried {
                    let mut cell = Sampled::of(10_000);
                    for lump in sets.chunks(size as usize).take(lumps) {
                        cell.add(size, lump.iter().sum());
                    }
                    sampled.push(cell);
                }
            }
            let found = spread(sampled.iter(), 10_000.0 * cells as f64, cells);
            assert!(found.low <= found.expected && found.expected <= found.high, "{found:?}");
            within += usize::from(found.low <= truth && truth <= found.high);
            below += usize::from(truth <= found.high);
        }
        [within, below]
    }

    #[test]
    fn the_sum_is_in_the_range_nearly_always() {
        for (cells, tried, rare, times, lumps) in [
            (20, 20, 2, 3.0, (10, 1)),
            (20, 20, 100, 1_000.0, (30, 1)),
            (20, 20, 100, 1_000.0, (5, 50)),
            (60, 20, 10, 10.0, (10, 4)),
            (3, 3, 1_000, 1_000.0, (40, 16)),
        ] {
            let [within, below] = covered(cells, tried, rare, times, lumps);
            let case = format!("{tried} of {cells}, 1 of {rare} {times} times, {lumps:?}: {within}, {below}");
            assert!(within >= 85 && below >= 90, "{case}");
        }
    }

    #[test]
    fn what_was_tried_whole_is_known() {
        let mut cell = Sampled::of(10);
        cell.add(4, 2.0);
        cell.add(6, 9.0);
        let found = spread([&cell].into_iter(), 10.0, 1);
        assert_eq!(found, Spread { tried: 10, expected: 11.0, error: 0.0, low: 11.0, high: 11.0 });
        assert_eq!(cell.gain(1), 0.0);
        // The second lump took 9 s; five of its sets at half a second leave 6.5 s for one.
        assert_eq!(cell.slowest(), 6.5);
        assert_eq!(spread(std::iter::empty(), 0.0, 0), Spread::default());
    }

    #[test]
    fn a_range_has_the_formula() {
        let (mut one, mut two) = (Sampled::of(100), Sampled::of(300));
        one.add(1, 1.0);
        one.add(1, 3.0);
        two.add(2, 4.0);
        let found = spread([&one, &two].into_iter(), 1_000.0, 4);
        // Means 2 and 2; variances 2 and 4; of 400 sets 800 s, of 1,000 then 2,000 s.
        let within =
            100.0_f64.powi(2) * 2.0 / 2.0 * 0.98 + 300.0_f64.powi(2) * 4.0 / 2.0 * (1.0 - 2.0 / 300.0);
        let between = 2.0 * 0.5 * (2.0 * 200.0_f64.powi(2));
        let error = 2.5 * (within + between).sqrt();
        let overlooked = 3.0 / 4.0 * 996.0 * 3.0;
        assert_eq!((found.tried, found.expected), (4, 2_000.0));
        assert!((found.high - (2_000.0 + 2.0 * error + overlooked)).abs() < 1e-6, "{found:?}");
        assert!((found.low - (2_000.0 - 2.0 * error).max(8.0)).abs() < 1e-6, "{found:?}");
    }
}
