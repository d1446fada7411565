//! What `horolog run --locks` and the preloaded lock library tell each other: rules on the way in, a table of counts on the
//! way out. The table is a file that both map or read, so that counts outlive a process that is killed or replaced.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// The variable with the rules, one a line.
pub const RULES: &str = "HOROLOG_LOCK_RULES";
/// The variable with the path of the table.
pub const TABLE: &str = "HOROLOG_LOCK_TABLE";
/// The largest ceiling: the largest priority of SCHED_FIFO.
pub const LARGEST_CEILING: u8 = 99;

/// What a rule gives a mutex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// It stays as the program made it.
    None,
    /// Its holder inherits the priority of the most important thread that waits.
    Inheritance,
    /// Its holder executes at this priority from before it asks until it has unlocked, with inheritance below.
    Ceiling(u8),
}

impl Protocol {
    /// The word of [`RULES`]: `none`, `inheritance`, `ceiling=20`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Protocol> {
        match word.split_once('=') {
            None if word == "none" => Some(Protocol::None),
            None if word == "inheritance" => Some(Protocol::Inheritance),
            Some(("ceiling", priority)) => {
                let priority =
                    priority.parse().ok().filter(|priority| (1..=LARGEST_CEILING).contains(priority));
                priority.map(Protocol::Ceiling)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protocol::None => f.write_str("none"),
            Protocol::Inheritance => f.write_str("inheritance"),
            Protocol::Ceiling(priority) => write!(f, "ceiling={priority}"),
        }
    }
}

/// The calls that a rule is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Site<'a> {
    /// All of them.
    Any,
    /// Those in the functions of these names: `MODULE!SYMBOL`, `SYMBOL`, with `+0xOFFSET` one place in them.
    Symbol {
        /// The name of the module's file, without folders; a glob.
        module: &'a str,
        /// The symbol; a glob.
        symbol: &'a str,
        /// Where the call returns to, from the start of the symbol.
        offset: Option<u64>,
    },
    /// The one that returns to this place of a module: `MODULE+0xOFFSET`.
    Offset {
        /// The name of the module's file; a glob.
        module: &'a str,
        /// Where the call returns to, from the module's bias.
        offset: u64,
    },
    /// Those in these lines of a source file: `FILE:LINE`, `FILE:FIRST-LAST`.
    Lines {
        /// The end of the file's path, whole components; a glob.
        file: &'a str,
        /// The first line.
        first: u64,
        /// The last line.
        last: u64,
    },
}

impl<'a> Site<'a> {
    /// Reads what a rule says of its calls.
    ///
    /// # Errors
    /// What is wrong with it.
    ///
    /// ```
    /// use horolog_probe::lock_protocol::Site;
    /// let symbol = Site::Symbol { module: "*", symbol: "bus_*", offset: None };
    /// assert_eq!(Site::parse("bus_*"), Ok(symbol));
    /// assert_eq!(Site::parse("bus.c:7-9"), Ok(Site::Lines { file: "bus.c", first: 7, last: 9 }));
    /// assert_eq!(Site::parse("libbus.so+0x40"), Ok(Site::Offset { module: "libbus.so", offset: 64 }));
    /// ```
    pub fn parse(text: &'a str) -> Result<Site<'a>, &'static str> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err("it is empty, or has control characters in it");
        }
        let offset_of = |text: &'a str| match text.rsplit_once("+0x") {
            None => Ok((text, None)),
            Some((head, digits)) => match u64::from_str_radix(digits, 16) {
                Ok(offset) if !digits.starts_with('+') => Ok((head, Some(offset))),
                _ => Err("what follows `+0x` is not a hexadecimal number of at most 64 bits"),
            },
        };
        if let Some((module, rest)) = text.split_once('!') {
            let (symbol, offset) = offset_of(rest)?;
            if module.is_empty() || symbol.is_empty() {
                return Err("a module belongs before `!` and a symbol behind it");
            }
            return Ok(Site::Symbol { module, symbol, offset });
        }
        if let Some((file, lines)) = text.rsplit_once(':') {
            let number = |digits: &str| {
                let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
                digits.and_then(|digits| digits.parse::<u64>().ok()).filter(|line| *line > 0)
            };
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            return match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last && !file.is_empty() => {
                    Ok(Site::Lines { file, first, last })
                }
                _ => Err("what follows `:` is neither a line from 1 on nor a range of lines such as 40-52"),
            };
        }
        match offset_of(text)? {
            ("", _) => Err("there is no module before `+0x`"),
            (module, Some(offset)) => Ok(Site::Offset { module, offset }),
            (symbol, None) => Ok(Site::Symbol { module: "*", symbol, offset: None }),
        }
    }
}

