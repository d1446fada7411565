//! The socket of a disk's service: a thread for each connection, one request at a time on each.

use super::wire::{self, Ask, Hello, Kind, PROTOCOL, Reply, Welcome};
use super::{DiskService, Handle, LONGEST_REQUEST, Work};
use horolog_sys::Error;
use horolog_sys::descriptor_passing::has_hung_up;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// So many connections at the most.
const MOST_CONNECTIONS: usize = 64;

/// A client that takes nothing for so long, or does not end what it has begun to send, loses its connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket that is removed when this is dropped.
#[derive(Debug)]
pub struct DiskServer {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket: what is at its path later may be another's.
    own: Option<(u64, u64)>,
    open: Arc<Mutex<BTreeMap<u64, UnixStream>>>,
}

impl DiskServer {
    /// Listens for this user's programs.
    ///
    /// # Errors
    /// Where a service listens there already, or the socket cannot be made.
    pub fn bind(path: &Path) -> Result<DiskServer, Error> {
        let what = format!("bind({})", path.display());
        let remedy = "give another --socket, in a folder that lets you write";
        if UnixStream::connect(path).is_ok() {
            return Err(Error::bad_input(what, "a service listens there already", remedy));
        }
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| {
            use std::os::unix::fs::FileTypeExt as _;
            found.file_type().is_socket()
        });
        // Left behind by a service that was killed.
        if is_socket {
            let _ = std::fs::remove_file(path);
        }
        let failed = |error: std::io::Error| Error::io(what.clone(), &error, remedy);
        let listener = UnixListener::bind(path).map_err(failed)?;
        let server =
            DiskServer { listener, path: path.to_owned(), own: identity(path), open: Arc::default() };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        server.listener.set_nonblocking(true).map_err(failed)?;
        Ok(server)
    }

    /// Answers until `stop` says so.
    pub fn serve(&self, service: &DiskService, stop: &AtomicBool) {
        let mut number = 0;
        while !stop.load(Ordering::Acquire) {
            let Ok((socket, _)) = self.listener.accept() else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            number += 1;
            self.connect(service, socket, number);
        }
        for socket in self.open.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Begins a conversation, which ends with the connection or the service.
    fn connect(&self, service: &DiskService, mut socket: UnixStream, number: u64) {
        let set = socket.set_nonblocking(false).and_then(|()| socket.set_write_timeout(Some(PATIENCE)));
        let Ok(copy) = set.and_then(|()| socket.try_clone()) else { return };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MOST_CONNECTIONS {
            let error = Some(format!("there are {MOST_CONNECTIONS} connections already: close one"));
            let _ = wire::write(&mut socket, &Welcome { error, ..Welcome::default() }, &[]);
            return;
        }
        open.insert(number, copy);
        drop(open);
        let (shared, open) = (Arc::clone(&service.shared), Arc::clone(&self.open));
        let begun = std::thread::Builder::new().name("client".to_owned()).spawn(move || {
            let _ = converse(&shared, socket);
            open.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        });
        if begun.is_err() {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        }
    }
}

impl Drop for DiskServer {
    fn drop(&mut self) {
        if self.own.is_some() && identity(&self.path) == self.own {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Device and inode of what is at a path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// A connection from its first line to its end, or the first thing that makes no sense.
fn converse(shared: &Arc<super::Shared>, socket: UnixStream) -> Result<(), String> {
    let patient = |socket: &UnixStream, for_ever: bool| {
        socket.set_read_timeout((!for_ever).then_some(PATIENCE)).map_err(|error| error.to_string())
    };
    let mut socket = BufReader::new(socket);
    patient(socket.get_ref(), false)?;
    let found = match wire::read::<Hello>(&mut socket) {
        Ok(None) => return Ok(()),
        Ok(Some(hello)) if hello.protocol != PROTOCOL => Err(format!("this service speaks {PROTOCOL}")),
        Ok(Some(hello)) => Handle::of(shared, hello.reserve.as_deref()).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let (length_bytes, chunk_bytes) = (shared.length, shared.chunk);
    let welcome = |error| Welcome { error, length_bytes, chunk_bytes };
    let handle = match found {
        Ok(handle) => handle,
        Err(error) => return wire::write(socket.get_mut(), &welcome(Some(error)), &[]),
    };
    wire::write(socket.get_mut(), &welcome(None), &[])?;
    let refused = |error| Reply { error: Some(error), ..Reply::default() };
    loop {
        // A client may ask when it likes, and is to say then at once what.
        patient(socket.get_ref(), true)?;
        socket.fill_buf().map_err(|error| error.to_string())?;
        patient(socket.get_ref(), false)?;
        let work = match next_work(&mut socket) {
            Ok(None) => return Ok(()),
            Ok(Some(work)) => work,
            Err(error) => return wire::write(socket.get_mut(), &refused(error), &[]),
        };
        match handle.ask_while(work, &|| !has_hung_up(socket.get_ref())) {
            Ok(answer) => {
                let super::Finished { asked_ns, promised_ns, done_ns, .. } = answer.finished;
                let bytes = answer.data.len() as u64;
                let reply = Reply { error: None, asked_ns, promised_ns, done_ns, bytes };
                wire::write(socket.get_mut(), &reply, &answer.data)?;
            }
            Err(error) => wire::write(socket.get_mut(), &refused(error.to_string()), &[])?,
        }
    }
}

/// The next request, with the bytes of a write; none at the end.
fn next_work(socket: &mut BufReader<UnixStream>) -> Result<Option<Work>, String> {
    let Some(ask) = wire::read::<Ask>(socket).map_err(|error| error.to_string())? else { return Ok(None) };
    Ok(Some(match ask.kind {
        Kind::Read => Work::Read { offset: ask.offset, bytes: ask.bytes },
        Kind::Write if ask.bytes > LONGEST_REQUEST => {
            return Err(format!("{} bytes: at most {LONGEST_REQUEST} at once", ask.bytes));
        }
        Kind::Write => {
            let mut data = vec![0; ask.bytes as usize];
            socket.read_exact(&mut data).map_err(|error| wire::NoLine::Failed(error).to_string())?;
            Work::Write { offset: ask.offset, data }
        }
    }))
}
