//! C and C++ programs under the preloaded library: they behave as without it, and tell what they do exactly.

mod common;
mod real;

use common::{Traced, compile, library, traced};
use std::path::Path;
use std::process::{Command, Output};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn run(program: &Path, preloaded: bool) -> Output {
    let mut command = Command::new(program);
    if preloaded {
        command.env("LD_PRELOAD", library());
    }
    command.output().expect("the program runs")
}

fn succeeded(traced: &Traced) {
    let error = String::from_utf8_lossy(&traced.output.stderr).into_owned();
    assert!(traced.output.status.success(), "{:?}: {}{error}", traced.output.status, traced.stdout());
    assert_eq!((error.as_str(), traced.lost), ("", 0));
}

#[test]
fn every_function_returns_what_it_returns_without_the_library() {
    let folder = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "returns.c") else { return };
    let alone = run(&program, false);
    let expected = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(alone.status.success() && expected.lines().count() == 90, "{expected}");
    for call in ["EOWNERDEAD", "ENOTRECOVERABLE"] {
        let number = if call == "EOWNERDEAD" { " = 130," } else { " = 131," };
        assert!(expected.contains(number), "the program sees {call}");
    }
    let off = run(&program, true);
    assert_eq!(String::from_utf8_lossy(&off.stdout), expected);
    let on = traced(folder.path(), &mut Command::new(&program));
    succeeded(&on);
    assert_eq!(on.stdout(), expected);
    let count = |name: &str| on.events.iter().filter(|event| event.name == name).count();
    assert_eq!(count("lock/acquire"), count("lock/acquired") + count("lock/refused"));
    assert_eq!(count("lock/wait"), count("lock/woken"));
    assert!(count("lock/refused") > 20 && count("lock/release") > 20);
}

#[test]
fn a_known_sequence_gives_exactly_its_events() {
    let folder = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "sequence.c") else { return };
    let traced = traced(folder.path(), &mut Command::new(program));
    succeeded(&traced);
    assert_eq!(
        traced.story(),
        [
            "acquire a",
            "acquired a",
            "acquire b",
            "acquired b",
            "acquire b",
            "acquired b",
            "release b",
            "release b",
            "acquire a",
            "refused a",
            "wait a condition",
            "woken a condition",
            "release a",
            "acquire rw",
            "acquired rw",
            "acquire rw",
            "refused rw",
            "release rw",
            "acquire rw",
            "acquired rw",
            "release rw",
            "acquire spin",
            "acquired spin",
            "release spin",
            "acquire c11",
            "acquired c11",
            "release c11",
        ]
    );
    let of = |what: &str, lock: &str| {
        let address = traced.addresses()[lock];
        traced.events.iter().find(|event| event.name == what && event.words[0] == address).cloned()
    };
    // Class and flags: a plain mutex, a recursive one with priority inheritance, read, write, spin.
    let class = |what, lock| of(what, lock).map(|event| event.words[1]);
    assert_eq!(class("lock/acquired", "a"), Some(0));
    assert_eq!(class("lock/acquired", "b"), Some(0x500));
    assert_eq!(class("lock/acquired", "rw"), Some(1));
    assert_eq!(class("lock/refused", "rw"), Some(2));
    assert_eq!(class("lock/acquired", "spin"), Some(3));
    // The call site lies in the function that calls, just behind the call.
    let site = of("lock/acquired", "a").expect("an event").words[2];
    let distance = site.wrapping_sub(traced.addresses()["site"]);
    assert!((1..64).contains(&distance), "the call site is {distance} bytes into the function");
    let error = |lock| of("lock/refused", lock).and_then(|event| event.words.get(3).copied());
    assert_eq!((error("a"), error("rw")), (Some(16), Some(16)), "EBUSY");
    let woken = of("lock/woken", "a").expect("an event");
    assert_eq!(woken.words[4], 110, "ETIMEDOUT");
}

