//! The answers for the tasks and nodes of one tree.

use super::deadlines::Deadlines;
use super::supply::{Load, TreeSupply};
use super::{Node, Reason, Tree};
use crate::beyond;
use crate::error::AnalysisError;
use crate::explanation::{Explanation, Term, TermKind};
use crate::options::Options;
use crate::result::{ServerVerdict, TaskVerdict, TestResult, Verdict};
use crate::server::{self, Above, NoAnswer, Service, queue};
use horolog_model::{CpuId, Order, Server, ServerId, ServerKind, System, TaskId};
use horolog_time::Span;

/// The answers about one processor with a tree.
pub(crate) struct Verdicts {
    pub(crate) tasks: Vec<(TaskId, TaskVerdict)>,
    pub(crate) servers: Vec<(ServerId, ServerVerdict)>,
    /// Why nothing is known of the whole tree.
    pub(crate) note: Option<String>,
    /// Budgets with a deadline that are not proved to be served by it.
    pub(crate) late: Vec<String>,
    /// The shares c/t of the processor that jobs and interrupts ask for.
    pub(crate) shares: Vec<(u64, u64)>,
    pub(crate) has_costs: bool,
}

/// The answers for every task and scheduler of a processor with a tree.
///
/// # Errors
/// Where times leave the numbers.
pub(crate) fn verdicts(system: &System, cpu: CpuId, options: &Options) -> Result<Verdicts, AnalysisError> {
    let mut tree = Tree::new(system, cpu, options)?;
    if let Some(why) = tree.obstacle() {
        let tasks = system.tasks_on(cpu).map(|(id, _)| (id, beyond::unknown_task(system, id))).collect();
        let note = format!("no test knows of the tree of schedulers on CPU {}: {why}", cpu.0);
        let (late, shares) = (Vec::new(), Vec::new());
        return Ok(Verdicts { tasks, servers: Vec::new(), note: Some(note), late, shares, has_costs: false });
    }
    tree.settle();
    let tasks = system.tasks_on(cpu).map(|(id, _)| (id, tree.task(id))).collect();
    let servers: Vec<(ServerId, ServerVerdict)> =
        system.servers_on(cpu).map(|(id, server)| (id, tree.node(id, server))).collect();
    let late = servers.iter().filter_map(|(id, verdict)| not_in_time(system.server(*id), verdict)).collect();
    let jobs = system.tasks_on(cpu).map(|(id, _)| Load::Jobs(tree.jobs(id)));
    let shares = jobs.chain(tree.interrupts()).filter_map(|load| load.share()).collect();
    Ok(Verdicts { tasks, servers, note: None, late, shares, has_costs: tree.has_costs() })
}

/// Why a budget with a deadline is not proved to be served by it.
fn not_in_time(server: &Server, verdict: &ServerVerdict) -> Option<String> {
    let deadline = server.deadline.filter(|_| verdict.guaranteed != Some(true))?;
    let name = &server.name;
    Some(match verdict.completion {
        Some(done) => format!(
            "`{name}` has its whole budget within {done} for certain, and its deadline is {deadline}: lower its budget or \
             what is above it, or raise its deadline"
        ),
        None => format!("`{name}` is not certain to have its whole budget in each period"),
    })
}

