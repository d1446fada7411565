//! Seeds, draws, horizons, overload, the edges of time, and replays that would leave the model.

use horolog_model::pattern::{PatternJob, ReleasePattern, TaskPattern, Witness};
use horolog_model::{System, TaskId};
use horolog_sim::{
    DelayChoice, ExecutionChoice, Horizon, PathChoice, ReplayOptions, SimOptions, default_horizon, replay,
    simulate,
};
use horolog_time::Span;
use horolog_trace::{Kind, NullSink, Record};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

fn system(text: &str) -> System {
    match horolog_model::file::read(text, "test.toml", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}"),
    }
}

/// Everything that is drawn, on two processors.
const DRAWN: &str = r#"
[system]
name = "drawn"
[platform]
cpus = 2
context_switch = "2 us"
timer_interrupt = "3 us"
release_latency = "60 us"
[[task]]
name = "control"
period = "10 ms"
wcet = "2 ms"
bcet = "1 ms"
execution = "uniform"
jitter = "100 us"
priority = 90
cpu = 0
[[task]]
name = "tracker"
period = "30 ms"
preemption = "deferred"
segments = [
  { name = "scan", bcet = "2 ms", wcet = "3 ms", next = ["full", "crop"] },
  { name = "full", bcet = "4 ms", wcet = "6 ms", next = ["merge"] },
  { name = "crop", bcet = "1 ms", wcet = "2 ms", next = ["merge"] },
  { name = "merge", bcet = "3 ms", wcet = "4 ms" },
]
execution = "uniform"
priority = 40
cpu = 0
[[task]]
name = "button"
separation = "20 ms"
wcet = "3 ms"
execution = { samples = ["1 ms", "2 ms", "3 ms"] }
priority = 50
cpu = 1
[[task]]
name = "alarm"
arrivals = ["3 ms", "35 ms"]
wcet = "4 ms"
priority = 60
cpu = 1
"#;

fn options(seed: u64) -> SimOptions {
    let horizon = Horizon::Time(Span::from_ns(2_000_000_000));
    let sporadic_extra = Span::from_ns(7_000_000);
    SimOptions { horizon, seed, sporadic_extra, path: PathChoice::Random, ..SimOptions::default() }
}

fn records(system: &System, options: &SimOptions) -> Vec<Record> {
    let mut records = Vec::new();
    simulate(system, options, &mut records).expect("it simulates");
    records
}

