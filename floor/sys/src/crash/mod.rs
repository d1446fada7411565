//! Keeps a crash or an endless job of user code from taking the process down before the machine is put back.
//!
//! While a [`Guard`] lives, a fatal signal (`SIGSEGV`, `SIGBUS`, `SIGFPE`, `SIGILL`, `SIGABRT`) on a thread that has
//! [`watch`]ed itself is noted in the thread's [`Cell`], with the functions that it executed, and the thread sleeps for ever; the rest
//! of the process goes on and can end the run in order. On other threads the signal does what it did before.
//!
//! A thread that executes one job without an end is [`stop`]ped from outside, or lowers itself: [`runaway`].
//!
//! What cannot be contained: `_exit`, `exec`, `SIGKILL`; memory that the faulty code overwrote; locks that it held
//! (a crash inside `malloc` can block the next allocation); a handler that the user's code installs itself. What a cell holds outlives
//! the process where it was forked ([`crate::forked`]).

mod frames;
pub mod runaway;

use crate::shared_words::SharedWords;
use crate::{Error, futex};
use std::cell::Cell as ThreadCell;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// Room for the handler, away from the thread's own stack, which may be what overflowed.
const STACK: usize = 32 << 10;

/// How far below its stack a thread may reach with one frame and be told of an overflow.
const BELOW: u64 = 1 << 20;

/// What ended a thread's work, as its cell has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// A fatal signal, and what it is about.
    Signal(i32, About),
    /// It called `exit`.
    Exit,
}

/// What a fatal signal is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About {
    /// The thread touched this address.
    Address(u64),
    /// The thread touched this address, right below its stack.
    BelowStack(u64),
    /// Nothing: the process sent it to itself, as `abort` does.
    Nothing,
    /// Another process sent it.
    Sender(u32),
}

// Places in a cell's words.
const SIGNAL: usize = 0;
const ADDRESS: usize = 1;
const ORDERS: usize = 2;
const BEGUN: usize = 3;
const PATIENCE: usize = 4;
const PIECE: usize = 5;
const IN_CODE: usize = 6;
const NOTED: usize = 7;
/// The process that sent the signal, plus one; [`ITSELF`] for this one, and 0 where it is about an address.
const SENDER: usize = 8;
/// Where the thread's stack begins: its lowest address.
const STACK_LOW: usize = 9;
/// How many processes that the thread forked have crashed, times 256, and the last one's signal.
const FORKED: usize = 10;
const FRAMES: usize = 11;

const ITSELF: u64 = u64::MAX;
/// In place of a signal: the thread called `exit`.
const EXITED: u64 = u64::MAX;
/// While the frames are written; afterwards how many there are, plus one.
const BEING_NOTED: u64 = u64::MAX;

/// What becomes of one thread's code: shared with a process that forked this one.
#[derive(Debug)]
pub struct Cell {
    words: SharedWords,
}

impl Cell {
    /// Nothing has happened yet.
    ///
    /// # Errors
    /// Where there is no memory.
    pub fn new() -> Result<Cell, Error> {
        Ok(Cell { words: SharedWords::new(FRAMES + frames::MOST)? })
    }

    /// How the thread's code ended, if it has before its time.
    #[must_use]
    pub fn fate(&self) -> Option<Fate> {
        match self.words[SIGNAL].load(Ordering::Acquire) {
            0 => None,
            EXITED => Some(Fate::Exit),
            signal => Some(Fate::Signal(signal as i32, self.about(signal as i32))),
        }
    }

    fn about(&self, signal: i32) -> About {
        let load = |place: usize| self.words[place].load(Ordering::Acquire);
        let (address, low) = (load(ADDRESS), load(STACK_LOW));
        match load(SENDER) {
            0 if signal == libc::SIGSEGV && (low.saturating_sub(BELOW)..low).contains(&address) => {
                About::BelowStack(address)
            }
            0 => About::Address(address),
            ITSELF => About::Nothing,
            sender => About::Sender(sender as u32 - 1),
        }
    }

    /// How many processes that the thread has forked crashed in its code, and the last one's signal.
    #[must_use]
    pub fn crashed_forks(&self) -> Option<(u64, i32)> {
        let word = self.words[FORKED].load(Ordering::Acquire);
        (word > 0).then_some((word >> 8, (word & 0xff) as i32))
    }

    /// Inside a handler, in a process that the thread has forked.
    fn note_crashed_fork(&self, signal: i32) {
        let next = |word: u64| Some(((word >> 8) + 1) << 8 | u64::from(signal as u8));
        let _ = self.words[FORKED].fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
    }

