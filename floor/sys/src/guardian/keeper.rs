//! The run's side of its guardian: starts it, and starts another one where it dies before the run.

use super::journal::Life;
use super::serve::{Orders, take_place};
use super::{GuardianOptions, MARK, SUBCOMMAND};
use crate::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the guardian may take to start, and to put everything back.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long is waited before the next try where none can be started.
const RETRY: Duration = Duration::from_secs(1);
/// The stack of the thread that watches: locked memory counts it.
const STACK: usize = 128 * 1024;

/// A guardian process and the thread that notices its end.
#[derive(Debug)]
pub(super) struct Keeper {
    shared: Arc<Shared>,
    watcher: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    options: GuardianOptions,
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Debug)]
struct State {
    orders: Orders,
    control: UnixStream,
    process: Child,
    /// The run needs no guardian any more.
    is_over: bool,
}

impl Keeper {
    /// Starts a guardian with these orders and waits until it is armed.
    pub(super) fn start(options: &GuardianOptions, orders: Orders) -> Result<Keeper, Error> {
        let (control, process) = start_process(options, &orders)?;
        let end = control
            .try_clone()
            .map_err(|error| Error::io("dup for the guardian", &error, "raise `ulimit -n`"))?;
        let state = State { orders, control, process, is_over: false };
        let shared =
            Arc::new(Shared { options: options.clone(), state: Mutex::new(state), over: Condvar::new() });
        let mine = Arc::clone(&shared);
        let watcher = std::thread::Builder::new()
            .name("horolog-watch".to_owned())
            .stack_size(STACK)
            .spawn(move || mine.watch(end))
            .map_err(|error| Error::io("clone(watch of the guardian)", &error, "raise `ulimit -u`"));
        let mut keeper = Keeper { shared, watcher: None };
        // Where this fails the guardian ends with the value that is dropped here.
        keeper.watcher = Some(watcher?);
        Ok(keeper)
    }

    /// Changes the orders, of this guardian and of every later one.
    pub(super) fn order(&self, change: impl FnOnce(&mut Orders)) {
        let mut state = self.shared.lock();
        change(&mut state.orders);
        let line = state.orders.encode();
        // Where the guardian is gone, the next one hears it at its start.
        let _ = state.control.write_all(line.as_bytes());
    }

    pub(super) fn process_id(&self) -> u32 {
        self.shared.lock().process.id()
    }

    /// Has everything put back; the guardian's answer, `None` where it died before.
    pub(super) fn finish(mut self) -> Option<String> {
        let control = {
            let mut state = self.shared.lock();
            state.is_over = true;
            let _ = state.control.write_all(b"finish\n");
            state.control.try_clone()
        };
        let answer = control.ok().and_then(|control| {
            control.set_read_timeout(Some(PATIENCE)).ok()?;
            let mut line = String::new();
            BufReader::new(control).read_line(&mut line).ok()?;
            Some(line).filter(|line| line.ends_with('\n'))
        });
        if answer.is_none() {
            let _ = self.shared.lock().process.kill();
        }
        self.end();
        answer
    }

    /// Waits for the guardian's end, and for that of its watch.
    fn end(&mut self) {
        {
            let mut state = self.shared.lock();
            state.is_over = true;
            // Its duplicate in the watch would keep it open.
            let _ = state.control.shutdown(std::net::Shutdown::Both);
            let _ = state.process.wait();
        }
        self.shared.over.notify_all();
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The closed socket tells the guardian to put everything back.
        self.end();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements, so a panicked holder spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces each guardian that ends before the run is over.
    fn watch(&self, mut end: UnixStream) {
        block_signals();
        take_place(&self.lock().orders.housekeeping);
        loop {
            wait_for_end(&end);
            let mut state = self.lock();
            if state.is_over {
                return;
            }
            let was = state.process.id();
            let _ = state.process.kill();
            let _ = state.process.wait();
            let mut is_told = false;
            end = loop {
                match self.replace(&mut state) {
                    Ok(end) => break end,
                    Err(error) if !is_told => {
                        is_told = true;
                        eprintln!(
                            "horolog: its guardian (process {was}) has ended, and no other starts: {error}"
                        );
                    }
                    Err(_) => {}
                }
                let waited = self.over.wait_timeout(state, RETRY);
                state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
                if state.is_over {
                    return;
                }
            };
            eprintln!(
                "horolog: its guardian (process {was}) has ended before the run; process {} guards it now",
                state.process.id()
            );
        }
    }

    /// Starts another guardian, which goes on with the same journal.
    fn replace(&self, state: &mut State) -> Result<UnixStream, Error> {
        let (control, process) = start_process(&self.options, &state.orders)?;
        let end = control.try_clone();
        (state.control, state.process) = (control, process);
        end.map_err(|error| Error::io("dup for the guardian", &error, "raise `ulimit -n`"))
    }
}

/// Waits until the other end of the socket is closed, which happens at the end of the process that has it.
fn wait_for_end(socket: &UnixStream) {
    let mut fds = [libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 }];
    loop {
        // SAFETY: `fds` is a valid array of one for the whole call.
        let count = unsafe { libc::poll(fds.as_mut_ptr(), 1, -1) };
        let is_interrupted = || std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        if count >= 0 || !is_interrupted() {
            return;
        }
    }
}

/// Signals are for the run's other threads.
fn block_signals() {
    // SAFETY: `all` is filled by the first call before the second reads it; no old mask is asked for.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

fn start_process(options: &GuardianOptions, orders: &Orders) -> Result<(UnixStream, Child), Error> {
    let failed =
        |call: &str, error: &std::io::Error| Error::io(format!("{call} for the guardian"), error, "");
    let (mut control, theirs) = UnixStream::pair().map_err(|error| failed("socketpair", &error))?;
    let mut command = Command::new(&options.program);
    if crate::rights::were_ambient() {
        // SAFETY: between fork and exec the closure makes system calls and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                crate::rights::pass_file_rights_on();
                Ok(())
            });
        }
    }
    let mut process = command
        .args(&options.arguments)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        // Its own standard output would keep a pipe open that the run's reader waits on.
        .stdout(Stdio::null())
        // Where the run itself was started by a guarded one, that one's end must not end this guardian.
        .env_remove(MARK)
        // Its own group: Ctrl-C is for the run.
        .process_group(0)
        .spawn()
        .map_err(|error| failed(&format!("exec({})", options.program.display()), &error))?;
    let mut line = String::new();
    let ready = control
        .write_all(orders.encode().as_bytes())
        .and_then(|()| control.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| BufReader::new(&control).read_line(&mut line));
    if let (Ok(_), "ready\n") = (&ready, line.as_str()) {
        return Ok((control, process));
    }
    let _ = process.kill();
    let _ = process.wait();
    let why = ready.map_or_else(|error| error.to_string(), |_| format!("it said {line:?}"));
    Err(Error::unexpected(
        format!("start of the guardian ({})", options.program.display()),
        why,
        format!("does the program know the subcommand {SUBCOMMAND}?"),
    ))
}

/// This process, as its guardian knows it.
pub(super) fn this_process() -> Result<Life, Error> {
    Life::of(std::process::id())
        .ok_or_else(|| Error::unexpected("read(/proc/self/stat)", "not understood", "mount procfs"))
}