/// The bound of one task: its own work, and the rest in one term.
///
/// # Errors
/// Where times leave the numbers.
pub(crate) fn explain(system: &System, id: TaskId, options: &Options) -> Result<Explanation, AnalysisError> {
    let found = verdicts(system, system.task(id).cpu, options)?;
    let verdict = found.tasks.into_iter().find(|(other, _)| *other == id).map(|(_, verdict)| verdict);
    let verdict = verdict.unwrap_or_else(|| beyond::unknown_task(system, id));
    let mut explanation = Explanation::unresolved(&verdict.name, verdict.test);
    let Some(response) = verdict.response else {
        let note = verdict.tests.into_iter().next().and_then(|test| test.note);
        return Ok(Explanation { reason: found.note.or(note), ..explanation });
    };
    explanation.response = Some(response);
    let own = system.task(id).wcet.min(response);
    let late = system.task(id).jitter.min(response.saturating_sub(own));
    let rest = response.saturating_sub(own).saturating_sub(late);
    let parts = [(TermKind::OwnWork, own), (TermKind::Supply, rest), (TermKind::Jitter, late)];
    let parts = parts.into_iter().filter(|(_, time)| !time.is_zero());
    explanation.terms = parts
        .map(|(kind, time)| {
            let count = (kind == TermKind::OwnWork).then_some(1);
            Term { kind, who: None, resource: None, count, time }
        })
        .collect();
    Ok(explanation)
}

/// One test's bound, or why it gives none.
struct Found {
    test: &'static str,
    source: &'static str,
    bound: Result<u64, Reason>,
}

