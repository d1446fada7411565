//! `horolog reserve disk`.

use crate::arguments::Format;
use crate::disk_arguments::{DiskPolicy, DiskVerb, ReadDisk, ServeDisk};
use crate::failure::{Done, Failure, Verdict};
use crate::output::{self, outln};
use crate::progress;
use horolog_daemon::disk::client::{DiskClient, Times};
use horolog_daemon::disk::server::DiskServer;
use horolog_daemon::disk::{DiskError, DiskService, LONGEST_REQUEST, Named, Use, check_chunk, measure};
use horolog_disk::{Policy, Reserve, Settings};
use horolog_draw::Random;
use horolog_sys::direct_file::{DIRECT_BLOCK, DirectFile};
use horolog_time::Span;
use serde::Serialize;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A served disk as JSON, `horolog.disk-service/1`.
#[derive(Serialize)]
struct Served<'a> {
    schema: &'static str,
    #[serde(flatten)]
    settings: Settings,
    /// Whether the longest time of an operation was measured.
    is_measured: bool,
    reserves: &'a [Admitted],
    /// None of a dry run; best effort last.
    uses: Option<&'a [Use]>,
    /// Requests that the disk failed at; none of a dry run.
    failed: Option<u64>,
}

/// A reserve that is admitted.
#[derive(Serialize)]
struct Admitted {
    name: String,
    amount: String,
    #[serde(flatten)]
    reserve: Reserve,
}

/// Reads as JSON, `horolog.disk-reads/1`.
#[derive(Serialize)]
struct Reads {
    schema: &'static str,
    reserve: Option<String>,
    bytes: u64,
    requests: u64,
    /// How many were done after what was promised; none of best effort, which is promised nothing.
    late: Option<u64>,
    response_p50_ns: Span,
    response_p99_ns: Span,
    response_max_ns: Span,
}

pub(crate) fn run(verb: &DiskVerb) -> Done {
    match verb {
        DiskVerb::Serve(words) => serve(words),
        DiskVerb::Read(words) => read(words),
    }
}

fn failed(error: DiskError) -> Failure {
    match error {
        DiskError::System(error) if error.is_not_permitted() => Failure::not_permitted(error),
        DiskError::NoService(why) => Failure::not_permitted(format_args!(
            "{why}\n  = help: `horolog reserve disk serve FILE --socket PATH` serves one"
        )),
        DiskError::Ended => Failure::undecided(format_args!("undecided: {error} (exit 4)")),
        error => Failure::bad_input(error),
    }
}

fn serve(words: &ServeDisk) -> Done {
    let stop = crate::commands::run::stop_on_interrupt()?;
    check_chunk(words.chunk).map_err(failed)?;
    // A file that is not there is no matter of rights.
    std::fs::metadata(&words.file).map_err(|error| Failure::file("read", &words.file, &error))?;
    let mut device =
        DirectFile::open(&words.file, words.chunk, words.writable).map_err(|error| failed(error.into()))?;
    let longest_ns = match words.longest {
        Some(longest) => longest.as_ns(),
        None => measured(&mut device, words.chunk)?,
    };
    let policy = match words.policy {
        DiskPolicy::Edf => Policy::Edf,
        DiskPolicy::JustInTime => Policy::JustInTime,
    };
    let settings = Settings { policy, chunk: words.chunk, longest_ns };
    let mut reserves = Vec::new();
    for one in &words.reserves {
        let reserve = match one.amount.reserve(settings.chunk, settings.longest_ns) {
            Ok(reserve) => reserve,
            Err(error) => {
                return Ok(not_admitted(format_args!("reserve `{}` is not admitted: {error}", one.name)));
            }
        };
        reserves.push(Admitted { name: one.name.clone(), amount: one.amount.to_string(), reserve });
    }
    let named = reserves.iter().map(|one| Named { name: one.name.clone(), reserve: one.reserve }).collect();
    let mut service = match DiskService::start(device, settings, named, words.priority) {
        Err(error @ DiskError::NotAdmitted { .. }) => return Ok(not_admitted(error)),
        started => started.map_err(failed)?,
    };
    let uses = match words.socket.as_ref().filter(|_| !words.dry_run) {
        None => None,
        Some(socket) => {
            until_the_end(&service, socket, words.length, &stop)?;
            service.end();
            Some(service.uses())
        }
    };
    match words.format {
        Format::Json => output::json(&Served {
            schema: "horolog.disk-service/1",
            settings,
            is_measured: words.longest.is_none(),
            reserves: &reserves,
            uses: uses.as_deref(),
            failed: uses.as_ref().map(|_| service.failed()),
        })?,
        Format::Table => print(&reserves, longest_ns, uses.as_deref()),
    }
    Ok(closing(reserves.len(), uses.as_deref(), service.failed()))
}

