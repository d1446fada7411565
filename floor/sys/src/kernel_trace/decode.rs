//! From the kernel's binary tracepoint records to [`KernelEvent`]s.

use super::RecorderOptions;
use super::event::{Comm, Interrupt, KernelEvent, KernelEventKind, State, Thread, VectorKind};
use crate::Error;
use crate::event_format::{EventFormat, Field};
use crate::kernel_fs::KernelFs;
use crate::waiting_call::{self, WaitingCall};

/// One tracepoint that the recorder listens to.
#[derive(Clone, Debug)]
pub(super) struct Tracepoint {
    pub(super) system: &'static str,
    pub(super) name: &'static str,
    pub(super) id: u32,
    /// What the kernel lets through; `None`: everything.
    pub(super) filter: Option<String>,
    layout: Layout,
}

/// Where the fields of its records lie.
#[derive(Clone, Debug)]
enum Layout {
    Switch(Box<SwitchLayout>),
    Wakeup { comm: Field, pid: Field, prio: Field, target_cpu: Field },
    Irq { irq: Field, entry: bool },
    Softirq { vec: Field, entry: bool },
    Vector { vector: Field, kind: VectorKind, entry: bool },
    Call { pid: Field, id: Field, argument: Field },
    Timer { pid: Field, flags: Field, timer: Field, expires: Field, mode: Field },
    Fork { parent: Field, child: Field, flags: Field },
    Exit { pid: Field },
}

/// Bits of `common_flags`: recorded by an interrupt or a softirq, not by the thread that it interrupted.
const IN_INTERRUPT: i64 = 0x08 | 0x10 | 0x40;
/// Bit of an hrtimer's mode: its expiry was given as a length.
const RELATIVE: i64 = 0x01;

#[derive(Clone, Debug)]
struct SwitchLayout {
    prev_comm: Field,
    prev_pid: Field,
    prev_prio: Field,
    prev_state: Field,
    next_comm: Field,
    next_pid: Field,
    next_prio: Field,
    letters: Vec<(u64, u8)>,
    preempted: u64,
}

/// The processor's own interrupts that x86 kernels trace. perf may not record irq_work_exit, since recording it would
/// raise the next one; tracefs may.
const VECTORS: [(&str, &str, VectorKind); 9] = [
    ("local_timer_entry", "local_timer_exit", VectorKind::LocalTimer),
    ("reschedule_entry", "reschedule_exit", VectorKind::Reschedule),
    ("call_function_entry", "call_function_exit", VectorKind::CallFunction),
    ("call_function_single_entry", "call_function_single_exit", VectorKind::CallFunctionSingle),
    ("irq_work_entry", "irq_work_exit", VectorKind::IrqWork),
    ("error_apic_entry", "error_apic_exit", VectorKind::Other),
    ("spurious_apic_entry", "spurious_apic_exit", VectorKind::Other),
    ("thermal_apic_entry", "thermal_apic_exit", VectorKind::Other),
    ("x86_platform_ipi_entry", "x86_platform_ipi_exit", VectorKind::Other),
];

/// The tracepoints of this kernel, and which of them it lacks.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    pub(super) tracepoints: Vec<Tracepoint>,
    common_type: Field,
    pub(super) unseen: Vec<String>,
}

impl Decoder {
    /// Reads the layouts from tracefs. Switches are indispensable; what else the kernel lacks stands in `unseen`.
    pub(super) fn read(tracefs: &KernelFs, options: &RecorderOptions) -> Result<Decoder, Error> {
        let switch = EventFormat::read(tracefs, "sched", "sched_switch")?;
        let common_type = switch.field("common_type")?;
        let mut decoder =
            Decoder { tracepoints: vec![switch_tracepoint(&switch)?], common_type, unseen: Vec::new() };
        for name in ["sched_wakeup", "sched_wakeup_new"] {
            decoder.add(tracefs, "sched", name, wakeup_layout);
        }
        if options.activity {
            decoder.add_activity(tracefs);
        }
        if options.activity || options.threads {
            decoder.add_threads(tracefs);
        }
        if options.interrupts {
            decoder.add_interrupts(tracefs);
        } else {
            decoder.unseen.push("interrupts and softirqs (not asked for)".to_owned());
        }
        Ok(decoder)
    }

    /// What threads wait for.
    fn add_activity(&mut self, tracefs: &KernelFs) {
        self.add(tracefs, "raw_syscalls", "sys_enter", |f| {
            let argument = f.field("args")?.first(8);
            Ok(Layout::Call { pid: f.field("common_pid")?, id: f.field("id")?, argument })
        });
        let numbers: Vec<String> = waiting_call::numbers().map(|number| format!("id == {number}")).collect();
        self.filter_last("sys_enter", &numbers.join(" || "));
        self.add(tracefs, "timer", "hrtimer_start", |f| {
            Ok(Layout::Timer {
                pid: f.field("common_pid")?,
                flags: f.field("common_flags")?,
                timer: f.field("hrtimer")?,
                expires: f.field("softexpires")?,
                mode: f.field("mode")?,
            })
        });
        // The idle thread starts nothing but its own tick.
        self.filter_last("hrtimer_start", "common_pid != 0");
    }

