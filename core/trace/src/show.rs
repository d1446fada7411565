//! One record as one line of text.

pub use crate::filter::{Filter, ThreadChoice, threads_of};

use crate::file::Thread;
use crate::{EventDefinition, Kind, LEFT_LOCKED, LossCause, NO_JOB, NO_TASK, Record, UserEvent};
use horolog_time::{Instant, Span};
use std::fmt::Write as _;

/// The names that records refer to by number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'a> {
    /// The tasks, in the order of the header.
    pub tasks: &'a [String],
    /// The threads, by their number in the trace.
    pub threads: &'a [Thread],
    /// The events of user programs, by their number in the trace.
    pub events: &'a [EventDefinition],
    /// What the system file calls servers, resources, links, requests and modes.
    pub system: Option<&'a SystemNames>,
    /// Times are shown since this instant (the header's start).
    pub start: Instant,
}

/// What a system file calls things that records refer to by their place in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SystemNames {
    servers: Vec<String>,
    resources: Vec<String>,
    links: Vec<String>,
    requests: Vec<String>,
    modes: Vec<String>,
}

impl SystemNames {
    /// Those of the system file in a trace's header; none where it holds no system, or one of a newer version.
    #[must_use]
    pub fn of(system_file: &str) -> SystemNames {
        let Ok((system, _)) = horolog_model::file::read(system_file, "the trace's system", &[]) else {
            return SystemNames::default();
        };
        // Mode 0 is the base mode, whether the file has a section for it or not.
        let modes = (0..system.mode_count()).map(|mode| system.mode_name(mode).to_owned());
        SystemNames {
            servers: system.servers().iter().map(|server| server.name.clone()).collect(),
            resources: system.resources().iter().map(|resource| resource.name.clone()).collect(),
            links: system.links().iter().map(|link| link.name.clone()).collect(),
            requests: system.requests().iter().map(|request| request.name.clone()).collect(),
            modes: modes.collect(),
        }
    }
}

impl Names<'_> {
    fn task(&self, task: u32) -> String {
        self.tasks.get(task as usize).cloned().unwrap_or_else(|| format!("task {task}"))
    }

    /// `server events`, or `server 0` where it has no name.
    fn named(&self, noun: &str, of: impl Fn(&SystemNames) -> &Vec<String>, place: u64) -> String {
        let names = self.system.map(of);
        let place_in =
            |names: &Vec<String>| usize::try_from(place).ok().and_then(|at| names.get(at).cloned());
        match names.and_then(place_in) {
            Some(name) => format!("{noun} {name}"),
            None => format!("{noun} {place}"),
        }
    }

    fn server(&self, place: u64) -> String {
        self.named("server", |names| &names.servers, place)
    }

    fn mode(&self, place: u64) -> String {
        self.named("mode", |names| &names.modes, place)
    }

    fn resource(&self, place: u64) -> String {
        self.named("resource", |names| &names.resources, place)
    }

    fn link(&self, place: u64) -> String {
        self.named("link", |names| &names.links, place)
    }

    /// An instant of the trace, since the start.
    fn since_start(&self, at: u64) -> String {
        match Instant::from_ns(at).since(self.start) {
            Some(since) => since.to_string(),
            None => format!("-{}", self.start.saturating_since(Instant::from_ns(at))),
        }
    }

    fn thread(&self, id: u64) -> String {
        let known = usize::try_from(id).ok().and_then(|id| self.threads.get(id));
        known.map_or_else(|| format!("thread #{id}"), Thread::named)
    }
}

/// A record as one line: seconds since the start, processor, kind, task and job, and what the kind adds.
///
/// ```
/// use horolog_time::Instant;
/// use horolog_trace::{Kind, Record, show};
/// let tasks = ["control".to_owned()];
/// let names = show::Names { tasks: &tasks, ..show::Names::default() };
/// let record =
///     Record { time: Instant::from_ns(2_000_000), kind: Kind::Completion, cpu: 1, task: 0, job: 3, value: 1_500_000, extra: 0 };
/// assert_eq!(
///     show::line(&record, &names),
///     "     0.002000000  cpu 1  completion        control #3  executed 1.5 ms"
/// );
/// ```
#[must_use]
pub fn line(record: &Record, names: &Names<'_>) -> String {
    line_with(record, &[], names)
}

