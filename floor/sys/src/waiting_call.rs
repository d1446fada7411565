//! System calls in which threads wait: for time, for a file, for another thread.

/// A system call that may wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitingCall {
    /// `clock_nanosleep`.
    ClockNanosleep,
    /// `nanosleep`.
    Nanosleep,
    /// `sched_yield`: the end of a job under SCHED_DEADLINE.
    SchedYield,
    /// `read` and its relatives, on the file of the first argument.
    Read,
    /// `write` and its relatives, on the file of the first argument.
    Write,
    /// `poll`, `ppoll`, `select`, `pselect6`.
    Poll,
    /// `epoll_wait` and its relatives, on the epoll file of the first argument.
    Epoll,
    /// `recvfrom`, `recvmsg`, `recvmmsg`, on the socket of the first argument.
    Receive,
    /// `sendto`, `sendmsg`, `sendmmsg`, on the socket of the first argument.
    Send,
    /// `accept`, `accept4`, `connect`.
    Connection,
    /// `futex` and its relatives: mutexes, condition variables, joins.
    Futex,
    /// `rt_sigtimedwait`, `rt_sigsuspend`, `pause`: waits for a signal, as of a POSIX timer.
    Signal,
    /// `mq_timedreceive`, `msgrcv`.
    MessageQueue,
    /// `semop`, `semtimedop`.
    Semaphore,
    /// `ioctl`, as of sound and camera drivers, on the file of the first argument.
    Ioctl,
    /// `wait4`, `waitid`.
    Child,
    /// `io_uring_enter`, `io_getevents`.
    AsyncIo,
    /// `restart_syscall`: a relative wait goes on after a signal.
    Restart,
}

use WaitingCall::{
    AsyncIo, Child, ClockNanosleep, Connection, Epoll, Futex, Ioctl, MessageQueue, Nanosleep, Poll, Read,
    Receive, Restart, SchedYield, Semaphore, Send, Signal, Write,
};

/// The numbers that every architecture has.
const CALLS: &[(i64, WaitingCall)] = &[
    (libc::SYS_clock_nanosleep, ClockNanosleep),
    (libc::SYS_nanosleep, Nanosleep),
    (libc::SYS_sched_yield, SchedYield),
    (libc::SYS_read, Read),
    (libc::SYS_readv, Read),
    (libc::SYS_pread64, Read),
    (libc::SYS_write, Write),
    (libc::SYS_writev, Write),
    (libc::SYS_ppoll, Poll),
    (libc::SYS_pselect6, Poll),
    (libc::SYS_epoll_pwait, Epoll),
    (libc::SYS_epoll_pwait2, Epoll),
    (libc::SYS_recvfrom, Receive),
    (libc::SYS_recvmsg, Receive),
    (libc::SYS_recvmmsg, Receive),
    (libc::SYS_sendto, Send),
    (libc::SYS_sendmsg, Send),
    (libc::SYS_sendmmsg, Send),
    (libc::SYS_accept, Connection),
    (libc::SYS_accept4, Connection),
    (libc::SYS_connect, Connection),
    (libc::SYS_futex, Futex),
    (libc::SYS_futex_waitv, Futex),
    (libc::SYS_rt_sigtimedwait, Signal),
    (libc::SYS_rt_sigsuspend, Signal),
    (libc::SYS_mq_timedreceive, MessageQueue),
    (libc::SYS_msgrcv, MessageQueue),
    (libc::SYS_semop, Semaphore),
    (libc::SYS_semtimedop, Semaphore),
    (libc::SYS_ioctl, Ioctl),
    (libc::SYS_wait4, Child),
    (libc::SYS_waitid, Child),
    (libc::SYS_io_uring_enter, AsyncIo),
    (libc::SYS_io_getevents, AsyncIo),
    (libc::SYS_restart_syscall, Restart),
];

/// Older calls that newer architectures do without.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[(i64, WaitingCall)] = &[
    (libc::SYS_poll, Poll),
    (libc::SYS_select, Poll),
    (libc::SYS_epoll_wait, Epoll),
    (libc::SYS_pause, Signal),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(i64, WaitingCall)] = &[];

/// The numbers of all calls that may wait, on this architecture.
pub fn numbers() -> impl Iterator<Item = i64> {
    CALLS.iter().chain(OLD_CALLS).map(|(number, _)| *number)
}

impl WaitingCall {
    /// The call of this number; `None` where it does not wait.
    #[must_use]
    pub fn from_number(number: i64) -> Option<WaitingCall> {
        CALLS.iter().chain(OLD_CALLS).find(|(known, _)| *known == number).map(|(_, call)| *call)
    }

    /// Its name, of several relatives the best known.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ClockNanosleep => "clock_nanosleep",
            Nanosleep => "nanosleep",
            SchedYield => "sched_yield",
            Read => "read",
            Write => "write",
            Poll => "poll",
            Epoll => "epoll_wait",
            Receive => "recv",
            Send => "send",
            Connection => "accept",
            Futex => "futex",
            Signal => "sigwait",
            MessageQueue => "mq_receive",
            Semaphore => "semop",
            Ioctl => "ioctl",
            Child => "wait",
            AsyncIo => "io_uring_enter",
            Restart => "restart_syscall",
        }
    }

    /// Whether its first argument is the file that it waits for.
    #[must_use]
    pub fn names_a_file(self) -> bool {
        matches!(self, Read | Write | Epoll | Receive | Send | Connection | Ioctl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_number_stands_for_one_call() {
        let all: Vec<i64> = numbers().collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(WaitingCall::from_number(libc::SYS_futex), Some(Futex));
        assert_eq!(WaitingCall::from_number(libc::SYS_getpid), None);
        assert!(Read.names_a_file() && !Futex.names_a_file());
    }
}
