//! Suspended waits across processors (decision 0020): response times of tasks whose jobs are suspended until another processor hands them
//! a resource, and that execute before all others of their processor while they hold it.
//!
//! All processors with users of such resources are bounded together, since a wait depends on tasks elsewhere. For a task i of processor P with n_i
//! such sections, with `c` the length of a section, C the execution of a job, s the context switch:
//!
//! ```text
//! H(k, q)  = L_m( c(k, q) + sum over other tasks l of k's processor m of 2 s + max c(l, r) )      from when k has q until it lets go
//!            r: a resource other than q, under `mpcp` one whose remote ceiling on m is at or above that of q
//! W_i      = sum over the resources q of i of the waits of its n_iq requests
//! fmlp-plus: from each other user k:  min { n_iq, N_k(x) n_kq } max H(k, q)
//! mpcp:      from less important users together:  min { n_iq, sum N_k(x) n_kq } max H(k, q)
//!            from each equal one:  min { n_iq, N_k(x) n_kq } max H(k, q)
//!            from each more important one:  min { n_iq N_k(w), N_k(x) } sum of H(k, q) over its sections on q
//!            w: one wait, the least fixed point of these three for one request
//! B_i      = sum over less important tasks l of P of min { n_i + 1, N_l(x) n_l } (2 s + max c(l, .))
//!            fmlp-plus, omlp: a request of l that is ahead of one of i counts in W_i alone, so both together are N_l(x) n_l at most
//!            + (n_i + 1) (s + the longest section of a less important one on a local resource whose ceiling is at or above i)
//! R_i      = J_i + x,  x the least with  x = C_i + W_i + B_i + sum over h of ceil((x + R_h - C_h) / T_h) C_h + interrupts + loads
//! N_k(x)   = floor((x + R_k) / T_k) + 1          h: tasks of P of the same priority and above
//! ```
//!
//! Under `omlp` (decision 0029) one job of each processor at a time has a place in the queues. With F(P, q) the sum over the other processors of the longest
//! H(k, q) of their users k, and G(l, q) = F(P, q) + H(l, q) for what a request of a task l of P keeps the others of P from asking:
//!
//! ```text
//! H(k, q)  = L_m( c(k, q) )                        no other job of m holds anything
//! W_i      = from each other processor m, for each q:  min { n_iq, sum over its users k of N_k(x) n_kq } max H(k, q)
//!            + the waits of n_i requests by importance, as under mpcp, for the other tasks of P with G instead of H
//! ```
//!
//! L_m is that of [`crate::spin_locks`]: with what interrupts and measured loads of m take. Every hand-over is noticed late by the release latency at most.
//!
//! Why it holds, where all responses are within their periods:
//! - Of a task one job at a time asks. Once k holds q nothing of its processor executes but holders, and who is no holder cannot become one except
//!   by a hand-over: so every other task there goes first with one section at most.
//! - Under `omlp` one request of each other processor is ahead of one that has a place in the queue. Who waits for its turn is on its processor behind more
//!   important ones and those equals that came before; a less important one has its turn already, and is one at most.
//! - First in, first out, one request of each other user is ahead. By importance a less important one is ahead as the holder alone.
//! - A less important task asks only while i does not want the processor: before its release, or while it waits. One section of it is left then.
//! - While i waits for a request of such a task, that request's section executes: it has not begun when i asks, since its job would come before i, and is over
//!   when i goes on. So it is not among those that i finds when it wants the processor.
//! - A more important task may execute later than it was released by its waits. Its work in a window is at most that of releases with jitter R_h - C_h.
//! - The first job that breaks its bound does so in a window in which all others keep theirs. So any fixed point of the whole is a bound; the least
//!   one is searched from below.
//!
//! Sufficient, for preemptive tasks under fixed priorities without servers, devices or other protocols than the immediate ceiling beside them. Sources:
//! the rules of `raj90` and `brandenburg11`; suspensions of others as jitter: `chen19`.

