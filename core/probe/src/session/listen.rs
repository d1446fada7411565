//! A process that waits to be recorded: whoever may trace it connects and says where its session is to go.
//!
//! The socket's name is `horolog-trace-PID` in the abstract namespace. The recorder sends one line
//! `record SOCKET` TAB options TAB patterns; the process hands its session over at SOCKET, enables the events, and disables
//! them when the recorder has gone.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use super::Options;
use super::handover::Lines;
use super::service::{Answer, begin, serve, with_signals_blocked};
use horolog_sys::descriptor_passing::peer;
use horolog_sys::{Error, thread};

/// What [`super::service::SOCKET`] says where a process waits to be recorded.
pub const LISTEN: &str = "listen";

fn address(pid: u32) -> Result<SocketAddr, Error> {
    SocketAddr::from_abstract_name(format!("horolog-trace-{pid}"))
        .map_err(|error| Error::io("the socket's name", &error, ""))
}

/// Starts the thread `horolog-trace`, which waits for recorders.
pub(super) fn start(answer: Answer) -> Result<(), Error> {
    let listener = UnixListener::bind_addr(&address(std::process::id())?)
        .map_err(|error| Error::io("listening for recorders", &error, "the name is taken"))?;
    with_signals_blocked(|| {
        let built = std::thread::Builder::new().name("horolog-trace".to_owned());
        built.stack_size(256 << 10).spawn(move || {
            thread::set_name("horolog-trace");
            for stream in listener.incoming().flatten() {
                // What goes wrong was told to the recorder; the program goes on.
                let _ = take(stream, answer);
            }
        })
    })
    .map(drop)
    .map_err(|error| Error::io("starting the thread horolog-trace", &error, ""))
}

/// One recorder, from its request to its end.
fn take(stream: UnixStream, answer: Answer) -> Result<(), Error> {
    let who = peer(&stream)?;
    // SAFETY: the call has no arguments and cannot fail.
    let own = unsafe { libc::geteuid() };
    if who.uid != 0 && who.uid != own {
        return Ok(());
    }
    let io = |error: std::io::Error| Error::io("a recorder", &error, "");
    stream.set_read_timeout(Some(Duration::from_secs(1))).map_err(io)?;
    let mut lines = Lines::new(stream);
    let request = lines.read()?;
    let mut words = request.strip_prefix("record ").unwrap_or_default().split('\t');
    let (Some(path), Some(options), Some(patterns)) = (words.next(), words.next(), words.next()) else {
        return lines.write("error: not understood");
    };
    let mut wanted = Options::default();
    let begun = wanted.apply(options).and_then(|()| begin(&wanted, Path::new(path)));
    let session = match begun {
        Ok(session) => session,
        Err(error) => return lines.write(&format!("error: {error}")),
    };
    let patterns: Vec<&str> = patterns.split(',').filter(|pattern| !pattern.is_empty()).collect();
    let replies: Vec<String> = patterns.iter().map(|pattern| answer(&format!("enable {pattern}"))).collect();
    let refused = replies.into_iter().find(|reply| reply.starts_with("error"));
    lines.write(&refused.unwrap_or_else(|| "ok".to_owned()))?;
    serve(session, answer);
    for pattern in patterns {
        answer(&format!("disable {pattern}"));
    }
    Ok(())
}

/// Asks process `pid`, which waits to be recorded, to hand its session over at `socket`, with these options and enabled
/// events (separated by commas).
///
/// # Errors
/// Where it does not wait, is another process than it says, or refuses.
pub fn request(pid: u32, socket: &Path, options: &str, patterns: &str) -> Result<(), Error> {
    let what = || format!("process {pid}");
    let stream = UnixStream::connect_addr(&address(pid)?)
        .map_err(|error| Error::io(what(), &error, "start it with HOROLOG_TRACE=listen"))?;
    if peer(&stream)?.pid != pid {
        return Err(Error::unexpected(what(), "another process listens under its name", ""));
    }
    let io = |error: std::io::Error| Error::io(what(), &error, "");
    stream.set_read_timeout(Some(Duration::from_secs(2))).map_err(io)?;
    let mut lines = Lines::new(stream);
    lines.write(&format!("record {}\t{options}\t{patterns}", socket.display()))?;
    match lines.read() {
        Ok(reply) if reply == "ok" => Ok(()),
        Ok(reply) => Err(Error::unexpected(what(), reply, "")),
        Err(error) => {
            Err(Error::unexpected(what(), error.to_string(), "it may be recorded by somebody else already"))
        }
    }
}
