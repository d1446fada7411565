//! One thing that happened.

use horolog_time::Instant;

/// `Record::task` where no task is concerned.
pub const NO_TASK: u32 = u32::MAX;
/// `Record::job` where no job is concerned.
pub const NO_JOB: u64 = u64::MAX;

/// What happened. The numbers are part of the file format and never change their meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// A job became ready. `value`: its nominal arrival (ns), from which the response time counts.
    Release = 1,
    /// A job got the processor for the first time.
    Start = 2,
    /// A job lost the processor without giving it up.
    Preempt = 3,
    /// A job that had lost or yielded the processor got it back.
    Resume = 4,
    /// A job reached a preemption point. `value`: the segment that it announces next (index);
    /// `extra`: 1 where somebody more important was waiting, else 0.
    PreemptionPoint = 5,
    /// A job gave the processor to somebody more important at a preemption point.
    Yield = 6,
    /// A job finished. `value`: what it executed (ns); of an imported job that ran where a switch is missing, the part
    /// of it that was seen.
    Completion = 7,
    /// A job's absolute deadline. `value`: the deadline (ns); stands only in traces that ask for it.
    Deadline = 8,
    /// A job's deadline passed before it finished. `value`: the deadline (ns).
    Miss = 9,
    /// A job executed longer than allowed. `value`: executed (ns); `extra`: 0 job, else 1 + segment.
    Overrun = 10,
    /// The overrun policy acted, or a mode change ended a job. `extra`: 0 count, 1 skip, 2 demote, 3 stop, 4 dropped, by the policy or a mode change,
    /// 5 a mode was asked for.
    Enforcement = 11,
    /// A wait for the next release returned at once, since that release had already passed.
    VainWait = 12,
    /// A preemption point found its flag set but nobody waiting any more.
    VainYield = 13,
    /// A release that was dropped. `value`: its nominal arrival (ns).
    Skip = 14,
    /// The system changed its mode. `value`: the new mode.
    ModeChange = 15,
    /// The kernel switched threads. `value`: previous thread, `extra`: next thread (ids in the trace's thread
    /// table); `task` and `job`: those of the next thread, where it is a task's.
    KernelSwitch = 32,
    /// The kernel woke a thread. `value`: the thread; `extra`: the CPU that carried the wake-up out.
    KernelWakeup = 33,
    /// The processor entered an interrupt handler. `value`: its number; `extra`: 0 a device's interrupt, else one of
    /// the processor itself and `value` is its vector: 1 local timer, 2 reschedule, 3 call function, 4 call function
    /// single, 5 irq work, 6 other.
    InterruptEntry = 34,
    /// The processor left an interrupt handler. `value`, `extra`: as at its entry.
    InterruptExit = 35,
    /// The processor entered a softirq. `value`: its number.
    SoftirqEntry = 36,
    /// The processor left a softirq. `value`: its number.
    SoftirqExit = 37,
    /// The hypervisor took the processor away. `value`: for how long in all (ns); `extra`: 0 the time up to `time`,
    /// else somewhere in this long (ns) before `time`, since the kernel accounts stolen time in coarse ticks.
    Steal = 38,
    /// A task's thread left the processor by sleeping; stands behind its [`Kind::KernelSwitch`]. Without it the thread
    /// was preempted or yielded. `value`: the thread; `extra`: the kernel's letter of its state (ASCII).
    KernelBlock = 39,
    /// Less important threads ran for `value` ns until `time` though a real-time thread was runnable: the kernel's
    /// RT throttling or fair server. `extra`: the thread that had to wait.
    KernelStarve = 40,
    /// A server has no budget left while its tasks have work. `value`: which server of the system; `extra`: what it
    /// has used in all (ns).
    BudgetExhausted = 41,
    /// A server got budget while its tasks have work. `value`: which server of the system; `extra`: what it may use at its
    /// priority from now on (ns).
    BudgetReplenished = 42,
    /// A hard job was promoted above the soft ones (dual priority).
    Promotion = 43,
    /// Soft tasks got or lost the place above the hard ones (slack stealing). `value`: which server of the system; `extra`:
    /// 1 got, 0 lost.
    SlackChange = 44,
    /// A job suspended itself: it waits for a device, or for a resource. `value`: which request of the system; `extra`: 1 where
    /// `value` says which resource of the system.
    Suspend = 45,
    /// A job that had suspended itself is ready again. `value`, `extra`: as where it suspended itself.
    Wake = 46,
    /// A job holds a resource from now on. `value`: which resource of the system.
    Lock = 52,
    /// A job holds a resource no more. `value`: which resource of the system; `extra`: 1 where the job ended without unlocking it, and the
    /// executive did ([`LEFT_LOCKED`]).
    Unlock = 53,
    /// A task has the processor for the first time in a mode that a change has brought, or somebody below a server has; jobs that
    /// are left over from the mode before do not count. `value`: the mode; `extra`: 0 for a task, else 1 + which server.
    FirstDispatch = 54,
    /// No job is left over any more from the mode before the last change. `value`: that mode; `extra`: the mode that the change
    /// has brought.
    ModeEnd = 55,
    /// The process of a task whose body is a command ended before the run did. `value`: its status, as `wait` gives it.
    Exit = 56,
    /// The thread of a task got or left the processor in another class than at its switch before. `value`: the thread; `extra`: 1 an ordinary
    /// thread, 2 a real-time one with a lower priority than the run gives it, 0 real-time as it was (or a thread of `SCHED_DEADLINE`). It
    /// follows its [`Kind::KernelSwitch`]; at first a thread is real-time.
    KernelClass = 57,
    /// A job has begun to wait for a spin lock and keeps its place meanwhile; the [`Kind::Lock`] that follows says that it holds it. `value`:
    /// which resource of the system.
    Spin = 58,
    /// Records were lost here. `value`: how many, 0 where a stretch with lost records ends; `extra`: who lost them, see [`LossCause`].
    Lost = 48,
    /// A job's value is there for the readers of a link. `value`: which link of the system; `extra`: from when on they latch it, its
    /// nominal instant (ns).
    Publish = 50,
    /// A job takes the value that a link has at its arrival. `value`: which link of the system; `extra`: the writer's job whose value
    /// it is, or [`NO_JOB`].
    Latch = 51,
    /// An event of a user program. `value`: its number in the trace's table of events; `extra`: the thread that met it
    /// (number in the trace's thread table); its arguments stand beside the record
    /// ([`Reader::user_event`](crate::file::Reader::user_event)).
    User = 49,
}

