//! What is measured, and where.

use horolog_sys::Error;
use horolog_time::Span;
use serde::{Deserialize, Serialize};

/// What the machine does meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nothing of the load in question: the baseline.
    Idle,
    /// The load in question.
    Load,
}

impl Phase {
    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Load => "load",
        }
    }
}

/// What must be equal for measurements to belong together; the first line of a file of trials.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Configuration {
    /// On which CPU.
    pub cpu: u32,
    /// The probe's SCHED_FIFO priority: it sees what is more important, and what runs above all priorities.
    pub priority: u8,
    /// Window lengths, ascending, ns.
    pub lengths_ns: Vec<u64>,
    /// How long the probe looks without a rest, ns.
    pub stretch_ns: u64,
    /// θ, ns.
    pub threshold_ns: u64,
    /// The load's command, empty where it runs elsewhere.
    pub command: Vec<String>,
    /// The kernel's release.
    pub kernel: String,
}

/// Windows a length and stretch that begin at random.
pub(super) const SAMPLES: u64 = 4;

impl Configuration {
    /// The probe at FIFO 50 on `cpu`, 14 windows from 50 us to 20 ms, stretches of 40 ms, θ = 2 us.
    #[must_use]
    pub fn new(cpu: u32) -> Configuration {
        Configuration {
            cpu,
            priority: 50,
            lengths_ns: log_spaced(Span::from_ns(50_000), Span::from_ns(20_000_000), 14),
            stretch_ns: 40_000_000,
            threshold_ns: 2_000,
            command: Vec::new(),
            kernel: horolog_sys::machine::kernel_release(),
        }
    }

    /// Sets the window lengths; a stretch is twice the longest.
    ///
    /// # Errors
    /// Unless 1 us ≤ `least` < `most` ≤ 100 ms and there are 2 to 64.
    pub fn set_lengths(&mut self, least: Span, most: Span, points: u32) -> Result<(), Error> {
        let refuse = |why: &str| {
            Err(Error::bad_input("window lengths", why, "as in --lengths 50us..20ms --points 14"))
        };
        if least.as_ns() < 1_000 || most.as_ns() > 100_000_000 {
            return refuse("the shortest is 1 us, the longest 100 ms");
        }
        if least >= most || !(2..=64).contains(&points) {
            return refuse("they ascend, and there are 2 to 64");
        }
        self.lengths_ns = log_spaced(least, most, points);
        self.stretch_ns = 2 * most.as_ns();
        Ok(())
    }

    /// Checks what else a user may set.
    ///
    /// # Errors
    /// Says which value is wrong.
    pub fn check(&self) -> Result<(), Error> {
        if !(1..=98).contains(&self.priority) {
            let remedy = "give 1 to 98; 99 is left to what keeps the machine alive";
            return Err(Error::bad_input(format!("priority {}", self.priority), "out of range", remedy));
        }
        let shortest = self.lengths_ns.first().copied().unwrap_or(0);
        if !(200..=shortest / 2).contains(&self.threshold_ns) {
            return Err(Error::bad_input(
                format!("threshold {}", Span::from_ns(self.threshold_ns)),
                "it must lie between 200 ns and half the shortest window",
                "2 us tells a preemption from a slow read on most machines",
            ));
        }
        Ok(())
    }
}

/// `points` lengths from `least` to `most`, each the same factor above the one before, of three significant digits.
fn log_spaced(least: Span, most: Span, points: u32) -> Vec<u64> {
    let (first, last) = (least.as_ns(), most.as_ns());
    let ratio = last as f64 / first as f64;
    let steps = f64::from(points - 1);
    let mut lengths: Vec<u64> = (0..points)
        .map(|point| three_digits((first as f64 * ratio.powf(f64::from(point) / steps)).round() as u64))
        .collect();
    // Rounding must not move the ends that were asked for.
    lengths[0] = first;
    lengths[points as usize - 1] = last;
    lengths.dedup();
    lengths
}

fn three_digits(ns: u64) -> u64 {
    let unit = 10_u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (ns + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_log_spaced_between_their_ends() {
        let mut configuration = Configuration::new(1);
        configuration.check().unwrap();
        assert!(configuration.lengths_ns.windows(2).all(|pair| pair[0] < pair[1]));
        configuration.set_lengths(Span::from_ns(10_000), Span::from_ns(10_000_000), 7).unwrap();
        assert_eq!(
            configuration.lengths_ns,
            [10_000, 31_600, 100_000, 316_000, 1_000_000, 3_160_000, 10_000_000]
        );
        assert_eq!(configuration.stretch_ns, 20_000_000);
    }

    #[test]
    fn bad_values_are_refused() {
        let mut configuration = Configuration::new(1);
        let us = |us| Span::from_us(us).unwrap();
        assert!(configuration.set_lengths(us(9), us(9), 4).unwrap_err().is_bad_input());
        assert!(configuration.set_lengths(us(0), us(9), 4).is_err());
        assert!(configuration.set_lengths(us(1), us(100_001), 4).is_err());
        assert!(configuration.set_lengths(us(1), us(9), 1).is_err());
        configuration.priority = 99;
        assert!(configuration.check().unwrap_err().is_bad_input());
        configuration = Configuration { threshold_ns: 40_000, ..Configuration::new(1) };
        assert!(configuration.check().unwrap_err().is_bad_input());
    }
}
