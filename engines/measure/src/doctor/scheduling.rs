//! Scheduling classes, their privileges, and what the kernel holds back.

use super::{Fact, State, command_line, in_words};
use horolog_sys::deadline::period_limits;
use horolog_sys::fixed_priority::{PRIVILEGE_REMEDY, may_use_fifo};
use horolog_sys::kernel_fs::KernelFs;
use horolog_sys::machine::{
    Capability, Limit, has_capability, kernel_version, limit, may_use_deadline, read,
};
use horolog_sys::rights::what_stops_file_capabilities;

pub(super) fn facts() -> Vec<Fact> {
    vec![preemption(), fifo(), privileges(), file_capabilities(), deadline(), throttling(), fair_server()]
}

fn fifo() -> Fact {
    const FOR: &str = "`run` and `loop`: fixed priorities, EDF and deferred preemption over real-time bands";
    const NAME: &str = "sched-fifo";
    /// A run watches its tasks from there.
    const NEEDED: u8 = 98;
    match may_use_fifo(99) {
        Ok(()) => Fact::new(NAME, FOR, State::Yes, "SCHED_FIFO up to priority 99 is allowed (tried)"),
        Err(error) if may_use_fifo(1).is_ok() => {
            let highest = (1..99).rev().find(|priority| may_use_fifo(*priority).is_ok()).unwrap_or(1);
            let state = if highest >= NEEDED { State::Limited } else { State::No };
            Fact::new(
                NAME,
                FOR,
                state,
                format!("SCHED_FIFO up to priority {highest} only (tried): {}", error.what()),
            )
            .remedy(PRIVILEGE_REMEDY)
        }
        Err(error) => Fact::tried(NAME, FOR, Err(error)),
    }
}

fn privileges() -> Fact {
    let limit_text = match limit(Limit::RealTimePriority) {
        Ok(Some(priority)) => format!("RLIMIT_RTPRIO {priority}"),
        Ok(None) => "RLIMIT_RTPRIO unlimited".to_owned(),
        Err(error) => error.what(),
    };
    const NAME: &str = "cap-sys-nice";
    const FOR: &str =
        "SCHED_DEADLINE, priorities and CPUs of foreign threads; SCHED_FIFO where RLIMIT_RTPRIO is 0";
    match has_capability(Capability::SysNice) {
        Ok(true) => Fact::new(NAME, FOR, State::Yes, format!("CAP_SYS_NICE is in effect; {limit_text}")),
        Ok(false) => Fact::new(NAME, FOR, State::No, format!("CAP_SYS_NICE is not in effect; {limit_text}"))
            .remedy(PRIVILEGE_REMEDY),
        Err(error) => Fact::tried(NAME, FOR, Err(error)),
    }
}

fn file_capabilities() -> Fact {
    const NAME: &str = "file-capabilities";
    const FOR: &str = "rights that `setcap` gives to the program file";
    match what_stops_file_capabilities() {
        None => Fact::new(NAME, FOR, State::Yes, "nothing keeps capabilities of the program file from having effect"),
        Some(why) => Fact::new(NAME, FOR, State::No, why).remedy(
            "limits (rtprio, memlock) work all the same; a container: without `--security-opt no-new-privileges`, with `--cap-add SYS_NICE \
             --cap-add IPC_LOCK --cap-add PERFMON --cap-add DAC_READ_SEARCH`; a unit: `LimitRTPRIO=99` and `LimitMEMLOCK=infinity`, or \
             `AmbientCapabilities=` instead of setcap",
        ),
    }
}

fn deadline() -> Fact {
    let outcome = may_use_deadline().map(|()| {
        let (least, most) = period_limits();
        let range = match (least, most) {
            (Some(least), Some(most)) => format!("periods {least} to {most}"),
            _ => "no limits on periods".to_owned(),
        };
        format!("1 ms in 100 ms was admitted for an unpinned thread (tried); {range}; a pinned thread needs an exclusive cpuset")
    });
    Fact::tried(
        "sched-deadline",
        "the optional SCHED_DEADLINE back end; the reserves of `horolog reserve`",
        outcome,
    )
}