mod answers;
mod boosted;
mod remote;
mod tokens;

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask, LONGEST_NS};
use crate::error::AnalysisError;
use crate::explanation::TermKind;
use crate::fixed_priority::priority_of;
use crate::hyperbolic_load::HyperbolicLoad;
use crate::options::Options;
use crate::spin_locks::Delays;
use horolog_model::{CpuId, Preemption, Priority, Protocol, System, Task};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a task's jobs hold a resource whose waits are suspended across processors.
fn asks(system: &System, task: &Task) -> bool {
    task.sections.iter().any(|section| boosts(system, &section.resource))
}

fn boosts(system: &System, resource: &str) -> bool {
    let place = system.find_resource(resource);
    place.is_some_and(|place| system.resources()[place].protocol.boosts())
}

/// Whether the bounds of this processor's tasks are bounds of suspended waits.
pub(crate) fn concern(system: &System, cpu: CpuId) -> bool {
    system.first_boosting().is_some() && system.tasks_on(cpu).any(|(_, task)| asks(system, task))
}

/// The processors with users of such resources.
fn processors(system: &System) -> Vec<CpuId> {
    let users = system.tasks().iter().filter(|task| asks(system, task));
    users.map(|task| task.cpu).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Why suspended waits have no bound here: what else is on one of the processors whose tasks ask.
pub(crate) fn obstacle(system: &System) -> Option<String> {
    processors(system).into_iter().find_map(|cpu| {
        let on = format!("on CPU {}", cpu.0);
        if let Some((_, server)) = system.servers_on(cpu).next() {
            return Some(format!("not beside the server `{}` {on}", server.name));
        }
        if let Some(driver) = system.first_driver() {
            return Some(format!("not beside `{driver}`"));
        }
        for (_, task) in system.tasks_on(cpu) {
            if task.preemption != Preemption::Preemptive {
                return Some(format!("not beside `{}` {on}, which cannot be preempted anywhere", task.name));
            }
            if task.separation().is_none() {
                return Some(format!("not beside `{}` {on}, whose arrivals are listed", task.name));
            }
            let places = task.sections.iter().filter_map(|section| system.find_resource(&section.resource));
            let mut held = places.map(|place| &system.resources()[place]);
            let is_known = |protocol: Protocol| protocol.boosts() || protocol == Protocol::Ceiling;
            if let Some(other) = held.find(|resource| !is_known(resource.protocol)) {
                let (word, name) = (other.protocol.word(), &other.name);
                return Some(format!("not beside `resource.{name}` (`{word}`) {on}"));
            }
        }
        None
    })
}

/// The bounds of the processors whose tasks ask; `None` where there are none, or no bound is known.
pub(crate) fn bounds<'a>(system: &'a System, options: &Options) -> Result<Option<Waits<'a>>, AnalysisError> {
    if system.first_boosting().is_none() || obstacle(system).is_some() {
        return Ok(None);
    }
    Waits::new(system, options).map(Some)
}

/// One section of a task.
#[derive(Clone, Copy, Debug)]
struct Request {
    resource: usize,
    /// The place among [`Waits::agents`] of the processor on which it executes; `None`: its task's.
    agent: Option<usize>,
    /// With what locking costs, ns.
    length: u64,
    /// From when the job has the resource until it lets go, and the next one notices; `None`: no bound.
    held: Option<u64>,
    /// The same from when it has a place in the queue, where others of its processor have none meanwhile.
    turn: Option<u64>,
}

/// A task of one of the processors.
#[derive(Clone, Debug)]
struct Member {
    cpu: usize,
    /// Its place among the processor's tasks.
    place: usize,
    priority: Priority,
    separation: u64,
    jitter: u64,
    /// What a job executes on its own processor, with context switches and locking, ns.
    wcet: u64,
    /// What it executes on those of its resources, ns.
    away: u64,
    /// Whether it ends with such a section.
    ends_elsewhere: bool,
    /// What locking costs a job, ns.
    locking: u64,
    requests: Vec<Request>,
    /// Its longest such section, ns.
    longest: u64,
    /// The longest local section of a less important task that its release may find: the number of that task, the resource, and the length.
    local: Option<(usize, usize, u64)>,
    /// The present bound.
    bound: Result<u64, Gap>,
}

