//! The numbers of events: given once in a process, the same in all its sessions.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::shared::{Shared, take_live};
use crate::event::{Event, NO_EVENT};
use crate::ring::layout::{EventEntry, FIELDS_BYTES, NAME_BYTES, TYPES_BYTES};

/// The most numbers that a process gives.
const MOST_EVENTS: usize = 4096;

/// Every event that has a number; number n stands in place n - 1. The texts are copies, since a module may be unloaded.
fn known() -> &'static [EventEntry; MOST_EVENTS] {
    unsafe extern "C" {
        static horolog_known_events: [EventEntry; MOST_EVENTS];
    }
    // SAFETY: defined below, all zero, which is `EventEntry::empty`, at the beginning of a page, and of this size.
    unsafe { &horolog_known_events }
}

// Whole pages behind what else the module has: what is written in every process lies together, and not on both sides of them.
core::arch::global_asm!(
    ".pushsection .horolog_known,\"aw\",%nobits",
    ".p2align 12",
    ".hidden horolog_known_events",
    ".globl horolog_known_events",
    ".type horolog_known_events, %object",
    ".size horolog_known_events, {bytes}",
    "horolog_known_events:",
    ".zero {bytes}",
    ".popsection",
    bytes = const size_of::<[EventEntry; MOST_EVENTS]>(),
);

static GIVEN: AtomicU32 = AtomicU32::new(0);

const COMPLETE: u32 = 2;

/// The number of `event`, given now if it has none; [`NO_EVENT`] where none is left, in the process or in the live
/// session's directory. Safe in a signal handler; bounded
/// by the number of known events.
#[must_use]
pub fn number(event: &Event) -> u32 {
    let known = event.id();
    if known != NO_EVENT {
        return known;
    }
    let texts = Texts {
        name: words(event.name().to_bytes()),
        types: words(event.types().to_bytes()),
        fields: words(event.fields().as_bytes()),
    };
    let found = find(&texts).or_else(|| append(&texts));
    let Some(place) = found else { return NO_EVENT };
    let id = place as u32 + 1;
    if let Some(session) = take_live() {
        let named = place < session.events().len();
        if named {
            declare(session, place);
        }
        session.give_back();
        if !named {
            return NO_EVENT;
        }
    }
    event.set_id(id);
    id
}

/// What makes an event another one.
struct Texts {
    name: [u64; NAME_BYTES / 8],
    types: [u64; TYPES_BYTES / 8],
    fields: [u64; FIELDS_BYTES / 8],
}

fn find(texts: &Texts) -> Option<usize> {
    let given = (GIVEN.load(Acquire) as usize).min(MOST_EVENTS);
    known()[..given].iter().position(|entry| {
        entry.state.load(Acquire) == COMPLETE
            && holds(&entry.name, &texts.name)
            && holds(&entry.types, &texts.types)
            && holds(&entry.fields, &texts.fields)
    })
}

fn holds(words: &[AtomicU64], text: &[u64]) -> bool {
    words.iter().zip(text).all(|(word, text)| word.load(Relaxed) == *text)
}

/// Two threads that come with the same new name at once may get two numbers for it; readers go by name.
fn append(texts: &Texts) -> Option<usize> {
    if GIVEN.load(Relaxed) as usize >= MOST_EVENTS {
        return None;
    }
    let place = GIVEN.fetch_add(1, AcqRel) as usize;
    let entry = known().get(place)?;
    fill(entry, texts);
    Some(place)
}

fn fill(entry: &EventEntry, texts: &Texts) {
    let Texts { name, types, fields } = texts;
    let pairs = entry.name.iter().zip(name).chain(entry.types.iter().zip(types));
    for (word, text) in pairs.chain(entry.fields.iter().zip(fields)) {
        word.store(*text, Relaxed);
    }
    // SeqCst with `declare_all`: either the session's creator sees the entry, or we see the session.
    entry.state.store(COMPLETE, core::sync::atomic::Ordering::SeqCst);
}

/// Behind a text that was cut: `~` and a hash of the whole text in hexadecimal digits.
const ENDING: usize = 17;