fn throttling() -> Fact {
    const NAME: &str = "rt-throttling";
    const FOR: &str = "loads by real-time threads above the kernel's limit";
    let values = read("/proc/sys/kernel/sched_rt_runtime_us")
        .and_then(|runtime| Ok((runtime, read("/proc/sys/kernel/sched_rt_period_us")?)));
    let (runtime, period) = match values {
        Ok(values) => values,
        Err(error) => return Fact::new(NAME, FOR, State::Unknown, error.what()).remedy("mount procfs"),
    };
    if runtime == "-1" {
        return Fact::new(NAME, FOR, State::Yes, "off: real-time threads may use a CPU wholly");
    }
    Fact::new(
        NAME,
        FOR,
        State::Limited,
        format!(
            "real-time threads get at most {} in {} of a CPU while others want it",
            in_words(&runtime, 1_000, "us"),
            in_words(&period, 1_000, "us")
        ),
    )
    .remedy(
        "keep the load of real-time tasks below that share, or `sysctl kernel.sched_rt_runtime_us=-1` (the fair server \
         of newer kernels takes its share all the same)",
    )
}

fn fair_server() -> Fact {
    const NAME: &str = "fair-server";
    const FOR: &str =
        "knowing how much of a CPU ordinary tasks take from real-time ones (kernels since 6.12)";
    let debugfs = match KernelFs::debugfs() {
        Ok(debugfs) => debugfs,
        Err(error) => return Fact::new(NAME, FOR, State::Unknown, error.what()).remedy(INFERRED),
    };
    if !debugfs.exists("sched/fair_server") {
        return Fact::new(
            NAME,
            FOR,
            State::Yes,
            "this kernel has none, or does not show it: RT throttling alone limits",
        );
    }
    let values = debugfs
        .read("sched/fair_server/cpu0/runtime")
        .and_then(|runtime| Ok((runtime, debugfs.read("sched/fair_server/cpu0/period")?)));
    match values {
        Ok((runtime, period)) if runtime.trim() == "0" => {
            Fact::new(NAME, FOR, State::Yes, format!("off on cpu 0 (0 in {})", in_words(&period, 1, "ns")))
        }
        Ok((runtime, period)) => {
            let (runtime, period) = (in_words(&runtime, 1, "ns"), in_words(&period, 1, "ns"));
            let share = format!("ordinary tasks are sure of {runtime} in {period} on cpu 0");
            Fact::new(NAME, FOR, State::Limited, share).remedy(
                "keep the load of real-time tasks below the rest, or write 0 into \
                 /sys/kernel/debug/sched/fair_server/cpu*/runtime",
            )
        }
        Err(error) => Fact::new(
            NAME,
            FOR,
            State::Unknown,
            format!("there is one, its values are closed: {}", error.what()),
        )
        .remedy(INFERRED),
    }
}

const INFERRED: &str =
    "`loop` infers it from the kernel's record of a run; a root shell outside lockdown can read debugfs";

fn preemption() -> Fact {
    let model = preemption_model();
    let state = match model.split(' ').next() {
        Some("PREEMPT_RT") => State::Yes,
        Some("unknown") => State::Unknown,
        _ => State::Limited,
    };
    Fact::new("preemption-model", "short and bounded release latency", state, model).remedy(
        "a PREEMPT_RT kernel bounds latency best; on a PREEMPT_DYNAMIC one boot with preempt=full. `measure costs` tells \
         what this one does",
    )
}

/// The kernel's preemption model in words; begins with `unknown` where nothing tells.
pub(super) fn preemption_model() -> String {
    let version = kernel_version();
    let has = |word: &str| version.split_whitespace().any(|part| part == word);
    if read("/sys/kernel/realtime").is_ok_and(|text| text == "1") || has("PREEMPT_RT") {
        return "PREEMPT_RT".to_owned();
    }
    if has("PREEMPT_DYNAMIC") {
        if let Some(chosen) = KernelFs::debugfs().ok().and_then(|debugfs| debugfs.read("sched/preempt").ok())
        {
            return format!("PREEMPT_DYNAMIC, in effect: {}", chosen.trim());
        }
        return match command_line("preempt") {
            Some(chosen) => format!("PREEMPT_DYNAMIC, booted with preempt={chosen}"),
            None => {
                "PREEMPT_DYNAMIC, the mode in effect is the kernel's default (its file is closed)".to_owned()
            }
        };
    }
    if has("PREEMPT") || has("PREEMPT_LAZY") {
        return "PREEMPT".to_owned();
    }
    if version.contains("SMP") || version.starts_with('#') {
        return "none or voluntary (the build line names no preemption)".to_owned();
    }
    "unknown (the build line is not understood)".to_owned()
}
