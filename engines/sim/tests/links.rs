//! Links of a system file in virtual time: publications and latches computed by hand (decision 0009).

use horolog_model::{System, file};
use horolog_sim::{DelayChoice, Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, NO_JOB, Record};
use std::path::Path;

fn system(tasks: &[&str], rest: &str) -> System {
    let mut text = "[system]\nname = \"links\"\n[platform]\ncpus = 2\n".to_owned();
    for task in tasks {
        text += &format!("[[task]]\n{}\n", task.replace("; ", "\n"));
    }
    file::read(&(text + rest), "links.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

fn run_with(system: &System, until: u64, options: SimOptions) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(until)), ..options };
    let outcome = simulate(system, &options, &mut records).expect("it simulates");
    assert_eq!(outcome.events, records.len() as u64);
    records
}

fn run(system: &System, until: u64) -> Vec<Record> {
    run_with(system, until, SimOptions::default())
}

/// Instant, reader's job and instance of a task's latches; `-1`: none.
fn latches(records: &[Record], task: u32) -> Vec<(u64, u64, i64)> {
    let mine = records.iter().filter(|r| r.kind == Kind::Latch && r.task == task);
    mine.map(|r| (r.time.as_ns(), r.job, if r.extra == NO_JOB { -1 } else { r.extra as i64 })).collect()
}

/// Instant, writer's job and nominal instant of a link's publications.
fn publications(records: &[Record], link: u64) -> Vec<(u64, u64, u64)> {
    let mine = records.iter().filter(|r| r.kind == Kind::Publish && r.value == link);
    mine.map(|r| (r.time.as_ns(), r.job, r.extra)).collect()
}

const LINK: &str = "[[link]]\nname = \"x\"\nfrom = \"writer\"\nto = [\"reader\"]\n";
const WRITER: &str = "name = \"writer\"; cpu = 1; period = \"10 ns\"; offset = \"0 ns\"; deadline = \"4 ns\"; wcet = \"1 ns\"; priority = 1";

#[test]
fn a_value_passes_at_the_deadline_whoever_runs_when() {
    // One unit before, at, and after the nominal instant 4; the reader on the CPU before the writer's and beside it.
    for cpu in [0, 1] {
        for (offset, instances) in [(3, [-1, 0, 1]), (4, [0, 1, 2]), (5, [0, 1, 2])] {
            let reader = format!(
                "name = \"reader\"; cpu = {cpu}; period = \"10 ns\"; offset = \"{offset} ns\"; wcet = \"1 ns\"; priority = 9"
            );
            for tasks in [[WRITER, &reader], [&reader, WRITER]] {
                let system = system(&tasks, LINK);
                let id = system.find_task("reader").expect("it is there").0;
                let records = run(&system, 30);
                let found = latches(&records, id);
                let wanted: Vec<(u64, u64, i64)> =
                    (0..3).map(|job| (offset + 10 * job, job, instances[job as usize])).collect();
                assert_eq!(found, wanted, "offset {offset}, cpu {cpu}");
                assert_eq!(publications(&records, 0), [(1, 0, 4), (11, 1, 14), (21, 2, 24)]);
            }
        }
    }
}

#[test]
fn a_completion_on_one_cpu_counts_for_a_latch_at_the_same_instant_on_another() {
    // The writer completes at its deadline, which is the arrival of the reader, whose CPU comes first.
    let writer = WRITER.replace("wcet = \"1 ns\"", "wcet = \"4 ns\"");
    let reader =
        "name = \"reader\"; cpu = 0; period = \"10 ns\"; offset = \"4 ns\"; wcet = \"1 ns\"; priority = 9";
    let records = run(&system(&[reader, &writer], LINK), 20);
    assert_eq!(latches(&records, 0), [(4, 0, 0), (14, 1, 1)]);
    assert_eq!(publications(&records, 0), [(4, 0, 4), (14, 1, 14)]);
}

#[test]
fn a_late_publication_is_there_from_its_completion_on() {
    // A more important task holds the writer's first job up to 6, two after its deadline.
    let above = "name = \"above\"; cpu = 1; arrivals = [\"0 ns\"]; deadline = \"9 ns\"; wcet = \"5 ns\"; priority = 5";
    for (offset, instance) in [(5, -1), (6, 0), (7, 0)] {
        let reader = format!(
            "name = \"reader\"; cpu = 0; period = \"30 ns\"; offset = \"{offset} ns\"; wcet = \"1 ns\"; priority = 9"
        );
        let records = run(&system(&[WRITER, above, &reader], LINK), 20);
        assert_eq!(publications(&records, 0), [(6, 0, 4), (11, 1, 14)]);
        assert_eq!(latches(&records, 2), [(offset, 0, instance)]);
    }
}

