//! The verdict in a sentence: what was proved, and whether the run kept to it.

use serde::Serialize;

/// What the analysis says about the whole system (`schedulable` of `horolog.analysis/1`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// Every deadline is proved to hold.
    Proved,
    /// Some deadline is proved not to hold.
    NotProved,
    /// No test decides, or none was run.
    #[default]
    Unknown,
}

/// What `verify` says about the measured run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunVerdict {
    /// The run kept to the model and to every bound.
    Held,
    /// A task or the machine file broke an assumption of the model.
    ModelViolated,
    /// The assumptions held and a bound did not.
    BoundViolated,
    /// The run kept to every bound, and the machine did things that the model does not have.
    Disturbed,
    /// A deadline was missed, and the model was kept.
    Missed,
    /// The trace cannot decide (records were lost, or nothing finished).
    Undecided,
}

/// The verdict of the report.
#[derive(Clone, Debug, PartialEq, Default, Serialize)]
pub struct Verdict {
    /// What was proved.
    pub proof: Proof,
    /// How the measured run went; `None` where there was none.
    pub run: Option<RunVerdict>,
    /// Whether the run went under normal scheduling (`--best-effort`): said on every output.
    pub best_effort: bool,
    /// The sentence in plain words; empty: [`Verdict::plain_words`] is shown.
    pub sentence: String,
    /// What qualifies it, one sentence each ("412 records were lost", "`[platform]` costs were measured").
    pub qualifiers: Vec<String>,
}

/// How far measured responses went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Reached {
    /// None went above its bound.
    #[default]
    WithinBounds,
    /// Some went above its bound, none above its deadline.
    AboveABound,
    /// Some went above its deadline.
    AboveADeadline,
}

impl Verdict {
    /// The verdict in a sentence; `reached` is what the measured responses came to.
    #[must_use]
    pub fn plain_words(&self, reached: Reached) -> String {
        let (proof, hopeful) = match self.proof {
            Proof::Proved => ("Every deadline is proved to hold", true),
            Proof::NotProved => ("Not every deadline can hold", false),
            Proof::Unknown => ("No test decides whether every deadline holds", false),
        };
        let Some(run) = self.run else {
            return format!("{proof}. Nothing was run on this machine.");
        };
        let good = matches!(
            (run, reached),
            (RunVerdict::Held | RunVerdict::Disturbed, Reached::WithinBounds) | (RunVerdict::Held, _)
        );
        let run = match (run, reached) {
            (RunVerdict::Held, _) => "the run on this machine kept to the model and to every bound",
            (RunVerdict::ModelViolated, _) => "the run on this machine broke an assumption of the model",
            (RunVerdict::BoundViolated, _) => {
                "the run on this machine exceeded a bound although the model held: a fault of horolog"
            }
            (RunVerdict::Disturbed, Reached::WithinBounds) => {
                "the run on this machine kept to every bound, although the machine was disturbed"
            }
            (RunVerdict::Disturbed, Reached::AboveABound) => {
                "the machine was disturbed from outside the model, and responses went above their bounds"
            }
            (RunVerdict::Disturbed, Reached::AboveADeadline) => {
                "the machine was disturbed from outside the model, and deadlines were missed"
            }
            (RunVerdict::Missed, _) => "the run on this machine missed deadlines",
            (RunVerdict::Undecided, _) => "the record of the run on this machine cannot decide",
        };
        let joint = if hopeful == good { ", and" } else { ", but" };
        format!("{proof}{joint} {run}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_both_halves() {
        let say = |proof, run, reached| Verdict { proof, run, ..Verdict::default() }.plain_words(reached);
        assert_eq!(
            say(Proof::Proved, Some(RunVerdict::Held), Reached::WithinBounds),
            "Every deadline is proved to hold, and the run on this machine kept to the model and to every bound."
        );
        assert_eq!(
            say(Proof::Proved, Some(RunVerdict::ModelViolated), Reached::AboveABound),
            "Every deadline is proved to hold, but the run on this machine broke an assumption of the model."
        );
        assert_eq!(
            say(Proof::NotProved, Some(RunVerdict::Held), Reached::WithinBounds),
            "Not every deadline can hold, but the run on this machine kept to the model and to every bound."
        );
        assert_eq!(
            say(Proof::Proved, Some(RunVerdict::Disturbed), Reached::AboveADeadline),
            "Every deadline is proved to hold, but the machine was disturbed from outside the model, \
             and deadlines were missed."
        );
        assert!(say(Proof::Unknown, None, Reached::default()).ends_with("Nothing was run on this machine."));
    }

    #[test]
    fn claims_to_have_kept_every_bound_only_where_it_did() {
        for proof in [Proof::Proved, Proof::NotProved, Proof::Unknown] {
            for reached in [Reached::AboveABound, Reached::AboveADeadline] {
                let verdict = Verdict { proof, run: Some(RunVerdict::Disturbed), ..Verdict::default() };
                assert!(!verdict.plain_words(reached).contains("kept to every bound"));
            }
        }
    }
}
