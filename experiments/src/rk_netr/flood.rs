//! What a reserve is worth beside others: a full queue, and a flood.

use super::point::{Application, PAUSE, SENDER, TIME};
use super::scene::{ABOVE, BELOW, BUFFER, PORT, Scene, failed, reserve};
use crate::fact::Agreement;
use crate::{ExperimentError, Fact, Series};
use horolog_netr::{QueueCounters, Receiver, Unreserved};
use horolog_reserve::network::ByteAmount;
use horolog_sys::Error;
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::network::FloodOptions;
use horolog_time::Span;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Packets of the reserved flow, one every 200 us: 5,000 a second for as long as the flood goes on.
const FLOW: u64 = 700;
const EVERY: Duration = Duration::from_micros(200);
/// The flood.
const FLOOD: FloodOptions = FloodOptions { rate: 200_000, duration: TIME };
/// How often.
const ROUNDS: u32 = 5;
/// The reserve's thread: below the receiver, above the flood's where that is below.
const RESERVED: Class = Class::Fifo(45);

/// Fact 10 for real: the threads that would empty the queues are kept from their processor meanwhile.
pub(super) fn full_queue(scene: &mut Scene) -> Result<Fact, ExperimentError> {
    let reserves = vec![reserve(PORT, 8, Class::Normal), reserve(PORT + 1, 40, Class::Normal)];
    let unreserved = Unreserved { cap: None, buffer: 16, class: Class::Normal };
    let receiver = scene.attach(reserves, unreserved)?;
    let [first, second] = [scene.lab.sender_socket(PORT), scene.lab.sender_socket(PORT + 1)]
        .map(|made| made.map_err(|e| failed(&e)));
    let (first, second) = (first?, second?);
    let cpus = scene.cpus;
    held(cpus.receive_cpu, || {
        set_affinity(0, &CpuSet::new([cpus.send_cpu])).map_err(|error| failed(&error))?;
        for _ in 0..100 {
            let _ = first.send(&[0; 80]);
        }
        for _ in 0..40 {
            let _ = second.send(&[0; 80]);
        }
        wait(&receiver, |all| all[0].arrived.packets >= 100 && all[1].arrived.packets >= 40)
    })?;
    wait(&receiver, |all| all[..2].iter().all(is_settled))?;
    let all = receiver.counters().map_err(|error| failed(&error))?;
    let drops = [0, 1].map(|at: usize| all[at].queue_full.unwrap_or_default());
    let statement = "packets that two queues of 8 and 40 drop of 100 and 40 that come at once, for real";
    let (published, ours) = ("92 and 0".to_owned(), format!("{} and {}", drops[0], drops[1]));
    let agreement = if drops == [92, 0] { Agreement::Agrees } else { Agreement::Disagrees };
    Ok(Fact { exact: true, ..Fact::new(10, statement, &published, ours, agreement) })
}

fn is_settled(queue: &QueueCounters) -> bool {
    let gone = queue.queue_full.unwrap_or_default()
        + queue.delivered.unwrap_or_default()
        + queue.lost.unwrap_or_default();
    queue.arrived.packets == queue.used_up.packets + gone
}

