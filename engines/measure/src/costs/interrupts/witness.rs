//! The second witness: the kernel's own record of its handlers on the interrupt's CPU.

use super::super::{Setting, go_on};
use super::landing::Landing;
use super::provoke::Provoker;
use super::watch::{REACH_NS, Request, Seen, asking, shortest};
use super::{Recorded, percentiles};
use horolog_sys::Error;
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::kernel_trace::{
    Interrupt, KernelEvent, KernelEventKind, Recorder, RecorderOptions, VectorKind,
};
use horolog_time::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks for about `budget` while the kernel is recorded. `None`: this kernel shows no such handler.
pub(super) fn record(
    provoker: &mut Provoker,
    landing: &Landing,
    setting: Setting,
    budget: Span,
    stop: &Arc<AtomicBool>,
) -> Result<(Seen, Option<Recorded>), Error> {
    let stop = Arc::clone(stop);
    let before = landing.count()?;
    let recorder = Recorder::start(&RecorderOptions::new(vec![landing.cpu]))?;
    let spins = !landing.follows;
    let (requests, ()) = asking(provoker, landing, setting, move |wanted| {
        let end = monotonic_ns().saturating_add(budget.as_ns());
        // A call reaches only a CPU on which a thread of ours runs; the asker's own must stay free for it.
        while monotonic_ns() < end {
            go_on(&stop)?;
            wanted.store(true, Ordering::Relaxed);
            let rest = monotonic_ns() + 5_000_000;
            while spins && monotonic_ns() < rest {
                std::hint::spin_loop();
            }
            let _ = sleep_until(rest);
            wanted.store(false, Ordering::Relaxed);
            let _ = sleep_until(monotonic_ns() + 5_000_000);
        }
        Ok(())
    })?;
    let interrupts = landing.count()?.saturating_sub(before);
    let recording = recorder.stop()?;
    let (handlers, softirqs) = handlers(&recording.events, landing, &requests);
    let recorded =
        percentiles(&handlers).map(|handler| Recorded { handler, softirqs: percentiles(&softirqs) });
    let seen = Seen {
        samples: handlers,
        provoked: requests.len() as u64,
        interrupts,
        disturbed_share: None,
        round_trip_ns_min: shortest(&requests),
    };
    Ok((seen, recorded))
}

/// Of each request, the last handler that began before its answer, and the softirqs that began in its gap.
fn handlers(events: &[KernelEvent], landing: &Landing, requests: &[Request]) -> (Vec<u64>, Vec<u64>) {
    let is_ours = |interrupt: Interrupt| match interrupt {
        Interrupt::Device(number) => landing.number() == Some(number),
        Interrupt::Vector(_, kind) => {
            landing.number().is_none()
                && matches!(kind, VectorKind::CallFunction | VectorKind::CallFunctionSingle)
        }
    };
    let spans = spans(events, landing.cpu);
    let (mut handlers, mut softirqs) = (Vec::new(), Vec::new());
    for request in requests {
        let within = &spans[spans.partition_point(|span| span.from_ns < request.asked_ns)
            ..spans.partition_point(|span| span.from_ns < request.answered_ns)];
        let ours = |span: &&Handled| matches!(span.what, What::Interrupt(interrupt) if is_ours(interrupt));
        let Some(handler) = within.iter().rfind(ours) else { continue };
        if handler.until_ns + REACH_NS < request.answered_ns {
            continue;
        }
        handlers.push(handler.until_ns - handler.from_ns);
        // The softirqs of an interrupt run at its end, before the thread goes on.
        let behind = spans[spans.partition_point(|span| span.from_ns < handler.until_ns)..]
            .iter()
            .take_while(|span| span.what == What::Softirq && span.from_ns < handler.until_ns + REACH_NS / 10);
        let taken: u64 = behind.map(|span| span.until_ns - span.from_ns).sum();
        if taken > 0 {
            softirqs.push(taken);
        }
    }
    (handlers, softirqs)
}

/// A handler from its entry to its exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Handled {
    from_ns: u64,
    until_ns: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Interrupt(Interrupt),
    Softirq,
}

/// All handlers of `cpu` in the order of their entries; one that lacks an end is left out.
fn spans(events: &[KernelEvent], cpu: u32) -> Vec<Handled> {
    let mut open: Vec<(u64, What)> = Vec::new();
    let mut spans = Vec::new();
    for event in events.iter().filter(|event| event.cpu == cpu) {
        let (what, enters) = match event.kind {
            KernelEventKind::IrqEntry(interrupt) => (What::Interrupt(interrupt), true),
            KernelEventKind::IrqExit(interrupt) => (What::Interrupt(interrupt), false),
            KernelEventKind::SoftirqEntry(_) => (What::Softirq, true),
            KernelEventKind::SoftirqExit(_) => (What::Softirq, false),
            _ => continue,
        };
        if enters {
            open.push((event.time_ns, what));
        } else if let Some(at) = open.iter().rposition(|(_, entered)| *entered == what) {
            let (from_ns, what) = open[at];
            open.truncate(at);
            spans.push(Handled { from_ns, until_ns: event.time_ns, what });
        }
    }
    spans.sort_by_key(|span| span.from_ns);
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time_ns: u64, kind: KernelEventKind) -> KernelEvent {
        KernelEvent { time_ns, cpu: 1, kind }
    }

    #[test]
    fn a_handler_and_its_softirqs_belong_to_the_request() {
        use KernelEventKind::{IrqEntry, IrqExit, SoftirqEntry, SoftirqExit};
        let disk = Interrupt::Device(36);
        let timer = Interrupt::Vector(236, VectorKind::LocalTimer);
        let events = [
            event(1_000, IrqEntry(timer)),
            event(3_000, IrqExit(timer)),
            event(10_000, IrqEntry(disk)),
            // Interrupted itself.
            event(10_500, IrqEntry(timer)),
            event(11_000, IrqExit(timer)),
            event(12_000, IrqExit(disk)),
            event(12_100, SoftirqEntry(4)),
            event(12_900, SoftirqExit(4)),
            event(90_000, SoftirqEntry(1)),
            event(95_000, SoftirqExit(1)),
            // Its exit is lost.
            event(99_000, IrqEntry(disk)),
        ];
        let landing =
            Landing { label: "36".to_owned(), name: "disk".to_owned(), cpu: 1, asker: 0, follows: false };
        let request = |asked_ns, answered_ns| Request { asked_ns, answered_ns };
        let found = handlers(&events, &landing, &[request(500, 11_500), request(50_000, 120_000)]);
        assert_eq!(found, (vec![2_000], vec![800]));
        let elsewhere = Landing { cpu: 0, ..landing.clone() };
        assert_eq!(handlers(&events, &elsewhere, &[request(500, 11_500)]), (vec![], vec![]));
        let call = Landing { label: "CAL".to_owned(), ..landing };
        assert_eq!(handlers(&events, &call, &[request(500, 11_500)]), (vec![], vec![]));
    }
}
