//! One processor under EDF, with one resource that every task uses in the second part of its jobs and that is held without preemption: the
//! demand criterion of `horolog_analysis`, and one hyperperiod from a synchronous release in the simulator.
//!
//! Without a miss nothing is left at the end of the hyperperiod, since every deadline lies within it: what the simulator shows goes for
//! ever. Other releases may be worse, so it may refute and never accept for sporadic tasks. The criterion is sufficient.

use super::sets::{FULL, Task, hyperperiod, load};
use crate::ExperimentError;
use horolog_analysis::edf::{EdfSet, EdfSolver, EdfTask, SectionBlocking};
use horolog_model::{
    Arrival, AtExhaustion, CpuId, Draft, ExecutionTimes, OverrunPolicy, Policy, Preemption, Protocol,
    Resource, Section, System,
};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::NullSink;

/// What both say of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Verdict {
    /// Whether the criterion accepts.
    pub(super) is_proved: bool,
    /// Whether the simulated hyperperiod has no miss.
    pub(super) is_met: bool,
}

pub(super) fn judge(tasks: &[Task], solver: &mut EdfSolver) -> Result<Verdict, ExperimentError> {
    // Above 1 a backlog grows without bound, so that every release pattern of periodic tasks misses in the end.
    if load(tasks) > FULL {
        let is_proved = !tasks.is_empty() && accepts(tasks, solver)?;
        return Ok(Verdict { is_proved, is_met: false });
    }
    if tasks.is_empty() {
        return Ok(Verdict { is_proved: true, is_met: true });
    }
    Ok(Verdict { is_proved: accepts(tasks, solver)?, is_met: meets(tasks)? })
}

fn failed(error: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::failed(error.to_string())
}

/// The demand criterion with the longest section of a job that is due later (docs/concepts/edf.md).
fn accepts(tasks: &[Task], solver: &mut EdfSolver) -> Result<bool, ExperimentError> {
    let all = tasks.iter().map(|task| EdfTask::new(task.wcet(), task.period, task.period)).collect();
    let section = |(index, task): (usize, &Task)| SectionBlocking {
        task: index,
        from: 0,
        until: Some(task.period),
        time: task.inside,
    };
    let set = EdfSet::new(all, Vec::new()).map_err(failed)?;
    let set = set.with_sections(tasks.iter().enumerate().map(section).collect()).map_err(failed)?;
    Ok(solver.check(&set).is_schedulable())
}

/// Whether no job of a hyperperiod is late.
fn meets(tasks: &[Task]) -> Result<bool, ExperimentError> {
    let system = system(tasks)?;
    let horizon = Horizon::Time(Span::from_ns(hyperperiod(tasks)));
    let options = SimOptions { horizon, ..SimOptions::default() };
    let outcome = simulate(&system, &options, &mut NullSink).map_err(failed)?;
    Ok(outcome.tasks.iter().all(|task| task.missed == 0 && task.unfinished == 0))
}

fn system(tasks: &[Task]) -> Result<System, ExperimentError> {
    let tasks = tasks.iter().enumerate().map(|(index, task)| horolog_model::Task {
        name: format!("t{index}"),
        arrival: Arrival::Periodic { period: Span::from_ns(task.period) },
        deadline: Some(Span::from_ns(task.period)),
        wcet: Span::from_ns(task.wcet()),
        bcet: Span::from_ns(task.wcet()),
        offset: Some(Span::ZERO),
        jitter: Span::ZERO,
        priority: None,
        cpu: CpuId(0),
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        promotion: None,
        sections: vec![Section {
            resource: "shared".to_owned(),
            from: Span::from_ns(task.outside),
            length: Span::from_ns(task.inside),
            access: horolog_model::Access::Write,
        }],
        criticality: None,
        is_soft: false,
        body: None,
    });
    let shared = Resource {
        name: "shared".to_owned(),
        protocol: Protocol::NonPreemptive,
        at_exhaustion: AtExhaustion::Finish,
        cpu: None,
    };
    let draft = Draft {
        name: "htm-budget".to_owned(),
        policy: Policy::Edf,
        tasks: tasks.collect(),
        resources: vec![shared],
        ..Draft::default()
    };
    System::new(draft).map_err(|errors| failed(format!("{errors:?}")))
}

#[cfg(test)]
mod tests {
    use super::super::sets::UNIT;
    use super::*;

    fn task(period: u64, outside: u64, inside: u64) -> Task {
        Task {
            period: period * UNIT,
            outside: outside * UNIT / 10,
            inside: inside * UNIT / 10,
            is_high: true,
        }
    }

    /// The section of the second task begins at 0.1 + 2 and takes as long as the deadline of the first one's second job leaves, or a tenth more.
    #[test]
    fn a_section_of_one_tenth_too_much_is_a_miss() {
        let judge =
            |inside| judge(&[task(4, 5, 5), task(12, 29, inside)], &mut EdfSolver::new()).expect("a set");
        // 1 + 2.9 = 3.9: locked just before the release at 4, and until 3.9 + 3.1 = 7; the job of 4 ends at 8.
        let (inside, outside) = (judge(31), judge(32));
        assert!(inside.is_met && !outside.is_met && !outside.is_proved);
        // The criterion lets the section begin anywhere: 3 of blocking and 1 of demand fit into 4.
        let set = |inside| judge_wide(inside);
        assert_eq!((set(30), set(31)), (true, false));
    }

    fn judge_wide(inside: u64) -> bool {
        let tasks = [task(4, 5, 5), task(36, 29, inside)];
        judge(&tasks, &mut EdfSolver::new()).expect("a set").is_proved
    }

    #[test]
    fn an_overload_is_never_met_and_no_task_always_is() {
        let mut solver = EdfSolver::new();
        let full = [task(4, 20, 20)];
        let over = [Task { inside: full[0].inside + 1, ..full[0] }];
        assert_eq!(judge(&full, &mut solver).expect("a set"), Verdict { is_proved: true, is_met: true });
        assert_eq!(judge(&over, &mut solver).expect("a set"), Verdict { is_proved: false, is_met: false });
        assert_eq!(judge(&[], &mut solver).expect("a set"), Verdict { is_proved: true, is_met: true });
    }
}
