//! A process that waits to be recorded: whoever may trace it connects and says where its session is to go.
//!
//! The socket's name is `horolog-trace-PID` in the abstract namespace. The recorder sends one line
//! `record SOCKET` TAB options TAB patterns; the process hands its session over at SOCKET, enables the events, and disables
//! them when the recorder has gone.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicU64};
use std::io::ErrorKind;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use super::handover::Lines;
use super::service::{Answer, begin, with_signals_blocked};
use super::{Options, budget, fork, prohibited};
use horolog_sys::descriptor_passing::{peer, wait_for_connection};
use horolog_sys::{Error, thread};

/// What [`super::service::SOCKET`] says where a process waits to be recorded.
pub const LISTEN: &str = "listen";

fn address(pid: u32) -> Result<SocketAddr, Error> {
    SocketAddr::from_abstract_name(format!("horolog-trace-{pid}"))
        .map_err(|error| Error::io("the socket's name", &error, ""))
}

/// An open file of the thread that waits, and where the program sees it.
struct Kept {
    /// Its number; negative: none.
    number: AtomicI32,
    /// Which file it is.
    device: AtomicU64,
    inode: AtomicU64,
}

impl Kept {
    const fn none() -> Kept {
        Kept { number: AtomicI32::new(-1), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    fn keep(&self, number: RawFd) {
        if let Some((device, inode)) = file_at(number) {
            self.device.store(device, Relaxed);
            self.inode.store(inode, Relaxed);
            self.number.store(number, Release);
        }
    }

    fn forget(&self) {
        self.number.store(-1, Release);
    }
}

/// The socket that listens, and that of a recorder.
static LISTENER: Kept = Kept::none();
static RECORDER: Kept = Kept::none();

/// A child of `fork` has no thread that waits: what that one has open is of no use there. Takes no lock and allocates nothing.
extern "C" fn close_in_child() {
    for kept in [&LISTENER, &RECORDER] {
        let number = kept.number.swap(-1, Acquire);
        let file = (kept.device.load(Relaxed), kept.inode.load(Relaxed));
        // The program may have closed it, and have a file of its own under the number.
        if number >= 0 && !prohibited::are_calls() && file_at(number) == Some(file) {
            // SAFETY: a descriptor that no thread of the child knows of.
            unsafe { libc::close(number) };
        }
    }
}

/// Starts the thread `horolog-trace`, which waits for recorders.
pub(super) fn start(answer: Answer) -> Result<(), Error> {
    let io = |error: std::io::Error| Error::io("listening for recorders", &error, "the name is taken");
    let listener = UnixListener::bind_addr(&address(std::process::id())?).map_err(io)?;
    listener.set_nonblocking(true).map_err(io)?;
    let listener = UnixListener::from(out_of_the_way(listener.into()));
    LISTENER.keep(listener.as_raw_fd());
    // Now, and not in the thread: by then the program may have given the number to a file of its own.
    let own = file_at(listener.as_raw_fd());
    // SAFETY: registers a function that stays loaded, since the library does.
    unsafe { libc::pthread_atfork(None, None, Some(close_in_child)) };
    with_signals_blocked(|| {
        let built = std::thread::Builder::new().name("horolog-trace".to_owned());
        built.stack_size(256 << 10).spawn(move || wait_for_recorders(listener, own, answer))
    })
    .map(drop)
    .map_err(|error| Error::io("starting the thread horolog-trace", &error, ""))
}

/// How often the thread looks whether the program has ended around it.
const LOOK_EVERY_MS: i32 = 100;

/// Until the program has no other thread, or has closed the socket.
fn wait_for_recorders(listener: UnixListener, own: Option<(u64, u64)>, answer: Answer) {
    thread::set_name("horolog-trace");
    // The program may close all numbers, and give this one to a file of its own: that is not ours to touch.
    let listener = ManuallyDrop::new(listener);
    if own.is_none() {
        return;
    }
    loop {
        wait_for_connection(listener.as_fd(), LOOK_EVERY_MS);
        if file_at(listener.as_raw_fd()) != own {
            return;
        }
        if is_alone() {
            LISTENER.forget();
            drop(ManuallyDrop::into_inner(listener));
            return;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let stream = UnixStream::from(out_of_the_way(stream.into()));
                RECORDER.keep(stream.as_raw_fd());
                // What goes wrong was told to the recorder; the program goes on.
                let _ = take(stream, answer);
                RECORDER.forget();
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return,
        }
    }
}

/// Which open file a number stands for: its device and its number there.
fn file_at(number: RawFd) -> Option<(u64, u64)> {
    // SAFETY: the place is writable for its size.
    unsafe {
        let mut file: libc::stat = core::mem::zeroed();
        (libc::fstat(number, &mut file) == 0).then_some((file.st_dev, file.st_ino))
    }
}

/// The same open file under a number that the program does not get for its own files, where there is one.
fn out_of_the_way(file: OwnedFd) -> OwnedFd {
    // SAFETY: the kernel writes a limit; the new descriptor is ours alone.
    unsafe {
        let mut limit: libc::rlimit = core::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        let high = i32::try_from(limit.rlim_cur.min(1 << 20)).unwrap_or(0).saturating_sub(16);
        match libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, high) {
            number if number >= 0 => OwnedFd::from_raw_fd(number),
            _ => file,
        }
    }
}

/// Whether every other thread of the program has ended: then this one ends, too, and the process with it. Opens no file.
fn is_alone() -> bool {
    let mut path = [0_u8; 8];
    // SAFETY: both paths end with zero, and both places are writable for their size.
    unsafe {
        // The executable of a process is that of its first thread, until that has ended.
        let runs = libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) >= 0;
        let mut tasks: libc::stat = core::mem::zeroed();
        // Two links of the folder, the first thread, and this one.
        !runs && libc::stat(c"/proc/self/task".as_ptr(), &mut tasks) == 0 && tasks.st_nlink <= 4
    }
}

