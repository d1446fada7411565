//! The proposal as a system file, each value with its evidence as comments.

use super::pattern::Pattern;
use super::proposal::{Arrival, Proposal, Values, text};
use super::task::{Class, TaskProposal};
use horolog_time::Span;
use std::collections::BTreeSet;
use std::fmt::Write as _;

impl Proposal {
    /// The system file.
    ///
    /// # Errors
    /// Where there is no task, or the text would not be a system file (a fault of horolog's own, told in full).
    pub fn to_toml(&self) -> Result<String, String> {
        if self.tasks.is_empty() {
            return Err("no thread became a task".to_owned());
        }
        let text = Printer { text: String::new() }.proposal(self);
        match horolog_model::file::read(&text, "the proposed system", &[]) {
            Ok(_) => Ok(text),
            Err(errors) => {
                Err(format!("the proposal is not a valid system file; please report this:\n{errors}"))
            }
        }
    }
}

struct Printer {
    text: String,
}

impl Printer {
    fn line(&mut self, line: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn comment(&mut self, words: &str) {
        for line in wrapped(words, 116) {
            let _ = writeln!(self.text, "# {line}");
        }
    }

    fn proposal(mut self, proposal: &Proposal) -> String {
        self.head(proposal);
        self.line("");
        self.line("[system]");
        self.line(&format!("name = {}", quoted(&proposal.name)));
        self.line(&format!("policy = {}", quoted(proposal.policy)));
        if proposal.policy == "fixed-priority" && !proposal.priorities_known {
            self.comment("The record tells no priorities.");
            self.line("priorities = \"deadline-monotonic\"");
        }
        self.unmodelled(proposal);
        self.line("");
        self.line("[platform]");
        let cpus: Vec<String> = super::load::cpus(&proposal.tasks).iter().map(u32::to_string).collect();
        self.line(&format!("cpus = [{}]", cpus.join(", ")));
        self.comment(
            "`horolog measure costs` finds this machine's context_switch, timer_interrupt, release_latency.",
        );
        self.resources(proposal);
        for (task, values) in &proposal.tasks {
            self.task(proposal, task, values);
            self.sections(proposal, task);
        }
        self.background(proposal);
        self.text
    }

    fn head(&mut self, proposal: &Proposal) {
        let seen = &proposal.observation;
        self.comment(&format!(
            "Proposed by `{}`: {} for {}.",
            seen.command,
            seen.what,
            text(seen.duration_ns)
        ));
        self.comment(
            "What was observed is not a bound: a wcet is the greatest of the executions seen, a separation the least \
             distance. Above each value stands what it rests on.",
        );
        self.comment(&format!(
            "Record: {} events, {} lost, {} breaks of the chain of switches; jobs that one of them touches are set aside.",
            seen.events, seen.lost, seen.broken
        ));
        if seen.stolen_ns > 0 {
            self.comment(&format!(
                "The host took {} of this machine's time; jobs that it has probably lengthened are set aside.",
                text(seen.stolen_ns)
            ));
        }
        if proposal.options.margin_permille > 0 {
            let percent = proposal.options.margin_permille as f64 / 10.0;
            self.comment(&format!("Margin on every wcet: {percent} %."));
        }
        for note in &seen.notes {
            self.comment(note);
        }
    }

    fn task(&mut self, proposal: &Proposal, task: &TaskProposal, values: &Values) {
        self.line("");
        self.line("[[task]]");
        let thread = &task.thread;
        let changed = if thread.class_changed { ", which changed meanwhile" } else { "" };
        let tid = if thread.tid == 0 { String::new() } else { format!("Thread {} ", thread.tid) };
        let comm = thread.comm.escape_debug();
        self.comment(&format!("{tid}`{comm}`, {}{changed}.", thread.class.describe()));
        self.comment(&format!("Confidence {}: {}.", task.confidence.word(), task.reasons.join("; ")));
        self.role(task);
        self.line(&format!("name = {}", quoted(&task.name)));
        self.arrival(task, values);
        self.execution(proposal, task, values);
        if let Some(priority) = values.priority {
            match thread.class {
                Class::Fifo { .. } | Class::Modelled { .. } | Class::Edf { .. } => {}
                Class::RealTime { .. } => {
                    self.comment("The record does not tell SCHED_FIFO from SCHED_RR, under which equals share the processor by time slices.");
                }
                Class::RoundRobin { .. } => {
                    self.comment("SCHED_RR: equals share the processor by time slices, which the analysis does not model.");
                }
                Class::Deadline { .. } => {
                    self.comment(
                        "SCHED_DEADLINE beside fixed priorities: the kernel serves it above them all.",
                    );
                }
                Class::Normal { .. } => {
                    self.comment("An ordinary class: placed below all priorities, although the kernel shares time there.");
                }
                Class::Unknown => self.comment("The record does not tell its priority."),
            }
            self.line(&format!("priority = {priority}"));
        }
        self.place(task, values);
        self.line(&format!("body = {{ spin = {} }}", duration(values.spin)));
    }

    /// What the record does not tell, and shared locks that the file cannot say: nothing is proved beside them.
    fn unmodelled(&mut self, proposal: &Proposal) {
        let left_out = proposal.unmodelled();
        if left_out.is_empty() {
            return;
        }
        self.comment("What the file does not say: nothing is proved. Take out a line that does not matter, or that you have looked after.");
        self.line("unmodelled = [");
        for words in left_out {
            let words: String = words.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            self.line(&format!("  {},", quoted(&words)));
        }
        self.line("]");
    }

    /// Shared locks.
    fn resources(&mut self, proposal: &Proposal) {
        for resource in &proposal.locks.resources {
            self.line("");
            self.line("[[resource]]");
            let more = match resource.protocol {
                "none" => {
                    "A mutex without priority inheritance: how long a task waits for it depends on every task between it and who holds it, so \
                     no bound is known. With `inheritance` or `ceiling` there is one: `horolog run --locks` gives them to an unmodified program."
                }
                "inheritance" => "A mutex with priority inheritance.",
                _ => "A mutex with a priority ceiling.",
            };
            self.comment(more);
            self.line(&format!("name = {}", quoted(&resource.name)));
            self.line(&format!("protocol = {}", quoted(resource.protocol)));
        }
    }

    /// The sections of a task; they end its table.
    fn sections(&mut self, proposal: &Proposal, task: &TaskProposal) {
        for resource in &proposal.locks.resources {
            let Some(section) = resource.sections.iter().find(|section| section.task == task.name) else {
                continue;
            };
            let seen = task.locks.iter().find(|lock| lock.lock == resource.name);
            if let Some(seen) = seen {
                let slept = match seen.slept_max_ns {
                    0 => String::new(),
                    slept => format!(", of which it slept up to {} in one", text(slept)),
                };
                self.comment(&format!(
                    "The longest of {} sections{slept}. Where it lies in a job was not looked at: the bounds do not depend on it.",
                    seen.held.count
                ));
            }
            self.line("  [[task.section]]");
            self.line(&format!("  resource = {}", quoted(&resource.name)));
            self.line(&format!("  from = {}", duration(section.from_ns)));
            self.line(&format!("  length = {}", duration(section.length_ns)));
        }
    }

    /// What sort of program it is, where what it waits for tells.
    fn role(&mut self, task: &TaskProposal) {
        let files: Vec<String> = task
            .thread
            .files
            .iter()
            .map(|(kind, count)| format!("{kind} (at most {count} at once)"))
            .collect();
        let kinds = &task.reading.separator.kinds;
        if task.is_event_loop() {
            let names: BTreeSet<&str> = kinds.iter().map(|kind| kind.wait.name()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            let by = if files.is_empty() {
                "files that the record does not tell".to_owned()
            } else {
                files.join(", ")
            };
            self.comment(&format!(
                "An event loop: it waits in {} for any of several files and works off what has come. Activated by: {by}.",
                names.join(" or ")
            ));
        } else if !kinds.is_empty() && kinds.iter().all(|kind| kind.wait == super::event::WaitKind::Socket) {
            self.comment("A server of one socket: it waits until something arrives there.");
        }
    }

    fn arrival(&mut self, task: &TaskProposal, values: &Values) {
        let jobs = &task.reading.jobs;
        let timed = jobs.iter().filter(|job| job.nominal_ns.is_some()).count();
        let kinds: Vec<&str> = task
            .reading
            .separator
            .kinds
            .iter()
            .map(|kind| kind.wait.name())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        if kinds.is_empty() {
            self.comment(&format!("{} jobs, as the trace tells them.", jobs.len()));
        } else {
            self.comment(&format!(
                "{} activations, {timed} of them at a timer's expiry; a job begins with the end of: {} ({}).",
                jobs.len(),
                kinds.join(", "),
                task.reading.rule
            ));
        }
        match (&values.arrival, &task.reading.pattern) {
            (Arrival::Period(period), Pattern::Periodic(fit)) => {
                self.period(task, *period, fit);
                self.line(&format!("period = {}", duration(*period)));
            }
            (Arrival::Separation(separation), Pattern::Sporadic { almost, .. }) => {
                self.separations(task);
                if let Some(almost) = almost {
                    self.comment(&format!("No period: {almost}."));
                }
                self.line(&format!("separation = {}", duration(*separation)));
            }
            (Arrival::Envelope { separation, .. }, _) => {
                self.separations(task);
                self.comment(
                    "Arrivals come in bursts closer than a job is long: mean distance as separation, and as jitter the \
                     greatest lead over it, which together contain every burst seen.",
                );
                self.line(&format!("separation = {}", duration(*separation)));
            }
            (Arrival::Portions { separation, .. }, pattern) => {
                if let Pattern::Periodic(fit) = pattern {
                    self.comment(&format!("The activations have a period of {}.", text(fit.period_ns)));
                } else {
                    self.separations(task);
                }
                self.cumulative(task);
                self.comment(
                    "The greatest execution at the distance of the arrivals is more than the processor gives. So a job of this task is \
                     no activation but the next portion of its execution, as long as the wcet, however many activations it \
                     takes: separation is the mean distance of portions, and jitter their greatest lead over it, so that \
                     every window of the record holds no more than the model allows.",
                );
                self.line(&format!("separation = {}", duration(*separation)));
            }
            (Arrival::Instants(instants), _) => {
                self.comment("Too few for a pattern: the arrivals themselves, from the first on.");
                let first = instants.first().copied().unwrap_or(0);
                let list: Vec<String> = instants.iter().map(|instant| duration(instant - first)).collect();
                self.line(&format!("arrivals = [{}]", list.join(", ")));
            }
            _ => {}
        }
        if let Some(deadline) = values.deadline {
            let observed = "Separation and jitter; the program's own deadline is not observable.";
            match (task.thread.class, &values.arrival) {
                (_, Arrival::Portions { .. }) => self.comment(observed),
                (Class::Deadline { .. }, _) => self.comment("The reservation's deadline."),
                (Class::Edf { .. } | Class::Modelled { .. }, _) => {
                    self.comment("The deadline of the trace's system file.")
                }
                (_, Arrival::Instants(_)) => self.comment(
                    "The greatest response seen: the order of priorities needs a deadline, and the record tells none.",
                ),
                (_, Arrival::Envelope { .. }) => self.comment(observed),
                _ => self.comment(
                    "Longer than the distance of arrivals: an overload, or a deadline that only you know.",
                ),
            }
            self.line(&format!("deadline = {}", duration(deadline)));
        }
        if values.jitter > 0 {
            if task.jitter.left_out > 0 {
                self.comment(&format!(
                    "Left out of the jitter: {} activations (at most 1 %) later than ten times the 99th percentile, up to {}: \
                     the machine's lateness rather than the program's.",
                    task.jitter.left_out,
                    text(task.jitter.latest_ns)
                ));
            }
            self.line(&format!("jitter = {}", duration(values.jitter)));
        }
    }

    fn period(&mut self, task: &TaskProposal, period: u64, fit: &super::arrivals::PeriodFit) {
        if fit.exact {
            self.comment("At least 95 % of the distances are exact multiples of the period.");
        } else {
            self.comment(&format!(
                "Fitted {:.1} ns, uncertain by {:.1} ns; rounded to {}.",
                fit.fitted_ns,
                fit.uncertainty_ns,
                text(fit.unit_ns)
            ));
        }
        if let Some(rate) = rate(period) {
            self.comment(&format!("That is {rate}."));
        }
        self.comment(&format!(
            "After its grid point: p50 {}, p99 {}, max {}; {} grid points without an activation, {} shared.",
            text(fit.residual(50.0)),
            text(fit.residual(99.0)),
            text(fit.residual(100.0)),
            fit.missing,
            fit.doubled
        ));
        if let Some(late) = task.lateness.as_ref().filter(|late| late.max_ns > 0) {
            self.comment(&format!(
                "Woken after its timer's expiry (the machine's release latency): p50 {}, p99 {}, max {}.",
                text(late.p50_ns),
                text(late.p99_ns),
                text(late.max_ns)
            ));
        }
        if let Class::Deadline { period_ns, .. } = task.thread.class
            && period_ns > 0
            && period_ns != period
        {
            self.comment(&format!("The reservation's period is {}.", text(period_ns)));
        }
        for (other, other_period) in task.reading.others.iter().take(2) {
            let kinds: BTreeSet<&str> = other.kinds.iter().map(|kind| kind.wait.name()).collect();
            let kinds: Vec<&str> = kinds.into_iter().collect();
            if *other_period != period {
                self.comment(&format!(
                    "Jobs that begin after {} would have the period {}.",
                    kinds.join(", "),
                    text(*other_period)
                ));
            }
        }
    }

    /// The curve of cumulative execution.
    fn cumulative(&mut self, task: &TaskProposal) {
        let wanted = [1, 2, 3, 5, 10, 100, 1_000];
        let points = task.curve.iter().filter(|point| wanted.contains(&point.jobs));
        let points: Vec<String> = points
            .filter_map(|point| Some(format!("{}: {}", point.jobs, text(point.executed_max_ns?))))
            .collect();
        if !points.is_empty() {
            self.comment(&format!(
                "So many consecutive activations executed at most: {}.",
                points.join("; ")
            ));
        }
    }

    fn separations(&mut self, task: &TaskProposal) {
        let wanted = [2, 3, 5, 10, 100];
        let points: Vec<String> = task
            .curve
            .iter()
            .filter(|point| wanted.contains(&point.jobs))
            .map(|point| format!("{}: {} to {}", point.jobs, text(point.least_ns), text(point.most_ns)))
            .collect();
        self.comment(&format!("So many consecutive arrivals span: {}.", points.join("; ")));
    }

    fn execution(&mut self, proposal: &Proposal, task: &TaskProposal, values: &Values) {
        let execution = &task.execution;
        self.comment(&format!(
            "{} executions: min {}, p50 {}, p90 {}, p99 {}, p99.9 {}, max {}; {} preemptions.",
            execution.count,
            text(execution.min_ns),
            text(execution.p50_ns),
            text(execution.p90_ns),
            text(execution.p99_ns),
            text(execution.p99_9_ns),
            text(execution.max_ns),
            task.preemptions
        ));
        let aside = task.set_aside;
        if aside.total() > 0 {
            self.comment(&format!(
                "Set aside: {} jobs with switches missing, {} that the host stopped or robbed, {} outliers, {} of start-up; \
                 the longest of them shows {}.",
                aside.chain,
                aside.pause,
                aside.outlier,
                aside.start,
                text(aside.longest_ns)
            ));
        }
        if task.outliers > 0 && aside.outlier == 0 {
            self.comment(&format!(
                "{} jobs (at most 1 %) executed longer than twice the 99th percentile and 100 us. If that is the machine (a \
                 virtual one that its host stops), `--outliers drop` sets them aside.",
                task.outliers
            ));
        }
        let sleeps = task.suspensions;
        if sleeps.count > 0 {
            let counted = if values.suspensions_counted {
                "counted in the wcet as if executed"
            } else if proposal.options.count_suspensions {
                "not counted in the wcet, since with them the processor would be overloaded"
            } else {
                "not counted in the wcet: the tests here do not allow for them"
            };
            self.comment(&format!(
                "Self-suspensions: {} in {} jobs, at most {} a job; the longest {}, in all of a job {} ({}); {counted}.",
                sleeps.count,
                sleeps.jobs,
                sleeps.most_a_job,
                text(sleeps.longest_ns),
                text(sleeps.longest_a_job_ns),
                task.other_sleeps.iter().map(|(kind, count)| format!("{} {count}", kind.wait.name())).collect::<Vec<_>>().join(", ")
            ));
        }
        let unknown = task.unclassified;
        if unknown.count > 0 && !unknown.counted && values.suspensions_counted {
            self.comment(&format!(
                "Of these, {} in {} jobs (at most one job in twenty) are for an unknown reason, up to {} in one job: they are \
                 not in the wcet.",
                unknown.count,
                unknown.jobs,
                text(unknown.longest_a_job_ns)
            ));
        }
        for lock in &task.locks {
            let executed = lock.executed_max_ns.map_or_else(
                || "an unknown time (switches are missing)".to_owned(),
                |most| format!("at most {}", text(most)),
            );
            self.comment(&format!(
                "Critical sections under {}, {}: {}, held p50 {}, max {}, executed {executed} under it, nested at most {} deep.",
                lock.lock.escape_debug(),
                lock.kind.describe(),
                lock.held.count,
                text(lock.held.p50_ns),
                text(lock.held.max_ns),
                lock.depth_max
            ));
        }
        self.line(&format!("wcet = {}", duration(values.wcet)));
        self.line(&format!("bcet = {}", duration(values.bcet)));
    }

    fn place(&mut self, task: &TaskProposal, values: &Values) {
        if !task.is_pinned() {
            let seen: Vec<String> = task
                .cpus
                .iter()
                .map(|(cpu, share)| format!("cpu {cpu} {:.1} %", *share as f64 / 10.0))
                .collect();
            let allowed = match &task.thread.allowed {
                Some(allowed) => format!("Not pinned: allowed on cpus {allowed:?}"),
                None => "The record does not tell where it may run".to_owned(),
            };
            self.comment(&format!(
                "{allowed}, executed on {}; assigned {}.",
                seen.join(", "),
                if values.cpu == task.cpu() {
                    "where it executed most"
                } else {
                    "where there is room for it"
                }
            ));
        }
        self.line(&format!("cpu = {}", values.cpu));
    }

    fn background(&mut self, proposal: &Proposal) {
        if proposal.background.is_empty() {
            return;
        }
        self.line("");
        self.comment("Threads that are not tasks here:");
        const MOST: usize = 40;
        if proposal.background.len() > MOST {
            self.comment(&format!("The {MOST} with the most execution of {}.", proposal.background.len()));
        }
        let mut background: Vec<_> = proposal.background.iter().collect();
        background.sort_by_key(|thread| (std::cmp::Reverse(thread.executed_ns), thread.tid));
        for thread in background.into_iter().take(MOST) {
            let place = thread.cpu.map_or_else(String::new, |cpu| format!(" mostly on cpu {cpu}"));
            self.comment(&format!(
                "- {} `{}`, {}: {} activations, executed {}{place}; {}.",
                thread.tid,
                thread.comm.escape_debug(),
                thread.class,
                thread.activations,
                text(thread.executed_ns),
                thread.why
            ));
        }
    }
}

/// Rates whose periods are no round number of nanoseconds: frames of sound in powers of two, pictures.
fn rate(period: u64) -> Option<String> {
    for hertz in [44_100_u64, 48_000, 88_200, 96_000, 192_000] {
        for frames in (4..=13).map(|power| 1_u64 << power) {
            if period.abs_diff(frames * 1_000_000_000 / hertz) <= 1 {
                return Some(format!("{frames} frames at {hertz} Hz"));
            }
        }
    }
    for hertz in [24_u64, 30, 60, 90, 120, 144] {
        if period.abs_diff(1_000_000_000 / hertz) <= 1 && 1_000_000_000 % hertz != 0 {
            return Some(format!("{hertz} Hz"));
        }
    }
    None
}

/// An exact duration as the system file writes it.
fn duration(ns: u64) -> String {
    quoted(&Span::from_ns(ns).to_string())
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Lines of at most `width` bytes, broken at blanks; control characters cannot end a comment.
fn wrapped(words: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split_whitespace() {
        let word: String = word.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(format!("  {word}")),
        }
    }
    lines
}
