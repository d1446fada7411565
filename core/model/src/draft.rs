//! The unchecked parts of a system, for building one in code.

use crate::{
    Cluster, Device, Interference, Interrupt, Link, Mode, Platform, Policy, PriorityAssignment, Request,
    Resource, Server, SpinPriority, Task,
};

/// The parts of a system before [`crate::System::new`] has checked them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Draft {
    /// The system's name.
    pub name: String,
    /// The scheduling policy.
    pub policy: Policy,
    /// What the system does and the parts below do not say; with any of it nothing is proved.
    pub unmodelled: Vec<String>,
    /// Where priorities come from (fixed priority only).
    pub priorities: PriorityAssignment,
    /// Processors and costs.
    pub platform: Platform,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The servers of soft tasks, and schedulers.
    pub servers: Vec<Server>,
    /// Roots over several processors.
    pub clusters: Vec<Cluster>,
    /// Modes beside the base mode, which is what everything else says.
    pub modes: Vec<Mode>,
    /// What jobs share by mutual exclusion.
    pub resources: Vec<Resource>,
    /// At which priorities jobs spin for resources, of processors where it is not the highest.
    pub spin_priorities: Vec<SpinPriority>,
    /// Values that tasks hand to others.
    pub links: Vec<Link>,
    /// Interrupts, whose handlers execute above all tasks.
    pub interrupts: Vec<Interrupt>,
    /// Devices, whose events are served.
    pub devices: Vec<Device>,
    /// What tasks ask of devices.
    pub requests: Vec<Request>,
    /// Loads above all tasks.
    pub interferences: Vec<Interference>,
}