fn hash(records: &[Record]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for r in records {
        (r.time, r.kind as u8, r.cpu, r.task, r.job, r.value, r.extra).hash(&mut hasher);
    }
    hasher.finish()
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_one_another() {
    let system = system(DRAWN);
    let first = hash(&records(&system, &options(1)));
    assert_eq!(first, hash(&records(&system, &options(1))));
    assert_ne!(first, hash(&records(&system, &options(2))));
}

#[test]
fn watching_changes_nothing() {
    let system = system(DRAWN);
    let mut kept = Vec::new();
    let watched = simulate(&system, &options(3), &mut kept).expect("it simulates");
    let unwatched = simulate(&system, &options(3), &mut NullSink).expect("it simulates");
    assert_eq!(watched, unwatched);
    assert_eq!(watched.events, kept.len() as u64);
}

#[test]
fn another_task_changes_nobodys_draws() {
    let drawn_by = |system: &System, options: &SimOptions| {
        let index =
            |name: &str| system.tasks().iter().position(|t| t.name == name).expect("it is there") as u32;
        let (control, button) = (index("control"), index("button"));
        let mut draws: Vec<(bool, u64, u64)> = records(system, options)
            .iter()
            .filter(|r| r.kind == Kind::Completion && (r.task == control || r.task == button))
            .map(|r| (r.task == control, r.job, r.value))
            .collect();
        draws.sort_unstable();
        draws
    };
    let more = DRAWN.replacen("[[task]]", "[[task]]\nname = \"first\"\nperiod = \"11 ms\"\nwcet = \"1 us\"\nbcet = \"0 us\"\njitter = \"5 us\"\nexecution = \"uniform\"\npriority = 99\ncpu = 0\n[[task]]", 1);
    assert_eq!(drawn_by(&system(DRAWN), &options(5)), drawn_by(&system(&more), &options(5)));
}

#[test]
fn draws_stay_within_the_model_and_reach_its_ends() {
    let system = system(DRAWN);
    let records = records(&system, &options(7));
    let of = |kind: Kind, task: u32| records.iter().filter(move |r| r.kind == kind && r.task == task);
    // Jitter and latency: up to 160 us after the nominal arrival, which is a multiple of the period.
    let delays: Vec<u64> = of(Kind::Release, 0).map(|r| r.time.as_ns() - r.value).collect();
    assert!(of(Kind::Release, 0).enumerate().all(|(job, r)| r.value == job as u64 * 10_000_000));
    assert!(delays.iter().all(|&d| d <= 160_000) && delays.iter().any(|&d| d > 120_000), "{delays:?}");
    let executed: Vec<u64> = of(Kind::Completion, 0).map(|r| r.value).collect();
    assert!(executed.iter().all(|e| (1_000_000..=2_000_000).contains(e)));
    assert!(executed.iter().any(|&e| e < 1_050_000) && executed.iter().any(|&e| e > 1_950_000));
    // Both branches are taken, and announced.
    let announced: Vec<u64> = of(Kind::PreemptionPoint, 1).map(|r| r.value).collect();
    assert!([1, 2, 3].iter().all(|segment| announced.contains(segment)));
    assert_eq!(announced.iter().filter(|&&s| s < 3).count(), announced.iter().filter(|&&s| s == 3).count());
    // Sporadic arrivals: a separation apart, up to 7 ms more.
    let arrivals: Vec<u64> = of(Kind::Release, 2).map(|r| r.value).collect();
    let gaps: Vec<u64> = arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        gaps.iter().all(|g| (20_000_000..=27_000_000).contains(g)) && gaps.iter().any(|&g| g > 25_000_000)
    );
    let mut samples: Vec<u64> = of(Kind::Completion, 2).map(|r| r.value).collect();
    samples.sort_unstable();
    samples.dedup();
    assert_eq!(samples, [1_000_000, 2_000_000, 3_000_000]);
    assert_eq!(of(Kind::Release, 3).map(|r| r.value).collect::<Vec<_>>(), [3_000_000, 35_000_000]);
}

#[test]
fn options_fix_what_is_drawn() {
    let system = system(DRAWN);
    let fixed = |jitter, execution, path| {
        let options = SimOptions { jitter, latency: jitter, execution, path, ..options(1) };
        let records = records(&system, &options);
        let first =
            |kind, task| *records.iter().find(|r| r.kind == kind && r.task == task).expect("there is one");
        (
            first(Kind::Release, 0).time.as_ns(),
            first(Kind::Completion, 0).value,
            first(Kind::Completion, 1).value,
        )
    };
    let most = fixed(DelayChoice::Max, ExecutionChoice::Wcet, PathChoice::Longest);
    assert_eq!(most, (160_000, 2_000_000, 13_000_000));
    let short = PathChoice::Given(BTreeMap::from([(TaskId(1), vec![0, 2, 3])]));
    assert_eq!(fixed(DelayChoice::None, ExecutionChoice::Bcet, short), (0, 1_000_000, 6_000_000));
    let wrong = PathChoice::Given(BTreeMap::from([(TaskId(1), vec![0, 3])]));
    let error = simulate(&system, &SimOptions { path: wrong, ..options(1) }, &mut NullSink)
        .expect_err("no such path");
    assert!(error.is_bad_input() && error.to_string().contains("tracker"), "{error}");
}

