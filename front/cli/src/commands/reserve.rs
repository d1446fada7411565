//! `horolog reserve`.

use crate::arguments::Format;
use crate::failure::{Done, Failure, Verdict};
use crate::output::{self, outln};
use crate::progress;
use crate::reserve_arguments::{AmountArguments, DaemonArguments, ReserveVerb};
use horolog_daemon::alone::{Alone, NotAlone};
use horolog_daemon::client::{Client, ClientError};
use horolog_daemon::protocol::{Bind, BoundThread, Create, Named, PartAsked, Reserves, Resize, Shown};
use horolog_sys::held_program::{HeldProgram, RunningProgram, shell_status};
use horolog_sys::signal::last_interrupt;
use horolog_time::Span;
use horolog_trace::escaped;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A reserve as JSON, `horolog.reserve/1`.
#[derive(Serialize)]
struct OneReserve<'a> {
    schema: &'static str,
    #[serde(flatten)]
    reserve: &'a Shown,
}

/// Several of them, `horolog.reserves/1`.
#[derive(Serialize)]
struct AllReserves<'a> {
    schema: &'static str,
    reserves: &'a [Shown],
}

/// One look of `reserve top`, a line of JSON, `horolog.reserve-top/1`.
#[derive(Serialize)]
struct Look<'a> {
    schema: &'static str,
    threads: &'a [Use],
}

/// What a thread has used between two looks.
#[derive(Serialize)]
struct Use {
    reserve: u64,
    tid: u32,
    comm: String,
    budget_ns: Span,
    period_ns: Span,
    /// What it executed between the looks, and how long they lie apart.
    used_ns: Span,
    over_ns: Span,
    /// The same, a period.
    used_in_a_period_ns: Span,
    /// Not told by this kernel to anybody but the thread itself.
    depletions: Option<u64>,
    /// Whether the kernel still gives it the amount.
    is_granted: bool,
}

#[derive(Deserialize)]
struct Reply {
    reserve: Shown,
}

pub(crate) fn run(verb: &ReserveVerb) -> Done {
    match verb {
        ReserveVerb::Create { amount, daemon } => {
            let made = create(&mut connect(daemon)?, amount, true)?;
            tell_one(&made, daemon)
        }
        ReserveVerb::Resize { id, cpu, daemon } => {
            let reply: Reply = call(daemon, "Resize", &Resize { id: *id, amount: *cpu })?;
            tell_one(&reply.reserve, daemon)
        }
        ReserveVerb::Delete { id, daemon } => {
            let _: serde_json::Value = call(daemon, "Delete", &Named { id: *id })?;
            match daemon.format {
                Format::Json => {
                    output::json(&serde_json::json!({ "schema": "horolog.reserve-deleted/1", "id": id }))?
                }
                Format::Table => outln!("reserve {id} is given back"),
            }
            Ok(Verdict::Holds)
        }
        ReserveVerb::Attach { id, tid, process, daemon } => {
            let reply: Reply = call(daemon, "Attach", &Bind { id: *id, tid: *tid, process: *process })?;
            tell_one(&reply.reserve, daemon)
        }
        ReserveVerb::Detach { id, tid, daemon } => {
            let reply: Reply = call(daemon, "Detach", &Bind { id: *id, tid: *tid, process: false })?;
            tell_one(&reply.reserve, daemon)
        }
        ReserveVerb::List { daemon } => {
            let all: Reserves = call(daemon, "List", &serde_json::json!({}))?;
            tell_all(&all.reserves, daemon)
        }
        ReserveVerb::Show { id, daemon } => {
            let reply: Reply = call(daemon, "Show", &Named { id: *id })?;
            tell_one(&reply.reserve, daemon)
        }
        ReserveVerb::Disk(verb) => crate::commands::disk::run(verb),
        ReserveVerb::Top { every, count, daemon } => top(*every, *count, daemon),
        ReserveVerb::Network(verb) => crate::commands::network::run(verb),
        ReserveVerb::Run { amount, no_daemon, daemon, command } => {
            run_command(amount, *no_daemon, daemon, command)
        }
    }
}

fn connect(daemon: &DaemonArguments) -> Result<Client, Failure> {
    Client::connect(&daemon.socket).map_err(|error| failed(&error))
}

fn call<T: serde::de::DeserializeOwned>(
    daemon: &DaemonArguments,
    method: &str,
    parameters: &impl Serialize,
) -> Result<T, Failure> {
    connect(daemon)?.call(method, parameters).map_err(|error| failed(&error))
}

fn failed(error: &ClientError) -> Failure {
    match error {
        ClientError::NoDaemon(..) => Failure::not_permitted(format_args!(
            "{error}\n  = help: start it as root, `horologd`, or give its --socket; `reserve run --no-daemon` needs none"
        )),
        ClientError::Refused(reply) if reply.is("Refused") => Failure::says_no(error),
        ClientError::Refused(reply) if reply.is("NotAllowed") => Failure::not_permitted(error),
        ClientError::Refused(reply) if reply.is("Busy") => {
            Failure::undecided(format_args!("undecided: {error} (exit 4)"))
        }
        ClientError::Refused(_) => Failure::bad_input(error),
        ClientError::Broken(_) => Failure::undecided(format_args!("undecided: {error} (exit 4)")),
    }
}

