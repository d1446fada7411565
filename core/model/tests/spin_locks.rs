//! Spin locks across processors: what the file says and what is refused, to the unit (decision 0018).

use horolog_model::{CpuId, Priority, SpinLevel, System, file};

/// Two CPUs, and on CPU 0 `low` (priority 2), `mid` (5) and `high` (8); `mid` and `far` on CPU 1 use the map.
const FILE: &str = r#"
[system]
name = "spin"
[platform]
cpus = 2
[[resource]]
name = "map"
protocol = "fslm"
[[spin_priority]]
cpu = 0
priority = "ceiling"
[[task]]
name = "low"
cpu = 0
period = "40 ms"
wcet = "1 ms"
priority = 2
[[task]]
name = "mid"
cpu = 0
period = "20 ms"
wcet = "2 ms"
priority = 5
[[task.section]]
resource = "map"
from = "0 ms"
length = "1 ms"
[[task]]
name = "high"
cpu = 0
period = "10 ms"
wcet = "1 ms"
priority = 8
[[task]]
name = "far"
cpu = 1
period = "10 ms"
wcet = "1 ms"
priority = 1
[[task.section]]
resource = "map"
from = "0 ms"
length = "1 ms"
"#;

fn read(text: &str, sets: &[&str]) -> Result<System, String> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    file::read(text, "spin.toml", &sets).map(|(system, _)| system).map_err(|errors| errors.to_string())
}

#[track_caller]
fn refused(sets: &[&str], words: &[&str]) {
    let error = read(FILE, sets).expect_err(words[0]);
    for word in words {
        assert!(error.contains(word), "{word}: {error}");
    }
}

/// Each policy but `count`; of a task that uses no spin lock each is right.
#[test]
fn an_overrun_policy_beside_a_spin_lock_is_refused_at_its_place() {
    for policy in ["skip", "demote", "stop", "drop"] {
        let set = format!("task.mid.overrun={policy}");
        refused(&[&set], &["overrun policy beside a spin lock", "--set:1:18", "help: remove `overrun`"]);
        assert!(read(FILE, &[&format!("task.low.overrun={policy}")]).is_ok(), "{policy}");
    }
    assert!(read(FILE, &["task.mid.overrun=count"]).is_ok());
    let local = FILE.replace("protocol = \"fslm\"\n[[spin_priority]]\ncpu = 0\npriority = \"ceiling\"\n", "");
    let local = local.replace("name = \"far\"\ncpu = 1", "name = \"far\"\ncpu = 0");
    assert!(read(&local, &["task.mid.overrun=stop"]).is_ok(), "a local section");
}

/// The numbers that are named are the two outermost ones that are right.
#[test]
fn a_spin_priority_out_of_range_is_told_with_the_numbers_that_are_right() {
    let set = |priority: i64| read(FILE, &[&format!("spin_priority.#1.priority={priority}")]);
    assert!(set(5).is_ok() && set(8).is_ok());
    for outside in [4, 9] {
        let error = set(outside).expect_err("outside");
        assert!(error.contains("goes from 5 (the most important user of a global resource) to 8"), "{error}");
        assert!(error.contains("`\"highest\"` or a number from 5 to 8"), "{error}");
    }
    // The most important task uses it: one number is right.
    let alone = ["task.high.priority=4", "spin_priority.#1.priority=6"];
    refused(&alone, &["is 5 alone", "`\"highest\"` or 5"]);
    assert!(read(FILE, &["task.high.priority=4", "spin_priority.#1.priority=5"]).is_ok());
}

/// The CPU stands in the place of a name: in `--set`, and in the path that a message gives.
#[test]
fn a_spin_priority_is_called_by_its_cpu() {
    let level = |sets: &[&str]| read(FILE, sets).map(|system| system.spin_priorities()[0].level);
    assert_eq!(level(&["spin_priority.0.priority=7"]), Ok(SpinLevel::At(Priority::new(7))));
    assert_eq!(level(&["spin_priority.0.priority=highest"]), Ok(SpinLevel::Highest));
    refused(&["spin_priority.1.priority=7"], &["no spin_priority is called `1`", "did you mean `0`?"]);
    refused(&["spin_priority.0=7"], &["a whole spin_priority", "as in `spin_priority.0.priority`"]);
    refused(&["resource.map=7"], &["as in `resource.map.at_exhaustion`"]);
    let path = |text: &str| {
        let error = file::read(text, "spin.toml", &[]).expect_err("9 is too much");
        error.messages().next().and_then(|message| message.path)
    };
    let wrong = FILE.replace("\"ceiling\"", "9");
    assert_eq!(path(&wrong).as_deref(), Some("spin_priority.0.priority"));
    let twice = format!("{wrong}[[spin_priority]]\ncpu = 0\npriority = 8\n");
    assert_eq!(path(&twice).as_deref(), Some("spin_priority.#1.priority"));
}

