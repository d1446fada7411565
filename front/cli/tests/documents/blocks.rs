//! Carries out the blocks of each page.

use crate::common::{done, root};
use crate::page::{Block, Page, pages};
use crate::workshop::{Said, Workshop, clean, in_the_words_of, lacks};
use serde_json::Value;
use std::fmt::Write;

/// How often a block that needs real-time threads may fail: the host of a virtual machine may stop it for long.
const ATTEMPTS: usize = 3;

/// A page's blocks in the making.
struct Reading<'a> {
    page: &'a Page,
    shop: Workshop,
    findings: Vec<String>,
    /// The text that blocks ought to have.
    corrected: Vec<(std::ops::Range<usize>, String)>,
    /// Files that were not written since the machine was in the way.
    lost: Vec<String>,
}

/// The pages that were asked for.
fn asked() -> Vec<Page> {
    let part = std::env::var("HOROLOG_PAGE").unwrap_or_default();
    pages(&root()).into_iter().filter(|page| page.path.contains(&part)).collect()
}

#[test]
fn every_block_of_the_documents_is_true() {
    let bless = std::env::var_os("HOROLOG_BLESS").is_some();
    let mut findings = Vec::new();
    let mut blocks = 0;
    for page in asked() {
        let mut reading = Reading {
            page: &page,
            shop: Workshop::new(),
            findings: Vec::new(),
            corrected: Vec::new(),
            lost: Vec::new(),
        };
        for block in &page.blocks {
            blocks += 1;
            reading.block(block);
        }
        if bless && !reading.corrected.is_empty() {
            let mut text = page.text.clone();
            for (range, corrected) in reading.corrected.iter().rev() {
                text.replace_range(range.clone(), corrected);
            }
            std::fs::write(root().join(&page.path), text).expect("writable");
        }
        findings.extend(reading.findings);
    }
    assert!(findings.is_empty(), "{} findings\n\n{}", findings.len(), findings.join("\n\n"));
    assert!(blocks > 0, "no block was found");
}

