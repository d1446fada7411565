//! What an inner node of the tree is to be.

use crate::{Level, NodePolicy, Supply};
use horolog_model::Priority;

/// An inner node to be.
#[derive(Clone, Debug, Default)]
pub struct NodeSpec {
    /// How it orders its children.
    pub policy: NodePolicy,
    /// Its priority below a fixed-priority dispatcher: [`crate::Place::High`].
    pub priority: Option<Priority>,
    /// Further places below a fixed-priority dispatcher: [`crate::Place::Low`]. Without a priority the first of them is
    /// [`crate::Place::High`].
    pub lower_places: Vec<Level>,
    /// Where it stands and when it may run; `None`: at its first place, always.
    pub supply: Option<Box<dyn Supply>>,
}

impl NodeSpec {
    pub(crate) fn places(&self) -> impl Iterator<Item = Level> + '_ {
        self.priority.map(Level::at).into_iter().chain(self.lower_places.iter().copied())
    }
}
