//! Golden fact 2: instructions counted by single-stepping. A disabled trigger is one instruction; an enabled one costs at
//! most three more than the same call without a site. What the compiler spills in the traced function is printed.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

mod common;

use common::{Built, build};
use horolog_probe::{Emit, Event, switching, trigger_callback};
use horolog_sys::single_step::single_step;
use std::ffi::{CString, c_int};
use std::path::Path;

type Function = extern "C" fn(c_int) -> c_int;

/// What a run of a function came to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    instructions: i64,
    stack: i64,
}

/// Runs `function` in a child process, one instruction at a time.
fn step(function: Function, argument: c_int) -> Option<Run> {
    let steps = single_step(|| true, function, argument).ok()?;
    Some(Run { instructions: steps.instructions as i64, stack: steps.stack as i64 })
}

/// The functions of a built library.
struct Library(*mut libc::c_void);

impl Library {
    fn open(path: &Path) -> Library {
        let path = CString::new(path.to_str().expect("a name")).expect("no NUL");
        // SAFETY: a library of this test, whose constructor only looks for a runtime.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Library(handle)
    }

    fn symbol(&self, name: &str) -> *mut libc::c_void {
        let text = CString::new(name).expect("no NUL");
        // SAFETY: the handle is open.
        let symbol = unsafe { libc::dlsym(self.0, text.as_ptr()) };
        assert!(!symbol.is_null(), "{name}");
        symbol
    }

    fn function(&self, name: &str) -> Function {
        // SAFETY: every function of the library has this signature.
        unsafe { std::mem::transmute::<*mut libc::c_void, Function>(self.symbol(name)) }
    }

    /// Makes calls without a site go where a runtime makes the others go.
    fn receive(&self) {
        let event = self.symbol("plain_event").cast::<u8>();
        // SAFETY: an event of the library, used by this thread alone; the receiver has the wanted signature.
        unsafe { event.add(Event::CALL_OFFSET).cast::<Emit>().write(horolog_probe::emit) };
    }
}

/// Counts every pair of one library, prints a line for each, and judges those whose frame the compiler needs anyway.
fn judge(compiler: &str, library: &Library) -> Option<()> {
    library.receive();
    for place in ["among", "start", "middle"] {
        let run = |suffix: &str| step(library.function(&format!("{place}_{suffix}")), 5);
        let (without, off) = (run("without")?, run("trigger")?);
        let (plain, plain_callback) = (run("plain")?, run("plain_callback")?);
        let off_callback = run("callback")?;
        switching::apply("steps/*", true).expect("switchable");
        let (on, on_callback) = (run("trigger")?, run("callback")?);
        switching::apply("steps/*", false).expect("switchable");
        println!(
            "{compiler:8} {place:6}: without {}, disabled +{} ({} spilled, {} bytes of stack), enabled +{}; \
             plain call +{}; callback: disabled +{}, enabled +{}, plain +{}",
            without.instructions,
            off.instructions - without.instructions,
            off.instructions - without.instructions - 1,
            off.stack - without.stack,
            on.instructions - without.instructions,
            plain.instructions - without.instructions,
            off_callback.instructions - without.instructions,
            on_callback.instructions - without.instructions,
            plain_callback.instructions - without.instructions,
        );
        assert!(off.instructions > without.instructions);
        if place == "among" {
            assert_eq!(off.instructions, without.instructions + 1, "{compiler}: disabled is one instruction");
            assert!(on.instructions <= plain.instructions + 5, "{compiler}: {on:?} {plain:?}");
            assert!(on_callback.instructions <= plain_callback.instructions + 3, "{compiler}");
        }
    }
    Some(())
}

#[test]
fn instructions_of_triggers_in_c() {
    let folder = tempfile::tempdir().expect("a folder");
    for compiler in ["gcc", "clang"] {
        let words = ["-std=c11", "-O2", "-fPIC", "-shared", "-Wno-attributes", "-Wno-unknown-attributes"];
        match build(folder.path(), compiler, &words, "steps.c") {
            Built::Program(path) => {
                if judge(compiler, &Library::open(&path)).is_none() {
                    println!("SKIPPED: {compiler}: single-stepping a child is not permitted here");
                }
            }
            Built::Refused(reason) => panic!("{compiler}: {reason}"),
            Built::Absent => {}
        }
    }
}

fn nothing(event: &Event, words: &[u64]) {
    std::hint::black_box((event, words));
}

#[inline(never)]
extern "C" fn other(x: c_int) -> c_int {
    std::hint::black_box(x) + 1
}

extern "C" fn without(x: c_int) -> c_int {
    let y = other(x);
    other(y) * 2 + other(x) + y
}

extern "C" fn trigger(x: c_int) -> c_int {
    let y = other(x);
    trigger_callback!("steps/rust", nothing, y);
    other(y) * 2 + other(x) + y
}

extern "C" fn plain(x: c_int) -> c_int {
    static EVENT: Event = Event::of_sites(c"steps/plain", 1, None);
    let y = other(x);
    horolog_probe::Arguments::call((y,), &EVENT, nothing);
    other(y) * 2 + other(x) + y
}

#[test]
fn instructions_of_triggers_in_rust() {
    let (Some(without), Some(off), Some(plain)) = (step(without, 5), step(trigger, 5), step(plain, 5)) else {
        println!("SKIPPED: single-stepping a child is not permitted here");
        return;
    };
    switching::apply("steps/rust", true).expect("switchable");
    let on = step(trigger, 5).expect("stepped before");
    switching::apply("steps/rust", false).expect("switchable");
    println!(
        "rustc    among : without {}, disabled +{} ({} bytes of stack), enabled +{}; plain call +{}",
        without.instructions,
        off.instructions - without.instructions,
        off.stack - without.stack,
        on.instructions - without.instructions,
        plain.instructions - without.instructions,
    );
    assert_eq!(off.instructions, without.instructions + 1, "disabled is one instruction");
    assert!(on.instructions <= plain.instructions + 3, "{on:?} {plain:?}");
}
