//! How long an operation takes on a disk that seeks and rotates.

use horolog_draw::Random;

/// A disk with one head. Times are whole ns, the same for ever from the same seed.
///
/// An operation takes `seek + rotation + transfer`: `seek = a + ⌊b √distance⌋` over tracks (0 on the same one), then the rest of the
/// turn until the first byte comes by, then the bytes. Reading goes on from a track to the next without a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Bytes of a track.
    pub track_bytes: u64,
    /// How many tracks.
    pub tracks: u64,
    /// A turn, ns.
    pub rotation_ns: u64,
    /// a, ns.
    pub seek_fixed_ns: u64,
    /// b, ns.
    pub seek_root_ns: u64,
    /// Where the head is: its track, and the turn's part that is over at 0, ns.
    track: u64,
    phase_ns: u64,
}

impl Disk {
    /// A disk as those of about 2000: 7,200 turns a minute (8.333 ms), 10,000 tracks of 512 KiB, seeks of 1.14 to 15 ms. The
    /// head is at a place that the seed says.
    #[must_use]
    pub fn drawn(seed: u64) -> Disk {
        let mut random = Random::new(seed);
        let (tracks, rotation_ns) = (10_000, 8_333_333);
        Disk {
            track_bytes: 512 << 10,
            tracks,
            rotation_ns,
            seek_fixed_ns: 1_000_000,
            seek_root_ns: 140_000,
            track: random.below(tracks),
            phase_ns: random.below(rotation_ns),
        }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.track_bytes.saturating_mul(self.tracks)
    }

    /// The longest time of an operation of so many bytes, ns: the whole way, a turn, the transfer.
    #[must_use]
    pub fn longest_ns(&self, bytes: u64) -> u64 {
        let transfer =
            (u128::from(bytes) * u128::from(self.rotation_ns)).div_ceil(u128::from(self.track_bytes.max(1)));
        let transfer = u64::try_from(transfer).unwrap_or(u64::MAX);
        self.seek_ns(self.tracks.saturating_sub(1)).saturating_add(self.rotation_ns).saturating_add(transfer)
    }

    /// Over so many tracks.
    fn seek_ns(&self, distance: u64) -> u64 {
        if distance == 0 {
            return 0;
        }
        let root = (u128::from(self.seek_root_ns).pow(2).saturating_mul(u128::from(distance))).isqrt();
        self.seek_fixed_ns.saturating_add(u64::try_from(root).unwrap_or(u64::MAX))
    }

    /// When the byte passes the head, in ns of a turn from its beginning; of a later track, turns are added.
    fn angle(&self, byte: u64) -> u64 {
        let angle = u128::from(byte) * u128::from(self.rotation_ns) / u128::from(self.track_bytes.max(1));
        u64::try_from(angle).unwrap_or(u64::MAX)
    }

    /// How long an operation takes that begins at `now`, ns; the head is behind its last byte then.
    pub fn serve(&mut self, now: u64, offset: u64, bytes: u64) -> u64 {
        let turn = self.rotation_ns.max(1);
        let (from, to) =
            (offset / self.track_bytes.max(1), offset.saturating_add(bytes) / self.track_bytes.max(1));
        let seek = self.seek_ns(self.track.abs_diff(from));
        let over = (u128::from(now) + u128::from(seek) + u128::from(self.phase_ns)) % u128::from(turn);
        let (begin, end) = (self.angle(offset), self.angle(offset.saturating_add(bytes)));
        let wait = (begin % turn + turn - over as u64) % turn;
        self.track = to;
        seek.saturating_add(wait).saturating_add(end - begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        Disk {
            track_bytes: 100,
            tracks: 101,
            rotation_ns: 1_000,
            seek_fixed_ns: 50,
            seek_root_ns: 7,
            track: 0,
            phase_ns: 0,
        }
    }

    #[test]
    fn an_operation_seeks_waits_and_transfers() {
        // Byte 30 of track 9: 50 + 7 * 3 to get there, at 71 of a turn; it comes by at 300; 20 bytes are 200.
        assert_eq!(disk().serve(0, 930, 20), 71 + 229 + 200);
        // Begun one later it waits one less; begun at 230 it just misses it.
        assert_eq!(disk().serve(1, 930, 20), 71 + 228 + 200);
        assert_eq!(disk().serve(229, 930, 20), 71 + 200);
        assert_eq!(disk().serve(230, 930, 20), 71 + 999 + 200);
    }

    #[test]
    fn what_follows_at_once_waits_for_nothing() {
        let mut disk = disk();
        let mut now = disk.serve(0, 30, 33);
        for offset in [63, 96, 129] {
            let took = disk.serve(now, offset, 33);
            assert_eq!(took, 330);
            now += took;
        }
    }

    #[test]
    fn nothing_takes_longer_than_the_longest() {
        let mut random = Random::new(1);
        let (mut most, mut disk) = (0, Disk::drawn(1));
        for _ in 0..20_000 {
            let bytes = random.between(1, 1 << 20);
            let offset = random.below(disk.bytes() - bytes);
            let (took, longest) = (disk.serve(random.below(1 << 40), offset, bytes), disk.longest_ns(bytes));
            assert!(took <= longest, "{took} > {longest}");
            most = most.max(took * 100 / longest);
        }
        assert!(most > 90, "the bound is far away: {most} %");
    }
}
