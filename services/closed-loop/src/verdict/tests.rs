//! One unit inside and one outside of every bound of the verdict.

mod causes;

use super::*;
use horolog_analysis::Schedulable;
use horolog_sim::{Horizon, SimOptions};
use horolog_trace::file::Damage;
use horolog_verify::{Check, FindingGroup, TaskVerification, Verdict};

const TWO: &str = "[system]\nname = \"two\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n\
    [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"2 ms\"\npriority = 5\n";

fn read(text: &str) -> System {
    horolog_model::file::read(text, "two.toml", &[]).expect("valid").0
}

/// Everything that a loop knows of a healthy run: 100 jobs of each task.
struct Case {
    system: System,
    proof: Option<Analysis>,
    without_costs: Option<Analysis>,
    verified: Option<Verification>,
    outcome: Option<Outcome>,
    ended: Ended,
    asked: Asked,
}

impl Case {
    fn new() -> Case {
        let system = read(TWO);
        let options =
            SimOptions { horizon: Horizon::Time(Span::from_ns(1_000_000_000)), ..SimOptions::default() };
        let outcome = crate::simulated_run(&system, &options, None).expect("it can be simulated");
        let proof =
            horolog_analysis::analyze(&system, &horolog_analysis::Options::default()).expect("an answer");
        let mut case = Case {
            verified: Some(verification(&system)),
            proof: Some(proof),
            without_costs: None,
            outcome: None,
            ended: Ended::Whole,
            asked: Asked::of(&Question::ALL),
            system,
        };
        case.outcome = Some(outcome);
        case
    }

    fn found(&mut self) -> &mut Verification {
        self.verified.as_mut().expect("there is one")
    }

    /// The number of jobs of the first task: released and judged.
    fn jobs(mut self, released: u64, judged: u64) -> Case {
        let task = &mut self.found().tasks[0];
        (task.released, task.judged) = (released, judged);
        self
    }

    fn closing(&self) -> Closing {
        let evidence = Evidence {
            system: &self.system,
            proof: self.proof.as_ref(),
            costs: "with machine.toml",
            without_costs: self.without_costs.as_ref(),
            simulated: None,
            verified: self.verified.as_ref(),
            outcome: self.outcome.as_ref(),
            ended: self.ended.clone(),
            report: Some("report.html"),
        };
        Closing::of(&evidence, &self.asked)
    }

    #[track_caller]
    fn answers(&self, proof: Answer, model: Answer, deadlines: Answer, exit: u8) -> Closing {
        let closing = self.closing();
        let answers = (closing.proof, closing.model, closing.deadlines);
        assert_eq!(answers, (Some(proof), Some(model), Some(deadlines)), "{closing}");
        assert_eq!(closing.exit, exit, "{closing}");
        closing
    }
}

fn verification(system: &System) -> Verification {
    let task = |task: &horolog_model::Task| TaskVerification {
        name: task.name.clone(),
        jobs: 100,
        completed: 100,
        missed: 0,
        released: 100,
        judged: 100,
        unjudged: Vec::new(),
        bound_ns: None,
        test: None,
        response_ns_max: None,
        margin_ns: None,
        exceeded: 0,
        exceeded_by_model: 0,
        exceeded_by_disturbance: 0,
        executed_ns_max: None,
        unended_beyond_wcet: None,
        below_bcet: 0,
        blocking_ns_max: None,
        blocking_allowed_ns: None,
        release_latency_ns_max: None,
        releases_noticed: 100,
        releases_late: 0,
    };
    Verification {
        schema: Verification::SCHEMA,
        system: system.name().to_owned(),
        backend: "linux".to_owned(),
        verdict: Verdict::Holds,
        complete: true,
        losses: horolog_trace::file::Losses::default(),
        damage: None,
        ended_by: None,
        records: 1_000,
        model_violated: 0,
        bound_violated: 0,
        machine_disturbed: 0,
        schedule_differs: 0,
        cannot_tell: 0,
        tasks: system.tasks().iter().map(task).collect(),
        missed_jobs: Vec::new(),
        servers: Vec::new(),
        processors: Vec::new(),
        groups: Vec::new(),
        findings: Vec::new(),
        checks: Vec::new(),
        counterexample: None,
        notes: Vec::new(),
    }
}

