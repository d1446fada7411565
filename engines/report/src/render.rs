//! Puts the data into the checked-in page.

use crate::closing::grouped;
use crate::error::Reason;
use crate::{Closing, ReportData, ReportError, escape};
use horolog_trace::TaskOutcome;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// The page as `viewer/` builds it: script and style inside, with three places to fill.
const PAGE: &str = include_str!("../assets/report.html");
/// Where the title goes.
const TITLE: &str = "horolog:title";
/// Where the summary for readers without scripts goes.
const SUMMARY: &str = "<!--horolog:summary-->";
/// Where the data goes: JSON, or rather `null` until then.
const DATA: &str = "\"horolog:data\"";

/// The data as the page reads it.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    plain_words: String,
    #[serde(flatten)]
    data: &'a ReportData,
}

/// The report as one self-contained HTML page.
///
/// Names and texts may hold anything: they reach the page as JSON in which no markup can end, and the page's
/// script writes them as text only. A content security policy inside the page allows its own script by hash and
/// no request at all.
///
/// # Errors
/// Where the data does not serialise (a number that JSON cannot hold).
pub fn render(data: &ReportData) -> Result<String, ReportError> {
    let sentence = match data.verdict.sentence.as_str() {
        "" => data.verdict.plain_words(data.reached()),
        given => given.to_owned(),
    };
    let summary = summary(data, &sentence);
    let document = Document { schema: "horolog.report/1", plain_words: sentence, data };
    let json = serde_json::to_string(&document).map_err(Reason::from)?;
    let title = match data.system.as_str() {
        "" => "horolog report".to_owned(),
        name => format!("{} · horolog report", escape::html(name)),
    };
    Ok(fill(&title, &summary, &escape::json_for_script(&json)))
}

/// Renders the report into a file.
///
/// # Errors
/// As [`render`], or where the file cannot be written.
pub fn write(data: &ReportData, path: &Path) -> Result<(), ReportError> {
    let page = render(data)?;
    std::fs::write(path, page).map_err(|source| Reason::Write { path: path.to_owned(), source }.into())
}

