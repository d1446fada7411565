//! The account of a thread under a server: its switches and its clock become what `sched`'s supply is told.
//!
//! The thread's switches are replayed in order, each at its own time, with the supply's wall timers between them. What the
//! thread executes at its high priority is charged; what it executes there without budget (the agent had not come yet) is
//! a debt that the next budget pays. While the server has no budget a sleep of the thread is kept back until it has budget
//! again: nobody sees when it wakes at its low priority, so it stands ready to be raised.

use horolog_sched::{Place, Supply, Tally};
use horolog_sys::task_clock::{Switch, SwitchKind};
use horolog_time::{Instant, Span};
use horolog_trace::ResponseStatistics;

/// See the module. All times are ns on `CLOCK_MONOTONIC`.
pub(crate) struct Account {
    supply: Box<dyn Supply>,
    /// Since when the thread has a processor; `None`: it has none.
    running_since: Option<u64>,
    /// Whether the thread is awake, as far as is known.
    is_awake: bool,
    /// Whether switches were lost since the last look.
    pub(crate) is_unsure: bool,
    /// What the supply was told last.
    backlogged: bool,
    told: u64,
    /// Whether the thread stands at its high priority.
    is_raised: bool,
    /// Execution that was seen, by switches.
    pub(crate) seen: u64,
    /// Execution at the low priority.
    pub(crate) low: u64,
    /// Execution at the high priority that no budget has paid yet.
    debt: u64,
    /// By how much the present budget is overdrawn.
    over: Option<u64>,
    /// Of every budget that was used up.
    pub(crate) overshoots: ResponseStatistics,
    /// A poll that finds no work gives nothing: what wakes in between waits.
    polls: bool,
    /// What each wake-up at the high priority is charged with, and how many were.
    wake_cost: u64,
    pub(crate) wakes_charged: u64,
    /// Switches seen.
    pub(crate) switches: u64,
    /// Times that switches were lost.
    pub(crate) losses: u64,
}

impl Account {
    pub(crate) fn new(supply: Box<dyn Supply>, polls: bool, wake_cost: u64, now: u64) -> Account {
        Account {
            supply,
            running_since: None,
            is_awake: false,
            is_unsure: true,
            backlogged: false,
            told: now,
            is_raised: false,
            seen: 0,
            low: 0,
            debt: 0,
            over: None,
            overshoots: ResponseStatistics::default(),
            polls,
            wake_cost,
            wakes_charged: 0,
            switches: 0,
            losses: 0,
        }
    }

    /// Whether the thread should stand at its high priority.
    pub(crate) fn is_high(&self) -> bool {
        self.supply.place() == Place::High
    }

    /// How much it may execute at its high priority before somebody must look.
    pub(crate) fn budget(&self) -> Option<u64> {
        let budget = self.supply.budget().filter(|_| self.is_high())?;
        Some(budget.as_ns().saturating_sub(self.debt))
    }

    /// When the supply wants to be told the time.
    pub(crate) fn timer(&self) -> Option<u64> {
        self.supply.timer().map(Instant::as_ns)
    }

    pub(crate) fn tally(&self) -> Tally {
        self.supply.tally()
    }

    /// The thread's class was changed, or left.
    pub(crate) fn set_raised(&mut self, raised: bool) {
        self.is_raised = raised;
        if !raised && let Some(over) = self.over.take() {
            self.overshoots.record(Span::from_ns(over));
        }
    }

    /// One switch of the thread.
    pub(crate) fn switch(&mut self, switch: Switch) {
        self.switches += 1;
        let at = self.reach(switch.time_ns);
        match switch.kind {
            SwitchKind::In => {
                let woke = !self.is_awake;
                self.wake(at);
                self.running_since = Some(at);
                if woke && self.is_raised && self.wake_cost > 0 {
                    self.wakes_charged += 1;
                    self.charge(at, self.wake_cost);
                }
            }
            SwitchKind::Preempted => self.leave(at),
            SwitchKind::Slept => {
                self.leave(at);
                self.is_awake = false;
                self.sleep(at);
            }
            SwitchKind::Lost => {
                self.losses += 1;
                self.running_since = None;
                self.is_unsure = true;
            }
        }
    }

