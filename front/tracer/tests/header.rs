//! The header in C and C++, with every compiler, linker and way of linking that is there; without a runtime, preloaded and
//! as archive.

mod common;

use common::{Built, build, library, lines};
use std::process::Command;

/// What `every.c` prints while all its triggers are enabled, in C.
const ENABLED: &str = "\
every/0 
every/1 b 1
every/2 ui 200 -5
every/3 ffp 1.5 2.5 text
every/4 iuiu 1 2 3 4
every/10 iiiiiiiiii 1 2 3 4 5 6 7 8 9 -10
every/text ssis text abc 4 (null)
every/evaluated i 1
every/inline i 0
every/inline i 1
every/inline i 7
";

const CPP_ENABLED: &str = "\
every/template ii -4 -4
every/template ff 0.25 0.25
every/enum up 3 null
";

/// What it prints disabled, after the lines of enabled triggers.
fn end(evaluated: u32, state: &str) -> String {
    format!("evaluated {evaluated}\n{state}\nevaluated {evaluated}\n")
}

fn expected(language: &str) -> String {
    let cpp = if language == "c++" { CPP_ENABLED } else { "" };
    format!("{ENABLED}{cpp}{}", end(1, "all enabled"))
}

/// Ways to build: the flags, and whether a preloaded library reaches the program (not a static one).
const WAYS: [(&[&str], bool); 9] = [
    (&["-O0"], true),
    (&["-O2", "-Wl,--gc-sections", "-ffunction-sections", "-fdata-sections", "-fcf-protection=full"], true),
    (&["-O2", "-fno-pie", "-no-pie"], true),
    (&["-O3", "-flto"], true),
    (&["-O2", "-fuse-ld=lld", "-Wl,--gc-sections", "-ffunction-sections"], true),
    (&["-O2", "-fuse-ld=gold", "-Wl,--gc-sections", "-ffunction-sections"], true),
    (&["-O2", "-fuse-ld=mold", "-Wl,--gc-sections", "-ffunction-sections"], true),
    (&["-Os", "-static-pie"], false),
    (&["-O2", "-DHOROLOG_TRIGGER_PORTABLE"], true),
];

fn in_language(language: &str, compilers: &[&str], standard: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    for compiler in compilers {
        for (flags, preloadable) in WAYS {
            let mut words = vec![standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", language];
            words.extend(flags);
            let Built::Program(program) = build(folder.path(), compiler, &words, "every.c") else { continue };
            // Nobody needs symbols or sections.
            let _ = Command::new("strip").arg(&program).status();
            let what = format!("{compiler} {flags:?}");
            assert_eq!(lines(&mut Command::new(&program)), end(0, "no runtime"), "{what}");
            if preloadable {
                let mut traced = Command::new(&program);
                traced.env("LD_PRELOAD", library()).env("HOROLOG_TRACE_ENABLE", "every/*");
                assert_eq!(lines(&mut traced), expected(language), "{what}, preloaded");
                let mut off = Command::new(&program);
                off.env("LD_PRELOAD", library());
                assert_eq!(lines(&mut off), end(0, "none enabled"), "{what}, preloaded, disabled");
            }
        }
    }
}

#[test]
fn in_c() {
    in_language("c", &["gcc", "clang"], "-std=c11");
}

#[test]
fn in_cpp() {
    in_language("c++", &["g++", "clang++"], "-std=c++17");
}

#[test]
fn what_cannot_be_an_argument_does_not_compile() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = [
        ("eleven", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"),
        ("structure", "value"),
        ("union", "(union either){0}"),
        ("long-double", "1.0L"),
        ("wide", "(__int128)1"),
    ];
    let allowed =
        "a trigger takes bool, integers of at most 64 bits, float, double, pointers and HOROLOG_STRING";
    for (compiler, language, standard) in [
        ("gcc", "c", "-std=c11"),
        ("clang", "c", "-std=c11"),
        ("g++", "c++", "-std=c++17"),
        ("clang++", "c++", "-std=c++17"),
    ] {
        for (name, arguments) in bad {
            let source = folder.path().join(format!("{name}.c"));
            let text = format!(
                "#include <horolog/trace.h>\nstruct pair {{ int a, b; }};\nunion either {{ int a; float b; }};\nint use(struct pair value);\n\
                 int use(struct pair value) {{ (void)value; HOROLOG_TRIGGER(\"bad\", {arguments}); return 0; }}\n"
            );
            std::fs::write(&source, text).expect("writable");
            let words = [standard, "-x", language, "-c"];
            match build(folder.path(), compiler, &words, source.to_str().expect("a name")) {
                Built::Refused(why) => {
                    let reason =
                        if name == "eleven" { "a trigger takes at most ten arguments" } else { allowed };
                    assert!(why.contains(reason), "{compiler} {name}: {why}");
                }
                Built::Absent => {}
                Built::Program(_) => panic!("{compiler} took {name}"),
            }
        }
    }
}

/// What is an address, or becomes a number, compiles: arrays and functions among them, and arguments that cannot be evaluated twice.
#[test]
fn what_can_be_an_argument_compiles_without_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "array, use, &use, value, *value ? 1 : 2, letter, number++, text[0], (void *)0, NULL",
        "\"literal\", HOROLOG_STRING(text), HOROLOG_STRING_N(text, 1), HOROLOG_ARG(\"n\", \"B\", *value), HOROLOG_FLOW(number)",
        "1.5f, (double)number, (short)1, (unsigned char)2, 3ull, number == 1, (number, 2)",
    ];
    for (compiler, language, standard) in [
        ("gcc", "c", "-std=c11"),
        ("clang", "c", "-std=c11"),
        ("g++", "c++", "-std=c++17"),
        ("clang++", "c++", "-std=c++17"),
    ] {
        for (index, arguments) in arguments.iter().enumerate() {
            let source = folder.path().join(format!("good{index}.c"));
            let text = format!(
                "#include <horolog/trace.h>\nenum letter {{ A, B }};\nint use(volatile int *value, int number, const char *text);\n\
                 int use(volatile int *value, int number, const char *text) {{ char array[4] = {{ 0 }}; enum letter letter = B;\n\
                 (void)value; (void)number; (void)text; (void)array; (void)letter;\n\
                 HOROLOG_TRIGGER(\"good\", {arguments}); return 0; }}\n"
            );
            std::fs::write(&source, text).expect("writable");
            let flags = [
                "-Wall",
                "-Wextra",
                "-Wno-unused-value",
                "-Wno-unused-command-line-argument",
                "-Werror",
                "-x",
                language,
                "-c",
            ];
            let words: Vec<&str> = [standard].into_iter().chain(flags).collect();
            if let Built::Refused(why) =
                build(folder.path(), compiler, &words, source.to_str().expect("a name"))
            {
                panic!("{compiler} {arguments}: {why}");
            }
        }
    }
}

