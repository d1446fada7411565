//! Writing and reading trace records: nanoseconds and bytes a record, best of several rounds.
//!
//!     cargo bench --manifest-path bench/Cargo.toml --bench trace

use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Reader, Writer};
use horolog_trace::{Kind, Record, Sink};
use std::hint::black_box;
use std::io::{self, Write};

/// Takes everything and keeps nothing.
struct Nowhere;

impl Write for Nowhere {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(black_box(data).len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ten tasks with jitter in every number, as a simulator records them: four to five records a job.
fn records(jobs: u64) -> Vec<Record> {
    let mut records = Vec::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut time = 0;
    for job in 0..jobs {
        let task = (job % 10) as u32;
        let mut push = |kind: Kind, value: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            time += random % 300_000;
            let value = if kind == Kind::Release { time } else { value };
            records.push(Record {
                time: Instant::from_ns(time),
                kind,
                cpu: 0,
                task,
                job: job / 10,
                value,
                extra: 0,
            });
        };
        push(Kind::Release, 0);
        push(Kind::Start, 0);
        if job % 2 == 0 {
            push(Kind::Preempt, 0);
            push(Kind::Resume, 0);
        }
        push(Kind::Completion, 1_000_000 + job % 77_777);
    }
    records
}

/// The best of several rounds, in nanoseconds a record.
fn best(count: usize, mut round: impl FnMut()) -> f64 {
    (0..15)
        .map(|_| {
            let begin = std::time::Instant::now();
            round();
            begin.elapsed().as_nanos() as f64 / count as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn main() {
    let records = records(300_000);
    let tasks = (0..10).map(|task| format!("task {task}")).collect();
    let header = Header::simulated(String::new(), tasks, 1, Span::from_ns(1));
    let count = records.len();
    let encode = best(count, || {
        let mut writer = Writer::new(Nowhere, &header).expect("nothing fails");
        records.iter().for_each(|record| writer.record(*record));
        writer.finish(Instant::ZERO).expect("nothing fails");
    });
    let path = std::env::temp_dir().join(format!("horolog-bench-{}.hrt", std::process::id()));
    let disk = best(count, || {
        let mut writer = Writer::create(&path, &header).expect("a folder to write in");
        records.iter().for_each(|record| writer.record(*record));
        writer.finish(Instant::ZERO).expect("room on the disk");
    });
    let bytes = std::fs::read(&path).expect("what was written");
    std::fs::remove_file(&path).expect("what was written");
    let decode = best(count, || {
        let read =
            Reader::new(bytes.as_slice()).expect("a trace").map(|record| record.value & 1).sum::<u64>();
        black_box(read);
    });
    let back = Reader::new(bytes.as_slice()).expect("a trace");
    assert!(back.eq(records.iter().copied()), "what is measured must be right");
    println!("records        {count}");
    println!("bytes/record   {:.2}", bytes.len() as f64 / count as f64);
    println!("encode         {encode:.1} ns/record");
    println!("write to file  {disk:.1} ns/record");
    println!("decode         {decode:.1} ns/record");
}
