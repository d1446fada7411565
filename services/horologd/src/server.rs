//! The socket: connections of bounded number, length and patience.

use crate::config::Config;
use crate::frame::{self, Frames, NoFrame};
use crate::host::Host;
use crate::protocol::{Call, ErrorReply, INTERFACE};
use crate::service::{Caller, Service};
use crate::store::Store;
use horolog_reserve::Process;
use horolog_sys::descriptor_passing::{peer_process, wait_for_connection};
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// So many connections at once, of all users.
const MOST_CONNECTIONS: usize = 128;
/// Of them, these are for root alone, so that the operator always gets in.
const FOR_ROOT: usize = 8;
/// Of them, of one user that is not root.
const MOST_OF_A_USER: usize = 32;
/// A connection without a call is closed after this.
const IDLE: Duration = Duration::from_secs(300);
/// A client that takes nothing for so long loses its connection.
const WRITING: Duration = Duration::from_secs(2);
/// So often the daemon looks who has ended.
const LOOK_MS: i32 = 50;

/// A daemon at its socket.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    service: Arc<Service>,
    users: Arc<Mutex<Vec<u32>>>,
    lease: Option<Lease>,
    config: Config,
}

/// The process that puts grants back where the daemon has died.
#[derive(Debug)]
struct Lease {
    process: Child,
}

impl Lease {
    fn start(program: &Path, config: &Config) -> Result<Lease, String> {
        Command::new(program)
            .arg("--lease")
            .arg(config.lease.as_ns().to_string())
            .arg(std::process::id().to_string())
            .arg(&config.state)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .map(|process| Lease { process })
            .map_err(|error| format!("cannot start the lease, {} --lease: {error}", program.display()))
    }

    fn end(mut self) {
        if let Some(mut pipe) = self.process.stdin.take() {
            let _ = pipe.write_all(b"q");
        }
        let _ = self.process.wait();
    }
}

impl Server {
    /// Opens the socket. `program` is started with `--lease` to put grants back if this process dies; without one nobody does.
    /// A dry one keeps no state and changes nothing. The second result is what to tell the operator.
    ///
    /// # Errors
    /// In words.
    pub fn start(
        config: Config,
        program: Option<&Path>,
        is_dry: bool,
    ) -> Result<(Server, Vec<String>), String> {
        let store = if is_dry { None } else { Some(Store::take(&config.state)?) };
        let lease = program.filter(|_| !is_dry).map(|program| Lease::start(program, &config)).transpose()?;
        let started = listen(&config.socket).and_then(|listener| {
            let started = Service::start(config.clone(), Host::probe(), store);
            started.map(|started| (listener, started)).inspect_err(|_| {
                let _ = fs::remove_file(&config.socket);
            })
        });
        let (listener, (service, told)) = match started {
            Ok(started) => started,
            Err(error) => {
                // Nothing was changed that it would have to put back.
                lease.into_iter().for_each(Lease::end);
                return Err(error);
            }
        };
        let server = Server { listener, service: Arc::new(service), users: Arc::default(), lease, config };
        Ok((server, told))
    }

    /// Serves until `stop` is set, then puts everything back; what could not be is the result.
    pub fn serve(mut self, stop: &AtomicBool) -> Vec<String> {
        let mut told = Vec::new();
        while !stop.load(Ordering::Acquire) {
            wait_for_connection(self.listener.as_fd(), LOOK_MS);
            while let Ok((socket, _)) = self.listener.accept() {
                self.admit(socket);
            }
            self.service.look_around();
            self.renew_lease(&mut told);
        }
        told.extend(self.service.end());
        if let Some(lease) = self.lease.take() {
            lease.end();
        }
        let _ = fs::remove_file(&self.config.socket);
        told
    }

    /// A lease that was killed is replaced.
    fn renew_lease(&mut self, told: &mut Vec<String>) {
        let Some(lease) = &mut self.lease else { return };
        if !matches!(lease.process.try_wait(), Ok(Some(_))) {
            return;
        }
        match Lease::start(Path::new("/proc/self/exe"), &self.config) {
            Ok(lease) => self.lease = Some(lease),
            Err(error) if told.is_empty() => told.push(error),
            Err(_) => {}
        }
    }

