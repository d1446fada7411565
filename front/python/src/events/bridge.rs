//! From Python's arguments to the events of `horolog_probe`.

use super::{Argument, Given, text};
use horolog_probe::{DynamicEvent, MAX_ARGUMENTS, Type, Value, emit_dynamic};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The most different events of a program; a name that is made anew each time would fill its memory.
const MOST_EVENTS: usize = 4_000;

/// Whether the trigger is enabled.
pub(super) fn is_wanted() -> bool {
    emit_dynamic!("python")
}

/// Starts what the environment asks for.
pub(super) fn start() {
    if let Err(error) = horolog_probe::start() {
        // A program whose tracing cannot start runs all the same.
        eprintln!("horolog: not traced: {error}");
    }
}

impl Given<'_> {
    fn r#type(&self) -> Type {
        match self {
            Given::Bool(_) => Type::Bool,
            Given::Signed(_) => Type::Signed,
            Given::Unsigned(_) => Type::Unsigned,
            Given::Float(_) => Type::Float,
            Given::Text(_) | Given::Shown(_) => Type::Text,
        }
    }
}

/// The events met so far, by their names and arguments; other units or types make another one.
#[derive(Default)]
struct Known {
    events: HashMap<Box<[u8]>, &'static DynamicEvent>,
    key: Vec<u8>,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

impl Known {
    /// The interpreter's lock is held from before to after, so that no `fork` meets it.
    fn event(&mut self, name: &str, suffix: &str, arguments: &[Argument<'_>]) -> &'static DynamicEvent {
        self.key.clear();
        self.key.extend_from_slice(name.as_bytes());
        self.key.extend_from_slice(suffix.as_bytes());
        for one in arguments {
            self.key.extend_from_slice(&[0xff, one.value.r#type() as u8]);
            self.key.extend_from_slice(text(&one.name).as_bytes());
            if let Some(unit) = &one.unit {
                self.key.push(0xff);
                self.key.extend_from_slice(text(unit).as_bytes());
            }
        }
        if let Some(event) = self.events.get(self.key.as_slice()) {
            return event;
        }
        if self.events.len() >= MOST_EVENTS {
            static REST: LazyLock<&DynamicEvent> =
                LazyLock::new(|| DynamicEvent::new("python/too-many-names", &[]));
            return &REST;
        }
        let texts: Vec<(Cow<'_, str>, Cow<'_, str>, Type)> = arguments
            .iter()
            .map(|one| {
                (text(&one.name), one.unit.as_ref().map_or(Cow::Borrowed(""), text), one.value.r#type())
            })
            .collect();
        let fields: Vec<(&str, &str, Type)> =
            texts.iter().map(|(name, unit, r#type)| (&**name, &**unit, *r#type)).collect();
        let event = DynamicEvent::new(&format!("{name}{suffix}"), &fields);
        self.events.insert(self.key.clone().into_boxed_slice(), event);
        event
    }
}

/// Emits an event.
pub(super) fn emit(name: &Bound<'_, PyString>, suffix: &str, arguments: &[Argument<'_>]) {
    let arguments = &arguments[..arguments.len().min(MAX_ARGUMENTS)];
    let texts: [Cow<'_, str>; MAX_ARGUMENTS] =
        std::array::from_fn(|place| match arguments.get(place).map(|one| &one.value) {
            Some(Given::Text(value)) => text(value),
            Some(Given::Shown(value)) => Cow::Borrowed(value.as_str()),
            _ => Cow::Borrowed(""),
        });
    let mut values = [Value::Bool(false); MAX_ARGUMENTS];
    for ((value, one), text) in values.iter_mut().zip(arguments).zip(&texts) {
        *value = match &one.value {
            Given::Bool(given) => Value::Bool(*given),
            Given::Signed(given) => Value::Signed(*given),
            Given::Unsigned(given) => Value::Unsigned(*given),
            Given::Float(given) => Value::Float(*given),
            Given::Text(_) | Given::Shown(_) => Value::Text(text),
        };
    }
    let event = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).event(&text(name), suffix, arguments);
    emit_dynamic!("python", event, &values[..event.arguments()]);
}
