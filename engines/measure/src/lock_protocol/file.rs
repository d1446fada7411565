//! The file of lock protocols: TOML, read strictly.

use horolog_model::Diagnostics;
use horolog_model::file::did_you_mean;
use horolog_probe::lock_protocol::{LARGEST_CEILING, Protocol, Site};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const ROOT_KEYS: [&str; 2] = ["rule", "default"];
const RULE_KEYS: [&str; 3] = ["site", "protocol", "priority"];
const DEFAULT_KEYS: [&str; 2] = ["protocol", "priority"];
const WORDS: [&str; 3] = ["inheritance", "ceiling", "none"];
const SITES: &str = "write a symbol as `bus_*`, `program!bus_*` or `program!bus_write+0x1f`, a line as `bus.c:40` or `bus.c:40-52`, or a place \
                     as `libbus.so+0x1a2b`";
/// The most bytes of all rules together: they are handed over in the environment, which a program's arguments share.
const MOST_BYTES: usize = 64 << 10;

/// What is wrong: the bytes, the reason, the remedy.
type Finding = (Range<usize>, String, String);

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockRule {
    /// The calls that it is for; `None`: all that no rule before fits.
    pub site: Option<String>,
    /// What it gives.
    pub protocol: Protocol,
}

/// The rules of a file, in its order; the first that fits a call counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockRules {
    /// The rules; a default is the last one.
    pub rules: Vec<LockRule>,
}

impl LockRules {
    /// The words for the preloaded library.
    #[must_use]
    pub fn to_words(&self) -> String {
        let line = |rule: &LockRule| match &rule.site {
            Some(site) => format!("{}\t{site}\n", rule.protocol),
            None => format!("{}\n", rule.protocol),
        };
        self.rules.iter().map(line).collect()
    }
}

/// Reads the file's text; `name` is what messages call it.
///
/// # Errors
/// Everything that is wrong with it, each with its place and a remedy.
///
/// ```
/// let rules = horolog_measure::lock_protocol::read("[default]\nprotocol = \"inheritance\"\n", "a.toml").unwrap();
/// assert_eq!(rules.to_words(), "inheritance\n");
/// let wrong = horolog_measure::lock_protocol::read("[default]\nprotocol = \"inherit\"\n", "a.toml").unwrap_err();
/// assert!(wrong.to_string().contains("a.toml:2:12"));
/// ```
pub fn read(text: &str, name: &str) -> Result<LockRules, Diagnostics> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        let place = error.span().unwrap_or(text.len()..text.len());
        let reason = format!("this is not valid TOML: {}", error.message());
        let remedy = "correct the line; docs/how-to/lock-protocols.md has an example".to_owned();
        return Err(Diagnostics::in_text(name, text, [(place, reason, remedy)]));
    }
    let mut reader = Reader::default();
    let rules = reader.rules(root.get_ref());
    if reader.found.is_empty() {
        return Ok(rules);
    }
    reader.found.sort_by_key(|(place, ..)| place.start);
    Err(Diagnostics::in_text(name, text, reader.found))
}

/// Reads the file's bytes.
///
/// # Errors
/// As [`read`]; also where they are not UTF-8.
pub fn read_bytes(bytes: &[u8], name: &str) -> Result<LockRules, Diagnostics> {
    match std::str::from_utf8(bytes) {
        Ok(text) => read(text, name),
        Err(error) => {
            let (place, text) = (error.valid_up_to(), String::from_utf8_lossy(bytes));
            let finding =
                (place..place + 1, "this is not UTF-8".to_owned(), "save the file as UTF-8".to_owned());
            Err(Diagnostics::in_text(name, &text, [finding]))
        }
    }
}

#[derive(Default)]
struct Reader {
    found: Vec<Finding>,
}

impl Reader {
    fn fail(&mut self, range: Range<usize>, reason: impl Into<String>, remedy: impl Into<String>) {
        self.found.push((range, reason.into(), remedy.into()));
    }

    fn rules(&mut self, root: &DeTable<'_>) -> LockRules {
        self.known(root, "a file of lock protocols", &ROOT_KEYS);
        let mut rules = Vec::new();
        let mut seen: BTreeMap<String, ()> = BTreeMap::new();
        match root.get("rule").map(|value| (value.get_ref(), value.span())) {
            None => {}
            Some((DeValue::Array(list), _)) => {
                for value in list.iter() {
                    let Some(table) = self.table(value, "[[rule]]") else { continue };
                    self.known(table, "[[rule]]", &RULE_KEYS);
                    let site = self.site(table, &value.span(), &mut seen);
                    let protocol = self.protocol(table, &value.span(), "[[rule]]");
                    if let (Some(site), Some(protocol)) = (site, protocol) {
                        rules.push(LockRule { site: Some(site), protocol });
                    }
                }
            }
            Some((_, range)) => {
                self.fail(
                    range,
                    "`rule` is a list of tables",
                    "write `[[rule]]`, and its keys on the lines below",
                );
            }
        }
        if let Some(value) = root.get("default")
            && let Some(table) = self.table(value, "[default]")
        {
            self.known(table, "[default]", &DEFAULT_KEYS);
            if let Some(protocol) = self.protocol(table, &value.span(), "[default]") {
                rules.push(LockRule { site: None, protocol });
            }
        }
        let rules = LockRules { rules };
        if self.found.is_empty() {
            self.does_something(&rules);
        }
        rules
    }

