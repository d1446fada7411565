//! How long m processors can be kept from a job by others.
//!
//! While a job waits, m jobs of m other tasks execute. Where the others execute at most w_i within a window, and the job waits
//! s in it, then each of them takes part in at most min(w_i, s) of that: Σ min(w_i, s) ≥ m s (`bertogna05`, lemma of interference).
//! The left side less the right one is concave in s, so this holds up to one largest s:
//!
//! ```text
//! s ≤ min over p = 0 .. m - 1 of  T_p / (m - p)        T_p: the sum of all w_i without the p largest
//! ```
//!
//! p processors are taken all the time by the p largest; the others share the rest.

/// The least whole s that is at least the longest wait: min over p of ⌈T_p / (m − p)⌉. The order of `work` changes.
///
/// The sum of `work` is within 64 bits, `processors` above zero.
pub(super) fn longest_wait(work: &mut [u64], processors: u64) -> u64 {
    if (work.len() as u64) < processors {
        return 0;
    }
    let mut rest: u64 = work.iter().sum();
    let (mut first, mut sharing) = (0, processors);
    loop {
        let each = rest / sharing;
        let largest = work[first..].iter().enumerate().max_by_key(|&(_, &ns)| ns);
        match largest {
            // One that exceeds the mean takes a processor for itself.
            Some((place, &ns)) if ns > each && sharing > 1 => {
                work.swap(first, first + place);
                (rest, first, sharing) = (rest - ns, first + 1, sharing - 1);
            }
            _ => return rest.div_ceil(sharing),
        }
    }
}

/// What of the work grows as the window does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// How many of the tasks grow with the window, unit by unit.
    pub(super) tasks: u64,
    /// For how long all of them do at least.
    pub(super) lasts: u64,
}

impl Growth {
    pub(super) const NONE: Growth = Growth { tasks: 0, lasts: u64::MAX };

    /// A task that grows for so long; 0: it does not.
    #[inline]
    pub(super) fn add(&mut self, lasts: u64) {
        if lasts > 0 {
            (self.tasks, self.lasts) = (self.tasks + 1, self.lasts.min(lasts));
        }
    }
}

/// Whether a job that has waited `wait` in a window has waited long enough for others with this work; else the least wait that may be, in this
/// window or a longer one. The order of `work` changes.
///
/// A wait s is enough where T_p ≤ (m − p) s for some p. Of r tasks that grow, r − p at least are outside the p largest. So in a window that
/// is Δ longer T_p + (r − p) Δ ≤ (m − p) (s + Δ) has to hold for some p, as long as all of them grow.
pub(super) fn next_wait(work: &mut [u64], processors: u64, wait: u64, growth: Growth) -> u64 {
    if (work.len() as u64) < processors {
        return wait;
    }
    let mut rest: u64 = work.iter().sum();
    let (mut first, mut sharing) = (0, processors);
    // Without growth, and with it.
    let (mut alone, mut grown) = (u64::MAX, u64::MAX);
    while sharing > 0 {
        let room = sharing * wait;
        if rest <= room {
            return wait;
        }
        let missing = rest - room;
        alone = alone.min(missing.div_ceil(sharing));
        let growing = growth.tasks.saturating_sub(processors - sharing);
        if growing < sharing {
            grown = grown.min(missing.div_ceil(sharing - growing));
        }
        let largest = work[first..].iter().enumerate().max_by_key(|&(_, &ns)| ns);
        match largest {
            Some((place, &ns)) if ns > wait => {
                work.swap(first, first + place);
                (rest, first, sharing) = (rest - ns, first + 1, sharing - 1);
            }
            _ => break,
        }
    }
    wait.saturating_add(alone.max(grown.min(growth.lasts)))
}

