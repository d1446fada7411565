//! Scheduling classes with fixed priorities, and the normal ones.

use crate::Error;
use crate::machine::Capability;
use crate::rights;

/// How the kernel schedules a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// `SCHED_FIFO` at this priority, 1 to 99, larger is more important.
    Fifo(u8),
    /// `SCHED_OTHER`.
    Normal,
    /// `SCHED_IDLE`: only when nothing else wants the processor.
    Idle,
    /// `SCHED_DEADLINE` or anything else that this module does not set.
    Foreign,
}

/// The remedy for a missing right to use real-time priorities.
pub const PRIVILEGE_REMEDY: &str = concat!(
    "run as root, or with CAP_SYS_NICE: `",
    crate::setcap_command!(),
    "`; or raise the limits `rtprio 99` and `memlock unlimited` in /etc/security/limits.d"
);

/// Sets the class of the thread `tid` (0: the calling one). Children that it forks get the normal class.
///
/// # Errors
/// `EPERM` without the privilege, `ESRCH` where the thread has ended.
pub fn set_class(tid: u32, class: Class) -> Result<(), Error> {
    let (policy, priority) = match class {
        Class::Fifo(priority) => (libc::SCHED_FIFO, i32::from(priority)),
        Class::Normal => (libc::SCHED_OTHER, 0),
        Class::Idle => (libc::SCHED_IDLE, 0),
        Class::Foreign => {
            return Err(Error::bad_input(
                "sched_setscheduler",
                "no class to set",
                "give FIFO, normal or idle",
            ));
        }
    };
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: `parameter` is readable for the call's duration; no memory of ours is written.
    let status =
        unsafe { libc::sched_setscheduler(tid as i32, policy | libc::SCHED_RESET_ON_FORK, &parameter) };
    if status == 0 { Ok(()) } else { Err(refused(tid, class)) }
}

/// Sets the class of a process's main thread so that its own children keep it: for attached commands.
///
/// # Errors
/// As [`set_class`].
pub fn set_class_inherited(pid: u32, class: Class) -> Result<(), Error> {
    let Class::Fifo(priority) = class else { return set_class(pid, class) };
    let parameter = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: `parameter` is readable for the call's duration; no memory of ours is written.
    let status = unsafe { libc::sched_setscheduler(pid as i32, libc::SCHED_FIFO, &parameter) };
    if status == 0 { Ok(()) } else { Err(refused(pid, class)) }
}

fn refused(tid: u32, class: Class) -> Error {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    let call = format!("sched_setscheduler({class:?}) of thread {tid}");
    let remedy = if errno == libc::EPERM { PRIVILEGE_REMEDY } else { "" };
    let what = if let Class::Fifo(_) = class { "SCHED_FIFO" } else { "this scheduling class" };
    rights::refused((what, Capability::SysNice), call, errno, remedy)
}

/// The class of the thread `tid` (0: the calling one).
///
/// # Errors
/// Where the thread has ended.
pub fn class_of(tid: u32) -> Result<Class, Error> {
    // SAFETY: the call takes an integer and touches no memory of ours.
    let policy = unsafe { libc::sched_getscheduler(tid as i32) };
    if policy < 0 {
        return Err(Error::last_os(format!("sched_getscheduler of thread {tid}"), ""));
    }
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameter` is writable.
    if unsafe { libc::sched_getparam(tid as i32, &mut parameter) } != 0 {
        return Err(Error::last_os(format!("sched_getparam of thread {tid}"), ""));
    }
    Ok(match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO => Class::Fifo(parameter.sched_priority as u8),
        libc::SCHED_OTHER => Class::Normal,
        libc::SCHED_IDLE => Class::Idle,
        _ => Class::Foreign,
    })
}

/// How a thread was scheduled before somebody changed that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Former {
    tid: u32,
    policy: i32,
    priority: i32,
    nice: i32,
}

impl Former {
    /// As it was written down: policy, priority and nice value.
    #[must_use]
    pub fn from_parts(tid: u32, (policy, priority, nice): (i32, i32, i32)) -> Former {
        Former { tid, policy, priority, nice }
    }

    /// To be written down: policy (with the flag to reset it on fork), priority and nice value.
    #[must_use]
    pub fn parts(&self) -> (i32, i32, i32) {
        (self.policy, self.priority, self.nice)
    }

    /// That of the thread `tid`.
    ///
    /// # Errors
    /// Where the thread has ended, or is under SCHED_DEADLINE, which cannot be given back with certainty.
    pub fn of(tid: u32) -> Result<Former, Error> {
        let mut parameter = libc::sched_param { sched_priority: 0 };
        // SAFETY: these calls take integers; `parameter` is writable.
        let (policy, status, nice) = unsafe {
            (
                libc::sched_getscheduler(tid as i32),
                libc::sched_getparam(tid as i32, &mut parameter),
                libc::getpriority(libc::PRIO_PROCESS, tid),
            )
        };
        if policy < 0 || status != 0 {
            return Err(Error::last_os(format!("sched_getscheduler of thread {tid}"), "has it ended?"));
        }
        if policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_DEADLINE {
            return Err(Error::bad_input(
                format!("thread {tid}"),
                "it is under SCHED_DEADLINE, which cannot be given back with certainty",
                "leave it alone",
            ));
        }
        Ok(Former { tid, policy, priority: parameter.sched_priority, nice })
    }

    /// Gives the thread back how it was scheduled.
    ///
    /// # Errors
    /// Where the thread has ended or the kernel refuses.
    pub fn give_back(&self) -> Result<(), Error> {
        crate::deadline::shrink(self.tid);
        let parameter = libc::sched_param { sched_priority: self.priority };
        // SAFETY: `parameter` is readable for the calls' duration; no memory of ours is written.
        let done = unsafe {
            libc::sched_setscheduler(self.tid as i32, self.policy, &parameter) == 0
                && libc::setpriority(libc::PRIO_PROCESS, self.tid, self.nice) == 0
        };
        if done {
            return Ok(());
        }
        Err(Error::last_os(format!("sched_setscheduler({}) of thread {}", self.policy, self.tid), ""))
    }
}

/// Whether this process may use `SCHED_FIFO` at `priority`: tried on a thread of its own that ends at once.
///
/// # Errors
/// Why not, with the remedy.
pub fn may_use_fifo(priority: u8) -> Result<(), Error> {
    std::thread::spawn(move || set_class(0, Class::Fifo(priority))).join().unwrap_or_else(|_| {
        Err(Error::unexpected("probe of SCHED_FIFO", "the probing thread panicked", "report this"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_set_and_read_back() {
        if let Err(error) = may_use_fifo(10) {
            println!("SKIPPED: {error}");
            return;
        }
        std::thread::spawn(|| {
            for class in [Class::Fifo(3), Class::Fifo(1), Class::Idle, Class::Normal] {
                set_class(0, class).expect("allowed");
                assert_eq!(class_of(0).expect("readable"), class);
            }
        })
        .join()
        .expect("the thread ends");
    }

    #[test]
    fn what_is_no_class_is_refused() {
        assert!(set_class(0, Class::Fifo(100)).expect_err("99 is the top").is_bad_input());
        assert!(set_class(0, Class::Foreign).expect_err("not settable").is_bad_input());
    }
}
