//! Events of user programs: their definitions, and one event with its arguments.

use crate::file::Thread;
use crate::{Record, TraceError, escaped};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most arguments that an event may have.
pub const MAX_ARGUMENTS: usize = 10;
/// The longest name of an event, in bytes.
pub const MAX_NAME: usize = 255;
/// The longest that the names of its arguments may be, in bytes and with a comma between them; their units likewise.
pub const MAX_ARGUMENT_NAMES: usize = 511;
/// The most bytes of a text argument.
pub const MAX_TEXT: usize = 256;
/// Of the word in front of a text's bytes: the text was longer.
pub const CUT: u64 = 1 << 63;

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
    /// One letter an argument: `b` bool, `u` unsigned, `i` signed integer, `f` double, `p` address, `s` text. A reader takes
    /// any other letter for a plain unsigned word.
    pub types: String,
    /// The names of the arguments, empty texts among them where some have none; an empty list where the program gave none.
    #[serde(rename = "arguments", default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Their units, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<String>,
}

impl EventDefinition {
    /// An event called `name` whose arguments have these types and, unless empty, these names.
    ///
    /// # Errors
    /// Where the name is empty or longer than [`MAX_NAME`] bytes, there are more than [`MAX_ARGUMENTS`] arguments, a
    /// type letter is none of `buifps`, or the names are not as many as the types or too long.
    pub fn new(name: &str, types: &str, names: &[&str]) -> Result<EventDefinition, TraceError> {
        let refuse = |what: String, remedy: &str| Err(TraceError::unsupported(what, remedy));
        if name.is_empty() || name.len() > MAX_NAME {
            return refuse(format!("an event's name of {} bytes", name.len()), "use 1 to 255 bytes");
        }
        if types.len() > MAX_ARGUMENTS {
            return refuse(format!("event {name} with {} arguments", types.len()), "use at most 10");
        }
        if let Some(letter) = types.chars().find(|letter| !"buifps".contains(*letter)) {
            return refuse(
                format!("event {name} with an argument of type `{letter}`"),
                "use b, u, i, f, p or s",
            );
        }
        if !names.is_empty() && names.len() != types.len() {
            return refuse(
                format!("event {name} with {} arguments and {} names of them", types.len(), names.len()),
                "name all of them, or none",
            );
        }
        if !fit(names) {
            return refuse(
                format!("the names of event {name}'s arguments"),
                "use shorter ones without commas",
            );
        }
        Ok(EventDefinition {
            name: name.to_owned(),
            types: types.to_owned(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            units: Vec::new(),
        })
    }

    /// The same with the units of its arguments, an empty text where one has none.
    ///
    /// # Errors
    /// Where there are not as many as arguments, or they are too long or hold a comma.
    pub fn with_units(mut self, units: &[&str]) -> Result<EventDefinition, TraceError> {
        if units.len() != self.types.len() || !fit(units) {
            return Err(TraceError::unsupported(
                format!("the units of event {}'s arguments", self.name),
                "give one an argument, short and without commas",
            ));
        }
        if units.iter().any(|unit| !unit.is_empty()) {
            self.units = units.iter().map(|&unit| unit.to_owned()).collect();
        }
        Ok(self)
    }

    /// The name of an argument, where it has one.
    #[must_use]
    pub fn argument_name(&self, argument: usize) -> Option<&str> {
        self.names.get(argument).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The unit of an argument, where it has one.
    #[must_use]
    pub fn unit(&self, argument: usize) -> Option<&str> {
        self.units.get(argument).map(String::as_str).filter(|unit| !unit.is_empty())
    }

    /// How an argument is called in tables: `length [B]`; `argument 0` where it has no name.
    #[must_use]
    pub fn label(&self, argument: usize) -> String {
        let name = self.argument_name(argument).map_or_else(|| format!("argument {argument}"), str::to_owned);
        match self.unit(argument) {
            Some(unit) => format!("{name} [{unit}]"),
            None => name,
        }
    }

    /// How many of `words` its arguments take; `None` where they are no such arguments.
    #[must_use]
    pub fn words(&self, words: &[u64]) -> Option<usize> {
        let mut taken = 0;
        for letter in self.types.bytes() {
            let head = *words.get(taken)?;
            taken += 1;
            if letter == b's' {
                let length = usize::try_from(head & !CUT).ok().filter(|length| *length <= MAX_TEXT)?;
                taken += length.div_ceil(8);
            }
        }
        (taken <= words.len()).then_some(taken)
    }

    /// The values of its arguments.
    pub fn values<'a>(&'a self, words: &'a [u64]) -> impl Iterator<Item = Value<'a>> {
        let mut rest = words;
        self.types.bytes().map_while(move |letter| {
            let (head, behind) = rest.split_first()?;
            rest = behind;
            if letter != b's' {
                return Some(Value::of(letter, *head));
            }
            let length = usize::try_from(head & !CUT).ok()?;
            let (words, behind) = rest.split_at_checked(length.div_ceil(8))?;
            rest = behind;
            Some(Value::Text(Text { words, length, is_cut: head & CUT != 0 }))
        })
    }

    /// How many arguments it has.
    #[must_use]
    pub fn arguments(&self) -> usize {
        self.types.len()
    }
}

/// Whether these names or units have their place in the format.
fn fit(texts: &[&str]) -> bool {
    let bytes: usize = texts.iter().map(|text| text.len() + 1).sum();
    bytes <= MAX_ARGUMENT_NAMES && !texts.iter().any(|text| text.contains(','))
}

/// A text argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text<'a> {
    words: &'a [u64],
    length: usize,
    is_cut: bool,
}

impl Text<'_> {
    /// Its bytes, at most [`MAX_TEXT`].
    pub fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.words.iter().flat_map(|word| word.to_ne_bytes()).take(self.length)
    }

    /// Whether the program's text was longer.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

