//! The files of a recording: one, or one after the other, and how large they may become.

use crate::RecordingError;
use crate::output::{Output, Size};
use crate::place::Place;
use crate::recorder::{RecordOptions, numbered};
use horolog_time::Span;
use horolog_trace::file::{Header, Writer};
use std::collections::VecDeque;
use std::path::PathBuf;

/// When the next file begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rotate {
    /// When a file has so many bytes.
    Size(u64),
    /// So long after the one before.
    Time(Span),
}

/// The least that may be asked for.
const LEAST_BYTES: u64 = 128 << 10;
/// A file holds at least so many bytes of blocks before the next one begins.
const BLOCK: u64 = 64 << 10;
/// The least that a file's foot takes.
const LEAST_FOOT: u64 = 4 << 10;
/// A file takes at least this long.
const LEAST_TIME: Span = Span::from_ns(100_000_000);

/// What a recording may not be, and why.
///
/// # Errors
/// Bad input with the remedy.
pub(crate) fn check(options: &RecordOptions) -> Result<(), RecordingError> {
    let refuse = |what: String| Err(RecordingError::bad_input(what));
    if options.tracing.overwrite && (options.rotate.is_some() || options.max_size.is_some()) {
        return refuse(
            "a flight recorder writes one file a snapshot, and what it keeps is `--buffer`: it takes neither `--rotate` nor \
             `--max-size`"
                .to_owned(),
        );
    }
    if options.tracing.overwrite && options.tracing.block {
        return refuse(
            "a flight recorder overwrites the oldest events: no program can wait for it; leave out `--block`"
                .to_owned(),
        );
    }
    match options.rotate {
        Some(Rotate::Size(bytes)) if bytes < LEAST_BYTES => {
            return refuse(format!(
                "`--rotate`: {bytes} bytes is less than one block of records; give 128K or more"
            ));
        }
        Some(Rotate::Time(time)) if time < LEAST_TIME => {
            return refuse(format!("`--rotate`: {time} is too short; give 100ms or more"));
        }
        _ => {}
    }
    let least = match options.rotate {
        Some(Rotate::Size(bytes)) => bytes.saturating_mul(2),
        _ => LEAST_BYTES,
    };
    match options.max_size {
        Some(most) if most < least => refuse(format!(
            "`--max-size`: {most} bytes is too little; give {least} or more{}",
            if least > LEAST_BYTES { ": two files of `--rotate`" } else { "" }
        )),
        _ => Ok(()),
    }
}

/// The files that were written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) removed: u64,
    pub(crate) incomplete: Option<String>,
    /// What the user must know of the sizes.
    pub(crate) notes: Vec<String>,
}

/// The files of one recording.
#[derive(Debug)]
pub(crate) struct Files {
    path: PathBuf,
    rotate: Option<Rotate>,
    max_size: Option<u64>,
    header: Header,
    begun_ns: u64,
    /// Bytes of a file's head.
    head: u64,
    /// The most bytes of names that a file had.
    names: u64,
    /// Where the head leaves no room for another file within the limit: the least limit that does; else 0.
    wanted: u64,
    /// Files that are there, the oldest first, with their sizes; the last one is being written.
    files: VecDeque<(PathBuf, u64)>,
    count: u64,
    removed: u64,
}

impl Files {
    /// Begins the first file.
    pub(crate) fn begin(
        options: &RecordOptions,
        header: Header,
        now_ns: u64,
    ) -> Result<(Files, Writer<Place>), RecordingError> {
        let path = if options.rotate.is_some() { numbered(&options.out, 1) } else { options.out.clone() };
        let place = Place::open(&path).map_err(|error| RecordingError::unwritable(&path, &error))?;
        let writer = Writer::new(place, &header)?;
        let files = Files {
            path: options.out.clone(),
            rotate: options.rotate,
            max_size: options.max_size,
            header,
            begun_ns: now_ns,
            head: writer.bytes(),
            names: 0,
            wanted: 0,
            files: VecDeque::from([(path, 0)]),
            count: 1,
            removed: 0,
        };
        Ok((files, writer))
    }

    /// Writes what is ripe, into the next file where it is time for one. `false`: the files are as large as they may become,
    /// and nothing more can be written. An error in words.
    pub(crate) fn write(
        &mut self,
        output: &mut Output<Place>,
        now_ns: u64,
        clock_error_ns: u64,
    ) -> Result<bool, String> {
        loop {
            let is_written = output.write_to(self.next_look());
            if !self.turn(output, now_ns, clock_error_ns)? {
                return Ok(false);
            }
            if is_written {
                return Ok(true);
            }
        }
    }

