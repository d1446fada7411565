//! Time that the hypervisor took from each CPU, from `/proc/stat`.

use crate::Error;
use std::fs;

/// Stolen time a CPU since boot, in the kernel's accounting ticks.
///
/// # Errors
/// Where `/proc/stat` cannot be read or has no such column.
pub fn stolen_ns(cpu: u32) -> Result<u64, Error> {
    const PATH: &str = "/proc/stat";
    let text = fs::read_to_string(PATH)
        .map_err(|error| Error::io(format!("read({PATH})"), &error, "mount procfs"))?;
    stolen_ticks(&text, cpu)
        .and_then(|ticks| ticks.checked_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)))
        .ok_or_else(|| {
            Error::unexpected(format!("read({PATH})"), format!("no steal column of cpu {cpu}"), "")
        })
}

/// The eighth number of the line of `cpu`.
fn stolen_ticks(text: &str, cpu: u32) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let line = text.lines().find(|line| line.split(' ').next() == Some(&name))?;
    line.split_whitespace().nth(8)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_column_of_the_right_cpu() {
        let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 80 9 10\ncpu10 1 2 3 4 5 6 7 99 9 10\n";
        assert_eq!(stolen_ticks(text, 1), Some(80));
        assert_eq!(stolen_ticks(text, 10), Some(99));
        assert_eq!(stolen_ticks(text, 2), None);
    }
}
