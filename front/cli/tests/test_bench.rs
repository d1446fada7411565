//! `horolog experiment run` on the test bench of aperiodic service: end to end, refused files, and a run that is killed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn horolog(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horolog"));
    command.args(words).stdin(Stdio::null());
    command
}

fn output(words: &[&str]) -> Output {
    horolog(words).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const SMALL: &str = r#"
[experiment]
name     = "a small one"
sets     = SETS
policies = ["background", "sporadic", "dual-priority"]
[hard]
tasks = [2, 4]
load  = { from = 30, to = 50, step = 20 }
hyperperiod     = "120 ms"
shortest_period = "10 ms"
longest_period  = "40 ms"
[soft]
tasks = 1
load  = 20
"#;

fn write_small(folder: &Path, sets: u32) -> String {
    let path = folder.join("small.toml");
    std::fs::write(&path, SMALL.replace("SETS", &sets.to_string())).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn an_experiment_of_a_user_runs_and_leaves_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = write_small(folder.path(), 2);
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let run = output(&["experiment", "run", &file, "--out", out, "--seed", "5"]);
    let said = text(&run.stdout);
    assert_eq!(run.status.code(), Some(0), "{said}{}", text(&run.stderr));
    for words in [
        "hard deadlines missed under any policy",
        "holds (exact)",
        "SS: each budget is the largest safe one of its application",
        "simulated: mean soft response time",
        "hard load %",
        "a small one (seed 5)",
        "24 runs",
    ] {
        assert!(said.contains(words), "no `{words}` in\n{said}");
    }
    assert!(!said.contains("published"), "it was not published:\n{said}");
    assert!(text(&run.stderr).ends_with("holds: 1 of 1 checks hold (exit 0)\n"), "{}", text(&run.stderr));
    for name in [
        "runs.jsonl",
        "results.parquet",
        "a-small-one.json",
        "plots/simulated-response-by-hard-load.svg",
        "plots/simulated-switches-by-hard-tasks.svg",
    ] {
        let path = Path::new(out).join(name);
        assert!(path.metadata().is_ok_and(|file| file.len() > 100), "{name}");
    }
    let again = output(&["experiment", "run", &file, "--out", out]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("was made with the seed 5, not 1"), "{}", text(&again.stderr));
    let waits =
        output(&["experiment", "run", &file, "--out", out, "--seed", "5", "--when-exhausted", "wait"]);
    assert_eq!(waits.status.code(), Some(2));
    let said = text(&waits.stderr);
    assert!(said.contains("was made with --when-exhausted background, not wait"), "{said}");
    let seeds = output(&["experiment", "run", &file, "--seeds", "3"]);
    assert_eq!(seeds.status.code(), Some(2));
    assert!(text(&seeds.stderr).contains("--seeds is for aperiodic-1"), "{}", text(&seeds.stderr));
}

/// A budget that is too large makes hard jobs late; the last line says that this is why the status is 1.
#[test]
fn an_experiment_that_does_not_hold_says_so_in_its_last_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = write_small(folder.path(), 2);
    let large = std::fs::read_to_string(&file).expect("the file")
        + "[server]\nbudget = \"9 ms\"\nperiod = \"10 ms\"\n";
    std::fs::write(&file, large.replace("load  = 20", "load  = 300")).expect("written");
    let run = output(&["experiment", "run", &file, "--format", "json"]);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    assert!(text(&run.stderr).ends_with("no: 1 of 1 checks fails (exit 1)\n"), "{}", text(&run.stderr));
    let json: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!((json["schema"].as_str(), json["seed"].as_u64()), (Some("horolog.experiment/1"), Some(1)));
    assert_eq!(json["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(json["counts"]["disagree"], 1);
    assert!(json["source"].is_null() && json["facts"][0]["published"].is_null());
}

#[test]
fn a_bad_file_is_refused_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.toml");
    let bad =
        SMALL.replace("SETS", "2").replace("\"sporadic\"", "\"sporradic\"").replace("tasks = 1", "task = 1");
    std::fs::write(&path, bad).expect("written");
    let run = output(&["experiment", "run", path.to_str().expect("UTF-8")]);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    for words in
        ["bad.toml:5:27", "did you mean `sporadic`?", "[soft] has no key `task`", "`tasks` is missing"]
    {
        assert!(said.contains(words), "no `{words}` in\n{said}");
    }
    let unknown = output(&["experiment", "run", "aperiodic-3"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("aperiodic-1, aperiodic-2"), "{}", text(&unknown.stderr));
    let absent = output(&["experiment", "run", "absent.toml"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(text(&absent.stderr).contains("cannot read absent.toml"), "{}", text(&absent.stderr));
}

#[test]
fn a_killed_run_goes_on_and_comes_to_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = write_small(folder.path(), 60);
    let (killed, whole) = (folder.path().join("killed"), folder.path().join("whole"));
    let arguments = |out: &Path| -> Vec<String> {
        ["-q", "experiment", "run", &file, "--format", "json", "--out", out.to_str().expect("UTF-8")]
            .map(str::to_owned)
            .to_vec()
    };
    let words = arguments(&killed);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut child = horolog(&words).stdout(Stdio::null()).spawn().expect("it starts");
    let journal = killed.join("runs.jsonl");
    let begin = Instant::now();
    // It is killed somewhere in the middle; on a machine where it is faster, at its end.
    while journal.metadata().map_or(0, |file| file.len()) < 20_000
        && child.try_wait().expect("a child").is_none()
        && begin.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("a child");
    child.wait().expect("a child");
    let left = std::fs::read(&journal).expect("the journal").len();
    assert!(left >= 20_000, "{left}");
    let result = |out: &Path| {
        let words = arguments(out);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let run = output(&words);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        let json: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
        (json["facts"].clone(), json["series"].clone())
    };
    assert_eq!(result(&killed), result(&whole));
    assert!(std::fs::read(&journal).expect("the journal").len() >= left);
}

/// Without the privilege for real-time threads the simulated part runs, is printed and written; the rest is refused with
/// status 3 and the remedy, as the user `nobody` and as a root that lacks it.
#[test]
fn without_privileges_the_simulated_part_runs_and_the_status_says_what_did_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path();
    let file = write_small(place, 2);
    // The build's folder may be closed to others.
    let program = place.join("horolog");
    fs::copy(env!("CARGO_BIN_EXE_horolog"), &program).expect("a copy");
    for path in [place, program.as_path()] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).expect("permissions");
    }
    let nobody =
        ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
    let poor_root = ["--inh-caps=-sys_nice", "--bounding-set=-sys_nice"];
    for (who, words) in [("nobody", &nobody[..]), ("root", &poor_root[..])] {
        let out = place.join(who);
        let mut command = Command::new("setpriv");
        command
            .args(words)
            .arg(&program)
            .args(["-q", "experiment", "run", &file, "--real", "--out"])
            .arg(&out);
        let run = match command.stdin(Stdio::null()).output() {
            Err(error) => {
                println!("SKIPPED: setpriv: {error}");
                return;
            }
            Ok(run) => run,
        };
        let (said, complained) = (text(&run.stdout), text(&run.stderr));
        if complained.starts_with("setpriv:") {
            println!("SKIPPED: {who}: {}", complained.trim());
            continue;
        }
        if run.status.code() == Some(0) && said.contains("real: mean soft response time") {
            println!(
                "SKIPPED: {who}: a limit of this machine (RLIMIT_RTPRIO) allows real-time threads to all"
            );
            continue;
        }
        assert_eq!(run.status.code(), Some(3), "{who}: {said}{complained}");
        assert!(
            said.contains("simulated: mean soft response time") && said.contains("24 runs"),
            "{who}: {said}"
        );
        assert!(!said.contains("real: mean soft response time"), "{who}: {said}");
        assert!(
            complained.contains("a part could not run") && complained.contains("CAP_SYS_NICE"),
            "{complained}"
        );
        assert!(out.join("results.parquet").exists() && out.join("runs.jsonl").exists(), "{who}");
    }
}
