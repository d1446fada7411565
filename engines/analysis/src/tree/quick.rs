//! A quick look at reserves below a reserve, for display: the completion-time test decides.

/// What `children` reserves with rate-monotonic priorities and deadlines at the ends of their periods may use of the processor below a
/// reserve that uses `utilisation` of it, whatever their periods: `n (((3 - U)/(3 - 2U))^(1/n) - 1)`, and `ln((3 - U)/(3 - 2U))` for
/// `children = 0`, as many as one likes.
///
/// It needs a deferrable parent whose budget C is served within its period T, however late in it, and children's periods of at least 2T - C. At U = 1 it is Liu and Layland's bound. Floating point: for display alone.
///
/// ```
/// let bound = horolog_analysis::least_upper_bound;
/// assert!((bound(0.5, 1) - 0.25).abs() < 1e-12);
/// assert!((bound(1.0, 0) - 2.0_f64.ln()).abs() < 1e-12);
/// ```
#[must_use]
pub fn least_upper_bound(utilisation: f64, children: u32) -> f64 {
    let ratio = (3.0 - utilisation) / (3.0 - 2.0 * utilisation);
    match children {
        0 => ratio.ln(),
        count => f64::from(count) * (ratio.powf(1.0 / f64::from(count)) - 1.0),
    }
}
