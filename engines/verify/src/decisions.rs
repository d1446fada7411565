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
//!
//! A measured tree is decided by the records of its budgets alone ([`crate::on_record`]).

use crate::on_record::{self, Put};
use crate::report::Found;
use crate::result::{Check, Class};
use crate::verifier::Verifier;
use horolog_model::{Companion, Gain, ModelError, Preemption, ServerId, ServerKind, System, Task, TaskId};
use horolog_sched::{ANY_SEGMENT, Choice, Driver, Machine, Note, ProcessorIndex, Tell, World};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Record};
use std::convert::Infallible;

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
    driver: Driver,
    cpu: u32,
    recorded: Recorded,
    servers: Vec<Counted>,
    /// In a measured tree, the budgets that the records tell of.
    puts: Option<Vec<Put>>,
    /// The records of the instant that is collected.
    group: Vec<Record>,
    /// Why nothing is compared any more.
    ended: Option<&'static str>,
    compared: u64,
}

/// What the records say of the processor.
#[derive(Clone, Debug)]
struct Recorded {
    is_exact: bool,
    /// The relative deadline of each task.
    deadlines: Vec<Option<u64>>,
    /// Whose job has it.
    actual: Option<TaskId>,
    /// How many interrupts and softirqs are under way.
    depth: u32,
    /// Up to when execution is accounted for.
    last: u64,
}

/// A recorded trace as a world of the driver: at the instant of its records they are told, in between nothing but budgets and
/// timers.
struct Told<'a> {
    recorded: &'a mut Recorded,
    /// The records of the instant; empty in between.
    group: &'a [Record],
    /// Whom the machine chose before this instant.
    wanted: Option<TaskId>,
    /// What a budget that ends at this instant by its record is known to have been used since it was told last.
    used: Option<u64>,
    /// Whether the system under trace asked who runs.
    asked: bool,
    /// A job that ended although it does not run.
    wrong: Option<TaskId>,
    /// In a measured tree, the budgets that the records tell of.
    puts: &'a [Put],
}

/// The only processor of a driver.
const HERE: usize = 0;

impl World for Told<'_> {
    type Error = Infallible;

    fn next(&self) -> u64 {
        u64::MAX
    }

    fn ready_at(&self) -> u64 {
        if self.asked { 0 } else { u64::MAX }
    }

    fn ends(&self, _: u64) -> bool {
        true
    }

    /// Where budgets end by their records alone, an end only with one.
    fn executed(&mut self, now: u64, allowance: u64) -> u64 {
        let recorded = &mut *self.recorded;
        let passed = now.saturating_sub(recorded.last);
        recorded.last = recorded.last.max(now);
        let goes = recorded.depth == 0 && recorded.actual.is_some() && recorded.actual == self.wanted;
        let amount = if goes { passed } else { 0 };
        match self.used.take() {
            Some(used) => used.max(allowance),
            None if !recorded.is_exact && allowance != u64::MAX => amount.min(allowance.saturating_sub(1)),
            None => amount,
        }
    }

    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        for record in self.group {
            let task = TaskId(record.task);
            match record.kind {
                Kind::Completion | Kind::Suspend if tell.running() != Some(task) => {
                    self.wrong = self.wrong.or(Some(task));
                }
                Kind::Completion => _ = tell.completion(task),
                Kind::Suspend => _ = tell.block(task),
                Kind::PreemptionPoint if self.recorded.is_exact => {
                    _ = tell.preemption_point(task, record.value as u32);
                }
                Kind::PreemptionPoint | Kind::Yield if !self.recorded.is_exact => {
                    _ = tell.preemption_point(task, ANY_SEGMENT);
                }
                _ => {}
            }
        }
        on_record::tell(self.puts, self.group, tell);
        Ok(())
    }

    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        for record in self.group {
            let task = TaskId(record.task);
            match record.kind {
                Kind::Release => {
                    let deadline = self.recorded.deadlines.get(task.index()).copied().flatten();
                    let deadline = deadline.and_then(|relative| record.value.checked_add(relative));
                    // What was executed until now was told with the instant.
                    let _ = tell.release(task, deadline.map_or(Instant::NEVER, Instant::from_ns), |_| 0);
                }
                Kind::Wake => _ = tell.wake(task),
                _ => {}
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, now: u64, choice: Choice<'_>) {
        self.recorded.last = self.recorded.last.max(now);
        self.wanted = choice.task;
    }

    fn note(&mut self, _: u64, _: Note) {}

    fn goes_on(&mut self, _: u64) -> bool {
        true
    }
}

