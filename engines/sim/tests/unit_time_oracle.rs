//! Priority exchange and dual priority against simulations that look at every unit of time, written from the rules of
//! `docs/concepts/servers.md` and `docs/concepts/dual-priority.md`. Times are small, so that completions, arrivals, periods
//! and promotions coincide often.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::Random;
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::fmt::Write as _;

const HORIZON: u64 = 120;

#[derive(Clone, Copy, Debug)]
struct Hard {
    wcet: u64,
    period: u64,
    offset: u64,
    /// What its jobs really execute.
    executes: u64,
}

/// A drawn system: hard tasks, most important first, and soft jobs (arrival, wcet) in their order.
#[derive(Clone, Debug)]
struct Drawn {
    hard: Vec<Hard>,
    soft: Vec<(u64, u64)>,
    /// How many hard tasks are more important than the server, its budget and period.
    above: usize,
    budget: u64,
    period: u64,
    /// Whether the least important hard task is not preemptible.
    is_committed: bool,
}

fn draw(seed: u64) -> Drawn {
    let mut random = Random::of_item(seed, 4);
    let count = random.between(1, 3);
    let hard = (0..count).map(|_| {
        let period = [6, 8, 10, 12, 20][random.below(5) as usize];
        let wcet = random.between(1, period / (count + 1));
        let executes = random.between(1, wcet);
        Hard { wcet, period, offset: random.below(2) * random.below(period), executes }
    });
    let hard: Vec<Hard> = hard.collect();
    let mut at = 0;
    let soft = (0..random.between(1, 8)).map(|_| {
        at += random.below(14);
        (at, random.between(1, 4))
    });
    let soft = soft.collect();
    let period = [4, 5, 6, 8, 10][random.below(5) as usize];
    let above = random.below(count + 1) as usize;
    let budget = random.between(1, period / 2);
    Drawn { hard, soft, above, budget, period, is_committed: random.below(3) == 0 }
}

/// The system file; hard tasks are named by their ranks.
fn text(drawn: &Drawn, server: &str) -> String {
    let mut text = "[system]\nname = \"drawn\"\n".to_owned();
    for (rank, task) in drawn.hard.iter().enumerate() {
        let Hard { wcet, period, offset, executes } = task;
        let _ = writeln!(
            text,
            "[[task]]\nname = \"h{rank}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\nbcet = \"{executes} ns\"\noffset = \
             \"{offset} ns\"\nexecution = {{ samples = [\"{executes} ns\"] }}\npriority = {}",
            100 - 10 * rank
        );
    }
    if drawn.is_committed {
        text += "preemption = \"non-preemptive\"\n";
    }
    // A task a job, so that each has an execution of its own.
    for (job, (arrival, wcet)) in drawn.soft.iter().enumerate() {
        let _ = writeln!(
            text,
            "[[task]]\nname = \"s{job}\"\narrivals = [\"{arrival} ns\"]\nwcet = \"{wcet} ns\""
        );
    }
    let names: Vec<String> = (0..drawn.soft.len()).map(|job| format!("\"s{job}\"")).collect();
    let _ = writeln!(text, "[[server]]\nname = \"s\"\ntasks = [{}]\n{server}", names.join(", "));
    text
}

/// When each job ended: (end, task, job), sorted.
type Ends = Vec<(u64, usize, u64)>;

fn simulated(text: &str) -> Option<Ends> {
    let system: System = horolog_model::file::read(text, "drawn", &[]).unwrap_or_else(|e| panic!("{e}")).0;
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(HORIZON)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    // Dual priority refuses hard tasks that are late even alone.
    simulate(&horolog_testkit::resolved(&system), &options, &mut records).ok()?;
    let ends = records.iter().filter(|record| record.kind == Kind::Completion);
    let mut ends: Ends = ends.map(|r| (r.time.as_ns(), r.task as usize, r.job)).collect();
    ends.sort_unstable();
    Some(ends)
}

/// A job that waits: what is left, which of its task's it is, and when it arrived.
#[derive(Clone, Copy, Debug)]
struct Job {
    left: u64,
    number: u64,
    arrival: u64,
}

/// The queues of all tasks, and who ended when.
struct Naive<'a> {
    drawn: &'a Drawn,
    hard: Vec<Vec<Job>>,
    soft: Vec<(usize, u64)>,
    ends: Ends,
}

