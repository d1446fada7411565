//! The one verdict: three questions, the exit status, and the closing line (decision 0011).
//!
//! Whoever prints a verdict (the terminal, the JSON, the page) prints this one.

mod advice;
mod answers;
mod cases;
mod cause;
mod words;

use horolog_analysis::Analysis;
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::{EndCause, Outcome};
use horolog_verify::Verification;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
#[cfg(feature = "run")]
pub(crate) use words::first_line;

/// What one question is answered with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// There is evidence for it.
    Yes,
    /// There is evidence against it.
    No,
    /// There is too little evidence for either.
    Undecided,
}

impl Answer {
    /// `No` before `Undecided` before `Yes`.
    #[must_use]
    pub fn and(self, other: Answer) -> Answer {
        match (self, other) {
            (Answer::No, _) | (_, Answer::No) => Answer::No,
            (Answer::Undecided, _) | (_, Answer::Undecided) => Answer::Undecided,
            (Answer::Yes, Answer::Yes) => Answer::Yes,
        }
    }
}

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// Is every hard deadline proved, with the machine's costs?
    Proof,
    /// Were assumptions and bounds kept by what was judged?
    Model,
    /// Was every hard deadline met in this run?
    Deadlines,
}

impl Question {
    /// All of them.
    pub const ALL: [Question; 3] = [Question::Proof, Question::Model, Question::Deadlines];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Question::Proof => "proof",
            Question::Model => "model",
            Question::Deadlines => "deadlines",
        }
    }
}

/// Which questions decide the exit status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub struct Gate(Vec<Question>);

impl Gate {
    /// A gate of these questions.
    #[must_use]
    pub fn of(questions: &[Question]) -> Gate {
        let mut questions = questions.to_vec();
        questions.sort_unstable();
        questions.dedup();
        Gate(questions)
    }

    /// Whether this question decides.
    #[must_use]
    pub fn has(&self, question: Question) -> bool {
        self.0.contains(&question)
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(|question| question.word()).collect();
        f.write_str(&words.join(","))
    }
}

impl FromStr for Gate {
    type Err = String;

    /// Reads `proof,model,deadlines`, or some of them.
    fn from_str(text: &str) -> Result<Gate, String> {
        let question = |word: &str| {
            let known = Question::ALL.into_iter().find(|question| question.word() == word.trim());
            known.ok_or_else(|| format!("`{word}` is not one of proof, model, deadlines"))
        };
        let questions = text.split(',').map(question).collect::<Result<Vec<Question>, String>>()?;
        Ok(Gate::of(&questions))
    }
}

/// What the caller asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Which questions decide the exit status.
    pub gate: Gate,
    /// How many of a thousand released jobs of every task have to be judged.
    pub coverage_permille: u64,
    /// Every job has to be judged, and a disturbance is a no of the model.
    pub strict: bool,
}

impl Asked {
    /// Ninety of a hundred jobs, as is usual.
    #[must_use]
    pub fn of(questions: &[Question]) -> Asked {
        Asked { gate: Gate::of(questions), coverage_permille: 900, strict: false }
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Ended {
    /// As it was asked for.
    #[default]
    Whole,
    /// It was stopped before its time.
    Stopped {
        /// For how long jobs were released.
        after: Span,
        /// For how long they were to be.
        of: Span,
    },
    /// It was stopped before it began; in words what it waited for.
    StoppedBefore(String),
    /// User code ended it; in words who, when and how. The job that did never ended, so its deadline was missed.
    Crashed(String),
    /// It was killed; by whom no record says.
    Killed(String),
    /// It never began: this machine does not allow it, for this reason.
    NotPermitted(String),
    /// Nothing was to run.
    NotRun,
}

impl Ended {
    /// How a run ended that was to release jobs for so long; `None`: until it is stopped.
    #[must_use]
    pub fn of_run(outcome: &Outcome, of: Option<Span>) -> Ended {
        if let Some(ending) = &outcome.ended_by {
            return match ending.cause {
                EndCause::Killed => Ended::Killed(ending.to_string()),
                _ => Ended::Crashed(ending.to_string()),
            };
        }
        let after = outcome.horizon_ns;
        of.filter(|of| after < *of).map_or(Ended::Whole, |of| Ended::Stopped { after, of })
    }
}

/// What there is to judge by.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The system that was asked about.
    pub system: &'a System,
    /// What was proved; `None`: nothing was asked to be.
    pub proof: Option<&'a Analysis>,
    /// With which costs, in words after "proved" ("with machine.toml"); may be empty.
    pub costs: &'a str,
    /// What was proved without any cost of the machine, where that is another proof.
    pub without_costs: Option<&'a Analysis>,
    /// What was found in the simulated trace.
    pub simulated: Option<&'a Verification>,
    /// What was found in the trace of the run, or in the one that was given.
    pub verified: Option<&'a Verification>,
    /// The result of the run or the simulation.
    pub outcome: Option<&'a Outcome>,
    /// How the run ended.
    pub ended: Ended,
    /// Where to look, as the help names it.
    pub report: Option<&'a str>,
}

/// One thing that the verdict rests on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cause {
    /// The class of the findings.
    pub class: String,
    /// The check that found them.
    pub check: &'static str,
    /// The task, thread or interrupt.
    pub subject: String,
    /// How many findings.
    pub count: u64,
    /// By how much the worst one exceeds what is allowed.
    pub worst_excess_ns: Span,
}

/// Who missed deadlines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Missed {
    /// The hard task, device or request.
    pub name: String,
    /// How many deadlines.
    pub count: u64,
}

/// The verdict in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Every gated question is answered with yes.
    Holds,
    /// One is answered with no.
    No,
    /// None is, and one is undecided.
    Undecided,
    /// A right is missing for one.
    NotAllowed,
}

