//! Every run of a sporadic system on m processors, in whole multiples of a unit: exact for such releases and executions.
//!
//! A state says of each task how long ago its last job was released, up to the period, and what is left of that job. At each multiple of the
//! unit every task that may release a job does or does not. The states that are reached from the one in which nothing has been released yet are closed:
//! where none of them has a late job, no run in whole units has one. They are the certificate; [`is_closed`] closes them once more.
//!
//! Jobs execute for their wcet. With preemption anywhere and an order of jobs that is fixed at their releases, a job that is shorter makes no
//! other one later (`ha94`). Ties: decision 0008.

use super::SporadicTask;
use crate::edf::horizon::gcd;
use std::collections::HashMap;

/// What a search over all runs has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Search {
    /// No job is late in any run in whole units.
    Meets {
        /// The closed set, how many states it has.
        states: usize,
        /// The worst response of each task, ns.
        worst: Vec<u64>,
    },
    /// A run with a late job.
    Misses {
        /// The place of the task.
        task: usize,
        /// Each release up to then: the instant, ns, and the place of the task.
        releases: Vec<(u64, usize)>,
        /// How many states were visited.
        states: usize,
    },
    /// More steps than allowed, or more than 128 bits a state.
    TooMany,
}

/// How jobs are ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Absolute deadline.
    Deadline,
    /// [`SporadicTask::rank`].
    Rank,
}

/// The greatest common divisor of all times of a set, ns: the unit of [`search_sporadic`].
#[must_use]
pub fn unit_of(tasks: &[SporadicTask]) -> u64 {
    tasks.iter().flat_map(|task| [task.wcet, task.deadline, task.period]).fold(0, gcd)
}

/// Where the numbers of a task stand in a state, and the task in units.
#[derive(Clone, Copy, Debug)]
struct Field {
    wcet: u64,
    period: u64,
    deadline: u64,
    rank: u64,
    is_periodic: bool,
    since_at: u32,
    left_at: u32,
    since_mask: u128,
    left_mask: u128,
}

impl Field {
    fn since(&self, state: u128) -> u64 {
        (state >> self.since_at & self.since_mask) as u64
    }

    fn left(&self, state: u128) -> u64 {
        (state >> self.left_at & self.left_mask) as u64
    }
}

struct Machine {
    fields: Vec<Field>,
    processors: usize,
    by: By,
    unit: u64,
    /// Jobs that are there, the first ones first.
    order: Vec<(u64, u64, usize)>,
}

/// What comes after a unit of time.
enum After {
    State(u128),
    Late(usize),
}

impl Machine {
    fn new(tasks: &[SporadicTask], processors: u32, by: By) -> Option<Machine> {
        let unit = unit_of(tasks).max(1);
        let mut at = 0_u32;
        let mut fields = Vec::with_capacity(tasks.len());
        for task in tasks {
            let (period, wcet) = (task.period / unit, task.wcet / unit);
            let (since_bits, left_bits) =
                (u64::BITS - period.leading_zeros(), u64::BITS - wcet.leading_zeros());
            if at + since_bits + left_bits > 128 {
                return None;
            }
            fields.push(Field {
                wcet,
                period,
                deadline: task.deadline / unit,
                rank: u64::from(task.rank),
                is_periodic: task.is_periodic,
                since_at: at,
                left_at: at + since_bits,
                since_mask: (1 << since_bits) - 1,
                left_mask: (1 << left_bits) - 1,
            });
            at += since_bits + left_bits;
        }
        Some(Machine { fields, processors: processors as usize, by, unit, order: Vec::new() })
    }

    /// Nothing has been released for a long time. Of a periodic task nothing has been released at all, which no later state says: its
    /// numbers are both 0.
    fn start(&self) -> u128 {
        let sporadic = self.fields.iter().filter(|field| !field.is_periodic);
        sporadic.map(|field| u128::from(field.period) << field.since_at).fold(0, |all, one| all | one)
    }

    /// The places of the tasks that may release a job now, as bits, and those of the tasks that have to.
    fn may_release(&self, state: u128) -> (u64, u64) {
        let (mut free, mut forced) = (0, 0);
        for (place, field) in self.fields.iter().enumerate() {
            let since = field.since(state);
            match (field.left(state), field.is_periodic) {
                (0, true) if since == 0 => free |= 1 << place,
                (0, true) if since == field.period => forced |= 1 << place,
                (0, false) if since == field.period => free |= 1 << place,
                _ => {}
            }
        }
        (free, forced)
    }