use Answer::{No, Undecided, Yes};

#[test]
fn a_healthy_run_holds() {
    let closing = Case::new().answers(Yes, Yes, Yes, 0);
    assert_eq!(
        closing.to_string(),
        "holds: 2 tasks proved with machine.toml, 200 of 200 jobs judged, no deadline missed (exit 0)"
    );
}

#[test]
fn coverage_is_exact() {
    Case::new().jobs(100, 90).answers(Yes, Yes, Yes, 0);
    let closing = Case::new().jobs(100, 89).answers(Yes, Undecided, Undecided, 4);
    assert!(closing.text.starts_with("a judged in 89 of 100 jobs, 90 % asked"), "{closing}");
    // Nine tenths of 99 are 89.1 jobs.
    Case::new().jobs(99, 90).answers(Yes, Yes, Yes, 0);
    Case::new().jobs(99, 89).answers(Yes, Undecided, Undecided, 4);
    let asking = |coverage_permille| {
        let mut case = Case::new().jobs(1000, 499);
        case.asked.coverage_permille = coverage_permille;
        case.closing().exit
    };
    assert_eq!((asking(499), asking(500)), (0, 4));
}

#[test]
fn ten_jobs_decide_or_all_that_there_are() {
    let with = |released, judged| {
        let mut case = Case::new().jobs(released, judged);
        case.asked.coverage_permille = 0;
        case.closing().exit
    };
    assert_eq!((with(100, 10), with(100, 9)), (0, 4));
    assert_eq!((with(10, 10), with(10, 9)), (0, 4));
    assert_eq!((with(3, 3), with(3, 2)), (0, 4));
    // A task of which the clock must have released jobs, and no record shows any.
    assert_eq!(with(0, 0), 4);
}

#[test]
fn a_sporadic_task_may_have_no_jobs() {
    let mut case = Case::new().jobs(0, 0);
    let silent = case.closing();
    assert_eq!(silent.exit, 4);
    assert!(silent.text.starts_with("no job of a is on record"), "{silent}");
    case.system = read(&TWO.replacen("period", "separation", 1));
    case.answers(Yes, Yes, Yes, 0);
}

#[test]
fn nothing_on_record_is_no_yes() {
    let mut case = Case::new();
    case.found().records = 0;
    case.found().verdict = Verdict::Unknown;
    case.answers(Yes, Undecided, Undecided, 4);
    let mut case = Case::new();
    case.verified = None;
    case.outcome = None;
    case.asked = Asked::of(&[Question::Deadlines]);
    let closing = case.closing();
    assert_eq!((closing.deadlines, closing.exit), (None, 4));
}

/// The run itself says that its code ended it, and what its trace shows up to there decides nothing.
#[test]
fn a_trace_of_a_run_that_was_ended_decides_nothing() {
    let mut case = Case::new();
    case.outcome = None;
    case.asked = Asked::of(&[Question::Deadlines]);
    assert_eq!(case.closing().exit, 0);
    case.found().ended_by = Some("task a, job 3: it called exit".to_owned());
    let closing = case.closing();
    assert_eq!((closing.deadlines, closing.exit), (Some(Undecided), 4));
    assert_eq!(closing.text, "the run ended before its time: task a, job 3: it called exit");
    // A miss on record stays one.
    case.found().tasks[0].missed = 1;
    assert_eq!(case.closing().exit, 1);
}

#[test]
fn damage_decides_nothing() {
    let mut case = Case::new();
    case.found().verdict = Verdict::Unknown;
    case.found().damage =
        Some(Damage { offset: 7, block: 0, reason: "a block is cut off".to_owned(), is_hole: false });
    let closing = case.answers(Yes, Undecided, Undecided, 4);
    assert!(closing.text.starts_with("the trace is damaged"), "{closing}");
    // Behind a hole even a miss may not have been one.
    case.found().tasks[0].missed = 1;
    case.answers(Yes, Undecided, No, 1);
    case.found().damage =
        Some(Damage { offset: 7, block: 0, reason: "blocks are missing".to_owned(), is_hole: true });
    case.answers(Yes, Undecided, Undecided, 4);
}

