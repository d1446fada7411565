//! The network, and who takes packets through the protocols.

use super::point::Configuration;
use crate::ExperimentError;
use crate::two_cpus::{guarded, two_cpus};
use horolog_netr::{Options, Receiver, Reserve, Unreserved, check};
use horolog_reserve::network::{ByteAmount, Flow, Protocol, WhenUsedUp};
use horolog_sys::Error;
use horolog_sys::fixed_priority::{Class, may_use_fifo};
use horolog_sys::guardian::Guardian;
use horolog_sys::network::{Lab, LabOptions, Reception};
use horolog_time::Span;

/// The port of the reserve.
pub(super) const PORT: u16 = 5_000;
/// The receiver's priority; the protocol threads are below or above it.
pub(super) const RECEIVER: u8 = 50;
pub(super) const BELOW: Class = Class::Fifo(40);
pub(super) const ABOVE: Class = Class::Fifo(60);
/// Room of the queues: the kernel's own default for packets that wait for the protocols is 1000.
pub(super) const BUFFER: u32 = 1_000;
/// The guardian ends an experiment that hangs.
const PATIENCE: Span = Span::from_ns(600_000_000_000);

pub(super) struct Scene {
    guardian: Guardian,
    pub(super) lab: Lab,
    pub(super) cpus: LabOptions,
}

impl Scene {
    /// Sets it up: the last CPU receives, the first sends.
    pub(super) fn set() -> Result<Scene, Error> {
        may_use_fifo(RECEIVER)?;
        let ends = two_cpus("it needs two CPUs")?;
        check(ends.receive_cpu)?;
        let mut guardian = guarded(ends, PATIENCE)?;
        let lab = Lab::build(&mut guardian, ends, &mut |_| {})?;
        lab.offload_checksums(false)?;
        lab.reply(&mut guardian, false)?;
        Ok(Scene { guardian, lab, cpus: ends })
    }

    /// Who receives. The reserve is larger than what is sent: what is lost is lost for other reasons.
    pub(super) fn configure(
        &mut self,
        configuration: Configuration,
    ) -> Result<Option<Receiver>, ExperimentError> {
        let class = match configuration {
            Configuration::Softirq => {
                self.receive_by(Reception::Softirq)?;
                return Ok(None);
            }
            Configuration::Below => BELOW,
            Configuration::Above => ABOVE,
        };
        let unreserved = Unreserved { cap: None, buffer: BUFFER, class: Class::Normal };
        self.demultiplex(class, unreserved).map(Some)
    }

    /// Early demultiplexing with one reserve at [`PORT`].
    pub(super) fn demultiplex(
        &mut self,
        class: Class,
        unreserved: Unreserved,
    ) -> Result<Receiver, ExperimentError> {
        self.attach(vec![reserve(PORT, BUFFER, class)], unreserved)
    }

    pub(super) fn attach(
        &mut self,
        reserves: Vec<Reserve>,
        unreserved: Unreserved,
    ) -> Result<Receiver, ExperimentError> {
        self.receive_by(Reception::Sender)?;
        let device = self.lab.receiving_device().to_owned();
        let options = Options { device, cpu: self.cpus.receive_cpu, reserves, unreserved };
        let receiver = self.lab.at_receiver(|| Receiver::attach(&options)).map_err(|error| failed(&error))?;
        match receiver.uncounted() {
            Some(error) => Err(failed(error)),
            None => Ok(receiver),
        }
    }

    fn receive_by(&mut self, reception: Reception) -> Result<(), ExperimentError> {
        self.lab.receive_by(&mut self.guardian, reception).map_err(|error| failed(&error))
    }

    /// Puts the machine back and says so.
    pub(super) fn clear(self) -> Result<String, ExperimentError> {
        let restored = self.guardian.finish().map_err(|error| failed(&error))?;
        if restored.failures.is_empty() {
            Ok(format!("the guardian has {restored}"))
        } else {
            Err(ExperimentError::failed(format!("the machine could not be put back: {restored}")))
        }
    }
}

/// A reserve of datagrams to a port, larger than what is sent.
pub(super) fn reserve(port: u16, buffer: u32, class: Class) -> Reserve {
    Reserve {
        flows: vec![Flow { protocol: Some(Protocol::Udp), port }],
        amount: ByteAmount::implicit(1_000_000, Span::from_ns(4_000_000)),
        when_used_up: WhenUsedUp::Drop,
        buffer,
        class,
    }
}

pub(super) fn failed(error: &Error) -> ExperimentError {
    if error.is_not_permitted() {
        ExperimentError::not_permitted(error.to_string())
    } else {
        ExperimentError::failed(error.to_string())
    }
}
