//! Where versions of CPython are.

use super::LEAST;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter `HOROLOG_PYTHON`, else `python3`, and its version; or why there is none.
pub(crate) fn named() -> Result<(PathBuf, (u32, u32)), String> {
    let named = std::env::var_os("HOROLOG_PYTHON").unwrap_or_else(|| "python3".into());
    let shown = named.display().to_string();
    let (program, version) = asked(Path::new(&named))?;
    if version < LEAST {
        return Err(format!(
            "{shown} is Python {}.{}; the package needs {}.{} (HOROLOG_PYTHON names another one)",
            version.0, version.1, LEAST.0, LEAST.1
        ));
    }
    Ok((program, version))
}

/// An interpreter of this version: in `PATH`, or one that pyenv has installed; or why there is none.
pub(super) fn other(version: (u32, u32)) -> Result<PathBuf, String> {
    let name = format!("{}.{}", version.0, version.1);
    let in_path = PathBuf::from(format!("python{name}"));
    let installed = Command::new("pyenv").arg("root").output().ok().filter(|output| output.status.success());
    let folder =
        installed.map(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("versions"));
    let kept = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut kept: Vec<PathBuf> = kept
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{name}.")))
        .map(|entry| entry.path().join("bin/python3"))
        .collect();
    kept.sort();
    let candidates = std::iter::once(in_path).chain(kept);
    let mut found = candidates.filter_map(|program| asked(&program).ok());
    found
        .find(|(_, known)| *known == version)
        .map(|(program, _)| program)
        .ok_or_else(|| format!("neither `python{name}` nor pyenv has one"))
}

/// Where the program really is, and its version. A shim may name another one elsewhere.
fn asked(program: &Path) -> Result<(PathBuf, (u32, u32)), String> {
    let shown = program.display();
    let words = "import sys, venv, ensurepip; print(*sys.version_info[:2], sys.executable)";
    let output =
        Command::new(program).args(["-c", words]).output().map_err(|error| format!("{shown}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{shown} has no module venv or ensurepip: install python3-venv"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut parts = text.trim().splitn(3, ' ');
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok()).unwrap_or(0);
    let version = (number(), number());
    Ok((parts.next().map_or_else(|| program.to_path_buf(), PathBuf::from), version))
}
