//! The file of a machine profile: TOML, written and read.

use super::{CostName, MachineKey, MachineProfile, ProfileCost, Quantile};
use horolog_model::Diagnostics;
use horolog_model::file::did_you_mean;
use horolog_time::Span;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const ROOT: &str = "a machine profile";
const ROOT_KEYS: [&str; 5] = ["schema", "measured", "horolog", "machine", "cost"];
const COST_KEYS: [&str; 10] = [
    "name",
    "cpu",
    "value",
    "quantile",
    "samples",
    "exceedances",
    "longest",
    "rounds",
    "stolen_rounds",
    "held_back_rounds",
];
const REMEDY: &str = "write it anew with `horolog measure machine`";
/// One more than the largest CPU number.
const MAX_CPUS: u64 = 8_192;

/// What is wrong: the bytes, the reason, the remedy.
type Finding = (Range<usize>, String, String);

impl MachineProfile {
    /// The file's text; [`read`] makes the same profile of it.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::from(
            "# What this machine's processor, kernel and hypervisor cost, by `horolog measure machine`.\n\
             # Each value is the quantile of its samples, rounded up; `exceedances` of them are longer.\n",
        );
        // Writing to a string cannot fail.
        let mut line = |key: &str, value: String| {
            let _ = writeln!(text, "{key:<12} = {value}");
        };
        line("schema", quoted(self.schema));
        line("measured", quoted(&self.measured));
        line("horolog", quoted(&self.horolog));
        text.push_str("\n[machine]\n");
        for (key, value) in MachineKey::NAMES.into_iter().zip(self.machine.values()) {
            let _ = writeln!(text, "{key:<12} = {}", quoted(value));
        }
        for cost in &self.costs {
            text.push_str(&cost_in_toml(cost));
        }
        text
    }
}

fn cost_in_toml(cost: &ProfileCost) -> String {
    let duration = |span: Span| format!("\"{span}\"");
    let lines = [
        ("name", quoted(cost.name.name())),
        ("cpu", cost.cpu.to_string()),
        ("value", duration(cost.value)),
        ("quantile", format!("\"{}\"", cost.quantile)),
        ("samples", cost.samples.to_string()),
        ("exceedances", cost.exceedances.to_string()),
        ("longest", duration(cost.longest)),
        ("rounds", cost.rounds.to_string()),
        ("stolen_rounds", cost.stolen_rounds.to_string()),
        ("held_back_rounds", cost.held_back_rounds.to_string()),
    ];
    let lines: String = lines.map(|(key, value)| format!("{key:<16} = {value}\n")).concat();
    format!("\n[[cost]]\n{lines}")
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Reads a profile from its text; `name` is what messages call it.
///
/// # Errors
/// Everything that is wrong with it, each with its place and a remedy.
///
/// ```
/// let found = horolog_measure::machine::read("schema = \"horolog.machine/2\"\n", "m.toml").unwrap_err();
/// assert!(found.to_string().contains("m.toml:1:10"));
/// ```
pub fn read(text: &str, name: &str) -> Result<MachineProfile, Diagnostics> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        let place = error.span().unwrap_or(text.len()..text.len());
        let reason = format!("this is not valid TOML: {}", error.message());
        return Err(Diagnostics::in_text(name, text, [(place, reason, REMEDY.to_owned())]));
    }
    let mut reader = Reader::default();
    match reader.profile(root.get_ref()) {
        Some(profile) if reader.found.is_empty() => Ok(profile),
        _ => {
            reader.found.sort_by_key(|(place, ..)| place.start);
            Err(Diagnostics::in_text(name, text, reader.found))
        }
    }
}

#[derive(Default)]
struct Reader {
    found: Vec<Finding>,
}

/// A table and its place.
struct Place<'t> {
    table: &'t DeTable<'t>,
    range: Range<usize>,
    noun: &'static str,
}

