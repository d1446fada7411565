//! The words of the command line.

use crate::colour::When;
use crate::failure::{ErrorForm, Failure};
use crate::formats::{Formats, Offering, RowFormats};
use crate::trace_arguments::size;
use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use horolog_closed_loop::MachineChoice;
use horolog_closed_loop::verdict::{Asked, Gate, Question};
use horolog_experiments::WhenExhausted;
use horolog_interchange::Format as Foreign;
use horolog_time::Span;
use std::path::PathBuf;

use crate::commands::sets::{periods, share, utilisations};
pub(crate) use crate::init_arguments::InitArguments;
pub(crate) use crate::measure_arguments::MeasureVerb;
pub(crate) use crate::partition_arguments::PartitionArguments;
pub(crate) use crate::qos_arguments::QosVerb;
pub(crate) use crate::reserve_arguments::ReserveVerb;
pub(crate) use crate::serve_arguments::ServeArguments;
pub(crate) use crate::sweep_arguments::SweepArguments;
pub(crate) use crate::trace_arguments::TraceVerb;

/// The timing platform for real-time Linux: one system file, proved, simulated, run, traced and verified.
#[derive(Parser, Debug)]
#[command(name = "horolog", version, propagate_version = true, max_term_width = 110, after_help = EXIT_STATUS, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    /// Print the folder of the C headers (`horolog.h`, `horolog/trace.h`), for a compiler's `-I`.
    #[arg(long, exclusive = true)]
    pub(crate) include_dir: bool,
    /// Say nothing but results and errors.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Colour of results and messages; `auto`: on a terminal, unless NO_COLOR is set.
    // Taken before all else is parsed: see `early`.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, global = true)]
    pub(crate) color: When,
    /// How errors are printed on standard error, by every verb: in words, or as one line of JSON (`horolog.error/1`).
    // Taken before all else is parsed: see `early`.
    #[arg(long, value_enum, value_name = "FORM", default_value_t, global = true)]
    pub(crate) errors: ErrorForm,
}

const EXIT_STATUS: &str = "Exit status: 0 all that was asked holds; 1 a result says no; 2 bad input or usage; \
                           3 this machine does not allow it; 4 nothing says no, and something is not decided.";

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Write a commented system file to start from.
    Init(InitArguments),
    /// Read and validate system files; print the normalised model.
    Check(CheckArguments),
    /// Prove: every applicable test, with each task's response-time bound.
    Analyze(AnalyzeArguments),
    /// Check a certificate that `analyze --certificate` wrote, with an independent checker.
    CheckCertificate(CertificateArguments),
    /// Run the system in virtual time.
    Simulate(SimulateArguments),
    /// Run the system on this machine: real threads, real scheduling classes; or a program, its locks under protocols.
    Run(RunArguments),
    /// Put a thread that exists already under a server: a budget in every period at a real-time priority.
    Serve(ServeArguments),
    /// Ask the resource kernel `horologd` for an amount of processor time by a deadline.
    #[command(subcommand)]
    Reserve(ReserveVerb),
    /// Check a trace against the model's assumptions and against every bound.
    Verify(VerifyArguments),
    /// The main job: check, analyze, simulate, run, verify, and one report page.
    Loop(LoopArguments),
    /// Record, read, compare and convert traces.
    #[command(subcommand)]
    Trace(TraceVerb),
    /// Say what this machine allows, what each thing is needed for, and the remedy.
    Doctor(DoctorArguments),
    /// Probe this machine, or extract the model of a running program.
    #[command(subcommand)]
    Measure(MeasureVerb),
    /// Allocate resources to the qualities of applications.
    #[command(subcommand)]
    Qos(QosVerb),
    /// Test a grid of random task sets on every core: acceptance ratios in Parquet and drawings, resumable.
    Sweep(SweepArguments),
    /// Reproduce published experiments, and draw task sets for your own.
    #[command(subcommand)]
    Experiment(ExperimentVerb),
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print a manual page (roff), or write all of them.
    Man {
        /// The verb: `trace record`; none: the page of the command itself.
        #[arg(value_name = "VERB", conflicts_with = "out")]
        verb: Vec<String>,
        /// Write every page into this folder.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// The guardian process of a run; started by `run` itself.
    #[command(name = horolog_sys::guardian::SUBCOMMAND, hide = true)]
    Guardian,
}

