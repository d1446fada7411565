//! Results of verbs that give a verdict, in the form that was asked for: a table, JSON, annotations of GitHub, or JUnit.

use crate::failure::{Failure, Told};
use crate::output::{self, Closed, outln};
use clap::ValueEnum;
use horolog_closed_loop::verdict::{Answer, Case, Closing, Question, Word};
use horolog_model::Source;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use serde_json::Value;

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
    /// One line a task, for spreadsheets and statistics: `analyze` and `simulate` alone.
    Csv,
}

impl VerdictFormat {
    /// Whether standard output belongs to a program, so that user code must not write there.
    pub(crate) fn is_for_programs(self) -> bool {
        self != VerdictFormat::Table
    }
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

/// The results of one call.
pub(crate) struct Results {
    format: VerdictFormat,
    has_several: bool,
    /// JSON objects of several files.
    objects: Vec<String>,
    report: Report,
    /// How many files were begun.
    begun: usize,
    /// Whether the head of the lines stands there.
    has_head: bool,
}

/// What stands in the lines of a result, by its schema: members of its tasks, as docs/contract.md has them.
const CSV_COLUMNS: [(&str, &[&str]); 2] = [
    (
        "horolog.analysis/1",
        &[
            "name",
            "cpu",
            "verdict",
            "response_ns",
            "deadline_ns",
            "test",
            "exact",
            "source",
            "blocking_ns",
            "slack_ns",
        ],
    ),
    (
        "horolog.outcome/1",
        &[
            "name",
            "jobs",
            "completed",
            "missed",
            "unfinished",
            "response_ns_min",
            "response_ns_mean",
            "response_ns_p50",
            "response_ns_p99_9",
            "response_ns_max",
            "preemptions",
        ],
    ),
];

/// A value in a line: text in quotes where it needs them, nothing where there is none.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    }
}

/// A text as RFC 4180 has it.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// An object of one of several files.
#[derive(Serialize)]
struct OfFile<'a, T> {
    file: &'a str,
    #[serde(flatten)]
    result: &'a T,
}

/// Tells the one result of a verb.
pub(crate) fn tell<T: Serialize>(
    format: VerdictFormat,
    judged: &Judged<'_, T>,
    table: impl FnOnce(),
) -> Result<(), Failure> {
    let mut results = Results::new(format, 1);
    results.add(judged, table)?;
    results.finish()
}

/// Tells programs why there is no result; people read it on standard error.
pub(crate) fn tell_failure(format: VerdictFormat, failure: &Failure) -> Result<(), Failure> {
    let mut results = Results::new(format, 1);
    results.refuse("", failure)?;
    results.finish()
}

impl Results {
    /// Of so many files.
    pub(crate) fn new(format: VerdictFormat, files: usize) -> Results {
        let report = Report::new("horolog");
        Results { format, has_several: files > 1, objects: Vec::new(), report, begun: 0, has_head: false }
    }

