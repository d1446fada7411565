//! `horolog check-certificate`.

use crate::arguments::CertificateArguments;
use crate::failure::{Done, Failure, Verdict};
use crate::output::outln;
use crate::results::{Judged, tell};
use crate::{costs, input};
use horolog_analysis::resolve_priorities;
use horolog_certificate::{Certificate, Conclusion, check};
use horolog_closed_loop::verdict::{Answer, Closing, Question};
use serde::Serialize;

/// What the JSON form holds.
#[derive(Serialize)]
struct Checked<'a> {
    schema: &'static str,
    system: &'a str,
    /// Tasks of the file.
    tasks: usize,
    meet: &'a [String],
    miss: &'a [String],
    undecided: &'a [String],
    /// Why it is refused; null where each claim holds.
    flaw: Option<String>,
}

pub(crate) fn run(words: &CertificateArguments) -> Done {
    let (system, file) = input::system(&words.file)?;
    let (system, source) = costs::filled(&system, &words.machine)?;
    costs::say(&source);
    let system = resolve_priorities(&system).map_err(Failure::bad_input)?;
    let remedy = "write it with `horolog analyze FILE --certificate OUT`, and leave it as it is";
    let certificate: Certificate = input::json(&words.certificate, remedy)?;
    let (conclusion, flaw) = match check(&system, &certificate) {
        Ok(conclusion) => (conclusion, None),
        Err(flaw) => (Conclusion::default(), Some(flaw.to_string())),
    };
    let tasks = system.tasks().len();
    let claimed = conclusion.meet.len() + conclusion.miss.len();
    let (answer, text) = match &flaw {
        Some(flaw) => (Answer::No, flaw.clone()),
        None if conclusion.proves_all_deadlines() => {
            (Answer::Yes, format!("each claim holds, {claimed} of {tasks} tasks proved"))
        }
        None if conclusion.miss.is_empty() => {
            (Answer::Undecided, format!("no claim for {}", conclusion.undecided.join(", ")))
        }
        None => (Answer::No, format!("proved to miss: {}", conclusion.miss.join(", "))),
    };
    let closing = Closing::one(Question::Proof, answer, text);
    let result = Checked {
        schema: "horolog.certificate-check/1",
        system: system.name(),
        tasks,
        meet: &conclusion.meet,
        miss: &conclusion.miss,
        undecided: &conclusion.undecided,
        flaw,
    };
    let judged = Judged { source: &file, result: &result, closing: &closing, attempts: &[] };
    tell(&words.format, &judged, || print(&result, claimed))?;
    Ok(Verdict::closed(closing))
}

fn print(result: &Checked<'_>, claimed: usize) {
    if let Some(flaw) = &result.flaw {
        outln!("flaw: {flaw}");
        return;
    }
    outln!("each claim of the certificate holds: {claimed} of {} tasks have one", result.tasks);
    if !result.miss.is_empty() {
        outln!("proved to miss: {}", result.miss.join(", "));
    }
    if !result.undecided.is_empty() {
        outln!("not decided: no claim for {}", result.undecided.join(", "));
    }
}
