//! Whose fault a late job is where one sleeps, keeps the processor, or holds a resource for too long: flat processors of a run, against a scheduler of this file
//! that looks at every unit of time and shares no code with anything else.
//!
//! `HOROLOG_CAUSES=20000 cargo test -p horolog-verify --test asleep` draws so many.
#![allow(clippy::panic, clippy::expect_used)] // Helpers of an integration test are tests too.

mod shared;

use horolog_model::{Access, Arrival, Cpus, Draft, Preemption, Priority, Resource, Section, System, Task};
use horolog_testkit::Random;
use horolog_time::Instant;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::Class;
use shared::{Tally, bound, draws, expected, ns, verified};
use std::collections::VecDeque;

const ARRIVE: u64 = 60;
const END: u64 = 400;

/// A job: sections are resource, begin and end in its execution; a sleep is where and for how long.
#[derive(Clone, Debug)]
struct Job {
    arrival: u64,
    demand: u64,
    sections: Vec<(usize, u64, u64)>,
    sleep: Option<(u64, u64)>,
    /// From where to where in its execution it keeps the processor.
    keeps: Option<(u64, u64)>,
}

/// A task of the naive scheduler.
#[derive(Clone, Debug)]
struct Line {
    priority: i64,
    is_preemptive: bool,
    jobs: Vec<Job>,
    /// The oldest job that has not ended, and how many have arrived.
    head: usize,
    arrived: usize,
    executed: u64,
    has_begun: bool,
    was_preempted: bool,
    wakes_at: Option<u64>,
    has_slept: bool,
    waits_for: Option<usize>,
    /// Which of its sections it has entered.
    entered: usize,
    holds: Vec<usize>,
    ends: Vec<u64>,
}

/// Fixed priorities with immediate ceilings on one processor, unit by unit.
struct Naive {
    lines: Vec<Line>,
    ceilings: Vec<i64>,
    holder: Vec<Option<usize>>,
    waiting: Vec<VecDeque<usize>>,
    foreign: Option<(u64, u64)>,
    running: Option<usize>,
    had: u64,
    records: Vec<Record>,
    now: u64,
}

impl Naive {
    fn new(draft: &Draft, jobs: &[Vec<Job>], foreign: Option<(u64, u64)>) -> Naive {
        let line = |(task, jobs): (&Task, &Vec<Job>)| Line {
            priority: task.priority.expect("it has one").number(),
            is_preemptive: task.preemption == Preemption::Preemptive,
            jobs: jobs.clone(),
            head: 0,
            arrived: 0,
            executed: 0,
            has_begun: false,
            was_preempted: false,
            wakes_at: None,
            has_slept: false,
            waits_for: None,
            entered: 0,
            holds: Vec::new(),
            ends: Vec::new(),
        };
        let lines: Vec<Line> = draft.tasks.iter().zip(jobs).map(line).collect();
        let ceiling = |resource: &Resource| {
            let uses = |task: &&Task| task.sections.iter().any(|one| one.resource == resource.name);
            let users = draft.tasks.iter().filter(uses);
            users.filter_map(|task| task.priority.map(Priority::number)).max().unwrap_or(0)
        };
        Naive {
            lines,
            ceilings: draft.resources.iter().map(ceiling).collect(),
            holder: vec![None; draft.resources.len()],
            waiting: vec![VecDeque::new(); draft.resources.len()],
            foreign,
            running: None,
            had: 0,
            records: Vec::new(),
            now: 0,
        }
    }

    fn tell(&mut self, kind: Kind, task: usize, value: u64, extra: u64) {
        let (time, job) = (Instant::from_ns(self.now), self.lines[task].head as u64);
        self.records.push(Record { time, kind, cpu: 0, task: task as u32, job, value, extra });
    }

    fn kernel(&mut self, kind: Kind, value: u64, extra: u64) {
        let time = Instant::from_ns(self.now);
        self.records.push(Record { time, kind, cpu: 0, task: NO_TASK, job: NO_JOB, value, extra });
    }

