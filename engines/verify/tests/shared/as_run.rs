//! A simulated trace as a run records it.

use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use std::collections::BTreeMap;

/// The same records with the kernel's switches and wake-ups. Thread 0 is idle, thread t + 1 is task t; task `foreign` is a thread outside
/// the model, whose own records are left out.
pub(crate) fn as_run(records: &[Record], foreign: Option<u32>) -> Vec<Record> {
    let kernel = |of: &Record, kind: Kind, value: u64, extra: u64| Record {
        kind,
        task: NO_TASK,
        job: NO_JOB,
        value,
        extra,
        ..*of
    };
    let mut all: Vec<Record> = Vec::new();
    // Who has each processor, and whether he has given it up.
    let mut had: BTreeMap<u16, (u64, bool)> = BTreeMap::new();
    let mut pending: BTreeMap<u32, u64> = BTreeMap::new();
    let switch = |of: &Record, before: u64, thread: u64| {
        let mut switch = kernel(of, Kind::KernelSwitch, before, thread);
        let task = u32::try_from(thread).ok().and_then(|thread| thread.checked_sub(1));
        switch.task = task.filter(|task| foreign != Some(*task)).unwrap_or(NO_TASK);
        switch
    };
    for group in records.chunk_by(|a, b| a.time == b.time) {
        for record in group {
            let thread = u64::from(record.task).saturating_add(1);
            let is_foreign = record.task != NO_TASK && foreign == Some(record.task);
            let has = had.entry(record.cpu).or_default();
            match record.kind {
                Kind::Release if !is_foreign => {
                    // A thread that has a job is awake.
                    let jobs = pending.entry(record.task).or_default();
                    *jobs += 1;
                    if *jobs == 1 {
                        all.push(kernel(record, Kind::KernelWakeup, thread, 0));
                    }
                }
                Kind::Start | Kind::Resume => {
                    if has.0 != thread {
                        all.push(switch(record, has.0, thread));
                    }
                    *has = (thread, false);
                }
                Kind::Preempt | Kind::Yield | Kind::Completion | Kind::Suspend if has.0 == thread => {
                    has.1 = true
                }
                _ => {}
            }
            if record.kind == Kind::Completion && !is_foreign {
                *pending.entry(record.task).or_default() -= 1;
            }
            if !is_foreign {
                all.push(*record);
            }
        }
        for (&cpu, has) in had.iter_mut().filter(|(_, (thread, is_gone))| *is_gone && *thread != 0) {
            all.push(switch(&Record { cpu, ..group[0] }, has.0, 0));
            *has = (0, false);
        }
    }
    all
}
