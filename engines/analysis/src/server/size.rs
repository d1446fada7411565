//! How large a server of a system may be: for its own period, and the best of all candidate periods.

use super::applied::{applied, largest_that_stands, soft_late};
use super::largest::{Largest, NONE_SAFE};
use super::sizing::candidates;
use super::supply::Serve as _;
use super::verdict::{HighPlace, Known, queued, service_of, soft_verdicts};
use super::{CpuServer, NoAnswer};
use crate::arrival_curve::ArrivalCurve;
use crate::assignment::resolve_priorities;
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{LargestBudget, Schedulable};
use horolog_model::{ServerId, System, TaskId};
use horolog_time::Span;
use num_bigint::BigUint;
use num_rational::Ratio;
use serde::Serialize;
use std::cmp::Ordering;

/// The answer of [`size_server`]: `horolog.server-size/1`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ServerSize {
    /// `horolog.server-size/1`.
    pub schema: &'static str,
    /// The system's name.
    pub system: String,
    /// The server's name.
    pub server: String,
    /// The word of the system file.
    pub kind: &'static str,
    /// The budget that the file gives.
    #[serde(rename = "budget_ns")]
    pub budget: Span,
    /// The period that the file gives.
    #[serde(rename = "period_ns")]
    pub period: Span,
    /// Whether every hard deadline is proved with that budget. A safe budget takes nothing from what is proved, and does not prove
    /// the rest.
    pub schedulable: Schedulable,
    /// The largest safe budget for that period; `None` where there is none.
    pub largest_budget: Option<LargestBudget>,
    /// Soft tasks of the processor that are not proved to meet their deadlines with that budget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub soft_late: Vec<String>,
    /// Whether it was shown that there is none; else, without one, it was not found.
    #[serde(skip)]
    pub none_is_safe: bool,
    /// The shortest candidate period, and how many there are.
    #[serde(rename = "least_period_ns")]
    pub least_period: Span,
    /// How many periods were candidates.
    pub candidates: usize,
    /// The candidate with the largest share of the processor.
    pub best_share: Option<PeriodSize>,
    /// The candidate with the least response bound, as [`crate::analyze`] proves it with that budget and period: the longest of the
    /// bounds of the tasks that the server serves. Where no candidate bounds all of them, the one with the least bound of one job that
    /// finds the queue empty and executes for the longest wcet that the server serves; `task` and `test` are `None` then.
    pub best_response: Option<PeriodSize>,
    /// What a reader should know, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A period with its largest safe budget.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PeriodSize {
    /// The period.
    #[serde(rename = "period_ns")]
    pub period: Span,
    /// The budget, whole nanoseconds.
    #[serde(rename = "budget_ns")]
    pub budget: Span,
    /// The exact ratio in nanoseconds as text, where it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact_ns: Option<String>,
    /// Budget over period in parts per billion, rounded down.
    pub share_ppb: u64,
    /// For the best response, the task with the longest bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// For the best response, the test that gives that bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<&'static str>,
    /// The job's wcet with the platform's costs, for the best response.
    #[serde(rename = "work_ns", skip_serializing_if = "Option::is_none")]
    pub work: Option<Span>,
    /// Its bound, for the best response.
    #[serde(rename = "response_ns", skip_serializing_if = "Option::is_none")]
    pub response: Option<Span>,
}

/// Sizes one server, all else of the system as it is.
///
/// Candidate periods are the server's own, and every period and deadline of the tasks that it may delay with their
/// whole parts down to an eighth, none shorter than `least_period` (default: an eighth of the shortest period).
///
/// # Errors
/// As [`crate::analyze`]; also for a server without a budget, or by POSIX's letter.
pub fn size_server(
    system: &System,
    id: ServerId,
    least_period: Option<Span>,
    options: &Options,
) -> Result<ServerSize, AnalysisError> {
    crate::beyond::refuse(system)?;
    let system = resolve_priorities(system)?;
    let server = system.server(id);
    let at = format!("server.{}", server.name);
    let Some(capacity) = server.kind.capacity() else {
        let reason = format!("a {} server has no budget", server.kind.word());
        return Err(AnalysisError::outside(
            at,
            reason,
            "size a polling, deferrable, sporadic, constant-bandwidth or total-bandwidth one",
        ));
    };
    let model = CpuModel::new(&system, server.cpu)?;
    let index = model.servers.iter().position(|s| s.id == id);
    let index = index.ok_or_else(|| AnalysisError::overflow(&at, "the server's number"))?;
    if service_of(&model.servers[index]).is_none() {
        let reason = NoAnswer::PosixServer.to_string();
        return Err(AnalysisError::outside(at, reason, "use rules = \"corrected\""));
    }
    let sizing = Sizing { system: &system, model: &model, index, options };
    let shortest = model.tasks.iter().filter_map(separation).min().unwrap_or(capacity.period.as_ns());
    let least = least_period.map_or((shortest / 8).max(1), |p| p.as_ns().max(1));
    let times = model.tasks.iter().flat_map(|task| separation(task).into_iter().chain(task.deadline));
    let mut periods = candidates(times, least);
    periods.push(capacity.period.as_ns());
    periods.sort_unstable();
    periods.dedup();
    let mut size = ServerSize {
        schema: "horolog.server-size/1",
        system: system.name().to_owned(),
        server: server.name.clone(),
        kind: server.kind.word(),
        budget: capacity.budget,
        period: capacity.period,
        schedulable: crate::analyze(&system, &Options::default())?.schedulable,
        largest_budget: None,
        soft_late: Vec::new(),
        none_is_safe: false,
        least_period: Span::from_ns(least),
        candidates: periods.len(),
        best_share: None,
        best_response: None,
        notes: Vec::new(),
    };
    match sizing.largest(capacity.period.as_ns())? {
        Ok(found) => {
            size.soft_late = soft_late(&system, id, found.budget, capacity.period.as_ns(), options)?;
            size.largest_budget = Some(found.against(capacity.budget));
        }
        Err(reason) => {
            size.none_is_safe = reason == NONE_SAFE;
            size.notes.push(reason);
        }
    }
    sizing.best(&periods, &mut size)?;
    Ok(size)
}

