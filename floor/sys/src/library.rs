//! Bodies in shared libraries.

use crate::Error;
use crate::job_abi::{
    ABI_VERSION, JOB_ENDED, JobHandle, JobTable, NO_HANDLE, NOT_FOUND, OTHER_THREAD, OverrunFn, OverrunInfo,
    Refusals,
};
use crate::shared_words::SharedWords;
use crate::thread;
use libloading::os::unix;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

/// What the functions in the job's table do.
pub trait JobCalls {
    /// A preemption point. Whether somebody more important waited.
    fn preemption_point(&mut self, allow: bool) -> bool;
    /// Announces the segment after the next point.
    fn next_segment(&mut self, segment: u32);
    /// Switches the task's preemptibility.
    fn set_preemptible(&mut self, preemptible: bool);
    /// What is left of the worst case, ns.
    fn remaining_ns(&self) -> u64;
    /// What the job has executed, ns.
    fn executed_ns(&self) -> u64;
    /// Whether the job should end.
    fn must_end(&self) -> bool;
    /// Gives a value to a link. Whether it is taken.
    fn publish(&mut self, link: &str, value: &[u8]) -> bool;
    /// The writer's job whose value the job has.
    fn latched(&self, link: &str) -> Option<u64>;
    /// Copies that value; how many bytes it has.
    fn read(&self, link: &str, into: &mut [u8]) -> Option<usize>;
    /// Locks a resource and comes back once the job has it. Whether a section of the task names it.
    fn lock(&mut self, resource: &str) -> bool;
    /// Unlocks it. Whether the job had it.
    fn unlock(&mut self, resource: &str) -> bool;
    /// Registers a callback.
    fn on_overrun(&mut self, hook: OverrunHook);
    /// Asks for a mode by its name. Whether there is one.
    fn request_mode(&mut self, name: &str) -> bool;
}

/// A callback of the library.
#[derive(Clone, Copy, Debug)]
pub struct OverrunHook {
    function: OverrunFn,
    context: *mut c_void,
}

// SAFETY: the hook only carries the pointer to the library's function; the header says that the function is called
// on the task's own thread, the same that registered it.
unsafe impl Send for OverrunHook {}
// SAFETY: as above.
unsafe impl Sync for OverrunHook {}

impl OverrunHook {
    /// Calls the library's function.
    pub fn call(&self, info: &OverrunInfo) {
        (self.function)(self.context, info);
    }
}

/// The facts of one job.
#[derive(Clone, Copy, Debug)]
pub struct JobFacts<'a> {
    /// The word that preemption points read.
    pub attention: &'a AtomicU32,
    /// Counted from 0.
    pub number: u64,
    /// Nominal arrival, ns since the common start.
    pub release_ns: u64,
    /// Absolute deadline, ns since the common start; `u64::MAX`: none.
    pub deadline_ns: u64,
}

type JobFn = unsafe extern "C" fn(*mut JobHandle) -> c_int;
type InitFn = unsafe extern "C" fn(c_int, *const *const c_char, *mut *mut c_void) -> c_int;
type ExitFn = unsafe extern "C" fn(*mut c_void);

/// A task's code in a shared library, with its state.
#[derive(Debug)]
pub struct Library {
    job: JobFn,
    init: Option<InitFn>,
    exit: Option<ExitFn>,
    state: *mut c_void,
    handles: Handles,
    /// Keeps the code mapped; last, so that it goes last.
    code: Arc<Code>,
}

/// The mapped code of a library: unloaded once it is not held any more.
#[derive(Debug)]
pub struct Code {
    _library: libloading::Library,
}

impl Code {
    /// Never unloads the library.
    pub fn keep(self: Arc<Code>) {
        // The count of its owners never reaches zero from here on.
        std::mem::forget(self);
    }
}

// SAFETY: the function pointers are plain code; the state belongs to the library, whose functions are only ever
// called by the one thread that owns this value.
unsafe impl Send for Library {}

