//! What the comparison of a processor with the machine beside it came to.

use crate::report::Found;
use crate::result::ProcessorVerification;
use crate::state::costs_seen::CostsSeen;
use horolog_time::Span;

/// What the comparison of one processor came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compared {
    /// Why nothing was compared.
    pub(crate) undecided: Option<String>,
    pub(crate) divergences: u64,
    pub(crate) disturbed: u64,
    pub(crate) short: u64,
    pub(crate) longest_short: u64,
    pub(crate) longest: u64,
    pub(crate) not_judged: u64,
    /// Too long by no more than a pause of the host that leaves no trace. How often these come decides whose they are.
    pub(crate) unseen: Vec<Found>,
    /// How many these are, with those that the check of the order has named.
    pub(crate) unseen_count: u64,
    /// They come too often for that.
    pub(crate) is_often: bool,
    /// Releases whose timer interrupt came late: the longest ones.
    pub(crate) late_timers: Vec<LateTimer>,
}

/// A timer interrupt that came late, and excuses the stretch up to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateTimer {
    pub(crate) task: usize,
    pub(crate) job: u64,
    pub(crate) since: u64,
    pub(crate) at: u64,
    pub(crate) allowed: u64,
}

impl LateTimer {
    pub(crate) fn length(&self) -> u64 {
        self.at - self.since
    }
}

/// So many late timers of a processor are kept.
pub(crate) const MOST_LATE_TIMERS: usize = 1_024;

/// So many stretches may be blamed on pauses that nobody saw before their share is looked at.
pub(crate) const FEW_PAUSES: u64 = 64;

impl Compared {
    /// Of a hundred stretches one may be blamed on a pause that leaves no trace, and one at least.
    pub(crate) fn unseen_allowed(&self) -> u64 {
        let stretches = self.short.saturating_add(self.disturbed).saturating_add(self.divergences);
        (stretches / 100).max(1)
    }

    pub(crate) fn new(undecided: Option<String>) -> Compared {
        Compared { undecided, ..Compared::default() }
    }

    pub(crate) fn result(&self, cpu: u32, hidden: (u64, u64), seen: &CostsSeen) -> ProcessorVerification {
        let spans = |ns: u64, count: u64| (count > 0).then_some(Span::from_ns(ns));
        ProcessorVerification {
            cpu,
            compared: self.undecided.is_none(),
            reason: self.undecided.clone(),
            divergences: self.divergences,
            disturbed: self.disturbed,
            short: self.short,
            short_ns_max: spans(self.longest_short, self.short),
            longest_ns: spans(self.longest, self.short + self.disturbed + self.divergences),
            not_judged_ns: Span::from_ns(self.not_judged),
            hidden_switches: hidden.0,
            hidden_ns: Span::from_ns(hidden.1),
            timer_interrupts: seen.timer_interrupts,
            context_switches: seen.context_switches,
        }
    }

    /// Keeps a late timer, the shortest one no longer where there are too many.
    pub(crate) fn keep(&mut self, late: LateTimer) {
        if self.late_timers.len() < MOST_LATE_TIMERS {
            return self.late_timers.push(late);
        }
        if let Some(shortest) = self.late_timers.iter_mut().min_by_key(|one| one.length())
            && shortest.length() < late.length()
        {
            *shortest = late;
        }
    }

    pub(crate) fn count_wrong(&mut self) {
        self.divergences += 1;
    }

    pub(crate) fn count_not_judged(&mut self, span: u64) {
        self.not_judged = self.not_judged.saturating_add(span);
    }
}
