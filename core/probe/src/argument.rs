//! What a trigger may hand on: the types of its arguments and their 8-byte words.

use crate::Event;

/// The type of one argument, as three bits of a site's table entry; the first argument in the lowest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// `true` or `false`.
    Bool = 1,
    /// An unsigned integer of at most 64 bits.
    Unsigned = 2,
    /// A signed integer of at most 64 bits.
    Signed = 3,
    /// A floating-point number, kept as a double.
    Float = 4,
    /// An address.
    Pointer = 5,
    /// A text of at most [`MAX_TEXT`] bytes; its word is the address of a [`Text`].
    Text = 6,
}

impl Type {
    /// Its letter in an event's descriptor and in a trace.
    #[must_use]
    pub const fn letter(self) -> u8 {
        match self {
            Type::Bool => b'b',
            Type::Unsigned => b'u',
            Type::Signed => b'i',
            Type::Float => b'f',
            Type::Pointer => b'p',
            Type::Text => b's',
        }
    }

    /// The type of these three bits; `None` for the end of the list and for bits that mean nothing.
    #[must_use]
    pub const fn of_bits(bits: u32) -> Option<Type> {
        match bits & 7 {
            1 => Some(Type::Bool),
            2 => Some(Type::Unsigned),
            3 => Some(Type::Signed),
            4 => Some(Type::Float),
            5 => Some(Type::Pointer),
            6 => Some(Type::Text),
            _ => None,
        }
    }
}

/// The most bytes of a text that are recorded; of a longer one it is recorded that it was cut.
pub const MAX_TEXT: usize = 256;

/// Where a text argument is while it is emitted: `struct horolog_string` of `horolog/trace.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    bytes: *const u8,
    length: usize,
}

impl Text {
    /// No text.
    pub const EMPTY: Text = Text { bytes: core::ptr::null(), length: 0 };

    /// The text whose argument has the word `word`: for callbacks.
    ///
    /// # Safety
    /// The word is that of a text argument ([`Type::Text`]) of the callback that is running, and the program leaves the text
    /// as it is meanwhile.
    #[must_use]
    pub unsafe fn of_word<'a>(word: u64) -> &'a [u8] {
        // SAFETY: the caller's promise: the site's own structure.
        let text = unsafe { &*core::ptr::with_exposed_provenance::<Text>(word as usize) };
        if text.bytes.is_null() {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { core::slice::from_raw_parts(text.bytes, text.length) }
    }
}

/// A value that a trigger accepts as an argument: `bool`, integers of at most 64 bits, floats, addresses, `&str`.
///
/// The trait is closed: what a word means has to be known to every reader of a trace.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a trigger",
    label = "a trigger takes bool, integers of at most 64 bits, f32, f64, raw pointers and &str",
    note = "pass an address as `&raw const value`, a longer value as several arguments"
)]
pub trait Argument: sealed::Sealed + Copy {
    /// Its type.
    const TYPE: Type;
    /// What is kept of it while it is emitted.
    type Kept: Copy;
    /// Keeps it.
    fn keep(self) -> Self::Kept;
    /// Its word: integers extended to 64 bits by their sign, floats as the bits of a double, of a text the address of what
    /// is kept.
    fn word(kept: &Self::Kept) -> u64;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! argument {
    ($($name:ty => $kind:ident, |$value:ident| $word:expr;)*) => {$(
        impl sealed::Sealed for $name {}
        impl Argument for $name {
            const TYPE: Type = Type::$kind;
            type Kept = u64;
            #[inline(always)]
            fn keep(self) -> u64 {
                let $value = self;
                $word
            }
            #[inline(always)]
            fn word(kept: &u64) -> u64 {
                *kept
            }
        }
    )*};
}

argument! {
    bool => Bool, |value| u64::from(value);
    u8 => Unsigned, |value| u64::from(value);
    u16 => Unsigned, |value| u64::from(value);
    u32 => Unsigned, |value| u64::from(value);
    u64 => Unsigned, |value| value;
    usize => Unsigned, |value| value as u64;
    i8 => Signed, |value| i64::from(value) as u64;
    i16 => Signed, |value| i64::from(value) as u64;
    i32 => Signed, |value| i64::from(value) as u64;
    i64 => Signed, |value| value as u64;
    isize => Signed, |value| value as i64 as u64;
    f32 => Float, |value| f64::from(value).to_bits();
    f64 => Float, |value| value.to_bits();
}

impl<T> sealed::Sealed for *const T {}
impl<T> Argument for *const T {
    const TYPE: Type = Type::Pointer;
    type Kept = u64;
    #[inline(always)]
    fn keep(self) -> u64 {
        self.expose_provenance() as u64
    }
    #[inline(always)]
    fn word(kept: &u64) -> u64 {
        *kept
    }
}

impl<T> sealed::Sealed for *mut T {}
impl<T> Argument for *mut T {
    const TYPE: Type = Type::Pointer;
    type Kept = u64;
    #[inline(always)]
    fn keep(self) -> u64 {
        self.expose_provenance() as u64
    }
    #[inline(always)]
    fn word(kept: &u64) -> u64 {
        *kept
    }
}

impl sealed::Sealed for &str {}
impl Argument for &str {
    const TYPE: Type = Type::Text;
    type Kept = Text;
    #[inline(always)]
    fn keep(self) -> Text {
        Text { bytes: self.as_ptr(), length: self.len() }
    }
    #[inline(always)]
    fn word(kept: &Text) -> u64 {
        core::ptr::from_ref(kept).expose_provenance() as u64
    }
}

/// None to ten arguments: a tuple, made by [`trigger!`](crate::trigger).
pub trait Arguments: sealed::Sealed {
    /// Three bits an argument, the first in the lowest.
    const TYPES: u32;
    /// Hands them to what an enabled site of `event` calls. Out of line, with the words in registers, so that their array
    /// costs the traced function no stack.
    ///
    /// # Safety
    /// `event` has as many arguments.
    unsafe fn emit(self, event: &Event);
    /// Hands them to `callback`, likewise.
    fn call(self, event: &Event, callback: fn(&Event, &[u64]));
}

#[allow(clippy::too_many_arguments)]
mod counts {
    use super::{Argument, Arguments, sealed};
    use crate::Event;

