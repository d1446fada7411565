//! The C headers: those of the installation, or copies in the user's cache where `cargo install` has installed none.

use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// Where `.pc` files find the prefix that they lie below.
const PREFIX: &str = "${pcfiledir}/../..";

/// Files of an installation, below its prefix.
const FILES: [(&str, &str); 4] = [
    ("include/horolog.h", horolog_capi::HEADER),
    ("include/horolog/trace.h", include_str!("../../tracer/include/horolog/trace.h")),
    ("lib/pkgconfig/horolog.pc", include_str!("../../capi/horolog.pc.in")),
    ("lib/pkgconfig/horolog-trace.pc", include_str!("../../tracer/horolog-trace.pc.in")),
];

/// The folder with the headers of this version.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.parent()?.to_owned()));
    if let Some(prefix) = beside.filter(|prefix| has_headers(prefix)) {
        return Ok(prefix.join("include"));
    }
    let prefix = cache()?;
    write(&prefix)?;
    Ok(prefix.join("include"))
}

/// Whether the headers of this very version lie there; another version's may lie beside a command that cargo installed.
fn has_headers(prefix: &Path) -> bool {
    let headers = FILES.iter().filter(|(path, _)| path.starts_with("include/"));
    headers.into_iter().all(|(path, text)| holds(&prefix.join(path), text))
}

fn holds(path: &Path, text: &str) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
}

/// `horolog/VERSION` below `$XDG_CACHE_HOME`, or below `.cache` of the home folder.
fn cache() -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let cache = cache.ok_or_else(|| {
        Failure::bad_input(
            "error: there is no folder for copies of the headers: neither XDG_CACHE_HOME nor HOME is an absolute path\n  \
             = help: set one of them, or install the package or the tarball (docs/install.md)",
        )
    })?;
    Ok(cache.join("horolog").join(env!("CARGO_PKG_VERSION")))
}

/// Writes what is not there, each file in one step: a compiler may read them meanwhile.
fn write(prefix: &Path) -> Result<(), Failure> {
    for (path, text) in FILES {
        let path = prefix.join(path);
        let text = text.replace("@PREFIX@", PREFIX).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        if holds(&path, &text) {
            continue;
        }
        let failed = |error: std::io::Error| Failure::file("write", &path, &error);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let new = path.with_extension(format!("new-{}", std::process::id()));
        std::fs::write(&new, text).map_err(failed)?;
        std::fs::rename(&new, &path).map_err(failed)?;
    }
    Ok(())
}
