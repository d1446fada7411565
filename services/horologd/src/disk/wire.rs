//! What goes over the socket: lines of JSON, and behind them the bytes that are written or were read.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, BufRead, Read as _, Write};

/// No line is longer.
const LONGEST_LINE: u64 = 4_096;

/// The version of the protocol.
pub(super) const PROTOCOL: &str = "horolog.disk/1";

/// The client's first line.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Hello {
    pub(super) protocol: String,
    /// None: best effort.
    pub(super) reserve: Option<String>,
}

/// The answer to it; an error ends the connection.
#[derive(Serialize, Deserialize, Debug, Default)]
pub(super) struct Welcome {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) length_bytes: u64,
    pub(super) chunk_bytes: u64,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Read,
    Write,
}

/// A request; the bytes of a write follow.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Ask {
    pub(super) kind: Kind,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The answer to it; the bytes of a read follow where there is no error.
#[derive(Serialize, Deserialize, Debug, Default)]
pub(super) struct Reply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) asked_ns: u64,
    #[serde(default)]
    pub(super) promised_ns: Option<u64>,
    pub(super) done_ns: u64,
    pub(super) bytes: u64,
}

/// Why there is no line.
#[derive(Debug)]
pub(super) enum NoLine {
    /// The connection failed.
    Failed(io::Error),
    /// What came is none of this protocol.
    Strange(String),
}

impl fmt::Display for NoLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoLine::Failed(error) if error.kind() == io::ErrorKind::WouldBlock => {
                f.write_str("the rest of a line, or its bytes, did not come: send it at once")
            }
            NoLine::Failed(error) => write!(f, "{error}"),
            NoLine::Strange(why) => f.write_str(why),
        }
    }
}

/// The next line; none at the end.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl BufRead) -> Result<Option<T>, NoLine> {
    let mut line = Vec::new();
    from.take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(NoLine::Failed)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => {
            serde_json::from_slice(&line).map(Some).map_err(|error| NoLine::Strange(error.to_string()))
        }
        Some(_) => Err(NoLine::Strange(format!("a line is cut off, or longer than {LONGEST_LINE} bytes"))),
    }
}

pub(super) fn write(to: &mut impl Write, value: &impl Serialize, data: &[u8]) -> Result<(), String> {
    let mut line = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    line.push(b'\n');
    line.extend_from_slice(data);
    to.write_all(&line).map_err(|error| error.to_string())
}
