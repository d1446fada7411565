//! What the numbers of threads and events in records stand for, from file to file of one recording.

use super::header::Thread;
use crate::EventDefinition;

/// A thread or an event, and its number in the file that names it last.
#[derive(Debug)]
struct Named<T> {
    what: T,
    /// Which file, counted from 0; `NEVER`: none has named it.
    file: u32,
    number: u32,
}

/// No file has this number.
const NEVER: u32 = u32::MAX;

/// Threads, or events, in the order in which they were defined. The recorder knows them by these places, in every file of a
/// recording; a file numbers those that it names itself, without a gap.
#[derive(Debug)]
pub(super) struct Names<T> {
    all: Vec<Named<T>>,
    /// The present file, counted from 0.
    file: u32,
    /// The places of those that it names.
    here: Vec<u32>,
}

impl<T> Default for Names<T> {
    fn default() -> Names<T> {
        Names { all: Vec::new(), file: 0, here: Vec::new() }
    }
}

impl<T> Names<T> {
    /// How many are defined, in whatever file.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.all.get(place).map(|named| &named.what)
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.all.get_mut(place).map(|named| &mut named.what)
    }

    /// Another one, which no file names yet. Its place.
    pub(super) fn define(&mut self, what: T) -> usize {
        self.all.push(Named { what, file: NEVER, number: 0 });
        self.all.len() - 1
    }

    /// Its number in the present file; `None` where the file does not name it yet.
    #[inline]
    pub(super) fn number(&self, place: usize) -> Option<u64> {
        let named = self.all.get(place)?;
        (named.file == self.file).then_some(u64::from(named.number))
    }

    /// The present file names it from now on. Its number there.
    pub(super) fn name(&mut self, place: usize) -> u64 {
        let number = self.here.len() as u32;
        if let Some(named) = self.all.get_mut(place) {
            (named.file, named.number) = (self.file, number);
            self.here.push(place as u32);
        }
        u64::from(number)
    }

    /// Whether the present file is the recording's first, which names all in the order in which they are defined.
    pub(super) fn is_first(&self) -> bool {
        self.file == 0
    }

    /// The same for the next file, which names none yet. None stays here.
    pub(super) fn hand_on(&mut self) -> Names<T> {
        let Names { all, file, .. } = std::mem::take(self);
        Names { all, file: file + 1, here: Vec::new() }
    }
}

impl Names<Thread> {
    /// Those that the present file names, by their numbers there.
    pub(super) fn threads(&self) -> Vec<Thread> {
        let here = self.here.iter().filter_map(|place| self.get(*place as usize));
        here.zip(0..).map(|(thread, id)| Thread { id, ..thread.clone() }).collect()
    }
}

impl Names<EventDefinition> {
    /// Those that the present file names, by their numbers there.
    pub(super) fn events(&self) -> Vec<EventDefinition> {
        self.here.iter().filter_map(|place| self.get(*place as usize)).cloned().collect()
    }
}
