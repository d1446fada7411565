//! What happens to jobs that execute longer than their wcet, by decision 0010: each expectation is computed by hand.
#![allow(clippy::panic)] // Helpers of an integration test are tests too.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Outcome, Record};

fn read(text: &str) -> Result<System, String> {
    let text = format!("[system]\nname = \"overruns\"\n{text}");
    horolog_model::file::read(&text, "test", &[])
        .map(|(system, _)| system)
        .map_err(|errors| errors.to_string())
}

fn run(text: &str, until: u64) -> (Outcome, Vec<Record>) {
    let system = read(text).unwrap_or_else(|errors| panic!("{errors}"));
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(until)), ..SimOptions::default() };
    let mut records = Vec::new();
    let outcome = simulate(&system, &options, &mut records).unwrap_or_else(|error| panic!("{error}"));
    (outcome, records)
}

/// Who has the processor from when to when.
fn service(records: &[Record]) -> Vec<(u32, u64, u64)> {
    let (mut all, mut since, mut runs) = (Vec::new(), 0, false);
    for one in records {
        let now = one.time.as_ns();
        match one.kind {
            Kind::Start | Kind::Resume => (since, runs) = (now, true),
            Kind::Preempt | Kind::Yield | Kind::Completion | Kind::Enforcement
                if runs && (one.kind != Kind::Enforcement || one.extra >= 3) =>
            {
                all.push((one.task, since, now));
                runs = false;
            }
            _ => {}
        }
    }
    all
}

/// When records of this kind stand, of which task, and their `extra`.
fn of(records: &[Record], kind: Kind) -> Vec<(u64, u32, u64)> {
    let here = records.iter().filter(|one| one.kind == kind);
    here.map(|one| (one.time.as_ns(), one.task, one.extra)).collect()
}

/// "a" above "b"; the jobs of "a" take what is listed, its wcet is 3 of every 10.
fn pair(policy: &str, overrun: &str, jobs: &str) -> String {
    let (edf, high, low) = match policy {
        "edf" => ("policy = \"edf\"\n", "", ""),
        _ => ("", "priority = 2\n", "priority = 1\n"),
    };
    format!(
        "{edf}[[task]]\nname = \"a\"\nperiod = \"10 ns\"\noffset = \"0 ns\"\nwcet = \"3 ns\"\n{high}overrun = \"{overrun}\"\n\
         execution = {{ jobs = [{jobs}] }}\n\
         [[task]]\nname = \"b\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"6 ns\"\n{low}"
    )
}

const POLICIES: [&str; 2] = ["fixed-priority", "edf"];

#[test]
fn at_and_below_the_budget_nothing_happens() {
    for policy in POLICIES {
        for overrun in ["count", "skip", "demote", "stop", "drop"] {
            // The third job is never reached.
            let (outcome, records) = run(&pair(policy, overrun, "\"3 ns\", \"2 ns\", \"4 ns\""), 20);
            assert_eq!(service(&records), [(0, 0, 3), (1, 3, 9), (0, 10, 12)], "{policy} {overrun}");
            assert_eq!(of(&records, Kind::Enforcement), []);
            assert_eq!((outcome.tasks[0].overruns, outcome.tasks[0].skipped), (0, 0));
        }
    }
}

#[test]
fn one_unit_beyond_it_is_counted() {
    for policy in POLICIES {
        let (outcome, records) = run(&pair(policy, "count", "\"4 ns\", \"3 ns\""), 20);
        assert_eq!(service(&records), [(0, 0, 4), (1, 4, 10), (0, 10, 13)]);
        assert_eq!((of(&records, Kind::Enforcement), of(&records, Kind::Overrun)), (vec![], vec![(4, 0, 0)]));
        assert_eq!(outcome.tasks[0].overruns, 1);
    }
}

#[test]
fn the_next_release_is_skipped_and_the_one_after_it_is_not() {
    for policy in POLICIES {
        let (outcome, records) = run(&pair(policy, "skip", "\"4 ns\", \"3 ns\""), 30);
        assert_eq!(service(&records), [(0, 0, 4), (1, 4, 10), (0, 20, 23), (1, 23, 29)]);
        assert_eq!(of(&records, Kind::Enforcement), [(3, 0, 1)]);
        assert_eq!(of(&records, Kind::Skip), [(10, 0, 0)]);
        assert_eq!((outcome.tasks[0].skipped, outcome.tasks[0].overruns), (1, 1));
    }
}

