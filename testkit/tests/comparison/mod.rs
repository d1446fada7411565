//! One system in the simulator and in the naive reference: the same jobs have to do the same at the same instants.

use horolog_analysis::{Options, analyze};
use horolog_model::{Arrival, ExecutionTimes, ServerKind, System};
use horolog_sim::{DelayChoice, Horizon, SimOptions, simulate};
use horolog_testkit::Random;
use horolog_testkit::reference::links::{self, Latch, Publication};
use horolog_testkit::reference::{self, Event, Job, Node, Schedule, What};
use horolog_time::Span;
use horolog_trace::{Kind, NO_JOB, Outcome, Record};
use std::collections::BTreeMap;

/// How long a short system is looked at.
pub(crate) const END: u64 = 96;

/// What became of one system.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Agreement {
    /// Jobs that were released.
    pub(crate) jobs: u64,
    /// Instants at which a job ended and a timer went off, or another job was released.
    pub(crate) coincidences: u64,
    /// Bounds of the analysis that were compared.
    pub(crate) bounds: u64,
    /// Whether the simulator refuses the system.
    pub(crate) refused: bool,
}

/// A difference: what it is, and both schedules where they differ.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// What differs first.
    pub(crate) what: String,
    /// The simulator's events.
    pub(crate) simulated: Vec<Event>,
    /// The reference's events.
    pub(crate) expected: Vec<Event>,
}

/// What ends a job without completing, in an enforcement's record.
const DROPPED: u64 = 4;

/// Runs a system in both; `with_bounds` also holds it against the analysis.
pub(crate) fn compare(system: &System, seed: u64, with_bounds: bool) -> Result<Agreement, Box<Difference>> {
    let mut random = Random::of_item(seed, 1);
    // Later sporadic arrivals beside slack stealing: see `docs/open-points.md`.
    let steals =
        system.servers().iter().any(|server| matches!(server.kind, ServerKind::SlackStealing { .. }));
    let choices = [DelayChoice::Max, DelayChoice::None, DelayChoice::Uniform];
    let options = SimOptions {
        horizon: Horizon::Time(Span::from_ns(END)),
        seed,
        jitter: choices[random.below(3) as usize],
        latency: choices[random.below(3) as usize],
        sporadic_extra: Span::from_ns(if steals || releases_itself(system) {
            0
        } else {
            [0, 0, 3][random.below(3) as usize]
        }),
        ..SimOptions::default()
    };
    let mut records: Vec<Record> = Vec::new();
    let Ok(outcome) = simulate(&horolog_testkit::resolved(system), &options, &mut records) else {
        return Ok(Agreement { refused: true, ..Agreement::default() });
    };
    let mut simulated = events_of(&records);
    // Modes drop jobs, too: with them that is not told apart.
    let is_told = |event: &Event| system.modes().is_empty() || event.what != What::Act(DROPPED);
    simulated.retain(is_told);
    let different = |what: String, expected: Vec<Event>| {
        Err(Box::new(Difference { what, simulated: simulated.clone(), expected }))
    };
    let (mut schedule, jobs) = if !releases_itself(system) {
        match jobs_of(system, &options, &records) {
            Ok(jobs) => (reference::simulate(system, &jobs, END), jobs),
            Err(what) => return different(what, Vec::new()),
        }
    } else {
        reference::simulate_modes(system, END)
    };
    if let Some(what) = changes(&records, &schedule) {
        return different(what, schedule.events);
    }
    // At the horizon jobs end, and nothing else happens.
    schedule.events.retain(|event| event.at < END || !matches!(event.what, What::Act(_)));
    schedule.events.retain(is_told);
    schedule.events.sort_unstable();
    if let Some(place) = (0..simulated.len().max(schedule.events.len()))
        .find(|&place| simulated.get(place) != schedule.events.get(place))
    {
        let show = |event: Option<&Event>| event.map_or("nothing".to_owned(), |event| line(system, event));
        let (found, wanted) = (show(simulated.get(place)), show(schedule.events.get(place)));
        return different(format!("simulated: {found}; reference: {wanted}"), schedule.events);
    }
    if let Some(what) = after_changes(&records, &schedule) {
        return different(what, schedule.events);
    }
    if let Some(what) = budgets(system, &outcome, &records, &schedule) {
        let what = format!("{what}; {}", uses(&records, &schedule));
        return different(what, schedule.events);
    }
    if let Some(what) = handed_over(system, &records, &jobs, &schedule) {
        return different(what, schedule.events);
    }
    let mut bounds = 0;
    // Bounds are for jobs within their wcets.
    let is_within = !system.tasks().iter().any(|task| task.may_exceed());
    if with_bounds && is_within && system.first_beyond_servers().is_none() {
        match above_bound(system, &jobs, &schedule) {
            Ok(count) => bounds = count,
            Err(what) => return different(what, schedule.events),
        }
    }
    let released = jobs.iter().flatten().filter(|job| job.ready < END).count() as u64;
    Ok(Agreement { jobs: released, coincidences: schedule.coincidences, bounds, refused: false })
}

