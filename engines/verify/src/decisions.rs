//! The decisions of servers, made again: the scheduling machine is told what the trace says that happened, and must decide
//! what the trace says that was done.
//!
//! This is the one place where verification uses the machine: as the statement of each server's rules, since a budget, a
//! promotion or slack is not to be seen in a single record. Bounds, windows and the order of hard jobs are judged without it.
//!
//! A simulated trace on a platform without costs is *exact*: what a job executed is the time for which it had the processor, less
//! interrupts, so every end of a budget, every promotion and every change of slack is known to the nanosecond, and any other
//! choice is a finding. In a measured trace consumption is known where a record tells it, at the end of a budget: there the ends
//! of budgets are taken from the records and the choices are checked, a difference counts as a disturbance (what was executed between
//! two records is an estimate), and policies that depend on every microsecond
//! executed (slack stealing, gain time, priority exchange, constant bandwidth) are left to the bounds. So are simulated traces
//! with costs.

use crate::report::Found;
use crate::result::{Check, Class};
use crate::verifier::Verifier;
use horolog_model::{Companion, Gain, ModelError, Preemption, ServerId, ServerKind, System, TaskId};
use horolog_sched::{ANY_SEGMENT, Event, EventKind, ExecutionTimer, Machine, ProcessorIndex, WallTimer};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Record};

/// A decision that the machine would not have made.
#[derive(Clone, Debug)]
struct Wrong {
    time: u64,
    task: Option<usize>,
    job: Option<u64>,
    server: String,
    what: String,
}

/// One server's records beside what the machine says.
#[derive(Clone, Debug)]
struct Counted {
    id: ServerId,
    is_slack: bool,
    /// With few places for replenishments a budget may come to nothing in the very choice, after the records of its instant:
    /// then records stand later than what they tell of.
    may_lag: bool,
    exhaustions: u64,
    replenishments: u64,
}

/// The machine of one processor, told what the trace holds.
#[derive(Clone, Debug)]
pub(crate) struct Decisions {
    machine: Machine,
    processor: ProcessorIndex,
    cpu: u32,
    is_exact: bool,
    servers: Vec<Counted>,
    /// The relative deadline of each task.
    deadlines: Vec<Option<u64>>,
    /// Who runs by the machine, and by the records.
    running: Option<TaskId>,
    actual: Option<TaskId>,
    execution: Option<ExecutionTimer>,
    consumed: u64,
    /// What was executed without an execution timer and is not told yet.
    ran: u64,
    wall: Option<WallTimer>,
    last: u64,
    depth: u32,
    group: Vec<Record>,
    /// Why nothing is compared any more.
    ended: Option<&'static str>,
    compared: u64,
}

impl Decisions {
    /// Of every processor with servers; `None` where there are none, or the machine cannot be told all that happened.
    pub(crate) fn all(
        system: &System,
        companion: &Companion,
        simulated: bool,
        foreign: bool,
    ) -> Result<Vec<Decisions>, ModelError> {
        let own = &companion.system;
        // When exactly the kernel told its threads of a simulated device's event is not on record.
        if own.servers().is_empty() || foreign || (simulated && system.first_driver().is_some()) {
            return Ok(Vec::new());
        }
        let (machine, lent) = Machine::of_companion(system, companion)?;
        if !lent.is_empty() {
            // Who lends a thread its priority is not on record.
            return Ok(Vec::new());
        }
        let platform = own.platform();
        let free = platform.context_switch_cost().is_zero()
            && platform.timer_interrupt_cost().is_zero()
            && own.interferences().is_empty();
        if simulated && !free {
            return Ok(Vec::new());
        }
        let is_exact = simulated;
        let mut all = Vec::new();
        for (index, cpu) in platform.cpus.iter().enumerate() {
            let here = || own.servers_on(cpu);
            let by_amounts = here().any(|(_, server)| match server.kind {
                ServerKind::SlackStealing { .. }
                | ServerKind::PriorityExchange { .. }
                | ServerKind::ConstantBandwidth { .. } => true,
                ServerKind::DualPriority { gain } => gain != Gain::None,
                _ => false,
            });
            if here().next().is_none() || (by_amounts && !is_exact) {
                continue;
            }
            let count = |(id, server): (ServerId, &horolog_model::Server)| Counted {
                id,
                is_slack: matches!(server.kind, ServerKind::SlackStealing { .. }),
                may_lag: matches!(
                    server.kind,
                    ServerKind::Sporadic { max_replenishments, .. } if max_replenishments < 8
                ),
                exhaustions: 0,
                replenishments: 0,
            };
            let mut machine = machine.clone();
            let processor = ProcessorIndex(index as u16);
            let wall = machine.wall_timer(processor);
            all.push(Decisions {
                machine,
                processor,
                cpu: cpu.0,
                is_exact,
                servers: here().map(count).collect(),
                deadlines: own.tasks().iter().map(|task| task.deadline.map(Span::as_ns)).collect(),
                running: None,
                actual: None,
                execution: None,
                consumed: 0,
                ran: 0,
                wall,
                last: 0,
                depth: 0,
                group: Vec::new(),
                ended: None,
                compared: 0,
            });
        }
        Ok(all)
    }