/// Who runs for a unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Runs {
    Hard(usize),
    Soft,
    Nobody,
}

impl Naive<'_> {
    fn new(drawn: &Drawn) -> Naive<'_> {
        Naive { drawn, hard: vec![Vec::new(); drawn.hard.len()], soft: Vec::new(), ends: Vec::new() }
    }

    fn arrive(&mut self, now: u64) {
        for (rank, task) in self.drawn.hard.iter().enumerate() {
            if now >= task.offset && (now - task.offset).is_multiple_of(task.period) {
                let number = (now - task.offset) / task.period;
                self.hard[rank].push(Job { left: task.executes, number, arrival: now });
            }
        }
        for (job, &(arrival, wcet)) in self.drawn.soft.iter().enumerate() {
            if arrival == now {
                self.soft.push((job, wcet));
            }
        }
    }

    /// One unit from `now` on; the rank of a hard job that has ended.
    fn run(&mut self, runs: Runs, now: u64) -> Option<(usize, Job)> {
        match runs {
            Runs::Hard(rank) => {
                self.hard[rank][0].left -= 1;
                if self.hard[rank][0].left == 0 {
                    let job = self.hard[rank].remove(0);
                    self.ends.push((now + 1, rank, job.number));
                    return Some((rank, job));
                }
            }
            Runs::Soft => {
                self.soft[0].1 -= 1;
                if self.soft[0].1 == 0 {
                    let (job, _) = self.soft.remove(0);
                    self.ends.push((now + 1, self.drawn.hard.len() + job, 0));
                }
            }
            Runs::Nobody => {}
        }
        None
    }

    fn finish(mut self) -> Ends {
        self.ends.sort_unstable();
        self.ends
    }
}

fn exchange(drawn: &Drawn) -> Ends {
    let mut naive = Naive::new(drawn);
    // The level of a hard task: 0 above the server.
    let level = |rank: usize| (rank + 1).saturating_sub(drawn.above);
    let mut budgets = vec![0; drawn.hard.len() + 1 - drawn.above];
    let last = drawn.hard.len() - 1;
    let mut keeps = false;
    for now in 0..HORIZON {
        if now.is_multiple_of(drawn.period) {
            budgets[0] = drawn.budget;
        }
        naive.arrive(now);
        let best = budgets.iter().position(|&budget| budget > 0);
        let first = naive.hard.iter().position(|jobs| !jobs.is_empty());
        let has_soft = !naive.soft.is_empty();
        let runs = match (first, best) {
            _ if keeps => Runs::Hard(last),
            (Some(rank), Some(best)) if has_soft && level(rank) > 0 && best <= level(rank) => Runs::Soft,
            (Some(rank), _) => Runs::Hard(rank),
            (None, _) if has_soft => Runs::Soft,
            _ => Runs::Nobody,
        };
        match (runs, best) {
            (Runs::Hard(rank), Some(best)) if best < level(rank) && !has_soft => {
                budgets[best] -= 1;
                budgets[level(rank)] += 1;
            }
            (Runs::Soft | Runs::Nobody, Some(best)) => budgets[best] -= 1,
            _ => {}
        }
        let ended = naive.run(runs, now);
        keeps = drawn.is_committed && runs == Runs::Hard(last) && ended.is_none();
    }
    naive.finish()
}

#[test]
fn priority_exchange_follows_its_rules() {
    for seed in 0..1_000 {
        let drawn = draw(seed);
        let server = format!(
            "kind = \"priority-exchange\"\nbudget = \"{} ns\"\nperiod = \"{} ns\"\npriority = {}",
            drawn.budget,
            drawn.period,
            105 - 10 * drawn.above
        );
        let text = text(&drawn, &server);
        assert_eq!(simulated(&text).as_ref(), Some(&exchange(&drawn)), "seed {seed}:\n{text}");
    }
}

/// The worst response time among the hard tasks; `None` beyond the period.
fn response(hard: &[Hard], rank: usize) -> Option<u64> {
    let mut window = hard[rank].wcet;
    loop {
        let others: u64 = hard[..rank].iter().map(|other| window.div_ceil(other.period) * other.wcet).sum();
        let next = hard[rank].wcet + others;
        if next > hard[rank].period {
            return None;
        }
        if next == window {
            return Some(window);
        }
        window = next;
    }
}

