//! The bench as a whole, on a small experiment.

use super::application::{Application, points};
use super::run::Run;
use super::{Backend, Policy, Spec, WhenExhausted, file, report, run, simulate};
use crate::{ExperimentError, Options};
use std::fs;
use std::path::Path;

const SMALL: &str = r#"
[experiment]
name = "small"
seed = 3
sets = 2
policies = ["background", "polling", "deferrable", "sporadic", "priority-exchange", "slack-stealing",
  "slack-stealing+propagated", "dual-priority", "dual-priority+self", "dual-priority+propagated",
  "dual-priority+both"]
[hard]
tasks = [3, 5]
load = { random = [30, 60] }
gain = [0, 30]
hyperperiod = "240 ms"
shortest_period = "10 ms"
longest_period = "60 ms"
[soft]
tasks = 2
load = [20, 40]
[points]
most_total_load = 100
"#;

fn small() -> Spec {
    file::read("small.toml", SMALL).expect("a good file")
}

fn options(out: &Path) -> Options {
    Options { out: Some(out.to_owned()), ..Options::default() }
}

/// Every run of a spec, in the order of the journal.
fn runs(spec: &Spec) -> Vec<Run> {
    let (points, mut runs) = (points(spec), Vec::new());
    let indices: Vec<usize> = (0..points.len() * spec.sets as usize).collect();
    simulate::simulate(spec, &points, &indices, &mut |some| {
        runs.extend(some);
        Ok(())
    })
    .expect("a small experiment");
    runs.sort_by_key(Run::key);
    runs
}

#[test]
fn servers_that_wait_serve_all_in_the_end_and_later() {
    let policies = "policies = [\"background\", \"polling\", \"deferrable\", \"sporadic\"]\nWHEN\n";
    let text = format!(
        "{}{policies}{}",
        &SMALL[..SMALL.find("policies").unwrap()],
        &SMALL[SMALL.find("[hard]").unwrap()..]
    );
    let with =
        |when: &str| runs(&file::read("small.toml", &text.replace("WHEN", when)).expect("a good file"));
    let (goes_on, waits) = (with(""), with("when_exhausted = \"wait\""));
    assert_eq!((goes_on.len(), waits.len()), (4 * 2 * 2 * 4, 4 * 2 * 2 * 4));
    let mut later = 0;
    for (one, other) in goes_on.iter().zip(&waits) {
        assert_eq!(one.key(), other.key());
        assert_eq!((other.metrics.missed, other.metrics.unfinished), (0, 0), "{other:?}");
        if one.policy == Policy::Background {
            assert_eq!(one.metrics, other.metrics);
        } else {
            assert!(other.metrics.response_sum_ns >= one.metrics.response_sum_ns, "{one:?} {other:?}");
            later += u32::from(other.metrics.response_sum_ns > one.metrics.response_sum_ns);
        }
    }
    assert!(later > 20, "{later}");
}

#[test]
fn every_policy_serves_all_and_misses_nothing() {
    let found = runs(&small());
    assert_eq!(found.len(), 4 * 2 * 2 * 11);
    for run in &found {
        let metrics = run.metrics;
        assert_eq!((metrics.missed, metrics.unfinished, metrics.no_budget), (0, 0, false), "{run:?}");
        assert!(metrics.response_ns().is_some_and(|mean| mean > 0.0) && metrics.switches > 0, "{run:?}");
        let background = found.iter().find(|other| {
            (other.application, other.gain, other.policy) == (run.application, run.gain, Policy::Background)
        });
        let background = background.expect("it is among the policies").metrics;
        assert_eq!(metrics.soft_jobs, background.soft_jobs);
        assert!(metrics.response_ns() <= background.response_ns(), "{run:?} is worse than {background:?}");
    }
}

