//! Arrival patterns: the fit of a period, its drift, arrival curves.

/// Fewer activations than this show no pattern.
pub const LEAST_ACTIVATIONS: usize = 5;

/// The fit of arrivals to `phase + k · period + jitter`.
#[derive(Clone, PartialEq, Debug)]
pub struct PeriodFit {
    /// The fitted period, ns.
    pub fitted_ns: f64,
    /// The proposed period: the fitted one, rounded to the coarsest unit that the data allow.
    pub period_ns: u64,
    /// The unit that the proposed period is a multiple of, ns.
    pub unit_ns: u64,
    /// Whether at least 95 % of the distances are exact multiples of the period.
    pub exact: bool,
    /// How far the fitted period may be off, ns: the middle 90 % of the residuals over the length of the record.
    pub uncertainty_ns: f64,
    /// How much later than the earliest (relative to the grid) arrivals came, ns, ascending.
    pub residuals_ns: Vec<u64>,
    /// Grid points without an arrival.
    pub missing: u64,
    /// Arrivals that share a grid point with another.
    pub doubled: u64,
    /// Whether the arrivals wander off every grid: each counts from the one before.
    pub drifts: bool,
}

impl PeriodFit {
    /// A percentile of the residuals (nearest rank), ns.
    #[must_use]
    pub fn residual(&self, percent: f64) -> u64 {
        percentile(&self.residuals_ns, percent)
    }

    /// How wide the middle 90 % of the arrivals lie, in periods.
    #[must_use]
    pub fn spread(&self) -> f64 {
        (self.residual(95.0) - self.residual(5.0)) as f64 / self.fitted_ns
    }

    /// Whether the arrivals keep to a grid: the middle 90 % lie within 40 % of a period (20 % with fewer than thirty
    /// arrivals, 10 % with fewer than ten), at most 2 % share a grid point, at most half of the points are empty, and
    /// they do not drift.
    #[must_use]
    pub fn is_periodic(&self) -> bool {
        let count = self.residuals_ns.len() as u64;
        let allowed = match count {
            ..10 => 0.1,
            10..30 => 0.2,
            _ => 0.4,
        };
        self.spread() <= allowed && self.doubled * 50 <= count && self.missing <= count && !self.drifts
    }
}

/// The value at this rank (nearest rank) of ascending values; 0 of none.
#[must_use]
pub fn percentile(ascending: &[u64], percent: f64) -> u64 {
    if ascending.is_empty() {
        return 0;
    }
    // In whole thousandths, since 99.9 % of 1000 must be the 999th value.
    let rank = ((percent * 10.0).round() as usize).saturating_mul(ascending.len()).div_ceil(1_000);
    ascending[rank.clamp(1, ascending.len()) - 1]
}

/// Fits a period to ascending arrivals; `None` for fewer than [`LEAST_ACTIVATIONS`], or where all coincide.
///
/// The first guess is the median distance (and, if that fits worse, the lower quartile, for records with many gaps).
/// Each arrival gets the number of its grid point from the distance to the one before; the period is then the median
/// slope between arrivals half a record apart, which a few late ones do not move; numbers and slope are refined twice.
#[must_use]
pub fn fit(arrivals: &[u64]) -> Option<PeriodFit> {
    if arrivals.len() < LEAST_ACTIVATIONS {
        return None;
    }
    let mut distances: Vec<u64> = arrivals.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    distances.sort_unstable();
    let guesses = [distances[distances.len() / 2], distances[distances.len() / 4]];
    let fits = guesses.into_iter().filter(|guess| *guess > 0).filter_map(|guess| fit_from(arrivals, guess));
    // Between equals the first: `min_by` keeps it.
    fits.min_by(|a, b| badness(a).total_cmp(&badness(b)))
}

/// Spread in periods, and empty grid points: a grid that is too fine fits everything and is mostly empty.
fn badness(fit: &PeriodFit) -> f64 {
    let count = fit.residuals_ns.len() as f64;
    fit.spread() + fit.missing as f64 / count + fit.doubled as f64 / count
}

