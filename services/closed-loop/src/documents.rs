//! Results with their verdicts as JSON: what `--format json` prints and what Python holds.

use crate::verdict::{Asked, Closing, Ended, Evidence, Question};
use crate::{CostSource, Proof};
use horolog_analysis::{Analysis, Derived};
use horolog_model::System;
use horolog_verify::Verification;
use serde::Serialize;

/// A result with its verdict, as JSON.
#[derive(Serialize)]
pub struct Closed<'a, T> {
    #[serde(flatten)]
    /// What was found.
    pub result: &'a T,
    /// What it comes to.
    pub closing: &'a Closing,
    /// The verdicts of the attempts before, where there were any.
    #[serde(skip_serializing_if = "<[Closing]>::is_empty")]
    pub attempts: &'a [Closing],
}

/// The analysis in JSON, beside the costs that it was made with and the one without.
#[derive(Serialize)]
pub struct AnalysisDocument<'a> {
    #[serde(flatten)]
    analysis: &'a Analysis,
    costs: &'a CostSource,
    without_costs: Option<&'a Analysis>,
    /// What the file leaves to an assignment; absent where it gives all of them.
    #[serde(skip_serializing_if = "<[Derived]>::is_empty")]
    priorities: &'a [Derived],
}

impl AnalysisDocument<'_> {
    /// What is printed of a proof.
    #[must_use]
    pub fn of<'a>(proof: &'a Proof, priorities: &'a [Derived]) -> AnalysisDocument<'a> {
        AnalysisDocument {
            analysis: &proof.analysis,
            costs: &proof.costs,
            without_costs: proof.without_costs.as_deref(),
            priorities,
        }
    }
}

/// The verdict of a proof alone, without a run.
#[must_use]
pub fn closing_of_proof(system: &System, proof: &Proof) -> Closing {
    let evidence = Evidence {
        system,
        proof: Some(&proof.analysis),
        costs: &proof.costs.in_words(),
        without_costs: proof.without_costs.as_deref(),
        simulated: None,
        verified: None,
        outcome: None,
        ended: Ended::NotRun,
        report: None,
    };
    Closing::of(&evidence, &Asked::of(&[Question::Proof]))
}

/// The verdict of a verified trace.
#[must_use]
pub fn closing_of_verification(proof: &Proof, found: &Verification, asked: &Asked) -> Closing {
    let evidence = Evidence {
        system: &proof.system,
        proof: Some(&proof.analysis),
        costs: &proof.costs.in_words(),
        without_costs: proof.without_costs.as_deref(),
        simulated: None,
        verified: Some(found),
        outcome: None,
        ended: Ended::Whole,
        report: None,
    };
    Closing::of(&evidence, asked)
}
