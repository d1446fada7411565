//! The decisions of a processor, made again: the scheduling machine is told what the trace says that happened, and must decide
//! what the trace says that was done.
//!
//! The other place where verification uses the machine is [`crate::verifier::again`]. Bounds, windows and the order of hard jobs are judged without it.
//!
//! A simulated processor with servers is *exact*: what a job executed is the time for which it had the processor, less interrupts and
//! what the platform costs ([`crate::costs`]), so every end of a budget, every promotion and every change of slack is known to the
//! nanosecond, and any other choice or record is a finding. Everywhere else the machine runs beside the processor as its shadow: it says whose job should
//! run, the trace says whose thread did, and what counts is for how long the two differ ([`crate::verifier::shadow`]). In a measured trace
//! consumption is known where a record tells it, at the end of a budget: there the ends of budgets are taken from the records, and
//! policies that depend on every microsecond executed (slack stealing, gain time, priority exchange, constant bandwidth) are left
//! to the bounds.
//!
//! A measured tree is decided by the records of its budgets alone ([`crate::on_record`]).

mod losses;
mod noted;
mod telling;

use crate::costs::Costs;
use crate::decidable::Source;
use crate::on_record::{self, Put};
use crate::state::stretches::Stretches;
use crate::verifier::compared::Compared;
use crate::verifier::recorded::{
    Recorded, Told, ends_section, gives, leave, locks, takes, unlock, waits_for_resource,
};
use crate::verifier::sections::OF_RESOURCE;
use horolog_model::{Companion, CpuId, ModelError, Priority, ServerId, ServerKind, System, TaskId};
use horolog_sched::{ANY_SEGMENT, Cause, Driver, Machine, MachineBuilder, ProcessorIndex, Withdrawn};
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use losses::Lost;

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
    /// Where its budget runs out it comes back at once, and the deadline moves: a return beside an end tells of no deadline.
    puts_off: bool,
    exhaustions: u64,
    replenishments: u64,
    /// Whether the next record of an exhaustion, and of a replenishment, is the first one that is told since what was before was lost:
    /// then it is counted from there.
    is_anew: [bool; 2],
    /// The same before the records of this instant.
    was_anew: [bool; 2],
    /// What the records say was charged before the machine counted; `None`: that is lost.
    charged_before: Option<u64>,
}

/// The machine of one processor, told what the trace holds.
#[derive(Clone, Debug)]
pub(crate) struct Decisions {
    driver: Driver,
    pub(crate) cpu: u32,
    /// Its place among the model's processors.
    pub(crate) place: usize,
    recorded: Recorded,
    servers: Vec<Counted>,
    /// In a measured tree, the budgets that the records tell of.
    puts: Option<Vec<Put>>,
    /// Whether the machine is asked who runs whenever something has happened; else where the trace shows a choice.
    asks_always: bool,
    /// Whether the kernel's own rules schedule it: then a job is ready when its thread is woken.
    pub(crate) is_kernels: bool,
    /// Since when who has the processor was last in doubt.
    unknown_from: u64,
    lost: Lost,
    /// The mode by the records, and since when it holds.
    mode: u32,
    changed_at: Option<u64>,
    pub(crate) stretches: Stretches,
    /// Whom the machine wanted from instants between those of records on, and for how long something outside the order had had the
    /// processor by then.
    between: Vec<(u64, Option<TaskId>, Withdrawn)>,
    /// The records of the instant that is collected, and whether it is judged already.
    group: Vec<Record>,
    group_at: u64,
    is_open: bool,
    /// Why nothing is compared any more.
    pub(crate) ended: Option<&'static str>,
    compared: u64,
}

/// The only processor of a driver.
const HERE: usize = 0;

