//! What the kernel holds of one processor: interrupt lines, devices, and what executes above all threads.

use super::device::{DeviceRun, Where};
use super::rounds::Rounds;
use crate::error::Reason;
use crate::lane::NEVER;
use crate::options::SimOptions;
use crate::random::Stream;
use horolog_model::{Companion, CpuId, Interrupt, Role, System, Throttling};
use horolog_sched::Lent;
use std::collections::VecDeque;

/// One interrupt.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its place in the file.
    pub(crate) id: usize,
    pub(crate) cost: u64,
    /// Least time between two.
    gap: u64,
    /// Whether it stays off until its device's service finds nothing more to do.
    pub(crate) is_polled: bool,
    /// Where it comes only when so few places of the ring are free.
    pub(crate) free: Option<usize>,
    /// Off at the device.
    pub(crate) masked: bool,
    /// The handler has run and the poller sees what comes.
    pub(crate) polling: bool,
    /// Waits for the processor.
    pending: bool,
    /// When it comes that was held back; [`NEVER`]: none is.
    pub(crate) held_until: u64,
    last: Option<u64>,
    /// When a line without devices is raised next.
    pub(crate) next_own: u64,
    separation: u64,
    extra: u64,
    draws: Stream,
    pub(crate) causes: u64,
    pub(crate) taken: u64,
}

impl Line {
    fn new(system: &System, id: usize, interrupt: &Interrupt, options: &SimOptions) -> Line {
        let separation = interrupt.separation.as_ns();
        let is_named =
            system.devices().iter().any(|device| device.interrupt.as_ref() == Some(&interrupt.name));
        let (gap, is_polled, free) = match interrupt.throttling {
            Throttling::Moderated { interval } => (separation.max(interval.as_ns()), false, None),
            Throttling::Napi => (separation, true, None),
            Throttling::Threshold { free } => (separation, true, Some(free as usize)),
            _ => (separation, false, None),
        };
        Line {
            id,
            cost: interrupt.cost.as_ns(),
            gap,
            is_polled,
            free,
            masked: false,
            polling: false,
            pending: false,
            held_until: NEVER,
            last: None,
            next_own: if is_named { NEVER } else { 0 },
            separation,
            extra: options.sporadic_extra.as_ns(),
            draws: Stream::new(options.seed, &interrupt.name, "interrupt"),
            causes: 0,
            taken: 0,
        }
    }

    /// Raises a line that no device names, and says when it comes again.
    pub(crate) fn advance_own(&mut self, now: u64) {
        let extra = if self.extra == 0 { 0 } else { self.draws.up_to(self.extra) };
        self.next_own = now.saturating_add(self.separation).saturating_add(extra);
    }
}

/// What executes with interrupts off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hard {
    /// The handler of a line.
    Handler(usize),
    /// An event of a device that is served there.
    Event(usize),
}

/// The kernel's part of one processor.
#[derive(Debug)]
pub(crate) struct Processor {
    pub(crate) lines: Vec<Line>,
    pub(crate) devices: Vec<DeviceRun>,
    /// The threads of these devices (places here) with a lent priority.
    pub(crate) lent: Vec<(usize, Lent)>,
    /// What executes with interrupts off, and until when.
    pub(crate) hard: Option<(Hard, u64)>,
    /// Lines that wait, the first first.
    pub(crate) raised: VecDeque<usize>,
    /// Events to work off before the next handler.
    pub(crate) hard_events: VecDeque<usize>,
    /// Softirq rounds under way.
    pub(crate) rounds: Option<Rounds>,
    /// Whether an interrupt has been left since softirqs were looked at.
    pub(crate) left_interrupt: bool,
    /// The background thread of the softirqs, and whether it has a job.
    pub(crate) background: Option<u32>,
    pub(crate) background_waits: bool,
    /// The device whose event the background thread works off.
    pub(crate) in_background: Option<usize>,
    /// Where the background thread looks first, and how many events it has taken there.
    background_turn: (usize, u32),
}

