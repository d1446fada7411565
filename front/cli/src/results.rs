//! Results of verbs that give a verdict, in the form that was asked for: a table, JSON, annotations of GitHub, or JUnit.

use crate::csv;
use crate::failure::Failure;
use crate::formats::Formats;
use crate::output::{self, outln};
use clap::ValueEnum;
use horolog_closed_loop::verdict::{Answer, Case, Closing, Question, Word};
use horolog_closed_loop::{Closed, Told};
use horolog_model::Source;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a verdict is told.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum VerdictFormat {
    /// For people.
    #[default]
    Table,
    /// For scripts: the schemas of docs/contract.md.
    Json,
    /// The same, one object a line.
    Jsonl,
    /// Annotations of a workflow of GitHub.
    Github,
    /// JUnit's XML: a test case for each task and question.
    Junit,
    /// One line a task, for spreadsheets and statistics.
    Csv,
}

/// A result, and what was made of it.
pub(crate) struct Judged<'a, T> {
    /// The system file.
    pub(crate) source: &'a Source,
    /// What the JSON holds.
    pub(crate) result: &'a T,
    /// The verdict.
    pub(crate) closing: &'a Closing,
    /// The verdicts of the attempts before.
    pub(crate) attempts: &'a [Closing],
}

/// How one point stands, and all of them together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    Holds,
    No,
    Undecided,
    NotAllowed,
    /// It is told, and the verdict does not hang on it.
    NotAsked,
}

/// One thing that was looked at.
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) standing: Standing,
    pub(crate) text: String,
}

/// A verdict about no system file: of this machine, of two traces, of an experiment.
pub(crate) struct Points<'a, T> {
    /// What it is about: the name of the suite, and of the class of its cases.
    pub(crate) about: &'static str,
    /// What the JSON holds.
    pub(crate) result: &'a T,
    /// How all of it stands, and in words.
    pub(crate) standing: Standing,
    pub(crate) closing: &'a str,
    /// What was looked at.
    pub(crate) points: Vec<Point>,
}

/// The results of one call.
pub(crate) struct Results {
    tellings: Vec<Telling>,
    has_several: bool,
    /// How many files were begun.
    begun: usize,
}

/// What is told at one place, in one format.
struct Telling {
    format: VerdictFormat,
    /// The file; `None`: standard output.
    file: Option<PathBuf>,
    /// What the file will hold.
    text: String,
    /// JSON objects of several files.
    objects: Vec<String>,
    report: Report,
    /// Whether the head of the lines of CSV is told.
    has_head: bool,
}

/// An object of one of several files.
#[derive(Serialize)]
struct OfFile<'a, T> {
    file: &'a str,
    #[serde(flatten)]
    result: &'a T,
}

/// Whether the files of a result were written: what fails later is told on standard error alone.
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// Tells the one result of a verb.
pub(crate) fn tell<T: Serialize>(
    formats: &Formats,
    judged: &Judged<'_, T>,
    table: impl FnOnce(),
) -> Result<(), Failure> {
    let mut results = Results::new(formats, 1);
    results.add(judged, table)?;
    results.finish()
}

/// Tells a verdict point by point.
pub(crate) fn tell_points<T: Serialize>(
    formats: &Formats,
    points: &Points<'_, T>,
    table: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut results = Results::new(formats, 1);
    let mut table = Some(table);
    for one in &mut results.tellings {
        match one.format {
            VerdictFormat::Table => table.take().map_or(Ok(()), |table| table())?,
            VerdictFormat::Json | VerdictFormat::Jsonl => one.object(false, "", points.result)?,
            VerdictFormat::Github => one.say(&points.annotations()),
            VerdictFormat::Junit => {
                one.report.add_test_suite(points.suite());
            }
            // Its parser refuses it.
            VerdictFormat::Csv => {}
        }
    }
    results.finish()
}

