//! When the events of a device come.

use super::device::Addressee;
use crate::lane::NEVER;
use crate::options::SimOptions;
use crate::random::Stream;
use horolog_model::{Device, DeviceClass, System};

/// The events of a device to come.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// When the next one comes; [`NEVER`]: no more.
    pub(crate) next: u64,
    /// Whom it is for.
    pub(crate) to: Addressee,
    rhythm: Rhythm,
    separation: u64,
}

#[derive(Debug)]
enum Rhythm {
    /// Separation and up to so much more.
    Drawn { spread: u64, stream: Stream },
    /// These, the next one last.
    Listed(Vec<(u64, Addressee)>),
}

impl Arrivals {
    pub(crate) fn new(system: &System, id: usize, device: &Device, options: &SimOptions) -> Arrivals {
        let separation = device.separation.as_ns();
        let mut requests =
            system.requests().iter().enumerate().filter(|(_, other)| other.device == device.name);
        let is_asked = device.class == DeviceClass::Closed && requests.clone().next().is_some();
        let has_streams = requests.any(|(_, request)| request.arrivals.is_some());
        let rhythm = if is_asked {
            Rhythm::Listed(Vec::new())
        } else if device.arrivals.is_some() || has_streams {
            Rhythm::Listed(listed(system, id, device))
        } else {
            let spread = device.spread.as_ns().saturating_add(options.sporadic_extra.as_ns());
            Rhythm::Drawn { spread, stream: Stream::new(options.seed, &device.name, "device arrivals") }
        };
        let mut arrivals = Arrivals { next: NEVER, to: Addressee::Anybody, rhythm, separation };
        // The first event of a drawn stream comes at once where nothing is drawn, so that it starts with the tasks.
        match &mut arrivals.rhythm {
            Rhythm::Drawn { spread: 0, .. } => arrivals.next = 0,
            Rhythm::Drawn { spread, stream } => arrivals.next = stream.up_to(*spread),
            Rhythm::Listed(_) => arrivals.advance(0),
        }
        arrivals
    }

    /// The event at `now` has come: on to the next.
    pub(crate) fn advance(&mut self, now: u64) {
        match &mut self.rhythm {
            Rhythm::Drawn { spread, stream } => {
                let extra = if *spread == 0 { 0 } else { stream.up_to(*spread) };
                self.next = now.saturating_add(self.separation).saturating_add(extra);
            }
            Rhythm::Listed(rest) => {
                (self.next, self.to) = rest.pop().unwrap_or((NEVER, Addressee::Anybody));
            }
        }
    }
}

/// The listed events of a device and of the streams of its readers, the last one first.
fn listed(system: &System, id: usize, device: &Device) -> Vec<(u64, Addressee)> {
    let own = device.arrivals.iter().flatten().map(|at| (at.as_ns(), Addressee::Anybody));
    let requests = system.requests().iter().enumerate();
    let of_device = requests.filter(|(_, request)| system.find_device(&request.device) == Some(id));
    let streams = of_device.flat_map(|(index, request)| {
        let arrivals = request.arrivals.iter().flatten();
        arrivals.map(move |at| (at.as_ns(), Addressee::Stream(index)))
    });
    let mut all: Vec<(u64, Addressee)> = own.chain(streams).collect();
    all.sort_by_key(|&(at, _)| std::cmp::Reverse(at));
    all
}

/// What the reader must know of the devices' events.
pub(crate) fn notes(system: &System, notes: &mut Vec<String>) {
    for interrupt in system.interrupts() {
        let mut named =
            system.devices().iter().filter(|device| device.interrupt.as_ref() == Some(&interrupt.name));
        if named.next().is_none() {
            notes.push(format!(
                "interrupt {}: no device names it, so it comes every {}",
                interrupt.name, interrupt.separation
            ));
        }
    }
    for device in system.devices().iter().filter(|device| device.class == DeviceClass::Closed) {
        if !system.requests().iter().any(|request| request.device == device.name) {
            notes.push(format!("device {}: no request asks it, so it answers all the time", device.name));
        }
    }
}
