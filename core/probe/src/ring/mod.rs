//! The two buffers and the memory that holds them.

pub mod layout;
pub mod memory;
pub mod multi_writer;
pub mod per_thread;
pub mod record;
mod word;

#[cfg(test)]
mod facts;
#[cfg(test)]
mod model;

pub use word::{Wide, Word};