    /// Begins with the next file: of several, tables stand below its name.
    pub(crate) fn begin(&mut self, file: &str) {
        if self.has_several && self.format == VerdictFormat::Table {
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
        match self.format {
            VerdictFormat::Table => table(),
            VerdictFormat::Json | VerdictFormat::Jsonl => {
                self.object(source.name(), &Closed { result, closing, attempts })?;
            }
            VerdictFormat::Github => annotations(source, closing),
            VerdictFormat::Junit => {
                self.report.add_test_suite(suite(source, closing));
            }
            VerdictFormat::Csv => self.rows(source.name(), result)?,
        }
        Ok(())
    }

    /// A JSON object of this file.
    pub(crate) fn object(&mut self, file: &str, result: &impl Serialize) -> Result<(), Failure> {
        let pretty = self.format == VerdictFormat::Json;
        let text = match (self.has_several, pretty) {
            (true, true) => serde_json::to_string_pretty(&OfFile { file, result }),
            (true, false) => serde_json::to_string(&OfFile { file, result }),
            (false, true) => serde_json::to_string_pretty(result),
            (false, false) => serde_json::to_string(result),
        };
        let text = text.map_err(Failure::bad_input)?;
        if self.has_several && pretty {
            self.objects.push(text);
        } else {
            outln!("{text}");
        }
        Ok(())
    }

    /// One fact that is no question of a verdict: it holds.
    pub(crate) fn holds(&mut self, file: &str, name: &str, text: &str) {
        match self.format {
            VerdictFormat::Github => outln!("::notice file={}::{}", property(file), data(text)),
            VerdictFormat::Junit => {
                let mut suite = TestSuite::new(file);
                suite.add_test_case(case(file, None, "input", name, TestCaseStatus::success()));
                self.report.add_test_suite(suite);
            }
            VerdictFormat::Table | VerdictFormat::Json | VerdictFormat::Jsonl | VerdictFormat::Csv => {}
        }
    }

    /// One line a task; the head before the first one.
    fn rows(&mut self, file: &str, result: &impl Serialize) -> Result<(), Failure> {
        let result = serde_json::to_value(result).map_err(Failure::bad_input)?;
        let schema = result.get("schema").and_then(Value::as_str).unwrap_or_default();
        let Some((_, columns)) = CSV_COLUMNS.iter().find(|(known, _)| *known == schema) else {
            return Err(Failure::usage("--format csv is for the tasks of `analyze` and `simulate`"));
        };
        if !std::mem::replace(&mut self.has_head, true) {
            outln!("file,system,{}", columns.join(","));
        }
        let system = result.get("system").and_then(Value::as_str).unwrap_or_default();
        for task in result.get("tasks").and_then(Value::as_array).into_iter().flatten() {
            let cells = columns.iter().map(|column| cell(task.get(column).unwrap_or(&Value::Null)));
            let cells: Vec<String> = [quoted(file), quoted(system)].into_iter().chain(cells).collect();
            outln!("{}", cells.join(","));
        }
        Ok(())
    }

    /// Why there is no result for this file.
    pub(crate) fn refuse(&mut self, file: &str, failure: &Failure) -> Result<(), Failure> {
        match self.format {
            VerdictFormat::Table | VerdictFormat::Csv => {}
            VerdictFormat::Json | VerdictFormat::Jsonl => self.object(file, &failure.object())?,
            VerdictFormat::Github => {
                let command = if failure.status() == 4 { "warning" } else { "error" };
                failure.told().iter().for_each(|told| annotate(command, told));
            }
            VerdictFormat::Junit => {
                let mut suite = TestSuite::new(if file.is_empty() { "horolog" } else { file });
                for (index, told) in failure.told().iter().enumerate() {
                    let kind =
                        if told.kind == "no" { NonSuccessKind::Failure } else { NonSuccessKind::Error };
                    let status = refused(kind, told.kind, &told.message, told.help.as_deref());
                    let place = told.place.as_ref();
                    let file = place.and_then(|place| place.file.as_deref()).unwrap_or(file);
                    let name = place.and_then(|place| place.path.clone());
                    let name = name.unwrap_or_else(|| format!("{} {}", told.kind, index + 1));
                    suite.add_test_case(case(
                        file,
                        place.and_then(|place| place.line),
                        "input",
                        &name,
                        status,
                    ));
                }
                self.report.add_test_suite(suite);
            }
        }
        Ok(())
    }

    /// Prints what waits for the end.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.format {
            VerdictFormat::Json if self.has_several => outln!("[\n{}\n]", self.objects.join(",\n")),
            VerdictFormat::Junit => {
                let text = self.report.to_string().map_err(Failure::bad_input)?;
                output::write(format_args!("{}\n", text.trim_end()));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The annotations of one verdict: the closing line, and what does not hold, each where the file names it.
fn annotations(source: &Source, closing: &Closing) {
    let file = property(source.name());
    let command = match closing.word {
        Word::Holds => "notice",
        Word::No => "error",
        Word::Undecided | Word::NotAllowed => "warning",
    };
    outln!("::{command} file={file},title=horolog::{}", data(&closing.to_string()));
    for case in closing.cases.iter().filter(|case| closing.gate.has(case.question)) {
        let command = match case.answer {
            Answer::Yes => continue,
            Answer::No => "error",
            Answer::Undecided => "warning",
        };
        let line = source.line_of_item(case.section, &case.name);
        let line = line.map_or_else(String::new, |line| format!(",line={line}"));
        let title = property(&format!("horolog {}: {}", case.question.word(), answer_word(case.answer)));
        outln!(
            "::{command} file={file}{line},title={title}::{}",
            data(&format!("{}: {}", case.name, case.text))
        );
    }
}

/// The annotation of one error.
fn annotate(command: &str, told: &Told) {
    let mut properties = Vec::new();
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
    outln!("::{command} {}::{}", properties.join(","), data(&format!("{}{help}", told.message)));
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
    let mut suite = TestSuite::new(source.name());
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
            suite.add_test_case(case(source.name(), None, question.word(), "(the whole system)", status));
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
    case.extra.insert("file".into(), file.into());
    if let Some(line) = line {
        case.extra.insert("line".into(), line.to_string().into());
    }
    case
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_where_it_has_to_be() {
        let of = |value: serde_json::Value| cell(&value);
        assert_eq!(
            [of(serde_json::json!("a,\"b\"")), of(serde_json::json!("a b"))],
            ["\"a,\"\"b\"\"\"", "a b"]
        );
        assert_eq!(
            [of(serde_json::json!(null)), of(serde_json::json!(12)), of(serde_json::json!(true))],
            ["", "12", "true"]
        );
    }

    #[test]
    fn annotations_escape_what_github_would_take_for_its_own() {
        assert_eq!(data("90 % of\nit, file: a"), "90 %25 of%0Ait, file: a");
        assert_eq!(property("a:b,c%"), "a%3Ab%2Cc%25");
    }
}
