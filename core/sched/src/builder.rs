//! Builds a machine: flat by default, or a tree with inner nodes, supplies and modes.

use crate::desired::{EntityId, ProcessorIndex};
use crate::dispatcher::{Dispatcher, Layout, NONE, NodePolicy};
use crate::leaf::Leaf;
use crate::machine::Processor;
use crate::mode::{Mode, ModeSpec};
use crate::tree::SuppliedNode;
use crate::{ClockDomain, Machine, Supply};
use horolog_model::{CpuId, ModelError, Policy, Preemption, Priority, System, TaskId};
use std::collections::VecDeque;

/// An inner node to be.
#[derive(Clone, Debug, Default)]
pub struct NodeSpec {
    /// How it orders its children.
    pub policy: NodePolicy,
    /// Its priority below a fixed-priority dispatcher.
    pub priority: Option<Priority>,
    /// When it may run; `None`: always.
    pub supply: Option<Box<dyn Supply>>,
}

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    processor: u16,
    spec: NodeSpec,
}

/// Builds a [`Machine`] of a checked system whose priorities are resolved.
///
/// Without further calls every processor is one dispatcher over its tasks, by the system's policy.
#[derive(Debug)]
pub struct MachineBuilder<'a> {
    system: &'a System,
    nodes: Vec<Node>,
    /// The node above each task.
    places: Vec<usize>,
    modes: Vec<ModeSpec>,
    clocks: Vec<ClockDomain>,
    error: Option<ModelError>,
}

fn error(at: impl Into<String>, reason: &str, remedy: &str) -> ModelError {
    ModelError { at: at.into(), reason: reason.to_owned(), remedy: remedy.to_owned() }
}

impl<'a> MachineBuilder<'a> {
    /// Starts from the flat machine.
    #[must_use]
    pub fn new(system: &'a System) -> MachineBuilder<'a> {
        let policy = match system.policy() {
            Policy::FixedPriority => Some(NodePolicy::FixedPriority),
            Policy::Edf => Some(NodePolicy::Edf),
            _ => None,
        };
        let cpus: Vec<CpuId> = system.platform().cpus.iter().take(usize::from(u16::MAX)).collect();
        let mut builder = MachineBuilder {
            system,
            nodes: Vec::new(),
            places: Vec::new(),
            modes: Vec::new(),
            clocks: vec![ClockDomain::default(); cpus.len()],
            error: None,
        };
        if policy.is_none() {
            builder.fail(error(
                "system.policy",
                "no dispatcher for this policy",
                "use fixed-priority or edf",
            ));
        }
        if let Some(server) = system.servers().first() {
            let at = format!("server.{}.kind", server.name);
            builder.fail(error(
                at,
                "there is no dispatcher for servers yet",
                "remove the server and its tasks",
            ));
        }
        for processor in 0..cpus.len() {
            let spec = NodeSpec { policy: policy.unwrap_or_default(), ..NodeSpec::default() };
            builder.nodes.push(Node { parent: None, processor: processor as u16, spec });
        }
        for task in system.tasks() {
            match cpus.iter().position(|&cpu| cpu == task.cpu) {
                Some(index) => builder.places.push(index),
                None => {
                    let at = format!("task.{}.cpu", task.name);
                    builder.fail(error(at, "no such processor among the first 65,535", "use a lower number"));
                    builder.places.push(0);
                }
            }
        }
        builder
    }

    fn fail(&mut self, error: ModelError) {
        self.error.get_or_insert(error);
    }

    /// Changes the root dispatcher of a processor; its priority is not looked at.
    #[must_use]
    pub fn root(mut self, processor: ProcessorIndex, spec: NodeSpec) -> MachineBuilder<'a> {
        match self.nodes.get_mut(usize::from(processor.0)) {
            Some(node) if node.parent.is_none() => node.spec = spec,
            _ => self.fail(error("tree", "no such processor", "use a place in platform.cpus")),
        }
        self
    }

    /// Adds an inner node below `parent`, a root or an inner node, and returns its id.
    pub fn node(&mut self, parent: EntityId, spec: NodeSpec) -> EntityId {
        let index = (parent.0 as usize).checked_sub(self.places.len()).filter(|&i| i < self.nodes.len());
        let above = index.unwrap_or_else(|| {
            self.fail(error("tree", "a node's parent is no dispatcher", "use a root or an inner node"));
            0
        });
        let processor = self.nodes.get(above).map_or(0, |node| node.processor);
        self.nodes.push(Node { parent: Some(above), processor, spec });
        EntityId((self.places.len() + self.nodes.len() - 1) as u32)
    }

    /// The root dispatcher of a processor.
    #[must_use]
    pub fn root_of(&self, processor: ProcessorIndex) -> EntityId {
        EntityId((self.places.len() + usize::from(processor.0)) as u32)
    }

    /// Puts a task below a node, which must be on the task's processor.
    pub fn place(&mut self, task: TaskId, node: EntityId) {
        let index = (node.0 as usize).checked_sub(self.places.len()).filter(|&i| i < self.nodes.len());
        match (index, self.places.get(task.index())) {
            (Some(index), Some(&old)) if self.nodes[index].processor == self.nodes[old].processor => {
                self.places[task.index()] = index;
            }
            _ => {
                let reason = "a task is placed below no dispatcher of its processor";
                self.fail(error("tree", reason, "use a node of the task's processor"));
            }
        }
    }

