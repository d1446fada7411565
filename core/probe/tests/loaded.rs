//! The runtime in a library that is loaded late: threads that were there before emit through it, and nothing on their way
//! allocates.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls of the allocator by threads that are watched, whichever module they come from: this executable's definitions
/// stand before the C library's for every module.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The watched threads; 0: none.
static WATCHED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

fn count() {
    // SAFETY: gettid takes nothing.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u64;
    if WATCHED.iter().any(|watched| watched.load(Ordering::Relaxed) == tid) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
}

#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    count();
    // SAFETY: the C library's own.
    unsafe { __libc_malloc(size) }
}

#[unsafe(no_mangle)]
extern "C" fn calloc(number: usize, size: usize) -> *mut c_void {
    count();
    // SAFETY: the C library's own.
    unsafe { __libc_calloc(number, size) }
}

/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    count();
    // SAFETY: the caller's promise.
    unsafe { __libc_realloc(old, size) }
}

#[unsafe(no_mangle)]
extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    count();
    // SAFETY: the C library's own.
    unsafe { __libc_memalign(align, size) }
}

#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    memalign(align, size)
}

/// Cargo builds examples with tests; they stand beside the folder of this executable.
fn library() -> PathBuf {
    let here = std::env::current_exe().expect("an executable");
    let profile = here.parent().and_then(|deps| deps.parent()).expect("target/PROFILE/deps");
    profile.join("examples/libloaded.so")
}

#[test]
fn threads_that_were_there_before_emit_without_allocating() {
    const EACH: u64 = 5_000;
    let file = library();
    assert!(file.is_file(), "{} is built with all tests: cargo test -p horolog-probe", file.display());
    let (loaded, ready) = (Barrier::new(4), Barrier::new(4));
    std::thread::scope(|scope| {
        for watched in &WATCHED[..3] {
            let (loaded, ready) = (&loaded, &ready);
            scope.spawn(move || {
                ready.wait();
                loaded.wait();
                // SAFETY: the functions have these signatures; the library stays loaded.
                let emit = unsafe {
                    let library = libloading::Library::new(library()).expect("loaded already");
                    let emit = *library.get::<extern "C" fn(u64)>(b"loaded_emit\0").expect("exported");
                    std::mem::forget(library);
                    emit
                };
                // SAFETY: gettid takes nothing.
                watched.store(unsafe { libc::syscall(libc::SYS_gettid) } as u64, Ordering::SeqCst);
                (0..EACH).for_each(|value| emit(value));
                watched.store(0, Ordering::SeqCst);
            });
        }
        ready.wait(); // every thread is running
        // SAFETY: the library's constructors are the standard library's; the function has this signature.
        let begun = unsafe {
            libloading::Library::new(&file).map(|library| {
                let begin = library.get::<extern "C" fn() -> i32>(b"loaded_begin\0").map(|begin| begin());
                std::mem::forget(library);
                begin
            })
        };
        loaded.wait(); // also where it failed, so that the threads end
        assert!(matches!(begun, Ok(Ok(0))), "{begun:?}");
    });
    assert_eq!(ALLOCATIONS.load(Ordering::SeqCst), 0, "a traced thread allocated");
    // SAFETY: as above.
    let drained = unsafe {
        let library = libloading::Library::new(library()).expect("loaded already");
        let drain = *library.get::<extern "C" fn(&mut u64) -> u64>(b"loaded_drain\0").expect("exported");
        std::mem::forget(library);
        let mut lost = u64::MAX;
        (drain(&mut lost), lost)
    };
    assert_eq!(drained, (3 * EACH, 0));
    // The count does count.
    // SAFETY: gettid takes nothing.
    WATCHED[3].store(unsafe { libc::syscall(libc::SYS_gettid) } as u64, Ordering::SeqCst);
    drop(std::hint::black_box(Box::new(7)));
    WATCHED[3].store(0, Ordering::SeqCst);
    assert!(ALLOCATIONS.load(Ordering::SeqCst) > 0);
}
