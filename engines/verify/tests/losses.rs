//! Traces with a stretch of records removed: what a healthy system did is not blamed, and what is wrong afterwards is found again.

use horolog_model::{Arrival, Capacity, ServerKind, System, TaskId};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::tree::{TreeShape, draw_tree};
use horolog_testkit::{Ingredients, Random, Serving, Words, served_system};
use horolog_time::Span;
use horolog_trace::file::Header;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use horolog_verify::{Bound, Check, Class, Options, Verification, verify_records};
use std::collections::BTreeMap;

fn records(system: &System, until: u64, seed: u64) -> Vec<Record> {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(until)), seed, ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).expect("it can be simulated");
    records
}

fn verified(system: &System, backend: &str, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = backend.to_owned();
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
}

/// Without the records from one place to before another; what was lost is told at the time of the next one.
fn cut(records: &[Record], from: usize, to: usize) -> Vec<Record> {
    let time = records[to].time;
    let lost = Record {
        time,
        kind: Kind::Lost,
        cpu: 0,
        task: NO_TASK,
        job: NO_JOB,
        value: (to - from) as u64,
        extra: 0,
    };
    records[..from].iter().chain([&lost]).chain(&records[to..]).copied().collect()
}

/// A stretch that begins in the first third; often it begins or ends amid the records of one instant.
fn drawn_cut(records: &[Record], random: &mut Random) -> (usize, usize) {
    let count = records.len() as u64;
    let from = random.between(1, count / 3);
    let length = random.log_uniform(1, count / 4);
    (from as usize, (from + length) as usize)
}

