//! Baker, Wang and Stanovich 2007: fitting Linux device drivers into an analyzable scheduling framework.
//!
//! Figure 2, simulated and run for real; the paper's arguments in words, simulated as scenarios whose times can be worked
//! out by hand: backlog inversion, shared against separate budgets, lost predictability, interrupts under NAPI, frame
//! grabbers, and what a rising packet rate does to a thread and to the packets.

mod figure;
mod grabber;
mod live;
mod rates;
mod scenarios;
mod simulated;

use crate::{ExperimentError, ExperimentReport, Options};

/// Runs the simulated part, and the real part where this machine allows it.
///
/// # Errors
/// Where a scenario is refused, which is a defect.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let mut report = ExperimentReport::new("driver-framework");
    progress(0, 5, "interference, backlog, budgets, predictability");
    scenarios::facts(&mut report)?;
    progress(1, 5, "frame grabbers");
    grabber::facts(&mut report)?;
    progress(2, 5, "packet rates");
    rates::facts(&mut report)?;
    progress(3, 5, "figure 2, simulated");
    let simulated = figure::simulate()?;
    figure::simulated_facts(&simulated, &mut report);
    progress(4, 5, "figure 2 on this machine, server threads below and above the task");
    match live::run(options.full) {
        Ok(measured) => figure::real_facts(&measured, &mut report),
        Err(error) if error.is_not_permitted() => figure::not_permitted(&error.to_string(), &mut report),
        Err(error) => return Err(error),
    }
    report.facts.sort_by_key(|fact| fact.number);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Agreement;

    #[test]
    fn the_simulated_part_agrees() {
        let mut report = ExperimentReport::new("");
        scenarios::facts(&mut report).expect("the scenarios are systems");
        grabber::facts(&mut report).expect("the grabbers are systems");
        rates::facts(&mut report).expect("the rates are systems");
        figure::simulated_facts(&figure::simulate().expect("a system"), &mut report);
        let others: Vec<_> = report.facts.iter().filter(|fact| fact.agreement != Agreement::Agrees).collect();
        assert!(others.is_empty(), "{others:#?}");
        assert!(report.facts.len() > 15);
    }

    #[test]
    fn what_is_not_permitted_is_told_with_its_remedy() {
        let mut report = ExperimentReport::new("");
        figure::not_permitted("give it CAP_SYS_NICE", &mut report);
        assert!(report.facts.iter().all(|fact| matches!(fact.agreement, Agreement::NotPermitted(_))));
        assert!(report.agrees());
        assert_eq!(report.refusal(), Some("give it CAP_SYS_NICE"));
    }
}
