//! Where the bound of a soft job goes, in terms that add up to it exactly.

use super::place::{Place, place_of};
use super::queue::{self, QueuedTask, WorstJob};
use super::supply::Service;
use super::verdict::{HighPlace, Known, low_place, queued, service_of};
use super::{CpuServer, NoAnswer};
use crate::cpu_model::CpuModel;
use crate::explanation::{Explanation, Term, TermKind};
use crate::hyperbolic_load::HyperbolicLoad;
use crate::options::Options;
use horolog_model::{System, TaskId};
use horolog_time::Span;

/// The lower of the bounds of a served task, term by term: that of [`crate::analyze`].
pub(crate) fn explain(system: &System, cpu: &CpuModel, id: TaskId, options: &Options) -> Option<Explanation> {
    let served = |server: &CpuServer| server.queue.iter().position(|task| task.id == id);
    let (index, place) = cpu.servers.iter().enumerate().find_map(|(i, s)| Some((i, served(s)?)))?;
    let (server, tasks) = (&cpu.servers[index], queued(&cpu.servers[index]));
    let query = Query { system, cpu, server, tasks: &tasks, place };
    let mut found: Vec<(&'static str, Result<Explained, NoAnswer>)> = Vec::new();
    if let Some((service, test, _)) = service_of(server) {
        let high = HighPlace::new(cpu, index, system.policy(), service, &Known::default(), options);
        found.push((test, high.and_then(|high| query.with_capacity(&high, options))));
    }
    if let Some(low) = low_place(server) {
        let low = place_of(cpu, index, low);
        found.push(("background", low.and_then(|low| query.without_capacity(&low, options))));
    }
    if found.is_empty() {
        found.push(("server-sporadic-posix", Err(NoAnswer::PosixServer)));
    }
    // The first of the least, as among the verdict's tests.
    found.sort_by_key(|(_, found)| found.as_ref().map_or(u64::MAX, |found| found.worst.response));
    let (test, best) = found.into_iter().next()?;
    let mut explanation = Explanation::unresolved(&server.queue[place].name, test);
    match best {
        Err(reason) => explanation.reason = Some(reason.to_string()),
        Ok(found) => {
            explanation.response = Some(Span::from_ns(found.worst.response));
            explanation.worst_job = u64::try_from(found.worst.own_jobs.saturating_sub(1)).ok()?;
            explanation.terms = found.terms;
        }
    }
    Some(explanation)
}

struct Explained {
    worst: WorstJob,
    terms: Vec<Term>,
}

/// Which bound is explained.
struct Query<'a> {
    system: &'a System,
    cpu: &'a CpuModel,
    server: &'a CpuServer,
    tasks: &'a [QueuedTask],
    place: usize,
}