#[test]
fn a_release_at_the_instant_of_the_action_is_the_next_one() {
    // The wcet is the period: the budget is used up just when the second job comes.
    let text = pair("", "skip", "\"11 ns\", \"3 ns\"").replacen("\"3 ns\"", "\"10 ns\"", 1);
    let (_, records) = run(&text, 30);
    assert_eq!(of(&records, Kind::Enforcement), [(10, 0, 1)]);
    assert_eq!(of(&records, Kind::Skip), [(10, 0, 0)]);
    assert_eq!(service(&records)[..3], [(0, 0, 11), (1, 11, 17), (0, 20, 23)]);
}

#[test]
fn the_rest_of_a_demoted_job_runs_below_every_task() {
    for policy in POLICIES {
        // The rest, 2, waits until "b" is done at 9; the second job comes at 10, waits for it and stands at its own place.
        let (outcome, records) = run(&pair(policy, "demote", "\"5 ns\", \"3 ns\""), 20);
        assert_eq!(service(&records), [(0, 0, 3), (1, 3, 9), (0, 9, 11), (0, 11, 14)], "{policy}");
        assert_eq!(of(&records, Kind::Enforcement), [(3, 0, 2)]);
        assert_eq!((outcome.tasks[0].overruns, outcome.tasks[0].completed), (1, 2));
    }
    // The second job has its place again: it comes before "b", which has 8 to do.
    let long = pair("", "demote", "\"5 ns\", \"3 ns\"").replace("\"6 ns\"", "\"14 ns\"");
    let (_, records) = run(&long, 20);
    assert_eq!(service(&records), [(0, 0, 3), (1, 3, 17), (0, 17, 19)]);
    let (_, records) = run(&long.replace("\"5 ns\"", "\"3 ns\""), 20);
    assert_eq!(service(&records), [(0, 0, 3), (1, 3, 10), (0, 10, 13), (1, 13, 20)]);
}

#[test]
fn a_job_that_is_not_preemptible_is_demoted_at_once() {
    let text = pair("", "demote", "\"5 ns\"").replacen(
        "priority = 2",
        "priority = 2\npreemption = \"non-preemptive\"",
        1,
    );
    let (_, records) = run(&text, 10);
    assert_eq!(service(&records), [(0, 0, 3), (1, 3, 9)]);
}

#[test]
fn a_stopped_task_loses_its_jobs_and_releases_no_more() {
    for policy in POLICIES {
        let (outcome, records) = run(&pair(policy, "stop", "\"5 ns\", \"3 ns\""), 40);
        assert_eq!(service(&records), [(0, 0, 3), (1, 3, 9), (1, 20, 26)], "{policy}");
        assert_eq!(of(&records, Kind::Enforcement), [(3, 0, 3)]);
        assert_eq!(
            (outcome.tasks[0].skipped, outcome.tasks[0].unfinished, outcome.tasks[0].missed),
            (3, 1, 1)
        );
        // Its deadline, 10, has not passed before the end.
        let (early, _) = run(&pair(policy, "stop", "\"5 ns\", \"3 ns\""), 9);
        assert_eq!((early.tasks[0].unfinished, early.tasks[0].missed), (1, 0));
        let (just, _) = run(&pair(policy, "stop", "\"5 ns\", \"3 ns\""), 10);
        assert_eq!((just.tasks[0].unfinished, just.tasks[0].missed), (1, 1));
    }
}

#[test]
fn a_dropped_job_is_gone_at_its_wcet() {
    for policy in POLICIES {
        let (outcome, records) = run(&pair(policy, "drop", "\"4 ns\", \"3 ns\""), 20);
        assert_eq!(service(&records), [(0, 0, 3), (1, 3, 9), (0, 10, 13)], "{policy}");
        assert_eq!(of(&records, Kind::Enforcement), [(3, 0, 4)]);
        assert_eq!(
            (outcome.tasks[0].overruns, outcome.tasks[0].completed, outcome.tasks[0].skipped),
            (0, 1, 1)
        );
    }
}

#[test]
fn the_budget_counts_execution_and_is_whole_for_each_job() {
    // "high" cuts the first job at 2; it has executed 3 at 4. The second job begins in debt of nothing.
    let high = "[[task]]\nname = \"high\"\narrivals = [\"2 ns\"]\nwcet = \"1 ns\"\npriority = 9\n";
    let (_, records) = run(&(pair("", "drop", "\"4 ns\", \"3 ns\"") + high), 20);
    assert_eq!(service(&records), [(0, 0, 2), (2, 2, 3), (0, 3, 4), (1, 4, 10), (0, 10, 13)]);
    // A switch takes 1, which nobody's budget pays.
    let switches =
        "[platform]\ncontext_switch = \"1 ns\"\n".to_owned() + &pair("", "drop", "\"4 ns\", \"3 ns\"");
    let (_, records) = run(&switches, 8);
    assert_eq!(of(&records, Kind::Enforcement), [(4, 0, 4)]);
}