impl fmt::Display for Text<'_> {
    /// The text, with `\xNN` for what is not UTF-8; of one that was cut, `…` behind its last whole character.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<u8> = self.bytes().collect();
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            f.write_str(chunk.valid())?;
            // What a cut has left of a character is no text.
            if self.is_cut && chunks.peek().is_none() {
                break;
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        f.write_str(if self.is_cut { "…" } else { "" })
    }
}

/// The words of a text argument, as they are among those of an event.
#[must_use]
pub fn text_words(text: &[u8]) -> Vec<u64> {
    let kept = &text[..text.len().min(MAX_TEXT)];
    let head = kept.len() as u64 | if kept.len() < text.len() { CUT } else { 0 };
    let words = kept.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    });
    std::iter::once(head).chain(words).collect()
}

/// The value of one argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
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
    /// `s`.
    Text(Text<'a>),
}

impl Value<'_> {
    /// The value that an 8-byte word holds, by the letter of its type, which is no text.
    #[must_use]
    pub const fn of(letter: u8, word: u64) -> Value<'static> {
        match letter {
            b'b' => Value::Bool(word != 0),
            b'i' => Value::Signed(word.cast_signed()),
            b'f' => Value::Float(f64::from_bits(word)),
            b'p' => Value::Address(word),
            _ => Value::Unsigned(word),
        }
    }

    /// The 8-byte word, as a signed number; of a text its length in bytes.
    #[must_use]
    pub fn as_word(self) -> i64 {
        match self {
            Value::Bool(value) => i64::from(value),
            Value::Unsigned(value) | Value::Address(value) => value.cast_signed(),
            Value::Signed(value) => value,
            Value::Float(value) => value.to_bits().cast_signed(),
            Value::Text(value) => value.bytes().count() as i64,
        }
    }

    /// The nearest floating-point number, for statistics and plots; not a number, of a text.
    #[must_use]
    pub fn as_number(self) -> f64 {
        match self {
            Value::Bool(value) => f64::from(u8::from(value)),
            Value::Unsigned(value) | Value::Address(value) => value as f64,
            Value::Signed(value) => value as f64,
            Value::Float(value) => value,
            Value::Text(_) => f64::NAN,
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Unsigned(value) => write!(f, "{value}"),
            Value::Signed(value) => write!(f, "{value}"),
            // Debug keeps the point: 2.0 is no integer.
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Address(value) => write!(f, "{value:#x}"),
            Value::Text(text) => write!(f, "\"{}\"", escaped(&text.to_string()).replace('"', "\\\"")),
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
    /// One word an argument; of a text its length (with [`CUT`]), then its bytes, eight a word.
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
    pub fn value(&self, argument: usize) -> Option<Value<'a>> {
        self.definition.values(self.words).nth(argument)
    }

    /// All arguments: the name, where it has one, and the value.
    pub fn arguments(&self) -> impl Iterator<Item = (Option<&'a str>, Value<'a>)> + use<'a> {
        let definition = self.definition;
        let values = definition.values(self.words).enumerate();
        values.map(|(place, value)| (definition.argument_name(place), value))
    }
}

