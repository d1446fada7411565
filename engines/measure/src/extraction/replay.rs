//! Whether what was observed is legal in the proposed model.

use super::arrivals::lead;
use super::cumulative::arrivals_of_portions;
use super::pattern::arrivals_of;
use super::proposal::{Arrival, Values, text};
use super::task::TaskProposal;

/// What the proposed values do not allow of the observed arrivals and executions; empty where they allow all. Executions
/// that were set aside, and arrivals that were left out of the jitter as asked, are not held against them.
#[must_use]
pub fn violations(task: &TaskProposal, values: &Values) -> Vec<String> {
    let mut found = Vec::new();
    let arrivals = arrivals_of(&task.reading.jobs);
    let mut keeps = |arrivals: &[u64], separation: u64, jitter: u64| {
        let needed = lead(arrivals, separation);
        if needed > u128::from(jitter) {
            found.push(format!(
                "arrivals lead a separation of {} by {needed} ns, more than the jitter of {}",
                text(separation),
                text(jitter)
            ));
        }
    };
    match &values.arrival {
        Arrival::Period(_) if task.jitter.left_out > 0 => {}
        Arrival::Period(separation) | Arrival::Separation(separation) => {
            keeps(&arrivals, *separation, values.jitter);
        }
        Arrival::Envelope { separation, jitter } => keeps(&arrivals, *separation, *jitter),
        Arrival::Portions { separation, jitter } => {
            let work = task.work(values.suspensions_counted);
            keeps(&arrivals_of_portions(&work, values.wcet), *separation, *jitter);
            return found;
        }
        Arrival::Instants(instants) if *instants != arrivals => {
            found.push("the arrivals are others".to_owned());
        }
        Arrival::Instants(_) => {}
    }
    let longest = if values.suspensions_counted { &task.demand } else { &task.execution }.max_ns;
    if longest > values.wcet {
        found.push(format!("a job takes {}, more than the wcet of {}", text(longest), text(values.wcet)));
    }
    found
}
