//! `horolog reserve network`.

use crate::commands::reserve::{let_go, start_held, until_it_ends};
use crate::failure::{Done, Failure, Verdict};
use crate::network_arguments::{Mechanism, NetworkArguments, NetworkVerb};
use crate::output;
use crate::progress;
use horolog_netr::{NapiThreads, Options, QueueCounters, Receiver, Reserve, Unreserved, wrong_checksums};
use horolog_reserve::network::{ByteAmount, Flow};
use horolog_sys::Error;
use horolog_sys::bpf::XdpMode;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::fixed_priority::Class;
use horolog_sys::guardian::{Guardian, GuardianOptions};
use horolog_sys::held_program::shell_status;
use horolog_sys::signal::last_interrupt;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// The counters as JSON, `horolog.network-reserve/1`.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    /// `xdp-driver`, `xdp-generic` or `napi-threads`.
    mechanism: &'static str,
    /// Why it is not a better one, or what it does not count; null where nothing is missing.
    lacks: Option<String>,
    device: &'a str,
    /// Whether the command has ended: the last look.
    ended: bool,
    elapsed_ns: u64,
    queues: Vec<QueueReport>,
}

#[derive(Serialize)]
struct QueueReport {
    /// `reserve`, `unreserved`, or `device` where all packets are alike.
    queue: &'static str,
    ports: Vec<String>,
    amount: Option<ByteAmount>,
    buffer: Option<u32>,
    /// Of each thread, as the kernel says it: `fifo 1`, `normal`.
    scheduling: Vec<String>,
    threads: Vec<u32>,
    counters: Option<QueueCounters>,
}

/// What was set up.
enum SetUp {
    Early(Box<Receiver>),
    Napi(NapiThreads, Guardian, String),
}

pub(crate) fn run(verb: &NetworkVerb) -> Done {
    match verb {
        NetworkVerb::Run { network, command } => run_command(network, command),
    }
}

fn run_command(words: &NetworkArguments, command: &[OsString]) -> Done {
    let signals = last_interrupt().map_err(Failure::not_permitted)?;
    let options = options(words)?;
    let held = start_held(command)?;
    let set_up = set_up(words.mechanism, &options)?;
    // Last, so that a file of before is kept where nothing runs.
    let mut file = match &words.counters {
        Some(path) => Some(File::create(path).map_err(|error| Failure::file("write", path, &error))?),
        None => None,
    };
    let (begin, wrong_before) = (Instant::now(), wrong_checksums());
    let mut unwritten = None;
    say_what_is_set_up(&set_up, &options)?;
    let mut running = let_go(held, command)?;
    let mut next = words.every.map(|every| begin + Duration::from_nanos(every.as_ns()));
    let status = until_it_ends(&mut running, &signals, &mut || {
        if let (Some(at), Some(every), Some(file)) = (next, words.every, &mut file)
            && Instant::now() >= at
        {
            // The command goes on without.
            let written = write_report(file, words, &report(&set_up, &options, begin, false)?);
            unwritten = unwritten.take().or(written.err());
            // One that is late is not made up for.
            next = Some(Instant::now().max(at + Duration::from_nanos(every.as_ns())));
        }
        Ok(())
    })?;
    running.leave();
    let last = report(&set_up, &options, begin, true)?;
    if let Some(file) = &mut file {
        unwritten = unwritten.take().or(write_report(file, words, &last).err());
    }
    progress::say(table(&last));
    warn_of_checksums(&set_up, wrong_checksums().saturating_sub(wrong_before));
    if let SetUp::Napi(_, guardian, _) = set_up {
        let restored = guardian.finish().map_err(|error| failed(&error))?;
        restored.failures.iter().for_each(|line| progress::say(format_args!("not put back: {line}")));
    }
    match (unwritten, shell_status(status)) {
        (Some(failure), 0) => Err(failure),
        (Some(failure), status) => {
            failure.report();
            Ok(Verdict::Refused(status))
        }
        (None, status) => Ok(Verdict::Refused(status)),
    }
}

