//! Facts 1 to 3 and 8: the worked examples, in units of a nanosecond.

use super::{read, same, simulated};
use crate::{ExperimentError, Fact};
use horolog_model::CpuId;
use horolog_trace::{Kind, Record};

/// The names of the tasks, by their numbers here: their priorities are 1 to 4.
const TASKS: [&str; 4] = ["t0", "t1", "t2", "t3"];

/// t3 on processor 0 holds R in [1, 8); t0 asks at 3, t2 comes at 6.
fn text(protocol: &str, spin: &str) -> String {
    let task = |index: usize, cpu: u32, times: [u32; 2], section: Option<[u32; 2]>| {
        let [offset, wcet] = times;
        let section = section.map_or_else(String::new, |[from, length]| {
            format!("[[task.section]]\nresource = \"R\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n")
        });
        format!(
            "[[task]]\nname = \"{}\"\ncpu = {cpu}\npriority = {}\nperiod = \"1 us\"\noffset = \"{offset} ns\"\nwcet = \"{wcet} ns\"\n{section}",
            TASKS[index],
            index + 1
        )
    };
    let spins = if protocol == "fslm" {
        format!("[[spin_priority]]\ncpu = 1\npriority = \"{spin}\"\n")
    } else {
        String::new()
    };
    [
        format!(
            "[system]\nname = \"examples\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"R\"\nprotocol = \"{protocol}\"\n{spins}"
        ),
        task(0, 1, [3, 6], Some([0, 4])),
        task(1, 1, [500, 1], Some([0, 1])),
        task(2, 1, [6, 5], None),
        task(3, 0, [0, 9], Some([1, 7])),
    ]
    .concat()
}

/// From when to when a task has the processor.
fn stretches(records: &[Record], task: u32) -> Vec<(u64, u64)> {
    let (mut all, mut since) = (Vec::new(), None);
    for record in records.iter().filter(|record| record.task == task) {
        match record.kind {
            Kind::Start | Kind::Resume => since = Some(record.time.as_ns()),
            Kind::Preempt | Kind::Completion => {
                all.extend(since.take().map(|since| (since, record.time.as_ns())));
            }
            _ => {}
        }
    }
    all
}

fn in_words(stretches: &[(u64, u64)]) -> String {
    let words: Vec<String> = stretches.iter().map(|(from, to)| format!("[{from}, {to})")).collect();
    words.join(" ")
}

/// When a task locks and unlocks.
fn section(records: &[Record], task: u32) -> String {
    let at = |kind: Kind| {
        let found = records.iter().find(|record| record.kind == kind && record.task == task);
        found.map_or_else(|| "never".to_owned(), |record| record.time.as_ns().to_string())
    };
    format!("[{}, {})", at(Kind::Lock), at(Kind::Unlock))
}

pub(super) fn facts() -> Result<Vec<Fact>, ExperimentError> {
    let (ceiling, highest) = (read(&text("fslm", "ceiling"))?, read(&text("fslm", "highest"))?);
    let of = |cpu: u32| {
        let priority = ceiling.spin_ceiling(CpuId(cpu)).map_or(0, horolog_model::Priority::number);
        format!("π{}", priority - 1)
    };
    let (at_ceiling, at_highest) = (simulated(&ceiling, 100, 1)?, simulated(&highest, 100, 1)?);
    let msrp = simulated(&read(&text("msrp", ""))?, 100, 1)?;
    let urgent = |records: &[Record]| in_words(&stretches(records, 2));
    Ok(vec![
        same(1, "The ceilings of both processors", "π3 and π1", format!("{} and {}", of(0), of(1))),
        same(
            2,
            "When τ2 has the processor, spinning at the highest priority",
            "[12, 17)",
            urgent(&at_highest),
        ),
        same(2, "When τ2 has the processor, spinning at the ceiling", "[6, 8) [12, 15)", urgent(&at_ceiling)),
        same(3, "τ0's section, spinning at the highest priority", "[8, 12)", section(&at_highest, 0)),
        same(3, "τ0's section, spinning at the ceiling", "[8, 12)", section(&at_ceiling, 0)),
        same(
            8,
            "Records of the example at the highest priority that differ from MSRP's",
            "0",
            at_highest
                .iter()
                .zip(&msrp)
                .filter(|(a, b)| a != b)
                .count()
                .max(at_highest.len().abs_diff(msrp.len()))
                .to_string(),
        ),
    ])
}