/// A system file and the values that replace some of its own.
#[derive(Args, Debug)]
pub(crate) struct FileArguments {
    /// The system file; `-`: standard input.
    pub(crate) file: PathBuf,
    /// Replace a value: `--set task.control.wcet="3 ms"`; may be given again.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) overrides: Vec<String>,
}

/// Several system files, and the values that replace some of their own.
#[derive(Args, Debug)]
pub(crate) struct FilesArguments {
    /// The system files; `-`: standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Replace a value in each file: `--set task.control.wcet="3 ms"`; may be given again.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) overrides: Vec<String>,
}

impl FilesArguments {
    /// The words for each file.
    pub(crate) fn each(&self) -> impl Iterator<Item = FileArguments> + '_ {
        self.files.iter().map(|file| FileArguments { file: file.clone(), overrides: self.overrides.clone() })
    }
}

/// Where the machine's costs come from.
#[derive(Args, Debug)]
pub(crate) struct MachineArguments {
    /// The machine profile that gives the costs which [platform] leaves out (`horolog measure machine` writes one), or `measure`:
    /// now, or `none`: they count as zero. Default: the profile of this machine below $XDG_STATE_HOME, else in /var/lib/horolog.
    #[arg(long, value_name = "FILE|measure|none", value_parser = machine)]
    pub(crate) machine: Option<MachineChoice>,
}

fn machine(text: &str) -> Result<MachineChoice, String> {
    if text.is_empty() {
        return Err("give a file, `measure` or `none`".to_owned());
    }
    Ok(MachineChoice::of_text(text))
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// For scripts: the schemas of docs/contract.md.
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) files: FilesArguments,
    /// Print the system in which no job waits for a closed device: reads are asked for one job in advance, writes may take
    /// so many periods.
    #[arg(long, value_name = "PERIODS")]
    pub(crate) split_io: Option<u32>,
    /// Print servers in their long form, as schedulers, where one can say them.
    #[arg(long)]
    pub(crate) expand: bool,
    #[command(flatten)]
    pub(crate) convert: ConvertArguments,
    #[command(flatten)]
    pub(crate) format: Formats,
}

/// Files of other tools.
#[derive(Args, Debug)]
pub(crate) struct ConvertArguments {
    /// The files are in the format of another tool.
    #[arg(long, value_name = "FORMAT", value_parser = foreign, conflicts_with = "overrides")]
    pub(crate) from: Option<Foreign>,
    /// Print the system in the format of another tool.
    #[arg(long, value_name = "FORMAT", value_parser = written, conflicts_with = "expand")]
    pub(crate) to: Option<Foreign>,
    /// What one unit of time is in a format that has none of its own (np-csv, np-yaml, columns, mast, mast-xml).
    #[arg(long, value_name = "DURATION", value_parser = unit, default_value = "1 ms")]
    pub(crate) unit: Span,
}

fn foreign(text: &str) -> Result<Foreign, String> {
    of_formats(text, &Foreign::ALL)
}

fn written(text: &str) -> Result<Foreign, String> {
    let formats: Vec<Foreign> = Foreign::ALL.into_iter().filter(|format| format.is_written()).collect();
    of_formats(text, &formats)
}

fn of_formats(text: &str, formats: &[Foreign]) -> Result<Foreign, String> {
    formats.iter().copied().find(|format| format.word() == text).ok_or_else(|| {
        let words: Vec<&str> = formats.iter().map(|format| format.word()).collect();
        format!("give one of {}", words.join(", "))
    })
}

fn unit(text: &str) -> Result<Span, String> {
    match duration(text) {
        Ok(unit) if unit.is_zero() => Err("give a unit above zero".to_owned()),
        Ok(unit) => Ok(unit),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Args, Debug)]
pub(crate) struct AnalyzeArguments {
    #[command(flatten)]
    pub(crate) files: FilesArguments,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
    #[command(flatten)]
    pub(crate) format: RowFormats,
    /// Write a certificate that `check-certificate` verifies.
    #[arg(long, value_name = "OUT")]
    pub(crate) certificate: Option<PathBuf>,
    /// Write the release pattern of a task that misses, for `simulate --replay`.
    #[arg(long, value_name = "OUT")]
    pub(crate) counterexample: Option<PathBuf>,
    /// Say in words and terms where this task's response time goes.
    #[arg(long, value_name = "TASK")]
    pub(crate) explain: Option<String>,
    /// Say how large this server may be: for its period, and the best budget and period.
    #[arg(long, value_name = "SERVER", conflicts_with = "explain")]
    pub(crate) size_server: Option<String>,
    /// The shortest period that `--size-server` looks at; default: an eighth of the shortest period of a task.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "size_server")]
    pub(crate) least_period: Option<Span>,
    /// Try every spin priority that each CPU with users of `fslm` may have: say with which all deadlines hold, and which is the best.
    #[arg(long, conflicts_with_all = ["explain", "size_server", "certificate", "counterexample"])]
    pub(crate) choose_spin_priority: bool,
    #[command(flatten)]
    pub(crate) partition: PartitionArguments,
}

