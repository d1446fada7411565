//! The client's end.

use crate::frame::{self, Frames, NoFrame};
use crate::protocol::{Call, ErrorReply, INTERFACE};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// So long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a daemon that closes has said is there already.
const AT_ONCE: Duration = Duration::from_millis(100);

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    socket: UnixStream,
    frames: Frames,
}

/// Why a call gave no result.
#[derive(Debug)]
pub enum ClientError {
    /// Nobody listens there.
    NoDaemon(PathBuf, std::io::Error),
    /// The daemon said no.
    Refused(ErrorReply),
    /// The connection broke, or the answer made no sense.
    Broken(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::NoDaemon(path, error) => {
                write!(f, "no horologd listens at {}: {error}", path.display())
            }
            ClientError::Refused(reply) => f.write_str(reply.message()),
            ClientError::Broken(why) => write!(f, "the connection to horologd: {why}"),
        }
    }
}

impl std::error::Error for ClientError {}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// [`ClientError::NoDaemon`].
    pub fn connect(path: &Path) -> Result<Client, ClientError> {
        let no_daemon = |error| ClientError::NoDaemon(path.to_owned(), error);
        let socket = UnixStream::connect(path).map_err(no_daemon)?;
        let frames = Frames::of_replies(socket.try_clone().map_err(no_daemon)?);
        Ok(Client { socket, frames })
    }

    /// Calls a method of the interface.
    ///
    /// # Errors
    /// What the daemon says, or that it says nothing.
    pub fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        parameters: impl Serialize,
    ) -> Result<T, ClientError> {
        match self.send(method, parameters, false) {
            Ok(()) => self.receive(PATIENCE),
            // A daemon that takes no more connections says so and closes.
            Err(error) => match self.receive::<Value>(AT_ONCE) {
                Err(refused @ ClientError::Refused(_)) => Err(refused),
                _ => Err(error),
            },
        }
    }

    /// Asks for several replies; [`Client::receive`] gives them.
    ///
    /// # Errors
    /// Where the daemon takes no call.
    pub fn send(&mut self, method: &str, parameters: impl Serialize, more: bool) -> Result<(), ClientError> {
        let call = Call {
            method: format!("{INTERFACE}.{method}"),
            parameters: json!(parameters),
            more,
            oneway: false,
        };
        frame::write(&mut self.socket, &json!(call), PATIENCE)
            .map_err(|error| ClientError::Broken(error.to_string()))
    }

    /// The next reply.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn receive<T: DeserializeOwned>(&mut self, patience: Duration) -> Result<T, ClientError> {
        let bytes =
            self.frames.next(patience).map_err(|error: NoFrame| ClientError::Broken(error.to_string()))?;
        let reply: Value =
            serde_json::from_slice(&bytes).map_err(|error| ClientError::Broken(error.to_string()))?;
        if reply.get("error").is_some() {
            let error =
                serde_json::from_value(reply).map_err(|error| ClientError::Broken(error.to_string()))?;
            return Err(ClientError::Refused(error));
        }
        let parameters = reply.get("parameters").cloned().unwrap_or_else(|| json!({}));
        serde_json::from_value(parameters).map_err(|error| ClientError::Broken(error.to_string()))
    }
}