#[test]
fn modules_are_told_so_that_call_sites_have_names() {
    let folder = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "sequence.c") else { return };
    let traced = traced(folder.path(), &mut Command::new(&program));
    let site = traced.addresses()["site"];
    let own = traced.events.iter().find(|event| {
        event.name == "lock/module" && event.words[1] <= site && site < event.words[2] && event.words[3] == 0
    });
    let own = own.expect("the program's own module");
    let path: Vec<u8> = own.words[4..].iter().flat_map(|word| word.to_le_bytes()).collect();
    let path = String::from_utf8_lossy(&path).trim_end_matches('\0').to_owned();
    assert!(program.to_string_lossy().starts_with(&path), "{path}");
}

#[test]
fn a_cancelled_wait_reopens_the_section_for_the_clean_up() {
    let folder = folder();
    for (compiler, words) in
        [("cc", &[][..]), ("cc", &["-fexceptions"]), ("c++", &["-x", "c++"]), ("cc", &["-static-libgcc"])]
    {
        let Some(program) = compile(folder.path(), compiler, words, "cancel.c") else { continue };
        let traced = traced(folder.path(), &mut Command::new(program));
        succeeded(&traced);
        assert!(traced.stdout().contains("cancelled 1, cleaned 1, mutex free 1"), "{}", traced.stdout());
        let woken =
            traced.events.iter().find(|event| event.name == "lock/woken").expect("the end of the wait");
        assert_eq!(woken.words[4], 125, "ECANCELED");
        let own: Vec<&str> = traced
            .events
            .iter()
            .filter(|event| event.tid == woken.tid && event.name != "lock/module")
            .map(|event| event.name.as_str())
            .collect();
        assert_eq!(own, ["lock/acquire", "lock/acquired", "lock/wait", "lock/woken", "lock/release"]);
    }
}

#[test]
fn a_program_of_2003_gets_the_condition_variables_of_2003() {
    if cfg!(not(target_arch = "x86_64")) {
        println!("SKIPPED: old condition variables: only x86-64 has two versions");
        return;
    }
    let folder = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "old_condition.c") else { return };
    let expected = "timed out 1\nsaid 1, a pointer 1, untouched 1\n";
    let alone = String::from_utf8_lossy(&run(&program, false).stdout).into_owned();
    assert!(alone.ends_with(expected), "{alone}");
    let traced = traced(folder.path(), &mut Command::new(program));
    succeeded(&traced);
    assert!(traced.stdout().ends_with(expected), "{}", traced.stdout());
    let story = traced.story();
    assert_eq!(
        story[..4],
        ["acquire mutex", "acquired mutex", "wait mutex condition", "woken mutex condition"]
    );
}

#[test]
fn locks_before_the_start_in_malloc_in_handlers_and_across_fork() {
    let folder = folder();
    let Some(program) = compile(folder.path(), "cc", &[], "early.c") else { return };
    let traced = traced(folder.path(), &mut Command::new(program));
    succeeded(&traced);
    assert!(traced.stdout().starts_with("calls so far 3\n"), "{}", traced.stdout());
    assert!(traced.stdout().ends_with("child 0\nexec 0\n"), "{}", traced.stdout());
    // Before any initialisation nothing is recorded, after it everything: here the constructor's, the handler's, the
    // forked child's thousand, main's and the destructor's.
    let story = traced.story();
    let own: Vec<&str> = story
        .iter()
        .map(String::as_str)
        .filter(|line| line.ends_with("mutex") || line.ends_with("spin"))
        .collect();
    let section = ["acquire mutex", "acquired mutex", "release mutex"];
    let mut expected = [section, ["acquire spin", "acquired spin", "release spin"]].concat();
    expected.extend(section.repeat(1_000 + 2));
    // Thousands of lines say less than the first that differs.
    let first = own.iter().zip(&expected).position(|(own, expected)| own != expected);
    assert_eq!((own.len(), first), (expected.len(), None));
    assert!(story.iter().any(|line| line == "acquired memory"), "malloc's own lock is seen");
}
