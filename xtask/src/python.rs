//! The Python package: a wheel for glibc 2.28 built by a named interpreter, audited, installed into clean environments and tested from
//! outside the tree, by every version of CPython that is here.

mod interpreters;

use crate::step::{self, Outcome};
pub(crate) use interpreters::named;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The least version of the stable ABI that the wheel uses.
const LEAST: (u32, u32) = (3, 11);
/// The versions that the wheel is tested by beside the named one.
const OTHERS: [(u32, u32); 3] = [(3, 11), (3, 12), (3, 13)];
/// What builds the wheel, and what audits it.
const BUILDERS: [&str; 1] = ["maturin==1.16.0"];
const LINKER: &str = "ziglang==0.17.1";
const AUDITOR: &str = "abi3audit==0.0.26";
/// What its tests need beside it.
const TESTERS: [&str; 4] = ["pytest==9.2.0", "numpy>=2", "mypy>=1.15", "matplotlib>=3.8"];
/// What the tests of clusters, data frames and parallel runs need beside that.
const MORE_TESTERS: [&str; 6] =
    ["distributed>=2024.8", "pyarrow>=16", "polars>=1.20", "pandas>=2", "duckdb>=1", "pytest-xdist>=3.6"];
/// What another version needs for the tests of [`EVERYWHERE`].
const FEW_TESTERS: [&str; 2] = ["pytest==9.2.0", "numpy>=2"];
const EVERYWHERE: [&str; 4] = ["test_python.py", "test_sets.py", "test_traces.py", "test_events.py"];
/// The tag of the wheel.
const TAG: &str = "cp311-abi3-manylinux_2_28";
const PLAIN_TAG: &str = "cp311-abi3-linux";

/// An environment with these packages, made once for each list of them; or why there is none.
pub(crate) fn environment(python: &Path, folder: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let program = folder.join("bin/python");
    let (stamp, wanted) = (folder.join("made-of"), format!("{} {}", python.display(), packages.join(" ")));
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(program);
    }
    let made = step::succeeds(Command::new(python).args(["-m", "venv", "--clear"]).arg(folder))
        && step::succeeds(Command::new(&program).args(["-m", "pip", "install", "-q"]).args(packages))
        && std::fs::write(&stamp, wanted).is_ok();
    if made { Ok(program) } else { Err(format!("{} could not be installed", packages.join(", "))) }
}

/// The one wheel in a folder.
pub(crate) fn wheel(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut wheels = files.filter(|path| path.extension().is_some_and(|end| end == "whl"));
    wheels.next().filter(|_| wheels.next().is_none())
}

/// Builds, audits, installs and tests; what is missing for it is added to `missing`.
pub(crate) fn steps(root: &Path, missing: &mut Vec<String>) -> Vec<Outcome> {
    match prepared(root, missing) {
        Ok(tools) => tested(root, &tools, missing),
        Err(reason) => {
            missing.push(format!("the Python package is not built or tested: {reason}"));
            Vec::new()
        }
    }
}

/// The interpreters of environments.
struct Tools {
    builder: PathBuf,
    /// Whether it links for an old glibc.
    links: bool,
    auditor: Option<PathBuf>,
    tester: PathBuf,
    /// Others, with their versions.
    others: Vec<(String, PathBuf)>,
}

fn prepared(root: &Path, missing: &mut Vec<String>) -> Result<Tools, String> {
    let (python, version) = named()?;
    let folder = root.join("target/python");
    let linking = environment(&python, &folder.join("build"), &[&BUILDERS[..], &[LINKER]].concat());
    let (builder, links) = match linking {
        Ok(builder) => (builder, true),
        Err(reason) => {
            missing.push(format!(
                "the wheel is built for this glibc alone, and not with the tag {TAG}: {reason}"
            ));
            (environment(&python, &folder.join("build"), &BUILDERS)?, false)
        }
    };
    let auditor = environment(&python, &folder.join("audit"), &[AUDITOR]);
    let auditor = auditor
        .map_err(|reason| missing.push(format!("the wheel is not audited for the stable ABI: {reason}")));
    let tester = environment(&python, &folder.join("test"), &[&TESTERS[..], &MORE_TESTERS].concat());
    let tester = tester.or_else(|reason| {
        missing.push(format!(
            "sweeps on a cluster, data frames and parallel runs are not tested in Python: {reason}"
        ));
        environment(&python, &folder.join("test"), &TESTERS)
    });
    let mut others = Vec::new();
    for other in OTHERS.into_iter().filter(|other| *other != version) {
        let name = format!("{}.{}", other.0, other.1);
        let made = interpreters::other(other)
            .and_then(|python| environment(&python, &folder.join(format!("test-{name}")), &FEW_TESTERS));
        match made {
            Ok(python) => others.push((name, python)),
            Err(reason) => missing.push(format!("the wheel is not tested by Python {name}: {reason}")),
        }
    }
    Ok(Tools { builder, links, auditor: auditor.ok(), tester: tester?, others })
}

/// A script that links as `cargo zigbuild` does, so that all crates but the last are those of the other tests; its path.
fn linker(folder: &Path, builder: &Path) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    // A name that says to the compiler that it takes the words of `cc`; `link` is another linker's.
    let script = folder.join("zig-cc");
    let bin = builder.parent().unwrap_or(folder);
    let target = format!("{}-linux-gnu.2.28", std::env::consts::ARCH);
    // Zig is found by the interpreter of that folder.
    let text = format!(
        "#!/bin/sh\nPATH='{0}':\"$PATH\" exec '{0}/maturin' zig cc -- -target {target} \"$@\"\n",
        bin.display()
    );
    // Rewritten only where it differs: cargo looks at its time.
    if std::fs::read_to_string(&script).is_ok_and(|have| have == text) {
        return Ok(script);
    }
    std::fs::write(&script, text)?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
    Ok(script)
}

