//! Modules that come and go while triggers are switched; systems that refuse.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

mod common;

use common::{Built, build, library, lines, package};
use horolog_probe::switching;
use std::ffi::CString;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// A library of one site loads, runs and unloads in one thread while another switches it.
#[test]
fn dlopen_and_dlclose_race_with_switching() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["-std=c11", "-O2", "-fPIC", "-shared"];
    let Built::Program(path) = build(folder.path(), "gcc", &words, "module.c") else {
        println!("SKIPPED: no gcc");
        return;
    };
    let name = CString::new(path.to_str().expect("a name")).expect("no NUL");
    static STOP: AtomicBool = AtomicBool::new(false);
    let switcher = std::thread::spawn(|| {
        let mut found = 0;
        let mut on = false;
        while !STOP.load(Ordering::Relaxed) {
            on = !on;
            found += switching::apply("module/*", on).expect("switchable").sites;
        }
        switching::apply("module/*", false).expect("switchable");
        found
    });
    for _ in 0..200 {
        // SAFETY: the library's functions are called only while it is open.
        unsafe {
            let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
            assert!(!handle.is_null());
            let symbol = libc::dlsym(handle, c"run".as_ptr());
            let run = std::mem::transmute::<*mut libc::c_void, extern "C" fn(i32) -> i32>(symbol);
            assert_eq!(run(20), 20);
            assert_eq!(libc::dlclose(handle), 0);
        }
    }
    STOP.store(true, Ordering::Relaxed);
    let found = switcher.join().expect("no panic");
    assert_eq!(switching::apply("module/*", true).expect("switchable").sites, 0, "it is gone");
    println!("the switcher met the module {found} times");
}

/// The two bytes of the jump lie in two cache lines, and the second changes while threads run it.
#[test]
fn a_site_across_two_cache_lines_is_toggled() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["-std=c11", "-O2", "-fPIC", "-shared"];
    let Built::Program(path) = build(folder.path(), "gcc", &words, "across.c") else {
        println!("SKIPPED: no gcc");
        return;
    };
    let name = CString::new(path.to_str().expect("a name")).expect("no NUL");
    // SAFETY: the library stays open until the process ends; its function has this signature.
    let run = unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        let symbol = libc::dlsym(handle, c"run_across".as_ptr());
        std::mem::transmute::<*mut libc::c_void, extern "C" fn(i32) -> i32>(symbol)
    };
    let sites = switching::addresses("across/run");
    assert!(sites.iter().any(|site| site % 64 == 63), "{sites:x?}");
    static STOP: AtomicBool = AtomicBool::new(false);
    let threads: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(move || {
                while !STOP.load(Ordering::Relaxed) {
                    assert_eq!(run(1_000), 1_000);
                }
            })
        })
        .collect();
    for round in 0..600 {
        let count = switching::apply("across/run", round % 2 == 0).expect("switchable");
        assert_eq!(count.changed, sites.len());
    }
    STOP.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("no crash");
    }
}

/// A module that is loaded after a name was enabled starts enabled, by its constructor.
#[test]
fn a_module_loaded_late_follows() {
    let folder = tempfile::tempdir().expect("a folder");
    let built = build(folder.path(), "gcc", &["-O2", "-fPIC", "-shared"], "module.c");
    let host = build(folder.path(), "gcc", &["-O2", "-ldl"], "host.c");
    let (Built::Program(module), Built::Program(host)) = (built, host) else {
        println!("SKIPPED: no gcc");
        return;
    };
    let run = |enable: &str| {
        let mut command = Command::new(&host);
        command.arg(&module).env("LD_PRELOAD", library()).env("HOROLOG_TRACE_ENABLE", enable);
        lines(&mut command)
    };
    assert_eq!(run("module/*"), "enabled 1\nenabled 1\n", "loaded twice, with new descriptors each time");
    assert_eq!(run("other"), "enabled 0\nenabled 0\n");
}

/// Neither `/proc/self/mem` nor membarrier: the pages are replaced, and the program is told.
#[test]
fn a_hardened_system_gets_its_pages_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library();
    let link = ["-O2", "-Wl,--no-as-needed", library.to_str().expect("a name")];
    let Built::Program(program) = build(folder.path(), "gcc", &link, "hardened.c") else {
        println!("SKIPPED: no gcc");
        return;
    };
    let run = |words: &[&str], expected: &str| {
        let mut command = Command::new(&program);
        let said = lines(command.args(words).env("LD_LIBRARY_PATH", library.parent().expect("a folder")));
        if said.starts_with("SKIPPED") {
            println!("{said}");
        } else {
            assert_eq!(said, expected);
        }
    };
    run(&[], "enabled 1\ncalls 1\nreplaced yes\nkernel refused -1\ncalls 1\n");
    run(&["mdwe"], "kernel enabled 1\ncalls 1\nremap enabled 1\ncalls 2\n");
}

/// Fat LTO and both linkers on a Rust program with the sites' own sources, in one crate.
#[test]
fn rust_sites_survive_fat_lto_and_the_linkers() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = package().join("tests/programs/lto.rs");
    for (name, words) in [
        ("fat", &["-C", "lto=fat", "-C", "codegen-units=1"][..]),
        ("bfd", &["-C", "linker-flavor=gcc", "-C", "link-arg=-fuse-ld=bfd"]),
        ("lld", &["-C", "lto=fat", "-C", "link-arg=-fuse-ld=lld", "-C", "link-arg=-Wl,--gc-sections"]),
    ] {
        let program = folder.path().join(name);
        let output = Command::new("rustc")
            .args(["--edition", "2024", "-O", "-A", "dead_code", "-A", "unused", "-o"])
            .arg(&program)
            .args(words)
            .arg(&source)
            .output()
            .expect("rustc runs");
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() && said.contains("invalid linker name") {
            println!("SKIPPED: {name}: no such linker");
            continue;
        }
        assert!(output.status.success(), "{name}: {said}");
        let mut traced = Command::new(&program);
        traced.env("LD_PRELOAD", library()).env("HOROLOG_TRACE_ENABLE", "lto/*");
        assert_eq!(lines(&mut traced), "calls 42\n", "{name}: every copy is switched");
        assert_eq!(lines(&mut Command::new(&program)), "calls 0\n", "{name}");
    }
}
