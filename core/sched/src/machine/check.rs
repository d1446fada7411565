//! Everything that is cached for speed, computed anew: ready bits, heads, answers of supplies, the earliest timer.

use crate::machine::Processor;
use crate::machine::dispatcher::{Dispatcher, NONE};
use crate::machine::leaf::Standing;
use crate::{Machine, Place};
use horolog_model::TaskId;

impl Machine {
    /// Recomputes naively whatever the machine keeps to be fast, and compares. For tests, after every event: it allocates and looks
    /// at everything.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn check(&self) -> Result<(), String> {
        for task in 0..self.leaves.len() {
            self.check_leaf(task)?;
        }
        for node in 0..self.nodes.len() {
            self.check_node(node)?;
        }
        for supplied in &self.supplied {
            supplied.check().map_err(|what| format!("node {}: {what}", supplied.node))?;
            let node = &self.nodes[supplied.node as usize];
            let processor = &self.processors[usize::from(node.processor)];
            let is_kept = crate::machine::tree::keeps(processor, supplied.node, &self.leaves, &self.nodes);
            let some_ready = node.could_run() || is_kept;
            if supplied.is_backlogged() != some_ready {
                return Err(format!(
                    "node {}: its supply was told of other work than there is",
                    supplied.node
                ));
            }
        }
        self.check_locks()?;
        for index in 0..self.processors.len() {
            self.check_processor(index).map_err(|what| format!("processor {index}: {what}"))?;
        }
        Ok(())
    }

    fn check_leaf(&self, task: usize) -> Result<(), String> {
        let leaf = &self.leaves[task];
        if leaf.jobs as usize != leaf.backlog.len() + usize::from(leaf.jobs > 0) {
            return Err(format!("task {task}: {} jobs, {} of them behind", leaf.jobs, leaf.backlog.len()));
        }
        if (leaf.blocked || leaf.begun || leaf.standing != Standing::OWN) && leaf.jobs == 0 {
            return Err(format!("task {task}: it has no job that could have begun"));
        }
        if leaf.standing.count() > leaf.jobs {
            return Err(format!("task {task}: more jobs are left over than there are"));
        }
        if leaf.position != leaf.positions[usize::from(leaf.is_low)] {
            return Err(format!("task {task}: it stands at a place that is not its own"));
        }
        if !leaf.is_limited && self.allowance(TaskId(task as u32)).is_some() {
            return Err(format!("task {task}: a budget limits it that is not looked at"));
        }
        Ok(())
    }

    /// Whether what stands at a position of a dispatcher is ready there.
    fn is_ready(&self, node: &Dispatcher, position: usize) -> bool {
        let entity = node.layout.children[position] as usize;
        if let Some(leaf) = self.leaves.get(entity) {
            return leaf.jobs > 0
                && !leaf.blocked
                && !leaf.standing.is_suspended()
                && leaf.position as usize == position;
        }
        let child = entity - self.leaves.len();
        let (number, child) = (child as u32, &self.nodes[child]);
        let supplied = self.supplied.get(self.supply_of[number as usize] as usize);
        let place = match (supplied, self.watch_of_soft(number)) {
            (Some(supplied), _) => supplied.standing.place,
            (None, Some(watch)) => self.watches[watch].place,
            (None, None) => Place::High,
        };
        let place = if self.goes_on_in_debt(number) { Place::High } else { place };
        let stands = match place {
            Place::High => 0,
            Place::Low(low) => usize::from(low) + 1,
            Place::Out => return false,
        };
        let some_ready = match self.table_of(number).map(crate::machine::table::Table::current) {
            Some(current) => current != NONE && self.is_ready(child, current as usize),
            None => (0..child.layout.children.len()).any(|below| self.is_ready(child, below)),
        };
        let processor = &self.processors[usize::from(child.processor)];
        let is_kept = crate::machine::tree::keeps(processor, number, &self.leaves, &self.nodes);
        (some_ready || is_kept) && child.positions[stands] as usize == position
    }

    fn check_node(&self, index: usize) -> Result<(), String> {
        let node = &self.nodes[index];
        let children = 0..node.layout.children.len();
        for position in children.clone() {
            if node.ready.contains(position as u32) != self.is_ready(node, position) {
                return Err(format!("node {index}: the ready bit at {position} is wrong"));
            }
        }
        // The choice without a search structure: the most important level, then the least key, then the first place.
        let current = self.table_of(index as u32).map(crate::machine::table::Table::current);
        let best = children
            .filter(|&position| current.is_none_or(|current| current as usize == position))
            .filter(|&position| self.is_ready(node, position))
            .min_by_key(|&position| (node.layout.level_end[position], node.keys[position], position));
        if node.best().map(|best| best as usize) != best {
            return Err(format!(
                "node {index}: {:?} is not the best of its children, {best:?} is",
                node.best()
            ));
        }
        let is_shallow = self.processors[usize::from(node.processor)].is_shallow;
        if let Some(best) = best.filter(|_| is_shallow && node.parent != NONE)
            && node.head != node.layout.children[best]
        {
            return Err(format!("node {index}: its head is not its first task"));
        }
        Ok(())
    }

    fn check_processor(&self, index: usize) -> Result<(), String> {
        let processor = &self.processors[index];
        if processor.is_shallow {
            self.check_heads(processor)?;
        }
        if let Some(leaf) = self.leaves.get(processor.running as usize) {
            let on = if processor.cluster == NONE { leaf.processor } else { leaf.on };
            if leaf.jobs == 0 || leaf.blocked || !leaf.begun || usize::from(on) != index {
                return Err(format!("{:?} cannot run", TaskId(processor.running)));
            }
            if processor.is_shallow && processor.running_position != self.position_below_root(processor) {
                return Err("the running job stands elsewhere".to_owned());
            }
        }
        if !processor.wall_is_stale {
            let supplies = self.supplied[processor.supplies.clone()].iter();
            let timers = supplies.filter_map(|supplied| supplied.standing.timer);
            let watch = self.watches.get(processor.watch as usize);
            let timers = timers.chain(self.table_timer(index).map(|timer| timer.at));
            let earliest = timers.chain(watch.and_then(|watch| watch.service.timer())).min();
            if processor.wall.map(|timer| timer.at) != earliest {
                return Err(format!("the next timer is {:?}, and {earliest:?} comes first", processor.wall));
            }
        }
        Ok(())
    }

    /// Where the running job stands below the root of a shallow tree; [`NONE`]: its server stands nowhere.
    fn position_below_root(&self, processor: &Processor) -> u32 {
        let leaf = &self.leaves[processor.running as usize];
        if leaf.standing.is_suspended() {
            return NONE;
        }
        if leaf.node == processor.root {
            return leaf.position;
        }
        let position = self.nodes[leaf.node as usize].position;
        let stands = self.nodes[processor.root as usize].ready.contains(position);
        if stands { position } else { NONE }
    }

    fn check_heads(&self, processor: &Processor) -> Result<(), String> {
        let root = &self.nodes[processor.root as usize];
        for (position, &head) in root.heads.iter().enumerate() {
            let entity = root.layout.children[position];
            let expected = match (entity as usize).checked_sub(self.leaves.len()) {
                None => entity,
                Some(server) if root.ready.contains(position as u32) => self.nodes[server].head,
                Some(_) => continue,
            };
            if head != expected {
                return Err(format!("the head at {position} is {head} instead of {expected}"));
            }
        }
        Ok(())
    }
}
