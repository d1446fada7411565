//! Everything whose deadlines are compared at one node that orders by deadline.

use super::supply::{Load, TreeSupply, demand};
use super::{Node, Reason, Tree};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::LONGEST_NS;
use crate::fixed_priority::level::HORIZON;
use crate::server::{NoAnswer, Serve, spend};
use horolog_model::{Capacity, Order, ServerKind};

/// What is known of a node that orders by deadline.
#[derive(Clone, Debug)]
pub(super) struct Deadlines {
    /// The longest time for which it has something to run, ns.
    pub(super) longest: Result<u128, NoAnswer>,
    /// Whether every deadline of a task is met; the reason where that is not proved.
    pub(super) all_meet: Result<(), Reason>,
    /// The same of constant bandwidths, too.
    pub(super) shares_meet: Result<(), Reason>,
}

/// Work with a deadline of its own.
struct Due {
    arrival: ArrivalCurve,
    wcet: u64,
    deadline: u64,
}

/// All that asks for time at one node.
struct Asked {
    due: Vec<Due>,
    /// Shares c/t, whose demand in a window is the share of it at most.
    shares: Vec<(u64, u64)>,
    /// Switching of the shares in a window however short, ns: what is left of a budget may be a whole stretch.
    switching: u128,
    /// What there is no test by deadlines for.
    obstacle: Option<Reason>,
}

impl Deadlines {
    pub(super) fn new(tree: &Tree<'_>, node: Node, supply: &TreeSupply) -> Result<Deadlines, Reason> {
        let work = tree.all_work(node);
        let longest = supply.backlog(&work, &mut tree.effort());
        let asked = Asked::of(tree, node);
        let all_meet = match (&longest, asked.obstacle.clone()) {
            (_, Some(obstacle)) => Err(obstacle),
            (Err(reason), None) => Err(reason.to_string()),
            (Ok(longest), None) => asked.all_meet(*longest, supply, &mut tree.effort()),
        };
        let is_late = all_meet.is_ok() && asked.switching > 0;
        let late =
            || "switching may delay what is left of a constant bandwidth beyond its deadline".to_owned();
        let shares_meet = if is_late { Err(late()) } else { all_meet.clone() };
        Ok(Deadlines { longest, all_meet, shares_meet })
    }
}

impl Asked {
    fn of(tree: &Tree<'_>, node: Node) -> Asked {
        let mut asked = Asked { due: Vec::new(), shares: Vec::new(), switching: 0, obstacle: None };
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            for &id in tree.tasks_below(node) {
                let task = tree.system.task(id);
                // Without a deadline it comes after all of them.
                if let Some(deadline) = task.deadline {
                    let (arrival, wcet) = (tree.arrivals[&id].clone(), tree.wcet(id));
                    asked.due.push(Due { arrival, wcet, deadline: deadline.as_ns() });
                }
            }
            for &id in tree.nodes_below(node) {
                let server = tree.system.server(id);
                match server.kind {
                    ServerKind::TotalBandwidth { .. } if tree.has_costs() => {
                        asked.obstacle =
                            Some(format!("switching between the jobs of `{}` is in no share", server.name));
                    }
                    ServerKind::ConstantBandwidth { capacity, .. }
                    | ServerKind::TotalBandwidth { capacity } => {
                        let overhead = tree.overhead(id).unwrap_or(LONGEST_NS);
                        let whole = capacity.budget.as_ns().saturating_add(overhead);
                        asked.shares.push((whole, capacity.period.as_ns()));
                        if overhead > 0 {
                            asked.switching +=
                                u128::from(overhead) + 2 * u128::from(tree.costs.context_switch);
                        }
                    }
                    // After all deadlines.
                    ServerKind::Background => {}
                    ServerKind::Plain { .. } if server.order == Order::Edf => open.push(Some(id)),
                    _ => {
                        asked.obstacle = Some(format!(
                            "`{}` competes by the earliest deadline below it and orders otherwise itself",
                            server.name
                        ));
                    }
                }
            }
        }
        asked
    }

    /// The most that is due within a window of `t` ns at whose start nothing is that is due in it. Where switching costs, windows in
    /// which no task is due do not count: what is left of a constant bandwidth may be late then.
    fn within(&self, t: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        let mut sum = 0_u128;
        for due in &self.due {
            spend(effort, due.arrival.effort())?;
            let late = t + u128::from(due.arrival.jitter());
            if let Some(width) = late.checked_sub(u128::from(due.deadline)) {
                sum += due.arrival.own_up_to(width) * u128::from(due.wcet);
            }
        }
        if self.switching > 0 {
            if sum == 0 {
                return Ok(0);
            }
            sum += self.switching;
        }
        for &(budget, period) in &self.shares {
            spend(effort, 1)?;
            sum += t * u128::from(budget) / u128::from(period);
        }
        Ok(sum)
    }

    /// Whether in every window of whole ns, up to the longest that matters, no more is due than is supplied: from the longest downwards,
    /// each time to just below where the supply reaches what was due.
    fn all_meet(&self, longest: u128, supply: &TreeSupply, effort: &mut u64) -> Result<(), Reason> {
        let mut t = longest;
        while t > 0 {
            let due = self.within(t, effort).map_err(|reason| reason.to_string())?;
            if due == 0 {
                return Ok(());
            }
            let done = supply.finish(due, effort).map_err(|reason| reason.to_string())?;
            if done > t {
                return Err(format!(
                    "{} may be due within {}, and that much is certain to be served within {} alone",
                    span(due),
                    span(t),
                    span(done)
                ));
            }
            t = done - 1;
        }
        match self.within(0, effort) {
            Ok(0) => Ok(()),
            Ok(_) => Err("a job may become ready at its deadline, or after it".to_owned()),
            Err(reason) => Err(reason.to_string()),
        }
    }
}

fn span(ns: u128) -> horolog_time::Span {
    horolog_time::Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// The longest time until a constant bandwidth has done, and its share has settled, all that came since both were so: the least x > 0
/// with `⌈work(x)/C⌉ T <= x`.
pub(super) fn share_backlog(work: &[Load], capacity: Capacity, effort: &mut u64) -> Result<u128, NoAnswer> {
    let (budget, period) = (u128::from(capacity.budget.as_ns()), u128::from(capacity.period.as_ns()));
    let shares = work.iter().filter_map(Load::share);
    let shares: Vec<(u64, u64)> = shares.collect();
    let whole = (capacity.budget.as_ns(), capacity.period.as_ns());
    if crate::utilisation::compare_with(shares.iter().copied(), whole).is_gt() {
        return Err(NoAnswer::Overload);
    }
    let mut x = 1;
    loop {
        let next = demand(work, x, effort)?.div_ceil(budget).checked_mul(period).ok_or(NoAnswer::TooLarge)?;
        if next <= x {
            return Ok(x);
        }
        if next > HORIZON {
            return Err(NoAnswer::TooLarge);
        }
        x = next;
    }
}