#[test]
fn samples_of_segmented_jobs_are_cut_exactly() {
    let text = r#"
[system]
name = "cut"
[[task]]
name = "camera"
period = "40 ns"
preemption = "deferred"
segments = [
  { name = "a", bcet = "1 ns", wcet = "3 ns", next = ["b"] },
  { name = "b", bcet = "1 ns", wcet = "5 ns", next = ["c"] },
  { name = "c", bcet = "2 ns", wcet = "4 ns" },
]
execution = { samples = ["9 ns"] }
priority = 1
"#;
    let records = records(&system(text), &SimOptions::default());
    let times: Vec<u64> = records.iter().map(|r| r.time.as_ns()).collect();
    // 5 of the 8 between bcet 4 and wcet 12: ⌊5·2/8⌋ = 1, ⌊5·6/8⌋ - 1 = 2, the rest 2 above the bcets 1, 1 and 2.
    assert_eq!(times, [0, 0, 2, 5, 9]);
}

/// One task a line: name, period, wcet, priority.
fn plain(tasks: &[(&str, &str, &str, i64)]) -> System {
    let mut text = "[system]\nname = \"plain\"\n".to_owned();
    for (name, period, wcet, priority) in tasks {
        text += &format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}\"\nwcet = \"{wcet}\"\npriority = {priority}\n"
        );
    }
    system(&text)
}

#[test]
fn horizons_count_jobs_as_the_contract_says() {
    let two = plain(&[("a", "4 ms", "1 ms", 2), ("b", "6 ms", "2 ms", 1)]);
    assert_eq!(default_horizon(&two), Span::from_ns(12_000_000));
    let outcome = simulate(&two, &SimOptions::default(), &mut NullSink).expect("it simulates");
    assert_eq!((outcome.tasks[0].jobs, outcome.tasks[1].jobs), (3, 2));
    assert!(outcome.notes.iter().any(|note| note.contains("taken as 0: a, b")), "{:?}", outcome.notes);
    assert!(outcome.notes.iter().any(|note| note.contains("12 ms")), "{:?}", outcome.notes);

    let long = plain(&[("a", "59 s", "1 ms", 2), ("b", "61 s", "1 ms", 1)]);
    assert_eq!(default_horizon(&long), Span::from_ns(10_000_000_000));
    let huge =
        plain(&[("a", "18446744073709551557 ns", "1 ms", 2), ("b", "9223372036854775783 ns", "1 ms", 1)]);
    assert_eq!(default_horizon(&huge), Span::from_ns(10_000_000_000), "the hyperperiod is beyond u64");

    // Listed arrivals below 60 s are covered by whole hyperperiods, others are told.
    let listed = |arrivals: &str| {
        let text = "[system]\nname = \"listed\"\n[[task]]\nname = \"a\"\nperiod = \"4 ms\"\nwcet = \"1 ms\"\npriority = 2\n\
                    [[task]]\nname = \"b\"\nwcet = \"1 ms\"\npriority = 1\ndeadline = \"3 ms\"\narrivals = ";
        let system = system(&format!("{text}[{arrivals}]\n"));
        let outcome = simulate(&system, &SimOptions::default(), &mut NullSink).expect("it simulates");
        let told = outcome.notes.iter().any(|note| note == "1 listed arrival lies after the horizon");
        (outcome.horizon_ns.as_ns() / 1_000_000, outcome.tasks[1].completed, told)
    };
    assert_eq!(listed("\"0 ms\", \"1 ms\""), (4, 2, false));
    assert_eq!(listed("\"0 ms\", \"9 ms\""), (12, 2, false));
    assert_eq!(listed("\"0 ms\", \"10 ms\""), (16, 2, false), "until its deadline");
    assert_eq!(listed("\"0 ms\", \"70 s\""), (4, 1, true));

    // A job that ends exactly at the horizon is finished; one that is not done is missed if its deadline passed.
    let full = plain(&[("a", "10 ms", "10 ms", 1)]);
    let at = |ms| {
        let horizon = Horizon::Time(Span::from_ms(ms).expect("it fits"));
        let options = SimOptions { horizon, ..SimOptions::default() };
        simulate(&full, &options, &mut NullSink).expect("it simulates").tasks[0].clone()
    };
    assert_eq!((at(20).jobs, at(20).completed, at(20).unfinished), (2, 2, 0));
    assert_eq!((at(19).completed, at(19).unfinished, at(19).missed), (1, 1, 0));

    let jobs = SimOptions { horizon: Horizon::Jobs(7), ..SimOptions::default() };
    let outcome = simulate(&two, &jobs, &mut NullSink).expect("it simulates");
    assert_eq!(outcome.tasks.iter().map(|task| task.completed).sum::<u64>(), 7);
    assert_eq!(outcome.horizon_ns, Span::from_ns(15_000_000));
}

