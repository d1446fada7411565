//! Returns of budgets in a measured trace: what one returns to is no more than the budget, and a budget that comes back at the
//! multiples of its period does so no more often. In a simulated trace each return is decided again instead, to the nanosecond.

use crate::report::Found;
use crate::result::{Check, Class};
use crate::verifier::{Verifier, levels};
use horolog_model::{ServerId, ServerKind, SporadicRules, System};
use horolog_time::Span;
use horolog_trace::Record;

/// What the records of one server's returns are held against.
#[derive(Clone, Debug)]
pub(crate) struct Returns {
    name: String,
    budget: u64,
    /// Where it comes back at its multiples.
    period: Option<u64>,
    count: u64,
}

impl Returns {
    /// Of every server; `None` where what it has left is more than its budget at times.
    pub(crate) fn all(system: &System) -> Vec<Option<Returns>> {
        let of = |id: ServerId| {
            let server = system.server(id);
            let capacity = server.kind.capacity()?;
            let most = (0..system.mode_count()).filter_map(|mode| system.capacity_in(mode, id));
            let budget = most.map(|capacity| capacity.budget.as_ns()).max()?;
            let period = match server.kind {
                ServerKind::Polling { .. } | ServerKind::Deferrable { .. } => {
                    Some(capacity.period.as_ns().max(1))
                }
                ServerKind::Sporadic { rules: SporadicRules::Corrected, .. } => None,
                _ => return None,
            };
            let period = period.filter(|_| !levels::changes(system, id));
            Some(Returns { name: server.name.clone(), budget, period, count: 0 })
        };
        system.server_ids().map(of).collect()
    }
}

impl Verifier {
    /// A record says that a budget has come back.
    pub(crate) fn check_return(&mut self, record: &Record) {
        let at = usize::try_from(record.value).unwrap_or(usize::MAX);
        if self.model.simulated || self.model.foreign {
            return;
        }
        let reach = self.now.saturating_add(self.model.stamping);
        let Some(Some(returns)) = self.returns.get_mut(at) else { return };
        self.report.apply(Check::Budget);
        returns.count += 1;
        let (name, budget) = (returns.name.clone(), returns.budget);
        // One more than multiples have passed: that of the start.
        let most = returns.period.map(|period| reach / period + 1);
        let too_often = most.is_some_and(|most| returns.count > most);
        if too_often {
            returns.count -= 1;
        }
        let (what, numbers) = if record.extra > budget {
            let what = format!(
                "its budget came back to {}, it is {}",
                Span::from_ns(record.extra),
                Span::from_ns(budget)
            );
            (what, Some((record.extra, budget)))
        } else if too_often {
            ("its budget came back before the next multiple of its period".to_owned(), None)
        } else {
            return;
        };
        self.report.add(Found {
            class: Class::ModelViolated,
            check: Check::Budget,
            time: self.now,
            during: None,
            cpu: u32::from(record.cpu),
            task: None,
            job: None,
            observed: numbers.map(|(observed, _)| observed),
            allowed: numbers.map(|(_, allowed)| allowed),
            evidence: Vec::new(),
            message: format!("server {name}: {what}"),
            subject: name,
        });
    }
}