#[test]
fn a_seed_names_one_experiment() {
    let spec = small();
    assert_eq!(runs(&spec), runs(&spec));
    let other = Spec { seed: 4, ..spec.clone() };
    assert_ne!(runs(&spec), runs(&other));
    assert_eq!(spec.parts(), other.parts(), "the seed is told apart by itself");
    // Written down once: a change here is a change of every published figure of the bench.
    let application = Application::draw(&spec, &points(&spec), 0).expect("drawn");
    let periods: Vec<u64> = application.hard.iter().map(|task| task.period.as_ns() / 1_000_000).collect();
    assert_eq!((periods.as_slice(), application.parameters.hard_load), (GOLDEN_PERIODS, GOLDEN_LOAD));
    let sums: Vec<u128> = runs(&spec).iter().take(11).map(|run| run.metrics.response_sum_ns).collect();
    assert_eq!(sums, GOLDEN_SUMS);
}

const GOLDEN_PERIODS: &[u64] = &[15, 16, 30];
const GOLDEN_LOAD: u64 = 57;
/// Sums of the soft response times of the first application under each policy, ns.
const GOLDEN_SUMS: [u128; 11] = [
    226_410_288,
    158_782_345,
    65_138_566,
    57_205_355,
    63_128_461,
    55_197_008,
    55_197_008,
    55_197_008,
    55_417_363,
    55_197_008,
    55_417_363,
];

#[test]
fn an_application_does_not_change_with_the_points_around_it() {
    let spec = small();
    let fewer = file::read("f", &SMALL.replace("load = [20, 40]", "load = 40")).expect("a good file");
    let of = |spec: &Spec, point: usize| {
        let index = point * spec.sets as usize + 1;
        let application = Application::draw(spec, &points(spec), index).expect("drawn");
        (application.hard, application.soft)
    };
    assert_eq!(of(&spec, 1), of(&fewer, 0));
    assert_ne!(of(&spec, 0), of(&spec, 1));
}

