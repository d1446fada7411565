//! What the pages of published experiments say is what the experiments say: lists of facts, tables, verdicts and counts.
//!
//! A page marks a place by `<!-- NAME -->` and `<!-- end -->`; `HOROLOG_BLESS=1` writes what is between them.

use horolog_experiments::{
    Agreement, Counts, ExperimentReport, Fact, Options, Series, WhenExhausted, all, find,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A page that is compared, or written.
struct Page {
    path: PathBuf,
    text: String,
    findings: Vec<String>,
}

impl Page {
    fn open(path: &str) -> Page {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
        let path = root.join("docs").join(path);
        let text = std::fs::read_to_string(&path).expect("a page");
        Page { path, text, findings: Vec::new() }
    }

    /// What is between the marks of a place.
    fn at(&self, name: &str) -> std::ops::Range<usize> {
        let mark = format!("<!-- {name} -->");
        let start = self.text.find(&mark).unwrap_or_else(|| panic!("{}: no {mark}", self.path.display()));
        let start = start + mark.len();
        let end = self.text[start..].find("<!-- end -->").expect("<!-- end -->");
        start..start + end
    }

    fn holds(&mut self, name: &str, wanted: &str) {
        let range = self.at(name);
        let found = &self.text[range.clone()];
        if found != wanted && std::env::var_os("HOROLOG_BLESS").is_none() {
            let differs = found.lines().zip(wanted.lines()).find(|(found, wanted)| found != wanted);
            self.findings.push(format!("{}, {name}: {differs:?}", self.path.display()));
        }
        self.text.replace_range(range, wanted);
    }

    fn close(self) {
        let findings = self.findings.join("\n");
        assert!(findings.is_empty(), "HOROLOG_BLESS=1 writes the pages\n{findings}");
        if std::env::var_os("HOROLOG_BLESS").is_some() {
            std::fs::write(&self.path, &self.text).expect("writable");
        }
    }
}

#[test]
fn every_page_lists_the_facts_of_its_source() {
    for experiment in all() {
        let mut table = String::from("\n\n| fact | what the source says about | where |\n|---|---|---|\n");
        for fact in experiment.facts {
            let _ = writeln!(table, "| {} | {} | {} |", fact.number, fact.what, fact.place);
        }
        let mut page = Page::open(&format!("experiments/{}.md", experiment.id));
        page.holds("facts", &format!("{table}\n"));
        page.close();
    }
}

fn report(id: &str, options: &Options) -> ExperimentReport {
    let experiment = find(id).expect("a published experiment");
    let report = experiment.run(options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
    for fact in &report.facts {
        assert!(!fact.place.is_empty(), "fact {:?} is not in the list of {id}", fact.number);
    }
    report
}

#[test]
fn the_pages_of_aperiodic_service_say_what_the_experiments_say() {
    let (first, second) =
        (report("aperiodic-1", &Options::default()), report("aperiodic-2", &Options::default()));
    let wait = Some(WhenExhausted::Wait);
    let waits = Options { seeds: Some(1), when_exhausted: wait, ..Options::default() };
    let waits = report("aperiodic-1", &waits);
    let mut page = Page::open("experiments/aperiodic-1.md");
    page.holds("response", &table(&first, "mean soft response time"));
    page.holds("switches", &table(&first, "context switches"));
    page.holds("jobs", &jobs(&first));
    page.holds("statements", &statements(&first));
    page.holds("waiting", &beside(&first, &waits));
    page.holds("waiting statements", &statements_beside(&first, &waits));
    page.close();
    let mut page = Page::open("experiments/aperiodic-2.md");
    page.holds("response", &table(&second, "mean soft response time"));
    page.holds("jobs", &jobs(&second));
    page.holds("statements", &statements(&second));
    page.close();
    let mut page = Page::open("systems.md");
    page.holds("aperiodic-1", &words(first.counts));
    page.holds("aperiodic-2", &words(second.counts));
    page.close();
}

#[test]
fn the_pages_of_processor_reserves_say_what_the_experiments_say() {
    for id in ["rk-cpu", "rk-hierarchy"] {
        let report = report(id, &Options::default());
        assert!(report.agrees() && report.facts.len() > 10, "{:?}", report.facts);
        let mut text =
            String::from("\n\n| fact | statement | published | ours | verdict |\n|---|---|---|---|---|\n");
        for fact in &report.facts {
            let number = fact.number.expect("a published fact");
            let published = fact.published.as_deref().unwrap_or_default();
            let (statement, ours) = (&fact.statement, &fact.ours);
            let _ = writeln!(text, "| {number} | {statement} | {published} | {ours} | {} |", word(fact));
        }
        let mut page = Page::open(&format!("experiments/{id}.md"));
        page.holds("facts found", &(text + "\n"));
        page.close();
    }
}

#[test]
fn the_page_of_q_ram_says_what_the_experiment_says() {
    let report = report("rk-qram", &Options::default());
    // Times differ from run to run; losses do not.
    let is_timed = |fact: &&Fact| fact.ours.contains(" times with ") || fact.number == Some(17);
    let facts = report.facts.iter().filter(|fact| !is_timed(fact));
    let losses = report.series.iter().filter(|series| series.name.starts_with("loss"));
    let text = verdicts(facts) + &losses.map(|series| rows(series, 2)).collect::<String>();
    let mut page = Page::open("experiments/rk-qram.md");
    page.holds("losses", &(text + "\n"));
    page.close();
    let loss = report.facts.iter().find(|fact| fact.number == Some(14)).expect("the loss");
    let mut page = Page::open("systems.md");
    page.holds("rk-qram", &format!("{} below the optimum", loss.ours));
    page.close();
}

#[test]
fn the_page_of_disk_reserves_says_what_the_experiment_says() {
    let report = report("rk-disk", &Options::default());
    let text = verdicts(report.facts.iter());
    let text = text + &report.series.iter().map(|series| rows(series, 1)).collect::<String>();
    let mut page = Page::open("experiments/rk-disk.md");
    page.holds("results", &(text + "\n"));
    page.close();
}

/// Facts with their verdicts.
fn verdicts<'a>(facts: impl Iterator<Item = &'a Fact>) -> String {
    let mut text =
        String::from("\n\n| fact | statement | published | ours | verdict |\n|---|---|---|---|---|\n");
    for fact in facts {
        let number = fact.number.expect("a published fact");
        let published = fact.published.as_deref().unwrap_or_default();
        let (statement, ours, word) = (&fact.statement, &fact.ours, word(fact));
        let _ = writeln!(text, "| {number} | {statement} | {published} | {ours} | {word} |");
    }
    text
}

/// A series with its values to so many digits, or none where all are whole.
fn rows(series: &Series, digits: usize) -> String {
    let digits = if series.rows.iter().flatten().all(|value| value.fract() == 0.0) { 0 } else { digits };
    let mut text = format!("\n{}:\n\n| {} |\n", series.name, series.columns.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(series.columns.len()));
    for row in &series.rows {
        let values: Vec<String> = row[1..].iter().map(|value| format!("{value:.digits$}")).collect();
        let _ = writeln!(text, "| {} | {} |", row[0], values.join(" | "));
    }
    text
}

fn series<'a>(report: &'a ExperimentReport, metric: &str) -> Vec<&'a Series> {
    report.series.iter().filter(|series| series.name.contains(metric)).collect()
}

