//! Extraction from synthetic records: threads under fixed priorities on one processor, drawn at random, whose truth is
//! known.
#![allow(clippy::unwrap_used)]

use horolog_measure::extraction::pattern::Pattern;
use horolog_measure::extraction::{
    Arrival, Chosen, Class, Description, Event, EventKind, Left, LockKind, Observation, Observer, Options,
    Proposal, WaitKind, propose,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

/// A thread: its jobs in time order. Lower ids are more important.
#[derive(Clone, Debug)]
struct Thread {
    tid: u32,
    jobs: Vec<Job>,
}

/// A job: when its timer expires, when it is woken, and its steps.
#[derive(Clone, Debug)]
struct Job {
    expiry: Option<u64>,
    ready: u64,
    steps: Vec<Step>,
}

/// Execution, and then a sleep of this kind; the last step's ends the job.
#[derive(Clone, Copy, Debug)]
struct Step {
    executes: u64,
    waits: WaitKind,
    /// How long, unless the job ends.
    sleeps: u64,
}

fn job(expiry: Option<u64>, late: u64, at: u64, executes: u64, waits: WaitKind) -> Job {
    Job { expiry, ready: at + late, steps: vec![Step { executes, waits, sleeps: 0 }] }
}

/// Runs the threads on one processor and yields what a kernel would record.
fn record(threads: &[Thread]) -> Vec<Event> {
    let mut events = Vec::new();
    // Per thread: current job, step, what is left of it, when it is ready again.
    let mut at: Vec<(usize, usize, u64, u64)> =
        threads.iter().map(|thread| (0, 0, thread.jobs[0].steps[0].executes, thread.jobs[0].ready)).collect();
    let mut woken = vec![false; threads.len()];
    let (mut now, mut running): (u64, Option<usize>) = (0, None);
    let tid = |who: Option<usize>| who.map_or(0, |who| threads[who].tid);
    loop {
        let live = |i: usize, at: &[(usize, usize, u64, u64)]| at[i].0 < threads[i].jobs.len();
        for i in 0..threads.len() {
            if live(i, &at) && !woken[i] && at[i].3 <= now {
                woken[i] = true;
                events.push(Event { time_ns: at[i].3, kind: EventKind::Wakeup { tid: threads[i].tid } });
            }
        }
        let wanted = (0..threads.len()).find(|i| woken[*i]);
        if wanted != running {
            let kind = EventKind::Switch {
                cpu: 3,
                prev: tid(running),
                left: Left::Runnable,
                next: tid(wanted),
                prev_is_deadline: false,
            };
            events.push(Event { time_ns: now, kind });
            running = wanted;
        }
        let next_wake = (0..threads.len()).filter(|i| live(*i, &at) && !woken[*i]).map(|i| at[i].3).min();
        let Some(who) = running else {
            let Some(next) = next_wake else { return events };
            now = next;
            continue;
        };
        let done = now + at[who].2;
        if let Some(wake) = next_wake.filter(|wake| *wake < done) {
            at[who].2 -= wake - now;
            now = wake;
            continue;
        }
        now = done;
        sleep(threads, who, &mut at, now, &mut events);
        woken[who] = false;
        let next = (0..threads.len()).find(|i| woken[*i]);
        let kind = EventKind::Switch {
            cpu: 3,
            prev: threads[who].tid,
            left: Left::Asleep(b'S'),
            next: tid(next),
            prev_is_deadline: false,
        };
        events.push(Event { time_ns: now, kind });
        running = next;
    }
}

/// The thread's step is over: it enters its wait.
fn sleep(
    threads: &[Thread],
    who: usize,
    at: &mut [(usize, usize, u64, u64)],
    now: u64,
    events: &mut Vec<Event>,
) {
    let thread = &threads[who];
    let (job, step, ..) = at[who];
    let Step { waits, sleeps, .. } = thread.jobs[job].steps[step];
    events.push(Event { time_ns: now, kind: EventKind::Call { tid: thread.tid, wait: waits } });
    if let Some(next) = thread.jobs[job].steps.get(step + 1) {
        at[who] = (job, step + 1, next.executes, now + sleeps);
        return;
    }
    let Some(next) = thread.jobs.get(job + 1) else {
        at[who] = (job + 1, 0, 0, u64::MAX);
        return;
    };
    if let Some(expires_ns) = next.expiry {
        let timer = 0xffff_0000 + u64::from(thread.tid);
        let kind = EventKind::Timer { tid: thread.tid, timer, expires_ns, absolute: true };
        events.push(Event { time_ns: now, kind });
    }
    at[who] = (job + 1, 0, next.steps[0].executes, next.ready.max(now));
}

/// What an observer of these threads has seen.
fn observed(threads: &[Thread], events: &[Event]) -> Observer {
    let mut observer = Observer::default();
    threads.iter().for_each(|thread| observer.watch(thread.tid));
    events.iter().for_each(|event| observer.take(*event));
    observer
}

fn described(tid: u32, comm: &str, class: Class) -> Description {
    Description {
        tid,
        comm: comm.to_owned(),
        class,
        class_changed: false,
        is_also_ordinary: false,
        allowed: None,
        process: None,
        files: BTreeMap::new(),
    }
}

fn extract(threads: &[Thread], events: &[Event]) -> Proposal {
    let observer = observed(threads, events);
    let describe = |tid: u32| described(tid, "work\ner", Class::Fifo { priority: 99 - tid as u8 });
    let options = Options { resolution_ns: 1, ..Options::default() };
    let lock_name = |lock: u64| format!("lock {lock}");
    let proposal = propose("synthetic", &observer, &describe, &lock_name, Observation::default(), &options);
    let text = proposal.to_toml().unwrap_or_else(|error| panic!("{error}"));
    let (system, _) = horolog_model::file::read(&text, "proposal", &[]).unwrap();
    assert_eq!(system.tasks().len(), proposal.tasks.len());
    proposal
}

/// The first job is not seen whole, since nothing tells when the sleep before it began.
fn executions(thread: &Thread) -> Vec<u64> {
    thread.jobs.iter().skip(1).map(|job| job.steps.iter().map(|step| step.executes).sum()).collect()
}

/// Two periodic threads; draws: execution of each job, lateness of each wake-up.
fn periodic(periods: [u64; 2], draws: &[(u64, u64, u64, u64)], timed: bool, late: u64) -> Vec<Thread> {
    let of = |index: usize| {
        let period = periods[index];
        let jobs = draws.iter().enumerate().map(|(k, draw)| {
            let at = MS + k as u64 * period;
            let (executes, lateness) = if index == 0 { (draw.0, draw.1) } else { (draw.2, draw.3) };
            let executes = 1_000 + executes * (period / 3) / 1_000;
            job(timed.then_some(at), lateness * late / 1_000, at, executes, WaitKind::SleepUntil)
        });
        Thread { tid: 10 + index as u32, jobs: jobs.collect() }
    };
    vec![of(0), of(1)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn timers_give_the_exact_period_and_executions(
        periods in [900_000_u64..3_000_000, 3_000_000_u64..9_000_000],
        draws in prop::collection::vec((0_u64..900, 0_u64..1_000, 0_u64..900, 0_u64..1_000), 40..120),
    ) {
        let threads = periodic(periods, &draws, true, 20_000);
        let proposal = extract(&threads, &record(&threads));
        prop_assert_eq!(proposal.tasks.len(), 2);
        for (index, (task, values)) in proposal.tasks.iter().enumerate() {
            let drawn = executions(&threads[index]);
            prop_assert_eq!(&values.arrival, &Arrival::Period(periods[index]));
            prop_assert_eq!(values.jitter, 0);
            prop_assert_eq!(task.execution.max_ns, *drawn.iter().max().unwrap());
            prop_assert_eq!(task.execution.min_ns, *drawn.iter().min().unwrap());
            prop_assert_eq!(task.execution.count, drawn.len() as u64);
            prop_assert!(values.wcet >= *drawn.iter().max().unwrap() && values.bcet <= *drawn.iter().min().unwrap());
            prop_assert_eq!(values.priority, Some(89 - index as i64));
            prop_assert_eq!(values.cpu, 3);
        }
    }

    #[test]
    fn wake_ups_alone_give_the_period_and_no_more_jitter_than_drawn(
        periods in [900_u64..3_000, 3_000_u64..9_000],
        draws in prop::collection::vec((0_u64..900, 0_u64..1_000, 0_u64..900, 0_u64..1_000), 150..250),
    ) {
        let periods = periods.map(|us| us * 1_000);
        let late = 30_000;
        let threads = periodic(periods, &draws, false, late);
        let proposal = extract(&threads, &record(&threads));
        for (index, (task, values)) in proposal.tasks.iter().enumerate() {
            prop_assert_eq!(&values.arrival, &Arrival::Period(periods[index]), "{:?}", task.reading.pattern);
            // Where a job still ran at its successor's arrival, that one is woken later: only in the second thread.
            if index == 0 {
                prop_assert!(values.jitter <= late, "{}", values.jitter);
            }
            prop_assert!(values.wcet >= *executions(&threads[index]).iter().max().unwrap());
        }
    }

    /// Any single switch may be missing: what is concluded from the rest is never too long.
    #[test]
    fn missing_switches_lengthen_no_execution(
        periods in [900_000_u64..3_000_000, 3_000_000_u64..9_000_000],
        draws in prop::collection::vec((0_u64..900, 0_u64..1_000, 0_u64..900, 0_u64..1_000), 60..120),
        missing in prop::collection::vec(prop::bool::weighted(0.03), 60),
    ) {
        let threads = periodic(periods, &draws, true, 20_000);
        let events = record(&threads);
        let mut switches = 0;
        let mut dropped = false;
        let kept: Vec<Event> = events.into_iter().filter(|event| {
            if !matches!(event.kind, EventKind::Switch { .. }) {
                return true;
            }
            switches += 1;
            // Never two in a row: then nothing would tell.
            dropped = !dropped && missing[switches % missing.len()];
            !dropped
        }).collect();
        let proposal = extract(&threads, &kept);
        for (task, values) in &proposal.tasks {
            let index = task.thread.tid as usize - 10;
            let drawn = executions(&threads[index]);
            prop_assert!(task.execution.max_ns <= *drawn.iter().max().unwrap(), "{:?}", task.execution);
            prop_assert_eq!(&values.arrival, &Arrival::Period(periods[index]));
        }
    }

    #[test]
    fn sporadic_threads_get_the_least_separation(
        distances in prop::collection::vec(2_000_000_u64..20_000_000, 60..150),
        executes in 1_000_u64..1_500_000,
    ) {
        let mut at = 0;
        let jobs = distances.iter().map(|distance| {
            at += distance;
            job(None, 0, at, executes, WaitKind::Socket)
        });
        let threads = [Thread { tid: 10, jobs: jobs.collect() }];
        let proposal = extract(&threads, &record(&threads));
        let values = &proposal.tasks[0].1;
        let least = *distances[2..].iter().min().unwrap();
        prop_assert_eq!(&values.arrival, &Arrival::Separation(least));
        prop_assert_eq!(values.wcet, executes);
    }
}

#[test]
fn a_lock_in_the_middle_suspends_a_job_and_ends_none() {
    let jobs = (0..150_u64).map(|k| {
        let at = 5 * MS + k * 10 * MS;
        let first = Step { executes: 300_000, waits: WaitKind::Futex, sleeps: 200_000 + k * 1_000 };
        let second = Step { executes: 500_000 + k, waits: WaitKind::SleepUntil, sleeps: 0 };
        Job { expiry: Some(at), ready: at + 7_000, steps: vec![first, second] }
    });
    let threads = [Thread { tid: 10, jobs: jobs.collect() }];
    let proposal = extract(&threads, &record(&threads));
    let (task, values) = &proposal.tasks[0];
    assert_eq!(values.arrival, Arrival::Period(10 * MS));
    assert_eq!((task.execution.min_ns, task.execution.max_ns), (800_001, 800_149));
    assert_eq!((task.suspensions.count, task.suspensions.most_a_job, task.suspensions.jobs), (149, 1, 149));
    assert_eq!(task.suspensions.longest_ns, 349_000);
    // Sleeping counts as executing: no test here models a suspension.
    assert_eq!(values.wcet, 800_149 + 349_000);
    assert_eq!(task.lateness.as_ref().map(|late| (late.min_ns, late.max_ns)), Some((7_000, 7_000)));
}

#[test]
fn a_timed_sleep_in_the_middle_is_told_from_the_period() {
    // Every other sleep is the period's; the other one waits 1 ms for a device, by the clock too.
    let jobs = (0..200_u64).map(|k| {
        let at = 5 * MS + (k / 2) * 20 * MS + (k % 2) * 3 * MS;
        job(Some(at), 0, at, 400_000, WaitKind::SleepUntil)
    });
    let threads = [Thread { tid: 10, jobs: jobs.collect() }];
    let proposal = extract(&threads, &record(&threads));
    let (task, values) = &proposal.tasks[0];
    assert_eq!(values.arrival, Arrival::Period(20 * MS));
    assert_eq!(task.reading.separator.every, 2);
    assert_eq!(task.execution.max_ns, 800_000);
    assert_eq!(task.suspensions.longest_ns, 2_600_000);
}

#[test]
fn an_overrun_does_not_merge_two_jobs() {
    let mut events = Vec::new();
    let mut push = |time_ns, kind| events.push(Event { time_ns, kind });
    let switch = |prev, left, next| EventKind::Switch { cpu: 0, prev, left, next, prev_is_deadline: false };
    let sleep = |time, k: u64, sleeps: bool, push: &mut dyn FnMut(u64, EventKind)| {
        push(time, EventKind::Call { tid: 10, wait: WaitKind::SleepUntil });
        push(time, EventKind::Timer { tid: 10, timer: 1, expires_ns: k * 10 * MS, absolute: true });
        if sleeps {
            push(time, switch(10, Left::Asleep(b'S'), 0));
        } else {
            // The timer had expired already: it wakes a thread that has the processor.
            push(time + 1_000, EventKind::Wakeup { tid: 10 });
        }
    };
    push(MS, switch(0, Left::Runnable, 10));
    sleep(2 * MS, 1, true, &mut push);
    for k in 1..40_u64 {
        let at = k * 10 * MS;
        let overran = k > 1 && (k - 1) % 10 == 0;
        let begin = if overran { at + 2 * MS } else { at };
        if !overran {
            push(at, EventKind::Wakeup { tid: 10 });
            push(at, switch(0, Left::Runnable, 10));
        }
        let overruns = k % 10 == 0;
        let end = if overruns { at + 12 * MS } else { begin + 3 * MS };
        sleep(end, k + 1, !overruns, &mut push);
    }
    let threads = [Thread { tid: 10, jobs: Vec::new() }];
    let proposal = extract(&threads, &events);
    let (task, values) = &proposal.tasks[0];
    let Pattern::Periodic(fit) = &task.reading.pattern else { panic!("{:?}", task.reading.pattern) };
    assert_eq!(fit.period_ns, 10 * MS);
    assert_eq!(task.execution.max_ns, 12 * MS);
    assert_eq!((task.execution.p50_ns, task.execution.count), (3 * MS, 39));
    // The longest job does not fit into the period; all that the thread executed fits the processor.
    let Arrival::Portions { separation, .. } = values.arrival else { panic!("{values:?}") };
    assert!(values.wcet < 4 * MS && separation > 9 * MS, "{values:?}");
}

#[test]
fn bursts_get_an_envelope_and_few_arrivals_are_listed() {
    let bursts = (0..120_u64).map(|k| {
        let at = MS + (k / 3) * (7 * MS + (k / 3) % 5 * MS) + (k % 3) * 100_000;
        job(None, 0, at, 400_000, WaitKind::Epoll)
    });
    let few = (0..4_u64).map(|k| job(None, 0, MS + k * k * 60 * MS, 10_000, WaitKind::Pipe));
    let threads = [Thread { tid: 10, jobs: few.collect() }, Thread { tid: 11, jobs: bursts.collect() }];
    let proposal = extract(&threads, &record(&threads));
    let by_tid: BTreeMap<u32, _> =
        proposal.tasks.iter().map(|(task, values)| (task.thread.tid, values)).collect();
    assert!(matches!(&by_tid[&10].arrival, Arrival::Instants(instants) if instants.len() == 3));
    let Arrival::Envelope { separation, jitter } = by_tid[&11].arrival else { panic!("{:?}", by_tid[&11]) };
    assert_eq!((by_tid[&11].deadline, by_tid[&11].jitter), (Some(separation + jitter), jitter));
    // Both are called alike: their names are told apart, and no control character is left in them.
    let names: Vec<&str> = proposal.tasks.iter().map(|(task, _)| task.name.as_str()).collect();
    assert_eq!(names, ["work_er-1", "work_er-2"]);
}

#[test]
fn pauses_steal_and_losses_set_jobs_aside() {
    let jobs = (0..100_u64).map(|k| {
        let at = MS + k * 10 * MS;
        job(Some(at), 0, at, if k == 50 { 8 * MS } else { MS }, WaitKind::SleepUntil)
    });
    let threads = [Thread { tid: 10, jobs: jobs.collect() }];
    let mut events = record(&threads);
    let inside = |k: u64| MS + k * 10 * MS + 500_000;
    for (time_ns, kind) in [
        (inside(20), EventKind::Paused { cpu: 3 }),
        (inside(30), EventKind::Lost { cpu: Some(3) }),
        (inside(40), EventKind::Lost { cpu: None }),
        (inside(51), EventKind::Stolen { cpu: 3, since_ns: inside(48), stolen_ns: 6 * MS }),
    ] {
        let place = events.partition_point(|event| event.time_ns <= time_ns);
        events.insert(place, Event { time_ns, kind });
    }
    let proposal = extract(&threads, &events);
    let (task, values) = &proposal.tasks[0];
    assert_eq!((task.set_aside.chain, task.set_aside.pause), (2, 2));
    assert_eq!((task.execution.count, values.wcet, task.set_aside.longest_ns), (95, MS, 8 * MS));
    assert_eq!(values.arrival, Arrival::Period(10 * MS));
}

#[test]
fn the_first_job_of_a_thread_that_starts_meanwhile_is_start_up() {
    let jobs = (0..40_u64).map(|k| {
        let at = MS + k * 10 * MS;
        job(Some(at), 0, at, if k == 1 { 7 * MS } else { MS }, WaitKind::SleepUntil)
    });
    let threads = [Thread { tid: 10, jobs: jobs.collect() }];
    let events = record(&threads);
    let mut observer = Observer::default();
    observer.watch_born(10);
    events.iter().for_each(|event| observer.take(*event));
    let describe = |tid: u32| Description {
        allowed: Some(vec![3]),
        ..described(tid, "born", Class::Fifo { priority: 5 })
    };
    let (lock_name, seen) = (|_: u64| String::new(), Observation::default());
    let proposal = propose("born", &observer, &describe, &lock_name, seen, &Options::default());
    let (task, values) = &proposal.tasks[0];
    assert_eq!((task.set_aside.start, task.set_aside.longest_ns, values.wcet), (1, 7 * MS, MS));
    assert_eq!(values.arrival, Arrival::Period(10 * MS));
}

#[test]
fn ordinary_threads_and_idle_ones_are_no_tasks() {
    let mut observer = Observer::default();
    observer.watch(10);
    observer.watch(0);
    let describe = |tid: u32| described(tid, "", Class::Normal { nice: 0 });
    let with = |all: bool| {
        let options = Options { all, ..Options::default() };
        propose("none", &observer, &describe, &|_| String::new(), Observation::default(), &options)
    };
    for (all, why) in [(false, "ordinary class"), (true, "no activation")] {
        let proposal = with(all);
        assert!(proposal.tasks.is_empty() && proposal.to_toml().is_err());
        assert_eq!(proposal.background.len(), 1);
        assert!(proposal.background[0].why.contains(why), "{:?}", proposal.background);
    }
}

/// The file has fixed priorities; what the kernel serves otherwise is named, and nothing is proved of it.
#[test]
fn what_the_kernel_does_not_serve_by_fixed_priorities_is_told() {
    let threads: Vec<Thread> = [(10, 0), (11, 5)]
        .map(|(tid, later)| {
            let job = |k: u64| {
                let at = (1 + later + 10 * k) * MS;
                job(Some(at), 0, at, MS, WaitKind::SleepUntil)
            };
            Thread { tid, jobs: (0..30).map(job).collect() }
        })
        .into();
    let events = record(&threads);
    let told = |classes: [Class; 2]| {
        let observer = observed(&threads, &events);
        let describe = |tid: u32| described(tid, &format!("t{tid}"), classes[tid as usize - 10]);
        let options = Options { resolution_ns: 1, all: true, ..Options::default() };
        let seen = Observation::default();
        propose("told", &observer, &describe, &|_| String::new(), seen, &options).unmodelled()
    };
    let (fifo, slices) = (|priority| Class::Fifo { priority }, |priority| Class::RoundRobin { priority });
    let normal = Class::Normal { nice: 0 };
    let either = |priority| Class::RealTime { priority };
    for classes in [[fifo(5), fifo(5)], [fifo(5), slices(6)], [slices(5), slices(6)], [either(5), either(6)]]
    {
        assert!(told(classes).is_empty(), "{classes:?}: {:?}", told(classes));
    }
    for (classes, begin) in [
        ([fifo(5), normal], "`t11`: ordinary threads"),
        ([normal, normal], "`t10`, `t11`: ordinary threads"),
        ([slices(5), slices(5)], "`t10`, `t11`: SCHED_RR with equals"),
        ([slices(5), fifo(5)], "`t10`: SCHED_RR with equals"),
        ([fifo(5), Class::Unknown], "`t11`: the record does not tell the priority"),
        ([either(5), either(5)], "`t10`, `t11`: the record does not tell SCHED_FIFO from SCHED_RR"),
        ([either(5), fifo(5)], "`t10`: the record does not tell SCHED_FIFO from SCHED_RR"),
        ([Class::Unknown, Class::Unknown], "the record tells no priorities"),
    ] {
        let told = told(classes);
        assert!(told.len() == 1 && told[0].starts_with(begin), "{classes:?}: {told:?}");
    }
}

/// A thread with several priorities, and a real-time thread that is no task and not below all tasks.
#[test]
fn what_the_file_leaves_out_of_priorities_is_told() {
    let job = |k: u64| job(Some((1 + 10 * k) * MS), 0, (1 + 10 * k) * MS, MS, WaitKind::SleepUntil);
    let task = Thread { tid: 10, jobs: (0..30).map(job).collect() };
    let once = Thread { tid: 11, jobs: vec![job(3)] };
    let threads = [task, once];
    let events = record(&threads);
    let told = |priority: u8, class_changed: bool| {
        let observer = observed(&threads, &events);
        let describe = |tid: u32| {
            let class = Class::Fifo { priority: if tid == 10 { 5 } else { priority } };
            Description {
                class_changed: class_changed && tid == 10,
                ..described(tid, &format!("t{tid}"), class)
            }
        };
        let only = Options { threads: vec![Chosen::Thread(10)], resolution_ns: 1, ..Options::default() };
        let seen = Observation::default();
        propose("told", &observer, &describe, &|_| String::new(), seen, &only).unmodelled()
    };
    assert!(told(4, false).is_empty(), "{:?}", told(4, false));
    for priority in [5, 6] {
        let told = told(priority, false);
        assert!(told.len() == 1 && told[0].starts_with("thread 11 `t11` (SCHED_FIFO"), "{told:?}");
    }
    let told = told(4, true);
    assert!(told.len() == 1 && told[0].starts_with("`t10`: priority or class changed"), "{told:?}");
}

#[test]
fn locks_give_critical_sections() {
    let jobs =
        (0..30_u64).map(|k| job(Some(MS + k * 10 * MS), 0, MS + k * 10 * MS, MS, WaitKind::SleepUntil));
    let threads = [Thread { tid: 10, jobs: jobs.collect() }];
    let mut events = record(&threads);
    for k in 0..30_u64 {
        let at = MS + k * 10 * MS;
        for (after, lock, held) in [(100, 7, true), (200, 8, true), (300 + k, 8, false), (600, 7, false)] {
            let time_ns = at + after * 1_000;
            let place = events.partition_point(|event| event.time_ns <= time_ns);
            events.insert(
                place,
                Event { time_ns, kind: EventKind::Lock { tid: 10, lock, kind: LockKind::Plain, held } },
            );
        }
    }
    let proposal = extract(&threads, &events);
    let locks = &proposal.tasks[0].0.locks;
    let found: Vec<_> = locks
        .iter()
        .map(|lock| (lock.lock.as_str(), lock.held.count, lock.held.max_ns, lock.depth_max))
        .collect();
    assert_eq!(found, [("lock 7", 30, 500_000, 0), ("lock 8", 30, 129_000, 1)]);
    assert!(proposal.to_toml().unwrap().contains("Critical sections under lock 7"));
}

/// Two threads of which each takes lock 7 within its jobs, the first for 500 us and the second for 700 us.
fn sharing(kind: LockKind, more: &[(u32, u64, u64, bool)]) -> (Vec<Thread>, Vec<Event>) {
    let jobs = |offset: u64, period: u64, executes: u64| {
        (0..30_u64)
            .map(|k| job(Some(offset + k * period), 0, offset + k * period, executes, WaitKind::SleepUntil))
            .collect()
    };
    let threads = vec![
        Thread { tid: 10, jobs: jobs(MS, 10 * MS, MS) },
        Thread { tid: 20, jobs: jobs(3 * MS, 10 * MS, 2 * MS) },
    ];
    let mut events = record(&threads);
    let both = [(10, 100, 7, true), (10, 600, 7, false), (20, 200, 7, true), (20, 900, 7, false)];
    for k in 0..30_u64 {
        for &(tid, after, lock, held) in both.iter().chain(more) {
            let time_ns = if tid == 10 { MS } else { 3 * MS } + k * 10 * MS + after * 1_000;
            let place = events.partition_point(|event| event.time_ns <= time_ns);
            events.insert(place, Event { time_ns, kind: EventKind::Lock { tid, lock, kind, held } });
        }
    }
    (threads, events)
}

#[test]
fn a_lock_that_two_tasks_share_is_a_resource() {
    for (kind, protocol) in
        [(LockKind::Plain, "none"), (LockKind::Inheritance, "inheritance"), (LockKind::Ceiling, "ceiling")]
    {
        let (threads, events) = sharing(kind, &[]);
        let proposal = extract(&threads, &events);
        assert_eq!(proposal.locks.left_out, [], "{kind:?}");
        let found = &proposal.locks.resources[0];
        assert_eq!((&*found.name, found.protocol), ("lock 7", protocol));
        let lengths: Vec<_> = found.sections.iter().map(|one| (one.from_ns, one.length_ns)).collect();
        assert_eq!(lengths, [(0, 500_000), (0, 700_000)]);
        let (system, _) = horolog_model::file::read(&proposal.to_toml().unwrap(), "proposal", &[]).unwrap();
        let lengths: Vec<u64> =
            system.tasks().iter().flat_map(|task| &task.sections).map(|one| one.length.as_ns()).collect();
        assert_eq!(lengths, [500_000, 700_000], "{kind:?}");
    }
}

/// A second lock lies behind the first one in the file, whatever the order in the program was; one that does not fit is left out.
#[test]
fn sections_of_several_locks_lie_one_behind_the_other() {
    let more = [(10, 700, 8, true), (10, 1_000, 8, false), (20, 1_000, 8, true), (20, 1_100, 8, false)];
    let (threads, events) = sharing(LockKind::Inheritance, &more);
    let proposal = extract(&threads, &events);
    let sections: Vec<Vec<(u64, u64)>> = (proposal.locks.resources.iter())
        .map(|one| one.sections.iter().map(|one| (one.from_ns, one.length_ns)).collect())
        .collect();
    assert_eq!(sections, [[(0, 500_000), (0, 700_000)], [(500_000, 300_000), (700_000, 100_000)]]);
}

#[test]
fn what_the_file_cannot_say_of_a_lock_is_told() {
    // It lies within another one.
    let within = [(20, 300, 8, true), (20, 400, 8, false)];
    // It is held while the thread sleeps for its next job.
    let kept = [(10, 700, 8, true), (10, 50, 8, false), (20, 1_000, 8, true), (20, 1_100, 8, false)];
    for (kind, more, lock, why) in [
        (LockKind::Other, &[][..], "lock 7", "spinlock"),
        (LockKind::Inheritance, &within[..], "lock 7", "while it holds others"),
        (LockKind::Inheritance, &kept[..], "lock 8", "longer than its wcet"),
    ] {
        let (threads, events) = sharing(kind, more);
        let proposal = extract(&threads, &events);
        let text = proposal.to_toml().unwrap();
        let found = proposal.locks.left_out.iter().find(|one| one.lock == lock).expect("it is told");
        assert!(found.why.contains(why), "{found:?}");
        assert!(text.contains(&format!("{lock} is shared by")), "{text}");
        assert!(proposal.locks.resources.iter().all(|one| one.name != lock));
    }
}

/// A recursive mutex that its holder takes again begins no section of its own, and ends with the last unlock.
#[test]
fn a_lock_taken_again_by_its_holder_is_one_section() {
    let again = [
        (10, 200, 7, true),
        (10, 300, 7, false),
        (20, 300, 7, true),
        (20, 300, 7, true),
        (20, 400, 7, false),
        (20, 800, 7, false),
    ];
    let (threads, events) = sharing(LockKind::Inheritance, &again);
    let proposal = extract(&threads, &events);
    assert_eq!(proposal.locks.left_out, []);
    let found = &proposal.locks.resources[0];
    let lengths: Vec<_> = found.sections.iter().map(|one| (one.from_ns, one.length_ns)).collect();
    assert_eq!(lengths, [(0, 500_000), (0, 700_000)]);
    let depths: Vec<u32> =
        proposal.tasks.iter().flat_map(|(task, _)| &task.locks).map(|lock| lock.depth_max).collect();
    assert_eq!(depths, [0, 0]);
    let executed: Vec<_> =
        proposal.tasks.iter().flat_map(|(task, _)| &task.locks).map(|it| it.executed_max_ns).collect();
    assert_eq!(executed, [Some(500_000), Some(700_000)]);
}

/// What is shared and in no section makes the file say that it leaves something out.
#[test]
fn a_lock_that_is_waited_for_in_vain_is_told() {
    let held = [(20, 1_000, 9, true), (20, 1_600, 9, false)];
    let (threads, mut events) = sharing(LockKind::Inheritance, &held);
    let refused = |events: &mut Vec<Event>, timed_out: Option<u64>| {
        let place = events.partition_point(|event| event.time_ns <= MS + 700_000);
        events.insert(
            place,
            Event { time_ns: MS + 700_000, kind: EventKind::LockRefused { tid: 10, timed_out } },
        );
    };
    // A lock that is only tried is not waited for.
    refused(&mut events, None);
    let proposal = extract(&threads, &events);
    assert_eq!(proposal.locks.left_out, []);
    assert!(!proposal.to_toml().unwrap().contains("unmodelled"));
    // One that it has itself is in its sections.
    refused(&mut events, Some(7));
    assert_eq!(extract(&threads, &events).locks.left_out, []);
    refused(&mut events, Some(9));
    let proposal = extract(&threads, &events);
    let found = &proposal.locks.left_out[0];
    assert_eq!((&*found.lock, found.tasks.len()), ("lock 9", 2));
    let (system, _) = horolog_model::file::read(&proposal.to_toml().unwrap(), "proposal", &[]).unwrap();
    assert_eq!(system.unmodelled().len(), 1);
    assert!(
        system.unmodelled()[0].starts_with("lock 9 is shared by work_er-1, work_er-2: "),
        "{:?}",
        system.unmodelled()
    );
}

/// A wait for a lock is no end of a job, and asking for one that is free is none either.
#[test]
fn a_wait_for_a_lock_is_within_the_job() {
    let jobs =
        (0..30_u64).map(|k| job(Some(MS + k * 10 * MS), 0, MS + k * 10 * MS, MS, WaitKind::SleepUntil));
    let threads = [Thread { tid: 10, jobs: jobs.collect() }];
    let mut events = record(&threads);
    let jobs = extract(&threads, &events).tasks[0].0.reading.jobs.len();
    for k in 0..30_u64 {
        for (after, kind) in [
            (100_000, EventKind::LockAsked { tid: 10 }),
            (101_000, EventKind::Lock { tid: 10, lock: 7, kind: LockKind::Plain, held: true }),
            (150_000, EventKind::Lock { tid: 10, lock: 7, kind: LockKind::Plain, held: false }),
        ] {
            let time_ns = MS + k * 10 * MS + after;
            let place = events.partition_point(|event| event.time_ns <= time_ns);
            events.insert(place, Event { time_ns, kind });
        }
    }
    let proposal = extract(&threads, &events);
    let task = &proposal.tasks[0].0;
    assert_eq!((task.reading.jobs.len(), task.execution.max_ns), (jobs, MS));
}

/// Of a thread that is no task nothing is bounded, and that is worst where nothing raises its priority.
#[test]
fn a_lock_shared_with_a_thread_that_is_no_task_is_told() {
    for (kind, is_raised) in [(LockKind::Plain, false), (LockKind::Inheritance, true)] {
        let (threads, events) = sharing(kind, &[]);
        let observer = observed(&threads, &events);
        let describe = |tid: u32| {
            described(
                tid,
                &format!("t{tid}"),
                if tid == 10 { Class::Fifo { priority: 80 } } else { Class::Normal { nice: 0 } },
            )
        };
        let lock_name = |lock: u64| format!("lock {lock}");
        let proposal =
            propose("p", &observer, &describe, &lock_name, Observation::default(), &Options::default());
        assert_eq!(proposal.locks.resources, []);
        let found = &proposal.locks.left_out[0];
        assert_eq!((&*found.tasks, &*found.others), (&["t10".to_owned()][..], &["t20 (20)".to_owned()][..]));
        assert_eq!(!found.why.contains("nothing raises"), is_raised, "{found:?}");
    }
}

/// Where the record does not say that a thread has the processor while it holds a lock, all the time counts.
#[test]
fn a_section_with_switches_missing_is_as_long_as_it_was_held() {
    let (threads, events) = sharing(LockKind::Inheritance, &[]);
    // The switches of one job of the second thread are hidden: it executes 2 ms from 63 ms on.
    let is_hidden = |event: &Event| {
        (63 * MS..=65 * MS).contains(&event.time_ns) && matches!(event.kind, EventKind::Switch { .. })
    };
    let hidden: Vec<Event> = events.into_iter().filter(|event| !is_hidden(event)).collect();
    // It holds the lock for longer there, while nothing says what it does.
    let later = |event: &Event| {
        let is_release = matches!(event.kind, EventKind::Lock { tid: 20, held: false, .. });
        let is_there = (63 * MS..65 * MS).contains(&event.time_ns) && is_release;
        Event { time_ns: event.time_ns + if is_there { 300_000 } else { 0 }, ..*event }
    };
    let proposal = extract(&threads, &hidden.iter().map(later).collect::<Vec<_>>());
    let lengths: Vec<u64> = proposal.locks.resources[0].sections.iter().map(|one| one.length_ns).collect();
    assert_eq!(lengths, [500_000, 1_000_000]);
}
