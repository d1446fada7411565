//! The place of an event's site in the source, and what its arguments are called.
//!
//! The macros keep the arguments as they were written; their names are read from that text when the event gets its
//! number, or when it is listed, without allocating: this runs in signal handlers too.

use core::ffi::{CStr, c_char};

/// Bytes that the names and units of an event's arguments may have in a session's directory, the zero at the end included.
pub(crate) const FIELDS_BYTES: usize = 296;
/// The longest name or unit of one argument.
const MOST_NAME: usize = 63;
/// The most of a text of arguments that is looked at.
pub(crate) const MOST_TEXT: usize = 4096;

/// The text is what stood between the parentheses of a C macro.
const C_TEXT: u32 = 1;
/// The text has one piece an argument, each with 0x1f behind it.
const RUST_TEXT: u32 = 2;

/// What follows an event's descriptor: `struct horolog_about` of `horolog/trace.h`.
///
/// | offset | type | what |
/// |---|---|---|
/// | 0 | pointer | the arguments as they were written, or null |
/// | 8 | pointer | the source file, or null |
/// | 16 | pointer | the function (in Rust the module's path), or null |
/// | 24 | u32 | the line |
/// | 28 | u32 | form of the first text: 1 C's macro, 2 one piece an argument with 0x1f behind it |
#[repr(C)]
#[derive(Debug)]
pub struct About {
    arguments: *const c_char,
    file: *const c_char,
    function: *const c_char,
    line: u32,
    form: u32,
}

// SAFETY: the pointers refer to constant text of the module that holds the structure.
unsafe impl Sync for About {}

impl About {
    /// For the macros: a site in `file`, whose arguments are one piece each in `arguments`.
    #[must_use]
    pub const fn new(
        file: &'static CStr,
        line: u32,
        module: &'static CStr,
        arguments: &'static CStr,
    ) -> About {
        About {
            arguments: arguments.as_ptr(),
            file: file.as_ptr(),
            function: module.as_ptr(),
            line,
            form: RUST_TEXT,
        }
    }

    /// The addresses of its three texts.
    pub(crate) fn addresses(&self) -> [u64; 3] {
        [self.arguments, self.file, self.function].map(|text| text as u64)
    }

    /// The same of bytes that were read from another process.
    pub(crate) fn parts(bytes: &[u8; size_of::<About>()]) -> ([u64; 3], u32, u32) {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        ([word(0), word(8), word(16)], half(24), half(28))
    }

    /// What the arguments are called, of which there are `count`.
    pub(crate) fn fields(&self, count: usize) -> Fields {
        // SAFETY: the macros store a constant NUL-terminated text or null.
        let text = unsafe { text(self.arguments) };
        Fields::of(text.map_or(&[], CStr::to_bytes), self.form, count)
    }

    /// Its place.
    pub(crate) fn place(&self) -> Place {
        // SAFETY: the macros store constant NUL-terminated texts or null.
        let [file, function] = [self.file, self.function]
            .map(|pointer| unsafe { text(pointer) }.map_or(&[][..], CStr::to_bytes));
        Place::of(file, self.line, function)
    }
}

/// # Safety
/// `pointer` is null or points to a constant NUL-terminated text.
unsafe fn text(pointer: *const c_char) -> Option<&'static CStr> {
    // SAFETY: the caller's promise.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) })
}

/// The place of a site in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as the compiler was given it.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The function; in Rust, which has no macro for it, the module's path.
    pub function: String,
}

impl Place {
    pub(crate) fn of(file: &[u8], line: u32, function: &[u8]) -> Place {
        Place { file: lossless(file), line, function: function_of(&lossless(function)) }
    }
}

/// In C++ the name comes from inside a structure in the function: `static constexpr const char* push(int)::horolog_here::f()`.
fn function_of(pretty: &str) -> String {
    let Some((before, _)) = pretty.split_once("::horolog_here") else { return pretty.to_owned() };
    let known = ["static constexpr const char* ", "static constexpr const char *", "static const char *"];
    let rest = known.iter().find_map(|known| before.strip_prefix(known));
    rest.unwrap_or(before).trim_start().to_owned()
}

/// Text for people out of bytes: whatever is not UTF-8 becomes `\xNN`, so that different bytes stay different.
#[must_use]
pub fn lossless(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The names and units of an event's arguments as one text: `length[B],socket`; empty where none has a name.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    bytes: [u8; FIELDS_BYTES],
    length: usize,
}

