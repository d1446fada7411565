//! What the kernel's own record of a CPU holds.

use crate::waiting_call::WaitingCall;
use std::fmt;

/// A thread's short name as the kernel keeps it: at most 15 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Comm([u8; 16]);

impl Comm {
    /// The name in these bytes, up to the first zero.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Comm {
        let mut comm = [0; 16];
        let length = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len()).min(15);
        comm[..length].copy_from_slice(&bytes[..length]);
        Comm(comm)
    }

    /// The name's bytes, filled up with zeros.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The name; bytes that are no UTF-8 are replaced.
    #[must_use]
    pub fn to_text(&self) -> String {
        let length = self.0.iter().position(|b| *b == 0).unwrap_or(16);
        String::from_utf8_lossy(&self.0[..length]).into_owned()
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_text())
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_text())
    }
}

/// A thread as the kernel's tracepoints name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Thread id; 0 is the idle thread of the CPU.
    pub tid: u32,
    /// Its short name.
    pub comm: Comm,
    /// The kernel's priority number; see [`Thread::class`].
    pub prio: i32,
}

/// The scheduling class that a kernel priority number stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// SCHED_DEADLINE (number -1).
    Deadline,
    /// SCHED_FIFO or SCHED_RR of this priority 1 to 99 (number 99 - priority).
    RealTime(u8),
    /// SCHED_OTHER, SCHED_BATCH or SCHED_IDLE (numbers 100 to 139; 120 + nice).
    Ordinary,
    /// The idle thread.
    Idle,
}

impl Thread {
    /// The scheduling class and, where it has one, the real-time priority.
    #[must_use]
    pub fn class(&self) -> Class {
        match self.prio {
            _ if self.tid == 0 => Class::Idle,
            prio if prio < 0 => Class::Deadline,
            prio @ 0..=98 => Class::RealTime((99 - prio) as u8),
            _ => Class::Ordinary,
        }
    }
}

/// In which state a thread left the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// The kernel's letter: `R` still runnable, `S` sleeping, `D` in uninterruptible sleep, `T` stopped, `X` or `Z`
    /// ended, `I` idle kernel thread, `?` unknown.
    pub letter: u8,
    /// Whether the kernel preempted it inside the kernel. A thread preempted in user code has letter `R` without
    /// this flag, so use [`State::is_runnable`] to recognise preemption.
    pub preempted: bool,
}

impl State {
    /// Whether the thread still wanted to run: it was preempted or yielded.
    #[must_use]
    pub fn is_runnable(&self) -> bool {
        self.letter == b'R'
    }

    /// Whether the thread has ended.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.letter, b'X' | b'Z')
    }
}

/// Which interrupt a number belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Interrupt {
    /// A device interrupt with its Linux number (`/proc/interrupts`).
    Device(u32),
    /// An interrupt of the processor itself with its vector, and what it is for.
    Vector(u32, VectorKind),
}

impl Interrupt {
    /// The number or the vector.
    #[must_use]
    pub fn number(&self) -> u32 {
        match self {
            Self::Device(number) | Self::Vector(number, _) => *number,
        }
    }

    /// A short name, as in `timer` or `irq 36`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Device(number) => format!("irq {number}"),
            Self::Vector(_, kind) => kind.name().to_owned(),
        }
    }
}

/// What an interrupt of the processor itself is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VectorKind {
    /// The CPU's own timer.
    LocalTimer,
    /// Another CPU asks this one to reschedule.
    Reschedule,
    /// Another CPU has this one call a function.
    CallFunction,
    /// Another CPU has this one alone call a function.
    CallFunctionSingle,
    /// Deferred work from a context that may not do it.
    IrqWork,
    /// Thermal, error, spurious or platform.
    Other,
}