impl Standing {
    /// The command of an annotation; none for what is well, or not asked.
    fn command(self) -> Option<&'static str> {
        match self {
            Standing::Holds | Standing::NotAsked => None,
            Standing::No => Some("error"),
            Standing::Undecided | Standing::NotAllowed => Some("warning"),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Standing::Holds => "yes",
            Standing::No => "no",
            Standing::Undecided => "undecided",
            Standing::NotAllowed => "not allowed",
            Standing::NotAsked => "not asked",
        }
    }

    /// The status of a case.
    fn case(self, text: &str) -> TestCaseStatus {
        match self {
            Standing::Holds => TestCaseStatus::success(),
            Standing::No => refused(NonSuccessKind::Failure, "no", text, None),
            Standing::Undecided => refused(NonSuccessKind::Error, "undecided", text, None),
            Standing::NotAllowed => refused(NonSuccessKind::Error, "not-allowed", text, None),
            Standing::NotAsked => {
                let mut status = TestCaseStatus::skipped();
                status.set_type("not-gated").set_message(text);
                status
            }
        }
    }
}

impl<T> Points<'_, T> {
    /// The closing line, and each point that is not well.
    fn annotations(&self) -> String {
        let command = self.standing.command().unwrap_or("notice");
        let mut lines = format!("::{command} title=horolog::{}\n", data(self.closing));
        for point in &self.points {
            let Some(command) = point.standing.command() else { continue };
            let title = property(&format!("horolog {}: {}", self.about, point.standing.word()));
            let text = data(&format!("{}: {}", point.name, point.text));
            lines.push_str(&format!("::{command} title={title}::{text}\n"));
        }
        lines
    }

    /// A case for each point, and one for all of it.
    fn suite(&self) -> TestSuite {
        let mut suite = TestSuite::new(self.about);
        suite.add_property(("closing", self.closing));
        for point in &self.points {
            let status = point.standing.case(&point.text);
            suite.add_test_case(case("", None, self.about, &point.name, status));
        }
        let status = self.standing.case(self.closing);
        suite.add_test_case(case("", None, self.about, "(all of it)", status));
        suite
    }
}

/// Tells programs why there is no result, where none was told; people read it on standard error.
pub(crate) fn tell_failure(formats: &Formats, failure: &Failure) -> Result<(), Failure> {
    let mut results = Results::new(formats, 1);
    let is_written = WRITTEN.load(Ordering::Relaxed);
    results.tellings.retain(|one| if one.file.is_some() { !is_written } else { !output::is_begun() });
    results.refuse(failure.about().unwrap_or_default(), failure)?;
    results.finish()
}

impl Results {
    /// Of so many files.
    pub(crate) fn new(formats: &Formats, files: usize) -> Results {
        let telling = |format, file| Telling {
            format,
            file,
            text: String::new(),
            objects: Vec::new(),
            report: Report::new("horolog"),
            has_head: false,
        };
        let mut tellings = vec![telling(formats.on_stdout(), None)];
        tellings.extend(
            formats
                .all
                .iter()
                .filter(|one| one.file.is_some())
                .map(|one| telling(one.format, one.file.clone())),
        );
        Results { tellings, has_several: files > 1, begun: 0 }
    }

    /// Begins with the next file: of several, tables stand below its name.
    pub(crate) fn begin(&mut self, file: &str) {
        let is_table = self.tellings.first().is_some_and(|one| one.format == VerdictFormat::Table);
        if self.has_several && is_table {
            if self.begun > 0 {
                outln!();
            }
            outln!("{file}:");
        }
        self.begun += 1;
    }

    /// A result with its verdict.
    pub(crate) fn add<T: Serialize>(
        &mut self,
        judged: &Judged<'_, T>,
        table: impl FnOnce(),
    ) -> Result<(), Failure> {
        let Judged { source, result, closing, attempts } = judged;
        let mut table = Some(table);
        for one in &mut self.tellings {
            match one.format {
                VerdictFormat::Table => {
                    if let Some(table) = table.take() {
                        table();
                    }
                }
                VerdictFormat::Json | VerdictFormat::Jsonl => {
                    one.object(self.has_several, source.name(), &Closed { result, closing, attempts })?;
                }
                VerdictFormat::Github => one.say(&annotations(source, closing)),
                VerdictFormat::Junit => {
                    one.report.add_test_suite(suite(source, closing));
                }
                VerdictFormat::Csv => {
                    let has_head = std::mem::replace(&mut one.has_head, true);
                    one.say(&csv::lines(source.name(), result, !has_head)?);
                }
            }
        }
        Ok(())
    }

