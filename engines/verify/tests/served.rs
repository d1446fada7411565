//! Systems with servers: what the simulator does is what verification expects, and a server that takes more than its
//! budget is found.

use horolog_analysis::{Options as AnalysisOptions, analyze};
use horolog_model::{Capacity, System, TaskId};
use horolog_sim::{DelayChoice, Horizon, SimOptions, simulate};
use horolog_testkit::{Ingredients, Serving, served_system};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Bound, Check, Options, Verification, Verifier, verify_records};

fn bounds_of(system: &System) -> Vec<Bound> {
    // Where no test exists for a system, its trace is checked without bounds.
    let Ok(analysis) = analyze(system, &AnalysisOptions::default()) else { return Vec::new() };
    let bound = |(index, task): (usize, &horolog_analysis::TaskVerdict)| {
        Some(Bound {
            task: TaskId(index as u32),
            response: task.response?,
            test: task.test.to_string(),
            exact: task.exact,
        })
    };
    analysis.tasks.iter().enumerate().filter_map(bound).collect()
}

fn records(system: &System, seed: u64) -> Option<Vec<Record>> {
    let options = SimOptions {
        horizon: Horizon::Time(Span::from_ns(300_000)),
        seed,
        jitter: DelayChoice::Uniform,
        latency: DelayChoice::Uniform,
        ..SimOptions::default()
    };
    let mut records = Vec::new();
    // Dual priority refuses hard tasks that miss even alone, and overload outgrows the backlog.
    simulate(system, &options, &mut records).ok()?;
    Some(records)
}

fn verified(system: &System, bounds: &[Bound], records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    verify_records(system, bounds, &header, records, &Options::default()).expect("it can be verified")
}

fn no_findings(serving: Serving) {
    let mut interference = 0;
    for index in 0..150 {
        let system = horolog_testkit::resolved(&served_system(7, index, serving, Ingredients::ALL));
        let Some(records) = records(&system, index) else { continue };
        let result = verified(&system, &bounds_of(&system), &records);
        // POSIX's rules give more than the budget at times: that is their defect, and a finding.
        let findings: Vec<_> =
            result.findings.iter().filter(|finding| finding.check != Check::Budget).collect();
        assert!(findings.is_empty(), "{serving:?} {index}: {findings:#?}\n{:#?}", system.to_draft());
        let is_posix = system.servers().iter().any(|server| format!("{:?}", server.kind).contains("Posix"));
        assert!(is_posix || result.findings.is_empty(), "{serving:?} {index}: {:#?}", result.findings);
        assert_eq!(result.servers.len(), system.servers().len());
        interference += result.servers.iter().map(|server| server.interference_ns.as_ns()).sum::<u64>();
    }
    assert!(interference > 0 || serving != Serving::Placed);
}

#[test]
fn servers_under_fixed_priorities_have_no_findings() {
    no_findings(Serving::Placed);
}

#[test]
fn slack_policies_have_no_findings() {
    no_findings(Serving::SlackPolicy);
}

#[test]
fn servers_under_edf_have_no_findings() {
    no_findings(Serving::Edf);
}

#[test]
fn total_bandwidth_servers_have_no_findings() {
    no_findings(Serving::TotalBandwidth);
}

#[test]
fn a_server_that_the_kernel_serves_has_no_findings() {
    no_findings(Serving::Kernel);
}

#[test]
fn a_server_that_the_kernel_serves_takes_its_share_and_a_budget_at_once() {
    let kernels = |budget: u64| {
        let text = TEXT.replace("priority = 2", "enforcement = \"kernel\"\nenforcement_latency = \"0 ns\"");
        let text = text
            .replace("sporadic", "constant-bandwidth")
            .replace("budget = \"40 ns", &format!("budget = \"{budget} ns"));
        horolog_model::file::read(&text, "served.toml", &[]).unwrap_or_else(|e| panic!("{e}")).0
    };
    let records = records(&kernels(40), 1).expect("it can be simulated");
    let whole = verified(&kernels(40), &bounds_of(&kernels(40)), &records);
    assert_eq!(whole.findings, []);
    // 40 of 100 and 40 at once, less the share of that: 64 in a period, of which it takes 40.
    let server = &whole.servers[0];
    assert_eq!(
        (server.period_ns_max, server.period_allowed_ns),
        (Some(Span::from_ns(40)), Some(Span::from_ns(64)))
    );
    let found = verified(&kernels(10), &[], &records);
    assert!(found.findings.iter().any(|finding| finding.check == Check::Budget), "{:#?}", found.findings);
    assert!(found.model_violated > 0 && found.servers[0].exceeded > 0);
}

