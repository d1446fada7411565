//! What is kept of a run: `docs/mutants/NAME.json`, and `docs/mutants.md` made from all of them.

use super::build::Placed;
use super::table::SUBJECTS;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A fault that no test noticed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Survivor {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) function: String,
    pub(super) what: String,
    /// The line's text.
    pub(super) text: String,
    /// Which one of those with the same words, as [`Placed::place`] counts.
    pub(super) place: usize,
    /// Why no test can notice it; empty: it is open.
    pub(super) why: String,
}

/// The record of one subject.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) commit: String,
    pub(super) seed: u64,
    /// Faults that compiled and were judged.
    pub(super) viable: usize,
    pub(super) too_long: usize,
    pub(super) survivors: Vec<Survivor>,
    pub(super) tests: Vec<String>,
}

impl Survivor {
    pub(super) fn of(fault: &Placed) -> Survivor {
        Survivor {
            file: fault.file.clone(),
            line: fault.candidate.line,
            function: fault.candidate.function.clone(),
            what: fault.candidate.what.clone(),
            text: fault.text.clone(),
            place: fault.place,
            why: String::new(),
        }
    }

    /// Whether both are the same fault, wherever its line is now.
    pub(super) fn is_same(&self, other: &Survivor) -> bool {
        (&self.file, &self.function, &self.what, &self.text, self.place)
            == (&other.file, &other.function, &other.what, &other.text, other.place)
    }
}

fn path(root: &Path, name: &str) -> PathBuf {
    root.join("docs/mutants").join(format!("{name}.json"))
}

/// The record as it was written last.
pub(super) fn read(root: &Path, name: &str) -> Option<Record> {
    let value: Value = serde_json::from_str(&fs::read_to_string(path(root, name)).ok()?).ok()?;
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| value[key].as_u64().unwrap_or_default();
    let survivors = value["survivors"].as_array()?.iter().map(|one| Survivor {
        file: text(one, "file"),
        line: one["line"].as_u64().unwrap_or_default() as usize,
        function: text(one, "function"),
        what: text(one, "what"),
        text: text(one, "text"),
        place: one["place"].as_u64().unwrap_or(1) as usize,
        why: text(one, "why"),
    });
    let tests = value["tests"].as_array()?.iter().filter_map(|one| one.as_str().map(str::to_owned));
    Some(Record {
        commit: text(&value, "commit"),
        seed: number("seed"),
        viable: number("viable") as usize,
        too_long: number("too_long") as usize,
        survivors: survivors.collect(),
        tests: tests.collect(),
    })
}

/// Writes the record and the page of all records.
pub(super) fn write(root: &Path, name: &str, record: &Record) -> Result<(), String> {
    let survivors: Vec<Value> = record
        .survivors
        .iter()
        .map(|one| {
            json!({ "file": one.file, "line": one.line, "function": one.function, "what": one.what,
                    "text": one.text, "place": one.place, "why": one.why })
        })
        .collect();
    let value = json!({
        "subject": name, "commit": record.commit, "seed": record.seed, "viable": record.viable,
        "too_long": record.too_long, "tests": record.tests, "survivors": survivors,
    });
    let file = path(root, name);
    let text = serde_json::to_string_pretty(&value).map_err(|error| error.to_string())?;
    fs::create_dir_all(file.parent().unwrap_or(root)).map_err(|error| error.to_string())?;
    fs::write(&file, text + "\n").map_err(|error| format!("{}: {error}", file.display()))?;
    write_page(root)
}

/// Writes the page of all records.
pub(super) fn write_page(root: &Path) -> Result<(), String> {
    fs::write(root.join("docs/mutants.md"), page(root)).map_err(|error| format!("docs/mutants.md: {error}"))
}

/// The page.
fn page(root: &Path) -> String {
    let mut text = String::from(
        "# Do the tests notice a small fault?\n\n\
         Made by `cargo xtask mutants NAME`. It puts small faults into a crate (an operator, a condition, a statement, a \
         result, a number),\nbuilds all of them at once behind a switch, and runs the tests with one switched on after the \
         other. The sample is drawn with the seed\nfrom all faults of the sources. A fault counts as noticed where a test \
         fails or takes far longer than without it. \"Open\" are those that no\ntest noticed and for which no reason is \
         known why none could.\n\n\
         | subject | judged | noticed | of them too slow | share | share of those not argued | open | argued equivalent | seed | \
         commit |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    let records: Vec<_> =
        SUBJECTS.iter().filter_map(|subject| Some((subject, read(root, subject.name)?))).collect();
    for (subject, record) in &records {
        let noticed = record.viable - record.survivors.len();
        let argued = record.survivors.iter().filter(|one| !one.why.is_empty()).count();
        let share = |of: usize| {
            let permille = noticed * 1000 / of.max(1);
            format!("{}.{} %", permille / 10, permille % 10)
        };
        text.push_str(&format!(
            "| {} | {} | {noticed} | {} | {} | {} | {} | {argued} | {} | {} |\n",
            subject.name,
            record.viable,
            record.too_long,
            share(record.viable),
            share(record.viable - argued),
            record.survivors.len() - argued,
            record.seed,
            record.commit,
        ));
    }
    for (subject, record) in &records {
        text.push_str(&format!(
            "\n## {}\n\nTests: `cargo test {}`.\n\n",
            subject.name,
            record.tests.join("`, `cargo test ")
        ));
        for one in &record.survivors {
            let why = if one.why.is_empty() { "open" } else { &one.why };
            let place = if one.place > 1 { format!(", no. {}", one.place) } else { String::new() };
            text.push_str(&format!(
                "- `{}:{}` {}: {}{place} (`{}`). {why}\n",
                one.file, one.line, one.function, one.what, one.text
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::build::faults_of;
    use super::*;

    #[test]
    fn the_page_says_what_the_records_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let text = fs::read_to_string(root.join("docs/mutants.md")).expect("the page is there");
        assert!(text == page(root), "make it anew: cargo xtask mutants page");
    }

    #[test]
    fn two_faults_with_the_same_words_in_one_line_are_told_apart() {
        let source = "fn f(a: u32) -> u32 { 1 + a.div(1) }";
        let faults = faults_of("f.rs", source).expect("it parses");
        let ones: Vec<Survivor> =
            faults.iter().map(Survivor::of).filter(|one| one.what == "1 becomes 1 + 1").collect();
        assert_eq!(ones.iter().map(|one| one.place).collect::<Vec<usize>>(), [1, 2]);
        assert!(!ones[0].is_same(&ones[1]));
        // The line may have moved.
        let moved = faults_of("f.rs", &format!("\n\n{source}")).expect("it parses");
        let found = moved.iter().map(Survivor::of).filter(|one| one.is_same(&ones[1])).count();
        assert_eq!(found, 1);
    }
}
