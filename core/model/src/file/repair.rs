//! What else is wrong with a file in which values cannot be read.
//!
//! A table with such a value is not there for the checks. So that its other errors are told in the same go, the file is read again with
//! values put in their places, several times with other values. What is found with all of them does not hang on what was meant.

use super::keys::{Key, Kind};
use super::reader::Reader;
use super::tree::{Entry, Node, Table, Value};
use crate::diagnostic::Diagnostic;
use crate::path;
use crate::source::Place;
use std::collections::{BTreeMap, BTreeSet};

/// So often each value is drawn by itself, after all were in step.
const DRAWN: usize = 6;

/// What stands in one place may hide another error, whose repair shows a third one.
const DEPTH: usize = 6;

/// Where more names may be meant, none is tried: the file is read once for each.
const MOST_NAMES: usize = 256;

/// So many CPUs are tried.
const MOST_NUMBERS: usize = 64;

/// Values that no text has are in texts from this number on.
const NO_TEXT: usize = usize::MAX / 2;

/// What a user may do about a value that cannot be read.
#[derive(Clone, Debug)]
pub(super) enum Repair {
    /// Write a value that can be read.
    Set(Place, Kind),
    /// Leave it out.
    Remove(Place),
    /// Give a key that is missing in the table whose first key is at this place.
    Add(Place, &'static str, Kind),
}

/// A value that cannot be read.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) path: String,
    /// Whether the file does not give it.
    pub(super) is_missing: bool,
    /// Each of these may be what is meant; none where nobody knows.
    pub(super) repairs: Vec<Repair>,
}

/// What the value at `path` should look like, by the keys of the tables around it.
pub(super) fn kind_at(path: &str, tables: &BTreeMap<String, KnownTable>) -> Option<Kind> {
    let above = path::parent(path)?;
    if let Some(table) = tables.get(above) {
        return table.key(&path[above.len() + 1..]).map(|key| key.kind);
    }
    kind_of_items(kind_at(above, tables)?)
}

/// What a value of a list of this kind should look like.
pub(super) fn kind_of_items(kind: Kind) -> Option<Kind> {
    match kind {
        Kind::Durations | Kind::Segments | Kind::Spin => Some(Kind::Duration),
        Kind::DurationLists => Some(Kind::Durations),
        Kind::Texts => Some(Kind::Text),
        Kind::Cpus | Kind::CpuList => Some(Kind::Integer),
        _ => None,
    }
}

/// A table as repairs find it: where its first key is, and what its keys take.
#[derive(Clone, Debug)]
pub(super) struct KnownTable {
    pub(super) first: Place,
    pub(super) keys: &'static [Key],
}

impl KnownTable {
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Reader {
    /// Of what the values mean together, tells what is wrong whatever was meant by those that could not be read.
    pub(super) fn beside_unread(&mut self, root: &Table) {
        if self.refused.iter().all(|refused| refused.repairs.is_empty()) {
            return;
        }
        let names = Names::of(root);
        if self.refused.iter().any(|one| one.names(&names) > MOST_NAMES) {
            return;
        }
        self.found.truncate(self.of_values);
        let told: BTreeSet<String> = self.found.iter().map(Diagnostic::key).collect();
        let mut common: Option<Vec<Diagnostic>> = None;
        let in_step = self.refused.iter().map(|one| one.values(&names)).max().unwrap_or(1);
        let drawn = if self.refused.len() > 1 { DRAWN } else { 0 };
        for round in 0..in_step + drawn {
            let mut found = Attempt::new(round, in_step, &names).read(root, &self.refused);
            found.retain(|one| !told.contains(&one.key()));
            if let Some(before) = common {
                let before: BTreeSet<String> = before.iter().map(Diagnostic::key_by_place).collect();
                found.retain(|one| before.contains(&one.key_by_place()));
            }
            if found.is_empty() {
                return;
            }
            common = Some(found);
        }
        self.found.extend(common.unwrap_or_default());
    }
}

impl Refused {
    /// Whether it is the name of an item.
    fn is_new_name(&self) -> bool {
        self.path.matches('.').count() == 2 && self.path.ends_with(".name")
    }

    /// How many names of the file may be meant by it.
    fn names(&self, names: &Names) -> usize {
        let is_text = |repair: &Repair| match repair {
            Repair::Set(_, kind) | Repair::Add(_, _, kind) => matches!(kind, Kind::Text),
            Repair::Remove(_) => false,
        };
        if self.repairs.iter().any(is_text) { names.texts(self.is_new_name()).len() } else { 0 }
    }