#[test]
fn an_overloaded_system_starves_and_says_so() {
    let system = plain(&[("a", "2 ns", "2 ns", 2), ("b", "4 ns", "3 ns", 1)]);
    let horizon = Horizon::Time(Span::from_ns(1_000));
    let options = SimOptions { horizon, ..SimOptions::default() };
    let outcome = simulate(&system, &options, &mut NullSink).expect("it simulates");
    assert_eq!((outcome.tasks[0].completed, outcome.tasks[0].missed), (500, 0));
    let starved = &outcome.tasks[1];
    assert_eq!((starved.completed, starved.jobs, starved.unfinished, starved.missed), (0, 250, 250, 250));
    let capped = SimOptions { max_backlog: 100, ..options.clone() };
    let error = simulate(&system, &capped, &mut NullSink).expect_err("the backlog outgrows the limit");
    assert!(error.is_overload() && !error.is_bad_input());
    assert!(error.to_string().contains("task b"), "{error}");
    let few = SimOptions { max_events: 50, ..options };
    let outcome = simulate(&system, &few, &mut NullSink).expect("it stops");
    assert!(outcome.events >= 50 && outcome.events < 60);
    assert!(outcome.notes.iter().any(|note| note.starts_with("stopped at")), "{:?}", outcome.notes);
}

/// A horizon of 10^11 events, which takes hours.
#[test]
fn another_thread_ends_a_simulation() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let drivers = "[system]\nname = \"driven\"\n[platform]\ncpus = 1\n[[task]]\nname = \"a\"\nperiod = \"2 us\"\nwcet = \"100 ns\"\npriority = 1\n\
                   [[interrupt]]\nname = \"irq\"\ncpu = 0\nseparation = \"3 us\"\ncost = \"100 ns\"\n";
    let (drivers, _) = horolog_model::file::read(drivers, "driven.toml", &[]).expect("a system");
    for system in [plain(&[("a", "1 us", "100 ns", 1)]), drivers] {
        let stop = Arc::new(AtomicBool::new(false));
        let horizon = Horizon::Time("100000 s".parse().expect("a time"));
        let options = SimOptions { horizon, stop: Some(Arc::clone(&stop)), ..SimOptions::default() };
        let running = std::thread::spawn(move || simulate(&system, &options, &mut NullSink));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!running.is_finished());
        stop.store(true, Ordering::Relaxed);
        let error = running.join().expect("no panic").expect_err("it was stopped");
        assert!(error.is_stop() && !error.is_bad_input() && !error.is_overload(), "{error}");
        assert!(error.to_string().starts_with("the simulation was stopped at "), "{error}");
    }
}

/// The limit is exact wherever it lies between two looks at it.
#[test]
fn the_limit_of_events_is_exact() {
    let system = plain(&[("a", "10 ns", "5 ns", 1)]);
    let ended_after = |max_events: u64| {
        let horizon = Horizon::Time(Span::from_ns(2_000_000));
        let options = SimOptions { horizon, max_events, ..SimOptions::default() };
        simulate(&system, &options, &mut NullSink).expect("it stops").events
    };
    // An instant has a completion or a release, and the start behind it.
    for limit in [1, 2, 1_000, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, (1 << 17) + 1] {
        let events = ended_after(limit);
        assert!((limit..=limit + 2).contains(&events), "{limit} {events}");
    }
}