/// Why there is no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gap {
    /// A job may be there when the next one arrives.
    BeyondPeriod,
    /// The task of this number has none.
    RestsOn(usize),
    /// A section's end has no bound.
    Section,
    Effort,
}

/// What a bound consists of, told part by part.
type Tell<'a> = &'a mut dyn FnMut(Part);

/// As [`Tell`]: what it is, whose, of which resource, how often, and how long each, ns.
type Add<'a> = &'a mut dyn FnMut(TermKind, Option<usize>, Option<usize>, u64, u64);

/// Of a task: how many requests a job has, how long they keep others waiting all together, ns, and the longest; `None`: no bound.
type OfJob<'a> = dyn Fn(usize) -> Option<(u64, u64, u64)> + 'a;

/// A part of a bound.
#[derive(Clone, Copy, Debug)]
struct Part {
    kind: TermKind,
    /// Whose, by number.
    who: Option<usize>,
    resource: Option<usize>,
    count: u64,
    /// How long in all, ns.
    time: u64,
}

/// All processors whose tasks use such resources.
pub(crate) struct Waits<'a> {
    system: &'a System,
    cpus: Vec<CpuModel>,
    /// That of all these resources.
    rule: Protocol,
    /// The processors that execute sections alone, with what delays them there.
    agents: Vec<(CpuId, Delays)>,
    latency: u64,
    /// The most important first.
    members: Vec<Member>,
    /// By resource, the numbers of its users.
    users: BTreeMap<usize, Vec<usize>>,
    /// By processor, the numbers of its tasks, the most important first.
    local: Vec<Vec<usize>>,
}

