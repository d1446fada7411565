//! The sections of the manual pages that the arguments do not tell: examples, exit status and files.

mod reserves;

/// What is written by hand of one verb.
pub(super) struct Page {
    /// The words of the verb; none of the command itself.
    pub(super) verb: &'static str,
    /// Commands, and what each does.
    pub(super) examples: &'static [(&'static str, &'static str)],
    /// Statuses, and what each means.
    pub(super) exit: &'static [(u8, &'static str)],
    /// Files that are read or written.
    pub(super) files: &'static [(&'static str, &'static str)],
}

type Lines<T> = &'static [(T, &'static str)];

const BAD: (u8, &str) = (2, "Bad input or usage; the message names file, line and column.");
const NOT_ALLOWED: (u8, &str) = (3, "This machine does not allow it; the message says the remedy.");

/// Of verbs that answer the three questions.
const VERDICT: Lines<u8> = &[
    (0, "Every gated question (proof, model, deadlines) is answered with yes."),
    (1, "One is answered with no: a deadline missed or refuted, the model or a bound violated."),
    BAD,
    NOT_ALLOWED,
    (4, "None is answered with no, and one is not decided. Trying again may decide it."),
];
/// Of verbs that print something.
const DONE: Lines<u8> = &[(0, "Done."), BAD];
/// Of verbs that read a trace.
const READ: Lines<u8> =
    &[(0, "The whole trace was read."), (1, "The trace is damaged; it was read up to there."), BAD];
/// Of verbs that start a command, or ask a process.
const RECORDED: Lines<u8> = &[
    (
        0,
        "The recording is whole, and the command, where one was started, ended with 0, or the time was over or a signal stopped the recording.",
    ),
    (1, "The recording is incomplete, or the command ended otherwise by itself."),
    BAD,
    (3, "This machine does not allow it, or the preload library is not installed."),
];
/// Of verbs that measure.
const MEASURED: Lines<u8> = &[(0, "Measured."), BAD, NOT_ALLOWED];
/// Of verbs that reach into a running program.
const SWITCHED: Lines<u8> = &[
    (0, "Done."),
    (2, "Bad input or usage: no such process, or one without triggers."),
    (3, "This user may not reach into the process; the message says the remedy."),
];

const REFUSED: (u8, &str) =
    (1, "Refused; the message says what would lose its guarantee, and the largest amount that is granted.");
const NO_DAEMON: (u8, &str) =
    (3, "No daemon answers, or this machine or user may not; the message says the remedy.");
/// Of verbs that ask the resource kernel.
const RESERVED: Lines<u8> = &[(0, "Done."), REFUSED, BAD, NO_DAEMON];
/// Of disks with reserves.
const DISK: Lines<u8> = &[
    (0, "Admitted, and no request was late."),
    (1, "A reserve is not admitted, or a request was done after what was promised."),
    BAD,
    (3, "No disk is served there, or this machine or user may not; the message says the remedy."),
    (4, "Nothing was read, or the service ended before its answer."),
];
const DISK_SOCKET: (&str, &str) = ("disk.sock", "The socket at which a disk is served.");
/// Of commands with a receive reserve.
const NETWORKED: Lines<u8> = &[
    (0, "The command ended with 0; else its status."),
    BAD,
    (
        3,
        "This machine or user may not, or another program looks at the packets of the device; the message says the remedy.",
    ),
];
/// Of allocations.
const ALLOCATED: Lines<u8> = &[
    (0, "There is an allocation."),
    (1, "There is none: no choice of set-points fits."),
    BAD,
    (4, "None was found, and that there is none is not proved."),
];
const SWEPT: Lines<u8> = &[
    (0, "Every block is there, or, of --dry-run, the estimate is made."),
    BAD,
    (4, "A signal ended it; the blocks that are done are kept."),
];
const RESERVES: (&str, &str) = ("/run/horologd/socket", "The socket of the daemon.");
const QUALITIES: (&str, &str) = ("conference.toml", "Resources, and applications with their set-points.");
const SYSTEM: (&str, &str) =
    ("system.toml", "The system file; /usr/share/doc/horolog/html/system-file.html describes every key.");
