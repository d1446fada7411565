//! The guardian's own process: waits for the end of the run and puts everything back.

use super::journal::{Life, Locked};
use super::replay::{Restored, replay};
use crate::Error;
use crate::affinity::{CpuSet, set_affinity};
use crate::clock::monotonic_ns;
use crate::fixed_priority::{Class, set_class};
use crate::kernel_trace::remove_instances_of;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// What the run asks for in its first line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Orders {
    pub(super) run: Life,
    /// When to end the run, on `CLOCK_MONOTONIC`; `u64::MAX`: never.
    pub(super) deadline_ns: u64,
    pub(super) housekeeping: Vec<u32>,
    pub(super) journal: PathBuf,
}

/// How long the run may take to end by itself after SIGTERM.
const GRACE_NS: u64 = 2_000_000_000;

impl Orders {
    pub(super) fn encode(&self) -> String {
        let cpus: Vec<String> = self.housekeeping.iter().map(u32::to_string).collect();
        let hex: String = std::os::unix::ffi::OsStrExt::as_bytes(self.journal.as_os_str())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let Orders { run, deadline_ns, .. } = self;
        format!("guard {} {} {deadline_ns} {} {hex}\n", run.id, run.started, cpus.join(","))
    }

    fn parse(line: &str) -> Option<Orders> {
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        let ["guard", id, started, deadline, cpus, hex] = words[..] else { return None };
        let bytes: Option<Vec<u8>> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect();
        Some(Orders {
            run: Life { id: id.parse().ok()?, started: started.parse().ok()? },
            deadline_ns: deadline.parse().ok()?,
            housekeeping: crate::cpu_list::parse_cpu_list(cpus)?,
            journal: PathBuf::from(std::ffi::OsString::from_vec(bytes?)),
        })
    }
}

/// The whole life of the guardian process; the command's hidden subcommand calls it and exits with what it yields.
///
/// The control socket is standard input; nobody but [`super::Guardian::start`] starts this.
#[must_use]
pub fn serve() -> i32 {
    match guard() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("horolog guardian: {error}");
            1
        }
    }
}

fn guard() -> Result<(), Error> {
    ignore_signals();
    // SAFETY: descriptor 0 was made a socket for this process alone by the run; nothing else here reads from it.
    let control = unsafe { UnixStream::from_raw_fd(0) };
    let strange = |what: &str| Error::bad_input("guardian", what, "only horolog itself starts this");
    let mut reader =
        BufReader::new(control.try_clone().map_err(|_| strange("standard input is not a socket"))?);
    let mut line = String::new();
    reader.read_line(&mut line).map_err(|_| strange("standard input is not a socket"))?;
    let orders = Orders::parse(&line).ok_or_else(|| strange("no orders on standard input"))?;
    let mut locked = Locked::open_or_create(&orders.journal, orders.run)?
        .ok_or_else(|| Error::bad_input(orders.journal.display().to_string(), "it is guarded already", ""))?;
    let run = open_run(orders.run);
    crate::thread::set_name("horolog-guard");
    take_place(&orders.housekeeping);
    // Armed: the run may begin to change the machine.
    let mut writer = control;
    let _ = writer.write_all(b"ready\n");

    let end = watch(&mut reader, run.as_ref(), &orders);
    let restored = replay(&orders.journal, &mut locked)?;
    if end != End::Finished {
        // What it made without an entry: it had other guardians, or none.
        remove_instances_of(orders.run);
    }
    match end {
        End::Finished => {
            // The run waits for this line; where it died meanwhile, nobody needs it.
            let _ = writer.write_all(report(&restored).as_bytes());
        }
        End::Died if restored.is_nothing() => {}
        // A command of the run may start programs of its own, which only it knows.
        End::Died if restored.is_of_programs_alone() => match restored.processes {
            1 => eprintln!("horolog: ended 1 program that your command left"),
            many => eprintln!("horolog: ended {many} programs that your command left"),
        },
        End::Died => {
            eprintln!("horolog guardian: run {} ended without cleaning up; {restored}", orders.run.id)
        }
        End::Overdue => {
            eprintln!("horolog guardian: ended run {}, which was past its time; {restored}", orders.run.id)
        }
    }
    Ok(())
}

/// Why guarding ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The run said so.
    Finished,
    /// The run is gone.
    Died,
    /// The run went on past its deadline and was ended.
    Overdue,
}

/// The line that tells the run what was put back; [`super::parse_report`] reads it.
fn report(restored: &Restored) -> String {
    let Restored { files, directories, processes, threads, networks, already, failures } = restored;
    let failures: Vec<String> = failures.iter().map(|text| text.replace(['\n', '\t'], " ")).collect();
    format!(
        "restored {files} {directories} {processes} {threads} {networks} {already}\t{}\n",
        failures.join("\t")
    )
}

