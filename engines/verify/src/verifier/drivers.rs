//! Systems with drivers: whose records a trace holds, what interrupts may take, and jobs that wait for a device.
//!
//! The threads of drivers stand behind the file's tasks ([`Companion`]), in a simulated trace all of them, in a measured one
//! those of the devices that were emulated. They are checked like tasks, but for their arrivals, which are the devices' events,
//! and, where users lend a thread its priority, for the order. What executes above all threads, interrupts and softirqs, takes
//! the processor from whoever has it: in a simulated trace exactly what its records say, in a measured one as the kernel
//! recorded it, less what the file declares.

use crate::VerifyError;
use crate::report::Found;
use crate::result::{Check, Class};
use crate::state::job::State;
use crate::state::marks::What;
use crate::verifier::Verifier;
use crate::verifier::kernel::SLEEP;
use horolog_model::{Companion, Device, DeviceService, System, TaskId, Throttling};
use horolog_time::Span;
use horolog_trace::Record;
use horolog_trace::file::Header;

/// What one interrupt or device may ask of a processor.
#[derive(Clone, Debug)]
struct Demand {
    cpu: usize,
    /// Its name, and that of the interrupt of a device.
    names: Vec<String>,
    separation: u64,
    cost: u64,
    /// It comes once in a busy window: polled until nothing is left.
    is_polled: bool,
    /// The priority of its thread; `None`: above every task.
    priority: Option<i64>,
}

/// What is declared of the drivers of a system.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drivers {
    demands: Vec<Demand>,
    /// The longest handler by the number that a simulation's records give it.
    handlers: Vec<(String, u64)>,
    /// The longest handler or softirq event of each processor.
    longest: Vec<u64>,
}

/// The system whose tasks the trace numbers.
pub(crate) fn companion(system: &System, header: &Header) -> Result<Companion, VerifyError> {
    header.companion(system).map_err(VerifyError::input)
}

impl Drivers {
    pub(crate) fn new(system: &System, companion: &Companion) -> Drivers {
        let mut drivers = Drivers { longest: vec![0; system.platform().cpus.len()], ..Drivers::default() };
        for interrupt in system.interrupts() {
            let Some(cpu) = system.platform().cpus.index_of(interrupt.cpu) else { continue };
            let separation = match interrupt.throttling {
                Throttling::Moderated { interval } => interval.max(interrupt.separation),
                _ => interrupt.separation,
            };
            // Events of a device that is served in the interrupt stand under the number of its line.
            let served = system.devices().iter().filter(|device| {
                device.service == DeviceService::Interrupt
                    && device.interrupt.as_ref() == Some(&interrupt.name)
            });
            let longest = served.map(event_cost).max().unwrap_or(0).max(interrupt.cost.as_ns());
            drivers.handlers.push((interrupt.name.clone(), longest));
            drivers.longest[cpu] = drivers.longest[cpu].max(longest);
            drivers.demands.push(Demand {
                cpu,
                names: vec![interrupt.name.clone()],
                separation: separation.as_ns(),
                cost: interrupt.cost.as_ns(),
                is_polled: matches!(interrupt.throttling, Throttling::Napi | Throttling::Threshold { .. }),
                priority: None,
            });
        }
        for (index, device) in system.devices().iter().enumerate() {
            let Some(cpu) = system.platform().cpus.index_of(device.cpu) else { continue };
            drivers.handlers.push((device.name.clone(), event_cost(device)));
            let priority = match &device.service {
                DeviceService::Interrupt | DeviceService::Softirq { .. } => {
                    drivers.longest[cpu] = drivers.longest[cpu].max(event_cost(device));
                    None
                }
                // A thread that the trace holds is one of its tasks.
                _ if companion.task_of(index).is_some() => continue,
                DeviceService::Thread { priority, .. } => Some(priority.map_or(i64::MIN, |own| own.number())),
                _ => continue,
            };
            drivers.demands.push(Demand {
                cpu,
                names: [Some(device.name.clone()), device.interrupt.clone()].into_iter().flatten().collect(),
                separation: device.admitted_separation().as_ns().max(1),
                cost: event_cost(device),
                is_polled: false,
                priority,
            });
        }
        drivers
    }

    pub(crate) fn has_any(&self) -> bool {
        !self.handlers.is_empty()
    }

    /// What they may take in a window from a task of this priority.
    pub(crate) fn declared(&self, cpu: usize, window: u64, priority: i64) -> u64 {
        let above = |demand: &&Demand| demand.cpu == cpu && demand.priority.is_none_or(|own| own >= priority);
        self.demands.iter().filter(above).map(|demand| demand.within(window)).fold(0, u64::saturating_add)
    }

