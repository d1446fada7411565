//! All reserves of a machine, and the events that change them.
//!
//! Every event carries its time, ns on one clock that never goes back (`CLOCK_MONOTONIC`). An event is carried out whole or not at all.

use crate::admission::{Counted, Judgement, judge, largest_budget};
use crate::amount::Amount;
use crate::domain::Domain;
use crate::quota::Quota;
use crate::refusal::Refusal;
use crate::reserve::{Departed, Kind, Life, Owner, Reserve, Seat};
use horolog_time::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A process or thread, told from a later one of the same number by when it started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// When it started, in the kernel's ticks since boot.
    pub started: u64,
}

/// One reserve that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Part {
    /// How much.
    pub amount: Amount,
    /// For how many threads, each of which gets the whole amount.
    pub threads: usize,
    /// What happens at the end of a budget.
    pub kind: Kind,
    /// The index of the domain.
    pub domain: usize,
    /// A name for people.
    pub name: Option<String>,
}

impl Part {
    /// A hard reserve for one thread in the first domain.
    #[must_use]
    pub fn new(amount: Amount) -> Part {
        Part { amount, threads: 1, kind: Kind::Hard, domain: 0, name: None }
    }
}

/// What was granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Granted {
    /// The number of the reserve.
    pub id: u64,
    /// How much.
    pub amount: Amount,
}

/// A thread that was given a seat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attached {
    /// The place among the seats.
    pub seat: usize,
    /// What the thread gets.
    pub amount: Amount,
}

/// What is gone because a process ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Dropped {
    /// Reserves that lived as long as it.
    pub reserves: Vec<u64>,
    /// Threads that were bound to those and still live: they are to be given back how they were scheduled.
    pub threads: Vec<Process>,
}

/// The state as it is kept on disk.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The number of the next reserve.
    pub next: u64,
    /// All reserves.
    pub reserves: Vec<Reserve>,
    /// Amounts that are gone and still counted, with their domain.
    pub departed: Vec<(usize, Departed)>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Kernel {
    domains: Vec<Domain>,
    reserves: BTreeMap<u64, Reserve>,
    departed: Vec<(usize, Departed)>,
    /// Threads under the same mechanism that are no reserves.
    foreign: Vec<(usize, Amount)>,
    next: u64,
}

impl Kernel {
    /// No reserves.
    #[must_use]
    pub fn new(domains: Vec<Domain>) -> Kernel {
        Kernel { domains, reserves: BTreeMap::new(), departed: Vec::new(), foreign: Vec::new(), next: 1 }
    }

    /// The domains.
    #[must_use]
    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    /// All reserves, by number.
    pub fn reserves(&self) -> impl Iterator<Item = &Reserve> {
        self.reserves.values()
    }

    /// One of them.
    #[must_use]
    pub fn reserve(&self, id: u64) -> Option<&Reserve> {
        self.reserves.get(&id)
    }

    /// The reserve to which a thread is bound.
    #[must_use]
    pub fn reserve_of(&self, thread: Process) -> Option<u64> {
        self.reserves().find(|reserve| reserve.threads().any(|bound| bound == thread)).map(|one| one.id)
    }

    /// Says which threads are under the mechanism without a reserve. What was promised before stays promised: whether that still holds is
    /// the answer.
    pub fn set_foreign(&mut self, foreign: Vec<(usize, Amount)>) {
        self.foreign = foreign;
    }

    /// Whether every promise of a domain is still proved.
    pub fn judge_domain(&self, domain: usize, now: u64) -> Judgement {
        self.domains.get(domain).map_or(Judgement::Holds, |place| judge(place, &self.counted(domain, now)))
    }

