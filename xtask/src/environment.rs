//! What the tests need beyond Rust: a Python environment, Node packages, a browser. Installed where possible,
//! named where not.

use crate::step::{has, succeeds};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian packages by the program that shows their presence.
const PROGRAMS: [(&str, &str, &str); 26] = [
    ("chromium", "chromium", "the report page is tested in a real browser"),
    ("cyclictest", "rt-tests", "release latency is compared with cyclictest"),
    ("trace-cmd", "trace-cmd", "foreign traces are imported from trace.dat"),
    ("babeltrace2", "babeltrace2", "traces that are written as CTF are read by it"),
    ("perf", "linux-perf", "foreign traces are imported from perf.data"),
    ("clang", "clang", "triggers are built with clang too"),
    ("ld.lld", "lld", "tables of triggers are linked with LLD too"),
    ("mold", "mold", "tables of triggers are linked with mold too"),
    ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", "the header of triggers compiles for aarch64"),
    ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu", "the header of triggers compiles for aarch64, in C++"),
    ("mmdebstrap", "mmdebstrap", "the packages are tried in a Debian of their own"),
    ("dpkg-shlibdeps", "dpkg-dev", "the Debian package is made and tried"),
    ("lintian", "lintian", "the Debian package is linted"),
    ("man", "man-db", "manual pages are rendered"),
    ("mandoc", "mandoc", "manual pages are linted"),
    ("sqlite3", "sqlite3", "the lock study traces it; its answers are compared"),
    ("memcached", "memcached", "the lock study traces it under load"),
    ("redis-server", "redis-server", "the lock study traces it under load"),
    ("redis-benchmark", "redis-tools", "the load of redis-server in the lock study"),
    ("ffmpeg", "ffmpeg", "the lock study traces its decoding"),
    ("mpv", "mpv", "the lock study traces a media player"),
    ("musl-gcc", "musl-tools", "programs of another C library run below a recorder"),
    ("gdb", "gdb", "a debugger runs a recorded program and attaches to one"),
    ("valgrind", "valgrind", "a program is recorded below it"),
    ("bwrap", "bubblewrap", "a program is recorded in a sandbox"),
    ("busybox", "busybox", "its shell's redirections are the same below a recorder"),
];

/// Debian packages by a file that shows their presence.
const FILES: [(&str, &str, &str); 3] = [
    (
        "/usr/lib/python3.11/test/test_queue.py",
        "libpython3.11-testsuite",
        "Python's own tests of threads, processes and files come out the same below a recorder",
    ),
    (
        "/usr/libexec/installed-tests/glib/thread",
        "libglib2.0-tests",
        "glib's own tests of threads come out the same below a recorder",
    ),
    ("/usr/share/doc/libclang-rt-dev", "libclang-rt-dev", "programs with clang's sanitizers are recorded"),
];

/// What makes the site of the documents, built once from source.
const MDBOOK: &str = "0.5.4";

/// What was found or installed.
pub(crate) struct Environment {
    /// The Python of the project's own environment.
    pub(crate) python: Option<PathBuf>,
    /// Whether the viewer's packages are there.
    pub(crate) node: bool,
    missing: Vec<String>,
}

impl Environment {
    /// What could not be had, and what is not tested because of it.
    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }
}

/// Installs what is missing.
pub(crate) fn prepare(root: &Path) -> Environment {
    let mut missing = Vec::new();
    programs(&mut missing);
    let python = python(root, &mut missing);
    let node = node(root, &mut missing);
    let _ = mdbook(root, &mut missing);
    Environment { python, node, missing }
}

fn programs(missing: &mut Vec<String>) {
    let there = |what: &str| if what.starts_with('/') { Path::new(what).exists() } else { has(what) };
    let absent: Vec<_> = PROGRAMS.iter().chain(&FILES).filter(|(what, _, _)| !there(what)).collect();
    if absent.is_empty() {
        return;
    }
    let packages: Vec<&str> = absent.iter().map(|(_, package, _)| *package).collect();
    let am_root = std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if am_root && has("apt-get") {
        println!("installing {}", packages.join(" "));
        let _ = succeeds(Command::new("apt-get").args(["update", "-qq"]));
        for package in packages {
            let mut install = Command::new("apt-get");
            install.args(["install", "-y", "-qq", "--no-install-recommends", package]);
            let _ = succeeds(install.env("DEBIAN_FRONTEND", "noninteractive"));
        }
    }
    for (program, package, purpose) in absent {
        if !there(program) {
            missing.push(format!("{program} not found ({purpose}): install the package {package}"));
        }
    }
}

fn python(root: &Path, missing: &mut Vec<String>) -> Option<PathBuf> {
    let folder = root.join(".venv");
    let python = folder.join("bin/python");
    let requirements = root.join("tests/python/requirements.txt");
    let stamp = folder.join("requirements.txt");
    let wanted = std::fs::read(&requirements).ok()?;
    if std::fs::read(&stamp).is_ok_and(|have| have == wanted) && python.exists() {
        return Some(python);
    }
    println!("making the Python environment .venv");
    let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder))
        && succeeds(Command::new(&python).args(["-m", "pip", "install", "-q", "-r"]).arg(&requirements))
        && std::fs::write(&stamp, wanted).is_ok();
    if !made {
        missing
            .push("Python packages could not be installed (tests/python): see the messages above".to_owned());
        return None;
    }
    Some(python)
}

fn node(root: &Path, missing: &mut Vec<String>) -> bool {
    let folder = root.join("viewer");
    if !folder.join("package.json").exists() {
        return false;
    }
    if !has("npm") {
        missing.push("npm not found (the viewer's tests): install Node.js 20 or newer".to_owned());
        return false;
    }
    let lock = folder.join("package-lock.json");
    let stamp = folder.join("node_modules/.package-lock.json");
    let modified = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    if modified(&stamp) >= modified(&lock) && modified(&stamp).is_some() {
        return true;
    }
    println!("installing the viewer's packages");
    let installed =
        succeeds(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder));
    if !installed {
        missing.push("the viewer's packages could not be installed: see the messages above".to_owned());
    }
    installed
}

/// mdBook in the project's own folder of tools; a build takes some minutes and is kept.
pub(crate) fn mdbook(root: &Path, missing: &mut Vec<String>) -> Option<PathBuf> {
    let folder = root.join(".tools");
    let program = folder.join("bin/mdbook");
    let version = Command::new(&program).arg("--version").output();
    let wanted = format!("mdbook v{MDBOOK}");
    if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == wanted) {
        return Some(program);
    }
    println!("building mdbook {MDBOOK} into .tools (some minutes)");
    let mut install = Command::new("cargo");
    install.args(["install", "mdbook", "--locked", "--no-default-features", "--features", "search"]);
    install.args(["--version", MDBOOK, "--root"]).arg(&folder).current_dir(root);
    if succeeds(&mut install) {
        return Some(program);
    }
    missing.push(format!(
        "mdbook {MDBOOK} could not be installed (the site of the documents): see the messages above"
    ));
    None
}