impl Reader {
    fn profile(&mut self, root: &DeTable<'_>) -> Option<MachineProfile> {
        let head = Place { table: root, range: 0..0, noun: ROOT };
        self.known(&head, &ROOT_KEYS);
        let schema = self.text(&head, "schema");
        if let Some((schema, range)) = schema
            && schema != MachineProfile::SCHEMA
        {
            let reason = format!("`{schema}` is another schema than `{}`", MachineProfile::SCHEMA);
            self.found.push((range, reason, REMEDY.to_owned()));
            // Another schema has other keys.
            return None;
        }
        let measured = self.text(&head, "measured").map(|(text, _)| text);
        let horolog = self.text(&head, "horolog").map(|(text, _)| text);
        let machine = self.machine(&head);
        let costs = self.costs(&head);
        Some(MachineProfile {
            schema: MachineProfile::SCHEMA,
            measured: measured?,
            horolog: horolog?,
            machine: machine?,
            costs: costs?,
        })
    }

    fn machine(&mut self, head: &Place<'_>) -> Option<MachineKey> {
        let value = self.required(head, "machine")?;
        let place = self.table(value, "[machine]")?;
        self.known(&place, &MachineKey::NAMES);
        let values = MachineKey::NAMES.map(|key| self.text(&place, key).map(|(text, _)| text));
        let [Some(a), Some(b), Some(c), Some(d), Some(e)] = values else { return None };
        Some(MachineKey::of_values([a, b, c, d, e]))
    }

    fn costs(&mut self, head: &Place<'_>) -> Option<Vec<ProfileCost>> {
        let value = self.required(head, "cost")?;
        let DeValue::Array(list) = value.get_ref() else {
            let reason = "`cost` is a list of tables".to_owned();
            self.found.push((value.span(), reason, "write `[[cost]]`, its keys below".to_owned()));
            return None;
        };
        let mut costs: Vec<ProfileCost> = Vec::new();
        let mut is_whole = true;
        for value in list.iter() {
            let Some(cost) = self.cost(value) else {
                is_whole = false;
                continue;
            };
            if costs.iter().any(|known| (known.name, known.cpu) == (cost.name, cost.cpu)) {
                let reason = format!("{} of cpu {} is given twice", cost.name, cost.cpu);
                self.found.push((value.span(), reason, "remove one of the two".to_owned()));
            }
            costs.push(cost);
        }
        if is_whole {
            self.complete(&costs, &value.span());
        }
        is_whole.then_some(costs)
    }

    /// A CPU has all of its costs: a file that ends early lacks some.
    fn complete(&mut self, costs: &[ProfileCost], range: &Range<usize>) {
        let has = |name, cpu| costs.iter().any(|cost| (cost.name, cost.cpu) == (name, cpu));
        let cpus: BTreeSet<u32> = costs.iter().map(|cost| cost.cpu).collect();
        let pairs = cpus.iter().flat_map(|cpu| CostName::ALL.map(|name| (name, *cpu)));
        let lacks = pairs
            .filter(|(name, cpu)| !has(*name, *cpu))
            .map(|(name, cpu)| format!("{name} of cpu {cpu} is missing"));
        let none = costs.is_empty().then(|| "there is no cost".to_owned());
        let found: Vec<Finding> =
            lacks.chain(none).map(|reason| (range.clone(), reason, REMEDY.to_owned())).collect();
        self.found.extend(found);
    }