/// Waits until the run finishes, dies or is overdue; ends it in the last case.
fn watch(reader: &mut BufReader<UnixStream>, run: Option<&OwnedFd>, orders: &Orders) -> End {
    let mut deadline_ns = orders.deadline_ns;
    let mut housekeeping = orders.housekeeping.clone();
    loop {
        let now = monotonic_ns();
        if now >= deadline_ns {
            end_run(run, orders.run);
            return End::Overdue;
        }
        let wait_ns = deadline_ns - now;
        // Lines that came together with an earlier one wait in the reader, where poll does not see them.
        let buffered = !reader.buffer().is_empty();
        let (said, died) =
            if buffered { (true, false) } else { wait(reader.get_ref().as_raw_fd(), run, wait_ns) };
        if said {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => {
                    // A dying process closes its descriptors a little before it is gone.
                    wait(-1, run, 200_000_000);
                    return if orders.run.is_alive() { End::Finished } else { End::Died };
                }
                Ok(_) => {}
            }
            if line == "finish\n" {
                return End::Finished;
            }
            // Other words are of no meaning here.
            if let Some(changed) = Orders::parse(&line).filter(|changed| changed.run == orders.run) {
                deadline_ns = changed.deadline_ns;
                if changed.housekeeping != housekeeping {
                    housekeeping = changed.housekeeping;
                    take_place(&housekeeping);
                }
            }
        } else if died {
            return End::Died;
        }
    }
}

/// Waits for the socket or the end of the run, at most `wait_ns`: (something to read, run ended).
fn wait(socket: i32, run: Option<&OwnedFd>, wait_ns: u64) -> (bool, bool) {
    let run_fd = run.map_or(-1, |run| run.as_raw_fd());
    let mut fds = [socket, run_fd].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // One millisecond more: waking just before the deadline would spin.
    let timeout = i32::try_from(wait_ns / 1_000_000 + 1).unwrap_or(i32::MAX);
    // SAFETY: `fds` is a valid array of two for the whole call; a negative descriptor is ignored.
    unsafe { libc::poll(fds.as_mut_ptr(), 2, timeout) };
    (fds[0].revents != 0, fds[1].revents != 0)
}

/// SIGTERM, and SIGKILL where that does not help in time.
fn end_run(run: Option<&OwnedFd>, life: Life) {
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        if !life.is_alive() {
            return;
        }
        // SAFETY: kill takes two integers, and the life was just checked.
        unsafe { libc::kill(life.id as i32, signal) };
        let deadline = monotonic_ns().saturating_add(GRACE_NS);
        while life.is_alive() && monotonic_ns() < deadline {
            let (_, ended) = wait(-1, run, 20_000_000);
            if ended {
                // Its descriptor says so before /proc does. Waiting for it again would spin, at the top priority.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// A descriptor that becomes readable when the run ends; `None` on kernels before 5.3, where the socket tells.
fn open_run(life: Life) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes two integers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, life.id, 0) };
    // SAFETY: the kernel just gave this descriptor to us, and nobody else owns it.
    let fd = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) });
    fd.filter(|_| life.is_alive())
}

/// Top priority on the housekeeping CPUs, so that no thread of the run can starve the guardian. It sleeps all the time,
/// so this costs nobody anything; without the privilege it stays an ordinary process.
pub(super) fn take_place(housekeeping: &[u32]) {
    let _ = set_class(0, Class::Fifo(99));
    if !housekeeping.is_empty() {
        let _ = set_affinity(0, &CpuSet::new(housekeeping.iter().copied()));
    }
}

/// The guardian ends when the run has ended and not before: Ctrl-C and hang-ups are for the run.
fn ignore_signals() {
    for signal in [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGTTOU,
        libc::SIGTTIN,
        libc::SIGTSTP,
        libc::SIGPIPE,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
    ] {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_read_back() {
        let orders = Orders {
            run: Life { id: 12, started: 34 },
            deadline_ns: u64::MAX,
            housekeeping: vec![0, 3],
            journal: PathBuf::from("/tmp/a b/ü.journal"),
        };
        assert_eq!(Orders::parse(&orders.encode()), Some(orders.clone()));
        let nowhere = Orders { housekeeping: Vec::new(), ..orders };
        assert_eq!(Orders::parse(&nowhere.encode()), Some(nowhere));
        assert_eq!(Orders::parse("guard 1 2 3\n"), None);
    }
}