impl Decisions {
    /// Of every processor where the machine can be told all that happened, and why not of the others. Trees among these are named
    /// in `unjudged`, since nothing else orders their jobs. By `late` any budget may be overdrawn in a measured trace.
    pub(crate) fn all(
        companion: &Companion,
        source: Source<'_>,
        unjudged: &mut Vec<String>,
        late: u64,
    ) -> Result<(Vec<Decisions>, Vec<Compared>), ModelError> {
        let own = source.own;
        // A mode cannot end a job that has begun on a thread.
        let keeping =
            |machine: Machine| if source.simulated { machine } else { machine.keeping_begun_jobs() };
        let (machine, lent) = Machine::of_companion(source.system, companion)?;
        let machine = keeping(machine);
        // Where every nanosecond is known the machine acts upon overruns as the simulated one does.
        let exact =
            if source.simulated { Some(MachineBuilder::new(own).job_budgets().build()?) } else { None };
        let source = Source { lends: !lent.is_empty(), ..source };
        let by_records = if source.simulated { None } else { Some(on_record::machine(own)?) };
        let by_records = by_records.map(|(machine, puts)| (keeping(machine), puts));
        let (mut all, mut compared) = (Vec::new(), Vec::new());
        for (place, cpu) in own.platform().cpus.iter().enumerate() {
            let undecided = source.why_not(cpu);
            compared.push(Compared::new(undecided.clone()));
            let is_idle = own.tasks_on(cpu).next().is_none() && own.servers_on(cpu).next().is_none();
            if is_idle && own.clusters().is_empty() {
                // No job is chosen there, and every machine is as large as the system.
                continue;
            }
            if let Some(why) = undecided {
                if own.has_tree(cpu) {
                    unjudged.push(not_decided(cpu.0, &why));
                }
                continue;
            }
            let by_records = by_records.as_ref().filter(|_| own.has_tree(cpu));
            let exact = exact.as_ref().filter(|_| source.is_exact(cpu));
            let machine = by_records.map_or(exact.unwrap_or(&machine), |(machine, _)| machine);
            let puts = by_records.map(|(_, puts)| puts.clone());
            let mut one = Decisions::of(source, machine, (place, cpu), puts);
            one.lost.overdraw = one.lost.overdraw.saturating_add(late);
            all.push(one);
        }
        Ok((all, compared))
    }

    fn of(
        source: Source<'_>,
        machine: &Machine,
        (place, cpu): (usize, CpuId),
        puts: Option<Vec<Put>>,
    ) -> Decisions {
        let own = source.own;
        let count = |(id, server): (ServerId, &horolog_model::Server)| Counted {
            id,
            is_slack: matches!(server.kind, ServerKind::SlackStealing { .. }),
            may_lag: matches!(
                server.kind,
                ServerKind::Sporadic { max_replenishments, .. } if max_replenishments < on_record::TOLD_REPLENISHMENTS
            ),
            puts_off: matches!(server.kind, ServerKind::ConstantBandwidth { .. }),
            exhaustions: 0,
            replenishments: 0,
            is_anew: [false; 2],
            was_anew: [false; 2],
            charged_before: Some(0),
        };
        let driver = Driver::new(machine.clone(), own, std::iter::once(ProcessorIndex(place as u16)));
        let is_flat = !source.is_served(cpu);
        let mut decisions = Decisions {
            // A mode that was lost may have changed budgets.
            lost: Lost::new(
                Some(&driver).filter(|_| is_flat || own.modes().is_empty()),
                source.foreign.then_some(0),
                (own, cpu),
            ),
            driver,
            mode: 0,
            changed_at: None,
            cpu: cpu.0,
            place,
            recorded: Recorded {
                is_exact: source.is_exact(cpu),
                is_flat,
                deadlines: own.tasks().iter().map(|task| task.deadline.map(Span::as_ns)).collect(),
                noted: Vec::new(),
                overran: Vec::new(),
                costs: if source.is_exact(cpu) { Costs::of(own, cpu) } else { Costs::default() },
                actual: None,
                given_at: 0,
                depth: 0,
                last: 0,
            },
            servers: own.servers_on(cpu).map(count).collect(),
            // In a tree a job that cannot be preempted keeps what stands above it, so nobody is chosen who does not begin.
            asks_always: is_flat || puts.is_none() || source.is_preemptive(cpu),
            puts,
            is_kernels: source.foreign || source.is_kernels(cpu),
            stretches: Stretches::new(),
            between: Vec::new(),
            unknown_from: 0,
            group: Vec::new(),
            group_at: 0,
            is_open: false,
            ended: None,
            compared: 0,
        };
        let Self { driver, recorded, .. } = &mut decisions;
        driver.settle(&mut Told::between(recorded, None), HERE, 0);
        decisions
    }

    /// Whether every wrong choice is a finding; else only one that lasts.
    #[inline]
    pub(crate) fn is_exact(&self) -> bool {
        self.recorded.is_exact
    }

