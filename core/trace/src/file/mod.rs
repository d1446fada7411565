//! The trace file: one compact binary format for simulated and measured runs.
//!
//! `docs/trace-format.md` describes it byte by byte. A file is a head (JSON), blocks of delta-coded records, each
//! with its own checksum and readable alone, and a foot (JSON) with counts, losses and an index. A record takes
//! six to eight bytes.

mod codec;
mod header;
mod layout;
mod names;
mod numbers;
mod reader;
#[cfg(test)]
mod tests;
mod user;
#[cfg(test)]
mod user_tests;
mod varint;
mod writer;

pub use header::{BlockPlace, Footer, Header, Losses, Thread};
pub use numbers::{Numbered, Numbers};
pub use reader::{Damage, Reader};
pub use writer::Writer;