impl Reading<'_> {
    fn finding(&mut self, block: &Block, what: &str) {
        self.findings.push(format!("{}: {what}", self.page.at(block.line)));
    }

    fn block(&mut self, block: &Block) {
        let is_lost = |file: &&String| {
            block.value("append") == Some(file.as_str()) || block.text.contains(file.as_str())
        };
        if let Some(file) = self.lost.iter().find(is_lost) {
            println!("SKIPPED: {}: {file} was not written", self.page.at(block.line));
            return;
        }
        if let Some(why) = block.value("needs").and_then(lacks) {
            println!("SKIPPED: {}: {why}", self.page.at(block.line));
            return;
        }
        self.save(block);
        if let Some(file) = block.value("from") {
            let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
            if !holds(&text, &block.text) {
                self.finding(block, &format!("its lines are not in {file}"));
            }
            return;
        }
        match block.language.as_str() {
            "console" => self.console(block),
            // A script is saved here, and run by a block below.
            "sh" if block.value("file").is_some() => {}
            "sh" => {
                let said =
                    self.attempts(block, |shop| shop.run(&block.text, &["-eu"]), |said| said.status == 0);
                if let Some(said) = said {
                    self.finding(block, &format!("ends with {}:\n{}", said.status, said.text));
                }
            }
            "toml" => self.toml(block),
            "json" => self.json(block),
            "c" => self.c(block),
            "yaml" => self.yaml(block),
            "text" => {
                if block.marks().len() < 3 {
                    self.finding(block, "`text` wants the reason behind it, in some words");
                }
            }
            "" | "rust" | "indented" => self.finding(block, "nothing is done with this block: mark it"),
            _ if block.value("file").is_some() => {}
            other => self.finding(block, &format!("the tests do not know what to do with `{other}`")),
        }
    }

    /// Saves what has a name.
    fn save(&mut self, block: &Block) {
        let name = block.value("file").or(block.value("append"));
        let Some(name) = name else { return };
        if !block.before.contains(&format!("`{name}`")) {
            self.finding(block, &format!("the sentence before it does not name `{name}`"));
        }
        if block.value("file").is_some() {
            let path = self.shop.write(name, &block.text);
            if block.text.starts_with("#!") {
                std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                    .expect("allowed");
            }
        } else {
            self.shop.append(name, &block.text);
        }
    }

    /// Runs until it is right; what was said in the end where it never was. A block that needs real-time threads has
    /// three attempts, and where the command itself says that the machine was in the way, it is skipped.
    fn attempts(
        &mut self,
        block: &Block,
        run: impl Fn(&Workshop) -> Said,
        right: impl Fn(&Said) -> bool,
    ) -> Option<Said> {
        let real = block.value("needs").is_some_and(|needs| needs.contains("sched-fifo"));
        let mut said = run(&self.shop);
        for _ in 1..if real { ATTEMPTS } else { 1 } {
            if right(&said) {
                return None;
            }
            said = run(&self.shop);
        }
        if right(&said) {
            return None;
        }
        // Also where the costs that were measured meanwhile are what the proof fails with.
        let by_machine = [
            "machine disturbed",
            ", by the machine: ",
            "; without costs ",
            "records lost",
            "records were lost",
            "hidden switch",
            "none is whole on record: switches are missing",
        ];
        if real && by_machine.iter().any(|words| said.text.contains(words)) {
            println!(
                "SKIPPED: {}: this machine was disturbed: {}",
                self.page.at(block.line),
                closing(&said.text)
            );
            // What it had to write is not there for what follows.
            let outputs = block.text.split(" -o ").skip(1).filter_map(|rest| rest.split_whitespace().next());
            self.lost.extend(outputs.filter(|file| !self.shop.work().join(file).exists()).map(str::to_owned));
            return None;
        }
        Some(said)
    }

    fn console(&mut self, block: &Block) {
        let mut corrected = String::new();
        let mut wrong = false;
        for (words, expected) in commands(&block.text) {
            let status = block.value("exit").and_then(|status| status.parse().ok());
            let status = status.or_else(|| closing_status(&expected)).unwrap_or(0);
            let right = |said: &Said| {
                said.status == status && in_the_words_of(&expected, &said.text) == clean(&expected)
            };
            let script = words.join("\n");
            let said = self.attempts(block, |shop| shop.run(&script, &[]), right);
            let shown: String = words.iter().enumerate().fold(String::new(), |mut shown, (number, line)| {
                let _ = writeln!(shown, "{} {line}", if number == 0 { "$" } else { ">" });
                shown
            });
            corrected.push_str(&shown);
            match said {
                None => corrected.push_str(&clean(&expected)),
                Some(said) => {
                    wrong = true;
                    let text = in_the_words_of(&expected, &said.text);
                    self.finding(
                        block,
                        &format!(
                            "{shown}ends with {} ({status} expected) and prints\n{text}not\n{expected}",
                            said.status
                        ),
                    );
                    corrected.push_str(&text);
                }
            }
        }
        if wrong {
            self.corrected.push((block.range.clone(), corrected));
        }
    }

    fn toml(&mut self, block: &Block) {
        let text = match block.value("base") {
            None => block.text.clone(),
            Some(base) => {
                let base = format!("front/cli/tests/documents/bases/{base}.toml");
                let Ok(text) = std::fs::read_to_string(root().join(&base)) else {
                    return self.finding(block, &format!("there is no {base}"));
                };
                assert_eq!(text.matches("# HERE\n").count(), 1, "{base} leaves one place");
                text.replace("# HERE\n", &block.text)
            }
        };
        // An appended part is judged with all that is above it.
        let path = match (block.value("append"), block.value("file")) {
            (Some(name), _) | (None, Some(name)) if block.value("base").is_none() => {
                self.shop.work().join(name)
            }
            _ => self.shop.write("block.toml", &text),
        };
        let path = path.to_str().expect("a name in UTF-8");
        let words: Vec<&str> = match block.value("as") {
            None => vec!["check", path],
            Some("profile") => vec!["analyze", "examples/quick-start/system.toml", "--machine", path],
            Some("experiment") => {
                vec!["experiment", "run", path, "--seed", "1"]
            }
            Some("qos") => vec!["qos", "allocate", path],
            Some("sweep") => vec!["sweep", path, "--dry-run"],
            Some(other) => return self.finding(block, &format!("as={other} is not known")),
        };
        let said = done(words);
        let status = if block.has("refused") { Some(2) } else { Some(0) };
        if said.status != status {
            self.finding(block, &format!("status {:?}\n{}", said.status, said.err));
        }
    }

    fn json(&mut self, block: &Block) {
        let text = block.text.trim();
        // Some keys of an object are without their braces.
        let text = if text.starts_with('"') { format!("{{{text}}}") } else { text.to_owned() };
        let expected: Value = match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(error) => return self.finding(block, &format!("is not JSON: {error}")),
        };
        let Some(command) = block.value("of") else {
            return self.finding(block, "no command gives it: say one, `of=\"COMMAND\"`");
        };
        let said = self.shop.run(&format!("exec 2>/dev/null\n{command}"), &[]);
        match serde_json::from_str::<Value>(&said.text) {
            Err(error) => self.finding(block, &format!("{command}: {error}\n{}", said.text)),
            Ok(actual) => {
                if let Err(what) = has_shape(&actual, &expected, "") {
                    self.finding(block, &format!("{command}: {what}"));
                }
            }
        }
    }

    /// A workflow: it can be read, and each command in it is there and understands its words.
    fn yaml(&mut self, block: &Block) {
        if block.value("file").is_none() {
            self.finding(block, "workflows are read where they are saved: give it a name");
        }
        let commands = match commands_of_workflow(&block.text) {
            Ok(commands) => commands,
            Err(why) => return self.finding(block, &format!("cannot be read: {why}")),
        };
        if commands.is_empty() {
            self.finding(block, "names no command");
        }
        for command in commands {
            let said = self.shop.run(&command, &[]);
            // Bad words, no such file, no such command; a verdict may be any.
            if matches!(said.status, 2 | 126 | 127) {
                self.finding(block, &format!("`{command}` ends with {}:\n{}", said.status, said.text));
            }
        }
    }

    fn c(&mut self, block: &Block) {
        let path = self.shop.write("block.c", &block.text);
        let header = root().join("front/tracer/include");
        let capi = root().join("front/capi/include");
        let script = format!(
            "gcc -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I {} -I {} {}",
            header.display(),
            capi.display(),
            path.display()
        );
        let said = self.shop.run(&script, &[]);
        if said.status != 0 {
            self.finding(block, &format!("does not compile:\n{}", said.text));
        }
    }
}