    /// A JSON object of this file, for those who read JSON.
    pub(crate) fn object(&mut self, file: &str, result: &impl Serialize) -> Result<(), Failure> {
        let has_several = self.has_several;
        self.tellings
            .iter_mut()
            .filter(|one| one.is_json())
            .try_for_each(|one| one.object(has_several, file, result))
    }

    /// One fact that is no question of a verdict: it holds.
    pub(crate) fn holds(&mut self, file: &str, name: &str, text: &str) {
        for one in &mut self.tellings {
            match one.format {
                VerdictFormat::Github => {
                    one.say(&format!("::notice file={}::{}\n", property(file), data(text)));
                }
                VerdictFormat::Junit => {
                    let mut suite = suite_of(file);
                    suite.add_test_case(case(file, None, "input", name, TestCaseStatus::success()));
                    one.report.add_test_suite(suite);
                }
                VerdictFormat::Table | VerdictFormat::Json | VerdictFormat::Jsonl | VerdictFormat::Csv => {}
            }
        }
    }

    /// Why there is no result for this file.
    pub(crate) fn refuse(&mut self, file: &str, failure: &Failure) -> Result<(), Failure> {
        self.object(file, &failure.object())?;
        self.refuse_but_in_json(file, failure);
        Ok(())
    }

    /// The same, but for those who read JSON: they have an object of the verb's own.
    pub(crate) fn refuse_but_in_json(&mut self, file: &str, failure: &Failure) {
        for one in &mut self.tellings {
            match one.format {
                VerdictFormat::Table | VerdictFormat::Json | VerdictFormat::Jsonl | VerdictFormat::Csv => {}
                VerdictFormat::Github => {
                    let command = if failure.status() == 4 { "warning" } else { "error" };
                    failure.told().iter().for_each(|told| one.say(&annotation(command, file, told)));
                }
                VerdictFormat::Junit => {
                    one.report.add_test_suite(suite_of_refusal(file, failure));
                }
            }
        }
    }

