//! Bodies in shared libraries.

use crate::Error;
use crate::job_abi::{ABI_VERSION, JobHandle, JobTable, OverrunFn, OverrunInfo};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

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
    /// Keeps the code mapped; last, so that it goes last.
    code: Arc<Code>,
}

/// The mapped code of a library: unloaded once nobody holds it any more.
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
        // SAFETY: loading runs the library's constructors; the user named the library to be run.
        let library = unsafe { libloading::Library::new(path) }.map_err(|error| {
            let remedy = "build it with `cc -shared -fPIC`, and give the path from the system file's folder";
            Error::bad_input(format!("loading {shown}"), error.to_string(), remedy)
        })?;
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
            code: Arc::new(Code { _library: library }),
        })
    }

    /// Its code. Whoever holds it keeps it loaded.
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
        let mut handle = JobHandle {
            attention: facts.attention,
            table: &TABLE,
            context: (&raw mut calls).cast(),
            state: self.state,
            number: facts.number,
            release_ns: facts.release_ns,
            deadline_ns: facts.deadline_ns,
        };
        // SAFETY: the handle and what it points to live during the call; the header tells the library not to keep it.
        let returned = unsafe { (self.job)(&mut handle) };
        self.state = handle.state;
        returned
    }

    /// Calls `exit(state)`.
    pub fn exit(&mut self) {
        if let Some(exit) = self.exit {
            // SAFETY: the state is what the library's own functions left; called once, by the owning thread.
            unsafe { exit(self.state) }
        }
    }
}

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
};

/// The calls behind a handle.
fn calls<'a>(job: *mut JobHandle) -> &'a mut dyn JobCalls {
    // SAFETY: a library has only the handle that `Library::call` made, whose context points to a `&mut dyn JobCalls`
    // that lives until the call returns; nobody else uses it meanwhile.
    unsafe { &mut **(*job).context.cast::<&mut dyn JobCalls>() }
}

extern "C" fn preemption_point(job: *mut JobHandle, allow: i32) -> i32 {
    i32::from(calls(job).preemption_point(allow != 0))
}

extern "C" fn next_segment(job: *mut JobHandle, segment: u32) {
    calls(job).next_segment(segment);
}

extern "C" fn set_preemptible(job: *mut JobHandle, preemptible: i32) {
    calls(job).set_preemptible(preemptible != 0);
}

extern "C" fn remaining_ns(job: *mut JobHandle) -> u64 {
    calls(job).remaining_ns()
}

extern "C" fn executed_ns(job: *mut JobHandle) -> u64 {
    calls(job).executed_ns()
}

extern "C" fn must_end(job: *mut JobHandle) -> i32 {
    i32::from(calls(job).must_end())
}

extern "C" fn on_overrun(job: *mut JobHandle, function: OverrunFn, context: *mut c_void) {
    calls(job).on_overrun(OverrunHook { function, context });
}

extern "C" fn request_mode(job: *mut JobHandle, name: *const c_char) -> i32 {
    if name.is_null() {
        return 0;
    }
    // SAFETY: the header asks for a text that ends with a zero and stays as it is until this returns.
    let name = unsafe { CStr::from_ptr(name) };
    i32::from(name.to_str().is_ok_and(|name| calls(job).request_mode(name)))
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
    let Some(link) = name(link) else { return -1 };
    let value = match length {
        0 => &[][..],
        _ if value.is_null() => return -1,
        // SAFETY: the header asks for `length` bytes that live during the call.
        length => unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length as usize) },
    };
    if calls(job).publish(link, value) { 0 } else { -1 }
}

extern "C" fn latched(job: *mut JobHandle, link: *const c_char) -> i64 {
    let found = name(link).and_then(|link| calls(job).latched(link));
    found.and_then(|instance| i64::try_from(instance).ok()).unwrap_or(-1)
}

extern "C" fn read(job: *mut JobHandle, link: *const c_char, into: *mut c_void, length: u32) -> i64 {
    let Some(link) = name(link) else { return -1 };
    let into = match length {
        0 => &mut [][..],
        _ if into.is_null() => return -1,
        // SAFETY: the header asks for room for `length` bytes that nobody else uses during the call.
        length => unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), length as usize) },
    };
    calls(job).read(link, into).and_then(|length| i64::try_from(length).ok()).unwrap_or(-1)
}

extern "C" fn lock(job: *mut JobHandle, resource: *const c_char) -> i32 {
    if name(resource).is_some_and(|resource| calls(job).lock(resource)) { 0 } else { -1 }
}

extern "C" fn unlock(job: *mut JobHandle, resource: *const c_char) -> i32 {
    if name(resource).is_some_and(|resource| calls(job).unlock(resource)) { 0 } else { -1 }
}