    /// Asks for reserves, all or none.
    ///
    /// # Errors
    /// Why none of them was granted.
    pub fn create(
        &mut self,
        parts: &[Part],
        owner: Owner,
        quota: &Quota,
        now: u64,
    ) -> Result<Vec<Granted>, Refusal> {
        self.forget_departed(now);
        if parts.is_empty() {
            return Err(bad_request("the request names no reserve: name one at least"));
        }
        let mut tried = self.clone();
        let mut granted = Vec::with_capacity(parts.len());
        for part in parts {
            tried.check(part)?;
            tried.check_quota(owner.uid, None, &part.amount, part.threads, quota)?;
            granted.push(tried.put_in(part, owner, now));
        }
        if parts.iter().any(|part| tried.judge_domain(part.domain, now) != Judgement::Holds) {
            return Err(self.explain_new(&tried, parts, owner, now));
        }
        *self = tried;
        Ok(granted)
    }

    /// Why these parts are refused: the first one that does not go in beside those before it, and how large it may be beside all others.
    fn explain_new(&self, tried: &Kernel, parts: &[Part], owner: Owner, now: u64) -> Refusal {
        let mut one_by_one = self.clone();
        let holds = |part: &Part| {
            one_by_one.put_in(part, owner, now);
            one_by_one.judge_domain(part.domain, now) == Judgement::Holds
        };
        // Less never holds worse, so one of them fails: at the latest the last.
        let failing = parts.iter().map(holds).position(|holds| !holds).unwrap_or(parts.len() - 1);
        let judged = tried.judge_domain(parts[failing].domain, now);
        let id = self.next + failing as u64;
        tried.explain(id, judged, now, New { first: self.next, count: parts.len() })
    }

    /// Puts a new reserve among the others, without a judgement.
    fn put_in(&mut self, part: &Part, owner: Owner, now: u64) -> Granted {
        let id = self.next;
        let reserve = Reserve {
            id,
            name: part.name.clone(),
            owner,
            kind: part.kind,
            amount: part.amount,
            domain: part.domain,
            seats: vec![Seat::Free { from: now }; part.threads],
            former: None,
        };
        self.reserves.insert(id, reserve);
        self.next = id.saturating_add(1);
        Granted { id, amount: part.amount }
    }

    /// Changes the amount of a reserve; where that is refused, the old one stays. Until the old period is over the larger of both densities is counted.
    ///
    /// # Errors
    /// Why it was refused.
    pub fn resize(
        &mut self,
        id: u64,
        amount: Amount,
        caller: u32,
        quota: &Quota,
        now: u64,
    ) -> Result<Granted, Refusal> {
        self.forget_departed(now);
        let old = self.owned(id, caller)?.clone();
        let threads = old.seats.len();
        self.check(&Part { amount, threads, kind: old.kind, domain: old.domain, name: None })?;
        self.check_quota(old.owner.uid, Some(id), &amount, threads, quota)?;
        let until = now.saturating_add(old.amount.period.as_ns());
        let tick = self.domains[old.domain].tick.as_ns();
        // Of the amounts before, the densest one, as long as the longest.
        let mut former = Departed { amount: old.amount, until };
        if let Some(earlier) = old.former {
            let densest =
                if is_denser(&earlier.amount, &old.amount, tick) { earlier.amount } else { old.amount };
            former = Departed { amount: densest, until: until.max(earlier.until) };
        }
        let changed = Reserve { amount, former: Some(former), ..old.clone() };
        self.reserves.remove(&id);
        let admitted = self.admit(changed, now);
        if admitted.is_err() {
            self.reserves.insert(id, old);
        }
        admitted.map(|()| Granted { id, amount })
    }

    /// Takes back a change that could not be carried out: the amount is as before.
    pub fn undo_resize(&mut self, before: Reserve) {
        self.reserves.insert(before.id, before);
    }

    /// Gives a reserve back. Its bound threads are to be given back how they were scheduled.
    ///
    /// # Errors
    /// There is no such reserve, or it is another user's.
    pub fn delete(&mut self, id: u64, caller: u32, now: u64) -> Result<Vec<Process>, Refusal> {
        self.owned(id, caller)?;
        Ok(self.remove(id, now))
    }