/// The closing line, else the last one.
fn closing(text: &str) -> &str {
    let lines = || text.lines().rev();
    lines().find(|line| line.contains("(exit ")).or_else(|| lines().next()).unwrap_or_default()
}

/// Whether the lines of `part` follow one another in `whole`, however far they are indented.
fn holds(whole: &str, part: &str) -> bool {
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let (whole, part) = (lines(whole), lines(part.trim()));
    !part.is_empty() && whole.windows(part.len()).any(|window| window == part)
}

/// The commands of a console block, in lines, each with what it prints.
fn commands(text: &str) -> Vec<(Vec<String>, String)> {
    let mut commands: Vec<(Vec<String>, String)> = Vec::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("$ ") {
            commands.push((vec![words.to_owned()], String::new()));
        } else if let Some((words, printed)) = commands.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) if printed.is_empty() => words.push(more.to_owned()),
                _ => {
                    printed.push_str(line);
                    printed.push('\n');
                }
            }
        }
    }
    commands
}

/// The status that the closing line tells, or an error that comes before one.
fn closing_status(text: &str) -> Option<i32> {
    if text.starts_with("error: ") {
        return Some(2);
    }
    let line = text.lines().rev().find(|line| line.ends_with(')') && line.contains("(exit "))?;
    line.rsplit_once("(exit ")?.1.trim_end_matches(')').parse().ok()
}

/// Whether every key of `expected` is in `actual`, with a value of the same kind where both have one.
fn has_shape(actual: &Value, expected: &Value, at: &str) -> Result<(), String> {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().try_for_each(|(key, expected)| {
                let actual = actual.get(key).ok_or_else(|| format!("there is no key {at}.{key}"))?;
                has_shape(actual, expected, &format!("{at}.{key}"))
            })
        }
        (Value::Array(actual), Value::Array(expected)) => expected.iter().try_for_each(|expected| {
            let tried: Vec<_> =
                actual.iter().map(|one| has_shape(one, expected, &format!("{at}[]"))).collect();
            if tried.iter().any(Result::is_ok) {
                return Ok(());
            }
            tried.into_iter().next().unwrap_or_else(|| Err(format!("{at} is empty")))
        }),
        (Value::Null, _) | (_, Value::Null) => Ok(()),
        (actual, expected) if std::mem::discriminant(actual) == std::mem::discriminant(expected) => Ok(()),
        (actual, expected) => Err(format!("{at} is {actual}, and not like {expected}")),
    }
}

