//! The conformance suite of schedulers: small systems, and who must get the processor in which order. The same
//! scenarios run in the simulator and on Linux threads.
//!
//! Everything that decides lies at least 4 ms apart, and no job's order depends on whether it executes its wcet or a
//! tenth less, so that a real machine can follow. The scenarios that name an instant of simultaneous events
//! ([`Scenario::exact`]) are for virtual time alone.

/// One small system and the order that it must show.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// What it is called.
    pub name: &'static str,
    /// The rule that it checks.
    pub rule: &'static str,
    /// The keys of `[system]` besides the name.
    head: &'static str,
    /// The tasks, one a line.
    tasks: &'static [&'static str],
    /// How long to run, in milliseconds.
    pub for_ms: u64,
    /// Each time a job gets the processor, first or again: task and job, in order.
    pub order: &'static [(&'static str, u64)],
    /// How often each task yields at a preemption point; tasks that never do are left out.
    pub yields: &'static [(&'static str, u64)],
    /// Whether it depends on events at the very same instant: for virtual time alone.
    pub exact: bool,
}

impl Scenario {
    /// The system file, for this processor.
    #[must_use]
    pub fn system(&self, cpu: u32) -> String {
        let mut text = format!(
            "[system]\nname = \"{}\"\n{}\n[platform]\ncpus = [{cpu}]\n",
            self.name,
            self.head.split("; ").filter(|key| !key.starts_with("tick")).collect::<Vec<_>>().join("\n")
        );
        for tick in self.head.split("; ").filter(|key| key.starts_with("tick")) {
            text += &format!("{tick}\n");
        }
        for task in self.tasks {
            text += &format!("[[task]]\n{}\n", task.replace("; ", "\n"));
        }
        text
    }