fn with_group(class: Class, check: Check, count: u64) -> Case {
    let mut case = Case::new();
    let found = case.found();
    let counter = match class {
        Class::ModelViolated => &mut found.model_violated,
        Class::BoundViolated => &mut found.bound_violated,
        Class::MachineDisturbed => &mut found.machine_disturbed,
        Class::ScheduleDiffers => &mut found.schedule_differs,
        Class::CannotTell => &mut found.cannot_tell,
    };
    *counter = count;
    found.verdict = match class {
        Class::ModelViolated => Verdict::ModelViolated,
        Class::BoundViolated => Verdict::BoundViolated,
        Class::MachineDisturbed => Verdict::MachineDisturbed,
        Class::ScheduleDiffers | Class::CannotTell => Verdict::Holds,
    };
    found.groups.push(FindingGroup {
        class,
        check,
        subject: "a".to_owned(),
        count,
        worst_excess_ns: Span::from_ns(420_000),
        total_excess_ns: Span::from_ns(420_000),
    });
    case
}

use horolog_verify::Class;

#[test]
fn advice_names_the_keys_that_the_task_has() {
    let help = |text: &str| {
        let mut case = with_group(Class::ModelViolated, Check::Execution, 7);
        case.system = read(text);
        case.closing().help.expect("a remedy")
    };
    let segments =
        TWO.replacen("wcet = \"1 ms\"", "segments = [\"0.4 ms\", \"0.6 ms\"]\npreemption = \"deferred\"", 1);
    let segments = help(&segments);
    let words =
        "raise the wcet of each segment that grew: they add up to 1 ms, and its longest job took 1.42 ms";
    assert!(segments.starts_with(words), "{segments}");
    // Its jobs take longer than 1.3 ms, and another one needs nearly all of the processor.
    let short = |key: &str| {
        help(&TWO.replacen("period = \"10 ms\"", &format!("{key} = \"1.3 ms\""), 1).replacen(
            "\"1 ms\"",
            "\"0.9 ms\"",
            1,
        ))
    };
    assert!(
        short("period").starts_with("its jobs take longer than its deadline, 1.3 ms"),
        "{}",
        short("period")
    );
    let sporadic = short("separation");
    assert!(sporadic.starts_with("its jobs take longer than its deadline, 1.3 ms"), "{sporadic}");
    assert!(sporadic.contains("a separation") && !sporadic.contains("period"), "{sporadic}");
}

#[test]
fn each_class_has_its_answer() {
    let closing = with_group(Class::ModelViolated, Check::Execution, 7).answers(Yes, No, Yes, 1);
    assert_eq!(closing.text, "model violated by a: 7 of 100 jobs executed above wcet 1 ms (worst 1.42 ms)");
    let help = closing.help.clone().expect("a remedy");
    assert!(help.starts_with("raise wcet to 1.5 ms (b's bound becomes"), "{help}");
    // A job that did not end may have gone on for ever: it is named, and no wcet is advised.
    for (count, more) in [(1, ""), (7, "; 6 more executed above it")] {
        let mut case = with_group(Class::ModelViolated, Check::Execution, count);
        let unended = horolog_verify::UnendedJob { job: 9, executed_ns: Span::from_ns(2_000_000_000) };
        case.found().tasks[0].unended_beyond_wcet = Some(unended);
        let closing = case.answers(Yes, No, Yes, 1);
        let said = format!(
            "model violated by a: job 9 did not end: it had executed for 2 s, its wcet is 1 ms{more}"
        );
        assert_eq!(closing.text, said);
        assert!(!closing.help.clone().unwrap_or_default().contains("wcet"), "{:?}", closing.help);
    }
    assert!(!closing.may_be_retried());
    with_group(Class::BoundViolated, Check::Response, 1).answers(Yes, No, Yes, 1);
    with_group(Class::ScheduleDiffers, Check::Divergence, 1).answers(Yes, No, Yes, 1);
    let closing = with_group(Class::CannotTell, Check::Response, 1).answers(Yes, Undecided, Yes, 4);
    assert!(closing.may_be_retried());
    let mut case = with_group(Class::MachineDisturbed, Check::ForeignThread, 1);
    case.answers(Yes, Yes, Yes, 0);
    case.asked.strict = true;
    let closing = case.answers(Yes, No, Yes, 1);
    assert!(closing.text.starts_with("--strict wants no disturbance, and there were 1"), "{closing}");
}