    /// Adds a mode and returns its number; mode 0 is the system itself.
    pub fn mode(&mut self, mode: ModeSpec) -> u32 {
        if mode.tasks.len() != self.places.len() {
            self.fail(error("mode", "a mode says nothing about some task", "give one entry a task"));
        }
        self.modes.push(mode);
        self.modes.len() as u32
    }

    /// Says which clock the times of a processor's events are read from; 0 where not said.
    #[must_use]
    pub fn clock(mut self, processor: ProcessorIndex, clock: ClockDomain) -> MachineBuilder<'a> {
        match self.clocks.get_mut(usize::from(processor.0)) {
            Some(place) => *place = clock,
            None => self.fail(error("tree", "no such processor", "use a place in platform.cpus")),
        }
        self
    }

    /// Builds the machine.
    ///
    /// # Errors
    /// The first thing that was wrong in the calls before, or an entity below a fixed-priority dispatcher that
    /// has no priority.
    pub fn build(self) -> Result<Machine, ModelError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let modes =
            (0..=self.modes.len()).map(|mode| self.build_mode(mode)).collect::<Result<Vec<_>, _>>()?;
        let mut nodes: Vec<Dispatcher> = Vec::with_capacity(self.nodes.len());
        let mut supplied = Vec::new();
        let mut supply_of = vec![NONE; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            let parent = node.parent.map_or(NONE, |parent| parent as u32);
            let mut dispatcher = Dispatcher::new(node.spec.policy, parent, node.processor);
            dispatcher.prepare(&modes[0].layouts[index]);
            nodes.push(dispatcher);
            if let Some(supply) = node.spec.supply.clone() {
                supply_of[index] = supplied.len() as u32;
                let node = index as u32;
                supplied.push(SuppliedNode { node, supply, backlogged: false, timer: None, generation: 0 });
            }
        }
        let mut flat = vec![true; self.clocks.len()];
        for node in self.nodes.iter().filter(|node| node.parent.is_some() || node.spec.supply.is_some()) {
            flat[usize::from(node.processor)] = false;
        }
        let processors = self.clocks.iter().zip(&flat).enumerate();
        let processors = processors.map(|(index, (&clock, &flat))| Processor::new(index as u32, flat, clock));
        let mut machine = Machine {
            leaves: self.leaves(),
            nodes,
            supplied,
            supply_of,
            processors: processors.collect(),
            modes,
            mode: 0,
        };
        machine.refresh_positions();
        Ok(machine)
    }

    fn leaves(&self) -> Vec<Leaf> {
        let leaf = |(index, task): (usize, &horolog_model::Task)| {
            let successors = task.segment_graph().map_or_else(Box::default, |graph| {
                let next =
                    |segment: &horolog_model::Segment| segment.next.iter().map(|&n| n as u32).collect();
                graph.segments.iter().map(next).collect()
            });
            Leaf {
                node: self.places[index] as u32,
                position: 0,
                processor: self.nodes[self.places[index]].processor,
                preemptible: matches!(task.preemption, Preemption::Preemptive),
                active: true,
                blocked: false,
                jobs: 0,
                segment: 0,
                successors,
                backlog: VecDeque::with_capacity(4),
            }
        };
        self.system.tasks().iter().enumerate().map(leaf).collect()
    }

    fn build_mode(&self, mode: usize) -> Result<Mode, ModelError> {
        let spec = mode.checked_sub(1).map(|index| &self.modes[index]);
        let active =
            (0..self.places.len()).map(|task| spec.is_none_or(|spec| spec.tasks[task].active)).collect();
        let children = self.children();
        let layouts = children.iter().enumerate().map(|(node, children)| self.layout(node, children, spec));
        Ok(Mode { active, layouts: layouts.collect::<Result<Vec<_>, _>>()? })
    }

    /// The entities below each node, tasks first. One pass: there may be 65,535 processors.
    fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (task, &place) in self.places.iter().enumerate() {
            children[place].push(task);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent].push(self.places.len() + index);
            }
        }
        children
    }

    /// The children of a node in order of importance: by priority, then by entity.
    fn layout(&self, node: usize, entities: &[usize], mode: Option<&ModeSpec>) -> Result<Layout, ModelError> {
        let mut children: Vec<(i64, usize)> = Vec::new();
        for &entity in entities {
            let level = match self.nodes[node].spec.policy {
                NodePolicy::Edf => 0,
                NodePolicy::FixedPriority => self.priority(entity, mode)?.number(),
            };
            children.push((level, entity));
        }
        children.sort_by_key(|&(level, entity)| (std::cmp::Reverse(level), entity));
        let end_of =
            |level: i64| children.iter().rposition(|&(other, _)| other == level).map_or(0, |last| last + 1);
        Ok(Layout {
            level_end: children.iter().map(|&(level, _)| end_of(level) as u32).collect(),
            children: children.iter().map(|&(_, entity)| entity as u32).collect(),
        })
    }

    fn priority(&self, entity: usize, mode: Option<&ModeSpec>) -> Result<Priority, ModelError> {
        if let Some(task) = self.system.tasks().get(entity) {
            let priority = mode.and_then(|mode| mode.tasks[entity].priority).or(task.priority);
            return priority.ok_or_else(|| {
                let at = format!("task.{}.priority", task.name);
                error(
                    at,
                    "no priority under a fixed-priority dispatcher",
                    "give one, or resolve the assignment",
                )
            });
        }
        self.nodes[entity - self.places.len()].spec.priority.ok_or_else(|| {
            error("tree", "an inner node below a fixed-priority dispatcher has no priority", "give one")
        })
    }
}