fn fit_from(arrivals: &[u64], guess: u64) -> Option<PeriodFit> {
    let origin = arrivals[0];
    let times: Vec<f64> = arrivals.iter().map(|time| (time - origin) as f64).collect();
    let mut period = guess as f64;
    let mut points: Vec<i64> = Vec::with_capacity(times.len());
    points.push(0);
    for pair in times.windows(2) {
        let steps = ((pair[1] - pair[0]) / period).round().max(0.0) as i64;
        points.push(points.last().copied().unwrap_or(0) + steps);
    }
    for _ in 0..2 {
        period = slope(&times, &points).filter(|slope| *slope > 0.0)?;
        let phase = phase(&times, &points, period);
        for (point, time) in points.iter_mut().zip(&times) {
            *point = ((time - phase) / period).round() as i64;
        }
    }
    period = slope(&times, &points).filter(|slope| *slope > 0.0)?;
    Some(assess(arrivals, &times, &points, period))
}

/// The median slope between arrivals half a record apart.
fn slope(times: &[f64], points: &[i64]) -> Option<f64> {
    let half = times.len() / 2;
    let mut slopes: Vec<f64> = (0..times.len() - half)
        .filter(|index| points[index + half] > points[*index])
        .map(|index| (times[index + half] - times[index]) / (points[index + half] - points[index]) as f64)
        .collect();
    if slopes.is_empty() {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    Some(slopes[slopes.len() / 2])
}

/// The median of what is left of each arrival.
fn phase(times: &[f64], points: &[i64], period: f64) -> f64 {
    let mut rests: Vec<f64> =
        times.iter().zip(points).map(|(time, point)| time - *point as f64 * period).collect();
    rests.sort_unstable_by(f64::total_cmp);
    rests[rests.len() / 2]
}

fn assess(arrivals: &[u64], times: &[f64], points: &[i64], fitted: f64) -> PeriodFit {
    let spread_of = |period: f64| {
        let mut rests: Vec<f64> =
            times.iter().zip(points).map(|(time, point)| time - *point as f64 * period).collect();
        rests.sort_unstable_by(f64::total_cmp);
        rests
    };
    let rests = spread_of(fitted);
    let edge = rests.len() / 20;
    let length = (points[points.len() - 1] - points[0]).max(1) as f64;
    let uncertainty = (rests[rests.len() - 1 - edge] - rests[edge]) / length;
    let (period, unit) = rounded(fitted, uncertainty);
    let multiples = arrivals.windows(2).zip(points.windows(2)).filter(|(time, point)| {
        let steps = u64::try_from(point[1] - point[0]).unwrap_or(0);
        period.checked_mul(steps).is_some_and(|expected| steps > 0 && time[1] - time[0] == expected)
    });
    let exact = multiples.count() * 100 >= (arrivals.len() - 1) * 95;
    let rests = spread_of(period as f64);
    let residuals_ns: Vec<u64> = rests.iter().map(|rest| (rest - rests[0]).round() as u64).collect();
    let used = 1 + points.windows(2).filter(|pair| pair[1] != pair[0]).count() as u64;
    let grid = u64::try_from(points[points.len() - 1] - points[0] + 1).unwrap_or(0);
    PeriodFit {
        fitted_ns: fitted,
        period_ns: period,
        unit_ns: unit,
        exact,
        uncertainty_ns: uncertainty,
        drifts: drifts(times, &residuals_ns),
        residuals_ns,
        missing: grid.saturating_sub(used),
        doubled: (arrivals.len() as u64).saturating_sub(used),
    }
}

/// The coarsest round number within the uncertainty (at least half a nanosecond), and its unit.
fn rounded(fitted: f64, uncertainty: f64) -> (u64, u64) {
    const UNITS: [u64; 12] = [
        1_000_000_000,
        500_000_000,
        100_000_000,
        10_000_000,
        1_000_000,
        500_000,
        100_000,
        10_000,
        1_000,
        100,
        10,
        1,
    ];
    let tolerance = uncertainty.max(0.5);
    for unit in UNITS {
        let candidate = (fitted / unit as f64).round() * unit as f64;
        if candidate >= 1.0 && (candidate - fitted).abs() <= tolerance {
            return (candidate as u64, unit);
        }
    }
    (fitted.round().max(1.0) as u64, 1)
}

/// Whether the arrivals walk randomly about their grid: the spread about the fitted line is then much wider than that
/// of the single distances, while jitter about a grid makes the distances spread wider than itself.
fn drifts(times: &[f64], residuals_ns: &[u64]) -> bool {
    if times.len() < 20 {
        return false;
    }
    let mut distances: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    distances.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| distances[((distances.len() - 1) as f64 * share) as usize];
    let of_distances = at(0.9) - at(0.1);
    let of_residuals = (percentile(residuals_ns, 90.0) - percentile(residuals_ns, 10.0)) as f64;
    of_residuals > 2.0 * of_distances && of_residuals > 1_000.0
}

/// The least and the greatest length of time that so many consecutive arrivals span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CurvePoint {
    /// How many arrivals.
    pub arrivals: u64,
    /// The shortest time from the first to the last of them, ns.
    pub least_ns: u64,
    /// The longest, ns.
    pub most_ns: u64,
}