#[test]
fn strict_wants_every_job_and_a_whole_record() {
    let mut case = Case::new();
    case.asked.strict = true;
    case.answers(Yes, Yes, Yes, 0);
    case.found().complete = false;
    case.answers(Yes, No, Yes, 1);
    let mut case = Case::new().jobs(1000, 999);
    case.answers(Yes, Yes, Yes, 0);
    case.asked.strict = true;
    case.answers(Yes, Undecided, Undecided, 4);
}

#[test]
fn a_missed_deadline_is_a_no_whoever_is_to_blame() {
    let mut case = with_group(Class::MachineDisturbed, Check::ForeignThread, 1);
    case.found().tasks[1].missed = 2;
    case.found().tasks[0].missed = 7;
    let closing = case.answers(Yes, Yes, No, 1);
    assert!(closing.text.starts_with("9 deadlines missed (a 7, b 2)"), "{closing}");
    let missed: Vec<(&str, u64)> = closing.missed.iter().map(|one| (one.name.as_str(), one.count)).collect();
    assert_eq!(missed, [("a", 7), ("b", 2)]);
    let json = serde_json::to_value(&closing).expect("JSON");
    assert_eq!(json["missed"], serde_json::json!([{"name": "a", "count": 7}, {"name": "b", "count": 2}]));
    assert!(closing.may_be_retried());
    case.asked = Asked::of(&[Question::Proof, Question::Model]);
    assert_eq!(case.closing().exit, 0);
    // The run's own count is as good: the larger one counts.
    let mut case = Case::new();
    case.outcome.as_mut().expect("one").tasks[1].missed = 1;
    assert!(case.answers(Yes, Yes, No, 1).text.starts_with("1 deadline missed (b 1)"));
    // A wish is no deadline.
    case.system = read(&TWO.replace("priority = 5", "priority = 5\nconstraint = \"soft\""));
    case.answers(Yes, Yes, Yes, 0);
}

#[test]
fn jobs_that_a_policy_left_out_are_told() {
    let mut case = Case::new();
    assert!(case.closing().text.ends_with("no deadline missed"), "{}", case.closing());
    assert!(serde_json::to_value(case.closing()).expect("JSON").get("missed").is_none());
    case.outcome.as_mut().expect("one").tasks[1].skipped = 1;
    assert!(case.closing().text.ends_with("no deadline missed, 1 job left out by the file's policy"));
    // Of a soft task it does not matter.
    let mut draft = case.system.to_draft();
    draft.tasks[1].is_soft = true;
    case.system = System::new(draft).expect("valid");
    assert!(case.closing().text.ends_with("no deadline missed"), "{}", case.closing());
}

#[test]
fn a_proof_that_fails_says_so_beside_a_good_run() {
    let mut case = Case::new();
    let free = case.proof.clone();
    let analysis = case.proof.as_mut().expect("one");
    analysis.schedulable = Schedulable::No;
    analysis.tasks[1].verdict = horolog_analysis::Verdict::Misses;
    analysis.tasks[1].response = Some(Span::from_ns(21_000_000));
    let closing = case.answers(No, Yes, Yes, 1);
    assert_eq!(
        closing.text,
        "b misses in the proof with machine.toml: 21 ms of 20 ms; all 200 measured jobs in time"
    );
    case.without_costs = free;
    assert_eq!(
        case.closing().text,
        "b misses in the proof with machine.toml: 21 ms of 20 ms; without costs 3 ms; all 200 measured jobs in time"
    );
    case.asked = Asked::of(&[Question::Model, Question::Deadlines]);
    assert_eq!(case.closing().exit, 0);
    case.proof.as_mut().expect("one").schedulable = Schedulable::Unknown;
    case.asked = Asked::of(&Question::ALL);
    case.without_costs = None;
    // What no test decides, no run decides either.
    assert!(!case.answers(Undecided, Yes, Yes, 4).may_be_retried());
}