fn create(client: &mut Client, words: &AmountArguments, kept: bool) -> Result<Shown, Failure> {
    let part = PartAsked {
        amount: words.cpu,
        threads: words.threads,
        kind: words.kind.into(),
        name: words.name.clone(),
    };
    let made: Reserves =
        client.call("Create", Create { parts: vec![part], kept }).map_err(|error| failed(&error))?;
    made.reserves
        .into_iter()
        .next()
        .ok_or_else(|| Failure::undecided("undecided: horologd named no reserve (exit 4)"))
}

fn tell_one(reserve: &Shown, daemon: &DaemonArguments) -> Done {
    match daemon.format {
        Format::Json => output::json(&OneReserve { schema: "horolog.reserve/1", reserve })?,
        Format::Table => print(std::slice::from_ref(reserve)),
    }
    Ok(Verdict::Holds)
}

fn tell_all(reserves: &[Shown], daemon: &DaemonArguments) -> Done {
    match daemon.format {
        Format::Json => output::json(&AllReserves { schema: "horolog.reserves/1", reserves })?,
        Format::Table if reserves.is_empty() => outln!("no reserves"),
        Format::Table => print(reserves),
    }
    Ok(Verdict::Holds)
}

fn print(reserves: &[Shown]) {
    let mut table = output::table(&["reserve", "kind", "amount", "user", "until", "threads", "bound"], 5);
    for one in reserves {
        let until = one.client.map_or("deleted".to_owned(), |client| format!("{client} ends"));
        let name = one.name.as_ref().map_or_else(String::new, |name| format!(" ({})", escaped(name)));
        let bound: Vec<String> = one.bound.iter().map(bound_in_words).collect();
        table.add_row([
            format!("{}{name}", one.id),
            one.kind.word().to_owned(),
            one.amount.to_string(),
            one.uid.to_string(),
            until,
            one.threads.to_string(),
            if bound.is_empty() { "-".to_owned() } else { bound.join(", ") },
        ]);
    }
    output::print(&table);
}

fn bound_in_words(thread: &BoundThread) -> String {
    let comm = escaped(&thread.comm);
    match thread.granted {
        Some(granted) => format!("{} {comm} has {granted}", thread.tid),
        None => format!("{} {comm} has nothing from the kernel", thread.tid),
    }
}