fn wait(receiver: &Receiver, is_so: impl Fn(&[QueueCounters]) -> bool) -> Result<(), ExperimentError> {
    let end = Instant::now() + Duration::from_secs(5);
    while !is_so(&receiver.counters().map_err(|error| failed(&error))?) {
        if Instant::now() >= end {
            return Err(ExperimentError::failed("packets that were sent have not come within 5 s"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Keeps normal threads from a processor while `body` goes on, for 400 ms at the most.
fn held(cpu: u32, body: impl FnOnce() -> Result<(), ExperimentError> + Send) -> Result<(), ExperimentError> {
    const WAITS: u8 = 0;
    const HOLDS: u8 = 1;
    const ENDS: u8 = 2;
    let state = AtomicU8::new(WAITS);
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let set = set_affinity(0, &CpuSet::new([cpu])).and_then(|()| set_class(0, Class::Fifo(50)));
            state.store(HOLDS, Ordering::Release);
            let end = Instant::now() + Duration::from_millis(400);
            while set.is_ok() && state.load(Ordering::Acquire) != ENDS && Instant::now() < end {
                std::hint::spin_loop();
            }
            set
        });
        while state.load(Ordering::Acquire) == WAITS {
            std::thread::sleep(Duration::from_millis(1));
        }
        // On a thread of its own, which is pinned.
        let done = scope.spawn(body).join();
        state.store(ENDS, Ordering::Release);
        let panicked = || ExperimentError::failed("a thread panicked");
        holder.join().map_err(|_| panicked())?.map_err(|error| failed(&error))?;
        done.map_err(|_| panicked())?
    })
}

/// What came of one setting.
struct Beside {
    sent: u64,
    received: u64,
    flood_sent: u64,
    flood: QueueCounters,
}

/// The reserved flow with the flood's queue below the receiver, above it, and above it with a cap.
pub(super) fn beside(scene: &mut Scene) -> Result<(Fact, Series), ExperimentError> {
    // A tenth of what comes: 10 ms of the flood are some 196 kB.
    let cap = ByteAmount::implicit(20_000, Span::from_ns(10_000_000));
    let settings = [(BELOW, None), (ABOVE, None), (ABOVE, Some(cap))];
    let mut all = Vec::new();
    for (class, cap) in settings {
        all.push(one(scene, Unreserved { cap, buffer: BUFFER, class })?);
    }
    let share = |one: &Beside| format!("{} of {}", one.received, one.sent);
    let [below, above, capped] = &all[..] else {
        return Err(ExperimentError::failed("three settings were measured"));
    };
    let lost = |one: &Beside| one.sent.saturating_sub(one.received);
    let statement = "received of a reserved flow of 5 kpps beside a flood, its queue below the receiver, above, above with a cap";
    let ours = format!("{}; {}; {}", share(below), share(above), share(capped));
    let published = "guaranteed beside others (no figure)";
    let agreement = if lost(below) > 0 {
        Agreement::Disagrees
    } else if lost(above) == 0 {
        Agreement::Undecided(
            "the flood did not fill the processor: nothing was lost above the receiver either".to_owned(),
        )
    } else {
        Agreement::Agrees
    };
    let fact = Fact {
        note: "agrees where nothing is lost below and something above".to_owned(),
        ..Fact::new(22, statement, published, ours, agreement)
    };
    let columns =
        ["setting", "flow sent", "flow received", "flood sent", "flood: queue full", "flood: beyond the cap"];
    let rows = all.iter().zip(1..).map(|(one, setting)| {
        let flood = [one.flood_sent, one.flood.queue_full.unwrap_or_default(), one.flood.used_up.packets];
        [setting, one.sent, one.received].into_iter().chain(flood).map(|value| value as f64).collect()
    });
    let series = Series {
        name: "a flow beside a flood (1: flood's queue below the receiver, 2: above, 3: above with a cap)"
            .to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    };
    Ok((fact, series))
}

fn one(scene: &mut Scene, unreserved: Unreserved) -> Result<Beside, ExperimentError> {
    let receiver = scene.demultiplex(RESERVED, unreserved)?;
    let open = |port| scene.lab.receiver_socket(port).map_err(|error| failed(&error));
    // The flood's packets end in a socket that is never read: an answer to each would slow the sender down.
    let (socket, _unread) = (open(PORT)?, open(PORT + 2)?);
    let (mut sent, mut flood_sent, mut received) = (0, 0, 0);
    for _ in 0..ROUNDS {
        let application = Application::new(&socket, scene.cpus.receive_cpu)?;
        application.while_it_receives(|| {
            let flood = scene.lab.flood_port(PORT + 2, 80, SENDER, FLOOD).map_err(|error| failed(&error))?;
            sent += send_flow(scene)?;
            while flood.is_running() {
                std::thread::sleep(Duration::from_millis(2));
            }
            flood_sent += flood.end();
            Ok(())
        })?;
        received += application.received();
        std::thread::sleep(PAUSE);
    }
    let all = receiver.counters().map_err(|error| failed(&error))?;
    let flood = all.last().cloned().unwrap_or_default();
    Ok(Beside { sent, received, flood_sent, flood })
}

/// Sends the reserved flow at its instants, before the flood; says how many packets the kernel took.
fn send_flow(scene: &Scene) -> Result<u64, ExperimentError> {
    let socket = scene.lab.sender_socket(PORT).map_err(|error| failed(&error))?;
    let cpu = scene.cpus.send_cpu;
    let send = move || -> Result<u64, Error> {
        set_affinity(0, &CpuSet::new([cpu]))?;
        set_class(0, Class::Fifo(2))?;
        let mut due = Instant::now();
        let mut sent = 0;
        for _ in 0..FLOW {
            due += EVERY;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            sent += u64::from(socket.send(&[0; 80]).is_ok());
        }
        Ok(sent)
    };
    let sent = std::thread::spawn(send).join().map_err(|_| ExperimentError::failed("the sender panicked"))?;
    sent.map_err(|error| failed(&error))
}
