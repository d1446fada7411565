//! SCHED_DEADLINE: a reservation of `runtime` in each `period` for one thread, through `sched_setattr`.

use crate::Error;
use crate::cpu_list::online_cpus;
use crate::machine::Capability;
use crate::rights;
use horolog_time::Span;
use std::fs;

/// A reservation: in each `period` the thread may run `runtime`, and the kernel schedules it by the absolute deadline
/// `deadline` after the period's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// Budget a period; at least 1024 ns.
    pub runtime: Span,
    /// Relative deadline; at least the runtime and at most the period.
    pub deadline: Span,
    /// Period; within `sched_deadline_period_min_us` and `…_max_us`.
    pub period: Span,
    /// SCHED_FLAG_RECLAIM: take unused bandwidth of others (GRUB).
    pub reclaim: bool,
    /// SCHED_FLAG_DL_OVERRUN: one SIGXCPU a period in which the budget ran out.
    pub signal_overrun: bool,
    /// SCHED_FLAG_RESET_ON_FORK: without it the thread may not clone (EAGAIN).
    pub reset_on_fork: bool,
}

/// The least runtime that the kernel accepts: 2^10 ns.
pub const LEAST_RUNTIME: Span = Span::from_ns(1 << 10);

const SCHED_DEADLINE: u32 = 6;
const FLAG_RESET_ON_FORK: u64 = 0x01;
const FLAG_RECLAIM: u64 = 0x02;
const FLAG_DL_OVERRUN: u64 = 0x04;

/// The first 48 bytes of the kernel's `struct sched_attr`, which every kernel with SCHED_DEADLINE knows.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Reservation {
    /// A reservation of `runtime` a `period` with the period as deadline and threads allowed to clone.
    pub fn implicit(runtime: Span, period: Span) -> Reservation {
        Reservation {
            runtime,
            deadline: period,
            period,
            reclaim: false,
            signal_overrun: false,
            reset_on_fork: true,
        }
    }

    /// Checks what the kernel would refuse with a bare EINVAL.
    ///
    /// # Errors
    /// Says which value is wrong and its limit.
    pub fn check(&self) -> Result<(), Error> {
        let Reservation { runtime, deadline, period, .. } = *self;
        let refuse = |why: String, remedy: &str| Err(Error::bad_input(self.call("a thread"), why, remedy));
        if runtime < LEAST_RUNTIME {
            return refuse(format!("the runtime {runtime} is below {LEAST_RUNTIME}"), "reserve more");
        }
        if runtime > deadline || deadline > period {
            return refuse(
                format!(
                    "runtime {runtime}, deadline {deadline} and period {period} are not in ascending order"
                ),
                "use runtime <= deadline <= period",
            );
        }
        if period.as_ns() >= 1 << 63 {
            return refuse(format!("the period {period} is 2^63 ns or more"), "use a shorter period");
        }
        let (least, most) = period_limits();
        if let Some(least) = least.filter(|least| period < *least) {
            return refuse(
                format!("the period {period} is below this machine's least, {least}"),
                "use a longer period, or lower /proc/sys/kernel/sched_deadline_period_min_us",
            );
        }
        if let Some(most) = most.filter(|most| period > *most) {
            return refuse(
                format!("the period {period} is above this machine's greatest, {most}"),
                "use a shorter period, or raise /proc/sys/kernel/sched_deadline_period_max_us",
            );
        }
        Ok(())
    }

    fn call(&self, whom: &str) -> String {
        format!(
            "sched_setattr(SCHED_DEADLINE, {} in {} by {}) on {whom}",
            self.runtime, self.period, self.deadline
        )
    }
}

