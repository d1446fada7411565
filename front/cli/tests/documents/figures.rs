//! Every figure of `docs/about/figures.md` comes from a committed result, `bench/results/NAME.txt`, or says that it was measured
//! before there were such files.

use crate::common::root;
use crate::page::Page;

const PAGE: &str = "docs/about/figures.md";
/// What is written in place of a result file.
const EARLIER: &str = "measured earlier, not from a result file";

/// What a bench printed, below a head that says how.
struct Outcome {
    command: String,
    numbers: Vec<f64>,
}

impl Outcome {
    /// A head of `command`, `commit`, `date` and `machine`, a line `---`, and the output.
    fn read(text: &str) -> Result<Outcome, String> {
        let (head, output) = text.split_once("\n---\n").ok_or("there is no line `---` below a head")?;
        let value = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.filter(|value| !value.is_empty()).ok_or_else(|| format!("the head has no `{name}: …`"))
        };
        for name in ["commit", "date", "machine"] {
            value(name)?;
        }
        Ok(Outcome {
            command: value("command")?.to_owned(),
            numbers: numbers(output).map(|(_, one)| one).collect(),
        })
    }

    /// Whether a number of the output, rounded as this one is, is this one.
    fn has(&self, text: &str) -> bool {
        let value: f64 = text.replace(',', "").parse().unwrap_or(f64::NAN);
        self.numbers.iter().any(|number| (number - value).abs() <= half_of_last_digit(text))
    }
}

/// `3,300,000` is told to a hundred thousand, `6.5` to a tenth, `704` to one.
fn half_of_last_digit(text: &str) -> f64 {
    let digits = text.replace(',', "");
    let unit = match digits.split_once('.') {
        Some((_, fraction)) => 0.1_f64.powi(fraction.len() as i32),
        None if digits.bytes().all(|digit| digit == b'0') => 1.0,
        None => 10_f64.powi((digits.len() - digits.trim_end_matches('0').len()) as i32),
    };
    unit / 2.0 * (1.0 + 1e-9)
}

/// The numbers of a text, with and without commas.
fn numbers(text: &str) -> impl Iterator<Item = (String, f64)> + '_ {
    text.split(|letter: char| !letter.is_ascii_digit() && letter != ',' && letter != '.').filter_map(|word| {
        let word = word.trim_matches([',', '.']);
        let value = word.replace(',', "").parse().ok()?;
        Some((word.to_owned(), value))
    })
}

/// The rows of the tables that end with a column `result`: figure, command, result.
fn rows(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (line, number) in text.lines().zip(1..) {
        let cells: Vec<String> =
            line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
        if !line.starts_with('|') {
            inside = false;
        } else if cells.last().is_some_and(|cell| cell == "result") {
            inside = true;
        } else if inside && !line.starts_with("|---") {
            found.push((number, cells));
        }
    }
    found
}

#[test]
fn every_figure_comes_from_a_result_or_says_that_it_does_not() {
    let text = Page::read(&root(), PAGE).text;
    let rows = rows(&text);
    assert!(rows.len() > 15, "{PAGE} has rows with results: {}", rows.len());
    let mut findings = Vec::new();
    let mut earlier = 0;
    for (line, cells) in rows {
        let [_, figure, command, result] = cells.as_slice() else {
            findings.push(format!("{PAGE}:{line}: a row is what, figure, command, result"));
            continue;
        };
        if result == EARLIER {
            earlier += 1;
            continue;
        }
        let name = result.split(['(', ')']).nth(1).unwrap_or_default();
        let path = root().join("docs/about").join(name);
        let outcome = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        match outcome.and_then(|text| Outcome::read(&text)) {
            Err(reason) => findings.push(format!("{PAGE}:{line}: {name}: {reason}")),
            Ok(outcome) => {
                if !command.contains(&format!("`{}`", outcome.command)) {
                    findings.push(format!("{PAGE}:{line}: {name} is of `{}`", outcome.command));
                }
                let absent = numbers(figure).filter(|(text, _)| !outcome.has(text));
                findings.extend(absent.map(|(text, _)| format!("{PAGE}:{line}: {name} has no {text}")));
            }
        }
    }
    println!("{earlier} rows of {PAGE} were measured before there were result files");
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    // A new figure has a result file; this number only falls.
    assert!(earlier <= MOST_EARLIER, "{earlier} rows have no result file, {MOST_EARLIER} are known");
}

const MOST_EARLIER: usize = 3;

#[test]
fn a_number_is_compared_as_it_is_rounded() {
    let text = "command: x\ncommit: 1\ndate: 2\nmachine: 3\n---\nsets/s 3,312,001 of 704, 6.47 bytes\n";
    let outcome = Outcome::read(text).expect("a result");
    for (text, is_there) in [
        ("3,300,000", true),
        ("3,400,000", false),
        ("704", true),
        ("705", false),
        ("6.5", true),
        ("6.4", false),
        ("0", false),
    ] {
        assert_eq!(outcome.has(text), is_there, "{text}");
    }
    assert!(Outcome::read("command: x\n---\n1\n").is_err_and(|reason| reason.contains("commit")));
    assert!(Outcome::read("1\n").is_err());
}
