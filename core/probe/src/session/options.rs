//! The sizes and the mode of a session.

use crate::ring::layout::Sizes;
use horolog_sys::Error;

/// What a full per-thread ring does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// It refuses the new record and counts it as lost.
    #[default]
    Refuse,
    /// It overwrites the oldest records: a flight recorder.
    Overwrite,
    /// The thread waits for the reader: for tests, where nothing may be lost.
    Block,
}

/// What a session is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many threads may have a ring of their own; the others use the multi-writer buffers.
    pub rings: u32,
    /// Bytes of each ring: a power of two from 4 KiB to 1 GiB.
    pub ring_bytes: u32,
    /// Slots of the multi-writer buffer for records of up to two arguments (32 bytes): a power of two.
    pub small_slots: u32,
    /// Slots of the multi-writer buffer for records of up to ten arguments (96 bytes): a power of two.
    pub large_slots: u32,
    /// How many threads may write at one time.
    pub writers: u32,
    /// How many events may have a number.
    pub events: u32,
    /// What a full per-thread ring does.
    pub mode: Mode,
    /// Memory comes when it is first written. A thread whose ring is full takes another one, as long as rings are left
    /// and the recorder's limit allows.
    pub sparse: bool,
}

impl Default for Options {
    /// 32 rings of 256 KiB, 4,096 and 1,024 slots, 256 writers, 4,096 events: 11 MiB.
    fn default() -> Options {
        Options {
            rings: 32,
            ring_bytes: 256 << 10,
            small_slots: 4096,
            large_slots: 1024,
            writers: 256,
            events: 4096,
            mode: Mode::Refuse,
            sparse: false,
        }
    }
}

impl Options {
    /// What a process is recorded with, unless the recorder says otherwise: 4,096 rings of 256 KiB and as many writers, all
    /// without memory until they are used. So one process may use all that the recorder's limit allows.
    #[must_use]
    pub fn recorded() -> Options {
        Options { rings: 4096, writers: 4096, sparse: true, ..Options::default() }
    }

    /// The same with so few rings that the process may map them and have a file of that size.
    pub(crate) fn within_limits(mut self) -> Options {
        // SAFETY: the kernel writes two limits.
        let most = unsafe {
            let (mut file, mut space): (libc::rlimit, libc::rlimit) = core::mem::zeroed();
            let known = libc::getrlimit(libc::RLIMIT_FSIZE, &mut file) == 0
                && libc::getrlimit(libc::RLIMIT_AS, &mut space) == 0;
            // What the program may map is its own: no more than a sixteenth is taken from it.
            if known { file.rlim_cur.min(space.rlim_cur / 16) } else { u64::MAX }
        };
        while self.rings > 2 && u64::from(self.rings) * u64::from(self.ring_bytes) + (4 << 20) > most {
            self.rings /= 2;
        }
        self
    }

    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            rings: self.rings,
            ring_bytes: self.ring_bytes,
            slots: [self.small_slots, self.large_slots],
            writers: self.writers,
            events: self.events,
        }
    }

    /// Changes what `text` says: words `rings=N`, `ring-bytes=N`, `small-slots=N`, `large-slots=N`, `writers=N`,
    /// `events=N`, `overwrite`, `block`, `sparse`, separated by commas, as in the environment variable `HOROLOG_TRACE_OPTIONS`.
    ///
    /// # Errors
    /// Bad input that names the word.
    pub fn apply(&mut self, text: &str) -> Result<(), Error> {
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let bad = || {
                Error::bad_input(
                    format!("trace option `{word}`"),
                    "not understood",
                    "use rings=, ring-bytes=, small-slots=, large-slots=, writers=, events= with a number, overwrite, block or sparse",
                )
            };
            if word == "overwrite" {
                self.mode = Mode::Overwrite;
                continue;
            }
            if word == "block" {
                self.mode = Mode::Block;
                continue;
            }
            if word == "sparse" {
                self.sparse = true;
                continue;
            }
            let (name, value) = word.split_once('=').ok_or_else(bad)?;
            let place = match name {
                "rings" => &mut self.rings,
                "ring-bytes" => &mut self.ring_bytes,
                "small-slots" => &mut self.small_slots,
                "large-slots" => &mut self.large_slots,
                "writers" => &mut self.writers,
                "events" => &mut self.events,
                _ => return Err(bad()),
            };
            *place = value.parse().map_err(|_| bad())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_from_words() {
        let mut options = Options::default();
        options.apply("rings=2, ring-bytes=65536,overwrite").expect("words");
        assert_eq!((options.rings, options.ring_bytes, options.mode), (2, 65_536, Mode::Overwrite));
        assert!(options.apply("rings").is_err());
        assert!(options.apply("rings=-1").is_err());
        let error = options.apply("colour=7").expect_err("no such word");
        assert!(error.to_string().contains("`colour=7`"), "{error}");
    }
}
