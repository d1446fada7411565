//! Real programs behave the same with their locks traced: Python's own tests of threads, and a database's answers.

use crate::common::{Traced, traced};
use std::path::Path;
use std::process::Command;

/// Python's own tests come with Debian's libpython3.11-testsuite.
const PYTHON: &str = "/usr/bin/python3.11";
const TESTS: &str = "/usr/lib/python3.11/test/test_queue.py";

fn python(folder: &Path) -> Command {
    let mut command = Command::new(PYTHON);
    command
        .args(["-m", "unittest", "-v", "test.test_queue", "test.test_threading_local"])
        .current_dir(folder);
    command
}

/// The verdict on each test, sorted; where a test prints a line of its own in between, the verdict stands alone.
fn verdicts(stderr: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stderr).into_owned();
    let mut all: Vec<String> =
        text.lines().filter(|line| line.contains(" ... ")).map(str::to_owned).collect();
    all.extend(
        text.lines().filter(|line| line.starts_with("OK") || line.starts_with("FAILED")).map(str::to_owned),
    );
    all.sort_unstable();
    all
}

fn said(traced: &Traced) -> String {
    format!("{}{}", traced.stdout(), String::from_utf8_lossy(&traced.output.stderr))
}

#[test]
fn pythons_own_tests_of_threads_come_to_the_same() {
    if !Path::new(PYTHON).exists() || !Path::new(TESTS).exists() {
        println!("SKIPPED: Python's own tests: install the package libpython3.11-testsuite");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Side by side: most of their time they wait.
    let alone = std::thread::scope(|scope| {
        let alone = scope.spawn(|| python(folder.path()).output().expect("python runs"));
        let traced = traced(folder.path(), &mut python(folder.path()));
        let alone = alone.join().expect("no panic");
        assert_eq!(traced.output.status.code(), alone.status.code(), "{}", said(&traced));
        assert_eq!(verdicts(&traced.output.stderr), verdicts(&alone.stderr));
        let count = |name: &str| traced.events.iter().filter(|event| event.name == name).count();
        assert!(
            count("lock/acquired") > 1_000 && count("lock/woken") > 10,
            "the interpreter's locks are seen"
        );
        alone
    });
    assert!(verdicts(&alone.stderr).len() > 50, "{}", String::from_utf8_lossy(&alone.stderr));
}

#[test]
fn a_database_gives_the_same_answers() {
    let script = "
pragma threads = 2;
create table t(a integer, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 3000)
    insert into t select x, printf('%05d', (x * 7919) % 10007) from c;
create index i on t(b);
delete from t where a % 3 = 0;
select count(*), sum(a), min(b), max(b) from t;
select group_concat(b) from (select b from t order by b limit 20);
pragma integrity_check;
";
    let run = |command: &mut Command, database: &Path| {
        command.arg(database).arg(script);
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("sqlite3");
    run(&mut command, &folder.path().join("one"));
    let alone = match command.output() {
        Ok(output) => output,
        Err(error) => {
            println!("SKIPPED: sqlite3: {error}: install the package sqlite3");
            return;
        }
    };
    let mut command = Command::new("sqlite3");
    run(&mut command, &folder.path().join("two"));
    let traced = traced(folder.path(), &mut command);
    assert!(alone.status.success() && traced.output.status.success(), "{}", said(&traced));
    assert_eq!(traced.stdout(), String::from_utf8_lossy(&alone.stdout));
    assert!(traced.stdout().ends_with("ok\n"), "{}", traced.stdout());
    assert!(traced.events.len() > 1_000);
}