    /// The addresses that the thread was executing when it crashed or was asked, the innermost first; `None` while they are not there.
    #[must_use]
    pub fn frames(&self) -> Option<Vec<u64>> {
        let count = match self.words[NOTED].load(Ordering::Acquire) {
            0 | BEING_NOTED => return None,
            count => count as usize - 1,
        };
        Some(self.words[FRAMES..].iter().take(count).map(|word| word.load(Ordering::Relaxed)).collect())
    }

    /// Piece `number` of the thread's work begins with its processor time at `cpu` ns, and is endless after `patience` ns of execution.
    pub fn begin(&self, number: u64, cpu: u64, patience: u64) {
        self.words[PATIENCE].store(patience, Ordering::Relaxed);
        self.words[BEGUN].store(cpu.max(1), Ordering::Relaxed);
        self.words[PIECE].store(number + 1, Ordering::Release);
        self.enter_code();
    }

    /// It has ended.
    pub fn end(&self) {
        self.leave_code();
        self.words[PIECE].store(0, Ordering::Release);
    }

    /// The thread is in user code from now on, and may be stopped anywhere in it. One that was to be stopped meanwhile does not come back.
    pub fn enter_code(&self) {
        self.words[IN_CODE].store(1, Ordering::SeqCst);
        if is_ordered(&self.words[ORDERS], runaway::STOP) {
            sleep_for_ever();
        }
    }

    /// The thread is in code that holds what others need.
    pub fn leave_code(&self) {
        self.words[IN_CODE].store(0, Ordering::SeqCst);
    }

    /// The thread leaves user code for as long as the returned value lives.
    #[must_use]
    pub fn out_of_code(&self) -> OutOfCode<'_> {
        self.leave_code();
        OutOfCode { cell: self }
    }

    /// Which piece is being worked at.
    #[must_use]
    pub fn piece(&self) -> Option<u64> {
        self.words[PIECE].load(Ordering::Acquire).checked_sub(1)
    }

    /// Since when the present piece executes, by the thread's processor time, and its patience.
    #[must_use]
    pub fn work(&self) -> Option<(u64, u64)> {
        let load = |place: usize| self.words[place].load(Ordering::Relaxed);
        self.piece().map(|_| (load(BEGUN), load(PATIENCE)))
    }

    /// Inside a handler: notes what the thread executes, unless that was done before.
    fn note_frames(&self, context: *mut libc::c_void) {
        let noted = &self.words[NOTED];
        if noted.compare_exchange(0, BEING_NOTED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let count = frames::note(context, &self.words[FRAMES..]);
            noted.store(count as u64 + 1, Ordering::Release);
        }
    }

    /// Forgets the frames: the job went on.
    pub fn forget_frames(&self) {
        if self.frames().is_some() {
            self.words[NOTED].store(0, Ordering::Release);
        }
    }
}

/// See [`Cell::out_of_code`].
#[derive(Debug)]
pub struct OutOfCode<'a> {
    cell: &'a Cell,
}

impl Drop for OutOfCode<'_> {
    fn drop(&mut self) {
        self.cell.enter_code();
    }
}

/// The signal's name.
#[must_use]
pub fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => "SIGSEGV (bad memory access)",
        libc::SIGBUS => "SIGBUS (bad memory access)",
        libc::SIGFPE => "SIGFPE (arithmetic, as a division by zero)",
        libc::SIGILL => "SIGILL (no such instruction)",
        libc::SIGABRT => "SIGABRT (abort or failed assertion)",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        _ => "a signal",
    }
}

thread_local! {
    /// The cell of a watched thread; constant and without destructor, so the handler may read it.
    static WATCHED: ThreadCell<*const Cell> = const { ThreadCell::new(std::ptr::null()) };
}

/// The cell of the calling thread.
fn own_cell<'a>() -> Option<&'a Cell> {
    let cell = WATCHED.try_with(ThreadCell::get).unwrap_or(std::ptr::null());
    // SAFETY: the cell lives as long as the thread is watched, and handlers run on that thread.
    (!cell.is_null()).then(|| unsafe { &*cell })
}

/// What a signal did before.
type Before = (i32, libc::sigaction);

/// Handlers are in place while this lives.
#[derive(Debug)]
pub struct Guard {
    before: Vec<Before>,
}

impl Guard {
    /// Puts the handlers in place.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn new() -> Result<Guard, Error> {
        frames::prepare();
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        let mut guard = Guard { before: Vec::with_capacity(SIGNALS.len() + 2) };
        for signal in SIGNALS {
            guard.install(signal, note, libc::SA_NODEFER)?;
        }
        guard.install(look_signal(), runaway::look, libc::SA_RESTART)?;
        // This one stays: a thread that was stopped may take its signal later, and the default would end the process.
        guard.before.retain(|(signal, _)| *signal != look_signal());
        guard.install(libc::SIGXCPU, runaway::used_up, libc::SA_RESTART)?;
        Ok(guard)
    }

    fn install(&mut self, signal: i32, handler: Handler, flags: i32) -> Result<(), Error> {
        // SAFETY: an all-zero sigaction is valid; the handlers are async-signal-safe, see there.
        let status = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | flags;
            libc::sigemptyset(&mut action.sa_mask);
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            let status = libc::sigaction(signal, &action, before.as_mut_ptr());
            if status == 0 {
                self.before.push((signal, before.assume_init()));
            }
            status
        };
        if status == 0 { Ok(()) } else { Err(Error::last_os(format!("sigaction({signal})"), "")) }
    }
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