/// Puts thread `tid` (0: the calling one) under a reservation.
///
/// # Errors
/// Where the values are out of range, the machine has no bandwidth left, the thread is pinned, or the privilege is
/// missing; the text says which and what to do.
pub fn set_deadline(tid: u32, reservation: &Reservation) -> Result<(), Error> {
    reservation.check()?;
    let mut flags = 0;
    for (wanted, flag) in [
        (reservation.reset_on_fork, FLAG_RESET_ON_FORK),
        (reservation.reclaim, FLAG_RECLAIM),
        (reservation.signal_overrun, FLAG_DL_OVERRUN),
    ] {
        if wanted {
            flags |= flag;
        }
    }
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: SCHED_DEADLINE,
        flags,
        runtime: reservation.runtime.as_ns(),
        deadline: reservation.deadline.as_ns(),
        period: reservation.period.as_ns(),
        ..SchedAttr::default()
    };
    // SAFETY: the structure is initialised and as long as its size field says; the kernel only reads it.
    let rc = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0) };
    if rc == 0 {
        return Ok(());
    }
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let whom = if tid == 0 { "this thread".to_owned() } else { format!("thread {tid}") };
    let call = reservation.call(&whom);
    Err(rights::refused(("SCHED_DEADLINE", Capability::SysNice), call, errno, &remedy(errno, tid)))
}

/// A reservation so small that the kernel books nothing for it: its share is below a millionth.
pub const NEXT_TO_NOTHING: Reservation = Reservation {
    runtime: LEAST_RUNTIME,
    deadline: Span::from_ns(4_000_000_000),
    period: Span::from_ns(4_000_000_000),
    reclaim: false,
    signal_overrun: false,
    reset_on_fork: true,
};

/// To be called before a thread leaves `SCHED_DEADLINE`: what it has booked becomes next to nothing. The kernel (seen with 6.18) keeps the share of
/// a thread booked for ever that sleeps while it is taken out of the class, until no reservation is granted any more. Does nothing
/// to other threads.
pub fn shrink(tid: u32) {
    if matches!(deadline_of(tid), Ok(Some(_))) {
        // Where it is refused the share stays booked, as it would have been anyway.
        let _ = set_deadline(tid, &NEXT_TO_NOTHING);
    }
}

/// The reservation of thread `tid` (0: the calling one); `None` where it is not under SCHED_DEADLINE.
///
/// # Errors
/// Where there is no such thread.
pub fn deadline_of(tid: u32) -> Result<Option<Reservation>, Error> {
    let mut attributes = SchedAttr::default();
    let size = size_of::<SchedAttr>() as u32;
    // SAFETY: the structure has room for the `size` bytes that the kernel may write.
    let rc = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attributes, size, 0) };
    if rc != 0 {
        return Err(Error::last_os(format!("sched_getattr on thread {tid}"), "does the thread still live?"));
    }
    let has = |flag| attributes.flags & flag != 0;
    Ok((attributes.policy == SCHED_DEADLINE).then(|| Reservation {
        runtime: Span::from_ns(attributes.runtime),
        deadline: Span::from_ns(attributes.deadline),
        period: Span::from_ns(attributes.period),
        reclaim: has(FLAG_RECLAIM),
        signal_overrun: has(FLAG_DL_OVERRUN),
        reset_on_fork: has(FLAG_RESET_ON_FORK),
    }))
}

/// The least and the greatest period that this machine accepts; `None` where its kernel (before 5.9) has no limit.
#[must_use]
pub fn period_limits() -> (Option<Span>, Option<Span>) {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/sched_deadline_period_{name}_us")).ok()?;
        Span::from_us(text.trim().parse().ok()?)
    };
    (read("min"), read("max"))
}

/// What helps against this refusal.
fn remedy(errno: i32, tid: u32) -> String {
    match errno {
        libc::EPERM if is_pinned(tid) => "a pinned thread needs an exclusive cpuset: its affinity must hold every CPU \
             of its root domain; make a cpuset with cpu_exclusive and sched_load_balance off at the root, or leave the \
             thread unpinned"
            .to_owned(),
        libc::EPERM => concat!(
            "run as root, or with CAP_SYS_NICE: `",
            crate::setcap_command!(),
            "`; in a cpuset or container the affinity must hold every CPU of the root domain, and kernel.sched_rt_runtime_us must not be 0"
        )
        .to_owned(),
        libc::EBUSY => "no bandwidth is left: reservations of a root domain may use at most sched_rt_runtime_us / \
             sched_rt_period_us of each CPU; a thread that left SCHED_DEADLINE keeps its share booked until its \
             zero-lag time, so wait one period, or reserve less"
            .to_owned(),
        libc::EINVAL => "the kernel knows no such policy or flag: SCHED_DEADLINE needs Linux 3.14, reclaiming 4.13, \
             overrun signals 4.16"
            .to_owned(),
        libc::ESRCH => "the thread has ended".to_owned(),
        _ => String::new(),
    }
}

