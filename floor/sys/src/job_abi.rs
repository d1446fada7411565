//! What a job handle looks like in memory: the contract with user code in C.
//!
//! `front/capi/include/horolog.h` describes the same layout; a test compiles it and compares. A library links
//! against nothing: everything it may call stands in a table that the handle points to.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize};

/// The version of this layout; it grows with every change, and a table never loses an entry.
pub const ABI_VERSION: u32 = 4;

/// No such link, resource or function, or a value that does not fit.
pub const NOT_FOUND: i32 = -1;
/// The handle is null.
pub const NO_HANDLE: i32 = -2;
/// The handle belongs to a job under way on another thread.
pub const OTHER_THREAD: i32 = -3;
/// The handle's job has ended.
pub const JOB_ENDED: i32 = -4;

/// `horolog_overrun`: what an overrun callback is told.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverrunInfo {
    /// The job, counted from 0.
    pub job: u64,
    /// What it has executed, ns.
    pub executed_ns: u64,
    /// The segment that ran.
    pub segment: u32,
    /// [`SEGMENT_OVERRUN`] and its like.
    pub flags: u32,
}

/// The segment is longer than its worst case.
pub const SEGMENT_OVERRUN: u32 = 1;
/// The job cannot end within its worst case any more.
pub const JOB_OVERRUN_CERTAIN: u32 = 2;
/// The job has exceeded its worst case: less important tasks suffer.
pub const JOB_OVERRUN: u32 = 4;
/// More important tasks are blocked for longer than analysed.
pub const HARMS_MORE_IMPORTANT: u32 = 8;

/// `horolog_overrun_fn`.
pub type OverrunFn = extern "C" fn(context: *mut c_void, overrun: *const OverrunInfo);

/// `struct horolog_job`.
#[repr(C)]
#[derive(Debug)]
pub struct JobHandle {
    /// Zero while a preemption point has nothing to do; bit 0: somebody more important waits.
    pub attention: *const AtomicU32,
    /// What the job may call.
    pub table: *const JobTable,
    /// The executive's own.
    pub context: *mut c_void,
    /// The task's state.
    pub state: *mut c_void,
    /// Counted from 0.
    pub number: u64,
    /// Nominal arrival, ns since the common start.
    pub release_ns: u64,
    /// Absolute deadline, ns since the common start; all ones: none.
    pub deadline_ns: u64,
    /// The thread pointer ([`crate::thread::pointer`]) of the thread that executes the job; 0: no job is under way. Since version 4.
    pub owner: AtomicUsize,
    /// How often a handle of this task was refused. Since version 4.
    pub refusals: *const Refusals,
}

/// How often the handles of one task were used where they are not valid.
#[derive(Debug, Default)]
pub struct Refusals {
    /// On another thread.
    pub other_thread: AtomicU32,
    /// After the job's end.
    pub ended: AtomicU32,
}

/// `struct horolog_job_table`.
#[repr(C)]
#[derive(Debug)]
pub struct JobTable {
    /// [`ABI_VERSION`].
    pub version: u32,
    /// Keeps what follows aligned.
    pub reserved: u32,
    /// A preemption point with something to do.
    pub preemption_point: extern "C" fn(*mut JobHandle, i32) -> i32,
    /// Announces the segment after the next point.
    pub next_segment: extern "C" fn(*mut JobHandle, u32) -> i32,
    /// Switches the task's preemptibility.
    pub set_preemptible: extern "C" fn(*mut JobHandle, i32) -> i32,
    /// What is left of the worst case, ns.
    pub remaining_ns: extern "C" fn(*mut JobHandle) -> u64,
    /// What the job has executed, ns.
    pub executed_ns: extern "C" fn(*mut JobHandle) -> u64,
    /// Whether the job should end.
    pub must_end: extern "C" fn(*mut JobHandle) -> i32,
    /// Registers a callback.
    pub on_overrun: extern "C" fn(*mut JobHandle, Option<OverrunFn>, *mut c_void) -> i32,
    /// Asks for a mode by its name. Since version 2.
    pub request_mode: extern "C" fn(*mut JobHandle, *const c_char) -> i32,
    /// Gives a value to a link. Since version 3; 0: it is taken, -1: there is no such link, or it does not fit.
    pub publish: extern "C" fn(*mut JobHandle, *const c_char, *const c_void, u32) -> i32,
    /// The writer's job whose value the job has; -1: none. Since version 3.
    pub latched: extern "C" fn(*mut JobHandle, *const c_char) -> i64,
    /// Copies that value; how many bytes it has, -1: none. Since version 3.
    pub read: extern "C" fn(*mut JobHandle, *const c_char, *mut c_void, u32) -> i64,
    /// Locks a resource by its name; 0: the job has it, -1: no section of the task names it. Since version 3.
    pub lock: extern "C" fn(*mut JobHandle, *const c_char) -> i32,
    /// Unlocks it; -1: the job did not have it. Since version 3.
    pub unlock: extern "C" fn(*mut JobHandle, *const c_char) -> i32,
    /// Whether the handle may be used here and now: 0, or one of the negative codes, which is counted. Since version 4.
    pub check: extern "C" fn(*const JobHandle) -> i32,
}