impl Tree<'_> {
    fn task(&self, id: TaskId) -> TaskVerdict {
        let (task, above) = (self.system.task(id), self.system.scheduler_of(id));
        let found = match self.order(above) {
            Order::FixedPriority => vec![self.by_priority(id, above)],
            Order::Edf => self.by_deadline(id, above),
            Order::Fifo => self.first_come(id, above),
            Order::Table => vec![self.in_window(id, above)],
        };
        let tests = found.into_iter().map(|found| judge(found, task.deadline)).collect();
        let verdict = TaskVerdict::best_of(task.name.clone(), self.cpu, task.deadline, Span::ZERO, tests);
        let served_by = self.system.server_of(id).map(|id| self.system.server(id).name.clone());
        let verdict = verdict.unwrap_or_else(|| beyond::unknown_task(self.system, id));
        TaskVerdict { served_by, ..verdict }
    }

    fn by_priority(&self, id: TaskId, above: Node) -> Found {
        let loads = self.above(above, self.system.task(id).priority, (Some(id), None));
        let supply = self.supply(above).map(|supply| supply.below(loads));
        Found { test: "tree-fixed-priority", source: "davis05", bound: self.within(id, supply) }
    }

    fn in_window(&self, id: TaskId, above: Node) -> Found {
        let supply = self.window(above, &self.system.task(id).name);
        Found { test: "tree-window", source: "feng02", bound: self.within(id, supply) }
    }

    /// The bound of a task that is served alone.
    fn within(&self, id: TaskId, supply: Result<TreeSupply, Reason>) -> Result<u64, Reason> {
        let load = self.jobs(id);
        let own = [queue::QueuedTask { arrival: load.arrival, wcet: load.wcet }];
        let bound = queue::response(&own, 0, &supply?, &mut self.effort());
        bound.map_err(|reason| reason.to_string())
    }

    fn by_deadline(&self, id: TaskId, above: Node) -> Vec<Found> {
        let node = self.compares(above);
        let busy = Found { test: "tree-busy-period", source: "shin03", bound: self.longest(id, node) };
        let Some(deadline) = self.system.task(id).deadline else { return vec![busy] };
        let met = match self.deadlines.get(&node) {
            Some(Ok(Deadlines { all_meet, .. })) => all_meet.clone(),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err("the scheduler above is not known".to_owned()),
        };
        let bound = met.map(|()| deadline.as_ns());
        vec![Found { test: "tree-edf", source: "shin03", bound }, busy]
    }

    /// All that a job below `node` can wait for is done by the end of the time for which there is something to run.
    fn longest(&self, id: TaskId, node: Node) -> Result<u64, Reason> {
        let deadlines = match self.deadlines.get(&node) {
            Some(Ok(deadlines)) => deadlines,
            Some(Err(reason)) => return Err(reason.clone()),
            None => return Err("the scheduler above is not known".to_owned()),
        };
        let longest = deadlines.longest.map_err(|reason| reason.to_string())?;
        let late = u128::from(self.arrivals[&id].jitter());
        u64::try_from(longest + late).map_err(|_| NoAnswer::TooLarge.to_string())
    }

    fn first_come(&self, id: TaskId, above: Node) -> Vec<Found> {
        let below = self.tasks_below(above);
        let load = |&id: &TaskId| {
            let load = self.jobs(id);
            queue::QueuedTask { arrival: load.arrival, wcet: load.wcet }
        };
        let tasks: Vec<queue::QueuedTask> = below.iter().map(load).collect();
        let place = below.iter().position(|&other| other == id).unwrap_or_default();
        let words = |reason: NoAnswer| reason.to_string();
        let bound = self
            .supply(above)
            .and_then(|supply| queue::response(&tasks, place, &supply, &mut self.effort()).map_err(words));
        let mut found = vec![Found { test: "tree-fifo", source: "davis05", bound }];
        let kind = above.map(|id| (id, self.system.server(id).kind));
        if let Some((node, ServerKind::ConstantBandwidth { capacity, .. })) = kind {
            let met = match self.deadlines.get(&self.compares(self.parent(node))) {
                Some(Ok(deadlines)) => deadlines.shares_meet.clone(),
                _ => Err(NoAnswer::NotSchedulable.to_string()),
            };
            let (budget, period, none) = (capacity.budget.as_ns(), capacity.period.as_ns(), Above::default());
            let effort = &mut self.effort();
            let bound = met.and_then(|()| {
                server::Supply::new(Service::ConstantBandwidth, budget, period, &none, effort)
                    .and_then(|supply| queue::response(&tasks, place, &supply, effort))
                    .map_err(words)
            });
            found.push(Found { test: "tree-constant-bandwidth", source: "abeni98", bound });
        }
        found
    }

    fn node(&self, id: ServerId, server: &Server) -> ServerVerdict {
        let capacity = server.kind.capacity();
        let given = self.given.get(&Some(id));
        let completion = match given {
            Some(Ok(given)) => given.completion.map(Span::from_ns),
            _ => None,
        };
        let by_deadlines = self.deadlines.get(&self.compares(self.parent(id)));
        let guaranteed = match (server.kind, by_deadlines) {
            (
                ServerKind::ConstantBandwidth { .. } | ServerKind::TotalBandwidth { .. },
                Some(Ok(deadlines)),
            ) => Some(deadlines.shares_meet.is_ok()),
            _ => capacity.map(|it| {
                completion.is_some_and(|completion| completion <= server.deadline.unwrap_or(it.period))
            }),
        };
        let late = match (completion, server.deadline) {
            (Some(completion), Some(deadline)) if completion > deadline => {
                Some(format!("that is after its deadline of {deadline}"))
            }
            _ => None,
        };
        ServerVerdict {
            name: server.name.clone(),
            cpu: self.cpu,
            kind: server.kind_word(),
            budget: capacity.map(|it| it.budget),
            period: capacity.map(|it| it.period),
            guaranteed,
            completion,
            largest_budget: None,
            promotions: Vec::new(),
            note: match given {
                Some(Err(reason)) => Some(reason.clone()),
                _ => late,
            },
        }
    }
}

/// A bound above the deadline proves nothing: the tests are sufficient.
fn judge(found: Found, deadline: Option<Span>) -> TestResult {
    let Found { test, source, bound } = found;
    let response = bound.as_ref().ok().copied().map(Span::from_ns);
    let meets = response.is_some_and(|response| deadline.is_none_or(|deadline| response <= deadline));
    let note = match bound {
        Err(reason) => Some(reason),
        Ok(_) if !meets => Some("the bound is above the deadline".to_owned()),
        Ok(_) => None,
    };
    let verdict = if meets { Verdict::Meets } else { Verdict::Unknown };
    TestResult { test, verdict, response, exact: false, source, note }
}
