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

impl Verdict {
    /// The verdict in one or two sentences.
    #[must_use]
    pub fn plain_words(&self) -> String {
        let proof = match self.proof {
            Proof::Proved => "Every deadline is proved to hold",
            Proof::NotProved => "Not every deadline can hold",
            Proof::Unknown => "No test decides whether every deadline holds",
        };
        let Some(run) = self.run else {
            return format!("{proof}. Nothing was run on this machine.");
        };
        let joint = match (self.proof, run) {
            (Proof::Proved, RunVerdict::Held | RunVerdict::Disturbed) => ", and",
            _ => ", but",
        };
        let joint = if self.proof == Proof::Proved || run == RunVerdict::Held { joint } else { "; and" };
        let run = match run {
            RunVerdict::Held => "the run on this machine kept to the model and to every bound",
            RunVerdict::ModelViolated => "the run on this machine broke an assumption of the model",
            RunVerdict::BoundViolated => "the run on this machine exceeded a bound although the model held",
            RunVerdict::Disturbed => {
                "the run on this machine kept to every bound, although the machine was disturbed"
            }
            RunVerdict::Undecided => "the record of the run on this machine cannot decide",
        };
        format!("{proof}{joint} {run}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_both_halves() {
        let say = |proof, run| Verdict { proof, run, ..Verdict::default() }.plain_words();
        assert_eq!(
            say(Proof::Proved, Some(RunVerdict::Held)),
            "Every deadline is proved to hold, and the run on this machine kept to the model and to every bound."
        );
        assert_eq!(
            say(Proof::Proved, Some(RunVerdict::ModelViolated)),
            "Every deadline is proved to hold, but the run on this machine broke an assumption of the model."
        );
        assert_eq!(
            say(Proof::NotProved, Some(RunVerdict::Held)),
            "Not every deadline can hold, but the run on this machine kept to the model and to every bound."
        );
        assert_eq!(
            say(Proof::NotProved, Some(RunVerdict::BoundViolated)),
            "Not every deadline can hold; and the run on this machine exceeded a bound although the model held."
        );
        assert!(say(Proof::Unknown, None).ends_with("Nothing was run on this machine."));
    }
}
