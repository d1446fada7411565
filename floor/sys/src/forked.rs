//! A part of this program in a process of its own, which can end in any way without taking the rest with it.
//!
//! `fork` copies the calling thread alone. What the others held stays held in the child, so the locks of the standard streams are taken
//! before and given back in both; the C library does the same for its allocator, its streams and its loader.

use crate::Error;
use crate::guardian::{Mark, end_all_of, note_fork, put_on_this_process};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;

/// A forked child, killed when this is dropped, and when the thread that forked it ends; with it ends what it has started.
#[derive(Debug)]
pub struct Forked {
    pid: i32,
    /// The child and what it has started bear it.
    mark: Mark,
    /// What the child writes.
    reader: File,
    /// Bytes of a message that is not whole yet.
    pending: Vec<u8>,
    ended: Option<ExitStatus>,
    closed: bool,
}

/// The child's way to its parent.
#[derive(Debug)]
pub struct Messages {
    writer: File,
}

impl Messages {
    /// Sends one message. A parent that is gone needs none.
    pub fn send(&mut self, message: &[u8]) {
        let Ok(length) = u32::try_from(message.len()) else { return };
        let _ = self.writer.write_all(&length.to_le_bytes()).and_then(|()| self.writer.write_all(message));
    }
}

/// Runs `child` in a child process, which ends with it: nothing that belongs to the parent is dropped there, and no handler of `exit`
/// is called. Descriptors that would not survive `exec` are closed in it.
///
/// # Errors
/// Where the kernel allows no further process.
pub fn fork(child: impl FnOnce(Messages)) -> Result<Forked, Error> {
    let mut ends = [0_i32; 2];
    // SAFETY: `ends` has room for the two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Error::last_os("pipe2", "raise the limit on open files (ulimit -n)"));
    }
    // SAFETY: the kernel has just given these descriptors to us alone.
    let (reader, writer) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    let parent = std::process::id();
    let mark = note_fork()?;
    let out = std::io::stdout().lock();
    let err = std::io::stderr().lock();
    let guardian = crate::guardian::hold();
    // SAFETY: the child goes on with a copy of this thread; see the head of the module for what other threads may hold.
    let pid = unsafe { libc::fork() };
    drop((out, err));
    if pid == 0 {
        guardian.leave_to_the_parent();
    } else {
        drop(guardian);
    }
    if pid < 0 {
        return Err(Error::last_os("fork", "raise the limit on processes (ulimit -u)"));
    }
    if pid == 0 {
        let writer = File::from(writer);
        let whole = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: both calls take integers. Where the parent ended before the first, no one would wait for the second.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() as u32 != parent {
                    libc::_exit(1);
                }
            }
            close_those_of_the_parent(writer.as_raw_fd());
            // SAFETY: the child has this thread alone.
            unsafe { put_on_this_process(mark) };
            // What runs here may be code of the user.
            crate::rights::give_up_file_rights();
            child(Messages { writer });
        }));
        // SAFETY: ends the process at once; what the parent owns must not be dropped here.
        unsafe { libc::_exit(i32::from(whole.is_err()) * 101) }
    }
    drop(writer);
    let reader = File::from(reader);
    // SAFETY: F_SETFL takes integers; the descriptor is ours.
    unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    Ok(Forked { pid, mark, reader, pending: Vec::new(), ended: None, closed: false })
}

/// Closes what would not survive `exec`, but `mine`: sockets, traces and locks that the parent alone must hold.
fn close_those_of_the_parent(mine: i32) {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|&number| number > 2 && number != mine) {
        // SAFETY: both calls take integers; the value that had the descriptor is a copy that is never dropped.
        unsafe {
            let flags = libc::fcntl(number, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
                libc::close(number);
            }
        }
    }
}

impl Forked {
    /// The child's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.pid as u32
    }

    /// The whole messages that have come, after waiting for one for at most `patience_ms`.
    pub fn receive(&mut self, patience_ms: i32) -> Vec<Vec<u8>> {
        let mut look = libc::pollfd { fd: self.reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, alive during the call.
        unsafe { libc::poll(&mut look, 1, patience_ms) };
        let mut chunk = [0_u8; 1 << 14];
        loop {
            match self.reader.read(&mut chunk) {
                Ok(0) => {
                    self.closed = true;
                    break;
                }
                Ok(count) => self.pending.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let mut whole = Vec::new();
        while let Some((head, rest)) = self.pending.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*head) as usize;
            if rest.len() < length {
                break;
            }
            whole.push(rest[..length].to_vec());
            self.pending.drain(..4 + length);
        }
        whole
    }

    /// Whether the child can send nothing any more: it has ended, or has become another program.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: the child is ours and was not waited for; `status` is writable.
            if unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) } == self.pid {
                self.ended = Some(ExitStatus::from_raw(status));
            }
        }
        self.ended
    }

    /// Kills it, and ends what it has started and left behind: how many processes that were.
    pub fn end_all(&mut self) -> usize {
        self.kill();
        end_all_of(self.mark)
    }

    /// Kills it, and waits for its end.
    pub fn kill(&mut self) -> ExitStatus {
        if let Some(ended) = self.ended() {
            return ended;
        }
        let mut status = 0;
        // SAFETY: the child is ours and was not waited for, so the id is its own; `status` is writable.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, &mut status, 0) < 0
                && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
            {}
        }
        let status = ExitStatus::from_raw(status);
        self.ended = Some(status);
        status
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// From now on what this process writes to its standard output goes to its standard error.
pub fn standard_output_to_error() {
    // SAFETY: both descriptors are numbers; where standard error is closed the call fails and changes nothing.
    unsafe { libc::dup2(2, 1) };
}