    /// Compares an observed order with the expected one.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn check(&self, observed: &[(String, u64)]) -> Result<(), String> {
        let seen = observed.iter().map(|(task, job)| (task.as_str(), *job));
        if seen.clone().eq(self.order.iter().copied()) {
            return Ok(());
        }
        let place = seen.clone().zip(self.order).take_while(|(seen, expected)| seen == *expected).count();
        Err(format!(
            "{}: at place {place} {:?} got the processor, not {:?} ({})",
            self.name,
            observed.get(place),
            self.order.get(place),
            self.rule
        ))
    }
}

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "preempt and resume",
        rule: "a more important job displaces a preemptible one, which goes on afterwards",
        head: "",
        tasks: &[
            "name = \"high\"; period = \"200 ms\"; offset = \"10 ms\"; wcet = \"10 ms\"; priority = 9",
            "name = \"low\"; period = \"200 ms\"; offset = \"0 ms\"; wcet = \"30 ms\"; priority = 1",
        ],
        for_ms: 100,
        order: &[("low", 0), ("high", 0), ("low", 0)],
        yields: &[],
        exact: false,
    },
    Scenario {
        name: "equals in order",
        rule: "equals run first in, first out; a preempted one keeps its place at the head",
        head: "",
        tasks: &[
            "name = \"a\"; period = \"400 ms\"; offset = \"10 ms\"; wcet = \"10 ms\"; priority = 5",
            "name = \"b\"; period = \"400 ms\"; offset = \"0 ms\"; wcet = \"40 ms\"; priority = 5",
            "name = \"c\"; period = \"400 ms\"; offset = \"5 ms\"; wcet = \"10 ms\"; priority = 5",
            "name = \"high\"; period = \"400 ms\"; offset = \"20 ms\"; wcet = \"10 ms\"; priority = 9",
        ],
        for_ms: 200,
        order: &[("b", 0), ("high", 0), ("b", 0), ("c", 0), ("a", 0)],
        yields: &[],
        exact: false,
    },
    Scenario {
        name: "non-preemptive",
        rule: "a job that is not preemptible runs to its end; then the most important goes first",
        head: "",
        tasks: &[
            "name = \"mid\"; period = \"400 ms\"; offset = \"10 ms\"; wcet = \"10 ms\"; priority = 5",
            "name = \"high\"; period = \"400 ms\"; offset = \"20 ms\"; wcet = \"10 ms\"; priority = 9",
            "name = \"low\"; period = \"400 ms\"; offset = \"0 ms\"; wcet = \"40 ms\"; priority = 1; preemption = \
             \"non-preemptive\"",
        ],
        for_ms: 200,
        order: &[("low", 0), ("high", 0), ("mid", 0)],
        yields: &[],
        exact: false,
    },
    Scenario {
        name: "deferred",
        rule: "a deferred job gives way at its next preemption point, and only where somebody waits",
        head: "",
        tasks: &[
            "name = \"high\"; period = \"400 ms\"; offset = \"35 ms\"; wcet = \"10 ms\"; priority = 9",
            "name = \"low\"; period = \"400 ms\"; offset = \"0 ms\"; priority = 1; preemption = \"deferred\"; segments \
             = [\"20 ms\", \"30 ms\", \"20 ms\"]",
        ],
        for_ms: 200,
        order: &[("low", 0), ("high", 0), ("low", 0)],
        yields: &[("low", 1)],
        exact: false,
    },
    Scenario {
        name: "equals never make each other yield",
        rule: "at a preemption point only a strictly more important job goes first",
        head: "",
        tasks: &[
            "name = \"equal\"; period = \"400 ms\"; offset = \"5 ms\"; wcet = \"10 ms\"; priority = 1",
            "name = \"low\"; period = \"400 ms\"; offset = \"0 ms\"; priority = 1; preemption = \"deferred\"; segments \
             = [\"20 ms\", \"20 ms\", \"20 ms\"]",
        ],
        for_ms: 200,
        order: &[("low", 0), ("equal", 0)],
        yields: &[],
        exact: false,
    },
    Scenario {
        name: "modes of preemption mix",
        rule: "a deferred job is displaced at points only, by preemptible and non-preemptive jobs alike",
        head: "",
        tasks: &[
            "name = \"high\"; period = \"400 ms\"; offset = \"40 ms\"; wcet = \"10 ms\"; priority = 9",
            "name = \"solid\"; period = \"400 ms\"; offset = \"10 ms\"; wcet = \"40 ms\"; priority = 6; preemption = \
             \"non-preemptive\"",
            "name = \"cut\"; period = \"400 ms\"; offset = \"5 ms\"; priority = 5; preemption = \"deferred\"; segments = \
             [\"20 ms\", \"20 ms\"]",
            "name = \"low\"; period = \"400 ms\"; offset = \"0 ms\"; wcet = \"20 ms\"; priority = 1",
        ],
        for_ms: 300,
        order: &[("low", 0), ("cut", 0), ("solid", 0), ("high", 0), ("cut", 0), ("low", 0)],
        yields: &[("cut", 1)],
        exact: false,
    },
    Scenario {
        name: "jobs of a task queue",
        rule: "several pending jobs of one task run first in, first out",
        head: "",
        tasks: &[
            "name = \"late\"; arrivals = [\"0 ms\", \"40 ms\", \"80 ms\"]; wcet = \"20 ms\"; priority = 5",
            "name = \"high\"; period = \"400 ms\"; offset = \"5 ms\"; wcet = \"100 ms\"; priority = 9",
        ],
        for_ms: 300,
        order: &[("late", 0), ("high", 0), ("late", 0), ("late", 1), ("late", 2)],
        yields: &[],
        exact: false,
    },
    Scenario {
        name: "aperiodic arrivals",
        rule: "aperiodic jobs are served at their priority",
        head: "",
        tasks: &[
            "name = \"alarm\"; arrivals = [\"10 ms\", \"60 ms\"]; wcet = \"10 ms\"; priority = 5",
            "name = \"high\"; period = \"400 ms\"; offset = \"55 ms\"; wcet = \"20 ms\"; priority = 9",
            "name = \"low\"; period = \"400 ms\"; offset = \"0 ms\"; wcet = \"30 ms\"; priority = 1",
        ],
        for_ms: 200,
        order: &[("low", 0), ("alarm", 0), ("low", 0), ("high", 0), ("alarm", 1)],
        yields: &[],
        exact: false,
    },
    Scenario {
        name: "earliest deadline first",
        rule: "an earlier absolute deadline displaces; a later one waits",
        head: "policy = \"edf\"",
        tasks: &[
            "name = \"long\"; period = \"400 ms\"; deadline = \"200 ms\"; offset = \"0 ms\"; wcet = \"50 ms\"",
            "name = \"soon\"; period = \"400 ms\"; deadline = \"60 ms\"; offset = \"10 ms\"; wcet = \"20 ms\"",
            "name = \"last\"; period = \"400 ms\"; deadline = \"300 ms\"; offset = \"15 ms\"; wcet = \"10 ms\"",
        ],
        for_ms: 300,
        order: &[("long", 0), ("soon", 0), ("long", 0), ("last", 0)],
        yields: &[],
        exact: false,
    },
    Scenario {
        name: "non-preemptive earliest deadline first",
        rule: "a job that is not preemptible runs to its end under EDF too; then the earliest deadline",
        head: "policy = \"edf\"",
        tasks: &[
            "name = \"long\"; period = \"400 ms\"; deadline = \"300 ms\"; offset = \"0 ms\"; wcet = \"50 ms\"; preemption \
             = \"non-preemptive\"",
            "name = \"mid\"; period = \"400 ms\"; deadline = \"150 ms\"; offset = \"10 ms\"; wcet = \"10 ms\"",
            "name = \"soon\"; period = \"400 ms\"; deadline = \"80 ms\"; offset = \"20 ms\"; wcet = \"10 ms\"",
        ],
        for_ms: 300,
        order: &[("long", 0), ("soon", 0), ("mid", 0)],
        yields: &[],
        exact: false,
    },
    Scenario {
        name: "ticks",
        rule: "a release between ticks is noticed at the next one",
        head: "tick = \"20 ms\"",
        tasks: &[
            "name = \"high\"; period = \"400 ms\"; offset = \"5 ms\"; wcet = \"10 ms\"; priority = 9",
            "name = \"low\"; period = \"400 ms\"; offset = \"0 ms\"; wcet = \"15 ms\"; priority = 1",
        ],
        for_ms: 100,
        // At once it would displace low at 5 ms; at the tick low has finished.
        order: &[("low", 0), ("high", 0)],
        yields: &[],
        exact: false,
    },
    Scenario {
        name: "completion before release",
        rule: "at one instant a job completes before another is released",
        head: "",
        tasks: &[
            "name = \"high\"; period = \"400 ms\"; offset = \"20 ms\"; wcet = \"10 ms\"; priority = 9",
            "name = \"low\"; period = \"400 ms\"; offset = \"0 ms\"; wcet = \"20 ms\"; priority = 1",
        ],
        for_ms: 100,
        order: &[("low", 0), ("high", 0)],
        yields: &[],
        exact: true,
    },
    Scenario {
        name: "release at a preemption point",
        rule: "what is released at the instant of a preemption point goes first there",
        head: "",
        tasks: &[
            "name = \"high\"; period = \"400 ms\"; offset = \"20 ms\"; wcet = \"10 ms\"; priority = 9",
            "name = \"low\"; period = \"400 ms\"; offset = \"0 ms\"; priority = 1; preemption = \"deferred\"; segments = \
             [\"20 ms\", \"20 ms\"]",
        ],
        for_ms: 100,
        order: &[("low", 0), ("high", 0), ("low", 0)],
        yields: &[("low", 1)],
        exact: true,
    },
    Scenario {
        name: "ties of deadlines",
        rule: "equal deadlines: the running job, then the earlier release, then the lower task",
        head: "policy = \"edf\"",
        tasks: &[
            "name = \"third\"; period = \"400 ms\"; deadline = \"80 ms\"; offset = \"20 ms\"; wcet = \"10 ms\"",
            "name = \"fourth\"; period = \"400 ms\"; deadline = \"80 ms\"; offset = \"20 ms\"; wcet = \"10 ms\"",
            "name = \"second\"; period = \"400 ms\"; deadline = \"90 ms\"; offset = \"10 ms\"; wcet = \"10 ms\"",
            "name = \"first\"; period = \"400 ms\"; deadline = \"100 ms\"; offset = \"0 ms\"; wcet = \"40 ms\"",
        ],
        for_ms: 200,
        order: &[("first", 0), ("second", 0), ("third", 0), ("fourth", 0)],
        yields: &[],
        exact: true,
    },
];