    /// Prints and writes what waits for the end.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        for mut one in self.tellings {
            match one.format {
                VerdictFormat::Json if self.has_several => {
                    let all = format!("[\n{}\n]\n", one.objects.join(",\n"));
                    one.say(&all);
                }
                VerdictFormat::Junit => {
                    let text = one.report.to_string().map_err(Failure::bad_input)?;
                    one.say(&format!("{}\n", kept_in_attributes(text.trim_end())));
                }
                _ => {}
            }
            if let Some(file) = &one.file {
                std::fs::write(file, &one.text).map_err(|error| Failure::file("write", file, &error))?;
                WRITTEN.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

impl Telling {
    fn is_json(&self) -> bool {
        matches!(self.format, VerdictFormat::Json | VerdictFormat::Jsonl)
    }

    /// Tells whole lines.
    fn say(&mut self, lines: &str) {
        match self.file {
            None => output::write(format_args!("{lines}")),
            Some(_) => self.text.push_str(lines),
        }
    }

    fn object(&mut self, has_several: bool, file: &str, result: &impl Serialize) -> Result<(), Failure> {
        let pretty = self.format == VerdictFormat::Json;
        let text = match (has_several, pretty) {
            (true, true) => serde_json::to_string_pretty(&OfFile { file, result }),
            (true, false) => serde_json::to_string(&OfFile { file, result }),
            (false, true) => serde_json::to_string_pretty(result),
            (false, false) => serde_json::to_string(result),
        };
        let text = text.map_err(Failure::bad_input)?;
        if has_several && pretty {
            self.objects.push(text);
        } else {
            self.say(&format!("{text}\n"));
        }
        Ok(())
    }
}

/// The same XML with references where attributes hold line feeds: a reader makes spaces of the characters themselves.
fn kept_in_attributes(xml: &str) -> String {
    let mut kept = String::with_capacity(xml.len());
    let mut is_in_tag = false;
    for c in xml.chars() {
        match c {
            // Both are escaped wherever they are no part of a tag.
            '<' | '>' => is_in_tag = c == '<',
            '\n' | '\r' if is_in_tag => {
                kept.push_str(&format!("&#{};", u32::from(c)));
                continue;
            }
            _ => {}
        }
        kept.push(c);
    }
    kept
}

/// The suite of a file, which has its path.
fn suite_of(file: &str) -> TestSuite {
    let mut suite = TestSuite::new(if file.is_empty() { "horolog" } else { file });
    if !file.is_empty() {
        suite.extra.insert("file".into(), file.into());
    }
    suite
}

/// An error for each thing that is wrong with a file, or with the words of the command.
fn suite_of_refusal(file: &str, failure: &Failure) -> TestSuite {
    let mut suite = suite_of(file);
    for (index, told) in failure.told().iter().enumerate() {
        let kind = if told.kind == "no" { NonSuccessKind::Failure } else { NonSuccessKind::Error };
        let status = refused(kind, told.kind, &told.message, told.help.as_deref());
        let place = told.place.as_ref();
        let file = place.and_then(|place| place.file.as_deref()).unwrap_or(file);
        let name = place.and_then(|place| place.path.clone());
        let name = name.unwrap_or_else(|| format!("{} {}", told.kind, index + 1));
        suite.add_test_case(case(file, place.and_then(|place| place.line), "input", &name, status));
    }
    suite
}

/// The annotations of one verdict: the closing line, and what does not hold, each where the file names it.
fn annotations(source: &Source, closing: &Closing) -> String {
    let file = property(source.name());
    let command = match closing.word {
        Word::Holds => "notice",
        Word::No => "error",
        Word::Undecided | Word::NotAllowed => "warning",
    };
    let mut lines = format!("::{command} file={file},title=horolog::{}\n", data(&closing.to_string()));
    for case in closing.cases.iter().filter(|case| closing.gate.has(case.question)) {
        let command = match case.answer {
            Answer::Yes => continue,
            Answer::No => "error",
            Answer::Undecided => "warning",
        };
        let line = source.line_of_item(case.section, &case.name);
        let line = line.map_or_else(String::new, |line| format!(",line={line}"));
        let title = property(&format!("horolog {}: {}", case.question.word(), answer_word(case.answer)));
        let text = data(&format!("{}: {}", case.name, case.text));
        lines.push_str(&format!("::{command} file={file}{line},title={title}::{text}\n"));
    }
    lines
}

/// The annotation of one error.
fn annotation(command: &str, file: &str, told: &Told) -> String {
    let mut properties = Vec::new();
    let has_file = told.place.as_ref().is_some_and(|place| place.file.is_some());
    if !has_file && !file.is_empty() {
        properties.push(format!("file={}", property(file)));
    }
    if let Some(place) = &told.place {
        let parts = [
            ("file", place.file.clone()),
            ("line", place.line.map(|line| line.to_string())),
            ("col", place.column.map(|column| column.to_string())),
        ];
        let given = parts.into_iter().filter_map(|(key, value)| Some((key, value?)));
        properties.extend(given.map(|(key, value)| format!("{key}={}", property(&value))));
    }
    properties.push("title=horolog".to_owned());
    let help = told.help.as_ref().map_or_else(String::new, |help| format!("\nhelp: {help}"));
    format!("::{command} {}::{}\n", properties.join(","), data(&format!("{}{help}", told.message)))
}

/// The text of an annotation, as GitHub's `toolkit` escapes it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of an annotation.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn answer_word(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Undecided => "undecided",
    }
}

/// The test suite of one verdict: for each question that is answered each task and the whole system.
fn suite(source: &Source, closing: &Closing) -> TestSuite {
    let mut suite = suite_of(source.name());
    // Where the file begins to speak of the whole system.
    let head = source.line_and_column("system").map(|(line, _)| line);
    suite.add_property(("verdict", closing.word.text()));
    suite.add_property(("closing", closing.to_string().as_str()));
    for question in Question::ALL {
        let is_gated = closing.gate.has(question);
        for one in closing.cases.iter().filter(|case| case.question == question) {
            let status = status(Some(one.answer), is_gated, closing, &one.text);
            let line = source.line_of_item(one.section, &one.name);
            suite.add_test_case(case(source.name(), line, question.word(), &one.name, status));
        }
        if is_gated || closing.answer(question).is_some() {
            let whole = closing.answer(question);
            let text = reason_of(closing, question);
            let status = status(whole, is_gated, closing, &text);
            suite.add_test_case(case(source.name(), head, question.word(), "(the whole system)", status));
        }
    }
    suite
}

