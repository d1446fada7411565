//! A value that cannot be read hides no other error, and brings no error that is not there.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_model::{Message, file};
use std::fs;
use std::path::Path;

/// What is told about a file, as path and reason.
fn told(text: &str) -> Vec<(String, String)> {
    let pair = |message: Message| (message.path.unwrap_or_default(), message.reason);
    match file::read(text, "some.toml", &[]) {
        Ok(_) => Vec::new(),
        Err(found) => {
            // Rendering looks at every place.
            assert!(!found.to_string().is_empty());
            found.messages().map(pair).collect()
        }
    }
}

/// The paths that are told, in their order.
fn paths(text: &str) -> Vec<String> {
    told(text).into_iter().map(|(path, _)| path).collect()
}

const HEAD: &str = "[system]\nname = \"some\"\n[platform]\ncpus = [0, 1]\n";

fn with(rest: &str) -> String {
    format!("{HEAD}{rest}")
}

#[test]
fn errors_of_a_task_are_told_beside_a_period_that_cannot_be_read() {
    let task =
        "[[task]]\nname = \"control\"\nperiod = \"abc\"\ncpu = 7\npriority = \"high\"\nwect = \"1 ms\"\n";
    assert_eq!(
        paths(&with(task)),
        ["task.control.period", "task.control.cpu", "task.control.priority", "task.control.wect"]
    );
    let task = "[[task]]\nname = \"control\"\nperiod = \"abc\"\ncpu = 0\nwcet = \"2 ms\"\nbcet = \"3 ms\"\n";
    let reasons: Vec<String> = told(&with(task)).into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(
        reasons,
        [
            "under fixed priorities a task needs a `priority`",
            "`abc` is not a duration",
            "the bcet 3 ms is above the wcet 2 ms"
        ]
    );
}

#[test]
fn what_hangs_on_the_value_is_not_told() {
    let rest = "cpu = 0\npriority = 1\nwcet = \"2 ms\"\ndeadline = \"20 ms\"\n";
    for period in ["\"abc\"", "3", "\"10\"", "[]", "true"] {
        let text = with(&format!("[[task]]\nname = \"control\"\nperiod = {period}\n{rest}"));
        assert_eq!(paths(&text), ["task.control.period"], "{period}");
    }
    let wcet = "[[task]]\nname = \"control\"\nperiod = \"10 ms\"\ncpu = 0\npriority = 1\nwcet = true\nbcet = \"3 ms\"\n";
    let text = with(&format!("{wcet}execution = {{ samples = [\"1 ms\", \"9 ms\"] }}\n"));
    // Whatever the wcet is, one sample is below the bcet.
    assert_eq!(paths(&text), ["task.control.wcet", "task.control.execution.samples.#1"]);
}

#[test]
fn a_server_of_an_unknown_kind_has_its_other_values_read() {
    let task = "[[task]]\nname = \"soft\"\nseparation = \"10 ms\"\nwcet = \"1 ms\"\ncpu = 0\n";
    let server = "[[server]]\nname = \"events\"\nkind = \"sporadc\"\ntasks = [\"soft\", \"sotf\"]\ncpu = 9\nbudget = 5\nperiod = \"0 ms\"\n";
    assert_eq!(
        paths(&with(&format!("{task}{server}"))),
        [
            "server.events.kind",
            "server.events.tasks.#1",
            "server.events.tasks.#2",
            "server.events.cpu",
            "server.events.budget"
        ]
    );
    let server = "[[server]]\nname = \"events\"\nkind = \"sporadic\"\ntasks = [\"soft\"]\ncpu = 9\nbudget = 5\nperiod = \"0 ms\"\npriority = 1\n";
    assert_eq!(
        paths(&with(&format!("{task}{server}"))),
        ["server.events.tasks.#1", "server.events.cpu", "server.events.budget", "server.events.period"]
    );
}