/// Whether the reference computes the releases itself: not all of them take place, or jobs execute as the file lists.
fn releases_itself(system: &System) -> bool {
    let is_listed = |task: &horolog_model::Task| {
        matches!(task.execution, ExecutionTimes::Jobs(_) | ExecutionTimes::Segments(_))
    };
    !system.modes().is_empty() || system.tasks().iter().any(is_listed)
}

/// An event in words.
pub(crate) fn line(system: &System, event: &Event) -> String {
    let name = &system.tasks()[event.task].name;
    format!("{:>4} {name} job {} {:?}", event.at, event.job, event.what)
}

/// A system in words: its file, or where the file cannot say it, the parts that matter to a schedule.
pub(crate) fn text(system: &System) -> String {
    if system.first_beyond_servers().is_none() {
        return horolog_model::file::print(system);
    }
    let mut text = format!("policy {:?}, {:?}\n", system.policy(), system.platform());
    for task in system.tasks() {
        text += &format!(
            "task {} on {}: {:?} offset {:?} jitter {} wcet {} {:?} {:?} deadline {:?} priority {:?} {:?}\n",
            task.name,
            task.cpu.0,
            task.arrival,
            task.offset,
            task.jitter,
            task.wcet,
            task.execution,
            task.overrun,
            task.deadline,
            task.priority,
            task.preemption
        );
        for section in &task.sections {
            text += &format!("    {section:?}\n");
        }
    }
    for part in system.resources() {
        text += &format!("{part:?}\n");
    }
    for server in system.servers() {
        text += &format!(
            "scheduler {} on {} below {:?}: {:?} {:?} over {:?}, {:?}\n",
            server.name, server.cpu.0, server.parent, server.order, server.table, server.tasks, server.kind
        );
    }
    for part in system.clusters() {
        text += &format!("{part:?}\n");
    }
    for part in system.modes() {
        text += &format!("{part:?}\n");
    }
    text
}

/// Jobs are counted as they are released: some that do not come into being have numbers of their own.
fn events_of(records: &[Record]) -> Vec<Event> {
    let mut released: BTreeMap<(u32, u64), usize> = BTreeMap::new();
    let mut count: BTreeMap<u32, usize> = BTreeMap::new();
    for record in records.iter().filter(|record| record.kind == Kind::Release) {
        let rank = count.entry(record.task).or_default();
        released.insert((record.task, record.job), *rank);
        *rank += 1;
    }
    let event = |record: &Record| {
        let what = match record.kind {
            Kind::Start => What::Start,
            Kind::Preempt => What::Preempt,
            Kind::Yield => What::Yield,
            Kind::Resume => What::Resume,
            Kind::Completion => What::Completion,
            Kind::Lock => What::Lock(record.value as usize),
            Kind::Unlock => What::Unlock(record.value as usize),
            Kind::Enforcement => What::Act(record.extra),
            Kind::Overrun => What::Overrun(record.extra),
            Kind::Suspend if record.extra == 1 => What::Wait(record.value as usize),
            _ => return None,
        };
        let job = released.get(&(record.task, record.job)).copied().unwrap_or(usize::MAX);
        let (task, cpu) = (record.task as usize, u32::from(record.cpu));
        Some(Event { at: record.time.as_ns(), task, what, job, cpu })
    };
    let mut events: Vec<Event> = records.iter().filter_map(event).collect();
    events.sort_unstable();
    events
}

