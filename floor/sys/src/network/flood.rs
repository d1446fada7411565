//! A flood of echo requests or datagrams, bounded in rate, time and address.

use super::lab::{End, RECEIVER};
use super::namespace::inside;
use crate::Error;
use crate::affinity::{CpuSet, set_affinity};
use crate::clock::monotonic_ns;
use crate::fixed_priority::{Class, set_class};
use horolog_time::Span;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The greatest rate, packets a second.
pub const MOST_PACKETS: u32 = 250_000;
/// The longest time.
pub const LONGEST: Span = Span::from_ns(600_000_000_000);

/// The longest time of a thread that others of its CPU wait for.
pub const LONGEST_REAL_TIME: Span = Span::from_ns(200_000_000);

/// How much is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloodOptions {
    /// Packets a second, at most [`MOST_PACKETS`].
    pub rate: u32,
    /// For how long, at most [`LONGEST`].
    pub duration: Span,
}

/// A flood that is going on. It ends by itself after its time, when this is dropped, and with the process.
#[derive(Debug)]
pub struct Flood {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    sent: AtomicU64,
    refused: AtomicU64,
}

/// An echo request: type, code, checksum, identifier, sequence, and 56 bytes of nothing, as `ping` sends them.
const PACKET: usize = 64;
/// `SOL_RAW` and `ICMP_FILTER` of linux/icmp.h.
const SOL_RAW: i32 = 255;
const ICMP_FILTER: i32 = 1;
/// A sender that is late sends at most so many packets at once to catch up; the rest is given up, and the count of what
/// was sent tells.
const CATCH_UP: u64 = 16;

impl Flood {
    /// Floods the receiver of this lab with echo requests: no other address can be given.
    pub(super) fn start(sender: &End, cpu: u32, options: FloodOptions) -> Result<Flood, Error> {
        Flood::with(cpu, Class::Normal, options, echo_request().to_vec(), || {
            inside(&sender.namespace, || open(&sender.device))
        })
    }

    /// The same with datagrams of so many bytes, by a socket that is connected to the receiver.
    pub(super) fn of_datagrams(
        socket: UdpSocket,
        cpu: u32,
        class: Class,
        options: FloodOptions,
        bytes: usize,
    ) -> Result<Flood, Error> {
        if class != Class::Normal && options.duration > LONGEST_REAL_TIME {
            let what = format!("flood of a real-time thread for {}", options.duration);
            let remedy = format!("flood for {LONGEST_REAL_TIME} at most");
            return Err(Error::bad_input(what, "others of its CPU wait meanwhile", remedy));
        }
        Flood::with(cpu, class, options, vec![0; bytes], || Ok(OwnedFd::from(socket)))
    }

    fn with(
        cpu: u32,
        class: Class,
        options: FloodOptions,
        packet: Vec<u8>,
        open: impl FnOnce() -> Result<OwnedFd, Error>,
    ) -> Result<Flood, Error> {
        let what = || format!("flood of {} packets a second for {}", options.rate, options.duration);
        if options.rate == 0 || options.rate > MOST_PACKETS {
            let remedy = format!("give 1 to {MOST_PACKETS} packets a second");
            return Err(Error::bad_input(what(), "its rate is out of bounds", remedy));
        }
        if options.duration > LONGEST {
            return Err(Error::bad_input(what(), "it is too long", format!("flood for {LONGEST} at most")));
        }
        let socket = open()?;
        let shared = Arc::new(Shared::default());
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("horolog-flood".to_owned()).spawn(move || {
                // Anywhere else it would still be bounded; so this is no reason to give up.
                let _ = set_affinity(0, &CpuSet::new([cpu]));
                // Before other ordinary threads of its CPU, so that the rate is the same whatever else the machine does;
                // before real-time ones only where that was asked for.
                if class != Class::Normal {
                    // Without the right it is slower, and the count of what was sent tells.
                    let _ = set_class(0, class);
                }
                // SAFETY: setpriority takes integers; 0 is the calling thread.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -15) };
                send(&socket, &packet, &shared, options);
            })
        };
        let thread = thread.map_err(|error| Error::io("clone(flood thread)", &error, "raise `ulimit -u`"))?;
        Ok(Flood { shared, thread: Some(thread) })
    }

    /// Packets that the kernel has taken so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Packets that it has refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Whether it still goes on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it and says how many packets were sent.
    #[must_use]
    pub fn end(mut self) -> u64 {
        self.stop();
        self.sent()
    }

    fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A raw socket of the calling thread's namespace that reaches the receiver through `device` and nobody else.
fn open(device: &str) -> Result<OwnedFd, Error> {
    const REMEDY: &str = "run as root (CAP_NET_RAW)";
    // SAFETY: socket takes integers.
    let socket =
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP) };
    if socket < 0 {
        return Err(Error::last_os("socket(SOCK_RAW, IPPROTO_ICMP)", REMEDY));
    }
    // SAFETY: the kernel just gave this descriptor to us, and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    set_option(&socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, device.as_bytes())?;
    // Replies are not for this socket: it filters every kind, so that none waits in its buffer.
    set_option(&socket, SOL_RAW, ICMP_FILTER, &u32::MAX.to_ne_bytes())?;
    // SAFETY: an all-zero sockaddr_in is valid.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_addr.s_addr = u32::from_ne_bytes(Ipv4Addr::octets(&RECEIVER));
    // SAFETY: `address` is a valid sockaddr_in of the stated size.
    let status = unsafe {
        libc::connect(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_in>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(socket) } else { Err(Error::last_os(format!("connect({RECEIVER})"), REMEDY)) }
}

fn set_option(socket: &OwnedFd, level: i32, option: i32, value: &[u8]) -> Result<(), Error> {
    // SAFETY: `value` is readable for its length.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(Error::last_os(format!("setsockopt({level}, {option})"), "")) }
}

/// Sends one packet after the other at the instants that the rate gives, without a sleep.
fn send(socket: &OwnedFd, packet: &[u8], shared: &Shared, options: FloodOptions) {
    let interval = 1_000_000_000 / u64::from(options.rate);
    let begin = monotonic_ns();
    let end = begin.saturating_add(options.duration.as_ns());
    let mut due = begin;
    while !shared.stop.load(Ordering::Relaxed) {
        let now = monotonic_ns();
        if now >= end {
            return;
        }
        if now < due {
            std::hint::spin_loop();
            continue;
        }
        due = (due + interval).max(now.saturating_sub(CATCH_UP * interval));
        // SAFETY: `packet` is readable for its length.
        let taken = unsafe {
            libc::send(socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), libc::MSG_DONTWAIT)
        };
        let counter = if taken == packet.len() as isize { &shared.sent } else { &shared.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn echo_request() -> [u8; PACKET] {
    let mut packet = [0_u8; PACKET];
    packet[0] = 8;
    packet[4..8].copy_from_slice(b"hlog");
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    packet[2..4].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_makes_the_sum_all_ones() {
        let packet = echo_request();
        let sum: u32 = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