/// A proof with the machine's costs that leaves task b undecided, with this bound.
fn with_costs(bound: Option<u64>) -> Case {
    let mut case = Case::new();
    case.without_costs = case.proof.clone();
    let analysis = case.proof.as_mut().expect("one");
    analysis.schedulable = Schedulable::Unknown;
    analysis.tasks[1].verdict = horolog_analysis::Verdict::Unknown;
    analysis.tasks[1].response = bound.map(Span::from_ns);
    case
}

#[test]
fn a_bound_beyond_the_deadline_by_the_machines_costs_is_a_no() {
    // The test with costs is sufficient, so the analysis says unknown.
    let closing = with_costs(Some(20_000_001)).answers(No, Yes, Yes, 1);
    assert!(
        closing.text.starts_with(
            "b misses in the proof with machine.toml: 20.000001 ms of 20 ms; without costs 3 ms"
        ),
        "{closing}"
    );
    assert!(!closing.may_be_retried(), "{closing}");
    with_costs(Some(20_000_000)).answers(Undecided, Yes, Yes, 4);
    let closing = with_costs(None).answers(Undecided, Yes, Yes, 4);
    assert_eq!(closing.text, "b has no bound in the proof with machine.toml; without costs 3 ms");
    // What misses on a machine that costs nothing misses on this one.
    let mut case = with_costs(None);
    case.without_costs.as_mut().expect("one").tasks[1].verdict = horolog_analysis::Verdict::Misses;
    assert!(
        case.answers(No, Yes, Yes, 1)
            .text
            .starts_with("b misses in the proof with machine.toml; without costs 3 ms")
    );
    // A wish is no deadline, and without another proof costs are blamed for nothing.
    let mut case = with_costs(Some(20_000_001));
    case.system = read(&TWO.replace("priority = 5", "priority = 5\nconstraint = \"soft\""));
    assert_eq!(case.closing().proof, Some(Undecided));
    let mut case = with_costs(Some(20_000_001));
    case.without_costs = None;
    case.answers(Undecided, Yes, Yes, 4);
}

#[test]
fn soft_tasks_are_counted_apart_and_told() {
    let mut case = Case::new();
    case.system = read(&TWO.replace("priority = 5", "priority = 5\nconstraint = \"soft\""));
    case.asked = Asked::of(&[Question::Proof]);
    assert_eq!(case.closing().text, "1 hard task proved with machine.toml");
    case.outcome.as_mut().expect("one").tasks[1].missed = 3;
    assert_eq!(case.closing().text, "1 hard task proved with machine.toml; soft, missed: b 3");
    case.outcome = None;
    case.proof.as_mut().expect("one").tasks[1].verdict = horolog_analysis::Verdict::Misses;
    assert_eq!(case.closing().text, "1 hard task proved with machine.toml; soft: b misses");
}

#[test]
fn the_help_names_its_tasks() {
    use horolog_analysis::{Help, Remedy, Sensitivity};
    let mut case = Case::new();
    case.asked = Asked::of(&[Question::Proof]);
    let analysis = case.proof.as_mut().expect("one");
    analysis.schedulable = Schedulable::No;
    analysis.tasks[1].verdict = horolog_analysis::Verdict::Misses;
    let help = |task: &str, ms: u64| Help {
        task: task.to_owned(),
        change: Remedy::Wcet { at_most_ns: Span::from_ns(ms * 1_000_000) },
    };
    let helps = vec![help("b", 2), help("a", 1)];
    analysis.processors[0].sensitivity = Some(Sensitivity { scaling_ppb: None, helps, note: None });
    assert_eq!(
        case.closing().help.as_deref(),
        Some("every hard deadline holds with a wcet of at most 2 ms for b, or a wcet of at most 1 ms for a")
    );
}

