//! What a bad `--set` is told: a caret into its own text.

use horolog_model::file;

const FILE: &str = r#"
[system]
name = "camera"

[[task]]
name = "network"
period = "10 ms"
deadline = "6 ms"
wcet = "1.5 ms"
priority = 90

[[task]]
name = "video"
period = "40 ms"
priority = 60
preemption = "deferred"
segments = [
  { name = "encode", wcet = "2 ms", next = ["queue"] },
  { name = "queue", wcet = "3 ms" },
]

[[task]]
name = "archive"
period = "200 ms"
priority = 10
preemption = "deferred"
segments = ["2 ms", "3 ms"]
"#;

/// Asserts one message: its place in the override, and what reason and remedy start with.
#[track_caller]
fn says(set: &str, column: usize, reason: &str, remedy: &str) {
    let errors = file::read(FILE, "system.toml", &[set.to_owned()]).expect_err(set);
    let messages: Vec<_> = errors.messages().collect();
    assert_eq!(messages.len(), 1, "{errors}");
    assert_eq!((messages[0].file.as_deref(), messages[0].line), (Some("--set"), Some(1)), "{errors}");
    assert_eq!(messages[0].column, Some(column), "{errors}");
    assert!(messages[0].reason.starts_with(reason), "{errors}");
    assert!(messages[0].remedy.starts_with(remedy), "{errors}");
}

#[test]
fn names_that_do_not_exist() {
    says("task.vide.wcet=3ms", 6, "no task is called `vide`", "did you mean `video`?");
    says("task.#9.wcet=1ms", 6, "no task is called `#9`", "known here: `network`, `video`, `archive`");
    says("task.video.segments.encod.wcet=3ms", 21, "no segment is called `encod`", "did you mean `encode`?");
    says(
        "interference.card.cpu=1",
        14,
        "no interference is called `card`",
        "the file has none: add it, or correct the name",
    );
    says("tasks.network.wcet=1ms", 1, "there is no section `tasks`", "did you mean `task`?");
    says("task.network.wcte=3ms", 14, "a task has no key `wcte`", "did you mean `wcet`?");
    says(
        "task.network.segments.one.wcet=3ms",
        14,
        "there is no `segments` to change a part of",
        "give it whole",
    );
}

#[test]
fn paths_that_lead_nowhere() {
    says("task.network.wcet", 1, "there is no `=`", "write a path");
    says("=3", 1, "a name is missing in the path", "write a path");
    says("task..wcet=3ms", 6, "a name is missing in the path", "write a path");
    says("task.\"net=3", 6, "the quoted name does not end", "add the closing quote");
    says("system=3", 1, "the path names a whole section", "name a value");
    says(
        "task.network=3",
        6,
        "the path names a whole task",
        "name a value of it, as in `task.network.period`",
    );
    says("task.network.wcet.x=3ms", 19, "`wcet` is text and holds no `x`", "shorten the path");
}

#[test]
fn values_that_do_not_fit() {
    says(
        "task.network.wcet=3",
        19,
        "this is an integer where a duration belongs",
        "write the unit: `\"3 ms\"`",
    );
    says("task.network.wcet=", 18, "the value is missing", "write one after the `=`");
    says("task.network.wcet=3 min", 19, "`3 min` is not a duration", "write `\"180 s\"`");
    says("task.network.wcet=3 ticks", 19, "`ticks` is not a unit of time", "use ns, us");
    says("platform.cpus=[1,", 18, "this is not a TOML value: unclosed array", "close brackets");
    says("system.policy=edv", 15, "`edv` is not a word that is known here", "did you mean `edf`?");
    says("task.network.deadline=1ms", 23, "the deadline 1 ms is below the wcet 1.5 ms", "raise the deadline");
}

#[test]
fn a_contradiction_shows_the_file_too() {
    let errors =
        file::read(FILE, "system.toml", &["task.network.separation=5ms".into()]).expect_err("two arrivals");
    let said = errors.to_string();
    assert!(said.contains("--set:1:25") && said.contains("system.toml:7:10"), "{said}");
}

#[test]
fn several_bad_overrides_are_told_at_once() {
    let sets = ["task.x.wcet=1ms".to_owned(), "task.network.wcet=1".to_owned()];
    let errors = file::read(FILE, "system.toml", &sets).expect_err("both");
    assert_eq!(errors.len(), 2, "{errors}");
}

#[test]
fn segments_are_named_by_their_place() {
    for set in ["task.archive.segments.2=7ms", "task.archive.segments.#2=\"7 ms\""] {
        let (system, _) = file::read(FILE, "system.toml", &[set.into()]).expect(set);
        assert_eq!(system.tasks()[2].wcet.to_string(), "9 ms");
    }
}

#[test]
fn a_later_override_wins_and_bodies_can_be_made() {
    let sets =
        ["task.network.wcet=1ms", "task.network.wcet=2ms", "task.network.body.spin=0.5"].map(String::from);
    let (system, _) = file::read(FILE, "system.toml", &sets).expect("valid");
    assert_eq!(system.tasks()[0].wcet.to_string(), "2 ms");
    assert!(system.tasks()[0].body.is_some());
}