fn built(root: &Path, tools: &Tools) -> Result<PathBuf, Box<Outcome>> {
    let name = "Python package: build";
    let folder = root.join("target/python");
    let failed = |why: String| {
        let mut outcome = Outcome::new(name);
        outcome.tail.push_back(why);
        Box::new(outcome)
    };
    let wheels = folder.join("wheels");
    // A wheel of before must not be the one that is tested.
    let _ = std::fs::remove_dir_all(&wheels);
    let mut build = Command::new(&tools.builder);
    let (compatibility, tag) = if tools.links { ("manylinux_2_28", TAG) } else { ("linux", PLAIN_TAG) };
    // The profile of the other tests: most of it is built already.
    build.args(["-m", "maturin", "build", "--profile", "dev", "--locked", "--compatibility", compatibility]);
    build.args(["--manifest-path", "front/python/Cargo.toml", "--interpreter"]).arg(&tools.builder);
    build.arg("--out").arg(&wheels).current_dir(root);
    if tools.links {
        let script = linker(&folder, &tools.builder).map_err(|error| failed(error.to_string()))?;
        build.args(["--", "-C", "linker-flavor=gcc", "-C"]).arg(format!("linker={}", script.display()));
    }
    let built = step::run(name, &mut build);
    if !built.succeeded {
        return Err(Box::new(built));
    }
    let named = wheel(&wheels).filter(|path| path.display().to_string().contains(tag));
    named.ok_or_else(|| failed(format!("there is not one wheel with the tag {tag} in {}", wheels.display())))
}

/// A module of this interpreter, started outside the tree.
fn module(python: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.arg("-m").args(words).current_dir(std::env::temp_dir());
    command
}

fn install(python: &Path, wheel: &Path) -> Outcome {
    let mut command = module(python, &["pip", "install", "-q", "--force-reinstall", "--no-deps"]);
    step::run("Python package: install", command.arg(wheel))
}

/// Tests of these files, by this interpreter.
fn pytest(root: &Path, name: &str, python: &Path, words: &[&str], files: &[PathBuf]) -> Outcome {
    let mut command = module(python, &["pytest", "-q", "-p", "no:cacheprovider"]);
    command.args(words).arg("--rootdir").arg(root.join("front/python")).args(files);
    command.env("HOROLOG_BIN", root.join("target/debug/horolog")).env("PYTHONDONTWRITEBYTECODE", "1");
    step::run(name, &mut command)
}

fn tested(root: &Path, tools: &Tools, missing: &mut Vec<String>) -> Vec<Outcome> {
    let wheel = match built(root, tools) {
        Ok(wheel) => wheel,
        Err(outcome) => return vec![*outcome],
    };
    if let Err(outcome) = checked(root, tools, &wheel) {
        return vec![*outcome];
    }
    let tests = root.join("front/python/tests");
    let mut lean = Command::new("cargo");
    lean.args(["check", "--locked", "-p", "horolog-python", "--no-default-features"]).current_dir(root);
    let lean = step::run("Python package: analysis alone builds", &mut lean);
    let name = "Python package: wheel, types, tests";
    let mut outcomes = vec![lean, pytest(root, name, &tools.tester, &["-rs"], std::slice::from_ref(&tests))];
    for (version, python) in &tools.others {
        let installed = install(python, &wheel);
        outcomes.push(if installed.succeeded {
            let files = EVERYWHERE.map(|file| tests.join(file));
            pytest(root, &format!("Python package: tests by {version}"), python, &[], &files)
        } else {
            installed
        });
    }
    if tools.others.is_empty() {
        missing.push("the wheel is tested by one version of Python".to_owned());
    }
    outcomes
}

/// Audits and installs the wheel, and checks its types; the step that failed.
fn checked(root: &Path, tools: &Tools, wheel: &Path) -> Result<(), Box<Outcome>> {
    let passed = |outcome: Outcome| if outcome.succeeded { Ok(()) } else { Err(Box::new(outcome)) };
    if let Some(auditor) = &tools.auditor {
        let mut audit = module(auditor, &["abi3audit", "--strict", "--summary"]);
        passed(step::run("Python package: stable ABI", audit.arg(wheel)))?;
    }
    passed(install(&tools.tester, wheel))?;
    let cache = root.join("target/python/mypy");
    // What the stub of the library says is held against the library itself.
    for words in [&["mypy", "--strict", "-p", "horolog"][..], &["mypy.stubtest", "horolog._engine"]] {
        let mut types = module(&tools.tester, words);
        passed(step::run("Python package: types", types.env("MYPY_CACHE_DIR", &cache)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The crates that the package is built of.
    fn crates(words: &[&str]) -> BTreeSet<String> {
        let mut tree = Command::new("cargo");
        tree.args(["tree", "-p", "horolog-python", "-e", "normal", "--prefix", "none", "--offline"]);
        let output = tree.args(words).current_dir(step::repository_root()).output().expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    }

    #[test]
    fn analysis_alone_has_no_run_time_code() {
        const RUN_TIME: [&str; 4] = ["horolog-sys", "horolog-probe", "horolog-exec", "rustix"];
        let (whole, alone) = (crates(&[]), crates(&["--no-default-features"]));
        for name in RUN_TIME {
            assert!(whole.contains(name), "{name} is not in the package, so its absence says nothing");
            assert!(!alone.contains(name), "{name}");
        }
        for name in ["horolog-analysis", "horolog-sim", "horolog-verify", "horolog-sweep"] {
            assert!(alone.contains(name), "{name}");
        }
    }
}
