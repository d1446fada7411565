//! How a session comes to a reader in another process: over a Unix socket, which is closed at once.
//!
//! The traced process connects, sends one line `horolog-session 2 PID STACK` with the session's memory attached, and closes
//! both. STACK, in hexadecimal digits, is where its stack begins: `exec` changes it. From then on the two share memory and nothing else.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::budget::Budget;
use super::reader::Reader;
use super::shared::start_of_stack;
use horolog_sys::descriptor_passing::{is_closed, is_readable, let_wait, peer, receive, wait_for_any};
use horolog_sys::{Error, clock};

/// How long a process that has connected may take to send its session. Other sessions are taken meanwhile.
const HELLO: Duration = Duration::from_secs(5);

/// How many connections may have sent nothing yet; beyond, the older half is closed.
const MOST_SILENT: usize = 256;

/// How many processes may have connected between two looks of the reader. The kernel's own limit may be lower.
const MOST_CONNECTING: i32 = 4096;

/// How long an answer of a process that waits to be recorded may take.
const ANSWER: Duration = Duration::from_secs(10);

/// The longest line, either way.
pub const LONGEST_LINE: usize = 64 << 10;

/// Where processes hand their sessions over; dropping it removes the socket.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    budget: Arc<Budget>,
    /// Connected, and nothing sent yet.
    silent: Mutex<Vec<(UnixStream, Instant)>>,
}

impl Listener {
    /// Listens at `path`, which must not exist; only this user can connect. The rings of all processes that come may have
    /// the smaller of 1 GiB and a tenth of the machine's memory.
    ///
    /// # Errors
    /// Where the socket cannot be made.
    pub fn bind(path: &Path) -> Result<Listener, Error> {
        Listener::bind_within(path, 0)
    }

    /// The same with a limit of `bytes`; 0: the default.
    ///
    /// # Errors
    /// As [`Listener::bind`].
    pub fn bind_within(path: &Path, bytes: u64) -> Result<Listener, Error> {
        let what = || format!("socket `{}`", path.display());
        let budget = Arc::new(Budget::create(path, bytes)?);
        let socket = UnixListener::bind(path).map_err(|error| {
            Error::io(what(), &error, "choose another path, in a folder that you may write")
        })?;
        let listener = Listener { socket, path: path.to_owned(), budget, silent: Mutex::default() };
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(path, private).map_err(|error| Error::io(what(), &error, ""))?;
        listener.socket.set_nonblocking(true).map_err(|error| Error::io(what(), &error, ""))?;
        let_wait(listener.socket.as_fd(), MOST_CONNECTING);
        Ok(listener)
    }

    /// What the rings of all sessions may have together.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The next process that has handed a session over, in the order in which they connected; `None` where there is none. Never
    /// waits: who has connected and is silent is looked at again by the next call, for at most five seconds.
    ///
    /// # Errors
    /// Where what a process sent is no session; the listener goes on.
    pub fn accept(&self) -> Result<Option<Connection>, Error> {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        while silent.len() < MOST_SILENT {
            match self.socket.accept() {
                Ok((stream, _)) => silent.push((stream, Instant::now())),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(Error::io(format!("socket `{}`", self.path.display()), &error, "")),
            }
        }
        // In the order in which they connected: the program that a process runs now comes after the one that it ran before. When a
        // later connection is looked at, the earlier one of its process has sent its session already.
        if let Some(place) = silent.iter().position(|(stream, _)| is_readable(stream.as_fd())) {
            let (stream, _) = silent.remove(place);
            return self.take(&stream).map(Some);
        }
        if silent.len() >= MOST_SILENT {
            silent.drain(..MOST_SILENT / 2);
        }
        silent.retain(|(_, since)| since.elapsed() < HELLO);
        Ok(None)
    }

    /// Waits until a process connects or sends its session, or `other` can be read, for at most `milliseconds`.
    pub fn wait(&self, other: Option<BorrowedFd<'_>>, milliseconds: i32) {
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = vec![self.socket.as_fd()];
        files.extend(other);
        files.extend(silent.iter().map(|(stream, _)| stream.as_fd()));
        wait_for_any(&files, milliseconds);
    }