/// The rules of [`RULES`]: `PROTOCOL` and, behind a tab, the calls that it is for; without them: all. Lines that cannot be read
/// are left out. The first that fits a call counts.
pub fn rules(text: &str) -> impl Iterator<Item = (Protocol, Site<'_>)> {
    text.lines().filter_map(|line| {
        let (protocol, site) = line.split_once('\t').map_or((line, None), |(word, site)| (word, Some(site)));
        let site = site.map_or(Some(Site::Any), |site| Site::parse(site).ok())?;
        Some((Protocol::from_word(protocol)?, site))
    })
}

/// What was done about a lock, or could not be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum What {
    /// It has the protocol of its rule.
    Set = 1,
    /// Its rule says none, or no rule fits.
    Left,
    /// The program gave it a protocol itself.
    HasProtocol,
    /// Processes may share it, and not all of them have the library; glibc's robust mutexes have the same mark. Counted once a call.
    Shared,
    /// It was held, or a thread waited for it, when it was first seen.
    InUse,
    /// Its kind is none that this C library is known to have.
    UnknownKind,
    /// Taken without its ceiling, by inheritance alone: by a thread that is not real-time.
    NotRealTime,
    /// The same: by a thread more important than the ceiling.
    AboveCeiling,
    /// The same: by a thread that may not raise its priority so far.
    NotAllowed,
    /// The same: by a thread that holds too many locks with ceilings.
    TooMany,
    /// Unlocked by a thread that does not hold it, which is refused under a protocol.
    NotHeld,
    /// A program that was started and is statically linked, or for another machine: the library does not reach it.
    Static,
    /// The same: one that changes its user, its group or its capabilities.
    Privileged,
    /// The same: one with an environment that does not name the library and its table.
    Environment,
}

impl What {
    /// All.
    pub const ALL: [What; 14] = [
        What::Set,
        What::Left,
        What::HasProtocol,
        What::Shared,
        What::InUse,
        What::UnknownKind,
        What::NotRealTime,
        What::AboveCeiling,
        What::NotAllowed,
        What::TooMany,
        What::NotHeld,
        What::Static,
        What::Privileged,
        What::Environment,
    ];

    fn from_number(number: u64) -> Option<What> {
        What::ALL.into_iter().find(|what| *what as u64 == number)
    }
}

/// Words of a row, and of the head before all rows.
const WORDS: usize = 32;
/// Rows of a table.
const ROWS: usize = 4_096;
/// Bytes of the file.
pub const TABLE_BYTES: usize = (ROWS + 1) * WORDS * 8;
/// The first word of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"hrlocks1");
/// The words of a row: state, what and rule, count, offset, lock, thread, two of its name, and the module's path.
const STATE: usize = 0;
const WHAT: usize = 1;
const COUNT: usize = 2;
const OFFSET: usize = 3;
const LOCK: usize = 4;
const THREAD: usize = 5;
const NAME: usize = 6;
const PATH: usize = 8;
/// Bytes of a path that a row keeps: the last ones.
pub const PATH_BYTES: usize = (WORDS - PATH) * 8;
const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const READY: u64 = 2;
/// How many places are tried for a row.
const TRIES: usize = 128;

/// What one row counts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Counted<'a> {
    /// What was done.
    pub what: What,
    /// The index of the rule; `None`: none fits.
    pub rule: Option<u32>,
    /// The module of the call.
    pub module: &'a [u8],
    /// Where the call returns to, from the module's bias.
    pub offset: u64,
}

/// The first that was counted in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct First {
    /// The address of the lock.
    pub lock: u64,
    /// The thread.
    pub thread: u32,
    /// Its name.
    pub name: [u8; 16],
}

/// The table of a run, in memory that processes share.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a>(&'a [AtomicU64]);

