//! How long a simulation runs where nobody says.

use horolog_model::{Arrival, System};
use horolog_time::Span;

const LIMIT: Span = Span::from_ns(60_000_000_000);
const FALLBACK: Span = Span::from_ns(10_000_000_000);

/// The hyperperiod of the periodic and sporadic tasks plus the largest offset where that is below 60 s, else
/// 10 s.
pub fn default_horizon(system: &System) -> Span {
    let mut hyperperiod = None;
    let mut offset = Span::ZERO;
    for task in system.tasks() {
        offset = offset.max(task.offset.unwrap_or(Span::ZERO));
        let separation = match task.arrival {
            Arrival::Periodic { period } => period,
            Arrival::Sporadic { separation } => separation,
            _ => continue,
        };
        hyperperiod = match hyperperiod {
            None => Some(separation.as_ns()),
            Some(so_far) => match least_common_multiple(so_far, separation.as_ns()) {
                Some(multiple) => Some(multiple),
                None => return FALLBACK,
            },
        };
    }
    match hyperperiod.and_then(|ns| Span::from_ns(ns).checked_add(offset)) {
        Some(horizon) if horizon < LIMIT => horizon,
        _ => FALLBACK,
    }
}

/// `None` beyond u64 or for zero.
fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a.checked_div(x)?).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples() {
        assert_eq!(least_common_multiple(4, 6), Some(12));
        assert_eq!(least_common_multiple(7, 7), Some(7));
        assert_eq!(least_common_multiple(u64::MAX, u64::MAX - 1), None);
        assert_eq!(least_common_multiple(0, 0), None);
    }
}