/// Why a question is answered as it is for the whole system: for the reason of the verdict where it has its answer, else for that of the
/// first task that has it.
fn reason_of(closing: &Closing, question: Question) -> String {
    let answer = closing.answer(question);
    let is_of_verdict = match closing.word {
        Word::Holds => answer == Some(Answer::Yes),
        Word::No => answer == Some(Answer::No),
        Word::Undecided => answer.is_none_or(|answer| answer == Answer::Undecided),
        Word::NotAllowed => answer.is_none(),
    };
    if closing.gate.has(question) && is_of_verdict {
        return closing.text.clone();
    }
    let is_it = |case: &&Case| case.question == question && Some(case.answer) == answer;
    let first = closing.cases.iter().find(is_it);
    first.map_or_else(|| "the system as a whole".to_owned(), |case| format!("{}: {}", case.name, case.text))
}

fn status(answer: Option<Answer>, is_gated: bool, closing: &Closing, text: &str) -> TestCaseStatus {
    if !is_gated {
        let mut status = TestCaseStatus::skipped();
        let word = answer.map_or("not asked", answer_word);
        status.set_type("not-gated").set_message(format!("{word}, and --gate does not ask for it: {text}"));
        return status;
    }
    match answer {
        Some(Answer::Yes) => TestCaseStatus::success(),
        Some(Answer::No) => refused(NonSuccessKind::Failure, "no", text, closing.help.as_deref()),
        None if closing.word == Word::NotAllowed => {
            refused(NonSuccessKind::Error, "not-allowed", text, closing.help.as_deref())
        }
        Some(Answer::Undecided) | None => {
            refused(NonSuccessKind::Error, "undecided", text, closing.help.as_deref())
        }
    }
}

fn refused(kind: NonSuccessKind, word: &str, message: &str, help: Option<&str>) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(word).set_message(message);
    if let Some(help) = help {
        status.set_description(format!("{message}\nhelp: {help}"));
    }
    status
}

fn case(file: &str, line: Option<usize>, question: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("horolog.{question}"));
    if !file.is_empty() {
        case.extra.insert("file".into(), file.into());
    }
    if let Some(line) = line {
        case.extra.insert("line".into(), line.to_string().into());
    }
    case
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_say_what_is_not_well_and_no_case_is_worse_than_the_verdict() {
        let point = |name: &str, standing| Point { name: name.to_owned(), standing, text: "50 %".to_owned() };
        let points = Points {
            about: "doctor",
            result: &(),
            standing: Standing::NotAllowed,
            closing: "not allowed: no\n  help: yes",
            points: vec![
                point("a", Standing::Holds),
                point("b", Standing::NotAllowed),
                point("c", Standing::NotAsked),
            ],
        };
        assert_eq!(
            points.annotations(),
            "::warning title=horolog::not allowed: no%0A  help: yes\n\
             ::warning title=horolog doctor%3A not allowed::b: 50 %25\n"
        );
        let suite = points.suite();
        let count = (suite.tests, suite.failures, suite.errors);
        assert_eq!(count, (4, 0, 2));
        let well = Points { standing: Standing::Holds, points: Vec::new(), closing: "yes", ..points };
        assert_eq!(well.annotations(), "::notice title=horolog::yes\n");
        assert_eq!((well.suite().tests, well.suite().errors), (1, 0));
    }

    /// Between tags nothing changes, so that the lines of the document stay lines.
    #[test]
    fn a_line_feed_in_the_name_of_a_file_is_read_again() {
        let mut report = Report::new("horolog");
        let status = refused(NonSuccessKind::Error, "bad", "a\nb > c", Some("d"));
        let mut suite = suite_of("a\nbc.toml");
        suite.add_test_case(case("a\nbc.toml", None, "input", "x", status));
        report.add_test_suite(suite);
        let text = kept_in_attributes(&report.to_string().expect("XML"));
        assert_eq!(text.matches(r#"file="a&#10;bc.toml""#).count(), 2, "{text}");
        assert!(text.contains(r#"message="a&#10;b &gt; c""#) && text.lines().count() > 5, "{text}");
    }

    #[test]
    fn annotations_escape_what_github_would_take_for_its_own() {
        assert_eq!(data("90 % of\nit, file: a"), "90 %25 of%0Ait, file: a");
        assert_eq!(property("a:b,c%"), "a%3Ab%2Cc%25");
    }
}