#[derive(Args, Debug)]
pub(crate) struct CertificateArguments {
    #[command(flatten)]
    pub(crate) file: FileArguments,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
    /// The certificate.
    pub(crate) certificate: PathBuf,
    #[command(flatten)]
    pub(crate) format: Formats,
}

#[derive(Args, Debug)]
pub(crate) struct SimulateArguments {
    #[command(flatten)]
    pub(crate) files: FilesArguments,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
    /// How long jobs are released; default: the hyperperiod plus the largest offset below 60 s, else 10 s; longer for
    /// listed arrivals and executions.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) horizon: Option<Span>,
    /// Stop releasing after this many jobs.
    #[arg(long, value_name = "N", conflicts_with = "horizon")]
    pub(crate) jobs: Option<u64>,
    /// Write the trace here.
    #[arg(long, value_name = "OUT")]
    pub(crate) trace: Option<PathBuf>,
    /// Run the release pattern that `analyze --counterexample` wrote.
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["horizon", "jobs", "seed", "jitter", "latency", "execution", "sporadic_extra", "path"])]
    pub(crate) replay: Option<PathBuf>,
    /// How much of their release jitter jobs take.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) jitter: Delay,
    /// How much of the platform's release latency releases take.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) latency: Delay,
    /// How long jobs execute.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) execution: Execution,
    /// Sporadic jobs arrive a separation apart, plus up to this much, drawn uniformly.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) sporadic_extra: Option<Span>,
    /// Which way jobs take through their segments: `longest` (the default), `random`, or a task's own, as
    /// `tracker=scan,crop,merge`; may be given again for other tasks.
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Vec<String>,
    #[command(flatten)]
    pub(crate) verdict: VerdictArguments,
    /// Seed of everything drawn by chance; printed when drawn.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) format: RowFormats,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Delay {
    /// Drawn uniformly from zero to all of it.
    #[default]
    Uniform,
    /// None of it.
    None,
    /// All of it.
    Max,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Execution {
    /// As the file says.
    #[default]
    Modelled,
    /// Every job, or segment, its wcet.
    Wcet,
    /// Every job, or segment, its bcet.
    Bcet,
    /// Every job, or segment, drawn uniformly from bcet to wcet.
    Uniform,
}

/// What decides the verdict.
#[derive(Args, Debug)]
pub(crate) struct VerdictArguments {
    /// Which questions decide the exit status: `proof`, `model`, `deadlines`, or several of them with commas. Default: all of `loop`, model
    /// and deadlines of `verify`, deadlines of `run` and `simulate`.
    #[arg(long, value_name = "QUESTIONS", value_parser = Offering::new(gate, questions))]
    pub(crate) gate: Option<Gate>,
    /// How many of the released jobs of every task have to be judged.
    #[arg(long, value_name = "PERCENT", value_parser = coverage, default_value = "90%")]
    pub(crate) coverage: u64,
    /// Every job has to be judged, and a disturbed machine is a no.
    #[arg(long)]
    pub(crate) strict: bool,
}

impl VerdictArguments {
    /// What is asked, these questions where the words name none.
    pub(crate) fn asked(&self, by_default: &[Question]) -> Asked {
        let gate = self.gate.clone().unwrap_or_else(|| Gate::of(by_default));
        Asked { gate, coverage_permille: self.coverage, strict: self.strict }
    }

    /// What is asked of a verb that answers about deadlines alone.
    pub(crate) fn asked_of_deadlines(&self, verb: &str) -> Result<Asked, Failure> {
        let asked = self.asked(&[Question::Deadlines]);
        let other = [Question::Proof, Question::Model].into_iter().find(|question| asked.gate.has(*question));
        match other {
            None => Ok(asked),
            Some(question) => Err(Failure::bad_input(format_args!(
                "error: --gate {}: `{verb}` answers about deadlines alone, not about {}\n  = help: `horolog loop` proves, runs and verifies",
                asked.gate,
                question.word()
            ))),
        }
    }
}

