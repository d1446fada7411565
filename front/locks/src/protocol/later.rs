//! Modules that `dlopen` brings: read at the first use of a lock in each, and kept.
//!
//! This is the one place at which a lock call of the program reads a file and allocates: once a module.

use super::sites::{Found, Module, places, ranges_of, rule_at};
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use horolog_probe::lock_protocol::{Protocol, Site};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The most modules that are kept; more are read at every first use.
const MOST: usize = 1_024;

/// A list to which threads add without a lock.
#[derive(Default)]
pub(super) struct Later {
    first: AtomicPtr<Node>,
    count: AtomicUsize,
}

struct Node {
    which: Which,
    places: Vec<(usize, Option<u32>)>,
    next: *mut Node,
}

/// A module that is replaced, closed and opened again may lie at the same place.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Which {
    start: usize,
    end: usize,
    file: [i64; 5],
}

/// What tells one state of a file from another: device, number, size, and the time of the last change.
fn state(path: &CStr) -> [i64; 5] {
    // SAFETY: a NUL-terminated path, a record of this frame, and this thread's errno.
    unsafe {
        let errno = *libc::__errno_location();
        let mut facts: libc::stat = core::mem::zeroed();
        let is_known = libc::stat(path.as_ptr(), &raw mut facts) == 0;
        *libc::__errno_location() = errno;
        if !is_known {
            return [0; 5];
        }
        [
            facts.st_dev.cast_signed(),
            facts.st_ino.cast_signed(),
            facts.st_size,
            facts.st_mtime,
            facts.st_mtime_nsec,
        ]
    }
}

impl Later {
    /// The rule for a call in a module that was not there at the start.
    pub(super) fn rule(
        &self,
        found: &Found,
        call: usize,
        rules: &[(Protocol, Site<'_>)],
        default: Option<u32>,
    ) -> Option<u32> {
        // SAFETY: the name of a module from which a call is being made.
        let path = unsafe { CStr::from_ptr(found.map.name) };
        let which = Which { start: found.range.start, end: found.range.end, file: state(path) };
        let mut at = self.first.load(Ordering::Acquire);
        // SAFETY: nodes are never changed or freed once they are in the list.
        while let Some(node) = unsafe { at.as_ref() } {
            if node.which == which {
                return rule_at(&node.places, call, default);
            }
            at = node.next;
        }
        let path = PathBuf::from(OsStr::from_bytes(path.to_bytes()));
        let module = Module { range: found.range.clone(), bias: found.map.bias, path };
        let mut ranges = Vec::new();
        ranges_of(&module, rules, &mut ranges);
        let places = places(&ranges, default);
        let rule = rule_at(&places, call, default);
        if self.count.fetch_add(1, Ordering::Relaxed) < MOST {
            self.add(Box::new(Node { which, places, next: ptr::null_mut() }));
        }
        rule
    }

    fn add(&self, node: Box<Node>) {
        let node = Box::into_raw(node);
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            // SAFETY: the node is this thread's own until it is in the list.
            unsafe { (*node).next = first };
            match self.first.compare_exchange(first, node, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
}
