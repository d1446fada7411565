//! The network of the driver experiments: a sender and a receiver in namespaces of their own, and a wire between them.

use super::interface::Interface;
use super::namespace::{inside, inside_with_sysfs};
use super::napi::threads_of;
use super::{Flood, FloodOptions};
use crate::Error;
use crate::affinity::{CpuSet, set_affinity};
use crate::cpu_list::online_cpus;
use crate::deadline::{Reservation, set_deadline};
use crate::fixed_priority::{Class, set_class};
use crate::guardian::{Guardian, Life};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where the two ends work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LabOptions {
    /// The CPU that receives.
    pub receive_cpu: u32,
    /// The CPU that sends, and receives what comes back.
    pub send_cpu: u32,
}

/// Who receives on the receiving CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reception {
    /// Softirqs, above all priorities: packets are steered to the CPU (RPS) after the sender's softirq has taken them.
    Softirq,
    /// Softirqs of the CPU that sends: for a program that takes packets to where they belong.
    Sender,
    /// The device's NAPI thread in this class, pinned to the CPU.
    Thread(Class),
    /// The device's NAPI thread under SCHED_DEADLINE; the kernel does not let such a thread be pinned.
    Deadline(Reservation),
}

/// Packets that the receiving device has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Received.
    pub received: u64,
    /// Lost before they were received: its ring was full.
    pub dropped: u64,
    /// Sent: the replies.
    pub sent: u64,
}

/// How many steps [`Lab::build`] takes.
pub const STEPS: u32 = 6;

/// How many steps [`Lab::receive_by_steps`] takes; softirqs have nothing to do in the last ones.
pub const RECEPTION_STEPS: u32 = 6;

/// The sender's and the receiver's addresses: of the range for benchmarks (RFC 2544), and in namespaces that lead nowhere.
pub(super) const SENDER: Ipv4Addr = Ipv4Addr::new(198, 18, 77, 1);
pub(super) const RECEIVER: Ipv4Addr = Ipv4Addr::new(198, 18, 77, 2);

/// A network that is up. Its guardian takes it down.
#[derive(Debug)]
pub struct Lab {
    options: LabOptions,
    sender: End,
    receiver: End,
    /// The NAPI threads whose first class and CPUs the guardian knows: those that this program gave them are not worth it.
    remembered: Mutex<Vec<Life>>,
}

/// One end: a namespace and its device.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) namespace: PathBuf,
    pub(super) device: String,
}

