//! Machine facts, measured costs, kernel records of a run.

pub mod costs;
pub mod critical_sections;
pub mod doctor;
pub mod extraction;
pub mod kernel_records;
pub mod lock_study;
pub mod preload;
pub mod starvation;