#[test]
fn every_kind_of_table_tells_two_errors_where_one_cannot_be_read() {
    let task = "[[task]]\nname = \"control\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\ncpu = 0\npriority = 5\n";
    for (table, expected) in [
        (
            "[[scheduler]]\nname = \"tree\"\ncpu = 9\norder = \"edf\"\npriority = \"high\"\ntasks = [\"control\"]\n",
            &["scheduler.tree.cpu", "scheduler.tree.priority"][..],
        ),
        (
            "[[interrupt]]\nname = \"card\"\ncpu = 9\nseparation = \"1 ms\"\ncost = 4\n",
            &["interrupt.card.cpu", "interrupt.card.cost"],
        ),
        (
            "[[device]]\nname = \"disk\"\ncpu = 9\nservice = \"interrupt\"\nseparation = \"1 ms\"\ncost = 4\nring = 0\n",
            &["device.disk.cpu", "device.disk.cost", "device.disk.ring"],
        ),
        (
            "[[mode]]\nname = \"slow\"\nat = 3\nactive = [\"contrl\"]\n",
            &["mode.slow.at", "mode.slow.active.#1"],
        ),
        (
            "[[interference]]\nname = \"load\"\ncpu = 9\nutilisation = 2\nperiod = 4\n",
            &["interference.load.cpu", "interference.load.utilisation", "interference.load.period"],
        ),
        (
            "[[link]]\nname = \"\"\nfrom = \"control\"\nto = [\"contrl\"]\nsize = \"big\"\n",
            &["link.#1.name", "link.#1.to.#1", "link.#1.size"],
        ),
        (
            "[[spin_priority]]\ncpu = 9\npriority = \"hghest\"\n",
            &["spin_priority.9.cpu", "spin_priority.9.priority"],
        ),
    ] {
        let mut found = paths(&with(&format!("{task}{table}")));
        found.retain(|path| !path.starts_with("task."));
        for path in expected {
            assert!(found.iter().any(|one| one == path), "{path} is not among {found:?}");
        }
    }
}

/// The text with `value` where the bytes of a value are.
fn replaced(text: &str, range: &std::ops::Range<usize>, value: &str) -> String {
    format!("{}{value}{}", &text[..range.start], &text[range.end..])
}

/// Every example that reads.
fn examples() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("broken") && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let text = fs::read_to_string(&path).unwrap();
                if file::read(&text, "example.toml", &[]).is_ok() {
                    found.push((path.display().to_string(), text));
                }
            }
        }
    }
    found.sort();
    assert!(found.len() >= 15, "{} examples", found.len());
    found
}

