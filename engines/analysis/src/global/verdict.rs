//! The tests of a cluster's tasks as verdicts.

use super::exact::{By, Search};
use super::{Scratch, SporadicTask, Undecided, longest_ns, search_sporadic, unit_of};
use crate::explanation::{Explanation, Term, TermKind};
use crate::options::Options;
use crate::quick_facts::{self, Utilisation};
use crate::result::{MissWitness, NO_TEST, ProcessorVerdict, TaskVerdict, TestResult, Verdict};
use crate::utilisation;
use horolog_model::pattern::{PatternJob, ReleasePattern, TaskPattern, Witness};
use horolog_model::{Arrival, Cluster, Order, Preemption, System, Task, TaskId};
use horolog_time::Span;
use std::cmp::Reverse;

const EDF: bool = true;
const FIXED: bool = false;

/// A test: its name, its source, whether it is for EDF, whether it is for tasks that cannot be preempted, and itself.
struct Test {
    name: &'static str,
    source: &'static str,
    edf: bool,
    keeps: bool,
    ask: fn(&[SporadicTask], u32, &mut u64, &mut Scratch) -> Answer,
}

/// What a test says of a whole set.
enum Answer {
    /// All tasks meet, or nothing is said.
    Set(bool),
    /// [`Scratch::bounds`] has a bound for all tasks, or none counts.
    AllOrNone(bool),
    /// [`Scratch::bounds`] has bounds, each of which counts.
    Bounds,
    /// The set lies outside.
    Outside(&'static str),
    /// No answer within the effort.
    Undecided(Undecided),
}

impl Answer {
    fn of(found: Result<bool, Undecided>, then: fn(bool) -> Answer) -> Answer {
        found.map_or_else(Answer::Undecided, then)
    }
}

/// Every test, from the quickest to the slowest.
const TESTS: [Test; 14] = [
    Test {
        name: "global-edf-gfb",
        source: "goossens03",
        edf: EDF,
        keeps: false,
        ask: |set, m, _, _| {
            super::gfb_holds(set, m)
                .map_or(Answer::Outside("a deadline lies before the end of its period"), Answer::Set)
        },
    },
    Test {
        name: "global-edf-density",
        source: "bertogna05",
        edf: EDF,
        keeps: false,
        ask: |set, m, _, _| Answer::Set(super::density_holds(set, m)),
    },
    Test {
        name: "global-edf-bak",
        source: "baker03",
        edf: EDF,
        keeps: false,
        ask: |set, m, _, _| Answer::Set(super::bak_holds(set, m)),
    },
    Test {
        name: "global-edf-bcl",
        source: "bertogna05",
        edf: EDF,
        keeps: false,
        ask: |set, m, _, scratch| Answer::Set(super::bcl_edf_holds(set, m, scratch)),
    },
    Test {
        name: "global-edf-bcl-slack",
        source: "bertogna09",
        edf: EDF,
        keeps: false,
        ask: |set, m, _, scratch| Answer::AllOrNone(super::bcl_slack_edf_bounds(set, m, scratch)),
    },
    Test {
        name: "global-edf-response",
        source: "bertogna07",
        edf: EDF,
        keeps: false,
        ask: |set, m, effort, scratch| {
            Answer::of(super::response_edf_bounds(set, m, effort, scratch), Answer::AllOrNone)
        },
    },
    Test {
        name: "global-edf-bar",
        source: "baruah07",
        edf: EDF,
        keeps: false,
        ask: |set, m, effort, scratch| Answer::of(super::bar_holds(set, m, effort, scratch), Answer::Set),
    },
    Test {
        name: "global-edf-ff-dbf",
        source: "baruah09",
        edf: EDF,
        keeps: false,
        ask: |set, m, effort, _| Answer::of(super::ff_dbf_holds(set, m, effort), Answer::Set),
    },
    Test {
        name: "global-edf-non-preemptive",
        source: "guan08",
        edf: EDF,
        keeps: true,
        ask: |set, m, effort, scratch| {
            Answer::of(super::non_preemptive_edf_bounds(set, m, effort, scratch), Answer::AllOrNone)
        },
    },
    Test {
        name: "global-fp-bcl",
        source: "bertogna05b",
        edf: FIXED,
        keeps: false,
        ask: |set, m, _, scratch| {
            super::bcl_fp_bounds(set, m, scratch);
            Answer::Bounds
        },
    },
    Test {
        name: "global-fp-bcl-slack",
        source: "bertogna09",
        edf: FIXED,
        keeps: false,
        ask: |set, m, _, scratch| {
            super::bcl_slack_fp_bounds(set, m, scratch);
            Answer::Bounds
        },
    },
    Test {
        name: "global-fp-response",
        source: "bertogna07",
        edf: FIXED,
        keeps: false,
        ask: |set, m, effort, scratch| {
            Answer::of(super::response_fp_bounds(set, m, effort, scratch), |_| Answer::Bounds)
        },
    },
    Test {
        name: "global-fp-limited-carry-in",
        source: "guan09",
        edf: FIXED,
        keeps: false,
        ask: |set, m, effort, scratch| match super::limited_carry_in_bounds(set, m, effort, scratch) {
            Ok(Some(_)) => Answer::Bounds,
            Ok(None) => Answer::Outside("two tasks have the same priority"),
            Err(undecided) => Answer::Undecided(undecided),
        },
    },
    Test {
        name: "global-fp-non-preemptive",
        source: "guan08",
        edf: FIXED,
        keeps: true,
        ask: |set, m, effort, scratch| {
            Answer::of(super::non_preemptive_fp_bounds(set, m, effort, scratch), |_| Answer::Bounds)
        },
    },
];

/// Steps of the search for a miss where the options allow more effort than that.
const SEARCH_STEPS: u64 = 300_000;

/// A cluster's tasks as the tests read them, the most important first, and the place of each in the file.
struct Set {
    tasks: Vec<SporadicTask>,
    ids: Vec<TaskId>,
    keeps: bool,
    edf: bool,
    processors: u32,
}

/// What is found of a cluster.
pub(crate) struct Found {
    pub(crate) tasks: Vec<(TaskId, TaskVerdict)>,
    pub(crate) processor: ProcessorVerdict,
    pub(crate) notes: Vec<String>,
}

fn members(system: &System, cluster: usize) -> impl Iterator<Item = (TaskId, &Task)> {
    let ids = system.task_ids().filter(move |&id| system.cluster_of(id) == Some(cluster));
    ids.map(|id| (id, system.task(id)))
}

/// What no test knows of a cluster's tasks, as a path of keys and what it is.
fn obstacle(system: &System, place: usize) -> Option<String> {
    let cluster = &system.clusters()[place];
    let count = members(system, place).count();
    let first_keeps = members(system, place).next().map(|(_, task)| task.is_non_preemptive_between_points());
    members(system, place).find_map(|(_, task)| {
        let at = |key: &str, why: &str| Some(format!("`task.{}.{key}`: {why}", task.name));
        let Some(period) = task.separation() else { return at("arrivals", "arrivals are listed") };
        if !task.jitter.is_zero() {
            return at("jitter", "there is release jitter");
        }
        if matches!(task.preemption, Preemption::Deferred(_)) {
            return at("segment", "preemption is deferred");
        }
        if !task.sections.is_empty() {
            return at("section", "jobs hold resources");
        }
        if Some(task.is_non_preemptive_between_points()) != first_keeps {
            return at("preemption", "some tasks can be preempted and others cannot");
        }
        let longest = longest_ns(count);
        if period.as_ns() > longest || task.deadline.is_some_and(|deadline| deadline.as_ns() > longest) {
            return at("period", "the times of so many tasks leave the numbers of the tests");
        }
        let is_late = task.deadline.is_some_and(|deadline| deadline > period);
        (cluster.order == Order::Edf && is_late)
            .then(|| at("deadline", "under EDF a deadline is after the end of its period"))
            .flatten()
    })
}

impl Set {
    fn of(system: &System, place: usize) -> Set {
        let cluster = &system.clusters()[place];
        let edf = cluster.order == Order::Edf;
        let mut ordered: Vec<(TaskId, &Task)> = members(system, place).collect();
        if !edf {
            ordered.sort_by_key(|(id, task)| (Reverse(task.priority.map(|it| it.number())), *id));
        }
        let (mut rank, mut before) = (0, None);
        let mut tasks = Vec::with_capacity(ordered.len());
        for (_, task) in &ordered {
            let priority = task.priority.map(|it| it.number());
            rank += u32::from(before.is_some_and(|before| before != priority) && !edf);
            before = Some(priority);
            let period = task.separation().map_or(1, Span::as_ns);
            let deadline = task.deadline.map_or(period, |deadline| deadline.as_ns().min(period));
            let is_periodic = matches!(task.arrival, Arrival::Periodic { .. });
            tasks.push(SporadicTask { wcet: task.wcet.as_ns(), period, deadline, rank, is_periodic });
        }
        Set {
            tasks,
            keeps: ordered.iter().any(|(_, task)| task.is_non_preemptive_between_points()),
            ids: ordered.into_iter().map(|(id, _)| id).collect(),
            edf,
            processors: cluster.cpus.len() as u32,
        }
    }

