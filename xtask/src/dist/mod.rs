//! `cargo xtask dist`: what is shipped, as a tarball and as a Debian package.

mod deb;
mod licences;
mod stage;
mod trial;

pub(crate) use trial::run as try_package;

use crate::step::{has, succeeds};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What `dist` makes.
#[derive(Debug)]
pub(crate) struct Packages {
    pub(crate) tarball: PathBuf,
    /// None where this machine has no `dpkg-deb`.
    pub(crate) deb: Option<PathBuf>,
}

/// The crates of what is shipped, as words of cargo.
const CRATES: [&str; 6] = ["-p", "horolog", "-p", "horolog-tracer", "-p", "horolog-locks"];

/// A step that failed, in words.
pub(crate) type Made<T> = Result<T, String>;

/// The verb. `profile` is `dist`, or `release`, which is built in a third of the time.
pub(crate) fn run(root: &Path, profile: &str) -> ExitCode {
    match make(root, profile) {
        Ok(packages) => {
            println!("{}", packages.tarball.display());
            match packages.deb {
                Some(deb) => println!("{}", deb.display()),
                None => println!(
                    "no Debian package: dpkg-deb and dpkg-shlibdeps (package dpkg-dev) are not installed"
                ),
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds, and packs what was built.
pub(crate) fn make(root: &Path, profile: &str) -> Made<Packages> {
    let mut build = Command::new("cargo");
    build.args(["build", "--profile", profile]).args(CRATES);
    done(build.current_dir(root), "cargo build")?;
    let build = Build { root, folder: root.join("target").join(profile), version: version(root)? };
    let out = root.join("target/package");
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let tarball = tarball(&build, &out)?;
    let deb = if has("dpkg-deb") && has("dpkg-shlibdeps") { Some(deb::make(&build, &out)?) } else { None };
    Ok(Packages { tarball, deb })
}

/// What was built, and from where.
pub(crate) struct Build<'a> {
    pub(crate) root: &'a Path,
    /// Where cargo has put it.
    pub(crate) folder: PathBuf,
    pub(crate) version: String,
}

impl Build<'_> {
    /// When the sources were last changed, in seconds; the same sources give the same package.
    pub(crate) fn changed(&self) -> String {
        words_of(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(self.root))
            .map_or_else(|_| "0".to_owned(), |text| text.trim().to_owned())
    }
}

/// `horolog-VERSION-x86_64-linux.tar.gz`, to be unpacked into `/usr/local` or anywhere else.
fn tarball(build: &Build<'_>, out: &Path) -> Made<PathBuf> {
    let name = format!("horolog-{}-{}-linux", build.version, std::env::consts::ARCH);
    let tree = out.join(&name);
    stage::stage(build, &tree, &stage::Layout::tarball())?;
    let file = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-czf"]).arg(&file);
    tar.arg(format!("--mtime=@{}", build.changed())).arg("-C").arg(out).arg(&name);
    done(&mut tar, "tar")?;
    Ok(file)
}

/// The version of the workspace.
fn version(root: &Path) -> Made<String> {
    let text = fs::read_to_string(root.join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.split('"').next());
    version.map(str::to_owned).ok_or_else(|| "Cargo.toml: no version of the workspace".to_owned())
}

/// Runs a command that must succeed.
pub(crate) fn done(command: &mut Command, what: &str) -> Made<()> {
    if succeeds(command) { Ok(()) } else { Err(format!("{what} failed")) }
}

/// What a command that must succeed prints.
pub(crate) fn words_of(command: &mut Command) -> Made<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