const PROFILE: (&str, &str) = (
    "~/.local/state/horolog/machine.toml",
    "The machine profile ($XDG_STATE_HOME/horolog/machine.toml) that gives the costs which the system file leaves out.",
);
const PROFILE_OF_ALL: (&str, &str) =
    ("/var/lib/horolog/machine.toml", "The machine profile of all users, where a user has none.");
const JOURNAL: (&str, &str) = (
    "/run/horolog",
    "What is changed on the machine for the time of a run ($XDG_RUNTIME_DIR/horolog where that is set, else /tmp/horolog-UID without root); horolog doctor --restore puts it back after a kill.",
);
const TRACE: (&str, &str) =
    ("trace.hrt", "A trace; /usr/share/doc/horolog/html/trace-format.html describes it.");
const RUNTIME: (&str, &str) = (
    "PREFIX/lib/horolog/libhorolog_trace.so",
    "The runtime that is preloaded into traced programs. HOROLOG_LIBRARY_PATH names another folder.",
);
const LOCKS: (&str, &str) =
    ("PREFIX/lib/horolog/libhorolog_locks.so", "The library that traces locks. It is preloaded likewise.");

/// All pages.
pub(super) fn pages() -> impl Iterator<Item = &'static Page> {
    PAGES.iter().chain(reserves::PAGES)
}