/// As [`line()`], with the arguments of a user event: one word each.
///
/// ```
/// use horolog_time::Instant;
/// use horolog_trace::{EventDefinition, Kind, NO_JOB, NO_TASK, Record, show};
/// let events = [EventDefinition::new("net/packet", "u", &["length"])?];
/// let names = show::Names { events: &events, ..show::Names::default() };
/// let record =
///     Record { time: Instant::from_ns(7), kind: Kind::User, cpu: 1, task: NO_TASK, job: NO_JOB, value: 0, extra: 4 };
/// assert!(show::line_with(&record, &[1500], &names).ends_with("user              thread #4  net/packet(length=1500)"));
/// # Ok::<(), horolog_trace::TraceError>(())
/// ```
#[must_use]
pub fn line_with(record: &Record, words: &[u64], names: &Names<'_>) -> String {
    let mut line = String::with_capacity(96);
    let (sign, since) = match record.time.since(names.start) {
        Some(since) => ("", since),
        None => ("-", names.start.saturating_since(record.time)),
    };
    let ns = since.as_ns();
    let seconds = format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    // Writing to a String cannot fail.
    let _ = write!(line, "{seconds:>16}  cpu {}  {:<16}", record.cpu, record.kind.name());
    if record.task != NO_TASK {
        let _ = write!(line, "  {}", names.task(record.task));
        if record.job != NO_JOB {
            let _ = write!(line, " #{}", record.job);
        }
    }
    let detail = detail(record, words, names);
    if !detail.is_empty() {
        let _ = write!(line, "  {detail}");
    }
    line.truncate(line.trim_end().len());
    line
}

