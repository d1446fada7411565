//! Writes a system as a system file.

use super::body::FRACTION_PLACES;
use super::decimal;
use super::sections::UTILISATION_PLACES;
use crate::{
    Arrival, Body, Cluster, Cpus, Criticality, Device, DeviceService, Enforcement, ExecutionTimes,
    Interference, Interrupt, Link, LowPriority, Mode, OverrunPolicy, Platform, Preemption, Request,
    RequestOrder, Resource, Segment, SegmentGraph, Server, ServerKind, SpinLevel, SpinPriority, SpinTarget,
    System, TakesEffect, Task, Throttling,
};
use horolog_time::Span;
use std::fmt::Write as _;

/// A system file that reads back to an equal system. Defaults that matter to a reader (deadline, bcet, cpu) are
/// written out; others are left out.
///
/// ```
/// # use horolog_model::file;
/// let text = "system = { name = \"one\" }\n[[task]]\nname = \"control\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 1\n";
/// let (system, _) = file::read(text, "one.toml", &[]).unwrap();
/// let printed = file::print(&system);
/// assert!(printed.contains("deadline = \"10 ms\""));
/// assert_eq!(file::read(&printed, "printed", &[]).unwrap().0, system);
/// ```
#[must_use]
pub fn print(system: &System) -> String {
    written(system, false)
}

/// As [`print()`], with a `[[scheduler]]` in place of every `[[server]]` that one can say.
#[must_use]
pub fn print_expanded(system: &System) -> String {
    written(system, true)
}

fn written(system: &System, is_expanded: bool) -> String {
    let mut out = Printer { text: String::new() };
    out.header("[system]");
    out.line("name", &quoted(system.name()));
    out.line("policy", &quoted(system.policy().word()));
    if let Some(word) = system.priorities().word() {
        out.line("priorities", &quoted(word));
    }
    if !system.unmodelled().is_empty() {
        out.line("unmodelled", &texts(system.unmodelled()));
    }
    out.platform(system.platform());
    for id in system.task_ids() {
        out.task(system.task(id), system.cluster_of(id).is_none());
    }
    for server in system.servers() {
        if server.is_scheduler() || (is_expanded && server.kind.is_for_schedulers()) {
            out.scheduler(server);
        } else {
            out.server(server);
        }
    }
    for cluster in system.clusters() {
        out.cluster(cluster);
    }
    for resource in system.resources() {
        out.resource(resource);
    }
    for spin in system.spin_priorities() {
        out.spin_priority(*spin);
    }
    for link in system.links() {
        out.link(link);
    }
    for mode in system.modes() {
        out.mode(mode);
    }
    for interrupt in system.interrupts() {
        out.interrupt(interrupt);
    }
    for device in system.devices() {
        out.device(device);
    }
    for request in system.requests() {
        out.request(request);
    }
    for interference in system.interferences() {
        out.interference(interference);
    }
    out.text
}

struct Printer {
    text: String,
}

impl Printer {
    fn header(&mut self, header: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(header);
        self.text.push('\n');
    }

    fn line(&mut self, key: &str, value: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{key} = {value}");
    }

    fn span(&mut self, key: &str, span: Span) {
        self.line(key, &duration(span));
    }

    fn maybe_span(&mut self, key: &str, span: Option<Span>) {
        if let Some(span) = span {
            self.span(key, span);
        }
    }

    fn platform(&mut self, platform: &Platform) {
        self.header("[platform]");
        match &platform.cpus {
            Cpus::Listed(list) => {
                let numbers: Vec<u32> = list.iter().map(|cpu| cpu.0).collect();
                self.line("cpus", &format!("{numbers:?}"));
            }
            Cpus::Count(n) => self.line("cpus", &n.to_string()),
        }
        self.maybe_span("tick", platform.tick);
        self.maybe_span("context_switch", platform.context_switch);
        self.maybe_span("timer_interrupt", platform.timer_interrupt);
        self.maybe_span("release_latency", platform.release_latency);
        self.maybe_span("lock_request", platform.locking.request);
        self.maybe_span("lock_grant", platform.locking.grant);
        self.maybe_span("lock_release", platform.locking.release);
    }