    /// At what size of the present file there is something to decide.
    fn next_look(&self) -> Size {
        let end = self.end();
        let room = self.max_size.map_or(u64::MAX, |most| most.saturating_sub(self.others()));
        Size { with_foot: end.with_foot.min(room), ..end }
    }

    /// The least that two files take: each has its head, a block of records, its foot.
    fn least_of_two(&self) -> u64 {
        2 * (self.head + BLOCK + LEAST_FOOT)
    }

    /// Whether there is a next file at all.
    fn goes_on(&self) -> bool {
        self.rotate.is_some() && self.max_size.is_none_or(|most| self.least_of_two() <= most)
    }

    /// At what size the present file ends, whatever the time: two files, with all names that their records need, fit into the
    /// limit, so that the one before stays until the present one is as large.
    fn end(&self) -> Size {
        if !self.goes_on() {
            return Size::ANY;
        }
        let bytes = match self.rotate {
            Some(Rotate::Size(most)) => most.max(self.head + BLOCK),
            _ => u64::MAX,
        };
        Size { bytes, with_foot: self.max_size.map_or(u64::MAX, |most| most / 2) }
    }

    /// Begins the next file where it is time to, and removes the oldest where all are too large.
    fn turn(&mut self, output: &mut Output<Place>, now_ns: u64, clock_error_ns: u64) -> Result<bool, String> {
        let is_old = match self.rotate {
            Some(Rotate::Time(time)) => now_ns.saturating_sub(self.begun_ns) >= time.as_ns(),
            _ => false,
        };
        self.names = self.names.max(output.bytes_of_names());
        if self.end().is_reached(output.bytes(), output.bytes_of_foot()) || (is_old && self.goes_on()) {
            self.go_on(output, now_ns, clock_error_ns)?;
        } else if self.rotate.is_some() && !self.goes_on() {
            self.wanted = self.least_of_two();
        }
        while self.max_size.is_some_and(|most| self.others() + output.bytes() + output.bytes_of_foot() > most)
        {
            if self.files.len() == 1 {
                return Ok(false);
            }
            if let Some((path, _)) = self.files.pop_front() {
                // What cannot be removed is no longer ours.
                let _ = std::fs::remove_file(path);
                self.removed += 1;
            }
        }
        Ok(true)
    }

