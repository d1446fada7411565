//! To which CPU an interrupt comes, by the kernel's counts before and after some requests.

use super::super::Setting;
use super::super::probes::on_thread;
use super::provoke::{InterruptSource, Provoker, other_than};
use horolog_sys::Error;
use horolog_sys::interrupt_counts::{InterruptLine, interrupt_counts};

/// How many requests tell.
const TRIALS: u64 = 40;

/// Where an interrupt comes to, and from where it is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Landing {
    pub(super) label: String,
    pub(super) name: String,
    pub(super) cpu: u32,
    /// The CPU that asks.
    pub(super) asker: u32,
    /// Whether it always comes to the CPU that asks, as with a queue for each CPU.
    pub(super) follows: bool,
}

impl Landing {
    /// The device's number; `None` for interrupts of the processors themselves.
    pub(super) fn number(&self) -> Option<u32> {
        self.label.parse().ok()
    }

    /// How often it came to its CPU so far.
    pub(super) fn count(&self) -> Result<u64, Error> {
        let lines = interrupt_counts()?;
        let line = lines.iter().find(|line| line.label == self.label);
        Ok(line.and_then(|line| line.counts.get(&self.cpu)).copied().unwrap_or(0))
    }
}

/// Asks some times and sees what rises.
pub(super) fn find(
    provoker: &mut Provoker,
    source: InterruptSource,
    setting: Setting,
) -> Result<Landing, Error> {
    let other = other_than(setting.cpu)?;
    if source != InterruptSource::Disk {
        // Steered by us: the network's packets by RPS, the call to the CPU on which a thread of ours spins.
        let name = if source == InterruptSource::Call { "function call" } else { "network packet" };
        return Ok(Landing {
            label: "CAL".to_owned(),
            name: name.to_owned(),
            cpu: setting.cpu,
            asker: other,
            follows: false,
        });
    }
    let (line, cpu) = rise(provoker, setting, other)?;
    let name = match provoker.disk() {
        Some(disk) => format!("{disk} ({})", line.device()),
        None => line.device().to_owned(),
    };
    let landing =
        |cpu, asker, follows| Landing { label: line.label.clone(), name: name.clone(), cpu, asker, follows };
    if cpu != other {
        return Ok(landing(cpu, other, false));
    }
    // It came to the CPU that asked: by chance of its affinity, or because it always does?
    let (_, again) = rise(provoker, setting, setting.cpu)?;
    Ok(landing(again, setting.cpu, again == setting.cpu))
}

/// The device's line that rose most while `asker` asked, and where.
fn rise(provoker: &mut Provoker, setting: Setting, asker: u32) -> Result<(InterruptLine, u32), Error> {
    let before = interrupt_counts()?;
    on_thread(Setting { cpu: asker, ..setting }, || (0..TRIALS).try_for_each(|_| provoker.ask()))?;
    let after = interrupt_counts()?;
    let (line, cpu, count) = greatest(&before, &after).ok_or_else(|| silent(0))?;
    if count < TRIALS / 2 { Err(silent(count)) } else { Ok((line, cpu)) }
}

fn silent(count: u64) -> Error {
    Error::unsupported(
        format!("an interrupt of the disk ({count} after {TRIALS} reads)"),
        "this disk answers without one (polled, or a host's cache behind memory): measure on the device itself",
    )
}

/// The device interrupt and the CPU with the greatest rise.
fn greatest(before: &[InterruptLine], after: &[InterruptLine]) -> Option<(InterruptLine, u32, u64)> {
    let old = |label: &str, cpu: u32| {
        before
            .iter()
            .find(|line| line.label == label)
            .and_then(|line| line.counts.get(&cpu))
            .copied()
            .unwrap_or(0)
    };
    let devices = after.iter().filter(|line| line.number().is_some());
    let rises = devices.flat_map(|line| {
        line.counts.iter().map(move |(&cpu, &count)| (line, cpu, count.saturating_sub(old(&line.label, cpu))))
    });
    rises.max_by_key(|(_, _, rise)| *rise).map(|(line, cpu, rise)| (line.clone(), cpu, rise))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn line(label: &str, counts: [u64; 2]) -> InterruptLine {
        let counts = BTreeMap::from([(0, counts[0]), (1, counts[1])]);
        InterruptLine { label: label.to_owned(), about: "chip edge disk.0".to_owned(), counts }
    }

    #[test]
    fn the_device_that_rises_most_is_the_one() {
        let before = [line("36", [5, 1_000]), line("40", [9_000, 0]), line("LOC", [0, 0])];
        let after = [line("36", [6, 1_041]), line("40", [9_010, 0]), line("LOC", [500, 500])];
        let (found, cpu, rise) = greatest(&before, &after).unwrap();
        assert_eq!((found.label.as_str(), found.device(), cpu, rise), ("36", "disk.0", 1, 41));
        assert_eq!(greatest(&before, &[line("LOC", [1, 1])]), None);
        // A line that is new counts from nothing.
        assert_eq!(greatest(&[], &after).map(|(line, ..)| line.label), Some("40".to_owned()));
    }
}