    fn task(&mut self, task: &Task, has_cpu: bool) {
        self.header("[[task]]");
        self.line("name", &quoted(&task.name));
        match &task.arrival {
            Arrival::Periodic { period } => self.span("period", *period),
            Arrival::Sporadic { separation } => self.span("separation", *separation),
            Arrival::Aperiodic { arrivals } => self.line("arrivals", &durations(arrivals)),
        }
        self.maybe_span("deadline", task.deadline);
        self.span("wcet", task.wcet);
        self.span("bcet", task.bcet);
        if let Some(criticality) = task.criticality {
            self.line("criticality", &quoted(criticality.word()));
            if let Criticality::High { wcet, virtual_deadline } = criticality {
                self.span("wcet_high", wcet);
                self.maybe_span("virtual_deadline", virtual_deadline);
            }
        }
        self.maybe_span("offset", task.offset);
        self.maybe_span("promotion", task.promotion);
        if !task.jitter.is_zero() {
            self.span("jitter", task.jitter);
        }
        if task.is_soft {
            self.line("constraint", &quoted("soft"));
        }
        if let Some(priority) = task.priority {
            self.line("priority", &priority.number().to_string());
        }
        if has_cpu {
            self.line("cpu", &task.cpu.0.to_string());
        }
        if task.overrun != OverrunPolicy::default() {
            let overrun = match &task.overrun {
                OverrunPolicy::Mode(mode) => format!("{{ mode = {} }}", quoted(mode)),
                other => quoted(other.word().unwrap_or_default()),
            };
            self.line("overrun", &overrun);
        }
        if task.preemption != Preemption::Preemptive {
            self.line("preemption", &quoted(task.preemption.word()));
        }
        if let Some(graph) = task.segment_graph() {
            self.line("segments", &segments(graph));
        }
        match &task.execution {
            ExecutionTimes::Wcet => {}
            ExecutionTimes::Uniform => self.line("execution", &quoted("uniform")),
            ExecutionTimes::Jobs(times) => {
                self.line("execution", &format!("{{ jobs = {} }}", durations(times)));
            }
            ExecutionTimes::Segments(lists) => {
                let lists: Vec<String> = lists.iter().map(|times| durations(times)).collect();
                self.line("execution", &format!("{{ segments = [{}] }}", lists.join(", ")));
            }
            ExecutionTimes::Samples(samples) => {
                self.line("execution", &format!("{{ samples = {} }}", durations(samples)));
            }
        }
        if let Some(body) = &task.body {
            self.line("body", &body_table(body));
        }
        for section in &task.sections {
            self.header("[[task.section]]");
            self.line("resource", &quoted(&section.resource));
            self.span("from", section.from);
            self.span("length", section.length);
            if section.access.is_read() {
                self.line("access", &quoted(section.access.word()));
            }
        }
    }

    fn server(&mut self, server: &Server) {
        self.header("[[server]]");
        self.line("name", &quoted(&server.name));
        self.line("kind", &quoted(server.kind.word()));
        self.line("tasks", &texts(&server.tasks));
        self.line("cpu", &server.cpu.0.to_string());
        self.server_kind(server.kind);
    }

    fn time_table(&mut self, table: &crate::TimeTable) {
        self.span("cycle", table.cycle);
        let windows = table.windows.iter().map(|window| {
            let (from, length) = (duration(window.from), duration(window.length));
            format!("  {{ child = {}, from = {from}, length = {length} }},\n", quoted(&window.child))
        });
        self.line("windows", &format!("[\n{}]", windows.collect::<String>()));
    }

    fn scheduler(&mut self, server: &Server) {
        self.header("[[scheduler]]");
        self.line("name", &quoted(&server.name));
        if let Some(parent) = &server.parent {
            self.line("parent", &quoted(parent));
        }
        self.line("cpu", &server.cpu.0.to_string());
        self.line("order", &quoted(server.order.word()));
        if let Some(table) = &server.table {
            self.time_table(table);
        }
        if !matches!(server.kind, ServerKind::Plain { .. }) {
            self.line("kind", &quoted(server.kind.word()));
        }
        self.server_kind(server.kind);
        if let Some(deadline) = server.deadline {
            self.span("deadline", deadline);
        }
        if !server.tasks.is_empty() {
            self.line("tasks", &texts(&server.tasks));
        }
    }

    fn cluster(&mut self, cluster: &Cluster) {
        self.header("[[scheduler]]");
        self.line("name", &quoted(&cluster.name));
        let cpus: Vec<u32> = cluster.cpus.iter().map(|cpu| cpu.0).collect();
        self.line("cpus", &format!("{cpus:?}"));
        self.line("order", &quoted(cluster.order.word()));
        self.line("tasks", &texts(&cluster.tasks));
    }

