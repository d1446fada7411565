//! Who else wants the processors is told before a run: on standard error, in the JSON, and by `doctor --for run`.

mod common;

use common::{Done, HOROLOG, PATIENT, done, folder, real_time};
use std::process::{Child, Command, Stdio};

/// A program on CPU 1 under a class that `chrt` is told; `None`, said aloud, without `chrt`.
fn rival(class: &[&str]) -> Option<Child> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1", "chrt"]).args(class).args(["sleep", "60"]).stdin(Stdio::null());
    match command.spawn() {
        Ok(child) => {
            // Until it has become the program.
            let name = format!("/proc/{}/comm", child.id());
            while std::fs::read_to_string(&name).is_ok_and(|name| name.trim() != "sleep") {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Some(child)
        }
        Err(error) => {
            println!("SKIPPED: taskset: {error}");
            None
        }
    }
}

fn end(mut child: Child) {
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
}

/// One as important as the task (90) is told, one below it is not, and nothing without a conflict.
#[test]
fn foreign_real_time_threads_are_told() {
    let Some(_alone) = real_time() else { return };
    let (_place, file) = folder(PATIENT);
    let words = ["run", &file, "--for", "200ms", "--seed", "1", "--format", "json"];
    for (class, policy, is_told) in [
        (["-f", "90"], "SCHED_FIFO", true),
        (["-r", "91"], "SCHED_RR", true),
        (["-f", "89"], "SCHED_FIFO", false),
    ] {
        let Some(child) = rival(&class) else { return };
        let id = child.id();
        let (run, doctor) =
            (horolog_done(&words), horolog_done(&["doctor", "--for", "run", "--format", "json"]));
        end(child);
        let json = run.json();
        let none = Vec::new();
        let conflicts = json["conflicts"].as_array().unwrap_or(&none);
        let mine: Vec<_> = conflicts.iter().filter(|conflict| conflict["process"] == id).collect();
        let told = format!("warning: sleep (process {id}, thread {id}) is {policy} {} on cpu 1", class[1]);
        assert_eq!((mine.len(), run.err.contains(&told)), (usize::from(is_told), is_told), "{run:?}");
        if is_told {
            assert_eq!((&mine[0]["name"], &mine[0]["policy"]), (&"sleep".into(), &policy.into()), "{json}");
            assert!(
                mine[0]["remedy"].as_str().is_some_and(|text| text.contains("taskset -pc CPUS")),
                "{json}"
            );
            assert_eq!(mine[0]["cpus"], serde_json::json!([1]), "{json}");
        }
        // The doctor knows no priorities of tasks: each is told.
        let facts = doctor.json();
        let fact =
            facts["facts"].as_array().and_then(|all| all.iter().find(|fact| fact["name"] == "conflicts"));
        let fact = fact.expect("the fact").clone();
        let named = format!("process {id}, thread {id}");
        assert!(
            fact["state"] == "limited" && fact["detail"].as_str().is_some_and(|text| text.contains(&named)),
            "{fact}"
        );
    }
    let after = horolog_done(&["doctor", "--format", "json"]).json();
    assert!(after["facts"].as_array().is_some_and(|all| all.iter().all(|fact| fact["name"] != "conflicts")));
}

#[test]
fn another_command_is_told() {
    let Some(_alone) = real_time() else { return };
    let (_place, file) = folder(PATIENT);
    let mut other = Command::new(HOROLOG);
    other.args(["run", &file, "--for", "20s", "--quiet"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut other = other.spawn().expect("it starts");
    let told = format!("another command of horolog is under way: horolog (process {})", other.id());
    let is_seen = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        horolog_done(&["doctor", "--for", "run"]).out.contains(&told)
    });
    let run = horolog_done(&["run", &file, "--for", "100ms", "--seed", "1"]);
    Command::new("kill").args(["-INT", &other.id().to_string()]).status().expect("kill is a program");
    other.wait().expect("it ends");
    assert!(is_seen && run.err.contains(&told), "{run:?}");
}

fn horolog_done(words: &[&str]) -> Done {
    let done = done(words.iter().copied());
    done.no_panic();
    done
}