    fn remove(&mut self, id: u64, now: u64) -> Vec<Process> {
        let Some(reserve) = self.reserves.remove(&id) else { return Vec::new() };
        let mut counted: Vec<Departed> = Vec::new();
        for seat in &reserve.seats {
            let amount = self.counted_amount(&reserve, now);
            // Who never ran leaves nothing behind.
            let until = match seat {
                Seat::Bound(_) => now.saturating_add(reserve.amount.period.as_ns()),
                Seat::Free { from } => *from,
            };
            let until = reserve.former.map_or(until, |former| until.max(former.until));
            counted.push(Departed { amount, until });
        }
        self.departed
            .extend(counted.into_iter().filter(|one| one.until > now).map(|one| (reserve.domain, one)));
        reserve.threads().collect()
    }

    /// Gives a thread a seat of a reserve.
    ///
    /// # Errors
    /// Why not; [`Refusal::Later`] where a seat is free soon.
    pub fn attach(&mut self, id: u64, thread: Process, caller: u32, now: u64) -> Result<Attached, Refusal> {
        self.owned(id, caller)?;
        if let Some(other) = self.reserve_of(thread) {
            return Err(Refusal::BoundAlready { tid: thread.id, id: other });
        }
        let reserve = self.reserves.get_mut(&id).ok_or(Refusal::NoSuchReserve { id })?;
        let free = reserve.seats.iter().enumerate().filter_map(|(place, seat)| match seat {
            Seat::Free { from } => Some((*from, place)),
            Seat::Bound(_) => None,
        });
        let Some((from, seat)) = free.min() else {
            return Err(Refusal::Full { id, seats: reserve.seats.len() });
        };
        if from > now {
            return Err(Refusal::Later { id, after: Span::from_ns(from - now) });
        }
        reserve.seats[seat] = Seat::Bound(thread);
        Ok(Attached { seat, amount: reserve.amount })
    }

    /// Takes back a seat that the operating system did not grant: nothing ran on it.
    pub fn undo_attach(&mut self, id: u64, thread: Process, now: u64) {
        self.leave(id, thread, now);
    }

    /// Takes a thread's seat away; what it took is counted for a period more.
    ///
    /// # Errors
    /// It is not bound there, or the reserve is another user's.
    pub fn detach(&mut self, id: u64, thread: Process, caller: u32, now: u64) -> Result<(), Refusal> {
        let period = self.owned(id, caller)?.amount.period.as_ns();
        if self.leave(id, thread, now.saturating_add(period)) {
            Ok(())
        } else {
            Err(Refusal::NotBound { tid: thread.id, id })
        }
    }

    fn leave(&mut self, id: u64, thread: Process, from: u64) -> bool {
        let Some(reserve) = self.reserves.get_mut(&id) else { return false };
        let former = reserve.former.map_or(0, |former| former.until);
        let Some(seat) = reserve.seats.iter_mut().find(|seat| **seat == Seat::Bound(thread)) else {
            return false;
        };
        *seat = Seat::Free { from: from.max(former) };
        true
    }

    /// A process or thread has ended: its seat is free, and reserves that live as long as it are gone.
    pub fn process_ended(&mut self, process: Process, now: u64) -> Dropped {
        if let Some(id) = self.reserve_of(process) {
            let period = self.reserves[&id].amount.period.as_ns();
            self.leave(id, process, now.saturating_add(period));
        }
        let held = self.reserves().filter(|one| one.owner.life == Life::Client(process)).map(|one| one.id);
        let reserves: Vec<u64> = held.collect();
        let threads = reserves.iter().flat_map(|&id| self.remove(id, now)).collect();
        Dropped { reserves, threads }
    }

