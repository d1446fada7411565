//! Events that traced programs lost: by cause, and what helps.

use horolog_probe::session::{Listener, Losses};
use horolog_trace::LossCause;
use std::collections::BTreeMap;

/// What a session has lost so far, by cause; a cause may be there several times.
#[must_use]
pub fn by_cause(losses: &Losses) -> [(LossCause, u64); 7] {
    [
        (LossCause::ThreadRing, losses.ring_full),
        (LossCause::SharedBuffer, losses.shared_full),
        (LossCause::Horolog, losses.no_writer),
        (LossCause::Horolog, losses.no_event),
        (LossCause::Horolog, losses.no_session),
        (LossCause::DeadWriter, losses.dead_writer),
        (LossCause::Damaged, losses.damaged),
    ]
}

/// What helps against the losses of a study of locks, whose rings of `ring` bytes may have `limit` bytes together: four times as much, in
/// rings with which one process can use it. `None` where no ring was full, or the machine has not twice as much.
#[must_use]
pub fn remedy_for_locks<K: AsRef<str>>(
    losses: &BTreeMap<K, u64>,
    limit: u64,
    ring: u64,
    most: u64,
) -> Option<String> {
    let is_full =
        |cause: LossCause| losses.iter().any(|(name, count)| *count > 0 && name.as_ref() == cause.name());
    if !is_full(LossCause::ThreadRing) && !is_full(LossCause::SharedBuffer) {
        return None;
    }
    let (wanted, larger) = more(limit, ring, most)?;
    let buffer = if larger > ring { format!(" --buffer {}", in_words(larger)) } else { String::new() };
    Some(format!("give more memory (`--memory {}{buffer}`)", in_words(wanted)))
}

/// The memory to ask for in place of `now` bytes, and the ring with which one process can use it.
fn more(now: u64, ring: u64, most: u64) -> Option<(u64, u64)> {
    let wanted = power_below(now.saturating_mul(4).max(LEAST_HELP).min(most));
    let larger = ring.max((wanted / MOST_RINGS).next_power_of_two()).min(LARGEST_RING);
    (wanted / 2 >= now).then_some((wanted, larger))
}

/// The buffers in which events were lost, and what they may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// Bytes of a ring.
    pub ring: u64,
    /// The most rings of a process.
    pub rings: u64,
    /// Whether that number is the machine's, which promises no more memory than it has, so that `--rings` says nothing.
    pub has_fixed_rings: bool,
    /// Bytes that the rings of all processes may have together.
    pub memory: u64,
    /// Whether that limit was reached.
    pub is_limited: bool,
    /// Bytes of the kernel's ring on each processor.
    pub kernel: u64,
    /// Bytes that all buffers may have on this machine ([`room_for_buffers`]).
    pub most: u64,
}

/// The most rings of a process.
pub(crate) const MOST_RINGS: u64 = 4096;
/// The largest ring.
const LARGEST_RING: u64 = 1 << 30;
/// Less memory than this is not worth a second try.
const LEAST_HELP: u64 = 256 << 20;
/// The largest ring of the kernel.
const LARGEST_KERNEL_RING: u64 = 4 << 30;

impl Buffers {
    /// What helps against the greatest of these losses by cause ([`LossCause::name`]), with values that are larger than the
    /// present ones and that this machine allows; `None` where nothing was lost, or nothing helps.
    #[must_use]
    pub fn remedy<K: AsRef<str>>(&self, losses: &BTreeMap<K, u64>) -> Option<String> {
        let lost = losses.iter().filter(|(_, count)| **count > 0);
        let greatest = lost.max_by_key(|(_, count)| **count)?.0.as_ref();
        let of = |cause: LossCause| greatest == cause.name();
        let fewer = "trace fewer events (`trace record --event`)";
        if of(LossCause::ThreadRing) || of(LossCause::SharedBuffer) {
            let words = if of(LossCause::ThreadRing) || self.is_limited || self.has_fixed_rings {
                self.more_memory().map(|words| format!("give more memory (`{words}`)"))
            } else {
                let rings = (4 * self.rings).min(MOST_RINGS);
                (rings > self.rings)
                    .then(|| format!("give more threads a buffer of their own (`--rings {rings}`)"))
            };
            Some(words.map_or_else(|| fewer.to_owned(), |words| format!("{words} or {fewer}")))
        } else if of(LossCause::Horolog) {
            Some(fewer.to_owned())
        } else if of(LossCause::Kernel) {
            let bytes = (4 * self.kernel).min(LARGEST_KERNEL_RING).min(power_below(self.most));
            (bytes > self.kernel).then(|| {
                format!("give the kernel's record more memory (`--kernel-buffer {}`)", in_words(bytes))
            })
        } else {
            None
        }
    }

    /// Options that give the program four times the memory and 256 MiB at least, or what there is where that is twice as much.
    fn more_memory(&self) -> Option<String> {
        let of_one = self.rings.saturating_mul(self.ring);
        let now = match (self.has_fixed_rings, self.is_limited) {
            (true, _) => of_one,
            (false, true) => self.memory,
            (false, false) => of_one.min(self.memory),
        };
        let (wanted, ring) = more(now, self.ring, self.most)?;
        if self.has_fixed_rings {
            let ring = power_below(wanted / self.rings.max(1)).min(LARGEST_RING);
            return (ring > self.ring).then(|| format!("--buffer {}", in_words(ring)));
        }
        let rings = (wanted / ring).clamp(1, MOST_RINGS);
        let mut words = Vec::new();
        if ring > self.ring {
            words.push(format!("--buffer {}", in_words(ring)));
        }
        if rings > self.rings || ring > self.ring {
            words.push(format!("--rings {}", rings.max(self.rings)));
        }
        if wanted > self.memory {
            words.push(format!("--memory {}", in_words(wanted)));
        }
        Some(words.join(" "))
    }
}

