//! Machine facts, measured costs and bounds, kernel records of a run.

pub mod binomial;
#[cfg(feature = "run")]
pub mod blocking;
#[cfg(feature = "run")]
pub mod costs;
#[cfg(feature = "run")]
pub mod critical_sections;
#[cfg(feature = "run")]
pub mod doctor;
#[cfg(feature = "run")]
pub mod extraction;
#[cfg(feature = "run")]
pub mod interference;
#[cfg(feature = "run")]
pub mod kernel_records;
#[cfg(feature = "run")]
pub mod lock_protocol;
#[cfg(feature = "run")]
pub mod lock_study;
#[cfg(feature = "run")]
pub mod losses;
pub mod machine;
#[cfg(feature = "run")]
mod percentiles;
#[cfg(feature = "run")]
pub mod preload;
#[cfg(feature = "run")]
pub mod starvation;

#[cfg(feature = "run")]
pub use percentiles::Percentiles;
