//! Sending open files over a Unix socket, and who is at its other end.

use crate::Error;
use crate::guardian::Life;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The most files that one message carries.
pub const MOST_FILES: usize = 4;

/// Room for the control message of [`MOST_FILES`] descriptors, aligned as `cmsghdr` needs it.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Sends `bytes` with `files` attached to the first of them.
///
/// # Errors
/// Bad input for too many files or no bytes; otherwise what the kernel says.
pub fn send(socket: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<(), Error> {
    if files.len() > MOST_FILES || bytes.is_empty() {
        return Err(Error::bad_input(
            "sendmsg(SCM_RIGHTS)",
            "needs at least a byte and at most four files",
            "",
        ));
    }
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 64]);
    let payload = size_of_val(files) as u32;
    // SAFETY: the message points at a part and a control area that live across the call; CMSG_SPACE of four
    // descriptors is 32, so header and payload lie inside the 64 bytes of `control`.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        if !files.is_empty() {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(payload) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(payload) as _;
            for (place, file) in files.iter().enumerate() {
                libc::CMSG_DATA(header).cast::<i32>().add(place).write_unaligned(file.as_raw_fd());
            }
        }
        libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(Error::unexpected("sendmsg(SCM_RIGHTS)", "a part of the message only", "send less")),
        Err(_) => Err(Error::last_os("sendmsg(SCM_RIGHTS)", "")),
    }
}

/// Receives at most `bytes.len()` bytes and the files attached to them; they are closed on `exec`.
///
/// # Errors
/// What the kernel says.
pub fn receive(socket: &UnixStream, bytes: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Error> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 64]);
    let mut files = Vec::new();
    // SAFETY: the message points at a writable part and control area that live across the call; the kernel writes
    // whole control messages and says by `msg_controllen` how far; each descriptor in them is ours alone from then on.
    let received = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE((MOST_FILES * size_of::<i32>()) as u32) as _;
        let received = libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC);
        let mut header = if received >= 0 { libc::CMSG_FIRSTHDR(&message) } else { std::ptr::null_mut() };
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let payload = ((*header).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                for place in 0..payload / size_of::<i32>() {
                    let file = libc::CMSG_DATA(header).cast::<i32>().add(place).read_unaligned();
                    files.push(OwnedFd::from_raw_fd(file));
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
        received
    };
    match usize::try_from(received) {
        Ok(length) => Ok((length, files)),
        Err(_) => Err(Error::last_os("recvmsg(SCM_RIGHTS)", "")),
    }
}

/// Whether the other end of a connected socket has closed it, in all its processes.
#[must_use]
pub fn is_closed(socket: BorrowedFd<'_>) -> bool {
    let mut asked = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: one valid entry; the call does not wait.
    let answered = unsafe { libc::poll(&mut asked, 1, 0) };
    answered > 0 && asked.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0
}

/// Whether something can be read from a connected socket without waiting, its end included.
#[must_use]
pub fn is_readable(socket: BorrowedFd<'_>) -> bool {
    let mut asked = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry; the call does not wait.
    unsafe { libc::poll(&mut asked, 1, 0) > 0 }
}

/// Lets so many connections wait at a listening socket (the kernel's `net.core.somaxconn` at most).
pub fn let_wait(listener: BorrowedFd<'_>, connections: i32) {
    // SAFETY: integers; where it is refused, the former number stays.
    unsafe { libc::listen(listener.as_raw_fd(), connections) };
}

/// Waits until somebody connects to a listening socket, for at most `milliseconds`. A signal ends the waiting.
pub fn wait_for_connection(listener: BorrowedFd<'_>, milliseconds: i32) {
    let mut asked = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry. Whatever it answers, the caller looks at the socket next.
    let _ = unsafe { libc::poll(&mut asked, 1, milliseconds) };
}

/// Waits until one of these can be read (a listening socket: somebody connects; a pidfd: the process has ended), for at most
/// `milliseconds`. A signal ends the waiting.
pub fn wait_for_any(files: &[BorrowedFd<'_>], milliseconds: i32) {
    let asked =
        |file: &BorrowedFd<'_>| libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut all: Vec<libc::pollfd> = files.iter().map(asked).collect();
    // SAFETY: so many valid entries. Whatever it answers, the caller looks at all of them next.
    let _ = unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, milliseconds) };
}