fn gate(text: &str) -> Result<Gate, String> {
    text.parse::<Gate>().map_err(|error| error.to_string())
}

fn questions() -> Vec<PossibleValue> {
    Question::ALL.iter().map(|question| PossibleValue::new(question.word())).collect()
}

/// A share of jobs as thousandths, from 0 to 100 %.
fn coverage(text: &str) -> Result<u64, String> {
    match permille(text) {
        Ok(share) if share <= 1_000 => Ok(share),
        _ => {
            Err(format!("`{text}` is not a percentage from 0 to 100 with at most one decimal, such as `90%`"))
        }
    }
}

#[derive(Args, Debug)]
#[command(
    override_usage = "horolog run [OPTIONS] <FILE>\n       horolog run --locks <FILE> [--format json[=FILE]] -- <COMMAND>..."
)]
pub(crate) struct RunArguments {
    /// The system file; `-`: standard input.
    #[arg(required_unless_present = "locks")]
    pub(crate) file: Option<PathBuf>,
    /// Replace a value: `--set task.control.wcet="3 ms"`; may be given again.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Instead of a system: start a command, and give its mutexes the protocols of this file at their first use. The exit status is the
    /// command's.
    #[arg(long, value_name = "FILE", requires = "command", conflicts_with_all = ["file", "overrides", "machine", "duration", "forever",
        "trace", "best_effort", "class", "stack", "sporadic_extra", "gate", "coverage", "strict", "retries", "seed"])]
    pub(crate) locks: Option<PathBuf>,
    /// The command of `--locks`.
    #[arg(last = true, value_name = "COMMAND", requires = "locks")]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
    /// How long jobs are released; default 10 s.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, conflicts_with = "forever")]
    pub(crate) duration: Option<Span>,
    /// Run until stopped, with a flight recorder that dumps on a miss, an overrun and an early end.
    #[arg(long)]
    pub(crate) forever: bool,
    /// Write the trace here (with `--forever`: the folder of the flight recorder's dumps).
    #[arg(long, value_name = "OUT")]
    pub(crate) trace: Option<PathBuf>,
    /// Run under normal scheduling where real-time scheduling is not permitted, and say so.
    #[arg(long)]
    pub(crate) best_effort: bool,
    /// Which scheduling class carries the tasks.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) class: SchedulingClass,
    /// So much of each thread's stack is locked in memory (`256K`, `1M`); deeper calls work, with page faults.
    #[arg(long, value_name = "SIZE", value_parser = stack_size, default_value = "128K")]
    pub(crate) stack: u64,
    /// Sporadic jobs arrive a separation apart, plus up to this much, drawn uniformly.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) sporadic_extra: Option<Span>,
    #[command(flatten)]
    pub(crate) verdict: VerdictArguments,
    /// Repeat the run up to so many times where the answer is undecided.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "forever")]
    pub(crate) retries: u32,
    /// Seed of everything drawn by chance; printed when drawn.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) format: Formats,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum SchedulingClass {
    /// SCHED_FIFO bands; the kernel decides for plain fixed priorities, horolog's agent for all else.
    #[default]
    Fifo,
    /// SCHED_DEADLINE where the machine admits it (EDF only).
    Deadline,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    pub(crate) file: FileArguments,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
    /// The trace: of a run or a simulation, a recording with `--kernel`, perf.data or trace.dat; `-`: standard input.
    pub(crate) trace: PathBuf,
    /// For a foreign trace: which thread is which task (`control=my-thread` or `control=4711`); may be given again.
    #[arg(long = "map", value_name = "TASK=THREAD")]
    pub(crate) mapping: Vec<String>,
    #[command(flatten)]
    pub(crate) verdict: VerdictArguments,
    /// Replace a bound (`control=1 ms`), to see that a wrong one is caught.
    #[arg(long = "bound-override", value_name = "TASK=DURATION", hide = true)]
    pub(crate) bound_overrides: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Formats,
}