    /// Whether a wrong choice would be a finding at this very instant.
    #[inline]
    fn judges_all(&self) -> bool {
        self.recorded.is_exact && !self.lost.follows
    }

    /// Whether priorities or deadlines alone decide.
    #[inline]
    pub(crate) fn is_flat(&self) -> bool {
        self.recorded.is_flat
    }

    /// Whose job the machine wants to have the processor.
    #[inline]
    pub(crate) fn wanted(&self) -> Option<TaskId> {
        self.driver.wanted(HERE)
    }

    /// Whose job has the processor by its own records, where those came since that was in doubt.
    pub(crate) fn told_of(&self) -> Option<usize> {
        let actual = self.recorded.actual.filter(|_| self.recorded.given_at >= self.unknown_from);
        actual.map(TaskId::index)
    }

    /// From `now` on who has the processor is in doubt.
    pub(crate) fn doubt(&mut self, now: u64) {
        self.unknown_from = now;
        self.stretches.lose(now);
    }

    /// Where priorities or deadlines alone decide, no phase of an instant waits for another: what a record says is told at once.
    #[inline]
    fn tell_flat(&mut self, record: &Record, now: u64) {
        let (kind, task, value) = (record.kind, TaskId(record.task), record.value);
        if locks(record) {
            self.tell_lock(record, now);
        }
        let Self { driver, recorded, .. } = self;
        let mut tell = driver.tell(HERE, now);
        let has_it = recorded.actual == Some(task);
        match kind {
            Kind::Release => {
                let deadline = recorded.deadline_of(task, value);
                let _ = tell.release(task, deadline, |_| 0);
            }
            Kind::Start | Kind::Resume => {
                (recorded.actual, recorded.given_at) = (Some(task), now);
                tell.choice_is_due();
            }
            Kind::Unlock | Kind::Wake if ends_section(&tell, record) => unlock(&mut tell, task, value),
            _ if waits_for_resource(record) => {}
            Kind::Completion | Kind::Suspend => leave(&mut tell, task, kind),
            Kind::Wake if record.extra != OF_RESOURCE => _ = tell.wake(task),
            Kind::PreemptionPoint | Kind::Yield => _ = tell.preemption_point(task, ANY_SEGMENT),
            _ => {}
        }
        if has_it && matches!(kind, Kind::Completion | Kind::Suspend | Kind::Preempt | Kind::Yield) {
            recorded.actual = None;
        }
    }

    /// A job locks a resource, or comes to wait for one: after the choice of this instant, since it has the processor.
    fn tell_lock(&mut self, record: &Record, now: u64) {
        let count = self.driver.machine().resource_count();
        let resource = u32::try_from(record.value).ok().filter(|&resource| (resource as usize) < count);
        let (task, Some(resource)) = (TaskId(record.task), resource) else { return };
        let Self { driver, recorded, .. } = self;
        let is_elsewhere = record.kind == Kind::Lock && driver.machine().executes_elsewhere(resource);
        if driver.machine().is_held_by(resource, task) || is_elsewhere {
            return;
        }
        let suspends = driver.machine().is_handed_to_the_suspended(resource);
        let waits_for =
            if suspends { driver.machine().waits_for(task) } else { driver.machine().spins_for(task) };
        if record.kind == Kind::Lock && waits_for == Some(resource) {
            // Who let go of it was on another processor: before the choice of this instant.
            let _ = driver.tell(HERE, now).lock(task, resource);
            return;
        }
        if driver.is_due(HERE) && recorded.costs.until() <= now {
            driver.settle(&mut Told::between(recorded, None), HERE, now);
        }
        let mut tell = driver.tell(HERE, now);
        let begins_to_wait = record.kind == Kind::Spin || suspends && record.kind == Kind::Suspend;
        let mut told = || match begins_to_wait {
            true => tell.spin(task, resource),
            false => tell.lock(task, resource).map(|_| ()),
        };
        if told().is_err() {
            // It cannot have come so far without the processor.
            tell.took(Some(task));
            let _ = match begins_to_wait {
                true => tell.spin(task, resource),
                false => tell.lock(task, resource).map(|_| ()),
            };
        }
    }

