//! Where the time of τ2's periods goes under the sporadic server: the kernel's record of the hard tasks' CPU, period by
//! period, and apart for periods in which τ2 missed.
//!
//! The record itself takes a little of each switch, so these periods are a point of their own, not of the table.

use super::PERIOD;
use super::tasks::Done;
use horolog_sys::kernel_trace::{Class, KernelEvent, KernelEventKind, Thread};
use serde::{Deserialize, Serialize};

/// Who may have the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(super) enum Who {
    Tau1,
    Tau2,
    /// The driver's thread with budget.
    High,
    /// The driver's thread without.
    Low,
    /// The server's agent.
    Agent,
    /// Interrupts and softirqs, whomever they interrupted.
    Interrupts,
    OtherRealTime,
    Ordinary,
    Idle,
    /// After a switch that the kernel did not record.
    Unknown,
}

impl Who {
    pub(super) const ALL: [Who; 10] = [
        Who::Tau1,
        Who::Tau2,
        Who::High,
        Who::Low,
        Who::Agent,
        Who::Interrupts,
        Who::OtherRealTime,
        Who::Ordinary,
        Who::Idle,
        Who::Unknown,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Who::Tau1 => "tau1",
            Who::Tau2 => "tau2",
            Who::High => "driver's thread with budget",
            Who::Low => "driver's thread without",
            Who::Agent => "the server's agent",
            Who::Interrupts => "interrupts and softirqs",
            Who::OtherRealTime => "other real-time threads",
            Who::Ordinary => "ordinary threads",
            Who::Idle => "idle",
            Who::Unknown => "unknown",
        }
    }

    fn of(thread: &Thread) -> Who {
        let name = thread.comm.to_text();
        match thread.class() {
            Class::Idle => Who::Idle,
            class if name.starts_with("napi/") => {
                if class == Class::Ordinary {
                    Who::Low
                } else {
                    Who::High
                }
            }
            _ if name == "tau1" => Who::Tau1,
            _ if name == "tau2" => Who::Tau2,
            _ if name.starts_with("serve/") => Who::Agent,
            Class::Ordinary => Who::Ordinary,
            _ => Who::OtherRealTime,
        }
    }
}

/// Means over some periods.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Account {
    pub(super) periods: u64,
    /// Time by [`Who`], ns a period.
    pub(super) ns: Vec<f64>,
    /// How often the driver's thread came in with budget, a period.
    pub(super) dispatches: f64,
    /// Interrupts a period.
    pub(super) interrupts: f64,
}

/// Of the periods in which τ2 met its deadline, and of those in which it missed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Accounts {
    pub(super) e2_us: u64,
    pub(super) met: Account,
    pub(super) missed: Account,
}

/// One period's sums.
#[derive(Clone, Default)]
struct Sum {
    ns: [u64; Who::ALL.len()],
    dispatches: u64,
    interrupts: u64,
}

impl Accounts {
    pub(super) fn of(events: &[KernelEvent], cpu: u32, e2_us: u64, jobs: u64, done: &Done) -> Accounts {
        let sums = sums(events.iter().filter(|event| event.cpu == cpu), done.start_ns, jobs);
        let mean = |is_missed: bool| {
            let of = (0..).zip(&sums).filter(|(job, _)| done.missed2.contains(job) == is_missed);
            let chosen: Vec<&Sum> = of.map(|(_, sum)| sum).collect();
            let periods = chosen.len() as u64;
            let average = |of: &dyn Fn(&Sum) -> u64| {
                chosen.iter().map(|sum| of(sum)).sum::<u64>() as f64 / periods.max(1) as f64
            };
            Account {
                periods,
                ns: Who::ALL.iter().map(|&who| average(&|sum| sum.ns[who as usize])).collect(),
                dispatches: average(&|sum| sum.dispatches),
                interrupts: average(&|sum| sum.interrupts),
            }
        };
        Accounts { e2_us, met: mean(false), missed: mean(true) }
    }
}