    /// A look at `now`: the thread's clock has counted `executed` in all, and it is `awake` or not where somebody asked.
    pub(crate) fn look(&mut self, now: u64, executed: u64, awake: Option<bool>) {
        if let Some(awake) = awake {
            self.is_unsure = false;
            self.is_awake = awake;
            if awake && self.polls {
                // It may have woken at its low priority, unseen: a poll in between finds it.
                self.wake(self.told);
            }
        }
        let at = self.reach(now);
        self.run_until(at);
        let unseen = executed.saturating_sub(self.seen);
        if unseen > 0 {
            // Switches that nobody recorded: it was awake for so long at least, and until now at the latest.
            self.wake(at.saturating_sub(unseen).max(self.told));
            self.execute(at, unseen);
        }
        if self.is_awake { self.wake(at) } else { self.sleep(at) }
    }

    /// Goes on to `to`, past the supply's timers; times never go back.
    fn reach(&mut self, to: u64) -> u64 {
        while let Some(due) = self.timer().filter(|&due| due <= to) {
            let at = due.max(self.told);
            self.run_until(at);
            self.told = at;
            self.supply.timer_fired(Instant::from_ns(at));
            self.pay(at);
            if !self.is_awake {
                self.sleep(at);
            }
            if self.timer() == Some(due) {
                break;
            }
        }
        self.told = self.told.max(to);
        self.told
    }

    fn leave(&mut self, at: u64) {
        self.run_until(at);
        self.running_since = None;
    }

    fn run_until(&mut self, at: u64) {
        if let Some(since) = self.running_since {
            self.execute(at, at.saturating_sub(since));
            self.running_since = Some(at.max(since));
        }
    }

    fn execute(&mut self, at: u64, amount: u64) {
        self.seen += amount;
        if !self.is_raised {
            self.low += amount;
            return;
        }
        self.charge(at, amount);
    }

    /// What was taken from others at the high priority.
    fn charge(&mut self, at: u64, amount: u64) {
        self.debt += amount;
        match &mut self.over {
            Some(over) => *over += amount,
            None => self.pay(at),
        }
    }

    /// The budget, where there is one, pays the debt.
    fn pay(&mut self, at: u64) {
        if !self.is_high() || !self.backlogged {
            return;
        }
        if let Some(over) = self.over.take() {
            self.overshoots.record(Span::from_ns(over));
        }
        if self.debt == 0 {
            return;
        }
        let budget = self.supply.budget().map_or(u64::MAX, Span::as_ns);
        let amount = std::mem::take(&mut self.debt);
        let before = self.supply.tally().exhaustions;
        self.supply.executed(Instant::from_ns(at), Span::from_ns(amount));
        if self.supply.tally().exhaustions > before && !self.is_high() {
            self.over = Some(amount.saturating_sub(budget));
        }
    }

    fn wake(&mut self, at: u64) {
        self.is_awake = true;
        if !self.backlogged {
            self.backlogged = true;
            self.supply.demand_changed(Instant::from_ns(at), true);
            self.pay(at);
        }
    }

