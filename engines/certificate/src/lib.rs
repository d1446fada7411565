//! Certificates of verdicts and their independent checker.
//!
//! An analysis searches; a checker only evaluates. For each task a [`Certificate`] lists the numbers that prove its
//! verdict: how long the busy period lasts, every job in it that could be the worst, and the chain of iterates that
//! leads to each of its times. [`check`] reads the system itself, evaluates the demand at each of these numbers, and
//! accepts only if every single one is what it must be. It shares no code with the solvers (a test of the
//! workspace's crate graph keeps it so), calculates with 128-bit and unbounded integers, and searches for nothing.
//!
//! What is proved and what is trusted is written in `docs/concepts/certificates.md`.

mod edf;
mod fixed_priority;
mod flaw;
mod load;
mod overload;
mod proof;

pub use flaw::Flaw;
pub use proof::{
    Certificate, Claim, EdfHorizonRule, EdfMissProof, EdfWindow, EdfWindowsProof, FixedPriorityProof,
    Horizon, JobProof, Proof, Proven,
};

use horolog_model::System;

/// What a certificate without a flaw says of the whole system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Conclusion {
    /// Tasks that are proved to meet their deadlines, or to have a bound where they have none, in the order of the file.
    pub meet: Vec<String>,
    /// Tasks that are proved to miss.
    pub miss: Vec<String>,
    /// Tasks with a deadline of which the certificate claims nothing: of them nothing is decided.
    pub undecided: Vec<String>,
}

impl Conclusion {
    /// Whether every task with a deadline is proved to meet it. An empty certificate says so only of a system in which no
    /// task has a deadline.
    #[must_use]
    pub fn proves_all_deadlines(&self) -> bool {
        self.miss.is_empty() && self.undecided.is_empty()
    }

    fn of(system: &System, certificate: &Certificate) -> Conclusion {
        let mut conclusion = Conclusion::default();
        for task in system.tasks() {
            let list = match certificate.claims.iter().find(|claim| claim.task == task.name) {
                Some(claim) if claim.verdict == Proven::Misses => &mut conclusion.miss,
                Some(_) => &mut conclusion.meet,
                None if task.deadline.is_some() => &mut conclusion.undecided,
                None => continue,
            };
            list.push(task.name.clone());
        }
        conclusion
    }
}

/// Whether every claim of `certificate` follows from `system`, whose priorities must be resolved, and what they say of the
/// whole system: a certificate may have no claim for some tasks, and an empty one has no flaw.
///
/// # Errors
/// The first flaw: which task, which number, what it is and what it should be.
pub fn check(system: &System, certificate: &Certificate) -> Result<Conclusion, Flaw> {
    if certificate.schema != Certificate::SCHEMA {
        return Err(Flaw::new("", format!("schema `{}` is not {}", certificate.schema, Certificate::SCHEMA)));
    }
    if certificate.system != system.name() {
        let words = format!("it is about a system named `{}`, not `{}`", certificate.system, system.name());
        return Err(Flaw::new("", words));
    }
    if !system.unmodelled().is_empty() {
        return Err(Flaw::new("", "system.unmodelled: the file leaves something out, so nothing is proved"));
    }
    if let Some(at) = system.first_beyond_servers() {
        let words = format!("{at}: this checker knows no trees of schedulers, no clusters and no modes");
        return Err(Flaw::new("", words));
    }
    if let Some(at) = system.first_held() {
        return Err(Flaw::new("", format!("{at}: this checker knows no sections")));
    }
    for (place, claim) in certificate.claims.iter().enumerate() {
        if certificate.claims[..place].iter().any(|before| before.task == claim.task) {
            return Err(Flaw::new(&claim.task, "it has two claims about this task, and one proof is enough"));
        }
        let task = system
            .tasks()
            .iter()
            .find(|t| t.name == claim.task)
            .ok_or_else(|| Flaw::new(&claim.task, "the system has no such task"))?;
        if let Some((_, server)) = system.servers_on(task.cpu).next() {
            let words =
                format!("the server `{}` is on its processor; this checker knows no servers", server.name);
            return Err(Flaw::new(&claim.task, words));
        }
        if let Some(at) = system.first_driver() {
            return Err(Flaw::new(&claim.task, format!("{at}: this checker knows no drivers")));
        }
        match &claim.proof {
            Proof::FixedPriority(proof) => fixed_priority::check(system, task, claim.verdict, proof)?,
            Proof::EdfWindows(proof) => edf::check_windows(system, task, claim.verdict, proof)?,
            Proof::EdfMiss(proof) => edf::check_miss(system, task, claim.verdict, proof)?,
            Proof::Overload { tasks } => overload::check(system, task, claim.verdict, tasks)?,
        }
    }
    Ok(Conclusion::of(system, certificate))
}