    macro_rules! arguments {
    ($count:literal: $($name:ident $shift:literal),*) => {
        impl<$($name: Argument),*> sealed::Sealed for ($($name,)*) {}
        impl<$($name: Argument),*> Arguments for ($($name,)*) {
            const TYPES: u32 = 0 $(| ($name::TYPE as u32) << $shift)*;
            #[inline(always)]
            #[allow(non_snake_case)]
            unsafe fn emit(self, event: &Event) {
                #[cold]
                #[inline(never)]
                unsafe fn emit_words(event: &Event, $($name: u64),*) {
                    let words: [u64; $count] = [$($name),*];
                    // SAFETY: the caller's promise.
                    unsafe { event.call(words.as_ptr()) }
                }
                let ($($name,)*) = self;
                $(let $name = $name.keep();)*
                // SAFETY: the caller's promise.
                unsafe { emit_words(event, $(<$name as Argument>::word(&$name)),*) }
            }
            #[inline(always)]
            #[allow(non_snake_case)]
            fn call(self, event: &Event, callback: fn(&Event, &[u64])) {
                #[cold]
                #[inline(never)]
                fn call_words(event: &Event, callback: fn(&Event, &[u64]), $($name: u64),*) {
                    let words: [u64; $count] = [$($name),*];
                    callback(event, &words);
                }
                let ($($name,)*) = self;
                $(let $name = $name.keep();)*
                call_words(event, callback, $(<$name as Argument>::word(&$name)),*);
            }
        }
    };
}

    arguments!(0:);
    arguments!(1: A 0);
    arguments!(2: A 0, B 3);
    arguments!(3: A 0, B 3, C 6);
    arguments!(4: A 0, B 3, C 6, D 9);
    arguments!(5: A 0, B 3, C 6, D 9, E 12);
    arguments!(6: A 0, B 3, C 6, D 9, E 12, F 15);
    arguments!(7: A 0, B 3, C 6, D 9, E 12, F 15, G 18);
    arguments!(8: A 0, B 3, C 6, D 9, E 12, F 15, G 18, H 21);
    arguments!(9: A 0, B 3, C 6, D 9, E 12, F 15, G 18, H 21, I 24);
    arguments!(10: A 0, B 3, C 6, D 9, E 12, F 15, G 18, H 21, I 24, J 27);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_sign_and_value() {
        fn word<A: Argument>(argument: A) -> u64 {
            A::word(&argument.keep())
        }
        assert_eq!(word(-1_i8), u64::MAX);
        assert_eq!(word(200_u8), 200);
        assert_eq!(f64::from_bits(word(1.5_f32)), 1.5);
        assert_eq!(word(true), 1);
        let value = 7;
        let address = &raw const value;
        assert_eq!(word(address), address.addr() as u64);
        let kept = "text".keep();
        // SAFETY: the word of a text that is still there.
        assert_eq!(unsafe { Text::of_word(<&str>::word(&kept)) }, b"text");
    }

    #[test]
    fn types_stand_three_bits_apart() {
        fn types<A: Arguments>(_: &A) -> u32 {
            A::TYPES
        }
        assert_eq!(types(&()), 0);
        assert_eq!(types(&(true, 2_u32, -3_i64)), 0b011_010_001);
        let nothing = ();
        let ten = (1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8, 8_u8, 9_u8, &raw const nothing);
        assert_eq!(types(&ten), 0b101_010_010_010_010_010_010_010_010_010);
        assert_eq!(types(&("text", 1_u8)), 0b010_110);
    }
}