    /// Thread 0 is idle, task t is thread t + 1, and behind them comes one outside the model.
    fn switch(&mut self, to: u64) {
        if self.had != to {
            self.kernel(Kind::KernelSwitch, self.had, to);
            self.had = to;
        }
    }

    fn unlock(&mut self, task: usize, resource: usize) {
        self.tell(Kind::Unlock, task, resource as u64, 0);
        self.lines[task].holds.retain(|held| *held != resource);
        self.holder[resource] = None;
        while let Some(next) = self.waiting[resource].pop_front() {
            self.lines[next].waits_for = None;
            self.tell(Kind::Wake, next, resource as u64, 1);
        }
    }

    /// What the running job comes to.
    fn ends(&mut self) {
        let Some(task) = self.running else { return };
        let line = &self.lines[task];
        let (job, executed) = (line.jobs[line.head].clone(), line.executed);
        let is_over = executed == job.demand;
        for (resource, _, end) in job.sections.iter().rev() {
            if self.lines[task].holds.contains(resource) && (executed == *end || is_over) {
                self.unlock(task, *resource);
            }
        }
        if is_over {
            self.tell(Kind::Completion, task, executed, 0);
            let now = self.now;
            let line = &mut self.lines[task];
            line.ends.push(now);
            line.head += 1;
            (line.executed, line.has_begun, line.has_slept, line.entered) = (0, false, false, 0);
            self.running = None;
        } else if let Some((_, length)) = job.sleep.filter(|(at, _)| *at == executed)
            && !std::mem::replace(&mut self.lines[task].has_slept, true)
        {
            self.lines[task].wakes_at = Some(self.now + length);
            let place = self.records.len();
            self.kernel(Kind::KernelBlock, task as u64 + 1, u64::from(b'S'));
            (self.records[place].task, self.records[place].job) = (task as u32, 0);
            self.running = None;
        }
    }

    fn arrives(&mut self) {
        for task in 0..self.lines.len() {
            if self.lines[task].wakes_at == Some(self.now) {
                self.lines[task].wakes_at = None;
                self.kernel(Kind::KernelWakeup, task as u64 + 1, 0);
            }
            while let Some(job) = self.lines[task].jobs.get(self.lines[task].arrived)
                && job.arrival == self.now
            {
                if self.lines[task].head == self.lines[task].arrived {
                    self.kernel(Kind::KernelWakeup, task as u64 + 1, 0);
                }
                let number = self.lines[task].arrived as u64;
                self.lines[task].arrived += 1;
                self.tell(Kind::Release, task, self.now, 0);
                self.records.last_mut().expect("told").job = number;
            }
        }
    }

