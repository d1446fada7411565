//! Small systems with servers and slack policies, and what their rules say to the nanosecond: who runs when, when jobs are
//! promoted, when slack ends, how often budgets come back. Each expectation is computed by hand from the rule that its
//! comment names.

use horolog_model::System;
use horolog_sim::{DelayChoice, Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Outcome, Record};

fn system(text: &str) -> System {
    match horolog_model::file::read(&format!("[system]\nname = \"facts\"\n{text}"), "test", &[]) {
        Ok((system, _)) => horolog_testkit::resolved(&system),
        Err(errors) => panic!("{errors}"),
    }
}

/// Every job is ready when it arrives.
fn run(text: &str, until: u64) -> (Outcome, Vec<Record>) {
    let options = SimOptions {
        horizon: Horizon::Time(Span::from_ns(until)),
        jitter: DelayChoice::None,
        latency: DelayChoice::None,
        ..SimOptions::default()
    };
    let mut records = Vec::new();
    let outcome = simulate(&system(text), &options, &mut records).unwrap_or_else(|error| panic!("{error}"));
    (outcome, records)
}

/// When records of this kind stand, and of which task.
fn times(records: &[Record], kind: Kind) -> Vec<(u64, u32)> {
    records.iter().filter(|one| one.kind == kind).map(|one| (one.time.as_ns(), one.task)).collect()
}

/// Who has the processor from when to when.
fn service(records: &[Record]) -> Vec<(u32, u64, u64)> {
    let mut all = Vec::new();
    let mut since = 0;
    for one in records {
        match one.kind {
            Kind::Start | Kind::Resume => since = one.time.as_ns(),
            Kind::Preempt | Kind::Yield | Kind::Completion => all.push((one.task, since, one.time.as_ns())),
            _ => {}
        }
    }
    all
}

fn hard(name: &str, period: u64, wcet: u64, priority: u32, more: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\nperiod = \"{period} ns\"\noffset = \"0 ns\"\nwcet = \"{wcet} ns\"\npriority = {priority}\n{more}\n"
    )
}

fn soft(arrivals: &[u64], wcet: u64) -> String {
    let arrivals: Vec<String> = arrivals.iter().map(|at| format!("\"{at} ns\"")).collect();
    format!("[[task]]\nname = \"soft\"\narrivals = [{}]\nwcet = \"{wcet} ns\"\n", arrivals.join(", "))
}

fn server(keys: &str) -> String {
    format!("[[server]]\nname = \"server\"\ntasks = [\"soft\"]\n{keys}\n")
}

/// Set B: (2, 10), (4, 20), (8, 40), of which the first executes half of its wcet, and soft work without end.
fn set_b(keys: &str) -> String {
    let half = "bcet = \"1 ns\"\nexecution = { samples = [\"1 ns\"] }";
    hard("a", 10, 2, 3, half)
        + &hard("b", 20, 4, 2, "")
        + &hard("c", 40, 8, 1, "")
        + &soft(&[0], 1_000)
        + &server(keys)
}

#[test]
fn a_gain_is_not_propagated_where_the_worst_schedule_misses() {
    // Response times 2, 6 and 16: promotions 8, 14 and 24 after the arrivals. At 9 and at 19 the first task leaves 1. Were the
    // third promoted at 25, it could run from 25 to 28 and from 30 to 34, and behind the second task's 34 to 38 and the
    // first one's 38 to 40 to 41, beyond its deadline. The second has its deadline at 20, right behind the first at 18.
    let (_, records) = run(&set_b("kind = \"dual-priority\"\ngain = \"propagated\""), 40);
    let expected = [(8, 0), (14, 1), (18, 0), (24, 2), (28, 0), (34, 1), (38, 0)];
    assert_eq!(times(&records, Kind::Promotion), expected);
    let expected = [
        (3, 0, 8),
        (0, 8, 9),
        (3, 9, 14),
        (1, 14, 18),
        (0, 18, 19),
        (3, 19, 24),
        (2, 24, 28),
        (0, 28, 29),
        (2, 29, 33),
        (3, 33, 34),
        (1, 34, 38),
        (0, 38, 39),
    ];
    assert_eq!(service(&records), expected);
}

#[test]
fn ticks_in_a_window_move_a_promotion() {
    // 9 and one tick of 1 fill a window of 10, and no second tick comes in it; a release is noticed 10 late: 100 − 10 − 10.
    let text = "[platform]\ntick = \"10 ns\"\ntimer_interrupt = \"1 ns\"\n".to_owned()
        + &hard("a", 100, 9, 1, "")
        + &soft(&[0], 1_000)
        + &server("kind = \"dual-priority\"");
    let (_, records) = run(&text, 200);
    assert_eq!(times(&records, Kind::Promotion), [(80, 0), (180, 0)]);
}