    /// What is to be kept on disk.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            next: self.next,
            reserves: self.reserves.values().cloned().collect(),
            departed: self.departed.clone(),
        }
    }

    /// Takes over what a former daemon had granted. Everything is admitted again, in the order of numbers; what is not is left out and told, with the
    /// reason. Seats stay bound: the caller ends those whose thread has ended.
    pub fn restore(&mut self, snapshot: Snapshot, now: u64) -> Vec<(Reserve, Refusal)> {
        let mut left_out = Vec::new();
        self.next = self.next.max(snapshot.next);
        self.departed =
            snapshot.departed.into_iter().filter(|(domain, _)| *domain < self.domains.len()).collect();
        self.forget_departed(now);
        for reserve in snapshot.reserves {
            let Reserve { amount, kind, domain, .. } = reserve;
            let part = Part { amount, threads: reserve.seats.len(), kind, domain, name: None };
            self.next = self.next.max(reserve.id.saturating_add(1));
            let admitted = self.check(&part).and_then(|()| self.admit(reserve.clone(), now));
            if let Err(refusal) = admitted {
                left_out.push((reserve, refusal));
            }
        }
        left_out
    }

    fn owned(&self, id: u64, caller: u32) -> Result<&Reserve, Refusal> {
        let reserve = self.reserves.get(&id).ok_or(Refusal::NoSuchReserve { id })?;
        if caller == 0 || caller == reserve.owner.uid { Ok(reserve) } else { Err(Refusal::NotYours { id }) }
    }

    fn forget_departed(&mut self, now: u64) {
        self.departed.retain(|(_, one)| one.until > now);
        for reserve in self.reserves.values_mut() {
            reserve.former = reserve.former.filter(|former| former.until > now);
        }
    }

    /// What a part must be like by itself.
    fn check(&self, part: &Part) -> Result<(), Refusal> {
        let Part { amount, threads, .. } = part;
        let Some(domain) = self.domains.get(part.domain) else {
            return Err(bad_request(&format!(
                "there is no domain {}: there are {}",
                part.domain,
                self.domains.len()
            )));
        };
        if let Some(flaw) = part.name.as_deref().and_then(flaw_of_name) {
            return Err(bad_request(&flaw));
        }
        if let Some(flaw) = amount.flaw() {
            return Err(bad_request(&flaw));
        }
        if *threads == 0 || *threads > MOST_SEATS {
            return Err(bad_request(&format!("{threads} threads: ask for 1 to {MOST_SEATS}")));
        }
        let limits = [
            (amount.budget < domain.least_budget, "budget", amount.budget, "least", domain.least_budget),
            (amount.period < domain.least_period, "period", amount.period, "least", domain.least_period),
            (
                amount.period > domain.longest_period,
                "period",
                amount.period,
                "greatest",
                domain.longest_period,
            ),
        ];
        if let Some((_, what, asked, which, limit)) = limits.into_iter().find(|(is_beyond, ..)| *is_beyond) {
            return Err(bad_request(&format!(
                "the {what} {asked} is beyond the {which} that this machine enforces, {limit}"
            )));
        }
        match part.kind {
            Kind::Hard => Ok(()),
            kind => Err(Refusal::NotEnforced { kind, why: NO_SOFT.to_owned() }),
        }
    }

    fn check_quota(
        &self,
        uid: u32,
        except: Option<u64>,
        amount: &Amount,
        threads: usize,
        quota: &Quota,
    ) -> Result<(), Refusal> {
        let refuse = |why: String, largest| Err(Refusal::Quota { why, largest });
        let held = || self.reserves().filter(|one| one.owner.uid == uid && Some(one.id) != except);
        if held().count() >= quota.reserves {
            let why = format!("{} reserves at the most, with this one there would be more", quota.reserves);
            return refuse(why, None);
        }
        let bound: usize = held().map(|one| one.seats.len()).sum();
        if bound.saturating_add(threads) > quota.threads {
            return refuse(format!("{} threads at the most, and {bound} are held", quota.threads), None);
        }
        if amount.budget > quota.longest_budget {
            let largest = Amount { budget: quota.longest_budget, ..*amount };
            let largest = largest.flaw().is_none().then_some(largest);
            return refuse(format!("a budget of {} at the most", quota.longest_budget), largest);
        }
        let share = |amount: &Amount, threads: usize| {
            let budget = u128::from(amount.budget.as_ns()) * 1_000_000 * threads as u128;
            budget.div_ceil(u128::from(amount.period.as_ns().max(1)))
        };
        let used: u128 = held().map(|one| share(&one.amount, one.seats.len())).sum();
        let room = u128::from(quota.share_ppm).saturating_sub(used);
        if share(amount, threads) > room {
            let most = room * u128::from(amount.period.as_ns()) / (1_000_000 * threads as u128);
            let most = u64::try_from(most).unwrap_or(u64::MAX);
            let largest = Amount { budget: Span::from_ns(most), ..*amount };
            let why =
                format!("{} parts of a million of a CPU at the most, and {used} are held", quota.share_ppm);
            return refuse(why, largest.flaw().is_none().then_some(largest));
        }
        Ok(())
    }

    /// The amount that one seat of a reserve counts as: after a change, the denser one until the old period is over.
    fn counted_amount(&self, reserve: &Reserve, now: u64) -> Amount {
        let tick = self.domains[reserve.domain].tick.as_ns();
        match reserve.former {
            Some(former) if former.until > now && is_denser(&former.amount, &reserve.amount, tick) => {
                former.amount
            }
            _ => reserve.amount,
        }
    }

    /// Everything that takes from a domain at `now`.
    fn counted(&self, domain: usize, now: u64) -> Vec<Counted> {
        let reserves = self.reserves.values().filter(|one| one.domain == domain).map(|one| Counted {
            amount: self.counted_amount(one, now),
            threads: one.seats.len() as u64,
            reserve: Some(one.id),
            is_promised: true,
        });
        let nobodys = |amount: Amount| Counted { amount, threads: 1, reserve: None, is_promised: false };
        let departed = self.departed.iter().filter(|(place, one)| *place == domain && one.until > now);
        let foreign = self.foreign.iter().filter(|(place, _)| *place == domain);
        let gone = departed.map(|(_, one)| nobodys(one.amount));
        reserves.chain(gone).chain(foreign.map(|(_, amount)| nobodys(*amount))).collect()
    }

    /// Puts a reserve among the others if every promise still holds.
    fn admit(&mut self, reserve: Reserve, now: u64) -> Result<(), Refusal> {
        let (id, place) = (reserve.id, reserve.domain);
        self.reserves.insert(id, reserve);
        let judged = self.judge_domain(place, now);
        if judged == Judgement::Holds {
            return Ok(());
        }
        let refusal = self.explain(id, judged, now, New { first: u64::MAX, count: 0 });
        self.reserves.remove(&id);
        Err(refusal)
    }

    /// Why the domain of a reserve that was just put in does not hold, and what would.
    fn explain(&self, id: u64, judged: Judgement, now: u64, new: New) -> Refusal {
        let reserve = self.reserves[&id].clone();
        let (asked, domain) = (reserve.amount, self.domains[reserve.domain].clone());
        let counted = self.counted(reserve.domain, now);
        let place = match judged {
            Judgement::TooShort { place, .. } | Judgement::TooDense { place, .. } => Some(place),
            Judgement::OverShare { .. } | Judgement::Holds => None,
        };
        let who = place.and_then(|place| counted[place].reserve).unwrap_or(id);
        let largest = largest_budget(&domain, domain.least_budget.as_ns(), asked.budget.as_ns(), |budget| {
            let amount = Amount { budget: Span::from_ns(budget), ..asked };
            let mut with = counted.clone();
            if let Some(own) = with.iter_mut().find(|one| one.reserve == Some(id)) {
                let trial = Reserve { amount, ..reserve.clone() };
                own.amount = self.counted_amount(&trial, now);
            }
            with
        });
        let m = domain.processors();
        let (excess_ppm, why) = match judged {
            Judgement::TooShort { by_ns, .. } => (
                0,
                format!(
                    "its budget and one tick of the kernel ({}), by which it may be overdrawn, are {} more than the \
                     deadline {}",
                    domain.tick,
                    Span::from_ns(by_ns),
                    asked.deadline
                ),
            ),
            Judgement::OverShare { excess_ppm } => (
                excess_ppm,
                format!(
                    "the kernel gives reserves {} parts of a million of each of {m} CPUs",
                    domain.share_ppm
                ),
            ),
            Judgement::TooDense { excess_ppm, .. } => (
                excess_ppm,
                format!(
                    "budgets with a tick ({}), each divided by its deadline, may be {m} in all, less {} times the largest of \
                     them",
                    domain.tick,
                    m.saturating_sub(1)
                ),
            ),
            Judgement::Holds => (0, String::new()),
        };
        Refusal::NoRoom {
            reserve: (who < new.first).then_some(who),
            whom: match who.checked_sub(new.first) {
                None => format!("reserve {who}").into(),
                Some(_) if new.count == 1 => "the new reserve".into(),
                Some(place) => format!("part {} of the request", place + 1).into(),
            },
            part: (new.count > 1).then(|| u32::try_from(id - new.first + 1).unwrap_or(u32::MAX)),
            excess_ppm,
            largest: largest.map(|budget| Amount { budget: Span::from_ns(budget), ..asked }),
            granted_after: self.granted_after(reserve.domain, now),
            why,
        }
    }

    /// When the domain holds with what it has now, because what was given back counts no more.
    fn granted_after(&self, domain: usize, now: u64) -> Option<Span> {
        let departed = self.departed.iter().map(|(_, one)| one.until);
        let former = self.reserves().filter_map(|one| one.former.map(|former| former.until));
        let mut times: Vec<u64> = departed.chain(former).filter(|&until| until > now).collect();
        times.sort_unstable();
        times.dedup();
        let holds = |at: &u64| self.judge_domain(domain, *at) == Judgement::Holds;
        // What is counted only becomes less with time.
        let first = times.partition_point(|at| !holds(at));
        times.get(first).map(|at| Span::from_ns(at - now))
    }
}

