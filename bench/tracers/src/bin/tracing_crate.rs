//! The `tracing` crate with a subscriber that stores two integers and no time: the least that it can do.

use std::sync::atomic::{AtomicUsize, Ordering};
use tracers::{argument, rounds};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A power of two.
const SLOTS: usize = 1 << 16;

static ENABLED: AtomicUsize = AtomicUsize::new(0);

/// Keeps the last events in memory; one thread only.
struct Ring {
    next: AtomicUsize,
    slots: Box<[[AtomicUsize; 2]]>,
}

struct Words<'a>(&'a [AtomicUsize; 2], usize);

impl Visit for Words<'_> {
    fn record_u64(&mut self, _: &Field, value: u64) {
        self.0[self.1 & 1].store(value as usize, Ordering::Relaxed);
        self.1 += 1;
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl Subscriber for Ring {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        ENABLED.load(Ordering::Relaxed) == 1
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let slot = self.next.load(Ordering::Relaxed);
        event.record(&mut Words(&self.slots[slot % SLOTS], 0));
        self.next.store(slot + 1, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn one(i: u64) {
    tracing::info!(a = i, b = i + 1);
}

fn main() {
    let (repeats, events) = (argument(1, 5) as u32, argument(2, 1_000_000));
    rounds("tracing-crate", "off", repeats, events, one);
    let ring = Ring { next: AtomicUsize::new(0), slots: (0..SLOTS).map(|_| Default::default()).collect() };
    ENABLED.store(1, Ordering::Relaxed);
    if tracing::subscriber::set_global_default(ring).is_ok() {
        rounds("tracing-crate", "on", repeats, events, one);
    }
    println!("tracing-crate lost 0");
    println!("tracing-crate ring overwriting, no clock, no CPU number: not comparable with the others' on");
}
