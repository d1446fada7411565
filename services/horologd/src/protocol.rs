//! What client and daemon say to each other: the Varlink interface `io.horolog.Reserve`, version 1.

use horolog_reserve::{Amount, Kind};
use horolog_time::Span;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The interface.
pub const INTERFACE: &str = "io.horolog.Reserve";

/// Its description, as `org.varlink.service.GetInterfaceDescription` gives it.
pub const DESCRIPTION: &str = include_str!("io.horolog.Reserve.varlink");

/// A call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// `INTERFACE.Method`.
    pub method: String,
    /// An object.
    #[serde(default)]
    pub parameters: Value,
    /// Several replies are wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// No reply is wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oneway: bool,
}

/// One reserve that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartAsked {
    /// How much.
    pub amount: Amount,
    /// For how many threads; each gets the whole amount.
    #[serde(default = "one")]
    pub threads: usize,
    /// What happens at the end of a budget.
    #[serde(default)]
    pub kind: Kind,
    /// A name for people.
    #[serde(default)]
    pub name: Option<String>,
}

const fn one() -> usize {
    1
}

/// Parameters of `Create`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// All or none of them.
    pub parts: Vec<PartAsked>,
    /// Whether the reserves outlive the calling process.
    #[serde(default)]
    pub kept: bool,
}

/// Parameters of `Resize`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    /// The reserve.
    pub id: u64,
    /// The new amount.
    pub amount: Amount,
}

/// Parameters of `Delete` and `Show`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The reserve.
    pub id: u64,
}

/// Parameters of `Attach` and `Detach`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// The reserve.
    pub id: u64,
    /// A thread; the first one of a process has the number of the process.
    pub tid: u32,
    /// All threads of its process, also future ones, as far as the reserve has room (`Attach` alone).
    #[serde(default)]
    pub process: bool,
}

/// A bound thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundThread {
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// What the kernel says now that it gives this thread; null where it gives nothing (somebody has changed its class).
    pub granted: Option<Amount>,
    /// What it has executed since it was bound, by the scheduler's statistics.
    pub executed_ns: Span,
    /// How long it has been bound.
    pub bound_ns: Span,
}

/// A reserve as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: Option<String>,
    /// Who holds it.
    pub uid: u32,
    /// The process with which it ends; null: it is kept.
    pub client: Option<u32>,
    /// What happens at the end of a budget.
    pub kind: Kind,
    /// How much.
    pub amount: Amount,
    /// For how many threads.
    pub threads: usize,
    /// Who is bound.
    pub bound: Vec<BoundThread>,
}

/// Reply of `Create` and `List`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserves {
    /// In the order of their numbers.
    pub reserves: Vec<Shown>,
}

/// One event of `Watch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// `created`, `resized`, `deleted`, `attached`, `detached`, `dropped`, `changed`, `unproved`.
    pub what: String,
    /// The reserve.
    pub id: u64,
    /// More, in words.
    pub why: String,
}

/// An error of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReply {
    /// `io.horolog.Reserve.Refused`, `….BadRequest`, `….NotAllowed`, `….Busy`; `org.varlink.service.…`.
    pub error: String,
    /// `message`, for people, and of `Refused` the [`horolog_reserve::Refusal`].
    #[serde(default)]
    pub parameters: Value,
}

impl ErrorReply {
    /// An error of the interface with its message.
    #[must_use]
    pub fn new(name: &str, message: impl Into<String>) -> ErrorReply {
        ErrorReply {
            error: format!("{INTERFACE}.{name}"),
            parameters: serde_json::json!({ "message": message.into() }),
        }
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        self.parameters.get("message").and_then(Value::as_str).unwrap_or(&self.error)
    }

    /// Whether it is this error of the interface.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.error.strip_prefix(INTERFACE).and_then(|rest| rest.strip_prefix('.')) == Some(name)
    }
}