    /// Makes the choice of an instant of which everything was told.
    fn choose_flat(&mut self, now: u64) {
        self.is_open = false;
        let Self { driver, recorded, .. } = &mut *self;
        if driver.is_due(HERE) {
            driver.settle(&mut Told::between(recorded, None), HERE, now);
        }
        self.say_who_took_it(now);
    }

    /// The mode changes, after what ends in the records of its instant.
    fn change_mode(&mut self, group: &[Record], mode: u32, now: u64, system: &System) -> Option<TaskId> {
        (self.mode, self.changed_at) = (mode, Some(now));
        let charged = self.driver.running(HERE);
        let puts = self.puts.as_deref().unwrap_or_default();
        let is_exact = self.recorded.is_exact;
        let Self { driver, recorded, .. } = self;
        let mut told = Told { group, puts, is_exact, ..Told::between(recorded, charged) };
        let Ok(()) = driver.change_mode(&mut told, HERE, now, mode);
        let wrong = told.wrong;
        for (task, deadline) in system.task_ids().zip(&mut recorded.deadlines) {
            *deadline = system.task_in(mode, task).deadline.map(Span::as_ns);
        }
        wrong
    }

    /// Whether the mode change of this very instant has dropped the job that an enforcement names.
    fn is_by_mode(&self, record: &Record, now: u64) -> bool {
        matches!(record.extra, 2 | 4) && self.changed_at == Some(now)
    }

    /// Judges the instant that is collected.
    fn judge(&mut self, system: &System) -> Option<Wrong> {
        let group = std::mem::take(&mut self.group);
        let now = self.group_at;
        self.is_open = false;
        let mut wrong = self.until(now, system);
        if wrong.is_none() && !group.is_empty() {
            wrong = self.instant(&group, now, system);
        }
        self.group = group;
        self.group.clear();
        if wrong.is_some() {
            self.ended = Some("a wrong decision was found");
            self.lost.since = Some(now);
        }
        wrong
    }

    /// Lets time pass until `now`: ends of budgets and wall timers before it.
    fn until(&mut self, now: u64, system: &System) -> Option<Wrong> {
        loop {
            let Self { driver, recorded, .. } = &mut *self;
            let mut told = Told::between(recorded, driver.running(HERE));
            let Ok(reached) = driver.run_once(&mut told, HERE, now);
            let at = reached?;
            if self.judges_all() {
                if let Some(wrong) = self.compare(at, system).or_else(|| self.compare_notes(&[], at, system))
                {
                    return Some(wrong);
                }
            } else if self.lost.follows && self.is_exact() {
                self.recorded.forget_notes();
                self.say_who_took_it(at);
            } else if self.asks_always && self.driver.is_due(HERE) {
                let Self { driver, recorded, .. } = &mut *self;
                driver.settle(&mut Told::between(recorded, None), HERE, at);
                self.say_who_took_it(at);
                if !self.lost.follows {
                    self.between.push((at, self.wanted(), self.withdrawn(at)));
                }
            }
        }
    }