/// `FILE` with Audsley's search in place of priorities.
fn searched() -> String {
    let lines = FILE.lines().filter(|line| !line.starts_with("priority = ") || line.contains("ceiling"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.replace("name = \"spin\"\n", "name = \"spin\"\npriorities = \"audsley\"\n")
}

/// It needs bounds that do not depend on the order of more important tasks: those at the highest spin priority.
#[test]
fn a_search_for_priorities_beside_a_low_spin_priority_is_refused_at_its_place() {
    let text = searched();
    let error = read(&text, &[]).expect_err("below the highest");
    for word in ["Audsley's search cannot place", "spin.toml:12:12", "use `\"highest\"`, or `priorities"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(read(&text, &["spin_priority.0.priority=highest"]).is_ok());
    assert!(read(&text, &["system.priorities=deadline-monotonic"]).is_ok());
    // Nobody of that CPU spins.
    let elsewhere = text.replace("name = \"mid\"\ncpu = 0", "name = \"mid\"\ncpu = 1");
    assert!(read(&elsewhere, &[]).is_ok());
}

/// Local ceilings: fixed priorities, preemptive users, and nothing else across processors beside.
#[test]
fn what_helped_sections_need_is_told() {
    let text =
        FILE.replace("fslm", "mrsp").replace("[[spin_priority]]\ncpu = 0\npriority = \"ceiling\"\n", "");
    let with = |text: &str, sets: &[&str]| read(text, sets);
    let system = with(&text, &[]).expect("it is right");
    assert!(system.resources()[0].protocol.helps() && system.has_spin_locks());
    let refused = |text: &str, sets: &[&str], words: &str| {
        let error = with(text, sets).expect_err(words);
        assert!(error.contains(words), "{words}: {error}");
    };
    let other = format!("{text}[[resource]]\nname = \"log\"\nprotocol = \"msrp\"\n");
    refused(&other, &[], "`msrp` and `mrsp` are not there in one system yet");
    refused(&text, &["system.policy=edf"], "`mrsp` needs fixed priorities");
    refused(&text, &["system.priorities=audsley"], "none knows of `mrsp` yet");
    let rigid = text.replace("name = \"far\"", "name = \"far\"\npreemption = \"non-preemptive\"");
    refused(&rigid, &[], "this job cannot be preempted anywhere");
    let spun = format!("{text}[[spin_priority]]\ncpu = 0\npriority = \"highest\"\n");
    refused(&spun, &[], "no resource has the protocol `fslm`");
}

/// Own priorities: fixed ones that do not depend on an order yet to be found; other spin locks may be beside.
#[test]
fn what_preemptable_spinning_needs_is_told() {
    let head = "[[spin_priority]]\ncpu = 0\npriority = \"ceiling\"\n";
    let text = FILE.replace("fslm", "preemptable-fifo").replace(head, "");
    let system = read(&text, &[]).expect("it is right");
    assert!(system.resources()[0].protocol.asks_anew() && system.has_spin_locks());
    assert_eq!(read(&file::print(&system), &[]).as_ref(), Ok(&system));
    for beside in ["msrp", "fslm", "phase-fair", "ceiling"] {
        let other = format!("{text}[[resource]]\nname = \"log\"\nprotocol = \"{beside}\"\n");
        assert!(read(&other, &[]).is_ok(), "{beside}");
    }
    let refused = |text: &str, sets: &[&str], words: &str| {
        let error = read(text, sets).expect_err(words);
        assert!(error.contains(words), "{words}: {error}");
    };
    refused(&text, &["system.policy=edf"], "`preemptable-fifo` needs fixed priorities");
    refused(&text, &["system.priorities=audsley"], "none knows of `preemptable-fifo` yet");
    let other = format!("{text}[[resource]]\nname = \"log\"\nprotocol = \"mpcp\"\n");
    refused(&other, &[], "are not there in one system yet");
    refused(&format!("{text}{head}"), &[], "no resource has the protocol `fslm`");
}

/// The CPU of a resource of `dpcp` is its own, and no other resource has one.
#[test]
fn sections_elsewhere_need_a_cpu_of_their_own() {
    let text = |cpu: &str, protocol: &str, more: &str| {
        format!(
            "[system]\nname = \"s\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"map\"\nprotocol = \"{protocol}\"\n{cpu}\
             [[task]]\nname = \"t\"\ncpu = 0\npriority = 1\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n{more}\
             [[task.section]]\nresource = \"map\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n"
        )
    };
    let system = read(&text("cpu = 2\n", "dpcp", ""), &[]).expect("it is right");
    assert_eq!(system.resources()[0].cpu, Some(CpuId(2)));
    assert_eq!(read(&file::print(&system), &[]).as_ref(), Ok(&system));
    let refused = |text: String, words: &[&str]| {
        let error = read(&text, &[]).expect_err("it is wrong");
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    refused(
        text("", "dpcp", ""),
        &["the sections of `map` execute on the CPU of the resource, and it names none"],
    );
    refused(text("cpu = 3\n", "dpcp", ""), &["CPU 3 is not among the platform's CPUs"]);
    refused(text("cpu = 0\n", "dpcp", ""), &["CPU 0 has the task `t`", "name a CPU without tasks"]);
    refused(text("cpu = 2\n", "mpcp", ""), &["sections of `mpcp` execute on the CPUs of their tasks"]);
    let rigid = "preemption = \"non-preemptive\"\n";
    refused(text("cpu = 2\n", "dpcp", rigid), &["a section of `dpcp` executes on another processor"]);
}
