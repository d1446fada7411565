//! The folder in which a page's blocks are carried out one after the other, as a reader does.

use crate::common::{HOROLOG, done, root};
use snapbox::Data;
use snapbox::filter::NormalizeToExpected;
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Seconds that one command of the documents may take.
const LIMIT_S: &str = "180";

/// `cargo` as the documents call it: the command is built already, and tests do not start all tests.
const CARGO: &str = r#"#!/bin/sh
case "$1 $2" in
"run --profile") grep -q "^\[profile\.$3\]" "$ROOT/Cargo.toml" || exit 1
    while [ "$1" != "--" ]; do shift; done; shift; exec horolog "$@";;
"install --path") exec grep -q 'name = "horolog"' "$3/Cargo.toml";;
"xtask "*) exec grep -q "\[\"$2\"" "$ROOT/xtask/src/main.rs";;
esac
echo "the tests of the documents do not know: cargo $*" >&2
exit 1
"#;

/// The tests run as who they are: a command for root is skipped where they are not.
const SUDO: &str = "#!/bin/sh\nexec \"$@\"\n";

pub(crate) struct Workshop {
    folder: tempfile::TempDir,
}

/// What a command said, both streams in their order, and how it ended.
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) status: i32,
}

impl Workshop {
    /// A fresh folder that looks like the repository's root to relative paths.
    pub(crate) fn new() -> Workshop {
        let folder = tempfile::Builder::new().prefix("horolog-documents-").tempdir().expect("a folder");
        let shop = Workshop { folder };
        for name in ["work", "bin"] {
            std::fs::create_dir(shop.at(name)).expect("a folder");
        }
        for name in ["examples", "front", "core", "xtask", "docs"] {
            symlink(root().join(name), shop.work().join(name)).expect("a link");
        }
        symlink(HOROLOG, shop.at("bin/horolog")).expect("a link");
        if let Some(duckdb) = of_python("duckdb") {
            symlink(duckdb, shop.at("bin/duckdb")).expect("a link");
        }
        for (name, text) in [("cargo", CARGO), ("sudo", SUDO)] {
            let path = shop.at("bin").join(name);
            std::fs::write(&path, text).expect("writable");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("allowed");
        }
        shop
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the reader is.
    pub(crate) fn work(&self) -> PathBuf {
        let told = std::fs::read_to_string(self.at("here")).ok();
        told.map_or_else(|| self.at("work"), |path| PathBuf::from(path.trim()))
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::write(&path, text).expect("writable");
        path
    }

    pub(crate) fn append(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, before + text).expect("writable");
        path
    }

    /// Runs shell text where the reader is; a `cd` in it stays.
    pub(crate) fn run(&self, script: &str, options: &[&str]) -> Said {
        let path = std::env::var("PATH").expect("a path");
        let path = format!("{}:{}:{path}", self.at("bin").display(), environment().display());
        let end = format!("trap 'pwd > {}' EXIT\nexec 2>&1\n", self.at("here").display());
        let output = Command::new("timeout")
            .args(["-k", "5", LIMIT_S, "bash"])
            .args(options)
            .args(["-c", &(end + script)])
            .current_dir(self.work())
            .env("PATH", path)
            .env("ROOT", root())
            .env("NO_COLOR", "1")
            .env("COLUMNS", "110")
            // A profile of the machine that runs the tests must not change what they prove.
            .env("XDG_STATE_HOME", self.at("state"))
            // Copies of the headers of the command that is tested.
            .env("XDG_CACHE_HOME", self.at("cache"))
            .stdin(Stdio::null())
            .output()
            .expect("bash starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Said { text, status: output.status.code().unwrap_or(-1) }
    }
}

/// A program that the set-up has installed with the Python packages.
fn of_python(name: &str) -> Option<PathBuf> {
    Some(root().join(".venv/bin").join(name)).filter(|path| path.is_file())
}

/// Why this machine cannot do what a block needs (`needs=root,sched-fifo,gcc`): facts of `horolog doctor`, programs.
pub(crate) fn lacks(needs: &str) -> Option<String> {
    static FACTS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    let facts = FACTS.get_or_init(|| {
        let doctor = done(["doctor", "--format", "json"]).json();
        let text = |fact: &serde_json::Value, name: &str| fact[name].as_str().unwrap_or_default().to_owned();
        let facts = doctor["facts"].as_array().expect("facts").iter();
        facts.map(|fact| (text(fact, "name"), text(fact, "state"))).collect()
    });
    let program = |name: &str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|folder| folder.join(name).is_file()) || of_python(name).is_some()
    };
    needs.split(',').find_map(|need| match (need, facts.get(need)) {
        ("root", _) => (!is_root()).then(|| "not root".to_owned()),
        (_, Some(state)) => (state != "yes").then(|| format!("{need}: {state}")),
        ("cpu-1", _) => (std::thread::available_parallelism().map_or(1, usize::from) < 2)
            .then(|| "one CPU only".to_owned()),
        _ => match need.strip_prefix("python:") {
            Some(module) => (!has_module(module)).then(|| format!("no {module} for Python")),
            None => (!program(need)).then(|| format!("no program {need}")),
        },
    })
}

/// The project's own Python, where it was made.
fn environment() -> PathBuf {
    root().join(".venv/bin")
}

fn has_module(name: &str) -> bool {
    let own = environment().join("python3");
    let python = if own.exists() { own } else { PathBuf::from("python3") };
    let import = Command::new(python).args(["-c", &format!("import {name}")]).output();
    import.is_ok_and(|output| output.status.success())
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
}

/// What was said in the words of what was expected, where `[..]` and `...` leave things open.
pub(crate) fn in_the_words_of(expected: &str, said: &str) -> String {
    let said = Data::text(clean(said));
    NormalizeToExpected::new().redact().normalize(said, &Data::text(clean(expected))).to_string()
}

/// Lines without blanks at their ends, and no empty ones at the end of all.
pub(crate) fn clean(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut text = lines.join("\n").trim_end().to_owned();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Whether a path lies in a repository's root: the shape of what a reader sees.
pub(crate) fn exists(path: &Path) -> bool {
    root().join(path).exists()
}

#[test]
fn elisions_leave_open_what_they_say_and_nothing_else() {
    let open = "took [..] ms\n...\nend\n";
    for said in ["took 3 ms\na\nb\nend\n", "took 4 ms\nend"] {
        assert_eq!(in_the_words_of(open, said), open, "{said}");
    }
    assert_ne!(in_the_words_of(open, "took 3 s\nend\n"), open);
    assert_ne!(in_the_words_of(open, "took 3 ms\na\nfin\n"), open);
}

#[test]
fn a_reader_stays_where_he_went() {
    let shop = Workshop::new();
    assert_eq!(shop.run("mkdir robot\ncd robot\nfalse", &[]).status, 1);
    assert!(shop.work().ends_with("work/robot"));
    assert!(shop.run("horolog --version", &[]).text.starts_with("horolog "));
    assert_eq!(shop.run("cargo xtask style && cargo xtask nonsense", &[]).status, 1);
}