/// As [`longest_wait`], where up to `most` of the tasks execute the second number of their pair instead of the first: the longest
/// wait over all choices of them. No second number is below the first. The order of `work` changes; `room` is used.
pub(super) fn longest_wait_of_choice(
    work: &mut [(u64, u64)],
    most: usize,
    processors: u64,
    room: &mut Vec<u64>,
) -> u64 {
    if (work.len() as u64) < processors {
        return 0;
    }
    let mut wait = 0;
    // No wait is longer than what all of it takes without a cap. From then on each round finds a choice that makes a longer
    // wait than those before, or none does.
    let mut cap = u64::MAX;
    loop {
        let gain = |&(less, more): &(u64, u64)| {
            let gained = more.min(cap) - less.min(cap);
            (gained, u8::from(more > cap) - u8::from(less > cap))
        };
        if most > 0 && most < work.len() {
            work.select_nth_unstable_by_key(most - 1, |pair| std::cmp::Reverse(gain(pair)));
        }
        room.clear();
        room.extend(
            work.iter().enumerate().map(|(place, &(less, more))| if place < most { more } else { less }),
        );
        let found = longest_wait(room, processors);
        if cap != u64::MAX && found <= wait {
            return wait;
        }
        wait = wait.max(found);
        cap = wait;
    }
}

/// Takes the second number of those of `work` that it makes most difference to in a wait of `wait`, at most `most` of them: (first, second, for how long
/// each grows). What is taken goes to `room`, and how it grows comes back.
pub(super) fn choose(work: &mut [Choice], most: usize, wait: u64, room: &mut Vec<u64>) -> Growth {
    for choice in work.iter_mut() {
        let (less, more) = (choice.less.0, choice.more.0);
        // A little above the wait counts where all else is equal.
        choice.gain = 2 * (more.min(wait) - less.min(wait)) + u64::from(more > wait) - u64::from(less > wait);
    }
    if most > 0 && most < work.len() {
        work.select_nth_unstable_by_key(most - 1, |choice| std::cmp::Reverse(choice.gain));
    }
    room.clear();
    let mut growth = Growth::NONE;
    for (place, choice) in work.iter().enumerate() {
        let (ns, lasts) = if place < most { choice.more } else { choice.less };
        room.push(ns);
        growth.add(lasts);
    }
    growth
}

/// The work of a task with and without a job from before the window, each with for how long it grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice {
    pub(super) less: (u64, u64),
    pub(super) more: (u64, u64),
    gain: u64,
}

impl Choice {
    pub(super) fn of(less: (u64, u64), more: (u64, u64)) -> Choice {
        Choice { less, more, gain: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_testkit::Random;

    /// The largest quarter of a unit s with Σ min(w, s) ≥ m s, rounded up: by trying all of them.
    fn by_trying(work: &[u64], processors: u64) -> u64 {
        // The root is a fraction with a denominator of at most m ≤ 4, so of 12.
        let holds = |twelfths: u64| {
            work.iter().map(|ns| (12 * ns).min(twelfths)).sum::<u64>() >= processors * twelfths
        };
        let top = 12 * work.iter().sum::<u64>() + 12;
        (0..=top).rev().find(|&s| holds(s)).unwrap_or(0).div_ceil(12)
    }

    #[test]
    fn the_wait_is_that_of_trying_every_one() {
        let mut random = Random::new(3);
        let (mut room, mut capped) = (Vec::new(), 0);
        for _ in 0..4_000 {
            let processors = 1 + random.below(4);
            let work: Vec<u64> = (0..random.below(7)).map(|_| random.below(9)).collect();
            let expected = by_trying(&work, processors);
            let mut sorted = work.clone();
            assert_eq!(longest_wait(&mut sorted, processors), expected, "{work:?} on {processors}");
            let mean = work.iter().sum::<u64>().div_ceil(processors);
            capped += u64::from(expected < mean && expected > 0);

            let pairs: Vec<(u64, u64)> = work.iter().map(|&ns| (ns, ns + random.below(6))).collect();
            let most = random.below(4) as usize;
            let choices = (0_u32..1 << pairs.len()).filter(|bits| bits.count_ones() as usize <= most);
            let chosen = |bits: u32| -> Vec<u64> {
                let one = |(place, &(less, more)): (usize, &(u64, u64))| {
                    if bits >> place & 1 == 1 { more } else { less }
                };
                pairs.iter().enumerate().map(one).collect()
            };
            let worst = choices.map(|bits| by_trying(&chosen(bits), processors)).max().unwrap_or(0);
            let found = longest_wait_of_choice(&mut pairs.clone(), most, processors, &mut room);
            assert_eq!(found, worst, "{pairs:?}, {most} of them, on {processors}");
        }
        assert!(capped > 500, "{capped}");
    }
}
