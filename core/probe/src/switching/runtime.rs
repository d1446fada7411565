//! What a runtime offers to the C and C++ modules of its process, and how they find it.

use super::{SwitchError, apply, each_table, events, prepare, refresh};
use crate::Event;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::ffi::CString;

/// What `horolog_trace_list` calls for each event: name, types, sites, those of them that are enabled.
type Each = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char, usize, usize);

/// `struct horolog_runtime` of `horolog/trace.h`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Runtime {
    version: u32,
    size: u32,
    enable: unsafe extern "C" fn(*const c_char) -> c_int,
    disable: unsafe extern "C" fn(*const c_char) -> c_int,
    list: unsafe extern "C" fn(Option<Each>, *mut c_void) -> c_int,
}

static RUNTIME: Runtime = Runtime { version: 1, size: size_of::<Runtime>() as u32, enable, disable, list };

/// Makes this runtime known to every loaded module written in C or C++, and gives the sites the positions that
/// `HOROLOG_TRACE_ENABLE` asks for: names and patterns, separated by commas. For the constructor of a runtime library, or
/// the start of a program's `main`.
///
/// # Errors
/// As [`apply`].
pub fn start() -> Result<(), SwitchError> {
    introduce();
    let wanted = std::env::var("HOROLOG_TRACE_ENABLE").unwrap_or_default();
    for pattern in wanted.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()) {
        apply(pattern, true)?;
    }
    Ok(())
}

/// Carries out a command of whoever reads the session: `enable PATTERN`, `disable PATTERN`. The answer starts with `ok` or
/// `error`.
#[must_use]
pub fn answer(command: &str) -> String {
    let (on, pattern) = match command.split_once(' ') {
        Some(("enable", pattern)) => (true, pattern),
        Some(("disable", pattern)) => (false, pattern),
        _ => {
            return format!(
                "error: no command is called `{command}`; there are: enable PATTERN, disable PATTERN"
            );
        }
    };
    match apply(pattern, on) {
        Ok(count) => format!("ok {} events, {} sites", count.events, count.sites),
        Err(error) => format!("error: {error}"),
    }
}

/// Makes every event known so far report to this runtime, and writes its address where each module looks for it.
pub(super) fn introduce() {
    let _rules = super::rules();
    each_table(&mut |_, table| {
        for site in &table.sites {
            // SAFETY: the table says that a descriptor stands there, and its module is loaded.
            prepare(unsafe { &*(site.event as *const Event) }, site);
        }
        if let Some(pointer) = table.runtime {
            // SAFETY: the table says that the module keeps there its pointer to the runtime: checked to lie in its data;
            // C reads it as a plain pointer, before or after this one store.
            let pointer = unsafe { AtomicPtr::from_ptr(pointer as *mut *mut c_void) };
            pointer.store((&raw const RUNTIME).cast_mut().cast(), Ordering::Release);
        }
    });
}

/// The number of sites, or a negative error number.
fn switch(pattern: *const c_char, on: bool) -> c_int {
    if pattern.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller passes a NUL-terminated text.
    let pattern = unsafe { CStr::from_ptr(pattern) };
    match apply(&pattern.to_string_lossy(), on) {
        Ok(count) => c_int::try_from(count.sites).unwrap_or(c_int::MAX),
        Err(error) if error.is_foreign_code() => -libc::EFAULT,
        Err(error) if error.is_not_permitted() => -libc::EPERM,
        Err(_) => -libc::EINVAL,
    }
}

unsafe extern "C" fn enable(pattern: *const c_char) -> c_int {
    switch(pattern, true)
}

unsafe extern "C" fn disable(pattern: *const c_char) -> c_int {
    switch(pattern, false)
}

unsafe extern "C" fn list(each: Option<Each>, context: *mut c_void) -> c_int {
    let events = events();
    let text = |text: &str| CString::new(text).unwrap_or_default();
    for event in &events {
        let (name, types) = (text(&event.name), text(&event.types));
        if let Some(each) = each {
            // SAFETY: the caller gave a function of this signature and the context that it wants.
            unsafe { each(context, name.as_ptr(), types.as_ptr(), event.sites, event.enabled) };
        }
    }
    c_int::try_from(events.len()).unwrap_or(c_int::MAX)
}

/// What the constructor of a C or C++ module that is loaded late calls, as `horolog_trace_refresh`: 0, or a negative error
/// number.
#[must_use]
pub fn refresh_for_c() -> c_int {
    match refresh() {
        Ok(_) => 0,
        Err(_) => -libc::EPERM,
    }
}