impl Lab {
    /// Sets the network up, journaled step by step; `after` is told each step that is done, 1 to [`STEPS`].
    ///
    /// # Errors
    /// Where the kernel or the privileges do not allow it. What was made until then is taken down by the guardian.
    pub fn build(
        guardian: &mut Guardian,
        options: LabOptions,
        after: &mut dyn FnMut(u32),
    ) -> Result<Lab, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = guardian.journal_path().parent().unwrap_or(Path::new("/run/horolog")).to_owned();
        // Short and of one run alone: the kernel names the NAPI thread after the device.
        let name = format!("h{:x}{}", std::process::id(), char::from(b'a' + (number % 16) as u8));
        let end = |letter: char| End {
            namespace: folder.join(format!("{name}-{number}{letter}.netns")),
            device: format!("{name}{letter}"),
        };
        let lab = Lab { options, sender: end('s'), receiver: end('r'), remembered: Mutex::default() };
        guardian.create_namespace(&lab.sender.namespace)?;
        after(1);
        guardian.create_namespace(&lab.receiver.namespace)?;
        after(2);
        let Lab { sender, receiver, .. } = &lab;
        guardian.create_pair(&sender.namespace, &sender.device, &receiver.namespace, &receiver.device)?;
        after(3);
        lab.configure()?;
        after(4);
        // Replies are received where packets are sent: they are no load of the receiving CPU.
        sender.steer(guardian, Some(options.send_cpu))?;
        after(5);
        lab.receive_by(guardian, Reception::Softirq)?;
        after(6);
        Ok(lab)
    }

    /// Addresses, offloads, neighbours. These end with the devices.
    fn configure(&self) -> Result<(), Error> {
        let hardware =
            |end: &End| inside(&end.namespace, || Interface::open(&end.device)?.hardware_address());
        let (sender, receiver) = (hardware(&self.sender)?, hardware(&self.receiver)?);
        let configure = |end: &End, own, other, hardware, receives| {
            inside(&end.namespace, || {
                say_nothing_by_itself();
                let interface = Interface::open(&end.device)?;
                interface.set_segmentation_offload(false)?;
                interface.set_receive_offload(receives)?;
                interface.set_address(own)?;
                interface.set_up()?;
                interface.add_neighbour(other, hardware)
            })
        };
        configure(&self.sender, SENDER, RECEIVER, receiver, false)?;
        configure(&self.receiver, RECEIVER, SENDER, sender, true)
    }

    /// Chooses who receives; may be changed at any time.
    ///
    /// # Errors
    /// Where the device has no NAPI thread, or this process cannot see or change it.
    pub fn receive_by(&self, guardian: &mut Guardian, reception: Reception) -> Result<(), Error> {
        self.receive_by_steps(guardian, reception, &mut |_| {})
    }

    /// The same; `after` is told each step that is done, 1 to [`RECEPTION_STEPS`].
    ///
    /// # Errors
    /// As [`Lab::receive_by`].
    pub fn receive_by_steps(
        &self,
        guardian: &mut Guardian,
        reception: Reception,
        after: &mut dyn FnMut(u32),
    ) -> Result<(), Error> {
        let threaded = self.receiver.file("threaded");
        let cpu = self.options.receive_cpu;
        if matches!(reception, Reception::Softirq | Reception::Sender) {
            guardian.write_inside(&self.receiver.namespace, &threaded, "0")?;
            after(1);
            self.receiver.steer(guardian, (reception == Reception::Softirq).then_some(cpu))?;
            (2..=RECEPTION_STEPS).for_each(after);
            return Ok(());
        }
        self.receiver.steer(guardian, None)?;
        after(1);
        guardian.write_inside(&self.receiver.namespace, &threaded, "1")?;
        after(2);
        let thread = self.wait_for_thread()?;
        self.remember(guardian, thread)?;
        after(3);
        // Out of SCHED_DEADLINE first, which allows no pinning.
        set_class(thread, Class::Normal)?;
        after(4);
        let cpus = match reception {
            Reception::Deadline(_) => CpuSet::new(online_cpus()?),
            _ => CpuSet::new([cpu]),
        };
        set_affinity(thread, &cpus)?;
        after(5);
        match reception {
            Reception::Deadline(reservation) => set_deadline(thread, &reservation)?,
            Reception::Thread(class) => set_class(thread, class)?,
            Reception::Softirq | Reception::Sender => {}
        }
        after(6);
        Ok(())
    }

    fn remember(&self, guardian: &mut Guardian, thread: u32) -> Result<(), Error> {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let life = Life::of(thread);
        if life.is_none_or(|life| !remembered.contains(&life)) {
            guardian.remember_thread(thread)?;
            remembered.extend(life);
        }
        Ok(())
    }

    /// Whether the receiver answers the flood: without replies its demand is that of receiving alone.
    ///
    /// # Errors
    /// Where the setting cannot be changed.
    pub fn reply(&self, guardian: &mut Guardian, on: bool) -> Result<(), Error> {
        let path = Path::new("/proc/sys/net/ipv4/icmp_echo_ignore_all");
        guardian.write_inside(&self.receiver.namespace, path, if on { "0" } else { "1" })
    }

    /// The NAPI thread of the receiving device, where there is one now.
    #[must_use]
    pub fn napi_thread(&self) -> Option<u32> {
        threads_of(&self.receiver.device).first().copied()
    }

    fn wait_for_thread(&self) -> Result<u32, Error> {
        let end = Instant::now() + Duration::from_secs(2);
        loop {
            if let Some(thread) = self.napi_thread() {
                return Ok(thread);
            }
            if Instant::now() >= end {
                return Err(Error::unsupported(
                    format!("NAPI thread of {}", self.receiver.device),
                    "needs Linux 5.12 or newer, and this process must see the kernel's threads (no process-id namespace)",
                ));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A socket of the sender, connected to `port` of the receiver.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn sender_socket(&self, port: u16) -> Result<UdpSocket, Error> {
        inside(&self.sender.namespace, || {
            let socket = UdpSocket::bind((SENDER, 0)).map_err(|error| Error::io("bind", &error, ""))?;
            socket.connect((RECEIVER, port)).map_err(|error| Error::io("connect", &error, ""))?;
            Ok(socket)
        })
    }

    /// A socket of the receiver at `port` that never waits.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn receiver_socket(&self, port: u16) -> Result<UdpSocket, Error> {
        inside(&self.receiver.namespace, || {
            let socket = UdpSocket::bind((RECEIVER, port)).map_err(|error| Error::io("bind", &error, ""))?;
            socket.set_nonblocking(true).map_err(|error| Error::io("fcntl(O_NONBLOCK)", &error, ""))?;
            Ok(socket)
        })
    }

    /// Floods the receiver from the sending CPU; there is no other destination.
    ///
    /// # Errors
    /// Where the options leave their bounds, or raw sockets are not allowed.
    pub fn flood(&self, options: FloodOptions) -> Result<Flood, Error> {
        Flood::start(&self.sender, self.options.send_cpu, options)
    }

    /// The same with datagrams of so many bytes to `port`, by a thread in this class: a real-time one for a short while only.
    ///
    /// # Errors
    /// As [`Lab::flood`].
    pub fn flood_port(
        &self,
        port: u16,
        bytes: usize,
        class: Class,
        options: FloodOptions,
    ) -> Result<Flood, Error> {
        Flood::of_datagrams(self.sender_socket(port)?, self.options.send_cpu, class, options, bytes)
    }

    /// Whether the sender leaves the checksums of its packets to its device. Off where a program takes packets from the
    /// receiving device before the protocols: they would never be filled in. It ends with the devices.
    ///
    /// # Errors
    /// Where the setting cannot be changed.
    pub fn offload_checksums(&self, on: bool) -> Result<(), Error> {
        inside(&self.sender.namespace, || Interface::open(&self.sender.device)?.set_checksum_offload(on))
    }

    /// The receiving device.
    #[must_use]
    pub fn receiving_device(&self) -> &str {
        &self.receiver.device
    }

    /// Does something on a thread inside the receiver's namespace.
    ///
    /// # Errors
    /// Where it cannot be entered, or what `body` says.
    pub fn at_receiver<T: Send>(&self, body: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        inside(&self.receiver.namespace, body)
    }

    /// The file that names the receiver's namespace.
    #[must_use]
    pub fn receiver_namespace(&self) -> &Path {
        &self.receiver.namespace
    }

    /// What the receiving device has counted so far.
    ///
    /// # Errors
    /// Where the network is gone.
    pub fn counters(&self) -> Result<Counters, Error> {
        let end = &self.receiver;
        inside_with_sysfs(&end.namespace, || {
            let count = |name: &str| {
                let path = end.file(&format!("statistics/{name}"));
                let text = crate::machine::read(&path.to_string_lossy())?;
                text.trim()
                    .parse()
                    .map_err(|_| Error::unexpected(format!("read({})", path.display()), text.clone(), ""))
            };
            Ok(Counters {
                received: count("rx_packets")?,
                dropped: count("rx_dropped")?,
                sent: count("tx_packets")?,
            })
        })
    }
}

impl End {
    fn file(&self, name: &str) -> PathBuf {
        Path::new("/sys/class/net").join(&self.device).join(name)
    }

    /// Has packets that this end receives processed on `cpu`; `None`: where they are taken from the device.
    fn steer(&self, guardian: &mut Guardian, cpu: Option<u32>) -> Result<(), Error> {
        guardian.write_inside(&self.namespace, &self.file("queues/rx-0/rps_cpus"), &mask(cpu))
    }
}

/// Devices of this namespace send nothing on their own account: what is counted is what was asked for. A kernel without IPv6 has nothing
/// to switch off; the setting ends with the namespace.
fn say_nothing_by_itself() {
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
}

/// A CPU mask as the kernel reads it: hexadecimal words of 32 bits, the highest first.
fn mask(cpu: Option<u32>) -> String {
    let Some(cpu) = cpu else { return "0".to_owned() };
    let mut text = format!("{:x}", 1_u32 << (cpu % 32));
    (0..cpu / 32).for_each(|_| text.push_str(",00000000"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_the_kernels() {
        assert_eq!(mask(None), "0");
        assert_eq!(mask(Some(1)), "2");
        assert_eq!(mask(Some(31)), "80000000");
        assert_eq!(mask(Some(65)), "2,00000000,00000000");
    }
}