/// The page with its places filled, each once and in one pass, so that no text can pose as a place.
fn fill(title: &str, summary: &str, json: &str) -> String {
    let mut page = String::with_capacity(PAGE.len() + summary.len() + json.len() + title.len());
    let mut rest = PAGE;
    for (place, text) in [(TITLE, title), (SUMMARY, summary), (DATA, json)] {
        let (before, after) = rest.split_once(place).expect("the page's places are checked by a test");
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// The verdict and the tasks in plain HTML, for readers without scripts.
fn summary(data: &ReportData, sentence: &str) -> String {
    let mut html = format!("<h1>{}</h1>", escape::html(&data.system));
    // Where the sentence has it, once is enough.
    let missed = data.closing.as_ref().and_then(Closing::missed_in_words);
    let missed = missed.filter(|_| !sentence.contains(" missed ("));
    let help = data.closing.as_ref().and_then(Closing::help_in_page).map(|help| format!("help: {help}"));
    for said in missed.iter().map(String::as_str).chain([sentence]).chain(help.as_deref()) {
        // Writing into a string cannot fail.
        let _ = write!(html, "<p>{}</p>", escape::html(said));
    }
    html.push_str("<table><tr><th>task</th><th>proof</th><th>bound</th><th>deadline</th>");
    for run in &data.runs {
        let _ = write!(html, "<th>{}</th>", run.kind.word());
    }
    html.push_str("</tr>");
    let text = |span: Option<horolog_time::Span>| span.map_or_else(|| "none".to_owned(), |s| s.to_string());
    for (index, task) in data.tasks.iter().enumerate() {
        let _ = write!(html, "<tr><td>{}</td><td>{}</td>", escape::html(&task.name), task.verdict.word());
        let _ = write!(html, "<td>{}</td><td>{}</td>", text(task.bound_ns), text(task.deadline_ns));
        for run in &data.runs {
            let said = run.tasks.get(index).map_or_else(String::new, |task| jobs_in_words(&task.outcome));
            let _ = write!(html, "<td>{said}</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
    html
}

/// "500 jobs, 7 missed".
fn jobs_in_words(task: &TaskOutcome) -> String {
    let count = |number: u64| if number == 0 { "none".to_owned() } else { grouped(number) };
    let jobs = if task.jobs == 1 { "1 job".to_owned() } else { format!("{} jobs", grouped(task.jobs)) };
    format!("{jobs}, {} missed", count(task.missed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finding, FindingClass, Missed, Run, RunKind, RunTask, TaskRow, TaskVerdict};

    #[test]
    fn the_page_has_each_place_once_and_in_order() {
        let places: Vec<Vec<usize>> = [TITLE, SUMMARY, DATA]
            .iter()
            .map(|place| PAGE.match_indices(place).map(|(at, _)| at).collect())
            .collect();
        assert!(places.iter().all(|at| at.len() == 1), "{places:?}");
        assert!(places.is_sorted());
    }

    #[test]
    fn the_page_asks_the_network_for_nothing() {
        assert!(PAGE.contains("default-src 'none'"));
        for asks in ["http://", "https://", " src=", "@import", "url("] {
            let known = ["http://www.w3.org/2000/svg"];
            let rest = known.iter().fold(PAGE.to_owned(), |page, k| page.replace(k, ""));
            assert!(!rest.contains(asks), "the page holds {asks}");
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let evil = "</script><script>alert(1)</script><!--<script>horolog:title\"horolog:data\"\u{2028}";
        let mut data = ReportData { system: evil.into(), system_file: evil.into(), ..ReportData::default() };
        data.tasks.push(TaskRow { name: evil.into(), explain: evil.into(), ..TaskRow::default() });
        data.findings.push(Finding::new(FindingClass::Note, evil, evil));
        data.notes.push("<img src=x onerror=alert(1)>".into());
        data.provenance.command = "\"><svg onload=alert(1)>".into();
        let page = render(&data).unwrap();
        let scripts = |page: &str| page.matches("<script").count();
        assert_eq!(scripts(&page), scripts(PAGE));
        assert_eq!(page.matches("</script").count(), PAGE.matches("</script").count());
        assert!(!page.contains("<img") && !page.contains("<svg onload"));
        let json = data_of(&page);
        assert_eq!(json["system"], evil);
        assert_eq!(json["tasks"][0]["name"], evil);
        assert_eq!(json["findings"][0]["text"], evil);
    }

    #[test]
    fn without_scripts_each_task_has_its_verdict() {
        let outcome = |jobs, missed| TaskOutcome { jobs, missed, ..TaskOutcome::default() };
        let run = |outcome| Run {
            tasks: vec![RunTask { outcome, histogram: Vec::new(), judged: None }],
            ..Run::default()
        };
        let measured = Run { kind: RunKind::Measured, ..run(outcome(1, 0)) };
        let task = TaskRow { name: "a<b".into(), verdict: TaskVerdict::Misses, ..TaskRow::default() };
        let closing = Closing {
            help: Some("raise & try, or find the cause in out/report.html".into()),
            missed: vec![Missed { name: "a<b".into(), count: 3 }],
            ..Closing::default()
        };
        let data = ReportData {
            tasks: vec![task],
            runs: vec![run(outcome(500, 3)), measured],
            closing: Some(closing),
            ..ReportData::default()
        };
        let page = render(&data).unwrap();
        for wanted in [
            "<p>3 deadlines missed: a&lt;b 3</p>",
            "<p>help: raise &amp; try, or look at the first missed job, with scripts switched on</p>",
            "<th>simulated</th><th>measured</th></tr><tr><td>a&lt;b</td><td>misses</td>",
            "<td>500 jobs, 3 missed</td><td>1 job, none missed</td></tr>",
        ] {
            assert!(page.contains(wanted), "{wanted}");
        }
    }

    #[test]
    fn writes_where_it_is_told_and_says_where_it_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write(&ReportData::default(), &path).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("horolog.report/1"));
        let error = write(&ReportData::default(), &folder.path().join("none/report.html")).unwrap_err();
        assert!(error.is_write() && error.to_string().contains("none/report.html"), "{error}");
    }

    /// The JSON of a page, found as a browser finds it: up to the first end of its script element.
    fn data_of(page: &str) -> serde_json::Value {
        let open = "<script type=\"application/json\" id=\"horolog-data\">";
        let (_, rest) = page.split_once(open).unwrap();
        serde_json::from_str(rest.split_once("</script").unwrap().0).unwrap()
    }
}