/// One recorder, from its request to its end.
fn take(stream: UnixStream, answer: Answer) -> Result<(), Error> {
    let who = peer(&stream)?;
    // SAFETY: the call has no arguments and cannot fail.
    let own = unsafe { libc::geteuid() };
    if who.uid != 0 && who.uid != own {
        return Ok(());
    }
    let io = |error: std::io::Error| Error::io("a recorder", &error, "");
    stream.set_read_timeout(Some(Duration::from_secs(1))).map_err(io)?;
    let (number, own_file) = (stream.as_raw_fd(), file_at(stream.as_raw_fd()));
    let mut lines = Lines::new(stream);
    let request = lines.read()?;
    let mut words = request.strip_prefix("record ").unwrap_or_default().split('\t');
    let (Some(path), Some(options), Some(patterns)) = (words.next(), words.next(), words.next()) else {
        return lines.write("error: not understood");
    };
    let mut wanted = Options::recorded();
    let begun = wanted.apply(options).and_then(|()| {
        budget::join(Path::new(path));
        begin(&wanted, Path::new(path))
    });
    let session = match begun {
        Ok(session) => session,
        Err(error) => return lines.write(&format!("error: {error}")),
    };
    let patterns: Vec<&str> = patterns.split(',').filter(|pattern| !pattern.is_empty()).collect();
    let replies: Vec<String> = patterns.iter().map(|pattern| answer(&format!("enable {pattern}"))).collect();
    let refused = replies.into_iter().find(|reply| reply.starts_with("error"));
    lines.write(&refused.unwrap_or_else(|| "ok".to_owned()))?;
    let is_ours = || file_at(number) == own_file;
    while is_ours() && !lines.is_closed() && !is_alone() {
        std::thread::sleep(Duration::from_millis(10));
    }
    if !is_ours() {
        // The program has closed it, and what has its number now is the program's.
        std::mem::forget(lines);
    }
    fork::forget();
    drop(session);
    for pattern in patterns {
        answer(&format!("disable {pattern}"));
    }
    Ok(())
}

/// A process that is recorded because it was asked to be; dropping it ends that.
#[derive(Debug)]
pub struct Asked {
    _lines: Lines,
}

/// Asks process `pid`, which waits to be recorded, to hand its session over at `socket`, with these options and enabled
/// events (separated by commas), for as long as the answer is kept.
///
/// # Errors
/// Where it does not wait, is another process than it says, or refuses.
pub fn request(pid: u32, socket: &Path, options: &str, patterns: &str) -> Result<Asked, Error> {
    let what = || format!("process {pid}");
    let stream = UnixStream::connect_addr(&address(pid)?)
        .map_err(|error| Error::io(what(), &error, "start it with HOROLOG_TRACE=listen"))?;
    if peer(&stream)?.pid != pid {
        return Err(Error::unexpected(what(), "another process listens under its name", ""));
    }
    let io = |error: std::io::Error| Error::io(what(), &error, "");
    stream.set_read_timeout(Some(Duration::from_secs(2))).map_err(io)?;
    let mut lines = Lines::new(stream);
    lines.write(&format!("record {}\t{options}\t{patterns}", socket.display()))?;
    match lines.read() {
        Ok(reply) if reply == "ok" => Ok(Asked { _lines: lines }),
        Ok(reply) => Err(Error::unexpected(what(), reply, "")),
        Err(error) => {
            Err(Error::unexpected(what(), error.to_string(), "it may be recorded by somebody else already"))
        }
    }
}
