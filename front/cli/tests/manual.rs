//! The manual pages, as `man` and `mandoc` render them.

mod common;

use common::{Done, done, folder, horolog, inside};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Every page, written by `horolog man --out`.
fn pages(place: &tempfile::TempDir) -> Vec<PathBuf> {
    let out = inside(place, "man1");
    let written = done(["man", "--out", &out]);
    assert_eq!((written.status, written.out.as_str()), (Some(0), ""), "{written:?}");
    let mut pages: Vec<PathBuf> =
        fs::read_dir(out).expect("the folder").map(|entry| entry.expect("a page").path()).collect();
    pages.sort();
    assert!(pages.len() > 30, "{pages:?}");
    for name in ["horolog.1", "horolog-loop.1", "horolog-trace-record.1", "horolog-check-certificate.1"] {
        assert!(pages.iter().any(|page| page.ends_with(name)), "{name}");
    }
    pages
}

/// What a program says of a page, or of another file; `None`, said aloud, where it is not installed.
fn rendered(program: &str, words: &[&str], page: &PathBuf) -> Option<Done> {
    let mut command = Command::new(program);
    command.args(words).arg(page).env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    match command.output() {
        Ok(output) => Some(output.into()),
        Err(error) => {
            println!("SKIPPED: {} is not looked at: no {program}: {error}", page.display());
            None
        }
    }
}

#[test]
fn man_renders_every_page_without_a_warning() {
    let (place, _) = folder("");
    for page in pages(&place) {
        let Some(man) = rendered("man", &["--warnings", "-E", "UTF-8", "-P", "cat", "-l"], &page) else {
            return;
        };
        assert_eq!((man.status, man.err.as_str()), (Some(0), ""), "{}", page.display());
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "EXIT STATUS", "FILES", "SEE ALSO"] {
            let heads = man.out.lines().filter(|line| *line == section).count();
            assert_eq!(heads, 1, "{}: {section}\n{}", page.display(), man.out);
        }
    }
}

#[test]
fn mandoc_finds_nothing_to_say_about_any_page() {
    let (place, _) = folder("");
    for page in pages(&place) {
        let Some(lint) = rendered("mandoc", &["-Tlint", "-Wwarning"], &page) else { return };
        assert_eq!((lint.status, lint.out.as_str()), (Some(0), ""), "{}", page.display());
    }
    // A page with a fault is not passed over.
    let faulty = PathBuf::from(inside(&place, "faulty.1"));
    fs::write(&faulty, ".TH FAULTY 1\n.SH NAME\n.nosuchmacro\n").expect("writable");
    let lint = rendered("mandoc", &["-Tlint", "-Wwarning"], &faulty).expect("it is there");
    assert!(!lint.out.is_empty(), "{lint:?}");
}

#[test]
fn the_page_of_a_verb_is_printed_and_a_wrong_verb_refused() {
    let (place, _) = folder("");
    pages(&place);
    let printed = done(["man", "trace", "record"]);
    let written = fs::read_to_string(inside(&place, "man1/horolog-trace-record.1")).expect("the page");
    assert_eq!((printed.status, printed.out), (Some(0), written));
    let wrong = done(["man", "tracing"]);
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.err.contains("no verb `tracing`") && wrong.err.contains("trace"), "{wrong:?}");
}