    /// The records of one instant, in the order of its phases.
    fn instant(&mut self, group: &[Record], now: u64, system: &System) -> Option<Wrong> {
        let is_tree = self.puts.is_some();
        let (is_exact, judges_all) = (self.is_exact(), self.judges_all());
        let exhausted = group.iter().find(|record| record.kind == Kind::BudgetExhausted);
        let by_amount = !is_exact && !is_tree;
        let used = exhausted.filter(|_| by_amount).and_then(|record| self.used(record, system));
        if used.is_some() {
            // Whoever notes the end of a budget has the processor while he does: it ends all the same.
            self.withdraw(None, now, system);
        }
        let asks = |record: &Record| gives(record.kind) || takes(record.kind);
        let (mut wrong, mut has_ended) = (None, false);
        for change in group.iter().filter(|record| record.kind == Kind::ModeChange) {
            let mode = u32::try_from(change.value).ok().filter(|&mode| mode < system.mode_count());
            let Some(mode) = mode else { continue };
            let group = if has_ended { &[] } else { group };
            wrong = wrong.or(self.change_mode(group, mode, now, system));
            has_ended = true;
        }
        let Self { driver, recorded, puts, asks_always, .. } = &mut *self;
        let puts = puts.as_deref().unwrap_or_default();
        // Only where it is asked the machine makes its choice. A budget ends by its record, so nobody looks at it before.
        let asked = is_exact || (!*asks_always && group.iter().any(asks));
        let charged = driver.running(HERE);
        let mut told = Told {
            recorded,
            group,
            charged,
            used,
            asked,
            wrong: None,
            puts,
            is_exact: judges_all,
            has_ended,
        };
        let Ok(()) = driver.instant(&mut told, HERE, now);
        let wrong = wrong.or(told.wrong);
        for record in group.iter().filter(|record| locks(record)) {
            self.tell_lock(record, now);
        }
        let Self { driver, recorded, asks_always, .. } = &mut *self;
        if is_exact {
            // What the choice has made due at this very instant.
            let mut between = Told::between(recorded, driver.running(HERE));
            while let Ok(Some(_)) = driver.run_once(&mut between, HERE, now.saturating_add(1)) {}
        } else if (*asks_always || asked) && driver.is_due(HERE) {
            // Also where something outside the order has the processor just now.
            driver.settle(&mut Told::between(recorded, None), HERE, now);
        }
        if let Some(task) = wrong {
            let name = self.names(Some(task), system);
            let what = format!("{name} ended although it does not run");
            return self.found(now, Some(task), None, system, what);
        }
        self.take_over(group, now, system);
        if !judges_all {
            self.recorded.forget_notes();
            self.say_who_took_it(now);
            if self.lost.follows {
                self.learn(group, now);
            } else {
                self.note_charged(group);
            }
            return None;
        }
        let counted = self.counted(group, now, system).or_else(|| self.twice_chosen(group, now, system));
        let chosen = counted.or_else(|| self.compare(now, system));
        chosen.or_else(|| self.compare_notes(group, now, system))
    }

    /// Something outside the order has the processor from `now` on, or not any more.
    pub(crate) fn withdraw(&mut self, cause: Option<Cause>, now: u64, system: &System) {
        if self.driver.is_withdrawn(HERE) == cause {
            return;
        }
        if !self.is_flat() && !self.is_exact() {
            // Ends of budgets and timers come before.
            let _ = self.until(now, system);
        }
        let Self { driver, recorded, .. } = self;
        let mut told = Told::between(recorded, driver.running(HERE));
        match cause {
            Some(cause) => driver.withdraw(&mut told, HERE, now, cause),
            None => driver.give_back(&mut told, HERE, now),
        }
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        self.driver.is_withdrawn(HERE)
    }

    /// For how long something outside the order had the processor until `now`.
    pub(crate) fn withdrawn(&self, now: u64) -> Withdrawn {
        self.driver.withdrawn(HERE, now)
    }

    /// Tells the machine who really has the processor, where that is another one than it was told.
    fn say_who_took_it(&mut self, now: u64) {
        if self.driver.running(HERE) != self.recorded.actual {
            self.driver.tell(HERE, now).took(self.recorded.actual);
        }
    }

    /// Whoever got the processor at `now`, where the machine wanted another one.
    fn other_choice(&self, now: u64) -> Option<(TaskId, TaskId)> {
        let (actual, wanted) = (self.recorded.actual?, self.wanted()?);
        (self.recorded.given_at == now && actual != wanted).then_some((actual, wanted))
    }

    /// Takes over what the records say of the processor.
    fn take_over(&mut self, group: &[Record], now: u64, system: &System) {
        let recorded = &mut self.recorded;
        for record in group {
            let task = TaskId(record.task);
            if gives(record.kind) {
                recorded.actual = Some(task);
                recorded.given_at = now;
            } else if takes(record.kind)
                && recorded.actual == Some(task)
                && record.kind != Kind::PreemptionPoint
            {
                recorded.actual = None;
            }
            let is_gone = !recorded.is_exact || matches!(record.extra, 3 | 4);
            if record.kind == Kind::Enforcement && is_gone && recorded.actual == Some(task) {
                // The mode, or its overrun policy, has dropped it.
                recorded.actual = None;
            }
            match record.kind {
                Kind::InterruptEntry | Kind::SoftirqEntry => recorded.depth += 1,
                Kind::InterruptExit | Kind::SoftirqExit => recorded.depth = recorded.depth.saturating_sub(1),
                _ => {}
            }
        }
        if recorded.is_exact {
            self.withdraw((self.recorded.depth > 0).then_some(Cause::Interrupt), now, system);
        }
    }