#[test]
fn how_the_run_ended_counts() {
    let mut case = Case::new();
    case.ended = Ended::Stopped { after: Span::from_ns(5), of: Span::from_ns(10) };
    case.answers(Yes, Undecided, Undecided, 4);
    case.ended = Ended::Crashed("task a crashed in job 7: SIGSEGV".to_owned());
    let closing = case.answers(Yes, No, No, 1);
    assert!(closing.text.contains("job 7"), "{closing}");
    case.ended = Ended::Killed("killed by signal 9".to_owned());
    case.answers(Yes, Undecided, Undecided, 4);
    case.verified = None;
    case.ended = Ended::NotPermitted("SCHED_FIFO needs CAP_SYS_NICE\n  = help: as root".to_owned());
    let closing = case.closing();
    assert_eq!((closing.word, closing.exit), (Word::NotAllowed, 3));
    assert_eq!(closing.text, "proved, not run: SCHED_FIFO needs CAP_SYS_NICE");
    assert_eq!(closing.help.as_deref(), Some("as root"));
    case.asked = Asked::of(&[Question::Proof]);
    assert_eq!(case.closing().exit, 0);
    // `run` proves nothing, and says nothing of a proof.
    case.asked = Asked::of(&[Question::Deadlines]);
    let proof = case.proof.take();
    case.ended = Ended::NotPermitted("no perf".to_owned());
    let closing = case.closing();
    assert_eq!((closing.text.as_str(), closing.exit, closing.deadlines), ("not run: no perf", 3, None));
    assert_eq!(closing.help.as_deref(), Some("`horolog doctor` says how to allow it"));
    case.proof = proof;
    // A no comes before what could not be asked.
    case.asked = Asked::of(&Question::ALL);
    case.proof.as_mut().expect("one").schedulable = Schedulable::No;
    assert_eq!(case.closing().exit, 1);
}

#[test]
fn gates_are_read_and_refused() {
    assert_eq!("deadlines,proof".parse::<Gate>().expect("a gate").to_string(), "proof,deadlines");
    assert_eq!("proof,proof".parse::<Gate>().expect("a gate").to_string(), "proof");
    for wrong in ["", "proofs", "proof,", "all"] {
        assert!(wrong.parse::<Gate>().is_err(), "{wrong}");
    }
}

#[test]
fn no_goes_before_undecided_before_yes() {
    let all = [Yes, No, Undecided];
    for one in all {
        for other in all {
            let expected = match () {
                () if one == No || other == No => No,
                () if one == Undecided || other == Undecided => Undecided,
                () => Yes,
            };
            assert_eq!(one.and(other), expected);
        }
    }
}

/// A disturbance of CPU 0 that was over at `at` ms, with this length.
fn disturbance(check: Check, at: u64, length_us: u64, message: &str) -> horolog_verify::Finding {
    horolog_verify::Finding {
        class: Class::MachineDisturbed,
        check,
        time_ns: horolog_time::Instant::from_ns(at * 1_000_000),
        from_ns: horolog_time::Instant::from_ns(at * 1_000_000 - length_us * 1_000),
        to_ns: horolog_time::Instant::from_ns(at * 1_000_000),
        cpu: 0,
        task: None,
        job: None,
        observed_ns: Some(Span::from_ns(length_us * 1_000)),
        allowed_ns: Some(Span::ZERO),
        evidence: Vec::new(),
        message: message.to_owned(),
    }
}