    /// Takes a record; the instant before is judged once a later one comes.
    fn take(&mut self, record: &Record, system: &System) -> Option<Wrong> {
        if self.ended.is_some() {
            return None;
        }
        let is_end = match record.kind {
            Kind::Lost => record.extra != 1 && record.extra != 2,
            Kind::Enforcement => record.extra != 0,
            Kind::ModeChange => true,
            _ => false,
        };
        if is_end {
            self.ended = Some("a loss, an overrun policy or a mode change made what followed unknown");
            return None;
        }
        if u32::from(record.cpu) != self.cpu || !concerns(record.kind) {
            return None;
        }
        let wrong = match self.group.first() {
            Some(first) if first.time < record.time => self.judge(system),
            _ => None,
        };
        self.group.push(*record);
        wrong
    }

    /// Judges the instant whose records are collected.
    fn judge(&mut self, system: &System) -> Option<Wrong> {
        let group = std::mem::take(&mut self.group);
        let now = group.first()?.time.as_ns();
        let wrong = self.until(now, system).or_else(|| self.instant(&group, now, system));
        self.group = group;
        self.group.clear();
        if wrong.is_some() {
            self.ended = Some("a wrong decision was found");
        }
        wrong
    }

    /// Judges what is left where recording ended at `end`: the choice of that very instant may be cut off.
    fn judge_last(&mut self, end: u64, system: &System) -> Option<Wrong> {
        let last = self.group.first()?.time.as_ns();
        if last < end { self.judge(system) } else { self.until(last, system) }
    }

    /// Lets time pass until `now`: ends of budgets and wall timers before it.
    fn until(&mut self, now: u64, system: &System) -> Option<Wrong> {
        loop {
            let budget = self.budget_end();
            let wall = self.wall.map_or(u64::MAX, |timer| timer.at.as_ns().max(self.last));
            let at = budget.min(wall);
            if at >= now {
                self.pass(now);
                return None;
            }
            self.pass(at);
            self.report(at, None);
            self.fire_due(at);
            if self.is_exact {
                self.decide(at);
                if let Some(wrong) = self.compare(at, system) {
                    return Some(wrong);
                }
            }
        }
    }

    /// When the budget of whoever runs ends, where that is known.
    fn budget_end(&self) -> u64 {
        let goes = self.is_exact && self.depth == 0 && self.running.is_some() && self.running == self.actual;
        let rest = self.execution.map(|timer| timer.after.as_ns().saturating_sub(self.consumed));
        match rest {
            Some(rest) if goes && rest > 0 => self.last.saturating_add(rest),
            _ => u64::MAX,
        }
    }

    fn pass(&mut self, to: u64) {
        let amount = to - self.last.min(to);
        if self.depth == 0 && self.actual.is_some() && self.actual == self.running {
            match self.execution {
                Some(_) => self.consumed += amount,
                None => self.ran += amount,
            }
        }
        self.last = self.last.max(to);
    }

    /// Tells what was executed since the timer was armed; where budgets end by their records alone, an end only with one.
    fn report(&mut self, now: u64, exhausted: Option<u64>) {
        let Some(ExecutionTimer { entity, generation, after }) = self.execution else {
            let amount = std::mem::take(&mut self.ran);
            if let Some(task) = self.running.filter(|_| amount > 0 && self.machine.is_watched(self.processor))
            {
                let kind = EventKind::Ran { task, amount: Span::from_ns(amount) };
                let _ = self.machine.on(Event::at(Instant::from_ns(now), kind));
            }
            return;
        };
        let after = after.as_ns();
        self.consumed = match exhausted {
            Some(consumed) => consumed.max(after),
            None if !self.is_exact => self.consumed.min(after.saturating_sub(1)),
            None => self.consumed,
        };
        if self.consumed == 0 {
            return;
        }
        let consumed = Span::from_ns(self.consumed);
        let kind = if self.consumed >= after {
            EventKind::Exhausted { entity, generation, consumed }
        } else {
            EventKind::Executed { entity, generation, consumed }
        };
        let _ = self.machine.on(Event::at(Instant::from_ns(now), kind));
    }

