//! Promotion times of dual priority.

use super::{HardTask, NoAnswer, Retention, victims};
use horolog_time::Span;
use num_rational::Ratio;

/// When a task of a dual-priority system goes from the lower to the upper band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promotion {
    /// R_i, its response time under plain fixed priorities.
    pub response: Span,
    /// U_i = D_i − R_i, counted from its release; `None` where R_i is above D_i, so that the task has to stay in the
    /// upper band and may miss all the same.
    pub promotion: Option<Span>,
}

/// The promotion times of preemptive tasks, the most important first: `U_i = D_i − R_i`, R_i being the exact response
/// time under plain fixed priorities.
///
/// From its promotion on a job is delayed by no more than under plain fixed priorities, so it is done by its deadline
/// whatever soft work came before. Source: `davis95`.
///
/// # Errors
/// Where a response time has no bound.
///
/// ```
/// use horolog_analysis::server::{HardTask, promotion::promotions};
/// use horolog_time::Span;
/// let task = |c, t| HardTask { wcet: Span::from_ns(c), period: Span::from_ns(t), deadline: Span::from_ns(t) };
/// let found = promotions(&[task(2, 10), task(4, 20), task(8, 40)], &mut 10_000).unwrap();
/// let times: Vec<u64> = found.iter().map(|p| p.promotion.unwrap().as_ns()).collect();
/// assert_eq!(times, [8, 14, 24]);
/// ```
pub fn promotions(tasks: &[HardTask], effort: &mut u64) -> Result<Vec<Promotion>, NoAnswer> {
    let mut found = Vec::with_capacity(tasks.len());
    for (task, victim) in tasks.iter().zip(victims(tasks)) {
        let response =
            victim.response_below(Retention::AsPeriodic, Ratio::from_integer(0), 1, effort)?.to_integer();
        let response = Span::from_ns(u64::try_from(response).map_err(|_| NoAnswer::TooLarge)?);
        found.push(Promotion { response, promotion: task.deadline.checked_sub(response) });
    }
    Ok(found)
}
