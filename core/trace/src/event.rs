//! Events of user programs: their definitions, and one event with its arguments.

use crate::file::Thread;
use crate::{Record, TraceError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most arguments that an event may have.
pub const MAX_ARGUMENTS: usize = 10;
/// The longest name of an event, in bytes.
pub const MAX_NAME: usize = 255;
/// The longest that the names of its arguments may be, in bytes and with a comma between them.
pub const MAX_ARGUMENT_NAMES: usize = 511;

/// What an event is called and what it carries; `docs/trace-format.md`, kind 62.
///
/// ```
/// use horolog_trace::EventDefinition;
/// let packet = EventDefinition::new("net/packet", "up", &["length", "socket"])?;
/// assert_eq!(packet.arguments(), 2);
/// assert!(EventDefinition::new("net/packet", "x", &[]).is_err());
/// # Ok::<(), horolog_trace::TraceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct EventDefinition {
    /// Its name, by custom `subject/what`.
    pub name: String,
    /// One letter an argument: `b` bool, `u` unsigned, `i` signed integer, `f` double, `p` address. A reader takes any
    /// other letter for a plain unsigned word.
    pub types: String,
    /// The names of the arguments; empty where the program gave none.
    #[serde(rename = "arguments", default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl EventDefinition {
    /// An event called `name` whose arguments have these types and, unless empty, these names.
    ///
    /// # Errors
    /// Where the name is empty or longer than [`MAX_NAME`] bytes, there are more than [`MAX_ARGUMENTS`] arguments, a
    /// type letter is none of `buifp`, or the names are not as many as the types or too long.
    pub fn new(name: &str, types: &str, names: &[&str]) -> Result<EventDefinition, TraceError> {
        let refuse = |what: String, remedy: &str| Err(TraceError::unsupported(what, remedy));
        if name.is_empty() || name.len() > MAX_NAME {
            return refuse(format!("an event's name of {} bytes", name.len()), "use 1 to 255 bytes");
        }
        if types.len() > MAX_ARGUMENTS {
            return refuse(format!("event {name} with {} arguments", types.len()), "use at most 10");
        }
        if let Some(letter) = types.chars().find(|letter| !"buifp".contains(*letter)) {
            return refuse(
                format!("event {name} with an argument of type `{letter}`"),
                "use b, u, i, f or p",
            );
        }
        if !names.is_empty() && names.len() != types.len() {
            return refuse(
                format!("event {name} with {} arguments and {} names of them", types.len(), names.len()),
                "name all of them, or none",
            );
        }
        let text: usize = names.iter().map(|name| name.len() + 1).sum();
        if text > MAX_ARGUMENT_NAMES || names.iter().any(|name| name.contains(',')) {
            return refuse(
                format!("the names of event {name}'s arguments"),
                "use shorter ones without commas",
            );
        }
        Ok(EventDefinition {
            name: name.to_owned(),
            types: types.to_owned(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        })
    }

    /// How many arguments it has.
    #[must_use]
    pub fn arguments(&self) -> usize {
        self.types.len()
    }

    /// The value of an argument whose word is `word`.
    #[must_use]
    pub fn value(&self, argument: usize, word: u64) -> Value {
        Value::of(self.types.as_bytes().get(argument).copied().unwrap_or(b'u'), word)
    }
}

/// The value of one argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// `b`.
    Bool(bool),
    /// `u`, and every letter that this version does not know.
    Unsigned(u64),
    /// `i`.
    Signed(i64),
    /// `f`.
    Float(f64),
    /// `p`.
    Address(u64),
}

impl Value {
    /// The value that an 8-byte word holds, by the letter of its type.
    #[must_use]
    pub const fn of(letter: u8, word: u64) -> Value {
        match letter {
            b'b' => Value::Bool(word != 0),
            b'i' => Value::Signed(word.cast_signed()),
            b'f' => Value::Float(f64::from_bits(word)),
            b'p' => Value::Address(word),
            _ => Value::Unsigned(word),
        }
    }

