//! A sender, a receiver and a wire, guarded; and the roles of this program.

use crate::{amount, reserve};
use horolog_netr::{Options, QueueCounters, Receiver, Unreserved};
use horolog_sys::Error;
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::fixed_priority::{Class, may_use_fifo, set_class};
use horolog_sys::guardian::{Guardian, GuardianOptions, serve};
use horolog_sys::network::{Lab, LabOptions};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Tells the program its role.
pub(crate) const ROLE: &str = "HOROLOG_TEST_NETR";
/// Bytes that are sent, and those of their frame: headers of Ethernet, IPv4 and UDP before them.
const PAYLOAD: usize = 80;
pub(crate) const FRAME: u64 = 14 + 20 + 8 + PAYLOAD as u64;
/// Ports that have a socket at the receiver.
const PORTS: [u16; 3] = [5_000, 5_001, 5_002];

/// One at a time: a test holds a processor.
static ONE: Mutex<()> = Mutex::new(());

pub(crate) struct Scene {
    pub(crate) lab: Lab,
    pub(crate) receive_cpu: u32,
    guardian: Guardian,
    sockets: BTreeMap<u16, UdpSocket>,
    _folder: tempfile::TempDir,
    _one: MutexGuard<'static, ()>,
}

/// `None`, and the reason, where this machine does not allow it; any other error is a fault.
pub(crate) fn unless_refused<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Scene {
    /// Sets it up; `None` and the reason where this machine does not allow it.
    pub(crate) fn set() -> Option<Scene> {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let cpus = online_cpus().unwrap();
        let (send_cpu, receive_cpu) = (cpus[0], *cpus.last().unwrap());
        if send_cpu == receive_cpu {
            println!("SKIPPED: needs two CPUs");
            return None;
        }
        unless_refused(may_use_fifo(50).and_then(|()| horolog_netr::check(receive_cpu)))?;
        let folder = tempfile::tempdir().unwrap();
        let mut guardian = Guardian::start(&guardian_options(folder.path())).unwrap();
        let lab = Lab::build(&mut guardian, LabOptions { receive_cpu, send_cpu }, &mut |_| {});
        let lab = unless_refused(lab)?;
        lab.offload_checksums(false).unwrap();
        let sockets = PORTS.map(|port| (port, lab.receiver_socket(port).unwrap())).into();
        set_affinity(0, &CpuSet::new([send_cpu])).unwrap();
        Some(Scene { lab, receive_cpu, guardian, sockets, _folder: folder, _one: one })
    }

    /// Sends so many packets of [`FRAME`] bytes to a port.
    pub(crate) fn send(&self, port: u16, packets: u32) {
        let socket = self.lab.sender_socket(port).unwrap();
        for _ in 0..packets {
            // A port without a socket would answer; the next send may tell of that.
            let _ = socket.send(&[0; PAYLOAD]);
        }
    }

    /// How many packets the socket of a port has got.
    pub(crate) fn received(&self, port: u16) -> u64 {
        let mut buffer = [0; PAYLOAD];
        let got = std::iter::from_fn(|| self.sockets[&port].recv(&mut buffer).ok());
        got.inspect(|bytes| assert_eq!(*bytes, PAYLOAD)).count() as u64
    }

    /// Waits until so many packets have come for each queue at the least, less what devices send by themselves.
    pub(crate) fn wait_for_arrivals<const N: usize>(&self, receiver: &Receiver, packets: [u64; N]) {
        wait(|| {
            let counters = receiver.counters().unwrap();
            counters.iter().zip(packets).all(|(one, wanted)| one.arrived.packets >= wanted)
        });
    }

    /// The same, and until each packet is accounted for.
    pub(crate) fn wait_for<const N: usize>(
        &self,
        receiver: &Receiver,
        packets: [u64; N],
    ) -> Vec<QueueCounters> {
        self.wait_for_arrivals(receiver, packets);
        let mut last = Vec::new();
        wait(|| {
            last = receiver.counters().unwrap();
            last.iter().all(|one| one.arrived.packets == fates(one))
        });
        let arrived: Vec<_> = last.iter().map(|one| one.arrived.packets).collect();
        assert_eq!(arrived, packets, "the network carries nothing else");
        last
    }

    /// Keeps normal threads from the receiving CPU.
    pub(crate) fn hold_receive_cpu(&self) -> Held {
        let (stop, held) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (asked, holds, cpu) = (Arc::clone(&stop), Arc::clone(&held), self.receive_cpu);
        let thread = std::thread::spawn(move || {
            set_affinity(0, &CpuSet::new([cpu])).unwrap();
            set_class(0, Class::Fifo(50)).unwrap();
            holds.store(true, Ordering::Release);
            // Bounded, whatever becomes of the test; and before the kernel's server for normal threads begins.
            let end = Instant::now() + Duration::from_millis(400);
            while !asked.load(Ordering::Acquire) && Instant::now() < end {
                std::hint::spin_loop();
            }
        });
        wait(|| held.load(Ordering::Acquire));
        Held { stop, thread }
    }

    /// Puts the machine back.
    pub(crate) fn clear(self) {
        let restored = self.guardian.finish().unwrap();
        assert!(restored.failures.is_empty(), "{restored}");
    }
}