/// `extra` of an unlock by the executive: the job ended and held the resource still.
pub const LEFT_LOCKED: u64 = 1;

impl Kind {
    /// Every kind, in the order of its number.
    pub const ALL: [Kind; 41] = [
        Kind::Release,
        Kind::Start,
        Kind::Preempt,
        Kind::Resume,
        Kind::PreemptionPoint,
        Kind::Yield,
        Kind::Completion,
        Kind::Deadline,
        Kind::Miss,
        Kind::Overrun,
        Kind::Enforcement,
        Kind::VainWait,
        Kind::VainYield,
        Kind::Skip,
        Kind::ModeChange,
        Kind::KernelSwitch,
        Kind::KernelWakeup,
        Kind::InterruptEntry,
        Kind::InterruptExit,
        Kind::SoftirqEntry,
        Kind::SoftirqExit,
        Kind::Steal,
        Kind::KernelBlock,
        Kind::KernelStarve,
        Kind::BudgetExhausted,
        Kind::BudgetReplenished,
        Kind::Promotion,
        Kind::SlackChange,
        Kind::Suspend,
        Kind::Wake,
        Kind::Lost,
        Kind::User,
        Kind::Publish,
        Kind::Latch,
        Kind::Lock,
        Kind::Unlock,
        Kind::FirstDispatch,
        Kind::ModeEnd,
        Kind::Exit,
        Kind::KernelClass,
        Kind::Spin,
    ];

    /// The kind with this number.
    #[inline]
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Kind> {
        if number < 64 { KIND_BY_NUMBER[number as usize] } else { None }
    }

