//! Schedulability, response times, demand and load bounds, certificates.
//!
//! [`analyze`] runs every test that applies to a system and keeps the best answer for each task; [`Analysis`]
//! serialises to `horolog.analysis/1`. [`resolve`] gives a system what a scheduling machine goes by: the numbers of
//! a priority assignment, promotion times.
//! Decisions are taken on integers and exact ratios; floating point is for display alone.

mod answer;
pub mod arrival_curve;
pub mod assignment;
pub mod batch;
mod beyond;
mod certify;
pub mod cpu_model;
mod criticality_verdicts;
pub mod demand_bound;
pub mod driver;
pub mod edf;
mod error;
mod explain;
mod explanation;
pub mod fixed_priority;
mod fraction_sum;
pub mod frame_grabber;
pub mod global;
pub mod hyperbolic_load;
mod links;
pub mod load_bound;
pub mod mixed_criticality;
mod model;
mod options;
pub mod partition;
mod promotion_times;
pub mod quick_facts;
mod remedies;
mod result;
pub mod segments;
pub mod sensitivity;
pub mod server;
mod spin_locks;
mod spin_priority;
mod suspended_waits;
mod terms;
mod tree;
pub mod utilisation;
mod waiting;

pub use assignment::{Derived, derived_priorities, resolve, resolve_priorities};
pub use certify::certify;
pub use error::AnalysisError;
pub use explain::explain;
pub use explanation::{Explanation, Term, TermKind};
pub use options::Options;
pub use quick_facts::Utilisation;
pub use result::{
    Analysis, DeviceVerdict, LargestBudget, MissWitness, NO_TEST, ProcessorVerdict, PromotionTime,
    Schedulable, ServerVerdict, TaskVerdict, TestResult, Verdict,
};
pub use sensitivity::{Help, Remedy, Sensitivity};
pub use server::size::{PeriodSize, ServerSize, size_server};
pub use spin_priority::{SpinBound, SpinCandidate, SpinChoice, SpinProcessor, choose_spin_priority};
pub use tree::least_upper_bound;

use cpu_model::CpuModel;
use horolog_model::{CpuId, Policy, System, Task};
use horolog_time::Span;

/// Runs every test that applies to `system`.
///
/// Priorities are resolved first. Each processor is analysed by itself. A task's verdict is that of its best test;
/// all of them stand in [`TaskVerdict::tests`].
///
/// # Errors
/// Where the system lies outside the assumptions of every test, with the remedy. A deadline that is missed or not
/// proven is a result, not an error; so is a system with a tree of schedulers or modes, of which no test knows, and
/// one whose times leave the range of the tests: every verdict is unknown then.
pub fn analyze(system: &System, options: &Options) -> Result<Analysis, AnalysisError> {
    let answer = match beyond::why(system) {
        Some(_) if mixed_criticality::concerns(system) && beyond::unmodelled(system).is_none() => {
            criticality_verdicts::analyze(system, options)
        }
        Some(why) => Ok(beyond::unknown(system, why)),
        None => analyze_known(system, options),
    };
    let mut analysis = match answer {
        Err(error) if error.is_out_of_range() => beyond::unknown(system, error.to_string()),
        answer => answer?,
    };
    analysis.notes.extend(links::notes(system, &analysis.tasks));
    if analysis.schedulable != Schedulable::Unknown {
        analysis.notes.extend(overruns(system));
    }
    Ok(analysis)
}

/// The tasks whose listed executions leave the model on which the proof rests.
fn overruns(system: &System) -> impl Iterator<Item = String> {
    let is_asked = |task: &&Task| task.may_exceed() && task.wcet_of_any_mode() == task.wcet;
    let longer = system.tasks().iter().filter(is_asked);
    longer.map(|task| {
        format!(
            "task {}: `execution` lists times above the wcet of the job or of a segment; the proof holds for jobs within it",
            task.name
        )
    })
}

