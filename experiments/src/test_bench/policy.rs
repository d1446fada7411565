//! The policies that a test bench compares, and how each becomes a server of a system.

use horolog_analysis::server::{NoAnswer, Retention, Victim, largest_capacity};
use horolog_model::{Capacity, Gain, LowPriority, Priority, ServerKind, SporadicRules};
use horolog_time::Span;

/// How the soft tasks are served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Policy {
    /// Below all hard tasks: what everything else is divided by.
    Background,
    /// A polling server.
    Polling,
    /// A deferrable server.
    Deferrable,
    /// A sporadic server by the corrected rules.
    Sporadic,
    /// Priority exchange.
    PriorityExchange,
    /// Dynamic approximate slack stealing.
    SlackStealing,
    /// The same, with unused execution time as slack at once.
    SlackStealingGain,
    /// Dual priority.
    DualPriority,
    /// The same: what a job executes while it stands low delays its promotion.
    DualPrioritySelf,
    /// The same: what a job leaves of its wcet delays the promotions of others.
    DualPriorityPropagated,
    /// The same, with both.
    DualPriorityBoth,
}

/// What a server with a budget does where the budget is used up and soft jobs wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum WhenExhausted {
    /// It goes on below all hard tasks.
    #[default]
    Background,
    /// It waits for its replenishment.
    Wait,
}

impl WhenExhausted {
    /// The words of an experiment file.
    pub const WORDS: [&'static str; 2] = ["background", "wait"];

    /// The word of an experiment file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::Wait => "wait",
        }
    }

    /// What a word of an experiment file means.
    #[must_use]
    pub fn from_word(word: &str) -> Option<WhenExhausted> {
        [Self::Background, Self::Wait].into_iter().find(|known| known.word() == word)
    }
}

impl Policy {
    /// Every policy with its word in experiment files and its label in tables and plots.
    const NAMES: [(Policy, &'static str, &'static str); 11] = [
        (Policy::Background, "background", "BG"),
        (Policy::Polling, "polling", "PS"),
        (Policy::Deferrable, "deferrable", "DS"),
        (Policy::Sporadic, "sporadic", "SS"),
        (Policy::PriorityExchange, "priority-exchange", "PE"),
        (Policy::SlackStealing, "slack-stealing", "DASS"),
        (Policy::SlackStealingGain, "slack-stealing+propagated", "DASS gain"),
        (Policy::DualPriority, "dual-priority", "DP"),
        (Policy::DualPrioritySelf, "dual-priority+self", "DP self"),
        (Policy::DualPriorityPropagated, "dual-priority+propagated", "DP propagated"),
        (Policy::DualPriorityBoth, "dual-priority+both", "DP gain"),
    ];

    /// The words of an experiment file.
    pub(crate) fn words() -> [&'static str; 11] {
        Policy::NAMES.map(|(_, word, _)| word)
    }

    /// The policy that a word names.
    pub(crate) fn from_word(word: &str) -> Option<Policy> {
        Policy::NAMES.into_iter().find(|(_, known, _)| *known == word).map(|(policy, ..)| policy)
    }

    fn names(self) -> (&'static str, &'static str) {
        let found = Policy::NAMES.into_iter().find(|(policy, ..)| *policy == self);
        found.map_or(("", ""), |(_, word, label)| (word, label))
    }