impl Fields {
    pub(crate) const NONE: Fields = Fields { bytes: [0; FIELDS_BYTES], length: 0 };

    /// Reads the text that a macro kept.
    pub(crate) fn of(text: &[u8], form: u32, count: usize) -> Fields {
        let text = &text[..text.len().min(MOST_TEXT)];
        let mut fields = Fields::NONE;
        let mut named = false;
        let mut each = |place: usize, piece: &[u8]| {
            if place > 0 {
                fields.push(b",");
            }
            let (name, unit) = name_of(piece);
            let is_literal = is_named_in_c(piece.trim_ascii());
            let bytes = name.len() + unit.len() + 3;
            // Room for the commas that are still to come: a list that is too long loses its last names.
            if name.is_empty() || fields.length + bytes + count - place > FIELDS_BYTES {
                return;
            }
            named = true;
            fields.push_clean(name, is_literal);
            if !unit.is_empty() {
                fields.push(b"[");
                fields.push_clean(unit, is_literal);
                fields.push(b"]");
            }
        };
        match form {
            C_TEXT => {
                // The event's name, and a callback, come before the arguments.
                let skipped = pieces(text, |_, _| {}).saturating_sub(count);
                pieces(text, |place, piece| {
                    if let Some(place) = place.checked_sub(skipped) {
                        each(place, piece);
                    }
                });
            }
            RUST_TEXT => {
                text.split(|byte| *byte == 0x1f)
                    .take(count)
                    .enumerate()
                    .for_each(|(place, piece)| each(place, piece));
            }
            _ => {}
        }
        if named { fields } else { Fields::NONE }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = FIELDS_BYTES - 1 - self.length;
        let bytes = &bytes[..bytes.len().min(room)];
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    /// What separates names cannot be in one. `is_literal`: the inside of a text as C writes it.
    fn push_clean(&mut self, bytes: &[u8], is_literal: bool) {
        let mut rest = bytes;
        while let Some((first, behind)) = rest.split_first() {
            let (byte, behind) = match first {
                b'\\' if is_literal => unescape(behind),
                _ => (*first, behind),
            };
            rest = behind;
            self.push(&[if matches!(byte, b',' | b'[' | b']' | 0..=31) { b'_' } else { byte }]);
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The name and the unit of each argument; nothing where the text does not name as many.
pub(crate) fn split(fields: &str, count: usize) -> Vec<(String, String)> {
    let all: Vec<(String, String)> = fields
        .split(',')
        .map(|field| match field.strip_suffix(']').and_then(|field| field.split_once('[')) {
            Some((name, unit)) => (name.to_owned(), unit.to_owned()),
            None => (field.to_owned(), String::new()),
        })
        .collect();
    if all.len() == count && !fields.is_empty() { all } else { Vec::new() }
}

/// Calls `each` with the pieces between the commas of a macro call: a comma in parentheses or quotes separates nothing, as
/// for the preprocessor. A quote inside a number separates its digits (`1'000`). Returns how many there are.
fn pieces(text: &[u8], mut each: impl FnMut(usize, &[u8])) -> usize {
    let (mut from, mut depth, mut quote, mut place) = (0, 0_usize, 0_u8, 0);
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quote != 0 => escaped = true,
            _ if quote != 0 => quote = if *byte == quote { 0 } else { quote },
            b'\'' if is_in_number(&text[..at]) => {}
            b'"' | b'\'' => quote = *byte,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                each(place, &text[from..at]);
                (from, place) = (at + 1, place + 1);
            }
            _ => {}
        }
    }
    each(place, &text[from..]);
    place + 1
}

/// Whether what comes directly before is a number, or a part of one: `0xff`, `1.5e3`. The prefixes of characters (`u8'a'`, `L'a'`)
/// begin with a letter.
fn is_in_number(before: &[u8]) -> bool {
    let part = |byte: &u8| is_word(*byte) || matches!(byte, b'.' | b'\'');
    let from = before.iter().rposition(|byte| !part(byte)).map_or(0, |at| at + 1);
    let word = &before[from..];
    let word = word.strip_prefix(b".").unwrap_or(word);
    word.first().is_some_and(u8::is_ascii_digit) && word.last().is_some_and(|byte| is_word(*byte))
}

/// The name and the unit of an argument as it was written: those given, else the last member that a plain expression
/// names (`queue->length` is `length`), else none.
fn name_of(piece: &[u8]) -> (&[u8], &[u8]) {
    let piece = piece.trim_ascii();
    if let Some(named) = piece.strip_prefix(b"\x1e") {
        let mut parts = named.splitn(2, |byte| *byte == 0x1e);
        let (name, unit) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return (&name[..name.len().min(MOST_NAME)], &unit[..unit.len().min(MOST_NAME)]);
    }
    if is_named_in_c(piece) {
        let first = usize::from(!piece.starts_with(NAMED));
        return (quoted(piece, first), quoted(piece, first + 1));
    }
    if piece.starts_with(b"HOROLOG_FLOW(") {
        return (b"flow", b"");
    }
    if piece.starts_with(b"HOROLOG_FLOW_END(") {
        return (b"flow_end", b"");
    }
    let inside =
        [&b"HOROLOG_STRING("[..], b"HOROLOG_STRING_N("].iter().find_map(|word| piece.strip_prefix(*word));
    let inside = inside.and_then(|inside| inside.split(|byte| matches!(byte, b',' | b')')).next());
    (last_member(inside.unwrap_or(piece)), b"")
}

const NAMED: &[u8] = b"HOROLOG_ARG(";

/// Whether a piece of a C macro's text gives its argument a name and a unit: by `HOROLOG_ARG`, which a macro of the user's own
/// around the trigger expands.
fn is_named_in_c(piece: &[u8]) -> bool {
    [NAMED, b"((void)\"horolog\"", b"((void) \"horolog\""].iter().any(|start| piece.starts_with(start))
}

/// The text number `wanted` in double quotes, as it was written: behind a backslash a quotation mark ends nothing.
fn quoted(piece: &[u8], wanted: usize) -> &[u8] {
    let (mut begun, mut seen, mut escaped) = (None, 0, false);
    for (at, byte) in piece.iter().enumerate() {
        match (byte, begun) {
            _ if escaped => escaped = false,
            (b'\\', Some(_)) => escaped = true,
            (b'"', None) => begun = Some(at + 1),
            (b'"', Some(from)) if seen == wanted => return &piece[from..at.min(from + MOST_NAME)],
            (b'"', Some(_)) => (begun, seen) = (None, seen + 1),
            _ => {}
        }
    }
    b""
}

/// The byte that an escape of C means, and what follows it.
fn unescape(behind: &[u8]) -> (u8, &[u8]) {
    let digits = |from: &[u8], most: usize, base: u32| {
        let length = from.iter().take(most).take_while(|byte| char::from(**byte).is_digit(base)).count();
        let value = from[..length]
            .iter()
            .fold(0_u32, |sum, byte| sum * base + char::from(*byte).to_digit(base).unwrap_or(0));
        (value as u8, length)
    };
    match behind {
        [b'0'..=b'7', ..] => {
            let (byte, length) = digits(behind, 3, 8);
            (byte, &behind[length..])
        }
        [b'x', rest @ ..] => {
            let (byte, length) = digits(rest, 2, 16);
            (byte, &rest[length..])
        }
        [b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v', rest @ ..] => (b'_', rest),
        [byte, rest @ ..] => (*byte, rest),
        [] => (b'_', behind),
    }
}

fn last_member(expression: &[u8]) -> &[u8] {
    let mut rest = expression.trim_ascii();
    loop {
        let before = rest;
        for prefix in [&b"&raw const "[..], b"&raw mut ", b"&", b"*"] {
            rest = rest.strip_prefix(prefix).unwrap_or(rest).trim_ascii_start();
        }
        // A cast.
        if rest.first() == Some(&b'(')
            && let Some(end) = rest.iter().position(|byte| *byte == b')')
            && rest.get(end + 1).is_some_and(|byte| is_word(*byte) || b" *&".contains(byte))
        {
            rest = rest[end + 1..].trim_ascii_start();
        }
        if rest == before {
            break;
        }
    }
    if let Some(at) = rest.windows(4).position(|window| window == b" as ") {
        rest = rest[..at].trim_ascii_end();
    }
    let rest = rest.strip_suffix(b"()").unwrap_or(rest);
    let from = rest.iter().rposition(|byte| !is_word(*byte)).map_or(0, |at| at + 1);
    let (before, name) = rest.split_at(from);
    let is_name = name.len() <= MOST_NAME && name.first().is_some_and(|byte| !byte.is_ascii_digit());
    let is_path = before.iter().all(|byte| is_word(*byte) || b".:->".contains(byte))
        && (before.is_empty() || [&b"."[..], b"->", b"::"].iter().any(|end| before.ends_with(end)));
    if is_name && is_path { name } else { b"" }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_c(text: &str, count: usize) -> String {
        String::from_utf8(Fields::of(text.as_bytes(), C_TEXT, count).as_bytes().to_vec()).expect("UTF-8")
    }

    #[test]
    fn names_are_those_given_or_the_last_member() {
        let text = r#""queue/push", queue, HOROLOG_ARG("length", "items", f(a, b)), queue->length, item + 1"#;
        assert_eq!(of_c(text, 4), "queue,length[items],length,");
        assert_eq!(of_c(r#""a,\"b(", f, (unsigned)i, *at, HOROLOG_FLOW(id), a.b.c"#, 4), "i,at,flow,c");
        assert_eq!(of_c(r#""a", ((void)"horolog", (void)"n", (void)"ms", x)"#, 1), "n[ms]");
        assert_eq!(of_c(r#""a", HOROLOG_STRING(p->name), HOROLOG_STRING_N(text, 3)"#, 2), "name,text");
        // Quotes between digits separate nothing; those of characters do, whatever stands before them.
        assert_eq!(of_c(r#""a", 1'000, at, x"#, 3), ",at,x");
        assert_eq!(of_c(r#""a", 0xff'ff'00, at, f(1'0, '('), x"#, 4), ",at,,x");
        assert_eq!(of_c(r#""a", .1'5e1'0, at, 1.0'0f, x"#, 4), ",at,,x");
        assert_eq!(of_c(r#""a", u8',', at, L'\'', x, a1',', y"#, 6), ",at,,x,,y");
        assert_eq!(of_c(r#""a", 1'000'000ull, at"#, 2), ",at");
        // Nothing is named: no text at all.
        assert_eq!(of_c(r#""a", 1, x + y, (z)"#, 3), "");
        assert_eq!(of_c(r#""a""#, 0), "");
        // What separates names cannot be in one.
        assert_eq!(of_c(r#""a", HOROLOG_ARG("a,b[c]", "d", 1)"#, 1), "a_b_c_[d]");
        assert_eq!(of_c(r#""a", HOROLOG_ARG("x", "a \"b\" \\ c", 1), at"#, 2), "x[a \"b\" \\ c],at");
        assert_eq!(of_c(r#""a", ((void)"horolog", (void)"n", (void)"\"", x)"#, 1), "n[\"]");
        assert_eq!(of_c(r#""a", HOROLOG_ARG("x", "\302\xb5s\t", 1)"#, 1), "x[\u{b5}s_]");
    }

    #[test]
    fn rust_gives_its_pieces() {
        let text = "\x1elength\x1eB\x1f&raw const *self\x1fself.items.len()\x1fitem as u64\x1f[a, b][0]\x1f";
        let fields = Fields::of(text.as_bytes(), RUST_TEXT, 5);
        assert_eq!(fields.as_bytes(), b"length[B],self,len,item,");
        assert_eq!(Fields::of(text.as_bytes(), 9, 5).as_bytes(), b"");
    }

    #[test]
    fn too_many_names_lose_the_last_ones_and_keep_their_count() {
        let name = "n".repeat(60);
        let text = format!("\"a\"{}", format!(", {name}").repeat(10));
        let fields = of_c(&text, 10);
        let split = split(&fields, 10);
        assert_eq!(split.len(), 10);
        assert_eq!((split[3].0.as_str(), split[9].0.as_str()), (name.as_str(), ""));
        assert!(fields.len() < FIELDS_BYTES);
        assert!(super::split(&fields, 9).is_empty() && super::split("", 1).is_empty());
    }

    #[test]
    fn functions_of_cpp_are_shown_alone() {
        let pretty = "static constexpr const char* push(queue*, int)::horolog_here::function()";
        assert_eq!(function_of(pretty), "push(queue*, int)");
        assert_eq!(function_of("main"), "main");
    }

    #[test]
    fn bytes_that_are_no_text_stay_different() {
        assert_eq!(lossless(b"a\xffb\xc3\xa9"), "a\\xffb\u{e9}");
        assert_ne!(lossless(b"\xfe"), lossless(b"\xff"));
    }
}
