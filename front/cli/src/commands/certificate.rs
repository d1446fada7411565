//! `horolog check-certificate`.

use crate::arguments::CertificateArguments;
use crate::failure::{Done, Failure, Verdict};
use crate::output::outln;
use crate::{costs, input};
use horolog_analysis::resolve_priorities;
use horolog_certificate::{Certificate, check};

pub(crate) fn run(words: &CertificateArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    let (system, source) = costs::filled(&system, &words.machine)?;
    costs::say(&source);
    let system = resolve_priorities(&system).map_err(Failure::error)?;
    let path = &words.certificate;
    let text = horolog_model::file::read_text(path).map_err(|error| Failure::file("read", path, &error))?;
    let certificate: Certificate = serde_json::from_str(&text)
        .map_err(|error| Failure::bad_input(format_args!("error: {}: {error}", path.display())))?;
    match check(&system, &certificate) {
        Ok(conclusion) => {
            let tasks = system.tasks().len();
            let claimed = conclusion.meet.len() + conclusion.miss.len();
            outln!("each claim of the certificate holds: {claimed} of {tasks} tasks have one");
            if !conclusion.miss.is_empty() {
                outln!("proved to miss: {}", conclusion.miss.join(", "));
            }
            if !conclusion.undecided.is_empty() {
                outln!("not decided: no claim for {}", conclusion.undecided.join(", "));
            }
            Ok(match () {
                () if conclusion.proves_all_deadlines() => Verdict::Holds,
                () if conclusion.miss.is_empty() => Verdict::Undecided,
                () => Verdict::SaysNo,
            })
        }
        Err(flaw) => {
            outln!("flaw: {flaw}");
            Ok(Verdict::SaysNo)
        }
    }
}