    fn tests(&self) -> impl Iterator<Item = &'static Test> + use<> {
        let (edf, keeps) = (self.edf, self.keeps);
        TESTS.iter().filter(move |test| test.edf == edf && test.keeps == keeps)
    }

    /// Each test's results: of the whole set, and one a task.
    fn ask_all(&self, options: &Options) -> (Vec<TestResult>, Vec<Vec<TestResult>>) {
        let mut scratch = Scratch::default();
        let (mut of_set, mut of_tasks) = (Vec::new(), vec![Vec::new(); self.tasks.len()]);
        for test in self.tests() {
            let mut effort = options.effort_of_all(self.tasks.len());
            let answer = (test.ask)(&self.tasks, self.processors, &mut effort, &mut scratch);
            let result = |verdict, response, note: Option<String>| TestResult {
                test: test.name,
                verdict,
                response,
                exact: false,
                source: test.source,
                note,
            };
            let word = |holds: bool| if holds { Verdict::Meets } else { Verdict::Unknown };
            let (holds, note) = match &answer {
                Answer::Set(holds) | Answer::AllOrNone(holds) => (*holds, None),
                Answer::Bounds => (scratch.all_bounded(), None),
                Answer::Outside(why) => (false, Some(format!("not applied: {why}"))),
                Answer::Undecided(Undecided::Effort) => {
                    (false, Some("the effort allowed by the options ran out".to_owned()))
                }
                Answer::Undecided(Undecided::Range) => {
                    (false, Some("its windows leave 64 bits of nanoseconds".to_owned()))
                }
            };
            for (place, of_task) in of_tasks.iter_mut().enumerate() {
                let bound = match answer {
                    Answer::AllOrNone(true) | Answer::Bounds => scratch.bounds[place].map(Span::from_ns),
                    _ => None,
                };
                let counts = if matches!(answer, Answer::Bounds) { bound.is_some() } else { holds };
                of_task.push(result(word(counts), bound, note.clone()));
            }
            of_set.push(result(word(holds), None, note));
        }
        (of_set, of_tasks)
    }