    /// Takes the session that a process has sent.
    fn take(&self, stream: &UnixStream) -> Result<Connection, Error> {
        let who = peer(stream)?;
        stream
            .set_nonblocking(true)
            .map_err(|error| Error::io("session from another process", &error, ""))?;
        let mut first = [0; 256];
        let (length, mut files) = receive(stream, &mut first)?;
        let hello = first.get(..length).unwrap_or_default();
        if !hello.starts_with(b"horolog-session 2 ") || files.is_empty() {
            return Err(Error::bad_input(
                format!("process {}", who.pid),
                "it sent no session",
                "only programs with horolog's runtime of this version may connect here",
            ));
        }
        let stack = hello.get(PID_AT + PID_DIGITS + 1..).and_then(|rest| rest.get(..STACK_DIGITS));
        let stack = stack.and_then(|digits| u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        let reader = Reader::new(files.remove(0), who.pid)?.of_program(stack.unwrap_or(0));
        Ok(Connection { reader, budget: Arc::clone(&self.budget) })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A traced process, seen from its reader.
#[derive(Debug)]
pub struct Connection {
    /// Its session.
    pub reader: Reader,
    budget: Arc<Budget>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.budget.give_back(self.reader.claimed());
    }
}

/// How often a process tries to connect where too many do at once, a millisecond apart.
const ATTEMPTS: u32 = 20;

/// The places of the numbers in the line that a process sends.
const PID_AT: usize = "horolog-session 2 ".len();
const PID_DIGITS: usize = 10;
const STACK_DIGITS: usize = 16;

/// Connects to the reader at `path`, hands `memory` over and closes the connection: the reader's process, 0 where it is not
/// seen from here. Allocates nothing unless it fails: children of `fork` do this, too.
pub(super) fn hand_over(memory: BorrowedFd<'_>, path: &Path) -> Result<u32, Error> {
    let refused = |error: &std::io::Error| {
        Error::io(format!("socket `{}`", path.display()), error, "start the reader first")
    };
    let mut left = ATTEMPTS;
    let stream = loop {
        match connect(path) {
            Ok(stream) => break stream,
            Err(error) if left > 0 && error.kind() == ErrorKind::WouldBlock => {
                left -= 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(refused(&error)),
        }
    };
    let mut hello = *b"horolog-session 2 0000000000 0000000000000000\n";
    let digits = |digits: &mut [u8], mut number: u64, base: u64| {
        for digit in digits.iter_mut().rev() {
            *digit = b"0123456789abcdef"[(number % base) as usize];
            number /= base;
        }
    };
    let (pid, stack) = hello[PID_AT..].split_at_mut(PID_DIGITS + 1);
    digits(&mut pid[..PID_DIGITS], std::process::id().into(), 10);
    digits(&mut stack[..STACK_DIGITS], start_of_stack(), 16);
    horolog_sys::descriptor_passing::send(&stream, &hello, &[memory])?;
    // It has the memory, whoever it is.
    Ok(peer(&stream).map_or(0, |reader| reader.pid))
}

/// A connection that does not wait for the reader.
fn connect(path: &Path) -> Result<UnixStream, std::io::Error> {
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes();
    // SAFETY: the address is a valid structure, filled with a path that fits; the descriptor is ours alone.
    unsafe {
        let mut address: libc::sockaddr_un = core::mem::zeroed();
        if bytes.len() >= address.sun_path.len() {
            return Err(std::io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (place, byte) in address.sun_path.iter_mut().zip(bytes) {
            *place = *byte as libc::c_char;
        }
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let socket = libc::socket(libc::AF_UNIX, kind, 0);
        if socket < 0 {
            return Err(std::io::Error::last_os_error());
        }
        let stream = UnixStream::from(OwnedFd::from_raw_fd(socket));
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        if libc::connect(stream.as_raw_fd(), (&raw const address).cast(), length) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(stream)
    }
}

/// A socket that carries lines.
#[derive(Debug)]
pub(crate) struct Lines {
    stream: UnixStream,
    waiting: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(stream: UnixStream) -> Lines {
        Lines { stream, waiting: Vec::new() }
    }

    /// Whether the other end has gone.
    pub(crate) fn is_closed(&self) -> bool {
        is_closed(self.stream.as_fd())
    }

    /// Sends one line; line ends inside it become spaces.
    pub(crate) fn write(&mut self, line: &str) -> Result<(), Error> {
        let mut bytes = line.replace('\n', " ").into_bytes();
        bytes.push(b'\n');
        // Not `write_all`: the other end may be gone, and SIGPIPE must not end a traced process.
        horolog_sys::descriptor_passing::send(&self.stream, &bytes, &[])
    }

    /// The next line, within the stream's time-out.
    pub(crate) fn read(&mut self) -> Result<String, Error> {
        let started = clock::monotonic_ns();
        loop {
            if let Some(end) = self.waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.waiting.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let late = u128::from(clock::monotonic_ns() - started) > ANSWER.as_nanos()
                && self.stream.read_timeout().ok().flatten().is_some();
            if self.waiting.len() > LONGEST_LINE || late {
                return Err(Error::unexpected("a line from a traced process", "too long or too slow", ""));
            }
            let mut more = [0; 4096];
            match self.stream.read(&mut more) {
                Ok(0) => {
                    return Err(Error::os("reading from the socket", libc::EPIPE, "the other end has gone"));
                }
                Ok(length) => self.waiting.extend_from_slice(&more[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("reading from the socket", &error, "")),
            }
        }
    }
}