/// The process at the other end of a connected socket, as the kernel saw it when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process id, in the caller's own namespace; 0 where it is not visible there.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
}

/// Who connected.
///
/// # Errors
/// What the kernel says.
pub fn peer(socket: &UnixStream) -> Result<Peer, Error> {
    // SAFETY: an all-zero ucred is valid; the kernel writes at most `length` bytes of it.
    unsafe {
        let mut who: libc::ucred = std::mem::zeroed();
        let mut length = size_of::<libc::ucred>() as u32;
        let status = libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &mut length,
        );
        if status != 0 {
            return Err(Error::last_os("getsockopt(SO_PEERCRED)", ""));
        }
        Ok(Peer { pid: u32::try_from(who.pid).unwrap_or(0), uid: who.uid })
    }
}

/// Who connected, with when its process started: the number is not that of a later process. Where the kernel gives a descriptor of the
/// process (`SO_PEERPIDFD`, Linux 6.5) that it still lives after its start was read is certain; elsewhere it is read twice.
///
/// # Errors
/// What the kernel says, or that the process has ended.
pub fn peer_process(socket: &UnixStream) -> Result<(Peer, Life), Error> {
    const SO_PEERPIDFD: i32 = 77;
    let who = peer(socket)?;
    let gone = || Error::os(format!("the process {} at the other end", who.pid), libc::ESRCH, "it has ended");
    let mut file: i32 = -1;
    let mut length = size_of::<i32>() as u32;
    // SAFETY: the kernel writes one integer of that length.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut file).cast(),
            &mut length,
        )
    };
    // SAFETY: where it succeeds the descriptor is new and ours alone.
    let descriptor = (status == 0 && file >= 0).then(|| unsafe { OwnedFd::from_raw_fd(file) });
    let life = Life::of(who.pid).ok_or_else(gone)?;
    let lives = match descriptor {
        // A descriptor of a process can be read once it has ended.
        Some(process) => !is_ready(process.as_fd()),
        None => life.is_alive(),
    };
    if lives { Ok((who, life)) } else { Err(gone()) }
}

fn is_ready(file: BorrowedFd<'_>) -> bool {
    let mut asked = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry; the call does not wait.
    unsafe { libc::poll(&mut asked, 1, 0) != 0 }
}

/// Whether the other end of a connection is closed both ways: nothing that is sent there arrives.
#[must_use]
pub fn has_hung_up(socket: &UnixStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut ends = [PollFd::new(socket, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut ends, Some(&at_once)).is_ok() && ends[0].revents().contains(PollFlags::HUP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory::SharedMemory;

    #[test]
    fn a_file_goes_over_a_socket_and_the_peer_is_known() {
        let (here, there) = UnixStream::pair().expect("a pair");
        let memory = SharedMemory::create(c"test", 8192).expect("memory");
        send(&here, b"hello", &[memory.as_fd(), memory.as_fd()]).expect("sends");
        let mut bytes = [0; 16];
        let (length, mut files) = receive(&there, &mut bytes).expect("receives");
        assert_eq!((&bytes[..length], files.len()), (&b"hello"[..], 2));
        let taken = SharedMemory::from_file(files.remove(0)).expect("a sealed file");
        assert_eq!(taken.length(), 8192);
        assert_eq!(peer(&there).expect("known").pid, std::process::id());
        let (who, life) = peer_process(&there).expect("known");
        assert_eq!((who.pid, Some(life)), (std::process::id(), Life::of(std::process::id())));
        assert!(send(&here, b"", &[]).is_err());
        assert!(!is_closed(here.as_fd()) && !is_readable(here.as_fd()));
        send(&there, b"word", &[]).expect("sends");
        assert!(is_readable(here.as_fd()));
        drop(there);
        assert!(is_closed(here.as_fd()));
    }

    #[test]
    fn an_end_that_only_sends_no_more_is_not_gone() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        assert!(!has_hung_up(&ours));
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!has_hung_up(&ours));
        drop(theirs);
        assert!(has_hung_up(&ours));
    }
}