fn warn_of_checksums(set_up: &SetUp, wrong: u64) {
    if wrong > 0 && matches!(set_up, SetUp::Early(_)) {
        progress::say(format_args!(
            "warning: meanwhile {} of this network namespace {} thrown away for a wrong checksum, which `delivered` does not show: \
             where the device is one of a virtual pair, have the other end fill them in (`ethtool -K OTHER-END tx off`)",
            output::count(wrong, "packet"),
            if wrong == 1 { "was" } else { "were" }
        ));
    }
}

fn failed(error: &Error) -> Failure {
    if error.is_bad_input() { Failure::bad_input(error) } else { Failure::not_permitted(error) }
}

fn class(priority: u8) -> Class {
    if priority == 0 { Class::Normal } else { Class::Fifo(priority) }
}

fn options(words: &NetworkArguments) -> Result<Options, Failure> {
    if words.amount.deadline != words.amount.period {
        return Err(Failure::usage(
            "a deadline puts several reserves in order, and this command makes one: leave `by` out, and give --protocol-priority",
        ));
    }
    let cpu = match words.cpu {
        Some(cpu) => cpu,
        None => online_cpus().map_err(|error| failed(&error))?.last().copied().unwrap_or_default(),
    };
    let reserve = Reserve {
        flows: words.port.clone(),
        amount: words.amount,
        when_used_up: words.beyond.into(),
        buffer: words.buffer,
        class: class(words.protocol_priority),
    };
    let unreserved = Unreserved {
        cap: words.unreserved,
        buffer: words.unreserved_buffer,
        class: class(words.unreserved_priority),
    };
    let options = Options { device: words.device.clone(), cpu, reserves: vec![reserve], unreserved };
    options.check().map_err(|error| failed(&error))?;
    Ok(options)
}

fn set_up(mechanism: Mechanism, options: &Options) -> Result<SetUp, Failure> {
    let why = match mechanism {
        Mechanism::Napi => "asked for by --mechanism napi".to_owned(),
        Mechanism::Auto | Mechanism::Xdp => match Receiver::attach(options) {
            Ok(receiver) => return Ok(SetUp::Early(Box::new(receiver))),
            // Where another program looks at the packets already, threads would not put that right.
            Err(error) if mechanism == Mechanism::Auto && error.is_not_permitted() && !error.is_busy() => {
                error.to_string()
            }
            Err(error) => return Err(failed(&error)),
        },
    };
    let mut guardian = Guardian::start(&GuardianOptions::default()).map_err(|error| failed(&error))?;
    let class = options.reserves.first().map_or(Class::Normal, |reserve| reserve.class);
    let threads = NapiThreads::set_up(&mut guardian, &options.device, class).map_err(|error| match error
        .is_bad_input()
    {
        true => failed(&error),
        false => Failure::not_permitted(format_args!("{why}; and {error}")),
    })?;
    Ok(SetUp::Napi(threads, guardian, why))
}

fn say_what_is_set_up(set_up: &SetUp, options: &Options) -> Result<(), Failure> {
    match set_up {
        SetUp::Early(receiver) => {
            let threads = receiver.threads();
            progress::say(format_args!(
                "{}: a queue for the reserve (thread {}) and one for all others (thread {}), both on CPU {}",
                options.device,
                threads.first().copied().unwrap_or_default(),
                threads.last().copied().unwrap_or_default(),
                options.cpu
            ));
            if let Some(error) = receiver.uncounted() {
                progress::say(format_args!("warning: what full queues drop is not counted: {error}"));
            }
        }
        SetUp::Napi(threads, _, why) => progress::say(format_args!(
            "warning: no queue, no budget and no counters, only the receiving threads of {} ({:?}) at their priority: {why}",
            options.device,
            threads.threads()
        )),
    }
    Ok(())
}