/// Headers of a command that was built, not installed, as one of `cargo install`.
#[test]
fn headers_are_found_where_none_are_installed() {
    let (place, _) = folder("");
    let mut command = horolog(["--include-dir"]);
    command.env("XDG_CACHE_HOME", place.path());
    let found = Done::of(&mut command);
    assert_eq!(found.status, Some(0), "{found:?}");
    let include = PathBuf::from(found.out.trim_end());
    assert!(include.starts_with(place.path()), "{found:?}");
    for (header, source) in [
        ("horolog.h", "front/capi/include/horolog.h"),
        ("horolog/trace.h", "front/tracer/include/horolog/trace.h"),
    ] {
        let read =
            |path: PathBuf| fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(read(include.join(header)), read(common::root().join(source)), "{header}");
    }
    // One that was changed is written anew.
    fs::write(include.join("horolog.h"), "wrong").expect("writable");
    assert_eq!(Done::of(&mut command).status, Some(0));
    assert!(fs::read_to_string(include.join("horolog.h")).expect("a header").contains("HOROLOG_ABI_VERSION"));

    let flags = Command::new("pkg-config")
        .args(["--cflags", "horolog", "horolog-trace"])
        .env("PKG_CONFIG_PATH", include.join("../lib/pkgconfig"))
        .output();
    let Ok(flags) = flags else {
        println!("SKIPPED: no pkg-config: its files are not read");
        return;
    };
    let flags = Done::from(flags);
    assert_eq!(flags.status, Some(0), "{flags:?}");
    let source = inside(&place, "both.c");
    fs::write(
        &source,
        "#include <horolog.h>\n#include <horolog/trace.h>\nint control_step(horolog_job *job) \
        { HOROLOG_TRIGGER(\"a/b\", 1); return horolog_check(job); }\n",
    )
    .expect("writable");
    let built = Command::new("cc")
        .args(["-Wall", "-Werror", "-shared", "-fPIC", "-o", &inside(&place, "both.so"), &source])
        .args(flags.out.split_whitespace())
        .output()
        .expect("a compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

#[test]
fn the_folder_of_headers_is_asked_for_alone() {
    let both = done(["--include-dir", "doctor"]);
    assert_eq!((both.status, both.out.as_str()), (Some(2), ""), "{both:?}");
    let mut command = horolog(["--include-dir"]);
    let homeless = Done::of(command.env_remove("XDG_CACHE_HOME").env_remove("HOME"));
    assert!(homeless.status == Some(2) && homeless.err.contains("docs/install.md"), "{homeless:?}");
    let none = done(["--quiet"]);
    assert!(none.status == Some(2) && none.err.contains("say a verb"), "{none:?}");
}

/// The command alone, as `cargo install` leaves it: what needs a library says where that is had.
#[test]
fn a_command_without_its_libraries_names_the_package() {
    let (place, _) = folder("");
    let alone = inside(&place, "horolog");
    fs::copy(common::HOROLOG, &alone).expect("a copy");
    let out = inside(&place, "t.hrt");
    for words in [
        &["trace", "record", "-o", &out, "--", "/bin/true"][..],
        &["trace", "record", "--locks", "-o", &out, "--", "/bin/true"],
        &["trace", "top", "--", "/bin/true"],
        &["trace", "locks", "--", "/bin/true"],
    ] {
        let mut command = Command::new(&alone);
        let refused = Done::of(
            command
                .args(words)
                .env_remove("HOROLOG_LIBRARY_PATH")
                .env("PATH", "/nowhere")
                .stdin(Stdio::null()),
        );
        assert_eq!(refused.status, Some(3), "{words:?}: {refused:?}");
        for word in ["cargo install", "Debian package", "tarball", "docs/install.md"] {
            assert!(refused.err.contains(word), "{words:?}: {refused:?}");
        }
    }
    let mut command = Command::new(&alone);
    let checked =
        Done::of(command.args(["check", "examples/quick-start/system.toml"]).current_dir(common::root()));
    assert_eq!(checked.status, Some(0), "{checked:?}");
}

#[test]
fn completions_are_programs_of_their_shells() {
    let (place, _) = folder("");
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let printed = done(["completions", shell]);
        assert_eq!(printed.status, Some(0), "{shell}");
        for verb in ["check-certificate", "interference", "--include-dir"] {
            assert!(printed.out.contains(verb.trim_start_matches('-')), "{shell}: {verb}");
        }
        assert!(!printed.out.contains("bound-override"), "{shell} offers what is hidden");
        let gate = match shell {
            "bash" => "--gate)\n                    COMPREPLY=($(compgen -W \"proof model deadlines\"",
            "zsh" => "QUESTIONS:(proof model deadlines)",
            _ => "-l gate ",
        };
        assert!(printed.out.contains(gate), "{shell}: {gate}");
        let file = PathBuf::from(inside(&place, shell));
        fs::write(&file, printed.out).expect("writable");
        let Some(checked) = rendered(shell, &[check], &file) else { continue };
        assert_eq!((checked.status, checked.err.as_str()), (Some(0), ""), "{shell}");
    }
}