/// What became of packets, by all ways that there are.
fn fates(one: &QueueCounters) -> u64 {
    one.used_up.packets + one.queue_full.unwrap() + one.delivered.unwrap() + one.lost.unwrap()
}

/// A processor that is kept busy.
pub(crate) struct Held {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Held {
    pub(crate) fn end(self) {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap();
    }
}

fn wait(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "it does not come");
        sleep(Duration::from_millis(1));
    }
}

pub(crate) fn attach(scene: &Scene, options: &Options) -> Result<Receiver, Error> {
    scene.lab.at_receiver(|| Receiver::attach(options))
}

/// None of these threads lives.
pub(crate) fn nothing_is_left(threads: &[u32]) {
    assert!(!threads.is_empty());
    wait(|| {
        let is_queue = |id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|comm| comm.starts_with("cpumap/"))
        };
        !threads.iter().any(is_queue)
    });
}

/// The threads that a run tells of.
pub(crate) fn threads_of_queues(run: &mut Child) -> Vec<u32> {
    let lines = BufReader::new(run.stdout.take().unwrap()).lines();
    let line = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("threads:").map(|(_, ids)| ids.to_owned()));
    line.expect("the run tells its threads").split(',').map(|id| id.trim().parse().unwrap()).collect()
}

/// The run: sets everything up, tells its threads and waits to be killed.
pub(crate) fn run() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let Some((device, cpu)) = role.split_once(',') else { return };
    let unreserved = Unreserved { cap: Some(amount(1)), buffer: 8, class: Class::Fifo(2) };
    let options = Options {
        device: device.to_owned(),
        cpu: cpu.parse().unwrap(),
        reserves: vec![reserve(9, 9, 9)],
        unreserved,
    };
    let receiver = Receiver::attach(&options).unwrap();
    let threads: Vec<String> = receiver.threads().iter().map(u32::to_string).collect();
    println!("threads:{}", threads.join(","));
    sleep(Duration::from_secs(60));
    drop(receiver);
}

pub(crate) fn guard() {
    if std::env::var_os(ROLE).is_some() {
        std::process::exit(serve());
    }
}

fn guardian_options(directory: &Path) -> GuardianOptions {
    let program = std::env::current_exe().unwrap().into_os_string();
    let mut arguments = vec![format!("{ROLE}=guardian").into(), program];
    arguments.extend(["--exact", "role_guardian", "--ignored", "--nocapture"].map(Into::into));
    GuardianOptions {
        program: PathBuf::from("/usr/bin/env"),
        arguments,
        directory: Some(directory.to_owned()),
        ..GuardianOptions::default()
    }
}