/// When slack ends, of the first two jobs at the most.
fn ends_of_slack(records: &[Record]) -> Vec<u64> {
    let lost = records.iter().filter(|one| one.kind == Kind::SlackChange && one.extra == 0);
    lost.map(|one| one.time.as_ns()).take(2).collect()
}

#[test]
fn interrupts_up_to_the_deadline_are_no_slack() {
    // 100 − 10, an interrupt for the next release of the hard task and one for the soft job's.
    let text = "[platform]\ntimer_interrupt = \"1 ns\"\n".to_owned()
        + &hard("a", 100, 10, 1, "")
        + &soft(&[0], 1_000)
        + &server("kind = \"slack-stealing\"");
    let (_, records) = run(&text, 200);
    assert_eq!(ends_of_slack(&records), [88, 188]);
    assert_eq!(service(&records)[..2], [(1, 2, 88), (0, 88, 98)]);
}

#[test]
fn a_job_of_another_task_may_have_arrived_and_not_be_noticed() {
    // Two jobs of "b" within 60 and 5 that the first may be late: 60 − 20 − 2·5, and 5 for a timer that is late.
    let late = "[[task]]\nname = \"b\"\nseparation = \"58 ns\"\nwcet = \"5 ns\"\noffset = \"500 ns\"\npriority = 2\n";
    let text = "[platform]\nrelease_latency = \"5 ns\"\n".to_owned()
        + &hard("a", 100, 20, 1, "deadline = \"60 ns\"")
        + late
        + &soft(&[0], 1_000)
        + &server("kind = \"slack-stealing\"");
    let (_, records) = run(&text, 80);
    assert_eq!(service(&records)[..2], [(2, 0, 25), (0, 25, 45)]);
}

#[test]
fn without_gain_what_jobs_left_over_is_given_away_as_time_passes() {
    // "a" leaves 6, of which 2 are left when "b" has run, which leaves 6. Nobody runs from 8 to 9: "a" has 1 left. "d" runs for
    // 2: "b" has 5 left. "c" runs for 2: 3 are left. At 13 "d" has until 59 and 8 to execute: 46 − 8 − 3.
    let short = "bcet = \"4 ns\"\nexecution = { samples = [\"4 ns\"] }";
    let at =
        |text: &str, offset: u64| text.replace("offset = \"0 ns\"", &format!("offset = \"{offset} ns\""));
    let text = hard("a", 100, 10, 4, short)
        + &hard("b", 100, 10, 3, short)
        + &at(&hard("c", 100, 2, 2, ""), 11)
        + &at(&hard("d", 100, 10, 1, "deadline = \"50 ns\""), 9)
        + &soft(&[13], 1_000)
        + &server("kind = \"slack-stealing\"\ngain = \"none\"");
    let (_, records) = run(&text, 60);
    let expected = [(0, 0, 4), (1, 4, 8), (3, 9, 11), (2, 11, 13), (4, 13, 48), (3, 48, 56)];
    assert_eq!(service(&records)[..6], expected);
}

#[test]
fn exchanged_budget_is_not_lost_while_a_switch_keeps_soft_work_waiting() {
    // The switch to the soft job takes 1, and it has its whole budget of 2 after that.
    let text = "[platform]\ncontext_switch = \"1 ns\"\n".to_owned()
        + &hard("a", 100, 20, 1, "")
        + &soft(&[0], 5)
        + &server("kind = \"priority-exchange\"\nbudget = \"2 ns\"\nperiod = \"50 ns\"\npriority = 2");
    let (outcome, records) = run(&text, 100);
    assert_eq!(service(&records)[..2], [(1, 0, 3), (0, 3, 24)]);
    assert_eq!(outcome.servers[0].consumed_ns.map_or(0, Span::as_ns), 2);
}

#[test]
fn a_budget_that_is_renewed_for_new_work_came_back() {
    let edf = "policy = \"edf\"\n[[task]]\nname = \"a\"\nperiod = \"100 ns\"\nwcet = \"20 ns\"\n";
    let own = "kind = \"constant-bandwidth\"\nbudget = \"4 ns\"\nperiod = \"10 ns\"";
    let kernels = format!("{own}\nenforcement = \"kernel\"\nenforcement_latency = \"0 ns\"");
    for (head, keys) in [(edf.to_owned(), own.to_owned()), (hard("a", 100, 20, 1, ""), kernels)] {
        // Each job uses half; the first finds the budget whole.
        for (arrivals, times) in [(&[0][..], 0), (&[0, 30], 1), (&[0, 30, 60], 2)] {
            let (outcome, _) = run(&(head.clone() + &soft(arrivals, 2) + &server(&keys)), 100);
            let server = &outcome.servers[0];
            assert_eq!((server.replenishments, server.exhaustions), (times, 0), "{keys} {arrivals:?}");
            assert_eq!(server.consumed_ns.map_or(0, Span::as_ns), 2 * arrivals.len() as u64);
        }
    }
}

