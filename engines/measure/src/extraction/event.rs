//! What inference needs to know of a record: who ran when, who waited for what.

/// How a thread left its processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It could have run on: preempted, or it yielded.
    Runnable,
    /// It sleeps; the kernel's letter of its state.
    Asleep(u8),
    /// It has ended.
    Dead,
    /// The record does not say: a wake-up that follows shows that it slept.
    Untold,
}

/// Something that happened, in time order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, ns on the record's clock.
    pub time_ns: u64,
    /// What.
    pub kind: EventKind,
}

/// What happened. Threads are named by their ids; 0 is the idle thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A processor went from one thread to another.
    Switch {
        /// The processor.
        cpu: u32,
        /// Who had it.
        prev: u32,
        /// How that one left it.
        left: Left,
        /// Who has it now.
        next: u32,
        /// Whether the one who left is under SCHED_DEADLINE, where a yield ends a job.
        prev_is_deadline: bool,
    },
    /// A thread became ready.
    Wakeup {
        /// Which.
        tid: u32,
    },
    /// A thread enters a system call that may wait.
    Call {
        /// Which thread.
        tid: u32,
        /// For what.
        wait: WaitKind,
    },
    /// A thread starts a timer.
    Timer {
        /// Which thread.
        tid: u32,
        /// Which timer.
        timer: u64,
        /// When it expires, on the record's clock.
        expires_ns: u64,
        /// Whether it was asked for as an instant.
        absolute: bool,
    },
    /// A thread has ended.
    Exit {
        /// Which.
        tid: u32,
    },
    /// A switch of this processor is missing since its last one, or (`None`) records of any processor are missing.
    Lost {
        /// Which processor.
        cpu: Option<u32>,
    },
    /// The host stopped this processor at some time between its last event and now.
    Paused {
        /// Which processor.
        cpu: u32,
    },
    /// The host took `stolen_ns` from this processor at some time since `since_ns`.
    Stolen {
        /// Which processor.
        cpu: u32,
        /// No earlier than this.
        since_ns: u64,
        /// How long in all.
        stolen_ns: u64,
    },
    /// A thread holds a lock from now on, or (`held` false) no longer.
    Lock {
        /// Which thread.
        tid: u32,
        /// Which lock.
        lock: u64,
        /// What it does about priorities.
        kind: LockKind,
        /// Whether it holds it now.
        held: bool,
    },
    /// A thread asks for a lock: until it holds it, or it is refused, a sleep is a wait for the lock.
    LockAsked {
        /// Which thread.
        tid: u32,
    },
    /// A thread asked for a lock and does not have it.
    LockRefused {
        /// Which thread.
        tid: u32,
        /// Which lock, where it waited for it and its time was over.
        timed_out: Option<u64>,
    },
}

/// What a lock does about the priority of who holds it; of two uses the lesser one counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// A mutex that does nothing.
    Plain,
    /// A mutex with priority inheritance (`PTHREAD_PRIO_INHERIT`).
    Inheritance,
    /// A mutex with a priority ceiling (`PTHREAD_PRIO_PROTECT`).
    Ceiling,
    /// No mutex.
    Other,
}

impl LockKind {
    /// In words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            LockKind::Plain => "a mutex without priority inheritance",
            LockKind::Inheritance => "a mutex with priority inheritance",
            LockKind::Ceiling => "a mutex with a priority ceiling",
            LockKind::Other => "a spinlock, or a lock for readers and writers",
        }
    }
}

/// For what a thread waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitKind {
    /// The record tells no system calls, or the thread slept outside those that wait.
    Unknown,
    /// The kernel made it wait: a page fault, a disk, a lock inside the kernel (state `D`).
    Uninterruptible,
    /// Until an instant: `clock_nanosleep` with `TIMER_ABSTIME`.
    SleepUntil,
    /// For a length of time: `nanosleep`, `clock_nanosleep` without the flag.
    SleepFor,
    /// For its next period under SCHED_DEADLINE: `sched_yield`.
    Yield,
    /// For a timerfd.
    Timer,
    /// For a signal, as of a POSIX timer.
    Signal,
    /// For one of several files: `poll`, `select`.
    Poll,
    /// For one of several files: `epoll_wait`.
    Epoll,
    /// For an eventfd.
    Eventfd,
    /// For a pipe.
    Pipe,
    /// For a socket.
    Socket,
    /// For a device: `read`, `ioctl`.
    Device,
    /// For another file.
    File,
    /// For a message queue.
    MessageQueue,
    /// For asynchronous input or output.
    AsyncIo,
    /// For a futex: a mutex, a condition variable, a semaphore of the C library.
    Futex,
    /// For a System V semaphore.
    Semaphore,
    /// For a child process.
    Child,
}

impl WaitKind {
    /// How comments and JSON name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Unknown => "sleep",
            WaitKind::Uninterruptible => "uninterruptible sleep",
            WaitKind::SleepUntil => "sleep until an instant",
            WaitKind::SleepFor => "sleep for a time",
            WaitKind::Yield => "sched_yield under SCHED_DEADLINE",
            WaitKind::Timer => "timerfd",
            WaitKind::Signal => "signal",
            WaitKind::Poll => "poll",
            WaitKind::Epoll => "epoll",
            WaitKind::Eventfd => "eventfd",
            WaitKind::Pipe => "pipe",
            WaitKind::Socket => "socket",
            WaitKind::Device => "device",
            WaitKind::File => "file",
            WaitKind::MessageQueue => "message queue",
            WaitKind::AsyncIo => "asynchronous input or output",
            WaitKind::Futex => "futex",
            WaitKind::Semaphore => "semaphore",
            WaitKind::Child => "child process",
        }
    }

    /// Whether it waits for nothing but time.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, WaitKind::SleepUntil | WaitKind::SleepFor | WaitKind::Yield | WaitKind::Timer)
    }

    /// Whether what it waits for comes from outside the program, as a rule: the typical beginning of a job.
    #[must_use]
    pub fn is_external(self) -> bool {
        matches!(
            self,
            WaitKind::Signal
                | WaitKind::Poll
                | WaitKind::Epoll
                | WaitKind::Eventfd
                | WaitKind::Pipe
                | WaitKind::Socket
                | WaitKind::Device
                | WaitKind::File
                | WaitKind::MessageQueue
                | WaitKind::AsyncIo
        )
    }

    /// Whether a timer that is started while waiting so belongs to the wait and ends with it.
    pub(super) fn owns_its_timer(self) -> bool {
        !matches!(
            self,
            WaitKind::Unknown | WaitKind::Timer | WaitKind::Eventfd | WaitKind::Pipe | WaitKind::File
        )
    }
}
