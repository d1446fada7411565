//! The trigger macros: a site, its table entry and the descriptor of its event.
//!
//! On x86-64 a site is seven bytes, of which a disabled one executes the first two:
//!
//! ```text
//! L0: EB 05        jmp short L1        enabled: EB 00
//!     E9 rel32     jmp cold            the compiler's own block: evaluates the arguments and calls
//! L1:
//! ```
//!
//! Written as bytes, since an assembler would shorten the second jump. Elsewhere, and with the feature `portable`, a site
//! is a relaxed load of a flag in the descriptor and a branch.

/// A trigger that records: `trigger!("name", arguments…)` with none to ten arguments.
///
/// Disabled (as every site is at first) it costs one jump; the arguments are evaluated only while it is enabled, each
/// time anew, inside a closure: they may not `return`, `?` or `.await`. An argument is a `bool`, an integer of at most 64
/// bits, a float, a raw pointer or a `&str`, of which the first 256 bytes are recorded; anything else, or an eleventh, does
/// not compile. Written `name = value` or `name["unit"] = value` it has that name and that unit in every output; without,
/// it is called after the variable, field or method that it is. Names of events are shared: `name` switches every site that
/// bears it ([`switching::apply`](crate::switching::apply)). May be used anywhere, signal handlers included; in a crate that
/// denies `unsafe_code` too, but not in one that forbids it, since the site is inline assembly.
///
/// ```
/// use horolog_probe::{switching, trigger};
/// fn enqueue(length: usize, from: &str) {
///     trigger!("queue/enqueue", length["items"] = length, is_long = length > 8, from);
/// }
/// enqueue(3, "a");
/// let switched = switching::apply("queue/*", true).unwrap();
/// assert_eq!((switched.events, switched.sites), (1, 1));
/// enqueue(4, "b");
/// switching::apply("queue/*", false).unwrap();
/// let listed = switching::events().into_iter().find(|event| event.name == "queue/enqueue").unwrap();
/// assert_eq!(listed.types, "ubs");
/// assert_eq!(listed.fields[0], ("length".to_owned(), "items".to_owned()));
/// assert_eq!(listed.fields[2].0, "from");
/// assert!(listed.places[0].line > 0);
/// ```
///
/// ```compile_fail
/// horolog_probe::trigger!("owned", String::new());
/// ```
///
/// ```compile_fail
/// horolog_probe::trigger!("eleven", 1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8, 7_u8, 8_u8, 9_u8, 10_u8, 11_u8);
/// ```
#[macro_export]
macro_rules! trigger {
    ($name:literal $(,)?) => {
        $crate::__record!(($name), [])
    };
    ($name:literal, $($arguments:tt)+) => {
        $crate::__arguments!(__record, ($name), [], $($arguments)+)
    };
}

/// As [`trigger!`], but a flag in the descriptor of its event switches the site, whatever the machine: disabled it costs a load
/// and a branch. For code that is enabled in most of the processes that load it: changing it would give each of them pages of
/// its own.
///
/// ```
/// use horolog_probe::{switching, trigger_by_flag};
/// trigger_by_flag!("by-flag/event", 1_u8);
/// assert_eq!(switching::apply("by-flag/*", true).unwrap().changed, 1);
/// assert!(switching::addresses("by-flag/*").is_empty());
/// ```
#[macro_export]
macro_rules! trigger_by_flag {
    ($name:literal, $($arguments:tt)+) => {
        $crate::__arguments!(__record_by_flag, ($name), [], $($arguments)+)
    };
}

/// A trigger that calls a function of yours: `trigger_callback!("name", function, arguments…)`. The function is a
/// `fn(&Event, &[u64])` (or a closure that captures nothing); it gets one word an argument (of a `&str` the address of a
/// [`Text`](crate::Text)) and may check an invariant.
///
/// ```
/// use horolog_probe::{Event, switching, trigger_callback};
/// use std::sync::atomic::{AtomicU64, Ordering};
/// static DEEPEST: AtomicU64 = AtomicU64::new(0);
/// fn depth_is_bounded(_: &Event, words: &[u64]) {
///     assert!(words[0] <= 4, "nested {} deep", words[0]);
///     DEEPEST.fetch_max(words[0], Ordering::Relaxed);
/// }
/// fn nest(depth: u32) {
///     trigger_callback!("nest/depth", depth_is_bounded, depth);
/// }
/// nest(9);
/// switching::apply("nest/depth", true).unwrap();
/// nest(3);
/// assert_eq!(DEEPEST.load(Ordering::Relaxed), 3);
/// ```
#[macro_export]
macro_rules! trigger_callback {
    ($name:literal, $callback:expr $(,)?) => {
        $crate::__call!(($name, $callback), [])
    };
    ($name:literal, $callback:expr, $($arguments:tt)+) => {
        $crate::__arguments!(__call, ($name, $callback), [], $($arguments)+)
    };
}

