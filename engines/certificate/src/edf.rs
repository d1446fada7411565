//! Verdicts under EDF: the demand criterion window by window, and a job that misses.

use crate::load::{Load, Outside, can_be_least, longest_segment, sum};
use crate::proof::{EdfHorizonRule, EdfMissProof, EdfWindowsProof};
use crate::{Flaw, Proven};
use horolog_model::{Arrival, Policy, Preemption, System, Task};
use num_bigint::BigInt;
use num_rational::BigRational;

/// One processor under EDF.
struct Processor<'a> {
    /// The tasks with deadlines: their jobs, D − J, and how long a job keeps the processor.
    tasks: Vec<Member<'a>>,
    outside: Outside<'a>,
    /// The longest non-preemptive job without deadline: it may block any window.
    endless: u128,
    /// A context switch that has begun comes before everything else.
    switch: u128,
}

struct Member<'a> {
    load: Load<'a>,
    window: i128,
    blocking: u128,
}

impl Member<'_> {
    /// Jobs with release and deadline in a window of `t`.
    fn due(&self, t: u128) -> u128 {
        let room = i128::try_from(t).unwrap_or(i128::MAX).saturating_sub(self.window);
        u128::try_from(room).map_or(0, |room| self.load.own_up_to(room))
    }
}

impl<'a> Processor<'a> {
    fn new(system: &'a System, own: &'a Task) -> Result<Processor<'a>, Flaw> {
        if system.policy() != Policy::Edf {
            return Err(Flaw::new(&own.name, "the system's policy is not EDF"));
        }
        let (mut tasks, mut endless) = (Vec::new(), 0);
        for task in system.tasks().iter().filter(|t| t.cpu == own.cpu) {
            if matches!(task.preemption, Preemption::Deferred(_)) {
                return Err(Flaw::new(&task.name, "deferred preemption under EDF cannot be proved"));
            }
            let (load, blocking) = (Load::of(system, task), longest_segment(task));
            match task.deadline {
                Some(d) => {
                    let jitter = i128::try_from(load.jitter).unwrap_or(i128::MAX);
                    tasks.push(Member { load, window: i128::from(d.as_ns()) - jitter, blocking });
                }
                None => endless = endless.max(blocking),
            }
        }
        let switch = u128::from(system.platform().context_switch_cost().as_ns());
        Ok(Processor { tasks, outside: Outside::new(system, own), endless, switch })
    }

    /// The work due in a window.
    fn due(&self, t: u128) -> Option<u128> {
        sum(self.tasks.iter().map(|m| m.due(t).checked_mul(m.load.wcet)))
    }

    /// The longest that a job whose deadline lies behind the window may take of it.
    fn blocking(&self, t: u128) -> u128 {
        let behind = |m: &&Member<'_>| m.window > 0 && m.window.unsigned_abs() > t;
        let longest = self.tasks.iter().filter(behind).map(|m| m.blocking).max().unwrap_or(0);
        longest.max(self.endless) + self.switch
    }

    /// The shortest window from which on up to `t` the blocking is the same.
    fn blocking_edge(&self, t: u128) -> u128 {
        let here = self.blocking(t) - self.switch;
        let edges =
            self.tasks.iter().filter(|m| m.blocking > here && m.window > 0).map(|m| m.window.unsigned_abs());
        edges.filter(|&edge| edge <= t).max().unwrap_or(0)
    }
}

/// Checks the demand criterion: it proves that every task of the processor meets its deadlines.
pub(crate) fn check_windows(
    system: &System,
    task: &Task,
    verdict: Proven,
    proof: &EdfWindowsProof,
) -> Result<(), Flaw> {
    let flaw = |reason: String| Flaw::new(&task.name, reason);
    if verdict != Proven::Meets {
        return Err(flaw("windows that hold prove no miss".into()));
    }
    let processor = Processor::new(system, task)?;
    let Some(shortest) = processor.tasks.iter().map(|m| m.window).min() else { return Ok(()) };
    let shortest =
        u128::try_from(shortest).map_err(|_| flaw("a job may be released after its own deadline".into()))?;
    check_horizon(&processor, task, proof)?;
    // Everything at and above `proved` is proved.
    let last_edge = processor.blocking_edge(u128::MAX);
    let mut proved = u128::from(proof.horizon_ns).max(last_edge.saturating_sub(1)) + 1;
    for entry in &proof.windows {
        let (window, needed) = (u128::from(entry.window_ns), u128::from(entry.needed_ns));
        let over = || flaw(format!("the work of window {window} ns leaves 128 bits"));
        let due = processor.due(window).ok_or_else(over)?;
        if window < proved && processor.due(proved - 1).ok_or_else(over)? != due {
            return Err(flaw(format!(
                "work falls due between {window} ns and {proved} ns, and no window is shown there"
            )));
        }
        let outside = processor.outside.demand(needed, false).ok_or_else(over)?;
        let demand = due + processor.blocking(window) + outside;
        if demand != needed || needed > window {
            return Err(flaw(format!("the window {window} ns needs {demand} ns, not {needed} ns")));
        }
        proved = proved.min(needed.max(processor.blocking_edge(window)));
    }
    if proved > shortest {
        return Err(flaw(format!("windows from {shortest} ns to {proved} ns are not shown")));
    }
    Ok(())
}

