//! What can be recorded, and with what.

use super::{Fact, State};
use horolog_sys::Error;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::event_format::EventFormat;
use horolog_sys::kernel_fs::KernelFs;
use horolog_sys::kernel_trace::{Recorder, RecorderOptions};
use horolog_sys::machine::{may_use_bpf, read};
use horolog_sys::perf_event::{PerfEvent, Scope};

pub(super) fn facts() -> Vec<Fact> {
    vec![recorder(), tracefs(), perf(), interrupt_vectors(), hardware_counters(), bpf(), lockdown()]
}

/// The recorder itself, as a run and `trace record --kernel` start it.
fn recorder() -> Fact {
    let outcome = online_cpus().and_then(|cpus| {
        let options =
            RecorderOptions { interrupts: false, keeps_left_over: true, ..RecorderOptions::new(cpus) };
        let recorder = Recorder::start(&options)?;
        let backend = format!("{:?}", recorder.choice().backend).to_lowercase();
        Ok(format!("the kernel is recorded through {backend} (tried)"))
    });
    Fact::tried("kernel-recorder", "`trace record --kernel`, and verdicts about disturbances", outcome)
}

fn tracefs() -> Fact {
    let outcome = KernelFs::tracefs().map(|tracefs| {
        if tracefs.is_detached() {
            "not mounted; horolog makes a private mount that nobody else sees (tried)".to_owned()
        } else {
            format!("mounted at {}", tracefs.root().display())
        }
    });
    Fact::tried(
        "tracefs",
        "the layout of the kernel's tracepoints; the recorder where perf is closed",
        outcome,
    )
}

fn perf() -> Fact {
    let paranoid = read("/proc/sys/kernel/perf_event_paranoid").unwrap_or_else(|_| "unknown".to_owned());
    let outcome = record_switches().map(|()| {
        format!("sched_switch of a whole CPU may be recorded (tried); perf_event_paranoid {paranoid}")
    });
    Fact::tried(
        "perf-tracepoints",
        "the kernel's own record of switches, wake-ups and interrupts in a run",
        outcome,
    )
}

fn record_switches() -> Result<(), Error> {
    let tracefs = KernelFs::tracefs()?;
    let format = EventFormat::read(&tracefs, "sched", "sched_switch")?;
    let cpu = online_cpus()?.first().copied().unwrap_or(0);
    PerfEvent::record(&format.name, format.id, Scope::Cpu(cpu), 4096).map(drop)
}

fn interrupt_vectors() -> Fact {
    const NAME: &str = "interrupt-vectors";
    const FOR: &str = "seeing timer and inter-processor interrupts in the record";
    match KernelFs::tracefs() {
        Ok(tracefs) if tracefs.exists("events/irq_vectors/local_timer_entry") => {
            Fact::new(NAME, FOR, State::Yes, "the kernel traces its own interrupts (irq_vectors)")
        }
        Ok(_) => Fact::new(NAME, FOR, State::No, "this kernel has no irq_vectors tracepoints")
            .remedy("timer interrupts show through the timer softirq and the switches that they cause"),
        Err(error) => Fact::new(NAME, FOR, State::Unknown, error.what()),
    }
}

fn hardware_counters() -> Fact {
    let outcome = PerfEvent::try_hardware_cycles().map(|()| "the cycle counter works (tried)".to_owned());
    let fact = Fact::tried("hardware-counters", "memory and instruction figures of the probes", outcome);
    match fact.state {
        State::Yes => fact,
        // perf_event_open's own remedy is about privileges; here the hypervisor is the usual cause.
        _ => fact.remedy(
            "have the host pass the performance counters through, or lower kernel.perf_event_paranoid",
        ),
    }
}

fn bpf() -> Fact {
    let unprivileged =
        read("/proc/sys/kernel/unprivileged_bpf_disabled").unwrap_or_else(|_| "unknown".to_owned());
    let types = if read("/sys/kernel/btf/vmlinux").is_err_and(|error| error.errno() == Some(2)) {
        "no"
    } else {
        "with"
    };
    let outcome = may_use_bpf().map(|()| {
        format!("a tracepoint program loads (tried); {types} type information; unprivileged_bpf_disabled {unprivileged}")
    });
    Fact::tried("bpf", "nothing of horolog yet; other tools of this machine", outcome)
}

fn lockdown() -> Fact {
    const NAME: &str = "no-lockdown";
    const FOR: &str = "reading the scheduler's debug files (preemption mode, fair server)";
    match read("/sys/kernel/security/lockdown") {
        Ok(modes) if modes.contains("[none]") => Fact::new(NAME, FOR, State::Yes, "none"),
        Ok(modes) => Fact::new(NAME, FOR, State::Limited, modes)
            .remedy("boot without lockdown= (and without secure boot); what cannot be read is inferred"),
        Err(error) if error.errno() == Some(2) => {
            Fact::new(NAME, FOR, State::Unknown, "securityfs is not mounted, so the mode is not shown")
                .remedy("`mount -t securityfs securityfs /sys/kernel/security`")
        }
        Err(error) => Fact::new(NAME, FOR, State::Unknown, error.what()),
    }
}