#[test]
fn applications_are_what_the_file_asks_for() {
    let spec = small();
    for index in 0..8 {
        let application = Application::draw(&spec, &points(&spec), index).expect("drawn");
        let parameters = application.parameters;
        assert_eq!(application.hard.len() as u64, parameters.hard_tasks);
        assert!((30..=60).contains(&parameters.hard_load));
        let load: f64 =
            application.hard.iter().map(|task| task.wcet.as_ns() as f64 / task.period.as_ns() as f64).sum();
        assert!((load - parameters.hard_load as f64 / 100.0).abs() < 1e-6, "{load}");
        let work: u64 = application.soft.iter().map(|task| task.wcet * task.arrivals.len() as u64).sum();
        let wanted = application.hyperperiod * parameters.soft_load / 100;
        assert!(work.abs_diff(wanted) < 100, "{work} of {wanted}");
        for task in &application.soft {
            assert_eq!(task.arrivals[0], 0, "the critical instant");
            assert!(task.arrivals.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(task.arrivals.iter().all(|at| *at < application.hyperperiod));
        }
        for gain in [0, 30] {
            for (task, hard) in application.hard.iter().enumerate() {
                let executions =
                    application.executions(task, &spec.hard.execution, Some(gain), application.until());
                let expected = hard.wcet.as_ns() * (100 - gain) / 100;
                assert!(executions.iter().all(|execution| *execution == expected));
                assert_eq!(executions.len() as u64, application.until().div_ceil(hard.period.as_ns()));
            }
        }
    }
}

/// What a run killed at any byte of its journal leaves is gone on from, and comes to the same.
#[test]
fn a_killed_experiment_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |out: &Path| {
        let mut first = None;
        let results = run(small(), &options(out), &mut |done, _, _| {
            first.get_or_insert(done);
        })
        .expect("a run");
        let mut report = report(&results, "small", Vec::new());
        report.notes.clear();
        (first, report)
    };
    let (first, whole) = of(folder.path());
    assert_eq!(first, Some(0));
    let journal = folder.path().join("runs.jsonl");
    let text = fs::read(&journal).expect("the journal");
    let head = text.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    for length in [0, head, head + 1, text.len() / 2, text.len() - 1, text.len()] {
        fs::write(&journal, &text[..length]).expect("written");
        let (first, again) = of(folder.path());
        assert_eq!(again, whole, "cut at {length} of {}", text.len());
        assert_eq!(first == Some(8), length == text.len(), "{first:?} of 8 at {length}");
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for journal in [&text, &fs::read(&journal).expect("the journal")] {
            let mut all: Vec<&[u8]> = journal.split(|byte| *byte == b'\n').collect();
            all.sort_unstable();
            all.dedup();
            lines.push(all.join(&b'\n'));
        }
        assert_eq!(lines[0], lines[1], "cut at {length}");
    }
    assert!(folder.path().join("results.parquet").is_file());
    let plot =
        fs::read_to_string(folder.path().join("plots/simulated-response-by-gain.svg")).expect("a plot");
    assert!(plot.contains("DP propagated") && !plot.contains("BG"));
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let attempt = |spec: Spec| -> Result<(), ExperimentError> {
        run(spec, &options(folder.path()), &mut |_, _, _| {}).map(|_| ())
    };
    attempt(small()).expect("the first");
    let refused = |spec: Spec| attempt(spec).expect_err("another experiment").to_string();
    assert!(refused(Spec { seed: 4, ..small() }).contains("was made with the seed 3, not 4"));
    let named = refused(Spec { name: "other".to_owned(), ..small() });
    assert!(named.contains("belongs to the experiment `small`"), "{named}");
    assert!(refused(Spec { sets: 3, ..small() }).contains("sets was 2, now 3"));
    let waits = refused(Spec { when_exhausted: WhenExhausted::Wait, ..small() });
    assert!(waits.contains("was made with --when-exhausted background, not wait"), "{waits}");
    let mut longer = small();
    longer.hard.longest_period = horolog_time::Span::from_ns(80_000_000);
    assert!(refused(longer).contains("[hard] differs"));
    fs::write(folder.path().join("runs.jsonl"), "not a journal\n").expect("written");
    assert!(refused(small()).contains("is not a journal of this bench"));
    let held = fs::File::open(folder.path().join("runs.jsonl")).expect("there");
    held.lock().expect("nobody holds it");
    assert!(refused(small()).contains("being written by another run"));
}

#[test]
fn what_cannot_be_drawn_is_told() {
    let spec = Spec { sets: 1, ..small() };
    let mut hopeless = spec.clone();
    hopeless.hard.least_wcet = horolog_time::Span::from_ns(40_000_000);
    let error = run(hopeless, &Options::default(), &mut |_, _, _| {}).map(|_| ()).expect_err("no such set");
    assert!(error.to_string().contains("lower hard.load or hard.least_wcet"), "{error}");
    assert_eq!(runs(&spec).iter().filter(|run| run.backend == Backend::Simulated).count(), 4 * 2 * 11);
}

#[test]
fn a_fixed_size_is_that_of_every_server_and_every_budget_is_on_record() {
    let text = SMALL.replace("[hard]", "[server]\nbudget = \"1 ms\"\nperiod = \"20 ms\"\n[hard]");
    let fixed = file::read("small.toml", &text).expect("a good file");
    for (spec, is_fixed) in [(small(), false), (fixed, true)] {
        for run in runs(&spec) {
            let (budget, period) = (run.metrics.budget_ns, run.metrics.budget_period_ns);
            match (run.policy.is_budgeted(), is_fixed) {
                (true, true) => assert_eq!((budget, period), (1_000_000, 20_000_000), "{run:?}"),
                (true, false) => assert!(budget > 0 && period >= 10_000_000, "{run:?}"),
                (false, _) => assert_eq!((budget, period), (0, 0), "{run:?}"),
            }
        }
    }
}
