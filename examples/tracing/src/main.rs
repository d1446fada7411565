//! A bounded queue with triggers, in Rust: the same program as `queue.c`. Run plain, its triggers cost one jump each; with
//! `HOROLOG_TRACE_ENABLE='queue/*'` in the environment they run.

use horolog_probe::{Event, counter, span, trigger, trigger_callback};
use std::sync::atomic::{AtomicU64, Ordering};

const ROOM: usize = 8;

static CHECKED: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// Runs only while `queue/bounded` is enabled: an invariant that is checked in production when it is needed.
fn is_bounded(event: &Event, words: &[u64]) {
    CHECKED.fetch_add(1, Ordering::Relaxed);
    LONGEST.fetch_max(words[0], Ordering::Relaxed);
    assert!(words[0] <= ROOM as u64, "{:?}: {} items", event.name(), words[0]);
}

struct Queue {
    name: &'static str,
    items: Vec<i32>,
}

impl Queue {
    fn push(&mut self, item: i32) -> bool {
        if self.items.len() == ROOM {
            trigger!("queue/full", self.name, item);
            return false;
        }
        self.items.push(item);
        trigger!("queue/push", queue = &raw const *self, item, length["items"] = self.items.len());
        counter!("queue/length", "items", self.items.len());
        trigger_callback!("queue/bounded", is_bounded, self.items.len());
        true
    }

    fn pop(&mut self) -> Option<i32> {
        trigger!("queue/pop", &raw const *self, self.items.len());
        self.items.pop()
    }
}

fn main() {
    if let Err(error) = horolog_probe::start() {
        eprintln!("not traced: {error}");
    }
    let mut queue = Queue { name: "orders", items: Vec::new() };
    let (mut pushed, mut refused) = (0, 0);
    for item in 0..1000 {
        while !queue.push(item) {
            refused += 1;
            let _span = span!("queue/drain", flow = item);
            while queue.pop().is_some() {}
        }
        pushed += 1;
    }
    println!(
        "pushed {pushed}, refused {refused}, checked {}, longest {}",
        CHECKED.load(Ordering::Relaxed),
        LONGEST.load(Ordering::Relaxed)
    );
}