/// A span: begins here, and ends where its guard is dropped. `let _span = span!("job", arguments…);` emits `job/begin` with
/// the arguments, and `job/end` at the end; spans of one thread nest. Shown as a slice by Perfetto, and as a duration by
/// `horolog trace stats`. Give two spans of different threads the same number as `flow = number` and an arrow joins them;
/// `flow_end = number` is the last place of one.
///
/// ```
/// use horolog_probe::{span, switching};
/// let answer = |request: u64| {
///     let _span = span!("request/answer", flow = request);
///     request + 1
/// };
/// assert_eq!(answer(4), 5);
/// let is_there = |name: &str| switching::events().iter().any(|event| event.name == name);
/// assert!(is_there("request/answer/begin") && is_there("request/answer/end"));
/// ```
#[macro_export]
macro_rules! span {
    ($name:literal $(, $($arguments:tt)*)?) => {{
        struct HorologSpan;
        impl ::core::ops::Drop for HorologSpan {
            fn drop(&mut self) {
                $crate::__record!(($name, "/end"), []);
            }
        }
        $crate::__arguments!(__record, ($name, "/begin"), [], $($($arguments)*)?);
        HorologSpan
    }};
}

/// A counter's new value: `counter!("queue/length", "items", value)`, with its unit. Emits `queue/length/counter`, which
/// Perfetto draws as a curve, one a process.
///
/// ```
/// use horolog_probe::{counter, switching};
/// counter!("backlog/length", "items", 7_u32);
/// let listed = switching::events().into_iter().find(|event| event.name == "backlog/length/counter").unwrap();
/// assert_eq!(listed.fields, [("value".to_owned(), "items".to_owned())]);
/// ```
#[macro_export]
macro_rules! counter {
    ($name:literal, $unit:literal, $value:expr $(,)?) => {
        $crate::__arguments!(__record, ($name, "/counter"), [], value[$unit] = $value)
    };
}

/// Takes the arguments apart: each becomes the text of its name, as [`About`](crate::About) holds it, and its value.
#[doc(hidden)]
#[macro_export]
macro_rules! __arguments {
    ($then:ident, $head:tt, [$($done:tt)*] $(,)?) => {
        $crate::$then!($head, [$($done)*])
    };
    ($then:ident, $head:tt, [$($done:tt)*], $name:ident[$unit:literal] = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $then, $head, [$($done)* ((::core::concat!("\x1e", ::core::stringify!($name), "\x1e", $unit)), $value)],
            $($($rest)*)?
        )
    };
    ($then:ident, $head:tt, [$($done:tt)*], $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $then, $head, [$($done)* ((::core::concat!("\x1e", ::core::stringify!($name))), $value)], $($($rest)*)?
        )
    };
    ($then:ident, $head:tt, [$($done:tt)*], $value:expr $(, $($rest:tt)*)?) => {
        $crate::__arguments!(
            $then, $head, [$($done)* ((::core::stringify!($value)), $value)], $($($rest)*)?
        )
    };
}

/// A trigger that records.
#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    ($name:tt, $arguments:tt) => {
        $crate::__record_at!(__site, $name, $arguments)
    };
}

/// The same by a flag.
#[doc(hidden)]
#[macro_export]
macro_rules! __record_by_flag {
    ($name:tt, $arguments:tt) => {
        $crate::__record_at!(__site_by_flag, $name, $arguments)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __record_at {
    ($site:ident, ($($name:literal),+), [$(($text:tt, $argument:expr))*]) => {{
        $crate::__event!(HOROLOG_EVENT, ($($name),+), [$($text)*]);
        #[inline(always)]
        fn horolog_site<A: $crate::Arguments>(arguments: impl FnOnce() -> A) {
            $crate::$site!(HOROLOG_EVENT, A, {
                // SAFETY: the event has as many arguments, since both were counted from them.
                #[allow(unsafe_code, unused_unsafe)]
                unsafe { $crate::Arguments::emit(arguments(), &HOROLOG_EVENT) }
            });
        }
        horolog_site(|| ($($argument,)*));
    }};
}

/// A trigger that calls.
#[doc(hidden)]
#[macro_export]
macro_rules! __call {
    (($name:literal, $callback:expr), [$(($text:tt, $argument:expr))*]) => {{
        $crate::__event!(HOROLOG_EVENT, ($name), [$($text)*]);
        const HOROLOG_CALLBACK: fn(&$crate::Event, &[u64]) = $callback;
        #[inline(always)]
        fn horolog_site<A: $crate::Arguments>(arguments: impl FnOnce() -> A) {
            $crate::__site!(HOROLOG_EVENT, A, {
                $crate::Arguments::call(arguments(), &HOROLOG_EVENT, HOROLOG_CALLBACK);
            });
        }
        horolog_site(|| ($($argument,)*));
    }};
}

/// The descriptor of a trigger.
#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($event:ident, ($($name:literal),+), [$($text:tt)*]) => {
        static HOROLOG_ABOUT: $crate::About = $crate::About::new(
            $crate::__text!(::core::file!()),
            ::core::line!(),
            $crate::__text!(::core::module_path!()),
            $crate::__pieces!($($text)*),
        );
        static $event: $crate::Event = $crate::Event::of_sites(
            {
                const NAME: &::core::ffi::CStr = $crate::__text!($($name),+);
                const { ::core::assert!(!NAME.is_empty(), "an event has a name") };
                NAME
            },
            <[()]>::len(&[$($crate::__unit!($text)),*]),
            ::core::option::Option::Some(&HOROLOG_ABOUT),
        );
    };
}