    /// Tells the supply of a sleep where that cannot leave the thread at its low priority for ever.
    fn sleep(&mut self, at: u64) {
        if self.backlogged && (self.polls || self.is_high()) {
            self.backlogged = false;
            self.supply.demand_changed(Instant::from_ns(at), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread_server::{Rules, ThreadServerOptions};
    use horolog_model::SporadicRules;

    fn account(rules: Rules, budget: u64, period: u64) -> Account {
        charging(rules, budget, period, 0)
    }

    fn charging(rules: Rules, budget: u64, period: u64, wake_cost: u64) -> Account {
        let mut options = ThreadServerOptions::sporadic(1, Span::from_ns(budget), Span::from_ns(period), 50);
        options.rules = rules;
        let supply = horolog_sched::supply_of(&options.server(), Instant::from_ns(0)).expect("valid");
        let mut account =
            Account::new(supply.expect("it has a budget"), rules == Rules::Polling, wake_cost, 0);
        account.look(0, 0, Some(false));
        account.set_raised(account.is_high());
        account
    }

    fn sporadic() -> Rules {
        Rules::Sporadic { max_replenishments: 8, rules: SporadicRules::Corrected }
    }

    fn play(account: &mut Account, switches: &[(u64, SwitchKind)]) {
        for &(time_ns, kind) in switches {
            account.switch(Switch { time_ns, kind });
        }
    }

    #[test]
    fn a_sporadic_account_is_replayed_at_the_times_of_the_switches() {
        let mut account = account(sporadic(), 100, 1_000);
        play(&mut account, &[(10, SwitchKind::In), (40, SwitchKind::Slept), (50, SwitchKind::In)]);
        account.look(90, 70, None);
        assert_eq!((account.budget(), account.is_high()), (Some(30), true));
        play(&mut account, &[(130, SwitchKind::Preempted)]);
        assert!(!account.is_high(), "100 were used");
        account.look(135, 110, None);
        account.set_raised(false);
        assert_eq!(account.overshoots.max(), Some(Span::from_ns(10)));
        assert_eq!(account.timer(), Some(1_010), "30 were first used at 10");
        account.look(1_011, 110, Some(true));
        assert!(account.is_high());
    }

    #[test]
    fn a_wake_up_is_charged_and_a_return_after_a_preemption_is_not() {
        let mut account = charging(sporadic(), 100, 1_000, 15);
        play(&mut account, &[(10, SwitchKind::In), (30, SwitchKind::Preempted), (40, SwitchKind::In)]);
        play(&mut account, &[(50, SwitchKind::Slept), (60, SwitchKind::In)]);
        // 30 executed, two wake-ups; the thread's own clock has no part in them.
        account.look(60, 30, None);
        assert_eq!((account.budget(), account.wakes_charged, account.seen), (Some(40), 2, 30));
        play(&mut account, &[(90, SwitchKind::Slept), (95, SwitchKind::In)]);
        assert!(!account.is_high(), "30 more, and a third wake-up: 105 of 100");
        account.set_raised(false);
        assert_eq!(account.overshoots.max(), Some(Span::from_ns(5)));
        play(&mut account, &[(99, SwitchKind::Slept), (200, SwitchKind::In)]);
        assert_eq!(
            (account.wakes_charged, account.low),
            (3, 4),
            "below all others it takes nothing from them"
        );
    }

    #[test]
    fn a_sleep_without_budget_is_told_once_there_is_budget() {
        let mut account = account(Rules::Deferrable, 100, 1_000);
        play(&mut account, &[(0, SwitchKind::In), (100, SwitchKind::Preempted)]);
        account.set_raised(false);
        play(&mut account, &[(200, SwitchKind::In), (250, SwitchKind::Slept)]);
        assert_eq!((account.is_high(), account.low, account.timer()), (false, 50, Some(1_000)));
        account.look(1_000, 150, Some(false));
        assert_eq!((account.is_high(), account.timer()), (true, None));
    }

    #[test]
    fn what_runs_high_without_budget_is_a_debt() {
        let mut account = account(Rules::Deferrable, 100, 1_000);
        play(&mut account, &[(0, SwitchKind::In), (100, SwitchKind::Preempted)]);
        // The agent has not come yet.
        play(&mut account, &[(110, SwitchKind::In), (140, SwitchKind::Preempted)]);
        account.set_raised(false);
        assert_eq!(account.overshoots.max(), Some(Span::from_ns(30)));
        account.look(1_000, 130, Some(true));
        assert_eq!(account.budget(), Some(70), "the next budget pays");
        assert_eq!(account.tally().consumed, Span::from_ns(130));
    }

    #[test]
    fn a_poll_serves_what_waits_at_its_instant() {
        let mut account = account(Rules::Polling, 100, 1_000);
        assert!(!account.is_high());
        play(&mut account, &[(300, SwitchKind::In), (320, SwitchKind::Slept)]);
        account.look(1_000, 20, Some(false));
        assert!(!account.is_high(), "nothing waited");
        play(&mut account, &[(1_500, SwitchKind::In)]);
        account.look(2_000, 520, Some(true));
        assert!(account.is_high());
        account.set_raised(true);
        play(&mut account, &[(2_050, SwitchKind::Slept)]);
        assert!(!account.is_high(), "the rest is gone");
    }

    #[test]
    fn execution_that_no_switch_shows_is_charged_all_the_same() {
        let mut account = account(sporadic(), 100, 1_000);
        account.look(500, 60, Some(true));
        assert_eq!(account.budget(), Some(40));
    }
}