impl<'a> Waits<'a> {
    /// The bounds of a system that [`obstacle`] has nothing against; its priorities are resolved.
    pub(crate) fn new(system: &'a System, options: &Options) -> Result<Waits<'a>, AnalysisError> {
        let numbers = processors(system);
        let cpus = numbers
            .iter()
            .map(|&cpu| CpuModel::of(system, cpu))
            .collect::<Result<Vec<_>, AnalysisError>>()?;
        let mut waits = Waits {
            system,
            rule: system.first_boosting().map_or(Protocol::Mpcp, |it| it.protocol),
            agents: remote::agents(system)?,
            latency: system.platform().release_latency_bound().as_ns(),
            members: Vec::new(),
            users: BTreeMap::new(),
            local: vec![Vec::new(); cpus.len()],
            cpus,
        };
        waits.add_members()?;
        if waits.rule != Protocol::Dpcp {
            waits.find_ends_of_sections(&numbers)?;
        }
        if waits.rule.has_tokens() {
            waits.find_turns();
        }
        waits.find_local_blocking();
        waits.solve(options);
        Ok(waits)
    }

    fn add_members(&mut self) -> Result<(), AnalysisError> {
        let too_long = |task: &CpuTask| AnalysisError::overflow(format!("task.{}", task.name), "wcet");
        let cost = self.system.platform().locking.of_section();
        let cost = cost.ok_or_else(|| AnalysisError::overflow("platform", "the costs of locks"))?.as_ns();
        for (cpu, model) in self.cpus.iter().enumerate() {
            for (place, task) in model.tasks.iter().enumerate() {
                let ArrivalCurve::Periodic { separation, jitter } = task.arrival else { continue };
                let asked = task.sections.iter().filter(|held| held.protocol.boosts());
                let request = |held: &crate::cpu_model::Held| {
                    let cpu = self.system.resources()[held.resource].cpu;
                    let agent = cpu.and_then(|cpu| self.agents.iter().position(|agent| agent.0 == cpu));
                    let noticed = if agent.is_some() { self.latency } else { 0 };
                    let length = held.length.checked_add(cost)?.checked_add(noticed);
                    let length = length.filter(|&ns| ns <= LONGEST_NS)?;
                    Some(Request { resource: held.resource, agent, length, held: None, turn: None })
                };
                let requests: Option<Vec<Request>> = asked.map(request).collect();
                let requests = requests.ok_or_else(|| too_long(task))?;
                let locking = cost.saturating_mul(requests.len() as u64);
                let wcet = task.wcet.checked_add(locking).filter(|&ns| ns <= LONGEST_NS);
                let wcet = wcet.ok_or_else(|| too_long(task))?;
                let away = remote::executed_elsewhere(self.system, task);
                let longest = requests.iter().map(|request| request.length).max().unwrap_or(0);
                let priority = priority_of(task)?;
                let bound = Ok(jitter.saturating_add(wcet));
                let wcet = wcet.saturating_sub(away);
                let ends_elsewhere = remote::ends_elsewhere(self.system, task);
                self.members.push(Member {
                    cpu,
                    place,
                    priority,
                    separation,
                    jitter,
                    wcet,
                    away,
                    ends_elsewhere,
                    locking,
                    requests,
                    longest,
                    local: None,
                    bound,
                });
            }
        }
        self.members.sort_by_key(|member| Reverse(member.priority.number()));
        for (number, member) in self.members.iter().enumerate() {
            self.local[member.cpu].push(number);
            let used: BTreeSet<usize> = member.requests.iter().map(|request| request.resource).collect();
            for resource in used {
                self.users.entry(resource).or_default().push(number);
            }
        }
        Ok(())
    }

    /// H of every section.
    fn find_ends_of_sections(&mut self, numbers: &[CpuId]) -> Result<(), AnalysisError> {
        for (cpu, &number) in numbers.iter().enumerate() {
            let delays = Delays::of(self.system, number)?;
            // Of each resource that a task here uses, who may go first while it is held, and for how long.
            let mut ahead: BTreeMap<usize, BTreeMap<usize, u64>> = BTreeMap::new();
            for &number in &self.local[cpu] {
                for resource in self.members[number].requests.iter().map(|request| request.resource) {
                    ahead.entry(resource).or_insert_with(|| self.ahead_of(cpu, resource));
                }
            }
            let sum =
                |times: &BTreeMap<usize, u64>| times.values().fold(0, |sum: u64, &ns| sum.saturating_add(ns));
            let totals: BTreeMap<usize, u64> =
                ahead.iter().map(|(&resource, times)| (resource, sum(times))).collect();
            for &number in &self.local[cpu] {
                for Request { resource, length, held, .. } in &mut self.members[number].requests {
                    let own = ahead[resource].get(&number).copied().unwrap_or(0);
                    let busy = length.saturating_add(totals[resource].saturating_sub(own));
                    let end = Some(busy).filter(|&ns| ns <= LONGEST_NS).and_then(|ns| delays.longest(ns));
                    let noticed = end.and_then(|ns| ns.checked_add(self.latency));
                    *held = noticed.filter(|&ns| ns <= LONGEST_NS);
                }
            }
        }
        Ok(())
    }

    /// The tasks of a processor that may go first while another one there holds a resource: each with its longest section on such, and two switches.
    fn ahead_of(&self, cpu: usize, resource: usize) -> BTreeMap<usize, u64> {
        if self.rule.has_tokens() {
            // One of its jobs at a time holds anything.
            return BTreeMap::new();
        }
        let own = self.ceiling(cpu, resource);
        let both = self.cpus[cpu].context_switch.saturating_mul(2);
        let longest = |&number: &usize| {
            let requests = self.members[number].requests.iter();
            let others = requests.filter(|other| {
                other.resource != resource
                    && (self.rule != Protocol::Mpcp || self.ceiling(cpu, other.resource) >= own)
            });
            Some((number, others.map(|other| other.length).max()?.saturating_add(both)))
        };
        self.local[cpu].iter().filter_map(longest).collect()
    }

    /// The most important user on other processors; without any, on this one.
    fn ceiling(&self, cpu: usize, resource: usize) -> i64 {
        let users = self.users.get(&resource).into_iter().flatten().map(|&number| &self.members[number]);
        let remote = users.clone().filter(|user| user.cpu != cpu).map(|user| user.priority.number()).max();
        remote.or_else(|| users.map(|user| user.priority.number()).max()).unwrap_or(i64::MIN)
    }

    /// The longest section on a local resource that may keep each task waiting.
    fn find_local_blocking(&mut self) {
        for cpu in 0..self.cpus.len() {
            let mut ceilings: BTreeMap<usize, i64> = BTreeMap::new();
            let mut sections = Vec::new();
            for &number in &self.local[cpu] {
                let member = &self.members[number];
                for held in &self.cpus[cpu].tasks[member.place].sections {
                    if !held.protocol.boosts() {
                        ceilings.entry(held.resource).or_insert(member.priority.number());
                        sections.push((number, held.resource, held.length));
                    }
                }
            }
            for &number in &self.local[cpu] {
                let own = self.members[number].priority.number();
                let blocks = |&&(other, resource, _): &&(usize, usize, u64)| {
                    self.members[other].priority.number() < own && ceilings[&resource] >= own
                };
                let longest = sections.iter().filter(blocks).max_by_key(|&&(.., length)| length).copied();
                self.members[number].local = longest;
            }
        }
    }

    /// The least fixed point of all bounds together.
    fn solve(&mut self, options: &Options) {
        // One that takes too long to find leaves that of the others alone.
        let mut efforts = vec![options.for_each_of(self.members.len()).effort; self.members.len()];
        let mut is_done = false;
        while !is_done {
            is_done = true;
            for (number, effort) in efforts.iter_mut().enumerate() {
                if self.members[number].bound.is_err() {
                    continue;
                }
                let bound = self.bound_of(number, effort);
                is_done &= bound == self.members[number].bound;
                self.members[number].bound = bound;
            }
        }
    }

    /// The bound of one task by the present ones of the others.
    fn bound_of(&self, number: usize, effort: &mut u64) -> Result<u64, Gap> {
        let member = &self.members[number];
        // The present one is below the least bound.
        let mut x = member.bound?.saturating_sub(member.jitter);
        loop {
            let mut sum = 0_u128;
            self.parts(number, x, effort, &mut |part| sum += u128::from(part.time))?;
            let next = u64::try_from(sum).map_err(|_| Gap::BeyondPeriod)?;
            let response = next.checked_add(member.jitter).filter(|&ns| ns <= member.separation);
            let response = response.ok_or(Gap::BeyondPeriod)?;
            if next <= x {
                return Ok(response);
            }
            x = next;
        }
    }

    /// What a task may wait for and execute within `x` of its release.
    fn parts(&self, number: usize, x: u64, effort: &mut u64, tell: Tell<'_>) -> Result<(), Gap> {
        let member = &self.members[number];
        // A job that ends with a section elsewhere is done once its own processor has chosen it again: what is released there in that instant goes
        // first.
        let x = x.saturating_add(u64::from(member.ends_elsewhere));
        let model = &self.cpus[member.cpu];
        let requests = member.requests.len() as u64;
        let mut add = |kind, who, resource, count: u64, one: u64| {
            let time = count.saturating_mul(one);
            if time > 0 {
                tell(Part { kind, who, resource, count, time });
            }
        };
        self.jobs(TermKind::OwnWork, number, 1, &mut add);
        match self.rule {
            Protocol::Dpcp => self.sections_elsewhere(number, x, effort, &mut add)?,
            Protocol::Omlp => self.waits_in_turn(number, x, effort, &mut add)?,
            _ => self.waits_of(number, x, effort, &mut add)?,
        }
        // Under DPCP each section begins and ends by one.
        let hand_overs = if self.rule == Protocol::Dpcp { 2 } else { 1 } * requests;
        add(TermKind::HandOver, None, None, hand_overs, self.latency);
        if let Some((who, resource, length)) = member.local {
            add(TermKind::BlockingSection, Some(who), Some(resource), requests + 1, length);
        }
        add(TermKind::ContextSwitches, None, None, requests + 1, model.context_switch);
        if self.rule != Protocol::Dpcp {
            // Under DPCP their sections execute elsewhere.
            self.boosted_below(number, x, effort, &mut add)?;
        }
        let own = member.priority.number();
        for &other in self.local[member.cpu].iter().filter(|&&other| other != number) {
            *effort = effort.checked_sub(1).ok_or(Gap::Effort)?;
            let one = &self.members[other];
            if one.priority.number() >= own {
                let response = one.bound.map_err(|_| Gap::RestsOn(other))?;
                let jitter = one.jitter.max(response.saturating_sub(one.wcet));
                let arrival = ArrivalCurve::Periodic { separation: one.separation, jitter };
                let count = u64::try_from(arrival.half_open(u128::from(x))).map_err(|_| Gap::BeyondPeriod)?;
                let is_equal = one.priority.number() == own;
                let kind = if is_equal { TermKind::EqualPriority } else { TermKind::Interference };
                self.jobs(kind, other, count, &mut add);
            }
        }
        for load in &model.interrupts {
            *effort = effort.checked_sub(load.arrival.effort()).ok_or(Gap::Effort)?;
            let count = load.arrival.half_open(u128::from(x));
            let count = u64::try_from(count).map_err(|_| Gap::BeyondPeriod)?;
            add(TermKind::TimerInterrupts, None, None, count, load.wcet);
        }
        let outside = HyperbolicLoad::demand(&model.interferences, u128::from(x));
        let outside = outside.and_then(|ns| u64::try_from(ns).ok()).ok_or(Gap::BeyondPeriod)?;
        add(TermKind::Outside, None, None, 1, outside);
        Ok(())
    }

    /// What so many jobs of a task execute, in parts.
    fn jobs(&self, kind: TermKind, number: usize, count: u64, add: Add<'_>) {
        let member = &self.members[number];
        let task = &self.cpus[member.cpu].tasks[member.place];
        let away = if kind == TermKind::OwnWork { 0 } else { member.away };
        add(kind, Some(number), None, count, task.bare_wcet - away);
        add(TermKind::Locking, Some(number), None, count, member.locking);
        let switches = count.saturating_mul(2 * task.turns());
        add(TermKind::ContextSwitches, None, None, switches, self.cpus[member.cpu].context_switch);
    }

    /// How many sections a task begins or has begun within `x`, of which each job has so many; no limit where it has no bound.
    fn sections_within(&self, number: usize, x: u64, of_job: u64) -> u64 {
        let member = &self.members[number];
        let jobs = member.bound.ok().map(|response| self.jobs_within(number, x, response));
        jobs.map_or(u64::MAX, |jobs| jobs.saturating_mul(of_job))
    }

    /// N: how many jobs of a task are there within `x`.
    fn jobs_within(&self, number: usize, x: u64, response: u64) -> u64 {
        let late = u128::from(x) + u128::from(response);
        let jobs = late / u128::from(self.members[number].separation) + 1;
        u64::try_from(jobs).unwrap_or(u64::MAX)
    }

    /// The waits of one job of a task for all of its resources. First in, first out: without those for less important tasks of its processor, which
    /// [`Waits::boosted_below`] has.
    fn waits_of(&self, number: usize, x: u64, effort: &mut u64, add: Add<'_>) -> Result<(), Gap> {
        let member = &self.members[number];
        for (&resource, users) in &self.users {
            let asked = member.requests.iter().filter(|request| request.resource == resource).count() as u64;
            if asked == 0 {
                continue;
            }
            let held = |other: usize| self.held(other, resource);
            if self.rule == Protocol::Mpcp {
                let mut add =
                    |who, count, one| add(TermKind::LockWait, Some(who), Some(resource), count, one);
                self.waits_by_importance(number, asked, users, &held, x, effort, &mut add)?;
                continue;
            }
            for &other in users.iter().filter(|&&other| other != number && !self.is_below(number, other)) {
                *effort = effort.checked_sub(1).ok_or(Gap::Effort)?;
                let (count, _, longest) = held(other).ok_or(Gap::Section)?;
                let within = self.sections_within(other, x, count);
                add(TermKind::LockWait, Some(other), Some(resource), asked.min(within), longest);
            }
        }
        Ok(())
    }

    /// The waits of so many requests of one job of a task for what goes to the most important one that waits. Of each other user: `held` of a job.
    #[expect(clippy::too_many_arguments, reason = "what one wait is made of")]
    fn waits_by_importance(
        &self,
        number: usize,
        asked: u64,
        users: &[usize],
        held: &OfJob<'_>,
        x: u64,
        effort: &mut u64,
        add: &mut dyn FnMut(usize, u64, u64),
    ) -> Result<(), Gap> {
        let own = self.members[number].priority.number();
        let wait = self.wait_by_importance(number, users, held, effort)?;
        // Less important users keep it from a request as its holder alone.
        let (mut below, mut longest_below) = (0_u64, None);
        for &other in users.iter().filter(|&&other| other != number) {
            *effort = effort.checked_sub(1).ok_or(Gap::Effort)?;
            let (count, sum, longest) = held(other).ok_or(Gap::Section)?;
            let within = self.sections_within(other, x, count);
            let priority = self.members[other].priority.number();
            if priority < own {
                below = below.saturating_add(within);
                longest_below = longest_below.max(Some((longest, Reverse(other))));
            } else if priority > own {
                let response = self.members[other].bound.map_err(|_| Gap::RestsOn(other))?;
                let in_waits = self.jobs_within(other, wait, response).saturating_mul(asked);
                add(other, in_waits.min(self.jobs_within(other, x, response)), sum);
            } else {
                add(other, asked.min(within), longest);
            }
        }
        if let Some((longest, Reverse(who))) = longest_below {
            add(who, asked.min(below), longest);
        }
        Ok(())
    }

    /// How many sections a job of a task has on a resource, how long all together are held at most, and the longest; `None` without a bound.
    fn held(&self, number: usize, resource: usize) -> Option<(u64, u64, u64)> {
        let requests = self.members[number].requests.iter().filter(|it| it.resource == resource);
        let each = |(count, sum, longest): (u64, u64, u64), request: &Request| {
            let held = request.held?;
            Some((count + 1, sum.checked_add(held)?, longest.max(held)))
        };
        requests.into_iter().try_fold((0, 0, 0), each)
    }

    /// How long one request of a task waits for what goes to the most important one that waits.
    fn wait_by_importance(
        &self,
        number: usize,
        users: &[usize],
        held: &OfJob<'_>,
        effort: &mut u64,
    ) -> Result<u64, Gap> {
        let own = self.members[number].priority.number();
        let others = users.iter().copied().filter(|&other| other != number);
        let (mut fixed, mut below) = (0_u64, 0);
        for other in others.clone().filter(|&other| self.members[other].priority.number() <= own) {
            let (.., longest) = held(other).ok_or(Gap::Section)?;
            if self.members[other].priority.number() < own {
                below = longest.max(below);
            } else {
                fixed = fixed.saturating_add(longest);
            }
        }
        let mut wait = fixed.saturating_add(below);
        let start = wait;
        loop {
            let mut next = start;
            for other in others.clone().filter(|&other| self.members[other].priority.number() > own) {
                *effort = effort.checked_sub(1).ok_or(Gap::Effort)?;
                let (_, sum, _) = held(other).ok_or(Gap::Section)?;
                let response = self.members[other].bound.map_err(|_| Gap::RestsOn(other))?;
                next = next.saturating_add(self.jobs_within(other, wait, response).saturating_mul(sum));
            }
            if next <= wait {
                return Ok(wait);
            }
            wait = next;
            if wait > self.members[number].separation {
                return Err(Gap::BeyondPeriod);
            }
        }
    }
}