    /// Its word in an experiment file.
    pub(crate) fn word(self) -> &'static str {
        self.names().0
    }

    /// Its label in tables and plots.
    pub(crate) fn label(self) -> &'static str {
        self.names().1
    }

    /// Whether it is a server with a budget.
    pub(crate) fn is_budgeted(self) -> bool {
        self.retention().is_some()
    }

    fn retention(self) -> Option<Retention> {
        match self {
            Policy::Deferrable => Some(Retention::Deferrable),
            Policy::Polling | Policy::Sporadic | Policy::PriorityExchange => Some(Retention::AsPeriodic),
            _ => None,
        }
    }

    /// The server of this policy above these hard tasks, the most important first.
    ///
    /// A budgeted server stands on top of all, has the shortest hard period and the largest budget with which every
    /// hard task passes the response-time test, less `reserve`, or the size that is `fixed`; without budget it goes on as
    /// `exhausted` says. Where no budget is left it is the background.
    ///
    /// # Errors
    /// Where the largest budget cannot be found.
    pub(crate) fn server(
        self,
        hard: &[Victim],
        priority: Priority,
        reserve: Span,
        exhausted: WhenExhausted,
        fixed: Option<Capacity>,
    ) -> Result<ServerKind, NoAnswer> {
        let low_priority = match exhausted {
            WhenExhausted::Background => LowPriority::Background,
            WhenExhausted::Wait => LowPriority::None,
        };
        let Some(retention) = self.retention() else {
            return Ok(match self {
                Policy::SlackStealing => ServerKind::SlackStealing { gain: Gain::None },
                Policy::SlackStealingGain => ServerKind::SlackStealing { gain: Gain::Propagated },
                Policy::DualPriority => ServerKind::DualPriority { gain: Gain::None },
                Policy::DualPrioritySelf => ServerKind::DualPriority { gain: Gain::SelfGain },
                Policy::DualPriorityPropagated => ServerKind::DualPriority { gain: Gain::Propagated },
                Policy::DualPriorityBoth => ServerKind::DualPriority { gain: Gain::Both },
                _ => ServerKind::Background,
            });
        };
        let capacity = match fixed {
            Some(capacity) => capacity,
            None => {
                let period = hard.iter().map(|task| task.separation).min().unwrap_or(1);
                let largest = largest_capacity(hard, retention, period, &mut { EFFORT })?;
                let budget = largest.map_or(0, |found| found.floor_ns()).saturating_sub(reserve.as_ns());
                Capacity { budget: Span::from_ns(budget), period: Span::from_ns(period) }
            }
        };
        if capacity.budget.is_zero() {
            return Ok(ServerKind::Background);
        }
        Ok(match self {
            Policy::Polling => ServerKind::Polling { capacity, priority, low_priority },
            Policy::Deferrable => ServerKind::Deferrable { capacity, priority, low_priority },
            Policy::PriorityExchange => ServerKind::PriorityExchange { capacity, priority },
            _ => ServerKind::Sporadic {
                capacity,
                priority,
                low_priority,
                max_replenishments: horolog_model::server::DEFAULT_REPLENISHMENTS,
                rules: SporadicRules::Corrected,
            },
        })
    }
}

/// Evaluations that one search for the largest budget may take.
pub(crate) const EFFORT: u64 = 5_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_analysis::server::{HardTask, victims};

    #[test]
    fn words_name_policies_and_back() {
        for word in Policy::words() {
            assert_eq!(Policy::from_word(word).map(Policy::word), Some(word));
        }
        assert_eq!(Policy::from_word("DASS"), None);
    }

    /// Fact 2 of the aperiodic policies: the published sizes.
    #[test]
    fn budgets_are_the_largest_that_pass() {
        let task = |wcet, period| HardTask {
            wcet: Span::from_ns(wcet),
            period: Span::from_ns(period),
            deadline: Span::from_ns(period),
        };
        let set = victims(&[task(200, 1000), task(400, 2000), task(800, 4000)]);
        let budget = |policy: Policy, reserve| {
            let reserve = Span::from_ns(reserve);
            let kind = policy
                .server(&set, Priority::new(9), reserve, WhenExhausted::Wait, None)
                .expect("a small set");
            assert!(kind.low_priority().is_none_or(|low| low == LowPriority::None));
            kind.capacity().map(|capacity| (capacity.budget.as_ns(), capacity.period.as_ns()))
        };
        assert_eq!(budget(Policy::Deferrable, 0), Some((320, 1000)));
        assert_eq!(budget(Policy::Sporadic, 0), Some((400, 1000)));
        assert_eq!(budget(Policy::Sporadic, 30), Some((370, 1000)));
        assert_eq!(budget(Policy::Sporadic, 400), None, "nothing is left: the background");
        assert_eq!(budget(Policy::DualPriority, 0), None);
        let fixed = Some(Capacity { budget: Span::from_ns(250), period: Span::from_ns(500) });
        for policy in [Policy::Polling, Policy::Deferrable, Policy::Sporadic, Policy::PriorityExchange] {
            let kind = policy.server(&set, Priority::new(9), Span::ZERO, WhenExhausted::Background, fixed);
            assert_eq!(kind.expect("no search").capacity(), fixed, "{policy:?}");
        }
    }
}