/// Task a missed in a busy window from 10 to 21 ms, task b in one from 40 to 61 ms.
fn missed_both() -> Case {
    let mut case = Case::new();
    let missed = |task: &str, job, from: u64, to: u64| horolog_verify::MissedJob {
        task: task.to_owned(),
        job,
        cpu: 0,
        from_ns: horolog_time::Instant::from_ns(from * 1_000_000),
        to_ns: horolog_time::Instant::from_ns(to * 1_000_000),
    };
    let found = case.found();
    (found.tasks[0].missed, found.tasks[1].missed) = (1, 2);
    found.missed_jobs = vec![missed("a", 1, 10, 21), missed("b", 2, 40, 61)];
    case
}

#[test]
fn advice_on_a_wcet_is_tried_before_it_is_given() {
    let help = |excess_us: u64, text: &str| {
        let mut case = with_group(Class::ModelViolated, Check::Execution, 7);
        case.system = read(text);
        case.found().groups[0].worst_excess_ns = Span::from_ns(excess_us * 1_000);
        case.closing().help.expect("a remedy")
    };
    assert!(help(420, TWO).starts_with("raise wcet to 1.5 ms (b's bound becomes"), "{}", help(420, TWO));
    // Ten of 10 ms: longer than the period cannot be.
    let long = help(9_500, TWO);
    assert!(
        long.starts_with(
            "its jobs take longer than its deadline, 10 ms: a body that keeps to a wcet of 9 ms passes"
        ),
        "{long}"
    );
    assert!(long.contains("or a period and deadline of "), "{long}");
    // 9.2 ms and 2 ms of 20 ms do not fit below a's 9.2 ms of 10 ms.
    let tight = help(8_200, TWO);
    assert!(
        tight.starts_with(
            "raise wcet to 9.2 ms, and b misses in the proof; a body that keeps to a wcet of 9 ms passes"
        ),
        "{tight}"
    );
    let soft = help(8_200, &TWO.replace("priority = 5", "priority = 5\nconstraint = \"soft\""));
    assert!(soft.contains("(the soft b misses in the proof then, no hard task does)"), "{soft}");
    // No test knows of sections of tasks that are not preempted: without a proof there is no number.
    let unknown = help(
        420,
        &format!(
            "{TWO}preemption = \"non-preemptive\"\n[[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\n\
             length = \"1 ms\"\n[[resource]]\nname = \"bus\"\n"
        ),
    );
    assert!(unknown.starts_with("find the cause in "), "{unknown}");
}

#[test]
fn code_that_fails_has_met_no_deadline() {
    let mut case = Case::new();
    let tasks = &mut case.outcome.as_mut().expect("one").tasks;
    (tasks[0].jobs, tasks[0].failed) = (1_376, 1_376);
    let closing = case.answers(Yes, Yes, No, 1);
    assert_eq!(closing.text, "a: 1,376 of 1,376 jobs returned an error");
    case.asked = Asked::of(&[Question::Proof]);
    let closing = case.answers(Yes, Yes, No, 0);
    assert!(closing.text.ends_with("; a: 1,376 of 1,376 jobs returned an error"), "{closing}");
    case.asked = Asked::of(&Question::ALL);
    case.system = read(&TWO.replace("priority = 9", "priority = 9\nconstraint = \"soft\""));
    case.answers(Yes, Yes, Yes, 0);
}

#[test]
fn calls_that_name_nothing_break_the_model() {
    let mut case = Case::new();
    case.outcome.as_mut().expect("one").tasks[1].unknown_names = 3;
    let closing = case.answers(Yes, No, Yes, 1);
    assert!(closing.text.starts_with("model violated by b: 3 calls did nothing"), "{closing}");
}

#[test]
fn what_was_not_run_is_told_under_every_gate() {
    let mut case = Case::new();
    (case.verified, case.outcome) = (None, None);
    case.ended = Ended::NotPermitted("error: SCHED_FIFO needs CAP_SYS_NICE\n  = help: as root".to_owned());
    case.asked = Asked::of(&[Question::Proof]);
    let closing = case.closing();
    assert_eq!(closing.text, "2 tasks proved with machine.toml; not run: SCHED_FIFO needs CAP_SYS_NICE");
    assert_eq!(closing.exit, 0);
}

