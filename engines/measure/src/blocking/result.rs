//! What was seen of the kernel's delays.

use super::BlockingOptions;
use crate::Percentiles;
use crate::interference::held_back_note;
use horolog_sys::Error;
use horolog_time::Span;
use horolog_trace::ResponseStatistics;
use serde::Serialize;
use std::fmt::Write as _;

/// Delays from `from_ns` up to below `until_ns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Bucket {
    /// Its least delay.
    pub from_ns: Span,
    /// The least delay that is no longer in it.
    pub until_ns: Span,
    /// How many.
    pub count: u64,
}

/// Delays by powers of two.
#[derive(Clone, Debug)]
pub(super) struct Buckets([u64; 65]);

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets([0; 65])
    }
}

impl Buckets {
    pub(super) fn add(&mut self, ns: u64) {
        self.0[(u64::BITS - ns.leading_zeros()) as usize] += 1;
    }

    /// Those that hold something.
    fn filled(&self) -> Vec<Bucket> {
        let power = |bits: usize| Span::from_ns(1_u64.checked_shl(bits as u32).unwrap_or(u64::MAX));
        let bucket = |(bits, &count): (usize, &u64)| Bucket {
            from_ns: if bits == 0 { Span::ZERO } else { power(bits - 1) },
            until_ns: power(bits),
            count,
        };
        self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(bucket).collect()
    }
}

/// The delays under one load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LoadResult {
    /// Which.
    pub load: String,
    /// The delays of its releases.
    #[serde(flatten)]
    pub delay: Percentiles,
    /// What the hypervisor took from the CPU meanwhile; null where the kernel does not say.
    pub stolen_ns: Option<Span>,
    /// How often RT throttling or the fair server took the CPU from a runnable real-time thread; null where that could not
    /// be watched.
    pub held_back: Option<u64>,
    /// All delays.
    pub histogram: Vec<Bucket>,
}

impl LoadResult {
    pub(super) fn of(
        load: &str,
        statistics: &ResponseStatistics,
        buckets: &Buckets,
        stolen_ns: Option<Span>,
        held_back: Option<u64>,
    ) -> Result<LoadResult, Error> {
        let result = |delay| LoadResult {
            load: load.to_owned(),
            delay,
            stolen_ns,
            held_back,
            histogram: buckets.filled(),
        };
        Percentiles::of(statistics).map(result).ok_or_else(|| {
            Error::unexpected(format!("watching the load {load}"), "no release", "watch longer")
        })
    }
}

/// The JSON result `horolog.blocking/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Blocking {
    /// Always `horolog.blocking/1`.
    pub schema: &'static str,
    /// On which CPU.
    pub cpu: u32,
    /// The probe's SCHED_FIFO priority.
    pub priority: u8,
    /// How far its releases were apart.
    pub period_ns: Span,
    /// One a load.
    pub loads: Vec<LoadResult>,
    /// The longest delay of all loads.
    pub longest_ns: Span,
    /// What the reader must know.
    pub notes: Vec<String>,
}

impl Blocking {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.blocking/1";

    pub(super) fn of(options: &BlockingOptions, loads: Vec<LoadResult>) -> Blocking {
        let mut notes = vec![
            "empirical, no proof: the longest delay seen is a lower bound on the longest possible".to_owned(),
        ];
        if options.priority < 99 {
            notes.push(format!(
                "threads above SCHED_FIFO {} count as delays of the kernel here",
                options.priority
            ));
        }
        let stolen: u64 = loads.iter().filter_map(|load| load.stolen_ns).map(Span::as_ns).sum();
        if stolen > 0 {
            notes.push(format!(
                "the hypervisor took {} meanwhile: the longest delays are its, not the kernel's",
                Span::from_ns(stolen)
            ));
        }
        notes.push(held_back_note(loads.iter().map(|load| load.held_back).sum()));
        Blocking {
            schema: Blocking::SCHEMA,
            cpu: options.cpu,
            priority: options.priority,
            period_ns: options.period,
            longest_ns: loads.iter().map(|load| load.delay.ns_max).max().unwrap_or(Span::ZERO),
            loads,
            notes,
        }
    }

    /// The line for `[platform]` of a system file: the delay of a release is what the model has for it.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let worst = self.loads.iter().max_by_key(|load| load.delay.ns_max);
        let mut text =
            format!("# seen on cpu {} by `horolog measure blocking`, no proof\n[platform]\n", self.cpu);
        if let Some(worst) = worst {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "release_latency = \"{}\" # longest of {} releases, under the load {}; p99.9 {}",
                worst.delay.ns_max, worst.delay.count, worst.load, worst.delay.ns_p99_9
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_fall_into_powers_of_two() {
        let mut buckets = Buckets::default();
        [0, 1, 2, 3, 4, 1_000, u64::MAX].into_iter().for_each(|ns| buckets.add(ns));
        let found: Vec<(u64, u64, u64)> = buckets
            .filled()
            .iter()
            .map(|bucket| (bucket.from_ns.as_ns(), bucket.until_ns.as_ns(), bucket.count))
            .collect();
        let rest = [(4, 8, 1), (512, 1_024, 1), (1 << 63, u64::MAX, 1)];
        assert_eq!(found, [&[(0, 1, 1), (1, 2, 1), (2, 4, 2)][..], &rest].concat());
    }

    #[test]
    fn the_line_of_the_platform_is_the_longest_delay() {
        let mut statistics = ResponseStatistics::default();
        statistics.record(Span::from_ns(7_000));
        statistics.record(Span::from_ns(9_123));
        let load = |name| {
            LoadResult::of(name, &statistics, &Buckets::default(), Some(Span::from_ns(5)), Some(0)).unwrap()
        };
        let blocking = Blocking::of(&BlockingOptions::new(1), vec![load("none"), load("disk")]);
        assert_eq!(blocking.longest_ns.as_ns(), 9_123);
        let table: toml::Table = blocking.to_toml().parse().unwrap();
        assert_eq!(table["platform"]["release_latency"].as_str(), Some("9.123 us"));
        assert!(blocking.notes[1].contains("hypervisor"), "{:?}", blocking.notes);
        assert!(
            LoadResult::of("x", &ResponseStatistics::default(), &Buckets::default(), None, None).is_err()
        );
    }
}