impl Library {
    /// Loads the library and finds its functions.
    ///
    /// # Errors
    /// Where the file is no library or lacks a function.
    pub fn open(path: &Path, symbol: &str, init: Option<&str>, exit: Option<&str>) -> Result<Library, Error> {
        let shown = path.display();
        // Every function that it needs is found now: one that is not there must not end the run in its first job.
        let now = unix::RTLD_NOW | unix::RTLD_LOCAL;
        // SAFETY: loading runs the library's constructors; the user named the library to be run.
        let library = unsafe { unix::Library::open(Some(path), now) }.map_err(|error| {
            let reason = reason_of(&error);
            let reason = reason.strip_prefix(&format!("{shown}: ")).unwrap_or(&reason).to_owned();
            let remedy = match reason.starts_with("undefined symbol") {
                true => "link what defines it (`cc -shared -fPIC … -lNAME`)",
                false => "build it with `cc -shared -fPIC`, and give the path from the system file's folder",
            };
            Error::bad_input(format!("loading {shown}"), reason, remedy)
        })?;
        let library = libloading::Library::from(library);
        let missing = |name: &str| {
            let remedy = "check its name, and that it is not static (in C++: extern \"C\")";
            Error::bad_input(format!("{shown}: function `{name}`"), "not in the library", remedy)
        };
        // SAFETY: the header fixes the signatures of the functions that the user names: this one is the job.
        let job = *unsafe { library.get::<JobFn>(symbol.as_bytes()) }.map_err(|_| missing(symbol))?;
        // SAFETY: as above: this one is called before the start.
        let find_init = |name: &str| unsafe { library.get::<InitFn>(name.as_bytes()) }.map(|found| *found);
        // SAFETY: as above: this one is called after the end.
        let find_exit = |name: &str| unsafe { library.get::<ExitFn>(name.as_bytes()) }.map(|found| *found);
        let init = init.map(|name| find_init(name).map_err(|_| missing(name))).transpose()?;
        let exit = exit.map(|name| find_exit(name).map_err(|_| missing(name))).transpose()?;
        Ok(Library {
            job,
            init,
            exit,
            state: std::ptr::null_mut(),
            handles: Handles::new()?,
            code: Arc::new(Code { _library: library }),
        })
    }

    /// Its code, which stays loaded while this is held.
    #[must_use]
    pub fn code(&self) -> Arc<Code> {
        self.code.clone()
    }

    /// Calls `init(argc, argv, &state)`; what it returned, 0 without one.
    ///
    /// # Errors
    /// Where an argument holds a zero byte.
    pub fn init(&mut self, arguments: &[String]) -> Result<i32, Error> {
        let Some(init) = self.init else { return Ok(0) };
        let strings =
            arguments.iter().map(|argument| CString::new(argument.as_str())).collect::<Result<Vec<_>, _>>();
        let strings = strings.map_err(|_| {
            Error::bad_input("arguments", "one holds a zero byte, which ends a C string", "remove it")
        })?;
        let mut pointers: Vec<*const c_char> = strings.iter().map(|string| string.as_ptr()).collect();
        pointers.push(std::ptr::null());
        // SAFETY: the array holds `argc` strings and a null, all alive during the call; the state is writable.
        Ok(unsafe { init(strings.len() as c_int, pointers.as_ptr(), &mut self.state) })
    }

    /// Calls the job function; what it returned.
    pub fn call(&mut self, facts: &JobFacts<'_>, calls: &mut dyn JobCalls) -> i32 {
        let mut calls: &mut dyn JobCalls = calls;
        let handle = self.handles.begin(facts, (&raw mut calls).cast(), self.state);
        // SAFETY: the handle and what it points to live during the call; afterwards the handle is refused.
        let returned = unsafe { (self.job)(handle) };
        self.state = self.handles.end(handle);
        returned
    }

    /// How often a handle of this task's jobs was refused: on another thread, and after the job's end.
    #[must_use]
    pub fn refusals(&self) -> (u32, u32) {
        let Refusals { other_thread, ended } = self.handles.refusals;
        (other_thread.load(Ordering::Relaxed), ended.load(Ordering::Relaxed))
    }

    /// Calls `exit(state)`.
    pub fn exit(&mut self) {
        if let Some(exit) = self.exit {
            // SAFETY: the state is what the library's own functions left; called once, by the owning thread.
            unsafe { exit(self.state) }
        }
    }
}

