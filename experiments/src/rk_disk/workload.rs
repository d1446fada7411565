//! Four real-time readers and best-effort load on a simulated disk.

use super::failed;
use crate::ExperimentError;
use horolog_disk::simulate::{History, Load};
use horolog_disk::{Broker, Disk, Finished, Policy, Request, Reserve, ReserveId, Settings, simulate};
use horolog_draw::Random;

/// A block: the longest operation.
pub(super) const BLOCK: u64 = 64 << 10;

/// (blocks, period ms, deadline ms) of the readers. The first one reads as much as it gets, the others once a period.
pub(super) const READERS: [(u64, u64, u64); 4] =
    [(4, 500, 500), (1, 250, 125), (2, 500, 250), (3, 1_000, 500)];

/// Best-effort requests of one block that are always there.
pub(super) const OTHERS: u64 = 32;

/// How the disk is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Setup {
    /// Everything is best effort, in SCAN order.
    Without,
    With(Policy),
}

/// Tags: the reader, or the number of readers for best effort.
struct Clients {
    random: Random,
    readers: Vec<Option<ReserveId>>,
    bytes: u64,
    until_ns: u64,
}

impl Clients {
    fn request(&mut self, reader: usize, at_ns: u64) -> Request {
        let blocks = READERS.get(reader).map_or(1, |reader| reader.0);
        // Each reader has a file of its own, a fortieth of the disk; best effort reads anywhere.
        let (from, over) = match reader {
            0..=3 => (self.bytes / 5 * reader as u64 + self.bytes / 10, self.bytes / 40),
            _ => (0, self.bytes),
        };
        let block = self.random.below(over / BLOCK - blocks);
        let reserve = self.readers.get(reader).copied().flatten();
        Request {
            at_ns,
            tag: reader as u64,
            reserve,
            offset: from / BLOCK * BLOCK + block * BLOCK,
            bytes: blocks * BLOCK,
        }
    }
}

impl Load for Clients {
    fn first(&mut self) -> Vec<Request> {
        let mut all = vec![self.request(0, 0)];
        for (reader, (_, period, _)) in READERS.into_iter().enumerate().skip(1) {
            let mut at_ns = 7_000_000 * reader as u64;
            while at_ns < self.until_ns {
                all.push(self.request(reader, at_ns));
                at_ns += period * 1_000_000;
            }
        }
        all.extend((0..OTHERS).map(|_| self.request(READERS.len(), 0)));
        all
    }

    fn after(&mut self, finished: &Finished) -> Vec<Request> {
        let reader = finished.tag as usize;
        if reader == 0 || reader == READERS.len() {
            vec![self.request(reader, finished.done_ns)]
        } else {
            Vec::new()
        }
    }
}

/// What happened in so many seconds.
pub(super) fn run(setup: Setup, seed: u64, seconds: u64) -> Result<History, ExperimentError> {
    let mut disk = Disk::drawn(seed);
    let longest_ns = disk.longest_ns(BLOCK);
    let policy = if let Setup::With(policy) = setup { policy } else { Policy::Edf };
    let mut broker = Broker::new(Settings { policy, chunk: BLOCK, longest_ns }).map_err(failed)?;
    let mut readers = Vec::new();
    for (operations, period, deadline) in READERS {
        let (period_ns, deadline_ns) = (period * 1_000_000, deadline * 1_000_000);
        let reserve = Reserve { operations, longest_ns, period_ns, deadline_ns, start_ns: 0 };
        let id = broker.create(reserve, 0).map_err(failed)?;
        readers.push((setup != Setup::Without).then_some(id));
    }
    let until_ns = seconds * 1_000_000_000;
    let mut clients = Clients { random: Random::new(seed), readers, bytes: disk.bytes(), until_ns };
    let mut device = |now: u64, one: &horolog_disk::Operation| disk.serve(now, one.offset, one.bytes);
    Ok(simulate(&mut broker, &mut clients, &mut device, until_ns))
}
