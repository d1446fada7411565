//! How a session comes to a reader in another process: over a Unix socket, which then carries commands.
//!
//! The traced process connects and sends one line `horolog-session 1 PID` with the session's memory attached. From then
//! on the reader sends lines (commands) and the process answers each with one line.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Session;
use super::reader::Reader;
use horolog_sys::descriptor_passing::{peer, receive, send};
use horolog_sys::{Error, clock};

/// How long a process that has connected may take to send its session.
const HELLO: Duration = Duration::from_secs(5);

/// How long an answer to a command may take; the runtime's thread is an ordinary one and may have to wait for a processor.
const ANSWER: Duration = Duration::from_secs(10);

/// The longest line, either way.
pub const LONGEST_LINE: usize = 64 << 10;

/// Where processes hand their sessions over; dropping it removes the socket.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens at `path`, which must not exist; only this user can connect.
    ///
    /// # Errors
    /// Where the socket cannot be made.
    pub fn bind(path: &Path) -> Result<Listener, Error> {
        let what = || format!("socket `{}`", path.display());
        let socket = UnixListener::bind(path).map_err(|error| {
            Error::io(what(), &error, "choose another path, in a folder that you may write")
        })?;
        let listener = Listener { socket, path: path.to_owned() };
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(path, private).map_err(|error| Error::io(what(), &error, ""))?;
        listener.socket.set_nonblocking(true).map_err(|error| Error::io(what(), &error, ""))?;
        Ok(listener)
    }

    /// The next process that hands a session over; `None` where none waits. Waits for the first line of a process that
    /// has connected for at most five seconds.
    ///
    /// # Errors
    /// Where what it sent is no session; the listener goes on.
    pub fn accept(&self) -> Result<Option<Connection>, Error> {
        match self.socket.accept() {
            Ok((stream, _)) => Connection::take(stream).map(Some),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Error::io(format!("socket `{}`", self.path.display()), &error, "")),
        }
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
    lines: Lines,
}

impl Connection {
    fn take(stream: UnixStream) -> Result<Connection, Error> {
        let who = peer(&stream)?;
        let io = |error: std::io::Error| Error::io("session from another process", &error, "");
        stream.set_nonblocking(false).map_err(io)?;
        stream.set_read_timeout(Some(HELLO)).map_err(io)?;
        let mut first = [0; 256];
        let (length, mut files) = receive(&stream, &mut first)?;
        let hello = first.get(..length).unwrap_or_default();
        if !hello.starts_with(b"horolog-session 1 ") || files.is_empty() {
            return Err(Error::bad_input(
                format!("process {}", who.pid),
                "it sent no session",
                "only programs with horolog's runtime may connect here",
            ));
        }
        let reader = Reader::new(files.remove(0), who.pid)?;
        stream.set_read_timeout(Some(ANSWER)).map_err(io)?;
        let mut lines = Lines::new(stream);
        lines.begin_with_rest_of(hello);
        Ok(Connection { reader, lines })
    }

    /// Sends a command, and waits for its answer for at most ten seconds.
    ///
    /// # Errors
    /// Where the process has ended or does not answer.
    pub fn command(&mut self, command: &str) -> Result<String, Error> {
        self.lines.write(command)?;
        self.lines.read()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.stream.as_fd()
    }
}

/// Connects to the reader at `path` and hands `session` over.
pub(crate) fn hand_over(session: &Session, path: &Path) -> Result<Lines, Error> {
    let stream = UnixStream::connect(path).map_err(|error| {
        Error::io(format!("socket `{}`", path.display()), &error, "start the reader first")
    })?;
    let hello = format!("horolog-session 1 {}\n", std::process::id());
    send(&stream, hello.as_bytes(), &[session.memory().as_fd()])?;
    Ok(Lines::new(stream))
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

    /// The socket's descriptor.
    pub(crate) fn descriptor(&self) -> i32 {
        self.stream.as_raw_fd()
    }

    /// What came after the first line.
    fn begin_with_rest_of(&mut self, received: &[u8]) {
        if let Some(end) = received.iter().position(|byte| *byte == b'\n') {
            self.waiting.extend_from_slice(&received[end + 1..]);
        }
    }

    /// Sends one line; line ends inside it become spaces.
    pub(crate) fn write(&mut self, line: &str) -> Result<(), Error> {
        let mut bytes = line.replace('\n', " ").into_bytes();
        bytes.push(b'\n');
        // Not `write_all`: the other end may be gone, and SIGPIPE must not end a traced process.
        send(&self.stream, &bytes, &[])
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

    /// Ends both directions.
    pub(crate) fn close(&mut self) {
        let _ = self.stream.flush();
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