/// Points of the arrival curves: for n = 2 to 10, then in steps of about a quarter up to `arrivals.len()`, at most 40.
/// Upper curve: at most n - 1 arrivals fit into any half-open window shorter than `least_ns` of n; lower: any window of
/// `most_ns` of n holds at least n - 1.
#[must_use]
pub fn curve(arrivals: &[u64]) -> Vec<CurvePoint> {
    let mut points = Vec::new();
    let mut n = 2;
    while n <= arrivals.len() && points.len() < 40 {
        let spans = arrivals.windows(n).map(|window| window[n - 1].saturating_sub(window[0]));
        let (least_ns, most_ns) =
            spans.fold((u64::MAX, 0), |(least, most), span| (least.min(span), most.max(span)));
        points.push(CurvePoint { arrivals: n as u64, least_ns, most_ns });
        n += if n < 10 { 1 } else { n / 4 };
    }
    points
}

/// A sporadic task with jitter whose arrival curve contains the observed one: separation is the mean distance (rounded
/// down), jitter the greatest lead of any arrivals over it. For bursts.
#[must_use]
pub fn envelope(arrivals: &[u64]) -> Option<(u64, u64)> {
    let (first, last) = (*arrivals.first()?, *arrivals.last()?);
    let separation = (last - first) / (arrivals.len() as u64 - 1).max(1);
    if separation == 0 {
        return None;
    }
    Some((separation, u64::try_from(lead(arrivals, separation)).ok()?))
}

