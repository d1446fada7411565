//! How an interrupt is provoked, and how one knows that it has come.

use horolog_sys::Error;
use horolog_sys::clock::monotonic_ns;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::direct_read::DirectReader;
use horolog_sys::guardian::{Guardian, GuardianOptions};
use horolog_sys::membarrier::interrupt_our_cpus;
use horolog_sys::network::{Lab, LabOptions};
use std::net::UdpSocket;

/// What interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterruptSource {
    /// The disk that answers a read of one block past the cache.
    Disk,
    /// Another CPU that has this one call a function of the kernel: an inter-processor interrupt.
    Call,
    /// A datagram that reaches a socket through a pair of virtual network devices in namespaces of their own: an
    /// inter-processor interrupt and the receiving softirq behind it.
    Network,
}

impl InterruptSource {
    /// All of them.
    pub const ALL: [InterruptSource; 3] =
        [InterruptSource::Disk, InterruptSource::Call, InterruptSource::Network];

    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            InterruptSource::Disk => "disk",
            InterruptSource::Call => "call",
            InterruptSource::Network => "network",
        }
    }

    pub(in super::super) fn stage(self) -> &'static str {
        match self {
            InterruptSource::Disk => "interrupt of the disk",
            InterruptSource::Call => "interrupt by another CPU",
            InterruptSource::Network => "interrupt of a network packet",
        }
    }

    pub(super) fn sample(self) -> &'static str {
        match self {
            InterruptSource::Disk => {
                "time that the interrupt of one answered read takes from a spinning thread, its block softirq with it"
            }
            InterruptSource::Call => "time that one call from another CPU takes from a spinning thread",
            InterruptSource::Network => {
                "time that one received datagram takes from a spinning thread: interrupt and softirq"
            }
        }
    }
}

/// An answer that takes longer is given up.
const PATIENCE_NS: u64 = 100_000_000;
/// Where datagrams go.
const PORT: u16 = 9_001;

/// Something that can be asked, again and again.
pub(super) struct Provoker {
    asked: Asked,
    guardian: Option<Guardian>,
}

enum Asked {
    Disk(DirectReader),
    Call,
    Network { sender: UdpSocket, receiver: UdpSocket },
}

impl Provoker {
    /// Opens or sets up what is asked; a network so that `cpu` receives.
    pub(super) fn prepare(source: InterruptSource, cpu: u32) -> Result<Provoker, Error> {
        match source {
            InterruptSource::Disk => {
                Ok(Provoker { asked: Asked::Disk(DirectReader::open()?), guardian: None })
            }
            InterruptSource::Call => Ok(Provoker { asked: Asked::Call, guardian: None }),
            InterruptSource::Network => {
                let send_cpu = other_than(cpu)?;
                let mut guardian = Guardian::start(&GuardianOptions {
                    housekeeping: vec![send_cpu],
                    ..GuardianOptions::default()
                })?;
                let lab = Lab::build(&mut guardian, LabOptions { receive_cpu: cpu, send_cpu }, &mut |_| {})?;
                let (sender, receiver) = (lab.sender_socket(PORT)?, lab.receiver_socket(PORT)?);
                Ok(Provoker { asked: Asked::Network { sender, receiver }, guardian: Some(guardian) })
            }
        }
    }

    /// The name of what is asked, where it has one of its own.
    pub(super) fn disk(&self) -> Option<&str> {
        match &self.asked {
            Asked::Disk(reader) => Some(reader.disk()),
            _ => None,
        }
    }

    /// Asks once and returns with the answer.
    pub(super) fn ask(&mut self) -> Result<(), Error> {
        match &mut self.asked {
            Asked::Disk(reader) => reader.read(),
            Asked::Call => interrupt_our_cpus(),
            Asked::Network { sender, receiver } => {
                let mut buffer = [0; 64];
                sender.send(&buffer[..8]).map_err(|error| Error::io("send", &error, ""))?;
                let end = monotonic_ns() + PATIENCE_NS;
                while receiver.recv(&mut buffer).is_err() {
                    if monotonic_ns() > end {
                        return Err(Error::unexpected("a datagram", "it did not arrive in 100 ms", ""));
                    }
                }
                Ok(())
            }
        }
    }

    /// Puts back what was set up.
    pub(super) fn finish(self) -> Result<(), Error> {
        drop(self.asked);
        let Some(guardian) = self.guardian else { return Ok(()) };
        let restored = guardian.finish()?;
        if restored.failures.is_empty() {
            return Ok(());
        }
        Err(Error::unexpected(
            "putting the network back",
            restored.to_string(),
            "run `horolog doctor --restore`",
        ))
    }
}

/// The first online CPU that is another.
pub(super) fn other_than(cpu: u32) -> Result<u32, Error> {
    online_cpus()?.into_iter().find(|&other| other != cpu).ok_or_else(|| {
        Error::unsupported(
            "provoking an interrupt",
            "it needs two CPUs: the one that asks cannot be the one that is watched",
        )
    })
}
