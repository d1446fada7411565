//! What follows a mode change and is told once: the first dispatch of each node in the new mode, and the end of the mode before.
//!
//! Left-over jobs belong to the mode before: it ends when the last of them is gone, and what they do is no dispatch in the new
//! one. While something is still to be told, the driver looks at every instant; at other times nobody asks here.

use crate::machine::dispatcher::NONE;
use crate::{Machine, Note, ProcessorIndex};
use horolog_model::{ServerId, TaskId};

/// What is still to be told of the last change.
#[derive(Clone, Debug)]
pub(crate) struct ModeNotes {
    mode: u32,
    before: u32,
    /// Whether the mode before has not ended.
    is_ending: bool,
    /// The tasks with jobs that are left over.
    left: Vec<TaskId>,
    /// The tasks that have not been dispatched in the mode, and the servers below which nobody was.
    tasks: Box<[bool]>,
    servers: Box<[bool]>,
    /// How many these are.
    to_come: usize,
    /// The server of each node, or [`NONE`].
    server_of: Box<[u32]>,
    /// The tasks of the driver's processors.
    is_here: Box<[bool]>,
}

impl ModeNotes {
    /// Of a machine with several modes, for the tasks of some processors; `None` where there is one mode alone.
    pub(crate) fn of(machine: &Machine, processors: &[ProcessorIndex]) -> Option<Box<ModeNotes>> {
        let mut server_of = vec![NONE; machine.nodes.len()];
        for (server, &node) in machine.servers.iter().enumerate() {
            server_of[node as usize] = server as u32;
        }
        let is_here =
            |leaf: &crate::machine::leaf::Leaf| processors.iter().any(|here| here.0 == leaf.processor);
        (machine.modes.len() > 1).then(|| {
            Box::new(ModeNotes {
                mode: 0,
                before: 0,
                is_ending: false,
                left: Vec::with_capacity(machine.leaves.len()),
                tasks: vec![false; machine.leaves.len()].into(),
                servers: vec![false; machine.servers.len()].into(),
                to_come: 0,
                server_of: server_of.into(),
                is_here: machine.leaves.iter().map(is_here).collect(),
            })
        })
    }

    /// Whether something is still to be told.
    pub(crate) fn is_open(&self) -> bool {
        self.is_ending || self.to_come > 0
    }

    /// The mode has changed; how many jobs are left over. What was still to be told of the change before is told no more.
    pub(crate) fn begin(&mut self, machine: &Machine, before: u32) -> u32 {
        (self.mode, self.before, self.is_ending) = (machine.mode(), before, true);
        self.left.clear();
        self.servers.fill(false);
        let mut left_over = 0;
        for (index, spec) in machine.modes[self.mode as usize].tasks.iter().enumerate() {
            let task = TaskId(index as u32);
            let here = self.is_here[index];
            let left = if here { machine.left_over(task) } else { 0 };
            left_over += left;
            if left > 0 {
                self.left.push(task);
            }
            self.tasks[index] = here && spec.active;
            if self.tasks[index] {
                let Self { servers, server_of, .. } = &mut *self;
                servers_above(machine, server_of, task).for_each(|server| servers[server] = true);
            }
        }
        let open = |flags: &[bool]| flags.iter().filter(|&&flag| flag).count();
        self.to_come = open(&self.tasks) + open(&self.servers);
        left_over
    }

    /// Whether the mode before has ended since this was asked last.
    pub(crate) fn end(&mut self, machine: &Machine) -> Option<Note> {
        if !self.is_ending {
            return None;
        }
        self.left.retain(|&task| machine.left_over(task) > 0);
        self.is_ending = !self.left.is_empty();
        (!self.is_ending).then_some(Note::ModeEnded { mode: self.before, next: self.mode })
    }

    /// A task has the processor after a choice.
    pub(crate) fn dispatched(&mut self, machine: &Machine, task: TaskId, mut tell: impl FnMut(Note)) {
        if self.to_come == 0 || machine.left_over(task) > 0 {
            return;
        }
        let mode = self.mode;
        if std::mem::take(&mut self.tasks[task.index()]) {
            self.to_come -= 1;
            tell(Note::TaskDispatched { task, mode });
        }
        for server in servers_above(machine, &self.server_of, task) {
            if std::mem::take(&mut self.servers[server]) {
                self.to_come -= 1;
                tell(Note::ServerDispatched { server: ServerId(server as u32), mode });
            }
        }
    }
}

/// The servers and schedulers above a task, from below.
fn servers_above<'a>(
    machine: &'a Machine,
    server_of: &'a [u32],
    task: TaskId,
) -> impl Iterator<Item = usize> + 'a {
    let first = machine.leaves[task.index()].node;
    let above = std::iter::successors(Some(first), |&node| {
        Some(machine.nodes[node as usize].parent).filter(|&parent| parent != NONE)
    });
    above.map(|node| server_of[node as usize]).filter(|&server| server != NONE).map(|server| server as usize)
}
