//! Machine facts, measured costs and bounds, kernel records of a run.

pub mod binomial;
pub mod blocking;
pub mod costs;
pub mod critical_sections;
pub mod doctor;
pub mod extraction;
pub mod interference;
pub mod kernel_records;
pub mod lock_protocol;
pub mod lock_study;
pub mod losses;
pub mod machine;
mod percentiles;
pub mod preload;
pub mod starvation;

pub use percentiles::Percentiles;
