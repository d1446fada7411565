//! The thread itself: what it has executed, its switches, whether it is awake.

use super::account::Account;
use super::options::{Accounting, Notice};
use horolog_sys::Error;
use horolog_sys::task_clock::{TaskClock, wait_for};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// An existing thread that is looked at.
pub(super) struct Watched {
    clock: Option<TaskClock>,
    /// `/proc/TID/stat`, kept open.
    stat: File,
    schedstat: File,
    /// What schedstat showed at the start.
    base: u64,
}

impl Watched {
    /// Opens what `accounting` needs, or the finest that this machine allows.
    pub(super) fn open(tid: u32, accounting: Option<Accounting>) -> Result<(Watched, Accounting), Error> {
        let open = |name: &str| {
            let path = format!("/proc/{tid}/{name}");
            File::open(&path)
                .map_err(|error| Error::io(format!("open({path})"), &error, "has the thread ended?"))
        };
        let (stat, schedstat) = (open("stat")?, open("schedstat")?);
        let clock = match accounting {
            Some(Accounting::SchedStat) => None,
            Some(Accounting::TaskClock) => Some(TaskClock::open(tid)?),
            None => TaskClock::open(tid).ok(),
        };
        let found = if clock.is_some() { Accounting::TaskClock } else { Accounting::SchedStat };
        let mut watched = Watched { clock, stat, schedstat, base: 0 };
        watched.base = watched.schedstat_ns().unwrap_or(0);
        Ok((watched, found))
    }

    /// Replays the switches since the last look.
    pub(super) fn replay(&mut self, account: &mut Account) {
        if let Some(clock) = &mut self.clock {
            clock.drain(|switch| account.switch(switch));
        }
    }

    /// What it has executed since the start; `None` once it has ended.
    pub(super) fn executed_ns(&self) -> Option<u64> {
        match &self.clock {
            Some(clock) => clock.read_ns().ok(),
            None => Some(self.schedstat_ns()?.saturating_sub(self.base)),
        }
    }

    /// Whether its switches are seen.
    pub(super) fn has_switches(&self) -> bool {
        self.clock.is_some()
    }

    /// Whether it runs or wants to; `None` once it has ended.
    pub(super) fn is_awake(&self) -> Option<bool> {
        let mut buffer = [0_u8; 128];
        let length = self.stat.read_at(&mut buffer, 0).ok()?;
        let text = &buffer[..length];
        // The name may hold anything; the state stands behind the last parenthesis.
        let end = text.iter().rposition(|&byte| byte == b')')?;
        match text.get(end + 2)? {
            b'R' => Some(true),
            b'Z' | b'X' | b'x' => None,
            _ => Some(false),
        }
    }

    fn schedstat_ns(&self) -> Option<u64> {
        let mut buffer = [0_u8; 64];
        let length = self.schedstat.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..length]).ok()?;
        text.split_ascii_whitespace().next()?.parse().ok()
    }

    /// Sleeps until `until`, or until it has executed for `budget` more where the kernel tells.
    pub(super) fn wait(&self, notice: Notice, budget: Option<u64>, until: u64) {
        match (&self.clock, notice) {
            (Some(clock), Notice::Overflow) => {
                // Where it cannot be armed, `until` is soon enough to find out.
                let _ = clock.arm(budget);
                wait_for(&[clock.as_raw_fd()], until);
            }
            _ => wait_for(&[], until),
        }
    }
}
