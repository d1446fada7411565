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
}

impl Default for Options {
    /// 32 rings of 256 KiB, 4,096 and 1,024 slots, 256 writers, 4,096 events: 9 MiB.
    fn default() -> Options {
        Options {
            rings: 32,
            ring_bytes: 256 << 10,
            small_slots: 4096,
            large_slots: 1024,
            writers: 256,
            events: 4096,
            mode: Mode::Refuse,
        }
    }
}

impl Options {
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
    /// `events=N`, `overwrite`, separated by commas, as in the environment variable `HOROLOG_TRACE_OPTIONS`.
    ///
    /// # Errors
    /// Bad input that names the word.
    pub fn apply(&mut self, text: &str) -> Result<(), Error> {
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let bad = || {
                Error::bad_input(
                    format!("trace option `{word}`"),
                    "not understood",
                    "use rings=, ring-bytes=, small-slots=, large-slots=, writers=, events= with a number, or overwrite",
                )
            };
            if word == "overwrite" {
                self.mode = Mode::Overwrite;
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
