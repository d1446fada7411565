//! What a run of a system needs from this machine, before anything is started.

use crate::bands;
use crate::{ExecError, RunOptions};
use horolog_model::{Cpus, Policy, Priority, System, TaskId};
use horolog_sys::affinity::{CpuSet, allowed_cpus};
use horolog_sys::fixed_priority::Class;

/// How one processor's tasks are scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// The kernel decides; each task's own thread sleeps to its releases.
    Shadow,
    /// The machine decides; the kernel carries it out.
    Authoritative,
}

/// One processor of the run.
#[derive(Clone, Debug)]
pub(crate) struct CpuPlan {
    pub(crate) cpu: u32,
    pub(crate) mode: Mode,
    pub(crate) tasks: Vec<TaskId>,
}

/// The whole run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) cpus: Vec<CpuPlan>,
    /// The class of each task's thread when its first job starts.
    pub(crate) classes: Vec<Class>,
    /// Where everything that is no task runs.
    pub(crate) housekeeping: CpuSet,
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Plans the run of `system`.
    pub(crate) fn new(system: &System, options: &RunOptions) -> Result<Plan, ExecError> {
        let allowed = allowed_cpus()?;
        let Cpus::Listed(listed) = &system.platform().cpus else {
            return Err(ExecError::bad_input(
                "platform.cpus: a count of processors cannot run; list the numbers of real ones, as in `cpus = [1]`",
            ));
        };
        if let Some(missing) = listed.iter().find(|cpu| !allowed.contains(cpu.0)) {
            return Err(ExecError::bad_input(format!(
                "platform.cpus: this process may not run on cpu {}; it may on {:?}",
                missing.0,
                allowed.as_slice()
            )));
        }
        let mut plan = Plan {
            cpus: Vec::new(),
            classes: vec![Class::Normal; system.tasks().len()],
            housekeeping: CpuSet::new(
                allowed.as_slice().iter().copied().filter(|&cpu| !listed.iter().any(|l| l.0 == cpu)),
            ),
            notes: Vec::new(),
        };
        if plan.housekeeping.as_slice().is_empty() {
            plan.notes
                .push("no processor is left for housekeeping: the collector shares one with tasks".into());
            plan.housekeeping = allowed;
        }
        for cpu in listed {
            let tasks: Vec<TaskId> = system.tasks_on(*cpu).map(|(id, _)| id).collect();
            if tasks.is_empty() {
                continue;
            }
            let mode = mode_of(system, &tasks);
            if mode == Mode::Authoritative {
                return Err(ExecError::bad_input(format!(
                    "cpu {}: only preemptive tasks with distinct fixed priorities run here so far",
                    cpu.0
                )));
            }
            plan.cpus.push(CpuPlan { cpu: cpu.0, mode, tasks });
        }
        for cpu in plan.cpus.clone() {
            plan.assign_classes(system, &cpu, options)?;
        }
        plan.notes.extend(load_warnings(system));
        Ok(plan)
    }

    fn assign_classes(
        &mut self,
        system: &System,
        cpu: &CpuPlan,
        options: &RunOptions,
    ) -> Result<(), ExecError> {
        if options.best_effort {
            return Ok(());
        }
        let priorities = cpu
            .tasks
            .iter()
            .map(|&id| {
                system.task(id).priority.ok_or_else(|| {
                    ExecError::bad_input(format!(
                        "task {} has no priority: resolve them first",
                        system.task(id).name
                    ))
                })
            })
            .collect::<Result<Vec<Priority>, ExecError>>()?;
        let bands = bands::assign(&priorities, bands::TASKS_LEAST, bands::TASKS_MOST).map_err(|out| {
            ExecError::bad_input(format!(
                "cpu {}: {} distinct priorities do not fit into the {} bands of SCHED_FIFO that tasks may use; give \
                 some tasks equal priorities or move some to another processor",
                cpu.cpu, out.wanted, out.available
            ))
        })?;
        for (&id, band) in cpu.tasks.iter().zip(bands) {
            self.classes[id.index()] = Class::Fifo(band);
        }
        Ok(())
    }
}

fn mode_of(system: &System, tasks: &[TaskId]) -> Mode {
    let plain = |id: &TaskId| !system.task(*id).is_non_preemptive_between_points();
    let mut priorities: Vec<i64> =
        tasks.iter().filter_map(|id| system.task(*id).priority).map(Priority::number).collect();
    let before = priorities.len();
    priorities.sort_unstable();
    priorities.dedup();
    let distinct = priorities.len() == before;
    if system.policy() == Policy::FixedPriority && tasks.iter().all(plain) && distinct {
        Mode::Shadow
    } else {
        Mode::Authoritative
    }
}

/// Processors whose real-time threads ask for more than 95 percent: RT throttling and the fair server take their
/// share there.
#[must_use]
pub fn load_warnings(system: &System) -> Vec<String> {
    let mut warnings = Vec::new();
    for cpu in system.platform().cpus.iter() {
        let load: f64 = system
            .tasks_on(cpu)
            .filter_map(|(_, task)| Some(task.wcet.as_ns() as f64 / task.separation()?.as_ns() as f64))
            .sum();
        if load > 0.95 {
            warnings.push(format!(
                "cpu {}: real-time tasks ask for {:.1} percent; above 95 percent RT throttling and the fair server of \
                 the kernel take their share from them (see horolog doctor)",
                cpu.0,
                load * 100.0
            ));
        }
    }
    warnings
}
