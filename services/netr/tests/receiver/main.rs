//! Reserves on a real device: the receiving end of a virtual pair in namespaces of its own.
//!
//! The test program starts itself again: as the guardian of the network, and as a run that is killed.
#![allow(clippy::unwrap_used)]

mod matching;
mod scene;

use horolog_netr::{LARGEST_BUFFER, Options, Reserve, Unreserved};
use horolog_reserve::network::{ByteAmount, WhenUsedUp};
use horolog_sys::fixed_priority::Class;
use horolog_time::Span;
use scene::{FRAME, Scene, attach, nothing_is_left, threads_of_queues};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A period that does not end within a test.
const LONG: Span = Span::from_ns(3_600_000_000_000);

fn amount(bytes: u64) -> ByteAmount {
    ByteAmount::implicit(bytes, LONG)
}

fn reserve(port: u16, bytes: u64, buffer: u32) -> Reserve {
    Reserve {
        flows: vec![format!("udp:{port}").parse().unwrap()],
        amount: amount(bytes),
        when_used_up: WhenUsedUp::Drop,
        buffer,
        class: Class::Normal,
    }
}

fn options(scene: &Scene, reserves: Vec<Reserve>) -> Options {
    Options {
        device: scene.lab.receiving_device().to_owned(),
        cpu: scene.receive_cpu,
        reserves,
        unreserved: Unreserved { cap: None, buffer: LARGEST_BUFFER, class: Class::Normal },
    }
}

#[test]
fn a_budget_takes_its_last_byte_and_not_one_more() {
    let Some(scene) = Scene::set() else { return };
    for (bytes, wanted) in [(10 * FRAME, 10), (10 * FRAME - 1, 9), (10 * FRAME + 1, 10)] {
        let reserves = vec![reserve(5_000, bytes, 64), reserve(5_001, 3 * FRAME, 64)];
        let receiver = attach(&scene, &options(&scene, reserves)).unwrap();
        scene.send(5_000, 12);
        scene.send(5_001, 3);
        scene.send(5_002, 4);
        let counters = scene.wait_for(&receiver, [12, 3, 4]);
        assert_eq!((counters[0].arrived.packets, counters[0].arrived.bytes), (12, 12 * FRAME));
        assert_eq!(counters[0].dropped_by_budget(), 12 - wanted, "{bytes} B");
        assert_eq!(counters[0].used_up.bytes, (12 - wanted) * FRAME);
        let delivered: Vec<_> = counters.iter().map(|one| one.delivered.unwrap()).collect();
        assert_eq!(delivered, [wanted, 3, 4]);
        assert!(counters.iter().all(|one| one.queue_full == Some(0) && one.lost == Some(0)));
        assert_eq!(scene.received(5_000), wanted, "what was delivered is in the socket");
    }
    scene.clear();
}

#[test]
fn what_is_beyond_a_soft_budget_goes_among_the_unreserved_and_their_cap_holds() {
    let Some(scene) = Scene::set() else { return };
    let soft = Reserve { when_used_up: WhenUsedUp::Unreserved, ..reserve(5_000, 2 * FRAME, 64) };
    let mut options = options(&scene, vec![soft]);
    options.unreserved.cap = Some(amount(5 * FRAME));
    let receiver = attach(&scene, &options).unwrap();
    scene.send(5_000, 5);
    scene.send(5_002, 4);
    let counters = scene.wait_for(&receiver, [5, 7]);
    assert_eq!(
        (counters[0].used_up.packets, counters[0].passed_on, counters[0].dropped_by_budget()),
        (3, 3, 0)
    );
    assert_eq!((counters[1].dropped_by_budget(), counters[1].delivered), (2, Some(5)));
    scene.clear();
}

#[test]
fn a_budget_comes_back_with_its_period() {
    let Some(scene) = Scene::set() else { return };
    let period = Span::from_ns(20_000_000);
    let one = Reserve { amount: ByteAmount::implicit(2 * FRAME, period), ..reserve(5_000, 1, 64) };
    let receiver = attach(&scene, &options(&scene, vec![one])).unwrap();
    let begin = std::time::Instant::now();
    for _ in 0..5 {
        scene.send(5_000, 6);
        std::thread::sleep(Duration::from_nanos(period.as_ns()));
    }
    // No two of the five bursts come in one period, where the machine does not stop the sender meanwhile.
    let periods = begin.elapsed().as_nanos() as u64 / period.as_ns() + 2;
    let counters = scene.wait_for(&receiver, [30, 0]);
    let delivered = counters[0].delivered.unwrap();
    assert!((10..=2 * periods).contains(&delivered), "{delivered} in {periods} periods");
    scene.clear();
}

/// Fact 10: the thread that would empty the queues is kept from its processor meanwhile.
#[test]
fn a_full_queue_drops_its_own_packets_and_no_others() {
    let Some(scene) = Scene::set() else { return };
    let mut options = options(&scene, vec![reserve(5_000, 1_000_000, 8), reserve(5_001, 1_000_000, 40)]);
    options.unreserved.buffer = 16;
    let receiver = attach(&scene, &options).unwrap();
    let held = scene.hold_receive_cpu();
    scene.send(5_000, 100);
    scene.send(5_001, 40);
    scene.send(5_002, 17);
    scene.wait_for_arrivals(&receiver, [100, 40, 17]);
    held.end();
    let counters = scene.wait_for(&receiver, [100, 40, 17]);
    let seen: Vec<_> = counters.iter().map(|one| (one.queue_full.unwrap(), one.delivered.unwrap())).collect();
    assert_eq!(seen, [(92, 8), (0, 40), (1, 16)]);
    scene.clear();
}

#[test]
fn protocol_threads_have_their_classes_and_all_ends_with_a_killed_process() {
    let Some(scene) = Scene::set() else { return };
    let mut options = options(&scene, vec![reserve(5_000, 1_000, 8)]);
    options.reserves[0].class = Class::Fifo(7);
    let receiver = attach(&scene, &options).unwrap();
    assert_eq!(receiver.classes().unwrap(), [Class::Fifo(7), Class::Normal]);
    receiver.set_class(1, Class::Fifo(3)).unwrap();
    assert_eq!(receiver.classes().unwrap()[1], Class::Fifo(3));
    assert!(receiver.set_class(2, Class::Normal).unwrap_err().is_bad_input());
    let busy = attach(&scene, &options).unwrap_err();
    assert!(busy.is_busy() && busy.to_string().contains("end that one first"), "{busy}");
    let threads = receiver.threads();
    drop(receiver);
    nothing_is_left(&threads);
    // A process in the same namespace, killed while it has everything.
    let mut run = Command::new("nsenter")
        .arg(format!("--net={}", scene.lab.receiver_namespace().display()))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "role_run", "--ignored", "--nocapture"])
        .env(scene::ROLE, format!("{},{}", options.device, options.cpu))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let threads = threads_of_queues(&mut run);
    run.kill().unwrap();
    run.wait().unwrap();
    nothing_is_left(&threads);
    attach(&scene, &options).unwrap();
    scene.clear();
}

#[test]
#[ignore = "a role that the other tests start"]
fn role_run() {
    scene::run();
}

#[test]
#[ignore = "a role that the other tests start"]
fn role_guardian() {
    scene::guard();
}