/// Whether `path` is `at`, or a part of it.
fn is_within(path: &str, at: &str) -> bool {
    path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[test]
fn a_value_that_cannot_be_read_brings_no_error_that_is_not_there() {
    let mut wrong = Vec::new();
    for (name, text) in examples() {
        let (_, source) = file::read(&text, &name, &[]).unwrap();
        for (path, written) in source.values() {
            let Some(range) = source.range(path) else { continue };
            // A header and a whole table are other things; a list of CPUs has no places.
            let is_item = |key: &str| source.range(&format!("{path}.{key}")).is_some();
            if path.matches('.').count() < 2
                || written.starts_with("[[")
                || ["name", "wcet", "resource"].into_iter().any(is_item)
            {
                continue;
            }
            for (at, reason) in told(&replaced(&text, &range, "true")) {
                // Without a name it is told by its place.
                let item =
                    ["name", "cpu"].into_iter().find_map(|key| path.strip_suffix(key)?.strip_suffix('.'));
                let is_by_place = item.is_some_and(|item| {
                    at.starts_with(item.rsplit_once('.').map_or(item, |(list, _)| list))
                        && (at.contains(".#") || at.ends_with(".name"))
                });
                if !is_within(&at, path) && !is_by_place {
                    wrong.push(format!("{name}: {path} = true: {at}: {reason}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} errors that are not there:\n{}", wrong.len(), wrong.join("\n"));
}

/// What only a large number makes right is no error: the CPU of another task, a priority above all.
#[test]
fn numbers_beyond_the_first_ones_may_be_meant() {
    let head = "[system]\nname = \"some\"\n[platform]\ncpus = 8\n";
    let task = |name: &str, cpu: &str, priority: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = {priority}\n"
        )
    };
    let section =
        |name: &str| format!("[[task.section]]\nresource = \"{name}\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n");
    let bus = "[[resource]]\nname = \"bus\"\n";
    let text = [head, bus, &task("a", "5", "1"), &section("bus"), &task("b", "\"5\"", "2"), &section("bus")];
    assert_eq!(paths(&text.concat()), ["task.b.cpu"]);
    let map =
        "[[resource]]\nname = \"map\"\nprotocol = \"fslm\"\n[[spin_priority]]\ncpu = 0\npriority = 50\n";
    let text = [
        head,
        map,
        &task("a", "0", "5"),
        &section("map"),
        &task("b", "0", "10"),
        &task("c", "0", "\"90\""),
        &task("d", "1", "3"),
        &section("map"),
    ];
    assert_eq!(paths(&text.concat()), ["task.c.priority"]);
    // The third CPU is neither.
    let text = [
        head,
        bus,
        &task("a", "5", "1"),
        &section("bus"),
        &task("b", "\"5\"", "2"),
        &section("bus"),
        &task("c", "6", "2"),
        &section("bus"),
    ];
    assert_eq!(paths(&text.concat()), ["task.b.cpu", "task.c.section.#1.resource"]);
}

/// A name that cannot be read hides nothing of its own item.
#[test]
fn errors_of_an_item_are_told_beside_its_own_unreadable_name() {
    let task = "[[task]]\nname = 7\ncpu = 0\nperiod = \"0 ms\"\nbcet = \"5 ms\"\nwcet = \"2 ms\"\ndeadline = \"1 ms\"\npriority = 1\n";
    let reasons: Vec<String> = told(&with(task)).into_iter().map(|(_, reason)| reason).collect();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert!(reasons[1].contains("period is zero") && reasons[2].contains("bcet"), "{reasons:?}");
    assert!(reasons[3].contains("deadline 1 ms is below the wcet"), "{reasons:?}");
}

/// Two values of one item that only fit each other in one way: an item that was not read is not told as missing.
#[test]
fn an_item_that_is_not_read_is_there_all_the_same() {
    let server = "[[task]]\nname = \"r\"\ncpu = 0\narrivals = [\"1 ms\"]\nwcet = \"1 ms\"\n\
        [[server]]\nname = \"radio\"\ncpu = 0\nkind = \"deferable\"\ntasks = [\"r\"]\nbudget = \"2 ms\"\nperiod = \"10 ms\"\npriority = 50\n\
        low_priority = \"nowhere\"\n\
        [[mode]]\nname = \"m\"\nat = [\"40 ms\"]\n[[mode.server]]\nname = \"radio\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\n";
    assert_eq!(paths(&with(server)), ["server.radio.kind", "server.radio.low_priority"]);
}

/// Where a section may begin is known from the others: durations of the file are tried, too.
#[test]
fn a_duration_that_cannot_be_read_may_be_one_of_the_file() {
    let section = |from: &str| {
        with(&format!(
            "[[resource]]\nname = \"bus\"\n[[resource]]\nname = \"nope\"\n\
             [[task]]\nname = \"c\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"3 ms\"\npriority = 9\n\
             [[task.section]]\nresource = \"nope\"\nfrom = {from}\nlength = \"1 ms\"\n\
             [[task.section]]\nresource = \"bus\"\nfrom = \"1 ms\"\nlength = \"1 ms\"\n"
        ))
    };
    assert_eq!(told(&section("\"2 ms\"")), []);
    assert_eq!(told(&section("2")).len(), 1, "{:?}", told(&section("2")));
}

/// Errors of tasks that say no CPU are reported, whatever the platform or a cluster means.
#[test]
fn cpus_or_tasks_of_a_cluster_that_cannot_be_read_hide_nothing() {
    let task = |name: &str, wcet: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\nwcet = \"{wcet}\"\nbcet = \"3 ms\"\npriority = 1\n"
        )
    };
    let platform = |cpus: &str| format!("[system]\nname = \"some\"\n[platform]\ncpus = {cpus}\n");
    for cpus in ["true", "\"0, 1\"", "[\"0\", 1]", "[0, -1]", "1.5"] {
        let found = paths(&format!("{}{}", platform(cpus), task("a", "2 ms")));
        assert_eq!(found, ["platform.cpus", "task.a.bcet"], "{cpus}");
        let found = paths(&format!("{}{}", platform(cpus), task("a", "3 ms")));
        assert_eq!(found, ["platform.cpus"], "{cpus}");
    }
    for tasks in ["3", "\"a\"", "[\"a\", 7]", "[true]"] {
        for section in ["[[cluster]]", "[[scheduler]]"] {
            let cluster = format!(
                "{section}\nname = \"c\"\ncpus = [0, 1]\norder = \"fixed-priority\"\ntasks = {tasks}\n"
            );
            let found = paths(&with(&format!("{cluster}{}", task("a", "2 ms"))));
            assert!(
                found[0].starts_with(&format!("{}.c.tasks", &section[2..section.len() - 2])),
                "{found:?}"
            );
            assert_eq!(found[1..], ["task.a.bcet"], "{section} {tasks}");
        }
    }
    // The name is what is wrong, not the CPU that the task does not say.
    let cluster = |name: &str| {
        with(&format!(
            "[[cluster]]\nname = \"c\"\ncpus = [0, 1]\norder = \"fixed-priority\"\ntasks = [\"{name}\", \"b\"]\n{}{}",
            task("alpha", "3 ms"),
            task("b", "2 ms")
        ))
    };
    assert_eq!(paths(&cluster("alpa")), ["cluster.c.tasks.#1", "task.b.bcet"]);
    assert_eq!(paths(&cluster("alpha")), ["task.b.bcet"]);
    assert_eq!(paths(&cluster("beyond")), ["cluster.c.tasks.#1", "task.alpha.cpu", "task.b.bcet"]);
}

#[test]
fn both_values_of_a_body_with_two_keys_are_read() {
    let body = |body: &str| {
        let task = "[[task]]\nname = \"a\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
        paths(&with(&format!("{task}body = {{ {body} }}\n")))
    };
    assert_eq!(
        body("spin = true, command = 3"),
        ["task.a.body.spin", "task.a.body.command", "task.a.body.command"]
    );
    assert_eq!(body("spin = \"1 ms\", command = [\"x\"]"), ["task.a.body.command"]);
    assert_eq!(
        body("spin = \"1\", library = 2, symbol = 3, arguments = [4]"),
        [
            "task.a.body.spin",
            "task.a.body.library",
            "task.a.body.library",
            "task.a.body.symbol",
            "task.a.body.arguments.#1"
        ]
    );
}

/// Beside a name that cannot be read, errors of many other items are reported.
#[test]
fn a_name_that_cannot_be_read_hides_nothing_in_a_large_file() {
    let mut text = String::new();
    for number in 0..100 {
        text.push_str(&format!(
            "[[task]]\nname = \"t{number}\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"{} ns\"\nbcet = \"5 ns\"\npriority = {number}\n",
            if number == 50 { 4 } else { 5 }
        ));
    }
    let named = "[[task]]\nname = 7\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
    assert_eq!(paths(&with(&format!("{text}{named}"))), ["task.t50.bcet", "task.#101.name"]);
    let server = "[[server]]\nname = \"s\"\nkind = \"background\"\ncpu = 0\ntasks = [3]\n";
    assert_eq!(paths(&with(&format!("{text}{server}"))), ["task.t50.bcet", "server.s.tasks.#1"]);
}

#[test]
fn a_priority_is_asked_of_every_server_whose_kind_may_stay() {
    let server = |policy: &str, kind: &str, priority: &str| {
        let text = format!(
            "[system]\nname = \"some\"\npolicy = \"{policy}\"\n[platform]\ncpus = [0]\n\
             [[task]]\nname = \"a\"\nseparation = \"10 ms\"\nwcet = \"1 ms\"\n\
             [[server]]\nname = \"s\"\nkind = \"{kind}\"\nbudget = \"1 ms\"\nperiod = \"20 ms\"\n{priority}tasks = [\"a\"]\n"
        );
        paths(&text)
    };
    for kind in ["polling", "deferrable", "sporadic", "priority-exchange"] {
        assert_eq!(server("fixed-priority", kind, ""), ["server.s.priority"], "{kind}");
        assert_eq!(server("edf", kind, ""), ["server.s.kind"], "{kind}");
        // One that is given and cannot be read is told beside it.
        let given = server("edf", kind, "priority = \"high\"\n");
        assert!(given.contains(&"server.s.priority".to_owned()), "{kind}: {given:?}");
    }
    // Another thing that is wrong with the kind leaves the question.
    assert!(server("fixed-priority", "sporadci", "").contains(&"server.s.kind".to_owned()));
}