    fn choose(&mut self) {
        loop {
            let is_ready =
                |line: &Line| line.head < line.arrived && line.wakes_at.is_none() && line.waits_for.is_none();
            // Lifted goes before its equals.
            let stands = |line: &Line| {
                let lifted = line.holds.iter().map(|held| self.ceilings[*held]).max();
                lifted
                    .filter(|lifted| *lifted >= line.priority)
                    .map_or((line.priority, 0), |lifted| (lifted, 1))
            };
            let may_keep = |line: &Line| {
                let executed = line.executed;
                let keeps = line.jobs.get(line.head).and_then(|job| job.keeps);
                !line.is_preemptive && line.has_begun
                    || keeps.is_some_and(|(from, to)| (from..to).contains(&executed))
            };
            let keeps = self.running.filter(|&task| may_keep(&self.lines[task]));
            let ready = (0..self.lines.len()).filter(|&task| is_ready(&self.lines[task]));
            let chosen = keeps.or_else(|| ready.max_by_key(|&task| stands(&self.lines[task])));
            if chosen != self.running {
                if let Some(before) = self.running {
                    self.tell(Kind::Preempt, before, 0, 0);
                    self.lines[before].was_preempted = true;
                }
                self.switch(chosen.map_or(0, |task| task as u64 + 1));
                if let Some(task) = chosen {
                    let kind = if self.lines[task].has_begun { Kind::Resume } else { Kind::Start };
                    // Who slept by himself does not say that he goes on.
                    if std::mem::take(&mut self.lines[task].was_preempted) || kind == Kind::Start {
                        self.tell(kind, task, 0, 0);
                    }
                    self.lines[task].has_begun = true;
                }
                self.running = chosen;
            }
            self.switch(chosen.map_or(0, |task| task as u64 + 1));
            let Some(task) = chosen else { return };
            let line = &self.lines[task];
            let next = line.jobs[line.head].sections.get(line.entered).copied();
            let Some((resource, _, _)) = next.filter(|(_, begin, _)| *begin == line.executed) else { return };
            if self.holder[resource].is_none() {
                self.lines[task].entered += 1;
                self.holder[resource] = Some(task);
                self.lines[task].holds.push(resource);
                self.tell(Kind::Lock, task, resource as u64, 0);
            } else {
                self.waiting[resource].push_back(task);
                self.lines[task].waits_for = Some(resource);
                self.tell(Kind::Suspend, task, resource as u64, 1);
                self.lines[task].was_preempted = true;
                self.running = None;
            }
        }
    }

    /// Runs to the end; whether all jobs ended.
    fn run(&mut self) -> bool {
        self.kernel(Kind::KernelSwitch, 0, 0);
        for now in 0..END {
            self.now = now;
            let is_taken = self.foreign.is_some_and(|(from, to)| (from..to).contains(&now));
            self.ends();
            self.arrives();
            if is_taken {
                self.switch(self.lines.len() as u64 + 1);
                continue;
            }
            self.choose();
            if let Some(task) = self.running {
                self.lines[task].executed += 1;
            }
        }
        self.lines.iter().all(|line| line.head == line.jobs.len())
    }
}