fn separation(task: &crate::cpu_model::CpuTask) -> Option<u64> {
    match task.arrival {
        ArrivalCurve::Periodic { separation, .. } => Some(separation),
        ArrivalCurve::Listed { .. } => None,
    }
}

struct Sizing<'a> {
    system: &'a System,
    model: &'a CpuModel,
    index: usize,
    options: &'a Options,
}

impl Sizing<'_> {
    fn largest(&self, period: u64) -> Result<Result<Largest, String>, AnalysisError> {
        largest_that_stands(self.system, self.model, self.index, period, self.options)
    }

    /// Looks at every candidate; among equals the longest period stays.
    fn best(&self, periods: &[u64], size: &mut ServerSize) -> Result<(), AnalysisError> {
        let server: &CpuServer = &self.model.servers[self.index];
        let work = server.queue.iter().map(|task| task.wcet).max().unwrap_or(1);
        let (mut share, mut unanswered) = (None, 0_usize);
        // A bound of all jobs is better than any of one job alone.
        let rank = |row: &PeriodSize| (row.task.is_none(), row.response);
        for &period in periods {
            let Ok(found) = self.largest(period)? else {
                unanswered += 1;
                continue;
            };
            let own = exact_share(&found, period);
            let row = PeriodSize {
                period: Span::from_ns(period),
                budget: Span::from_ns(found.budget),
                exact_ns: found.exact.map(|ratio| ratio.to_string()),
                share_ppb: u64::try_from(u128::from(found.budget) * 1_000_000_000 / u128::from(period))
                    .unwrap_or(u64::MAX),
                task: None,
                test: None,
                work: None,
                response: None,
            };
            if let Some(bounded) = self.bounded(&row, work)?
                && size.best_response.as_ref().is_none_or(|best| rank(&bounded) <= rank(best))
            {
                size.best_response = Some(bounded);
            }
            if share.as_ref().is_none_or(|best| own.cmp(best) != Ordering::Less) {
                (share, size.best_share) = (Some(own), Some(row));
            }
        }
        if unanswered > 0 {
            size.notes.push(format!(
                "{unanswered} of {} periods have no safe budget, or none was found",
                periods.len()
            ));
        }
        Ok(())
    }

    /// A size with the bound that holds with it; `None` where none does.
    fn bounded(&self, row: &PeriodSize, work: u64) -> Result<Option<PeriodSize>, AnalysisError> {
        let (budget, period) = (row.budget.as_ns(), row.period.as_ns());
        let Some((system, model)) = applied(self.system, self.model.servers[self.index].id, budget, period)
        else {
            return Ok(None);
        };
        let options = &self.options.for_each_server_of(model.servers.len());
        let verdicts = soft_verdicts(&model, self.index, system.policy(), &Known::default(), options)?;
        let wcet = |id: TaskId| {
            let of_task = model.servers[self.index].queue.iter().find(|task| task.id == id);
            of_task.map(|task| Span::from_ns(task.wcet))
        };
        let longest = verdicts.iter().max_by_key(|(id, verdict)| (verdict.response, wcet(*id)));
        let all = verdicts.iter().all(|(_, verdict)| verdict.response.is_some());
        if let Some((id, verdict)) = longest.filter(|_| all) {
            return Ok(Some(PeriodSize {
                task: Some(verdict.name.clone()),
                test: Some(verdict.test),
                work: wcet(*id),
                response: verdict.response,
                ..row.clone()
            }));
        }
        let response = self.one_job(&model, options);
        Ok(response.map(|response| PeriodSize {
            work: Some(Span::from_ns(work)),
            response: Some(response),
            ..row.clone()
        }))
    }

    /// The bound of one job of the longest wcet that finds the queue empty.
    fn one_job(&self, model: &CpuModel, options: &Options) -> Option<Span> {
        let server = &model.servers[self.index];
        let (service, ..) = service_of(server)?;
        let policy = self.system.policy();
        let high = HighPlace::new(model, self.index, policy, service, &Known::default(), options).ok()?;
        let effort = &mut { options.effort };
        let work = queued(server).into_iter().map(|task| task.wcet).max()?;
        let done = high.supply(effort).and_then(|supply| supply.finish(u128::from(work), effort)).ok()?;
        u64::try_from(done).ok().map(Span::from_ns)
    }
}

/// Budget over period, exactly where the budget is.
fn exact_share(found: &Largest, period: u64) -> Ratio<BigUint> {
    let budget = found.exact.unwrap_or_else(|| Ratio::from_integer(u128::from(found.budget)));
    Ratio::new(BigUint::from(*budget.numer()), BigUint::from(*budget.denom()) * BigUint::from(period))
}