fn not_admitted(why: impl std::fmt::Display) -> Verdict {
    Verdict::Line(format!("no: {why} (exit 1)"), 1)
}

/// What the admission counts for an operation, measured.
fn measured(device: &mut DirectFile, chunk: u64) -> Result<u64, Failure> {
    let found = measure(device, chunk).map_err(failed)?;
    let counted = Span::from_ns(found.counted_ns).rounded_up();
    progress::say(format_args!(
        "measured {} operations of {chunk} bytes: median {}, longest {}; the admission counts {counted}, which is no bound of this disk",
        found.operations,
        Span::from_ns(found.median_ns).rounded(),
        Span::from_ns(found.longest_ns).rounded()
    ));
    Ok(counted.as_ns())
}

fn until_the_end(
    service: &DiskService,
    socket: &Path,
    length: Option<Span>,
    stop: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let server = DiskServer::bind(socket).map_err(|error| failed(error.into()))?;
    progress::say(format_args!("serving at {}", socket.display()));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(service, &over));
        let begun = Instant::now();
        let is_over = || length.is_some_and(|length| begun.elapsed() >= Duration::from_nanos(length.as_ns()));
        while !stop.load(Ordering::Acquire) && !is_over() {
            std::thread::sleep(Duration::from_millis(10));
        }
        over.store(true, Ordering::Release);
    });
    Ok(())
}

fn print(reserves: &[Admitted], longest_ns: u64, uses: Option<&[Use]>) {
    let mut table = output::table(
        &["reserve", "amount", "operations", "each within", "requests", "late", "done", "too long"],
        2,
    );
    let tallies = |name: Option<&str>| {
        let found = uses.into_iter().flatten().find(|one| one.reserve.as_deref() == name);
        found.map_or(["-".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()], |one| {
            let horolog_disk::Tally { requests, late, operations, overran, .. } = one.tally;
            [requests, late, operations, overran].map(|count| count.to_string())
        })
    };
    for one in reserves {
        let operations = format!("{} / {}", one.reserve.operations, Span::from_ns(one.reserve.period_ns));
        let mut row = vec![one.name.clone(), one.amount.clone(), operations];
        row.push(Span::from_ns(one.reserve.deadline_ns).to_string());
        row.extend(tallies(Some(&one.name)));
        table.add_row(row);
    }
    let mut row = vec!["best effort".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()];
    row.extend(tallies(None));
    table.add_row(row);
    output::print(&table);
    outln!("an operation is counted as {}", Span::from_ns(longest_ns));
}

fn closing(reserves: usize, uses: Option<&[Use]>, failed: u64) -> Verdict {
    let Some(uses) = uses else {
        let noun = output::count(reserves as u64, "reserve");
        return Verdict::Line(format!("holds: {noun} admitted (exit 0)"), 0);
    };
    let sum = |of: fn(&Use) -> u64| uses.iter().map(of).sum::<u64>();
    let (requests, late) = (sum(|one| one.tally.requests), sum(|one| one.tally.late));
    let overran = sum(|one| one.tally.overran);
    let too_long = match overran {
        0 => String::new(),
        _ => format!("; {} took longer than the admission counts", output::count(overran, "operation")),
    };
    let unanswered = sum(|one| one.tally.unanswered);
    let rest = match unanswered {
        0 => String::new(),
        _ => format!("; {unanswered} left unanswered"),
    };
    let asked = output::count(requests + unanswered, "request");
    let said = format!("{rest}{too_long}");
    match (requests, late, failed) {
        (0, 0, _) if unanswered == 0 => {
            Verdict::Line("undecided: nothing was asked of the disk (exit 4)".to_owned(), 4)
        }
        (0, 0, _) => {
            Verdict::Line(format!("undecided: {asked}, none answered or late{too_long} (exit 4)"), 4)
        }
        (_, 0, 0) => Verdict::Line(format!("holds: {asked}, none late{said} (exit 0)"), 0),
        (_, _, 0) => Verdict::Line(format!("no: {late} of {asked} late{said} (exit 1)"), 1),
        (..) => Verdict::Line(
            format!("no: the disk failed at {failed} of {asked}, {late} late{said} (exit 1)"),
            1,
        ),
    }
}