#[test]
fn a_total_bandwidth_server_gives_each_job_its_deadline_at_its_release() {
    // A quarter of the processor. The soft jobs' deadlines: 3 + 4, 9 + 8, 17 + 4. At 12 "a" has 18, later than 17; at 16 "b" has
    // 24, later than 21.
    let text = "policy = \"edf\"\n".to_owned()
        + &hard("a", 6, 3, 0, "").replace("priority = 0\n", "")
        + &hard("b", 8, 2, 0, "").replace("priority = 0\n", "")
        + &soft(&[3, 14], 1)
        + "[[task]]\nname = \"more\"\narrivals = [\"9 ns\"]\nwcet = \"2 ns\"\n"
        + "[[server]]\nname = \"server\"\ntasks = [\"soft\", \"more\"]\nkind = \"total-bandwidth\"\nbudget = \"1 ns\"\nperiod = \"4 ns\"\n";
    let (_, records) = run(&text, 20);
    let expected = [
        (0, 0, 3),
        (2, 3, 4),
        (1, 4, 6),
        (0, 6, 9),
        (1, 9, 11),
        (3, 11, 13),
        (0, 13, 16),
        (2, 16, 17),
        (1, 17, 19),
    ];
    assert_eq!(service(&records)[..9], expected);
}

#[test]
fn soft_work_in_the_background_gives_away_what_jobs_left_over() {
    // "e" may come at any time and has no slack, so soft work waits in the background until it has come. "a" leaves 6: 3 are
    // left when the soft job has run from 4 to 7, 2 when "f" has run for 1. At 28 "f" has until 107 and 9 to execute.
    let short = "bcet = \"4 ns\"\nexecution = { samples = [\"4 ns\"] }";
    let text = "[[task]]\nname = \"e\"\nseparation = \"1000 ns\"\noffset = \"8 ns\"\nwcet = \"20 ns\"\ndeadline = \"20 \
                ns\"\npriority = 5\n"
        .to_owned()
        + &hard("a", 1_000, 10, 4, short)
        + &hard("f", 1_000, 10, 1, "deadline = \"100 ns\"").replace("\"0 ns\"", "\"7 ns\"")
        + &soft(&[4], 1_000)
        + &server("kind = \"slack-stealing\"\ngain = \"none\"");
    let (_, records) = run(&text, 110);
    let expected = [(1, 0, 4), (3, 4, 7), (2, 7, 8), (0, 8, 28), (3, 28, 28 + 79 - 9 - 2), (2, 96, 105)];
    assert_eq!(service(&records)[..6], expected);
}

/// A server that the kernel serves, and so many hard tasks, whose releases at 0 hold it up by 1 each, as the soft one's does.
fn held_up(tasks: u32, wcet: u64) -> (Outcome, Vec<Record>) {
    let own = "kind = \"constant-bandwidth\"\nbudget = \"2 ns\"\nperiod = \"10 ns\"\nenforcement = \"kernel\"\nenforcement_latency = \"0 ns\"";
    let tasks: String = (0..tasks).map(|n| hard(&format!("h{n}"), 1_000, 1, n + 1, "")).collect();
    let text =
        "[platform]\ntimer_interrupt = \"1 ns\"\n".to_owned() + &tasks + &soft(&[0], wcet) + &server(own);
    run(&text, 100)
}

#[test]
fn a_server_of_the_kernel_that_was_held_up() {
    // From 7 to 8 it uses 1; what is left until 10 is more than its share, which no work asks for.
    let (outcome, records) = held_up(6, 1);
    assert_eq!(service(&records)[0], (6, 7, 8));
    assert_eq!((outcome.servers[0].replenishments, outcome.servers[0].exhaustions), (0, 0));
    // From 11 on it uses 2, beyond its deadline at 10: the next budget is there at once.
    let (outcome, records) = held_up(10, 3);
    assert_eq!(service(&records)[0], (10, 11, 14));
    assert_eq!((outcome.servers[0].replenishments, outcome.servers[0].exhaustions), (1, 1));
}
