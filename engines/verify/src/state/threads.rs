//! What each task of the companion is.

use horolog_model::{Companion, DeviceService, PriorityRule, Role, System};

/// What a task of the companion is to verification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Thread {
    /// Devices wake it, so that its arrivals follow no pattern.
    pub(crate) is_driver: bool,
    /// The softirqs' background thread.
    pub(crate) is_background: bool,
    /// Users lend it its priority, so that its place in the order is not known.
    pub(crate) is_lent: bool,
}

/// What each task of the companion is.
pub(crate) fn threads(system: &System, companion: &Companion) -> Vec<Thread> {
    let thread = |role: &Role| match role {
        Role::Task => Thread::default(),
        Role::Background => Thread { is_driver: true, is_background: true, is_lent: false },
        Role::Handler(device) => {
            let service = &system.devices()[*device].service;
            let is_lent = matches!(service, DeviceService::Thread { rule: PriorityRule::Waiting, .. });
            Thread { is_driver: true, is_background: false, is_lent }
        }
    };
    companion.roles.iter().map(thread).collect()
}
