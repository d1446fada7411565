//! What it costs to record an event: a record of 32 bytes (time-stamp counter, event, processor, two arguments).
//!
//! `cargo bench --manifest-path bench/Cargo.toml --bench emit`
//!
//! A round is a burst that fits into the buffer, timed by the thread's processor time; then the buffer is drained, not
//! timed, unless the line says that the drain runs beside. Rounds of all lines alternate, so that a slower minute of the
//! machine touches all of them. Each line states the events lost: a cost counts at zero loss only.

use horolog_probe::session::{Options, Reader, Session};
use horolog_probe::{Event, clock, emit, switching, trigger};
use horolog_sys::affinity::{self, CpuSet};
use horolog_sys::clock::{monotonic_ns, thread_cpu_ns};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};

static EVENT: Event = Event::new(c"bench/event", c"uu");

/// Emits numbers.
#[inline(always)]
fn emit_words<const COUNT: usize>(event: &Event, words: [u64; COUNT]) {
    // SAFETY: the event has no argument that is a text.
    unsafe { horolog_probe::emit_words(event, words) }
}

const BURST: u64 = 4000;
const ROUNDS: usize = 400;

/// Costs of the rounds of one line, in ns an event.
struct Line {
    name: &'static str,
    rounds: Vec<f64>,
}

impl Line {
    fn new(name: &'static str) -> Line {
        Line { name, rounds: Vec::new() }
    }

    fn report(&mut self, note: &str) -> f64 {
        self.rounds.sort_by(f64::total_cmp);
        let (least, median) = (self.rounds[0], self.rounds[self.rounds.len() / 2]);
        println!("{:<52} {least:>7.2} ns by the minimum {median:>7.2} by the median  {note}", self.name);
        median
    }
}

fn timed(event: impl FnMut(u64)) -> f64 {
    timed_of(BURST, event)
}

fn timed_of(burst: u64, mut event: impl FnMut(u64)) -> f64 {
    let before = thread_cpu_ns();
    for i in 0..burst {
        event(black_box(i));
    }
    (thread_cpu_ns() - before) as f64 / burst as f64
}

/// The processors that this program had when it began.
fn cpus() -> &'static [u32] {
    static CPUS: OnceLock<CpuSet> = OnceLock::new();
    CPUS.get_or_init(|| affinity::allowed_cpus().expect("readable")).as_slice()
}

fn pin(cpu: usize) {
    let cpu = cpus()[cpu % cpus().len()];
    affinity::set_affinity(0, &CpuSet::new([cpu])).expect("a processor of ours");
}

fn lost(reader: &Reader) -> String {
    format!("lost {}", reader.losses().total())
}

fn one_writer() {
    let options = Options::default();
    let mut lines = [
        Line::new("empty loop"),
        Line::new("rdtsc alone"),
        Line::new("per-thread ring, emit_words in line"),
        Line::new("per-thread ring, emit as C calls it"),
    ];
    let mut shared = Line::new("multi-writer buffer, 1 writer");
    {
        let session = Session::create(&options).expect("a session");
        let mut reader = session.reader().expect("a reader");
        for _ in 0..ROUNDS {
            lines[0].rounds.push(timed(|i| {
                black_box(i);
            }));
            lines[1].rounds.push(timed(|_| {
                black_box(clock::tsc());
            }));
            lines[2].rounds.push(timed(|i| emit_words(&EVENT, [i, 7])));
            reader.drain(|_| {});
            lines[3].rounds.push(timed(|i| {
                let words = [i, 7];
                // SAFETY: two words for an event of two arguments.
                unsafe { emit(black_box(&EVENT), words.as_ptr()) };
            }));
            reader.drain(|_| {});
        }
        let note = format!("ring of {} KiB, {}", options.ring_bytes >> 10, lost(&reader));
        let base = lines.each_mut().map(|line| line.report(&note));
        println!(
            "  per-thread above rdtsc: {:.2} in line, {:.2} called (medians)",
            base[2] - base[1],
            base[3] - base[1]
        );
    }
    let session = Session::create(&Options { rings: 0, ..options }).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let mut rdtsc = Line::new("rdtsc alone, again");
    for _ in 0..ROUNDS {
        rdtsc.rounds.push(timed(|_| {
            black_box(clock::tsc());
        }));
        shared.rounds.push(timed(|i| emit_words(&EVENT, [i, 7])));
        reader.drain(|_| {});
    }
    let base = rdtsc.report("");
    let cost = shared.report(&format!("{} slots, {}", options.small_slots, lost(&reader)));
    println!("  multi-writer above rdtsc: {:.2} (medians)", cost - base);
}