/// What the system's loader says; the crate's own words name the call alone.
fn reason_of(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// How many handles a task has: its jobs take them in turn, so that one that was kept is refused in the jobs after its own.
const HANDLES: usize = 16;

/// The handles of one task. User code may keep a pointer to one for as long as it likes, so their memory is never freed.
#[derive(Debug)]
struct Handles {
    first: *mut JobHandle,
    next: usize,
    refusals: &'static Refusals,
}

/// The handles of one task in the list of all.
struct Listed {
    first: *mut JobHandle,
    next: *const Listed,
}

/// All handles of this process, those made last first; entries are never freed.
static ALL: AtomicPtr<Listed> = AtomicPtr::new(std::ptr::null_mut());

/// The owner of a handle whose job is under way in the process that forked this one: no thread pointer is 1.
const OF_THE_PARENT: usize = 1;

/// In a process that was forked: the thread has the same pointer there, and the jobs under way are not its own.
extern "C" fn leave_jobs_to_the_parent() {
    let mut at = ALL.load(Ordering::Acquire).cast_const();
    // SAFETY: entries and handles are never freed, and the child has this thread alone.
    while let Some(listed) = unsafe { at.as_ref() } {
        for place in 0..HANDLES {
            // SAFETY: as above; each entry has so many handles.
            let owner = unsafe { &(*listed.first.add(place)).owner };
            if owner.load(Ordering::Relaxed) != 0 {
                owner.store(OF_THE_PARENT, Ordering::Relaxed);
            }
        }
        at = listed.next;
    }
}

/// Puts the handles of a task into the list of all.
fn list(first: *mut JobHandle) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler loads and stores atomics alone. Where there is no memory for it, children are not noticed.
        unsafe { libc::pthread_atfork(None, None, Some(leave_jobs_to_the_parent)) };
    });
    let listed = Box::leak(Box::new(Listed { first, next: ALL.load(Ordering::Acquire) }));
    while let Err(newer) =
        ALL.compare_exchange(listed.next.cast_mut(), listed, Ordering::AcqRel, Ordering::Acquire)
    {
        listed.next = newer;
    }
}

/// Counts that processes share which are forked from this one.
fn shared_refusals() -> Result<&'static Refusals, Error> {
    const _: () = assert!(size_of::<Refusals>() == size_of::<AtomicU64>());
    let words: &'static SharedWords = Box::leak(Box::new(SharedWords::new(1)?));
    // SAFETY: a zeroed word of a mapping that stays, as large as the two counts and used by nothing else; both are atomics.
    Ok(unsafe { &*(&raw const words[0]).cast::<Refusals>() })
}

impl Handles {
    fn new() -> Result<Handles, Error> {
        let refusals = shared_refusals()?;
        let ended = || JobHandle {
            attention: &NOTHING,
            table: &TABLE,
            context: std::ptr::null_mut(),
            state: std::ptr::null_mut(),
            number: 0,
            release_ns: 0,
            deadline_ns: 0,
            owner: AtomicUsize::new(0),
            refusals,
        };
        let all: Box<[JobHandle]> = std::iter::repeat_with(ended).take(HANDLES).collect();
        let first = Box::leak(all).as_mut_ptr();
        list(first);
        Ok(Handles { first, next: 0, refusals })
    }

    /// The handle of a job that begins on the calling thread.
    fn begin(&mut self, facts: &JobFacts<'_>, context: *mut c_void, state: *mut c_void) -> *mut JobHandle {
        // SAFETY: `next` is below the number of handles, which are never freed.
        let handle = unsafe { self.first.add(self.next) };
        self.next = (self.next + 1) % HANDLES;
        // SAFETY: no job is under way with this handle: other threads read its owner, table and refusals alone, of which the owner is
        // an atomic and the others never change.
        unsafe {
            (*handle).attention = facts.attention;
            (*handle).context = context;
            (*handle).state = state;
            (*handle).number = facts.number;
            (*handle).release_ns = facts.release_ns;
            (*handle).deadline_ns = facts.deadline_ns;
            (*handle).owner.store(thread::pointer(), Ordering::Release);
        }
        handle
    }

    /// Its job has ended; the task's state.
    fn end(&self, handle: *mut JobHandle) -> *mut c_void {
        // SAFETY: as in `begin`, by the same thread.
        unsafe {
            (*handle).owner.store(0, Ordering::Release);
            (*handle).attention = &NOTHING;
            (*handle).context = std::ptr::null_mut();
            (*handle).state
        }
    }
}

/// The attention word of a job that has ended: a library that was built with a header before version 4 goes on to the table, which refuses it.
static NOTHING: AtomicU32 = AtomicU32::new(u32::MAX);

static TABLE: JobTable = JobTable {
    version: ABI_VERSION,
    reserved: 0,
    preemption_point,
    next_segment,
    set_preemptible,
    remaining_ns,
    executed_ns,
    must_end,
    on_overrun,
    request_mode,
    publish,
    latched,
    read,
    lock,
    unlock,
    check,
};

extern "C" fn check(job: *const JobHandle) -> i32 {
    if job.is_null() {
        return NO_HANDLE;
    }
    // SAFETY: a library has only the handles that `Handles` made, which are never freed; what is read here is atomic or never changes.
    let (owner, refusals) = unsafe { (&(*job).owner, &*(*job).refusals) };
    match owner.load(Ordering::Acquire) {
        0 => {
            refusals.ended.fetch_add(1, Ordering::Relaxed);
            JOB_ENDED
        }
        owner if owner == thread::pointer() => 0,
        _ => {
            refusals.other_thread.fetch_add(1, Ordering::Relaxed);
            OTHER_THREAD
        }
    }
}