#[derive(Args, Debug)]
pub(crate) struct LoopArguments {
    #[command(flatten)]
    pub(crate) file: FileArguments,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
    /// How long the simulation and the run release jobs; default 10 s.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Span>,
    /// The folder of the report, the results and the traces.
    #[arg(long, value_name = "DIR", default_value = "horolog-out")]
    pub(crate) out: PathBuf,
    /// Run under normal scheduling where real-time scheduling is not permitted, and say so.
    #[arg(long)]
    pub(crate) best_effort: bool,
    /// So much of each thread's stack is locked in memory (`256K`, `1M`); deeper calls work, with page faults.
    #[arg(long, value_name = "SIZE", value_parser = stack_size, default_value = "128K")]
    pub(crate) stack: u64,
    /// Sporadic jobs arrive a separation apart, plus up to this much, drawn uniformly.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) sporadic_extra: Option<Span>,
    #[command(flatten)]
    pub(crate) verdict: VerdictArguments,
    /// Repeat all of it up to so many times where the answer is undecided, or only the machine was in the way; never after a no of
    /// the proof or the model.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retries: u32,
    /// Seed of everything drawn by chance; printed when drawn.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Replace a bound (`control=1 ms`), to see that a wrong one is caught.
    #[arg(long = "bound-override", value_name = "TASK=DURATION", hide = true)]
    pub(crate) bound_overrides: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Formats,
}

/// What a machine is examined for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Purpose {
    /// Real threads in real scheduling classes, and what would be in their way now.
    Run,
    /// Proofs with this machine's costs.
    Analyze,
    /// Recording the kernel's events beside those of a program.
    Record,
    /// All that `loop` does: proof, run, record, verification.
    Loop,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// Say whether this machine allows this (exit 0, else 3), and what to do, the most effective first.
    #[arg(long = "for", value_enum, value_name = "PURPOSE", conflicts_with = "restore")]
    pub(crate) purpose: Option<Purpose>,
    /// Put back what a killed run has left changed.
    #[arg(long)]
    pub(crate) restore: bool,
    #[command(flatten)]
    pub(crate) format: Formats,
}

