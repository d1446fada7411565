//! Overload: more work than processor, in the long run.

use crate::load::priority;
use crate::{Flaw, Proven};
use horolog_model::{System, Task};
use num_bigint::BigUint;

/// Checks that `names` are tasks at least as important as `task`, on its processor, and that the sum of C / T over
/// them is above 1: then the backlog that is ahead of its jobs grows without bound.
pub(crate) fn check(system: &System, task: &Task, verdict: Proven, names: &[String]) -> Result<(), Flaw> {
    let flaw = |reason: String| Err(Flaw::new(&task.name, reason));
    if verdict != Proven::Misses || task.deadline.is_none() {
        return flaw("overload proves a miss of a task with a deadline, nothing else".into());
    }
    if task.separation().is_none() {
        return flaw("a finite list of jobs does not miss by overload".into());
    }
    let edf = system.policy() == horolog_model::Policy::Edf;
    let delays = |other: &Task| -> Result<bool, Flaw> {
        // Under EDF the backlog delays every task in the end.
        Ok(other.cpu == task.cpu && (edf || priority(other)? >= priority(task)?))
    };
    // The sum over a common denominator: demand / window, both exact.
    let (mut demand, mut window) = (BigUint::from(0_u32), BigUint::from(1_u32));
    for (index, name) in names.iter().enumerate() {
        let Some(other) = system.tasks().iter().find(|t| &t.name == name) else {
            return flaw(format!("the system has no task `{name}`"));
        };
        if names[..index].contains(name) {
            return flaw(format!("`{name}` is counted twice"));
        }
        if !delays(other)? || (edf && other.deadline.is_none()) {
            return flaw(format!("`{name}` cannot delay it"));
        }
        let Some(separation) = other.separation() else {
            return flaw(format!("`{name}` has no long-run share"));
        };
        demand = demand * separation.as_ns() + &window * other.wcet.as_ns();
        window *= separation.as_ns();
    }
    if !names.contains(&task.name) {
        return flaw("the task itself is not counted".into());
    }
    if demand <= window {
        return flaw("the tasks do not ask for more than the processor".into());
    }
    Ok(())
}