    /// In how many rounds each of its values has had its turn.
    fn values(&self, names: &Names) -> usize {
        let of = |repair: &Repair| match repair {
            Repair::Set(_, kind) | Repair::Add(_, _, kind) => names.values(*kind, self.is_new_name()),
            Repair::Remove(_) => 1,
        };
        // The repairs take turns as well.
        self.repairs.len() * self.repairs.iter().map(of).max().unwrap_or(1)
    }

    /// Whether it is the value at `path`, or that one is a part of it.
    fn holds(&self, path: &str) -> bool {
        path.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// Whether it says that there is no item of a name, and one of that name was only not read.
fn denies_an_unread_item(found: &Diagnostic, unread: &[&Refused]) -> bool {
    let denied = found.reason().strip_prefix("there is no ").and_then(|rest| rest.split('`').nth(1));
    let Some(denied) = denied else { return false };
    let is_of = |refused: &&Refused| {
        let below = refused.path.split_once('.').and_then(|(_, rest)| rest.strip_prefix(denied));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    unread.iter().any(is_of)
}

/// The file with a value in each place where none could be read.
struct Attempt<'n> {
    round: usize,
    /// In so many rounds all have the same turn; in those behind each has one of its own.
    in_step: usize,
    names: &'n Names,
    /// Where values were put.
    tried: BTreeSet<Spot>,
    /// Where tables that got another key have their first one.
    added: Vec<Place>,
    /// How many values were put somewhere.
    count: usize,
    /// How often the file was repaired and read: what did not fit is followed by the next value.
    depth: usize,
}

impl<'n> Attempt<'n> {
    fn new(round: usize, in_step: usize, names: &'n Names) -> Attempt<'n> {
        Attempt { round, in_step, names, tried: BTreeSet::new(), added: Vec::new(), count: 0, depth: 0 }
    }

    /// What is found beside the values that could not be read.
    fn read(&mut self, root: &Table, refused: &[Refused]) -> Vec<Diagnostic> {
        let mut root = root.clone();
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        let mut hidden = refused.to_vec();
        let mut open = refused.to_vec();
        for _ in 0..DEPTH {
            self.repair(&mut root, &open);
            let mut reader = Reader::default();
            reader.file(&root);
            open = reader.refused;
            // That a key is missing now may come from what was left out.
            let missing = open.iter().filter(|one| one.is_missing);
            let silent: Vec<&Refused> = hidden.iter().chain(missing).collect();
            for one in reader.found {
                let is_told = one.path().is_some_and(|path| silent.iter().all(|other| !other.holds(path)))
                    && !denies_an_unread_item(&one, &silent);
                if is_told && seen.insert(one.key()) {
                    found.push(one);
                }
            }
            if open.is_empty() {
                break;
            }
            hidden.extend(open.iter().cloned());
        }
        found.into_iter().map(|one: Diagnostic| one.within(NO_TEXT, &self.added)).collect()
    }

    fn repair(&mut self, root: &mut Table, open: &[Refused]) {
        let mut changes = Changes::default();
        let before = self.tried.clone();
        for refused in open.iter().filter(|refused| !refused.repairs.is_empty()) {
            let turn = self.turn();
            let is_named = refused.is_new_name();
            match &refused.repairs[turn % refused.repairs.len()] {
                Repair::Add(first, key, kind) => {
                    if let Some(value) = self.names.value(*kind, turn, is_named) {
                        let place = Place { text: NO_TEXT + self.added.len(), range: first.range.clone() };
                        self.added.push(first.clone());
                        changes.added.entry(spot(first)).or_default().push((key, Node { place, value }));
                    }
                }
                Repair::Set(place, kind) => {
                    // Where another value was refused as well, none belongs.
                    let is_first = !before.contains(&spot(place));
                    self.tried.insert(spot(place));
                    let value = if is_first { self.names.value(*kind, turn, is_named) } else { None };
                    changes.values.insert(spot(place), value);
                }
                Repair::Remove(place) => {
                    changes.values.insert(spot(place), None);
                }
            }
        }
        changes.apply(root);
        self.depth += 1;
    }

    /// Which of several values comes next: all in one row first, then drawn for each.
    fn turn(&mut self) -> usize {
        self.count += 1;
        if self.round < self.in_step {
            return self.round + self.depth;
        }
        let mixed = (self.round * 31 + self.count).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize);
        (mixed >> 17) + self.round
    }
}

/// A place as a key.
type Spot = (usize, usize, usize);

fn spot(place: &Place) -> Spot {
    (place.text, place.range.start, place.range.end)
}

/// What becomes of a file.
#[derive(Default)]
struct Changes {
    /// A new value, or none: the old one goes.
    values: BTreeMap<Spot, Option<Value>>,
    added: BTreeMap<Spot, Vec<(&'static str, Node)>>,
}

impl Changes {
    fn apply(&mut self, table: &mut Table) {
        let first = table.entries.first().map(|entry| entry.key_place.clone());
        table.entries.retain_mut(|entry| self.keep(&mut entry.node));
        let Some(key_place) = first else { return };
        for (key, node) in self.added.remove(&spot(&key_place)).unwrap_or_default() {
            if table.get(key).is_none() {
                table.entries.push(Entry { key: key.to_owned(), key_place: key_place.clone(), node });
            }
        }
    }

    /// Changes a value; whether it stays.
    fn keep(&mut self, node: &mut Node) -> bool {
        match self.values.remove(&spot(&node.place)) {
            Some(None) => return false,
            Some(Some(value)) => node.value = value,
            None => match &mut node.value {
                Value::Table(table) => self.apply(table),
                Value::List(list) => list.retain_mut(|node| self.keep(node)),
                _ => {}
            },
        }
        true
    }
}

/// The names and numbers of a file, which values that cannot be read may be.
struct Names {
    all: Vec<String>,
    /// Those that no item has.
    free: Vec<String>,
    /// Numbers of CPUs, small ones, and those at both ends of what the file has.
    numbers: Vec<i128>,
    /// Numbers of CPUs alone.
    cpus: Vec<i128>,
    /// The least and the longest duration, and some of the file's.
    spans: Vec<String>,
}

impl Names {
    fn of(root: &Table) -> Names {
        let mut given = BTreeSet::new();
        for item in root.entries.iter().flat_map(|entry| items(&entry.node)) {
            given.insert(super::name_of(item).to_owned());
        }
        let mut texts = BTreeSet::new();
        root.entries.iter().for_each(|entry| texts_of(&entry.node, &mut texts));
        let free: Vec<String> = texts.difference(&given).cloned().collect();
        let (mut numbers, mut cpus) = (BTreeSet::new(), BTreeSet::new());
        root.entries.iter().for_each(|entry| numbers_of(entry, &mut numbers, &mut cpus));
        let ends = [numbers.first().map(|&least| least - 1), numbers.last().map(|&most| most + 1)];
        let few = cpus.iter().copied().take(MOST_NUMBERS).chain(0..4).chain(ends.into_iter().flatten());
        let few: BTreeSet<i128> = few.collect();
        Names {
            all: given.union(&texts).filter(|name| !name.is_empty()).cloned().collect(),
            free,
            numbers: few.into_iter().collect(),
            cpus: cpus.into_iter().take(MOST_NUMBERS).collect(),
            spans: spans_of(root),
        }
    }

    /// The names that a text may be; `is_new` says whether it names an item.
    fn texts(&self, is_new: bool) -> &[String] {
        if is_new { &self.free } else { &self.all }
    }

    /// How many values of this kind are tried.
    fn values(&self, kind: Kind, is_new: bool) -> usize {
        match kind {
            Kind::Text => self.texts(is_new).len() + 1,
            Kind::Word(words) | Kind::Overrun(words) => words.len().max(1),
            Kind::IntegerOrWord(words) => 2 * words.len().max(self.numbers.len()),
            Kind::Integer => self.numbers.len(),
            Kind::CpuList => 5,
            Kind::Duration | Kind::Durations | Kind::Segments => self.spans.len(),
            _ => 2,
        }
    }

    /// A value of this kind, another one each turn; none where a key takes no simple value. `is_new` says whether it names an item.
    fn value(&self, kind: Kind, turn: usize, is_new: bool) -> Option<Value> {
        let is_odd = turn % 2 == 1;
        let text = |text: &str| Value::Text(text.to_owned());
        let list = |values: Vec<Value>| {
            let place = || Place { text: NO_TEXT, range: 0..0 };
            Value::List(values.into_iter().map(|value| Node { place: place(), value }).collect())
        };
        let integer =
            |turn: usize| Value::Integer(self.numbers.get(turn % self.numbers.len().max(1)).copied());
        let span = || text(&self.spans[turn % self.spans.len()]);
        let word = |words: &[&str]| words.get(turn % words.len().max(1)).map(|word| text(word));
        Some(match kind {
            Kind::Text => {
                let names = self.texts(is_new);
                names.get(turn % (names.len() + 1)).map_or_else(|| text("?"), |name| text(name))
            }
            Kind::Texts if is_odd => list(self.all.iter().map(|name| text(name)).collect()),
            Kind::Texts => list(Vec::new()),
            Kind::Duration => span(),
            Kind::Durations | Kind::Segments => list((0..=turn % 2).map(|_| span()).collect()),
            Kind::DurationLists => list(vec![list(vec![span()])]),
            Kind::Integer => integer(turn),
            // One alone, with which an item need not say it, or all that items say.
            Kind::Cpus if is_odd && !self.cpus.is_empty() => {
                list(self.cpus.iter().map(|&cpu| Value::Integer(Some(cpu))).collect())
            }
            Kind::Cpus => Value::Integer(Some(1)),
            Kind::Decimal | Kind::Spin => Value::Decimal(if is_odd { "0.9" } else { "0.1" }.to_owned()),
            Kind::CpuList if turn % 5 == 4 => {
                list(self.cpus.iter().map(|&cpu| Value::Integer(Some(cpu))).collect())
            }
            Kind::CpuList => list((0..=turn as i128 % 5).map(|cpu| Value::Integer(Some(cpu))).collect()),
            Kind::Word(words) | Kind::Overrun(words) => word(words)?,
            Kind::IntegerOrWord(words) if is_odd => text(words.get(turn / 2 % words.len().max(1))?),
            Kind::IntegerOrWord(_) => integer(turn / 2),
            Kind::Execution => text(if is_odd { "uniform" } else { "wcet" }),
            Kind::TakesEffect => text("at-once"),
            Kind::Windows if is_odd => list(self.all.iter().map(|name| window(name)).collect()),
            Kind::Windows | Kind::TaskSections | Kind::TaskChanges | Kind::ServerChanges => list(Vec::new()),
            Kind::Body => return None,
        })
    }
}

/// A window of a child, which has all of the time.
fn window(child: &str) -> Value {
    let entry = |key: &str, text: &str| {
        let place = Place { text: NO_TEXT, range: 0..0 };
        let node = Node { place: place.clone(), value: Value::Text(text.to_owned()) };
        Entry { key: key.to_owned(), key_place: place, node }
    };
    let entries = vec![entry("child", child), entry("from", "0 ns"), entry("length", "1 ns")];
    Value::Table(Table { entries })
}

/// The tables of `[[…]]`.
fn items(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(list) => list,
        _ => &[],
    }
}

/// The numbers of an entry, and which of them are CPUs.
fn numbers_of(entry: &Entry, numbers: &mut BTreeSet<i128>, cpus: &mut BTreeSet<i128>) {
    fn of_node(key: &str, node: &Node, numbers: &mut BTreeSet<i128>, cpus: &mut BTreeSet<i128>) {
        match &node.value {
            // Beyond what any key takes nothing is meant.
            Value::Integer(Some(number)) if i64::try_from(*number).is_ok() => {
                numbers.insert(*number);
                cpus.extend(matches!(key, "cpu" | "cpus").then_some(*number));
            }
            Value::List(list) => list.iter().for_each(|node| of_node(key, node, numbers, cpus)),
            Value::Table(table) => {
                table.entries.iter().for_each(|entry| numbers_of(entry, numbers, cpus));
            }
            _ => {}
        }
    }
    of_node(&entry.key, &entry.node, numbers, cpus);
}

/// So many durations of a file are tried.
const MOST_SPANS: usize = 6;

/// The least and the longest duration, and of those of the file, in order, some that are as far apart as they may.
fn spans_of(root: &Table) -> Vec<String> {
    fn of_node(node: &Node, spans: &mut BTreeSet<horolog_time::Span>) {
        match &node.value {
            Value::Text(text) => spans.extend(text.parse::<horolog_time::Span>()),
            Value::List(list) => list.iter().for_each(|node| of_node(node, spans)),
            Value::Table(table) => table.entries.iter().for_each(|entry| of_node(&entry.node, spans)),
            _ => {}
        }
    }
    let mut spans = BTreeSet::new();
    root.entries.iter().for_each(|entry| of_node(&entry.node, &mut spans));
    let all: Vec<horolog_time::Span> = spans.into_iter().collect();
    let few = all.len().min(MOST_SPANS);
    let places = (0..few).map(|number| number * all.len().saturating_sub(1) / few.saturating_sub(1).max(1));
    let own = places.map(|place| format!("{} ns", all[place].as_ns()));
    ["1 ns".to_owned(), "18446744073709551615 ns".to_owned()].into_iter().chain(own).collect()
}

/// Every text that may be a name.
fn texts_of(node: &Node, texts: &mut BTreeSet<String>) {
    match &node.value {
        Value::Text(text) if text.parse::<horolog_time::Span>().is_err() => {
            texts.insert(text.clone());
        }
        Value::List(list) => list.iter().for_each(|node| texts_of(node, texts)),
        Value::Table(table) => table.entries.iter().for_each(|entry| texts_of(&entry.node, texts)),
        _ => {}
    }
}