impl VectorKind {
    /// A short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::LocalTimer => "timer",
            Self::Reschedule => "reschedule",
            Self::CallFunction => "call function",
            Self::CallFunctionSingle => "call function single",
            Self::IrqWork => "irq work",
            Self::Other => "processor vector",
        }
    }
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KernelEventKind {
    /// The CPU switched from `prev` (leaving it in `prev_state`) to `next`.
    Switch {
        /// Who had the CPU.
        prev: Thread,
        /// In which state it left.
        prev_state: State,
        /// Who has it now.
        next: Thread,
    },
    /// A thread became runnable on the event's CPU.
    Wakeup {
        /// Who.
        thread: Thread,
        /// Which CPU carried the wake-up out.
        waker_cpu: u32,
    },
    /// The CPU entered an interrupt handler.
    IrqEntry(Interrupt),
    /// The CPU left an interrupt handler.
    IrqExit(Interrupt),
    /// The CPU entered softirq `vec`.
    SoftirqEntry(u32),
    /// The CPU left softirq `vec`.
    SoftirqExit(u32),
    /// The hypervisor took the CPU away for `stolen_ns` in all, somewhere in the `window_ns` before the event's
    /// time (the kernel accounts it in ticks of 10 ms or so).
    Steal {
        /// How long in all.
        stolen_ns: u64,
        /// In which time.
        window_ns: u64,
    },
    /// Here the kernel's ring was full: this many records are missing.
    Lost(u64),
    /// From here until the next switch of this CPU the kernel made a switch that it did not record: who leaves at the
    /// next one is not who came at the last. Some kernels hide threads from their tracepoints.
    MissedSwitch,
    /// A thread enters a system call that may wait; only with [`super::RecorderOptions::activity`].
    CallEntry {
        /// Which thread.
        tid: u32,
        /// Which call.
        call: WaitingCall,
        /// Its first argument: a file descriptor for many calls.
        argument: u64,
    },
    /// A thread, not an interrupt, starts a high-resolution timer: its own sleep, time-out, timerfd or POSIX timer, or one
    /// of the kernel's; only with [`super::RecorderOptions::activity`].
    TimerStart {
        /// Which thread.
        tid: u32,
        /// Which timer: its address in the kernel, the same as long as the timer lives.
        timer: u64,
        /// The earliest expiry on the timer's own clock: `CLOCK_MONOTONIC` or, some 50 years later, `CLOCK_REALTIME`.
        expires_ns: u64,
        /// Whether it was asked for as an instant, not as a length.
        absolute: bool,
    },
    /// A thread made another thread or process; only with [`super::RecorderOptions::threads`] or `activity`.
    Fork {
        /// Who made it.
        parent: u32,
        /// Its first thread.
        child: u32,
        /// Whether it is another thread of its maker's process.
        is_thread: bool,
    },
    /// A thread ended, and leaves its processor later; only with [`super::RecorderOptions::threads`] or `activity`.
    Exit {
        /// Which.
        tid: u32,
    },
}

/// One entry of the kernel's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelEvent {
    /// When, on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// On which CPU; for a wake-up the CPU that the thread will run on.
    pub cpu: u32,
    /// What.
    pub kind: KernelEventKind,
}

/// The name of softirq `vec`, as in `/proc/softirqs`; the numbers are fixed in the kernel's interface.
#[must_use]
pub fn softirq_name(vec: u32) -> &'static str {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(vec as usize).copied().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_the_first_zero() {
        assert_eq!(Comm::from_bytes(b"swapper/1\0garbage").to_text(), "swapper/1");
        assert_eq!(Comm::from_bytes(b"exactly-sixteen!").to_text(), "exactly-sixteen");
        assert_eq!(Comm::from_bytes(b"").to_text(), "");
    }

    #[test]
    fn kernel_priorities_give_the_class() {
        let class = |tid: u32, prio| Thread { tid, comm: Comm::default(), prio }.class();
        assert_eq!(class(0, 120), Class::Idle);
        assert_eq!(class(9, -1), Class::Deadline);
        assert_eq!(class(9, 0), Class::RealTime(99));
        assert_eq!(class(9, 98), Class::RealTime(1));
        assert_eq!(class(9, 100), Class::Ordinary);
        assert_eq!(class(9, 120), Class::Ordinary);
    }
}