/// The sums of each of `jobs` periods from `start` on.
fn sums<'a>(events: impl Iterator<Item = &'a KernelEvent>, start: u64, jobs: u64) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); jobs as usize];
    let period_of = |time: u64| (time.checked_sub(start)? / PERIOD.as_ns()).try_into().ok();
    let (mut current, mut depth, mut last) = (Who::Unknown, 0_u32, start);
    for event in events {
        let who = if depth > 0 { Who::Interrupts } else { current };
        add(&mut sums, start, (last, event.time_ns), who);
        last = last.max(event.time_ns);
        let sum: Option<&mut Sum> = period_of(event.time_ns).and_then(|at: usize| sums.get_mut(at));
        match event.kind {
            KernelEventKind::Switch { next, .. } => {
                (current, depth) = (Who::of(&next), 0);
                if let Some(sum) = sum {
                    sum.dispatches += u64::from(current == Who::High);
                }
            }
            KernelEventKind::MissedSwitch => current = Who::Unknown,
            KernelEventKind::IrqEntry(_) => {
                depth += 1;
                if let Some(sum) = sum {
                    sum.interrupts += 1;
                }
            }
            KernelEventKind::SoftirqEntry(_) => depth += 1,
            KernelEventKind::IrqExit(_) | KernelEventKind::SoftirqExit(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    sums
}

/// Gives [from, until) to `who`, period by period.
fn add(sums: &mut [Sum], start: u64, (from, until): (u64, u64), who: Who) {
    let mut from = from.max(start);
    while from < until {
        let period = (from - start) / PERIOD.as_ns();
        let end = until.min(start + (period + 1) * PERIOD.as_ns());
        let Some(sum) = sums.get_mut(period as usize) else { return };
        sum.ns[who as usize] += end - from;
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_sys::kernel_trace::{Comm, Interrupt, State, VectorKind};

    fn thread(name: &str, prio: i32) -> Thread {
        Thread { tid: 7, comm: Comm::from_bytes(name.as_bytes()), prio }
    }

    fn switch(time_ns: u64, name: &str, prio: i32) -> KernelEvent {
        let prev_state = State { letter: b'R', preempted: false };
        let kind = KernelEventKind::Switch { prev: thread("x", 120), prev_state, next: thread(name, prio) };
        KernelEvent { time_ns, cpu: 1, kind }
    }

    #[test]
    fn time_goes_to_whoever_has_the_cpu_period_by_period() {
        let vector = Interrupt::Vector(251, VectorKind::CallFunctionSingle);
        let ms = 1_000_000;
        let event = |time_ns, kind| KernelEvent { time_ns, cpu: 1, kind };
        let events = [
            switch(10 * ms, "tau1", 19),
            switch(12 * ms, "napi/h1ar-7", 24),
            event(13 * ms, KernelEventKind::IrqEntry(vector)),
            event(14 * ms, KernelEventKind::IrqExit(vector)),
            switch(15 * ms, "tau2", 29),
            // Over the end of the first period.
            switch(22 * ms, "napi/h1ar-7", 120),
            switch(24 * ms, "serve/7", 1),
            event(25 * ms, KernelEventKind::MissedSwitch),
            switch(40 * ms, "tau1", 19),
        ];
        let done = Done { start_ns: 10 * ms, missed2: vec![0], ..Done::default() };
        let accounts = Accounts::of(&events, 1, 5_000, 2, &done);
        let of = |account: &Account, who: Who| account.ns[who as usize] / 1e6;
        let (missed, met) = (&accounts.missed, &accounts.met);
        assert_eq!((missed.periods, met.periods), (1, 1));
        assert_eq!((of(missed, Who::Tau1), of(missed, Who::High), of(missed, Who::Tau2)), (2.0, 2.0, 5.0));
        assert_eq!((of(missed, Who::Interrupts), missed.interrupts, missed.dispatches), (1.0, 1.0, 1.0));
        assert_eq!((of(met, Who::Tau2), of(met, Who::Low), of(met, Who::Agent)), (2.0, 2.0, 1.0));
        assert_eq!(of(met, Who::Unknown), 5.0);
        let whole: f64 = met.ns.iter().sum();
        assert_eq!(whole, 10e6);
    }
}