fn read(words: &ReadDisk) -> Done {
    let stop = crate::commands::run::stop_on_interrupt()?;
    let mut disk = DiskClient::connect(&words.socket, words.reserve.as_deref()).map_err(failed)?;
    let bytes = words.bytes.unwrap_or(disk.chunk());
    let mut data = vec![0; bytes.min(LONGEST_REQUEST + DIRECT_BLOCK) as usize];
    let mut output = match &words.output {
        Some(path) => Some((path, File::create(path).map_err(|error| Failure::file("write", path, &error))?)),
        None => None,
    };
    let places = (disk.length() / bytes.max(DIRECT_BLOCK)).max(1);
    let mut random = Random::new(words.reserve.as_deref().map_or(0, str::len) as u64);
    let (begun, mut times) = (Instant::now(), Vec::<Times>::new());
    for number in 0..words.count {
        if let Some(every) = words.every {
            let at = Duration::from_nanos(every.as_ns().saturating_mul(number));
            std::thread::sleep(at.saturating_sub(begun.elapsed()));
        }
        if stop.load(Ordering::Acquire) {
            break;
        }
        let offset = match words.offset {
            Some(offset) => offset.saturating_add(bytes.saturating_mul(number)),
            None => random.below(places) * bytes,
        };
        times.push(disk.read(offset, &mut data).map_err(failed)?);
        if let Some((path, file)) = &mut output {
            file.write_all(&data).map_err(|error| Failure::file("write", path, &error))?;
        }
    }
    tell(words, bytes, &times)
}

fn tell(words: &ReadDisk, bytes: u64, times: &[Times]) -> Done {
    let mut responses: Vec<u64> = times.iter().map(|one| one.done_ns.saturating_sub(one.asked_ns)).collect();
    responses.sort_unstable();
    let Some(longest) = responses.last().copied() else {
        return Ok(Verdict::Line("undecided: nothing was read (exit 4)".to_owned(), 4));
    };
    let percentile =
        |percent: usize| Span::from_ns(responses[(responses.len() * percent).div_ceil(100).max(1) - 1]);
    let late = times.iter().filter(|one| one.is_late()).count() as u64;
    let reads = Reads {
        schema: "horolog.disk-reads/1",
        reserve: words.reserve.clone(),
        bytes,
        requests: responses.len() as u64,
        late: words.reserve.is_some().then_some(late),
        response_p50_ns: percentile(50),
        response_p99_ns: percentile(99),
        response_max_ns: Span::from_ns(longest),
    };
    match words.format {
        Format::Json => output::json(&reads)?,
        Format::Table => {
            let mut table = output::table(&["reserve", "requests", "late", "median", "99 %", "longest"], 1);
            table.add_row([
                reads.reserve.clone().unwrap_or_else(|| "best effort".to_owned()),
                reads.requests.to_string(),
                reads.late.map_or("-".to_owned(), |late| late.to_string()),
                reads.response_p50_ns.rounded(),
                reads.response_p99_ns.rounded(),
                reads.response_max_ns.rounded(),
            ]);
            output::print(&table);
        }
    }
    let requests = output::count(reads.requests, "request");
    Ok(match reads.late {
        None => Verdict::Line(format!("holds: {requests} answered, and nothing was promised (exit 0)"), 0),
        Some(0) => Verdict::Line(format!("holds: {requests}, none late (exit 0)"), 0),
        Some(late) => Verdict::Line(format!("no: {late} of {requests} late (exit 1)"), 1),
    })
}