#[test]
fn one_count_of_jobs_is_everywhere() {
    let mut case = with_group(Class::ModelViolated, Check::Execution, 1_865);
    (case.found().tasks[0].jobs, case.found().tasks[0].completed) = (4_000, 1_889);
    let closing = case.closing();
    assert!(closing.text.contains("1,865 of 1,889 completed jobs executed above wcet 1 ms"), "{closing}");
}

#[test]
fn a_stopped_run_says_so_beside_a_miss() {
    let mut case = missed_both();
    case.ended = Ended::Stopped { after: Span::from_ns(5_000_000), of: Span::from_ns(10_000_000) };
    assert!(case.closing().text.ends_with("; the run was stopped after 5 ms of 10 ms"), "{}", case.closing());
}

#[test]
fn a_job_that_never_ends_is_named_before_what_the_machine_did() {
    let mut case = missed_both();
    case.found().findings.push(disturbance(Check::Interrupt, 50, 900, "softirq 3 took CPU 0"));
    let note = "b: its last job did not end and was left behind";
    case.outcome.as_mut().expect("one").notes.push(note.to_owned());
    assert_eq!(case.closing().text, format!("3 deadlines missed (b 2, a 1); {note}"));
}

/// Whoever stops a run from a terminal ends its programs by the same signal.
#[test]
fn how_a_program_ended_is_named_where_the_end_was_its_own() {
    for (how, is_told) in [("exited with status 3", true), ("was killed by signal 2", false)] {
        let mut case = missed_both();
        case.outcome
            .as_mut()
            .expect("one")
            .notes
            .push(format!("task b: its program {how} before the run did"));
        assert_eq!(case.closing().text.contains(how), is_told, "{}", case.closing());
    }
}

/// Beside a note about costs, the reason of a task is what an undecided proof says first.
#[test]
fn the_reason_of_a_task_goes_before_a_note_about_costs() {
    let mut case = Case::new();
    let proof = case.proof.as_mut().expect("there is one");
    proof.schedulable = Schedulable::Unknown;
    proof.tasks[0].verdict = horolog_analysis::Verdict::Unknown;
    proof.notes = vec!["no test is exact with costs".to_owned()];
    let before = case.answers(Answer::Undecided, Answer::Yes, Answer::Yes, 4);
    assert!(before.to_string().contains("no test is exact"), "{before}");
    let proof = case.proof.as_mut().expect("there is one");
    proof.reasons = vec!["task a: its bcet makes the costs too large".to_owned()];
    let after = case.closing().to_string();
    assert!(after.contains("task a: its bcet") && !after.contains("no test"), "{after}");
}

/// A bound that is above the deadline and not known to be the least is told with the task and by how much, from a unit on.
#[test]
fn a_bound_above_the_deadline_is_told_where_it_decides_nothing() {
    let mut case = Case::new();
    let with_bound = |case: &mut Case, task: usize, bound| {
        let proof = case.proof.as_mut().expect("there is one");
        proof.schedulable = Schedulable::Unknown;
        proof.notes = vec!["a note".to_owned()];
        let task = &mut proof.tasks[task];
        (task.verdict, task.response) = (horolog_analysis::Verdict::Unknown, Some(Span::from_ns(bound)));
    };
    with_bound(&mut case, 0, 10_000_000);
    assert!(case.closing().to_string().contains("undecided: a note"), "at the deadline: {}", case.closing());
    with_bound(&mut case, 0, 10_000_001);
    let test = case.proof.as_ref().expect("there is one").tasks[0].test;
    let said = format!(
        "a: its bound 10.000001 ms is 1 ns above its deadline 10 ms, and the test ({test}) does not say that it is reached"
    );
    let one = case.answers(Answer::Undecided, Answer::Yes, Answer::Yes, 4);
    assert!(one.text.contains(&said) && !one.text.contains("more"), "{one}");
    assert!(one.to_string().contains("`horolog analyze --explain a`"), "{one}");
    with_bound(&mut case, 1, 20_000_001);
    assert!(case.closing().text.ends_with("; 1 task more"), "{}", case.closing());
}