impl<'a> Table<'a> {
    /// A table in these words; `None` where they are too few or another's.
    #[must_use]
    pub fn new(words: &'a [AtomicU64]) -> Option<Table<'a>> {
        let is_one = words.len() * 8 >= TABLE_BYTES && words[0].load(Ordering::Relaxed) == MAGIC;
        is_one.then_some(Table(words))
    }

    /// The bytes of an empty one.
    #[must_use]
    pub fn empty() -> Vec<u8> {
        let mut bytes = vec![0; TABLE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes
    }

    /// Counts a process that sets protocols, or one that cannot.
    pub fn process(&self, is_able: bool) {
        self.0[if is_able { 1 } else { 2 }].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one; `is_once`: at most one a row. Wait-free, without allocation and calls.
    pub fn count(&self, counted: &Counted<'_>, is_once: bool, first: impl FnOnce() -> First) {
        let path = &counted.module[counted.module.len().saturating_sub(PATH_BYTES)..];
        let word_of = |index: usize| {
            let mut word = [0; 8];
            let rest = path.get(index * 8..).unwrap_or_default();
            let length = rest.len().min(8);
            word[..length].copy_from_slice(&rest[..length]);
            u64::from_le_bytes(word)
        };
        let what =
            counted.what as u64 | u64::from(counted.rule.map_or(0, |rule| rule.saturating_add(1))) << 8;
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
        mix(what);
        mix(counted.offset);
        (0..path.len().div_ceil(8)).for_each(|index| mix(word_of(index)));
        for attempt in 0..TRIES {
            let row = &self.0[(1 + (hash as usize).wrapping_add(attempt) % ROWS) * WORDS..][..WORDS];
            let state = match row[STATE].compare_exchange(FREE, CLAIMED, Ordering::Relaxed, Ordering::Acquire)
            {
                Ok(_) => {
                    let first = first();
                    row[WHAT].store(what, Ordering::Relaxed);
                    row[COUNT].store(1, Ordering::Relaxed);
                    row[OFFSET].store(counted.offset, Ordering::Relaxed);
                    row[LOCK].store(first.lock, Ordering::Relaxed);
                    row[THREAD].store(first.thread.into(), Ordering::Relaxed);
                    for (word, bytes) in row[NAME..PATH].iter().zip(first.name.chunks_exact(8)) {
                        word.store(
                            u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
                            Ordering::Relaxed,
                        );
                    }
                    for (index, word) in row[PATH..].iter().enumerate() {
                        word.store(word_of(index), Ordering::Relaxed);
                    }
                    row[STATE].store(READY, Ordering::Release);
                    return;
                }
                Err(state) => state,
            };
            // One that is just being written may be of the same: then there are two rows, which a reader adds.
            if state == READY
                && row[WHAT].load(Ordering::Relaxed) == what
                && row[OFFSET].load(Ordering::Relaxed) == counted.offset
                && row[PATH..]
                    .iter()
                    .enumerate()
                    .all(|(index, word)| word.load(Ordering::Relaxed) == word_of(index))
            {
                if !is_once {
                    row[COUNT].fetch_add(1, Ordering::Relaxed);
                }
                return;
            }
        }
        self.0[3].fetch_add(1, Ordering::Relaxed);
    }
}

/// A row that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// What was done.
    pub what: What,
    /// The index of the rule.
    pub rule: Option<u32>,
    /// How often.
    pub count: u64,
    /// The module's path, or its last bytes.
    pub module: Vec<u8>,
    /// Where the call returns to, from the module's bias.
    pub offset: u64,
    /// The first that was counted.
    pub first: First,
}

/// A table that was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Processes that set protocols.
    pub processes: u64,
    /// Processes that cannot: their C library has other mutexes, or threads ran before the library.
    pub unable: u64,
    /// What no row was free for.
    pub uncounted: u64,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Counts {
    /// Reads the bytes of a table; whatever they are, what is no row is left out.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Counts {
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect();
        let Some(head) = words.get(..WORDS).filter(|head| head[0] == MAGIC) else { return Counts::default() };
        let row = |row: &[u64]| {
            let path: Vec<u8> = row[PATH..].iter().flat_map(|word| word.to_le_bytes()).collect();
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            let mut name = [0; 16];
            name[..8].copy_from_slice(&row[NAME].to_le_bytes());
            name[8..].copy_from_slice(&row[NAME + 1].to_le_bytes());
            Some(Row {
                what: What::from_number(row[WHAT] & 0xff)?,
                rule: u32::try_from(row[WHAT] >> 8).ok()?.checked_sub(1),
                count: row[COUNT],
                module: path[..end].to_vec(),
                offset: row[OFFSET],
                first: First { lock: row[LOCK], thread: row[THREAD] as u32, name },
            })
        };
        Counts {
            processes: head[1],
            unable: head[2],
            uncounted: head[3],
            rows: words[WORDS..]
                .chunks_exact(WORDS)
                .filter(|words| words[STATE] == READY)
                .filter_map(row)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<AtomicU64> {
        let bytes = Table::empty();
        bytes
            .chunks_exact(8)
            .map(|word| AtomicU64::new(u64::from_le_bytes(word.try_into().expect("8"))))
            .collect()
    }

    fn read(words: &[AtomicU64]) -> Counts {
        let bytes: Vec<u8> =
            words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        Counts::of(&bytes)
    }

    #[test]
    fn what_is_counted_is_read() {
        let words = words();
        let table = Table::new(&words).expect("a table");
        let long = [b'/'; PATH_BYTES + 1];
        let paths: [&[u8]; 4] = [b"", b"/usr/bin/x", &long[1..], &long];
        for (offset, module) in (5..).zip(paths) {
            for rule in [None, Some(0), Some(u32::MAX - 1)] {
                let counted = Counted { what: What::Set, rule, module, offset };
                let first = |thread| move || First { lock: offset, thread, name: *b"0123456789abcdef" };
                table.count(&counted, false, first(7));
                table.count(&counted, false, first(8));
                table.count(&counted, true, first(9));
            }
        }
        table.process(true);
        table.process(false);
        let counts = read(&words);
        assert_eq!((counts.processes, counts.unable, counts.uncounted, counts.rows.len()), (1, 1, 0, 12));
        for row in counts.rows {
            let place = usize::try_from(row.offset - 5).expect("small");
            let path = paths[place];
            assert_eq!(row.module, &path[path.len().saturating_sub(PATH_BYTES)..]);
            let first = First { lock: row.offset, thread: 7, name: *b"0123456789abcdef" };
            assert_eq!((row.what, row.count, row.first), (What::Set, 2, first));
        }
    }

    #[test]
    fn a_full_table_counts_what_it_has_no_row_for_and_two_threads_lose_nothing() {
        let words = words();
        let table = Table::new(&words).expect("a table");
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for offset in 0..5_000 {
                        let counted = Counted { what: What::Left, rule: None, module: b"m", offset };
                        table.count(&counted, false, First::default);
                    }
                });
            }
        });
        let counts = read(&words);
        let counted: u64 = counts.rows.iter().map(|row| row.count).sum();
        assert_eq!(counted + counts.uncounted, 10_000);
        assert!(counts.uncounted > 0 && counts.rows.len() > 3_500, "{}", counts.rows.len());
    }

    #[test]
    fn any_bytes_are_a_table_or_none() {
        assert_eq!(Counts::of(b"hrlocks1"), Counts::default());
        let mut bytes = Table::empty();
        bytes[8..].fill(0xff);
        assert_eq!(Counts::of(&bytes).rows, []);
        assert!(Table::new(&[AtomicU64::new(MAGIC)]).is_none());
    }

    #[test]
    fn sites_and_rules_are_read_as_they_are_written() {
        let symbol = |module, symbol, offset| Ok(Site::Symbol { module, symbol, offset });
        assert_eq!(Site::parse("a*!b?+0xfF"), symbol("a*", "b?", Some(255)));
        assert_eq!(Site::parse("a!b"), symbol("a", "b", None));
        assert_eq!(Site::parse("src/a.c:7"), Ok(Site::Lines { file: "src/a.c", first: 7, last: 7 }));
        for wrong in [
            "",
            "!b",
            "a!",
            "a+0x",
            "a+0x+1",
            "a+0x1g",
            "a!b+0x10000000000000000",
            "a.c:0",
            "a.c:9-8",
            "a.c:",
            ":3",
            "a.c:+3",
            "+0x1",
            "a\tb",
            "a.c:x",
        ] {
            assert!(Site::parse(wrong).is_err(), "{wrong}");
        }
        let text = "none\ta!b\nceiling=99\tx:1\nceiling=100\tq\nceiling=0\tq\nwhat\tq\ninheritance";
        let read: Vec<_> = rules(text).collect();
        let lines = Site::Lines { file: "x", first: 1, last: 1 };
        let first = Site::Symbol { module: "a", symbol: "b", offset: None };
        let expected =
            [(Protocol::None, first), (Protocol::Ceiling(99), lines), (Protocol::Inheritance, Site::Any)];
        assert_eq!(read, expected);
    }
}