    fn cost(&mut self, value: &Spanned<DeValue<'_>>) -> Option<ProfileCost> {
        let place = self.table(value, "[[cost]]")?;
        self.known(&place, &COST_KEYS);
        let name = self.text(&place, "name").and_then(|(text, range)| {
            let name = CostName::from_name(&text);
            if name.is_none() {
                let remedy = did_you_mean(&text, &CostName::NAMES);
                self.found.push((range, format!("`{text}` is not a cost of a platform"), remedy));
            }
            name
        });
        let cpu = self.number(&place, "cpu", MAX_CPUS - 1);
        let value = self.span(&place, "value");
        let quantile =
            self.text(&place, "quantile").and_then(|(text, range)| match text.parse::<Quantile>() {
                Ok(quantile) => Some(quantile),
                Err(reason) => {
                    self.found.push((range, reason, "write it as `\"p99.9\"`".to_owned()));
                    None
                }
            });
        let samples = self.number(&place, "samples", u64::MAX);
        let exceedances = self.number(&place, "exceedances", u64::MAX);
        let longest = self.span(&place, "longest");
        let rounds = self.number(&place, "rounds", u64::MAX);
        let stolen_rounds = self.number(&place, "stolen_rounds", u64::MAX);
        let held_back_rounds = self.number(&place, "held_back_rounds", u64::MAX);
        let cost = ProfileCost {
            name: name?,
            cpu: u32::try_from(cpu?).ok()?,
            value: value?,
            quantile: quantile?,
            samples: samples?,
            exceedances: exceedances?,
            longest: longest?,
            rounds: rounds?,
            stolen_rounds: stolen_rounds?,
            held_back_rounds: held_back_rounds?,
        };
        self.consistent(&place, &cost);
        Some(cost)
    }

    /// A value is only a quantile of samples of which few enough are above it.
    fn consistent(&mut self, place: &Place<'_>, cost: &ProfileCost) {
        let (above, of) = cost.quantile.above();
        let at = |key: &str| place.table.get(key).map_or(place.range.clone(), Spanned::span);
        if cost.samples == 0 {
            self.found.push((
                at("samples"),
                "a cost without a sample says nothing".to_owned(),
                REMEDY.to_owned(),
            ));
        } else if u128::from(cost.exceedances) * u128::from(of) > u128::from(cost.samples) * u128::from(above)
        {
            let reason = format!(
                "{} of {} samples are above the value, which then is not {}",
                cost.exceedances, cost.samples, cost.quantile
            );
            self.found.push((at("exceedances"), reason, REMEDY.to_owned()));
        }
    }

