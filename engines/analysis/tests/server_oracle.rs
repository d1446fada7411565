//! Bounds below and behind servers against a scheduler that looks at every unit of time and shares no code with them.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::arrival_curve::ArrivalCurve;
use horolog_analysis::cpu_model::InterruptLoad;
use horolog_analysis::server::queue::{self, QueuedTask};
use horolog_analysis::server::{Above, Retention, Serve, Service, Supply, Victim};
use horolog_testkit::Random;
use num_rational::Ratio;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Polling,
    Deferrable,
    /// Every unit comes back a period after it was executed.
    SporadicByExecution,
    /// Every unit comes back a period after it could first have been executed.
    SporadicByEligibility,
}

const KINDS: [Kind; 4] =
    [Kind::Polling, Kind::Deferrable, Kind::SporadicByExecution, Kind::SporadicByEligibility];

#[derive(Clone, Debug)]
struct Task {
    period: u64,
    wcet: u64,
    arrivals: Vec<u64>,
}

/// One server that looks at every unit of time.
struct Server {
    kind: Kind,
    capacity: u64,
    period: u64,
    /// When each unit of capacity is there.
    tokens: Vec<u64>,
    /// When the queue last stopped being empty.
    backlog: Option<u64>,
}

impl Server {
    fn new(kind: Kind, capacity: u64, period: u64) -> Server {
        let there = matches!(kind, Kind::SporadicByExecution | Kind::SporadicByEligibility);
        let tokens = vec![if there { 0 } else { u64::MAX }; capacity as usize];
        Server { kind, capacity, period, tokens, backlog: None }
    }

    /// Whether it would execute in the unit that begins now.
    fn is_eligible(&mut self, now: u64, queue: &[(u64, u64)]) -> bool {
        if queue.is_empty() {
            self.backlog = None;
        } else {
            self.backlog = self.backlog.or(Some(now));
        }
        if now.is_multiple_of(self.period) && matches!(self.kind, Kind::Polling | Kind::Deferrable) {
            let full = self.kind == Kind::Deferrable || !queue.is_empty();
            self.tokens = vec![if full { now } else { u64::MAX }; self.capacity as usize];
        }
        self.tokens.sort_unstable();
        !queue.is_empty() && self.tokens.first().is_some_and(|&at| at <= now)
    }

    /// Serves one unit where it may and `is_free`; the job that ends by it.
    fn unit(&mut self, now: u64, queue: &mut Vec<(u64, u64)>, is_free: bool) -> Option<(u64, u64)> {
        if !self.is_eligible(now, queue) || !is_free {
            return None;
        }
        let eligible = self.tokens.remove(0).max(self.backlog.unwrap_or(now));
        self.tokens.push(match self.kind {
            Kind::SporadicByExecution => now + self.period,
            Kind::SporadicByEligibility => eligible + self.period,
            _ => u64::MAX,
        });
        queue[0].1 -= 1;
        if queue[0].1 > 0 {
            return None;
        }
        let done = queue.remove(0);
        if queue.is_empty() && self.kind == Kind::Polling {
            self.tokens = vec![u64::MAX; self.capacity as usize];
        }
        Some(done)
    }
}

/// The longest response of each hard task, and of the soft jobs, as far as they ended.
fn run(hard: &[Task], soft: &Task, mut server: Server, place: usize, end: u64) -> (Vec<u64>, u64) {
    let mut left: Vec<Vec<(u64, u64)>> = vec![Vec::new(); hard.len()]; // (arrival, remaining) of each task's jobs
    let mut queue: Vec<(u64, u64)> = Vec::new();
    let (mut worst, mut worst_soft) = (vec![0; hard.len()], 0);
    for now in 0..end {
        for (task, left) in hard.iter().zip(&mut left) {
            left.extend(task.arrivals.iter().filter(|&&at| at == now).map(|&at| (at, task.wcet)));
        }
        queue.extend(soft.arrivals.iter().filter(|&&at| at == now).map(|&at| (at, soft.wcet)));
        let chosen = left.iter().position(|jobs| !jobs.is_empty());
        let is_free = chosen.is_none_or(|task| place <= task);
        if server.is_eligible(now, &queue) && is_free {
            if let Some((arrival, _)) = server.unit(now, &mut queue, true) {
                worst_soft = worst_soft.max(now + 1 - arrival);
            }
        } else if let Some(task) = chosen {
            left[task][0].1 -= 1;
            if left[task][0].1 == 0 {
                worst[task] = worst[task].max(now + 1 - left[task].remove(0).0);
            }
        }
    }
    (worst, worst_soft)
}

fn arrivals(random: &mut Random, period: u64, end: u64, dense: bool) -> Vec<u64> {
    let mut at = random.below(period);
    let mut list = Vec::new();
    while at < end {
        list.push(at);
        at += period + if dense { 0 } else { random.below(period) };
    }
    list
}

fn curve(period: u64) -> ArrivalCurve {
    ArrivalCurve::Periodic { separation: period, jitter: 0 }
}

fn load(task: &Task) -> InterruptLoad {
    InterruptLoad { arrival: curve(task.period), wcet: task.wcet }
}

fn retention(kind: Kind) -> Retention {
    if kind == Kind::Deferrable { Retention::Deferrable } else { Retention::AsPeriodic }
}

fn service(kind: Kind) -> Service {
    match kind {
        Kind::Polling => Service::Polling,
        Kind::Deferrable => Service::Deferrable,
        _ => Service::Sporadic { merges: false },
    }
}