/// How what links hand over differs.
fn handed_over(
    system: &System,
    records: &[Record],
    jobs: &[Vec<Job>],
    schedule: &Schedule,
) -> Option<String> {
    let mut latches: Vec<Latch> = Vec::new();
    let mut publications: Vec<Publication> = Vec::new();
    for record in records {
        let (at, task, job) = (record.time.as_ns(), record.task as usize, record.job as usize);
        let link = record.value as usize;
        match record.kind {
            Kind::Publish => publications.push(Publication { at, job, link, nominal: record.extra }),
            Kind::Latch => {
                let instance = (record.extra != NO_JOB).then_some(record.extra as usize);
                latches.push(Latch { at, task, job, link, instance });
            }
            _ => {}
        }
    }
    latches.sort_unstable();
    publications.sort_unstable();
    let wanted = links::published(system, jobs, schedule);
    if publications != wanted {
        return Some(format!("published: {publications:?}; reference: {wanted:?}"));
    }
    let wanted = links::latches(system, jobs, schedule, END);
    let place = (0..latches.len().max(wanted.len())).find(|&at| latches.get(at) != wanted.get(at))?;
    Some(format!("latched: {:?}; reference: {:?}", latches.get(place), wanted.get(place)))
}

/// How what follows mode changes differs: ends of modes, and first dispatches.
fn after_changes(records: &[Record], schedule: &Schedule) -> Option<String> {
    let of = |kind: Kind| records.iter().filter(move |record| record.kind == kind);
    let ended: Vec<(u64, u32)> =
        of(Kind::ModeEnd).map(|record| (record.time.as_ns(), record.value as u32)).collect();
    if ended != schedule.ended {
        return Some(format!("modes ended at {ended:?}; reference: {:?}", schedule.ended));
    }
    let node = |record: &Record| match record.extra {
        0 => Node::Task(record.task as usize),
        server => Node::Server(server as usize - 1),
    };
    let dispatched = of(Kind::FirstDispatch);
    let mut told: Vec<(u64, Node, u32)> =
        dispatched.map(|record| (record.time.as_ns(), node(record), record.value as u32)).collect();
    told.sort_unstable();
    let mut wanted = schedule.dispatched.clone();
    wanted.sort_unstable();
    (told != wanted).then(|| format!("first dispatches: {told:?}; reference: {wanted:?}"))
}

/// How the instants of mode changes differ.
fn changes(records: &[Record], schedule: &Schedule) -> Option<String> {
    let of_modes = records.iter().filter(|record| record.kind == Kind::ModeChange);
    let told: Vec<u64> = of_modes.map(|record| record.time.as_ns()).collect();
    let wanted = &schedule.changes;
    (told != *wanted).then(|| format!("the mode changes at {told:?}; reference: {wanted:?}"))
}

/// The jobs of each task. What the model fixes is computed from it; what is drawn is read from the records, and held
/// against what the model allows.
fn jobs_of(system: &System, options: &SimOptions, records: &[Record]) -> Result<Vec<Vec<Job>>, String> {
    let mut all = Vec::new();
    for (index, task) in system.tasks().iter().enumerate() {
        let of = |kind: Kind| records.iter().filter(move |r| r.kind == kind && r.task == index as u32);
        let releases: Vec<(u64, u64)> = of(Kind::Release).map(|r| (r.value, r.time.as_ns())).collect();
        let mut jobs: Vec<Job> = Vec::new();
        for number in 0.. {
            let before = jobs.last().map(|job| job.arrival);
            let least = match (&task.arrival, before) {
                (Arrival::Aperiodic { arrivals }, _) => match arrivals.get(number) {
                    Some(arrival) => arrival.as_ns(),
                    None => break,
                },
                (_, None) => task.offset.map_or(0, |offset| offset.as_ns()),
                (_, Some(before)) => before + task.separation().map_or(END, |span| span.as_ns()),
            };
            let given = releases.get(number).copied();
            let extra = match task.arrival {
                Arrival::Sporadic { .. } if before.is_some() => options.sporadic_extra.as_ns(),
                _ => 0,
            };
            // A job that is not recorded would come after the end.
            let arrival = given.map_or(least + extra, |(arrival, _)| arrival);
            if arrival < least || arrival > least + extra {
                return Err(format!("job {number} of {} arrives at {arrival}", task.name));
            }
            let earliest = jobs.last().map_or(0, |job| job.ready);
            let (first, last) = notices(system, options, index, arrival);
            let (first, last) = (first.max(earliest), last.max(earliest));
            let ready = given.map_or(last, |(_, ready)| ready);
            if ready < first || ready > last {
                return Err(format!("job {number} of {} is noticed at {ready}", task.name));
            }
            if ready >= END {
                break;
            }
            let executed = of(Kind::Completion).find(|r| r.job == number as u64).map(|r| r.value);
            let segments = segments_of(task, executed, number)?;
            jobs.push(Job { arrival, ready, segments, path: Vec::new() });
        }
        if releases.len() > jobs.len() {
            return Err(format!("{} has more releases than jobs", task.name));
        }
        all.push(jobs);
    }
    Ok(all)
}