/// The calls behind a handle, or why it is refused.
fn calls<'a>(job: *mut JobHandle) -> Result<&'a mut dyn JobCalls, i32> {
    match check(job) {
        // SAFETY: the calling thread executes the handle's job now, so it is inside `Library::call`, whose `&mut dyn JobCalls` the
        // context points to until it returns; no other thread gets here with this handle.
        0 => Ok(unsafe { &mut **(*job).context.cast::<&mut dyn JobCalls>() }),
        refused => Err(refused),
    }
}

/// What a function without a result of its own gives back.
fn done(result: Result<(), i32>) -> i32 {
    result.err().unwrap_or(0)
}

/// 0 where it was, else that it was not found.
fn found(was: bool) -> Result<(), i32> {
    if was { Ok(()) } else { Err(NOT_FOUND) }
}

extern "C" fn preemption_point(job: *mut JobHandle, allow: i32) -> i32 {
    calls(job).map_or_else(|refused| refused, |calls| i32::from(calls.preemption_point(allow != 0)))
}

extern "C" fn next_segment(job: *mut JobHandle, segment: u32) -> i32 {
    done(calls(job).map(|calls| calls.next_segment(segment)))
}

extern "C" fn set_preemptible(job: *mut JobHandle, preemptible: i32) -> i32 {
    done(calls(job).map(|calls| calls.set_preemptible(preemptible != 0)))
}

extern "C" fn remaining_ns(job: *mut JobHandle) -> u64 {
    calls(job).map_or(u64::MAX, |calls| calls.remaining_ns())
}

extern "C" fn executed_ns(job: *mut JobHandle) -> u64 {
    calls(job).map_or(u64::MAX, |calls| calls.executed_ns())
}

extern "C" fn must_end(job: *mut JobHandle) -> i32 {
    calls(job).map_or_else(|refused| refused, |calls| i32::from(calls.must_end()))
}

extern "C" fn on_overrun(job: *mut JobHandle, function: Option<OverrunFn>, context: *mut c_void) -> i32 {
    done(calls(job).and_then(|calls| {
        let function = function.ok_or(NOT_FOUND)?;
        calls.on_overrun(OverrunHook { function, context });
        Ok(())
    }))
}

extern "C" fn request_mode(job: *mut JobHandle, mode: *const c_char) -> i32 {
    let asked = |calls: &mut dyn JobCalls| name(mode).is_some_and(|mode| calls.request_mode(mode));
    calls(job).map_or_else(|refused| refused, |calls| i32::from(asked(calls)))
}

/// The text that a library gave; `None` where it is no name.
fn name<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the header asks for a string that ends with a zero and lives during the call.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

extern "C" fn publish(job: *mut JobHandle, link: *const c_char, value: *const c_void, length: u32) -> i32 {
    done(calls(job).and_then(|calls| {
        let value = match length {
            0 => &[][..],
            _ if value.is_null() => return Err(NOT_FOUND),
            // SAFETY: the header asks for `length` bytes that live during the call.
            length => unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length as usize) },
        };
        found(name(link).is_some_and(|link| calls.publish(link, value)))
    }))
}

/// A number that fits, or a code.
fn number(of: Result<Option<u64>, i32>) -> i64 {
    let fitting = |number: Option<u64>| number.and_then(|number| i64::try_from(number).ok());
    of.map_or_else(i64::from, |number| fitting(number).unwrap_or(NOT_FOUND.into()))
}

extern "C" fn latched(job: *mut JobHandle, link: *const c_char) -> i64 {
    number(calls(job).map(|calls| calls.latched(name(link)?)))
}

extern "C" fn read(job: *mut JobHandle, link: *const c_char, into: *mut c_void, length: u32) -> i64 {
    number(calls(job).map(|calls| {
        let into = match length {
            0 => &mut [][..],
            _ if into.is_null() => return None,
            // SAFETY: the header asks for room for `length` bytes that nothing else uses during the call.
            length => unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), length as usize) },
        };
        calls.read(name(link)?, into).map(|length| length as u64)
    }))
}

extern "C" fn lock(job: *mut JobHandle, resource: *const c_char) -> i32 {
    done(calls(job).and_then(|calls| found(name(resource).is_some_and(|resource| calls.lock(resource)))))
}

extern "C" fn unlock(job: *mut JobHandle, resource: *const c_char) -> i32 {
    done(calls(job).and_then(|calls| found(name(resource).is_some_and(|resource| calls.unlock(resource)))))
}