/// The greatest lead of ascending arrivals over a separation: the least jitter with which n of them span at least
/// `(n - 1) · separation - jitter`, ns.
#[must_use]
pub fn lead(arrivals: &[u64], separation: u64) -> u128 {
    // The greatest over all pairs is that of a running maximum of (k·T - a_k) over its running minimum.
    let (mut lowest, mut greatest) = (i128::MAX, 0_i128);
    for (k, arrival) in arrivals.iter().enumerate() {
        let lead = k as i128 * i128::from(separation) - i128::from(*arrival);
        lowest = lowest.min(lead);
        greatest = greatest.max(lead - lowest);
    }
    greatest as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_jittery_period_is_found(
            period_us in 100_u64..100_000,
            draws in prop::collection::vec((0_u64..1_000, prop::bool::weighted(0.05)), 60..400),
        ) {
            let period = period_us * 1_000;
            let jitter = period / 10;
            let kept: Vec<(u64, u64)> = draws
                .iter()
                .enumerate()
                .filter(|(_, (_, missing))| !missing)
                .map(|(k, (draw, _))| (k as u64, draw * jitter / 1_000))
                .collect();
            let arrivals: Vec<u64> = kept.iter().map(|(k, late)| 7 + k * period + late).collect();
            let fit = fit(&arrivals).expect("enough arrivals");
            prop_assert!(fit.is_periodic(), "{fit:?}");
            let off = (fit.fitted_ns - period as f64).abs();
            prop_assert!(off <= period as f64 * 0.01, "{} instead of {period}", fit.fitted_ns);
            let missing = kept[kept.len() - 1].0 - kept[0].0 + 1 - kept.len() as u64;
            prop_assert_eq!((fit.missing, fit.doubled), (missing, 0));
        }

        #[test]
        fn an_exact_period_is_exact(period in 1_000_u64..10_000_000_000, count in 5_u64..200, from in 0_u64..1 << 50) {
            let arrivals: Vec<u64> = (0..count).map(|k| from + k * period).collect();
            let fit = fit(&arrivals).expect("enough arrivals");
            prop_assert_eq!(fit.period_ns, period);
            prop_assert!(fit.exact && fit.is_periodic());
            prop_assert_eq!(fit.residual(100.0), 0);
        }

        #[test]
        fn the_envelope_contains_the_arrivals(distances in prop::collection::vec(0_u64..1_000_000, 2..60)) {
            let arrivals: Vec<u64> =
                distances.iter().scan(0_u64, |at, distance| { *at += distance; Some(*at) }).collect();
            if let Some((separation, jitter)) = envelope(&arrivals) {
                for i in 0..arrivals.len() {
                    for j in i + 1..arrivals.len() {
                        let least = ((j - i) as u64 * separation).saturating_sub(jitter);
                        prop_assert!(arrivals[j] - arrivals[i] >= least);
                    }
                }
            }
        }
    }

    /// Steps of a linear congruential generator in 0..1.
    fn draws(count: usize) -> impl Iterator<Item = f64> {
        let mut x = 1_u64;
        (0..count).map(move |_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 11) as f64 / (1_u64 << 53) as f64
        })
    }

    #[test]
    fn random_arrivals_are_not_periodic() {
        let mut at = 0.0;
        let arrivals: Vec<u64> = draws(500)
            .map(|draw| {
                at -= 1e6 * (1.0 - draw).ln();
                at as u64
            })
            .collect();
        assert!(!fit(&arrivals).expect("enough").is_periodic());
    }

    #[test]
    fn sleeping_for_a_time_drifts() {
        let mut at = 0;
        let arrivals: Vec<u64> = draws(2_000)
            .map(|draw| {
                at += 10_000_000 + (draw * 400_000.0) as u64;
                at
            })
            .collect();
        let fit = fit(&arrivals).expect("enough");
        assert!(fit.drifts && !fit.is_periodic(), "{:?}", fit.residual(50.0));
    }

    #[test]
    fn round_periods_are_recognised_within_the_noise_only() {
        let noisy: Vec<u64> = draws(1_000)
            .enumerate()
            .map(|(k, draw)| k as u64 * 2_500_000 + (draw * 30_000.0) as u64)
            .collect();
        let found = fit(&noisy).expect("enough");
        assert_eq!((found.period_ns, found.unit_ns), (2_500_000, 500_000));
        // 48 kHz in blocks of 64 frames is no round number of nanoseconds.
        let audio: Vec<u64> =
            (0..1_000_u64).map(|k| k * 64_000_000_000 / 48_000_000 * 1_000 + k / 3).collect();
        assert_eq!(fit(&audio).expect("enough").unit_ns, 1);
    }

    #[test]
    fn curves_hold_the_least_and_the_greatest_spans() {
        let arrivals = [0, 10, 12, 30, 31, 60];
        let points = curve(&arrivals);
        assert_eq!(points[0], CurvePoint { arrivals: 2, least_ns: 1, most_ns: 29 });
        assert_eq!(points[1], CurvePoint { arrivals: 3, least_ns: 12, most_ns: 30 });
        assert_eq!(points.last().map(|point| point.arrivals), Some(6));
        assert_eq!(curve(&[]).len(), 0);
        assert!(fit(&[5, 5, 5, 5, 5, 5]).is_none());
    }
}
