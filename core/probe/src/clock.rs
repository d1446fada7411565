//! The clock of a session: the time-stamp counter where it is constant and non-stop, else `CLOCK_MONOTONIC`.

use horolog_sys::clock::monotonic_ns;

/// What the ticks of a session count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockKind {
    /// Nanoseconds of `CLOCK_MONOTONIC`, read through the vDSO.
    Monotonic,
    /// The processors' time-stamp counter.
    Tsc,
}

impl ClockKind {
    /// The best clock of this machine: the time-stamp counter where the processor says that it is invariant (CPUID leaf
    /// 0x80000007, EDX bit 8: constant and non-stop) and the kernel keeps its own time by it, which it stops doing once
    /// its watchdog finds the counters of two processors apart.
    #[must_use]
    pub fn of_this_machine() -> ClockKind {
        let source =
            std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        let trusted = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"];
        match source {
            Ok(source) if trusted.contains(&source.trim()) && is_invariant() => ClockKind::Tsc,
            _ => ClockKind::Monotonic,
        }
    }

    /// The number that stands for it in a session.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            ClockKind::Monotonic => 0,
            ClockKind::Tsc => 1,
        }
    }

    /// The clock with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<ClockKind> {
        match number {
            0 => Some(ClockKind::Monotonic),
            1 if cfg!(target_arch = "x86_64") => Some(ClockKind::Tsc),
            _ => None,
        }
    }

    /// Its ticks now.
    #[inline]
    #[must_use]
    pub fn ticks(self) -> u64 {
        match self {
            ClockKind::Monotonic => monotonic_ns(),
            ClockKind::Tsc => tsc(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn is_invariant() -> bool {
    false
}

/// The time-stamp counter. It is not a barrier: neighbouring instructions may run before or after it, by some 20 ns.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[must_use]
pub fn tsc() -> u64 {
    // SAFETY: the instruction exists on every x86-64; where a program forbids it by prctl(PR_SET_TSC), it is not chosen
    // by a session that was created in that state, since creating one reads it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The clock of machines without a time-stamp counter.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
#[must_use]
pub fn tsc() -> u64 {
    monotonic_ns()
}

/// A moment at which both clocks were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anchor {
    /// Ticks of the session's clock.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC` in ns at that moment.
    pub monotonic_ns: u64,
    /// The clock was read somewhere within so many ticks before or after `ticks`.
    pub half_width: u64,
}

impl Anchor {
    /// The narrowest of `tries` readings, each of the kernel's clock between two of the counter's.
    #[must_use]
    pub fn take(clock: ClockKind, tries: u32) -> Anchor {
        let mut best: Option<Anchor> = None;
        for _ in 0..tries.max(1) {
            let before = clock.ticks();
            let monotonic_ns = monotonic_ns();
            let after = clock.ticks();
            let half_width = after.saturating_sub(before).div_ceil(2);
            if best.is_none_or(|best| half_width < best.half_width) {
                best = Some(Anchor { ticks: before + half_width, monotonic_ns, half_width });
            }
        }
        best.unwrap_or(Anchor { ticks: 0, monotonic_ns: 0, half_width: 0 })
    }
}

/// Converts ticks to `CLOCK_MONOTONIC`, piecewise linear between anchors.
///
/// `ns(t) = ns_a + (t - t_a) * (ns_b - ns_a) / (t_b - t_a)` for the anchors a and b around t; before the first and after
/// the last anchor the nearest pair is continued.
#[derive(Clone, Debug)]
pub struct Timeline {
    clock: ClockKind,
    anchors: Vec<Anchor>,
    /// The largest distance, in ns, of an anchor from the line through its two neighbours.
    bend: u64,
}

impl Timeline {
    /// A timeline without anchors; it needs two before it can convert ticks of the time-stamp counter.
    #[must_use]
    pub fn new(clock: ClockKind) -> Timeline {
        Timeline { clock, anchors: Vec::new(), bend: 0 }
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> ClockKind {
        self.clock
    }

    /// Its anchors, in order of time.
    #[must_use]
    pub fn anchors(&self) -> &[Anchor] {
        &self.anchors
    }

    /// Adds an anchor later than all others; one that is not later in both clocks is left out, and `false` returned.
    pub fn add(&mut self, anchor: Anchor) -> bool {
        let later = self
            .anchors
            .last()
            .is_none_or(|last| anchor.ticks > last.ticks && anchor.monotonic_ns > last.monotonic_ns);
        if !later {
            return false;
        }
        self.anchors.push(anchor);
        if let [.., a, b, c] = self.anchors.as_slice() {
            self.bend = self.bend.max(line(a, c, b.ticks).abs_diff(b.monotonic_ns));
        }
        true
    }

    /// Forgets the oldest anchors beyond `count`, at least two; now and then, half of them at once.
    pub fn keep_last(&mut self, count: usize) {
        if self.anchors.len() > count.max(2) {
            self.anchors.drain(..self.anchors.len() - (count / 2).max(2));
        }
    }

    /// Ticks as `CLOCK_MONOTONIC` in ns; `None` with fewer than two anchors, unless the ticks are nanoseconds anyway.
    #[must_use]
    pub fn to_ns(&self, ticks: u64) -> Option<u64> {
        if self.clock == ClockKind::Monotonic {
            return Some(ticks);
        }
        let last = self.anchors.len().checked_sub(2)?;
        // What is converted is mostly new.
        let first = if self.anchors[last].ticks <= ticks {
            last
        } else {
            self.anchors[..last].partition_point(|anchor| anchor.ticks <= ticks).saturating_sub(1)
        };
        Some(line(&self.anchors[first], &self.anchors[first + 1], ticks))
    }

    /// Ticks in a nanosecond between the first and the last anchor; 1 for a clock in nanoseconds.
    #[must_use]
    pub fn ticks_per_ns(&self) -> Option<f64> {
        if self.clock == ClockKind::Monotonic {
            return Some(1.0);
        }
        let (first, last) = (self.anchors.first()?, self.anchors.last()?);
        let ns = last.monotonic_ns.checked_sub(first.monotonic_ns).filter(|ns| *ns > 0)?;
        Some((last.ticks - first.ticks) as f64 / ns as f64)
    }

    /// How far a converted time may be from the kernel's own clock, in ns: half the widest reading of an anchor, plus
    /// how far the line was off where an anchor between two others tests it. `None` before there are two anchors.
    #[must_use]
    pub fn error_ns(&self) -> Option<u64> {
        if self.clock == ClockKind::Monotonic {
            return Some(0);
        }
        let rate = self.ticks_per_ns()?;
        let widest = self.anchors.iter().map(|anchor| anchor.half_width).max()?;
        Some((widest as f64 / rate).ceil() as u64 + 1 + self.bend)
    }
}

/// The line through `a` and `b` at `ticks`, within the range of a time.
fn line(a: &Anchor, b: &Anchor, ticks: u64) -> u64 {
    let short = || {
        let (since, run) =
            (ticks.checked_sub(a.ticks)?, b.ticks.checked_sub(a.ticks).filter(|run| *run > 0)?);
        let rise = b.monotonic_ns.checked_sub(a.monotonic_ns)?;
        a.monotonic_ns.checked_add(since.checked_mul(rise)? / run)
    };
    short().unwrap_or_else(|| long_line(a, b, ticks))
}

/// The same for any numbers.
fn long_line(a: &Anchor, b: &Anchor, ticks: u64) -> u64 {
    let rise = i128::from(b.monotonic_ns) - i128::from(a.monotonic_ns);
    let run = i128::from(b.ticks) - i128::from(a.ticks);
    let offset = (i128::from(ticks) - i128::from(a.ticks)).saturating_mul(rise);
    let ns = i128::from(a.monotonic_ns).saturating_add(offset.div_euclid(run.max(1)));
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(ticks: u64, monotonic_ns: u64) -> Anchor {
        Anchor { ticks, monotonic_ns, half_width: 30 }
    }

    #[test]
    fn conversion_is_piecewise_linear_and_says_its_error() {
        let mut line = Timeline::new(ClockKind::Tsc);
        assert_eq!((line.to_ns(5), line.error_ns()), (None, None));
        assert!(line.add(anchor(1_000, 500)));
        assert!(line.add(anchor(3_000, 1_500)));
        assert_eq!(
            [line.to_ns(2_000), line.to_ns(0), line.to_ns(5_000)],
            [Some(1_000), Some(0), Some(2_500)]
        );
        assert_eq!(line.error_ns(), Some(15 + 1));
        assert!(line.add(anchor(5_000, 2_510))); // the counter ran slower from here on
        assert_eq!([line.to_ns(2_000), line.to_ns(4_000)], [Some(1_000), Some(2_005)]);
        assert_eq!(line.error_ns(), Some(16 + 1 + 5)); // 30 ticks are 15.04 ns by now
        assert!(!line.add(anchor(4_000, 3_000)));
        assert_eq!(line.to_ns(u64::MAX).map(|ns| ns > 1 << 62), Some(true));
        let mut kept = line.clone();
        kept.keep_last(3);
        assert_eq!(kept.anchors().len(), 3);
        kept.keep_last(2);
        assert_eq!(kept.anchors(), &line.anchors()[1..]);
        assert_eq!([kept.to_ns(4_000), kept.to_ns(2_000)], [Some(2_005), Some(995)]);
    }

    #[test]
    fn short_numbers_are_converted_as_long_ones_are() {
        let anchors = [0, 1, 7, 1_000, 3_000_017, u64::from(u32::MAX), u64::MAX - 1, u64::MAX]
            .map(|ticks| [1, 999, 1_000_003, u64::MAX].map(|ns| anchor(ticks, ns)))
            .concat();
        for (a, b) in anchors.iter().flat_map(|a| anchors.iter().map(move |b| (a, b))) {
            for at in [a, b].map(|anchor| anchor.ticks) {
                for ticks in [at.saturating_sub(1), at, at.saturating_add(1), at.saturating_add(1 << 20)] {
                    assert_eq!(line(a, b, ticks), long_line(a, b, ticks), "{a:?} {b:?} {ticks}");
                }
            }
        }
    }

    #[test]
    fn times_of_the_counter_agree_with_the_kernels_clock() {
        let clock = ClockKind::of_this_machine();
        if clock != ClockKind::Tsc {
            println!("SKIPPED: this machine's time-stamp counter is not constant");
            return;
        }
        let mut timeline = Timeline::new(clock);
        let mut readings = Vec::new();
        for _ in 0..5 {
            assert!(timeline.add(Anchor::take(clock, 16)));
            for _ in 0..100 {
                let before = monotonic_ns();
                let ticks = clock.ticks();
                readings.push((before, ticks, monotonic_ns()));
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(timeline.add(Anchor::take(clock, 16)));
        // rdtsc is no barrier: it may run up to some hundred cycles before or after its neighbours.
        let error = timeline.error_ns().expect("anchors") + 200;
        for (before, ticks, after) in readings {
            let ns = timeline.to_ns(ticks).expect("anchors");
            assert!(ns + error >= before && ns <= after + error, "{before} {ns} {after} error {error}");
        }
    }
}
