//! The Python package: a wheel built by a named interpreter, installed into a clean environment and tested from outside the tree.

use crate::step::{self, Outcome};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The least version of the stable ABI that the wheel uses.
const LEAST: (u32, u32) = (3, 11);
/// What builds the wheel.
const BUILDERS: [&str; 1] = ["maturin==1.16.0"];
/// What its tests need beside it.
const TESTERS: [&str; 4] = ["pytest==9.2.0", "numpy>=2", "mypy>=1.15", "matplotlib>=3.8"];
/// What the tests of clusters and of data frames need beside that.
const MORE_TESTERS: [&str; 5] =
    ["distributed>=2024.8", "pyarrow>=16", "polars>=1.20", "pandas>=2", "duckdb>=1"];
/// The tag of the wheel.
const TAG: &str = "cp311-abi3";

/// The interpreter: `HOROLOG_PYTHON`, else `python3`; or why there is none.
pub(crate) fn interpreter() -> Result<PathBuf, String> {
    let named = std::env::var_os("HOROLOG_PYTHON").unwrap_or_else(|| "python3".into());
    let shown = named.display().to_string();
    // The folder of its own program: a shim may name another one elsewhere.
    let words = "import sys, venv, ensurepip; print(*sys.version_info[:2], sys.executable)";
    let output = Command::new(&named).args(["-c", words]).output().map_err(|e| format!("{shown}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{shown} has no module venv or ensurepip: install python3-venv"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut parts = text.trim().splitn(3, ' ');
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    let version = (number(), number());
    if version < LEAST {
        return Err(format!(
            "{shown} is Python {}.{}; the package needs {}.{} (HOROLOG_PYTHON names another one)",
            version.0, version.1, LEAST.0, LEAST.1
        ));
    }
    Ok(parts.next().map_or_else(|| PathBuf::from(named), PathBuf::from))
}

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

/// Builds, installs and tests; what is missing for it is added to `missing`.
pub(crate) fn steps(root: &Path, missing: &mut Vec<String>) -> Vec<Outcome> {
    match prepared(root, missing) {
        Ok((builder, tester)) => vec![tested(root, &builder, &tester)],
        Err(reason) => {
            missing.push(format!("the Python package is not built or tested: {reason}"));
            Vec::new()
        }
    }
}

fn prepared(root: &Path, missing: &mut Vec<String>) -> Result<(PathBuf, PathBuf), String> {
    let python = interpreter()?;
    let folder = root.join("target/python");
    let builder = environment(&python, &folder.join("build"), &BUILDERS)?;
    let tester = environment(&python, &folder.join("test"), &[&TESTERS[..], &MORE_TESTERS].concat());
    let tester = tester.or_else(|reason| {
        missing.push(format!("sweeps on a cluster and data frames are not tested in Python: {reason}"));
        environment(&python, &folder.join("test"), &TESTERS)
    });
    Ok((builder, tester?))
}

fn tested(root: &Path, builder: &Path, tester: &Path) -> Outcome {
    let name = "Python package: wheel, types, tests";
    let folder = root.join("target/python");
    let (wheels, outside) = (folder.join("wheels"), std::env::temp_dir());
    // A wheel of before must not be the one that is tested.
    let _ = std::fs::remove_dir_all(&wheels);
    let mut build = Command::new(builder);
    // The profile of the other tests: most of it is built already.
    build.args(["-m", "maturin", "build", "--profile", "dev", "--locked", "--compatibility", "linux"]);
    build.args(["--manifest-path", "front/python/Cargo.toml", "--interpreter"]).arg(builder);
    build.arg("--out").arg(&wheels).current_dir(root);
    let built = step::run("Python package: build", &mut build);
    if !built.succeeded {
        return built;
    }
    let Some(wheel) = wheel(&wheels).filter(|path| path.display().to_string().contains(TAG)) else {
        let mut outcome = Outcome::new(name);
        outcome.tail.push_back(format!("there is not one wheel with the tag {TAG} in {}", wheels.display()));
        return outcome;
    };
    let mut install = Command::new(tester);
    install.args(["-m", "pip", "install", "-q", "--force-reinstall", "--no-deps"]).arg(&wheel);
    let installed = step::run("Python package: install", install.current_dir(&outside));
    if !installed.succeeded {
        return installed;
    }
    let mut types = Command::new(tester);
    types.args(["-m", "mypy", "--strict", "-p", "horolog"]).arg("--cache-dir").arg(folder.join("mypy"));
    let typed = step::run("Python package: types", types.current_dir(&outside));
    if !typed.succeeded {
        return typed;
    }
    let mut pytest = Command::new(tester);
    pytest
        .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--rootdir"])
        .arg(root.join("front/python"));
    pytest.arg(root.join("front/python/tests")).current_dir(&outside);
    pytest.env("HOROLOG_BIN", root.join("target/debug/horolog")).env("PYTHONDONTWRITEBYTECODE", "1");
    step::run(name, &mut pytest)
}
