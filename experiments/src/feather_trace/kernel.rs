//! What a stock kernel shows of its locks: waits, through `lock:contention_begin` and `lock:contention_end`.

use super::conditions::Condition;
use crate::Series;
use horolog_measure::critical_sections::Histogram;
use horolog_sys::guardian::run;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};

/// Waits for kernel locks by the kernel's own classes (`SPIN`, `MUTEX`, `READ`, `WRITE`, `RT`, …).
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    pub(super) classes: BTreeMap<String, Histogram>,
    pub(super) seconds: f64,
}

impl Waits {
    /// The mean wait over all spinning or all sleeping classes. A mutex at which the kernel spins for a while
    /// (`SPIN|MUTEX`) counts with those that spin.
    pub(super) fn mean_us(&self, spinning: bool) -> Option<f64> {
        let of = self.classes.iter().filter(|(name, _)| name.contains("SPIN") == spinning);
        let (total, count) = of.fold((0_u128, 0), |(t, c), (_, h)| (t + h.total_ns(), c + h.count()));
        (count > 0).then(|| total as f64 / count as f64 / 1e3)
    }
}

/// Records the whole machine's lock contention for this long.
pub(super) fn waits(folder: &Path, ns: u64) -> Result<Waits, String> {
    let data = folder.join("contention.data");
    let seconds = ns as f64 / 1e9;
    let mut record = Command::new("perf");
    record
        .args([
            "record",
            "-q",
            "-a",
            "-k",
            "CLOCK_MONOTONIC",
            "-e",
            "lock:contention_begin,lock:contention_end",
            "-o",
        ])
        .arg(&data)
        .args(["--", "sleep", &format!("{seconds:.3}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let recorded =
        run(&mut record).map_err(|error| format!("perf: {error}: install the package linux-perf"))?;
    if !recorded.status.success() {
        let why = String::from_utf8_lossy(&recorded.stderr).into_owned();
        return Err(format!("perf record: {}", why.lines().next().unwrap_or("no permission")));
    }
    let mut script = Command::new("perf");
    script.args(["script", "-F", "tid,time,event,trace", "--ns", "-i"]).arg(&data);
    script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let script = run(&mut script).map_err(|error| format!("perf script: {error}"))?;
    let _ = std::fs::remove_file(&data);
    let mut waits = parse(&String::from_utf8_lossy(&script.stdout));
    waits.seconds = seconds;
    Ok(waits)
}

/// Pairs begins and ends of one thread and lock; halves are dropped.
fn parse(script: &str) -> Waits {
    let mut waits = Waits::default();
    let mut begun: HashMap<(u32, String), (u64, String)> = HashMap::new();
    for line in script.lines() {
        let mut words = line.split_whitespace();
        let (Some(tid), Some(time), Some(event), Some(lock)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (Ok(tid), Some(time)) = (tid.parse::<u32>(), time_ns(time)) else { continue };
        let key = (tid, lock.to_owned());
        if event.contains("contention_begin") {
            let flags = line.split("flags=").nth(1).unwrap_or("?").trim_end_matches(')').to_owned();
            begun.insert(key, (time, flags));
        } else if let Some((since, flags)) = begun.remove(&key) {
            let class = waits.classes.entry(flags).or_insert_with(|| Histogram::new(10_000));
            class.add(time.saturating_sub(since));
        }
    }
    waits
}

/// `12.345678901:` in ns.
fn time_ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.strip_suffix(':')?.split_once('.')?;
    let fraction = format!("{fraction:0<9}");
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction.get(..9)?.parse().ok()?)
}

/// One table a condition is too much: one row for each condition and class of waits.
pub(super) fn series(kernel: &[(Condition, Result<Waits, String>)]) -> Vec<Series> {
    let mut classes: Vec<&str> = kernel
        .iter()
        .filter_map(|(_, waits)| waits.as_ref().ok())
        .flat_map(|waits| waits.classes.keys().map(String::as_str))
        .collect();
    classes.sort_unstable();
    classes.dedup();
    classes
        .iter()
        .map(|class| Series {
            name: format!(
                "kernel: waits for contended locks of class {class} (hold times are not measurable)"
            ),
            columns: ["condition", "waits a second", "mean us", "p99 us", "max us"]
                .map(str::to_owned)
                .to_vec(),
            rows: kernel
                .iter()
                .filter_map(|(condition, waits)| {
                    let waits = waits.as_ref().ok()?;
                    let histogram = waits.classes.get(*class)?;
                    Some(vec![
                        f64::from(condition.number()),
                        histogram.count() as f64 / waits.seconds,
                        histogram.mean_ns().unwrap_or(0.0) / 1e3,
                        histogram.quantile_ns(0.99).unwrap_or(0) as f64 / 1e3,
                        histogram.max_ns() as f64 / 1e3,
                    ])
                })
                .collect(),
        })
        .collect()
}

/// What this kernel does not show, and how that was found out here.
pub(super) fn not_measurable() -> Vec<String> {
    let mut notes = Vec::new();
    let folder = "/sys/kernel/tracing/events/lock";
    let mut events: Vec<String> = std::fs::read_dir(folder)
        .map(|entries| {
            let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.filter(|name| !matches!(name.as_str(), "enable" | "filter")).collect()
        })
        .unwrap_or_default();
    events.sort();
    let listed = if events.is_empty() { "nothing that we may read".to_owned() } else { events.join(", ") };
    notes.push(format!(
        "kernel: {folder} holds {listed}; acquisitions and releases (lock_acquire, lock_release) need a kernel with \
         CONFIG_LOCKDEP"
    ));
    let statistics = if Path::new("/proc/lock_stat").exists() { "there" } else { "absent" };
    notes.push(format!("kernel: /proc/lock_stat (hold times, CONFIG_LOCK_STAT) is {statistics}"));
    notes.push(
        "kernel: spin_lock is inlined into its callers, so that a probe on functions cannot see each acquisition; \
         uncontended acquisitions, hold times and nesting depth of kernel locks are not measurable"
            .to_owned(),
    );
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_paired_by_thread_and_lock() {
        let script = "\
 10 1.000001000: lock:contention_begin: 0xa (flags=SPIN)
 11 1.000001500: lock:contention_begin: 0xa (flags=SPIN)
 10 1.000003000: lock:contention_end: 0xa (ret=0)
 11 1.000009500: lock:contention_end: 0xa (ret=0)
 12 1.000009600: lock:contention_end: 0xb (ret=0)
 12 1.000009700: lock:contention_begin: 0xb (flags=SPIN|MUTEX)
garbage
";
        let waits = parse(script);
        assert_eq!(waits.classes.len(), 1);
        let spin = &waits.classes["SPIN"];
        assert_eq!((spin.count(), spin.total_ns(), spin.max_ns()), (2, 10_000, 8_000));
        assert_eq!(waits.mean_us(true), Some(5.0));
        assert_eq!(waits.mean_us(false), None);
    }
}