fn report<'a>(
    set_up: &SetUp,
    options: &'a Options,
    begin: Instant,
    ended: bool,
) -> Result<Report<'a>, Failure> {
    let (mechanism, lacks, queues) = match set_up {
        SetUp::Early(receiver) => {
            let mechanism = match receiver.mode() {
                XdpMode::Driver => "xdp-driver",
                XdpMode::Generic => "xdp-generic",
            };
            let lacks = receiver.uncounted().map(Error::to_string);
            (mechanism, lacks, of_queues(receiver, options).map_err(|error| failed(&error))?)
        }
        SetUp::Napi(threads, _, why) => {
            let now = |class: Option<Class>| class.map_or_else(|| "gone".to_owned(), in_words);
            let device = QueueReport {
                queue: "device",
                ports: Vec::new(),
                amount: None,
                buffer: None,
                scheduling: threads.classes().into_iter().map(now).collect(),
                threads: threads.threads().to_vec(),
                counters: None,
            };
            ("napi-threads", Some(why.clone()), vec![device])
        }
    };
    let elapsed_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let schema = "horolog.network-reserve/1";
    Ok(Report { schema, mechanism, lacks, device: &options.device, ended, elapsed_ns, queues })
}

fn of_queues(receiver: &Receiver, options: &Options) -> Result<Vec<QueueReport>, Error> {
    let reserve =
        options.reserves.iter().map(|one| ("reserve", &one.flows[..], Some(one.amount), one.buffer));
    let unreserved = &options.unreserved;
    let queues = reserve.chain([("unreserved", &[][..], unreserved.cap, unreserved.buffer)]);
    let state = receiver.threads().into_iter().zip(receiver.classes()?).zip(receiver.counters()?);
    let report = |((queue, flows, amount, buffer), ((thread, class), counters)): ((_, &[Flow], _, _), _)| {
        QueueReport {
            queue,
            ports: flows.iter().map(Flow::to_string).collect(),
            amount,
            buffer: Some(buffer),
            scheduling: vec![in_words(class)],
            threads: vec![thread],
            counters: Some(counters),
        }
    };
    Ok(queues.zip(state).map(report).collect())
}

fn in_words(class: Class) -> String {
    match class {
        Class::Fifo(priority) => format!("fifo {priority}"),
        Class::Normal => "normal".to_owned(),
        Class::Idle => "idle".to_owned(),
        Class::Foreign => "other".to_owned(),
    }
}

fn write_report(file: &mut File, words: &NetworkArguments, report: &Report<'_>) -> Result<(), Failure> {
    let line = serde_json::to_string(report).map_err(Failure::bad_input)?;
    let path = words.counters.as_deref().unwrap_or_else(|| std::path::Path::new("-"));
    writeln!(file, "{line}").map_err(|error| Failure::file("write", path, &error))
}

fn table(report: &Report<'_>) -> comfy_table::Table {
    let mut table = output::table(
        &[
            "queue",
            "thread",
            "arrived",
            "delivered",
            "queue full",
            "beyond: dropped",
            "beyond: passed on",
            "protocols",
        ],
        2,
    );
    let told = |count: Option<u64>| count.map_or_else(|| "not known".to_owned(), |count| count.to_string());
    for one in &report.queues {
        let counters = one.counters.as_ref();
        let time = counters.and_then(|counters| counters.protocol_ns).map(horolog_time::Span::from_ns);
        table.add_row([
            one.queue.to_owned(),
            one.scheduling.join(", "),
            told(counters.map(|counters| counters.arrived.packets)),
            told(counters.and_then(|counters| counters.delivered)),
            told(counters.and_then(|counters| counters.queue_full)),
            told(counters.map(QueueCounters::dropped_by_budget)),
            told(counters.map(|counters| counters.passed_on)),
            time.map_or_else(|| "not known".to_owned(), output::span),
        ]);
    }
    table
}