    /// Which threads come and go.
    fn add_threads(&mut self, tracefs: &KernelFs) {
        // Unlike `sched_process_fork` it tells threads from processes.
        self.add(tracefs, "task", "task_newtask", |f| {
            Ok(Layout::Fork {
                parent: f.field("common_pid")?,
                child: f.field("pid")?,
                flags: f.field("clone_flags")?,
            })
        });
        self.add(tracefs, "sched", "sched_process_exit", |f| Ok(Layout::Exit { pid: f.field("pid")? }));
    }

    fn filter_last(&mut self, name: &str, filter: &str) {
        if let Some(last) = self.tracepoints.last_mut().filter(|last| last.name == name) {
            last.filter = Some(filter.to_owned());
        }
    }

    fn add_interrupts(&mut self, tracefs: &KernelFs) {
        self.add(tracefs, "irq", "irq_handler_entry", |f| {
            Ok(Layout::Irq { irq: f.field("irq")?, entry: true })
        });
        self.add(tracefs, "irq", "irq_handler_exit", |f| {
            Ok(Layout::Irq { irq: f.field("irq")?, entry: false })
        });
        self.add(tracefs, "irq", "softirq_entry", |f| {
            Ok(Layout::Softirq { vec: f.field("vec")?, entry: true })
        });
        self.add(tracefs, "irq", "softirq_exit", |f| {
            Ok(Layout::Softirq { vec: f.field("vec")?, entry: false })
        });
        if tracefs.exists("events/irq_vectors") {
            for (entry_name, exit_name, kind) in VECTORS {
                if kind == VectorKind::Other && !tracefs.exists(&format!("events/irq_vectors/{entry_name}")) {
                    continue; // thermal and platform vectors are a matter of the kernel's configuration
                }
                for (name, entry) in [(entry_name, true), (exit_name, false)] {
                    self.add(tracefs, "irq_vectors", name, move |f| {
                        Ok(Layout::Vector { vector: f.field("vector")?, kind, entry })
                    });
                }
            }
        } else {
            self.unseen.push(
                "the processor's own interrupts (local timer, reschedule, call function): this kernel has no \
                 irq_vectors tracepoints; timer interrupts show only through the timer softirq and the switches \
                 they cause"
                    .to_owned(),
            );
        }
    }

    fn add(
        &mut self,
        tracefs: &KernelFs,
        system: &'static str,
        name: &'static str,
        layout: impl FnOnce(&EventFormat) -> Result<Layout, Error>,
    ) {
        let tracepoint = EventFormat::read(tracefs, system, name).and_then(|format| {
            Ok(Tracepoint { system, name, id: format.id, filter: None, layout: layout(&format)? })
        });
        match tracepoint {
            Ok(tracepoint) => self.tracepoints.push(tracepoint),
            Err(error) => self.unseen.push(format!("{system}:{name} ({error})")),
        }
    }

