//! What a spin lock across processors costs: an uncontended lock and unlock, and how long it takes until a job that waits has the lock.
//!
//! `cargo bench --manifest-path bench/Cargo.toml --bench spin_lock`

use horolog_exec::{Executive, RecordLevel, RunOptions};
use horolog_model::{System, file};
use horolog_sys::clock;
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::{Mutex, mpsc};

const ROUNDS: u64 = 20_000;

fn read(text: &str) -> System {
    file::read(text, "spin.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

fn head(cpus: (u32, u32), spin: &str) -> String {
    format!(
        "[system]\nname = \"spin\"\n[platform]\ncpus = [{}, {}]\n[[resource]]\nname = \"map\"\nprotocol = \"fslm\"\n\
         [[spin_priority]]\ncpu = {}\npriority = \"{spin}\"\n",
        cpus.0, cpus.1, cpus.1
    )
}

fn task(name: &str, cpu: u32, priority: u32, times: [u32; 3], section: Option<[u32; 2]>) -> String {
    let [period, offset, wcet] = times;
    let mut text = format!(
        "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"{period} us\"\noffset = \"{offset} us\"\n\
         wcet = \"{wcet} us\"\n"
    );
    if let Some([from, length]) = section {
        text += &format!(
            "[[task.section]]\nresource = \"map\"\nfrom = \"{from} us\"\nlength = \"{length} us\"\n"
        );
    }
    text
}

/// Thread time of a lock and an unlock that nobody else wants, ns: with and without records, and of a mutex of the standard library.
fn uncontended(cpus: (u32, u32)) -> Result<(), horolog_exec::ExecError> {
    let text = head(cpus, "highest")
        + &task("other", cpus.0, 5, [10_000_000, 9_000_000, 10], Some([0, 1]))
        + &task("loop", cpus.1, 5, [100_000, 0, 90_000], Some([0, 1]));
    for (name, level) in
        [("with its two records", RecordLevel::All), ("without records", RecordLevel::Nothing)]
    {
        let mut options = RunOptions::for_span(Span::from_ns(2_000_000_000));
        options.record = level;
        let (send, receive) = mpsc::channel();
        Executive::new(read(&text))
            .options(options)
            .body("other", |_| ())
            .body("loop", move |job| {
                let timed = |round: &mut dyn FnMut()| {
                    let before = clock::thread_cpu_ns();
                    (0..ROUNDS).for_each(|_| round());
                    clock::thread_cpu_ns() - before
                };
                let mut counter = 0_u64;
                let locked = timed(&mut || {
                    black_box(job.lock("map"));
                    counter = black_box(counter + 1);
                    black_box(job.unlock("map"));
                });
                let mutex = Mutex::new(0_u64);
                let plain = timed(&mut || {
                    *mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = black_box(counter);
                });
                let _ = send.send((locked, plain));
            })
            .run()?;
        let all: Vec<(u64, u64)> = receive.iter().collect();
        let least = |of: fn(&(u64, u64)) -> u64| {
            all.iter().map(of).min().map_or(f64::NAN, |ns| ns as f64 / ROUNDS as f64)
        };
        println!(
            "uncontended lock and unlock {name}: {:.1} ns; a mutex of the standard library {:.1} ns (minimum of {} jobs)",
            least(|pair| pair.0),
            least(|pair| pair.1),
            all.len()
        );
    }
    Ok(())
}

/// From an unlock on one processor to the lock on the other one, and from that job's unlock until whoever it has preempted goes on.
fn granted(cpus: (u32, u32), is_preempted: bool) -> Result<(), horolog_exec::ExecError> {
    let mut text = head(cpus, "ceiling")
        + &task("holder", cpus.0, 5, [10_000, 0, 4_000], Some([0, 3_000]))
        + &task("waiter", cpus.1, 3, [10_000, 1_000, 2_000], Some([0, 500]));
    if is_preempted {
        text += &task("urgent", cpus.1, 9, [10_000, 1_500, 4_000], None);
    }
    let system = read(&text);
    let result =
        Executive::new(system.clone()).options(RunOptions::for_span(Span::from_ns(10_000_000_000))).run()?;
    let of = |name: &str| system.find_task(name).map_or(u32::MAX, |task| task.0);
    let (holder, waiter, urgent) = (of("holder"), of("waiter"), of("urgent"));
    let mut records: Vec<Record> = result.records;
    records.sort_by_key(|record| record.time);
    let (mut grants, mut resumes) = (Vec::new(), Vec::new());
    let (mut waits, mut unlocked, mut left): (bool, Option<u64>, Option<u64>) = (false, None, None);
    for record in &records {
        let at = record.time.as_ns();
        match record.kind {
            Kind::Spin => waits = true,
            Kind::Unlock if record.task == holder && waits => unlocked = Some(at),
            Kind::Lock if record.task == waiter => {
                grants.extend(unlocked.take().map(|from| at - from));
                waits = false;
            }
            Kind::Unlock if record.task == waiter => left = Some(at),
            Kind::Resume if record.task == urgent => resumes.extend(left.take().map(|from| at - from)),
            _ => {}
        }
    }
    let who = if is_preempted { "who is preempted while it waits" } else { "who spins" };
    print_times(&format!("grant to a job {who}"), &mut grants);
    if is_preempted {
        print_times("release that gives the processor back to who was preempted", &mut resumes);
    }
    Ok(())
}

fn print_times(what: &str, times: &mut [u64]) {
    times.sort_unstable();
    let at = |permille: usize| times.get(times.len() * permille / 1_000).copied().unwrap_or(0) as f64 / 1e3;
    println!("{what}: median {:.2} us, 99 % {:.2} us of {}", at(500), at(990), times.len());
}

fn main() -> ExitCode {
    let Ok(allowed) = horolog_sys::affinity::allowed_cpus() else { return ExitCode::FAILURE };
    let cpus = (allowed.as_slice()[0], *allowed.as_slice().last().unwrap_or(&0));
    if cpus.0 == cpus.1 {
        println!("SKIPPED: one processor alone");
        return ExitCode::from(3);
    }
    let done = uncontended(cpus).and_then(|()| granted(cpus, false)).and_then(|()| granted(cpus, true));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("SKIPPED: {error}");
            ExitCode::from(3)
        }
    }
}