/// The earliest and the latest instant at which a job that arrives then is noticed.
fn notices(system: &System, options: &SimOptions, task: usize, arrival: u64) -> (u64, u64) {
    let jitter = system.tasks()[task].jitter.as_ns();
    let latency = system.platform().release_latency.map_or(0, |latency| latency.as_ns());
    let range = |choice: DelayChoice, most: u64| match choice {
        DelayChoice::None => (0, 0),
        DelayChoice::Max => (most, most),
        DelayChoice::Uniform => (0, most),
    };
    let tick = system.platform().tick.map_or(1, |tick| tick.as_ns());
    let (jitters, latencies) = (range(options.jitter, jitter), range(options.latency, latency));
    let at = |jitter: u64, latency: u64| (arrival + jitter).next_multiple_of(tick) + latency;
    (at(jitters.0, latencies.0), at(jitters.1, latencies.1))
}

fn segments_of(task: &horolog_model::Task, executed: Option<u64>, job: usize) -> Result<Vec<u64>, String> {
    if let Some(graph) = task.segment_graph() {
        return Ok(graph.segments.iter().map(|segment| segment.wcet.as_ns()).collect());
    }
    let (bcet, wcet) = (task.bcet.as_ns(), task.wcet.as_ns());
    match (&task.execution, executed) {
        (ExecutionTimes::Uniform, Some(executed)) if (bcet..=wcet).contains(&executed) => Ok(vec![executed]),
        (ExecutionTimes::Uniform, Some(executed)) => {
            Err(format!("job {job} of {} executes {executed}", task.name))
        }
        (ExecutionTimes::Samples(samples), _) => Ok(vec![samples[0].as_ns()]),
        (ExecutionTimes::Jobs(times), _) => Ok(vec![times[job % times.len()].as_ns()]),
        _ => Ok(vec![wcet]),
    }
}

/// What of the use of budgets differs.
fn budgets(system: &System, outcome: &Outcome, records: &[Record], schedule: &Schedule) -> Option<String> {
    for (index, server) in system.servers().iter().enumerate() {
        if server.kind.capacity().is_none() {
            continue;
        }
        let told = outcome.servers[index].consumed_ns.map_or(0, Span::as_ns);
        let used = schedule.used[index].len() as u64;
        if told != used {
            return Some(format!("{} has used {told}; reference: {used}", server.name));
        }
        for record in records.iter().filter(|r| r.kind == Kind::BudgetExhausted && r.value == index as u64) {
            let at = record.time.as_ns();
            let used = schedule.used[index].iter().filter(|&&unit| unit < at).count() as u64;
            if record.extra != used {
                let told = record.extra;
                return Some(format!("{} has used {told} by {at}; reference: {used}", server.name));
            }
        }
    }
    None
}

/// When budgets ran out and came back, and when they were used.
fn uses(records: &[Record], schedule: &Schedule) -> String {
    let told = |kind: Kind| -> Vec<(u64, u64, u64)> {
        let of = records.iter().filter(|record| record.kind == kind);
        of.map(|record| (record.time.as_ns(), record.value, record.extra)).collect()
    };
    let (out, back) = (told(Kind::BudgetExhausted), told(Kind::BudgetReplenished));
    format!(
        "(when, server, used) out {out:?}; (when, server, left) back {back:?}; units used {:?}",
        schedule.used
    )
}

/// How many bounds no response exceeds, or the one that is exceeded.
fn above_bound(system: &System, jobs: &[Vec<Job>], schedule: &Schedule) -> Result<u64, String> {
    let Ok(analysis) = analyze(system, &Options::default()) else { return Ok(0) };
    let mut compared = 0;
    for event in schedule.events.iter().filter(|event| event.what == What::Completion) {
        let verdict = &analysis.tasks[event.task];
        let Some(bound) = verdict.response.map(|bound| bound.as_ns()) else { continue };
        let response = event.at - jobs[event.task][event.job].arrival;
        compared += 1;
        if response > bound {
            let (name, test) = (&verdict.name, verdict.test);
            return Err(format!("{name} responds in {response}, above the bound {bound} ({test})"));
        }
    }
    Ok(compared)
}
