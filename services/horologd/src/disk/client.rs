//! The client's end of a disk that another process serves.

use super::DiskError;
use super::wire::{self, Ask, Hello, Kind, NoLine, PROTOCOL, Reply, Welcome};
use serde::de::DeserializeOwned;
use std::io::{BufReader, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection: one request at a time.
#[derive(Debug)]
pub struct DiskClient {
    socket: BufReader<UnixStream>,
    length: u64,
    chunk: u64,
}

/// When a request was asked for, was to be done, and was done, ns of the monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// When the service got it.
    pub asked_ns: u64,
    /// By when it was to be done; none of best effort.
    pub promised_ns: Option<u64>,
    /// When it was done.
    pub done_ns: u64,
}

impl Times {
    /// Whether it was done after what was promised.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.promised_ns.is_some_and(|promised| self.done_ns > promised)
    }
}

impl DiskClient {
    /// Connects; requests are on the reserve of this name, or best effort.
    ///
    /// # Errors
    /// Where no service listens, or no reserve has this name.
    pub fn connect(path: &Path, reserve: Option<&str>) -> Result<DiskClient, DiskError> {
        let socket = UnixStream::connect(path).map_err(|error| {
            DiskError::NoService(format!("no disk is served at {}: {error}", path.display()))
        })?;
        let mut socket = BufReader::new(socket);
        let hello = Hello { protocol: PROTOCOL.to_owned(), reserve: reserve.map(str::to_owned) };
        // A service that refuses says why and closes.
        let _ = wire::write(socket.get_mut(), &hello, &[]);
        let welcome: Welcome = next(&mut socket)?;
        match welcome.error {
            Some(error) => Err(DiskError::BadInput(error)),
            None => Ok(DiskClient { socket, length: welcome.length_bytes, chunk: welcome.chunk_bytes }),
        }
    }

    /// The length of the file or disk, bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The longest operation, bytes.
    #[must_use]
    pub fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Fills `data` from an offset on. Offset and length are multiples of 4,096.
    ///
    /// # Errors
    /// What the service says, or that it is gone.
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<Times, DiskError> {
        let reply = self.ask(&Ask { kind: Kind::Read, offset, bytes: data.len() as u64 }, &[])?;
        if reply.bytes != data.len() as u64 {
            return Err(DiskError::Failed(format!("{} bytes came of {}", reply.bytes, data.len())));
        }
        self.socket.read_exact(data).map_err(|_| DiskError::Ended)?;
        Ok(times(&reply))
    }

    /// Writes `data` to an offset. Offset and length are multiples of 4,096.
    ///
    /// # Errors
    /// As [`DiskClient::read`].
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<Times, DiskError> {
        self.ask(&Ask { kind: Kind::Write, offset, bytes: data.len() as u64 }, data)
            .map(|reply| times(&reply))
    }

    fn ask(&mut self, ask: &Ask, data: &[u8]) -> Result<Reply, DiskError> {
        // A service that refuses says why and closes, whatever else is on its way.
        let _ = wire::write(self.socket.get_mut(), ask, data);
        let reply: Reply = next(&mut self.socket)?;
        match reply.error {
            Some(error) => Err(DiskError::BadInput(error)),
            None => Ok(reply),
        }
    }
}

/// The next line, which there must be.
fn next<T: DeserializeOwned>(socket: &mut BufReader<UnixStream>) -> Result<T, DiskError> {
    match wire::read(socket) {
        Ok(line) => line.ok_or(DiskError::Ended),
        Err(NoLine::Failed(_)) => Err(DiskError::Ended),
        Err(NoLine::Strange(why)) => Err(DiskError::BadInput(format!(
            "what answers at this socket does not speak {PROTOCOL} ({why}): give the --socket of a disk that is served"
        ))),
    }
}

fn times(reply: &Reply) -> Times {
    Times { asked_ns: reply.asked_ns, promised_ns: reply.promised_ns, done_ns: reply.done_ns }
}