const TEXT: &str = r#"
[system]
name = "served"
[[task]]
name = "hard"
period = "100 ns"
wcet = "50 ns"
priority = 1
[[task]]
name = "soft"
period = "100 ns"
wcet = "40 ns"
[[server]]
name = "server"
tasks = ["soft"]
kind = "sporadic"
budget = "40 ns"
period = "100 ns"
priority = 2
"#;

#[test]
fn a_server_beyond_its_budget_is_found() {
    let (system, _) = horolog_model::file::read(TEXT, "served.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let records = records(&system, 1).expect("it can be simulated");
    let whole = verified(&system, &bounds_of(&system), &records);
    assert_eq!(whole.findings, []);
    let server = &whole.servers[0];
    assert_eq!(
        (server.period_ns_max, server.period_allowed_ns),
        (Some(Span::from_ns(40)), Some(Span::from_ns(40)))
    );
    // The same trace against a file that allows less.
    let mut draft = system.to_draft();
    let less = Capacity { budget: Span::from_ns(39), period: Span::from_ns(100) };
    draft.servers[0].kind = draft.servers[0].kind.with_capacity(less);
    let less = System::new(draft).expect("a right system");
    let found = verified(&less, &[], &records);
    assert!(found.findings.iter().any(|finding| finding.check == Check::Budget), "{:#?}", found.findings);
    assert!(found.model_violated > 0 && found.servers[0].exceeded > 0);
}

#[test]
fn soft_work_before_hard_work_in_the_background_is_found() {
    let (system, _) = horolog_model::file::read(TEXT, "served.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let records = records(&system, 1).expect("it can be simulated");
    let mut draft = system.to_draft();
    draft.servers[0].kind = horolog_model::ServerKind::Background;
    let background = System::new(draft).expect("a right system");
    let found = verified(&background, &[], &records);
    assert!(
        found.findings.iter().any(|finding| finding.check == Check::PriorityInversion),
        "{:#?}",
        found.findings
    );
}

/// Two hard tasks and a soft one that asks for more than its server gives.
fn decided(server: &str) -> System {
    let text = format!(
        "[system]\nname = \"decided\"\n[[task]]\nname = \"urgent\"\nperiod = \"50 ns\"\nwcet = \"10 ns\"\npriority = 9\n\
         [[task]]\nname = \"hard\"\nperiod = \"200 ns\"\nwcet = \"60 ns\"\npriority = 1\n\
         [[task]]\nname = \"soft\"\nseparation = \"170 ns\"\nwcet = \"70 ns\"\n\
         [[server]]\nname = \"server\"\ntasks = [\"soft\"]\n{server}"
    );
    let system = horolog_model::file::read(&text, "decided.toml", &[]);
    horolog_testkit::resolved(&system.unwrap_or_else(|error| panic!("{error}")).0)
}

const KINDS: [&str; 8] = [
    "kind = \"background\"\n",
    "kind = \"polling\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 5\n",
    "kind = \"deferrable\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 5\n",
    "kind = \"sporadic\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 5\n",
    "kind = \"sporadic\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 5\nlow_priority = \"none\"\n",
    "kind = \"priority-exchange\"\nbudget = \"20 ns\"\nperiod = \"100 ns\"\npriority = 5\n",
    "kind = \"dual-priority\"\ngain = \"both\"\n",
    "kind = \"slack-stealing\"\ngain = \"propagated\"\n",
];

/// The soft job keeps the processor for 3 ns more where it lost it to the hard task, which begins that much later.
fn runs_on(records: &[Record]) -> Option<Vec<Record>> {
    let mut late = records.to_vec();
    let lost = late.windows(2).position(|pair| {
        let takes_over = matches!(pair[1].kind, Kind::Start | Kind::Resume) && pair[1].task == 1;
        pair[0].kind == Kind::Preempt && pair[0].task == 2 && pair[0].time == pair[1].time && takes_over
    })?;
    let at = Instant::from_ns(late[lost].time.as_ns() + 3);
    let after = late.get(lost + 2).is_none_or(|next| next.time >= at);
    late[lost].time = at;
    late[lost + 1].time = at;
    after.then_some(late)
}

/// One record of `kind` stands `by` ns earlier, or is missing.
fn moved(records: &[Record], kind: Kind, by: Option<u64>) -> Option<Vec<Record>> {
    let mut moved = records.to_vec();
    let mut places = moved.iter().enumerate().filter(|(_, record)| record.kind == kind);
    let (place, _) = places.nth(2)?;
    let mut record = moved.remove(place);
    if let Some(by) = by {
        record.time = Instant::from_ns(record.time.as_ns() - by);
        let at = moved.iter().position(|other| other.time >= record.time)?;
        moved.insert(at, record);
    }
    Some(moved)
}

fn has(result: &Verification, check: Check) -> bool {
    result.findings.iter().any(|finding| finding.check == check)
}

#[test]
fn each_wrong_decision_of_a_server_is_found_and_named() {
    let mut caught = 0;
    for kind in KINDS {
        let system = decided(kind);
        let clean = records(&system, 3).expect("it can be simulated");
        let whole = verified(&system, &[], &clean);
        assert!(!has(&whole, Check::ServerDecision), "{kind}: {:#?}", whole.findings);
        let applied = whole.checks.iter().find(|count| count.check == Check::ServerDecision);
        assert!(applied.is_some_and(|count| count.applied > 1_000), "{kind}: {applied:?}");
        let mutations = [
            runs_on(&clean),
            moved(&clean, Kind::BudgetReplenished, Some(7)),
            moved(&clean, Kind::BudgetReplenished, None),
            moved(&clean, Kind::BudgetExhausted, Some(3)),
            moved(&clean, Kind::Promotion, Some(3)),
            moved(&clean, Kind::SlackChange, Some(3)),
        ];
        let mut here = 0;
        for (place, wrong) in mutations.into_iter().enumerate() {
            let Some(wrong) = wrong else { continue };
            let result = verified(&system, &[], &wrong);
            assert!(has(&result, Check::ServerDecision), "{kind} {place}: {:#?}", result.findings);
            here += 1;
        }
        // The same trace of a server with other rules.
        for other in KINDS.into_iter().filter(|other| *other != kind) {
            let result = verified(&decided(other), &[], &clean);
            here += u32::from(has(&result, Check::ServerDecision));
        }
        assert!(here > 5, "{kind}: {here}");
        caught += here;
    }
    assert!(caught > 60, "{caught}");
}

#[test]
fn a_choice_between_two_timers_of_one_instant_is_found() {
    let server = |name: &str, priority: u32| {
        format!(
            "[[task]]\nname = \"{name}'s\"\narrivals = [\"0 ns\"]\nwcet = \"5 ns\"\n[[server]]\nname = \"{name}\"\nkind = \
             \"deferrable\"\nbudget = \"2 ns\"\nperiod = \"10 ns\"\npriority = {priority}\nlow_priority = \"none\"\ntasks = \
             [\"{name}'s\"]\n"
        )
    };
    let text = format!("[system]\nname = \"two\"\n{}{}", server("less", 5), server("more", 6));
    let (system, _) = horolog_model::file::read(&text, "two.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let clean = records(&system, 1).expect("it can be simulated");
    assert_eq!(verified(&system, &[], &clean).findings, []);
    // Both budgets come back at 10. The less important server gets the processor between the two.
    let mut wrong = clean;
    let place = wrong
        .iter()
        .position(|record| record.time.as_ns() == 10 && record.kind == Kind::Resume)
        .expect("the more important server goes on at 10");
    let less = Record { task: 0, ..wrong[place] };
    wrong.insert(place, Record { kind: Kind::Preempt, ..less });
    wrong.insert(place, less);
    let result = verified(&system, &[], &wrong);
    let found = result.findings.iter().find(|finding| finding.check == Check::ServerDecision);
    assert!(
        found.is_some_and(|finding| finding.message.contains("lost it at once")),
        "{:#?}",
        result.findings
    );
}

#[test]
fn the_choice_at_the_end_of_the_recording_may_be_cut_off() {
    // A job ends, and recording does: who comes next is not on record.
    let system = decided(KINDS[0]);
    let all = records(&system, 3).expect("it can be simulated");
    let end = all.iter().position(|record| record.kind == Kind::Completion).expect("jobs end");
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    let until = |time: u64| {
        let mut verifier = Verifier::new(&system, &[], &header, &Options::default()).expect("a right system");
        all[..=end].iter().for_each(|record| verifier.take(record));
        verifier.finish(time, None, Vec::new())
    };
    let last = all[end].time.as_ns();
    assert!(!has(&until(last), Check::ServerDecision));
    // One unit later the instant is over.
    assert!(has(&until(last + 1), Check::ServerDecision));
}