    /// The nearest floating-point number, for statistics and plots.
    #[must_use]
    pub fn as_number(self) -> f64 {
        match self {
            Value::Bool(value) => f64::from(u8::from(value)),
            Value::Unsigned(value) | Value::Address(value) => value as f64,
            Value::Signed(value) => value as f64,
            Value::Float(value) => value,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Unsigned(value) => write!(f, "{value}"),
            Value::Signed(value) => write!(f, "{value}"),
            // Debug keeps the point: 2.0 is no integer.
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Address(value) => write!(f, "{value:#x}"),
        }
    }
}

/// One event of a user program, as [`crate::file::Reader::user_event`] shows it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct UserEvent<'a> {
    /// Time, processor and task; `value` is the event's number and `extra` the thread's.
    pub record: Record,
    /// What it is called and what it carries.
    pub definition: &'a EventDefinition,
    /// Which thread met it.
    pub thread: Option<&'a Thread>,
    /// One word an argument.
    pub words: &'a [u64],
}

impl<'a> UserEvent<'a> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.definition.name
    }

    /// The value of an argument, counted from 0.
    #[must_use]
    pub fn value(&self, argument: usize) -> Option<Value> {
        self.words.get(argument).map(|word| self.definition.value(argument, *word))
    }

    /// All arguments: the name, where it has one, and the value.
    pub fn arguments(&self) -> impl Iterator<Item = (Option<&'a str>, Value)> + '_ {
        self.words.iter().enumerate().map(|(place, word)| {
            (self.definition.names.get(place).map(String::as_str), self.definition.value(place, *word))
        })
    }
}

impl fmt::Display for UserEvent<'_> {
    /// `net/packet(length=3, socket=0x7f00)`; without names `net/packet(3, 0x7f00)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.definition.name)?;
        for (place, (name, value)) in self.arguments().enumerate() {
            if place > 0 {
                f.write_str(", ")?;
            }
            if let Some(name) = name {
                write!(f, "{name}=")?;
            }
            write!(f, "{value}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NO_JOB, NO_TASK};
    use horolog_time::Instant;

    #[test]
    fn events_print_with_and_without_names_of_their_arguments() {
        let record = Record {
            time: Instant::ZERO,
            kind: Kind::User,
            cpu: 0,
            task: NO_TASK,
            job: NO_JOB,
            value: 0,
            extra: 0,
        };
        let words = [1, 42, (-3_i64).cast_unsigned(), 1.5_f64.to_bits(), 0x7f00];
        let named = EventDefinition::new("a/b", "buifp", &["ok", "n", "d", "x", "at"]).unwrap();
        let event = UserEvent { record, definition: &named, thread: None, words: &words };
        assert_eq!(event.to_string(), "a/b(ok=true, n=42, d=-3, x=1.5, at=0x7f00)");
        let plain = EventDefinition::new("a/b", "buifp", &[]).unwrap();
        let event = UserEvent { definition: &plain, ..event };
        assert_eq!(event.to_string(), "a/b(true, 42, -3, 1.5, 0x7f00)");
        assert_eq!((event.value(1), event.value(5)), (Some(Value::Unsigned(42)), None));
        let none = EventDefinition::new("tick", "", &[]).unwrap();
        assert_eq!(UserEvent { definition: &none, words: &[], ..event }.to_string(), "tick()");
    }

    #[test]
    fn definitions_that_the_format_cannot_hold_are_refused() {
        for (name, types, names) in [
            ("", "", &[] as &[&str]),
            (&"x".repeat(256), "", &[]),
            ("x", "uuuuuuuuuuu", &[]),
            ("x", "uz", &[]),
            ("x", "uu", &["one"]),
            ("x", "u", &["a,b"]),
            ("x", "u", &[&"y".repeat(600)]),
        ] {
            let error = EventDefinition::new(name, types, names).unwrap_err();
            assert!(error.is_bad_input(), "{error}");
        }
    }
}