    /// Whether the tasks ask for more than all processors.
    fn is_overloaded(&self) -> bool {
        let shares = self.tasks.iter().map(|task| (task.wcet, task.period));
        utilisation::compare_with(shares, (u64::from(self.processors), 1)).is_gt()
    }
}

/// What the tests find of a cluster.
pub(crate) fn judge(system: &System, place: usize, options: &Options) -> Found {
    let cluster = &system.clusters()[place];
    let set = Set::of(system, place);
    let mut notes = Vec::new();
    let cpus: Vec<String> = cluster.cpus.iter().map(|cpu| cpu.0.to_string()).collect();
    let name = format!("cluster {} (cpu {})", cluster.name, cpus.join(", "));
    let stopped = obstacle(system, place);
    let has_costs = has_costs(system);
    let is_fitting = set.tasks.iter().all(|task| task.wcet <= task.deadline);
    let (mut of_set, mut of_tasks) = match stopped.is_none() && is_fitting {
        true => set.ask_all(options),
        false => (Vec::new(), vec![Vec::new(); set.tasks.len()]),
    };
    if let Some(why) = &stopped {
        notes.push(format!("{name}: no test of several processors knows of {why}"));
    } else if !is_fitting {
        notes.push(format!("{name}: a wcet is above its deadline, so nothing is known of the other tasks"));
    }
    if has_costs && stopped.is_none() {
        withhold(&mut of_set);
        of_tasks.iter_mut().for_each(|tests| withhold(tests));
        notes.push(format!(
            "{name}: the tests of several processors are without costs, and the platform has some: what holds without them is unknown with them"
        ));
    }
    let mut witness = None;
    if stopped.is_none() && is_fitting {
        let is_open = of_tasks.iter().any(|tests| tests.iter().all(|test| test.verdict == Verdict::Unknown));
        if is_open && !set.keeps {
            witness = search(system, &set, (&mut of_set, &mut of_tasks), has_costs, options);
        }
        let accepting: Vec<&str> =
            of_set.iter().filter(|it| it.verdict == Verdict::Meets).map(|it| it.test).collect();
        notes.push(match accepting.is_empty() {
            true => format!("{name}: no test accepts all of its tasks"),
            false => format!("{name}: accepted by {}", accepting.join(", ")),
        });
    }
    if stopped.is_none() && set.is_overloaded() {
        of_set.insert(
            0,
            proof("global-utilisation", "horn74", "the tasks ask for more than all processors have"),
        );
    }
    let mut tasks = Vec::new();
    for ((&id, sporadic), tests) in set.ids.iter().zip(&set.tasks).zip(of_tasks) {
        let mut verdict = of_task(system, id, sporadic, tests);
        if let Some((late, pattern)) = &witness
            && *late == id
        {
            verdict.witness = Some(pattern.clone());
        }
        tasks.push((id, verdict));
    }
    Found { tasks, processor: processor(system, cluster, &set, of_set), notes }
}