fn power_below(bytes: u64) -> u64 {
    bytes.checked_ilog2().map_or(0, |power| 1 << power)
}

/// A power of two as options take it.
fn in_words(bytes: u64) -> String {
    match bytes.trailing_zeros() {
        30.. => format!("{}G", bytes >> 30),
        20.. => format!("{}M", bytes >> 20),
        10.. => format!("{}K", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// Half of the memory that this process and those that it starts may have: the machine's, or their cgroup's.
#[must_use]
pub fn room_for_buffers() -> u64 {
    horolog_sys::memory_limit::allowed_bytes() / 2
}

/// What is to be said about the memory of the rings: that its limit was reached.
#[must_use]
pub fn memory_note(listener: &Listener) -> Option<String> {
    let budget = listener.budget();
    (budget.refused() > 0).then(|| {
        format!(
            "the buffers reached their limit of {} KiB for all processes together, {} times; `--memory` raises it",
            budget.limit() >> 10,
            budget.refused()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_of_locks_is_given_more_memory_than_it_had() {
        let full = BTreeMap::from([("thread-ring", 5)]);
        let with = |limit, ring, most| remedy_for_locks(&full, limit, ring, most);
        let told = |words: &str| Some(format!("give more memory (`{words}`)"));
        assert_eq!(with(8 << 10, 256 << 10, 4 << 30), told("--memory 256M"));
        assert_eq!(with(8 << 10, 4 << 10, 4 << 30), told("--memory 256M --buffer 64K"));
        assert_eq!(with(256 << 20, 256 << 10, 4 << 30), told("--memory 1G"));
        assert_eq!(with(1 << 30, 256 << 10, 16 << 30), told("--memory 4G --buffer 1M"));
        // A ring never becomes smaller.
        assert_eq!(with(1 << 30, 4 << 20, 16 << 30), told("--memory 4G"));
        assert_eq!(with(1 << 30, 256 << 10, (2 << 30) - 1), None);
        assert_eq!(with(1 << 30, 256 << 10, 2 << 30), told("--memory 2G --buffer 512K"));
        let other = BTreeMap::from([("thread-ring", 0), ("dead-writer", 5)]);
        assert_eq!(remedy_for_locks(&other, 8 << 10, 4 << 10, 4 << 30), None);
    }

    const DEFAULT: Buffers = Buffers {
        ring: 256 << 10,
        rings: 256,
        has_fixed_rings: false,
        memory: 1 << 30,
        is_limited: false,
        kernel: 8 << 20,
        most: 4 << 30,
    };

    fn remedy_of(buffers: Buffers, cause: LossCause) -> Option<String> {
        buffers.remedy(&BTreeMap::from([(cause.name(), 5)]))
    }

    #[test]
    fn a_remedy_gives_more_than_there_is_and_no_more_than_is_allowed() {
        let fewer = "trace fewer events (`trace record --event`)";
        let memory = |words: &str| Some(format!("give more memory (`{words}`) or {fewer}"));
        let of = |buffers: Buffers| remedy_of(buffers, LossCause::ThreadRing);
        assert_eq!(DEFAULT.remedy(&BTreeMap::<&str, u64>::new()), None);
        assert_eq!(remedy_of(DEFAULT, LossCause::DeadWriter), None);
        // A process has 64 MiB: rings of another size alone change nothing.
        assert_eq!(of(DEFAULT), memory("--rings 1024"));
        assert_eq!(of(Buffers { memory: 64 << 20, ..DEFAULT }), memory("--rings 1024 --memory 256M"));
        assert_eq!(
            of(Buffers { is_limited: true, ..DEFAULT }),
            memory("--buffer 1M --rings 4096 --memory 4G")
        );
        let small = Buffers { ring: 4 << 10, rings: 256, memory: 8 << 10, is_limited: true, ..DEFAULT };
        assert_eq!(of(small), memory("--buffer 64K --rings 4096 --memory 256M"));
        let most_rings = Buffers { rings: 4096, ..DEFAULT };
        assert_eq!(of(most_rings), memory("--buffer 1M --rings 4096 --memory 4G"));
        // Twice as much, or nothing.
        assert_eq!(of(Buffers { most: 128 << 20, ..DEFAULT }), memory("--rings 512"));
        assert_eq!(of(Buffers { most: (128 << 20) - 1, ..DEFAULT }), Some(fewer.to_owned()));
        let fixed = Buffers { rings: 8, has_fixed_rings: true, ..DEFAULT };
        assert_eq!(of(fixed), memory("--buffer 32M"));
    }

    #[test]
    fn threads_without_a_ring_get_one_as_far_as_there_are_any() {
        let of = |rings| remedy_of(Buffers { rings, ..DEFAULT }, LossCause::SharedBuffer).expect("one");
        assert!(of(1_024).contains("`--rings 4096`") && of(2_048).contains("`--rings 4096`"));
        assert!(!of(4_096).contains("--rings"));
        let kernel = |kernel| remedy_of(Buffers { kernel, ..DEFAULT }, LossCause::Kernel);
        assert!(kernel(8 << 20).is_some_and(|words| words.contains("`--kernel-buffer 32M`")));
        assert_eq!(kernel(4 << 30), None);
    }
}
