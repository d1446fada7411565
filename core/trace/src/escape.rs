//! Names that come from recorded programs, as text that no terminal and no viewer obeys.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with every character that is not printed as itself written as `\x1b` or `\u{202e}`: control characters, and
/// those that change the direction or the place of others. Text without any comes back as it is.
///
/// ```
/// use horolog_trace::escaped;
/// assert_eq!(escaped("worker é"), "worker é");
/// assert_eq!(escaped("\x1b[2Jx\n"), r"\x1b[2Jx\x0a");
/// ```
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        // Writing to a String cannot fail.
        let _ = match letter {
            letter if !is_unsafe(letter) => out.write_char(letter),
            letter if letter.is_ascii() => write!(out, "\\x{:02x}", letter as u32),
            letter => write!(out, "\\u{{{:x}}}", letter as u32),
        };
    }
    Cow::Owned(out)
}

/// The same of an owned text.
#[must_use]
pub fn escape(text: String) -> String {
    match escaped(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

fn is_unsafe(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for (text, shown) in [
            ("a\x07b", r"a\x07b"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("x\u{202e}y", r"x\u{202e}y"),
            ("\x7f\0", r"\x7f\x00"),
        ] {
            assert_eq!(escaped(text), shown);
            assert_eq!(escaped(&escaped(text)), shown, "once is enough");
            assert_eq!(escape(text.to_owned()), shown);
        }
    }
}
