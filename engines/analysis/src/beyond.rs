//! Systems that no test here knows: trees of schedulers, clusters, modes, resources, devices with several slots.
//!
//! The gate stands where every test begins, at the model of a processor ([`crate::cpu_model::CpuModel::new`]), so that a new
//! test cannot forget it. What asks for an answer about a whole system says `unknown` instead of failing.

use crate::error::AnalysisError;
use crate::result::{Analysis, Schedulable, TaskVerdict, TestResult, Verdict};
use horolog_model::System;

/// The name that stands for a test where there is none.
pub(crate) const NO_TEST: &str = "none";

/// Why there is no answer; `None` where the tests know everything that the system says.
pub(crate) fn why(system: &System) -> Option<String> {
    let at = system.first_beyond_servers()?;
    Some(format!(
        "no test knows of `{at}`: trees of schedulers, clusters, modes, resources and devices with several slots can be simulated \
         and run, but not analysed"
    ))
}

/// Refuses what no test knows.
pub(crate) fn refuse(system: &System) -> Result<(), AnalysisError> {
    match (system.first_beyond_servers(), why(system)) {
        (Some(at), Some(why)) => {
            Err(AnalysisError::outside(at, why, "simulate the file, run it and verify the trace"))
        }
        _ => Ok(()),
    }
}

/// The answer about such a system: nothing is proven of any task, and no number is given.
pub(crate) fn unknown(system: &System, why: String) -> Analysis {
    let task = |task: &horolog_model::Task| TaskVerdict {
        name: task.name.clone(),
        cpu: task.cpu,
        served_by: None,
        verdict: Verdict::Unknown,
        response: None,
        deadline: task.deadline,
        test: NO_TEST,
        exact: false,
        source: "",
        blocking: None,
        allowed_segment: None,
        tests: Vec::<TestResult>::new(),
        witness: None,
        slack: None,
        remedies: Vec::new(),
    };
    let served = |id| system.server_of(id).map(|server| system.server(server).name.clone());
    Analysis {
        schema: "horolog.analysis/1",
        system: system.name().to_owned(),
        utilisation: None,
        schedulable: Schedulable::Unknown,
        tasks: system
            .task_ids()
            .map(|id| TaskVerdict { served_by: served(id), ..task(system.task(id)) })
            .collect(),
        servers: Vec::new(),
        devices: Vec::new(),
        processors: Vec::new(),
        notes: vec![why],
    }
}
