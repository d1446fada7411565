//! Keeping CPUs out of deep idle states while a run lasts.

use crate::Error;
use std::fs::{File, OpenOptions};
use std::io::Write as _;

/// A request to the kernel that no CPU may take longer to wake up; ends when it is dropped or the process ends, however
/// it ends, so it needs no journal.
#[derive(Debug)]
pub struct DmaLatency {
    _file: File,
}

impl DmaLatency {
    /// Asks that waking up takes `microseconds` at most; 0 keeps CPUs in the shallowest state.
    ///
    /// # Errors
    /// Where `/dev/cpu_dma_latency` may not be opened.
    pub fn hold(microseconds: i32) -> Result<DmaLatency, Error> {
        const PATH: &str = "/dev/cpu_dma_latency";
        const REMEDY: &str = "run as root, or have root give your group write access to it";
        let mut file = OpenOptions::new()
            .write(true)
            .open(PATH)
            .map_err(|error| Error::io(format!("open({PATH})"), &error, REMEDY))?;
        file.write_all(&microseconds.to_ne_bytes())
            .map_err(|error| Error::io(format!("write({PATH}, {microseconds})"), &error, REMEDY))?;
        Ok(DmaLatency { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_held_or_refused_with_the_remedy() {
        match DmaLatency::hold(0) {
            Ok(held) => drop(held),
            Err(error) => {
                println!("SKIPPED: {error}");
                assert!(error.is_not_permitted() && !error.remedy().is_empty());
            }
        }
    }
}