/// As [`analyze`], of a system that the tests know.
fn analyze_known(system: &System, options: &Options) -> Result<Analysis, AnalysisError> {
    waiting::refuse_unbounded(system)?;
    let resolved = resolve(system)?;
    let mut tasks: Vec<Option<TaskVerdict>> = vec![None; resolved.tasks().len()];
    let mut servers: Vec<Option<ServerVerdict>> = vec![None; resolved.servers().len()];
    let (mut devices, mut served) = (Vec::new(), Vec::new());
    let (mut processors, mut is_whole) = (Vec::new(), true);
    let (mut notes, mut reasons) = (Vec::new(), Vec::new());
    let waits = suspended_waits::bounds(&resolved, options)?;
    notes.extend(waits.iter().map(suspended_waits::Waits::note));
    for cpu in resolved.platform().cpus.iter() {
        if let Some(place) = beyond::cluster_on(&resolved, cpu) {
            if resolved.clusters()[place].cpus.first() == Some(&cpu) {
                let found = global::verdict::judge(&resolved, place, options);
                found.tasks.into_iter().for_each(|(id, verdict)| tasks[id.index()] = Some(verdict));
                processors.push(found.processor);
                notes.extend(found.notes);
            }
            continue;
        }
        if resolved.has_tree(cpu) {
            let found = tree::verdicts(&resolved, cpu, options)?;
            is_whole &= found.note.is_none();
            if found.note.is_none() {
                processors.push(ProcessorVerdict {
                    cpu,
                    cluster: None,
                    utilisation: found.shares.iter().fold(0.0, |sum, &(c, t)| sum + c as f64 / t as f64),
                    tests: Vec::new(),
                    utilisation_exact: quick_facts::of_shares(&found.shares, 1),
                    sensitivity: None,
                });
                notes.extend(found.has_costs.then(|| costs_note(cpu)));
            }
            reasons.extend(found.late);
            found.tasks.into_iter().for_each(|(id, verdict)| tasks[id.index()] = Some(verdict));
            found.servers.into_iter().for_each(|(id, verdict)| servers[id.index()] = Some(verdict));
            notes.extend(found.note);
            continue;
        }
        if let Some(why) = beyond::why_on(&resolved, cpu) {
            for (id, _) in resolved.tasks_on(cpu) {
                tasks[id.index()] = Some(beyond::unknown_task(&resolved, id));
            }
            notes.push(why);
            is_whole = false;
            continue;
        }
        if let Some(waits) = &waits
            && let Some(model) = waits.model(cpu)
        {
            for (id, verdict) in waits.verdicts(cpu) {
                tasks[id.index()] = Some(verdict);
            }
            processors.push(ProcessorVerdict {
                cpu,
                cluster: None,
                utilisation: model.utilisation(),
                tests: Vec::new(),
                utilisation_exact: quick_facts::utilisation(model),
                sensitivity: None,
            });
            continue;
        }
        let mut model = CpuModel::new(&resolved, cpu)?;
        waiting::settle(&resolved, &mut model, options)?;
        if model.tasks.is_empty() && model.servers.is_empty() && model.drivers.is_empty() {
            continue;
        }
        let (mut verdicts, tests) = hard_verdicts(&resolved, &model, options)?;
        notes.extend(model.has_costs.then(|| costs_note(cpu)));
        notes.extend(sections_note(&resolved, &model));
        let waits = cpu_model::has_waits(&model);
        let explores = options.sensitivity && !waits && explores(&resolved, &model);
        let sensitivity = match explores {
            true => Some(sensitivity::explore(&model, resolved.policy(), options, &mut verdicts)?),
            false => None,
        };
        for (task, verdict) in model.tasks.iter().zip(verdicts) {
            tasks[task.id.index()] = Some(verdict);
        }
        let (whole, options) = (options, &options.for_each_server_of(model.servers.len()));
        let known = server::Known::default();
        for (index, server) in model.servers.iter().enumerate() {
            for (id, verdict) in server::soft_verdicts(&model, index, resolved.policy(), &known, options)? {
                match driver::device_of(id, &resolved) {
                    None => tasks[id.index()] = Some(verdict),
                    Some(device) => served.push((device, verdict)),
                }
            }
            servers[server.id.index()] =
                Some(server::server_verdict(&resolved, &model, index, &known, options)?);
        }
        reasons.extend(server::short_jobs::reasons(&resolved, &model, whole)?);
        let mut here = server::devices::verdicts(&resolved, &model, &served, options);
        if waits {
            notes.push(format!(
                "cpu {}: a task waits for a device within its job, so every bound rests on the deadlines of the tasks \
                 that ask, and sensitivity is not searched, since answers depend on what would be changed",
                cpu.0
            ));
        }
        waiting::withdraw(&resolved, &model, &mut tasks, &mut here);
        devices.append(&mut here);
        processors.push(ProcessorVerdict {
            cpu,
            cluster: None,
            utilisation: model.utilisation(),
            tests,
            utilisation_exact: quick_facts::utilisation(&model),
            sensitivity,
        });
    }
    let tasks: Vec<TaskVerdict> = tasks.into_iter().flatten().collect();
    devices.sort_by_key(|(index, _)| *index);
    let devices: Vec<DeviceVerdict> = devices.into_iter().map(|(_, verdict)| verdict).collect();
    let required = devices.iter().filter(|device| !device.soft).map(|device| device.verdict);
    // A reserve with a deadline is promised its whole amount.
    let promised = resolved.servers().iter().zip(&servers).filter(|(server, _)| server.deadline.is_some());
    let promised = promised.map(|(_, verdict)| match verdict {
        Some(ServerVerdict { guaranteed: Some(true), .. }) => Verdict::Meets,
        _ => Verdict::Unknown,
    });
    let required = required.chain(promised);
    let hard = resolved.task_ids().zip(&tasks).filter(|(id, _)| !resolved.is_soft(*id)).map(|(_, task)| task);
    // A test of a whole processor counts soft tasks, too.
    let has_soft =
        |processor: &ProcessorVerdict| resolved.tasks_on(processor.cpu).any(|(_, task)| task.is_soft);
    Ok(Analysis {
        schema: "horolog.analysis/1",
        system: resolved.name().to_owned(),
        // Of a processor of which no test knows nothing is computed.
        utilisation: is_whole.then(|| processors.iter().map(|p| p.utilisation).fold(0.0, f64::max)),
        schedulable: match processors.iter().any(|one| proves_a_miss(one) && !has_soft(one)) {
            true => Schedulable::No,
            false => Schedulable::of(hard.map(|task| task.verdict).chain(required)),
        },
        tasks,
        servers: servers.into_iter().flatten().collect(),
        devices: devices.clone(),
        processors,
        reasons,
        notes,
    })
}

