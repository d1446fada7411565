//! The rows of servers and devices.

use super::word;
use crate::Proof;
use horolog_model::DeviceService;
use horolog_report as page;

/// Servers and schedulers, in the order of the file.
pub(crate) fn servers(proof: &Proof) -> Vec<page::ServerRow> {
    let system = &proof.system;
    let row = |server: &horolog_model::Server| {
        let capacity = server.kind.capacity();
        let verdict = proof.analysis.servers.iter().find(|one| one.name == server.name);
        let below = system.servers().iter().filter(|one| one.parent.as_ref() == Some(&server.name));
        let devices = system.devices().iter().filter(
            |one| matches!(&one.service, DeviceService::Server { server: name } if *name == server.name),
        );
        let serves =
            server.tasks.iter().chain(below.map(|one| &one.name)).chain(devices.map(|one| &one.name));
        page::ServerRow {
            name: server.name.clone(),
            kind: server.kind_word().to_owned(),
            cpu: server.cpu.0,
            budget_ns: capacity.map(|capacity| capacity.budget),
            period_ns: capacity.map(|capacity| capacity.period),
            serves: serves.cloned().collect(),
            guaranteed: verdict.and_then(|verdict| verdict.guaranteed),
        }
    };
    system.servers().iter().map(row).collect()
}

/// Devices, in the order of the file.
pub(crate) fn devices(proof: &Proof) -> Vec<page::DeviceRow> {
    let row = |device: &horolog_model::Device| {
        let verdict = proof.analysis.devices.iter().find(|one| one.name == device.name);
        let requests = proof.system.requests().iter().filter(|request| request.device == device.name);
        page::DeviceRow {
            name: device.name.clone(),
            service: device.service.word().to_owned(),
            cpu: device.cpu.0,
            requests: requests.map(|request| request.name.clone()).collect(),
            deadline_ns: device.deadline,
            verdict: verdict.map(|verdict| word(verdict.verdict)).unwrap_or_default(),
            bound_ns: verdict.and_then(|verdict| verdict.response),
        }
    };
    proof.system.devices().iter().map(row).collect()
}