#[test]
fn an_event_has_a_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for (compiler, language, standard) in [
        ("gcc", "c", "-std=c11"),
        ("clang", "c", "-std=c11"),
        ("g++", "c++", "-std=c++17"),
        ("clang++", "c++", "-std=c++17"),
    ] {
        for (name, macros) in [("plain", "HOROLOG_TRIGGER(\"\")"), ("with", "HOROLOG_TRIGGER(\"\", 1)")] {
            let source = folder.path().join(format!("{name}.c"));
            std::fs::write(
                &source,
                format!(
                    "#include <horolog/trace.h>\nint use(void);\nint use(void) {{ {macros}; return 0; }}\n"
                ),
            )
            .expect("writable");
            let words = [standard, "-x", language, "-c"];
            match build(folder.path(), compiler, &words, source.to_str().expect("a name")) {
                Built::Refused(why) => {
                    assert!(why.contains("an event has a name"), "{compiler} {name}: {why}")
                }
                Built::Absent => {}
                Built::Program(_) => panic!("{compiler} took {name}"),
            }
        }
    }
}

#[test]
fn the_header_compiles_for_aarch64() {
    let folder = tempfile::tempdir().expect("a folder");
    for (compiler, language, standard) in
        [("aarch64-linux-gnu-gcc", "c", "-std=c11"), ("aarch64-linux-gnu-g++", "c++", "-std=c++17")]
    {
        let words = [standard, "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-x", language, "-c"];
        if let Built::Refused(reason) = build(folder.path(), compiler, &words, "every.c") {
            panic!("{compiler}: {reason}");
        }
    }
}

#[test]
fn a_site_on_aarch64_works_under_emulation() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["-O2", "-static", "-Wall", "-Wextra", "-Werror"];
    let built = build(folder.path(), "aarch64-linux-gnu-gcc", &words, "portable.c");
    let program = match built {
        Built::Program(program) => program,
        Built::Refused(why) => panic!("{why}"),
        Built::Absent => return,
    };
    match Command::new("qemu-aarch64").arg(&program).status() {
        Ok(status) => assert!(status.success(), "check {status} of portable.c"),
        Err(error) => println!("SKIPPED: qemu-aarch64: {error} (Debian: qemu-user)"),
    }
}