fn costs_note(cpu: CpuId) -> String {
    format!("cpu {}: the platform's costs are added, which makes every test sufficient", cpu.0)
}

/// Whether sensitivity is explored: changes leave the sections' waits, and under EDF their ceilings, out of account.
fn explores(system: &System, model: &CpuModel) -> bool {
    !model.has_spin_locks() && (system.policy() == Policy::FixedPriority || !model.has_sections())
}

/// What a reader should know of bounds beside sections.
fn sections_note(system: &System, model: &CpuModel) -> Option<String> {
    let (cpu, is_edf) = (model.cpu.0, system.policy() == Policy::Edf);
    if model.has_spin_locks() {
        let locking = system.platform().locking.of_section().unwrap_or(Span::MAX);
        let costs = if locking.is_zero() {
            "what locking itself costs counts as nothing".to_owned()
        } else {
            format!("locking itself makes each section longer by {locking}")
        };
        let again = if model.asks_anew() { ", once more where it is preempted meanwhile" } else { "" };
        return Some(format!(
            "cpu {cpu}: spin locks: a job waits for one section of each other processor{again}, and is blocked by one of its own; {costs}; \
             sensitivity is not explored"
        ));
    }
    if model.has_lock_waits() {
        let how = match model.inherits() {
            true => "inheritance a section of each less important task, and one of each resource",
            false => "the original ceiling one section",
        };
        return Some(format!(
            "cpu {cpu}: under {how} may block once a busy period; what locking itself costs is not in the bounds"
        ));
    }
    let unexplored = if is_edf { ", and sensitivity is not explored" } else { "" };
    model.has_sections().then(|| {
        format!(
            "cpu {cpu}: sections block {}, at most once a busy period: bounds are in continuous time, \
             and what locking itself costs is not in them{unexplored}",
            model.how_sections_block()
        )
    })
}

/// Whether a test of the whole processor proves a miss: then some task misses, also where no task's own test finds which.
fn proves_a_miss(processor: &ProcessorVerdict) -> bool {
    // A test in integer time answers another question.
    processor.tests.iter().any(|test| test.verdict == Verdict::Misses && !test.test.ends_with("-integer"))
}

/// The verdicts of the tasks that no server serves, in the model's order, and the tests of the whole processor.
pub(crate) fn hard_verdicts(
    system: &System,
    model: &CpuModel,
    options: &Options,
) -> Result<(Vec<TaskVerdict>, Vec<TestResult>), AnalysisError> {
    let with = |model: &CpuModel| match system.policy() {
        Policy::FixedPriority => {
            Ok((fixed_priority::analyze_cpu(system, model, options)?, quick_facts::utilisation_bounds(model)))
        }
        Policy::Edf => edf::analyze_cpu(system, model, options),
        _ => Err(AnalysisError::outside(
            "system.policy",
            "no test is known for this policy",
            "use policy = \"fixed-priority\" or \"edf\"",
        )),
    };
    let (mut verdicts, tests) = with(model)?;
    let open = verdicts.iter().any(|verdict| verdict.verdict == Verdict::Unknown);
    if open && server::misses_without_are_misses(model, system.policy()) {
        // Servers never help: what misses without them misses with them.
        let (without, _) = with(&model.without_servers())?;
        for (verdict, without) in verdicts.iter_mut().zip(without) {
            if verdict.verdict == Verdict::Unknown && without.verdict == Verdict::Misses {
                verdict.take_over(&without, "without any server already");
            }
        }
    }
    Ok((verdicts, tests))
}
