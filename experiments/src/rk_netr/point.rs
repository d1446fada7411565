//! One offered rate: what is sent, what the application receives, and where the rest is lost.

use super::scene::{PORT, RECEIVER, Scene, failed};
use crate::ExperimentError;
use horolog_netr::Receiver;
use horolog_sys::Error;
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock::monotonic_ns;
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::network::{FloodOptions, socket_drops};
use horolog_time::Span;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of a datagram.
const PAYLOAD: usize = 80;
/// How long is sent at a time: by a real-time thread, for which others of its CPU wait.
pub(super) const TIME: Span = Span::from_ns(150_000_000);
/// And how long they have it between two times.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// The sender.
pub(super) const SENDER: Class = Class::Fifo(1);
/// What the application does with a packet.
const WORK_NS: u64 = 5_000;

/// Figure 7's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Configuration {
    /// (i) Softirqs, above all threads.
    Softirq,
    /// (ii) A protocol thread below the receiver.
    Below,
    /// (iii) And above.
    Above,
}

impl Configuration {
    pub(super) const ALL: [Configuration; 3] =
        [Configuration::Softirq, Configuration::Below, Configuration::Above];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Configuration::Softirq => "softirq",
            Configuration::Below => "protocol thread below the receiver",
            Configuration::Above => "protocol thread above the receiver",
        }
    }
}

/// What came of one rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Point {
    pub(super) sent: u64,
    pub(super) elapsed_ns: u64,
    pub(super) received: u64,
    pub(super) socket_drops: u64,
    /// Of full queues, as the kernel counts them; none without queues.
    pub(super) queue_drops: Option<u64>,
}

impl Point {
    fn kpps(&self, packets: u64) -> f64 {
        packets as f64 * 1e6 / self.elapsed_ns.max(1) as f64
    }

    pub(super) fn sent_kpps(&self) -> f64 {
        self.kpps(self.sent)
    }

    pub(super) fn received_kpps(&self) -> f64 {
        self.kpps(self.received)
    }

    /// Sent, and neither received nor dropped at the socket.
    pub(super) fn lost_before(&self) -> u64 {
        self.sent.saturating_sub(self.received + self.socket_drops)
    }
}

/// The round with the median of what was received a second.
pub(super) fn median(mut rounds: Vec<Point>) -> Point {
    rounds.sort_by(|one, other| one.received_kpps().total_cmp(&other.received_kpps()));
    rounds.get(rounds.len() / 2).copied().unwrap_or_default()
}

/// An application that waits for packets, works on each and throws it away.
pub(super) struct Application<'a> {
    socket: &'a UdpSocket,
    cpu: u32,
    stop: AtomicBool,
    received: AtomicU64,
}

impl<'a> Application<'a> {
    pub(super) fn new(socket: &'a UdpSocket, cpu: u32) -> Result<Application<'a>, ExperimentError> {
        let refused =
            |error: std::io::Error| ExperimentError::failed(format!("a socket of the receiver: {error}"));
        socket.set_nonblocking(false).map_err(refused)?;
        socket.set_read_timeout(Some(Duration::from_millis(20))).map_err(refused)?;
        Ok(Application { socket, cpu, stop: AtomicBool::new(false), received: AtomicU64::new(0) })
    }

    /// Receives while `body` goes on, and until nothing more comes.
    pub(super) fn while_it_receives<T>(
        &self,
        body: impl FnOnce() -> Result<T, ExperimentError>,
    ) -> Result<T, ExperimentError> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| self.receive());
            let done = body();
            self.stop.store(true, Ordering::Release);
            match thread.join() {
                Ok(received) => received.map_err(|error| failed(&error))?,
                Err(_) => return Err(ExperimentError::failed("the receiver panicked")),
            }
            done
        })
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    fn receive(&self) -> Result<(), Error> {
        set_affinity(0, &CpuSet::new([self.cpu]))?;
        set_class(0, Class::Fifo(RECEIVER))?;
        let mut buffer = [0; 2 * PAYLOAD];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(_) => {
                    self.received.fetch_add(1, Ordering::Relaxed);
                    let end = monotonic_ns() + WORK_NS;
                    while monotonic_ns() < end {
                        std::hint::spin_loop();
                    }
                }
                // Nothing has come for a while.
                Err(_) if self.stop.load(Ordering::Acquire) => return Ok(()),
                Err(_) => {}
            }
        }
    }
}

/// Offers this rate for a while.
pub(super) fn measure(
    scene: &Scene,
    receiver: Option<&Receiver>,
    rate: u32,
) -> Result<Point, ExperimentError> {
    let socket = scene.lab.receiver_socket(PORT).map_err(|error| failed(&error))?;
    let application = Application::new(&socket, scene.cpus.receive_cpu)?;
    let before = full_drops(receiver)?;
    let options = FloodOptions { rate, duration: TIME };
    let (sent, elapsed_ns) = application.while_it_receives(|| {
        let begin = monotonic_ns();
        let flood = scene.lab.flood_port(PORT, PAYLOAD, SENDER, options).map_err(|error| failed(&error))?;
        while flood.is_running() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let elapsed_ns = (monotonic_ns() - begin).min(TIME.as_ns());
        Ok((flood.end(), elapsed_ns))
    })?;
    std::thread::sleep(PAUSE);
    let queue_drops = match (before, full_drops(receiver)?) {
        (Some(before), Some(after)) => Some(after.saturating_sub(before)),
        _ => None,
    };
    let socket_drops = u64::from(socket_drops(&socket).map_err(|error| failed(&error))?);
    Ok(Point { sent, elapsed_ns, received: application.received(), socket_drops, queue_drops })
}

/// Packets that the reserve's queue has dropped so far.
fn full_drops(receiver: Option<&Receiver>) -> Result<Option<u64>, ExperimentError> {
    let Some(receiver) = receiver else { return Ok(None) };
    let counters = receiver.counters().map_err(|error| failed(&error))?;
    Ok(counters.first().and_then(|queue| queue.queue_full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_time_and_the_rest_was_lost_before() {
        let point =
            Point { sent: 1_000, elapsed_ns: 1_000_000, received: 700, socket_drops: 100, queue_drops: None };
        assert_eq!((point.sent_kpps(), point.received_kpps(), point.lost_before()), (1_000.0, 700.0, 200));
        let rounds = [3, 1, 2].map(|received| Point { received, elapsed_ns: 1, ..Point::default() });
        assert_eq!(median(rounds.to_vec()).received, 2);
    }
}