/// `writers` threads emit bursts that begin at the same moment, spread over the processors. The cost is processor time
/// an event, of all threads together: what other programs take of the machine meanwhile does not count.
fn many_writers(name: &'static str, writers: usize, options: &Options) -> f64 {
    const TOGETHER: u64 = 64_000;
    let session = Session::create(options).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let burst = TOGETHER / writers as u64;
    let (start, end) = (Barrier::new(writers + 1), Barrier::new(writers + 1));
    let mut line = Line::new(name);
    let (go, used) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let (start, end, go, used) = (&start, &end, &go, &used);
            scope.spawn(move || {
                pin(writer);
                for _ in 0..ROUNDS / 4 {
                    start.wait();
                    while monotonic_ns() < go.load(Ordering::Acquire) {}
                    let before = thread_cpu_ns();
                    for i in 0..burst {
                        emit_words(&EVENT, [black_box(i), 7]);
                    }
                    used.fetch_add(thread_cpu_ns() - before, Ordering::AcqRel);
                    end.wait();
                }
            });
        }
        for _ in 0..ROUNDS / 4 {
            go.store(monotonic_ns() + 500_000, Ordering::Release);
            start.wait();
            end.wait();
            line.rounds.push(used.swap(0, Ordering::AcqRel) as f64 / (burst * writers as u64) as f64);
            reader.drain(|_| {});
        }
    });
    line.report(&format!("{} slots, {}", options.small_slots, lost(&reader)))
}

/// One writer on one processor, the drain on another, without a pause.
fn with_drain() {
    let options = Options { ring_bytes: 64 << 20, rings: 2, ..Options::default() };
    let session = Session::create(&options).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let ends = AtomicBool::new(false);
    let mut line = Line::new("per-thread ring, the drain running beside");
    let count = std::thread::scope(|scope| {
        let drain = scope.spawn(|| {
            pin(1);
            let mut count = 0;
            while !ends.load(Ordering::Acquire) {
                count += reader.drain(|record| {
                    black_box(record);
                });
            }
            count + reader.drain(|_| {})
        });
        for _ in 0..ROUNDS {
            line.rounds.push(timed(|i| emit_words(&EVENT, [i, 7])));
        }
        ends.store(true, Ordering::Release);
        drain.join().expect("the drain ends")
    });
    line.report(&format!("ring of {} KiB, {} read, {}", options.ring_bytes >> 10, count, lost(&reader)));
}

#[inline(never)]
fn open(path: &str, size: u64) {
    trigger!("bench/open", path, size["B"] = size);
}

/// An event with a text, through its site; and one of two numbers through a site, for comparison.
fn texts() {
    #[inline(never)]
    fn numbers(first: u64, second: u64) {
        trigger!("bench/numbers", first, second);
    }
    let options = Options::default();
    let session = Session::create(&options).expect("a session");
    let mut reader = session.reader().expect("a reader");
    switching::apply("bench/*", true).expect("switchable");
    let mut lines = [
        Line::new("site of two numbers"),
        Line::new("site of a text of 16 bytes and a number"),
        Line::new("site of a text of 256 bytes and a number"),
    ];
    let (short, long) = ("/etc/hostname.16", "x".repeat(256));
    // What fits into a ring at once.
    const SOME: u64 = 500;
    for _ in 0..ROUNDS {
        lines[0].rounds.push(timed_of(SOME, |i| numbers(i, 7)));
        reader.drain(|_| {});
        lines[1].rounds.push(timed_of(SOME, |i| open(black_box(short), i)));
        reader.drain(|_| {});
        lines[2].rounds.push(timed_of(SOME, |i| open(black_box(&long), i)));
        reader.drain(|_| {});
    }
    switching::apply("bench/*", false).expect("switchable");
    let note = lost(&reader);
    for line in &mut lines {
        line.report(&note);
    }
}

fn main() -> ExitCode {
    pin(0);
    one_writer();
    texts();
    with_drain();
    let options = Options { small_slots: 1 << 16, ring_bytes: 4 << 20, rings: 4, ..Options::default() };
    for (name, writers) in [
        ("multi-writer buffer, 1 writer", 1),
        ("multi-writer buffer, 2 writers", 2),
        ("multi-writer buffer, 4 writers", 4),
        ("multi-writer buffer, 8 writers", 8),
    ] {
        many_writers(name, writers, &Options { rings: 0, ..options });
    }
    let one = many_writers("per-thread rings, 1 thread", 1, &options);
    let two = many_writers("per-thread rings, 2 threads on 2 processors", 2, &options);
    println!("  two threads do {:.2} times the work of one in the same time (medians)", 2.0 * one / two);
    ExitCode::SUCCESS
}