    /// What a server has used since that was told last, as the record of the end of its budget says.
    fn used(&self, record: &Record, system: &System) -> Option<u64> {
        let counted = self.servers.iter().find(|counted| u64::from(counted.id.0) == record.value)?;
        let running = self.driver.running(HERE)?;
        let told = self.driver.machine().tally(counted.id).consumed.as_ns();
        // What was charged before a loss is not known: then the budget ends just now.
        let used = counted.charged_before.map_or(0, |before| {
            let charged = record.extra.saturating_sub(before);
            charged.saturating_sub(told).saturating_sub(self.driver.untold(HERE))
        });
        (system.server_of(running) == Some(counted.id)).then_some(used)
    }

    /// After a loss: what the records count differs from what the machine counts by what was charged meanwhile.
    fn note_charged(&mut self, group: &[Record]) {
        for record in group.iter().filter(|record| record.kind == Kind::BudgetExhausted) {
            let of = |one: &&mut Counted| u64::from(one.id.0) == record.value && one.charged_before.is_none();
            if let Some(counted) = self.servers.iter_mut().find(of) {
                let told = self.driver.machine().tally(counted.id).consumed.as_ns();
                counted.charged_before = Some(record.extra.saturating_sub(told));
            }
        }
    }

    /// Compares how often each server's budget ended and came back.
    fn counted(&mut self, group: &[Record], now: u64, system: &System) -> Option<Wrong> {
        for record in group {
            let Ok(id) = u32::try_from(record.value) else { continue };
            let Some(counted) = self.servers.iter_mut().find(|counted| counted.id.0 == id) else { continue };
            let tally = self.driver.machine().tally(counted.id);
            let (seen, due, anew) = match record.kind {
                Kind::BudgetExhausted => (&mut counted.exhaustions, tally.exhaustions, 0),
                Kind::SlackChange if record.extra == 0 => (&mut counted.exhaustions, tally.exhaustions, 0),
                Kind::BudgetReplenished | Kind::SlackChange => {
                    (&mut counted.replenishments, tally.replenishments, 1)
                }
                _ => continue,
            };
            *seen += 1;
            if std::mem::take(&mut counted.is_anew[anew]) {
                *seen = due;
            }
        }
        for counted in self.servers.iter().filter(|counted| counted.may_lag) {
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
            for (place, (seen, due, what)) in
                pairs.into_iter().enumerate().filter(|(place, _)| !counted.is_anew[*place])
            {
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
            // What it has locked in between may have made a second choice necessary.
            let locked = |other: &Record| other.kind == Kind::Lock && other.task == record.task;
            let before = &group[..*place];
            record.kind == Kind::Preempt && before.iter().any(got) && !before.iter().any(locked)
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
        let why = why(system, CpuId(self.cpu), actual, desired);
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

/// Why one of two ready jobs goes before another under fixed priorities; `None` has none of its own.
fn more_important(runs: Option<Priority>, wanted: Option<Priority>) -> &'static str {
    match (runs, wanted) {
        (Some(runs), Some(wanted)) if wanted.is_more_important_than(runs) => "its priority is greater",
        (Some(runs), Some(wanted)) if runs.is_more_important_than(wanted) => {
            "its priority is less, but no job of the other was ready"
        }
        (Some(_), Some(_)) => "it came first, at the same priority",
        _ => "the rules choose it",
    }
}

/// Why `wanted` should have a processor and not `runs`.
fn why(system: &System, cpu: CpuId, runs: Option<TaskId>, wanted: Option<TaskId>) -> &'static str {
    let server = |task: Option<TaskId>| task.and_then(|task| system.scheduler_of(task));
    if system.servers_on(cpu).next().is_none() {
        return match (runs, wanted, system.policy()) {
            (Some(_), Some(_), horolog_model::Policy::Edf) => "its deadline is earlier",
            (Some(runs), Some(wanted), _) => {
                let (runs, wanted) = (system.task(runs).priority, system.task(wanted).priority);
                let is_less =
                    runs.zip(wanted).is_some_and(|(runs, wanted)| runs.is_more_important_than(wanted));
                if is_less && !system.resources().is_empty() {
                    return "what jobs hold or wait for puts it first";
                }
                more_important(runs, wanted)
            }
            _ => "it is ready",
        };
    }
    match (server(runs), server(wanted)) {
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
    }
}