impl Drop for Guard {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: puts back what sigaction itself handed out.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// From now on a watched thread that calls `exit` is noted in its cell. For a process of which nothing is expected after that; there is
/// no way back.
pub fn note_exits() {
    extern "C" fn note_exit() {
        if let Some(cell) = own_cell().filter(|_| is_own_process()) {
            cell.words[SIGNAL].store(EXITED, Ordering::Release);
        }
    }
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: the handler loads and stores atomics; where it finds no room in the list, an exit has no name.
    unsafe { libc::atexit(note_exit) };
}

/// Watches the calling thread for as long as the returned value lives.
#[derive(Debug)]
pub struct Watch {
    /// Outlives the thread: a crashed thread sleeps with it in hand.
    _cell: Arc<Cell>,
    _stack: Vec<u8>,
    before: libc::stack_t,
    /// Not to be sent: it belongs to the thread.
    _here: std::marker::PhantomData<*const ()>,
}

/// Notes a crash of the calling thread in `cell` from now on.
#[must_use]
pub fn watch(cell: Arc<Cell>) -> Watch {
    let mut stack = vec![0_u8; STACK];
    let new = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK };
    let mut before = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the new stack lives until `Watch` puts the old one back; `before` is writable.
    unsafe { libc::sigaltstack(&new, &mut before) };
    cell.words[STACK_LOW].store(lowest_of_stack(), Ordering::Release);
    WATCHED.set(Arc::as_ptr(&cell));
    Watch { _cell: cell, _stack: stack, before, _here: std::marker::PhantomData }
}

/// The lowest address of the calling thread's stack; 0 where the C library does not say.
fn lowest_of_stack() -> u64 {
    let (mut low, mut size) = (std::ptr::null_mut(), 0);
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::zeroed();
    // SAFETY: the attributes are filled in before they are read, and destroyed once.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0 {
            libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
    }
    low as u64
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED.set(std::ptr::null());
        // SAFETY: puts back what sigaltstack handed out; we are not running on the stack that goes.
        unsafe { libc::sigaltstack(&self.before, std::ptr::null_mut()) };
    }
}

/// The handler: only loads and stores of atomics and system calls that are async-signal-safe.
extern "C" fn note(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let forked = own_cell().filter(|_| !is_own_process());
    let Some(cell) = own_cell().filter(|_| is_own_process()) else {
        if let Some(cell) = forked {
            cell.note_crashed_fork(signal);
        }
        // Not a thread of ours, or one of a process that it forked: the default action, when the instruction is tried again.
        // SAFETY: both calls are async-signal-safe.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    };
    // A second one comes from the unwinding of a stack that is no longer whole: the thread sleeps with what is noted.
    if cell.words[SIGNAL].load(Ordering::Acquire) == 0 {
        // SAFETY: the kernel hands a valid siginfo to an SA_SIGINFO handler; which of the two it holds says its code.
        let (address, sender) = unsafe {
            let is_sent = (*info).si_code <= 0;
            let sender = || match (*info).si_pid() {
                own if own == libc::getpid() => ITSELF,
                other => other as u64 + 1,
            };
            if is_sent { (0, sender()) } else { ((*info).si_addr() as u64, 0) }
        };
        cell.words[ADDRESS].store(address, Ordering::Release);
        cell.words[SENDER].store(sender, Ordering::Release);
        cell.words[SIGNAL].store(signal as u64, Ordering::Release);
        cell.note_frames(context);
    }
    sleep_for_ever();
}

/// The process whose threads are watched: what one that was forked from it does ends nothing here.
static PROCESS: AtomicU32 = AtomicU32::new(0);

fn is_own_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == std::process::id()
}

/// What this thread held stays held, and nothing of it runs again.
fn sleep_for_ever() -> ! {
    let word = AtomicU32::new(0);
    loop {
        let _ = futex::wait(&word, 0, u64::MAX);
    }
}

/// A real-time signal that neither the C library nor common programs use.
fn look_signal() -> i32 {
    libc::SIGRTMIN() + 7
}

/// Whether the cell's word holds an order.
fn is_ordered(word: &AtomicU64, order: u64) -> bool {
    word.load(Ordering::Acquire) & order != 0
}