#[test]
fn times_near_the_end_of_u64_are_refused_or_exact() {
    let far = "18446744073709551615 ns";
    let system = plain(&[("a", far, "1 ns", 1)]);
    let near_end = SimOptions { horizon: Horizon::Time(Span::MAX), ..SimOptions::default() };
    let error = simulate(&system, &near_end, &mut NullSink).expect_err("deadlines would wrap");
    assert!(error.is_bad_input() && error.to_string().contains("584 years"), "{error}");
    let outcome = simulate(&system, &SimOptions::default(), &mut NullSink);
    assert!(outcome.is_err(), "10 s plus the deadline wraps as well");

    let half = plain(&[("a", "4611686018427387904 ns", "4611686018427387904 ns", 1)]);
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(1 << 63)), ..SimOptions::default() };
    let outcome = simulate(&half, &options, &mut NullSink).expect("every sum fits");
    assert_eq!((outcome.tasks[0].completed, outcome.tasks[0].missed), (2, 0));
    assert_eq!(outcome.tasks[0].response_ns_max, Some(Span::from_ns(1 << 62)));
}

#[test]
fn interrupts_that_take_everything_do_not_hang() {
    let text = |tick: &str| {
        format!(
            "[system]\nname = \"storm\"\n[platform]\ncpus = 1\n{tick}\ntimer_interrupt = \"5 us\"\n[[task]]\n\
             name = \"a\"\nperiod = \"4 us\"\nwcet = \"1 us\"\npriority = 1\n"
        )
    };
    for tick in ["", "tick = \"3 us\""] {
        let horizon = Horizon::Time(Span::from_ns(1_000_000));
        let options = SimOptions { horizon, ..SimOptions::default() };
        let outcome = simulate(&system(&text(tick)), &options, &mut NullSink).expect("it simulates");
        assert_eq!((outcome.tasks[0].jobs, outcome.tasks[0].completed), (250, 0));
        assert_eq!(outcome.tasks[0].missed, 250);
    }
}

#[test]
fn processors_do_not_disturb_each_other_and_records_stay_in_order() {
    let both = system(DRAWN);
    let records = records(&both, &options(9));
    assert!(records.windows(2).all(|pair| pair[0].time <= pair[1].time));
    assert!(records.iter().any(|r| r.cpu == 0) && records.iter().any(|r| r.cpu == 1));
    let alone = system(&DRAWN.replace("cpu = 1", "cpu = 0").replace("cpus = 2", "cpus = 1"));
    assert_ne!(hash(&records), hash(&self::records(&alone, &options(9))));
}

#[test]
fn interference_takes_its_share_above_all() {
    let text = "[system]\nname = \"net\"\n[[task]]\nname = \"a\"\nperiod = \"10 us\"\noffset = \"0 us\"\n\
        wcet = \"4 us\"\npriority = 1\npreemption = \"non-preemptive\"\n[[interference]]\nname = \"card\"\ncpu = 0\n\
        utilisation = 0.5\nperiod = \"2 us\"\n";
    let outcome = simulate(&system(text), &SimOptions::default(), &mut NullSink).expect("it simulates");
    // 1 us is taken at 0, 2, 4 and 6: the job of 4 us ends at 8 us.
    assert_eq!(outcome.tasks[0].response_ns_max, Some(Span::from_ns(8_000)));
    assert!(outcome.notes.iter().any(|note| note.contains("card")), "{:?}", outcome.notes);
}

fn refused(system: &System, pattern: &ReleasePattern) -> String {
    let error =
        replay(system, pattern, &ReplayOptions::default(), &mut NullSink).expect_err("it leaves the model");
    assert!(error.is_bad_input());
    error.to_string()
}