    /// What the kind of a server or scheduler adds.
    fn server_kind(&mut self, kind: ServerKind) {
        if let Some(capacity) = kind.capacity() {
            self.span("budget", capacity.budget);
            self.span("period", capacity.period);
        }
        if let Some(priority) = kind.priority() {
            self.line("priority", &priority.number().to_string());
        }
        match kind.low_priority() {
            Some(LowPriority::Background) => self.line("low_priority", &quoted("background")),
            Some(LowPriority::None) => self.line("low_priority", &quoted("none")),
            Some(LowPriority::At(priority)) => self.line("low_priority", &priority.number().to_string()),
            None => {}
        }
        if let ServerKind::Sporadic { max_replenishments, rules, .. } = kind {
            self.line("max_replenishments", &max_replenishments.to_string());
            self.line("rules", &quoted(rules.word()));
        }
        if let Some(Enforcement::Kernel { latency }) = kind.enforcement() {
            self.line("enforcement", &quoted("kernel"));
            self.span("enforcement_latency", latency);
        }
        if let Some(gain) = kind.gain() {
            self.line("gain", &quoted(gain.word()));
        }
    }

    fn resource(&mut self, resource: &Resource) {
        self.header("[[resource]]");
        self.line("name", &quoted(&resource.name));
        self.line("protocol", &quoted(resource.protocol.word()));
        self.line("at_exhaustion", &quoted(resource.at_exhaustion.word()));
        if let Some(cpu) = resource.cpu {
            self.line("cpu", &cpu.0.to_string());
        }
    }

    fn spin_priority(&mut self, spin: SpinPriority) {
        self.header("[[spin_priority]]");
        self.line("cpu", &spin.cpu.0.to_string());
        match spin.level {
            SpinLevel::Ceiling => self.line("priority", &quoted("ceiling")),
            SpinLevel::Highest => self.line("priority", &quoted("highest")),
            SpinLevel::At(priority) => self.line("priority", &priority.number().to_string()),
        }
    }

    fn link(&mut self, link: &Link) {
        self.header("[[link]]");
        self.line("name", &quoted(&link.name));
        self.line("kind", &quoted(link.kind.word()));
        self.line("from", &quoted(&link.from));
        self.line("to", &texts(&link.to));
        if let Some(size) = link.size {
            self.line("size", &size.to_string());
        }
    }

    fn mode(&mut self, mode: &Mode) {
        self.header("[[mode]]");
        self.line("name", &quoted(&mode.name));
        if !mode.at.is_empty() {
            self.line("at", &durations(&mode.at));
        }
        if let Some(active) = &mode.active {
            self.line("active", &texts(active));
        }
        let takes_effect = match &mode.takes_effect {
            TakesEffect::AtOnce => quoted("at-once"),
            TakesEffect::Frame(name) => format!("{{ frame = {} }}", quoted(name)),
            TakesEffect::WhenDone(names) => format!("{{ when_done = {} }}", texts(names)),
        };
        self.line("takes_effect", &takes_effect);
        if let Some(then) = &mode.then {
            self.line("then", &quoted(then));
        }
        self.line("second_request", &quoted(mode.second_request.word()));
        self.line("left_over", &quoted(mode.left_over.word()));
        for change in &mode.tasks {
            self.header("[[mode.task]]");
            self.line("name", &quoted(&change.task));
            if let Some(priority) = change.priority {
                self.line("priority", &priority.number().to_string());
            }
            self.maybe_span("period", change.period);
            self.maybe_span("deadline", change.deadline);
            self.maybe_span("wcet", change.wcet);
            if let Some(left_over) = change.left_over {
                self.line("left_over", &quoted(left_over.word()));
            }
        }
        for change in &mode.servers {
            self.header("[[mode.server]]");
            self.line("name", &quoted(&change.server));
            if let Some(capacity) = change.capacity {
                self.span("budget", capacity.budget);
                self.span("period", capacity.period);
            }
            if let Some(table) = &change.table {
                self.time_table(table);
            }
        }
    }

    fn interrupt(&mut self, interrupt: &Interrupt) {
        self.header("[[interrupt]]");
        self.line("name", &quoted(&interrupt.name));
        self.line("cpu", &interrupt.cpu.0.to_string());
        self.span("separation", interrupt.separation);
        self.span("cost", interrupt.cost);
        if interrupt.throttling != Throttling::None {
            self.line("throttling", &quoted(interrupt.throttling.word()));
        }
        if let Throttling::Moderated { interval } = interrupt.throttling {
            self.span("interval", interval);
        }
        if let Throttling::Threshold { free } = interrupt.throttling {
            self.line("free", &free.to_string());
        }
    }