impl Query<'_> {
    /// The bound by the server's capacity: wait, full periods, the last piece and what delays it.
    fn with_capacity(&self, high: &HighPlace, options: &Options) -> Result<Explained, NoAnswer> {
        let worst = high.worst_job(self.tasks, self.place, options)?;
        let (budget, period) = (u128::from(high.budget), u128::from(high.period));
        let work = worst.work + u128::from(high.service.overdrawn());
        let pieces = work.div_ceil(budget);
        let mut terms = Terms::default();
        if high.service.has_deadlines() {
            let (count, time) = match high.service {
                Service::TotalBandwidth => (None, worst.work),
                _ => (Some(pieces), pieces * period),
            };
            terms.add(TermKind::ServerPeriods, Some(&self.server.name), count, time)?;
            terms.add(
                TermKind::Blocking,
                Some("work above or not preemptive"),
                None,
                u128::from(high.lateness),
            )?;
        } else {
            let wait = high.service.longest_wait(high.budget, high.period);
            terms.add(TermKind::ServerWait, Some(&self.server.name), None, u128::from(wait))?;
            let full = pieces - 1;
            terms.add(TermKind::ServerPeriods, Some(&self.server.name), Some(full), full * period)?;
            let piece = work - full * budget;
            terms.add(TermKind::LastPiece, None, None, piece)?;
            let done = high.place.above.finish(piece, &mut { options.effort })?;
            self.delays(&mut terms, &high.place, done)?;
        }
        self.ends(&mut terms, &worst)?;
        Ok(Explained { worst, terms: terms.list })
    }

    /// The bound without capacity: all work ahead and all that is above.
    fn without_capacity(&self, low: &Place, options: &Options) -> Result<Explained, NoAnswer> {
        let worst = queue::worst_job(self.tasks, self.place, &low.above, &mut { options.effort })?;
        let mut terms = Terms::default();
        let (own, mut jobs) = (&self.server.queue[self.place], worst.own_jobs);
        terms.add(TermKind::OwnWork, None, Some(1), u128::from(own.bare_wcet))?;
        let earlier = worst.own_jobs - 1;
        let time = earlier * u128::from(own.bare_wcet);
        terms.add(TermKind::EarlierJobs, Some(&own.name), Some(earlier), time)?;
        for other in self.server.queue.iter().filter(|task| task.id != own.id) {
            let count = other.arrival.closed(worst.ready);
            jobs += count;
            let time = count * u128::from(other.bare_wcet);
            terms.add(TermKind::QueuedAhead, Some(&other.name), Some(count), time)?;
        }
        terms.switching += jobs * u128::from(own.wcet - own.bare_wcet);
        self.delays(&mut terms, low, worst.done)?;
        self.ends(&mut terms, &worst)?;
        Ok(Explained { worst, terms: terms.list })
    }

    /// What is above within a window, blocking and switching included.
    fn delays(&self, terms: &mut Terms, place: &Place, window: u128) -> Result<(), NoAnswer> {
        let (mut interrupts, mut count) = (0, 0);
        terms.switching += u128::from(self.cpu.context_switch);
        for (load, who) in place.above.loads.iter().zip(&place.who) {
            let jobs = load.arrival.half_open(window);
            match who.kind {
                TermKind::TimerInterrupts => {
                    (count, interrupts) = (count + jobs, interrupts + jobs * u128::from(load.wcet));
                }
                TermKind::ContextSwitches => terms.switching += jobs * u128::from(load.wcet),
                kind => {
                    terms.switching += jobs * u128::from(who.switching);
                    let time = jobs * u128::from(load.wcet - who.switching);
                    terms.add(kind, who.name.as_deref(), Some(jobs), time)?;
                }
            }
        }
        let blocking = place.above.blocking - self.cpu.context_switch;
        terms.add(TermKind::Blocking, place.blocker.as_deref(), None, u128::from(blocking))?;
        let switching = terms.switching;
        terms.add(TermKind::ContextSwitches, None, None, switching)?;
        terms.add(TermKind::TimerInterrupts, None, Some(count), interrupts)?;
        let outside = HyperbolicLoad::demand(&place.above.measured, window).ok_or(NoAnswer::TooLarge)?;
        let names = self.cpu.names_of_interferences(self.system);
        terms.add(TermKind::Outside, Some(&names), None, outside)
    }

    /// Jitter, release delay, and what was over when the job came.
    fn ends(&self, terms: &mut Terms, worst: &WorstJob) -> Result<(), NoAnswer> {
        let own = &self.server.queue[self.place];
        let jitter = self.system.task(own.id).jitter.as_ns();
        terms.add(TermKind::Jitter, None, None, u128::from(jitter))?;
        terms.add(TermKind::ReleaseDelay, None, None, u128::from(own.arrival.jitter() - jitter))?;
        terms.add(TermKind::BeforeReady, None, None, worst.ready)
    }
}

#[derive(Default)]
struct Terms {
    switching: u128,
    list: Vec<Term>,
}

impl Terms {
    fn add(
        &mut self,
        kind: TermKind,
        who: Option<&str>,
        count: Option<u128>,
        ns: u128,
    ) -> Result<(), NoAnswer> {
        let narrow = |value: u128| u64::try_from(value).map_err(|_| NoAnswer::TooLarge);
        if ns > 0 {
            let (count, time) = (count.map(narrow).transpose()?, Span::from_ns(narrow(ns)?));
            self.list.push(Term { kind, who: who.map(str::to_owned), resource: None, count, time });
        }
        Ok(())
    }
}
