//! The machine of a [`Companion`]: threads whose priority somebody lends them get nodes of their own.

use crate::{
    EntityId, LentPriority, Level, Machine, MachineBuilder, NodePolicy, NodeSpec, Place, ProcessorIndex,
};
use horolog_model::{
    Companion, Device, DeviceService, ModelError, Priority, PriorityRule, System, priorities,
};

/// A thread whose priority somebody lends it: that of a device under the rule `waiting`.
#[derive(Clone, Debug)]
pub struct Lent {
    /// The device, by its place in the file.
    pub device: usize,
    /// Its node in the machine.
    pub node: EntityId,
    /// Its places from the top: the priority of each, `None` below all tasks.
    places: Vec<Option<Priority>>,
}

impl Lent {
    /// Its place at this priority, or at the one nearest below.
    #[must_use]
    pub fn place(&self, priority: Option<Priority>) -> Place {
        let reaches = |place: &Option<Priority>| match (priority, place) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(place)) => !place.is_more_important_than(own),
        };
        match self.places.iter().position(reaches).unwrap_or(self.places.len() - 1) {
            0 => Place::High,
            index => Place::Low(index as u16 - 1),
        }
    }
}

impl Machine {
    /// The machine of a companion of `system`, and its threads with lent priorities.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn of_companion(system: &System, companion: &Companion) -> Result<(Machine, Vec<Lent>), ModelError> {
        Self::of_companion_by(system, companion, MachineBuilder::new(&companion.system))
    }

    /// As [`Machine::of_companion`], for jobs on threads: those on which an overrun policy acts have budgets, or all of them
    /// ([`MachineBuilder::on_threads`]).
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn of_threads(
        system: &System,
        companion: &Companion,
        watches_all: bool,
    ) -> Result<(Machine, Vec<Lent>), ModelError> {
        let builder = MachineBuilder::new(&companion.system).on_threads(watches_all);
        Self::of_companion_by(system, companion, builder)
    }

    fn of_companion_by(
        system: &System,
        companion: &Companion,
        mut builder: MachineBuilder<'_>,
    ) -> Result<(Machine, Vec<Lent>), ModelError> {
        let mut lent = Vec::new();
        for (index, device) in system.devices().iter().enumerate() {
            let DeviceService::Thread { rule: PriorityRule::Waiting, .. } = &device.service else { continue };
            let Some(task) = companion.task_of(index) else { continue };
            let cpu = companion.system.task(task).cpu;
            let Some(processor) = companion.system.platform().cpus.index_of(cpu) else { continue };
            let mut thread = Lent { device: index, node: EntityId(0), places: places_of(system, device) };
            let level = |place: &Option<Priority>| place.map_or(Level::BACKGROUND, Level::at);
            let spec = NodeSpec {
                policy: NodePolicy::Fifo,
                lower_places: thread.places.iter().map(level).collect(),
                supply: Some(Box::new(LentPriority::new(thread.place(None)))),
                ..NodeSpec::default()
            };
            let root = builder.root_of(ProcessorIndex(processor as u16));
            thread.node = builder.node(root, spec);
            builder.place(task, thread.node);
            lent.push(thread);
        }
        Ok((builder.build()?, lent))
    }
}

/// Where a thread under the rule `waiting` can stand: from the most important user down to its own priority.
fn places_of(system: &System, device: &Device) -> Vec<Option<Priority>> {
    let DeviceService::Thread { priority, users, .. } = &device.service else { return vec![None] };
    let mut numbers: Vec<i64> = priorities(system, users).chain(*priority).map(Priority::number).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.dedup();
    let own = priority.map(Priority::number);
    numbers.retain(|number| own.is_none_or(|own| *number >= own));
    let places = numbers.into_iter().map(|number| Some(Priority::new(number)));
    places.chain(priority.is_none().then_some(None)).collect()
}