/// The commands of a workflow of GitHub (each `run`) or GitLab (each line of `script`).
fn commands_of_workflow(text: &str) -> Result<Vec<String>, String> {
    use saphyr_parser::{Event, Parser, StrInput};
    let mut parser = Parser::new(StrInput::new(text));
    let mut commands = Vec::new();
    // Of each collection that is open: whether it is a mapping, and the key whose value comes next.
    let mut open: Vec<(bool, Option<String>)> = Vec::new();
    while let Some(event) = parser.next_event() {
        let (event, _) = event.map_err(|error| error.to_string())?;
        match event {
            Event::MappingStart(..) => open.push((true, None)),
            Event::SequenceStart(..) => open.push((false, None)),
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                // What ended was the value of a key.
                if let Some((true, key)) = open.last_mut() {
                    *key = None;
                }
            }
            Event::Scalar(word, ..) => match open.last_mut() {
                Some((true, key @ None)) => *key = Some(word.into_owned()),
                Some((true, key)) => {
                    let is_command = key.take().is_some_and(|key| key == "run" || key == "script");
                    commands.extend(is_command.then(|| word.into_owned()));
                }
                Some((false, _)) => {
                    let above = open.len().checked_sub(2).and_then(|at| open.get(at));
                    if above.is_some_and(|(_, key)| key.as_deref() == Some("script")) {
                        commands.push(word.into_owned());
                    }
                }
                None => {}
            },
            _ => {}
        }
    }
    Ok(commands)
}

#[test]
fn the_commands_of_a_workflow_are_read() {
    let of = |text: &str| commands_of_workflow(text);
    let github = "on: [push]\njobs:\n  a:\n    runs-on: run\n    steps:\n      - uses: x\n      - run: sh a.sh b\n      - name: script\n        run: c\n";
    assert_eq!(of(github), Ok(vec!["sh a.sh b".to_owned(), "c".to_owned()]));
    let gitlab = "timing:\n  script:\n    - a\n    - b c\n  artifacts:\n    paths:\n      - run\n";
    assert_eq!(of(gitlab), Ok(vec!["a".to_owned(), "b c".to_owned()]));
    assert!(of("a: [b\n").is_err() && of("a: b: c\n").is_err());
}

#[test]
fn commands_are_told_from_what_they_print() {
    let text = "$ a\n> b\nc\n> d\n$ e\n";
    let expected = [
        (vec!["a".to_owned(), "b".to_owned()], "c\n> d\n".to_owned()),
        (vec!["e".to_owned()], String::new()),
    ];
    assert_eq!(commands(text), expected);
    assert_eq!(closing_status("no: x (exit 1)\n  help: y\n"), Some(1));
    assert_eq!(closing_status("error: x\n"), Some(2));
    assert_eq!(closing_status("nothing\n"), None);
}

#[test]
fn a_shape_wants_every_key_and_the_kind_of_its_value() {
    let actual = serde_json::json!({"a": [{"b": 1, "c": null}, {"d": "x"}]});
    let shape = |expected| has_shape(&actual, &expected, "");
    assert_eq!(shape(serde_json::json!({"a": [{"b": 2}, {"d": "…"}]})), Ok(()));
    assert_eq!(shape(serde_json::json!({"a": [{"c": "null has any kind"}]})), Ok(()));
    assert!(shape(serde_json::json!({"a": [{"b": "text"}]})).is_err());
    assert!(shape(serde_json::json!({"a": [{"e": 1}]})).is_err());
    assert!(shape(serde_json::json!({"z": 1})).is_err());
}

#[test]
fn lines_have_to_follow_one_another() {
    assert!(holds("fn x() {\n    a();\n    b();\n}\n", "a();\nb();\n"));
    assert!(!holds("a();\nc();\nb();\n", "a();\nb();\n"));
    assert!(!holds("a();\n", ""));
}
