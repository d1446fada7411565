//! What the machine does while its delays are watched.

use super::BlockingOptions;
use crate::interference::LoadCommand;
use horolog_sys::Error;
use horolog_sys::affinity::{CpuSet, set_affinity};
use std::io::Write as _;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Load {
    /// Nothing.
    None,
    /// Files without names written and synchronised.
    Disk,
    /// Datagrams over the loopback device to sockets of its own.
    Net,
    /// Processes started and waited for.
    Fork,
    /// A command of the user's.
    Command(Vec<String>),
}

impl Load {
    /// Its name in results.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Load::None => "none",
            Load::Disk => "disk",
            Load::Net => "net",
            Load::Fork => "fork",
            Load::Command(words) => words.first().map_or("command", String::as_str),
        }
    }
}

/// A load that goes on until it is dropped.
pub(super) struct Running {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    command: Option<LoadCommand>,
}

impl Running {
    /// Starts it with an ordinary thread on the watched CPU and one anywhere.
    pub(super) fn start(load: &Load, options: &BlockingOptions) -> Result<Running, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut running = Running { stop, threads: Vec::new(), command: None };
        match load {
            Load::None => {}
            Load::Disk => {
                // Files without names: nothing is left of them, however this process ends.
                let file = tempfile::tempfile();
                file.map_err(|error| Error::io("a file for the disk load", &error, "set TMPDIR"))?;
                running.spawn(options.cpu, |_| disk())?;
            }
            Load::Net => {
                let sockets = [pair()?, pair()?];
                running.spawn(options.cpu, move |number| net(&sockets[number]))?;
            }
            Load::Fork => running.spawn(options.cpu, |_| fork())?,
            // Wherever the command likes: it is its work for the kernel that is watched.
            Load::Command(words) => {
                running.command = Some(LoadCommand::start_anywhere(words, &options.guardian)?);
            }
        }
        Ok(running)
    }

    /// Two threads that do `work` again and again: the first on the watched CPU.
    fn spawn(&mut self, cpu: u32, work: impl Fn(usize) -> bool + Send + Sync + 'static) -> Result<(), Error> {
        let work = Arc::new(work);
        for number in 0..2 {
            let (stop, work) = (Arc::clone(&self.stop), Arc::clone(&work));
            let thread = std::thread::Builder::new().name("horolog-load".to_owned()).spawn(move || {
                if number == 0 {
                    // Where that is refused, so is the probe, which says why.
                    let _ = set_affinity(0, &CpuSet::new([cpu]));
                }
                while !stop.load(Ordering::Relaxed) && work(number) {}
            });
            let thread =
                thread.map_err(|error| Error::io("clone(load thread)", &error, "raise `ulimit -u`"))?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Whether it still goes on.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        if let Some(command) = &mut self.command {
            command.check()?;
        }
        if self.threads.iter().any(JoinHandle::is_finished) {
            let remedy = "free some space in TMPDIR, and raise `ulimit -u`";
            return Err(Error::unexpected("the load", "it could not go on", remedy));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Writes a MiB to a file without a name, waits until it is on disk, gives it up; whether that went well.
fn disk() -> bool {
    let block = [7_u8; 1 << 16];
    let written = tempfile::tempfile().and_then(|mut file| {
        for _ in 0..16 {
            file.write_all(&block)?;
        }
        file.sync_all()
    });
    written.is_ok()
}

/// A sender and the receiver that it is connected to; no other address can be reached through them.
fn pair() -> Result<(UdpSocket, UdpSocket), Error> {
    let make = || {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        receiver.set_nonblocking(true)?;
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        sender.connect(receiver.local_addr()?)?;
        Ok::<_, std::io::Error>((sender, receiver))
    };
    make().map_err(|error| Error::io("sockets on the loopback device", &error, "is `lo` up?"))
}

fn net((sender, receiver): &(UdpSocket, UdpSocket)) -> bool {
    let mut buffer = [0; 1_500];
    for _ in 0..32 {
        let _ = sender.send(&[0; 1_400]);
    }
    while receiver.recv(&mut buffer).is_ok() {}
    true
}

fn fork() -> bool {
    let mut child = Command::new("true");
    child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    child.status().is_ok()
}
