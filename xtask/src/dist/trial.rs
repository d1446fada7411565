//! `cargo xtask try-package`: the packages, installed and used in a Debian of their own, and removed.

use super::deb::named_maintainer;
use super::stage::{read, write};
use super::{Made, Packages, done, make};
use crate::step::{has, succeeds};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// What is done inside.
const SCRIPT: &str = include_str!("trial.sh");

/// Beside the base system: what a user of the headers has.
const INCLUDED: &str = "--include=gcc,libc6-dev,make,pkgconf";

/// The verb: prints a line a check, and a closing line as cargo's tests do.
pub(crate) fn run(root: &Path) -> ExitCode {
    if let Some(reason) = obstacle() {
        println!("SKIPPED: the packages are not tried: {reason}");
        return ExitCode::SUCCESS;
    }
    // Two minutes less than with fat LTO; the files are the same.
    let tried = make(root, "release").and_then(|packages| {
        let alone = installed_by_cargo(root)?;
        tried(root, &packages, &alone)
    });
    match tried {
        Ok(Tried::Skipped(reason)) => {
            println!("SKIPPED: the packages are not tried: {reason}");
            ExitCode::SUCCESS
        }
        Ok(Tried::Checked { passed, failed }) => {
            let word = if failed == 0 && passed > 0 { "ok" } else { "FAILED" };
            println!("test result: {word}. {passed} passed; {failed} failed;");
            if word == "ok" { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

enum Tried {
    Skipped(String),
    Checked { passed: usize, failed: usize },
}

/// What keeps this machine from trying.
fn obstacle() -> Option<String> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if !is_root {
        return Some("a chroot is root's".to_owned());
    }
    let missing = ["mmdebstrap", "dpkg-deb", "dpkg-shlibdeps", "unshare", "chroot", "strip"]
        .into_iter()
        .find(|program| !has(program));
    missing.map(|program| format!("no {program}"))
}

/// The release of Debian that this machine has: what is built here needs its libraries.
fn release() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    if value("ID")? == "debian" { value("VERSION_CODENAME") } else { None }
}

/// The command as `cargo install` leaves it: one program and nothing beside it.
fn installed_by_cargo(root: &Path) -> Made<PathBuf> {
    let place = root.join("target/package/cargo");
    let _ = fs::remove_dir_all(&place);
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--quiet", "--locked", "--path", "front/cli"]).current_dir(root);
    // What was built just now is used again.
    cargo.env("CARGO_TARGET_DIR", root.join("target")).env("CARGO_INSTALL_ROOT", &place);
    done(&mut cargo, "cargo install")?;
    let entries = fs::read_dir(place.join("bin")).map_err(|error| format!("{}: {error}", place.display()))?;
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    if names != ["horolog"] || place.join("lib").exists() {
        return Err(format!("cargo installed {names:?}, not the command alone: docs/install.md is wrong"));
    }
    Ok(place.join("bin/horolog"))
}

fn tried(root: &Path, packages: &Packages, alone: &Path) -> Made<Tried> {
    let Some(deb) = &packages.deb else { return Err("no Debian package was made".to_owned()) };
    let Some(release) = release() else {
        return Ok(Tried::Skipped("this is not a release of Debian".to_owned()));
    };
    let base = root.join(format!("target/package/debian-{release}-make.tar"));
    if !base.exists() {
        println!("making a Debian of its own, once: {}", base.display());
        let part = base.with_extension("part.tar");
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=apt", INCLUDED, &release]).arg(&part);
        if !succeeds(&mut command) {
            return Ok(Tried::Skipped(
                "mmdebstrap could not make a Debian: see the messages above".to_owned(),
            ));
        }
        fs::rename(&part, &base).map_err(|error| format!("{}: {error}", base.display()))?;
    }
    let (lint, service) = (lint(deb)?, service(root)?);
    let place = Place::unpack(&root.join("target/package/chroot"), &base)?;
    let trial = place.0.join("trial");
    fs::create_dir_all(&trial).map_err(|error| error.to_string())?;
    fs::create_dir_all(trial.join("alone")).map_err(|error| error.to_string())?;
    let files = [(&**deb, "horolog.deb"), (&*packages.tarball, "horolog.tar.gz"), (alone, "alone/horolog")];
    for (from, to) in files {
        fs::copy(from, trial.join(to)).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    fs::write(trial.join("trial.sh"), SCRIPT).map_err(|error| error.to_string())?;
    let (passed, failed) = inside(&place.0)?;
    let failed = failed + usize::from(lint == Some(false)) + usize::from(service == Some(false));
    let passed = passed + usize::from(lint == Some(true)) + usize::from(service == Some(true));
    Ok(Tried::Checked { passed, failed })
}

/// An unpacked system, which goes when it is dropped.
struct Place(PathBuf);

impl Place {
    fn unpack(folder: &Path, base: &Path) -> Made<Place> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let place = Place(folder.to_owned());
        // Device nodes may be forbidden; the script mounts what it needs.
        done(Command::new("tar").arg("-C").arg(folder).args(["--exclude=./dev/*", "-xf"]).arg(base), "tar")?;
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether lintian finds no error, where it is installed.
fn lint(deb: &Path) -> Made<Option<bool>> {
    if !has("lintian") {
        println!("SKIPPED: the Debian package is not linted: no lintian");
        return Ok(None);
    }
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error", "--display-level", ">=warning"]);
    if named_maintainer().is_none() {
        // A package that is not for others names no one; what lintian says about that is known.
        lintian
            .args(["--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog,root-in-contact"]);
    }
    lintian.arg(deb);
    let is_clean = succeeds(&mut lintian);
    println!("{} lintian finds no error", if is_clean { "ok" } else { "FAILED" });
    Ok(Some(is_clean))
}

/// Whether systemd has nothing to say about the service, where it is installed.
fn service(root: &Path) -> Made<Option<bool>> {
    if !has("systemd-analyze") {
        println!("SKIPPED: the service is not verified: no systemd-analyze");
        return Ok(None);
    }
    let usr = root.join("target/package/deb/usr");
    let unit = read(&usr.join("lib/systemd/system/horolog@.service"))?;
    // It looks whether the command is there; here it lies in the package's tree.
    let unit = unit.replace("/usr/bin/horolog", &usr.join("bin/horolog").display().to_string());
    let path = root.join("target/package/service/horolog@trial.service");
    write(&path, unit.as_bytes())?;
    let mut analyze = Command::new("systemd-analyze");
    let output = analyze.args(["verify", "--man=no"]).arg(&path).output();
    let output = output.map_err(|error| format!("systemd-analyze: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let is_good = output.status.success() && !said.contains("horolog@trial");
    println!("{} systemd-analyze verify: {}", if is_good { "ok" } else { "FAILED" }, said.trim());
    Ok(Some(is_good))
}

/// Runs the script with mounts and processes of its own; counts its checks.
fn inside(place: &Path) -> Made<(usize, usize)> {
    const ENTER: &str = "mount --rbind /dev \"$0/dev\" && mount -t proc proc \"$0/proc\" && \
                         exec chroot \"$0\" /bin/sh /trial/trial.sh";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", ENTER]).arg(place);
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root")
        .env("LC_ALL", "C.UTF-8");
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("unshare: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    // Once more at the end, where the last lines of a failed step are shown.
    for line in said.lines().filter(|line| line.starts_with("FAILED ")) {
        println!("that failed: {line}");
    }
    let count = |word: &str| said.lines().filter(|line| line.starts_with(word)).count();
    let ended = said.lines().any(|line| line == "ended");
    // A script that stops half-way has failed, whatever it has checked before.
    Ok((count("ok "), count("FAILED ") + usize::from(!ended)))
}