    fn does_something(&mut self, rules: &LockRules) {
        if rules.rules.iter().all(|rule| rule.protocol == Protocol::None) {
            let remedy = "add a `[[rule]]` with `site` and `protocol`, or `[default]` with `protocol = \"inheritance\"`";
            self.fail(0..0, "the file gives no lock a protocol", remedy);
        }
        if rules.to_words().len() > MOST_BYTES {
            let reason = format!("the rules are longer than {MOST_BYTES} bytes together");
            self.fail(0..0, reason, "join sites by patterns, as `program!bus_*`");
        }
    }

    fn table<'t>(&mut self, value: &'t Spanned<DeValue<'t>>, noun: &str) -> Option<&'t DeTable<'t>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                let remedy = format!("write `{noun}`, and its keys on the lines below");
                self.fail(value.span(), format!("{noun} is a table"), remedy);
                None
            }
        }
    }

    fn known(&mut self, table: &DeTable<'_>, noun: &str, keys: &[&str]) {
        for key in table.keys().filter(|key| !keys.contains(&key.get_ref().as_ref())) {
            let reason = format!("{noun} has no key `{}`", key.get_ref());
            self.fail(key.span(), reason, did_you_mean(key.get_ref(), keys));
        }
    }

    fn text(&mut self, table: &DeTable<'_>, key: &str) -> Option<(String, Range<usize>)> {
        let value = table.get(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some((text.to_string(), value.span())),
            _ => {
                self.fail(value.span(), format!("`{key}` is text"), "put it into quotes");
                None
            }
        }
    }

    fn site(
        &mut self,
        table: &DeTable<'_>,
        place: &Range<usize>,
        seen: &mut BTreeMap<String, ()>,
    ) -> Option<String> {
        if table.get("site").is_none() {
            self.fail(
                place.clone(),
                "[[rule]] needs a `site`: the calls that it is for",
                format!("{SITES}; for all others there is [default]"),
            );
            return None;
        }
        let (site, range) = self.text(table, "site")?;
        if let Err(reason) = Site::parse(&site) {
            self.fail(range, format!("`{}` names no call: {reason}", site.escape_debug()), SITES);
            return None;
        }
        if seen.insert(site.clone(), ()).is_some() {
            let reason =
                format!("a rule above has the site `{site}` already, and the first that fits counts");
            self.fail(range, reason, "remove one of the two");
            return None;
        }
        Some(site)
    }

    fn protocol(&mut self, table: &DeTable<'_>, place: &Range<usize>, noun: &str) -> Option<Protocol> {
        if table.get("protocol").is_none() {
            let remedy = "write `protocol = \"inheritance\"`, `\"none\"`, or `\"ceiling\"` with a `priority`";
            self.fail(place.clone(), format!("{noun} needs a `protocol`"), remedy);
            return None;
        }
        let (word, range) = self.text(table, "protocol")?;
        if !WORDS.contains(&word.as_str()) {
            self.fail(range, format!("`{word}` is not a protocol of a mutex"), did_you_mean(&word, &WORDS));
            return None;
        }
        let priority = table.get("priority");
        match (word.as_str(), priority) {
            ("ceiling", None) => {
                let remedy =
                    "write `priority = 30`: that of the most important thread that uses the lock, at least";
                self.fail(range, "a ceiling needs its `priority`", remedy);
                None
            }
            ("ceiling", Some(value)) => self.priority(value).map(Protocol::Ceiling),
            (word, Some(value)) => {
                let reason = format!("`{word}` has no priority of its own");
                self.fail(value.span(), reason, "remove `priority`, or write `protocol = \"ceiling\"`");
                None
            }
            (word, None) => Protocol::from_word(word),
        }
    }

    fn priority(&mut self, value: &Spanned<DeValue<'_>>) -> Option<u8> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => {
                u8::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
            }
            _ => None,
        };
        let found = number.filter(|number| (1..=LARGEST_CEILING).contains(number));
        if found.is_none() {
            let reason =
                format!("a ceiling is a priority of SCHED_FIFO: a whole number from 1 to {LARGEST_CEILING}");
            self.fail(value.span(), reason, "that of the most important thread that uses the lock, at least");
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        read(text, "locks.toml").unwrap_or_else(|error| panic!("{error}")).to_words()
    }

    #[test]
    fn rules_stand_in_the_order_of_the_file_and_the_default_last() {
        let text = "[default]\nprotocol = \"none\"\n[[rule]]\nsite = \"a!b\"\nprotocol = \"ceiling\"\npriority = 99\n\
                    [[rule]]\nsite = \"c.c:1-2\"\nprotocol = \"inheritance\"\n";
        assert_eq!(words(text), "ceiling=99\ta!b\ninheritance\tc.c:1-2\nnone\n");
        let rule = |priority: &str| {
            format!("[[rule]]\nsite = \"a\"\nprotocol = \"ceiling\"\npriority = {priority}\n")
        };
        assert_eq!(words(&rule("1")), "ceiling=1\ta\n");
        assert_eq!(words(&rule("0x1_0")), "ceiling=16\ta\n");
    }

    /// Each wrong text, where the caret is, what the message says, and what the remedy.
    #[test]
    fn every_error_has_its_place_and_a_remedy() {
        let cases = [
            ("", "1:1", "gives no lock a protocol", "[default]"),
            ("[default]\nprotocol = \"none\"\n", "1:1", "gives no lock a protocol", "[[rule]]"),
            ("rules = 1\n", "1:1", "has no key `rules`", "did you mean `rule`"),
            ("rule = 1\n", "1:8", "is a list", "[[rule]]"),
            ("rule = [1]\n", "1:9", "[[rule]] is a table", "[[rule]]"),
            ("default = 1\n", "1:11", "[default] is a table", "[default]"),
            ("[[rule]]\nprotocol = \"inheritance\"\n", "1:1", "needs a `site`", "[default]"),
            ("[[rule]]\nsite = \"a\"\n", "1:1", "needs a `protocol`", "inheritance"),
            ("[[rule]]\nsite = 1\nprotocol = \"none\"\n", "2:8", "`site` is text", "quotes"),
            ("[[rule]]\nsite = \"a.c:0\"\nprotocol = \"inheritance\"\n", "2:8", "names no call", "bus.c:40"),
            ("[[rule]]\nsite = \"a\\tb\"\nprotocol = \"inheritance\"\n", "2:8", "a\\tb", "bus.c:40"),
            ("[default]\nprotocol = \"inherit\"\n", "2:12", "not a protocol", "did you mean `inheritance`"),
            ("[default]\nprotocol = \"ceiling\"\n", "2:12", "needs its `priority`", "most important"),
            (
                "[default]\nprotocol = \"inheritance\"\npriority = 3\n",
                "3:12",
                "no priority of its own",
                "remove",
            ),
            ("[default]\nprotocol = \"ceiling\"\npriority = 0\n", "3:12", "from 1 to 99", "most important"),
            ("[default]\nprotocol = \"ceiling\"\npriority = 100\n", "3:12", "from 1 to 99", "most important"),
            ("[default]\nprotocol = \"ceiling\"\npriority = -1\n", "3:12", "from 1 to 99", "most important"),
            (
                "[default]\nprotocol = \"ceiling\"\npriority = \"3\"\n",
                "3:12",
                "from 1 to 99",
                "most important",
            ),
            ("[default]\nprotocol = \"ceiling\"\npriority = 3.0\n", "3:12", "from 1 to 99", "most important"),
            ("[default\n", "1:9", "not valid TOML", "lock-protocols.md"),
            ("[default]\nprotocol = \"inheritance\"\nsite = \"x\"\n", "3:1", "has no key `site`", "protocol"),
        ];
        for (text, place, reason, remedy) in cases {
            let error = read(text, "l.toml").expect_err(text).to_string();
            assert!(error.contains(&format!("l.toml:{place}")), "{text}\n{error}");
            assert!(
                error.contains(reason) && error.contains("help: ") && error.contains(remedy),
                "{text}\n{error}"
            );
        }
        let error = read_bytes(b"# a\n[default]\n# \xff\n", "l.toml").expect_err("no text").to_string();
        assert!(
            error.contains("l.toml:3:3") && error.contains("not UTF-8") && error.contains("help: "),
            "{error}"
        );
        let twice = "[[rule]]\nsite = \"a\"\nprotocol = \"inheritance\"\n".repeat(2);
        let error = read(&twice, "l.toml").expect_err("twice").to_string();
        assert!(error.contains("l.toml:5:8") && error.contains("already"), "{error}");
        let long = format!("[[rule]]\nsite = \"{}\"\nprotocol = \"inheritance\"\n", "a".repeat(MOST_BYTES));
        assert!(read(&long, "l.toml").expect_err("long").to_string().contains("longer than"));
    }
}