    /// Its name, as footers, tables and filters write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Release => "release",
            Kind::Start => "start",
            Kind::Preempt => "preempt",
            Kind::Resume => "resume",
            Kind::PreemptionPoint => "preemption-point",
            Kind::Yield => "yield",
            Kind::Completion => "completion",
            Kind::Deadline => "deadline",
            Kind::Miss => "miss",
            Kind::Overrun => "overrun",
            Kind::Enforcement => "enforcement",
            Kind::VainWait => "vain-wait",
            Kind::VainYield => "vain-yield",
            Kind::Skip => "skip",
            Kind::ModeChange => "mode-change",
            Kind::Suspend => "suspend",
            Kind::Wake => "wake",
            Kind::Lock => "lock",
            Kind::Unlock => "unlock",
            Kind::KernelSwitch => "kernel-switch",
            Kind::KernelWakeup => "kernel-wakeup",
            Kind::InterruptEntry => "interrupt-entry",
            Kind::InterruptExit => "interrupt-exit",
            Kind::SoftirqEntry => "softirq-entry",
            Kind::SoftirqExit => "softirq-exit",
            Kind::Steal => "steal",
            Kind::KernelBlock => "kernel-block",
            Kind::KernelStarve => "kernel-starve",
            Kind::BudgetExhausted => "budget-exhausted",
            Kind::BudgetReplenished => "budget-replenished",
            Kind::Promotion => "promotion",
            Kind::SlackChange => "slack-change",
            Kind::Lost => "lost",
            Kind::User => "user",
            Kind::Publish => "publish",
            Kind::Latch => "latch",
            Kind::FirstDispatch => "first-dispatch",
            Kind::ModeEnd => "mode-end",
            Kind::Exit => "exit",
            Kind::KernelClass => "kernel-class",
            Kind::Spin => "spin",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// [`Kind::from_number`] as a table: the reader asks once a record.
const KIND_BY_NUMBER: [Option<Kind>; 64] = {
    let mut table = [None; 64];
    let mut index = 0;
    while index < Kind::ALL.len() {
        table[Kind::ALL[index] as usize] = Some(Kind::ALL[index]);
        index += 1;
    }
    table
};

/// Who lost records: the `extra` of [`Kind::Lost`]. The numbers are part of the file format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u64)]
#[non_exhaustive]
pub enum LossCause {
    /// A buffer of horolog's own was full.
    Horolog = 0,
    /// The kernel's ring was full.
    Kernel = 1,
    /// The kernel made a switch without recording it, between here and this processor's next one: who leaves there is not
    /// who came last.
    HiddenSwitch = 2,
    /// A thread's own ring was full.
    ThreadRing = 3,
    /// The buffer that threads share was full.
    SharedBuffer = 4,
    /// A writer died inside an emission: its slot was skipped.
    DeadWriter = 5,
    /// The memory of a traced process held what no writer writes: skipped.
    Damaged = 6,
    /// The recorder came too late, or its output could not take more.
    Recorder = 7,
}

impl LossCause {
    /// Every cause, in the order of its number.
    pub const ALL: [LossCause; 8] = [
        LossCause::Horolog,
        LossCause::Kernel,
        LossCause::HiddenSwitch,
        LossCause::ThreadRing,
        LossCause::SharedBuffer,
        LossCause::DeadWriter,
        LossCause::Damaged,
        LossCause::Recorder,
    ];

    /// The cause with this number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<LossCause> {
        LossCause::ALL.into_iter().find(|cause| *cause as u64 == number)
    }

    /// Its name, as feet and results write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LossCause::Horolog => "horolog-buffer",
            LossCause::Kernel => "kernel-ring",
            LossCause::HiddenSwitch => "hidden-switch",
            LossCause::ThreadRing => "thread-ring",
            LossCause::SharedBuffer => "shared-buffer",
            LossCause::DeadWriter => "dead-writer",
            LossCause::Damaged => "damaged-memory",
            LossCause::Recorder => "recorder",
        }
    }

    /// In words, behind a number of records.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            LossCause::Horolog => "by horolog",
            LossCause::Kernel => "by the kernel",
            LossCause::HiddenSwitch => "switches that the kernel made without recording them",
            LossCause::ThreadRing => "since the ring of a thread was full",
            LossCause::SharedBuffer => "since the shared buffer was full",
            LossCause::DeadWriter => "since their writer died inside an emission",
            LossCause::Damaged => "in damaged memory of the traced process",
            LossCause::Recorder => "by the recorder",
        }
    }
}

/// One thing that happened, as it stands in memory; the file holds a compact form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// When, since the trace's origin.
    pub time: Instant,
    /// What.
    pub kind: Kind,
    /// On which processor (Linux number).
    pub cpu: u16,
    /// Which task ([`horolog_model::TaskId`]), or [`NO_TASK`].
    pub task: u32,
    /// Which of its jobs, counted from 0, or [`NO_JOB`].
    pub job: u64,
    /// As the kind says.
    pub value: u64,
    /// As the kind says.
    pub extra: u64,
}
