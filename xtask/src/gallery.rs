//! The notebooks of `docs/gallery`: they run with the wheel that the Python package's step has built, and draw the committed figures.

use crate::python::{environment, named, wheel};
use crate::step::{self, Outcome};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the notebooks need. Exact versions, since figures are compared byte by byte.
const PACKAGES: [&str; 4] = ["marimo-base==0.25.2", "matplotlib==3.10.8", "numpy==2.4.6", "pytest==9.2.0"];

/// Runs the notebooks; what is missing for it is added to `missing`.
pub(crate) fn steps(root: &Path, missing: &mut Vec<String>) -> Vec<Outcome> {
    match prepared(root) {
        Ok(python) => vec![tested(root, &python)],
        Err(reason) => {
            missing.push(format!("the gallery's notebooks do not run: {reason}"));
            Vec::new()
        }
    }
}

fn prepared(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/python");
    let wheel = wheel(&folder.join("wheels")).ok_or("there is no wheel of the Python package")?;
    let python = environment(&named()?.0, &folder.join("gallery"), &PACKAGES)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "-q", "--force-reinstall", "--no-deps"]).arg(wheel);
    if step::succeeds(&mut install) { Ok(python) } else { Err("the wheel could not be installed".to_owned()) }
}

fn tested(root: &Path, python: &Path) -> Outcome {
    let mut pytest = Command::new(python);
    pytest.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--rootdir"]).arg(root.join("tests"));
    pytest.arg(root.join("tests/gallery")).current_dir(std::env::temp_dir());
    // The release build: a published experiment takes a minute in a development build.
    pytest.env("HOROLOG_COMMAND", root.join("target/release/horolog")).env("PYTHONDONTWRITEBYTECODE", "1");
    step::run("Python: the gallery's notebooks", &mut pytest)
}