/// A text as words; at least one zero byte ends it. One that is too long is cut at a character and ends in a hash of all of
/// it, so that two long names that begin alike stay two.
fn words<const WORDS: usize>(bytes: &[u8]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    let room = 8 * WORDS - 1;
    let is_cut = bytes.len() > room && room > ENDING;
    let mut length = bytes.len().min(if is_cut { room - ENDING } else { room });
    while length < bytes.len() && length > 0 && bytes[length] & 0xc0 == 0x80 {
        length -= 1;
    }
    let ending = if is_cut { ending(bytes) } else { [0; ENDING] };
    let kept = bytes[..length].iter().chain(&ending[..if is_cut { ENDING } else { 0 }]);
    for (place, byte) in kept.enumerate() {
        words[place / 8] |= u64::from(*byte) << (8 * (place % 8));
    }
    words.map(u64::to_le)
}

/// FNV-1a of 64 bits: equal for two of a process's names with a chance of one in 10^12.
fn ending(bytes: &[u8]) -> [u8; ENDING] {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut ending = [b'~'; ENDING];
    for (place, letter) in ending[1..].iter_mut().enumerate() {
        *letter = b"0123456789abcdef"[(hash >> (60 - 4 * place)) as usize & 15];
    }
    ending
}

/// Writes the known event in `place` into the session's directory, where it has room for it.
fn declare(session: &Shared, place: usize) {
    let (Some(from), Some(to)) = (known().get(place), session.events().get(place)) else { return };
    if from.state.load(core::sync::atomic::Ordering::SeqCst) != COMPLETE
        || to.state.compare_exchange(0, 1, AcqRel, Relaxed).is_err()
    {
        return;
    }
    let pairs = from.name.iter().zip(&to.name).chain(from.types.iter().zip(&to.types));
    for (from, to) in pairs.chain(from.fields.iter().zip(&to.fields)) {
        to.store(from.load(Relaxed), Relaxed);
    }
    to.state.store(COMPLETE, Release);
    session.header().declared.fetch_max(place as u32 + 1, AcqRel);
}

/// Writes every known event into the directory of a session that has just become the live one.
pub(crate) fn declare_all(session: &Shared) {
    let given = (GIVEN.load(core::sync::atomic::Ordering::SeqCst) as usize).min(MOST_EVENTS);
    (0..given).for_each(|place| declare(session, place));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_whatever_descriptor_bears_it() {
        static A: Event = Event::new(c"directory/a", c"u");
        static ALSO_A: Event = Event::new(c"directory/a", c"u");
        static OTHER_TYPES: Event = Event::new(c"directory/a", c"ui");
        let id = number(&A);
        assert_ne!(id, NO_EVENT);
        assert_eq!((number(&ALSO_A), A.id(), ALSO_A.id()), (id, id, id));
        assert_ne!(number(&OTHER_TYPES), id);
    }

    #[test]
    fn long_names_are_cut_at_a_character_and_stay_different() {
        let bytes = |text: &str| {
            let cut: [u64; 5] = words(text.as_bytes());
            cut.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()
        };
        let (one, other) = (bytes(&format!("{}a", "é".repeat(60))), bytes(&format!("{}b", "é".repeat(60))));
        assert_eq!(one[..23], *[&"é".repeat(11).into_bytes()[..], b"~"].concat());
        assert!(one[23..39].iter().all(u8::is_ascii_hexdigit) && one[39] == 0);
        assert_ne!(one, other);
        assert_eq!(bytes("short")[..6], *b"short\0");
    }

    #[test]
    fn names_that_begin_alike_have_two_numbers() {
        let named = |last: char| {
            let name =
                std::ffi::CString::new(format!("directory/{}{last}", "n".repeat(300))).expect("no zero");
            let event: &'static Event =
                Box::leak(Box::new(Event::new(Box::leak(name.into_boxed_c_str()), c"u")));
            number(event)
        };
        assert_ne!(named('a'), named('b'));
        assert_eq!(named('c'), named('c'));
    }
}