#[test]
fn jitter_does_not_change_what_a_job_latches() {
    let reader = "name = \"reader\"; cpu = 0; period = \"20 ns\"; offset = \"3 ns\"; jitter = \"9 ns\"; wcet = \"1 ns\"; priority = 9";
    let system = system(&[WRITER, reader], LINK);
    let options = SimOptions { jitter: DelayChoice::Max, ..SimOptions::default() };
    // Released at 12, 32 and 52; arrived at 3, 23 and 43, when 0, 2 and 4 instances were due.
    assert_eq!(latches(&run_with(&system, 60, options), 1), [(12, 0, -1), (32, 1, 1), (52, 2, 3)]);
    let options = SimOptions { jitter: DelayChoice::None, ..SimOptions::default() };
    assert_eq!(latches(&run_with(&system, 60, options), 1), [(3, 0, -1), (23, 1, 1), (43, 2, 3)]);
}

#[test]
fn a_job_that_is_dropped_publishes_nothing() {
    let writer = WRITER.replace("wcet = \"1 ns\"", "wcet = \"2 ns\"")
        + "; overrun = \"drop\"; execution = { jobs = [\"2 ns\", \"3 ns\"] }";
    let reader =
        "name = \"reader\"; cpu = 0; period = \"10 ns\"; offset = \"4 ns\"; wcet = \"1 ns\"; priority = 9";
    let records = run(&system(&[&writer, reader], LINK), 40);
    assert_eq!(publications(&records, 0), [(2, 0, 4), (22, 2, 24)]);
    assert_eq!(latches(&records, 1), [(4, 0, 0), (14, 1, 0), (24, 2, 2), (34, 3, 2)]);
}

#[test]
fn a_task_reads_its_own_link_and_a_mode_keeps_the_last_publication() {
    let own = "[[link]]\nname = \"own\"\nfrom = \"writer\"\nto = [\"writer\", \"reader\"]\n";
    let reader =
        "name = \"reader\"; cpu = 0; period = \"10 ns\"; offset = \"0 ns\"; wcet = \"1 ns\"; priority = 9";
    let mode = "[[mode]]\nname = \"alone\"\nat = [\"20 ns\"]\nactive = [\"reader\"]\n";
    let records = run(&system(&[WRITER, reader], &format!("{own}{mode}")), 50);
    assert_eq!(latches(&records, 0), [(0, 0, -1), (10, 1, 0)]);
    assert_eq!(latches(&records, 1), [(0, 0, -1), (10, 1, 0), (20, 2, 1), (30, 3, 1), (40, 4, 1)]);
}

#[test]
fn a_job_publishes_at_the_deadline_that_it_was_released_with() {
    // At 12 the mode changes: job 1, released at 10 with a deadline of 8, still publishes at 18; job 2 at 20 + 3.
    let writer = "name = \"writer\"; cpu = 1; period = \"10 ns\"; offset = \"0 ns\"; deadline = \"8 ns\"; wcet = \"3 ns\"; priority = 1";
    let reader =
        "name = \"reader\"; cpu = 0; period = \"1 ns\"; offset = \"0 ns\"; wcet = \"1 ns\"; priority = 9";
    let mode = "[[mode]]\nname = \"short\"\nat = [\"12 ns\"]\n[[mode.task]]\nname = \"writer\"\ndeadline = \"3 ns\"\n";
    let records = run(&system(&[writer, reader], &format!("{LINK}{mode}")), 26);
    assert_eq!(publications(&records, 0), [(3, 0, 8), (13, 1, 18), (23, 2, 23)]);
    let first_of =
        |instance: i64| latches(&records, 1).into_iter().find(|it| it.2 == instance).map(|it| it.0);
    assert_eq!((first_of(0), first_of(1), first_of(2)), (Some(8), Some(18), Some(23)));
}

#[test]
fn the_example_hands_over_what_its_head_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/links/system.toml");
    let (system, _) = file::read_path(&path, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let records = run(&system, 20_000_000);
    let control = system.find_task("control").expect("it is there").0;
    let poses = records.iter().filter(|r| r.kind == Kind::Latch && r.task == control && r.value == 0);
    assert_eq!(poses.map(|r| r.extra).collect::<Vec<_>>(), [NO_JOB, 0, 0, 1]);
    // Its own values come back to it one job later: its deadline is its period.
    let own = records.iter().filter(|r| r.kind == Kind::Latch && r.task == control && r.value == 1);
    assert_eq!(own.map(|r| r.extra).collect::<Vec<_>>(), [NO_JOB, 0, 1, 2]);
}