impl Word {
    /// As the closing line begins.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Word::Holds => "holds",
            Word::No => "no",
            Word::Undecided => "undecided",
            Word::NotAllowed => "not allowed",
        }
    }
}

/// The verdict: the object `closing` of the contract.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Closing {
    /// In one word.
    pub word: Word,
    /// The exit status: 0 yes, 1 no, 4 undecided, 3 a right is missing.
    pub exit: u8,
    /// The three answers; null where the verb does not ask that.
    pub proof: Option<Answer>,
    /// See `proof`.
    pub model: Option<Answer>,
    /// See `proof`.
    pub deadlines: Option<Answer>,
    /// Which of them decide.
    pub gate: Gate,
    /// The reason in one line.
    pub text: String,
    /// What to do; null where there is nothing.
    pub help: Option<String>,
    /// Who missed hard deadlines; left out where nobody did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
    /// What was found, the gravest first.
    pub causes: Vec<Cause>,
    /// Each question of each task, as far as the verb asks it; in no JSON.
    #[serde(skip)]
    pub cases: Vec<Case>,
}

/// One question of one task, for reports that list cases. None is worse than the answer for the whole system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The section of the file that it is about: `task`, `device` or `request`.
    pub section: &'static str,
    /// Its name there.
    pub name: String,
    /// What is asked.
    pub question: Question,
    /// The answer.
    pub answer: Answer,
    /// The reason.
    pub text: String,
}

impl Case {
    fn new(section: &'static str, name: &str, question: Question, answer: Answer, text: String) -> Case {
        Case { section, name: name.to_owned(), question, answer, text }
    }
}

impl Closing {
    /// The verdict on this evidence.
    #[must_use]
    pub fn of(evidence: &Evidence<'_>, asked: &Asked) -> Closing {
        let answers = answers::Answers::of(evidence, asked);
        let gated = |question: Question| asked.gate.has(question).then(|| answers.of_question(question));
        // A question that cannot be answered on this machine is neither no nor undecided.
        let is_missing = |question: &Question| {
            asked.gate.has(*question)
                && answers.of_question(*question).is_none()
                && matches!(evidence.ended, Ended::NotPermitted(_))
        };
        let decided = Question::ALL.into_iter().filter_map(gated).flatten().reduce(Answer::and);
        let (word, exit) = match decided {
            Some(Answer::No) => (Word::No, 1),
            _ if Question::ALL.iter().any(is_missing) => (Word::NotAllowed, 3),
            Some(Answer::Undecided) => (Word::Undecided, 4),
            Some(Answer::Yes) => (Word::Holds, 0),
            // Nothing that was asked has an answer: silence is no yes.
            None => (Word::Undecided, 4),
        };
        let said = words::say(evidence, asked, &answers, word);
        Closing {
            word,
            exit,
            proof: answers.proof,
            model: answers.model,
            deadlines: answers.deadlines,
            gate: asked.gate.clone(),
            text: said.text,
            help: said.help,
            cases: cases::cases(evidence, asked, &answers),
            missed: answers.missed.into_iter().map(|(name, count)| Missed { name, count }).collect(),
            causes: words::causes(evidence),
        }
    }

    /// The verdict where nothing was answered, for this reason.
    #[must_use]
    pub fn undecided(asked: &Asked, text: String) -> Closing {
        let (word, exit, gate) = (Word::Undecided, 4, asked.gate.clone());
        let (proof, model, deadlines) = (None, None, None);
        let (help, missed, causes) = (None, Vec::new(), Vec::new());
        Closing { word, exit, proof, model, deadlines, gate, text, help, missed, causes, cases: Vec::new() }
    }

    /// The verdict of a verb that asks one question, with its answer and the reason for it.
    #[must_use]
    pub fn one(question: Question, answer: Answer, text: String) -> Closing {
        let (word, exit) = match answer {
            Answer::Yes => (Word::Holds, 0),
            Answer::No => (Word::No, 1),
            Answer::Undecided => (Word::Undecided, 4),
        };
        let of = |asked: Question| (asked == question).then_some(answer);
        let [proof, model, deadlines] = Question::ALL.map(of);
        let gate = Gate::of(&[question]);
        let (help, missed, causes) = (None, Vec::new(), Vec::new());
        Closing { word, exit, proof, model, deadlines, gate, text, help, missed, causes, cases: Vec::new() }
    }

    /// What was to be shown beside it is not there: a yes becomes undecided, for this reason.
    pub fn withhold(&mut self, reason: &str) {
        if self.word == Word::Holds {
            (self.word, self.exit) = (Word::Undecided, 4);
            reason.clone_into(&mut self.text);
        }
    }

    /// The answer to one question; `None` where the verb does not ask it, or where the machine does not allow what it needs.
    #[must_use]
    pub fn answer(&self, question: Question) -> Option<Answer> {
        match question {
            Question::Proof => self.proof,
            Question::Model => self.model,
            Question::Deadlines => self.deadlines,
        }
    }

    /// Whether another attempt may change the answer: nothing was refuted, or only the machine missed deadlines. A proof that is undecided
    /// stays so, whatever is run.
    #[must_use]
    pub fn may_be_retried(&self) -> bool {
        let refuted = self.model == Some(Answer::No) || self.proof == Some(Answer::No);
        match self.word {
            Word::Undecided => {
                let stays = self.proof == Some(Answer::Undecided) && self.gate.has(Question::Proof);
                !refuted && !stays
            }
            Word::No => !refuted && self.causes.iter().any(|cause| cause.class == "machine disturbed"),
            Word::Holds | Word::NotAllowed => false,
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Closing {
    /// The closing line, and below it the help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (exit {})", self.word.text(), self.text, self.exit)?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
