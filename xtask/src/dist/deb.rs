//! The Debian package.

use super::stage::{Layout, mode, packed_text, read, stage, write};
use super::{Build, Made, done, words_of};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who answers for the package: who builds it, by the variables of Debian's tools (`DEBFULLNAME`, `DEBEMAIL`). Without them the package
/// says that it was built for this machine alone.
fn maintainer() -> String {
    named_maintainer().unwrap_or_else(|| "A local build <root@localhost>".to_owned())
}

/// Who builds it, where he is named.
pub(super) fn named_maintainer() -> Option<String> {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let address = given("DEBEMAIL")?;
    Some(format!("{} <{address}>", given("DEBFULLNAME").unwrap_or_else(|| address.clone())))
}

const DESCRIPTION: &str = "timing platform for real-time Linux
 From one system file horolog proves that every deadline holds, simulates the
 system, runs it with real threads and scheduling classes, records what the
 kernel did, and checks the record against the proof.
 .
 It also records the events and locks of other programs, measures what the
 machine costs, and proposes a system file for a program that runs already.
 .
 This package has the command, the libraries that are preloaded into traced
 programs, the headers for C and C++, and a service that runs a system.
";

/// A service of ours must not outlive the command.
const BEFORE_REMOVAL: &str = "#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl stop 'horolog@*.service' || true
fi
";

const AFTER_INSTALLATION: &str = "#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
";

/// An empty folder of journals goes, too; what a killed run has left in it stays.
const AFTER_REMOVAL: &str = "#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ -d /run/horolog ]; then
    rmdir --ignore-fail-on-non-empty /run/horolog
fi
";

/// What lintian is not to find.
const OVERRIDES: &str =
    "# The parser of YAML is written in Rust and has messages of libyaml; the C library is not in it.
horolog: embedded-library libyaml *
";

/// Makes `horolog_VERSION-1_ARCHITECTURE.deb`.
pub(crate) fn make(build: &Build<'_>, out: &Path) -> Made<PathBuf> {
    let tree = out.join("deb");
    stage(build, &tree, &Layout::debian())?;
    let documents = tree.join("usr/share/doc/horolog");
    write(&documents.join("copyright"), copyright(build.root)?.as_bytes())?;
    write(&documents.join("changelog.Debian.gz"), &packed_text(changelog(build)?.as_bytes())?)?;
    write(&tree.join("usr/share/lintian/overrides/horolog"), OVERRIDES.as_bytes())?;
    let architecture = words_of(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned();
    let control = control(build, &tree, &architecture)?;
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    for (name, text) in
        [("prerm", BEFORE_REMOVAL), ("postinst", AFTER_INSTALLATION), ("postrm", AFTER_REMOVAL)]
    {
        let path = tree.join("DEBIAN").join(name);
        write(&path, text.as_bytes())?;
        mode(&path, 0o755).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    write(&tree.join("DEBIAN/md5sums"), sums(&tree)?.as_bytes())?;
    let file = out.join(format!("horolog_{}-1_{architecture}.deb", build.version));
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "-Zxz", "--build"]).arg(&tree).arg(&file);
    done(pack.env("SOURCE_DATE_EPOCH", build.changed()), "dpkg-deb")?;
    Ok(file)
}

fn control(build: &Build<'_>, tree: &Path, architecture: &str) -> Made<String> {
    let size = words_of(Command::new("du").args(["-sk", "--apparent-size"]).arg(tree.join("usr")))?;
    let size = size.split_whitespace().next().unwrap_or("0").to_owned();
    let mut text = String::new();
    let fields = [
        ("Package", "horolog"),
        ("Version", &format!("{}-1", build.version)),
        ("Section", "devel"),
        ("Priority", "optional"),
        ("Architecture", architecture),
        ("Maintainer", &maintainer()),
        ("Installed-Size", &size),
        ("Depends", &dependencies(build, tree)?),
        ("Suggests", "gcc, pkgconf"),
        ("Description", DESCRIPTION.trim_end()),
    ];
    for (name, value) in fields {
        let _ = writeln!(text, "{name}: {value}");
    }
    Ok(text)
}

/// The packages of the shared libraries, in the versions whose symbols are used.
fn dependencies(build: &Build<'_>, tree: &Path) -> Made<String> {
    // It wants a source package's control file.
    let folder = build.root.join("target/package/shlibdeps");
    write(&folder.join("debian/control"), b"Source: horolog\n\nPackage: horolog\nArchitecture: any\n")?;
    let mut command = Command::new("dpkg-shlibdeps");
    command.arg("-O").current_dir(&folder);
    for file in ["bin/horolog", "lib/horolog/libhorolog_trace.so", "lib/horolog/libhorolog_locks.so"] {
        command.arg(format!("-e{}", tree.join("usr").join(file).display()));
    }
    let text = words_of(&mut command)?;
    let depends = text.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    depends.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps names no dependencies: {text}"))
}

fn copyright(root: &Path) -> Made<String> {
    let mit = read(&root.join("LICENSE-MIT"))?;
    let holder =
        mit.lines().find(|line| line.starts_with("Copyright")).unwrap_or("Copyright the horolog developers");
    let terms: String = mit
        .lines()
        .skip_while(|line| !line.starts_with("Permission is"))
        .map(|line| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
        .collect();
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: horolog
Comment: The crates that are linked in have their licences in third-party.txt.gz.

Files: *
Copyright: {}
License: Apache-2.0 or MIT

License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.

License: MIT
{terms}",
        holder.trim_start_matches("Copyright").trim().trim_start_matches("(c)").trim()
    ))
}

fn changelog(build: &Build<'_>) -> Made<String> {
    let date = words_of(Command::new("date").args(["-u", "-R", "-d"]).arg(format!("@{}", build.changed())))?;
    let version = &build.version;
    Ok(format!(
        "horolog ({version}-1) unstable; urgency=medium\n\n  * Packaged; the changes are in changelog.gz.\n\n -- {}  {}\n",
        maintainer(),
        date.trim()
    ))
}

/// The sums of all files, by which `dpkg --verify` finds changed ones.
fn sums(tree: &Path) -> Made<String> {
    let files = words_of(Command::new("find").args(["usr", "-type", "f"]).current_dir(tree))?;
    let mut files: Vec<&str> = files.lines().collect();
    files.sort_unstable();
    words_of(Command::new("md5sum").args(files).current_dir(tree))
}