/// Writes what the C library's streams hold, unless that takes longer than `patience_ns`: code that was stopped in the middle may hold
/// a stream for ever.
pub fn flush_c_streams(patience_ns: u64) {
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = done.clone();
    let started = std::thread::Builder::new().spawn(move || {
        // SAFETY: a null stream means all of them; the call locks each in turn.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        told.store(true, std::sync::atomic::Ordering::Release);
    });
    let limit = crate::clock::monotonic_ns().saturating_add(patience_ns);
    while started.is_ok()
        && !done.load(std::sync::atomic::Ordering::Acquire)
        && crate::clock::monotonic_ns() < limit
    {
        let _ = crate::clock::sleep_until(crate::clock::monotonic_ns() + 500_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{monotonic_ns, sleep_until};
    use crate::shared_words::SharedWords;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    fn wait(forked: &mut Forked) -> (Vec<Vec<u8>>, ExitStatus) {
        let mut messages = Vec::new();
        loop {
            messages.extend(forked.receive(5));
            if let Some(status) = forked.ended() {
                messages.extend(forked.receive(0));
                return (messages, status);
            }
        }
    }

    #[test]
    fn messages_come_whole_and_words_outlive_the_child() {
        let words = Arc::new(SharedWords::new(2).expect("memory"));
        let theirs = words.clone();
        let mut forked = fork(move |mut messages| {
            messages.send(b"one");
            messages.send(&vec![7; 200_000]);
            theirs[1].store(42, Ordering::Release);
            // SAFETY: a signal to this process itself, the child.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        })
        .expect("a process");
        let (messages, status) = wait(&mut forked);
        assert_eq!((messages.len(), messages[0].as_slice(), messages[1].len()), (2, &b"one"[..], 200_000));
        assert_eq!((status.signal(), words[1].load(Ordering::Acquire)), (Some(libc::SIGKILL), 42));
    }

    #[test]
    fn a_child_ends_by_itself_and_with_its_parent_value() {
        let mut forked = fork(|_| ()).expect("a process");
        assert_eq!(wait(&mut forked).1.code(), Some(0));
        let forked = fork(|_| {
            let _ = sleep_until(monotonic_ns() + 3_600_000_000_000);
        })
        .expect("a process");
        let pid = forked.id();
        drop(forked);
        // SAFETY: signal 0 only asks whether there is such a process.
        assert_eq!(unsafe { libc::kill(pid as i32, 0) }, -1);
    }

    /// Whether a process lives and is no zombie.
    fn lives(pid: u64) -> bool {
        crate::guardian::Life::of(pid as u32).is_some()
    }

    /// Forks twice, so that nobody is left to whom the grandchild belongs: it sleeps, or becomes a program that does.
    fn daemon(words: &SharedWords, place: usize, program: bool) {
        // SAFETY: forked children that only sleep, start a program, or end at once.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::setsid();
                if libc::fork() != 0 {
                    libc::_exit(0);
                }
                words[place].store(u64::from(std::process::id()), Ordering::Release);
                if program {
                    let words = [c"sleep".as_ptr(), c"3600".as_ptr(), std::ptr::null()];
                    libc::execvp(words[0], words.as_ptr());
                }
                loop {
                    libc::pause();
                }
            }
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }

    #[test]
    fn what_a_child_has_forked_ends_with_it() {
        for is_killed in [false, true] {
            let words = Arc::new(SharedWords::new(2).expect("memory"));
            let theirs = words.clone();
            let mut forked = fork(move |_| {
                daemon(&theirs, 0, false);
                daemon(&theirs, 1, true);
                while theirs.iter().any(|word| word.load(Ordering::Acquire) == 0) {
                    let _ = sleep_until(monotonic_ns() + 1_000_000);
                }
                if is_killed {
                    // SAFETY: a signal to this process itself, the child.
                    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
                }
            })
            .expect("a process");
            wait(&mut forked);
            // Give the second one time to become its program.
            let _ = sleep_until(monotonic_ns() + 50_000_000);
            let left = [0, 1].map(|place| words[place].load(Ordering::Acquire));
            assert!(left.iter().all(|&pid| lives(pid)), "{left:?}");
            assert_eq!(forked.end_all(), 2);
            assert!(left.iter().all(|&pid| !lives(pid)), "{left:?}");
            assert_eq!(forked.end_all(), 0);
        }
    }

    #[test]
    fn a_message_that_is_cut_off_is_none() {
        let mut forked = fork(|mut messages| {
            messages.send(b"whole");
            let _ = messages.writer.write_all(&[9, 0, 0, 0, b'c']);
        })
        .expect("a process");
        assert_eq!(wait(&mut forked).0, [b"whole".to_vec()]);
    }
}