fn check_horizon(processor: &Processor<'_>, task: &Task, proof: &EdfWindowsProof) -> Result<(), Flaw> {
    let flaw = |reason: &str| Err(Flaw::new(&task.name, reason));
    let horizon = u128::from(proof.horizon_ns);
    let line = Line::of(processor);
    let one = BigRational::from_integer(1.into());
    match proof.rule {
        EdfHorizonRule::LinearBound => {
            let limit = BigRational::from_integer(horizon.into());
            if line.slope >= one {
                return flaw("utilisation is not below 1");
            }
            if horizon < line.valid_from || (one - line.slope) * limit < line.offset {
                return flaw("the line above the demand is not below the window at the horizon");
            }
        }
        EdfHorizonRule::BusyPeriod => {
            let tasks = processor.tasks.iter().map(|m| m.load.before(horizon).checked_mul(m.load.wcet));
            let work = sum(tasks)
                .and_then(|work| work.checked_add(processor.outside.demand(horizon, false)?))
                .and_then(|work| work.checked_add(processor.endless + processor.switch));
            if horizon == 0 || work.is_none_or(|work| work > horizon) {
                return flaw("the busy period is longer than the horizon");
            }
        }
        EdfHorizonRule::Hyperperiod => {
            if line.slope != one {
                return flaw("utilisation is not exactly 1");
            }
            match hyperperiod(processor) {
                Some(cycle) if horizon >= cycle + line.valid_from.max(line.straight_from) => {}
                _ => return flaw("the horizon does not span a hyperperiod"),
            }
        }
    }
    Ok(())
}

/// A straight line above the demand: offset + slope · t, valid from a window on.
struct Line {
    slope: BigRational,
    offset: BigRational,
    valid_from: u128,
    /// From here on measured loads are straight lines.
    straight_from: u128,
}

impl Line {
    fn of(processor: &Processor<'_>) -> Line {
        let big = |n: u128| BigRational::from_integer(BigInt::from(n));
        let mut line = Line {
            slope: big(0),
            offset: big(processor.endless + processor.switch),
            valid_from: 0,
            straight_from: 0,
        };
        for member in &processor.tasks {
            let Some(separation) = member.load.separation() else {
                line.offset += big(listed_work(member.load.task, member.load.wcet));
                continue;
            };
            // ⌊(t − (D − J))/T⌋ + 1 ≤ (t + T − (D − J))/T from t = D − J − T on.
            let share = BigRational::new(member.load.wcet.into(), separation.into());
            line.offset += &share * (big(separation) - BigRational::from_integer(member.window.into()));
            line.slope += share;
            let from = u128::try_from(member.window).unwrap_or(0).saturating_sub(separation);
            line.valid_from = line.valid_from.max(from);
        }
        line.add_outside(&processor.outside);
        line
    }

    fn add_outside(&mut self, outside: &Outside<'_>) {
        let big = |n: u128| BigRational::from_integer(BigInt::from(n));
        let mut interrupts = |length: u128, separation: u128, jitter: u128| {
            // ⌈(x + J)/T⌉ ≤ (x + J + T − 1)/T.
            let share = BigRational::new(length.into(), separation.into());
            self.offset += &share * big(jitter + separation - 1);
            self.slope += share;
        };
        let (loads, length) = &outside.release_interrupts;
        for load in loads.iter() {
            if let Some(separation) = load.separation() {
                interrupts(*length, separation, load.jitter);
            }
        }
        if let Some((tick, length)) = outside.tick_interrupt {
            interrupts(length, tick, 0);
        }
        for load in loads.iter().filter(|l| l.separation().is_none()) {
            self.offset += big(listed_work(load.task, *length));
        }
        for measured in &outside.interferences {
            let u = BigRational::new(measured.utilisation_ppb.into(), 1_000_000_000.into());
            let period = u128::from(measured.period.as_ns());
            self.offset += &u * (big(1) - &u) * big(period);
            self.slope += u;
            self.straight_from = self.straight_from.max(period);
        }
        if !outside.interferences.is_empty() {
            // Their sum is rounded up to a whole ns.
            self.offset += big(1);
        }
    }
}