fn dual(drawn: &Drawn, is_self: bool) -> Option<Ends> {
    let mut naive = Naive::new(drawn);
    let offset = |rank: usize| Some(drawn.hard[rank].period - response(&drawn.hard, rank)?);
    let offsets: Vec<u64> = (0..drawn.hard.len()).map(offset).collect::<Option<_>>()?;
    // What the oldest job of each has executed below the soft ones, and whether it is promoted.
    let mut low = vec![0; drawn.hard.len()];
    let mut promoted = vec![false; drawn.hard.len()];
    for now in 0..HORIZON {
        naive.arrive(now);
        for (rank, jobs) in naive.hard.iter().enumerate() {
            let gain = if is_self { low[rank] } else { 0 };
            promoted[rank] |= jobs.first().is_some_and(|job| now >= job.arrival + offsets[rank] + gain);
        }
        let first = |wanted: bool| {
            let mut ranks = 0..drawn.hard.len();
            ranks.find(|&rank| !naive.hard[rank].is_empty() && promoted[rank] == wanted)
        };
        let runs = match (first(true), naive.soft.is_empty(), first(false)) {
            (Some(rank), ..) => Runs::Hard(rank),
            (None, false, _) => Runs::Soft,
            (None, true, Some(rank)) => {
                low[rank] += 1;
                Runs::Hard(rank)
            }
            _ => Runs::Nobody,
        };
        if let Some((rank, _)) = naive.run(runs, now) {
            (low[rank], promoted[rank]) = (0, false);
        }
    }
    Some(naive.finish())
}

#[test]
fn dual_priority_follows_its_rules() {
    let mut compared = 0;
    for seed in 0..500 {
        let mut drawn = draw(seed);
        drawn.is_committed = false;
        for (gain, is_self) in [("none", false), ("self", true)] {
            let text = text(&drawn, &format!("kind = \"dual-priority\"\ngain = \"{gain}\""));
            let ends = dual(&drawn, is_self);
            assert_eq!(simulated(&text), ends, "seed {seed}:\n{text}");
            compared += u64::from(ends.is_some());
        }
    }
    assert!(compared > 500, "{compared}");
}

/// Whatever the gain: no promotion is later than the job's deadline less what it may still execute.
#[test]
fn no_promotion_is_beyond_the_deadline_less_the_remaining_work() {
    let mut seen = 0;
    for seed in 0..200 {
        let mut drawn = draw(seed);
        drawn.is_committed = false;
        for gain in ["none", "self", "propagated", "both"] {
            let text = text(&drawn, &format!("kind = \"dual-priority\"\ngain = \"{gain}\""));
            let system = horolog_model::file::read(&text, "drawn", &[]).unwrap_or_else(|e| panic!("{e}")).0;
            let options =
                SimOptions { horizon: Horizon::Time(Span::from_ns(HORIZON)), ..SimOptions::default() };
            let mut records: Vec<Record> = Vec::new();
            if simulate(&horolog_testkit::resolved(&system), &options, &mut records).is_err() {
                continue;
            }
            let (mut executed, mut since) = (vec![0; drawn.hard.len()], vec![None; drawn.hard.len()]);
            for record in records.iter().filter(|record| (record.task as usize) < drawn.hard.len()) {
                let (now, rank) = (record.time.as_ns(), record.task as usize);
                let task = drawn.hard[rank];
                executed[rank] += since[rank].map_or(0, |since| now - since);
                since[rank] = since[rank].map(|_| now);
                match record.kind {
                    Kind::Start | Kind::Resume => since[rank] = Some(now),
                    Kind::Preempt => since[rank] = None,
                    Kind::Completion => (executed[rank], since[rank]) = (0, None),
                    Kind::Promotion => {
                        let deadline = task.offset + (record.job + 1) * task.period;
                        assert!(
                            now + task.wcet - executed[rank] <= deadline,
                            "{gain}, {record:?} in\n{text}"
                        );
                        seen += 1;
                    }
                    _ => {}
                }
                assert_ne!(record.kind, Kind::Miss, "{gain}, {record:?} in\n{text}");
            }
        }
    }
    assert!(seen > 1_500, "{seen}");
}