    fn device(&mut self, device: &Device) {
        self.header("[[device]]");
        self.line("name", &quoted(&device.name));
        self.line("cpu", &device.cpu.0.to_string());
        if let Some(interrupt) = &device.interrupt {
            self.line("interrupt", &quoted(interrupt));
        }
        self.line("class", &quoted(device.class.word()));
        self.line("service", &quoted(device.service.word()));
        match &device.service {
            DeviceService::Interrupt => {}
            DeviceService::Softirq { rounds, poll_budget } => {
                self.line("rounds", &rounds.to_string());
                self.line("poll_budget", &poll_budget.to_string());
            }
            DeviceService::Thread { priority, rule, users } => {
                if let Some(priority) = priority {
                    self.line("priority", &priority.number().to_string());
                }
                self.line("rule", &quoted(rule.word()));
                if !users.is_empty() {
                    self.line("users", &texts(users));
                }
            }
            DeviceService::Server { server } => self.line("server", &quoted(server)),
        }
        self.span("separation", device.separation);
        self.span("cost", device.cost);
        if device.least_cost != device.cost {
            self.span("least_cost", device.least_cost);
        }
        if !device.spread.is_zero() {
            self.span("spread", device.spread);
        }
        if let Some(arrivals) = &device.arrivals {
            self.line("arrivals", &durations(arrivals));
        }
        self.maybe_span("latency", device.latency);
        if device.slots != 1 {
            self.line("slots", &device.slots.to_string());
        }
        if device.order != RequestOrder::Fifo {
            self.line("order", &quoted(device.order.word()));
        }
        if let Some(admission) = device.admission {
            self.span("admission_cost", admission.cost);
            self.span("admission_separation", admission.separation);
        }
        self.line("ring", &device.ring.to_string());
        self.maybe_span("deadline", device.deadline);
        if device.is_soft {
            self.line("constraint", &quoted("soft"));
        }
    }

    fn request(&mut self, request: &Request) {
        self.header("[[request]]");
        self.line("name", &quoted(&request.name));
        self.line("task", &quoted(&request.task));
        self.line("device", &quoted(&request.device));
        self.line("kind", &quoted(request.kind.word()));
        self.span("after", request.after);
        self.line("mode", &quoted(request.mode.word()));
        self.maybe_span("deadline", request.deadline);
        if let Some(arrivals) = &request.arrivals {
            self.line("arrivals", &durations(arrivals));
        }
    }

    fn interference(&mut self, interference: &Interference) {
        self.header("[[interference]]");
        self.line("name", &quoted(&interference.name));
        self.line("cpu", &interference.cpu.0.to_string());
        self.line("utilisation", &decimal::text(interference.utilisation_ppb, UTILISATION_PLACES as usize));
        self.span("period", interference.period);
    }
}

fn segments(graph: &SegmentGraph) -> String {
    let is_plain = |(index, segment): (usize, &Segment)| {
        segment.bcet == segment.wcet && segment.name == (index + 1).to_string()
    };
    if graph.is_sequence() && graph.segments.iter().enumerate().all(is_plain) {
        let wcets: Vec<Span> = graph.segments.iter().map(|segment| segment.wcet).collect();
        return durations(&wcets);
    }
    let mut out = String::from("[\n");
    for segment in &graph.segments {
        let _ = write!(
            out,
            "  {{ name = {}, bcet = {}, wcet = {}",
            quoted(&segment.name),
            duration(segment.bcet),
            duration(segment.wcet)
        );
        if !segment.next.is_empty() {
            let next: Vec<String> =
                segment.next.iter().map(|&next| quoted(&graph.segments[next].name)).collect();
            let _ = write!(out, ", next = [{}]", next.join(", "));
        }
        out.push_str(" },\n");
    }
    out.push(']');
    out
}

fn body_table(body: &Body) -> String {
    match body {
        Body::Spin(SpinTarget::Total(span)) => format!("{{ spin = {} }}", duration(*span)),
        Body::Spin(SpinTarget::PerSegment(spans)) => format!("{{ spin = {} }}", durations(spans)),
        Body::Spin(SpinTarget::Fraction(ppm)) => {
            format!("{{ spin = {} }}", decimal::text(u64::from(*ppm), FRACTION_PLACES as usize))
        }
        Body::Library { library, symbol, init, exit, arguments } => {
            let mut out = format!("{{ library = {}, symbol = {}", quoted(library), quoted(symbol));
            for (key, name) in [("init", init), ("exit", exit)] {
                if let Some(name) = name {
                    let _ = write!(out, ", {key} = {}", quoted(name));
                }
            }
            if !arguments.is_empty() {
                let _ = write!(out, ", arguments = {}", texts(arguments));
            }
            out.push_str(" }");
            out
        }
        Body::Command(words) => format!("{{ command = {} }}", texts(words)),
    }
}

fn duration(span: Span) -> String {
    format!("\"{span}\"")
}

fn durations(spans: &[Span]) -> String {
    let all: Vec<String> = spans.iter().copied().map(duration).collect();
    format!("[{}]", all.join(", "))
}

fn texts(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", all.join(", "))
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