    fn admit(&self, mut socket: UnixStream) {
        let _ = socket.set_nonblocking(false);
        let Ok((peer, life)) = peer_process(&socket) else { return };
        let caller = Caller { uid: peer.uid, process: Process { id: life.id, started: life.started } };
        let mut users = lock(&self.users);
        let of_user = users.iter().filter(|&&uid| uid == caller.uid).count();
        let most = MOST_CONNECTIONS - if caller.uid == 0 { 0 } else { FOR_ROOT };
        if users.len() >= most || (caller.uid != 0 && of_user >= MOST_OF_A_USER) {
            let busy = ErrorReply::new("Busy", "too many connections: close some, or try again");
            let _ = frame::write(&mut socket, &json!(busy), Duration::from_millis(1));
            return;
        }
        users.push(caller.uid);
        drop(users);
        let (service, all) = (Arc::clone(&self.service), Arc::clone(&self.users));
        let serving = std::thread::Builder::new().name("horologd-client".to_owned()).spawn(move || {
            converse(socket, &service, caller);
            leave(&all, caller.uid);
        });
        if serving.is_err() {
            leave(&self.users, caller.uid);
        }
    }
}

fn lock(users: &Mutex<Vec<u32>>) -> std::sync::MutexGuard<'_, Vec<u32>> {
    users.lock().unwrap_or_else(PoisonError::into_inner)
}

fn leave(users: &Mutex<Vec<u32>>, uid: u32) {
    let mut users = lock(users);
    if let Some(place) = users.iter().position(|one| *one == uid) {
        users.swap_remove(place);
    }
}

/// Opens the socket for all users: who may hold what is decided by call.
fn listen(path: &Path) -> Result<UnixListener, String> {
    let failed = |error: std::io::Error| format!("cannot listen at {}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    if UnixStream::connect(path).is_ok() {
        return Err(format!(
            "another horologd listens at {}: stop it, or give another socket",
            path.display()
        ));
    }
    // What a killed daemon has left; nothing but a socket is ever removed.
    if fs::symlink_metadata(path)
        .is_ok_and(|facts| std::os::unix::fs::FileTypeExt::is_socket(&facts.file_type()))
    {
        fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// One connection, until it ends.
fn converse(mut socket: UnixStream, service: &Service, caller: Caller) {
    let Ok(reading) = socket.try_clone() else { return };
    let mut frames = Frames::new(reading);
    loop {
        let bytes = match frames.next(IDLE) {
            Ok(bytes) => bytes,
            Err(error) => {
                if matches!(error, NoFrame::TooLong(_) | NoFrame::Late) {
                    let reply = ErrorReply::new("BadRequest", error.to_string());
                    let _ = frame::write(&mut socket, &json!(reply), WRITING);
                }
                return;
            }
        };
        let call: Call = match serde_json::from_slice(&bytes) {
            Ok(call) => call,
            Err(error) => {
                let reply = ErrorReply::new("BadRequest", format!("no call of Varlink: {error}"));
                let _ = frame::write(&mut socket, &json!(reply), WRITING);
                return;
            }
        };
        if call.method.strip_prefix(INTERFACE) == Some(".Watch") {
            if !call.more {
                let reply =
                    ErrorReply::new("BadRequest", "Watch gives several replies: call it with \"more\": true");
                if frame::write(&mut socket, &json!(reply), WRITING).is_err() {
                    return;
                }
                continue;
            }
            return stream(&mut socket, service);
        }
        let reply = match service.answer(&call.method, &call.parameters, caller) {
            Ok(parameters) => json!({ "parameters": parameters }),
            Err(error) => json!(error),
        };
        if !call.oneway && frame::write(&mut socket, &reply, WRITING).is_err() {
            return;
        }
    }
}

/// Tells a watcher every event until it has gone or is too slow.
fn stream(socket: &mut UnixStream, service: &Service) {
    let events = service.watch();
    loop {
        match events.recv_timeout(Duration::from_millis(500)) {
            Ok(event) => {
                let reply = json!({ "parameters": event, "continues": true });
                if frame::write(socket, &reply, WRITING).is_err() {
                    return;
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                if horolog_sys::descriptor_passing::is_closed(socket.as_fd()) {
                    return;
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                let late = ErrorReply::new("Busy", "events were not read in time");
                let _: std::io::Result<()> = frame::write(socket, &json!(late), WRITING);
                return;
            }
        }
    }
}