#[test]
fn no_response_exceeds_its_bound() {
    const END: u64 = 400;
    let (mut hard_compared, mut hard_reached, mut soft_compared) = (0, 0, 0);
    for index in 0..3_000 {
        let mut random = Random::of_item(51, index);
        let tasks = 1 + random.below(3) as usize;
        let mut hard: Vec<Task> = Vec::new();
        for _ in 0..tasks {
            let period = random.between(4, 24);
            let (wcet, dense) = (random.between(1, period.div_ceil(4)), random.below(2) == 0);
            hard.push(Task { period, wcet, arrivals: arrivals(&mut random, period, END, dense) });
        }
        let (period, place) = (random.between(4, 16), random.below(tasks as u64 + 1) as usize);
        let capacity = random.between(1, period.div_ceil(3));
        // Soft jobs come when they like: one after the other, or a few in a burst.
        let wcet = random.between(1, 2 * capacity);
        let (soft, arrival) = if index % 2 == 0 {
            let separation = random.between(period / 2, 40);
            let dense = random.below(2) == 0;
            let list = arrivals(&mut random, separation, END, dense);
            (Task { period: separation, wcet, arrivals: list }, curve(separation))
        } else {
            let mut list: Vec<u64> = (0..=random.below(5)).map(|_| random.below(4 * period)).collect();
            list.sort_unstable();
            let arrival = ArrivalCurve::Listed { arrivals: list.clone(), jitter: 0 };
            (Task { period: 1, wcet, arrivals: list }, arrival)
        };
        for kind in KINDS {
            let (worst, worst_soft) = run(&hard, &soft, Server::new(kind, capacity, period), place, END);
            for (task, found) in worst.iter().enumerate().skip(place) {
                let above = Above { loads: hard[..task].iter().map(load).collect(), ..Above::default() };
                let own = &hard[task];
                let victim =
                    Victim { wcet: own.wcet, separation: own.period, jitter: 0, deadline: own.period, above };
                let of = Ratio::from_integer(u128::from(capacity));
                let Ok(bound) = victim.response_below(retention(kind), of, period, &mut 100_000) else {
                    continue;
                };
                let found = Ratio::from_integer(u128::from(*found));
                assert!(found <= bound, "{index}, {kind:?}, task {task}: {found} above {bound}");
                hard_compared += 1;
                hard_reached += u32::from(found == bound);
            }
            let above = Above { loads: hard[..place].iter().map(load).collect(), ..Above::default() };
            let queued = QueuedTask { arrival: arrival.clone(), wcet: soft.wcet };
            let bound = Supply::new(service(kind), capacity, period, &above, &mut 100_000)
                .and_then(|supply| queue::response(&[queued], 0, &supply, &mut 100_000));
            let Ok(bound) = bound else { continue };
            // A server that counts from the execution on drifts behind under interference.
            if kind != Kind::SporadicByExecution || place == 0 {
                assert!(
                    worst_soft <= bound,
                    "{index}, {kind:?} ({capacity}, {period}) at {place}: soft {worst_soft} above {bound}\n{hard:?}\n{soft:?}"
                );
                soft_compared += 1;
            }
        }
    }
    let counts = (hard_compared, hard_reached, soft_compared);
    assert!(hard_compared > 10_000 && hard_reached > 500 && soft_compared > 4_000, "{counts:?}");
}

/// Every history of jobs of one unit in the first ten instants, then a job of `work` that finds the queue empty: the
/// longest response.
fn worst_after_any_history(kind: Kind, capacity: u64, period: u64, work: u64) -> u64 {
    let mut worst = 0;
    for pattern in 0_u32..1 << 10 {
        let history: Vec<u64> = (0..10).filter(|at| pattern >> at & 1 == 1).collect();
        let before = Task { period: 1, wcet: 1, arrivals: history.clone() };
        for at in 0..12 {
            let earlier: Vec<u64> = history.iter().copied().filter(|&h| h < at).collect();
            if earlier.len() < history.len() {
                continue; // the same as with a shorter history
            }
            let mut server = Server::new(kind, capacity, period);
            let (mut queue, mut now) = (Vec::new(), 0);
            loop {
                queue.extend(before.arrivals.iter().filter(|&&a| a == now).map(|&a| (a, 1)));
                if now == at {
                    if !queue.is_empty() {
                        break;
                    }
                    queue.push((at, work));
                }
                if let Some((arrival, _)) = server.unit(now, &mut queue, true)
                    && arrival == at
                    && now >= at
                {
                    worst = worst.max(now + 1 - at);
                    break;
                }
                now += 1;
            }
        }
    }
    worst
}

#[test]
fn on_top_the_bound_of_a_job_is_reached() {
    for (capacity, period) in [(1, 4), (2, 5), (3, 5)] {
        for work in 1..=2 * capacity + 1 {
            for kind in KINDS {
                let above = Above::default();
                let bound = Supply::new(service(kind), capacity, period, &above, &mut 1_000)
                    .and_then(|supply| supply.finish(u128::from(work), &mut 1_000))
                    .unwrap();
                let found = u128::from(worst_after_any_history(kind, capacity, period, work));
                // In whole units a job cannot come less than one unit after the poll.
                let least = bound - u128::from(kind == Kind::Polling);
                assert_eq!(found, least, "{kind:?} ({capacity}, {period}), work {work}");
            }
        }
    }
}