    /// Every wall timer that is due goes off, before anything is chosen; what came before at this instant may have changed
    /// which is next.
    fn fire_due(&mut self, now: u64) {
        self.wall = self.machine.wall_timer(self.processor);
        while let Some(timer) = self.wall.filter(|timer| timer.at.as_ns() <= now) {
            let kind = EventKind::Timer { entity: timer.entity, generation: timer.generation };
            let _ = self.machine.on(Event::at(Instant::from_ns(now), kind));
            let next = self.machine.wall_timer(self.processor);
            self.wall = next.filter(|next| next.entity != timer.entity || next.at > timer.at);
        }
    }

    fn decide(&mut self, now: u64) {
        let desired = self.machine.decide(self.processor);
        let goes_on = desired.running.is_some() && desired.running == self.running;
        let generation = |timer: Option<ExecutionTimer>| timer.map(|timer| timer.generation);
        let is_new = generation(desired.execution_timer) != generation(self.execution);
        if is_new && (desired.execution_timer.is_some() || !goes_on) {
            self.report(now, None);
            self.execution = desired.execution_timer;
            self.consumed = 0;
        }
        (self.running, self.wall) = (desired.running, desired.wall_timer);
    }

    /// The records of one instant, in the order of its phases.
    fn instant(&mut self, group: &[Record], now: u64, system: &System) -> Option<Wrong> {
        let exhausted = group.iter().find(|record| record.kind == Kind::BudgetExhausted);
        self.report(now, exhausted.filter(|_| !self.is_exact).and_then(|record| self.since_armed(record)));
        for record in group {
            let task = TaskId(record.task);
            let kind = match record.kind {
                Kind::Completion => EventKind::Completion { task },
                Kind::Suspend => EventKind::Block { task },
                Kind::PreemptionPoint | Kind::Yield => {
                    let next = match record.kind {
                        Kind::PreemptionPoint if self.is_exact => record.value as u32,
                        _ => ANY_SEGMENT,
                    };
                    EventKind::PreemptionPoint { task, willing: true, next }
                }
                _ => continue,
            };
            if record.kind == Kind::Yield && self.is_exact {
                continue;
            }
            let told = self.machine.on(Event::at(Instant::from_ns(now), kind));
            if told.is_err() && !matches!(record.kind, Kind::PreemptionPoint | Kind::Yield) {
                let name = self.names(Some(task), system);
                return self.found(
                    now,
                    Some(task),
                    None,
                    system,
                    format!("{name} ended although it does not run"),
                );
            }
        }
        self.fire_due(now);
        for record in group {
            let task = TaskId(record.task);
            let kind = match record.kind {
                Kind::Release => {
                    let deadline = self.deadlines.get(task.index()).copied().flatten();
                    let deadline = deadline.and_then(|relative| record.value.checked_add(relative));
                    EventKind::Release { task, deadline: deadline.map_or(Instant::NEVER, Instant::from_ns) }
                }
                Kind::Wake => EventKind::Wake { task },
                _ => continue,
            };
            let _ = self.machine.on(Event::at(Instant::from_ns(now), kind));
        }
        // What arrived may have asked for one that is due.
        self.fire_due(now);
        self.choose(group, now);
        for record in group {
            match record.kind {
                Kind::InterruptEntry | Kind::SoftirqEntry => self.depth += 1,
                Kind::InterruptExit | Kind::SoftirqExit => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.counted(group, now, system).or_else(|| self.twice_chosen(group, now, system)).or_else(|| {
            let concerned = self.is_exact || group.iter().any(|record| gives(record.kind));
            if concerned { self.compare(now, system) } else { None }
        })
    }

    /// Asks the machine where the system under trace asked it, and takes over what the records say of the processor.
    fn choose(&mut self, group: &[Record], now: u64) {
        let of_budget = |kind| matches!(kind, Kind::BudgetExhausted | Kind::BudgetReplenished);
        let asked = |record: &Record| gives(record.kind) || takes(record.kind) || of_budget(record.kind);
        if self.is_exact || group.iter().any(asked) {
            self.decide(now);
            while self.is_exact && self.wall.is_some_and(|timer| timer.at.as_ns() <= now) {
                self.fire_due(now);
                self.decide(now);
            }
        }
        for record in group {
            let task = TaskId(record.task);
            if gives(record.kind) {
                self.actual = Some(task);
            } else if takes(record.kind) && self.actual == Some(task) && record.kind != Kind::PreemptionPoint
            {
                self.actual = None;
            }
        }
    }

    /// What a server has used since its timer was armed, as the record of the end of its budget tells.
    fn since_armed(&self, record: &Record) -> Option<u64> {
        let counted = self.servers.iter().find(|counted| u64::from(counted.id.0) == record.value)?;
        let is_its = self.execution.is_some_and(|timer| timer.entity == self.machine.server(counted.id));
        let told = self.machine.tally(counted.id).consumed.as_ns();
        is_its.then(|| self.consumed.max(record.extra.saturating_sub(told)))
    }

    /// Compares how often each server's budget ended and came back.
    fn counted(&mut self, group: &[Record], now: u64, system: &System) -> Option<Wrong> {
        for record in group {
            let Ok(id) = u32::try_from(record.value) else { continue };
            let Some(counted) = self.servers.iter_mut().find(|counted| counted.id.0 == id) else { continue };
            match record.kind {
                Kind::BudgetExhausted => counted.exhaustions += 1,
                Kind::BudgetReplenished => counted.replenishments += 1,
                Kind::SlackChange if record.extra == 0 => counted.exhaustions += 1,
                Kind::SlackChange => counted.replenishments += 1,
                _ => {}
            }
        }
        for counted in &self.servers {
            let told = |kinds: [Kind; 2], slack: u64| {
                group.iter().any(|record| {
                    record.value == u64::from(counted.id.0)
                        && (record.kind == kinds[0] || (record.kind == kinds[1] && record.extra == slack))
                })
            };
            // A change without consequence may be noted later, with the next one at the latest.
            let noted = [
                told([Kind::BudgetExhausted, Kind::SlackChange], 0),
                told([Kind::BudgetReplenished, Kind::SlackChange], 1),
            ];
            let tally = self.machine.tally(counted.id);
            let (lost, back) = if counted.is_slack {
                ("its soft tasks lost their slack", "its soft tasks got slack")
            } else {
                ("its budget ended", "its budget came back")
            };
            let pairs = [
                (counted.exhaustions, tally.exhaustions, lost),
                (counted.replenishments, tally.replenishments, back),
            ];
            for (place, (seen, due, what)) in pairs.into_iter().enumerate() {
                let is_early = seen > due && self.is_exact;
                let is_late = seen < due && self.is_exact && noted[place] && !counted.may_lag;
                if is_early || is_late {
                    let how = if is_early {
                        "too early: by its rules not yet"
                    } else {
                        "by its rules, and no record says so"
                    };
                    let server = system.server(counted.id).name.clone();
                    let what = format!("server {server}: {what} {how}");
                    return Some(Wrong { time: now, task: None, job: None, server, what });
                }
            }
        }
        for record in group.iter().filter(|record| record.kind == Kind::Promotion) {
            if self.is_exact && self.machine.stands_low(TaskId(record.task)) {
                let name = self.names(Some(TaskId(record.task)), system);
                return self.found(
                    now,
                    Some(TaskId(record.task)),
                    None,
                    system,
                    format!("{name} was promoted too early"),
                );
            }
        }
        None
    }

    /// Whether a job got the processor and was preempted at one instant: all that is due comes before the one choice. Only
    /// a job that takes no time at all makes a second choice necessary.
    fn twice_chosen(&self, group: &[Record], now: u64, system: &System) -> Option<Wrong> {
        if !self.is_exact || group.iter().any(|record| record.kind == Kind::Completion && record.value == 0) {
            return None;
        }
        let lost = group.iter().enumerate().find(|(place, record)| {
            let got = |other: &Record| gives(other.kind) && other.task == record.task;
            record.kind == Kind::Preempt && group[..*place].iter().any(got)
        });
        let task = TaskId(lost?.1.task);
        let what = format!("{} got the processor and lost it at once", self.names(Some(task), system));
        self.found(now, Some(task), self.server_of(Some(task), system), system, what)
    }

    /// Whether who has the processor is whom the machine chose.
    fn compare(&mut self, now: u64, system: &System) -> Option<Wrong> {
        self.compared += 1;
        if self.running == self.actual {
            return None;
        }
        let (actual, desired) = (self.actual, self.running);
        let (runs, should) = (self.names(actual, system), self.names(desired, system));
        let why = match (self.server_of(actual, system), self.server_of(desired, system)) {
            (Some(server), None) => match system.server(server).kind {
                ServerKind::DualPriority { .. } => "a hard job is promoted by now",
                ServerKind::SlackStealing { .. } => "the hard tasks leave no slack",
                ServerKind::Background => "it stands below every hard task",
                _ => "its server has no budget for that place",
            },
            (None, Some(server)) => match system.server(server).kind {
                ServerKind::DualPriority { .. } => "no hard job is promoted yet",
                ServerKind::SlackStealing { .. } => "the hard tasks leave slack",
                _ => "its server has budget",
            },
            _ => "that is what the servers' rules say",
        };
        let server = self.server_of(actual, system).or_else(|| self.server_of(desired, system));
        let what = format!("{runs} has the processor and {should} should: {why}");
        self.found(now, desired.or(actual), server, system, what)
    }

    fn found(
        &self,
        time: u64,
        task: Option<TaskId>,
        server: Option<ServerId>,
        system: &System,
        what: String,
    ) -> Option<Wrong> {
        let server = server.or_else(|| self.servers.first().map(|counted| counted.id))?;
        let server = system.server(server).name.clone();
        Some(Wrong { time, task: task.map(TaskId::index), job: None, server, what })
    }

    fn server_of(&self, task: Option<TaskId>, system: &System) -> Option<ServerId> {
        task.and_then(|task| system.server_of(task))
    }

    fn names(&self, task: Option<TaskId>, system: &System) -> String {
        let task = task.and_then(|task| system.tasks().get(task.index()));
        task.map_or_else(|| "nobody".to_owned(), |task| task.name.clone())
    }
}

/// Records that say something about who has a processor, or about a budget.
fn concerns(kind: Kind) -> bool {
    gives(kind)
        || takes(kind)
        || matches!(
            kind,
            Kind::Release
                | Kind::Wake
                | Kind::BudgetExhausted
                | Kind::BudgetReplenished
                | Kind::SlackChange
                | Kind::Promotion
                | Kind::InterruptEntry
                | Kind::InterruptExit
                | Kind::SoftirqEntry
                | Kind::SoftirqExit
        )
}

/// A job gets the processor.
fn gives(kind: Kind) -> bool {
    matches!(kind, Kind::Start | Kind::Resume)
}

/// A job loses the processor, or may.
fn takes(kind: Kind) -> bool {
    matches!(kind, Kind::Preempt | Kind::Yield | Kind::Completion | Kind::Suspend | Kind::PreemptionPoint)
}

/// Whether the machine is told of every point at which jobs of this system may lose the processor.
pub(crate) fn tells_all(system: &System, simulated: bool) -> bool {
    simulated || system.tasks().iter().all(|task| task.preemption == Preemption::Preemptive)
}

impl Verifier {
    /// Hands a record to the machines of processors with servers.
    pub(crate) fn replay_decisions(&mut self, record: &Record) {
        let mut all = std::mem::take(&mut self.decisions);
        for decisions in &mut all {
            if let Some(wrong) = decisions.take(record, &self.companion) {
                self.wrong_decision(decisions.cpu, wrong);
            }
        }
        self.decisions = all;
    }

    /// Judges the last instant, and counts what was compared.
    pub(crate) fn finish_decisions(&mut self, notes: &mut Vec<String>) {
        let mut all = std::mem::take(&mut self.decisions);
        for decisions in &mut all {
            if decisions.ended.is_none()
                && let Some(wrong) = decisions.judge_last(self.now, &self.companion)
            {
                self.wrong_decision(decisions.cpu, wrong);
            }
            for _ in 0..decisions.compared {
                self.report.apply(Check::ServerDecision);
            }
            if let Some(why) = decisions.ended {
                notes.push(format!(
                    "cpu {}: the servers' decisions were made again up to where {why}",
                    decisions.cpu
                ));
            }
        }
    }

    fn wrong_decision(&mut self, cpu: u32, wrong: Wrong) {
        let Wrong { time, task, job, server, what } = wrong;
        self.report.add(Found {
            class: if self.model.simulated { Class::ModelViolated } else { Class::MachineDisturbed },
            check: Check::ServerDecision,
            time,
            cpu,
            task: task.and_then(|task| Some(self.model.tasks.get(task)?.name.clone())),
            job,
            observed: None,
            allowed: None,
            evidence: Vec::new(),
            subject: server,
            message: what,
        });
        let place = self.model.cpus.iter().position(|number| *number == cpu);
        if let Some(place) = place.filter(|_| self.model.simulated) {
            self.breach(place, time, u64::MAX, true, "a wrong decision of a server");
        }
    }
}