fn top(every: Span, count: Option<u64>, daemon: &DaemonArguments) -> Done {
    let stop = crate::commands::run::stop_on_interrupt()?;
    let mut client = connect(daemon)?;
    let mut before: BTreeMap<u32, BoundThread> = BTreeMap::new();
    let mut looks = 0;
    loop {
        let all: Reserves = client.call("List", serde_json::json!({})).map_err(|error| failed(&error))?;
        // The first look has nothing before it.
        if looks > 0 {
            tell_look(&uses(&all.reserves, &before), daemon)?;
        }
        before = all.reserves.into_iter().flat_map(|one| one.bound).map(|one| (one.tid, one)).collect();
        if count.is_some_and(|count| looks >= count) || output::is_broken() {
            return Ok(Verdict::Holds);
        }
        looks += 1;
        let until = std::time::Instant::now() + Duration::from_nanos(every.as_ns());
        while std::time::Instant::now() < until {
            if stop.load(Ordering::Acquire) {
                return Ok(Verdict::Holds);
            }
            let left = until.saturating_duration_since(std::time::Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

fn uses(reserves: &[Shown], before: &BTreeMap<u32, BoundThread>) -> Vec<Use> {
    let mut found = Vec::new();
    for one in reserves {
        for thread in &one.bound {
            let Some(earlier) = before.get(&thread.tid).filter(|earlier| earlier.bound_ns <= thread.bound_ns)
            else {
                continue;
            };
            let used = thread.executed_ns.saturating_sub(earlier.executed_ns);
            let over = thread.bound_ns.saturating_sub(earlier.bound_ns);
            let a_period = u128::from(used.as_ns()) * u128::from(one.amount.period.as_ns());
            let a_period = a_period / u128::from(over.as_ns().max(1));
            found.push(Use {
                reserve: one.id,
                tid: thread.tid,
                comm: thread.comm.clone(),
                budget_ns: one.amount.budget,
                period_ns: one.amount.period,
                used_ns: used,
                over_ns: over,
                used_in_a_period_ns: Span::from_ns(u64::try_from(a_period).unwrap_or(u64::MAX)),
                depletions: None,
                is_granted: thread.granted.is_some(),
            });
        }
    }
    found
}

fn tell_look(threads: &[Use], daemon: &DaemonArguments) -> Result<(), Failure> {
    match daemon.format {
        Format::Json => {
            let look = Look { schema: "horolog.reserve-top/1", threads };
            outln!("{}", serde_json::to_string(&look).map_err(Failure::bad_input)?);
        }
        Format::Table => {
            let mut table = output::table(
                &["reserve", "tid", "thread", "budget", "period", "used in a period", "of budget"],
                3,
            );
            for one in threads {
                let percent =
                    one.used_in_a_period_ns.as_ns().saturating_mul(100) / one.budget_ns.as_ns().max(1);
                table.add_row([
                    one.reserve.to_string(),
                    one.tid.to_string(),
                    escaped(&one.comm).into_owned(),
                    one.budget_ns.to_string(),
                    one.period_ns.to_string(),
                    one.used_in_a_period_ns.rounded_up().to_string(),
                    if one.is_granted { format!("{percent} %") } else { "not granted".to_owned() },
                ]);
            }
            output::print(&table);
        }
    }
    output::flush();
    Ok(())
}

/// Serves for this command alone, and says in the end what could not be put back.
struct OwnDaemon {
    alone: Alone,
    // Behind the daemon, which still writes in it while it ends.
    _folder: tempfile::TempDir,
}

impl OwnDaemon {
    fn start(daemon: &DaemonArguments) -> Result<OwnDaemon, Failure> {
        let folder =
            tempfile::tempdir().map_err(|error| Failure::file("make", &std::env::temp_dir(), &error))?;
        let alone = Alone::start(folder.path(), &daemon.socket).map_err(|error| match error {
            NotAlone::Daemon(_) => Failure::usage(error),
            NotAlone::Busy => Failure::undecided(format_args!("undecided: {error} (exit 4)")),
            NotAlone::File(path, error) => Failure::file("lock", &path, &error),
            NotAlone::Refused(_) => Failure::not_permitted(error),
        })?;
        Ok(OwnDaemon { alone, _folder: folder })
    }
}

impl Drop for OwnDaemon {
    fn drop(&mut self) {
        self.alone.end().iter().for_each(|line| progress::say(format_args!("not put back: {line}")));
    }
}

fn run_command(
    words: &AmountArguments,
    no_daemon: bool,
    daemon: &DaemonArguments,
    command: &[OsString],
) -> Done {
    let signals = last_interrupt().map_err(Failure::not_permitted)?;
    let mut own = if no_daemon { Some(OwnDaemon::start(daemon)?) } else { None };
    let socket = own.as_ref().map_or_else(|| daemon.socket.clone(), |own| own.alone.socket());
    let mut client = Client::connect(&socket).map_err(|error| failed(&error))?;
    let reserve = create(&mut client, words, false)?;
    let held = start_held(command)?;
    let bind = Bind { id: reserve.id, tid: held.id(), process: words.threads > 1 };
    let attached: Reply = client.call("Attach", bind).map_err(|error| failed(&error))?;
    for thread in &attached.reserve.bound {
        progress::say(format_args!("reserve {}: {}", reserve.id, bound_in_words(thread)));
    }
    if let Some(own) = &mut own {
        own.alone.has_admitted();
    }
    // The daemon may come and go while the program runs.
    drop(client);
    let mut running = let_go(held, command)?;
    let status = until_it_ends(&mut running, &signals, &mut || Ok(()))?;
    running.leave();
    // Where the daemon is gone meanwhile it drops the reserve itself, since this process ends.
    if let Ok(mut client) = Client::connect(&socket) {
        let _: Result<serde_json::Value, _> = client.call("Delete", Named { id: reserve.id });
    }
    Ok(Verdict::Refused(shell_status(status)))
}

/// The command, held before its first instruction.
pub(crate) fn start_held(command: &[OsString]) -> Result<HeldProgram, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("give a command behind `--`"));
    };
    let mut prepared = Command::new(program);
    prepared.args(arguments);
    HeldProgram::start(prepared).map_err(Failure::not_permitted)
}

/// Lets it become its program.
pub(crate) fn let_go(held: HeldProgram, command: &[OsString]) -> Result<RunningProgram, Failure> {
    held.let_go().map_err(|error| {
        let program =
            command.first().map_or_else(String::new, |program| program.to_string_lossy().into_owned());
        Failure::bad_input(format_args!("cannot start `{program}`: {error}"))
    })
}

/// Passes signals on until the program ends; does `meanwhile` again and again.
pub(crate) fn until_it_ends(
    running: &mut RunningProgram,
    signals: &AtomicUsize,
    meanwhile: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<ExitStatus, Failure> {
    loop {
        match running.ended() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => return Err(Failure::undecided(format_args!("undecided: wait: {error} (exit 4)"))),
        }
        let signal = signals.swap(0, Ordering::AcqRel);
        if let Some(signal) = i32::try_from(signal).ok().filter(|signal| *signal != 0) {
            running.signal(signal);
        }
        meanwhile()?;
        std::thread::sleep(Duration::from_millis(5));
    }
}
