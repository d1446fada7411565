//! A layer for the `tracing` crate: spans and events of any Rust program as events of horolog.
//!
//! ```
//! use tracing_subscriber::prelude::*;
//! horolog_probe::start().unwrap();
//! tracing_subscriber::registry().with(horolog_tracing::layer()).init();
//! tracing::info!(port = 80, "listens");
//! ```
//!
//! A span of name `answer` becomes `answer/begin`, with its fields, each time it is entered, and `answer/end`: a slice in
//! Perfetto, a duration in `horolog trace stats`. An event is called by its target and its level (`server/info`), and has its
//! message as the text `message` and its fields as arguments; what is neither a number, a bool nor a text is a text as its
//! `Debug` form says it. Ten arguments are kept, and 256 bytes of a text.
//!
//! All of it goes through one trigger, `tracing`: recorded by `horolog trace record`, or with `--event tracing`; else an
//! event costs the look whether it is enabled.

use horolog_probe::{DynamicEvent, MAX_TEXT, Type, Value, emit_dynamic};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::{PoisonError, RwLock};
use tracing_core::callsite::Identifier;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// The most arguments of an event.
const MOST: usize = horolog_probe::MAX_ARGUMENTS;

/// Hands spans and events on; [`layer`] makes it.
#[derive(Debug, Default)]
pub struct HorologLayer {
    /// The events met so far: fields that are missing, or have another type, make another one.
    known: RwLock<HashMap<Key, &'static DynamicEvent>>,
}

/// A place in the program, what happens there, and the types of the fields that were given.
type Key = (Identifier, What, [Option<(usize, Letter)>; MOST]);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum What {
    Event,
    Begin,
    End,
}

/// A type, by its letter.
type Letter = u8;

/// The layer.
#[must_use]
pub fn layer() -> HorologLayer {
    HorologLayer::default()
}

/// Whether the trigger of all spans and events is enabled.
fn is_wanted() -> bool {
    emit_dynamic!("tracing")
}

/// The values of fields, in the order in which they came.
#[derive(Clone, Debug, Default)]
struct Fields {
    values: Vec<(Field, Owned)>,
}

/// A value that lasts as long as its span.
#[derive(Clone, Debug)]
enum Owned {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Owned::Bool(value) => Value::Bool(*value),
            Owned::Unsigned(value) => Value::Unsigned(*value),
            Owned::Signed(value) => Value::Signed(*value),
            Owned::Float(value) => Value::Float(*value),
            Owned::Text(value) => Value::Text(value),
        }
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: Owned) {
        if let Some((_, known)) = self.values.iter_mut().find(|(known, _)| known == field) {
            *known = value;
        } else if self.values.len() < MOST {
            self.values.push((field.clone(), value));
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Owned::Float(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Owned::Signed(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Owned::Unsigned(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Owned::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let mut kept = Kept(String::new());
        let _ = kept.write_str(value);
        self.put(field, Owned::Text(kept.0));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut kept = Kept(String::new());
        let _ = write!(kept, "{value:?}");
        self.put(field, Owned::Text(kept.0));
    }
}

/// A text of which little more is kept than is recorded, so that it is seen where it was longer.
struct Kept(String);

impl fmt::Write for Kept {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if self.0.len() > MAX_TEXT {
                return Err(fmt::Error);
            }
            self.0.push(letter);
        }
        Ok(())
    }
}

impl HorologLayer {
    fn emit(&self, metadata: &'static Metadata<'static>, what: What, fields: &[(Field, Owned)]) {
        let mut types = [None; MOST];
        for (place, (field, value)) in types.iter_mut().zip(fields) {
            *place = Some((field.index(), value.value().r#type().letter()));
        }
        let key = (metadata.callsite(), what, types);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        let event = known.unwrap_or_else(|| {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            *known.entry(key).or_insert_with(|| made(metadata, what, fields))
        });
        let mut values = [Value::Bool(false); MOST];
        for (place, (_, value)) in values.iter_mut().zip(fields) {
            *place = value.value();
        }
        emit_dynamic!("tracing", event, &values[..fields.len().min(MOST)]);
    }

    fn span<S>(&self, id: &Id, what: What, context: &Context<'_, S>)
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let Some(span) = context.span(id).filter(|_| is_wanted()) else { return };
        let extensions = span.extensions();
        let fields = match extensions.get::<Fields>() {
            Some(fields) if what == What::Begin => fields.values.as_slice(),
            _ => &[],
        };
        self.emit(span.metadata(), what, fields);
    }
}

fn made(metadata: &Metadata<'_>, what: What, fields: &[(Field, Owned)]) -> &'static DynamicEvent {
    let name = match what {
        What::Event => {
            format!("{}/{}", metadata.target(), metadata.level().as_str().to_ascii_lowercase())
        }
        What::Begin => format!("{}/begin", metadata.name()),
        What::End => format!("{}/end", metadata.name()),
    };
    let arguments: Vec<(&str, &str, Type)> =
        fields.iter().map(|(field, value)| (field.name(), "", value.value().r#type())).collect();
    DynamicEvent::new(&name, &arguments)
}

impl<S> Layer<S> for HorologLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if !is_wanted() {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.emit(event.metadata(), What::Event, &fields.values);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.span(id, What::Begin, &context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        self.span(id, What::End, &context);
    }
}
