//! Which crates have small faults put into them, and which tests must notice.

/// A crate and the tests that judge it.
#[derive(Debug)]
pub(super) struct Subject {
    /// The name on the command line and in the record.
    pub(super) name: &'static str,
    /// Its root, for the switch.
    pub(super) root: &'static str,
    /// The folder of the sources that get faults.
    pub(super) sources: &'static str,
    /// Words for `cargo test`, one group after the other: the crate's own tests first.
    pub(super) stages: &'static [&'static [&'static str]],
    /// The tests run real processes and threads: one program at a time, and a failure counts when it comes again.
    pub(super) is_real: bool,
}

/// All of them.
pub(super) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "sched",
        root: "core/sched/src/lib.rs",
        sources: "core/sched/src",
        stages: &[
            &["-p", "horolog-sched", "--lib", "--tests"],
            &["-p", "horolog-sim", "--lib", "--tests"],
            &["-p", "horolog-testkit", "--lib", "--tests"],
            // What is in doubt after a loss is judged there alone.
            &["-p", "horolog-verify", "--lib", "--tests"],
        ],
        is_real: false,
    },
    // The same faults, and only the comparison with the reference simulator to notice them.
    Subject {
        name: "reference",
        root: "core/sched/src/lib.rs",
        sources: "core/sched/src",
        stages: &[&["-p", "horolog-testkit", "--test", "reference"]],
        is_real: false,
    },
    Subject {
        name: "analysis",
        root: "engines/analysis/src/lib.rs",
        sources: "engines/analysis/src",
        stages: &[
            &["-p", "horolog-analysis", "--lib", "--tests"],
            // Bounds against simulated responses.
            &[
                "-p",
                "horolog-testkit",
                "--test",
                "driver_bounds",
                "--test",
                "fixed_priority_bounds",
                "--test",
                "server_bounds",
                "--test",
                "waiting_bounds",
            ],
        ],
        is_real: false,
    },
    Subject {
        name: "certificate",
        root: "engines/certificate/src/lib.rs",
        sources: "engines/certificate/src",
        stages: &[
            &["-p", "horolog-certificate", "--lib", "--tests"],
            &["-p", "horolog-analysis", "--test", "certificate"],
        ],
        is_real: false,
    },
    Subject {
        name: "verify",
        root: "engines/verify/src/lib.rs",
        sources: "engines/verify/src",
        stages: &[&["-p", "horolog-verify", "--lib", "--tests"]],
        is_real: false,
    },
    Subject {
        name: "guardian",
        root: "floor/sys/src/lib.rs",
        sources: "floor/sys/src/guardian",
        stages: &[&[
            "-p",
            "horolog-sys",
            "--lib",
            "--test",
            "guardian",
            "--test",
            "guardian_undo",
            "--test",
            "guardian_process",
            "--test",
            "network",
        ]],
        is_real: true,
    },
];

/// The subject of this name.
pub(super) fn subject(name: &str) -> Option<&'static Subject> {
    SUBJECTS.iter().find(|subject| subject.name == name)
}