/// Which reserves are asked for, and are not there yet.
#[derive(Clone, Copy)]
struct New {
    /// Their numbers begin here.
    first: u64,
    /// How many there are.
    count: usize,
}

/// The most bytes of a reserve's name.
const LONGEST_NAME: usize = 64;

/// What is wrong with a name: it is shown to every user, on terminals too.
fn flaw_of_name(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some("the name is empty: leave it out, or give one".to_owned());
    }
    if name.len() > LONGEST_NAME {
        return Some(format!("the name has {} bytes: {LONGEST_NAME} at the most", name.len()));
    }
    let odd = name.chars().find(|c| c.is_control())?;
    Some(format!("the name has the control character {}: leave it out", odd.escape_default()))
}

/// The most threads of one reserve.
const MOST_SEATS: usize = 4_096;

const NO_SOFT: &str = "SCHED_DEADLINE, the mechanism here, keeps a thread from running once its budget is used up, and its flag to \
                       reclaim gives it nearly a whole CPU instead of a share with others; ask for a hard one, or use `horolog \
                       serve TID`, which lets a thread go on in the normal class";

fn bad_request(why: &str) -> Refusal {
    Refusal::BadRequest { why: why.to_owned() }
}

/// Whether (C + tick) / D of `one` is larger than that of `other`.
fn is_denser(one: &Amount, other: &Amount, tick: u64) -> bool {
    let need = |amount: &Amount| u128::from(amount.budget.as_ns()) + u128::from(tick);
    need(one) * u128::from(other.deadline.as_ns()) > need(other) * u128::from(one.deadline.as_ns())
}