/// What the kind's `value` and `extra` say.
fn detail(record: &Record, words: &[u64], names: &Names<'_>) -> String {
    let (value, extra) = (record.value, record.extra);
    let span = Span::from_ns(value);
    let before = |earlier: u64| Span::from_ns(record.time.as_ns().saturating_sub(earlier));
    match record.kind {
        Kind::Release if value < record.time.as_ns() => format!("arrived {} before", before(value)),
        Kind::Skip => format!("arrived {} before", before(value)),
        Kind::PreemptionPoint if extra == 0 => format!("next segment {value}"),
        Kind::PreemptionPoint => format!("next segment {value}, somebody waits"),
        Kind::Completion => format!("executed {span}"),
        Kind::Deadline => String::new(),
        Kind::Miss => format!("deadline {} before", before(value)),
        Kind::Overrun if extra == 0 => format!("executed {span}"),
        Kind::Overrun => format!("executed {span} in segment {}", extra - 1),
        Kind::Enforcement => match extra {
            0 => "counted".to_owned(),
            1 => "skips the next release".to_owned(),
            2 => "demoted".to_owned(),
            3 => "stopped".to_owned(),
            4 => "dropped".to_owned(),
            5 => "asked for a mode".to_owned(),
            other => format!("action {other}"),
        },
        Kind::ModeChange => names.mode(value),
        Kind::FirstDispatch if extra == 0 => format!("in {}", names.mode(value)),
        Kind::FirstDispatch => format!("{} in {}", names.server(extra - 1), names.mode(value)),
        Kind::KernelClass if extra == 0 => format!("{} is real-time again", names.thread(value)),
        Kind::KernelClass if extra == 2 => {
            format!("{} has a lower priority than it was given", names.thread(value))
        }
        Kind::KernelClass => format!("{} is not real-time", names.thread(value)),
        Kind::Exit => format!("its program {}", crate::exit_status(value)),
        Kind::ModeEnd => format!("{}, {} goes on", names.mode(value), names.mode(extra)),
        Kind::KernelSwitch => format!("{} -> {}", names.thread(value), names.thread(extra)),
        Kind::KernelWakeup => names.thread(value),
        Kind::KernelBlock => {
            let state = u8::try_from(extra).map_or('?', char::from);
            let does = match state {
                'T' | 't' => "was stopped",
                'X' | 'Z' => "has ended",
                _ => "sleeps",
            };
            format!("{} {does} ({state})", names.thread(value))
        }
        Kind::KernelStarve => format!("{} waited {span}", names.thread(extra)),
        Kind::BudgetExhausted => {
            format!("{}, used {} in all since the start", names.server(value), Span::from_ns(extra))
        }
        Kind::BudgetReplenished => format!("{}, has {}", names.server(value), Span::from_ns(extra)),
        Kind::SlackChange if extra == 0 => format!("{} below the hard tasks", names.server(value)),
        Kind::SlackChange => format!("{} above the hard tasks", names.server(value)),
        Kind::InterruptEntry | Kind::InterruptExit if extra == 0 => format!("interrupt {value}"),
        Kind::InterruptEntry | Kind::InterruptExit => format!("vector {value}"),
        Kind::SoftirqEntry | Kind::SoftirqExit => format!("softirq {value}"),
        Kind::Steal if extra == 0 => format!("{span} until now"),
        Kind::Steal => format!("{span} within the last {}", Span::from_ns(extra)),
        Kind::Suspend | Kind::Wake if extra == 1 => names.resource(value),
        Kind::Suspend | Kind::Wake => names.named("request", |names| &names.requests, value),
        Kind::Publish if extra >= record.time.as_ns() => {
            format!("{}, visible at {}", names.link(value), names.since_start(extra))
        }
        Kind::Publish => format!("{}, {} late", names.link(value), before(extra)),
        Kind::Latch if extra == NO_JOB => format!("{}, nothing yet", names.link(value)),
        Kind::Latch => format!("{}, job {extra}", names.link(value)),
        Kind::Unlock if extra == LEFT_LOCKED => format!("{}, left locked", names.resource(value)),
        Kind::Lock | Kind::Unlock | Kind::Spin => names.resource(value),
        Kind::Lost => match LossCause::from_number(extra) {
            Some(LossCause::HiddenSwitch) => "a switch that the kernel made without recording it".to_owned(),
            Some(cause) if value == 0 => format!("the last of those that are missing, {}", cause.describe()),
            Some(cause) => format!("{value} records, {}", cause.describe()),
            None => format!("{value} records, for a reason of a newer version"),
        },
        Kind::User => {
            let known = usize::try_from(value).ok().and_then(|event| names.events.get(event));
            let event = known.map_or_else(
                || format!("event #{value}"),
                |definition| UserEvent { record: *record, definition, thread: None, words }.to_string(),
            );
            format!("{}  {event}", names.thread(extra))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: Kind, value: u64, extra: u64) -> Record {
        Record { time: Instant::from_ns(1_500), kind, cpu: 0, task: NO_TASK, job: NO_JOB, value, extra }
    }

    #[test]
    fn lines_name_threads_and_say_what_the_kind_adds() {
        let threads = [
            Thread { id: 0, tid: 0, comm: "swapper/0".to_owned(), task: None, process: None },
            Thread { id: 1, tid: 77, comm: "worker".to_owned(), task: None, process: None },
        ];
        let names = Names { threads: &threads, start: Instant::from_ns(2_000), ..Names::default() };
        assert_eq!(
            line(&record(Kind::KernelSwitch, 0, 1), &names),
            "    -0.000000500  cpu 0  kernel-switch     swapper/0 (0) -> worker (77)"
        );
        assert!(line(&record(Kind::KernelWakeup, 9, 0), &names).ends_with("thread #9"));
        assert!(line(&record(Kind::Lost, 12, 1), &names).ends_with("12 records, by the kernel"));
        assert!(
            line(&record(Kind::Lost, 0, 0), &names)
                .ends_with("the last of those that are missing, by horolog")
        );
        assert!(line(&record(Kind::Lost, 1, 2), &names).ends_with("without recording it"));
        assert!(
            line(&record(Kind::Steal, 1_000_000, 50_000_000), &names).ends_with("1 ms within the last 50 ms")
        );
        let used = record(Kind::BudgetExhausted, 0, 10_000_000);
        assert!(line(&used, &names).ends_with("server 0, used 10 ms in all since the start"));
        assert!(line(&record(Kind::Enforcement, 0, 4), &names).ends_with("dropped"));
        for kind in Kind::ALL {
            assert!(line(&record(kind, 3, 1), &names).contains(kind.name()));
            assert!(!line(&record(kind, u64::MAX, u64::MAX), &names).is_empty());
        }
    }

    #[test]
    fn what_the_system_file_names_is_shown_by_its_name() {
        let text = r#"
            [system]
            name = "named"
            [[task]]
            name = "imu"
            period = "10 ms"
            deadline = "4 ms"
            wcet = "1 ms"
            priority = 2
            [[task.section]]
            resource = "bus"
            from = "0 ms"
            length = "1 ms"
            [[task]]
            name = "log"
            arrivals = ["0 ms"]
            wcet = "1 ms"
            [[server]]
            name = "soft"
            kind = "deferrable"
            tasks = ["log"]
            budget = "1 ms"
            period = "10 ms"
            priority = 1
            [[resource]]
            name = "bus"
            [[link]]
            name = "pose"
            from = "imu"
            to = ["imu"]
            [[mode]]
            name = "degraded"
        "#;
        let system = SystemNames::of(text);
        let names = Names { system: Some(&system), start: Instant::from_ns(500), ..Names::default() };
        let ends = |kind, value, extra, end: &str| {
            let line = line(&record(kind, value, extra), &names);
            assert!(line.ends_with(&format!("  {end}")), "{line}");
        };
        ends(Kind::BudgetReplenished, 0, 7, "server soft, has 7 ns");
        ends(Kind::Lock, 0, 0, "resource bus");
        ends(Kind::Suspend, 0, 1, "resource bus");
        ends(Kind::ModeChange, 0, 0, "mode base");
        ends(Kind::ModeChange, 1, 0, "mode degraded");
        ends(Kind::ModeChange, 2, 0, "mode 2");
        // The record's time is 1,500 ns, and the start 500.
        ends(Kind::Publish, 0, 1_500, "link pose, visible at 1 us");
        ends(Kind::Publish, 0, 1_499, "link pose, 1 ns late");
        ends(Kind::Latch, 0, 3, "link pose, job 3");
        assert_eq!(SystemNames::of("no system"), SystemNames::default());
    }
}