/// What to observe, and how to make values of it.
#[derive(Args, Debug)]
pub(crate) struct ExtractArguments {
    #[command(flatten)]
    pub(crate) target: ExtractTarget,
    /// How long to observe; default 10 s, or until the command ends.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Span>,
    /// Write the system file here instead of to the standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Only this thread, of whatever class, by its number or its name (`*` and `?` fit anything); may be given again.
    #[arg(long = "thread", value_name = "TID|NAME")]
    pub(crate) threads: Vec<String>,
    /// Only the threads of this process, of whatever class, by its number or its name; may be given again.
    #[arg(long = "process", value_name = "PID|NAME")]
    pub(crate) processes: Vec<String>,
    /// Model threads of ordinary classes too.
    #[arg(long)]
    pub(crate) all: bool,
    /// Memory of the kernel's ring on each processor (`64M`). Default: 8M.
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "from")]
    pub(crate) buffer: Option<u64>,
    /// Raise every wcet by this share of the greatest execution seen: `20%`.
    #[arg(long, value_name = "PERCENT", value_parser = permille, default_value = "0%")]
    pub(crate) margin: u64,
    /// What a sleep in the middle of a job counts as.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) suspension: Suspension,
    /// What the few longest jobs are: at most 1 %, longer than twice the 99th percentile and 100 us.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) outliers: Outliers,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ExtractFormat,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct ExtractTarget {
    /// This process, its threads, and what it has started and starts.
    #[arg(long, value_name = "N")]
    pub(crate) pid: Option<u32>,
    /// All processes of this process group.
    #[arg(long, value_name = "PGID")]
    pub(crate) group: Option<u32>,
    /// A recorded file: a trace of horolog, perf.data or trace.dat.
    #[arg(long, value_name = "TRACE", conflicts_with = "duration")]
    pub(crate) from: Option<PathBuf>,
    /// A command to start, observed from its first instruction on; its output goes to stderr.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Suspension {
    /// Execution: safe for every analysis (suspension-oblivious).
    #[default]
    Oblivious,
    /// Nothing.
    Ignore,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Outliers {
    /// The program's: they count.
    #[default]
    Keep,
    /// The machine's, as of a virtual one that its host stops: they are set aside and counted.
    Drop,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum ExtractFormat {
    /// A system file with the evidence as comments.
    #[default]
    Toml,
    /// All evidence, for scripts: schema horolog.extraction/1.
    Json,
}

/// A percentage as thousandths: `20%`, `2.5`.
pub(crate) fn permille(text: &str) -> Result<u64, String> {
    let refuse =
        || format!("`{text}` is not a percentage from 0 to 1000 with at most one decimal, such as `20%`");
    let number = text.trim().trim_end_matches('%').trim_end();
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| part.parse::<u64>().ok().filter(|_| part.bytes().all(|b| b.is_ascii_digit()));
    match (digits(whole), digits(tenth)) {
        (Some(whole), Some(tenth)) if whole <= 1_000 && tenth <= 9 && !whole.eq(&1_000) => {
            Ok(whole * 10 + tenth)
        }
        (Some(1_000), Some(0)) => Ok(10_000),
        _ => Err(refuse()),
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum ExperimentVerb {
    /// List the published experiments.
    List,
    /// Draw random task sets, as studies of schedulability do: UUniFast's distribution, log-uniform periods.
    Sets(SetsArguments),
    /// Run one: the published figure, ours, and whether they agree.
    ///
    /// The last line on standard error counts the facts, and the exit status is 1 where one disagrees, 3 where this machine does
    /// not allow a part.
    Run {
        /// Its name, from `experiment list`, or the file of an experiment of your own (`mine.toml`).
        #[arg(value_name = "ID|FILE.toml")]
        id: String,
        /// The folder of its results; a bench that was killed goes on there.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Of a simulated experiment: a stated part of it on this machine's threads, too.
        #[arg(long)]
        real: bool,
        /// Run the whole of it, however long; of a simulated experiment: all of it for real, too.
        #[arg(long)]
        full: bool,
        /// Seed of everything drawn by chance; default: the experiment's own.
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
        /// Of aperiodic-1 and aperiodic-2: judge the statements by so many seeds, this one and those after it. Default: 8.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=31))]
        seeds: Option<u64>,
        /// Of the test bench: what an exhausted server does, instead of what the experiment's file says.
        #[arg(long, value_name = "background|wait", value_parser = when_exhausted)]
        when_exhausted: Option<WhenExhausted>,
        #[command(flatten)]
        format: Formats,
    },
}

#[derive(Args, Debug)]
pub(crate) struct SetsArguments {
    /// The folder to write `set-00.toml` and so on into, with as many digits as the last one needs.
    pub(crate) dir: PathBuf,
    /// How many tasks a set has.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) tasks: u32,
    /// The total utilisation of a set; of a range the first set has the lower end, the last the upper one, in equal steps.
    #[arg(long, value_name = "U|A..B", default_value = "0.5..0.95", value_parser = utilisations)]
    pub(crate) utilisation: (u64, u64),
    /// No task's utilisation is below this; with it, or with `--upper`, shares are drawn by ConvolutionalFixedSum.
    #[arg(long, value_name = "U", value_parser = share)]
    pub(crate) lower: Option<f64>,
    /// No task's utilisation is above this.
    #[arg(long, value_name = "U", value_parser = share)]
    pub(crate) upper: Option<f64>,
    /// How many sets.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) count: u64,
    /// Set K of a seed is the same for ever, on every machine.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Periods, log-uniform.
    #[arg(long, value_name = "A..B", default_value = "10ms..1s", value_parser = periods)]
    pub(crate) periods: (Span, Span),
    /// What periods are multiples of.
    #[arg(long, value_name = "TIME", default_value = "1 ns", value_parser = duration)]
    pub(crate) granularity: Span,
    /// Where deadlines lie.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) deadlines: SetDeadlines,
    /// The policy; priorities are deadline-monotonic.
    #[arg(long, value_name = "POLICY", default_value = "fixed-priority", value_parser = ["fixed-priority", "edf"])]
    pub(crate) policy: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum SetDeadlines {
    /// At the period.
    #[default]
    Implicit,
    /// Uniform from the execution time to the period.
    Constrained,
}

impl SetDeadlines {
    /// The word of the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            SetDeadlines::Implicit => "implicit",
            SetDeadlines::Constrained => "constrained",
        }
    }
}

fn when_exhausted(text: &str) -> Result<WhenExhausted, String> {
    WhenExhausted::from_word(text).ok_or_else(|| format!("one of {}", WhenExhausted::WORDS.join(", ")))
}

pub(crate) fn duration(text: &str) -> Result<Span, horolog_time::ParseSpanError> {
    text.parse()
}

/// Locked memory of each thread of a run; more than this would take the machine's.
const LARGEST_STACK: u64 = 1 << 30;

fn stack_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes > LARGEST_STACK => {
            Err(format!("`{text}` of every thread would be locked in memory; give 1G at the most"))
        }
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_at_most_a_gigabyte() {
        assert_eq!(stack_size("1G"), Ok(LARGEST_STACK));
        assert!(stack_size("1073741825").is_err() && stack_size("100G").is_err() && stack_size("").is_err());
    }
}