fn proof(test: &'static str, source: &'static str, note: &str) -> TestResult {
    TestResult {
        test,
        verdict: Verdict::Misses,
        response: None,
        exact: true,
        source,
        note: Some(note.to_owned()),
    }
}

/// Costs that no test here has a term for.
fn has_costs(system: &System) -> bool {
    let platform = system.platform();
    let costs =
        [platform.context_switch_cost(), platform.timer_interrupt_cost(), platform.release_latency_bound()];
    costs.iter().any(|cost| !cost.is_zero()) || platform.tick.is_some()
}

/// What is proved without costs is not proved with them.
fn withhold(tests: &mut [TestResult]) {
    for test in tests.iter_mut().filter(|test| test.verdict == Verdict::Meets) {
        (test.verdict, test.response) = (Verdict::Unknown, None);
        test.note = Some("without costs: it would hold".to_owned());
    }
}

/// The verdict of a task from what the tests say of it.
fn of_task(system: &System, id: TaskId, sporadic: &SporadicTask, mut tests: Vec<TestResult>) -> TaskVerdict {
    let task = system.task(id);
    let longest = task.deadline.map_or(u64::MAX, Span::as_ns);
    if task.wcet.as_ns() > longest {
        tests.push(proof("global-wcet", "", "a job alone takes longer than its deadline"));
    } else if task.deadline.is_some() && task.separation().is_some() && sporadic.wcet > sporadic.period {
        tests.push(proof(
            "global-wcet",
            "",
            "jobs of the task alone take longer than its period, one after the other",
        ));
    }
    if task.deadline.is_none() {
        tests.clear();
    }
    let best = TaskVerdict::best_of(task.name.clone(), task.cpu, task.deadline, Span::ZERO, tests);
    let mut verdict = best.unwrap_or_else(|| crate::beyond::unknown_task(system, id));
    verdict.blocking = None;
    verdict
}

fn processor(system: &System, cluster: &Cluster, set: &Set, tests: Vec<TestResult>) -> ProcessorVerdict {
    // A finite list of jobs adds nothing in the long run.
    let is_endless = |id: TaskId| system.task(id).separation().is_some();
    let of_tasks = set.ids.iter().zip(&set.tasks).filter(|&(&id, _)| is_endless(id));
    let shares: Vec<(u64, u64)> = of_tasks.map(|(_, task)| (task.wcet, task.period)).collect();
    let exact: Utilisation = quick_facts::of_shares(&shares, set.processors);
    ProcessorVerdict {
        cpu: cluster.cpus[0],
        cluster: Some(cluster.name.clone()),
        utilisation: shares.iter().fold(0.0, |sum, &(c, t)| sum + c as f64 / t as f64)
            / f64::from(set.processors),
        tests,
        utilisation_exact: exact,
        sensitivity: None,
    }
}

/// Searches every run in the unit of the set's times. A miss is a proof, since its releases are whole nanoseconds; that there is none in whole
/// units says nothing of releases between them, unless the unit is 1 ns.
fn search(
    system: &System,
    set: &Set,
    (of_set, of_tasks): (&mut Vec<TestResult>, &mut [Vec<TestResult>]),
    has_costs: bool,
    options: &Options,
) -> Option<(TaskId, MissWitness)> {
    // A phase that the file fixes, or a deadline that was cut to the period, is not in the search.
    let is_free = |&id: &TaskId| {
        let task = system.task(id);
        task.offset.is_none()
            && task.deadline.zip(task.separation()).is_some_and(|(deadline, period)| deadline <= period)
    };
    if !set.ids.iter().all(is_free) {
        return None;
    }
    let by = if set.edf { By::Deadline } else { By::Rank };
    let test = if set.edf { "global-edf-exact-integer" } else { "global-fp-exact-integer" };
    let most = options.search_steps.unwrap_or(SEARCH_STEPS.min(options.effort));
    let unit = unit_of(&set.tasks);
    let (found, _) = search_sporadic(&set.tasks, set.processors, by, most);
    let result = |verdict, response, exact, note: String| TestResult {
        test,
        verdict,
        response,
        exact,
        source: "baker07b",
        note: Some(note),
    };
    match found {
        Search::Misses { task, releases, states } => {
            let note = format!("a run of {} releases misses, found among {states} states", releases.len());
            of_set.push(result(Verdict::Misses, None, true, note.clone()));
            of_tasks[task].push(result(Verdict::Misses, None, true, note));
            let pattern = pattern(system, set, task, &releases);
            (!has_costs).then_some((set.ids[task], MissWitness::Pattern { pattern }))
        }
        Search::Meets { states, worst } => {
            let holds = unit == 1 && !has_costs;
            let verdict = if holds { Verdict::Meets } else { Verdict::Unknown };
            let note = format!(
                "no job is late in any run whose releases and executions are multiples of {}: {states} states",
                Span::from_ns(unit)
            );
            of_set.push(result(verdict, None, holds, note.clone()));
            for (tests, worst) in of_tasks.iter_mut().zip(worst) {
                tests.push(result(verdict, holds.then(|| Span::from_ns(worst)), holds, note.clone()));
            }
            None
        }
        Search::TooMany => {
            of_set.push(result(
                Verdict::Unknown,
                None,
                false,
                format!("not all runs were seen in {most} steps"),
            ));
            None
        }
    }
}