/// The pieces of the arguments as one text.
#[doc(hidden)]
#[macro_export]
macro_rules! __pieces {
    ($(($piece:expr))*) => {
        $crate::__text!($($piece, "\x1f"),*)
    };
}

/// A constant text that ends in a zero byte.
#[doc(hidden)]
#[macro_export]
macro_rules! __text {
    ($($part:expr),*) => {
        const {
            match ::core::ffi::CStr::from_bytes_with_nul(::core::concat!($($part,)* "\0").as_bytes()) {
                Ok(text) => text,
                Err(_) => ::core::panic!("the name of an event holds no NUL"),
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __unit {
    ($argument:tt) => {
        ()
    };
}

/// The site itself: seven bytes and an entry on x86-64.
#[doc(hidden)]
#[macro_export]
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
macro_rules! __site {
    ($event:ident, $arguments:ident, $cold:block) => {
        // SAFETY: the bytes jump over the second jump, or, enabled, take it to the compiler's own block; no register,
        // flag or memory is touched. The entry is constant data in another section.
        #[allow(unsafe_code)]
        unsafe {
            ::core::arch::asm!(
                "77:",
                ".byte 0xEB, 5, 0xE9",
                ".long {cold} - . - 4",
                ".pushsection horolog_sites,\"aR?\",@progbits",
                ".balign 4",
                "78: .long 77b - 78b",
                ".long {event} - .",
                ".byte 5, 7",
                ".short 1",
                ".long {types}",
                ".popsection",
                $crate::__note!(),
                cold = label $cold,
                event = sym $event,
                types = const <$arguments as $crate::Arguments>::TYPES,
                options(nomem, nostack, preserves_flags)
            );
        }
    };
}

/// The site itself, where code is not to be changed.
#[doc(hidden)]
#[macro_export]
#[cfg(not(all(target_arch = "x86_64", not(feature = "portable"))))]
macro_rules! __site {
    ($event:ident, $arguments:ident, $cold:block) => {
        $crate::__site_by_flag!($event, $arguments, $cold)
    };
}

/// The site itself: a flag in the descriptor, and an entry whose size of code is 0.
#[doc(hidden)]
#[macro_export]
macro_rules! __site_by_flag {
    ($event:ident, $arguments:ident, $cold:block) => {
        // SAFETY: nothing is executed. The entry is constant data in another section.
        #[allow(unsafe_code)]
        unsafe {
            ::core::arch::asm!(
                ".pushsection horolog_sites,\"aR?\",%progbits",
                ".balign 4",
                ".long 0",
                ".long {event} - .",
                ".byte 0, 0",
                ".short 1",
                ".long {types}",
                ".popsection",
                $crate::__note!(),
                event = sym $event,
                types = const <$arguments as $crate::Arguments>::TYPES,
                options(nomem, nostack, preserves_flags)
            );
        }
        if $event.is_enabled() {
            $crate::__private::cold();
            $cold
        }
    };
}

/// The note by which a module's table is found in memory, stripped or not: once an assembly.
#[doc(hidden)]
#[macro_export]
macro_rules! __note {
    () => {
        ".ifndef .Lhorolog_note\n\
         .set .Lhorolog_note, 1\n\
         .pushsection .note.horolog,\"aGR\",%note,horolog_module,comdat\n\
         .balign 4\n\
         .long 8, 16, 1\n\
         .asciz \"horolog\"\n\
         .hidden __start_horolog_sites\n\
         .hidden __stop_horolog_sites\n\
         .long __start_horolog_sites - .\n\
         .long __stop_horolog_sites - .\n\
         .long 0\n\
         .long 1\n\
         .popsection\n\
         .endif"
    };
}

/// Marks a block as unlikely.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn cold() {}