impl fmt::Display for UserEvent<'_> {
    /// `net/packet(length=3 B, socket=0x7f00)`; without names `net/packet(3, 0x7f00)`.
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
            if let Some(unit) = self.definition.unit(place) {
                write!(f, " {unit}")?;
            }
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NO_JOB, NO_TASK};
    use horolog_time::Instant;

    const RECORD: Record = Record {
        time: Instant::ZERO,
        kind: Kind::User,
        cpu: 0,
        task: NO_TASK,
        job: NO_JOB,
        value: 0,
        extra: 0,
    };

    #[test]
    fn events_print_with_and_without_names_of_their_arguments() {
        let words = [1, 42, (-3_i64).cast_unsigned(), 1.5_f64.to_bits(), 0x7f00];
        let named = EventDefinition::new("a/b", "buifp", &["ok", "n", "d", "x", "at"]).unwrap();
        let event = UserEvent { record: RECORD, definition: &named, thread: None, words: &words };
        assert_eq!(event.to_string(), "a/b(ok=true, n=42, d=-3, x=1.5, at=0x7f00)");
        let plain = EventDefinition::new("a/b", "buifp", &[]).unwrap();
        let event = UserEvent { definition: &plain, ..event };
        assert_eq!(event.to_string(), "a/b(true, 42, -3, 1.5, 0x7f00)");
        assert_eq!((event.value(1), event.value(5)), (Some(Value::Unsigned(42)), None));
        let measured = plain.clone().with_units(&["", "B", "", "s", ""]).unwrap();
        let event = UserEvent { definition: &measured, ..event };
        assert_eq!(event.to_string(), "a/b(true, 42 B, -3, 1.5 s, 0x7f00)");
        let none = EventDefinition::new("tick", "", &[]).unwrap();
        assert_eq!(UserEvent { definition: &none, words: &[], ..event }.to_string(), "tick()");
    }

    #[test]
    fn texts_are_read_among_the_other_arguments() {
        let open = EventDefinition::new("file/open", "susu", &["path", "", "by", "n"]).unwrap();
        let long = "é".repeat(200);
        let words = [text_words(b"/a\"\x1b\xff"), vec![7], text_words(long.as_bytes()), vec![9]].concat();
        assert_eq!(open.words(&words), Some(words.len()));
        let event = UserEvent { record: RECORD, definition: &open, thread: None, words: &words };
        let shown = format!(r#"file/open(path="/a\"\x1b\xff", 7, by="{}…", n=9)"#, "é".repeat(128));
        assert_eq!(event.to_string(), shown);
        assert_eq!(event.value(3), Some(Value::Unsigned(9)));
        let Some(Value::Text(text)) = event.value(2) else { panic!("a text") };
        assert!(text.is_cut() && text.bytes().count() == MAX_TEXT);
        assert_eq!(text_words(&"é".repeat(129).as_bytes()[1..]).len(), 1 + 32);
        // What no program can have emitted.
        assert_eq!(open.words(&words[..words.len() - 1]), None);
        assert_eq!(open.words(&[257, 0]), None);
        assert_eq!(open.words(&[u64::MAX, 0]), None);
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