/// The run as `simulate --replay` reads it.
fn pattern(system: &System, set: &Set, late: usize, releases: &[(u64, usize)]) -> ReleasePattern {
    let of =
        |place: usize| releases.iter().filter(move |&&(_, task)| task == place).map(|&(instant, _)| instant);
    let last = of(late).next_back().unwrap_or(0);
    let until = last + set.tasks[late].deadline + 1;
    let mut pattern = ReleasePattern::new(system.name(), Span::from_ns(until));
    for (place, &id) in set.ids.iter().enumerate() {
        let job = |instant| PatternJob { arrival_ns: Span::from_ns(instant), ..PatternJob::default() };
        let mut jobs: Vec<PatternJob> = of(place).map(job).collect();
        if jobs.is_empty() {
            continue;
        }
        // A periodic task goes on until the deadline that is missed.
        if set.tasks[place].is_periodic {
            let mut next = jobs[jobs.len() - 1].arrival_ns.as_ns() + set.tasks[place].period;
            while next < until {
                jobs.push(job(next));
                next += set.tasks[place].period;
            }
        }
        pattern = pattern.task(TaskPattern::explicit(&system.task(id).name, jobs));
    }
    let job = of(late).count().saturating_sub(1) as u64;
    pattern.witness(Witness { task: system.task(set.ids[late]).name.clone(), job, response_ns: None })
}

/// Where the bound of a cluster's task comes from.
pub(crate) fn explain(system: &System, place: usize, id: TaskId, options: &Options) -> Explanation {
    let found = judge(system, place, options);
    let set = Set::of(system, place);
    let task = system.task(id);
    let verdict = found.tasks.into_iter().find(|(other, _)| *other == id).map(|(_, verdict)| verdict);
    let Some(verdict) = verdict else { return Explanation::unresolved(&task.name, NO_TEST) };
    let mut explanation = Explanation::unresolved(&task.name, verdict.test);
    let Some(response) = verdict.response else {
        let why = verdict.tests.first().and_then(|test| test.note.clone());
        let why = why.filter(|_| verdict.verdict != Verdict::Meets);
        explanation.reason = Some(match verdict.verdict {
            Verdict::Meets => {
                format!("`{}` accepts all tasks of the cluster and bounds no response", verdict.test)
            }
            _ => why
                .or_else(|| found.notes.first().cloned())
                .unwrap_or_else(|| "no test accepts it".to_owned()),
        });
        return explanation;
    };
    explanation.response = Some(response);
    let waits = response.as_ns().saturating_sub(task.wcet.as_ns());
    let own = set.ids.iter().position(|&other| other == id);
    let names = set.ids.iter().zip(&set.tasks).filter(|&(&other, sporadic)| {
        let is_above = own.is_none_or(|own| set.edf || set.keeps || sporadic.rank <= set.tasks[own].rank);
        other != id && is_above
    });
    let names: Vec<&str> = names.map(|(&other, _)| system.task(other).name.as_str()).collect();
    let term = |kind, who, count, ns| Term { kind, who, resource: None, count, time: Span::from_ns(ns) };
    explanation.terms = vec![
        term(TermKind::OwnWork, None, None, task.wcet.as_ns()),
        term(TermKind::AllProcessorsBusy, Some(names.join(", ")), Some(u64::from(set.processors)), waits),
    ];
    explanation.terms.retain(|term| !term.time.is_zero());
    explanation
}