#[test]
fn patterns_that_leave_the_model_are_refused() {
    let text = "[system]\nname = \"p\"\n[[task]]\nname = \"a\"\nperiod = \"10 ns\"\nwcet = \"3 ns\"\njitter = \"2 ns\"\n\
        priority = 2\n[[task]]\nname = \"b\"\nseparation = \"20 ns\"\nwcet = \"5 ns\"\nbcet = \"2 ns\"\npriority = 1\n\
        [[task]]\nname = \"c\"\nperiod = \"50 ns\"\noffset = \"5 ns\"\nwcet = \"5 ns\"\npriority = 3\n";
    let system = system(text);
    let ns = Span::from_ns;
    let start = |tasks: Vec<TaskPattern>| {
        let base = ReleasePattern::new("p", ns(100)).task(TaskPattern::periodic("c", ns(5)));
        tasks.into_iter().fold(base, ReleasePattern::task)
    };
    let job = |arrival, execution: &[u64]| PatternJob {
        arrival_ns: ns(arrival),
        execution_ns: Some(execution.iter().copied().map(ns).collect()),
        ..PatternJob::default()
    };
    let legal = start(vec![
        TaskPattern::late("a", ns(1), ns(3)),
        TaskPattern::explicit("b", vec![job(0, &[2]), job(20, &[5])]),
    ]);
    assert!(replay(&system, &legal, &ReplayOptions::default(), &mut NullSink).is_ok());
    let cases = [
        (start(vec![TaskPattern::periodic("x", ns(0))]), "no such task"),
        (start(vec![TaskPattern::periodic("c", ns(5))]), "twice"),
        (start(vec![TaskPattern::late("a", ns(1), ns(4))]), "readier than 2 ns"),
        (start(vec![TaskPattern::explicit("b", vec![job(0, &[2]), job(19, &[5])])]), "no job at 19 ns"),
        (start(vec![TaskPattern::explicit("b", vec![job(0, &[6])])]), "[bcet, wcet]"),
        (start(vec![TaskPattern::explicit("b", vec![job(0, &[1])])]), "[bcet, wcet]"),
        (start(vec![TaskPattern::explicit("a", vec![job(0, &[3]), job(10, &[3])])]), "does not list"),
        (start(vec![TaskPattern::periodic("b", ns(0)).on_path(vec![0])]), "no segments"),
        (ReleasePattern::new("p", ns(100)), "offset releases it"),
        (ReleasePattern::new("p", ns(100)).task(TaskPattern::periodic("c", ns(6))), "the model's at 5 ns"),
        (start(vec![]).witness(Witness { task: "y".into(), job: 0, response_ns: None }), "no such task"),
    ];
    for (pattern, reason) in cases {
        let message = refused(&system, &pattern);
        assert!(message.contains(reason), "{message} should say {reason}");
    }
    let mut other = legal;
    other.schema = "horolog.pattern/2".into();
    assert!(refused(&system, &other).contains("horolog.pattern/1"));
}

#[test]
fn a_blocker_that_starts_one_nanosecond_before_is_a_witness() {
    let text = "[system]\nname = \"blocking\"\n[[task]]\nname = \"high\"\nperiod = \"10 ns\"\ndeadline = \"5 ns\"\n\
        wcet = \"2 ns\"\npriority = 2\n[[task]]\nname = \"low\"\nperiod = \"40 ns\"\npriority = 1\n\
        preemption = \"deferred\"\nsegments = [\"3 ns\", \"5 ns\"]\n";
    let system = system(text);
    let ns = Span::from_ns;
    // The second segment starts at 3, the high job arrives at 4 and waits until 8.
    let pattern = ReleasePattern::new("blocking", ns(50))
        .task(TaskPattern::periodic("high", ns(4)))
        .task(TaskPattern::periodic("low", ns(0)))
        .witness(Witness { task: "high".into(), job: 0, response_ns: Some(ns(6)) });
    let found =
        replay(&system, &pattern, &ReplayOptions::default(), &mut NullSink).expect("within the model");
    let witness = found.witness.expect("the pattern has one");
    assert_eq!((witness.response, witness.missed, witness.as_promised), (Some(ns(6)), true, Some(true)));
    assert_eq!(found.outcome.horizon_ns, ns(10), "the replay ends with the witness");
}
