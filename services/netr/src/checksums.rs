//! Packets that the protocols threw away for a wrong checksum.

use std::fs;

/// UDP and TCP packets of the calling thread's network namespace with a wrong checksum so far, all devices together. A sender that leaves
/// checksums to a virtual device has them filled in by nothing, where a program takes its packets before the protocols.
#[must_use]
pub fn wrong_checksums() -> u64 {
    let text = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    of_version_4(&text("snmp")) + of_version_6(&text("snmp6"))
}

/// Each protocol has a line of names and one of numbers. TCP is that of both versions.
fn of_version_4(text: &str) -> u64 {
    let lines: Vec<&str> = text.lines().collect();
    let of = |pair: &[&str]| {
        let [names, numbers] = pair else { return None };
        if !names.starts_with("Udp:") && !names.starts_with("Tcp:") {
            return None;
        }
        let at = names.split(' ').position(|name| name == "InCsumErrors")?;
        numbers.split(' ').nth(at)?.parse::<u64>().ok()
    };
    lines.chunks(2).filter_map(of).sum()
}

fn of_version_6(text: &str) -> u64 {
    let number = |line: &str| line.strip_prefix("Udp6InCsumErrors")?.trim().parse::<u64>().ok();
    text.lines().find_map(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_both_protocols_and_versions_count() {
        let text = "Ip: Forwarding InCsumErrors\nIp: 1 100\nTcp: InSegs InCsumErrors\nTcp: 5 7\n\
                    Udp: InDatagrams NoPorts InCsumErrors\nUdp: 1 2 30\nUdpLite: InDatagrams InCsumErrors\nUdpLite: 0 9\n";
        assert_eq!((of_version_4(text), of_version_4("")), (37, 0));
        let text = "Udp6InErrors \t9\nUdp6InCsumErrors   \t4\nUdpLite6InCsumErrors \t8\n";
        assert_eq!((of_version_6(text), of_version_6("")), (4, 0));
    }
}