    /// What a thread of this name, which the kernel gives to the thread of a driver, may take in a window.
    pub(crate) fn declared_by_name(&self, cpu: usize, window: u64, comm: &str) -> u64 {
        let named = |demand: &&Demand| {
            demand.cpu == cpu
                && demand.names.iter().any(|name| !name.is_empty() && comm.contains(name.as_str()))
        };
        self.demands.iter().filter(named).map(|demand| demand.within(window)).fold(0, u64::saturating_add)
    }

    /// The longest handler or event above all tasks of a processor.
    pub(crate) fn longest(&self, cpu: usize) -> u64 {
        self.longest.get(cpu).copied().unwrap_or(0)
    }
}

impl Demand {
    fn within(&self, window: u64) -> u64 {
        let times = if self.is_polled { 1 } else { window.div_ceil(self.separation) };
        self.cost.saturating_mul(times)
    }
}

/// What one event takes at the most.
fn event_cost(device: &Device) -> u64 {
    let test = device.admission.map_or(0, |admission| admission.cost.as_ns());
    device.cost.as_ns().saturating_add(test)
}

impl Verifier {
    /// A job gives the processor up until its device answers.
    pub(crate) fn suspend(&mut self, record: &Record, task: usize, cpu: usize) {
        let now = self.now;
        let Some(job) = self.head(record, task) else { return };
        let state = job.state;
        (job.state, job.slept_from) = (State::Suspended, Some(now));
        if state != State::Running {
            self.misfit(record, state);
        }
        if !self.model.waits.contains(&TaskId(task as u32)) {
            let name = self.model.tasks[task].name.clone();
            let message = format!("{name} job {} suspended itself, and asks no device", record.job);
            self.report.apply(Check::SelfSuspension);
            self.job_finding(Class::ModelViolated, Check::SelfSuspension, task, record.job, message, None);
        }
        self.leave_processor(task, cpu);
        self.device_asked(record, task);
    }

    /// The device has answered: the job is ready again, behind its equals.
    pub(crate) fn awake(&mut self, record: &Record, task: usize) {
        let now = self.now;
        self.check_awake(record, task);
        let Some(job) = self.head(record, task) else { return };
        let (state, blocked) = (job.state, std::mem::take(&mut job.blocked));
        let slept = job.slept_from.take().map(|from| now.saturating_sub(from));
        (job.state, job.ready, job.stands_since) = (State::Preempted, now, now);
        if state != State::Suspended {
            self.misfit(record, state);
        }
        let most = &mut self.tasks[task].tally.blocking_max;
        *most = (*most).max(blocked);
        if let Some(slept) = slept.filter(|_| !self.model.waits.contains(&TaskId(task as u32))) {
            self.mark(task, What::Sleep(slept));
            self.breach_of(task, (now - slept, now), slept, SLEEP);
        }
        self.device_answered(record, task);
    }

    /// In a simulated trace every handler stands for itself: none may take longer than its cost.
    pub(crate) fn judge_simulated_interrupt(&mut self, cpu: usize, from: u64, length: u64) {
        let (number, _) = self.cpus[cpu].interrupt_number;
        if self.cpus[cpu].in_softirq {
            return;
        }
        let handler = usize::try_from(number).ok().and_then(|number| self.drivers.handlers.get(number));
        let (name, cost) = handler.cloned().unwrap_or_else(|| ("?".to_owned(), 0));
        // The timer's interrupts within it make it that much longer.
        let timers = match self.model.tick {
            Some(tick) => {
                let up_to = |time: u64| time / tick + 1;
                up_to(self.now) - from.checked_sub(1).map_or(0, up_to)
            }
            None => self.cpus[cpu].releases_in(from, self.now),
        };
        let cost = cost.saturating_add(timers.saturating_mul(self.model.timer_interrupt));
        if length <= cost {
            return;
        }
        let message =
            format!("interrupt {name} took {}, its cost is {}", Span::from_ns(length), Span::from_ns(cost));
        self.report.add(Found {
            class: Class::ModelViolated,
            check: Check::Interrupt,
            time: from,
            during: Some((from, from.saturating_add(length))),
            cpu: self.model.cpus[cpu],
            task: None,
            job: None,
            observed: Some(length),
            allowed: Some(cost),
            evidence: Vec::new(),
            subject: name,
            message,
        });
        self.note_beyond_cost(cpu, from.saturating_add(cost), from.saturating_add(length));
        self.breach(cpu, self.now, length - cost, true, "interrupts beyond their cost");
    }
}