#[test]
fn a_server_s_budget_and_a_job_s_end_at_one_instant() {
    let text = "[[task]]\nname = \"a\"\narrivals = [\"0 ns\", \"0 ns\"]\nwcet = \"3 ns\"\noverrun = \"drop\"\n\
                execution = { jobs = [\"4 ns\", \"3 ns\"] }\n\
                [[task]]\nname = \"b\"\nperiod = \"20 ns\"\noffset = \"0 ns\"\nwcet = \"6 ns\"\npriority = 1\n\
                [[server]]\nname = \"s\"\nkind = \"deferrable\"\ntasks = [\"a\"]\npriority = 2\nlow_priority = \"none\"\n\
                period = \"10 ns\"\nbudget = \"3 ns\"\n";
    let (outcome, records) = run(text, 20);
    assert_eq!(service(&records), [(0, 0, 3), (1, 3, 9), (0, 10, 13)]);
    assert_eq!(
        (outcome.servers[0].consumed_ns.map_or(0, Span::as_ns), outcome.servers[0].exhaustions),
        (6, 2)
    );
    // One unit less: the job waits at 2 for the next budget, and is dropped at 11.
    let (_, records) = run(&text.replace("budget = \"3 ns\"", "budget = \"2 ns\""), 20);
    assert_eq!(service(&records)[..4], [(0, 0, 2), (1, 2, 8), (0, 10, 11), (0, 11, 12)]);
}

#[test]
fn on_several_processors_each_acts_for_itself() {
    let two = pair("", "drop", "\"4 ns\", \"3 ns\"").replace("[[task]]\n", "[[task]]\ncpu = 1\n");
    let text = format!(
        "[platform]\ncpus = 2\n[[task]]\nname = \"c\"\ncpu = 0\nperiod = \"10 ns\"\noffset = \"0 ns\"\nwcet = \"3 ns\"\npriority = 5\n{two}"
    );
    let (outcome, records) = run(&text, 20);
    assert_eq!(of(&records, Kind::Enforcement), [(3, 1, 4)]);
    assert_eq!((outcome.tasks[0].completed, outcome.tasks[1].completed), (2, 1));
}

#[test]
fn a_task_that_has_to_skip_does_so_across_a_change_of_mode_and_a_stopped_one_stays() {
    let mode = "[[mode]]\nname = \"other\"\nat = [\"5 ns\"]\n";
    let (_, records) = run(&(pair("", "skip", "\"4 ns\", \"3 ns\"") + mode), 30);
    assert_eq!(of(&records, Kind::Skip), [(10, 0, 0)]);
    let (outcome, _) = run(&(pair("", "stop", "\"4 ns\", \"3 ns\"") + mode), 40);
    assert_eq!(outcome.tasks[0].completed, 0);
}

#[test]
fn what_is_not_known_is_refused() {
    let text = pair("", "demote", "\"5 ns\"");
    let said = |text: &str| read(text).err().unwrap_or_default();
    assert_eq!(said(&text), "");
    let device =
        "[[device]]\nname = \"d\"\nservice = \"interrupt\"\nseparation = \"1 ms\"\ncost = \"1 us\"\n";
    assert!(said(&(text.clone() + device)).contains("beside interrupts and devices"));
    let below = text.replacen("priority = 2\n", "", 1)
        + "[[server]]\nname = \"s\"\nkind = \"background\"\ntasks = [\"a\"]\n";
    assert!(said(&below).contains("`demote` below a server is not there yet"), "{}", said(&below));
    assert!(said(&text.replace("jobs = [\"5 ns\"]", "jobs = []")).contains("there is no time"));
    let low = text
        .replacen("wcet = \"3 ns\"", "wcet = \"3 ns\"\nbcet = \"2 ns\"", 1)
        .replace("\"5 ns\"", "\"1 ns\"");
    assert!(said(&low).contains("below the bcet"), "{}", said(&low));
}

#[test]
fn listed_times_are_written_and_read_back() {
    let system = read(&pair("", "drop", "\"4 ns\", \"3 ns\"")).unwrap_or_else(|errors| panic!("{errors}"));
    let printed = horolog_model::file::print(&system);
    assert!(
        printed.contains("jobs = [\"4 ns\", \"3 ns\"]") && printed.contains("overrun = \"drop\""),
        "{printed}"
    );
    let again = horolog_model::file::read(&printed, "printed", &[]).map(|(again, _)| again.to_draft());
    assert_eq!(again.ok(), Some(system.to_draft()));
}