/// A row a value of each parameter, a column a policy but the background.
fn table(report: &ExperimentReport, metric: &str) -> String {
    let all = series(report, metric);
    let policies = &all[0].columns[2..];
    let mut text = format!("\n\n| | {} |\n|{}\n", policies.join(" | "), "---|".repeat(policies.len() + 1));
    for series in all {
        for row in &series.rows {
            let values: Vec<String> = row[2..].iter().map(|value| format!("{value:.3}")).collect();
            let _ = writeln!(text, "| {} | {} |", place(&series.columns[0], row[0]), values.join(" | "));
        }
    }
    text + "\n"
}

/// "hard load 20 %", "hard tasks 4".
fn place(parameter: &str, value: f64) -> String {
    match parameter.strip_suffix(" %") {
        Some(parameter) => format!("{parameter} {value} %"),
        None => format!("{parameter} {value}"),
    }
}

fn jobs(report: &ExperimentReport) -> String {
    let fact = report.facts.iter().find(|fact| fact.number == Some(4)).expect("deadlines");
    format!("\nHard deadlines missed: {}; {}.\n", fact.ours, fact.note)
}

fn word(fact: &Fact) -> &'static str {
    match fact.agreement {
        Agreement::Agrees => "agrees",
        Agreement::Disagrees => "**disagrees**",
        Agreement::Undecided(_) => "undecided",
        _ => "not measured",
    }
}

fn statement(fact: &Fact) -> &str {
    fact.statement.trim_end_matches(" (simulated)")
}

fn statements(report: &ExperimentReport) -> String {
    let mut text = String::from(
        "\n\n| fact | statement | seed 1 | verdict | seeds that agree | the value that decides, 95 % |\n|---|---|---|---|---|---|\n",
    );
    for fact in &report.facts {
        let number = fact.number.expect("a published fact");
        let (seeds, interval) = fact.seeds.as_ref().map_or_else(Default::default, |over| {
            let interval = format!("{:.3} to {:.3} (of {})", over.low, over.high, over.values);
            (format!("{} of {}", over.agree, over.seeds), interval)
        });
        let (statement, word, ours) = (statement(fact), word(fact), &fact.ours);
        let _ = writeln!(text, "| {number} | {statement} | {ours} | {word} | {seeds} | {interval} |");
    }
    text + "\n"
}

fn words(counts: Counts) -> String {
    let Counts { agree, disagree, undecided, not_measured } = counts;
    format!("{agree} agree, {disagree} disagree, {undecided} undecided, {not_measured} not measured")
}

/// The servers' responses, waiting beside going on in the background.
fn beside(first: &ExperimentReport, waits: &ExperimentReport) -> String {
    let metric = "mean soft response time";
    let mut text =
        String::from("\n\n| | DS waits | SS waits | DS goes on | SS goes on |\n|---|---|---|---|---|\n");
    for (goes_on, waits) in series(first, metric).iter().zip(series(waits, metric)) {
        for (one, other) in goes_on.rows.iter().zip(&waits.rows) {
            let place = place(&goes_on.columns[0], one[0]);
            let values = [other[2], other[3], one[2], one[3]].map(|value| format!("{value:.3}"));
            let _ = writeln!(text, "| {place} | {} |", values.join(" | "));
        }
    }
    text + "\n"
}

/// Statements with which waiting servers disagree.
fn statements_beside(first: &ExperimentReport, waits: &ExperimentReport) -> String {
    let mut text = String::from("\n\n| statement | goes on, seed 1 | waits, seed 1 |\n|---|---|---|\n");
    for (one, other) in first.facts.iter().zip(&waits.facts) {
        if other.agreement == Agreement::Disagrees {
            let _ = writeln!(text, "| {} | {} | {} |", statement(one), one.ours, other.ours);
        }
    }
    text + "\n"
}
