//! Modes: which tasks release jobs, at which priority they run, and what budgets there are.

use crate::machine::table::Windows;
use horolog_model::{
    Capacity, LeftOver, Priority, SecondRequest, ServerId, System, TakesEffect, TaskId, TimeTable,
};
use horolog_time::Span;
use std::sync::Arc;

/// A mode of the system. Mode 0 is the system as its file gives it, with every task active; those of its file follow, and others
/// are added with [`crate::MachineBuilder::mode`].
///
/// A mode change is an event. From that instant on, releases of tasks that the new mode does not activate are
/// rejected ([`crate::Rejected::Inactive`]); jobs already released finish, at the priorities of the new mode, or as
/// [`TaskMode::left_over`] says. A non-preemptible job keeps the processor until it gives it up, whatever its new priority.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModeSpec {
    /// One entry for each task of the system, in its order.
    pub tasks: Vec<TaskMode>,
    /// Budgets and periods that are others than in the base mode.
    pub capacities: Vec<(ServerId, Capacity)>,
    /// Time tables that are others than in the base mode.
    pub tables: Vec<(ServerId, TimeTable)>,
    /// When a request takes effect.
    pub takes_effect: ModeEffect,
    /// Whether a request that comes while another one waits is refused.
    pub refuses_second: bool,
}

/// When a request for a mode takes effect.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ModeEffect {
    /// At its instant.
    #[default]
    AtOnce,
    /// At the next start of a period of this server, the instant itself included.
    Frame(ServerId),
    /// As soon as no job of these tasks is left, the instant itself included.
    WhenDone(Vec<TaskId>),
}

/// A task in one mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskMode {
    /// Whether its releases are accepted.
    pub active: bool,
    /// Its priority in this mode, also for the left-over jobs of an inactive task; `None`: that of the system.
    pub priority: Option<Priority>,
    /// Its period or least separation. Where a change alters it, the jobs before the change are left over.
    pub separation: Option<Span>,
    /// By how much the deadline that orders its jobs under EDF comes before the one that they are released with. A change orders the jobs
    /// that are there anew.
    pub shortened: Span,
    /// What a job may execute in this mode; one that has executed so long ends.
    pub limit: Option<Span>,
    /// What becomes of left-over jobs at a change to this mode.
    pub left_over: LeftOver,
}

impl Default for TaskMode {
    fn default() -> TaskMode {
        TaskMode {
            active: true,
            priority: None,
            separation: None,
            shortened: Span::ZERO,
            limit: None,
            left_over: LeftOver::Finish,
        }
    }
}

impl ModeSpec {
    /// What the file says of a mode; 0 is the base mode.
    #[must_use]
    pub fn of(system: &System, mode: u32) -> ModeSpec {
        let task = |id| {
            let task = system.task_in(mode, id);
            TaskMode {
                active: task.is_active,
                priority: task.priority,
                separation: task.separation,
                shortened: task.shortened,
                limit: task.limit,
                left_over: task.left_over,
            }
        };
        let capacity = |id| Some((id, system.capacity_in(mode, id)?));
        let table = |id| Some((id, system.table_in(mode, id)?.clone()));
        let named = (mode as usize).checked_sub(1).and_then(|index| system.modes().get(index));
        let takes_effect = match named.map(|mode| &mode.takes_effect) {
            Some(TakesEffect::Frame(server)) => {
                system.find_server(server).map_or(ModeEffect::AtOnce, ModeEffect::Frame)
            }
            Some(TakesEffect::WhenDone(tasks)) => {
                ModeEffect::WhenDone(tasks.iter().filter_map(|name| system.find_task(name)).collect())
            }
            _ => ModeEffect::AtOnce,
        };
        ModeSpec {
            tasks: system.task_ids().map(task).collect(),
            capacities: system.server_ids().filter_map(capacity).collect(),
            tables: system.server_ids().filter_map(table).collect(),
            takes_effect,
            refuses_second: named.is_some_and(|mode| mode.second_request == SecondRequest::Refuse),
        }
    }
}

/// A mode as the machine keeps it: everything that a change needs, prepared.
#[derive(Clone, Debug)]
pub(crate) struct Mode {
    pub(crate) tasks: Vec<TaskMode>,
    /// The layout of every dispatcher.
    pub(crate) layouts: Vec<crate::machine::dispatcher::Layout>,
    pub(crate) capacities: Vec<(ServerId, Capacity)>,
    /// What each time table says.
    pub(crate) windows: Vec<Arc<Windows>>,
    pub(crate) takes_effect: ModeEffect,
    pub(crate) refuses_second: bool,
}