    fn table<'t>(&mut self, value: &'t Spanned<DeValue<'t>>, noun: &'static str) -> Option<Place<'t>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(Place { table, range: value.span(), noun }),
            _ => {
                let remedy = format!("write `{noun}` and its keys on the lines below");
                self.found.push((value.span(), format!("{noun} is a table"), remedy));
                None
            }
        }
    }

    fn known(&mut self, place: &Place<'_>, keys: &[&str]) {
        for key in place.table.keys() {
            if !keys.contains(&key.get_ref().as_ref()) {
                let reason = format!("{} has no key `{}`", place.noun, key.get_ref());
                self.found.push((key.span(), reason, did_you_mean(key.get_ref(), keys)));
            }
        }
    }

    fn required<'t>(&mut self, place: &Place<'t>, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        let value = place.table.get(key);
        if value.is_none() {
            let reason = format!("{} needs a `{key}`", place.noun);
            self.found.push((place.range.clone(), reason, REMEDY.to_owned()));
        }
        value
    }

    fn text(&mut self, place: &Place<'_>, key: &str) -> Option<(String, Range<usize>)> {
        let value = self.required(place, key)?;
        match value.get_ref() {
            DeValue::String(text) => Some((text.to_string(), value.span())),
            _ => {
                let reason = format!("`{key}` is text");
                self.found.push((value.span(), reason, "put it into quotes".to_owned()));
                None
            }
        }
    }

    /// A duration.
    fn span(&mut self, place: &Place<'_>, key: &str) -> Option<Span> {
        let (text, range) = self.text(place, key)?;
        match text.parse() {
            Ok(span) => Some(span),
            Err(_) if text.trim_start().starts_with('-') => {
                let reason = format!("`{text}` is below zero");
                self.found.push((range, reason, "a cost is never negative".to_owned()));
                None
            }
            Err(error) => {
                let reason = format!("`{text}` is not a duration: {error}");
                self.found.push((range, reason, "a number and a unit in quotes, as `\"60 us\"`".to_owned()));
                None
            }
        }
    }

    /// A whole number up to `most`.
    fn number(&mut self, place: &Place<'_>, key: &str, most: u64) -> Option<u64> {
        let value = self.required(place, key)?;
        let number = match value.get_ref() {
            DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        let fits = number.and_then(|number| u64::try_from(number).ok()).filter(|number| *number <= most);
        if fits.is_none() {
            let reason = format!("`{key}` is a whole number from 0 to {most}");
            self.found.push((value.span(), reason, REMEDY.to_owned()));
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> MachineProfile {
        let cost = |name, cpu, value| ProfileCost {
            name,
            cpu,
            value: Span::from_ns(value),
            quantile: CostName::quantile(name),
            samples: 5_000,
            exceedances: 5,
            longest: Span::from_ns(1_234_567),
            rounds: 29,
            stolen_rounds: 1,
            held_back_rounds: 2,
        };
        MachineProfile {
            schema: MachineProfile::SCHEMA,
            measured: "2026-11-25 18:00:00 UTC".to_owned(),
            horolog: "0.1.0".to_owned(),
            machine: MachineKey::of_values(
                ["a \"cpu\" \\ \t", "6.18", "quiet x=\"1 2\"", "none", "none"].map(str::to_owned),
            ),
            costs: CostName::ALL
                .into_iter()
                .flat_map(|name| [cost(name, 0, 2_300), cost(name, 1, 60_000)])
                .collect(),
        }
    }

    fn messages(text: &str) -> String {
        read(text, "m.toml").expect_err("refused").to_string()
    }

    /// The file with one text replaced by another.
    fn edited(from: &str, to: &str) -> String {
        let text = profile().to_toml();
        assert!(text.contains(from), "{text}");
        text.replacen(from, to, 1)
    }

    #[test]
    fn a_profile_reads_back_as_it_was() {
        let profile = profile();
        assert_eq!(read(&profile.to_toml(), "m.toml").expect("valid"), profile);
    }

    #[test]
    fn the_greatest_of_the_cpus_that_are_used() {
        let profile = profile();
        let greatest = |cpus: &[u32]| profile.greatest(CostName::TimerInterrupt, cpus).map(|cost| cost.cpu);
        assert_eq!((greatest(&[0]), greatest(&[1, 0]), greatest(&[])), (Ok(0), Ok(1), Ok(1)));
        assert_eq!(greatest(&[0, 2, 3]), Err(vec![2, 3]));
        assert_eq!(profile.cpus(), [0, 1]);
    }

    #[test]
    fn what_is_wrong_is_told_with_place_and_remedy() {
        let cases = [
            ("[machine]", "[machine", "not valid TOML", "m.toml:7:9"),
            ("horolog.machine/1\"", "horolog.machine/2\"", "another schema", "m.toml:3:16"),
            ("measured ", "measure ", "has no key `measure`", "did you mean `measured`?"),
            ("kernel       =", "kernal       =", "[machine] has no key `kernal`", "did you mean `kernel`?"),
            ("\"2.3 us\"", "\"-2.3 us\"", "`-2.3 us` is below zero", "m.toml:17:20"),
            ("\"2.3 us\"", "\"2.3\"", "is not a duration", "as `\"60 us\"`"),
            ("\"2.3 us\"", "2300", "`value` is text", "put it into quotes"),
            (
                "\"context_switch\"",
                "\"context_swich\"",
                "not a cost of a platform",
                "did you mean `context_switch`?",
            ),
            ("\"p99\"", "\"p101\"", "not a quantile", "as `\"p99.9\"`"),
            ("= 5000", "= -1", "`samples` is a whole number", "horolog measure machine"),
            ("= 5000", "= 0", "without a sample", "horolog measure machine"),
            (
                "cpu              = 0",
                "cpu              = 1",
                "context_switch of cpu 1 is given twice",
                "m.toml:26",
            ),
            ("cpu              = 0", "cpu              = 8192", "from 0 to 8191", "m.toml:16"),
            ("[[cost]]", "[cost]", "not valid TOML", "m.toml:"),
        ];
        for (from, to, reason, more) in cases {
            let said = messages(&edited(from, to));
            assert!(said.contains(reason) && said.contains(more), "{from} -> {to}: {said}");
        }
        assert!(messages("").contains("a machine profile needs a `schema`"));
        let head = "schema = \"horolog.machine/1\"\nmeasured = \"\"\nhorolog = \"\"\n";
        assert!(messages(&format!("{head}machine = 1\ncost = 2\n")).contains("[machine] is a table"));
        assert!(messages(head).contains("needs a `cost`"));
        let text = profile().to_toml();
        let none = format!("cost = []\n{}", &text[..text.find("[[cost]]").expect("it is there")]);
        let said = messages(&none);
        assert!(said.contains("there is no cost") && said.contains("m.toml:1:8"), "{said}");
    }

    #[test]
    fn a_file_that_was_cut_is_refused_or_lacks_whole_cpus() {
        let mut profile = profile();
        profile.costs.sort_by_key(|cost| cost.cpu);
        let text = profile.to_toml();
        let mut accepted = BTreeSet::new();
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            match read(&text[..end], "m.toml") {
                Ok(found) => {
                    assert_eq!(found.costs, profile.costs[..found.costs.len()], "{end}");
                    accepted.insert(found.costs.len());
                }
                Err(found) => assert!(found.to_string().contains("m.toml"), "{end}: {found}"),
            }
        }
        // All of it without the last line's end, and CPU 0 alone.
        assert_eq!(accepted, BTreeSet::from([3, 6]));
        let cut = text.find("release_latency").expect("it is there");
        let cut = text[..cut].rfind("[[cost]]").expect("it is there");
        assert!(messages(&text[..cut]).contains("release_latency of cpu 0 is missing"));
    }

    #[test]
    fn one_changed_byte_is_refused_or_another_right_profile() {
        let mut profile = profile();
        profile.costs.truncate(3);
        profile
            .costs
            .iter_mut()
            .zip(CostName::ALL)
            .for_each(|(cost, name)| (cost.name, cost.cpu) = (name, 0));
        let text = profile.to_toml();
        for place in 0..text.len() {
            for byte in *b"\"0-[]=#.\n\\\x7f" {
                let mut bytes = text.clone().into_bytes();
                bytes[place] = byte;
                // What is read is written and read back as it is.
                if let Ok(found) = read(&String::from_utf8_lossy(&bytes), "m.toml") {
                    assert_eq!(read(&found.to_toml(), "m.toml").expect("valid"), found, "{place}: {byte}");
                }
            }
        }
    }

    #[test]
    fn every_key_is_needed_and_none_other_is_taken() {
        let text = profile().to_toml();
        for key in ROOT_KEYS[..3].iter().chain(&MachineKey::NAMES).chain(&COST_KEYS) {
            let line = text.find(&format!("\n{key} ")).expect("a line") + 1;
            let end = line + text[line..].find('\n').expect("it ends");
            let said = messages(&format!("{}{}", &text[..line], &text[end..]));
            assert!(said.contains(&format!("needs a `{key}`")), "{key}: {said}");
            let said = messages(&format!("{}x{}", &text[..line], &text[line..]));
            assert!(said.contains(&format!("has no key `x{key}`")), "{key}: {said}");
        }
    }

    #[test]
    fn a_value_that_too_many_samples_exceed_is_no_quantile() {
        // 1 % of 5,000 samples may be above p99.
        assert!(read(&edited("exceedances      = 5\n", "exceedances      = 50\n"), "m.toml").is_ok());
        let said = messages(&edited("exceedances      = 5\n", "exceedances      = 51\n"));
        assert!(said.contains("51 of 5000 samples are above the value, which then is not p99"), "{said}");
    }
}
