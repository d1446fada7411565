//! Large files are read, and told what is wrong with them, in a time that grows with their length: each limit is so generous that only
//! another order of growth exceeds it.

use horolog_model::file;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

const MANY: usize = 10_000;

fn tasks(text: &mut String, rest: &str) {
    for index in 0..MANY {
        let _ = writeln!(text, "[[task]]\nname = \"t{index}\"\nperiod = \"1 s\"\nwcet = \"4 ns\"\n{rest}");
    }
}

fn servers(text: &mut String, rest: impl Fn(usize) -> String) {
    for index in 0..MANY {
        let _ = writeln!(text, "[[server]]\nname = \"v{index}\"\n{}", rest(index));
    }
}

fn head(more: &str) -> String {
    format!("[system]\nname = \"many\"\n{more}")
}

const SPORADIC: &str = "kind = \"sporadic\"\nbudget = \"1 us\"\nperiod = \"1 ms\"\npriority = 7\n";

/// The messages of a file, reason and remedy.
fn told(text: &str) -> Vec<(String, String)> {
    let begin = Instant::now();
    let found = file::read(text, "many.toml", &[]).expect_err("a broken file");
    // What a user waits for, too.
    assert!(found.to_string().contains("more of them"));
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    found.messages().map(|message| (message.reason, message.remedy)).collect()
}

/// How many errors of a file have this reason.
fn times_told(text: &str, reason: &str) -> usize {
    told(text).iter().filter(|(found, _)| found == reason).count()
}

#[test]
fn names_of_nothing_are_told_each_and_the_first_ones_with_the_nearest_name() {
    let mut text = head("");
    tasks(&mut text, "");
    servers(&mut text, |index| format!("{SPORADIC}tasks = [\"u{index}\"]"));
    let found = told(&text);
    // 100 times 10,000 names are looked at. Of the tasks, those that a server may mean are not told: t0 and others like u0 … u99.
    let unknown: Vec<_> =
        found.iter().filter(|(reason, _)| reason.starts_with("there is no task `u")).collect();
    assert_eq!(unknown.len(), MANY);
    assert_eq!(unknown[7], &("there is no task `u7` to serve".to_owned(), "did you mean `t7`?".to_owned()));
    assert_eq!(unknown.iter().filter(|(_, remedy)| remedy.starts_with("did you mean")).count(), 100);
    assert!(unknown[100..].iter().all(|(_, remedy)| remedy == "correct the name"));
    let lacking = found.iter().filter(|(reason, _)| reason.contains("needs a `priority`")).count();
    assert!((9_000..=MANY - 100).contains(&lacking), "{lacking}");
}

#[test]
fn servers_beside_an_assignment_are_told_each() {
    let mut text = head("priorities = \"deadline-monotonic\"\n");
    tasks(&mut text, "");
    servers(&mut text, |index| format!("{SPORADIC}tasks = [\"t{index}\"]"));
    assert_eq!(times_told(&text, "the assignment `deadline-monotonic` places no servers"), MANY);
}

#[test]
fn of_servers_that_look_at_every_task_each_but_the_first_is_told_once() {
    let mut text = head("");
    tasks(&mut text, "priority = 1");
    servers(&mut text, |index| format!("kind = \"dual-priority\"\ntasks = [\"soft{index}\"]"));
    let alone = "dual-priority serves all soft tasks of its CPU, beside no other server";
    assert_eq!(times_told(&text, alone), MANY - 1);
}

#[test]
fn keys_and_headers_that_are_given_twice_are_told_each() {
    let mut text = head("");
    tasks(&mut text, "priority = 1\nperiod = \"2 s\"");
    assert_eq!(times_told(&text, "`period` is given twice"), MANY);
}

#[test]
fn links_and_sections_of_nothing_are_told_each() {
    let mut text = head("");
    tasks(&mut text, "priority = 1\n[[task.section]]\nresource = \"x\"\nfrom = \"0 ns\"\nlength = \"1 ns\"");
    for index in 0..MANY {
        let _ = writeln!(text, "[[resource]]\nname = \"r{index}\"");
        let _ = writeln!(text, "[[link]]\nname = \"l{index}\"\nfrom = \"t{index}\"\nto = [\"y\"]");
    }
    let found = told(&text);
    assert_eq!(found.iter().filter(|(reason, _)| reason == "there is no resource `x`").count(), MANY);
    assert_eq!(found.iter().filter(|(reason, _)| reason == "there is no task `y`").count(), MANY);
}

#[test]
fn a_deep_chain_of_schedulers_with_sections_is_a_system() {
    let mut text = head("");
    tasks(&mut text, "priority = 1\n[[task.section]]\nresource = \"r\"\nfrom = \"0 ns\"\nlength = \"1 ns\"");
    text += "[[resource]]\nname = \"r\"\n";
    for index in 0..MANY {
        let parent =
            index.checked_sub(1).map_or_else(String::new, |parent| format!("parent = \"n{parent}\"\n"));
        let _ = writeln!(
            text,
            "[[scheduler]]\nname = \"n{index}\"\norder = \"fixed-priority\"\npriority = 2\ntasks = [\"t{index}\"]\n{parent}"
        );
    }
    let begin = Instant::now();
    let (system, _) = file::read(&text, "many.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert_eq!((system.tasks().len(), system.servers().len()), (MANY, MANY));
}