    /// With the releases of `mask`, a unit later; `tell` hears of each job that ends, with its response.
    fn after(&mut self, state: u128, mask: u64, mut tell: impl FnMut(usize, u64)) -> After {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        let mut next = 0_u128;
        for (place, field) in self.fields.iter().enumerate() {
            let is_released = mask >> place & 1 == 1;
            let (since, left) =
                if is_released { (0, field.wcet) } else { (field.since(state), field.left(state)) };
            // A periodic task that has not begun goes on like that.
            let has_begun = is_released || since > 0;
            let later = if has_begun { (since + 1).min(field.period) } else { 0 };
            next |= u128::from(later) << field.since_at | u128::from(left) << field.left_at;
            if left > 0 {
                let key = match self.by {
                    By::Deadline => field.deadline - since,
                    By::Rank => field.rank,
                };
                order.push((key, u64::MAX - since, place));
            }
        }
        order.sort_unstable();
        let mut late = None;
        for (rank, &(_, since, place)) in order.iter().enumerate() {
            let (field, end) = (&self.fields[place], u64::MAX - since + 1);
            let runs = rank < self.processors;
            if runs {
                next -= 1 << field.left_at;
            }
            match field.left(next) {
                0 => tell(place, end),
                _ if end >= field.deadline => late = Some(place),
                _ => {}
            }
        }
        self.order = order;
        late.map_or(After::State(next), After::Late)
    }
}

/// The closed set of states that a search has reached.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// Each state's place in the lists.
    places: HashMap<u128, u32>,
    states: Vec<u128>,
    /// From which state, with which releases.
    from: Vec<(u32, u64)>,
}

impl Reached {
    /// The states, as they were found.
    #[must_use]
    pub fn states(&self) -> &[u128] {
        &self.states
    }

    fn add(&mut self, state: u128, from: (u32, u64)) {
        let place = self.states.len() as u32;
        if let std::collections::hash_map::Entry::Vacant(entry) = self.places.entry(state) {
            entry.insert(place);
            self.states.push(state);
            self.from.push(from);
        }
    }

    /// The releases that lead to a state and then those of `last`, each with its instant in units.
    fn releases(&self, place: u32, last: u64) -> Vec<(u64, usize)> {
        let (mut masks, mut at) = (vec![last], place);
        while at != 0 {
            let (before, mask) = self.from[at as usize];
            masks.push(mask);
            at = before;
        }
        masks.reverse();
        let begin = masks.iter().position(|&mask| mask != 0).unwrap_or(0);
        let at_instant = |(instant, &mask): (usize, &u64)| {
            let tasks = (0..u64::BITS as usize).filter(move |task| mask >> task & 1 == 1);
            tasks.map(move |task| (instant as u64, task)).collect::<Vec<_>>()
        };
        masks[begin..].iter().enumerate().flat_map(at_instant).collect()
    }
}

/// Searches all runs with releases at multiples of the unit ([`unit_of`]), up to `most` steps, each a state with what may be released in it.
///
/// Constrained deadlines, tasks that can be preempted anywhere, at most 64 of them.
#[must_use]
pub fn search_sporadic(tasks: &[SporadicTask], processors: u32, by: By, most: u64) -> (Search, Reached) {
    let mut reached = Reached::default();
    let machine = Machine::new(tasks, processors, by).filter(|_| tasks.len() <= 64);
    let Some(mut machine) = machine else { return (Search::TooMany, reached) };
    let mut worst = vec![0_u64; tasks.len()];
    reached.add(machine.start(), (0, 0));
    let (mut next, mut steps) = (0, 0_u64);
    while next < reached.states.len() {
        let state = reached.states[next];
        let (free, forced) = machine.may_release(state);
        // All subsets of the tasks that may release, the empty one last.
        let mut mask = free;
        loop {
            steps += 1;
            if steps > most {
                return (Search::TooMany, reached);
            }
            let after =
                machine.after(state, mask | forced, |task, response| worst[task] = worst[task].max(response));
            match after {
                After::State(after) => reached.add(after, (next as u32, mask | forced)),
                After::Late(task) => {
                    let releases = reached.releases(next as u32, mask | forced).into_iter();
                    let releases = releases.map(|(units, task)| (units * machine.unit, task)).collect();
                    return (Search::Misses { task, releases, states: reached.states.len() }, reached);
                }
            }
            if mask == 0 {
                break;
            }
            mask = (mask - 1) & free;
        }
        next += 1;
    }
    let worst = worst.into_iter().map(|units| units * machine.unit).collect();
    (Search::Meets { states: reached.states.len(), worst }, reached)
}

/// Whether a list of states has the first one, none of them has a late job after it, and each leads to states of the list alone.
#[must_use]
pub fn is_closed(tasks: &[SporadicTask], processors: u32, by: By, states: &[u128]) -> bool {
    let machine = Machine::new(tasks, processors, by).filter(|_| tasks.len() <= 64);
    let Some(mut machine) = machine else { return false };
    let known: std::collections::HashSet<u128> = states.iter().copied().collect();
    known.contains(&machine.start())
        && states.iter().all(|&state| {
            let (free, forced) = machine.may_release(state);
            let mut mask = free;
            loop {
                match machine.after(state, mask | forced, |_, _| {}) {
                    After::State(after) if known.contains(&after) => {}
                    _ => return false,
                }
                if mask == 0 {
                    return true;
                }
                mask = (mask - 1) & free;
            }
        })
}
