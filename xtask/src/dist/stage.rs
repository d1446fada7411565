//! The tree of files that a package holds.

use super::{Build, Made, done, licences, words_of};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where things go that differ between the packages.
pub(crate) struct Layout {
    /// The prefix, below the tree.
    prefix: &'static str,
    /// What stands for the prefix in `.pc` files.
    pc_prefix: &'static str,
    /// Where the command will be, for the service.
    bin: &'static str,
    zsh: &'static str,
    /// Whether the licences' texts are files of their own.
    has_licence_files: bool,
}

impl Layout {
    /// Unpacked anywhere: `.pc` files find their prefix from where they are.
    pub(crate) fn tarball() -> Layout {
        Layout {
            prefix: "",
            pc_prefix: "${pcfiledir}/../..",
            bin: "/usr/local/bin",
            zsh: "share/zsh/site-functions",
            has_licence_files: true,
        }
    }

    /// Debian's: its `copyright` has the licences.
    pub(crate) fn debian() -> Layout {
        Layout {
            prefix: "usr",
            pc_prefix: "/usr",
            bin: "/usr/bin",
            zsh: "share/zsh/vendor-completions",
            has_licence_files: false,
        }
    }
}

/// Libraries, beside each other where the command looks for them.
const LIBRARIES: [&str; 3] = ["libhorolog_trace.so", "libhorolog_locks.so", "libhorolog_trace.a"];

const HEADERS: [(&str, &str); 2] = [
    ("front/capi/include/horolog.h", "horolog.h"),
    ("front/tracer/include/horolog/trace.h", "horolog/trace.h"),
];

const PC_FILES: [&str; 3] = [
    "front/capi/horolog.pc.in",
    "front/tracer/horolog-trace.pc.in",
    "front/tracer/horolog-trace-runtime.pc.in",
];

/// Makes the tree anew.
pub(crate) fn stage(build: &Build<'_>, tree: &Path, layout: &Layout) -> Made<()> {
    if tree.exists() {
        fs::remove_dir_all(tree).map_err(|error| format!("{}: {error}", tree.display()))?;
    }
    let prefix = tree.join(layout.prefix);
    programs(build, &prefix)?;
    for (from, to) in HEADERS {
        copy(&build.root.join(from), &prefix.join("include").join(to), 0o644)?;
    }
    for from in PC_FILES {
        let text = read(&build.root.join(from))?;
        let text = text.replace("@PREFIX@", layout.pc_prefix).replace("@VERSION@", &build.version);
        let name = from.rsplit('/').next().unwrap_or(from).trim_end_matches(".in");
        write(&prefix.join("lib/pkgconfig").join(name), text.as_bytes())?;
    }
    let unit = read(&build.root.join("examples/systemd/horolog@.service"))?;
    let unit = unit.replace("/usr/local/bin", layout.bin);
    write(&prefix.join("lib/systemd/system/horolog@.service"), unit.as_bytes())?;
    generated(&prefix, layout)?;
    documents(build, &prefix, layout)
}

/// The command and its libraries, without the symbols that only a debugger reads.
fn programs(build: &Build<'_>, prefix: &Path) -> Made<()> {
    let command = prefix.join("bin/horolog");
    copy(&build.folder.join("horolog"), &command, 0o755)?;
    strip(&command, &["--strip-unneeded"])?;
    for name in LIBRARIES {
        let to = prefix.join("lib/horolog").join(name);
        copy(&build.folder.join(name), &to, 0o644)?;
        let words: &[&str] = if name.ends_with(".a") {
            &["--strip-debug", "--enable-deterministic-archives"]
        } else {
            &["--strip-unneeded"]
        };
        strip(&to, words)?;
    }
    Ok(())
}

fn strip(file: &Path, words: &[&str]) -> Made<()> {
    // The compiler's comments are no use to anybody.
    let words = words.iter().chain(&["--remove-section=.comment"]);
    done(Command::new("strip").args(words).arg(file), &format!("strip {}", file.display()))
}

