//! Whatever is drawn: the proposed tasks ask for no more than the processors give, and the observed arrivals and
//! executions are legal in the proposed model. Both are worked out here a second time, window by window.
#![allow(clippy::unwrap_used)]

use horolog_measure::extraction::replay::violations;
use horolog_measure::extraction::{
    Arrival, Chosen, Class, Confidence, Description, Event, EventKind, Left, Observation, Observer, Options,
    Proposal, TaskProposal, Values, WaitKind, propose,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

/// An activation: how long after the end of the one before it comes, what it executes, and a sleep in its middle.
type Draw = (u64, u64, Option<u64>);

fn description(tid: u32, class: Class, allowed: Option<Vec<u32>>) -> Description {
    Description {
        tid,
        comm: format!("worker-{tid}"),
        process: Some((tid / 10 * 10, format!("process-{}", tid / 10))),
        class,
        class_changed: false,
        is_also_ordinary: false,
        allowed,
        files: BTreeMap::new(),
    }
}

/// The record of threads that each have a processor of their own for a while: thread after thread gets the processor for
/// whole activations, so that together they never execute more than the time that passes.
fn record(threads: &[Vec<Draw>], waits: WaitKind) -> (Vec<Event>, u64) {
    let mut events = Vec::new();
    let mut next: Vec<(u64, usize)> = threads.iter().map(|draws| (draws[0].0, 0)).collect();
    let mut now = 0;
    while let Some(who) =
        (0..threads.len()).filter(|who| next[*who].1 < threads[*who].len()).min_by_key(|who| next[*who].0)
    {
        let (ready, index) = next[who];
        let (_, executes, sleeps) = threads[who][index];
        let tid = 10 + who as u32;
        let mut push = |time_ns, kind| events.push(Event { time_ns, kind });
        let switch =
            |prev, left, next| EventKind::Switch { cpu: 0, prev, left, next, prev_is_deadline: false };
        push(ready, EventKind::Wakeup { tid });
        now = ready.max(now);
        push(now, switch(0, Left::Runnable, tid));
        if let Some(sleeps) = sleeps {
            now += executes / 2;
            push(now, EventKind::Call { tid, wait: WaitKind::Futex });
            push(now, switch(tid, Left::Asleep(b'S'), 0));
            now += sleeps;
            push(now, EventKind::Wakeup { tid });
            push(now, switch(0, Left::Runnable, tid));
        }
        now += executes - if sleeps.is_some() { executes / 2 } else { 0 };
        push(now, EventKind::Call { tid, wait: waits });
        push(now, switch(tid, Left::Asleep(b'S'), 0));
        let pause = threads[who].get(index + 1).map_or(0, |draw| draw.0);
        next[who] = (now + pause, index + 1);
    }
    // Wake-ups of threads that wait for the processor come after what ran meanwhile.
    events.sort_by_key(|event| event.time_ns);
    (events, now)
}

fn extract(
    events: &[Event],
    tids: &[u32],
    duration_ns: u64,
    describe: &dyn Fn(u32) -> Description,
    options: &Options,
) -> Proposal {
    let mut observer = Observer::default();
    tids.iter().for_each(|tid| observer.watch(*tid));
    events.iter().for_each(|event| observer.take(*event));
    let seen = Observation { duration_ns, ..Observation::default() };
    propose("drawn", &observer, describe, &|_| String::new(), seen, options)
}

/// Every window of a task's jobs, against what the model allows there.
fn is_legal(task: &TaskProposal, values: &Values) {
    assert_eq!(violations(task, values), Vec::<String>::new());
    let work = task.work(values.suspensions_counted);
    let (separation, jitter, is_portions) = match values.arrival {
        Arrival::Period(separation) | Arrival::Separation(separation) => (separation, values.jitter, false),
        Arrival::Envelope { separation, jitter } => (separation, jitter, false),
        Arrival::Portions { separation, jitter } => (separation, jitter, true),
        Arrival::Instants(_) => return,
    };
    for i in 0..work.len() {
        let mut sum = 0_u128;
        for j in i..work.len() {
            let window = work[j].0 - work[i].0;
            let jobs = u128::from((window + jitter) / separation + 1);
            sum += u128::from(work[j].1);
            assert!(sum <= jobs * u128::from(values.wcet), "{values:?}: work {i} to {j}");
            assert!(is_portions || ((j - i) as u128) < jobs, "{values:?}: arrivals {i} to {j}");
        }
    }
}

/// The system file's own utilisation of each processor, and of all.
fn is_within_the_processors(proposal: &Proposal) {
    let (system, _) = horolog_model::file::read(&proposal.to_toml().unwrap(), "proposal", &[]).unwrap();
    let mut loads: BTreeMap<u32, f64> = BTreeMap::new();
    for task in system.tasks() {
        let share =
            task.separation().map_or(0.0, |separation| task.wcet.as_ns() as f64 / separation.as_ns() as f64);
        *loads.entry(task.cpu.0).or_default() += share;
    }
    assert!(loads.values().all(|load| *load <= 1.0 + 1e-9), "{loads:?}");
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    // Most come at once, some after a pause; most are short, some long; a few sleep in their middle.
    let pause = prop_oneof![4 => 1_000_u64..60_000, 1 => 1_000_u64..20_000_000];
    let executes = prop_oneof![5 => 2_000_u64..80_000, 1 => 2_000_u64..9_000_000];
    let sleeps = prop_oneof![6 => Just(None), 1 => (1_000_u64..3_000_000).prop_map(Some)];
    prop::collection::vec((pause, executes, sleeps), 2..90)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_was_observed_is_legal_and_fits_the_processors(
        threads in prop::collection::vec(draws(), 1..5),
        pinned in any::<bool>(),
        counts in any::<bool>(),
        known in any::<bool>(),
        waits in prop::sample::select(vec![WaitKind::Epoll, WaitKind::Socket, WaitKind::SleepFor, WaitKind::Unknown]),
    ) {
        let (events, duration) = record(&threads, waits);
        let tids: Vec<u32> = (0..threads.len() as u32).map(|who| 10 + who).collect();
        let class = |tid: u32| if known { Class::Fifo { priority: tid as u8 } } else { Class::Unknown };
        let describe = |tid: u32| description(tid, class(tid), pinned.then(|| vec![0]));
        let options = Options { resolution_ns: 1, count_suspensions: counts, ..Options::default() };
        let proposal = extract(&events, &tids, duration, &describe, &options);
        if proposal.tasks.is_empty() {
            return Ok(());
        }
        is_within_the_processors(&proposal);
        proposal.tasks.iter().for_each(|(task, values)| is_legal(task, values));
    }
}

/// A server of short requests, one of which in a hundred is long, and which come in bursts: as redis under load.
#[test]
fn a_busy_server_becomes_portions_of_its_execution() {
    let draws: Vec<Draw> = (0..2_000_u64)
        .map(|k| {
            (if k % 200 == 0 { 30 * MS } else { 5_000 }, if k % 100 == 0 { 4 * MS } else { 20_000 }, None)
        })
        .collect();
    let executed: u64 = draws.iter().skip(1).map(|draw| draw.1).sum();
    let (events, duration) = record(&[draws], WaitKind::Epoll);
    let describe = |tid: u32| Description {
        files: BTreeMap::from([("socket", 51), ("pipe", 1)]),
        ..description(tid, Class::Fifo { priority: 5 }, Some(vec![0]))
    };
    let proposal = extract(&events, &[10], duration, &describe, &Options::default());
    let (task, values) = &proposal.tasks[0];
    let Arrival::Portions { separation, .. } = values.arrival else { panic!("{values:?}") };
    // The first pause comes before the first job.
    let observed = executed as f64 / (duration - 30 * MS) as f64;
    let proposed = values.wcet as f64 / separation as f64;
    assert!((proposed / observed - 1.0).abs() < 0.05, "{proposed} of {observed}");
    assert!(task.confidence < Confidence::High && task.is_event_loop());
    is_legal(task, values);
    let text = proposal.to_toml().unwrap().replace("\n# ", " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("An event loop: it waits in epoll"), "{text}");
    assert!(text.contains("pipe (at most 1 at once), socket (at most 51 at once)"), "{text}");
    assert!(text.contains("So many consecutive activations executed at most: 2: 4.02 ms"), "{text}");
    // Jobs that a model without portions had: the longest at the least distance, many times what there is.
    assert!(task.execution.max_ns > 4 * duration / 2_000);
}

#[test]
fn one_unclassified_sleep_is_no_execution_and_lowers_the_confidence() {
    let periodic = |with_sleep: bool| {
        let mut events = Vec::new();
        let mut push = |time_ns, kind| events.push(Event { time_ns, kind });
        let switch =
            |prev, left, next| EventKind::Switch { cpu: 0, prev, left, next, prev_is_deadline: false };
        for k in 0..200_u64 {
            let at = (k + 1) * 10 * MS;
            push(at, EventKind::Wakeup { tid: 10 });
            push(at, switch(0, Left::Runnable, 10));
            if with_sleep && k == 100 {
                // Long after its last call: nothing tells for what it sleeps.
                push(at + 300_000, switch(10, Left::Asleep(b'S'), 0));
                push(at + 4 * MS, EventKind::Wakeup { tid: 10 });
                push(at + 4 * MS, switch(0, Left::Runnable, 10));
                push(at + 4 * MS + 700_000, EventKind::Call { tid: 10, wait: WaitKind::SleepUntil });
                push(
                    at + 4 * MS + 700_000,
                    EventKind::Timer { tid: 10, timer: 1, expires_ns: at + 10 * MS, absolute: true },
                );
                push(at + 4 * MS + 700_000, switch(10, Left::Asleep(b'S'), 0));
                continue;
            }
            push(at + MS, EventKind::Call { tid: 10, wait: WaitKind::SleepUntil });
            push(at + MS, EventKind::Timer { tid: 10, timer: 1, expires_ns: at + 10 * MS, absolute: true });
            push(at + MS, switch(10, Left::Asleep(b'S'), 0));
        }
        let describe = |tid: u32| description(tid, Class::Fifo { priority: 5 }, Some(vec![0]));
        extract(&events, &[10], 2_000 * MS, &describe, &Options::default())
    };
    let (task, values) = &periodic(false).tasks[0];
    assert_eq!((values.wcet, task.confidence, task.unclassified.count), (MS, Confidence::High, 0));
    let (task, values) = &periodic(true).tasks[0];
    assert_eq!((values.wcet, task.confidence), (MS, Confidence::Medium), "{task:?}");
    assert_eq!((task.unclassified.count, task.unclassified.longest_a_job_ns), (1, 3_700_000));
    assert!(task.reasons.iter().any(|reason| reason.contains("for an unknown reason: not in the wcet")));
}

#[test]
fn a_job_that_the_end_of_its_thread_cuts_off_does_not_count() {
    let with_end = |ends: bool| {
        let draws: Vec<Draw> = (0..60).map(|_| (9 * MS, MS, None)).collect();
        let (mut events, duration) = record(&[draws], WaitKind::Socket);
        let mut push = |time_ns, kind| events.push(Event { time_ns, kind });
        let switch =
            |prev, left, next| EventKind::Switch { cpu: 0, prev, left, next, prev_is_deadline: false };
        push(duration + MS, EventKind::Wakeup { tid: 10 });
        push(duration + MS, switch(0, Left::Runnable, 10));
        // Its last stretch is a millionth of a job, and the kernel lets it sleep on its way out.
        if ends {
            push(duration + MS + 10, EventKind::Exit { tid: 10 });
            push(duration + MS + 20, switch(10, Left::Asleep(b'S'), 0));
            push(duration + MS + 30, EventKind::Wakeup { tid: 10 });
            push(duration + MS + 40, switch(0, Left::Runnable, 10));
            push(duration + MS + 50, switch(10, Left::Dead, 0));
        } else {
            push(duration + MS + 20, EventKind::Call { tid: 10, wait: WaitKind::Socket });
            push(duration + MS + 50, switch(10, Left::Asleep(b'S'), 0));
        }
        let describe = |tid: u32| description(tid, Class::Fifo { priority: 5 }, Some(vec![0]));
        let options = Options { resolution_ns: 1, ..Options::default() };
        extract(&events, &[10], duration, &describe, &options)
    };
    let (task, values) = &with_end(true).tasks[0];
    assert_eq!((task.reading.jobs.len(), task.execution.min_ns, values.bcet), (59, MS, MS));
    let (task, _) = &with_end(false).tasks[0];
    assert_eq!((task.reading.jobs.len(), task.execution.min_ns), (60, 50));
}

#[test]
fn threads_are_chosen_by_number_name_and_process() {
    let threads: Vec<Vec<Draw>> = (0..12).map(|_| (0..8).map(|_| (9 * MS, 10_000, None)).collect()).collect();
    let (events, duration) = record(&threads, WaitKind::Socket);
    let tids: Vec<u32> = (10..22).collect();
    let describe = |tid: u32| description(tid, Class::Normal { nice: 0 }, Some(vec![0]));
    let with = |threads: &[Chosen]| -> Vec<u32> {
        let options = Options { threads: threads.to_vec(), ..Options::default() };
        let proposal = extract(&events, &tids, duration, &describe, &options);
        let mut found: Vec<u32> = proposal.tasks.iter().map(|(task, _)| task.thread.tid).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(with(&[]), Vec::<u32>::new());
    assert_eq!(
        with(&[Chosen::Thread(11), Chosen::Named("worker-1?".to_owned())]),
        (10..20).collect::<Vec<_>>()
    );
    assert_eq!(with(&[Chosen::Process(20)]), [20, 21]);
    assert_eq!(with(&[Chosen::ProcessNamed("process-2".to_owned()), Chosen::Thread(10)]), [10, 20, 21]);
    assert_eq!(with(&[Chosen::Named("nobody".to_owned())]), Vec::<u32>::new());
}

/// Two threads without a place of their own that were seen on one processor for the greater part, and do not fit there.
#[test]
fn threads_that_may_run_elsewhere_go_where_there_is_room() {
    let busy = |_: u64| -> Vec<Draw> {
        (0..60).map(|k| (if k % 3 == 0 { MS } else { 100_000 }, 500_000, None)).collect()
    };
    let (events, duration) = record(&[busy(0), busy(1)], WaitKind::SleepFor);
    let with = |allowed: Vec<u32>| {
        let describe = |tid: u32| description(tid, Class::Fifo { priority: 5 }, Some(allowed.clone()));
        let proposal = extract(&events, &[10, 11], duration, &describe, &Options::default());
        is_within_the_processors(&proposal);
        let mut cpus: Vec<u32> = proposal.tasks.iter().map(|(_, values)| values.cpu).collect();
        cpus.sort_unstable();
        cpus
    };
    assert_eq!(with(vec![0, 1]), [0, 1]);
    assert_eq!(with(vec![0]), [0, 0]);
}
