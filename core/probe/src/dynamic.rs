//! Events that a program makes while it runs, for bridges from other tracing interfaces. They have no site: a bridge has
//! one trigger for all of its events, and they are recorded while that is enabled.

use crate::about::About;
use crate::argument::{Text, Type};
use crate::{Argument, Event, MAX_ARGUMENTS, Types};
use std::ffi::{CStr, CString};

/// The value of one argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A bool.
    Bool(bool),
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// A text, of which at most [`MAX_TEXT`](crate::MAX_TEXT) bytes are recorded.
    Text(&'a str),
}

impl Value<'_> {
    /// Its type.
    #[must_use]
    pub const fn r#type(&self) -> Type {
        match self {
            Value::Bool(_) => Type::Bool,
            Value::Unsigned(_) => Type::Unsigned,
            Value::Signed(_) => Type::Signed,
            Value::Float(_) => Type::Float,
            Value::Text(_) => Type::Text,
        }
    }
}

/// An event made while the program runs.
///
/// ```
/// use horolog_probe::{DynamicEvent, Type, Value, emit_dynamic};
/// let open = DynamicEvent::new("file/open", &[("path", "", Type::Text), ("size", "B", Type::Unsigned)]);
/// emit_dynamic!("my-bridge", open, &[Value::Text("/etc/hosts"), Value::Unsigned(220)]);
/// ```
#[derive(Debug)]
pub struct DynamicEvent {
    event: Event,
    types: [Option<Type>; MAX_ARGUMENTS],
}

/// What a site hands over: an event, and the address of its words.
#[doc(hidden)]
#[derive(Debug)]
pub struct Pending {
    event: *const Event,
    words: *const u64,
}

impl DynamicEvent {
    /// An event with these arguments (name, unit or nothing, type), of which those behind the tenth are left out. It is never
    /// given back, so make each one once.
    #[must_use]
    pub fn new(name: &str, arguments: &[(&str, &str, Type)]) -> &'static DynamicEvent {
        let arguments = &arguments[..arguments.len().min(MAX_ARGUMENTS)];
        // The macros' own form, whose separators no name may hold.
        let clean = |text: &str| text.replace(['\x1e', '\x1f'], "?");
        let piece = |name: &str, unit: &str| match unit {
            "" => format!("\x1e{}\x1f", clean(name)),
            _ => format!("\x1e{}\x1e{}\x1f", clean(name), clean(unit)),
        };
        let pieces: String = arguments.iter().map(|(name, unit, _)| piece(name, unit)).collect();
        let about: &'static About = Box::leak(Box::new(About::new(c"", 0, c"", leaked(&pieces))));
        let event =
            Event::of_sites(leaked(if name.is_empty() { "?" } else { name }), arguments.len(), Some(about));
        let mut types = [None; MAX_ARGUMENTS];
        let mut bits = 0;
        for (place, (_, _, r#type)) in arguments.iter().enumerate() {
            types[place] = Some(*r#type);
            bits |= (*r#type as u32) << (3 * place);
        }
        if let Some(letters) = Types::of_bits(bits, arguments.len()) {
            event.set_types(letters);
        }
        Box::leak(Box::new(DynamicEvent { event, types }))
    }

    /// How many arguments it has.
    #[must_use]
    pub const fn arguments(&self) -> usize {
        self.event.arguments()
    }

    /// For [`emit_dynamic!`](crate::emit_dynamic): calls `site` with what it has to hand over.
    #[doc(hidden)]
    pub fn __pending(&self, values: &[Value<'_>], site: impl FnOnce(*const Pending)) {
        let given = values.iter().map(|value| Some(value.r#type())).chain(std::iter::repeat(None));
        if values.len() > MAX_ARGUMENTS || !self.types.iter().copied().eq(given.take(MAX_ARGUMENTS)) {
            return;
        }
        let mut texts = [const { Text::EMPTY }; MAX_ARGUMENTS];
        let mut words = [0; MAX_ARGUMENTS];
        for ((value, text), word) in values.iter().zip(&mut texts).zip(&mut words) {
            *word = match value {
                Value::Bool(value) => u64::from(*value),
                Value::Unsigned(value) => *value,
                Value::Signed(value) => value.cast_unsigned(),
                Value::Float(value) => value.to_bits(),
                Value::Text(value) => {
                    *text = value.keep();
                    <&str as Argument>::word(text)
                }
            };
        }
        let pending = Pending { event: &raw const self.event, words: words.as_ptr() };
        site(&raw const pending);
    }
}

/// Emits a [`DynamicEvent`] while the trigger of this name is enabled: `emit_dynamic!("bridge", event, &[Value…])`. Values of
/// another number or type than its arguments are not emitted. Without the two last, whether that trigger is enabled, which is
/// worth asking where values are costly.
#[macro_export]
macro_rules! emit_dynamic {
    ($name:literal) => {{
        ::std::thread_local!(static HOROLOG_WANTED: ::core::cell::Cell<bool> = const { ::core::cell::Cell::new(false) });
        HOROLOG_WANTED.set(false);
        $crate::trigger_callback!($name, |_, _| HOROLOG_WANTED.set(true));
        HOROLOG_WANTED.get()
    }};
    ($name:literal, $event:expr, $values:expr) => {
        $event.__pending($values, |pending| {
            $crate::trigger_callback!($name, $crate::__private::hand_over, pending);
        })
    };
}

/// What the enabled site calls: the event goes to the runtime to which the site belongs.
#[doc(hidden)]
pub fn hand_over(site: &Event, words: &[u64]) {
    let pending = core::ptr::with_exposed_provenance::<Pending>(words[0] as usize);
    // SAFETY: the site is in `emit_dynamic!` alone, inside `__pending`, whose event, words and texts last until the site is
    // left; the words are those of the event's arguments.
    unsafe {
        let pending = &*pending;
        (*pending.event).follow(site);
        (*pending.event).call(pending.words);
    }
}

/// A text that is never given back; what a zero byte would end is cut there.
fn leaked(text: &str) -> &'static CStr {
    let text = text.split('\0').next().unwrap_or_default();
    Box::leak(CString::new(text).unwrap_or_default().into_boxed_c_str())
}