    /// Leaves out optional tracepoints that were refused, each with its partner, since an entry without its exit would
    /// look like an endless handler.
    pub(super) fn leave_out(&mut self, refused: &[(&'static str, String)]) {
        self.tracepoints.retain(|tracepoint| !tracepoint.is_left_out(refused));
        self.unseen.extend(refused.iter().map(|(_, why)| why.clone()));
    }

    /// Decodes one raw record; `None` where it is none of ours or too short.
    pub(super) fn decode(&self, time_ns: u64, cpu: u32, record: &[u8]) -> Option<KernelEvent> {
        let id = u32::try_from(self.common_type.integer(record)?).ok()?;
        let tracepoint = self.tracepoints.iter().find(|tracepoint| tracepoint.id == id)?;
        let (cpu, kind) = tracepoint.layout.decode(cpu, record)?;
        Some(KernelEvent { time_ns, cpu, kind })
    }
}

impl Tracepoint {
    /// Whether a recording is of use without it.
    pub(super) fn is_optional(&self) -> bool {
        !matches!(self.layout, Layout::Switch(_) | Layout::Wakeup { .. })
    }

    /// What an entry and its exit have in common.
    pub(super) fn pair(&self) -> &'static str {
        self.name.trim_end_matches("_entry").trim_end_matches("_exit")
    }

    /// Whether it, or its partner, is among those refused (pair, reason).
    pub(super) fn is_left_out(&self, refused: &[(&'static str, String)]) -> bool {
        self.is_optional() && refused.iter().any(|(pair, _)| *pair == self.pair())
    }

    /// Whether it is executed on the waker's CPU, so that it must be recorded everywhere and filtered by target.
    pub(super) fn has_target_cpu(&self) -> bool {
        matches!(self.layout, Layout::Wakeup { .. })
    }
}

impl Layout {
    fn decode(&self, cpu: u32, record: &[u8]) -> Option<(u32, KernelEventKind)> {
        let number = |field: &Field| u32::try_from(field.integer(record)?).ok();
        let kind = match self {
            Self::Switch(layout) => layout.decode(record)?,
            Self::Wakeup { comm, pid, prio, target_cpu } => {
                let thread = thread(record, comm, pid, prio)?;
                let target = number(target_cpu)?;
                return Some((target, KernelEventKind::Wakeup { thread, waker_cpu: cpu }));
            }
            Self::Irq { irq, entry } => irq_kind(Interrupt::Device(number(irq)?), *entry),
            Self::Vector { vector, kind, entry } => {
                irq_kind(Interrupt::Vector(number(vector)?, *kind), *entry)
            }
            Self::Call { pid, id, argument } => KernelEventKind::CallEntry {
                tid: number(pid)?,
                call: WaitingCall::from_number(id.integer(record)?)?,
                argument: argument.integer(record)? as u64,
            },
            Self::Timer { pid, flags, timer, expires, mode } => {
                if flags.integer(record)? & IN_INTERRUPT != 0 {
                    return None;
                }
                KernelEventKind::TimerStart {
                    tid: number(pid)?,
                    timer: timer.integer(record)? as u64,
                    expires_ns: u64::try_from(expires.integer(record)?).ok()?,
                    absolute: mode.integer(record)? & RELATIVE == 0,
                }
            }
            Self::Fork { parent, child, flags } => {
                let is_thread = flags.integer(record)? & i64::from(libc::CLONE_THREAD) != 0;
                KernelEventKind::Fork { parent: number(parent)?, child: number(child)?, is_thread }
            }
            Self::Exit { pid } => KernelEventKind::Exit { tid: number(pid)? },
            Self::Softirq { vec, entry: true } => KernelEventKind::SoftirqEntry(number(vec)?),
            Self::Softirq { vec, entry: false } => KernelEventKind::SoftirqExit(number(vec)?),
        };
        Some((cpu, kind))
    }
}

impl SwitchLayout {
    fn decode(&self, record: &[u8]) -> Option<KernelEventKind> {
        let bits = self.prev_state.integer(record)? as u64;
        let preempted = bits & self.preempted != 0;
        let rest = bits & !self.preempted;
        let letter = match rest {
            0 => b'R',
            _ => self.letters.iter().find(|(bit, _)| rest & bit != 0).map_or(b'?', |(_, letter)| *letter),
        };
        Some(KernelEventKind::Switch {
            prev: thread(record, &self.prev_comm, &self.prev_pid, &self.prev_prio)?,
            prev_state: State { letter, preempted },
            next: thread(record, &self.next_comm, &self.next_pid, &self.next_prio)?,
        })
    }
}

fn switch_tracepoint(format: &EventFormat) -> Result<Tracepoint, Error> {
    let letters = format.flags().to_vec();
    // The kernel reports "preempted" as the bit above all states that it reports.
    let all = letters.iter().fold(0_u64, |bits, (bit, _)| bits | bit);
    let layout = SwitchLayout {
        prev_comm: format.field("prev_comm")?,
        prev_pid: format.field("prev_pid")?,
        prev_prio: format.field("prev_prio")?,
        prev_state: format.field("prev_state")?,
        next_comm: format.field("next_comm")?,
        next_pid: format.field("next_pid")?,
        next_prio: format.field("next_prio")?,
        letters,
        preempted: if all == 0 { 0 } else { all.wrapping_add(1).next_power_of_two() },
    };
    let id = format.id;
    let layout = Layout::Switch(Box::new(layout));
    Ok(Tracepoint { system: "sched", name: "sched_switch", id, filter: None, layout })
}

fn wakeup_layout(format: &EventFormat) -> Result<Layout, Error> {
    Ok(Layout::Wakeup {
        comm: format.field("comm")?,
        pid: format.field("pid")?,
        prio: format.field("prio")?,
        target_cpu: format.field("target_cpu")?,
    })
}

fn thread(record: &[u8], comm: &Field, pid: &Field, prio: &Field) -> Option<Thread> {
    Some(Thread {
        tid: u32::try_from(pid.integer(record)?).ok()?,
        comm: Comm::from_bytes(comm.bytes(record)?),
        prio: i32::try_from(prio.integer(record)?).ok()?,
    })
}

fn irq_kind(interrupt: Interrupt, entry: bool) -> KernelEventKind {
    if entry { KernelEventKind::IrqEntry(interrupt) } else { KernelEventKind::IrqExit(interrupt) }
}