/// Whether the thread may not use every online CPU.
fn is_pinned(tid: u32) -> bool {
    let path = if tid == 0 { "/proc/thread-self/status".to_owned() } else { format!("/proc/{tid}/status") };
    let allowed = fs::read_to_string(path).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        crate::cpu_list::parse_cpu_list(line)
    });
    match (allowed, online_cpus()) {
        (Some(allowed), Ok(online)) => online.iter().any(|cpu| !allowed.contains(cpu)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Span {
        Span::from_ms(ms).unwrap()
    }

    #[test]
    fn impossible_reservations_are_refused_with_the_reason() {
        let good = Reservation::implicit(ms(10), ms(100));
        assert_eq!(good.check(), Ok(()));
        let text = |r: Reservation| r.check().unwrap_err().to_string();
        assert!(text(Reservation { runtime: Span::from_ns(1023), ..good }).contains("below 1.024 us"));
        assert!(text(Reservation { deadline: ms(9), ..good }).contains("ascending"));
        assert!(text(Reservation { period: ms(99), ..good }).contains("ascending"));
        let endless = Span::from_ns(1 << 63);
        assert!(text(Reservation { deadline: endless, period: endless, ..good }).contains("2^63"));
        assert!(Reservation { deadline: ms(9), ..good }.check().unwrap_err().is_bad_input());
    }

    #[test]
    fn an_ordinary_thread_has_no_reservation() {
        assert_eq!(deadline_of(0).unwrap(), None);
        assert_eq!(deadline_of(u32::MAX >> 1).unwrap_err().errno(), Some(libc::ESRCH));
    }

    #[test]
    fn a_reservation_reads_back() {
        std::thread::spawn(|| {
            let wanted = Reservation { signal_overrun: true, ..Reservation::implicit(ms(1), ms(100)) };
            match set_deadline(0, &wanted) {
                Ok(()) => assert_eq!(deadline_of(0).unwrap(), Some(wanted)),
                Err(error) if error.is_not_permitted() => println!("SKIPPED: {error}"),
                Err(error) => panic!("{error}"),
            }
        })
        .join()
        .unwrap();
    }

    /// What the kernel says that it has booked of all CPUs together, where it says so.
    fn booked() -> Option<i64> {
        let text = std::fs::read_to_string("/sys/kernel/debug/sched/debug").ok()?;
        let line = text.lines().find(|line| line.contains("total_bw"))?;
        line.split(':').nth(1)?.trim().parse().ok()
    }

    #[test]
    fn a_sleeping_thread_that_is_given_back_leaves_nothing_booked() {
        let Some(before) = booked() else {
            println!("SKIPPED: this kernel does not show what it has booked");
            return;
        };
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        std::thread::sleep(std::time::Duration::from_millis(50));
        let former = crate::fixed_priority::Former::of(sleeper.id()).expect("an ordinary thread");
        let mut granted = 0;
        for _ in 0..5 {
            match set_deadline(sleeper.id(), &Reservation::implicit(ms(2), ms(100))) {
                Ok(()) => granted += 1,
                Err(error) => println!("SKIPPED: {error}"),
            }
            former.give_back().expect("it lives");
        }
        std::thread::sleep(std::time::Duration::from_millis(300));
        // Other tests book and give back meanwhile; five times 2 % would stay.
        let after = booked().expect("as before");
        sleeper.kill().expect("it lives");
        sleeper.wait().expect("it ends");
        assert!(granted == 0 || after - before < 5 * 20_971, "{before} before, {after} after");
    }

    #[test]
    fn a_pinned_thread_is_told_why() {
        if online_cpus().unwrap().len() < 2 {
            println!("SKIPPED: one CPU only");
            return;
        }
        std::thread::spawn(|| {
            let mut set = rustix::thread::CpuSet::new();
            set.set(online_cpus().unwrap()[0] as usize);
            rustix::thread::sched_setaffinity(None, &set).unwrap();
            let error = set_deadline(0, &Reservation::implicit(ms(1), ms(100)));
            match error {
                Err(error) => assert!(error.to_string().contains("exclusive cpuset"), "{error}"),
                Ok(()) => println!("SKIPPED: this machine has an exclusive cpuset for the thread"),
            }
        })
        .join()
        .unwrap();
    }
}