const PAGES: &[Page] = &[
    Page {
        verb: "",
        examples: &[
            ("horolog doctor", "Says what this machine allows, and the remedy for what it does not."),
            (
                "horolog loop system.toml",
                "Proves, simulates, runs and verifies the system, and writes one report page.",
            ),
            ("horolog trace record -- ./server --port 80", "Records the events of a program into trace.hrt."),
            (
                "horolog --include-dir",
                "Prints the folder of horolog.h and horolog/trace.h, for a compiler's -I.",
            ),
        ],
        exit: VERDICT,
        files: &[SYSTEM, PROFILE, PROFILE_OF_ALL, JOURNAL, RUNTIME, LOCKS],
    },
    Page {
        verb: "init",
        examples: &[
            ("horolog init", "Writes a commented system file for a robot into system.toml."),
            ("horolog init audio engine.toml", "The same for an audio engine under EDF, into engine.toml."),
            ("horolog init daemon -", "Prints one for a daemon of your own."),
        ],
        exit: &[(0, "Written."), (2, "Bad usage, or the file is there already (--force overwrites it).")],
        files: &[SYSTEM],
    },
    Page {
        verb: "check",
        examples: &[
            (
                "horolog check system.toml",
                "Prints the normalised model, or says what is wrong, where, and the remedy.",
            ),
            (
                "horolog check system.toml --set task.control.wcet='3 ms' --format json",
                "The same with another worst case, for scripts.",
            ),
            (
                "horolog check --from simso experiment.xml > system.toml",
                "Makes a system file of a simulation of SimSo.",
            ),
        ],
        exit: &[(0, "The file is a system."), BAD],
        files: &[SYSTEM],
    },
    Page {
        verb: "analyze",
        examples: &[
            (
                "horolog analyze system.toml",
                "Prints every task's bound, the test that gave it, and its source.",
            ),
            (
                "horolog analyze system.toml --explain control",
                "Says where the response time of one task goes.",
            ),
            (
                "horolog analyze system.toml --certificate proof.json",
                "Writes a certificate for horolog check-certificate.",
            ),
            (
                "horolog analyze system.toml --size-server events --machine none",
                "The largest budget of a server, with costs of zero.",
            ),
            (
                "horolog analyze system.toml --choose-spin-priority",
                "The best spin priority of each CPU, with the bounds of all that it may have.",
            ),
            (
                "horolog analyze system.toml --partition all --processors 4 --output placed.toml",
                "A CPU for each task whose `cpu` the file leaves out, and the file with them.",
            ),
        ],
        exit: &[
            (0, "Every hard deadline is proved."),
            (1, "A hard deadline is refuted, or a bound lies beyond it by the machine's costs."),
            BAD,
            (4, "No test decides, or the verb was stopped."),
        ],
        files: &[
            SYSTEM,
            PROFILE,
            PROFILE_OF_ALL,
            ("proof.json", "The certificate that --certificate writes."),
            (
                "pattern.json",
                "The release pattern that --counterexample writes, for horolog simulate --replay.",
            ),
        ],
    },
    Page {
        verb: "check-certificate",
        examples: &[(
            "horolog check-certificate system.toml proof.json",
            "Checks each claim with a checker that shares no code with the analysis.",
        )],
        exit: &[
            (0, "The certificate proves every hard deadline."),
            (1, "A claim is wrong, or the certificate proves a miss."),
            BAD,
            (4, "Every claim holds, and they do not prove all deadlines."),
        ],
        files: &[SYSTEM, ("proof.json", "The certificate."), PROFILE],
    },
    Page {
        verb: "simulate",
        examples: &[
            (
                "horolog simulate system.toml --for '10 s' --seed 7",
                "Runs ten seconds of virtual time; the same seed gives the same trace.",
            ),
            (
                "horolog simulate system.toml --execution wcet --jitter max --trace sim.hrt",
                "Every job takes its worst case; the trace is kept.",
            ),
            ("horolog simulate system.toml --replay pattern.json", "Runs a counterexample into its miss."),
        ],
        exit: VERDICT,
        files: &[SYSTEM, ("sim.hrt", "The trace that --trace writes.")],
    },
    Page {
        verb: "run",
        examples: &[
            (
                "horolog run system.toml --for '30 s' --trace run.hrt",
                "Runs the system with real threads, and keeps the trace.",
            ),
            (
                "horolog run system.toml --forever --trace /var/lib/horolog/control",
                "Runs until stopped; the flight recorder writes dumps into the folder.",
            ),
            (
                "horolog run system.toml --best-effort",
                "Runs under normal scheduling where real-time scheduling is not allowed.",
            ),
            (
                "horolog run --locks locks.toml -- ./program",
                "Starts a program, its mutexes under the protocols of a file; the exit status is the program's.",
            ),
        ],
        exit: VERDICT,
        files: &[
            SYSTEM,
            PROFILE,
            JOURNAL,
            ("/etc/horolog/NAME.toml", "The system that the service horolog@NAME runs for ever."),
            ("/var/lib/horolog/NAME", "The dumps of that service."),
        ],
    },
    Page {
        verb: "serve",
        examples: &[
            (
                "sudo horolog serve 4711 --budget '2 ms' --period '10 ms' --priority 50",
                "Gives thread 4711 two of every ten milliseconds at priority 50.",
            ),
            (
                "sudo horolog serve 4711 --budget '1 ms' --period '5 ms' --priority 40 --kind deferrable --for '60 s'",
                "The same by other rules, for a minute.",
            ),
        ],
        exit: &[(0, "The thread was served, and has its former class back."), BAD, NOT_ALLOWED],
        files: &[JOURNAL],
    },
    Page {
        verb: "verify",
        examples: &[
            (
                "horolog verify system.toml run.hrt",
                "Sorts what the trace shows into model violated, bound violated, machine disturbed.",
            ),
            (
                "horolog verify system.toml perf.data --map control=4711",
                "Reads a trace of perf, and says which thread is which task.",
            ),
            (
                "horolog verify system.toml run.hrt --strict --format json",
                "Wants every job judged and nothing disturbed, for scripts.",
            ),
        ],
        exit: VERDICT,
        files: &[
            SYSTEM,
            TRACE,
            ("TRACE.counterexample.json", "The release pattern beside a violated bound."),
            PROFILE,
        ],
    },
    Page {
        verb: "loop",
        examples: &[
            (
                "horolog loop system.toml",
                "Does all of it for ten seconds; then open horolog-out/report.html.",
            ),
            (
                "horolog loop system.toml --for '60 s' --out night --retries 3 --gate proof,model",
                "Longer, into another folder; a missed deadline alone is not a failure.",
            ),
        ],
        exit: VERDICT,
        files: &[
            SYSTEM,
            ("horolog-out/report.html", "The report page."),
            ("horolog-out/simulated.trace", "The trace of the simulation."),
            ("horolog-out/run.trace", "The trace of the run."),
            ("horolog-out/*.json", "The results."),
            PROFILE,
            PROFILE_OF_ALL,
            JOURNAL,
        ],
    },
    Page {
        verb: "trace",
        examples: &[
            (
                "horolog trace record --kernel -- ./server",
                "Records the program's events and the kernel's scheduling of it.",
            ),
            ("horolog trace stats trace.hrt", "Counts them."),
        ],
        exit: RECORDED,
        files: &[TRACE, RUNTIME, LOCKS],
    },
    Page {
        verb: "trace record",
        examples: &[
            (
                "horolog trace record -- ./server --port 80",
                "All its events, into trace.hrt, until it ends or Ctrl-C.",
            ),
            (
                "sudo horolog trace record --event 'net/*' --kernel --for '10 s' -o net.hrt -- ./server",
                "Some events, with the kernel's scheduling, for ten seconds.",
            ),
            (
                "horolog trace record --locks -- sqlite3 test.db",
                "The locks of any dynamically linked program.",
            ),
            (
                "horolog trace record --pid 4711 --for '5 s'",
                "A process that was started with HOROLOG_TRACE=listen.",
            ),
        ],
        exit: RECORDED,
        files: &[TRACE, RUNTIME, LOCKS],
    },
    Page {
        verb: "trace top",
        examples: &[
            ("horolog trace top -- ./server", "Counts the events of a command, live."),
            (
                "horolog trace top 4711 --interval '5 s' --format json",
                "Those of a running process, a line every five seconds.",
            ),
        ],
        exit: RECORDED,
        files: &[RUNTIME, LOCKS],
    },
    Page {
        verb: "trace show",
        examples: &[
            (
                "horolog trace show trace.hrt --task control --kind completion --limit 20",
                "The first twenty completions of one task.",
            ),
            (
                "horolog trace show trace.hrt --event 'net/*' --from '1 s' --until '2 s'",
                "User events of one second.",
            ),
        ],
        exit: READ,
        files: &[TRACE],
    },
    Page {
        verb: "trace stats",
        examples: &[(
            "horolog trace stats trace.hrt --event 'net/*' --histogram",
            "Counts, intervals and durations of some events.",
        )],
        exit: READ,
        files: &[TRACE],
    },
    Page {
        verb: "trace convert",
        examples: &[
            ("horolog trace convert trace.hrt trace.pftrace", "For ui.perfetto.dev."),
            (
                "horolog trace convert trace.hrt trace.parquet",
                "For data frames and databases: one row a record.",
            ),
            ("horolog trace convert trace.hrt trace.ctf", "A folder for babeltrace2 and Trace Compass."),
        ],
        exit: READ,
        files: &[
            TRACE,
            (
                "trace.parquet",
                "Columns: time_ns, kind, cpu, task, job, value, extra, event, thread, process, comm, prev_thread, next_thread, words, values.",
            ),
        ],
    },
    Page {
        verb: "trace enable",
        examples: &[(
            "horolog trace enable 4711 'queue/*'",
            "Enables triggers; stops the program for a moment, and says for how long.",
        )],
        exit: SWITCHED,
        files: &[("/proc/PID/mem", "The program's memory, in which the triggers are.")],
    },
    Page {
        verb: "trace disable",
        examples: &[("horolog trace disable 4711 'queue/*'", "Disables them again.")],
        exit: SWITCHED,
        files: &[("/proc/PID/mem", "The program's memory, in which the triggers are.")],
    },
    Page {
        verb: "trace events",
        examples: &[("horolog trace events 4711", "Lists names, types of arguments, and sites.")],
        exit: SWITCHED,
        files: &[("/proc/PID/mem", "The program's memory, in which the triggers are.")],
    },
    Page {
        verb: "trace locks",
        examples: &[
            (
                "horolog trace locks -- sqlite3 test.db",
                "How long a program holds its locks, how deeply they nest, who waits for whom.",
            ),
            (
                "horolog trace locks trace.hrt --top 5",
                "The same of a trace that horolog trace record --locks has written.",
            ),
        ],
        exit: &[
            (0, "Studied."),
            (1, "The record is damaged; it was studied up to there."),
            BAD,
            (3, "This machine does not allow it, or the preload library is not installed."),
        ],
        files: &[TRACE, LOCKS],
    },
    Page {
        verb: "trace diff",
        examples: &[(
            "horolog trace diff sim.hrt run.hrt",
            "What differs between two traces of the same tasks.",
        )],
        exit: DONE,
        files: &[TRACE],
    },
    Page {
        verb: "doctor",
        examples: &[
            ("horolog doctor", "What this machine allows, what each thing is needed for, and the remedy."),
            (
                "horolog doctor --for run",
                "Whether a run is possible, what is in its way now, and what to do first.",
            ),
            ("sudo horolog doctor --restore", "Puts back what a killed run has left changed."),
        ],
        exit: &[
            (0, "This machine allows a run, with --for that purpose; with --restore: all is put back."),
            (1, "It does not allow a run; with --restore: something is not put back."),
            BAD,
            NOT_ALLOWED,
        ],
        files: &[
            JOURNAL,
            ("/etc/security/limits.conf", "Where a group gets real-time priorities and locked memory."),
        ],
    },
    Page {
        verb: "measure",
        examples: &[
            ("sudo horolog measure machine", "Writes the profile that proofs take from then on."),
            (
                "horolog measure extract --pid 4711 --for '10 s'",
                "Proposes a system file for a running program.",
            ),
        ],
        exit: MEASURED,
        files: &[PROFILE, SYSTEM],
    },
    Page {
        verb: "measure costs",
        examples: &[
            ("sudo horolog measure costs --cpu 1 --for '5 s'", "Prints a [platform] section for CPU 1."),
            (
                "sudo horolog measure costs --interrupt disk,network --format json",
                "With interrupts of the disk and of a network.",
            ),
        ],
        exit: MEASURED,
        files: &[("/sys/kernel/tracing", "The kernel's record of interrupts.")],
    },
    Page {
        verb: "measure machine",
        examples: &[
            ("sudo horolog measure machine", "Writes the profile of this machine."),
            (
                "sudo horolog measure machine --cpu 2,3 --rounds 100 --out machine.toml",
                "Two processors, more rounds, another file.",
            ),
        ],
        exit: &[
            (0, "Measured, and the profile is written."),
            BAD,
            NOT_ALLOWED,
            (4, "Too few rounds were undisturbed."),
        ],
        files: &[PROFILE, PROFILE_OF_ALL],
    },
    Page {
        verb: "measure interference",
        examples: &[
            (
                "sudo horolog measure interference --out load.toml -- ping -f 10.0.0.1",
                "Bounds what a load takes from a thread, by length of interval.",
            ),
            (
                "sudo horolog measure interference --cpu 1 --trials night.trials --stretches 2000",
                "Resumable: goes on with what the file holds.",
            ),
        ],
        exit: &[(0, "Measured."), (1, "There is no bound for an entry."), BAD, NOT_ALLOWED],
        files: &[
            ("load.toml", "The [[interference]] entry that --out writes."),
            ("night.trials", "Every stretch that was measured, with --trials."),
        ],
    },
    Page {
        verb: "measure blocking",
        examples: &[(
            "sudo horolog measure blocking --load none,disk,net,fork --for '30 s'",
            "How late the most important thread wakes, under each load.",
        )],
        exit: MEASURED,
        files: &[("$TMPDIR", "Where the load disk writes, into files without names.")],
    },
    Page {
        verb: "measure extract",
        examples: &[
            (
                "sudo horolog measure extract --pid 4711 --for '10 s' --out model.toml",
                "Proposes a system file for a running program.",
            ),
            (
                "horolog measure extract --from perf.data --margin 20%",
                "From a recorded file, every worst case a fifth longer.",
            ),
            (
                "sudo horolog measure extract -- cyclictest -q -t 2 -p 90 -D 3",
                "Of a command, from its first instruction on.",
            ),
        ],
        exit: &[(0, "A system file is proposed."), (1, "No thread became a task."), BAD, NOT_ALLOWED],
        files: &[SYSTEM, TRACE],
    },
    Page {
        verb: "experiment",
        examples: &[("horolog experiment list", "Lists what there is.")],
        exit: &[
            (0, "No fact disagrees; the last line counts them."),
            (1, "A fact disagrees with the published one."),
            BAD,
            NOT_ALLOWED,
        ],
        files: &[("DIR", "The results, with --out.")],
    },
    Page {
        verb: "experiment list",
        examples: &[("horolog experiment list", "Lists names and sources.")],
        exit: DONE,
        files: &[("DIR", "None is read or written.")],
    },
    Page {
        verb: "experiment sets",
        examples: &[(
            "horolog experiment sets sets --tasks 8 --utilisation 0.5..0.95 --count 200 --seed 1",
            "Two hundred sets of eight tasks, the first with a utilisation of 0.5, the last with 0.95.",
        )],
        exit: DONE,
        files: &[("DIR", "The sets, one system file each.")],
    },
    Page {
        verb: "experiment run",
        examples: &[
            (
                "horolog experiment run aperiodic-1 --out results",
                "The published figure beside ours; goes on in the folder after a kill.",
            ),
            ("horolog experiment run mine.toml --real", "An experiment of your own, a part of it for real."),
        ],
        exit: &[
            (0, "No fact disagrees; the last line counts them."),
            (1, "A fact disagrees with the published one."),
            BAD,
            NOT_ALLOWED,
        ],
        files: &[
            ("results/results.parquet", "A row a run."),
            ("results/runs.jsonl", "The journal: a line a finished run."),
            ("results/plots", "The figures."),
        ],
    },
    Page {
        verb: "completions",
        examples: &[
            (
                "horolog completions bash > ~/.local/share/bash-completion/completions/horolog",
                "For one user of bash.",
            ),
            ("horolog completions zsh > ~/.zfunc/_horolog", "For zsh, where ~/.zfunc is in fpath."),
            ("horolog completions fish > ~/.config/fish/completions/horolog.fish", "For fish."),
        ],
        exit: DONE,
        files: &[(
            "PREFIX/share/bash-completion/completions/horolog",
            "Where the package puts those of bash.",
        )],
    },
    Page {
        verb: "man",
        examples: &[
            ("horolog man trace record | man -l -", "Shows the page of a verb where no pages are installed."),
            ("horolog man --out ~/.local/share/man/man1", "Writes every page where man finds it."),
        ],
        exit: DONE,
        files: &[("PREFIX/share/man/man1/horolog*.1.gz", "Where the package puts them.")],
    },
    Page {
        verb: "qos",
        examples: &[("horolog qos allocate conference.toml", "Which quality each application gets.")],
        exit: ALLOCATED,
        files: &[QUALITIES],
    },
    Page {
        verb: "qos allocate",
        examples: &[
            ("horolog qos allocate conference.toml", "Which quality each application gets."),
            (
                "horolog qos allocate conference.toml --from before.json",
                "The same after a change, with as few changes as possible.",
            ),
        ],
        exit: ALLOCATED,
        files: &[QUALITIES],
    },
    Page {
        verb: "sweep",
        examples: &[
            ("horolog sweep acceptance.toml --dry-run", "What it would take in time and on disk."),
            (
                "horolog sweep acceptance.toml --out results",
                "Every block that is not in the folder yet; the same command goes on where one was broken off.",
            ),
        ],
        exit: SWEPT,
        files: &[
            ("acceptance.toml", "The grid of recipes, the tests, the number of sets."),
            ("acceptance-sweep/rows/*/*.parquet", "One row a cell, block and test, or one a set and test."),
            (
                "acceptance-sweep/sweep.html",
                "A page: axis, tests and filter are chosen in it; it needs no network.",
            ),
            ("acceptance-sweep/sweep.json", "The result, with generator, seeds and version."),
            ("acceptance-sweep/*.svg", "The drawings."),
        ],
    },
];