/// What the command prints: completions and manual pages.
fn generated(prefix: &Path, layout: &Layout) -> Made<()> {
    let horolog = || Command::new(prefix.join("bin/horolog"));
    for (shell, path) in [
        ("bash", "share/bash-completion/completions/horolog".to_owned()),
        ("zsh", format!("{}/_horolog", layout.zsh)),
        ("fish", "share/fish/vendor_completions.d/horolog.fish".to_owned()),
    ] {
        let text = words_of(horolog().args(["completions", shell]))?;
        write(&prefix.join(path), text.as_bytes())?;
    }
    let pages = prefix.join("share/man/man1");
    done(horolog().args(["man", "--out"]).arg(&pages), "horolog man")?;
    let entries = fs::read_dir(&pages).map_err(|error| format!("{}: {error}", pages.display()))?;
    for entry in entries {
        let page = entry.map_err(|error| error.to_string())?.path();
        let text = fs::read(&page).map_err(|error| format!("{}: {error}", page.display()))?;
        let packed = page.with_extension("1.gz");
        write(&packed, &packed_text(&text)?)?;
        fs::remove_file(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    }
    Ok(())
}

fn documents(build: &Build<'_>, prefix: &Path, layout: &Layout) -> Made<()> {
    let folder = prefix.join("share/doc/horolog");
    write(&folder.join("changelog.gz"), &packed_text(read(&build.root.join("CHANGELOG.md"))?.as_bytes())?)?;
    write(&folder.join("third-party.txt.gz"), &packed_text(licences::third_party(build.root)?.as_bytes())?)?;
    if layout.has_licence_files {
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&build.root.join(name), &folder.join(name), 0o644)?;
        }
    }
    for name in ["install.md", "contract.md", "system-file.md", "machine.md", "trace-format.md"] {
        copy(&build.root.join("docs").join(name), &folder.join(name), 0o644)?;
    }
    for path in examples(build.root)? {
        let from = build.root.join(&path);
        copy(&from, &folder.join(&path), 0o644)?;
    }
    Ok(())
}

/// Examples that work where they are installed: all but Rust crates, broken files, and what belongs to tests.
fn examples(root: &Path) -> Made<Vec<PathBuf>> {
    let listed = words_of(Command::new("git").args(["ls-files", "examples"]).current_dir(root))?;
    let wanted = |path: &&str| {
        let left_out = ["examples/broken/", "examples/rust-api/", "examples/systemd/"];
        let is_rust = path.ends_with(".rs") || path.ends_with("Cargo.toml");
        !is_rust && !path.ends_with("expected.md") && !left_out.iter().any(|folder| path.starts_with(folder))
    };
    Ok(listed.lines().filter(wanted).map(PathBuf::from).collect())
}

/// Packed as Debian wants it, without a time.
pub(crate) fn packed_text(text: &[u8]) -> Made<Vec<u8>> {
    let mut gzip = Command::new("gzip");
    let spawned = gzip.args(["-9n", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut gzip = spawned.map_err(|error| format!("gzip: {error}"))?;
    let mut input = gzip.stdin.take().ok_or("gzip: no input")?;
    let text = text.to_owned();
    let writing = std::thread::spawn(move || input.write_all(&text));
    let output = gzip.wait_with_output().map_err(|error| format!("gzip: {error}"))?;
    let is_written = writing.join().is_ok_and(|written| written.is_ok());
    if is_written && output.status.success() { Ok(output.stdout) } else { Err("gzip failed".to_owned()) }
}

pub(crate) fn read(path: &Path) -> Made<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Made<()> {
    make_parent(path)?;
    fs::write(path, bytes)
        .and_then(|()| mode(path, 0o644))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path, permissions: u32) -> Made<()> {
    make_parent(to)?;
    fs::copy(from, to).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))?;
    mode(to, permissions).map_err(|error| format!("{}: {error}", to.display()))
}

fn make_parent(path: &Path) -> Made<()> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))
}

pub(crate) fn mode(path: &Path, permissions: u32) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(permissions))
}
