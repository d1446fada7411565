//! A flag that lives in the kernel, to be asked for with a system call.

use crate::Error;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;

/// A flag in the kernel: what a preemption point costs where it has to ask.
#[derive(Debug)]
pub struct Status {
    event: OwnedFd,
}

impl Status {
    /// A flag that is not set.
    ///
    /// # Errors
    /// Where no more files can be opened.
    pub fn new() -> Result<Status, Error> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|errno| Error::os("eventfd", errno.raw_os_error(), "raise the limit on open files"))?;
        Ok(Status { event })
    }

    /// Sets or clears it: one system call. Both are idempotent.
    pub fn set(&self, raised: bool) {
        if raised {
            // A counter that is already above zero stays so.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        } else {
            let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
        }
    }

    /// Whether it is set: one system call.
    #[must_use]
    pub fn ask(&self) -> bool {
        let mut ask = [PollFd::new(&self.event, PollFlags::IN)];
        let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut ask, Some(&timeout)), Ok(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_was_told() {
        let status = Status::new().expect("files can be opened");
        for raised in [false, true, true, false, false, true] {
            status.set(raised);
            assert_eq!(status.ask(), raised);
        }
    }
}