impl Processor {
    pub(crate) fn new(
        system: &System,
        companion: &Companion,
        lent: &[Lent],
        cpu: CpuId,
        options: &SimOptions,
    ) -> Result<Processor, Reason> {
        let of_cpu = system.interrupts().iter().enumerate().filter(|(_, interrupt)| interrupt.cpu == cpu);
        let lines: Vec<Line> =
            of_cpu.map(|(id, interrupt)| Line::new(system, id, interrupt, options)).collect();
        let names = |line: &Line| system.interrupts()[line.id].name.as_str();
        let mut devices = Vec::new();
        for (id, device) in system.devices().iter().enumerate().filter(|(_, device)| device.cpu == cpu) {
            let line = device.interrupt.as_ref().and_then(|name| lines.iter().position(|l| names(l) == name));
            let thread = companion
                .task_of(id)
                .filter(|task| companion.system.task(*task).cpu == cpu)
                .map(|task| task.0);
            devices.push(DeviceRun::new(system, id, device, line, thread, options));
        }
        let background = companion
            .system
            .tasks_on(cpu)
            .find(|(id, _)| companion.roles[id.index()] == Role::Background)
            .map(|(id, _)| id.0);
        let place = |thread: &Lent| devices.iter().position(|device| device.id == thread.device);
        let lent = lent.iter().filter_map(|thread| Some((place(thread)?, thread.clone()))).collect();
        Ok(Processor {
            lines,
            devices,
            lent,
            hard: None,
            raised: VecDeque::new(),
            hard_events: VecDeque::new(),
            rounds: None,
            left_interrupt: false,
            background,
            background_waits: false,
            in_background: None,
            background_turn: (0, 0),
        })
    }

    /// When something happens next above or beside the threads.
    pub(crate) fn next_time(&self) -> u64 {
        let hard = self.hard.map_or(NEVER, |(_, end)| end);
        let soft = self.rounds.as_ref().and_then(|rounds| rounds.end).unwrap_or(NEVER);
        let lines = self.lines.iter().map(|line| line.held_until.min(line.next_own)).min();
        let devices = self.devices.iter().map(DeviceRun::next_time).min();
        hard.min(soft).min(lines.unwrap_or(NEVER)).min(devices.unwrap_or(NEVER))
    }

    /// Something has happened that a line tells of.
    pub(crate) fn raise(&mut self, line: usize, now: u64) {
        let state = &mut self.lines[line];
        state.causes += 1;
        if state.masked || state.pending || state.held_until != NEVER {
            return;
        }
        let earliest = state.last.map_or(0, |last| last.saturating_add(state.gap));
        if earliest > now { state.held_until = earliest } else { self.assert_line(line, now) }
    }

    /// The line goes up: its handler is due.
    pub(crate) fn assert_line(&mut self, line: usize, now: u64) {
        let state = &mut self.lines[line];
        state.held_until = NEVER;
        state.last = Some(now);
        state.pending = true;
        state.masked = state.is_polled;
        self.raised.push_back(line);
    }

    /// The handler of the line that waits longest begins.
    pub(crate) fn acknowledge(&mut self) -> Option<usize> {
        let line = self.raised.pop_front()?;
        self.lines[line].pending = false;
        Some(line)
    }

    /// The poller of a device has found its ring empty: its interrupt may come again.
    pub(crate) fn unmask_if_idle(&mut self, device: usize) {
        let device = &self.devices[device];
        if let Some(line) = device.line
            && device.ring.is_empty()
            && self.lines[line].polling
        {
            self.lines[line].masked = false;
            self.lines[line].polling = false;
        }
    }

    /// What the kernel does above the threads ends `by` later.
    pub(crate) fn delay(&mut self, by: u64) {
        if let Some((_, end)) = &mut self.hard {
            *end = end.saturating_add(by);
        }
        self.delay_rounds(by);
    }

    /// A handler preempts the softirq under way.
    pub(crate) fn delay_rounds(&mut self, by: u64) {
        if let Some(Rounds { end: Some(end), .. }) = &mut self.rounds {
            *end = end.saturating_add(by);
        }
    }

    /// Whether some softirq waits.
    pub(crate) fn softirq_waits(&self) -> bool {
        self.devices.iter().any(|device| device.pending)
    }

    /// The background thread takes one event of a device whose softirq waits; it turns to the next device as rounds do. How
    /// long that takes: nothing where rounds have meanwhile done the work.
    pub(crate) fn begin_in_background(&mut self) -> u64 {
        self.background_waits = false;
        let count = self.devices.len();
        let (first, taken) = self.background_turn;
        let is_spent = |device: usize| match self.devices[device].service {
            Where::Softirq { poll_budget, .. } => device == first && taken >= poll_budget,
            _ => false,
        };
        let order = (first..count).chain(0..first).filter(|&device| self.devices[device].pending);
        let chosen = order.clone().find(|&device| !is_spent(device)).or_else(|| order.clone().next());
        self.in_background = chosen;
        let Some(device) = chosen else { return 0 };
        let again = device == first && !is_spent(device);
        self.background_turn = (device, if again { taken + 1 } else { 1 });
        self.devices[device].front_cost()
    }
}