/// All the work of a list of arrivals.
fn listed_work(task: &Task, each: u128) -> u128 {
    match &task.arrival {
        Arrival::Aperiodic { arrivals } => each.saturating_mul(arrivals.len() as u128),
        _ => 0,
    }
}

/// The least common multiple of all separations; `None` where arrivals are listed or it leaves 64 bits.
fn hyperperiod(processor: &Processor<'_>) -> Option<u128> {
    let mut separations = Vec::new();
    for member in &processor.tasks {
        separations.push(member.load.separation()?);
    }
    for load in &processor.outside.release_interrupts.0 {
        separations.push(load.separation()?);
    }
    separations.extend(processor.outside.tick_interrupt.map(|(tick, _)| tick));
    let mut cycle = 1_u128;
    for separation in separations {
        let (mut a, mut b) = (cycle, separation);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        cycle = (cycle / a).checked_mul(separation).filter(|&c| c <= u128::from(u64::MAX))?;
    }
    Some(cycle)
}

/// Checks that the job with the proof's deadline misses it: every iterate is at most the job's true end, and the last
/// is late.
pub(crate) fn check_miss(
    system: &System,
    task: &Task,
    verdict: Proven,
    proof: &EdfMissProof,
) -> Result<(), Flaw> {
    let flaw = |reason: String| Flaw::new(&task.name, reason);
    if verdict != Proven::Misses || task.deadline.is_none() {
        return Err(flaw("a late job proves a miss, nothing else".into()));
    }
    if !can_be_least(system, task) {
        return Err(flaw(
            "costs, interference, offsets or listed arrivals: the worst case need not happen".into(),
        ));
    }
    let processor = Processor::new(system, task)?;
    let deadline_at = u128::from(proof.deadline_at_ns);
    let own = processor.tasks.iter().find(|m| m.load.task.name == task.name);
    let own = own.ok_or_else(|| flaw("it has no deadline".into()))?;
    if proof.iterates.is_empty() {
        // Released after its full jitter, it ends C later at the earliest.
        let late = i128::try_from(own.load.wcet).is_ok_and(|wcet| wcet > own.window);
        return if late { Ok(()) } else { Err(flaw("no iterate is shown".into())) };
    }
    let jobs = own.due(deadline_at);
    if jobs == 0 {
        return Err(flaw("no job of it can be due there".into()));
    }
    let blocking = match &proof.blocker {
        None => 0,
        Some(name) => {
            let blocker = processor.tasks.iter().find(|m| &m.load.task.name == name);
            let behind = |m: &&Member<'_>| m.window > 0 && m.window.unsigned_abs() > deadline_at;
            let blocker = blocker.filter(behind).filter(|m| m.load.task.name != task.name);
            blocker.map(|m| m.blocking).ok_or_else(|| flaw(format!("`{name}` cannot block it there")))?
        }
    };
    let preemptive = own.blocking == 0;
    let own_work = own.load.wcet * (if preemptive { jobs } else { jobs - 1 });
    let closed = !preemptive && blocking == 0;
    let demand = |x: u128| {
        let others = processor.tasks.iter().filter(|m| m.load.task.name != task.name).map(|m| {
            let released = if closed { m.load.up_to(x) } else { m.load.before(x) };
            m.due(deadline_at).min(released).checked_mul(m.load.wcet)
        });
        sum(others)?.checked_add(blocking + own_work)
    };
    let mut at = blocking + own_work;
    for (place, &iterate) in proof.iterates.iter().enumerate() {
        // Each is at most the demand at the one before, so none passes the least fixed point.
        let limit = if place == 0 { Some(at) } else { demand(at) };
        if limit.is_none_or(|limit| u128::from(iterate) > limit) {
            return Err(flaw(format!("iterate {place} is {iterate} ns, above its demand")));
        }
        at = u128::from(iterate);
    }
    let end = if preemptive { at } else { at + own.load.wcet };
    if end <= deadline_at {
        return Err(flaw(format!("the job ends at {end} ns by these iterates, not after {deadline_at} ns")));
    }
    Ok(())
}
