//! The numbers of events: given once in a process, the same in all its sessions.

use core::ffi::CStr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::shared::{Shared, take_live};
use crate::event::{Event, NO_EVENT};
use crate::ring::layout::{EventEntry, NAME_BYTES, TYPES_BYTES};

/// The most numbers that a process gives.
const MOST_EVENTS: usize = 4096;

/// Every event that has a number; number n stands in place n - 1. The texts are copies, since a module may be unloaded.
static KNOWN: [EventEntry; MOST_EVENTS] = [const { EventEntry::empty() }; MOST_EVENTS];
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
    let (name, types) = (words(event.name()), words(&event.types()));
    let found = find(&name, &types).or_else(|| append(&name, &types));
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

fn find(name: &[u64; NAME_BYTES / 8], types: &[u64; TYPES_BYTES / 8]) -> Option<usize> {
    let given = (GIVEN.load(Acquire) as usize).min(MOST_EVENTS);
    KNOWN[..given].iter().position(|entry| {
        entry.state.load(Acquire) == COMPLETE && holds(&entry.name, name) && holds(&entry.types, types)
    })
}

fn holds(words: &[AtomicU64], text: &[u64]) -> bool {
    words.iter().zip(text).all(|(word, text)| word.load(Relaxed) == *text)
}

/// Two threads that come with the same new name at once may get two numbers for it; readers go by name.
fn append(name: &[u64; NAME_BYTES / 8], types: &[u64; TYPES_BYTES / 8]) -> Option<usize> {
    if GIVEN.load(Relaxed) as usize >= MOST_EVENTS {
        return None;
    }
    let place = GIVEN.fetch_add(1, AcqRel) as usize;
    let entry = KNOWN.get(place)?;
    fill(entry, name, types);
    Some(place)
}

fn fill(entry: &EventEntry, name: &[u64], types: &[u64]) {
    for (word, text) in entry.name.iter().zip(name) {
        word.store(*text, Relaxed);
    }
    for (word, text) in entry.types.iter().zip(types) {
        word.store(*text, Relaxed);
    }
    // SeqCst with `declare_all`: either the session's creator sees the entry, or we see the session.
    entry.state.store(COMPLETE, core::sync::atomic::Ordering::SeqCst);
}

/// A text as words, cut at a character where it is too long; at least one zero byte ends it.
fn words<const WORDS: usize>(text: &CStr) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    let bytes = text.to_bytes();
    let mut length = bytes.len().min(8 * WORDS - 1);
    while length < bytes.len() && length > 0 && bytes[length] & 0xc0 == 0x80 {
        length -= 1;
    }
    for (place, chunk) in bytes[..length].chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words[place] = u64::from_ne_bytes(word);
    }
    words
}

/// Writes the known event in `place` into the session's directory, where it has room for it.
fn declare(session: &Shared, place: usize) {
    let (Some(from), Some(to)) = (KNOWN.get(place), session.events().get(place)) else { return };
    if from.state.load(core::sync::atomic::Ordering::SeqCst) != COMPLETE
        || to.state.compare_exchange(0, 1, AcqRel, Relaxed).is_err()
    {
        return;
    }
    for (from, to) in from.name.iter().zip(&to.name).chain(from.types.iter().zip(&to.types)) {
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
    fn long_names_are_cut_at_a_character() {
        let text = std::ffi::CString::new("é".repeat(60)).expect("no zero");
        let cut: [u64; 2] = words(&text);
        let bytes: Vec<u8> = cut.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(bytes, ["é".repeat(7).as_bytes(), &[0, 0]].concat());
    }
}
