//! How often each CPU was interrupted by what, from `/proc/interrupts`.

use crate::Error;
use std::collections::BTreeMap;
use std::fs;

/// One line of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterruptLine {
    /// `36`, or the processor's own as `LOC` or `CAL`.
    pub label: String,
    /// What the kernel writes behind the counts: chip and devices, or the purpose.
    pub about: String,
    /// How often, by CPU.
    pub counts: BTreeMap<u32, u64>,
}

impl InterruptLine {
    /// The device's number; `None` for the processor's own interrupts.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        self.label.parse().ok()
    }

    /// The last word of what the kernel writes: of a device interrupt, the device's own name for it.
    #[must_use]
    pub fn device(&self) -> &str {
        self.about.split_whitespace().next_back().unwrap_or(&self.label)
    }
}

/// The table as it is now.
///
/// # Errors
/// Where procfs cannot be read or has another format.
pub fn interrupt_counts() -> Result<Vec<InterruptLine>, Error> {
    const PATH: &str = "/proc/interrupts";
    let text = fs::read_to_string(PATH)
        .map_err(|error| Error::io(format!("read({PATH})"), &error, "mount procfs"))?;
    parse(&text).ok_or_else(|| Error::unexpected(format!("read({PATH})"), "no table of CPUs", ""))
}

/// Lines without a count for each CPU (`ERR`, `MIS`) are left out.
fn parse(text: &str) -> Option<Vec<InterruptLine>> {
    let mut lines = text.lines();
    let cpus: Option<Vec<u32>> =
        lines.next()?.split_whitespace().map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    let cpus = cpus.filter(|cpus| !cpus.is_empty())?;
    let line = |line: &str| {
        let (label, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace();
        let counts: Option<BTreeMap<u32, u64>> =
            cpus.iter().map(|&cpu| Some((cpu, words.next()?.parse().ok()?))).collect();
        let about = words.collect::<Vec<&str>>().join(" ");
        Some(InterruptLine { label: label.trim().to_owned(), about, counts: counts? })
    };
    Some(lines.filter_map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_devices_and_the_processors_own() {
        let text = "           CPU0       CPU2\n 36:          0    3978685 PCI-MSIX-0000:00:02.0   1-edge      \
                    virtio1-req.0\nCAL:    3676281    5726808   Function call interrupts\nERR:          0\n";
        let lines = parse(text).unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].number(), lines[0].device()), (Some(36), "virtio1-req.0"));
        assert_eq!(lines[0].counts, BTreeMap::from([(0, 0), (2, 3_978_685)]));
        assert_eq!((lines[1].number(), lines[1].label.as_str()), (None, "CAL"));
        assert_eq!(lines[1].about, "Function call interrupts");
        assert_eq!(parse("nothing of the kind\n"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn this_machine_counts_its_interrupts() {
        assert!(interrupt_counts().is_ok_and(|lines| !lines.is_empty()));
    }
}