/// Every task comes again and again: one that does not shows never more that it has no job.
fn served(seed: u64, index: u64, serving: Serving) -> System {
    let mut draft = served_system(seed, index, serving, Ingredients::NONE).to_draft();
    for task in &mut draft.tasks {
        if let Arrival::Aperiodic { .. } = task.arrival {
            task.arrival = Arrival::Sporadic { separation: Span::from_ns(10_000) };
        }
    }
    System::new(draft).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// What came of one series.
#[derive(Debug, Default)]
struct Count {
    judged: u64,
    /// Of these, whose processor is judged again before half of what is left has passed.
    taken_up: u64,
    /// Whose budgets are held to the nanosecond again.
    held: BTreeMap<&'static str, u64>,
}

impl Count {
    /// Without a drawn stretch nothing is found, and the processor may be judged again.
    fn healthy(&mut self, system: &System, until: u64, index: u64) {
        let clean = records(system, until, index);
        let whole = verified(system, "sim", &clean);
        if clean.len() < 30 || !whole.processors[0].compared || !whole.findings.is_empty() {
            return;
        }
        let mut random = Random::of_item(0x105e5, index);
        let (from, to) = drawn_cut(&clean, &mut random);
        let result = verified(system, "sim", &cut(&clean, from, to));
        assert_eq!(result.findings, [], "{index}: {from}..{to} of {:#?}", system.to_draft());
        self.judged += 1;
        let rest = until - clean[from].time.as_ns();
        self.taken_up += u64::from(result.processors[0].not_judged_ns.as_ns() < rest / 2);
        for place in 0..system.servers().len() {
            self.wrong_budget(system, place, &clean, index);
        }
    }

    /// Of a trace that begins with a loss, held against a file whose budget is another by one nanosecond.
    fn wrong_budget(&mut self, system: &System, place: usize, clean: &[Record], index: u64) {
        let mut draft = system.to_draft();
        let kind = draft.servers[place].kind;
        let Some(capacity) = kind.capacity().filter(|capacity| capacity.budget.as_ns() > 1) else { return };
        let other = Capacity { budget: Span::from_ns(capacity.budget.as_ns() - 1), ..capacity };
        draft.servers[place].kind = with_capacity(kind, other);
        let Ok(wrong) = System::new(draft) else { return };
        let to = Random::of_item(0xbad, index).between(2, clean.len() as u64 / 4) as usize;
        let records = cut(clean, 1, to);
        let found = verified(&wrong, "sim", &records);
        let found = found.findings.iter().filter(|one| one.check == Check::ServerDecision).count() as u64;
        *self.held.entry(kind.word()).or_default() += found;
        assert_eq!(
            verified(system, "sim", &records).findings,
            [],
            "{index}: 1..{to} of {:#?}",
            system.to_draft()
        );
    }
}

fn with_capacity(kind: ServerKind, other: Capacity) -> ServerKind {
    let mut kind = kind;
    match &mut kind {
        ServerKind::Polling { capacity, .. }
        | ServerKind::Deferrable { capacity, .. }
        | ServerKind::Sporadic { capacity, .. }
        | ServerKind::PriorityExchange { capacity, .. }
        | ServerKind::ConstantBandwidth { capacity, .. }
        | ServerKind::TotalBandwidth { capacity } => *capacity = other,
        _ => {}
    }
    kind
}

fn count(draw: impl Fn(u64) -> (System, u64), systems: u64) -> Count {
    let mut count = Count::default();
    for index in 0..systems {
        let (system, until) = draw(index);
        count.healthy(&system, until, index);
    }
    println!("{count:?}");
    assert!(count.judged > systems / 2, "{count:?}");
    count
}

#[test]
fn a_system_with_servers_is_judged_again_after_a_loss() {
    for (serving, kinds, least) in [
        (Serving::Placed, &["polling", "deferrable", "sporadic"][..], 5),
        (Serving::Edf, &["constant-bandwidth"], 5),
        (Serving::Kernel, &["constant-bandwidth"], 3),
    ] {
        let count = count(|index| (served(7, index, serving), 400_000), 400);
        assert!(
            kinds.iter().all(|kind| count.held.get(kind).is_some_and(|held| *held >= least)),
            "{count:?}"
        );
    }
}

/// A server of 600 us every ms above a hard task. Every ms a soft and a hard job of 200 us come; in the last period but one the
/// hard one goes first. Of the third period the records may be cut out.
fn measured(lost: &[(u64, u64)], is_cut: bool) -> Verification {
    let text = "[system]\nname = \"measured\"\n[[task]]\nname = \"hard\"\nperiod = \"1 ms\"\nwcet = \"300 us\"\npriority = 1\n\
                [[task]]\nname = \"soft\"\nseparation = \"1 ms\"\nwcet = \"300 us\"\n[[server]]\nname = \"server\"\ntasks = \
                [\"soft\"]\nkind = \"deferrable\"\nbudget = \"600 us\"\nperiod = \"1 ms\"\npriority = 5\n";
    let (system, _) = horolog_model::file::read(text, "measured.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
    let at = |time: u64, kind, task, job, value| Record {
        time: horolog_time::Instant::from_ns(time * 1_000),
        kind,
        cpu: 0,
        task,
        job,
        value,
        extra: 0,
    };
    let mut records = Vec::new();
    for job in 0..10 {
        let from = job * 1_000;
        let [first, second] = if job == 8 { [0, 1] } else { [1, 0] };
        records.extend([
            at(from, Kind::Release, 0, job, from * 1_000),
            at(from, Kind::Release, 1, job, from * 1_000),
            at(from, Kind::Start, first, job, 0),
            at(from + 200, Kind::Completion, first, job, 200_000),
            at(from + 200, Kind::Start, second, job, 0),
            at(from + 400, Kind::Completion, second, job, 200_000),
        ]);
    }
    if is_cut {
        records.retain(|record| record.time.as_ns() / 1_000_000 != 2);
    }
    for &(time, extra) in lost {
        let lost = Record { extra, ..at(time, Kind::Lost, NO_TASK, NO_JOB, 1) };
        let place = records.iter().position(|record| record.time > lost.time).expect("records follow");
        records.insert(place, lost);
    }
    verified(&system, "linux", &records)
}

#[test]
fn a_measured_processor_with_a_server_is_judged_again_after_a_loss() {
    let judged = |lost: &[(u64, u64)], is_cut: bool| {
        let result = measured(lost, is_cut);
        let one = &result.processors[0];
        let found = result.findings.iter().filter(|one| one.check == Check::Divergence).count();
        assert_eq!(result.findings.len(), found, "{:#?}", result.findings);
        (one.divergences, one.not_judged_ns.as_ns() / 1_000)
    };
    assert_eq!(judged(&[], false), (1, 0));
    // Of the third period nothing is there. Jobs are known from 3400 on, the budget from 5000 on, since 100 us of it may
    // have been overdrawn, which the one of 4000 pays. Work comes with it, and is done at 5400.
    assert_eq!(judged(&[(2_900, 0)], true), (1, 2_500));
    // The kernel's records are lost while the soft job runs: what it executed of 100 us is not known, and makes no
    // difference from 3000 on. Not judged is what lies between the record before and the end of the jobs at 3400.
    assert_eq!(judged(&[(2_100, 1)], false), (1, 1_400));
    // While the hard job runs no budget is in doubt: who has the processor is not known until its end.
    assert_eq!(judged(&[(2_300, 1)], false), (1, 100));
}

/// Trees of milliseconds, as if they had been measured: the records alone say where a scheduler stands.
#[test]
fn a_measured_tree_is_judged_again_after_a_loss() {
    let shape =
        TreeShape { max_cpus: 1, clusters: false, unit: Span::from_ns(1_000_000), ..TreeShape::everything() };
    let (mut judged, mut taken_up) = (0, 0);
    for index in 0..400 {
        let mut random = Random::of_item(12, index);
        let words = (0..256).map(|_| random.below(u64::MAX)).collect();
        let system = draw_tree(TreeShape { blocking: index % 4 == 0, ..shape }, &mut Words::new(words));
        let until = 3_000_000_000;
        let clean = records(&system, until, index);
        let whole = verified(&system, "linux", &clean);
        if clean.len() < 30 || !whole.processors[0].compared || !whole.findings.is_empty() {
            continue;
        }
        let (from, to) = drawn_cut(&clean, &mut random);
        let result = verified(&system, "linux", &cut(&clean, from, to));
        assert_eq!(result.findings, [], "{index}: {from}..{to} of {:#?}", system.to_draft());
        judged += 1;
        let rest = until - clean[from].time.as_ns();
        taken_up += u64::from(result.processors[0].not_judged_ns.as_ns() < rest / 2);
    }
    println!("{taken_up} of {judged} are judged again");
    assert!(judged > 50 && taken_up > judged / 8, "{taken_up} of {judged}");
}

#[test]
fn a_tree_is_judged_again_after_a_loss() {
    let tree = |index| {
        let mut random = Random::of_item(11, index);
        let words = (0..256).map(|_| random.below(u64::MAX)).collect();
        (
            draw_tree(TreeShape { blocking: index % 2 == 1, ..TreeShape::small() }, &mut Words::new(words)),
            2_000,
        )
    };
    let count = count(tree, 800);
    assert!(count.held.values().all(|held| *held > 0), "{count:?}");
}

/// The class of each late job of the task with this bound.
fn classes(system: &System, bound: &Bound, records: &[Record]) -> BTreeMap<u64, Class> {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    let mut options = Options::default();
    options.listed_per_group = 10_000;
    let found = verify_records(system, std::slice::from_ref(bound), &header, records, &options);
    let found = found.expect("it can be verified").findings;
    let late = found.iter().filter(|one| one.check == Check::Response);
    late.filter_map(|one| Some((one.job?, one.class))).collect()
}

/// A file whose task takes less than its jobs do, and a bound that some job of some task exceeds.
fn lied(system: &System, clean: &[Record], random: &mut Random) -> Option<(System, Bound)> {
    let mut draft = system.to_draft();
    let liar = random.below(draft.tasks.len() as u64) as usize;
    let task = &mut draft.tasks[liar];
    let wcet = task.wcet.as_ns();
    task.wcet = Span::from_ns(wcet - random.between(1, (wcet / 8).max(1)).min(wcet - 1));
    task.bcet = task.bcet.min(task.wcet);
    let victim = random.below(draft.tasks.len() as u64) as u32;
    let ends = clean.iter().filter(|one| one.kind == Kind::Completion && one.task == victim);
    let arrivals: BTreeMap<u64, u64> = clean
        .iter()
        .filter(|one| one.kind == Kind::Release && one.task == victim)
        .map(|one| (one.job, one.value))
        .collect();
    let mut responses: Vec<u64> = ends.map(|one| one.time.as_ns() - arrivals[&one.job]).collect();
    responses.sort_unstable();
    let most = *responses.get(random.below(responses.len().max(1) as u64) as usize)?;
    let response = Span::from_ns(most.checked_sub(1).filter(|most| *most > 0)?);
    let bound = Bound { task: TaskId(victim), response, test: "drawn".to_owned(), exact: true };
    Some((System::new(draft).ok()?, bound))
}

/// Whose fault a late job beside servers is, is said behind a loss as it is without one, or not said.
#[test]
fn a_late_job_behind_a_loss_is_blamed_as_without_one() {
    let (mut right, mut untold) = (0, 0);
    for index in 0..300 {
        let system = served(31, index, if index % 3 == 0 { Serving::Edf } else { Serving::Placed });
        let until = 60_000;
        let clean = records(&system, until, index);
        let mut random = Random::of_item(0x1a7e, index);
        let Some((file, bound)) = lied(&system, &clean, &mut random).filter(|_| clean.len() >= 60) else {
            continue;
        };
        let (from, to) = drawn_cut(&clean, &mut random);
        let whole = classes(&file, &bound, &clean);
        let lost = clean[to].time.as_ns();
        let arrived = |job: &u64| {
            let released =
                |one: &&Record| one.kind == Kind::Release && one.task == bound.task.0 && one.job == *job;
            clean.iter().find(released).map_or(0, |one| one.value)
        };
        for (job, class) in classes(&file, &bound, &cut(&clean, from, to)) {
            let as_without = whole.get(&job).copied();
            if class == Class::CannotTell {
                untold += 1;
                continue;
            }
            assert_eq!(Some(class), as_without, "{index}: {from}..{to}, job {job} of {}", bound.task.0);
            right += u64::from(arrived(&job) > lost);
        }
    }
    println!("behind a loss: {right} as without, {untold} untold");
    // Budgets may remember what was broken before the loss: then no bound is accused.
    assert!(right >= 15, "{right} {untold}");
}