#[derive(Clone, Copy, Debug)]
enum Lie {
    Longer(u64),
    Earlier(u64),
    /// This section of the job, by so much.
    Section(usize, u64),
    Sleep(u64, u64),
    /// It makes itself non-preemptible, from where to where.
    Keep(u64, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Injected {
    lie: Option<(usize, usize, Lie)>,
    foreign: Option<(u64, u64)>,
}

fn system(random: &mut Random) -> Draft {
    let mut draft = Draft { name: "drawn".to_owned(), ..Draft::default() };
    draft.platform.cpus = Cpus::Count(1);
    let resources = random.below(3);
    for number in 0..resources {
        draft.resources.push(Resource { name: format!("r{number}"), ..Resource::default() });
    }
    let tasks = random.between(2, 4);
    for place in 0..tasks {
        let period = random.between(9, 36);
        let wcet = random.between(1, (period / tasks).max(3));
        let arrival = match random.below(2) {
            0 => Arrival::Periodic { period: ns(period) },
            _ => Arrival::Sporadic { separation: ns(period) },
        };
        let mut task = Task::new(&format!("t{place}"), arrival, ns(wcet));
        (task.bcet, task.priority) = (ns(1), Some(Priority::new(place as i64)));
        task.deadline = Some(ns(1_000));
        if random.below(6) == 0 {
            task.preemption = Preemption::NonPreemptive;
        }
        // One behind the other.
        let mut from = 0;
        while resources > 0 && from < wcet && random.below(3) > 0 {
            from += random.below(wcet - from);
            let length = random.between(1, (wcet - from).min(3));
            let resource = format!("r{}", random.below(resources));
            task.sections.push(Section {
                resource,
                from: ns(from),
                length: ns(length),
                access: Access::Write,
            });
            from += length;
        }
        draft.tasks.push(task);
    }
    draft
}

fn jobs_of(draft: &Draft, random: &mut Random) -> Vec<Vec<Job>> {
    let resource = |name: &str| draft.resources.iter().position(|one| one.name == name).expect("it is there");
    let of = |task: &Task| {
        let (Arrival::Periodic { period } | Arrival::Sporadic { separation: period }) = &task.arrival else {
            panic!("{task:?}")
        };
        let first = random.below(period.as_ns());
        let arrivals: Vec<u64> =
            (0..).map(|place| first + place * period.as_ns()).take_while(|at| *at < ARRIVE).collect();
        let job = |arrival: u64| {
            let demand = task.wcet.as_ns() - random.below(task.wcet.as_ns()).min(2);
            let section = |one: &Section| {
                let from = one.from.as_ns();
                (from < demand).then(|| (resource(&one.resource), from, from + one.length.as_ns()))
            };
            Job {
                arrival,
                demand,
                sections: task.sections.iter().filter_map(section).collect(),
                sleep: None,
                keeps: None,
            }
        };
        arrivals.into_iter().map(job).collect()
    };
    draft.tasks.iter().map(of).collect()
}

fn draw_lie(draft: &Draft, jobs: &[Vec<Job>], random: &mut Random) -> Option<(usize, usize, Lie)> {
    let task = random.below(jobs.len() as u64) as usize;
    let place = random.below(jobs[task].len().max(1) as u64) as usize;
    let job = jobs[task].get(place)?;
    let lie = match random.below(8) {
        0 => Lie::Longer(draft.tasks[task].wcet.as_ns() - job.demand + random.between(1, 5)),
        1 => {
            let room = (job.arrival - jobs[task][place.checked_sub(1)?].arrival).checked_sub(1)?;
            Lie::Earlier(if room > 0 { random.between(1, room) } else { return None })
        }
        2..=4 => {
            // A job that has room for it.
            let has_room = |job: &Job| job.sections.iter().any(|(_, _, end)| *end < job.demand);
            let place = (0..jobs[task].len()).find(|&place| has_room(&jobs[task][place])).unwrap_or(place);
            let job = &jobs[task][place];
            let section = random.below(job.sections.len().max(1) as u64) as usize;
            let &(_, _, end) = job.sections.get(section)?;
            let next = job.sections.get(section + 1).map_or(job.demand, |(_, begin, _)| *begin);
            let room = next.checked_sub(end).filter(|room| *room > 0)?;
            return Some((task, place, Lie::Section(section, random.between(1, room))));
        }
        // A section that begins meanwhile would lift it, and then it goes on by right.
        5 if job.demand > 1
            && job.sections.is_empty()
            && draft.tasks[task].preemption == Preemption::Preemptive =>
        {
            let from = random.between(1, job.demand - 1);
            Lie::Keep(from, random.between(from + 1, job.demand))
        }
        _ if job.demand > 1 => Lie::Sleep(random.between(1, job.demand - 1), random.between(1, 9)),
        _ => return None,
    };
    Some((task, place, lie))
}

fn with(draft: &Draft, jobs: &[Vec<Job>], injected: Injected, is_cut: bool) -> Naive {
    let mut jobs = jobs.to_vec();
    if let Some((task, place, lie)) = injected.lie {
        let (wcet, job) = (draft.tasks[task].wcet.as_ns(), &mut jobs[task][place]);
        match lie {
            Lie::Longer(more) => job.demand = if is_cut { wcet } else { job.demand + more },
            _ if is_cut => {}
            Lie::Earlier(by) => job.arrival -= by,
            Lie::Section(section, more) => job.sections[section].2 += more,
            Lie::Sleep(at, length) => job.sleep = Some((at, length)),
            Lie::Keep(from, to) => job.keeps = Some((from, to)),
        }
    }
    Naive::new(draft, &jobs, injected.foreign)
}

fn draw(index: u64, tally: &mut Tally) -> Option<()> {
    let mut random = Random::of_item(5, index);
    let draft = system(&mut random);
    let own = System::new(draft.clone()).ok()?;
    let jobs = jobs_of(&draft, &mut random);
    let from = random.below(ARRIVE);
    let foreign = (random.below(2) == 0).then(|| (from, from + random.between(1, 6)));
    let lie = draw_lie(&draft, &jobs, &mut random).filter(|_| foreign.is_none() || random.below(2) == 0);
    let (all, own_lie) = (Injected { lie, foreign }, Injected { lie, foreign: None });
    let ends = |injected, is_cut| {
        let mut naive = with(&draft, &jobs, injected, is_cut);
        naive.run().then(|| (naive.lines.iter().map(|line| line.ends.clone()).collect::<Vec<_>>(), naive))
    };
    let (as_it_was, naive) = ends(all, false)?;
    let ((cut, _), (out, _), (both, _)) = (ends(all, true)?, ends(own_lie, false)?, ends(own_lie, true)?);
    let keys = |task: usize| (0..jobs[task].len()).map(move |place| (task, place));
    let later: Vec<(usize, usize)> = (0..jobs.len())
        .flat_map(keys)
        .filter(|&(task, job)| as_it_was[task][job] > both[task][job])
        .collect();
    let &(task, victim) = later.get(random.below(later.len().max(1) as u64) as usize)?;
    let begin = |place: usize| (naive.lines[task].jobs[place].arrival, jobs[task][place].arrival);
    let (response, least) = (as_it_was[task][victim] - begin(victim).0, both[task][victim] - begin(victim).1);
    let most = random.between(least.saturating_sub(1).min(response - 1), response - 1);
    if shared::is_one() {
        println!(
            "{draft:#?}\n{jobs:?}\n{all:?}\nbound {most} of t{task}: {as_it_was:?} {cut:?} {out:?} {both:?}"
        );
    }
    // Who could have kept the processor and had it anyway leaves nothing on record.
    let shows = !matches!(lie, Some((_, _, Lie::Keep(..)))) || as_it_was != cut;
    let result = verified(&own, &bound(task, most), &naive.records, "linux", END);
    for place in 0..jobs[task].len() {
        if as_it_was[task][place] - begin(place).0 <= most {
            continue;
        }
        let is_late = |ends: &[Vec<u64>], begin: u64| ends[task][place] - begin > most;
        let (told, legal) = begin(place);
        let wanted = expected(
            [is_late(&cut, legal), is_late(if shows { &out } else { &both }, told), is_late(&both, legal)],
            lie.is_some() && shows,
            foreign.is_some(),
        );
        let name = lie.map_or("", |(task, ..)| draft.tasks[task].name.as_str());
        let what = match lie {
            Some((_, _, Lie::Longer(_))) => "longer",
            Some((_, _, Lie::Earlier(_))) => "earlier",
            Some((_, _, Lie::Section(..))) => "section",
            Some((_, _, Lie::Sleep(..))) => "sleep",
            Some((_, _, Lie::Keep(..))) => "keep",
            None => "none",
        };
        tally.take((what, wanted, name), place, &result, || format!("{index} {all:?}: t{task}"));
    }
    Some(())
}

#[test]
fn who_sleeps_or_holds_on_is_named() {
    let (mut tally, all) = (Tally::default(), draws(6_000));
    all.clone().for_each(|index| _ = draw(index, &mut tally));
    let (right, untold) = tally.none_is_wrong("asleep");
    if shared::is_one() {
        return;
    }
    // A longer section changes only when others run.
    for (what, least) in
        [("longer", 20), ("earlier", 200), ("section", 6_000), ("sleep", 20), ("keep", 2_000)]
    {
        let right = tally.right.get(&(what, Class::ModelViolated)).copied().unwrap_or(0);
        assert!(right >= all.end / least, "{what}: {right}");
    }
    assert!(untold * 100 < right, "{:?}", tally.untold);
}