impl<'a> Told<'a> {
    /// No record tells of anything; where what was executed is known to the nanosecond, every choice is made.
    fn between(recorded: &'a mut Recorded, wanted: Option<TaskId>) -> Told<'a> {
        let asked = recorded.is_exact;
        Told { recorded, group: &[], wanted, used: None, asked, wrong: None, puts: &[] }
    }
}

impl Decisions {
    /// Of every processor with servers, unless the machine cannot be told all that happened there. Trees of which that is so are
    /// named in `unjudged`, since nothing else orders their jobs.
    pub(crate) fn all(
        system: &System,
        companion: &Companion,
        simulated: bool,
        foreign: bool,
        unjudged: &mut Vec<String>,
    ) -> Result<Vec<Decisions>, ModelError> {
        let own = &companion.system;
        let platform = own.platform();
        let mut none = |why: &str| {
            let trees = platform.cpus.iter().filter(|&cpu| own.has_tree(cpu));
            unjudged.extend(trees.map(|cpu| not_decided(cpu.0, why)));
            Ok(Vec::new())
        };
        if own.servers().is_empty() {
            return Ok(Vec::new());
        }
        if foreign {
            return none("horolog did not run it, so the ends of budgets are not on record");
        }
        if simulated && system.first_driver().is_some() {
            return none("when a simulated device's thread was told of an event is not on record");
        }
        if !tells_all(own, simulated) {
            return none("when a deferred job was asked to give way is not on record");
        }
        let (machine, lent) = Machine::of_companion(system, companion)?;
        if !lent.is_empty() {
            return none("who lends a device's thread its priority is not on record");
        }
        let free = platform.context_switch_cost().is_zero()
            && platform.timer_interrupt_cost().is_zero()
            && own.interferences().is_empty();
        if simulated && !free {
            return none("with costs of the platform what a job executed is not known to the nanosecond");
        }
        let is_exact = simulated;
        let mut all = Vec::new();
        let by_records = if is_exact { None } else { Some(on_record::machine(own)?) };
        for (index, cpu) in platform.cpus.iter().enumerate() {
            let is_tree = own.has_tree(cpu);
            let untold = own.servers_on(cpu).find(|(_, server)| !on_record::is_told(server));
            if let Some((_, server)) = untold.filter(|_| is_tree && !is_exact) {
                let why = format!("where server {} stood without budget is not on record", server.name);
                unjudged.push(not_decided(cpu.0, &why));
                continue;
            }
            let by_records = by_records.as_ref().filter(|_| is_tree);
            let machine = by_records.map_or(&machine, |(machine, _)| machine);
            let here = || own.servers_on(cpu);
            let by_amounts = here().any(|(_, server)| match server.kind {
                ServerKind::SlackStealing { .. }
                | ServerKind::PriorityExchange { .. }
                | ServerKind::ConstantBandwidth { .. } => true,
                // Its deadlines count from the instants of releases, to the nanosecond.
                ServerKind::TotalBandwidth { .. } => true,
                ServerKind::DualPriority { gain } => gain != Gain::None,
                ServerKind::Background
                | ServerKind::Plain { .. }
                | ServerKind::Polling { .. }
                | ServerKind::Deferrable { .. }
                | ServerKind::Sporadic { .. } => false,
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
            let mut decisions = Decisions {
                driver: Driver::new(machine.clone(), own, std::iter::once(ProcessorIndex(index as u16))),
                cpu: cpu.0,
                recorded: Recorded {
                    is_exact,
                    deadlines: own.tasks().iter().map(|task| task.deadline.map(Span::as_ns)).collect(),
                    actual: None,
                    depth: 0,
                    last: 0,
                },
                servers: here().map(count).collect(),
                puts: by_records.map(|(_, puts)| puts.clone()),
                group: Vec::new(),
                ended: None,
                compared: 0,
            };
            let Self { driver, recorded, .. } = &mut decisions;
            driver.settle(&mut Told::between(recorded, None), HERE, 0);
            all.push(decisions);
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
            let Self { driver, recorded, .. } = &mut *self;
            let is_exact = recorded.is_exact;
            let mut told = Told::between(recorded, driver.running(HERE));
            let Ok(reached) = driver.run_once(&mut told, HERE, now);
            let at = reached?;
            if is_exact && let Some(wrong) = self.compare(at, system) {
                return Some(wrong);
            }
        }
    }

    /// The records of one instant, in the order of its phases.
    fn instant(&mut self, group: &[Record], now: u64, system: &System) -> Option<Wrong> {
        let exhausted = group.iter().find(|record| record.kind == Kind::BudgetExhausted);
        let is_tree = self.puts.is_some();
        let by_amount = !self.recorded.is_exact && !is_tree;
        let used = exhausted.filter(|_| by_amount).and_then(|record| self.used(record, system));
        let asked = |record: &Record| {
            let of_budget = matches!(record.kind, Kind::BudgetExhausted | Kind::BudgetReplenished);
            gives(record.kind) || takes(record.kind) || (of_budget && !is_tree)
        };
        let Self { driver, recorded, puts, .. } = &mut *self;
        let puts = puts.as_deref().unwrap_or_default();
        let is_exact = recorded.is_exact;
        let asked = is_exact || group.iter().any(asked);
        let wanted = driver.running(HERE);
        let mut told = Told { recorded, group, wanted, used, asked, wrong: None, puts };
        let Ok(()) = driver.instant(&mut told, HERE, now);
        let wrong = told.wrong;
        if is_exact {
            // What the choice has made due at this very instant.
            let mut between = Told::between(recorded, driver.running(HERE));
            while let Ok(Some(_)) = driver.run_once(&mut between, HERE, now.saturating_add(1)) {}
        }
        if let Some(task) = wrong {
            let name = self.names(Some(task), system);
            let what = format!("{name} ended although it does not run");
            return self.found(now, Some(task), None, system, what);
        }
        self.take_over(group);
        self.counted(group, now, system).or_else(|| self.twice_chosen(group, now, system)).or_else(|| {
            // A tree may leave the processor idle although jobs wait.
            let left =
                |record: &Record| is_tree && takes(record.kind) && record.kind != Kind::PreemptionPoint;
            let concerned = is_exact || group.iter().any(|record| gives(record.kind) || left(record));
            if concerned { self.compare(now, system) } else { None }
        })
    }

    /// Takes over what the records say of the processor.
    fn take_over(&mut self, group: &[Record]) {
        let recorded = &mut self.recorded;
        for record in group {
            let task = TaskId(record.task);
            if gives(record.kind) {
                recorded.actual = Some(task);
            } else if takes(record.kind)
                && recorded.actual == Some(task)
                && record.kind != Kind::PreemptionPoint
            {
                recorded.actual = None;
            }
            match record.kind {
                Kind::InterruptEntry | Kind::SoftirqEntry => recorded.depth += 1,
                Kind::InterruptExit | Kind::SoftirqExit => recorded.depth = recorded.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// What a server has used since that was told last, as the record of the end of its budget says.
    fn used(&self, record: &Record, system: &System) -> Option<u64> {
        let counted = self.servers.iter().find(|counted| u64::from(counted.id.0) == record.value)?;
        let running = self.driver.running(HERE)?;
        let told = self.driver.machine().tally(counted.id).consumed.as_ns();
        let used = record.extra.saturating_sub(told).saturating_sub(self.driver.untold(HERE));
        (system.server_of(running) == Some(counted.id)).then_some(used)
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
            let tally = self.driver.machine().tally(counted.id);
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
                let is_early = seen > due && self.recorded.is_exact;
                let is_late = seen < due && self.recorded.is_exact && noted[place] && !counted.may_lag;
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
            if self.recorded.is_exact && self.driver.machine().stands_low(TaskId(record.task)) {
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
        if !self.recorded.is_exact
            || group.iter().any(|record| record.kind == Kind::Completion && record.value == 0)
        {
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
        let (actual, desired) = (self.recorded.actual, self.driver.running(HERE));
        if actual == desired {
            return None;
        }
        let (runs, should) = (self.names(actual, system), self.names(desired, system));
        let cpu = horolog_model::CpuId(self.cpu);
        let why = match (self.server_of(actual, system), self.server_of(desired, system)) {
            _ if system.has_tree(cpu) => "that is what its schedulers' orders and budgets say",
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
        task.and_then(|task| system.scheduler_of(task))
    }

    fn names(&self, task: Option<TaskId>, system: &System) -> String {
        let task = task.and_then(|task| system.tasks().get(task.index()));
        task.map_or_else(|| "nobody".to_owned(), |task| task.name.clone())
    }
}

fn not_decided(cpu: u32, why: &str) -> String {
    format!("cpu {cpu}: who should run in its tree of schedulers was not decided: {why}")
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
fn tells_all(system: &System, simulated: bool) -> bool {
    // Below a server nobody is non-preemptive; in a tree who is keeps the processor to his end, which is on record.
    let is_told = |task: &Task| match task.preemption {
        Preemption::Preemptive => true,
        Preemption::NonPreemptive => system.has_tree(task.cpu),
        _ => false,
    };
    simulated || system.tasks().iter().all(is_told)
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