    fn go_on(&mut self, output: &mut Output<Place>, now_ns: u64, clock_error_ns: u64) -> Result<(), String> {
        let path = numbered(&self.path, self.count + 1);
        let file = Place::create(&path).map_err(|error| format!("creating {}: {error}", path.display()))?;
        let ended = output.go_on_in(file, &self.header, now_ns, clock_error_ns);
        self.count += 1;
        self.begun_ns = now_ns;
        if let Some((path, size)) = self.files.back_mut() {
            // With its foot.
            *size = path.metadata().map_or(0, |found| found.len());
        }
        self.files.push_back((path, 0));
        ended.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Bytes of the files that have ended.
    fn others(&self) -> u64 {
        self.files.iter().rev().skip(1).map(|(_, size)| *size).sum()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.removed > 0 {
            notes.push(format!("the {} oldest files were removed (`--max-size`)", self.removed));
        }
        match self.rotate {
            Some(Rotate::Size(most)) if self.names > most / 4 => notes.push(format!(
                "the names of threads and events take {} KiB of each file; give `--rotate {}M` or more",
                self.names >> 10,
                (4 * self.names).div_ceil(1 << 20)
            )),
            _ => {}
        }
        if self.wanted > 0 {
            notes.push(format!(
                "the file's head, with the command in it, left no room for two files within `--max-size`; give {}M or more",
                self.wanted.div_ceil(1 << 20)
            ));
        }
        notes
    }

    /// Ends the last file.
    pub(crate) fn finish(self, output: Output<Place>, end_ns: u64, clock_error_ns: u64) -> Written {
        let incomplete = match output.finish(end_ns, clock_error_ns) {
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        let notes = self.notes();
        Written {
            files: self.files.into_iter().map(|(path, _)| path).collect(),
            removed: self.removed,
            incomplete,
            notes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::{Emitted, Tap};
    use crate::target::{Target, Tracing};
    use horolog_probe::session::reader::EventInfo;
    use horolog_time::Instant;
    use horolog_trace::file::Reader;
    use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn options(folder: &std::path::Path) -> RecordOptions {
        RecordOptions {
            target: Target::Process(1),
            tracing: Tracing::default(),
            out: folder.join("trace.hrt"),
            kernel: false,
            kernel_buffer: None,
            rotate: Some(Rotate::Size(128 << 10)),
            max_size: None,
            duration: None,
            stop: Arc::new(AtomicBool::new(false)),
            snapshot: Arc::new(AtomicBool::new(false)),
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let base = options(std::path::Path::new("."));
        let with = |change: &dyn Fn(&mut RecordOptions)| {
            let mut options = base.clone();
            change(&mut options);
            check(&options).map_err(|error| error.to_string())
        };
        assert_eq!(with(&|_| {}), Ok(()));
        assert_eq!(with(&|options| options.max_size = Some(256 << 10)), Ok(()));
        type Change<'a> = &'a dyn Fn(&mut RecordOptions);
        let cases: [(Change<'_>, &str); 6] = [
            (&|options| options.max_size = Some(255 << 10), "two files"),
            (&|options| options.rotate = Some(Rotate::Size(1)), "128K"),
            (&|options| options.rotate = Some(Rotate::Time(Span::from_ns(5))), "100ms"),
            (&|options| options.tracing.overwrite = true, "--rotate"),
            (&|options| (options.rotate, options.max_size) = (None, Some(5)), "131072"),
            (
                &|options| {
                    (options.rotate, options.tracing.overwrite, options.tracing.block) = (None, true, true)
                },
                "--block",
            ),
        ];
        for (change, word) in cases {
            assert!(with(change).is_err_and(|why| why.contains(word)), "{word}");
        }
    }

    /// Whatever is in which file, all files together hold every event once, in order, and each is whole.
    #[test]
    fn files_go_on_where_the_one_before_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut options = options(folder.path());
        let total = 100_000_u64;
        for max_size in [None, Some(512 << 10)] {
            options.max_size = max_size;
            let (mut files, writer) = Files::begin(&options, Header::session(0), 0).expect("files");
            let mut output = Output::new(writer, 0, 100);
            output.begin().expect("begun");
            let events: Vec<EventInfo> = (0..3)
                .map(|id| EventInfo {
                    id,
                    name: format!("event/{id}"),
                    types: "u".to_owned(),
                    fields: Vec::new(),
                })
                .collect();
            for number in 0..total {
                let (event, word) = (&events[(number % 3) as usize], [number]);
                let (ns, tid) = (number * 10, 7 + (number % 2) as u32);
                output.event(&Emitted {
                    session: 1,
                    pid: 7,
                    ns,
                    tid,
                    cpu: 0,
                    event,
                    words: &word,
                    has_texts: false,
                });
                if number % 500 == 499 {
                    output.advance(ns);
                    assert!(files.write(&mut output, ns, 3).expect("written"));
                }
            }
            output.advance_to_the_end();
            assert!(files.write(&mut output, total * 10, 3).expect("written"));
            let written = files.finish(output, total * 10, 3);
            assert!(written.files.len() >= 2 && written.incomplete.is_none(), "{written:?}");
            let mut numbers = Vec::new();
            for path in &written.files {
                let mut reader = Reader::open(path).expect("a trace");
                while let Some(record) = reader.next_record() {
                    assert_eq!(record.kind, Kind::User);
                    let user = reader.user_event(&record).expect("an event");
                    let number = user.words[0];
                    assert_eq!(user.definition.name, format!("event/{}", number % 3));
                    assert_eq!(user.thread.map(|thread| thread.tid), Some(7 + (number % 2) as u32));
                    numbers.push(number);
                }
                assert!(reader.damage().is_none());
            }
            let first = if max_size.is_none() { 0 } else { numbers[0] };
            assert!(numbers.iter().copied().eq(first..total), "{first} {}", numbers.len());
            let kept: u64 = written.files.iter().map(|path| path.metadata().expect("there").len()).sum();
            match max_size {
                None => assert_eq!(written.removed, 0),
                Some(most) => assert!(written.removed > 0 && kept <= most && kept > most / 2, "{kept}"),
            }
            assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), written.files.len());
            written.files.iter().for_each(|path| std::fs::remove_file(path).expect("removed"));
        }
    }

    /// So many events with long names that the names alone take more than a file shall have.
    fn with_many_names(
        rotate: Rotate,
        max_size: Option<u64>,
        total: u64,
    ) -> (Written, bool, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let options = RecordOptions { rotate: Some(rotate), max_size, ..options(folder.path()) };
        let (mut files, writer) = Files::begin(&options, Header::session(0), 0).expect("files");
        let mut output = Output::new(writer, 0, 100);
        output.begin().expect("begun");
        let events: Vec<EventInfo> = (0..4_000)
            .map(|id| EventInfo {
                id,
                name: format!("{id}/{}", "x".repeat(55)),
                types: "u".to_owned(),
                fields: Vec::new(),
            })
            .collect();
        let mut goes_on = true;
        for number in 0..total {
            let (event, ns) = (&events[(number % 4_000) as usize], number * 1_000_000);
            let words = [number];
            output.event(&Emitted {
                session: 1,
                pid: 7,
                ns,
                tid: 7,
                cpu: 0,
                event,
                words: &words,
                has_texts: false,
            });
            if number % 500 == 499 && output.advance(ns) {
                goes_on = files.write(&mut output, ns, 3).expect("written");
                if !goes_on {
                    output.give_up();
                    break;
                }
            }
        }
        (files.finish(output, total * 1_000_000, 3), goes_on, folder)
    }

    fn records_in(path: &std::path::Path) -> usize {
        let mut reader = Reader::open(path).expect("a trace");
        let count = reader.by_ref().count();
        assert!(reader.damage().is_none(), "{}", path.display());
        count
    }

    fn size_of(written: &Written) -> u64 {
        written.files.iter().map(|path| path.metadata().expect("there").len()).sum()
    }

    #[test]
    fn a_file_with_many_names_ends_at_its_size_and_a_note_says_so() {
        let (written, goes_on, _folder) = with_many_names(Rotate::Size(128 << 10), None, 200_000);
        assert!(goes_on && written.files.len() > 2, "{written:?}");
        let (_, whole) = written.files.split_last().expect("files");
        for path in whole {
            // Each record needs a name of 60 bytes, which the foot has, too.
            let (size, records) = (path.metadata().expect("there").len(), records_in(path));
            assert!((128 << 10..512 << 10).contains(&size) && records >= 1_500, "{path:?}: {size} {records}");
        }
        let note = written.notes.first().expect("a note");
        assert!(note.contains("`--rotate 1M` or more"), "{note}");
    }

    /// However many names there are: the newest records are kept, and the file before the present one.
    #[test]
    fn names_never_cost_the_newest_readable_file() {
        for max in [256_u64 << 10, 1 << 20, 4 << 20] {
            for rotate in [Rotate::Size(128 << 10), Rotate::Time(Span::from_ns(5_000_000_000))] {
                let (written, goes_on, _folder) = with_many_names(rotate, Some(max), 200_000);
                assert!(size_of(&written) <= max, "{} of {max}", size_of(&written));
                let records: usize = written.files.iter().map(|path| records_in(path)).sum();
                assert!(records as u64 > max / 400, "{records} {max} {written:?}");
                assert!(goes_on && written.files.len() > 1 && written.removed > 0, "{rotate:?} {written:?}");
            }
        }
    }

    /// A command of so many words that its head takes all the room there is.
    #[test]
    fn one_file_goes_on_where_the_head_leaves_no_room_for_two() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = RecordOptions { max_size: Some(256 << 10), ..options(folder.path()) };
        let mut header = Header::session(0);
        header.sources = vec!["x".repeat(100 << 10)];
        let (mut files, writer) = Files::begin(&options, header, 0).expect("files");
        let mut output = Output::new(writer, 0, 100);
        output.begin().expect("begun");
        assert!(files.write(&mut output, 1, 3).expect("written") && !files.goes_on());
        let written = files.finish(output, 10, 3);
        let note = written.notes.first().expect("a note");
        assert!(written.files.len() == 1 && note.contains("left no room for two files"), "{written:?}");
    }

    const SHORT_THREADS: u64 = 2_000;

    /// Records threads of ten events each, one after the other, of which the first one's last event comes at the very end; the
    /// kernel's switches to them stand between.
    fn with_short_threads(rotate: Option<Rotate>) -> (Written, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let options = RecordOptions { rotate, ..options(folder.path()) };
        let (mut files, writer) = Files::begin(&options, Header::session(0), 0).expect("files");
        let mut output = Output::new(writer, 0, 100);
        output.begin().expect("begun");
        let events = ["begin", "work", "end"].map(|name| EventInfo {
            id: name.len() as u32,
            name: name.to_owned(),
            types: "uu".to_owned(),
            fields: Vec::new(),
        });
        let emit = |output: &mut Output<Place>, thread: u64, ns: u64, event: usize| {
            output.event(&Emitted {
                session: 1,
                pid: 7,
                ns,
                tid: 10_000 + thread as u32,
                cpu: 0,
                event: &events[event],
                words: &[thread, ns.wrapping_mul(0x9e37_79b9_7f4a_7c15)],
                has_texts: false,
            });
        };
        let mut last = output.kernel_thread(None, 0, "swapper");
        for thread in 0..SHORT_THREADS {
            let begun = thread * 10_000;
            let id = output.kernel_thread(Some(7), 10_000 + thread as u32, &format!("short-{thread}"));
            output.kernel(Record {
                time: Instant::from_ns(begun),
                kind: Kind::KernelSwitch,
                cpu: 0,
                task: NO_TASK,
                job: NO_JOB,
                value: last,
                extra: id,
            });
            last = id;
            for step in 0..10 {
                emit(&mut output, thread, begun + 1 + step, [0, 1, 1, 1, 1, 1, 1, 1, 1, 2][step as usize]);
            }
            if output.advance(begun + 5_000) {
                assert!(files.write(&mut output, begun + 5_000, 3).expect("written"));
            }
        }
        let end = SHORT_THREADS * 10_000;
        // Late, of a thread that ended long ago.
        emit(&mut output, 0, end, 1);
        output.advance_to_the_end();
        assert!(files.write(&mut output, end, 3).expect("written"));
        (files.finish(output, end, 3), folder)
    }

    #[test]
    fn a_file_names_the_threads_of_its_own_records_alone() {
        let (one, _folder) = with_short_threads(None);
        let (several, _folder) = with_short_threads(Some(Rotate::Size(128 << 10)));
        assert!(one.files.len() == 1 && several.files.len() >= 3, "{several:?}");
        let statistics = |path: &PathBuf| {
            let mut reader = Reader::open(path).expect("a trace");
            let mut counts = std::collections::BTreeMap::<String, u64>::new();
            let mut named = std::collections::BTreeSet::new();
            let name = |reader: &Reader<_>, number: u64| {
                let thread = reader.threads().get(number as usize).expect("its file names it").clone();
                assert!(thread.tid == 0 || thread.process == Some(7), "{thread:?}");
                (thread.tid, thread.comm)
            };
            while let Some(record) = reader.next_record() {
                if record.kind == Kind::User {
                    let user = reader.user_event(&record).expect("its file defines it");
                    let (thread, event) = (user.words[0], user.definition.name.clone());
                    let found = name(&reader, record.extra);
                    assert_eq!(found, (10_000 + thread as u32, format!("short-{thread}")));
                    *counts.entry(format!("{event} of {}", found.1)).or_default() += 1;
                    named.insert(record.extra);
                } else {
                    let (from, to) = (name(&reader, record.value).1, name(&reader, record.extra).1);
                    *counts.entry(format!("{from} to {to}")).or_default() += 1;
                    named.extend([record.value, record.extra]);
                }
            }
            assert!(reader.damage().is_none() && reader.unknown_entries() == 0);
            let footer = reader.footer().expect("a foot");
            assert_eq!(footer.counts.values().sum::<u64>(), counts.values().sum::<u64>());
            (counts, named.len(), footer.threads.len())
        };
        let (whole, ..) = statistics(&one.files[0]);
        let mut sum = std::collections::BTreeMap::new();
        for (index, path) in several.files.iter().enumerate() {
            let (counts, needed, named) = statistics(path);
            counts.into_iter().for_each(|(what, count)| *sum.entry(what).or_default() += count);
            assert!(index == 0 || named == needed, "{path:?}: {named} names for {needed} threads");
        }
        assert_eq!(sum, whole);
        assert_eq!(whole.values().sum::<u64>(), SHORT_THREADS * 11 + 1);
    }

    #[test]
    fn one_file_stops_at_its_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = RecordOptions { rotate: None, max_size: Some(128 << 10), ..options(folder.path()) };
        let (mut files, writer) = Files::begin(&options, Header::session(0), 0).expect("files");
        let mut output = Output::new(writer, 0, 100);
        output.begin().expect("begun");
        let event = EventInfo { id: 1, name: "x".to_owned(), types: "u".to_owned(), fields: Vec::new() };
        let mut stopped = None;
        for number in 0..200_000_u64 {
            let word = [number.wrapping_mul(0x9e37_79b9_7f4a_7c15)];
            output.event(&Emitted {
                session: 1,
                pid: 7,
                ns: number * 10,
                tid: 7,
                cpu: 0,
                event: &event,
                words: &word,
                has_texts: false,
            });
            if number % 1_000 == 999 {
                output.advance(number * 10);
                if !files.write(&mut output, number * 10, 3).expect("written") {
                    stopped = Some(number);
                    break;
                }
            }
        }
        assert!(stopped.is_some());
        assert_eq!(files.finish(output, 1, 3).files, [folder.path().join("trace.hrt")]);
    }
}
